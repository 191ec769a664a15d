# SPDX-License-Identifier: GPL-2.0-only
"""stream's promise to all who wait, not to streams alone: syncing writers, readers at random, the
many. Everything is virtual time.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import statistics

import pytest
from job_text import job_text

from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Run, Setup, run_jobs
from streamsched.work.jobfile import parse_jobs
from streamsched.work.process import Process

SPEC = "stream:deadline"


def run(job: str, disk: str, depth: int, policy: str = SPEC, requests: int = 128) -> Run:
    model = load_disk(disk)
    setup = Setup(model, policy, owners="none", queue_depth=depth, nr_requests=requests)
    return run_jobs(setup, parse_jobs(job, capacity_bytes=model.capacity_sectors * 512))


def least_of_equal(found: Run) -> float:
    """The least part, times their number."""
    parts = [job.bytes for job in found.jobs]
    return min(parts) * len(parts) / max(1, sum(parts))


def begun(processes: list[Process], late: int) -> list[Process]:
    """The same, begun otherwise within 20 ms, or if @late is 0 together."""
    dice = random.Random(late)
    return [
        dataclasses.replace(each, startdelay_ns=late and dice.randrange(20_000_000))
        for each in processes
    ]


def shares(job: str, disk: str, depth: int, late: int = 0, owners: str = "none") -> list[float]:
    """What each has of what it has alone; @late: begun otherwise within 20 ms, or 0 together."""
    model = load_disk(disk)
    setup = Setup(model, SPEC, owners=owners, queue_depth=depth)
    processes = list(parse_jobs(job, capacity_bytes=model.capacity_sectors * 512))
    together = run_jobs(setup, begun(processes, late))
    alone = [run_jobs(setup, [each]).jobs[0].bytes for each in processes]
    return [found.bytes / most for found, most in zip(together.jobs, alone, strict=True)]


LOGS = job_text("""
[log] rw=write bs=16k fsync=1 numjobs=3 offset=100g offset_increment=200g size=1g runtime=30
time_based
""")


def test_writers_that_sync_all_go_on() -> None:
    """Each is light whenever it comes; the third waited for the whole run."""
    found = run(LOGS, "st2000dm006", 1)
    assert least_of_equal(found) >= 0.8
    assert max(job.longest_wait_ns for job in found.jobs) < 2e9


LOGS_BESIDE_A_READER = job_text("""
[global] runtime=60 ramp_time=4 time_based
[log] rw=write bs=8k fsync=1 thinktime=100 numjobs=2 offset=100g offset_increment=100g size=1g
[rand] rw=randread bs=4k direct=1 offset=50% size=100g
""")


@pytest.mark.parametrize("depth", [1, 8])
def test_the_time_of_a_flush_is_of_who_asked_for_it(depth: int) -> None:
    """What the drive's cache takes in costs nothing; writing it out takes most of the time."""
    assert 3 * min(shares(LOGS_BESIDE_A_READER, "st2000dm006", depth)) >= 0.7


COMMITS_BESIDE_READERS = job_text("""
[global] runtime=24 ramp_time=4 time_based size=20g
[random] rw=randread bs=4k direct=1 offset=10g
[more] rw=randread bs=64k direct=1 offset=200g
[stream] rw=read bs=64k offset=300g
[commits] rw=randwrite bs=4k fsync=1 offset=400g
""")


@pytest.mark.parametrize("owners", ["none", "process"])
@pytest.mark.parametrize("disk", ["wd5000aaks", "st2000dm006"])
def test_who_syncs_beside_random_readers_has_its_slice(disk: str, owners: str) -> None:
    """It sends its next write when the flush is over; a reader has its answer sooner."""
    found = shares(COMMITS_BESIDE_READERS, disk, 1, owners=owners)
    assert min(found) * len(found) >= 0.7, found


SENDERS = job_text("""
[global] direct=1 runtime=30 time_based size=100g
[deep] rw=randread bs=4k ioengine=libaio iodepth=32
[reader] rw=read bs=256k numjobs=2 offset=200g offset_increment=200g
[one] rw=randread bs=64k offset=600g
[light] rw=randread bs=4k thinktime=100000 offset=800g
""")


