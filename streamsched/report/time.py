# SPDX-License-Identifier: GPL-2.0-only
"""The panels of a report that need each request: seeks, and what happens over time."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from streamsched.report.figures import (
    LEGEND,
    Figure,
    Panel,
    Points,
    Run,
    Section,
    axis,
    colour,
    figure,
    line,
    party_label,
    points,
    rounded,
)
from streamsched.sim.requestlog import DIRECTIONS, REASONS
from streamsched.sim.series import INTERVALS, Series

SIZES = ["1 kB", "10 kB", "100 kB", "1 MB", "10 MB", "100 MB", "1 GB", "10 GB", "100 GB", "1 TB"]


def _time(series: Sequence[Series]) -> dict[str, Any]:
    """An axis that all panels share, so that what stands below each other is at the same time."""
    return axis("time, s", range=[0, round(series[0].interval_ns * INTERVALS / 1e9, 6)])


def _facets(
    runs: Sequence[Run], data: list[list[Any]], x: dict[str, Any], unit: str, height: int
) -> Figure:
    """The policies one above the other, on the same axis of time; @data is of each."""
    part, lines, axes, labels = 1 / len(runs), [], {}, []
    for number, (run, own) in enumerate(zip(runs, data, strict=True)):
        low = 1 - (number + 1) * part
        high = low + part - 22 / (height * len(runs))
        name = f"y{number + 1 if number else ''}"
        axes[f"yaxis{name[1:]}"] = axis(unit, domain=[round(low, 6), round(high, 6)])
        lines += [{**one, "yaxis": name} for one in own]
        label = {"text": html.escape(run["policy"]), "showarrow": False, "x": 0, "y": high}
        label |= {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        labels.append(label)
    y = axes.pop("yaxis")
    x = {**x, "anchor": name}
    return figure(lines, 50 + height * len(runs), x, y, **axes, annotations=labels)


def _requests(section: Section, points: Points) -> dict[str, Any]:
    """Where and when, and what pointing tells."""
    rows = points.rows
    waited = rows["dispatch_ns"] - rows["arrival_ns"]
    who = {
        (job, party): f", {html.escape(section.sender(job))}, {party_label(party)}"
        if points.of_party
        else ""
        for job, party in set(zip(rows["job"].tolist(), rows["party"].tolist(), strict=True))
    }
    more = ("direction", "nr_sectors", "disk", "why", "job", "party")
    return {
        "x": rounded(rows["start_ns"] / 1e9),
        "y": rounded(rows["sector"] * (512 / 1e9)),
        "customdata": [
            [
                DIRECTIONS[direction],
                sectors / 2,
                round(ns / 1e6, 3),
                disk,
                REASONS[why] + who[job, party],
            ]
            for ns, direction, sectors, disk, why, job, party in zip(
                waited.tolist(), *(rows[name].tolist() for name in more), strict=True
            )
        ],
        "hovertemplate": "%{x} s, %{y} GB: %{customdata[0]} of %{customdata[1]} KiB, waited "
        "%{customdata[2]} ms, disk %{customdata[3]}, %{customdata[4]}",
    }


def positions(section: Section, series: Sequence[Series]) -> Panel:
    """Where and when the disk began each request."""
    drawn_points = points(section, series)
    senders = {one.name for own in drawn_points for one in own if not one.of_party}
    shown: set[str] = set()
    data: list[list[Any]] = []
    for own in drawn_points:
        data.append([])
        for one in own:
            named = one.of_party or len(senders) <= LEGEND
            # A party may be called as a process is.
            group = f"{'party' if one.of_party else 'process'} {one.name}"
            data[-1].append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": html.escape(one.name),
                    "legendgroup": group,
                    "showlegend": named and group not in shown,
                    "marker": {"color": one.colour, "size": 3},
                    **_requests(section, one),
                }
            )
            shown.add(group)
    drawn = _facets(section.runs, data, _time(series), "GB", 150 if len(series) > 1 else 260)
    drawn["layout"]["hovermode"] = "closest"
    nr, whole = sum(len(one.rows) for one in series), sum(one.all_rows for one in series)
    note = "Each point is a request, where and when the disk began it. Colours are"
    note += " parties, or processes where the policy has no parties."
    if sum(own[0].of_party for own in drawn_points if own) > 1:
        note += " Streams are numbered under each policy on its own."
    if nr < whole:
        note += (
            f" Of {whole:,} requests {nr:,} are drawn: of each process and disk, in equal intervals"
            " of time, the lowest and the highest position; and others by lot."
        )
    return Panel("Head position", (drawn,), note)


def queue(section: Section, series: Sequence[Series]) -> Panel:
    """How many requests are not done."""
    runs = section.runs
    data = [
        [
            line(
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
    drawn = _facets(runs, data, _time(series), "requests", 110 if len(series) > 1 else 260)
    return Panel("Queue depth", (drawn,), note)


def seeks(section: Section, series: Sequence[Series]) -> Panel:
    """The distribution of seek distances."""
    # A logarithmic axis has no zero: it stands where 256 bytes would.
    data = [
        line(
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
    x, y = axis("distance", type="log", **ticks), axis("at most so far, %", range=[0, 101])
    note = "A seek is from the end of the request that the disk served before; 0: it went on there."
    return Panel("Seek distances", (figure(data, 340, x, y),), note)


def throughput(section: Section, series: Sequence[Series]) -> Panel:
    """What the disks move, by interval."""
    data = []
    for number, one in enumerate(series):
        begin = rounded(place * one.interval_ns / 1e9 for place in range(len(one.rate)))
        data.append(line(number, section.runs, begin, rounded(one.rate / 1e6)))
        data[-1]["line"]["shape"] = "hv"
    note = f"What the disks moved, in intervals of {series[0].interval_ns / 1e9:.3g} s."
    y = axis("MB/s", rangemode="tozero")
    return Panel("Throughput over time", (figure(data, 340, _time(series), y),), note)
