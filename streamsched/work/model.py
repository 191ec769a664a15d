# SPDX-License-Identifier: GPL-2.0-only
"""What a recorded piece of a disk's life says of those who sent it, made endless.

A closed replay sends each request as long after the completion that its sender had waited for as
in the trace. But what was recorded in a minute under one scheduler may be done in a second under
another one. So each sender goes on as it did: its requests are repeated, behind where they ended
if it goes forward through the disk. One that ended before the recording did rests until its end.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import statistics
from collections.abc import Iterator, Sequence

from streamsched.work.blocktrace import Bio

NS = 1_000_000_000
# A request continues a stream if it begins at its end, or so many sectors on.
AHEAD = 2048
# A stream that is shorter is a few requests of the rest.
LEAST = 8
# So many streams of one process are known at a time; those that paused longest end.
MOST_STREAMS = 64
# Threads of the kernel of which any one does the next piece of work, whoever it is for.
POOLS = ("kworker/", "nfsd", "iou-wrk-")
POOL = -1
# A sender is sequential if so many of its requests continue the one before.
MOSTLY = 0.5
# Streams of one process do not depend on each other if so many of its requests overlap.
OVERLAPPING = 0.2
# A sender has ended, or came later, if it is quiet for so many times its longest pause.
PAUSES = 2
# Of a recording in which some rest and others go on all the time, no more is played.
MOST_NS = 300 * NS
# No disk serves a request faster than in so many ns, and so many more for each sector.
FASTEST_NS, FASTEST_SECTOR_NS = 50_000, 1500


@dataclasses.dataclass
class Sender:
    """Requests that depend on each other: a process's, or one stream of what a worker hands on."""

    number: int
    pid: int
    comm: str
    bios: list[Bio]
    rest_ns: int = 0  # to the recording's end, and from its beginning; 0: it goes on at once

    @property
    def sequential(self) -> bool:
        """Does it mostly go forward from where it was?"""
        near = sum(
            0 <= b.sector - (a.sector + a.sectors) <= AHEAD
            for a, b in itertools.pairwise(self.bios)
        )
        return len(self.bios) > 1 and near >= MOSTLY * (len(self.bios) - 1)


def _streams(bios: Sequence[Bio]) -> list[list[Bio]]:
    """Those of one process by place: streams, and last what is in none."""
    ends: list[tuple[int, list[Bio]]] = []
    ended: list[tuple[int, list[Bio]]] = []
    for bio in bios:
        for i, (end, members) in enumerate(ends):
            if 0 <= bio.sector - end <= AHEAD and members[-1].write == bio.write:
                members.append(bio)
                ends[i] = (bio.sector + bio.sectors, members)
                ends.insert(0, ends.pop(i))
                break
        else:
            ends.insert(0, (bio.sector + bio.sectors, [bio]))
            ended += ends[MOST_STREAMS:]
            del ends[MOST_STREAMS:]
    ends += ended
    long = [members for _, members in ends if len(members) >= LEAST]
    rest = [bio for _, members in ends if len(members) < LEAST for bio in members]
    rest.sort(key=lambda bio: bio.arrival_ns)
    return [*long, rest] if rest else long


def _overlap(streams: Sequence[Sequence[Bio]]) -> bool:
    """Do requests of several streams wait at the same time? Then none depends on the others."""
    events = sorted(
        (bio.arrival_ns, bio.complete_ns, index)
        for index, members in enumerate(streams)
        for bio in members
    )
    overlapping, latest = 0, (0, -1)
    for arrival, complete, index in events:
        if arrival < latest[0] and index != latest[1]:
            overlapping += 1
        latest = max(latest, (complete, index))
    return overlapping > OVERLAPPING * len(events)


def senders(bios: Sequence[Bio]) -> list[Sender]:
    """Who sent what: by process, and where one or a pool sends for many, by place."""
    by_pid: dict[int, list[Bio]] = {}
    for bio in bios:
        by_pid.setdefault(POOL if bio.comm.startswith(POOLS) else bio.pid, []).append(bio)
    found: list[Sender] = []
    for own in by_pid.values():
        parts = _streams(own)
        if len(parts) < 2 or not _overlap(parts):
            parts = [own]
        for part in parts:
            found.append(Sender(len(found) + 1, part[0].pid, part[0].comm, part))
    _let_rest(found)
    return found


