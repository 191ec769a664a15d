# SPDX-License-Identifier: GPL-2.0-only
"""What a study will cost, from the beginning of one simulation of each work."""

from __future__ import annotations

import dataclasses
import time

from streamsched.base.errors import StreamschedError
from streamsched.study.plan import Cell, Plan
from streamsched.study.run import order_of

# A pilot is broken off after so long, and all together after so long, in seconds.
PILOT_S, ALL_S = 0.3, 3.0


class _Enough(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Cost:
    """Of the simulations that are left."""

    cells: int
    left: int
    processor_s: float


def _pilot_s(plan: Plan, cell: Cell) -> float | None:
    """Seconds that @cell takes, by its beginning; None: it cannot be simulated."""
    began = time.monotonic()
    part = 0.0

    def look(done: float) -> None:
        nonlocal part
        part = done
        if time.monotonic() - began > PILOT_S and done > 0:
            raise _Enough

    try:
        order_of(plan, cell).run(look)
        part = 1.0
    except _Enough:
        pass
    except StreamschedError:  # said when its turn comes
        return None
    return (time.monotonic() - began) / part


def estimate(plan: Plan, done: set[str]) -> Cost:
    """By the last policy, which is the one that somebody tries, for each work and disk.

    To measure the alone rates moves the same bytes once more, in each group of cells.
    """
    found: dict[tuple[str, str], float] = {}
    groups: set[str] = set()
    left, total_s = 0, 0.0
    until = time.monotonic() + ALL_S
    for cell in plan.cells():
        if plan.id(cell) in done:
            continue
        left += 1
        kind = (cell.work.name, cell.disk.name)
        if kind not in found:
            last = dataclasses.replace(cell, policy=plan.policies[-1])
            measured = _pilot_s(plan, last) if time.monotonic() < until else None
            known = list(found.values())
            found[kind] = measured or (sum(known) / len(known) if known else 0.0)
        total_s += found[kind]
        group = plan.group(cell)
        if group and group not in groups:
            groups.add(group)
            total_s += found[kind]
    return Cost(len(plan), left, total_s)


def duration(seconds: float) -> str:
    """For people, who want no more than two figures."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} s"
