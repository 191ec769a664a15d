# SPDX-License-Identifier: GPL-2.0-only
"""The folder of a study's results: Parquet files, and what is written as results come.

    part-000000.parquet ...  results, whole or not at all: any Parquet reader takes the folder
    _journal.jsonl          results that are in no part yet, a line each
    _alone.jsonl            alone rates, a line for each group of cells
    _study.json             what the study is: by this the folder is known as ours
    _lock                   held by the command that is at work

A result counts when its line is in the journal and on the disk. Lines become a part now and then,
and at the end. A command that is killed between the two finds both, and drops what it has twice.
Readers of Parquet skip names that begin with an underscore.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.base.files import (
    Target,
    is_file,
    is_folder,
    is_link,
    mode_of,
    open_input,
    output,
    read_whole,
    write_whole,
)
from streamsched.study.cell import FIGURES, LABELS, MARKS, PROCESS, Rates, Row
from streamsched.study.plan import Plan, disk_sha256
from streamsched.study.program import program

FORMAT = "streamsched-study"
MARK, LOCK, JOURNAL, ALONE = "_study.json", "_lock", "_journal.jsonl", "_alone.jsonl"
PART = re.compile(r"part-[0-9]{6,}\.parquet")
# What a command that was killed leaves of a part, or of what it marks the folder with.
HALF = re.compile(rf"\.({PART.pattern}|{re.escape(MARK)})\.[0-9a-f]{{16}}")
# A command that runs for long makes a part of so many results.
PART_ROWS = 4096
AGAIN = "remove it, and the same study simulates again what was in it"
ROOM = "finished results are kept; make room, then the same command goes on"


def _schema(metadata: dict[str, str] | None = None) -> Any:
    import pyarrow as pa

    def fields(columns: dict[str, str]) -> list[Any]:
        return [pa.field(name, pa.type_for_alias(kind)) for name, kind in columns.items()]

    processes = pa.list_(pa.struct(fields(PROCESS)))
    columns = [*fields(LABELS | FIGURES), pa.field("processes", processes), *fields(MARKS)]
    return pa.schema(columns, metadata=metadata)


class _Lines:
    """A file of JSON lines to add to; a line that is not whole is none.

    Raises UsageError where a whole line is not an object with @keys, which a study never writes.
    """

    def __init__(self, path: Path, keys: Iterable[str]) -> None:
        self.path = path
        data = b""
        if mode_of(path):
            try:
                with open_input(path) as file:
                    data = file.read()
            except OSError as error:
                raise UsageError(f"{path}: cannot read it: {error.strerror}") from None
        whole = data[: data.rfind(b"\n") + 1]
        self.read: list[dict[str, Any]] = []
        for number, line in enumerate(whole.splitlines(), 1):
            row = None
            with contextlib.suppress(ValueError, RecursionError):
                row = json.loads(line)
            if not isinstance(row, dict) or not row.keys() >= set(keys):
                raise UsageError(f"{path}: line {number}: no study has written this; {AGAIN}")
            self.read.append(row)
        self._size = len(whole)
        self._file = -1

    def open(self) -> None:
        """To be added to."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(self.path, flags, 0o666)
        self.cut(self._size)

    def add(self, rows: Iterable[object]) -> None:
        """Add lines, all or none; they are on the disk then."""
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._file, left) :]
            os.fdatasync(self._file)
        except OSError as error:
            self.cut(self._size)
            raise StreamschedError(
                f"{self.path}: cannot write it: {error.strerror}; {ROOM}"
            ) from None
        self._size += len(data)

    def cut(self, size: int = 0) -> None:
        """Only so many bytes stay."""
        os.ftruncate(self._file, size)
        os.lseek(self._file, size, os.SEEK_SET)
        self._size = size

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)


def parts(folder: Path) -> list[Path]:
    """The Parquet files, in order."""
    return sorted(path for path in folder.glob("part-*") if PART.fullmatch(path.name))


def _mark_of(folder: Path) -> dict[str, Any] | None:
    """What the folder says it is; None: nothing of ours."""
    if not mode_of(folder / MARK):
        return None
    with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError, UsageError):
        mark = json.loads(read_whole(folder / MARK))
        if isinstance(mark, dict) and mark.get("format") == FORMAT and mark["policies"][0]:
            return mark
    return None


def is_results(folder: Path) -> bool:
    """Whether @folder is known as ours."""
    return _mark_of(folder) is not None


def read_mark(folder: Path) -> dict[str, Any]:
    """What the study of these results is."""
    mark = _mark_of(folder)
    if mark is None:
        raise UsageError(f"{folder}: is not results of a study")
    return mark


def finished(folder: Path) -> set[str]:
    """The cells that are in @folder, if anything is there."""
    return {row["cell"] for row in read_results(folder)} if is_results(folder) else set()


def _of_a_beginning(path: Path) -> bool:
    """Whether @path may be there before the mark is, of a command that came no further."""
    if HALF.fullmatch(path.name):
        return is_file(path)
    return path.name in (LOCK, JOURNAL, ALONE) and is_file(path) and not path.stat().st_size


def check_folder(folder: Path) -> None:
    """Refuse a place for results that is not ours."""
    if not mode_of(folder):
        if not is_folder(folder.parent):
            raise UsageError(f"--to {folder}: there is no directory {folder.parent}")
        if is_link(folder):
            raise UsageError(f"--to {folder}: is a link that leads nowhere; name another place")
        return
    if not is_folder(folder):
        raise UsageError(f"--to {folder}: is there, and is no folder; name another place")
    if folder.stat().st_uid != os.geteuid():
        raise UsageError(f"--to {folder}: belongs to somebody else; name another place")
    if not is_results(folder) and not all(map(_of_a_beginning, folder.iterdir())):
        raise UsageError(
            f"--to {folder}: is there, and is not results of a study; "
            "remove it or name another place"
        )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise StreamschedError(
            f"--to {folder}: another study is at work there; wait for it or name another place"
        ) from None
    try:
        yield
    finally:
        os.close(handle)


