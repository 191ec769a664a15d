# SPDX-License-Identifier: GPL-2.0-only
"""deadline with batch_over_gaps=0, as Linux 2.6.9's, and with a target for waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from policy_driver import Driver

Core = tuple[Any, Any]


@pytest.fixture
def d(core: Core) -> Driver:
    return Driver(core, "deadline", batch_over_gaps=0)


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


def test_in_2_6_31_a_batch_goes_on_over_gaps(core: Core) -> None:
    """... and begins with the oldest; 500, 700 and 900 are one batch, 100 and 300 another."""
    assert both(Driver(core, "deadline"), *SCATTERED) == "r500 r700 r900 r100 r300 w600 w200 w400"


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
    assert policy.ops.expired(policy, d.now_ns) == d.ffi.NULL
    assert d.choose() == ("dispatch", low)
    d.now_ns = expires_ns
    assert policy.ops.expired(policy, d.now_ns) == old
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


# ---- with a target for waits (stream_time_slice=auto), one command at a time ----

FAR = 40_000_000  # sectors
READS, WRITES = (5, 1, 3, 7, 9), (6, 2, 4)


def aimed(core: Core, **tunables: int) -> Driver:
    return Driver(
        core,
        "stream:deadline",
        stream_time_slice=0,
        answer_time=0,
        trials=0,
        stream_threshold=1000,
        **tunables,
    )


def far_both(d: Driver, reads: Iterable[int], writes: Iterable[int], sync: bool = False) -> str:
    for place in reads:
        d.send(1, place * FAR)
    for place in writes:
        d.send(2, place * FAR, write=True, sync=sync)
    return far_order(d)


def far_order(d: Driver) -> str:
    return " ".join(f"{it[0]}{int(it[1:]) // FAR}" for it in order(d).split())


def test_with_a_target_it_begins_at_the_lowest(core: Core) -> None:
    assert far_both(aimed(core), READS, WRITES) == "r1 r3 r5 r7 r9 w2 w4 w6"
    assert far_both(Driver(core, "deadline"), READS, WRITES) == "r5 r7 r9 r1 r3 w6 w2 w4"


def test_with_a_target_a_batch_goes_on_at_the_lowest(core: Core) -> None:
    """Each read is below the one before: four batches of four, or of one and one."""
    gone = []
    for d in (aimed(core, fifo_batch=2), Driver(core, "deadline")):
        write = d.send(2, 0, write=True)
        for place in range(30, 10, -1):
            d.send(1, place * FAR)
            if d.serve() == write:
                break
        gone.append(30 - place)
    assert gone == [16, 2]


@pytest.mark.parametrize(("sync", "batch"), ((False, 4), (True, 2)))
def test_with_a_target_batches_are_twice_as_long(core: Core, sync: bool, batch: int) -> None:
    """... where nobody waits for the writes, and twice as many of reads go before them."""
    d = aimed(core, fifo_batch=2, writes_starved=1)
    sent = far_both(d, range(0, 40, 2), range(1, 40, 2), sync).split()
    writes = [n for n, what in enumerate(sent) if what[0] == "w"]
    first = (1 if sync else 2) * batch
    assert writes[:batch] == list(range(first, first + batch))


def test_with_a_target_the_oldest_waits_for_a_sweep_on_its_way(core: Core) -> None:
    """A fourth of read_expire longer; the framework looks at wait_target itself."""
    for late_ms, expected in ((600, "r1 r2 r3 r9"), (626, "r9 r1 r2 r3")):
        d = aimed(core, fifo_batch=1, wait_target=10_000 * 1_000_000)
        d.send(1, 9 * FAR)
        d.later(late_ms)
        assert far_both(d, (1, 2, 3), ()) == expected


def test_with_a_target_writes_do_not_go_round_before_a_read(core: Core) -> None:
    d = aimed(core)
    assert far_both(d, (), (9,)) == "w9"
    assert far_both(d, (5,), (1, 2, 3)) == "r5 w1 w2 w3"


def test_a_disk_with_several_commands_orders_them_itself(core: Core) -> None:
    """As deadline alone, with two others in it; Linux hands out one while a disk has one."""
    orders = []
    for d in (aimed(core), Driver(core, "deadline")):
        d.dispatch(d.send(3, 20 * FAR))
        d.dispatch(d.send(3, 21 * FAR))
        for place in READS:
            d.send(1, place * FAR)
        orders.append([d.dispatch().sector // FAR for _ in READS])
    assert orders[0] == orders[1] == [5, 7, 9, 1, 3]


def test_without_a_head_nothing_is_different(core: Core) -> None:
    d = aimed(core)
    table = d.ffi.new("struct ss_curve_point[]", [(0, 100_000)])
    assert d.lib.ss_curve_set(d.ffi.addressof(d.sched, "curve"), table, 1, 1_000_000_000) == 0
    assert far_both(d, READS, WRITES) == "r5 r7 r9 r1 r3 w6 w2 w4"
