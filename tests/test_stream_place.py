# SPDX-License-Identifier: GPL-2.0-only
"""A reader's place: what is far for once is his all the same; and who comes only when he is left.

With stream_time_slice=auto.
"""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

import pytest
from test_stream_figure1 import FAR, Disk

from streamsched.compare import Comparison, alone_tasks, run_task
from streamsched.simulate import run_jobs
from streamsched.workloads import WORKLOADS

Core = tuple[Any, Any]

A, B, C = 1, 2, 3
HERE = 100_000_000  # sectors
STEP = 100_000  # 1.9 ms
MEMBERS = 6
END = HERE + STEP * (MEMBERS - 1) + 8
BESIDE = END + 250_000  # 3.3 ms from the last member; back to the first one it is 7.8
NEXT_MS, FAR_MS = 2.0, 10.0


def disk(core: Core, slice_ns: int = 0) -> Disk:
    return Disk(core, "stream:noop", stream_time_slice=slice_ns, answer_time=0, trials=0)


def in_its_place(
    core: Core, other: int, slice_ns: int = 0, step: int = STEP, also: int | None = None
) -> tuple[Disk, Any]:
    """A has been read in steps, and the head is where it was last; @other is pending, and @also."""
    d = disk(core, slice_ns)
    b = None
    for nr in range(MEMBERS):
        rq = d.send(A, HERE + step * nr)
        if nr == MEMBERS - 1:
            b = d.send(B, other)
            if also is not None:
                d.send(C, also)
        d.serve(rq, NEXT_MS)
        d.later(0.01)
    return d, b


def test_a_step_in_its_place_goes_on_also_if_another_is_nearer(core: Core) -> None:
    d, _ = in_its_place(core, BESIDE)
    d.serve(d.send(A, HERE + STEP // 2), FAR_MS)
    d.later(0.01)
    d.serve(d.send(A, HERE + STEP), NEXT_MS)


@pytest.mark.parametrize("sector", (HERE - 10 * STEP, END + 10 * STEP))
def test_not_beyond_its_place(core: Core, sector: int) -> None:
    d, b = in_its_place(core, BESIDE)
    d.send(C, sector)
    while (decision := d.choose())[0] == "wait":
        d.at(decision[1])
    d.dispatch(b)


def test_not_where_its_steps_cost_more_than_the_other(core: Core) -> None:
    d, b = in_its_place(core, END + STEP // 2)
    d.send(A, HERE + STEP // 2)
    while (decision := d.choose())[0] == "wait":
        d.at(decision[1])
    d.dispatch(b)


def test_nobody_else_s_leads_a_sequential_reader_away(core: Core) -> None:
    d, _ = in_its_place(core, HERE + 300_000, step=8)
    d.send(C, HERE + 900_000)
    d.later(0.1)
    d.dispatch(d.send(A, HERE + 8 * MEMBERS))


def test_with_a_slice_that_is_set_as_in_the_paper(core: Core) -> None:
    d, b = in_its_place(core, BESIDE, 124_000_000)
    d.send(A, HERE + STEP // 2)
    while (decision := d.choose())[0] == "wait":
        d.at(decision[1])
    d.dispatch(b)


THERE = END + STEP // 2  # 1.4 ms from the last member


def test_what_is_pending_there_goes_before_it_is_waited_for_a_child(core: Core) -> None:
    """And is of the stream then: its reader's next request goes before the other one, too."""
    d, b = in_its_place(core, FAR, also=THERE)
    rq = d.dispatch()
    assert rq.owner == C
    d.later(NEXT_MS)
    d.complete()
    assert d.choose()[0] == "wait"
    d.later(0.1)
    d.serve(d.send(A, HERE + STEP), NEXT_MS)
    d.later(0.1)
    d.serve(d.send(A, HERE + 2 * STEP), NEXT_MS)
    while (decision := d.choose())[0] == "wait":
        d.at(decision[1])
    d.dispatch(b)


@pytest.mark.parametrize("sector", (BESIDE, HERE, END + 2 * STEP, HERE - STEP))
def test_not_what_costs_more_than_its_steps_or_is_elsewhere(core: Core, sector: int) -> None:
    d, _ = in_its_place(core, FAR, also=sector)
    assert d.choose()[0] == "wait"


def test_not_beside_one_who_reads_on(core: Core) -> None:
    d, _ = in_its_place(core, FAR, step=8, also=HERE + 16)
    assert d.choose()[0] == "wait"


def test_not_with_a_slice_that_is_set(core: Core) -> None:
    d, _ = in_its_place(core, FAR, 124_000_000, also=THERE)
    assert d.choose()[0] == "wait"


# Who comes only when he is left.

RUN = 15  # reads of A before it stops
VISITS = 60


def visit(d: Disk, sector: int, nr: int) -> float:
    """A's run, B's wait at its end, and A's next read just after B went."""
    rq = d.pending[-1]
    b = None
    for at in range(RUN):
        if at:
            rq = d.send(A, sector + 8 * at)
        if at == RUN // 2:
            b = d.send(B, FAR + 100_000 * nr)
        d.serve(rq, NEXT_MS)
        d.later(0.01)
    since = d.now
    verdict, *rest = d.choose()
    if verdict == "wait":
        d.at(rest[0])
    waited = d.now - since
    d.dispatch(b)
    d.later(0.1)
    d.send(A, sector + 8 * RUN)
    d.later(FAR_MS)
    d.complete()
    return waited


def visits(core: Core) -> list[float]:
    d = disk(core)
    sector = HERE
    d.send(A, sector)
    waited = []
    for nr in range(VISITS):
        waited.append(visit(d, sector, nr))
        sector += 8 * RUN
    return waited


def test_who_comes_when_another_is_served_is_not_awaited_for_longer_and_longer(core: Core) -> None:
    waited = visits(core)
    assert statistics.mean(waited[VISITS // 2 :]) < 0.6


# A thousand of reads each, at random: the same two kinds in one.


def efficiency(work: str, policy: str, seed: int, **tunables: int) -> tuple[float, float]:
    """And the part of the time that the disk idles while somebody waits."""
    setup = dataclasses.replace(WORKLOADS[work].setup(policy), tunables=tuple(tunables.items()))
    processes = WORKLOADS[work].processes(setup.capacity_bytes, seed)
    run = run_jobs(setup, processes)
    alone = {nr: run_task(task) for nr, task in alone_tasks(processes, setup).items()}
    rates = {nr: one.bytes / one.seconds for nr, one in alone.items()}
    return Comparison((run,), rates).efficiency(run) or 0.0, run.idle_share


@pytest.mark.parametrize("work", ("adversary", "random-adversary"))
def test_an_adversary_costs_as_little_as_where_owners_are_seen(work: str) -> None:
    own = [efficiency(work, "stream:deadline", seed, stream_time_slice=0) for seed in range(4)]
    other = [efficiency(work, "nwcs:sptf", seed)[0] for seed in range(4)]
    rates, idle = zip(*own, strict=True)
    assert statistics.mean(rates) > 0.97 * statistics.mean(other)
    assert max(idle) < 0.03
