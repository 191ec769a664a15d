# SPDX-License-Identifier: GPL-2.0-only
"""A comparison: the same work under several policies, in parallel processes.

The alone rate of each process is measured along: what it does with the disk
to itself. With processes that move b_i bytes at alone rates r_i, efficiency is
the sum of b_i / r_i over the time it took: 1.0 means that the disk lost
nothing by serving them together. For a trace replayed by dependency its owners
are the processes, if there are at most MAX_ALONE of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.sim.pythonpolicy import PolicyError
from streamsched.sim.requestlog import appending, write_requests
from streamsched.sim.simulate import Requests, Run, Setup, run_jobs, run_trace, trace_owners
from streamsched.work import tracefile
from streamsched.work.jobfile import Process

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

# The policy that a process has the disk to itself under; any would do.
ALONE_POLICY = "noop"
# More processes than this: their alone rates are those of as many of them.
MAX_ALONE = 32
# A bar appears when a comparison has taken this long, in seconds.
PATIENCE_S = 1.0

# What may end the command.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Given a file of rows (struct sim_log_row) of each run, which is gone afterwards.
Look = Callable[[Sequence[Path]], object]

_parts: Any = None  # in a worker: the shared array of how far each task is


@dataclasses.dataclass(frozen=True)
class Trace:
    """A trace to replay; @format None: find out."""

    path: str
    format: str | None = None
    device: str | None = None
    skip_bad: bool = False


@dataclasses.dataclass(frozen=True)
class Task:
    """One simulation of a comparison."""

    label: str
    setup: Setup
    processes: tuple[Process, ...] = ()
    trace: Trace | None = None
    requests: str | None = None  # a file that is given each request's row


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
        for number, job in enumerate(run.jobs):
            rate = self.alone.get(stand_in(number, len(run.jobs)))
            if not rate:
                return None
            needed += job.bytes / rate
        return needed / run.seconds

    def alone_rate(self, run: Run, number: int) -> float | None:
        """Bytes a second of process @number of @run with the disk to itself; None: not known."""
        return self.alone.get(stand_in(number, len(run.jobs))) or None

    def share(self, run: Run, number: int) -> float | None:
        """The rate of process @number, as a part of its rate alone; None: not known."""
        alone = self.alone_rate(run, number)
        return run.jobs[number].rate / alone if alone else None

    def least_share(self, run: Run) -> float | None:
        """The smallest share times the number of processes: 1.0 is an equal part for each."""
        shares = [self.share(run, number) for number in range(len(run.jobs))]
        known = [share for share in shares if share is not None]
        return min(known) * len(known) if known and len(known) == len(shares) else None


def stand_in(number: int, nr: int) -> int:
    """The process whose alone rate stands for that of process @number of @nr."""
    if nr <= MAX_ALONE:
        return number
    return number * MAX_ALONE // nr * nr // MAX_ALONE


def run_task(task: Task, progress: Callable[[float], None] | None = None) -> Run:
    """Do one simulation, here."""
    if task.requests is None:
        return _run_task(task, progress, None)
    with appending(task.requests) as requests:
        return _run_task(task, progress, requests)


def _run_task(
    task: Task, progress: Callable[[float], None] | None, requests: Requests | None
) -> Run:
    if task.trace:
        trace = task.trace
        opened = tracefile.open_trace(trace.path, trace.format)
        try:
            return run_trace(
                task.setup,
                opened.format,
                opened.chunks(),
                device=trace.device,
                skip_bad=trace.skip_bad,
                progress=progress,
                requests=requests,
            )
        except PolicyError:  # is not the trace's
            raise
        except UsageError as error:
            message, name = str(error), tracefile.shown(trace.path)
            if message.startswith(f"{name}: "):
                raise
            raise UsageError(f"{name}: {message}") from None
    return run_jobs(task.setup, list(task.processes), progress, requests)


def _begin_worker(parts: Any) -> None:
    global _parts
    _parts = parts
    # What a policy in Python prints is no result.
    sys.stdout = sys.stderr
    # The parent decides what an interrupt means, and ends a worker also while it computes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    # A parent that is killed cannot: its workers would wait for it for ever, for they hold the
    # other end of their own pipe. The kernel tells them; not those that began too late for that.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os._exit(1)


@contextlib.contextmanager
def _no_signals() -> Iterator[None]:
    """For workers to begin in: until one has said what signals mean to it, none may reach it.

    It would take them as the parent does, with a traceback. Those for the parent come afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(index: int, task: Task) -> Run:
    def note(part: float) -> None:
        _parts[index] = part

    run = run_task(task, note)
    note(1.0)
    return run


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
    numbers = {stand_in(number, len(processes)) for number in range(len(processes))}
    setup = dataclasses.replace(setup, policy=ALONE_POLICY, tunables=(), selection=None)
    return {
        number: Task(
            f"{processes[number].name} alone",
            setup,
            (_alone(processes[number]),),
        )
        for number in sorted(numbers)
    }


