# SPDX-License-Identifier: GPL-2.0-only
"""The two claims of the project, in exact virtual time: the paper's figures, and the frontier."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from itertools import zip_longest
from pathlib import Path

import pytest
from rich.console import Console
from said import ran

from streamsched.base.files import Target
from streamsched.papers import frontier, reproduce

JOBS = os.cpu_count() or 1
COMMAND = [str(Path(sys.executable).with_name("streamsched"))]


@pytest.fixture(scope="module")
def found() -> reproduce.Found:
    """Every row of every figure, once."""
    return reproduce.measure(["all"], JOBS)


def test_the_document_has_what_is_measured(root: Path, found: reproduce.Found) -> None:
    """Virtual time: the same each time. A change that is meant writes it anew."""
    text = (root / "docs/results/reproduction.md").read_text()
    shown = text.partition("\n\nMeasured with ")[0].splitlines()
    new = reproduce.document(found).splitlines()
    other = [(old, now) for old, now in zip_longest(shown, new) if old != now]
    assert not other, f"{len(other)} lines, first {other[0]}: see the document's head"


def test_rows_that_differ_are_explained(root: Path) -> None:
    """By name, in bold, in the document; and nothing is explained that does not differ."""
    text = " ".join((root / "docs/research/REPRODUCTION.md").read_text().split())
    why = text.split("## Why rows differ", 1)[1].split("## By real programs", 1)[0]
    patterns = {name.replace("...", "*") for name in re.findall(r"\*\*(.+?)\*\*", why)}
    results = (root / "docs/results/reproduction.md").read_text()
    differ = re.findall(r"^\| (.+?) \| .* \| DIFFERS \|$", results, re.MULTILINE)
    assert differ
    assert [row for row in differ if not any(fnmatch(row, name) for name in patterns)] == []
    assert [name for name in patterns if not any(fnmatch(row, name) for row in differ)] == []


def test_the_head_line_counts_what_could_fail(found: reproduce.Found) -> None:
    rows = [row for rows in found.values() for row in rows]
    can_fail = [row for row in rows if not row.idle]
    assert len(can_fail) > 150 and len(rows) > len(can_fail)
    agreeing = sum(row.agrees for row in can_fail)
    apart = len(rows) - len(can_fail)
    assert reproduce.headline(found) == (
        f"{agreeing} of {len(can_fail)} agree; {apart} more cannot fail"
    )


def test_the_rules_can_fail() -> None:
    """With deadline's run in the place of ss's nothing is gained."""
    figure = reproduce.FIGURES["fig7"]
    runs = reproduce.simulate_cases(figure.cases(), JOBS, Console(stderr=True))
    deadline = next(run for case, run in runs.items() if case.policy == "deadline")
    assert all(row.agrees for row in figure.rows(runs))
    swapped = dict.fromkeys(runs, deadline)
    assert [row.what for row in figure.rows(swapped) if row.agrees] == [
        "throughput, slice from 100 to 300 ms"
    ]


def test_one_reading_of_each_figure(found: reproduce.Found) -> None:
    """A rule that takes two readings takes what lies between, too."""
    rules = {row.rule for rows in found.values() for row in rows}
    assert not [rule for rule in rules if re.search(r"\d to [\d.]+ \(", rule)]


@pytest.mark.parametrize("name", ("choice", "variants", "kernel_variants"))
def test_evidence_of_an_unknown_name(root: Path, name: str) -> None:
    """One sentence, with the names there are, before anything is measured."""
    script = root / "bench" / f"{name}.py"
    done = ran(sys.executable, script, "nonesuch")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"{name}\.py: unknown \w+ 'nonesuch'; there are: .+\n", done.stderr)


def test_the_command_ends_with_the_count() -> None:
    done = ran(*COMMAND, "reproduce", "fig7")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "4 of 4 agree"


def test_rows_that_differ_lead_to_their_reasons(root: Path) -> None:
    """The last sentence, if any row differs; what it names is there."""
    done = ran(*COMMAND, "reproduce", "fig3")
    assert done.returncode == 1, done.stderr
    count, reasons = re.split(r"\n(?=Rows differ)", done.stdout.partition(" agree; ")[2])
    assert count.endswith("cannot fail")
    assert max(map(len, reasons.splitlines())) < 80
    where, section = re.findall(r'(docs/\S+) .*"(.*)"', " ".join(reasons.split()))[0]
    assert f"\n## {section}\n" in (root / where).read_text()


@pytest.mark.parametrize("words", [[], ["fig7"], ["--to", "rows.md"]])
def test_real_programs_are_of_a_source_tree(words: list[str], tmp_path: Path) -> None:
    """One sentence, which names what runs them there; nothing is written."""
    done = ran(*COMMAND, "reproduce", "programs", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "streamsched: programs: real ones run in the rig of a source tree; "
        "there, `.venv/bin/python bench/table.py reproduction-programs` does it\n"
    )
    assert not [*tmp_path.iterdir()]


def test_results_are_written_for_figures_in_the_simulator(tmp_path: Path) -> None:
    to = tmp_path / "rows.md"
    done = subprocess.run([*COMMAND, "reproduce", "fig7", "--to", to], check=False)
    assert done.returncode == 0
    assert "## fig7: Figure 7: the time slice" in to.read_text()


@pytest.mark.parametrize(("name", "near"), [("fig33", "fig3"), ("programms", "programs")])
def test_an_unknown_figure_is_named(name: str, near: str) -> None:
    done = ran(*COMMAND, "reproduce", name)
    assert done.returncode == 2
    assert done.stderr == f"streamsched: unknown figure '{name}'; did you mean '{near}'?\n"


@pytest.fixture(scope="module")
def points() -> list[frontier.Point]:
    return frontier.measure(frontier.auto_cases(), JOBS, Console(stderr=True))


def test_sequential_readers_reach_the_frontier(points: list[frontier.Point]) -> None:
    """2 to 16 readers, buffered and direct, with think times, four wait targets."""
    assert len(points) == 96
    missed = [point.case for point in points if not point.reaches]
    assert len(missed) <= 4, missed
    # Where two switches for each fit into the target nobody waits beyond it and a slice.
    late = [point.case for point in points if not point.in_time]
    assert {case.readers for case in late} <= {8, 16} and len(late) <= 12, late
    assert all(case.target_ms <= 500 for case in late if not case.think_us and case.direct)


def test_the_plot_is_drawn(points: list[frontier.Point], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "frontier.svg"
    frontier.plot(points, Target(picture))
    assert picture.read_text().startswith("<?xml")
