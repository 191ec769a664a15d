# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's trace events of one disk, from a trace instance of our own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

TRACING = Path("kernel") / "tracing"  # below sysfs


def _remove_abandoned(instances: Path) -> None:
    """Instances of ours whose process was killed; the kernel keeps one that somebody reads."""
    for folder in instances.glob("streamsched-*-*"):
        if not Path("/proc", folder.name.rpartition("-")[2]).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()


class Instance:
    """Events in tracefs, for the device @number (major, minor), until close().

    @events are of the group block where they name no other, as in stream/stream_choose.
    Nobody else's tracing is touched. OSError where there is no tracefs, or no right to use it.
    """

    def __init__(
        self,
        name: str,
        number: tuple[int, int],
        events: Iterable[str],
        tracing: Path,
        *,
        buffer_kib: int | None = None,
        clock: str | None = None,
    ) -> None:
        major, minor = number
        self._folder = tracing / "instances" / f"streamsched-{name}-{os.getpid()}"
        self._rest = ""
        _remove_abandoned(self._folder.parent)
        self._folder.mkdir()
        try:
            if buffer_kib is not None:
                (self._folder / "buffer_size_kb").write_text(str(buffer_kib))
            if clock is not None:
                (self._folder / "trace_clock").write_text(clock)
            for one in events:
                event = self._folder / "events" / (one if "/" in one else f"block/{one}")
                # As the kernel numbers devices: MKDEV() of <linux/kdev_t.h>.
                (event / "filter").write_text(f"dev == {(major << 20) | minor}")
                (event / "enable").write_text("1")
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

    def lines(self) -> list[str]:
        """What has come since the last time."""
        found: list[str] = []
        while True:
            try:
                data = os.read(self._pipe, 1 << 16)
            except OSError:  # there is nothing more, or the event's module has gone
                return found
            if not data:
                return found
            *whole, self._rest = (self._rest + data.decode(errors="replace")).split("\n")
            found += whole
