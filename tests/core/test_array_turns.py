# SPDX-License-Identifier: GPL-2.0-only
"""An array's coordinator: who has turns, how long, and who is asked again when one ends."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from array_driver import CHUNK, THRESHOLD, ArrayDriver, stream
from policy_driver import FAR


@pytest.mark.parametrize("nr", [2, 3, 5, 8])
def test_a_stream_has_a_turn_when_it_is_long_enough_and_wide(nr: int) -> None:
    """So many requests as make a stream, and each member has one that goes on from another."""
    arr = ArrayDriver(nr)
    enough = max(nr + 1, THRESHOLD)
    arr.follow(0, enough - 1)
    assert (arr.count("established"), arr.count("turns"), arr.in_turn()) == (0, 0, False)
    arr.follow(enough - 1, 1)
    assert (arr.count("established"), arr.count("turns"), arr.in_turn()) == (1, 1, True)


@pytest.mark.parametrize(
    ("level", "nr", "has"),
    [
        ("RAID0", 2, True),
        ("RAID5", 3, True),
        ("RAID5", 5, True),
        ("RAID10", 3, True),
        # Mirrors: a stream of reads has one of each place.
        ("RAID10", 4, False),
        ("RAID10", 2, False),
        ("LINEAR", 2, False),
    ],
)
def test_turns_are_for_levels_that_keep_all_busy(level: str, nr: int, has: bool) -> None:
    arr = ArrayDriver(nr, level=level)
    for chunk in range(60):
        member, rq = arr.read(chunk)
        arr.serve(member, rq)
        arr.later(0.1)
    assert (arr.count("established") > 0, arr.in_turn()) == (has, has)


@pytest.mark.parametrize(
    ("level", "sync", "has"),
    [
        ("RAID0", True, True),
        ("RAID0", False, False),
        ("RAID5", True, True),
        ("RAID10", True, True),
    ],
)
def test_writes_have_turns_where_somebody_waits(level: str, sync: bool, has: bool) -> None:
    # Of four in RAID 10 each two are mirrors.
    arr = ArrayDriver(4 if level == "RAID10" else 3, level=level)
    arr.follow(0, 60, write=True, sync=sync)
    assert bool(arr.count("established")) == has
    assert arr.is_empty()


def test_pieces_of_one_request_count_once(pair: ArrayDriver) -> None:
    """However many there are: nothing was done between them."""
    for chunk in range(64):
        pair.read(chunk)
    assert pair.count("established") == 0
    pair.serve_all()
    pair.read(64)
    assert pair.count("established") == 1


@pytest.mark.parametrize(
    ("how", "has"),
    [
        ({}, True),
        ({"step": 3}, True),
        ({"step": 2}, False),  # one member's
        ({"step": 33}, True),  # whole rows are left out, as many each time
        ({"sectors": CHUNK // 2}, True),
        ({"sectors": CHUNK // 16}, True),
        ({"think": 5}, True),
        ({"think": 40}, False),
    ],
)
def test_who_does_not_keep_the_members_busy_has_no_turns(
    pair: ArrayDriver, how: dict[str, Any], has: bool
) -> None:
    pair.follow(0, 100, **how)
    assert bool(pair.count("turns")) == has


def test_who_leaves_out_rows_at_random_has_no_turns(pair: ArrayDriver) -> None:
    at = 0
    for number in range(100):
        at = pair.follow(at, 1, step=(33, 67)[number % 2])
    assert pair.count("turns") == 0


def test_a_stream_of_degraded_raid_5_has_turns() -> None:
    """Nothing is asked of the failed member."""
    arr = ArrayDriver(4, level="RAID5")
    for chunk in range(60):
        member, rq = arr.read(chunk)
        if member is arr.members[2]:
            member.remove(rq)
            continue
        arr.serve(member, rq)
        arr.later(0.1)
    assert arr.in_turn()


# ---- turns ----


def test_in_a_turn_a_member_waits_for_its_share(pair: ArrayDriver) -> None:
    chunk = stream(pair)
    assert chunk % 2 == 0
    other = pair.members[1].send(0, FAR)
    member, rq = pair.read(chunk)
    member.dispatch(rq)
    assert member.reason == pair.lib.SS_WHY_ARRAY
    for _ in range(5):
        assert pair.members[1].choose()[0] == "wait"
        pair.later(5)
    assert pair.counts() == {"plain": 0, "held": 1, "released": 0, "sent": 1}
    member.complete(rq)
    pair.later(0.1)
    _, second = pair.read(chunk + 1)
    assert pair.members[1].choose() == ("dispatch", second)
    assert other in pair.members[1].pending
    pair.serve_all()
    assert pair.is_empty()


def test_a_stream_that_ends_is_waited_for_and_then_no_longer(pair: ArrayDriver) -> None:
    """For some ms, as it has paused for less than one; what others have is sent then."""
    chunk = stream(pair)
    other = pair.members[1].send(0, FAR)
    pair.serve(*pair.read(chunk))
    began = pair.now
    assert pair.members[1].choose()[0] == "wait"
    pair.members[1].wait().dispatch(other)
    assert 0.1 < pair.members[1].now - began < 15
    assert not pair.in_turn()
    assert pair.array.sched.counters.timeouts == 1
    assert pair.count("slices_ended") >= 1


def test_the_slice_is_the_arrays() -> None:
    """At its end all members go to what others want, then back to the stream."""
    wait_ms = 60
    pair = ArrayDriver(wait_target=wait_ms * 1_000_000)
    chunk = stream(pair)
    began, turns = pair.now, pair.count("turns")
    others = [member.send(0, FAR + 2**20) for member in pair.members]
    while pair.now - began < 3 * wait_ms:
        member, rq = pair.read(chunk)
        if member.wait().choose()[1] != rq:
            break
        pair.serve(member, rq)
        pair.later(0.1)
        chunk += 1
    assert wait_ms / 4 <= pair.now - began <= wait_ms + 2
    for member, other in zip(pair.members, others, strict=True):
        member.wait().dispatch(other)
    assert pair.count("slices_ended") >= 1
    pair.later(10)
    for member in pair.members:
        member.complete()
    pair.serve(*pair.read(chunk + 1))
    assert pair.in_turn() and pair.count("turns") == turns + 1


def test_a_light_reader_of_the_rest_interrupts_a_turn(pair: ArrayDriver) -> None:
    """As soon as what the stream has in the disks is done; then the turn goes on."""
    chunk = stream(pair, burden=False)
    pair.later(1)
    member, rq = pair.read(chunk)
    member.dispatch(rq)
    other = pair.members[1].send(0, FAR)
    assert pair.members[1].choose()[0] == "wait"
    _, second = pair.read(chunk + 1)
    pair.kicked.clear()
    pair.later(1)
    member.complete(rq)
    assert 1 in pair.kicked
    pair.serve(pair.members[1], other, 10)
    assert pair.reasons("LIGHT") == 1
    pair.serve(pair.members[1], second)
    assert pair.reasons("BACK") == 1 and pair.in_turn()


def test_two_streams_have_turns_one_after_the_other() -> None:
    """All members are at one of them at a time."""
    arr = ArrayDriver(3, wait_target=60_000_000)
    at = [0, 2**20]
    for _ in range(2):
        at = [arr.follow(chunk, 30) for chunk in at]
    assert arr.count("established") == 2
    waiting = [arr.read(chunk) for chunk in at]
    turns, done = arr.count("turns"), []
    for _ in range(200):
        arr.later(0.1)
        which = next(i for i, (m, rq) in enumerate(waiting) if m.choose() == ("dispatch", rq))
        assert sum(m.choose() == ("dispatch", rq) for m, rq in waiting) == 1
        arr.serve(*waiting[which])
        done.append(which)
        at[which] += 1
        arr.later(0.1)
        waiting[which] = arr.read(at[which])
    switches = sum(a != b for a, b in itertools.pairwise(done))
    assert 2 <= switches <= 20
    assert switches - 1 <= arr.count("turns") - turns <= switches + 1


# ---- who is asked again ----


def test_who_has_something_released_by_anothers_event_is_kicked(pair: ArrayDriver) -> None:
    """The rest's is done on one member, and the stream's on the other may go."""
    chunk = pair.follow(stream(pair), 8)  # long enough to be waited for
    first, second = pair.members
    rq = second.send(0, FAR)
    second.wait().dispatch(rq)
    assert not pair.in_turn()
    pair.at(second.now)
    own = pair.read(chunk)[1]
    assert first.choose()[0] == "wait"
    pair.kicked.clear()
    pair.later(5)
    second.complete()
    assert pair.kicked == [0]
    assert first.choose() == ("dispatch", own)


def test_who_waits_is_kicked_when_the_wait_ends_sooner(pair: ArrayDriver) -> None:
    """In flight a stream's request may take long; when it is done its pause has begun."""
    chunk = stream(pair)
    second, other = pair.members[1], pair.members[1].send(0, FAR)
    first, rq = pair.read(chunk)
    first.dispatch(rq)
    long = second.choose()[1]
    pair.kicked.clear()
    pair.later(1)
    first.complete(rq)
    assert pair.kicked == [1]
    assert second.choose()[1] < long
    pair.kicked.clear()
    second.wait().dispatch(other)


