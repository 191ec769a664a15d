# SPDX-License-Identifier: GPL-2.0-only
"""What replay does, open and closed, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from process_driver import KIB, MS, PAPERS, SSD, US, Row, S, one_read_ns

from streamsched._core import lib
from streamsched.sim.simulate import Setup, Simulation


class Traced(NamedTuple):
    """A request as blkparse prints it; @done_ns where its completion is recorded."""

    at_ns: int
    sector: int
    owner: int = 7
    done_ns: int | None = None
    nr_sectors: int = 8


def trace_of(requests: Sequence[Traced]) -> bytes:
    events = []
    for one in requests:
        where = f"R {one.sector} + {one.nr_sectors}"
        events.append((one.at_ns, f"{one.owner} Q {where} [p]"))
        if one.done_ns is not None:
            events.append((one.at_ns, f"{one.owner} D {where} [p]"))
            events.append((one.done_ns, f"0 C {where} [0]"))
    lines = []
    for number, (at, what) in enumerate(sorted(events, key=lambda event: event[0])):
        lines.append(f"8,0 1 {number + 1} {at // S}.{at % S:09d} {what}\n")
    return "".join(lines).encode()


def replayed(requests: Sequence[Traced], disk: Any = SSD, **setup: Any) -> list[Row]:
    data = trace_of(requests)
    with Simulation(Setup(disk, "noop", **setup)) as simulation:
        simulation.readers = [lib.trace_open(b"blkparse", False)]
        lib.sim_add_trace(simulation.sim, simulation.readers[0], 0)
        pieces = [data, b""]

        def feed() -> bool:
            piece = pieces.pop(0)
            lib.trace_feed(simulation.readers[0], piece, len(piece), not piece)
            return bool(piece)

        simulation.log(1000)
        for _ in simulation.steps(feed):
            pass
        return [Row(*row) for row in simulation.log_rows()]


READ_NS = one_read_ns(4 * KIB)
A, B, C = 1_000, 2_000_000, 4_000_000


def test_open_keeps_the_time_stamps() -> None:
    rows = replayed([Traced(0, A), Traced(5 * MS, B), Traced(5 * MS + 1, C)])
    assert [(row.sector, row.arrival_ns) for row in rows] == [(A, 0), (B, 5 * MS), (C, 5 * MS + 1)]


def test_open_does_not_care_what_was_done() -> None:
    requests = [Traced(0, A, done_ns=4 * MS), Traced(5 * MS, B)]
    assert [row.arrival_ns for row in replayed(requests)] == [0, 5 * MS]
    slow = [Traced(n * US, A + n * 1_000_000) for n in range(4)]
    assert [row.arrival_ns for row in replayed(slow, PAPERS)] == [0, US, 2 * US, 3 * US]


def test_open_begins_at_the_first_time_stamp() -> None:
    rows = replayed([Traced(5 * S, A), Traced(5 * S + MS, B)])
    assert rows[1].arrival_ns - rows[0].arrival_ns == MS


def test_closed_keeps_the_thinking_after_a_recorded_completion() -> None:
    """It came 1 ms after its predecessor was done: here too, however fast the disk is."""
    requests = [Traced(0, A, done_ns=4 * MS), Traced(5 * MS, B, done_ns=9 * MS)]
    rows = replayed(requests, closed=True)
    assert rows[0].arrival_ns == 0
    assert rows[0].complete_ns == READ_NS
    assert rows[1].arrival_ns == READ_NS + 1 * MS


def test_closed_keeps_together_what_was_sent_together() -> None:
    """It came before its predecessor was done: it did not wait for that one."""
    requests = [Traced(0, A, done_ns=9 * MS), Traced(5 * MS, B, done_ns=12 * MS)]
    rows = replayed(requests, closed=True)
    assert [row.arrival_ns for row in rows] == [0, 5 * MS]


def test_closed_waits_for_the_last_one_done() -> None:
    """Of two that were done before it came, it follows the later one, 2 ms after."""
    requests = [
        Traced(0, A, done_ns=4 * MS),
        Traced(10 * US, B, done_ns=6 * MS),
        Traced(8 * MS, C, done_ns=9 * MS),
    ]
    rows = replayed(requests, closed=True)
    assert rows[1].arrival_ns == 10 * US
    assert rows[2].arrival_ns == rows[1].complete_ns + 2 * MS


def test_closed_owners_do_not_wait_for_each_other() -> None:
    requests = [Traced(0, A, owner=7, done_ns=4 * MS), Traced(5 * MS, B, owner=8, done_ns=9 * MS)]
    rows = replayed(requests, closed=True)
    assert [row.arrival_ns for row in rows] == [0, 5 * MS]


def test_closed_keeps_the_order_of_an_owner() -> None:
    """What is due before an older request of its owner follows that at once, but apart from it."""
    requests = [
        Traced(0, A, done_ns=10 * MS),
        Traced(1 * MS, B, done_ns=2 * MS),
        Traced(3 * MS, C, done_ns=4 * MS),
        Traced(11 * MS, C + 8, done_ns=12 * MS),
    ]
    rows = replayed(requests, closed=True)
    assert [row.sector for row in rows] == [A, B, C, C + 8]
    assert rows[2].arrival_ns == rows[1].complete_ns + 1 * MS > rows[0].complete_ns + 1 * MS
    assert rows[3].arrival_ns == rows[2].arrival_ns + 50 * US


def test_closed_those_done_together_are_waited_for_by_one_each() -> None:
    """As who reads two windows ahead sends one for each that is done."""
    requests = [
        Traced(0, A, done_ns=5 * MS),
        Traced(20 * US, B, done_ns=5 * MS),
        Traced(6 * MS, C, done_ns=8 * MS),
        Traced(6 * MS + 20 * US, C + 8_000, done_ns=9 * MS),
    ]
    rows = replayed(requests, closed=True)
    assert rows[0].complete_ns < rows[1].complete_ns
    assert rows[2].arrival_ns == rows[0].complete_ns + 1 * MS
    assert rows[3].arrival_ns == rows[1].complete_ns + 1 * MS + 20 * US


def test_closed_without_completions_takes_the_curve() -> None:
    """No completion is recorded: it is estimated, and never later than the next arrival."""
    rows = replayed([Traced(0, A), Traced(100 * MS, B)], closed=True)
    think_ns = rows[1].arrival_ns - rows[0].complete_ns
    # 100 ms less the estimate, which on this disk is some 70 us.
    assert 99 * MS < think_ns < 100 * MS
    rows = replayed([Traced(0, A), Traced(60 * US, B)], closed=True)
    assert rows[1].arrival_ns >= rows[0].complete_ns


def test_closed_a_slower_disk_delays_what_depends_on_it() -> None:
    requests = [Traced(n * 2 * MS, A + n * 100_000_000, done_ns=n * 2 * MS + MS) for n in range(5)]
    rows = replayed(requests, PAPERS, closed=True)
    assert all(b.arrival_ns == a.complete_ns + MS for a, b in pairwise(rows))
