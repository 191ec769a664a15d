# SPDX-License-Identifier: GPL-2.0-only
"""What a disk's requests went through, from the kernel's own block trace events.

Read from the text of tracefs: block_bio_queue (a request is wanted),
block_rq_issue (it goes to the disk) and block_rq_complete (the disk has done
it). That is the same for every scheduler, and for none at all.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator

from streamsched.base.errors import StreamschedError

EVENTS = ("block_bio_queue", "block_rq_issue", "block_rq_requeue", "block_rq_complete")

LINE = re.compile(
    r"\s(?P<s>\d+)\.(?P<us>\d{6}): (?P<event>block_\w+): (?P<dev>\d+,\d+) (?P<rwbs>\S+)"
    r" (?:\d+ )?(?:\(.*?\) )?(?P<sector>\d+) \+ (?P<sectors>\d+)"
)
LOST = re.compile(r"CPU:\d+ \[LOST (\d+) EVENTS\]")


@dataclasses.dataclass(slots=True)
class Request:
    """One request of the disk; times in ns of the trace's clock."""

    sector: int
    sectors: int
    write: bool
    arrival_ns: int  # of the first bio in it
    issue_ns: int
    complete_ns: int = 0

    @property
    def wait_ns(self) -> int:
        return self.issue_ns - self.arrival_ns

    @property
    def service_ns(self) -> int:
        return self.complete_ns - self.issue_ns


@dataclasses.dataclass(frozen=True, slots=True)
class Bio:
    """What a process wanted of the disk; times in ns of the trace's clock."""

    sector: int
    sectors: int
    write: bool
    sync: bool
    pid: int
    comm: str
    arrival_ns: int
    complete_ns: int


@dataclasses.dataclass(frozen=True)
class BlockTrace:
    """All requests in order of issue, and what the disk did meanwhile."""

    requests: tuple[Request, ...]
    idle_ns: int  # no request in the disk although some were wanted
    seeks: int  # requests that did not begin where the one before ended
    begin_ns: int
    end_ns: int


# By first sector, oldest first: length in sectors, when it came, and who sent it.
Sent = tuple[int, str, bool]  # pid, command, sync
_Waiting = dict[int, list[tuple[int, int, Sent]]]
NOBODY: Sent = (0, "?", False)


class Arrivals:
    """Bios that are not yet issued (or done), by direction and first sector."""

    def __init__(self) -> None:
        self.waiting: tuple[_Waiting, _Waiting] = ({}, {})

    def add(self, write: bool, sector: int, sectors: int, ns: int, sent: Sent = NOBODY) -> None:
        """One is wanted at @ns."""
        self.waiting[write].setdefault(sector, []).append((sectors, ns, sent))

    def parts(self, write: bool, sector: int, sectors: int) -> Iterator[tuple[int, int, int, Sent]]:
        """First sector, length, arrival and sender of those in the range, waiting no longer.

        Of several for one place the latest is taken: an earlier one may have been refused, as one
        that would not sleep is where no request is free.
        """
        waiting = self.waiting[write]
        at, end = sector, sector + sectors
        while at < end:
            here = waiting.get(at)
            if here is None:
                # Another request for this place has taken it.
                at = min((begin for begin in waiting if at < begin < end), default=end)
                continue
            length, arrived, sent = here.pop()
            if not here:
                del waiting[at]
            # A part of a bio that was split begins where the one before ended.
            if at + length > end:
                self.add(write, end, at + length - end, arrived, sent)
                length = end - at
            yield at, length, arrived, sent
            at += length

    def take(self, write: bool, sector: int, sectors: int, ns: int) -> int:
        """The arrival of the earliest bio in the range, @ns if there is none."""
        return min((ns, *(arrived for _, _, arrived, _ in self.parts(write, sector, sectors))))

    def __bool__(self) -> bool:
        return bool(self.waiting[0]) or bool(self.waiting[1])