def alone_replays(trace: Trace, setup: Setup) -> dict[int, Task]:
    """Each owner of a trace with the disk to itself, by owner; none if there are too many."""
    opened = tracefile.open_trace(trace.path, trace.format)
    owners = trace_owners(
        opened.format,
        opened.chunks(),
        MAX_ALONE,
        device=trace.device,
        skip_bad=trace.skip_bad,
    )
    if len(owners) > MAX_ALONE:
        return {}
    alone = dataclasses.replace(setup, policy=ALONE_POLICY, tunables=(), selection=None)
    return {
        owner: Task(
            f"owner {owner} alone",
            dataclasses.replace(alone, one_owner=owner),
            trace=trace,
        )
        for owner in owners
    }


@contextlib.contextmanager
def _bars(console: Console, labels: list[str], parts: Any) -> Iterator[Callable[[], None]]:
    """Bars for the tasks, from when it takes long."""
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    ids: list[TaskID] = []
    began = time.monotonic()

    def update() -> None:
        if not ids and time.monotonic() - began > PATIENCE_S:
            ids.extend(progress.add_task(label, total=1.0) for label in labels)
            progress.start()
        shown = parts if len(labels) == len(parts) else [sum(parts) / len(parts)]
        for task, part in zip(ids, shown, strict=False):
            progress.update(task, completed=part)

    try:
        yield update
    finally:
        if ids:
            progress.stop()


def _pool(nr_tasks: int, workers: int) -> tuple[Any, ProcessPoolExecutor]:
    """The shared array of how far each task is, and the workers, which have yet to begin."""
    try:
        parts = multiprocessing.Array("d", nr_tasks, lock=False)
        pool = ProcessPoolExecutor(workers, initializer=_begin_worker, initargs=(parts,))
    except OSError as error:
        raise StreamschedError(
            f"cannot share memory with worker processes: {error.strerror}; they need /dev/shm "
            "and a temporary directory with room in it"
        ) from None
    return parts, pool


def _submitted(pool: ProcessPoolExecutor, index: int, task: Task) -> Future[Run]:
    try:
        return pool.submit(_work, index, task)
    except OSError as error:
        raise StreamschedError(
            f"cannot start a worker process: {error.strerror}; take fewer with --jobs"
        ) from None


def _how_ended(workers: Sequence[multiprocessing.Process], nr: int) -> str:
    """What happened to a worker that is no more."""
    fewer = f"take fewer than {nr} at once with --jobs" if nr > 1 else "take less work at once"
    for worker in workers:
        worker.join(1.0)
    # The others are then ended by the pool, with SIGTERM. Its thread may be about to learn of the
    # end that it was told of before: then the exit code is there a moment later.
    known = (None, 0, -signal.SIGTERM)
    until = time.monotonic() + 1
    while all(w.exitcode in known for w in workers) and time.monotonic() < until:
        time.sleep(0.01)
    ended = [-(w.exitcode or 0) for w in workers if w.exitcode not in known]
    if signal.SIGKILL in ended:
        return f"a worker process was killed, as Linux does when memory runs out; {fewer}"
    how = f"by signal {ended[0]}" if ended and ended[0] > 0 else "before it was done"
    return f"a worker process ended {how}; if memory ran out, {fewer}"


