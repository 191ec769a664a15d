# SPDX-License-Identifier: GPL-2.0-only
"""stream_time_slice=auto with more work than can be done within the target: a turn pays its way."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from policy_driver import Driver

from streamsched.diskfile import load_disk
from streamsched.jobfile import parse_jobs
from streamsched.simulate import Run, Setup, run_jobs

Core = tuple[Any, Any]

MS = 1_000_000
NEXT_MS, FAR_MS = 3.0, 15.0  # what the disk needs for what goes on at the head, and else
APART = 50_000_000  # sectors
LENGTH = 512
NR, EACH = 32, 8  # readers, and how many requests of each are outstanding


def owners_served(d: Driver) -> Iterator[Any]:
    """Readers who send the next request for each that is served; whose was served."""
    at = [n * APART for n in range(NR)]

    def send(owner: int) -> None:
        d.send(owner, at[owner], LENGTH)
        at[owner] += LENGTH

    for _, owner in itertools.product(range(EACH), range(NR)):
        send(owner)
    while True:
        rq = d.serve_when_chosen(NEXT_MS, FAR_MS)
        yield rq.owner
        d.later(0.01)
        send(rq.owner)


@pytest.mark.parametrize("inner", ("noop", "deadline", "cscan", "sptf"))
def test_who_is_late_goes_on_beside_others_who_are(core: Core, inner: str) -> None:
    """256 outstanding: not even without a seek would all be served in 500 ms."""
    assert NR * EACH * NEXT_MS > 500
    d = Driver(core, f"stream:{inner}", stream_time_slice=0)
    served = owners_served(d)
    while d.now < 5000:
        next(served)
    turns = [len(list(turn)) for _, turn in itertools.groupby(itertools.islice(served, 2000))]
    # As much time for what the turn is for as for its way there, or all that is late.
    assert sum(turns) / len(turns) >= FAR_MS / NEXT_MS


READERS = """
[reader]
rw=read
bs=64k
direct={direct}
size=2g
offset_increment={apart}g
numjobs={readers}
time_based
runtime=20
"""


def many_readers(policy: str, readers: int, depth: int, direct: bool, **tunables: int) -> Run:
    disk = load_disk("wd5000aaks")
    text = READERS.format(direct=int(direct), apart=450 // readers, readers=readers)
    jobs = parse_jobs(text, capacity_bytes=disk.capacity_sectors * 512)
    setup = Setup(disk, policy, owners="none", queue_depth=depth, tunables=tuple(tunables.items()))
    return run_jobs(setup, jobs)


@pytest.mark.parametrize("direct", (False, True), ids=("buffered", "direct"))
@pytest.mark.parametrize("depth", (1, 32))
@pytest.mark.parametrize("readers", (64, 100))
def test_where_the_target_cannot_be_kept_half_of_the_rate_is(
    readers: int, depth: int, direct: bool
) -> None:
    """To go to each of 64 readers once takes longer than 500 ms: nobody can keep that.

    With turns of one request each, as it was, they have a tenth of the disk's rate, as
    without stream.
    """
    run = many_readers("stream:deadline", readers, depth, direct, stream_time_slice=0, trials=0)
    inner = many_readers("deadline", readers, depth, direct)
    assert run.mb_s >= (4 if direct else 1.7) * inner.mb_s
    assert run.mb_s >= 34
    # For each of the others two switches, with a queue in the disk twice that at first.
    assert run.response.max <= readers * 2 * 13.1 * (1 if depth == 1 else 2)
    # That the inner policy is tried before all of them are known as streams costs some of it.
    tried = many_readers("stream:deadline", readers, depth, direct, stream_time_slice=0)
    assert tried.mb_s >= 0.85 * run.mb_s


def test_where_the_target_can_be_kept_it_is() -> None:
    """32 readers are the most for whom it leaves nearly half of the rate."""
    run = many_readers("stream:deadline", 32, 1, True, stream_time_slice=0)
    assert run.wait.p99 <= 502
    assert run.response.max <= 500 + 2 * run.service.max
