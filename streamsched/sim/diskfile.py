# SPDX-License-Identifier: GPL-2.0-only
"""Disk descriptions: the TOML files of disks/, read into the disk model's integers.

A file gives every physical figure; nothing is filled in silently. Keys that the
format had not from the start may be left out: OPTIONAL says what holds then. Each key
carries its unit in its name. Numbers are converted exactly: TOML's decimals
are read as Decimal, and a value that is not a whole number of the model's
unit is an error rather than rounded (the one exception is rotation_rpm).
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal, DecimalException
from pathlib import Path
from typing import Any

from streamsched.base.errors import UsageError
from streamsched.base.files import read_whole
from streamsched.base.shipped import shipped

KINDS = ("mechanical", "flat")
QUEUE_ORDERS = ("fifo", "sptf")
MAX_ZONES = 64
MAX_SEEK_POINTS = 256
MAX_DEPTH = 254
ACTUATORS = (1, 2)
# Of the medium and the interface. In series, a read's watermark is the whole read.
INTERFACE_ORDERS = ("overlapped", "series")
WATERMARKS_OF = ("read", "segment")
WHOLE_PERMILLE = 1000
WRITE_ORDERS = ("sweep", "sptf")
AHEAD_UNTIL = ("limit", "segment", "track", "cylinder", "tracks")
PHYSICAL_BYTES = (512, 4096)
# Of a time in a seek table, that a longer distance may take less.
SEEK_FALLS = Decimal("0.1")
SECTOR_BYTES = 512
REQUEST_SECTORS = 8  # the least that a file system asks for
NS_PER_MINUTE = 60_000_000_000


@dataclasses.dataclass(frozen=True)
class Published:
    """A figure that somebody published about the real disk, for docs/results/validation.md."""

    figure: str
    value: str
    source: str
    fitted: bool  # parameters were chosen so that it comes out


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk: its names, and struct hdd_params field by field (disk/hdd_params.h)."""

    name: str
    model: str
    description: str
    published: tuple[Published, ...]

    capacity_sectors: int
    kind: int
    queue_depth: int
    interface_bytes_per_s: int
    command_overhead_ns: int
    flush_ns: int
    read_watermark_permille: int
    watermark_of: int
    write_series: int
    interface_unit_sectors: int
    overhead_ns: tuple[int, ...]
    queue_order: int
    queue_age_permille: int
    queue_age_limit_ns: int
    actuators: int
    rotation_ns: int
    surfaces: int
    nr_zones: int
    zone_cylinders: tuple[int, ...]
    zone_sectors_per_track: tuple[int, ...]
    track_skew_ns: int
    cylinder_skew_ns: int
    head_switch_ns: int
    write_settle_ns: int
    write_saves_ns: int
    physical_sectors: int
    nr_seek_points: int
    seek_cylinders: tuple[int, ...]
    seek_ns: tuple[int, ...]
    segments: int
    segment_sectors: int
    readahead_sectors: int
    segment_keeps_read: int
    ahead_until: int
    read_behind: int
    write_empties: int
    write_cache_sectors: int
    write_cache_extents: int
    write_cache_durable: int
    write_order: int
    write_share_permille: int
    write_idle_ns: int
    media_sectors: int
    media_extents: int
    band_sectors: int
    media_idle_ns: int
    flat_channels: int
    flat_read_ns: int
    flat_write_ns: int
    flat_read_bytes_per_s: int
    flat_write_bytes_per_s: int

    def params(self) -> dict[str, int | list[int]]:
        """Every field of struct hdd_params, as cffi takes it to make one."""
        fields: dict[str, int | list[int]] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int):
                fields[field.name] = value
            elif isinstance(value, tuple) and field.name != "published":
                fields[field.name] = list(value)
        return fields

    @staticmethod
    def load(name_or_path: str | os.PathLike[str]) -> Disk:
        """A shipped disk by its name, or a description by its path; UsageError if it is wrong."""
        return load_disk(os.fspath(name_or_path))

    @staticmethod
    def names() -> list[str]:
        """Those that are shipped."""
        return list_disks()

    def description_text(self) -> str:
        """The fields of struct hdd_params as the nbdkit plugin reads them: NAME VALUE..."""
        lines = []
        for name, value in self.params().items():
            values = value if isinstance(value, list) else [value]
            lines.append(" ".join([name, *map(str, values)]) + "\n")
        return "".join(lines)


