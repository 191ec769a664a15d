# SPDX-License-Identifier: GPL-2.0-only
"""ss against an independent model of the paper's algorithm, and its rules one by one.

The model is written from Xu and Jiang (FAST 2011), section 2.1, Figure 2 and section 3.2, and
shares nothing with core/policy/ss.c but the curve. On 200 random closed-loop workloads every
answer of the scheduler, at every event and at moments between them, must be the model's.
SS_SEED=n repeats a run; the seed of a run is printed.
"""

from __future__ import annotations

import heapq
import os
import random
import secrets
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import pytest
from policy_driver import Driver

Answer = tuple[str, Any]

MS = 1_000_000
NEVER = float("inf")
LOGS = 200
POINTS = [(0, 0), (2_000, 1 * MS), (1_000_000, 5 * MS), (2_000_000_000, 18 * MS)]
SPAN = 1_900_000_000
FAR = 1_500_000_000  # beyond a random request, so nobody's child


# ---- inner policies ----


class Inner(Protocol):
    """A work-conserving scheduler, as far as the model asks."""

    def add(self, rq: Any, now: int) -> None: ...
    def drop(self, rq: Any) -> None: ...
    def send(self, rq: Any, now: int) -> None: ...
    def pick(self, now: int, without: Any = None) -> Any: ...
    def late(self, now: int) -> Any: ...
    def next_late(self, event: int) -> float: ...


class Noop:
    """First come, first served."""

    def __init__(self) -> None:
        self.fifo: list[Any] = []

    def add(self, rq: Any, now: int) -> None:
        self.fifo.append(rq)

    def drop(self, rq: Any) -> None:
        self.fifo.remove(rq)

    def send(self, rq: Any, now: int) -> None:
        self.drop(rq)

    def pick(self, now: int, without: Any = None) -> Any:
        return next((rq for rq in self.fifo if rq != without), None)

    def late(self, now: int) -> Any:
        return None

    def next_late(self, event: int) -> float:
        return NEVER


class Deadline:
    """Linux 2.6.31's deadline scheduler with its defaults."""

    EXPIRE: ClassVar = {0: 500 * MS, 1: 5000 * MS}
    STARVED, BATCH = 2, 16

    def __init__(self) -> None:
        self.fifo: dict[int, list[Any]] = {0: [], 1: []}
        self.came: dict[Any, int] = {}
        self.order = 0
        self.number: dict[Any, int] = {}
        self.goes_on: Any = None  # the next of the batch
        self.direction, self.batched, self.starved = 0, self.BATCH, 0

    def behind(self, rq: Any) -> Any:
        """The next one upwards; of several at one sector the one that came later."""
        place = (rq.sector, self.number[rq])
        above = [o for o in self.fifo[rq.direction] if (o.sector, self.number[o]) > place]
        return min(above, key=lambda o: (o.sector, self.number[o]), default=None)

    def add(self, rq: Any, now: int) -> None:
        self.order += 1
        self.number[rq], self.came[rq] = self.order, now
        self.fifo[rq.direction].append(rq)

    def drop(self, rq: Any) -> None:
        if rq == self.goes_on:
            self.goes_on = self.behind(rq)
        self.fifo[rq.direction].remove(rq)

    def is_late(self, rq: Any, now: int) -> bool:
        return now >= self.came[rq] + self.EXPIRE[rq.direction]

    def oldest(self, direction: int, without: Any = None) -> Any:
        return next((rq for rq in self.fifo[direction] if rq != without), None)

    def pick(self, now: int, without: Any = None) -> Any:
        goes_on = self.goes_on
        if goes_on is not None and goes_on == without:
            goes_on = self.behind(goes_on)
        if goes_on is not None and self.batched < self.BATCH:
            return goes_on
        read, write = self.oldest(0, without), self.oldest(1, without)
        if read is None and write is None:
            return None
        direction = 0
        if read is None or (write is not None and self.starved >= self.STARVED):
            direction = 1
        oldest = write if direction else read
        if self.is_late(oldest, now) or goes_on is None or goes_on.direction != direction:
            return oldest
        return goes_on

    def send(self, rq: Any, now: int) -> None:
        same_batch = (
            self.batched < self.BATCH
            and rq.direction == self.direction
            and (rq == self.goes_on or rq != self.pick(now))
        )
        if not same_batch:
            self.batched = 0
            if rq.direction == 1:
                self.starved = 0
            elif self.fifo[1]:
                self.starved += 1
        self.batched += 1
        self.direction = rq.direction
        self.goes_on = self.behind(rq)
        self.fifo[rq.direction].remove(rq)

    def late(self, now: int) -> Any:
        read, write = self.oldest(0), self.oldest(1)
        if read is not None and self.is_late(read, now):
            return read
        due = read is None or self.starved >= self.STARVED
        return write if write is not None and due and self.is_late(write, now) else None

    def next_late(self, event: int) -> float:
        times = [
            self.came[rq] + self.EXPIRE[direction]
            for direction in (0, 1)
            if (rq := self.oldest(direction)) is not None
        ]
        return min((time for time in times if time > event), default=NEVER)


