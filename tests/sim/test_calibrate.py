# SPDX-License-Identifier: GPL-2.0-only
"""streamsched calibrate: its numbers, and what it measures on the disk model."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_disk import MS, ModelDisk, measured

from streamsched.base.errors import StreamschedError
from streamsched.calibrate import arm, caches, commands, measure, numeric, tracks
from streamsched.calibrate.found import Flat, Mechanics, WriteOut
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import measured_curve


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


def test_places_are_never_read_twice() -> None:
    disk = ModelDisk(load_disk("wd5000aaks"))
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
def test_a_quick_look_at_the_model(name: str) -> None:
    disk, found = load_disk(name), measured(name)
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


def test_noise_and_retries_do_little_harm() -> None:
    disk, found = load_disk("wd5000aaks"), measured("wd5000aaks", noise_ns=20_000)
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


def test_a_disk_that_never_shows_where_tracks_end() -> None:
    class Blind(measure.Meter):
        def _jumps(self, run: tracks.Run) -> None:
            return None

    disk = load_disk("wd5000aaks")
    effort = dataclasses.replace(commands.FAST, place_tracks=12)
    meter = Blind(ModelDisk(disk), effort)
    meter.bus = meter.measure_bus()
    meter.rotation_ns, _ = meter.measure_rotation()
    geometry = meter.measure_zones(meter.bus)
    assert not geometry.pattern.skews_known and not geometry.pattern.surfaces_known
    # What remains of reading on is about the skews' share, and the rates are right.
    assert geometry.pattern.mean_skew_ns() == pytest.approx(1.625 * MS, rel=0.25)
    capacity = disk.capacity_sectors
    for at, rate in ((0, 100.3e6), (capacity // 2, 79.1e6), (capacity - 1, 50.1e6)):
        assert geometry.bytes_per_s(at) == pytest.approx(rate, rel=0.04)


def test_a_disk_without_a_head() -> None:
    disk = load_disk("ssd")
    found = measure.Meter(ModelDisk(disk), commands.FULL).measure()
    assert isinstance(found, Flat)
    assert found.read_ns == pytest.approx(69_600, rel=0.01)
    assert found.bytes_per_s == pytest.approx(disk.flat_read_bytes_per_s, rel=0.01)


def test_a_drive_that_keeps_whole_tracks_is_refused() -> None:
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
        measure.Meter(WholeTracks(load_disk("wd5000aaks")), commands.FAST).measure()


def test_a_drive_with_long_blocks_is_read_by_blocks() -> None:
    disk = ModelDisk(load_disk("st2000dm006"))
    disk.align_sectors = 8
    found = measure.Meter(disk, commands.FAST).measure()
    assert isinstance(found, Mechanics)
    assert all(point.distance_sectors % 8 == 0 for point in found.curve)


def test_progress_goes_from_step_to_step() -> None:
    seen: list[tuple[str, float]] = []
    disk = ModelDisk(load_disk("wd5000aaks"))
    measure.Meter(disk, commands.FAST, lambda step, part: seen.append((step, part))).measure()
    order = list(commands.FAST.seconds)
    assert list(dict.fromkeys(step for step, _ in seen)) == order
    for step in order:
        parts = [part for one, part in seen if one == step]
        assert all(0 <= part <= 1 for part in parts)
    assert seen[-1] == ("cache", 1.0)


# ---- write-out beside reads ----


def write_out(
    name: str,
    share: int = 30,
    effort: commands.Effort = commands.FULL,
    queue_depth: int = 32,
    **changes: int,
) -> tuple[WriteOut, ModelDisk]:
    disk = dataclasses.replace(load_disk(name), write_share_permille=10 * share, **changes)
    model = ModelDisk(disk)
    model.may_write = True
    return measure.Meter(model, effort).measure_write_out(queue_depth), model


EFFORTS = {"": commands.FULL, " `--fast`": commands.FAST}
SHARES = (0, 15, 30, 60)
WITHIN = {0: 2, 15: 3, 30: 3, 60: 3}


def test_the_share_of_write_out() -> None:
    """Also docs/results/calibrate-write-out.md, which has the figures."""
    rows = []
    for name, (label, effort) in itertools.product(
        ("wd5000aaks", "st2000dm006", "exos-x18", "exos-x24"), EFFORTS.items()
    ):
        shares = []
        for wanted in SHARES:
            found, model = write_out(name, wanted, effort)
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


def test_late_answers_do_little_to_the_share() -> None:
    disk = dataclasses.replace(load_disk("exos-x18"), write_share_permille=300)
    model = ModelDisk(disk, noise_ns=20_000)
    model.may_write = True
    found = measure.Meter(model, commands.FULL).measure_write_out(None)
    assert found.share == pytest.approx(0.3, abs=0.05)


def test_where_write_out_does_not_show() -> None:
    def why(**changes: int) -> str:
        found, _ = write_out("exos-x18", effort=commands.FAST, **changes)
        assert found.share is None
        return found.why

    assert why(write_cache_sectors=0) == "writes are not answered from a cache"
    assert why(write_cache_extents=12).startswith("the write cache holds only")
    found, model = write_out("usb2-2tb", queue_depth=1)
    assert found == WriteOut(None, "needs a queue of 4 commands")
    assert not model.writes


def test_a_write_cache_that_does_not_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MOST_WRITES", 1000)
    found, model = write_out("exos-x18", effort=commands.FAST)
    assert found == WriteOut(None, "the write cache did not fill")
    assert model.writes < 1100
