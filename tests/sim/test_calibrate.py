# SPDX-License-Identifier: GPL-2.0-only
"""streamsched calibrate: its numbers, on the disk model; and the command, on the kernel's disks."""

from __future__ import annotations

import dataclasses
import datetime
import errno
import functools
import itertools
import math
import os
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rig_driver import need_rig

from streamsched.base.errors import Interrupted, StreamschedError, UsageError
from streamsched.calibrate import arm, caches, commands, measure, numeric, settings, tracks
from streamsched.calibrate import description as calibrate
from streamsched.calibrate import device as devices
from streamsched.calibrate import file as files
from streamsched.calibrate.found import Bus, Cache, Flat, Geometry, Mechanics, Pattern, WriteOut
from streamsched.hosts import rig
from streamsched.sim.diskfile import Disk, load_disk, parse_disk
from streamsched.sim.simulate import disk_params, measured_curve

BIN = Path(sys.executable).parent
TODAY = datetime.date(2026, 11, 20)
MS = 1_000_000


# ---- the fake device: the library's disk model ----


class ModelDisk:
    """A disk in virtual time. With @noise, each read is late by so much in the mean."""

    align_sectors = 1

    def __init__(self, core: tuple[Any, Any], disk: Disk, noise_ns: int = 0) -> None:
        self.ffi, self.lib = core
        self.hdd = self.ffi.new("struct hdd *")
        self.command = self.ffi.new("struct hdd_cmd *")
        why = self.ffi.new("const char **")
        assert self.lib.hdd_init(self.hdd, disk_params(disk), why) == 0
        self.capacity_sectors = disk.capacity_sectors
        self.now_ns = 0
        self.noise_ns = noise_ns
        self.random = random.Random(5)
        self.reads: list[tuple[int, int]] = []
        self.writes = 0
        self.may_write = False

    def submit(self, sector: int, nr_sectors: int) -> None:
        self.command.sector, self.command.nr_sectors = sector, nr_sectors
        self.lib.hdd_submit(self.hdd, self.command, self.now_ns)
        self.now_ns = self.lib.hdd_next_ns(self.hdd)
        self.lib.hdd_pop(self.hdd, self.now_ns)

    def read(self, sector: int, nr_sectors: int) -> tuple[int, int]:
        assert 0 <= sector <= self.capacity_sectors - nr_sectors
        assert sector % self.align_sectors == nr_sectors % self.align_sectors == 0
        self.reads.append((sector, nr_sectors))
        begin = self.now_ns
        self.submit(sector, nr_sectors)
        if self.noise_ns:
            self.now_ns += round(self.random.expovariate(1 / self.noise_ns))
            if self.random.random() < 1e-4:  # a retry
                self.now_ns += 80 * MS
        return begin, self.now_ns

    def write(self, sector: int, nr_sectors: int) -> tuple[int, int]:
        assert 0 <= sector <= self.capacity_sectors - nr_sectors
        assert self.may_write
        self.writes += 1
        begin = self.now_ns
        self.command.op = self.lib.HDD_WRITE
        self.submit(sector, nr_sectors)
        self.command.op = self.lib.HDD_READ
        return begin, self.now_ns

    def read_together(self, sectors: Sequence[int], nr_sectors: int, depth: int) -> list[int]:
        commands = self.ffi.new("struct hdd_cmd[]", len(sectors))
        ends: list[int] = []
        for number, sector in enumerate(sectors):
            self.reads.append((sector, nr_sectors))
            if number >= depth:
                ends.append(self.pop())
            commands[number].sector, commands[number].nr_sectors = sector, nr_sectors
            self.lib.hdd_submit(self.hdd, self.ffi.addressof(commands[number]), self.now_ns)
        return ends + [self.pop() for _ in range(depth)]

    def pop(self) -> int:
        self.now_ns = self.lib.hdd_next_ns(self.hdd)
        self.lib.hdd_pop(self.hdd, self.now_ns)
        return self.now_ns

    def idle(self, ns: int) -> None:
        self.now_ns += ns


def dense_curve(core: tuple[Any, Any], disk: Disk) -> list[tuple[int, float]]:
    """What hdd_measure_curve() measures, with 10 to 160 times as many pairs."""
    rnd = random.Random(11)
    model = ModelDisk(core, disk)
    points = arm.distances(disk.capacity_sectors)
    times = []
    for distance in points:
        # The nearer the rarer is what costs most: the end of a track.
        pairs = 160_000 if distance < 50 else 40_000 if distance < 100 else 10_000
        span = disk.capacity_sectors - distance - 16
        total = 0
        for _ in range(pairs):
            sector = rnd.randrange(span + 1)
            model.now_ns += rnd.randrange(20 * MS)
            model.submit(sector, 8)
            model.submit(sector + 8 + distance, 8)
            total += model.command.position_ns
        times.append(total / pairs)
    return list(zip(points, numeric.never_fall(times), strict=True))


def measured(core: tuple[Any, Any], name: str, **options: Any) -> Mechanics:
    found = measure.Meter(ModelDisk(core, load_disk(name), **options), commands.FAST).measure()
    assert isinstance(found, Mechanics)
    return found


# ---- numbers ----


@pytest.mark.parametrize("name", ["wd5000aaks", "st2000dm006", "exos-x18", "ssd"])
def test_distances_are_the_models(name: str) -> None:
    disk = load_disk(name)
    points = [distance for distance, _ in measured_curve(disk)]
    assert arm.distances(disk.capacity_sectors) == points


@given(st.integers(commands.LEAST_SECTORS, 1 << 40), st.sampled_from([1, 8]))
def test_distances_can_be_given_to_the_scheduler(capacity: int, align: int) -> None:
    points = arm.distances(capacity, align=align)
    assert points[0] == 0 and points == sorted(set(points)) and len(points) <= 40
    assert all(point % align == 0 for point in points)
    assert capacity * 0.9 < points[-1] <= capacity - 16


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40))
def test_what_never_falls(values: list[int]) -> None:
    found = numeric.never_fall(values)
    assert len(found) == len(values) and found == sorted(found)
    assert sum(found) == pytest.approx(sum(values))
    assert numeric.never_fall(sorted(values)) == sorted(values)