INNERS = {"noop": Noop, "deadline": Deadline}


# ---- the paper's algorithm ----


@dataclass(eq=False)
class Parent:
    """R of Figure 2."""

    rq: Any
    position: int
    size: int
    service: int = 0
    completion: int | None = None  # None: in the disk
    guessed: bool = False  # nothing was pending, so far

    @property
    def deadline(self) -> float:
        return NEVER if self.completion is None else self.completion + self.service


@dataclass
class Model:
    """The stream scheduler of the paper over @inner."""

    inner: Inner
    service_time: Any  # of two sectors
    mean: int
    threshold: int = 4
    slice_ns: int = 124 * MS
    tolerance: int = 50  # per cent
    parents: list[Parent] = field(default_factory=list)
    sizes: dict[Any, int] = field(default_factory=dict)
    timer_of: Parent | None = None
    child: Any = None
    slice_end: int = 0
    event: int = 0
    chances: int = 0

    def has_chance(self, parent: Parent) -> bool:
        long = 100 * parent.size >= (100 + self.tolerance) * self.threshold
        return long and self.longer(parent) > parent.service

    def longer(self, parent: Parent) -> int:
        return parent.service * (100 + self.tolerance) // 100

    def forget(self, parent: Parent) -> None:
        self.parents.remove(parent)
        if parent is self.timer_of:
            self.timer_of = None

    def begin(self, now: int) -> None:
        """Every event: what timers did before it."""
        while self.timer_of and self.timer_of.deadline <= now:
            parent = self.timer_of
            if self.has_chance(parent):
                self.chances += 1
                parent.service = self.longer(parent)
                parent.size = self.threshold
                self.requeue(parent)
            else:
                self.forget(parent)
        self.event = now

    def requeue(self, parent: Parent) -> None:
        """In order of deadlines; behind those with the same."""
        self.parents.remove(parent)
        self.parents.append(parent)
        self.parents.sort(key=lambda other: other.deadline)

    def weigh(self, parent: Parent, now: int) -> None:
        selected = self.inner.pick(now)
        parent.guessed = selected is None
        parent.service = self.mean
        if selected is not None:
            parent.service = self.service_time(parent.position, selected.sector)
        self.requeue(parent)

    def arrival(self, rq: Any, now: int) -> None:
        self.begin(now)
        self.inner.add(rq, now)
        self.sizes[rq] = 1
        for parent in list(self.parents):
            if parent.deadline < now:
                self.forget(parent)
                continue
            waited = 0 if parent.completion is None else now - parent.completion
            if waited + self.service_time(parent.position, rq.sector) < parent.service:
                self.sizes[rq] = parent.size + 1
                if parent is self.timer_of:
                    self.child = rq
                self.forget(parent)
                break
        for parent in [parent for parent in self.parents if parent.guessed]:
            self.weigh(parent, now)

    def dispatch(self, rq: Any, now: int) -> None:
        self.begin(now)
        if rq != self.child or self.child is None:
            self.slice_end = now + self.slice_ns
        self.child = None
        self.inner.send(rq, now)
        parent = Parent(rq, rq.sector + rq.nr_sectors, self.sizes.pop(rq))
        self.parents.append(parent)
        self.weigh(parent, now)
        self.timer_of = parent if parent.size >= self.threshold else None

    def completion(self, rq: Any, now: int) -> None:
        self.begin(now)
        for parent in self.parents:
            if parent.rq == rq and parent.completion is None:
                parent.completion = now
                self.requeue(parent)
                break

    def removal(self, rq: Any, now: int) -> None:
        self.begin(now)
        if self.child is not None and rq == self.child:
            self.child = None
        del self.sizes[rq]
        self.inner.drop(rq)

    def answer(self, now: int) -> Answer:
        late = self.inner.late(now)
        if late is not None:
            return "dispatch", late
        if self.child is not None and now < self.slice_end:
            return "dispatch", self.child
        selected = self.inner.pick(now, self.child)
        if selected is None:
            return ("nothing", None) if self.child is None else ("dispatch", self.child)
        parent = self.timer_of
        if parent is None:
            return "dispatch", selected
        until: float = self.slice_end
        if parent.completion is not None:
            service = self.longer(parent) if self.has_chance(parent) else parent.service
            until = min(until, parent.completion + service)
        if until <= now:
            return "dispatch", selected
        wakes = self.inner.next_late(self.event)
        return "wait", min(until, wakes) if wakes > now else until


