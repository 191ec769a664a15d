# SPDX-License-Identifier: GPL-2.0-only
"""Errors with a sentence for the user, and the exit code that goes with each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StreamschedError(Exception):
    """Something went wrong that is not a bug; the message is one clear sentence."""

    exit_code = 1


class UsageError(StreamschedError):
    """What the user gave is wrong; the message is one clear sentence."""

    exit_code = 2


class Interrupted(StreamschedError):
    """The user stopped it (Ctrl-C) before there was a result."""

    exit_code = 130


def unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}"
    return UsageError(f"unknown {what} {name!r}; {hint}")
