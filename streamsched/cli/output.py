# SPDX-License-Identifier: GPL-2.0-only
"""Where results go: tables on a terminal or in a file, JSON and CSV, whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from streamsched.api.result import Result, csv_of, json_of
from streamsched.base.console import trimmed
from streamsched.base.errors import printable, said
from streamsched.base.files import Target, write_whole
from streamsched.sim import results


def show(found: Sequence[Result], output: str, to: Target | None, by_process: bool = False) -> None:
    """Print the results, or write them to @to; an error if they are not whole."""
    shown = [result for result in found if result.comparison.runs]
    if not shown:
        print("streamsched: interrupted before any run was finished", file=sys.stderr)
        raise typer.Exit(130)
    if output == "table" and to is None:
        for number, one in enumerate(shown):
            if number:
                print()
            # Results are known again by their titles.
            results.print_tables(one.comparison, printable(one.title), trimmed(), by_process)
    else:
        text = _text(shown, output, by_process)
        if to is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            write_whole(to, text)
    if any(result.comparison.interrupted for result in found):
        print("streamsched: interrupted; what was finished is all there is", file=sys.stderr)
        raise typer.Exit(130)
    # The same policy in Python may fail in each result, with the same sentence.
    failed = list({str(e): e for result in found for e in result.comparison.failed}.values())
    for error in failed[:-1]:
        print(f"streamsched: {said(error)}", file=sys.stderr)
    if failed:
        raise failed[-1]


def _text(shown: Sequence[Result], output: str, by_process: bool) -> str:
    if output == "table":
        columns = trimmed().width
        tables = [
            results.tables_text(one.comparison, printable(one.title), columns, by_process)
            for one in shown
        ]
        return "\n".join(tables)
    if output == "csv":
        return csv_of(shown)
    if output == "fio-json":
        return shown[0].to_fio_json()
    return json_of(shown)  # json+ is its earlier name
