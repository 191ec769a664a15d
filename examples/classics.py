# SPDX-License-Identifier: GPL-2.0-only
"""noop, cscan and deadline of core/policy/, in Python; tests compare each with its twin."""

from __future__ import annotations

import bisect

from streamsched.sim.pythonpolicy import Request

MS = 1_000_000


class Sorted:
    """Requests by position; those at the same sector in the order in which they came."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, Request]] = []
        self.count = 0

    def add(self, request: Request) -> None:
        """One more, behind those at its sector."""
        self.count += 1
        request.data = self.count
        bisect.insort(self.rows, (request.start, self.count, request))

    def remove(self, request: Request, start: int) -> None:
        """Take out the one that was added at @start."""
        del self.rows[bisect.bisect_left(self.rows, (start, request.data))]

    def behind(self, request: Request) -> Request | None:
        """The next one after @request, which is there."""
        at = bisect.bisect_left(self.rows, (request.start, request.data)) + 1
        return self.rows[at][2] if at < len(self.rows) else None


def older(queue: list[Request], request: Request) -> None:
    """@request, which is in the queue and older than it was, takes its place by age again."""
    at = queue.index(request)
    del queue[at]
    while at and queue[at - 1].arrival_ns > request.arrival_ns:
        at -= 1
    queue.insert(at, request)


class Noop:
    """First come, first served."""

    def __init__(self) -> None:
        self.queue: list[Request] = []

    def arrived(self, request: Request, now_ns: int) -> None:
        """At the end."""
        self.queue.append(request)

    def choose(self, now_ns: int, head_sector: int) -> Request | int | None:
        """The oldest."""
        return self.queue[0]

    def dispatched(self, request: Request, now_ns: int) -> None:
        """It is pending no longer."""
        self.queue.remove(request)

    removed = dispatched

    def joins(self, request: Request, following: Request) -> None:
        """It has the age of the older of them."""
        older(self.queue, request)


class Cscan:
    """Upwards from the head, then again from the lowest."""

    def __init__(self) -> None:
        self.sorted = Sorted()

    def arrived(self, request: Request, now_ns: int) -> None:
        """At its position."""
        self.sorted.add(request)

    def choose(self, now_ns: int, head_sector: int) -> Request | int | None:
        """The first that is not behind the head."""
        rows = self.sorted.rows
        return rows[bisect.bisect_left(rows, (head_sector,)) % len(rows)][2]

    def dispatched(self, request: Request, now_ns: int) -> None:
        """It is pending no longer."""
        self.sorted.remove(request, request.start)

    removed = dispatched

    def merged(self, request: Request, old_start: int, now_ns: int) -> None:
        """It may begin elsewhere."""
        if request.start != old_start:
            self.sorted.remove(request, old_start)
            self.sorted.add(request)


class Deadline:
    """Upwards in batches of reads or writes; a batch begins with what has waited too long."""

    EXPIRE_NS = (500 * MS, 5000 * MS)  # reads, writes
    WRITES_STARVED = 2
    FIFO_BATCH = 16

    def __init__(self) -> None:
        self.sorted = (Sorted(), Sorted())
        self.queue: tuple[list[Request], list[Request]] = ([], [])
        self.next: Request | None = None  # where the batch goes on
        self.write = False  # what it is of
        self.batched = self.FIFO_BATCH  # there is none yet
        self.starved = 0  # batches of reads since the last one of writes

    def arrived(self, request: Request, now_ns: int) -> None:
        """At its position, and at the end."""
        self.sorted[request.write].add(request)
        self.queue[request.write].append(request)

    def choose(self, now_ns: int, head_sector: int) -> Request | int | None:
        """What the batch goes on with, or the first one of the next batch."""
        if self.next and self.batched < self.FIFO_BATCH:
            return self.next
        reads, writes = self.queue
        write = not reads or (bool(writes) and self.starved >= self.WRITES_STARVED)
        oldest = self.queue[write][0]
        if now_ns >= oldest.arrival_ns + self.EXPIRE_NS[write]:
            return oldest
        return self.next if self.next and self.next.write == write else oldest

    def dispatched(self, request: Request, now_ns: int) -> None:
        """It goes on with the batch, or begins one."""
        goes_on = self.batched < self.FIFO_BATCH and request is self.next
        if not (goes_on and request.write == self.write):
            self.batched = 0
            if request.write:
                self.starved = 0
            elif self.queue[True]:
                self.starved += 1
        self.batched += 1
        self.write = request.write
        self.next = self.sorted[request.write].behind(request)
        self._take(request)

    def removed(self, request: Request, now_ns: int) -> None:
        """The batch goes on behind it."""
        if self.next is request:
            self.next = self.sorted[request.write].behind(request)
        self._take(request)

    def _take(self, request: Request) -> None:
        self.queue[request.write].remove(request)
        self.sorted[request.write].remove(request, request.start)

    def merged(self, request: Request, old_start: int, now_ns: int) -> None:
        """It may begin elsewhere."""
        if request.start != old_start:
            self.sorted[request.write].remove(request, old_start)
            self.sorted[request.write].add(request)

    def joins(self, request: Request, following: Request) -> None:
        """It has the age of the older of them."""
        older(self.queue[request.write], request)
