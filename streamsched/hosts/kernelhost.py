# SPDX-License-Identifier: GPL-2.0-only
"""Job files on the real kernel, in virtual time: the host behind run --on kernel.

Each policy gets a rig (a User Mode Linux, see docs/internals/RIG.md) of its own, with an
emulated disk made from the same disk file as the simulator's. fio itself runs
the job file there; what the disk's requests went through is read from the
kernel's block trace events, so that it means the same for every scheduler.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from rich.console import Console

from streamsched.base.errors import StreamschedError, UsageError, unknown
from streamsched.base.progress import counted
from streamsched.hosts import hddemu, rig
from streamsched.hosts.fiorun import fio_jobs, fio_run, ramp_of_all
from streamsched.sim.compare import Comparison, stand_ins
from streamsched.sim.diskfile import Disk
from streamsched.sim.policies import names_in, refuse_twice
from streamsched.sim.simulate import COUNTERS, NR_REQUESTS, Run, Setup
from streamsched.work.blocktrace import EVENTS, BlockTrace, parse
from streamsched.work.fio_write import Place, alone_text, job_text
from streamsched.work.jobfile import JobFile
from streamsched.work.process import Process

# Of the module historic-iosched, which is for the rig only.
HISTORIC = ("noop", "linus", "deadline-2.6", "anticipatory", "cfq", "cooperative")
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq", "stream", *HISTORIC)
DEFAULT_POLICIES = "none,mq-deadline,kyber,bfq,bfq:low_latency=0,stream"
PATHS = ("direct", "loop", "crypt", "md0", "nbd")
# Further paths of boot(): md arrays of several disks, in chunks of so many KiB.
ARRAYS = ("raid0", "raid5")
CHUNK_KIB = 64
# Long enough for an alone rate, short enough for nobody to wait for it.
ALONE_BYTES = 256 << 20
ALONE_S = 20
# Real seconds that one rig may take.
TIMEOUT_S = 900
TRACE_KIB = 200_000
# As much as the simulator's machine has (CACHE_BYTES of simulate.py), and the trace.
MEMORY_MB = 2300
_SETTING = re.compile(r"[a-z][a-z0-9_]*=[^:=\s]+")


@dataclasses.dataclass(frozen=True)
class KernelPolicy:
    """A scheduler of the block layer and what is written to its files in iosched/."""

    name: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """As it is written on the command line."""
        return ":".join([self.name, *(f"{key}={value}" for key, value in self.settings)])


def parse_policies(text: str, settings: Sequence[str] = ()) -> list[KernelPolicy]:
    """Policies from "bfq:low_latency=0,stream"; @settings (of --set) go to stream."""
    policies = []
    for spec in names_in(text, "mq-deadline,stream"):
        name, *pairs = spec.split(":")
        if name not in SCHEDULERS:
            raise unknown("kernel scheduler", name, SCHEDULERS)
        own = [*pairs, *(settings if name == "stream" else ())]
        for pair in own:
            if not _SETTING.fullmatch(pair):
                raise UsageError(
                    f'policy "{spec}": "{pair}" is not of the form SETTING=VALUE, '
                    f"as in {'stream:inner=deadline' if name == 'stream' else 'bfq:low_latency=0'}"
                )
        split = tuple(tuple(pair.split("=", 1)) for pair in own)
        keys = [key for key, _ in split]
        for key in keys:
            if keys.count(key) > 1:
                raise UsageError(f'policy "{spec}": {key} is set twice; leave one of them out')
        policies.append(KernelPolicy(name, split))  # type: ignore[arg-type]
    if settings and all(policy.name != "stream" for policy in policies):
        raise UsageError(
            f"--set {settings[0]}: on the kernel it is for stream, which --policy does not name; "
            f"write {policies[0].name}:{settings[0]}"
        )
    refuse_twice(text, [policy.label for policy in policies])
    return policies


# ---- what runs inside ----

FIO_WORK = """\
fio --clocksource=clock_gettime --output-format=json+ --output="$OUT/fio.json" "$IN/job.fio"
"""


def boot(
    disk: Disk,
    policy: KernelPolicy,
    work: str,
    *,
    path: str = "direct",
    disks: int = 1,
    coordinated: bool = False,
    queue_depth: int = 1,
    variant: str = "base",
    prepare: str | None = None,
    files: Mapping[str, str] | None = None,
    memory_mb: int = MEMORY_MB,
    trace_kib: int = TRACE_KIB,
    disk_settings: Mapping[str, str] | None = None,
    readahead_kib: int | None = None,
    crypt_options: Sequence[str] = (),
    show: Sequence[Path] = (),
) -> rig.RigResult:
    """One rig: the disk, the layers of @path, the scheduler, the trace, and @work (bash).

    With a @path of ARRAYS there are so many @disks as this; @coordinated: their schedulers are
    attached as the array's members.

    @work finds the top of the layers in $DEV; see kernel/rig/workload.sh. The rig's @memory_mb
    also hold the disk's data and the trace's @trace_kib. @disk_settings are further attributes
    of the emulated disk (docs/sim/HDD-EMU.md); at most @readahead_kib are read ahead (None: what
    the kernel chooses); @crypt_options are optional parameters of dm-crypt; @show as for
    run_in_rig().
    """
    emulated = dataclasses.replace(disk, queue_depth=queue_depth)
    inside: dict[str, bytes | str] = {
        "disk.sh": "\n".join(
            hddemu.script(f"hdd{i}", emulated, disk_settings) for i in range(disks)
        ),
        "work.sh": work,
        **(files or {}),
    }
    if prepare is not None:
        inside["prepare.sh"] = prepare
    result = rig.run_in_rig(
        (rig.source_root() / "kernel" / "rig" / "workload.sh").read_text(),
        variant=variant,
        files=inside,
        timeout_s=TIMEOUT_S,
        memory_mb=memory_mb,
        # With the command that attaches.
        show=[*show, *([Path(sys.prefix), rig.source_root()] if coordinated else [])],
        environment={
            "STACK": path,
            "CHUNK_KIB": str(CHUNK_KIB),
            "COORDINATOR": f"{sys.prefix}/bin/streamsched" if coordinated else "",
            "CRYPT_OPTIONS": " ".join([str(len(crypt_options)), *crypt_options]),
            "READAHEAD_KIB": "" if readahead_kib is None else str(readahead_kib),
            "SCHEDULER": policy.name,
            "WITH_MODULE": "historic-iosched" if policy.name in HISTORIC else "",
            "SETTINGS": "\n".join(f"{key} {value}" for key, value in policy.settings),
            "NR_REQUESTS": str(NR_REQUESTS),
            "TRACE_KIB": str(trace_kib),
            "TRACE_EVENTS": " ".join(EVENTS),
        },
    )
    if "refused" in result.files:
        raise UsageError(f"{policy.label}: {result.files['refused'].decode().strip()}")
    if "failed" in result.files:
        raise StreamschedError(f"{policy.label}: {result.files['failed'].decode().strip()}")
    if result.status != 0:
        last = (result.stdout + result.stderr).strip().splitlines()[-5:]
        raise StreamschedError(f"{policy.label}: the work failed in the rig: " + " | ".join(last))
    return result


def block_traces(result: rig.RigResult, skip_ns: int = 0) -> list[BlockTrace]:
    """What each of the emulated disks went through, but for the first @skip_ns."""
    lines = result.files["trace"].decode().splitlines()
    devices = result.files["dev"].decode().replace(":", ",").split()
    return [parse(lines, device, skip_ns) for device in devices]


def block_trace(result: rig.RigResult, skip_ns: int = 0) -> BlockTrace:
    """What the one emulated disk went through."""
    [trace] = block_traces(result, skip_ns)
    return trace


# ---- what comes back ----


def _counters(text: str, trace: BlockTrace) -> dict[str, int]:
    """The core's own where stream ran; what the trace tells for the others."""
    counters = dict.fromkeys(COUNTERS, 0)
    for line in text.splitlines():
        if not line.startswith(("rt:", "be:", "idle:")):
            continue
        words = line.split()[1:]
        for name, value in zip(words[::2], words[1::2], strict=False):
            if name in counters:
                counters[name] += int(value)
    counters["dispatches"] = len(trace.requests)
    counters["seeks"] = trace.seeks
    counters["idle_ns"] = trace.idle_ns
    return counters


