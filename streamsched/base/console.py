# SPDX-License-Identifier: GPL-2.0-only
"""Where tables are printed: as wide as the terminal, no blanks at the ends of lines."""

from __future__ import annotations

import re
import sys
from typing import IO, Any

from rich.console import Console

# Where nothing says how wide it is.
CONSOLE_COLUMNS = 80
# Blanks before a line's end, also in front of what ends a colour.
BLANKS = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)


class _Trimmed:
    """A text file that is given no blanks at the ends of lines; rich fills them up."""

    def __init__(self, file: IO[str] | None) -> None:
        self._file = file

    def _to(self) -> IO[str]:
        return self._file or sys.stdout

    def write(self, text: str) -> int:
        self._to().write(BLANKS.sub(r"\1", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._to(), name)


def trimmed(file: IO[str] | None = None, columns: int | None = None) -> Console:
    """For tables: on standard output or @file; as wide as COLUMNS or the terminal says, or 80.

    What is printed is text, also in brackets: "stream:deadline[wait_target=1s]" is no markup.
    """
    return Console(
        file=_Trimmed(file),  # type: ignore[arg-type]
        highlight=False,
        markup=False,
        emoji=False,
        width=columns,
    )
