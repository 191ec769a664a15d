# SPDX-License-Identifier: GPL-2.0-only
"""What a workload looks like by what arrives (core/workload.h), counted by hand."""

from __future__ import annotations

import pytest

from streamsched._core import ffi, lib

SPAN = 1 << 30
NEAR = SPAN >> 11
READ, WRITE = 0, 1


class Workload:
    def __init__(self) -> None:
        self.lib = lib
        self.workload = ffi.new("struct ss_workload *")
        self.lib.ss_workload_init(self.workload, SPAN)

    def sends(self, sector: int, nr: int = 8, direction: int = READ, sync: bool = True) -> None:
        self.lib.ss_workload_arrived(self.workload, sector, nr, direction, sync)

    def counts(self, *names: str) -> tuple[int, ...]:
        return tuple(getattr(self.workload.totals, name) for name in names)


@pytest.fixture
def work() -> Workload:
    return Workload()


def test_sizes_and_directions(work: Workload) -> None:
    work.sends(0, 8)
    work.sends(SPAN // 2, 16, WRITE, sync=False)
    work.sends(SPAN // 4, 24, WRITE, sync=True)
    assert work.counts("requests", "sectors", "reads", "sync") == (3, 48, 1, 2)


@pytest.mark.parametrize(
    ("gap", "continues", "near"),
    [
        (0, 1, 1),
        (256, 1, 1),
        (257, 0, 1),
        (-1, 0, 1),
        (NEAR, 0, 1),
        (NEAR + 1, 0, 0),
        (-NEAR, 0, 1),
    ],
)
def test_what_continues_and_what_is_near(
    work: Workload, gap: int, continues: int, near: int
) -> None:
    """A sequence may leave gaps as long as a readahead window, forward only."""
    work.sends(SPAN // 2, 8)
    work.sends(SPAN // 2 + 8 + gap, 8)
    assert work.counts("continuing", "near") == (continues, near)


def test_a_sequence_takes_one_place(work: Workload) -> None:
    """Many requests of one reader do not make the others be forgotten."""
    for reader in range(64):
        work.sends(reader * (SPAN // 64))
    for step in range(1, 200):
        work.sends(8 * step)
    assert work.counts("continuing") == (199,)
    for reader in range(1, 64):
        work.sends(reader * (SPAN // 64) + 8)
    assert work.counts("continuing") == (199 + 63,)


def test_the_oldest_is_forgotten(work: Workload) -> None:
    for reader in range(65):
        work.sends(reader * (SPAN // 65))
    work.sends(8)  # the first one's next: its place is the 65th's now
    assert work.counts("continuing") == (0,)
    work.sends(2 * (SPAN // 65) + 8)
    assert work.counts("continuing") == (1,)


def test_at_random_next_to_nothing_is_near(work: Workload) -> None:
    """64 places, each with 2/2048 of the disk around it: 6 % by chance."""
    place = 1
    for _ in range(4000):
        place = place * 6364136223846793005 % 2**64
        work.sends(place % SPAN)
    (near,) = work.counts("near")
    assert 0.04 * 4000 < near < 0.08 * 4000
