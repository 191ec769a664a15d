# SPDX-License-Identifier: GPL-2.0-only
"""The command that chooses a real disk's scheduler."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from streamsched.base.errors import UsageError, printable
from streamsched.cli import complete
from streamsched.cli.options import argument, flag, given_options
from streamsched.cli.simoptions import GOAL_HELP
from streamsched.hosts.machine import Machine
from streamsched.sim.auto import Goal

MEASURES = "auto measures the disk's own work, and needs no"
# Options that it had, and what there is instead.
GONE = {
    "--model": f"{MEASURES} description; leave it out",
    "--profile": f"{MEASURES} profile; leave it out",
    "--queue-depth": f"{MEASURES} profile of some depth; leave it out",
    "--parallel": f"{MEASURES} simulations; leave it out",
    "--rule": "auto goes by what it measures; --goal says which figure decides",
    "--policy": "is --among now, with the kernel's names, as mq-deadline,stream",
    "--dry-run": "`streamsched measure` compares two schedulers, and then all is as before",
}


def _say(line: str) -> None:
    print(printable(line), flush=True)


def _note(line: str) -> None:
    print(f"streamsched: {printable(line)}", file=sys.stderr, flush=True)


def auto_(
    context: typer.Context,
    disk: Annotated[str, argument("DISK", "a disk, as sda", "A whole rotating disk, as sda.")],
    goal: Annotated[Goal, typer.Option("--goal", metavar="GOAL", help=GOAL_HELP)] = (
        Goal.throughput
    ),
    among: Annotated[
        str | None,
        typer.Option(
            "--among",
            metavar="LIST",
            autocompletion=complete.schedulers,
            help="Only these, comma-separated.",
            show_default="none, mq-deadline, bfq and stream, those that are loaded",
        ),
    ] = None,
    minutes: Annotated[
        float, typer.Option("--minutes", metavar="N", help="Of each comparison, 4 or more.")
    ] = 20,
    every: Annotated[
        float, typer.Option("--every", metavar="HOURS", help="From one choice to the next.")
    ] = 24,
    once: Annotated[
        bool, flag("--once", "Choose once, leave the disk so until the next boot, end.")
    ] = False,
    undo: Annotated[bool, flag("--undo", "Put back what there was before --once.")] = False,
) -> None:
    """Measure a disk's schedulers at its own work, and choose the best.

    Until it is stopped; then all is as before.
    """
    from streamsched.auto import service

    options = given_options(context)
    if undo:
        for option in options.keys() - {"--undo"}:
            raise UsageError(f"{option}: not with --undo, which only puts back what there was")
        service.undo(Machine(), disk, _say, _note)
        return
    if once and "--every" in options:
        raise UsageError("--every: not with --once")
    how = service.How(goal.value, among, minutes, every, once)
    service.choose(Machine(), disk, how, _say, _note)
