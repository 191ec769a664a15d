# SPDX-License-Identifier: GPL-2.0-only
"""The linear program over head time: how much processes can have of a disk together.

Unknown are each party's share of its rate alone, how often the head goes from one place to
another, how long it is at each, and the least share. docs/BOUNDS.md proves each row. All is per
second of time.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

from streamsched.bound.arm import Arm, solver
from streamsched.bound.party import Kind, Party
from streamsched.sim.simulate import NS

# The chance that the draw of places lies below a cut: one in e^this, for each cut.
DOUBT = 14.0
CUTS, ENOUGH = 24, 1e-3
# Of a region in the sums over its places, and prices of time in 1/ns that are tried.
PARTS = 48
PRICES = [10 ** (-8 + step / 8) for step in range(33)]
CURVE = 5
# The least share counts so much more than the sum where it is to be greatest.
FIRST = 100.0


class Infeasible(Exception):
    """No order keeps to what is asked for."""


@dataclasses.dataclass(frozen=True)
class Shares:
    """The parties' shares, at one end of the frontier or between."""

    shares: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.shares)

    @property
    def least(self) -> float:
        """The smallest, times their number."""
        return min(self.shares) * len(self.shares)


@dataclasses.dataclass(frozen=True)
class Bound:
    """Both ends of the frontier, and what is between; from fair to the greatest sum."""

    fair: Shares
    most: Shares
    curve: tuple[Shares, ...]


@dataclasses.dataclass(frozen=True)
class Asked:
    """What the bound is for."""

    depth: int  # commands in the drive at once
    absent_ns: float | None  # no place is without the head for longer; None: no matter
    seconds: float  # for which the parties run together
    work_s: tuple[float, ...] = ()  # of jobs with an end: how long each takes alone


