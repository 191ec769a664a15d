# SPDX-License-Identifier: GPL-2.0-only
"""The coordinator of an array's members, step by step, and under random events."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from policy_driver import FAR, FOREVER, Driver

Core = tuple[Any, Any]

CHUNK = 128
THRESHOLD = 4  # stream_threshold's default
MEMBER = 2**30  # sectors of a member that are the array's; its disk has more


class ArrayDriver:
    """Members under one clock, in ms, attached to a coordinator."""

    def __init__(
        self,
        core: Core,
        nr: int = 2,
        spec: str = "stream:noop",
        *,
        level: str = "RAID0",
        attach: bool = True,
        rows: int = MEMBER // CHUNK,
        **tun: int,
    ) -> None:
        self.ffi, self.lib = core
        self.members = [Driver(core, spec, **tun) for _ in range(nr)]
        geometry = self.ffi.new("struct ss_array_geometry *")
        geometry.level, geometry.nr_members = getattr(self.lib, f"SS_ARRAY_{level}"), nr
        layout = "NEAR" if level == "RAID10" else "LEFT_SYMMETRIC"
        geometry.layout = getattr(self.lib, f"SS_ARRAY_{layout}")
        geometry.chunk_sectors = CHUNK
        for i in range(nr):
            geometry.member_sectors[i] = rows * CHUNK
        self.why = self.ffi.new("char[160]")
        assert self.lib.ss_array_geometry_init(geometry, self.why, 160) == 0
        self.array = self.ffi.new("struct ss_array *")
        self.kicked: list[int] = []
        self.locked = 0
        self._callbacks(core[0])
        self.lib.ss_array_init(self.array, geometry)
        if attach:
            for i in range(nr):
                assert self.attach(i) == 0, self.sentence()

    def _callbacks(self, ffi: Any) -> None:
        """The lock is taken once at a time, and kick comes under it."""

        def lock(_: Any) -> None:
            assert not self.locked
            self.locked += 1

        def unlock(_: Any) -> None:
            assert self.locked
            self.locked -= 1

        def kick(_: Any, member: int) -> None:
            assert self.locked
            self.kicked.append(member)

        self.keep = [
            ffi.callback("void(struct ss_array *)", lock),
            ffi.callback("void(struct ss_array *)", unlock),
            ffi.callback("void(struct ss_array *, uint32_t)", kick),
        ]
        self.array.lock, self.array.unlock, self.array.kick = self.keep

    def attach(self, member: int) -> int:
        sched = self.members[member].sched
        return int(self.lib.ss_array_attach(self.array, member, sched, self.why, 160))

    def detach(self, member: int) -> None:
        self.lib.ss_array_detach(self.array, member, self.members[member].now_ns)

    def sentence(self) -> str:
        return str(self.ffi.string(self.why).decode())

    @property
    def now(self) -> float:
        return max(member.now for member in self.members)

    def at(self, ms: float) -> None:
        for member in self.members:
            member.at(ms)

    def later(self, ms: float) -> None:
        self.at(self.now + ms)

    def count(self, counter: str) -> int:
        counters = self.ffi.new("struct ss_array_counters *")
        self.lib.ss_array_counters(self.array, counters)
        return int(getattr(counters, counter))

    def reasons(self, name: str) -> int:
        """How many requests were released because of this."""
        return int(self.array.sched.dispatched_by[getattr(self.lib, f"SS_WHY_{name}")])

    def turn(self) -> tuple[bool, int]:
        """Is it a stream's, and where has it come to?"""
        end, since = self.ffi.new("uint64_t *"), self.ffi.new("uint64_t *")
        return bool(self.lib.ss_array_turn(self.array, end, since)), int(end[0])

    def in_turn(self) -> bool:
        return self.turn()[0]

    def counts(self) -> dict[str, int]:
        """Of all members together; checked against what their schedulers have."""
        names = ("plain", "held", "released", "sent")
        total = dict.fromkeys(names, 0)
        for one in self.array.member[0 : len(self.members)]:
            nr = {name: int(getattr(one, f"nr_{name}")) for name in names}
            if one.sched:
                assert nr["plain"] + nr["held"] + nr["released"] <= one.sched.nr_pending
                assert nr["sent"] <= one.sched.nr_in_flight
            else:
                assert not any(nr.values())
            total = {name: total[name] + nr[name] for name in names}
        assert total["held"] == self.array.sched.nr_pending
        assert total["released"] + total["sent"] == self.array.sched.nr_in_flight
        return total

    def is_empty(self) -> bool:
        """Nothing is counted, and each place for a request is free."""
        free, node = 0, self.array.free.next
        while node != self.ffi.addressof(self.array.free):
            free, node = free + 1, node.next
        assert not self.array.sched.nr_async_in_flight
        return free == self.lib.SS_ARRAY_REQUESTS and not any(self.counts().values())

    def place(self, chunk: int) -> tuple[Driver, int]:
        """Which member has this chunk of the array, and where."""
        at = self.ffi.new("struct ss_array_place *")
        geometry = self.ffi.addressof(self.array.geometry)
        self.lib.ss_array_map(geometry, chunk * CHUNK, 0, at)
        return self.members[at.member], int(at.sector)

    def read(self, chunk: int, sectors: int = CHUNK, **kind: bool) -> tuple[Driver, Any]:
        """Asks for the beginning of a chunk of the array."""
        member, sector = self.place(chunk)
        return member, member.send(0, sector, sectors, **kind)

    def serve(self, member: Driver, rq: Any, ms: float = 1) -> None:
        """As soon as the member may send it."""
        member.wait().dispatch(rq)
        self.at(member.now + ms)
        member.complete(rq)

    def follow(
        self,
        first: int,
        nr: int,
        *,
        service: float = 1,
        think: float = 0.1,
        step: int = 1,
        sectors: int = CHUNK,
        **kind: bool,
    ) -> int:
        """A reader of every @step-th chunk, one at a time; returns the one that comes next."""
        for chunk in range(first, first + nr * step, step):
            self.serve(*self.read(chunk, sectors, **kind), service)
            self.later(think)
        return first + nr * step

    def burden(self) -> None:
        """The rest has had the heads for so long that it interrupts nobody."""
        for i in range(40):
            member = self.members[i % len(self.members)]
            self.serve(member, member.send(0, FAR + i * 2**23), 15)

    def serve_all(self, ms: float = 5) -> None:
        """All that is pending and in flight, one after the other."""
        for _ in range(100_000):
            self.later(0.1)
            for member in self.members:
                while member.choose()[0] == "dispatch":
                    member.dispatch()
            busy = [member for member in self.members if member.at_disk]
            if not busy and not any(member.pending for member in self.members):
                return
            self.later(ms)
            for member in busy:
                member.complete()
        raise AssertionError("something is stuck")


