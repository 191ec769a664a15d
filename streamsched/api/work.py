# SPDX-License-Identifier: GPL-2.0-only
"""Work: a job or a trace, under some policies, in the simulator."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

import streamsched
from streamsched.api.place import Storage
from streamsched.api.result import Result
from streamsched.base.errors import UsageError, said, unknown
from streamsched.base.files import Target, mode_of
from streamsched.sim import auto
from streamsched.sim.compare import Compared, Comparison, compare, compare_each
from streamsched.sim.policies import parse_weights
from streamsched.sim.results import comparison_dict
from streamsched.sim.simulate import Setup, trace_end, trace_requests
from streamsched.sim.tasks import Trace
from streamsched.sim.workloads import WORKLOADS, job_path, shipped_jobs
from streamsched.work import tracefile
from streamsched.work.jobfile import JobFile, load_job_file, parse_job_file
from streamsched.work.process import Process
from streamsched.work.processors import NO_TIME, joined, note_of

if TYPE_CHECKING:
    from streamsched.report.figures import Section
    from streamsched.sim.series import Series


# A trace whose first requests come farther apart, or are more than this, has other times than read.
PACE_REQUESTS, PACE_LEAST = 10_000, 16
SLOW_S, FAST_GB_S = 10.0, 100.0
# A closed replay takes what comes sooner as sent together (TOGETHER_NS of sim/replay.c); what comes
# later finds the disk idle.
TOGETHER_S, BUSY_S = 50e-6, 20e-3
# Of several traces each begins at a whole MiB.
PLACE_SECTORS = 2048


@dataclasses.dataclass(frozen=True)
class Job:
    """Processes that do I/O, as fio's job files describe them.

    @source: the path of a job file, the name of one that is shipped, as `par-read`, or a name that
    `streamsched list workloads` lists; with @text that is the job file, and @source its name.
    @runtime_ns: each process ends after so long at most, as if its runtime were that; 0: as it is.
    """

    source: str | os.PathLike[str]
    text: str | None = None
    runtime_ns: int = 0

    @staticmethod
    def names() -> list[str]:
        """Those that are shipped: job files, and workloads that no job file can say."""
        return sorted([*WORKLOADS, *shipped_jobs()])

    @property
    def workload(self) -> str:
        """The name of the workload that it is, or nothing."""
        name = os.fspath(self.source)
        return name if self.text is None and name in WORKLOADS else ""

    def load(self, capacity_bytes: int, seed: int, notes: list[str]) -> JobFile:
        """Its processes on a disk of this size; UsageError with file and line if it is wrong."""
        file = self._load(capacity_bytes, seed, notes)
        if not self.runtime_ns:
            return file
        most = self.runtime_ns
        shorter = [
            dataclasses.replace(one, runtime_ns=min(one.runtime_ns or most, most))
            for one in file.processes
        ]
        return dataclasses.replace(file, processes=tuple(shorter))

    def _load(self, capacity_bytes: int, seed: int, notes: list[str]) -> JobFile:
        name = os.fspath(self.source)
        if workload := WORKLOADS.get(self.workload):
            text = workload.text(capacity_bytes)
            processes = tuple(workload.processes(capacity_bytes, seed))
            return JobFile(name, processes, (), sha256=hashlib.sha256(text.encode()).hexdigest())
        if self.text is not None:
            return parse_job_file(
                self.text, name, capacity_bytes=capacity_bytes, seed=seed, notes=notes
            )
        return load_job_file(job_of(name), capacity_bytes=capacity_bytes, seed=seed, notes=notes)


def job_of(name: str) -> str:
    """The path of a job file that is named by its path, or by its name if it is shipped.

    Raises UsageError for what is neither.
    """
    if Path(name).suffix or Path(name).name != name or mode_of(name):
        return name
    if name in shipped_jobs():
        return str(job_path(f"{name}.fio"))
    raise unknown("workload or job file", name, Job.names())


def check_seed(seed: int) -> None:
    """Refuse what the simulator has no room for."""
    if not 0 <= seed < 2**64:
        raise UsageError(f"--seed {seed}: must be within 0 to 2^64-1")


def nr_processes(processes: Sequence[object]) -> str:
    """How many, in words."""
    return f"{len(processes)} process{'' if len(processes) == 1 else 'es'}"


@dataclasses.dataclass(frozen=True)
class Work:
    """A job or a trace, under some policies."""

    name: str
    title: str
    setups: Sequence[Setup]
    origin: Mapping[str, Any]
    processes: Sequence[Process] = ()
    traces: Sequence[Trace] = ()
    notes: Sequence[str] = ()

    def run(
        self,
        options: auto.Options,
        jobs: int,
        requests: Target | None = None,
        drawn: bool = False,
    ) -> Result:
        """Simulate it, @jobs simulations at once; @drawn: with what pictures are drawn of."""
        setups = auto.prepare(self.setups, options, jobs, Console(stderr=True))
        series: list[Series] = []

        def look(files: Sequence[Path]) -> None:
            from streamsched.sim.series import all_series

            series.extend(all_series(files))

        comparison = compare(
            setups,
            self.processes,
            self.traces,
            jobs=jobs,
            requests=requests,
            look=look if drawn else None,
        )
        section = None
        if series:  # else not asked for, or interrupted
            from streamsched.report.figures import Section

            names = [process.name for process in self.processes]
            document = comparison_dict(comparison, self.name, self.origin)
            failed = [said(error) for error in comparison.failed]
            section = Section(self.title, document, names, series, failed)
        return self.result(comparison, options, jobs, section)

    def result(
        self,
        comparison: Comparison,
        options: auto.Options,
        jobs: int,
        section: Section | None = None,
    ) -> Result:
        """What came of it."""
        return Result(
            comparison, self.name, self.title, self.origin, section, (self, options, jobs)
        )


def run_each(works: Sequence[Work], options: auto.Options, jobs: int) -> list[Result]:
    """What comes of each of @works, with the simulations of all at once."""
    compared = [
        Compared(
            auto.prepare(work.setups, options, jobs, Console(stderr=True)),
            work.processes,
            work.traces,
        )
        for work in works
    ]
    found = compare_each(compared, jobs=jobs)
    return [work.result(one, options, jobs) for work, one in zip(works, found, strict=True)]


def _title(setups: Sequence[Setup], storage: Storage, begin: str, seed: int = 0) -> str:
    one = setups[0]
    end = f", seed {seed}" if seed else ""
    return f"{begin} on {storage}, owners {one.owners}, queue depth {one.queue_depth}{end}"


def origin_of(storage: Storage, seed: int, work_sha256: str | list[str]) -> dict[str, Any]:
    """Where a result comes from: the program's version, the seed, what was read."""
    texts = [disk.description_text() for disk in storage.members]
    return {
        "program": f"streamsched {streamsched.__version__}",
        "seed": seed,
        "work_sha256": work_sha256,
        "disk_sha256": [hashlib.sha256(text.encode()).hexdigest() for text in texts],
    }


