# SPDX-License-Identifier: GPL-2.0-only
"""The two claims of the project, in exact virtual time: the paper's figures, and the frontier."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from streamsched import frontier, reproduce
from streamsched.experiment import Case, within, work_case

JOBS = os.cpu_count() or 1
COMMAND = [str(Path(sys.executable).with_name("streamsched"))]


@pytest.fixture(scope="module")
def runs() -> reproduce.Runs:
    """Every simulation of every figure, once."""
    cases = [case for figure in reproduce.FIGURES.values() for case in figure.cases()]
    return reproduce.simulate_cases(cases, JOBS, Console(stderr=True))


# What does not agree, and docs/REPRODUCTION.md says why.
DIFFERS = {
    "fig5": [
        "multi-threads, time of anticipatory to noop",
        "multi-threads, time of cfq to noop",
        "multi-threads, noop",
        "PVFS, noop",
    ],
    "fig6": ["tpc-h, stream:deadline over noop"],
    "love": [
        "test 2, a source tree beside a stream of reads, linus to deadline",
        "test 2, a source tree beside a stream of reads, deadline to anticipatory",
    ],
    "profiles": [
        "mail, time of anticipatory to cooperative",
        "file, time of cfq to cooperative",
        "file, time of noop to cooperative",
        "meta, time of cfq to cooperative",
    ],
}


@pytest.mark.parametrize("key", reproduce.FIGURES)
def test_the_rows_of_the_figure_agree(key: str, runs: reproduce.Runs) -> None:
    rows = reproduce.FIGURES[key].rows(runs)
    assert rows
    assert [row.what for row in rows if not row.agrees] == DIFFERS.get(key, [])


def test_a_row_that_differs_makes_the_command_fail(runs: reproduce.Runs) -> None:
    """The rules can fail: with deadline's run in stream's place nothing is gained."""
    stream = reproduce.Case("par-read", reproduce.STREAM)
    swapped = {**runs, stream: runs[reproduce.Case("par-read", "deadline")]}
    rows = reproduce.FIGURES["fig3"].rows(swapped)
    assert [row for row in rows if not row.agrees]


def test_rows_that_differ_are_explained(root: Path) -> None:
    """By name, in the document."""
    text = (root / "docs/REPRODUCTION.md").read_text()
    flat = " ".join(text.split())
    assert [what for rows in DIFFERS.values() for what in rows if what not in flat] == []


def test_figures_without_a_row_are_what_the_document_says(root: Path, runs: reproduce.Runs) -> None:
    """And would not agree, as it says, too."""
    text = (root / "docs/REPRODUCTION.md").read_text()
    table = text.split("## Figures that have no row", 1)[1].split("## What was changed", 1)[0]
    row = r"^\| \d \| .* \| ([\d.]+) (\S+) \| ([\d.]+ \S+) \|$"
    rows = re.findall(row, table, re.MULTILINE)
    cases = [
        Case("two-greps", "noop"),
        Case("postmark", "noop"),
        Case("tpc-h", "noop"),
        work_case("scans-1vm", "noop"),
        work_case("scans-2vm", "noop"),
        Case("tpc-h", "noop", owners="process", array="raid0:5:64k", depth=32),
        Case("postmark", "noop", owners="process", array="raid0:5:64k", depth=32),
    ]
    assert len(rows) == len(cases)
    for (paper, unit, shown), case in zip(rows, cases, strict=True):
        ours = runs[case].seconds if unit == "s" else runs[case].mb_s
        ours *= 1000 if unit == "KB/s" else 1
        assert shown == f"{ours:.1f} {unit}"
        assert not within(ours, float(paper), 0.15)


def test_a_variant_is_what_the_document_says(root: Path) -> None:
    """Who reads all of a tree with one process is waited for, by the older rule, too."""
    done = subprocess.run(
        [sys.executable, "-P", root / "bench" / "variants.py", "tree"],
        capture_output=True,
        text=True,
        check=True,
    )
    (one_cat,) = [line for line in done.stdout.splitlines() if "xargs" in line]
    assert one_cat.split()[-3:] == ["79.0,", "79.0", "s"]
    assert "with one process 79 s here" in " ".join(
        (root / "docs/REPRODUCTION.md").read_text().split()
    )


@pytest.mark.parametrize("name", ("choice", "variants", "kernel_variants"))
def test_evidence_of_an_unknown_name(root: Path, name: str) -> None:
    """One sentence, with the names there are, before anything is measured."""
    script = root / "bench" / f"{name}.py"
    done = subprocess.run(
        [sys.executable, "-P", script, "nonesuch"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"{name}\.py: unknown \w+ 'nonesuch'; there are: .+\n", done.stderr)


def test_the_command_ends_with_the_count() -> None:
    done = subprocess.run(
        [*COMMAND, "reproduce", "fig7"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "4 of 4 agree"


def test_programs_are_named_by_themselves() -> None:
    done = subprocess.run(
        [*COMMAND, "reproduce", "fig7", "programs"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("streamsched: programs: are not of the simulator; name it by itself\n")


@pytest.mark.parametrize(("name", "near"), [("fig33", "fig3"), ("programms", "programs")])
def test_an_unknown_figure_is_named(name: str, near: str) -> None:
    done = subprocess.run(
        [*COMMAND, "reproduce", name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == f"streamsched: unknown figure '{name}'; did you mean '{near}'?\n"


@pytest.fixture(scope="module")
def points() -> list[frontier.Point]:
    return frontier.measure(frontier.auto_cases(), JOBS, Console(stderr=True))


def test_sequential_readers_reach_the_frontier(points: list[frontier.Point]) -> None:
    """2 to 16 readers, buffered and direct, with think times, four wait targets."""
    assert len(points) == 96
    assert [point for point in points if not point.reaches] == []


def test_what_is_above_the_frontier_is_known(points: list[frontier.Point]) -> None:
    """What docs/FRONTIER.md explains: buffered readers that think, by what is read ahead."""
    above = [point for point in points if point.efficiency > point.frontier + 0.005]
    cases = {(each.case.direct, each.case.think_us, each.case.readers) for each in above}
    assert cases == {(False, 300, 8), (False, 1000, 4), (False, 1000, 8)}
    assert all(point.efficiency < point.frontier + 0.05 for point in above)


def test_nobody_waits_beyond_the_target_and_one_service(points: list[frontier.Point]) -> None:
    assert [point for point in points if not point.in_time] == []


def test_the_plot_is_drawn(points: list[frontier.Point], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "frontier.svg"
    frontier.plot(points, picture)
    assert picture.read_text().startswith("<?xml")