@pytest.fixture
def pair(core: Core) -> ArrayDriver:
    return ArrayDriver(core)


def stream(arr: ArrayDriver, *, burden: bool = True) -> int:
    """A wide stream that has its turn; its next chunk."""
    if burden:
        arr.burden()
    chunk = arr.follow(0, 4 * len(arr.members))
    assert arr.in_turn() and arr.count("established") == 1
    return chunk


# ---- who has turns ----


@pytest.mark.parametrize("nr", [2, 3, 5, 8])
def test_a_stream_has_a_turn_when_it_is_long_enough_and_wide(core: Core, nr: int) -> None:
    """So many requests as make a stream, and each member has one that goes on from another."""
    arr = ArrayDriver(core, nr)
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
def test_turns_are_for_levels_that_keep_all_busy(
    core: Core, level: str, nr: int, has: bool
) -> None:
    arr = ArrayDriver(core, nr, level=level)
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
def test_writes_have_turns_where_somebody_waits(
    core: Core, level: str, sync: bool, has: bool
) -> None:
    # Of four in RAID 10 each two are mirrors.
    arr = ArrayDriver(core, 4 if level == "RAID10" else 3, level=level)
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


def test_a_stream_of_degraded_raid_5_has_turns(core: Core) -> None:
    """Nothing is asked of the failed member."""
    arr = ArrayDriver(core, 4, level="RAID5")
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


def test_the_slice_is_the_arrays(core: Core) -> None:
    """At its end all members go to what others want, then back to the stream."""
    wait_ms = 60
    pair = ArrayDriver(core, wait_target=wait_ms * 1_000_000)
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


def test_two_streams_have_turns_one_after_the_other(core: Core) -> None:
    """All members are at one of them at a time."""
    arr = ArrayDriver(core, 3, wait_target=60_000_000)
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


