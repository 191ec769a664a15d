# SPDX-License-Identifier: GPL-2.0-only
"""A comparison: the same work under several policies, in parallel processes.

The alone rate of each process is measured along: what it does with the disk
to itself. With processes that move b_i bytes at alone rates r_i, efficiency is
the sum of b_i / r_i over the time it took: 1.0 means that the disk lost
nothing by serving them together. For a trace replayed by dependency its owners
are the processes, if there are two of them or more, and at most MAX_ALONE.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from streamsched.base.errors import UsageError
from streamsched.base.files import Target
from streamsched.sim.pythonpolicy import PolicyError
from streamsched.sim.requestlog import write_requests
from streamsched.sim.simulate import Run, Setup, trace_owner, trace_owners
from streamsched.sim.tasks import Task, Trace, run_tasks
from streamsched.work import tracefile
from streamsched.work.process import Process

# The policy that a process has the disk to itself under; any would do.
ALONE_POLICY = "noop"
# More processes than this: clones of one job share the alone rates of as many of them.
MAX_ALONE = 32
# Given a file of rows (struct sim_log_row) of each run, which is gone afterwards.
Look = Callable[[Sequence[Path]], object]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The runs that finished, in the order asked for, and the alone rates."""

    runs: tuple[Run, ...]
    alone: dict[int, float]  # process number -> bytes per second
    interrupted: bool = False
    failed: tuple[PolicyError, ...] = ()  # why other runs have no result
    alone_s: float | None = None  # a trace's owners, one after the other, each alone

    def efficiency(self, run: Run) -> float | None:
        """See the module; None where there are no alone rates."""
        if not run.duration_ns:
            return None
        if not run.jobs:
            return None if self.alone_s is None else self.alone_s / run.seconds
        needed = 0.0
        standing = stand_ins([job.section for job in run.jobs])
        for number, job in zip(standing, run.jobs, strict=True):
            rate = self.alone.get(number)
            if not rate:
                return None
            needed += job.bytes / rate
        return needed / run.seconds

    def alone_rate(self, run: Run, number: int) -> float | None:
        """Bytes a second of process @number of @run with the disk to itself; None: not known."""
        standing = stand_ins([job.section for job in run.jobs])
        return self.alone.get(standing[number]) or None

    def share(self, run: Run, number: int) -> float | None:
        """The rate of process @number, as a part of its rate alone; None: not known."""
        alone = self.alone_rate(run, number)
        return run.jobs[number].rate / alone if alone else None

    def least_share(self, run: Run) -> float | None:
        """The smallest share times the number of processes: 1.0 is an equal part for each.

        Of a job file in stages that is the number of those in the same one.
        """
        together = Counter(job.stage for job in run.jobs)
        shares = [self.share(run, number) for number in range(len(run.jobs))]
        parts = [
            share * together[job.stage]
            for share, job in zip(shares, run.jobs, strict=True)
            if share is not None
        ]
        return min(parts) if parts and len(parts) == len(shares) else None


