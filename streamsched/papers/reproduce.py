# SPDX-License-Identifier: GPL-2.0-only
"""The papers' experiments again, and how far they agree.

paper_xu.py, paper_seelam.py and paper_iyer.py say what is simulated and by which rule a row
agrees; docs/research/REPRODUCTION.md explains the rows that do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from streamsched.base.errors import Interrupted, unknown
from streamsched.papers import iyer as paper_iyer
from streamsched.papers import seelam as paper_seelam
from streamsched.papers import xu as paper_xu
from streamsched.sim.experiment import (
    HEADINGS,
    PAPER_STREAM,
    Case,
    Figure,
    Row,
    Runs,
    case_task,
    figure_table,
)
from streamsched.sim.tasks import run_tasks

__all__ = [
    "FIGURES",
    "PAPER_STREAM",
    "Case",
    "Row",
    "Runs",
    "document",
    "headline",
    "measure",
    "simulate_cases",
]

Found = dict[str, list[Row]]  # by figure

FIGURES: dict[str, Figure] = {
    **paper_xu.FIGURES,
    **paper_seelam.FIGURES,
    **paper_iyer.FIGURES,
}

# What the command has besides the figures in the simulator (cli_papers.py).
BY_THEMSELVES = ("auto", "programs")


def chosen(names: Sequence[str]) -> list[str]:
    """The figures of these names, `all` among them; or UsageError."""
    found: list[str] = []
    for name in names:
        if name != "all" and name not in FIGURES:
            raise unknown("figure", name, [*FIGURES, "all", *BY_THEMSELVES])
        found += [key for key in FIGURES if name in ("all", key) and key not in found]
    return found


def simulate_cases(cases: Sequence[Case], jobs: int, console: Console) -> Runs:
    """All cases, each once, in parallel."""
    distinct = list(dict.fromkeys(cases))
    results, interrupted = run_tasks(
        [case_task(case) for case in distinct], jobs, console, together="experiments"
    )
    if interrupted:
        raise Interrupted("interrupted before there was a result")
    return {case: run for case, run in zip(distinct, results, strict=True) if run}


def measure(names: Sequence[str], jobs: int) -> Found:
    """The rows of the figures of these names."""
    keys = chosen(names)
    cases = [case for key in keys for case in FIGURES[key].cases()]
    runs = simulate_cases(cases, jobs, Console(stderr=True))
    return {key: FIGURES[key].rows(runs) for key in keys}


def counted(found: Found) -> list[Row]:
    """The rows that could fail, of all figures."""
    return [row for rows in found.values() for row in rows if not row.idle]


def headline(found: Found) -> str:
    """How many rows agree, of those that could fail."""
    rows = counted(found)
    apart = sum(len(all_of) for all_of in found.values()) - len(rows)
    more = f"; {apart} more cannot fail" if apart else ""
    return f"{sum(row.agrees for row in rows)} of {len(rows)} agree{more}"


# For who sees rows that differ and has not read the document.
REASONS = (
    "Rows differ because layout of files and think times are estimates, and the paper's disk and "
    "kernel were others; each is explained in docs/research/REPRODUCTION.md under "
    '"Why rows differ".'
)

# What a table with all columns needs to be read.
ALL_COLUMNS = 110


def _title(key: str) -> str:
    figure = FIGURES[key]
    return f"{figure.title} ({figure.source}), on {figure.disk}"


def reproduce(names: Sequence[str], jobs: int, console: Console) -> bool:
    """Print each figure's rows and the count; True when every row that could fail agrees.

    Where rules and models come from has columns of its own only where there is room.
    """
    found = measure(names, jobs)
    wide = console.width >= ALL_COLUMNS
    for key, rows in found.items():
        for some in ([r for r in rows if not r.idle], [r for r in rows if r.idle]):
            if some:
                origin = FIGURES[key].origin if wide else None
                console.print(figure_table(_title(key), some, origin))
    console.print(headline(found))
    agree = all(row.agrees for row in counted(found))
    if not agree:
        console.print(REASONS)
    return agree


PREFACE = """<!-- SPDX-License-Identifier: GPL-2.0-only -->
# The papers' figures and ours

Written by `make results WHAT=reproduction`; do not edit. What is
simulated, what the columns mean, and why rows differ:
[REPRODUCTION.md](../research/REPRODUCTION.md).

"""


def _markdown(rows: Sequence[tuple[str, ...]], headings: Sequence[str]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def document(found: Found) -> str:
    """docs/results/reproduction.md."""
    parts = [PREFACE, f"**{headline(found)}.**\n"]
    for key, rows in found.items():
        origin = FIGURES[key].origin
        counts = headline({key: rows})
        cells = [origin.cells(row) for row in rows if not row.idle]
        parts.append(f"\n## {key}: {_title(key)}\n\n{counts}\n\n{_markdown(cells, HEADINGS)}")
    apart = [
        (key, row.what, row.paper, row.ours, row.idle)
        for key, rows in found.items()
        for row in rows
        if row.idle
    ]
    if apart:
        table = _markdown(apart, ("figure", "what", "paper", "ours", "why it cannot fail"))
        parts.append(f"\n## Rows that cannot fail\n\nNot counted.\n\n{table}")
    return "".join(parts)
