# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/results/kernel.md: the kernel's schedulers and ours, on the real kernel.

`python -m streamsched.hosts.kerneltable` (make results WHAT=kernel) measures it all anew, or
what is named, and writes each workload and path when it is done: fio jobs of
jobs/kernel/, and real programs (grep, cat, find) on ext4, straight on the
emulated disk, through a loop device and through dm-crypt.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from streamsched.base.errors import StreamschedError, exit_code_of, named
from streamsched.base.files import Target, write_whole
from streamsched.base.progress import counted
from streamsched.hosts import rig
from streamsched.hosts.kernelhost import (
    DEFAULT_POLICIES,
    MEMORY_MB,
    TRACE_KIB,
    KernelPolicy,
    block_traces,
    boot,
    compare_on_kernel,
    parse_policies,
)
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.simulate import NS
from streamsched.work.blocktrace import Request, p99
from streamsched.work.jobfile import load_job_file

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

# The smallest tree is 14 MB: programs that read less than this from the disk did not measure it.
LEAST_READ = 12_000_000

# A journal of the usual size, 1 GB, would be kept in memory as soon as it is encrypted.
# Inode tables must not be written while others measure, and nothing of what is read may be in
# the page cache.
_MAKE = """
mkfs.ext4 -q -E nodiscard -J size=64 "$DEV" && mkdir -p /run/fs || exit 1
mount -o noinit_itable "$DEV" /run/fs || exit 1
mkdir /run/fs/a /run/fs/b /run/fs/c || exit 1
"""
_FORGET = """
umount /run/fs && mount -o noinit_itable "$DEV" /run/fs || exit 1
echo 3 >/proc/sys/vm/drop_caches
"""
# Both trees are copies of part of the kernel's source, in directories that ext4 puts apart.
PREPARE_TREES = (
    _MAKE
    + """
cp -r "$TREE" /run/fs/a/tree && cp -r "$TREE" /run/fs/b/tree || exit 1
"""
    + _FORGET
)
PREPARE_LOVE = (
    _MAKE
    + """
cp -r "$TREE" /run/fs/a/tree || exit 1
head -c 200M /dev/zero | tr '\\0' x >/run/fs/b/file200 || exit 1
head -c 256M /dev/zero | tr '\\0' y >/run/fs/c/big || exit 1
"""
    + _FORGET
)
# Who streams: writes or reads the whole of a file again and again. SIGUSR1: count from now on;
# SIGTERM: tell how many bytes it were.
STREAMER = """
import os, signal
block, done, before = b"z" * (1 << 20), 0, 0
def count(*_):
    global before
    before = done
def tell(*_):
    with open(os.environ["OUT"] + "/streamed", "w") as file:
        file.write(str(done - before))
    os._exit(0)
signal.signal(signal.SIGUSR1, count)
signal.signal(signal.SIGTERM, tell)
while True:
    fd = os.open("/run/fs/c/big", os.O_RDWR)
    while os.lseek(fd, 0, os.SEEK_CUR) < 256 << 20:
        done += os.write(fd, block) if os.environ["RW"] == "write" else len(os.read(fd, 1 << 20))
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
"""
# In the streamer's place: nobody who streams.
NOBODY = """
import os, signal
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
signal.pause()
"""
TIMED = """
now() { cut -d' ' -f1 /proc/uptime; }
begin=$(now)
"""
END_TIMED = """
echo "$begin $(now)" >"$OUT/times"
"""
WORK_GREPS = (
    TIMED
    + """
grep -r "no such words" /run/fs/a/tree &
first=$!
grep -r "no such words" /run/fs/b/tree &
wait $first; wait $!
"""
    + END_TIMED
)


def _beside(rw: str, work: str) -> str:
    """@work, timed, while somebody streams for two seconds already.

    What is written may be in the page cache for a second or so, not for the whole of @work.
    """
    return (
        "echo 32000000 >/proc/sys/vm/dirty_background_bytes\n"
        "echo 64000000 >/proc/sys/vm/dirty_bytes\n"
        f"RW={rw} python3 -I $IN/streamer.py &\n"
        "sleep 2; kill -USR1 $!\n"
        f"{TIMED}{work} >/dev/null\n{END_TIMED}"
        "kill $!; wait $!\n"
    )


# Love, "Interactive kernel performance", tests 1 and 2.
WORK_WRITE_READ = _beside("write", "cat /run/fs/b/file200")
WORK_READ_TREE = _beside("read", "find /run/fs/a/tree -type f -exec cat {} +")


@dataclasses.dataclass(frozen=True)
class Program:
    """A workload of real programs on ext4."""

    title: str
    prepare: str
    work: str
    foreground: str  # what its time is the time of
    background: str | None = None  # who streams meanwhile
    least_read: int = LEAST_READ  # bytes
    memory_mb: int = MEMORY_MB
    disk_mb: int | None = None  # of the memory, for the disk's data; None: half of it
    trace_kib: int = TRACE_KIB


