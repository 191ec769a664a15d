# SPDX-License-Identifier: GPL-2.0-only
"""Timed commands to a disk: single reads at new places, the bus, and a disk without a head.

All time is taken from the device's read(), so a model in virtual time can stand in.
"""

from __future__ import annotations

import random
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamsched.base.errors import StreamschedError
from streamsched.calibrate.found import SECTOR_BYTES, Bus, Flat, Geometry
from streamsched.calibrate.numeric import line_through

# The request of a pair, as in hdd_measure.c: 4 KiB.
PROBE = 8
# 4 GiB: on less there are not enough places that the drive's cache does not know.
LEAST_SECTORS = 1 << 23
# A curve that rises by less has no head to move: FLAT_BELOW_NS of core/curve.c.
FLAT_BELOW_NS = 500_000
# A drive that answers a repeated read later than this does not keep what it read.
CACHED_BELOW_NS = 2_000_000
# Reading ahead is not expected to come farther than this behind a read, nor the
# drive to remember more reads.
AHEAD_SECTORS = 1 << 14
REMEMBERED = 256
UNIT_SECTORS = 128


class Device(Protocol):
    """A disk whose commands are timed."""

    capacity_sectors: int
    align_sectors: int
    """Positions and lengths are multiples of this."""

    def read(self, sector: int, nr_sectors: int) -> tuple[int, int]:
        """Read past every cache of the host; when it was sent and done, in ns."""

    def write(self, sector: int, nr_sectors: int) -> tuple[int, int]:
        """Overwrite; when it was sent and done, in ns."""

    def read_together(self, sectors: Sequence[int], nr_sectors: int, depth: int) -> list[int]:
        """Read at each of @sectors, @depth at once; when each was done, ascending, in ns."""

    def idle(self, ns: int) -> None:
        """Leave the disk alone for so long."""


@dataclass(frozen=True)
class Effort:
    """How thoroughly to measure."""

    relative_error: float
    """Wanted of each point of the curve, as a standard error."""
    least_pairs: int
    most_pairs: int
    zone_places: int
    find_zone_ends: bool
    place_tracks: int
    pattern_tracks: int
    seeks: int
    cache_repeats: int
    write_out_rounds: int
    seconds: dict[str, float]
    """About how long each step takes, for the progress bar."""
    write_out_s: float
    """The same of write-out, which is no step unless it is asked for."""


FULL = Effort(
    relative_error=0.0125,
    least_pairs=96,
    most_pairs=1024,
    zone_places=64,
    find_zone_ends=True,
    place_tracks=12,
    pattern_tracks=140,
    seeks=1000,
    cache_repeats=3,
    write_out_rounds=180,
    seconds={"zones": 16, "curve": 240, "seeks": 20, "cache": 14},
    write_out_s=70,
)
FAST = Effort(
    relative_error=0.04,
    least_pairs=24,
    most_pairs=80,
    zone_places=32,
    find_zone_ends=False,
    place_tracks=3,
    pattern_tracks=40,
    seeks=200,
    cache_repeats=1,
    write_out_rounds=60,
    seconds={"zones": 3, "curve": 26, "seeks": 4, "cache": 4},
    write_out_s=25,
)


Progress = Callable[[str, float], None]


class Places:
    """Chooses places that were not read before, nor read ahead into of late."""

    def __init__(self, device: Device, rnd: random.Random) -> None:
        self.device = device
        self.random = rnd
        self.units: set[int] = set()
        self.recent: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)

    def note(self, sector: int, nr_sectors: int) -> None:
        """It is about to be read."""
        end = sector + nr_sectors
        self.units.update(range(sector // UNIT_SECTORS, (end - 1) // UNIT_SECTORS + 1))
        self.recent.append((sector, end + AHEAD_SECTORS))

    def is_new(self, sector: int, nr_sectors: int) -> bool:
        end = sector + nr_sectors
        first, last = sector // UNIT_SECTORS, (end - 1) // UNIT_SECTORS
        if any(unit in self.units for unit in range(first, last + 1)):
            return False
        return all(end <= low or sector >= high for low, high in self.recent)

    def choose(self, draw: Callable[[], int], *parts: tuple[int, int]) -> int:
        """A sector that draw() gives, for which all @parts (offset, sectors) are new."""
        align = self.device.align_sectors
        capacity = self.device.capacity_sectors
        for _ in range(4000):
            sector = draw() // align * align
            if sector < 0 or any(sector + at + nr > capacity for at, nr in parts):
                continue
            if all(self.is_new(sector + at, nr) for at, nr in parts):
                return sector
        raise StreamschedError(
            "no place is left on the disk that has not been read in this run; "
            "a disk this small cannot be measured so thoroughly, try --fast"
        )


class Commands:
    """Sends commands to one disk, and remembers where the head and what was read are."""

    def __init__(
        self,
        device: Device,
        effort: Effort,
        progress: Progress = lambda step, part: None,
        seed: int = 1,
    ) -> None:
        self.device = device
        self.effort = effort
        self.progress = progress
        self.random = random.Random(seed)
        self.places = Places(device, self.random)
        self.end_sector = 0
        self.dropped = 0
        self.samples = 0
        # Found one after the other, by the steps of the measurement.
        self.bus: Bus
        self.random_ns: float
        self.rotation_ns: float
        self.geometry: Geometry

    def read(self, sector: int, nr_sectors: int) -> tuple[int, int]:
        self.places.note(sector, nr_sectors)
        times = self.device.read(sector, nr_sectors)
        self.end_sector = sector + nr_sectors
        return times

    def read_ns(self, sector: int, nr_sectors: int) -> int:
        start, end = self.read(sector, nr_sectors)
        return end - start

    def anywhere(self, nr_sectors: int) -> int:
        """A new place of so many sectors."""
        span = self.device.capacity_sectors - nr_sectors
        return self.places.choose(lambda: self.random.randrange(span + 1), (0, nr_sectors))

    def measure_bus(self) -> Bus:
        """What is left when the drive's cache has the data: the command and its transfer."""
        medians = []
        for nr in (8, 16, 32, 64, 128, 256):
            place = self.anywhere(256)
            self.read(place, 256)
            self.read(place, nr)
            medians.append(
                (float(nr), float(statistics.median(self.read_ns(place, nr) for _ in range(15))))
            )
        overhead_ns, sector_ns = line_through(medians)
        known = medians[0][1] < CACHED_BELOW_NS and overhead_ns > 0 and sector_ns > 0
        return Bus(overhead_ns, sector_ns, True) if known else Bus(0.0, 0.0, False)

    def is_flat(self, bus: Bus) -> bool:
        """Whether it costs as good as nothing to go anywhere."""
        self.random_ns = statistics.median(
            self.read_ns(self.anywhere(PROBE), PROBE) for _ in range(100)
        )
        return self.random_ns - bus.overhead_ns < FLAT_BELOW_NS

    def measure_flat(self) -> Flat:
        """A disk without a head: what a read takes, by its length."""
        times = []
        for nr in (8, 64, 256, 1024):
            found = [self.read_ns(self.anywhere(nr), nr) for _ in range(200)]
            times.append((float(nr), float(statistics.median(found))))
        read_ns, sector_ns = line_through(times)
        if read_ns <= 0 or sector_ns <= 0:
            raise StreamschedError(
                "longer reads took no longer than short ones, so that neither the latency nor "
                "the rate can be told; is something else using the disk?"
            )
        return Flat(read_ns, SECTOR_BYTES * 1e9 / sector_ns)
