# SPDX-License-Identifier: GPL-2.0-only
"""What processes do, in virtual time: times, depths, regions, and what of them a policy sees."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from finished import finished
from process_driver import KIB, MS, PAPERS, SECTOR, SSD, US, Row, S, jobs, one_read_ns, played
from said import refusal

from streamsched._core import ffi, lib
from streamsched.sim import simulate
from streamsched.sim.policies import parse_weights
from streamsched.sim.simulate import WAKE_NS, Setup
from streamsched.work.jobfile import parse_jobs

INNER = ("noop", "deadline", "cscan", "sptf", "linus")


# Time.


def test_direct_reads_follow_each_other() -> None:
    rows, run = played("[r]\nrw=read\ndirect=1\nbs=64k\nsize=256k\n")
    took = one_read_ns(64 * KIB)
    assert [row.arrival_ns for row in rows] == [n * (took + WAKE_NS) for n in range(4)]
    assert all(row.complete_ns - row.arrival_ns == took for row in rows)
    assert run.duration_ns == 4 * took + 3 * WAKE_NS


def test_think_time() -> None:
    rows, _ = played("[r]\nrw=read\ndirect=1\nbs=4k\nsize=16k\nthinktime=700us\n")
    assert all(b.arrival_ns == a.complete_ns + WAKE_NS + 700 * US for a, b in pairwise(rows))


def test_think_time_after_several_blocks() -> None:
    rows, _ = played(
        "[r]\nrw=read\ndirect=1\nbs=4k\nsize=24k\nthinktime=700us\nthinktime_blocks=3\n"
    )
    gaps = [b.arrival_ns - a.complete_ns - WAKE_NS for a, b in pairwise(rows)]
    assert gaps == [0, 0, 700 * US, 0, 0]


def test_start_delay() -> None:
    rows, run = played(
        "[a]\nrw=read\ndirect=1\nbs=4k\nsize=4k\n[b]\nrw=read\ndirect=1\nbs=4k\nsize=4k\noffset=1g\nstartdelay=2\n"
    )
    assert [(row.job, row.arrival_ns) for row in rows] == [(0, 0), (1, 2 * S)]
    assert run.jobs[1].duration_ns == one_read_ns(4 * KIB)
    assert run.duration_ns == 2 * S + one_read_ns(4 * KIB)


def test_start_delay_alone_is_not_part_of_the_duration() -> None:
    _, run = played("[a]\nrw=read\ndirect=1\nbs=4k\nsize=4k\nstartdelay=2\n")
    assert run.duration_ns == one_read_ns(4 * KIB)


def test_runtime_ends_a_job_early() -> None:
    rows, run = played("[r]\nrw=read\ndirect=1\nbs=4k\nsize=1g\nruntime=100ms\n")
    took = one_read_ns(4 * KIB) + WAKE_NS
    # The last one was begun before the time was up.
    assert len(rows) == -(-100 * MS // took)
    assert 100 * MS - took < run.duration_ns < 100 * MS + took


def test_runtime_does_not_prolong_a_job() -> None:
    rows, _ = played("[r]\nrw=read\ndirect=1\nbs=4k\nsize=16k\nruntime=1s\n")
    assert len(rows) == 4


def test_time_based_begins_again() -> None:
    rows, run = played("[r]\nrw=read\ndirect=1\nbs=4k\nsize=16k\nruntime=10ms\ntime_based=1\n")
    took = one_read_ns(4 * KIB) + WAKE_NS
    assert len(rows) == -(-10 * MS // took)
    assert [row.sector for row in rows] == [8 * (n % 4) for n in range(len(rows))]
    assert run.bytes_read == len(rows) * 4 * KIB


# Depths and limits.


def most_at_once(rows: Sequence[Row], begin: str) -> int:
    """The most requests between @begin and completion at one time."""
    events = [(getattr(row, begin), 1) for row in rows] + [(row.complete_ns, -1) for row in rows]
    now = most = 0
    for _, change in sorted(events):  # of one time, those that end come first
        now += change
        most = max(most, now)
    return most


@pytest.mark.parametrize("iodepth", [1, 2, 7, 32])
def test_iodepth_is_kept_up(iodepth: int) -> None:
    rows, _ = played(
        f"[r]\nioengine=libaio\nrw=randread\ndirect=1\nbs=4k\nsize=64g\nio_size=1m\nnorandommap=1\niodepth={iodepth}\n",
        disk=PAPERS,
    )
    assert most_at_once(rows, "arrival_ns") == iodepth
    assert sum(row.arrival_ns == 0 for row in rows) == iodepth
    # From then on one comes for each that is done.
    done = sorted(row.complete_ns for row in rows)
    later = sorted(row.arrival_ns for row in rows)[iodepth:]
    assert all(0 <= b - a <= WAKE_NS for a, b in zip(done, later, strict=False))


@pytest.mark.parametrize("disk", [PAPERS, SSD], ids=["mechanical", "ssd"])
@pytest.mark.parametrize("policy", ["noop", "deadline", "anticipatory", "cfq", "stream:sptf"])
@pytest.mark.parametrize("depth", [1, 3, 32])
def test_queue_depth_is_respected(depth: int, policy: str, disk: Any) -> None:
    rows, _ = played(
        "[r]\nioengine=libaio\nrw=randread\ndirect=1\nbs=4k\nsize=64g\nio_size=512k\nnorandommap=1\niodepth=16\nnumjobs=3\noffset_increment=100g\n",
        policy,
        disk,
        queue_depth=depth,
    )
    most = most_at_once(rows, "dispatch_ns")
    assert most <= depth
    if policy in ("noop", "deadline"):
        assert most == depth


@pytest.mark.parametrize("iodepth", [1, 4])
def test_a_disk_is_busy_while_it_has_anything(iodepth: int) -> None:
    """With four requests at once from the first one to the last, else between its pauses."""
    rows, run = played(
        f"[r]\nioengine=libaio\nrw=randread\ndirect=1\nbs=4k\nsize=1g\nio_size=256k\niodepth={iodepth}\n",
        queue_depth=4,
    )
    pauses = sum(max(0, b.dispatch_ns - a.complete_ns) for a, b in pairwise(rows))
    assert (pauses > 0) == (iodepth == 1)
    assert run.busy_ns == rows[-1].complete_ns - rows[0].dispatch_ns - pauses


@pytest.mark.parametrize("nr_requests", [1, 4, 128])
def test_nr_requests_limits_what_the_scheduler_sees(nr_requests: int) -> None:
    work = (
        "[r]\nioengine=libaio\nrw=randread\ndirect=1\nbs=4k\nsize=64g\n"
        "io_size=512k\nnorandommap=1\niodepth=32\n"
    )
    with finished(Setup(PAPERS, "noop", nr_requests=nr_requests), jobs(work, PAPERS)) as simulation:
        raw = ffi.new("struct sim_result *")
        lib.sim_result(simulation.sim, raw)
    # One of them is in the disk as soon as the others are asked for.
    assert raw.max_pending == min(32, nr_requests)
    assert raw.disk_requests == 128


# Regions.


def test_strided_zones() -> None:
    rows, _ = played(
        "[r]\nrw=read\ndirect=1\nbs=4k\nzonemode=strided\nzonesize=8k\nzonerange=16k\nzoneskip=48k\nsize=32k\n"
    )
    starts = [row.sector * SECTOR // KIB for row in rows]
    assert starts == [zone * 64 + block for zone in range(4) for block in (0, 4)]


@pytest.mark.parametrize("percent", [0, 10, 50, 90, 100])
def test_share_of_reads(percent: int) -> None:
    _, run = played(f"[r]\nrw=randrw\nrwmixread={percent}\ndirect=1\nbs=4k\nsize=1g\nio_size=16m\n")
    reads, writes = run.jobs[0].blocks
    assert reads + writes == 4096
    # Four standard deviations of as many throws.
    spread = 4 * (4096 * percent / 100 * (1 - percent / 100)) ** 0.5
    assert abs(reads - 4096 * percent / 100) <= spread


@pytest.mark.parametrize("size", [16, 300, 4096])
def test_random_without_repetition_covers_each_block_once(size: int) -> None:
    rows, _ = played(f"[r]\nrw=randread\ndirect=1\nbs=4k\noffset=1m\nsize={size}k\n")
    assert sorted(row.sector for row in rows) == list(range(2048, 2048 + 2 * size, 8))
    assert [row.sector for row in rows] != sorted(row.sector for row in rows)


def test_random_with_repetition_does_not() -> None:
    rows, _ = played("[r]\nrw=randread\ndirect=1\nbs=4k\nsize=4m\nnorandommap=1\n")
    assert len(rows) == 1024
    # Of n throws at n places about n/e places are never hit.
    assert 580 < len({row.sector for row in rows}) < 720


# What the policy sees.


TWO_READERS = (
    "[r]\nrw=read\ndirect=1\nbs=64k\nsize=8m\noffset=10g\nnumjobs=2\noffset_increment=100g\n"
)


def test_owners_reach_the_policy() -> None:
    """anticipatory needs to know who is who: by process it waits, otherwise it does not help."""
    runs = {
        owners: played(TWO_READERS, "anticipatory", PAPERS, owners=owners)[1]
        for owners in simulate.OWNERS
    }
    assert runs["process"].counters["hits"] > 50
    assert runs["process"].mb_s > 2.5 * runs["none"].mb_s
    # One section is one group: two readers of one VM look like one process that seeks.
    assert runs["group"].mb_s < 0.7 * runs["process"].mb_s


def test_groups_are_sections() -> None:
    """Two sections are two groups: by group it is as by process."""
    text = (
        "[a]\nrw=read\ndirect=1\nbs=64k\nsize=8m\noffset=10g\n[b]\nrw=read\n"
        "direct=1\nbs=64k\nsize=8m\noffset=110g\n"
    )
    by_group = played(text, "anticipatory", PAPERS, owners="group")[0]
    assert by_group == played(text, "anticipatory", PAPERS, owners="process")[0]


@pytest.mark.parametrize("policy", ["noop", "deadline", "cscan", "sptf"])
def test_other_policies_do_not_look_at_owners(policy: str) -> None:
    assert (
        len(
            {
                tuple(played(TWO_READERS, policy, PAPERS, owners=owners)[0])
                for owners in simulate.OWNERS
            }
        )
        == 1
    )


@pytest.mark.parametrize("disk", [PAPERS, SSD], ids=["mechanical", "ssd"])
@pytest.mark.parametrize(
    "kind",
    [
        "rw=read",
        "rw=read\ndirect=1",
        "rw=randread\ndirect=1\nnorandommap=1",
        "rw=read\nthinktime=1ms",
    ],
    ids=repr,
)
def test_a_lone_process_has_efficiency_one(kind: str, disk: Any) -> None:
    from rich.console import Console

    from streamsched.sim.compare import compare

    processes = jobs(f"[r]\n{kind}\nbs=64k\nsize=8m\n", disk)
    setups = [Setup(disk, policy) for policy in ("noop", "deadline", "stream:deadline")]
    comparison = compare(setups, processes, console=Console(stderr=True))
    noop, deadline, stream = (comparison.efficiency(run) for run in comparison.runs)
    assert (noop, deadline) == (1.0, 1.0)
    # At random in 8 MB its requests are mostly near each other, and seem a stream for some time.
    assert stream == 1.0 or ("rand" in kind and stream >= 0.85)


# A flat disk: waiting never pays.


FLAT_WORK = {
    "readers": "[r]\nrw=read\nbs=4k\nsize=2m\nnumjobs=4\noffset_increment=50g\n",
    "direct readers": (
        "[r]\nrw=read\ndirect=1\nbs=64k\nsize=4m\nthinktime=300us\nnumjobs=4\n"
        "offset_increment=50g\n"
    ),
    "deep": (
        "[r]\nioengine=libaio\nrw=randread\ndirect=1\nbs=4k\nsize=100%\n"
        "norandommap=1\nio_size=2m\niodepth=16\nnumjobs=3\n"
    ),
    "mixed": (
        "[r]\nioengine=libaio\nrw=randrw\ndirect=1\nbs=4k\nsize=64m\n"
        "io_size=2m\niodepth=4\n[s]\nrw=read\nbs=16k\nsize=4m\noffset=1g\n"
        "numjobs=2\noffset_increment=1g\n[w]\nrw=write\nbs=4k\nsize=1m\n"
        "offset=9g\nfsync=8\n"
    ),
}


@pytest.mark.parametrize("depth", [1, 4, 32])
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("work", FLAT_WORK)
def test_on_a_flat_disk_stream_is_its_inner_policy(work: str, inner: str, depth: int) -> None:
    rows, run = played(FLAT_WORK[work], inner, queue_depth=depth)
    stream_rows, stream_run = played(FLAT_WORK[work], f"stream:{inner}", queue_depth=depth)
    assert stream_rows == rows
    # It says of each that the inner policy had all.
    said = {name: getattr(stream_run, name) for name in ("setup", "reasons", "reason_waits")}
    assert stream_run == dataclasses.replace(run, **said)
    assert sum(stream_run.reason_waits.values()) == sum(run.reason_waits.values())
    assert sum(stream_run.reasons.values()) == sum(run.reasons.values()) == len(rows)


# Shares.


@pytest.mark.parametrize("policy", ["stride", "wfq", "nwcs:stride", "nwcs:wfq"])
@pytest.mark.parametrize("owners", ["process", "group"])
def test_weights_reach_the_scheduler(policy: str, owners: str) -> None:
    """Four reads in flight each: shares are kept even without waiting."""
    job = "rw=randread\ndirect=1\nioengine=libaio\niodepth=4\nbs=64k\nsize=64m\n"
    job += "time_based=1\nruntime=5s\n"
    jobs = f"[a]\n{job}[b]\n{job}offset=100g\n"
    processes = parse_jobs(jobs, "test", capacity_bytes=PAPERS.capacity_sectors * SECTOR)
    weights = parse_weights(["b=3"], [policy], processes, owners)
    assert weights == ((2, 3),)
    setup = Setup(PAPERS, policy, owners=owners, weights=weights)
    first, second = simulate.run_jobs(setup, processes).jobs
    assert second.bytes / first.bytes == pytest.approx(3, rel=0.05)


def test_weights_of_the_job_file() -> None:
    """A section's processes have its weight, and --weight goes before it."""
    text = "[a]\nsize=1m\nnumjobs=2\n[b]\nsize=1m\nowner_weight=3\nnumjobs=2\n"
    processes = jobs(text)
    assert parse_weights([], ["wfq"], processes, "process") == ((3, 3), (4, 3))
    assert parse_weights([], ["noop", "wfq"], processes, "group") == ((2, 3),)
    assert parse_weights(["b=5"], ["wfq"], processes, "group") == ((2, 5),)
    assert parse_weights(["a=2"], ["wfq"], processes, "group") == ((1, 2), (2, 3))
    # Other policies give no shares, and nobody asked them to on the command line.
    assert parse_weights([], ["noop", "deadline"], processes, "none") == ()
    assert refusal(parse_weights, [], ["wfq"], processes, "none") == (
        "owner_weight of b: with --owners none nobody's share can be told from others'"
    )
