# SPDX-License-Identifier: GPL-2.0-only
"""The simulator's scheduler is changed while it works: drained, as Linux does, nothing lost."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from workloads import KIB, MIB, RANDOM, READ, WRITE, process

from streamsched._core import ffi, lib
from streamsched.base.errors import UsageError
from streamsched.sim.array import parse_array
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Run, Setup, Simulation, measured_curve
from streamsched.work.process import Process

DISK = load_disk("wd5000aaks")
MS = 1_000_000
GIB = 1 << 30

# Readers in sequence, and one with 32 writes at once.
WORK = [
    process(0, io=16 * MIB),
    process(1, offset=100 * GIB, io=16 * MIB),
    process(2, rw=WRITE | RANDOM, offset=200 * GIB, io=4 * MIB, bs=16 * KIB, iodepth=32),
]


def run(
    setup: Setup, changes: dict[int, str], work: list[Process] = WORK
) -> tuple[Run, list[tuple[int, int, int, int, int, int]], list[int]]:
    """With a change of the scheduler at each time in ms; also the log, and when they were done."""
    done = []
    with Simulation(setup) as simulation:
        for one in work:
            simulation.add(one)
        simulation.log(100_000)
        raw = ffi.new("struct sim_observation *")
        for at, policy in changes.items():
            lib.sim_pause_at(simulation.sim, at * MS)
            assert lib.sim_run(simulation.sim, 1 << 40) == lib.SIM_PAUSED
            assert lib.sim_now_ns(simulation.sim) == at * MS
            simulation.switch(policy)
            lib.sim_observe(simulation.sim, raw)
            done.append(raw.switches)
        for _ in simulation.steps():
            pass
        lib.sim_observe(simulation.sim, raw)
        done.append(raw.switches)
        return simulation.result(work), simulation.log_rows(), done


def test_nothing_is_lost_and_all_is_counted() -> None:
    changes = {50: "stream:deadline", 400: "cfq", 800: "noop", 1200: "stream:sptf"}
    result, rows, done = run(Setup(DISK, "deadline"), changes)
    assert [job.bytes for job in result.jobs] == [one.io_bytes for one in WORK]
    assert done[-1] == 4
    assert len(rows) == result.disk_requests == result.counters["dispatches"]
    assert sum(row[4] for row in rows) * 512 == sum(one.io_bytes for one in WORK)


def test_what_was_there_is_served_before_what_came_later() -> None:
    """The queue is frozen: whatever is sent after the change is dispatched after all before it."""
    at = 100 * MS
    _, rows, done = run(Setup(DISK, "deadline"), {100: "stream:deadline"})
    assert done == [0, 1]  # not at once: the disk and the queue were busy
    waiting = [row for row in rows if row[0] <= at < row[2]]
    assert len(waiting) > 30
    drained = max(row[2] for row in waiting)
    later = [row for row in rows if at < row[0]]
    assert min(row[1] for row in later) == drained
    # Without the change some of those come to the disk earlier.
    _, plain, _ = run(Setup(DISK, "deadline"), {})
    waiting = [row for row in plain if row[0] <= at < row[2]]
    assert min(row[1] for row in plain if at < row[0]) < max(row[2] for row in waiting)


def test_a_change_of_mind_before_it_is_done_is_one_change() -> None:
    _, rows, done = run(Setup(DISK, "deadline"), {100: "cfq", 101: "noop"})
    _, once, _ = run(Setup(DISK, "deadline"), {100: "noop"})
    assert done == [0, 0, 1] and rows == once


def test_an_idle_disk_changes_at_once() -> None:
    quiet = [process(0, io=8 * MIB, delay=500 * MS)]
    before, _, _ = run(Setup(DISK, "stream:deadline"), {}, quiet)
    after, _, done = run(Setup(DISK, "noop"), {10: "stream:deadline"}, quiet)
    assert done == [1, 1]
    assert dataclasses.replace(after, setup=before.setup) == before


def test_pausing_alone_changes_nothing() -> None:
    plain, rows, _ = run(Setup(DISK, "stream:deadline"), {})
    with Simulation(Setup(DISK, "stream:deadline")) as simulation:
        for one in WORK:
            simulation.add(one)
        simulation.log(100_000)
        for at in range(10, 400, 7):
            lib.sim_pause_at(simulation.sim, at * MS)
            assert lib.sim_run(simulation.sim, 1 << 40) == lib.SIM_PAUSED
        for _ in simulation.steps():
            pass
        assert simulation.log_rows() == rows
        assert simulation.result(WORK) == plain


def test_the_new_one_decides() -> None:
    """Two readers in turn under noop; then stream holds the head for one of them."""
    readers = [
        process(0, io=24 * MIB, bs=64 * KIB),
        process(1, offset=100 * GIB, io=24 * MIB, bs=64 * KIB),
    ]
    plain, _, _ = run(Setup(DISK, "noop"), {}, readers)
    changed, rows, _ = run(Setup(DISK, "noop"), {1000: "stream:noop"}, readers)
    assert changed.duration_ns < 0.5 * plain.duration_ns
    assert plain.counters["waits"] == 0 < changed.counters["waits"]
    early = [row[5] for row in rows if row[1] < 900 * MS]
    late = [row[5] for row in rows if row[1] > 1100 * MS]
    turns = [sum(a != b for a, b in itertools.pairwise(one)) for one in (early, late)]
    assert turns[0] > 0.9 * (len(early) - 1) and turns[1] < 0.2 * len(late)


def test_what_was_set_holds_for_who_comes_later() -> None:
    """The first has no turns; with short ones the second changes places more often."""
    readers = [
        process(0, io=96 * MIB, bs=64 * KIB),
        process(1, offset=100 * GIB, io=96 * MIB, bs=64 * KIB),
    ]
    short = (("wait_target", 50 * MS),)
    ended = [
        run(Setup(DISK, "noop", tunables=tunables), {1000: "stream:noop"}, readers)[0]
        for tunables in ((), short)
    ]
    assert ended[1].counters["slices_ended"] > 3 * ended[0].counters["slices_ended"] > 0


def test_members_of_an_array_leave_and_join() -> None:
    array = parse_array("raid0:4:64k")
    work = [process(i, offset=i * 50 * GIB, io=32 * MIB) for i in range(4)]
    changes = {50: "deadline", 150: "stream:deadline"}
    result, _, done = run(Setup(DISK, "stream:deadline", array=array), changes, work)
    assert done[-1] == 8 and result.bytes == 128 * MIB
    assert result.array_counters["established"] > 0


def test_what_is_no_policy_is_refused() -> None:
    with (
        Simulation(Setup(DISK, "noop")) as simulation,
        pytest.raises(UsageError, match="only a work-conserving policy can be wrapped"),
    ):
        simulation.switch("stream:cfq")


def test_what_is_observed() -> None:
    reader = process(0, rw=READ, io=1 * MIB, bs=64 * KIB)
    result, _, _ = run(Setup(DISK, "noop"), {}, [reader])
    assert result.observed
    begin, end = result.observed
    assert (begin.requests, begin.completed, begin.now_s) == (0, 0, 0.0)
    assert (end.requests, end.reads, end.sync, end.continuing) == (16, 16, 16, 15)
    assert (end.sent_bytes, end.done_bytes, end.completed) == (1 * MIB, 1 * MIB, 16)
    # One at a time: the mean number under way is a little less than one.
    assert 0.9 < end.response_s / (result.duration_ns / 1e9) <= 1.0


def test_each_refusal_is_said_and_the_curve_measured_once() -> None:
    """Sentences come in one buffer, which is written anew; a curve is the same for a disk."""
    with Simulation(Setup(DISK, "noop")) as simulation:
        for name in ("nonesuch", "another"):
            with pytest.raises(UsageError, match=name):
                simulation.switch(name)
    assert measured_curve(DISK) is measured_curve(DISK)