@pytest.mark.parametrize("disk", ["exos-x18", "st2000dm006"])
@pytest.mark.parametrize("depth", [1, 32])
def test_known_senders_have_a_part_each(disk: str, depth: int) -> None:
    """Who has many outstanding has no more for it, and who has used little does not wait."""
    *heavy, light = shares(SENDERS, disk, depth, owners="process")
    assert 5 * min(heavy) >= 0.6
    assert 5 * max(heavy) <= 1.8
    assert light >= 0.3


VMS = job_text("""
[global] direct=1 runtime=30 time_based
[scrub] rw=read bs=1m ioengine=libaio iodepth=3 size=100g
[vm] rw=randread bs=4k numjobs={nr} offset=200g offset_increment=150g size=20g
""")


@pytest.mark.parametrize("nr", [2, 4, 8])
def test_each_random_reader_has_its_part_beside_a_scrub(nr: int) -> None:
    """Nobody tells how many they are: it shows in where their requests come to."""
    begun = [shares(VMS.format(nr=nr), "exos-x18", 32, late) for late in range(8)]
    scrub, *machines = [statistics.mean(each) * (nr + 1) for each in zip(*begun, strict=True)]
    assert min(machines) >= 0.8, begun
    assert 0.7 <= scrub <= 1.6, begun


SAME = job_text("""
[readers] filename=/dev/sdx rw=read bs={bs} direct=1 ioengine=libaio iodepth={iodepth} numjobs=2
size=100g runtime=10 time_based
""")


@pytest.mark.parametrize(("bs", "iodepth"), [("64k", 4), ("64k", 16), ("256k", 1), ("1m", 1)])
@pytest.mark.parametrize("depth", [1, 32])
def test_readers_of_the_same_blocks_go_through_them_together(
    bs: str, iodepth: int, depth: int
) -> None:
    """What one has read the drive's cache has for the other, but not half a second later."""
    job = SAME.format(bs=bs, iodepth=iodepth)
    stream, plain = run(job, "exos-x18", depth), run(job, "exos-x18", depth, "noop")
    assert stream.bytes / stream.duration_ns >= 0.9 * plain.bytes / plain.duration_ns
    assert least_of_equal(stream) >= 0.9


TOGETHER = job_text("""
[readers] filename=/dev/sdx rw={rw} bs={bs} direct=1 ioengine=libaio iodepth={iodepth}
thinktime={think} thinktime_blocks=4 numjobs={nr} offset=300g size=9g runtime=20 time_based
""")


@pytest.mark.parametrize(
    ("rw", "bs", "iodepth", "think", "nr", "disk", "depth"),
    [
        # One comes first, while the others' are in the rest.
        ("read:4k", "256k", 1, "1ms", 3, "wd5000aaks", 1),
        # For each other's they are behind for longer than positioning.
        ("read", "16k", 32, 0, 4, "wd5000aaks", 1),
        # What one asks for another has just read, merged with more.
        ("read", "64k", 4, 0, 2, "exos-x18", 32),
        # The drive would read on at two places.
        ("read", "256k", 1, "2ms", 6, "wd5000aaks", 32),
    ],
)
def test_readers_that_begin_together_stay_together(
    rw: str, bs: str, iodepth: int, think: str, nr: int, disk: str, depth: int
) -> None:
    job = TOGETHER.format(rw=rw, bs=bs, iodepth=iodepth, think=think, nr=nr)
    stream, plain = run(job, disk, depth), run(job, disk, depth, "noop")
    assert stream.bytes / stream.duration_ns >= 0.9 * plain.bytes / plain.duration_ns


LATER = job_text("""
[global] filename=/dev/sdx rw={rw} bs={bs} direct=1 ioengine=libaio iodepth={iodepth}
thinktime={think} offset=100g size=1g
{readers}
""")


@pytest.mark.parametrize(
    ("rw", "bs", "iodepth", "think", "begin_ms", "disk", "depth"),
    [
        # They leave gaps, so that where a stream ends tells neither whose a request is.
        ("read:4k", "64k", 1, "300us", (12, 16, 17), "st2000dm006", 1),
        ("read:4k", "64k", 1, "300us", (12, 16, 17), "st2000dm006", 32),
        # The second comes before the first one's stream has turns, and is in a stream itself.
        ("read:4k", "256k", 1, "0", (2, 14), "exos-x18", 1),
        # The second is in a stream that is older than the first one's.
        ("read:4k", "16k", 1, "100us", (12, 8), "wd5000aaks", 1),
        # What the first one's stream has in the drive is far beyond where the others begin.
        ("read", "64k", 4, "100us", (13, 14, 10), "wd5000aaks", 32),
    ],
)
def test_who_comes_a_little_later_joins_who_reads_there(
    rw: str, bs: str, iodepth: int, think: str, begin_ms: tuple[int, ...], disk: str, depth: int
) -> None:
    readers = "\n".join(f"[reader{at}]\nstartdelay={at}ms" for at in begin_ms)
    job = LATER.format(rw=rw, bs=bs, iodepth=iodepth, think=think, readers=readers)
    stream, plain = run(job, disk, depth), run(job, disk, depth, "noop")
    assert plain.duration_ns >= 0.8 * stream.duration_ns


