# SPDX-License-Identifier: GPL-2.0-only
"""What nobody waits for: write-back, and metadata that is read ahead of its need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from policy_driver import Driver

Core = tuple[Any, Any]

MS = 1_000_000
NEXT_MS, FAR_MS = 0.7, 13.0  # what the disk needs for what goes on at the head, and else
APART = 200_000_000  # sectors
STREAM, OTHER, NOBODY = 1, 2, 100
ENDS = pytest.mark.parametrize("front", (False, True), ids=("back", "front"))
KINDS = pytest.mark.parametrize("kind", ({"write": True}, {"ahead": True}), ids=("write", "ahead"))


def readers(d: Driver, nr: int) -> Iterator[Any]:
    """@nr sequential readers that send at once when they are served; what is served."""
    at = [n * APART for n in range(nr)]
    for owner in range(nr):
        d.send(owner, at[owner], 128)
    while True:
        rq = d.serve_when_chosen(NEXT_MS, FAR_MS)
        yield rq
        if rq.owner < nr:
            at[rq.owner] += 128
            d.later(0.01)
            d.send(rq.owner, at[rq.owner], 128)


@KINDS
@pytest.mark.parametrize("inner", ("noop", "cscan", "linus", "deadline", "sptf"))
def test_it_goes_at_last(core: Core, inner: str, kind: dict[str, bool]) -> None:
    """Also where the inner policy expires nothing, and streams take turns all the time."""
    d = Driver(core, f"stream:{inner}", stream_time_slice=0)
    served = readers(d, 4)
    while d.now < 2000:
        next(served)
    begun = d.now
    d.send(NOBODY, 1_900_000_000, **kind)
    while next(served).owner != NOBODY:
        assert d.now < begun + 6000


def test_behind_it_a_late_read_is_late(core: Core) -> None:
    """With a slice that is set the inner policy's word on age counts for reads (rule 4)."""
    d = Driver(core, "stream:deadline", stream_time_slice=5000 * MS)
    served = readers(d, 2)
    before = next(served).owner
    while before == next(served).owner or d.now < 5000:  # until a turn begins
        pass
    begun = d.now
    d.send(NOBODY, 1_800_000_000, ahead=True)
    read = d.send(OTHER, 1_900_000_000)
    while next(served) != read:
        assert d.now < begun + 500 + 3 * FAR_MS


def test_what_is_read_ahead_ends_no_turn_of_a_target(core: Core) -> None:
    """deadline calls it late after 0.5 s; nobody waits, so it goes with the turn's end."""
    d = Driver(core, "stream:deadline", stream_time_slice=0, wait_target=2000 * MS)
    served = readers(d, 1)
    while d.now < 100:
        next(served)
    begun = d.now
    d.send(NOBODY, 1_800_000_000, ahead=True)
    while next(served).owner != NOBODY:
        pass
    assert d.now > begun + 1500


@pytest.mark.parametrize(("ahead", "verdict"), ((True, "dispatch"), (False, "wait")))
def test_who_keeps_write_back_apart(core: Core, ahead: bool, verdict: str) -> None:
    """Few writes are in the disk beside a reader; what is read ahead is nobody's."""
    d = Driver(core, "stream:noop")
    d.serve(d.send(OTHER, 1_000_000, ahead=ahead), FAR_MS)
    for at in range(6):
        d.send(NOBODY, 2_000_000 + 1000 * at, write=True)
    for _ in range(4):
        d.dispatch()
    assert d.choose()[0] == verdict


def test_nothing_is_kept_apart_on_a_disk_without_a_head(core: Core) -> None:
    ffi, lib = core
    d = Driver(core, "stream:noop")
    points = ffi.new("struct ss_curve_point[]", [(0, 100_000), (2**31 - 1, 100_000)])
    assert lib.ss_curve_set(ffi.addressof(d.sched.curve), points, 2, 2**31) == 0
    assert d.sched.curve.flat
    for at in range(10):
        d.send(NOBODY, 2_000_000 + 1000 * at, write=True)
        d.send(OTHER, 1_000_000 + 1000 * at)
    for _ in range(20):
        d.dispatch()


@pytest.mark.parametrize(("after_ms", "goes"), ((0, False), (900, False), (1000, True)))
def test_what_is_read_ahead_goes_before_no_read_that_is_waited_for(
    core: Core, after_ms: float, goes: bool
) -> None:
    """Though the inner policy takes it for one, and late after 0.5 s; until it is old."""
    d = Driver(core, "stream:deadline", stream_time_slice=0, answer_time=0)
    ahead = [d.send(NOBODY, 1_000_000 + 1000 * at, ahead=True) for at in range(10)]
    d.later(after_ms)
    read = d.send(OTHER, 1_900_000_000)
    assert (d.serve() in ahead) == goes
    assert goes or d.serve() in ahead  # nobody waits for another one
    assert goes == (read in d.pending)


@ENDS
def test_merged_with_a_read_that_is_waited_for_it_is_too(core: Core, front: bool) -> None:
    d = Driver(core, "stream:deadline", stream_time_slice=0, answer_time=0)
    ahead = [d.send(NOBODY, 1_000_000 + 1000 * at, ahead=True) for at in range(10)]
    read = d.send(OTHER, 1_900_000_000)
    d.merge(ahead[4], front=front, ahead=True)
    d.merge(ahead[7], front=front)
    assert {d.serve(), d.serve()} == {ahead[7], read}


