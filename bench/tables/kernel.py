# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/results/kernel.md: the kernel's schedulers and ours, on the real kernel.

Jobs of jobs/kernel/, and real programs (grep, cat, find) on ext4: straight on the emulated disk,
through a loop device and through dm-crypt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from streamsched.hosts import rig
from streamsched.hosts.kernelhost import KernelPolicy, compare_on_kernel
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import NS
from streamsched.work.jobfile import load_job_file
from tables.common import EVERY, Rigs, Row, Table, asked, document, write_into
from tables.programs import DISK, QUEUE_DEPTH, Cell, Program, program_cell

PATHS = ("direct", "loop", "crypt")
FIO_JOBS = {
    "buffered-readers": "four buffered readers",
    "direct-readers": "four readers, 64 KiB direct",
    "thinking-readers": "the same with 0.5 ms of think time",
    "random-regions": "four at random, 4 KiB in 1 GB regions",
    "random-disk": "4 KiB at random over the disk, 32 at once",
}
PROGRAMS = {
    "two-greps": Program(
        "two greps over a source tree",
        "both greps",
        "prepare_two_greps",
        "grep_both /run/fs/a/tree /run/fs/b/tree",
    ),
    "love-1": Program(
        "streaming write, 200 MB read",
        "reading 200 MB",
        "prepare_love",
        "beside write cat /run/fs/b/file200",
        "writer",
    ),
    "love-2": Program(
        "streaming read, source tree read",
        "reading the tree",
        "prepare_love",
        "beside read find /run/fs/a/tree -type f -exec cat {} +",
        "streaming reader",
    ),
}
# Jobs of jobs/kernel/ whose last process is the one in front.
STARTS = {
    "program-start": Program(
        "a program's start beside ten readers", "starting", "", "", "readers together"
    ),
}


def fio_cells(name: str, path: str, policies: Sequence[KernelPolicy], jobs: int) -> list[Cell]:
    """A job of jobs/kernel/ under every scheduler."""
    disk = load_disk(DISK)
    file = rig.source_root() / "jobs" / "kernel" / f"{name}.fio"
    job = load_job_file(file, capacity_bytes=disk.capacity_sectors * 512)
    comparison = compare_on_kernel(
        job, disk, policies, path=path, queue_depth=QUEUE_DEPTH, jobs=jobs
    )
    cells = [
        Cell(
            name,
            path,
            run.setup.policy,
            run.mb_s,
            comparison.efficiency(run),
            run.seconds,
            run.response.p99,
            run.response.max,
        )
        for run in comparison.runs
    ]
    if name not in STARTS:
        return cells
    return [
        dataclasses.replace(
            cell,
            seconds=run.jobs[-1].duration_ns / NS,
            background_mb_s=sum(job.rate for job in run.jobs[:-1]) / 1e6,
        )
        for cell, run in zip(cells, comparison.runs, strict=True)
    ]


def cells_of(
    workload: str, path: str, policies: Sequence[KernelPolicy], rigs: Rigs
) -> Iterable[Cell]:
    """Any workload under every scheduler."""
    if workload in PROGRAMS:
        return rigs.each(
            lambda policy: program_cell(workload, PROGRAMS[workload], path, policy), policies
        )
    cells = fio_cells(workload, path, policies, rigs.at_once)
    rigs.done(len(policies))
    return cells


def row_of(cell: Cell) -> Row:
    """In the table of its workload."""
    if cell.workload in FIO_JOBS:
        efficiency = "" if cell.efficiency is None else f"{cell.efficiency:.3f}"
        middle = [f"{cell.mb_s:.2f}", efficiency]
    else:
        background = cell.background_mb_s
        streamed = [] if background is None else [f"{background:.1f}"]
        middle = [f"{cell.seconds:.2f}", *streamed, f"{cell.mb_s:.1f}"]
    return (cell.path, cell.policy, *middle, f"{cell.p99_ms:.1f}", f"{cell.longest_ms:.1f}")


def table_of(
    workload: str,
    programs: dict[str, Program],
    what: str,
    order: Sequence[Row],
    mark: str = "",
    title: str = "",
) -> Table:
    """One workload's table; @what: what a cell's path is called. @mark and @title begin its own."""
    if program := programs.get(workload):
        own = program.title
        streamed = [f"{program.background}, MB/s"] if program.background else []
        measured = [f"{program.foreground}, s", *streamed, "disk MB/s"]
    else:
        own = FIO_JOBS[workload]
        measured = ["MB/s", "efficiency"]
    heading = title + own if title else own[0].upper() + own[1:]
    figures = (*measured, "p99 ms", "longest ms")
    return Table(mark + workload, (what, "scheduler"), figures, order, (f"## {heading}", ""))


def measure(words: Sequence[str]) -> None:
    """What is named (workloads, paths, schedulers; nothing: all); each table when it is done."""
    (workloads, paths, schedulers), at_once = asked(
        "kernel",
        words,
        ("workload", [*FIO_JOBS, *STARTS, *PROGRAMS]),
        ("path", PATHS),
        ("scheduler", EVERY),
    )
    policies = [EVERY[name] for name in schedulers]
    order = [(path, scheduler) for path in PATHS for scheduler in EVERY]
    rigs = Rigs(at_once, "kernel table", len(workloads) * len(paths) * len(policies))
    with rigs.progress:
        for workload in workloads:
            table = table_of(workload, STARTS | PROGRAMS, "path", order)
            for path in paths:
                rows = map(row_of, cells_of(workload, path, policies, rigs))
                write_into(document("kernel"), table, rows)
