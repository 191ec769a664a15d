# SPDX-License-Identifier: GPL-2.0-only
"""The hosts of the scheduling core: the simulator, a real kernel, a network block server.

Each knows which options it heeds, the policies that there are, and how it does a job.
"""

from __future__ import annotations

import abc
import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from streamsched.api.place import DEFAULT_POLICIES, Place, Storage, setups_of, specs_of
from streamsched.api.result import Result
from streamsched.api.work import Job, Work, job_work, nr_processes, origin_of, run_each
from streamsched.base.errors import UsageError
from streamsched.base.files import Target
from streamsched.hosts import kernelhost, nbdhost
from streamsched.sim import auto
from streamsched.sim.compare import Comparison
from streamsched.sim.policies import AUTO, refuse_python
from streamsched.sim.simulate import Setup
from streamsched.work.jobfile import JobFile

# How a job file names the disk with --on kernel; over NBD it has none.
DISK_UNDER_TEST = "${STREAMSCHED_DISK}"


@dataclasses.dataclass(frozen=True)
class Asked:
    """How the work is to be done; each host heeds what is its own."""

    policy: str | None = None
    settings: Sequence[str] = ()
    processes: int = 1  # at once
    # the simulator
    weights: Sequence[str] = ()
    curve: str = "measured"
    options: auto.Options = dataclasses.field(default_factory=auto.Options)
    requests: Target | None = None
    drawn: bool = False
    # the kernel
    path: str = "direct"
    variant: str = "base"


class _Noting(Protocol):
    @property
    def notes(self) -> Sequence[str]:
        """What may surprise."""


W = TypeVar("W", bound=_Noting)
P = TypeVar("P")


class Host(abc.ABC, Generic[W]):
    """One host. @refuses: an option (or one value of it) that it does not heed, and why."""

    name: ClassVar[str]
    default_policies: ClassVar[str]
    refuses: ClassVar[Mapping[str, str]]

    def refuse(self, given: Mapping[str, object]) -> None:
        """Refuse of the options that were given those that would not be heeded."""
        for option, value in given.items():
            if why := self.refuses.get(option) or self.refuses.get(f"{option} {value}"):
                said = option if value is True else f"{option} {value}"
                raise UsageError(f"{said}: {why.format(here=f'--on {self.name}')}")

    def policies(self, asked: Asked) -> str:
        """Those that were named, or else the default."""
        return self.default_policies if asked.policy is None else asked.policy

    @abc.abstractmethod
    def work(self, job: Job, place: Place, seed: int, asked: Asked) -> W:
        """The job on this host, all checked."""

    @abc.abstractmethod
    def run(self, works: Sequence[W], asked: Asked) -> list[Result]:
        """Do each of @works; fewer results if it was interrupted."""


# What a host does not heed that has no layers above the disk, or on which a real fio runs.
NO_LAYERS = {
    "--path": "only with --on kernel; there are no layers here",
    "--kernel": "only with --on kernel; there is no kernel here",
}
NOT_SIMULATED = {
    "--array": "only with --on sim",
    "--owners": "not {here}, where senders are what they are",
    "--curve": "not {here}, where the curve is always learned",
    "--runtime": "not {here}; write runtime= into the job file",
    "--seed": "not {here}; write randseed= into the job file",
    "--weight": "not with {here}",
    "--profile": "only with --on sim",
    "--goal": "only with --on sim",
    "--rule": "only with --on sim",
    "--bound": "not with {here}, which has no model of the disk to prove it for",
    "--requests": "not with {here}",
    "--plot": "not with {here}",
    "--output fio-json": "not with {here}; use json or csv",
}


class Simulator(Host[Work]):
    """All in virtual time, in one process for each simulation."""

    name = "sim"
    default_policies = DEFAULT_POLICIES
    refuses = NO_LAYERS

    def work(self, job: Job, place: Place, seed: int, asked: Asked) -> Work:
        """The job under each policy."""
        place = place.of(job.workload)
        storage, depth = place.storage()
        setups = setups_of(
            storage.disk, self.policies(asked), place.seen, depth, asked.settings, asked.curve
        )
        return job_work(job, storage, setups, asked.weights, seed)

    def run(self, works: Sequence[Work], asked: Asked) -> list[Result]:
        """All at once, so far as there are processors."""
        if len(works) > 1:
            return run_each(works, asked.options, asked.processes)
        return [works[0].run(asked.options, asked.processes, asked.requests, asked.drawn)]


