# SPDX-License-Identifier: GPL-2.0-only
"""What a comparison in pairs of blocks says: the difference, and how sure that is.

The two blocks of a pair stand beside each other in time, in random order, so that what changes
slowly in the work changes both. Of each pair there is the logarithm of the ratio of both figures.
If the schedulers do the same its sign is a matter of chance. Then the means of all subsets of
these logarithms divide the line into parts in each of which the true mean is equally likely
(Hartigan, 1969, "Using subsample values as typical values"): an exact interval, without any
assumption about the noise but that it is symmetric.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import statistics
from collections.abc import Sequence

CONFIDENCE = 0.95
# Fewer cannot give that confidence: 1 - 2 / 2**6 is 0.969, 1 - 2 / 2**5 is 0.938.
LEAST_PAIRS = 6
# All subsets of so many pairs are looked at; of more so many that are drawn.
MOST_EXACT, DRAWN = 14, 1 << 14


@dataclasses.dataclass(frozen=True)
class Difference:
    """Of one figure: the second scheduler beside the first."""

    first: float  # means over the blocks
    second: float
    change: float  # of the second to the first: 0.1 is 10 % more
    low: float  # the interval of confidence
    high: float

    @property
    def found(self) -> bool:
        """Is it more than chance?"""
        return self.low > 0 or self.high < 0


def _subset_means(values: Sequence[float]) -> list[float]:
    if len(values) <= MOST_EXACT:
        subsets = (
            subset
            for size in range(1, len(values) + 1)
            for subset in itertools.combinations(values, size)
        )
        return sorted(math.fsum(subset) / len(subset) for subset in subsets)
    drawn = random.Random(1)  # the same figures have the same interval
    means: list[float] = []
    while len(means) < DRAWN - 1:
        subset = [value for value in values if drawn.random() < 0.5]
        if subset:
            means.append(math.fsum(subset) / len(subset))
    return sorted(means)


def compare(pairs: Sequence[tuple[float | None, float | None]]) -> Difference | None:
    """Of both schedulers' figures in each pair; None where too few pairs have both."""
    both = [(a, b) for a, b in pairs if a and b]
    if len(both) < LEAST_PAIRS:
        return None
    logs = [math.log(b / a) for a, b in both]
    means = _subset_means(logs)
    out = math.floor((1 - CONFIDENCE) / 2 * (len(means) + 1))
    return Difference(
        statistics.fmean(a for a, _ in both),
        statistics.fmean(b for _, b in both),
        math.expm1(statistics.fmean(logs)),
        math.expm1(means[out - 1]),
        math.expm1(means[-out]),
    )
