# SPDX-License-Identifier: GPL-2.0-only
"""Which mirror reads: step by step, and what that is worth on simulated disks."""

from __future__ import annotations

import dataclasses
import statistics

import pytest
from workloads import KIB, MIB, RANDOM, READ, disk_of, process

from streamsched._core import ffi, lib
from streamsched.sim.array import Array
from streamsched.sim.simulate import Run, Setup, run_jobs

MS = 1_000_000
RECENT_MS = 500
STREAMS = 64
READ_SECTORS = 8


class Mirrors:
    """Mirrors whose heads and requests the test sets."""

    def __init__(self, nr: int) -> None:
        self.ffi, self.lib = ffi, lib
        self.mirrors = self.ffi.new("struct ss_mirrors *")
        self.mirror = self.ffi.new("struct ss_mirror[]", nr)
        self.nr, self.now_ms = nr, 1.0
        for one in self.mirror:
            one.usable = True

    def read(self, sector: int, *, distance: tuple[int, ...] = (), nr: tuple[int, ...] = ()) -> int:
        """The mirror that reads from there on; the other mirrors' state stays as it is."""
        for i, value in enumerate(distance):
            self.mirror[i].distance = value
        for i, value in enumerate(nr):
            self.mirror[i].nr_requests = value
        return int(
            self.lib.ss_mirror_choose(
                self.mirrors, self.mirror, self.nr, sector, READ_SECTORS, int(self.now_ms * MS)
            )
        )

    def follow(self, sector: int, nr: int, later_ms: float = 1.0) -> list[int]:
        """So many reads of one stream."""
        found = []
        for i in range(nr):
            found.append(self.read(sector + i * READ_SECTORS))
            self.now_ms += later_ms
        return found


@pytest.fixture
def two() -> Mirrors:
    return Mirrors(2)


def test_a_stream_stays_with_its_mirror(two: Mirrors) -> None:
    """Even if the other one is idle and its head is nearer."""
    assert two.read(0, distance=(9, 5)) == 1
    assert two.read(8, distance=(0, 5), nr=(0, 3)) == 1
    assert two.read(16, distance=(0, 5), nr=(0, 3)) == 1


def test_a_new_one_goes_to_an_idle_mirror_then_to_the_nearest_head(two: Mirrors) -> None:
    assert two.read(1000, distance=(0, 9), nr=(1, 0)) == 1
    assert two.read(2000, distance=(0, 9), nr=(1, 1)) == 0
    # One request more is worth a shorter way, two are not.
    assert two.read(3000, distance=(0, 9), nr=(2, 1)) == 0
    assert two.read(4000, distance=(0, 9), nr=(3, 1)) == 1


def test_a_new_one_keeps_away_from_streams(two: Mirrors) -> None:
    assert two.follow(0, 3) == [0, 0, 0]
    assert two.read(10_000, distance=(0, 9)) == 1


def test_streams_are_spread_when_others_end(two: Mirrors) -> None:
    """Two of three are on one mirror. The other one's stream ends, and one of the two moves."""
    heads = {0: (0, 9), 10_000: (9, 0), 20_000: (0, 9)}
    for step in range(2):
        for start, distance in heads.items():
            expected = 0 if distance[0] == 0 else 1
            sector = start + step * READ_SECTORS
            assert two.read(sector, distance=distance, nr=(1, 1)) == expected
    for step in range(2, 80):
        moved = [two.read(start + step * READ_SECTORS) for start in (0, 20_000)]
        two.now_ms += 10
        if moved != [0, 0]:
            break
    assert sorted(moved) == [0, 1]
    assert RECENT_MS <= 10 * (step - 1) <= RECENT_MS + 20
    again = [two.read(start + (step + 1) * READ_SECTORS) for start in (0, 20_000)]
    assert again == moved


def test_a_stream_that_was_away_for_long_is_new(two: Mirrors) -> None:
    two.follow(0, 3)
    two.now_ms += RECENT_MS - 2
    assert two.read(3 * READ_SECTORS, distance=(9, 0)) == 0
    two.now_ms += RECENT_MS
    assert two.read(4 * READ_SECTORS, distance=(9, 0)) == 1