@dataclasses.dataclass(frozen=True)
class Number:
    """A key that holds a number: the model's field, how many of its units, its range."""

    field: str
    scale: int
    least: int  # in the file's unit, like most
    most: int

    def range(self) -> str:
        """The range as an error message gives it."""
        return f"a number from {self.least} to {self.most}"


MB_S = 1_000_000
US = 1_000
MS = 1_000_000
KIB = 1024 // SECTOR_BYTES

# What a file may say, by table and key. Ranges are those of hdd_init().
COMMON: dict[str, dict[str, Number]] = {
    "": {"capacity_sectors": Number("capacity_sectors", 1, 1, 1 << 48)},
    "interface": {
        "rate_mb_s": Number("interface_bytes_per_s", MB_S, 1, 100_000),
        "command_overhead_us": Number("command_overhead_ns", US, 0, 99_999),
        "queue_depth": Number("queue_depth", 1, 1, MAX_DEPTH),
    },
}
MECHANICAL: dict[str, dict[str, Number]] = {
    "interface": {
        "queue_age_permille": Number("queue_age_permille", 1, 0, 1000),
        "queue_age_limit_ms": Number("queue_age_limit_ns", MS, 0, 60_000),
    },
    "geometry": {
        "surfaces": Number("surfaces", 1, 1, 64),
        "track_skew_us": Number("track_skew_ns", US, 0, 50_000),
        "cylinder_skew_us": Number("cylinder_skew_ns", US, 0, 50_000),
    },
    "seek": {
        "head_switch_us": Number("head_switch_ns", US, 0, 50_000),
        "write_settle_us": Number("write_settle_ns", US, -50_000, 50_000),
    },
    "cache": {
        "segments": Number("segments", 1, 1, 64),
        "segment_kib": Number("segment_sectors", KIB, 4, 1 << 20),
        "readahead_kib": Number("readahead_sectors", KIB, 0, 1 << 20),
        "write_kib": Number("write_cache_sectors", KIB, 0, 1 << 20),
        "write_extents": Number("write_cache_extents", 1, 1, 32_768),
        "write_idle_ms": Number("write_idle_ns", MS, 0, 9_999),
        "flush_ms": Number("flush_ns", MS, 0, 9_999),
    },
}
# A table that may be left out as a whole: drive-managed shingled recording.
MEDIA = "media_cache"
MEDIA_CACHE: dict[str, dict[str, Number]] = {
    MEDIA: {
        "log_mib": Number("media_sectors", 1024 * KIB, 4, (1 << 21) - 1),
        "map_extents": Number("media_extents", 1, 16, 262_144),
        "band_kib": Number("band_sectors", KIB, 2048, 1 << 23),
        "idle_ms": Number("media_idle_ns", MS, 0, 9_999),
    },
}
FLAT: dict[str, dict[str, Number]] = {
    "flat": {
        "channels": Number("flat_channels", 1, 1, 32),
        "read_us": Number("flat_read_ns", US, 0, 999_999),
        "write_us": Number("flat_write_ns", US, 0, 999_999),
        "read_mb_s": Number("flat_read_bytes_per_s", MB_S, 1, 100_000),
        "write_mb_s": Number("flat_write_bytes_per_s", MB_S, 1, 100_000),
        "flush_ms": Number("flush_ns", MS, 0, 9_999),
    },
}
# Overheads by what a command needs, in the order of enum hdd_class; each is a number, or a pair:
# after a read, after a write.
OVERHEADS = ("read_miss_us", "read_hit_us", "write_miss_us", "write_hit_us")
# Keys that may be left out, and what holds then.
OPTIONAL: dict[str, dict[str, Any]] = {
    "interface": {
        "order": INTERFACE_ORDERS[0],
        "read_watermark": 0,
        "watermark_of": WATERMARKS_OF[0],
        "unit_sectors": 8,
    },
    "overhead": dict.fromkeys(OVERHEADS),  # interface.command_overhead_us
    "geometry": {"physical_sector_bytes": PHYSICAL_BYTES[0], "actuators": ACTUATORS[0]},
    "cache": {
        "keeps_read": True,
        "ahead_until": AHEAD_UNTIL[0],
        "read_behind": False,
        "write_empties": False,
        "durable": False,
        "write_order": WRITE_ORDERS[0],
        "write_share_percent": 0,
    },
}
# Keys that are not one plain number, by table.
TEXTS = ("name", "model", "description")
SPECIAL_COMMON: dict[str, tuple[str, ...]] = {"": (*TEXTS, "kind", "published")}
SPECIAL_MECHANICAL: dict[str, tuple[str, ...]] = {
    "interface": ("queue_order", "order", "read_watermark", "watermark_of", "unit_sectors"),
    "overhead": OVERHEADS,
    "geometry": ("rotation_rpm", "zones", "physical_sector_bytes", "actuators"),
    "seek": ("curve",),
    "cache": (
        "keeps_read",
        "ahead_until",
        "read_behind",
        "write_empties",
        "durable",
        "write_order",
        "write_share_percent",
    ),
}
FIGURES = (
    "random_read_ms",
    "read_iops",
    "read_iops_16",
    "read_iops_deep",
    "write_iops_16",
    "outer_mb_s",
    "middle_mb_s",
    "inner_mb_s",
    "mean_mb_s",
    "mean_write_mb_s",
    "outer_write_mb_s",
    "track_to_track_ms",
    "mean_seek_ms",
    "full_stroke_ms",
    "flush_64_ms",
)


