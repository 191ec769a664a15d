# SPDX-License-Identifier: GPL-2.0-only
"""Reports: what is drawn of a run is what the run was."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from report_data import TRACE, document, drawn, rows, streamsched

pytest.importorskip("numpy", reason="numpy is missing: pip install 'streamsched[report]'")
pytest.importorskip("plotly", reason="plotly is missing: pip install 'streamsched[report]'")

from streamsched.report import page as pages
from streamsched.report.figures import Figure
from streamsched.report.page import section_html
from streamsched.report.panels import Section, figures_of_merit, panels

pytestmark = pytest.mark.e2e


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
        [run["response_ms"]["max"] for run in runs],
    ]


def test_shares_latencies_and_reasons(made: Path) -> None:
    runs = document(made)["runs"]
    for page, times in (("job.html", 1), ("json.html", 2)):
        panels = drawn(made / page)
        assert len(panels["Shares of the processes"]) == times
        (shares, *_) = panels["Shares of the processes"]
        for line, run in zip(shares["data"], runs, strict=True):
            assert line["y"] == [round(3 * job["share"], 6) for job in run["jobs"]]
        (latencies, *_) = panels["Response times of the disk's requests"]
        for line, run in zip(latencies["data"], runs, strict=True):
            counts = run["response_histogram"]["count"]
            assert line["x"] == run["response_histogram"]["up_to_ms"]
            parts = [100 * sum(counts[: n + 1]) / sum(counts) for n in range(len(counts))]
            assert line["y"] == pytest.approx(parts, abs=1e-5)
        (saw, *_) = panels["Response times that the processes saw"]
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


SEEN = ("Seek distances", "Throughput over time", "Head position", "Queue depth")


def test_what_a_result_lacks_is_left_out_and_said(made: Path) -> None:
    text = (made / "json.html").read_text()
    said = (
        f"""Left out: {"; ".join(SEEN)}. A result does not have each request: give streamsched """
    )
    assert text.count(said) == 2  # of the two results
    titles = re.findall(r"<h3>(.*?)</h3>", text)
    assert len(titles) == 14 and not set(titles) & set(SEEN)
    # Each chapter has something to look at.
    assert set(titles) == set(drawn(made / "json.html"))
    assert "Left out" not in (made / "job.html").read_text()
    # As --on kernel has it, and as an older version had.
    lacking = document(made)
    lacking["setup"]["path"] = "loop"
    for run in lacking["runs"]:
        del run["reasons"], run["reason_waits_s"], run["response_histogram"], run["least_share"]
        for job in run["jobs"]:
            del job["share"]
    notes = {panel.title: panel.note for panel in panels(Section("x", lacking))}
    assert notes["The policies"] == "Not known: least share, which needs rates of processes alone."
    figures: list[Figure] = []
    html = section_html(Section("x", lacking), figures)
    assert re.findall(r"<h3>(.*?)</h3>", html) == [
        "The policies",
        "Response times that the processes saw",
        "Waits of the head, with requests pending, by their ends",
    ]
    assert re.findall('note">(Left out: .*?)</p>', html) == [
        "Left out: Shares of the processes. No rate of a process alone is known.",
        "Left out: Response times of the disk's requests. The result has no histograms of these; "
        "make it again with --output json.",
        f"{said}report the job file or the trace to see these.",
        "Left out: Dispatches by reason; Waits of requests by reason. The result has no reasons of "
        "dispatches, which the simulator of this version counts.",
    ]


def test_what_has_no_number_in_json_is_not_drawn(made: Path) -> None:
    """A page with Infinity in it would draw nothing at all."""
    extreme = document(made)
    for run, rate in zip(extreme["runs"], (1e-300, 1e300, 1e-300), strict=True):
        run["throughput_mb_s"] = rate
        for job in run["jobs"]:
            job["share"] = 1e308
    text = pages.page([Section("x", extreme)])
    (figures,) = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', text)
    assert "Infinity" not in figures
    gains = json.loads(figures)[1]["data"][0]
    assert (gains["name"], gains["x"]) == ("gain over the first", [1, None, 1])


def test_the_page_says_its_size(made: Path) -> None:
    for name in ("job.html", "json.html"):
        path = made / name
        found = re.search(
            r'note">This file has ([\d.]+) MB: ([\d.]+) MB of that are plotly.js, which\ndraws '
            r"the pictures, so that they need no network",
            path.read_text(),
        )
        assert found
        assert float(found[1]) == pytest.approx(path.stat().st_size / 1e6, abs=0.051)
        assert 0.9 * float(found[1]) < float(found[2]) < float(found[1])


def test_a_trace_and_a_result_below_each_other(made: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ["--policy", "noop,stream:deadline", "--to", page]
    streamsched("report", TRACE, made / "plain.json", *words)
    text = page.read_text()
    assert re.findall("<h2>(.*)</h2>", text) == [
        "grep-twice.blktrace.zst (blktrace), closed: on exos-x18, owners none, queue depth 32",
        "job.fio: on wd5000aaks, owners process, queue depth 1",
    ]
    assert "Left out: Response times that the processes saw. A trace has no processes." in text
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


def test_a_page_may_load_nothing(made: Path) -> None:
    head = (made / "job.html").read_text()[:1000]
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'" in head
    body = re.sub(r"<script>.*?</script>", "", (made / "job.html").read_text(), flags=re.DOTALL)
    assert "<b>" not in body and not re.search(r"\b(src|href)=", body)


def test_the_regret_stands_beside_the_other_figures(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    page, job = tmp_path / "page.html", tmp_path / "two.fio"
    job.write_text(
        "[global]\nrw=read\ndirect=1\nsize=9g\nruntime=3\ntime_based\n[a]\n[b]\noffset=99g\n"
    )
    words = (str(job), "--policy", "noop,stream:deadline", "--queue-depth", "1")
    streamsched("report", *words, "--bound", "--to", page)
    text = page.read_text()
    assert "<th>regret</th>" in text
    for one in json.loads(streamsched("bound", *words, "--output", "json"))["policies"]:
        assert f"<td>{one['policy']}</td>" in text and f"{one['regret']:,.3f}</td>" in text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((TRACE, "--bound"), "--bound: only for a job, and none is named"),
        (("par-read", "--policy", "auto", "--bound"), "--bound: not with the policy auto"),
        (("par-read", "--array", "linear:2", "--bound"), "linear: the bound is proved for"),
        (("par-read", "--disk", "exos-2x18", "--bound"), "has two arms"),
    ],
)
def test_what_has_no_regret(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    assert why in streamsched("report", *words, "--to", tmp_path / "page.html", fails=True)
