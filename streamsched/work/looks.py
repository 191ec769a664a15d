# SPDX-License-Identifier: GPL-2.0-only
"""What a workload looks like, from sums that a host reads now and then.

The simulator gives them (struct sim_observation), and the kernel: /sys/block/DEVICE/stat, and for
places the tracepoint block_bio_queue by way of core/workload.c.
"""

from __future__ import annotations

import dataclasses
import math

# How often a host is to observe.
SAMPLE_S = 0.25


@dataclasses.dataclass(frozen=True)
class Observation:
    """Sums since some beginning; None where the host cannot know."""

    now_s: float
    requests: int  # as senders sent them
    sent_bytes: int
    reads: int
    sync: int | None
    continuing: int | None
    near: int | None
    completed: int
    response_s: float  # of those, sum
    done_bytes: int


@dataclasses.dataclass(frozen=True)
class Looks:
    """Means over some time; shares are 0 to 1."""

    size_bytes: float
    reads: float
    outstanding: float  # sent and not yet done, mean; by Little's law
    sync: float | None = None
    continuing: float | None = None
    near: float | None = None

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
            if mine is not None and theirs is not None:
                total += (weight * (mine - theirs)) ** 2
        return math.sqrt(total)

    def __str__(self) -> str:
        parts = [f"requests of {self.size_bytes / 1024:.0f} KiB", f"{100 * self.reads:.0f} % reads"]
        if self.continuing is not None and self.near is not None:
            parts += [
                f"{100 * self.continuing:.0f} % in sequence",
                f"{100 * self.near:.0f} % near others",
            ]
        return ", ".join([*parts, f"{self.outstanding:.1f} at once"])


def _octaves(ratio: float) -> float:
    return math.log2(max(ratio, 1 / 8))


def _queue(outstanding: float) -> float:
    """In octaves; beyond what a policy can look through, more makes no difference."""
    return math.log2(1 + min(outstanding, 64))


def _share(now: int | None, then: int | None, of: int) -> float | None:
    return None if now is None or then is None else (now - then) / of


def between(then: Observation, now: Observation) -> Looks | None:
    """What came and went between two observations; None when nothing did."""
    requests, seconds = now.requests - then.requests, now.now_s - then.now_s
    if requests <= 0 or seconds <= 0:
        return None
    return Looks(
        size_bytes=(now.sent_bytes - then.sent_bytes) / requests,
        reads=(now.reads - then.reads) / requests,
        outstanding=(now.response_s - then.response_s) / seconds,
        sync=_share(now.sync, then.sync, requests),
        continuing=_share(now.continuing, then.continuing, requests),
        near=_share(now.near, then.near, requests),
    )
