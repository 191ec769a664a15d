# SPDX-License-Identifier: GPL-2.0-only
"""A disk's settings in sysfs: put aside while it is measured, put back afterwards."""

from __future__ import annotations

import os
import re
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from streamsched.base.errors import Interrupted, StreamschedError, UsageError
from streamsched.calibrate.device import DeviceInfo

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Quiet:
    """The disk's settings in sysfs, put aside and put back.

    Another scheduler brings its own settings, and some of the queue's change with
    it; so all that can be written are remembered, and put back where they differ.
    """

    WANTED = (("scheduler", "none"), ("read_ahead_kb", "0"))

    def __init__(self, info: DeviceInfo) -> None:
        self.queue = info.queue
        self.name = info.name
        self.before = self._all()

    def _all(self) -> dict[str, str]:
        """The settings that can be written, by name."""
        found = {}
        for path in [*sorted(self.queue.glob("*")), *sorted(self.queue.glob("iosched/*"))]:
            try:
                if path.stat().st_mode & stat.S_IWUSR and path.is_file():
                    value = _chosen(path.read_text().strip())
                    found[str(path.relative_to(self.queue))] = value
            except OSError:  # some cannot be read in every state
                continue
        return found

    def _write(self, name: str, value: str) -> None:
        """In one system call, so that an error is of this value."""
        file = os.open(self.queue / name, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(file, value.encode())
        finally:
            os.close(file)

    def check(self) -> None:
        """Whether the settings may be changed at all."""
        for name, wanted in self.WANTED:
            path = self.queue / name
            if self.before.get(name, wanted) != wanted and not os.access(path, os.W_OK):
                raise UsageError(f"no permission to change {path}; run this as root")

    def apply(self) -> None:
        for name, wanted in self.WANTED:
            if self.before.get(name, wanted) == wanted:
                continue
            try:
                self._write(name, wanted)
            except OSError as error:
                raise StreamschedError(
                    f"{self.queue / name}: could not be set to {wanted}: {error.strerror}"
                ) from None

    def restore(self) -> None:
        """Put everything back; an error names what could not be."""
        failed = []
        # The scheduler first: the rest depends on it.
        for name in sorted(self.before, key=lambda name: (name != "scheduler", "/" in name, name)):
            value = self.before[name]
            try:
                if _chosen((self.queue / name).read_text().strip()) == value:
                    continue
                if name == "iosched/service_curve" and is_learned(value):
                    continue  # writing it would stop the learning
                self._write(name, value)
            except OSError as error:
                failed.append(f"{name} (it was {value!r}): {error.strerror}")
        if failed:
            raise StreamschedError(
                f"{self.name}: these settings in {self.queue} could not be put back: "
                + "; ".join(failed)
            )


def _chosen(value: str) -> str:
    """Of "[a] b c" the one in use; any other value as it is."""
    found = re.search(r"\[([^\]\s]+)\]", value)
    return found[1] if found else value


def is_learned(curve: str) -> bool:
    """Whether a service_curve that stream shows is one that it learns (core/curve.c).

    Those have a point in the middle of each power of two, 0 1 3 6 12 24 ...; or are
    those for a start, which are there again without writing them.
    """
    found = [int(point.partition(":")[0]) for point in curve.split()]
    middles = [0, *((1 << bit) + (1 << bit >> 1) for bit in range(len(found) - 1))]
    return len(found) > 2 and (found == middles or found[:2] == [0, 2048])


class _Stop(BaseException):
    """A signal came that ends programs."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def quiet(info: DeviceInfo) -> Iterator[None]:
    """The disk without a scheduler and without readahead; afterwards as before, come what may.

    A signal that would end the program ends the measurement, once: a second one does
    not keep the settings from being put back. SIGKILL cannot be helped.
    """
    settings = Quiet(info)
    settings.check()
    came: list[int] = []
    raising = True

    def stop(number: int, _: FrameType | None) -> None:
        came.append(number)
        if raising and len(came) == 1:
            raise _Stop(number)

    # What is ignored stays so: nohup, and the shell for a command in the background.
    handlers = {
        number: signal.signal(number, stop)
        for number in STOPPING
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        try:
            try:
                settings.apply()
                yield
            finally:
                raising = False
        finally:
            settings.restore()
    except _Stop:
        pass
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if came:
        error = Interrupted(f"interrupted; the settings of {info.name} are as they were")
        error.exit_code = 128 + came[0]
        raise error
