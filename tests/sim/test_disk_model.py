# SPDX-License-Identifier: GPL-2.0-only
"""The mechanical disk: geometry, timing, queue, caches, and the files of disks/.

The expected times are worked out here a second time, sector by sector from
the disk's map, and not with the formulas of the model.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsched.base.errors import UsageError
from streamsched.sim import diskfile
from streamsched.sim.diskfile import Disk, load_disk

READ, WRITE, FLUSH = 0, 1, 2
NEVER = (1 << 64) - 1
EINVAL, EBUSY = 22, 16
MS = 1_000_000
ROOT = Path(__file__).resolve().parents[2]
HEADERS = [f"disk/hdd{name}.h" for name in ("_params", "", "_drive", "_measure", "_media")]


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """(ffi, lib) of the disk model alone, compiled here.

    It stands in for the fixture of the same name in conftest.py, which gives
    the whole compiled core; nothing else here would change with that one.
    """
    import importlib.util

    from cffi import FFI

    from streamsched import _build_core

    builder = FFI()
    builder.cdef(_build_core.make_cdef(["cc"], ROOT, HEADERS))
    builder.set_source(
        "_disk_under_test",
        "".join(f'#include "{header}"\n' for header in HEADERS),
        sources=[
            *(str(path) for path in sorted((ROOT / "disk").glob("*.c"))),
            str(ROOT / "compat" / "rbtree.c"),
        ],
        include_dirs=[str(ROOT), str(ROOT / "compat")],
        extra_compile_args=["-std=gnu11", "-O2", "-include", "asm/types.h"],
    )
    path = builder.compile(tmpdir=str(tmp_path_factory.mktemp("disk")))
    spec = importlib.util.spec_from_file_location("_disk_under_test", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ffi, module.lib


# A small disk, quick to go over wholly: 3 zones, 2 surfaces, odd numbers.
SMALL: dict[str, Any] = {
    "kind": 0,
    "capacity_sectors": 2 * (7 * 100 + 5 * 83 + 9 * 61) - 30,
    "queue_depth": 32,
    "actuators": 1,
    "interface_bytes_per_s": 300_000_000,
    "command_overhead_ns": 50_000,
    "interface_unit_sectors": 8,
    "overhead_ns": [50_000] * 8,
    "flush_ns": 3 * MS,
    "queue_order": 1,
    "queue_age_permille": 0,
    "queue_age_limit_ns": 100_000 * MS,
    "rotation_ns": 8_333_333,
    "surfaces": 2,
    "nr_zones": 3,
    "zone_cylinders": [7, 5, 9],
    "zone_sectors_per_track": [100, 83, 61],
    "track_skew_ns": 1_100_001,
    "cylinder_skew_ns": 1_700_003,
    "head_switch_ns": 900_000,
    "write_settle_ns": 400_000,
    "physical_sectors": 1,
    "nr_seek_points": 3,
    "seek_cylinders": [1, 5, 40],
    "seek_ns": [1_500_000, 2_500_000, 9_000_000],
    "segments": 4,
    "segment_sectors": 64,
    "readahead_sectors": 32,
    "segment_keeps_read": 1,
    "write_cache_sectors": 96,
    "write_cache_extents": 6,
    "write_idle_ns": 4 * MS,
}
FLAT: dict[str, Any] = {
    "kind": 1,
    "capacity_sectors": 100_000,
    "queue_depth": 32,
    "interface_bytes_per_s": 600_000_000,
    "command_overhead_ns": 3_000,
    "flush_ns": MS,
    "flat_channels": 4,
    "flat_read_ns": 60_000,
    "flat_write_ns": 20_000,
    "flat_read_bytes_per_s": 500_000_000,
    "flat_write_bytes_per_s": 400_000_000,
}
# The same without what the drive does on its own.
BARE = SMALL | {"readahead_sectors": 0, "write_cache_sectors": 0, "segments": 1}


class Drive:
    """A disk of the model and the commands in it, which C must not lose."""

    calls = "hdd_"  # what its functions begin with

    def __init__(self, core: tuple[Any, Any], params: dict[str, Any]) -> None:
        self.ffi, self.lib = core
        self.params = self.ffi.new("struct hdd_params *", params)
        self.hdd = self.ffi.new("struct hdd *")
        why = self.ffi.new("const char **")
        assert self.lib.hdd_init(self.hdd, self.params, why) == 0, self.ffi.string(why[0])
        self.inside: dict[int, Any] = {}

    def call(self, name: str, *arguments: Any) -> Any:
        return getattr(self.lib, self.calls + name)(self.hdd, *arguments)

    def submit(self, op: int, sector: int, nr: int, now: int, fua: bool = False) -> Any:
        cmd = self.ffi.new("struct hdd_cmd *")
        cmd.op, cmd.sector, cmd.nr_sectors, cmd.fua = op, sector, nr, fua
        self.inside[int(self.ffi.cast("uintptr_t", cmd))] = cmd
        self.call("submit", cmd, now)
        return cmd

    def next(self) -> int:
        return int(self.call("next_ns"))

    def pop(self, now: int) -> Any:
        """A command that is done, or None; it must be one of those inside."""
        cmd = self.call("pop", now)
        if cmd == self.ffi.NULL:
            return None
        return self.inside.pop(int(self.ffi.cast("uintptr_t", cmd)))

    def drain(self) -> list[Any]:
        """All that is inside, in order of completion."""
        done = []
        while self.next() != NEVER:
            cmd = self.pop(self.next())
            assert cmd is not None
            done.append(cmd)
        return done

    def one(self, op: int, sector: int, nr: int, now: int, fua: bool = False) -> Any:
        """A command alone in the disk, popped."""
        cmd = self.submit(op, sector, nr, now, fua)
        assert self.pop(self.next()) is cmd
        return cmd

    def map(self, sector: int) -> tuple[int, int, int]:
        """Cylinder, head and angle."""
        out = self.ffi.new("u32[3]")
        self.lib.hdd_map(self.hdd, sector, out, out + 1, out + 2)
        return out[0], out[1], out[2]

    def dirty(self) -> list[tuple[int, int]]:
        """What the write cache holds: [first, end)."""
        held = []

        def look(node: Any) -> None:
            if node != self.ffi.NULL:
                look(node.rb_left)
                piece = self.ffi.cast("struct hdd_dirty *", node)
                place = (piece.cylinder, piece.head, piece.angle_ns)
                assert place == self.map(piece.sector)
                held.append((piece.sector, piece.sector + piece.nr_sectors))
                look(node.rb_right)

        look(self.hdd.dirty_tree.rb_node)
        assert len(held) == self.hdd.nr_dirty
        return held

    def seek(self, cylinders: int) -> int:
        return int(self.lib.hdd_seek_time_ns(self.hdd, cylinders))


def passing_ns(drive: Drive, first: int, end: int) -> int:
    """From the start of @first to the start of @end under the head, step by step."""
    rotation = drive.params.rotation_ns
    angles = [drive.map(sector)[2] for sector in range(first, end + 1)]
    return sum((b - a) % rotation for a, b in itertools.pairwise(angles))


def same_track(drive: Drive, a: int, b: int) -> bool:
    return drive.map(a)[:2] == drive.map(b)[:2]


# Geometry


def test_no_two_sectors_share_a_place(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
    places = [drive.map(sector) for sector in range(SMALL["capacity_sectors"])]
    assert len(set(places)) == len(places)


def test_cylinders_and_heads_are_numbered_in_order(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
    tracks = [drive.map(sector)[:2] for sector in range(SMALL["capacity_sectors"])]
    assert tracks == sorted(tracks)
    assert tracks[0] == (0, 0)
    assert tracks[-1] == (sum(SMALL["zone_cylinders"]) - 1, 1)


def test_each_track_has_its_zones_sectors_evenly_spread(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
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


def test_tracks_begin_later_by_their_skew(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
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
def test_the_map_is_one_to_one_on_any_geometry(core: tuple[Any, Any], data: st.DataObject) -> None:
    zones = data.draw(st.lists(st.tuples(st.integers(1, 5), st.integers(8, 40)), min_size=1))[:64]
    surfaces = data.draw(st.integers(1, 5))
    skews = data.draw(st.tuples(st.integers(900_000, 7 * MS), st.integers(1_500_000, 7 * MS)))
    capacity = sum(cylinders * per_track for cylinders, per_track in zones) * surfaces
    drive = Drive(
        core,
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
        },
    )
    places = [drive.map(sector) for sector in range(capacity)]
    assert len(set(places)) == capacity
    assert [place[:2] for place in places] == sorted(place[:2] for place in places)


def test_seek_times_follow_the_curve(core: tuple[Any, Any]) -> None:
    """At the given points, between them by straight lines, and never falling."""
    disk = load_disk("wd5000aaks")
    drive = Drive(core, disk.params())
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


def test_a_transfer_begins_when_its_first_sector_is_under_the_head(core: tuple[Any, Any]) -> None:
    """The end of a read, less the time of its sectors, is at their angle."""
    drive = Drive(core, BARE)
    draw = random.Random(1)
    now = 0
    for _ in range(300):
        sector = draw.randrange(BARE["capacity_sectors"] - 9)
        if not same_track(drive, sector, sector + 8):
            continue
        now += draw.randrange(30 * MS)
        cmd = drive.one(READ, sector, 8, now)
        now = cmd.done_ns
        begin = cmd.done_ns - drive.hdd.tail_ns - passing_ns(drive, sector, sector + 8)
        assert begin % BARE["rotation_ns"] == drive.map(sector)[2]
        assert begin == cmd.start_ns + cmd.position_ns


def test_the_platter_turns_with_the_clock_however_late(core: tuple[Any, Any]) -> None:
    """Sector 0 is under the head at every multiple of the revolution, exactly."""
    rotation = BARE["rotation_ns"]
    draw = random.Random(8)
    turns = [1, 2, 3, *(draw.randrange(1 << bits) for bits in range(4, 40)), *range(1000, 1400)]
    for turn in turns:
        for early in (1, 0, -1):
            drive = Drive(core, BARE | {"overhead_ns": [0] * 8})
            cmd = drive.one(READ, 0, 1, turn * rotation - early)
            assert cmd.position_ns == early % rotation
            # The same once the disk has seen that time.
            cmd = drive.one(WRITE, 0, 1, (turn + 5) * rotation)
            assert cmd.position_ns == rotation
            assert cmd.start_ns == (turn + 5) * rotation


def test_positioning_is_the_seek_and_less_than_a_revolution(core: tuple[Any, Any]) -> None:
    drive = Drive(core, BARE)
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
def test_sequential_reads_take_the_time_of_their_sectors(
    core: tuple[Any, Any], sizes: list[int], start: int
) -> None:
    """However cut: to the nanosecond what passes the head, over tracks and zones."""
    drive = Drive(core, SMALL)
    now, sector = 0, start
    ends: list[tuple[int, int]] = []
    for size in sizes:
        if sector + size >= SMALL["capacity_sectors"]:
            break
        cmd = drive.one(READ, sector, size, now)
        sector += size
        now = cmd.done_ns
        # What takes the bus longer than the medium is not a medium's time.
        if cmd.done_ns - cmd.start_ns > size * 1707 + 1 and same_track(drive, sector - 1, sector):
            ends.append((sector, cmd.done_ns))
    for (a, begin), (b, end) in itertools.pairwise(ends):
        assert end - begin == passing_ns(drive, a, b)


@pytest.mark.parametrize("zone", [0, 1, 2])
def test_sequential_rate_is_that_of_the_zone(core: tuple[Any, Any], zone: int) -> None:
    drive = Drive(core, SMALL)
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
def test_sequential_rates_of_the_shipped_disks(core: tuple[Any, Any], name: str) -> None:
    disk = load_disk(name)
    measured = figures(core, disk)
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


# Reading ahead


def read_on(core: tuple[Any, Any], disk: Disk, think_ns: int, nr: int, count: int = 300) -> int:
    """Time for @count reads of @nr sectors, one after the other, with pauses."""
    drive = Drive(core, disk.params())
    now = drive.one(READ, 0, nr, 0).done_ns
    begin = now
    for i in range(1, count + 1):
        now = drive.one(READ, i * nr, nr, now + think_ns).done_ns
    return int(now - begin)


@pytest.mark.parametrize("think_us", [0, 50, 300, 1000, 2000, 3000])
def test_thinking_between_sequential_reads_loses_no_revolution(
    core: tuple[Any, Any], think_us: int
) -> None:
    """The drive reads on meanwhile: the slower of the two sets the pace."""
    disk = load_disk("wd5000aaks")
    alone = read_on(core, disk, 0, 256)
    per_read = alone / 300
    taken = read_on(core, disk, think_us * 1000, 256)
    bus = disk.command_overhead_ns + 256 * 512 * 1e9 / disk.interface_bytes_per_s
    assert taken <= 300 * max(per_read, think_us * 1000 + bus) * 1.02


def test_without_reading_ahead_a_pause_costs_a_revolution(core: tuple[Any, Any]) -> None:
    disk = dataclasses.replace(load_disk("wd5000aaks"), readahead_sectors=0)
    assert read_on(core, disk, 50_000, 64) > 300 * disk.rotation_ns * 0.95


def test_reading_ahead_stops_at_its_limit(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
    cmd = drive.one(READ, 10, 4, 0)
    ahead = 14 + SMALL["readahead_sectors"]
    # Long after: the last one read ahead is there, the next one is not.
    inside = drive.one(READ, ahead - 4, 4, cmd.done_ns + 100 * MS)
    assert inside.position_ns == 0
    assert inside.done_ns - inside.submit_ns < 100_000
    drive = Drive(core, SMALL)
    cmd = drive.one(READ, 10, 4, 0)
    beyond = drive.one(READ, ahead, 4, cmd.done_ns + 100 * MS)
    assert beyond.done_ns - beyond.submit_ns > 100_000


@pytest.mark.parametrize("first", [10, 80, 195, 1400])
def test_a_command_elsewhere_ends_reading_ahead(core: tuple[Any, Any], first: int) -> None:
    """What had passed the head wholly by then is in the cache, and no more."""
    for pause in range(0, 4 * MS, 61_007):
        drive = Drive(core, SMALL)
        cmd = drive.one(READ, first, 4, 0)
        away = drive.one(READ, 3000, 1, cmd.done_ns + pause)
        since = away.start_ns - (cmd.done_ns - drive.hdd.tail_ns)
        passed = 0
        while passed < SMALL["readahead_sectors"]:
            last = first + 4 + passed
            # A track's last sector ends before the skew to the next begins.
            skew = passing_ns(drive, last, last + 1) - passing_ns(drive, first, first + 1)
            begin_ns = passing_ns(drive, first + 4, last)
            one_ns = passing_ns(drive, first, first + 1) if skew > 2 else 0
            if begin_ns + (one_ns or passing_ns(drive, last, last + 1)) > since + 2:
                break
            passed += 1
        held = {
            drive.hdd.segment_first[i]: drive.hdd.segment_length[i]
            for i in range(SMALL["segments"])
        }
        assert held[first] == 4 + passed


def test_over_a_gap_the_quicker_way_is_taken(core: tuple[Any, Any]) -> None:
    """Reading on within the track; the arm when it saves a revolution."""
    drive = Drive(core, SMALL | {"readahead_sectors": 300, "segment_sectors": 300})
    cmd = drive.one(READ, 10, 4, 0)
    near = drive.one(READ, 40, 4, cmd.done_ns)
    assert near.done_ns - cmd.done_ns == passing_ns(drive, 14, 44)
    far = drive.one(READ, 44 + 150, 4, near.done_ns)
    assert far.position_ns < SMALL["head_switch_ns"] + SMALL["rotation_ns"]
    assert passing_ns(drive, 44, 44 + 150) > far.position_ns


def test_what_was_read_stays_in_the_least_recently_used_order(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL | {"readahead_sectors": 0})
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


def test_a_segment_keeps_the_newest_part(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL | {"readahead_sectors": 0})
    now = drive.one(READ, 0, 90, 0).done_ns
    assert drive.one(READ, 90 - 64, 64, now + MS).position_ns == 0
    assert drive.one(READ, 0, 8, now + 5 * MS).position_ns > 0


def test_data_is_not_given_out_before_it_was_read(core: tuple[Any, Any]) -> None:
    """The same sectors asked for twice: the second waits for the first's arm."""
    for params in (SMALL, SMALL | {"readahead_sectors": 0}):
        drive = Drive(core, params)
        first = drive.submit(READ, 1000, 40, 0)
        second = drive.submit(READ, 1000, 8, 1)
        third = drive.submit(READ, 300, 8, 2)
        fourth = drive.submit(READ, 1004, 8, 3)
        drive.drain()
        arrival = first.done_ns - drive.hdd.tail_ns
        assert second.done_ns > arrival
        assert fourth.done_ns > arrival
        assert third.done_ns > arrival


