# SPDX-License-Identifier: GPL-2.0-only
"""Which format a trace has, and files of traces: compressed, broken, from a pipe."""

from __future__ import annotations

import gzip
import io
import os
import random
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from said import refusal
from trace_samples import ALL, BLK, DATA, QUEUE, TEXT, event, good, parse, vscsi, vscsi2

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.work import tracefile


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
    assert refusal(tracefile.open_trace, path) == (
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
