# SPDX-License-Identifier: GPL-2.0-only
"""The suite S in the rig's real kernel (bench/tables/s_suite.py, docs/research/S-SUITE.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
import table
from rig_driver import need_rig
from said import ROOT
from tables import s_suite
from tables.common import EVERY, line_of, lines_in, write_into
from tables.s_suite import BENCHMARKS, PATHS, table_of

from streamsched.base.errors import StreamschedError
from streamsched.hosts import rig
from streamsched.hosts.kernelhost import KernelPolicy

DOCUMENT = ROOT / "docs" / "results" / "s-suite.md"
MARKS = "".join(
    f"## {name}\n\n<!-- measured: {name} -->\n<!-- end: {name} -->\n" for name in BENCHMARKS
)


def result(*parts: tuple[str, str]) -> str:
    """A file as the suite writes it: a line about all, and for each heading a line of figures."""
    lines = [
        f"{head}:\n         min         max         avg     std_dev\n{row}" for head, row in parts
    ]
    return "\n".join(["Results for stream, 10 seq readers and 0 seq writers", *lines, ""])


RATES = (
    ("Aggregated throughput", "         100         300         200     67.2733"),
    ("Read throughput", "         100         200         150     67.2733"),
    ("Write throughput", "           0     1.5e-05          50           0"),
)


def test_start_up_times_are_mean_and_longest() -> None:
    """Beside what the disk does, in MB/s: iostat counts in MiB."""
    text = result(
        ("Latency statistics", "       1.305       1.703       1.504    0.281428"), *RATES
    )
    assert s_suite.startup_figures(text) == ("1.50", "1.70", "209.7")


def test_throughput_is_both_ways() -> None:
    """Of all figures the means."""
    assert s_suite.throughput_figures(result(*RATES)) == ("209.7", "157.3", "52.4")


def test_one_beside_others() -> None:
    """fio counts in KiB, and the suite in thousands of them."""
    text = result(
        *RATES,
        ("Interfered total throughput", "           0           3           2           0"),
        (
            "Interfered per-request total latency",
            "        0.01       512.7        7.25           0",
        ),
    )
    assert s_suite.interfered_figures(text) == ("2.05", "7.2", "513", "209.7")


def test_readers_are_told_by_dd() -> None:
    """Two at once in each iteration, which the later one ends."""
    line = "200000000 bytes (200 MB, 191 MiB) copied, {} s, 1 MB/s\n"
    text = "200+0 records in\n" + "".join(line.format(seconds) for seconds in (1, 2, 4, 2))
    assert s_suite.fairness_figures(text) == ("133.3", "50.0", "200.0")


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_no_result_is_no_figure(name: str) -> None:
    """A script that gave up leaves nothing, and its row says so."""
    with pytest.raises((KeyError, ZeroDivisionError, ValueError)):
        BENCHMARKS[name].figures("")
    line = next(iter(BENCHMARKS[name].commands))
    row = line_of(s_suite.row_of(name, line, "direct", "none", ()))
    assert row.startswith(f"| {line} | direct | none | failed | - |")
    assert row.count("|") == 4 + len(BENCHMARKS[name].head)


def test_rows_are_kept_in_their_order(tmp_path: Path) -> None:
    """What was not measured anew stays as it is."""
    document = tmp_path / "s-suite.md"
    document.write_text(f"<!-- SPDX-License-Identifier: GPL-2.0-only -->\n# Title\n\n{MARKS}")
    throughput, figures = table_of("throughput"), ("1", "2", "3")
    write_into(document, throughput, [("10r0w-rand", "direct", "none", *figures)])
    write_into(document, throughput, [("10r0w-seq", "loop", "bfq", *figures)])
    write_into(document, throughput, [("10r0w-seq", "direct", "stream", *figures)])
    rows = [line for line in document.read_text().splitlines() if line.startswith("| 1")]
    assert rows == [
        "| 10r0w-seq | direct | stream | 1 | 2 | 3 |",
        "| 10r0w-seq | loop | bfq | 1 | 2 | 3 |",
        "| 10r0w-rand | direct | none | 1 | 2 | 3 |",
    ]


def test_what_is_named_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, before anything is built."""
    assert table.main(["s-suite", "gnometerm"]) == 2
    assert "unknown benchmark or line or path or scheduler" in capsys.readouterr().err