class _File:
    """One file while it is being read: knows how to name what is wrong with it."""

    def __init__(self, name: str, text: str, data: Mapping[str, Any]) -> None:
        self.name = name
        self.source = text
        self.data = data

    def error(self, key: str, what: str) -> UsageError:
        line = self.line(key)
        where = f" (line {line})" if line else ""
        return UsageError(f"{self.name}: {key}: {what}{where}")

    def line(self, path: str) -> int:
        """The line of a key, of its table where the key is missing; 0: neither is there."""
        table, _, key = re.sub(r"\[\d+\]", "", path).strip("[]").rpartition(".")
        number = re.match(r"published\[(\d+)\]", path)
        header, published, found = "", -1, 0
        for at, line in enumerate(self.source.splitlines(), 1):
            if match := re.match(r"\s*\[+\s*([\w-]+)\s*\]+", line):
                header = match[1]
                published += header == "published"
            if header not in (table, key) or (number and published != int(number[1])):
                continue
            if match:
                found = at
            elif header == table and re.match(rf"\s*{re.escape(key)}\s*=", line):
                return at
        return found

    def table(self, table: str) -> Mapping[str, Any]:
        if not table:
            return self.data
        found = self.data.get(table)
        if found is None:
            raise self.error(f"[{table}]", "this table is missing")
        if not isinstance(found, dict):
            raise self.error(table, f"must be a table, written [{table}] on a line of its own")
        return found

    def value(self, table: str, key: str, wanted: str) -> Any:
        values = self.table(table)
        if key not in values:
            raise self.error(_path(table, key), f"is missing; it must be {wanted}")
        return values[key]

    def text(self, key: str) -> str:
        wanted = "a line of text"
        value = self.value("", key, wanted)
        if not isinstance(value, str) or not value.strip() or "\n" in value:
            raise self.error(key, f"is {value!r} but must be {wanted}")
        return value

    def has(self, table: str, key: str) -> bool:
        return table in self.data and key in self.table(table)

    def optional(self, table: str, key: str) -> Any:
        """The value of a key that may be left out, or what holds then."""
        default = OPTIONAL[table][key]
        return self.table(table)[key] if self.has(table, key) else default

    def switch(self, table: str, key: str) -> int:
        value = self.optional(table, key)
        if not isinstance(value, bool):
            raise self.error(_path(table, key), f"is {_shown(value)} but must be true or false")
        return int(value)

    def choice(self, table: str, key: str, choices: tuple[str, ...]) -> int:
        wanted = " or ".join(f'"{choice}"' for choice in choices)
        if key in OPTIONAL.get(table, {}):
            value = self.optional(table, key)
        else:
            value = self.value(table, key, wanted)
        if value not in choices:
            raise self.error(_path(table, key), f"is {_shown(value)} but must be {wanted}")
        return choices.index(value)

    def number(self, table: str, key: str, number: Number) -> int:
        value = self.value(table, key, number.range())
        return self.whole(_path(table, key), value, number)

    def whole(self, key: str, value: Any, number: Number) -> int:
        """A value of the file in the model's unit, exactly."""
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise self.error(key, f"is {_shown(value)} but must be {number.range()}")
        try:
            in_range = number.least <= value <= number.most
        except DecimalException:  # nan
            in_range = False
        if not in_range:
            raise self.error(key, f"is {value} but must be {number.range()}")
        scaled = value * number.scale
        if scaled != int(scaled):
            step = Decimal(1) / number.scale
            what = "whole" if number.scale == 1 else f"a multiple of {step.normalize():f}"
            raise self.error(key, f"is {value} but must be {what}")
        return int(scaled)

    def pairs(
        self, table: str, key: str, most: int, first: Number, second: Number
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A list of pairs of numbers, as two columns."""
        path = _path(table, key)
        wanted = f"a list of 1 to {most} pairs [{first.field}, {second.field}]"
        value = self.value(table, key, wanted)
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise self.error(path, f"must be {wanted}")
        columns: tuple[list[int], list[int]] = ([], [])
        for i, pair in enumerate(value):
            where = f"{path}[{i}]"
            if not isinstance(pair, list) or len(pair) != 2:
                shown = _shown(pair)
                raise self.error(where, f"is {shown} but must be a pair of numbers [a, b]")
            columns[0].append(self.whole(f"{where}[0]", pair[0], first))
            columns[1].append(self.whole(f"{where}[1]", pair[1], second))
        return tuple(columns[0]), tuple(columns[1])


def _path(table: str, key: str) -> str:
    return f"{table}.{key}" if table else key


def _shown(value: Any) -> str:
    """A value of the file as its writer wrote it, nearly."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    if isinstance(value, dict):
        return "a table"
    return str(value)


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, 1, 0.5)
    return f", did you mean {close[0]!r}?" if close else ""


