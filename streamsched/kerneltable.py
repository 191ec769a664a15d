# SPDX-License-Identifier: GPL-2.0-only
"""The table of docs/KERNEL.md: the kernel's schedulers and ours, on the real kernel.

`python -m streamsched.kerneltable` (make kernel-table) measures it all anew:
fio jobs of jobs/kernel/, and real programs (grep, cat, find) on ext4, straight
on the emulated disk, through a loop device and through dm-crypt.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streamsched import rig
from streamsched.blocktrace import BlockTrace
from streamsched.diskfile import Disk, load_disk
from streamsched.errors import StreamschedError
from streamsched.jobfile import load_jobs
from streamsched.kernelhost import (
    DEFAULT_POLICIES,
    KernelPolicy,
    block_trace,
    boot,
    compare_on_kernel,
    parse_policies,
)

DISK = "wd5000aaks"
QUEUE_DEPTH = 32
PATHS = ("direct", "loop", "crypt")
FIO_JOBS = {
    "buffered-readers": "four buffered readers",
    "direct-readers": "four readers, 64 KiB direct",
    "thinking-readers": "the same with 0.5 ms of think time",
    "random-regions": "four at random, 4 KiB in 1 GB regions",
    "random-disk": "4 KiB at random over the disk, 32 at once",
}

# Real programs that read less than this from the disk did not measure it.
LEAST_READ = 20_000_000

# Both trees are copies of part of the kernel's source, in directories that ext4 puts apart.
PREPARE_TREES = """
mkfs.ext4 -q -E nodiscard "$DEV" && mkdir -p /run/fs && mount "$DEV" /run/fs || exit 1
mkdir /run/fs/a /run/fs/b /run/fs/c || exit 1
cp -r "$TREE" /run/fs/a/tree && cp -r "$TREE" /run/fs/b/tree || exit 1
sync; echo 3 >/proc/sys/vm/drop_caches
"""
PREPARE_LOVE = """
mkfs.ext4 -q -E nodiscard "$DEV" && mkdir -p /run/fs && mount "$DEV" /run/fs || exit 1
mkdir /run/fs/a /run/fs/b /run/fs/c || exit 1
cp -r "$TREE" /run/fs/a/tree || exit 1
head -c 200M /dev/zero | tr '\\0' x >/run/fs/b/file200 || exit 1
head -c 400M /dev/zero | tr '\\0' y >/run/fs/c/big || exit 1
sync; echo 3 >/proc/sys/vm/drop_caches
"""
_TIMED = """
now() { cut -d' ' -f1 /proc/uptime; }
begin=$(now)
"""
_END = """
echo "$begin $(now)" >"$OUT/times"
"""
WORK_GREPS = (
    _TIMED
    + """
grep -r "no such words" /run/fs/a/tree &
first=$!
grep -r "no such words" /run/fs/b/tree &
wait $first; wait $!
"""
    + _END
)
# Love, "Interactive kernel performance", tests 1 and 2.
WORK_WRITE_READ = (
    """
while :; do dd if=/dev/zero of=/run/fs/c/stream bs=1M count=256 conv=notrunc 2>/dev/null; done &
writer=$!
sleep 2
"""
    + _TIMED
    + "cat /run/fs/b/file200 >/dev/null\n"
    + _END
    + "kill $writer\nwait $writer 2>/dev/null\ntrue\n"
)
WORK_READ_TREE = (
    """
