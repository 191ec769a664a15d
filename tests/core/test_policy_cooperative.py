# SPDX-License-Identifier: GPL-2.0-only
"""cooperative: waits for groups of processes, one behaviour per test."""

from __future__ import annotations

from typing import Any

import pytest
from policy_driver import FAR, Driver

STREAM = 1  # the owner of a reader far away from all others
MIB = 2048  # sectors


@pytest.fixture
def d() -> Driver:
    return Driver("cooperative")


def serve(d: Driver, rq: Any, ms: float = 1) -> None:
    """@rq is done before anything else comes, however long the disk is held first."""
    verdict, *rest = d.choose()
    if verdict == "wait":
        d.at(rest[0])
    d.serve(rq, ms=ms)


def chunks(d: Driver, number: int, first_owner: int = 10, *, at: int = 0, ms: float = 1) -> int:
    """Each of @number processes reads one chunk behind the last one's and exits.

    The next begins @ms after. Returns where the last chunk ends.
    """
    for n in range(number):
        serve(d, d.send(first_owner + n, at, 16))
        d.gone(first_owner + n)
        d.later(ms)
        at += 16
    return at


def lonely(d: Driver, number: int = 40, first_owner: int = 1000) -> None:
    """Processes that read once, far from each other, exit, and are waited for in vain."""
    for n in range(number):
        rq = d.send(first_owner + n, 10**9 + n * 20 * MIB)
        serve(d, rq)
        d.gone(first_owner + n)
        serve(d, d.send(STREAM, FAR + n * 8))
        d.later(30)


def awaited_after(d: Driver, owner: int, sector: int) -> bool:
    """With a far request pending, is the disk held after @owner's read at @sector?"""
    rq = d.send(owner, sector, 16)
    verdict, *rest = d.choose()
    if verdict == "wait":
        d.at(rest[0])
    d.dispatch(rq)
    d.later(1)
    far = d.send(STREAM, FAR)
    d.later(1).complete(rq)
    d.gone(owner)
    verdict, *_ = d.choose()
    if verdict == "wait":
        return True
    d.dispatch(far)
    return False


def test_ever_new_processes_are_a_group() -> None:
    """Where newcomers exit at once, anticipatory waits for none; the group is waited for."""
    for policy, held in (("anticipatory", False), ("cooperative", True)):
        d = Driver(policy)
        at = chunks(d, 20)
        lonely(d)
        assert awaited_after(d, 99, at) is held, policy


def test_two_processes_are_enough(d: Driver) -> None:
    assert awaited_after(d, 99, chunks(d, 2))


def test_a_wait_ends_with_a_request_of_the_group(d: Driver) -> None:
    at = chunks(d, 20)
    assert awaited_after(d, 99, at)
    d.later(1)
    d.dispatch(d.send(100, at + 16))
    assert d.waits() == (1, 1, 0)


