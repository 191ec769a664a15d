# SPDX-License-Identifier: GPL-2.0-only
"""streamsched calibrate: what is written of a disk, and what is refused without one."""

from __future__ import annotations

import dataclasses
import errno
import os
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_disk import INFO, described, quick

from streamsched._core import ffi, lib
from streamsched.base.errors import StreamschedError, UsageError
from streamsched.calibrate import description as calibrate
from streamsched.calibrate import device as devices
from streamsched.calibrate import file as files
from streamsched.calibrate.found import Bus, Cache, Flat, Geometry, Mechanics, Pattern, WriteOut
from streamsched.sim.diskfile import load_disk, parse_disk
from streamsched.sim.simulate import measured_curve


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


def test_the_line_is_as_the_kernel_wants_it() -> None:
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