PROGRAMS = {
    "two-greps": Program("two greps over a source tree", PREPARE_TREES, WORK_GREPS, "both greps"),
    "love-1": Program(
        "streaming write, 200 MB read", PREPARE_LOVE, WORK_WRITE_READ, "reading 200 MB", "writer"
    ),
    "love-2": Program(
        "streaming read, source tree read",
        PREPARE_LOVE,
        WORK_READ_TREE,
        "reading the tree",
        "streaming reader",
    ),
}
# Jobs of jobs/kernel/ whose last process is the one in front.
STARTS = {
    "program-start": Program(
        "a program's start beside ten readers", "", "", "starting", "readers together"
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
    background_mb_s: float | None = None
    queue_depth: int = QUEUE_DEPTH  # commands in the disk at once


def _response(requests: Sequence[Request]) -> tuple[float, float]:
    times = [r.wait_ns + r.service_ns for r in requests if not r.write]
    return (p99(times) or 0) / 1e6, max(times, default=0) / 1e6


def fio_cells(
    name: str, path: str, disk: Disk, policies: Sequence[KernelPolicy], jobs: int
) -> list[Cell]:
    """A job of jobs/kernel/ under every scheduler."""
    file = rig.source_root() / "jobs" / "kernel" / f"{name}.fio"
    job = load_job_file(file, capacity_bytes=disk.capacity_sectors * 512)
    comparison = compare_on_kernel(
        job, disk, policies, path=path, queue_depth=QUEUE_DEPTH, jobs=jobs
    )
    cells = [
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
    if name not in STARTS:
        return cells
    return [
        dataclasses.replace(
            cell,
            seconds=run.jobs[-1].duration_ns / NS,
            background_mb_s=sum(job.rate for job in run.jobs[:-1]) / 1e6,
        )
        for cell, run in zip(cells, comparison.runs, strict=True)
    ]


def program_cell(
    name: str,
    program: Program,
    path: str,
    disk: Disk,
    policy: KernelPolicy,
    head: str,
    show: Sequence[Path] = (),
    queue_depth: int = QUEUE_DEPTH,
    streamer: str = STREAMER,
    *,
    disks: int = 1,
    coordinated: bool = False,
) -> Cell:
    """Real programs under one scheduler; @head (bash) begins the preparation.

    @path, @disks and @coordinated are as for boot(). @streamer (Python) is who streams meanwhile,
    in the workloads that have such a one.
    """
    result = boot(
        disk,
        policy,
        program.work,
        path=path,
        disks=disks,
        coordinated=coordinated,
        queue_depth=queue_depth,
        prepare=head + program.prepare,
        files={"streamer.py": streamer},
        memory_mb=program.memory_mb,
        trace_kib=program.trace_kib,
        disk_settings=(
            {} if program.disk_mb is None else {"memory_limit_bytes": str(program.disk_mb << 20)}
        ),
        show=show,
    )
    begin, end = map(float, result.files["times"].split())
    inside = [
        request
        for trace in block_traces(result)
        for request in trace.requests
        if begin * 1e9 <= request.issue_ns <= end * 1e9
    ]
    seconds = end - begin
    read = sum(r.sectors for r in inside if not r.write) * 512
    moved = sum(r.sectors for r in inside) * 512
    streamed = result.files.get("streamed")
    if read < program.least_read:
        raise StreamschedError(
            f"{name}, {path}, {policy.label}: only {read / 1e6:.1f} MB were read from the disk; "
            "the page cache had the rest"
        )
    failed = re.findall(r"hdd_emu: .* failed: .*", result.console)
    if complaints := [*failed, *result.complaints()]:
        raise StreamschedError(
            f"{name}, {path}, {policy.label}: the kernel complained: {complaints[0].strip()}"
        )
    p99, longest = _response(inside)
    return Cell(
        name,
        path,
        policy.label,
        moved / 1e6 / seconds,
        None,
        seconds,
        p99,
        longest,
        int(streamed) / 1e6 / seconds if streamed else None,
        queue_depth,
    )


def source_tree() -> Path:
    """Part of the kernel's source: 14 MB."""
    tree = (rig.kernel_folder("base") / "source" / "kernel").resolve()
    if not tree.is_dir():
        raise StreamschedError("the rig's kernel source is gone; `streamsched rig build` gets it")
    return tree


def measure(
    workloads: Sequence[str],
    paths: Sequence[str],
    policies: Sequence[KernelPolicy],
    *,
    jobs: int = 2,
    note: Callable[[Sequence[Cell]], None] = lambda cells: None,
) -> list[Cell]:
    """All cells, in the order of the arguments; @note is told of each workload and path."""
    disk = load_disk(DISK)
    rig.build()
    rig.build_modules()
    head = f"TREE={source_tree()}\n"
    cells: list[Cell] = []
    for workload in workloads:
        for path in paths:
            if workload in (*FIO_JOBS, *STARTS):
                found = fio_cells(workload, path, disk, policies, jobs)
            else:
                with rig.pool(jobs) as pool:
                    found = list(
                        pool.map(
                            lambda policy, workload=workload, path=path: program_cell(
                                workload, PROGRAMS[workload], path, disk, policy, head
                            ),
                            policies,
                        )
                    )
            cells += found
            note(cells)
    return cells


def _figures(cell: Cell) -> str:
    """What stands in a row after path and scheduler."""
    if cell.workload in FIO_JOBS:
        efficiency = "" if cell.efficiency is None else f"{cell.efficiency:.3f}"
        middle = f"{cell.mb_s:.2f} | {efficiency}"
    elif cell.background_mb_s is not None:
        middle = f"{cell.seconds:.2f} | {cell.background_mb_s:.1f} | {cell.mb_s:.1f}"
    else:
        middle = f"{cell.seconds:.2f} | {cell.mb_s:.1f}"
    return f"{middle} | {cell.p99_ms:.1f} | {cell.longest_ms:.1f}"


def table_of(
    cells: Sequence[Cell], program: Program | None, where: str = "path", before: str = ""
) -> str:
    """One workload's table, which is @program's or a job's; @where: what a cell's path is called.

    @before begins the title.
    """
    title = program.title if program else FIO_JOBS[cells[0].workload]
    if program:
        streamer = f"{program.background}, MB/s | " if program.background else ""
        measured = f"{program.foreground}, s | {streamer}disk MB/s"
    else:
        measured = "MB/s | efficiency"
    columns = f"{measured} | p99 ms | longest ms"
    return "\n".join(
        [
            f"## {before}{title}" if before else f"## {title[0].upper()}{title[1:]}",
            "",
            f"| {where} | scheduler | {columns} |",
            "|---|---|" + "---:|" * len(columns.split(" | ")),
            *(f"| {cell.path} | {cell.policy} | {_figures(cell)} |" for cell in cells),
        ]
    )


def marks(workload: str) -> tuple[str, str]:
    """What surrounds a workload's table in a document."""
    return f"<!-- measured: {workload} -->", f"<!-- end: {workload} -->"


def with_rows(text: str, name: str, new: Sequence[str], rows: Sequence[str]) -> str:
    """@text with the measured lines @new in the table of @name, and of @rows (beginnings of lines,
    in their order) those that were not measured as they were.
    """
    begin, end = marks(name)
    head, rest = text.split(begin, 1)
    old, tail = rest.split(end, 1)
    table = [line for line in new if not line.startswith(tuple(rows))]
    for row in rows:
        table += [line for line in [*new, *old.splitlines()] if line.startswith(row)][:1]
    lines = "\n".join(table)
    return f"{head}{begin}\n\n{lines}\n\n{end}{tail}"


def write_into(document: Path, cells: Sequence[Cell]) -> None:
    """Put the rows that were measured where they belong, and leave the others as they are."""
    text = document.read_text()
    schedulers = [policy.label for policy in parse_policies(DEFAULT_POLICIES)]
    rows = [f"| {path} | {scheduler} |" for path in PATHS for scheduler in schedulers]
    for workload in dict.fromkeys(cell.workload for cell in cells):
        mine = [cell for cell in cells if cell.workload == workload]
        new = table_of(mine, {**STARTS, **PROGRAMS}.get(workload)).splitlines()
        text = with_rows(text, workload, new, rows)
    write_whole(Target(document, replace=True), text)


def table(arguments: Sequence[str]) -> None:
    """Measure what is named (workloads, paths, schedulers; nothing: all) into docs/results/."""
    every = {policy.label: policy for policy in parse_policies(DEFAULT_POLICIES)}
    workloads, paths, schedulers = named(
        arguments,
        ("workload", [*FIO_JOBS, *STARTS, *PROGRAMS]),
        ("path", PATHS),
        ("scheduler", list(every)),
    )
    progress = counted()
    total = len(workloads) * len(paths) * len(schedulers)
    task = progress.add_task("kernel table", total=total)
    document = rig.source_root() / "docs" / "results" / "kernel.md"

    def keep(cells: Sequence[Cell]) -> None:
        progress.advance(task, len(schedulers))
        write_into(document, cells)

    with progress:
        measure(workloads, paths, [every[name] for name in schedulers], note=keep)


def main(arguments: Sequence[str]) -> int:
    """What `python -m streamsched.hosts.kerneltable` does."""
    return exit_code_of("kerneltable", lambda: table(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
