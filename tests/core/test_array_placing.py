# SPDX-License-Identifier: GPL-2.0-only
"""An array's coordinator: heads are placed where the stream that has its turn comes to next."""

from __future__ import annotations

from typing import Any

from array_driver import CHUNK, ArrayDriver, stream, wanted
from policy_driver import FAR


def placing(nr: int = 3, **how: Any) -> tuple[ArrayDriver, int]:
    """A host that places heads, and a stream in its turn on idle disks; the next chunk."""
    arr = ArrayDriver(nr, **how)
    arr.array.places = True
    return arr, stream(arr, burden=False)


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


def test_heads_are_placed_when_one_had_to_move() -> None:
    """All others are kicked, and read where the stream comes to next on each."""
    arr, chunk = placing()
    assert chunk % 3 == 0 and not any(wanted(arr, i) for i in range(3))
    member, rq = arr.read(chunk)
    member.dispatch(rq)
    arr.kicked.clear()
    arr.later(15)
    member.complete(rq)
    assert sorted(arr.kicked) == [1, 2]
    row = chunk // 3 * CHUNK
    assert [wanted(arr, i) for i in range(3)] == [None, (row, CHUNK), (row, CHUNK)]


def test_who_is_busy_is_not_placed() -> None:
    arr, chunk = placing()
    arr.members[1].dispatch(arr.read(chunk + 1)[1])
    arr.serve(*arr.read(chunk), 15)
    assert wanted(arr, 1) is None and wanted(arr, 2)


def test_what_came_from_the_cache_is_placed_farther() -> None:
    """Until the head has moved; but not farther than the stream soon comes."""
    arr, chunk = placing()
    seek(arr, chunk)
    row = chunk // 3 * CHUNK
    assert [placed(arr, 1, ms) for ms in (0.3, 12)] == [row, row + CHUNK]
    assert wanted(arr, 1) is None
    reads = list(iter(lambda: placed(arr, 2, 0.3), None))
    assert reads == [row + n * CHUNK for n in range(len(reads))]
    assert 1 < len(reads) < 10


def test_one_placing_read_at_a_time() -> None:
    """Also where the host would send more: the head is on its way."""
    arr, chunk = placing()
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


def test_placing_is_no_part_of_the_stream() -> None:
    """Neither its place nor what it moved changes: its next request is still its own."""
    arr, chunk = placing()
    chunk = seek(arr, chunk)
    before = arr.turn(), arr.array.sched.counters.arrivals
    assert placed(arr, 1, 12) is not None
    after = arr.turn(), arr.array.sched.counters.arrivals
    assert after == before
    arr.follow(chunk, 3)
    assert arr.count("established") == 1 and arr.in_turn()


def test_heads_are_placed_for_readers_and_hosts_that_want_it() -> None:
    arr, chunk = placing()
    arr.follow(chunk, 1, service=15, write=True, sync=True)
    assert not any(wanted(arr, i) for i in range(3))
    arr, chunk = placing()
    arr.array.places = False
    arr.kicked.clear()
    seek(arr, chunk)
    assert not {1, 2} & set(arr.kicked) and not any(wanted(arr, i) for i in range(3))


def test_next_turn_places_where_the_drives_ran_out_before() -> None:
    """Not at once: reading on would drive out of the cache what is still to be read."""
    arr, chunk = placing()
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


def test_a_member_that_returns_is_placed_again() -> None:
    """Its placing read was done while it was not attached."""
    arr, chunk = placing()
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


def test_a_member_that_returns_is_not_placed_where_it_was_wanted() -> None:
    """It may be another disk, on which the array begins elsewhere."""
    arr, chunk = placing()
    seek(arr, chunk)
    assert wanted(arr, 1)
    arr.detach(1)
    assert arr.attach(1) == 0
    assert wanted(arr, 1) is None


def test_nothing_is_placed_beyond_the_array() -> None:
    """Where the stream is about to end there is less to be read than it soon comes to."""
    rows = 6
    arr, chunk = placing(rows=rows)
    chunk = arr.follow(chunk, 3)
    assert chunk == 3 * (rows - 1)
    seek(arr, chunk)
    reads = list(iter(lambda: placed(arr, 2, 0.3), None))
    assert reads
    assert max(reads) + CHUNK <= rows * CHUNK


def test_the_rest_of_the_last_chunk_is_placed() -> None:
    """And no more: the disk may end with the array, and the kernel would log a read behind it."""
    rows = 6
    arr, chunk = placing(rows=rows)
    chunk = arr.follow(chunk, 3)
    assert chunk == 3 * (rows - 1)
    seek(arr, chunk)
    assert wanted(arr, 1) == ((rows - 1) * CHUNK, CHUNK)
    arr.serve(*arr.read(chunk + 1, CHUNK // 2), 0.3)
    assert wanted(arr, 1) == (rows * CHUNK - CHUNK // 2, CHUNK // 2)
