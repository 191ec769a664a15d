# SPDX-License-Identifier: GPL-2.0-only
"""Reports: few points and colours show what many requests were."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from report_data import (
    drawn,
    rows,
    streamsched,
)

np = pytest.importorskip("numpy", reason="numpy is missing: pip install 'streamsched[report]'")
pytest.importorskip("plotly", reason="plotly is missing: pip install 'streamsched[report]'")

from streamsched.report.figures import (  # noqa: E402
    OTHERS,
    PARTIES,
    Section,
    party_label,
    points,
)
from streamsched.report.panels import cumulative  # noqa: E402
from streamsched.sim.series import MOST, Series, extremes, thinned  # noqa: E402

pytestmark = pytest.mark.e2e


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


def test_who_is_large_under_one_policy_has_a_colour_under_all() -> None:
    """Of one party more than there are colours it is the smallest under the last one."""
    numbers = range(1, len(PARTIES) + 2)
    rows = np.zeros(len(numbers), [("job", "u4"), ("party", "u4")])
    rows["party"] = numbers
    none = np.zeros(0)

    def run(of_first: int) -> Series:
        sizes = {**dict.fromkeys(numbers, 10), 1: of_first}
        return Series(rows, len(rows), sizes, none, none, none, none, 0, 1, none)

    for own in points(Section("", {}), [run(100), run(1)]):
        assert party_label(1) in {one.name for one in own}
        assert [len(one.rows) for one in own if one.colour == OTHERS] == [1]
