# SPDX-License-Identifier: GPL-2.0-only
"""What `streamsched calibrate` measures on a disk (docs/CALIBRATE.md).

All of it by reading, but for the share of write-out, which is measured only if asked for.

The service-time curve means what the scheduler's does (core/curve.h) and what the
model's own measurement does (disk/hdd_measure.c): the mean time to get to a request
that begins so many sectors behind the end of the one before, without the command's
overhead and without the transfer. Its distances are the same, too.

All time is taken from the device's read(), so a model in virtual time can stand in.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streamsched.base.errors import StreamschedError

SECTOR_BYTES = 512
# The request of a pair, as in hdd_measure.c: 4 KiB.
PROBE = 8
CURVE_POINTS = 40
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
# Seeks looked at together: they tell the seek time to a hundredth of a revolution.
LEAST_FIT, MOST_FIT = 60, 240
# How many times its standard error a pattern must show; by chance some come to 4.
CLEAR = 5.5
# Sectors per track that differ by less are those of one zone.
SAME_ZONE = 0.006
# Write-out is measured with so many reads at once: with a read always waiting, the drive
# is never idle and has only its share for writing out.
WRITE_OUT_DEPTH = 4
# So many reads between two fillings of the write cache: less than half of a small one
# is written out meanwhile.
WRITE_OUT_READS = 20
# A cache that takes more 4 KiB writes than this (256 MiB) does not fill.
MOST_WRITES = 1 << 16
GOLDEN = (math.sqrt(5) - 1) / 2
MS = 1_000_000


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
class Run:
    """A sequence of requests, one after the other: from end to end of each."""

    place: int
    request: int
    times: Sequence[int]

    @property
    def usual_ns(self) -> float:
        """Of a request within a track."""
        return statistics.median(self.times)

    @property
    def mean_ns(self) -> float:
        return statistics.fmean(self.times)

    def jumps(self) -> list[tuple[int, float]]:
        """The requests that took much longer, and how much: there a track ended."""
        usual = self.usual_ns
        noise = 1.5 * statistics.median(abs(time - usual) for time in self.times)
        least = max(100_000.0, 6 * noise)
        return [(i, time - usual) for i, time in enumerate(self.times) if time - usual > least]

    def passing_ns(self, pattern: Pattern, rotation_ns: float) -> float:
        """How long a sector takes to pass the head."""
        sectors = self.request * len(self.times)
        if not pattern.skews_known:
            share = pattern.mean_skew_ns() / rotation_ns
            return self.mean_ns / self.request / (1 + share)
        # From the first end to the last, less the changes of track: what delayed one
        # request in between was made up for by the next.
        skews = (pattern.track_skew_ns, pattern.cylinder_skew_ns)
        changes = sum(
            min(skews, key=lambda skew: abs(jump_ns - skew)) for _, jump_ns in self.jumps()
        )
        return (sum(self.times) - changes) / sectors


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


Progress = Callable[[str, float], None]


# ---- numbers ----


def never_fall(values: Sequence[float]) -> list[float]:
    """The nearest sequence that never falls: where it would, neighbours become their mean."""
    groups: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while groups and total / count < groups[-1][0] / groups[-1][1]:
            before, members = groups.pop()
            total += before
            count += members
        groups.append((total, count))
    return [total / count for total, count in groups for _ in range(count)]


def distances(capacity_sectors: int, points: int = CURVE_POINTS, align: int = 1) -> list[int]:
    """Those of hdd_measure_curve(): 0, 8, then steps of equal ratio, nearly to the end."""

    def eighths(number: int) -> int:
        return (8 + number % 8) << (number // 8)

    longest = capacity_sectors - capacity_sectors // 64 - 2 * PROBE
    steps = 0
    while eighths(steps + 1) < longest:
        steps += 1
    found = [0]
    for i in range(1, points - 1):
        wanted = eighths((i - 1) * steps // (points - 2))
        found.append(min(max(wanted, found[-1] + PROBE), longest))
    found.append(longest)
    return sorted({distance // align * align for distance in found})


def standard_error(samples: Sequence[tuple[float, float]]) -> float:
    """Of the mean of the second values, where the first ones are spread evenly.

    Evenly spread samples err less than random ones: only what differs between
    neighbours is chance.
    """
    number = len(samples)
    if number < 2:
        return math.inf
    ordered = [value for _, value in sorted(samples)]
    squares = sum((b - a) ** 2 for a, b in itertools.pairwise(ordered))
    return math.sqrt(squares / (2 * number * (number - 1)))


def densest(values: Sequence[float], width: float) -> float:
    """Where an interval of this width begins that holds most of the values: its middle position."""
    ordered = sorted(values)
    best, spare, begin = 0, -1.0, ordered[0]
    last = 0
    for first, low in enumerate(ordered):
        last = max(last, first)
        while last + 1 < len(ordered) and ordered[last + 1] < low + width:
            last += 1
        held, room = last - first + 1, low - (ordered[last] - width)
        # Of two that hold as many: the one with more room to move.
        if held > best or (held == best and room > spare):
            best, spare, begin = held, room, low - room / 2
    return begin


def line_through(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope of the least squares."""
    mean_x = statistics.fmean(x for x, _ in points)
    mean_y = statistics.fmean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return mean_y - slope * mean_x, slope


