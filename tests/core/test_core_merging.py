# SPDX-License-Identifier: GPL-2.0-only
"""What may become a part of a pending request: by flags, by owner, and the same sectors twice."""

from __future__ import annotations

from typing import Any

import pytest
from job_text import job_text
from policy_driver import Driver

from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Setup, run_jobs
from streamsched.work.jobfile import parse_jobs

MOST = 1024  # sectors of a merged request
POLICIES = ["noop", "deadline", "sptf", "anticipatory", "stream:deadline", "ss:deadline"]
KINDS: list[dict[str, bool]] = [{}, {"meta": True}, {"write": True}, {"write": True, "sync": True}]


def merges(d: Driver, sector: int, owner: int = 1, **kind: bool) -> int:
    """How a request for 8 sectors from @sector would be merged."""
    into = d.ffi.new("struct ss_request **")
    rq = d.request(owner, sector, 8, **kind)
    return int(d.lib.ss_sched_find_merge(d.sched, rq, MOST, into))


def joins(d: Driver, rq: Any) -> bool:
    return bool(d.lib.ss_sched_find_join(d.sched, rq, MOST))


# What a loop device hands on.

HANDED_ON = {"write": True, "handed_on": True}


def front(d: Driver, rq: Any, flags: int) -> Any:
    return d.lib.ss_sched_find_front(d.sched, rq.sector, rq.direction, flags)


def test_a_front_merge_is_found_by_the_flags_that_requests_came_with() -> None:
    d = Driver("stream:deadline")
    writes = [d.send(0, 1_000_000 + 10_000 * n, **HANDED_ON) for n in range(80)]
    came_with = d.request(0, 0, **HANDED_ON).flags
    assert came_with == d.lib.SS_SYNC | d.lib.SS_HANDED_ON
    for write in (writes[0], writes[-1]):
        assert front(d, write, came_with) == write
        assert not front(d, write, d.lib.SS_SYNC)
        assert not front(d, write, 0)
        assert merges(d, write.sector - 8, 0, **HANDED_ON) == d.lib.SS_MERGE_FRONT
        assert merges(d, write.sector - 8, 0, write=True) == d.lib.SS_MERGE_NONE


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("spec", POLICIES)
def test_only_one_kind_is_merged(spec: str, kind: dict[str, bool]) -> None:
    d = Driver(spec)
    d.send(1, 1000, **kind)
    for other in KINDS:
        none = other != kind
        assert (merges(d, 1008, **other) == d.lib.SS_MERGE_NONE) == none
        assert (merges(d, 992, **other) == d.lib.SS_MERGE_NONE) == none


# Across owners.


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_cfq_merges_a_process_s_sync_requests_only(kind: dict[str, bool]) -> None:
    """Linux 2.6.31, cfq_allow_merge(): the request must stand in the bio's own queue."""
    d = Driver("cfq")
    d.send(1, 1000, **kind)
    is_async = kind == {"write": True}
    for sector, way in ((1008, d.lib.SS_MERGE_BACK), (992, d.lib.SS_MERGE_FRONT)):
        assert merges(d, sector, 1, **kind) == way
        assert merges(d, sector, 2, **kind) == (way if is_async else d.lib.SS_MERGE_NONE)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_cfq_joins_a_process_s_sync_requests_only(kind: dict[str, bool]) -> None:
    for owner in (1, 2):
        d = Driver("cfq")
        first = d.send(1, 1000, **kind)
        d.send(owner, 1016, **kind)
        d.merge(first, **kind)
        assert joins(d, first) == (owner == 1 or kind == {"write": True})


@pytest.mark.parametrize("spec", POLICIES)
def test_the_others_do_not_ask_whose_they_are(spec: str) -> None:
    d = Driver(spec)
    d.send(1, 1000)
    assert merges(d, 1008, 2) == d.lib.SS_MERGE_BACK


def test_cfq_knows_no_owner_by_the_same_number() -> None:
    """Where owners are not known all requests are one process's."""
    d = Driver("cfq")
    d.send(0, 1000)
    assert merges(d, 1008, 0) == d.lib.SS_MERGE_BACK


# The same sectors twice.

LOVE = (10, 500, 12, 502, 14, 504, 12)


def same(d: Driver, sector: int, sectors: int = 8, **kind: bool) -> Any:
    return d.lib.ss_sched_find_same(d.sched, d.request(2, sector, sectors, **kind))


@pytest.mark.parametrize("spec", ["linus", "nwcs:linus", "stream:linus", "ss:linus"])
def test_linus_serves_the_same_request_once(spec: str) -> None:
    d = Driver(spec)
    rq = d.send(1, 96)
    assert same(d, 96) == rq
    assert not same(d, 96, 16)
    assert not same(d, 104)
    assert not same(d, 96, write=True)
    merged = d.count("merges")
    d.lib.ss_sched_shared(d.sched, rq, d.now_ns)
    assert d.count("merges") == merged + 1
    d.serve(rq)
    assert not same(d, 96)


@pytest.mark.parametrize("spec", ["noop", "deadline", "stream:deadline"])
def test_the_others_serve_it_twice(spec: str) -> None:
    d = Driver(spec)
    d.send(1, 96)
    assert not same(d, 96)


THREE = job_text("""
[global] direct=1 bs=4k size=1m filename=/f rw=read:60k
[a]
[b]
[c]
""")


@pytest.mark.parametrize(("policy", "of_three"), [("noop", 3), ("linus", 1)])
def test_three_that_read_the_same(policy: str, of_three: int) -> None:
    """Of what waits for the same block linus makes one; soon all three are in step."""
    setup = Setup(load_disk("wd5000aaks"), policy)
    jobs = parse_jobs(THREE, "three", capacity_bytes=setup.capacity_bytes)
    run = run_jobs(setup, jobs)
    blocks = [job.blocks[0] for job in run.jobs]
    assert len(set(blocks)) == 1
    assert run.disk_requests == pytest.approx(of_three * blocks[0], abs=2)


def test_love_s_example() -> None:
    """10, 500, 12, 502, 14, 504 and 12 are served as 10, 12, 14, 500, 502 and 504."""
    d = Driver("linus")
    busy = d.dispatch(d.send(1, 0))
    for block in LOVE:
        into = same(d, block * 8, 8)
        if into:
            d.lib.ss_sched_shared(d.sched, into, d.now_ns)
        else:
            d.send(1, block * 8)
    d.complete(busy)
    order = [int(d.serve().sector) // 8 for _ in range(6)]
    assert order == [10, 12, 14, 500, 502, 504]
    assert d.choose() == ("nothing",)
