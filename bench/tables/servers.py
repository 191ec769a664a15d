# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/results/servers.md: servers of files and disks, on the real kernel.

The rig has the server, its clients, and one emulated disk, whose scheduler sees the server's
requests alone. Each client has an image of its own: a file on ext4 in
a volume of its own, or what the server makes of that. kernel/rig/servers.sh starts the servers.

A share is what a process has of its rate alone, through the same server, times the number of
processes: 1.0 is an equal part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from streamsched.base.errors import StreamschedError
from streamsched.hosts import rig
from streamsched.hosts.fiorun import FioJob, fio_jobs, times_of
from streamsched.hosts.kernelhost import KernelPolicy, boot
from streamsched.sim.diskfile import load_disk
from streamsched.work.blocktrace import p99
from tables.common import EVERY, Rigs, Row, Table, asked, document, write_into
from tables.programs import inside_rig, shell, source_tree

DISK = "exos-x18"
QUEUE_DEPTH = 32
# The rig's, with the servers that are in the kernel; programs serve on the usual one.
VARIANT = "servers"
IN_KERNEL = ("knfsd", "samba", "iscsi", "tcm_loop", "gluster")
# Megabytes of each image: what is scrubbed or backed up, and the clients'.
IMAGES_MB = (3072, *[512] * 8)
# Of those that hold a file system with a source tree, one for each client.
TREES_MB = (64,) * 4
ALONE_S = 4
# Nobody reads the block trace of these runs.
TRACE_KIB = 1000
# What a row is called, and kernel/rig/servers.sh its server.
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
# Of each client as many small files as this.
WRITES = "files"
FILES = 100
# What a file system on several disks is for; the others' jobs are not for it.
STRIPED = "striped"
STRIPED_DISKS = 4
# Megabytes of each program's file.
STRIPED_MB = (128,) * 4
HEADS = {
    "readers": ("MB/s", "least share", "p99 ms", "longest ms"),
    "vms": ("scrub MB/s", "its share", "least VM's", "p99 ms", "longest ms"),
    "backup": ("backup MB/s", "its share", "least VM's", "p99 ms", "longest ms"),
    STORM: ("first, s", "last, s"),
    WRITES: ("first, s", "last, s", "p99 ms", "longest ms"),
    STRIPED: ("MB/s", "slowest program", "p99 ms", "longest ms"),
}


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


def _total(jobs: Sequence[FioJob]) -> float:
    """MB/s until the last of them has all that it reads."""
    return sum(job.read for job in jobs) / max(job.ns for job in jobs) * 1e3


def _tail(jobs: Sequence[FioJob]) -> Row:
    """p99 and the longest response time of whoever has the worst."""
    times = [times_of(job.histogram) for job in jobs]
    return f"{max(time.p99 for time in times):.1f}", f"{max(time.max for time in times):.1f}"


def figures_of(name: str, jobs: Sequence[FioJob], rates: dict[str, float]) -> Row:
    """The figures of a job of JOBS, from what its processes did and have alone."""
    titles = re.findall(r"^\[(?!global)(.*)\]", _job_file(name), flags=re.MULTILINE)
    rate = [_rate(job) for job in jobs]
    shares = [len(jobs) * value / rates[title] for title, value in zip(titles, rate, strict=True)]
    if name == "readers":
        return (f"{_total(jobs):.1f}", f"{min(shares):.2f}", *_tail(jobs))
    heavy = f"{rate[0] / 1e6:.1f}", f"{shares[0]:.2f}"
    return (*heavy, f"{min(shares[1:]):.2f}", *_tail(jobs[1:]))


def striped_figures(jobs: Sequence[FioJob]) -> Row:
    """Of programs that have as many processes each."""
    each = len(jobs) // len(STRIPED_MB)
    slowest = min(_total(jobs[at : at + each]) for at in range(0, len(jobs), each))
    return (f"{_total(jobs):.1f}", f"{slowest:.1f}", *_tail(jobs))


def tree_figures(text: str) -> tuple[str, str]:
    """When the first and the last client had looked through its tree, in seconds."""
    begin, *ends = map(float, text.split())
    if len(ends) != len(TREES_MB):
        raise StreamschedError(f"{len(TREES_MB) - len(ends)} of the trees could not be read")
    return f"{ends[0] - begin:.2f}", f"{ends[-1] - begin:.2f}"


def files_figures(texts: Sequence[str]) -> Row:
    """When the first and the last client had made and removed its files, in seconds; and of a file
    until it was synced, p99 and the longest.
    """
    clients = [[int(line) for line in text.split()] for text in texts]
    failed = sum(len(client) != FILES + 2 for client in clients)
    if failed:
        raise StreamschedError(f"{failed} of the clients could not write all of their files")
    begin = min(began for began, *_ in clients)
    ends = [(end - begin) / 1e9 for *_, end in clients]
    files = [file for _, *client, _ in clients for file in client]
    return (
        *(f"{end:.2f}" for end in (min(ends), max(ends))),
        *(f"{time / 1e6:.1f}" for time in (p99(files) or 0, max(files))),
    )


