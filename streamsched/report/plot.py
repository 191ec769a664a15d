# SPDX-License-Identifier: GPL-2.0-only
"""run and replay --plot: throughput, latency, head positions and throughput over time, drawn."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from streamsched.base.plotfile import new_figure
from streamsched.report.figures import Points, Section, colour, points

PARTS = ("p50", "p99", "max")
LEGEND = 10  # of more names the colours have no names


def _bars(section: Section, throughput: Axes, latency: Axes) -> None:
    runs = section.runs
    # Of a file's policy its folder would take the room of the picture.
    names = [run["policy"].rpartition("/")[2] for run in runs]
    colours = [colour(number, len(runs)) for number in range(len(runs))]
    bars = throughput.barh(names, [run["throughput_mb_s"] for run in runs], color=colours)
    throughput.bar_label(bars, fmt="%.4g", padding=2, fontsize=8)
    throughput.margins(x=0.15)
    throughput.set_xlabel("throughput (MB/s)")
    throughput.invert_yaxis()
    for part, marker in zip(PARTS, "o|x", strict=True):
        times = [run["response_ms"][part] for run in runs]
        latency.scatter(times, names, c=colours, marker=marker, label=part)
    latency.set_xscale("log")
    latency.set_xlabel("response times (ms)")
    latency.legend(fontsize=7, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(PARTS))
    latency.tick_params(labelleft=False)


def _positions(own: list[Points], axes: Axes) -> None:
    for one in own:
        axes.plot(
            one.rows["start_ns"] / 1e9,
            one.rows["sector"] * (512 / 1e9),
            ".",
            markersize=1.5,
            color=one.colour,
            label=one.name,
            rasterized=True,  # thousands of points
        )
    axes.set_ylabel("GB")


def picture(section: Section) -> Figure:
    """Of @section, which has series."""
    series = section.series or ()
    runs = section.runs
    low = 0.9 + 0.3 * len(runs)
    heights = [low, *[1.4] * len(series), 2.2]
    figure: Figure = new_figure(9, sum(heights) + 0.8)
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    throughput = figure.add_subplot(grid[0, 0])
    _bars(section, throughput, figure.add_subplot(grid[0, 1], sharey=throughput))
    first: Axes | None = None
    named: list[str] = []
    for number, (run, own) in enumerate(zip(runs, points(section, series), strict=True)):
        axes = figure.add_subplot(grid[number + 1, :], sharex=first, sharey=first)
        axes.set_title(f"head position: {run['policy']}", fontsize=9, loc="left")
        _positions(own, axes)
        names = [one.name for one in own]
        if names != named and 1 < len(names) <= LEGEND:
            axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), markerscale=5)
        named = names
        axes.tick_params(labelbottom=False)
        first = first or axes
    timeline = figure.add_subplot(grid[-1, :], sharex=first)
    for number, (run, one) in enumerate(zip(runs, series, strict=True)):
        seconds = [place * one.interval_ns / 1e9 for place in range(len(one.rate))]
        paint = colour(number, len(runs))
        timeline.step(seconds, one.rate / 1e6, where="post", color=paint, label=run["policy"], lw=1)
    timeline.set_title("throughput of the disks over time", fontsize=9, loc="left")
    timeline.set_xlabel("time (s)")
    timeline.set_ylabel("MB/s")
    timeline.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    figure.suptitle(section.title, fontsize=10)
    return figure
