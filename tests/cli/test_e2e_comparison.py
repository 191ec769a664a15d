# SPDX-License-Identifier: GPL-2.0-only
"""Every policy on every workload: docs/results/comparison.md is what the command measures."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from rich.console import Console
from said import ran

from streamsched.papers import comparison
from streamsched.papers.comparison import Cell
from streamsched.sim.experiment import STREAM

COMMAND = [str(Path(sys.executable).with_name("streamsched")), "compare"]
# Small, and of each kind: a job file, an owner per VM, new processes, another disk and memory.
PART = ["random-regions", "ftp-2vm", "two-trees", "random-mmap"]


def test_a_part_of_the_document_is_reproduced_exactly(root: Path) -> None:
    table = comparison.measure(PART, os.cpu_count() or 1, Console(stderr=True))
    lines = (root / "docs/results/comparison.md").read_text().splitlines()
    for work, row in table.items():
        assert comparison.table_row(work, row) in lines, "run make results WHAT=comparison"


def test_the_document_is_complete(root: Path) -> None:
    text = (root / "docs/results/comparison.md").read_text()
    assert text.startswith(comparison.HEAD)
    assert f"| workload | {' | '.join(comparison.policies())} |" in text
    for work in comparison.workloads():
        assert text.count(f"\n| `{work}` | ") in (1, 2, 3), work


FAR = "many-readers"


def test_what_is_left_out_is_more_efficient_and_keeps_others_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The document's head says so of nwcs:cscan."""
    left_out = "nwcs:cscan"
    assert left_out not in comparison.policies()
    monkeypatch.setattr(comparison, "policies", lambda: [left_out, STREAM])
    works = ("par-read", "direct-readers", "tpc-h", "adversary")
    found = comparison.measure(works, os.cpu_count() or 1, Console(quiet=True))
    for work in works:
        other, ours = found[work][left_out], found[work][STREAM]
        assert ours.efficiency < other.efficiency and other.wait_s > 10 > ours.wait_s, work


def test_settings_of_the_document_are_reproduced_exactly(root: Path) -> None:
    table = comparison.measure([FAR], os.cpu_count() or 1, Console(stderr=True))
    settings = comparison.measure_settings(table, os.cpu_count() or 1, Console(stderr=True))
    text = (root / "docs/results/comparison.md").read_text()
    assert list(settings) == [FAR]
    # The line that names the nearest setting, and the table of all.
    lines = [line for line in comparison.settings_markdown(table, settings).splitlines() if line]
    assert len(lines) > 5
    for line in lines:
        assert line in text, "run make results WHAT=comparison"


def test_where_64_readers_may_wait_for_long_as_much_is_done() -> None:
    """As under anticipatory, which sees whose requests they are."""
    table = comparison.measure([FAR], os.cpu_count() or 1, Console(stderr=True))
    cells = comparison.measure_settings(table, os.cpu_count() or 1, Console(stderr=True))[FAR]
    best = table[FAR]["anticipatory"]
    own = cells[comparison.setting_name("deadline", 8000)]
    assert own.efficiency >= best.efficiency and own.wait_s < 2 * 8


def grid(**best: tuple[float, float]) -> dict[str, Cell]:
    made = {
        comparison.setting_name(inner, ms): Cell(0.5, 1.0)
        for ms in comparison.TARGETS_MS
        for inner in comparison.INNERS
    }
    for name, cell in best.items():
        inner, ms = name.split("_")
        made[comparison.setting_name(inner, int(ms))] = Cell(*cell)
    return made


def test_settings_that_come_near_are_named() -> None:
    table = {"a": cells(cfq=0.8, stream_deadline=0.6), "b": cells(cfq=0.8, stream_deadline=0.6)}
    settings = {
        "a": grid(sptf_8000=(0.79, 9.0), cscan_4000=(0.777, 4.5)),
        "b": grid(sptf_8000=(0.76, 9.0), cscan_4000=(0.6, 4.5)),
    }
    text = comparison.settings_markdown(table, settings)
    assert (
        "\n| `a` | cfq | 0.800 / 0.25 | stream:cscan, 4 s | 0.777 / 4.50 | 2.9 % | reached |\n"
    ) in text
    assert (
        "\n| `b` | cfq | 0.800 / 0.25 | stream:sptf, 8 s | 0.760 / 9.00 | 5.0 % | the nearest |\n"
    ) in text
    assert "\n| 4 s | 0.500 / 1.00 | **0.777 / 4.50** | 0.500 / 1.00 |\n" in text
    assert "\n| 8 s | 0.500 / 1.00 | 0.500 / 1.00 | 0.760 / 9.00 |\n" in text


def test_nothing_else_is_tried_where_it_is_near() -> None:
    table = {"a": cells(cfq=0.8, stream_deadline=0.79)}
    assert comparison.measure_settings(table, 1, Console(stderr=True)) == {}
    assert comparison.settings_markdown(table, {}) == ""


def cells(**efficiency: float) -> dict[str, Cell]:
    rates = {name.replace("_", ":"): rate for name, rate in efficiency.items()}
    return {spec: Cell(rates.get(spec, 0.5), 0.25) for spec in comparison.policies()}


def test_where_another_is_better_it_says_by_how_much() -> None:
    table = {
        "a": cells(cfq=0.8, stream_deadline=0.6),
        "b": cells(stream_deadline=0.9),
        "c": cells(cfq=0.8, stream_deadline=0.79),
    }
    text = comparison.markdown(table)
    assert "| `a` | cfq | 0.800 / 0.25 | 0.600 / 0.25 | 25.0 % |" in text
    assert f"{STREAM}: the most efficient or as good on 1 of 3 workloads" in text
    assert "on 1 more, and further behind on 1." in text
    assert "| `b` | 0.9" not in text.split("behind by")[1]
    assert "**0.800 / 0.25**" in text


def test_whoever_starves_somebody_is_no_measure() -> None:
    table = {"a": cells(cscan=0.0, stream_deadline=0.6)}
    text = comparison.markdown(table)
    assert " | starves | " in text
    assert comparison.mean(table, "cscan") == 0.0
    assert comparison.behind(table["a"]) < 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["par-rea"], "unknown workload 'par-rea'; did you mean 'par-read'?"),
        (["one-reader", "--to", "none/x.md"], "--to none/x.md: cannot write it: "),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], message: str) -> None:
    done = ran(*COMMAND, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"streamsched: {message}") and done.stderr.count("\n") == 1


def test_the_command_prints_the_table() -> None:
    command = [*COMMAND, "one-reader", "--parallel", "1"]
    done = ran(*command)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "longest wait of a request in s" in lines[0]
    assert lines[lines.index("") + 3].startswith("| `one-reader` | **1.000 / 0.00** | ")
