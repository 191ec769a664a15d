# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/results/servers.md: servers of files and disks, on the real kernel.

`make results WHAT=servers` measures all; `python -m streamsched.hosts.servers` measures what is
named. The rig (its variant `servers`) has the server, its clients, and one emulated disk, whose
scheduler sees the server's requests alone. Each client has an image of its own: a file on ext4 in
a volume of its own, or what the server makes of that. kernel/rig/servers.sh starts the servers.

A share is what a process has of its rate alone, through the same server, times the number of
processes: 1.0 is an equal part.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from streamsched.base.errors import StreamschedError, exit_code_of, named
from streamsched.base.files import Target, write_whole
from streamsched.base.progress import counted
from streamsched.hosts import rig
from streamsched.hosts.fiorun import FioJob, fio_jobs, times_of
from streamsched.hosts.kernelhost import (
    DEFAULT_POLICIES,
    KernelPolicy,
    boot,
    parse_policies,
)
from streamsched.hosts.kerneltable import source_tree, with_rows
from streamsched.sim.diskfile import load_disk

DISK = "exos-x18"
QUEUE_DEPTH = 32
VARIANT = "servers"
# Megabytes of each image: what is scrubbed or backed up, and the clients'.
IMAGES_MB = (3072, *[512] * 8)
# Of those that hold a file system with a source tree, one for each client.
TREES_MB = (64,) * 4
ALONE_S = 4
# Nobody reads the block trace of these runs.
TRACE_KIB = 1000
# What table_of() calls a row, and kernel/rig/servers.sh its server.
SERVERS = {
    "no-server": "local",
    "knfsd-v3": "knfsd 3 8",
    "knfsd-v3-64": "knfsd 3 64",
    "knfsd-v4.2": "knfsd 4.2 8",
    "knfsd-v4.2-64": "knfsd 4.2 64",
    "samba": "samba 1",
    "samba-no-aio": "samba 0",
    "iscsi-file": "iscsi fileio",
    "iscsi-volume": "iscsi iblock",
    "tcm-loop-file": "tcm_loop fileio",
    "tcm-loop-volume": "tcm_loop iblock",
    "qemu-raw": "qsd raw threads",
    "qemu-raw-native": "qsd raw native",
    "qemu-raw-io_uring": "qsd raw io_uring",
    "qemu-qcow2": "qsd qcow2 threads",
    "nbd-server": "nbd_server",
    "nbdkit-file": "nbdkit",
    "glusterfs": "gluster",
    "glusterfs-wd5000aaks": "gluster",
}
JOBS = ("readers", "vms", "backup")
STORM = "trees"
# What a file system on several disks is for; the others' jobs are not for it.
STRIPED = "striped"
STRIPED_DISKS = 4
# Megabytes of each program's file.
STRIPED_MB = (128,) * 4


@dataclasses.dataclass(frozen=True)
class Cell:
    """What one job did through one server under one scheduler."""

    job: str
    server: str
    policy: str
    figures: tuple[str, ...]  # as the job's table has them


HEADS = {
    "readers": ("MB/s", "least share", "p99 ms", "longest ms"),
    "vms": ("scrub MB/s", "its share", "least VM's", "p99 ms", "longest ms"),
    "backup": ("backup MB/s", "its share", "least VM's", "p99 ms", "longest ms"),
    STORM: ("first, s", "last, s"),
    STRIPED: ("MB/s", "slowest program", "p99 ms", "longest ms"),
}


def _run(name: str) -> str:
    """What the rig does for a job file."""
    return (
        "fio --clocksource=clock_gettime --output-format=json+ "
        f'--output="$OUT/{name}.json" "$IN/{name}.fio" || exit 1\n'
        "sync\necho 3 >/proc/sys/vm/drop_caches\n"
    )


# Each client looks through the whole of its own source tree.
WALK = """
now() { cut -d' ' -f1 /proc/uptime; }
begin=$(now)
for i in 0 1 2 3; do
	{
		# 1: nothing was found; 2: something could not be read.
		grep -r "no such words" "$TREES/$i"
		[ $? != 1 ] || now >"/run/end$i"
	} &
done
wait
echo "$begin" "$(sort -n /run/end?)" >"$OUT/trees"
sync
echo 3 >/proc/sys/vm/drop_caches
"""


def _job_file(name: str) -> str:
    return (rig.source_root() / "jobs" / "servers" / f"{name}.fio").read_text()


