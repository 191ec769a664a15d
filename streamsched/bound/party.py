# SPDX-License-Identifier: GPL-2.0-only
"""What each process needs of the disk at least, whatever schedules it (docs/research/BOUNDS.md).

A stream goes through its region in order. A random process has a place anew for each request, and
so have writes that the drive's cache holds back: there the drive chooses among all it holds. Of
any other process no more is known than how many bytes must pass the head.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
import math
from collections.abc import Sequence

from streamsched.bound.arm import READ_HIT, READ_MISS, SLACK_NS, WRITE_HIT, Arm
from streamsched.bound.spread import Spread, spread_of
from streamsched.sim.simulate import NS, PAGE_COPY_NS, READAHEAD_PAGES, Run, Setup
from streamsched.work.fio_places import UNIFORM
from streamsched.work.process import RW_RANDOM, RW_READ, RW_WRITE, Process

PAGE_BYTES = 4096
# So much larger than all caches must a region be whose requests are taken to miss them.
LARGE = 20
# Of a rate that few requests were counted for: so many standard deviations, of so much of a mean.
DEVIATIONS, SPREAD = 4, 0.6


class Kind(enum.Enum):
    """How much is known of a process's places."""

    stream = "stream"
    random = "random"
    other = "other"


@dataclasses.dataclass(frozen=True)
class Party:
    """A process and its floors; times in ns, rates of the process alone in bytes a second.

    Of an array places and times are those of its mean member, bytes those of the process.
    """

    name: str
    kind: Kind
    rate: float  # alone
    alone_s: float  # what it took alone; where it is stopped by a runtime: that
    first: int  # its region's first sector, and the one behind its last
    end: int
    low: int  # the same in cylinders, both within
    high: int
    request_bytes: float
    head_ns: float  # a byte under the head, with the skews between tracks
    bare_ns: float  # and without them
    slot_ns: float  # a byte in the drive's one command
    head_free: float  # bytes that may stay in memory, and never come to the medium
    early: float  # bytes that may have passed the head before a ramp was over, and count after it
    placed: bool  # it has a place, and what comes next of it is there
    visited: bool  # and the head must come back to it, again and again
    outstanding: int  # of a random one: among so many of its requests the next is chosen
    hit: float  # of a random one: the part of requests that a cache may have
    cap: float  # no greater share, by its own pace
    proved: bool  # or nothing more than an assumption


def _mean_bytes(process: Process, run: Run) -> float:
    blocks = sum(run.jobs[0].blocks)
    return run.jobs[0].bytes / blocks if blocks else 0.0


def _in_order(process: Process) -> bool:
    """One file, gone through from its begin to its end."""
    return (
        not process.rw & RW_RANDOM
        and not process.seq_skip
        and not process.stays
        and not process.zone_skip
        and process.nr_files <= 1
        and not process.pool
        and not process.nr_file_splits
    )


def _anywhere(process: Process) -> bool:
    """Each block at a place of its own, all alike."""
    return bool(
        process.rw & RW_RANDOM
        and process.random_every <= 1
        and process.places == UNIFORM
        and not process.distribution
        and not any(process.in_order_pct)
        and not process.stays
        and not process.scattered
        and process.nr_files <= 1
        and not process.pool
    )


def _caches(process: Process, setup: Setup) -> float:
    """Bytes that a request may be answered with by memory, not by the medium."""
    disk = setup.disk
    drive = 512 * (disk.segments * disk.segment_sectors + disk.write_cache_sectors)
    return len(setup.members) * drive + (0 if process.direct else setup.cache_bytes)


def _misses(process: Process, setup: Setup) -> bool:
    """Its requests are at random places, and next to none is in any cache."""
    return _anywhere(process) and process.size >= LARGE * _caches(process, setup)


def _held_back(process: Process, setup: Setup) -> float:
    """Bytes of writes that caches hold at once, and need not have come to the medium."""
    if not process.rw & RW_WRITE:
        return 0.0
    drive = len(setup.members) * 512 * setup.disk.write_cache_sectors
    return drive + (0 if process.direct else setup.cache_bytes * setup.dirty_pct / 100)


