# SPDX-License-Identifier: GPL-2.0-only
"""Disks, and the arrays that stand on them, as sysfs and device mapper have them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from streamsched._core import ffi, lib
from streamsched.base.errors import StreamschedError, printable
from streamsched.hosts import kernelarray
from streamsched.hosts.device import STREAM
from streamsched.hosts.machine import Machine

# On other disks, or with removable media: as kernel/packaging/udev/60-stream-iosched.rules.
NO_DISK = re.compile(r"(loop|dm-|md|zram|ram|drbd|bcache|fd|sr)")
LEAST_REQUESTS = 64  # docs/INSTALL.md
CONFIGFS = "/sys/kernel/config/stream-array"


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk as sysfs has it; None is what sysfs does not say."""

    name: str
    model: str
    size_bytes: int | None
    rotating: bool | None
    zoned: str | None  # none, host-aware, host-managed
    drive_managed: bool  # shingled, the drive itself rewrites its zones
    access_ranges: int  # parts of the disk with heads of their own
    queue_depth: int | None
    nr_requests: int | None
    scheduler: str | None
    schedulers: tuple[str, ...]  # that could be chosen now
    curve_learned: bool | None  # None: not scheduled by stream

    @property
    def is_for_stream(self) -> bool:
        """As the udev rule has it."""
        return self.rotating is True and self.zoned == "none"


@dataclasses.dataclass(frozen=True)
class ArrayState:
    """An array, and what the module can do for it."""

    name: str
    level: str
    members: tuple[str, ...]  # disks that are there; empty when not known
    coordinable: bool | None  # None: not known
    attached: bool
    why: str  # it is not coordinable, or not known to be; else empty


def _starts_generic(points: str) -> bool:
    """Are these the points with which learning begins?"""
    curve = ffi.new("struct ss_curve *")
    lib.ss_curve_init_generic(curve, 1 << 32)
    begin = [f"{one.distance_sectors}:{one.time_ns}" for one in (curve.point[0], curve.point[1])]
    return points.split()[:2] == begin


def _drive_managed(machine: Machine, name: str) -> bool:
    """Does the drive say so, in VPD page B1h? To the block layer it is a disk like any other."""
    page = machine.read(f"/sys/block/{name}/device/vpd_pgb1").data
    return len(page) > 8 and page[1] == 0xB1 and page[8] >> 4 & 3 == 2


def _disk(machine: Machine, name: str) -> Disk:
    folder = f"/sys/block/{name}"
    queue = f"{folder}/queue"
    sectors = machine.number(f"{folder}/size")
    rotational = machine.text(f"{queue}/rotational")
    offered = machine.text(f"{queue}/scheduler").split()
    scheduler = next((one[1:-1] for one in offered if re.fullmatch(r"\[.*\]", one)), None)
    points = machine.text(f"{queue}/iosched/service_curve")
    ranges = [one for one in machine.names(f"{queue}/independent_access_ranges") if one.isdigit()]
    return Disk(
        name=name,
        model=machine.text(f"{folder}/device/model"),
        size_bytes=None if sectors is None else 512 * sectors,
        rotating={"0": False, "1": True}.get(rotational),
        zoned=machine.text(f"{queue}/zoned") or None,
        drive_managed=_drive_managed(machine, name),
        access_ranges=max(len(ranges), 1),
        queue_depth=machine.number(f"{folder}/device/queue_depth"),
        nr_requests=machine.number(f"{queue}/nr_requests"),
        scheduler=scheduler,
        schedulers=tuple(one.strip("[]") for one in offered),
        curve_learned=not _starts_generic(points) if scheduler == STREAM and points else None,
    )


def disks_of(machine: Machine) -> list[Disk]:
    """The disks with a scheduler of their own."""
    names = [name for name in machine.names("/sys/block") if not NO_DISK.match(name)]
    there = [name for name in names if machine.exists(f"/sys/block/{name}/queue")]
    return [_disk(machine, one) for one in there if machine.text(f"/sys/block/{one}/hidden") != "1"]


# ---- arrays ----


