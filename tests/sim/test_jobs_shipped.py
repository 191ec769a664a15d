# SPDX-License-Identifier: GPL-2.0-only
"""The job files in jobs/: streamsched and a real fio both take them, and mean the same place."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from pathlib import Path

import pytest
import yardsticks
from said import ran

from streamsched.work.jobfile import load_jobs
from streamsched.work.process import Process

FIO = shutil.which("fio")
needs_fio = pytest.mark.skipif(FIO is None, reason="fio is not installed")

G = 1024**3
PAPER_DISK = 976_773_168 * 512  # the WD5000AAKS
SHIPPED = sorted(path.stem for path in (Path(__file__).parents[2] / "jobs").glob("*.fio"))


def shipped(root: Path, name: str) -> list[Process]:
    """Its processes on the paper's disk, with STREAMSCHED_DISK not set."""
    return load_jobs(root / f"jobs/{name}.fio", capacity_bytes=PAPER_DISK, environ={})


YARDSTICKS = sorted((Path(__file__).parents[2] / "jobs/yardsticks").glob("*.fio"))


@pytest.mark.parametrize("path", YARDSTICKS, ids=lambda path: path.stem)
def test_a_yardstick_fits_and_is_described(root: Path, path: Path) -> None:
    """Each is measured by make results WHAT=yardsticks, with a figure of others' beside ours."""
    assert path.stem in {one.job for one in yardsticks.YARDSTICKS}
    assert f"jobs/yardsticks/{path.name}" in (root / "docs/sim/JOBS.md").read_text()
    assert f"## {path.stem}\n" in (root / "docs/results/yardsticks.md").read_text()
    for process in load_jobs(path, capacity_bytes=PAPER_DISK, environ={}):
        assert process.offset + process.size <= PAPER_DISK


def test_all_are_there() -> None:
    assert {
        *("par-read", "two-greps", "postmark", "tpc-h", "random-disk", "writes-starving-reads"),
        *("mixed", "direct-readers", "random-regions"),
    } <= set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_says_what_it_models(root: Path, name: str) -> None:
    text = (root / f"jobs/{name}.fio").read_text()
    assert text.startswith("# SPDX-License-Identifier: GPL-2.0-only\n#\n")
    head = re.match(r"(#.*\n)+", text)
    assert head and f"# {name}: " in head.group() and "paper" in head.group().lower()
    assert "filename=${STREAMSCHED_DISK}\n" in text
    assert all(len(line) <= 84 for line in text.splitlines())
    assert f"jobs/{name}.fio" in (root / "docs/sim/JOBS.md").read_text()


@pytest.mark.parametrize("name", SHIPPED)
def test_fits_the_papers_disk(root: Path, name: str) -> None:
    for process in shipped(root, name):
        assert process.offset + process.size <= PAPER_DISK
        # Short in virtual time: at most 4 GiB each, or an end by the clock.
        assert process.io_bytes <= 4 * G or (
            process.time_based and process.runtime_ns <= 20 * 10**9
        )


@pytest.mark.parametrize(
    ("name", "readers", "low", "high"),
    [
        ("par-read", 4, 1.0, 1.0),
        ("two-greps", 2, 0.5, 0.6),
        ("postmark", 4, 0.07, 0.1),
        ("tpc-h", 3, 0.85, 0.95),
        ("direct-readers", 4, 1.0, 1.0),
        ("random-regions", 4, 1.0, 1.0),
    ],
)
def test_regions_are_fifty_gigabytes_apart(
    root: Path, name: str, readers: int, low: float, high: float
) -> None:
    found = shipped(root, name)
    assert len(found) == readers
    assert all(low * G <= process.size <= high * G for process in found)
    for before, after in itertools.pairwise(found):
        gap = after.offset - (before.offset + before.size)
        assert 50 * G <= gap <= 51 * G


def test_par_read_is_the_papers(root: Path) -> None:
    for process in shipped(root, "par-read"):
        assert process.rw == 1 and not process.direct and process.iodepth == 1
        assert process.split_bytes[0] == (4096,) and process.thinktime_ns == 0
        assert process.size == process.io_bytes == G
        assert 0.5 <= process.offset / PAPER_DISK <= 0.85


def test_two_greps_read_the_tree(root: Path) -> None:
    for process in shipped(root, "two-greps"):
        pairs = list(zip(process.split_bytes[0], process.split_pct[0], strict=True))
        mean = sum(size * share for size, share in pairs) / 100
        files = process.io_bytes / mean
        assert 28_000 <= files <= 31_000
        # Files fill their last block of 4 KiB by half, on average.
        assert 11_000 <= mean - 2048 <= 13_500
        assert sum(share for size, share in pairs if size <= 8192) >= 50


def test_postmark_holds_ten_thousand_files(root: Path) -> None:
    for process in shipped(root, "postmark"):
        pairs = zip(process.split_bytes[0], process.split_pct[0], strict=True)
        mean = sum(size * share for size, share in pairs) / 100
        assert 0.85 * process.size <= 10_000 * mean <= process.size


@needs_fio
@pytest.mark.parametrize("name", SHIPPED)
def test_fio_takes_it_and_goes_there(root: Path, name: str, tmp_path: Path) -> None:
    assert FIO
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(PAPER_DISK)
    environ = {**os.environ, "STREAMSCHED_DISK": str(disk)}

    def fio(*arguments: str) -> None:
        shown = ran(FIO or "", *arguments, cwd=tmp_path, env=environ, timeout=60)
        assert shown.returncode == 0 and "fio:" not in shown.stderr, shown.stdout + shown.stderr

    fio("--parse-only", str(root / f"jobs/{name}.fio"))

    # A few blocks of each are enough to see where it goes. A file in memory has no O_DIRECT.
    text = (root / f"jobs/{name}.fio").read_text()
    text = text.replace("direct=1", "direct=0").replace("time_based\n", "")
    short = "[global]\nnumber_ios=6\nwrite_lat_log=log\nlog_offset=1\n"
    (tmp_path / "short.fio").write_text(short + text)
    fio("short.fio")

    found = shipped(root, name)
    firsts: dict[int, int] = {}
    for number in range(1, len(found) + 1):
        rows = (tmp_path / f"log_lat.{number}.log").read_text().splitlines()
        places = [int(line.split(",")[4]) for line in rows]
        (home,) = [
            process
            for process in found
            if all(process.offset <= at < process.offset + process.size for at in places)
        ]
        firsts[home.offset] = places[0]
        if not home.rw & 4:
            assert places[0] == home.offset
    assert len(firsts) == len(found)
