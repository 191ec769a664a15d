# SPDX-License-Identifier: GPL-2.0-only
"""Real programs in the rig's real kernel (streamsched/hosts/applications.py, docs/APPLICATIONS.md).

Two of them are run, with little data; a program that is not installed skips its test with the
name of its Debian package.
"""

from __future__ import annotations

import dataclasses
import io
import os
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rig_driver import need_rig

from streamsched.base.errors import StreamschedError
from streamsched.hosts import applications
from streamsched.hosts.applications import APPLICATIONS, Application, Need
from streamsched.hosts.kerneltable import Cell, marks
from streamsched.papers import programs as paper_programs
from streamsched.sim.experiment import Row, figure_table

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "results" / "applications.md"

pytestmark = pytest.mark.e2e


def seconds(
    application: Application, path: str, policies: str, depth: int = 32
) -> dict[str, float]:
    """How long it took under each, with @depth commands in the disk at once."""
    need_rig()
    try:
        application.check()
    except StreamschedError as error:
        pytest.skip(str(error))
    here = dataclasses.replace(application, conditions=((depth, path),))
    cells = applications.measure("test", here, policies)
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
    wrong = small.program.work.replace(str(2 << 20), str(3 << 20))
    broken = dataclasses.replace(small, program=dataclasses.replace(small.program, work=wrong))
    with pytest.raises(StreamschedError, match="client 1 did not get all of its file"):
        seconds(broken, "direct", "none")


def test_a_missing_program_is_named_with_its_package() -> None:
    with pytest.raises(StreamschedError) as error:
        Need("no-such-program", "its-package", ()).path()
    assert str(error.value) == (
        "no-such-program is missing: install the Debian package its-package"
    )


def test_an_unknown_program_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["applications", "postmrk"])
    assert applications.main() == 2
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
    rows = applications.markdown(APPLICATIONS["greps"], cells).splitlines()
    assert rows[0].startswith("Measured with grep (GNU grep) ")
    assert rows[4] == "| 32 | visible | none | 8.00 | 1.00 | 2.5 | 12.3 | 56.8 |"
    assert rows[5] == "| 32 | visible | stream | 4.00 | 2.00 | 2.5 | 12.3 | 56.8 |"
    assert rows[6].startswith("| 32 | hidden | none | 9.00 | 1.00 |")
    assert rows[8].startswith("| 1 | visible | stream | 4.00 | 4.00 |")


def test_the_document_has_a_place_for_each(tmp_path: Path) -> None:
    copy = tmp_path / "copy.md"
    copy.write_text(DOCUMENT.read_text())
    for name in APPLICATIONS:
        applications.write_into(copy, name, f"table of {name}")
    text = copy.read_text()
    for name in APPLICATIONS:
        begin, end = marks(name)
        assert f"{begin}\n\ntable of {name}\n\n{end}" in text


# ---- beside the paper ----

REPRODUCTION = ROOT / "docs" / "results" / "reproduction-programs.md"


def printed(rows: list[Row]) -> str:
    """As `streamsched reproduce programs` prints them."""
    console = Console(file=io.StringIO(), width=120)
    console.print(figure_table(paper_programs.TITLE, rows))
    console.print(f"{sum(row.agrees for row in rows)} of {len(rows)} agree")
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def test_rows_by_real_programs_are_of_what_was_measured() -> None:
    """docs/results/reproduction-programs.md has the rows of applications.md's figures."""
    text = REPRODUCTION.read_text()
    head, rest = text.split("<!-- programs -->\n", 1)
    shown, tail = rest.split("<!-- end: programs -->", 1)
    rows = paper_programs.rows(applications.cells_in(DOCUMENT.read_text()))
    new = f"\n```text\n{printed(rows)}\n```\n\n"
    if os.environ.get("UPDATE_DOCS") and shown != new:
        REPRODUCTION.write_text(f"{head}<!-- programs -->\n{new}<!-- end: programs -->{tail}")
    else:
        assert shown == new
    flat = " ".join((ROOT / "docs" / "REPRODUCTION.md").read_text().split())
    assert all(f"**{row.what}**" in flat for row in rows if not row.agrees)


def test_what_the_document_measured_is_read_whole() -> None:
    cells = applications.cells_in(DOCUMENT.read_text())
    assert len(cells) == len(APPLICATIONS) * len(applications.CONDITIONS) * 6
    for name, application in APPLICATIONS.items():
        mine = [cell for cell in cells if cell.workload == name]
        table = applications.table_lines(application, mine)
        assert all(line in DOCUMENT.read_text() for line in table if "| none |" in line)


def test_programs_are_measured_as_in_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """One command, owners hidden, nothing else; a row that differs ends with 1."""
    asked: list[tuple[str, object, str, int]] = []
    known = applications.cells_in(DOCUMENT.read_text())

    def measure(name: str, one: Application, policies: str, *, jobs: int) -> list[Cell]:
        asked.append((name, one.conditions, policies, jobs))
        return [cell for cell in known if cell.workload == name]

    monkeypatch.setattr(applications, "measure", measure)
    monkeypatch.setattr(Application, "check", lambda self: None)
    agrees = paper_programs.reproduce_programs(2, Console(quiet=True))
    assert agrees is all(row.agrees for row in paper_programs.rows(known))
    assert asked == [
        (name, ((1, "loop"),), "none,mq-deadline,anticipatory,cfq,stream", 2)
        for name in APPLICATIONS
    ]
