# SPDX-License-Identifier: GPL-2.0-only
"""Results as tables for people, and as JSON, CSV and fio's JSON for programs."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamsched.base.console import CONSOLE_COLUMNS, trimmed
from streamsched.sim.compare import Comparison
from streamsched.sim.policies import check_spec
from streamsched.sim.simulate import Buckets, Run, Setup, Times

# Raised when a key changes its meaning or goes; docs/sim/RESULTS.md describes it.
JSON_VERSION = 1
# Wider than any table.
MUCH = 1000
# So wide is the column of policies where rows that are alike have names in it, or as one name.
MOST_NAMES = 21
# Columns of the main table that a narrow one leaves out, the last ones first.
EXPLAINING: dict[str, Callable[[Run], str]] = {
    "seeks\n/s": lambda run: f"{run.seeks_s:,.1f}",
    "switch\nms": lambda run: f"{run.switch_ms:.2f}",
    "idle\n%": lambda run: f"{100 * run.idle_share:.1f}",
    "waits": lambda run: str(run.counters["waits"]),
    "hits": lambda run: str(run.counters["hits"]),
    "time-\nouts": lambda run: str(run.counters["timeouts"]),
}
TIME_KEYS = ("mean", "p50", "p99", "p999", "max")


def _ms(times: Times) -> dict[str, float]:
    return {key: round(getattr(times, key), 6) for key in TIME_KEYS}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _bins(buckets: Buckets) -> dict[str, list[Any]]:
    """A histogram as two lists."""
    return {
        "up_to_ms": [round(ns / 1e6, 6) for ns, _ in buckets],
        "count": [count for _, count in buckets],
    }


def _job_dict(comparison: Comparison, run: Run, number: int, bins: bool) -> dict[str, Any]:
    job = run.jobs[number]
    return {
        "name": job.name,
        "bytes_read": job.bytes_read,
        "bytes_written": job.bytes_written,
        "duration_s": round(job.duration_ns / 1e9, 9),
        "throughput_mb_s": round(job.rate / 1e6, 6),
        "share": _rounded(comparison.share(run, number)),
        "response_ms": _ms(job.response),
        "longest_wait_ms": round(job.longest_wait_ns / 1e6, 6),
        **({"response_histogram": _bins(job.histogram)} if bins else {}),
    }


def run_dict(comparison: Comparison, run: Run, bins: bool = False) -> dict[str, Any]:
    """One entry of runs[]; @bins: with histograms."""
    waits = {name: round(ns / 1e9, 9) for name, ns in run.reason_waits.items()}
    return {
        "policy": run.setup.shown,
        "throughput_mb_s": round(run.mb_s, 6),
        "efficiency": _rounded(comparison.efficiency(run)),
        "least_share": _rounded(comparison.least_share(run)),
        "duration_s": round(run.seconds, 9),
        "bytes_read": run.bytes_read,
        "bytes_written": run.bytes_written,
        "disk_requests": run.disk_requests,
        "wait_ms": _ms(run.wait),
        "service_ms": _ms(run.service),
        "response_ms": _ms(run.response),
        "seeks_per_s": round(run.seeks_s, 6),
        "switches": run.switches,
        "switch_ms": round(run.switch_ms, 6),
        "idle_share": round(run.idle_share, 6),
        "hits": run.counters["hits"],
        "timeouts": run.counters["timeouts"],
        "counters": run.counters,
        **({"reasons": run.reasons, "reason_waits_s": waits} if run.reasons else {}),
        **({"array_counters": run.array_counters} if run.setup.array else {}),
        **({"choices": [dataclasses.asdict(one) for one in run.choices]} if run.choices else {}),
        "skipped_records": run.skipped,
        **(
            {f"{name}_histogram": _bins(one) for name, one in run.histograms.items()}
            if bins
            else {}
        ),
        "jobs": [_job_dict(comparison, run, number, bins) for number in range(len(run.jobs))],
    }


def _tunables(run: Run) -> dict[str, int]:
    """Every tunable of a run's policy with the value it had; none of a kernel's scheduler."""
    if run.setup.path is not None:
        return {}
    rows = [row for policy in check_spec(run.setup.policy) for row in policy.tunables]
    given = dict(run.setup.tunables)
    return {row.name: given.get(row.name, row.initial) for row in rows}


def _array(setup: Setup) -> dict[str, Any]:
    if setup.array is None:
        return {}
    return {"array": str(setup.array), "disks": [disk.name for disk in setup.members]}


def comparison_dict(comparison: Comparison, work: str, origin: Mapping[str, Any]) -> dict[str, Any]:
    """The whole JSON document. It holds nothing but inputs and results: no clock, no host.

    @origin: the program and hashes of what it read.
    """
    setup = comparison.runs[0].setup if comparison.runs else None
    return {
        "format": "streamsched-results",
        "version": JSON_VERSION,
        **origin,
        "work": work,
        "complete": not (comparison.interrupted or comparison.failed),
        "setup": None
        if setup is None
        else {
            "disk": setup.disk.name,
            **_array(setup),
            "owners": setup.owners,
            "queue_depth": setup.queue_depth,
            "curve": setup.curve,
            **({} if setup.path is None else {"path": setup.path}),
        },
        "alone_mb_s": {str(n): round(r / 1e6, 6) for n, r in sorted(comparison.alone.items())},
        "runs": [
            {**run_dict(comparison, run, bins=True), "tunables": _tunables(run)}
            for run in comparison.runs
        ],
    }


def several_dict(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON document of several results, which holds each one's whole."""
    return {
        "format": "streamsched-results",
        "version": JSON_VERSION,
        "complete": all(document["complete"] for document in documents),
        "results": list(documents),
    }


