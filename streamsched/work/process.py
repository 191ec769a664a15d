# SPDX-License-Identifier: GPL-2.0-only
"""A process and what it does: struct sim_job of sim/sim.h, in groups by what belongs together.

A Process has all of their fields as its own. Lengths are in bytes, times in ns; a pair is for
reads and for writes. What each field is exactly, and its range, is said in sim/sim.h.
"""

from __future__ import annotations

import dataclasses

from streamsched.work.fio_places import UNIFORM, Places

# enum sim_rw
RW_READ, RW_WRITE, RW_RANDOM = 1, 2, 4
RW_BITS = {
    "read": RW_READ,
    "write": RW_WRITE,
    "rw": RW_READ | RW_WRITE,
    "readwrite": RW_READ | RW_WRITE,
    "randread": RW_READ | RW_RANDOM,
    "randwrite": RW_WRITE | RW_RANDOM,
    "randrw": RW_READ | RW_WRITE | RW_RANDOM,
}
READAHEAD_SAME = 2**32 - 1  # SIM_READAHEAD_SAME of sim/sim.h

Pair = tuple[int, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Life:
    """Who it is, when it begins, and what ends it."""

    name: str
    section: int
    group: int
    stage: int
    startdelay_ns: int
    runtime_ns: int
    time_based: bool
    ramp_ns: int = 0
    wait_for: str = ""
    exits: int = 0
    exit_group: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Region:
    """Where its part of the disk is, and how much of it is read or written."""

    offset: int
    size: int
    io_bytes: int
    zone_size: int
    zone_range: int
    zone_skip: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockSizes:
    """Of each direction some sizes with weights, or a range."""

    nr_splits: Pair
    split_bytes: tuple[tuple[int, ...], tuple[int, ...]]
    split_pct: tuple[tuple[int, ...], tuple[int, ...]]
    range_min: Pair
    range_max: Pair
    align_bytes: int
    sizes_by_order: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Positions:
    """Whether it reads or writes, and where each block is."""

    rw: int
    read_pct: int
    seq_skip: int
    norandommap: bool
    seed: int
    in_order_pct: Pair = (0, 0)
    random_every: int = 1
    stays: bool = False
    places: int = UNIFORM
    scattered: bool = False
    scattered_alike: bool = False
    places_shift: int = 0
    normal_spread: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pace:
    """How many requests at once, through the page cache or not, and when it waits."""

    direct: bool
    iodepth: int
    thinktime_ns: int
    thinktime_blocks: int
    fsync_blocks: int
    end_fsync: bool
    rate: Pair = (0, 0)
    rate_unit: Pair = (0, 0)
    rate_poisson: bool = False
    rate_forgives: bool = False
    offload: bool = False
    drops_pages: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Files:
    """Several files in its region."""

    nr_files: int = 1
    file_stride: int = 0
    file_size: int = 0
    open_files: int = 1
    file_service: int = 0
    file_service_blocks: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Program:
    """What fio has no word for: programs of the papers, which sim/workloads.py makes."""

    nr_file_splits: int = 0
    file_bytes: tuple[int, ...] = ()
    file_pct: tuple[int, ...] = ()
    group_bytes: int = 0
    group_files_bytes: int = 0
    append_pct: int = 0
    append_bytes: int = 0
    directory_files: int = 0
    new_process: bool = False
    spawn_ns: int = 0
    barrier: int = 0
    barrier_blocks: int = 0
    turns: bool = False
    pool: int = 0
    pool_threads: int = 0
    stall_blocks: int = 0
    readahead_pages: int = READAHEAD_SAME
    first_window_pages: int = 0
    maps: bool = False
    end_sync: bool = False
    background: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Process(Life, Region, BlockSizes, Positions, Pace, Files, Program):
    """One process of a workload."""

    # Of its owner: sim_weigh().
    weight: int | None = None
    # The shares of places, a table of its own in the simulator.
    distribution: Places | None = None
    # What a real fio would open; empty: files of its own.
    opens: str = ""

    def params(self) -> dict[str, object]:
        """What a struct sim_job has, as cffi takes it."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del fields["weight"], fields["distribution"], fields["opens"]
        return {**fields, "name": self.name.encode(), "wait_for": self.wait_for.encode()}

    @property
    def units(self) -> int:
        """Positions that a random block may have."""
        return self.size // self.align_bytes