class _RootOnlyError(StreamschedError):
    """What only root may ask."""


def _table(machine: Machine, called: str) -> str:
    done = machine.ask(["dmsetup", "table", called])
    if done is None:
        raise _RootOnlyError("dmsetup is missing, which reads its layout")
    if "ermission denied" in done.err:
        raise _RootOnlyError("only root can read its layout")
    if done.code:
        raise StreamschedError(f"dmsetup: {done.complaint}")
    return done.out


def _array(machine: Machine, name: str) -> ArrayState | None:
    """Array @name; None for a device of device mapper that is none."""
    folder = f"/sys/block/{name}"
    is_md = machine.exists(f"{folder}/md")
    level = machine.text(f"{folder}/md/level") if is_md else "striped"
    attached = machine.text(f"{CONFIGFS}/{name}/attached") == "1"
    members = tuple(machine.names(f"{folder}/slaves"))
    table, can = "", None
    try:
        if not is_md:
            if len(members) < 2 and not attached:
                return None
            table = _table(machine, machine.text(f"{folder}/dm/name"))
            targets = {words[2] for line in table.splitlines() if len(words := line.split()) > 2}
            if not targets & {"striped", "raid"}:
                return None
            level = ", ".join(sorted(targets))
        array = kernelarray.read_array(name, machine.path("/sys"), lambda _: table)
        there = tuple(member.disk for member in array.present)
        return ArrayState(name, str(array.shape), there, True, attached, "")
    except _RootOnlyError as error:
        level, why = "device mapper", str(error)
    except StreamschedError as error:
        can, why = False, str(error)
    except PermissionError:
        why = "only root can read its layout"
    # A symlink that leads to itself is a RuntimeError before Python 3.13.
    except (OSError, ValueError, IndexError, OverflowError, RuntimeError):
        why = "its description in sysfs cannot be parsed"
    return ArrayState(name, level, members, can, attached, why)


def arrays_of(machine: Machine) -> list[ArrayState]:
    """The arrays of md, and the striped volumes of device mapper."""
    names = [
        name
        for name in machine.names("/sys/block")
        if machine.exists(f"/sys/block/{name}/md") or machine.exists(f"/sys/block/{name}/dm")
    ]
    return [array for name in names if (array := _array(machine, name))]


# ---- a table of disks ----

COLUMNS = (  # at most 80 columns wide, with that of the scheduler
    *(("disk", 8), ("model", 19), ("     size", 9), ("rotates", 7), ("zoned", 7)),
    *(("ranges", 6), ("depth", 5), ("now", 11)),
)


def size_text(size_bytes: int | None) -> str:
    """A disk's size as its maker says it."""
    if size_bytes is None:
        return "?"
    for unit, scale in (("PB", 10**15), ("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if size_bytes >= scale:
            tenths = size_bytes * 10 // scale
            whole = tenths // 10
            return f"{whole} {unit}" if whole >= 100 else f"{whole}.{tenths % 10} {unit}"
    return f"{size_bytes} B"


def _row(disk: Disk) -> tuple[str | None, ...]:
    zoned = {"none": "no", "host-managed": "managed", "host-aware": "aware"}
    return (
        disk.name,
        disk.model or "-",
        size_text(disk.size_bytes).rjust(9),
        {True: "yes", False: "no", None: "?"}[disk.rotating],
        "drive" if disk.drive_managed else zoned.get(disk.zoned or "", disk.zoned),
        f"{disk.access_ranges:>6}",
        f"{'-' if disk.queue_depth is None else disk.queue_depth:>5}",
        disk.scheduler or "-",
    )


def table_of(disks: Sequence[Disk]) -> Iterator[str]:
    """Its lines, of at most 80 ASCII characters."""
    for row in (tuple(head for head, _ in COLUMNS), *map(_row, disks)):
        cells = []
        for cell, (_, width) in zip(row, COLUMNS, strict=True):
            shown = printable(cell or "?").encode("ascii", "backslashreplace").decode()
            cells.append((shown if len(shown) <= width else shown[: width - 2] + "..").ljust(width))
        yield " ".join(cells).rstrip()
