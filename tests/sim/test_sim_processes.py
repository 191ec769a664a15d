# SPDX-License-Identifier: GPL-2.0-only
"""What processes and replay do, in virtual time: exact times, from the log of the disk's requests.

Most tests run on the flat disk of disks/ssd.toml: there a request that has the
disk to itself takes the same time wherever it lies.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from job_text import job_text

from streamsched._core import ffi, lib
from streamsched.base.errors import UsageError
from streamsched.sim import simulate
from streamsched.sim.diskfile import load_disk
from streamsched.sim.policies import parse_weights
from streamsched.sim.simulate import WAKE_NS, Run, Setup, Simulation
from streamsched.work.jobfile import parse_jobs
from streamsched.work.process import Process

US, MS, S = 1_000, 1_000_000, 1_000_000_000
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SECTOR = 512
MB_S = 1_000_000
COPY_NS = simulate.PAGE_COPY_NS

SSD = load_disk("ssd")
PAPERS = load_disk("wd5000aaks")
FIO = shutil.which("fio")
INNER = ("noop", "deadline", "cscan", "sptf", "linus")


class Row(NamedTuple):
    arrival_ns: int
    dispatch_ns: int
    complete_ns: int
    sector: int
    nr_sectors: int
    job: int

    @property
    def end(self) -> int:
        return self.sector + self.nr_sectors


def jobs(text: str, disk: Any = SSD) -> list[Process]:
    return parse_jobs(text, capacity_bytes=disk.capacity_sectors * SECTOR, environ={})


def played(
    work: str | Sequence[Process], policy: str = "noop", disk: Any = SSD, **setup: Any
) -> tuple[list[Row], Run]:
    """The disk's requests in order of completion, and the result."""
    processes = jobs(work, disk) if isinstance(work, str) else list(work)
    with Simulation(Setup(disk, policy, **setup)) as simulation:
        for process in processes:
            simulation.add(process)
        simulation.log(1_000_000)
        for _ in simulation.steps():
            pass
        rows = [Row(*row) for row in simulation.log_rows()]
        return rows, simulation.result(processes)


def one_read_ns(nr_bytes: int, disk: Any = SSD) -> int:
    """What a direct read of this length takes when nothing else goes on."""
    rows, _ = played(f"[r]\nrw=read\ndirect=1\nbs={nr_bytes}\nsize={nr_bytes}\n", disk=disk)
    return rows[0].complete_ns - rows[0].dispatch_ns


def covered(rows: Sequence[Row]) -> list[int]:
    """Every sector moved, with repetitions, sorted."""
    return sorted(sector for row in rows for sector in range(row.sector, row.end))


# Sequential reading and readahead.


