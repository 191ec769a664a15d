# SPDX-License-Identifier: GPL-2.0-only
"""Trace readers: every format's good sample, in whatever pieces, damaged and at length."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from said import ran
from trace_samples import (
    ALL,
    BLK,
    COMPLETE,
    DATA,
    QUEUE,
    READ,
    TEXT,
    WRITE,
    Request,
    event,
    good,
    parse,
)

from streamsched.work import tracefile

SYNC, META = 0x01, 0x02
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


# Pieces, and anything at all.


@pytest.mark.property
@given(st.sampled_from(ALL), st.lists(st.integers(0, 3000), max_size=20), st.booleans())
def test_pieces_make_no_difference(name: str, cuts: list[int], skip_bad: bool) -> None:
    data = good(name)
    assert parse(data, name, cuts=cuts, skip_bad=skip_bad) == parse(data, name, skip_bad=skip_bad)


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
    grown = ran(sys.executable, "-P", "-c", MEMORY, name, check=True)
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
    again = ran(*command)
    assert again.returncode == 2
    assert again.stderr == f"make_trace.py: --output {made}: is there already; name a new file\n"
    made.unlink()
    subprocess.run([*command, "--completions"], check=True)
    complete = parse(made.read_bytes(), "blktrace")
    assert [r._replace(complete_ns=None, line=0) for r in complete.requests] == [
        r._replace(line=0) for r in plain.requests
    ]
    assert all(r.complete_ns == r.arrival_ns for r in complete.requests)