class Mix:
    """The program for some parties on one disk."""

    def __init__(self, arm: Arm, parties: Sequence[Party], asked: Asked) -> None:
        import numpy as np

        self.arm, self.parties, self.asked = arm, list(parties), asked
        self.nr = len(self.parties)
        # Those between which ways are counted: the rest may be anywhere, at no cost.
        self.placed = [
            at
            for at, party in enumerate(self.parties)
            if party.visited or (party.kind is Kind.random and party.hit < 0.5)
        ]
        # The unknowns: shares, presence, ways between any two placed ones, time of all ways, the
        # least share.
        nr = len(self.placed)
        self.presence = self.nr
        self.ways = 2 * self.nr
        self.travel = self.ways + nr * nr
        self.least = self.travel + 1
        self.size = self.least + 1
        self.rows: list[Any] = []
        self.limits: list[float] = []
        self.equal: list[Any] = []
        self.upper = np.full(self.size, np.inf)
        for at, party in enumerate(self.parties):
            self.upper[at] = party.cap
            self.upper[self.presence + at] = 1.0
            below = self._row()
            below[self.least], below[at] = 1.0, -1.0
            self._under(below, 0.0)
        for k, at in enumerate(self.placed):
            if self.parties[at].kind is Kind.stream:
                self.upper[self._way(k, k)] = 0.0
        self._head()
        self._ways()
        if asked.absent_ns is not None:
            self._visits(asked.absent_ns)

    def _way(self, begin: int, end: int) -> int:
        return self.ways + begin * len(self.placed) + end

    def _row(self) -> Any:
        import numpy as np

        return np.zeros(self.size)

    def _under(self, row: Any, most: float) -> None:
        self.rows.append(row)
        self.limits.append(most)

    def _head(self) -> None:
        """Bytes pass the head, one after the other; and through the drive's one command."""
        seconds = self.asked.seconds
        head, slot, free = self._row(), self._row(), 0.0
        held = max((party.head_free for party in self.parties), default=0.0)
        for at, party in enumerate(self.parties):
            need, bytes_s = self._row(), party.rate
            need[at] = party.head_ns * bytes_s / NS
            need[self.presence + at] = -1.0
            # Caches are shared: what stays in one is subtracted once, from the most that it saves.
            self._under(need, 0.0 if not party.head_free else 1.0)
            if party.head_free:
                head[at] = need[at]
                free = max(free, party.head_ns * held / NS / seconds)
            else:
                head[self.presence + at] = 1.0
            slot[at] = party.slot_ns * bytes_s / NS
        head[self.travel] = 1.0
        self._under(head, 1.0 + free)
        if self.asked.depth == 1:
            # Writes that a cache held back are no command when the arm goes to them.
            if not any(self.parties[at].head_free for at in self.placed):
                slot[self.travel] = 1.0
            self._under(slot, 1.0)

    def _ways(self) -> None:
        """As many ways lead to a place as away from it, and none is shorter than the arm's."""
        costs = self._row()
        for k, at in enumerate(self.placed):
            party, flow = self.parties[at], self._row()
            for m in range(len(self.placed)):
                if m != k:
                    flow[self._way(m, k)] += 1.0
                    flow[self._way(k, m)] -= 1.0
                    costs[self._way(m, k)] = self.way_ns(m, k) / NS
            self.equal.append((flow, 1.0 / self.asked.seconds))
            if party.kind is Kind.random:
                # A way to each request that no cache has.
                requests = self._row()
                requests[at] = party.rate / party.request_bytes * (1 - party.hit)
                for m in range(len(self.placed)):
                    requests[self._way(m, k)] = -1.0
                self._under(requests, party.head_free / party.request_bytes / self.asked.seconds)
        costs[self.travel] = -1.0
        self._under(costs, 0.0)

    @functools.cache  # noqa: B019
    def way_ns(self, begin: int, end: int) -> float:
        """The least time of the arm from one placed party to another, less what that may spare."""
        one, other = self.parties[self.placed[begin]], self.parties[self.placed[end]]
        if begin == end:
            return 0.0
        far = max(one.low - other.high, other.low - one.high, 0)
        way = float(self.arm.least_seek_ns(far))
        # A stream that is come back to may begin with a track: the skew before that is spared.
        spared = self.arm.skew_ns if other.kind is Kind.stream else 0.0
        return max(0.0, way - spared)

    def _visits(self, absent_ns: float) -> None:
        """The head is away from a stream for so long at most, so it comes back so often."""
        often, edge = NS / absent_ns, 1.0 / self.asked.seconds
        readers = [at for at in self.placed if self.parties[at].visited]
        index = {at: k for k, at in enumerate(self.placed)}
        for at in readers:
            row = self._row()
            for k in range(len(self.placed)):
                if k != index[at]:
                    row[self._way(k, index[at])] = -1.0
            row[self.presence + at] = -often
            self._under(row, edge - often)
        # The same of the readers on one side of a cut through the disk, as of one reader.
        across = sorted(self.placed, key=lambda at: self.parties[at].low)
        for nr in range(1, len(across)):
            for inside in (across[:nr], across[nr:]):
                if not any(self.parties[at].visited for at in inside):
                    continue
                row, others = self._row(), [at for at in self.placed if at not in inside]
                for m in others:
                    for at in inside:
                        row[self._way(index[m], index[at])] = -1.0
                    if self.parties[m].kind is Kind.stream:
                        row[self.presence + m] = often
                    elif not self.parties[m].head_free:
                        row[m] = often * self.parties[m].head_ns * self.parties[m].rate / NS
                self._under(row, edge)

    # ---- cuts: what positioning costs at least, however requests are chosen ----

    @functools.cache  # noqa: B019
    def _moment(self, begin: int, end: int, price: float) -> float:
        """The mean of exp(-price * way) to a random place of @end, from the best one of @begin."""
        import numpy as np

        one, other = self.parties[self.placed[begin]], self.parties[self.placed[end]]
        if other.kind is Kind.stream:
            return math.exp(-price * self.way_ns(begin, end))
        edges = np.linspace(other.low, other.high + 1, PARTS + 1)
        starts = np.linspace(one.low, one.high + 1, PARTS + 1)
        low = np.maximum(edges[None, :-1] - starts[1:, None], starts[:-1, None] - edges[None, 1:])
        ways = self.arm.least_seek_ns(np.maximum(low, 0.0))
        weights = self._weights(end, tuple(edges))
        seek = float((np.exp(-price * ways) * weights[None, :]).sum(axis=1).max())
        turn = 1.0
        if one.kind is Kind.random:
            # From a random place the index mark is anywhere; a stream is left when it suits.
            angle = price * self.arm.disk.rotation_ns
            turn = -math.expm1(-angle) / angle
        return min(1.0, seek * turn + other.hit)

    @functools.cache  # noqa: B019
    def _weights(self, end: int, edges: tuple[float, ...]) -> Any:
        """The chance of each part of the region, by the sectors in it."""
        import numpy as np

        party = self.parties[self.placed[end]]
        sectors = np.linspace(party.first, party.end - 1, 64 * PARTS).astype(np.int64)
        cylinders = self.arm.spots(sectors).cylinder
        counts, _ = np.histogram(cylinders, bins=np.array(edges))
        return counts / max(1, counts.sum())

    def _cut(self, found: Any) -> tuple[Any, float, float]:
        """The row that says most against the ways of @found, its limit, and by how much @found
        passes that.
        """
        import numpy as np

        nr = len(self.placed)
        flows = np.maximum(found[self.ways : self.travel].reshape(nr, nr), 1e-9)
        parts = flows / flows.sum(axis=1, keepdims=True)
        # No way is ruled out by this guess.
        parts = 0.999 * parts + 0.001 / nr
        best: tuple[float, Any, float] | None = None
        chosen = [
            self.parties[at].outstanding if self.parties[at].kind is Kind.random else 1
            for at in self.placed
        ]
        for price in PRICES:
            moments = np.array([[self._moment(k, m, price) for m in range(nr)] for k in range(nr)])
            known = np.log(parts) - np.log(np.array(chosen))[None, :]
            gains = (known - np.log(np.maximum(moments, 1e-300))) / price / NS
            owed = DOUBT / price / NS / self.asked.seconds
            value = float((flows * gains).sum()) - owed
            if best is None or value > best[0]:
                best = (value, gains, owed)
        assert best
        value, gains, owed = best
        row = self._row()
        row[self.ways : self.travel] = gains.reshape(-1)
        row[self.travel] = -1.0
        return row, owed, value - float(found[self.travel])

    # ---- solving ----

    def _solve(self, weight: float = 0.0, least: float = 0.0, ties: Sequence[Any] = ()) -> Any:
        """The unknowns at the greatest sum of shares, with as many cuts as say something.

        The least share, if it has @weight, counts before. Each share is @least or more; rows of
        @ties are 0.
        """
        import numpy as np

        wanted = self._row()
        wanted[: self.nr] = -1.0
        wanted[self.least] = -weight
        lower = self._row()
        lower[self.least] = least
        for _ in range(CUTS):
            rows, most = [*self.rows], [*self.limits]
            for row, slack in (*self.equal, *((tie, 0.0) for tie in ties)):
                rows += [row, -row]
                most += [slack, slack]
            solved = solver().linprog(
                wanted,
                A_ub=np.array(rows),
                b_ub=np.array(most),
                bounds=np.stack([lower, self.upper], axis=1),
                method="highs",
            )
            if solved.x is None:
                raise Infeasible(solved.message)
            if not any(self.parties[at].kind is Kind.random for at in self.placed):
                break
            row, most_of_it, passed = self._cut(solved.x)
            if passed < ENOUGH:
                break
            self._under(row, most_of_it)
        return solved.x

    def _shares(self, found: Any) -> Shares:
        return Shares(tuple(float(one) for one in found[: self.nr]))

    def efficiency(self) -> Shares:
        """Of jobs with an end: their greatest mean shares, which are as their times alone are.

        The sum is the time of all alone, one after the other, by their time together.
        """
        work, ties = self.asked.work_s, []
        for at in range(1, self.nr):
            tie = self._row()
            tie[at], tie[0] = work[0], -work[at]
            ties.append(tie)
        return self._shares(self._solve(ties=ties))

    def most(self) -> Shares:
        """The greatest sum."""
        return self._shares(self._solve())

    def bound(self, points: int = CURVE) -> Bound:
        """Both ends of the frontier, and @points in all."""
        most = self.most()
        # What the fair end leaves is given to whoever can have it.
        fair = self._shares(self._solve(weight=FIRST * self.nr))
        least = min(fair.shares)
        curve = [
            self._shares(self._solve(least=least * (1 - step / (points - 1))))
            for step in range(1, points - 1)
        ]
        return Bound(fair, most, (fair, *curve, most))

    def tour_ns(self) -> float:
        """No way through all streams, and back to the first, is shorter."""
        import numpy as np

        readers = [k for k, at in enumerate(self.placed) if self.parties[at].visited]
        ways = np.array([[self.way_ns(k, m) if k != m else 1e15 for m in readers] for k in readers])
        if len(readers) < 2:
            return 0.0
        rows, columns = solver().linear_sum_assignment(ways)
        return float(ways[rows, columns].sum())
