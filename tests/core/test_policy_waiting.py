# SPDX-License-Identifier: GPL-2.0-only
"""anticipatory and cfq: what both do alike when they wait for the process that has just read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_driver import FAR, Driver, Step, play, read_with_another_pending

WAIT_MS = {"anticipatory": 6, "cfq": 8}
NO_WAIT = {"anticipatory": {"antic_expire": 0}, "cfq": {"slice_idle": 0}}


@pytest.fixture(params=WAIT_MS)
def policy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def d(policy: str) -> Driver:
    return Driver(policy)


@pytest.fixture
def until(policy: str) -> int:
    """When the wait is over for a request that completes after 5 ms."""
    return 5 + WAIT_MS[policy]


def test_waits_after_a_read_for_its_process(d: Driver, until: int) -> None:
    read_with_another_pending(d)
    assert d.choose() == ("wait", until)
    assert d.waits() == (1, 0, 0)


def test_waits_no_longer_than_that(d: Driver, until: int) -> None:
    other = read_with_another_pending(d)
    d.at(until - 0.000001)
    assert d.choose()[0] == "wait"
    d.at(until).dispatch(other)
    assert d.waits() == (1, 0, 1)


def test_the_wait_ends_with_the_same_process(d: Driver, until: int) -> None:
    read_with_another_pending(d)
    d.dispatch(d.at(until - 4).send(1, 8))
    assert d.waits() == (1, 1, 0)


def test_waits_after_a_sync_write(d: Driver, until: int) -> None:
    d.serve_beside(1, 0, ms=5, write=True, sync=True)
    assert d.choose() == ("wait", until)


def test_with_nothing_pending_it_is_no_wait(d: Driver) -> None:
    d.serve(d.send(1, 0), ms=5)
    assert d.choose() == ("nothing",)
    assert d.count("waits") == 0


def test_begins_to_wait_when_another_comes_in_time(d: Driver, until: int) -> None:
    d.serve(d.send(1, 0), ms=5)
    d.at(8).send(2, FAR)
    assert d.choose() == ("wait", until)
    assert d.count("waits") == 1


def test_does_not_wait_when_another_comes_late(d: Driver, until: int) -> None:
    d.serve(d.send(1, 0), ms=5)
    d.at(until)
    d.dispatch(d.send(2, FAR))
    assert d.waits() == (0, 0, 0)


def test_may_be_told_never_to_wait(policy: str) -> None:
    d = Driver(policy, **NO_WAIT[policy])
    d.dispatch(read_with_another_pending(d))


def test_hidden_owners_are_as_one_process(d: Driver) -> None:
    """Any pending request is the process's own, so that nothing is waited for."""
    d.dispatch(read_with_another_pending(d, owner=0, other=0))
    assert d.count("waits") == 0


def test_more_owners_than_places_share_one(d: Driver, policy: str) -> None:
    """All of them pending at once; none is lost. Only cfq idles between them."""
    sent = [d.send(owner, owner * 1000) for owner in range(1, 300)]
    served = [(d.wait() if policy == "cfq" else d).serve() for _ in sent]
    assert {rq.owner for rq in served} == set(range(1, 300))


def test_places_of_idle_owners_are_reused(d: Driver) -> None:
    for owner in range(1, 1000):
        d.serve(d.send(owner, owner * 8))
    d.later(100)
    read_with_another_pending(d, 5000, 5001)
    assert d.choose()[0] == "wait"


def test_front_merge_moves_a_request(d: Driver) -> None:
    a, b = d.send(1, 1000), d.send(1, 2000)
    d.lib.ss_sched_merged(d.sched, b, d.request(1, 1992), 0)
    assert (b.sector, b.nr_sectors) == (1992, 16)
    d.serve(a)
    d.serve(b)


STEP = st.builds(
    Step,
    after_us=st.sampled_from([0, 0, 100, 900, 3000, 7000, 9000, 30_000, 140_000]),
    action=st.sampled_from(["send"] * 8 + ["remove", "gone", "merge", "merge"]),
    owner=st.integers(0, 5),
    sector=st.one_of(st.integers(0, 2**31 - 1), st.integers(0, 60).map(lambda n: n * 8)),
    sectors=st.sampled_from([8, 8, 128]),
    write=st.booleans(),
    sync=st.booleans(),
    meta=st.booleans(),
)


@pytest.mark.property
@pytest.mark.parametrize("policy", ["anticipatory", "cfq", "cooperative"])
@given(
    steps=st.lists(STEP, max_size=60),
    depth=st.sampled_from([1, 2, 4, 32]),
    service_us=st.sampled_from([50, 1000, 8000]),
)
def test_every_request_is_served_once_and_the_same_way(
    policy: str, steps: list[Step], depth: int, service_us: int
) -> None:
    first = play(policy, steps, depth, service_us)
    assert play(policy, steps, depth, service_us) == first