def test_who_goes_out_of_turn_wakes_the_others(core: Core) -> None:
    """A member with a request from before decides for itself: so it is the rest's turn."""
    pair = ArrayDriver(core, spec="stream:sptf")
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


def test_while_apart_members_decide_for_themselves(core: Core) -> None:
    """After four seconds of turns with idle members; what did no more is left again."""
    pair = ArrayDriver(core)
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


def test_when_apart_again_nothing_is_held(core: Core) -> None:
    """What waited for a turn is released, and who has it is kicked."""
    pair = ArrayDriver(core)
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


# ---- requests in no turn, and counts ----


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


def test_what_was_pending_before_attaching_is_sent(core: Core) -> None:
    """The member decides for itself until then."""
    pair = ArrayDriver(core, attach=False)
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
def test_a_member_without_streams_is_refused(core: Core, spec: str) -> None:
    pair = ArrayDriver(core, spec=spec, attach=False)
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


def test_a_request_of_another_array_is_not_known(core: Core) -> None:
    """In flight while its disk goes over to another array: nothing of the old one is touched."""
    old, new = ArrayDriver(core), ArrayDriver(core, attach=False)
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


# ---- placing heads ----


def placing(core: Core, nr: int = 3, **how: Any) -> tuple[ArrayDriver, int]:
    """A host that places heads, and a stream in its turn on idle disks; the next chunk."""
    arr = ArrayDriver(core, nr, **how)
    arr.array.places = True
    return arr, stream(arr, burden=False)


def wanted(arr: ArrayDriver, member: int) -> tuple[int, int] | None:
    """What the host is asked to read there: sector, length."""
    sector, nr = arr.ffi.new("uint64_t *"), arr.ffi.new("uint32_t *")
    if not arr.lib.ss_array_place(arr.array, member, sector, nr):
        return None
    return int(sector[0]), int(nr[0])


def seek(arr: ArrayDriver, chunk: int) -> int:
    """The chunk is read and the head had to move for it: 15 ms."""
    return arr.follow(chunk, 1, service=15)


def placed(arr: ArrayDriver, member: int, ms: float) -> int | None:
    """The host does what is wanted, if anything; it takes so long. Where was it?"""
    place = wanted(arr, member)
    if not place:
        return None
    rq = arr.members[member].send(0, *place, placing=True)
    assert wanted(arr, member) is None
    arr.serve(arr.members[member], rq, ms)
    return place[0]


def test_heads_are_placed_when_one_had_to_move(core: Core) -> None:
    """All others are kicked, and read where the stream comes to next on each."""
    arr, chunk = placing(core)
    assert chunk % 3 == 0 and not any(wanted(arr, i) for i in range(3))
    member, rq = arr.read(chunk)
    member.dispatch(rq)
    arr.kicked.clear()
    arr.later(15)
    member.complete(rq)
    assert sorted(arr.kicked) == [1, 2]
    row = chunk // 3 * CHUNK
    assert [wanted(arr, i) for i in range(3)] == [None, (row, CHUNK), (row, CHUNK)]


def test_who_is_busy_is_not_placed(core: Core) -> None:
    arr, chunk = placing(core)
    arr.members[1].dispatch(arr.read(chunk + 1)[1])
    arr.serve(*arr.read(chunk), 15)
    assert wanted(arr, 1) is None and wanted(arr, 2)


def test_what_came_from_the_cache_is_placed_farther(core: Core) -> None:
    """Until the head has moved; but not farther than the stream soon comes."""
    arr, chunk = placing(core)
    seek(arr, chunk)
    row = chunk // 3 * CHUNK
    assert [placed(arr, 1, ms) for ms in (0.3, 12)] == [row, row + CHUNK]
    assert wanted(arr, 1) is None
    reads = list(iter(lambda: placed(arr, 2, 0.3), None))
    assert reads == [row + n * CHUNK for n in range(len(reads))]
    assert 1 < len(reads) < 10


def test_one_placing_read_at_a_time(core: Core) -> None:
    """Also where the host would send more: the head is on its way."""
    arr, chunk = placing(core)
    seek(arr, chunk)
    sector, nr = wanted(arr, 1) or (0, 0)
    rq = arr.members[1].send(0, sector, nr, placing=True)
    assert wanted(arr, 1) is None
    arr.members[1].dispatch(rq)
    assert wanted(arr, 1) is None
    arr.later(0.3)
    arr.kicked.clear()
    arr.members[1].complete(rq)
    assert arr.kicked == [1] and wanted(arr, 1) == (sector + nr, nr)
    rq = arr.members[1].send(0, sector + nr, nr, placing=True)
    arr.members[1].remove(rq)
    assert wanted(arr, 1) == (sector + nr, nr)
    assert arr.is_empty()


