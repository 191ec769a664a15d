# SPDX-License-Identifier: GPL-2.0-only
"""A disk of this machine, by its files in sysfs, and who changes its scheduler for a time."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.base.files import is_folder

SYS = Path("/sys")
STREAM = "stream"
# What stream can be told to wrap (docs/internals/KERNEL.md).
INNER = ("noop", "deadline", "cscan", "sptf", "linus")
# With the disk's name behind it: the rule of `streamsched enable` leaves that disk alone.
KEEP = "/run/streamsched/keep-"


@dataclass(frozen=True)
class Device:
    """A disk's folder in sysfs."""

    name: str
    folder: Path

    @property
    def queue(self) -> Path:
        return self.folder / "queue"

    def text(self, path: Path) -> str:
        """What a file of it says."""
        try:
            return path.read_text().strip()
        except OSError as error:
            raise StreamschedError(f"{path}: cannot read it: {error.strerror}") from None

    def write(self, path: Path, value: str) -> None:
        """In one system call, so that an error is of this value."""
        try:
            file = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            try:
                os.write(file, value.encode())
            finally:
                os.close(file)
        except PermissionError:
            raise UsageError(f"no permission to change {path}; run this as root") from None
        except OSError as error:
            raise StreamschedError(
                f"{path}: could not be set to {value}: {error.strerror}"
            ) from None

    @property
    def offered(self) -> tuple[str, ...]:
        """The schedulers that are loaded."""
        return tuple(self.text(self.queue / "scheduler").replace("[", "").replace("]", "").split())

    @property
    def in_use(self) -> str:
        found = re.search(r"\[([^\]\s]+)\]", self.text(self.queue / "scheduler"))
        return found[1] if found else "none"

    @property
    def inner(self) -> str | None:
        """What stream wraps, where it is in use."""
        if self.in_use != STREAM:
            return None
        found = re.search(r"\[([^\]\s]+)\]", self.text(self.queue / "iosched" / "inner"))
        return found[1] if found else None

    @property
    def number(self) -> tuple[int, int]:
        """Major and minor."""
        major, _, minor = self.text(self.folder / "dev").partition(":")
        return int(major), int(minor)

    @property
    def queue_depth(self) -> int | None:
        """Commands that the disk takes at once, if its driver says so."""
        try:
            return int((self.folder / "device" / "queue_depth").read_text())
        except (OSError, ValueError):
            return None

    def set_scheduler(self, name: str, inner: str | None, *, anew: bool = False) -> None:
        """As this says; @anew: also one that is there already, without what it has learned."""
        file = self.queue / "scheduler"
        if anew and self.in_use == name and name != "none":
            self.write(file, "none")
        if self.in_use != name:
            self.write(file, name)
        if inner is not None and self.inner != inner:
            self.write(self.queue / "iosched" / "inner", inner)


def device_of(name: str, sys_: Path = SYS) -> Device:
    """The disk NAME or /dev/NAME; or UsageError."""
    short = name.removeprefix("/dev/").replace("/", "!")
    folder = sys_ / "block" / short
    if not short or short.startswith(".") or not is_folder(folder):
        known = sorted(path.name for path in (sys_ / "block").glob("*"))
        near = f"; there are: {', '.join(known)}" if known else ""
        raise UsageError(f"{name}: there is no such block device, or it is no whole disk{near}")
    if not (folder / "queue" / "scheduler").is_file():
        raise UsageError(f"{name}: has no scheduler; name the disk beneath it")
    return Device(short, folder)


# ---- a scheduler for a time ----


def keep_file(device: Device) -> Path:
    """That who changes the disk's scheduler for a time has: in the /run beside its /sys."""
    return device.folder.parents[2] / f"{KEEP.lstrip('/')}{device.name}"


def keeper(device: Device) -> int | None:
    """The process that changes the disk's scheduler for a time, if there is one."""
    try:
        number = int(keep_file(device).read_text())
    except (OSError, ValueError):
        return None
    process = device.folder.parents[2] / "proc" / str(number)
    if not process.exists():
        return None
    with contextlib.suppress(OSError):
        # The number may be another program's by now.
        if b"streamsched" not in (process / "cmdline").read_bytes():
            return None
    return number


@contextlib.contextmanager
def keeping(device: Device, say: Callable[[str], None]) -> Iterator[None]:
    """Meanwhile the rule of `streamsched enable` takes no scheduler back; UsageError if taken.

    @say has a sentence where that cannot be had.
    """
    other, file = keeper(device), keep_file(device)
    if other:
        raise UsageError(f"{device.name}: process {other} changes its scheduler; end that first")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{os.getpid()}\n")
    except OSError as error:
        say(f"note: {file}: {error.strerror}; a rule of udev may take the scheduler back")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink()
