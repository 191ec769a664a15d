# SPDX-License-Identifier: GPL-2.0-only
"""cfq: behaves as Linux 2.6.31's, one behaviour per test."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from policy_driver import FAR, FOREVER, Driver, read_with_another_pending


@pytest.fixture
def d() -> Driver:
    return Driver("cfq")


def read_on(d: Driver, owner: int, sector: int, ms: float, *, step_ms: float = 2) -> int:
    """@owner reads on from @sector for @ms, undisturbed; where it is then."""
    end = d.now + ms
    while d.now < end:
        d.serve(d.send(owner, sector), ms=step_ms)
        sector += 8
    return sector


# Slices.


def test_a_process_keeps_the_disk_for_100_ms(d: Driver) -> None:
    other = read_with_another_pending(d)  # the slice runs from 5 to 105 ms
    sector = read_on(d, 1, 8, 98)
    assert d.now == 103
    d.send(1, sector)
    assert d.dispatch().owner == 1
    d.at(105).complete()
    d.send(1, sector + 8)
    d.dispatch(other)


def test_slice_sync_is_the_slice() -> None:
    d = Driver("cfq", slice_sync=20_000_000)
    other = read_with_another_pending(d)
    d.send(1, read_on(d, 1, 8, 20))
    d.dispatch(other)


def test_processes_take_turns(d: Driver) -> None:
    """Three with endless reads: each has the disk for 100 ms at a time."""
    for owner in (1, 2, 3):
        for n in range(400):
            d.send(owner, owner * 10**8 + 8 * n)
    turns: list[tuple[int, int]] = []
    for _ in range(900):
        owner = d.serve(ms=1).owner
        if turns and turns[-1][0] == owner:
            turns[-1] = owner, turns[-1][1] + 1
        else:
            turns.append((owner, 1))
    # The slice begins when its first request completes.
    assert turns[:6] == [(1, 101), (2, 101), (3, 101)] * 2


def turns(d: Driver, number: int) -> list[int]:
    """Whose the next @number slices are."""
    owners: list[int] = []
    while len(owners) < number:
        owner = d.serve(ms=1).owner
        if not owners or owners[-1] != owner:
            owners.append(owner)
    return owners


def test_shorter_slices_come_later(d: Driver) -> None:
    """Async slices are shorter by 60 ms for each other queue, and so put off."""
    for n in range(400):
        d.send(1, 8 * n)
        d.send(2, FAR + 8 * n)
    for n in range(400):
        d.send(9, 2 * FAR + 8 * n, write=True)
    # Keys in ms: 0, 80 and 280; after its slice process 1 has 101 + 160 = 261,
    # after its own process 2 has 202 + 160.
    assert turns(d, 5) == [1, 2, 1, 9, 2]


def test_preempted_queue_is_put_off_by_what_it_had_left(d: Driver) -> None:
    for n in range(400):
        d.send(1, 8 * n)
        d.send(2, FAR + 8 * n)
    d.serve(ms=1)
    d.send(3, 2 * FAR, meta=True)  # process 1, with 100 ms left, has 1 + 160 + 100
    for n in range(400):
        d.send(4, 3 * FAR + 8 * n)  # 1 + 240
    d.gone(3)  # do not idle for it
    assert turns(d, 4) == [3, 2, 4, 1]


def async_run(d: Driver) -> int:
    """Async requests of 1 ms each between two slices of a reader."""
    reads = [d.send(1, FAR + 8 * n) for n in range(300)]
    for n in range(200):
        d.send(9, 8 * n, write=True)
    run = 0
    for _ in range(300):
        rq = d.serve(ms=1)
        if rq in reads and run:
            return run
        run += rq not in reads
    raise AssertionError


def test_async_has_the_disk_for_40_ms() -> None:
    assert async_run(Driver("cfq", slice_async_rq=1000)) == 41


def test_async_sends_16_requests_in_a_slice() -> None:
    assert async_run(Driver("cfq")) == 16


def test_async_sends_16_requests_in_each_slice(d: Driver) -> None:
    reads = [d.send(1, FAR + 8 * n) for n in range(300)]
    for n in range(200):
        d.send(9, 8 * n, write=True)
    served = itertools.groupby(d.serve(ms=1) in reads for _ in range(240))
    assert [len(list(run)) for read, run in served if not read] == [16, 16]


def test_async_alone_is_not_limited(d: Driver) -> None:
    for n in range(100):
        d.send(9, 8 * n, write=True)
    for n in range(100):
        assert d.serve(ms=1).sector == 8 * n
    assert d.count("slices_ended") <= 2


def test_all_async_requests_stand_in_one_queue(d: Driver) -> None:
    for n in range(20):
        d.send(1 + n % 2, 8 * n, write=True)
    assert [d.serve().sector for _ in range(20)] == [8 * n for n in range(20)]


# Idling.


def seeks(d: Driver, owner: int, count: int) -> None:
    """@owner reads here and there, a million sectors apart."""
    for n in range(count):
        d.serve(d.send(owner, (n * 7 % 11 + 1) * 1_000_000), ms=2)


def tell_shallow(d: Driver) -> None:
    """Let the disk be seen to hold one request at a time under load."""
    for n in range(70):
        d.send(50, FAR + 10**7 + 8 * n)
    for _ in range(70):
        d.serve(ms=1)
    d.later(1000)


def test_does_not_idle_for_a_seeky_process_when_the_disk_queues(d: Driver) -> None:
    """Which is supposed until the disk is seen not to."""
    seeks(d, 1, 4)
    other = d.serve_beside(1, 20_000_000, ms=2)
    d.dispatch(other)


def test_idles_2_ms_for_a_seeky_process_otherwise(d: Driver) -> None:
    tell_shallow(d)
    seeks(d, 1, 4)
    d.serve_beside(1, 20_000_000, ms=2)
    assert d.choose() == ("wait", d.now + 2)


def test_seeky_is_known_from_the_third_request(d: Driver) -> None:
    """The first counts as no seek, so that two reads make one seek."""
    tell_shallow(d)
    for known, waits_ms in ((2, 8), (3, 2)):
        owner = 60 + known
        seeks(d, owner, known - 1)
        d.serve_beside(owner, 20_000_000, 99, ms=2)
        assert d.choose() == ("wait", d.now + waits_ms), known
        d.later(20).serve()
        d.later(20)


def test_first_request_is_no_seek(d: Driver) -> None:
    tell_shallow(d)
    for n in range(3):
        d.serve(d.send(70, FAR + 8 * n), ms=2)
    rq = d.dispatch(d.send(70, FAR + 24))
    d.send(99, 0)
    d.later(2).complete(rq)
    assert d.choose() == ("wait", d.now + 8)


def test_does_not_idle_for_one_that_thinks_longer_than_that(d: Driver) -> None:
    sector = 0
    for _ in range(6):
        d.send(1, sector)
        sector += 8
        d.serve(ms=2)
        d.later(12)
    other = d.serve_beside(1, sector, ms=2)
    d.dispatch(other)


def test_does_not_idle_for_a_process_that_is_gone(d: Driver) -> None:
    rq = d.dispatch(d.send(1, 0))
    other = d.send(2, FAR)
    d.gone(1)
    d.at(5).complete(rq)
    d.dispatch(other)


def test_does_not_idle_for_one_that_went_before_its_turn(d: Driver) -> None:
    rq = d.send(1, 0)
    d.gone(1)
    d.dispatch(rq)
    other = d.send(2, FAR)
    d.at(5).complete(rq)
    d.dispatch(other)


def test_number_that_comes_back_is_a_new_process(d: Driver) -> None:
    d.serve(d.send(1, 0), ms=1)
    d.gone(1)
    read_with_another_pending(d)
    assert d.choose()[0] == "wait"


def test_idling_ends_when_the_process_goes(d: Driver) -> None:
    other = read_with_another_pending(d)
    assert d.choose()[0] == "wait"
    d.gone(1)
    d.dispatch(other)


def test_does_not_idle_for_async_requests(d: Driver) -> None:
    rq = d.dispatch(d.send(1, 0, write=True))
    other = d.send(2, FAR, write=True)
    d.at(5).complete(rq)
    d.dispatch(other)


# Preemption.


def test_close_request_takes_the_idle_disk(d: Driver) -> None:
    """Within 4 MiB as long as no mean seek is known."""
    read_with_another_pending(d)
    d.send(3, 8 + 8193)
    assert d.choose() == ("wait", 13)
    d.dispatch(d.send(4, 8 + 8192))


def close_one_goes(d: Driver) -> Any:
    """Queue 3's request, near to where queue 1 has read, while queue 2 is far."""
    rq = d.dispatch(d.send(1, 0))
    d.send(2, FAR)
    close = d.send(3, 1000)
    d.at(5).complete(rq)
    d.dispatch(close)
    return close


