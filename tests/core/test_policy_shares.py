# SPDX-License-Identifier: GPL-2.0-only
"""stride and wfq: shares of the disk by weight."""

from __future__ import annotations

from collections import Counter

import pytest
from policy_driver import Driver

NOSPC, RANGE, NOENT = -28, -34, -2

both = pytest.mark.parametrize("policy", ["stride", "wfq"])


@pytest.fixture
def d(policy: str) -> Driver:
    return Driver(policy)


def weighted(policy: str, weights: dict[int, int]) -> Driver:
    d = Driver(policy)
    for owner, weight in weights.items():
        assert d.lib.ss_sched_weigh(d.sched, owner, weight) == 0
    return d


def backlog(d: Driver, sectors: dict[int, int], number: int) -> None:
    for owner, length in sectors.items():
        for n in range(number):
            d.send(owner, owner * 10**8 + n * length * 2, length)


def served(d: Driver, number: int) -> list[int]:
    return [int(d.serve().owner) for _ in range(number)]


@both
@pytest.mark.parametrize("weights", [{1: 1, 2: 2}, {1: 1, 2: 3}, {1: 2, 2: 3, 3: 7}])
def test_the_backlogged_share_by_weight(policy: str, weights: dict[int, int]) -> None:
    d = weighted(policy, weights)
    backlog(d, dict.fromkeys(weights, 8), 400)
    count = Counter(served(d, 20 * sum(weights.values())))
    assert all(abs(count[owner] - 20 * weight) <= 1 for owner, weight in weights.items())


@both
def test_all_weigh_1_at_first(d: Driver) -> None:
    backlog(d, {1: 8, 2: 8}, 10)
    assert Counter(served(d, 10)) == {1: 5, 2: 5}


@both
def test_sectors_are_shared_not_requests(d: Driver) -> None:
    """Requests of 8 sectors against ones of 32."""
    backlog(d, {1: 8, 2: 32}, 200)
    assert Counter(served(d, 100)) == {1: 80, 2: 20}


def test_stride_takes_the_least_pass() -> None:
    d = weighted("stride", {2: 2})
    backlog(d, {1: 8, 2: 8}, 9)
    # Passes: 0 0, then 8 0, 8 4, 8 8: of equals the one pending for longer.
    assert served(d, 9) == [1, 2, 2, 1, 2, 2, 1, 2, 2]


def test_wfq_takes_the_first_that_would_be_finished() -> None:
    d = weighted("wfq", {2: 2})
    backlog(d, {1: 8, 2: 8}, 9)
    # Finish tags: 8 and 4, then 8 and 8, 16 and 8, 16 and 12.
    assert served(d, 9) == [2, 1, 2, 2, 1, 2, 2, 1, 2]


def test_wfq_lets_a_short_request_go_first() -> None:
    d = Driver("wfq")
    d.send(1, 0, 128)
    d.dispatch(d.send(2, 10**8, 8))


@both
def test_one_owner_s_requests_go_in_order(d: Driver) -> None:
    sent = [d.send(1, sector) for sector in (500, 100, 300)]
    assert [d.serve() for _ in sent] == sent


@both
def test_a_share_that_was_not_asked_for_is_not_owed(d: Driver) -> None:
    backlog(d, {2: 8}, 1)
    d.serve()
    backlog(d, {1: 8}, 100)
    served(d, 50)
    backlog(d, {2: 8}, 100)
    assert Counter(served(d, 20)) == {1: 10, 2: 10}


def alternating(d: Driver, number: int) -> Counter[int]:
    """Two readers that send the next when one is done, a moment after: who was served."""
    at = {1: 0, 2: 10**8}
    count: Counter[int] = Counter()
    for owner in at:
        d.send(owner, at[owner], 128)
    while sum(count.values()) < number:
        verdict, *rest = d.choose()
        if verdict == "wait":
            d.at(rest[0])
            continue
        rq = d.serve(ms=2)
        owner = int(rq.owner)
        count[owner] += 1
        at[owner] += 128
        verdict, *rest = d.choose()
        if verdict == "dispatch":  # before the next one can be there
            other = d.dispatch()
            d.later(0.1)
            d.send(owner, at[owner], 128)
            d.later(2).complete(other)
            owner = int(other.owner)
            count[owner] += 1
            at[owner] += 128
        d.later(0.1)
        d.send(owner, at[owner], 128)
    return count


@both
def test_one_request_at_a_time_gets_equal_shares_whatever_the_weights(policy: str) -> None:
    """Deceptive idleness (Iyer and Druschel, slide 11): 1:2 is asked for, 1:1 is given."""
    count = alternating(weighted(policy, {1: 1, 2: 2}), 600)
    assert count[2] / count[1] == pytest.approx(1, rel=0.05)


@both
def test_a_weighted_owner_keeps_its_place(policy: str) -> None:
    d = weighted(policy, {1: 3})
    for owner in range(1000, 1400):
        d.serve(d.send(owner, owner * 1000))
    backlog(d, {1: 8, 2: 8}, 100)
    assert Counter(served(d, 40)) == {1: 30, 2: 10}


@both
def test_a_weight_can_be_changed_and_taken_back(policy: str) -> None:
    d = weighted(policy, {1: 3})
    for weight in (5, 1, 2, 1):
        assert d.lib.ss_sched_weigh(d.sched, 1, weight) == 0
    backlog(d, {1: 8, 2: 8}, 100)
    assert Counter(served(d, 40)) == {1: 20, 2: 20}


@both
def test_no_more_weights_than_places(policy: str) -> None:
    d = weighted(policy, dict.fromkeys(range(1, 129), 2))
    assert d.lib.ss_sched_weigh(d.sched, 129, 2) == NOSPC
    assert d.lib.ss_sched_weigh(d.sched, 5, 7) == 0


@both
@pytest.mark.parametrize("weight", [0, 1001, 2**40])
def test_a_weight_out_of_range_is_refused(d: Driver, weight: int) -> None:
    assert d.lib.ss_sched_weigh(d.sched, 1, weight) == RANGE


def test_other_policies_have_no_weights() -> None:
    d = Driver("cfq")
    assert d.lib.ss_sched_weigh(d.sched, 1, 2) == NOENT
