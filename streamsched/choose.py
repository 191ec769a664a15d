# SPDX-License-Identifier: GPL-2.0-only
"""Which scheduler is right for what arrives: the one rule of the simulator's `auto` and of the
service for the kernel.

It sees sums (looks.Observation) a few times a second and says when to change, and why. It knows
neither clock nor host. docs/ARCHITECTURE.md, "Choosing a scheduler", says how it decides.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections import deque

from streamsched.looks import Looks, Observation, between
from streamsched.profile import Outcome, Profile

GOALS = ("throughput", "p99")
RULES = ("workload", "size")

# A workload is judged by as much of it as this, and by as many requests.
WINDOW_S, WINDOW_REQUESTS, WINDOW_MAX_S = 1.0, 48, 8.0
# A change must promise this much, as often as that in a row.
MARGIN, AGREEING = 0.05, 3
# A workload that looks this different from when its scheduler was chosen is another one.
MOVED = 0.25
# After a change: what comes of it is looked at for so long, and taken back if it is so much worse.
PROBATION_S, WORSE = 4.0, 0.85
# What turned out to be worse is not tried again for this long; twice as long each further time.
BANNED_S = 60.0
# The nearest workloads of the profile decide, the nearer the more.
NEIGHBOURS, BLUR = 4, 0.01
# A workload unlike any that was measured, by this much, changes nothing.
UNLIKE = 0.4
# Of a policy with which somebody waits longer than wanted, so much is thought at the most.
UNBOUNDED = 0.0


@dataclasses.dataclass(frozen=True)
class Selection:
    """How to choose: by which profile, for which goal."""

    profile: Profile
    owners: str  # process or none: what schedulers see
    goal: str = "throughput"
    rule: str = "workload"
    longest_wait_ms: float = 5000.0
    policies: tuple[str, ...] = ()  # of the profile's; empty: all

    def begin(self) -> Chooser:
        """For one run of one disk."""
        return Chooser(self)

    @property
    def candidates(self) -> tuple[str, ...]:
        return self.policies or self.profile.policies


@dataclasses.dataclass(frozen=True)
class Choice:
    """One change of the scheduler, or what it began with."""

    at_s: float
    policy: str
    why: str


def _merit(one: Outcome, goal: str) -> float:
    return one.mb_s if goal == "throughput" else 1 / max(one.p99_ms, 1e-6)


def relative_merits(selection: Selection) -> list[dict[str, float]]:
    """For each cell: each candidate's merit, 1 for the best that lets nobody wait too long."""
    table = []
    for cell in selection.profile.cells:
        bounded = {
            spec: _merit(cell.under[spec], selection.goal)
            for spec in selection.candidates
            if cell.under[spec].longest_wait_ms <= selection.longest_wait_ms
        }
        best = max(bounded.values(), default=0.0)
        table.append(
            {
                spec: bounded[spec] / best if best and spec in bounded else UNBOUNDED
                for spec in selection.candidates
            }
        )
    return table


