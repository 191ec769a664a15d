# SPDX-License-Identifier: GPL-2.0-only
"""Answers (core/answer.h): who was just served may read on, nearer than the others."""

from __future__ import annotations

import random
from typing import Any

import pytest
from policy_driver import Driver

from streamsched.diskfile import load_disk
from streamsched.jobfile import load_jobs, parse_jobs
from streamsched.simulate import Setup, run_jobs
from streamsched.workloads import job_path

Core = tuple[Any, Any]

MS = 1_000_000
A, B, C = 1, 2, 3
HERE = 1_000_000  # sectors
FAR = 400_000_000
FARTHER = 800_000_000
# The generic curve's mean for a random request and the part of it that is waited, in ms.
LONGEST = 1.0


@pytest.fixture
def d(core: Core) -> Driver:
    return Driver(core, "stream:deadline", stream_time_slice=0)


def one_served(d: Driver, sector: int = HERE, ms: float = 5.0) -> Any:
    """A's read is done, B's and C's are pending."""
    first = d.send(A, sector)
    d.dispatch(first)
    d.send(B, FAR)
    d.send(C, FARTHER)
    d.later(ms)
    return d.complete(first)


def wait_ms(d: Driver) -> float | None:
    """How long from now the disk is kept idle; None: it is not."""
    verdict, *rest = d.choose()
    return rest[0] - d.now if verdict == "wait" else None


def test_the_nearer_answer_goes_first(d: Driver) -> None:
    one_served(d)
    waited = wait_ms(d)
    assert waited is not None and 0 < waited < LONGEST
    d.later(waited / 2)
    d.dispatch(d.send(A, HERE + 64))


def test_without_one_the_inner_policy_goes_on(d: Driver) -> None:
    one_served(d)
    waited = wait_ms(d)
    assert waited is not None
    d.later(waited)
    assert d.dispatch().sector == FAR


def test_a_farther_answer_does_not_go_first(d: Driver) -> None:
    one_served(d)
    d.send(A, FARTHER + 100_000_000)
    assert d.dispatch().sector == FAR


def test_an_asynchronous_write_is_no_answer(d: Driver) -> None:
    one_served(d)
    d.send(A, HERE + 64, write=True)
    assert wait_ms(d) is not None


def test_after_a_write_none_is_looked_for(d: Driver) -> None:
    first = d.send(A, HERE, write=True, sync=True)
    d.dispatch(first)
    d.send(B, FAR)
    d.later(5)
    d.complete(first)
    d.dispatch()


def test_not_with_others_in_the_disk(d: Driver) -> None:
    first = d.send(A, HERE)
    d.dispatch(first)
    second = d.send(B, FAR)
    d.dispatch(second)
    d.send(C, FARTHER)
    d.later(5)
    d.complete(first)
    assert d.dispatch().sector == FARTHER


def test_an_answer_that_is_taken_back_is_forgotten(d: Driver) -> None:
    one_served(d)
    d.remove(d.send(A, HERE + 64))
    assert d.dispatch().sector == FAR


def test_nothing_is_kept_idle_when_all_others_are_taken_back(d: Driver) -> None:
    one_served(d)
    for rq in list(d.pending):
        d.remove(rq)
    assert d.choose() == ("nothing",)


@pytest.mark.parametrize("slice_ns", (0, 124 * MS))
def test_zero_turns_it_off(core: Core, slice_ns: int) -> None:
    d = Driver(core, "stream:deadline", stream_time_slice=slice_ns, answer_time=0)
    one_served(d)
    assert d.dispatch().sector == FAR


