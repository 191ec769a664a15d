# SPDX-License-Identifier: GPL-2.0-only
# ruff: noqa: E501 - each bad input and the sentence about it are one row of a table
"""Trace readers: bad input and what is said of it, and the device that is chosen."""

from __future__ import annotations

import pytest
from trace_samples import ALL, BLK, QUEUE, READ, SDA, TEXT, event, good, parse, vscsi, vscsi2

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


@pytest.mark.parametrize("name", ALL)
def test_byte_by_byte(name: str) -> None:
    data = good(name)
    assert parse(data, name, cuts=list(range(len(data)))) == parse(data, name)
    for bad, broken, _ in BAD:
        if bad == name and len(broken) < 1000:
            assert parse(broken, name, cuts=list(range(len(broken)))) == parse(broken, name)