# ---- the logs ----


@dataclass
class Reader:
    """A process that sends its next request some time after one of its own is done."""

    sector: int
    sectors: int
    step: int  # from a request's end to the next one; None-like 0: goes on
    wander: int  # at random within so many sectors, 0: not
    think_ns: int
    outstanding: int
    kind: dict[str, bool]
    left: int

    def next(self, dice: random.Random) -> int:
        sector = self.sector
        if self.wander:
            sector += dice.randrange(self.wander)
        else:
            self.sector = (self.sector + self.sectors + self.step) % SPAN
        return min(max(sector, 0), SPAN)

    def pause(self, dice: random.Random) -> int:
        return dice.choice([0, self.think_ns, dice.randrange(2 * self.think_ns + 1)])


def draw_reader(dice: random.Random) -> Reader:
    return Reader(
        sector=dice.randrange(SPAN),
        sectors=dice.choice([8, 8, 64, 256, 512]),
        step=dice.choice([0, 0, 0, 8, 24, 4096, -16, -1024]),
        wander=dice.choice([0, 0, 0, 10_000, 3_000_000, SPAN]),
        think_ns=dice.choice([0, 20_000, 400_000, 3 * MS, 12 * MS, 60 * MS]),
        outstanding=dice.choice([1, 1, 1, 2, 5]),
        kind=dice.choice([{}, {}, {}, {"write": True}, {"write": True, "sync": True}]),
        left=dice.randrange(20, 120),
    )