def run_tasks(
    tasks: Sequence[Task],
    jobs: int,
    console: Console,
    together: str | None = None,
    failed: list[PolicyError] | None = None,
) -> tuple[list[Run | None], bool]:
    """All tasks, at most @jobs at once; None where an interrupt came first.

    Each has a bar of its own, or all share one that is called @together. If there is a list
    @failed, the error of a policy in Python is put there, and the others go on.
    """
    labels = [together] if together else [task.label for task in tasks]
    nr = max(1, min(jobs, len(tasks)))
    interrupted = False
    futures: list[Future[Run]] = []
    parts, pool = _pool(len(tasks), nr)
    workers: list[multiprocessing.Process] = []
    try:
        with _no_signals():
            for i, task in enumerate(tasks):
                futures.append(_submitted(pool, i, task))
        workers = list(getattr(pool, "_processes", {}).values())
        with _bars(console, labels, parts) as update:
            left = set(futures)
            while left:
                # A signal's exception inside wait() would leave the futures' locks taken.
                with _no_signals():
                    done, left = wait(left, timeout=0.1)
                update()
                for future in done:
                    try:
                        future.result()
                    except PolicyError as error:
                        if failed is None:
                            raise
                        failed.append(error)
    except KeyboardInterrupt:
        interrupted = True
    except BrokenProcessPool:
        raise StreamschedError(_how_ended(workers, nr)) from None
    finally:
        # What is finished now; a worker that is ended leaves an exception in its task.
        finished = [
            future.result()
            if future.done() and not future.cancelled() and not future.exception()
            else None
            for future in futures
        ]
        if interrupted or not all(future.done() for future in futures):
            for worker in list((getattr(pool, "_processes", None) or {}).values()):
                worker.terminate()
        # To the end: at the interpreter's exit the pool's thread would find its pipe closed.
        pool.shutdown(wait=True, cancel_futures=True)
    return finished + [None] * (len(tasks) - len(finished)), interrupted


def compare(
    setups: Sequence[Setup],
    processes: Sequence[Process] = (),
    trace: Trace | None = None,
    *,
    jobs: int = 1,
    console: Console | None = None,
    requests: Path | None = None,
    look: Look | None = None,
) -> Comparison:
    """Run the same work under each of @setups; with processes also alone rates.

    @requests is written with a row for each request, when all runs are done; @look is given them
    as the simulator has them.
    """
    if not setups:
        raise UsageError("no policy is given; name at least one")
    if requests is None and look is None:
        return _compare(setups, processes, trace, jobs, console, None)
    with tempfile.TemporaryDirectory(prefix="streamsched-") as folder:
        parts = [(s.shown, Path(folder) / f"{i}") for i, s in enumerate(setups)]
        comparison = _compare(setups, processes, trace, jobs, console, parts)
        if not comparison.interrupted:
            finished = {run.setup.shown for run in comparison.runs}
            parts = [(policy, part) for policy, part in parts if policy in finished]
            if look:
                look([part for _, part in parts])
            if requests:
                write_requests(requests, parts, [process.name for process in processes])
        return comparison


def _compare(
    setups: Sequence[Setup],
    processes: Sequence[Process],
    trace: Trace | None,
    jobs: int,
    console: Console | None,
    parts: Sequence[tuple[str, Path]] | None,
) -> Comparison:
    console = console or Console(stderr=True)
    files = [str(part) for _, part in parts] if parts else [None] * len(setups)
    work = [
        Task(s.shown, s, tuple(processes), trace, file)
        for s, file in zip(setups, files, strict=True)
    ]
    alone = alone_tasks(processes, setups[0]) if processes else {}
    if trace and setups[0].closed:
        alone = alone_replays(trace, setups[0])
    failed: list[PolicyError] = []
    results, interrupted = run_tasks([*work, *alone.values()], jobs, console, failed=failed)
    if failed and not any(results[: len(work)]):
        raise failed[0]
    runs = tuple(run for run in results[: len(work)] if run)
    lonely = results[len(work) :]
    if trace:
        complete = bool(lonely) and all(lonely)
        alone_s = sum(run.seconds for run in lonely if run) if complete else None
        return Comparison(runs, {}, interrupted, tuple(failed), alone_s)
    rates = {
        number: run.bytes / run.seconds
        for number, run in zip(alone, lonely, strict=True)
        if run and run.duration_ns
    }
    return Comparison(runs, rates, interrupted, tuple(failed))
