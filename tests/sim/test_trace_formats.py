# SPDX-License-Identifier: GPL-2.0-only
# ruff: noqa: E501 - each bad input and the sentence about it are one row of a table
"""Trace readers: every format's good sample, bad input, detection, completions, bounds."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from streamsched._core import ffi, lib
from streamsched.base.errors import StreamschedError, UsageError
from streamsched.work import tracefile

DATA = Path(__file__).parents[1] / "data" / "traces"
SYNC, META = 0x01, 0x02

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

# arrival, completion, sector, sectors, direction, flags, owner, line
GOOD: dict[str, list[tuple[Any, ...]]] = {
    "blkparse": [
        (0, 20_000_000, 1000, 8, "W", 0, 697, 2),
        (2_000, 20_000_000, 1008, 8, "W", SYNC, 697, 4),
        (10_000_000, 20_000_001, 5000, 8, "R", META, 12, 9),
        (10_000_500, None, 5000, 8, "R", META, 13, 10),
        (10_003_000, 50_000_001, 9000, 1, "W", SYNC | META, 13, 13),
        (30_000_000, 50_000_000, 20000, 2048, "R", 0, 13, 19),
    ],
    "ftrace": [
        (0, 10_000_000, 1000, 8, "R", 0, 70, 4),
        (100_000, 20_000_000, 5000, 16, "W", SYNC, 71, 5),
        (300_123, 30_000_000, 3000, 1, "R", META, 73, 8),
    ],
    "fio-v2": [
        (0, None, 8, 16, "W", 0, 0, 4),
        # A wait that is not later than the one before has no effect.
        (150_000_000, None, 1, 2, "R", 0, 0, 6),
        (200_000_000, None, 0, 1, "R", 0, 0, 12),
    ],
    "msr": [
        (0, 4_128_600, 13700410, 48, "R", 0, 0, 1),
        (1_332_052_600, 1_332_248_900, 2573128, 16, "W", 0, 0, 2),
        (2_332_061_600, 2_332_245_100, 4758671, 10, "W", 0, 0, 3),
    ],
    "spc": [
        (0, None, 303567, 7, "W", 0, 0, 1),
        (0, None, 55590, 6, "W", 0, 0, 2),
        (26_214_000, None, 303574, 7, "R", 0, 0, 3),
        (100_000_000, None, 240840, 7, "R", 0, 0, 4),
    ],
    "alibaba": [
        (0, None, 17173304, 32, "W", 0, 0, 1),
        (421_000, None, 17173330, 8, "W", 0, 0, 2),
        (954_000, None, 1, 2, "R", 0, 0, 3),
    ],
    "tencent": [
        (0, None, 12910952, 128, "R", 0, 0, 1),
        (0, None, 6265688, 8, "W", 0, 0, 2),
        (2_000_000_000, None, 1, 1, "W", 0, 0, 3),
    ],
    "systor": [
        (0, 195_000, 83467168, 16, "W", 0, 0, 2),
        (182_001, None, 25584952, 1, "R", 0, 0, 4),
        (1_486_882_000, 1_487_684_000, 0, 8, "R", 0, 0, 5),
    ],
    "fiu": [
        (0, None, 508169680, 8, "W", 0, 4892, 1),
        (899, None, 508169688, 16, "R", 0, 0, 2),
        (899, None, 1, 8, "R", 0, 7, 3),
    ],
    "vscsi": [
        (0, None, 42932745, 1, "W", 0, 0, 1),
        (198_000, None, 100, 9, "R", 0, 0, 3),
        (198_000, None, 1 << 33, 128, "R", 0, 0, 4),
    ],
    "vscsi2": [
        (0, 150_000, 42932745, 1, "W", 0, 0, 1),
        (198_000, 2_198_000, 100, 8, "R", 0, 0, 2),
    ],
    "disksim": [
        (0, None, 1152, 16, "W", 0, 0, 1),
        (500_000, None, 2304, 8, "R", 0, 0, 2),
        (12_345_678, None, 0, 1, "R", 0, 0, 3),
    ],
    "mqsim": [
        (0, None, 1152, 16, "W", 0, 0, 1),
        (500_000, None, 2304, 8, "R", 0, 0, 2),
        (13_455_789_000, None, 0, 1, "R", 0, 0, 3),
    ],
}


@pytest.mark.parametrize("name", GOOD)
def test_good_sample(name: str) -> None:
    result = parse(good(name), name)
    assert result.why is None
    assert result.requests == [Request(*row) for row in GOOD[name]]
    assert result.skipped == 0
    assert len(result.devices) == 1


def test_fio_log_as_fio_wrote_it() -> None:
    result = parse(good("fio-v3"), "fio-v3")
    assert result.why is None
    assert [r[:5] for r in result.requests[:3]] == [
        (0, None, 120, 8, "R"),
        (4_025_000, None, 1512, 8, "R"),
        (4_449_000, None, 1720, 8, "R"),
    ]
    assert len(result.requests) == 11


def test_blktrace_and_blkparse_of_the_same_events_agree() -> None:
    binary = parse(good("blktrace"), "blktrace")
    text = parse((DATA / "loop.blkparse").read_bytes(), "blkparse")
    assert binary.why is None and text.why is None
    assert [r[:7] for r in binary.requests] == [r[:7] for r in text.requests]
    assert binary.requests[0] == (0, 434_833, 7904, 8, "R", SYNC, 27906, 1)
    # Read-ahead of 2.5 MiB, split in two: complete with its second half.
    assert binary.requests[-1][:4] == (67_618_712, 69_068_146, 10240, 5120)
    assert [r.complete_ns for r in binary.requests].count(None) == 1
    assert binary.devices == text.devices == {7 << 20}


@pytest.mark.parametrize(
    ("kind", "direction", "flags"),
    [
        ("R", "R", 0),
        ("RA", "R", 0),
        ("RSM", "R", SYNC | META),
        ("WFS", "W", SYNC),
        ("FW", "W", 0),
        ("FWFSM", "W", SYNC | META),
        ("WSU", "W", SYNC),
        ("WZS", None, 0),
        ("D", None, 0),
        ("N", None, 0),
        ("F", None, 0),
        ("FN", None, 0),
    ],
)
def test_kinds_of_blkparse(kind: str, direction: str | None, flags: int) -> None:
    """An F before the direction asks for a flush first; what moves no data is no request."""
    line = f"8,0 1 2 0.6 697 Q {kind} 5000 + 8 [x]\n".encode()
    result = parse(BLK + line, "blkparse")
    assert result.why is None
    found = [(r.direction, r.flags) for r in result.requests[1:]]
    assert found == ([(direction, flags)] if direction else [])


@pytest.mark.parametrize(("nr_bytes", "sectors"), [(1, 1), (512, 1), (513, 2), (1024, 2)])
def test_blktrace_rounds_a_length_up(nr_bytes: int, sectors: int) -> None:
    one = bytearray(event(5, 100, 8, QUEUE | READ))
    struct.pack_into("<I", one, 24, nr_bytes)
    assert [r.nr_sectors for r in parse(bytes(one), "blktrace").requests] == [sectors]


@pytest.mark.parametrize(
    ("commands", "direction"),
    [((0x08, 0x28, 0x88, 0xA8), "R"), ((0x0A, 0x2A, 0x8A, 0xAA, 0x2E, 0x8E, 0xAE), "W")],
)
@pytest.mark.parametrize("version", [1, 2])
def test_commands_of_vscsi(version: int, commands: tuple[int, ...], direction: str) -> None:
    """Of 6, 10, 16 and 12 bytes, and write-and-verify; others move no data for us."""
    test_unit_ready = 0x00
    data = b""
    for at, command in enumerate((*commands, test_unit_ready)):
        if version == 1:
            data += struct.pack("<IIIHHQQ", at, 4096, 1, command, 0x100, 100, at)
        else:
            data += struct.pack("<HHIIIQQQ", command, 0x200, at, 4096, 1, 100, at, 7)
    result = parse(data, "vscsi" if version == 1 else "vscsi2")
    assert result.why is None
    assert [r.direction for r in result.requests] == [direction] * len(commands)


def test_blktrace_big_endian() -> None:
    events = [(5, 100, 8, QUEUE | WRITE | 1 << 19), (9, 100, 8, COMPLETE | WRITE)]
    for order in "<>":
        data = b"".join(event(*e, order=order, pdu=b"x" * 5) for e in events)
        assert tracefile.detect(data) == "blktrace"
        assert parse(data, "blktrace").requests == [(0, 4, 100, 8, "W", SYNC, 7, 1)]


@pytest.mark.parametrize("name", TEXT)
def test_line_ends_and_blank_lines(name: str) -> None:
    data = good(name).replace(b"\r\n", b"\n")
    want = [r[:7] for r in parse(data, name).requests]
    for changed in (
        data.rstrip(b"\n"),
        data.replace(b"\n", b"\r\n"),
        data.replace(b"\n", b"  \n\n \t\n"),
    ):
        result = parse(changed, name)
        assert result.why is None
        assert [r[:7] for r in result.requests] == want


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("msr", b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"),
        ("alibaba", b"device_id,opcode,offset,length,timestamp"),
        ("tencent", b"\xef\xbb\xbfTimestamp, Offset, Size, IOType, VolumeID"),
        ("spc", b"ASU,LBA,Size,Opcode,Timestamp"),
    ],
)
def test_header_is_optional(name: str, header: bytes) -> None:
    data = header + b"\n" + good(name)
    assert tracefile.detect(data) == tracefile.detect(header) == name
    assert [r[:7] for r in parse(data, name).requests] == [
        r[:7] for r in parse(good(name), name).requests
    ]


# Bad input.


def vscsi(lbn: int, time_us: int, *, length: int = 512, cmd: int = 0x28, ver: int = 0x100) -> bytes:
    return struct.pack("<IIIHHQQ", 1, length, 1, cmd, ver, lbn, time_us)


def vscsi2(lbn: int, time_us: int, ver: int = 0x200) -> bytes:
    return struct.pack("<HHIIIQQQ", 0x28, ver, 1, 512, 1, lbn, time_us, 10)


BLK = b"8,0 1 1 0.5 697 Q W 1000 + 8 [x]\n"
FIO2 = b"fio version 2 iolog\n"
FIO3 = b"fio version 3 iolog\n"

BAD: list[tuple[str, bytes, str]] = [
    # blkparse
    ("blkparse", b"8,0 1 1 0.5 697 Q W abc + 8 [x]\n", 'line 1, column 21: expected the sector as a decimal number, found "abc"'),
    ("blkparse", BLK + b"8,0 1 2 0.6\n", "line 2, column 12: expected the process id as a decimal number, found the end of the line"),
    ("blkparse", b"8,0 1 1 0.5 697 Q Z 1 + 8 [x]\n", 'line 1, column 19: expected the kind of request, such as R or WS, found "Z"'),
    ("blkparse", b"8,0 1 1 0.5 697 Q R 1 + 8 [x]\n8,0 1 2 0.5 697 Q R 1 + 1", "line 2, column 26: expected the process in brackets, found the end of the line"),
    ("blkparse", BLK + b"8,0 1 2 0.499999999 697 Q R 1 + 8 [x]\n", "line 2: time runs backwards, from 0.500000000 s to 0.499999999 s"),
    ("blkparse", BLK + b"8,0 1 2 0.6 697 Q R 1 + 8 [x] oops\n", "line 2, column 35: expected a closing bracket, found the end of the line"),
    ("blkparse", BLK + b"hello\n", 'line 2, column 1: expected the device as major,minor, found "hello"'),
    ("blkparse", BLK + b"8.0 1 2\n", 'line 2, column 1: expected the device as major,minor, found "8.0"'),
    ("blkparse", BLK + b"Total (sda):\n" + BLK, 'line 3, column 1: expected no more events after the summary, found "8"'),
    ("blkparse", BLK + b"8,16 1 2 0.6 697 Q R 1 + 8 [x]\n", "line 2: the trace holds requests of several devices (8,0, now 8,16): choose one with --device"),
    ("blkparse", BLK + b"8,0 9999 2 0.6 697 Q R 1 + 8 [x]\n", "line 2: no processor has the number 9999"),
    ("blkparse", b"8,0 1 1 0.5 697 Q W 99999999999999999999 + 8 [x]\n", 'line 1, column 21: the sector is too large: "99999999999999999999"'),
    ("blkparse", b"8,0 1 1 0.5 697 Q W 18446744073709551616 + 8 [x]\n", 'line 1, column 21: the sector is too large: "18446744073709551616"'),
    ("blkparse", b"8,0 1 1 0.5 697 Q W 18446744073709551615 + 8 [x]\n", 'line 1, column 21: the position plus the length is too large: "18446744073709551615"'),
    ("blkparse", b"8,0 1 1 0.5 697 Q W 36028797018963960 + 9 [x]\n", 'line 1, column 21: the position plus the length is too large: "36028797018963960"'),
    # blktrace
    ("blktrace", event(1, 2, 8, QUEUE | READ) + b"\x01\x02\x03\x04" + bytes(44), "record 2 (byte 48): bad magic 0x04030201, expected 0x65617407"),
    ("blktrace", event(1, 2, 8, QUEUE | READ)[:20], "record 1 (byte 0): truncated, 20 of its 48 bytes are there"),
    ("blktrace", event(1, 2, 8, QUEUE | READ) + event(1, 2, 8, QUEUE | READ, pdu=b"123456")[:-2], "record 2 (byte 48): truncated, 52 of its 54 bytes are there"),
    ("blktrace", event(2_000_000_001, 2, 8, QUEUE | READ) + event(2_000_000_000, 2, 8, QUEUE | READ), "record 2: time runs backwards, from 2.000000001 s to 2.000000000 s"),
    ("blktrace", event(1, 1 << 54, 8, QUEUE | READ), f"record 1 (byte 0): sector {1 << 54} is too large"),
    ("blktrace", event(1, 1, 8, QUEUE | READ) + event(1, 1, 8, QUEUE | READ, device=SDA | 16), "record 2: the trace holds requests of several devices (8,0, now 8,16): choose one with --device"),
    ("blktrace", event(1, 1, 8, QUEUE | READ, cpu=123456), "record 1: no processor has the number 123456"),
    ("blktrace", event(1, 1, 0, QUEUE | READ), "the trace holds no requests"),
    ("blkparse", b"8,0 1 1 0.5 697 C R 1 + 8 [0]\n", "the trace holds completions (C) alone; record requests queued (Q) or issued (D), too"),
    ("blkparse", BLK + b"# below\n", 'line 2, column 1: expected the device as major,minor, found "#"'),
    ("ftrace", b" => submit_bio\n", 'line 1, column 2: expected an event, as in 1.5: block_rq_issue: 8,0, found "=>"'),
    # The kernel's own text
    ("ftrace", b" a-7 [000] 1.5: block_rq_issue: 8,0 R 4096 () 1 8 [a]\n", 'line 1, column 49: expected a plus sign, found "8"'),
    ("ftrace", b" a-7 [000] 1.5: block_rq_issue: 8,0 R 4096 (28 1 + 8 [a]\n", "line 1, column 57: expected a closing parenthesis, found the end of the line"),
    ("ftrace", b" a-7 1.5: block_rq_issue: 8,0 R 1 + 8 [a]\n", 'line 1, column 2: expected the processor in brackets, as [000], found "a-7"'),
    ("ftrace", b" a [000] 1.5: block_rq_issue: 8,0 R 1 + 8 [a]\n", 'line 1, column 2: expected a process with its id, as fio-70, found "a"'),
    ("ftrace", b" a-7 [000] 99999999999999999999.5: block_rq_issue: 8,0 R 1 + 8 [a]\n", 'line 1, column 12: the time in seconds is too large: "99999999999999999999.5"'),
    ("ftrace", b" a-7 [000] 1.5: block_bio_queue: 8:0 R 1 + 8 [a]\n", 'line 1, column 34: expected the device as major,minor, found "8:0"'),
    ("ftrace", b"CPU:1 [LOST 20 EVENTS]\n", 'line 1, column 1: expected no lost events (make buffer_size_kb larger), found "CPU:1"'),
    ("ftrace", b"# a comment of nobody's\n", 'line 1, column 1: expected an event, as in 1.5: block_rq_issue: 8,0, found "#"'),
    # fio
    ("fio-v2", b"fio version 1 iolog\n", 'line 1, column 1: expected fio version 2 iolog, found "fio"'),
    ("fio-v2", FIO2 + b"/dev/a read x 1\n", 'line 2, column 13: expected the offset in bytes as a decimal number, found "x"'),
    ("fio-v2", FIO2 + b"/dev/a read 0\n", "line 2, column 14: expected the length in bytes as a decimal number, found the end of the line"),
    ("fio-v2", FIO2 + b"/dev/a reed 0 512\n", 'line 2, column 8: expected an action such as read, write or wait, found "reed"'),
    ("fio-v2", FIO2 + b"/dev/a read 0 512 9\n", 'line 2, column 19: expected the end of the line, found "9"'),
    ("fio-v2", FIO2 + b"/dev/a read 0 512\n/dev/b read 0 512\n", "line 3: the trace holds requests of several devices (/dev/a, now /dev/b): choose one with --device"),
    ("fio-v2", FIO2 + b"/dev/a wait 18446744073709551615 0\n", 'line 2, column 13: the wait is too large: "18446744073709551615"'),
    ("fio-v2", FIO2 + b"/dev/a read 18446744073709551615 512\n", 'line 2, column 13: the position plus the length is too large: "18446744073709551615"'),
    ("fio-v3", FIO3 + b"1x /dev/a read 0 512\n", 'line 2, column 1: expected the time in microseconds as a decimal number, found "1x"'),
    ("fio-v3", FIO3 + b"1 /dev/a\n", "line 2, column 9: expected the action, found the end of the line"),
    ("fio-v3", FIO3 + b"1 /dev/a wait 5 0\n", 'line 2, column 3: expected no wait line in a log with times, found "/dev/a"'),
    ("fio-v3", FIO3 + b"9 /dev/a read 0 512\n8 /dev/a read 0 512\n", "line 3: time runs backwards, from 0.000009000 s to 0.000008000 s"),
    # MSR
    ("msr", b"1,usr,0,Read,x,512,1\n", 'line 1, column 14: expected the offset in bytes as a decimal number, found "x"'),
    ("msr", b"1,usr,0,Read,0,512\n", "line 1, column 19: expected a comma, found the end of the line"),
    ("msr", b"1,usr,0,Rea,0,512,1\n", 'line 1, column 9: expected Read or Write, found "Rea"'),
    ("msr", b"1,usr,0,Read,0,0,1\n", 'line 1, column 16: the size in bytes must be above zero, found "0"'),
    ("msr", b"1,usr,0,Read,0,512,1,2\n", 'line 1, column 21: expected the end of the line, found ",2"'),
    ("msr", b"20,usr,0,Read,0,512,1\n10,usr,0,Read,0,512,1\n", "line 2: time runs backwards, from 0.000002000 s to 0.000001000 s"),
    ("msr", b"1,usr,0,Read,0,512,1\n1,usr,1,Read,0,512,1\n", "line 2: the trace holds requests of several devices (usr,0, now usr,1): choose one with --device"),
    ("msr", b"184467440737095517,usr,0,Read,0,512,1\n", 'line 1, column 1: the time in units of 100 ns is too large: "184467440737095517"'),
    # SPC
    ("spc", b"0,1,512,x,0.0\n", 'line 1, column 9: expected r or w, found "x"'),
    ("spc", b"0,1,512,r\n", "line 1, column 10: expected a comma, found the end of the line"),
    ("spc", b"0,1,512,r,0.0 z\n", 'line 1, column 15: expected the end of the line, found "z"'),
    ("spc", b"0,1,512,r,0.\n", 'line 1, column 11: expected the time in seconds as a decimal number, a fraction is allowed, found "0."'),
    ("spc", b"0,1,512,r,18446744074\n", 'line 1, column 11: the time in seconds is too large: "18446744074"'),
    ("spc", b"0,1,512,r,0.2\n0,1,512,r,0.1\n", "line 2: time runs backwards, from 0.200000000 s to 0.100000000 s"),
    ("spc", b"0,1,512,r,0.2\n1,1,512,r,0.2\n", "line 2: the trace holds requests of several devices (0, now 1): choose one with --device"),
    # Alibaba
    ("alibaba", b"1,X,0,512,1\n", 'line 1, column 3: expected R or W, found "X"'),
    ("alibaba", b"1,R,0,512\n", "line 1, column 10: expected a comma, found the end of the line"),
    ("alibaba", b"1,R,-1,512,1\n", 'line 1, column 5: expected the offset in bytes as a decimal number, found "-1"'),
    ("alibaba", b"1,R,0,512,1 2\n", 'line 1, column 13: expected the end of the line, found "2"'),
    ("alibaba", b"1,R,0,512,2\n1,R,0,512,1\n", "line 2: time runs backwards, from 0.000002000 s to 0.000001000 s"),
    # Tencent
    ("tencent", b"1,0,8,2,5\n", 'line 1, column 7: expected 0 (read) or 1 (write), found "2"'),
    ("tencent", b"1,0,8,1\n", "line 1, column 8: expected a comma, found the end of the line"),
    ("tencent", b"1,0,z,1,5\n", 'line 1, column 5: expected the size in sectors as a decimal number, found "z"'),
    ("tencent", b"1,0,4294967296,1,5\n", 'line 1, column 3: the position plus the length is too large: "0"'),
    ("tencent", b"1,0,8,1,5;\n", 'line 1, column 9: expected the volume\'s number as a decimal number, found "5;"'),
    ("tencent", b"2,0,8,1,5\n1,0,8,1,5\n", "line 2: time runs backwards, from 2.000000000 s to 1.000000000 s"),
    # SYSTOR
    ("systor", b"1.0,0.1,Q,4,0,512\n", 'line 1, column 9: expected R or W, found "Q"'),
    ("systor", b"1.0,0.1,R,4,0\n", "line 1, column 14: expected a comma, found the end of the line"),
    ("systor", b"1.x,0.1,R,4,0,512\n", 'line 1, column 1: expected the time in seconds as a decimal number, a fraction is allowed, found "1.x"'),
    ("systor", b"1.0,0.1,R,4,0,512,\n", 'line 1, column 18: expected the end of the line, found ","'),
    ("systor", b"1.0,0.1,R,4,0,512\n0.9,0.1,R,4,0,512\n", "line 2: time runs backwards, from 1.000000000 s to 0.900000000 s"),
    # FIU
    ("fiu", b"1 2 p 8 8 X 6 0\n", 'line 1, column 11: expected R or W, found "X"'),
    ("fiu", b"1 2 p 8 8 R 6\n", "line 1, column 14: expected the device's minor number as a decimal number, found the end of the line"),
    ("fiu", b"1 2 p 8 x R 6 0\n", 'line 1, column 9: expected the size in sectors as a decimal number, found "x"'),
    ("fiu", b"1 2 p 8 8 R 6 0 abc\n", 'line 1, column 17: expected an MD5 sum or the end of the line, found "abc"'),
    ("fiu", b"2 2 p 8 8 R 6 0\n1 2 p 8 8 R 6 0\n", "line 2: time runs backwards, from 0.000000002 s to 0.000000001 s"),
    # vscsi
    ("vscsi", vscsi(1, 1) + vscsi(1, 1)[:30], "record 2 (byte 32): truncated, 30 of its 32 bytes are there"),
    ("vscsi", vscsi(1, 1) + vscsi(1, 1, ver=0x300), "record 2 (byte 32): bad version 0x300, expected 0x100"),
    ("vscsi", vscsi(1, 2) + vscsi(1, 1), "record 2: time runs backwards, from 0.000002000 s to 0.000001000 s"),
    ("vscsi", vscsi(1, 2, cmd=0x1234), "record 1 (byte 0): bad SCSI command 0x1234, expected one byte"),
    ("vscsi", vscsi(1 << 60, 2), "record 1 (byte 0): too large a sector 0x1000000000000000"),
    ("vscsi", vscsi(1, 1 << 60), "record 1 (byte 0): too large a time 0x1000000000000000"),
    ("vscsi", vscsi(1, 1, length=0), "the trace holds no requests"),
    ("vscsi2", vscsi2(1, 1) + b"x", "record 2 (byte 40): truncated, 1 of its 40 bytes are there"),
    ("vscsi2", vscsi2(1, 1, ver=0x100), "record 1 (byte 0): bad version 0x100, expected 0x200"),
    ("vscsi2", vscsi2(1, 2) + vscsi2(1, 1), "record 2: time runs backwards, from 0.000002000 s to 0.000001000 s"),
    # DiskSim
    ("disksim", b"0.0 0 1 8 g\n", 'line 1, column 11: expected the flags as a hexadecimal number, found "g"'),
    ("disksim", b"0.0 0 1 8\n", "line 1, column 10: expected the flags as a hexadecimal number, found the end of the line"),
    ("disksim", b"0,0 0 1 8 1\n", 'line 1, column 2: expected a blank, found ",0"'),
    ("disksim", b"0.0 0 1 8 1 junk\n", 'line 1, column 13: expected the end of the line, found "junk"'),
    ("disksim", b"1.0 0 1 8 1\n0.5 0 1 8 1\n", "line 2: time runs backwards, from 0.001000000 s to 0.000500000 s"),
    ("disksim", b"0.0 0 \x01\xff\x80 8 1\n", 'line 1, column 7: expected the block\'s number as a decimal number, found "\\x01\\xff\\x80"'),
    ("disksim", b"0.0 0 " + b"y" * 70 + b" 8 1\n", f'line 1, column 7: expected the block\'s number as a decimal number, found "{"y" * 40}..."'),
    ("mqsim", b"0.5 0 1 8 1\n", 'line 1, column 1: expected the arrival in nanoseconds as a decimal number, found "0.5"'),
    ("mqsim", b"5 0 1 8 2\n", 'line 1, column 9: expected 0 (write) or 1 (read), found "2"'),
    ("mqsim", b"5 0 1 0 1\n", 'line 1, column 7: the number of sectors must be above zero, found "0"'),
    ("mqsim", b"5 0 1 8 1 9\n", 'line 1, column 11: expected the end of the line, found "9"'),
    ("disksim", b"1" * 70000, "line 1 is longer than 65536 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "data", "why"), BAD, ids=lambda v: v if isinstance(v, str) else ""
)
def test_bad_input(name: str, data: bytes, why: str) -> None:
    assert parse(data, name).why == why


@pytest.mark.parametrize("name", ALL)
def test_empty(name: str) -> None:
    assert parse(b"", name).why == "the trace is empty"
    if name in TEXT:
        assert parse(b"\n\n", name).why == "the trace holds no requests"


SKIPPED = [
    row
    for row in BAD
    if not any(
        w in row[2] for w in ("no requests", "completions (C)", "several devices", "longer than")
    )
]


@pytest.mark.parametrize(
    ("name", "data", "why"), SKIPPED, ids=lambda v: v if isinstance(v, str) else ""
)
def test_skip_bad_counts(name: str, data: bytes, why: str) -> None:
    result = parse(data, name, skip_bad=True)
    assert result.skipped == 1
    assert result.why in (None, "the trace holds no requests")
    assert len(result.requests) <= 2


def test_skip_bad_goes_on_after_a_bad_record() -> None:
    one, two = event(1, 8, 8, QUEUE | READ), event(2, 16, 8, QUEUE | READ)
    data = one + b"garbage of any length" * 9 + two + two[:-1]
    result = parse(data, "blktrace", skip_bad=True)
    assert [r.sector for r in result.requests] == [8, 16]
    assert result.skipped == 2
    for cut in range(0, len(data), 7):
        assert parse(data, "blktrace", skip_bad=True, cuts=[cut]) == result
    swapped = event(2, 16, 8, QUEUE | READ, order=">")
    result = parse(b"x" * 50 + swapped, "blktrace", skip_bad=True)
    assert [r.sector for r in result.requests] == [16]
    lines = b"0.1 0 1 8 1\nbad\n0.2 0 1 8 0\n0.05 0 1 8 0\n0.3 0 1 8 0\n"
    result = parse(lines, "disksim", skip_bad=True)
    assert [r.line for r in result.requests] == [1, 3, 5]
    assert result.skipped == 2


# Devices.


@pytest.mark.parametrize(
    ("name", "lines", "device"),
    [
        ("alibaba", b"1,R,0,512,5\n2,R,512,512,3\n1,W,0,512,6\n", "2"),
        ("tencent", b"5,0,8,1,1\n3,1,8,1,2\n", "2"),
        ("spc", b"0,0,512,r,5\n7,1,512,r,3\n", "7"),
        ("msr", b"5,usr,0,Read,0,512,1\n3,usr,1,Read,512,512,1\n", "usr,1"),
        ("msr", b"5,usr,0,Read,0,512,1\n3, usr , 1 ,Read,512,512,1\n", "usr,1"),
        ("systor", b"5,0.1,R,4,0,512\n3,0.1,R,5,512,512\n", "5"),
        ("fiu", b"5 2 p 8 8 R 6 0\n3 2 p 1 8 R 8 1\n", "8,1"),
        ("fio-v3", FIO3 + b"5 /a read 0 512\n3 /b read 512 512\n", "/b"),
        ("disksim", b"5 0 8 8 1\n3 1 1 8 1\n", "1"),
        ("blkparse", BLK + b"8,16 0 2 0.3 697 Q W 1 + 8 [x]\n", "8,16"),
        (
            "blktrace",
            event(5, 8, 8, QUEUE) + event(3, 1, 8, QUEUE, device=259 << 20 | 3),
            "259,3",
        ),
    ],
)
def test_one_device_of_several(name: str, lines: bytes, device: str) -> None:
    result = parse(lines, name, device=device)
    assert result.why is None
    assert [(r.arrival_ns, r.sector) for r in result.requests] == [(0, 1)]
    missing = parse(good(name), name, device="999,9" if name != "alibaba" else "999")
    assert missing.why is not None and "999" in missing.why


def test_device_that_cannot_be() -> None:
    assert (
        parse(b"", "vscsi", device="1").why
        == "this format does not tell devices apart; leave out --device"
    )
    why = 'no device of this format is spelled "sda"; write its two numbers, as in 8,0'
    assert parse(b"", "blkparse", device="sda").why == why


# Completions, and the order of events.


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


# Pieces, and anything at all.


@pytest.mark.property
@given(st.sampled_from(ALL), st.lists(st.integers(0, 3000), max_size=20), st.booleans())
def test_pieces_make_no_difference(name: str, cuts: list[int], skip_bad: bool) -> None:
    data = good(name)
    assert parse(data, name, cuts=cuts, skip_bad=skip_bad) == parse(data, name, skip_bad=skip_bad)


@pytest.mark.parametrize("name", ALL)
def test_byte_by_byte(name: str) -> None:
    data = good(name)
    assert parse(data, name, cuts=list(range(len(data)))) == parse(data, name)
    for bad, broken, _ in BAD:
        if bad == name and len(broken) < 1000:
            assert parse(broken, name, cuts=list(range(len(broken)))) == parse(broken, name)


@pytest.mark.property
@given(st.binary(max_size=400), st.sampled_from(ALL), st.booleans(), st.integers(0, 400))
def test_any_bytes(data: bytes, name: str, skip_bad: bool, cut: int) -> None:
    tracefile.detect(data)
    assert parse(data, name, skip_bad=skip_bad, cuts=[cut]) == parse(data, name, skip_bad=skip_bad)


@pytest.mark.property
@given(st.data(), st.sampled_from(ALL), st.booleans())
def test_damaged_samples(data: st.DataObject, name: str, skip_bad: bool) -> None:
    damaged = bytearray(good(name)[:2000])
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    result = parse(bytes(damaged), name, skip_bad=skip_bad)
    arrivals = [r.arrival_ns for r in result.requests]
    assert arrivals == sorted(arrivals)
    assert all(r.complete_ns is None or r.complete_ns >= r.arrival_ns for r in result.requests)
    assert result.why is None or "\n" not in result.why


# Detection.


@pytest.mark.parametrize("name", ALL)
def test_detect(name: str) -> None:
    data = good(name)
    assert tracefile.detect(data[:4096]) == name
    if name in TEXT:
        lines = data.splitlines(keepends=True)
        if name not in ("blkparse", "systor", "fio-v2", "fio-v3", "mqsim", "ftrace"):
            for line in lines:
                assert tracefile.detect(line) == name
                assert tracefile.detect(line.strip()) == name
        assert tracefile.detect(lines[0] + lines[1]) == name
        # A bad line behind a good one is an error to name, not another format.
        assert tracefile.detect(b"".join(lines[:2]) + b"bad line\n") == name
        assert tracefile.detect(data + data[: len(data) // 2]) == name


def test_detect_single_records() -> None:
    assert tracefile.detect(BLK) == "blkparse"
    assert tracefile.detect((DATA / "loop.blkparse").read_bytes()[:4096]) == "blkparse"
    assert tracefile.detect(vscsi(1, 2)) == "vscsi"
    assert tracefile.detect(vscsi2(1, 2)) == "vscsi2"
    assert tracefile.detect(event(1, 2, 3, QUEUE)) == "blktrace"
    assert tracefile.detect(b"1.0,0.1,R,4,0,512\n") == "systor"
    # The second is out of order, or bad: to be named by the reader.
    assert tracefile.detect(b"".join(vscsi(1, t) for t in (1, 2, 3, 4, 2))) == "vscsi"
    assert tracefile.detect(b"".join(vscsi(1, t) for t in range(9)) + vscsi(1, 9, ver=7)) == "vscsi"


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\n", b"\n\n", b"hello world\n", b"1,2,3\n", b"1 2 3 4\n", bytes(4096)),
        *(b"<html>", b"a,b,c,d,e\n", bytes(range(256)), b"1,2,3,4,5,6\n", b"1,2,3,4,5,6,7\n"),
        b"fio version 4 iolog\n",
        # Of two formats equally, and text with what no text has.
        b"1,R,0,512,1\n0,1,512,r,0.0\n",
        b"1,R,0,512,1\n\0\n",
    ],
)
def test_detect_nothing(data: bytes) -> None:
    assert tracefile.detect(data) is None


@pytest.mark.parametrize(
    ("apart", "name"),
    [
        (0, "disksim"),
        (5, "disksim"),
        (999, "disksim"),
        (1000, None),
        (9999, None),
        (10_001, "mqsim"),
    ],
)
def test_whole_times_are_milliseconds_or_nanoseconds(apart: int, name: str | None) -> None:
    """MQSim's columns are DiskSim's: told by the pace that each unit would mean, or not at all."""
    lines = [b"%d 0 %d 8 1\n" % (7 + n * apart, n * 64) for n in range(100)]
    assert tracefile.detect(b"".join(lines)) == name
    assert tracefile.detect(lines[0]) is None
    # A fraction, or a flag of DiskSim's own, decides.
    assert tracefile.detect(b"".join(lines).replace(b" 1\n", b" 3\n")) == "disksim"
    assert (
        tracefile.detect(b"".join(b"%d.5 0 8 8 1\n" % (n * apart) for n in range(9))) == "disksim"
    )


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize("taken_for", ALL)
def test_no_format_reads_as_another(of: str, taken_for: str) -> None:
    if (of, taken_for) == ("mqsim", "disksim"):
        pytest.skip("the columns are the same: see the test above")
    result = parse(good(of), taken_for)
    assert (result.why is None) == (of == taken_for)
    if of != taken_for:
        assert not result.requests


# Files.

PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "gzip of two members": lambda d: gzip.compress(d[:50]) + gzip.compress(d[50:]),
    "zstd of two frames": lambda d: b"".join(
        zstandard.ZstdCompressor(write_checksum=True).compress(p) for p in (d[:50], d[50:])
    ),
    "zstd with a frame to skip": lambda d: (
        b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstandard.ZstdCompressor().compress(d)
    ),
}


@pytest.mark.parametrize("how", PACK)
def test_compressed(how: str, tmp_path: Path) -> None:
    data = good("alibaba") * 9
    path = tmp_path / "trace"
    path.write_bytes(PACK[how](data))
    name, chunks = tracefile.read_trace(path)
    assert name == "alibaba"
    assert b"".join(chunks) == data
    opened = tracefile.open_trace(str(path))
    for _ in range(2):
        parts = list(opened.chunks())
        assert b"".join(chunk for chunk, _ in parts) == data
        assert parts[-1][1] == 1.0


@pytest.mark.parametrize("how", ["plain", "gzip", "zstd"])
def test_pieces_of_a_long_file(how: str, tmp_path: Path) -> None:
    data = good("msr") * 30000
    path = tmp_path / "trace"
    path.write_bytes(PACK[how](data))
    parts = list(tracefile.open_trace(path).chunks())
    assert max(len(chunk) for chunk, _ in parts) <= 1 << 20
    assert len(parts) >= len(data) >> 20
    assert b"".join(chunk for chunk, _ in parts) == data
    assert [part for _, part in parts] == sorted(part for _, part in parts)


def broken_files() -> Iterator[tuple[str, bytes, str]]:
    data = random.Random(1).randbytes(20000)
    gz = gzip.compress(data)
    zst = zstandard.ZstdCompressor(write_checksum=True).compress(data)
    flipped = bytearray(zst)
    flipped[9000] ^= 0x55
    yield "gzip truncated", gz[:-20], "the gzip data is truncated"
    yield "gzip corrupt", gz[:-8] + b"\0\0\0\0" + gz[-4:], "the gzip data is corrupt"
    yield "gzip then garbage", gz + b"garbage", "the gzip data is corrupt"
    yield "zstd truncated", zst[:-20], "the zstd data is truncated"
    yield "zstd corrupt", bytes(flipped), "the zstd data is corrupt"
    yield "zstd then garbage", zst + b"garbage", "the zstd data is corrupt"
    yield "zstd header only", zst[:5], "the zstd data is truncated"
    yield "gzip header only", gz[:5], "the gzip data is truncated"
    yield "xz", b"\xfd7zXZ\0\0\0", "compressed with xz, which is not read; gzip and zstd are"
    yield "empty", b"", "the trace is empty"
    yield "empty gzip", gzip.compress(b""), "the trace is empty"
    yield "tar", bytes(257) + b"ustar" + bytes(300), "a tar archive"
    yield "unknown", b"hello\n", "its format cannot be told from its content"


@pytest.mark.parametrize(
    ("data", "why"), [r[1:] for r in broken_files()], ids=[r[0] for r in broken_files()]
)
def test_broken_files(data: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "the.trace"
    path.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        for _ in tracefile.open_trace(path, "disksim" if "data" in why else None).chunks():
            pass
    assert str(caught.value).startswith(f"{path}: {why}")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory"):
        tracefile.open_trace(tmp_path / "none")
    with pytest.raises(UsageError, match="is a folder, and has no trace"):
        tracefile.open_trace(tmp_path)
    with pytest.raises(UsageError, match="did you mean 'blktrace'"):
        tracefile.open_trace(tmp_path, "blktrac")


@pytest.mark.parametrize("of", ("blktrace", "vscsi", "vscsi2"))
def test_a_binary_trace_whose_beginning_is_destroyed(of: str, tmp_path: Path) -> None:
    """What was looked at and what helps is said; then which record it is, and where."""
    path = tmp_path / "trace"
    path.write_bytes(b"\x55" * 8 + bytes(40) + good(of)[48:])
    with pytest.raises(UsageError) as caught:
        tracefile.open_trace(path)
    assert str(caught.value) == (
        f"{path}: its format cannot be told from its content: its beginning "
        f"({min(path.stat().st_size, 4096)} bytes) is no text, and none of the binary formats "
        "begins so; force one with --format (blktrace, vscsi, vscsi2), "
        "with --skip-bad if the beginning is destroyed"
    )
    result = parse(path.read_bytes(), of)
    assert result.why is not None and result.why.startswith("record 1 (byte 0): bad ")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Standard:
        buffer = io.BufferedReader(io.BytesIO(gzip.compress(good("spc"))))

    monkeypatch.setattr(sys, "stdin", Standard)
    opened = tracefile.open_trace("-")
    assert opened.format == "spc"
    assert b"".join(chunk for chunk, _ in opened.chunks()) == good("spc")
    with pytest.raises(UsageError, match="only once"):
        opened.chunks()


def test_standard_input_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Standard:
        buffer = io.BytesIO(b"hello\n")

    monkeypatch.setattr(sys, "stdin", Standard)
    with tracefile.kept("-") as path:
        assert Path(path).read_bytes() == b"hello\n"
        with pytest.raises(UsageError, match=r"^standard input: its format"):
            tracefile.open_trace(path)
    assert not Path(path).exists()


def test_a_pipe_is_kept(tmp_path: Path) -> None:
    """It can be read once, and each simulation reads its trace; a message has its own name."""
    pipe = tmp_path / os.fsdecode(b"p %\xff\xe2\x98\x83")
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(good("spc"),), daemon=True)
    writer.start()
    with tracefile.kept(pipe) as path:
        assert path != str(pipe)
        writer.join()
        for _ in range(2):
            assert b"".join(part for part, _ in tracefile.open_trace(path).chunks()) == good("spc")
        assert tracefile.shown(path) == str(pipe)
    assert not Path(path).exists()


def test_a_copy_that_does_not_fit_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(good("spc"),), daemon=True)
    writer.start()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    why = f"{pipe}: cannot be copied to {tmp_path}, .*: No space left on device; .* with TMPDIR"
    with pytest.raises(StreamschedError, match=why), tracefile.kept(pipe):
        pass
    writer.join()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_forced_format_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"hello\n")
    assert tracefile.open_trace(path, "disksim").format == "disksim"


# Bounds, and a real trace.

MEMORY = """
import pathlib, struct, sys
from streamsched._core import ffi, lib
reader = lib.trace_open(sys.argv[1].encode(), False)
rq = ffi.new("struct trace_request *")
if sys.argv[1] == "blktrace":
    record = struct.pack("<IIQQIIIIIHH", 0x65617407, 1, 5, 8, 4096, 1 | 1 << 20, 7, 1, 0, 0, 0)
    other = struct.pack("<IIQQIIIIIHH", 0x65617407, 1, 5, 999, 512, 8 | 1 << 23, 7, 1, 0, 0, 0)
    chunk = (record * 9 + other) * 2000
