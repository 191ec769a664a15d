# SPDX-License-Identifier: GPL-2.0-only
"""A row for each request that the disks served, as CSV or Parquet: run and replay --requests.

Each simulation writes the simulator's rows (struct sim_log_row) to a file of its own; when all
are done they become one table, policy after policy, in the order of completion.
"""

from __future__ import annotations

import contextlib
import csv
import io
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from streamsched._core import ffi, lib
from streamsched.base.errors import StreamschedError, UsageError, install
from streamsched.base.files import Target, check_output, mode_of, output

SUFFIXES = (".csv", ".parquet")
# The columns, in their order, with what Parquet has them as.
COLUMNS = {
    "policy": "string",
    "process": "string",
    "number": "uint32",
    "disk": "uint32",
    "direction": "string",
    "sector": "uint64",
    "sectors": "uint32",
    "arrival_ns": "uint64",
    "dispatch_ns": "uint64",
    "start_ns": "uint64",
    "completion_ns": "uint64",
    "positioning_ns": "uint64",
    "transfer_ns": "uint64",
    "reason": "string",
    "party": "string",
}
DIRECTIONS = ("read", "write")
# By enum ss_why.
REASONS = tuple(ffi.string(lib.ss_why_name[why]).decode() for why in range(lib.SS_WHYS))
# Rows that are in memory at once.
LUMP = 1 << 16


def row_layout() -> tuple[struct.Struct, tuple[str, ...]]:
    """The simulator's row as struct reads it, and its fields' names."""
    fields = ffi.typeof("struct sim_log_row").fields
    letters = "".join(" BH I   Q"[ffi.sizeof(field.type)] for _, field in fields)
    layout = struct.Struct(f"={letters}")
    if layout.size != ffi.sizeof("struct sim_log_row"):
        raise StreamschedError("the simulator's log has gaps between its fields")
    return layout, tuple(name for name, _ in fields)


def party_name(party: int) -> str:
    """Of enum sim_party: rest, write-back, sender, or a stream's number, from 1; else nothing."""
    if party >= lib.SIM_PARTY_STREAM:
        return str(party - lib.SIM_PARTY_STREAM + 1)
    return ("", "rest", "write-back", "sender")[party]


def check_requests(to: Target | None, *read: str | Path | None) -> None:
    """Refuse what --requests could not write in the end, before the work begins."""
    if to is None:
        return
    path = to.path
    if path.suffix not in SUFFIXES:
        raise UsageError(f"--requests {path}: its name must end in .csv or .parquet")
    if path.suffix == ".parquet":
        _parquet()
    there = mode_of(path)
    if there and not stat.S_ISREG(there):
        raise UsageError(f"--requests {path}: is not a file; name one")
    check_output(to, *read, option="--requests")


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise UsageError(
            "--requests: .parquet needs pyarrow, which is not installed: "
            f"{install('parquet')}, or write .csv"
        ) from None
    return pyarrow


@contextlib.contextmanager
def appending(path: str) -> Iterator[Callable[[bytes], object]]:
    """What run_jobs() gives rows to, for one simulation."""
    try:
        with Path(path).open("wb") as file:
            yield file.write
    except OSError as error:
        raise StreamschedError(
            f"--requests: cannot keep the requests in {path}: {error.strerror}"
        ) from None


def _lumps(part: Path) -> Iterator[dict[str, list[Any]]]:
    """The columns of some rows at a time, but for the policy and the process's name."""
    layout, names = row_layout()
    with part.open("rb") as file:
        while data := file.read(LUMP * layout.size):
            columns = dict(zip(names, zip(*layout.iter_unpack(data), strict=True), strict=True))
            served = zip(
                columns["start_ns"], columns["complete_ns"], columns["position_ns"], strict=True
            )
            yield {
                "number": list(columns["job"]),
                "disk": list(columns["disk"]),
                "direction": [DIRECTIONS[one] for one in columns["direction"]],
                "sector": list(columns["sector"]),
                "sectors": list(columns["nr_sectors"]),
                "arrival_ns": list(columns["arrival_ns"]),
                "dispatch_ns": list(columns["dispatch_ns"]),
                "start_ns": list(columns["start_ns"]),
                "completion_ns": list(columns["complete_ns"]),
                "positioning_ns": list(columns["position_ns"]),
                "transfer_ns": [max(0, end - start - moved) for start, end, moved in served],
                "reason": [REASONS[one] for one in columns["why"]],
                "party": [party_name(one) for one in columns["party"]],
            }


def tables(
    parts: Sequence[tuple[str, Path]], names: Sequence[str]
) -> Iterator[dict[str, list[Any]]]:
    """Lumps of the whole table. The owner in a trace has no name but its number."""
    for policy, part in parts:
        for lump in _lumps(part):
            numbers = lump["number"]
            senders = [names[n] if n < len(names) else str(n) for n in numbers]
            yield {"policy": [policy] * len(numbers), "process": senders, **lump}


def _as_csv(file: IO[bytes], lumps: Iterator[dict[str, list[Any]]]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for lump in lumps:
        writer.writerows(zip(*(lump[name] for name in COLUMNS), strict=True))
    text.flush()
    text.detach()


def _as_parquet(file: IO[bytes], lumps: Iterator[dict[str, list[Any]]]) -> None:
    arrow = _parquet()
    schema = arrow.schema([(name, getattr(arrow, how)()) for name, how in COLUMNS.items()])
    with arrow.parquet.ParquetWriter(file, schema) as writer:
        for lump in lumps:
            writer.write_table(arrow.table({name: lump[name] for name in COLUMNS}, schema=schema))


def write_requests(to: Target, parts: Sequence[tuple[str, Path]], names: Sequence[str]) -> None:
    """Write @parts (a policy and its rows' file each) to @to; @names are the processes'."""
    write = _as_csv if to.path.suffix == ".csv" else _as_parquet
    with output(to) as file:
        write(file, tables(parts, names))
