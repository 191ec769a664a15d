# SPDX-License-Identifier: GPL-2.0-only
"""The turn of those that are no streams (core/stream_share.c), beside streams."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from policy_driver import Driver

Core = tuple[Any, Any]

MS = 1_000_000
NEXT_MS, FAR_MS = 0.7, 13.0  # what the disk needs for what goes on at the head, and else
TARGET_MS = 500
HERE = 1000  # sectors
STREAM, OTHER = 1, 2


@dataclass
class Reader:
    """One request at a time; after a thought the next."""

    sectors: Iterator[int]
    think_ms: float = 0.01
    length: int = 128
    wants_at: float = 0.0
    rq: Any = None
    served_ms: float = 0.0
    longest_ms: float = 0.0
    done_at: list[float] = field(default_factory=list)


def one_after_the_other(start: int) -> Iterator[int]:
    while True:
        yield start
        start += 128


def far_apart(seed: int) -> Iterator[int]:
    """No two in a row, nor one and a stream at its place, are worth waiting for."""
    draw = random.Random(seed)
    while True:
        for place in (720_000_000, 1_430_000_000, 2_140_000_000):
            yield place + draw.randrange(5_000_000)


def send_until(d: Driver, readers: list[Reader], ms: float) -> None:
    """Whoever has thought enough by @ms sends, each at its time."""
    for owner, reader in sorted(enumerate(readers, 1), key=lambda it: it[1].wants_at):
        if reader.rq is None and reader.wants_at <= ms + 1e-6:
            d.at(reader.wants_at)
            reader.rq = d.send(owner, next(reader.sectors), reader.length)
            reader.wants_at = d.now
    d.at(ms)


def run(d: Driver, readers: list[Reader], until_ms: float) -> None:
    """One request at a time is served."""
    head = 0
    while d.now < until_ms:
        send_until(d, readers, d.now)
        verdict, *rest = d.choose()
        if verdict != "dispatch":
            times = [r.wants_at for r in readers if r.rq is None]
            d.at(min(times + ([rest[0]] if verdict == "wait" else [])))
            continue
        rq = d.dispatch()
        reader = next(r for r in readers if r.rq == rq)
        took = NEXT_MS if rq.sector == head else FAR_MS
        head = rq.sector + rq.nr_sectors
        send_until(d, readers, d.now + took)
        d.complete(rq)
        reader.longest_ms = max(reader.longest_ms, d.now - reader.wants_at)
        reader.served_ms += took
        reader.done_at.append(d.now)
        reader.rq, reader.wants_at = None, d.now + reader.think_ms


def beside(core: Core, other: Reader, slice_ns: int = 0, ms: float = 20_000) -> list[Reader]:
    d = Driver(core, "stream:deadline", stream_time_slice=slice_ns)
    readers = [Reader(one_after_the_other(HERE)), other]
    run(d, readers, ms)
    return readers


def test_whoever_seeks_has_as_long_a_turn_as_a_stream(core: Core) -> None:
    """On the whole: at first either may be taken for the other."""
    shares = []
    for target_ms in (200, 300, 400, 500, 600, 800, 1000):
        d = Driver(core, "stream:deadline", stream_time_slice=0, wait_target=target_ms * MS)
        stream = Reader(one_after_the_other(HERE))
        other = Reader(far_apart(1), length=8)
        run(d, [stream, other], 20_000)
        shares.append(other.served_ms / stream.served_ms)
        assert max(stream.longest_ms, other.longest_ms) < target_ms + 2 * FAR_MS
        assert 2 / 3 < shares[-1] < 3 / 2
    assert statistics.geometric_mean(shares) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("inner", ("deadline", "noop"))
@pytest.mark.parametrize("target_ms", (200, 500, 1000))
@pytest.mark.parametrize("nr", (1, 2, 4))
def test_streams_and_those_who_seek_have_equal_turns(
    core: Core, nr: int, target_ms: int, inner: str
) -> None:
    d = Driver(core, f"stream:{inner}", stream_time_slice=0, wait_target=target_ms * MS)
    readers = [Reader(one_after_the_other(HERE + at * 200_000_000)) for at in range(nr)]
    readers.append(Reader(far_apart(1), length=8))
    run(d, readers, 20_000)
    for reader in readers:
        assert reader.served_ms == pytest.approx(20_000 / (nr + 1), rel=0.2)
        assert reader.longest_ms < target_ms + 2 * FAR_MS


def test_whoever_is_gone_is_awaited_for_no_longer_than_a_seek(core: Core) -> None:
    """One request in a while: its turn ends, and the stream loses a few percent."""
    other = Reader(far_apart(1), length=8, think_ms=300)
    stream, other = beside(core, other)
    assert len(other.done_at) > 20
    assert stream.served_ms + other.served_ms > 0.93 * 20_000


def in_one_place(seed: int) -> Iterator[int]:
    """Each worth a wait rather than a way to the stream and back."""
    draw = random.Random(seed)
    while True:
        yield 1_430_000_000 + draw.randrange(300_000_000)


@pytest.mark.parametrize("think_ms", (0.6, 0.9, 1.5))
def test_whoever_comes_soon_again_is_awaited_again(core: Core, think_ms: float) -> None:
    """Nobody waited for him as long, because it was always in vain: so each eighth time is."""
    d = Driver(core, "stream:deadline", stream_time_slice=0)
    other = Reader(in_one_place(1), length=8, think_ms=300)
    readers = [Reader(one_after_the_other(HERE)), other]
    run(d, readers, 20_000)
    other.think_ms = think_ms
    served_ms = other.served_ms
    run(d, readers, 50_000)
    assert other.served_ms - served_ms > 30_000 / 8


def whose_turns(core: Core, trials: int) -> list[tuple[float, int]]:
    """A stream beside two who seek: when the disk took a request, and whose."""
    d = Driver(core, "stream:noop", stream_time_slice=0, trials=trials, answer_time=0)
    readers = [Reader(one_after_the_other(HERE))]
    readers += [Reader(far_apart(seed), length=8, wants_at=320) for seed in (1, 2)]
    taken: list[tuple[float, int]] = []
    dispatch = d.dispatch

    def and_remember(expected: Any = None) -> Any:
        rq = dispatch(expected)
        taken.append((d.now, min(rq.owner, OTHER)))
        return rq

    d.dispatch = and_remember  # type: ignore[method-assign]
    run(d, readers, 4000)
    return taken


def test_a_trial_ends_their_turn(core: Core) -> None:
    """The inner policy has the disk to itself: noop sends the stream's, the oldest, at once."""
    tried, untried = (whose_turns(core, trials) for trials in (1, 0))
    at = next(at for at, both in enumerate(zip(tried, untried, strict=False)) if len(set(both)) > 1)
    assert 3000 < untried[at][0] < 3100  # in the midst of a turn of theirs
    assert [owner for _, owner in untried[at - 3 : at + 3]] == [STREAM] + 5 * [OTHER]
    assert tried[at][1] == STREAM