@dataclasses.dataclass(frozen=True)
class FioWork(Generic[P]):
    """A job file that a real fio does on @storage, under each policy."""

    file: JobFile
    storage: Storage
    depth: int
    policies: Sequence[P]
    notes: Sequence[str]

    def result(self, comparison: Comparison, where: str) -> Result:
        """What came of it."""
        title = (
            f"{self.file.name}: {nr_processes(self.file.processes)} on {self.storage}, "
            f"{where}, queue depth {self.depth}"
        )
        origin = origin_of(self.storage, 0, self.file.sha256)
        return Result(comparison, self.file.name, title, origin)


def _load_for_fio(job: Job, storage: Storage, on: str, notes: list[str]) -> JobFile:
    """A job file that a real fio will do."""
    if job.workload:
        raise UsageError(
            f"{job.workload}: only with --on sim; fio cannot do what this workload does"
        )
    file = job.load(storage.capacity_bytes, 0, notes)
    name = os.fspath(job.source)
    if file.ignored:
        notes.append(f"{name}: fio is not given {', '.join(file.ignored)}")
    for process in file.processes:
        if process.weight is not None:
            raise UsageError(f"{name}: owner_weight of {process.name}: not with --on {on}")
        if process.nr_files > 1:
            raise UsageError(
                f"{name}: nrfiles of {process.name}: not with --on {on}, where fio would not have "
                "them on the disk; write filename= and offset="
            )
        if on == Kernel.name and process.opens != DISK_UNDER_TEST:
            what = "has no filename, and fio would make a file in memory"
            if process.opens:
                what = f"opens {process.opens}, which is not the disk under test"
            raise UsageError(
                f"{name}: {process.name} {what} with --on {on}; write filename={DISK_UNDER_TEST}"
            )
    return file


class FioHost(Host[FioWork[P]]):
    """One on which a real fio runs the job file."""

    def work(self, job: Job, place: Place, seed: int, asked: Asked) -> FioWork[P]:
        """The job file as fio will be given it."""
        refuse_python(asked.policy, f"--on {self.name}")
        storage, depth = place.storage()
        policies = self.parsed(storage, depth, asked)
        notes: list[str] = []
        file = _load_for_fio(job, storage, self.name, notes)
        return FioWork(file, storage, depth, policies, notes)

    def run(self, works: Sequence[FioWork[P]], asked: Asked) -> list[Result]:
        """One after the other."""
        results: list[Result] = []
        for work in works:
            results.append(self.run_one(work, asked))
            if results[-1].comparison.interrupted:
                break
        return results

    @abc.abstractmethod
    def parsed(self, storage: Storage, depth: int, asked: Asked) -> Sequence[P]:
        """The policies that are asked for, checked."""

    @abc.abstractmethod
    def run_one(self, work: FioWork[P], asked: Asked) -> Result:
        """Do it under each policy."""


class Kernel(FioHost[kernelhost.KernelPolicy]):
    """A real kernel in virtual time, under the kernel's own schedulers."""

    name = "kernel"
    default_policies = kernelhost.DEFAULT_POLICIES
    refuses = NOT_SIMULATED

    def parsed(
        self, storage: Storage, depth: int, asked: Asked
    ) -> Sequence[kernelhost.KernelPolicy]:
        """The kernel's schedulers."""
        return kernelhost.parse_policies(self.policies(asked), asked.settings)

    def run_one(self, work: FioWork[kernelhost.KernelPolicy], asked: Asked) -> Result:
        """Each policy in a kernel of its own."""
        comparison = kernelhost.compare_on_kernel(
            work.file,
            work.storage.disk,
            work.policies,
            path=asked.path,
            queue_depth=work.depth,
            variant=asked.variant,
            jobs=asked.processes,
        )
        return work.result(comparison, f"the real kernel, path {asked.path}")


class NetworkServer(FioHost[Setup]):
    """nbdkit with our plugin, in real time."""

    name = "nbd"
    default_policies = nbdhost.DEFAULT_POLICIES
    refuses = NOT_SIMULATED | NO_LAYERS

    def parsed(self, storage: Storage, depth: int, asked: Asked) -> Sequence[Setup]:
        """Policies of the core."""
        specs = self.policies(asked)
        if AUTO in specs_of(specs):
            raise UsageError("auto: not with --on nbd; the plugin keeps the policy it began with")
        return setups_of(storage.disk, specs, "process", depth, asked.settings, "learned")

    def run_one(self, work: FioWork[Setup], asked: Asked) -> Result:
        """Each policy in a server of its own."""
        comparison = nbdhost.compare_on_nbd(work.file, work.policies)
        return work.result(comparison, "over NBD in real time")


HOSTS: dict[str, Host[Any]] = {host.name: host for host in (Simulator(), Kernel(), NetworkServer())}