def interpolate(points: Sequence[tuple[float, float]], x: float) -> float:
    """By straight lines; beyond the ends, the ends."""
    at = bisect.bisect_right([one for one, _ in points], x)
    if at == 0:
        return points[0][1]
    if at == len(points):
        return points[-1][1]
    (x0, y0), (x1, y1) = points[at - 1], points[at]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def fit_seeks(
    samples: Sequence[tuple[float, float]], rotation_ns: float, stroke: int, most: int = 22
) -> list[tuple[int, float]]:
    """Seek times by cylinders, from (cylinders, positioning time).

    To position is to seek and then to wait for up to one revolution: of seeks of
    about one length, all fall into an interval as long as a revolution that begins
    with the seek time. What falls outside of it was disturbed.
    """
    knots = sorted({round(stroke ** (i / (most - 1))) for i in range(most)})
    logs = sorted((math.log(max(cylinders, 1)), time) for cylinders, time in samples)
    keys = [key for key, _ in logs]
    together = min(len(logs), max(LEAST_FIT, min(MOST_FIT, len(logs) // 40)))

    def around(knot: int) -> list[tuple[float, float]]:
        """The samples nearest to that length."""
        middle = math.log(knot)
        low = high = bisect.bisect_left(keys, middle)
        while high - low < together:
            if high == len(logs) or (low > 0 and middle - keys[low - 1] < keys[high] - middle):
                low -= 1
            else:
                high += 1
        return logs[low:high]

    def straight(times: Sequence[float]) -> list[tuple[float, float]]:
        rising = never_fall([max(0.0, time) for time in times])
        return [(math.log(knot), time) for knot, time in zip(knots, rising, strict=True)]

    fitted = [(0.0, 0.0)]
    # The second time the seeks of a group are no longer taken to be equally long.
    for _ in range(2):
        fitted = straight(
            [
                interpolate(fitted, math.log(knot))
                + densest([t - interpolate(fitted, key) for key, t in around(knot)], rotation_ns)
                for knot in knots
            ]
        )
    return [(knot, time) for knot, (_, time) in zip(knots, fitted, strict=True)]


def find_surfaces(jumps: Sequence[tuple[int, float]]) -> tuple[int, float, float] | None:
    """Every how many tracks a change takes longer; what it takes else, and then.

    @jumps are (number of the track, what changing to it took). None when there is
    no such pattern.
    """
    middle = statistics.median(time for _, time in jumps)
    # What was disturbed does not count for more than a cylinder's end might.
    cut = [(track, min(time - middle, 2.0 * MS)) for track, time in jumps]
    best: tuple[float, int, float, float] | None = None
    for period in range(2, 65):
        classes: dict[int, list[float]] = {}
        for track, time in cut:
            classes.setdefault(track % period, []).append(time)
        # The longest class; its median, for one disturbed change makes no class.
        _, phase = max((statistics.median(times), phase) for phase, times in classes.items())
        long = classes.pop(phase)
        short = [time for times in classes.values() for time in times]
        if len(long) < 3 or len(short) < 3:
            continue
        usual, longer = statistics.median(short), statistics.median(long)
        squares = sum((time - longer) ** 2 for time in long)
        squares += sum((time - usual) ** 2 for time in short)
        noise = max(1000.0, math.sqrt(squares / len(cut)))
        clear = (longer - usual) / (noise * math.sqrt(1 / len(long) + 1 / len(short)))
        if best is None or clear > best[0]:
            best = (clear, period, middle + usual, middle + longer)
    return best[1:] if best and best[0] > CLEAR else None


# ---- places ----


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


class Even:
    """Numbers below 1 that are spread evenly however many are taken."""

    def __init__(self, rnd: random.Random) -> None:
        self.value = rnd.random()

    def next(self) -> float:
        self.value = (self.value + GOLDEN) % 1
        return self.value


# ---- measuring ----


class Meter:
    """Measures one disk."""

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
        self.passing_back: list[tuple[int, float]] = []
        self.dropped = 0
        self.samples = 0

    # -- one command --

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

    # -- the command and the bus --

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

    # -- rotation --

    def _backwards(self, steps: Sequence[int]) -> list[int]:
        """From the end of a read to the end of the one so many sectors before it, for each step.

        The drive has not read what is before; it comes round after a revolution less
        the step.
        """
        length = sum(steps)
        span = self.device.capacity_sectors - length - PROBE
        place = self.places.choose(lambda: self.random.randrange(span + 1), (0, length + PROBE))
        place += length
        ends = [self.read(place, PROBE)[1]]
        for step in steps:
            place -= step
            ends.append(self.read(place, PROBE)[1])
        return [b - a for a, b in itertools.pairwise(ends)]

    def measure_rotation(self) -> tuple[float, float]:
        """One revolution and about how wrong it may be."""
        near, far, nears, fars = 2 * PROBE, 18 * PROBE, 16, 7
        spots = []
        for _ in range(15):
            times = self._backwards([near] * nears + [far] * fars)
            near_ns = statistics.median(times[:nears])
            if near_ns < CACHED_BELOW_NS:
                raise StreamschedError(
                    "the drive answers reads of what lies before the last one from its cache, "
                    "so the speed of rotation cannot be measured by reading"
                )
            sector_ns = (near_ns - statistics.median(times[nears:])) / (far - near)
            # A track's end shows as a step.
            even = [time for time in times[:nears] if abs(time - near_ns) < 250_000]
            spots.append(statistics.fmean(even) + near * sector_ns)
            self.passing_back.append((self.end_sector, sector_ns))
        middle = statistics.median(spots)
        spread = statistics.median(abs(spot - middle) for spot in spots)
        return middle, 1.9 * spread / math.sqrt(len(spots))

    # -- tracks and zones --

    def _sequence(self, place: int, requests: int, nr_sectors: int) -> list[int]:
        """From end to end of requests one after the other, the head being there."""
        ends = [self.read(place + i * nr_sectors, nr_sectors)[1] for i in range(requests + 3)]
        return [b - a for a, b in itertools.pairwise(ends[2:])]

    def _place_in(self, low: int, high: int, length: int) -> int:
        """A new place within [low, high), or as near as there is one."""
        width = max(high - low - length, self.device.align_sectors)
        tries = 0

        def draw() -> int:
            nonlocal tries
            tries += 1
            wider = (tries // 40) * length
            place = low - wider + self.random.randrange(width + 2 * wider)
            return min(max(place, 0), self.device.capacity_sectors - length)

        return self.places.choose(draw, (0, length))

    def _run(self, low: int, high: int, request: int, requests: int) -> Run:
        """Read in sequence from a place in [low, high), until nothing disturbs it."""
        for _ in range(4):
            place = self._place_in(low, high, request * (requests + 3))
            run = Run(place, request, self._sequence(place, requests, request))
            # No change of track takes so long. What comes after it comes from the cache.
            late = sum(time > run.usual_ns + 0.75 * self.rotation_ns for time in run.times)
            self.samples += len(run.times)
            if not late:
                break
            self.dropped += late
        return run

    def _request(self, bus: Bus) -> int:
        """A length of request that the drive can keep up with, many to a track."""
        capacity = self.device.capacity_sectors
        for nr in (64, 128, 256):
            run = self._run(0, capacity // 64, nr, 24)
            if run.usual_ns > 1.5 * (bus.overhead_ns + nr * bus.sector_ns):
                return nr
        return 256

    def measure_zones(self, bus: Bus) -> Geometry:
        """Sectors per track all over the disk, and how tracks follow each other."""
        effort, capacity = self.effort, self.device.capacity_sectors
        places = effort.zone_places
        request = self._request(bus)
        runs: list[Run] = []
        sector_ns = 5000.0
        for i in range(places):
            low, high = capacity * i // places, capacity * (i + 1) // places
            track = self.rotation_ns / sector_ns
            requests = max(16, math.ceil(effort.place_tracks * track / request))
            runs.append(self._run(low, high, request, requests))
            sector_ns = runs[-1].usual_ns / request
            self.progress("zones", 0.4 * (i + 1) / places)
        pattern = self._pattern(runs)
        zones = self._zones(runs, pattern)
        return Geometry(capacity, self.rotation_ns, zones, pattern)

    def _zones(self, runs: Sequence[Run], pattern: Pattern) -> tuple[Zone, ...]:
        """Places of about the same sectors per track are one zone."""
        passing = [run.passing_ns(pattern, self.rotation_ns) for run in runs]
        groups: list[list[int]] = []
        for i in range(len(runs)):
            if groups:
                usual = statistics.median(passing[k] for k in groups[-1])
                if abs(passing[i] / usual - 1) < SAME_ZONE:
                    groups[-1].append(i)
                    continue
            groups.append([i])
        zones: list[Zone] = []
        for number, group in enumerate(groups):
            usual = statistics.median(passing[k] for k in group)
            first = 0
            if zones:
                before = self.rotation_ns / zones[-1].sectors_per_track
                low, high = runs[group[0] - 1].place, runs[group[0]].place
                first = self._zone_end(low, high, (before, usual), runs[0].request, pattern)
                self.progress("zones", 0.6 + 0.4 * number / len(groups))
            zones.append(Zone(first, max(8, round(self.rotation_ns / usual))))
        return tuple(zones)

    def _zone_end(
        self, low: int, high: int, passing: tuple[float, float], request: int, pattern: Pattern
    ) -> int:
        """Between two places: where the one's time for a sector becomes the other's."""
        if self.effort.find_zone_ends:
            requests = max(20, math.ceil(2 * self.rotation_ns / (request * min(passing))))
            least = max(self.device.capacity_sectors // 8192, 4 * request * requests)
            while high - low > least:
                middle = (low + high) // 2
                run = self._run(middle, middle + least // 4, request, requests)
                sector_ns = run.passing_ns(pattern, self.rotation_ns)
                if abs(sector_ns - passing[0]) < abs(sector_ns - passing[1]):
                    low = middle
                else:
                    high = middle
        return (low + high) // 2

    def _jumps(self, run: Run) -> list[tuple[int, float]] | None:
        """(number of the track, what changing to it took); None when they do not show."""
        per_track = self.rotation_ns / run.usual_ns  # in requests
        found = run.jumps()
        if not found or not 0.9 < len(found) / (len(run.times) / per_track) < 1.1:
            return None
        numbered, track = [], 0
        for before, (at, jump_ns) in zip([found[0], *found], found, strict=False):
            track += round((at - before[0]) / per_track)
            numbered.append((track, jump_ns))
        return numbered

    def _pattern(self, runs: Sequence[Run]) -> Pattern:
        capacity, effort, request = self.device.capacity_sectors, self.effort, runs[0].request
        seen: list[tuple[int, float, float]] = []
        jumps: list[float] = []
        for i, part in enumerate((0.02, 0.5, 0.9)):
            near = int(capacity * part)
            per_track = self.rotation_ns / runs[int(len(runs) * part)].usual_ns
            requests = math.ceil(effort.pattern_tracks * per_track)
            requests = min(requests, capacity // 32 // request)
            numbered = self._jumps(self._run(near, near + capacity // 16, request, requests))
            self.progress("zones", 0.4 + 0.2 * (i + 1) / 3)
            if not numbered:
                continue
            jumps += [time for _, time in numbered]
            found = find_surfaces(numbered)
            if found:
                seen.append(found)
        if seen:
            # Most of the places, if they do not agree.
            surfaces = statistics.mode(period for period, _, _ in seen)
            short = statistics.median(a for period, a, _ in seen if period == surfaces)
            long = statistics.median(b for period, _, b in seen if period == surfaces)
            return Pattern(surfaces, True, True, short, long)
        # The surfaces do not show: one for each TB, as disks of the last years have.
        surfaces = max(1, round(capacity * SECTOR_BYTES / 1e12))
        if jumps:
            skew_ns = statistics.median(jumps)
            return Pattern(surfaces, False, True, skew_ns, skew_ns)
        # No change of track shows by itself. What reading on takes longer than the
        # sectors take to pass the head is their share.
        places = [run.place for run in runs]
        shares = []
        for place, sector_ns in self.passing_back:
            run = runs[min(max(bisect.bisect(places, place) - 1, 0), len(runs) - 1)]
            shares.append(run.mean_ns / request / sector_ns - 1)
        skew_ns = min(max(statistics.median(shares), 0.0), 0.5) * self.rotation_ns
        return Pattern(surfaces, False, False, skew_ns, skew_ns)

    # -- the curve --

    def _positioning(self, total_ns: int, from_sector: int, to_sector: int) -> tuple[float, bool]:
        """Of a read of PROBE sectors sent at the end of another: its way there.

        Also whether the arm went there; else the gap passed under the head, and the
        command's overhead was over before it had passed.
        """
        geometry, bus = self.geometry, self.bus
        way = total_ns - PROBE * (geometry.sector_ns(to_sector) + bus.sector_ns)
        gap = to_sector - from_sector
        passing_ns = gap * geometry.reading_on_ns(from_sector)
        if gap >= 0 and total_ns > passing_ns - self.rotation_ns / 2:
            return max(way, 0.0), False
        return max(way - bus.overhead_ns, 0.0), True

    def _go(self, sector: int) -> float:
        """Read PROBE sectors there; the way there counts as a seek if the arm went."""
        begin = self.end_sector
        total_ns = self.read_ns(sector, PROBE)
        way, moved = self._positioning(total_ns, begin, sector)
        cylinders = abs(self.geometry.cylinder(sector) - self.geometry.cylinder(begin))
        if moved and cylinders >= 1:
            self.seen_seeks.append((cylinders, way))
        return way

    def measure_curve(self) -> tuple[CurvePoint, ...]:
        """Pairs at each distance, until their means are known well enough."""
        device = self.device
        points = distances(device.capacity_sectors, align=device.align_sectors)[1:]
        even = {distance: Even(self.random) for distance in points}
        samples: dict[int, list[tuple[float, float]]] = {distance: [] for distance in points}
        unfinished = list(points)
        rounds = 0
        while unfinished:
            # In turn, so that a disturbance does not meet one distance alone.
            self.random.shuffle(unfinished)
            for distance in unfinished:
                samples[distance].append(self._pair(distance, even[distance]))
            rounds += 1
            if rounds % 8 == 0:
                unfinished = [one for one in unfinished if not self._enough(one, samples[one])]
                done = statistics.fmean(
                    1.0 if one not in unfinished else self._part(one, samples[one])
                    for one in points
                )
                self.progress("curve", done)
        measured = [CurvePoint(0, 0.0, 0.0, 0)]
        return tuple(measured + [self._point(one, samples[one]) for one in points])

    def _pair(self, distance: int, even: Even) -> tuple[float, float]:
        """Where the pair began, as a part of all such places, and the second one's way."""
        gap = PROBE + distance
        span = self.device.capacity_sectors - gap - PROBE
        place = self.places.choose(lambda: int(even.next() * (span + 1)), (0, PROBE), (gap, PROBE))
        self._go(place)
        return place / span, self._go(place + gap)

    def _usual(self, samples: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        """Without those that no positioning can take: a retry, or somebody else's command."""
        most = statistics.median(way for _, way in samples) + 2 * self.rotation_ns
        return [sample for sample in samples if sample[1] < most]

    def _part(self, distance: int, samples: Sequence[tuple[float, float]]) -> float:
        usual = self._usual(samples)
        if self._passed_by(distance) and self._as_reading_on(distance, usual):
            return min(1.0, len(samples) / self.effort.least_pairs)
        wanted_ns = self.effort.relative_error * statistics.fmean(way for _, way in usual)
        needed = (standard_error(usual) / max(wanted_ns, 1.0)) ** 2 * len(usual)
        needed = min(max(needed, self.effort.least_pairs), self.effort.most_pairs)
        return min(1.0, len(samples) / needed)

    def _enough(self, distance: int, samples: Sequence[tuple[float, float]]) -> bool:
        return self._part(distance, samples) >= 1.0

    def _passed_by(self, distance: int) -> bool:
        """Whether the gap is so short that it passes under the head in half a revolution."""
        slowest = max(self.geometry.reading_on_ns(first) for first in self.geometry.first_sectors)
        return distance * slowest < self.rotation_ns / 2

    def _as_reading_on(self, distance: int, samples: Sequence[tuple[float, float]]) -> bool:
        """Whether such gaps cost what reading them would: the tracks' sectors, or a skew more.

        What passes while the drive still works on the command is not seen.
        """
        geometry, bus = self.geometry, self.bus
        pattern = geometry.pattern
        skew_ns = max(pattern.track_skew_ns, pattern.cylinder_skew_ns)
        span = geometry.capacity_sectors - distance - 2 * PROBE
        good = 0
        for part, way in samples:
            passing_ns = distance * geometry.sector_ns(int(part * span)) - PROBE * bus.sector_ns
            # The host's lateness, twice; any move of the arm costs more.
            spare_ns = 0.05 * passing_ns + 100_000
            least, most = passing_ns - spare_ns, passing_ns + spare_ns
            good += least <= way <= most + bus.overhead_ns or (
                abs(way - passing_ns - skew_ns) < spare_ns + 0.3 * skew_ns + bus.overhead_ns
            )
        return good >= 0.9 * len(samples)

    def _point(self, distance: int, samples: Sequence[tuple[float, float]]) -> CurvePoint:
        usual = self._usual(samples)
        self.dropped += len(samples) - len(usual)
        self.samples += len(samples)
        mean = statistics.fmean(way for _, way in usual)
        error = standard_error(usual)
        if self._passed_by(distance) and self._as_reading_on(distance, usual):
            # A mean of pairs would be worse: few of them meet the end of a track, and
            # how often that happens is known. The head has gone on while the last
            # sectors were on their way to the host.
            reading = distance * self.geometry.mean_reading_on_ns() - PROBE * self.bus.sector_ns
            return CurvePoint(distance, max(reading, 0.0), 0.01 * reading, len(samples))
        return CurvePoint(distance, mean, error, len(samples))

    # -- seeks --

    def measure_seeks(self) -> tuple[tuple[int, float], ...]:
        """Seek times, from pairs at all numbers of cylinders and from every other way taken."""
        geometry, capacity = self.geometry, self.device.capacity_sectors
        stroke = geometry.stroke()
        even, where = Even(self.random), Even(self.random)
        for i in range(self.effort.seeks):
            # Every third one short: there the seeks differ most, for their length.
            most = min(stroke, 64) if i % 3 == 0 else stroke
            cylinders = most ** even.next()
            place = int(where.next() * capacity)
            per_cylinder = geometry.pattern.surfaces * (
                geometry.zones[geometry.zone_at(place)].sectors_per_track
            )
            gap = int((cylinders + self.random.random()) * per_cylinder)
            gap = min(gap, capacity - capacity // 64)
            gap -= gap % self.device.align_sectors
            span = capacity - gap - PROBE
            spot = self.places.choose(
                lambda span=span: int(where.next() * span),  # type: ignore[misc]
                (0, PROBE),
                (gap, PROBE),
            )
            self._go(spot)
            self._go(spot + gap)
            if i % 8 == 0:
                self.progress("seeks", i / self.effort.seeks)
        return tuple(fit_seeks(self.seen_seeks, self.rotation_ns, stroke))

    # -- the cache --

    def _is_there(self, ahead: int) -> bool:
        """Whether the drive has read that far ahead in the time it would take, and more."""
        hits = 0
        for _ in range(self.effort.cache_repeats):
            place = self.anywhere(ahead + 3 * PROBE)
            self.read(place, PROBE)
            slowest = max(self.geometry.reading_on_ns(at) for at in self.geometry.first_sectors)
            self.device.idle(int(30 * MS + 1.3 * ahead * slowest))
            at = place + PROBE + ahead - ahead % self.device.align_sectors
            hits += self._is_cached(self.read_ns(at, PROBE))
        return 2 * hits > self.effort.cache_repeats

    def _is_cached(self, total_ns: int) -> bool:
        cached_ns = self.bus.overhead_ns + PROBE * self.bus.sector_ns
        return total_ns < 2 * cached_ns + 100_000

    def _readahead(self) -> int | None:
        low, high = 0, PROBE
        while high <= AHEAD_SECTORS and self._is_there(high):
            low, high = high, 2 * high
        if not low:
            return None
        least = max(PROBE, low // 16 if self.effort is FAST else PROBE)
        while high - low > least:
            middle = (low + high) // 2
            if self._is_there(middle):
                low = middle
            else:
                high = middle
        return low + PROBE

    def _is_kept(self, others: int) -> bool:
        """Whether a read is still in the cache after @others at other places."""
        hits = 0
        for _ in range(self.effort.cache_repeats):
            places = [self.anywhere(PROBE) for _ in range(others + 1)]
            for place in places:
                self.read(place, PROBE)
            hits += self._is_cached(self.read_ns(places[0], PROBE))
        return 2 * hits > self.effort.cache_repeats

    def measure_cache(self) -> Cache:
        if not self.bus.known:
            return Cache(None, None, False)
        readahead = self._readahead()
        self.progress("cache", 0.5)
        low, high = 0, 1
        while high < 64 and self._is_kept(high):
            low, high = high, 2 * high
        if high >= 64 and self._is_kept(63):
            return Cache(readahead, 64, True)
        while high - low > 1:
            middle = (low + high) // 2
            if self._is_kept(middle):
                low = middle
            else:
                high = middle
        return Cache(readahead, low + 1, False)

    # -- write-out --

    def _fill(self, hit_ns: float) -> int:
        """Write at random places until the write cache is full; how many it took.

        A full cache makes every second write or so wait; a single late one may be chance.
        """
        late: deque[bool] = deque(maxlen=8)
        for number in range(MOST_WRITES):
            late.append(self._write_ns() > 2 * hit_ns + 100_000)
            if sum(late) >= 3:
                return number
        return MOST_WRITES

    def _write_ns(self) -> int:
        """Of a 4 KiB write anywhere, which is a whole physical sector."""
        sector = PROBE * self.random.randrange(self.device.capacity_sectors // PROBE)
        start, end = self.device.write(sector, PROBE)
        return end - start

    def _reads_ns(self) -> int:
        """What WRITE_OUT_READS take, less those in the beginning.

        Those wait for what the drive began before them.
        """
        places = [self.anywhere(PROBE) for _ in range(WRITE_OUT_READS)]
        for place in places:
            self.places.note(place, PROBE)
        ends = self.device.read_together(places, PROBE, WRITE_OUT_DEPTH)
        return ends[-1] - ends[WRITE_OUT_DEPTH - 1]

    def measure_write_out(self, queue_depth: int | None) -> WriteOut:
        """What reads lose to write-out while the write cache is more than half full.

        No write waits for room while the reads are timed: a drive that orders its queue
        takes waiting writes as they lie, and the reads would lose to the order, too.
        """
        if queue_depth is not None and queue_depth < WRITE_OUT_DEPTH:
            return WriteOut(None, f"needs a queue of {WRITE_OUT_DEPTH} commands")
        rounds = self.effort.write_out_rounds
        alone = 0
        for number in range(rounds):
            alone += self._reads_ns()
            self.progress("write-out", 0.4 * number / rounds)
        hit_ns = statistics.median(self._write_ns() for _ in range(15))
        if hit_ns > CACHED_BELOW_NS:
            return WriteOut(None, "writes are not answered from a cache")
        room = self._fill(hit_ns)
        if room == MOST_WRITES:
            return WriteOut(None, "the write cache did not fill")
        beside = 0
        for number in range(rounds):
            beside += self._reads_ns()
            # Below half of the cache the drive may leave it for later.
            if self._fill(hit_ns) > 0.4 * room:
                return WriteOut(None, f"the write cache holds only {room} writes")
            self.progress("write-out", 0.4 + 0.6 * number / rounds)
        self.progress("write-out", 1.0)
        return WriteOut(max(0.0, 1 - alone / beside))

    # -- all of it --

    def measure(
        self, *, overwrite: bool = False, queue_depth: int | None = None
    ) -> Mechanics | Flat:
        """Everything; what kind of disk it is shows first.

        With @overwrite also what only writing shows.
        """
        self.bus = self.measure_bus()
        if self.is_flat(self.bus):
            return self.measure_flat()
        self.rotation_ns, rotation_error_ns = self.measure_rotation()
        self.geometry = self.measure_zones(self.bus)
        self.seen_seeks: list[tuple[float, float]] = []
        curve = self.measure_curve()
        seeks = self.measure_seeks()
        cache = self.measure_cache()
        self.progress("cache", 1.0)
        write_out = self.measure_write_out(queue_depth) if overwrite else None
        return Mechanics(
            bus=self.bus,
            geometry=self.geometry,
            curve=curve,
            seeks=seeks,
            cache=cache,
            random_read_ns=self.random_ns,
            rotation_error_ns=rotation_error_ns,
            dropped=self.dropped,
            samples=self.samples,
            write_out=write_out,
        )
