# SPDX-License-Identifier: GPL-2.0-only
"""Reports: what is refused or fails is one sentence."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from report_data import PAPERS, TRACE, streamsched
from said import COMMAND, ran
from typer.testing import CliRunner

from streamsched.base.errors import StreamschedError, UsageError, install
from streamsched.cli import report as cli_report
from streamsched.cli.main import app
from streamsched.sim.resultfile import load_results

pytest.importorskip("numpy", reason="numpy is missing: pip install 'streamsched[report]'")
pytest.importorskip("plotly", reason="plotly is missing: pip install 'streamsched[report]'")

pytestmark = pytest.mark.e2e


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
        (
            lambda text: '{"format": "streamsched-results", "version": 1, "results": []}',
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
        (["plain.json", "--to", "notes"], "is there; name another file"),
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
        f"report needs plotly and numpy, which are not installed: {install('report')}"
    )


FAILS = """
class Fails:
    def arrived(self, request, now_ns):
        raise ValueError("no more")

    choose = dispatched = removed = arrived
"""


def test_a_page_has_what_is_finished_and_says_what_failed(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(FAILS)
    command = [COMMAND, "report", made / "job.fio", TRACE]
    words = [*PAPERS, "--policy", "noop,my.py:Fails,deadline", "--to", "p.html"]
    done = ran(*command, *words)
    said = "my.py: line 4: Fails.arrived() raised ValueError: no more; mend that line"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"streamsched: {said}\n" * 2  # of the job, of the trace
    text = Path("p.html").read_text()
    assert text.count(f'<p class="note">{said}</p>') == 2
    assert text.count('<p class="note">Incomplete: only finished runs are here.</p>') == 2
    assert re.findall(r"<tr><td>(.*?)</td>", text) == ["noop", "deadline"] * 2
    # Of nothing there is no page, but of a result there is.
    for results, pages in ([], []), ([made / "plain.json"], ["q.html"]):
        words = [*PAPERS, "--policy", "my.py:Fails", "--to", "q.html"]
        done = ran(*command[:3], *results, *words)
        assert (done.returncode, done.stderr) == (1 if results else 2, f"streamsched: {said}\n")
        assert [path.name for path in tmp_path.glob("q*")] == pages
