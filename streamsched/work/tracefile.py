# SPDX-License-Identifier: GPL-2.0-only
"""Trace files: plain, gzip or zstd, from a path or standard input, in pieces.

A file of any length takes constant memory. What kind of compression it has and
which trace format it is in are told by its content, never by its name.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import quote, unquote

import zstandard

from streamsched._core import ffi, lib
from streamsched.base.errors import StreamschedError, UsageError, unknown
from streamsched.base.files import mode_of, open_input
from streamsched.work.processors import Part, Pieces, merged, parts_of

STDIN = "-"
STDIN_SHOWN = "standard input"

CHUNK_BYTES = 1 << 20
# Of each file at least, where there is one for each processor; those are of this format.
PART_BYTES = 1 << 16
OF_PROCESSORS = "blktrace"
# What the C side needs to tell the formats apart.
HEAD_BYTES = 4096
# More than the longest line that it takes.
LINE_BYTES = 1 << 17
MAGIC_BYTES = 6
# A zstd block of four bytes can stand for 128 KiB: little goes in at a time.
ZSTD_INPUT_BYTES = 4096

# A copy of what can be read once is in a folder of this prefix; its name, quoted, is what it is of.
COPY_PREFIX = "streamsched-copy-"
LONGEST_NAME = 200

UNSUPPORTED = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"\x04\x22\x4d\x18": "lz4",
}
TAR_AT, TAR_MAGIC = 257, b"ustar"


class _Source(Protocol):
    """What can be read from."""

    def read(self, nr: int, /) -> bytes:
        """Up to @nr bytes; fewer only at the end."""


class _Bad(Exception):
    """What is wrong with the compressed data, without the file's name."""


class _Joined:
    """A stream whose first bytes were read already; counts what is read of the rest."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self.head = head
        self.rest = rest
        self.taken = 0

    def read(self, nr: int, /) -> bytes:
        """The head first, then the rest."""
        got, self.head = self.head[:nr], self.head[nr:]
        if len(got) < nr:
            got += self.rest.read(nr - len(got))
        self.taken += len(got)
        return got


def formats() -> Iterator[tuple[str, str]]:
    """Name and one line of help of each format."""
    for index in range(lib.trace_nr_formats):
        row = lib.trace_formats[index]
        yield ffi.string(row.name).decode(), ffi.string(row.help).decode()


def _by_kind() -> tuple[list[str], list[str]]:
    """The names of the text formats, and of the binary ones."""
    kinds: tuple[list[str], list[str]] = [], []
    for index, (name, _) in enumerate(formats()):
        kinds[lib.trace_formats[index].binary].append(name)
    return kinds


def detect(head: bytes) -> str | None:
    """The format of a trace that begins so; None if it is none or not certain."""
    name = lib.trace_detect(head, len(head))
    return None if name == ffi.NULL else ffi.string(name).decode()


def _alike(head: bytes) -> list[str]:
    """The formats that fit the beginning of a trace best, if any does."""
    found = {
        name: lib.trace_likeness(index, head, len(head))
        for index, (name, _) in enumerate(formats())
        if not lib.trace_formats[index].binary
    }
    best = max(found.values())
    return [name for name, likeness in found.items() if likeness == best] if best else []


def _plain(source: _Source, most: int) -> Iterator[bytes]:
    while chunk := source.read(most):
        yield chunk


def _gzip(source: _Source, most: int) -> Iterator[bytes]:
    # Only read() is asked for, though GzipFile's type says more.
    with gzip.GzipFile(fileobj=source, mode="rb") as unpacked:  # type: ignore[call-overload]
        while True:
            try:
                chunk = unpacked.read(most)
            except EOFError:
                raise _Bad("the gzip data is truncated") from None
            except (gzip.BadGzipFile, zlib.error) as error:
                raise _Bad(f"the gzip data is corrupt ({error})") from None
            if not chunk:
                return
            yield chunk


def _zstd_pieces(source: _Source) -> Iterator[bytes]:
    """The content of all frames, in pieces of any length."""
    unpack = zstandard.ZstdDecompressor()
    frame = unpack.decompressobj()
    begun = False
    while packed := source.read(ZSTD_INPUT_BYTES):
        while packed:
            begun = True
            try:
                yield frame.decompress(packed)
            except zstandard.ZstdError as error:
                raise _Bad(f"the zstd data is corrupt ({error})") from None
            packed = b""
            if frame.eof:
                packed = frame.unused_data
                frame = unpack.decompressobj()
                begun = False
    if begun:
        raise _Bad("the zstd data is truncated")


def _zstd(source: _Source, most: int) -> Iterator[bytes]:
    held = bytearray()
    for piece in _zstd_pieces(source):
        held += piece
        while len(held) >= most:
            yield bytes(held[:most])
            del held[:most]
    if held:
        yield bytes(held)


def _unpacker(magic: bytes) -> Callable[[_Source, int], Iterator[bytes]]:
    """By the first bytes of a file."""
    for unsupported, name in UNSUPPORTED.items():
        if magic.startswith(unsupported):
            raise _Bad(f"compressed with {name}, which is not read; gzip and zstd are")
    if magic.startswith(b"\x1f\x8b"):
        return _gzip
    # A zstd frame, or one that is to be skipped, as parallel packers write first.
    if magic.startswith(b"\x28\xb5\x2f\xfd") or (
        magic[1:4] == b"\x2a\x4d\x18" and magic[0] & 0xF0 == 0x50
    ):
        return _zstd
    return _plain


def shown(path: str | Path) -> str:
    """The file's name as messages give it."""
    one = Path(path)
    if one.parent.name.startswith(COPY_PREFIX):
        return unquote(one.name, errors="surrogateescape")
    return STDIN_SHOWN if str(path) == STDIN else str(path)


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[BinaryIO, int]]:
    """The file and its length, 0 if it has none."""
    if str(path) == STDIN:
        if sys.stdin is None:
            raise UsageError(f"{STDIN_SHOWN}: is closed; name a file")
        yield sys.stdin.buffer, 0
        return
    try:
        with open_input(path) as file:
            status = os.fstat(file.fileno())
            yield file, status.st_size if stat.S_ISREG(status.st_mode) else 0
    except OSError as error:
        raise UsageError(f"{shown(path)}: cannot be read: {error.strerror}") from None


