# SPDX-License-Identifier: GPL-2.0-only
"""The disk model: geometry, the way to a sector, rates, and what is measured of it."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from disk_driver import (
    BARE,
    FLAT,
    MS,
    READ,
    SMALL,
    WRITE,
    Drive,
    disk_core,
    drive_memory,
)
from hypothesis import given
from hypothesis import strategies as st

from streamsched.sim import diskfile
from streamsched.sim.diskfile import Disk, load_disk

# Geometry


def test_no_two_sectors_share_a_place(drive: Drive) -> None:
    places = [drive.map(sector) for sector in range(SMALL["capacity_sectors"])]
    assert len(set(places)) == len(places)


def test_cylinders_and_heads_are_numbered_in_order(drive: Drive) -> None:
    tracks = [drive.map(sector)[:2] for sector in range(SMALL["capacity_sectors"])]
    assert tracks == sorted(tracks)
    assert tracks[0] == (0, 0)
    assert tracks[-1] == (sum(SMALL["zone_cylinders"]) - 1, 1)


def test_each_track_has_its_zones_sectors_evenly_spread(drive: Drive) -> None:
    by_track: dict[tuple[int, int], list[int]] = {}
    for sector in range(SMALL["capacity_sectors"]):
        cylinder, head, angle = drive.map(sector)
        by_track.setdefault((cylinder, head), []).append(angle)
    cylinder = 0
    rotation = SMALL["rotation_ns"]
    sizes = zip(SMALL["zone_cylinders"], SMALL["zone_sectors_per_track"], strict=True)
    for cylinders, per_track in sizes:
        for track in itertools.product(range(cylinder, cylinder + cylinders), (0, 1)):
            angles = by_track[track]
            assert len(angles) == per_track or track == max(by_track)
            for i, angle in enumerate(angles):
                ideal = i * rotation / per_track
                assert abs((angle - angles[0]) % rotation - ideal) <= 1
        cylinder += cylinders


def test_tracks_begin_later_by_their_skew(drive: Drive) -> None:
    rotation = SMALL["rotation_ns"]
    begins: dict[tuple[int, int], int] = {}
    for sector in range(SMALL["capacity_sectors"]):
        cylinder, head, angle = drive.map(sector)
        begins.setdefault((cylinder, head), angle)
    for (before, a), (after, b) in itertools.pairwise(begins.items()):
        skew = SMALL["track_skew_ns" if before[0] == after[0] else "cylinder_skew_ns"]
        assert (b - a) % rotation == skew


@pytest.mark.property
@given(data=st.data())
def test_the_map_is_one_to_one_on_any_geometry(data: st.DataObject) -> None:
    zones = data.draw(st.lists(st.tuples(st.integers(1, 5), st.integers(8, 40)), min_size=1))[:64]
    surfaces = data.draw(st.integers(1, 5))
    skews = data.draw(st.tuples(st.integers(900_000, 7 * MS), st.integers(1_500_000, 7 * MS)))
    capacity = sum(cylinders * per_track for cylinders, per_track in zones) * surfaces
    drive = Drive(
        SMALL
        | {
            "capacity_sectors": capacity,
            "surfaces": surfaces,
            "nr_zones": len(zones),
            "zone_cylinders": [zone[0] for zone in zones],
            "zone_sectors_per_track": [zone[1] for zone in zones],
            "track_skew_ns": skews[0],
            "cylinder_skew_ns": skews[1],
            "seek_cylinders": [1, 5, 10_000],
        }
    )
    places = [drive.map(sector) for sector in range(capacity)]
    assert len(set(places)) == capacity
    assert [place[:2] for place in places] == sorted(place[:2] for place in places)


def test_seek_times_follow_the_curve() -> None:
    """At the given points, between them by straight lines, and never falling."""
    disk = load_disk("wd5000aaks")
    drive = Drive(disk.params())
    points = list(zip(disk.seek_cylinders, disk.seek_ns, strict=True))
    stroke = sum(disk.zone_cylinders) - 1
    assert drive.seek(0) == 0
    for (c0, t0), (c1, t1) in itertools.pairwise(points):
        for cylinders in (c0, (c0 + c1) // 2, c1 - 1):
            exact = t0 + (t1 - t0) * (cylinders - c0) / (c1 - c0)
            # Long distances are tabulated in steps; corners are cut there.
            assert drive.seek(cylinders) == pytest.approx(exact, rel=0.005)
    times = [drive.seek(cylinders) for cylinders in range(0, stroke + 1, 7)]
    assert times == sorted(times)


# Timing of single commands


def test_a_transfer_begins_when_its_first_sector_is_under_the_head() -> None:
    """The end of a read, less the time of its sectors, is at their angle."""
    drive = Drive(BARE)
    draw = random.Random(1)
    now = 0
    for _ in range(300):
        sector = draw.randrange(BARE["capacity_sectors"] - 9)
        if not drive.same_track(sector, sector + 8):
            continue
        now += draw.randrange(30 * MS)
        cmd = drive.one(READ, sector, 8, now)
        now = cmd.done_ns
        begin = cmd.done_ns - drive.hdd.tail_ns - drive.passing_ns(sector, sector + 8)
        assert begin % BARE["rotation_ns"] == drive.map(sector)[2]
        assert begin == cmd.start_ns + cmd.position_ns


def test_the_platter_turns_with_the_clock_however_late() -> None:
    """Sector 0 is under the head at every multiple of the revolution, exactly."""
    rotation = BARE["rotation_ns"]
    draw = random.Random(8)
    turns = [1, 2, 3, *(draw.randrange(1 << bits) for bits in range(4, 40)), *range(1000, 1400)]
    for turn in turns:
        for early in (1, 0, -1):
            drive = Drive(BARE, overhead_ns=[0] * 8)
            cmd = drive.one(READ, 0, 1, turn * rotation - early)
            assert cmd.position_ns == early % rotation
            # The same once the disk has seen that time.
            cmd = drive.one(WRITE, 0, 1, (turn + 5) * rotation)
            assert cmd.position_ns == rotation
            assert cmd.start_ns == (turn + 5) * rotation


def test_positioning_is_the_seek_and_less_than_a_revolution() -> None:
    drive = Drive(BARE)
    draw = random.Random(2)
    now, at = 0, 0
    for _ in range(500):
        sector = draw.randrange(BARE["capacity_sectors"])
        write = draw.random() < 0.5
        cmd = drive.one(WRITE if write else READ, sector, 1, now)
        cylinders = abs(drive.map(sector)[0] - drive.map(at)[0])
        move = drive.seek(cylinders)
        if not cylinders and drive.map(sector)[1] != drive.map(at)[1]:
            move = BARE["head_switch_ns"]
        if write and move:
            move += BARE["write_settle_ns"]
        if move:
            assert 0 <= cmd.position_ns - move < BARE["rotation_ns"]
        now, at = cmd.done_ns + draw.randrange(9 * MS), sector


@pytest.mark.property
@given(sizes=st.lists(st.integers(1, 300), min_size=2, max_size=40), start=st.integers(0, 500))
def test_sequential_reads_take_the_time_of_their_sectors(sizes: list[int], start: int) -> None:
    """However cut: to the nanosecond what passes the head, over tracks and zones."""
    drive = Drive(SMALL)
    now, sector = 0, start
    ends: list[tuple[int, int]] = []
    for size in sizes:
        if sector + size >= SMALL["capacity_sectors"]:
            break
        cmd = drive.one(READ, sector, size, now)
        sector += size
        now = cmd.done_ns
        # What takes the bus longer than the medium is not a medium's time.
        if cmd.done_ns - cmd.start_ns > size * 1707 + 1 and drive.same_track(sector - 1, sector):
            ends.append((sector, cmd.done_ns))
    for (a, begin), (b, end) in itertools.pairwise(ends):
        assert end - begin == drive.passing_ns(a, b)


@pytest.mark.parametrize("zone", [0, 1, 2])
def test_sequential_rate_is_that_of_the_zone(zone: int) -> None:
    drive = Drive(SMALL)
    per_track = SMALL["zone_sectors_per_track"]
    first = sum(
        c * 2 * s for c, s in zip(SMALL["zone_cylinders"][:zone], per_track[:zone], strict=True)
    )
    # From the middle of one track to the same place two cylinders on.
    now, ends = 0, []
    for sector in range(first, first + 6 * per_track[zone], 10):
        cmd = drive.one(READ, sector, 10, now)
        now = cmd.done_ns
        ends.append(now)
    cylinder_ns = 2 * SMALL["rotation_ns"] + SMALL["track_skew_ns"] + SMALL["cylinder_skew_ns"]
    half = per_track[zone] // 20
    steps = 2 * per_track[zone] // 10
    if steps * 10 == 2 * per_track[zone]:
        assert ends[half + steps] - ends[half] == cylinder_ns
    rate = (len(ends) - 1 - half) * 10 / (ends[-1] - ends[half])
    assert rate == pytest.approx(2 * per_track[zone] / cylinder_ns, rel=0.12)


@pytest.mark.parametrize("name", [n for n in diskfile.list_disks() if n != "ssd"])
def test_sequential_rates_of_the_shipped_disks(name: str) -> None:
    disk = load_disk(name)
    measured = figures(disk)
    surfaces = disk.surfaces
    cylinder_ns = (
        surfaces * disk.rotation_ns + (surfaces - 1) * disk.track_skew_ns + disk.cylinder_skew_ns
    )
    for place, zone in (("outer", 0), ("inner", -1)):
        exact = surfaces * disk.zone_sectors_per_track[zone] * 512 * 1e9 / cylinder_ns
        # One at a time the interface has nothing to do while a command is decoded.
        bus_ns = disk.command_overhead_ns + (1 << 20) * 1e9 / disk.interface_bytes_per_s
        exact = min(exact, (1 << 20) * 1e9 / bus_ns)
        assert getattr(measured, f"{place}_bytes_per_s") == pytest.approx(exact, rel=0.005)
    assert measured.outer_write_bytes_per_s == pytest.approx(measured.outer_bytes_per_s, rel=0.01)


# Measuring


def figures(disk: Disk) -> Any:
    ffi, lib = disk_core()
    out = ffi.new("struct hdd_figures *")
    params = ffi.new("struct hdd_params *", disk.params())
    why = ffi.new("const char **")
    memory, commands = drive_memory(params), ffi.new("struct hdd_cmd[254]")
    assert lib.hdd_measure_figures(memory[0], commands, params, out, why) == 0
    return out


def curve(disk: Disk, most: int = 40) -> list[tuple[int, int]]:
    ffi, lib = disk_core()
    params = ffi.new("struct hdd_params *", disk.params())
    distances, times, why = ffi.new("u64[40]"), ffi.new("u64[40]"), ffi.new("const char **")
    memory = drive_memory(params)
    nr = lib.hdd_measure_curve(memory[0], params, most, distances, times, why)
    assert 2 <= nr <= most
    return [(distances[i], times[i]) for i in range(nr)]


@pytest.mark.parametrize("name", diskfile.list_disks())
def test_the_curve_is_one(name: str) -> None:
    disk = load_disk(name)
    for most in (2, 3, 10, 40):
        points = curve(disk, most)
        assert points[0][0] == 0
        assert disk.capacity_sectors * 0.98 < points[-1][0] < disk.capacity_sectors
        assert all(a[0] < b[0] and a[1] <= b[1] for a, b in itertools.pairwise(points))
        assert curve(disk, most) == points
    assert len(points) == 40
    if name == "ssd":
        assert len({time for _, time in points}) == 1
        return
    assert points[0][1] == 0
    if disk.actuators == 2:
        # Its other arm rests where it was last: half of the far reads are random ones.
        return
    # Long distances: the seek plus half a revolution, near enough.
    stroke = disk.seek_ns[-1] + disk.rotation_ns / 2
    assert points[-1][1] == pytest.approx(stroke, rel=0.05)


def test_the_papers_four_readers() -> None:
    """Xu and Jiang, FAST 2011, section 3.3: 16.0 MB/s with noop.

    The disk's part of it, without processes and page cache; the whole is
    compared, more strictly, by `streamsched reproduce`.
    """
    disk = load_disk("wd5000aaks")
    drive = Drive(disk.params())
    gap = (50 + 1) * 10**9 // 512
    position = [i * gap for i in range(4)]
    waiting = [(0, i) for i in range(4)]
    reader: dict[Any, int] = {}
    now, done = 0, 0
    while done < 2000:
        if waiting and waiting[0][0] <= drive.next():
            now, i = waiting.pop(0)
            reader[drive.submit(READ, position[i], 256, now)] = i
            position[i] += 256
        else:
            now = drive.next()
            waiting.append((now + 60_000, reader.pop(drive.pop(now))))
            done += 1
    assert done * 256 * 512 / now * 1000 == pytest.approx(16.0, rel=0.2)


# Flat disks


def test_flat_latency_and_parallelism() -> None:
    drive = Drive(FLAT)
    bus = FLAT["command_overhead_ns"] + 8 * 512 * 10**9 // 500_000_000
    near = drive.one(READ, 0, 8, 0)
    far = drive.one(READ, 90_000, 8, near.done_ns)
    assert near.done_ns == far.done_ns - far.submit_ns == 60_000 + bus
    now = far.done_ns
    for i in range(8):
        drive.submit(READ, i * 1000, 8, now)
    ends = [cmd.done_ns - now for cmd in drive.drain()]
    # Four at once, then four more.
    assert ends[:4] == [60_000 + (i + 1) * bus for i in range(4)]
    assert ends[4] == 120_000 + bus
