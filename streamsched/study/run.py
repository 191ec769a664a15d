# SPDX-License-Identifier: GPL-2.0-only
"""A study on a cluster of dask.distributed: what is asked of whom, and what is lost and found.

The workers compute; this process alone writes. At most a few orders for each processor are with
the cluster, so that a study of any length costs the scheduler the same. A worker that dies is
dask's to replace, and its order is given to another one. A scheduler that dies takes with it what
was under way: then a new session begins with what is not in the results yet.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import queue
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from multiprocessing import resource_tracker
from typing import Any

from rich.console import Console

import streamsched
from streamsched.base.errors import StreamschedError, UsageError
from streamsched.base.progress import counted
from streamsched.study.cell import Order, Rates, Row, measure, measure_alone
from streamsched.study.plan import Cell, Plan, work_digest
from streamsched.study.program import program
from streamsched.study.store import Store

# Orders with the cluster: so many for each processor, and at least so many.
AHEAD, LEAST_AHEAD = 4, 32
# A scheduler that is gone is waited for so long.
PATIENCE_S = 300.0
CONNECT_S = 5.0
POLL_S = 0.2


class _Lost(Exception):
    """The scheduler is gone, and all that it knew."""


@contextlib.contextmanager
def _asked() -> Iterator[None]:
    """A question to the scheduler, which may be gone."""
    try:
        yield
    except (OSError, CancelledError, TimeoutError) as error:
        raise _Lost from error


@dataclasses.dataclass
class Failures:
    """Cells that could not be done, and why; a few of them."""

    nr: int = 0
    first: list[str] = dataclasses.field(default_factory=list)

    def add(self, what: str, error: BaseException) -> None:
        self.nr += 1
        why = str(error)
        if type(error).__name__ == "KilledWorker":
            why = "each worker that was given it died; memory may have run out"
        elif not isinstance(error, StreamschedError):
            why = f"{type(error).__name__}: {why}"
        if len(self.first) < 5:
            self.first.append(f"{what}: {why}")


def order_of(plan: Plan, cell: Cell) -> Order:
    """What a worker is to simulate for @cell."""
    trace = work_digest(cell.work, cell.disk) if cell.work.trace else None
    return Order(plan.task(cell), program(), trace)


def _name(cell: Cell) -> str:
    labels = cell.labels()
    said = [f"{key} {labels[key]}" for key in ("disk", "queue_depth", "seed", "owners", "settings")]
    return f"{cell.policy}, {cell.work.name}, " + ", ".join(said)


class _Session:
    """Orders and answers, while one scheduler lives."""

    def __init__(self, client: Any, plan: Plan, store: Store, failed: Callable[..., None]) -> None:
        self._client = client
        self._plan = plan
        self._store = store
        self._failed = failed
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._under_way: dict[Any, Cell | str] = {}  # future -> a cell, or a group's alone rates
        self._alone: dict[str, Any] = {}  # group -> future

    def _ahead(self) -> int:
        with _asked():
            return int(max(LEAST_AHEAD, AHEAD * sum(self._client.ncores().values())))

    def _submit(self, what: Cell | str, key: str, work: Callable[..., Any], *args: Any) -> Any:
        with _asked():
            future = self._client.submit(work, *args, key=f"streamsched-{key}", pure=True)
        self._under_way[future] = what
        future.add_done_callback(self._answers.put)
        return future

    def _rates(self, cell: Cell) -> Any:
        """The alone rates of @cell's group, or the future that will have them."""
        group = self._plan.group(cell)
        if group is None or group in self._store.alone:
            return self._store.alone.get(group or "")
        if group not in self._alone:
            orders = {
                number: Order(task, program())
                for number, task in self._plan.alone_tasks(cell).items()
            }
            self._alone[group] = self._submit(group, group, measure_alone, orders)
        return self._alone[group]

    def _order(self, cell: Cell, known: str) -> None:
        labels = {**cell.labels(), "cell": known}
        self._submit(cell, known, measure, order_of(self._plan, cell), labels, self._rates(cell))

    def _take(self, futures: list[Any]) -> None:
        """Answers that are there; what is not an answer means that the scheduler is gone."""
        rows: list[Row] = []
        alone: dict[str, Rates] = {}
        finished = [future for future in futures if future.status == "finished"]
        with _asked():
            results = self._client.gather(finished)
        for future, result in zip(finished, results, strict=True):
            what = self._under_way.pop(future)
            if isinstance(what, str):
                alone[what] = result
                self._alone.pop(what, None)
            else:
                rows.append(result)
        if alone:
            self._store.add_alone(alone)
        if rows:
            self._store.add(rows)
        for future in futures:
            if future.status == "error":
                what = self._under_way.pop(future)
                with _asked():
                    error = future.exception()
                if isinstance(error, ImportError):
                    raise StreamschedError(
                        f"a worker cannot import it: {error}; install streamsched "
                        f"{streamsched.__version__} on all machines"
                    )
                if not isinstance(what, str):
                    self._failed(what, error)
            elif future.status != "finished":
                raise _Lost

    def run(self, cells: Iterator[tuple[str, Cell]], told: Callable[[], None]) -> None:
        """Do all @cells; _Lost when the scheduler is gone."""
        ahead, looked = self._ahead(), time.monotonic()
        while True:
            while len(self._under_way) < ahead and (one := next(cells, None)):
                self._order(one[1], one[0])
            if not self._under_way:
                return
            futures = []
            with contextlib.suppress(queue.Empty):
                futures.append(self._answers.get(timeout=POLL_S))
                while True:
                    futures.append(self._answers.get_nowait())
            if self._client.status != "running":
                raise _Lost
            if futures:
                self._take(futures)
            told()
            if time.monotonic() - looked > 10:  # workers come and go
                ahead, looked = self._ahead(), time.monotonic()


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """What comes to a whole group is for this process, not for those that it starts, nor theirs.

    That is Ctrl-C, and what a terminal sends that is closed. SIGTERM is how workers are ended.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGHUP])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _interrupts() -> Iterator[Callable[[], None]]:
    """Gives what raises KeyboardInterrupt after Ctrl-C: where no result is half kept."""
    asked = False

    def note(*_: object) -> None:
        nonlocal asked
        asked = True

    def check() -> None:
        if asked:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _local(jobs: int) -> Iterator[tuple[str, Any]]:
    """Workers on this machine: the scheduler's address, and the keys to it.

    A scheduler runs what it is sent, so others on this machine must not reach it: hence TLS.
    """
    from distributed import LocalCluster
    from distributed.security import Security

    with tempfile.TemporaryDirectory(prefix="streamsched-") as folder:
        security = Security.temporary()
        with _no_interrupts():  # nor is it for what notes what they share
            resource_tracker.ensure_running()  # which, when it starts, lets SIGINT through again
        with _no_interrupts():
            cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                memory_limit=0,  # that of the machine, as with other commands
                security=security,
                protocol="tls",
                local_directory=folder,
                silence_logs=logging.CRITICAL,
            )
        try:
            yield cluster.scheduler_address, security
        finally:
            # All results are kept by now. Workers that are slow to end do so without us.
            with _no_interrupts(), contextlib.suppress(TimeoutError):
                cluster.close(timeout=10)


def check_cluster(address: str) -> None:
    """Refuse what could never be reached; Client would leave a traceback, and wait for nothing."""
    from distributed.security import Security

    if not address.startswith("tls://"):
        return
    try:
        context = Security().get_connection_args("client").get("ssl_context")
    except OSError as error:
        raise UsageError(
            f"--cluster {address}: dask's certificates: {error.strerror or error}"
        ) from None
    if context is None:
        raise UsageError(
            f"--cluster {address}: dask has no certificates for it; name ca-file, client.cert and "
            "client.key of distributed.comm.tls in its configuration"
        )


def _connected(
    address: str, security: Any, patience_s: float, interrupted: Callable[[], None]
) -> Any:
    """A client of the scheduler there."""
    from distributed import Client

    until = time.monotonic() + patience_s
    while True:
        try:
            with _no_interrupts():
                return Client(address, security=security, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            if isinstance(error, ValueError):
                raise UsageError(f"--cluster {address}: {error}") from None
            if time.monotonic() > until:
                raise StreamschedError(
                    f"--cluster {address}: no scheduler answers there; start `dask scheduler`, "
                    "then the same command goes on"
                ) from None
            interrupted()
            time.sleep(POLL_S)


def run_study(
    plan: Plan, store: Store, jobs: int, address: str | None, console: Console
) -> Failures:
    """Do what of @plan is not in @store, on @jobs processors or the cluster at @address."""
    import dask
    import distributed  # noqa: F401  which sets how much is logged

    # Which of them have pandas, and the like; that they have the same streamsched is checked.
    warnings.filterwarnings("ignore", module="distributed")
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
    failures, tried = Failures(), set[str]()

    def failed(cell: Cell, error: BaseException) -> None:
        tried.add(plan.id(cell))
        failures.add(_name(cell), error)

    def left() -> Iterator[tuple[str, Cell]]:
        for cell in plan.cells():
            known = plan.id(cell)
            if known not in store.done and known not in tried:
                yield known, cell

    cluster = contextlib.nullcontext((address, None)) if address else _local(min(jobs, len(plan)))
    patience = CONNECT_S
    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),
        _interrupts() as interrupted,
        cluster as (where, security),
        counted(console) as progress,
    ):
        bar = progress.add_task("simulations", total=len(plan), completed=len(store.done))

        def told() -> None:
            interrupted()
            progress.update(bar, completed=len(store.done) + len(tried))

        while True:
            client = _connected(where, security, patience, interrupted)
            try:
                _Session(client, plan, store, failed).run(left(), told)
                return failures
            except _Lost:
                console.print(
                    f"streamsched: {where} is gone; waiting for it", highlight=False, markup=False
                )
                patience = PATIENCE_S
            finally:
                with _no_interrupts(), contextlib.suppress(Exception):
                    client.close(timeout=2)
