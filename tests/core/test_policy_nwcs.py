# SPDX-License-Identifier: GPL-2.0-only
"""nwcs: Iyer and Druschel's benefit against cost, one behaviour per test.

The curve: positioning costs 0 at no distance, 10 ms from 1000 sectors on.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from policy_driver import FAR, Driver

POINTS = [(0, 0), (1000, 10_000_000), (2_000_000_000, 10_000_000)]
MS = 1_000_000


def driver(spec: str, **tunables: int) -> Driver:
    d = Driver(spec, **tunables)
    table = d.ffi.new("struct ss_curve_point[]", POINTS)
    curve = d.ffi.addressof(d.sched, "curve")
    assert d.lib.ss_curve_set(curve, table, len(POINTS), 2**31) == 0
    return d


@pytest.fixture
def d() -> Driver:
    return driver("nwcs:sptf")


def read_on(d: Driver, thinks_ms: list[float], *, owner: int = 1, at: int = 0, gap: int = 0) -> int:
    """@owner reads alone, @gap behind its last read each time; where it would go on."""
    for think_ms in thinks_ms:
        rq = d.send(owner, at)
        d.serve(rq, ms=1)
        at += 8 + gap
        d.later(think_ms)
    return at


def held_ms(d: Driver, sector: int, *, owner: int = 1, other: int = FAR) -> float:
    """How long is the disk held after @owner's read at @sector, with @other pending?"""
    rq = d.dispatch(d.send(owner, sector))
    d.send(2, other)
    d.later(1).complete(rq)
    verdict, *rest = d.choose()
    return float(rest[0]) - d.now if verdict == "wait" else 0.0


# Benefit against cost.


@pytest.mark.parametrize(
    ("think_ms", "gap", "held"),
    [
        (1, 0, True),  # benefit 10 - 0 ms, cost 1 ms
        (9, 0, True),
        (11, 0, False),  # it thinks for longer than the benefit
        (1, 5000, False),  # at random: the expected positioning takes all of the benefit
        (6, 300, True),  # gaps of 300 sectors cost 3 ms: the benefit is 10 - 3 ms
        (8, 300, False),
    ],
)
def test_the_benefit_is_what_positioning_saves(
    d: Driver, think_ms: float, gap: int, held: bool
) -> None:
    assert (held_ms(d, read_on(d, [think_ms] * 30, gap=gap)) > 0) is held


def test_a_near_request_is_not_worth_a_wait(d: Driver) -> None:
    """The benefit is that of the request at hand: 1 ms, for 100 sectors."""
    at = read_on(d, [2] * 30)
    assert held_ms(d, at, other=at + 8 + 100) == 0


@pytest.mark.parametrize(("think_ms", "held"), [(9, True), (11, False)])
def test_backwards_positioning_is_the_disk_s_time(d: Driver, think_ms: float, held: bool) -> None:
    """10 ms as forwards, not half as much again: that is another paper's preference."""
    at = read_on(d, [think_ms] * 30, at=10**6)
    assert (held_ms(d, at, other=0) > 0) is held


def test_nothing_is_known_of_a_newcomer(d: Driver) -> None:
    assert held_ms(d, 0) == 0


# How long.


@pytest.mark.parametrize(
    ("thinks", "held"),
    [
        (([1.0] * 24 + [8.0]) * 4, 1.024),  # one in 25 is not within the percentile
        (([1.0] * 9 + [8.0]) * 10, 8.192),  # one in ten is
    ],
)
def test_the_wait_is_the_95th_percentile(d: Driver, thinks: list[float], held: float) -> None:
    assert held_ms(d, read_on(d, thinks)) == pytest.approx(held, abs=0.001)


@pytest.mark.parametrize("think_ms", [0.0005, 0.001, 0.0014, 0.0016, 0.1, 1.4, 1.6, 5, 7])
def test_the_percentile_is_at_most_half_an_octave_off(d: Driver, think_ms: float) -> None:
    held = held_ms(d, read_on(d, [think_ms] * 30))
    assert think_ms < held <= max(1.51 * think_ms, 0.001)


def test_old_think_times_fade(d: Driver) -> None:
    at = read_on(d, [8.0] * 100)
    assert held_ms(d, read_on(d, [1.0] * 2000, at=at)) == pytest.approx(1.024, abs=0.001)


def test_wait_limit_bounds_it() -> None:
    d = driver("nwcs:sptf", wait_limit=5 * MS)
    assert held_ms(d, read_on(d, ([1.0] * 9 + [8.0]) * 10)) == 5
    d = driver("nwcs:sptf", wait_limit=0)
    assert held_ms(d, read_on(d, [1.0] * 30)) == 0


