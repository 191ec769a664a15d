# SPDX-License-Identifier: GPL-2.0-only
"""Slow runs: how many at a time, and a bar that counts what is done, with the time so far."""

from __future__ import annotations

import os

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streamsched.base.errors import UsageError

MOST_JOBS = 4096


def counted(console: Console | None = None) -> Progress:
    """On @console it is for a terminal alone and goes when it is full; on none it is on standard
    error, and stays.
    """
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console or Console(stderr=True),
        transient=console is not None,
        disable=console is not None and not console.is_terminal,
    )


def part_bars(console: Console) -> Progress:
    """Bars of what part is done, for tasks of a total of 1.0; for a terminal alone, and they go."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def nr_jobs(jobs: int) -> int:
    """What --parallel stands for; UsageError for more processes than any machine has room for."""
    if jobs > MOST_JOBS:
        raise UsageError(f"--parallel {jobs}: must be at most {MOST_JOBS}")
    return jobs or os.cpu_count() or 1
