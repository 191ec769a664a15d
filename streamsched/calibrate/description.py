# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched calibrate`: measure a disk, describe it (docs/guide/CALIBRATE.md).

It is only read, unless the user lets it be overwritten.

What is measured and how is in measure.py, the device in device.py, its settings in
settings.py, the files that come of it in file.py.
"""

from __future__ import annotations

import datetime
import gc
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from streamsched.base.errors import UsageError
from streamsched.calibrate import file as files
from streamsched.calibrate.commands import FAST, FULL, Effort
from streamsched.calibrate.commands import Progress as Report
from streamsched.calibrate.device import (
    BlockDevice,
    DeviceInfo,
    check_overwrite,
    commands_done,
)
from streamsched.calibrate.found import SECTOR_BYTES, Flat, Mechanics
from streamsched.calibrate.measure import Meter
from streamsched.calibrate.numeric import interpolate
from streamsched.calibrate.settings import quiet
from streamsched.sim.diskfile import parse_disk
from streamsched.sim.simulate import measured_curve

REFRESH_S = 0.25
STEPS = {
    "zones": "rotation, zones",
    "curve": "positioning by distance",
    "seeks": "seeks",
    "cache": "the drive's cache",
    "write-out": "write-out beside reads",
}


@dataclass(frozen=True)
class Calibration:
    """What came of it."""

    info: DeviceInfo
    measured: Mechanics | Flat
    curve: tuple[tuple[int, int], ...]
    text: str
    """The description."""
    notes: tuple[str, ...]
    """What the user should know before relying on it."""


def target(info: DeviceInfo, to: Path | None) -> Path:
    """The file to write; one that nobody named is not replaced."""
    if to is not None:
        if to.suffix != ".toml":
            raise UsageError(f"--to {to}: name a .toml file")
        return to
    path = Path(f"{info.file_name()}.toml")
    if path.exists():
        raise UsageError(f"{path}: there is such a file already; name another one with --to")
    return path


@contextmanager
def _reporting(effort: Effort, console: Console, path: str, overwrite: bool) -> Iterator[Report]:
    """A progress bar, drawn between measurements only: drawing takes time, too."""
    seconds = {**effort.seconds, **({"write-out": effort.write_out_s} if overwrite else {})}
    total = sum(seconds.values())
    doing = "measuring and overwriting" if overwrite else "measuring"
    minutes = round(total / 60)
    console.print(
        f"{doing} {path}; this takes about {minutes or 1} min", highlight=False, markup=False
    )
    steps = list(seconds)
    before = {
        step: sum(seconds[earlier] for earlier in steps[:at]) for at, step in enumerate(steps)
    }
    bar = Progress(
        TextColumn("{task.description:<24}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        auto_refresh=False,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=total)
        last = 0.0

        def report(step: str, part: float) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last < REFRESH_S:
                return
            last = now
            done = before[step] + part * seconds[step]
            bar.update(task, description=STEPS[step], completed=done, refresh=True)

        yield report


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python's garbage collector would take its time in the middle of a measurement."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def calibrate(
    info: DeviceInfo, name: str, *, fast: bool, overwrite: bool = False, console: Console
) -> Calibration:
    """Measure the disk; its settings are afterwards as before, whatever happens.

    What is on it is lost with @overwrite, and only then.
    """
    effort = FAST if fast else FULL
    if overwrite:
        check_overwrite(info)
    device = BlockDevice(info, overwrite=overwrite)
    try:
        with (
            quiet(info),
            _reporting(effort, console, info.path, overwrite) as report,
            _no_collection(),
        ):
            depth = info.queue_depth or _tags(info)
            others = commands_done(info)
            meter = Meter(device, effort, report)
            measured = meter.measure(overwrite=overwrite, queue_depth=depth)
            others = commands_done(info) - others - device.commands
    finally:
        device.close()
    return conclude(info, name, measured, depth, others, device.commands)


def _tags(info: DeviceInfo) -> int | None:
    """Without a scheduler there are as many requests as the driver takes."""
    try:
        return int((info.queue / "nr_requests").read_text())
    except OSError:
        return None


def conclude(
    info: DeviceInfo,
    name: str,
    measured: Mechanics | Flat,
    depth: int | None,
    others: int,
    commands: int,
) -> Calibration:
    """From what was measured to what is written and said."""
    today = datetime.datetime.now().astimezone().date()
    notes = []
    if others > 10 + commands // 200:
        notes.append(
            f"others sent {others} commands to the disk meanwhile: its times may be too long; "
            "measure again when it is idle"
        )
    if isinstance(measured, Flat):
        curve = files.flat_curve(measured)
        files.check_curve(curve)
        text = files.describe_flat(measured, info, name, depth, today)
        if info.rotational:
            notes.append("the kernel calls it rotational, but no head moves: the curve is flat")
        parse_disk(text, f"{name}.toml")
        return Calibration(info, measured, curve, text, tuple(notes))
    curve = measured.service_curve()
    files.check_curve(curve)
    text = files.describe(measured, info, name, depth, today)
    notes += _doubts(info, measured)
    return Calibration(info, measured, curve, text, tuple(notes))


def _doubts(info: DeviceInfo, measured: Mechanics) -> Iterator[str]:
    if not info.rotational:
        yield "the kernel calls it not rotational, but it takes its time to position"
    rpm = 60e9 / measured.geometry.rotation_ns
    if info.nominal_rpm and abs(rpm / info.nominal_rpm - 1) > 0.005:
        yield f"the drive says that it turns with {info.nominal_rpm} rpm; {rpm:.0f} were measured"
    if not measured.bus.known:
        yield (
            "the drive's cache did not answer repeated reads: what a command costs is counted "
            "as positioning"
        )
    if not measured.geometry.pattern.surfaces_known:
        yield (
            "how many surfaces there are did not show; seeks are right by distance in sectors, "
            "cylinders are estimated"
        )
    if measured.write_out and measured.write_out.share is None:
        yield f"write-out beside reads did not show: {measured.write_out.why}"
    if measured.dropped > measured.samples / 100:
        yield (
            f"{measured.dropped} of {measured.samples} samples were disturbed and left out; "
            "is something else using the disk?"
        )


def own_curve_error(calibration: Calibration) -> float:
    """How far the description's curve, measured on the model, is from the disk's: a mean."""
    disk = parse_disk(calibration.text, "the description")
    ours = [(float(distance), float(time_ns)) for distance, time_ns in measured_curve(disk)]
    errors = [
        abs(interpolate(ours, distance) / time_ns - 1)
        for distance, time_ns in calibration.curve
        if time_ns
    ]
    return statistics.fmean(errors)


def _mean_seek_ms(measured: Mechanics) -> float:
    """Over two places anywhere: lengths up to the stroke, short ones more often."""
    stroke = measured.geometry.stroke()
    seeks = [(float(cylinders), time_ns) for cylinders, time_ns in measured.seeks]
    strips = 200
    parts = [(strip + 0.5) / strips for strip in range(strips)]
    total = sum((1 - part) * interpolate(seeks, part * stroke) for part in parts)
    return total / sum(1 - part for part in parts) / 1e6


def _rows(calibration: Calibration) -> Iterator[tuple[str, str]]:
    info, measured = calibration.info, calibration.measured
    gb = info.capacity_sectors * SECTOR_BYTES / 1e9
    yield "disk", f"{info.model}, serial {info.serial}, {gb:,.1f} GB"
    if isinstance(measured, Flat):
        yield "kind", "flat: it costs the same to go anywhere, waiting never pays (an SSD)"
        yield "4 KiB read", f"{measured.read_ns / 1e6:.3f} ms"
        yield "sequential", f"{measured.bytes_per_s / 1e6:.0f} MB/s, one read at a time"
        return
    geometry = measured.geometry
    capacity = geometry.capacity_sectors
    rates = [geometry.bytes_per_s(at) / 1e6 for at in (0, capacity // 2, capacity - 1)]
    yield (
        "rotation",
        f"{60e9 / geometry.rotation_ns:.0f} rpm, {geometry.rotation_ns / 1e6:.4f} ms",
    )
    yield (
        "sequential",
        f"{rates[0]:.1f} MB/s outside, {rates[1]:.1f} in the middle, {rates[2]:.1f} inside; "
        f"{len(geometry.zones)} zones",
    )
    yield "4 KiB read anywhere", f"{measured.random_read_ns / 1e6:.1f} ms"
    yield (
        "seek",
        f"{measured.seeks[0][1] / 1e6:.1f} ms track to track, {_mean_seek_ms(measured):.1f} "
        f"in the mean, {measured.seeks[-1][1] / 1e6:.1f} full stroke",
    )
    if measured.write_out and measured.write_out.share is not None:
        yield "write-out", f"{measured.write_out.share:.0%} of the time beside reads"
    points = [point for point in measured.curve if point.time_ns > 0]
    worst = max(point.error_ns / point.time_ns for point in points)
    yield (
        "curve",
        f"{len(measured.curve)} points from {sum(point.pairs for point in points)} pairs, "
        f"standard error at most {worst:.1%} of each",
    )
    yield (
        "description",
        f"its own curve is {own_curve_error(calibration):.1%} from the measured one in the mean",
    )


def summary(calibration: Calibration, path: Path) -> str:
    """What the command prints: the figures, and how to use them."""
    info = calibration.info
    lines = [f"{key + ':':<21}{value}" for key, value in _rows(calibration)]
    lines += [f"{'note:':<21}{note}" for note in calibration.notes]
    queue = f"/sys/block/{info.folder.name}/queue"
    lines += [
        "",
        f"{path} describes it: streamsched run --disk ./{path} ..."
        if not path.is_absolute()
        else f"{path} describes it: streamsched run --disk {path} ...",
        "",
        "For the scheduler, as root:",
        "",
        f"service_curve='{files.curve_line(calibration.curve)}'",
        f"echo stream >{queue}/scheduler",
        f'echo "$service_curve" >{queue}/iosched/service_curve',
    ]
    return "\n".join([*lines, ""])
