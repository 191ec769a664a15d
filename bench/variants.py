# SPDX-License-Identifier: GPL-2.0-only
"""What becomes of the papers' experiments when the models are changed: evidence for
docs/research/REPRODUCTION.md.

    python bench/variants.py              all of them (2 min)
    python bench/variants.py pvfs guests  these

Everything is virtual time: each run prints the same.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

from streamsched.base.errors import exit_code_of, named
from streamsched.papers import xu as paper_xu
from streamsched.papers.seelam import FIGURES as SEELAM_FIGURES
from streamsched.papers.seelam import LINUS, LINUS_REQUESTS, OLD_DEADLINE
from streamsched.sim import workloads
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.experiment import (
    PAPER_STREAM,
    STREAM,
    Case,
    Figure,
    Runs,
    case_task,
    work_case,
)
from streamsched.sim.simulate import Run, Setup, run_jobs
from streamsched.work.process import Process

XU_POLICIES = ("noop", "deadline", "anticipatory", "cfq", PAPER_STREAM)
PAPER_DISK = load_disk("wd5000aaks")

ChangeProcess = Callable[[Process], Process]
ChangeSetup = Callable[[Setup], Setup]


def same(value: Any) -> Any:
    """No change."""
    return value


def long_file(process: Process) -> bool:
    """Read through the page cache in order, and no short files."""
    return not process.direct and not process.rw & 4 and not process.nr_file_splits


def with_maps(process: Process) -> Process:
    """Where the data of a long file lies is in blocks between them (ext2, ext3)."""
    return dataclasses.replace(process, maps=True) if long_file(process) else process


def changed(**changes: object) -> ChangeProcess:
    """These fields of every process."""
    return lambda process: dataclasses.replace(process, **changes)  # type: ignore[arg-type]


def out_of_step(disks: int, permille: float = 1.0) -> tuple[Disk, ...]:
    """Disks whose spindles turn up to so much faster and slower than the model's."""
    middle = (disks - 1) / 2
    step = PAPER_DISK.rotation_ns * permille / 1000 / middle
    return tuple(
        dataclasses.replace(
            PAPER_DISK, rotation_ns=PAPER_DISK.rotation_ns + round((i - middle) * step)
        )
        for i in range(disks)
    )


def run(case: Case, process: ChangeProcess = same, setup: ChangeSetup = same) -> Run:
    """What comes of @case, so changed."""
    task = case_task(case)
    return run_jobs(setup(task.setup), [process(p) for p in task.processes])


def figure(which: Figure, process: ChangeProcess = same, setup: ChangeSetup = same) -> None:
    """Every row of a figure, so changed."""
    runs: Runs = {case: run(case, process, setup) for case in dict.fromkeys(which.cases())}
    for row in which.rows(runs):
        verdict = "agrees" if row.agrees else "DIFFERS"
        print(f"    {row.what:66} {row.paper:18} {row.ours}  {verdict}")


def line(label: str, figures: Sequence[float], unit: str = "MB/s") -> None:
    """One result, a figure for each policy."""
    shown = ", ".join(f"{value:.1f}" for value in figures)
    print(f"    {label:58} {shown} {unit}")


def rates(
    name: str,
    process: ChangeProcess = same,
    setup: ChangeSetup = same,
    policies: Sequence[str] = XU_POLICIES,
) -> list[float]:
    """Throughput of the workload @name."""
    return [run(work_case(name, policy), process, setup).mb_s for policy in policies]


def maps() -> None:
    """Long files with maps between their data: every one, and not only those of guests."""
    for name in ("fig3", "fig4", "fig6", "fig7"):
        print(f"  {name}")
        figure(paper_xu.FIGURES[name], with_maps)
    print("  Love and Seelam, long files")
    for name in ("love", "seelam"):
        figure(SEELAM_FIGURES[name], with_maps)
    print("  Seelam, the files of trees, too")
    figure(SEELAM_FIGURES["seelam"], changed(maps=True))


def spindles() -> None:
    """Disks that do not turn in step."""
    for permille in (0.5, 1.0, 2.0):
        print(f"  Figure 6, spindles up to {permille:g} permille apart from the model's")
        figure(
            paper_xu.FIGURES["fig6"],
            setup=lambda s, p=permille: dataclasses.replace(s, disks=out_of_step(5, p)),
        )


