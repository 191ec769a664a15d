# SPDX-License-Identifier: GPL-2.0-only
"""Is `auto` as good as the best fixed policy? On each shipped job, and on all of them in turn.

Seelam et al. (OLS 2005, last part) propose the choice and show no result of it, so there is no
figure of theirs to compare with: the rows are this project's own aim. The best fixed policy is the
best of the profile's with which nobody waits longer than auto itself would allow, found by running
them all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich.console import Console

from streamsched.auto import obtain
from streamsched.choose import Choice, Selection
from streamsched.compare import Task, run_tasks
from streamsched.diskfile import Disk, load_disk
from streamsched.errors import Interrupted, unknown
from streamsched.jobfile import Process, load_jobs
from streamsched.policies import AUTO
from streamsched.profile import OWNERS, Profile
from streamsched.reproduce import PAPER_DISK, STREAM, job_path
from streamsched.results import plain_table
from streamsched.simulate import Run, Setup

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
    """One workload: what auto did, and the best fixed policy."""

    work: str
    owners: str
    best: str
    best_value: float  # MB/s; of the sequence 1 / s, for what counts there is the time
    auto_value: float
    size_value: float  # by the paper's rule: by size alone
    choices: tuple[Choice, ...]
    phases: int

    @property
    def ratio(self) -> float:
        """Of auto to the best."""
        return self.auto_value / self.best_value

    @property
    def changes(self) -> int:
        """Without what it began with."""
        return len(self.choices) - 1

    @property
    def holds(self) -> bool:
        """Within 5 %, with at most one change to a phase."""
        return self.ratio >= NEAR and self.changes <= self.phases


def sequence(disk: Disk) -> tuple[Process, ...]:
    """All jobs one after the other, each when the one before it is done."""
    return tuple(
        dataclasses.replace(process, stage=stage)
        for stage, job in enumerate(JOBS)
        for process in work_of(job, disk)
    )


def work_of(job: str, disk: Disk) -> list[Process]:
    """The processes of a shipped job."""
    return load_jobs(job_path(f"{job}.fio"), capacity_bytes=disk.capacity_sectors * 512)


def _value(run: Run, work: str) -> float:
    return 1 / run.seconds if work == SEQUENCE else run.mb_s


def check(profile: Profile, disk: Disk, jobs: int, console: Console) -> list[Row]:
    """Every job and the sequence, with owners visible and hidden, under all policies and auto."""
    works = {job: tuple(work_of(job, disk)) for job in JOBS}
    works[SEQUENCE] = sequence(disk)
    # By time, twice as many blocks are half the work: in the sequence all does a given amount.
    tasks, keys = [], []
    for owners in OWNERS:
        for work, processes in works.items():
            for spec in (*profile.policies, AUTO, "size"):
                selection = None
                if spec in (AUTO, "size"):
                    rule = "size" if spec == "size" else "workload"
                    selection = Selection(profile, owners, rule=rule)
                policy = AUTO if selection else spec
                setup = Setup(
                    disk,
                    policy,
                    owners=owners,
                    queue_depth=profile.queue_depth,
                    selection=selection,
                )
                tasks.append(Task(f"{work} {spec}", setup, processes))
                keys.append((owners, work, spec))
    found, interrupted = run_tasks(tasks, jobs, console, together="auto")
    if interrupted or not all(found):
        raise Interrupted("interrupted before there was a result")
    runs = {key: run for key, run in zip(keys, found, strict=True) if run}
    return [
        _row(profile, work, owners, runs) for owners in reversed(OWNERS) for work in works
    ]


def _row(
    profile: Profile, work: str, owners: str, runs: dict[tuple[str, str, str], Run]
) -> Row:
    limit = Selection(profile, owners).longest_wait_ms
    fixed = {spec: runs[owners, work, spec] for spec in profile.policies}
    bounded = {spec: run for spec, run in fixed.items() if run.wait.max <= limit}
    best = max(bounded or fixed, key=lambda spec: _value(fixed[spec], work))
    chosen = runs[owners, work, AUTO]
    return Row(
        work,
        owners,
        best,
        _value(fixed[best], work),
        _value(chosen, work),
        _value(runs[owners, work, "size"], work),
        chosen.choices,
        len(JOBS) if work == SEQUENCE else 1,
    )


def show(rows: Sequence[Row], console: Console) -> None:
    """The table, and what was chosen."""
    table = plain_table(
        f"auto and the best fixed policy, on {PAPER_DISK}; throughput, of the sequence 1 / time"
    )
    table.add_column("job", no_wrap=True)
    table.add_column("owners", no_wrap=True)
    table.add_column("best fixed", no_wrap=True)
    for column in ("auto\nto best", "by size\nto best", "changes", "at most"):
        table.add_column(column, justify="right")
    table.add_column("ends with", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        table.add_row(
            row.work,
            "hidden" if row.owners == "none" else "visible",
            row.best,
            f"{row.ratio:.3f}",
            f"{row.size_value / row.best_value:.3f}",
            str(row.changes),
            str(row.phases),
            row.choices[-1].policy,
            "holds" if row.holds else "FAILS",
        )
    console.print(table)
    console.print(
        f"{sum(row.holds for row in rows)} of {len(rows)} hold: within 5 % of the best fixed "
        "policy, at most one change for each job"
    )
