# SPDX-License-Identifier: GPL-2.0-only
"""Where an array has a process's blocks: the bound's program is then of its mean member.

Members are alike. Each row of the program holds on every member, so it holds for the mean of all:
a process's bytes there are a known part of its bytes, in one region of the member
(docs/research/BOUNDS.md).
"""

from __future__ import annotations

import dataclasses

from streamsched.base.errors import UsageError
from streamsched.sim.simulate import Setup


@dataclasses.dataclass(frozen=True)
class Spread:
    """Of a disk or an array; the former is an array of one."""

    members: int = 1
    copies: int = 1  # of each block, on as many members
    chunk: int = 0  # sectors; 0: a member has all, at the same places
    row: int = 1  # chunks of data in a row of the members
    room: int = 1  # chunks of a member that a row takes
    half: int = 0  # sectors from a block's first copy to its second, in the member's other half

    @property
    def whole(self) -> bool:
        """What follows on the array follows on a member, and only there; no parity is between."""
        return self.copies == 1 and self.row == self.members

    def region(self, first: int, end: int) -> tuple[int, int]:
        """The sectors of a member that have those from @first until before @end."""
        if not self.chunk:
            return first, end
        row = self.chunk * self.row
        stride = self.chunk * self.room
        return first // row * stride, -(-end // row) * stride + self.half

    def thin(self, first: int, end: int) -> bool:
        """Some member may have nothing of it, or next to nothing."""
        return bool(self.chunk) and end - first < 2 * self.chunk * self.row

    def part(self, reads: bool) -> float:
        """How much of what is read, or of the data that is written, the mean member moves."""
        return (1 if reads else self.copies) / self.members


ONE_DISK = Spread()


def spread_of(setup: Setup) -> Spread:
    """Of its disk or array; UsageError where nothing is proved."""
    array = setup.array
    if array is None:
        return ONE_DISK
    if array.level == "linear":
        raise UsageError("linear: the bound is proved for stripes and mirrors, which use all disks")
    if array.failed is not None:
        raise UsageError(f"{array}: the bound is proved for arrays that have all their members")
    if any(disk != setup.disk for disk in setup.members):
        raise UsageError(f"{array}: the bound is proved for arrays of disks that are alike")
    members, chunk = array.members, array.chunk_sectors
    if array.level == "raid1":
        return Spread(members, members)
    if array.level != "raid10":
        return Spread(members, 1, chunk, array.data_members)
    if array.layout == "far":
        return Spread(members, 2, chunk, members, half=setup.disk.capacity_sectors // 2)
    # As many chunks as there are members take two of each, with their copies.
    return Spread(members, 2, chunk, members, 2)