def windows() -> None:
    """Figure 6, other windows of readahead and thinking: noop, anticipatory, stream:deadline."""
    policies = ("noop", "anticipatory", STREAM)

    def cases(job: str, depth: int) -> list[Case]:
        return [
            Case(job, policy, owners="process", array=paper_xu.FIG6_ARRAYS[0], depth=depth)
            for policy in policies
        ]

    for depth in (1, paper_xu.FIG6_DEPTH):
        for kib in (128, 320, 640):
            label = f"windows of {kib} KiB, {depth} commands in a disk"
            window = changed(readahead_pages=kib // 4)
            line(
                f"par-read, {label}", [run(case, window).mb_s for case in cases("par-read", depth)]
            )
            for think_us in (50, 100, 120):
                process = changed(readahead_pages=kib // 4, thinktime_ns=think_us * 1000)
                line(
                    f"tpc-h, {label}, {think_us} us",
                    [run(case, process).seconds for case in cases("tpc-h", depth)],
                    "s",
                )


def _shuffled(case: Case, seed: int) -> Run:
    task = case_task(case)
    processes = list(task.processes)
    random.Random(seed).shuffle(processes)
    return run_jobs(task.setup, processes)


def _guests(start: int, vm_mib: int, name: str) -> list[float]:
    """ProFTPD's rates, the first file at @start %, guests' disks so far apart."""
    vms = int(name[-3])

    def text(capacity: int) -> str:
        first = capacity * start // 100 // workloads.MIB
        return "".join(
            workloads.FTP.format(vm=vm + 1, nr=nr + 1, offset=f"{place}m")
            for nr in range(4)
            for vm in range(vms)
            for place in [first + vm * vm_mib + nr * 20780]
        )

    known = workloads.WORKLOADS[name]
    workloads.WORKLOADS[name] = dataclasses.replace(known, text=text)
    try:
        return rates(name, policies=("noop", "anticipatory", "cfq", PAPER_STREAM))
    finally:
        workloads.WORKLOADS[name] = known


def guests() -> None:
    """ProFTPD in guests: noop, anticipatory, cfq, ss:deadline."""
    policies = ("noop", "anticipatory", "cfq", PAPER_STREAM)
    for name in ("ftp-1vm", "ftp-2vm"):
        line(f"{name}, the row", rates(name, policies=policies))
        line(f"{name}, files without maps", rates(name, changed(maps=False), policies=policies))
    behind = 4 * 20780
    for start in (0, 25, 35, 50):
        line(f"ftp-1vm, the first file at {start} %", _guests(start, workloads.VM_MIB, "ftp-1vm"))
        line(f"ftp-2vm, the first file at {start} %", _guests(start, workloads.VM_MIB, "ftp-2vm"))
    line("ftp-2vm, the second right behind the first", _guests(50, behind, "ftp-2vm"))
    for name in ("ftp-1vm", "ftp-2vm"):
        windows = changed(readahead_pages=16)
        line(f"{name}, windows of 64 KiB", rates(name, windows, policies=policies))
        for seed in (1, 2, 3):
            line(
                f"{name}, processes start in random order {seed}",
                [_shuffled(work_case(name, policy), seed).mb_s for policy in policies],
            )


def _reported(process: ChangeProcess, setup: ChangeSetup, network_us: int) -> list[float]:
    """As mpi-io-test reports it."""
    known = paper_xu.PVFS_NETWORK_US
    paper_xu.PVFS_NETWORK_US = network_us
    try:
        return [
            paper_xu._mpi_io_test(run(work_case("pvfs", policy), process, setup))
            for policy in XU_POLICIES
        ]
    finally:
        paper_xu.PVFS_NETWORK_US = known


def pvfs() -> None:
    """PVFS as reported: noop, deadline, anticipatory, cfq, ss:deadline."""
    for network_us in (400, 500, 530, 580, 600, 620, 650, 700, 800):
        think = changed(thinktime_ns=network_us * 1000)
        line(f"network {network_us} us", _reported(think, same, network_us))
    for permille in (0.5, 1.0, 1.5):
        for network_us in (500, 600, 700, 1100):
            think = changed(thinktime_ns=network_us * 1000)
            line(
                f"network {network_us} us, spindles up to {permille:g} permille apart",
                _reported(
                    think,
                    lambda s, p=permille: dataclasses.replace(s, disks=out_of_step(8, p)),
                    network_us,
                ),
            )
    network_us = workloads.PVFS_NETWORK_US
    line("files with maps", _reported(with_maps, same, network_us))
    line("take turns", _reported(changed(turns=True), same, network_us))
    line("do not depend on each other", _reported(changed(barrier=0), same, network_us))
    line("servers that do not read ahead", _reported(changed(readahead_pages=0), same, network_us))
    known, workloads.PVFS_GAP_MIB = workloads.PVFS_GAP_MIB, 10 * 1024
    line("10 GB between files on each server", _reported(same, same, network_us))
    for permille in (0.5, 1.0, 1.5):
        line(
            f"the same, spindles up to {permille:g} permille apart",
            _reported(
                same,
                lambda s, p=permille: dataclasses.replace(s, disks=out_of_step(8, p)),
                network_us,
            ),
        )
    workloads.PVFS_GAP_MIB = known
    for depth in (2, 4, 32):
        line(
            f"{depth} commands in a disk",
            _reported(
                same,
                lambda s, d=depth: dataclasses.replace(s, queue_depth=d),
                network_us,
            ),
        )


def threads() -> None:
    """multi-threads: noop, deadline, anticipatory, cfq, ss:deadline, in seconds."""

    def seconds(label: str, process: ChangeProcess = same, setup: ChangeSetup = same) -> None:
        runs = [run(work_case("multi-threads", p), process, setup) for p in XU_POLICIES]
        line(label, [r.seconds for r in runs], "s")

    seconds("the row")
    seconds("through the page cache", changed(direct=False))
    seconds("the same, windows of 64 KiB", changed(direct=False, readahead_pages=16))
    seconds("a barrier after each request", changed(barrier_blocks=1))
    seconds("threads take turns of five requests", changed(turns=True))
    seconds("32 commands in the disk", setup=lambda s: dataclasses.replace(s, queue_depth=32))


def tree() -> None:
    """Love's test 2: linus, deadline, anticipatory; and this of Linux 2.6.9."""

    def seconds(label: str, process: ChangeProcess = same) -> None:
        cases = [
            work_case("stream-and-tree", "linus", tunables=LINUS, nr_requests=LINUS_REQUESTS),
            work_case("stream-and-tree", "deadline", tunables=OLD_DEADLINE),
            work_case("stream-and-tree", "anticipatory"),
            work_case("stream-and-tree", "anticipatory", tunables=(("cooperation", 0),)),
        ]
        line(label, [run(case, process).jobs[-1].duration_ns / 1e9 for case in cases], "s")

    def one_cat(process: Process) -> Process:
        return dataclasses.replace(process, new_process=False, spawn_ns=0)

    seconds("a cat for each file")
    seconds("one cat for all files (find | xargs cat)", one_cat)
    seconds("the tree in one piece", lambda p: dataclasses.replace(p, directory_files=0))
    seconds(
        "the tree in one piece, one cat",
        lambda p: dataclasses.replace(one_cat(p), directory_files=0),
    )


def profiles() -> None:
    """FFSB's profiles with more and less of a write cache in the disk."""
    for extents in (1, 8):

        def less(setup: Setup, extents: int = extents) -> Setup:
            room = setup.disk.write_cache_sectors if extents > 1 else 0
            disk = dataclasses.replace(
                setup.disk, write_cache_sectors=room, write_cache_extents=extents
            )
            return dataclasses.replace(setup, disk=disk)

        print("  without a write cache" if extents == 1 else f"  with room for {extents} pieces")
        figure(SEELAM_FIGURES["profiles"], setup=less)
    print("  Tables 1 to 3 without a write cache")
    figure(
        SEELAM_FIGURES["seelam"],
        setup=lambda s: dataclasses.replace(
            s, disk=dataclasses.replace(s.disk, write_cache_sectors=0, write_cache_extents=1)
        ),
    )


VARIANTS = {
    "guests": guests,
    "maps": maps,
    "threads": threads,
    "pvfs": pvfs,
    "spindles": spindles,
    "windows": windows,
    "tree": tree,
    "profiles": profiles,
}


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name")
    (names,) = named(parser.parse_args().names, ("variant", list(VARIANTS)))
    for name in names:
        print(f"{name}: {VARIANTS[name].__doc__}")
        VARIANTS[name]()


if __name__ == "__main__":
    sys.exit(exit_code_of("variants.py", main))