def test_a_request_of_others_does_not_end_it(d: Driver) -> None:
    """Not even one that anticipatory would call close because some time has passed."""
    assert awaited_after(d, 99, chunks(d, 20))
    d.later(4)
    d.send(2, FAR // 2)
    assert d.choose()[0] == "wait"


def test_a_wait_lasts_6_ms_at_the_most(d: Driver) -> None:
    assert awaited_after(d, 99, chunks(d, 20))
    assert d.choose() == ("wait", d.now + 6)
    d.later(6)
    assert d.dispatch().owner == STREAM
    assert d.count("timeouts") == 1


def test_a_group_outlives_its_members(d: Driver) -> None:
    """All have exited and others were served since; a new one is waited for at once."""
    at = chunks(d, 20)
    sector = FAR
    for _ in range(200):
        serve(d, d.send(STREAM, sector), ms=5)
        sector += 8
    lonely(d)
    assert awaited_after(d, 99, at)


def test_a_group_that_thinks_for_long_is_not_waited_for(d: Driver) -> None:
    assert not awaited_after(d, 99, chunks(d, 30, ms=15))


def test_a_group_that_has_become_quick_is_waited_for_again(d: Driver) -> None:
    at = chunks(d, 30, ms=15)
    at = chunks(d, 12, 50, at=at, ms=1)
    assert awaited_after(d, 99, at)


@pytest.mark.parametrize(
    ("distance", "held"),
    [(8192, True), (8193, False), (-4096, True), (-4097, False)],
)
def test_a_process_joins_within_4_mib_ahead_or_2_behind(
    d: Driver, distance: int, held: bool
) -> None:
    """Nothing is known of a first-time process but its group."""
    at = chunks(d, 20, at=FAR // 2) + distance
    lonely(d)
    assert awaited_after(d, 99, at) is held


@pytest.mark.parametrize(("gap", "held"), [(0, True), (8, False)])
def test_group_distance_is_a_tunable(gap: int, held: bool) -> None:
    """0: only exactly where the last one stopped."""
    d = Driver("cooperative", group_distance=0)
    at = chunks(d, 20)
    lonely(d)
    assert awaited_after(d, 99, at + gap) is held


def test_two_groups_are_told_apart(d: Driver) -> None:
    """A quick one and a slow one, in turns."""
    quick, slow = 0, FAR // 2
    for n in range(20):
        quick = chunks(d, 12, 100 + 12 * n, at=quick)
        slow = chunks(d, 1, 400 + n, at=slow, ms=15)
    lonely(d)
    assert awaited_after(d, 98, quick)
    assert not awaited_after(d, 99, slow)


def test_one_process_alone_is_treated_as_by_anticipatory() -> None:
    held = []
    for policy in ("anticipatory", "cooperative"):
        d = Driver(policy)
        for n in range(20):
            d.serve(d.send(5, 16 * n))
            d.later(10)  # thinks too long
        held.append(awaited_after(d, 5, 320))
    assert held == [False, False]


@pytest.mark.parametrize(("others", "held"), [(60, True), (140, False)])
def test_of_more_than_128_groups_the_oldest_is_forgotten(
    d: Driver, others: int, held: bool
) -> None:
    at = chunks(d, 20)
    lonely(d, others)  # each is a group of its own
    for n in range(60):  # newcomers exit
        serve(d, d.send(2000 + n, 10**9))
        d.gone(2000 + n)
        serve(d, d.send(STREAM, FAR + n * 8))
        d.later(30)
    assert awaited_after(d, 99, at) is held


# One chain of processes: each goes where it likes when the last one has gone.


def successor(d: Driver, *, pending: bool = False, gone: bool = True) -> tuple[object, ...]:
    """What is chosen when a new process reads far away and a group's last one has been served."""
    rq = d.send(99, chunks(d, 20), 16)
    d.serve(rq)
    if pending:
        d.send(STREAM, FAR)
    if gone:
        d.gone(99)
    d.later(0.2)
    d.send(100, FAR // 2, 16)
    return d.choose()


def test_a_lone_successor_is_not_kept_waiting(d: Driver) -> None:
    verdict, rq = successor(d)
    assert (verdict, rq.owner) == ("dispatch", 100)
    assert d.count("waits") == 0


def test_nor_when_it_sends_two_requests_at_once(d: Driver) -> None:
    successor(d)
    d.send(100, FAR // 2 + 32, 16)
    d.serve()
    assert d.dispatch().owner == 100
    assert d.count("timeouts") == 0


def test_with_others_pending_the_group_is_waited_for(d: Driver) -> None:
    assert successor(d, pending=True)[0] == "wait"


def test_while_the_last_one_lives_a_newcomer_is_no_successor(d: Driver) -> None:
    assert successor(d, gone=False)[0] == "wait"


def test_who_was_there_before_is_no_successor(d: Driver) -> None:
    """Its request may be of another program, from which the disk is kept."""
    d.serve(d.send(100, FAR // 2))
    d.later(30)
    assert successor(d)[0] == "wait"


def test_who_has_begun_before_the_last_one_went_is_no_successor(d: Driver) -> None:
    assert successor(d, gone=False)[0] == "wait"
    d.later(0.1)
    d.gone(99)
    d.send(100, FAR // 2 + 32, 16)
    assert d.choose()[0] == "wait"
