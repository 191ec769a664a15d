# SPDX-License-Identifier: GPL-2.0-only
"""Is `auto` as good as the best fixed policy? On each shipped job, and on all of them in turn.

Seelam et al. (OLS 2005, last part) propose the choice and show no result of it, so there is no
figure of theirs to compare with: the rows are this project's own aim. The best fixed policy is the
best of the profile's with which nobody waits longer than auto allows, found by running them all.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

from rich.console import Console

from streamsched.base.errors import Interrupted
from streamsched.sim.auto import obtain
from streamsched.sim.choose import Selection
from streamsched.sim.chooser import Choice
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.experiment import PAPER_DISK
from streamsched.sim.policies import AUTO
from streamsched.sim.profile import OWNERS, Profile
from streamsched.sim.results import plain_table, widen
from streamsched.sim.simulate import Run, Setup
from streamsched.sim.tasks import Task, run_tasks
from streamsched.sim.workloads import job_path
from streamsched.work.jobfile import load_jobs
from streamsched.work.process import Process

JOBS = (
    "par-read",
    "two-greps",
    "postmark",
    "tpc-h",
    "random-disk",
    "random-regions",
    "direct-readers",
    "writes-starving-reads",
    "mixed",
    "proportional-share",
)
SEQUENCE = "all in turn"
NEAR = 0.95  # of the best fixed policy


@dataclasses.dataclass(frozen=True)
class Row:
    """One workload, or one phase of the sequence: what auto did, and the best fixed policy."""

    work: str
    owners: str
    best: str
    best_mb_s: float
    auto_mb_s: float
    size_mb_s: float  # by the paper's rule: by size alone
    choices: tuple[Choice, ...]  # what it began with, then each change
    phases: int = 1

    @property
    def ratio(self) -> float:
        """Of auto to the best."""
        return self.auto_mb_s / self.best_mb_s

    @property
    def changes(self) -> int:
        """Without what it began with."""
        return len(self.choices) - 1

    @property
    def holds(self) -> bool:
        """Within 5 %, with at most one change to a phase."""
        return self.ratio >= NEAR and self.changes <= self.phases


def work_of(job: str, disk: Disk) -> tuple[Process, ...]:
    """The processes of a shipped job."""
    return tuple(load_jobs(job_path(f"{job}.fio"), capacity_bytes=disk.capacity_sectors * 512))


def sequence(disk: Disk) -> tuple[Process, ...]:
    """All jobs one after the other, each when the one before it is done."""
    return tuple(
        dataclasses.replace(process, stage=stage)
        for stage, job in enumerate(JOBS)
        for process in work_of(job, disk)
    )


@dataclasses.dataclass(frozen=True)
class Phase:
    """A job's part of the sequence."""

    begin_s: float
    end_s: float
    mb_s: float


def phases_of(run: Run, disk: Disk) -> list[Phase]:
    """The sequence taken apart; the processes of a job begin together."""
    jobs, at = list(run.jobs), 0.0
    found = []
    for job in JOBS:
        nr = len(work_of(job, disk))
        mine, jobs = jobs[:nr], jobs[nr:]
        seconds = max(one.duration_ns for one in mine) / 1e9
        found.append(Phase(at, at + seconds, sum(one.bytes for one in mine) / 1e6 / seconds))
        at += seconds
    return found


# ---- running ----

BY_SIZE = "auto by size"
Runs = dict[tuple[str, str, str], Run]  # owners, work, policy


def _setup(profile: Profile, disk: Disk, owners: str, spec: str) -> Setup:
    setup = Setup(disk, spec, owners=owners, queue_depth=profile.queue_depth)
    if spec not in (AUTO, BY_SIZE):
        return setup
    rule = "size" if spec == BY_SIZE else "workload"
    return dataclasses.replace(setup, policy=AUTO, selection=Selection(profile, owners, rule=rule))


def run_all(
    profile: Profile,
    disk: Disk,
    works: dict[str, tuple[Process, ...]],
    owners: Sequence[str],
    jobs: int,
    console: Console,
) -> Runs:
    """Every work under every policy of the profile and under auto, by both rules."""
    keys = list(itertools.product(owners, works, (*profile.policies, AUTO, BY_SIZE)))
    tasks = [
        Task(f"{work} {spec}", _setup(profile, disk, whose, spec), works[work])
        for whose, work, spec in keys
    ]
    found, interrupted = run_tasks(tasks, jobs, console, together=AUTO)
    if interrupted or not all(found):
        raise Interrupted("interrupted before there was a result")
    return {key: run for key, run in zip(keys, found, strict=True) if run}


