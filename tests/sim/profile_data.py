# SPDX-License-Identifier: GPL-2.0-only
"""A profile of few workloads, measured in a second or two, for tests that need a real one."""

from __future__ import annotations

import functools

from rich.console import Console

from streamsched.sim.diskfile import load_disk
from streamsched.sim.profile import Profile
from streamsched.sim.profile_measure import Part, measure

POLICIES = ("noop", "cscan", "deadline", "stream:deadline", "stream:linus")
GRID = [
    (Part("stream", 64, processes=4),),
    (Part("stream", 16, processes=4, buffered=True),),
    (Part("disk", 4, depth=32),),
    (Part("disk", 64, 50, processes=4),),
    (Part("region", 4, processes=4),),
    (Part("stream", 64, 0, processes=2),),
]


@functools.cache
def small_profile(disk: str = "wd5000aaks", queue_depth: int = 1) -> Profile:
    """Of @disk, with owners visible and hidden."""
    return measure(
        load_disk(disk),
        POLICIES,
        queue_depth=queue_depth,
        grid=GRID,
        jobs=1,
        console=Console(stderr=True, quiet=True),
    )