def alone_texts(texts: Sequence[str]) -> dict[str, str]:
    """For each kind of process in the job files @texts a job file of the first such alone."""
    kinds: dict[str, str] = {}
    for text in texts:
        common, *sections = re.split(r"^(?=\[)", text, flags=re.MULTILINE)[1:]
        plain = re.sub(r"(time_based|runtime=.*)\n", "", common)
        for section in sections:
            title = section[1 : section.index("]")]
            kinds.setdefault(title, f"{plain}runtime={ALONE_S}s\n\n{section}")
    return kinds


def _rate(job: FioJob) -> float:
    """Bytes/s."""
    return job.read / (job.ns / 1e9)


def figures_of(name: str, jobs: Sequence[FioJob], rates: dict[str, float]) -> tuple[str, ...]:
    """The figures of a job of JOBS, from what its processes did and have alone."""
    titles = re.findall(r"^\[(?!global)(.*)\]", _job_file(name), flags=re.MULTILINE)
    rate = [_rate(job) for job in jobs]
    shares = [len(jobs) * value / rates[title] for title, value in zip(titles, rate, strict=True)]
    light = slice(None) if name == "readers" else slice(1, None)
    times = [times_of(job.histogram) for job in jobs[light]]
    tail = (
        f"{max(time.p99 for time in times):.1f}",
        f"{max(time.max for time in times):.1f}",
    )
    if name == "readers":
        # All read as much: until the last has it.
        total = sum(job.read for job in jobs) / max(job.ns for job in jobs) * 1e3
        return (f"{total:.1f}", f"{min(shares):.2f}", *tail)
    return (f"{rate[0] / 1e6:.1f}", f"{shares[0]:.2f}", f"{min(shares[light]):.2f}", *tail)


def striped_figures(jobs: Sequence[FioJob]) -> tuple[str, ...]:
    """Of programs that have as many processes each."""
    each = len(jobs) // len(STRIPED_MB)
    programs = [jobs[at : at + each] for at in range(0, len(jobs), each)]
    rates = [sum(job.read for job in own) / max(job.ns for job in own) * 1e3 for own in programs]
    total = sum(job.read for job in jobs) / max(job.ns for job in jobs) * 1e3
    times = [times_of(job.histogram) for job in jobs]
    return (
        f"{total:.1f}",
        f"{min(rates):.1f}",
        f"{max(time.p99 for time in times):.1f}",
        f"{max(time.max for time in times):.1f}",
    )


def tree_figures(text: str) -> tuple[str, str]:
    """When the first and the last client had looked through its tree, in seconds."""
    begin, *ends = map(float, text.split())
    if len(ends) != len(TREES_MB):
        raise StreamschedError(f"{len(TREES_MB) - len(ends)} of the trees could not be read")
    return f"{ends[0] - begin:.2f}", f"{ends[-1] - begin:.2f}"


def is_striped(server: str) -> bool:
    """Whether it is a file system on several disks."""
    return SERVERS[server] == "gluster"


def jobs_of(server: str) -> tuple[str, ...]:
    """What is measured through @server."""
    return (STRIPED,) if is_striped(server) else (*JOBS, STORM)


def _boot(server: str, policy: KernelPolicy, files: dict[str, str], work: str) -> rig.RigResult:
    striped = is_striped(server)
    head = {
        "SERVER": SERVERS[server],
        "IMAGES_MB": " ".join(map(str, STRIPED_MB if striped else IMAGES_MB)),
        "TREES_MB": " ".join(map(str, () if striped else TREES_MB)),
        "TREE": str(source_tree()),
    }
    disk = server.removeprefix("glusterfs-") if server.startswith("glusterfs-") else DISK
    script = (rig.source_root() / "kernel" / "rig" / "servers.sh").read_text()
    result = boot(
        load_disk(disk),
        policy,
        "export IMAGES=/run/at SOURCES=/run/src TREES=/run/tree\n" + work,
        disks=STRIPED_DISKS if striped else 1,
        queue_depth=QUEUE_DEPTH,
        variant=VARIANT,
        prepare="".join(f"{key}={shlex.quote(value)}\n" for key, value in head.items()) + script,
        files=files,
        trace_kib=TRACE_KIB,
    )
    for line in result.complaints()[:1]:
        raise StreamschedError(f"{server}, {policy.label}: the kernel complained: {line.strip()}")
    return result


