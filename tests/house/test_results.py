# SPDX-License-Identifier: GPL-2.0-only
"""The list of measured tables (tools/results.py): complete, and it knows what is stale."""

from __future__ import annotations

import dataclasses
import re
import shutil
import sys
from pathlib import Path

import pytest
import table as rig_table
from said import ROOT

from streamsched.base.errors import StreamschedError

sys.path.insert(0, str(ROOT / "tools"))
import results

INDEX = "README.md"
CORE = Path("core") / "sched.c"


def test_each_table_has_one_row_and_each_row_its_table() -> None:
    listed = [row.path for row in results.ROWS]
    assert len(listed) == len({*listed}) == len(results.BY_NAME)
    docs = ROOT / "docs"
    there = {*docs.glob("results/*"), *docs.glob("*.svg")} - {docs / "results" / INDEX}
    assert {*listed} == there
    index = (docs / "results" / INDEX).read_text()
    assert all(f"({path.name})" in index for path in listed if path.suffix == ".md")


def test_a_table_names_what_writes_it() -> None:
    for row in results.ROWS:
        if row.path.suffix == ".md":
            assert row.command.split(" && ")[-1] in row.path.read_text() or (
                f"make results WHAT={row.name}`" in row.path.read_text()
            ), row.name


def test_tables_of_real_kernels_are_measured_by_name() -> None:
    """bench/table.py calls each as the list does."""
    for name in rig_table.MEASURE:
        row = results.BY_NAME[name]
        assert row.made_of or row.command.endswith((f"bench/table.py {name}", f"make {name}"))


def test_a_table_that_is_there_is_replaced() -> None:
    for row in results.ROWS:
        if re.search(r" --(to|plot) ", row.command):
            assert row.command.endswith(" --force"), row.name


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources as here, which a test may change, and a table."""
    for part in ("core", "disk", "disks", "sim", "kernel", "jobs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(results, "ROOT", tmp_path)
    return tmp_path


def table(
    tree: Path, command: str = "printf '<!-- SPDX-License-Identifier\\n' > docs/a.md"
) -> results.Row:
    (tree / "docs" / "a.md").write_text("<!-- SPDX-License-Identifier\n")
    return results.Row("a", "a.md", command, 1, ("core", "disk model"))


def state(row: results.Row, tree: Path) -> str:
    return results.state(row, results.hashes(tree))


def test_a_changed_core_makes_a_table_stale(tree: Path) -> None:
    row = table(tree)
    assert state(row, tree) == "unknown"
    results.measure(row)
    assert state(row, tree) == "fresh"
    source = tree / CORE
    source.write_text("/* A remark. */\n" + source.read_text())
    assert state(row, tree) == "fresh"
    (tree / "sim" / "sim.c").write_text("")
    assert state(row, tree) == "fresh"
    source.write_text(source.read_text() + "\nint one;\n")
    assert state(row, tree) == "stale: core"
    (tree / "disks" / "exos-x18.toml").unlink()
    assert state(row, tree) == "stale: core, disk model"
    # The command by itself: nobody knows with what.
    row.path.write_text(results.without_line(row.path.read_text()))
    assert state(row, tree) == "unknown"


def test_what_fails_or_changes_under_way_is_not_called_fresh(tree: Path) -> None:
    row = table(tree)
    results.measure(row)
    for command, said in (
        ("exit 3", "a: its command ended with 3"),
        ("echo 'int two;' >> core/sched.c", "the sources changed while it was measured"),
    ):
        with pytest.raises(StreamschedError, match=said):
            results.measure(dataclasses.replace(row, command=command))
        assert state(row, tree) == "unknown"


def test_a_table_made_of_another_is_as_old_as_that(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = table(tree)
    results.measure(one)
    monkeypatch.setitem(results.BY_NAME, "a", one)
    (tree / CORE).write_text("int three;\n")
    (tree / "docs" / "b.md").write_text("<!-- SPDX-License-Identifier\n")
    other = dataclasses.replace(one, name="b", file="b.md", command="true", made_of="a")
    results.measure(other)
    assert state(other, tree) == state(one, tree) == "stale: core"


def test_a_picture_has_the_line_as_a_comment() -> None:
    text = results.with_line("<svg/>\n", {"core": "1f", "disk model": "2e"}, ".svg")
    assert text == "<svg/>\n\n<!-- Measured with core 1f, disk model 2e. -->\n"
    assert results.measured_with(text) == {"core": "1f", "disk model": "2e"}
    assert results.without_line(text) == "<svg/>\n"


def test_what_the_tool_refuses(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BLKTESTS", raising=False)
    monkeypatch.delenv("XFSTESTS", raising=False)
    for word, said in (
        ("kernl", "results: unknown table 'kernl'; did you mean 'kernel'?\n"),
        ("blktests", "results: blktests: needs root, stock kernels, BLKTESTS=DIR\n"),
        ("xfstests", "results: xfstests: needs root, stock kernels, XFSTESTS=DIR\n"),
    ):
        assert results.main([word]) == 2
        assert capsys.readouterr().err.startswith(said)


def test_stale_fast_needs_nothing_and_no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "state", lambda row, now: "unknown")
    fast = results.chosen(["stale-fast"])
    assert "comparison" in {row.name for row in fast}
    assert all(row.minutes <= results.FAST_MINUTES and not row.needs for row in fast)
