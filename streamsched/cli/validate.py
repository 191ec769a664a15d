# SPDX-License-Identifier: GPL-2.0-only
"""The commands that hold the disk model against real disks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamsched.base.console import trimmed
from streamsched.base.errors import UsageError
from streamsched.base.files import check_output, target, write_whole
from streamsched.cli.options import ForceOption, path_option
from streamsched.cli.work import check_force
from streamsched.sim import results

app = typer.Typer(
    no_args_is_help=True, help="Hold the disk model against published and recorded figures."
)

ToOption = Annotated[
    Path | None,
    path_option("--to", "a file", "Write it to this file, whole or not at all."),
]


def _pairs(files: list[Path]) -> list[tuple[Path, Path]]:
    if len(files) % 2:
        raise UsageError(f"{files[-1]}: each trace needs a description: TRACE DISK.toml ...")
    return list(zip(files[::2], files[1::2], strict=True))


@app.command("disk")
def disk(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TRACE DISK.toml",
            help="Recorded requests of a drive, and its description.",
            show_default=False,
        ),
    ] = None,
    to: ToOption = None,
    force: ForceOption = False,
) -> None:
    """Compare shipped disks with published figures, or drives with recorded times.

    A line of a TRACE is R or W, Hit or Miss (not used), the first sector,
    the number of sectors, the recorded service time in us, and the think
    time after it in us.
    """
    from streamsched.calibrate import recorded, validate

    pairs = _pairs(files or [])
    check_force(force, to)
    if document := target(to, force):
        check_output(document, *(file for pair in pairs for file in pair))
        write_whole(document, recorded.recorded_report(pairs) if pairs else validate.report())
        return
    if not pairs:
        print(validate.report(), end="")
        return
    table = results.plain_table()
    for column in ("drive", "requests"):
        table.add_column(column, no_wrap=True)
    for column in ("number", "recorded\nms", "model\nms", "error\n%", "demerit\n%"):
        table.add_column(column, justify="right")
    for name, rows in recorded.compared(pairs):
        for row in rows:
            table.add_row(
                name,
                row.what,
                str(row.nr),
                f"{row.recorded_ms:.3f}",
                f"{row.model_ms:.3f}",
                f"{row.error:+.1f}",
                f"{row.demerit:.1f}",
            )
    trimmed().print(table)
