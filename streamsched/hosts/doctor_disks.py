# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched doctor`: the disks, weights of cgroups, and the arrays that stand on disks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from streamsched.hosts import cgroups
from streamsched.hosts.device import STREAM
from streamsched.hosts.disks import LEAST_REQUESTS, ArrayState, Disk
from streamsched.hosts.doctor_finding import Finding, note, ok, problem
from streamsched.hosts.machine import Machine

ACTUATORS = 2  # that are scheduled apart: SS_HEADS
DRIVE_MANAGED = (
    "drive-managed SMR: the drive rewrites its zones when it chooses, and a request may then wait "
    "for seconds under any scheduler; stream was not measured on such a drive"
)


def _set(disk: str, attribute: str, value: str | int) -> str:
    return f"echo {value} > {shlex.quote(f'/sys/block/{disk}/queue/{attribute}')}"


def check_disks(disks: Sequence[Disk], has_module: bool) -> Iterator[Finding]:
    """What there is to say of each disk; @has_module: stream can be chosen, or is loaded then."""
    if not disks:
        yield note("no disk was found in /sys/block")
    elif not any(disk.rotating for disk in disks):
        yield note("no disk rotates: stream has no seeks to save here")
    for disk in disks:
        yield _use(disk, has_module)
        if disk.access_ranges > ACTUATORS and disk.rotating:
            what = f"{disk.access_ranges} actuators (independent access ranges)"
            yield note(f"{disk.name}: {what}; stream schedules more than two as one head")
        if disk.drive_managed:
            yield note(f"{disk.name}: {DRIVE_MANAGED}")
        few = disk.nr_requests is not None and disk.nr_requests < LEAST_REQUESTS
        if disk.scheduler == STREAM and disk.queue_depth == 1 and few:
            has = f"has nr_requests {disk.nr_requests}, too few to choose from"
            how = _set(disk.name, "nr_requests", LEAST_REQUESTS)
            yield note(f"{disk.name}: takes one command at a time, and {has}", how)


def _use(disk: Disk, has_module: bool) -> Finding:
    """The scheduler that it has, and whether that is right."""
    under = f"{disk.name}: {disk.scheduler or 'no scheduler'}"
    mine = disk.scheduler == STREAM
    if disk.rotating is None:
        return note(f"{under}; whether it rotates is not known")
    if not mine and not disk.rotating:
        return ok(f"{under}; solid state, nothing for stream to do")
    if not mine and disk.zoned != "none":
        zoned = disk.zoned or "it is not known whether zoned"
        return ok(f"{under}; zoned ({zoned}), not for stream")
    if not mine:
        can = has_module or STREAM in disk.schedulers
        how = _set(disk.name, "scheduler", STREAM) if can else None
        return note(f"{under}; stream is not in use", how)
    if not disk.rotating and disk.curve_learned is not True:
        return ok(f"{under}; solid state, only the inner policy is in use")
    if disk.zoned not in ("none", None):
        what = f"{under}, on a zoned disk ({disk.zoned}), for which it is not meant"
        return note(what, _set(disk.name, "scheduler", "mq-deadline"))
    if disk.curve_learned is None:
        return note(f"{under}; its service curve cannot be read")
    if not disk.curve_learned:
        advice = "The disk's own is learned while it serves requests."
        return note(f"{under}; the service curve is still the generic one", advice=advice)
    return ok(f"{under}; the service curve is learned, or was written")


# ---- weights ----

FOLLOWS = "streamsched-weights.service"
ENABLE = f"systemctl enable --now {FOLLOWS}"
UNITS = ("/etc/systemd/system", "/etc/systemd/system.control", "/run/systemd/system")
UNIT_WEIGHT = re.compile(r"\s*(Startup)?(IO|BlockIO)(Device)?Weight\s*=\s*[^\s]")


def _first(places: Sequence[str], more: str) -> str:
    return places[0] + (f" and {len(places) - 1} {more}" if places[1:] else "")


def check_weights(machine: Machine, disks: Sequence[Disk]) -> Iterator[Finding]:
    """Whether stream has the weights of io.weight, which it does not look at itself."""
    under = [disk.name for disk in disks if disk.scheduler == STREAM]
    top = cgroups.hierarchy(machine) if under else None
    weighted = cgroups.weighted(machine, top) if top else []
    missing: dict[str, list[str]] = {}  # by disk with weights, those that it has not
    for name in under:
        device, has = machine.text(f"/sys/block/{name}/dev"), cgroups.weights_of(machine, name)
        due = [(one, one.on(device)) for one in weighted if one.on(device) != cgroups.USUAL]
        lacks = [(one, weight) for one, weight in due if has.get(one.path) != weight]
        if due:
            missing[name] = [f"{weight} in {top}{one.path}/{one.file}" for one, weight in lacks]
    agree = [name for name, places in missing.items() if not places]
    differ = [name for name, places in missing.items() if places]
    if agree:
        yield ok(f"{', '.join(agree)}: stream has the weights of cgroups")
    if differ:
        text = f"stream has not the weights of cgroups, as {_first(missing[differ[0]], 'more')}"
        yield note(f"{', '.join(differ)}: {text}", ENABLE)
    # A unit may give a weight to a cgroup that is not there now.
    places = [
        f"{file}:{number}"
        for folder in (UNITS if under and not differ else ())
        for file in machine.files_below(folder)
        for number, line in enumerate(machine.lines(file), 1)
        if UNIT_WEIGHT.match(line)
    ]
    if places and not machine.exists(f"{UNITS[0]}/multi-user.target.wants/{FOLLOWS}"):
        text = f"stream does not look at IOWeight=, as in {_first(places, 'more places')}"
        yield note(f"{', '.join(under)}: {text}", ENABLE)


# ---- arrays ----


def check_arrays(arrays: Sequence[ArrayState], disks: Sequence[Disk]) -> Iterator[Finding]:
    """Whether the members of each array are coordinated, where they can be."""
    return (_check_array(array, {disk.name: disk for disk in disks}) for array in arrays)


def _check_array(array: ArrayState, disks: dict[str, Disk]) -> Finding:
    what = f"{array.name}: {array.level}"
    if not array.coordinable:
        # The reason may begin with the array's name, as the command `array` prints it.
        why = array.why.removeprefix(f"{array.name}: ")
        cannot = "cannot be coordinated" if array.coordinable is False else "may be coordinable"
        return note(f"{what}: {cannot}: {why}")
    members = {name: disks.get(name) for name in array.members}
    others = [name for name, disk in members.items() if not disk or disk.scheduler != STREAM]
    without = f"stream does not schedule {', '.join(others)}"
    if array.attached and others:
        how = "; ".join(_set(name, "scheduler", STREAM) for name in others)
        return problem(f"{what}: attached, but {without}", how)
    if array.attached:
        return ok(f"{what}: attached, its members are coordinated")
    known = [disk for disk in members.values() if disk]
    if known and not any(disk.rotating for disk in known):
        return ok(f"{what}: no member rotates, nothing to coordinate")
    if others:
        return note(f"{what}: not attached; {without}")
    how = f"streamsched array attach {shlex.quote(f'/dev/{array.name}')}"
    return problem(f"{what}: not attached: each member schedules for itself", how)
