# SPDX-License-Identifier: GPL-2.0-only
"""Drive one scheduler through the calls of core/sched.h, at times given in ms.

Every question is asked twice, and the scheduler's memory and that of the
pending requests must be the same bytes afterwards: choose() is pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamsched._core import ffi, lib

FAR = 400_000_000  # sectors; nothing near zero is close to it
FOREVER = None


class Driver:
    """A scheduler, its clock and the requests it knows of."""

    def __init__(self, spec: str, **tunables: int) -> None:
        self.ffi, self.lib = ffi, lib
        self.sched = self.ffi.new("struct ss_sched *")
        self.why = self.ffi.new("char[160]")
        assert self.lib.ss_sched_init(self.sched, spec.encode(), 2**31, self.why, 160) == 0
        self.now_ns = 0
        self.head = -1  # where what serve_when_chosen() served last ends; nobody knows at first
        self.pending: list[Any] = []
        self.at_disk: list[Any] = []
        self.keep: list[Any] = []  # C does not own what it links together
        for name, value in tunables.items():
            self.tune(name, value)

    def tune(self, name: str, value: int) -> None:
        result = self.lib.ss_sched_tune(
            self.sched, name.encode(), value, self.now_ns, self.why, 160
        )
        assert result == 0, self.ffi.string(self.why)

    def at(self, ms: float) -> Driver:
        """Move the clock to @ms."""
        self.now_ns = max(self.now_ns, round(ms * 1e6))
        return self

    def later(self, ms: float) -> Driver:
        self.now_ns += round(ms * 1e6)
        return self

    @property
    def now(self) -> float:
        return self.now_ns / 1e6

    def request(
        self,
        owner: int,
        sector: int,
        sectors: int = 8,
        *,
        write: bool = False,
        sync: bool = False,
        meta: bool = False,
        placing: bool = False,
        ahead: bool = False,
        handed_on: bool = False,
    ) -> Any:
        rq = self.ffi.new("struct ss_request *")
        rq.owner, rq.sector, rq.nr_sectors = owner, sector, sectors
        rq.direction = self.lib.SS_WRITE if write else self.lib.SS_READ
        rq.flags = (self.lib.SS_SYNC if sync else 0) | (self.lib.SS_META if meta else 0)
        rq.flags |= self.lib.SS_PLACING if placing else 0
        rq.flags |= self.lib.SS_AHEAD if ahead else 0
        rq.flags |= self.lib.SS_SYNC | self.lib.SS_HANDED_ON if handed_on else 0
        self.keep.append(rq)
        return rq

    def send(self, owner: int, sector: int, sectors: int = 8, **kind: bool) -> Any:
        """A request arrives now; a read unless write=True."""
        rq = self.request(owner, sector, sectors, **kind)
        self.lib.ss_sched_arrived(self.sched, rq, self.now_ns)
        self.pending.append(rq)
        return rq

    def memory(self) -> list[bytes]:
        return [bytes(self.ffi.buffer(it)) for it in (self.sched, *self.pending)]

    def choose(self) -> tuple[Any, ...]:
        """("dispatch", rq), ("wait", until in ms or FOREVER) or ("nothing",)."""
        before = self.memory()
        first = self.lib.ss_sched_choose(self.sched, self.now_ns)
        second = self.lib.ss_sched_choose(self.sched, self.now_ns)
        assert self.memory() == before
        assert (first.verdict, first.rq, first.until_ns) == (
            second.verdict,
            second.rq,
            second.until_ns,
        )
        if first.verdict == self.lib.SS_DISPATCH:
            return "dispatch", next(rq for rq in self.pending if rq == first.rq)
        if first.verdict == self.lib.SS_WAIT:
            forever = first.until_ns == self.lib.SS_FOREVER
            assert self.at_disk or not forever, "would wait without end"
            assert first.until_ns > self.now_ns
            return "wait", FOREVER if forever else first.until_ns / 1e6
        assert not self.pending
        return ("nothing",)

    def dispatch(self, expected: Any = None) -> Any:
        """The disk takes what is chosen."""
        verdict, *rest = self.choose()
        assert verdict == "dispatch", (verdict, rest)
        rq = rest[0]
        assert expected is None or rq == expected, f"sector {rq.sector}, not {expected.sector}"
        self.reason = self.lib.ss_sched_choose(self.sched, self.now_ns).why
        self.pending.remove(rq)
        self.lib.ss_sched_dispatched(self.sched, rq, self.reason, self.now_ns)
        self.at_disk.append(rq)
        return rq

    def wait(self) -> Driver:
        """Move the clock to when the disk is to take something."""
        while (decision := self.choose())[0] == "wait":
            self.at(decision[1])
        return self

    def complete(self, rq: Any = None) -> Any:
        rq = self.at_disk[0] if rq is None else rq
        self.at_disk.remove(rq)
        self.lib.ss_sched_completed(self.sched, rq, self.now_ns)
        return rq

    def serve(self, expected: Any = None, ms: float = 1) -> Any:
        """The disk takes what is chosen and does it in @ms."""
        rq = self.dispatch(expected)
        self.later(ms)
        return self.complete(rq)

    def serve_beside(
        self, owner: int, sector: int, other: int = 2, *, ms: float, **kind: bool
    ) -> Any:
        """@owner's request is at the disk for @ms; meanwhile a far read of @other comes."""
        rq = self.dispatch(self.send(owner, sector, **kind))
        pending = self.send(other, FAR)
        self.later(ms).complete(rq)
        return pending

    def serve_when_chosen(self, next_ms: float, far_ms: float) -> Any:
        """The disk waits as long as it is told to; what goes on where it is takes @next_ms."""
        rq = self.wait().dispatch()
        self.later(next_ms if rq.sector == self.head else far_ms)
        self.head = rq.sector + rq.nr_sectors
        return self.complete(rq)

    def remove(self, rq: Any) -> None:
        self.pending.remove(rq)
        self.lib.ss_sched_removed(self.sched, rq, self.now_ns)

    def merge(self, into: Any, sectors: int = 8, *, front: bool = False, **kind: bool) -> None:
        """What comes now behind @into, or before it, becomes a part of it."""
        sector = into.sector - sectors if front else into.sector + into.nr_sectors
        rq = self.request(into.owner, sector, sectors, **kind)
        rq.direction = into.direction
        self.lib.ss_sched_merged(self.sched, into, rq, self.now_ns)

    def gone(self, owner: int) -> None:
        self.lib.ss_sched_owner_gone(self.sched, owner, self.now_ns)

    def flushes(self, *, begins: bool) -> None:
        self.lib.ss_sched_flushes(self.sched, begins, self.now_ns)

    def count(self, counter: str) -> int:
        return int(getattr(self.sched.counters, counter))

    def waits(self) -> tuple[int, int, int]:
        """How many there were, and how many ended with what was waited for, and without."""
        return self.count("waits"), self.count("hits"), self.count("timeouts")


