# SPDX-License-Identifier: GPL-2.0-only
"""A study: what study.toml says, checked as a whole, and the simulations that come of it.

A cell is one simulation: a policy, a work, a disk, a queue depth, a seed, and what schedulers see
and are set to. Its id is a digest of all that it depends on, so that a result is known again.
Cells of one group differ only in what does not change the alone rates of the processes.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from streamsched.api.place import DEFAULT_OWNERS
from streamsched.api.work import Job
from streamsched.base.errors import UsageError, unknown
from streamsched.base.files import is_file, mode_of, open_input
from streamsched.sim.array import parse_array
from streamsched.sim.compare import alone_tasks
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.policies import AUTO, parse_weights, spec_of, with_settings
from streamsched.sim.pythonpolicy import is_python
from streamsched.sim.simulate import OWNERS, Setup, check_depth
from streamsched.sim.tasks import Task, Trace
from streamsched.sim.workloads import WORKLOADS, job_path, shipped_jobs
from streamsched.study.program import program
from streamsched.study.toml import Document, Given, StudyError
from streamsched.work import tracefile
from streamsched.work.jobfile import JobFile
from streamsched.work.process import Process
from streamsched.work.processors import parts_of

MAX_SEED = 2**64 - 1
PIECE_BYTES = 1 << 20


def digest(*parts: object) -> str:
    """Of what these are; the same in each process."""
    return hashlib.sha256("\0".join(map(repr, parts)).encode()).hexdigest()


@functools.cache
def _file_digest(path: str, _size: int, _mtime_ns: int) -> str:
    found = hashlib.sha256()
    with open_input(path) as file:
        while piece := file.read(PIECE_BYTES):
            found.update(piece)
    return found.hexdigest()


def trace_digest(path: str) -> str:
    """Of a trace's file, read once in a process while it stays as it is."""
    try:
        seen = Path(path).stat()
        return _file_digest(path, seen.st_size, seen.st_mtime_ns)
    except OSError as error:
        raise UsageError(f"{path}: cannot read it: {error.strerror}") from None


@dataclasses.dataclass(frozen=True)
class Work:
    """What is asked of the disk: a job file, a workload by name, or a trace."""

    name: str
    path: str = ""  # of a job file or a trace
    trace: bool = False
    changed_ns: int = 0  # when its file was

    def fit(self, setup: Setup) -> Setup:
        """@setup with what a workload has of its own."""
        workload = WORKLOADS.get(self.name) if not self.path else None
        if workload is None:
            return setup
        array = parse_array(workload.array) if workload.array else None
        return workload.fit(dataclasses.replace(setup, array=array))

    def processes(self, disk: Disk, seed: int) -> tuple[Process, ...]:
        """Those of a job on @disk; none of a trace."""
        if self.trace:
            return ()
        return self.loaded(disk, seed).processes

    def loaded(self, disk: Disk, seed: int) -> JobFile:
        """A job on @disk."""
        return _loaded(self, self.fit(Setup(disk, "noop")).capacity_bytes, seed)

    def sha256(self, disk: Disk) -> str:
        """Of the text of a job, or of a trace's file."""
        return trace_digest(self.path) if self.trace else self.loaded(disk, 0).sha256

    def owners(self) -> str:
        """What schedulers see if the study does not say it."""
        named = self.name in WORKLOADS and not self.path
        return WORKLOADS[self.name].owners if named else DEFAULT_OWNERS


@functools.lru_cache(maxsize=64)
def _loaded(work: Work, capacity_bytes: int, seed: int) -> JobFile:
    return Job(work.path or work.name).load(capacity_bytes, seed, [])


@functools.lru_cache(maxsize=1024)
def work_digest(work: Work, disk: Disk) -> str:
    """Of all that a work does on @disk, whatever the seed."""
    if work.trace:
        return trace_digest(work.path)
    return digest(work.fit(Setup(disk, "noop")), work.processes(disk, 0))


@functools.lru_cache(maxsize=1024)
def disk_sha256(disk: Disk) -> str:
    """Of a disk's description."""
    return hashlib.sha256(disk.description_text().encode()).hexdigest()


@functools.lru_cache(maxsize=64)
def _tunables(
    policies: tuple[str, ...], settings: str
) -> dict[str, tuple[str, tuple[tuple[str, int], ...]]]:
    """By the name of a policy, which may have brackets: the policy, and its tunables."""
    return dict(zip(policies, with_settings(policies, settings.split()), strict=True))


