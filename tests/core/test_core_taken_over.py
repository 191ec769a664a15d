# SPDX-License-Identifier: GPL-2.0-only
"""What one scheduler had pending, another takes over: nothing becomes younger by that."""

from __future__ import annotations

import pytest
from policy_driver import FAR, Driver

MS = 1_000_000
EXPIRING = {
    "deadline": {"read_expire": 500 * MS, "fifo_batch": 1},
    "sptf": {"age_limit": 500 * MS},
}


def hand_over(d: Driver, spec: str, **tunables: int) -> Driver:
    """All that is pending in @d, oldest first, goes to a new scheduler."""
    fresh = Driver(spec, **tunables)
    fresh.now_ns = d.now_ns
    fresh.sched.head_sector = d.sched.head_sector
    for rq in d.pending:
        fresh.lib.ss_sched_taken_over(fresh.sched, rq, fresh.now_ns)
        fresh.pending.append(rq)
    fresh.keep = d.keep
    return fresh


@pytest.mark.parametrize("inner", EXPIRING)
@pytest.mark.parametrize("wrapper", ["", "stream:"])
def test_an_old_request_expires_when_it_would_have(wrapper: str, inner: str) -> None:
    """At 400 of 500 ms it changes the scheduler; 100 ms later it goes first, not before."""
    for after, late in ((99, False), (100, True)):
        d = Driver("noop")
        first, old = d.send(0, 0), d.send(0, FAR)
        d = hand_over(d.at(400), wrapper + inner, **EXPIRING[inner])
        near = d.send(0, 1_000_000)
        d.serve(first, ms=0)
        d.later(after).dispatch(old if late else near)
        assert (old.arrival_ns, old.expires_ns) == (0, 500 * MS)


def test_all_are_counted_and_served() -> None:
    d = Driver("stream:deadline")
    for i in range(10):
        d.at(i).send(0, i * 1000, write=i % 2 == 0)
    fresh = hand_over(d.at(50), "stream:sptf")
    assert [rq.arrival_ns for rq in fresh.pending] == [i * MS for i in range(10)]
    while fresh.pending:
        fresh.wait().serve()
    assert fresh.count("arrivals") == fresh.count("completions") == 10
