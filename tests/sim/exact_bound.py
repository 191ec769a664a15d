# SPDX-License-Identifier: GPL-2.0-only
"""A few requests on one disk: the best order by dynamic programming, and a floor that needs none.

All is from the end of one request to the end of another. The end of a request is at a place and at
an angle, so what comes next takes as long at whatever time that is: a table of all pairs says all
about every order. The best order is the shortest path through the table (Held and Karp, 1962). The
floor is its assignment: each request has another one before it, and no two have the same.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from streamsched.bound.arm import READ_HIT, READ_MISS, SLACK_NS, Arm, solver

if TYPE_CHECKING:
    from streamsched.bound.arm import Floats

MOST = 12  # requests of an exact case
NEVER_NS = 1e15


@dataclasses.dataclass(frozen=True)
class Read:
    """A read that is known beforehand; those of one process come one after the other."""

    sector: int
    nr_sectors: int
    process: int


def transfer_ns(arm: Arm, reads: Sequence[Read]) -> Floats:
    """What passes under the head, in the zone that each begins in, skews left out."""
    import numpy as np

    return np.array([arm.sector_ns(one.sector, one.sector + 1) * one.nr_sectors for one in reads])


def table(arm: Arm, reads: Sequence[Read]) -> tuple[Floats, Floats]:
    """From the end of each to the end of each other, and from the disk's begin at time 0; ns.

    The next command comes when the last is done, is decoded, and then the arm moves. What goes on
    where the last ended is read ahead meanwhile.
    """
    import numpy as np

    disk = arm.disk
    begin = arm.spots(np.array([one.sector for one in reads], dtype=np.int64))
    last = np.array([one.sector + one.nr_sectors - 1 for one in reads], dtype=np.int64)
    end = arm.spots(last)
    passes = transfer_ns(arm, reads)
    sector_ns = passes / np.array([one.nr_sectors for one in reads])
    unit_ns = disk.interface_unit_sectors * 512e9 / disk.interface_bytes_per_s
    late = unit_ns + arm.overhead_ns(READ_MISS)
    far = np.abs(end.cylinder[:, None] - begin.cylinder[None, :])
    # Reading ahead may have taken the head some cylinders on by then.
    moves = late + arm.least_seek_ns(np.maximum(far - arm.drift, 0)) - SLACK_NS
    angle = begin.angle_ns[None, :] - (end.angle_ns + sector_ns)[:, None]
    ways = moves + (angle - moves) % disk.rotation_ns + passes[None, :]
    goes_on = last[:, None] + 1 == np.array([one.sector for one in reads])[None, :]
    bus = np.array([one.nr_sectors for one in reads]) * 512e9 / disk.interface_bytes_per_s
    onward = np.maximum(passes, arm.overhead_ns(READ_HIT) + bus)
    ways = np.where(goes_on, onward[None, :], ways)
    np.fill_diagonal(ways, NEVER_NS)
    first = arm.overhead_ns(READ_MISS) + arm.least_seek_ns(begin.cylinder) - SLACK_NS
    first = first + (begin.angle_ns - first) % disk.rotation_ns + passes
    return ways, first


def _before(reads: Sequence[Read]) -> list[int]:
    """Of each the one of its process that comes before it; -1: none."""
    last: dict[int, int] = {}
    found = []
    for at, one in enumerate(reads):
        found.append(last.get(one.process, -1))
        last[one.process] = at
    return found


def optimum_ns(ways: Floats, first: Floats, reads: Sequence[Read]) -> float:
    """The end of the last one by the best order, in which each process's come as they are."""
    nr, before = len(reads), _before(reads)
    needs = [0 if one < 0 else 1 << one for one in before]
    best: list[dict[int, float]] = [{} for _ in range(1 << nr)]
    for at in range(nr):
        if not needs[at]:
            best[1 << at][at] = float(first[at])
    cost = ways.tolist()
    for done in range(1, 1 << nr):
        for last, took in best[done].items():
            row = cost[last]
            for at in range(nr):
                if done >> at & 1 or needs[at] & ~done:
                    continue
                to, then = best[done | 1 << at], took + row[at]
                if then < to.get(at, math.inf):
                    to[at] = then
    return min(best[-1].values())


def floor_ns(ways: Floats, first: Floats, reads: Sequence[Read]) -> float:
    """No order ends sooner: each has one before it, none of its process that comes after it."""
    import numpy as np

    nr, before = len(reads), _before(reads)
    # A row for each that may be before another, the first one's row last; a column for each.
    costs: Any = np.vstack((ways, first[None, :]))
    for at in range(nr):
        ancestor = before[at]
        if ancestor >= 0:
            costs[nr, at] = NEVER_NS  # it is not the first
        while ancestor >= 0:
            costs[at, ancestor] = NEVER_NS
            # Between it and one that is not its last come others of its process.
            if ancestor != before[at]:
                costs[ancestor, at] = NEVER_NS
            ancestor = before[ancestor]
    # One of them is before none: the row of the first is taken, for some other's way costs more.
    rows, columns = solver().linear_sum_assignment(costs)
    least = float(costs[rows, columns].sum())
    if nr in rows:
        return least
    # The head begins somewhere: of the columns one has the first's row.
    starts = []
    for at in range(nr):
        if costs[nr, at] < NEVER_NS:
            others = np.delete(costs[:nr], at, axis=1)
            rows, columns = solver().linear_sum_assignment(others)
            starts.append(float(costs[nr, at] + others[rows, columns].sum()))
    return min(starts)