@ENDS
@pytest.mark.parametrize("handed_on", (False, True))
def test_merged_with_a_write_that_is_waited_for_it_is_too(
    core: Core, front: bool, handed_on: bool
) -> None:
    """As what fsync() writes behind what is being written back."""
    d = Driver(core, "stream:deadline", stream_time_slice=0)
    writes = [d.send(NOBODY, 1_000_000 + 1000 * at, write=True) for at in range(80)]
    d.merge(writes[50], front=front)
    assert d.sched.nr_awaited_writes == 0
    d.merge(writes[70], front=front, sync=True, handed_on=handed_on)
    d.merge(writes[70], front=front)
    d.merge(writes[70], front=front, sync=True)
    assert d.sched.nr_awaited_writes == 1
    assert writes[70] in [d.serve(None, FAR_MS) for _ in range(5)]
    assert d.sched.nr_awaited_writes == 0


@pytest.mark.parametrize("awaited", (False, True))
def test_so_are_two_pending_ones_that_are_joined(core: Core, awaited: bool) -> None:
    d = Driver(core, "stream:deadline", stream_time_slice=0)
    first = d.send(NOBODY, 1_000_000, write=True, sync=awaited)
    second = d.send(NOBODY, 1_000_008, write=True, sync=not awaited)
    d.lib.ss_sched_joined(d.sched, first, second, d.now_ns)
    d.pending.remove(second)
    assert d.sched.nr_awaited_writes == 1
    d.remove(first)
    assert d.sched.nr_awaited_writes == 0


def test_without_a_target_the_inner_policy_has_its_way(core: Core) -> None:
    d = Driver(core, "stream:deadline", stream_time_slice=124 * MS)
    ahead = d.send(NOBODY, 1_000_000, ahead=True)
    d.send(OTHER, 1_900_000_000)
    assert d.serve() == ahead


def test_what_is_read_ahead_is_not_late_as_reads_are(core: Core) -> None:
    """After 0.6 s few of it are in the disk beside a reader all the same."""
    d = Driver(core, "stream:deadline", stream_time_slice=0, answer_time=0)
    for at in range(6):
        d.send(NOBODY, 1_000_000 + 1000 * at, ahead=True)
    d.later(600)
    d.serve(d.send(OTHER, 1_900_000_000))
    for _ in range(4):
        d.dispatch()
    assert d.choose()[0] == "wait"


HANDED_ON = {"write": True, "handed_on": True}


def flood(
    core: Core, nr: int, sectors: int = 8, **tunables: int
) -> tuple[Driver, Iterator[Any], list[Any]]:
    """A reader for a while, then @nr writes at once that a loop device hands on."""
    d = Driver(core, "stream:deadline", **tunables)
    served = readers(d, 1)
    while d.now < 100:
        next(served)
    at = [1_000_000_000 + n * 10_000 for n in range(nr)]
    return d, served, [d.send(NOBODY, sector, sectors, **HANDED_ON) for sector in at]


@pytest.mark.parametrize(("nr", "sectors"), ((80, 8), (12, 1024)))
def test_of_many_that_are_handed_on_nobody_waits_for_each(
    core: Core, nr: int, sectors: int
) -> None:
    """Behind a loop device write-back looks awaited; then it is no longer, also when large."""
    d, _, writes = flood(core, nr, sectors, stream_time_slice=0)
    assert writes[0].flags & core[1].SS_SYNC
    assert not writes[-1].flags & core[1].SS_SYNC
    d.later(900)
    assert not d.send(NOBODY, 500_000_000, **HANDED_ON).flags & core[1].SS_SYNC
    d.later(1100)
    while d.pending:
        d.serve(None, FAR_MS)
    assert d.send(NOBODY, 500_000_000, **HANDED_ON).flags & core[1].SS_SYNC


def test_of_few_or_without_a_target_somebody_does(core: Core) -> None:
    for nr, slice_ns in ((32, 0), (80, 124 * MS)):
        _, _, writes = flood(core, nr, stream_time_slice=slice_ns)
        assert all(write.flags & core[1].SS_SYNC for write in writes)


def test_a_reader_goes_on_beside_them(core: Core) -> None:
    """As beside write-back: while somebody reads, fewer of them go."""
    gone = []
    for slice_ns in (0, 124 * MS):
        d, served, _ = flood(core, 160, stream_time_slice=slice_ns)
        until = d.now + 2000
        gone.append(0)
        while d.now < until:
            gone[-1] += next(served).owner == NOBODY
    assert gone[0] < gone[1] / 2, gone


@pytest.mark.parametrize("after_ms", (500, 1500))
def test_what_is_merged_with_them_is_taken_as_it_would_be_by_itself(
    core: Core, after_ms: float
) -> None:
    """For what is handed on during the flood nobody waits; for a journal's write somebody does."""
    d, _, writes = flood(core, 80, stream_time_slice=0)
    awaited = d.sched.nr_awaited_writes
    d.later(after_ms)
    d.merge(writes[-1], **HANDED_ON)
    over = after_ms > 1000
    assert bool(writes[-1].flags & core[1].SS_SYNC) == over
    d.merge(writes[-2], write=True, sync=True)
    assert writes[-2].flags & core[1].SS_SYNC
    assert d.sched.nr_awaited_writes == awaited + 1 + over
    while d.pending:
        d.serve_when_chosen(NEXT_MS, FAR_MS)
    assert d.sched.nr_awaited_writes == 0