def test_close_request_pending_is_a_reason_not_to_idle(d: Driver) -> None:
    close_one_goes(d)
    assert d.count("waits") == 0


def jumped(d: Driver) -> None:
    """Close to each other, queue 3 has jumped the queue, and now queue 1 is served again."""
    close = close_one_goes(d)
    back = d.send(1, 1008)
    d.at(10).complete(close)
    d.dispatch(back)


def test_close_queue_jumps_only_once(d: Driver) -> None:
    """Until it has had a turn of its own."""
    jumped(d)
    d.send(3, 1016)
    d.at(15).complete()
    assert d.choose() == ("wait", 23)


def test_close_request_takes_the_idle_disk_though_it_has_jumped(d: Driver) -> None:
    jumped(d)
    d.at(15).complete()
    assert d.choose() == ("wait", 23)
    d.dispatch(d.send(3, 1016))


def test_sync_takes_the_disk_from_async(d: Driver) -> None:
    for n in range(10):
        d.send(1, 8 * n, write=True)
    d.serve()
    d.dispatch(d.send(2, FAR))


def test_metadata_takes_the_disk_from_data(d: Driver) -> None:
    for n in range(10):
        d.send(1, 8 * n)
    d.serve()
    d.send(2, FAR)
    assert d.choose()[1].owner == 1
    d.dispatch(d.send(3, 2 * FAR, meta=True))


