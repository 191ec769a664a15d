# SPDX-License-Identifier: GPL-2.0-only
"""Sizes, times, percentages and counts as text, exactly: whole numbers and Decimal, no floats.

Two dialects. A job file is read as fio reads it (`fio_bytes`, `fio_time_ns`, ...), so that the
same file means the same everywhere. A tunable (`--set NAME=VALUE`) is read strictly: a time without
its unit is refused, a fraction is welcome as long as it is a whole number of nanoseconds.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import IntEnum

from streamsched.errors import UsageError

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
    value = int(digits, 16 if digits[:2] in ("0x", "0X") else 10)
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


def _split(text: str, example: str) -> tuple[Decimal, str]:
    match = NUMBER.fullmatch(text.strip())
    if not match:
        raise UsageError(f'"{text}" is not a value; write a number such as {example}')
    if len(match.group(1)) > 40:  # beyond Decimal's default precision, and beyond any sense
        raise UsageError(f'"{text}" has too many digits; write a number such as {example}')
    return Decimal(match.group(1)), (match.group(2) or "").lower()


def parse_time_ns(text: str) -> int:
    """The nanoseconds of 124ms, 0.5s, 8us or 100ns; a bare number has no meaning but 0."""
    number, unit = _split(text, "124ms")
    if not unit:
        if number == 0:
            return 0
        raise UsageError(f'"{text}" has no unit; write a time such as {text.strip()}ms')
    if unit not in TUNABLE_TIMES:
        raise UsageError(f'"{unit}" is not a unit of time here; write ns, us, ms or s')
    return _whole(text, number * TIME_NS[unit], "nanoseconds")


def parse_percent(text: str) -> int:
    """The 50 of 50% or 50."""
    number, unit = _split(text, "50%")
    if unit not in ("", "%"):
        raise UsageError(f'"{unit}" is not a unit of a percentage; write a number such as 50%')
    return _whole(text, number, "percent")


def parse_count(text: str) -> int:
    """A plain whole number."""
    number, unit = _split(text, "4")
    if unit:
        raise UsageError(
            f'"{text}" is not a plain count, which has no unit; write a whole number such as 4'
        )
    return _whole(text, number, "units")


def parse_sectors(text: str) -> int:
    """Sectors of 512 bytes: a bare number counts them, a size such as 64k must be a multiple."""
    number, unit = _split(text, "256 (sectors) or 128k (bytes)")
    if unit in ("", "sector", "sectors"):
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


def parse_bool(text: str) -> int:
    """1 or 0."""
    value = BOOL_WORDS.get(text.strip().lower())
    if value is None:
        raise UsageError(f'"{text}" is neither on nor off; write 1 or 0')
    return value


TUNABLE_PARSERS = {
    Unit.NONE: parse_count,
    Unit.NS: parse_time_ns,
    Unit.PERCENT: parse_percent,
    Unit.SECTORS: parse_sectors,
    Unit.BOOL: parse_bool,
}


def parse_tunable(text: str, unit: int, word: str | None = None, word_value: int = 0) -> int:
    """The value of a tunable; @unit is one of enum ss_unit, @word stands for @word_value."""
    if word is not None and text.strip() == word:
        return word_value
    try:
        return TUNABLE_PARSERS[Unit(unit)](text)
    except UsageError as error:
        if word is None:
            raise
        raise UsageError(f"{error}, or {word}") from None


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


def format_tunable(value: int, unit: int, word: str | None = None, word_value: int = 0) -> str:
    """What parse_tunable() reads back as @value."""
    if word is not None and value == word_value:
        return word
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
