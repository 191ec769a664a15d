# SPDX-License-Identifier: GPL-2.0-only
"""Slow runs: how many at a time, and a bar that counts what is done, with the time so far."""

from __future__ import annotations

import os

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def counted(console: Console | None = None) -> Progress:
    """On @console it is for a terminal alone and goes when it is full; on none it is on standard
    error, and stays.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console or Console(stderr=True),
        transient=console is not None,
        disable=console is not None and not console.is_terminal,
    )


def nr_jobs(jobs: int) -> int:
    """What --jobs stands for."""
    return jobs or os.cpu_count() or 1
