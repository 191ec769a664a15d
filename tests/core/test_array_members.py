# SPDX-License-Identifier: GPL-2.0-only
"""An array's coordinator: requests in no turn, counts, and members that come and go."""

from __future__ import annotations

from typing import Any

import pytest
from array_driver import CHUNK, MEMBER, THRESHOLD, ArrayDriver, stream
from policy_driver import FAR


def test_what_is_outside_the_array_is_sent_at_once(pair: ArrayDriver) -> None:
    """The array's own superblock, say, in the turn of a stream."""
    chunk = stream(pair)
    first, rq = pair.read(chunk)
    first.dispatch(rq)
    other = pair.members[1].send(0, FAR)
    outside = pair.members[1].send(0, MEMBER + CHUNK)
    across = pair.members[1].send(0, MEMBER - CHUNK, 2 * CHUNK)
    assert pair.counts() == {"plain": 2, "held": 1, "released": 0, "sent": 1}
    pair.members[1].dispatch(outside)
    pair.members[1].dispatch(across)
    assert pair.members[1].choose()[0] == "wait" and other in pair.members[1].pending
    pair.serve_all()
    assert pair.is_empty()


def test_what_has_no_place_is_sent_without(pair: ArrayDriver) -> None:
    chunk = stream(pair)
    first, rq = pair.read(chunk)
    first.dispatch(rq)
    beyond, member = 5, pair.members[1]
    places = pair.lib.SS_ARRAY_REQUESTS - 1
    others = [member.send(0, FAR + 2**10 * i) for i in range(places + beyond)]
    assert pair.counts() == {"plain": beyond, "held": places, "released": 0, "sent": 1}
    for other in others[places:]:
        member.dispatch(other)
    assert member.choose()[0] == "wait"
    for other in others[:places:2]:
        member.remove(other)
    pair.serve_all()
    assert pair.is_empty()


def test_what_was_pending_before_attaching_is_sent() -> None:
    """The member decides for itself until then."""
    pair = ArrayDriver(attach=False)
    second = pair.members[1]
    before = second.send(0, FAR)
    assert [pair.attach(i) for i in range(2)] == [0, 0]
    member, rq = pair.read(2**20)
    second.wait().dispatch(before)
    assert second.reason != pair.lib.SS_WHY_ARRAY
    pair.serve(member, rq)
    pair.later(1)
    second.complete(before)
    stream(pair)
    assert pair.is_empty()


def held_and_released(pair: ArrayDriver) -> tuple[Any, Any]:
    """One of the second member's requests that waits, and one that it may send."""
    chunk = stream(pair)
    second = pair.members[1]
    held = second.send(0, FAR)
    pair.read(chunk)
    released = pair.read(chunk + 1)[1]
    assert pair.counts() == {"plain": 0, "held": 1, "released": 2, "sent": 0}
    return held, released


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("event", ["removed", "merged", "joined", "returned", "front"])
def test_counts_are_right_whatever_becomes_of_a_request(
    pair: ArrayDriver, which: int, event: str
) -> None:
    rq = held_and_released(pair)[which]
    member = pair.members[1]
    total = sum(pair.counts().values())
    if event == "removed":
        member.remove(rq)
        total -= 1
    elif event in ("merged", "front"):
        member.merge(rq, front=event == "front")
    elif event == "joined":
        following = member.send(0, rq.sector + rq.nr_sectors)
        member.pending.remove(following)
        pair.lib.ss_sched_joined(member.sched, rq, following, member.now_ns)
    else:
        for other in [one for one in member.pending if one != rq]:
            member.remove(other)
        member.wait().dispatch(rq)
        pair.later(3)
        member.at_disk.remove(rq)
        pair.lib.ss_sched_returned(member.sched, rq, member.now_ns)
        total -= 2
    assert sum(pair.counts().values()) == total
    pair.serve_all()
    assert pair.is_empty()