def _parts(path: str | Path, most: int = CHUNK_BYTES) -> Pieces:
    """Pieces of the decompressed content, each with the part of the file read by then."""
    with _opened(path) as (file, size):
        magic = file.read(MAGIC_BYTES)
        source = _Joined(magic, file)
        try:
            for chunk in _unpacker(magic)(source, most):
                yield chunk, min(source.taken / size, 1.0) if size else 0.0
        except _Bad as bad:
            raise UsageError(f"{shown(path)}: {bad}") from None


def _pieces(files: Sequence[str], skip_bad: bool) -> Pieces:
    """Of a trace's one file, or of its files of several processors."""
    if len(files) == 1:
        return _parts(files[0])
    most = max(PART_BYTES, CHUNK_BYTES // len(files))
    return merged(
        [Part(one, Path(one).stat().st_size, _parts(one, most), skip_bad) for one in files]
    )


@dataclass
class TraceFile:
    """An opened trace: its format, and its bytes."""

    path: str
    format: str
    _first: Pieces | None
    _files: Sequence[str]
    _skip_bad: bool

    def chunks(self) -> Pieces:
        """The content in pieces of at most 1 MiB, each with the part of the file read by then.

        A file is read again from its beginning each time; standard input once.
        """
        if self._first is not None:
            first, self._first = self._first, None
            return first
        if self.path == STDIN:
            raise UsageError("standard input can be read only once")
        return _pieces(self._files, self._skip_bad)

    def sha256(self) -> str:
        """Of its file's bytes; of several files' one behind the other."""
        found = hashlib.sha256()
        for one in self._files:
            with _opened(one) as (file, _):
                while data := file.read(CHUNK_BYTES):
                    found.update(data)
        return found.hexdigest()


def _put_back(begin: list[tuple[bytes, float]], rest: Pieces) -> Pieces:
    yield from begin
    yield from rest


def _detected(path: str, head: bytes) -> str:
    if not head:
        raise UsageError(f"{shown(path)}: the trace is empty")
    if head[TAR_AT:].startswith(TAR_MAGIC):
        raise UsageError(f"{shown(path)}: a tar archive; unpack the trace from it first")
    found = detect(head)
    if found is None:
        text, binary = _by_kind()
        begin = f"its beginning ({len(head)} byte{'' if len(head) == 1 else 's'})"
        if b"\0" in head:
            names = binary
            seen = f"{begin} is no text, and none of the binary formats begins so"
            then = ", with --skip-bad if the beginning is destroyed"
        else:
            names = [*text, *binary]
            alike = _alike(head)
            seen = f"{begin} fits {', '.join(alike)} alike" if alike else f"{begin} fits no format"
            then = ""
        raise UsageError(
            f"{shown(path)}: its format cannot be told from its content: {seen}; "
            f"force one with --format ({', '.join(names)}){then}"
        )
    return found


def open_trace(
    path: str | Path, format_name: str | None = None, skip_bad: bool = False
) -> TraceFile:
    """Open a trace and find out its format, unless @format_name says it.

    @skip_bad: bad records of files of several processors are for the reader to count.
    """
    path = str(path)
    names = [name for name, _ in formats()]
    if format_name is not None and format_name not in names:
        raise unknown("trace format", format_name, names)
    files = [path] if path == STDIN else parts_of(path)
    if len(files) > 1:
        if format_name not in (None, OF_PROCESSORS):
            raise UsageError(
                f"--format {format_name}: {path} has a file for each processor, which is "
                f"{OF_PROCESSORS}'s"
            )
        format_name = OF_PROCESSORS
    parts = _pieces(files, skip_bad)
    begin: list[tuple[bytes, float]] = []
    head = b""
    while len(head) < HEAD_BYTES:
        part = next(parts, None)
        if part is None:
            break
        begin.append(part)
        head += part[0][:HEAD_BYTES]
    if format_name is None or not head:
        format_name = _detected(path, head[:HEAD_BYTES])
    return TraceFile(path, format_name, _put_back(begin, parts), files, skip_bad)


def read_trace(path: str | Path, format_name: str | None = None) -> tuple[str, Iterator[bytes]]:
    """The format's name, and the decompressed content in pieces of at most 1 MiB."""
    opened = open_trace(path, format_name)
    return opened.format, (chunk for chunk, _ in opened.chunks())


def _head_of(first: bytes) -> bytes:
    """The beginning of the content, from a file's first bytes; short if they do not have it."""
    head = b""
    with suppress(_Bad):  # which is said when all of it is read
        for chunk in _unpacker(first[:MAGIC_BYTES])(_Joined(first, io.BytesIO()), CHUNK_BYTES):
            head += chunk[:LINE_BYTES]
            if len(head) >= LINE_BYTES:
                break
    return head[:LINE_BYTES]


def _check_beginning(path: str, format_name: str, head: bytes) -> None:
    """Refuse what is not in that format from the first record on."""
    reader = lib.trace_open(format_name.encode(), False)
    if reader == ffi.NULL:  # there is no such format, as open_trace() says
        return
    request = ffi.new("struct trace_request *")
    try:
        lib.trace_feed(reader, head, len(head), False)
        while (got := lib.trace_next(reader, request)) > 0:
            pass
        if got < 0:
            why = ffi.string(lib.trace_why(reader)).decode(errors="backslashreplace")
            raise UsageError(f"{shown(path)}: {why}")
    finally:
        lib.trace_close(reader)


@contextmanager
def _copying(path: str | Path) -> Iterator[None]:
    """Errors of a copy say of what it is, and where it was to be."""
    try:
        yield
    except OSError as error:
        with suppress(OSError):  # where there is no temporary directory it says which were tried
            raise StreamschedError(
                f"{shown(path)}: cannot be copied to {tempfile.gettempdir()}, to be read several "
                f"times: {error.strerror}; make room there, or name another place with TMPDIR"
            ) from None
        raise StreamschedError(f"{shown(path)}: cannot be copied: {error.strerror}") from None


@contextmanager
def kept(path: str | Path, format_name: str | None = None, skip_bad: bool = False) -> Iterator[str]:
    """A path that can be read several times: of standard input or a pipe a copy, while it lasts.

    What is no trace is refused by its beginning: it may have no end.
    """
    if str(path) != STDIN and not stat.S_ISFIFO(mode_of(path)):
        yield str(path)
        return
    name = quote(shown(path), safe="", errors="surrogateescape")[-LONGEST_NAME:]
    with ExitStack() as stack:
        with _copying(path):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=COPY_PREFIX))
        copy = Path(folder) / name
        with _opened(path) as (file, _), _copying(path), copy.open("wb") as to:
            first = file.read(CHUNK_BYTES)
            head = _head_of(first)
            if len(head) >= HEAD_BYTES:
                known = format_name or _detected(str(path), head[:HEAD_BYTES])
                if not skip_bad:
                    _check_beginning(str(path), known, head)
            to.write(first)
            shutil.copyfileobj(file, to, io.DEFAULT_BUFFER_SIZE * 16)
        yield str(copy)
