# SPDX-License-Identifier: GPL-2.0-only
"""Reports look right in a browser.

A page is opened in headless Chromium, with a script behind it that hands back what was drawn.
"""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from report_data import POLICIES, SECONDS, TRACE, document, streamsched
from said import ran

pytest.importorskip("numpy", reason="numpy is missing: pip install 'streamsched[report]'")
pytest.importorskip("plotly", reason="plotly is missing: pip install 'streamsched[report]'")

from streamsched.report.panels import figures_of_merit

pytestmark = pytest.mark.e2e
CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is missing: install the Debian package chromium"
)
# Hands back, when all is drawn: data, and where things are on the screen.
READER = """
<script>
console.info("reader at work");
// It is drawn again for paper, and afterwards for the screen.
dispatchEvent(new Event("beforeprint"));
const paper = document.querySelector(".js-plotly-plot").clientWidth;
dispatchEvent(new Event("afterprint"));
setTimeout(() => {
	const box = (one) => {
		const { left, top, right, bottom } = one.getBoundingClientRect();
		return [left, top, right, bottom];
	};
	const texts = ".xtick text, .ytick text, .legendtext, .xtitle, .ytitle";
	const figures = [...document.querySelectorAll(".js-plotly-plot")].map((gd) => ({
		panel: gd.closest("section").querySelector("h3").textContent,
		data: gd.data.map(({ x, y }) => ({ x, y })),
		bars: [...gd.querySelectorAll(".bars .point path")].map(box),
		points: gd.querySelectorAll(".scatterlayer .points path").length,
		lines: gd.querySelectorAll(".scatterlayer .lines path").length,
		legend: [...gd.querySelectorAll("g.legend .bg")].map(box),
		plot: [...gd.querySelectorAll(".nsewdrag")].map(box),
		ticks: [...gd.querySelectorAll(texts)].map(box),
		place: box(gd),
		canvas: gd.querySelector(".main-svg").clientWidth,
		ink: getComputedStyle(gd.querySelector(".xtick text")).fill,
	}));
	const page = document.documentElement;
	const out = document.createElement("pre");
	out.id = "out";
	out.textContent = JSON.stringify({
		figures,
		paper,
		wide: page.scrollWidth,
		seen: page.clientWidth,
		drawn: document.body.dataset.drawn,
		ground: getComputedStyle(document.body).backgroundColor,
	});
	document.body.append(out);
}, 500);
</script>
"""


def opened(page: Path, width: int = 1600, scheme: int = 1) -> dict[str, Any]:
    """What Chromium made of @page; @scheme: 0 dark, 1 light."""
    read = page.with_suffix(".read.html")
    read.write_text(page.read_text() + READER)
    assert CHROMIUM
    done = ran(
        CHROMIUM,
        *["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        *("--no-first-run", f"--user-data-dir={page.parent / 'chromium'}"),
        *("--virtual-time-budget=30000", "--enable-logging=stderr"),
        f"--blink-settings=preferredColorScheme={scheme}",
        *(f"--window-size={width},1200", "--dump-dom", f"file://{read}"),
        timeout=SECONDS,
        check=True,
    )
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert len(said) == 1 and "reader at work" in said[0], said
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(html.unescape(found[1]))
    return result


@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(1600, 1), (500, 0)])
def test_a_page_in_chromium(made: Path, tmp_path: Path, width: int, scheme: int) -> None:
    page = tmp_path / "page.html"
    shutil.copy(made / "job.html", page)
    shown = opened(page, width, scheme)
    figures = shown["figures"]
    assert len(figures) == int(shown["drawn"]) == 16
    runs = document(made)["runs"]
    merits = [figure for figure in figures if figure["panel"] == "The policies"]
    assert merits[0]["data"][0]["x"] == [run["throughput_mb_s"] for run in runs]
    # Bars are as long as what they stand for.
    for figure, values in zip(merits, figures_of_merit(runs).values(), strict=True):
        lengths = [right - left for left, _, right, _ in figure["bars"]]
        assert [length / max(lengths) for length in lengths] == pytest.approx(
            [float(value or 0) / max(float(v or 0) for v in values) for value in values], abs=0.02
        )
    (positions,) = (figure for figure in figures if figure["panel"] == "Head position")
    assert positions["points"] == sum(run["counters"]["dispatches"] for run in runs)
    (waits,) = (figure for figure in figures if figure["panel"] == "Waits of requests by reason")
    waited = [sum(line["x"][number] for line in waits["data"]) for number in range(len(runs))]
    assert waited == pytest.approx([sum(run["reason_waits_s"].values()) for run in runs])
    lengths = [right - left for left, _, right, _ in waits["bars"]]
    assert max(lengths) / sum(lengths) == pytest.approx(
        max(x for line in waits["data"] for x in line["x"]) / sum(waited), abs=0.02
    )
    (seeks,) = (figure for figure in figures if figure["panel"] == "Seek distances")
    assert seeks["lines"] == len(runs)
    # Nothing is cut off, and no legend hides a plot; the page is no wider than the window.
    assert shown["wide"] <= shown["seen"]
    assert 100 < shown["paper"] < 18 / 2.54 * 96  # a page of 18 cm has two in a row
    for figure in figures:
        left, _, right, bottom = figure["place"]
        assert right - left == pytest.approx(figure["canvas"], abs=1)
        for one in figure["ticks"]:
            assert left - 1 <= one[0] and one[2] <= right + 1 and one[3] <= bottom + 1, figure
        for legend in figure["legend"]:
            assert all(legend[3] <= plot[1] + 1 for plot in figure["plot"]), figure["panel"]
    dark = scheme == 0
    light = [int(one) > 128 for one in re.findall(r"\d+", shown["ground"])[:3]]
    assert light == [not dark] * 3
    assert all((int(re.findall(r"\d+", figure["ink"])[0]) > 128) == dark for figure in figures)


@needs_chromium
def test_pages_of_results_and_traces_in_chromium(made: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ["--policy", POLICIES, "--array", "raid0:2:64k", "--to", page]
    streamsched("report", made / "plain.json", TRACE, *words)
    figures = opened(page)["figures"]
    assert {figure["panel"] for figure in figures} >= {"The policies", "Head position"}
