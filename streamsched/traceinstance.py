# SPDX-License-Identifier: GPL-2.0-only
"""A trace instance of our own in tracefs: events of one disk; no other trace is changed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

TRACING = Path("kernel") / "tracing"  # below sysfs


class TraceInstance:
    """Lines of the @events (system/name, and a filter) of a disk, since the last time.

    Raises OSError where there is no tracefs, no such event or no permission.
    """

    def __init__(
        self,
        tracing: Path,
        name: str,
        events: Mapping[str, str],
        *,
        buffer_kb: int | None = None,
        clock: str | None = None,
    ) -> None:
        self._folder = tracing / "instances" / f"streamsched-{name}-{os.getpid()}"
        self._rest = ""
        self._folder.mkdir()
        try:
            if buffer_kb is not None:
                (self._folder / "buffer_size_kb").write_text(str(buffer_kb))
            if clock is not None:
                (self._folder / "trace_clock").write_text(clock)
            for event, wanted in events.items():
                folder = self._folder / "events" / event
                (folder / "filter").write_text(wanted)
                (folder / "enable").write_text("1")
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            self._pipe = os.open(self._folder / "trace_pipe", flags)
        except OSError:
            with contextlib.suppress(OSError):
                self._folder.rmdir()
            raise

    def close(self) -> None:
        """Stop tracing."""
        os.close(self._pipe)
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    def lines(self) -> Iterator[str]:
        """Whole lines that have come since the last time."""
        while True:
            try:
                data = os.read(self._pipe, 1 << 16)
            except OSError:  # nothing at the moment, or no longer
                return
            if not data:
                return
            *lines, self._rest = (self._rest + data.decode(errors="replace")).split("\n")
            yield from lines


def of_disk(number: tuple[int, int]) -> str:
    """The filter for the events of one disk: MKDEV() of <linux/kdev_t.h>."""
    major, minor = number
    return f"dev == {(major << 20) | minor}"
