# SPDX-License-Identifier: GPL-2.0-only
"""What work runs on, and under which policies: disks, arrays, what schedulers see."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from streamsched.base.errors import UsageError
from streamsched.sim.array import Array, parse_array
from streamsched.sim.diskfile import Disk, is_path, load_disk
from streamsched.sim.policies import check_spec, names_in, refuse_twice, spec_of, with_settings
from streamsched.sim.simulate import Setup, check_depth
from streamsched.sim.workloads import WORKLOADS

# A disk as shared machines have it now, with as many commands in it as it takes.
DEFAULT_DISK = "exos-x18"
DEFAULT_POLICIES = "noop,deadline,cfq,stream:deadline"
DEFAULT_OWNERS = "none"
# A machine of the papers has one command in the disk.
PAPERS_DEPTH = 1
DEPTH = "--queue-depth"


@dataclasses.dataclass(frozen=True)
class Storage:
    """What the work runs on: a disk, or disks put together."""

    disk: Disk
    array: Array | None = None
    disks: tuple[Disk, ...] = ()

    def __str__(self) -> str:
        if self.array is None:
            return self.disk.name
        names = dict.fromkeys(one.name for one in self.members)
        return f"{self.array} of {', '.join(names)}"

    def apply(self, setup: Setup) -> Setup:
        """@setup on this."""
        return dataclasses.replace(setup, disk=self.disk, array=self.array, disks=self.disks)

    @property
    def members(self) -> tuple[Disk, ...]:
        """Every description that there is."""
        return self.disks or (self.disk,)

    @property
    def capacity_bytes(self) -> int:
        return self.apply(Setup(self.disk, "noop")).capacity_bytes


@dataclasses.dataclass(frozen=True)
class Place:
    """On what, and seen how: --disk, --array, --owners and --queue-depth, None where not given."""

    disk: Disk | str | None = None
    array: str | None = None
    owners: str | None = None
    queue_depth: int | None = None

    def of(self, work: str) -> Place:
        """With what the workload @work brings along: what it was measured on by its authors."""
        workload = WORKLOADS.get(work)
        if workload is None:
            return self
        own = self.disk is None
        return Place(
            self.disk or workload.disk,
            self.array or workload.array,
            self.owners or workload.owners,
            PAPERS_DEPTH if own and self.queue_depth is None else self.queue_depth,
        )

    @property
    def seen(self) -> str:
        """What schedulers see of who sent a request."""
        return self.owners or DEFAULT_OWNERS

    def storage(self) -> tuple[Storage, int]:
        """The disks, and how many commands each has at once, checked."""
        disk = self.disk or DEFAULT_DISK
        if isinstance(disk, Disk):
            array = parse_array(self.array) if self.array else None
            return self._with_depth(Storage(disk, array))
        names = [name.strip() for name in disk.split(",")]
        if len(names) > 1 and not all(names):
            raise UsageError(f"--disk {disk}: a name is missing beside a comma")
        if self.array is None:
            if len(names) > 1:
                raise UsageError(f"--disk {disk}: several disks need --array, as in raid0:5:64k")
            return self._with_depth(Storage(load_disk(disk)))
        described = parse_array(self.array)
        if len(names) not in (1, described.members):
            raise UsageError(
                f"--disk {disk}: name one disk, or each of the {described.members} of --array "
                f"{self.array}; these are {len(names)}"
            )
        disks = tuple(load_disk(name) for name in names)
        return self._with_depth(Storage(disks[0], described, disks if len(disks) > 1 else ()))

    def _with_depth(self, storage: Storage) -> tuple[Storage, int]:
        if not storage.capacity_bytes:  # also refuses what cannot be put together
            raise UsageError(f"--array {self.array}: has no room")
        if self.queue_depth is None:
            return storage, min(disk.queue_depth for disk in storage.members)
        check_depth(self.queue_depth, storage.members, DEPTH)
        return storage, self.queue_depth


def files_of(disk: str | None) -> list[str]:
    """The files that --disk names."""
    return [name.strip() for name in (disk or "").split(",") if is_path(name.strip())]


def specs_of(policies: str) -> list[str]:
    """The policies that --policy names, checked, without settings of their own."""
    specs = names_in(policies, "noop,stream:deadline")
    for spec in specs:
        if spec_of(spec)[1]:
            raise UsageError(f"--policy {spec}: no settings in brackets here")
        check_spec(spec)
    refuse_twice(policies, specs)
    return specs


def setups_of(
    disk: Disk, policies: str, owners: str, depth: int, settings: Sequence[str], curve: str
) -> list[Setup]:
    """One simulation for each policy, with @settings and those in its own brackets."""
    names = names_in(policies, "noop,stream:deadline")
    refuse_twice(policies, names)
    found = with_settings(names, list(settings))
    return [
        Setup(
            disk,
            spec,
            owners=owners,
            queue_depth=depth,
            tunables=tunables,
            curve=curve,
            label="" if name == spec else name,
        )
        for name, (spec, tunables) in zip(names, found, strict=True)
    ]
