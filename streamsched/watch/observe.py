# SPDX-License-Identifier: GPL-2.0-only
"""What happened between two looks at a disk: the figures that `streamsched top` shows.

`streamsched top --once --output json` prints one object:

    version  1
    disks    a list of objects with the members of Observation, but `path`
"""

from __future__ import annotations

import collections
import dataclasses
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from streamsched.base.errors import StreamschedError
from streamsched.base.tracing import TRACING, Instance
from streamsched.hosts.device import STREAM, SYS
from streamsched.watch.parties import (
    USUAL_CLASS,
    Inside,
    KernelDisk,
    Party,
    Stat,
    UnreadableError,
)
from streamsched.work.blocktrace import p99

VERSION = 1
# So many of a party's latest requests make its p99 and its reasons.
LATEST = 500
# So much of the head's path is kept.
PATH = 4000
# Of the trace: some 1,000 requests between two looks; older ones are overwritten, not read.
BUFFER_KIB = 64
EVENT = "stream_choose"
FLAT = "nothing rotates here: the inner policy has everything, and there are no parties"


@dataclasses.dataclass(frozen=True)
class Row:
    """A party: a stream, the rest or write-back, or a connection of the network server."""

    place_bytes: int | None  # where it is; of no stream: None
    kind: str
    mb_s: float
    requests_s: float
    share: float  # of the disk's time while it worked; of the network server's: of the bytes
    wait_p99_ms: float | None  # of its latest requests; None: not known
    pending: int | None
    turn: bool
    reasons: dict[str, float]  # why its latest requests went, parts of 1


@dataclasses.dataclass(frozen=True)
class Observation:
    """A disk, or a member of the network server, between two looks."""

    name: str
    scheduler: str
    trouble: str | None  # why there are no figures; then all are empty
    note: str | None = None  # what is missing among them, and why
    seconds: float = 0.0
    size_bytes: int = 0
    mb_s: float = 0.0
    requests_s: float = 0.0
    in_flight: int | None = None  # the drive's queue
    pending: int | None = None
    waits_s: float = 0.0  # times that the head was held for a party, each second
    paid_s: float = 0.0  # ... and its request came
    in_vain_s: float = 0.0
    idle: float = 0.0  # part of the time in which the disk idled with requests pending
    seeks_s: float = 0.0
    reasons: dict[str, float] = dataclasses.field(default_factory=dict)
    candidates: int = 0
    rows: tuple[Row, ...] = ()
    path: tuple[tuple[float, int], ...] = ()  # time in s, sector; oldest first


class Source(Protocol):
    """Something that can be looked at again and again."""

    name: str

    def look(self) -> Observation | None:
        """Since the last time; None if there is nothing new."""

    def close(self) -> None: ...


def as_json(observations: Iterable[Observation]) -> str:
    """For programs; the module's docstring has the members."""
    disks = []
    for one in observations:
        members = dataclasses.asdict(one)
        del members["path"]
        disks.append(members)
    return json.dumps({"version": VERSION, "disks": disks}, indent=2) + "\n"


def parts(numbers: Mapping[str, int]) -> dict[str, float]:
    """As parts of their sum, the largest first, without those that are 0."""
    total = sum(numbers.values())
    by_size = sorted(numbers.items(), key=lambda item: -item[1])
    return {name: round(number / total, 4) for name, number in by_size if number}


class Chosen:
    """The disk's requests as they go to the driver: the trace event stream_choose."""

    def __init__(self, disk: KernelDisk, tracing: Path) -> None:
        self._trace = Instance(
            disk.name,
            disk.device.number,
            [f"stream/{EVENT}"],
            tracing,
            buffer_kib=BUFFER_KIB,
            clock="mono",
        )
        self.close = self._trace.close
        self.path: collections.deque[tuple[float, int]] = collections.deque(maxlen=PATH)
        # By party: how long each request has waited, in us, and why it went.
        self.latest: dict[tuple[str, int], collections.deque[tuple[int, str]]] = {}

    def read(self) -> None:
        """Take in what has come since the last time."""
        for line in self._trace.lines():
            before, event, after = line.partition(f": {EVENT}: ")
            if not event:  # CPU:0 [LOST 55 EVENTS]
                continue
            try:
                said = dict(word.split("=") for word in after.split()[1:])
                when, sector = float(before.rpartition(" ")[2]), int(said["sector"])
                key = said["class"], int(said["party"])
                waited = int(said["waited_us"]), said["why"]
            except (ValueError, KeyError):
                raise UnreadableError(
                    f"{EVENT}: is not as this version of streamsched has it; install the module of "
                    "the same version"
                ) from None
            self.path.append((when, sector))
            if key not in self.latest:
                self.latest[key] = collections.deque(maxlen=LATEST)
            self.latest[key].append(waited)


