# SPDX-License-Identifier: GPL-2.0-only
"""The linear program over head time: how much processes can have of a disk together.

Unknown are each party's share of its rate alone, how often the head goes from one place to
another, how long it is at each, and the least share. docs/research/BOUNDS.md proves each row. All
is per second of time.
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

# For any of e^14 numbers of ways the chance that the draw of places lies below a cut is e^-14.
DOUBT = 28.0
CUTS, ENOUGH = 24, 1e-3
# Of a region in the sums over its places, and prices of time in 1/ns that are tried.
PARTS = 24
# Steps towards the weights of a cut, and their range.
ROUNDS, LEAST_PLACED = 30, 1e-3
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
    work_s: tuple[float, ...] = ()  # of jobs with an end: how long each takes alone; 0: has none
    heads: int = 1  # which together leave no place for longer than that; mirrors have several


@dataclasses.dataclass(frozen=True)
class States:
    """Where the head may be; rows of a table of all pairs of them."""

    owner: Any  # which placed party
    first: Any  # of each placed party the first state
    nr: Any  # and how many it has
    ways: Any  # ns from each to each, at least
    chance: Any  # of a random party's request to be here
    stream: Any
    hit: Any


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
            if party.placed or (party.kind is Kind.random and party.hit < 0.5)
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
        # Others may take the head anywhere between two ways: a stream is then left for them, too.
        self.others = len(self.placed) < self.nr
        for k, at in enumerate(self.placed):
            if self.parties[at].kind is Kind.stream and not self.others:
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
        head, slot = self._row(), self._row()
        free = first = kept = 0.0
        held = max((party.head_free for party in self.parties), default=0.0)
        for at, party in enumerate(self.parties):
            need, bytes_s = self._row(), party.rate
            need[at] = party.head_ns * bytes_s / NS
            need[self.presence + at] = -1.0
            # Caches are shared: what stays in one is subtracted once, from the most that it saves.
            early = party.head_ns * party.early / NS / seconds
            stays = party.head_ns * party.head_free / NS / seconds
            self._under(need, early if not party.head_free else max(1.0, stays))
            if party.head_free:
                head[at] = need[at]
                kept += early
                free = max(free, party.head_ns * held / NS / seconds)
            else:
                head[self.presence + at] = 1.0
            slot[at] = party.slot_ns * bytes_s / NS
            first += party.early / NS / seconds * max(party.head_ns, party.slot_ns)
        head[self.travel] = 1.0
        # Of those with a presence what was early is in that already.
        self._under(head, 1.0 + free + kept)
        # The same without skews between tracks: then none can be spared by a way.
        bare = self._row()
        for at, party in enumerate(self.parties):
            bare[at] = party.bare_ns * party.rate / NS
        for k in range(len(self.placed)):
            for m in range(len(self.placed)):
                bare[self._way(k, m)] = self.way_ns(k, m, 0.0) / NS
        self._under(bare, 1.0 + free + first)
        if self.asked.depth == 1:
            # Writes that a cache held back are no command when the arm goes to them.
            if not any(self.parties[at].head_free for at in self.placed):
                slot[self.travel] = 1.0
            self._under(slot, 1.0 + first)

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
                free = (party.head_free + party.early) / party.request_bytes
                self._under(requests, free / self.asked.seconds)
        costs[self.travel] = -1.0
        self._under(costs, 0.0)

    @functools.cache  # noqa: B019
    def way_ns(self, begin: int, end: int, skew: float = 1.0) -> float:
        """The least time of the arm from one placed party to another, less @skew skews."""
        one, other = self.parties[self.placed[begin]], self.parties[self.placed[end]]
        if begin == end:
            return 0.0
        far = max(one.low - other.high, other.low - one.high) - self.arm.drift
        way = float(self.arm.least_seek_ns(max(far, 0)))
        # A stream that is come back to may begin with a track: the skew before that is spared.
        spared = skew * self.arm.skew_ns if other.kind is Kind.stream else 0.0
        return max(0.0, way - spared)

    def _visits(self, absent_ns: float) -> None:
        """The head is away from a stream for so long at most, so it comes back so often."""
        often, edge = NS / absent_ns, 1.0 / self.asked.seconds
        readers = [at for at in self.placed if self.parties[at].visited]
        index = {at: k for k, at in enumerate(self.placed)}
        for at in readers:
            row = self._row()
            for k in range(len(self.placed)):
                row[self._way(k, index[at])] = -1.0
            row[self.presence + at] = -often
            self._under(row, edge - often / self.asked.heads)
        # Several heads may all be elsewhere, and are with another place together.
        if self.asked.heads > 1:
            return
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

    @functools.cached_property
    def _states(self) -> States:
        """Where the head may be: with a stream, or in a part of a random party's region."""
        import numpy as np

        party: list[int] = []
        low, high, chance, first = [], [], [], []
        for k, at in enumerate(self.placed):
            one = self.parties[at]
            first.append(len(party))
            if one.kind is Kind.stream:
                edges, chances = np.array([one.low, one.high + 1]), np.ones(1)
            else:
                edges = np.linspace(one.low, one.high + 1, PARTS + 1)
                sectors = np.linspace(one.first, one.end - 1, 1024 * PARTS).astype(np.int64)
                counts, _ = np.histogram(self.arm.spots(sectors).cylinder, bins=edges)
                # Parts that the grid of sectors has met a little less often count as met.
                chances = (counts + 2) / counts.sum()
            party += [k] * len(chances)
            low += list(edges[:-1])
            high += list(edges[1:])
            chance += list(chances)
        lows, highs = np.array(low), np.array(high)
        far = np.maximum(lows[None, :] - highs[:, None], lows[:, None] - highs[None, :])
        ways = self.arm.least_seek_ns(np.maximum(far - self.arm.drift, 0.0))
        owner = np.array(party)
        streams = np.array([self.parties[at].kind is Kind.stream for at in self.placed])
        into = streams[owner]
        ways[:, into] = np.maximum(ways[:, into] - self.arm.skew_ns, 0.0)
        hits = np.array([self.parties[at].hit for at in self.placed])
        return States(
            owner=owner,
            first=np.array(first),
            nr=np.bincount(owner),
            ways=ways,
            chance=np.array(chance),
            stream=streams[owner],
            hit=hits[owner],
        )

    @functools.cache  # noqa: B019
    def _moments(self, price: float) -> Any:
        """The mean of exp(-price * way) from each state, summed over the places in each state."""
        import numpy as np

        states = self._states
        moments = np.exp(-price * states.ways)
        # From a random place the next one is anywhere on its track. A stream is left when it suits,
        # and so is whoever else may have had the head in between.
        angle = price * self.arm.disk.rotation_ns
        turn = 1.0 if self.others else -math.expm1(-angle) / angle
        moments[np.ix_(~states.stream, ~states.stream)] *= turn
        return (np.minimum(1.0, moments + states.hit[None, :])) * states.chance[None, :]

    def _cut(self, found: Any) -> tuple[Any, float, float]:
        """The row that says most against the ways of @found, its limit, and by how much @found
        passes that.
        """
        import numpy as np

        nr, states = len(self.placed), self._states
        flows = np.maximum(found[self.ways : self.travel].reshape(nr, nr), 1e-9)
        parts = flows / flows.sum(axis=1, keepdims=True)
        # No way is ruled out by this guess.
        parts = 0.999 * parts + 0.001 / nr
        chosen = np.array(
            [
                self.parties[at].outstanding if self.parties[at].kind is Kind.random else 1
                for at in self.placed
            ]
        )
        best: tuple[float, Any, float] | None = None
        for price in PRICES:
            moments = self._moments(price)
            # What a way weighs: as often as it is gone, by what it costs in the mean.
            blocks = np.add.reduceat(moments, states.first, axis=1)
            blocks = np.add.reduceat(blocks, states.first, axis=0) / states.nr[:, None]
            weights = parts / np.maximum(blocks, 1e-300)
            weighed = moments * weights[np.ix_(states.owner, states.owner)]
            # How well placed the head is in each state: any numbers would do, these do best.
            placed = np.ones(len(states.owner))
            for _ in range(ROUNDS):
                placed = weighed @ placed
                placed = np.maximum(placed / np.max(placed), LEAST_PLACED)
            growth = float(np.max(weighed @ placed / placed))
            gains = np.log(weights) - np.log(chosen)[None, :] - math.log(growth)
            gains /= price * NS
            owed = (DOUBT - math.log(np.min(placed))) / price / NS / self.asked.seconds
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
        return Shares(tuple(max(0.0, float(one)) for one in found[: self.nr]))

    def efficiency(self) -> Shares:
        """Of jobs with an end: their greatest mean shares, as to each other as their times alone.

        The sum is the time of all alone, one after the other, by their time together.
        """
        work, ties = self.asked.work_s, []
        fixed = [at for at in range(self.nr) if work[at]]
        for at in fixed[1:]:
            tie = self._row()
            tie[at], tie[fixed[0]] = work[fixed[0]], -work[at]
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
        ways = np.array(
            [[self.way_ns(k, m, 0.0) if k != m else 1e15 for m in readers] for k in readers]
        )
        if len(readers) < 2:
            return 0.0
        rows, columns = solver().linear_sum_assignment(ways)
        return float(ways[rows, columns].sum())
