# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched weights`: gives the disks under stream the weights that io.weight says.

It looks at all cgroups again and again, and changes what differs from its last look. What somebody
else has written for a cgroup with the usual io.weight is left alone.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence

from streamsched.base.errors import StreamschedError, UsageError, printable
from streamsched.base.signals import until_stopped
from streamsched.hosts.cgroups import USUAL, Cgroup, has_io, hierarchy, inode_of, weighted
from streamsched.hosts.machine import Machine

STEP_S = 0.5  # how soon a signal ends it
NO_CGROUPS = "cgroup v2 is not mounted at /sys/fs/cgroup: there are no weights to follow"
NO_IO = (
    "the controller io is not enabled at the cgroups' root (cgroup.subtree_control): weights have "
    "no effect"
)
NO_DISK = "no disk of this machine is scheduled by stream"
NO_ROOT = "only root can set weights; run this as root"


@dataclasses.dataclass(frozen=True)
class Row:
    """A weight that was set, and for which disks."""

    cgroup: str
    weight: int
    disks: tuple[str, ...]


@dataclasses.dataclass
class _Disk:
    """A disk under stream, since it came under it."""

    name: str
    inode: int  # of its file: another one as soon as its scheduler was another
    device: str  # MAJOR:MINOR
    # By cgroup: its inode and its weight.
    wanted: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    given: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    refused: set[str] = dataclasses.field(default_factory=set)


def _file(disk: str) -> str:
    return f"/sys/block/{disk}/queue/iosched/cgroup_weights"


class Follower:
    """Remembers what it has set; @say is told each change."""

    def __init__(self, machine: Machine, say: Callable[[str], None]) -> None:
        self._machine, self._say = machine, say
        self._disks: dict[str, _Disk] = {}
        self._told = ""

    def look(self) -> str | None:
        """Set what has changed since the last time; why nothing can be done, if so."""
        machine = self._machine
        top = hierarchy(machine)
        if top is None:
            raise UsageError(NO_CGROUPS)
        self._disks = {disk.name: disk for disk in self._under_stream()}
        enabled = has_io(machine, top)
        cgroups = weighted(machine, top) if self._disks and enabled else []
        for disk in self._disks.values():
            self._follow(disk, top, cgroups)
        return NO_IO if not enabled else None if self._disks else NO_DISK

    def wait(self) -> None:
        """Look; say once why it has to be waited."""
        why = self.look() or ""
        if why and why != self._told:
            self._say(f"{why}; waiting")
        self._told = why

    @property
    def refused(self) -> bool:
        """Whether the kernel did not take a weight."""
        return any(disk.refused for disk in self._disks.values())

    def rows(self) -> list[Row]:
        """What is set now."""
        found: dict[tuple[str, int], list[str]] = {}
        for disk in self._disks.values():
            for path, (_, weight) in disk.given.items():
                found.setdefault((path, weight), []).append(disk.name)
        return [Row(*key, tuple(disks)) for key, disks in sorted(found.items())]

    def _under_stream(self) -> Iterator[_Disk]:
        for name in self._machine.names("/sys/block"):
            inode = self._inode(name)
            if inode is None:  # only stream has the file
                continue
            known = self._disks.get(name)
            if known is None or known.inode != inode:
                known = _Disk(name, inode, self._machine.text(f"/sys/block/{name}/dev"))
            yield known

    def _inode(self, disk: str) -> int | None:
        try:
            return os.stat(self._machine.path(_file(disk))).st_ino  # noqa: PTH116 - as os.open()
        except OSError:
            return None

    def _follow(self, disk: _Disk, top: str, cgroups: Sequence[Cgroup]) -> None:
        wanted = {
            one.path: (one.inode, one.on(disk.device))
            for one in cgroups
            # The kernel takes the blank at a name's end for none of it.
            if one.on(disk.device) != USUAL and not one.path.endswith(" ")
        }
        if wanted != disk.wanted:  # there may be room now
            disk.wanted = wanted
            disk.refused.clear()
        # First what makes room.
        for path in [path for path in disk.given if path not in wanted]:
            if path not in disk.refused and self._write(
                disk, top, path, disk.given[path][0], "default"
            ):
                del disk.given[path]
        for path, (inode, weight) in wanted.items():
            if disk.given.get(path) == (inode, weight) or path in disk.refused:
                continue
            if self._write(disk, top, path, inode, str(weight)):
                disk.given[path] = inode, weight

    def _write(self, disk: _Disk, top: str, path: str, inode: int, weight: str) -> bool:
        """Whether the cgroup has it now; or is gone, and so its weight, if that is "default"."""
        there = inode_of(self._machine, top, path) == inode
        if not there:
            return weight == "default"
        file = self._machine.path(_file(disk.name))
        try:
            to = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            try:
                os.write(to, os.fsencode(f"{path} {weight}\n"))
            finally:
                os.close(to)
        except PermissionError:
            raise UsageError(f"no permission to change {file}; run this as root") from None
        except OSError as error:
            gone = inode_of(self._machine, top, path) != inode
            if gone or self._inode(disk.name) != disk.inode:
                return False
            disk.refused.add(path)
            full = error.errno == errno.ENOSPC
            self._say(
                f"{disk.name}: the kernel refuses the weight {weight} of {printable(path)}: "
                f"{'it has no room for more weights' if full else error.strerror}"
            )
            return False
        says = "the usual weight" if weight == "default" else f"the weight {weight}"
        self._say(f"{disk.name}: {printable(path)} has {says}")
        return True


def as_table(rows: Sequence[Row]) -> str:
    """For people."""
    if not rows:
        return f"no cgroup has a weight other than {USUAL}\n"
    cells = [("cgroup", "weight", "disks")]
    cells += [(printable(row.cgroup), str(row.weight), ", ".join(row.disks)) for row in rows]
    width = max(len(cgroup) for cgroup, _, _ in cells)
    return "".join(f"{cgroup:<{width}}  {weight:>6}  {disks}\n" for cgroup, weight, disks in cells)


def check_root() -> None:
    """UsageError for others."""
    if os.geteuid() != 0:
        raise UsageError(NO_ROOT)


def once(machine: Machine) -> str:
    """Set all weights; the table of them. StreamschedError if the kernel refuses one."""
    said: list[str] = []
    follower = Follower(machine, said.append)
    why = follower.look()
    if why:
        raise UsageError(why)
    if follower.refused:
        raise StreamschedError(next(line for line in said if "refuses" in line))
    return as_table(follower.rows())


def serve(machine: Machine, interval_s: float) -> None:
    """Follow until SIGINT, SIGTERM or SIGHUP. The weights stay."""
    follower = Follower(machine, lambda line: print(line, flush=True))
    with until_stopped() as running:
        due = time.monotonic()
        while running():
            if time.monotonic() >= due:
                follower.wait()
                due = time.monotonic() + interval_s
            time.sleep(max(min(STEP_S, due - time.monotonic()), 0))