# Queue


def test_queue_depth(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL | {"queue_depth": 8})
    lib, hdd = drive.lib, drive.hdd
    for depth in (0, 9, 32, 1 << 31):
        assert lib.hdd_set_queue_depth(hdd, depth) == -EINVAL
    assert lib.hdd_set_queue_depth(hdd, 2) == 0
    assert not lib.hdd_full(hdd)
    drive.submit(READ, 0, 1, 0)
    assert lib.hdd_set_queue_depth(hdd, 2) == -EBUSY
    assert not lib.hdd_full(hdd)
    drive.submit(READ, 1000, 1, 0)
    assert lib.hdd_full(hdd)
    assert drive.pop(drive.next()) is not None
    assert not lib.hdd_full(hdd)
    drive.drain()
    assert drive.next() == NEVER
    assert lib.hdd_set_queue_depth(hdd, 8) == 0


def test_nothing_is_popped_before_its_time(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
    cmd = drive.submit(READ, 1000, 8, 5)
    assert drive.pop(drive.next() - 1) is None
    assert drive.pop(drive.next()) is cmd


def mean_service(core: tuple[Any, Any], disk: Disk, depth: int, count: int = 3000) -> float:
    drive = Drive(core, disk.params())
    draw = random.Random(3)
    now = 0
    for _ in range(count):
        if len(drive.inside) == depth:
            now = drive.next()
            assert drive.pop(now) is not None
        drive.submit(READ, draw.randrange(disk.capacity_sectors // 8) * 8, 8, now)
    return now / (count - depth)


def test_a_deeper_queue_shortens_the_way_only_when_the_drive_orders(
    core: tuple[Any, Any],
) -> None:
    disk = dataclasses.replace(load_disk("exos-x18"), queue_age_permille=0)
    one, four, many = (mean_service(core, disk, depth) for depth in (1, 4, 32))
    assert one > 1.3 * four > 1.6 * many
    fifo = dataclasses.replace(disk, queue_order=0)
    assert mean_service(core, fifo, 32) == pytest.approx(one, rel=0.03)


def test_the_shortest_way_is_chosen(core: tuple[Any, Any]) -> None:
    """Each choice is the best of those waiting, by seek, switch and angle."""
    drive = Drive(core, BARE | {"overhead_ns": [0] * 8})
    draw = random.Random(4)
    sectors = draw.sample(range(0, BARE["capacity_sectors"] - 4, 4), 32)
    first, *waiting = [drive.submit(READ, sector, 4, 0) for sector in sectors]
    done = drive.drain()
    assert done[0] is first
    rotation = BARE["rotation_ns"]
    for before, chosen in itertools.pairwise(done):
        start = before.done_ns - drive.hdd.tail_ns
        assert chosen.start_ns == start
        at = drive.map(before.sector + 3)
        costs = []
        for cmd in waiting:
            cylinder, head, angle = drive.map(cmd.sector)
            move = drive.seek(abs(cylinder - at[0]))
            if cylinder == at[0] and head != at[1]:
                move = BARE["head_switch_ns"]
            if cmd.sector == before.sector + 4:
                move = 0
            costs.append(move + (angle - start - move) % rotation)
        assert chosen.position_ns == min(costs)
        waiting.remove(chosen)


@pytest.mark.parametrize("limit_ms", [50, 200, 1000])
def test_the_age_limit_bounds_waiting(core: tuple[Any, Any], limit_ms: int) -> None:
    """Near commands keep coming; a far one waits for the limit and little more."""

    def far_waits(limit_ns: int) -> int:
        slow = {"seek_ns": [1_500_000, 2_500_000, 80 * MS]}
        drive = Drive(core, BARE | slow | {"queue_age_limit_ns": limit_ns})
        draw = random.Random(5)
        now = 0
        for _ in range(15):
            drive.submit(READ, draw.randrange(150), 1, now)
        far = drive.submit(READ, 3000, 1, now)
        while far.done_ns == 0 and now < 20_000 * MS:
            now = drive.next()
            if drive.pop(now) is not far:
                drive.submit(READ, draw.randrange(150), 1, now)
        return int(far.done_ns or now) - int(far.submit_ns)

    # At the limit one more may be under way, and those that are older.
    longest = 40 * MS + BARE["rotation_ns"]
    assert far_waits(limit_ms * MS) <= limit_ms * MS + 17 * longest
    assert far_waits(limit_ms * MS) >= limit_ms * MS
    assert far_waits(100_000 * MS) > 2 * (1000 * MS)


def test_age_counts_as_distance(core: tuple[Any, Any]) -> None:
    """The more it counts, the less anybody waits, and the less gets done."""
    disk = load_disk("exos-x18")

    def longest_and_mean(permille: int) -> tuple[int, float]:
        aged = dataclasses.replace(disk, queue_age_permille=permille)
        drive = Drive(core, aged.params())
        draw = random.Random(6)
        now, longest = 0, 0
        for i in range(4000):
            if i >= 32:
                now = drive.next()
                cmd = drive.pop(now)
                longest = max(longest, cmd.done_ns - cmd.submit_ns)
            drive.submit(READ, draw.randrange(disk.capacity_sectors // 8) * 8, 8, now)
        return longest, now / 4000

    results = [longest_and_mean(permille) for permille in (0, 30, 300)]
    assert results[0][0] > results[1][0] > results[2][0]
    assert results[0][1] < results[1][1] < results[2][1]


# Write cache and flush


def test_writes_are_acknowledged_at_the_speed_of_the_interface(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
    cmd = drive.one(WRITE, 1000, 8, 0)
    assert cmd.position_ns == 0
    assert cmd.done_ns == SMALL["command_overhead_ns"] + 8 * 512 * 10**9 // 300_000_000
    assert drive.dirty() == [(1000, 1008)]


def test_fua_and_a_disabled_cache_wait_for_the_medium(core: tuple[Any, Any]) -> None:
    for params, fua in ((SMALL, True), (SMALL | {"write_cache_sectors": 0}, False)):
        drive = Drive(core, params)
        cmd = drive.one(WRITE, 1000, 8, 0, fua=fua)
        assert cmd.position_ns > 0
        begin = cmd.done_ns - drive.hdd.tail_ns - passing_ns(drive, 1000, 1008)
        assert begin % SMALL["rotation_ns"] == drive.map(1000)[2]
        assert not drive.dirty()


def test_dirty_sectors_are_read_from_the_cache(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
    now = drive.one(WRITE, 1000, 16, 0).done_ns
    inside = drive.one(READ, 1004, 8, now)
    assert inside.position_ns == 0
    assert inside.done_ns - now < 100_000
    assert drive.one(READ, 1008, 16, inside.done_ns).position_ns > 0


def test_the_cache_is_written_out_when_idle_and_not_before(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
    now = drive.one(WRITE, 1000, 8, 0).done_ns
    assert drive.pop(now + SMALL["write_idle_ns"] - 1) is None
    assert drive.dirty() == [(1000, 1008)]
    assert drive.pop(now + SMALL["write_idle_ns"] + 1) is None
    assert drive.dirty() == []


def test_a_flush_waits_for_what_was_acknowledged(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
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


def test_nothing_passes_a_flush(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
    drive.one(WRITE, 100, 8, 0)
    before = drive.submit(READ, 1800, 8, 100_000)
    flush = drive.submit(FLUSH, 0, 0, 100_001)
    hit = drive.submit(READ, 100, 8, 100_002)
    write = drive.submit(WRITE, 104, 8, 100_003)
    done = drive.drain()
    assert done.index(before) < done.index(flush) < min(done.index(hit), done.index(write))


def test_scattered_writes_go_out_in_positional_order(core: tuple[Any, Any]) -> None:
    """Sorted they cost less than one by one."""
    disk = load_disk("exos-x18")
    draw = random.Random(7)
    sectors = [draw.randrange(disk.capacity_sectors // 8) * 8 for _ in range(128)]
    drive = Drive(core, disk.params())
    now = 0
    for sector in sectors:
        now = drive.one(WRITE, sector, 8, now).done_ns
    sorted_ns = drive.one(FLUSH, 0, 0, now).position_ns
    drive = Drive(core, disk.params())
    now, single_ns = 0, 0
    for sector in sectors:
        cmd = drive.one(WRITE, sector, 8, now, fua=True)
        now, single_ns = cmd.done_ns, single_ns + cmd.position_ns
    assert sorted_ns < 0.75 * single_ns


def test_contiguous_small_writes_stream(core: tuple[Any, Any]) -> None:
    """16 KiB writes one after the other reach the medium's rate, full cache or not."""
    disk = load_disk("wd5000aaks")
    drive = Drive(core, disk.params())
    now, sector, begin, first = 0, 0, 0, 5_000
    for i in range(20_000):
        cmd = drive.one(WRITE, sector, 32, now)
        now = cmd.done_ns
        sector += 32
        if i == first:
            begin = now
    rate = (20_000 - first - 1) * 32 * 512 * 1e9 / (now - begin)
    assert rate == pytest.approx(100.1e6, rel=0.01)


def test_a_write_larger_than_the_cache_goes_to_the_medium(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
    cmd = drive.one(WRITE, 1000, SMALL["write_cache_sectors"] + 1, 0)
    assert cmd.position_ns > 0
    assert not drive.dirty()


def test_fua_over_dirty_sectors_leaves_the_rest(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL | {"write_idle_ns": 9000 * MS})
    now = drive.one(WRITE, 1000, 20, 0).done_ns
    drive.one(WRITE, 1005, 5, now, fua=True)
    assert drive.dirty() == [(1000, 1005), (1010, 1020)]
    assert drive.hdd.dirty_sectors == 15


def test_an_extent_that_is_joined_at_its_front_begins_there(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL | {"write_idle_ns": 9000 * MS})
    now = drive.one(WRITE, 1000, 8, 0).done_ns
    drive.one(WRITE, 984, 16, now)
    assert drive.dirty() == [(984, 1008)]


def test_a_full_list_of_dirty_pieces_is_not_split(core: tuple[Any, Any]) -> None:
    """A FUA write into the middle of one piece, and no room for another piece."""
    most = core[1].HDD_MAX_DIRTY
    many = {
        "zone_cylinders": [7, 5, 9000],
        "capacity_sectors": 16 * most,
        "seek_cylinders": [1, 5, 10000],
        "write_cache_extents": most,
        "write_cache_sectors": 16 * most,
        "write_idle_ns": 9000 * MS,
    }
    drive = Drive(core, SMALL | many)
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


def test_without_cached_writes_a_flush_has_nothing_to_do(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL)
    now = drive.one(WRITE, 1000, 8, 0, fua=True).done_ns
    flush = drive.one(FLUSH, 0, 0, now)
    assert flush.done_ns - flush.submit_ns == SMALL["command_overhead_ns"]


# What the interface carries

SLOW = {"interface_bytes_per_s": 2_000_000, "segment_sectors": 128, "readahead_sectors": 128}


@pytest.mark.parametrize("depth", [1, 2, 8, 32])
@pytest.mark.parametrize("order", [0, 1])
def test_a_slow_interface_is_the_limit_at_every_depth(
    core: tuple[Any, Any], depth: int, order: int
) -> None:
    """The medium gives 3.7 to 6.1 MB/s."""
    drive = Drive(core, SMALL | SLOW | {"read_watermark_permille": 1000 * order})
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
def test_a_read_takes_its_way_and_the_slower_of_medium_and_interface(
    core: tuple[Any, Any], rate: int, order: int
) -> None:
    drive = Drive(
        core, BARE | {"interface_bytes_per_s": rate, "read_watermark_permille": 1000 * order}
    )
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
def test_a_read_is_sent_from_the_watermark_on(
    core: tuple[Any, Any], permille: int, of_segment: int
) -> None:
    """On an interface that is slower than the medium; a segment has 64 sectors."""
    slow = {"interface_bytes_per_s": 1_000_000, "interface_unit_sectors": 1}
    mark_of = {"read_watermark_permille": permille, "watermark_of": of_segment}
    drive = Drive(core, BARE | slow | mark_of)
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
def test_so_is_one_that_reading_ahead_meets(
    core: tuple[Any, Any], permille: int, gap: int, think_ns: int
) -> None:
    """The head goes on over a gap; sectors are sent once they have passed it."""
    slow = {"interface_bytes_per_s": 1_000_000, "interface_unit_sectors": 1}
    drive = Drive(core, SMALL | slow | {"read_watermark_permille": permille})
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


@pytest.mark.parametrize("series", [0, 1])
def test_a_writes_data_come_before_its_way_or_meanwhile(core: tuple[Any, Any], series: int) -> None:
    sent = 16 * 512 * 10**9 // 1_000_000
    drive = Drive(core, BARE | {"interface_bytes_per_s": 1_000_000, "write_series": series})
    cmd = drive.one(WRITE, 2000, 16, 0)
    passed = drive.hdd.head_ns + drive.hdd.tail_ns
    assert cmd.done_ns == max(passed, 50_000 + sent)
    moved = drive.hdd.head_ns - cmd.position_ns
    assert (moved >= 50_000 + sent) == bool(series)


def test_a_hit_goes_before_data_that_the_medium_is_yet_to_give(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL | {"readahead_sectors": 0})
    now = drive.one(READ, 100, 8, 0).done_ns
    far = drive.submit(READ, 3000, 8, now)
    hit = drive.submit(READ, 100, 8, now)
    assert drive.drain() == [hit, far]
    assert hit.done_ns - now < 100_000


# Overheads


def test_overheads_are_by_class_and_by_the_command_before(core: tuple[Any, Any]) -> None:
    overheads = [n * 1_000 for n in (110, 120, 130, 140, 210, 220, 230, 240)]
    drive = Drive(core, SMALL | {"overhead_ns": overheads, "write_idle_ns": 9000 * MS})
    now = 0
    before = 0
    for op, sector, fua, hit in [
        (READ, 100, False, 0),
        (READ, 100, False, 1),
        (WRITE, 900, False, 1),
        (WRITE, 2000, True, 0),
        (READ, 3000, False, 0),
        (WRITE, 900, False, 1),
        (READ, 900, False, 1),
    ]:
        cmd = drive.one(op, sector, 8, now, fua=fua)
        expected = overheads[4 * (before == WRITE) + 2 * (op == WRITE) + hit]
        assert cmd.start_ns - now == expected, (op, sector)
        now, before = cmd.done_ns + 20 * MS, op


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
def test_write_out_takes_the_shortest_positioning_time(core: tuple[Any, Any], seed: int) -> None:
    """With fewer extents than are looked at, it is the shortest of all."""
    cache = {"write_cache_sectors": 400, "write_cache_extents": 16, "write_idle_ns": 9000 * MS}
    drive = Drive(core, SMALL | cache | {"write_order": 1})
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


def test_write_out_by_position_is_faster_than_a_sweep(core: tuple[Any, Any]) -> None:
    disk = dataclasses.replace(load_disk("exos-x18"), write_cache_extents=2000)
    times = []
    for order in (0, 1):
        drive = Drive(core, dataclasses.replace(disk, write_order=order).params())
        draw = random.Random(5)
        now = 0
        for number in range(4000):
            if number == 2000:
                began = now
            sector = 8 * draw.randrange(disk.capacity_sectors // 8)
            now = drive.one(WRITE, sector, 8, now).done_ns
        times.append(now - began)
    assert times[1] < 0.6 * times[0]


def writes_beside_a_scan(core: tuple[Any, Any], share: int) -> tuple[int, int]:
    """(reads, writes) in 10 s of one after the other at depth 4, and of random ones at depth 1."""
    disk = dataclasses.replace(
        load_disk("greedy-18tb"), write_cache_extents=64, write_share_permille=share
    )
    drive = Drive(core, disk.params())
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


def test_write_out_beside_reads_has_its_share(core: tuple[Any, Any]) -> None:
    """Firmware that goes on reading lets a write wait for seconds; a share of the time does not."""
    reads, writes = writes_beside_a_scan(core, 0)
    for share in (200, 500):
        fewer, more = writes_beside_a_scan(core, share)
        assert more > 5 * writes
        # Each burst costs the reader its way back, too.
        assert 0.7 < fewer / (reads * (1 - share / 1000)) < 1.05


@pytest.mark.parametrize("name", ["exos-x18", "st2000dm006"])
def test_a_pause_between_reads_is_no_time_to_write_out(core: tuple[Any, Any], name: str) -> None:
    """Reading ahead goes on first: a cache that presses costs a reader its share, not its rate."""
    disk = dataclasses.replace(load_disk(name), write_cache_extents=100)
    rates = []
    for writes in (0, 90):
        drive, draw, now = Drive(core, disk.params()), random.Random(7), 0
        for _ in range(writes):
            now = drive.one(WRITE, 8 * draw.randrange(disk.capacity_sectors // 8), 8, now).done_ns
        began = now
        for number in range(2000):
            now = drive.one(READ, 128 * number, 128, now + 50_000).done_ns
        rates.append(2000 / (now - began))
    assert rates[1] > (0.9 - disk.write_share_permille / 1000) * rates[0]


def test_what_passes_before_a_read_is_kept_by_some(core: tuple[Any, Any]) -> None:
    """Once the arm is there; the sectors before it on its track, no more."""
    kept = 0
    for behind in (0, 1):
        drive = Drive(core, SMALL | {"read_behind": behind, "segment_sectors": 128})
        for sector in (350, 1250, 2050):
            read = drive.one(READ, sector, 8, 7 * MS)
            track = next(s for s in range(sector, 0, -1) if not same_track(drive, s - 1, sector))
            first = sector
            while first > track:
                again = drive.one(READ, first - 1, 1, read.done_ns + 300 * MS)
                if again.done_ns - again.submit_ns > MS:
                    break
                first -= 1
            passed = passing_ns(drive, first, sector)
            assert passed <= read.position_ns
            assert first == sector or behind
            kept += sector - first
    assert kept > 30


def test_a_durable_cache_needs_no_flush(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL | {"write_cache_durable": 1, "write_idle_ns": 9000 * MS})
    write = drive.one(WRITE, 1000, 8, 0, fua=True)
    flush = drive.one(FLUSH, 0, 0, write.done_ns)
    assert write.done_ns < MS and flush.done_ns - write.done_ns < MS
    assert drive.dirty() == [(1000, 1008)]


def test_a_part_of_a_physical_sector_costs_a_revolution(core: tuple[Any, Any]) -> None:
    for sector, nr, extra in ((1000, 8, 0), (1000, 16, 0), (1001, 8, 1), (1000, 4, 1)):
        whole, part = (
            Drive(core, BARE | {"physical_sectors": physical}).one(WRITE, sector, nr, 0)
            for physical in (1, 8)
        )
        assert part.done_ns - whole.done_ns == extra * SMALL["rotation_ns"]


def test_writes_may_settle_sooner_than_reads(core: tuple[Any, Any]) -> None:
    """The way of a write is the seek less what is saved, and the rest of a revolution."""
    params = BARE | {"write_settle_ns": 0, "write_saves_ns": 700_000, "overhead_ns": [0] * 8}
    for sector in range(250, 3200, 97):
        drive = Drive(core, params)
        cylinder, _, angle = drive.map(sector)
        if not cylinder:
            continue
        way = drive.seek(cylinder) - 700_000
        cmd = drive.one(WRITE, sector, 8, 0)
        assert cmd.position_ns == way + (angle - way) % SMALL["rotation_ns"]


def test_a_recorded_seek_table_may_fall_a_little(core: tuple[Any, Any]) -> None:
    drive = Drive(core, SMALL | {"seek_cylinders": [1, 9, 40], "seek_ns": [10**6, 920_000, 10**7]})
    assert [drive.seek(n) for n in (1, 5, 9)] == [10**6, 960_000, 920_000]


def test_a_segment_may_forget_what_the_host_has_had(core: tuple[Any, Any]) -> None:
    for keeps in (1, 0):
        drive = Drive(core, SMALL | {"segment_keeps_read": keeps})
        now = drive.one(READ, 100, 16, 0).done_ns + 5 * MS
        again = drive.one(READ, 100, 16, now)
        assert (again.position_ns == 0) == bool(keeps)
        drive = Drive(core, SMALL | {"segment_keeps_read": keeps})
        now = drive.one(READ, 100, 16, 0).done_ns + 5 * MS
        assert drive.one(READ, 116, 16, now).position_ns == 0


@pytest.mark.parametrize(("until", "ahead"), [(0, 32), (1, 24), (2, 20), (3, 32), (4, 20)])
def test_reading_ahead_ends_by_the_drives_rule(
    core: tuple[Any, Any], until: int, ahead: int
) -> None:
    """Of 40 sectors read at 40: 32 more, or until the segment of 64 or the track of 100 ends.

    The cylinder ends after 32.
    """
    drive = Drive(core, SMALL | {"ahead_until": until})
    now = drive.one(READ, 40, 40, 0).done_ns + 100 * MS
    assert drive.one(READ, 80 + ahead - 1, 1, now).position_ns == 0
    drive = Drive(core, SMALL | {"ahead_until": until})
    now = drive.one(READ, 40, 40, 0).done_ns + 100 * MS
    assert drive.one(READ, 80 + ahead + 1, 1, now).position_ns > 0


def _there(core: tuple[Any, Any], until: int, reads: list[tuple[int, int]], sector: int) -> bool:
    drive = Drive(core, SMALL | {"ahead_until": until})
    now = 0
    for start, nr in reads:
        now = drive.one(READ, start, nr, now).done_ns
    return bool(drive.one(READ, sector, 1, now + 100 * MS).position_ns == 0)


def test_reading_ahead_ends_with_the_cylinder(core: tuple[Any, Any]) -> None:
    """Two tracks of 100."""
    assert _there(core, 3, [(160, 20)], 199)
    assert not _there(core, 3, [(160, 20)], 201)
    assert _there(core, 0, [(160, 20)], 201)


def test_reading_ahead_goes_on_to_the_next_track_in_order(core: tuple[Any, Any]) -> None:
    assert not _there(core, 4, [(85, 8)], 101)
    assert _there(core, 4, [(85, 8), (93, 8)], 120)
    # Nor does it where the track before has nothing of the segment.
    assert not _there(core, 4, [(190, 8)], 201)


@pytest.mark.parametrize("empties", [0, 1])
def test_a_write_may_empty_the_segments_that_it_touches(
    core: tuple[Any, Any], empties: int
) -> None:
    drive = Drive(core, SMALL | {"write_empties": empties, "write_idle_ns": 9000 * MS})
    now = drive.one(READ, 100, 16, 0).done_ns + 50 * MS
    now = drive.one(READ, 2000, 16, now).done_ns + 50 * MS
    now = drive.one(WRITE, 104, 4, now).done_ns + MS
    again = drive.one(READ, 100, 16, now)
    assert (again.position_ns > 0) == bool(empties)
    assert drive.one(READ, 2000, 16, again.done_ns + 50 * MS).position_ns == 0


# Any sequence of commands

commands = st.lists(
    st.tuples(
        st.sampled_from([READ, READ, READ, WRITE, WRITE, FLUSH]),
        st.one_of(st.integers(0, 3200), st.integers(0, 60)),
        st.integers(1, 120),
        st.booleans(),
        st.sampled_from([0, 0, 0, 1000, 100_000, 3 * MS, 30 * MS]),
        st.booleans(),
    ),
    min_size=1,
    max_size=80,
)
kinds = st.sampled_from(
    [
        SMALL,
        SMALL | {"queue_order": 0},
        SMALL | {"queue_age_limit_ns": 20 * MS, "queue_age_permille": 100},
        SMALL | {"readahead_sectors": 0, "write_cache_extents": 2},
        SMALL | {"write_idle_ns": 0, "flush_ns": 0, "overhead_ns": [0] * 8},
        SMALL | {"write_order": 1, "write_share_permille": 300, "segment_keeps_read": 0},
        SMALL
        | {"read_watermark_permille": 1000, "write_series": 1, "ahead_until": 1}
        | {"interface_bytes_per_s": 2_000_000},
        SMALL | {"read_watermark_permille": 400, "watermark_of": 1, "ahead_until": 4},
        SMALL | {"segment_keeps_read": 0, "ahead_until": 2, "write_empties": 1},
        SMALL | {"ahead_until": 3},
        SMALL | {"physical_sectors": 8, "write_cache_durable": 1, "write_saves_ns": 900_000},
        BARE,
        FLAT,
    ]
)


def play(
    drive: Drive, script: list[tuple[Any, ...]], depth: int, looks: int = 0
) -> Iterator[tuple[str, Any, int]]:
    """Run a script; each command goes in at once or after what is inside is done.

    @looks times in each pause somebody asks whether a command is done.
    """
    capacity = drive.params.capacity_sectors
    now = 0
    for op, at, size, fua, pause, wait in script:
        sector = at * 7919 % capacity if at > 60 else at
        size = min(size, capacity - sector)
        while drive.inside and (wait or len(drive.inside) >= depth):
            now = max(now, drive.next())
            cmd = drive.pop(now)
            assert cmd is not None, "hdd_next_ns() promised one"
            yield "pop", cmd, now
        for look in range(looks):
            at = now + pause * look // looks
            while cmd := drive.pop(at):
                yield "pop", cmd, at
        now += pause
        while drive.next() <= now:
            yield "pop", drive.pop(now), now
        if op == FLUSH:
            sector, size = 0, 0
        yield "submit", drive.submit(op, sector, size, now, fua), now
    while drive.inside:
        now = max(now, drive.next())
        yield "pop", drive.pop(now), now


@pytest.mark.property
@settings(max_examples=300)
@given(params=kinds, script=commands, depth=st.integers(1, 32))
def test_any_sequence_keeps_the_rules(
    core: tuple[Any, Any], params: dict[str, Any], script: list[tuple[Any, ...]], depth: int
) -> None:
    drive = Drive(core, params)
    submitted: list[Any] = []
    popped: list[Any] = []
    acknowledged: list[Any] = []
    for what, cmd, now in play(drive, script, depth):
        assert cmd is not None
        if what == "submit":
            submitted.append(cmd)
            continue
        popped.append(cmd)
        assert cmd.submit_ns <= cmd.start_ns <= cmd.done_ns <= now
        assert cmd.position_ns <= cmd.done_ns - cmd.submit_ns
        pieces = drive.dirty()
        if cmd.op == WRITE:
            acknowledged.append(cmd)
            durable = params.get("write_cache_durable")
            if (
                cmd.fua
                and not durable
                and not any(
                    other.op == WRITE and other is not cmd and other.submit_ns >= cmd.submit_ns
                    for other in submitted
                )
            ):
                end = cmd.sector + cmd.nr_sectors
                assert not any(a < end and cmd.sector < b for a, b in pieces)
        elif cmd.op == FLUSH:
            place = submitted.index(cmd)
            later = [
                other
                for other in submitted[place + 1 :]
                if other.op == WRITE and other.submit_ns >= cmd.submit_ns
            ]
            for write in acknowledged:
                if write.done_ns > cmd.submit_ns or later or params.get("write_cache_durable"):
                    continue
                end = write.sector + write.nr_sectors
                assert not any(a < end and write.sector < b for a, b in pieces)
            # None before it is still inside, none after it is already out.
            assert all(other in popped for other in submitted[:place])
            if params["kind"] == 0:
                assert not any(other in popped for other in submitted[place + 1 :])
        check_dirty(drive, params)
    assert len(popped) == len(submitted) == len(script)
    assert not drive.inside
    assert drive.next() == NEVER
    times = [cmd.done_ns for cmd in popped]
    assert times == sorted(times)
    if params.get("queue_order") == 0:
        assert popped == submitted


def check_dirty(drive: Drive, params: dict[str, Any]) -> None:
    """The write cache is in order, disjoint, not beyond its size."""
    pieces = drive.dirty()
    assert all(a < b for a, b in pieces)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(pieces))
    assert sum(b - a for a, b in pieces) == drive.hdd.dirty_sectors
    assert drive.hdd.dirty_sectors <= params.get("write_cache_sectors", 0)


@pytest.mark.property
@given(params=kinds, script=commands, depth=st.integers(1, 32))
def test_the_same_again_gives_the_same(
    core: tuple[Any, Any], params: dict[str, Any], script: list[tuple[Any, ...]], depth: int
) -> None:
    def times() -> list[tuple[int, ...]]:
        drive = Drive(core, params)
        return [
            (now, cmd.sector, cmd.submit_ns, cmd.start_ns, cmd.done_ns, cmd.position_ns)
            for what, cmd, now in play(drive, script, depth)
            if what == "pop"
        ]

    assert times() == times()


@pytest.mark.property
@given(params=kinds, script=commands, looks=st.integers(1, 5))
def test_asking_more_often_changes_nothing(
    core: tuple[Any, Any], params: dict[str, Any], script: list[tuple[Any, ...]], looks: int
) -> None:
    """What the drive does on its own is the same however often one looks."""

    def times(looks: int) -> list[tuple[int, ...]]:
        drive = Drive(core, params)
        return [
            (cmd.sector, cmd.submit_ns, cmd.start_ns, cmd.done_ns, cmd.position_ns)
            for what, cmd, _ in play(drive, script, 8, looks)
            if what == "pop"
        ]

    assert times(0) == times(looks)


# Flat disks


def test_flat_latency_and_parallelism(core: tuple[Any, Any]) -> None:
    drive = Drive(core, FLAT)
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


# Measuring


def drive_memory(core: tuple[Any, Any], params: Any) -> tuple[Any, Any]:
    """A struct hdd_drive, and the memory it is in, which must be kept."""
    ffi, lib = core
    memory = ffi.new("char[]", lib.hdd_drive_bytes(params))
    return ffi.cast("struct hdd_drive *", memory), memory


def figures(core: tuple[Any, Any], disk: Disk) -> Any:
    ffi, lib = core
    out = ffi.new("struct hdd_figures *")
    params = ffi.new("struct hdd_params *", disk.params())
    why = ffi.new("const char **")
    memory, commands = drive_memory(core, params), ffi.new("struct hdd_cmd[254]")
    assert lib.hdd_measure_figures(memory[0], commands, params, out, why) == 0
    return out


def curve(core: tuple[Any, Any], disk: Disk, most: int = 40) -> list[tuple[int, int]]:
    ffi, lib = core
    params = ffi.new("struct hdd_params *", disk.params())
    distances, times, why = ffi.new("u64[40]"), ffi.new("u64[40]"), ffi.new("const char **")
    memory = drive_memory(core, params)
    nr = lib.hdd_measure_curve(memory[0], params, most, distances, times, why)
    assert 2 <= nr <= most
    return [(distances[i], times[i]) for i in range(nr)]


@pytest.mark.parametrize("name", diskfile.list_disks())
def test_the_curve_is_one(core: tuple[Any, Any], name: str) -> None:
    disk = load_disk(name)
    for most in (2, 3, 10, 40):
        points = curve(core, disk, most)
        assert points[0][0] == 0
        assert disk.capacity_sectors * 0.98 < points[-1][0] < disk.capacity_sectors
        assert all(a[0] < b[0] and a[1] <= b[1] for a, b in itertools.pairwise(points))
        assert curve(core, disk, most) == points
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


def test_the_papers_four_readers(core: tuple[Any, Any]) -> None:
    """Xu and Jiang, FAST 2011, section 3.3: 16.0 MB/s with noop.

    The disk's part of it, without processes and page cache; the whole is
    compared, more strictly, by `streamsched reproduce`.
    """
    disk = load_disk("wd5000aaks")
    drive = Drive(core, disk.params())
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


# What hdd_init() and the files refuse

BAD_PARAMS: list[tuple[dict[str, Any], str]] = [
    ({"kind": 2}, "kind"),
    ({"capacity_sectors": 0}, "capacity_sectors"),
    ({"capacity_sectors": 2**48 + 1}, "capacity_sectors"),
    ({"capacity_sectors": 3329}, "fewer sectors than the capacity"),
    ({"capacity_sectors": 2 * (7 * 100 + 5 * 83)}, "last zone"),
    ({"queue_depth": 0}, "queue_depth"),
    ({"queue_depth": 255}, "queue_depth"),
    ({"read_watermark_permille": 1001}, "read_watermark_permille"),
    ({"watermark_of": 2}, "watermark_of"),
    ({"write_series": 2}, "write_series"),
    ({"overhead_ns": [0] * 7 + [100 * MS]}, "overhead_ns"),
    ({"interface_unit_sectors": 0}, "interface_unit_sectors"),
    ({"interface_unit_sectors": 65536}, "interface_unit_sectors"),
    ({"ahead_until": 5}, "ahead_until"),
    ({"write_empties": 2}, "write_empties"),
    ({"write_order": 2}, "write_order"),
    ({"write_share_permille": 901}, "write_share_permille"),
    ({"physical_sectors": 2}, "physical_sectors"),
    ({"segment_keeps_read": 2}, "segment_keeps_read"),
    ({"write_cache_durable": 2}, "write_cache_durable"),
    ({"write_saves_ns": 51 * MS}, "write_saves_ns"),
    ({"interface_bytes_per_s": 0}, "interface_bytes_per_s"),
    ({"command_overhead_ns": 100 * MS}, "command_overhead_ns"),
    ({"flush_ns": 10_000 * MS}, "flush_ns"),
    ({"queue_order": 2}, "queue_order"),
    ({"queue_age_permille": 1001}, "queue_age_permille"),
    ({"rotation_ns": 0}, "rotation_ns"),
    ({"rotation_ns": 50 * MS + 1}, "rotation_ns"),
    ({"surfaces": 0}, "surfaces"),
    ({"surfaces": 65}, "surfaces"),
    ({"nr_zones": 0}, "zones"),
    ({"nr_zones": 65}, "zones"),
    ({"zone_cylinders": [7, 0, 9]}, "cylinders"),
    ({"zone_sectors_per_track": [100, 83, 7]}, "sectors per track"),
    ({"zone_sectors_per_track": [100, 83, 65536]}, "sectors per track"),
    ({"track_skew_ns": 8_333_333}, "skew"),
    ({"cylinder_skew_ns": 8_333_333}, "skew"),
    ({"head_switch_ns": 1_100_002}, "track_skew_ns"),
    ({"write_settle_ns": 51 * MS}, "write_settle_ns"),
    ({"nr_seek_points": 0}, "seek points"),
    ({"seek_cylinders": [2, 5, 40]}, "first seek point"),
    ({"seek_cylinders": [1, 40, 40]}, "ascending"),
    ({"seek_cylinders": [1, 5, 19]}, "full stroke"),
    ({"seek_ns": [1_500_000, 1_349_999, 9 * MS]}, "nine tenths"),
    ({"seek_ns": [1_500_000, 2 * MS, 200 * MS]}, "200000000"),
    ({"seek_ns": [1_700_004, 2 * MS, 9 * MS]}, "cylinder_skew_ns"),
    ({"segments": 0}, "segments"),
    ({"segments": 65}, "segments"),
    ({"segment_sectors": 0, "readahead_sectors": 0}, "segment_sectors"),
    ({"readahead_sectors": 65}, "readahead_sectors"),
    ({"write_cache_extents": 0}, "write_cache_extents"),
    ({"write_cache_extents": 32769}, "write_cache_extents"),
    ({"write_idle_ns": 10_000 * MS}, "write_idle_ns"),
]
BAD_FLAT: list[tuple[dict[str, Any], str]] = [
    ({"flat_channels": 0}, "flat_channels"),
    ({"flat_channels": 33}, "flat_channels"),
    ({"flat_read_ns": 1000 * MS}, "flat_read_ns"),
    ({"flat_write_bytes_per_s": 0}, "flat_write_bytes_per_s"),
]


@pytest.mark.parametrize(
    ("params", "said"),
    [(SMALL | change, said) for change, said in BAD_PARAMS]
    + [(FLAT | change, said) for change, said in BAD_FLAT],
)
def test_bad_parameters_are_refused(
    core: tuple[Any, Any], params: dict[str, Any], said: str
) -> None:
    ffi, lib = core
    why = ffi.new("const char **")
    struct = ffi.new("struct hdd_params *", params)
    memory = drive_memory(core, struct)
    assert lib.hdd_drive_init(memory[0], struct, why) == -EINVAL
    assert said in ffi.string(why[0]).decode()


@pytest.mark.parametrize("name", diskfile.list_disks())
def test_shipped_disks_are_whole(core: tuple[Any, Any], name: str) -> None:
    disk = load_disk(name)
    assert disk.name == name
    params, why = core[0].new("struct hdd_params *", disk.params()), core[0].new("const char **")
    memory = drive_memory(core, params)
    assert core[1].hdd_drive_init(memory[0], params, why) == 0, core[0].string(why[0])
    fields = {field for field, _ in core[0].typeof("struct hdd_params").fields}
    assert set(disk.params()) == fields
    assert disk.published
    assert load_disk(str(ROOT / "disks" / f"{name}.toml")) == disk


# Descriptions of their own, so that a shipped disk can change.
DISK = """
name = "mine"
model = "A disk"
description = "for tests"
kind = "mechanical"
capacity_sectors = 100000

[interface]
rate_mb_s = 300
command_overhead_us = 60
queue_depth = 32
queue_order = "sptf"
queue_age_permille = 50
queue_age_limit_ms = 2000

[geometry]
rotation_rpm = 7200
surfaces = 4
zones = [[10, 1500], [20, 700]]
track_skew_us = 1500
cylinder_skew_us = 2000

[seek]
curve = [[1, 2.0], [10, 2.2], [29, 4.125]]
head_switch_us = 1500
write_settle_us = 2000

[cache]
segments = 8
segment_kib = 1536
readahead_kib = 1536
write_kib = 4096
write_extents = 128
write_idle_ms = 20
flush_ms = 5.5

[[published]]
figure = "inner_mb_s"
value = 50
source = "a sheet"
fitted = true
"""
SSD = """
name = "mine"
model = "An SSD"
description = "for tests"
kind = "flat"
capacity_sectors = 100000

[interface]
rate_mb_s = 600
command_overhead_us = 2.9
queue_depth = 32

[flat]
channels = 16
read_us = 66.7
write_us = 17.2
read_mb_s = 560
write_mb_s = 530
flush_ms = 1
"""


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (DISK, 'kind = "mechanical"', "", 'kind: is missing; it must be "mechanical" or "flat"'),
        (DISK, '"mechanical"', '"tape"', 'kind: is "tape" but must be "mechanical" or "flat"'),
        (
            DISK,
            "surfaces = 4",
            "",
            "geometry.surfaces: is missing; it must be a number from 1 to 64",
        ),
        (DISK, "surfaces = 4", "surfaces = 65", "geometry.surfaces: is 65 but must be a number fr"),
        (
            DISK,
            "surfaces = 4",
            "surfaces = true",
            "geometry.surfaces: is true but must be a number",
        ),
        (DISK, "surfaces = 4", "surfaces = nan", "geometry.surfaces: is NaN but must be a number"),
        (
            DISK,
            "surfaces = 4",
            "surfaces = 3.5",
            "geometry.surfaces: is 3.5 but must be whole",
        ),
        (DISK, "surfaces = 4", 'surfaces = "4"', 'geometry.surfaces: is "4" but must be a number'),
        (
            DISK,
            "surfaces = 4",
            "surface = 4",
            "geometry.surface: no such key, did you mean 'surfac",
        ),
        (
            DISK,
            "[geometry]",
            "[geometrie]",
            "geometrie: no such table for this kind of disk, did yo",
        ),
        (DISK, "[cache]", "[cash]", "cash: no such table for this kind of disk, did you mean 'cac"),
        (DISK, "segment_kib = 1536", "segment_kib = 3", "cache.segment_kib: is 3 but must"),
        (DISK, "write_kib = 4096", "write_kib = 2", "cache.write_kib: must be 0, for none, or at"),
        (DISK, "[1, 2.0]", "[2, 2.0]", "seek.curve[0]: is for 2 cylinders but must be for 1"),
        (
            DISK,
            "[1, 2.0]",
            "[1, 2.1]",
            "seek.curve[0]: must not take longer than geometry.cylinder",
        ),
        (DISK, "[1, 2.0]", "1", "seek.curve[0]: is 1 but must be a pair of numbers [a, b]"),
        (DISK, "[1, 2.0]", "[1, 2.0000001]", "seek.curve[0][1]: is 2.0000001 but must be a multip"),
        (DISK, "[10, 2.2]", "[10, 1.79]", "seek.curve[1]: must not take less than nine tenths"),
        (DISK, "segments =", "keeps_read = 1\nsegments =", "cache.keeps_read: is 1 but must be"),
        (DISK, "segments =", 'write_order = "up"\nsegments =', 'cache.write_order: is "up" but'),
        (
            DISK,
            "segments =",
            "write_share_percent = 91\nsegments =",
            "cache.write_share_percent: is 91 but must be a number from 0 to 90",
        ),
        (
            DISK,
            "[seek]",
            "[overhead]\nread_hit_us = [1, 2, 3]\n[seek]",
            "overhead.read_hit_us: must be a number, or a pair [after a read, after a write]",
        ),
        (
            DISK,
            "surfaces =",
            "physical_sector_bytes = 1024\nsurfaces =",
            "geometry.physical_sector_bytes: is 1024 but must be 512 or 4096",
        ),
        (DISK, "[29, 4", "[28, 4", "seek.curve[2]: is for 28 cylinders but the last one must"),
        (DISK, "[20, 700]", "[14, 700]", "geometry.zones: hold 99200 sectors but must hold the"),
        (
            DISK,
            "[20, 700]",
            "[20, 700], [1, 700]",
            "geometry.zones: the last zone begins at sector",
        ),
        (DISK, "= 7200", "= 720", "geometry.rotation_rpm: is 720 but must be a number from 1200"),
        (DISK, "d_kib = 1536", "d_kib = 1537", "cache.readahead_kib: must not be lar"),
        (
            DISK,
            "head_switch_us = 1500",
            "head_switch_us = 1501",
            "seek.head_switch_us: must not be",
        ),
        (
            DISK,
            '"sptf"',
            '"elevator"',
            'interface.queue_order: is "elevator" but must be "fifo" or',
        ),
        (
            DISK,
            "queue_depth",
            'order = ["series"]\nqueue_depth',
            'interface.order: is ["series"] but must be "overlapped" or "series", or a list: reads',
        ),
        (
            DISK,
            "queue_depth",
            'order = "series"\nread_watermark = 0.5\nqueue_depth',
            "interface.read_watermark: is only for reads that are overlapped",
        ),
        (
            DISK,
            "queue_depth",
            'order = "series"\nwatermark_of = "segment"\nqueue_depth',
            "interface.watermark_of: is only for reads that are overlapped",
        ),
        (
            DISK,
            "queue_depth",
            "read_watermark = 1.5\nqueue_depth",
            "interface.read_watermark: is 1.5 but must be a number from 0 to 1",
        ),
        (DISK, "capacity_sectors =", "capacity_sectors = [", "not a TOML file"),
        (DISK, "= 7200", f"= {'7' * 5000}", "not a TOML file: a number has thousands of digits"),
        (DISK, "= 7200", f"= 0x{'7' * 5000}", "not a TOML file: a number has thousands of digits"),
        (DISK, "= 7200", f"= 1e{'7' * 20}", "not a TOML file: an exponent is out of range"),
        (DISK, "= 7200", f"= 1e-{'7' * 20}", "not a TOML file: an exponent is out of range"),
        (DISK, "= 7200", f"= {'[' * 5000}", "not a TOML file: too many lists within lists"),
        (DISK, 'figure = "inner_mb_s"', 'figure = "inner"', '].figure: is "inner" but must be one'),
        (SSD, "[flat]", "[geometry]\nsurfaces = 1\n[flat]", "geometry: no such table for this ki"),
        (SSD, "channels = 16", "channels = 0", "flat.channels: is 0 but must be a number from 1 t"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(text: str, old: str, new: str, said: str) -> None:
    assert old in text
    with pytest.raises(UsageError) as caught:
        diskfile.parse_disk(text.replace(old, new, 1), "my.toml")
    message = str(caught.value)
    assert message.startswith("my.toml: ")
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("line", "permille", "of_segment", "series"),
    [
        ("", 0, 0, 0),
        ('order = "series"', 1000, 0, 1),
        ('order = ["series", "overlapped"]', 1000, 0, 0),
        ('order = ["overlapped", "series"]\nread_watermark = 0.125', 125, 0, 1),
        ('read_watermark = 1\nwatermark_of = "segment"', 1000, 1, 0),
    ],
)
def test_the_order_of_medium_and_interface(
    line: str, permille: int, of_segment: int, series: int
) -> None:
    disk = diskfile.parse_disk(DISK.replace("queue_depth", f"{line}\nqueue_depth"), "my.toml")
    assert disk.read_watermark_permille == permille
    assert (disk.watermark_of, disk.write_series) == (of_segment, series)


def test_what_is_wrong_is_named_with_its_line() -> None:
    def line(text: str) -> int:
        with pytest.raises(UsageError) as caught:
            diskfile.parse_disk(text, "my.toml")
        found = re.search(r" \(line (\d+)\)$", str(caught.value))
        return int(found[1]) if found else 0

    def at(text: str) -> int:
        return DISK[: DISK.index(text)].count("\n") + 1

    assert line(DISK.replace("surfaces = 4", "surfaces = 0")) == at("surfaces")
    assert line(DISK.replace("[1, 2.0]", "[2, 2.0]")) == at("curve =")
    assert line(DISK.replace("surfaces = 4\n", "")) == at("[geometry]")
    assert line(DISK.replace('name = "mine"\n', "")) == 0
    assert line(DISK.replace('figure = "inner_mb_s"', 'figure = "inner"')) == at(
        'figure = "inner_mb_s"'
    )


def test_names_that_are_not_disks(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no disk is called 'WD5000AAK', did you mean 'wd5000aa"):
        load_disk("WD5000AAK")
    with pytest.raises(
        UsageError, match=r"no disk is called 'qqq'; there are archive-8tb, deskstar-34gxp, "
    ):
        load_disk("qqq")
    missing = tmp_path / "none.toml"
    with pytest.raises(UsageError, match=re.escape(f"{missing}: cannot read it: No such file")):
        load_disk(str(missing))
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not a TOML file"):
        load_disk(str(binary))
    with pytest.raises(UsageError, match="cannot read it: Is a directory"):
        load_disk(f"{tmp_path}/")


def test_values_are_converted_exactly() -> None:
    disk = diskfile.parse_disk(DISK, "my.toml")
    assert disk.rotation_ns == 8_333_333
    assert disk.interface_bytes_per_s == 300_000_000
    assert disk.seek_cylinders == (1, 10, 29)
    assert disk.seek_ns == (2_000_000, 2_200_000, 4_125_000)
    assert disk.zone_sectors_per_track == (1500, 700)
    assert disk.segment_sectors == 3072
    assert disk.flush_ns == 5_500_000
    assert disk.write_idle_ns == 20 * MS
    assert [row.value for row in disk.published] == ["50"]
    assert diskfile.parse_disk(SSD, "my.toml").flat_read_ns == 66_700