def small_files(seed: int) -> Iterator[int]:
    """Files of five requests, each file far from the one before."""
    for sector in far_apart(seed):
        yield from range(sector, sector + 5 * 128, 128)


def test_a_stream_that_begins_in_their_turn_is_of_it(core: Core) -> None:
    """A file is a stream when it is nearly read; the next one is read at once, too."""
    stream, other = beside(core, Reader(small_files(1)))
    assert other.served_ms / stream.served_ms == pytest.approx(1, abs=0.1)
    assert max(stream.longest_ms, other.longest_ms) < TARGET_MS + 2 * FAR_MS


def streaming(
    core: Core, inner: str = "deadline", nr_writes: int = 0, ahead: bool = False
) -> Driver:
    """The slice of a stream is over, and whoever seeks has had one request done.

    Nobody waits for that one if it is read @ahead.
    """
    d = Driver(core, f"stream:{inner}", stream_time_slice=0)
    stream = one_after_the_other(HERE)
    for _ in range(6):
        d.serve(d.send(STREAM, next(stream), 128))
    for at in range(nr_writes):
        d.send(OTHER, 5000 + 1000 * at, write=True)
    seek = d.send(OTHER, 1_900_000_000, ahead=ahead)
    while True:
        d.send(STREAM, next(stream), 128)
        if d.serve() == seek:
            return d


