# SPDX-License-Identifier: GPL-2.0-only
"""A report: results as one HTML page, which holds all that it needs and asks no network."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import streamsched
from streamsched.report.figures import Figure, Section
from streamsched.report.panels import figures_of_merit, panels

# What it begins with shows that it is ours.
PAGE = """\
<!DOCTYPE html>
<!-- streamsched's page -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{css}</style>
</head>
<body>
<h1>streamsched report</h1>
<p class="note">By streamsched {version}. Drag to zoom, double-click to go back, point for figures;
a click on a name hides it.</p>
<noscript><p>The pictures need JavaScript; the tables do not.</p></noscript>
{body}
<p class="note">This file has {size:.1f} MB: {library:.1f} MB of that are plotly.js, which
draws the pictures, so that they need no network.</p>
<script type="application/json" id="figures">{figures}</script>
<script>{plotly}</script>
<script>{script}</script>
</body>
</html>
"""
# Too wide for half a page, or of several figures.
WHOLE = ("The policies", "Throughput over time", "Head position", "Queue depth")


def section_of(document: dict[str, Any]) -> Section:
    """Of a result that was read."""
    setup = document["setup"]
    disk = f"{setup['array']} of {setup['disk']}" if "array" in setup else setup["disk"]
    where = (
        f"the real kernel, path {setup['path']}" if "path" in setup else f"owners {setup['owners']}"
    )
    title = f"{document['work']}: on {disk}, {where}, queue depth {setup['queue_depth']}"
    return Section(title, document)


def _table(section: Section) -> str:
    merits = figures_of_merit(section.runs)
    rows = [
        "".join(
            f"<td>{'-' if values[number] is None else f'{values[number]:,.3f}'}</td>"
            for values in merits.values()
        )
        for number in range(len(section.runs))
    ]
    body = "\n".join(
        f"<tr><td>{html.escape(run['policy'])}</td>{row}</tr>"
        for run, row in zip(section.runs, rows, strict=True)
    )
    heads = "".join(f"<th>{html.escape(name)}</th>" for name in ("policy", *merits))
    return (
        f'<div class="table"><table>\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def section_html(section: Section, figures: list[Figure]) -> str:
    """Its HTML; its figures are added to @figures."""
    parts = [f"<h2>{html.escape(section.title)}</h2>", _table(section), '<div class="panels">']
    if not section.document.get("complete", True):
        notes = ["Incomplete: only finished runs are here.", *section.failed]
        parts[1:1] = [f'<p class="note">{html.escape(note)}</p>' for note in notes]
    left_out: dict[str, list[str]] = {}
    for panel in panels(section):
        if not panel.figures:
            left_out.setdefault(panel.note, []).append(panel.title)
            continue
        whole = ' class="whole"' if panel.title in WHOLE else ""
        parts.append(f"<section{whole}><h3>{html.escape(panel.title, quote=False)}</h3>")
        if panel.note:
            parts.append(f'<p class="note">{html.escape(panel.note)}</p>')
        parts.append('<div class="figures">')
        for figure in panel.figures:
            name = html.escape(panel.title, quote=True)
            parts.append(f'<div id="figure-{len(figures)}" role="img" aria-label="{name}"></div>')
            figures.append(figure)
        parts.append("</div></section>")
    parts.append("</div>")
    for why, titles in left_out.items():
        note = html.escape(f"Left out: {'; '.join(titles)}. {why}.", quote=False)
        parts.append(f'<p class="note">{note}</p>')
    return "\n".join(parts)


def page(sections: Sequence[Section]) -> str:
    """The whole page."""
    from plotly.offline import get_plotlyjs

    figures: list[Figure] = []
    body = "\n".join(section_html(section, figures) for section in sections)
    ours = files("streamsched.report")
    plotly = get_plotlyjs()
    fill = functools.partial(
        PAGE.format,
        title=html.escape(", ".join(section.document["work"] for section in sections)),
        css=(ours / "page.css").read_text(),
        version=streamsched.__version__,
        body=body,
        # As text of a script element: no "<" may end it.
        figures=json.dumps(figures, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        plotly=plotly,
        script=(ours / "page.js").read_text(),
        library=len(plotly.encode()) / 1e6,
    )
    return fill(size=len(fill(size=0).encode(errors="backslashreplace")) / 1e6)
