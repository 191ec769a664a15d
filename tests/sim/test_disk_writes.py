# SPDX-License-Identifier: GPL-2.0-only
"""The disk model: its write cache, flushes, and the cache's way to the medium."""

from __future__ import annotations

import dataclasses
import random

import pytest
from disk_driver import (
    BARE,
    FLUSH,
    MS,
    READ,
    SMALL,
    WRITE,
    Drive,
    check_dirty,
    disk_core,
)

from streamsched.sim.diskfile import load_disk

# Write cache and flush


def test_writes_are_acknowledged_at_the_speed_of_the_interface(drive: Drive) -> None:
    cmd = drive.one(WRITE, 1000, 8, 0)
    assert cmd.position_ns == 0
    assert cmd.done_ns == SMALL["command_overhead_ns"] + 8 * 512 * 10**9 // 300_000_000
    assert drive.dirty() == [(1000, 1008)]


def test_fua_and_a_disabled_cache_wait_for_the_medium() -> None:
    for params, fua in ((SMALL, True), (SMALL | {"write_cache_sectors": 0}, False)):
        drive = Drive(params)
        cmd = drive.one(WRITE, 1000, 8, 0, fua=fua)
        assert cmd.position_ns > 0
        begin = cmd.done_ns - drive.hdd.tail_ns - drive.passing_ns(1000, 1008)
        assert begin % SMALL["rotation_ns"] == drive.map(1000)[2]
        assert not drive.dirty()


def test_dirty_sectors_are_read_from_the_cache(drive: Drive) -> None:
    now = drive.one(WRITE, 1000, 16, 0).done_ns
    inside = drive.one(READ, 1004, 8, now)
    assert inside.position_ns == 0
    assert inside.done_ns - now < 100_000
    assert drive.one(READ, 1008, 16, inside.done_ns).position_ns > 0


def test_the_cache_is_written_out_when_idle_and_not_before(drive: Drive) -> None:
    now = drive.one(WRITE, 1000, 8, 0).done_ns
    assert drive.pop(now + SMALL["write_idle_ns"] - 1) is None
    assert drive.dirty() == [(1000, 1008)]
    assert drive.pop(now + SMALL["write_idle_ns"] + 1) is None
    assert drive.dirty() == []


def test_a_flush_waits_for_what_was_acknowledged(drive: Drive) -> None:
    now = 0
    for sector in (100, 2000, 700, 1500):
        now = drive.one(WRITE, sector, 8, now).done_ns
    flush = drive.one(FLUSH, 0, 0, now)
    assert drive.dirty() == []
    assert flush.position_ns > 0
    assert flush.done_ns - flush.submit_ns >= flush.position_ns + SMALL["flush_ns"]
    # Nothing written since: nothing to do.
    again = drive.one(FLUSH, 0, 0, flush.done_ns)
    assert again.done_ns - again.submit_ns == SMALL["command_overhead_ns"]


def test_nothing_passes_a_flush(drive: Drive) -> None:
    drive.one(WRITE, 100, 8, 0)
    before = drive.submit(READ, 1800, 8, 100_000)
    flush = drive.submit(FLUSH, 0, 0, 100_001)
    hit = drive.submit(READ, 100, 8, 100_002)
    write = drive.submit(WRITE, 104, 8, 100_003)
    done = drive.drain()
    assert done.index(before) < done.index(flush) < min(done.index(hit), done.index(write))