def _early(process: Process, setup: Setup, request_bytes: float) -> float:
    """Bytes that are read ahead, or on their way, at any moment."""
    disk = setup.disk
    if _misses(process, setup):  # what is read ahead is of no use
        return max(1, process.iodepth) * request_bytes
    pages = setup.readahead_pages or (setup.array.readahead_pages if setup.array else 0)
    windows = 2 * max(READAHEAD_PAGES, pages) * PAGE_BYTES
    ahead = len(setup.members) * 512 * max(disk.segment_sectors, disk.readahead_sectors)
    return ahead + max(1, process.iodepth) * request_bytes + (0 if process.direct else windows)


def _outstanding(process: Process, setup: Setup, request_bytes: float) -> int:
    """How many of a random process's requests the next one may be chosen among."""
    disk = setup.disk
    nr = max(1, process.iodepth)
    if process.rw & RW_WRITE:
        nr += disk.write_cache_extents if disk.write_cache_sectors else 0
        if not process.direct:
            nr += int(setup.cache_bytes * setup.dirty_pct / 100 / max(request_bytes, 512))
    return nr


def _cap(
    process: Process, run: Run, setup: Setup, arm: Arm, spread: Spread, size: float
) -> tuple[float, bool]:
    """Its greatest share, and whether that is proved (docs/research/BOUNDS.md, Pace)."""
    rate = run.bytes / run.seconds
    blocks = max(1, sum(run.jobs[0].blocks))
    noise = DEVIATIONS * SPREAD / math.sqrt(blocks) if process.rw & RW_RANDOM else 0.01
    if process.rw & RW_WRITE or process.fsync_blocks:
        # Caches may take what they take: as fast as memory, or the interface, is.
        byte_ns = PAGE_COPY_NS / PAGE_BYTES
        if process.direct:
            hit = min(arm.overhead_ns(WRITE_HIT), arm.overhead_ns(READ_HIT))
            byte_ns = 1e9 / setup.disk.interface_bytes_per_s / spread.members
            byte_ns = max(byte_ns, (hit / size + byte_ns) / max(1, process.iodepth))
        return max(1.0, 1e9 / byte_ns / rate), True
    # Alone it may have had the slower one of two copies each time.
    if (process.iodepth > 1 or spread.copies > 1) and process.direct:
        byte_ns = 1e9 / setup.disk.interface_bytes_per_s / spread.members
        hit = arm.overhead_ns(READ_HIT) / size + byte_ns
        return max(1 + noise, 1e9 / hit * max(1, process.iodepth) / rate), True
    if spread.copies > 1:
        return max(1 + noise, NS / PAGE_COPY_NS * PAGE_BYTES / rate), True
    return 1 + noise, _in_order(process) or _anywhere(process)


