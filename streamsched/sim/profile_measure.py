# SPDX-License-Identifier: GPL-2.0-only
"""Measuring a profile: every policy with every one of many plain workloads, in virtual time."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from streamsched.base.errors import Interrupted
from streamsched.base.units import format_bytes
from streamsched.sim.diskfile import Disk
from streamsched.sim.policies import USES_OWNER, check_spec
from streamsched.sim.profile import OWNERS, POLICIES, Known, Outcome, Profile, fingerprint
from streamsched.sim.results import plain_table
from streamsched.sim.simulate import Run, Setup
from streamsched.sim.tasks import Task, run_tasks
from streamsched.work.jobfile import parse_jobs
from streamsched.work.looks import between
from streamsched.work.process import Process

RUN_S = 16
# Linux writes what was left in the page cache for 30 s (dirty_expire_centisecs): who leaves little
# there has all of the disk until then, and afterwards his reads beside his writes.
AGED_S = 32
# The paper's axis, in KiB.
SIZES_KIB = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
# Its benchmark: so many processes, half reads. How many theirs had is not said.
CURVE_PROCESSES = 8
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# Where files are read or written whole their sizes vary: quarters of the size, with their shares.
# Trees of files have many small and few large ones (Agrawal et al., FAST 2007, section 3.2).
TAILS = {
    "files": ((1, 40), (2, 20), (4, 17), (8, 13), (16, 7), (32, 3)),
    "small": ((2, 40), (4, 40), (8, 20)),
}
# In which a process reads and writes at random.
REGIONS = {"area": 20 * GIB, "region": GIB, "small": 64 * MIB}


# ---- the workloads ----


@dataclasses.dataclass(frozen=True)
class Part:
    """Processes that do the same, each in a place of its own."""

    pattern: str  # stream, files: in sequence, the latter with gaps; others: at random
    size_kib: int
    reads_pct: int = 100
    processes: int = 1
    depth: int = 1
    buffered: bool = False
    think_us: int = 0
    fsync: int = 0
    aged: bool = False  # what was left in the page cache is being written

    def __str__(self) -> str:
        mix = {100: "read", 0: "write"}.get(self.reads_pct, f"rw{self.reads_pct}")
        words = [f"{self.processes} {self.pattern} {mix} {self.size_kib}k"]
        words += [f"x{self.depth}"] if self.depth > 1 else []
        words += ["buffered"] if self.buffered else []
        words += [f"think {self.think_us}us"] if self.think_us else []
        words += [f"after {AGED_S}s"] if self.aged else []
        return " ".join(words)

    def section(self, index: int, offset: int, step: int, room: int) -> str:
        """As a section of a job file; the first process is at @offset, the next ones @step on."""
        random = self.pattern in ("disk", *REGIONS)
        kind = {100: "read", 0: "write"}.get(self.reads_pct, "rw")
        lines = [f"[part{index}]", f"rw={'rand' if random else ''}{kind}"]
        if self.pattern in TAILS:
            sizes = [
                (max(4, self.size_kib * factor // 4), part) for factor, part in TAILS[self.pattern]
            ]
            lines.append("bssplit=" + ":".join(f"{size}k/{part}" for size, part in sizes))
        else:
            lines.append(f"bs={self.size_kib}k")
        if self.pattern == "files":
            lines[1] += ":4k"  # a gap behind each
        if 0 < self.reads_pct < 100:
            lines.append(f"rwmixread={self.reads_pct}")
        if self.pattern != "disk":
            size = min(room, REGIONS.get(self.pattern, 2 * GIB))
            lines += [f"offset={offset}", f"offset_increment={step}", f"size={size}"]
        # Without a map a small region would soon be read from the page cache alone.
        lines += ["norandommap"] if random and not self.buffered else []
        lines += [f"numjobs={self.processes}", f"direct={0 if self.buffered else 1}"]
        lines += ["ioengine=libaio", f"iodepth={self.depth}"] if self.depth > 1 else []
        lines += [f"thinktime={self.think_us}us"] if self.think_us else []
        lines += [f"fsync={self.fsync}"] if self.fsync else []
        lines += [f"ramp_time={AGED_S}s"] if self.aged else []
        return "\n".join([*lines, f"runtime={RUN_S}s", "time_based", ""])


Cell = tuple[Part, ...]


def curve_cells() -> list[Cell]:
    """The paper's benchmark, by size."""
    return [(Part("disk", size, 50, processes=CURVE_PROCESSES),) for size in SIZES_KIB]