def test_placing_is_no_part_of_the_stream(core: Core) -> None:
    """Neither its place nor what it moved changes: its next request is still its own."""
    arr, chunk = placing(core)
    chunk = seek(arr, chunk)
    before = arr.turn(), arr.array.sched.counters.arrivals
    assert placed(arr, 1, 12) is not None
    after = arr.turn(), arr.array.sched.counters.arrivals
    assert after == before
    arr.follow(chunk, 3)
    assert arr.count("established") == 1 and arr.in_turn()


def test_heads_are_placed_for_readers_and_hosts_that_want_it(core: Core) -> None:
    arr, chunk = placing(core)
    arr.follow(chunk, 1, service=15, write=True, sync=True)
    assert not any(wanted(arr, i) for i in range(3))
    arr, chunk = placing(core)
    arr.array.places = False
    arr.kicked.clear()
    seek(arr, chunk)
    assert not {1, 2} & set(arr.kicked) and not any(wanted(arr, i) for i in range(3))


def test_next_turn_places_where_the_drives_ran_out_before(core: Core) -> None:
    """Not at once: reading on would drive out of the cache what is still to be read."""
    arr, chunk = placing(core)
    assert arr.array.ahead_sectors == 2**64 - 1
    come = chunk * CHUNK - arr.array.turn_begin
    chunk = seek(arr, chunk)
    assert arr.array.ahead_sectors == come
    # Others have their turn, and then the stream once more.
    other = arr.members[0].send(0, FAR)
    arr.serve(arr.members[0], other, 10)
    assert not arr.in_turn()
    begin = chunk
    while not any(wanted(arr, i) for i in range(3)):
        assert (chunk - begin) * CHUNK <= come
        chunk = arr.follow(chunk, 1)
    assert (chunk - 1 - begin) * CHUNK == come


def test_a_member_that_returns_is_placed_again(core: Core) -> None:
    """Its placing read was done while it was not attached."""
    arr, chunk = placing(core)
    chunk = seek(arr, chunk)
    place = wanted(arr, 1)
    assert place
    rq = arr.members[1].send(0, *place, placing=True)
    arr.members[1].dispatch(rq)
    arr.detach(1)
    arr.later(1)
    arr.members[1].complete(rq)
    assert arr.attach(1) == 0
    chunk = arr.follow(chunk, 2)
    seek(arr, chunk)
    assert wanted(arr, 2)
    assert wanted(arr, 1)


def test_nothing_is_placed_beyond_the_array(core: Core) -> None:
    """Where the stream is about to end there is less to be read than it soon comes to."""
    rows = 6
    arr, chunk = placing(core, rows=rows)
    chunk = arr.follow(chunk, 3)
    assert chunk == 3 * (rows - 1)
    seek(arr, chunk)
    reads = list(iter(lambda: placed(arr, 2, 0.3), None))
    assert reads
    assert max(reads) + CHUNK <= rows * CHUNK


# ---- at random ----