def test_a_buffered_reader_moves_each_byte_once() -> None:
    rows, run = played("[r]\nrw=read\nbs=4k\noffset=1m\nsize=3m\n")
    assert covered(rows) == list(range(MIB // SECTOR, 4 * MIB // SECTOR))
    assert run.bytes_read == 3 * MIB
    assert run.jobs[0].blocks == (768, 0)


def test_readahead_windows_are_those_of_linux() -> None:
    """4 pages, then twice as many each time, up to 32 pages (mm/readahead.c)."""
    rows, _ = played("[r]\nrw=read\nbs=4k\nsize=2m\n")
    # The first window is read with the one behind it marked at its second page.
    assert [row.nr_sectors * SECTOR // KIB for row in rows[:4]] == [16, 32, 64, 128]
    assert {row.nr_sectors * SECTOR // KIB for row in rows[3:-1]} == {128}
    assert all(a.end == b.sector for a, b in pairwise(rows))


PASSES = {
    "in order": "rw=read\nloops=3",
    "at random": "rw=randread\nloops=3",
    "by io_size": "rw=read\nio_size=3m",
    "files": "rw=read\nloops=3\nnrfiles=4",
    "files at random": "rw=randread\nloops=3\nnrfiles=4",
}


@pytest.mark.parametrize("how", PASSES)
def test_each_pass_reads_from_the_disk(how: str) -> None:
    """As fio, which lets go of a file's pages before it; with invalidate=0 the first alone."""
    text = f"[r]\nfilename=/dev/sda\nbs=4k\noffset=1m\nsize=1m\n{PASSES[how]}\n"
    if "files" in how:
        text = text.replace("filename=/dev/sda\n", "").replace("offset=1m\n", "")
    rows, run = played(text)
    once, again = played(f"{text}invalidate=0\n")
    assert run.bytes_read == again.bytes_read == 3 * MIB
    assert len(covered(rows)) == 3 * MIB // SECTOR
    assert len(covered(once)) == MIB // SECTOR


def test_a_pass_ends_with_the_time_too() -> None:
    text = "[r]\nrw=read\nbs=64k\nsize=1m\ntime_based\nruntime=100ms\n"
    rows, run = played(text)
    assert len(covered(rows)) * SECTOR >= run.bytes_read > 3 * MIB


@pytest.mark.parametrize("others", ["", "offset=512k\n", "offset=4m\n"])
def test_who_begins_lets_go_of_its_own_region_alone(others: str) -> None:
    """The second job reads what of its region the first one had read, too."""
    text = (
        f"[g]\nfilename=/dev/sda\nrw=read\nbs=4k\nsize=1m\n[h]\nstonewall\n{others}invalidate=0\n"
    )
    text = text.replace("[g]", "[global]").replace("[h]", "[a]\n[b]")
    fresh = text.replace("invalidate=0\n", "")
    kept = {"": 1 * MIB, "offset=512k\n": 3 * MIB // 2, "offset=4m\n": 2 * MIB}[others]
    assert len(covered(played(text)[0])) * SECTOR == kept
    assert len(covered(played(fresh)[0])) == 2 * MIB // SECTOR


def test_what_is_yet_to_be_written_stays_in_memory() -> None:
    text = "[global]\nfilename=/dev/sda\nbs=4k\nsize=1m\n[w]\nrw=write\n[r]\nstonewall\nrw=read\n"
    rows, _ = played(text)
    assert not rows or not {row.job for row in rows} & {1}
    synced, _ = played(text.replace("rw=write", "rw=write\nend_fsync=1"))
    assert sum(row.nr_sectors for row in synced if row.job == 1) == MIB // SECTOR


@pytest.mark.parametrize(
    ("pages", "windows"),
    [
        (32, [16, 32, 64, 128, 128]),
        (64, [16, 32, 64, 128, 256, 256]),
        (8, [8, 16, 32, 32]),
        (0, [4, 4, 4]),
    ],
)
def test_readahead_limit(pages: int, windows: list[int]) -> None:
    rows, _ = played("[r]\nrw=read\nbs=4k\nsize=2m\n", readahead_pages=pages)
    assert [row.nr_sectors * SECTOR // KIB for row in rows[: len(windows)]] == windows


def test_a_window_is_asked_for_before_the_reader_runs_dry() -> None:
    """The second window is sent when the reader comes to the mark, at the second page."""
    rows, _ = played("[r]\nrw=read\nbs=4k\nsize=2m\n")
    first, second = rows[0], rows[1]
    assert first.arrival_ns == 0
    assert second.arrival_ns == first.complete_ns + WAKE_NS + COPY_NS


def test_random_buffered_reads_have_no_readahead() -> None:
    rows, _ = played("[r]\nrw=randread\nbs=4k\nsize=64g\nio_size=1m\nnorandommap=1\n")
    assert {row.nr_sectors for row in rows[1:]} == {8}


def test_read_again_comes_from_memory() -> None:
    rows, run = played("[r]\nrw=read\nbs=64k\nsize=1m\nio_size=4m\ninvalidate=0\n")
    assert run.bytes_read == 4 * MIB
    assert covered(rows) == list(range(MIB // SECTOR))


def test_two_readers_of_one_file_share_its_pages() -> None:
    rows, run = played("[r]\nfilename=x\nrw=read\nbs=4k\nsize=1m\nnumjobs=2\n")
    assert run.bytes_read == 2 * MIB
    assert covered(rows) == list(range(MIB // SECTOR))


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


def test_stonewall() -> None:
    text = (
        "[a]\nrw=read\ndirect=1\nbs=4k\nsize=40k\n[b]\nrw=read\ndirect=1\n"
        "bs=4k\nsize=8k\noffset=1g\n[c]\nstonewall\nrw=read\ndirect=1\nbs=4k\n"
        "size=4k\noffset=2g\n[d]\nrw=read\ndirect=1\nbs=4k\nsize=4k\n"
        "offset=3g\n"
    )
    rows, _ = played(text)
    first = [row for row in rows if row.job in (0, 1)]
    second = [row for row in rows if row.job in (2, 3)]
    assert len(first) == 12 and len(second) == 2
    assert min(row.arrival_ns for row in second) >= max(row.complete_ns for row in first)
    # Both of the second stage start together.
    assert second[0].arrival_ns == second[1].arrival_ns


EXITS = job_text("""\
[global] bs=4k direct=1 size=4g time_based exitall exit_what={what}
[a] runtime=20ms
[b] offset=4g runtime=80ms
[ramps] offset=8g ramp_time=30ms runtime=40ms
[later] offset=12g startdelay=30ms runtime=20ms
[waits] offset=16g wait_for=b runtime=20ms
[other] new_group offset=20g runtime=50ms
[behind] stonewall offset=24g runtime=20ms
[beside] offset=28g runtime=40ms
""")


EXITALL = {
    # As a real fio 3.33 ends them: whoever waits for b, or is to come, never begins.
    "group": [(0, 20), (0, 20), (0, 20), None, None, (0, 50), (50, 70), (50, 70)],
    # What ramps is not yet running, what waits begins when b is gone.
    "stonewall": [(0, 20), (0, 20), (30, 40), (30, 40), (20, 40), (0, 20), (40, 60), (40, 60)],
    "all": [(0, 20), (0, 20), (0, 20), None, None, (0, 20), None, None],
}


@pytest.mark.parametrize(("what", "ends"), EXITALL.items())
def test_exitall(what: str, ends: list[tuple[int, int] | None]) -> None:
    rows, run = played(EXITS.format(what=what))
    for number, (job, expected) in enumerate(zip(run.jobs, ends, strict=True)):
        own = [row for row in rows if row.job == number]
        if expected is None:
            assert (own, job.duration_ns) == ([], 0), job.name
            continue
        begin, end = expected
        assert job.duration_ns == pytest.approx((end - begin) * MS, abs=MS), job.name
        if own:
            assert max(row.complete_ns for row in own) == pytest.approx(end * MS, abs=MS)
    last = max(end for _, end in filter(None, ends))
    assert run.duration_ns == pytest.approx(last * MS, abs=MS)


def fio_output(job: str, where: Path) -> str:
    """With exitall fio 3.33 sometimes, about once in ten times, never ends: then anew."""
    for _ in range(6):
        with subprocess.Popen(
            [FIO or "", "--output-format=json", job],
            stdout=subprocess.PIPE, text=True, cwd=where, start_new_session=True,
        ) as fio:  # fmt: skip
            try:
                output, _errors = fio.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(fio.pid, signal.SIGKILL)
                continue
        assert fio.returncode == 0
        return output
    raise AssertionError("fio never ended")


@pytest.mark.skipif(FIO is None, reason="fio is not installed")
@pytest.mark.parametrize("what", ["group", "stonewall", "all"])
def test_exitall_is_as_in_fio(what: str, tmp_path: Path) -> None:
    """Who begins at all: how long they do something depends on how busy this machine is.

    In fio everyone that exitall ends tells all others to end once more; who begins just then,
    as the one that waits, may end before it does anything. So it has several tries.
    """
    text = EXITS.format(what=what)
    _, run = played(text)
    # Ten times as long, and without a disk.
    slow = re.sub(r"=(\d+)ms", r"=\g<1>0ms", text).replace("size=4g", "size=4g\nioengine=null")
    (tmp_path / "a.fio").write_text(slow.replace("direct=1", "rate=1m"))
    ours = [job.duration_ns > 0 for job in run.jobs]
    tries = []
    while ours not in tries and len(tries) < 5:
        output = fio_output("a.fio", tmp_path)
        found = json.loads(output[output.index("{") :])["jobs"]
        tries.append([job["job_runtime"] > 0 for job in found])
        if what == "group":
            # fio 3.33 counts those that never begin each time it looks, and so ends too early.
            tries[-1][6:] = [True, True]
    assert ours in tries


def test_exitall_lets_what_is_under_way_come_to_its_end() -> None:
    text = (
        "[global]\nexitall\ndirect=1\nbs=4k\nioengine=libaio\n[a]\nsize=4k\nrw=read\n"
        "[b]\nsize=1g\noffset=1g\nrw=randread\niodepth=8\n"
        "[thinks]\nsize=1g\noffset=3g\nthinktime=10s\n"
        "[writes]\nsize=4m\noffset=5g\nrw=write\ndirect=0\nend_fsync=1\nthinktime=1s\n"
    )
    rows, run = played(text)
    assert [sum(row.job == job for row in rows) for job in range(4)] == [1, 8, 1, 1]
    assert run.jobs[1].bytes_read == 8 * 4 * KIB
    assert run.duration_ns < 100 * MS


def test_the_end_of_a_clone_is_that_of_its_job() -> None:
    rows, _ = played(
        "[global]\nexitall\ndirect=1\nbs=4k\n[a]\nsize=40k\nnumjobs=2\noffset_increment=1g\n"
        "[b]\nsize=1g\noffset=5g\n"
    )
    assert all(sum(row.job == job for row in rows) <= 10 for job in range(3))


# Several files.


def in_files(text: str, disk: Any = SSD) -> list[tuple[int, int, int]]:
    """(file, byte in it, bytes) of each request of the only job."""
    (process,) = jobs(text, disk)
    rows, _ = played([process], disk=disk)
    places = [divmod(row.sector * SECTOR - process.offset, process.file_stride) for row in rows]
    return [(*place, row.nr_sectors * SECTOR) for place, row in zip(places, rows, strict=True)]


def in_files_of_fio(text: str, folder: Path) -> list[tuple[int, int, int]]:
    log = "direct=0\nwrite_iolog=log\n"
    (folder / "a.fio").write_text(text.replace("direct=1\n", log))
    subprocess.run([FIO or "", "a.fio"], capture_output=True, cwd=folder, timeout=60, check=True)
    words = [line.split() for line in (folder / "log").read_text().splitlines()]
    return [
        (int(line[-4].rpartition(".")[2]), int(line[-2]), int(line[-1]))
        for line in words
        if line[-3:-2] in (["read"], ["write"])
    ]


@pytest.mark.skipif(FIO is None, reason="fio is not installed")
@pytest.mark.parametrize(
    "more",
    [
        "nrfiles=4\nsize=64k",
        "nrfiles=4\nsize=44k",
        "nrfiles=4\nsize=45000",
        "nrfiles=3\nsize=200k\nbs=8k",
        "nrfiles=4\nsize=64k\nfile_service_type=sequential",
        "nrfiles=4\nsize=64k\nfile_service_type=sequential:2",
        "nrfiles=4\nsize=64k\nfile_service_type=roundrobin:3",
        "nrfiles=6\nsize=96k\nopenfiles=2",
        "nrfiles=6\nsize=96k\nopenfiles=4\nfile_service_type=roundrobin:3",
        "nrfiles=4\nsize=64k\nopenfiles=1",
        "nrfiles=4\nsize=64k\nio_size=100k",
        "nrfiles=4\nsize=64k\nio_size=50%",
        "nrfiles=2\nsize=66k\nio_size=80k",
        "nrfiles=2\nsize=66k\nloops=2",
        "nrfiles=4\nsize=64k\nloops=2\nfile_service_type=sequential",
        "nrfiles=4\nfilesize=16k",
        "nrfiles=4\nfilesize=16k\nsize=32k",
        "nrfiles=4\nfilesize=16k\nio_size=128k",
        "nrfiles=4\nsize=64k\nnumber_ios=5",
        "nrfiles=2\nsize=64k\nrw=read:-8k",
        "nrfiles=4\nsize=64k\nrw=write",
        "nrfiles=4\nsize=64k\nrw=read:4k\nio_size=64k",
    ],
)
def test_several_files_in_order_are_as_in_fio(more: str, tmp_path: Path) -> None:
    text = f"[a]\nrw=read\nbs=4k\ndirect=1\n{more}\n"
    assert in_files(text) == in_files_of_fio(text, tmp_path)


@pytest.mark.skipif(FIO is None, reason="fio is not installed")
@pytest.mark.parametrize(
    ("more", "alike"),
    [
        ("rw=randread", "files"),
        ("rw=randread\nnorandommap", "files"),
        ("rw=randread\nnorandommap\nfile_service_type=sequential", "files"),
        ("rw=randread\nfile_service_type=sequential", "files"),
        ("rw=randread\nsize=45000\nnorandommap", "files"),
        ("rw=randread\nopenfiles=2", "files"),
        ("rw=read\nfile_service_type=random", "blocks"),
        ("rw=randread\nfile_service_type=random:3\nopenfiles=2", "blocks"),
    ],
)
def test_several_files_at_random_are_as_in_fio(more: str, alike: str, tmp_path: Path) -> None:
    """Random numbers differ: what is the same is the order of files, or which blocks there are."""
    text = f"[a]\nbs=4k\ndirect=1\nsize=64k\nnrfiles=4\n{more}\n"
    ours, theirs = in_files(text), in_files_of_fio(text, tmp_path)
    if alike == "files":
        assert [place[0] for place in ours] == [place[0] for place in theirs]
    else:
        assert sorted(ours) == sorted(theirs)
    if "norandommap" not in more:
        assert len(set(ours)) == 16


def test_one_file_at_random_has_so_many_turns() -> None:
    text = "[a]\nrw=read\nbs=4k\ndirect=1\nsize=64m\nnrfiles=8\nfile_service_type=random:4\n"
    files = [place[0] for place in in_files(text)]
    turns = [files[at : at + 4] for at in range(0, 4000, 4)]
    assert all(len(set(turn)) == 1 for turn in turns)
    count = [sum(turn[0] == file for turn in turns) for file in range(8)]
    assert min(count) > 80  # of 125


def test_several_files_have_readahead_of_their_own() -> None:
    """Read by turns, each goes on as if it were alone."""
    one, _ = played("[a]\nrw=read\nsize=1m\n")
    rows, run = played("[a]\nrw=read\nsize=4m\nnrfiles=4\n")
    assert run.bytes_read == 4 * MIB
    assert covered(rows) == list(range(4 * MIB // SECTOR))
    for file in range(4):
        own = [row for row in rows if row.sector // 2048 == file]
        assert [(r.sector % 2048, r.nr_sectors) for r in own] == [
            (r.sector, r.nr_sectors) for r in one
        ]


def test_an_fsync_has_a_turn() -> None:
    """To fio 3.33 it is a block of its own kind: of two files one is written, the other synced."""
    text = "[a]\nrw=write\nbs=4k\nsize=4m\nnrfiles=2\nfsync=1\nio_size=20k\n"
    assert played(text)[0] == []
    written = [8 * number for number in range(5)]
    rows, _ = played(text + "file_service_type=sequential\n")
    assert [row.sector for row in rows] == written
    # What is left at the end is synced in all of them.
    rows, _ = played(text + "end_fsync=1\n")
    assert [(row.sector, row.nr_sectors) for row in rows] == [(0, 5 * 8)]


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


@pytest.mark.parametrize("nr_requests", [1, 4, 128])
def test_nr_requests_limits_what_the_scheduler_sees(nr_requests: int) -> None:
    work = (
        "[r]\nioengine=libaio\nrw=randread\ndirect=1\nbs=4k\nsize=64g\n"
        "io_size=512k\nnorandommap=1\niodepth=32\n"
    )
    with Simulation(Setup(PAPERS, "noop", nr_requests=nr_requests)) as simulation:
        for process in jobs(work, PAPERS):
            simulation.add(process)
        for _ in simulation.steps():
            pass
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


# Writing.


def test_buffered_writes_stay_in_memory() -> None:
    rows, run = played("[w]\nrw=write\nbs=4k\nsize=1m\n")
    assert rows == []
    assert run.duration_ns == 256 * COPY_NS
    assert run.bytes_written == MIB


def test_buffered_writes_are_throttled_and_written_back() -> None:
    """Above a tenth of the cache the flusher writes, above a fifth the writer sleeps."""
    text = "[w]\nrw=write\nbs=64k\nsize=1g\n"
    rows, run = played(text, disk=PAPERS)
    written = sum(row.nr_sectors for row in rows) * SECTOR
    limit, background = 2 * GIB // 5, 2 * GIB // 10
    assert run.bytes_written == GIB
    # What is not on the disk at the end is dirty below the limit, or on its way; nothing is
    # written twice.
    on_its_way = simulate.NR_REQUESTS * 64 * 4 * KIB
    assert GIB - limit - on_its_way - MIB <= written <= GIB - background + MIB
    assert len(set(covered(rows))) == written // SECTOR
    # A writer faster than the disk goes at its rate.
    assert run.duration_ns > (GIB - limit) / (110 * MB_S) * S
    assert rows[0].arrival_ns == pytest.approx(background / 4096 * COPY_NS, rel=0.01)


@pytest.mark.parametrize("percent", [20, 40])
def test_how_much_may_be_dirty(percent: int) -> None:
    """As much is in memory when a writer that is faster than the disk ends."""
    rows, run = played("[w]\nrw=write\nbs=64k\nsize=1g\n", disk=PAPERS, dirty_pct=percent)
    written = sum(row.nr_sectors for row in rows if row.complete_ns <= run.duration_ns) * SECTOR
    on_its_way = simulate.NR_REQUESTS * 512 * KIB
    left = GIB - written
    assert left == pytest.approx(2 * GIB * percent / 100, abs=on_its_way)


def test_memory_holds_as_many_pages_as_there_is_room() -> None:
    """However they lie: here each is in a chunk of its own."""
    text = "[r]\nrw=read:252k\nbs=4k\nsize=64m\nio_size={}k\ninvalidate=0\n"
    text = text.format(2 * 256 * 4)  # 256 pages, twice
    rows, _ = played(text, cache_bytes=1 * MIB, readahead_pages=0)
    assert len(rows) == 256
    rows, _ = played(text, cache_bytes=512 * KIB, readahead_pages=0)
    assert len(rows) == 512


def test_dirty_data_is_written_after_half_a_minute() -> None:
    text = (
        "[w]\nrw=write\nbs=4k\nsize=64k\n[r]\nrw=read\ndirect=1\nbs=4k\n"
        "size=4k\noffset=1g\nstartdelay=60\n"
    )
    rows, _ = played(text)
    (write,) = (row for row in rows if row.sector < 2048)
    assert (write.sector, write.nr_sectors) == (0, 128)
    assert 30 * S <= write.arrival_ns <= 35 * S


def test_fsync_waits_for_the_medium() -> None:
    """Nothing is thought done before the disk has emptied its cache."""
    plain = "[w]\nrw=write\nbs=4k\nsize=64k\n"
    _, lazy = played(plain, disk=PAPERS)
    rows, synced = played(plain + "end_fsync=1\n", disk=PAPERS)
    assert covered(rows) == list(range(128))
    # The disk takes the write into its cache at once; the flush needs the platters.
    assert rows[-1].complete_ns - rows[-1].dispatch_ns < MS
    flush_ns = synced.duration_ns - rows[-1].complete_ns
    assert flush_ns > MS
    assert lazy.duration_ns == 16 * COPY_NS < rows[0].complete_ns


def test_the_last_to_end_writes_all_back() -> None:
    """As sync(2): the writes are nobody's, and none comes while another process goes on."""
    (writer,) = jobs("[w]\nrw=write\nbs=4k\nsize=1m\n")
    (reader,) = jobs("[r]\nrw=read\nbs=4k\nsize=4k\noffset=1g\nstartdelay=1\n")
    writer = dataclasses.replace(writer, end_sync=True)
    rows, run = played([writer])
    assert sum(row.nr_sectors for row in rows) * SECTOR == MIB
    assert run.duration_ns >= max(row.complete_ns for row in rows)
    assert {row.job for row in rows} == {1}
    rows, run = played([writer, reader])
    assert [row.job for row in rows] == [1]


def test_fsync_after_every_write() -> None:
    rows, run = played("[w]\nrw=write\nbs=4k\nsize=32k\nfsync=1\n", disk=SSD)
    assert [row.sector for row in rows] == list(range(0, 64, 8))
    flush_ns = load_disk("ssd").flush_ns
    # Each comes after the flush of the one before, and its own copy into the cache.
    gaps = [b.arrival_ns - a.complete_ns for a, b in pairwise(rows)]
    assert len(set(gaps)) == 1
    assert gaps[0] >= flush_ns + WAKE_NS + COPY_NS
    assert run.duration_ns >= 8 * flush_ns


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


# Replay.


class Traced(NamedTuple):
    """A request as blkparse prints it; @done_ns where its completion is recorded."""

    at_ns: int
    sector: int
    owner: int = 7
    done_ns: int | None = None
    nr_sectors: int = 8


def trace_of(requests: Sequence[Traced]) -> bytes:
    events = []
    for one in requests:
        where = f"R {one.sector} + {one.nr_sectors}"
        events.append((one.at_ns, f"{one.owner} Q {where} [p]"))
        if one.done_ns is not None:
            events.append((one.at_ns, f"{one.owner} D {where} [p]"))
            events.append((one.done_ns, f"0 C {where} [0]"))
    lines = []
    for number, (at, what) in enumerate(sorted(events, key=lambda event: event[0])):
        lines.append(f"8,0 1 {number + 1} {at // S}.{at % S:09d} {what}\n")
    return "".join(lines).encode()


def replayed(requests: Sequence[Traced], disk: Any = SSD, **setup: Any) -> list[Row]:
    data = trace_of(requests)
    with Simulation(Setup(disk, "noop", **setup)) as simulation:
        simulation.readers = [lib.trace_open(b"blkparse", False)]
        lib.sim_add_trace(simulation.sim, simulation.readers[0], 0)
        pieces = [data, b""]

        def feed() -> bool:
            piece = pieces.pop(0)
            lib.trace_feed(simulation.readers[0], piece, len(piece), not piece)
            return bool(piece)

        simulation.log(1000)
        for _ in simulation.steps(feed):
            pass
        return [Row(*row) for row in simulation.log_rows()]


READ_NS = one_read_ns(4 * KIB)
A, B, C = 1_000, 2_000_000, 4_000_000


def test_open_keeps_the_time_stamps() -> None:
    rows = replayed([Traced(0, A), Traced(5 * MS, B), Traced(5 * MS + 1, C)])
    assert [(row.sector, row.arrival_ns) for row in rows] == [(A, 0), (B, 5 * MS), (C, 5 * MS + 1)]


def test_open_does_not_care_what_was_done() -> None:
    requests = [Traced(0, A, done_ns=4 * MS), Traced(5 * MS, B)]
    assert [row.arrival_ns for row in replayed(requests)] == [0, 5 * MS]
    slow = [Traced(n * US, A + n * 1_000_000) for n in range(4)]
    assert [row.arrival_ns for row in replayed(slow, PAPERS)] == [0, US, 2 * US, 3 * US]


def test_open_begins_at_the_first_time_stamp() -> None:
    rows = replayed([Traced(5 * S, A), Traced(5 * S + MS, B)])
    assert rows[1].arrival_ns - rows[0].arrival_ns == MS


def test_closed_keeps_the_thinking_after_a_recorded_completion() -> None:
    """It came 1 ms after its predecessor was done: here too, however fast the disk is."""
    requests = [Traced(0, A, done_ns=4 * MS), Traced(5 * MS, B, done_ns=9 * MS)]
    rows = replayed(requests, closed=True)
    assert rows[0].arrival_ns == 0
    assert rows[0].complete_ns == READ_NS
    assert rows[1].arrival_ns == READ_NS + 1 * MS


def test_closed_keeps_together_what_was_sent_together() -> None:
    """It came before its predecessor was done: it did not wait for that one."""
    requests = [Traced(0, A, done_ns=9 * MS), Traced(5 * MS, B, done_ns=12 * MS)]
    rows = replayed(requests, closed=True)
    assert [row.arrival_ns for row in rows] == [0, 5 * MS]


def test_closed_waits_for_the_last_one_done() -> None:
    """Of two that were done before it came, it follows the later one, 2 ms after."""
    requests = [
        Traced(0, A, done_ns=4 * MS),
        Traced(10 * US, B, done_ns=6 * MS),
        Traced(8 * MS, C, done_ns=9 * MS),
    ]
    rows = replayed(requests, closed=True)
    assert rows[1].arrival_ns == 10 * US
    assert rows[2].arrival_ns == rows[1].complete_ns + 2 * MS


def test_closed_owners_do_not_wait_for_each_other() -> None:
    requests = [Traced(0, A, owner=7, done_ns=4 * MS), Traced(5 * MS, B, owner=8, done_ns=9 * MS)]
    rows = replayed(requests, closed=True)
    assert [row.arrival_ns for row in rows] == [0, 5 * MS]


def test_closed_keeps_the_order_of_an_owner() -> None:
    """What is due before an older request of its owner follows that at once, but apart from it."""
    requests = [
        Traced(0, A, done_ns=10 * MS),
        Traced(1 * MS, B, done_ns=2 * MS),
        Traced(3 * MS, C, done_ns=4 * MS),
        Traced(11 * MS, C + 8, done_ns=12 * MS),
    ]
    rows = replayed(requests, closed=True)
    assert [row.sector for row in rows] == [A, B, C, C + 8]
    assert rows[2].arrival_ns == rows[1].complete_ns + 1 * MS > rows[0].complete_ns + 1 * MS
    assert rows[3].arrival_ns == rows[2].arrival_ns + 50 * US


def test_closed_those_done_together_are_waited_for_by_one_each() -> None:
    """As who reads two windows ahead sends one for each that is done."""
    requests = [
        Traced(0, A, done_ns=5 * MS),
        Traced(20 * US, B, done_ns=5 * MS),
        Traced(6 * MS, C, done_ns=8 * MS),
        Traced(6 * MS + 20 * US, C + 8_000, done_ns=9 * MS),
    ]
    rows = replayed(requests, closed=True)
    assert rows[0].complete_ns < rows[1].complete_ns
    assert rows[2].arrival_ns == rows[0].complete_ns + 1 * MS
    assert rows[3].arrival_ns == rows[1].complete_ns + 1 * MS + 20 * US


def test_closed_without_completions_takes_the_curve() -> None:
    """No completion is recorded: it is estimated, and never later than the next arrival."""
    rows = replayed([Traced(0, A), Traced(100 * MS, B)], closed=True)
    think_ns = rows[1].arrival_ns - rows[0].complete_ns
    # 100 ms less the estimate, which on this disk is some 70 us.
    assert 99 * MS < think_ns < 100 * MS
    rows = replayed([Traced(0, A), Traced(60 * US, B)], closed=True)
    assert rows[1].arrival_ns >= rows[0].complete_ns


def test_closed_a_slower_disk_delays_what_depends_on_it() -> None:
    requests = [Traced(n * 2 * MS, A + n * 100_000_000, done_ns=n * 2 * MS + MS) for n in range(5)]
    rows = replayed(requests, PAPERS, closed=True)
    assert all(b.arrival_ns == a.complete_ns + MS for a, b in pairwise(rows))


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
    with pytest.raises(UsageError) as caught:
        parse_weights([], ["wfq"], processes, "none")
    assert str(caught.value) == (
        "owner_weight of b: with --owners none nobody's share can be told from others'"
    )
