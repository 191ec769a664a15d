# SPDX-License-Identifier: GPL-2.0-only
"""Two pending requests are joined: what results is as old as the older of them.

Else a chain of joins, each into a younger request, would put a request off without end.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from policy_driver import Driver

MS = 1_000_000
# All that bound how long a request waits: by time, by place in a queue or by how many pass.
INNER = ["noop", "deadline", "sptf", "linus", "stride", "wfq"]
SPECS = [
    *INNER,
    *("anticipatory", "cooperative", "cfq"),
    *(f"{wrapper}:{inner}" for wrapper in ("nwcs", "ss", "stream") for inner in INNER),
]
EXPIRING = [
    *("deadline", "sptf", "anticipatory", "cooperative", "cfq"),
    *("nwcs:sptf", "ss:deadline", "stream:deadline"),
]
OLD = 1_000_000  # a sector; the reader that keeps the disk busy is far above
BUSY = 100_000_000
PENDING = 8


class Chain:
    """A pending request and a younger one below it that takes it in, again and again."""

    def __init__(self, d: Driver, **kind: bool) -> None:
        self.d, self.kind = d, kind
        self.rq = d.send(1, OLD, **kind)

    def grow(self) -> Any:
        """A new one comes two places before it, and what is between them."""
        d, old = self.d, self.rq
        self.rq = d.send(1, old.sector - 16, **self.kind)
        d.merge(self.rq, **self.kind)
        assert d.lib.ss_sched_find_join(d.sched, self.rq, 4096) == old
        d.lib.ss_sched_joined(d.sched, self.rq, old, d.now_ns)
        d.pending.remove(old)
        return self.rq


@pytest.mark.parametrize("spec", SPECS)
def test_a_chain_of_joins_puts_nothing_off(spec: str) -> None:
    """Beside a reader with 8 requests pending always, a joined one goes within its bound."""
    d = Driver(spec)
    busy = [d.send(1, BUSY + i * 1024) for i in range(PENDING)]
    d.serve(ms=4)
    chain = Chain(d)
    begun_ms = d.now
    joins = 0
    while chain.rq in d.pending:
        assert d.now < begun_ms + 1000
        d.serve_when_chosen(4, 4)
        while sum(rq in d.pending for rq in busy) < PENDING:
            busy.append(d.send(1, BUSY + len(busy) * 1024))
        if d.now > begun_ms + 20 * (joins + 1) and chain.rq in d.pending:
            chain.grow()
            joins += 1
    assert chain.rq.arrival_ns == begun_ms * MS


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("spec", EXPIRING)
def test_the_earlier_arrival_and_expiry_stay(spec: str, write: bool) -> None:
    d = Driver(spec)
    chain = Chain(d, write=write)
    arrival_ns, expires_ns = chain.rq.arrival_ns, chain.rq.expires_ns
    assert expires_ns > arrival_ns
    for ms in range(10, 100, 10):
        chain_end = chain.rq.sector + chain.rq.nr_sectors
        d.at(ms)
        rq = chain.grow()
        assert (rq.arrival_ns, rq.expires_ns) == (arrival_ns, expires_ns)
        assert rq.sector + rq.nr_sectors == chain_end


@pytest.mark.parametrize("spec", EXPIRING)
def test_what_takes_in_a_younger_one_stays_as_old(spec: str) -> None:
    """A new request behind it or before it, and a pending one that came later."""
    d = Driver(spec)
    rq = d.send(1, OLD)
    was = (rq.arrival_ns, rq.expires_ns)
    later = d.at(10).send(1, OLD + 16)
    d.at(20).merge(rq)
    d.merge(rq, front=True)
    assert d.lib.ss_sched_find_join(d.sched, rq, 4096) == later
    d.lib.ss_sched_joined(d.sched, rq, later, d.now_ns)
    d.pending.remove(later)
    assert (rq.arrival_ns, rq.expires_ns) == was
    assert (rq.sector, rq.nr_sectors) == (OLD - 8, 32)


@pytest.mark.parametrize("spec", ["noop", "deadline", "sptf", "stride", "anticipatory", "cfq"])
def test_its_place_by_age_is_the_older_one_s(spec: str) -> None:
    """Between two others that came between the two that are joined, nothing changes."""
    d = Driver(spec)
    first = d.send(1, 5 * OLD)
    chain = Chain(d.at(1))
    second, third = (d.at(ms).send(1, (10 - ms) * OLD) for ms in (2, 3))
    d.at(4)
    by_age = [first, chain.grow(), second, third]
    for rq, next_rq in pairwise(by_age):
        assert rq.fifo_node.next == d.ffi.addressof(next_rq, "fifo_node")


@pytest.mark.parametrize("flag", ["", "SS_SYNC", "SS_META", "SS_AHEAD", "SS_HANDED_ON"])
def test_only_requests_of_one_kind_are_joined(flag: str) -> None:
    """Pending ones or new ones: not when a flag or the direction differs."""
    d = Driver("deadline")
    lib, at = d.lib, OLD
    bit = getattr(lib, flag) if flag else 0
    for first, second in ((0, 0), (0, bit), (bit, 0), (bit, bit)):
        for write in (False, True):
            before, behind = d.request(1, at, write=write), d.request(1, at + 8)
            before.flags, behind.flags = first, second
            for rq in (before, behind):
                lib.ss_sched_arrived(d.sched, rq, d.now_ns)
                d.pending.append(rq)
            same = first == second and not write
            found = lib.ss_sched_find_join(d.sched, before, 4096)
            assert found == (behind if same else d.ffi.NULL)
            found = lib.ss_sched_find_front(d.sched, at + 8, int(write), first)
            assert found == (behind if same else d.ffi.NULL)
            at += 1000
