# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel tells of a disk: sysfs, and `stream` in debugfs (docs/internals/KERNEL.md).

`top` and `exporter` look through this. It reads only.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.hosts.device import STREAM, SYS, Device, device_of
from streamsched.hosts.disks import NO_DISK

# Columns of /sys/block/DISK/stat (Documentation/block/stat.rst of Linux).
READS, READS_MERGED, READ_SECTORS, READ_MS, WRITES, WRITES_MERGED, WRITE_SECTORS, WRITE_MS = range(
    8
)
FLUSHES = 15  # from Linux 5.5 on
DEBUGFS = Path("kernel") / "debug"  # below sysfs
DIRECTIONS = ("read", "write")
# What top and exporter need of debugfs' `counters`.
COUNTED = {
    *("pending", "in_flight", "dispatches", "merges", "seeks", "waits", "hits", "timeouts"),
    *("second_chances", "slices_ended", "expired", "idle_ns"),
}
# The usual class of the first actuator is not named where there is room for little.
USUAL_CLASS = "be"


class UnreadableError(StreamschedError):
    """The disk cannot be looked at now; the sentence says why."""


@dataclasses.dataclass(frozen=True)
class Done:
    """Of one direction, since boot."""

    requests: int
    bytes: int
    response_s: float  # from arrival to completion, the sum


@dataclasses.dataclass(frozen=True)
class Stat:
    """A disk under any scheduler: /sys/block/DISK/stat and inflight."""

    done: tuple[Done, Done]  # reads, writes
    flushes: int | None
    in_flight: int


@dataclasses.dataclass(frozen=True)
class Party:
    """A line of debugfs' `streams`."""

    name: str  # of its class: rt, be, idle; rt2, be2, idle2 are the second actuator's
    number: int
    kind: str  # stream, rest, write-back, sender
    end_sector: int
    pending: int
    sent: int
    sectors: int
    head_us: int
    turn: bool

    @property
    def key(self) -> tuple[str, int]:
        return self.name, self.number


@dataclasses.dataclass(frozen=True)
class Waits:
    """From arrival to dispatch: how many by time, and the sum."""

    below_s: tuple[float, ...]  # the last one is infinite
    number: tuple[tuple[int, ...], tuple[int, ...]]  # of reads, of writes
    sum_s: tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Inside:
    """What `stream` tells of a disk; the classes together."""

    inner: str
    counters: dict[str, int]
    reasons: dict[str, int]
    parties: tuple[Party, ...]
    candidates: int  # streams to be
    waits: Waits


def _numbers(text: str) -> dict[str, int]:
    """`a 1 b 2` as a mapping."""
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def _sums(text: str) -> dict[str, int]:
    """The lines `CLASS: a 1 b 2`, and one without a class, added up."""
    total: dict[str, int] = {}
    for line in text.splitlines():
        for name, number in _numbers(line.rpartition(": ")[2].removeprefix(":")).items():
            total[name] = total.get(name, 0) + number
    return total


def _parties(text: str) -> Iterator[Party]:
    for line in text.splitlines():
        name, _, rest = line.partition(": ")
        words = rest.split()
        said = dict(zip(words[::2], words[1::2], strict=True))
        yield Party(
            name,
            int(said["party"]),
            said["kind"],
            int(said["end"]),
            int(said["pending"]),
            int(said["sent"]),
            int(said["sectors"]),
            int(said["head_us"]),
            said["turn"] == "1",
        )


def _waits(text: str) -> Waits:
    rows = [line.split() for line in text.splitlines()[1:]]
    if not rows or rows[-1][0] != "sum_us":
        raise ValueError
    *buckets, sums = rows
    return Waits(
        tuple(float("inf") if row[0] == "more" else int(row[0]) / 1e6 for row in buckets),
        (tuple(int(row[1]) for row in buckets), tuple(int(row[2]) for row in buckets)),
        (int(sums[1]) / 1e6, int(sums[2]) / 1e6),
    )


