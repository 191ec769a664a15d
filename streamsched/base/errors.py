# SPDX-License-Identifier: GPL-2.0-only
"""Errors with a sentence for the user, and the exit code that goes with each."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


class StreamschedError(Exception):
    """Something went wrong that is not a bug; the message is one clear sentence."""

    exit_code = 1


class UsageError(StreamschedError):
    """What the user gave is wrong; the message is one clear sentence."""

    exit_code = 2


class Interrupted(StreamschedError):
    """The user stopped it (Ctrl-C) before there was a result."""

    exit_code = 130


def printable(text: str) -> str:
    """@text on one line: names and values may have line breaks, and what a terminal obeys."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode()
        for one in text
    )


def said(error: StreamschedError) -> str:
    """What is printed of @error: one line, unless another program's last lines are behind it."""
    if isinstance(error, UsageError):
        return printable(str(error))
    return "\n".join(printable(line) for line in str(error).split("\n"))


def install(extra: str) -> str:
    """The command that installs what is missing, for the Python that runs this.

    What a distribution's package runs (packaging/streamsched.in) takes nothing from pip.
    """
    if sys.flags.isolated:
        return f"in the source tree, make install && .venv/bin/pip install 'streamsched[{extra}]'"
    pip = f"{sys.prefix}/bin/pip" if sys.prefix != sys.base_prefix else "pip"
    return f"{shlex.quote(pip)} install 'streamsched[{extra}]'"


def unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = list(known)
    lower = {one.lower(): one for one in names}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    hint = f"did you mean {lower[near[0]]!r}?" if near else f"there are: {', '.join(names)}"
    return UsageError(f"unknown {what} {name!r}; {hint}")


def given(name: str, what: str, make: Callable[[str], T]) -> Callable[[str], T]:
    """What typer reads the option or argument @name by, which names @what: refused when empty.

    Of an empty path it would make the folder that one is in.
    """

    def parse(text: str) -> T:
        if not text:
            raise UsageError(f"{name} is empty; name {what}")
        return make(text)

    return parse


def named(words: Sequence[str], *kinds: tuple[str, Sequence[str]]) -> list[list[str]]:
    """Of each of @kinds (what it is, the names there are) what @words name; if nothing, all.

    Raises UsageError for a word that is of no kind.
    """
    every = [name for _, names in kinds for name in names]
    for word in words:
        if word not in every:
            raise unknown(" or ".join(what for what, _ in kinds), word, every)
    return [[name for name in names if name in words] or list(names) for _, names in kinds]


def exit_code_of(program: str, work: Callable[[], object]) -> int:
    """0 when @work is done, else the error's code, after its sentence on stderr."""
    try:
        work()
    except StreamschedError as error:
        print(f"{program}: {said(error)}", file=sys.stderr)
        return error.exit_code
    return 0
