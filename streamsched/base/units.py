# SPDX-License-Identifier: GPL-2.0-only
"""Sizes, times, percentages and counts as text, exactly: whole numbers and Decimal, no floats.

Two dialects. A job file is read as fio reads it (`fio_bytes`, `fio_time_ns`, ...), so that the
same file means the same everywhere. A tunable (`--set NAME=VALUE`) is read strictly: what has a
unit is refused without it, a fraction is welcome as long as it is a whole number of nanoseconds.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import IntEnum

from streamsched.base.errors import UsageError

SECTOR_BYTES = 512
U64_MAX = 2**64 - 1

# The most one value may be in a job file: fio keeps signed 64-bit numbers.
FIO_MAX = 2**63 - 1

TIME_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "h": 3_600 * 1_000_000_000,
    "d": 86_400 * 1_000_000_000,
}
# A tunable is never minutes long; "m" would be taken for milli.
TUNABLE_TIMES = ("ns", "us", "ms", "s")
FIO_TIMES = {**TIME_NS, "usec": TIME_NS["us"], "msec": TIME_NS["ms"]}
del FIO_TIMES["ns"]

SIZE_LETTERS = "kmgtp"

NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([^\d\s.].*)?", re.ASCII)
FIO_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)(.*)", re.ASCII)


# A number of more digits is larger than anything that is asked for.
MOST_DIGITS = 40


def whole_number(text: str) -> int | None:
    """The number of @text; None if it is not of the digits 0 to 9 alone.

    One that is too long is as good as another: int() refuses those of more than 4300 digits.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= MOST_DIGITS else 10**MOST_DIGITS


class Unit(IntEnum):
    """What a tunable is measured in: enum ss_unit of core/tunable.h."""

    NONE = 0
    NS = 1
    PERCENT = 2
    SECTORS = 3
    BOOL = 4


def _fio_number(text: str, units: str) -> tuple[int, str]:
    """A whole number, decimal or hexadecimal, and what stands behind it in lower case."""
    match = FIO_NUMBER.fullmatch(text)
    if not match:
        if text.startswith("-"):
            raise UsageError(f'"{text}" is negative; write zero or more')
        if text.startswith("("):
            raise UsageError(f'"{text}" is a calculation; write the number it comes to')
        raise UsageError(f'"{text}" is not a number; write {units}')
    digits, unit = match.groups()
    if unit.startswith("."):
        raise UsageError(
            f'"{text}" has a fraction, and fio reads whole numbers only; '
            "write it in a smaller unit, such as 1536m for 1.5g or 1500ms for 1.5s"
        )
    number = whole_number(digits)
    value = int(digits, 16) if number is None else number
    if value > FIO_MAX:
        raise UsageError(f'"{text}" is too large; the most is {FIO_MAX}')
    return value, unit.lower()


def _size_factor(unit: str, kb_base: int) -> int | None:
    """The bytes of one unit of fio's, None if it has no such unit."""
    if unit in ("", "b"):
        return 1
    if unit[0] not in SIZE_LETTERS:
        return None
    power = SIZE_LETTERS.index(unit[0]) + 1
    if unit[1:] in ("", "b", "i"):
        return int(kb_base**power)
    if unit[1:] == "ib":  # fio's kib is whichever of 1000 and 1024 kb is not
        return int((1000 if kb_base == 1024 else 1024) ** power)
    return None


def fio_bytes(text: str, kb_base: int = 1024, percent: bool = False) -> int:
    """The bytes fio reads from 4096, 4k, 4K, 4kb, 0x1000, 1g ..."""
    choice = "write bytes with k, m, g or t" + (", or a percentage" if percent else "")
    value, unit = _fio_number(text, "a number of bytes with k, m, g or t")
    if unit == "z":
        raise UsageError(f'"{text}" counts zones of a zoned disk; {choice}')
    if unit == "%":
        raise UsageError(f'"{text}" is a percentage, which is not possible here; {choice}')
    factor = _size_factor(unit, kb_base)
    if factor is None:
        raise UsageError(f'"{unit}" is not a unit; {choice}')
    if value * factor > FIO_MAX:
        raise UsageError(f'"{text}" is too large; the most is {FIO_MAX} bytes')
    return value * factor


def fio_percent(text: str) -> int | None:
    """The 40 of "40%"; None if @text does not end in a percent sign."""
    if not text.endswith("%"):
        return None
    value, rest = _fio_number(text, "a percentage from 0% to 100%")
    if rest != "%" or value > 100:
        raise UsageError(f'"{text}" is not a percentage of the disk; write 0% to 100%')
    return value


def fio_time_ns(text: str, default_unit: str) -> int:
    """The nanoseconds of a time of fio's; @default_unit is what a bare number counts."""
    value, unit = _fio_number(text, "a time with us, ms, s, m, h or d")
    factor = FIO_TIMES.get(unit or default_unit)
    if factor is None:
        raise UsageError(f'"{unit}" is not a unit of time; write us, ms, s, m, h or d')
    if value * factor > FIO_MAX:
        raise UsageError(f'"{text}" is too long; the most is {FIO_MAX // TIME_NS["d"]}d')
    return value * factor


def _whole(text: str, value: Decimal, what: str) -> int:
    whole = int(value)
    if whole != value:
        raise UsageError(f'"{text}" is not a whole number of {what}; write one that is')
    if whole > U64_MAX:
        raise UsageError(f'"{text}" is too large; the most is {U64_MAX} {what}')
    return whole