def test_with_the_papers_slice_it_is_off_unless_asked_for(core: Core) -> None:
    d = Driver(core, "stream:deadline")
    one_served(d)
    assert d.dispatch().sector == FAR
    d = Driver(core, "stream:deadline", answer_time=MS // 4)
    one_served(d)
    assert wait_ms(d) == pytest.approx(0.25)


def test_a_flat_disk_is_never_kept_idle(core: Core) -> None:
    d = Driver(core, "stream:deadline", stream_time_slice=0, answer_time=10 * MS)
    table = d.ffi.new("struct ss_curve_point[]", [(0, 100_000)])
    curve = d.ffi.addressof(d.sched, "curve")
    assert d.lib.ss_curve_set(curve, table, 1, 1_000_000_000) == 0
    one_served(d)
    assert d.dispatch().sector == FAR


# ---- nobody is kept waiting for long by them ----


def answers_before(d: Driver, until: Any, took_ms: float) -> tuple[int, float]:
    """A answers at once, nearer than all others.

    How many answers went first, and when @until was dispatched.
    """
    sector, nr = HERE, 0
    while True:
        sector += 70_000
        d.send(A, sector)
        rq = d.dispatch()
        if rq == until:
            return nr, d.now
        nr += 1
        d.later(took_ms)
        d.complete(rq)


@pytest.mark.parametrize("target_ms", (200, 800))
def test_their_turn_ends(core: Core, target_ms: int) -> None:
    d = Driver(core, "stream:noop", stream_time_slice=0, wait_target=target_ms * MS)
    d.tune("stream_threshold", 1000)  # none of this shall be a stream
    one_served(d)
    begun = d.now
    oldest = next(rq for rq in d.pending if rq.sector == FAR)
    nr, served = answers_before(d, oldest, 4.0)
    assert nr >= 8
    assert target_ms / 8 <= served - begun <= target_ms / 4


def test_what_has_waited_beyond_the_target_goes_at_once(d: Driver) -> None:
    first, late = d.send(A, HERE - 64), d.send(B, FAR)
    d.later(497)
    d.serve(first)
    d.serve(d.send(A, HERE), ms=5)
    d.send(A, HERE + 64)
    d.dispatch(late)


# ---- does it pay? ----


def round_of(d: Driver, near: bool, took_ms: float) -> bool:
    """A's read is done and answered near by, or not at all. Was an answer looked for?"""
    d.later(100)  # whoever was waited for is so no longer
    at = random.Random(d.now_ns).randrange(10) * 80_000_000
    first = d.send(A, at)
    d.dispatch(first)
    other = d.send(B, at + FAR)
    d.later(9)
    d.complete(first)
    waited = wait_ms(d)
    if waited is not None and near:
        d.send(A, at + 30_000)
    elif waited is not None:
        d.later(waited)
    while d.pending:
        while wait_ms(d) is not None:
            d.later(LONGEST)
        rq = d.dispatch()
        d.later(9 if rq == other else took_ms)
        d.complete(rq)
    return waited is not None


@pytest.mark.parametrize(
    ("near", "took_ms", "looked"),
    (
        (True, 2, 128),
        (False, 2, 4),  # none ever comes: once in 32 times
        (True, 60, 4),  # the drive does something else first
    ),
)
def test_it_is_looked_for_while_it_pays(
    core: Core, near: bool, took_ms: float, looked: int
) -> None:
    d = Driver(core, "stream:noop", stream_time_slice=0)
    for _ in range(64):
        round_of(d, near, took_ms)
    assert sum(round_of(d, near, took_ms) for _ in range(128)) == looked


# ---- and what comes of it ----


def postmark_s(seed: int, **tunables: int) -> float:
    disk = load_disk("wd5000aaks")
    setup = Setup(disk, "stream:deadline", tunables=tuple(tunables.items()))
    processes = parse_jobs(
        job_path("postmark.fio").read_text(),
        "postmark",
        capacity_bytes=disk.capacity_sectors * 512,
        environ={"STREAMSCHED_DISK": "/dev/sdX"},
        seed=seed,
    )
    return run_jobs(setup, processes).seconds


@pytest.mark.parametrize("inner", ("cscan", "deadline"))
def test_they_do_not_pull_an_elevator_back(inner: str) -> None:
    """Of 32 random reads one behind the head is near enough, but is served on the way, too."""
    disk = load_disk("wd5000aaks")
    capacity = disk.capacity_sectors * 512
    processes = load_jobs(str(job_path("random-disk.fio")), capacity_bytes=capacity)
    swept = run_jobs(Setup(disk, "cscan"), processes)
    stream = run_jobs(
        Setup(disk, f"stream:{inner}", tunables=(("stream_time_slice", 0),)), processes
    )
    assert stream.mb_s > 0.99 * swept.mb_s
    assert stream.jobs[0].longest_wait_ns < 1.2 * swept.jobs[0].longest_wait_ns


def test_small_files_are_read_in_less_time() -> None:
    """Four PostMarks read a file in one or two requests: no stream is that short.

    (Without answers the turn of those that are no streams has most of it.)
    """
    looked = sum(postmark_s(seed, stream_time_slice=0) for seed in range(6))
    not_looked = sum(postmark_s(seed, stream_time_slice=0, answer_time=0) for seed in range(6))
    assert looked < 0.985 * not_looked