def read_with_another_pending(d: Driver, owner: int = 1, other: int = 2) -> Any:
    """@owner's read at sector 0 completes after 5 ms; a far one of @other is pending."""
    rq = d.dispatch(d.send(owner, 0))
    d.later(1)
    pending = d.send(other, FAR)
    d.later(4).complete(rq)
    return pending


@dataclass(frozen=True)
class Step:
    """What a generated workload does after @after_us."""

    after_us: int
    action: str  # send, remove, gone, merge
    owner: int
    sector: int
    sectors: int
    write: bool
    sync: bool
    meta: bool


def play(
    spec: str, steps: Sequence[Step], depth: int, service_us: int
) -> tuple[list[int], list[int]]:
    """Run @steps on a disk of @depth; the sectors in order of dispatch, the counters.

    Asserts that every request that arrives is dispatched once and completes,
    unless it is taken back or merged.
    """
    d = Driver(spec)
    due: list[tuple[int, Any]] = []  # completions
    order: list[int] = []
    served = lost = 0
    arrival_ns = 0
    todo = list(steps)
    if todo:
        arrival_ns = todo[0].after_us * 1000
    idle_rounds = 0

    def act(step: Step) -> int:
        kind = {"write": step.write, "sync": step.sync, "meta": step.meta}
        if step.action == "gone":
            d.gone(step.owner)
        elif step.action == "remove" and d.pending:
            d.remove(d.pending[step.sector % len(d.pending)])
            return 1
        elif step.action == "merge":
            rq = d.request(step.owner, step.sector, step.sectors, **kind)
            into = d.ffi.new("struct ss_request **")
            if d.lib.ss_sched_find_merge(d.sched, rq, 1024, into):
                d.lib.ss_sched_merged(d.sched, into[0], rq, d.now_ns)
                join = d.lib.ss_sched_find_join(d.sched, into[0], 1024)
                if join:
                    d.pending.remove(join)
                    d.lib.ss_sched_joined(d.sched, into[0], join, d.now_ns)
                    return 1
        else:
            d.send(step.owner, step.sector, step.sectors, **kind)
        return 0

    while todo or d.pending or d.at_disk:
        until_ns: int | None = None
        while len(d.at_disk) < depth:
            verdict, *rest = d.choose()
            if verdict == "dispatch":
                order.append(d.dispatch(rest[0]).sector)
                due.append((d.now_ns + service_us * 1000, rest[0]))
                idle_rounds = 0
                continue
            if verdict == "wait" and rest[0] is not FOREVER:
                until_ns = round(rest[0] * 1e6)
            break
        times = [t for t, _ in due[:1]] + ([arrival_ns] if todo else [])
        if until_ns is not None:
            times.append(until_ns)
        assert times, "nothing will ever happen"
        d.now_ns = max(d.now_ns, min(times))
        if due and due[0][0] <= d.now_ns:
            d.complete(due.pop(0)[1])
            served += 1
        elif todo and arrival_ns <= d.now_ns:
            lost += act(todo.pop(0))
            if todo:
                arrival_ns = d.now_ns + todo[0].after_us * 1000
        else:
            idle_rounds += 1
            assert idle_rounds < 1000, "waits again and again"
    assert d.choose() == ("nothing",)
    assert served == len(order) == d.count("dispatches") == d.count("completions")
    assert d.count("arrivals") == served + lost
    assert d.count("timeouts") + d.count("hits") <= d.count("waits")
    c = d.sched.counters
    return order, [c.waits, c.hits, c.timeouts, c.slices_ended, c.expired, c.seeks, c.idle_ns]
