# SPDX-License-Identifier: GPL-2.0-only
"""The panels of a report, and what is drawn of a result."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any

from streamsched.report.figures import (
    LEGEND,
    Figure,
    Panel,
    Run,
    Section,
    axis,
    colour,
    figure,
    known,
    line,
    rounded,
    short,
)
from streamsched.report.time import positions, queue, seeks, throughput
from streamsched.sim.series import MOST

NO_HISTOGRAMS = "The result has no histograms of these; make it again with --output json"
NO_REASONS = "The result has no reasons of dispatches, which the simulator of this version counts"
NOT_SEEN = (
    "A result does not have each request: give streamsched report the job file or the trace to "
    "see these"
)


def gain(runs: Sequence[Run], run: Run) -> float | None:
    """Its throughput over that of the first policy."""
    first = runs[0]["throughput_mb_s"]
    return known(run["throughput_mb_s"] / first) if first else None


def figures_of_merit(runs: Sequence[Run]) -> dict[str, list[float | None]]:
    """What policies are compared by: a name with its unit, and each run's value."""
    return {
        "throughput, MB/s": [run["throughput_mb_s"] for run in runs],
        "gain over the first": [gain(runs, run) for run in runs],
        "efficiency": [run["efficiency"] for run in runs],
        "least share": [run.get("least_share") for run in runs],
        **({"regret": [run.get("regret") for run in runs]} if "regret" in runs[0] else {}),
        "p99 of response times, ms": [run["response_ms"]["p99"] for run in runs],
        "longest response, ms": [run["response_ms"]["max"] for run in runs],
    }


def _policies(runs: Sequence[Run]) -> dict[str, Any]:
    """The axis of the policies, the first at the top."""
    return {
        "automargin": True,
        "autorange": "reversed",
        "tickmode": "array",
        "tickvals": list(range(len(runs))),
        "ticktext": [short(run["policy"]) for run in runs],
    }


def _merits(section: Section) -> Panel:
    runs = section.runs
    colours = [colour(number, len(runs)) for number in range(len(runs))]
    figures = []
    unknown = []
    for name, values in figures_of_merit(runs).items():
        if all(value is None for value in values):
            unknown.append(name)
            continue
        bars = {
            "type": "bar",
            "name": name,
            "orientation": "h",
            "x": values,
            "y": list(range(len(runs))),
            "marker": {"color": colours},
            "texttemplate": "%{x:.4~g}",
            "textangle": 0,
            "hovertext": [html.escape(run["policy"]) for run in runs],
            "hovertemplate": "%{hovertext}: %{x}<extra></extra>",
        }
        figures.append(figure([bars], 96 + 26 * len(runs), axis(name), _policies(runs)))
    note = f"Not known: {', '.join(unknown)}, which needs rates of processes alone."
    return Panel("The policies", tuple(figures), note if unknown else "")


def _shares(section: Section) -> Panel:
    title = "Shares of the processes"
    runs = section.runs
    jobs = runs[0]["jobs"]
    if not jobs or any(job.get("share") is None for run in runs for job in run["jobs"]):
        return Panel(title, note="No rate of a process alone is known")
    data = [
        {
            "type": "bar",
            "name": html.escape(run["policy"]),
            "x": list(range(len(run["jobs"]))),
            "y": rounded(job["share"] * len(run["jobs"]) for job in run["jobs"]),
            "marker": {"color": colour(number, len(runs))},
            "hovertext": [html.escape(job["name"]) for job in run["jobs"]],
            "hovertemplate": "%{hovertext}, number %{x}: %{y:.3f}",
        }
        for number, run in enumerate(runs)
    ]
    ticks: dict[str, Any] = {"dtick": 1} if len(jobs) <= LEGEND else {}
    if len({job["name"] for job in jobs}) > 1 and len(jobs) <= LEGEND:
        ticks = {
            "tickvals": list(range(len(jobs))),
            "ticktext": [short(job["name"]) for job in jobs],
        }
    level = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1}
    shapes = [{**level, "line": {"width": 1, "dash": "dot", "color": "#888"}}]
    x, y = axis("process", **ticks), axis("share times processes", rangemode="tozero")
    note = "1 is an equal part of the disk: the process's rate is 1/n of its rate alone."
    return Panel(title, (figure(data, 320, x, y, shapes=shapes),), note)


