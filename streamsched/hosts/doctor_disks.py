# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched doctor`: the disks, and the arrays that stand on them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from streamsched.base.errors import printable
from streamsched.hosts import cgroups
from streamsched.hosts.device import STREAM
from streamsched.hosts.disks import LEAST_REQUESTS, ArrayState, Disk
from streamsched.hosts.doctor_finding import Finding, Level
from streamsched.hosts.machine import Machine

ACTUATORS = 2  # that are scheduled apart: IOSCHED_HEADS


# ---- disks ----


def _choose(name: str, scheduler: str) -> str:
    return f"echo {scheduler} > {shlex.quote(f'/sys/block/{name}/queue/scheduler')}"


def check_disks(disks: Sequence[Disk], has_module: bool) -> Iterator[Finding]:
    """What there is to say of each disk; @has_module: stream can be chosen, or is loaded then."""
    if not disks:
        yield Finding("disk", Level.note, "no disk was found in /sys/block")
    elif not any(disk.rotating for disk in disks):
        yield Finding("disk", Level.note, "no disk rotates: stream has no seeks to save here")
    for disk in disks:
        yield _in_use(disk, has_module)
        if disk.access_ranges > ACTUATORS and disk.rotating:
            yield Finding(
                "disk",
                Level.note,
                f"{disk.name}: {disk.access_ranges} actuators (independent access ranges); "
                "stream schedules more than two as one head",
            )
        if disk.drive_managed:
            yield Finding(
                "disk",
                Level.note,
                f"{disk.name}: drive-managed SMR: the drive rewrites its zones when it chooses, "
                "and a request may then wait for seconds under any scheduler; stream was not "
                "measured on such a drive",
            )
        few = disk.nr_requests is not None and disk.nr_requests < LEAST_REQUESTS
        if disk.scheduler == STREAM and disk.queue_depth == 1 and few:
            yield Finding(
                "disk",
                Level.note,
                f"{disk.name}: takes one command at a time, and has nr_requests "
                f"{disk.nr_requests}, too few to choose from",
                f"echo {LEAST_REQUESTS} > "
                + shlex.quote(f"/sys/block/{disk.name}/queue/nr_requests"),
            )


def _in_use(disk: Disk, has_module: bool) -> Finding:
    under = f"{disk.name}: {disk.scheduler or 'no scheduler'}"
    if disk.rotating is None:
        return Finding("disk", Level.note, f"{under}; whether it rotates is not known")
    if disk.scheduler == STREAM:
        return _under_stream(disk, under)
    if not disk.rotating:
        return Finding("disk", Level.ok, f"{under}; solid state, nothing for stream to do")
    if disk.zoned != "none":
        zoned = disk.zoned or "it is not known whether zoned"
        return Finding("disk", Level.ok, f"{under}; zoned ({zoned}), not for stream")
    how = _choose(disk.name, STREAM) if has_module or STREAM in disk.schedulers else None
    return Finding("disk", Level.note, f"{under}; stream is not in use", how)


def _under_stream(disk: Disk, under: str) -> Finding:
    if not disk.rotating and disk.curve_learned is not True:
        return Finding("disk", Level.ok, f"{under}; solid state, only the inner policy is in use")
    if disk.zoned not in ("none", None):
        return Finding(
            "disk",
            Level.note,
            f"{under}, on a zoned disk ({disk.zoned}), for which it is not meant",
            _choose(disk.name, "mq-deadline"),
        )
    if disk.curve_learned is None:
        return Finding("disk", Level.note, f"{under}; its service curve cannot be read")
    if not disk.curve_learned:
        return Finding(
            "disk",
            Level.note,
            f"{under}; the service curve is still the generic one",
            advice="The disk's own is learned while it serves requests.",
        )
    return Finding("disk", Level.ok, f"{under}; the service curve is learned, or was written")


# ---- weights ----

FOLLOWS = "streamsched-weights.service"
UNITS = ("/etc/systemd/system", "/etc/systemd/system.control", "/run/systemd/system")
ENABLED = f"{UNITS[0]}/multi-user.target.wants/{FOLLOWS}"
UNIT_WEIGHT = re.compile(r"\s*(Startup)?(IO|BlockIO)(Device)?Weight\s*=\s*[^\s]")


def _unit_weights(machine: Machine) -> Iterator[str]:
    """Where systemd's units give a weight to a cgroup that may not be there now."""
    for folder in UNITS:
        for file in machine.files_below(folder):
            for number, line in enumerate(machine.lines(file), 1):
                if UNIT_WEIGHT.match(line):
                    yield f"{file}:{number}"