def grid_cells() -> list[Cell]:
    """Locality, size, direction and concurrency in all combinations; mixtures; the page cache."""
    cells: list[Cell] = [
        (Part(pattern, size, reads, processes, depth),)
        for pattern, size, reads, (processes, depth) in itertools.product(
            ("disk", "region", "stream"),
            (4, 64, 512),
            (100, 50, 0),
            ((1, 1), (2, 1), (4, 1), (8, 1), (1, 32)),
        )
        if pattern != "stream" or processes * depth > 1
    ]
    cells += _mixtures()
    return cells + _cached()


def _mixtures() -> list[Cell]:
    """Readers in sequence, readers at random and writers beside each other."""
    streams = (
        None,
        Part("stream", 64, processes=2),
        Part("stream", 64, processes=2, buffered=True),
    )
    randoms = (
        None,
        Part("disk", 4, processes=2),
        Part("disk", 8, processes=2, depth=2),
        Part("area", 8, processes=2, depth=2),
        Part("region", 8, processes=2, depth=2),
    )
    writers = (
        None,
        Part("stream", 128, 0, depth=32),
        Part("stream", 16, 0, buffered=True, think_us=100, fsync=64),
    )
    found = []
    for parts in itertools.product(streams, randoms, writers):
        cell = tuple(part for part in parts if part)
        if len(cell) > 1:
            found.append(cell)
    readers = (Part("disk", 4), Part("region", 4), Part("region", 4, depth=4))
    return found + [(one, writer) for one in readers for writer in writers if writer]


def _cached() -> list[Cell]:
    """Through the page cache, with its readahead and its write-back."""
    cells: list[Cell] = [
        (Part("stream", 16, processes=nr, buffered=True, think_us=think),)
        for nr in (1, 2, 3, 4, 8)
        for think in (0, 50, 200)
    ]
    cells += [
        (Part("files", size, processes=nr, buffered=True, think_us=think),)
        for size in (8, 16, 32)
        for nr in (1, 2, 4)
        for think in (0, 50, 200)
    ]
    cells += [
        (Part(pattern, size, reads, processes=nr, buffered=True, think_us=think),)
        for pattern in ("small", "region")
        for size in (4, 16)
        # Whoever only leaves pages in the cache does so at the processor's speed; not here.
        for reads, think in ((0, 200), (20, 200), (50, 200), (80, 0), (100, 0))
        for nr in (1, 4)
    ]
    cells += [
        # Four at 4 KiB: else all of 64 MiB would be in the page cache by then.
        (Part(pattern, size, reads, 4, buffered=True, think_us=think, aged=True),)
        for pattern, size in (("small", 4), ("region", 4), ("region", 16))
        for reads, think in ((20, 200), (50, 200), (80, 0))
    ]
    cells += [(Part("stream", 64, 0, processes=nr, buffered=True),) for nr in (1, 4)]
    return cells


def name_of(cell: Cell) -> str:
    """As the profile file has it."""
    return " + ".join(map(str, cell))


def processes_of(cell: Cell, disk: Disk) -> tuple[Process, ...]:
    """Spread over the disk, at places that do not depend on what they do."""
    capacity = disk.capacity_sectors * 512
    step = capacity // sum(part.processes for part in cell) // MIB * MIB
    sections, at = [], 0
    for index, part in enumerate(cell):
        sections.append(part.section(index, at, step, step))
        at += step * part.processes
    return tuple(parse_jobs("\n".join(sections), "profile", capacity_bytes=capacity))


