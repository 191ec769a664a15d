# SPDX-License-Identifier: GPL-2.0-only
"""How near to the physical limit sequential readers come, for a wait target.

With n streams that take turns, a switch costing c and nobody to wait longer
than W, at most one switch happens in W / (n - 1), so that no scheduler passes
an efficiency of about 1 - c (n - 1) / W. The scheduler aims for that. Here it
is tried with 2 to 16 readers, buffered and direct, with think times, owners
hidden; c is all positioning of the readers that do not think, divided by the
switches. (The first request after a switch often comes out of the drive's
cache and the next one pays, so all of it counts. While readers think the
scheduler tries the inner policy now and then, which switches otherwise.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from streamsched.base.errors import Interrupted
from streamsched.base.files import Target
from streamsched.base.plotfile import new_figure, save
from streamsched.sim.compare import Comparison
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.experiment import PAPER_STREAM, STREAM
from streamsched.sim.results import plain_table
from streamsched.sim.simulate import Run, Setup
from streamsched.sim.tasks import Task, run_tasks
from streamsched.work.jobfile import parse_jobs
from streamsched.work.process import Process

DISK = "wd5000aaks"
READERS = (2, 4, 8, 16)
THINK_US = (0, 300, 1000)
TARGETS_MS = (300, 500, 1000, 2000)
# The paper's fixed slice beside it: section 3.2's default and others.
FIXED_SLICES_MS = (20, 50, 124, 250, 500)
# What counts as on the frontier.
TOLERANCE = 0.05
RUN_S = 20

JOB = """\
[reader]
rw=read
bs=64k
size=8g
direct={direct}
offset_increment={gap}
numjobs={readers}
thinktime={think}
runtime={run}
time_based
"""


@dataclasses.dataclass(frozen=True)
class Case:
    direct: bool
    think_us: int
    readers: int
    target_ms: int = 0  # 0: a fixed slice
    slice_ms: int = 0


@dataclasses.dataclass(frozen=True)
class Point:
    """What one case reached."""

    case: Case
    efficiency: float
    frontier: float
    switch_ms: float
    longest_wait_ms: float
    longest_service_ms: float

    @property
    def reaches(self) -> bool:
        """Within 5 % of the frontier."""
        return self.efficiency >= self.frontier * (1 - TOLERANCE)

    @property
    def in_time(self) -> bool:
        """The longest wait is within the target, one slice and one service time.

        The longest slice is that of two readers: as long as the target. So it is at the beginning,
        while the others are not known yet.
        """
        return self.longest_wait_ms <= 2 * self.case.target_ms + self.longest_service_ms


def auto_cases(
    readers: Iterable[int] = READERS,
    think_us: Iterable[int] = THINK_US,
    targets_ms: Iterable[int] = TARGETS_MS,
) -> list[Case]:
    """Every combination, buffered and direct."""
    readers, think_us, targets_ms = list(readers), list(think_us), list(targets_ms)
    return [
        Case(direct, think, nr, target_ms=target)
        for direct in (False, True)
        for think in think_us
        for nr in readers
        for target in targets_ms
    ]


def fixed_cases() -> list[Case]:
    """The paper's slice, for the picture."""
    return [Case(True, 0, nr, slice_ms=ms) for nr in READERS for ms in FIXED_SLICES_MS]


def _processes(case: Case, disk: Disk) -> tuple[Process, ...]:
    capacity = disk.capacity_sectors * 512
    gap = (capacity - (9 << 30)) // case.readers // 4096 * 4096
    text = JOB.format(
        direct=int(case.direct),
        gap=gap,
        readers=case.readers,
        think=case.think_us,
        run=RUN_S,
    )
    return tuple(parse_jobs(text, "frontier", capacity_bytes=capacity))


def _task(case: Case, disk: Disk) -> Task:
    if case.target_ms:
        policy, tunable = STREAM, ("wait_target", case.target_ms * 1_000_000)
    else:
        policy, tunable = PAPER_STREAM, ("stream_time_slice", case.slice_ms * 1_000_000)
    setup = Setup(disk, policy, owners="none", tunables=(tunable,))
    return Task(f"{case.readers} readers", setup, _processes(case, disk))


def _without_think(case: Case) -> Case:
    return dataclasses.replace(case, think_us=0)


def _alone_tasks(case: Case, disk: Disk) -> list[Task]:
    setup = Setup(disk, "noop", owners="none")
    return [Task("alone", setup, (process,)) for process in _processes(case, disk)]


def _switch_ms(run: Run) -> float:
    """What a switch has cost: all positioning, divided by the switches."""
    return run.position_ns / max(run.switches, 1) / 1e6