def test_when_a_member_leaves_the_others_are_asked_again(pair: ArrayDriver) -> None:
    """What the array waited for is no more: the other's may go."""
    chunk = stream(pair)
    other = pair.members[1].send(0, FAR)
    first, rq = pair.read(chunk)
    first.dispatch(rq)
    assert pair.members[1].choose()[0] == "wait"
    pair.kicked.clear()
    pair.later(1)
    pair.detach(0)
    assert set(pair.kicked) == {1}
    pair.members[1].wait().dispatch(other)


@pytest.mark.parametrize("ms", [0, 1, 30, 700])
def test_asking_again_at_one_time_changes_nothing(pair: ArrayDriver, ms: float) -> None:
    """The first question may release what may go by now; the second finds it so."""
    chunk = stream(pair)
    for member in pair.members:
        member.send(0, FAR)
    pair.read(chunk)
    pair.later(ms)
    answers = [member.choose() for member in pair.members]
    after = bytes(pair.ffi.buffer(pair.array))
    assert [member.choose() for member in pair.members] == answers
    assert bytes(pair.ffi.buffer(pair.array)) == after


def test_who_goes_out_of_turn_wakes_the_others() -> None:
    """A member with a request from before decides for itself: so it is the rest's turn."""
    pair = ArrayDriver(spec="stream:sptf")
    first, second = pair.members
    chunk = stream(pair)
    pair.detach(1)
    before = [second.send(0, FAR + 2**23), second.send(0, 2 * FAR)]
    assert pair.attach(1) == 0
    pair.serve(second, before[0], 10)
    chunk = pair.follow(chunk, 1)
    other, near = first.send(0, FAR), second.send(0, FAR)
    assert first.choose()[0] == "wait"
    pair.kicked.clear()
    second.dispatch(near)
    assert not pair.in_turn()
    assert pair.kicked == [0]
    first.wait().dispatch(other)


