# SPDX-License-Identifier: GPL-2.0-only
"""The commands that give rotating disks the scheduler stream for good, and take it back."""

from __future__ import annotations

import sys
from typing import Annotated

from streamsched.base.errors import UsageError, printable
from streamsched.cli.options import argument, flag
from streamsched.hosts import enable as hosts_enable
from streamsched.hosts.machine import Machine

DisksArgument = Annotated[
    list[str] | None,
    argument(
        "DISK",
        "a disk or an array, as sda or /dev/md0",
        "Whole rotating disks, as sda, or arrays, as /dev/md0, with their members.",
    ),
]
AllOption = Annotated[
    bool, flag("--all", "All rotating disks, those that come later too, and arrays.")
]
DryRunOption = Annotated[bool, flag("--dry-run", "Say what would be changed, and change nothing.")]


def _names(disks: list[str] | None, every: bool) -> list[str]:
    if disks and every:
        raise UsageError(f"--all: stands for every disk; leave out {' '.join(disks)}")
    if not disks and not every:
        raise UsageError("name a disk, as sda, or give --all")
    return list(dict.fromkeys(disks or []))


def _say(line: str) -> None:
    print(printable(line), flush=True)


def _note(line: str) -> None:
    print(f"streamsched: note: {printable(line)}", file=sys.stderr)


def enable_(
    disks: DisksArgument = None, every: AllOption = False, dry_run: DryRunOption = False
) -> None:
    """Give rotating disks the scheduler stream for good."""
    hosts_enable.enable(Machine(), _names(disks, every), every, dry_run, _say, _note)


def disable_(
    disks: DisksArgument = None, every: AllOption = False, dry_run: DryRunOption = False
) -> None:
    """Give disks back what they had before `enable`."""
    hosts_enable.disable(Machine(), _names(disks, every), every, dry_run, _say)