def stand_ins(sections: Sequence[int]) -> list[int]:
    """Of processes of these sections the numbers of those whose alone rates stand for theirs.

    A process stands for clones of the same job, for its neighbours there, and each job has one.
    """
    if len(sections) <= MAX_ALONE:
        return list(range(len(sections)))
    of_section: dict[int, list[int]] = {}
    for number, section in enumerate(sections):
        of_section.setdefault(section, []).append(number)
    standing = list(range(len(sections)))
    for clones in of_section.values():
        nr = len(clones)
        kept = max(1, MAX_ALONE * nr // len(sections))
        for i, number in enumerate(clones):
            standing[number] = clones[-(-(i * kept // nr) * nr // kept)]
    return standing


def _alone(process: Process) -> Process:
    """@process at once; one that goes on while others do (background): what it has to do, once."""
    return dataclasses.replace(
        process,
        startdelay_ns=0,
        stage=0,
        background=False,
        wait_for="",
        rate=(0, 0),  # what it could do, if it wanted to
        stall_blocks=0,  # there is nobody whom the disk could serve meanwhile
        thinktime_ns=0 if process.stall_blocks else process.thinktime_ns,
        time_based=process.time_based and not process.background,
    )


def alone_tasks(processes: Sequence[Process], setup: Setup) -> dict[int, Task]:
    """What measures the alone rates, by process number."""
    numbers = set(stand_ins([process.section for process in processes]))
    setup = dataclasses.replace(setup, policy=ALONE_POLICY, tunables=(), selection=None)
    return {
        number: Task(
            f"{processes[number].name} alone",
            setup,
            (_alone(processes[number]),),
        )
        for number in sorted(numbers)
    }


def alone_replays(traces: Sequence[Trace], setup: Setup) -> dict[int, Task]:
    """Each owner of traces with the disk to itself, by owner; none if they are too many, or one.

    What a single owner has alone is what it has: its efficiency would compare it with itself.
    """
    owners: list[int] = []
    for number, trace in enumerate(traces):
        opened = tracefile.open_trace(trace.path, trace.format, trace.skip_bad)
        found = trace_owners(
            opened.format,
            opened.chunks(),
            MAX_ALONE,
            device=trace.device,
            skip_bad=trace.skip_bad,
        )
        several = len(traces) > 1
        owners += [trace_owner(number, owner) if several else owner for owner in found]
    if not 2 <= len(owners) <= MAX_ALONE:
        return {}
    alone = dataclasses.replace(setup, policy=ALONE_POLICY, tunables=(), selection=None)
    return {
        owner: Task(
            f"owner {owner} alone",
            dataclasses.replace(alone, one_owner=owner),
            traces=tuple(traces),
        )
        for owner in owners
    }


@dataclasses.dataclass(frozen=True)
class Compared:
    """The same work under each of some setups."""

    setups: Sequence[Setup]
    processes: Sequence[Process] = ()
    traces: Sequence[Trace] = ()

    def tasks(self, files: Sequence[str | None]) -> list[Task]:
        """A simulation under each setup, which writes its requests to its one of @files."""
        return [
            Task(s.shown, s, tuple(self.processes), tuple(self.traces), file)
            for s, file in zip(self.setups, files, strict=True)
        ]

    def alone(self) -> dict[int, Task]:
        """What measures the alone rates."""
        if not self.setups:
            raise UsageError("no policy is given; name at least one")
        if self.traces:
            return alone_replays(self.traces, self.setups[0]) if self.setups[0].closed else {}
        return alone_tasks(self.processes, self.setups[0])

    def comparison(
        self,
        results: Sequence[Run | None],
        alone: dict[int, Run | None],
        interrupted: bool,
        failed: Sequence[PolicyError],
    ) -> Comparison:
        """What came of tasks() and alone()."""
        runs = tuple(run for run in results if run)
        if self.traces:
            lonely = alone.values()
            complete = bool(lonely) and all(lonely)
            alone_s = sum(run.seconds for run in lonely if run) if complete else None
            return Comparison(runs, {}, interrupted, tuple(failed), alone_s)
        rates = {
            number: run.bytes / run.seconds
            for number, run in alone.items()
            if run and run.duration_ns
        }
        return Comparison(runs, rates, interrupted, tuple(failed))


def compare_each(
    works: Sequence[Compared],
    *,
    jobs: int = 1,
    console: Console | None = None,
    files: Sequence[str | None] | None = None,
) -> list[Comparison]:
    """Run each of @works, with processes also alone rates, @jobs of all simulations at once.

    @files: of the one work, one for each setup, for its requests.
    """
    alone = [work.alone() for work in works]
    under = [work.tasks(files or [None] * len(work.setups)) for work in works]
    tasks = [t for u, a in zip(under, alone, strict=True) for t in (*u, *a.values())]
    failed: dict[int, PolicyError] = {}
    together = None if len(works) == 1 else f"{len(tasks)} simulations"
    results, interrupted = run_tasks(tasks, jobs, console or Console(stderr=True), together, failed)
    found, begin = [], 0
    for work, u, a in zip(works, under, alone, strict=True):
        end = begin + len(u)
        lonely = dict(zip(a, results[end:], strict=False))
        errors = [failed[i] for i in range(begin, end) if i in failed]
        found.append(work.comparison(results[begin:end], lonely, interrupted, errors))
        begin = end + len(a)
    if failed and not any(one.runs for one in found):
        raise next(iter(failed.values()))
    return found


def compare(
    setups: Sequence[Setup],
    processes: Sequence[Process] = (),
    traces: Sequence[Trace] = (),
    *,
    jobs: int = 1,
    console: Console | None = None,
    requests: Target | None = None,
    look: Look | None = None,
) -> Comparison:
    """Run the same work under each of @setups; with processes also alone rates.

    @requests is written with a row for each request, when all runs are done; @look is given them
    as the simulator has them.
    """
    work = [Compared(setups, processes, traces)]
    if requests is None and look is None:
        return compare_each(work, jobs=jobs, console=console)[0]
    with tempfile.TemporaryDirectory(prefix="streamsched-") as folder:
        parts = [(s.shown, Path(folder) / f"{i}") for i, s in enumerate(setups)]
        files = [str(part) for _, part in parts]
        comparison = compare_each(work, jobs=jobs, console=console, files=files)[0]
        if not comparison.interrupted:
            finished = {run.setup.shown for run in comparison.runs}
            parts = [(policy, part) for policy, part in parts if policy in finished]
            if look:
                look([part for _, part in parts])
            if requests:
                write_requests(requests, parts, [process.name for process in processes])
        return comparison