@dataclasses.dataclass(frozen=True)
class Range:
    """What a value must be within, and one that is, for whoever wrote another."""

    least: int = 0
    most: int = U64_MAX
    example: str = ""


def _split(text: str, example: str) -> tuple[Decimal, str]:
    match = NUMBER.fullmatch(text.strip())
    if not match:
        raise UsageError(f'"{text}" is not a value; write a number such as {example}')
    if len(match.group(1)) > MOST_DIGITS:  # beyond any sense, and Decimal's default precision
        raise UsageError(f'"{text}" has too many digits; write a number such as {example}')
    return Decimal(match.group(1)), (match.group(2) or "").lower()


def _without_unit(
    text: str, number: Decimal, what: str, units: Mapping[str, int], within: Range
) -> int:
    """0, which is nothing in every unit, or an error that says how the number was perhaps meant."""
    if not number:
        return 0
    for unit, factor in units.items():
        value = number * factor
        if value == int(value) and within.least <= value <= within.most:
            raise UsageError(f'"{text}" has no unit; write {what} such as {text.strip()}{unit}')
    raise UsageError(f'"{text}" has no unit; write {what} such as {within.example}')


def parse_time_ns(text: str, within: Range = Range(example="124ms")) -> int:
    """The nanoseconds of 124ms, 0.5s, 8us or 100ns; a bare number has no meaning but 0."""
    number, unit = _split(text, within.example)
    if not unit:
        guesses = {unit: TIME_NS[unit] for unit in ("ms", "s", "us", "ns")}
        return _without_unit(text, number, "a time", guesses, within)
    if unit not in TUNABLE_TIMES:
        raise UsageError(f'"{unit}" is not a unit of time here; write ns, us, ms or s')
    return _whole(text, number * TIME_NS[unit], "nanoseconds")


def parse_percent(text: str, within: Range = Range(example="50%")) -> int:
    """The 50 of 50%. A bare 2 would be twice as much for some, in a tunable called a factor."""
    number, unit = _split(text, within.example)
    if not unit:
        return _without_unit(text, number, "a percentage", {"%": 1}, within)
    if unit != "%":
        raise UsageError(
            f'"{unit}" is not a unit of a percentage; write a number such as {within.example}'
        )
    return _whole(text, number, "percent")


def parse_count(text: str, within: Range = Range(example="4")) -> int:
    """A plain whole number."""
    number, unit = _split(text, within.example)
    if unit:
        raise UsageError(
            f'"{text}" is not a plain count, which has no unit; '
            f"write a whole number such as {within.example}"
        )
    return _whole(text, number, "units")


def parse_sectors(text: str, within: Range = Range(example="256sectors")) -> int:
    """Sectors of 512 bytes, or a size such as 64k, which must be a multiple.

    A bare number would be one of bytes for some, and of KiB for who knows Linux's back_seek_max.
    """
    number, unit = _split(text, within.example)
    if not unit:
        return _without_unit(text, number, "a length", {"sectors": 1, "k": 2}, within)
    if unit in ("sector", "sectors"):
        return _whole(text, number, "sectors")
    factor = {"k": 2, "kib": 2, "m": 2**11, "mib": 2**11, "g": 2**21, "gib": 2**21}.get(unit)
    if factor is None:
        raise UsageError(
            f'"{unit}" is not a unit of length; write sectors, or bytes with k, m or g'
        )
    return _whole(text, number * factor, f"{SECTOR_BYTES}-byte sectors")


BOOL_WORDS = {
    **dict.fromkeys(("1", "on", "yes", "true"), 1),
    **dict.fromkeys(("0", "off", "no", "false"), 0),
}


def parse_bool(text: str, within: Range = Range()) -> int:
    """1 or 0; @within is for the other parsers."""
    del within
    value = BOOL_WORDS.get(text.strip().lower())
    if value is None:
        raise UsageError(f'"{text}" is neither on nor off; write 1 or 0')
    return value


TUNABLE_PARSERS: dict[Unit, Callable[..., int]] = {
    Unit.NONE: parse_count,
    Unit.NS: parse_time_ns,
    Unit.PERCENT: parse_percent,
    Unit.SECTORS: parse_sectors,
    Unit.BOOL: parse_bool,
}


def parse_tunable(text: str, unit: int, within: Range | None = None) -> int:
    """The value of a tunable; @unit is one of enum ss_unit.

    What is written instead of a value is to be @within; whether a value is, is not looked at.
    """
    parser = TUNABLE_PARSERS[Unit(unit)]
    return parser(text) if within is None else parser(text, within)


def format_time_ns(value: int) -> str:
    """The shortest exact spelling: 124ms, 1500ms, 2s, 0ns."""
    for unit in reversed(TUNABLE_TIMES):
        if value and value % TIME_NS[unit] == 0:
            return f"{value // TIME_NS[unit]}{unit}"
    return "0ns"


def format_bytes(value: int) -> str:
    """Bytes in the largest of fio's units that is exact: 4k, 50g, 1000."""
    for power in range(len(SIZE_LETTERS), 0, -1):
        if value and value % 1024**power == 0:
            return f"{value // 1024**power}{SIZE_LETTERS[power - 1]}"
    return str(value)


def format_tunable(value: int, unit: int) -> str:
    """What parse_tunable() reads back as @value."""
    match Unit(unit):
        case Unit.NS:
            return format_time_ns(value)
        case Unit.PERCENT:
            return f"{value}%"
        case Unit.SECTORS:
            return f"{value} sectors"
        case Unit.BOOL:
            return "on" if value else "off"
        case Unit.NONE:
            return str(value)