def job_work(
    job: Job, storage: Storage, setups: Sequence[Setup], weight: Sequence[str], seed: int
) -> Work:
    """A job file, or a workload that has a name, on @storage."""
    check_seed(seed)
    notes: list[str] = []
    setups = [storage.apply(setup) for setup in setups]
    file = job.load(storage.capacity_bytes, seed, notes)
    if workload := WORKLOADS.get(job.workload):
        setups = [workload.fit(setup) for setup in setups]
    policies = [setup.policy for setup in setups]
    weights = parse_weights(list(weight), policies, file.processes, setups[0].owners)
    setups = [dataclasses.replace(setup, weights=weights) for setup in setups]
    name = Path(os.fspath(job.source)).name
    title = _title(setups, storage, f"{name}: {nr_processes(file.processes)}", seed)
    origin = origin_of(storage, seed, file.sha256)
    if job.runtime_ns:
        origin["runtime_s"] = job.runtime_ns / 1e9
    return Work(name, title, setups, origin, file.processes, notes=notes)


def _side_by_side(traces: Sequence[Trace], capacity_sectors: int, wrap: bool) -> list[Trace]:
    """@traces, each with a place of its own: one behind the other, each as long as it reaches."""
    placed, begin = [], 0
    for trace in traces:
        placed.append(dataclasses.replace(trace, first_sector=begin))
        with trace.named():
            opened = tracefile.open_trace(trace.path, trace.format, trace.skip_bad)
            end = trace_end(
                opened.format, opened.chunks(), device=trace.device, skip_bad=trace.skip_bad
            )
        begin += -(-end // PLACE_SECTORS) * PLACE_SECTORS
    if begin > capacity_sectors and not wrap:
        raise UsageError(
            f"the {len(traces)} traces need {begin} sectors one behind the other, and the disk "
            f"has {capacity_sectors}; choose a larger disk, or fold positions with --wrap"
        )
    return placed


def _joined(traces: Sequence[Trace]) -> list[Trace]:
    """@traces, with those that are the files of one, one for each processor, as that one."""
    found: list[Trace] = []
    for alike in dict.fromkeys(dataclasses.replace(trace, path="") for trace in traces):
        names = [one.path for one in traces if dataclasses.replace(one, path="") == alike]
        found += [dataclasses.replace(alike, path=name) for name in joined(names)]
    return found


def _first_notes(trace: Trace, closed: bool) -> Iterator[str]:
    """What is said of a trace by its first requests.

    They come at a rate that no disk is asked for, or a closed replay takes many senders for one.
    """
    opened = tracefile.open_trace(trace.path, trace.format, trace.skip_bad)
    nr = sectors = span_ns = 0
    told = False  # who sent it, or when it was done
    with contextlib.suppress(UsageError):  # which the replay says
        for request in itertools.islice(
            trace_requests(
                opened.format, opened.chunks(), device=trace.device, skip_bad=trace.skip_bad
            ),
            PACE_REQUESTS,
        ):
            nr, sectors, span_ns = nr + 1, sectors + request.nr_sectors, request.arrival_ns
            told = told or bool(request.owner) or request.complete_ns != NO_TIME
    if nr < PACE_LEAST or not span_ns:
        return
    name = tracefile.shown(trace.path)
    apart, rate = span_ns / (nr - 1) / 1e9, sectors * 512 / span_ns
    if apart > SLOW_S or rate > FAST_GB_S:
        pace = f"come {apart:,.0f} s apart" if apart > SLOW_S else f"are {rate:,.0f} GB a second"
        yield (
            f"{name}: its first {nr} requests {pace}; if they were not, its "
            f"times are not in the unit of {opened.format} (docs/sim/TRACES.md)"
        )
    # A log of fio's is one job's.
    one_job = opened.format.startswith("fio")
    if closed and not told and not one_job and TOGETHER_S < apart < BUSY_S:
        yield (
            f"{name}: says neither who sent a request nor when it was done, so all wait for each "
            "other as if one program had sent them; if many did, use --mode open"
        )


@contextlib.contextmanager
def trace_work(
    traces: Sequence[Trace], storage: Storage, setups: Sequence[Setup], closed: bool, wrap: bool
) -> Iterator[Work]:
    """Traces together on @storage; of standard input there is a copy meanwhile."""
    setups = [
        dataclasses.replace(storage.apply(setup), wrap=wrap, closed=closed) for setup in setups
    ]
    traces = _joined(traces)
    if [trace.path for trace in traces].count(tracefile.STDIN) > 1:
        raise UsageError(f"{tracefile.STDIN}: stands there twice; standard input is read once")
    with contextlib.ExitStack() as stack:
        kept, sums = [], []
        for trace in traces:
            path = stack.enter_context(tracefile.kept(trace.path, trace.format, trace.skip_bad))
            opened = tracefile.open_trace(path, trace.format, trace.skip_bad)
            sums.append(opened.sha256())
            kept.append(dataclasses.replace(trace, path=path, format=opened.format))
        if len(kept) > 1:
            kept = _side_by_side(kept, storage.capacity_bytes // 512, wrap)
        name = " + ".join(Path(trace.path).name for trace in traces)
        formats = ", ".join(dict.fromkeys(str(trace.format) for trace in kept))
        how = "closed" if closed else "open"
        yield Work(
            name,
            _title(setups, storage, f"{name} ({formats}), {how}:"),
            setups,
            origin_of(storage, 0, sums[0] if len(sums) == 1 else sums),
            traces=kept,
            notes=[
                *(note for trace in traces if (note := note_of(trace.path))),
                *(note for trace in kept for note in _first_notes(trace, closed)),
            ],
        )
