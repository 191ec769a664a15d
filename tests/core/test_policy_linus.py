# SPDX-License-Identifier: GPL-2.0-only
"""linus: behaves as Linux 2.4.20's elevator, one behaviour per test."""

from __future__ import annotations

import pytest
from policy_driver import Driver


@pytest.fixture
def d() -> Driver:
    return Driver("linus")


def order(d: Driver) -> list[int]:
    """The sectors of all that is pending, as they are sent."""
    sectors = []
    while d.pending:
        sectors.append(int(d.serve().sector))
    return sectors


def sent(d: Driver, *sectors: int, write: bool = False) -> list[int]:
    for sector in sectors:
        d.send(1, sector, write=write)
    return order(d)


def left(d: Driver) -> list[int]:
    """The budgets of the pending, in the order of their arrival."""
    return [int(rq.budget) for rq in d.pending]


# Sorting.


@pytest.mark.parametrize(
    ("came", "went"),
    [
        # Love, Linux Journal 2004: 20, 30, 700 and 25 go as 20, 25, 30 and 700.
        ((20 * 8, 30 * 8, 700 * 8, 25 * 8), [160, 200, 240, 5600]),
        # It fits between neighbours or goes to the tail, but not before the first, which the disk
        # may be about to reach.
        ((3000, 4000, 2000, 3500), [3000, 3500, 4000, 2000]),
        # The end of a sweep takes what is beyond it, and before the next.
        ((3000, 2000, 5000), [3000, 5000, 2000]),
        ((3000, 2000, 1000), [3000, 1000, 2000]),
    ],
)
def test_a_request_goes_where_it_fits(d: Driver, came: tuple[int, ...], went: list[int]) -> None:
    assert sent(d, *came) == went


def test_of_two_places_the_one_nearer_to_the_tail_counts() -> None:
    """Two sweeps, 1000 to 9000 and 2000 to 8000; 5000 fits into both."""
    d = Driver("linus", read_passovers=0)
    for sector in (1000, 9000, 2000, 8000):
        d.send(1, sector)
    for rq in d.pending:
        rq.budget = 16
    d.send(1, 5000)
    assert order(d) == [1000, 9000, 2000, 5000, 8000]


def test_reads_and_writes_stand_in_one_queue(d: Driver) -> None:
    d.send(1, 1000)
    d.send(1, 3000)
    d.send(2, 2000, write=True)
    assert order(d) == [1000, 2000, 3000]


# Bounded overtaking.


def test_defaults_are_those_of_2_4_20(d: Driver) -> None:
    read, write = d.send(1, 1000), d.send(2, 2000, write=True)
    assert (read.budget, write.budget) == (2048, 8192)


@pytest.mark.parametrize(
    ("sectors", "cost"),
    [
        (8, 16),
        (256, 16 + 31),  # 2.4 hands in a page at a time: 128 KiB are a seek and 31 merges
    ],
)
def test_a_seek_costs_those_behind_it_16_and_a_merge_1(d: Driver, sectors: int, cost: int) -> None:
    for sector in (1000, 3000, 5000):
        d.send(1, sector)
    d.send(1, 2000, sectors)
    assert left(d) == [2048, 2048 - cost, 2048 - cost, 2048]


def test_from_2_4_22_on_four_requests_of_128_kib_pass_a_read() -> None:
    """Seeks and merges cost 1, and a read's budget is 128: include/linux/elevator.h of 2.4.22."""
    d = Driver("linus", seek_cost=1, read_passovers=128, write_passovers=512)
    d.send(1, 1000)
    last = d.send(1, 10**6)
    for sector in range(2000, 20000, 2000):
        d.send(2, sector, 256, write=True)
    assert order(d).index(int(last.sector)) == 1 + 4


def test_a_merge_costs_those_behind_it_1(d: Driver) -> None:
    a = d.send(1, 1000)
    for sector in (3000, 5000):
        d.send(1, sector)
    d.lib.ss_sched_merged(d.sched, a, d.request(1, 1008), 0)
    assert left(d) == [2048, 2047, 2047]
    d.lib.ss_sched_merged(d.sched, a, d.request(1, 992), 0)  # at the front: itself, too
    assert left(d) == [2047, 2046, 2046]


@pytest.mark.parametrize(("write", "times"), [(False, 128), (True, 512)])
def test_a_request_is_overtaken_a_bounded_number_of_times(
    d: Driver, write: bool, times: int
) -> None:
    """Axboe, linux-kernel, August 2002: 128 seeks pass a read, 512 a write."""
    d.send(1, 1000)
    last = d.send(1, 10**6, write=write)
    served = 0
    for n in range(times + 50):
        d.send(2, 2000 + 100 * n)
        if d.serve() == last:  # the disk keeps up with the newcomers
            break
        served += 1
    assert served == 1 + times


@pytest.mark.parametrize(
    ("budget", "came", "went"),
    [
        (0, (5000, 1000, 3000, 2000), [5000, 1000, 3000, 2000]),  # first come, first served
        (16, (1000, 5000, 3000, 2000, 6000), [1000, 3000, 5000, 2000, 6000]),
    ],
)
def test_a_used_up_budget_stops_the_search(
    budget: int, came: tuple[int, ...], went: list[int]
) -> None:
    assert sent(Driver("linus", read_passovers=budget), *came) == went


def test_a_merge_still_passes_a_used_up_budget() -> None:
    d = Driver("linus", read_passovers=0)
    a, b = d.send(1, 1000), d.send(1, 5000)
    d.lib.ss_sched_merged(d.sched, a, d.request(1, 1008), 0)
    assert (a.nr_sectors, b.budget) == (16, 0)


def test_removed_request_is_not_chosen(d: Driver) -> None:
    d.remove(d.send(1, 1000))
    d.send(1, 3000)
    assert order(d) == [3000]


@pytest.mark.parametrize(("first", "second"), [(5, 3), (3, 5)])
def test_a_joined_request_has_the_smaller_budget(first: int, second: int) -> None:
    d = Driver("linus")
    rq, later = d.send(1, 0), d.send(1, 16)
    d.merge(rq)
    rq.budget, later.budget = first, second
    assert d.lib.ss_sched_find_join(d.sched, rq, 4096) == later
    d.lib.ss_sched_joined(d.sched, rq, later, d.now_ns)
    assert rq.budget == 3
