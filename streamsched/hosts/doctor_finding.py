# SPDX-License-Identifier: GPL-2.0-only
"""What `streamsched doctor` says of a machine."""

from __future__ import annotations

import dataclasses
import enum


class Level(enum.StrEnum):
    ok = "ok"
    note = "note"
    problem = "problem"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that was looked at. A problem has a command or an advice that mends it."""

    area: str
    level: Level
    text: str
    command: str | None = None  # one line for a shell, as root
    advice: str | None = None  # one sentence; beside a command: what to do after it