@dataclasses.dataclass(frozen=True)
class Cell:
    """One simulation of a study."""

    work: Work
    disk: Disk
    queue_depth: int
    seed: int | None  # None: a trace, which has none
    owners: str
    settings: str
    policy: str

    def labels(self) -> dict[str, str | int | None]:
        """How its result is told from the others."""
        return {
            "policy": self.policy,
            "work": self.work.name,
            "disk": self.disk.name,
            "queue_depth": self.queue_depth,
            "seed": self.seed,
            "owners": self.owners,
            "settings": self.settings,
            "work_sha256": self.work.sha256(self.disk),
            "disk_sha256": disk_sha256(self.disk),
        }


@dataclasses.dataclass(frozen=True)
class Plan:
    """A study that has been checked."""

    text: str  # of study.toml
    works: tuple[Work, ...]
    disks: tuple[Disk, ...]
    queue_depths: tuple[int, ...]  # empty: each disk's own
    seeds: tuple[int, ...]
    owners: tuple[str, ...]  # empty: each work's own
    settings: tuple[str, ...]
    policies: tuple[str, ...]
    curve: str
    closed: bool
    wrap: bool
    alone: bool

    @property
    def specs(self) -> list[str]:
        """The policies without brackets."""
        return [spec_of(name)[0] for name in self.policies]

    def __len__(self) -> int:
        """How many cells there are."""
        each = (
            len(self.disks)
            * (len(self.queue_depths) or 1)
            * len(self.settings)
            * len(self.policies)
        )
        runs = sum(1 if work.trace else len(self.seeds) for work in self.works)
        return runs * each * (len(self.owners) or 1)

    def cells(self) -> Iterator[Cell]:
        """All of them; those of a group stand together."""
        for work, disk in itertools.product(self.works, self.disks):
            depths = self.queue_depths or (disk.queue_depth,)
            seeds: Sequence[int | None] = (None,) if work.trace else self.seeds
            owners = self.owners or (work.owners(),)
            for rest in itertools.product(depths, seeds, owners, self.settings, self.policies):
                yield Cell(work, disk, *rest)

    def id(self, cell: Cell) -> str:
        """Equal for cells whose results are equal."""
        how = (self.closed, self.wrap) if cell.work.trace else (self.alone,)
        does = work_digest(cell.work, cell.disk)
        labels = sorted(cell.labels().items(), key=str)
        return digest(program(), self.curve, how, does, labels)[:32]

    def group(self, cell: Cell) -> str | None:
        """Equal for cells with the same alone rates; None: there are none."""
        if cell.work.trace or not self.alone:
            return None
        marks = (work_digest(cell.work, cell.disk), disk_sha256(cell.disk))
        return digest(program(), self.curve, *marks, cell.queue_depth, cell.seed)[:32]

    def task(self, cell: Cell) -> Task:
        """The simulation of @cell."""
        policy, tunables = _tunables(self.policies, cell.settings)[cell.policy]
        setup = cell.work.fit(
            Setup(
                cell.disk,
                policy,
                owners=cell.owners,
                queue_depth=cell.queue_depth,
                tunables=tunables,
                curve=self.curve,
                label="" if policy == cell.policy else cell.policy,
            )
        )
        if cell.work.trace:
            setup = dataclasses.replace(setup, closed=self.closed, wrap=self.wrap)
            return Task(cell.policy, setup, traces=(Trace(cell.work.path),))
        processes = cell.work.processes(cell.disk, cell.seed or 0)
        weights = parse_weights([], self.specs, processes, cell.owners)
        return Task(cell.policy, dataclasses.replace(setup, weights=weights), processes)

    def alone_tasks(self, cell: Cell) -> dict[int, Task]:
        """What measures the alone rates of @cell's group, by process."""
        task = self.task(cell)
        return alone_tasks(task.processes, task.setup)


def _work_of(name: str, beside: Path) -> Work:
    if name in WORKLOADS:
        return Work(name)
    if name in shipped_jobs():
        return Work(name, str(job_path(f"{name}.fio")))
    path = beside / name
    if not Path(name).suffix and not mode_of(path):
        raise unknown("workload or job file", name, [*WORKLOADS, *shipped_jobs()])
    changed_ns = path.stat().st_mtime_ns if mode_of(path) else 0
    return Work(path.name, str(path.absolute()), changed_ns=changed_ns)


