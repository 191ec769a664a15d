# SPDX-License-Identifier: GPL-2.0-only
"""Processes with several files each, in virtual time and as in a real fio."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from process_driver import FIO, MIB, SECTOR, SSD, covered, jobs, played


def in_files(text: str, disk: Any = SSD) -> list[tuple[int, int, int]]:
    """(file, byte in it, bytes) of each request of the only job."""
    (process,) = jobs(text, disk)
    rows, _ = played([process], disk=disk)
    places = [divmod(row.sector * SECTOR - process.offset, process.file_stride) for row in rows]
    return [(*place, row.nr_sectors * SECTOR) for place, row in zip(places, rows, strict=True)]


def in_files_of_fio(text: str, folder: Path) -> list[tuple[int, int, int]]:
    log = "direct=0\nwrite_iolog=log\n"
    (folder / "a.fio").write_text(text.replace("direct=1\n", log))
    subprocess.run([FIO or "", "a.fio"], capture_output=True, cwd=folder, timeout=60, check=True)
    words = [line.split() for line in (folder / "log").read_text().splitlines()]
    return [
        (int(line[-4].rpartition(".")[2]), int(line[-2]), int(line[-1]))
        for line in words
        if line[-3:-2] in (["read"], ["write"])
    ]


@pytest.mark.skipif(FIO is None, reason="fio is not installed")
@pytest.mark.parametrize(
    "more",
    [
        "nrfiles=4\nsize=64k",
        "nrfiles=4\nsize=44k",
        "nrfiles=4\nsize=45000",
        "nrfiles=3\nsize=200k\nbs=8k",
        "nrfiles=4\nsize=64k\nfile_service_type=sequential",
        "nrfiles=4\nsize=64k\nfile_service_type=sequential:2",
        "nrfiles=4\nsize=64k\nfile_service_type=roundrobin:3",
        "nrfiles=6\nsize=96k\nopenfiles=2",
        "nrfiles=6\nsize=96k\nopenfiles=4\nfile_service_type=roundrobin:3",
        "nrfiles=4\nsize=64k\nopenfiles=1",
        "nrfiles=4\nsize=64k\nio_size=100k",
        "nrfiles=4\nsize=64k\nio_size=50%",
        "nrfiles=2\nsize=66k\nio_size=80k",
        "nrfiles=2\nsize=66k\nloops=2",
        "nrfiles=4\nsize=64k\nloops=2\nfile_service_type=sequential",
        "nrfiles=4\nfilesize=16k",
        "nrfiles=4\nfilesize=16k\nsize=32k",
        "nrfiles=4\nfilesize=16k\nio_size=128k",
        "nrfiles=4\nsize=64k\nnumber_ios=5",
        "nrfiles=2\nsize=64k\nrw=read:-8k",
        "nrfiles=4\nsize=64k\nrw=write",
        "nrfiles=4\nsize=64k\nrw=read:4k\nio_size=64k",
    ],
)
def test_several_files_in_order_are_as_in_fio(more: str, tmp_path: Path) -> None:
    text = f"[a]\nrw=read\nbs=4k\ndirect=1\n{more}\n"
    assert in_files(text) == in_files_of_fio(text, tmp_path)


@pytest.mark.skipif(FIO is None, reason="fio is not installed")
@pytest.mark.parametrize(
    ("more", "alike"),
    [
        ("rw=randread", "files"),
        ("rw=randread\nnorandommap", "files"),
        ("rw=randread\nnorandommap\nfile_service_type=sequential", "files"),
        ("rw=randread\nfile_service_type=sequential", "files"),
        ("rw=randread\nsize=45000\nnorandommap", "files"),
        ("rw=randread\nopenfiles=2", "files"),
        ("rw=read\nfile_service_type=random", "blocks"),
        ("rw=randread\nfile_service_type=random:3\nopenfiles=2", "blocks"),
    ],
)
def test_several_files_at_random_are_as_in_fio(more: str, alike: str, tmp_path: Path) -> None:
    """Random numbers differ: what is the same is the order of files, or which blocks there are."""
    text = f"[a]\nbs=4k\ndirect=1\nsize=64k\nnrfiles=4\n{more}\n"
    ours, theirs = in_files(text), in_files_of_fio(text, tmp_path)
    if alike == "files":
        assert [place[0] for place in ours] == [place[0] for place in theirs]
    else:
        assert sorted(ours) == sorted(theirs)
    if "norandommap" not in more:
        assert len(set(ours)) == 16


def test_one_file_at_random_has_so_many_turns() -> None:
    text = "[a]\nrw=read\nbs=4k\ndirect=1\nsize=64m\nnrfiles=8\nfile_service_type=random:4\n"
    files = [place[0] for place in in_files(text)]
    turns = [files[at : at + 4] for at in range(0, 4000, 4)]
    assert all(len(set(turn)) == 1 for turn in turns)
    count = [sum(turn[0] == file for turn in turns) for file in range(8)]
    assert min(count) > 80  # of 125


def test_several_files_have_readahead_of_their_own() -> None:
    """Read by turns, each goes on as if it were alone."""
    one, _ = played("[a]\nrw=read\nsize=1m\n")
    rows, run = played("[a]\nrw=read\nsize=4m\nnrfiles=4\n")
    assert run.bytes_read == 4 * MIB
    assert covered(rows) == list(range(4 * MIB // SECTOR))
    for file in range(4):
        own = [row for row in rows if row.sector // 2048 == file]
        assert [(r.sector % 2048, r.nr_sectors) for r in own] == [
            (r.sector, r.nr_sectors) for r in one
        ]


def test_an_fsync_has_a_turn() -> None:
    """To fio 3.33 it is a block of its own kind: of two files one is written, the other synced."""
    text = "[a]\nrw=write\nbs=4k\nsize=4m\nnrfiles=2\nfsync=1\nio_size=20k\n"
    assert played(text)[0] == []
    written = [8 * number for number in range(5)]
    rows, _ = played(text + "file_service_type=sequential\n")
    assert [row.sector for row in rows] == written
    # What is left at the end is synced in all of them.
    rows, _ = played(text + "end_fsync=1\n")
    assert [(row.sector, row.nr_sectors) for row in rows] == [(0, 5 * 8)]