# ---- apart ----


def until_apart(arr: ArrayDriver, chunk: int, ms: float = 4200) -> int:
    """A stream goes on until its turns are compared with none; its next chunk."""
    end = arr.now + ms
    while arr.in_turn():
        assert arr.now < end
        chunk = arr.follow(chunk, 1)
    return chunk


def test_while_apart_members_decide_for_themselves() -> None:
    """After four seconds of turns with idle members; what did no more is left again."""
    pair = ArrayDriver()
    chunk = until_apart(pair, stream(pair, burden=False))
    assert pair.now > 4000
    others = [member.send(0, FAR) for member in pair.members]
    rq = pair.read(chunk)[1]
    for one in pair.members:
        while one.pending:
            one.wait().dispatch()
            assert one.reason != pair.lib.SS_WHY_ARRAY
            assert pair.counts()["held"] == 0
            pair.at(one.now + 1)
            one.complete()
    assert not {rq, *others} & {rq for m in pair.members for rq in m.pending}
    chunk = pair.follow(chunk + 1, 200)
    assert not pair.in_turn() and pair.count("trials") == 0
    pair.follow(chunk, 200)
    assert pair.in_turn() and (pair.count("trials"), pair.count("trials_lost")) == (1, 0)


def test_when_apart_again_nothing_is_held() -> None:
    """What waited for a turn is released, and who has it is kicked."""
    pair = ArrayDriver()
    chunk = stream(pair, burden=False)
    while pair.now < 3380:
        chunk = pair.follow(chunk, 2)
    pair.burden()
    chunk = pair.follow(chunk, 4)
    assert pair.in_turn() and pair.now < 4000
    other = pair.members[1].send(0, FAR)
    first, rq = pair.read(chunk)
    first.dispatch(rq)
    assert pair.counts()["held"] == 1
    pair.kicked.clear()
    pair.at(4010)
    first.complete(rq)
    assert not pair.in_turn()
    assert 1 in pair.kicked and pair.counts()["held"] == 0
    pair.members[1].wait().dispatch(other)
    assert pair.members[1].reason != pair.lib.SS_WHY_ARRAY
