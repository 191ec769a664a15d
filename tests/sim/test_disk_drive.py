# SPDX-License-Identifier: GPL-2.0-only
"""The drive around the disk model: two actuators, and the media cache of shingled ones."""

from __future__ import annotations

import random
from typing import Any

import pytest
from disk_driver import (
    BARE,
    FLAT,
    FLUSH,
    MS,
    NEVER,
    READ,
    SMALL,
    WRITE,
    Drive,
    drive_memory,
)
from hypothesis import given, settings
from hypothesis import strategies as st

# A medium of 4 surfaces, 100 sectors to a track, large enough for a log and a few bands.
ROOMY = BARE | {
    "surfaces": 4,
    "nr_zones": 1,
    "zone_cylinders": [400],
    "zone_sectors_per_track": [100],
    "seek_cylinders": [1, 5, 400],
    "capacity_sectors": 160_000,
}
# 8,192 sectors of log, of 24 extents; bands of 4,096 sectors.
SHINGLED = ROOMY | {
    "capacity_sectors": 131_072,
    "media_sectors": 8192,
    "media_extents": 24,
    "band_sectors": 4096,
    "media_idle_ns": 500 * MS,
    "write_cache_sectors": 4096,
    "write_cache_extents": 64,
}
TWO = ROOMY | {"actuators": 2, "capacity_sectors": 320_000}


class Whole(Drive):
    """A drive; what Drive does, through hdd_drive_*()."""

    calls = "hdd_drive_"

    def memory(self) -> Any:
        drive, self.kept = drive_memory(self.params)
        return drive

    def wait(self) -> Any:
        """The next command that is done; there may be something of the drive's own before."""
        while True:
            assert self.next() != NEVER
            if cmd := self.pop(self.next()):
                return cmd

    def one(self, op: int, sector: int, nr: int, now: int, fua: bool = False) -> Any:
        cmd = self.submit(op, sector, nr, now, fua)
        assert self.wait() is cmd
        return cmd

    def volatile(self, sector: int, nr: int, now: int) -> bool:
        return bool(self.lib.hdd_drive_volatile(self.hdd, sector, nr, now))

    def find(self, sector: int) -> tuple[int, int]:
        """Where a sector is on the medium, and how far it is together from there."""
        nr = self.ffi.new("u64 *", int(self.params.capacity_sectors) - sector)
        return int(self.lib.hdd_media_find(self.hdd, sector, nr)), int(nr[0])

    def in_log(self) -> dict[int, int]:
        """Each of the host's sectors that the log has, and where."""
        found: dict[int, int] = {}
        sector = 0
        while sector < self.params.capacity_sectors:
            place, nr = self.find(sector)
            if place < self.params.media_sectors:
                found |= {sector + i: place + i for i in range(nr)}
            else:
                assert place == self.params.media_sectors + sector
            sector += nr
        return found


@pytest.mark.parametrize("params", [SMALL, FLAT, ROOMY], ids=["small", "flat", "roomy"])
def test_a_plain_drive_is_its_disk(params: dict[str, Any]) -> None:
    dice = random.Random(1)
    disk, drive, now = Drive(params), Whole(params), 0
    for _ in range(300):
        op = dice.choice([READ, READ, WRITE, WRITE, FLUSH])
        where, size = dice.randrange(params["capacity_sectors"] - 8), 1 + dice.randrange(8)
        commands = [one.submit(op, where, size, now) for one in (disk, drive)]
        if len(disk.inside) == 4:
            now = disk.next()
            assert drive.next() == now
            assert disk.pop(now).sector == drive.pop(now).sector
        assert commands[0].submit_ns == commands[1].submit_ns
    assert [c.done_ns for c in disk.drain()] == [c.done_ns for c in drive.drain()]


# Two actuators


