# SPDX-License-Identifier: GPL-2.0-only
"""What each process has of an array's disks, in virtual time: exact, so asserted as bounds."""

from __future__ import annotations

import functools
import statistics

import pytest

from streamsched.sim.array import parse_array
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Run, Setup, run_jobs
from streamsched.work.jobfile import parse_jobs

DISK = "st2000dm006"
SECONDS = 12
SCAN = "rw=read\nbs=1m\ndirect=1\nioengine=libaio\niodepth=3"
DIRECT = "rw=read\nbs=64k\ndirect=1"
RANDOM = "rw=randread\nbs=4k\ndirect=1"
SYNCED = "rw=write\nbs=16k\nfsync=1"


def run_mix(
    array: str,
    policy: str,
    jobs: tuple[str, ...],
    alone: int | None = None,
    disk: str = DISK,
    used: float = 0.5,
) -> Run:
    """@jobs in equal parts of @array, or of these one alone; owners are hidden. Of its part each
    uses so much.
    """
    setup = Setup(load_disk(disk), policy, owners="none", queue_depth=1, array=parse_array(array))
    part_mib = setup.capacity_bytes // len(jobs) >> 20
    text = f"[global]\nruntime={SECONDS}\nramp_time=2\ntime_based\n"
    for number, job in enumerate(jobs):
        if alone in (None, number):
            text += (
                f"[p{number}]\n{job}\noffset={number * part_mib}m\nsize={int(part_mib * used)}m\n"
            )
    return run_jobs(setup, parse_jobs(text, capacity_bytes=setup.capacity_bytes, environ={}))


@functools.cache
def rate_alone(array: str, jobs: tuple[str, ...], number: int) -> int:
    return run_mix(array, "noop", jobs, number).jobs[0].bytes


def least_share(array: str, policy: str, jobs: tuple[str, ...], used: float = 0.5) -> float:
    """The least part of its rate alone that one of @jobs has, times their number."""
    run = run_mix(array, policy, jobs, used=used)
    return len(jobs) * min(
        job.bytes / rate_alone(array, jobs, number) for number, job in enumerate(run.jobs)
    )


@pytest.mark.parametrize("members", [3, 4, 5])
def test_a_stream_that_grows_by_merging_stays_what_it_is(members: int) -> None:
    """Of a request of 1 MiB only the first chunk on each member arrives; the others join it."""
    run = run_mix(f"raid0:{members}:64k", "stream:deadline", (SCAN, SCAN, DIRECT, RANDOM))
    assert run.array_counters["turns"] > 10
    assert run.array_counters["established"] <= 4


@pytest.mark.parametrize("array", ["raid0:2:64k", "raid0:4:64k", "raid0:6:64k", "raid5:5:64k"])
def test_a_mix_keeps_its_parts(array: str) -> None:
    """Scans that keep all members busy, one who asks for a chunk at a time, a random reader."""
    jobs = (SCAN, SCAN, DIRECT, RANDOM)
    shared = run_mix(array, "stream:deadline", jobs)
    assert least_share(array, "stream:deadline", jobs) > 0.5
    assert shared.bytes > 1.1 * run_mix(array, "deadline", jobs).bytes
    assert shared.bytes > run_mix(f"{array}:uncoordinated", "stream:deadline", jobs).bytes


def test_members_are_left_apart_where_that_serves_more() -> None:
    """Two readers on an offset layout, of which one leaves members idle in its turn: the comparison
    finds that both have more without turns, about twice as much."""
    jobs = ("rw=read\nbs=64k", "rw=read\nbs=1m", "rw=read\nbs=4k\ndirect=1\nthinktime=100000")
    where, policy = "raid10:4:64k:offset", "stream:deadline"
    shared = run_mix(where, policy, jobs, disk="exos-x18")
    apart = run_mix(f"{where}:uncoordinated", policy, jobs, disk="exos-x18")
    assert shared.bytes > 0.75 * apart.bytes


@pytest.mark.parametrize("array", ["raid0:8:64k", "raid10:4:64k:far", "raid5:5:64k"])
def test_the_time_of_flushes_is_their_writer_s(array: str) -> None:
    """Each fsync() flushes the caches of all members; readers had 0.07 of their part beside it."""
    assert least_share(array, "stream:deadline", (SYNCED, DIRECT, "rw=read\nbs=256k")) > 0.4


def test_readers_at_random_are_told_apart_by_all_members_together() -> None:
    """A request comes to one member when its sender's last is done on another, so that no member
    finds out alone who sends what: one with 32 outstanding had all of them.
    """
    deep = f"{RANDOM}\nioengine=libaio\niodepth=32"
    assert least_share("raid0:4:64k", "stream:deadline", (deep, RANDOM, deep)) > 0.4


def test_a_reader_of_pieces_keeps_its_turn_on_an_array() -> None:
    """Where it goes on it keeps all members busy, as it did where it was."""
    pieces = "rw=randread:32\nbs=64k\ndirect=1"
    assert least_share("raid0:2:64k", "stream:deadline", (pieces, DIRECT)) > 0.8


def test_write_back_has_turns_of_an_array() -> None:
    """Else it is served in the turns of who reads at random, and who syncs."""
    jobs = ("rw=write\nbs=256k", RANDOM, RANDOM, "rw=read\nbs=64k")
    assert least_share("raid0:2:64k", "stream:deadline", jobs) > 0.35


@pytest.mark.parametrize("array", ["raid1:2", "raid10:4:64k"])
def test_who_writes_to_mirrors_has_turns_of_all(array: str) -> None:
    """A write ends when all its mirrors have it: a writer that had a turn of one of them at a time
    had 0.05 of its part.
    """
    jobs = ("rw=write\nbs=64k\ndirect=1", "rw=write\nbs=256k", RANDOM, SCAN)
    assert least_share(array, "stream:deadline", jobs) > 0.35


def test_each_member_keeps_its_order_while_turns_are_held() -> None:
    """Where writers wait for their turns members once served the rest by position alone, and a
    reader of chunks had 0.04 of its part. A single run may have 0.1 to 0.5 of it by chance.
    """
    jobs = (
        SCAN,
        "rw=write\nbs=256k",
        f"{RANDOM}\nioengine=libaio\niodepth=4",
        DIRECT,
        "rw=randread\nbs=64k\ndirect=1",
        "rw=read\nbs=64k",
        "rw=write\nbs=1m\ndirect=1",
    )
    least = [least_share("raid1:2", "stream:deadline", jobs, used) for used in (0.4, 0.5, 0.6, 0.7)]
    assert statistics.mean(least) > 0.2, least


def test_the_first_copies_of_far_are_read() -> None:
    """They are RAID 0 on the outer half of each disk, and as fast; the second ones are inside."""
    scan = ("rw=read\nbs=1m\ndirect=1",)
    far = run_mix("raid10:4:64k:far", "noop", scan)
    assert far.bytes == run_mix("raid0:4:64k", "noop", scan).bytes


def test_a_reader_that_skips_rows_has_turns() -> None:
    """It comes to all members, one after the other, and had to wait for each of them anew."""
    strided = "rw=read:1m\nbs=64k\ndirect=1"
    jobs = (strided, "rw=read\nbs=1m", f"{RANDOM}\nioengine=libaio\niodepth=4")
    assert least_share("raid0:3:64k", "stream:deadline", jobs) > 0.5