def test_metadata_does_not_take_it_from_metadata(d: Driver) -> None:
    for n in range(10):
        d.send(1, 8 * n, meta=True)
    d.serve()
    d.send(3, 2 * FAR, meta=True)
    assert d.choose()[1].owner == 1


# Order and age within a queue.


def test_queue_is_an_elevator_with_short_ways_back() -> None:
    d = Driver("cfq")
    d.serve(d.send(1, 5_000_000))
    ahead, behind = d.send(1, 5_002_500), d.send(1, 4_999_000)
    far_behind = d.send(1, 1000)
    d.serve(behind)
    d.serve(ahead)
    d.serve(far_behind)


def test_back_seek_max_and_penalty() -> None:
    for tune, first in (
        ({}, 4_999_000),
        ({"back_seek_max": 1000}, 5_002_500),
        ({"back_seek_penalty": 3}, 5_002_500),
    ):
        d = Driver("cfq", **tune)
        d.serve(d.send(1, 5_000_000))
        d.send(1, 5_002_500)
        d.send(1, 4_999_000)
        assert d.dispatch().sector == first, tune


@pytest.mark.parametrize(("behind", "goes_back"), [(1000, True), (1001, False)])
def test_back_seek_max_is_the_longest_way_back(behind: int, goes_back: bool) -> None:
    d = Driver("cfq", back_seek_max=1000)
    d.serve(d.send(1, 5_000_000))
    head = 5_000_008
    back, ahead = d.send(1, head - behind), d.send(1, head + 2500)
    d.dispatch(back if goes_back else ahead)


def test_metadata_first_within_a_queue(d: Driver) -> None:
    d.send(1, 8)
    d.dispatch(d.send(1, FAR, meta=True))


def test_old_request_opens_a_slice(d: Driver) -> None:
    """One of 125 ms; only at the slice's beginning is it looked for."""
    old = d.send(2, FAR)
    d.send(2, 8)
    d.send(1, 100)
    assert d.serve(ms=130).sector == 8  # process 2 was first
    d = Driver("cfq")
    rq = d.dispatch(d.send(1, 0))
    old = d.send(2, FAR)
    young = d.send(2, FAR - 10_000)
    d.at(130).complete(rq)
    d.send(1, 8)  # its slice goes on
    d.at(240).complete(d.dispatch())
    d.dispatch(old)
    assert d.count("expired") == 1
    d.at(241).complete()
    d.dispatch(young)
    assert d.count("expired") == 1


# Several requests at the disk.


def test_quantum_of_4_per_queue(d: Driver) -> None:
    for n in range(30):
        d.send(1, 8 * n)
    d.send(2, FAR)
    for _ in range(4):
        assert d.dispatch().owner == 1
    assert d.choose() == ("wait", FOREVER)
    d.at(1).complete()
    assert d.dispatch().owner == 1


def test_16_when_it_is_alone(d: Driver) -> None:
    for n in range(30):
        d.send(1, 8 * n)
    for _ in range(16):
        d.dispatch()
    assert d.choose() == ("wait", FOREVER)


def test_async_waits_for_sync_at_the_disk() -> None:
    """Even of a queue that need not be waited for."""
    d = Driver("cfq", slice_idle=0)
    d.send(1, 0)
    d.send(2, FAR, write=True)
    d.dispatch()
    assert d.choose() == ("wait", FOREVER)
    d.dispatch(d.send(3, 2 * FAR))


def test_next_queue_waits_while_requests_of_this_one_are_at_the_disk(d: Driver) -> None:
    first = d.dispatch(d.send(1, 0))
    other = d.send(2, FAR)
    assert d.choose() == ("wait", FOREVER)
    d.at(5).complete(first)
    assert d.choose() == ("wait", 13)
    d.at(13).dispatch(other)


# Taking back, growing, many.


def test_removed_request_is_not_chosen(d: Driver) -> None:
    first, second = d.send(1, 0), d.send(1, 8)
    d.remove(first)
    d.dispatch(second)
