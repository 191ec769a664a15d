# SPDX-License-Identifier: GPL-2.0-only
"""The table of docs/KERNEL.md for arrays: five emulated disks under md, on the real kernel.

`python -m streamsched.arraytable` measures it all anew, or the jobs, levels and
schedulers that are named, and writes it. Sizes and distances are four times those of the job
files, so that each of the five disks has about what a disk by itself has.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from streamsched import hddemu, rig
from streamsched.diskfile import load_disk
from streamsched.errors import StreamschedError, exit_code_of, named
from streamsched.jobfile import parse_jobs
from streamsched.kernelhost import FIO_WORK, MEMORY_MB, process_section
from streamsched.kerneltable import DISK, FIO_JOBS, QUEUE_DEPTH, cells_done, with_rows
from streamsched.simulate import NR_REQUESTS

DISKS = 5
CHUNK_KIB = 64
LEVELS = ("raid0", "raid5")
TOGETHER = "stream, coordinated"
# What is shown, and the scheduler in iosched that it is.
SCHEDULERS = {
    "none": "none",
    "mq-deadline": "mq-deadline",
    "bfq": "bfq",
    "bfq:low_latency=0": "bfq",
    "stream": "stream",
    TOGETHER: "stream",
}
SCALE = 4
TIMEOUT_S = 900

SCRIPT = """
fail() {{ echo "$*" >&2; exit 1; }}
. $IN/disks.sh || fail "the emulated disks could not be made"
for d in {names}; do
	echo {scheduler} >/sys/block/$d/queue/scheduler || fail "no scheduler {scheduler}"
	[ {scheduler} = none ] || echo {requests} >/sys/block/$d/queue/nr_requests
	{setting}
done
mdadm --create /dev/md0 --run --metadata=1.2 --level={level} --raid-devices={disks} \\
	--chunk={chunk} --assume-clean {paths} >/dev/null 2>&1 || fail "mdadm makes no array"
{attach}
export STREAMSCHED_DISK=/dev/md0
cd /tmp
# See kernel/rig/workload.sh.
echo 2000 >/proc/$$/timerslack_ns
sleep 0.05
bash -c '{work}'
"""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One job under one scheduler on one level."""

    job: str
    level: str
    scheduler: str
    mb_s: float
    efficiency: float | None
    p99_ms: float  # of the reads' times, as fio has them
    longest_ms: float


def scaled(text: str) -> str:
    """The job file's @text with SCALE times its sizes and distances."""

    def more(found: re.Match[str]) -> str:
        return f"{found[1]}={int(found[2]) * SCALE}{found[3]}"

    return re.sub(r"^(size|io_size|offset_increment)=(\d+)([a-z]*)$", more, text, flags=re.M)


def run(text: str, level: str, scheduler: str) -> list[dict[str, float]]:
    """The job file @text on a fresh array: for each clone bytes, seconds, p99 and longest in ms."""
    disk = dataclasses.replace(load_disk(DISK), queue_depth=QUEUE_DEPTH)
    names = [f"hdd{i}" for i in range(DISKS)]
    latency = "low_latency=0" in scheduler
    attach = f"{sys.prefix}/bin/streamsched array attach /dev/md0 >/dev/null || exit 1"
    script = SCRIPT.format(
        names=" ".join(names),
        paths=" ".join(f"/dev/{name}" for name in names),
        scheduler=SCHEDULERS[scheduler],
        requests=NR_REQUESTS,
        setting="echo 0 >/sys/block/$d/queue/iosched/low_latency" if latency else ":",
        level=level,
        disks=DISKS,
        chunk=CHUNK_KIB,
        attach=attach if scheduler == TOGETHER else "",
        work=FIO_WORK.strip(),
    )
    result = rig.run_in_rig(
        script,
        files={
            "disks.sh": "\n".join(hddemu.script(name, disk) for name in names),
            "job.fio": text,
            "fio-start.so": rig.compiled("fio-start.c", "-shared", "-fPIC").read_bytes(),
        },
        show=[Path(sys.prefix), rig.source_root()],
        timeout_s=TIMEOUT_S,
        memory_mb=MEMORY_MB,
    )
    if result.status or result.complaints():
        said = [*result.complaints(), *result.stderr.splitlines()[-3:]]
        raise StreamschedError(f"{level}, {scheduler}: {' | '.join(said)}")
    output = result.files["fio.json"].decode()
    jobs = json.loads(output[output.index("{") :])["jobs"]
    return [
        {
            "bytes": job["read"]["io_bytes"] + job["write"]["io_bytes"],
            "seconds": job["job_runtime"] / 1e3,
            "p99_ms": job["read"]["clat_ns"]["percentile"]["99.000000"] / 1e6,
            "longest_ms": job["read"]["clat_ns"]["max"] / 1e6,
        }
        for job in jobs
    ]