@pytest.mark.parametrize("sent", [True, False])
def test_who_is_awaited_later_is_counted_as_he_came(pair: ArrayDriver, sent: bool) -> None:
    """Merged with a read that somebody waits for, what is read ahead is awaited, too."""
    stream(pair)
    for member in pair.members:
        rq = member.send(0, FAR, CHUNK, ahead=True)
        member.merge(rq)
        assert not rq.flags & pair.lib.SS_AHEAD
        if sent:
            pair.serve(member, rq)
        else:
            member.remove(rq)
    assert pair.is_empty()


# ---- members come and go ----


@pytest.mark.parametrize("spec", ["noop", "deadline", "cfq"])
def test_a_member_without_streams_is_refused(spec: str) -> None:
    pair = ArrayDriver(spec=spec, attach=False)
    assert pair.attach(1) == -22
    assert pair.sentence() == "member 1 is not scheduled by stream, as in stream:deadline"
    assert pair.array.attached == 0


def test_attaching_twice_is_refused(pair: ArrayDriver) -> None:
    assert pair.attach(1) == -16
    assert pair.sentence() == "member 1 is attached already"
    assert pair.lib.ss_array_attach(pair.array, 2, pair.members[0].sched, pair.why, 160) == -22
    assert pair.sentence() == "member 2: the array has fewer members"


def test_members_leave_and_return_with_requests_under_way(pair: ArrayDriver) -> None:
    """What came before counts for nothing, and is served like all else."""
    chunk = stream(pair)
    pair.members[0].send(0, FAR)
    member, rq = pair.read(chunk)
    member.dispatch(rq)
    _, waiting = pair.read(chunk + 2)
    outside = member.send(0, MEMBER + CHUNK)
    pair.detach(0)
    assert pair.array.attached == 0b10
    assert pair.is_empty()
    pair.detach(0)
    assert pair.attach(0) == 0
    pair.later(1)
    member.complete(rq)
    assert {waiting, outside} <= set(member.pending)
    pair.serve_all()
    assert pair.is_empty()
    pair.follow(chunk + 4, 4 * THRESHOLD)
    assert pair.in_turn()


def test_a_request_of_another_array_is_not_known() -> None:
    """In flight while its disk goes over to another array: nothing of the old one is touched."""
    old, new = ArrayDriver(), ArrayDriver(attach=False)
    chunk = stream(old)
    member, rq = old.read(chunk)
    member.dispatch(rq)
    new.members = old.members
    for i in range(2):
        old.detach(i)
        assert new.attach(i) == 0
    old.later(1)
    before = bytes(old.ffi.buffer(old.array))
    member.complete(rq)
    assert bytes(old.ffi.buffer(old.array)) == before
    assert old.is_empty() and new.is_empty()


@pytest.mark.parametrize("event", ["complete", "remove", "detach"])
def test_the_arrays_time_does_not_go_back(pair: ArrayDriver, event: str) -> None:
    """A member read the clock, and comes in after another one with a later time."""
    chunk = stream(pair)
    first, rq = pair.read(chunk)
    second = pair.members[1]
    if event != "remove":
        first.dispatch(rq)
    first.later(5)
    second.later(1)
    if event == "detach":
        pair.detach(0)
    else:
        getattr(first, event)(rq)
    assert pair.array.now_ns == first.now_ns
    assert pair.read(chunk + 1)[0] is second
    assert second.now_ns < pair.array.now_ns == pair.array.sched.now_ns == first.now_ns
    second.dispatch()
    second.complete()


def test_each_flush_of_a_member_begins_and_ends_once(pair: ArrayDriver) -> None:
    member, of_array = pair.members[1], pair.array.member[1]
    for begins, nr in ((True, 1), (True, 2), (False, 1), (False, 0)):
        member.flushes(begins=begins)
        assert of_array.nr_flushes == nr


def test_a_flush_that_began_before_attaching_is_none_of_the_array() -> None:
    pair = ArrayDriver(attach=False)
    member = pair.members[1]
    member.flushes(begins=True)
    assert [pair.attach(i) for i in range(2)] == [0, 0]
    member.flushes(begins=False)
    assert pair.array.member[1].nr_flushes == 0