def test_what_is_read_ahead_begins_no_turn(core: Core) -> None:
    """Metadata that nobody waits for yet; the stream is there again."""
    d = streaming(core, ahead=True)
    d.send(OTHER, 900_000_000, ahead=True)
    assert d.dispatch().owner == STREAM


def test_whoever_is_waited_for_goes_before_what_is_read_ahead(core: Core) -> None:
    """That is nearer, and came first."""
    d = Driver(core, "stream:deadline", stream_time_slice=0)
    stream = one_after_the_other(HERE)
    for _ in range(6):
        d.serve(d.send(STREAM, next(stream), 128))
    ahead = d.send(OTHER, 900_000_000, ahead=True)
    seek = d.send(OTHER + 1, 1_900_000_000)
    while True:
        d.send(STREAM, next(stream), 128)
        rq = d.serve()
        assert rq != ahead
        if rq == seek:
            break
    assert d.choose()[0] == "wait"


def test_what_is_read_ahead_is_not_of_the_turn(core: Core) -> None:
    d = streaming(core)
    d.send(OTHER, 500_000_000, ahead=True)
    verdict, *rest = d.choose()
    assert verdict == "wait" and rest[0] - d.now < 30
    theirs = d.send(OTHER, 900_000_000)
    d.dispatch(theirs)


def test_async_writes_are_not_of_the_turn(core: Core) -> None:
    d = streaming(core)
    d.send(OTHER, 500_000_000, write=True)
    verdict, *rest = d.choose()
    assert verdict == "wait" and rest[0] - d.now < 30
    nearer = d.send(OTHER, 900_000_000)
    d.dispatch(nearer)


def test_async_writes_wait_no_longer_than_a_turn(core: Core) -> None:
    """The stream is gone, and those who seek always have something to send."""
    d = streaming(core, "noop")
    for rq in list(d.pending):
        d.remove(rq)
    begun = d.now
    write = d.send(STREAM, 5000, write=True)
    for sector in far_apart(1):
        d.send(OTHER, sector)
        d.send(OTHER + 1, sector + 1000)
        if d.serve(ms=FAR_MS) == write:
            break
    assert d.now - begun <= TARGET_MS + FAR_MS


def test_write_back_goes_on_where_none_comes(core: Core) -> None:
    """The inner policy's choice is write-back: one write goes, and the turn is over."""
    d = streaming(core, "noop", nr_writes=20)
    verdict, until = d.choose()
    assert verdict == "wait" and until - d.now < 30
    d.at(until)
    write = d.serve()
    assert write.direction == d.lib.SS_WRITE
    assert d.choose()[0] == "dispatch"


def test_nothing_else_of_the_stream_goes_while_theirs_is_in_the_disk(core: Core) -> None:
    d = streaming(core)
    theirs = d.send(OTHER, 900_000_000)
    d.dispatch(theirs)
    verdict, *_ = d.choose()
    assert verdict == "wait"
    d.later(5)
    d.complete(theirs)
    verdict, *rest = d.choose()
    assert verdict == "wait" and rest[0] - d.now < 30
    d.at(rest[0])
    assert d.dispatch().owner == STREAM


def test_answers_are_looked_for_again_after_it(core: Core) -> None:
    d = streaming(core)
    d.at(d.choose()[1])
    d.serve()  # the stream's, which had waited
    d.later(100)
    rq = d.send(OTHER, 900_000_000)
    d.dispatch(rq)
    d.send(OTHER + 1, 1_900_000_000)
    d.later(9)
    d.complete(rq)
    assert d.choose()[0] == "wait"


def changes_nothing(d: Driver) -> None:
    d.now_ns += 0


def takes_the_papers_slice(d: Driver) -> None:
    d.tune("stream_time_slice", 124 * MS)


@pytest.mark.parametrize(
    ("change", "verdict"), ((changes_nothing, "wait"), (takes_the_papers_slice, "dispatch"))
)
def test_a_slice_that_is_set_ends_the_turn(
    core: Core, change: Callable[[Driver], None], verdict: str
) -> None:
    d = streaming(core)
    change(d)
    assert d.choose()[0] == verdict
