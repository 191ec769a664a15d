# SPDX-License-Identifier: GPL-2.0-only
"""Every policy's decisions on one fixed workload, byte for byte.

The workload is golden/arrivals.txt (golden/chunks.txt for what tells groups of
processes, golden/shares.txt for what keeps shares), the disk a fixed function of distance. Each
line of a log is a time in ns and what the policy said then, unless it had just
said the same; the counters end it. What stream counts every quarter of a second on
golden/turns.txt and golden/trials.txt is there, so that a changed constant shows.
A change of a policy that is meant changes its logs: make regenerate writes them anew, and
the difference is part of the change.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import zip_longest
from math import isqrt
from pathlib import Path
from typing import Any

import pytest
from policy_driver import Driver

from streamsched._core import ffi, lib
from streamsched.sim import policies
from streamsched.sim.policies import all_policies

GOLDEN = Path(__file__).parents[1] / "golden"
US = 1000
MAX_SECTORS = 256  # of a merged request

POLICIES = all_policies().values()
INNER = [one.name for one in POLICIES if one.flags & policies.WORK_CONSERVING]
# A log for each policy, by what it runs; a wrapper's with each inner one. What stream promises are
# bounds (tests/core/test_stream.py), and its constants show in works of their own.
SPECS = [one.name for one in POLICIES if not one.flags & policies.WRAPPER] + [
    f"{one.name}:{inner}"
    for one in POLICIES
    if one.flags & policies.WRAPPER and one.name != "stream"
    for inner in INNER
]
# More, on other work than arrivals.txt.
OTHERS = {
    "chunks": ["anticipatory", "cooperative"],
    "shares": ["stride", "wfq", "nwcs:stride", "nwcs:wfq"],
    "turns": ["stream:deadline"],
    "trials": ["stream:deadline"],
}
# Of those so often what was counted: its decisions would be thousands of lines.
SAMPLE_NS = 250_000_000
SAMPLED = ("dispatches", "seeks", "waits", "hits", "timeouts", "slices_ended", "idle_ns")
RUNS = {spec.replace(":", "-"): spec for spec in SPECS} | {
    f"{spec.replace(':', '-')}-{work}": spec for work, specs in OTHERS.items() for spec in specs
}


@dataclass
class Source:
    """A line of the workload: who sends what, and when the next."""

    how: str
    name: str
    owner: int
    start_us: int
    count: int
    pause_us: int  # THINK or EVERY
    sector: int
    sectors: int
    extra: int  # STRIDE, SPAN or WINDOW
    kind: str
    sent: int = 0
    out: int = 0

    def sender(self) -> int:
        """Who sends the next request."""
        return self.owner + (self.sent // self.extra if self.how == "chunks" else 0)

    def position(self) -> int:
        """Where the next request is."""
        if self.how == "random":
            # The fractional part of n times the golden ratio: evenly spread.
            return self.sector + (self.sent + 1) * 0x9E3779B9 % 2**32 * self.extra // 2**32
        if self.how == "chunks":
            gap = 8 * (self.sent // self.extra)
            return self.sector + self.sent * self.sectors + gap
        stride = self.sectors if self.how == "ahead" else self.extra
        return self.sector + self.sent * stride


@dataclass
class Arrivals:
    sources: list[Source] = field(default_factory=list)
    gone: list[tuple[int, int]] = field(default_factory=list)  # time in us, owner
    weights: list[tuple[int, int]] = field(default_factory=list)  # owner, weight


def read_arrivals(path: Path) -> Arrivals:
    arrivals = Arrivals()
    for line in path.read_text().splitlines():
        how, *words = line.partition("#")[0].split() or [""]
        if how == "gone":
            arrivals.gone.append((int(words[1]), int(words[0])))
        elif how == "weight":
            arrivals.weights.append((int(words[0]), int(words[1])))
        elif how:
            name, *numbers, kind = words
            assert how in ("closed", "random", "ahead", "open", "chunks"), line
            assert kind in ("read", "write", "sync"), line
            owner, start, count, pause, sector, sectors, extra = map(int, numbers)
            arrivals.sources.append(
                Source(how, name, owner, start, count, pause, sector, sectors, extra, kind)
            )
    return arrivals


def service_ns(head: int, sector: int, sectors: int) -> int:
    """A disk: a seek by distance, a wait by position, 100 MB/s."""
    transfer = sectors * 5 * US
    distance = abs(sector - head)
    if not distance:
        return transfer
    return 800 * US + isqrt(distance) * 200 + sector * 7919 % 8192 * US + transfer


class Run:
    """One policy against the workload; what it said is in lines."""

    def __init__(self, name: str, depth: int) -> None:
        self.d = Driver(RUNS[name])
        self.ffi, self.lib = ffi, lib
        self.depth = depth
        self.lines: list[str] = []
        self.events: list[tuple[int, int, str, Any]] = []  # a heap
        self.order = 0
        self.names: dict[Any, str] = {}
        self.senders: dict[Any, list[Source]] = {}  # a merged request has several
        self.device: list[Any] = []  # oldest first
        self.head = 0
        self.serving: Any = None
        self.answer = ""  # the last one, while it stays the same
        last = name.rpartition("-")[2]
        work = last if last in OTHERS else "arrivals"
        self.sampled_ns = SAMPLE_NS if RUNS[name].startswith("stream:") else 0
        arrivals = read_arrivals(GOLDEN / f"{work}.txt")
        for owner, weight in arrivals.weights:
            assert self.lib.ss_sched_weigh(self.d.sched, owner, weight) == 0
        for source in arrivals.sources:
            self.event(source.start_us * US, "send", source)
        for time_us, owner in arrivals.gone:
            self.event(time_us * US, "gone", owner)

    def event(self, time_ns: int, what: str, about: Any) -> None:
        """Simultaneous events happen in the order in which they were planned."""
        self.order += 1
        heapq.heappush(self.events, (time_ns, self.order, what, about))

    def say(self, text: str) -> None:
        if not self.sampled_ns:
            self.lines.append(f"{self.d.now_ns:012} {text}\n")

    def sample(self, time_ns: int) -> None:
        """What was counted up to each sample before @time_ns."""
        while self.sampled_ns and self.sampled_ns <= time_ns:
            c = self.d.sched.counters
            counted = ", ".join(f"{name} {getattr(c, name)}" for name in SAMPLED)
            self.lines.append(f"{self.sampled_ns:012} {counted}\n")
            self.sampled_ns += SAMPLE_NS

    def send(self, source: Source) -> None:
        d = self.d
        rq = d.request(
            source.sender(),
            source.position(),
            source.sectors,
            write=source.kind != "read",
            sync=source.kind == "sync",
        )
        name = f"{source.name}{source.sent + 1}"
        source.sent += 1
        source.out += 1
        into = self.ffi.new("struct ss_request **")
        if self.lib.ss_sched_find_merge(d.sched, rq, MAX_SECTORS, into):
            grown = into[0]
            self.lib.ss_sched_merged(d.sched, grown, rq, d.now_ns)
            self.say(f"{name} merged into {self.names[grown]}")
            self.senders[grown].append(source)
            join = self.lib.ss_sched_find_join(d.sched, grown, MAX_SECTORS)
            if join:
                self.lib.ss_sched_joined(d.sched, grown, join, d.now_ns)
                d.pending.remove(join)
                self.say(f"{self.names[join]} joined to {self.names[grown]}")
                self.senders[grown] += self.senders.pop(join)
        else:
            self.names[rq], self.senders[rq] = name, [source]
            self.lib.ss_sched_arrived(d.sched, rq, d.now_ns)
            d.pending.append(rq)
        if source.how == "open" or (source.how == "ahead" and source.out < source.extra):
            self.next_of(source)

    def next_of(self, source: Source) -> None:
        if source.sent < source.count:
            self.event(self.d.now_ns + source.pause_us * US, "send", source)

    def serve(self) -> None:
        """The disk takes the nearest of what it has been given."""
        if self.serving or not self.device:
            return
        rq = min(self.device, key=lambda rq: abs(rq.sector - self.head))
        self.device.remove(rq)
        self.serving = rq
        time_ns = service_ns(self.head, rq.sector, rq.nr_sectors)
        self.head = rq.sector + rq.nr_sectors
        self.event(self.d.now_ns + time_ns, "done", rq)

    def done(self, rq: Any) -> None:
        self.serving = None
        self.d.complete(rq)
        for source in self.senders.pop(rq):
            source.out -= 1
            if source.how == "chunks" and source.sent % source.extra == 0:
                self.d.gone(source.owner + source.sent // source.extra - 1)
            if source.how in ("closed", "random", "chunks") or (
                source.how == "ahead" and source.out == source.extra - 1
            ):
                self.next_of(source)

    def ask(self) -> None:
        """Obey until the device is full or the policy has had enough."""
        while len(self.d.at_disk) < self.depth:
            verdict, *rest = self.d.choose()
            if verdict != "dispatch":
                break
            self.d.dispatch(rest[0])
            self.say(f"dispatch {self.names[rest[0]]}")
            self.answer = ""
            self.device.append(rest[0])
        else:
            return
        answer = verdict
        if verdict == "wait" and rest[0] is None:
            answer = "wait for an event"
        elif verdict == "wait":
            until_ns = round(rest[0] * 1e6)
            answer = f"wait until {until_ns:012}"
        if answer != self.answer:
            self.say(answer)
            if answer.startswith("wait until"):
                self.event(until_ns, "ask", None)
        self.answer = answer

    def play(self) -> str:
        actions: dict[str, Callable[[Any], None]] = {
            "send": self.send,
            "gone": self.d.gone,
            "done": self.done,
        }
        while self.events:
            time_ns, _, what, about = heapq.heappop(self.events)
            self.sample(time_ns)
            self.d.now_ns = time_ns
            if what != "ask":
                actions[what](about)
            elif len(self.d.at_disk) == self.depth or not self.d.pending:
                continue
            self.ask()
            self.serve()
        assert not self.d.pending and not self.d.at_disk
        c = self.d.sched.counters
        for counter, _ in self.ffi.typeof(c).fields:
            self.lines.append(f"{counter} {getattr(c, counter)}\n")
        return "".join(self.lines)


def first_difference(old: str, new: str) -> str:
    for number, (was, now) in enumerate(zip_longest(old.splitlines(), new.splitlines()), start=1):
        if was != now:
            return f"line {number}: golden {was!r}, now {now!r}"
    return "only line ends differ"


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("name", RUNS)
def test_decisions_are_the_golden_ones(name: str, depth: int) -> None:
    path = GOLDEN / f"{name}-depth{depth}.log"
    log = Run(name, depth).play()
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(log.encode())
    golden = path.read_bytes().decode() if path.exists() else ""
    # A comparison of the texts themselves would have pytest print both.
    if log != golden:
        where = first_difference(golden, log)
        pytest.fail(
            f"{RUNS[name]} ({path.name}) decides otherwise at {where}\nif that is "
            "meant, make regenerate writes the log anew",
            pytrace=False,
        )


def test_each_log_is_compared() -> None:
    logs = {f"{name}-depth{depth}.log" for name in RUNS for depth in (1, 4)}
    assert {path.name for path in GOLDEN.glob("*.log")} == logs


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("stride-shares", 0.9, 1.1),
        ("wfq-shares", 0.9, 1.1),
        ("nwcs-stride-shares", 1.8, 2.2),
        ("nwcs-wfq-shares", 1.8, 2.2),
    ],
)
def test_golden_logs_keep_shares(name: str, least: float, most: float) -> None:
    """One has twice the weight: only who holds the disk for it gives it twice as much."""
    lines = (GOLDEN / f"{name}-depth1.log").read_text().splitlines()
    served = [line.split()[2] for line in lines if " dispatch " in line][:60]
    one, two = (sum(rq.startswith(who) for rq in served) for who in ("a", "b"))
    assert least <= two / one <= most, (one, two)


def test_golden_logs_wait_and_serve_everything() -> None:
    """The workload makes each waiting policy wait, hit and time out."""
    for name in RUNS:
        for depth in (1, 4):
            lines = (GOLDEN / f"{name}-depth{depth}.log").read_text().splitlines()
            count = dict(line.split() for line in lines[-13:])
            assert count["dispatches"] == count["completions"]
            waits = name.startswith(("ss-", "cfq", "anti", "coop", "nwcs"))
            # Over these nwcs soon finds that nothing comes of waiting here (nobody has
            # a weight), and stream, by its trials, that stride alone serves more.
            vain = name in ("nwcs-noop", "nwcs-linus", "nwcs-stride", "nwcs-wfq")
            if waits and not vain and depth == 1:
                assert int(count["waits"]) and int(count["hits"]) and int(count["timeouts"]), name
