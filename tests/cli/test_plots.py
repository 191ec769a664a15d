# SPDX-License-Identifier: GPL-2.0-only
"""Pictures of run and replay: --plot."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_data import PAPERS, POLICIES, TRACE, document, streamsched

pytest.importorskip("numpy", reason="numpy is missing: pip install 'streamsched[report]'")
pytest.importorskip("plotly", reason="plotly is missing: pip install 'streamsched[report]'")

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plots(made: Path, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is missing")
    first, second = tmp_path / f"1{suffix}", tmp_path / f"2{suffix}"
    words = [*PAPERS, "--policy", POLICIES, "--output", "json"]
    with_plot = streamsched("run", made / "job.fio", *words, "--plot", first)
    assert with_plot == (made / "plain.json").read_text()
    streamsched("run", made / "job.fio", *words, "--plot", second)
    assert first.read_bytes() == second.read_bytes()
    streamsched("replay", TRACE, "--policy", "noop", "--plot", first, "--force")
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
        (["--plot", "mine.svg"], "is there; name another file"),
    ],
)
def test_plots_that_are_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.svg").write_text("<?xml?><svg>mine</svg>")
    assert says in streamsched("run", made / "job.fio", *words, fails=True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.svg"]
