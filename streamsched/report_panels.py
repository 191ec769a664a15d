# SPDX-License-Identifier: GPL-2.0-only
"""The panels of a report, as figures of plotly.js: what is drawn of a result and of its series."""

from __future__ import annotations

import colorsys
import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamsched.series import INTERVALS, MOST, Array, Series

Figure = dict[str, Any]
Run = dict[str, Any]

# Tableau's, which are told apart on white and on black.
COLOURS = [
    "#4e79a7",
    "#f28e2b",
    "#e15759",
    "#76b7b2",
    "#59a14f",
    "#edc948",
    "#b07aa1",
    "#ff9da7",
    "#9c755f",
    "#8f8f8f",
]
LEGEND = 12  # more names than these are told by pointing only
SHORT = 18  # characters of a name beside an axis
NOBODY = 2**32 - 1  # has requests of an array that belong to no process
SIZES = ["1 kB", "10 kB", "100 kB", "1 MB", "10 MB", "100 MB", "1 GB", "10 GB", "100 GB", "1 TB"]
NOT_SEEN = "to see it, give streamsched report the job file or the trace"


@dataclass(frozen=True)
class Section:
    """One input: its result, and what the requests show over time (None: not known)."""

    title: str
    document: dict[str, Any]
    names: Sequence[str] = ()  # the processes'
    series: Sequence[Series] | None = None

    @property
    def runs(self) -> list[Run]:
        """Of each policy."""
        runs: list[Run] = self.document["runs"]
        return runs

    def sender(self, number: int) -> str:
        """Who sent a request, for a legend: a process, an owner in a trace, an array."""
        if number == NOBODY:
            return "the array, to place heads"
        name = self.names[number] if number < len(self.names) else ""
        return f"{name if len(name) <= SHORT else name[: SHORT - 1] + '…'} ({number})".strip()


@dataclass(frozen=True)
class Panel:
    """Figures side by side, or a sentence in their place."""

    title: str
    figures: tuple[Figure, ...] = ()
    note: str = ""


def colour(number: int, nr: int) -> str:
    """Of one of @nr policies or processes."""
    if nr <= len(COLOURS):
        return COLOURS[number]
    parts = colorsys.hls_to_rgb(number / nr, (0.45, 0.6)[number % 2], 0.6)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def short(name: str) -> str:
    """A name beside an axis; what plotly would take for HTML is shown as it is."""
    return html.escape(name if len(name) <= SHORT else name[: SHORT - 1] + "…")


def rounded(values: Any) -> list[float]:
    """Six digits behind the point, as in the results."""
    return [round(float(value), 6) for value in values]


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}, "automargin": True, **more}


def _figure(data: list[Any], height: int, x: Any, y: Any, **more: Any) -> Figure:
    return {
        "data": data,
        "layout": {
            "height": height,
            "margin": {"l": 10, "r": 10, "t": 10, "b": 10},
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 1.02,
                "yanchor": "bottom",
                "traceorder": "normal",
                "itemsizing": "constant",
            },
            "xaxis": x,
            "yaxis": y,
            **more,
        },
    }


def gain(runs: Sequence[Run], run: Run) -> float | None:
    """Its throughput over that of the first policy."""
    first = runs[0]["throughput_mb_s"]
    return round(run["throughput_mb_s"] / first, 6) if first else None


def figures_of_merit(runs: Sequence[Run]) -> dict[str, list[float | None]]:
    """What policies are compared by: a name with its unit, and each run's value."""
    return {
        "throughput, MB/s": [run["throughput_mb_s"] for run in runs],
        "gain over the first": [gain(runs, run) for run in runs],
        "efficiency": [run["efficiency"] for run in runs],
        "least share": [run.get("least_share") for run in runs],
        "p99 of response times, ms": [run["response_ms"]["p99"] for run in runs],
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
        figures.append(_figure([bars], 96 + 26 * len(runs), _axis(name), _policies(runs)))
    note = f"Not known: {', '.join(unknown)}, which needs rates of processes alone."
    return Panel("The policies", tuple(figures), note if unknown else "")


def _shares(section: Section) -> Panel:
    title = "Shares of the processes"
    runs = section.runs
    jobs = runs[0]["jobs"]
    if not jobs or any(job.get("share") is None for run in runs for job in run["jobs"]):
        return Panel(title, note="The result has no shares: no rate of a process alone is known.")
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
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1}
    shapes = [{**line, "line": {"width": 1, "dash": "dot", "color": "#888"}}]
    x, y = _axis("process", **ticks), _axis("share times processes", rangemode="tozero")
    note = "1 is an equal part of the disk: the process's rate is 1/n of its rate alone."
    return Panel(title, (_figure(data, 320, x, y, shapes=shapes),), note)


