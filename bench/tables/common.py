# SPDX-License-Identifier: GPL-2.0-only
"""What the tables of the rig share: naming what is measured, rigs at once, rows that stay."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from streamsched.base.errors import UsageError, named
from streamsched.base.files import Target, write_whole
from streamsched.base.progress import counted
from streamsched.base.units import whole_number
from streamsched.hosts import rig
from streamsched.hosts.kernelhost import DEFAULT_POLICIES, KernelPolicy, parse_policies

EVERY: Mapping[str, KernelPolicy] = {
    policy.label: policy for policy in parse_policies(DEFAULT_POLICIES)
}
MOST_RIGS = 64

A = TypeVar("A")
B = TypeVar("B")


# ---- what is asked for ----


def asked(
    program: str, words: Sequence[str], *kinds: tuple[str, Iterable[str]], at_once: int = 2
) -> tuple[list[list[str]], int]:
    """Of each of @kinds (what it is, the names there are) what @words name, else all; and how
    many rigs run at once: by --parallel, by RIGS of the environment, or @at_once.
    """
    parser = argparse.ArgumentParser(
        prog=f"table.py {program}", description=f"Measure rows of docs/results/{program}.md anew."
    )
    known = [(what, list(names)) for what, names in kinds]
    if known:
        there = "; ".join(f"{what}: {', '.join(names)}" for what, names in known)
        parser.add_argument("names", nargs="*", metavar="NAME", help=f"none: all. {there}")
    parser.add_argument("--parallel", metavar="N", help=f"how many rigs at once ({at_once})")
    given = parser.parse_intermixed_args(words)
    option = "--parallel " if given.parallel is not None else "RIGS="
    text = given.parallel if given.parallel is not None else os.environ.get("RIGS", str(at_once))
    number = whole_number(text)
    chosen = named(given.names, *known) if known else []
    if not number or number > MOST_RIGS:
        raise UsageError(f"{option}{text}: not a number of rigs at a time; write 1 to {MOST_RIGS}")
    return chosen, number


class Rigs:
    """So many at once, of kernels that are built before; a bar counts what they have done."""

    def __init__(
        self,
        at_once: int = 1,
        what: str = "",
        total: int = 0,
        variants: Iterable[str] = ("base",),
    ) -> None:
        """Build what is missing; @total runs are to come."""
        for variant in variants:
            rig.build(variant)
            rig.build_modules(variant)
        self.at_once = at_once
        self.progress = counted()
        self._task = self.progress.add_task(what, total=total)

    def done(self, runs: int = 1) -> None:
        """So many more."""
        self.progress.advance(self._task, runs)

    def each(self, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """What @work makes of each of @items, in their order."""
        with rig.pool(self.at_once) as pool:
            for one in pool.map(work, items):
                self.done()
                yield one


# ---- what is written ----

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table between its marks in a document."""

    mark: str
    what: Row  # heads of the first columns, which say what was measured
    figures: Row  # of the others
    order: Sequence[Row]  # of the rows, by their first columns
    above: tuple[str, ...] = ()  # lines

    def lines(self, rows: Iterable[Row]) -> list[str]:
        """In Markdown, with what stands above it."""
        return [
            *self.above,
            line_of((*self.what, *self.figures)),
            "|" + "---|" * len(self.what) + "---:|" * len(self.figures),
            *map(line_of, rows),
        ]


def document(name: str) -> Path:
    """One of docs/results/."""
    return rig.source_root() / "docs" / "results" / f"{name}.md"


def line_of(row: Row) -> str:
    """A row in Markdown."""
    return f"| {' | '.join(row)} |"


def marks(name: str) -> tuple[str, str]:
    """What surrounds a table in a document."""
    return f"<!-- measured: {name} -->", f"<!-- end: {name} -->"


def lines_in(text: str, name: str) -> list[str]:
    """What @text has between the marks of @name."""
    begin, end = marks(name)
    return text.split(begin, 1)[1].split(end, 1)[0].strip().splitlines()


def with_rows(text: str, name: str, new: Sequence[str], rows: Sequence[str]) -> str:
    """@text with the measured lines @new in the table of @name, and of @rows (beginnings of lines,
    in their order) those that were not measured as they were.
    """
    begin, end = marks(name)
    old = lines_in(text, name)
    table = [line for line in new if not line.startswith(tuple(rows))]
    for row in rows:
        table += [line for line in [*new, *old] if line.startswith(row)][:1]
    lines = "\n".join(table)
    head, tail = text.split(begin, 1)[0], text.split(end, 1)[1]
    return f"{head}{begin}\n\n{lines}\n\n{end}{tail}"


def write_into(path: Path, table: Table, rows: Iterable[Row]) -> None:
    """Put the rows that were measured where they belong, and leave the others as they are."""
    lines, order = table.lines(rows), [line_of(row) for row in table.order]
    write_whole(Target(path, replace=True), with_rows(path.read_text(), table.mark, lines, order))
