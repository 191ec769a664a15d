# SPDX-License-Identifier: GPL-2.0-only
"""The commands that say what there is: policies, disks, trace formats, workloads, tunables."""

from __future__ import annotations

from streamsched.base.console import trimmed
from streamsched.sim import results
from streamsched.sim.diskfile import list_disks, load_disk
from streamsched.sim.policies import (
    AUTO,
    AUTO_HELP,
    USES_OWNER,
    WORK_CONSERVING,
    WRAPPER,
    all_policies,
)
from streamsched.sim.workloads import WORKLOADS


def policies() -> None:
    """List the policies, and what each does."""
    table = results.plain_table()
    for column in ("policy", "kind", "what it does"):
        table.add_column(column, no_wrap=column != "what it does")
    for one in all_policies().values():
        kind = [
            word
            for flag, word in (
                (WORK_CONSERVING, "work-conserving"),
                (USES_OWNER, "uses the owner"),
                (WRAPPER, "wraps another"),
            )
            if one.flags & flag
        ]
        name = f"{one.name}:POLICY" if one.flags & WRAPPER else one.name
        table.add_row(name, ", ".join(kind), one.help)
    table.add_row(AUTO, "chooses", AUTO_HELP)
    trimmed().print(table)


def disks() -> None:
    """List the disks that are described."""
    table = results.plain_table()
    table.add_column("disk", no_wrap=True)
    table.add_column("capacity\nGB", justify="right")
    table.add_column("rotation\nrpm", justify="right")
    table.add_column("model and description")
    for name in list_disks():
        one = load_disk(name)
        rpm = f"{round(60e9 / one.rotation_ns)}" if one.rotation_ns else "-"
        table.add_row(
            name,
            f"{one.capacity_sectors * 512 / 1e9:,.0f}",
            rpm,
            f"{one.model}: {one.description}",
        )
    trimmed().print(table)


def formats() -> None:
    """List the trace formats that can be read."""
    from streamsched.work import tracefile

    table = results.plain_table()
    table.add_column("format", no_wrap=True)
    table.add_column("what it is")
    for name, help_ in tracefile.formats():
        table.add_row(name, help_)
    trimmed().print(table)
    trimmed().print("\nplain, gzip or zstd; found out by content")


def workloads() -> None:
    """List the workloads that a job file cannot say."""
    table = results.plain_table()
    for column in ("workload", "from", "disk", "owners"):
        table.add_column(column, no_wrap=True)
    table.add_column("what it is")
    for one in WORKLOADS.values():
        storage = f"{one.array} of {one.disk}" if one.array else one.disk
        table.add_row(one.name, one.source, storage, one.owners, one.help)
    trimmed().print(table)


def tunables() -> None:
    """List each policy's tunables with default and range."""
    table = results.plain_table()
    for column in ("policy", "tunable", "default", "least", "most"):
        table.add_column(column, no_wrap=True)
    table.add_column("what it is")
    for one in all_policies().values():
        for row in one.tunables:
            shown = map(row.show, (row.initial, row.minimum, row.maximum))
            table.add_row(one.name, row.name, *shown, row.help)
    trimmed().print(table)