class Steps:
    """Readers and others at random on a random array; members come and go."""

    def __init__(self, core: Core, seed: int, *, eager: bool = False) -> None:
        self.dice = dice = random.Random(seed)
        nr = dice.choice((2, 3, 5, 8, 32))
        spec = dice.choice(("stream:noop", "stream:deadline", "stream:sptf"))
        level = "RAID5" if nr > 2 and dice.random() < 0.3 else "RAID0"
        target = dice.choice((10, 124, 500)) * 1_000_000
        self.depth = dice.choice((1, 1, 4))
        self.eager = eager
        self.arr = ArrayDriver(core, nr, spec, level=level, wait_target=target)
        self.arr.array.places = dice.random() < 0.5
        self.places = [dice.randrange(8) * 2**20 for _ in range(4)]
        self.due: list[tuple[float, int, Any]] = []
        self.wake = [0.0] * nr
        self.arrived = self.gone = self.idle = 0

    def ask(self, i: int) -> None:
        arr, member = self.arr, self.arr.members[i]
        place = wanted(arr, i)
        if place and self.dice.random() < 0.8:
            member.send(0, *place, placing=True)
            self.arrived += 1
        while len(member.at_disk) < self.depth:
            verdict, *rest = member.choose()
            after = bytes(arr.ffi.buffer(arr.array))
            assert member.choose() == (verdict, *rest)
            assert bytes(arr.ffi.buffer(arr.array)) == after, "asking twice changed something"
            if verdict == "dispatch":
                rq = member.dispatch(rest[0])
                self.due.append((member.now + self.dice.choice((0.3, 1, 12)), i, rq))
                continue
            if verdict == "wait" and rest[0] is not FOREVER:
                self.wake[i] = rest[0]
            break

    def arrives(self) -> None:
        dice, arr = self.dice, self.arr
        self.arrived += 1
        if dice.random() < 0.75:
            which = dice.randrange(4)
            i = arr.members.index(arr.read(self.places[which])[0])
            self.places[which] += 1
        else:
            i = dice.randrange(len(arr.members))
            kind = {"write": dice.random() < 0.3, "sync": dice.random() < 0.5}
            sector = dice.choice((dice.randrange(FAR), MEMBER + dice.randrange(FAR)))
            arr.members[i].send(0, sector, dice.choice((8, 128, 300)), **kind)
        self.ask(i)

    def changes(self) -> None:
        """A member leaves or returns, or one of its requests is taken back or grows."""
        dice, arr = self.dice, self.arr
        i = dice.randrange(len(arr.members))
        member = arr.members[i]
        if dice.random() < 0.3:
            arr.detach(i)
            self.ask(i)
        elif not arr.array.attached & (1 << i):
            assert arr.attach(i) == 0
        elif member.pending and dice.random() < 0.5:
            member.remove(dice.choice(member.pending))
            self.gone += 1
        elif member.pending:
            member.merge(dice.choice(member.pending))
        elif dice.random() < 0.5:
            member.flushes(begins=True)
            member.flushes(begins=False)
        self.ask(i)

    def time_passes(self, may_stop: bool) -> None:
        """To the next completion or the end of a wait."""
        arr = self.arr
        times = [t for t, _, _ in self.due]
        times += [w for i, w in enumerate(self.wake) if w and arr.members[i].pending]
        assert times or may_stop, "nothing will ever happen"
        if times:
            arr.at(min(times))
        now = arr.now + 1e-6
        self.idle += 1
        for i in range(len(arr.members) if self.eager else 0):
            self.ask(i)
        self.asks_kicked()
        for done in sorted([d for d in self.due if d[0] <= now], key=lambda d: d[:2]):
            self.due.remove(done)
            arr.members[done[1]].complete(done[2])
            self.gone += 1
            self.idle = 0
            self.ask(done[1])
        for i, at in enumerate(self.wake):
            if at and at <= now:
                self.wake[i] = 0.0
                self.ask(i)
        assert self.idle < 20000, "waits again and again"

    def asks_kicked(self) -> None:
        while self.arr.kicked:
            self.ask(self.arr.kicked.pop())

    def run(self) -> None:
        arr, left = self.arr, 250
        while left or self.due or any(member.pending for member in arr.members):
            if left and self.dice.random() < 0.6:
                left -= 1
                self.arrives()
            elif left and self.dice.random() < 0.1:
                self.changes()
            else:
                self.time_passes(left > 0)
            self.asks_kicked()
            arr.counts()
            self.nobody_is_missed()
        assert self.gone == self.arrived
        assert arr.is_empty()
        assert all(member.choose() == ("nothing",) for member in arr.members)

    def nobody_is_missed(self) -> None:
        """Who was asked when time passed and could send something now has been kicked."""
        for member in self.arr.members if self.eager else ():
            if len(member.at_disk) < self.depth and member.pending:
                assert member.choose()[0] == "wait"
        assert not self.eager or not self.arr.kicked


@pytest.mark.property
@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_lost_or_stuck(core: Core, seed: int) -> None:
    Steps(core, seed).run()


@pytest.mark.property
def test_who_may_send_something_is_asked(core: Core) -> None:
    """Nobody could send something, asked at this moment once more, without a kick."""
    for seed in (*range(20), 44, 75, 84):
        Steps(core, seed, eager=True).run()