def run_of(
    result: rig.RigResult,
    policy: KernelPolicy,
    setup: Setup,
    processes: Sequence[Process],
    alone: float,
) -> Run:
    """The simulator's kind of result from what a rig brought back."""
    trace = block_trace(result, ramp_of_all(processes))
    return fio_run(
        fio_jobs(result.files["fio.json"].decode()),
        trace,
        dataclasses.replace(setup, policy=policy.label),
        processes,
        alone,
        _counters(result.files.get("counters", b"").decode(), trace),
    )


def _if_finished(future: Future[rig.RigResult]) -> rig.RigResult | None:
    if not future.done() or future.cancelled() or future.exception():
        return None
    return future.result()


def _doing(what: str, console: Console) -> contextlib.AbstractContextManager[object]:
    """Says on a terminal what is being done, until it is."""
    return console.status(what) if console.is_terminal else contextlib.nullcontext()


def compare_on_kernel(
    file: JobFile,
    disk: Disk,
    policies: Sequence[KernelPolicy],
    *,
    path: str = "direct",
    queue_depth: int = 1,
    variant: str = "base",
    readahead_kib: int | None = None,
    crypt_options: Sequence[str] = (),
    jobs: int = 1,
    console: Console | None = None,
) -> Comparison:
    """Run @file under each policy on the rig's kernel, and each process alone.

    What is not said here is as for boot().
    """
    console = console or Console(stderr=True)
    if not shutil.which("fio"):  # before minutes of building
        raise StreamschedError("fio is missing: install the Debian package fio")
    setup = Setup(disk, "none", queue_depth=queue_depth, curve="learned", path=path)
    processes = file.processes
    numbers = sorted(set(stand_ins([process.section for process in processes])))
    alone = [(processes[n], min(processes[n].io_bytes, ALONE_BYTES)) for n in numbers]
    text, lonely = job_text(file, Place()), alone_text(alone, Place(), ALONE_S)

    def one(policy: KernelPolicy, text: str) -> rig.RigResult:
        result = boot(
            disk,
            policy,
            FIO_WORK,
            path=path,
            queue_depth=queue_depth,
            variant=variant,
            readahead_kib=readahead_kib,
            crypt_options=crypt_options,
            files={"job.fio": text},
        )
        progress.advance(task)
        for line in result.complaints()[:1]:
            console.print(f"streamsched: {policy.label}: the kernel complained: {line.strip()}")
        return result

    progress = counted(console)
    task = progress.add_task(f"{file.name} on the kernel", total=len(policies) + 1)
    futures: list[Future[rig.RigResult]] = []
    interrupted = False
    try:
        rig.build(variant)
        with _doing("compiling the modules for the rig, unless they are there", console):
            rig.build_modules(variant)
        with progress, rig.pool(jobs) as pool:
            futures.append(pool.submit(one, KernelPolicy("none"), lonely))
            futures += [pool.submit(one, policy, text) for policy in policies]
            for future in futures:
                future.result()
    except KeyboardInterrupt:
        interrupted = True
    alone_run, *booted = [_if_finished(future) for future in futures] or [None]
    rates: dict[int, float] = {}
    if alone_run:
        alone_jobs = fio_jobs(alone_run.files["fio.json"].decode())
        rates = {
            number: (job.read + job.written) / (job.ns / 1e9)
            for number, job in zip(numbers, alone_jobs, strict=True)
            if job.ns
        }
    mean_rate = sum(rates.values()) / len(rates) if rates else 0.0
    runs = tuple(
        run_of(result, policy, setup, processes, mean_rate)
        for policy, result in zip(policies, booted, strict=False)
        if result
    )
    return Comparison(runs, rates, interrupted)


__all__ = [
    "DEFAULT_POLICIES",
    "PATHS",
    "SCHEDULERS",
    "KernelPolicy",
    "compare_on_kernel",
    "parse_policies",
]
