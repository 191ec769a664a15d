# SPDX-License-Identifier: GPL-2.0-only
"""The core's tunables, and their values as text: core/tunable.h reads and writes them."""

from __future__ import annotations

import dataclasses
from enum import IntEnum
from typing import Any

from streamsched._core import ffi, lib
from streamsched.base.errors import UsageError

SENTENCE_BYTES = 240
SHOWN_BYTES = 32


class Unit(IntEnum):
    """What a tunable is measured in: enum ss_unit."""

    NONE = 0
    NS = 1
    PERCENT = 2
    SECTORS = 3
    BOOL = 4


@dataclasses.dataclass(frozen=True)
class Tunable:
    """One row of core/tunable.h."""

    name: str
    unit: int
    initial: int
    minimum: int
    maximum: int
    help: str = ""

    def _row(self) -> Any:
        return ffi.new(
            "struct ss_tunable *",
            {"unit": self.unit, "initial": self.initial, "min": self.minimum, "max": self.maximum},
        )

    def show(self, value: int) -> str:
        """A value as it is written, with its unit."""
        text = ffi.new("char[]", SHOWN_BYTES)
        lib.ss_tunable_show(self._row(), value, text, SHOWN_BYTES)
        return bytes(ffi.string(text)).decode()

    def read(self, text: str) -> tuple[int, str]:
        """The value of @text, and what is wrong with it: the end of a sentence, or empty."""
        value, why = ffi.new("u64 *"), ffi.new("char[]", SENTENCE_BYTES)
        # C would take what is before a zero for all of it.
        given = text.replace("\0", "?").encode(errors="replace")
        lib.ss_tunable_parse(self._row(), given, value, why, SENTENCE_BYTES)
        return int(value[0]), bytes(ffi.string(why)).decode(errors="replace")

    def parse(self, text: str) -> int:
        """The value of @text; UsageError when it is no such value or out of range."""
        value, why = self.read(text)
        if why:
            raise UsageError(f"{self.name}={text}: {why}")
        return value
