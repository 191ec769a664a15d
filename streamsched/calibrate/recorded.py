# SPDX-License-Identifier: GPL-2.0-only
"""The disk model beside recorded drives: docs/results/recorded-drives.md.

The requests are played on the model one after the other, and the times compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard

from streamsched._core import ffi, lib
from streamsched.base.errors import UsageError
from streamsched.base.files import MOST_BYTES, open_input
from streamsched.base.units import whole_number
from streamsched.calibrate.validate import MS, new_disk
from streamsched.sim.diskfile import Disk, load_disk

# Of a service or think time: all lines of a file together stay below 2^64 ns.
MOST_TIME_NS = 1000 * 10**9


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request that a real drive answered, one at a time."""

    write: bool
    sector: int
    nr_sectors: int
    service_ns: int
    think_ns: int  # from its end to the next request


@dataclass(frozen=True)
class Agreement:
    """Some requests: how many, mean times in ms, how far the model is off, in %."""

    what: str
    nr: int
    recorded_ms: float
    model_ms: float
    demerit: float

    @property
    def error(self) -> float:
        """Of the mean."""
        return (self.model_ms / self.recorded_ms - 1) * 100


def read_recorded(path: Path) -> list[Recorded]:
    """The requests of a recorded drive, from plain or zstd-compressed text.

    A line is R or W, Hit or Miss (not used), the first sector, the number of sectors of
    512 bytes, the recorded service time in us, the think time after it in us. Raises
    UsageError with one sentence that names the line.
    """
    try:
        with open_input(path) as file:
            data = file.read(MOST_BYTES + 1)
        if data[:4] == b"\x28\xb5\x2f\xfd":
            with zstandard.ZstdDecompressor().stream_reader(data) as packed:
                data = packed.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UsageError(f"{path}: has more than {MOST_BYTES} bytes, the most")
        text = data.decode("ascii")
    except OSError as error:
        raise UsageError(f"{path}: cannot read it: {error.strerror}") from None
    except (zstandard.ZstdError, UnicodeDecodeError):
        raise UsageError(f"{path}: is neither text nor text packed with zstd") from None
    found = [_recorded(path, number, line) for number, line in enumerate(text.splitlines(), 1)]
    if not found:
        raise UsageError(f"{path}: there is no request in it")
    return found


def _recorded(path: Path, number: int, line: str) -> Recorded:
    words = line.split()
    try:
        op, _, sector, nr, service_us, think_us = words
        times = [round(float(word) * 1000) for word in (service_us, think_us)]
        first, length = whole_number(sector), whole_number(nr)
        if first is None or length is None or "_" in line:
            raise ValueError
        one = Recorded(op == "W", first, length, *times)
        if op not in ("R", "W") or one.sector < 0 or one.nr_sectors < 1:
            raise ValueError
        if not 0 < times[0] <= MOST_TIME_NS or not 0 <= times[1] <= MOST_TIME_NS:
            raise ValueError
    except (ValueError, OverflowError):
        raise UsageError(
            f"{path}:{number}: must be R or W, Hit or Miss, sector, sectors, "
            "service time and think time in us (1000 s at most), as in R Miss 4096 8 11250 40000"
        ) from None
    return one


def play(disk: Disk, requests: Sequence[Recorded]) -> list[int]:
    """The model's service times in ns: each request its think time after the one before.

    Raises UsageError when one lies beyond the disk.
    """
    drive, cmd = new_disk(disk), ffi.new("struct hdd_cmd *")
    now = 0
    times = []
    for number, request in enumerate(requests, 1):
        if request.sector + request.nr_sectors > disk.capacity_sectors:
            raise UsageError(
                f"request {number}: ends at sector {request.sector + request.nr_sectors}, "
                f"but {disk.name} has {disk.capacity_sectors}"
            )
        cmd.sector, cmd.nr_sectors = request.sector, request.nr_sectors
        cmd.op = lib.HDD_WRITE if request.write else lib.HDD_READ
        lib.hdd_drive_submit(drive, cmd, now)
        begin = now
        while True:
            now = lib.hdd_drive_next_ns(drive)
            if lib.hdd_drive_pop(drive, now) != ffi.NULL:
                break
        times.append(now - begin)
        now += request.think_ns
    return times


def demerit(recorded: Sequence[float], model: Sequence[float]) -> float:
    """How far two distributions of times lie apart, in % of the recorded mean.

    The root mean square of the horizontal distance between them (Ruemmler and Wilkes,
    An introduction to disk drive modeling, IEEE Computer, March 1994).
    """
    pairs = zip(sorted(recorded), sorted(model), strict=True)
    square = sum((a - b) ** 2 for a, b in pairs) / len(recorded)
    return math.sqrt(square) / (sum(recorded) / len(recorded)) * 100