class Chooser:
    """Gives what to begin with, and a Choice whenever it is time for another one."""

    def __init__(self, selection: Selection, *, current: str | None = None) -> None:
        self.selection = selection
        self._merits = relative_merits(selection)
        self._known = [
            index
            for index, cell in enumerate(selection.profile.cells)
            if cell.owners == selection.owners
        ]
        self.current = current or self._safest()
        self._window: deque[Observation] = deque()
        self._wish, self._wishes = "", 0
        self._settled: Looks | None = None  # what it was chosen for; None: nothing chosen yet
        self._moved = 0
        self._before: tuple[str, float] | None = None  # on probation: whom it replaced, its rate
        self._since: Observation | None = None
        self._banned: dict[str, tuple[float, float]] = {}  # until when, for how long
        self.looks: Looks | None = None
        self.promise: dict[str, float] = {}

    @property
    def first(self) -> Choice:
        """What it begins with."""
        return Choice(0.0, self.current, "nothing is known yet")

    def _safest(self) -> str:
        """Before anything is known: good on all workloads alike."""
        if self.selection.rule == "size":
            return self._best_by_size(max(self.selection.profile.sizes_bytes))

        def mean(spec: str) -> float:
            logs = [math.log(max(self._merits[i][spec], 0.01)) for i in self._known]
            return sum(logs) / max(len(logs), 1)

        return max(self.selection.candidates, key=mean)

    # ---- predicting ----

    def _by_size(self, size_bytes: float) -> dict[str, float]:
        """The paper's rule: f_s(r) between the sizes that were measured, straight over octaves."""
        profile = self.selection.profile
        sizes = profile.sizes_bytes
        right = min(max(bisect.bisect_left(sizes, size_bytes), 1), len(sizes) - 1)
        if len(sizes) == 1:
            part, low, high = 0.0, 0, 0
        else:
            low, high = right - 1, right
            part = math.log(size_bytes / sizes[low]) / math.log(sizes[high] / sizes[low])
            part = min(max(part, 0.0), 1.0)
        return {
            spec: profile.curves[spec][low] * (1 - part) + profile.curves[spec][high] * part
            for spec in self.selection.candidates
        }

    def _best_by_size(self, size_bytes: float) -> str:
        rates = self._by_size(size_bytes)
        return max(rates, key=lambda spec: rates[spec])

    def _by_neighbours(self, looks: Looks) -> dict[str, float]:
        """What those workloads of the profile say that look like this one under this policy."""
        cells = self.selection.profile.cells
        near = sorted(
            (looks.distance(cells[index].under[self.current].looks), index) for index in self._known
        )[:NEIGHBOURS]
        if near[0][0] > UNLIKE:
            return {self.current: 1.0}
        weights = [1 / (BLUR + distance) ** 2 for distance, _ in near]
        total = sum(weights)
        return {
            spec: sum(
                weight * self._merits[index][spec]
                for weight, (_, index) in zip(weights, near, strict=True)
            )
            / total
            for spec in self.selection.candidates
        }

    def predict(self, looks: Looks) -> dict[str, float]:
        """Each candidate's merit; only their ratios mean something."""
        if self.selection.rule == "size":
            return self._by_size(looks.size_bytes)
        return self._by_neighbours(looks)

    # ---- deciding ----

    def _recent(self, now: Observation) -> Looks | None:
        """The looks of a window that ends now, once there is enough of it."""
        window = self._window
        window.append(now)
        while len(window) > 2 and _enough(window[1], now):
            window.popleft()
        if not _enough(window[0], now):
            if now.now_s - window[0].now_s > WINDOW_MAX_S:
                window.popleft()  # too little happens to judge by
            return None
        return between(window[0], now)

    def observe(self, now: Observation) -> Choice | None:
        """What is to be done, if anything."""
        if self._since is None:
            self._since = now
        looks = self._recent(now)
        if looks is None:
            return None
        self.looks = looks
        back = self._taken_back(now)
        if back:
            return back
        self._note_phase(looks)
        return self._better(now, looks)

    def _note_phase(self, looks: Looks) -> None:
        """Forget that a choice was made when the workload has become another one."""
        if self._settled is None:
            return
        if looks.distance(self._settled) <= MOVED:
            self._moved = 0
            return
        self._moved += 1
        if self._moved >= AGREEING:
            self._settled, self._moved = None, 0
            self._before = None

    def _better(self, now: Observation, looks: Looks) -> Choice | None:
        self.promise = self.predict(looks)
        allowed = [
            spec
            for spec in self.promise
            if spec == self.current or self._banned.get(spec, (0.0, 0.0))[0] <= now.now_s
        ]
        best = max(allowed, key=lambda spec: self.promise[spec])
        here = self.promise[self.current]
        if best == self.current or self.promise[best] <= here * (1 + MARGIN):
            self._wish, self._wishes = "", 0
            return None
        self._wishes = self._wishes + 1 if best == self._wish else 1
        self._wish = best
        if self._wishes < AGREEING or self._settled is not None:
            return None
        gain = f"{100 * (self.promise[best] / here - 1):.0f} %" if here else "all"
        what = "throughput" if self.selection.goal == "throughput" else "a lower p99"
        return self._change(now, best, f"{looks}: {gain} more {what} expected", looks)

    def _change(self, now: Observation, policy: str, why: str, looks: Looks | None) -> Choice:
        self._before = (self.current, self._rate(now))
        self.current = policy
        self._settled, self._moved = looks, 0
        self._wish, self._wishes = "", 0
        self._since = now
        self._window.clear()
        return Choice(now.now_s, policy, why)

    def _rate(self, now: Observation) -> float:
        """By the goal, over the last window: the more the better."""
        then = self._window[0]
        if self.selection.goal == "throughput":
            return (now.done_bytes - then.done_bytes) / (now.now_s - then.now_s)
        response_s = now.response_s - then.response_s
        return (now.completed - then.completed) / response_s if response_s > 0 else 0.0

    def _taken_back(self, now: Observation) -> Choice | None:
        """No harm: where the same workload does worse than before, what was before comes back."""
        if self._before is None or self._since is None:
            return None
        if now.now_s - self._since.now_s < PROBATION_S:
            return None
        (before, rate), self._before = self._before, None
        then = self._window[0]
        self._window.appendleft(self._since)
        after = self._rate(now)
        self._window.popleft()
        assert self._window[0] is then
        looks = between(self._since, now)
        if looks is None or self._settled is None or looks.distance(self._settled) > MOVED:
            return None
        if after >= WORSE * rate:
            return None
        worse = self.current
        length = 2 * self._banned.get(worse, (0.0, BANNED_S / 2))[1]
        self._banned[worse] = (now.now_s + length, length)
        why = f"{worse} did {100 * (1 - after / rate):.0f} % worse than {before} with the same work"
        choice = self._change(now, before, why, looks)
        self._before = None
        return choice


def _enough(then: Observation, now: Observation) -> bool:
    return now.now_s - then.now_s >= WINDOW_S and now.requests - then.requests >= WINDOW_REQUESTS