def check_weights(machine: Machine, disks: Sequence[Disk]) -> Iterator[Finding]:
    """Whether stream has the weights of io.weight, which it does not look at itself."""
    under = [disk.name for disk in disks if disk.scheduler == STREAM]
    top = cgroups.hierarchy(machine) if under else None
    weighted = cgroups.weighted(machine, top) if top else []
    enable = f"systemctl enable --now {FOLLOWS}"
    agree: list[str] = []
    differ: dict[str, list[str]] = {}  # by disk, what it has not
    for name in under:
        device = machine.text(f"/sys/block/{name}/dev")
        weights = {one: one.on(device) for one in weighted if one.on(device) != cgroups.USUAL}
        has = cgroups.weights_of(machine, name)
        missing = [
            f"{weight} in {top}{one.path}/{one.file}"
            for one, weight in weights.items()
            if has.get(one.path) != weight
        ]
        if missing:
            differ[name] = missing
        elif weights:
            agree.append(name)
    if agree:
        yield Finding("disk", Level.ok, f"{', '.join(agree)}: stream has the weights of cgroups")
    if differ:
        missing = next(iter(differ.values()))
        more = f" and {len(missing) - 1} more" if missing[1:] else ""
        text = f"stream has not the weights of cgroups, as {missing[0]}{more}"
        yield Finding("disk", Level.note, f"{', '.join(differ)}: {text}", enable)
    places = list(_unit_weights(machine)) if under and not differ else []
    if places and not machine.exists(ENABLED):
        more = f" and {len(places) - 1} more places" if places[1:] else ""
        text = f"stream does not look at IOWeight=, as in {places[0]}{more}"
        yield Finding("disk", Level.note, f"{', '.join(under)}: {text}", enable)


# ---- arrays ----


def check_arrays(arrays: Sequence[ArrayState], disks: Sequence[Disk]) -> Iterator[Finding]:
    """Whether the members of each array are coordinated, where they can be."""
    known = {disk.name: disk for disk in disks}
    for array in arrays:
        yield _check_array(array, known)


def _check_array(array: ArrayState, disks: Mapping[str, Disk]) -> Finding:
    what = f"{array.name}: {array.level}"
    device = shlex.quote(f"/dev/{array.name}")
    if not array.coordinable:
        # The reason may begin with the array's name, as the command `array` prints it.
        why = array.why.removeprefix(f"{array.name}: ")
        cannot = "cannot be coordinated" if array.coordinable is False else "may be coordinable"
        return Finding("array", Level.note, f"{what}: {cannot}: {why}")
    members = [disks[name] for name in array.members if name in disks]
    others = [
        name for name in array.members if name not in disks or disks[name].scheduler != STREAM
    ]
    if array.attached:
        if others:
            return Finding(
                "array",
                Level.problem,
                f"{what}: attached, but stream does not schedule {', '.join(others)}",
                "; ".join(_choose(name, STREAM) for name in others),
            )
        return Finding("array", Level.ok, f"{what}: attached, its members are coordinated")
    if members and not any(disk.rotating for disk in members):
        return Finding("array", Level.ok, f"{what}: no member rotates, nothing to coordinate")
    if others:
        return Finding(
            "array",
            Level.note,
            f"{what}: not attached; stream does not schedule {', '.join(others)}",
        )
    return Finding(
        "array",
        Level.problem,
        f"{what}: not attached: each member schedules for itself",
        f"streamsched array attach {device}",
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


def _cell(text: str | None, width: int) -> str:
    shown = printable(text or "?").encode("ascii", "backslashreplace").decode()
    return (shown if len(shown) <= width else shown[: width - 2] + "..").ljust(width)


def disk_lines(disks: Sequence[Disk]) -> Iterator[str]:
    """A table of the disks, at most 80 columns wide."""
    widths = (8, 19, 9, 7, 7, 6, 5)
    heads = ("disk", "model", "     size", "rotates", "zoned", "ranges", "depth")
    yield " ".join(head.ljust(width) for head, width in zip(heads, widths, strict=True)) + " now"
    for disk in disks:
        rotates = {True: "yes", False: "no", None: "?"}[disk.rotating]
        zoned = {"none": "no", "host-managed": "managed", "host-aware": "aware"}
        cells = (
            disk.name,
            disk.model or "-",
            size_text(disk.size_bytes).rjust(9),
            rotates,
            "drive" if disk.drive_managed else zoned.get(disk.zoned or "", disk.zoned),
            f"{disk.access_ranges:>6}",
            f"{'-' if disk.queue_depth is None else disk.queue_depth:>5}",
        )
        line = " ".join(_cell(cell, width) for cell, width in zip(cells, widths, strict=True))
        yield f"{line} {_cell(disk.scheduler or '-', 11)}".rstrip()