def parse(lines: Iterable[str], device: str | None = None, skip_ns: int = 0) -> BlockTrace:
    """Requests from the text of tracefs' file trace; @device "MAJOR,MINOR", None: the only one.

    What was done @skip_ns after the first event is left out.
    """
    arrivals = Arrivals()
    in_disk: dict[tuple[int, bool], Request] = {}
    requests: list[Request] = []
    idle_ns = seeks = head = begin = end = 0
    idle_since: int | None = None
    for line in lines:
        if lost := LOST.search(line):
            raise StreamschedError(
                f"the kernel's trace buffer was too small, {lost[1]} events are lost"
            )
        found = LINE.search(line)
        if not found or (device and found["dev"] != device):
            continue
        ns = int(found["s"]) * 1_000_000_000 + int(found["us"]) * 1000
        sector, sectors = int(found["sector"]), int(found["sectors"])
        rwbs = found["rwbs"]
        if not sectors or not ("R" in rwbs or "W" in rwbs):
            continue
        write = "W" in rwbs
        event = found["event"]
        begin = begin or ns
        end = ns
        if event == "block_bio_queue":
            arrivals.add(write, sector, sectors, ns)
        elif event == "block_rq_issue":
            arrival = arrivals.take(write, sector, sectors, ns)
            request = Request(sector, sectors, write, arrival, ns)
            seeks += sector != head and ns >= begin + skip_ns
            head = sector + sectors
            in_disk[sector, write] = request
        elif event == "block_rq_complete":
            done = in_disk.pop((sector, write), None)
            if done and ns >= begin + skip_ns:
                done.complete_ns = ns
                requests.append(done)
        idle = not in_disk and bool(arrivals)
        if idle and idle_since is None:
            idle_since = ns
        elif not idle and idle_since is not None:
            idle_ns += max(0, ns - max(idle_since, begin + skip_ns))
            idle_since = None
    requests.sort(key=lambda request: request.issue_ns)
    return BlockTrace(tuple(requests), idle_ns, seeks, begin, end)


def quantile(values: Iterable[int], permille: int) -> int | None:
    """The least value that so many of 1,000 do not pass; None if there are none."""
    ordered = sorted(values)
    return ordered[(permille * len(ordered) + 999) // 1000 - 1] if ordered else None


def p99(values: Iterable[int]) -> int | None:
    """The least value that 99 of 100 do not pass; None if there are none."""
    return quantile(values, 990)


_WHO = re.compile(r"^\s*(?P<comm>.*)-(?P<pid>\d+)\s+\[\d+\]")


def bios(lines: Iterable[str], device: str | None = None) -> list[Bio]:
    """All that was wanted and done, in order of arrival; what was split as its parts.

    @lines of block_bio_queue and block_rq_complete; @device "MAJOR,MINOR", None: the only one.
    """
    arrivals, done, lost = Arrivals(), list[Bio](), 0
    for line in lines:
        if gone := LOST.search(line):
            lost += int(gone[1])
            continue
        found = LINE.search(line)
        if not found or (device and found["dev"] != device):
            continue
        rwbs, sector, sectors = found["rwbs"], int(found["sector"]), int(found["sectors"])
        if not sectors or not ("R" in rwbs or "W" in rwbs):
            continue
        ns = int(found["s"]) * 1_000_000_000 + int(found["us"]) * 1000
        write = "W" in rwbs
        if found["event"] == "block_bio_queue":
            who = _WHO.match(line)
            sent = (int(who["pid"]), who["comm"], "S" in rwbs) if who else NOBODY
            arrivals.add(write, sector, sectors, ns, sent)
        elif found["event"] == "block_rq_complete":
            for at, length, arrived, (pid, comm, sync) in arrivals.parts(write, sector, sectors):
                done.append(Bio(at, length, write, sync, pid, comm, arrived, ns))
    if lost:
        raise StreamschedError(f"the kernel's trace buffer was too small, {lost} events are lost")
    done.sort(key=lambda bio: bio.arrival_ns)
    return done


def switch_cost(
    trace: BlockTrace, owner_of: Callable[[Request], int], bytes_per_s: float
) -> tuple[int, int]:
    """(number, total positioning in ns) of requests after another owner's.

    Positioning is the service time less the transfer at @bytes_per_s.
    """
    nr = total = 0
    last: int | None = None
    for request in trace.requests:
        owner = owner_of(request)
        if last is not None and owner != last:
            nr += 1
            transfer = request.sectors * 512 / bytes_per_s * 1e9 if bytes_per_s else 0
            total += max(0, round(request.service_ns - transfer))
        last = owner
    return nr, total
