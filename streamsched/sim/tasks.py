# SPDX-License-Identifier: GPL-2.0-only
"""Simulations as tasks, which worker processes do at once."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from rich.console import Console
from rich.progress import TaskID

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.base.progress import part_bars
from streamsched.sim.pythonpolicy import PolicyError
from streamsched.sim.requestlog import appending
from streamsched.sim.simulate import Requests, Run, Setup, Source, run_jobs, run_traces
from streamsched.work import tracefile
from streamsched.work.process import Process

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

# A bar appears when a comparison has taken this long, in seconds.
PATIENCE_S = 1.0
# And a note on how long it takes in all, wherever standard error goes.
NOTE_S = 30.0
# A worker that is told to end has so long for it, in seconds.
END_S = 5.0

# What may end the command.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_parts: Any = None  # in a worker: the shared array of how far each task is


@dataclasses.dataclass(frozen=True)
class Trace:
    """A trace to replay; @format None: find out."""

    path: str
    format: str | None = None
    device: str | None = None
    skip_bad: bool = False
    first_sector: int = 0  # where its disk begins on the simulated one, beside others

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Errors of what is read say of which trace."""
        try:
            yield
        except PolicyError:  # is not the trace's
            raise
        except UsageError as error:
            name = tracefile.shown(self.path)
            if str(error).startswith(f"{name}: "):
                raise
            raise UsageError(f"{name}: {error}") from None

    def source(self) -> Source:
        """It opened, to be replayed."""
        opened = tracefile.open_trace(self.path, self.format, self.skip_bad)
        return Source(
            tracefile.shown(self.path),
            opened.format,
            opened.chunks(),
            self.device,
            self.skip_bad,
            self.first_sector,
        )


@dataclasses.dataclass(frozen=True)
class Task:
    """One simulation of a comparison."""

    label: str
    setup: Setup
    processes: tuple[Process, ...] = ()
    traces: tuple[Trace, ...] = ()
    requests: str | None = None  # a file that is given each request's row


def run_task(task: Task, progress: Callable[[float], None] | None = None) -> Run:
    """Do one simulation, here."""
    if task.requests is None:
        return _run_task(task, progress, None)
    with appending(task.requests) as requests:
        return _run_task(task, progress, requests)


def _run_task(
    task: Task, progress: Callable[[float], None] | None, requests: Requests | None
) -> Run:
    if task.traces:
        # Of several traces the replay says which one an error is of.
        with task.traces[0].named() if len(task.traces) == 1 else contextlib.nullcontext():
            sources = [trace.source() for trace in task.traces]
            return run_traces(task.setup, sources, progress, requests)
    return run_jobs(task.setup, list(task.processes), progress, requests)


def _begin_worker(parts: Any) -> None:
    global _parts
    _parts = parts
    # What a policy in Python prints is no result.
    sys.stdout = sys.stderr
    # The parent decides what an interrupt means, or a terminal that is closed: both come to all of
    # a group. It ends a worker also while it computes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
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


def _how_long(part: float, seconds: float, bounded: bool) -> str:
    """What is said after so many @seconds, in which @part was done; @bounded: by a runtime."""
    whole = seconds / part if part else float("inf")
    units = (("seconds", 1, 120), ("minutes", 60, 120), ("hours", 3600, 48), ("days", 86400, 1000))
    long = "more than 1000 days"
    for unit, length, most in units:
        if whole <= length * most:
            long = f"about {whole / length:.0f} {unit}"
            break
    shorter = "" if bounded else "; with `run --runtime` or runtime= in the job it takes less"
    return f"{100 * part:.2g} % is done after {seconds:.0f} s, and all of it takes {long}{shorter}"


@contextlib.contextmanager
def _bars(
    console: Console, labels: list[str], parts: Any, bounded: bool
) -> Iterator[Callable[[], None]]:
    """Bars for the tasks, from when it takes long; @bounded: each ends by a runtime."""
    progress = part_bars(console)
    ids: list[TaskID] = []
    began = time.monotonic()
    noted = False

    def update() -> None:
        nonlocal noted
        took = time.monotonic() - began
        if not noted and took > NOTE_S:
            noted = True
            said = _how_long(sum(parts) / len(parts), took, bounded)
            console.print(
                f"streamsched: note: {said}", soft_wrap=True, markup=False, highlight=False
            )
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