class KernelDisk:
    """A disk of this machine."""

    def __init__(self, device: Device, sys_: Path = SYS) -> None:
        self.device = device
        self.name = device.name
        self._debug = sys_ / DEBUGFS
        self.size_sectors = self._whole(device.folder / "size")

    def _text(self, path: Path) -> str:
        try:
            return path.read_text()
        except PermissionError:
            raise UnreadableError(f"{path}: no permission to read it; run this as root") from None
        except (OSError, ValueError) as error:
            raise self._unreadable(path, error) from None

    def _unreadable(self, path: Path, error: Exception) -> UnreadableError:
        """Why @path, which should be there, is not as it should be."""
        name = self.name
        if not (self.device.folder / "queue").is_dir():
            return UnreadableError(f"{name}: the disk is gone")
        try:
            scheduler = self.device.in_use
        except StreamschedError as gone:
            return UnreadableError(str(gone))
        if scheduler != STREAM:
            return UnreadableError(f"{name}: its scheduler is {scheduler}, not stream")
        if not (self._debug / "block").is_dir():
            return UnreadableError(
                f"{self._debug}: debugfs is not mounted; `mount -t debugfs debugfs {self._debug}` "
                "does it"
            )
        if isinstance(error, OSError):
            return UnreadableError(f"{path}: cannot read it: {error.strerror}")
        return UnreadableError(
            f"{path}: is not as this version of streamsched has it; install the module of the same "
            "version"
        )

    def _whole(self, path: Path) -> int:
        text = self._text(path)
        try:
            return int(text)
        except ValueError as error:
            raise self._unreadable(path, error) from None

    def stat(self) -> Stat:
        """Under any scheduler."""
        path = self.device.folder / "stat"
        text = self._text(path)
        try:
            column = [int(word) for word in text.split()]
            flushes = column[FLUSHES] if len(column) > FLUSHES else None
            reads, writes = (
                Done(column[one] + column[merged], 512 * column[sectors], column[ms] / 1000)
                for one, merged, sectors, ms in (
                    (READS, READS_MERGED, READ_SECTORS, READ_MS),
                    (WRITES, WRITES_MERGED, WRITE_SECTORS, WRITE_MS),
                )
            )
        except (ValueError, IndexError):
            raise UnreadableError(f"{path}: has not the columns of Linux") from None
        path = self.device.folder / "inflight"
        try:
            in_flight = sum(int(word) for word in self._text(path).split())
        except ValueError as error:
            raise self._unreadable(path, error) from None
        return Stat((reads, writes), flushes, in_flight)

    def inside(self) -> Inside:
        """Only under `stream`."""
        folder = self._debug / "block" / self.name / "sched"
        try:
            self._debug.stat()
            (self._debug / "block").stat()
        except PermissionError:
            raise UnreadableError(
                f"{self._debug}: no permission to read it; run this as root"
            ) from None
        except OSError as error:
            raise self._unreadable(folder, error) from None
        path = folder
        try:
            files = {}
            for file in ("counters", "reasons", "streams", "parents", "waits"):
                path = folder / file
                files[file] = self._text(path)
            path = folder / "counters"
            counters = _sums(files["counters"])
            path = folder / "reasons"
            reasons = _sums(files["reasons"])
            path = folder / "streams"
            parties = tuple(_parties(files["streams"]))
            path = folder / "waits"
            waits = _waits(files["waits"])
            if COUNTED - counters.keys():
                path = folder / "counters"
                raise ValueError
        except (ValueError, KeyError, IndexError) as error:
            raise self._unreadable(path, error) from None
        inner = re.search(r"\[(\S+)\]", self._text(self.device.queue / "iosched" / "inner"))
        return Inside(
            inner[1] if inner else "",
            counters,
            reasons,
            parties,
            len(files["parents"].splitlines()),
            waits,
        )


def disk_names(sys_: Path = SYS) -> list[str]:
    """The disks with a scheduler of their own."""
    return sorted(
        path.name
        for path in (sys_ / "block").glob("*")
        if not NO_DISK.match(path.name) and (path / "queue" / "scheduler").is_file()
    )


def kernel_disks(names: list[str], sys_: Path = SYS) -> list[KernelDisk]:
    """These disks; if none is named all that `stream` schedules. UsageError if there is none."""
    if names:
        named = dict.fromkeys(device_of(name, sys_) for name in names)
        return [KernelDisk(device, sys_) for device in named]
    every = [device_of(name, sys_) for name in disk_names(sys_)]
    found = [KernelDisk(device, sys_) for device in every if device.in_use == STREAM]
    if not found:
        raise UsageError(
            "no disk of this machine is scheduled by stream; name a disk, or the file that the "
            "network server's metrics= writes"
        )
    return found
