# SPDX-License-Identifier: GPL-2.0-only
"""The disk model: reading ahead, its segments, and what the interface carries of it."""

from __future__ import annotations

import dataclasses
import random

import pytest
from disk_driver import BARE, MS, READ, SMALL, WRITE, Drive

from streamsched.sim.diskfile import Disk, load_disk

# Reading ahead


def read_on(disk: Disk, think_ns: int, nr: int, count: int = 300) -> int:
    """Time for @count reads of @nr sectors, one after the other, with pauses."""
    drive = Drive(disk.params())
    now = drive.one(READ, 0, nr, 0).done_ns
    begin = now
    for i in range(1, count + 1):
        now = drive.one(READ, i * nr, nr, now + think_ns).done_ns
    return int(now - begin)


@pytest.mark.parametrize("think_us", [0, 50, 300, 1000, 2000, 3000])
def test_thinking_between_sequential_reads_loses_no_revolution(think_us: int) -> None:
    """The drive reads on meanwhile: the slower of the two sets the pace."""
    disk = load_disk("wd5000aaks")
    alone = read_on(disk, 0, 256)
    per_read = alone / 300
    taken = read_on(disk, think_us * 1000, 256)
    bus = disk.command_overhead_ns + 256 * 512 * 1e9 / disk.interface_bytes_per_s
    assert taken <= 300 * max(per_read, think_us * 1000 + bus) * 1.02


def test_without_reading_ahead_a_pause_costs_a_revolution() -> None:
    disk = dataclasses.replace(load_disk("wd5000aaks"), readahead_sectors=0)
    assert read_on(disk, 50_000, 64) > 300 * disk.rotation_ns * 0.95


def test_reading_ahead_stops_at_its_limit(drive: Drive) -> None:
    cmd = drive.one(READ, 10, 4, 0)
    ahead = 14 + SMALL["readahead_sectors"]
    # Long after: the last one read ahead is there, the next one is not.
    inside = drive.one(READ, ahead - 4, 4, cmd.done_ns + 100 * MS)
    assert inside.position_ns == 0
    assert inside.done_ns - inside.submit_ns < 100_000
    drive = Drive(SMALL)
    cmd = drive.one(READ, 10, 4, 0)
    beyond = drive.one(READ, ahead, 4, cmd.done_ns + 100 * MS)
    assert beyond.done_ns - beyond.submit_ns > 100_000


@pytest.mark.parametrize("first", [10, 80, 195, 1400])
def test_a_command_elsewhere_ends_reading_ahead(first: int) -> None:
    """What had passed the head wholly by then is in the cache, and no more."""
    for pause in range(0, 4 * MS, 61_007):
        drive = Drive(SMALL)
        cmd = drive.one(READ, first, 4, 0)
        away = drive.one(READ, 3000, 1, cmd.done_ns + pause)
        since = away.start_ns - (cmd.done_ns - drive.hdd.tail_ns)
        passed = 0
        while passed < SMALL["readahead_sectors"]:
            last = first + 4 + passed
            # A track's last sector ends before the skew to the next begins.
            skew = drive.passing_ns(last, last + 1) - drive.passing_ns(first, first + 1)
            begin_ns = drive.passing_ns(first + 4, last)
            one_ns = drive.passing_ns(first, first + 1) if skew > 2 else 0
            if begin_ns + (one_ns or drive.passing_ns(last, last + 1)) > since + 2:
                break
            passed += 1
        held = {
            drive.hdd.segment_first[i]: drive.hdd.segment_length[i]
            for i in range(SMALL["segments"])
        }
        assert held[first] == 4 + passed


def test_over_a_gap_the_quicker_way_is_taken() -> None:
    """Reading on within the track; the arm when it saves a revolution."""
    drive = Drive(SMALL, readahead_sectors=300, segment_sectors=300)
    cmd = drive.one(READ, 10, 4, 0)
    near = drive.one(READ, 40, 4, cmd.done_ns)
    assert near.done_ns - cmd.done_ns == drive.passing_ns(14, 44)
    far = drive.one(READ, 44 + 150, 4, near.done_ns)
    assert far.position_ns < SMALL["head_switch_ns"] + SMALL["rotation_ns"]
    assert drive.passing_ns(44, 44 + 150) > far.position_ns


def test_what_was_read_stays_in_the_least_recently_used_order() -> None:
    drive = Drive(SMALL, readahead_sectors=0)
    places = [0, 400, 800, 1200]  # four segments
    now = 0
    for sector in places:
        now = drive.one(READ, sector, 8, now).done_ns + MS
    hit = drive.one(READ, 0, 8, now)
    assert hit.position_ns == 0
    now = drive.one(READ, 1600, 8, hit.done_ns).done_ns
    assert drive.one(READ, 0, 8, now).position_ns == 0
    now += MS
    assert drive.one(READ, 400, 8, now).position_ns > 0


