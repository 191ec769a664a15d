# SPDX-License-Identifier: GPL-2.0-only
"""Trace readers: completions, and the order of events."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_samples import BLK, COMPLETE, ISSUE, QUEUE, READ, WRITE, event, parse

from streamsched.work import tracefile

STACKS = [
    b" a-7 [000] d..1. 1.6: <stack trace>\n => submit_bio\n => __x64_sys_io_submit\n",
    b"\tffffffff8139ab12 submit_bio+0x1 ([kernel.kallsyms])\n\t  7f00 [unknown] (/a b)\n\n",
]


@pytest.mark.parametrize("stack", STACKS)
def test_a_call_stack_behind_an_event_is_passed_over(stack: bytes) -> None:
    line = b" a-7 [000] 1.5: block_rq_issue: 8,0 R 4096 () %d + 8 [a]\n"
    result = parse(b"".join(line % sector + stack for sector in (0, 8)), "ftrace")
    assert (result.why, [rq.sector for rq in result.requests]) == (None, [0, 8])
    assert tracefile.detect(line % 0 + stack) == "ftrace"


def test_comments_above_what_blkparse_printed() -> None:
    result = parse(b"# of a disk\n#\n" + BLK, "blkparse")
    assert result.why is None and len(result.requests) == 1
    assert tracefile.detect(b"# of a disk\n" + BLK) == "blkparse"


def test_without_queue_events_an_issue_is_the_arrival() -> None:
    data = event(5, 8, 8, ISSUE | READ) + event(9, 8, 8, COMPLETE | READ)
    assert parse(data, "blktrace").requests == [(0, 4, 8, 8, "R", 0, 7, 1)]
    with_queue = event(1, 8, 8, QUEUE | READ) + data
    assert parse(with_queue, "blktrace").requests == [(0, 8, 8, 8, "R", 0, 7, 1)]


def test_processors_in_pieces_are_put_in_order() -> None:
    times = {0: [1, 4, 5, 9], 1: [2, 3, 8], 2: [6, 7]}
    data = b"".join(event(t, t, 1, QUEUE, cpu=cpu) for cpu, ts in times.items() for t in ts)
    assert [r.sector for r in parse(data, "blktrace").requests] == list(range(1, 10))


def test_no_data_is_no_request() -> None:
    discard, notify, command = 1 << 29, 1 << 26, 1 << 25
    data = b"".join(
        event(1, 2, 8, action) for action in (QUEUE | discard, 0 | notify, QUEUE | command)
    )
    data += event(2, 2, 0, QUEUE | WRITE) + event(3, 5, 8, QUEUE | WRITE)
    assert [r.sector for r in parse(data, "blktrace").requests] == [5]


def test_more_open_requests_than_are_kept() -> None:
    many = 20000
    data = b"".join(event(i, i * 8, 8, QUEUE | READ) for i in range(many))
    data += event(many, (many - 1) * 8, 8, COMPLETE | READ)
    requests = parse(data, "blktrace").requests
    assert [r.sector for r in requests] == [i * 8 for i in range(many)]
    assert [r.complete_ns for r in requests[:-1]] == [None] * (many - 1)
    assert requests[-1].complete_ns == many


@pytest.mark.property
@given(st.randoms(use_true_random=False))
def test_completions_against_a_slow_model(chance: random.Random) -> None:
    """Disjoint requests, merged or split at will, all complete at a known time."""
    data = b""
    want: list[list[Any]] = []
    open_: list[tuple[int, int, int]] = []
    now = at = 0
    for number in range(chance.randrange(1, 60)):
        now += chance.randrange(1, 1000)
        nr = chance.randrange(1, 64)
        data += event(now, at, nr, QUEUE | READ, cpu=number % 3)
        open_.append((len(want), at, nr))
        want.append([now, None, at, nr])
        at += nr + chance.choice([0, 0, 5])
        while open_ and chance.random() < 0.4:
            now += chance.randrange(1, 1000)
            first = chance.randrange(len(open_))
            last = first + 1
            while (
                last < len(open_)
                and open_[last - 1][1] + open_[last - 1][2] == open_[last][1]
                and chance.random() < 0.7
            ):
                last += 1
            begin, end = open_[first][1], open_[last - 1][1] + open_[last - 1][2]
            parts = [begin, end]
            if last == first + 1 and end - begin > 1 and chance.random() < 0.3:
                parts.insert(1, chance.randrange(begin + 1, end))
            pieces = list(itertools.pairwise(parts))
            chance.shuffle(pieces)
            for low, high in pieces:
                now += 1
                data += event(now, low, high - low, COMPLETE | READ, cpu=0)
            for index, _, _ in open_[first:last]:
                want[index][1] = now
            del open_[first:last]
    # One processor's times never run backwards; these are in order altogether.
    got = parse(data, "blktrace").requests
    base = want[0][0]
    assert [list(r[:4]) for r in got] == [
        [a - base, None if c is None else c - base, s, n] for a, c, s, n in want
    ]


@pytest.mark.property
@given(st.randoms(use_true_random=False))
def test_completions_of_the_same_sectors(chance: random.Random) -> None:
    """Many requests for few places: each completion is the oldest one's there."""
    data = b""
    want: list[tuple[int, int | None]] = []
    open_: dict[int, list[int]] = {sector: [] for sector in (0, 8, 16, 24)}
    for now in range(chance.randrange(1, 200)):
        sector = chance.choice([*open_])
        if open_[sector] and chance.random() < 0.5:
            index = open_[sector].pop(0)
            want[index] = (want[index][0], now)
            data += event(now, sector, 8, COMPLETE | READ)
        else:
            open_[sector].append(len(want))
            want.append((now, None))
            data += event(now, sector, 8, QUEUE | READ)
    got = parse(data, "blktrace").requests
    assert [(r.arrival_ns, r.complete_ns) for r in got] == want
