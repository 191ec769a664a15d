# SPDX-License-Identifier: GPL-2.0-only
"""blktrace's files, one for each processor, as the one trace that they are.

It writes sda.blktrace.0, sda.blktrace.1 and so on. A request may be queued on one processor and
completed on another, so none of these files says anything alone. `sda`, `sda.blktrace`,
`sda.blktrace.*` and the folder name all of them.
"""

from __future__ import annotations

import heapq
import itertools
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamsched._core import ffi, lib
from streamsched.base.errors import UsageError
from streamsched.base.files import mode_of

ONE = re.compile(r"(?P<base>.+\.blktrace)\.(?P<processor>\d+)(?:\.(?:gz|zst))?")
ALL = re.compile(r"\.\*(?:\.(?:gz|zst))?$")
ENDING = ".blktrace"
# Merged files go on by so much beyond the earliest one: the reader puts less than a second, and
# fewer than 65536 events, in order.
SLICE_NS = 250_000_000
SLICE_RECORDS = 32768
NO_TIME = int(lib.TRACE_NO_TIME)

Pieces = Iterator[tuple[bytes, float]]


# ---- which files ----


def _processor(path: Path) -> int:
    named = ONE.fullmatch(path.name)
    assert named
    return int(named["processor"])


def _of(folder: Path, base: str | None = None) -> dict[str, list[Path]]:
    """The traces in a folder that have a file for each processor, by the name before its number.

    @base: only the one that is named so.
    """
    found: dict[str, list[Path]] = {}
    try:
        for path in folder.iterdir():
            named = ONE.fullmatch(path.name)
            if named and base in (None, named["base"]) and not path.is_dir():
                found.setdefault(named["base"], []).append(path)
    except OSError as error:
        if base is not None:  # a file in a folder that cannot be listed is a trace by itself
            return {}
        raise UsageError(f"{folder}: cannot be read: {error.strerror}") from None
    except ValueError:  # a NUL, as TOML may have it: no folder is named so
        return {}
    for name, paths in found.items():
        paths.sort(key=_processor)
        for one, other in itertools.pairwise(paths):
            if _processor(one) == _processor(other):
                raise UsageError(
                    f"{folder / name}: its processor {_processor(one)} has two files, {one.name} "
                    f"and {other.name}; remove one"
                )
    return found


def _beside(path: Path) -> list[Path]:
    """All files of the trace that @path is a file of, with @path; none if it is not named so."""
    named = ONE.fullmatch(path.name)
    return _of(path.parent, named["base"]).get(named["base"], []) if named else []


def _short(paths: Sequence[Path]) -> Path:
    """How to name the trace of these files."""
    named = ONE.fullmatch(paths[0].name)
    assert named
    return paths[0].with_name(named["base"].removesuffix(ENDING))


def parts_of(path: str) -> list[str]:
    """The files of the trace that is named so, in order of processors; mostly it is itself.

    UsageError where it is one of several, or a folder with none or several traces.
    """
    here = Path(path)
    if stat.S_ISDIR(mode_of(path)):
        found = _of(here)
        if not found:
            raise UsageError(
                f"{path}: is a folder, and has no trace with a file for each processor "
                "(sda.blktrace.0 and so on); name a trace in it"
            )
        if len(found) > 1:
            names = sorted(name.removesuffix(ENDING) for name in found)
            raise UsageError(
                f"{path}: has {len(names)} traces ({', '.join(names)}); name one of them, as in "
                f"{here / names[0]}"
            )
        return [str(one) for one in next(iter(found.values()))]
    if mode_of(path):
        if len(all_ := _beside(here)) > 1:
            raise UsageError(
                f"{path}: is one of the {len(all_)} files of a trace, one for each processor; "
                f"name the whole trace, as {_short(all_)}"
            )
        return [path]
    base = ALL.sub("", here.name).removesuffix(ENDING) + ENDING
    if here.name:
        return [str(one) for one in _of(here.parent, base).get(base, [])] or [path]
    return [path]


