# SPDX-License-Identifier: GPL-2.0-only
"""Which scheduler is right for what arrives: the rule of the policy `auto`.

It sees sums (looks.Observation) a few times a second and says when to change, and why.
docs/guide/AUTO.md says how it decides.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections import deque

from streamsched.sim.chooser import Choice
from streamsched.sim.policies import WORK_CONSERVING, check_spec
from streamsched.sim.profile import Known, Outcome, Profile
from streamsched.work.looks import SAMPLE_S, Looks, Observation, between

RULES = ("workload", "size")

# A workload is judged by as much of it as this, and by as many requests.
WINDOW_S, WINDOW_REQUESTS, WINDOW_MAX_S = 1.0, 48, 8.0
# A change is made once as much is lost by not having made it as it would cost: here as the time of
# which nothing came. So little in a gain is taken for noise.
COST_S = 0.05
NOISE = {"workload": 0.04, "size": 0.015}  # by the rule
# For the same workload again it costs so many times as much; twice as much for each recent change.
AGAIN, RECENT_S = 8.0, 60.0
# Nothing is decided while the workload changes: it must have looked alike for so many windows.
STEADY = 3
# A workload that looks this different from when its scheduler was chosen is another one.
MOVED = 0.25
# A policy that learns knows a workload that it served for so long, and judges the next one by it.
# Where it then does so much less than the profile has for it, and goes on with that for the second
# time, it begins anew.
MEMORY_S, PATIENCE_S, FAILING = 15.0, 2.0, 0.5
# After a change: what comes of it is looked at for so long, and taken back if it is so much worse.
PROBATION_S, WORSE = 4.0, 0.85
# What turned out to be worse is not tried again for this long; twice as long each further time.
BANNED_S = 60.0
# The nearest workloads of the profile decide, the nearer the more.
NEIGHBOURS, BLUR = 4, 0.01
# All workloads of the profile together count as much as one that looks this different. So where
# none looks much alike, what is good on the whole is not left easily.
PRIOR = 0.3
# Who is seen to send may not be who reads: a process for each file, a VM of several readers. So
# this part of what a workload of the profile says is what it says with nobody seen.
MISTRUST = 0.3
# A workload unlike any that was measured, by this much, changes nothing.
UNLIKE = 0.4
# A policy with which somebody waits longer than allowed counts so much of what it does.
UNBOUNDED = 0.5


@dataclasses.dataclass(frozen=True)
class Selection:
    """How to choose: by which profile, for which goal."""

    profile: Profile
    owners: str  # process or none: what schedulers see
    goal: str = "throughput"
    rule: str = "workload"
    longest_wait_ms: float = 5000.0

    def begin(self) -> Chooser:
        """For one run of one disk."""
        return Chooser(self)

    @property
    def learning(self) -> frozenset[str]:
        """Candidates that wait for what they expect: they go by what has been."""
        return frozenset(
            spec
            for spec in self.profile.policies
            if not all(policy.flags & WORK_CONSERVING for policy in check_spec(spec))
        )


def _merit(one: Outcome, goal: str) -> float:
    return one.mb_s if goal == "throughput" else 1 / max(one.p99_ms, 1e-6)


def relative_merits(selection: Selection) -> list[dict[str, float]]:
    """For each cell: each candidate's merit, 1 for the best that lets nobody wait too long.

    Where senders are seen it is what they are worth if they are who reads, and to a part if not.
    """
    cells = selection.profile.cells
    table = [_cell_merits(selection, cell) for cell in cells]
    unseen = {
        cell.name: merits
        for cell, merits in zip(cells, table, strict=True)
        if cell.owners == "none"
    }
    result = []
    for cell, seen in zip(cells, table, strict=True):
        without = unseen.get(cell.name, seen)
        result.append(
            {spec: (1 - MISTRUST) * seen[spec] + MISTRUST * without[spec] for spec in seen}
        )
    return result


def _cell_merits(selection: Selection, cell: Known) -> dict[str, float]:
    """Of one workload with its owners as they were."""
    bounded = {
        spec: _merit(cell.under[spec], selection.goal)
        for spec in selection.profile.policies
        if cell.under[spec].longest_wait_ms <= selection.longest_wait_ms
    }
    best = max(bounded.values(), default=0.0)
    return {
        spec: bounded[spec] / best
        if best and spec in bounded
        else UNBOUNDED * min(1.0, _merit(cell.under[spec], selection.goal) / (best or 1.0))
        for spec in selection.profile.policies
    }


class Chooser:
    """Gives what to begin with, and a Choice whenever it is time for another one."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self._merits = relative_merits(selection)
        self._known = [
            index
            for index, cell in enumerate(selection.profile.cells)
            if cell.owners == selection.owners
        ]
        self._learning = selection.learning
        self._mean = {spec: self._on_the_whole(spec) for spec in selection.profile.policies}
        self.current = self._safest()
        self._window: deque[Observation] = deque()
        self._lost: dict[str, float] = {}  # by not being with that one; in seconds
        self._last: float | None = None  # when the last window ended
        self._changed: list[float] = []  # when the last changes were
        self._past: deque[Looks] = deque(maxlen=STEADY)
        self._settled: Looks | None = None  # what it was chosen for; None: nothing chosen yet
        self._chosen = False  # there was a change in this phase
        self._moved = 0
        self._phase_s = 0.0  # when this phase was noticed
        self._stale = False  # the present policy knows another phase
        self._before: tuple[str, float, Looks | None] | None = None  # on probation: whom
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

        return max(self.selection.profile.policies, key=lambda spec: self._mean[spec])

    def _on_the_whole(self, spec: str) -> float:
        """The geometric mean of its merits."""
        logs = [math.log(max(self._merits[i][spec], 0.01)) for i in self._known]
        return math.exp(sum(logs) / max(len(logs), 1))

    # ---- forecasting ----

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
            for spec in self.selection.profile.policies
        }

    def _best_by_size(self, size_bytes: float) -> str:
        rates = self._by_size(size_bytes)
        return max(rates, key=lambda spec: rates[spec])

    def _neighbours(self, looks: Looks) -> list[tuple[float, int]]:
        """Those workloads of the profile that look most like this one does now, weighed."""
        cells = self.selection.profile.cells
        near = sorted(
            (looks.distance(cells[index].under[self.current].looks), index) for index in self._known
        )[:NEIGHBOURS]
        if near[0][0] > UNLIKE:
            return []
        weights = [1 / (BLUR + distance) ** 2 for distance, _ in near]
        total = sum(weights) + 1 / (BLUR + PRIOR) ** 2
        return [(weight / total, index) for weight, (_, index) in zip(weights, near, strict=True)]

    def _by_neighbours(self, looks: Looks) -> dict[str, float]:
        near = self._neighbours(looks)
        if not near:
            return {self.current: 1.0}
        rest = 1 - sum(weight for weight, _ in near)
        return {
            spec: sum(weight * self._merits[index][spec] for weight, index in near)
            + rest * self._mean[spec]
            for spec in self.selection.profile.policies
        }

    def forecast(self, looks: Looks) -> dict[str, float]:
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
        self._note_phase(looks, now)
        return self._better(now, looks)

    def _note_phase(self, looks: Looks, now: Observation) -> None:
        """Forget that a choice was made when the workload has become another one."""
        if self._settled is None:
            self._settled = looks
            return
        if looks.distance(self._settled) <= MOVED:
            self._moved = 0
            return
        self._moved += 1
        if self._moved >= STEADY:
            self._stale |= now.now_s - self._phase_s >= MEMORY_S
            self._phase_s = now.now_s
            self._settled, self._moved, self._before = looks, 0, None
            self._chosen = False

    def _cost_s(self, now: Observation) -> float:
        """What a change costs now; more where it would be one too many."""
        cost = COST_S
        if self._chosen:
            cost *= AGAIN
        self._changed = [at for at in self._changed if now.now_s - at < RECENT_S]
        return float(cost * 2 ** len(self._changed))

    def _steady(self, looks: Looks) -> int:
        """For how many windows it has looked about like this."""
        for count, past in enumerate(reversed(self._past)):
            if looks.distance(past) > MOVED:
                return count
        return len(self._past)

    def _better(self, now: Observation, looks: Looks) -> Choice | None:
        self.promise = self.forecast(looks)
        passed_s = SAMPLE_S if self._last is None else now.now_s - self._last
        self._last = now.now_s
        self._past.append(looks)
        steady = self._steady(looks)
        if steady < STEADY:
            self._lost.clear()
            return None
        here = max(self.promise[self.current], 1e-3)
        for spec, promise in self.promise.items():
            gain = math.log(max(promise, 1e-3) / here) - NOISE[self.selection.rule]
            self._lost[spec] = max(0.0, self._lost.get(spec, 0.0) + gain * passed_s)
        allowed = [
            spec
            for spec in self.promise
            if spec != self.current and self._banned.get(spec, (0.0, 0.0))[0] <= now.now_s
        ]
        best = max(allowed, key=lambda spec: (self.promise[spec], self._lost[spec]), default="")
        if not best or self._lost[best] < self._cost_s(now):
            return self._anew(now, looks)
        if self.selection.goal == "throughput":
            more = f"{100 * (self.promise[best] / here - 1):.0f} % more throughput"
        else:
            more = f"a p99 {100 * (1 - here / self.promise[best]):.0f} % lower"
        why = f"{looks}: {more} expected"
        return self._change(now, best, why)

    def _anew(self, now: Observation, looks: Looks) -> Choice | None:
        """The present policy again, without what it has learned of another workload."""
        if not self._stale or now.now_s - self._phase_s < PATIENCE_S:
            return None
        self._stale = False
        done = self._done(looks, now)
        # Nobody waits for what only has to be written, and no policy for more of it.
        waited_for = looks.sync >= 0.5
        if self.current not in self._learning or not waited_for or done >= FAILING:
            return None
        why = f"{looks}: {self.current} does {100 * done:.0f} % of what it could, and begins anew"
        choice = self._change(now, self.current, why)
        self._before, self._chosen = None, False
        return choice

    def _done(self, looks: Looks, now: Observation) -> float:
        """What the present policy does, of what the profile has for it with such work."""
        near, then = self._neighbours(looks), self._window[0]
        cells = self.selection.profile.cells
        total = sum(weight for weight, _ in near)
        expected = sum(weight * cells[i].under[self.current].mb_s for weight, i in near)
        expected /= total or 1
        rate = (now.done_bytes - then.done_bytes) / (now.now_s - then.now_s) / 1e6
        return rate / expected if expected else 1.0

    def _change(self, now: Observation, policy: str, why: str) -> Choice:
        self._before = (self.current, self._rate(now), self.looks)
        self.current = policy
        self._chosen, self._stale = True, False
        self._settled, self._moved, self._phase_s = None, 0, now.now_s
        self._lost.clear()
        self._last = None
        self._past.clear()
        self._changed.append(now.now_s)
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
        (before, rate, looked), self._before = self._before, None
        then = self._window[0]
        self._window.appendleft(self._since)
        after = self._rate(now)
        self._window.popleft()
        assert self._window[0] is then
        looks = between(self._since, now)
        if looks is None or looked is None or looks.distance(looked) > MOVED:
            return None
        if after >= WORSE * rate:
            return None
        worse = self.current
        length = 2 * self._banned.get(worse, (0.0, BANNED_S / 2))[1]
        self._banned[worse] = (now.now_s + length, length)
        why = f"{worse} did {100 * (1 - after / rate):.0f} % worse than {before} with the same work"
        choice = self._change(now, before, why)
        self._before = None
        return choice


def _enough(then: Observation, now: Observation) -> bool:
    return now.now_s - then.now_s >= WINDOW_S and now.requests - then.requests >= WINDOW_REQUESTS
