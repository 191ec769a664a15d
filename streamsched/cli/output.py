# SPDX-License-Identifier: GPL-2.0-only
"""Where results go: tables on a terminal or in a file, JSON and CSV, whole or not at all."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import typer
from rich.console import Console

from streamsched.base.errors import printable, said
from streamsched.base.files import Kind, write_whole
from streamsched.sim import results
from streamsched.sim.compare import Comparison

WIDTH = 120


def wide_console(file: object = None) -> Console:
    """Wide enough for the tables, whatever the terminal says of itself."""
    console = Console(file=file, highlight=False)  # type: ignore[arg-type]
    if not console.is_terminal or console.width < WIDTH:
        console.width = WIDTH
    return console


def show(
    comparison: Comparison,
    output: str,
    to: Path | None,
    work: str,
    title: str,
    by_process: bool = False,
) -> None:
    """Print the results, or write them to the file @to; an error if they are not whole."""
    if not comparison.runs:
        print("streamsched: interrupted before any run was finished", file=sys.stderr)
        raise typer.Exit(130)
    title = printable(title)  # results are known again by it
    if output == "table" and to is None:
        results.print_tables(comparison, title, wide_console(), by_process)
    else:
        if output == "table":
            file = io.StringIO()
            results.print_tables(comparison, title, wide_console(file), by_process)
            text = file.getvalue()
        else:
            text = results.render(comparison, output, work)
        if to is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            write_whole(to, text, Kind.RESULTS)
    if comparison.interrupted:
        print("streamsched: interrupted; what was finished is all there is", file=sys.stderr)
        raise typer.Exit(130)
    for error in comparison.failed[:-1]:
        print(f"streamsched: {said(error)}", file=sys.stderr)
    if comparison.failed:
        raise comparison.failed[-1]
