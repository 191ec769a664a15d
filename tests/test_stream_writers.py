# SPDX-License-Identifier: GPL-2.0-only
"""stream beside write-back: writes that nobody waits for, many, old, and deep in the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from policy_driver import FAR, FOREVER, Driver

from streamsched.diskfile import load_disk
from streamsched.jobfile import parse_jobs
from streamsched.simulate import Run, Setup, run_jobs

Core = tuple[Any, Any]

MS = 1_000_000
AUTO = 0
BESIDE = 4  # such writes in the device while somebody reads on
APART_MS = 500  # after a read

LOVES_FIRST = """
[writer]
rw=write
bs=128k
offset=100g
size=6g
[reader]
rw=read
bs=128k
startdelay=2
offset=200g
size=200m
"""


def loves_first(policy: str, depth: int, *tunables: tuple[str, int]) -> Run:
    """Love's first test (Linux Journal, 2004): 200 MB are read beside a streaming writer."""
    disk = load_disk("wd5000aaks")
    jobs = parse_jobs(LOVES_FIRST, capacity_bytes=512 * disk.capacity_sectors)
    return run_jobs(Setup(disk, policy, queue_depth=depth, tunables=tunables), jobs)


def reading_s(run: Run) -> float:
    return next(job.duration_ns for job in run.jobs if job.name == "reader") / 1e9 - 2


@pytest.mark.parametrize("depth", [1, 32])
def test_a_reader_beside_a_streaming_writer(depth: int) -> None:
    """The reader is many times as fast, and the disk does not do less."""
    inner = loves_first("deadline", depth)
    stream = loves_first("stream:deadline", depth, ("stream_time_slice", AUTO))
    assert reading_s(inner) > 60
    assert reading_s(stream) < 4.1
    assert stream.mb_s > 1.05 * inner.mb_s


def reader(d: Driver, members: int) -> int:
    """One reads on alone, 1 ms each; returns where its next request begins."""
    for at in range(0, members * 8, 8):
        d.send(1, at)
        d.serve(ms=1)
    return members * 8


def writes(d: Driver, nr: int) -> None:
    for i in range(nr):
        d.send(9, FAR + 1000 * i, write=True)


def drain(d: Driver) -> list[Any]:
    """All that may go to the device now, does."""
    sent = []
    while d.choose()[0] == "dispatch":
        sent.append(d.dispatch())
    return sent


def test_write_back_goes_out_a_few_at_a_time_while_somebody_reads_on(core: Core) -> None:
    d = Driver(core, "stream:noop")
    reader(d, 10)
    d.later(50)  # no child came
    writes(d, 40)
    assert len(drain(d)) == BESIDE
    assert d.choose() == ("wait", FOREVER)
    d.later(5).complete()
    assert len(drain(d)) == 1
    # Nobody has read on for a while: the device may have them all.
    d.later(APART_MS)
    assert len(drain(d)) == 40 - BESIDE - 1


def test_so_it_does_after_any_read(core: Core) -> None:
    """A reader becomes a stream by four requests, each of which would wait for a full queue."""
    d = Driver(core, "stream:noop")
    d.send(1, 0)
    d.serve(ms=10)
    writes(d, 40)
    assert len(drain(d)) == BESIDE
    d.later(APART_MS)
    assert len(drain(d)) == 40 - BESIDE


def test_writes_that_somebody_waits_for_do_not_count(core: Core) -> None:
    d = Driver(core, "stream:noop")
    reader(d, 10)
    d.later(50)
    for i in range(20):
        d.send(9, FAR + 1000 * i, write=True, sync=True)
    assert len(drain(d)) == 20


def test_a_lone_writer_has_the_device_to_itself(core: Core) -> None:
    d = Driver(core, "stream:noop")
    writes(d, 40)
    assert len(drain(d)) == 40


def turns_ms(d: Driver, nr: int, *, awaited: bool = False, slow_ms: int = 0) -> list[int]:
    """How long the reader is served between batches of writes, 1 ms for each request of any.

    With @awaited somebody else reads at random. The first three requests of a turn take
    @slow_ms more: the drive empties its cache.
    """
    turns, reads, first, randoms = [0], 0, 3, 0
    writes(d, 200)
    while len(turns) <= nr:
        if not any(rq.owner == 1 for rq in d.pending):
            d.send(1, 8 * reads)
            reads += 1
        if awaited and not any(rq.owner == 2 for rq in d.pending):
            randoms += 1
            d.send(2, 2 * FAR + 7_654_321 * (randoms % 100))
        rq = d.dispatch()
        took = 1 + (slow_ms if rq.owner == 1 and first else 0)
        d.later(took).complete()
        if rq.owner == 1:
            turns[-1] += took
            first -= bool(first)
        elif turns[-1]:
            turns.append(0)
            first = 3
    return turns[:nr]


@pytest.mark.parametrize("target_ms", [50, 300])
def test_old_write_back_does_not_end_a_turn(core: Core, target_ms: int) -> None:
    """wait_target is for those that somebody waits for; the writes here are soon much older."""
    d = Driver(core, "stream:deadline", stream_time_slice=AUTO, wait_target=target_ms * MS)
    turns = turns_ms(d, 6)
    # The first ones were before the stream was established.
    assert all(0.8 * target_ms < turn <= target_ms + 20 for turn in turns[2:]), turns


