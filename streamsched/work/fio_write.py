# SPDX-License-Identifier: GPL-2.0-only
"""Job files for a real fio, written anew from what was parsed and checked.

Nothing of a user's text reaches fio, which can run commands and write to any file: keys are those
of fio_options.py, values are numbers and words of its choices, jobs have names of ours. An option
that the simulator accepts and ignores is not written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from streamsched.base.errors import UsageError
from streamsched.work.fio_job import Blocks
from streamsched.work.fio_options import OPTIONS, Kind, Option
from streamsched.work.fio_values import Amount, Values
from streamsched.work.jobfile import JobFile, Section
from streamsched.work.process import RW_RANDOM, RW_READ, RW_WRITE, Process

# Options that are written otherwise than from their row, or have no place in a job on one disk.
OTHERWISE = frozenset(
    (
        *("bs", "bsrange", "bssplit", "rwmixwrite", "buffered", "exitall", "wait_for", "name"),
        *("filename", "directory", "filename_format", "ioengine", "iodepth", "direct"),
        "fadvise_hint",
        *("nrfiles", "openfiles", "file_service_type", "kb_base", "cgroup", "owner_weight"),
    )
)
WORDS = {RW_READ: "read", RW_WRITE: "write", RW_READ | RW_WRITE: "rw"}


@dataclasses.dataclass(frozen=True)
class Place:
    """What fio opens: the disk under test of the rig or, with @uri, an NBD server."""

    uri: str = ""

    def lines(self, engine: str, iodepth: int, direct: bool, fadvise_hint: int) -> list[str]:
        """These settings of a job, as far as they have a meaning here."""
        if self.uri:  # which has no page cache
            return ["ioengine=nbd", f"uri={self.uri}", f"iodepth={iodepth}"]
        return [
            "filename=${STREAMSCHED_DISK}",
            f"ioengine={engine}",
            f"iodepth={iodepth}",
            f"direct={int(direct)}",
            f"fadvise_hint={fadvise_hint}",
        ]


def _amount(amount: Amount) -> str:
    return f"{amount.value}{'%' if amount.percent else ''}"


def _rw(values: Values) -> str:
    text = values.words["rw"]
    if values.rw_skip:
        return f"{text}:{values.rw_skip}"
    return f"{text}:{values.rw_every}" if values.rw_every > 1 else text


def _sizes(blocks: Sequence[Blocks]) -> str:
    """The block sizes of reads and of writes, as a line."""
    if any(each.high for each in blocks):
        ends = [(each.low, each.high) if each.high else each.sizes[:1] * 2 for each in blocks]
        return "bsrange=" + ",".join(f"{low}-{high}" for low, high in ends)
    if all(len(each.sizes) == 1 for each in blocks):
        return "bs=" + ",".join(str(each.sizes[0]) for each in blocks)
    splits = [zip(each.sizes, each.weights, strict=True) for each in blocks]
    return "bssplit=" + ",".join(":".join(f"{s}/{pct}" for s, pct in split) for split in splits)


def _value(option: Option, values: Values) -> str | None:
    """What @option is written with; None if it is left out."""
    key = option.key
    match option.kind:
        case Kind.RW:
            return _rw(values)
        case Kind.AMOUNT:
            return _amount(values.amounts[key])
        case Kind.SECONDS | Kind.MICROSECONDS:
            return f"{values.numbers[key] // 1000}us"
        case Kind.BYTES | Kind.COUNT | Kind.BOOL:
            return str(values.numbers[key])
        case Kind.FLAG:
            return str(values.numbers[key]) if values.numbers[key] else None
        case Kind.RATES | Kind.COUNTS:
            return ",".join(map(str, values.pairs[key]))
        case Kind.SIZES:
            return ",".join("" if size is None else str(size) for size in values.ba)
        case Kind.PLACES:
            return str(values.places) if values.places else "random"
        case Kind.CHOICE if len(option.choices) > 1 and values.words[key] in option.choices:
            return values.words[key]
    return None


def _settings(section: Section) -> Iterator[str]:
    """What the section says, in the order of the table."""
    values = section.values
    mixed = "rwmixread" in values.lines or "rwmixwrite" in values.lines
    for option in OPTIONS:
        if option.key in OTHERWISE:
            continue
        if option.key not in values.lines and not (option.key == "rwmixread" and mixed):
            continue
        value = _value(option, values)
        if value is not None:
            yield f"{option.key}={value}"
    yield _sizes(section.blocks)


def job_text(file: JobFile, place: Place) -> str:
    """@file for a real fio at @place."""
    lines: list[str] = []
    numbers = {section.name: number for number, section in enumerate(file.sections)}
    for number, section in enumerate(file.sections):
        values = section.values
        if section.only_here:
            raise UsageError(
                f"{file.name}: {section.name}: not under a real fio, for {section.only_here}; "
                "write filename= of the disk, and offset="
            )
        depth = section.iodepth if place.uri else values.numbers["iodepth"]
        lines += [
            f"[job{number}]",
            *place.lines(
                values.words["ioengine"],
                depth,
                bool(values.numbers["direct"]),
                int(values.words["fadvise_hint"]),
            ),
            *_settings(section),
        ]
        if file.exits:
            lines.append("exitall")
        if values.words.get("wait_for"):
            lines.append(f"wait_for=job{numbers[values.words['wait_for']]}")
    return "\n".join([*lines, ""])


def alone_text(processes: Sequence[tuple[Process, int]], place: Place, seconds: int) -> str:
    """Each of @processes by itself, one after the other, for so many bytes and @seconds at most."""
    lines: list[str] = []
    for number, (process, io_bytes) in enumerate(processes):
        lines += [f"[job{number}]", *_alone(process, io_bytes, place)]
        lines += [f"runtime={seconds}s", "stonewall"]
    return "\n".join([*lines, ""])


def _blocks(process: Process) -> list[Blocks]:
    return [
        Blocks(
            process.split_bytes[way][: process.nr_splits[way]],
            process.split_pct[way][: process.nr_splits[way]],
            process.range_min[way],
            process.range_max[way],
        )
        for way in (0, 1)
    ]


def _alone(process: Process, io_bytes: int, place: Place) -> list[str]:
    rw = WORDS[process.rw & (RW_READ | RW_WRITE)]
    if process.rw & RW_RANDOM:
        rw = f"rand{rw}"
    if process.seq_skip:
        rw += f":{process.seq_skip}"
    elif process.random_every > 1:
        rw += f":{process.random_every}"
    engine = "libaio" if process.iodepth > 1 else "psync"
    lines = [
        *place.lines(engine, process.iodepth, process.direct, fadvise_hint=0),
        f"rw={rw}",
        f"rwmixread={process.read_pct}",
        f"offset={process.offset}",
        f"size={process.size}",
        f"io_size={io_bytes}",
        _sizes(_blocks(process)),
    ]
    if process.rw & RW_RANDOM:
        random = ",".join(str(100 - pct) for pct in process.in_order_pct)
        lines += [
            f"percentage_random={random}",
            f"rw_sequencer={'identical' if process.stays else 'sequential'}",
        ]
    if process.sizes_by_order:
        lines.append("bs_is_seq_rand=1")
    if process.distribution:
        lines.append(f"random_distribution={process.distribution}")
    if process.norandommap:
        lines.append("norandommap")
    if process.thinktime_ns:
        lines += [
            f"thinktime={process.thinktime_ns // 1000}us",
            f"thinktime_blocks={process.thinktime_blocks}",
        ]
    if process.fsync_blocks:
        lines.append(f"fsync={process.fsync_blocks}")
    return lines