def test_single_requests_do_not_drive_out_streams(two: Mirrors) -> None:
    two.follow(0, 3)
    for i in range(2 * STREAMS):
        two.read(1_000_000 + 100 * i, nr=(0, 0))
        two.now_ms += 1
    assert two.read(3 * READ_SECTORS, distance=(9, 0), nr=(5, 0)) == 0


def test_more_streams_than_are_remembered() -> None:
    three = Mirrors(3)
    for step in range(4):
        for i in range(2 * STREAMS):
            assert three.read(i * 10_000 + step * READ_SECTORS) < 3
            three.now_ms += 0.1


def test_a_failed_mirror_is_not_chosen() -> None:
    three = Mirrors(3)
    assert three.follow(0, 2) == [0, 0]
    three.mirror[0].usable = False
    assert three.read(2 * READ_SECTORS, distance=(0, 9, 5)) in (1, 2)
    assert three.read(50_000, distance=(0, 9, 5), nr=(0, 4, 4)) != 0


# ---- on simulated disks ----

APART = 8192 * MIB  # where one disk is as fast as anywhere else near there


def readers(array: Array, policy: str, nr: int, bs: int = 64 * KIB) -> Run:
    """Direct readers of 256 MiB each."""
    setup = Setup(disk_of("wd5000aaks"), policy, owners="none", array=array)
    return run_jobs(setup, [process(i, offset=i * APART, bs=bs, io=256 * MIB) for i in range(nr)])


def rate(run: Run) -> float:
    return run.bytes / run.duration_ns


TWO = Array("raid1", 2)


@pytest.mark.parametrize("bs", [16 * KIB, 64 * KIB, 256 * KIB])
def test_two_mirrors_serve_two_and_four_readers(bs: int) -> None:
    """Whole virtual times; and nobody reads more slowly than where members do as they like."""
    one, two, four = (readers(TWO, "stream:deadline", nr, bs) for nr in (1, 2, 4))
    assert rate(two) >= 1.8 * rate(one)
    assert rate(four) >= 1.7 * rate(one)
    for nr, ours in ((1, one), (2, two), (4, four)):
        plain = readers(TWO, "deadline", nr, bs)
        assert min(job.rate for job in ours.jobs) >= 0.99 * min(job.rate for job in plain.jobs)


@pytest.mark.parametrize(("members", "nr"), [(3, 3), (4, 4), (4, 8)])
def test_readers_are_spread_over_all_mirrors(members: int, nr: int) -> None:
    array = Array("raid1", members)
    alone = rate(readers(array, "stream:deadline", 1))
    assert rate(readers(array, "stream:deadline", nr)) >= 0.9 * members * alone


@pytest.mark.parametrize("level", ["raid1", "raid10"])
def test_writes_reach_all_copies_and_reads_one(level: str) -> None:
    setup = Setup(disk_of("wd5000aaks"), "stream:noop", owners="none", array=Array(level, 2))
    write = run_jobs(setup, [process(0, rw=2, io=4 * MIB)])
    read = run_jobs(setup, [process(0, io=4 * MIB)])
    assert (write.disk_requests, read.disk_requests) == (2 * 64, 64)


def test_random_readers_are_served_as_by_md() -> None:
    def run(coordinated: bool) -> Run:
        array = Array("raid1", 2, coordinated=coordinated)
        setup = Setup(disk_of("wd5000aaks"), "stream:deadline", owners="none", array=array)
        more = {"rw": READ | RANDOM, "bs": 4 * KIB, "io": MIB, "size": 100 * 1024 * MIB}
        return run_jobs(setup, [process(i, **more) for i in range(16)])  # type: ignore[arg-type]

    assert rate(run(True)) >= 0.95 * rate(run(False))


@pytest.mark.parametrize(("layout", "gain", "over_apart"), [("near", 4, 1.3), ("far", 1.3, 1.1)])
def test_raid10_readers_gain_from_coordination(layout: str, gain: float, over_apart: float) -> None:
    """Over no scheduler; over members that are not coordinated less, for these gain, too. One
    number of readers may suit either by chance, so three are taken.
    """
    array = Array("raid10", 4, layout=layout)
    single = dataclasses.replace(array, coordinated=False)

    def rates(array: Array, policy: str) -> float:
        return statistics.geometric_mean(rate(readers(array, policy, nr)) for nr in (3, 4, 5))

    together = rates(array, "stream:deadline")
    assert together > gain * rates(array, "noop")
    assert together > over_apart * rates(single, "stream:deadline")
