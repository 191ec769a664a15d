# SPDX-License-Identifier: GPL-2.0-only
"""Arrays of 2 to 32 disks: throughput with and without coordination, and what it costs.

    python bench/array_scaling.py [--plot FILE.svg]

Four readers on RAID 0 in chunks of 64 KiB, owners hidden, in virtual time; and the
processor time that a request takes in the core, with and without the coordinator,
sixteen readers, in this machine's time (the best of five).
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import subprocess
from pathlib import Path

from rich.console import Console

from streamsched.base.files import Target, check_output, target, write_whole
from streamsched.sim.array import Array
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Setup
from streamsched.sim.tasks import Task, run_tasks
from streamsched.work.jobfile import parse_jobs

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "bench" / "bench_array"
CORE_FLAGS = "-O2 -std=gnu11 -Wall -Wextra -fno-strict-aliasing"
MEMBERS = (2, 4, 5, 8, 16, 32)
RUN_S = 20
JOB = """\
[reader]
rw=read
bs={bs}
direct={direct}
size=16g
offset_increment={gap}
numjobs=4
runtime={run}
time_based
"""
# Block sizes: through the page cache, and direct.
KINDS = {"4k buffered": ("4k", 0), "64k direct": ("64k", 1)}
WAYS = {"noop": ("noop", False), "apart": ("stream:deadline", False)}
WAYS["together"] = ("stream:deadline", True)


def tasks() -> dict[tuple[str, int, str], Task]:
    """Every simulation, by kind, members and way."""
    disk = load_disk("wd5000aaks")
    found = {}
    for kind, (bs, direct) in KINDS.items():
        for members in MEMBERS:
            for way, (policy, coordinated) in WAYS.items():
                array = Array("raid0", members, coordinated=coordinated)
                setup = Setup(disk, policy, owners="none", array=array)
                gap = setup.capacity_bytes // 5 // (1 << 20) << 20
                text = JOB.format(bs=bs, direct=direct, gap=gap, run=RUN_S)
                jobs = parse_jobs(text, "scaling", capacity_bytes=setup.capacity_bytes)
                found[kind, members, way] = Task(f"{kind} {members}", setup, tuple(jobs))
    return found


def build() -> None:
    """Compile bench_array.c with the core."""
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    sources = [*sorted((ROOT / "core").rglob("*.c")), ROOT / "compat" / "rbtree.c"]
    command = [*shlex.split(os.environ.get("CC", "cc")), *CORE_FLAGS.split()]
    command += [f"-I{ROOT / 'compat'}", *map(str, sources), str(ROOT / "bench" / "bench_array.c")]
    subprocess.run([*command, "-o", str(PROGRAM)], check=True)


def cost_ns(members: int, coordinated: bool) -> float:
    """Processor time of a request in the core: the best of five rounds."""
    command = [str(PROGRAM), str(members), str(int(coordinated)), "300000"]
    rounds = [subprocess.check_output(command, text=True).split()[0] for _ in range(5)]
    return min(map(float, rounds))


def plot(rates: dict[tuple[str, int, str], float], to: Target) -> None:
    """The picture beside the table."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "streamsched"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(KINDS), figsize=(9, 4))
    for axis, kind in zip(axes, KINDS, strict=True):
        for way in WAYS:
            axis.plot(MEMBERS, [rates[kind, nr, way] for nr in MEMBERS], "o-", label=way)
        axis.set(title=f"four readers, {kind}", xlabel="disks", ylabel="MB/s", ylim=(0, None))
        axis.set_xscale("log", base=2)
        axis.set_xticks(MEMBERS, [str(nr) for nr in MEMBERS])
        axis.minorticks_off()
        axis.legend()
    figure.suptitle("RAID 0, simulated: noop, and stream:deadline apart and together")
    figure.tight_layout()
    picture = io.BytesIO()
    kind = to.path.suffix[1:]
    figure.savefig(picture, format=kind, metadata={"Date": None} if kind == "svg" else None)
    write_whole(to, picture.getvalue())


def main() -> None:
    """Measure all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    arguments = parser.parse_args()
    picture = target(arguments.plot, arguments.force)
    check_output(picture, option="--plot")
    work = tasks()
    runs, _ = run_tasks(list(work.values()), 1, Console(stderr=True), together="arrays")
    rates = {key: run.mb_s for key, run in zip(work, runs, strict=True) if run}
    build()
    heads = [f"{kind}, {way}" for kind in KINDS for way in WAYS]
    print("| disks | " + " | ".join([*heads, "ns apart", "ns together"]) + " |")
    print("|---" * (len(heads) + 3) + "|")
    for members in MEMBERS:
        cells = [f"{rates[kind, members, way]:.0f}" for kind in KINDS for way in WAYS]
        cells += [f"{cost_ns(members, coordinated):.0f}" for coordinated in (False, True)]
        print("| " + " | ".join([str(members), *cells]) + " |")
    if picture:
        plot(rates, picture)


if __name__ == "__main__":
    main()