while :; do dd if=/run/fs/c/big iflag=nocache of=/dev/null bs=1M 2>/dev/null; done &
reader=$!
sleep 1
"""
    + _TIMED
    + "find /run/fs/a/tree -type f -exec cat '{}' ';' >/dev/null\n"
    + _END
    + "kill $reader\nwait $reader 2>/dev/null\ntrue\n"
)


@dataclasses.dataclass(frozen=True)
class Program:
    """A workload of real programs on ext4."""

    title: str
    prepare: str
    work: str
    foreground: str  # what its time is the time of


PROGRAMS = {
    "two-greps": Program("two greps over a source tree", PREPARE_TREES, WORK_GREPS, "both greps"),
    "love-1": Program(
        "streaming write, 200 MB read", PREPARE_LOVE, WORK_WRITE_READ, "reading 200 MB"
    ),
    "love-2": Program(
        "streaming read, source tree read", PREPARE_LOVE, WORK_READ_TREE, "reading the tree"
    ),
}


@dataclasses.dataclass(frozen=True)
class Cell:
    """What one workload did under one scheduler on one path."""

    workload: str
    path: str
    policy: str
    mb_s: float  # of the processes (fio), of the disk (programs)
    efficiency: float | None
    seconds: float
    p99_ms: float  # wait of the disk's requests
    longest_ms: float
    write_mb_s: float | None = None


def _quantile(values: Sequence[int], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] / 1e6 if ordered else 0.0


def _response(trace: BlockTrace) -> tuple[float, float]:
    times = [r.wait_ns + r.service_ns for r in trace.requests if not r.write]
    return _quantile(times, 0.99), _quantile(times, 1.0)


def fio_cells(
    name: str, path: str, disk: Disk, policies: Sequence[KernelPolicy], jobs: int
) -> list[Cell]:
    """A job of jobs/kernel/ under every scheduler."""
    file = rig.source_root() / "jobs" / "kernel" / f"{name}.fio"
    processes = load_jobs(str(file), capacity_bytes=disk.capacity_sectors * 512, seed=0)
    comparison = compare_on_kernel(
        file, disk, processes, policies, path=path, queue_depth=QUEUE_DEPTH, jobs=jobs
    )
    return [
        Cell(
            name,
            path,
            run.setup.policy,
            run.mb_s,
            comparison.efficiency(run),
            run.seconds,
            run.response.p99,
            run.response.max,
        )
        for run in comparison.runs
    ]


def program_cell(name: str, path: str, disk: Disk, policy: KernelPolicy, tree: Path) -> Cell:
    """Real programs under one scheduler."""
    program = PROGRAMS[name]
    head = f"TREE={tree}\n"
    result = boot(
        disk,
        policy,
        program.work,
        path=path,
        queue_depth=QUEUE_DEPTH,
        prepare=head + program.prepare,
    )
    begin, end = map(float, result.files["times"].split())
    trace = block_trace(result)
    inside = [r for r in trace.requests if begin * 1e9 <= r.issue_ns <= end * 1e9]
    seconds = end - begin
    read = sum(r.sectors for r in inside if not r.write) * 512
    written = sum(r.sectors for r in inside if r.write) * 512
    if read < LEAST_READ:
        raise StreamschedError(
            f"{name}, {path}, {policy.label}: only {read / 1e6:.1f} MB were read from the disk; "
            "the page cache had the rest"
        )
    p99, longest = _response(trace)
    return Cell(
        name,
        path,
        policy.label,
        (read + written) / 1e6 / seconds,
        None,
        seconds,
        p99,
        longest,
        written / 1e6 / seconds,
    )


def measure(
    workloads: Sequence[str],
    paths: Sequence[str],
    policies: Sequence[KernelPolicy],
    *,
    jobs: int = 2,
    note: Callable[[Cell], None] = lambda cell: None,
) -> list[Cell]:
    """All cells, in the order of the arguments."""
    disk = load_disk(DISK)
    rig.build()
    rig.build_modules()
    tree = next((rig.cache() / "source").glob("*/fs"), None)
    if tree is None:
        raise StreamschedError("the rig's kernel source is gone; `streamsched rig build` gets it")
    cells: list[Cell] = []
    for workload in workloads:
        for path in paths:
            if workload in FIO_JOBS:
                found = fio_cells(workload, path, disk, policies, jobs)
            else:
                with ThreadPoolExecutor(jobs) as pool:
                    found = list(
                        pool.map(
                            lambda policy, workload=workload, path=path: program_cell(
                                workload, path, disk, policy, tree
                            ),
                            policies,
                        )
                    )
            for cell in found:
                note(cell)
            cells += found
    return cells


def markdown(cells: Sequence[Cell]) -> str:
    """The tables of docs/KERNEL.md."""
    out: list[str] = []
    for workload in dict.fromkeys(cell.workload for cell in cells):
        fio = workload in FIO_JOBS
        title = FIO_JOBS[workload] if fio else PROGRAMS[workload].title
        out.append(f"### {title[0].upper()}{title[1:]}\n")
        if fio:
            out.append("| path | scheduler | MB/s | efficiency | p99 ms | longest ms |")
            out.append("|---|---|---:|---:|---:|---:|")
        else:
            out.append(
                f"| path | scheduler | {PROGRAMS[workload].foreground}, s | disk MB/s "
                "| of it written | p99 ms | longest ms |"
            )
            out.append("|---|---|---:|---:|---:|---:|---:|")
        for cell in cells:
            if cell.workload != workload:
                continue
            middle = (
                f"{cell.mb_s:.2f} | {cell.efficiency:.3f}"
                if cell.efficiency is not None
                else f"{cell.seconds:.2f} | {cell.mb_s:.1f} | {cell.write_mb_s or 0.0:.1f}"
            )
            out.append(
                f"| {cell.path} | {cell.policy} | {middle} "
                f"| {cell.p99_ms:.1f} | {cell.longest_ms:.1f} |"
            )
        out.append("")
    return "\n".join(out)


def marks(workload: str) -> tuple[str, str]:
    """What surrounds a workload's table in docs/KERNEL.md."""
    return f"<!-- measured: {workload} -->", f"<!-- end: {workload} -->"


def write_into(document: Path, cells: Sequence[Cell]) -> None:
    """Replace the tables of the workloads that were measured on every path."""
    text = document.read_text()
    for workload in dict.fromkeys(cell.workload for cell in cells):
        begin, end = marks(workload)
        own = [cell for cell in cells if cell.workload == workload]
        if {cell.path for cell in own} != set(PATHS):
            continue
        head, rest = text.split(begin, 1)
        tail = rest.split(end, 1)[1]
        text = f"{head}{begin}\n\n{markdown(own)}\n{end}{tail}"
    document.write_text(text)


def main(arguments: Sequence[str]) -> int:
    """Measure what is named (workloads, then paths; nothing: all) and write docs/KERNEL.md."""
    known = [*FIO_JOBS, *PROGRAMS]
    workloads = [word for word in arguments if word in known] or known
    paths = [word for word in arguments if word in PATHS] or list(PATHS)
    strange = [word for word in arguments if word not in known and word not in PATHS]
    if strange:
        print(
            f"kernel-table: {strange[0]!r} is neither a workload ({', '.join(known)}) "
            f"nor a path ({', '.join(PATHS)})",
            file=sys.stderr,
        )
        return 2
    policies = parse_policies(DEFAULT_POLICIES)
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    task = progress.add_task("kernel table", total=len(workloads) * len(paths) * len(policies))
    try:
        with progress:
            cells = measure(workloads, paths, policies, note=lambda _: progress.advance(task))
    except StreamschedError as error:
        print(f"kernel-table: {error}", file=sys.stderr)
        return error.exit_code
    print(markdown(cells))
    write_into(rig.source_root() / "docs" / "KERNEL.md", cells)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
