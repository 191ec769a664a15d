# SPDX-License-Identifier: GPL-2.0-only
"""What a workload looks like, from sums that the simulator gives (struct sim_observation)."""

from __future__ import annotations

import dataclasses
import math

# How often a host is to observe.
SAMPLE_S = 0.25


@dataclasses.dataclass(frozen=True)
class Observation:
    """Sums since some beginning."""

    now_s: float
    requests: int  # as senders sent them
    sent_bytes: int
    reads: int
    sync: int
    continuing: int
    near: int
    completed: int
    response_s: float  # of those, sum
    done_bytes: int


@dataclasses.dataclass(frozen=True)
class Looks:
    """Means over some time; shares are 0 to 1."""

    size_bytes: float
    reads: float
    outstanding: float  # sent and not yet done, mean; by Little's law
    sync: float
    continuing: float
    near: float

    def distance(self, other: Looks) -> float:
        """How different two workloads are. 1 is much: all of one's requests are in sequence."""
        total = 0.0
        for mine, theirs, weight in (
            (_octaves(self.size_bytes / 4096), _octaves(other.size_bytes / 4096), 0.12),
            (_queue(self.outstanding), _queue(other.outstanding), 0.25),
            (self.reads, other.reads, 0.8),
            (self.sync, other.sync, 0.4),
            (self.continuing, other.continuing, 1.0),
            (self.near, other.near, 0.7),
        ):
            total += (weight * (mine - theirs)) ** 2
        return math.sqrt(total)

    def __str__(self) -> str:
        return (
            f"requests of {self.size_bytes / 1024:.0f} KiB, {100 * self.reads:.0f} % reads, "
            f"{100 * self.continuing:.0f} % in sequence, {100 * self.near:.0f} % near others, "
            f"{self.outstanding:.1f} at once"
        )


def _octaves(ratio: float) -> float:
    return math.log2(max(ratio, 1 / 8))


def _queue(outstanding: float) -> float:
    """In octaves; beyond what a policy can look through, more makes no difference."""
    return math.log2(1 + min(outstanding, 64))


def between(then: Observation, now: Observation) -> Looks | None:
    """What came and went between two observations; None when nothing did."""
    requests, seconds = now.requests - then.requests, now.now_s - then.now_s
    if requests <= 0 or seconds <= 0:
        return None
    return Looks(
        size_bytes=(now.sent_bytes - then.sent_bytes) / requests,
        reads=(now.reads - then.reads) / requests,
        outstanding=(now.response_s - then.response_s) / seconds,
        sync=(now.sync - then.sync) / requests,
        continuing=(now.continuing - then.continuing) / requests,
        near=(now.near - then.near) / requests,
    )
