# SPDX-License-Identifier: GPL-2.0-only
"""The bound of a trace: positioning that no order spares, if each request waits for W at most.

Requests come when they came. One is served between its arrival and W later, so that only some of
the others can be the last one before it. Each has one before it, and no two the same: in each
window of arrivals the cheapest assignment is a floor. Reads that some cache may have are left out,
and so are writes where the drive holds them back (docs/research/BOUNDS.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from streamsched._core import lib
from streamsched.base.errors import UsageError
from streamsched.bound.arm import SLACK_NS, Arm, solver
from streamsched.sim.simulate import NS, trace_requests
from streamsched.sim.tasks import Trace
from streamsched.work import tracefile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

WINDOW = 128  # requests whose predecessors are assigned together
MOST_BEFORE = 4096  # that any of them may have; more: the window is left out, which is a floor, too


@dataclasses.dataclass(frozen=True)
class Requests:
    """Of a trace, by arrival."""

    arrival_ns: Ints
    complete_ns: Ints
    sector: Ints
    nr_sectors: Ints
    write: Ints

    def __len__(self) -> int:
        return len(self.arrival_ns)

    @property
    def lasted_s(self) -> float:
        import numpy as np

        return float(np.max(self.complete_ns) - self.arrival_ns[0]) / NS

    @property
    def busy_s(self) -> float:
        """With requests pending, in the recording."""
        import numpy as np

        done = np.maximum.accumulate(self.complete_ns)
        idle = np.maximum(self.arrival_ns[1:] - done[:-1], 0)
        return self.lasted_s - float(idle.sum()) / NS

    @property
    def longest_s(self) -> float:
        """The longest response, in the recording."""
        import numpy as np

        return float(np.max(self.complete_ns - self.arrival_ns)) / NS


def requests_of(trace: Trace, capacity: int, passed: Callable[[float], None]) -> Requests:
    """All of @trace; UsageError if it does not say when they were done."""
    import numpy as np

    name = tracefile.shown(trace.path)
    opened = tracefile.open_trace(trace.path, trace.format, trace.skip_bad)

    def chunks() -> Iterator[tuple[bytes, float]]:
        for chunk, part in opened.chunks():
            passed(part)
            yield chunk, part

    rows = []
    for one in trace_requests(
        opened.format, chunks(), device=trace.device, skip_bad=trace.skip_bad
    ):
        if one.complete_ns == lib.TRACE_NO_TIME:
            raise UsageError(
                f"{name}: does not say when its requests were done; a bound needs completions"
            )
        rows.append((one.arrival_ns, one.complete_ns, one.sector, one.nr_sectors, one.direction))
    if not rows:
        raise UsageError(f"{name}: has no requests")
    found = np.array(rows, dtype=np.int64)
    found = found[np.argsort(found[:, 0], kind="stable")]
    end = int(np.max(found[:, 2] + found[:, 3]))
    if end > capacity:
        raise UsageError(
            f"{name}: has requests up to sector {end}, and the disk has {capacity}; name a larger "
            "one with --disk"
        )
    return Requests(*(found[:, column] for column in range(5)))


class TraceBound:
    """A trace on a disk."""

    def __init__(self, arm: Arm, requests: Requests) -> None:
        import numpy as np

        self.arm, self.requests = arm, requests
        disk = arm.disk
        self.begin = arm.spots(requests.sector)
        self.end = arm.spots(requests.sector + requests.nr_sectors - 1)
        self.counted = self._missed() & (requests.write == 0)
        cached = bool(disk.write_cache_sectors)
        self.written = np.sort(self.begin.cylinder[(requests.write == 1) & cached])

    def _missed(self) -> Any:
        """Which requests no cache can have: nothing else comes shortly before them on the disk."""
        import numpy as np

        disk, requests = self.arm.disk, self.requests
        order = np.lexsort((requests.arrival_ns, requests.sector))
        reach = requests.sector[order] + requests.nr_sectors[order] + disk.segment_sectors
        reach = np.concatenate(([-1], np.maximum.accumulate(reach)[:-1]))
        missed = requests.sector[order] > reach
        if disk.read_behind:
            track = max(disk.zone_sectors_per_track[: disk.nr_zones])
            behind = np.concatenate((requests.sector[order][1:], [2**62]))
            missed &= behind > requests.sector[order] + requests.nr_sectors[order] + track
        found = np.zeros(len(requests), dtype=bool)
        found[order] = missed
        return found

    def _ways(self, rows: Ints, columns: Ints) -> Any:
        """The least positioning of each of @rows after each of @columns."""
        import numpy as np

        to, come = self.begin.cylinder[rows], self.end.cylinder[columns]
        far = np.abs(to[:, None] - come[None, :])
        ways = self.arm.least_seek_ns(np.maximum(far - self.arm.drift, 0))
        ways[rows[:, None] == columns[None, :]] = 1e15
        if len(self.written):
            # What the drive writes out by itself may have taken the head anywhere near.
            at = np.searchsorted(self.written, to)
            above = self.written[np.minimum(at, len(self.written) - 1)]
            below = self.written[np.maximum(at - 1, 0)]
            near = np.minimum(np.abs(above - to), np.abs(below - to))
            free = self.arm.least_seek_ns(np.maximum(near - self.arm.drift, 0))
            ways = np.minimum(ways, free[:, None])
        return ways

    def floor_s(self, wait_s: float, passed: Callable[[float], None]) -> float:
        """Seconds of positioning that no order spares in which no request waits for longer."""
        import numpy as np

        arrival, wait_ns = self.requests.arrival_ns, int(wait_s * NS)
        counted, total = np.flatnonzero(self.counted), 0.0
        for begin in range(0, len(counted), WINDOW):
            passed(begin / len(counted))
            rows = counted[begin : begin + WINDOW]
            # Served before all of @rows for certain: what precedes it cannot be next to them.
            surely = int(np.searchsorted(arrival, arrival[rows[0]] - wait_ns, side="left")) - 1
            first = 0
            if surely >= 0:
                first = int(np.searchsorted(arrival, arrival[surely] - wait_ns, side="left"))
            last = int(np.searchsorted(arrival, arrival[rows[-1]] + wait_ns, side="right"))
            if last - first > MOST_BEFORE:
                continue
            columns = np.arange(first, last)
            # The first request of all has none before it.
            alone = np.full((len(rows), 1), 0.0 if surely < 0 else 1e15)
            costs = np.hstack((self._ways(rows, columns), alone))
            assigned = solver().linear_sum_assignment(costs)
            total += float(np.maximum(costs[assigned] - SLACK_NS, 0.0).sum())
        passed(1.0)
        return total / NS
