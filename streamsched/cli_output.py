# SPDX-License-Identifier: GPL-2.0-only
"""Where results go: tables on a terminal or in a file, JSON and CSV, whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

import typer
from rich.console import Console

from streamsched import results
from streamsched.compare import Comparison
from streamsched.errors import UsageError
from streamsched.files import is_no_file, mode_of, write_whole

WIDTH = 120


def check_to(path: Path | None, *read: str | Path | None, option: str = "--to") -> None:
    """Refuse a file that could not be written in the end, before the work begins.

    Nor must it be one of those that are @read: they would be lost.
    """
    if path is None:
        return
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = 0
    except OSError as error:
        if error.errno != errno.ELOOP:  # a circle of links is replaced
            raise UsageError(f"{option} {path}: cannot write it: {error.strerror}") from None
        mode = 0
    if stat.S_ISDIR(mode):
        raise UsageError(f"{option} {path}: cannot write it: Is a directory")
    if stat.S_ISBLK(mode):
        raise UsageError(f"{option} {path}: is a disk, which would be overwritten; name a file")
    if is_no_file(path):
        if not os.access(path, os.W_OK):
            raise UsageError(f"{option} {path}: cannot write it: Permission denied")
        return
    for one in read:
        if mode and one and mode_of(one) and path.samefile(one):
            raise UsageError(f"{option} {path}: is read, and would be lost; name another file")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise UsageError(f"{option} {path}: cannot write it: there is no directory {path.parent}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {path}: cannot write it: {path.parent} is not writable")


def wide_console(file: object = None) -> Console:
    """Wide enough for the tables, whatever the terminal says of itself."""
    console = Console(file=file, highlight=False)  # type: ignore[arg-type]
    if not console.is_terminal or console.width < WIDTH:
        console.width = WIDTH
    return console


def show(comparison: Comparison, output: str, to: Path | None, work: str, title: str) -> None:
    """Print the results, or write them to the file @to; exit with 130 if they are not whole."""
    if not comparison.runs:
        print("streamsched: interrupted before any run was finished", file=sys.stderr)
        raise typer.Exit(130)
    if output == "table" and to is None:
        results.print_tables(comparison, title, wide_console())
    else:
        if output == "table":
            console = wide_console()
            with console.capture() as captured:
                results.print_tables(comparison, title, console)
            text = captured.get()
        else:
            text = results.render(comparison, output, work)
        if to is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            write_whole(to, text)
    if comparison.interrupted:
        print("streamsched: interrupted; what was finished is all there is", file=sys.stderr)
        raise typer.Exit(130)
