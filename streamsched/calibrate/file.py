# SPDX-License-Identifier: GPL-2.0-only
"""What `streamsched calibrate` writes: a description as in disks/, and the scheduler's curve."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Sequence

import streamsched
from streamsched._core import ffi, lib
from streamsched.base.errors import StreamschedError
from streamsched.calibrate.device import DeviceInfo
from streamsched.calibrate.found import SECTOR_BYTES, Flat, Geometry, Mechanics, WriteOut
from streamsched.sim.diskfile import MAX_DEPTH

MEASURED = "[meas]"
MOST_SHARE = 90  # of write-out, in percent: as the model has it
MODEL_CHANNELS = 32  # at most: HDD_MAX_CHANNELS


def curve_line(points: Sequence[tuple[int, int]]) -> str:
    """The service-time curve as stream's file service_curve takes it."""
    return " ".join(f"{distance}:{time_ns}" for distance, time_ns in points)


def flat_curve(flat: Flat) -> tuple[tuple[int, int], ...]:
    """Going anywhere costs the same."""
    return ((0, round(flat.read_ns)),)


def _round(value: float, digits: int) -> str:
    """Without an exponent, and without zeroes that say nothing."""
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _head(info: DeviceInfo, name: str, kind: str, description: str, today: datetime.date) -> str:
    capacity = f"{info.capacity_sectors * SECTOR_BYTES:,} bytes"
    return f"""\
# SPDX-License-Identifier: GPL-2.0-only
#
# Sources:
#   {MEASURED}  measured by streamsched calibrate {streamsched.__version__} on {today.isoformat()}
#           device model: {info.model}
#           serial from sysfs: {info.serial}
#   [sys]   what the kernel says of the device, in sysfs
# "estimated": is not measured, or did not show; the comment says which.

name = {json.dumps(name)}
model = {json.dumps(info.model)}
description = {json.dumps(description)}
kind = "{kind}"
capacity_sectors = {info.capacity_sectors} # [sys] {capacity}
"""


def _depth(depth: int | None) -> str:
    if depth is None:
        return "1 # estimated: the kernel names no depth"
    if depth > MAX_DEPTH:
        return f"{MAX_DEPTH} # [sys] {depth}; a description takes {MAX_DEPTH} at most"
    return f"{max(depth, 1)} # [sys]"


def describe_flat(
    flat: Flat, info: DeviceInfo, name: str, depth: int | None, today: datetime.date
) -> str:
    """The description of a disk without a head."""
    gb = info.capacity_sectors * SECTOR_BYTES / 1e9
    rate = _round(flat.bytes_per_s / 1e6, 1)
    read_us = _round(flat.read_ns / 1000, 1)
    head = _head(info, name, "flat", f"{gb:,.0f} GB, flash: the flat curve", today)
    channels = min(max(depth or 1, 1), MODEL_CHANNELS)
    return (
        head
        + f"""
[interface]
rate_mb_s = {rate} # estimated: as the medium, which is read no faster
command_overhead_us = 0 # in read_us
queue_depth = {_depth(depth)}

[flat]
channels = {channels} # estimated: one for each command in the queue
read_us = {read_us} # {MEASURED} with the command's overhead
write_us = {read_us} # estimated: as read_us; nothing was written
read_mb_s = {rate} # {MEASURED} from reads of different lengths, one at a time
write_mb_s = {rate} # estimated: as read_mb_s
flush_ms = 1 # estimated: nothing was written
"""
    )


def zone_rows(geometry: Geometry) -> list[tuple[int, int]]:
    """Cylinders and sectors per track of each zone, whole cylinders that hold the capacity."""
    surfaces, capacity = geometry.pattern.surfaces, geometry.capacity_sectors
    ends = [*geometry.first_sectors[1:], capacity]
    rows: list[tuple[int, int]] = []
    at = 0
    for zone, end in zip(geometry.zones, ends, strict=True):
        per_cylinder = zone.sectors_per_track * surfaces
        last = end == capacity
        cylinders = (math.ceil if last else round)((end - at) / per_cylinder)
        if cylinders < 1 or at >= capacity:
            continue
        rows.append((cylinders, zone.sectors_per_track))
        at += cylinders * per_cylinder
    if at < capacity:
        cylinders, sectors = rows[-1]
        rows[-1] = (cylinders + math.ceil((capacity - at) / (sectors * surfaces)), sectors)
    return rows


def seek_rows(mechanics: Mechanics, stroke: int, first_at_most_ns: float) -> list[tuple[int, str]]:
    """Cylinders and ms, up to the full stroke."""
    rows: list[tuple[int, str]] = []
    for cylinders, time_ns in mechanics.seeks:
        if cylinders == 1:
            # Reading on gets to the next cylinder within its skew: it is no longer than that.
            time_ns = min(time_ns, first_at_most_ns)
        rows.append((cylinders, _round(time_ns / 1e6, 3)))
    rows = [row for row in rows if row[0] < stroke]
    return [*rows, (max(stroke, 1 + len(rows)), _round(mechanics.seeks[-1][1] / 1e6, 3))]


def _pairs(rows: Iterable[tuple[object, object]], in_line: int = 1) -> str:
    texts = [f"[{first}, {second}]," for first, second in rows]
    lines = [texts[at : at + in_line] for at in range(0, len(texts), in_line)]
    return "".join("    " + " ".join(line) + "\n" for line in lines)


