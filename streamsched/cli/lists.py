# SPDX-License-Identifier: GPL-2.0-only
"""The commands that say what there is: policies, disks, trace formats, workloads, tunables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamsched.base.console import trimmed
from streamsched.cli.options import Form, FormOption
from streamsched.sim import results
from streamsched.sim.diskfile import KINDS, list_disks, load_disk
from streamsched.sim.policies import (
    AUTO,
    AUTO_HELP,
    USES_OWNER,
    WORK_CONSERVING,
    WRAPPER,
    all_policies,
)
from streamsched.sim.tunable import Tunable
from streamsched.sim.workloads import WORKLOADS

Row = Mapping[str, Any]
# What a column of a table shows of a row.
Shown = Callable[[Row], str]
KINDS_OF_POLICY = (
    (WORK_CONSERVING, "work-conserving"),
    (USES_OWNER, "uses the owner"),
    (WRAPPER, "wraps another"),
)


def _print(
    rows: Sequence[Row], columns: Mapping[str, Shown], output: Form, folded: int = 1
) -> None:
    """As JSON each row whole; in the table @columns, of which the last @folded may be folded."""
    if output is Form.json:
        print(json.dumps(rows, indent=2))
        return
    table = results.plain_table()
    for number, head in enumerate(columns):
        right = head.endswith(("GB", "rpm"))
        whole = number < len(columns) - folded
        table.add_column(head, no_wrap=whole, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(show(row) for show in columns.values()))
    trimmed().print(table)


def _key(name: str) -> Shown:
    return lambda row: str(row[name])


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


def formats(output: FormOption = Form.table) -> None:
    """List the trace formats that can be read."""
    from streamsched.work import tracefile

    rows = [{"format": name, "help": help_} for name, help_ in tracefile.formats()]
    _print(rows, {"format": _key("format"), "what it is": _key("help")}, output)
    if output is Form.table:
        trimmed().print("\nplain, gzip or zstd; found out by content")


def workloads(output: FormOption = Form.table) -> None:
    """List the workloads that a job file cannot say."""
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
    _print(rows, columns, output, folded=4)


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


def tunables(output: FormOption = Form.table) -> None:
    """List each policy's tunables with default and range."""
    rows = [_tunable(one.name, row) for one in all_policies().values() for row in one.tunables]
    columns = {name: _key(name) for name in ("policy", "tunable", "default")}
    columns["range"] = lambda row: f"{row['least']} to {row['most']}"
    _print(rows, {**columns, "what it is": _key("help")}, output, folded=2)