def party_of(process: Process, run: Run, setup: Setup, arm: Arm, shared: int) -> Party:
    """Of @process, which did @run alone; @shared processes have blocks in common with it."""
    size = max(_mean_bytes(process, run), 512.0)
    spread = spread_of(setup)
    first = process.offset // 512
    length = max(process.size, process.file_stride * process.nr_files, process.zone_range, 512)
    end = min(first + length // 512, setup.capacity_bytes // 512)
    reads, writes = bool(process.rw & RW_READ), bool(process.rw & RW_WRITE)
    runs_s = (process.runtime_ns + process.ramp_ns) / NS or run.seconds
    moved = run.bytes / run.seconds * runs_s
    again = moved > process.size  # it comes to blocks that it has had
    kind = Kind.other
    if (
        shared == 1
        and reads != writes
        and not (again and process.size < 2 * _caches(process, setup))
    ):
        if _in_order(process) and not process.fsync_blocks:
            kind = Kind.stream
        elif _misses(process, setup):
            kind = Kind.random
    cap, proved = _cap(process, run, setup, arm, spread, size)
    if kind is Kind.stream and not again:
        # As far as it could come, were it as fast as its pace and the medium let it be.
        medium = arm.sector_ns(*spread.region(first, end)) / 512e9 / spread.members
        farthest = 1.05 * moved * max(1.0, min(cap, 1 / medium / (run.bytes / run.seconds)))
        end = min(end, first + int(farthest) // 512 + 2048)
    # A block may be had from two places; or each copy's place is no draw of its own.
    if kind is Kind.random and (spread.half or (writes and spread.copies > 1)):
        kind = Kind.other
    thin = spread.thin(first, end)
    first, end = spread.region(first, end)
    bare_ns = arm.sector_ns(first, end)
    contiguous = spread.whole and _in_order(process)
    sector_ns = arm.running_ns(first, end) if contiguous else bare_ns
    byte_ns = sector_ns / 512
    if kind is Kind.other and not process.direct and reads and (writes or shared == 1):
        # What it has written it may read out of memory; what it has read, too.
        fresh = min(1.0, process.size / moved) if moved and not writes else 0.0
        byte_ns *= fresh
    elif again:
        byte_ns *= min(1.0, process.size / moved) if kind is Kind.other else 1.0
    if writes and process.norandommap and process.size < LARGE * moved:
        byte_ns = 0.0
    byte_ns /= shared
    hit = min(1.0, 4 * _caches(process, setup) / process.size) if kind is Kind.random else 0.0
    most = 512 * setup.max_request_sectors
    merged = min(most, size) if process.direct and process.iodepth <= 1 else most
    overhead = min(arm.overhead_ns(READ_HIT), arm.overhead_ns(WRITE_HIT))
    slot_ns = 1e9 / setup.disk.interface_bytes_per_s + overhead / max(merged, 512)
    if kind is Kind.random and reads:
        slot_ns = max(slot_ns, byte_ns + arm.overhead_ns(READ_MISS) / size)
    elif kind is Kind.other and not process.direct:
        slot_ns = 0.0
    head_ns = max(0.0, byte_ns * (1 - hit) - (SLACK_NS / size if kind is Kind.random else 0))
    part = spread.part(reads)
    return Party(
        name=process.name,
        kind=kind,
        rate=run.bytes / run.seconds,
        alone_s=run.seconds,
        first=first,
        end=end,
        low=arm.cylinder(first),
        high=arm.cylinder(end - 1),
        request_bytes=size / part,
        head_ns=part * head_ns,
        bare_ns=part * head_ns * bare_ns / sector_ns,
        slot_ns=part * slot_ns * (1 - hit),
        head_free=_held_back(process, setup),
        early=_early(process, setup, size) if process.ramp_ns else 0.0,
        placed=kind is Kind.stream and reads,
        visited=kind is Kind.stream and reads and not thin,
        # Of a block's copies one is chosen, too.
        outstanding=_outstanding(process, setup, size) * spread.copies,
        hit=hit,
        cap=cap,
        proved=proved and kind is not Kind.other,
    )


def sharing(processes: Sequence[Process], setup: Setup) -> list[int]:
    """Of each process how many, itself among them, have a region that meets its own, or meet one
    that does.

    Where all of those read at random in large regions it is as if they were apart: next to nothing
    of what one has read is asked for by another while a cache has it.
    """
    group = list(range(len(processes)))

    def root(at: int) -> int:
        while group[at] != at:
            at = group[at]
        return at

    reach = [
        (one.offset, one.offset + max(one.size, one.file_stride * one.nr_files, one.zone_range))
        for one in processes
    ]
    order = sorted(range(len(processes)), key=lambda at: reach[at])
    top = order[0] if order else 0
    for before, at in itertools.pairwise(order):
        if reach[before][1] > reach[top][1]:
            top = before
        if reach[at][0] < reach[top][1]:
            group[root(at)] = root(top)
    roots = [root(at) for at in range(len(processes))]
    met = {one: [p for p, r in zip(processes, roots, strict=True) if r == one] for one in roots}
    apart = {one for one, some in met.items() if all(_misses(each, setup) for each in some)}
    return [1 if one in apart else len(met[one]) for one in roots]