def cumulative(histogram: dict[str, Any], most: int) -> tuple[list[float], list[float]]:
    """The buckets' ends and the percentage up to there; of more than @most, each nth."""
    ends, counts = histogram["up_to_ms"], histogram["count"]
    total, so_far, parts = sum(counts) or 1, 0, []
    for count in counts:
        so_far += count
        parts.append(round(100 * so_far / total, 6))
    step = -(-(len(ends) - 1) // max(1, most - 1)) or 1
    chosen = sorted({*range(0, len(ends), step), len(ends) - 1} if ends else ())
    return [ends[n] for n in chosen], [parts[n] for n in chosen]


def _latency_axes() -> tuple[Any, Any]:
    x = axis("response time, ms", type="log")
    return x, axis("at most so long, %", range=[0, 101])


def _latencies(section: Section) -> Iterator[Panel]:
    runs = section.runs
    title = "Response times of the disk's requests"
    if all("response_histogram" in run for run in runs):
        data = [
            line(number, runs, *cumulative(run["response_histogram"], MOST // len(runs)))
            for number, run in enumerate(runs)
        ]
        for one in data:
            one["line"]["shape"] = "hv"
        yield Panel(title, (figure(data, 340, *_latency_axes()),))
    else:
        yield Panel(title, note=NO_HISTOGRAMS)
    title = "Response times that the processes saw"
    jobs = [job for run in runs for job in run["jobs"]]
    if not jobs:
        yield Panel(title, note="A trace has no processes")
    elif all("response_histogram" in job for job in jobs):
        data = []
        for number, run in enumerate(runs):
            for process, job in enumerate(run["jobs"]):
                ends, parts = cumulative(job["response_histogram"], MOST // len(jobs))
                one = line(number, runs, ends, parts, legendgroup=str(number))
                one["line"] |= {"shape": "hv", "width": 1}
                one["showlegend"] = process == 0
                label = html.escape(f"{job['name']} ({process})")
                one["hovertemplate"] = f"{label}: %{{y:.2f}} % within %{{x}} ms"
                data.append(one)
        yield Panel(title, (figure(data, 340, *_latency_axes()),))
    else:
        yield Panel(title, note=NO_HISTOGRAMS)


def _reasons(section: Section) -> Iterator[Panel]:
    runs = section.runs

    def stacked(parts: dict[str, list[Any]], title: str) -> Figure:
        data: list[dict[str, Any]] = [
            {
                "type": "bar",
                "orientation": "h",
                "name": html.escape(name),
                "x": counts,
                "y": list(range(len(runs))),
                "marker": {"color": colour(number, len(parts))},
                "hovertemplate": "%{x}",
            }
            for number, (name, counts) in enumerate(parts.items())
        ]
        height = 120 + 26 * len(runs)
        return figure(data, height, axis(title), _policies(runs), barmode="stack")

    def of(key: str, name: str) -> list[Any]:
        return [run[key].get(name, 0) for run in runs]

    title = "Dispatches by reason"
    used: dict[str, list[int]] = {}
    if all("reasons" in run for run in runs):
        names = dict.fromkeys(name for run in runs for name in run["reasons"])
        used = {name: of("reasons", name) for name in names if any(of("reasons", name))}
        yield Panel(title, (stacked(used, "dispatches"),))
    else:
        yield Panel(title, note=NO_REASONS)
    title = "Waits of requests by reason"
    if used and all("reason_waits_s" in run for run in runs):
        drawn = stacked({name: of("reason_waits_s", name) for name in used}, "waited, s")
        for one, counts in zip(drawn["data"], used.values(), strict=True):
            one["customdata"] = counts
            one["hovertemplate"] = "%{x:.3f} s, of %{customdata:,} requests"
        note = "From arrival to dispatch, the sum of the requests dispatched for each reason."
        yield Panel(title, (drawn,), note)
    else:
        yield Panel(title, note=NO_REASONS)
    title = "Waits of the head, with requests pending, by their ends"
    counters = [run["counters"] for run in runs]
    ends = {name: [one[name] for one in counters] for name in ("hits", "timeouts")}
    ends["otherwise"] = [max(0, c["waits"] - c["hits"] - c["timeouts"]) for c in counters]
    if any(any(counts) for counts in ends.values()):
        yield Panel(title, (stacked({n: c for n, c in ends.items() if any(c)}, "waits"),))
    else:
        yield Panel(title, note="No policy held the head")


def panels(section: Section) -> Iterator[Panel]:
    """All there are, in the order of the page; one without figures says why it has none."""
    yield _merits(section)
    yield _shares(section)
    yield from _latencies(section)
    series = section.series
    seen = series is not None and any(one.all_rows for one in series)
    for title, make in (
        ("Seek distances", seeks),
        ("Throughput over time", throughput),
        ("Head position", positions),
        ("Queue depth", queue),
    ):
        if series is not None and seen:
            yield make(section, series)
        elif series is not None:
            yield Panel(title, note="No request came to a disk")
        else:
            yield Panel(title, note=NOT_SEEN)
        if title == "Seek distances":
            yield from _reasons(section)
