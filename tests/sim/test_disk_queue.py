# SPDX-License-Identifier: GPL-2.0-only
"""The disk model: its queue, whom it takes next, and what a command costs beside its way."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest
from disk_driver import BARE, EBUSY, EINVAL, MS, NEVER, READ, SMALL, WRITE, Drive

from streamsched.sim.diskfile import Disk, load_disk

# Queue


def test_queue_depth() -> None:
    drive = Drive(SMALL, queue_depth=8)
    lib, hdd = drive.lib, drive.hdd
    for depth in (0, 9, 32, 1 << 31):
        assert lib.hdd_set_queue_depth(hdd, depth) == -EINVAL
    assert lib.hdd_set_queue_depth(hdd, 2) == 0
    assert not lib.hdd_full(hdd)
    drive.submit(READ, 0, 1, 0)
    assert lib.hdd_set_queue_depth(hdd, 2) == -EBUSY
    assert not lib.hdd_full(hdd)
    drive.submit(READ, 1000, 1, 0)
    assert lib.hdd_full(hdd)
    assert drive.pop(drive.next()) is not None
    assert not lib.hdd_full(hdd)
    drive.drain()
    assert drive.next() == NEVER
    assert lib.hdd_set_queue_depth(hdd, 8) == 0


def test_nothing_is_popped_before_its_time(drive: Drive) -> None:
    cmd = drive.submit(READ, 1000, 8, 5)
    assert drive.pop(drive.next() - 1) is None
    assert drive.pop(drive.next()) is cmd


def mean_service(disk: Disk, depth: int, count: int = 3000) -> float:
    drive = Drive(disk.params())
    draw = random.Random(3)
    now = 0
    for _ in range(count):
        if len(drive.inside) == depth:
            now = drive.next()
            assert drive.pop(now) is not None
        drive.submit(READ, draw.randrange(disk.capacity_sectors // 8) * 8, 8, now)
    return now / (count - depth)


def test_a_deeper_queue_shortens_the_way_only_when_the_drive_orders() -> None:
    disk = dataclasses.replace(load_disk("exos-x18"), queue_age_permille=0)
    one, four, many = (mean_service(disk, depth) for depth in (1, 4, 32))
    assert one > 1.3 * four > 1.6 * many
    fifo = dataclasses.replace(disk, queue_order=0)
    assert mean_service(fifo, 32) == pytest.approx(one, rel=0.03)


def test_the_shortest_way_is_chosen() -> None:
    """Each choice is the best of those waiting, by seek, switch and angle."""
    drive = Drive(BARE, overhead_ns=[0] * 8)
    draw = random.Random(4)
    sectors = draw.sample(range(0, BARE["capacity_sectors"] - 4, 4), 32)
    first, *waiting = [drive.submit(READ, sector, 4, 0) for sector in sectors]
    done = drive.drain()
    assert done[0] is first
    rotation = BARE["rotation_ns"]
    for before, chosen in itertools.pairwise(done):
        start = before.done_ns - drive.hdd.tail_ns
        assert chosen.start_ns == start
        at = drive.map(before.sector + 3)
        costs = []
        for cmd in waiting:
            cylinder, head, angle = drive.map(cmd.sector)
            move = drive.seek(abs(cylinder - at[0]))
            if cylinder == at[0] and head != at[1]:
                move = BARE["head_switch_ns"]
            if cmd.sector == before.sector + 4:
                move = 0
            costs.append(move + (angle - start - move) % rotation)
        assert chosen.position_ns == min(costs)
        waiting.remove(chosen)


@pytest.mark.parametrize("limit_ms", [50, 200, 1000])
def test_the_age_limit_bounds_waiting(limit_ms: int) -> None:
    """Near commands keep coming; a far one waits for the limit and little more."""

    def far_waits(limit_ns: int) -> int:
        slow = {"seek_ns": [1_500_000, 2_500_000, 80 * MS]}
        drive = Drive(BARE | slow | {"queue_age_limit_ns": limit_ns})
        draw = random.Random(5)
        now = 0
        for _ in range(15):
            drive.submit(READ, draw.randrange(150), 1, now)
        far = drive.submit(READ, 3000, 1, now)
        while far.done_ns == 0 and now < 20_000 * MS:
            now = drive.next()
            if drive.pop(now) is not far:
                drive.submit(READ, draw.randrange(150), 1, now)
        return int(far.done_ns or now) - int(far.submit_ns)

    # At the limit one more may be under way, and those that are older.
    longest = 40 * MS + BARE["rotation_ns"]
    assert far_waits(limit_ms * MS) <= limit_ms * MS + 17 * longest
    assert far_waits(limit_ms * MS) >= limit_ms * MS
    assert far_waits(100_000 * MS) > 2 * (1000 * MS)


def test_age_counts_as_distance() -> None:
    """The more it counts, the less anybody waits, and the less gets done."""
    disk = load_disk("exos-x18")

    def longest_and_mean(permille: int) -> tuple[int, float]:
        aged = dataclasses.replace(disk, queue_age_permille=permille)
        drive = Drive(aged.params())
        draw = random.Random(6)
        now, longest = 0, 0
        for i in range(4000):
            if i >= 32:
                now = drive.next()
                cmd = drive.pop(now)
                longest = max(longest, cmd.done_ns - cmd.submit_ns)
            drive.submit(READ, draw.randrange(disk.capacity_sectors // 8) * 8, 8, now)
        return longest, now / 4000

    results = [longest_and_mean(permille) for permille in (0, 30, 300)]
    assert results[0][0] > results[1][0] > results[2][0]
    assert results[0][1] < results[1][1] < results[2][1]


# Overheads


def test_overheads_are_by_class_and_by_the_command_before() -> None:
    overheads = [n * 1_000 for n in (110, 120, 130, 140, 210, 220, 230, 240)]
    drive = Drive(SMALL, overhead_ns=overheads, write_idle_ns=9000 * MS)
    now = 0
    before = 0
    for op, sector, fua, hit in [
        (READ, 100, False, 0),
        (READ, 100, False, 1),
        (WRITE, 900, False, 1),
        (WRITE, 2000, True, 0),
        (READ, 3000, False, 0),
        (WRITE, 900, False, 1),
        (READ, 900, False, 1),
    ]:
        cmd = drive.one(op, sector, 8, now, fua=fua)
        expected = overheads[4 * (before == WRITE) + 2 * (op == WRITE) + hit]
        assert cmd.start_ns - now == expected, (op, sector)
        now, before = cmd.done_ns + 20 * MS, op
