# SPDX-License-Identifier: GPL-2.0-only
"""Real programs in the rig's kernel (bench/tables/applications.py, docs/research/APPLICATIONS.md).

Two of them are run, with little data; a program that is not installed skips its test with the
name of its Debian package.
"""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
import table
from rich.console import Console
from rig_driver import need_rig
from said import ROOT
from tables import applications, reproduction
from tables.applications import PROGRAMS
from tables.common import Rigs, Table, line_of, marks, write_into
from tables.programs import Cell, Need, Program

from streamsched.base.errors import StreamschedError
from streamsched.hosts import rig
from streamsched.sim.experiment import Row

DOCUMENT = ROOT / "docs" / "results" / "applications.md"

pytestmark = pytest.mark.e2e


def seconds(program: Program, path: str, policies: str, depth: int = 32) -> dict[str, float]:
    """How long it took under each, with @depth commands in the disk at once."""
    need_rig()
    try:
        program.check()
    except StreamschedError as error:
        pytest.skip(str(error))
    cells = applications.cells_of("test", program, Rigs(), policies, [(depth, path)])
    return {cell.policy: cell.seconds for cell in cells}


@pytest.mark.parametrize("path", applications.OWNERS)
def test_clients_of_an_ftp_server(path: str) -> None:
    """Where only the scheduler chooses, stream serves four clients in half of noop's time."""
    times = seconds(applications.ftp(file_mb=12), path, "noop,stream", depth=1)
    assert times["stream"] < 0.5 * times["noop"], times


def test_greps_of_visible_owners() -> None:
    """Who is waited for is known straight to the disk; under anticipatory that is a multiple."""
    times = seconds(applications.greps(), "direct", "none,anticipatory")
    assert times["anticipatory"] < 0.6 * times["none"], times


def test_greps_of_hidden_owners() -> None:
    """Behind a loop device anticipatory has nobody to wait for; stream needs not know."""
    times = seconds(applications.greps(), "loop", "none,anticipatory,stream")
    assert times["anticipatory"] > 0.9 * times["none"], times
    assert times["stream"] < 0.6 * times["none"], times


def test_postmarks_read_their_files_from_the_disk() -> None:
    """Few files would all be in the page cache; a measurement that reads too little is refused."""
    times = seconds(applications.postmark(files=4000, transactions=300), "direct", "none")
    assert times["none"] > 0


def test_work_that_fails_is_no_result() -> None:
    """A client that does not get its whole file ends the measurement with a sentence."""
    small = applications.ftp(file_mb=2)
    broken = dataclasses.replace(small, work=f"FTP_MB=3 {small.work}")
    with pytest.raises(StreamschedError, match="client 1 did not get all of its file"):
        seconds(broken, "direct", "none")


def test_a_missing_program_is_named_with_its_package() -> None:
    with pytest.raises(StreamschedError) as error:
        Need("no-such-program", "its-package", ()).path()
    assert str(error.value) == (
        "no-such-program is missing: install the Debian package its-package"
    )


def test_an_unknown_program_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert table.main(["applications", "postmrk"]) == 2
    assert capsys.readouterr().err == (
        "applications: unknown program 'postmrk'; did you mean 'postmark'?\n"
    )


def cell(policy: str, path: str, seconds: float, depth: int) -> Cell:
    return Cell("greps", path, policy, 2.5, None, seconds, 12.34, 56.78, queue_depth=depth)


def test_the_table() -> None:
    cells = [
        cell(policy, path, seconds, depth)
        for depth, half in ((32, 1.0), (1, 2.0))
        for path, policy, seconds in (
            ("direct", "none", 8.0 * half),
            ("direct", "stream", 4.0),
            ("loop", "none", 9.0),
        )
    ]
    rows = applications.table_of("greps").lines(applications.rows_of(cells))
    assert rows[0].startswith("Measured with grep (GNU grep) ")
    assert rows[4] == "| 32 | visible | none | 8.00 | 1.00 | 2.5 | 12.3 | 56.8 |"
    assert rows[5] == "| 32 | visible | stream | 4.00 | 2.00 | 2.5 | 12.3 | 56.8 |"
    assert rows[6].startswith("| 32 | hidden | none | 9.00 | 1.00 |")
    assert rows[8].startswith("| 1 | visible | stream | 4.00 | 4.00 |")


def test_the_document_has_a_place_for_each(tmp_path: Path) -> None:
    copy = tmp_path / "copy.md"
    copy.write_text(DOCUMENT.read_text())
    for name in PROGRAMS:
        write_into(copy, Table(name, (), (f"table of {name}",), ()), ())
    text = copy.read_text()
    for name in PROGRAMS:
        begin, end = marks(name)
        assert f"{begin}\n\n| table of {name} |\n|---:|\n\n{end}" in text


# ---- beside the paper ----

REPRODUCTION = ROOT / "docs" / "results" / "reproduction-programs.md"


def printed(rows: list[Row]) -> str:
    """As `bench/table.py reproduction-programs` prints them."""
    console = Console(file=io.StringIO(), width=120)
    reproduction.show(rows, console)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def test_rows_by_real_programs_are_of_what_was_measured() -> None:
    """docs/results/reproduction-programs.md has the rows of applications.md's figures."""
    text = REPRODUCTION.read_text()
    head, rest = text.split("<!-- programs -->\n", 1)
    shown, tail = rest.split("<!-- end: programs -->", 1)
    rows = reproduction.rows(applications.cells_in(DOCUMENT.read_text()))
    new = f"\n```text\n{printed(rows)}\n```\n\n"
    if os.environ.get("UPDATE_DOCS") and shown != new:
        REPRODUCTION.write_text(f"{head}<!-- programs -->\n{new}<!-- end: programs -->{tail}")
    else:
        assert shown == new
    flat = " ".join((ROOT / "docs" / "research" / "REPRODUCTION.md").read_text().split())
    assert all(f"**{row.what}**" in flat for row in rows if not row.agrees)


def test_what_the_document_measured_is_read_whole() -> None:
    cells = applications.cells_in(DOCUMENT.read_text())
    assert len(cells) == len(PROGRAMS) * len(applications.CONDITIONS) * 6
    for name in PROGRAMS:
        mine = [cell for cell in cells if cell.workload == name]
        lines = map(line_of, applications.rows_of(mine))
        assert all(line in DOCUMENT.read_text() for line in lines if "| none |" in line)


def test_programs_are_measured_as_in_the_paper(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One command, owners hidden, nothing else; a row that differs ends with 1."""
    asked: list[tuple[str, object, str, int]] = []
    known = applications.cells_in(DOCUMENT.read_text())

    def cells_of(
        name: str, one: Program, rigs: Rigs, policies: str, conditions: Sequence[tuple[int, str]]
    ) -> list[Cell]:
        asked.append((name, conditions, policies, rigs.at_once))
        return [cell for cell in known if cell.workload == name]

    monkeypatch.setattr(reproduction, "cells_of", cells_of)
    monkeypatch.setattr(Program, "check", lambda self: None)
    monkeypatch.setattr(rig, "build", lambda variant: None)
    monkeypatch.setattr(rig, "build_modules", lambda variant: None)
    agrees = all(row.agrees for row in reproduction.rows(known))
    assert table.main(["reproduction-programs"]) == (0 if agrees else 1)
    why = "docs/research/REPRODUCTION.md says why rows differ"
    assert (why in capsys.readouterr().err) is not agrees
    assert asked == [
        (name, [(1, "loop")], "none,mq-deadline,anticipatory,cfq,stream", 2) for name in PROGRAMS
    ]