def test_the_standard_error_is_that_of_evenly_spread_samples() -> None:
    rnd = random.Random(1)
    plain = [(rnd.random(), rnd.gauss(10, 2)) for _ in range(400)]
    assert numeric.standard_error(plain) == pytest.approx(2 / 20, rel=0.15)
    # What depends on the place is no chance.
    slope = [(place, value + 1000 * place) for place, value in plain]
    assert numeric.standard_error(slope) < 0.5
    assert numeric.standard_error(plain[:1]) == math.inf


def test_the_densest_interval_ignores_what_is_disturbed() -> None:
    rnd = random.Random(2)
    values = [5 + 8 * rnd.random() for _ in range(200)] + [40.0, 41.0, 0.5]
    assert numeric.densest(values, 8) == pytest.approx(5, abs=0.2)
    assert numeric.densest([1.0, 3.0], 8) == -2, "in the middle of where it may be"


def seek_ns(cylinders: float) -> float:
    return (1 + 0.04 * math.sqrt(cylinders)) * MS


@pytest.mark.parametrize("disturbed", [0.0, 0.05])
def test_seeks_are_found_in_positioning_times(disturbed: float) -> None:
    rnd = random.Random(3)
    samples = []
    for _ in range(4000):
        cylinders = 100_000 ** rnd.random()
        way = seek_ns(cylinders) + rnd.random() * 8 * MS
        samples.append((cylinders, way + (8 * MS if rnd.random() < disturbed else 0)))
    found = arm.fit_seeks(samples, 8 * MS, 100_000)
    assert found[0][0] == 1 and found[-1][0] == 100_000
    assert [time for _, time in found] == sorted(time for _, time in found)
    for cylinders, time in found:
        assert time == pytest.approx(seek_ns(cylinders), abs=0.4 * MS), cylinders


def test_surfaces_are_found_by_the_longer_changes() -> None:
    rnd = random.Random(4)

    def changes(surfaces: int, noise_ns: int) -> list[tuple[int, float]]:
        return [
            (track, (2.0 if track % surfaces == 1 else 1.5) * MS + rnd.gauss(0, noise_ns))
            for track in range(140)
        ]

    for surfaces in (2, 4, 18):
        found = tracks.find_surfaces(changes(surfaces, 30_000))
        assert found and found[0] == surfaces
        assert found[1:] == pytest.approx((1.5 * MS, 2 * MS), rel=0.02)
    for seed in range(20):
        rnd = random.Random(seed)
        assert tracks.find_surfaces(changes(200, 30_000)) is None, "one was disturbed"


def test_places_are_never_read_twice(core: tuple[Any, Any]) -> None:
    disk = ModelDisk(core, load_disk("wd5000aaks"))
    places = commands.Places(disk, random.Random(1))
    places.note(1000, 8)
    assert not places.is_new(1000, 8) and not places.is_new(1007, 8)
    assert not places.is_new(1008 + commands.AHEAD_SECTORS - 1, 8), "read ahead"
    assert places.is_new(1008 + commands.AHEAD_SECTORS, 8)
    for _ in range(commands.REMEMBERED):
        places.note(10_000_000, 8)
    assert places.is_new(1008 + 1000, 8), "long ago"
    assert not places.is_new(1000, 8), "was read"
    with pytest.raises(StreamschedError, match="no place is left"):
        places.choose(lambda: 1000, (0, 8))


# ---- the whole measurement, on the model ----


@pytest.mark.parametrize("name", ["wd5000aaks", "st2000dm006"])
def test_a_quick_look_at_the_model(core: tuple[Any, Any], name: str) -> None:
    disk, found = load_disk(name), measured(core, name)
    assert found.geometry.rotation_ns == pytest.approx(disk.rotation_ns, abs=2)
    assert found.bus.overhead_ns == pytest.approx(disk.command_overhead_ns, rel=0.001)
    assert 512e9 / found.bus.sector_ns == pytest.approx(disk.interface_bytes_per_s, rel=0.001)
    pattern = found.geometry.pattern
    assert (pattern.surfaces, pattern.surfaces_known) == (disk.surfaces, True)
    assert pattern.track_skew_ns == pytest.approx(disk.track_skew_ns, abs=2000)
    assert pattern.cylinder_skew_ns == pytest.approx(disk.cylinder_skew_ns, abs=2000)
    assert found.cache.segments == disk.segments
    assert found.cache.readahead_sectors == pytest.approx(disk.readahead_sectors, rel=0.07)
    for zone in found.geometry.zones:
        assert zone.sectors_per_track in disk.zone_sectors_per_track
    assert found.dropped == 0
    assert found.write_out is None
    for (distance, ours), (_, theirs) in zip(
        found.service_curve(), measured_curve(disk), strict=True
    ):
        assert ours == pytest.approx(theirs, rel=0.15, abs=20_000), distance