def _geometry(mechanics: Mechanics, rows: Sequence[tuple[int, int]]) -> str:
    geometry = mechanics.geometry
    pattern = geometry.pattern
    rpm = round(60e9 / geometry.rotation_ns)
    error_rpm = mechanics.rotation_error_ns / geometry.rotation_ns * rpm
    surfaces = MEASURED if pattern.surfaces_known else "estimated: one for each TB; did not show"
    if pattern.surfaces_known:
        skews = MEASURED
    elif pattern.skews_known:
        skews = f"{MEASURED} with no difference between tracks and cylinders"
    else:
        skews = "estimated: what reading on takes longer than the sectors take to pass"
    return f"""
[geometry]
rotation_rpm = {rpm} # {MEASURED} to {error_rpm:.1g} rpm
surfaces = {pattern.surfaces} # {surfaces}
# Pairs of cylinders and sectors per track. {MEASURED} by reading in sequence; that
# sectors are numbered along a track, over the surfaces, then inwards, is estimated.
zones = [
{_pairs(rows, 4)}]
track_skew_us = {_skew_us(pattern.track_skew_ns)} # {skews}
cylinder_skew_us = {_skew_us(pattern.cylinder_skew_ns)} # {skews}
"""


def _skew_us(skew_ns: float) -> int:
    return math.ceil(skew_ns / 1000)


def _share(write_out: WriteOut | None, info: DeviceInfo) -> str:
    """What holds when the key is left out, unless it was measured."""
    if not info.write_back:
        return "0 # [sys] no write cache"
    if write_out is None:
        return "0 # estimated: nothing was written"
    if write_out.share is None:
        return f"0 # estimated: {write_out.why}"
    return f"{min(round(100 * write_out.share), MOST_SHARE)} # {MEASURED} by writing beside reads"


def _cache(mechanics: Mechanics, info: DeviceInfo) -> str:
    cache = mechanics.cache
    ahead_kib = math.ceil((cache.readahead_sectors or 0) / 2)
    ahead = MEASURED
    if cache.readahead_sectors is None:
        ahead = f"{MEASURED} none showed" if mechanics.bus.known else "estimated: did not show"
    segments, kept = cache.segments or 1, MEASURED
    if cache.segments is None:
        kept = "estimated: did not show"
    elif cache.segments_at_least:
        kept = f"{MEASURED} at least; a description takes 64 at most"
    if info.write_back:
        write = "4096 # estimated: there is a write cache [sys], its size cannot be read"
    else:
        write = "0 # [sys] no write cache"
    return f"""
[cache]
segments = {segments} # {kept}
segment_kib = {max(ahead_kib, 64)} # estimated: what is read ahead fits
readahead_kib = {ahead_kib} # {ahead}
write_kib = {write}
write_extents = 128 # estimated
write_share_percent = {_share(mechanics.write_out, info)}
write_idle_ms = 20 # estimated
flush_ms = 5 # estimated
"""


def describe(
    mechanics: Mechanics, info: DeviceInfo, name: str, depth: int | None, today: datetime.date
) -> str:
    """The description of a rotating disk."""
    geometry, bus = mechanics.geometry, mechanics.bus
    pattern = geometry.pattern
    rows = zone_rows(geometry)
    stroke = sum(cylinders for cylinders, _ in rows) - 1
    gb = info.capacity_sectors * SECTOR_BYTES / 1e9
    rpm = round(60e9 / geometry.rotation_ns)
    if bus.known:
        rate = f"{_round(SECTOR_BYTES * 1000 / bus.sector_ns, 1)} # {MEASURED}"
        overhead = f"{_round(bus.overhead_ns / 1000, 1)} # {MEASURED} with the host's"
    else:
        rate = "300 # estimated: the drive's cache did not answer repeated reads"
        overhead = "0 # in the seek times; it did not show by itself"
    seeks = seek_rows(mechanics, stroke, _skew_us(pattern.cylinder_skew_ns) * 1000)
    switch = "the skew leaves time for it"
    return (
        _head(info, name, "mechanical", f"{gb:,.0f} GB, {rpm} rpm, as measured", today)
        + f"""
[interface]
rate_mb_s = {rate}
command_overhead_us = {overhead}
queue_depth = {_depth(depth)}
queue_order = "sptf" # estimated: firmware does not say
queue_age_permille = 50 # estimated
queue_age_limit_ms = 2000 # estimated
"""
        + _geometry(mechanics, rows)
        + f"""
[seek]
# Cylinders and ms. {MEASURED}: positioning takes the seek and up to one revolution.
curve = [
{_pairs(seeks, 4)}]
head_switch_us = {_skew_us(pattern.track_skew_ns)} # estimated: {switch}
write_settle_us = 1000 # estimated: sheets give writes 1 ms more
"""
        + _cache(mechanics, info)
    )


def check_curve(points: Sequence[tuple[int, int]]) -> None:
    """Refuse what stream would: a disk that takes a second for a request is not measured so."""
    why = ffi.new("char[160]")
    if lib.ss_curve_check(list(points), len(points), why, 160):
        raise StreamschedError(f"what was measured is no curve: {ffi.string(why).decode()}")