# What comes meanwhile.


def test_the_owner_s_request_ends_the_wait(d: Driver) -> None:
    at = read_on(d, [1] * 30)
    assert held_ms(d, at)
    d.later(1)
    d.dispatch(d.send(1, at + 8))
    assert d.waits() == (1, 1, 0)


def test_when_the_time_is_over_the_other_goes(d: Driver) -> None:
    d.later(held_ms(d, read_on(d, [1] * 30)))
    assert d.dispatch().sector == FAR
    assert d.waits() == (1, 0, 1)


def test_a_better_request_of_another_is_taken(d: Driver) -> None:
    """Re-evaluated: with a request at hand that costs 0.5 ms there is no benefit."""
    at = read_on(d, [1] * 30)
    assert held_ms(d, at)
    d.dispatch(d.send(3, at + 8 + 50))
    assert d.count("hits") == 1


def test_one_that_has_exited_is_not_waited_for(d: Driver) -> None:
    assert held_ms(d, read_on(d, [1] * 30))
    d.gone(1)
    assert d.dispatch().sector == FAR


def test_an_expired_request_goes_at_once() -> None:
    d = driver("nwcs:sptf", age_limit=10 * MS)
    at = read_on(d, [1] * 30)
    old = d.send(3, FAR)
    for _ in range(4):
        rq = d.send(1, at)
        d.serve(rq, ms=2)
        at += 8
        if d.choose()[0] == "dispatch":
            break
        d.later(0.6)
    d.at(max(d.now, 10 + old.arrival_ns / 1e6))
    d.dispatch(old)


def test_unknown_owners_are_one() -> None:
    """All requests seem to be of the owner last served: there is nobody to wait for."""
    d = driver("nwcs:sptf")
    at = read_on(d, [1] * 30, owner=0)
    rq = d.dispatch(d.send(0, at))
    other = d.send(0, FAR)
    d.later(1).complete(rq)
    d.dispatch(other)


def test_the_disk_s_queue_is_not_filled_past_one_that_is_about_to_think(d: Driver) -> None:
    at = read_on(d, [1] * 30)
    d.dispatch(d.send(1, at))
    d.send(2, FAR)
    assert d.choose() == ("wait", None)


def test_over_a_policy_that_does_not_go_by_position_it_gives_up() -> None:
    d = driver("nwcs:noop")
    at = read_on(d, [1] * 30)
    held = []
    for n in range(20):
        held.append(held_ms(d, at, other=FAR + 8 * n) > 0)
        at += 8
        if d.choose()[0] == "wait":
            d.later(1)
            d.send(1, at)
            at += 8
        while d.pending:
            verdict, *rest = d.choose()
            if verdict == "wait":
                d.at(rest[0])
            d.serve()
    assert held[0] and not any(held[-5:])
    assert d.count("hits") == 0


def test_over_deadline_the_request_waited_for_goes() -> None:
    """Alone it would begin a new batch with the oldest."""
    d = driver("nwcs:deadline")
    at = read_on(d, [1] * 30)
    assert held_ms(d, at)
    d.later(1)
    d.dispatch(d.send(1, at + 8))
    assert d.count("hits") == 1


def test_over_deadline_others_go_when_they_expire() -> None:
    d = driver("nwcs:deadline", read_expire=100 * MS)
    at = read_on(d, [1] * 30)
    old = d.send(2, FAR)
    began = d.now
    while old in d.pending:
        d.send(1, at)
        d.serve(ms=2)
        at += 8
        if d.choose()[0] == "wait":
            d.later(0.5)
        assert d.now < began + 110
    assert d.now >= began + 100


# Shares.


def readers(d: Driver, think_ms: dict[int, float], number: int) -> Counter[int]:
    """Readers that send the next @think_ms after one is done, 2 ms each: who was served."""
    at = {owner: owner * 10**8 for owner in think_ms}
    due = dict.fromkeys(think_ms, d.now_ns)
    count: Counter[int] = Counter()
    done_ns: int | None = None
    for _ in range(20 * number):
        verdict, *rest = d.choose() if done_ns is None else ("busy",)
        if verdict == "dispatch":
            rq = d.dispatch()
            done_ns = d.now_ns + 2 * MS
            continue
        times = list(due.values()) + ([done_ns] if done_ns is not None else [])
        if verdict == "wait":
            times.append(round(rest[0] * 1e6))
        d.now_ns = max(d.now_ns, min(times))
        if done_ns is not None and d.now_ns >= done_ns:
            owner = int(d.complete(rq).owner)
            count[owner] += 1
            due[owner] = d.now_ns + round(think_ms[owner] * MS)
            done_ns = None
        for owner in [one for one, time_ns in due.items() if time_ns <= d.now_ns]:
            d.send(owner, at[owner], 128)
            at[owner] += 128
            del due[owner]
        if sum(count.values()) >= number:
            return count
    raise AssertionError("waits again and again")


