# SPDX-License-Identifier: GPL-2.0-only
"""A turn is a place's: where its stream has no child, who is near goes on for the rest of it.

With stream_time_slice=auto. The inner policy sends the oldest.
"""

from __future__ import annotations

import dataclasses
import random
import statistics
from typing import Any

import pytest
from test_stream_figure1 import Disk

from streamsched.simulate import run_jobs
from streamsched.workloads import WORKLOADS

Core = tuple[Any, Any]

MS = 1_000_000
NEXT_MS, FAR_MS = 0.7, 10.0  # what the disk needs for what goes on at the head, and else
SLICE_MS = 100
A, NEAR, FAR = 1, 2, 3
HERE = 300_000_000  # sectors
READS, CHILDREN = 6, 9  # of A, sent ahead, and one by one
AHEAD = HERE + 400_000_000
NEARBY = HERE - 200_000


@pytest.fixture
def d(core: Core) -> Disk:
    return disk(core)


def disk(core: Core, slice_ns: int = 0) -> Disk:
    return Disk(core, "stream:noop", stream_time_slice=slice_ns, wait_target=2 * SLICE_MS * MS)


def in_a_turn(d: Disk, far: int = AHEAD, **kind: bool) -> tuple[Any, Any]:
    """A has read all that it wants; FAR's request and then NEAR's are pending.

    What is in the disk at the turn's beginning is done soon after.
    """
    for nr in range(READS):
        d.send(A, HERE + 8 * nr)
    others = d.send(FAR, far), d.send(NEAR, NEARBY, **kind)
    for nr in range(READS):
        rq = d.dispatch()
        assert rq.owner == A
        d.later(NEXT_MS if nr else FAR_MS)
        for done in (rq, *d.at_disk[:-1]):
            d.complete(done)
    for nr in range(CHILDREN):
        d.serve(d.send(A, HERE + 8 * (READS + nr)), NEXT_MS)
    return others


def wait_is_over(d: Disk) -> None:
    """For a child that does not come."""
    verdict, *rest = d.choose()
    assert verdict == "wait"
    d.at(rest[0])


def read_on(d: Disk, until_ms: float) -> Any:
    """NEAR has been served and reads on; whose request goes first, by then or instead of his."""
    sector = NEARBY + 8
    while d.now < until_ms:
        own = d.send(NEAR, sector)
        rq = d.dispatch()
        if rq != own:
            return rq
        d.later(NEXT_MS)
        d.complete()
        sector += 8
    return None


def test_who_is_near_goes_on(d: Disk) -> None:
    _, near = in_a_turn(d)
    wait_is_over(d)
    d.dispatch(near)


def test_the_stream_s_own_child_goes_first(d: Disk) -> None:
    in_a_turn(d)
    d.later(0.1)
    d.dispatch(d.send(A, HERE + 8 * (READS + CHILDREN)))


def test_he_is_waited_for_then(d: Disk) -> None:
    """As the stream was, whose turn it is."""
    _, near = in_a_turn(d)
    wait_is_over(d)
    d.serve(near, FAR_MS)
    d.later(2)
    assert d.choose()[0] == "wait"
    d.dispatch(d.send(NEAR, NEARBY + 8))


def test_the_turn_has_one_slice(d: Disk) -> None:
    """From its first request on, whoever is served in it."""
    far, near = in_a_turn(d)
    wait_is_over(d)
    d.serve(near, FAR_MS)
    assert read_on(d, 4 * SLICE_MS) == far
    assert SLICE_MS / 2 < d.now <= 2 * SLICE_MS + FAR_MS


def test_not_with_a_slice_that_is_set(core: Core) -> None:
    """The paper has nothing like it."""
    d = disk(core, SLICE_MS * MS)
    far, _ = in_a_turn(d)
    wait_is_over(d)
    d.dispatch(far)


def test_not_who_is_farther_than_the_inner_policy_s_choice(d: Disk) -> None:
    far, _ = in_a_turn(d, HERE + 100_000)
    wait_is_over(d)
    d.dispatch(far)


def test_a_write_that_somebody_waits_for_goes_on_too(d: Disk) -> None:
    _, near = in_a_turn(d, write=True, sync=True)
    wait_is_over(d)
    d.dispatch(near)


def test_not_where_the_disk_had_several_commands(d: Disk) -> None:
    """There the drive sees to the order."""
    others = [d.send(FAR, sector) for sector in (0, 10_000_000)]
    for rq in others:
        d.dispatch(rq)
    far, _ = in_a_turn(d)
    wait_is_over(d)
    d.dispatch(far)


@pytest.mark.parametrize("kind", ({"write": True}, {"ahead": True}))
def test_nothing_that_nobody_waits_for(d: Disk, kind: dict[str, bool]) -> None:
    far, _ = in_a_turn(d, **kind)
    wait_is_over(d)
    d.dispatch(far)


@pytest.mark.parametrize("inner", ("noop", "deadline", "sptf", "cscan"))
@pytest.mark.parametrize("gap", (8, 300_000))
def test_the_inner_policy_s_own_choice_ends_the_turn(core: Core, inner: str, gap: int) -> None:
    """Also where that policy looks at the head, which has moved when it is told."""
    spec = f"stream:{inner}"
    target = {"wait_target": 2 * SLICE_MS * MS, "answer_time": 0}
    d = Disk(core, spec, stream_time_slice=0, **target)
    for nr in range(READS):
        d.send(A, HERE + 8 * nr)
    nearest = d.send(FAR, HERE + 300_000)
    d.send(NEAR, HERE + 300_000 + gap)
    d.send(NEAR + FAR, HERE + 900_000)
    for nr in range(READS):
        rq = d.dispatch()
        d.later(NEXT_MS if nr else FAR_MS)
        for done in (rq, *d.at_disk[:-1]):
            d.complete(done)
    for nr in range(CHILDREN):
        d.serve(d.send(A, HERE + 8 * (READS + nr)), NEXT_MS)
    wait_is_over(d)
    d.serve(nearest, FAR_MS)
    assert d.choose()[0] == "dispatch"


DRAWS = 6


def rates(work: str, policy: str, **tunables: int) -> list[float]:
    """In MB/s, with processes that begin up to 20 ms later, each draw at other times."""
    setup = dataclasses.replace(WORKLOADS[work].setup(policy), tunables=tuple(tunables.items()))
    made = []
    for draw in range(DRAWS):
        dice = random.Random(draw)
        processes = [
            dataclasses.replace(each, startdelay_ns=dice.randrange(20 * MS) if draw else 0)
            for each in WORKLOADS[work].processes(setup.capacity_bytes)
        ]
        made.append(run_jobs(setup, processes).mb_s)
    return made


@pytest.mark.parametrize(
    ("work", "best_other"), [("multi-threads", "anticipatory"), ("pvfs", "cooperative")]
)
def test_processes_that_wait_for_each_other_are_served_together(work: str, best_other: str) -> None:
    """More is done than under the best policy that sees who they are; with trials, as much."""
    untried, tried = (
        statistics.geometric_mean(
            rates(work, "stream:deadline", stream_time_slice=0, trials=trials)
        )
        for trials in (0, 1)
    )
    other = statistics.geometric_mean(rates(work, best_other))
    assert untried > 1.03 * other
    # A trial puts them out of step, and is lost.
    assert tried > 0.97 * other