class KernelSource:
    """A disk under the kernel's `stream`."""

    def __init__(self, disk: KernelDisk, sys_: Path = SYS) -> None:
        self.name = disk.name
        self._disk = disk
        self._tracing = sys_ / TRACING
        self._before: tuple[float, Stat, Inside] | None = None
        self._chosen: Chosen | None = None
        self._note: str | None = None

    def _begin(self) -> None:
        """A new trace: that of a module which was loaded anew says nothing more."""
        self.close()
        self._note = None
        try:
            self._chosen = Chosen(self._disk, self._tracing)
        except OSError as error:
            self._note = (
                f"no waits and reasons of parties, and no path ({self._tracing}: {error.strerror})"
            )

    def close(self) -> None:
        """Stop tracing."""
        if self._chosen:
            self._chosen.close()
        self._chosen = None

    def look(self) -> Observation | None:
        """Since the last time; None the first time."""
        try:
            now = time.monotonic(), self._disk.stat(), self._disk.inside()
        except StreamschedError as error:
            self._before = None
            self.close()
            return Observation(self.name, "", str(error))
        before, self._before = self._before, now
        if before is None or now[2].counters["dispatches"] < before[2].counters["dispatches"]:
            self._begin()
            return None
        if self._chosen:
            try:
                self._chosen.read()
            except UnreadableError as error:
                return Observation(self.name, "", str(error))
        return self._between(before, now)

    def _between(
        self, before: tuple[float, Stat, Inside], now: tuple[float, Stat, Inside]
    ) -> Observation:
        seconds = max(now[0] - before[0], 1e-9)
        old, new = before[2], now[2]

        def rate(name: str) -> float:
            return round((new.counters[name] - old.counters[name]) / seconds, 2)

        def done(of: Stat, what: str) -> int:
            return sum(getattr(one, what) for one in of.done)

        chosen = self._chosen
        return Observation(
            name=self.name,
            scheduler=f"{STREAM} ({new.inner})" if new.inner else STREAM,
            trouble=None,
            note=FLAT if new.counters.get("plain") else self._note,
            seconds=round(seconds, 3),
            size_bytes=512 * self._disk.size_sectors,
            mb_s=round((done(now[1], "bytes") - done(before[1], "bytes")) / seconds / 1e6, 2),
            requests_s=round((done(now[1], "requests") - done(before[1], "requests")) / seconds, 2),
            in_flight=new.counters["in_flight"],
            pending=new.counters["pending"],
            waits_s=rate("waits"),
            paid_s=rate("hits"),
            in_vain_s=rate("timeouts"),
            idle=round((new.counters["idle_ns"] - old.counters["idle_ns"]) / seconds / 1e9, 4),
            seeks_s=rate("seeks"),
            reasons=parts(
                {name: number - old.reasons.get(name, 0) for name, number in new.reasons.items()}
            ),
            candidates=new.candidates,
            rows=self._rows(old, new, seconds),
            path=tuple(chosen.path) if chosen else (),
        )

    def _rows(self, old: Inside, new: Inside, seconds: float) -> tuple[Row, ...]:
        was = {party.key: party for party in old.parties}
        moved = []
        for party in new.parties:
            before = was.get(party.key)
            if before and before.sent > party.sent:  # an earlier stream of this number
                before = None
                if self._chosen:
                    self._chosen.latest.pop(party.key, None)
            moved.append((party, *_since(party, before)))
        used = sum(one[3] for one in moved) or 1
        return tuple(
            self._row(party, sent, sectors, head_us / used, seconds)
            for party, sent, sectors, head_us in moved
            if sent or party.pending or party.turn
        )

    def _row(self, party: Party, sent: int, sectors: int, share: float, seconds: float) -> Row:
        latest = self._chosen.latest.get(party.key, ()) if self._chosen else ()
        wait_us = p99(waited for waited, _ in latest)
        stream = party.kind == "stream"
        return Row(
            place_bytes=512 * party.end_sector if stream else None,
            kind=party.kind if party.name == USUAL_CLASS else f"{party.kind} {party.name}",
            mb_s=round(512 * sectors / seconds / 1e6, 2),
            requests_s=round(sent / seconds, 2),
            share=round(share, 4),
            wait_p99_ms=None if wait_us is None else wait_us / 1000,
            pending=party.pending,
            turn=party.turn,
            reasons=parts(collections.Counter(why for _, why in latest)),
        )


def _since(party: Party, before: Party | None) -> tuple[int, int, int]:
    """Requests, sectors and head time since @before."""
    if before is None:
        return party.sent, party.sectors, party.head_us
    return (
        party.sent - before.sent,
        party.sectors - before.sectors,
        party.head_us - before.head_us,
    )
