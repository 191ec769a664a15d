# SPDX-License-Identifier: GPL-2.0-only
"""Weights of cgroups (version 2): what systemd and libvirt write, and what stream has.

systemd's IOWeight= and libvirt's blkiotune write a cgroup's io.weight, io.bfq.weight or both:
"default N", and "MAJOR:MINOR N" for one device. `stream` has lines "CGROUP N" for each disk.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping

from streamsched.base.units import whole_number
from streamsched.hosts.machine import Machine

USUAL = 100
# Beside the hierarchies of version 1 systemd mounts it in the second place.
MOUNTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
FILES = ("io.weight", "io.bfq.weight")
PLAIN = (b"", b"default 100\n")
MOST_BYTES = 1 << 16
NO_FOLDERS = 2  # links of a folder without others in it; some file systems always have one


@dataclasses.dataclass(frozen=True)
class Cgroup:
    """A cgroup with another weight than the usual one."""

    path: str  # as in /proc/PID/cgroup
    inode: int  # a cgroup of the same name made later has another
    file: str  # of FILES
    weight: int
    of_device: Mapping[str, int] = dataclasses.field(hash=False)  # where one has another weight

    def on(self, device: str) -> int:
        """Its weight on the device MAJOR:MINOR."""
        return self.of_device.get(device, self.weight)


def hierarchy(machine: Machine) -> str | None:
    """Where version 2 is mounted, if it is."""
    return next((one for one in MOUNTS if machine.exists(f"{one}/cgroup.controllers")), None)


def has_io(machine: Machine, top: str) -> bool:
    """Without the controller at the root no request has a cgroup."""
    return "io" in machine.text(f"{top}/cgroup.subtree_control").split()


def inode_of(machine: Machine, top: str, path: str) -> int | None:
    """The number of a cgroup; None if there is none of this name."""
    try:
        return machine.path(f"{top}{path}").stat().st_ino
    except OSError:
        return None


def _content(path: str) -> bytes:
    """Of a cgroup's file; empty if the cgroup is gone, or has none such."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, MOST_BYTES)
    except OSError:
        return b""
    finally:
        os.close(file)


def _parse(text: str) -> tuple[int, dict[str, int]]:
    """The weight, and those of devices."""
    weight, of_device = USUAL, {}
    for line in text.splitlines():
        *name, number = line.split() or [""]
        value = whole_number(number)
        if value and name in ([], ["default"]):
            weight = value
        elif value:
            of_device[name[0]] = value
    return weight, of_device


def _folders(top: str) -> Iterator[tuple[str, int]]:
    """The cgroups below the root, and their numbers. Those that go meanwhile are left out."""
    left = [""]
    while left:
        path = left.pop()
        try:
            about = os.stat(top + path)  # noqa: PTH116 - looked at once a second
            if path:
                yield path, about.st_ino
            if about.st_nlink != NO_FOLDERS:
                with os.scandir(top + path) as entries:
                    left += [
                        f"{path}/{one.name}" for one in entries if one.is_dir(follow_symlinks=False)
                    ]
        except OSError:
            continue


def weighted(machine: Machine, top: str) -> list[Cgroup]:
    """The cgroups with another weight than the usual one, in order.

    Where io.weight says nothing io.bfq.weight counts: without systemd libvirt writes it alone.
    """
    root = str(machine.path(top))
    found = []
    files: list[str] = []  # the kernel's: where one cgroup has them all have
    for path, inode in _folders(root):
        if not files:
            files = [file for file in FILES if _content(f"{root}{path}/{file}")]
        for file in files:
            content = _content(f"{root}{path}/{file}")
            if content in PLAIN:
                continue
            weight, of_device = _parse(content.decode(errors="replace"))
            if weight != USUAL or of_device:
                found.append(Cgroup(path, inode, file, weight, of_device))
                break
    return sorted(found, key=lambda one: one.path)


def weights_of(machine: Machine, disk: str) -> dict[str, int]:
    """What stream has for @disk: the weights by the cgroups' paths."""
    lines = machine.lines(f"/sys/block/{disk}/queue/iosched/cgroup_weights")
    pairs = (line.rpartition(" ") for line in lines)
    return {path: whole_number(weight) or USUAL for path, _, weight in pairs if path}
