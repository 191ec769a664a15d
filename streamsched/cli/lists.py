# SPDX-License-Identifier: GPL-2.0-only
"""The commands of list: policies, disks, trace formats, workloads, tunables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from streamsched.base.console import trimmed
from streamsched.cli.options import Form, FormOption
from streamsched.sim.diskfile import KINDS, list_disks, load_disk
from streamsched.sim.policies import (
    AUTO,
    AUTO_HELP,
    USES_OWNER,
    WORK_CONSERVING,
    WRAPPER,
    all_policies,
)
from streamsched.sim.results import plain_table, widen
from streamsched.sim.tunable import Tunable
from streamsched.sim.workloads import WORKLOADS

app = typer.Typer(
    help="List policies, disks, workloads, trace formats or tunables.", no_args_is_help=True
)

Row = Mapping[str, Any]
# Of any unit.
ZERO = re.compile(r"^0\D+$")
# Columns without which the text of a table's last column goes below each row.
LEAST_FOLDED = 30
# What a column of a table shows of a row.
Shown = Callable[[Row], str]
KINDS_OF_POLICY = (
    (WORK_CONSERVING, "work-conserving"),
    (USES_OWNER, "uses the owner"),
    (WRAPPER, "wraps another"),
)


def _table(columns: Mapping[str, Shown], piped: bool) -> Table:
    table = plain_table()
    if piped:
        table.box = None
        table.padding = (0, 2, 0, 0)
    for head in columns:
        table.add_column(
            head.replace("\n", " ") if piped else head,
            no_wrap=len(table.columns) < len(columns) - 1,
            justify="right" if head.endswith(("GB", "rpm")) else "left",
        )
    return table


def _print(rows: Sequence[Row], columns: Mapping[str, Shown], output: Form) -> None:
    """As JSON each row whole, else a table of @columns, of which the last one may be folded.

    In a narrow terminal its text goes below each row. In a pipe each row is a line.
    """
    if output is Form.json:
        print(json.dumps(rows, indent=2))
        return
    console = trimmed()
    cells = [[show(row) for show in columns.values()] for row in rows]
    table = _table(columns, not console.is_terminal)
    for row in cells:
        table.add_row(*row)
    if not console.is_terminal:
        widen(console, table)
    whole = sum(max(len(row[number]) for row in cells) + 2 for number in range(len(columns) - 1))
    if not console.is_terminal or whole + LEAST_FOLDED <= console.width:
        console.print(table)
        return
    table.columns.pop()
    with console.capture() as captured:
        widen(console, table).print(table)
    lines = Text.from_ansi(captured.get().rstrip()).split()
    for number, line in enumerate(lines, len(rows) - len(lines)):
        console.print(line, soft_wrap=True)
        if number >= 0:
            console.print(Padding(cells[number][-1], (0, 0, 0, 4)))


def _key(name: str) -> Shown:
    return lambda row: str(row[name])


@app.command()
def policies(output: FormOption = Form.table) -> None:
    """List the policies, and what each does."""
    rows = [
        {
            "policy": f"{one.name}:POLICY" if one.flags & WRAPPER else one.name,
            "kind": [word for flag, word in KINDS_OF_POLICY if one.flags & flag],
            "help": one.help,
        }
        for one in all_policies().values()
    ]
    rows.append({"policy": AUTO, "kind": ["chooses"], "help": AUTO_HELP})
    columns = {
        "policy": _key("policy"),
        "kind": lambda row: ", ".join(row["kind"]),
        "what it does": _key("help"),
    }
    _print(rows, columns, output)


@app.command()
def disks(output: FormOption = Form.table) -> None:
    """List the disks that are described."""
    rows = [
        {
            "disk": one.name,
            "kind": KINDS[one.kind],
            "capacity_bytes": one.capacity_sectors * 512,
            "rotation_rpm": round(60e9 / one.rotation_ns) if one.rotation_ns else None,
            "queue_depth": one.queue_depth,
            "model": one.model,
            "description": one.description,
        }
        for one in map(load_disk, list_disks())
    ]
    columns: dict[str, Shown] = {
        "disk": _key("disk"),
        "capacity\nGB": lambda row: f"{row['capacity_bytes'] / 1e9:,.0f}",
        "rotation\nrpm": lambda row: str(row["rotation_rpm"] or "-"),
        "model and description": lambda row: f"{row['model']}: {row['description']}",
    }
    _print(rows, columns, output)


@app.command()
def formats(output: FormOption = Form.table) -> None:
    """List the trace formats that are read, plain or compressed (gzip, zstd), known by content."""
    from streamsched.work import tracefile

    rows = [{"format": name, "help": help_} for name, help_ in tracefile.formats()]
    _print(rows, {"format": _key("format"), "what it is": _key("help")}, output)


@app.command()
def workloads(output: FormOption = Form.table) -> None:
    """List workloads that a fio job file cannot express."""
    rows = [
        {
            "workload": one.name,
            "from": one.source,
            "disk": one.disk,
            "array": one.array,
            "owners": one.owners,
            "help": one.help,
        }
        for one in WORKLOADS.values()
    ]
    columns: dict[str, Shown] = {
        "workload": _key("workload"),
        "from": _key("from"),
        "disk": lambda row: f"{row['array']} of {row['disk']}" if row["array"] else row["disk"],
        "owners": _key("owners"),
        "what it is": _key("help"),
    }
    _print(rows, columns, output)


def _tunable(policy: str, row: Tunable) -> dict[str, Any]:
    return {
        "policy": policy,
        "tunable": row.name,
        **{
            key: row.show(value)
            for key, value in (
                ("default", row.initial),
                ("least", row.minimum),
                ("most", row.maximum),
            )
        },
        "help": row.help,
    }


@app.command()
def tunables(output: FormOption = Form.table) -> None:
    """List each policy's tunables with default and range."""
    rows = [_tunable(one.name, row) for one in all_policies().values() for row in one.tunables]
    columns = {name: _key(name) for name in ("policy", "tunable", "default")}
    columns["range"] = lambda row: f"{ZERO.sub('0', row['least'])} to {row['most']}"
    _print(rows, {**columns, "what it is": _key("help")}, output)