JOURNAL = job_text("""
[global] direct=1 ioengine=libaio runtime=30 time_based
[backup] rw=read bs=1m iodepth=4 size=400g
[journal] rw=write bs=4k fdatasync=1 thinktime={think} offset=300g size=1g
""")


@pytest.mark.parametrize("think", ["20ms", "100ms"])
def test_a_journal_beside_a_backup_is_light(think: str) -> None:
    """It thinks, flushes, and at once writes on."""
    job = JOURNAL.format(think=think)
    stream, plain = run(job, "exos-x18", 32), run(job, "exos-x18", 32, "deadline")
    for ours, theirs in zip(stream.jobs, plain.jobs, strict=True):
        assert ours.bytes >= 0.6 * theirs.bytes


SMALL = job_text("""
[reader] rw=randread bs=4k direct=1 ioengine=libaio iodepth=32 norandommap size={size}
runtime=20 time_based
""")


@pytest.mark.parametrize("size", ["1m", "4m", "16m"])
def test_nobody_waits_for_who_comes_behind_him_without_end(size: str) -> None:
    """At one place there is always somebody behind whoever is in front."""
    found = run(SMALL.format(size=size), "exos-x18", 1)
    assert max(job.longest_wait_ns for job in found.jobs) < 0.6e9


STRIDED = job_text("""
[reader] filename=/dev/sdx rw=read:64k bssplit=32k/34:64k/33:256k/33 direct=1 ioengine=libaio
iodepth=32 numjobs=2 size=100g runtime=20 time_based
""")


@pytest.mark.parametrize("disk", ["wd5000aaks", "st2000dm006", "exos-x18"])
def test_nobody_waits_for_who_has_run_ahead_of_him(disk: str) -> None:
    """Two begin at one place. Who has left it has requests where the head is, all the time."""
    found = run(STRIDED, disk, 1)
    assert max(job.longest_wait_ns for job in found.jobs) < 2e9
    assert least_of_equal(found) >= 0.8


@pytest.mark.parametrize("size", ["1g", "100g"])
@pytest.mark.parametrize("disk", ["exos-x18", "st2000dm006"])
def test_one_who_reads_at_random_keeps_what_the_drive_can_order(disk: str, size: str) -> None:
    """Some of many outstanding come near each other by chance; nobody goes on there."""
    job = SMALL.format(size=size)
    found, inner = run(job, disk, 32), run(job, disk, 32, "deadline")
    assert found.bytes / found.duration_ns >= 0.95 * inner.bytes / inner.duration_ns


def test_one_who_reads_at_random_in_the_cache_has_no_turns() -> None:
    """Its requests go on from each other by chance, and the drive's cache has them all."""
    job = SMALL.format(size="4m").replace("iodepth=32", "iodepth=1").replace("bs=4k", "bs=8k")
    found, inner = run(job, "exos-x18", 16, "stream:sptf"), run(job, "exos-x18", 16, "sptf")
    assert found.bytes / found.duration_ns >= 0.6 * inner.bytes / inner.duration_ns


DEEP = job_text("""
[global] direct=1 runtime=30 time_based ioengine=libaio
[deep] rw=randread bs=4k iodepth=16 size=2t
[stream] rw=read bs=256k iodepth=2 offset=6t size=1t
""")


def test_one_deep_random_reader_counts_as_one() -> None:
    """It has sixteen outstanding; a stream beside it has its half all the same."""
    found = shares(DEEP, "exos-x18", 32)
    assert min(found) * 2 >= 0.7, found


MANY = job_text("""
[global] runtime=40 time_based rw=read bs=64k direct={direct}
[r] numjobs={nr} offset_increment={each}g size={size}g
""")


