# SPDX-License-Identifier: GPL-2.0-only
"""Where results go: tables on a terminal or in a file, JSON and CSV, whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from streamsched.api import Result
from streamsched.base.console import trimmed
from streamsched.base.errors import printable, said
from streamsched.base.files import Kind, write_whole
from streamsched.sim import results


def show(result: Result, output: str, to: Path | None, by_process: bool = False) -> None:
    """Print the results, or write them to the file @to; an error if they are not whole."""
    comparison = result.comparison
    if not comparison.runs:
        print("streamsched: interrupted before any run was finished", file=sys.stderr)
        raise typer.Exit(130)
    title = printable(result.title)  # results are known again by it
    if output == "table" and to is None:
        results.print_tables(comparison, title, trimmed(), by_process)
    else:
        if output == "table":
            text = results.tables_text(comparison, title, trimmed().width, by_process)
        else:
            text = results.render(comparison, output, result.work, result.origin)
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
