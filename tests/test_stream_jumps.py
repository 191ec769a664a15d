# SPDX-License-Identifier: GPL-2.0-only
"""Jumps: with a full device, whose is a request far from a stream, its own or somebody else's?

By the paper's rule it is the stream's child if it costs less than what would be done instead. With
several commands in the device that is nearly any request, and so a stream is led away by those of
random readers before its own next one comes.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from policy_driver import Driver

from streamsched.diskfile import load_disk
from streamsched.jobfile import parse_jobs
from streamsched.simulate import Run, Setup, run_jobs
from streamsched.workloads import WORKLOADS, job_path

Core = tuple[Any, Any]

READER, OTHER, THIRD = 1, 2, 3
START = 100_000_000  # sectors
FAR = 500_000_000
JUMP = 3_000_000  # positioning over it takes more than a fourth of a random request's


@pytest.fixture
def d(core: Core) -> Driver:
    d = Driver(core, "stream:noop")
    d.tune("stream_threshold", 1000)  # nothing is held: only who belongs to whom
    # Two commands that the device has throughout.
    for sector in (FAR, 2 * FAR):
        d.dispatch(d.send(THIRD, sector))
    return d


def reads_on(d: Driver, sector: int, members: int) -> int:
    """Where a reader's @members reads, one after the other, end."""
    for _ in range(members):
        rq = d.dispatch(d.send(READER, sector))
        d.later(10)
        d.complete(rq)
        sector += 8
    return sector


def length(d: Driver, sector: int) -> int:
    """Members of the stream that a read at @sector makes longer."""
    rq = d.send(READER, sector)
    size = int(rq.stream_size)
    d.dispatch(rq)
    d.later(10)
    d.complete(rq)
    return size


def members_sent(d: Driver, others: int) -> int:
    """A reader whose next request is sent when half of the last one is done, as by readahead.

    Somebody else's come meanwhile, @others of them at each, far away. The stream's length after
    ten requests.
    """
    sector = START
    last = d.dispatch(d.send(READER, sector))
    for i in range(9):
        far = [
            d.dispatch(d.send(OTHER, sector + JUMP * (1, 8, 3, 5)[(i + j) % 4]))
            for j in range(others)
        ]
        d.later(5)
        sector += 8
        new = d.dispatch(d.send(READER, sector))
        d.later(5)
        for rq in (last, *far):
            d.complete(rq)
        last = new
    return int(last.stream_size)


@pytest.mark.parametrize("others", (0, 1, 2))
def test_a_stream_is_not_led_away_while_its_last_member_is_in_the_disk(
    d: Driver, others: int
) -> None:
    assert members_sent(d, others) >= 7


def test_a_reader_of_files_here_and_there_is_one_stream(d: Driver) -> None:
    sector, size = START, 0
    for _ in range(8):
        sector = reads_on(d, sector, 4)
        sector += JUMP
        new = length(d, sector)
        assert new == size + 5
        size, sector = new, sector + 8


def test_with_nothing_else_in_the_device_every_child_is_one(d: Driver) -> None:
    """The paper's rule."""
    for rq in list(d.at_disk):
        d.complete(rq)
    sector = reads_on(d, START, 3)
    last = d.dispatch(d.send(READER, sector))
    assert d.send(OTHER, sector + JUMP).stream_size == last.stream_size + 1


def test_who_waits_in_the_device_is_nearer_than_who_was_done_last(core: Core) -> None:
    """A read goes on where the one ends that was done last, and behind one that is not done."""
    d = Driver(core, "stream:noop", stream_threshold=1000)
    d.dispatch(d.send(OTHER, FAR - 16))
    # Begins too far from that one to be its child, and ends beside it.
    for rq in (d.send(READER, 0), None):
        rq = d.dispatch(rq or d.send(READER, 8, FAR - 8))
        d.later(4)
        d.complete(rq)
    d.later(2)
    # The second of OTHER's stream, which has waited for nothing yet, not the third of READER's.
    assert d.send(READER, FAR).stream_size == 2


# ---- and what comes of it, on a disk with 32 commands ----


def mixed(policy: str) -> Run:
    disk = load_disk("wd5000aaks")
    processes = parse_jobs(
        job_path("mixed.fio").read_text(),
        "mixed",
        capacity_bytes=disk.capacity_sectors * 512,
        environ={"STREAMSCHED_DISK": "/dev/sdX"},
    )
    tunables = (("stream_time_slice", 0),) if policy.startswith("stream") else ()
    return run_jobs(Setup(disk, policy, queue_depth=32, tunables=tunables), processes)


def test_streams_gain_beside_random_readers_in_a_full_device() -> None:
    assert mixed("stream:deadline").mb_s > 3 * mixed("deadline").mb_s


def two_trees_s(policy: str) -> float:
    workload = WORKLOADS["two-trees"]
    setup = dataclasses.replace(workload.setup(policy), queue_depth=32)
    return run_jobs(setup, workload.processes(setup.capacity_bytes)).seconds


def test_trees_gain_there_as_before() -> None:
    """Their directories lie apart, so their streams jump by themselves."""
    assert two_trees_s("deadline") > 4 * two_trees_s("stream:deadline")