def test_a_suite_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, before anything is built: what is missing, and what fetches it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(s_suite.rig, "build", lambda: pytest.fail("a kernel was built"))
    assert table.main(["s-suite"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("s-suite: the suite S is missing (commit ")
    assert said.endswith(": tools/setup.sh s-suite fetches it\n")
    assert said.count("\n") == 1


def test_a_rig_that_is_stopped_is_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was there stays; the others are measured, and the command fails."""
    document = tmp_path / "s-suite.md"
    document.write_text(MARKS)
    write_into(document, table_of("fairness"), [("100-100", "loop", "none", "1", "2", "3")])
    monkeypatch.setattr(s_suite, "document", lambda _: document)
    monkeypatch.setattr(s_suite, "suite", lambda: tmp_path)
    monkeypatch.setattr(rig, "build", lambda _: None)
    monkeypatch.setattr(rig, "build_modules", lambda _: None)

    def boot(_: object, policy: KernelPolicy, *__: object, **___: object) -> rig.RigResult:
        if policy.name == "none":
            raise rig.RigError("the rig was stopped")
        dd = b"2000000 bytes (2 MB, 2 MiB) copied, 1 s, 2 MB/s\n" * 2
        return rig.RigResult(0, "", "", "", {"results": dd}, 0)

    monkeypatch.setattr(s_suite, "boot", boot)
    assert table.main(["s-suite", "100-100", "loop", "none", "kyber"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert "100-100 loop none was not measured: the rig was stopped" in said
    assert said[-1] == "s-suite: 1 of 2 lines were not measured; see above"
    rows = [line for line in document.read_text().splitlines() if line.startswith("| 1")]
    assert rows == [
        "| 100-100 | loop | none | 1 | 2 | 3 |",
        "| 100-100 | loop | kyber | 4.0 | 2.0 | 2.0 |",
    ]


@pytest.mark.parametrize("number", ["x", "0", "-1", "65", ""])
def test_a_number_of_rigs_that_cannot_be(
    number: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RIGS", number)
    monkeypatch.setattr(s_suite, "suite", lambda: None)
    monkeypatch.setattr(s_suite.rig, "build", lambda: pytest.fail("a kernel was built"))
    assert table.main(["s-suite"]) == 2
    assert capsys.readouterr().err == (
        f"s-suite: RIGS={number}: not a number of rigs at a time; write 1 to 64\n"
    )


@pytest.mark.e2e
@pytest.mark.parametrize("path", PATHS)
def test_a_program_starts(path: str) -> None:
    """Alone, about as fast as the disk can; what is missing skips by name."""
    need_rig()
    try:
        row = s_suite.measure_row("startup", "gnometerm-0r0w-seq", path, KernelPolicy("stream"))
    except StreamschedError as error:
        if "is missing" in str(error):
            pytest.skip(str(error))
        raise
    assert row
    mean, longest, rate = map(float, row[3:])
    assert 0.5 < mean <= longest < 3, row
    assert 0 < rate < 50, row


def test_the_document_is_what_is_measured() -> None:
    """Each row of the tables is of a line that there is, with all figures."""
    text = DOCUMENT.read_text()
    for name, about in BENCHMARKS.items():
        for row in lines_in(text, name)[2:]:
            line, path, policy, *figures = (word.strip() for word in row.strip("|").split("|"))
            assert line in about.commands, row
            assert path in PATHS, row
            assert policy in EVERY, row
            assert len(figures) == len(about.head), row