def _rate(clones: Sequence[dict[str, float]]) -> float:
    return sum(c["bytes"] for c in clones) / 1e6 / max(c["seconds"] for c in clones)


def one_by_one(text: str, level: str) -> str:
    """A job file that has each process of @text alone, one after the other, in its own place."""
    data_disks = DISKS - (level == "raid5")
    capacity = data_disks * load_disk(DISK).capacity_sectors * 512
    processes = parse_jobs(text, "one of the table", capacity_bytes=capacity)
    return "".join(process_section(p, p.io_bytes or p.size) for p in processes)


def efficiency(clones: Sequence[dict[str, float]], alone: Sequence[dict[str, float]]) -> float:
    """See docs/RESULTS.md: 1 if together they took as long as one after the other."""
    pairs = zip(clones, alone, strict=True)
    needed_s = sum(c["bytes"] * a["seconds"] / a["bytes"] for c, a in pairs)
    return needed_s / max(c["seconds"] for c in clones)


def cells(job: str, level: str, schedulers: Sequence[str], done: Callable[[], None]) -> list[Cell]:
    """@job under each of @schedulers, against each process alone; @done after each."""
    file = rig.source_root() / "jobs" / "kernel" / f"{job}.fio"
    text = scaled(file.read_text())
    alone = run(one_by_one(text, level), level, "none")
    found = []
    for scheduler in schedulers:
        clones = run(text, level, scheduler)
        found.append(
            Cell(
                job,
                level,
                scheduler,
                _rate(clones),
                efficiency(clones, alone) if len(clones) > 1 else None,
                max(c["p99_ms"] for c in clones),
                max(c["longest_ms"] for c in clones),
            )
        )
        done()
    return found


def markdown(rows: Sequence[Cell]) -> str:
    """One job's table."""
    title = FIO_JOBS[rows[0].job]
    out = [f"### On arrays: {title}", ""]
    out.append("| level | scheduler | MB/s | efficiency | p99 ms | longest ms |")
    out.append("|---|---|---:|---:|---:|---:|")
    for cell in rows:
        efficiency = "" if cell.efficiency is None else f"{cell.efficiency:.3f}"
        out.append(
            f"| {cell.level} | {cell.scheduler} | {cell.mb_s:.2f} | {efficiency} "
            f"| {cell.p99_ms:.1f} | {cell.longest_ms:.1f} |"
        )
    return "\n".join(out)


def write_into(document: Path, found: Sequence[Cell]) -> None:
    """Put the rows that were measured where they belong, and leave the others as they are."""
    rows = [f"| {level} | {scheduler} |" for level in LEVELS for scheduler in SCHEDULERS]
    new = markdown(found).splitlines()
    document.write_text(with_rows(document.read_text(), f"arrays {found[0].job}", new, rows))


def table(arguments: Sequence[str]) -> None:
    """Measure what is named (jobs, levels, schedulers; nothing: all) into docs/KERNEL.md."""
    jobs, levels, schedulers = named(
        arguments,
        ("job", list(FIO_JOBS)),
        ("level", LEVELS),
        ("scheduler", list(SCHEDULERS)),
    )
    rig.build()
    rig.build_modules()
    document = rig.source_root() / "docs" / "KERNEL.md"
    with cells_done() as progress:
        total = len(jobs) * len(levels) * len(schedulers)
        task = progress.add_task("array table", total=total)
        for job in jobs:
            for level in levels:
                found = cells(job, level, schedulers, lambda: progress.advance(task))
                write_into(document, found)


def main(arguments: Sequence[str]) -> int:
    """What `python -m streamsched.arraytable` does."""
    return exit_code_of("array-table", lambda: table(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
