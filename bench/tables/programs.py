# SPDX-License-Identifier: GPL-2.0-only
"""Real programs on ext4 in the rig: what they need, how one run is measured.

The programs themselves are shell functions in kernel/rig/programs.sh and tpc-h.sh.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamsched.base.errors import StreamschedError
from streamsched.hosts import rig
from streamsched.hosts.kernelhost import MEMORY_MB, TRACE_KIB, KernelPolicy, block_traces, boot
from streamsched.sim.diskfile import load_disk
from streamsched.work.blocktrace import p99
from tables.machine import printed

DISK = "wd5000aaks"
QUEUE_DEPTH = 32
# The smallest tree is 14 MB: programs that read less than this from the disk did not measure it.
LEAST_READ = 12_000_000
DEBIAN_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def _postgres_programs() -> list[Path]:
    """Debian keeps each version's programs in a folder of its own; the newest first."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    return sorted(found, key=lambda path: float(path.parts[-3]), reverse=True)


@dataclass(frozen=True)
class Need:
    """A program of this machine, which the rig runs."""

    program: str
    package: str  # Debian's
    # Arguments that make it tell its version; None: it does not matter for what is measured.
    version: tuple[str, ...] | None = ("--version",)

    def path(self) -> Path:
        """Where it is; an error that names the package when it is missing."""
        search = ":".join([*(str(path.parent) for path in _postgres_programs()), *DEBIAN_SBIN])
        found = shutil.which(self.program) or shutil.which(self.program, path=search)
        if not found:
            raise StreamschedError(
                f"{self.program} is missing: install the Debian package {self.package}"
            )
        return Path(found)

    def tells(self) -> str:
        """Its name and version, in its own words."""
        said = printed([self.path(), *(self.version or ())]).stdout.strip()
        told = re.match(r".*?\d+\.[\d.]*\d", said)
        return told[0] if told else self.program


# Shell variables, and folders that the rig must show for them.
Inside = tuple[Mapping[str, str], Sequence[Path]]


def source_tree() -> Path:
    """Part of the kernel's source: 14 MB."""
    tree = (rig.kernel_folder("base") / "source" / "kernel").resolve()
    if not tree.is_dir():
        raise StreamschedError("the rig's kernel source is gone; `streamsched rig build` gets it")
    return tree


def with_tree() -> Inside:
    """Of programs that read a source tree."""
    return {"TREE": str(source_tree())}, ()


@dataclass(frozen=True)
class Program:
    """Real programs, what they need of this machine, and how they are run."""

    title: str
    foreground: str  # what its time is the time of
    prepare: str  # of the disk, in shell
    work: str
    background: str | None = None  # who streams meanwhile
    needs: tuple[Need, ...] = ()
    inside: Callable[[], Inside] = with_tree
    least_read: int = LEAST_READ  # bytes
    memory_mb: int = MEMORY_MB
    disk_mb: int | None = None  # of the memory, for the disk's data; None: half of it
    trace_kib: int = TRACE_KIB

    def check(self) -> None:
        """Refuse when a program is missing."""
        for need in self.needs:
            need.path()


@dataclass(frozen=True)
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


def inside_rig(name: str) -> str:
    """A file of kernel/rig/."""
    return (rig.source_root() / "kernel" / "rig" / name).read_text()


def shell(variables: Mapping[str, str], *scripts: str, call: str = "") -> str:
    """The files @scripts of kernel/rig/ with these variables, and a call."""
    head = "".join(f"{key}={shlex.quote(value)}\n" for key, value in variables.items())
    return head + "".join(map(inside_rig, scripts)) + call + "\n"


def program_cell(
    name: str,
    program: Program,
    path: str,
    policy: KernelPolicy,
    inside: Inside | None = None,
    queue_depth: int = QUEUE_DEPTH,
    streamer: str | None = None,
    *,
    disks: int = 1,
    coordinated: bool = False,
) -> Cell:
    """Real programs under one scheduler.

    @path, @disks and @coordinated are as for boot(). @inside is what the program says itself, if
    it is not said. @streamer (Python) is who streams meanwhile, in the workloads that have such a
    one, instead of who does.
    """
    variables, show = inside or program.inside()
    scripts = ("programs.sh", "tpc-h.sh")
    result = boot(
        load_disk(DISK),
        policy,
        shell(variables, *scripts, call=program.work),
        path=path,
        disks=disks,
        coordinated=coordinated,
        queue_depth=queue_depth,
        prepare=shell(variables, *scripts, call=program.prepare),
        files={"streamer.py": streamer or inside_rig("streamer.py")},
        memory_mb=program.memory_mb,
        trace_kib=program.trace_kib,
        disk_settings=(
            {} if program.disk_mb is None else {"memory_limit_bytes": str(program.disk_mb << 20)}
        ),
        show=show,
    )
    begin, end = map(float, result.files["times"].split())
    requests = [
        request
        for trace in block_traces(result)
        for request in trace.requests
        if begin * 1e9 <= request.issue_ns <= end * 1e9
    ]
    reads = [request for request in requests if not request.write]
    read = sum(request.sectors for request in reads) * 512
    streamed = result.files.get("streamed")
    where = f"{name}, {path}, {policy.label}"
    if read < program.least_read:
        raise StreamschedError(
            f"{where}: only {read / 1e6:.1f} MB were read from the disk; "
            "the page cache had the rest"
        )
    failed = re.findall(r"hdd_emu: .* failed: .*", result.console)
    if complaints := [*failed, *result.complaints()]:
        raise StreamschedError(f"{where}: the kernel complained: {complaints[0].strip()}")
    times = [request.wait_ns + request.service_ns for request in reads]
    seconds = end - begin
    return Cell(
        name,
        path,
        policy.label,
        sum(request.sectors for request in requests) * 512 / 1e6 / seconds,
        None,
        seconds,
        (p99(times) or 0) / 1e6,
        max(times, default=0) / 1e6,
        int(streamed) / 1e6 / seconds if streamed else None,
        queue_depth,
    )