# ---- measuring ----


def _outcome(run: Run, aged: bool) -> Outcome | None:
    assert run.observed
    begin, end = run.observed
    looks = between(begin, end)
    if looks is None or not run.duration_ns:
        return None
    # What the disk did: blocks out of the page cache, or left in it, are nobody's merit. But where
    # it has long been writing what was left, it is no merit either to do that before what is read.
    moved = run.mb_s * run.seconds if aged else (end.done_bytes - begin.done_bytes) / 1e6
    # Nobody waits for what the page cache has written later.
    longest_ms = max(job.longest_wait_ns for job in run.jobs) / 1e6
    return Outcome(moved / run.seconds, run.response.p99, longest_ms, looks)


def _aged(cell: Cell) -> bool:
    return any(part.aged for part in cell)


def _sees_owners(spec: str) -> bool:
    """Whether it matters to @spec who sent a request."""
    return any(policy.flags & USES_OWNER or policy.name == "nwcs" for policy in check_spec(spec))


def measure(
    disk: Disk,
    policies: Sequence[str] = POLICIES,
    owners: Sequence[str] = OWNERS,
    queue_depth: int = 1,
    *,
    grid: Sequence[Cell] | None = None,
    jobs: int,
    console: Console,
) -> Profile:
    """Every policy with every workload (of @grid, if given); deterministic, whatever @jobs is."""
    blind = {spec for spec in policies if not _sees_owners(spec)}
    curve, grid = curve_cells(), list(grid or grid_cells())
    # Without owners those of the paper's benchmark; what does not look at owners is run once.
    keys = [(cell, "none", spec) for cell in curve for spec in policies]
    for whose, cell, spec in itertools.product(owners, grid, policies):
        keys.append((cell, "none" if spec in blind else whose, spec))
    keys = list(dict.fromkeys(keys))
    work = {cell: processes_of(cell, disk) for cell in (*curve, *grid)}
    tasks = [
        Task(
            f"{spec} {name_of(cell)}",
            Setup(disk, spec, owners=whose, queue_depth=queue_depth),
            work[cell],
        )
        for cell, whose, spec in keys
    ]
    found, interrupted = run_tasks(tasks, jobs, console, together=f"profile of {disk.name}")
    if interrupted or not all(found):
        raise Interrupted("interrupted before there was a profile")
    runs = {key: run for key, run in zip(keys, found, strict=True) if run}
    cells = []
    for whose, cell in itertools.product(owners, grid):
        outcomes = {
            spec: one
            for spec in policies
            if (one := _outcome(runs[cell, "none" if spec in blind else whose, spec], _aged(cell)))
        }
        if len(outcomes) == len(policies):
            cells.append(Known(name_of(cell), whose, outcomes))
    curves = {spec: [runs[cell, "none", spec].mb_s for cell in curve] for spec in policies}
    return Profile(
        disk.name,
        fingerprint(disk),
        queue_depth,
        tuple(policies),
        tuple(size * KIB for size in SIZES_KIB),
        {spec: tuple(values) for spec, values in curves.items()},
        tuple(cells),
    )


def table(profile: Profile) -> Table:
    """The paper's f_s(r), a line per policy, the best of each size marked."""
    result = plain_table(
        f"{profile.disk}: MB/s of {CURVE_PROCESSES} processes reading and writing at random, "
        "by request size"
    )
    result.add_column("policy", no_wrap=True)
    # Padded here: to the right, rich would not leave the room of a mark that is not there.
    width = max(len(f"{value:.2f}") for values in profile.curves.values() for value in values)
    for size in profile.sizes_bytes:
        result.add_column(f"{format_bytes(size):>{width}} ", no_wrap=True)
    best = [max(column) for column in zip(*profile.curves.values(), strict=True)]
    for spec in profile.policies:
        cells = [
            f"{value:{width}.2f}{'*' if value == most else ' '}"
            for value, most in zip(profile.curves[spec], best, strict=True)
        ]
        result.add_row(spec, *cells)
    return result
