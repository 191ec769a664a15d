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

from streamsched.sim import tasks

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
