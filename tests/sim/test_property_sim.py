# SPDX-License-Identifier: GPL-2.0-only
"""What stream scheduling promises whole: it never costs more than a few per cent of throughput."""

from __future__ import annotations

import dataclasses
import random
import statistics

import pytest
from workloads import (
    GIB,
    INNER,
    KIB,
    LASTS_NS,
    MECHANICAL,
    MIB,
    MS,
    RANDOM,
    READ,
    Workload,
    disk_of,
    process,
    workload,
)

from streamsched.sim.simulate import Setup, run_jobs

# Workloads that nobody has looked at: drawn anew each time. The bounds are wide, for a mean of so
# many varies by 6 %, and the inner policies against themselves, begun at other times, miss KEPT on
# some 5 % of them.
WORKLOADS, BATCHES = 320, 8
KEPT = 0.97


@pytest.mark.parametrize("batch", range(BATCHES))
def test_stream_gains_on_workloads_that_nobody_has_looked_at(batch: int) -> None:
    first = random.SystemRandom().randrange(10**6, 6 * 10**7) // BATCHES * BATCHES + batch
    seeds = range(first, first + WORKLOADS, BATCHES)
    ratios = {seed: workload(seed).lasting().ratio() for seed in seeds}
    low = {seed: round(ratio, 3) for seed, ratio in ratios.items() if ratio < KEPT}
    assert statistics.geometric_mean(ratios.values()) >= 1.1, ratios
    assert len(low) <= len(ratios) / 3, low
    assert min(ratios.values()) >= 0.2, low


def test_workloads_last() -> None:
    """Nearly all of them as long as is meant, none much longer than it was or is meant."""
    taken = []
    for seed in range(0, 200, 4):
        one = workload(seed)
        before, after = (each.run(each.inner).duration_ns for each in (one, one.lasting()))
        assert after == before or after <= 3 * LASTS_NS
        taken.append(after)
    assert sum(each >= 0.9 * LASTS_NS for each in taken) >= 0.95 * len(taken)


def test_workloads_are_general() -> None:
    """Every kind of process, disk, policy and depth is among them."""
    made = [workload(seed) for seed in range(200)]
    processes = [process for one in made for process in one.processes]
    assert {one.disk for one in made} == set(MECHANICAL)
    assert {one.inner for one in made} == set(INNER)
    assert {one.depth for one in made} == {1, 2, 4, 8, 16, 32}
    assert {len(one.processes) for one in made} >= {1, 2, 4, 8, 16, 32}
    assert {process.rw for process in processes} == {1, 2, 3, 5, 6, 7}
    assert {process.direct for process in processes} == {False, True}
    assert {1, 2, 32} <= {process.iodepth for process in processes}
    assert {0, 1 * MS} <= {process.thinktime_ns for process in processes}
    assert all(process.thinktime_ns <= 1 * MS for process in processes)
    assert workload(5) == workload(5) != workload(6)


def test_both_do_the_same_work() -> None:
    for seed in range(20):
        one = workload(seed)
        inner, stream = one.run(one.inner), one.run(f"stream:{one.inner}")
        assert [job.bytes for job in inner.jobs] == [job.bytes for job in stream.jobs]
        assert inner.bytes == sum(process.io_bytes for process in one.processes)


# Random access over the whole disk with its queue full: the drive's own order is worth much, and
# holding the head for anybody would lose it.


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("disk", MECHANICAL)
@pytest.mark.parametrize(("nr", "iodepth"), [(1, 32), (1, 64), (32, 1), (4, 16)])
def test_random_reads_with_the_drive_reordering(
    nr: int, iodepth: int, disk: str, inner: str
) -> None:
    size = disk_of(disk).capacity_sectors * 512 // MIB * MIB
    processes = tuple(
        process(
            i,
            rw=READ | RANDOM,
            size=size,
            io=4096 // nr * 4 * KIB,
            bs=4 * KIB,
            iodepth=iodepth,
            repeat=True,
        )
        for i in range(nr)
    )
    one = Workload(0, disk, inner, 32, "none", processes)
    assert one.ratio() >= KEPT
    # The drive does reorder: twice the rate of one command at a time, or nearly.
    assert one.run(inner).seconds < 0.7 * dataclasses.replace(one, depth=1).run("noop").seconds


@pytest.mark.parametrize(
    ("cache_mib", "think_ms"), [(2, 6), (2, 7), (2, 18), (2, 19), (4, 41), (8, 11)]
)
def test_a_page_is_read_though_its_place_is_taken(cache_mib: int, think_ms: int) -> None:
    """What a slow reader has next is by then the oldest in the cache: its readahead takes it."""
    work = [
        process(0, io=1 * MIB, bs=4 * KIB, direct=False, think=think_ms * MS),
        process(1, offset=100 * GIB, io=200 * MIB, bs=64 * KIB, direct=False),
    ]
    setup = Setup(disk_of("wd5000aaks"), "noop", owners="none", cache_bytes=cache_mib * MIB)
    assert run_jobs(setup, work).bytes == 201 * MIB