def json_text(document: Mapping[str, Any]) -> str:
    """The JSON document, as text; the numbers of a histogram stand in one line."""
    text = json.dumps(document, indent=2)

    def one_line(numbers: re.Match[str]) -> str:
        return "[" + " ".join(numbers[0].strip("[]").split()) + "]"

    return re.sub(r"\[\n[-\d.,\s]+\]", one_line, text) + "\n"


def csv_rows(
    comparison: Comparison, work: str, origin: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """A row per policy, each with what it is of; the units are in the column names."""
    for run in comparison.runs:
        setup = run.setup
        row: dict[str, Any] = {
            "work": work,
            "seed": origin["seed"],
            "disk": setup.disk.name,
            "array": str(setup.array or ""),
            "owners": setup.owners,
            "queue_depth": setup.queue_depth,
            "path": setup.path or "",
        }
        for key, value in run_dict(comparison, run).items():
            if key in (
                "jobs",
                "counters",
                "reasons",
                "reason_waits_s",
                "array_counters",
                "choices",
            ):
                continue
            if isinstance(value, dict):
                row.update({f"{key}_{inner}": v for inner, v in value.items()})
            else:
                row[key] = value
        row.update({f"counter_{k}": v for k, v in run.counters.items()})
        row.update({f"array_{k}": v for k, v in run.array_counters.items()})
        yield row


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """@rows under a heading with the columns of all."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(chain(*rows))), lineterminator="\n")
    if rows:
        writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def _part(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def plain_table(title: str | None = None) -> Table:
    """The look of all our tables: rows of text, one line under the heading."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


def _policy_table(
    comparison: Comparison, columns: Sequence[str], rows: Callable[[Run], list[list[str]]]
) -> Table:
    """A table of each policy's @rows; where all are alike to the digit, once: "noop = deadline"."""
    alike: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for run in comparison.runs:
        alike.setdefault(tuple(map(tuple, rows(run))), []).append(run.setup.shown)
    table = plain_table()
    longest = max((len(run.setup.shown) for run in comparison.runs), default=0)
    table.add_column("policy", max_width=max(longest, MOST_NAMES))
    for column in columns:
        left = column.endswith("process")
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    for cells, names in alike.items():
        for number, row in enumerate(cells):
            table.add_row(" = ".join(names) if number == 0 else "", *row)
    return table


def main_table(comparison: Comparison, left_out: int = 0) -> Table:
    """Throughput, what each had of it, and what explains it, one line per policy.

    Without the last @left_out of EXPLAINING.
    """
    first = comparison.runs[0].mb_s if comparison.runs else 0.0
    cells: dict[str, Callable[[Run], str]] = {
        "MB/s": lambda run: _number(run.mb_s, 2),
        "gain": lambda run: f"x{run.mb_s / first:.2f}" if first else "-",
        "effi-\nciency": lambda run: _part(comparison.efficiency(run), 3),
        "least\nshare": lambda run: _part(comparison.least_share(run)),
        "p99\nms": lambda run: f"{run.response.p99:.1f}",
        "max\nms": lambda run: f"{run.response.max:.1f}",
        "dura-\ntion s": lambda run: _number(run.seconds, 2),
        **dict(list(EXPLAINING.items())[: len(EXPLAINING) - left_out]),
    }
    return _policy_table(
        comparison, list(cells), lambda run: [[cell(run) for cell in cells.values()]]
    )


def times_table(comparison: Comparison, left_out: int = 0) -> Table:
    """Wait, service and response times in ms, without @left_out of mean and p50."""
    keys = [key for key in ("mean", "p50", "p99", "max") if key not in ("p50", "mean")[:left_out]]

    def cells(run: Run) -> list[str]:
        groups = (run.wait, run.service, run.response)
        return [f"{getattr(times, key):.1f}" for times in groups for key in keys]

    columns = [
        f"{group if key == keys[0] else ''}\n{key}"
        for group in ("wait", "service", "response")
        for key in keys
    ]
    return _policy_table(comparison, columns, lambda run: [cells(run)])


def process_table(comparison: Comparison) -> Table:
    """What each process had, one line for each under each policy."""
    times = ("mean", "p50", "p99", "max")
    columns = ("process", "MB/s", "share", *times)
    heads = [f"{'response' if column == 'mean' else ''}\n{column}" for column in columns]
    return _policy_table(
        comparison,
        heads,
        lambda run: [
            [
                job.name,
                _number(job.rate / 1e6, 2),
                _part(comparison.share(run, number)),
                *(f"{getattr(job.response, key):.1f}" for key in times),
            ]
            for number, job in enumerate(run.jobs)
        ],
    )


def _needed(console: Console, table: Table) -> int:
    return console.measure(table, options=console.options.update(max_width=MUCH)).maximum


def widen(console: Console, *tables: Table) -> Console:
    """@console, as wide as @tables of numbers need it: none of those is cut off."""
    for table in tables:
        console.width = max(console.width, _needed(console, table))
    return console


def _fitted(console: Console, make: Callable[[int], Table], most: int) -> Table:
    """What @make makes with as little left out, up to @most, as there is room for.

    JSON and CSV have it all.
    """
    tables = map(make, range(most + 1))
    return next((one for one in tables if _needed(console, one) <= console.width), make(most))


def print_tables(
    comparison: Comparison, title: str, console: Console, by_process: bool = False
) -> None:
    """The tables, with what the columns mean; nothing in them is cut off."""
    main = _fitted(console, lambda out: main_table(comparison, out), len(EXPLAINING))
    times = _fitted(console, lambda out: times_table(comparison, out), 2)
    processes = process_table(comparison) if by_process else None
    widen(console, *filter(None, (main, times, processes)))
    console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(main)
    for run in comparison.runs:
        for choice in run.choices:
            console.print(
                f"{run.setup.shown}, {choice.at_s:.2f} s: {choice.policy} ({choice.why})",
                highlight=False,
                soft_wrap=True,
            )
    console.print("\ntimes of the disk's requests, in ms:")
    console.print(times)
    if processes:
        console.print("\nthe processes, response times in ms:")
        console.print(processes)
    if any(run.bytes_written and not run.disk_requests for run in comparison.runs):
        console.print(
            "\nwhat was written stayed in the page cache, so this is how fast memory is:\n"
            "with end_fsync=1 a job ends when its data is on the disk"
        )
    skipped = {run.skipped for run in comparison.runs if run.skipped}
    if skipped:
        nr = max(skipped)
        console.print(f"\n{nr} bad record{'s were' if nr > 1 else ' was'} skipped")
    if comparison.interrupted:
        console.print("\ninterrupted: only finished runs are shown")


def tables_text(
    comparison: Comparison, title: str, columns: int = CONSOLE_COLUMNS, by_process: bool = False
) -> str:
    """What print_tables() prints, as plain text."""
    file = io.StringIO()
    print_tables(comparison, title, trimmed(file, columns), by_process)
    return file.getvalue()