FIO = "export LD_PRELOAD=$IN/fio-start.so\n"


def measure_alone(server: str) -> dict[str, float]:
    """Bytes/s of each kind of process by itself, through @server and no scheduler."""
    if is_striped(server):
        return {}
    texts = alone_texts([_job_file(name) for name in JOBS])
    result = _boot(
        server,
        KernelPolicy("none"),
        {f"{kind}.fio": text for kind, text in texts.items()},
        FIO + "".join(map(_run, texts)),
    )
    jobs = {kind: fio_jobs(result.files[f"{kind}.json"].decode()) for kind in texts}
    return {kind: _rate(job) for kind, [job] in jobs.items()}


def measure_cells(
    server: str, policy: KernelPolicy, jobs: Sequence[str], rates: dict[str, float]
) -> list[Cell]:
    """Those of @jobs that are for it through one server under one scheduler, in turns."""
    jobs = [name for name in jobs_of(server) if name in jobs]
    if not jobs:
        return []
    fio = [name for name in jobs if name != STORM]
    work = "".join(map(_run, fio))
    result = _boot(
        server,
        policy,
        {f"{name}.fio": _job_file(name) for name in fio},
        (WALK if STORM in jobs else "") + FIO + work,
    )
    found = {name: fio_jobs(result.files[f"{name}.json"].decode()) for name in fio}
    figures = {
        name: striped_figures(ran) if name == STRIPED else figures_of(name, ran, rates)
        for name, ran in found.items()
    }
    if STORM in jobs:
        figures[STORM] = tree_figures(result.files["trees"].decode())
    return [Cell(name, server, policy.label, figures[name]) for name in jobs]


def row_of(cell: Cell) -> str:
    """A line of the job's table."""
    return f"| {cell.server} | {cell.policy} | {' | '.join(cell.figures)} |"


def write_into(document: Path, cells: Sequence[Cell]) -> None:
    """Put the rows that were measured where they belong, and leave the others as they are."""
    text = document.read_text()
    policies = [policy.label for policy in parse_policies(DEFAULT_POLICIES)]
    rows = [f"| {server} | {policy} |" for server in SERVERS for policy in policies]
    for job in dict.fromkeys(cell.job for cell in cells):
        head = HEADS[job]
        table = [
            f"| server | scheduler | {' | '.join(head)} |",
            "|---|---|" + "---:|" * len(head),
            *(row_of(cell) for cell in cells if cell.job == job),
        ]
        text = with_rows(text, job, table, rows)
    write_whole(Target(document, replace=True), text)


def measure(
    servers: Sequence[str],
    jobs: Sequence[str],
    policies: Sequence[KernelPolicy],
    *,
    parallel: int = 2,
    note: Callable[[Sequence[Cell]], None] = lambda cells: None,
) -> list[Cell]:
    """All cells, in the order of the arguments; @note is told of each server's."""
    rig.build(VARIANT)
    rig.build_modules(VARIANT)
    cells: list[Cell] = []
    for server in servers:
        with rig.pool(parallel) as pool:
            alone = pool.submit(measure_alone, server)
            rates = alone.result()
            found = list(
                pool.map(
                    lambda policy, server=server, rates=rates: measure_cells(
                        server, policy, jobs, rates
                    ),
                    policies,
                )
            )
        cells += [cell for of_policy in found for cell in of_policy]
        note([cell for of_policy in found for cell in of_policy])
    return cells


def table(arguments: Sequence[str]) -> None:
    """Measure what is named (servers, jobs, schedulers; nothing: all) into docs/results/."""
    every = {policy.label: policy for policy in parse_policies(DEFAULT_POLICIES)}
    servers, jobs, schedulers = named(
        arguments,
        ("server", list(SERVERS)),
        ("job", list(HEADS)),
        ("scheduler", list(every)),
    )
    document = rig.source_root() / "docs" / "results" / "servers.md"
    progress = counted()
    with progress:
        task = progress.add_task("servers", total=len(servers) * len(schedulers))

        def keep(cells: Sequence[Cell]) -> None:
            progress.advance(task, len(schedulers))
            write_into(document, cells)

        measure(servers, jobs, [every[name] for name in schedulers], note=keep)


def main(arguments: Sequence[str]) -> int:
    """What `python -m streamsched.hosts.servers` does."""
    return exit_code_of("servers", lambda: table(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
