# SPDX-License-Identifier: GPL-2.0-only
"""Samples of trace formats, and everything that the reader says of some bytes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

from streamsched._core import ffi, lib
from streamsched.work import tracefile

DATA = Path(__file__).parents[1] / "data" / "traces"
EVENT = "IIQQIIIIIHH"
MAGIC = 0x65617407
READ, WRITE = 1 << 16, 1 << 17
QUEUE, ISSUE, COMPLETE = 1 | 1 << 20, 7 | 1 << 22, 8 | 1 << 23
SDA = 8 << 20


class Request(NamedTuple):
    arrival_ns: int
    complete_ns: int | None
    sector: int
    nr_sectors: int
    direction: str
    flags: int
    owner: int
    line: int


class Result(NamedTuple):
    requests: list[Request]
    why: str | None
    skipped: int
    devices: set[int]


def parse(
    data: bytes,
    format_name: str,
    *,
    skip_bad: bool = False,
    device: str | None = None,
    cuts: list[int] | None = None,
) -> Result:
    """Everything the reader says about @data, fed in pieces that end at @cuts."""
    reader = lib.trace_open(format_name.encode(), skip_bad)
    assert reader
    try:
        if device is not None and lib.trace_select_device(reader, device.encode()):
            return Result([], ffi.string(lib.trace_why(reader)).decode(), 0, set())
        return _parse(reader, data, cuts or [])
    finally:
        lib.trace_close(reader)


def _parse(reader: Any, data: bytes, cuts: list[int]) -> Result:
    rq = ffi.new("struct trace_request *")
    requests = []
    devices = set()
    why = None
    ends = sorted({*(c for c in cuts if c < len(data)), len(data)})
    start = 0
    for end in ends:
        assert lib.trace_feed(reader, data[start:end], end - start, end == len(data)) == 0
        start = end
        while (got := lib.trace_next(reader, rq)) == 1:
            done = None if rq.complete_ns == lib.TRACE_NO_TIME else rq.complete_ns
            requests.append(
                Request(
                    *(rq.arrival_ns, done, rq.sector, rq.nr_sectors, "RW"[rq.direction]),
                    *(rq.flags, rq.owner, rq.line),
                )
            )
            devices.add(rq.device)
        if got < 0:
            why = ffi.string(lib.trace_why(reader)).decode()
            break
    assert (why is None) == bool(lib.trace_at_end(reader))
    assert lib.trace_requests(reader) == len(requests)
    return Result(requests, why, lib.trace_skipped(reader), devices)


def good(format_name: str) -> bytes:
    """The sample of one format."""
    name = {"fio-v2": "good.fio2", "fio-v3": "good.fio3", "blktrace": "loop.blktrace"}
    return (DATA / name.get(format_name, f"good.{format_name}")).read_bytes()


def event(time_ns: int, sector: int, nr: int, action: int, **more: Any) -> bytes:
    """One binary event of blktrace; @more changes a field, or the byte order."""
    field: dict[str, Any] = {
        "pid": 7,
        "device": SDA,
        "cpu": 0,
        "magic": MAGIC,
        "pdu": b"",
        "order": "<",
    }
    field |= more
    packed = struct.pack(
        field["order"] + EVENT,
        *(field["magic"], 1, time_ns, sector, nr * 512, action),
        *(field["pid"], field["device"], field["cpu"], 0, len(field["pdu"])),
    )
    return packed + bytes(field["pdu"])


ALL = [name for name, _ in tracefile.formats()]
TEXT = [name for name in ALL if name not in ("blktrace", "vscsi", "vscsi2")]


def vscsi(lbn: int, time_us: int, *, length: int = 512, cmd: int = 0x28, ver: int = 0x100) -> bytes:
    return struct.pack("<IIIHHQQ", 1, length, 1, cmd, ver, lbn, time_us)


def vscsi2(lbn: int, time_us: int, ver: int = 0x200) -> bytes:
    return struct.pack("<HHIIIQQQ", 0x28, ver, 1, 512, 1, lbn, time_us, 10)


BLK = b"8,0 1 1 0.5 697 Q W 1000 + 8 [x]\n"
