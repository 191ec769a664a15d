# SPDX-License-Identifier: GPL-2.0-only
"""How long a child is awaited: as long as that has paid, by when children came.

With stream_time_slice=auto.
"""

from __future__ import annotations

from typing import Any

from test_stream_figure1 import Disk

Core = tuple[Any, Any]

NEXT_MS, FAR_MS = 0.7, 10.0  # what the disk needs for what goes on at the head, and else
HERE, FAR = 1000, 400_000_000  # sectors
RUN = 15  # reads of A before it pauses
PAUSE_MS = 40.0
# A child that comes at once is of the first span, 65 us; it is awaited for eight times that.
QUICK_MS = 0.6
# In so many runs every length of stream has had more outcomes than it is looked at after.
ENOUGH_RUNS = 32


def disk(core: Core, slice_ns: int = 0) -> Disk:
    return Disk(core, "stream:noop", stream_time_slice=slice_ns, answer_time=0, trials=0)


def run_of(d: Disk, sector: int, think_ms: float, far: int) -> tuple[int, float]:
    """A reads on RUN times while B waits far away; how long the disk is then kept for it."""
    b = None
    for nr in range(RUN):
        d.later(think_ms)
        d.serve(d.send(1, sector), NEXT_MS if nr else FAR_MS)
        sector += 8
        if nr == 3:
            b = d.send(2, far)
    since = d.now
    verdict, *rest = d.choose()
    if verdict == "wait":
        d.at(rest[0])
    waited = d.now - since
    d.serve(b, FAR_MS)
    d.later(PAUSE_MS)
    return sector, waited


def waits(d: Disk, think_ms: float, runs: int) -> list[float]:
    """Of so many runs, one after the other."""
    sector, waited = HERE, []
    for nr in range(runs):
        sector, ms = run_of(d, sector, think_ms, FAR + 100_000 * nr)
        waited.append(ms)
    return waited


def test_at_first_as_long_as_the_alternative_takes(core: Core) -> None:
    assert waits(disk(core), 0.01, 1)[0] > 5


def test_where_children_come_at_once_a_late_one_is_not_awaited(core: Core) -> None:
    waited = waits(disk(core), 0.01, ENOUGH_RUNS)
    assert 0 < waited[-1] < QUICK_MS


def test_where_children_take_their_time_it_is_awaited(core: Core) -> None:
    waited = waits(disk(core), 3.0, ENOUGH_RUNS)
    assert waited[-1] >= 6


def test_a_slow_reader_is_awaited_beside_quick_ones(core: Core) -> None:
    """Its own members tell how long it takes."""
    d = disk(core)
    sector = HERE
    for nr in range(ENOUGH_RUNS):
        sector, _ = run_of(d, sector, 0.01, FAR + 100_000 * nr)
    slow = 200_000_000
    _, waited = run_of(d, slow, 2.0, FAR + 50_000_000)
    assert waited >= 4


def test_with_a_slice_that_is_set_as_in_the_paper(core: Core) -> None:
    """As long as the alternative takes, and half as long again."""
    assert waits(disk(core), 0.01, ENOUGH_RUNS)[-1] < QUICK_MS
    assert waits(disk(core, 124_000_000), 0.01, ENOUGH_RUNS)[-1] > 10
