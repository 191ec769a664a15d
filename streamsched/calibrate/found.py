# SPDX-License-Identifier: GPL-2.0-only
"""What a measurement finds of a disk: geometry, curve, seeks, caches.

The service-time curve means what the scheduler's does (core/curve.h) and what the
model's own measurement does (disk/hdd_measure.c): the mean time to get to a request
that begins so many sectors behind the end of the one before, without the command's
overhead and without the transfer. Its distances are the same, too.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field

from streamsched.calibrate.numeric import never_fall

SECTOR_BYTES = 512
MS = 1_000_000


@dataclass(frozen=True)
class Bus:
    """What a command costs that the drive's cache answers, per command and per sector."""

    overhead_ns: float
    sector_ns: float
    known: bool


@dataclass(frozen=True)
class Pattern:
    """How one track follows the other."""

    surfaces: int
    surfaces_known: bool
    skews_known: bool
    """Else they are what remains of sequential reading."""
    track_skew_ns: float
    cylinder_skew_ns: float

    def mean_skew_ns(self) -> float:
        long, short = self.cylinder_skew_ns, self.track_skew_ns
        return (short * (self.surfaces - 1) + long) / self.surfaces


@dataclass(frozen=True)
class Zone:
    first_sector: int
    sectors_per_track: int


@dataclass(frozen=True)
class Geometry:
    """From sectors to tracks, as far as it shows from outside."""

    capacity_sectors: int
    rotation_ns: float
    zones: tuple[Zone, ...]
    pattern: Pattern
    first_sectors: tuple[int, ...] = field(init=False)
    cylinders: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        firsts = [zone.first_sector for zone in self.zones]
        ends = [*firsts[1:], self.capacity_sectors]
        cylinders = [
            (end - zone.first_sector) / (zone.sectors_per_track * self.pattern.surfaces)
            for zone, end in zip(self.zones, ends, strict=True)
        ]
        object.__setattr__(self, "first_sectors", tuple(firsts))
        object.__setattr__(self, "cylinders", tuple(cylinders))

    def zone_at(self, sector: int) -> int:
        return bisect.bisect_right(self.first_sectors, sector) - 1

    def sector_ns(self, sector: int) -> float:
        """How long a sector takes to pass the head."""
        return self.rotation_ns / self.zones[self.zone_at(sector)].sectors_per_track

    def reading_on_ns(self, sector: int) -> float:
        """The same with the changes of track shared out: what a sector costs in sequence."""
        track_ns = self.rotation_ns + self.pattern.mean_skew_ns()
        return track_ns / self.zones[self.zone_at(sector)].sectors_per_track

    def mean_reading_on_ns(self) -> float:
        """The mean over all sectors."""
        ends = [*self.first_sectors[1:], self.capacity_sectors]
        return (
            sum(
                (end - first) * self.reading_on_ns(first)
                for first, end in zip(self.first_sectors, ends, strict=True)
            )
            / self.capacity_sectors
        )

    def bytes_per_s(self, sector: int) -> float:
        return SECTOR_BYTES * 1e9 / self.reading_on_ns(sector)

    def cylinder(self, sector: int) -> float:
        """Which cylinder, counted from the outer edge."""
        at = self.zone_at(sector)
        zone = self.zones[at]
        within = (sector - zone.first_sector) / (zone.sectors_per_track * self.pattern.surfaces)
        return sum(self.cylinders[:at]) + within

    def stroke(self) -> int:
        """The longest seek."""
        return max(1, math.ceil(sum(self.cylinders)) - 1)


@dataclass(frozen=True)
class CurvePoint:
    distance_sectors: int
    time_ns: float
    """As measured; the curve itself never falls."""
    error_ns: float
    """Standard error of it."""
    pairs: int


@dataclass(frozen=True)
class Cache:
    """The read cache; None where it did not show."""

    readahead_sectors: int | None
    segments: int | None
    segments_at_least: bool


@dataclass(frozen=True)
class WriteOut:
    """Writing the write cache out beside reads."""

    share: float | None
    """Of the drive's time; None where it did not show."""
    why: str = ""
    """Why it did not."""


@dataclass(frozen=True)
class Mechanics:
    """All that was measured on a disk with a head."""

    bus: Bus
    geometry: Geometry
    curve: tuple[CurvePoint, ...]
    seeks: tuple[tuple[int, float], ...]
    """Cylinders and ns."""
    cache: Cache
    random_read_ns: float
    rotation_error_ns: float
    dropped: int
    """Samples that cannot have been positioning alone."""
    samples: int
    write_out: WriteOut | None = None
    """None: was not asked for, so nothing was written."""

    def service_curve(self) -> tuple[tuple[int, int], ...]:
        """The points for the scheduler: distances ascending, times never falling."""
        times = never_fall([point.time_ns for point in self.curve])
        return tuple(
            (point.distance_sectors, round(time))
            for point, time in zip(self.curve, times, strict=True)
        )


@dataclass(frozen=True)
class Flat:
    """All that was measured on a disk without a head."""

    read_ns: float
    bytes_per_s: float
