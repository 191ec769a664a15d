# SPDX-License-Identifier: GPL-2.0-only
"""stream and writes that the drive's cache takes: they need no head before they are flushed.

Everything is virtual time.
"""

from __future__ import annotations

from typing import Any

import pytest
from job_text import job_text
from policy_driver import FAR, Driver
from test_stream import Reader, driver, run

from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Setup, run_jobs
from streamsched.work.jobfile import parse_jobs

AT = 3 * FAR


@pytest.fixture
def d() -> Driver:
    return driver()


def write(d: Driver, **kind: bool) -> Any:
    return d.send(0, AT, write=True, sync=True, **kind)


def told(d: Driver, took_ms: float) -> None:
    """Alone on the disk, it has answered a write in @took_ms, which was flushed."""
    d.serve(write(d), ms=took_ms)
    d.flushes(begins=True)
    d.later(1).flushes(begins=False)
    d.later(100)


def reading(d: Driver) -> Any:
    """It is the turn of the first of two streams: what it has at the disk."""
    readers = [Reader(d, n * FAR) for n in range(2)]
    for _ in range(40):
        rq = d.wait().serve(ms=1)
        next(reader for reader in readers if reader.rq == rq).next()
    return d.wait().dispatch()


def test_it_goes_at_once_and_the_turn_goes_on(d: Driver) -> None:
    """Beside a command that another party's read would have to wait for."""
    told(d, 0.05)
    rq = reading(d)
    cached = write(d)
    assert d.dispatch() == cached and d.reason == d.lib.SS_WHY_LIGHT
    d.later(0.05).complete(cached)
    d.later(1).complete(rq)
    after = d.send(0, rq.sector + 128, 128)
    assert d.dispatch() == after and d.reason == d.lib.SS_WHY_OWN


def test_not_for_who_never_flushes(d: Driver) -> None:
    """It waits for no head, so it would pay for none."""
    d.serve(write(d), ms=0.05)
    d.later(100)
    reading(d)
    write(d)
    assert d.choose()[0] == "wait"


@pytest.mark.parametrize("kind", ["read", "write-back"])
def test_nothing_else_does(d: Driver, kind: str) -> None:
    """A read needs the head, and for write-back nobody waits."""
    told(d, 0.05)
    reading(d)
    d.send(0, AT, write=kind == "write-back")
    assert d.choose()[0] == "wait"


def test_not_where_the_last_one_took_a_way(d: Driver) -> None:
    """There is no cache, or it is full."""
    told(d, 0.05)
    told(d, 5)
    reading(d)
    write(d)
    assert d.choose()[0] == "wait"


def test_long_ones_have_time_to_be_moved(d: Driver) -> None:
    """As a disk moves them: a cache takes them no slower."""
    told(d, 5)
    d.serve(d.send(0, AT, 2048, write=True, sync=True), ms=3)
    d.later(100)
    reading(d)
    cached = write(d)
    assert d.dispatch() == cached


def test_not_while_others_have_waited_for_the_target(d: Driver) -> None:
    """Nobody starves: then the longest waiting is next."""
    told(d, 0.05)
    reading(d)
    d.later(480)
    write(d)
    assert d.choose()[0] == "wait"


def test_not_while_one_has_waited_behind_a_light_one(d: Driver) -> None:
    """That is due earlier, and waits for what the disk has."""
    told(d, 0.05)
    run(d, [Reader(d, n * FAR) for n in range(2)], 1000)
    d.wait().dispatch()
    d.later(10)
    d.send(0, 2 * FAR)
    d.later(200)
    write(d)
    assert d.choose()[0] == "wait"


def test_not_in_the_turn_of_those_who_have_waited(d: Driver) -> None:
    """They send one after the other, in no stream: the rest has the turn and is in no order."""
    told(d, 0.05)
    d.dispatch(d.send(0, FAR))
    waits = d.send(0, 2 * FAR)
    d.later(600)
    write(d)
    assert d.dispatch() == waits


def test_who_has_flushed_twice_pays_first(d: Driver) -> None:
    """A flush is the head's time. One may be owed, as its sender may write on at once."""
    told(d, 0.05)
    reading(d)
    for flushes in range(2):
        cached = write(d)
        assert d.dispatch() == cached, flushes
        d.later(0.05).complete(cached)
        d.flushes(begins=True)
        d.later(20).flushes(begins=False)
    write(d)
    assert d.choose()[0] == "wait"


COMMITS = job_text("""
[global] direct=1 runtime=30 time_based
[backup] rw=read bs=1m direct=0 size=100g
[vm] rw=randread bs=16k thinktime=50ms numjobs=2 offset=30% offset_increment=20% size=40g
[commits] rw=write bs=4k fdatasync=1 thinktime=200ms offset=80% size=1g
""")


@pytest.mark.parametrize("owners", ["none", "process"])
@pytest.mark.parametrize("disk", ["exos-x18", "st2000dm006", "wd5000aaks"])
def test_who_commits_now_and_then_does_not_wait_for_the_head(disk: str, owners: str) -> None:
    """The drive has a place in its queue for it; it waited for 29 to 98 ms on these."""
    model = load_disk(disk)
    setup = Setup(model, "stream:deadline", owners=owners, queue_depth=32)
    jobs = parse_jobs(COMMITS, capacity_bytes=model.capacity_sectors * 512)
    *others, commits = run_jobs(setup, jobs).jobs
    alone = [run_jobs(setup, [job]).jobs[0].bytes for job in jobs]
    assert commits.latency[1]["mean_ns"] < 3e6
    parts = [4 * found.bytes / most for found, most in zip((*others, commits), alone, strict=True)]
    assert min(parts) >= 0.75, parts
