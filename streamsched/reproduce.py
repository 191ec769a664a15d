# SPDX-License-Identifier: GPL-2.0-only
"""The papers' experiments again, and how far they agree.

paper_xu.py, paper_seelam.py and paper_iyer.py say what is simulated and by which rule a row
agrees; docs/REPRODUCTION.md explains the rows that do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from streamsched import paper_iyer, paper_seelam, paper_xu
from streamsched.compare import run_tasks
from streamsched.errors import Interrupted, unknown
from streamsched.experiment import STREAM, Case, Figure, Row, Runs, case_task, figure_table

__all__ = ["FIGURES", "STREAM", "Case", "Row", "Runs", "reproduce", "simulate_cases"]

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


def reproduce(names: Sequence[str], jobs: int, console: Console) -> bool:
    """Print each figure's rows and the count; True when every row agrees."""
    keys = chosen(names)
    cases = [case for key in keys for case in FIGURES[key].cases()]
    runs = simulate_cases(cases, jobs, Console(stderr=True))
    all_rows: list[Row] = []
    for key in keys:
        figure = FIGURES[key]
        rows = figure.rows(runs)
        console.print(figure_table(f"{figure.title} ({figure.source}), on {figure.disk}", rows))
        all_rows += rows
    agreeing = sum(row.agrees for row in all_rows)
    console.print(f"{agreeing} of {len(all_rows)} agree")
    return agreeing == len(all_rows)