def test_scattered_writes_go_out_in_positional_order() -> None:
    """Sorted they cost less than one by one."""
    disk = load_disk("exos-x18")
    draw = random.Random(7)
    sectors = [draw.randrange(disk.capacity_sectors // 8) * 8 for _ in range(128)]
    drive = Drive(disk.params())
    now = 0
    for sector in sectors:
        now = drive.one(WRITE, sector, 8, now).done_ns
    sorted_ns = drive.one(FLUSH, 0, 0, now).position_ns
    drive = Drive(disk.params())
    now, single_ns = 0, 0
    for sector in sectors:
        cmd = drive.one(WRITE, sector, 8, now, fua=True)
        now, single_ns = cmd.done_ns, single_ns + cmd.position_ns
    assert sorted_ns < 0.75 * single_ns


def test_contiguous_small_writes_stream() -> None:
    """16 KiB writes one after the other reach the medium's rate, full cache or not."""
    disk = load_disk("wd5000aaks")
    drive = Drive(disk.params())
    now, sector, begin, first = 0, 0, 0, 5_000
    for i in range(20_000):
        cmd = drive.one(WRITE, sector, 32, now)
        now = cmd.done_ns
        sector += 32
        if i == first:
            begin = now
    rate = (20_000 - first - 1) * 32 * 512 * 1e9 / (now - begin)
    assert rate == pytest.approx(100.1e6, rel=0.01)


def test_a_write_larger_than_the_cache_goes_to_the_medium(drive: Drive) -> None:
    cmd = drive.one(WRITE, 1000, SMALL["write_cache_sectors"] + 1, 0)
    assert cmd.position_ns > 0
    assert not drive.dirty()


def test_fua_over_dirty_sectors_leaves_the_rest() -> None:
    drive = Drive(SMALL, write_idle_ns=9000 * MS)
    now = drive.one(WRITE, 1000, 20, 0).done_ns
    drive.one(WRITE, 1005, 5, now, fua=True)
    assert drive.dirty() == [(1000, 1005), (1010, 1020)]
    assert drive.hdd.dirty_sectors == 15


def test_an_extent_that_is_joined_at_its_front_begins_there() -> None:
    drive = Drive(SMALL, write_idle_ns=9000 * MS)
    now = drive.one(WRITE, 1000, 8, 0).done_ns
    drive.one(WRITE, 984, 16, now)
    assert drive.dirty() == [(984, 1008)]


def test_a_full_list_of_dirty_pieces_is_not_split() -> None:
    """A FUA write into the middle of one piece, and no room for another piece."""
    most = disk_core()[1].HDD_MAX_DIRTY
    many = {
        "zone_cylinders": [7, 5, 9000],
        "capacity_sectors": 16 * most,
        "seek_cylinders": [1, 5, 10000],
        "write_cache_extents": most,
        "write_cache_sectors": 16 * most,
        "write_idle_ns": 9000 * MS,
    }
    drive = Drive(SMALL | many)
    # Not half full, or it would begin to write.
    drive.hdd.params.write_cache_extents = 3 * most
    now = 0
    for i in range(most):
        now = drive.one(WRITE, i * 8, 4, now).done_ns
    pieces = drive.dirty()
    assert len(pieces) == most
    drive.one(WRITE, 81, 1, now, fua=True)
    assert drive.dirty() == pieces
    drive.one(WRITE, 80, 1, drive.hdd.clock_ns, fua=True)
    assert (81, 84) in drive.dirty()
    check_dirty(drive, SMALL | many)


def test_without_cached_writes_a_flush_has_nothing_to_do(drive: Drive) -> None:
    now = drive.one(WRITE, 1000, 8, 0, fua=True).done_ns
    flush = drive.one(FLUSH, 0, 0, now)
    assert flush.done_ns - flush.submit_ns == SMALL["command_overhead_ns"]


@pytest.mark.parametrize("series", [0, 1])
def test_a_writes_data_come_before_its_way_or_meanwhile(series: int) -> None:
    sent = 16 * 512 * 10**9 // 1_000_000
    drive = Drive(BARE, interface_bytes_per_s=1_000_000, write_series=series)
    cmd = drive.one(WRITE, 2000, 16, 0)
    passed = drive.hdd.head_ns + drive.hdd.tail_ns
    assert cmd.done_ns == max(passed, 50_000 + sent)
    moved = drive.hdd.head_ns - cmd.position_ns
    assert (moved >= 50_000 + sent) == bool(series)


# The write cache's way to the medium


def position_of(drive: Drive, piece: tuple[int, int], at: int) -> int:
    """What a write there at @at would pay: tried on a copy of the disk."""
    ffi = drive.ffi
    hdd = ffi.new("struct hdd *")
    why = ffi.new("const char **")
    params = ffi.new("struct hdd_params *", drive.params[0])
    params.write_cache_sectors = 0
    assert drive.lib.hdd_init(hdd, params, why) == 0
    for field in ("head_sector", "head", "head_ns", "head_wrote", "free_ns", "clock_ns"):
        setattr(hdd, field, getattr(drive.hdd, field))
    hdd.params.overhead_ns = [0] * 8
    cmd = ffi.new("struct hdd_cmd *")
    cmd.op, cmd.sector, cmd.nr_sectors = WRITE, piece[0], 1
    drive.lib.hdd_submit(hdd, cmd, at)
    return int(cmd.position_ns)


@pytest.mark.parametrize("seed", range(8))
def test_write_out_takes_the_shortest_positioning_time(seed: int) -> None:
    """With fewer extents than are looked at, it is the shortest of all."""
    cache = {"write_cache_sectors": 400, "write_cache_extents": 16, "write_idle_ns": 9000 * MS}
    drive = Drive(SMALL | cache | {"write_order": 1})
    draw = random.Random(seed)
    now = 0
    drive.hdd.params.write_cache_extents = 1000
    for sector in draw.sample(range(0, 3200, 12), 16):
        now = drive.one(WRITE, sector, 8, now).done_ns
    drive.hdd.params.write_cache_extents = 16
    for _ in range(8):
        pieces = drive.dirty()
        at = max(drive.hdd.free_ns, drive.hdd.clock_ns)
        costs = {piece: position_of(drive, piece, at) for piece in pieces}
        # A look a moment later: what could begin before was begun.
        drive.pop(at + 1)
        gone = [piece for piece in pieces if piece not in drive.dirty()]
        assert len(gone) == 1
        assert costs[gone[0]] == min(costs.values())
        drive.hdd.clock_ns = max(drive.hdd.clock_ns, drive.hdd.free_ns)


def test_write_out_by_position_is_faster_than_a_sweep() -> None:
    disk = dataclasses.replace(load_disk("exos-x18"), write_cache_extents=2000)
    times = []
    for order in (0, 1):
        drive = Drive(dataclasses.replace(disk, write_order=order).params())
        draw = random.Random(5)
        now = 0
        for number in range(4000):
            if number == 2000:
                began = now
            sector = 8 * draw.randrange(disk.capacity_sectors // 8)
            now = drive.one(WRITE, sector, 8, now).done_ns
        times.append(now - began)
    assert times[1] < 0.6 * times[0]


def writes_beside_a_scan(share: int) -> tuple[int, int]:
    """(reads, writes) in 10 s of one after the other at depth 4, and of random ones at depth 1."""
    disk = dataclasses.replace(
        load_disk("greedy-18tb"), write_cache_extents=64, write_share_permille=share
    )
    drive = Drive(disk.params())
    draw = random.Random(6)
    now = sector = 0
    count = [0, 0]
    while now < 10_000 * MS:
        ops = [cmd.op for cmd in drive.inside.values()]
        if WRITE not in ops:
            drive.submit(WRITE, 8 * draw.randrange(disk.capacity_sectors // 8), 8, now)
        for _ in range(4 - ops.count(READ)):
            drive.submit(READ, sector, 256, now)
            sector += 256
        now = drive.next()
        cmd = drive.pop(now)
        if cmd is not None:
            count[cmd.op] += 1
    return count[READ], count[WRITE]


def test_write_out_beside_reads_has_its_share() -> None:
    """Firmware that goes on reading lets a write wait for seconds; a share of the time does not."""
    reads, writes = writes_beside_a_scan(0)
    for share in (200, 500):
        fewer, more = writes_beside_a_scan(share)
        assert more > 5 * writes
        # Each burst costs the reader its way back, too.
        assert 0.7 < fewer / (reads * (1 - share / 1000)) < 1.05


@pytest.mark.parametrize("name", ["exos-x18", "st2000dm006"])
def test_a_pause_between_reads_is_no_time_to_write_out(name: str) -> None:
    """Reading ahead goes on first: a cache that presses costs a reader its share, not its rate."""
    disk = dataclasses.replace(load_disk(name), write_cache_extents=100)
    rates = []
    for writes in (0, 90):
        drive, draw, now = Drive(disk.params()), random.Random(7), 0
        for _ in range(writes):
            now = drive.one(WRITE, 8 * draw.randrange(disk.capacity_sectors // 8), 8, now).done_ns
        began = now
        for number in range(2000):
            now = drive.one(READ, 128 * number, 128, now + 50_000).done_ns
        rates.append(2000 / (now - began))
    assert rates[1] > (0.9 - disk.write_share_permille / 1000) * rates[0]


def test_a_durable_cache_needs_no_flush() -> None:
    drive = Drive(SMALL, write_cache_durable=1, write_idle_ns=9000 * MS)
    write = drive.one(WRITE, 1000, 8, 0, fua=True)
    flush = drive.one(FLUSH, 0, 0, write.done_ns)
    assert write.done_ns < MS and flush.done_ns - write.done_ns < MS
    assert drive.dirty() == [(1000, 1008)]


def test_a_part_of_a_physical_sector_costs_a_revolution() -> None:
    for sector, nr, extra in ((1000, 8, 0), (1000, 16, 0), (1001, 8, 1), (1000, 4, 1)):
        whole, part = (
            Drive(BARE, physical_sectors=physical).one(WRITE, sector, nr, 0) for physical in (1, 8)
        )
        assert part.done_ns - whole.done_ns == extra * SMALL["rotation_ns"]


def test_writes_may_settle_sooner_than_reads() -> None:
    """The way of a write is the seek less what is saved, and the rest of a revolution."""
    params = BARE | {"write_settle_ns": 0, "write_saves_ns": 700_000, "overhead_ns": [0] * 8}
    for sector in range(250, 3200, 97):
        drive = Drive(params)
        cylinder, _, angle = drive.map(sector)
        if not cylinder:
            continue
        way = drive.seek(cylinder) - 700_000
        cmd = drive.one(WRITE, sector, 8, 0)
        assert cmd.position_ns == way + (angle - way) % SMALL["rotation_ns"]


def test_a_recorded_seek_table_may_fall_a_little() -> None:
    drive = Drive(SMALL, seek_cylinders=[1, 9, 40], seek_ns=[10**6, 920_000, 10**7])
    assert [drive.seek(n) for n in (1, 5, 9)] == [10**6, 960_000, 920_000]
