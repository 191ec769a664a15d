# SPDX-License-Identifier: GPL-2.0-only
"""A disk of one arm as the bounds see it: where sectors are, and the least that a way costs.

The same geometry as disk/hdd_geometry.c, for many sectors at once. Times are in ns, as floats:
a sector's angle is off by some ns, which SLACK_NS allows for.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from typing import TYPE_CHECKING, Any

from streamsched.base.errors import StreamschedError, UsageError, install
from streamsched.sim.diskfile import Disk

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

MECHANICAL = 0  # HDD_KIND_MECHANICAL
READ_MISS, READ_HIT, WRITE_MISS, WRITE_HIT, CLASSES = range(5)  # enum hdd_class
SLACK_NS = 100
NEAR, FAR = 512, 1024  # HDD_SEEK_NEAR, HDD_SEEK_FAR


def _no_solver() -> StreamschedError:
    return StreamschedError(f"bound needs scipy, which is not installed: {install('bound')}")


def check_solver() -> None:
    """StreamschedError without scipy. Its import takes longer than many a refusal."""
    if importlib.util.find_spec("scipy") is None:
        raise _no_solver()


def solver() -> Any:
    """scipy.optimize, whose linear programs HiGHS solves."""
    try:
        import scipy.optimize
    except ImportError:
        raise _no_solver() from None
    return scipy.optimize


@dataclasses.dataclass(frozen=True)
class Spots:
    """Where sectors are: a row of each array for each sector."""

    cylinder: Ints
    head: Ints
    angle_ns: Floats  # of the sector's begin, how long after the index mark


@dataclasses.dataclass(frozen=True)
class Arm:
    """Of one disk."""

    disk: Disk

    def __post_init__(self) -> None:
        disk = self.disk
        if disk.kind != MECHANICAL:
            raise UsageError(f"{disk.name}: has no arm, and a bound is about an arm's ways")
        if disk.actuators > 1:
            raise UsageError(f"{disk.name}: has two arms, and the bound is proved for one")
        if disk.media_sectors:
            raise UsageError(
                f"{disk.name}: moves what is written (shingled), and the bound is proved for disks "
                "where a sector has one place"
            )

    @functools.cached_property
    def _zones(self) -> tuple[Ints, Ints, Ints, Floats, Floats]:
        """First sector and cylinder, sectors per track, start angle and that of a cylinder."""
        import numpy as np

        disk = self.disk
        cylinders = np.array(disk.zone_cylinders[: disk.nr_zones], dtype=np.int64)
        per_track = np.array(disk.zone_sectors_per_track[: disk.nr_zones], dtype=np.int64)
        sectors = cylinders * per_track * disk.surfaces
        step = (disk.track_skew_ns * (disk.surfaces - 1) + disk.cylinder_skew_ns) % disk.rotation_ns
        begin = np.concatenate(([0], np.cumsum(cylinders * step)[:-1])) % disk.rotation_ns
        return (
            np.concatenate(([0], np.cumsum(sectors)[:-1])),
            np.concatenate(([0], np.cumsum(cylinders)[:-1])),
            per_track,
            begin.astype(float),
            np.full(len(cylinders), float(step)),
        )

    def spots(self, sectors: Ints) -> Spots:
        """Where @sectors are."""
        import numpy as np

        first, first_cylinder, per_track, begin, step = self._zones
        disk = self.disk
        zone = np.searchsorted(first, sectors, side="right") - 1
        within = sectors - first[zone]
        in_cylinder = per_track[zone] * disk.surfaces
        cylinder, rest = within // in_cylinder, within % in_cylinder
        head, sector = rest // per_track[zone], rest % per_track[zone]
        angle = (
            begin[zone]
            + cylinder * step[zone]
            + head * disk.track_skew_ns
            + sector * (disk.rotation_ns / per_track[zone])
        ) % disk.rotation_ns
        return Spots(first_cylinder[zone] + cylinder, head, angle)

    def cylinder(self, sector: int) -> int:
        """Of one sector; behind the last one that of the last."""
        import numpy as np

        last = min(max(sector, 0), self.disk.capacity_sectors - 1)
        return int(self.spots(np.array([last], dtype=np.int64)).cylinder[0])

    @functools.cached_property
    def _seeks(self) -> tuple[Floats, Floats]:
        """The model's table: each short way, steps of long ones (hdd_tabulate_seeks())."""
        import numpy as np

        disk, shift = self.disk, 0
        cylinders = sum(disk.zone_cylinders[: disk.nr_zones])
        while cylinders >> shift >= FAR:
            shift += 1
        far = np.arange(FAR + 2, dtype=np.int64) << shift
        at = np.concatenate((np.arange(NEAR), far[far >= NEAR])).astype(float)
        nr = disk.nr_seek_points
        times = np.interp(at, disk.seek_cylinders[:nr], disk.seek_ns[:nr])
        times[0] = 0.0
        if not far[far == NEAR].size:
            # The line to the first step behind begins at the step before.
            before = np.max(far[far < NEAR])
            begin, end = np.interp(
                [before, before + (1 << shift)], disk.seek_cylinders[:nr], disk.seek_ns[:nr]
            )
            part = (NEAR - before) / (1 << shift)
            at = np.insert(at, NEAR, NEAR)
            times = np.insert(times, NEAR, (begin if before else 0.0) * (1 - part) + end * part)
        return at, np.floor(times)

    def seek_ns(self, cylinders: Any) -> Any:
        """The arm's way over so many cylinders; 0 of none."""
        import numpy as np

        return np.interp(np.asarray(cylinders, dtype=float), *self._seeks)

    def least_seek_ns(self, cylinders: Any) -> Any:
        """No way over so many cylinders or more takes less; recorded tables may fall a little."""
        import numpy as np

        at, times = self._seeks
        least = np.minimum.accumulate(times[::-1])[::-1]
        return np.interp(np.asarray(cylinders, dtype=float), at, least)

    def sector_ns(self, begin: int, end: int) -> float:
        """A sector under the head, in the fastest zone between two sectors, without skews."""
        first, _, per_track, _, _ = self._zones
        import numpy as np

        low = int(np.searchsorted(first, begin, side="right")) - 1
        high = max(low + 1, int(np.searchsorted(first, max(end, begin + 1), side="left")))
        return float(self.disk.rotation_ns / np.max(per_track[low:high]))

    def running_ns(self, begin: int, end: int) -> float:
        """The same with the skews between tracks: a sector of many that follow each other."""
        first, _, per_track, _, _ = self._zones
        import numpy as np

        low = int(np.searchsorted(first, begin, side="right")) - 1
        high = max(low + 1, int(np.searchsorted(first, max(end, begin + 1), side="left")))
        return float((self.disk.rotation_ns + self.skew_ns) / np.max(per_track[low:high]))

    @functools.cached_property
    def drift(self) -> int:
        """Cylinders that reading ahead, or a request's length, may take the head on."""
        disk = self.disk
        cylinder = disk.surfaces * min(disk.zone_sectors_per_track[: disk.nr_zones])
        return int((disk.readahead_sectors + 2048) // cylinder + 2)

    @property
    def skew_ns(self) -> float:
        """The smallest skew between two tracks that follow each other."""
        disk = self.disk
        if disk.surfaces == 1:
            return disk.cylinder_skew_ns
        return min(disk.track_skew_ns, disk.cylinder_skew_ns)

    def overhead_ns(self, kind: int) -> float:
        """The controller's least time for a command of this class."""
        return min(self.disk.overhead_ns[kind], self.disk.overhead_ns[kind + CLASSES])