@pytest.mark.parametrize("direct", [0, 1])
@pytest.mark.parametrize("nr", [40, 144, 300])
def test_the_many_all_go_on(nr: int, direct: int) -> None:
    """Whether or not they are streams yet, nobody waits for much longer than all turns last."""
    each = 16_500 // nr
    job = MANY.format(direct=direct, nr=nr, each=each, size=each * 3 // 4)
    found, inner = (run(job, "exos-x18", 32, spec, 1024) for spec in (SPEC, "deadline"))
    # Two switches and a service, for each.
    assert max(job.longest_wait_ns for job in found.jobs) / 1e9 <= max(0.7, nr * 0.035)
    assert found.bytes >= inner.bytes
    assert least_of_equal(found) >= 0.4


LIGHT_AT_RANDOM = job_text("""
[global] runtime=20 time_based size=50g
[buffered] rw=read numjobs=2 offset_increment=60g
[direct] rw=read bs=256k direct=1 offset=140g offset_increment=60g numjobs=2
[light] rw=randread bs=16k direct=1 thinktime={think} offset=300g
""")


@pytest.mark.parametrize("disk", ["exos-x18", "st2000dm006", "wd5000aaks"])
def test_the_head_does_not_wait_for_who_never_answers(disk: str) -> None:
    """One answer by chance had it wait at the end of each turn, up to 15 % of the time."""
    for think, depth in itertools.product(("20ms", "100ms"), (1, 32)):
        found = run(LIGHT_AT_RANDOM.format(think=think), disk, depth)
        assert found.counters["idle_ns"] <= 0.02 * found.duration_ns


THINKERS = job_text("""
[film] rw=read bs=16k size=1g thinktime=1500 io_size=160m numjobs=2 offset={offset}
offset_increment=2t
""")


@pytest.mark.parametrize("disk", ["exos-x18", "st2000dm006"])
@pytest.mark.parametrize("late", [1, 2, 3])
def test_two_slow_readers_are_as_slow_as_one(disk: str, late: int) -> None:
    """A disk that both need for a tenth of the time has no turns in which it waits for either.

    The head also waited for answers, and no trial saw that it was idle.
    """
    model = load_disk(disk)
    setup = Setup(model, SPEC, owners="none", queue_depth=8)
    step = model.capacity_sectors * 512 // 3 // 2**20
    work = THINKERS.replace("{offset}", "100g").replace("2t", f"{step}m")
    both = list(parse_jobs(work, capacity_bytes=model.capacity_sectors * 512))
    one = run_jobs(setup, both[:1]).duration_ns
    assert run_jobs(setup, begun(both, late)).duration_ns <= 1.4 * one


CACHED_WRITERS = job_text("""
[log] rw=write bs=4k direct=1 thinktime=500 thinktime_blocks=4 numjobs=16 offset=7g
offset_increment=1t io_size=100m size=1g
""")


STRIDED_WRITERS = job_text("""
[log] rw=write:1m bs=4k direct=1 ioengine=libaio iodepth=2 thinktime=523 numjobs=3 offset=3t
offset_increment=100g io_size=275m size=8g norandommap
""")


def test_streams_that_end_in_a_trial_have_lost_nothing() -> None:
    """Those that come instead count for them: there are three writers all the time."""
    model = load_disk("exos-x18")
    work = list(parse_jobs(STRIDED_WRITERS, capacity_bytes=model.capacity_sectors * 512))
    took = {
        spec: run_jobs(Setup(model, spec, owners="none", queue_depth=1), work).duration_ns
        for spec in ("noop", "stream:noop")
    }
    assert took["stream:noop"] <= 1.9 * took["noop"]


def test_writers_whose_cache_takes_them_all_have_no_turns() -> None:
    """The drive takes 16 writers as fast as one, so that turns lose nine tenths."""
    model = load_disk("exos-x18")
    work = list(parse_jobs(CACHED_WRITERS, capacity_bytes=model.capacity_sectors * 512))
    took = {
        spec: run_jobs(Setup(model, spec, owners="none", queue_depth=32), work).duration_ns
        for spec in ("deadline", SPEC)
    }
    assert took[SPEC] <= 2 * took["deadline"]


FRAGMENTS = job_text("""
[global] rw=read runtime=20 time_based
[file-in-pieces] bs=128k offset=300g size=60g zonemode=strided zonesize=2m zonerange=2m
zoneskip=300m
[scan] bs=1m size=100g
[another] bs=1m offset=150g size=100g
""")


@pytest.mark.parametrize("disk", ["exos-x18", "st2000dm006", "wd5000aaks"])
def test_a_known_sender_whose_file_is_in_pieces_has_its_part(disk: str) -> None:
    """Each piece is a stream of its own, and too short to have many turns."""
    assert 3 * min(shares(FRAGMENTS, disk, 8, owners="process")) >= 0.85


READ_WRITE_SYNC = job_text("""
[mixed] rw=rw bs=64k fsync=8 numjobs=24 offset=10g offset_increment=15g size=8g runtime=20
time_based
""")


def test_who_is_interrupted_goes_on_waiting() -> None:
    """A turn that flushes and light ones cut short is no turn had: its next is not a target off."""
    model = load_disk("wd5000aaks")
    setup = Setup(model, SPEC, owners="none", queue_depth=32)
    processes = list(parse_jobs(READ_WRITE_SYNC, capacity_bytes=model.capacity_sectors * 512))
    longest = [
        max(job.longest_wait_ns for job in run_jobs(setup, begun(processes, late)).jobs)
        for late in range(1, 7)
    ]
    # 0.9 s, and 1.5 s for who waits anew.
    assert statistics.median(longest) < 1_200_000_000, longest


SERVED = job_text("""
[global] direct=1 runtime=24 ramp_time=4 time_based cgroup=server
[scrub] rw=read bs=1m ioengine=libaio iodepth=3 size=100g
[vm] rw=randread bs=4k size=2g offset=200g offset_increment=50g numjobs=8
[other] cgroup=other rw=randwrite sync=1 bs=4k thinktime=100ms offset=700g size=1g
""")


@pytest.mark.parametrize("depth", [1, 32])
@pytest.mark.parametrize("disk", ["exos-x18", "st2000dm006"])
def test_those_whom_one_process_serves_are_not_lumped(disk: str, depth: int) -> None:
    """A server sends for all of its clients, and is known. They had 0.3 to 0.7 of their part."""
    scrub, *vms, _ = (9 * share for share in shares(SERVED, disk, depth, 3, owners="group"))
    assert min(vms) >= 0.6
    assert scrub <= 1.5


BOTH_WAYS = job_text("""
[both] rw=rw rwmixread=70 bs=4k direct=1 ioengine=libaio iodepth=16 thinktime=7us
thinktime_blocks=16 offset=1t offset_increment=4t size=1g numjobs=3 runtime=20 time_based
""")


def test_who_waits_for_its_own_writes_is_not_waited_for() -> None:
    """Its next reads come once the writes are done that it sent with the last ones."""
    stream, plain = (run(BOTH_WAYS, "exos-x18", 1, policy) for policy in (SPEC, "noop"))
    assert stream.bytes / stream.duration_ns >= 0.9 * plain.bytes / plain.duration_ns


SMALL_FILE = job_text("""
[random] rw=randread bs=128k direct=1 ioengine=libaio iodepth=16 size=256m runtime=30 time_based
""")


def test_one_who_reads_a_small_file_at_random_keeps_the_drives_order() -> None:
    """Its requests are near each other by chance, so it is found to be hundreds of streams.

    Some of these get nothing while a trial lasts, by chance too, and have no veto for it.
    """
    stream, plain = (run(SMALL_FILE, "exos-x18", 16, policy) for policy in (SPEC, "deadline"))
    assert stream.bytes / stream.duration_ns >= 0.75 * plain.bytes / plain.duration_ns


PAUSES = job_text("""
[global] direct=1 runtime=24 time_based size=100g
[stream] rw=read bs=1m numjobs=2 offset_increment=4g
[pauses] rw=read bs=64k offset=1g thinktime=300ms thinktime_blocks={blocks}
""")


@pytest.mark.parametrize("depth", [1, 32])
@pytest.mark.parametrize("blocks", [2, 3, 4, 8])
@pytest.mark.parametrize("disk", ["exos-x18", "st2000dm006"])
def test_who_pauses_is_waited_for_when_it_is_back(disk: str, blocks: int, depth: int) -> None:
    """It reads some blocks, one after the other, and then nothing for 300 ms. No wait costs as much
    as a pause lasts: who had three blocks between two had a third of what it has alone.
    """
    assert shares(PAUSES.format(blocks=blocks), disk, depth)[-1] >= 0.85