def is_striped(server: str) -> bool:
    """Whether it is a file system on several disks."""
    return SERVERS[server] == "gluster"


def variant_of(server: str) -> str:
    """Of the rig's kernel: what has @server and its clients."""
    return VARIANT if SERVERS[server].startswith(IN_KERNEL) else "base"


def jobs_of(server: str) -> tuple[str, ...]:
    """What is measured through @server."""
    return (STRIPED,) if is_striped(server) else (*JOBS, STORM, WRITES)


def _boot(
    server: str, policy: KernelPolicy, files: dict[str, str], calls: Sequence[str]
) -> rig.RigResult:
    striped = is_striped(server)
    head = {
        "SERVER": SERVERS[server],
        "IMAGES_MB": " ".join(map(str, STRIPED_MB if striped else IMAGES_MB)),
        "TREES_MB": " ".join(map(str, () if striped else TREES_MB)),
        "TREE": str(source_tree()),
    }
    disk = server.removeprefix("glusterfs-") if server.startswith("glusterfs-") else DISK
    places = "export IMAGES=/run/at SOURCES=/run/src TREES=/run/tree\n"
    result = boot(
        load_disk(disk),
        policy,
        shell({}, "programs.sh", call=places + "\n".join(calls)),
        disks=STRIPED_DISKS if striped else 1,
        queue_depth=QUEUE_DEPTH,
        variant=variant_of(server),
        prepare=shell(head, "servers.sh"),
        files={
            "small-files.py": inside_rig("small-files.py"),
            **{f"{name}.fio": text for name, text in files.items()},
        },
        trace_kib=TRACE_KIB,
    )
    for line in result.complaints()[:1]:
        raise StreamschedError(f"{server}, {policy.label}: the kernel complained: {line.strip()}")
    return result


def measure_alone(server: str) -> dict[str, float]:
    """Bytes/s of each kind of process by itself, through @server and no scheduler."""
    if is_striped(server):
        return {}
    texts = alone_texts([_job_file(name) for name in JOBS])
    result = _boot(server, KernelPolicy("none"), texts, [f"run_job {kind}" for kind in texts])
    jobs = {kind: fio_jobs(result.files[f"{kind}.json"].decode()) for kind in texts}
    return {kind: _rate(job) for kind, [job] in jobs.items()}


def measure_rows(
    server: str, policy: KernelPolicy, jobs: Sequence[str], rates: dict[str, float]
) -> dict[str, Row]:
    """Those of @jobs that are for it through one server under one scheduler, in turns."""
    jobs = [name for name in jobs_of(server) if name in jobs]
    if not jobs:
        return {}
    fio = [name for name in jobs if name not in (STORM, WRITES)]
    calls = [
        *(["walk_trees"] if STORM in jobs else []),
        *(f"run_job {name}" for name in fio),
        *([f"make_files {FILES}"] if WRITES in jobs else []),
    ]
    result = _boot(server, policy, {name: _job_file(name) for name in fio}, calls)
    figures = {}
    for name in fio:
        ran = fio_jobs(result.files[f"{name}.json"].decode())
        figures[name] = striped_figures(ran) if name == STRIPED else figures_of(name, ran, rates)
    if STORM in jobs:
        figures[STORM] = tree_figures(result.files["trees"].decode())
    if WRITES in jobs:
        texts = [result.files[f"files{client}"].decode() for client in range(len(TREES_MB))]
        figures[WRITES] = files_figures(texts)
    return {name: (server, policy.label, *figures[name]) for name in jobs}


def table_of(job: str) -> Table:
    """A job's table."""
    order = [(server, policy) for server in SERVERS for policy in EVERY]
    return Table(job, ("server", "scheduler"), HEADS[job], order)


def measure(words: Sequence[str]) -> None:
    """What is named (servers, jobs, schedulers; nothing: all); each server when it is done."""
    (servers, jobs, schedulers), at_once = asked(
        "servers", words, ("server", SERVERS), ("job", HEADS), ("scheduler", EVERY)
    )
    policies = [EVERY[name] for name in schedulers]
    variants = {variant_of(server) for server in servers}
    rigs = Rigs(at_once, "servers", len(servers) * len(policies), variants)
    with rigs.progress:
        for server in servers:
            rates = measure_alone(server) if set(jobs) & set(JOBS) else {}

            def one(
                policy: KernelPolicy, server: str = server, rates: dict[str, float] = rates
            ) -> dict[str, Row]:
                return measure_rows(server, policy, jobs, rates)

            found = list(rigs.each(one, policies))
            for job in found[0]:
                write_into(document("servers"), table_of(job), [rows[job] for rows in found])