class Log:
    """One workload on one disk, the scheduler and the model side by side."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(seed)
        self.inner = dice.choice(list(INNERS))
        tunables: dict[str, int] = {}
        if dice.random() < 0.3:
            tunables["stream_threshold"] = dice.choice([1, 2, 7])
        if dice.random() < 0.3:
            tunables["tolerance_factor"] = dice.choice([0, 1, 200])
        if dice.random() < 0.3:
            tunables["stream_time_slice"] = dice.choice([5, 20, 1000]) * MS
        self.d = d = Driver(f"ss:{self.inner}", **tunables)
        table = d.ffi.new("struct ss_curve_point[]", POINTS)
        self.curve = d.ffi.addressof(d.sched, "curve")
        assert d.lib.ss_curve_set(self.curve, table, len(POINTS), SPAN) == 0
        self.model = Model(
            INNERS[self.inner](),
            lambda a, b: d.lib.ss_curve_service_ns(self.curve, a, b),
            d.sched.curve.mean_random_ns,
            tunables.get("stream_threshold", 4),
            tunables.get("stream_time_slice", 124 * MS),
            tunables.get("tolerance_factor", 50),
        )
        self.depth = dice.choice([1, 1, 1, 2, 4])
        self.fifo = dice.random() < 0.5  # else the drive orders what it has
        self.readers = [draw_reader(dice) for _ in range(dice.randrange(1, 8))]
        self.owner: dict[Any, Reader] = {}
        self.events: list[tuple[int, int, str, Any]] = []
        self.order = self.compared = 0
        self.in_service: Any = None

    def at(self, time: int, what: str, about: Any = None) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, what, about))

    def serve(self) -> None:
        if self.in_service is not None or not self.d.at_disk:
            return
        self.in_service = rq = self.d.at_disk[0] if self.fifo else self.dice.choice(self.d.at_disk)
        cost = self.d.lib.ss_curve_service_ns(self.curve, rq.from_sector, rq.sector)
        cost = round(cost * self.dice.uniform(0.3, 1.2)) + rq.nr_sectors * 5_000
        self.at(self.d.now_ns + cost, "done", rq)

    def compare(self) -> Answer:
        answer = self.d.lib.ss_sched_choose(self.d.sched, self.d.now_ns)
        what, whom = self.model.answer(self.d.now_ns)
        self.compared += 1
        if answer.verdict == self.d.lib.SS_DISPATCH:
            ours: Answer = ("dispatch", answer.rq)
        elif answer.verdict == self.d.lib.SS_WAIT:
            ours = ("wait", answer.until_ns)
        else:
            ours = ("nothing", None)
        assert ours == (what, whom), f"at {self.d.now_ns} ns, decision {self.compared}"
        return what, whom

    def ask(self) -> None:
        while len(self.d.at_disk) < self.depth:
            what, whom = self.compare()
            if what != "dispatch":
                if what == "wait":
                    self.at(int(whom), "ask")
                break
            rq = self.d.dispatch(whom)
            self.model.dispatch(rq, self.d.now_ns)
        self.serve()

    def send(self, reader: Reader) -> None:
        if not reader.left:
            return
        reader.left -= 1
        rq = self.d.send(1, reader.next(self.dice), reader.sectors, **reader.kind)
        self.owner[rq] = reader
        self.model.arrival(rq, self.d.now_ns)

    def done(self, rq: Any) -> None:
        self.in_service = None
        self.d.complete(rq)
        self.model.completion(rq, self.d.now_ns)
        self.more(rq)

    def more(self, rq: Any) -> None:
        reader = self.owner.pop(rq)
        self.at(self.d.now_ns + reader.pause(self.dice), "send", reader)

    def take_back(self) -> None:
        rq = self.dice.choice(self.d.pending)
        self.d.remove(rq)
        self.model.removal(rq, self.d.now_ns)
        self.more(rq)

    def play(self) -> Log:
        for reader in self.readers:
            start = self.dice.randrange(200 * MS)
            for _ in range(reader.outstanding):
                self.at(start, "send", reader)
        while self.events:
            time, _, what, about = heapq.heappop(self.events)
            # A question between events must have the same answer, too.
            if time > self.d.now_ns + 1 and self.dice.random() < 0.2:
                self.d.now_ns = self.dice.randrange(self.d.now_ns + 1, time)
                self.compare()
            self.d.now_ns = time
            if what == "send":
                self.send(about)
            elif what == "done":
                self.done(about)
            if self.d.pending and self.dice.random() < 0.01:
                self.take_back()
            self.ask()
        assert not self.d.pending and not self.d.at_disk
        return self


def test_every_decision_is_the_papers() -> None:
    seed = int(os.environ.get("SS_SEED") or secrets.randbelow(10**9))
    print(f"SS_SEED={seed}")
    compared = chances = 0
    counts = dict.fromkeys(("waits", "hits", "timeouts"), 0)
    for number in range(LOGS):
        try:
            log = Log(seed + number).play()
        except AssertionError as error:
            error.add_note(f"repeat with SS_SEED={seed}; log {number}")
            raise
        compared += log.compared
        chances += log.model.chances
        for counter in counts:
            counts[counter] += log.d.count(counter)
    print(f"{compared} decisions of {LOGS} logs, {counts}, {chances} second chances")
    # Otherwise little was tried.
    assert compared > 50 * LOGS and min(*counts.values(), chances) > LOGS / 4
    assert counts["hits"] + counts["timeouts"] <= counts["waits"]


# ---- the rules, one by one ----


def driver(inner: str = "deadline", **tunables: int) -> Driver:
    d = Driver(f"ss:{inner}", **tunables)
    table = d.ffi.new("struct ss_curve_point[]", POINTS)
    assert d.lib.ss_curve_set(d.ffi.addressof(d.sched, "curve"), table, len(POINTS), SPAN) == 0
    return d


@pytest.fixture
def d() -> Driver:
    return driver()


def establish(d: Driver, members: int = 4) -> tuple[int, Any]:
    """A stream of so many members, the last just served, and somebody else far away."""
    far = None
    for number in range(members):
        rq = d.dispatch(d.send(1, number * 64, 64))
        if number == members - 1:
            far = d.send(2, FAR)
        d.later(1).complete(rq)
    return members * 64, far


def cost_ms(d: Driver, start: int, end: int) -> float:
    return float(d.lib.ss_curve_service_ns(d.ffi.addressof(d.sched, "curve"), start, end)) / MS


@pytest.mark.parametrize("threshold", [1, 4, 9])
def test_a_stream_is_waited_for_from_the_threshold_on(threshold: int) -> None:
    for members in range(1, threshold + 2):
        d = driver(stream_threshold=threshold)
        _, far = establish(d, members)
        if members < threshold:
            assert d.choose() == ("dispatch", far)
        else:
            assert d.choose()[0] == "wait"


def test_the_wait_is_as_long_as_what_would_be_done_instead(d: Driver) -> None:
    end, far = establish(d, 4)
    until = d.now + cost_ms(d, end, FAR)
    assert d.choose() == ("wait", pytest.approx(until))
    assert d.at(until - 0.001).choose()[0] == "wait"
    assert d.at(until).choose() == ("dispatch", far)


@pytest.mark.parametrize(("members", "more"), [(5, 1.0), (6, 1.5)])
def test_the_second_chance(d: Driver, members: int, more: float) -> None:
    """From half as many again as the threshold; and a child may come later, and be farther."""
    end, far = establish(d, members)
    done, cost = d.now, cost_ms(d, end, FAR)
    assert d.choose() == ("wait", pytest.approx(done + more * cost))
    d.at(done + cost + 0.01)
    child = d.send(1, end, 64)
    assert d.choose() == ("dispatch", child if more > 1 else far)


def test_no_second_chance_before_the_timer_has_run_out(d: Driver) -> None:
    """A request that is too far by the inequality is no child, however long the stream."""
    end, far = establish(d, 8)
    beyond = d.send(3, FAR + 300_000_000)
    assert cost_ms(d, end, FAR) < cost_ms(d, end, beyond.sector) < 1.5 * cost_ms(d, end, FAR)
    assert beyond.stream_size == 1
    assert d.choose()[0] == "wait"
    assert far in d.pending


def test_backward_costs_half_as_much_again(d: Driver) -> None:
    assert cost_ms(d, FAR, 0) == pytest.approx(1.5 * cost_ms(d, 0, FAR))
    d.tune("backward_cost", 100)
    assert cost_ms(d, FAR, 0) == pytest.approx(cost_ms(d, 0, FAR))


def test_after_a_slice_the_others_have_the_disk() -> None:
    """The child is passed over even by a policy that would choose it."""
    d = driver("sptf", stream_time_slice=20 * MS)
    end, far = establish(d, 4)
    begun = d.now - 1
    while d.now < begun + 19.5:
        child = d.send(1, end, 64)
        end += 64
        d.serve(child)
    d.at(begun + 21)
    child = d.send(1, end, 64)
    assert child.stream_size > 4
    d.serve(far)
    assert d.choose() == ("dispatch", child)


def test_a_stream_alone_keeps_the_disk_after_its_slice() -> None:
    d = driver(stream_time_slice=5 * MS)
    end, far = establish(d, 4)
    d.remove(far)
    for _ in range(20):
        d.serve(d.send(1, end, 64))
        end += 64


def test_what_has_expired_interrupts() -> None:
    d = driver(stream_time_slice=10_000 * MS)
    end, far = establish(d, 4)
    expires = far.expires_ns / MS
    while d.now < expires - 3:
        d.serve(d.send(1, end, 64))
        end += 64
    verdict, until = d.choose()
    assert (verdict, until) == ("wait", pytest.approx(expires))
    assert d.at(expires).choose() == ("dispatch", far)


def test_times_count_from_completion_also_in_a_full_device(d: Driver) -> None:
    """A child that comes while its parent is in the disk has waited 0."""
    far = d.send(2, FAR)
    for number in range(4):
        rq = d.send(1, number * 64, 64)
        d.remove(far)
        far = d.send(2, FAR)
        d.lib.ss_sched_dispatched(d.sched, rq, d.lib.SS_WHY_ORDER, d.now_ns)
        d.pending.remove(rq)
        d.at_disk.append(rq)
        d.later(50)
        assert rq.stream_size == number + 1
    assert d.choose()[0] == "wait"


def test_more_parents_than_there_is_room_for() -> None:
    """The queue has a bound; what falls out of it is only forgotten."""
    d = driver("noop", stream_threshold=1000)
    sent = [d.send(1, number * 10_000_000) for number in range(150)]
    for _ in sent:
        d.dispatch()
    for rq in sent:
        d.later(0.01).complete(rq)
    assert d.choose() == ("nothing",)
