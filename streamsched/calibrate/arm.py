# SPDX-License-Identifier: GPL-2.0-only
"""How long the arm takes: the service-time curve and the seeks."""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Sequence

from streamsched.calibrate.commands import PROBE, Commands
from streamsched.calibrate.found import CurvePoint
from streamsched.calibrate.numeric import Even, densest, interpolate, never_fall, standard_error

CURVE_POINTS = 40
# Seeks looked at together: they tell the seek time to a hundredth of a revolution.
LEAST_FIT, MOST_FIT = 60, 240


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


class Arm(Commands):
    """Measures ways from one place to another."""

    seen_seeks: list[tuple[float, float]]
    """Cylinders and ns of every way on which the arm moved."""

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
        self.seen_seeks = []
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
