# SPDX-License-Identifier: GPL-2.0-only
"""What fio has no word for, in virtual time: files, ever new processes, barriers, pools, stalls."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
from finished import finished
from said import refusal

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.sim import compare
from streamsched.sim.array import parse_array
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import WAKE_NS, Run, Setup, Simulation, check_depth, run_jobs
from streamsched.sim.tasks import run_task
from streamsched.work.jobfile import parse_jobs
from streamsched.work.process import Process

MS, S = 1_000_000, 1_000_000_000
KIB, MIB = 1 << 10, 1 << 20
SSD = load_disk("ssd")
# Every request by itself: one at a time, one page, in order.
ONE = "[p]\nrw=read\nbs=4k\ndirect=1\nsize=40k\n"


def test_a_depth_that_a_disk_has_not_is_refused() -> None:
    """By whatever made it: the model would go on with its own."""
    for disks, depth, why in (
        (("ssd",), 0, "queue depth 0: ssd takes 1 to 32 commands at once"),
        (("ssd", "usb2-2tb"), 2, "queue depth 2: usb2-2tb takes 1 command at once"),
    ):
        members = tuple(map(load_disk, disks))
        array = parse_array("raid0:2:64k") if len(disks) > 1 else None
        setup = Setup(members[0], "noop", queue_depth=depth, array=array, disks=members)
        assert refusal(Simulation, setup) == why


def test_a_queue_may_be_as_deep_as_the_drives() -> None:
    sas = dataclasses.replace(SSD, name="sas", queue_depth=254)
    with Simulation(Setup(sas, "noop", queue_depth=254)) as simulation:
        assert simulation.setup.queue_depth == 254
    with pytest.raises(UsageError, match="queue depth 255: sas takes 1 to 254 commands at once"):
        check_depth(255, [sas])


@pytest.mark.parametrize("second", ["12t", "3t"])
def test_two_actuators_take_turns_apart(second: str) -> None:
    """Readers in two halves of the disk have twice what those of one half share; the readers wait
    for the target in one half only. As in the kernel, tests/kernel/test_kernel_actuators.py."""
    disk = load_disk("exos-2x18")
    text = f"[global]\ndirect=1\nrw=read\nbs=64k\nsize=500m\n[a]\noffset=1t\n[b]\noffset={second}\n"
    work = parse_jobs(text, capacity_bytes=disk.capacity_sectors * 512, environ={})
    run = run_jobs(Setup(disk, "stream:deadline", owners="none", queue_depth=32), work)
    apart = second == "12t"
    assert run.wait.max < 1 if apart else run.wait.max > 400
    assert run.mb_s > 400 if apart else 230 < run.mb_s < 280


@dataclasses.dataclass
class Played:
    run: Run
    log: dict[str, list[int]]

    def of_job(self, job: int, field: str) -> list[int]:
        return [v for v, j in zip(self.log[field], self.log["job"], strict=True) if j == job]


FIELDS = (
    "arrival_ns",
    "dispatch_ns",
    "complete_ns",
    "sector",
    "nr_sectors",
    "job",
    "owner",
    "direction",
)


def processes(text: str, **changes: Any) -> list[Process]:
    parsed = parse_jobs(text, capacity_bytes=SSD.capacity_sectors * 512, environ={})
    return [dataclasses.replace(process, **changes) for process in parsed]


def played(work: list[Process], policy: str = "noop", **setup: Any) -> Played:
    with finished(Setup(SSD, policy, **setup), work) as simulation:
        log = {field: simulation.log_column(field) for field in FIELDS}
        return Played(simulation.result(work), log)


FILES = {"nr_file_splits": 1, "file_bytes": (12 * KIB,), "file_pct": (100,)}


def test_files_lie_one_behind_the_other_with_the_skip_between() -> None:
    done = played(processes(ONE, **FILES, seq_skip=4 * KIB, size=160 * KIB, io_bytes=36 * KIB))
    pages = [sector // 8 for sector in done.log["sector"]]
    assert pages == [0, 1, 2, 4, 5, 6, 8, 9, 10]


def test_directories_lie_apart() -> None:
    """Three files in a row, then three elsewhere."""
    work = processes(ONE, **FILES, directory_files=3, size=64 * MIB, align_bytes=1 * MIB)
    done = played([dataclasses.replace(p, io_bytes=108 * KIB) for p in work])
    starts = [
        sector for sector, page in zip(done.log["sector"], range(27), strict=True) if page % 9 == 0
    ]
    assert len(set(starts)) == 3 and all(sector % 2048 == 0 for sector in starts)
    for start in range(0, 27, 9):
        pages = done.log["sector"][start : start + 9]
        assert pages == [pages[0] + 8 * i for i in range(9)]


def test_random_files_are_whole_and_the_same_each_time() -> None:
    """Where a file begins says how long it is."""
    sizes = {"nr_file_splits": 2, "file_bytes": (4 * KIB, 8 * KIB), "file_pct": (50, 50)}
    work = processes(ONE.replace("=read", "=randread"), **sizes)
    work = [
        dataclasses.replace(p, size=256 * KIB, align_bytes=16 * KIB, io_bytes=1 * MIB) for p in work
    ]
    done = played(work)
    lengths: dict[int, set[int]] = {}
    files: list[list[int]] = []
    for sector in done.log["sector"]:
        if sector % 32 == 0:
            files.append([])
        files[-1].append(sector)
    for file in files[:-1]:
        lengths.setdefault(file[0], set()).add(len(file))
        assert file == [file[0] + 8 * i for i in range(len(file))]
    assert len(lengths) == 16 and {1, 2} == set().union(*lengths.values())
    assert all(len(seen) == 1 for seen in lengths.values())


# Two groups of 1 MiB, the first quarter of each for files of 8 KiB.
GROUPS = {
    "nr_file_splits": 1,
    "file_bytes": (8 * KIB,),
    "file_pct": (100,),
    "group_bytes": 1 * MIB,
    "group_files_bytes": 256 * KIB,
    "align_bytes": 16 * KIB,
    "norandommap": True,
    "io_bytes": 320 * KIB,
}
IN_GROUPS = "[p]\nfilename=x\nrw=rand{rw}\nbs=4k\ndirect=1\nsize=2m\n"
PAGES = 256  # of a group


def pages_of(done: Played) -> list[tuple[bool, int, int]]:
    """Whether it is written, its group and its page in there, of each request."""
    return [
        (direction == 1, sector // 8 // PAGES, sector // 8 % PAGES)
        for direction, sector in zip(done.log["direction"], done.log["sector"], strict=True)
    ]


def test_files_lie_in_the_beginning_of_groups() -> None:
    pages = pages_of(played(processes(IN_GROUPS.format(rw="read"), **GROUPS)))
    assert {group for _, group, _ in pages} == {0, 1}
    assert all(page < PAGES // 4 and page % 4 < 2 for _, _, page in pages)


def test_new_files_follow_each_other_in_a_group_s_free_space() -> None:
    """Each process has a sixteenth of it, which it begins again when it is full."""
    work = processes(IN_GROUPS.format(rw="write") + "numjobs=2\n", **GROUPS)
    done = played(work)
    part = (PAGES - PAGES // 4) // 16
    for job in (0, 1):
        for group in (0, 1):
            pages = [
                page
                for (write, at, page), by in zip(pages_of(done), done.log["job"], strict=True)
                if write and (at, by) == (group, job)
            ]
            first = PAGES // 4 + job * part
            assert len(pages) > part
            assert pages == [first + n % part for n in range(len(pages))]


def test_an_append_reads_and_writes_the_last_page_and_adds_in_the_free_space() -> None:
    changes = {**GROUPS, "append_pct": 100, "append_bytes": 4 * KIB, "io_bytes": 48 * KIB}
    pages = pages_of(played(processes(IN_GROUPS.format(rw="write"), **changes)))
    added = [0, 0]
    assert len(pages) == 12
    for read, rewritten, new in zip(*[iter(pages)] * 3, strict=True):
        group = read[1]
        assert not read[0] and read[2] < PAGES // 4 and read[2] % 4 == 1
        assert rewritten == (True, *read[1:])
        assert new == (True, group, PAGES // 4 + added[group])
        added[group] += 1


@pytest.mark.parametrize("percent", [0, 30])
def test_so_many_of_what_is_written_are_appends(percent: int) -> None:
    changes = {**GROUPS, "append_pct": percent, "append_bytes": 4 * KIB, "io_bytes": 8 * MIB}
    pages = pages_of(played(processes(IN_GROUPS.format(rw="write"), **changes)))
    appends = sum(not write for write, _, _ in pages)
    files = (len(pages) - 3 * appends) / 2
    assert 100 * appends / (appends + files) == pytest.approx(percent, abs=4)


def test_readahead_ends_with_the_file() -> None:
    work = processes("[p]\nrw=read\nbs=4k\nsize=1m\n", **FILES, seq_skip=4 * KIB, io_bytes=48 * KIB)
    done = played(work)
    assert list(zip(done.log["sector"], done.log["nr_sectors"], strict=True)) == [
        (0, 24),
        (32, 24),
        (64, 24),
        (96, 24),
    ]


def test_every_file_has_a_process_of_its_own() -> None:
    """Another owner each time, and the time that it takes to come."""
    work = processes(
        ONE, **FILES, new_process=True, spawn_ns=3 * MS, size=160 * KIB, io_bytes=36 * KIB
    )
    done = played(work)
    first, second, third = (done.log["owner"][i : i + 3] for i in (0, 3, 6))
    assert all(len(set(owners)) == 1 for owners in (first, second, third))
    assert len({*first, *second, *third}) == 3
    gaps = [
        b - a for a, b in zip(done.log["complete_ns"], done.log["arrival_ns"][1:], strict=False)
    ]
    inside, between = WAKE_NS, WAKE_NS + 3 * MS
    assert gaps == [inside, inside, between, inside, inside, between, inside, inside]


@pytest.mark.parametrize("owners", ["group", "none"])
def test_new_processes_show_only_where_processes_show(owners: str) -> None:
    work = processes(ONE, **FILES, new_process=True, size=160 * KIB, io_bytes=36 * KIB)
    assert len(set(played(work, owners=owners).log["owner"])) == 1


def test_the_scheduler_is_told_that_a_process_has_gone() -> None:
    """Up to 2.6.12 anticipation ends then; it lasts 6 ms where nobody is known to have gone."""
    reader = "[q]\nrw=read\nbs=4k\ndirect=1\noffset=512m\nsize=400k\n"
    far = {"seq_skip": 64 * MIB, "size": 256 * MIB, "io_bytes": 48 * KIB}
    chunks = processes(ONE, **FILES, **far, new_process=True, spawn_ns=1 * MS)
    rules = (("cooperation", 0),)
    done = played([*chunks, *processes(reader)], "anticipatory", tunables=rules)
    # The last process, behind which nobody comes, is waited for in vain, no other.
    assert done.run.counters["timeouts"] == 1


BARRIER = (
    "[a]\nrw=read\nbs=4k\ndirect=1\nsize=40k\n[b]\nrw=read\nbs=8k\ndirect=1\noffset=1m\nsize=80k\n"
)


def test_who_comes_first_to_the_barrier_waits() -> None:
    done = played(processes(BARRIER, barrier=1, barrier_blocks=2))
    ends = [done.of_job(job, "complete_ns") for job in (0, 1)]
    starts = [done.of_job(job, "arrival_ns") for job in (0, 1)]
    for block in (2, 4, 6, 8):
        there = max(ends[0][block - 1], ends[1][block - 1]) + WAKE_NS
        assert [starts[0][block], starts[1][block]] == [there + WAKE_NS] * 2


def test_other_numbers_and_those_that_are_done_are_not_waited_for() -> None:
    short, long = processes(BARRIER, barrier=1, barrier_blocks=1)
    stranger = dataclasses.replace(long, name="c", barrier=2, barrier_blocks=1)
    done = played([dataclasses.replace(short, io_bytes=8 * KIB), long, stranger])
    assert [job.bytes for job in done.run.jobs] == [8 * KIB, 80 * KIB, 80 * KIB]


def test_turns_go_round() -> None:
    text = ONE + "numjobs=3\noffset_increment=1m\n"
    done = played(processes(text, barrier=1, barrier_blocks=2, turns=True))
    assert done.log["job"] == [0, 0, 1, 1, 2, 2] * 5
    # Nobody is on the disk while another one is.
    starts, ends = done.log["arrival_ns"], done.log["complete_ns"]
    assert all(start >= end for end, start in zip(ends, starts[1:], strict=False))


def test_a_turn_passes_over_who_is_done() -> None:
    work = processes(ONE + "numjobs=3\n", barrier=1, barrier_blocks=1, turns=True)
    work[1] = dataclasses.replace(work[1], io_bytes=4 * KIB)
    assert played(work).log["job"] == [0, 1, 2, *[0, 2] * 9]


def test_a_pool_hides_who_asks() -> None:
    """Four processes, eight threads: never two blocks in one thread at a time."""
    work = processes(ONE + "numjobs=4\noffset_increment=1m\n", pool=3, pool_threads=8)
    done = played(work, queue_depth=4)
    owners = set(done.log["owner"])
    assert len(owners) == 8 and all(owner >> 16 == (1 << 16) + 3 for owner in owners)
    assert all(len(set(done.of_job(job, "owner"))) > 1 for job in range(4))
    spans = sorted(
        zip(done.log["owner"], done.log["arrival_ns"], done.log["complete_ns"], strict=True)
    )
    for (one, _, end), (other, start, _) in itertools.pairwise(spans):
        assert one != other or start >= end


@pytest.mark.parametrize("pool", [(64, 1), (1, 65), (1, 0), (0, 1)])
def test_a_pool_out_of_range_is_refused(pool: tuple[int, int]) -> None:
    with pytest.raises(StreamschedError, match="pool of threads is out of range"):
        played(processes(ONE, pool=pool[0], pool_threads=pool[1]))


STALL = {"stall_blocks": 2, "thinktime_ns": 50 * MS}


def test_stops_until_the_disk_serves_somebody_else() -> None:
    """It comes back within a tenth of a millisecond of that, though it might think for longer."""
    stalling = processes(ONE, **STALL)
    other = processes("[q]\nrw=read\nbs=4k\ndirect=1\noffset=64m\nsize=4m\nthinktime=2ms\n")
    done = played([*stalling, *other])
    ends, starts = done.of_job(0, "complete_ns"), done.of_job(0, "arrival_ns")
    others = done.of_job(1, "dispatch_ns")
    for block in (2, 4, 6):
        moved = min(at for at in others if at >= ends[block - 1])
        assert 0 <= starts[block] - moved <= 100_000 + WAKE_NS
    assert starts[1] == ends[0] + WAKE_NS


def test_alone_it_stops_for_its_think_time() -> None:
    done = played(processes(ONE, **STALL))
    ends, starts = done.log["complete_ns"], done.log["arrival_ns"]
    assert [starts[i + 1] - ends[i] for i in range(4)] == [WAKE_NS, WAKE_NS + 50 * MS] * 2


def test_the_end_does_not_wait_for_the_background() -> None:
    work = processes(
        "[a]\nrw=read\nbs=4k\ndirect=1\nsize=4m\n[b]\nrw=read\nbs=4k\ndirect=1\nsize=40k\n"
    )
    work[0] = dataclasses.replace(work[0], background=True, time_based=True)
    done = played(work)
    assert done.run.jobs[1].bytes == 40 * KIB
    assert done.run.jobs[0].bytes < 4 * MIB
    assert done.run.duration_ns <= done.run.jobs[1].duration_ns + 1 * MS


def test_alone_the_background_does_what_it_has_to_once() -> None:
    work = processes(ONE, background=True, time_based=True)
    tasks = compare.alone_tasks(work, Setup(SSD, "noop"))
    assert run_task(tasks[0]).bytes == 40 * KIB


@pytest.mark.parametrize(
    "clones",
    [
        (3, 2),
        # One that reads in order beside the many: it is measured, and stands for none of them.
        (1, 64),
        (64,),
        (1,) * 40,
    ],
)
def test_who_stands_for_whom_has_the_same_job(clones: tuple[int, ...]) -> None:
    sections = [section for section, nr in enumerate(clones) for _ in range(nr)]
    standing = compare.stand_ins(sections)
    assert all(sections[one] == section for one, section in zip(standing, sections, strict=True))
    measured = set(standing)
    assert {sections[one] for one in measured} == set(sections)
    assert len(measured) <= max(compare.MAX_ALONE, len(clones))
    assert all(standing[one] == one for one in measured)


def test_unlike_processes_have_their_own_rates_alone() -> None:
    text = (
        "[scan]\nrw=read\nbs=1m\ndirect=1\nsize=64m\n"
        "[many]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\nio_size=256k\noffset=1g\nnumjobs=40\n"
    )
    disk = load_disk("exos-x18")
    work = parse_jobs(text, "many", capacity_bytes=disk.capacity_sectors * 512)
    found = compare.compare([Setup(disk, "deadline")], work)
    rates = [found.alone_rate(found.runs[0], number) or 0.0 for number in range(len(work))]
    assert rates[0] > 100e6 and all(0 < rate < 10e6 for rate in rates[1:])


def test_readahead_is_a_process_s_own() -> None:
    text = "[p]\nrw=read\nbs=4k\nsize=1m\n"
    widths = {
        window: max(played(processes(text, readahead_pages=window)).log["nr_sectors"]) // 8
        for window in (0, 8, 32)
    }
    assert widths[0] == 1 and widths[8] <= 16 < widths[32]


def test_the_first_window_may_be_given() -> None:
    """Half the largest at once, as up to Linux 2.6.10: a short file is one request."""
    sizes = {"nr_file_splits": 1, "file_bytes": (64 * KIB,), "file_pct": (100,)}
    for first, requests in ((0, 3), (16, 1)):
        work = processes("[p]\nrw=read\nbs=4k\nsize=64k\n", **sizes, first_window_pages=first)
        assert played(work).run.disk_requests == requests


def test_nothing_behind_a_map_is_asked_for_before_it_is_there() -> None:
    """As in ext2 and ext3: where pages lie is known for 12, then for 1024 behind each map."""
    work = processes("[p]\nrw=read\nbs=4k\noffset=40m\nsize=9m\n", maps=True)
    plain = played(processes("[p]\nrw=read\nbs=4k\noffset=40m\nsize=9m\n"))
    done = played(work)
    assert done.run.bytes == plain.run.bytes == 9 * MIB
    requests = [
        (sector // 8 - 40 * 256, nr // 8, arrival, complete)
        for sector, nr, arrival, complete in zip(
            *(done.log[field] for field in ("sector", "nr_sectors", "arrival_ns", "complete_ns")),
            strict=True,
        )
    ]
    for at in (12, 12 + 1025, 12 + 2 * 1025):
        (there,) = [r for r in requests if r[0] <= at < r[0] + r[1]]
        assert there[0] + there[1] == at + 1
        assert all(r[2] >= there[3] for r in requests if r[0] > at)


def test_several_processes_may_wait_for_a_map() -> None:
    work = processes("[p]\nrw=read\nbs=64k\nsize=9m\nnumjobs=3\n", maps=True)
    assert played(work).run.bytes == 27 * MIB
