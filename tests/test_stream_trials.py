# SPDX-License-Identifier: GPL-2.0-only
"""stream's trials (core/trial.h): the inner policy alone, where the disk serves more that way.

The scheduler is told a curve by which a switch costs 10 ms. What the disk here
really takes is another matter.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

import pytest
from policy_driver import Driver

Core = tuple[Any, Any]
Cost = Callable[[int, int], float]  # positioning in ms, from a sector to another

MS = 1_000_000
SPAN = 1_000_000_000
FAR = 50_000_000
SECTORS = 64
TRANSFER_MS = 0.2
READERS = 4
SLICE_MS = 124
LONG_TURN_MS = 16 * SLICE_MS


def by_the_curve(head: int, sector: int) -> float:
    return 0 if sector == head else 10


def out_of_the_cache(head: int, sector: int) -> float:
    return 0


class Readers:
    """Each reads on @think_ms after its last request was done. One command at a time."""

    def __init__(self, core: Core, spec: str, cost: Cost, think_ms: float, **tunables: int) -> None:
        self.d = Driver(core, spec, **tunables)
        points = self.d.ffi.new("struct ss_curve_point[]", [(0, 0), (1_000, MS), (10**6, 10 * MS)])
        curve = self.d.ffi.addressof(self.d.sched, "curve")
        assert self.d.lib.ss_curve_set(curve, points, 3, SPAN) == 0
        self.cost, self.think_ms = cost, think_ms
        self.due = [(0.1 * n, n, n * FAR) for n in range(READERS)]  # ms, reader, sector
        self.done: list[tuple[float, float]] = []  # ms, its wait
        self.pending: dict[int, Any] = {}
        self.head = 0

    def ask(self) -> float:
        """Serve what is chosen, or say when to ask again."""
        d, lib = self.d, self.d.lib
        said = lib.ss_sched_choose(d.sched, d.now_ns)
        if said.verdict != lib.SS_DISPATCH:
            times = [self.due[0][0]] if self.due else []
            if said.verdict == lib.SS_WAIT:
                times.append(said.until_ns / MS)
            return min(times)
        rq = said.rq
        waited = d.now - rq.arrival_ns / MS
        lib.ss_sched_dispatched(d.sched, rq, d.now_ns)
        self.pending.pop(rq.owner)
        self.arrive(d.now + self.cost(self.head, rq.sector) + TRANSFER_MS)
        lib.ss_sched_completed(d.sched, rq, d.now_ns)
        self.head = rq.sector + rq.nr_sectors
        self.done.append((d.now, waited))
        self.go_on(rq.owner)
        return d.now

    def go_on(self, owner: int) -> None:
        heapq.heappush(self.due, (self.d.now + self.think_ms, owner, self.head))

    def arrive(self, until_ms: float) -> None:
        while self.due and self.due[0][0] <= until_ms:
            at_ms, owner, sector = heapq.heappop(self.due)
            self.pending[owner] = self.d.at(at_ms).send(owner, sector, SECTORS)
        self.d.at(until_ms)

    def run(self, until_ms: float) -> Readers:
        while self.d.now < until_ms:
            self.arrive(self.ask())
            self.forget()
        return self

    def forget(self) -> None:
        """Each has one request: what is not pending is done."""
        self.d.pending.clear()
        self.d.keep = list(self.pending.values())

    def rate(self, from_ms: float, to_ms: float) -> float:
        """Requests per ms."""
        return sum(from_ms <= at < to_ms for at, _ in self.done) / (to_ms - from_ms)


def test_readers_that_the_drives_cache_serves_are_not_held_for(core: Core) -> None:
    """Each thinks for 1 ms; held for, one keeps the others waiting meanwhile."""
    alone = Readers(core, "cscan", out_of_the_cache, 1).run(12_000)
    stream = Readers(core, "stream:cscan", out_of_the_cache, 1).run(12_000)
    assert stream.rate(0, 600) < 0.5 * alone.rate(0, 600)
    assert stream.rate(0, 12_000) >= 0.93 * alone.rate(0, 12_000)
    assert stream.rate(5000, 12_000) >= 0.97 * alone.rate(5000, 12_000)


def test_where_the_head_must_move_it_is_held(core: Core) -> None:
    """Trials cost little there: one switch in a slice is 13 ms for 124."""
    stream = Readers(core, "stream:noop", by_the_curve, 0.3).run(12_000)
    alone = Readers(core, "noop", by_the_curve, 0.3).run(3000)
    assert stream.rate(0, 12_000) >= 10 * alone.rate(0, 3000)
    possible = (1 - 10.2 / SLICE_MS) / (TRANSFER_MS + 0.3)
    assert stream.rate(2000, 12_000) >= 0.95 * possible


TARGET_MS = 500
AIMED = {"stream_time_slice": 0, "wait_target": TARGET_MS * MS}


def test_with_a_target_for_waits_the_cache_is_found_out_too(core: Core) -> None:
    alone = Readers(core, "cscan", out_of_the_cache, 1).run(12_000)
    aimed = Readers(core, "stream:cscan", out_of_the_cache, 1, **AIMED).run(12_000)
    untried = Readers(core, "stream:cscan", out_of_the_cache, 1, **AIMED, trials=0).run(12_000)
    assert untried.rate(3000, 8000) < 0.5 * alone.rate(3000, 8000)
    assert aimed.rate(0, 12_000) >= 0.87 * alone.rate(0, 12_000)
    assert aimed.rate(5000, 12_000) >= 0.97 * alone.rate(5000, 12_000)


def test_with_a_target_for_waits_trials_cost_hardly_anything(core: Core) -> None:
    """Where the head must move: two in the first 8 s, 20 ms each and two switches."""
    aimed, untried = (
        Readers(core, "stream:noop", by_the_curve, 0.3, **AIMED, trials=trials).run(12_000)
        for trials in (1, 0)
    )
    assert 1 > aimed.rate(2000, 12_000) / untried.rate(2000, 12_000) >= 0.985
    for readers in (aimed, untried):
        assert max(waited for at, waited in readers.done) <= TARGET_MS + 10.5


def test_without_trials_there_are_no_more_turns_than_the_target_asks_for(core: Core) -> None:
    stream = Readers(core, "stream:noop", by_the_curve, 0.3, **AIMED, trials=0).run(6000)
    turns = stream.d.count("seeks") - 4 * READERS
    assert turns <= 3 * 6000 / TARGET_MS * 1.12 + 2


def test_a_trial_won_by_what_was_in_the_cache_is_regretted(core: Core) -> None:
    """What the drive had read ahead lasts for the trial, and for no longer."""
    far = 0

    def cost(head: int, sector: int) -> float:
        nonlocal far
        far += sector != head
        return 10 if sector != head and not 3 < far < 4000 else 0

    aimed = Readers(core, "stream:noop", cost, 1, **AIMED).run(6000)
    assert far > 4000  # there was one, and it was won
    # Holding would else be tried after 5 s of that.
    possible = (1 - 10.2 / (TARGET_MS / (READERS - 1))) / (TRANSFER_MS + 1)
    assert aimed.rate(4000, 6000) >= 0.9 * possible


def test_a_trial_that_is_regretted_is_tried_again_after_ever_longer_pauses(core: Core) -> None:
    """The drive has as much in its cache after each of the turns that holding makes."""
    trials: list[float] = []  # when seeks began to follow each other
    nr, last = 0, 0.0

    def cost(head: int, sector: int) -> float:
        nonlocal nr, last
        if sector == head:
            return 0
        nr = nr + 1 if aimed.d.now - last <= 20 else 1
        last = aimed.d.now
        if nr == 100:
            trials.append(last)
        return 0 if 1 < nr <= 3000 else 10

    aimed = Readers(core, "stream:noop", cost, 1, **AIMED)
    aimed.run(40_000)
    first, second, third = trials
    assert 1500 < first < 2000
    assert second - first >= 3 * first
    assert third - second >= 3 * (second - first)


class WithOneAtRandom(Readers):
    """The last one reads at random, first by itself and with long pauses."""

    def __init__(self, core: Core, pause_ms: float) -> None:
        super().__init__(core, "stream:noop", by_the_curve, 0.3)
        self.draw, self.pause_ms, others = random.Random(1), pause_ms, self.due
        self.due = [(0.0, READERS, SPAN // 2)]
        self.run(1000)
        self.pause_ms, self.begun_ms = 0.0, self.d.now
        for after_ms, owner, sector in others:
            heapq.heappush(self.due, (self.begun_ms + after_ms, owner, sector))

    def go_on(self, owner: int) -> None:
        if owner < READERS:
            super().go_on(owner)
            return
        heapq.heappush(self.due, (self.d.now + self.pause_ms, owner, self.draw.randrange(SPAN)))


def test_a_time_without_requests_is_no_cost_of_holding(core: Core) -> None:
    """What came after each pause would else be dear, and cheap in the trial."""
    readers = WithOneAtRandom(core, 100)
    begun_ms = readers.begun_ms
    readers.run(begun_ms + 3000)
    assert readers.rate(begun_ms + 1000, begun_ms + 3000) >= 1.5


def test_trials_turned_off_while_the_inner_policy_is_alone(core: Core) -> None:
    alone = Readers(core, "cscan", out_of_the_cache, 1).run(5000)
    readers = Readers(core, "stream:cscan", out_of_the_cache, 1, **AIMED).run(5000)
    assert readers.rate(4000, 5000) >= 0.97 * alone.rate(4000, 5000)
    readers.d.tune("trials", 0)
    readers.run(6000)
    assert readers.rate(5200, 6000) < 0.5 * alone.rate(4000, 5000)


def test_a_slice_set_and_a_target_while_the_inner_policy_is_alone(core: Core) -> None:
    """Each begins with holding, and finds it out for itself."""
    alone = Readers(core, "cscan", out_of_the_cache, 1).run(5000)
    readers = Readers(core, "stream:cscan", out_of_the_cache, 1, **AIMED).run(5000)
    for since, slice_ns in ((5000, SLICE_MS * MS), (10_000, 0)):
        readers.d.tune("stream_time_slice", slice_ns)
        readers.run(since + 5000)
        assert readers.rate(since, since + 500) < 0.5 * alone.rate(4000, 5000)
        assert readers.rate(since + 4000, since + 5000) >= 0.97 * alone.rate(4000, 5000)


def test_with_a_target_nobody_waits_longer_for_the_inner_policy_alone(core: Core) -> None:
    """In turns, in trials and after one was won alike."""
    aimed = Readers(core, "stream:cscan", out_of_the_cache, 1, **AIMED).run(20_000)
    assert max(waited for _, waited in aimed.done) <= TARGET_MS + 10.5


def test_with_a_target_the_inner_policy_alone_passes_nobody_over_for_longer(core: Core) -> None:
    """It is alone when the readers stop thinking; cscan then stays with one for ever."""
    readers = Readers(core, "stream:cscan", out_of_the_cache, 1, **AIMED).run(4000)
    readers.think_ms = 0
    readers.run(7000)
    waits = [waited for at, waited in readers.done if at > 4000]
    waits += [readers.d.now - rq.arrival_ns / MS for rq in readers.pending.values()]
    assert max(waits) > 2.9 * TARGET_MS  # held for by turns, each of the four waits for one target
    assert max(waits) <= (READERS - 1) * TARGET_MS + 10.2


@pytest.mark.parametrize(("inner", "turn_ms"), [("noop", SLICE_MS), ("cscan", LONG_TURN_MS)])
def test_rule_5_bounds_waits_also_with_the_inner_policy_alone(
    core: Core, inner: str, turn_ms: float
) -> None:
    """noop by itself takes turns; cscan would serve one reader for ever."""
    stream = Readers(core, f"stream:{inner}", by_the_curve, 0).run(30_000)
    longest = max(waited for at, waited in stream.done if at > 1000)
    assert longest <= (turn_ms + TRANSFER_MS) * (READERS - 1) + 10.2
    served = {int(at // (4 * LONG_TURN_MS)) for at, waited in stream.done if waited > SLICE_MS}
    assert len(served) >= 3  # over and over


def test_a_request_remembers_where_the_head_was(core: Core) -> None:
    """Also with another one sent after it: what positioning should take is asked for later."""
    d = Readers(core, "stream:cscan", by_the_curve, 0).d
    first, second, third = (d.send(1, sector, SECTORS) for sector in (FAR, 2 * FAR, 3 * FAR))
    places = []
    for rq in (first, second, third):
        places.append(int(d.sched.head_sector))
        d.dispatch(rq)
    assert places == [0, FAR + SECTORS, 2 * FAR + SECTORS]
    for rq in (first, second, third):
        d.later(5)
        d.complete(rq)
    assert [rq.from_sector for rq in (first, second, third)] == places
