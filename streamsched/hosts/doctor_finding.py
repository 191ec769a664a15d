# SPDX-License-Identifier: GPL-2.0-only
"""What `streamsched doctor` says of a machine."""

from __future__ import annotations

import dataclasses
import enum
import functools


class Level(enum.StrEnum):
    ok = "ok"
    note = "note"
    problem = "problem"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that was looked at. A problem has a command or an advice that mends it."""

    level: Level
    text: str
    command: str | None = None  # one line for a shell, as root
    advice: str | None = None  # one sentence; beside a command: what to do after it
    area: str = ""  # its check's in the table of doctor.py


ok = functools.partial(Finding, Level.ok)
note = functools.partial(Finding, Level.note)
problem = functools.partial(Finding, Level.problem)
