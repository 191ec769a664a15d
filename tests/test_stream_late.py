# SPDX-License-Identifier: GPL-2.0-only
"""stream_time_slice=auto with more work than can be done within the target: a turn pays its way."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from policy_driver import Driver

Core = tuple[Any, Any]

MS = 1_000_000
NEXT_MS, FAR_MS = 3.0, 15.0  # what the disk needs for what goes on at the head, and else
APART = 50_000_000  # sectors
LENGTH = 512
NR, EACH = 32, 8  # readers, and how many requests of each are outstanding


def owners_served(d: Driver) -> Iterator[Any]:
    """Readers who send the next request for each that is served; whose was served."""
    at = [n * APART for n in range(NR)]

    def send(owner: int) -> None:
        d.send(owner, at[owner], LENGTH)
        at[owner] += LENGTH

    for _, owner in itertools.product(range(EACH), range(NR)):
        send(owner)
    while True:
        rq = d.serve_when_chosen(NEXT_MS, FAR_MS)
        yield rq.owner
        d.later(0.01)
        send(rq.owner)


@pytest.mark.parametrize("inner", ("noop", "deadline", "cscan", "sptf"))
def test_who_is_late_goes_on_beside_others_who_are(core: Core, inner: str) -> None:
    """256 outstanding: not even without a seek would all be served in 500 ms."""
    assert NR * EACH * NEXT_MS > 500
    d = Driver(core, f"stream:{inner}", stream_time_slice=0)
    served = owners_served(d)
    while d.now < 5000:
        next(served)
    turns = [len(list(turn)) for _, turn in itertools.groupby(itertools.islice(served, 2000))]
    # As much time for what the turn is for as for its way there, or all that is late.
    assert sum(turns) / len(turns) >= FAR_MS / NEXT_MS
