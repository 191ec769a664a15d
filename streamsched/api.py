# SPDX-License-Identifier: GPL-2.0-only
"""The Python interface: work on a disk, under some policies, in the simulator.

The command line uses it too. What is documented for users is `simulate()`, `Job`, `Trace`, `Disk`
and `Result` (docs/PYTHON.md); all of them are there as `streamsched.simulate` and so on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from streamsched import __version__
from streamsched.auto import setting as auto
from streamsched.base.errors import StreamschedError, UsageError, said, unknown
from streamsched.base.files import mode_of
from streamsched.base.progress import nr_jobs
from streamsched.sim.array import Array, parse_array
from streamsched.sim.compare import Comparison, Trace, compare
from streamsched.sim.diskfile import Disk, is_path, load_disk
from streamsched.sim.policies import (
    check_spec,
    names_in,
    parse_weights,
    refuse_twice,
    register_policy,
    spec_of,
    with_settings,
)
from streamsched.sim.results import as_csv, as_json, comparison_dict, tables_text
from streamsched.sim.simulate import Setup, check_depth
from streamsched.sim.workloads import WORKLOADS, job_path, shipped_jobs
from streamsched.work import tracefile
from streamsched.work.jobfile import JobFile, Process, load_job_file, parse_job_file

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from streamsched.report.figures import Section
    from streamsched.sim.series import Series

__all__ = [
    "Disk",
    "Job",
    "Result",
    "StreamschedError",
    "Trace",
    "UsageError",
    "register_policy",
    "simulate",
]

# A disk as shared machines have it now, with as many commands in it as it takes.
DEFAULT_DISK = "exos-x18"
DEFAULT_POLICIES = "noop,deadline,cfq,stream:deadline"
DEFAULT_OWNERS = "none"
# A machine of the papers has one command in the disk.
PAPERS_DEPTH = 1
DEPTH = "--queue-depth"
# The parameters that the command line has other names for.
PARAMETERS = {"policy": "policies", "set": "settings", "weight": "weights"}


# ---- what the work runs on ----


@dataclasses.dataclass(frozen=True)
class Storage:
    """What the work runs on: a disk, or disks put together."""

    disk: Disk
    array: Array | None = None
    disks: tuple[Disk, ...] = ()

    def __str__(self) -> str:
        if self.array is None:
            return self.disk.name
        names = dict.fromkeys(one.name for one in self.members)
        return f"{self.array} of {', '.join(names)}"

    def apply(self, setup: Setup) -> Setup:
        """@setup on this."""
        return dataclasses.replace(setup, disk=self.disk, array=self.array, disks=self.disks)

    @property
    def members(self) -> tuple[Disk, ...]:
        """Every description that there is."""
        return self.disks or (self.disk,)

    @property
    def capacity_bytes(self) -> int:
        return self.apply(Setup(self.disk, "noop")).capacity_bytes


@dataclasses.dataclass(frozen=True)
class Place:
    """On what, and seen how: --disk, --array, --owners and --queue-depth, None where not given."""

    disk: Disk | str | None = None
    array: str | None = None
    owners: str | None = None
    queue_depth: int | None = None

    def of(self, work: str) -> Place:
        """With what the workload @work brings along: what it was measured on by its authors."""
        workload = WORKLOADS.get(work)
        if workload is None:
            return self
        own = self.disk is None
        return Place(
            self.disk or workload.disk,
            self.array or workload.array,
            self.owners or workload.owners,
            PAPERS_DEPTH if own and self.queue_depth is None else self.queue_depth,
        )

    @property
    def seen(self) -> str:
        """What schedulers see of who sent a request."""
        return self.owners or DEFAULT_OWNERS

    def storage(self) -> tuple[Storage, int]:
        """The disks, and how many commands each has at once, checked."""
        disk = self.disk or DEFAULT_DISK
        if isinstance(disk, Disk):
            array = parse_array(self.array) if self.array else None
            return self._with_depth(Storage(disk, array))
        names = [name.strip() for name in disk.split(",")]
        if len(names) > 1 and not all(names):
            raise UsageError(f"--disk {disk}: a name is missing beside a comma")
        if self.array is None:
            if len(names) > 1:
                raise UsageError(f"--disk {disk}: several disks need --array, as in raid0:5:64k")
            return self._with_depth(Storage(load_disk(disk)))
        described = parse_array(self.array)
        if len(names) not in (1, described.members):
            raise UsageError(
                f"--disk {disk}: name one disk, or each of the {described.members} of --array "
                f"{self.array}; these are {len(names)}"
            )
        disks = tuple(load_disk(name) for name in names)
        return self._with_depth(Storage(disks[0], described, disks if len(disks) > 1 else ()))

    def _with_depth(self, storage: Storage) -> tuple[Storage, int]:
        if not storage.capacity_bytes:  # also refuses what cannot be put together
            raise UsageError(f"--array {self.array}: has no room")
        if self.queue_depth is None:
            return storage, min(disk.queue_depth for disk in storage.members)
        check_depth(self.queue_depth, storage.members, DEPTH)
        return storage, self.queue_depth


def files_of(disk: str | None) -> list[str]:
    """The files that --disk names."""
    return [name.strip() for name in (disk or "").split(",") if is_path(name.strip())]


def specs_of(policies: str) -> list[str]:
    """The policies that --policy names, checked, without settings of their own."""
    specs = names_in(policies, "noop,stream:deadline")
    for spec in specs:
        if spec_of(spec)[1]:
            raise UsageError(f"--policy {spec}: no settings in brackets here")
        check_spec(spec)
    refuse_twice(policies, specs)
    return specs


def setups_of(
    disk: Disk, policies: str, owners: str, depth: int, settings: Sequence[str], curve: str
) -> list[Setup]:
    """One simulation for each policy, with @settings and those in its own brackets."""
    names = names_in(policies, "noop,stream:deadline")
    refuse_twice(policies, names)
    found = with_settings(names, list(settings))
    return [
        Setup(
            disk,
            spec,
            owners=owners,
            queue_depth=depth,
            tunables=tunables,
            curve=curve,
            label="" if name == spec else name,
        )
        for name, (spec, tunables) in zip(names, found, strict=True)
    ]


# ---- the work ----


@dataclasses.dataclass(frozen=True)
class Job:
    """Processes that do I/O, as fio's job files describe them.

    @source: the path of a job file, the name of one that is shipped, as `par-read`, or a name that
    `streamsched workloads` lists; with @text that is the job file, and @source its name.
    """

    source: str | os.PathLike[str]
    text: str | None = None

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
    trace: Trace | None = None
    notes: Sequence[str] = ()

    def run(
        self,
        options: auto.Options,
        jobs: int,
        requests: Path | None = None,
        drawn: bool = False,
    ) -> Result:
        """Simulate it, @jobs simulations at once; @drawn: with what pictures are drawn of."""
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
        section = None
        if series:  # else not asked for, or interrupted
            from streamsched.report.figures import Section

            names = [process.name for process in self.processes]
            document = comparison_dict(comparison, self.name, self.origin, bins=True)
            failed = [said(error) for error in comparison.failed]
            section = Section(self.title, document, names, series, failed)
        return Result(
            comparison, self.name, self.title, self.origin, section, (self, options, jobs)
        )


def _title(setups: Sequence[Setup], storage: Storage, begin: str) -> str:
    one = setups[0]
    return f"{begin} on {storage}, owners {one.owners}, queue depth {one.queue_depth}"


def origin_of(storage: Storage, seed: int, work_sha256: str) -> dict[str, Any]:
    """Where a result comes from: the program's version, the seed, what was read."""
    texts = [disk.description_text() for disk in storage.members]
    return {
        "program": f"streamsched {__version__}",
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
    title = _title(setups, storage, f"{name}: {nr_processes(file.processes)}")
    origin = origin_of(storage, seed, file.sha256)
    return Work(name, title, setups, origin, file.processes, notes=notes)


@contextlib.contextmanager
def trace_work(
    trace: Trace, storage: Storage, setups: Sequence[Setup], closed: bool, wrap: bool
) -> Iterator[Work]:
    """A trace on @storage; of standard input there is a copy meanwhile."""
    setups = [
        dataclasses.replace(storage.apply(setup), wrap=wrap, closed=closed) for setup in setups
    ]
    name = Path(trace.path).name
    with tracefile.kept(trace.path, trace.format) as path:
        opened = tracefile.open_trace(path, trace.format)
        how = "closed" if closed else "open"
        with Path(path).open("rb") as file:
            origin = origin_of(storage, 0, hashlib.file_digest(file, "sha256").hexdigest())
        yield Work(
            name,
            _title(setups, storage, f"{name} ({opened.format}), {how}:"),
            setups,
            origin,
            trace=dataclasses.replace(trace, path=path, format=opened.format),
        )


# ---- what came of it ----


def _missing(what: str, module: str, extra: str) -> StreamschedError:
    return StreamschedError(
        f"{what} needs {module}, which is not installed: pip install 'streamsched[{extra}]'"
    )


@dataclasses.dataclass(frozen=True)
class Result:
    """What came of the same work under each policy.

    Throughput is in MB/s (10^6 bytes), times in ms unless a name says otherwise.
    """

    comparison: Comparison
    work: str
    title: str
    origin: Mapping[str, Any]
    drawn: Section | None = None
    _again: tuple[Work, auto.Options, int] | None = None

    @property
    def policies(self) -> list[str]:
        """Under which it was done, with settings of their own in brackets."""
        return [run.setup.shown for run in self.comparison.runs]

    def table(self, *, processes: bool = False, columns: int = 80) -> str:
        """The tables that the command line prints, at most @columns wide if they can be.

        @processes: also what each process had.
        """
        return tables_text(self.comparison, self.title, columns, processes)

    def to_dict(self, *, histograms: bool = False) -> dict[str, Any]:
        """The JSON document of docs/RESULTS.md."""
        return comparison_dict(self.comparison, self.work, self.origin, bins=histograms)

    def to_json(self, *, histograms: bool = False) -> str:
        """The same as text; `streamsched report` draws it."""
        return as_json(self.comparison, self.work, self.origin, bins=histograms)

    def to_csv(self) -> str:
        """A line for each policy, units in the columns' names."""
        return as_csv(self.comparison, self.work, self.origin)

    def to_pandas(self, *, processes: bool = False) -> pandas.DataFrame:
        """A row for each policy, columns as in CSV; or for each process under each policy."""
        try:
            import pandas
        except ImportError:
            raise _missing("to_pandas()", "pandas", "pandas") from None
        if not processes:
            import io

            return pandas.read_csv(io.StringIO(self.to_csv()))
        rows = [
            {
                "policy": run["policy"],
                "process": job["name"],
                **{key: job[key] for key in ("throughput_mb_s", "share", "duration_s")},
                **{f"response_ms_{key}": value for key, value in job["response_ms"].items()},
                **{key: job[key] for key in ("longest_wait_ms", "bytes_read", "bytes_written")},
            }
            for run in self.to_dict()["runs"]
            for job in run["jobs"]
        ]
        return pandas.DataFrame(rows)

    def requests(self) -> pandas.DataFrame:
        """A row for each request that the disks served, columns as --requests has them.

        They are not kept: the simulations are run once more, which comes to the same.
        """
        try:
            import pandas
        except ImportError:
            raise _missing("requests()", "pandas", "pandas") from None
        from streamsched.sim.requestlog import tables

        work, options, jobs = self._repeatable("requests()")
        frames: list[pandas.DataFrame] = []
        setups = auto.prepare(list(work.setups), options, jobs, Console(stderr=True))

        def look(files: Sequence[Path]) -> None:
            parts = list(zip(self.policies, files, strict=True))
            names = [process.name for process in work.processes]
            frames.extend(map(pandas.DataFrame, tables(parts, names)))

        again = compare(setups, work.processes, work.trace, jobs=jobs, look=look)
        if again.interrupted:
            raise KeyboardInterrupt
        return pandas.concat(frames, ignore_index=True)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Throughput, latency, head positions and throughput over time, as run --plot draws them.

        Written to @path, if it is given: .svg, .png or .pdf. Without requests at hand the
        simulations are run once more.
        """
        try:
            from streamsched.report.plot import picture
        except ImportError:
            raise _missing("plot()", "matplotlib", "plots") from None
        from streamsched.base.plotfile import check_plot, save

        if path is not None:
            check_plot(Path(path))
        figure = picture(self.section())
        if path is not None:
            save(figure, Path(path))
        return figure

    def section(self) -> Section:
        """What a report draws."""
        if self.comparison.failed:
            raise self.comparison.failed[0]
        if self.drawn is not None:
            return self.drawn
        work, options, jobs = self._repeatable("a picture")
        result = work.run(options, jobs, drawn=True)
        if result.drawn is None:
            raise KeyboardInterrupt
        return result.drawn

    def _repeatable(self, what: str) -> tuple[Work, auto.Options, int]:
        if self._again is None:
            raise UsageError(f"{what}: only of what was simulated")
        return self._again

    def _repr_html_(self) -> str:
        """In a notebook: the table."""
        return str(self.to_pandas().to_html(index=False))


# ---- the one call ----


def _parameters(message: str) -> str:
    """A sentence of the command line's, with the names that parameters have."""

    def name(match: re.Match[str]) -> str:
        return PARAMETERS.get(match[1], match[1].replace("-", "_"))

    return re.sub(r"(?<!\S)--([a-z][a-z-]*)", name, message)


def simulate(
    work: Job | Trace | str | os.PathLike[str],
    disk: Disk | str | None = None,
    *,
    policies: str | Sequence[str] = DEFAULT_POLICIES,
    array: str | None = None,
    owners: str | None = None,
    queue_depth: int | None = None,
    settings: Mapping[str, object] | None = None,
    weights: Mapping[str, int] | None = None,
    curve: str = "measured",
    seed: int = 0,
    mode: str = "closed",
    wrap: bool = False,
    workers: int = 0,
    profile: str | os.PathLike[str] | None = None,
    goal: str = "throughput",
    rule: str = "workload",
) -> Result:
    """Do @work on @disk under each of @policies, in virtual time: the same call, the same result.

    work: a Job or a Trace; a text is what Job takes.
    disk: a name of Disk.names(), the path of a description, or a Disk; for an array also one for
        each member, comma-separated. Without one the disk a workload brings along, or exos-x18.
    policies: names as `streamsched policies` lists them, comma-separated or a list, each with
        settings of its own in brackets, as in "stream:deadline[wait_target=200ms]".
    array: several disks put together, as in "raid0:5:64k" (docs/ARRAYS.md).
    owners: what schedulers see of who sent a request: "none" as behind a loop device or a network,
        "process" or "group".
    queue_depth: commands in each disk at once, 1 to what the disk takes, which is the default.
    settings: tunables of policies, as in {"wait_target": "200ms"}.
    weights: of a job's processes, 1 to 1000, for policies that give shares.
    curve: the service-time curve, "measured" before or "learned" meanwhile.
    seed: 0 to 2^64-1, what all randomness is made from.
    mode, wrap: of a trace: "closed" or "open"; whether positions beyond the disk's end are folded.
    workers: simulations at once; 0: one per processor.
    profile, goal, rule: for the policy auto (docs/AUTO.md).

    Raises UsageError, with one sentence, for whatever of these is wrong; KeyboardInterrupt.
    Source: the policies are those of Xu and Jiang, FAST 2011, and of docs/REPRODUCTION.md.
    """
    try:
        return _simulate(
            work if isinstance(work, Job | Trace) else Job(work),
            policies if isinstance(policies, str) else ",".join(policies),
            Place(disk, array, owners, queue_depth),
            [f"{name}={value}" for name, value in (settings or {}).items()],
            [f"{name}={value}" for name, value in (weights or {}).items()],
            _one_of("curve", curve, ("measured", "learned")),
            seed,
            _one_of("mode", mode, ("closed", "open")) == "closed",
            wrap,
            nr_jobs(workers),
            auto.Options(
                Path(profile) if profile is not None else None,
                auto.Goal(_one_of("goal", goal, tuple(auto.Goal))),
                auto.Rule(_one_of("rule", rule, tuple(auto.Rule))),
            ),
        )
    except UsageError as error:
        raise UsageError(_parameters(str(error))) from None


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise UsageError(f"{name} {value!r}: must be one of {', '.join(known)}")
    return value


def _simulate(
    work: Job | Trace,
    policies: str,
    place: Place,
    settings: Sequence[str],
    weights: Sequence[str],
    curve: str,
    seed: int,
    closed: bool,
    wrap: bool,
    jobs: int,
    options: auto.Options,
) -> Result:
    if place.owners is not None:
        _one_of("owners", place.owners, ("process", "group", "none"))
    if isinstance(work, Job):
        place = place.of(work.workload)
    storage, depth = place.storage()
    setups = setups_of(storage.disk, policies, place.seen, depth, settings, curve)
    if isinstance(work, Job):
        one = job_work(work, storage, setups, weights, seed)
        for note in one.notes:
            warnings.warn(note, stacklevel=4)
        return _whole(one.run(options, jobs))
    if weights or seed:
        raise UsageError(f"{'weights' if weights else 'seed'}: not with a trace")
    with trace_work(work, storage, setups, closed, wrap) as one:
        return _whole(one.run(options, jobs))


def _whole(result: Result) -> Result:
    if result.comparison.failed:
        raise result.comparison.failed[0]
    if result.comparison.interrupted:
        raise KeyboardInterrupt
    return result
