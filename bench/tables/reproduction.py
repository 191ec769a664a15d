# SPDX-License-Identifier: GPL-2.0-only
"""Rows of Xu and Jiang (FAST 2011), Figures 3 and 5, by real programs instead of models.

grep, PostMark, PostgreSQL and ProFTPD run in the rig (applications.py), as the paper has them: one
command in the disk at a time, owners hidden. The rules are those of streamsched/papers/xu.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from streamsched.base.console import trimmed
from streamsched.base.errors import StreamschedError
from streamsched.sim.experiment import Row, figure_table, within
from tables.applications import PROGRAMS, cells_of
from tables.common import Rigs, asked
from tables.programs import Cell

TITLE = "Figures 3 and 5 by real programs (Xu and Jiang, FAST 2011), on Linux 6.12 in the rig"
DEPTH, PATH = 1, "loop"
POLICIES = "none,mq-deadline,anticipatory,cfq,stream"
OWNER_POLICIES = ("anticipatory", "cfq")


def rows(cells: Sequence[Cell]) -> list[Row]:
    """Of @cells, those of this condition; the names are those of applications.PROGRAMS."""
    here = {(c.workload, c.policy): c for c in cells if (c.queue_depth, c.path) == (DEPTH, PATH)}

    def ratio(program: str, first: str, second: str) -> float:
        """How many times as long it took under @first."""
        return here[program, first].seconds / here[program, second].seconds

    cut = 1 - ratio("tpc-h", "stream", "mq-deadline")
    what = "PostgreSQL, query 19, time cut by stream from mq-deadline"
    # What is compared, the paper's figure, ours, the rule, and whether it holds.
    found = [(what, "72 %", f"{100 * cut:.0f} %", "+-10 points", abs(cut - 0.72) <= 0.10)]
    for program, title in (("greps", "two greps"), ("postmark", "four PostMarks")):
        gain = ratio(program, "mq-deadline", "stream")
        what = f"{title}, stream to mq-deadline"
        found.append((what, "clearly better", f"{gain:.2f}x", "1.2x or more", gain >= 1.2))
        for policy in OWNER_POLICIES:
            ours = ratio(program, "stream", policy)
            what = f"{title}, {policy} to stream"
            found.append((what, "loses its advantage", f"{ours:.2f}x", "below 1.0x", ours < 1.0))
    # The paper's ProFTPD is in a VM, here a loop device hides who asks.
    mb_s = here["ftp", "none"].mb_s
    near = within(mb_s, 17.1, 0.15)
    found.append(("ProFTPD, none", "17.1 MB/s", f"{mb_s:.1f} MB/s", "+-15 %", near))
    most = 100 * (ratio("ftp", "none", "stream") - 1)
    found.append(("ProFTPD, stream over none", "much", f"{most:+.0f} %", "+50 %", most >= 50))
    for policy in OWNER_POLICIES:
        gain = 100 * (ratio("ftp", "none", policy) - 1)
        what = f"ProFTPD, {policy} over none, to stream's gain"
        both = f"{gain:+.0f} to {most:+.0f} %"
        found.append((what, "limited, if any", both, "half or less", gain <= most / 2))
    return [Row(*one) for one in found]


def show(found: Sequence[Row], console: Console) -> None:
    """The rows, and their count."""
    console.print(figure_table(TITLE, found))
    console.print(f"{sum(row.agrees for row in found)} of {len(found)} agree")


def measure(words: Sequence[str]) -> None:
    """The programs in the rig; print the rows, and fail when one differs."""
    _, at_once = asked("reproduction-programs", words)
    for program in PROGRAMS.values():
        program.check()
    rigs = Rigs(at_once, "real programs", len(PROGRAMS) * len(POLICIES.split(",")))
    cells: list[Cell] = []
    with rigs.progress:
        for name, program in PROGRAMS.items():
            cells += cells_of(name, program, rigs, POLICIES, [(DEPTH, PATH)])
    found = rows(cells)
    show(found, trimmed())
    if not all(row.agrees for row in found):
        raise StreamschedError(
            'docs/research/REPRODUCTION.md says why rows differ, under "By real programs"'
        )
