# SPDX-License-Identifier: GPL-2.0-only
"""The workers of simulations, when they are ended."""

from __future__ import annotations

import multiprocessing
import os
import signal
import struct
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from rich.console import Console

from streamsched.base.errors import StreamschedError
from streamsched.sim import tasks
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Setup
from streamsched.work.jobfile import parse_jobs

SECONDS = 20
POOL: ProcessPoolExecutor


def _sends_the_beginning_of_a_result() -> None:
    os.write(POOL._result_queue._writer.fileno(), struct.pack("!i", 1000))  # type: ignore[attr-defined]
    time.sleep(10 * SECONDS)


def test_the_rest_of_a_result_is_not_waited_for() -> None:
    global POOL
    POOL = ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
    future = POOL.submit(_sends_the_beginning_of_a_result)
    while not future.running():
        time.sleep(0.01)
    time.sleep(0.5)  # so that the pool's thread has the length, and waits for the rest
    tasks._end_workers(POOL)
    ending = threading.Thread(target=POOL.shutdown, daemon=True)
    ending.start()
    ending.join(SECONDS)
    assert not ending.is_alive()
    assert future.done()


def _heeds() -> list[int]:
    """Signals for which a worker has a function of its own."""
    return [one for one in tasks.STOPPING if callable(signal.getsignal(one))]


def test_workers_take_no_signal_as_the_command_does() -> None:
    """What the command does ends it in order; a worker that did so would not be ended any more."""
    before = {one: signal.signal(one, lambda *_: None) for one in tasks.STOPPING}
    try:
        _, pool = tasks._pool(1, 1)
        with pool:
            assert pool.submit(_heeds).result(SECONDS) == []
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Growing(dict[int, Any]):
    """As a dictionary is that grows while somebody walks over it."""

    def items(self) -> Any:
        raise RuntimeError("dictionary changed size during iteration")


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_ends_while_tasks_are_submitted(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The pool's thread then ends with an error, and tells nobody that the pool is broken."""
    submitted = tasks._submitted

    def then_killed(pool: ProcessPoolExecutor, index: int, task: tasks.Task) -> Any:
        future = submitted(pool, index, task)
        thread: Any = tasks._thread(pool)
        thread.pending_work_items = Growing(thread.pending_work_items)
        for worker in list(pool._processes.values()):
            worker.kill()
        thread.join(SECONDS)
        return future

    monkeypatch.setattr(tasks, "_submitted", then_killed)
    disk = load_disk("wd5000aaks")
    work = parse_jobs(
        "[p]\nrw=read\nsize=100g\n", capacity_bytes=disk.capacity_sectors * 512, environ={}
    )
    task = tasks.Task("one", Setup(disk, "noop"), tuple(work))
    with pytest.raises(StreamschedError, match="a worker process was killed"):
        tasks.run_tasks([task], 1, Console())
    assert "Traceback" not in capfd.readouterr().err
