# SPDX-License-Identifier: GPL-2.0-only
"""What run, replay and report have in common on the command line."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from streamsched.base.errors import UsageError, printable
from streamsched.base.files import mode_of


def check_apart(outputs: Mapping[str, Path | None]) -> None:
    """Refuse two outputs, by the options that name them, into one file."""
    given = [(option, path) for option, path in outputs.items() if path is not None]
    for (one, first), (other, second) in itertools.combinations(given, 2):
        if os.path.realpath(first) == os.path.realpath(second) or (
            mode_of(first) and mode_of(second) and first.samefile(second)
        ):
            what = "where the results go" if one == "--to" else "another output"
            raise UsageError(f"{other} {second}: is {what} ({one}); name two files")


def note(text: str) -> None:
    """Say what may surprise."""
    print(f"streamsched: note: {printable(text)}", file=sys.stderr)


def say(notes: Iterable[str]) -> None:
    """Each of @notes."""
    for one in notes:
        note(one)
