# SPDX-License-Identifier: GPL-2.0-only
"""Signals: what runs until one comes, and that none is lost."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

# After so long a signal whose exception was lost comes again, in seconds.
AGAIN_S = 0.05


def raise_again(ends: Callable[[int, FrameType | None], None]) -> None:
    """See that a signal to the main thread, which calls this, has its effect.

    Python ignores what is raised in a callback of its own, and an import has such callbacks. Then
    the signal is sent once more, a moment later: SIGINT, and also SIGTERM and SIGHUP. @ends handles
    these two, by SystemExit with 128 and the signal's number.
    """
    usual = sys.unraisablehook
    main = threading.get_ident()

    def hook(lost: sys.UnraisableHookArgs) -> None:
        codes = {128 + number: number for number in (signal.SIGTERM, signal.SIGHUP)}
        code = lost.exc_value.code if isinstance(lost.exc_value, SystemExit) else None
        number = codes.get(code) if isinstance(code, int) else None
        if number:
            signal.signal(number, ends)
        elif isinstance(lost.exc_value, KeyboardInterrupt):
            number = signal.SIGINT
        else:
            usual(lost)
            return
        again = threading.Timer(AGAIN_S, signal.pthread_kill, (main, number))
        again.daemon = True
        again.start()

    sys.unraisablehook = hook


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