def joined(names: Sequence[str]) -> list[str]:
    """@names, with those that are files of one trace as that one.

    UsageError where some of its files are left out.
    """
    found: list[str] = []
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        path = Path(name)
        named = ONE.fullmatch(path.name)
        if not named or len(_beside(path)) < 2:
            found.append(name)
            continue
        key = (os.path.realpath(path.parent), named["base"])
        if key not in groups:
            found.append(str(path.with_name(f"{named['base']}.*")))
        groups.setdefault(key, []).append(name)
    for group in groups.values():
        all_ = _beside(Path(group[0]))
        if sorted(Path(name).name for name in group) != sorted(path.name for path in all_):
            raise UsageError(
                f"{', '.join(group)}: the trace has {len(all_)} files, one for each processor; "
                f"name each of them once, or {_short(all_)}"
            )
    return found


def note_of(path: str) -> str | None:
    """What may be missing of a trace that has a file for each processor."""
    files = [Path(one) for one in parts_of(path)]
    if not all(ONE.fullmatch(one.name) for one in files):
        return None
    there = [_processor(one) for one in files]
    missing = sorted(set(range(max(there) + 1)) - set(there))
    if not missing and len(files) > 1:
        return None
    lacks = ", ".join(map(str, missing or [1]))
    return (
        f"{path}: blktrace writes a file for each processor, and none of processor {lacks} is "
        "there; if there was one, the trace is not whole"
    )


# ---- their content ----


@dataclass
class Part:
    """The file of one processor while it is read."""

    name: str
    size: int
    pieces: Pieces
    skip_bad: bool
    data: bytes = b""
    at: int = 0  # in @data
    record: int = 0  # read so far
    byte: int = 0
    read: float = 0.0  # part of the file

    def _cut(self, until_ns: int, most: int) -> tuple[bytes, int, bool]:
        cut = ffi.new("struct trace_cut *")
        here = ffi.from_buffer("u8[]", self.data) + self.at
        lib.trace_cut_records(here, len(self.data) - self.at, until_ns, most, cut)
        piece = self._taken(cut.bytes)
        self.record += cut.nr
        return piece, int(cut.next_ns), bool(cut.bad)

    def _taken(self, nr: int) -> bytes:
        piece = self.data[self.at : self.at + nr]
        self.at += nr
        self.byte += nr
        return piece

    def _bad(self, what: str) -> bytes:
        """A byte that the reader of the whole counts as a bad record."""
        if self.skip_bad:
            return b"\0"
        raise UsageError(f"{self.name}: record {self.record + 1} (byte {self.byte}): {what}")

    def take(self, until_ns: int, most: int) -> tuple[list[bytes], int | None]:
        """Records up to @until_ns, and the time of the next one, None at the end."""
        got: list[bytes] = []
        while True:
            piece, next_ns, bad = self._cut(until_ns, most)
            got += [piece] if piece else []
            if bad:
                magic = int.from_bytes(self.data[self.at : self.at + 4], "little")
                got.append(self._bad(f"bad magic 0x{magic:08x}, expected 0x65617407"))
                self.record += 1
                here = ffi.from_buffer("u8[]", self.data) + self.at
                self._taken(lib.trace_to_magic(here, len(self.data) - self.at))
            elif next_ns != NO_TIME:
                return got, next_ns
            else:
                more, self.read = next(self.pieces, (b"", 1.0))
                left = len(self.data) - self.at
                if more:
                    self.data, self.at = self.data[self.at :] + more, 0
                elif left:
                    got.append(self._bad(f"truncated, {left} bytes of it are there"))
                    self._taken(left)
                else:
                    return got, None


def merged(parts: Sequence[Part]) -> Pieces:
    """The records of all, so near the order of time that the reader can put them in order.

    Each with the part of all the bytes that was read by then.
    """
    total = sum(part.size for part in parts) or 1
    most = max(1, SLICE_RECORDS // len(parts))
    heap: list[tuple[int, int]] = []

    def taken(number: int, until_ns: int, most: int) -> Pieces:
        pieces, next_ns = parts[number].take(until_ns, most)
        read = min(1.0, sum(one.read * one.size for one in parts) / total)
        yield from ((piece, read) for piece in pieces)
        if next_ns is not None:
            heapq.heappush(heap, (next_ns, number))

    for number in range(len(parts)):
        yield from taken(number, 0, 0)
    while heap:
        _, number = heapq.heappop(heap)
        yield from taken(number, heap[0][0] + SLICE_NS if heap else NO_TIME - 1, most)
