# SPDX-License-Identifier: GPL-2.0-only
"""What run, replay and report have in common on the command line."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from streamsched.api.place import files_of
from streamsched.base.errors import UsageError, printable
from streamsched.base.files import Target, check_output, mode_of
from streamsched.base.plotfile import check_plot
from streamsched.sim.requestlog import check_requests
from streamsched.work.processors import joined, parts_of


def check_apart(outputs: Mapping[str, Target | None]) -> None:
    """Refuse two outputs, by the options that name them, into one file."""
    given = [(option, to.path) for option, to in outputs.items() if to is not None]
    for (one, first), (other, second) in itertools.combinations(given, 2):
        if os.path.realpath(first) == os.path.realpath(second) or (
            mode_of(first) and mode_of(second) and first.samefile(second)
        ):
            what = "where the results go" if one == "--to" else "another output"
            raise UsageError(f"{other} {second}: is {what} ({one}); name two files")


def check_force(force: bool, *outputs: Path | None) -> None:
    """Refuse --force where no output is named."""
    if force and not any(outputs):
        raise UsageError("--force: there is nothing to replace; name a file, as with --to")


def note(text: str) -> None:
    """Say what may surprise."""
    print(f"streamsched: note: {printable(text)}", file=sys.stderr)


def say(notes: Iterable[str]) -> None:
    """Each of @notes."""
    for one in notes:
        note(one)


def check_several(nr: int, output: str, outputs: Mapping[str, Target | None]) -> None:
    """Refuse what is of one result where there are @nr: pictures, requests, fio's JSON."""
    if nr == 1:
        return
    of_one = [f"{option} {to.path}" for option, to in outputs.items() if to is not None]
    if output == "fio-json":
        of_one.append("--output fio-json")
    for option in of_one:
        raise UsageError(f"{option}: is of one result, and these are {nr}; ask for one at a time")


def refuse_same(what: str, names: Sequence[object]) -> None:
    """Refuse what is named twice: the results would be the same."""
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{what} {name}: stands there twice; leave one of them out")


def check_outputs(
    to: Target | None,
    outputs: Mapping[str, Target | None],
    read: Sequence[str | Path | None],
) -> None:
    """Refuse outputs that cannot be written, or would be over what is read or one another."""
    check_output(to, *read)
    check_requests(outputs["--requests"], *read)
    check_plot(outputs["--plot"], *read)
    check_apart({"--to": to, **outputs})


def trace_files(traces: Sequence[str]) -> list[str]:
    """The files that TRACE names: several where there is one for each processor."""
    return [file for one in joined(traces) for file in parts_of(one)]


def disk_files(disks: Sequence[str] | None) -> list[str]:
    """The files that several --disk name."""
    return [file for disk in disks or () for file in files_of(disk)]