SLICE_MS, LONGER = 20, 4


def test_beside_write_back_a_turn_lasts_for_four_slices(core: Core) -> None:
    """As Linux' anticipatory scheduler read for 500 ms and wrote for 125 ms by turns."""
    d = Driver(core, "stream:deadline", stream_time_slice=SLICE_MS * MS)
    turns = turns_ms(d, 6)
    longest = LONGER * SLICE_MS
    assert all(0.9 * longest <= turn <= longest + 2 for turn in turns[2:]), turns


def test_somebody_who_waits_ends_it_after_one(core: Core) -> None:
    d = Driver(core, "stream:noop", stream_time_slice=SLICE_MS * MS)
    # Where requests at random take 1 ms, too, there is no head that anybody would wait for.
    d.sched.curve.learning = False
    turns = turns_ms(d, 6, awaited=True)
    assert all(0.9 * SLICE_MS <= turn <= SLICE_MS + 2 for turn in turns[3:]), turns


def test_the_drives_own_writing_is_not_of_the_turn(core: Core) -> None:
    """What the reader's requests took longer because of it is added, up to a slice."""
    d = Driver(core, "stream:deadline", stream_time_slice=SLICE_MS * MS)
    turns = turns_ms(d, 6, slow_ms=5)
    longest = LONGER * SLICE_MS + 3 * 5
    assert all(longest - 12 <= turn <= longest + 2 for turn in turns[2:]), turns
    d = Driver(core, "stream:deadline", stream_time_slice=SLICE_MS * MS)
    turns = turns_ms(d, 6, slow_ms=30)
    assert all(turn <= (LONGER + 1) * SLICE_MS + 2 for turn in turns[2:]), turns


def test_late_write_back_goes_when_the_turn_is_over(core: Core) -> None:
    """Rule 4 is for those that somebody waits for; here all the writes are late all the time."""
    d = Driver(core, "stream:deadline", stream_time_slice=SLICE_MS * MS, write_expire=5 * MS)
    turns = turns_ms(d, 6)
    longest = LONGER * SLICE_MS
    assert all(0.9 * longest <= turn <= longest + 2 for turn in turns[2:]), turns
    assert d.count("expired") > 5


def before_each(
    d: Driver, nr: int, write_back: int, comes: Callable[[int], list[Any]]
) -> list[int]:
    """So much write-back waits each time; how much goes before the first of what @comes."""
    between, sector = [], FAR
    for turn in range(nr):
        while len(d.pending) < write_back:
            d.send(9, sector, write=True)
            sector += 1000
        first, served = comes(turn), 0
        while d.serve(ms=5) not in first:
            served += 1
        between.append(served)
    return between


def writes_between_reads(d: Driver, nr_reads: int) -> list[int]:
    """One reads on beside write-back; how many writes go before each of his reads."""
    return before_each(d, nr_reads, 30, lambda at: [d.send(1, 8 * at)])


def test_whoever_reads_on_waits_for_few_writes(core: Core) -> None:
    """From the second request on, until there is a stream; the first is anybody's."""
    d = Driver(core, "stream:noop", stream_time_slice=AUTO, answer_time=0)
    d.tune("stream_threshold", 8)
    assert max(writes_between_reads(d, 8)[1:]) == BESIDE


def test_so_do_writes_for_few_reads(core: Core) -> None:
    """Reads that make no stream do not starve them: each of them lets some go before it."""
    d = Driver(core, "stream:noop", stream_time_slice=AUTO, answer_time=0)
    d.tune("stream_threshold", 1000)
    assert min(writes_between_reads(d, 20)[1:]) == BESIDE


def test_with_a_slice_that_is_set_the_inner_policy_decides(core: Core) -> None:
    d = Driver(core, "stream:noop", stream_threshold=8)
    assert min(writes_between_reads(d, 4)) > BESIDE


def awaited_between(d: Driver, nr: int, together: int = 1) -> list[int]:
    """Awaited writes beside much write-back; how many of it go before each time @together do."""

    def come(turn: int) -> list[Any]:
        at = 100_000 * (17 * turn % 23)
        return [d.send(1, at + 2000 * i, write=True, sync=True) for i in range(together)]

    return before_each(d, nr, 80, come)


def test_what_fsync_waits_for_goes_after_few_writes(core: Core) -> None:
    """And lets as many go before it each time, so that write-back goes on."""
    d = Driver(core, "stream:noop", stream_time_slice=AUTO, answer_time=0)
    d.tune("stream_threshold", 1000)
    assert awaited_between(d, 20) == [BESIDE] * 20


@pytest.mark.parametrize(("together", "before"), [(32, BESIDE), (33, 80)])
def test_very_many_at_once_are_the_inner_policy_s(core: Core, together: int, before: int) -> None:
    """Its sweep is worth more; here it is a queue, so all the others go before."""
    d = Driver(core, "stream:noop", stream_time_slice=AUTO)
    assert awaited_between(d, 1, together) == [before]


def test_with_a_slice_that_is_set_all_writes_are_alike(core: Core) -> None:
    d = Driver(core, "stream:noop")
    assert awaited_between(d, 4) == [80] * 4