def test_a_segment_keeps_the_newest_part() -> None:
    drive = Drive(SMALL, readahead_sectors=0)
    now = drive.one(READ, 0, 90, 0).done_ns
    assert drive.one(READ, 90 - 64, 64, now + MS).position_ns == 0
    assert drive.one(READ, 0, 8, now + 5 * MS).position_ns > 0


def test_data_is_not_given_out_before_it_was_read() -> None:
    """The same sectors asked for twice: the second waits for the first's arm."""
    for params in (SMALL, SMALL | {"readahead_sectors": 0}):
        drive = Drive(params)
        first = drive.submit(READ, 1000, 40, 0)
        second = drive.submit(READ, 1000, 8, 1)
        third = drive.submit(READ, 300, 8, 2)
        fourth = drive.submit(READ, 1004, 8, 3)
        drive.drain()
        arrival = first.done_ns - drive.hdd.tail_ns
        assert second.done_ns > arrival
        assert fourth.done_ns > arrival
        assert third.done_ns > arrival


def test_what_passes_before_a_read_is_kept_by_some() -> None:
    """Once the arm is there; the sectors before it on its track, no more."""
    kept = 0
    for behind in (0, 1):
        drive = Drive(SMALL, read_behind=behind, segment_sectors=128)
        for sector in (350, 1250, 2050):
            read = drive.one(READ, sector, 8, 7 * MS)
            track = next(s for s in range(sector, 0, -1) if not drive.same_track(s - 1, sector))
            first = sector
            while first > track:
                again = drive.one(READ, first - 1, 1, read.done_ns + 300 * MS)
                if again.done_ns - again.submit_ns > MS:
                    break
                first -= 1
            passed = drive.passing_ns(first, sector)
            assert passed <= read.position_ns
            assert first == sector or behind
            kept += sector - first
    assert kept > 30


def test_a_segment_may_forget_what_the_host_has_had() -> None:
    for keeps in (1, 0):
        drive = Drive(SMALL, segment_keeps_read=keeps)
        now = drive.one(READ, 100, 16, 0).done_ns + 5 * MS
        again = drive.one(READ, 100, 16, now)
        assert (again.position_ns == 0) == bool(keeps)
        drive = Drive(SMALL, segment_keeps_read=keeps)
        now = drive.one(READ, 100, 16, 0).done_ns + 5 * MS
        assert drive.one(READ, 116, 16, now).position_ns == 0


@pytest.mark.parametrize(("until", "ahead"), [(0, 32), (1, 24), (2, 20), (3, 32), (4, 20)])
def test_reading_ahead_ends_by_the_drives_rule(until: int, ahead: int) -> None:
    """Of 40 sectors read at 40: 32 more, or until the segment of 64 or the track of 100 ends.

    The cylinder ends after 32.
    """
    drive = Drive(SMALL, ahead_until=until)
    now = drive.one(READ, 40, 40, 0).done_ns + 100 * MS
    assert drive.one(READ, 80 + ahead - 1, 1, now).position_ns == 0
    drive = Drive(SMALL, ahead_until=until)
    now = drive.one(READ, 40, 40, 0).done_ns + 100 * MS
    assert drive.one(READ, 80 + ahead + 1, 1, now).position_ns > 0


def _there(until: int, reads: list[tuple[int, int]], sector: int) -> bool:
    drive = Drive(SMALL, ahead_until=until)
    now = 0
    for start, nr in reads:
        now = drive.one(READ, start, nr, now).done_ns
    return bool(drive.one(READ, sector, 1, now + 100 * MS).position_ns == 0)


def test_reading_ahead_ends_with_the_cylinder() -> None:
    """Two tracks of 100."""
    assert _there(3, [(160, 20)], 199)
    assert not _there(3, [(160, 20)], 201)
    assert _there(0, [(160, 20)], 201)


def test_reading_ahead_goes_on_to_the_next_track_in_order() -> None:
    assert not _there(4, [(85, 8)], 101)
    assert _there(4, [(85, 8), (93, 8)], 120)
    # Nor does it where the track before has nothing of the segment.
    assert not _there(4, [(190, 8)], 201)


@pytest.mark.parametrize("empties", [0, 1])
def test_a_write_may_empty_the_segments_that_it_touches(empties: int) -> None:
    drive = Drive(SMALL, write_empties=empties, write_idle_ns=9000 * MS)
    now = drive.one(READ, 100, 16, 0).done_ns + 50 * MS
    now = drive.one(READ, 2000, 16, now).done_ns + 50 * MS
    now = drive.one(WRITE, 104, 4, now).done_ns + MS
    again = drive.one(READ, 100, 16, now)
    assert (again.position_ns > 0) == bool(empties)
    assert drive.one(READ, 2000, 16, again.done_ns + 50 * MS).position_ns == 0


# What the interface carries

SLOW = {"interface_bytes_per_s": 2_000_000, "segment_sectors": 128, "readahead_sectors": 128}


