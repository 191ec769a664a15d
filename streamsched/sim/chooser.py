# SPDX-License-Identifier: GPL-2.0-only
"""Who changes the scheduler while the simulator runs: what the simulator asks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from streamsched.work.looks import Observation


@dataclass(frozen=True)
class Choice:
    """One change of the scheduler, or what it began with."""

    at_s: float
    policy: str
    why: str


class Chooser(Protocol):
    """Of one run."""

    current: str

    @property
    def first(self) -> Choice:
        """What the run begins with."""

    def observe(self, seen: Observation) -> Choice | None:
        """Told of the workload each SAMPLE_S; another scheduler now and then."""


class Selection(Protocol):
    """How to choose."""

    def begin(self) -> Chooser:
        """For one run of one disk."""
