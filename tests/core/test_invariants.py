# SPDX-License-Identifier: GPL-2.0-only
"""The invariants of design.md, for every policy, over any sequence of events.

A generated list of steps is played on one scheduler by a host that keeps its
own books: which request stands for which sectors, what is in the disk, what
was taken back. Every answer of the scheduler is checked against them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_driver import Driver

from streamsched._core import ffi, lib
from streamsched.sim import policies
from streamsched.sim.policies import all_policies

Piece = tuple[int, int]  # first sector, and the one behind the last

POLICIES = all_policies().values()
WORK_CONSERVING = [one.name for one in POLICIES if one.flags & policies.WORK_CONSERVING]
STREAMS, NWCS = ([f"{outer}:{inner}" for inner in WORK_CONSERVING] for outer in ("stream", "nwcs"))
SPECS = [
    spec
    for one in POLICIES
    for spec in (
        [f"{one.name}:{inner}" for inner in WORK_CONSERVING]
        if one.flags & policies.WRAPPER
        else [one.name]
    )
]
US = 1000
MS = 1_000_000
MAX_SECTORS = 256  # of a merged request
FLAT = [(0, 100_000)]


every_policy = pytest.mark.parametrize("spec", SPECS)
every_stream = pytest.mark.parametrize("spec", STREAMS)


@dataclass(frozen=True)
class Step:
    """After @after_us one thing happens; then the host asks, if it @asks."""

    what: str  # send, read, read_on, done, remove, gone, tune
    after_us: int
    number: int  # a position, or which of several
    sectors: int
    kind: int  # read, synchronous write, metadata read, asynchronous write
    owner: int
    asks: bool


def steps(*what: str) -> st.SearchStrategy[list[Step]]:
    """Steps; readers that go on where they were, and completions, are common."""
    step = st.builds(
        Step,
        what=st.sampled_from(what),
        after_us=st.sampled_from([0, 10, 300, 1_000, 3_000, 8_000, 20_000, 150_000, 700_000]),
        number=st.integers(0, 400),
        sectors=st.sampled_from([1, 8, 64, 200]),
        kind=st.sampled_from([0, 0, 0, 0, 1, 2, 3]),
        owner=st.integers(0, 3),
        asks=st.sampled_from([True, True, True, False]),
    )
    return st.lists(step, max_size=120)


ALL = ("send", "read", "read_on", "read", "done", "done", "done", "remove", "gone", "tune")
# What the disk and its users do when they do not change their minds.
PLAIN = ("send", "read", "read_on", "read_on", "done", "done")


class Host:
    """A host that obeys and keeps books."""

    def __init__(self, spec: str, depth: int, points: Any = None) -> None:
        self.d = Driver(spec)
        self.ffi, self.lib = ffi, lib
        self.depth = depth
        if points is not None:
            table = self.ffi.new("struct ss_curve_point[]", points)
            curve = self.ffi.addressof(self.d.sched, "curve")
            assert self.lib.ss_curve_set(curve, table, len(points), 2**31) == 0
        self.pieces: dict[Any, list[Piece]] = {}  # of each pending or dispatched request
        self.number: dict[Any, int] = {}  # in the order of arrival
        self.over: set[Any] = set()  # never to be seen again
        self.log: list[tuple[Any, ...]] = []
        self.at = [n * 250_000_000 for n in range(4)]  # where the readers are
        self.sent = self.merged = self.removed = 0
        self.waits_ended_ns: int | None = None

    # What can happen.

    def send(self, sector: int, sectors: int, kind: int, owner: int) -> None:
        d = self.d
        rq = d.request(
            owner,
            sector,
            sectors,
            write=kind in (1, 3),
            sync=kind == 1,
            meta=kind == 2,
        )
        rq.weight = (0, 50, 200, 10_000)[owner]
        self.sent += 1
        into = self.ffi.new("struct ss_request **")
        how = self.lib.ss_sched_find_merge(d.sched, rq, MAX_SECTORS, into)
        if how == self.lib.SS_MERGE_NONE:
            self.lib.ss_sched_arrived(d.sched, rq, d.now_ns)
            d.pending.append(rq)
            self.number[rq] = self.sent
            self.pieces[rq] = [(sector, sector + sectors)]
            return
        grown = into[0]
        assert grown in d.pending
        assert (grown.direction, grown.flags) == (rq.direction, rq.flags)
        assert grown.nr_sectors + sectors <= MAX_SECTORS
        if how == self.lib.SS_MERGE_BACK:
            assert grown.sector + grown.nr_sectors == sector
        else:
            assert sector + sectors == grown.sector
        self.lib.ss_sched_merged(d.sched, grown, rq, d.now_ns)
        self.merged += 1
        self.pieces[grown].append((sector, sector + sectors))
        self.covers(grown)
        join = self.lib.ss_sched_find_join(d.sched, grown, MAX_SECTORS)
        if join:
            assert join in d.pending and join != grown
            self.lib.ss_sched_joined(d.sched, grown, join, d.now_ns)
            d.pending.remove(join)
            self.over.add(join)
            self.pieces[grown] += self.pieces.pop(join)
            self.covers(grown)

    def covers(self, rq: Any) -> None:
        """Its sectors are those of the requests it stands for, each once."""
        at = rq.sector
        for first, behind in sorted(self.pieces[rq]):
            assert first == at
            at = behind
        assert at == rq.sector + rq.nr_sectors

    def remove(self, rq: Any) -> None:
        self.d.remove(rq)
        self.over.add(rq)
        self.removed += len(self.pieces.pop(rq))

    def done(self, rq: Any) -> None:
        self.d.complete(rq)
        self.over.add(rq)
        del self.pieces[rq]
        self.log.append((self.d.now_ns, "done", self.number[rq]))

    def tune(self, which: int) -> None:
        """A tunable becomes its least, its greatest or its usual value."""
        rows = [
            row
            for i in range(self.d.sched.nr_policies)
            for row in tunables(self.ffi, self.d.sched.policy[i].ops)
        ]
        if rows:
            row = rows[which // 3 % len(rows)]
            value = (row.min, row.max, row.initial)[which % 3]
            self.d.tune(self.ffi.string(row.name).decode(), value)

    # What the scheduler answers.

    def ask(self) -> None:
        """Obey until the disk is full; Driver.choose() asserts that asking changes nothing."""
        d, lib = self.d, self.lib
        self.waits_ended_ns = None
        while len(d.at_disk) < self.depth:
            decision = lib.ss_sched_choose(d.sched, d.now_ns)
            verdict, *rest = d.choose()
            if verdict == "dispatch":
                rq = rest[0]
                assert rq not in self.over
                self.covers(rq)
                d.dispatch(rq)
                self.log.append((d.now_ns, "dispatch", self.number[rq]))
                continue
            self.log.append((d.now_ns, verdict, decision.until_ns if rest else 0))
            if verdict == "wait" and not d.at_disk:
                self.waits_ended_ns = decision.until_ns
                self.idles(decision.until_ns)
            break
        assert d.sched.nr_pending == len(d.pending)
        assert d.sched.nr_in_flight == len(d.at_disk)

    def idles(self, until_ns: int) -> None:
        """The disk is kept idle with requests pending; for subclasses."""

    # The play.

    def step(self, step: Step) -> None:
        d = self.d
        d.later(step.after_us / 1000)
        if step.what == "send":
            # Positions that touch and overlap each other, in eight regions.
            region, place = divmod(step.number, 50)
            self.send(region * 250_000_000 + place * 8, step.sectors, step.kind, step.owner)
        elif step.what == "read":
            self.read(step)
        elif step.what == "read_on":
            # A few in a row, each as soon as the one before is done.
            for _ in range(1 + step.sectors % 9):
                self.read(step)
                self.ask()
                d.later(0.5)
                if d.at_disk:
                    self.done(d.at_disk[-1])
        elif step.what == "done" and d.at_disk:
            self.done(d.at_disk[step.number % len(d.at_disk)])
        elif step.what == "remove" and d.pending:
            self.remove(d.pending[step.number % len(d.pending)])
        elif step.what == "gone":
            d.gone(step.owner)
        elif step.what == "tune":
            self.tune(step.number)
        if step.asks:
            self.ask()

    def read(self, step: Step) -> None:
        """One of four readers goes on; now and then it skips a little."""
        reader = step.number % 4
        skip = step.number // 4 % 25
        self.send(self.at[reader] + (skip if skip < 5 else 0) * 100, 8, 0, step.owner)
        self.at[reader] = self.d.keep[-1].sector + 8

    def drain(self) -> None:
        """No more comes: everything pending is served."""
        rounds = 0
        self.ask()
        while self.d.pending or self.d.at_disk:
            rounds += 1
            assert rounds < 20 * (self.sent + 10), "waits again and again"
            if self.d.at_disk:
                self.d.later(1)
                self.done(self.d.at_disk[0])
            else:
                assert self.waits_ended_ns is not None, "nothing is to happen"
                self.d.now_ns = self.waits_ended_ns
            self.ask()

    def play(self, todo: list[Step]) -> Host:
        for step in todo:
            self.step(step)
        self.drain()
        return self


def tunables(ffi: Any, ops: Any) -> list[Any]:
    return [ops.tunables[i] for i in range(ops.nr_tunables)]


def value_of(d: Driver, name: bytes) -> int:
    for i in range(d.sched.nr_policies):
        policy = d.sched.policy[i]
        for n, row in enumerate(tunables(d.ffi, policy.ops)):
            if d.ffi.string(row.name) == name:
                return int(policy.value[n])
    raise KeyError(name)


# No request lost, none dispatched twice, asking changes nothing, sectors
# covered once, what is removed stays away: all in Host.


@every_policy
@given(todo=steps(*ALL), depth=st.sampled_from([1, 2, 8, 32]))
@settings(max_examples=60)
def test_every_request_is_served_once_or_taken_back(
    spec: str, todo: list[Step], depth: int
) -> None:
    host = Host(spec, depth).play(todo)
    c = host.d.sched.counters
    assert c.arrivals == host.sent - host.merged
    assert c.dispatches == c.completions
    assert not host.pieces
    joined = c.merges - host.merged
    assert c.arrivals == c.dispatches + c.removals + joined
    assert c.hits + c.timeouts <= c.waits
    assert c.idle_ns <= host.d.now_ns


@every_policy
@given(todo=steps(*ALL), depth=st.sampled_from([1, 4]))
@settings(max_examples=30)
def test_the_same_events_have_the_same_answers(spec: str, todo: list[Step], depth: int) -> None:
    first = Host(spec, depth).play(todo)
    second = Host(spec, depth).play(todo)
    assert first.log == second.log


POINTS = [(0, 0), (1_000, 1 * MS), (1_000_000, 5 * MS), (2_000_000_000, 20 * MS)]


class Limited(Host):
    """A host that holds nwcs to its limit."""

    def idles(self, until_ns: int) -> None:
        limit_ns = value_of(self.d, b"wait_limit")
        assert until_ns - self.d.sched.idle_since_ns <= limit_ns


@pytest.mark.parametrize("spec", NWCS)
@given(todo=steps(*ALL), depth=st.sampled_from([1, 2, 8]))
@settings(max_examples=60)
def test_nwcs_keeps_the_disk_idle_no_longer_than_its_limit(
    spec: str, todo: list[Step], depth: int
) -> None:
    Limited(spec, depth, POINTS).play(todo)


@pytest.mark.parametrize("spec", NWCS)
@given(todo=steps(*ALL[:-1]), depth=st.sampled_from([1, 8]))
@settings(max_examples=30)
def test_with_a_limit_of_0_nwcs_decides_as_its_inner_policy(
    spec: str, todo: list[Step], depth: int
) -> None:
    outer = Host(spec, depth)
    outer.d.tune("wait_limit", 0)
    inner = Host(spec.partition(":")[2], depth)
    assert outer.play(todo).log == inner.play(todo).log


# Others.


@pytest.mark.parametrize("spec", WORK_CONSERVING)
@given(todo=steps(*ALL[:-1]), depth=st.sampled_from([1, 8]))
@settings(max_examples=30)
def test_a_work_conserving_policy_never_waits(spec: str, todo: list[Step], depth: int) -> None:
    host = Host(spec, depth).play(todo)
    assert not [what for what in host.log if what[1] == "wait"]
    assert host.d.count("waits") == 0


@every_stream
@given(todo=steps(*ALL[:-1]), depth=st.sampled_from([1, 8]))
@settings(max_examples=40)
def test_on_a_flat_curve_stream_decides_as_its_inner_policy(
    spec: str, todo: list[Step], depth: int
) -> None:
    outer = Host(spec, depth, FLAT)
    inner = Host(spec.partition(":")[2], depth, FLAT)
    assert outer.play(todo).log == inner.play(todo).log


@every_policy
@given(above=st.booleans(), by=st.integers(1, 2**63), which=st.integers(0, 23))
@settings(max_examples=30)
def test_a_tunable_out_of_range_is_refused_with_its_range(
    spec: str, above: bool, by: int, which: int
) -> None:
    d = Driver(spec)
    rows = [
        row for i in range(d.sched.nr_policies) for row in tunables(d.ffi, d.sched.policy[i].ops)
    ]
    if not rows:
        return
    row = rows[which % len(rows)]
    value = row.max + by if above else row.min - by
    if not 0 <= value < 2**64:
        return
    before = bytes(d.ffi.buffer(d.sched))
    why = d.ffi.new("char[160]")
    name = d.ffi.string(row.name)
    assert d.lib.ss_sched_tune(d.sched, name, value, 0, why, 160) == -34  # -ERANGE
    assert bytes(d.ffi.buffer(d.sched)) == before
    text = d.ffi.string(why).decode()
    assert text == f"{name.decode()} is {value}, not within {row.min} to {row.max}"


@every_policy
def test_a_tunable_within_its_range_is_taken(spec: str) -> None:
    d = Driver(spec)
    for i in range(d.sched.nr_policies):
        for row in tunables(d.ffi, d.sched.policy[i].ops):
            assert row.min <= row.initial <= row.max
            name = d.ffi.string(row.name)
            for value in (row.min, row.max, row.initial):
                d.tune(name.decode(), value)
                assert value_of(d, name) == value


@every_policy
def test_an_unknown_tunable_is_not_found(spec: str) -> None:
    d = Driver(spec)
    before = bytes(d.ffi.buffer(d.sched))
    assert d.lib.ss_sched_tune(d.sched, b"stream_treshold", 4, 0, d.why, 160) == -2  # -ENOENT
    assert bytes(d.ffi.buffer(d.sched)) == before
    name = spec.partition(":")[0]
    assert d.ffi.string(d.why).decode() == f"stream_treshold is no setting of {name}"


@pytest.mark.parametrize("name", ["stream_time_slice", "answer_time", "tolerance_factor", "trials"])
def test_a_tunable_of_former_versions_is_refused_with_what_replaces_it(name: str) -> None:
    d = Driver("stream:deadline")
    assert d.lib.ss_sched_tune(d.sched, name.encode(), 1, 0, d.why, 160) == -2  # -ENOENT
    assert re.fullmatch(name + " is gone: .{10,}", d.ffi.string(d.why).decode())


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "nop",
        "stream",
        "stream:",
        "stream:cfq",
        "stream:stream:noop",
        "noop:deadline",
        "deadline:",
        ":",
        "stream:anticipatory",
        "nwcs",
        "nwcs:",
        "ss",
        "ss:cfq",
        "ss:stream:noop",
        "stream:ss:noop",
        "nwcs:cfq",
        "nwcs:noop:sptf",
        "nwcs:stream:noop",
        "stream:nwcs:noop",
        "nwcs:nwcs:sptf",
        "sptf:nwcs",
    ],
)
def test_a_wrong_policy_is_refused_by_name(spec: str) -> None:
    why = ffi.new("char[160]")
    sched = ffi.new("struct ss_sched *")
    assert lib.ss_sched_init(sched, spec.encode(), 2**31, why, 160) == -22  # -EINVAL
    assert ffi.string(why).decode().startswith(f'policy "{spec}": ')


def test_a_sentence_is_cut_to_its_buffer() -> None:
    why = ffi.new("char[32]", b"x" * 31)
    sched = ffi.new("struct ss_sched *")
    assert lib.ss_sched_init(sched, b"n" * 100, 2**31, why, 16) == -22
    assert ffi.string(why) == b'policy "nnnnnnn'
    assert bytes(ffi.buffer(why))[16:31] == b"x" * 15
