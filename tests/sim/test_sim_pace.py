# SPDX-License-Identifier: GPL-2.0-only
"""When processes send: rates, ramps, who waits for whom. In virtual time, so exactly."""

from __future__ import annotations

import dataclasses
import io
import statistics
from collections.abc import Sequence
from itertools import pairwise

import pytest
from finished import finished
from rich.console import Console

from streamsched.sim import simulate, tasks
from streamsched.sim.compare import compare
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import WAKE_NS, Run, Setup, Simulation
from streamsched.sim.tasks import _how_long
from streamsched.work.jobfile import parse_jobs

US, MS, S = 1_000, 1_000_000, 1_000_000_000
K, M = 1024, 1024**2
SSD = load_disk("ssd")
PAPERS = load_disk("wd5000aaks")
Row = tuple[int, int, int, int, int, int]  # arrival, dispatch, completion, sector, sectors, job
ARRIVAL, COMPLETE, SECTOR, SECTORS, JOB = 0, 2, 3, 4, 5

DIRECT = "direct=1\nrw=read\nbs=64k\n"


def played(text: str, **setup: object) -> tuple[list[Row], Run]:
    """The disk's requests in order of completion, and the result."""
    given = Setup(**{"disk": SSD, "policy": "noop", **setup})  # type: ignore[arg-type]
    processes = parse_jobs(text, capacity_bytes=given.capacity_bytes, environ={})
    with finished(given, processes) as simulation:
        return simulation.log_rows(), simulation.result(processes)


def sent(rows: Sequence[Row], job: int = 0) -> list[int]:
    return sorted(row[ARRIVAL] for row in rows if row[JOB] == job)


# Rates.