def shares(spec: str, weights: dict[int, int], think_ms: dict[int, float]) -> Any:
    d = driver(spec)
    for owner, weight in weights.items():
        assert d.lib.ss_sched_weigh(d.sched, owner, weight) == 0
    return readers(d, think_ms, 1200)


@pytest.mark.parametrize("inner", ["stride", "wfq"])
@pytest.mark.parametrize(
    ("weights", "think_ms"),
    [
        ({1: 1, 2: 2}, {1: 0.1, 2: 0.1}),
        ({1: 1, 2: 2}, {1: 3.0, 2: 0.1}),
        ({1: 1, 2: 2}, {1: 0.1, 2: 3.0}),
        ({1: 1, 2: 3}, {1: 0.1, 2: 0.5}),
        ({1: 2, 2: 3}, {1: 0.1, 2: 0.5}),
        ({1: 1, 2: 2, 3: 4}, {1: 0.1, 2: 0.2, 3: 0.3}),
    ],
)
def test_shares_are_kept_with_one_request_at_a_time(
    inner: str, weights: dict[int, int], think_ms: dict[int, float]
) -> None:
    """1:2 within 5 % where the policy alone gives 1:1 (Iyer and Druschel, slide 11)."""
    count = shares(f"nwcs:{inner}", weights, think_ms)
    for owner, weight in weights.items():
        assert count[owner] / 1200 == pytest.approx(weight / sum(weights.values()), rel=0.05)


@pytest.mark.parametrize("inner", ["stride", "wfq"])
def test_alone_they_are_not(inner: str) -> None:
    count = shares(inner, {1: 1, 2: 2}, {1: 0.1, 2: 0.1})
    assert count[2] / count[1] == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("inner", ["stride", "wfq"])
def test_the_disk_is_held_for_whom_it_is_owed_to(inner: str) -> None:
    """Not for the owner last served: it has had its share."""
    d = driver(f"nwcs:{inner}")
    assert d.lib.ss_sched_weigh(d.sched, 2, 4) == 0
    readers(d, {1: 0.1, 2: 3.0}, 100)
    assert d.count("hits") > 50


@pytest.mark.parametrize("inner", ["stride", "wfq"])
def test_one_that_thinks_beyond_the_limit_is_not_held_for(inner: str) -> None:
    d = driver(f"nwcs:{inner}")
    assert d.lib.ss_sched_weigh(d.sched, 2, 4) == 0
    count = readers(d, {1: 0.1, 2: 60.0}, 400)
    assert count[1] > 350
    assert d.count("timeouts") < 10


# Over a policy that does not send what was waited for.


def vain_waits(d: Driver, until_ms: float) -> list[float]:
    """When the disk is held for owner 1, whose request then is not chosen."""
    times: list[float] = []
    at = 0
    while d.now < until_ms:
        waits = d.count("waits")
        rq = d.send(1, at)
        d.serve(rq)
        for number in range(3):
            d.send(2, FAR + 100_000 * number)
        if d.count("waits") > waits:
            times.append(d.now)
        d.later(1)
        at += 8
        d.send(1, at)
        while d.pending:
            while (decision := d.choose())[0] == "wait":
                d.at(decision[1])
            d.serve(ms=2)
        at += 8
        d.later(1)
    return times


def test_waits_in_vain_are_tried_again_later() -> None:
    """noop sends the oldest: after eight such waits nwcs pauses, longer each time, up to 32 s."""
    d = driver("nwcs:noop")
    read_on(d, [1.0] * 20)
    times = vain_waits(d, 200_000)
    gaps = [round((b - a) / 1000, 1) for a, b in pairwise(times)]
    assert all(gap < 0.1 for gap in gaps[:7])
    assert gaps[7:13] == pytest.approx([1, 2, 4, 8, 16, 32], rel=0.05)
    assert gaps[13:] == pytest.approx([32] * len(gaps[13:]), rel=0.05)