@pytest.mark.parametrize("depth", [1, 2, 8, 32])
@pytest.mark.parametrize("order", [0, 1])
def test_a_slow_interface_is_the_limit_at_every_depth(depth: int, order: int) -> None:
    """The medium gives 3.7 to 6.1 MB/s."""
    drive = Drive(SMALL | SLOW | {"read_watermark_permille": 1000 * order})
    sector = moved = now = 0
    while moved < 100:
        while len(drive.inside) < depth:
            drive.submit(READ, sector, 16, now)
            sector = (sector + 16) % 3200
        now = drive.next()
        moved += drive.pop(now) is not None
    rate = moved * 16 * 512 / now * 1e9
    assert rate <= 2_000_000
    # In series, one at a time, the medium and the interface wait for each other.
    assert rate > (1_700_000 if depth > 1 or not order else 600_000)


@pytest.mark.parametrize(("rate", "order"), [(2_000_000, 0), (2_000_000, 1), (300_000_000, 1)])
def test_a_read_takes_its_way_and_the_slower_of_medium_and_interface(rate: int, order: int) -> None:
    drive = Drive(BARE | {"interface_bytes_per_s": rate, "read_watermark_permille": 1000 * order})
    draw = random.Random(4)
    now = 0
    for _ in range(200):
        sector = draw.randrange(3200)
        now += draw.randrange(20 * MS)
        cmd = drive.one(READ, sector, 64, now)
        medium = drive.hdd.head_ns - cmd.start_ns - cmd.position_ns
        bus = 64 * 512 * 10**9 // rate
        way = 50_000 + cmd.position_ns
        if order:
            assert cmd.done_ns - now == pytest.approx(way + medium + bus, abs=10)
        else:
            wanted = way + max(medium + drive.hdd.tail_ns, bus)
            assert cmd.done_ns - now == pytest.approx(wanted, abs=10)
        now = cmd.done_ns


@pytest.mark.parametrize("permille", [0, 250, 500, 999, 1000])
@pytest.mark.parametrize("of_segment", [0, 1])
def test_a_read_is_sent_from_the_watermark_on(permille: int, of_segment: int) -> None:
    """On an interface that is slower than the medium; a segment has 64 sectors."""
    slow = {"interface_bytes_per_s": 1_000_000, "interface_unit_sectors": 1}
    mark_of = {"read_watermark_permille": permille, "watermark_of": of_segment}
    drive = Drive(BARE | slow | mark_of)
    draw = random.Random(5)
    now = 0
    for i in range(100):
        nr = draw.choice([1, 8, 24, 48])
        now += draw.randrange(20 * MS)
        cmd = drive.one(READ, i % 2 * 1600 + draw.randrange(1500), nr, now)
        medium = drive.hdd.head_ns - cmd.start_ns - cmd.position_ns
        mark = min(nr, (64 if of_segment else nr) * permille // 1000)
        sent = nr * 512 * 10**9 // 1_000_000
        # The last sector is sent when it has passed the head.
        begin = max(medium * mark // nr, medium + drive.hdd.tail_ns - sent)
        wanted = 50_000 + cmd.position_ns + begin + sent
        assert cmd.done_ns - now == pytest.approx(wanted, abs=10)
        now = cmd.done_ns


@pytest.mark.parametrize("permille", [0, 500, 1000])
@pytest.mark.parametrize("gap", [0, 10])
@pytest.mark.parametrize("think_ns", [0, MS, 2 * MS])
def test_so_is_one_that_reading_ahead_meets(permille: int, gap: int, think_ns: int) -> None:
    """The head goes on over a gap; sectors are sent once they have passed it."""
    slow = {"interface_bytes_per_s": 1_000_000, "interface_unit_sectors": 1}
    drive = Drive(SMALL | slow | {"read_watermark_permille": permille})
    # Until its data are sent, the head reads ahead to its limit of 32 sectors.
    now = drive.one(READ, 20, 1, 0).done_ns + think_ns
    nr, sent = 24, 24 * 512 * 10**9 // 1_000_000
    passed_ns, passed = drive.hdd.head_ns, 21
    cmd = drive.one(READ, 21 + gap, nr, now)
    sector_ns = drive.hdd.params.rotation_ns / 100
    at = [passed_ns + (21 + gap + one - passed + 1) * sector_ns for one in range(nr)]
    mark = nr * permille // 1000
    begin = max(now + 50_000, at[mark - 1] if mark else at[0] - sector_ns)
    wanted = max(begin + sent, at[-1] + drive.hdd.tail_ns)
    assert cmd.done_ns == pytest.approx(wanted, abs=2 * sector_ns)


def test_a_hit_goes_before_data_that_the_medium_is_yet_to_give() -> None:
    drive = Drive(SMALL, readahead_sectors=0)
    now = drive.one(READ, 100, 8, 0).done_ns
    far = drive.submit(READ, 3000, 8, now)
    hit = drive.submit(READ, 100, 8, now)
    assert drive.drain() == [hit, far]
    assert hit.done_ns - now < 100_000