else:
    chunk = b"0,1,512,r,5.0\\n" * 20000
def feed(times):
    for _ in range(times):
        assert lib.trace_feed(reader, chunk, len(chunk), False) == 0
        while (got := lib.trace_next(reader, rq)) == 1:
            pass
        assert got == 0
feed(10)
def pages():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1])
before = pages()
feed(40)
print(pages() - before)
"""


@pytest.mark.parametrize("name", ["blktrace", "spc"])
def test_memory_does_not_grow(name: str) -> None:
    """800,000 records more: the events alone would be 32 MB."""
    grown = subprocess.run(
        [sys.executable, "-P", "-c", MEMORY, name], capture_output=True, text=True, check=True
    )
    assert int(grown.stdout) < 512


def test_cloudphysics_trace() -> None:
    shared = os.environ.get("STREAMSCHED_SHARED")
    folder = Path(shared) if shared else Path(__file__).resolve().parents[3] / "shared"
    path = folder / "traces" / "cloudPhysicsIO.vscsi"
    if not path.exists():
        pytest.skip("the shared traces are not here")
    name, chunks = tracefile.read_trace(path)
    assert name == "vscsi"
    result = parse(b"".join(chunks), name)
    assert result.why is None
    assert len(result.requests) == 113_872
    reads = sum(r.direction == "R" for r in result.requests)
    assert reads == 46_974
    assert result.requests[-1].arrival_ns == 7_200_089_885_000


def test_made_traces(tmp_path: Path, root: Path) -> None:
    script = root / "bench" / "make_trace.py"
    made = tmp_path / "made"
    command = [sys.executable, str(script), "--requests", "5000", "--output", str(made)]
    subprocess.run(command, check=True)
    plain = parse(made.read_bytes(), "blktrace")
    assert plain.why is None and len(plain.requests) == 5000
    assert {r.owner for r in plain.requests} == {1000, 1001, 1002, 1003, 1004}
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert again.stderr == f"make_trace.py: --output {made}: is there already; name a new file\n"
    made.unlink()
    subprocess.run([*command, "--completions"], check=True)
    complete = parse(made.read_bytes(), "blktrace")
    assert [r._replace(complete_ns=None, line=0) for r in complete.requests] == [
        r._replace(line=0) for r in plain.requests
    ]
    assert all(r.complete_ns == r.arrival_ns for r in complete.requests)