def agreements(requests: Sequence[Recorded], model_ns: Sequence[int]) -> list[Agreement]:
    """All requests, then by class; a class that has none is left out."""

    def sequential(i: int) -> bool:
        before = requests[i - 1]
        return i > 0 and requests[i].sector == before.sector + before.nr_sectors

    classes: list[tuple[str, Callable[[int], bool]]] = [
        ("all", lambda _: True),
        ("random reads", lambda i: not requests[i].write and not sequential(i)),
        ("sequential reads", lambda i: not requests[i].write and sequential(i)),
        ("random writes", lambda i: requests[i].write and not sequential(i)),
        ("sequential writes", lambda i: requests[i].write and sequential(i)),
    ]
    found = []
    for what, is_one in classes:
        chosen = [i for i in range(len(requests)) if is_one(i)]
        if not chosen:
            continue
        recorded = [requests[i].service_ns / MS for i in chosen]
        model = [model_ns[i] / MS for i in chosen]
        found.append(
            Agreement(
                what,
                len(chosen),
                sum(recorded) / len(chosen),
                sum(model) / len(chosen),
                demerit(recorded, model),
            )
        )
    return found


def compared(pairs: Sequence[tuple[Path, Path]]) -> Iterator[tuple[str, list[Agreement]]]:
    """Each drive's name and rows; @pairs are traces and descriptions."""
    for trace, description in pairs:
        disk = load_disk(str(description))
        requests = read_recorded(trace)
        try:
            yield disk.name, agreements(requests, play(disk, requests))
        except UsageError as error:
            raise UsageError(f"{trace}: {error}") from None


RECORDED_HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
# The disk model against recorded drives

Written by `make results WHAT=recorded-drives` (`streamsched research validate disk TRACE DISK.toml
... --to FILE`); do not edit.
The requests were recorded with DiskSim 4.0's drives (CMU Parallel Data Laboratory), one at a
time, with the time that the real drive took. The descriptions are in `disks/recorded/`,
from DiskSim's extracted parameters by one rule. No number was fitted to these times.

What the parameter says, as DiskSim's own code reads it (frozen on 2026-11-29; under the rule
before, which the traces had chosen, two of these drives were nearer):

- Bus: a read is sent from `read_watermark` on, the "High (read) water mark", of the read where
  "Set watermark by reqsize" is 1, else of a segment. A write's data come while the arm moves.
- Reading ahead by "Buffer continuous read": 0: none; until the track (1) or cylinder (2) ends;
  3: "Maximum read-ahead"; 4: to the end of the track, and of the next while reading in
  order (`tracks`). It is a segment at most. Where "Enable caching in buffer" is 0: none, and
  nothing is kept.
- Not in the model: "Hold bus ...", "Minimum read-ahead", "Immediate buffer ...", "Low (write)
  water mark", "Read any free blocks", "Allow ...".

Chosen on the five traces, so their figures are no test of it:

- Rate: a sector in the longest of "Bulk sector transfer time" and the bus's block times.
- Overheads: "Read/Write hit/miss over. after read/write" with the completion overhead. A
  cached write has that of a hit at "Fast write level" 2, else that of a miss.
- Seeks as measured, without points more than a tenth below the one before; "Add. write
  settling delay" may be negative. A head switch takes the track skew.
- Segments: "Number of buffer segments" without a separate write segment. Where
  "Read-ahead over requested" is 0, they keep what the host has had, and reading ahead ends
  with the segment. A write empties the segments that it touches.
- One segment of write cache where "Fast write level" is not 0.

*Demerit* is the root mean square distance between the two distributions of times, in %
of the recorded mean (Ruemmler and Wilkes, IEEE Computer, March 1994).

| drive | requests | number | recorded ms | model ms | error | demerit |
|---|---|---|---|---|---|---|
"""


def recorded_report(pairs: Sequence[tuple[Path, Path]]) -> str:
    """The document about recorded drives."""
    lines = []
    for name, rows in compared(pairs):
        lines += [
            f"| {name} | {row.what} | {row.nr} | {row.recorded_ms:.3f} | {row.model_ms:.3f} "
            f"| {row.error:+.1f} % | {row.demerit:.1f} % |"
            for row in rows
        ]
    return RECORDED_HEAD + "\n".join(lines) + "\n"
