# SPDX-License-Identifier: GPL-2.0-only
"""The coordinator of an array's members, step by step (paper, 2.2), and under random events."""

from __future__ import annotations

import random
from typing import Any

import pytest
from policy_driver import FAR, FOREVER, Driver

Core = tuple[Any, Any]

CHUNK = 128
THRESHOLD = 4  # stream_threshold's default, for each member


class ArrayDriver:
    """Members under one clock, in ms, attached to a coordinator of RAID 0."""

    def __init__(
        self,
        core: Core,
        nr: int = 2,
        spec: str = "stream:noop",
        *,
        attach: bool = True,
        chunk: int = CHUNK,
        **tun: int,
    ) -> None:
        self.ffi, self.lib = core
        self.members = [Driver(core, spec, **tun) for _ in range(nr)]
        geometry = self.ffi.new("struct ss_array_geometry *")
        geometry.level, geometry.nr_members = self.lib.SS_ARRAY_RAID0, nr
        geometry.chunk_sectors = chunk
        for i in range(nr):
            geometry.member_sectors[i] = 2**31
        self.why = self.ffi.new("char[160]")
        assert self.lib.ss_array_geometry_init(geometry, self.why, 160) == 0
        self.array = self.ffi.new("struct ss_array *")
        self.kicked: list[int] = []
        self.locked = 0
        self._callbacks(core[0])
        self.lib.ss_array_init(self.array, geometry)
        self.trust()
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

    def trust(self) -> None:
        """Without the comparison of throughputs, which takes time: turns are allowed."""
        self.array.trial.allowed = self.array.trial.judged = True
        self.array.trial.left_ns = 2**63
        # Nothing is measured apart: any stream promises more.
        self.array.trial.settle_ns = 2**63

    def attach(self, member: int) -> int:
        sched = self.members[member].sched
        return int(self.lib.ss_array_attach(self.array, member, sched, self.why, 160))

    def sentence(self) -> str:
        return str(self.ffi.string(self.why).decode())

    def at(self, ms: float) -> None:
        for member in self.members:
            member.at(ms)

    def later(self, ms: float) -> None:
        self.at(self.members[0].now + ms)

    def count(self, counter: str) -> int:
        counters = self.ffi.new("struct ss_array_counters *")
        self.lib.ss_array_counters(self.array, counters)
        return int(getattr(counters, counter))

    def in_turn(self) -> bool:
        end, since = self.ffi.new("uint64_t *"), self.ffi.new("uint64_t *")
        return bool(self.lib.ss_array_turn(self.array, end, since))

    def read(self, chunk: int, base: int = 0) -> tuple[Driver, Any]:
        """A chunk of the array is asked for, base sectors into each member."""
        member = self.members[chunk % len(self.members)]
        return member, member.send(0, base + chunk // len(self.members) * CHUNK, CHUNK)

    def follow(self, first: int, nr: int, *, service: float = 1, think: float = 0.1) -> int:
        """A reader of @nr chunks, one at a time, each served as soon as it comes."""
        for chunk in range(first, first + nr):
            member, rq = self.read(chunk)
            member.wait().dispatch(rq)
            self.at(member.now + service)
            member.complete(rq)
            self.later(think)
        return first + nr


@pytest.fixture
def pair(core: Core) -> ArrayDriver:
    return ArrayDriver(core)


def usable(pair: ArrayDriver) -> int:
    """A stream that has become usable, on idle disks; the next chunk."""
    chunk = pair.follow(0, 2 * THRESHOLD)
    assert pair.count("established") == 1
    return chunk


def test_a_stream_is_usable_when_every_member_has_its_own(pair: ArrayDriver) -> None:
    pair.follow(0, 2 * THRESHOLD - 1)
    assert (pair.count("established"), pair.in_turn()) == (0, False)
    pair.read(2 * THRESHOLD - 1)
    assert (pair.count("established"), pair.in_turn()) == (1, True)


def test_a_reader_of_one_member_is_never_usable(pair: ArrayDriver) -> None:
    for chunk in range(0, 40, 2):
        member, rq = pair.read(chunk)
        member.dispatch(rq)
        pair.later(1)
        member.complete(rq)
    assert pair.count("established") == 0


def test_response_times_in_between_are_taken_off(core: Core) -> None:
    """Served late by the other member, 60 ms each time, far more than any seek: still its own."""
    pair = ArrayDriver(core)
    pair.follow(0, 2 * THRESHOLD, service=60, think=0.1)
    assert pair.count("established") == 1
    # As long a think time is not the other member's doing.
    pair = ArrayDriver(core)
    pair.follow(0, 4 * THRESHOLD, service=1, think=60)
    assert pair.count("established") == 0


def test_pieces_of_one_request_count_once(pair: ArrayDriver) -> None:
    for chunk in range(64):
        pair.read(chunk)
    assert pair.count("established") == 0


@pytest.mark.parametrize("sent", [True, False])
def test_who_is_awaited_later_is_counted_as_he_came(pair: ArrayDriver, sent: bool) -> None:
    """Merged with a read that somebody waits for, what is read ahead is awaited, too."""
    member = pair.members[0]
    rq = member.send(0, 0, CHUNK, ahead=True)
    member.merge(rq)
    assert not rq.flags & pair.lib.SS_AHEAD
    if sent:
        member.dispatch(rq)
        member.complete(rq)
    else:
        member.remove(rq)
    assert (pair.array.nr_awaited, pair.array.member[0].nr_awaited) == (0, 0)


def test_in_a_turn_a_member_waits_for_its_share(pair: ArrayDriver) -> None:
    chunk = usable(pair)
    assert chunk % 2 == 0
    other = pair.members[1].send(0, FAR)
    member, rq = pair.read(chunk)
    member.dispatch(rq)
    assert pair.in_turn()
    # By itself member 1 would have given up by now; but the array is at work for it.
    for _ in range(5):
        assert pair.members[1].choose()[0] == "wait"
        pair.later(5)
    member.complete(rq)
    pair.later(0.1)
    _, second = pair.read(chunk + 1)
    assert pair.members[1].choose() == ("dispatch", second)
    assert other in pair.members[1].pending


def test_when_a_turn_begins_the_others_are_asked_again(pair: ArrayDriver) -> None:
    chunk = usable(pair)
    pair.later(1000)
    pair.lib.ss_array_detach(pair.array, 0, pair.members[0].now_ns)
    assert 1 in pair.kicked
    assert not pair.in_turn()
    assert chunk


@pytest.mark.parametrize("detach", [False, True])
def test_a_clock_read_before_another_came_is_no_step_back(pair: ArrayDriver, detach: bool) -> None:
    """What a member takes back at 5 ms is over when the other, which read 4.9 ms, comes."""
    pair.follow(0, 2)
    pair.at(4.9)
    member, rq = pair.read(2)
    member.at(5)
    if detach:
        pair.lib.ss_array_detach(pair.array, 0, member.now_ns)
    else:
        member.remove(rq)
    assert pair.members[1].now < member.now
    pair.read(3)
    assert [stream.size for stream in pair.array.stream if stream.size] == [4]


# ---- heads together or apart: the trial ----


class Trial:
    """A busy array's, in ms; so much is done in each."""

    def __init__(self, core: Core) -> None:
        self.ffi, self.lib = core
        self.trial = self.ffi.new("struct ss_array_trial *")
        self.lib.ss_array_trial_init(self.trial)
        self.ms = 0

    def go(self, ms: int, together: bool, sectors: int) -> int:
        """How long the ways that are allowed stay as they are, @ms at most."""
        allowed = self.trial.allowed
        for done in range(1, ms + 1):
            self.ms += 1
            self.lib.ss_array_trial_event(self.trial, self.ms * 10**6, True, together)
            self.lib.ss_array_trial_moved(self.trial, sectors, together)
            if self.trial.allowed != allowed:
                return done
        return ms


def together_won(core: Core, sectors: int) -> Trial:
    """Apart does 100 sectors in a ms, turns do @sectors."""
    trial = Trial(core)
    trial.go(101, False, 100)
    trial.go(302, True, sectors)
    assert trial.trial.allowed and trial.trial.verdicts == 1 and not trial.trial.refusals
    return trial


def test_a_clear_result_is_believed_for_longer(core: Core) -> None:
    assert 4_900 < together_won(core, 140).go(30_000, True, 140) < 5_100
    assert 19_900 < together_won(core, 160).go(30_000, True, 160) < 20_100


def test_a_trial_ends_when_it_has_lost_its_stake(core: Core) -> None:
    """90 ms at first: of a tenth of the throughput, after 100."""
    trial = Trial(core)
    trial.go(101, False, 100)
    assert 90 < trial.go(1_000, True, 10) < 110
    assert not trial.trial.allowed and trial.trial.refusals == 1


def test_turns_that_do_less_than_what_they_won_with_are_looked_at(core: Core) -> None:
    """Half of it: something else is asked for. A little less is not that."""
    trial = together_won(core, 300)
    assert trial.go(30_000, True, 200) > 19_900
    trial = together_won(core, 300)
    assert trial.go(30_000, True, 105) < 5_000
    assert not trial.trial.allowed and not trial.trial.refusals


def test_what_is_left_in_caches_does_not_speak_for_apart(core: Core) -> None:
    """For half a second after turns; then apart is measured, and what turns do is known."""
    trial = together_won(core, 140)
    trial.go(30_000, True, 140)
    assert not trial.trial.allowed
    trial.go(499, False, 1000)
    assert 290 < trial.go(1000, False, 100) < 320
    assert trial.trial.allowed and trial.trial.judged and trial.trial.verdicts == 2
    assert not trial.trial.refusals


def test_apart_is_kept_where_it_has_become_faster(core: Core) -> None:
    trial = together_won(core, 140)
    trial.go(30_000, True, 140)
    trial.go(900, False, 200)
    assert not trial.trial.allowed and trial.trial.refusals == 1


def test_apart_is_left_early_where_it_does_less_than_turns_did(core: Core) -> None:
    """It won by what it did then; when it no longer does, turns are tried again."""
    trial = Trial(core)
    trial.go(101, False, 140)
    assert trial.trial.allowed
    trial.go(301, True, 120)
    assert not trial.trial.allowed and trial.trial.refusals == 1
    assert trial.go(3_000, False, 130) >= 2_999
    assert trial.go(3_000, False, 50) < 1_000
    assert trial.trial.allowed


# ---- placing heads ----


def placing(core: Core, nr: int = 3) -> tuple[ArrayDriver, int]:
    """A host that places heads, and a stream in its turn on idle disks; the next chunk."""
    arr = ArrayDriver(core, nr)
    arr.array.places = True
    chunk = arr.follow(0, 2 * nr * THRESHOLD)
    assert arr.in_turn()
    return arr, chunk


def wanted(arr: ArrayDriver, member: int) -> tuple[int, int] | None:
    """What the host is asked to read there: sector, length."""
    sector, nr = arr.ffi.new("uint64_t *"), arr.ffi.new("uint32_t *")
    if not arr.lib.ss_array_place(arr.array, member, sector, nr):
        return None
    return int(sector[0]), int(nr[0])


def seek(arr: ArrayDriver, chunk: int) -> int:
    """The chunk is read and the head had to move for it: 15 ms."""
    return arr.follow(chunk, 1, service=15)


def test_heads_are_placed_when_one_had_to_move(core: Core) -> None:
    """All others are kicked, and read where the stream comes to next on each."""
    arr, chunk = placing(core)
    assert chunk % 3 == 0 and not any(wanted(arr, i) for i in range(3))
    arr.kicked.clear()
    chunk = seek(arr, chunk)
    assert sorted(arr.kicked) == [1, 2]
    row = chunk // 3 * CHUNK
    assert [wanted(arr, i) for i in range(3)] == [None, (row, CHUNK), (row, CHUNK)]


def placed(arr: ArrayDriver, member: int, ms: float) -> int | None:
    """The host does what is wanted, if anything; it takes so long. Where was it?"""
    place = wanted(arr, member)
    if not place:
        return None
    sector, nr = place
    driver = arr.members[member]
    rq = driver.send(0, sector, nr, placing=True)
    driver.dispatch(rq)
    assert wanted(arr, member) is None
    arr.later(ms)
    driver.complete(rq)
    return sector


def test_what_came_from_the_cache_is_placed_farther(core: Core) -> None:
    """Until the head has moved; but not farther than the stream soon comes."""
    arr, chunk = placing(core)
    seek(arr, chunk)
    row = chunk // 3 * CHUNK
    assert [placed(arr, 1, 0.3) for _ in range(2)] == [row, row + CHUNK]
    assert placed(arr, 1, 12) == row + 2 * CHUNK
    assert wanted(arr, 1) is None
    reads = list(iter(lambda: placed(arr, 2, 0.3), None))
    assert reads == [row + n * CHUNK for n in range(len(reads))]
    assert len(reads) == 5


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
    arr.members[1].complete(rq)
    assert wanted(arr, 1) == (sector + nr, nr)


def test_placing_is_no_part_of_the_stream(core: Core) -> None:
    """Neither its place nor what it moved changes: its next request is still its own."""
    arr, chunk = placing(core)
    chunk = seek(arr, chunk)
    end, since = arr.ffi.new("uint64_t *"), arr.ffi.new("uint64_t *")
    assert arr.lib.ss_array_turn(arr.array, end, since)
    before = int(end[0]), arr.array.trial.together.sectors
    placed(arr, 1, 12)
    assert arr.lib.ss_array_turn(arr.array, end, since)
    assert (int(end[0]), arr.array.trial.together.sectors) == before
    arr.follow(chunk, 3)
    assert arr.count("established") == 1 and arr.in_turn()


@pytest.mark.parametrize(("ms", "learned"), [(0.1, 0), (12, 1)])
def test_a_stream_that_goes_on_from_the_cache_teaches_nothing(
    pair: ArrayDriver, ms: float, learned: int
) -> None:
    """However many others were served since: its drive may have read ahead. A seek does teach."""
    base, member = 2**28, pair.members[0]
    for chunk in range(4):
        pair.read(chunk, base)[0].serve()
        pair.later(0.1)
    others = [member.send(0, (50 - i) * 2**20, 8) for i in range(40)]
    own = pair.read(4, base)[1]
    for other in others:
        member.wait().serve(other, ms=15)
    buckets = member.sched.curve.bucket
    before = [bucket.samples for bucket in buckets]
    member.wait().serve(own, ms=ms)
    assert sum(bucket.samples for bucket in buckets) - sum(before) == learned


def test_heads_are_placed_for_sequential_readers_alone(core: Core) -> None:
    """Not for writes, not where a chunk is long, not before the host says it would do it."""
    arr, chunk = placing(core)
    arr.members[0].send(0, chunk // 3 * CHUNK, CHUNK, write=True, sync=True)
    arr.members[0].serve(ms=15)
    assert not any(wanted(arr, i) for i in range(3))
    arr, chunk = placing(core)
    arr.array.places = False
    seek(arr, chunk)
    assert not any(wanted(arr, i) for i in range(3))
    arr, chunk = placing(core)
    seek(arr, chunk)
    arr.array.turn.alone.ns *= 1000
    assert not any(wanted(arr, i) for i in range(3))


def test_next_turn_places_where_the_drives_ran_out_before(core: Core) -> None:
    """Not at once: reading on would drive out of the cache what is still to be read."""
    arr, chunk = placing(core)
    assert arr.array.ahead_sectors == 2**64 - 1
    come = chunk // 3 * CHUNK - arr.array.member[0].turn_sector
    seek(arr, chunk)
    assert arr.array.ahead_sectors == come


@pytest.mark.parametrize(("think", "least", "most"), [(0.1, 2, 2.1), (1, 8, 8.1), (4, 11, 30)])
def test_a_stream_that_ends_is_waited_for_as_its_pauses_were(
    pair: ArrayDriver, think: float, least: float, most: float
) -> None:
    """Eight times as long as the longest, 2 ms at least; at most as what is left for it costs."""
    chunk = pair.follow(0, 2 * THRESHOLD, think=think)
    other = pair.members[1].send(0, FAR)
    member, rq = pair.read(chunk)
    member.dispatch(rq)
    pair.later(1)
    member.complete(rq)
    began = pair.members[1].now
    while pair.members[1].choose()[0] == "wait":
        pair.at(pair.members[1].choose()[1])
    assert pair.members[1].choose() == ("dispatch", other)
    assert least <= pair.members[1].now - began <= most
    pair.members[1].dispatch(other)
    assert not pair.in_turn()
    assert pair.members[1].count("timeouts") >= 1


def test_a_stream_that_was_not_waited_for_is_not_forgotten(pair: ArrayDriver) -> None:
    """It pauses for longer than before, for once: its next request is its own."""
    chunk = usable(pair)
    other = pair.members[1].send(0, FAR)
    member, rq = pair.read(chunk)
    member.dispatch(rq)
    pair.later(1)
    member.complete(rq)
    pair.later(4)
    pair.members[1].dispatch(other)
    assert not pair.in_turn()
    pair.read(chunk + 1)
    assert pair.count("established") == 1
    assert max(stream.size for stream in pair.array.stream) == chunk + 2


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_a_stream_works_on_as_many_members_as_have_something_of_it(
    core: Core, at_once: int
) -> None:
    """Not on all that it has come to while it asked for ever more."""
    arr = ArrayDriver(core, 4)
    under_way = []
    for chunk in range(2000):
        under_way.append(arr.read(chunk))
        if len(under_way) < at_once:
            continue
        member, rq = under_way.pop(0)
        member.dispatch(rq)
        arr.later(1)
        member.complete(rq)
    stream = max(arr.array.stream, key=lambda one: one.size)
    assert stream.spread / 8 == pytest.approx(at_once, abs=1)
    # 64 KiB in what the curve says for them.
    transfer_ns = arr.members[0].sched.curve.transfer_ps * CHUNK / 1000
    rate = stream.alone.sectors / stream.alone.ns
    assert rate == pytest.approx(at_once * CHUNK / transfer_ns, rel=0.25)


def test_the_slice_is_the_arrays(core: Core) -> None:
    """At its end each member with others' requests sends one before the stream can go on."""
    slice_ms = 30
    pair = ArrayDriver(core, wait_target=slice_ms * 1_000_000)
    chunk = usable(pair)
    began = pair.members[0].now
    others = [member.send(0, FAR + 8 * i) for i, member in enumerate(pair.members)]
    while pair.members[0].now - began < 3 * slice_ms:
        member, rq = pair.read(chunk)
        if member.choose()[1] in others:
            break
        member.dispatch(rq)
        pair.later(1)
        member.complete(rq)
        pair.later(0.1)
        chunk += 1
    assert slice_ms <= pair.members[0].now - began <= 2 * slice_ms + 2
    assert member.choose()[1] in others
    member.serve(ms=10)
    assert pair.count("slices_ended") == 1
    third = next(m for m in pair.members if m is not member)
    assert third.choose()[1] in others


def test_waiting_that_does_not_pay_is_given_up_once(core: Core) -> None:
    """Each member waits longer than a seek for its share, whenever it is the stream's turn."""
    pair = ArrayDriver(core, wait_target=10_000_000_000)
    chunk = usable(pair)
    for member in pair.members:
        for i in range(400):
            member.send(0, FAR + 1000 * i)
    for _ in range(300):
        member, rq = pair.read(chunk)
        chunk += 1
        for _ in range(1000):
            verdict, *rest = member.choose()
            if verdict == "dispatch" and rest[0] == rq:
                break
            if verdict == "wait":
                pair.at(rest[0])
                continue
            member.serve(ms=8)
            pair.at(member.now)
        member.dispatch(rq)
        pair.later(45)
        member.complete(rq)
        pair.later(0.1)
        if pair.count("unusable"):
            break
    assert pair.count("unusable") == 1
    assert not pair.in_turn()
    assert pair.count("established") == 1


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
    chunk = usable(pair)
    pair.members[0].send(0, FAR)
    member, rq = pair.read(chunk)
    member.dispatch(rq)
    _, waiting = pair.read(chunk + 2)
    pair.lib.ss_array_detach(pair.array, 0, pair.members[0].now_ns)
    assert pair.array.attached == 0b10
    pair.lib.ss_array_detach(pair.array, 0, pair.members[0].now_ns)
    assert pair.attach(0) == 0
    # What came before counts for nothing, and is served like all else.
    pair.later(1)
    member.complete(rq)
    assert pair.array.nr_busy == 0
    for _ in range(2):
        while member.choose()[0] == "wait":
            pair.at(member.choose()[1])
        member.serve()
    assert waiting not in member.pending
    assert member.choose() == ("nothing",)
    pair.at(member.now)
    assert pair.follow(chunk + 2, 4 * THRESHOLD)
    assert pair.count("established") == 2


def test_a_request_of_another_array_is_not_known(core: Core) -> None:
    """In flight while its disk goes over to another array: nothing of the old one is touched."""
    old, new = ArrayDriver(core), ArrayDriver(core, attach=False)
    chunk = usable(old)
    member, rq = old.read(chunk)
    member.dispatch(rq)
    new.members = old.members
    for i, one in enumerate(old.members):
        old.lib.ss_array_detach(old.array, i, one.now_ns)
        assert new.attach(i) == 0
    old.later(1)
    before = bytes(old.ffi.buffer(old.array))
    member.complete(rq)
    assert bytes(old.ffi.buffer(old.array)) == before
    assert (old.array.nr_busy, new.array.nr_busy) == (0, 0)


def test_the_arrays_time_does_not_go_back(pair: ArrayDriver) -> None:
    """A member read the clock, and came in after another one with a later time."""
    chunk = usable(pair)
    first, second = pair.read(chunk)[0], pair.members[(chunk + 1) % 2]
    first.dispatch()
    first.later(5)
    first.complete()
    second.later(1)
    pair.read(chunk + 1)
    (stream,) = [s for s in pair.array.stream if s.size]
    # What it would do by itself is a matter of ms, not of all time.
    assert stream.alone.ns < 10**9
    assert pair.in_turn()


def test_a_member_that_nothing_is_asked_of_keeps_nobody(core: Core) -> None:
    """As md does with a failed one: its chunks are read from the others."""
    trio = ArrayDriver(core, 3)
    chunk = trio.follow(0, 1)
    trio.later(500)
    for chunk in range(3, 3 * 200):
        if chunk % 3 == 0:
            continue
        member, rq = trio.read(chunk)
        member.dispatch(rq)
        trio.later(1)
        member.complete(rq)
        trio.later(0.1)
        if trio.count("established"):
            break
    # 64 for each of the three.
    assert trio.count("established") == 1
    assert 190 < chunk * 2 / 3 < 200


def test_a_member_whose_turn_has_not_come_is_one_in_use(core: Core) -> None:
    """4 KiB at a time, of chunks of 1 MiB, so that nothing comes to it for 512 requests."""
    chunk = 2048
    arr = ArrayDriver(core, 3, chunk=chunk)
    for member in arr.members:
        for sector in range(0, chunk, 8):
            assert arr.count("established") == 0
            rq = member.send(0, sector)
            member.dispatch(rq)
            arr.later(0.1)
            member.complete(rq)
            if member is arr.members[2] and sector == 8 * (THRESHOLD - 1):
                assert arr.count("established") == 1
                return
    raise AssertionError("no stream")


def test_mirrors_without_stripes_schedule_by_themselves(core: Core) -> None:
    pair = ArrayDriver(core)
    pair.array.geometry.level = pair.lib.SS_ARRAY_RAID10
    assert (
        pair.lib.ss_array_geometry_init(pair.ffi.addressof(pair.array.geometry), pair.why, 160) == 0
    )
    for chunk in range(60):
        member = pair.members[0]
        member.serve(member.send(0, chunk * CHUNK, CHUNK))
    assert pair.count("established") == 0


def test_members_try_by_themselves_while_there_are_no_turns(pair: ArrayDriver) -> None:
    """Whether an array leads is what their own trials ask."""
    member = pair.members[0]
    leads = member.sched.coordinator.ops.leads
    assert not leads(member.sched.coordinator, member.now_ns)
    pair.read(usable(pair))
    assert pair.in_turn()
    assert leads(member.sched.coordinator, member.now_ns)


def test_writes_that_nobody_waits_for_are_of_no_stream(pair: ArrayDriver) -> None:
    for chunk in range(40):
        member = pair.members[chunk % 2]
        rq = member.send(0, chunk // 2 * CHUNK, CHUNK, write=True)
        member.dispatch(rq)
        pair.later(1)
        member.complete(rq)
    assert pair.count("established") == 0


def random_steps(core: Core, seed: int) -> None:
    """Readers and others at random on a random array; members come and go."""
    dice = random.Random(seed)
    nr = dice.choice((2, 3, 5, 8, 32))
    spec = dice.choice(("stream:noop", "stream:deadline", "stream:sptf"))
    depth = dice.choice((1, 1, 4))
    arr = ArrayDriver(core, nr, spec, wait_target=dice.choice((10, 124, 500)) * 1_000_000)
    if dice.random() < 0.3:
        arr.array.trial.judged = False
        arr.array.trial.left_ns = 10_000_000
    places = [dice.randrange(8) * 2**24 // CHUNK * nr for _ in range(4)]
    due: list[tuple[float, int, Any]] = []
    wake = [0.0] * nr
    arrived = served = 0

    def ask(i: int) -> None:
        nonlocal served
        member = arr.members[i]
        while len(member.at_disk) < depth:
            before = bytes(arr.ffi.buffer(arr.array))
            verdict, *rest = member.choose()
            assert bytes(arr.ffi.buffer(arr.array)) == before, "the question changed something"
            if verdict == "dispatch":
                rq = member.dispatch(rest[0])
                due.append((member.now + dice.choice((0.3, 1, 12)), i, rq))
                continue
            if verdict == "wait" and rest[0] is not FOREVER:
                wake[i] = rest[0]
            break

    left = 250
    idle = 0
    while left or due or any(member.pending for member in arr.members):
        if left and dice.random() < 0.6:
            left -= 1
            arrived += 1
            if dice.random() < 0.75:
                which = dice.randrange(4)
                i = arr.members.index(arr.read(places[which])[0])
                places[which] += 1
            else:
                i = dice.randrange(nr)
                kind = {"write": dice.random() < 0.3, "sync": dice.random() < 0.5}
                arr.members[i].send(0, dice.randrange(FAR), dice.choice((8, 128)), **kind)
            ask(i)
        elif left and dice.random() < 0.02:
            i = dice.randrange(nr)
            arr.lib.ss_array_detach(arr.array, i, arr.members[i].now_ns)
            assert arr.attach(i) == 0
        else:
            times = [t for t, _, _ in due]
            times += [w for i, w in enumerate(wake) if w and arr.members[i].pending]
            assert times or left, "nothing will ever happen"
            if times:
                arr.at(min(times))
            now = arr.members[0].now
            idle += 1
            for done in sorted([d for d in due if d[0] <= now + 1e-6], key=lambda d: d[:2]):
                due.remove(done)
                arr.members[done[1]].complete(done[2])
                served += 1
                idle = 0
                ask(done[1])
            for i, at in enumerate(wake):
                if at and at <= now + 1e-6:
                    wake[i] = 0.0
                    ask(i)
            assert idle < 20000, "waits again and again"
        while arr.kicked:
            ask(arr.kicked.pop())
    assert served == arrived
    assert arr.array.nr_busy == 0
    assert all(member.choose() == ("nothing",) for member in arr.members)


@pytest.mark.property
@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_lost_or_stuck(core: Core, seed: int) -> None:
    random_steps(core, seed)
