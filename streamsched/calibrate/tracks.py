# SPDX-License-Identifier: GPL-2.0-only
"""The disk's rotation, its tracks and its zones, as reading in sequence shows them."""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from streamsched.base.errors import StreamschedError
from streamsched.calibrate.commands import CACHED_BELOW_NS, PROBE, Commands
from streamsched.calibrate.found import MS, SECTOR_BYTES, Bus, Geometry, Pattern, Zone

# How many times its standard error a pattern must show; by chance some come to 4.
CLEAR = 5.5
# Sectors per track that differ by less are those of one zone.
SAME_ZONE = 0.006


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


class Tracks(Commands):
    """Measures what passes under a head that stays where it is."""

    passing_back: list[tuple[int, float]]
    """Sectors, and how long one takes to pass the head there."""

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
        self.passing_back = []
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