def read_results(folder: Path) -> list[Row]:
    """All results, each once, without processes."""
    read_mark(folder)
    # In this order: the command that is at work may make a part of the journal meanwhile.
    columns = [*LABELS, *FIGURES, "cell"]
    journal = _journal(folder, [*LABELS, "cell"]).read
    found = {row["cell"]: {name: row.get(name) for name in columns} for row in journal}
    for part in parts(folder):
        found |= {row["cell"]: row for row in _table(part, columns).to_pylist()}
    return list(found.values())


def _journal(folder: Path, columns: Iterable[str] = ("cell",)) -> _Lines:
    """What is in no part yet: rows with these columns, of the types of a part's."""
    import pyarrow as pa

    lines = _Lines(folder / JOURNAL, columns)
    try:
        pa.Table.from_pylist(lines.read, schema=_schema())
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise UsageError(f"{lines.path}: no study has written this; {AGAIN}") from None
    return lines


def _table(part: Path, columns: Sequence[str]) -> Any:
    """These columns of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(part, columns=list(columns), partitioning=None)
        return table.select(columns).cast(pa.schema([_schema().field(name) for name in columns]))
    except (pa.ArrowException, KeyError, ValueError, OSError):
        raise UsageError(f"{part}: no study has written this; {AGAIN}") from None


class Store:
    """Results of @plan, while they come."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.done: set[str] = set()
        self.alone: dict[str, Rates] = {}
        self._plan = plan
        self._journal = _journal(folder)
        self._alone = _Lines(folder / ALONE, ("group", "rates"))
        self._rows: list[Row] = []

    def load(self) -> None:
        """What was finished before, to be added to; UsageError if it is of another study."""
        for part in parts(self.folder):
            self.done.update(_table(part, ["cell"]).column("cell").to_pylist())
        self._rows = [row for row in self._journal.read if row["cell"] not in self.done]
        self.done.update(row["cell"] for row in self._rows)
        for line in self._alone.read:
            try:
                rates = {int(n): float(rate) for n, rate in line["rates"].items()}
                self.alone[str(line["group"])] = rates
            except (AttributeError, TypeError, ValueError, OverflowError):
                raise UsageError(
                    f"{self._alone.path}: no study has written this; {AGAIN}"
                ) from None
        here = sum(self._plan.id(cell) in self.done for cell in self._plan.cells())
        if here < len(self.done):
            mark = _mark_of(self.folder) or {}
            former = mark.get("streamsched", program())
            why = "the study was changed"
            if former != program():
                why = f"they are of streamsched {former}, and this is {program()}"
            raise UsageError(
                f"--to {self.folder}: {len(self.done) - here} of its {len(self.done)} results are "
                f"not of this study: {why}; name another place, or add to the study only"
            )
        for path in list(self.folder.iterdir()):
            if HALF.fullmatch(path.name):
                path.unlink()
        self._mark()
        self._journal.open()
        self._alone.open()

    def _mark(self) -> None:
        """Say whose folder it is: before there is anything else in it."""
        content = {
            "format": FORMAT,
            "streamsched": program(),
            "policies": self._plan.policies,
            "study": self._plan.text,
        }
        try:
            write_whole(
                Target(self.folder / MARK, replace=True), json.dumps(content, indent=2) + "\n"
            )
        except UsageError as error:
            raise StreamschedError(f"{error}; {ROOM}") from None

    def add_alone(self, found: dict[str, Rates]) -> None:
        """Alone rates of groups."""
        self._alone.add({"group": group, "rates": rates} for group, rates in found.items())
        self.alone |= found

    def add(self, rows: list[Row]) -> None:
        """Finished results."""
        fresh = [row for row in rows if row["cell"] not in self.done]
        if not fresh:
            return
        self._journal.add(fresh)
        self.done.update(row["cell"] for row in fresh)
        self._rows += fresh
        if len(self._rows) >= PART_ROWS:
            self.write_part()

    def _metadata(self) -> dict[str, str]:
        plan = self._plan
        works = {
            work.name: {disk.name: work.sha256(disk) for disk in plan.disks} for work in plan.works
        }
        return {
            "streamsched_version": program(),
            "study": plan.text,
            "study_sha256": hashlib.sha256(plan.text.encode()).hexdigest(),
            "work_sha256": json.dumps(works),
            "disk_sha256": json.dumps({disk.name: disk_sha256(disk) for disk in plan.disks}),
        }

    def write_part(self) -> None:
        """Make a part of what the journal has."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._rows:
            return
        sink = pa.BufferOutputStream()
        table = pa.Table.from_pylist(self._rows, schema=_schema(self._metadata()))
        pq.write_table(table, sink, compression="zstd")
        there = parts(self.folder)
        number = int(there[-1].stem.removeprefix("part-")) + 1 if there else 0
        try:
            with output(Target(self.folder / f"part-{number:06}.parquet")) as file:
                file.write(sink.getvalue())
        except UsageError as error:
            raise StreamschedError(f"{error}; {ROOM}") from None
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(handle)
        os.close(handle)
        self._journal.cut()
        self._rows = []

    def close(self) -> None:
        self._journal.close()
        self._alone.close()


@contextlib.contextmanager
def opened(folder: Path, plan: Plan) -> Iterator[Store]:
    """The results in @folder, for this command alone; it is made if it is not there."""
    check_folder(folder)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"--to {folder}: cannot make it: {error.strerror}") from None
    with _locked(folder), contextlib.closing(Store(folder, plan)) as store:
        store.load()
        yield store