def cumulative(histogram: dict[str, Any], most: int) -> tuple[list[float], list[float]]:
    """The buckets' ends and the percentage up to there; of more than @most, each nth."""
    ends, counts = histogram["up_to_ms"], histogram["count"]
    total, so_far, parts = sum(counts), 0, []
    for count in counts:
        so_far += count
        parts.append(round(100 * so_far / total, 6))
    step = -(-(len(ends) - 1) // max(1, most - 1)) or 1
    chosen = sorted({*range(0, len(ends), step), len(ends) - 1} if ends else ())
    return [ends[n] for n in chosen], [parts[n] for n in chosen]


def _line(run: int, runs: Sequence[Run], x: Any, y: Any, **more: Any) -> dict[str, Any]:
    """Of one of @runs; of two that are the same the first, which is wider, is seen too."""
    width = 1.2 + 2.4 * (len(runs) - 1 - run) / max(4, len(runs))
    return {
        "type": "scatter",
        "mode": "lines",
        "name": html.escape(runs[run]["policy"]),
        "x": x,
        "y": y,
        "line": {"color": colour(run, len(runs)), "width": round(width, 2)},
        **more,
    }


def _latency_axes() -> tuple[Any, Any]:
    x = _axis("response time, ms", type="log")
    return x, _axis("at most so long, %", range=[0, 101])


def _latencies(section: Section) -> Iterator[Panel]:
    runs = section.runs
    title = "Response times of the disk's requests"
    if all("response_histogram" in run for run in runs):
        data = [
            _line(number, runs, *cumulative(run["response_histogram"], MOST // len(runs)))
            for number, run in enumerate(runs)
        ]
        yield Panel(title, (_figure(data, 340, *_latency_axes()),))
    else:
        yield Panel(title, note="The result has no histograms of these: --output json+ has them.")
    title = "Response times that the processes saw"
    jobs = [job for run in runs for job in run["jobs"]]
    if not jobs:
        yield Panel(title, note="A trace has no processes.")
    elif all("response_histogram" in job for job in jobs):
        data = []
        for number, run in enumerate(runs):
            for process, job in enumerate(run["jobs"]):
                ends, parts = cumulative(job["response_histogram"], MOST // len(jobs))
                one = _line(number, runs, ends, parts, legendgroup=str(number))
                one["line"]["width"] = 1
                one["showlegend"] = process == 0
                label = html.escape(f"{job['name']} ({process})")
                one["hovertemplate"] = f"{label}: %{{y:.2f}} % within %{{x}} ms"
                data.append(one)
        yield Panel(title, (_figure(data, 340, *_latency_axes()),))
    else:
        yield Panel(title, note="The result has no histograms of these: --output json+ has them.")


def _reasons(section: Section) -> Iterator[Panel]:
    runs = section.runs

    def stacked(parts: dict[str, list[int]], title: str) -> Figure:
        shown = {name: counts for name, counts in parts.items() if any(counts)}
        data = [
            {
                "type": "bar",
                "orientation": "h",
                "name": html.escape(name),
                "x": counts,
                "y": list(range(len(runs))),
                "marker": {"color": colour(number, len(shown))},
                "hovertemplate": "%{x}",
            }
            for number, (name, counts) in enumerate(shown.items())
        ]
        height = 120 + 26 * len(runs)
        return _figure(data, height, _axis(title), _policies(runs), barmode="stack")

    title = "Dispatches by reason"
    if all("reasons" in run for run in runs):
        names = dict.fromkeys(name for run in runs for name in run["reasons"])
        parts = {name: [run["reasons"].get(name, 0) for run in runs] for name in names}
        yield Panel(title, (stacked(parts, "dispatches"),))
    else:
        yield Panel(title, note="The result has no reasons: only this version's simulator counts.")
    title = "Waits of the head, with requests pending, by their ends"
    counters = [run["counters"] for run in runs]
    ends = {name: [one[name] for one in counters] for name in ("hits", "timeouts")}
    ends["otherwise"] = [max(0, c["waits"] - c["hits"] - c["timeouts"]) for c in counters]
    if any(any(counts) for counts in ends.values()):
        yield Panel(title, (stacked(ends, "waits"),))
    else:
        yield Panel(title, note="No policy made the head wait.")


def _time(series: Sequence[Series]) -> dict[str, Any]:
    """An axis that all panels share, so that what stands below each other is at the same time."""
    return _axis("time, s", range=[0, round(series[0].interval_ns * INTERVALS / 1e9, 6)])


def _facets(
    runs: Sequence[Run], data: list[list[Any]], x: dict[str, Any], unit: str, height: int
) -> Figure:
    """The policies one above the other, on the same axis of time; @data is of each."""
    part, lines, axes, labels = 1 / len(runs), [], {}, []
    for number, (run, own) in enumerate(zip(runs, data, strict=True)):
        low = 1 - (number + 1) * part
        high = low + part - 22 / (height * len(runs))
        name = f"y{number + 1 if number else ''}"
        axes[f"yaxis{name[1:]}"] = _axis(unit, domain=[round(low, 6), round(high, 6)])
        lines += [{**one, "yaxis": name} for one in own]
        label = {"text": html.escape(run["policy"]), "showarrow": False, "x": 0, "y": high}
        label |= {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        labels.append(label)
    y = axes.pop("yaxis")
    x = {**x, "anchor": name}
    return _figure(lines, 50 + height * len(runs), x, y, **axes, annotations=labels)


def _requests(rows: Array) -> dict[str, Any]:
    """Where and when, and what pointing tells."""
    waited = rows["dispatch_ns"] - rows["arrival_ns"]
    more = (rows["direction"], rows["nr_sectors"], waited, rows["disk"])
    return {
        "x": rounded(rows["start_ns"] / 1e9),
        "y": rounded(rows["sector"] * (512 / 1e9)),
        "customdata": [
            [("read", "write")[direction], sectors / 2, round(ns / 1e6, 3), disk]
            for direction, sectors, ns, disk in zip(*(one.tolist() for one in more), strict=True)
        ],
        "hovertemplate": "%{x} s, %{y} GB: %{customdata[0]} of %{customdata[1]} KiB, waited "
        "%{customdata[2]} ms, disk %{customdata[3]}",
    }


def _positions(section: Section, series: Sequence[Series]) -> Panel:
    senders = sorted({int(job) for one in series for job in set(one.rows["job"].tolist())})
    shown: set[int] = set()
    data: list[list[Any]] = []
    for one in series:
        data.append([])
        for place, sender in enumerate(senders):
            rows = one.rows[one.rows["job"] == sender]
            if not len(rows):
                continue
            points = {
                "type": "scatter",
                "mode": "markers",
                "name": html.escape(section.sender(sender)),
                "legendgroup": str(sender),
                "showlegend": sender not in shown and len(senders) <= LEGEND,
                "marker": {"color": colour(place, len(senders)), "size": 3},
                **_requests(rows),
            }
            data[-1].append(points)
            shown.add(sender)
    figure = _facets(section.runs, data, _time(series), "GB", 150 if len(series) > 1 else 260)
    figure["layout"]["hovermode"] = "closest"
    nr, whole = sum(len(one.rows) for one in series), sum(one.all_rows for one in series)
    note = "Each point is a request, where and when the disk began it, in its process's colour."
    if nr < whole:
        note += (
            f" Of {whole:,} requests {nr:,} are drawn: of each process and disk, in equal intervals"
            " of time, the lowest and the highest position; and others by lot."
        )
    return Panel("Head position", (figure,), note)


def _queue(section: Section, series: Sequence[Series]) -> Panel:
    runs = section.runs
    data = [
        [
            _line(
                number,
                runs,
                rounded(one.queue_ns / 1e9),
                one.queue.tolist(),
                line={"color": colour(number, len(runs)), "shape": "hv", "width": 1},
                showlegend=False,
            )
        ]
        for number, one in enumerate(series)
    ]
    note = "Requests sent and not done, in the scheduler and in the disks."
    nr, whole = sum(len(one.queue) for one in series), sum(one.all_queue for one in series)
    if nr < whole:
        note += (
            f" Of {whole:,} changes {nr:,} are drawn: in equal intervals of time the least and the"
            " greatest depth."
        )
    figure = _facets(runs, data, _time(series), "requests", 110 if len(series) > 1 else 260)
    return Panel("Queue depth", (figure,), note)


def _seeks(section: Section, series: Sequence[Series]) -> Panel:
    # A logarithmic axis has no zero: it stands where 256 bytes would.
    data = [
        _line(
            number,
            section.runs,
            rounded((one.distances * 512).clip(256) / 1e6),
            rounded(100 * one.within),
            customdata=(one.distances / 2).tolist(),
            hovertemplate="%{y:.2f} % within %{customdata:,} KiB",
        )
        for number, one in enumerate(series)
    ]
    ticks = {"tickvals": [0.000256, *(10.0**n for n in range(-3, 7))], "ticktext": ["0", *SIZES]}
    x, y = _axis("distance", type="log", **ticks), _axis("at most so far, %", range=[0, 101])
    note = "A seek is from the end of the request that the disk served before; 0: it went on there."
    return Panel("Seek distances", (_figure(data, 340, x, y),), note)


def _throughput(section: Section, series: Sequence[Series]) -> Panel:
    data = []
    for number, one in enumerate(series):
        begin = rounded(place * one.interval_ns / 1e9 for place in range(len(one.rate)))
        data.append(_line(number, section.runs, begin, rounded(one.rate / 1e6)))
        data[-1]["line"]["shape"] = "hv"
    note = f"What the disks moved, in intervals of {series[0].interval_ns / 1e9:.3g} s."
    y = _axis("MB/s", rangemode="tozero")
    return Panel("Throughput over time", (_figure(data, 340, _time(series), y),), note)


def panels(section: Section) -> Iterator[Panel]:
    """All there are, in the order of the page."""
    yield _merits(section)
    yield _shares(section)
    yield from _latencies(section)
    series = section.series
    seen = series is not None and any(one.all_rows for one in series)
    for title, make in (
        ("Seek distances", _seeks),
        ("Throughput over time", _throughput),
        ("Head position", _positions),
        ("Queue depth", _queue),
    ):
        if series is not None and seen:
            yield make(section, series)
        elif series is not None:
            yield Panel(title, note="No request came to a disk.")
        else:
            yield Panel(title, note=f"The result does not have this; {NOT_SEEN}.")
        if title == "Seek distances":
            yield from _reasons(section)
