# SPDX-License-Identifier: GPL-2.0-only
"""What all panels of a report are made of: sections, colours, axes and figures of plotly.js."""

from __future__ import annotations

import colorsys
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamsched.sim.requestlog import party_name
from streamsched.sim.series import Array, Series

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
# Of parties: told apart by people who see fewer colours, too, on white and on black.
PARTIES = [
    "#3355ff",
    "#cc0000",
    "#aacc00",
    "#f2a6cc",
    "#267359",
    "#993399",
    "#66cc77",
    "#cc99ff",
]
OTHERS = "#8f8f8f"  # of more parties than these, the smaller ones
LEGEND = 12  # more names than these are told by pointing only
SHORT = 18  # characters of a name beside an axis
NOBODY = 2**32 - 1  # has requests of an array that belong to no process


@dataclass(frozen=True)
class Section:
    """One input: its result, and what the requests show over time (None: not known)."""

    title: str
    document: dict[str, Any]
    names: Sequence[str] = ()  # the processes'
    series: Sequence[Series] | None = None
    failed: Sequence[str] = ()  # why other policies have no result

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
        if not name:
            return f"process {number}"
        return f"{name if len(name) <= SHORT else name[: SHORT - 1] + '…'} ({number})"


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


def party_label(party: int) -> str:
    """Of enum sim_party, for a legend."""
    name = party_name(party)
    return f"stream {name}" if name.isdigit() else name or "no party"


@dataclass(frozen=True)
class Points:
    """Requests of one run that are drawn in one colour."""

    name: str
    colour: str
    rows: Array
    of_party: bool


def points(section: Section, series: Sequence[Series]) -> list[list[Points]]:
    """Of each run the requests by party or, if its policy has no parties, by sender."""
    senders = sorted({int(job) for one in series for job in set(one.rows["job"].tolist())})
    sizes: dict[int, int] = {}  # in the run where it is largest
    for one in series:
        for party, nr in one.parties.items() if any(one.parties) else ():
            sizes[party] = max(nr, sizes.get(party, 0))
    largest = sorted(sorted(sizes, key=lambda party: -sizes[party])[: len(PARTIES)])
    found = []
    for one in series:
        rows = one.rows
        if any(one.parties):
            others = ~np.isin(rows["party"], largest)
            own = [Points("other parties", OTHERS, rows[others], True)]
            own += [
                Points(party_label(party), paint, rows[rows["party"] == party], True)
                for party, paint in zip(largest, PARTIES, strict=False)
            ]
        else:
            own = [
                Points(
                    section.sender(sender),
                    colour(place, len(senders)),
                    rows[rows["job"] == sender],
                    False,
                )
                for place, sender in enumerate(senders)
            ]
        found.append([points for points in own if len(points.rows)])
    return found


def short(name: str) -> str:
    """A name beside an axis; what plotly would take for HTML is shown as it is."""
    return html.escape(name if len(name) <= SHORT else name[: SHORT - 1] + "…")


def known(value: float) -> float | None:
    """Six digits behind the point, as in the results; JSON has no word for what is infinite."""
    return round(float(value), 6) if math.isfinite(value) else None


def rounded(values: Any) -> list[float | None]:
    """Each that is known."""
    return [known(value) for value in values]


def axis(title: str, **more: Any) -> dict[str, Any]:
    """One that makes room for its words."""
    return {"title": {"text": title}, "automargin": True, **more}


def figure(data: list[Any], height: int, x: Any, y: Any, **more: Any) -> Figure:
    """For plotly.js; the page gives it its width and colours."""
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


def line(run: int, runs: Sequence[Run], x: Any, y: Any, **more: Any) -> dict[str, Any]:
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
