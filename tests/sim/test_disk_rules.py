# SPDX-License-Identifier: GPL-2.0-only
"""The disk model: what holds for any sequence of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from disk_driver import BARE, FLAT, FLUSH, MS, NEVER, READ, SMALL, WRITE, Drive, check_dirty
from hypothesis import given, settings
from hypothesis import strategies as st

commands = st.lists(
    st.tuples(
        st.sampled_from([READ, READ, READ, WRITE, WRITE, FLUSH]),
        st.one_of(st.integers(0, 3200), st.integers(0, 60)),
        st.integers(1, 120),
        st.booleans(),
        st.sampled_from([0, 0, 0, 1000, 100_000, 3 * MS, 30 * MS]),
        st.booleans(),
    ),
    min_size=1,
    max_size=80,
)
kinds = st.sampled_from(
    [
        SMALL,
        SMALL | {"queue_order": 0},
        SMALL | {"queue_age_limit_ns": 20 * MS, "queue_age_permille": 100},
        SMALL | {"readahead_sectors": 0, "write_cache_extents": 2},
        SMALL | {"write_idle_ns": 0, "flush_ns": 0, "overhead_ns": [0] * 8},
        SMALL | {"write_order": 1, "write_share_permille": 300, "segment_keeps_read": 0},
        SMALL
        | {"read_watermark_permille": 1000, "write_series": 1, "ahead_until": 1}
        | {"interface_bytes_per_s": 2_000_000},
        SMALL | {"read_watermark_permille": 400, "watermark_of": 1, "ahead_until": 4},
        SMALL | {"segment_keeps_read": 0, "ahead_until": 2, "write_empties": 1},
        SMALL | {"ahead_until": 3},
        SMALL | {"physical_sectors": 8, "write_cache_durable": 1, "write_saves_ns": 900_000},
        BARE,
        FLAT,
    ]
)


def play(
    drive: Drive, script: list[tuple[Any, ...]], depth: int, looks: int = 0
) -> Iterator[tuple[str, Any, int]]:
    """Run a script; each command goes in at once or after what is inside is done.

    @looks times in each pause somebody asks whether a command is done.
    """
    capacity = drive.params.capacity_sectors
    now = 0
    for op, at, size, fua, pause, wait in script:
        sector = at * 7919 % capacity if at > 60 else at
        size = min(size, capacity - sector)
        while drive.inside and (wait or len(drive.inside) >= depth):
            now = max(now, drive.next())
            cmd = drive.pop(now)
            assert cmd is not None, "hdd_next_ns() promised one"
            yield "pop", cmd, now
        for look in range(looks):
            at = now + pause * look // looks
            while cmd := drive.pop(at):
                yield "pop", cmd, at
        now += pause
        while drive.next() <= now:
            yield "pop", drive.pop(now), now
        if op == FLUSH:
            sector, size = 0, 0
        yield "submit", drive.submit(op, sector, size, now, fua), now
    while drive.inside:
        now = max(now, drive.next())
        yield "pop", drive.pop(now), now


@pytest.mark.property
@settings(max_examples=300)
@given(params=kinds, script=commands, depth=st.integers(1, 32))
def test_any_sequence_keeps_the_rules(
    params: dict[str, Any], script: list[tuple[Any, ...]], depth: int
) -> None:
    drive = Drive(params)
    submitted: list[Any] = []
    popped: list[Any] = []
    acknowledged: list[Any] = []
    for what, cmd, now in play(drive, script, depth):
        assert cmd is not None
        if what == "submit":
            submitted.append(cmd)
            continue
        popped.append(cmd)
        assert cmd.submit_ns <= cmd.start_ns <= cmd.done_ns <= now
        assert cmd.position_ns <= cmd.done_ns - cmd.submit_ns
        pieces = drive.dirty()
        if cmd.op == WRITE:
            acknowledged.append(cmd)
            durable = params.get("write_cache_durable")
            if (
                cmd.fua
                and not durable
                and not any(
                    other.op == WRITE and other is not cmd and other.submit_ns >= cmd.submit_ns
                    for other in submitted
                )
            ):
                end = cmd.sector + cmd.nr_sectors
                assert not any(a < end and cmd.sector < b for a, b in pieces)
        elif cmd.op == FLUSH:
            place = submitted.index(cmd)
            later = [
                other
                for other in submitted[place + 1 :]
                if other.op == WRITE and other.submit_ns >= cmd.submit_ns
            ]
            for write in acknowledged:
                if write.done_ns > cmd.submit_ns or later or params.get("write_cache_durable"):
                    continue
                end = write.sector + write.nr_sectors
                assert not any(a < end and write.sector < b for a, b in pieces)
            # None before it is still inside, none after it is already out.
            assert all(other in popped for other in submitted[:place])
            if params["kind"] == 0:
                assert not any(other in popped for other in submitted[place + 1 :])
        check_dirty(drive, params)
    assert len(popped) == len(submitted) == len(script)
    assert not drive.inside
    assert drive.next() == NEVER
    times = [cmd.done_ns for cmd in popped]
    assert times == sorted(times)
    if params.get("queue_order") == 0:
        assert popped == submitted


@pytest.mark.property
@given(params=kinds, script=commands, depth=st.integers(1, 32))
def test_the_same_again_gives_the_same(
    params: dict[str, Any], script: list[tuple[Any, ...]], depth: int
) -> None:
    def times() -> list[tuple[int, ...]]:
        drive = Drive(params)
        return [
            (now, cmd.sector, cmd.submit_ns, cmd.start_ns, cmd.done_ns, cmd.position_ns)
            for what, cmd, now in play(drive, script, depth)
            if what == "pop"
        ]

    assert times() == times()


@pytest.mark.property
@given(params=kinds, script=commands, looks=st.integers(1, 5))
def test_asking_more_often_changes_nothing(
    params: dict[str, Any], script: list[tuple[Any, ...]], looks: int
) -> None:
    """What the drive does on its own is the same however often one looks."""

    def times(looks: int) -> list[tuple[int, ...]]:
        drive = Drive(params)
        return [
            (cmd.sector, cmd.submit_ns, cmd.start_ns, cmd.done_ns, cmd.position_ns)
            for what, cmd, _ in play(drive, script, 8, looks)
            if what == "pop"
        ]

    assert times(0) == times(looks)
