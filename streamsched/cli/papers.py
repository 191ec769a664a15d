# SPDX-License-Identifier: GPL-2.0-only
"""The commands reproduce, compare and frontier: many runs, and what comes of all together."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer
from rich.console import Console

from streamsched.base.console import trimmed
from streamsched.base.errors import UsageError
from streamsched.base.files import check_output, target, write_whole
from streamsched.base.plotfile import check_plot
from streamsched.base.progress import nr_jobs
from streamsched.cli import complete
from streamsched.cli.options import ForceOption, ParallelOption, PlotOption, ToOption
from streamsched.cli.work import check_force
from streamsched.sim.policies import AUTO
from streamsched.sim.results import widen

# Figures 3 and 5 by real programs, which only a source tree runs.
PROGRAMS = "programs"
AUTO_DOCUMENT = """\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
# auto beside the best fixed policy

Written by `make results WHAT=auto`; do not edit. What the rows are, and why some fail:
[AUTO.md](../guide/AUTO.md#is-it-as-good-as-the-best-fixed-policy).

```text
{}
```
"""


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIGURE",
            autocompletion=complete.figures,
            help="fig3, fig4, fig5, fig6, fig7, love, seelam, profiles, share, micro, sense, all, "
            "or auto.",
        ),
    ] = None,
    to: ToOption = None,
    force: ForceOption = False,
    parallel: ParallelOption = 0,
) -> None:
    """Repeat the papers' experiments, and say where they agree."""
    from streamsched.papers import reproduce as papers

    if figures and AUTO in figures and len(figures) > 1:
        raise UsageError("auto: is no figure of a paper; name it by itself")
    if figures and PROGRAMS in figures:
        raise UsageError(
            f"{PROGRAMS}: real ones run in the rig of a source tree; "
            "there, `.venv/bin/python bench/table.py reproduction-programs` does it"
        )
    check_force(force, to)
    document = target(to, force)
    if figures == [AUTO]:
        from streamsched.papers.selection import reproduce_auto

        check_output(document)
        printed = io.StringIO() if document else None
        held = reproduce_auto(nr_jobs(parallel), trimmed(printed))
        if document and printed:
            lines = [line.rstrip() for line in printed.getvalue().strip().splitlines()]
            write_whole(document, AUTO_DOCUMENT.format("\n".join(lines)))
        elif not held:
            trimmed().print("docs/guide/AUTO.md says what the rows are and why some fail.")
            raise typer.Exit(1)
    elif document:
        papers.chosen(figures or ["all"])
        check_output(document)
        found = papers.measure(figures or ["all"], nr_jobs(parallel))
        write_whole(document, papers.document(found))
    elif not papers.reproduce(figures or ["all"], nr_jobs(parallel), trimmed()):
        raise typer.Exit(1)


def compare_all(
    works: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORKLOAD",
            autocompletion=complete.jobs,
            help="Job files without .fio, or what `streamsched list workloads` has; unset: all.",
        ),
    ] = None,
    to: ToOption = None,
    force: ForceOption = False,
    parallel: ParallelOption = 0,
) -> None:
    """Run every policy on every workload; print tables in Markdown."""
    from streamsched.papers import comparison

    check_force(force, to)
    document = target(to, force)
    check_output(document)
    chosen = list(dict.fromkeys(works or comparison.workloads()))
    table = comparison.measure(chosen, nr_jobs(parallel), Console(stderr=True))
    settings = comparison.measure_settings(table, nr_jobs(parallel), Console(stderr=True))
    if document is None:
        sys.stdout.write(comparison.printed(table, settings))
    else:
        write_whole(document, comparison.document(table, settings))


def frontier(
    plot: PlotOption = None,
    force: ForceOption = False,
    parallel: ParallelOption = 0,
) -> None:
    """Show how near stream comes to what a disk allows."""
    from streamsched.papers import frontier as limits

    check_force(force, plot)
    picture = target(plot, force)
    check_plot(picture)
    cases = limits.auto_cases()
    if plot:
        cases += limits.fixed_cases()
    points = limits.measure(cases, nr_jobs(parallel), Console(stderr=True))
    auto = [point for point in points if point.case.target_ms]
    console = trimmed()
    table = limits.table(auto)
    widen(console, table).print(table)
    good = sum(point.reaches and point.in_time for point in auto)
    console.print(
        f"{good} of {len(auto)} are within 5 % of the frontier, "
        "with the longest wait within the target, one slice and one service time"
    )
    if picture:
        limits.plot(points, picture)