def test_noise_and_retries_do_little_harm(core: tuple[Any, Any]) -> None:
    disk, found = load_disk("wd5000aaks"), measured(core, "wd5000aaks", noise_ns=20_000)
    assert found.geometry.rotation_ns == pytest.approx(disk.rotation_ns, rel=5e-4)
    pattern = found.geometry.pattern
    assert pattern.surfaces == disk.surfaces
    assert pattern.track_skew_ns == pytest.approx(disk.track_skew_ns, rel=0.05)
    capacity = disk.capacity_sectors
    for at, rate in ((0, 100.3e6), (capacity // 2, 79.1e6), (capacity - 1, 50.1e6)):
        assert found.geometry.bytes_per_s(at) == pytest.approx(rate, rel=0.06)
    for (distance, ours), (_, theirs) in zip(
        found.service_curve(), measured_curve(disk), strict=True
    ):
        assert ours == pytest.approx(theirs, rel=0.15, abs=40_000), distance


def test_a_disk_that_never_shows_where_tracks_end(core: tuple[Any, Any]) -> None:
    class Blind(measure.Meter):
        def _jumps(self, run: tracks.Run) -> None:
            return None

    disk = load_disk("wd5000aaks")
    effort = dataclasses.replace(commands.FAST, place_tracks=12)
    meter = Blind(ModelDisk(core, disk), effort)
    meter.bus = meter.measure_bus()
    meter.rotation_ns, _ = meter.measure_rotation()
    geometry = meter.measure_zones(meter.bus)
    assert not geometry.pattern.skews_known and not geometry.pattern.surfaces_known
    # What remains of reading on is about the skews' share, and the rates are right.
    assert geometry.pattern.mean_skew_ns() == pytest.approx(1.625 * MS, rel=0.25)
    capacity = disk.capacity_sectors
    for at, rate in ((0, 100.3e6), (capacity // 2, 79.1e6), (capacity - 1, 50.1e6)):
        assert geometry.bytes_per_s(at) == pytest.approx(rate, rel=0.04)


def test_a_disk_without_a_head(core: tuple[Any, Any]) -> None:
    disk = load_disk("ssd")
    found = measure.Meter(ModelDisk(core, disk), commands.FULL).measure()
    assert isinstance(found, Flat)
    assert found.read_ns == pytest.approx(69_600, rel=0.01)
    assert found.bytes_per_s == pytest.approx(disk.flat_read_bytes_per_s, rel=0.01)


def test_a_drive_that_keeps_whole_tracks_is_refused(core: tuple[Any, Any]) -> None:
    class WholeTracks(ModelDisk):
        """Has what is before a read, too."""

        def read(self, sector: int, nr_sectors: int) -> tuple[int, int]:
            last = self.reads[-1][0] if self.reads else 0
            if last - 1000 < sector < last:
                self.reads.append((sector, nr_sectors))
                self.now_ns += 100_000
                return self.now_ns - 100_000, self.now_ns
            return super().read(sector, nr_sectors)

    with pytest.raises(StreamschedError, match="rotation cannot be measured by reading"):
        measure.Meter(WholeTracks(core, load_disk("wd5000aaks")), commands.FAST).measure()


def test_a_drive_with_long_blocks_is_read_by_blocks(core: tuple[Any, Any]) -> None:
    disk = ModelDisk(core, load_disk("st2000dm006"))
    disk.align_sectors = 8
    found = measure.Meter(disk, commands.FAST).measure()
    assert isinstance(found, Mechanics)
    assert all(point.distance_sectors % 8 == 0 for point in found.curve)


def test_progress_goes_from_step_to_step(core: tuple[Any, Any]) -> None:
    seen: list[tuple[str, float]] = []
    disk = ModelDisk(core, load_disk("wd5000aaks"))
    measure.Meter(disk, commands.FAST, lambda step, part: seen.append((step, part))).measure()
    order = list(commands.FAST.seconds)
    assert list(dict.fromkeys(step for step, _ in seen)) == order
    for step in order:
        parts = [part for one, part in seen if one == step]
        assert all(0 <= part <= 1 for part in parts)
    assert seen[-1] == ("cache", 1.0)


# ---- write-out beside reads ----


def write_out(
    core: tuple[Any, Any],
    name: str,
    share: int = 30,
    effort: commands.Effort = commands.FULL,
    queue_depth: int = 32,
    **changes: int,
) -> tuple[WriteOut, ModelDisk]:
    disk = dataclasses.replace(load_disk(name), write_share_permille=10 * share, **changes)
    model = ModelDisk(core, disk)
    model.may_write = True
    return measure.Meter(model, effort).measure_write_out(queue_depth), model


EFFORTS = {"": commands.FULL, " `--fast`": commands.FAST}
SHARES = (0, 15, 30, 60)
WITHIN = {0: 2, 15: 3, 30: 3, 60: 3}


def test_the_share_of_write_out(core: tuple[Any, Any]) -> None:
    """Also docs/results/calibrate-write-out.md, which has the figures."""
    rows = []
    for name, (label, effort) in itertools.product(
        ("wd5000aaks", "st2000dm006", "exos-x18", "exos-x24"), EFFORTS.items()
    ):
        shares = []
        for wanted in SHARES:
            found, model = write_out(core, name, wanted, effort)
            if found.share is None:
                # A cache of half a second of writing is half empty before that shows.
                assert found.why == "the write cache holds only 117 writes", (name, wanted)
                assert wanted == 60 and not name.startswith("exos")
                shares.append("-")
                continue
            shares.append(f"{found.share:.1%}".replace("%", " %"))
            least = WITHIN[wanted] if effort is commands.FULL else WITHIN[wanted] + 2
            assert 100 * found.share == pytest.approx(wanted, abs=least), (name, wanted)
        seconds = f"{model.now_ns / 1e9:.0f} s"
        rows.append(f"| {' | '.join([name + label, *shares, seconds, f'{model.writes:,}'])} |\n")
    path = Path(__file__).parents[2] / "docs" / "results" / "calibrate-write-out.md"
    head, ruler, tail = path.read_text().rpartition("|---|---|---|---|---|---|---|\n")
    after = "".join(tail.partition("\n\n")[1:])[1:]  # the line of tools/results.py
    if os.environ.get("UPDATE_DOCS"):
        path.write_text(head + ruler + "".join(rows) + after)
    assert path.read_text() == head + ruler + "".join(rows) + after


def test_late_answers_do_little_to_the_share(core: tuple[Any, Any]) -> None:
    disk = dataclasses.replace(load_disk("exos-x18"), write_share_permille=300)
    model = ModelDisk(core, disk, noise_ns=20_000)
    model.may_write = True
    found = measure.Meter(model, commands.FULL).measure_write_out(None)
    assert found.share == pytest.approx(0.3, abs=0.05)


def test_where_write_out_does_not_show(core: tuple[Any, Any]) -> None:
    def why(**changes: int) -> str:
        found, _ = write_out(core, "exos-x18", effort=commands.FAST, **changes)
        assert found.share is None
        return found.why

    assert why(write_cache_sectors=0) == "writes are not answered from a cache"
    assert why(write_cache_extents=12).startswith("the write cache holds only")
    found, model = write_out(core, "usb2-2tb", queue_depth=1)
    assert found == WriteOut(None, "needs a queue of 4 commands")
    assert not model.writes


def test_a_write_cache_that_does_not_fill(
    core: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "MOST_WRITES", 1000)
    found, model = write_out(core, "exos-x18", effort=commands.FAST)
    assert found == WriteOut(None, "the write cache did not fill")
    assert model.writes < 1100


def test_it_is_opened_for_writing_only_to_be_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "disk"
    path.write_bytes(b"x" * 65536)
    info = dataclasses.replace(INFO, path=str(path))
    real, asked = os.open, []

    def opened(path: str, flags: int) -> int:
        asked.append(flags)
        return real(path, flags & ~os.O_DIRECT)  # not every file system has that

    monkeypatch.setattr(os, "open", opened)
    reader = devices.BlockDevice(info)
    with pytest.raises(StreamschedError, match="sector 8 could not be written: Bad file"):
        reader.write(8, 8)
    writer = devices.BlockDevice(info, overwrite=True)
    writer.write(8, 8)
    assert [flags & os.O_ACCMODE for flags in asked] == [os.O_RDONLY, os.O_RDWR]
    assert all(flags & os.O_EXCL and flags & os.O_DIRECT for flags in asked)
    assert path.read_bytes() == b"x" * 4096 + bytes(4096) + b"x" * (65536 - 8192)
    ends = writer.read_together([0, 64, 16, 48, 8], 8, 4)
    assert len(ends) == 5 and ends == sorted(ends)
    assert (writer.commands, bytes(writer.zeros[:4096])) == (6, bytes(4096))
    with pytest.raises(StreamschedError, match="sector 4096: 0 bytes were read instead of 4096"):
        writer.read_together([0, 4096], 8, 2)
    reader.close()
    writer.close()


def test_disks_that_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    info = dataclasses.replace(INFO, path=str(path), folder=tmp_path)
    path.write_bytes(bytes(8 << 20))
    devices.check_overwrite(info)
    with pytest.raises(UsageError) as caught:
        devices.check_overwrite(dataclasses.replace(info, write_back=False))
    assert str(caught.value) == (
        f"--overwrite: {path} has no write cache to measure; leave the option out"
    )
    (tmp_path / "sdx1").mkdir()
    (tmp_path / "sdx1" / "partition").write_text("1\n")
    with pytest.raises(UsageError) as caught:
        devices.check_overwrite(info)
    assert str(caught.value) == (
        f"--overwrite: {path} has partitions (sdx1); it is only for a disk without any"
    )


def boot_sector() -> bytes:
    """A partition table of DOS with one partition, which the kernel has not looked at."""
    entry = struct.pack("<BBBBBBBBII", 0, 0, 2, 0, 0x83, 0, 2, 0, 2048, 8192)
    return bytes(446) + entry + bytes(48) + b"\x55\xaa"


@pytest.mark.parametrize(
    ("data", "command", "sentence"),
    [
        (b"", "mkfs.ext4 -q", "ext4 at 0x438"),
        (b"", "mkswap", "swap at 0xff6"),
        (boot_sector(), "", "dos at 0x1fe"),
        (b"LUKS\xba\xbe\0\x01", "", "crypto_LUKS at 0x0"),
    ],
)
def test_a_disk_without_partitions_that_holds_data_is_not_overwritten(
    data: bytes, command: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "disk"
    path.write_bytes(data + bytes((8 << 20) - len(data)))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    if command:
        if not shutil.which(command.split()[0]):
            pytest.skip(f"{command.split()[0]} is missing")
        subprocess.run([*command.split(), path], check=True, capture_output=True)
    before = path.read_bytes()
    info = dataclasses.replace(INFO, path=str(path), folder=tmp_path)
    with pytest.raises(UsageError) as caught:
        calibrate.calibrate(info, "mine", fast=True, overwrite=True, console=Console(quiet=True))
    assert str(caught.value) == (
        f"--overwrite: {path} holds data ({sentence}); if nobody needs it, "
        f"remove its signatures first: wipefs --all {path}"
    )
    assert path.read_bytes() == before
    subprocess.run(["wipefs", "--all", "--force", "--quiet", path], check=True)
    devices.check_overwrite(info)


def test_without_wipefs_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = dataclasses.replace(INFO, path=str(tmp_path / "none"), folder=tmp_path)
    with pytest.raises(UsageError, match=r"cannot be seen whether .* holds data: .*No such file"):
        devices.check_overwrite(info)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(UsageError, match=r"wipefs, which sees .* is missing; install util-linux"):
        devices.check_overwrite(info)


# ---- what is written ----


INFO = devices.DeviceInfo(
    path="/dev/sdx",
    name="sdx",
    folder=Path("/sys/block/sdx"),
    model='Maker "Quoted" Drive 5',
    serial="S3R1AL",
    capacity_sectors=load_disk("wd5000aaks").capacity_sectors,
    logical_sectors=1,
    rotational=True,
    write_back=True,
    queue_depth=32,
    request_sectors=2560,
    nominal_rpm=7200,
)


@functools.lru_cache
def quick(name: str) -> Mechanics:
    from streamsched._core import ffi, lib

    return measured((ffi, lib), name)


def described(change: Callable[[Any], Any] = lambda found: found, **fields: Any) -> tuple[Any, str]:
    found = change(quick("wd5000aaks"))
    text = files.describe(found, dataclasses.replace(INFO, **fields), "mine", 32, TODAY)
    return parse_disk(text, "mine.toml"), text


def test_the_description_is_one_of_the_disk() -> None:
    disk, text = described()
    wanted = load_disk("wd5000aaks")
    assert disk.name == "mine" and disk.model == INFO.model
    assert disk.capacity_sectors == wanted.capacity_sectors
    assert disk.rotation_ns == wanted.rotation_ns
    assert (disk.surfaces, disk.queue_depth) == (4, 32)
    assert 512 / disk.interface_bytes_per_s == pytest.approx(512 / 300e6, rel=0.01)
    assert "on 2026-11-20" in text and "serial from sysfs: S3R1AL" in text
    # Every figure says where it comes from.
    for line in text.splitlines():
        if re.match(r"\w+ = [\d\"]", line) and not line.startswith(("name", "model", "descr")):
            assert line.startswith("kind") or re.search(r"# .*(\[meas\]|\[sys\]|estimated)", line)
    # It behaves as the disk did.
    ours, theirs = measured_curve(disk), measured_curve(wanted)
    errors = [abs(a / b - 1) for (_, a), (_, b) in zip(ours, theirs, strict=True) if b]
    assert statistics.fmean(errors) < 0.06


def without_pattern(found: Mechanics) -> Mechanics:
    pattern = Pattern(1, False, False, 1_500_000, 1_500_000)
    geometry = Geometry(
        found.geometry.capacity_sectors, found.geometry.rotation_ns, found.geometry.zones, pattern
    )
    return dataclasses.replace(found, geometry=geometry)


def with_seeks(found: Mechanics, *seeks: tuple[int, float]) -> Mechanics:
    return dataclasses.replace(found, seeks=seeks)


@pytest.mark.parametrize(
    "change",
    [
        without_pattern,
        lambda found: dataclasses.replace(found, bus=Bus(0, 0, False)),
        lambda found: dataclasses.replace(found, cache=Cache(None, None, False)),
        lambda found: dataclasses.replace(found, cache=Cache(40, 64, True)),
        lambda found: with_seeks(found, (1, 5e6), (200_000, 20e6)),
        lambda found: with_seeks(found, (1, 0.0), (2, 0.0), (10, 12e6)),
    ],
)
def test_whatever_shows_the_description_can_be_read(change: Callable[[Any], Any]) -> None:
    disk, _ = described(change)
    assert disk.seek_cylinders[-1] >= sum(disk.zone_cylinders) - 1


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (None, "0 # estimated: nothing was written"),
        (WriteOut(None, "too small"), "0 # estimated: too small"),
        (WriteOut(0.304), "30 # [meas] by writing beside reads"),
        (WriteOut(0.0), "0 # [meas] by writing beside reads"),
        (WriteOut(0.97), "90 # [meas] by writing beside reads"),
    ],
)
def test_the_share_that_is_described(found: WriteOut | None, line: str) -> None:
    disk, text = described(lambda base: dataclasses.replace(base, write_out=found))
    assert f"\nwrite_share_percent = {line}\n" in text
    assert disk.write_share_permille == 10 * int(line.split()[0])
    assert "write_share_percent = 0 # [sys] no write cache\n" in described(write_back=False)[1]


def test_a_description_without_a_write_cache() -> None:
    assert described(write_back=True)[0].write_cache_sectors > 0
    assert described(write_back=False)[0].write_cache_sectors == 0


def test_the_description_of_a_flat_disk() -> None:
    info = dataclasses.replace(INFO, rotational=False)
    found = calibrate.conclude(info, "mine", Flat(70_000.0, 5.6e8), 32, 0, 1000)
    disk = parse_disk(found.text, "mine.toml")
    assert disk.flat_read_ns == 70_000 and disk.flat_read_bytes_per_s == 560_000_000
    assert files.curve_line(found.curve) == "0:70000"
    said = calibrate.summary(found, Path("mine.toml"))
    assert "waiting never pays" in said


def test_the_line_is_as_the_kernel_wants_it(core: tuple[Any, Any]) -> None:
    ffi, lib = core
    found = calibrate.conclude(INFO, "mine", quick("wd5000aaks"), 32, 0, 1000)
    line = files.curve_line(found.curve)
    assert re.fullmatch(r"0:0( \d+:\d+){1,39}", line)
    points = ffi.new("struct ss_curve_point[40]")
    for i, point in enumerate(line.split()):
        points[i].distance_sectors, points[i].time_ns = map(int, point.split(":"))
    curve = ffi.new("struct ss_curve *")
    span = INFO.capacity_sectors
    assert lib.ss_curve_set(curve, points, len(line.split()), span) == 0
    assert not curve.flat
    said = calibrate.summary(found, Path("mine.toml"))
    assert f"service_curve='{line}'\n" in said
    assert 'echo "$service_curve" >/sys/block/sdx/queue/iosched/service_curve' in said


def test_doubts_are_told() -> None:
    def notes(found: Any = None, others: int = 0, **fields: Any) -> str:
        info = dataclasses.replace(INFO, **fields)
        return " | ".join(
            calibrate.conclude(info, "m", found or quick("wd5000aaks"), 32, others, 5000).notes
        )

    base = quick("wd5000aaks")
    assert notes() == ""
    assert "others sent 700 commands" in notes(others=700)
    assert "turns with 5400 rpm; 7200 were measured" in notes(nominal_rpm=5400)
    assert "not rotational" in notes(rotational=False)
    assert "surfaces" in notes(without_pattern(base))
    lost = WriteOut(None, "the write cache did not fill")
    assert "write-out beside reads did not show: the write cache did not fill" in notes(
        dataclasses.replace(base, write_out=lost)
    )
    assert "were disturbed" in notes(dataclasses.replace(base, dropped=base.samples // 50))
    assert "no head moves" in " ".join(
        calibrate.conclude(INFO, "m", Flat(70_000.0, 5.6e8), 32, 0, 1000).notes
    )


def test_a_file_that_nobody_named_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert calibrate.target(INFO, None) == Path("maker-quoted-drive-5.toml")
    Path("maker-quoted-drive-5.toml").touch()
    with pytest.raises(UsageError, match="already; name another one with --to"):
        calibrate.target(INFO, None)
    there = Path("maker-quoted-drive-5.toml")
    assert calibrate.target(INFO, there) == there
    with pytest.raises(UsageError, match=r"name a \.toml file"):
        calibrate.target(INFO, Path("x.txt"))
    unknown = dataclasses.replace(INFO, model="unknown")
    assert calibrate.target(unknown, None) == Path("sdx.toml")


# ---- settings ----


SETTINGS = {
    "scheduler": "none [bfq] mq-deadline",
    "read_ahead_kb": "128",
    "nr_requests": "77",
    "iosched/low_latency": "0",
}


@pytest.fixture
def fake(tmp_path: Path) -> devices.DeviceInfo:
    """A disk whose settings are plain files."""
    queue = tmp_path / "sdx" / "queue"
    (queue / "iosched").mkdir(parents=True)
    for name, value in SETTINGS.items():
        (queue / name).write_text(value + "\n")
    (queue / "rotational").write_text("1\n")
    (queue / "rotational").chmod(0o444)
    return dataclasses.replace(INFO, folder=tmp_path / "sdx")


def settings_of(info: devices.DeviceInfo) -> dict[str, str]:
    return {name: (info.queue / name).read_text().strip() for name in SETTINGS}


BEFORE = {**SETTINGS, "scheduler": "bfq"}


def put(info: devices.DeviceInfo, name: str, value: str) -> None:
    (info.queue / name).write_text(value)


def test_settings_are_put_aside_and_back(fake: devices.DeviceInfo) -> None:
    with settings.quiet(fake):
        now = settings_of(fake)
        assert (now["scheduler"][:4], now["read_ahead_kb"][:1]) == ("none", "0")
        # Another scheduler brings other settings.
        put(fake, "nr_requests", "256")
        put(fake, "iosched/low_latency", "1")
    after = settings_of(fake)
    assert after["scheduler"].startswith("bfq") and after["nr_requests"].startswith("77")
    assert after["read_ahead_kb"].startswith("128")
    assert after["iosched/low_latency"].startswith("0")


@pytest.mark.parametrize("number", settings.STOPPING)
@pytest.mark.parametrize("times", [1, 3])
def test_signals_end_it_and_settings_come_back(
    fake: devices.DeviceInfo, number: signal.Signals, times: int
) -> None:
    handlers = [signal.getsignal(one) for one in settings.STOPPING]
    went_on = False
    with (
        pytest.raises(Interrupted, match="settings of sdx are as they were") as caught,
        settings.quiet(fake),
    ):
        try:
            os.kill(os.getpid(), number)
            went_on = True
        finally:
            for _ in range(times - 1):
                os.kill(os.getpid(), number)
    assert not went_on
    assert caught.value.exit_code == 128 + number
    assert settings_of(fake)["scheduler"].startswith("bfq")
    assert settings_of(fake)["read_ahead_kb"].startswith("128")
    assert [signal.getsignal(one) for one in settings.STOPPING] == handlers


def test_a_signal_while_settings_are_put_back_waits(
    fake: devices.DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = settings.Quiet._write

    def interrupted(self: settings.Quiet, name: str, value: str) -> None:
        if value == "bfq":
            os.kill(os.getpid(), signal.SIGTERM)
        write(self, name, value)

    monkeypatch.setattr(settings.Quiet, "_write", interrupted)
    with pytest.raises(Interrupted), settings.quiet(fake):
        pass
    assert settings_of(fake)["scheduler"].startswith("bfq")
    assert settings_of(fake)["read_ahead_kb"].startswith("128")


def test_what_nohup_ignores_stays_ignored(fake: devices.DeviceInfo) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with settings.quiet(fake):
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_error_puts_settings_back_and_is_told(fake: devices.DeviceInfo) -> None:
    with pytest.raises(StreamschedError, match="unreadable"), settings.quiet(fake):
        raise StreamschedError("unreadable")
    assert settings_of(fake)["scheduler"].startswith("bfq")


def test_what_cannot_be_put_back_is_named(fake: devices.DeviceInfo) -> None:
    with (
        pytest.raises(StreamschedError, match=r"nr_requests \(it was '77'\)"),
        settings.quiet(fake),
    ):
        (fake.queue / "nr_requests").unlink()
        (fake.queue / "nr_requests").mkdir()
    assert settings_of_some(fake, "scheduler").startswith("bfq")


def settings_of_some(info: devices.DeviceInfo, name: str) -> str:
    return (info.queue / name).read_text()


def test_learned_curves_are_told_from_written_ones(core: tuple[Any, Any]) -> None:
    ffi, lib = core
    curve = ffi.new("struct ss_curve *")

    def shown() -> str:
        points = [curve.point[i] for i in range(curve.nr_points)]
        return " ".join(f"{point.distance_sectors}:{point.time_ns}" for point in points)

    lib.ss_curve_init_generic(curve, INFO.capacity_sectors)
    assert settings.is_learned(shown())
    for i in range(100):
        lib.ss_curve_learn(curve, 1000 * i, 8, 5 * MS)
    assert settings.is_learned(shown())
    line = files.curve_line(quick("wd5000aaks").service_curve())
    assert not settings.is_learned(line) and not settings.is_learned("0:0")


# ---- refusals that need no disk ----


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/dev/null", "not a block device"),
        ("/dev/there-is-none", "No such file or directory"),
        (__file__, "not a block device"),
    ],
)
def test_what_is_no_disk_is_refused(path: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        devices.examine(path)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


# ---- the command, on emulated disks of the real kernel ----


DISK = "hdd0"
MAKE = f"{sys.executable} -B -m streamsched.hosts.hddemu create {DISK}"
CALIBRATE = f"{BIN}/streamsched calibrate"


def in_rig(script: str, **options: Any) -> rig.RigResult:
    need_rig("base")
    # This may be below a folder that is hidden there.
    show = [Path(sys.prefix), rig.source_root()]
    result = rig.run_in_rig("set -e\n" + script, show=show, **options)
    assert result.status == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert result.complaints() == []
    return result


def curve_of(said: str) -> list[tuple[int, int]]:
    (line,) = re.findall(r"^service_curve='(.*)'$", said, re.MULTILINE)
    points = [point.split(":") for point in line.split()]
    return [(int(distance), int(time)) for distance, time in points]


def show_errors(name: str, errors: Sequence[tuple[int, float]], elapsed_ns: int) -> None:
    """For docs/CALIBRATE.md; pytest -s shows it."""
    worst = max(errors, key=lambda one: abs(one[1]))
    mean = statistics.fmean(abs(error) for _, error in errors)
    seconds = elapsed_ns / 1e9
    print(f"{name}: {seconds:.0f} s, worst {worst[1]:+.1%} at {worst[0]}, mean {mean:.1%}")


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["wd5000aaks", "exos-x18"])
def test_the_curve_of_an_emulated_disk(core: tuple[Any, Any], name: str) -> None:
    result = in_rig(
        f"""
{MAKE} {name}
{CALIBRATE} /dev/{DISK} --to $OUT/{name}.toml >$OUT/said
# What is said to be done can be done.
tail -n 3 $OUT/said >/tmp/apply
sh -ex /tmp/apply
cat /sys/block/{DISK}/queue/iosched/service_curve >$OUT/curve
"""
    )
    disk = load_disk(name)
    found = curve_of(result.files["said"].decode())
    assert result.files["curve"].decode().split() == [f"{d}:{t}" for d, t in found]
    wanted = dense_curve(core, disk)
    assert [distance for distance, _ in found] == [distance for distance, _ in wanted]
    errors = [(d, a / b - 1) for (d, a), (_, b) in zip(found, wanted, strict=True) if b]
    show_errors(name, errors, result.elapsed_ns)
    for distance, error in errors:
        assert abs(error) < 0.05, (distance, error)
    # The model's own measurement takes few pairs: near ones are right to some us.
    for (distance, ours), (_, theirs) in zip(found, measured_curve(disk), strict=True):
        assert abs(ours - theirs) < max(0.05 * theirs, 15_000), distance

    described = parse_disk(result.files[f"{name}.toml"].decode(), f"{name}.toml")
    assert described.rotation_ns == disk.rotation_ns
    assert described.surfaces == disk.surfaces
    assert described.zone_sectors_per_track == disk.zone_sectors_per_track
    assert described.track_skew_ns == pytest.approx(disk.track_skew_ns, abs=2000)
    assert described.cylinder_skew_ns == pytest.approx(disk.cylinder_skew_ns, abs=2000)
    assert described.segments == disk.segments
    assert described.readahead_sectors == disk.readahead_sectors
    assert described.queue_depth == disk.queue_depth
    curves = zip(measured_curve(described), wanted, strict=True)
    assert statistics.fmean(abs(a / b - 1) for (_, a), (_, b) in curves if b) < 0.05


@pytest.mark.e2e
def test_an_emulated_ssd() -> None:
    result = in_rig(f"{MAKE} ssd\n{CALIBRATE} /dev/{DISK} --fast --to $OUT/ssd.toml >$OUT/said")
    assert parse_disk(result.files["ssd.toml"].decode(), "ssd.toml").kind == 1
    said = result.files["said"].decode()
    assert "kind:                flat" in said
    ((distance, time),) = curve_of(said)
    assert distance == 0 and time == pytest.approx(69_600, rel=0.05)


@pytest.mark.e2e
def test_an_emulated_disk_that_is_overwritten() -> None:
    """Only when that is said; each write is counted by the kernel."""
    result = in_rig(
        f"""
{MAKE} exos-x18 --set write_share_permille=300 --set write_cache_extents=500
writes() {{ awk '{{ print $5 }}' /sys/block/{DISK}/stat; }}
{CALIBRATE} /dev/{DISK} --fast --to $OUT/read.toml >/dev/null
writes >$OUT/writes
{CALIBRATE} /dev/{DISK} --fast --overwrite --to $OUT/written.toml >$OUT/said 2>$OUT/warned
writes >>$OUT/writes
mkswap /dev/{DISK} >/dev/null && writes >>$OUT/writes
! {CALIBRATE} /dev/{DISK} --fast --overwrite --to $OUT/none.toml 2>$OUT/refused
writes >>$OUT/writes
"""
    )
    none, some, swap, same = map(int, result.files["writes"].split())
    assert none == 0 and 500 < some < 10_000 and swap == same > some
    assert result.files["refused"].decode() == (
        f"streamsched: --overwrite: /dev/{DISK} holds data (swap at 0xff6); if nobody needs it, "
        f"remove its signatures first: wipefs --all /dev/{DISK}\n"
    )
    assert "none.toml" not in result.files
    before, after = (result.files[f"{name}.toml"].decode() for name in ("read", "written"))
    assert "write_share_percent = 0 # estimated: nothing was written\n" in before
    assert parse_disk(after, "written.toml").write_share_permille == pytest.approx(300, abs=60)
    assert re.search(r"^write-out: +\d+% of the time", result.files["said"].decode(), re.M)
    assert result.files["warned"].decode().startswith(f"measuring and overwriting /dev/{DISK};")


# Runs inside: the settings before, meanwhile and after; signals to the command.
INTERRUPT = """
import os, signal, subprocess, sys, time
from pathlib import Path

queue = Path("/sys/block/hdd0/queue")

def settings():
    found = {}
    for path in sorted([*queue.glob("*"), *queue.glob("iosched/*")]):
        try:
            found[str(path.relative_to(queue))] = path.read_text()
        except OSError:
            pass
    return found

def write(name, value):
    (queue / name).write_text(value)

def prepare(scheduler, changes):
    write("scheduler", "none")
    write("scheduler", scheduler)
    for name, value in changes.items():
        write(name, value)

CASES = [
    ("mq-deadline", {"nr_requests": "77", "iosched/read_expire": "200"}),
    ("bfq", {"iosched/low_latency": "0", "read_ahead_kb": "64", "wbt_lat_usec": "0"}),
    ("stream", {"iosched/inner": "sptf", "iosched/wait_target": "300ms",
                "iosched/service_curve": "0:0 2048:4000000 100000000:9000000"}),
    ("none", {"nr_requests": "20", "nomerges": "2"}),
]
SIGNALS = [[signal.SIGINT], [signal.SIGTERM], [signal.SIGHUP], [signal.SIGTERM, signal.SIGINT]]
for (scheduler, changes), signals in zip(CASES, SIGNALS):
    prepare(scheduler, {k: v for k, v in changes.items() if (queue / k).exists()})
    before = settings()
    for after_s in (0.5, 20, 60) if scheduler == "mq-deadline" else (20,):
        output = Path(f"/tmp/{scheduler}.toml")
        run = subprocess.Popen(
            [sys.argv[1], "calibrate", "/dev/hdd0", "--to", output], stderr=subprocess.PIPE
        )
        time.sleep(after_s)
        assert run.poll() is None, run.stderr.read()
        meanwhile = settings()
        assert "[none]" in meanwhile["scheduler"], meanwhile["scheduler"]
        assert meanwhile["read_ahead_kb"] == "0\\n"
        for number in signals:
            run.send_signal(number)
        said = run.stderr.read().decode().splitlines()[-1]
        code = run.wait()
        assert code in [128 + number for number in signals], (code, said)
        assert said == "streamsched: interrupted; the settings of hdd0 are as they were", said
        after = settings()
        assert after == before, set(after.items()) ^ set(before.items())
        assert not output.exists()
        os.close(os.open("/dev/hdd0", os.O_RDONLY | os.O_EXCL))
    print(scheduler, "as before")

# An error in the middle, too.
prepare("mq-deadline", {"nr_requests": "77"})
before = settings()
Path("/sys/kernel/config/hdd-emu/hdd0/bad_ranges").write_text("200000000 300000000 read EIO\\n")
command = [sys.argv[1], "calibrate", "/dev/hdd0", "--to", "/tmp/x.toml"]
run = subprocess.run(command, stderr=subprocess.PIPE)
assert run.returncode == 1 and b"could not be read: Input/output error" in run.stderr, run.stderr
assert settings() == before and not Path("/tmp/x.toml").exists()
print("error as before")
"""


@pytest.mark.e2e
def test_whatever_interrupts_it_the_settings_are_as_before() -> None:
    result = in_rig(
        f"{MAKE} wd5000aaks\n{sys.executable} -B $IN/interrupt.py {BIN}/streamsched",
        files={"interrupt.py": INTERRUPT},
    )
    assert result.stdout.split("\n")[:-1] == [
        *(f"{scheduler} as before" for scheduler in ("mq-deadline", "bfq", "stream", "none")),
        "error as before",
    ]


REFUSALS = f"""
try() {{
    code=0
    "$@" 2>/tmp/said >/tmp/out || code=$?
    [ "$(wc -l </tmp/said)" = 1 ] || {{ cat /tmp/said; exit 1; }}
    echo "$code $(cat /tmp/said)"
}}
cd /tmp
grep . /sys/block/{DISK}/queue/scheduler /sys/block/{DISK}/queue/read_ahead_kb >before
mkfs.ext4 -q -E lazy_itable_init=1 -O ^resize_inode /dev/{DISK} 2000000
mkdir m; mount /dev/{DISK} m
try {CALIBRATE} /dev/{DISK}
umount m
{sys.executable} -c 'import os, time
os.open("/dev/{DISK}", os.O_RDONLY | os.O_EXCL)
time.sleep(50)' &
sleep 1
try {CALIBRATE} /dev/{DISK}
wait $!
losetup /dev/loop0 /dev/{DISK}
try {CALIBRATE} /dev/loop0
losetup -d /dev/loop0
as_nobody() {{
    setpriv --reuid 65534 --regid 65534 --clear-groups venv/bin/python -P -B \\
        -c 'from streamsched.cli.main import main; raise SystemExit(main())' "$@"
}}
# The checkout may be below a folder that only its owner may enter.
mkdir venv; mount --bind {sys.prefix} venv
try as_nobody calibrate /dev/{DISK}
chmod 644 /dev/{DISK}
try as_nobody calibrate /dev/{DISK}
{MAKE.replace(DISK, "hdd1")} wd5000aaks --set size_sectors=8388600
try {CALIBRATE} /dev/hdd1
try {CALIBRATE} /dev/{DISK} --to /nowhere/x.toml
try {CALIBRATE} /dev/{DISK} --to x.txt
grep . /sys/block/{DISK}/queue/scheduler /sys/block/{DISK}/queue/read_ahead_kb | cmp - before
[ "$(ls *.toml 2>/dev/null)" = "" ]
"""


@pytest.mark.parametrize(
    ("user", "why"),
    [
        (0, "no permission to read it, not even as root; is this a container without it?"),
        (1000, "no permission to read it; run this as root"),
    ],
)
def test_who_may_not_read_a_disk(user: int, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    refused = PermissionError(errno.EPERM, "Operation not permitted")
    info: Any = None  # only asked who uses the disk
    assert devices._why_not(refused, info) == why


@pytest.mark.e2e
def test_refusals() -> None:
    result = in_rig(f"{MAKE} wd5000aaks\n{REFUSALS}")
    start = f"2 streamsched: /dev/{DISK}: "
    said = result.stdout.splitlines()
    assert said == [
        start + f"in use: /dev/{DISK} is mounted on /tmp/m; unmount it first",
        start + "in use: another program has it open for itself; end that first",
        f"2 streamsched: /dev/loop0: not a disk but a layer over /dev/{DISK}; "
        "name the disk beneath",
        start + "no permission to read it; run this as root",
        f"2 streamsched: no permission to change /sys/devices/virtual/block/{DISK}/queue/"
        "scheduler; run this as root",
        "2 streamsched: /dev/hdd1: too small to be measured: it has 8388600 sectors of 512 "
        "bytes and must have at least 8388608 (4 GiB)",
        "2 streamsched: --to /nowhere/x.toml: cannot write it: there is no directory /nowhere",
        "2 streamsched: --to x.txt: name a .toml file",
    ]


@pytest.mark.e2e
def test_a_disk_that_others_read_is_noted() -> None:
    result = in_rig(
        f"""
{MAKE} wd5000aaks
(while :; do
    dd if=/dev/{DISK} of=/dev/null bs=4k count=1 skip=$((RANDOM * 3000)) iflag=direct status=none
    sleep 0.2
done) & other=$!
{CALIBRATE} /dev/{DISK} --fast --to $OUT/x.toml >$OUT/said
kill $other
"""
    )
    assert re.search(r"^note: +others sent \d+ commands", result.files["said"].decode(), re.M)
    parse_disk(result.files["x.toml"].decode(), "x.toml")


@pytest.mark.parametrize(
    ("points", "why"),
    [
        ([(0, 10**9 + 1)], "point 1: 1000000001 ns is not within 0 to 1000000000 (1 s)"),
        ([(0, 5), (10, 4)], "point 2: 4 ns, but times must never fall"),
        ([(0, 5), (0, 6)], "point 2: 0 sectors, but distances must be ascending from 0"),
        ([], "must have 1 to 40 points"),
    ],
)
def test_a_curve_that_stream_would_refuse(points: list[tuple[int, int]], why: str) -> None:
    with pytest.raises(StreamschedError) as error:
        files.check_curve(points)
    assert why in str(error.value)
    files.check_curve([(0, 0), (1, 10**9)])