def _end_workers(pool: ProcessPoolExecutor) -> None:
    """Whatever they are at."""
    workers = list((getattr(pool, "_processes", None) or {}).values())
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(END_S)
        # Until one has begun it takes no signal but this.
        worker.kill()
        worker.join()
    # One may have sent a part of its result, whose rest the pool's thread would wait for.
    results = getattr(pool, "_result_queue", None)
    if results is not None:
        results._writer.close()


def _thread(pool: ProcessPoolExecutor) -> threading.Thread | None:
    """The one that gives work to the workers."""
    return getattr(pool, "_executor_manager_thread", None)


@contextlib.contextmanager
def _without_its_trace(pool: ProcessPoolExecutor) -> Iterator[None]:
    """A worker that ends while tasks are still submitted may end the pool's thread with an error.

    It walks over what has been submitted, to say that the pool is broken, and that grows meanwhile.
    """
    hook = threading.excepthook

    def others(args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not RuntimeError or args.thread is not _thread(pool):
            hook(args)

    threading.excepthook = others
    try:
        yield
    finally:
        # A second signal may have cut the end of the pool short.
        thread = _thread(pool)
        if thread is None or not thread.is_alive():
            threading.excepthook = hook


def _check_alive(pool: ProcessPoolExecutor) -> None:
    """Without its thread nothing that was submitted will ever be done."""
    thread = _thread(pool)
    if thread is not None and not thread.is_alive():
        raise BrokenProcessPool


def _submitted(pool: ProcessPoolExecutor, index: int, task: Task) -> Future[Run]:
    try:
        return pool.submit(_work, index, task)
    except OSError as error:
        raise StreamschedError(
            f"cannot start a worker process: {error.strerror}; take fewer with --parallel"
        ) from None


def _how_ended(workers: Sequence[multiprocessing.Process], nr: int) -> str:
    """What happened to a worker that is no more."""
    fewer = f"take fewer than {nr} at once with --parallel" if nr > 1 else "take less work at once"
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
    failed: dict[int, PolicyError] | None = None,
) -> tuple[list[Run | None], bool]:
    """All tasks, at most @jobs at once; None where an interrupt came first.

    Each has a bar of its own, or all share one that is called @together. If there is a dict
    @failed, the error of a policy in Python is put there by its task's number, and the others
    go on.
    """
    labels = [together] if together else [task.label for task in tasks]
    nr = max(1, min(jobs, len(tasks)))
    interrupted = False
    futures: list[Future[Run]] = []
    parts, pool = _pool(len(tasks), nr)
    workers: list[multiprocessing.Process] = []
    with _without_its_trace(pool):
        try:
            with _no_signals():
                for i, task in enumerate(tasks):
                    futures.append(_submitted(pool, i, task))
            workers = list(getattr(pool, "_processes", {}).values())
            bounded = bool(together) or all(
                process.runtime_ns for task in tasks for process in task.processes
            )
            with _bars(console, labels, parts, bounded) as update:
                left = set(futures)
                while left:
                    # A signal's exception inside wait() would leave the futures' locks taken.
                    with _no_signals():
                        done, left = wait(left, timeout=0.1)
                    update()
                    if left and not done:
                        _check_alive(pool)
                    for future in done:
                        try:
                            future.result()
                        except PolicyError as error:
                            if failed is None:
                                raise
                            failed[futures.index(future)] = error
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
            # Some may have begun although not all could: nothing has been submitted then.
            if len(futures) < len(tasks) or interrupted or not all(one.done() for one in futures):
                _end_workers(pool)
            # To the end: at the interpreter's exit the pool's thread would find its pipe closed.
            pool.shutdown(wait=True, cancel_futures=True)
    return finished + [None] * (len(tasks) - len(finished)), interrupted