def test_blocks_at_a_rate_are_evenly_spaced() -> None:
    rows, run = played(f"[a]\n{DIRECT}size=1m\nrate=1m\n")
    assert sent(rows) == [n * S // 16 for n in range(16)]
    assert run.bytes_read == M


def test_a_rate_of_blocks_counts_the_smallest() -> None:
    rows, _ = played("[a]\ndirect=1\nrw=read\nbssplit=4k/50:8k/50\nsize=400k\nrate_iops=100\n")
    blocks = sorted((row[ARRIVAL], row[SECTORS] * 512) for row in rows)
    assert all(
        after - before == size * S // (400 * K) for (before, size), (after, _) in pairwise(blocks)
    )


def test_what_was_missed_is_made_up_for() -> None:
    """It thinks longer than its rate allows, then sends as fast as it can."""
    text = f"[a]\n{DIRECT}size=2m\nrate=1m\nthinktime=1s\nthinktime_blocks=16\n"
    rows, _ = played(text)
    at = sent(rows)
    assert at[16] >= at[15] + S
    assert all(b - a < 10 * MS for a, b in pairwise(at[16:30]))
    rows, _ = played(text + "rate_ignore_thinktime=1\n")
    at = sent(rows)
    assert at[16] >= at[15] + S
    assert all(abs(b - a - S // 16) < 10 * MS for a, b in pairwise(at[17:]))


def test_each_direction_has_its_rate() -> None:
    text = "[a]\ndirect=1\nrw=randrw\nbs=4k\nsize=1g\nruntime=10\nrate_iops=200,50\n"
    _, run = played(text)
    assert (run.bytes_read // (4 * K), run.bytes_written // (4 * K)) == (2000, 500)


def test_a_direction_without_a_rate_goes_on() -> None:
    text = "[a]\ndirect=1\nrw=randrw\nbs=4k\nsize=1g\nruntime=2\n"
    _, run = played(text + "rate_iops=,50\n")
    assert run.bytes_written // (4 * K) == 100
    assert run.bytes_read > 20 * run.bytes_written


@pytest.mark.parametrize(("mode", "depth"), [("inline", 1), ("offload", 8)])
def test_before_it_pauses_it_waits_for_its_requests(mode: str, depth: int) -> None:
    """Requests that take longer than the next one is off: offload sends that all the same."""
    text = (
        "[a]\ndirect=1\nioengine=libaio\niodepth=8\nrw=randread\nbs=4k\nrate_iops=400\n"
        f"number_ios=400\nio_submit_mode={mode}\n"
    )
    rows, _ = played(text, disk=PAPERS, queue_depth=32)
    moments = sorted([(r[ARRIVAL], 1) for r in rows] + [(r[COMPLETE], -1) for r in rows])
    most = now = 0
    for _, step in moments:
        now += step
        most = max(most, now)
    # Behind its rate it keeps 8 in flight either way.
    assert most == 8
    text = text.replace("rate_iops=400", "rate_iops=60")
    rows, _ = played(text, disk=PAPERS, queue_depth=32)
    in_flight = max(
        sum(other[ARRIVAL] <= row[ARRIVAL] < other[COMPLETE] for other in rows) for row in rows
    )
    assert (in_flight > 1) == (depth > 1)


def test_by_chance_the_mean_is_the_rate() -> None:
    """Exponential gaps: the standard deviation is the mean, and 1/e of them are longer."""
    text = "[a]\ndirect=1\nrw=randread\nbs=4k\nsize=1g\nruntime=100\nrate_iops=100\n"
    rows, _ = played(text + "rate_process=poisson\n")
    gaps = [after - before for before, after in pairwise(sent(rows))]
    assert abs(statistics.mean(gaps) / (10 * MS) - 1) < 0.03
    assert abs(statistics.pstdev(gaps) / (10 * MS) - 1) < 0.04
    assert abs(sum(gap > 10 * MS for gap in gaps) / len(gaps) - 0.3679) < 0.02
    assert abs(statistics.median(gaps) / (6.931 * MS) - 1) < 0.05


def test_a_buffered_process_keeps_its_rate() -> None:
    _, run = played("[a]\nrw=read\nbs=4k\nsize=1m\nrate=1m\n")
    assert abs(run.seconds - 1) < 0.01


def test_the_alone_rate_is_not_the_rate() -> None:
    processes = parse_jobs(
        "[a]\ndirect=1\nrw=read\nbs=64k\nsize=4m\nrate=2m\n[b]\nwait_for=a\nrw=read\nsize=4m\n",
        capacity_bytes=SSD.capacity_sectors * 512,
    )
    found = compare([Setup(SSD, "noop")], processes)
    assert found.alone[0] > 100 * M and 1 in found.alone
    assert found.runs[0].jobs[0].duration_ns > 1.9 * S


# Ramps.


def test_a_ramp_does_not_count() -> None:
    rows, run = played(f"[a]\n{DIRECT}size=1m\nrate=1m\nramp_time=1500ms\n")
    assert run.bytes_read == M and len(rows) == 24 + 16
    assert run.jobs[0].blocks == (16, 0)
    assert run.disk_requests == run.counters["dispatches"] == 16
    # It goes on behind what it has read, and begins again when that is over.
    assert sent(rows)[24:26] == [S * 3 // 2, S * 3 // 2 + S // 16]
    assert [row[SECTOR] for row in rows[23:26]] == [7 * 128, 8 * 128, 9 * 128]
    assert abs(run.duration_ns - 15 * S // 16) < 10 * MS


def test_runtime_counts_from_the_end_of_the_ramp() -> None:
    text = "[a]\ndirect=1\nrw=randread\nbs=4k\nsize=1g\nruntime=3\ntime_based\n"
    rows, run = played(text + "ramp_time=2\n")
    assert abs(max(row[COMPLETE] for row in rows) - 5 * S) < 10 * MS
    assert abs(run.duration_ns - 3 * S) < 10 * MS
    _, plain = played(text)
    assert abs(run.mb_s / plain.mb_s - 1) < 0.01
    late = [row for row in rows if row[COMPLETE] > 2 * S]
    assert run.disk_requests == pytest.approx(len(late), abs=1)
    assert run.busy_ns <= run.duration_ns


def test_the_disks_statistics_begin_with_the_first_process() -> None:
    """A burst at the beginning is in nobody's times once the ramp is over."""
    burst = (
        "[global]\ndirect=1\nrw=randread\nbs=4k\nsize=10g\nruntime=3\n{ramp}[a]\n"
        "ioengine=libaio\niodepth=32\nrate_iops=10\nthinktime=1s\nthinktime_blocks=32\n"
    )
    text = burst + "[b]\noffset=20g\n{without}"
    _, plain = played(text.format(ramp="", without=""), disk=PAPERS)
    rows, run = played(text.format(ramp="ramp_time=2\n", without=""), disk=PAPERS)
    counted = [row for row in rows if row[COMPLETE] > 2 * S]
    assert run.disk_requests == len(counted) < len(rows)
    assert abs(run.duration_ns - 3 * S) < 100 * MS < plain.duration_ns
    # One without a ramp counts from the start, and the disk's do with it.
    rows, run = played(text.format(ramp="ramp_time=2\n", without="ramp_time=0\n"), disk=PAPERS)
    assert run.disk_requests == len(rows)
    assert abs(run.duration_ns - 5 * S) < 100 * MS


def test_a_rate_begins_anew_after_the_ramp() -> None:
    """Also for who would have slept for longer: a block is 16 s of this rate."""
    rows, _ = played(f"[a]\n{DIRECT}size=128k\nrate=4k\nramp_time=1\n")
    assert sent(rows) == [0, S, 17 * S]


def test_what_is_under_way_at_the_ramps_end_counts_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever somebody asks: the disk was never busy for less than nothing."""
    monkeypatch.setattr("streamsched.sim.simulate.EVENTS_PER_CALL", 1)
    text = "[a]\ndirect=1\nrw=randread\nbs=4k\nsize=100m\nruntime=1\nramp_time=35ms\n"
    (process,) = parse_jobs(text, capacity_bytes=S, environ={})
    with Simulation(Setup(disk=PAPERS, policy="noop")) as simulation:
        simulation.add(process)
        busy = [simulation.result([process]).busy_ns for _ in simulation.steps()]
    assert max(busy) <= S + 10 * MS


def test_a_ramp_changes_nothing_for_those_without() -> None:
    text = "[a]\ndirect=1\nrw=randread\nbs=4k\nsize=1g\nnumber_ios=100\n"
    plain, run = played(text)
    again, same = played(text + "ramp_time=0\n")
    assert plain == again and run == dataclasses.replace(same, setup=run.setup)


# Who waits for whom.


def test_a_job_waits_for_all_clones_of_another() -> None:
    text = (
        f"[global]\n{DIRECT}size=1m\n[a]\nnumjobs=2\noffset_increment=10m\n[b]\nwait_for=a\n"
        "offset=30m\n[c]\noffset=40m\n[d]\nwait_for=b\noffset=50m\n"
    )
    rows, run = played(text)
    ends = [max(row[COMPLETE] for row in rows if row[JOB] == job) for job in range(5)]
    begins = [sent(rows, job)[0] for job in range(5)]
    assert begins[:2] == [0, 0] and begins[3] == 0
    assert max(ends[:2]) <= begins[2] <= max(ends[:2]) + 2 * WAKE_NS
    assert ends[2] <= begins[4] <= ends[2] + 2 * WAKE_NS
    assert [job.bytes for job in run.jobs] == [M] * 5


def test_a_stonewall_waits_for_those_who_wait() -> None:
    text = (
        f"[global]\n{DIRECT}size=1m\n[a]\n[b]\nwait_for=a\noffset=30m\n[c]\nstonewall\noffset=40m\n"
    )
    rows, _ = played(text)
    ends = [max(row[COMPLETE] for row in rows if row[JOB] == job) for job in range(3)]
    assert ends[0] <= sent(rows, 1)[0] and ends[1] <= sent(rows, 2)[0]


@pytest.mark.parametrize(("delay", "at"), [(1, 2), (3, 3)])
def test_a_delay_counts_from_the_beginning_of_all(delay: int, at: int) -> None:
    """As in fio, also behind a stonewall."""
    text = (
        f"[a]\n{DIRECT}size=1g\nrate=1m\nruntime=2\n[b]\n{DIRECT}size=1m\nstonewall\n"
        f"startdelay={delay}\n"
    )
    rows, _ = played(text)
    assert abs(sent(rows, 1)[0] - at * S) < 100 * MS


@pytest.mark.parametrize(
    "text",
    [
        "[a]\nsize=60g\nruntime=100\n",
        "[a]\nsize=60g\nruntime=50\n[b]\nstonewall\nsize=60g\nruntime=50\n",
        "[a]\nsize=60g\nruntime=80\ntime_based\nramp_time=20\n",
        "[a]\nsize=60m\n",
    ],
)
def test_progress_is_that_of_the_time_where_it_ends_by_time(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate, "EVENTS_PER_CALL", 1000)
    disk = load_disk("wd5000aaks")
    work = parse_jobs(
        f"[global]\nrw=randread\ndirect=1\n{text}", capacity_bytes=disk.capacity_sectors * 512
    )
    parts = [0.0]
    simulate.run_jobs(Setup(disk, "noop"), work, progress=parts.append)
    steps = [after - before for before, after in pairwise([*parts, 1.0])]
    assert len(steps) > 10
    assert min(steps) >= 0 and max(steps) < 0.1


def test_what_takes_long_says_how_long() -> None:
    assert _how_long(0.05, 30.4, bounded=True) == (
        "5 % is done after 30 s, and all of it takes about 10 minutes"
    )
    assert _how_long(0.0001, 30, bounded=False) == (
        "0.01 % is done after 30 s, and all of it takes about 3 days; with `run --runtime` or "
        "runtime= in the job it takes less"
    )
    assert _how_long(0, 30, bounded=True).endswith("takes more than 1000 days")
    assert _how_long(1, 30, bounded=True).endswith("takes about 30 seconds")


def test_the_note_comes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "NOTE_S", -1.0)
    console = Console(file=io.StringIO(), width=20)
    with tasks._bars(console, ["noop"], [0.5], True) as update:
        update()
        update()
    assert isinstance(console.file, io.StringIO)
    (line,) = console.file.getvalue().splitlines()
    assert line.startswith("streamsched: note: 50 % is done after 0 s, and all of it takes about")