def _bounded(profile: Profile, runs: dict[str, Run]) -> list[str]:
    """The fixed policies with which nobody waits longer than auto would allow."""
    limit = Selection(profile, "none").longest_wait_ms
    found = [
        spec
        for spec in profile.policies
        if max(job.longest_wait_ns for job in runs[spec].jobs) <= limit * 1e6
    ]
    return found or list(profile.policies)


def row(profile: Profile, work: str, owners: str, runs: dict[str, Run]) -> Row:
    """Of one job, by what each policy made of it."""
    best = max(_bounded(profile, runs), key=lambda spec: runs[spec].mb_s)
    return Row(
        work,
        owners,
        best,
        runs[best].mb_s,
        runs[AUTO].mb_s,
        runs[BY_SIZE].mb_s,
        runs[AUTO].choices,
    )


def sequence_rows(
    profile: Profile, disk: Disk, owners: str, runs: dict[str, Run], bounded: list[list[str]]
) -> list[Row]:
    """Of the sequence as a whole, then of each phase; @bounded are each job's fixed policies."""
    phases = {spec: phases_of(run, disk) for spec, run in runs.items()}
    means = {
        spec: math.exp(sum(math.log(one.mb_s) for one in mine) / len(mine))
        for spec, mine in phases.items()
    }
    # Who keeps somebody waiting in one of the phases is no choice for all of them.
    fit = [spec for spec in profile.policies if all(spec in one for one in bounded)]
    best = max(fit or profile.policies, key=lambda spec: means[spec])
    choices = runs[AUTO].choices
    rows = [
        Row(
            SEQUENCE,
            owners,
            best,
            means[best],
            means[AUTO],
            means[BY_SIZE],
            choices,
            len(JOBS),
        )
    ]
    for index, job in enumerate(JOBS):
        mine = phases[AUTO][index]
        best = max(bounded[index], key=lambda spec: phases[spec][index].mb_s)
        before = [one for one in choices if one.at_s <= mine.begin_s][-1:] or choices[:1]
        rows.append(
            Row(
                f"  {job}",
                owners,
                best,
                phases[best][index].mb_s,
                mine.mb_s,
                phases[BY_SIZE][index].mb_s,
                (*before, *(one for one in choices if mine.begin_s < one.at_s <= mine.end_s)),
            )
        )
    return rows


def check(profile: Profile, disk: Disk, jobs: int, console: Console) -> list[Row]:
    """Every job and the sequence, with owners hidden and visible."""
    works = {job: work_of(job, disk) for job in JOBS} | {SEQUENCE: sequence(disk)}
    runs = run_all(profile, disk, works, OWNERS, jobs, console)
    rows = []
    for owners in reversed(OWNERS):
        by_work: dict[str, dict[str, Run]] = {work: {} for work in works}
        for (whose, work, spec), run in runs.items():
            if whose == owners:
                by_work[work][spec] = run
        rows += [row(profile, job, owners, by_work[job]) for job in JOBS]
        bounded = [_bounded(profile, by_work[job]) for job in JOBS]
        rows += sequence_rows(profile, disk, owners, by_work[SEQUENCE], bounded)
    return rows


def show(rows: Sequence[Row], console: Console) -> None:
    """The table, and how many hold."""
    table = plain_table(
        f"auto to the best fixed policy, MB/s, on {PAPER_DISK}; the sequence by its geometric mean"
    )
    table.add_column("job", no_wrap=True)
    table.add_column("owners", no_wrap=True)
    table.add_column("best fixed", no_wrap=True)
    table.add_column("MB/s", justify="right")
    for column in ("auto\nto it", "by size\nto it", "changes", "at most"):
        table.add_column(column, justify="right")
    table.add_column("auto ends with", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in rows:
        table.add_row(
            one.work,
            "hidden" if one.owners == "none" else "visible",
            one.best,
            f"{one.best_mb_s:.2f}",
            f"{one.ratio:.3f}",
            f"{one.size_mb_s / one.best_mb_s:.3f}",
            str(one.changes),
            str(one.phases),
            one.choices[-1].policy,
            "holds" if one.holds else "FAILS",
        )
    widen(console, table).print(table)
    console.print(
        f"{sum(one.holds for one in rows)} of {len(rows)} hold: within 5 % of the best fixed "
        "policy, at most one change for each job"
    )


def reproduce_auto(jobs: int, console: Console) -> bool:
    """Print the table; True when all rows hold."""
    progress = Console(stderr=True)
    disk = load_disk(PAPER_DISK)
    profile = obtain(disk, 1, None, jobs, progress)
    rows = check(profile, disk, jobs, progress)
    show(rows, console)
    return all(one.holds for one in rows)