def _check_keys(
    file: _File, numbers: list[dict[str, dict[str, Number]]], special: list[dict[str, Any]]
) -> None:
    """Every table and key of the file must be one we know."""
    known: dict[str, list[str]] = {}
    for group in [*numbers, *special]:
        for table, keys in group.items():
            known.setdefault(table, []).extend(keys)
    tables = [table for table in known if table]
    for key, value in file.data.items():
        if key in tables:
            for inner in file.table(key):
                if inner not in known[key]:
                    allowed = ", ".join(sorted(known[key]))
                    hint = _nearest(inner, known[key]) or f"; this table has {allowed}"
                    raise file.error(_path(key, inner), f"no such key{hint}")
        elif key not in known[""]:
            what = "table for this kind of disk" if isinstance(value, dict) else "key"
            raise file.error(key, f"no such {what}{_nearest(key, [*known[''], *tables])}")


def _published(file: _File) -> Iterator[Published]:
    rows = file.data.get("published", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise file.error("published", "must be tables, each written [[published]]")
    for i, row in enumerate(rows):
        where = f"published[{i}]"
        if set(row) != {"figure", "value", "source", "fitted"}:
            raise file.error(
                where, "must have the keys figure, value, source and fitted, and no others"
            )
        if row["figure"] not in FIGURES:
            names = ", ".join(FIGURES)
            raise file.error(
                f"{where}.figure", f"is {_shown(row['figure'])} but must be one of {names}"
            )
        if not isinstance(row["source"], str) or not row["source"]:
            raise file.error(f"{where}.source", "must be a line of text")
        if not isinstance(row["fitted"], bool):
            raise file.error(f"{where}.fitted", "must be true or false")
        yield Published(row["figure"], str(row["value"]), row["source"], row["fitted"])


def _check_geometry(file: _File, fields: Mapping[str, Any]) -> None:
    """What hdd_init() would refuse, said with the file's own keys."""
    rotation_ns = fields["rotation_ns"]
    for key in ("track_skew", "cylinder_skew"):
        if fields[f"{key}_ns"] >= rotation_ns:
            most = Decimal(rotation_ns) / US
            raise file.error(
                f"geometry.{key}_us", f"must be less than one revolution, which is {most} us"
            )
    sectors = before = 0
    for cylinders, per_track in zip(
        fields["zone_cylinders"], fields["zone_sectors_per_track"], strict=True
    ):
        before = sectors
        sectors += cylinders * fields["surfaces"] * per_track
    capacity = fields["capacity_sectors"] // fields["actuators"] + fields.get("media_sectors", 0)
    what = "the capacity"
    if fields["actuators"] > 1:
        what = "half of the capacity"
    elif fields.get("media_sectors"):
        what = "the capacity and the media cache"
    if sectors < capacity:
        raise file.error(
            "geometry.zones", f"hold {sectors} sectors but must hold {what}, {capacity} sectors"
        )
    if before >= capacity:
        raise file.error(
            "geometry.zones",
            f"the last zone begins at sector {before} but must begin within "
            f"{what}, {capacity} sectors",
        )
    if fields["head_switch_ns"] > fields["track_skew_ns"]:
        raise file.error(
            "seek.head_switch_us",
            "must not be longer than geometry.track_skew_us, "
            "or reading on would miss the next track's start",
        )
    _check_seeks(file, fields)


def _check_seeks(file: _File, fields: Mapping[str, Any]) -> None:
    distances, times = fields["seek_cylinders"], fields["seek_ns"]
    if distances[0] != 1:
        raise file.error("seek.curve[0]", f"is for {distances[0]} cylinders but must be for 1")
    for i in range(1, len(distances)):
        if distances[i] <= distances[i - 1]:
            raise file.error(f"seek.curve[{i}]", "must be for more cylinders than the one before")
        if times[i] < times[i - 1] * (1 - SEEK_FALLS):
            raise file.error(
                f"seek.curve[{i}]",
                "must not take less than nine tenths of the time of the one before: "
                "that is more than recorded tables are off",
            )
    stroke = sum(fields["zone_cylinders"]) - 1
    if distances[-1] < stroke:
        raise file.error(
            f"seek.curve[{len(distances) - 1}]",
            f"is for {distances[-1]} cylinders but the last one must reach "
            f"the full stroke of {stroke}",
        )
    if times[0] > fields["cylinder_skew_ns"]:
        raise file.error(
            "seek.curve[0]",
            "must not take longer than geometry.cylinder_skew_us, "
            "or reading on would miss the next cylinder's start",
        )


def _overheads(file: _File, otherwise_ns: int) -> tuple[int, ...]:
    """By enum hdd_class for commands after a read, then for those after a write."""
    number = Number("us", US, 0, 99_999)
    after: tuple[list[int], list[int]] = ([], [])
    for key in OVERHEADS:
        value = file.optional("overhead", key)
        path = _path("overhead", key)
        pair = value if isinstance(value, list) else [value, value]
        if len(pair) != 2:
            raise file.error(path, "must be a number, or a pair [after a read, after a write]")
        for column, one in zip(after, pair, strict=True):
            column.append(otherwise_ns if value is None else file.whole(path, one, number))
    return (*after[0], *after[1])


def _arms(file: _File, fields: dict[str, Any]) -> None:
    """Actuators, and the media cache, which a disk of two has not."""
    actuators = file.optional("geometry", "actuators")
    if actuators not in ACTUATORS or isinstance(actuators, bool):
        raise file.error("geometry.actuators", f"is {_shown(actuators)} but must be 1 or 2")
    fields["actuators"] = int(actuators)
    if actuators == 2 and fields["capacity_sectors"] % 16:
        raise file.error(
            "capacity_sectors",
            f"is {fields['capacity_sectors']} but must be a multiple of 16 for two actuators",
        )
    if MEDIA not in file.data:
        return
    if actuators == 2:
        raise file.error(f"[{MEDIA}]", "a disk with a media cache must have one actuator")
    for key, number in MEDIA_CACHE[MEDIA].items():
        fields[number.field] = file.number(MEDIA, key, number)
    if fields["queue_depth"] >= MAX_DEPTH:
        raise file.error(
            "interface.queue_depth", f"must be at most {MAX_DEPTH - 1} with a media cache"
        )


def _interface(file: _File, fields: dict[str, Any]) -> None:
    """When it carries what the medium has: one order, or a list of that of reads and of writes."""
    order = file.optional("interface", "order")
    orders = order if isinstance(order, list) and len(order) == 2 else [order, order]
    if any(one not in INTERFACE_ORDERS for one in orders):
        wanted = " or ".join(f'"{one}"' for one in INTERFACE_ORDERS)
        raise file.error(
            "interface.order", f"is {_shown(order)} but must be {wanted}, or a list: reads, writes"
        )
    reads, writes = map(INTERFACE_ORDERS.index, orders)
    if reads and file.has("interface", "read_watermark"):
        raise file.error("interface.read_watermark", "is only for reads that are overlapped")
    mark = Number("read_watermark_permille", WHOLE_PERMILLE, 0, 1)
    fields["read_watermark_permille"] = (
        WHOLE_PERMILLE
        if reads
        else file.whole(
            "interface.read_watermark", file.optional("interface", "read_watermark"), mark
        )
    )
    fields["watermark_of"] = file.choice("interface", "watermark_of", WATERMARKS_OF)
    if reads and fields["watermark_of"]:
        raise file.error("interface.watermark_of", "is only for reads that are overlapped")
    fields["write_series"] = writes


def _features(file: _File, fields: dict[str, Any]) -> None:
    """What files may leave out."""
    _interface(file, fields)
    fields["overhead_ns"] = _overheads(file, fields["command_overhead_ns"])
    physical = file.optional("geometry", "physical_sector_bytes")
    if physical not in PHYSICAL_BYTES or isinstance(physical, bool):
        raise file.error(
            "geometry.physical_sector_bytes", f"is {_shown(physical)} but must be 512 or 4096"
        )
    fields["physical_sectors"] = int(physical) // SECTOR_BYTES
    _arms(file, fields)
    unit = Number("interface_unit_sectors", 1, 1, 65_535)
    fields["interface_unit_sectors"] = file.whole(
        "interface.unit_sectors", file.optional("interface", "unit_sectors"), unit
    )
    fields["segment_keeps_read"] = file.switch("cache", "keeps_read")
    fields["ahead_until"] = file.choice("cache", "ahead_until", AHEAD_UNTIL)
    fields["read_behind"] = file.switch("cache", "read_behind")
    fields["write_empties"] = file.switch("cache", "write_empties")
    fields["write_cache_durable"] = file.switch("cache", "durable")
    fields["write_order"] = file.choice("cache", "write_order", WRITE_ORDERS)
    share = Number("write_share_permille", 10, 0, 90)
    fields["write_share_permille"] = file.whole(
        "cache.write_share_percent", file.optional("cache", "write_share_percent"), share
    )
    settle = fields["write_settle_ns"]
    fields["write_settle_ns"], fields["write_saves_ns"] = max(settle, 0), max(-settle, 0)


def _mechanics(file: _File, fields: dict[str, Any]) -> None:
    _features(file, fields)
    fields["queue_order"] = file.choice("interface", "queue_order", QUEUE_ORDERS)
    rpm = Number("rotation_rpm", 1, 1200, 60_000)
    fields["rotation_ns"] = NS_PER_MINUTE // file.number("geometry", "rotation_rpm", rpm)
    fields["zone_cylinders"], fields["zone_sectors_per_track"] = file.pairs(
        "geometry",
        "zones",
        MAX_ZONES,
        Number("cylinders", 1, 1, 1_000_000),
        Number("sectors per track", 1, 8, 65_535),
    )
    fields["nr_zones"] = len(fields["zone_cylinders"])
    fields["seek_cylinders"], fields["seek_ns"] = file.pairs(
        "seek",
        "curve",
        MAX_SEEK_POINTS,
        Number("cylinders", 1, 1, 64_000_000),
        Number("ms", MS, 0, 199),
    )
    fields["nr_seek_points"] = len(fields["seek_cylinders"])
    _check_geometry(file, fields)
    if 0 < fields["write_cache_sectors"] < REQUEST_SECTORS:
        raise file.error("cache.write_kib", "must be 0, for none, or at least a request's 4")
    if fields["readahead_sectors"] > fields["segment_sectors"]:
        raise file.error("cache.readahead_kib", "must not be larger than cache.segment_kib")


def parse_disk(text: str, name: str) -> Disk:
    """The disk that a file's text describes; errors call the file @name."""
    try:
        data = tomllib.loads(text, parse_float=Decimal)
        repr(data)  # an error where a number is too long to be shown
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: not a TOML file: {error}") from None
    except DecimalException:
        raise UsageError(f"{name}: not a TOML file: an exponent is out of range") from None
    except ValueError:  # int() reads none of more than 4300, nor writes it where it was in hex
        raise UsageError(f"{name}: not a TOML file: a number has thousands of digits") from None
    except RecursionError:
        raise UsageError(f"{name}: not a TOML file: too many lists within lists") from None
    file = _File(name, text, data)
    kind = file.choice("", "kind", KINDS)
    mechanical = KINDS[kind] == "mechanical"
    numbers = [COMMON, MECHANICAL if mechanical else FLAT]
    tables = [*numbers, MEDIA_CACHE] if mechanical else numbers
    _check_keys(file, tables, [SPECIAL_COMMON, SPECIAL_MECHANICAL if mechanical else {}])
    fields: dict[str, Any] = {key: file.text(key) for key in TEXTS}
    fields["kind"] = kind
    fields["published"] = tuple(_published(file))
    for group in numbers:
        for table, keys in group.items():
            for key, number in keys.items():
                fields[number.field] = file.number(table, key, number)
    if mechanical:
        _mechanics(file, fields)
    for field in dataclasses.fields(Disk):
        # Fields of the other kind: the model does not look at them.
        if field.name not in fields:
            fields[field.name] = () if "tuple" in str(field.type) else 0
    return Disk(**fields)


# What Linux calls disks of the machine.
OF_MACHINE = re.compile(r"(/dev/)?((sd|hd|vd|xvd)[a-z]+\d*|nvme\d+n\d+(p\d+)?|disk/.*)")


def list_disks() -> list[str]:
    """The names that load_disk() knows, sorted."""
    names = (entry.name for entry in shipped("disks").iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def is_path(name_or_path: str) -> bool:
    """Does it name a file, not one of list_disks()?"""
    return name_or_path.endswith(".toml") or "/" in name_or_path


def load_disk(name_or_path: str) -> Disk:
    """The disk of that name, or the one described in that file.

    What ends in .toml or contains a slash is a file's path; all else is one of
    list_disks(). Raises UsageError with one sentence that says what is wrong.
    """
    if OF_MACHINE.fullmatch(name_or_path):
        raise UsageError(
            f"{name_or_path}: is a disk, not the model of one; `streamsched list disks` has "
            "models, and `streamsched calibrate` makes one of a disk"
        )
    if is_path(name_or_path):
        source = Path(name_or_path)
    elif name_or_path in list_disks():
        source = shipped("disks") / f"{name_or_path}.toml"
    else:
        known = list_disks()
        hint = _nearest(name_or_path.lower(), known) or f"; there are {', '.join(known)}"
        raise UsageError(f"no disk is called {name_or_path!r}{hint}")
    try:
        if isinstance(source, Path):
            text = read_whole(source)
        else:
            text = source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{name_or_path}: not a TOML file: it is not UTF-8 text") from None
    return parse_disk(text, name_or_path)