def _let_rest(those: Sequence[Sender]) -> None:
    """Those that ended before the others did; then who came later rests too, to come as late."""
    begin = min((one.bios[0].arrival_ns for one in those), default=0)
    end = max((bio.complete_ns for one in those for bio in one.bios), default=0)
    # By arrivals: where all stop at once, the one whose last request waits longest does not go on.
    latest = max((one.bios[-1].arrival_ns for one in those), default=0)
    late, ended = [], False
    for one in those:
        first = one.bios[0].arrival_ns
        times = [first, *sorted(bio.complete_ns for bio in one.bios)]
        pause = PAUSES * max(b - a for a, b in itertools.pairwise(times))
        before, after = first - begin, end - times[-1]
        if latest - times[-1] > pause:
            one.rest_ns, ended = before + after, True
        elif before > pause:
            late.append((one, before + after))
    if ended:
        for one, rest_ns in late:
            one.rest_ns = rest_ns


def lasting(those: Sequence[Sender], least_ns: int, most_ns: int = MOST_NS) -> int:
    """How long to play @those: @least_ns; where some rest, whole recordings that last as long."""
    whole = max((_period(one)[0] for one in those if one.rest_ns), default=1)
    length_ns = -(-least_ns // whole) * whole
    if not all(one.rest_ns for one in those):
        length_ns = min(length_ns, most_ns)
    return max(least_ns, length_ns)


def _period(sender: Sender) -> tuple[int, int]:
    """How long after it each repetition begins, and how many sectors behind it."""
    bios = sender.bios
    first, last = bios[0], max(bios, key=lambda bio: bio.complete_ns)
    thinks = [max(0, b.arrival_ns - a.complete_ns) for a, b in itertools.pairwise(bios)]
    think = int(statistics.median(thinks)) if thinks else 0
    period = last.complete_ns - first.arrival_ns + (sender.rest_ns or think)
    behind = 0
    if sender.sequential:
        behind = max(0, bios[-1].sector + bios[-1].sectors - first.sector)
    return max(period, 1), behind


def _repeated(sender: Sender, capacity: int, least_ns: int, most: int) -> Iterator[Bio]:
    """Its requests again and again, until nothing could do them within @least_ns."""
    period, behind = _period(sender)
    per_copy = sum(FASTEST_NS + bio.sectors * FASTEST_SECTOR_NS for bio in sender.bios)
    copies = 1 + least_ns // max(per_copy + sender.rest_ns, 1)
    sent = 0
    for copy in range(copies):
        for bio in sender.bios:
            sector = (bio.sector + copy * behind) % max(capacity - bio.sectors, 1)
            yield dataclasses.replace(
                bio,
                sector=sector,
                pid=sender.number,
                arrival_ns=bio.arrival_ns + copy * period,
                complete_ns=bio.complete_ns + copy * period,
            )
            sent += 1
            if sent >= most:
                return


def endless(
    those: Sequence[Sender], capacity: int, least_ns: int, most: int = 200_000
) -> Iterator[bytes]:
    """The text of a trace (blkparse) in which each of @those goes on for @least_ns at least.

    @capacity in sectors; @most: requests of each.
    """
    merged = heapq.merge(
        *(_repeated(one, capacity, least_ns, most) for one in those),
        key=lambda bio: bio.arrival_ns,
    )
    ends: list[tuple[int, int, str]] = []
    begin = min(one.bios[0].arrival_ns for one in those)
    number = 0
    lines: list[str] = []

    def line(at_ns: int, pid: int, action: str, what: str) -> None:
        nonlocal number
        number += 1
        s, ns = divmod(at_ns - begin, NS)
        lines.append(f"8,0 0 {number} {s}.{ns:09d} {pid} {action} {what}\n")

    for bio in merged:
        while ends and ends[0][0] <= bio.arrival_ns:
            at, pid, what = heapq.heappop(ends)
            line(at, pid, "C", what)
        kind = ("W" if bio.write else "R") + ("S" if bio.sync else "")
        what = f"{kind} {bio.sector} + {bio.sectors} [x]"
        line(bio.arrival_ns, bio.pid, "Q", what)
        heapq.heappush(ends, (bio.complete_ns, bio.pid, what))
        if len(lines) > 4096:
            yield "".join(lines).encode()
            lines.clear()
    while ends:
        at, pid, what = heapq.heappop(ends)
        line(at, pid, "C", what)
    yield "".join(lines).encode()
