# SPDX-License-Identifier: GPL-2.0-only
"""Sizes, times and percentages of a job file, as fio reads them; whole numbers, no floats."""

from __future__ import annotations

import re

from streamsched.base.errors import UsageError

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
FIO_TIMES = {**TIME_NS, "usec": TIME_NS["us"], "msec": TIME_NS["ms"]}
del FIO_TIMES["ns"]

SIZE_LETTERS = "kmgtp"

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


def format_bytes(value: int) -> str:
    """Bytes in the largest of fio's units that is exact: 4k, 50g, 1000."""
    for power in range(len(SIZE_LETTERS), 0, -1):
        if value and value % 1024**power == 0:
            return f"{value // 1024**power}{SIZE_LETTERS[power - 1]}"
    return str(value)