def _trace_of(name: str, beside: Path) -> Work:
    path = (beside / name).absolute()
    if mode_of(path) and not is_file(path):
        raise UsageError(f"{path}: is no file, and a study reads a trace again and again")
    tracefile.open_trace(path)
    changed_ns = max(Path(one).stat().st_mtime_ns for one in parts_of(str(path)))
    return Work(path.name, str(path), trace=True, changed_ns=changed_ns)


def _check_policy(name: str) -> str:
    if name == AUTO:
        raise UsageError("policy auto: not in a study, for it needs a profile of the disk")
    if is_python(spec_of(name)[0]):
        raise UsageError(f"policy {name}: not in a study, whose workers have those of the core")
    with_settings([name], [])
    return name


def _check_fits(document: Document, plan: Plan) -> None:
    """What is right alone and wrong together."""
    for depth in document.given("queue_depths", plan.queue_depths):
        for disk in plan.disks:
            with document.errors(depth):
                check_depth(depth.value, [disk])
    for work in document.given("jobs", [work for work in plan.works if not work.trace]):
        for disk in plan.disks:
            with document.errors(work):
                processes = work.value.processes(disk, 0)
                for owners in plan.owners or (work.value.owners(),):
                    parse_weights([], plan.specs, processes, owners)
    for setting in document.given("settings", plan.settings) if plan.policies else ():
        with document.errors(setting):
            with_settings(plan.policies, setting.value.split())


def _named_twice(works: Iterable[Given[Work]]) -> Iterator[tuple[Given[Work], str]]:
    seen: dict[str, Work] = {}
    for work in works:
        if work.value.name in seen:
            yield work, f"{work.text}: another work is called {work.value.name}, too; rename one"
        seen[work.value.name] = work.value


def read_plan(path: Path) -> Plan:
    """The study in the file @path; StudyError has all that is wrong with it."""
    document = Document(path)
    beside = path.parent
    policies = document.list("policies", str, _check_policy, needed=True)
    jobs = document.list("jobs", str, lambda name: _work_of(name, beside))
    traces = document.list("traces", str, lambda name: _trace_of(name, beside))
    disks = document.list("disks", str, lambda name: load_disk(_disk_name(name, beside)), True)
    depths = document.list("queue_depths", int)
    owners = document.list("owners", str, lambda name: _choice("owners", name, OWNERS))
    settings = document.list("settings", str, default=("",))
    seeds = _seeds(document)
    plan = Plan(
        document.text,
        tuple(one.value for one in (*jobs, *traces)),
        tuple(one.value for one in disks),
        tuple(one.value for one in depths),
        seeds,
        tuple(one.value for one in owners),
        tuple(" ".join(one.value.split()) for one in settings),
        tuple(one.value for one in policies),
        document.choice("curve", ("measured", "learned")),
        document.choice("trace_mode", ("closed", "open")) == "closed",
        document.flag("wrap", False),
        document.flag("alone", True),
    )
    document.no_more()
    if not document.has("jobs") and not document.has("traces"):
        document.error(1, "has no work; write jobs or traces")
    for work, why in _named_twice([*jobs, *traces]):
        document.error(work.line, why)
    _check_fits(document, plan)
    if document.wrong:
        raise StudyError(path, document.wrong)
    return plan


def _disk_name(name: str, beside: Path) -> str:
    """A file beside the study, or one of the disks that there are."""
    return str(beside / name) if name.endswith(".toml") or "/" in name else name


def _choice(what: str, name: str, known: Sequence[str]) -> str:
    if name not in known:
        raise unknown(what, name, known)
    return name


def _seeds(document: Document) -> tuple[int, ...]:
    """A number of seeds, or the seeds themselves."""

    def check(seed: int) -> int:
        if not 0 <= seed <= MAX_SEED:
            raise UsageError(f"seed {seed}: must be within 0 to 2^64-1")
        return seed

    if document.is_number("seeds"):
        nr = document.number("seeds", 1, 1_000_000)
        return tuple(range(1, nr + 1))
    return tuple(one.value for one in document.list("seeds", int, check, default=(1,)))