def test_halves_move_independently() -> None:
    """Each is as quick as a disk by itself while the other one is busy, too."""
    both = Whole(TWO)
    half = TWO | {"actuators": 1, "capacity_sectors": 160_000}
    alone = Drive(half)
    dice = random.Random(2)
    now_both = [0, 0]
    for _ in range(100):
        sector = dice.randrange(159_000)
        commands = [both.submit(READ, sector + 160_000 * i, 8, max(now_both)) for i in range(2)]
        single = alone.one(READ, sector, 8, max(now_both))
        while both.inside:
            both.wait()
        assert commands[0].done_ns - commands[0].submit_ns == single.done_ns - single.submit_ns
        # The interface carries one after the other.
        assert 0 <= commands[1].done_ns - commands[0].done_ns < 20_000
        now_both = [int(c.done_ns) for c in commands]


def test_a_command_over_both_halves() -> None:
    """Both do their part; it is done with the later one. A flush is both's, too."""
    drive = Whole(TWO)
    drive.one(READ, 0, 8, 0)
    over = drive.one(READ, 160_000 - 100, 200, 50 * MS)
    half = Drive(TWO | {"actuators": 1, "capacity_sectors": 160_000})
    half.one(READ, 0, 8, 0)
    first = half.one(READ, 160_000 - 100, 100, 50 * MS)
    assert over.done_ns >= first.done_ns
    drive = Whole(TWO | {"write_cache_sectors": 64, "write_cache_extents": 4})
    drive.one(WRITE, 5, 8, 0)
    drive.one(WRITE, 300_000, 8, MS)
    assert drive.volatile(5, 1, 2 * MS) and drive.volatile(300_007, 1, 2 * MS)
    flush = drive.one(FLUSH, 0, 0, 2 * MS)
    end = int(flush.done_ns)
    assert not drive.volatile(5, 8, end) and not drive.volatile(300_000, 8, end)
    assert end - 2 * MS >= TWO["flush_ns"]


def test_actuators_share_interface_and_queue() -> None:
    """Both together read no faster than the interface; the depth is the drive's."""
    drive = Whole(TWO | {"interface_bytes_per_s": 4_000_000, "queue_depth": 4})
    places, now = [0, 160_000, 80, 160_080], 0
    commands = {place: drive.submit(READ, place, 80, 0) for place in places}
    assert drive.lib.hdd_drive_full(drive.hdd)
    ends = []
    for _ in range(60):
        cmd = drive.wait()
        now = int(cmd.done_ns)
        ends.append(now)
        drive.submit(READ, cmd.sector + 160, 80, now)
    assert len(commands) == 4
    assert 60 * 80 * 512 / (ends[-1] / 1e9) <= 4_000_000
    assert 59 * 80 * 512 / ((ends[-1] - ends[0]) / 1e9) >= 0.9 * 4_000_000


# The media cache


def test_cleaning_leaves_what_was_flushed_safe() -> None:
    """What the drive moves by itself never depends on its write cache."""
    drive = Whole(SHINGLED)
    now = int(drive.one(WRITE, 0, 8, 0).done_ns)
    now = int(drive.one(FLUSH, 0, 0, now).done_ns)
    sectors, extents = drive.ffi.new("u64 *"), drive.ffi.new("u32 *")
    for _ in range(3000):
        now += MS
        drive.pop(now)
        drive.lib.hdd_drive_dirty(drive.hdd, sectors, extents)
        assert not sectors[0]
    assert not drive.in_log(), "it has been cleaned"


def test_random_writes_are_fast_until_the_map_is_full() -> None:
    dice = random.Random(3)
    drive, now, took = Whole(SHINGLED), 0, []
    for _ in range(40):
        cmd = drive.one(WRITE, 8 * dice.randrange(16_000), 8, now, fua=True)
        took.append(int(cmd.done_ns) - now)
        now = int(cmd.done_ns)
    rotation = SHINGLED["rotation_ns"]
    assert max(took[1:24]) < 2.5 * rotation
    # A band is read and written: some 41 tracks each way.
    assert 60 * rotation < max(took[24:]) < 200 * rotation


def test_idle_cleaning_makes_room_again() -> None:
    dice = random.Random(4)
    drive, now = Whole(SHINGLED), 0
    for _ in range(20):
        now = int(drive.one(WRITE, 8 * dice.randrange(16_000), 8, now).done_ns)
    assert len(drive.in_log()) == 20 * 8
    drive.one(READ, 0, 8, now + 400 * MS)
    assert len(drive.in_log()) == 20 * 8, "it has not been idle long enough"
    late = drive.one(READ, 0, 8, now + 60_000 * MS)
    assert not drive.in_log()
    # Only what the drive is at when the host comes back is in its way.
    assert late.done_ns - late.submit_ns < 100 * MS