def _point(case: Case, run: Run, switch_ms: float, alone: Sequence[Run]) -> Point:
    rates = {number: one.bytes / one.seconds for number, one in enumerate(alone)}
    efficiency = Comparison((run,), rates).efficiency(run) or 0.0
    frontier = 1.0
    if case.target_ms:
        frontier = max(0.0, 1 - switch_ms * (case.readers - 1) / case.target_ms)
    return Point(case, efficiency, frontier, switch_ms, run.wait.max, run.service.max)


def measure(cases: Sequence[Case], jobs: int, console: Console) -> list[Point]:
    """All cases; the alone rates are measured along, once for each set of readers."""
    disk = load_disk(DISK)
    keys = list(dict.fromkeys((c.direct, c.think_us, c.readers) for c in cases))
    alone = {key: _alone_tasks(Case(*key), disk) for key in keys}
    tasks = [_task(case, disk) for case in cases]
    flat = [task for key in keys for task in alone[key]]
    results, interrupted = run_tasks([*tasks, *flat], jobs, console, together="frontier")
    if interrupted:
        raise Interrupted("interrupted before there was a result")
    runs = [run for run in results if run]
    runs, rest = runs[: len(cases)], runs[len(cases) :]
    plain = {
        case: _switch_ms(run) for case, run in zip(cases, runs, strict=True) if not case.think_us
    }
    by_key: dict[tuple[bool, int, int], list[Run]] = {}
    for key in keys:
        by_key[key], rest = rest[: len(alone[key])], rest[len(alone[key]) :]
    return [
        _point(case, run, plain.get(_without_think(case), _switch_ms(run)), by_key[key])
        for case, run in zip(cases, runs, strict=True)
        for key in [(case.direct, case.think_us, case.readers)]
    ]


def table(points: Sequence[Point]) -> Table:
    """Efficiency / frontier and longest wait, a line per set of readers."""
    result = plain_table(
        "64 KiB readers: efficiency / frontier and longest wait in ms, by wait target"
    )
    result.add_column("readers", no_wrap=True)
    result.add_column("think\nus", justify="right")
    for target in TARGETS_MS:
        result.add_column(f"{target} ms\neff./front. ", justify="right", no_wrap=True)
        result.add_column("\nwait", justify="right", no_wrap=True)
    lines: dict[tuple[bool, int, int], list[str]] = {}
    for point in points:
        case = point.case
        if not case.target_ms:
            continue
        cells = lines.setdefault((case.direct, case.think_us, case.readers), [])
        mark = " " if point.reaches and point.in_time else "!"
        cells.append(f"{point.efficiency:.3f}/{point.frontier:.3f}{mark}")
        cells.append(f"{point.longest_wait_ms:,.0f}")
    for (direct, think, readers), cells in lines.items():
        kind = "direct" if direct else "buffered"
        result.add_row(f"{readers} {kind}", str(think), *cells)
    return result


def plot(points: Sequence[Point], to: Target) -> None:
    """Efficiency against longest wait: stream, the frontier, and the paper's fixed slice."""
    figure = new_figure(8, 5, "tight")
    axes = figure.subplots()
    chosen = [p for p in points if p.case.direct and not p.case.think_us]
    for index, readers in enumerate(READERS):
        colour = f"C{index}"
        auto = [p for p in chosen if p.case.readers == readers and p.case.target_ms]
        fixed = [p for p in chosen if p.case.readers == readers and p.case.slice_ms]
        axes.plot(
            [p.case.target_ms for p in auto],
            [p.frontier for p in auto],
            ":",
            color=colour,
            label=f"{readers} readers: frontier",
        )
        axes.plot(
            [p.longest_wait_ms for p in auto],
            [p.efficiency for p in auto],
            "o-",
            color=colour,
            label=STREAM,
        )
        axes.plot(
            [p.longest_wait_ms for p in fixed],
            [p.efficiency for p in fixed],
            "x--",
            color=colour,
            alpha=0.6,
            label=f"{PAPER_STREAM}, slices of 20 to 500 ms",
        )
    axes.set_xscale("log")
    axes.set_xticks([50, 100, 200, 500, 1000, 2000], ["50", "100", "200", "500", "1000", "2000"])
    axes.set_xlabel("longest wait (ms)")
    axes.set_ylabel("efficiency (1.0: as if alone)")
    axes.set_title(f"Direct 64 KiB readers on {DISK}, owners hidden")
    axes.grid(alpha=0.3)
    axes.set_ylim(0.0, 1.05)
    axes.legend(fontsize=7, ncols=2, loc="lower left")
    save(figure, to)
