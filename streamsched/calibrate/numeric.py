# SPDX-License-Identifier: GPL-2.0-only
"""What the measurements of a disk reckon with: means, errors, lines, even numbers."""

from __future__ import annotations

import bisect
import itertools
import math
import random
import statistics
from collections.abc import Sequence

GOLDEN = (math.sqrt(5) - 1) / 2


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


class Even:
    """Numbers below 1 that are spread evenly however many are taken."""

    def __init__(self, rnd: random.Random) -> None:
        self.value = rnd.random()

    def next(self) -> float:
        self.value = (self.value + GOLDEN) % 1
        return self.value
