# SPDX-License-Identifier: GPL-2.0-only
"""What a run's requests show over time: head positions, seeks, queue depth, throughput.

From the simulator's rows (struct sim_log_row), for pictures: long series are thinned out, but keep
their extremes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsched._core import ffi

Array = NDArray[Any]

# So many points a panel has at most, of all policies together.
MOST = 20_000
INTERVALS = 200  # of the throughput over time
STEPS = 4  # of seek distances, to each power of two
GOLDEN = 0.6180339887  # its multiples, without the whole parts, are spread evenly


@dataclass(frozen=True)
class Series:
    """Of one run; times in ns, places in sectors, in the order of service."""

    rows: Array  # those that are drawn, with columns of struct sim_log_row
    all_rows: int
    parties: dict[int, int]  # of all rows: enum sim_party, and so many requests
    distances: Array  # upper ends
    within: Array  # the part of the requests with seeks no longer
    queue_ns: Array
    queue: Array  # requests sent and not done, from then on
    all_queue: int
    interval_ns: int
    rate: Array  # bytes a second of the disks, in each interval


def _edges(keys: tuple[Array, ...]) -> Array:
    """Where a group of equal keys begins, or ends: first and last of each."""
    nr = len(keys[0])
    changes = np.zeros(nr + 1, bool)
    changes[0] = changes[nr] = True
    for key in keys:
        changes[1:nr] |= key[1:] != key[:-1]
    return changes[:-1] | changes[1:]


def extremes(time: Array, value: Array, group: Array, most: int) -> Array:
    """About @most of the points, in order of @time.

    Of each group, in each of many equal intervals, those with the least and the greatest value.
    """
    order = np.argsort(time, kind="stable")
    if len(order) <= most:
        return order
    span = int(time.max() - time.min()) + 1
    rank = np.unique(group, return_inverse=True)[1]
    intervals = most
    while True:
        width = -(-span // intervals)
        # Intervals of different groups end at different times: else gaps would seem to be there.
        part = (time - time.min() + (rank * GOLDEN % 1 * width).astype(np.int64)) // width
        by = np.lexsort((value, part, group))
        kept = by[_edges((group[by], part[by]))]
        if len(kept) <= most or intervals == 1:
            return kept[np.argsort(time[kept], kind="stable")]
        intervals = max(1, min(intervals * 3 // 4, intervals * most // len(kept)))


def thinned(time: Array, value: Array, group: Array, most: int) -> Array:
    """As extremes(), for points that are dense where there are many: three of four by lot."""
    if len(time) <= most:
        return extremes(time, value, group, most)
    ends = extremes(time, value, group, most // 4)
    rest = np.setdiff1d(np.arange(len(time)), ends)
    lots = np.random.default_rng(0).choice(rest, most - min(most, len(ends)), replace=False)
    kept = np.concatenate([ends, lots])
    return kept[np.argsort(time[kept], kind="stable")]


def _distances(rows: Array) -> Array:
    """How far from the end of a disk's last request each begins, in order of service."""
    found = []
    for disk in np.unique(rows["disk"]):
        of = rows[rows["disk"] == disk]
        start = of["sector"].astype(np.int64)
        found.append(np.abs(start[1:] - start[:-1] - of["nr_sectors"][:-1]))
    return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _within(distances: Array) -> tuple[Array, Array]:
    """The distribution of @distances, which are sorted, as upper ends and parts."""
    if not len(distances):
        return np.zeros(0, np.int64), np.zeros(0)
    octaves = int(distances[-1]).bit_length()
    ends = np.unique(np.concatenate([[0], 2 ** (np.arange(octaves * STEPS + 1) / STEPS)]).round())
    ends = ends.astype(np.int64)
    return ends, np.searchsorted(distances, ends, side="right") / len(distances)


def _queue(rows: Array) -> tuple[Array, Array]:
    """Times at which the number of requests that are not done changes, and that number."""
    times = np.concatenate([rows["arrival_ns"], rows["complete_ns"]]).astype(np.int64)
    change = np.repeat([1, -1], len(rows))
    order = np.argsort(times, kind="stable")
    times, depth = times[order], np.cumsum(change[order])
    last = np.append(times[1:] != times[:-1], True)  # several at one time: what is then
    return times[last], depth[last]


def _mapped(path: Path) -> Array:
    """The rows in a file, which are not in memory yet."""
    fields = ffi.typeof("struct sim_log_row").fields
    layout = np.dtype([(name, f"u{ffi.sizeof(field.type)}") for name, field in fields])
    if not path.stat().st_size:
        return np.zeros(0, layout)
    rows: Array = np.memmap(path, layout, mode="r")
    return rows


def series_of(rows: Array, runs: int, end_ns: int) -> Series:
    """Of the rows of one of @runs runs, the longest of which ends at @end_ns."""
    rows = rows[np.argsort(rows["start_ns"], kind="stable")]
    most = MOST // runs
    start = rows["start_ns"].astype(np.int64)
    group = rows["job"].astype(np.int64) << 32 | rows["disk"]
    drawn = rows[thinned(start, rows["sector"].astype(np.int64), group, most)]
    parties = np.unique(rows["party"], return_counts=True)
    times, depth = _queue(rows)
    kept = extremes(times, depth, np.zeros(len(times), np.int64), most)
    interval = max(1, -(-end_ns // INTERVALS))
    at = (rows["complete_ns"].astype(np.int64) // interval).clip(max=INTERVALS)
    moved = np.bincount(at, rows["nr_sectors"] * 512.0, minlength=1)
    return Series(
        drawn,
        len(rows),
        dict(zip(*(one.tolist() for one in parties), strict=True)),
        *_within(_distances(rows)),
        times[kept],
        depth[kept],
        len(times),
        interval,
        moved * (1e9 / interval),
    )


def all_series(files: Sequence[Path]) -> list[Series]:
    """Of each run, from its file of rows; of one at a time all rows are in memory."""
    every = [_mapped(path) for path in files]
    end_ns = max((int(rows["complete_ns"].max()) for rows in every if len(rows)), default=1)
    return [series_of(rows, len(every), end_ns) for rows in every]
