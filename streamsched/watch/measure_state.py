# SPDX-License-Identifier: GPL-2.0-only
"""A disk's scheduler with its settings, to be put back as they were."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.hosts.device import INNER, STREAM, SYS, Device
from streamsched.watch.parties import DEBUGFS

# What the kernel sets anew with each change of the scheduler; async_depth, which Linux has since
# 7.0, is at most nr_requests.
OF_QUEUE = ("nr_requests", "async_depth", "wbt_lat_usec")
CURVE, WEIGHTS, INNER_FILE = "service_curve", "cgroup_weights", "inner"


@dataclasses.dataclass(frozen=True)
class Spec:
    """A scheduler as --between names it: mq-deadline, stream, stream:sptf."""

    scheduler: str
    inner: str | None

    def __str__(self) -> str:
        return self.scheduler if self.inner is None else f"{self.scheduler}:{self.inner}"


def specs_of(between: str, device: Device) -> tuple[Spec, Spec]:
    """Both schedulers, which are loaded; or UsageError."""
    names = [name.strip() for name in between.split(",")]
    if len(names) != 2 or not all(names):
        raise UsageError(
            f"--between {between}: name two schedulers with a comma, as mq-deadline,stream"
        )
    found = []
    for name in names:
        scheduler, colon, inner = name.partition(":")
        if scheduler not in device.offered:
            raise UsageError(
                f"--between {between}: {device.name} has no scheduler {scheduler}; it offers "
                f"{', '.join(device.offered)} (`modprobe` loads others)"
            )
        if colon and (scheduler != STREAM or inner not in INNER):
            raise UsageError(
                f"--between {between}: what stands behind a colon is what stream wraps: "
                f"{', '.join(f'{STREAM}:{one}' for one in INNER)}"
            )
        found.append(Spec(scheduler, inner if colon else None))
    if found[0] == found[1]:
        raise UsageError(f"--between {between}: {found[0]} stands there twice; name another one")
    return found[0], found[1]


def _chosen(text: str) -> str:
    """What a file says: the word in brackets, where there is one."""
    found = re.search(r"\[([^\]\s]+)\]", text)
    return found[1] if found else text


class State:
    """What was there: the scheduler, its settings, and what the kernel sets with it."""

    def __init__(self, device: Device, sys_: Path = SYS) -> None:
        self._device = device
        self.scheduler = device.in_use
        self.queue = {
            name: device.text(device.queue / name)
            for name in OF_QUEUE
            if (device.queue / name).is_file()
        }
        self.settings = dict(self._read())
        # A curve that was learned is learned again; written back it would never change any more.
        if CURVE in self.settings and self._learns(sys_):
            del self.settings[CURVE]

    def _read(self) -> Iterator[tuple[str, str]]:
        folder = self._device.queue / "iosched"
        for path in sorted(folder.glob("*")):
            with contextlib.suppress(StreamschedError, UnicodeDecodeError):
                yield path.name, _chosen(self._device.text(path))

    def _learns(self, sys_: Path) -> bool:
        """Unless debugfs says that the curve was written."""
        path = sys_ / DEBUGFS / "block" / self._device.name / "sched" / "counters"
        try:
            return not re.search(r"\blearning 0\b", path.read_text())
        except OSError:
            return True

    def use(self, spec: Spec) -> None:
        """Begin anew with @spec: with its defaults, or as it was where it is the one that was."""
        self._device.set_scheduler(spec.scheduler, None, anew=True)
        if spec.scheduler == self.scheduler:
            self._put_back(lambda _sentence: None)
        if spec.inner is not None and self._device.inner != spec.inner:
            self._device.write(self._device.queue / "iosched" / INNER_FILE, spec.inner)

    def _put_back(self, say: Callable[[str], None]) -> None:
        # What stream wraps first: other settings may be of that.
        settings = sorted(self.settings.items(), key=lambda item: item[0] != INNER_FILE)
        for folder, files in (("", list(self.queue.items())), ("iosched", settings)):
            for name, was in files:
                path = self._device.queue / folder / name
                try:
                    if _chosen(self._device.text(path)) == was:
                        continue
                    for line in was.splitlines() if name == WEIGHTS else [was]:
                        self._device.write(path, line)
                except StreamschedError as error:
                    say(str(error))

    def complaint(self, error: StreamschedError) -> str:
        """Why it is not as it was."""
        gone = not (self._device.folder / "queue").is_dir()
        return f"{self._device.name}: {'the disk is gone' if gone else f'not as it was: {error}'}"

    def restore(self, say: Callable[[str], None]) -> None:
        """As it was; @say has a sentence for what could not be."""
        try:
            self._device.set_scheduler(self.scheduler, None)
        except StreamschedError as error:
            say(self.complaint(error))
            return
        self._put_back(say)