def test_reads_go_where_the_data_is() -> None:
    """A sequential file that was written in random order is slow to read."""
    dice = random.Random(5)
    drive, now = Whole(SHINGLED | {"media_extents": 200}), 0
    before = drive.one(READ, 64_000, 800, now)
    now = int(before.done_ns)
    order = [64_000 + 8 * i for i in range(100)]
    dice.shuffle(order)
    for sector in order:
        now = int(drive.one(WRITE, sector, 8, now).done_ns)
    now = int(drive.one(FLUSH, 0, 0, now).done_ns)
    after = drive.one(READ, 64_000, 800, now)
    assert after.done_ns - after.submit_ns > 5 * (before.done_ns - before.submit_ns)


def test_sequential_writes_go_past_the_log() -> None:
    """From the start of a band on; the track behind their end is saved when they end."""
    drive, now = Whole(SHINGLED | {"media_extents": 200}), 0
    for i in range(100):
        now = int(drive.one(WRITE, 100 + 128 * i, 128, now).done_ns)
    # 2,048 sectors until it is a run, and on to the next band.
    assert sorted(drive.in_log()) == list(range(100, 4096))
    assert not drive.hdd.media.save_sectors
    drive.one(WRITE, 100_000, 8, now)
    saved = sorted(set(drive.in_log()) - set(range(100, 4096)) - set(range(100_000, 100_008)))
    assert saved == list(range(100 + 12_800, 100 + 12_800 + 100))


@pytest.mark.property
@settings(max_examples=100, deadline=None)
@given(
    script=st.lists(
        st.tuples(
            st.sampled_from([READ, WRITE, WRITE, WRITE, FLUSH]),
            st.integers(0, 3),  # band
            st.integers(0, 4095),
            st.sampled_from([1, 8, 64, 700, 3000]),
            st.booleans(),  # goes on where the last one ended
            st.sampled_from([0, 0, MS, 700 * MS, 20_000 * MS]),
        ),
        max_size=60,
    ),
    depth=st.integers(1, 8),
)
def test_any_writes_keep_the_log_whole(script: list[tuple[Any, ...]], depth: int) -> None:
    """No two of the host's sectors are at one place; all commands end; what was written by a
    flush's end is safe."""
    drive, now, last = Whole(SHINGLED), 0, 0
    for op, band, offset, size, goes_on, pause in script:
        sector = min(last if goes_on else band * 4096 + offset, 131_072 - size)
        now += pause
        while drive.inside and (len(drive.inside) >= depth or drive.next() <= now):
            assert drive.next() != NEVER
            now = max(now, drive.next())
            drive.pop(now)
        drive.submit(op, 0 if op == FLUSH else sector, 0 if op == FLUSH else size, now)
        if op == WRITE:
            last = sector + size
        places = list(drive.in_log().values())
        assert len(places) == len(set(places))
    while drive.inside:
        assert drive.next() != NEVER
        now = max(now, drive.next())
        drive.pop(now)
    end = int(drive.one(FLUSH, 0, 0, now).done_ns)
    if not drive.hdd.media.cleaning:
        assert not drive.volatile(0, 131_072, end)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"actuators": 3}, "actuators must be 1 or 2"),
        ({"actuators": 2, "capacity_sectors": 8}, "must be a multiple of 16"),
        ({"actuators": 2}, "has one actuator"),
        ({"media_sectors": 8191}, "media_sectors must be 0, or between"),
        ({"media_extents": 15}, "media_extents must be between"),
        ({"band_sectors": 4095}, "band_sectors must be between"),
        ({"media_idle_ns": 10**10}, "media_idle_ns must be below"),
        ({"queue_depth": 254}, "queue_depth must be at most 253"),
        ({"zone_cylinders": [340]}, "fewer sectors than the capacity"),
    ],
)
def test_refusals(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        Whole(SHINGLED | change)
