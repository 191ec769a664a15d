# SPDX-License-Identifier: GPL-2.0-only
"""Reports: what is drawn of a run is what the run was, and pages look right in a browser.

A page is opened in headless Chromium, with a script behind it that hands back what was drawn.
"""

from __future__ import annotations

import html
import itertools
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.cli import report as cli_report
from streamsched.cli.main import app
from streamsched.sim.resultfile import load_results

np = pytest.importorskip("numpy", reason="numpy is missing: pip install 'streamsched[report]'")
pytest.importorskip("plotly", reason="plotly is missing: pip install 'streamsched[report]'")

from streamsched.report.figures import OTHERS, PARTIES  # noqa: E402
from streamsched.report.panels import (  # noqa: E402
    Section,
    cumulative,
    figures_of_merit,
    panels,
)
from streamsched.sim.series import MOST, extremes, thinned  # noqa: E402

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "traces" / "grep-twice.blktrace.zst"
POLICIES = "noop,deadline,stream:deadline"
# A name that is HTML, and one that would end a script.
JOB = """\
[<b>a</b> & </script>]
rw=read
bs=64k
size=8m
offset_increment=100g
numjobs=2
filename=disk
[r]
rw=randwrite
direct=1
bs=4k
size=512k
filename=disk
"""
SECONDS = 120
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


# One command in the disk, senders seen: what is served in which order follows from the dispatches.
PAPERS = ("--disk", "wd5000aaks", "--owners", "process", "--queue-depth", "1")


def streamsched(*words: object, fails: bool = False) -> str:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "streamsched"), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode != 0) == fails, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if fails else done.stdout


