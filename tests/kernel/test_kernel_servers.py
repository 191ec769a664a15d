# SPDX-License-Identifier: GPL-2.0-only
"""Servers in the rig's real kernel (bench/tables/servers.py, docs/research/SERVERS.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
import table
from rig_driver import need_rig
from said import ROOT
from tables import servers
from tables.common import Row, lines_in, write_into
from tables.servers import HEADS, JOBS, SERVERS, STORM, WRITES

from streamsched.base.errors import StreamschedError
from streamsched.hosts.fiorun import FioJob
from streamsched.hosts.kernelhost import KernelPolicy

DOCUMENT = ROOT / "docs" / "results" / "servers.md"
MS = 1_000_000


def texts() -> list[str]:
    return [(ROOT / "jobs" / "servers" / f"{name}.fio").read_text() for name in JOBS]


def test_one_of_each_kind_is_measured_alone() -> None:
    """With what its job says of it, for a time, and read once: a server caches."""
    alone = servers.alone_texts(texts())
    assert list(alone) == ["reader", "scrub", "vm", "backup"]
    for kind, text in alone.items():
        assert text.count("[") == 2, text
        assert f"[{kind}]" in text
        assert text.count("runtime=") == 1
        assert "time_based" not in text
    assert "direct=0" in alone["backup"]
    assert "bs=64k\nsize=256m" in alone["reader"]


def job(mb_s: float, response_ms: int, mb: int = 100) -> FioJob:
    """That read @mb at a rate, with one response time."""
    return FioJob(mb * 10**6, 0, int(mb / mb_s * 1e9), ((response_ms * MS, 100),))


def test_shares_are_of_the_rate_alone() -> None:
    """Times the number of processes; p99 and longest are those of the worst reader."""
    jobs = [job(50, 5), job(25, 9), job(50, 5), job(50, 5)]
    total, least, p99, longest = servers.figures_of("readers", jobs, {"reader": 100e6})
    assert (total, least) == ("100.0", "1.00")
    assert (p99, longest) == ("9.0", "9.0")


def test_a_scrub_is_apart_from_the_vms() -> None:
    """Its response times are nobody's figure."""
    jobs = [job(90, 500), *(job(0.1, 20) for _ in range(7)), job(0.05, 30)]
    found = servers.figures_of("vms", jobs, {"scrub": 100e6, "vm": 1e6})
    assert found == ("90.0", "8.10", "0.45", "30.0", "30.0")


def test_a_tree_that_could_not_be_read() -> None:
    """Is not left out of the figures."""
    assert servers.tree_figures("1.0 3.5 3.7 4.0 9.0\n") == ("2.50", "8.00")
    with pytest.raises(StreamschedError, match="1 of the trees could not be read"):
        servers.tree_figures("1.0 3.5 3.7 4.0\n")


def client(begin: int, *ms: int, end: int) -> str:
    """What a client of small files prints, its times in seconds, its files' in ms."""
    times = [begin * 10**9, *(one * MS for one in ms), end * 10**9]
    return "".join(f"{time}\n" for time in times)


def test_files_are_timed_one_by_one() -> None:
    """From when the first client begins; p99 is of all clients' files."""
    others = [client(3, *[10] * 100, end=7)] * 3
    slowest = client(2, *[10] * 95, *[20] * 4, 900, end=9)
    assert servers.files_figures([*others, slowest]) == ("5.00", "7.00", "20.0", "900.0")


def test_files_that_could_not_be_written() -> None:
    """Are not left out of the figures."""
    done, failed = client(1, *[10] * 100, end=5), client(1, *[10] * 40, end=5)
    with pytest.raises(StreamschedError, match="2 of the clients could not write all"):
        servers.files_figures([failed, done, "", done])


def test_rows_are_kept_in_their_order(tmp_path: Path) -> None:
    """What was not measured anew stays as it is."""
    document = tmp_path / "servers.md"
    marks = "".join(
        f"## {name}\n\n<!-- measured: {name} -->\n<!-- end: {name} -->\n" for name in HEADS
    )
    document.write_text(f"<!-- SPDX-License-Identifier: GPL-2.0-only -->\n# Title\n\n{marks}")
    first, second = list(SERVERS)[:2]
    readers, figures = servers.table_of("readers"), ("1", "2", "3", "4")
    write_into(document, readers, [(second, "stream", *figures)])
    write_into(document, readers, [(first, "stream", *figures)])
    write_into(document, readers, [(first, "none", "5", "6", "7", "8")])
    rows = [line for line in document.read_text().splitlines() if line.startswith("| ")]
    assert rows == [
        "| server | scheduler | MB/s | least share | p99 ms | longest ms |",
        f"| {first} | none | 5 | 6 | 7 | 8 |",
        f"| {first} | stream | 1 | 2 | 3 | 4 |",
        f"| {second} | stream | 1 | 2 | 3 | 4 |",
    ]


def test_what_is_named_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, before anything is built."""
    assert table.main(["servers", "nfs"]) == 2
    assert "unknown server or job or scheduler 'nfs'" in capsys.readouterr().err


@pytest.mark.e2e
@pytest.mark.parametrize(
    "server", [pytest.param("no-server", marks=pytest.mark.long), "nbdkit-file", "qemu-qcow2"]
)
def test_clients_read_their_own(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers get all of their images, and trees are found; what is missing skips by name.

    Nobody has them from the page cache: the disk would be faster than it is.
    """
    need_rig()
    monkeypatch.setattr(servers, "IMAGES_MB", (64, *[264] * 4))
    rates = {"reader": 250e6}
    try:
        rows = servers.measure_rows(
            server, KernelPolicy("stream"), ["readers", STORM, WRITES], rates
        )
    except StreamschedError as error:
        if "is missing" in str(error):
            pytest.skip(str(error))
        raise
    rate, share = map(float, rows["readers"][2:4])
    assert 100 < rate < 275, rows
    assert share > 0.5, rows
    first, last = map(float, rows[STORM][2:])
    assert 0.2 < first <= last, rows
    assert_files_were_written(rows[WRITES])


def assert_files_were_written(row: Row) -> None:
    """To the disk, each by itself: a sync that waits for nothing is faster than a turn of it."""
    first, last, p99, longest = map(float, row[2:])
    assert servers.FILES / 1000 < first <= last < 60, row
    assert 4 < p99 <= longest, row


@pytest.mark.e2e
@pytest.mark.long
@pytest.mark.parametrize("server", ["knfsd-v4.2", "samba", "iscsi-file", "tcm-loop-volume"])
def test_servers_of_the_kernel_start(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the kernel that has them; it is built by `make results WHAT=servers`."""
    need_rig(servers.VARIANT)
    monkeypatch.setattr(servers, "IMAGES_MB", (64,))
    try:
        rows = servers.measure_rows(server, KernelPolicy("stream"), [STORM, WRITES], {})
    except StreamschedError as error:
        if "is missing" in str(error):
            pytest.skip(str(error))
        raise
    first, last = map(float, rows[STORM][2:])
    assert 0.2 < first <= last, rows
    assert_files_were_written(rows[WRITES])


def test_the_document_is_what_is_measured() -> None:
    """Each row of the tables is of a server that there is, with all figures."""
    text = DOCUMENT.read_text()
    for name, head in HEADS.items():
        for line in lines_in(text, name)[2:]:
            server, _, *figures = (word.strip() for word in line.strip("|").split("|"))
            assert server in SERVERS, line
            assert len(figures) == len(head), line
