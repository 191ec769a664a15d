# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/results/kernel-arrays.md: five emulated disks under md, on the real kernel.

`python -m streamsched.hosts.arraytable` measures it all anew, or the jobs, programs, levels and
schedulers that are named, and writes it. Sizes and distances of jobs are four times those of the
job files, so that each of the five disks has about what a disk by itself has. Real programs have
what they have on one disk; where their data is in several volumes, these lie four times as far
from each other.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from streamsched.base.errors import StreamschedError, exit_code_of, named
from streamsched.base.files import Target, write_whole
from streamsched.base.progress import counted
from streamsched.hosts import kerneltable, rig
from streamsched.hosts.applications import APPLICATIONS, Application
from streamsched.hosts.kernelhost import (
    ALONE_S,
    ARRAYS,
    FIO_WORK,
    KernelPolicy,
    boot,
    parse_policies,
)
from streamsched.hosts.kerneltable import (
    DISK,
    FIO_JOBS,
    QUEUE_DEPTH,
    Cell,
    program_cell,
    source_tree,
    table_of,
    with_rows,
)
from streamsched.sim.diskfile import load_disk
from streamsched.work.fio_write import Place, alone_text, job_text
from streamsched.work.jobfile import JobFile, parse_job_file

DISKS = 5
LEVELS = ARRAYS
TOGETHER = "stream, coordinated"
SCHEDULERS = ("none", "mq-deadline", "bfq", "bfq:low_latency=0", "stream", TOGETHER)
SCALE = 4
# The trace of a request of an array, in those of a request of a disk.
TRACES = 3


# Real programs; those of docs/results/kernel.md, and one of docs/results/applications.md.
PROGRAMS = {
    **{name: Application(program, ()) for name, program in kerneltable.PROGRAMS.items()},
    "postmark": APPLICATIONS["postmark"],
}


def scaled(text: str) -> str:
    """The job file's @text with SCALE times its sizes and distances."""

    def more(found: re.Match[str]) -> str:
        return f"{found[1]}={int(found[2]) * SCALE}{found[3]}"

    return re.sub(r"^(size|io_size|offset_increment)=(\d+)([a-z]*)$", more, text, flags=re.M)


def policy_of(scheduler: str) -> KernelPolicy:
    """Of each member."""
    [policy] = parse_policies("stream" if scheduler == TOGETHER else scheduler)
    return policy


def run(text: str, level: str, scheduler: str) -> list[dict[str, float]]:
    """The job file @text on a fresh array: for each clone bytes, seconds, p99 and longest in ms."""
    result = boot(
        load_disk(DISK),
        policy_of(scheduler),
        FIO_WORK,
        path=level,
        disks=DISKS,
        coordinated=scheduler == TOGETHER,
        queue_depth=QUEUE_DEPTH,
        files={"job.fio": text},
    )
    if complaints := result.complaints():
        raise StreamschedError(f"{level}, {scheduler}: the kernel complained: {complaints[0]}")
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


def job_of(text: str, level: str) -> JobFile:
    """The job file @text on an array."""
    data_disks = DISKS - (level == "raid5")
    capacity = data_disks * load_disk(DISK).capacity_sectors * 512
    return parse_job_file(text, "one of the table", capacity_bytes=capacity)


def efficiency(clones: Sequence[dict[str, float]], alone: Sequence[dict[str, float]]) -> float:
    """See docs/RESULTS.md: 1 if together they took as long as one after the other."""
    pairs = zip(clones, alone, strict=True)
    needed_s = sum(c["bytes"] * a["seconds"] / a["bytes"] for c, a in pairs)
    return needed_s / max(c["seconds"] for c in clones)


def cells(job: str, level: str, schedulers: Sequence[str], done: Callable[[], None]) -> list[Cell]:
    """@job under each of @schedulers, against each process alone; @done after each.

    Times are the processes' own, as fio has them.
    """
    file = rig.source_root() / "jobs" / "kernel" / f"{job}.fio"
    read = job_of(scaled(file.read_text()), level)
    each = [(process, process.io_bytes) for process in read.processes]
    alone = run(alone_text(each, Place(), ALONE_S), level, "none")
    found = []
    for scheduler in schedulers:
        clones = run(job_text(read, Place()), level, scheduler)
        found.append(
            Cell(
                job,
                level,
                scheduler,
                _rate(clones),
                efficiency(clones, alone) if len(clones) > 1 else None,
                max(c["seconds"] for c in clones),
                max(c["p99_ms"] for c in clones),
                max(c["longest_ms"] for c in clones),
            )
        )
        done()
    return found


def program_cells(
    name: str,
    application: Application,
    level: str,
    schedulers: Sequence[str],
    done: Callable[[], None] = lambda: None,
) -> list[Cell]:
    """Real programs under each of @schedulers; @done after each.

    Times are those of the disks' requests.
    """
    application.check()
    variables, show = application.set_up()
    # See _VOLUMES of applications.py.
    variables = {"TREE": str(source_tree()), "APART": str(SCALE), **variables}
    head = "".join(f"{key}={shlex.quote(value)}\n" for key, value in variables.items())
    program = application.program
    # Requests of the array are traced as well as those of its disks.
    program = dataclasses.replace(program, trace_kib=TRACES * program.trace_kib)
    if program.disk_mb is not None and level == "raid5":
        # Small files lie so that a block of parity often covers only one or two of theirs.
        parity_mb = program.disk_mb
        program = dataclasses.replace(
            program,
            disk_mb=program.disk_mb + parity_mb,
            memory_mb=program.memory_mb + parity_mb,
        )
    found = []
    for scheduler in schedulers:
        cell = program_cell(
            name,
            program,
            level,
            load_disk(DISK),
            policy_of(scheduler),
            head,
            show,
            disks=DISKS,
            coordinated=scheduler == TOGETHER,
        )
        found.append(dataclasses.replace(cell, policy=scheduler))
        done()
    return found


def write_into(document: Path, found: Sequence[Cell]) -> None:
    """Put the rows that were measured where they belong, and leave the others as they are."""
    name = found[0].workload
    rows = [f"| {level} | {scheduler} |" for level in LEVELS for scheduler in SCHEDULERS]
    program = PROGRAMS[name].program if name in PROGRAMS else None
    new = table_of(found, program, "level", "On arrays: ").splitlines()
    text = with_rows(document.read_text(), f"arrays {name}", new, rows)
    write_whole(Target(document, replace=True), text)


def table(arguments: Sequence[str]) -> None:
    """Measure what is named (workloads, levels, schedulers; nothing: all) into docs/results/."""
    workloads, levels, schedulers = named(
        arguments,
        ("job or program", [*FIO_JOBS, *PROGRAMS]),
        ("level", LEVELS),
        ("scheduler", SCHEDULERS),
    )
    rig.build()
    rig.build_modules()
    document = rig.source_root() / "docs" / "results" / "kernel-arrays.md"
    with counted() as progress:
        total = len(workloads) * len(levels) * len(schedulers)
        task = progress.add_task("array table", total=total)

        def tell() -> None:
            progress.advance(task)

        for name in workloads:
            for level in levels:
                if name in PROGRAMS:
                    found = program_cells(name, PROGRAMS[name], level, schedulers, tell)
                else:
                    found = cells(name, level, schedulers, tell)
                write_into(document, found)


def main(arguments: Sequence[str]) -> int:
    """What `python -m streamsched.hosts.arraytable` does."""
    return exit_code_of("array-table", lambda: table(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