def opened(page: Path, width: int = 1600, scheme: int = 1) -> dict[str, Any]:
    """What Chromium made of @page; @scheme: 0 dark, 1 light."""
    read = page.with_suffix(".read.html")
    read.write_text(page.read_text() + READER)
    assert CHROMIUM
    done = subprocess.run(
        [
            CHROMIUM,
            *["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            *("--no-first-run", f"--user-data-dir={page.parent / 'chromium'}"),
            *("--virtual-time-budget=30000", "--enable-logging=stderr"),
            f"--blink-settings=preferredColorScheme={scheme}",
            *(f"--window-size={width},1200", "--dump-dom", f"file://{read}"),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert len(said) == 1 and "reader at work" in said[0], said
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(html.unescape(found[1]))
    return result


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a job, its results, and reports of them."""
    folder = tmp_path_factory.mktemp("report")
    job = folder / "job.fio"
    job.write_text(JOB)
    words = ["--policy", POLICIES, "--requests", folder / "rows.csv"]
    streamsched("run", job, *PAPERS, *words, "--output", "json+", "--to", folder / "plus.json")
    words = [*PAPERS, "--policy", POLICIES]
    streamsched("run", job, *words, "--output", "json", "--to", folder / "plain.json")
    streamsched("report", job, *words, "--to", folder / "job.html")
    streamsched("report", folder / "plain.json", folder / "plus.json", "--to", folder / "json.html")
    return folder


def document(made: Path) -> dict[str, Any]:
    return load_results(made / "plus.json")[0]


def rows(made: Path) -> dict[str, list[dict[str, str]]]:
    """The rows that --requests wrote, by policy."""
    import csv

    found: dict[str, list[dict[str, str]]] = {}
    with (made / "rows.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["policy"], []).append(row)
    return found


def drawn(page: Path) -> dict[str, list[Any]]:
    """The figures that a page holds, by panel, as the library is given them."""
    text = page.read_text()
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text)
    assert found
    figures = json.loads(found[1])
    by: dict[str, list[Any]] = {}
    for title, body in re.findall(r"<h3>(.*?)</h3>(.*?)</section>", text, re.DOTALL):
        for number in re.findall(r'id="figure-(\d+)"', body):
            by.setdefault(html.unescape(title), []).append(figures[int(number)])
    return by


# ---- thinning ----


@pytest.mark.parametrize("thin", [extremes, thinned])
def test_thinning_keeps_extremes_and_order(thin: Any) -> None:
    random = np.random.default_rng(1)
    nr, most = 50_000, 2_000
    time = random.integers(0, 10**12, nr)
    value = random.integers(0, 10**9, nr)
    group = random.integers(0, 20, nr)
    kept = thin(time, value, group, most)
    assert most / 8 < len(kept) <= most
    assert len(set(kept.tolist())) == len(kept)
    assert (np.diff(time[kept]) >= 0).all()
    for one in range(20):
        own, left = value[group == one], value[kept][group[kept] == one]
        assert own.min() == left.min() and own.max() == left.max()
    few = thin(time[:most], value[:most], group[:most], most)
    assert sorted(few.tolist()) == list(range(most))


def test_all_points_at_one_time() -> None:
    time, value = np.zeros(100, np.int64), np.arange(100)
    assert value[extremes(time, value, time, 10)].tolist() == [0, 99]


# ---- what is drawn is what was ----


def test_the_policies(made: Path) -> None:
    runs = document(made)["runs"]
    figures = drawn(made / "job.html")["The policies"]
    for figure, (name, values) in zip(figures, figures_of_merit(runs).items(), strict=True):
        assert figure["layout"]["xaxis"]["title"]["text"] == name
        assert figure["data"][0]["x"] == values
    assert [figure["data"][0]["x"] for figure in figures] == [
        [run["throughput_mb_s"] for run in runs],
        [
            pytest.approx(run["throughput_mb_s"] / runs[0]["throughput_mb_s"], abs=1e-6)
            for run in runs
        ],
        [run["efficiency"] for run in runs],
        [run["least_share"] for run in runs],
        [run["response_ms"]["p99"] for run in runs],
    ]


def test_shares_latencies_and_reasons(made: Path) -> None:
    runs = document(made)["runs"]
    for page, times in (("job.html", 1), ("json.html", 2)):
        panels = drawn(made / page)
        assert len(panels["Shares of the processes"]) == times
        (shares, *_) = panels["Shares of the processes"]
        for line, run in zip(shares["data"], runs, strict=True):
            assert line["y"] == [round(3 * job["share"], 6) for job in run["jobs"]]
        (latencies,) = panels["Response times of the disk's requests"]
        for line, run in zip(latencies["data"], runs, strict=True):
            counts = run["response_histogram"]["count"]
            assert line["x"] == run["response_histogram"]["up_to_ms"]
            parts = [100 * sum(counts[: n + 1]) / sum(counts) for n in range(len(counts))]
            assert line["y"] == pytest.approx(parts, abs=1e-5)
        (saw,) = panels["Response times that the processes saw"]
        assert len(saw["data"]) == 9
        assert [line["x"][-1] for line in saw["data"]] == [
            job["response_histogram"]["up_to_ms"][-1] for run in runs for job in run["jobs"]
        ]
        (reasons, *_) = panels["Dispatches by reason"]
        for number, run in enumerate(runs):
            by = {line["name"]: line["x"][number] for line in reasons["data"]}
            assert by == {name: run["reasons"][name] for name in by}
            assert sum(by.values()) == run["counters"]["dispatches"]
        (waited, *_) = panels["Waits of requests by reason"]
        assert [line["name"] for line in waited["data"]] == [
            line["name"] for line in reasons["data"]
        ]
        for line, counted in zip(waited["data"], reasons["data"], strict=True):
            assert line["x"] == [run["reason_waits_s"][line["name"]] for run in runs]
            assert line["customdata"] == counted["x"]
            assert line["marker"] == counted["marker"]
        assert waited["layout"]["barmode"] == "stack"
        (waits, *_) = panels["Waits of the head, with requests pending, by their ends"]
        totals = [sum(line["x"][number] for line in waits["data"]) for number in range(len(runs))]
        assert totals == [run["counters"]["waits"] for run in runs]


def test_positions_seeks_queue_and_throughput(made: Path) -> None:
    panels, by = drawn(made / "job.html"), rows(made)
    runs = document(made)["runs"]
    positions = panels["Head position"][0]["data"]
    points = {
        (line["yaxis"], round(x, 6), round(y, 6))
        for line in positions
        for x, y in zip(line["x"], line["y"], strict=True)
    }
    exact = {
        (
            f"y{number + 1 if number else ''}",
            round(int(row["start_ns"]) / 1e9, 6),
            round(int(row["sector"]) * 512 / 1e9, 6),
        )
        for number, policy in enumerate(by)
        for row in by[policy]
    }
    assert points == exact
    # Each point has the name, and so the colour, of its process or its party.
    for number, (policy, own) in enumerate(by.items()):
        named: dict[str, int] = {}
        for row in own:
            party = row["party"]
            name = f"stream {party}" if party.isdigit() else party
            name = name or f"{row['process']} ({row['number']})"
            named[name] = named.get(name, 0) + 1
        axis = f"y{number + 1 if number else ''}"
        lines = {
            html.unescape(line["name"]).replace("</scri…", "</script>"): line
            for line in positions
            if line["yaxis"] == axis
        }
        assert {name: len(line["x"]) for name, line in lines.items()} == named
        assert (policy == "stream:deadline") == ("rest" in named)
        asked = Counter(
            one[4].split(", ")[0] for line in lines.values() for one in line["customdata"]
        )
        assert asked == {name: nr for name, nr in runs[number]["reasons"].items() if nr}
    colours = {line["name"]: line["marker"]["color"] for line in positions}
    assert len(set(colours.values())) == len(colours)
    seeks = panels["Seek distances"][0]["data"]
    for line, run in zip(seeks, runs, strict=True):
        own = sorted(by[run["policy"]], key=lambda row: int(row["start_ns"]))
        ends = [int(row["sector"]) + int(row["sectors"]) for row in own]
        far = [abs(int(b["sector"]) - end) for end, b in zip(ends, own[1:], strict=False)]
        for x, y in zip(line["x"], line["y"], strict=True):
            within = sum(one <= max(0, round(x * 1e6 / 512) if x > 0.0003 else 0) for one in far)
            assert y == pytest.approx(100 * within / len(far), abs=1e-5)
        assert line["y"][-1] == 100
        # At queue depth 1 the disk serves in the order of dispatches; the first one counts, too.
        nr = round(len(far) * (1 - line["y"][0] / 100))
        assert run["counters"]["seeks"] - nr in (0, 1)
    for line, run in zip(panels["Queue depth"][0]["data"], runs, strict=True):
        own = by[run["policy"]]
        assert line["y"][-1] == 0 and min(line["y"]) >= 0
        for at, depth in list(zip(line["x"], line["y"], strict=True))[:: len(line["x"]) // 50]:
            open_ = [
                row
                for row in own
                if int(row["arrival_ns"]) / 1e9 <= at + 5e-7 < int(row["completion_ns"]) / 1e9
            ]
            near = [
                row
                for row in own
                for name in ("arrival_ns", "completion_ns")
                if abs(int(row[name]) / 1e9 - at) < 1e-6
            ]
            assert abs(len(open_) - depth) <= max(0, len(near) - 1)
    for line, run in zip(panels["Throughput over time"][0]["data"], runs, strict=True):
        moved = sum(int(row["sectors"]) * 512 for row in by[run["policy"]])
        assert sum(line["y"]) * line["x"][1] * 1e6 == pytest.approx(moved, rel=1e-3)


def test_the_largest_parties_have_colours(tmp_path: Path) -> None:
    job = tmp_path / "many.fio"
    sizes = [2, 8, 3, 9, 4, 10, 5, 11, 6, 12, 7, 13]  # MB
    job.write_text(
        "[global]\nrw=read\nbs=64k\nfilename=disk\n"
        + "".join(f"[r{mb}]\nsize={mb}m\noffset={20 * mb}g\n" for mb in sizes)
    )
    words = ["--owners", "none", "--policy", "noop,stream:noop"]
    streamsched("report", job, *words, "--to", tmp_path / "p.html")
    streamsched("run", job, *words, "--requests", tmp_path / "rows.csv")
    own = [row for row in rows(tmp_path)["stream:noop"] if row["party"]]
    sent = Counter(row["party"] for row in own)
    figure = drawn(tmp_path / "p.html")["Head position"][0]
    lines = {line["name"]: line for line in figure["data"] if line["yaxis"] == "y2"}
    assert lines.pop("other parties")["marker"]["color"] == OTHERS
    assert len(lines) == len(PARTIES) < len(sent)
    shown = {name.removeprefix("stream "): len(line["x"]) for name, line in lines.items()}
    assert shown == {name: sent[name] for name in shown}
    assert min(shown.values()) >= max(nr for name, nr in sent.items() if name not in shown)
    assert {line["marker"]["color"] for line in lines.values()} == set(PARTIES)


# What people without red, green or blue cones see, of linear RGB: Machado, Oliveira and Fernandes,
# "A physiologically-based model for simulation of color vision deficiency", IEEE TVCG 2009.
SEEN = {
    "all": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(paint: str) -> Any:
    parts = np.array([int(paint[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("who", SEEN)
def test_parties_are_told_apart(who: str) -> None:
    """By at least 18 in CIELAB: 2.3 is just seen."""

    def lab(paint: str) -> Any:
        xyz = XYZ @ np.clip(np.array(SEEN[who]) @ linear(paint), 0, 1) / XYZ.sum(axis=1)
        root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
        return np.array([116 * root[1] - 16, *(root[:2] - root[1:]) * (500, 200)])

    for one, other in itertools.combinations([*PARTIES, OTHERS], 2):
        assert np.linalg.norm(lab(one) - lab(other)) > 18, (one, other)


def test_long_histograms_keep_their_ends() -> None:
    histogram = {"up_to_ms": [float(n) for n in range(1000)], "count": [1] * 1000}
    for most in (2, 10, 999, 1000, 5000):
        ends, parts = cumulative(histogram, most)
        assert len(ends) == len(parts) <= most
        assert (ends[0], ends[-1], parts[-1]) == (0.0, 999.0, 100.0)


def test_a_panel_has_not_too_many_points(tmp_path: Path) -> None:
    job = tmp_path / "many.fio"
    job.write_text("[r]\nrw=randread\ndirect=1\nbs=4k\nsize=80m\nnumjobs=2\nfilename=disk\n")
    streamsched("report", job, "--policy", "noop,cscan", "--to", tmp_path / "many.html")
    panels = drawn(tmp_path / "many.html")
    for title in ("Head position", "Queue depth"):
        nr = sum(len(line["x"]) for line in panels[title][0]["data"])
        assert MOST // 2 < nr <= MOST
    text = (tmp_path / "many.html").read_text()
    assert re.search(r"Of 8\d,\d{3} requests 20,000 are drawn", text)


def test_what_a_result_lacks_is_said(made: Path) -> None:
    text = (made / "json.html").read_text()
    assert text.count("The result does not have this; to see it, give") == 8
    assert text.count("The result has no histograms of these: --output json+ has them") == 2
    # As --on kernel has it, and as an older version had.
    lacking = document(made)
    lacking["setup"]["path"] = "loop"
    for run in lacking["runs"]:
        del run["reasons"], run["reason_waits_s"], run["response_histogram"], run["least_share"]
        for job in run["jobs"]:
            del job["share"]
    notes = {panel.title: panel.note for panel in panels(Section("x", lacking))}
    assert notes["Dispatches by reason"].startswith("The result has no reasons")
    assert notes["Waits of requests by reason"].startswith("The result has no waits by reason")
    assert notes["The policies"] == "Not known: least share, which needs rates of processes alone."
    assert notes["Shares of the processes"].startswith("The result has no shares")


def test_a_trace_and_a_result_below_each_other(made: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ["--policy", "noop,stream:deadline", "--to", page]
    streamsched("report", TRACE, made / "plain.json", *words)
    text = page.read_text()
    assert re.findall("<h2>(.*)</h2>", text) == [
        "grep-twice.blktrace.zst (blktrace), closed: on exos-x18, owners none, queue depth 32",
        "job.fio: on wd5000aaks, owners process, queue depth 1",
    ]
    assert "A trace has no processes." in text
    runs = json.loads(
        streamsched("replay", TRACE, "--policy", "noop,stream:deadline", "--output", "json")
    )["runs"]
    assert drawn(page)["The policies"][0]["data"][0]["x"] == [
        run["throughput_mb_s"] for run in runs
    ]
    again = tmp_path / "again.html"
    streamsched("report", TRACE, made / "plain.json", *words[:-1], again)
    assert again.read_bytes() == page.read_bytes()


def test_the_library_knows_all_that_it_is_given(made: Path) -> None:
    import plotly.graph_objects as go

    for page in ("job.html", "json.html"):
        for figures in drawn(made / page).values():
            for figure in figures:
                go.Figure(figure)  # refuses what it does not know


# ---- in a browser ----


@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(1600, 1), (500, 0)])
def test_a_page_in_chromium(made: Path, tmp_path: Path, width: int, scheme: int) -> None:
    page = tmp_path / "page.html"
    shutil.copy(made / "job.html", page)
    shown = opened(page, width, scheme)
    figures = shown["figures"]
    assert len(figures) == int(shown["drawn"]) == 15
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


def test_a_page_may_load_nothing(made: Path) -> None:
    head = (made / "job.html").read_text()[:1000]
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'" in head
    body = re.sub(r"<script>.*?</script>", "", (made / "job.html").read_text(), flags=re.DOTALL)
    assert "<b>" not in body and not re.search(r"\b(src|href)=", body)


# ---- what is refused ----


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text[:100], "is no JSON"),
        (lambda text: "[1, 2]", "is no result of streamsched"),
        (lambda text: text.replace("streamsched-results", "other"), "is no result of streamsched"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "its version is 2, and"),
        (lambda text: text.replace('"version": 1,', ""), "its version is null, and version 1"),
        (lambda text: re.sub(r'"p99": [\d.]+', '"p99": "x"', text), "p99 is no number"),
        (lambda text: re.sub(r'"waits": \d+', '"waits": -1', text), "waits is no whole number"),
        (lambda text: re.sub(r'"p99": [\d.]+', '"p99": NaN', text), "NaN is no number of JSON"),
        (lambda text: text.replace('"policy"', '"p"', 1), "runs[0].policy is missing"),
        (lambda text: text.replace('"jobs": [', '"jobs": 1, "x": [', 1), "jobs is no list"),
        (lambda text: re.sub(r'"count": \[\d+', '"count": [1, 2', text), "different length"),
        (
            lambda text: '{"format": "streamsched-results", "version": 1, "runs": []}',
            "no run in it is finished",
        ),
        (lambda text: "[" * 100_000, "is no JSON"),
    ],
)
def test_a_result_that_is_none(made: Path, tmp_path: Path, change: Any, says: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(change((made / "plus.json").read_text()))
    with pytest.raises(UsageError) as error:
        load_results(path)
    assert str(error.value).startswith(f"{path}: ") and says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["job.fio"], "--to is missing"),
        (["no.json", "--to", "p.html"], "no.json: cannot read it: No such file"),
        (["no.trace", "--to", "p.html"], "no.trace: cannot be read: No such file"),
        (["no-such", "--to", "p.html"], "unknown workload or job file"),
        (["empty", "--to", "p.html"], "empty: the trace is empty"),
        (["r.csv", "--to", "p.html"], "r.csv: is a result, but no JSON"),
        (["plain.json", "--to", "plain.json"], "is read, and would be lost"),
        (["plain.json", "--to", "notes"], "is there, and is not a report of ours"),
        (["plain.json", "--seed", "1", "--to", "p.html"], "--seed: only for a job"),
        (["job.fio", "--format", "msr", "--to", "p.html"], "--format: only for a trace"),
        (["plain.json", "--rule", "size", "--to", "p.html"], "--rule: only for a job or a trace"),
        (["job.fio", "--policy", "nope", "--to", "p.html"], "unknown policy"),
    ],
)
def test_what_is_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    for name in ("job.fio", "plain.json"):
        shutil.copy(made / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("empty").touch()
    Path("notes").write_text("precious\n")
    Path("r.csv").write_text("policy,throughput_mb_s,efficiency\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    error = streamsched("report", *words, fails=True)
    assert says in error and error.count("\n") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_without_the_library_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_report.importlib.util, "find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["report", "x.json", "--to", "p.html"])
    assert isinstance(result.exception, StreamschedError)
    assert str(result.exception) == (
        "report needs plotly and numpy, which are not installed: pip install 'streamsched[report]'"
    )


# ---- run and replay --plot ----


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plots(made: Path, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is missing")
    first, second = tmp_path / f"1{suffix}", tmp_path / f"2{suffix}"
    words = [*PAPERS, "--policy", POLICIES, "--output", "json"]
    with_plot = streamsched("run", made / "job.fio", *words, "--plot", first)
    assert with_plot == (made / "plain.json").read_text()
    streamsched("run", made / "job.fio", *words, "--plot", second)
    assert first.read_bytes() == second.read_bytes()
    streamsched("replay", TRACE, "--policy", "noop", "--plot", first)  # replaced: it is ours
    assert first.read_bytes() != second.read_bytes()
    if suffix == ".svg":
        text = second.read_text()
        for run in document(made)["runs"]:
            assert f"head position: {run['policy']}" in text
            assert f"{run['throughput_mb_s']:.4g} -->" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--plot", "x.gif"], "name a .svg, .png or .pdf file"),
        (["--plot", "x.png", "--on", "kernel"], "--plot x.png: not with --on kernel"),
        (["--plot", "x.svg", "--to", "x.svg"], "is where the results go"),
        (["--plot", "mine.svg"], "is there, and is not a picture of ours"),
    ],
)
def test_plots_that_are_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.svg").write_text("<?xml?><svg>mine</svg>")
    assert says in streamsched("run", made / "job.fio", *words, fails=True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.svg"]
