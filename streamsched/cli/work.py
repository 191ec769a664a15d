# SPDX-License-Identifier: GPL-2.0-only
"""What run, replay and report have in common: work for the simulator, checked, and then done."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from streamsched.auto import setting as auto
from streamsched.base.errors import UsageError, printable, unknown
from streamsched.base.files import mode_of
from streamsched.cli.options import Mode, Owners, Storage, nr_processes
from streamsched.sim.compare import Comparison, Trace, compare
from streamsched.sim.policies import parse_weights
from streamsched.sim.results import comparison_dict
from streamsched.sim.simulate import Setup
from streamsched.sim.workloads import WORKLOADS, shipped_jobs
from streamsched.work import tracefile
from streamsched.work.jobfile import JobFile, Process, load_job_file

if TYPE_CHECKING:
    from streamsched.report.figures import Section
    from streamsched.sim.series import Series


def check_apart(outputs: Mapping[str, Path | None]) -> None:
    """Refuse two outputs, by the options that name them, into one file."""
    given = [(option, path) for option, path in outputs.items() if path is not None]
    for (one, first), (other, second) in itertools.combinations(given, 2):
        if os.path.realpath(first) == os.path.realpath(second) or (
            mode_of(first) and mode_of(second) and first.samefile(second)
        ):
            what = "where the results go" if one == "--to" else "another output"
            raise UsageError(f"{other} {second}: is {what} ({one}); name two files")


def note(text: str) -> None:
    """Say what may surprise."""
    print(f"streamsched: note: {printable(text)}", file=sys.stderr)


def load(job: str, capacity_bytes: int, seed: int) -> JobFile:
    """A job file; what may surprise is said."""
    notes: list[str] = []
    file = load_job_file(job, capacity_bytes=capacity_bytes, seed=seed, notes=notes)
    for one in notes:
        note(one)
    return file


def check_job(job: str) -> None:
    """Refuse a name that is of no workload and of no file."""
    if job in WORKLOADS or Path(job).suffix or Path(job).name != job or mode_of(job):
        return
    if job in shipped_jobs():
        raise UsageError(f"{job} is a job file: name it by its path, as in jobs/{job}.fio")
    raise unknown("workload or job file", job, [*WORKLOADS, *shipped_jobs()])


def places_of(
    context: typer.Context, job: str, disk: str, array: str | None, owners: Owners
) -> tuple[str, str | None, Owners]:
    """--disk, --array and --owners; what is not given is a named workload's own."""
    workload = WORKLOADS.get(job)
    if workload is None:
        return disk, array, owners
    given = {
        name
        for name in ("disk", "array", "owners")
        if getattr(context.get_parameter_source(name), "name", "") != "DEFAULT"
    }
    return (
        disk if "disk" in given else workload.disk,
        array if "array" in given else workload.array,
        owners if "owners" in given else Owners(workload.owners),
    )


@dataclasses.dataclass(frozen=True)
class Done:
    """What came of it, and what is drawn of it if that was asked for."""

    comparison: Comparison
    section: Section | None = None


@dataclasses.dataclass(frozen=True)
class Work:
    """A job or a trace, under some policies."""

    name: str
    title: str
    setups: Sequence[Setup]
    processes: Sequence[Process] = ()
    trace: Trace | None = None

    def run(
        self,
        options: auto.Options,
        jobs: int,
        requests: Path | None = None,
        drawn: bool = False,
    ) -> Done:
        """Simulate it; @drawn: with a section of a report."""
        setups = auto.prepare(list(self.setups), options, jobs, Console(stderr=True))
        series: list[Series] = []

        def look(files: Sequence[Path]) -> None:
            from streamsched.sim.series import all_series

            series.extend(all_series(files))

        comparison = compare(
            setups,
            self.processes,
            self.trace,
            jobs=jobs,
            requests=requests,
            look=look if drawn else None,
        )
        if not series:  # not asked for, or interrupted
            return Done(comparison)
        from streamsched.report.figures import Section

        names = [process.name for process in self.processes]
        document = comparison_dict(comparison, self.name, bins=True)
        return Done(comparison, Section(self.title, document, names, series))


def _title(setups: Sequence[Setup], storage: Storage, begin: str) -> str:
    one = setups[0]
    return f"{begin} on {storage}, owners {one.owners}, queue depth {one.queue_depth}"


def job_work(
    job: str, storage: Storage, setups: Sequence[Setup], weight: Sequence[str], seed: int
) -> Work:
    """A job file, or a workload that has a name, on @storage."""
    workload = WORKLOADS.get(job)
    setups = [storage.apply(setup) for setup in setups]
    if workload:
        setups = [workload.fit(setup) for setup in setups]
        processes = workload.processes(storage.capacity_bytes, seed)
    else:
        processes = list(load(job, storage.capacity_bytes, seed).processes)
    policies = [setup.policy for setup in setups]
    weights = parse_weights(list(weight), policies, processes, setups[0].owners)
    setups = [dataclasses.replace(setup, weights=weights) for setup in setups]
    name = Path(job).name
    return Work(
        name, _title(setups, storage, f"{name}: {nr_processes(processes)}"), setups, processes
    )


@contextlib.contextmanager
def trace_work(
    trace: Trace, storage: Storage, setups: Sequence[Setup], mode: Mode, wrap: bool
) -> Iterator[Work]:
    """A trace on @storage; of standard input there is a copy meanwhile."""
    setups = [
        dataclasses.replace(storage.apply(setup), wrap=wrap, closed=mode is Mode.closed)
        for setup in setups
    ]
    name = Path(trace.path).name
    with tracefile.kept(trace.path, trace.format) as path:
        opened = tracefile.open_trace(path, trace.format)
        yield Work(
            name,
            _title(setups, storage, f"{name} ({opened.format}), {mode.value}:"),
            setups,
            trace=dataclasses.replace(trace, path=path, format=opened.format),
        )
