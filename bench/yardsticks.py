# SPDX-License-Identifier: GPL-2.0-only
"""The yardsticks of the field: docs/results/yardsticks.md (`make results WHAT=yardsticks`).

Each is a job of jobs/yardsticks/ with a figure that others have reported of real disks, on several
of ours and under several policies, owners hidden. A figure is a part of a rate alone, so that it
does not depend on how fast the disk is.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

from rich.console import Console

from streamsched.base.errors import UsageError, exit_code_of
from streamsched.base.files import Target, write_whole
from streamsched.base.progress import nr_jobs
from streamsched.hosts.rig import source_root
from streamsched.sim.compare import Comparison, compare
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Run, Setup
from streamsched.work.jobfile import load_job_file

POLICIES = ("noop", "deadline", "cfq", "stream:deadline")
# Disk and how many commands it holds.
DISKS = (("st2000dm006", 32), ("exos-x18", 32), ("st2000dm006", 1))


@dataclasses.dataclass(frozen=True)
class Yardstick:
    """A job, what is looked at in it, and what others measured of the same."""

    job: str
    about: str
    process: str | None  # its share; None: all processes' rate, as a part of one's alone
    reported: str


YARDSTICKS = (
    Yardstick(
        "ten-readers",
        "Ten readers at once: the rate of all, as a part of that of one alone.",
        None,
        "Reported: 0.68 on a disk with NCQ, 0.25 on one behind USB without.",
    ),
    Yardstick(
        "restic-check",
        "Five readers of whole packs in no order: the rate of all, as a part of that of one alone.",
        None,
        "Reported: 6 MB/s where one reader has 35, 0.17, on a disk behind USB 3\n"
        "(restic, issue 1763).",
    ),
    Yardstick(
        "scrub",
        "One 4 KiB read at a time beside a scrub: the reader's rate, as a part of its rate alone.",
        "reader",
        "Reported: 22 of 166 reads/s, 0.13; 73, 0.44, with ZFS's own guard\n"
        "(OpenZFS, pull request 11166).",
    ),
)


def figure(yardstick: Yardstick, comparison: Comparison, run: Run) -> float | None:
    """What the yardstick asks for, of one run."""
    if yardstick.process is None:
        alone = comparison.alone_rate(run, 0)
        return run.mb_s * 1e6 / alone if alone else None
    names = [job.name for job in run.jobs]
    return comparison.share(run, names.index(yardstick.process))


def measured(yardstick: Yardstick, disk_name: str, depth: int, jobs: int) -> Comparison:
    """One yardstick on one disk, under each policy."""
    disk = load_disk(disk_name)
    path = source_root() / "jobs" / "yardsticks" / f"{yardstick.job}.fio"
    processes = load_job_file(str(path), capacity_bytes=disk.capacity_sectors * 512).processes
    setups = [Setup(disk, policy, owners="none", queue_depth=depth) for policy in POLICIES]
    return compare(setups, processes, jobs=jobs, console=Console(stderr=True))


def table(yardstick: Yardstick, jobs: int) -> str:
    """A section of the document."""
    lines = [
        f"## {yardstick.job}",
        "",
        yardstick.about,
        yardstick.reported,
        "",
        "| disk | commands | policy | figure | least share | worst p99, ms |",
        "|---|---|---|---|---|---|",
    ]
    for disk, depth in DISKS:
        comparison = measured(yardstick, disk, depth, jobs)
        for run in comparison.runs:
            value, least = figure(yardstick, comparison, run), comparison.least_share(run)
            cells = ["-" if one is None else f"{one:.2f}" for one in (value, least)]
            worst = max(job.response.p99 for job in run.jobs)
            lines.append(
                f"| {disk} | {depth} | {run.setup.policy} | {cells[0]} | {cells[1]} | {worst:.0f} |"
            )
    return "\n".join(lines) + "\n"


HEAD = """<!-- SPDX-License-Identifier: GPL-2.0-only -->
# Yardsticks

Written by `make results WHAT=yardsticks`; do not edit. Each is a job of jobs/yardsticks/, in
the simulator, with owners hidden. *Least share* is the smallest share times the number of
processes (1.0: an equal part for each). *Worst p99* is that of the process that waited longest.

"""


def write(arguments: Sequence[str]) -> None:
    """Measure all, and write the document."""
    if arguments:
        raise UsageError("takes no arguments")
    jobs = nr_jobs(0)
    document = source_root() / "docs" / "results" / "yardsticks.md"
    sections = "\n".join(table(one, jobs) for one in YARDSTICKS)
    write_whole(Target(document, replace=True), HEAD + sections)


def main(arguments: Sequence[str]) -> int:
    """What `bench/yardsticks.py` does."""
    return exit_code_of("yardsticks", lambda: write(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
