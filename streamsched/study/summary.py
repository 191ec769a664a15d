# SPDX-License-Identifier: GPL-2.0-only
"""What a study says: means over seeds with intervals, and policies beside the first one.

Two policies are compared seed by seed: both had the same random numbers and the same starts, so
what a seed does to both is not in the difference. All intervals are Student's, of 95 %.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from streamsched.sim.results import plain_table
from streamsched.study.cell import Row

CONFIDENCE = 0.95
FIGURES = {"throughput_mb_s": "MB/s", "response_p99_ms": "p99 ms", "least_share": "least share"}
WHERE = ("work", "disk", "queue_depth", "owners", "settings")


def _within(theta: float, freedom: int) -> float:
    """The part of Student's distribution within +-sqrt(freedom) tan(theta).

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    odd = freedom % 2
    cos, term, total = math.cos(theta), 1.0, 0.0
    power = math.cos(theta) if odd else 1.0
    for number in range(1 + odd, freedom, 2):
        total += term * power
        term *= number / (number + 1)
        power *= cos * cos
    total *= math.sin(theta)
    return 2 / math.pi * (theta + total) if odd else total


def student(freedom: int) -> float:
    """So many standard errors to either side have the confidence."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < CONFIDENCE else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


@dataclasses.dataclass(frozen=True)
class Mean:
    """A mean, and half of its interval; None with a single value."""

    value: float
    half: float | None
    nr: int

    @property
    def found(self) -> bool:
        """As a difference: is it more than chance?"""
        return self.half is not None and abs(self.value) > self.half


def mean(values: Sequence[float]) -> Mean:
    """Of one value or more."""
    nr = len(values)
    half = None
    if nr > 1:
        half = student(nr - 1) * statistics.stdev(values) / math.sqrt(nr)
    return Mean(statistics.fmean(values), half, nr)


@dataclasses.dataclass(frozen=True)
class Line:
    """One policy's figures in one place; differences are to the first policy."""

    policy: str
    nr: int
    means: dict[str, Mean | None]
    differences: dict[str, Mean | None]


def _by_seed(rows: Sequence[Row], figure: str) -> dict[object, float]:
    return {row["seed"]: row[figure] for row in rows if row[figure] is not None}


def _line(policy: str, rows: Sequence[Row], first: Sequence[Row]) -> Line:
    means: dict[str, Mean | None] = {}
    differences: dict[str, Mean | None] = {}
    for figure in FIGURES:
        own, other = _by_seed(rows, figure), _by_seed(first, figure)
        means[figure] = mean(list(own.values())) if own else None
        pairs = [own[seed] - other[seed] for seed in own if seed in other]
        differences[figure] = mean(pairs) if pairs and rows is not first else None
    return Line(policy, len(rows), means, differences)


def summarise(
    rows: Sequence[Row], policies: Sequence[str]
) -> dict[tuple[str | int, ...], list[Line]]:
    """Lines of each place, in order; @policies says which policy is the first one."""
    places: dict[tuple[str | int, ...], dict[str, list[Row]]] = {}
    for row in rows:
        place = tuple(row[key] for key in WHERE)
        places.setdefault(place, {}).setdefault(row["policy"], []).append(row)
    found = {}
    for place in sorted(places):
        by_policy = places[place]
        names = [policy for policy in policies if policy in by_policy]
        first = by_policy.get(policies[0], [])
        found[place] = [_line(name, by_policy[name], first) for name in names]
    return found


def _shown(one: Mean | None, signed: bool) -> str:
    if one is None:
        return ""
    # The half's first figure decides, as far as it is worth anything.
    scale = one.half or abs(one.value) / 100 or 1.0
    digits = min(4, max(0, 1 - math.floor(math.log10(scale))))
    text = f"{one.value:{'+' if signed else ''},.{digits}f}"
    return text if one.half is None else f"{text} ±{one.half:,.{digits}f}"


def _table(title: str, lines: Sequence[Line]) -> Table:
    table = plain_table(title)
    table.add_column("policy", max_width=24, overflow="fold")
    table.add_column("seeds", justify="right")
    for head in FIGURES.values():
        table.add_column(head, justify="right", no_wrap=True)
    for line in lines:
        table.add_row(line.policy, str(line.nr), *(_shown(line.means[f], False) for f in FIGURES))
        if any(line.differences.values()):
            shown = (_shown(line.differences[f], True) for f in FIGURES)
            table.add_row(f"  less {lines[0].policy}", "", *shown)
    return table


def print_summary(rows: Sequence[Row], policies: Sequence[str], console: Console) -> None:
    """A table for each work, disk, queue depth, owners and settings."""
    for place, lines in summarise(rows, policies).items():
        work, disk, depth, owners, settings = place
        title = f"{work} on {disk}, queue depth {depth}, owners {owners}"
        console.print(_table(f"{title}, {settings}" if settings else title, lines))
