# SPDX-License-Identifier: GPL-2.0-only
"""What runs until somebody stops it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def until_stopped() -> Iterator[Callable[[], bool]]:
    """True until a signal asks to stop."""
    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        numbers.append(signal.SIGHUP)
    handlers = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield lambda: not stopped
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
