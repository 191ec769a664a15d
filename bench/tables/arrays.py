# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/results/kernel-arrays.md: five emulated disks under md, on the real kernel.

Sizes and distances of jobs are four times those of the job files, so that each of the five disks
has about what a disk by itself has. Real programs have what they have on one disk; where their data
is in several volumes, these lie four times as far from each other.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Sequence

from streamsched.base.errors import StreamschedError
from streamsched.hosts import rig
from streamsched.hosts.kernelhost import (
    ALONE_S,
    ARRAYS,
    FIO_WORK,
    KernelPolicy,
    boot,
    parse_policies,
)
from streamsched.sim.diskfile import load_disk
from streamsched.work.fio_write import Place, alone_text, job_text
from streamsched.work.jobfile import JobFile, parse_job_file
from tables import applications, kernel
from tables.common import Rigs, asked, document, write_into
from tables.kernel import FIO_JOBS, row_of, table_of
from tables.programs import DISK, QUEUE_DEPTH, Cell, Program, program_cell

DISKS = 5
LEVELS = ARRAYS
TOGETHER = "stream, coordinated"
SCHEDULERS = ("none", "mq-deadline", "bfq", "bfq:low_latency=0", "stream", TOGETHER)
SCALE = 4
# The trace of a request of an array, in those of a request of a disk.
TRACES = 3
PROGRAMS = {**kernel.PROGRAMS, "postmark": applications.PROGRAMS["postmark"]}


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
    return [
        {
            "bytes": job["read"]["io_bytes"] + job["write"]["io_bytes"],
            "seconds": job["job_runtime"] / 1e3,
            "p99_ms": job["read"]["clat_ns"]["percentile"]["99.000000"] / 1e6,
            "longest_ms": job["read"]["clat_ns"]["max"] / 1e6,
        }
        for job in json.loads(output[output.index("{") :])["jobs"]
    ]


def job_of(text: str, level: str) -> JobFile:
    """The job file @text on an array."""
    data_disks = DISKS - (level == "raid5")
    capacity = data_disks * load_disk(DISK).capacity_sectors * 512
    return parse_job_file(text, "one of the table", capacity_bytes=capacity)


def efficiency(clones: Sequence[dict[str, float]], alone: Sequence[dict[str, float]]) -> float:
    """See docs/sim/RESULTS.md: 1 if together they took as long as one after the other."""
    pairs = zip(clones, alone, strict=True)
    needed_s = sum(c["bytes"] * a["seconds"] / a["bytes"] for c, a in pairs)
    return needed_s / max(c["seconds"] for c in clones)


def job_cells(name: str, level: str) -> Callable[[str], Cell]:
    """What measures a job under a scheduler, against each process alone.

    Times are the processes' own, as fio has them.
    """
    file = rig.source_root() / "jobs" / "kernel" / f"{name}.fio"
    job = job_of(scaled(file.read_text()), level)
    each = [(process, process.io_bytes) for process in job.processes]
    alone = run(alone_text(each, Place(), ALONE_S), level, "none")

    def cell(scheduler: str) -> Cell:
        clones = run(job_text(job, Place()), level, scheduler)
        seconds = max(c["seconds"] for c in clones)
        return Cell(
            name,
            level,
            scheduler,
            sum(c["bytes"] for c in clones) / 1e6 / seconds,
            efficiency(clones, alone) if len(clones) > 1 else None,
            seconds,
            max(c["p99_ms"] for c in clones),
            max(c["longest_ms"] for c in clones),
        )

    return cell


def program_cells(name: str, level: str) -> Callable[[str], Cell]:
    """What measures real programs under a scheduler; times are those of the disks' requests."""
    program = PROGRAMS[name]
    program.check()
    variables, show = program.inside()
    inside = {"APART": str(SCALE), **variables}, show
    # Small files lie so that a block of parity often covers only one or two of theirs.
    parity_mb = program.disk_mb if program.disk_mb and level == "raid5" else 0
    program = dataclasses.replace(
        program,
        # Requests of the array are traced as well as those of its disks.
        trace_kib=TRACES * program.trace_kib,
        disk_mb=None if program.disk_mb is None else program.disk_mb + parity_mb,
        memory_mb=program.memory_mb + parity_mb,
    )

    def cell(scheduler: str) -> Cell:
        found = program_cell(
            name,
            program,
            level,
            policy_of(scheduler),
            inside,
            disks=DISKS,
            coordinated=scheduler == TOGETHER,
        )
        return dataclasses.replace(found, policy=scheduler)

    return cell


def measure(words: Sequence[str]) -> None:
    """What is named (workloads, levels, schedulers; nothing: all); each level when it is done."""
    (workloads, levels, schedulers), at_once = asked(
        "kernel-arrays",
        words,
        ("job or program", [*FIO_JOBS, *PROGRAMS]),
        ("level", LEVELS),
        ("scheduler", SCHEDULERS),
        at_once=1,
    )
    programs: dict[str, Program] = PROGRAMS
    order = [(level, scheduler) for level in LEVELS for scheduler in SCHEDULERS]
    rigs = Rigs(at_once, "array table", len(workloads) * len(levels) * len(schedulers))
    with rigs.progress:
        for name in workloads:
            table = table_of(name, programs, "level", order, "arrays ", "On arrays: ")
            for level in levels:
                cell = (program_cells if name in programs else job_cells)(name, level)
                rows = map(row_of, rigs.each(cell, schedulers))
                write_into(document("kernel-arrays"), table, rows)
