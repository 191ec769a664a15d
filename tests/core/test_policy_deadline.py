# SPDX-License-Identifier: GPL-2.0-only
"""deadline with batch_over_gaps=0, as Linux 2.6.9's."""

from __future__ import annotations

import pytest
from policy_driver import Driver


@pytest.fixture
def d() -> Driver:
    return Driver("deadline", batch_over_gaps=0)


def order(d: Driver) -> str:
    """All that is pending as it is sent: r10 w20 for a read at 10 and a write at 20."""
    sent = []
    while d.pending:
        rq = d.serve()
        sent.append(f"{'w' if rq.direction == d.lib.SS_WRITE else 'r'}{rq.sector}")
    return " ".join(sent)


def both(d: Driver, reads: tuple[int, ...], writes: tuple[int, ...]) -> str:
    for sector in reads:
        d.send(1, sector)
    for sector in writes:
        d.send(2, sector, write=True)
    return order(d)


SCATTERED = ((500, 100, 300, 700, 900), (600, 200, 400))


def test_a_gap_ends_a_batch(d: Driver) -> None:
    """Two reads go for a write, and each time the lowest begins."""
    assert both(d, *SCATTERED) == "r100 r300 w200 r500 r700 w400 r900 w600"


def test_in_2_6_31_a_batch_goes_on_over_gaps() -> None:
    """... and begins with the oldest; 500, 700 and 900 are one batch, 100 and 300 another."""
    assert both(Driver("deadline"), *SCATTERED) == "r500 r700 r900 r100 r300 w600 w200 w400"


def test_contiguous_requests_are_a_batch(d: Driver) -> None:
    """Sixteen of them. The next one is no new beginning, so after it the writes' turn comes."""
    reads = tuple(range(1000, 1000 + 20 * 8, 8))
    sent = both(d, reads, (0, 5000)).split()
    assert [n for n, what in enumerate(sent) if what[0] == "w"] == [17, 21]


def test_the_oldest_begins_when_it_has_expired(d: Driver) -> None:
    d.send(1, 900)
    d.later(499)
    d.send(1, 100)
    d.later(2)
    assert d.serve().sector == 900


@pytest.mark.parametrize(
    ("write", "expires_ns"), [(False, 500 * 10**6), (True, 5 * 10**9)], ids=["read", "write"]
)
def test_a_request_expires_to_the_nanosecond(d: Driver, write: bool, expires_ns: int) -> None:
    """At the time that the tunable says, not after it; also where a wrapper asks."""
    old = d.send(1, 900, write=write)
    d.now_ns = expires_ns // 2
    low = d.send(1, 100, write=write)
    policy = d.ffi.addressof(d.sched.policy[0])
    d.now_ns = expires_ns - 1
    assert policy.ops.overdue(policy, d.now_ns) == d.ffi.NULL
    assert d.choose() == ("dispatch", low)
    d.now_ns = expires_ns
    assert policy.ops.overdue(policy, d.now_ns) == old
    assert d.choose() == ("dispatch", old)
    d.serve()
    assert d.sched.counters.expired == 1


def test_a_sweep_ends_at_the_highest_and_begins_at_the_lowest(d: Driver) -> None:
    d.send(1, 500)
    d.send(1, 700)
    assert d.serve().sector == 500
    d.send(1, 300)
    d.send(1, 200)
    assert order(d) == "r700 r200 r300"
