# SPDX-License-Identifier: GPL-2.0-only
"""The command study: many simulations, kept as they come, and what they say together."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from rich.console import Console

from streamsched.base.errors import StreamschedError, UsageError, install, printable
from streamsched.base.files import STDOUT, is_folder
from streamsched.base.progress import nr_jobs
from streamsched.cli.options import FOLDER, ParallelOption, argument, flag, path_option

WIDTH = 80


def study(
    what: Annotated[
        Path,
        argument(
            "STUDY.toml",
            "a study",
            "A study (docs/sim/STUDY.md), or with --table its results.",
            make=Path,
        ),
    ],
    to: Annotated[
        Path | None,
        path_option("--to", FOLDER, "Where the results are, and go; the same command goes on."),
    ] = None,
    table: Annotated[
        bool, flag("--table", "Print what results say, with intervals over the seeds.")
    ] = False,
    dry_run: Annotated[bool, flag("--dry-run", "Check it all and say what it would cost.")] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="tcp://HOST:PORT",
            help="A scheduler of dask.distributed, whose workers compute.",
        ),
    ] = None,
    parallel: ParallelOption = 0,
) -> None:
    """Simulate policies x workloads x disks x seeds, on many machines."""
    _check_installed()
    if is_folder(what):
        if not table:
            raise UsageError(f"{what}: {_what_folder(what)}")
        if to or dry_run or cluster:
            raise UsageError(f"{what}: is results; only --table goes with them")
        _print(what)
        return
    if to is None and not dry_run:
        raise UsageError(f"{what}: where do the results go? name a place with --to")
    if to == STDOUT:
        raise UsageError("--to -: results of a study are a folder; name one")
    if cluster is not None and not _is_address(cluster):
        raise UsageError(f"--cluster {cluster}: write tcp://HOST:PORT, as `dask scheduler` says it")
    if cluster is not None and parallel:
        raise UsageError(f"--parallel {parallel}: not with --cluster, which has its own workers")
    _run(what, to, dry_run, cluster, nr_jobs(parallel))
    if table and to and not dry_run:
        _print(to)


def _what_folder(folder: Path) -> str:
    """Why it is no study."""
    from streamsched.study.store import is_results

    if is_results(folder):
        return "is results; add --table, or name a study"
    return "is a folder; name a study, which is a file"


def _is_address(text: str) -> bool:
    """Whether it says where to connect: a protocol that a scheduler prints, a host and a port."""
    try:
        parts = urlsplit(text)
        return bool(parts.scheme in ("tcp", "tls") and parts.hostname and parts.port)
    except ValueError:
        return False


def _check_installed() -> None:
    missing = [name for name in ("distributed", "pyarrow") if not importlib.util.find_spec(name)]
    if missing:
        raise UsageError(
            f"studies need {' and '.join(missing)}, which is not installed: {install('study')}"
        )


def _run(what: Path, to: Path | None, dry_run: bool, cluster: str | None, jobs: int) -> None:
    from streamsched.study.cost import duration, estimate
    from streamsched.study.plan import read_plan
    from streamsched.study.run import check_cluster, run_study
    from streamsched.study.store import check_folder, finished, opened

    def say(text: str) -> None:
        print(f"streamsched: {printable(text)}", file=sys.stderr)

    plan = read_plan(what)
    if to is not None:
        check_folder(to)
    if cluster is not None:
        check_cluster(cluster)
    if dry_run:
        cost = estimate(plan, finished(to) if to else set())
        print(
            f"{cost.cells} simulations, {cost.left} of them to do: about "
            f"{duration(cost.processor_s)} of one processor, {duration(cost.processor_s / jobs)} "
            f"on {jobs}"
        )
        return
    assert to is not None
    with opened(to, plan) as store:
        cost = estimate(plan, store.done)
        if not cost.left:
            store.write_part()
            say(f"all {cost.cells} simulations are in {to}")
            return
        where = cluster or f"{jobs} processor{'s' if jobs > 1 else ''}"
        time = duration(cost.processor_s / (1 if cluster else jobs))
        of_one = " of one processor" if cluster else ""
        say(f"{cost.left} of {cost.cells} simulations on {where}: about {time}{of_one}")
        try:
            failures = run_study(plan, store, jobs, cluster, Console(stderr=True))
        except KeyboardInterrupt:
            store.write_part()
            say(
                f"interrupted; {len(store.done)} of {cost.cells} simulations are in {to}, "
                "and the same command goes on"
            )
            raise typer.Exit(130) from None
        store.write_part()
        if failures.nr:
            first = "\n".join(failures.first)
            raise StreamschedError(
                f"{failures.nr} of {cost.cells} simulations failed; the others are in {to}\n{first}"
            )
        say(f"all {cost.cells} simulations are in {to}")


def _print(folder: Path) -> None:
    from streamsched.study.store import read_mark, read_results
    from streamsched.study.summary import print_summary

    rows = read_results(folder)
    if not rows:
        raise UsageError(f"{folder}: has no results yet")
    print_summary(
        rows,
        read_mark(folder)["policies"],
        Console(highlight=False, markup=False, emoji=False, width=WIDTH),
    )
