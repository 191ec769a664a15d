# SPDX-License-Identifier: GPL-2.0-only
"""What processes do through the page cache: readahead, write-back, fsync, in virtual time."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest
from process_driver import GIB, KIB, MIB, MS, PAPERS, SECTOR, SSD, S, covered, jobs, played

from streamsched.sim import simulate
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import WAKE_NS

MB_S = 1_000_000
COPY_NS = simulate.PAGE_COPY_NS


# Sequential reading and readahead.


def test_a_buffered_reader_moves_each_byte_once() -> None:
    rows, run = played("[r]\nrw=read\nbs=4k\noffset=1m\nsize=3m\n")
    assert covered(rows) == list(range(MIB // SECTOR, 4 * MIB // SECTOR))
    assert run.bytes_read == 3 * MIB
    assert run.jobs[0].blocks == (768, 0)


def test_readahead_windows_are_those_of_linux() -> None:
    """4 pages, then twice as many each time, up to 32 pages (mm/readahead.c)."""
    rows, _ = played("[r]\nrw=read\nbs=4k\nsize=2m\n")
    # The first window is read with the one behind it marked at its second page.
    assert [row.nr_sectors * SECTOR // KIB for row in rows[:4]] == [16, 32, 64, 128]
    assert {row.nr_sectors * SECTOR // KIB for row in rows[3:-1]} == {128}
    assert all(a.end == b.sector for a, b in pairwise(rows))


PASSES = {
    "in order": "rw=read\nloops=3",
    "at random": "rw=randread\nloops=3",
    "by io_size": "rw=read\nio_size=3m",
    "files": "rw=read\nloops=3\nnrfiles=4",
    "files at random": "rw=randread\nloops=3\nnrfiles=4",
}


@pytest.mark.parametrize("how", PASSES)
def test_each_pass_reads_from_the_disk(how: str) -> None:
    """As fio, which lets go of a file's pages before it; with invalidate=0 the first alone."""
    text = f"[r]\nfilename=/dev/sda\nbs=4k\noffset=1m\nsize=1m\n{PASSES[how]}\n"
    if "files" in how:
        text = text.replace("filename=/dev/sda\n", "").replace("offset=1m\n", "")
    rows, run = played(text)
    once, again = played(f"{text}invalidate=0\n")
    assert run.bytes_read == again.bytes_read == 3 * MIB
    assert len(covered(rows)) == 3 * MIB // SECTOR
    assert len(covered(once)) == MIB // SECTOR


def test_a_pass_ends_with_the_time_too() -> None:
    text = "[r]\nrw=read\nbs=64k\nsize=1m\ntime_based\nruntime=100ms\n"
    rows, run = played(text)
    assert len(covered(rows)) * SECTOR >= run.bytes_read > 3 * MIB


@pytest.mark.parametrize("others", ["", "offset=512k\n", "offset=4m\n"])
def test_who_begins_lets_go_of_its_own_region_alone(others: str) -> None:
    """The second job reads what of its region the first one had read, too."""
    text = (
        f"[g]\nfilename=/dev/sda\nrw=read\nbs=4k\nsize=1m\n[h]\nstonewall\n{others}invalidate=0\n"
    )
    text = text.replace("[g]", "[global]").replace("[h]", "[a]\n[b]")
    fresh = text.replace("invalidate=0\n", "")
    kept = {"": 1 * MIB, "offset=512k\n": 3 * MIB // 2, "offset=4m\n": 2 * MIB}[others]
    assert len(covered(played(text)[0])) * SECTOR == kept
    assert len(covered(played(fresh)[0])) == 2 * MIB // SECTOR


def test_what_is_yet_to_be_written_stays_in_memory() -> None:
    text = "[global]\nfilename=/dev/sda\nbs=4k\nsize=1m\n[w]\nrw=write\n[r]\nstonewall\nrw=read\n"
    rows, _ = played(text)
    assert not rows or not {row.job for row in rows} & {1}
    synced, _ = played(text.replace("rw=write", "rw=write\nend_fsync=1"))
    assert sum(row.nr_sectors for row in synced if row.job == 1) == MIB // SECTOR


@pytest.mark.parametrize(
    ("pages", "windows"),
    [
        (32, [16, 32, 64, 128, 128]),
        (64, [16, 32, 64, 128, 256, 256]),
        (8, [8, 16, 32, 32]),
        (0, [4, 4, 4]),
    ],
)
def test_readahead_limit(pages: int, windows: list[int]) -> None:
    rows, _ = played("[r]\nrw=read\nbs=4k\nsize=2m\n", readahead_pages=pages)
    assert [row.nr_sectors * SECTOR // KIB for row in rows[: len(windows)]] == windows


def test_a_window_is_asked_for_before_the_reader_runs_dry() -> None:
    """The second window is sent when the reader comes to the mark, at the second page."""
    rows, _ = played("[r]\nrw=read\nbs=4k\nsize=2m\n")
    first, second = rows[0], rows[1]
    assert first.arrival_ns == 0
    assert second.arrival_ns == first.complete_ns + WAKE_NS + COPY_NS


def test_random_buffered_reads_have_no_readahead() -> None:
    rows, _ = played("[r]\nrw=randread\nbs=4k\nsize=64g\nio_size=1m\nnorandommap=1\n")
    assert {row.nr_sectors for row in rows[1:]} == {8}


def test_read_again_comes_from_memory() -> None:
    rows, run = played("[r]\nrw=read\nbs=64k\nsize=1m\nio_size=4m\ninvalidate=0\n")
    assert run.bytes_read == 4 * MIB
    assert covered(rows) == list(range(MIB // SECTOR))


def test_two_readers_of_one_file_share_its_pages() -> None:
    rows, run = played("[r]\nfilename=x\nrw=read\nbs=4k\nsize=1m\nnumjobs=2\n")
    assert run.bytes_read == 2 * MIB
    assert covered(rows) == list(range(MIB // SECTOR))


# Writing.


def test_buffered_writes_stay_in_memory() -> None:
    rows, run = played("[w]\nrw=write\nbs=4k\nsize=1m\n")
    assert rows == []
    assert run.duration_ns == 256 * COPY_NS
    assert run.bytes_written == MIB


def test_buffered_writes_are_throttled_and_written_back() -> None:
    """Above a tenth of the cache the flusher writes, above a fifth the writer sleeps."""
    text = "[w]\nrw=write\nbs=64k\nsize=1g\n"
    rows, run = played(text, disk=PAPERS)
    written = sum(row.nr_sectors for row in rows) * SECTOR
    limit, background = 2 * GIB // 5, 2 * GIB // 10
    assert run.bytes_written == GIB
    # What is not on the disk at the end is dirty below the limit, or on its way; nothing is
    # written twice.
    on_its_way = simulate.NR_REQUESTS * 64 * 4 * KIB
    assert GIB - limit - on_its_way - MIB <= written <= GIB - background + MIB
    assert len(set(covered(rows))) == written // SECTOR
    # A writer faster than the disk goes at its rate.
    assert run.duration_ns > (GIB - limit) / (110 * MB_S) * S
    assert rows[0].arrival_ns == pytest.approx(background / 4096 * COPY_NS, rel=0.01)


@pytest.mark.parametrize("percent", [20, 40])
def test_how_much_may_be_dirty(percent: int) -> None:
    """As much is in memory when a writer that is faster than the disk ends."""
    rows, run = played("[w]\nrw=write\nbs=64k\nsize=1g\n", disk=PAPERS, dirty_pct=percent)
    written = sum(row.nr_sectors for row in rows if row.complete_ns <= run.duration_ns) * SECTOR
    on_its_way = simulate.NR_REQUESTS * 512 * KIB
    left = GIB - written
    assert left == pytest.approx(2 * GIB * percent / 100, abs=on_its_way)


def test_memory_holds_as_many_pages_as_there_is_room() -> None:
    """However they lie: here each is in a chunk of its own."""
    text = "[r]\nrw=read:252k\nbs=4k\nsize=64m\nio_size={}k\ninvalidate=0\n"
    text = text.format(2 * 256 * 4)  # 256 pages, twice
    rows, _ = played(text, cache_bytes=1 * MIB, readahead_pages=0)
    assert len(rows) == 256
    rows, _ = played(text, cache_bytes=512 * KIB, readahead_pages=0)
    assert len(rows) == 512


def test_dirty_data_is_written_after_half_a_minute() -> None:
    text = (
        "[w]\nrw=write\nbs=4k\nsize=64k\n[r]\nrw=read\ndirect=1\nbs=4k\n"
        "size=4k\noffset=1g\nstartdelay=60\n"
    )
    rows, _ = played(text)
    (write,) = (row for row in rows if row.sector < 2048)
    assert (write.sector, write.nr_sectors) == (0, 128)
    assert 30 * S <= write.arrival_ns <= 35 * S


def test_dirty_data_stays_in_memory_when_room_is_made() -> None:
    """A reader fills it sixty times over before the data are written."""
    text = (
        "[w]\nrw=write\nbs=4k\nsize=64k\n[r]\nrw=read\nbs=64k\nsize=64m\noffset=1g\n"
        "[last]\nrw=read\ndirect=1\nbs=4k\nsize=4k\noffset=2g\nstartdelay=60\n"
    )
    rows, _ = played(text, cache_bytes=1 * MIB)
    assert covered([row for row in rows if row.sector < 2048]) == list(range(128))


def test_fsync_waits_for_the_medium() -> None:
    """Nothing is thought done before the disk has emptied its cache."""
    plain = "[w]\nrw=write\nbs=4k\nsize=64k\n"
    _, lazy = played(plain, disk=PAPERS)
    rows, synced = played(plain + "end_fsync=1\n", disk=PAPERS)
    assert covered(rows) == list(range(128))
    # The disk takes the write into its cache at once; the flush needs the platters.
    assert rows[-1].complete_ns - rows[-1].dispatch_ns < MS
    flush_ns = synced.duration_ns - rows[-1].complete_ns
    assert flush_ns > MS
    assert lazy.duration_ns == 16 * COPY_NS < rows[0].complete_ns


def test_the_last_to_end_writes_all_back() -> None:
    """As sync(2): the writes are nobody's, and none comes while another process goes on."""
    (writer,) = jobs("[w]\nrw=write\nbs=4k\nsize=1m\n")
    (reader,) = jobs("[r]\nrw=read\nbs=4k\nsize=4k\noffset=1g\nstartdelay=1\n")
    writer = dataclasses.replace(writer, end_sync=True)
    rows, run = played([writer])
    assert sum(row.nr_sectors for row in rows) * SECTOR == MIB
    assert run.duration_ns >= max(row.complete_ns for row in rows)
    assert {row.job for row in rows} == {1}
    rows, run = played([writer, reader])
    assert [row.job for row in rows] == [1]


def test_fsync_after_every_write() -> None:
    rows, run = played("[w]\nrw=write\nbs=4k\nsize=32k\nfsync=1\n", disk=SSD)
    assert [row.sector for row in rows] == list(range(0, 64, 8))
    flush_ns = load_disk("ssd").flush_ns
    # Each comes after the flush of the one before, and its own copy into the cache.
    gaps = [b.arrival_ns - a.complete_ns for a, b in pairwise(rows)]
    assert len(set(gaps)) == 1
    assert gaps[0] >= flush_ns + WAKE_NS + COPY_NS
    assert run.duration_ns >= 8 * flush_ns


def test_those_who_wait_for_a_page_go_on_in_the_order_in_which_they_came() -> None:
    """All four want the first page, each then another one of its own."""
    text = "[global]\nfilename=x\nbs=4k\nsize=64m\nio_size=8k\n"
    text += "".join(f"[{skip}]\nrw=read:{skip}m\n" for skip in (1, 2, 3, 4))
    rows, _ = played(text, readahead_pages=0)
    assert [(row.job, row.sector) for row in rows] == [
        (0, 0),
        (0, MIB // SECTOR + 8),
        (1, 2 * MIB // SECTOR + 8),
        (2, 3 * MIB // SECTOR + 8),
        (3, 4 * MIB // SECTOR + 8),
    ]


def test_writers_that_slept_go_on_in_the_order_in_which_they_came() -> None:
    """The first one fills what may be dirty; the others come while it sleeps."""
    text = "[global]\nfilename=x\nbs=4k\nrw=write\n[first]\nsize=8m\n"
    text += "".join(
        f"[{nr}]\nsize=4k\noffset={nr}g\nend_fsync=1\nstartdelay=1ms\n" for nr in (1, 2, 3, 4)
    )
    rows, _ = played(text, cache_bytes=2 * MIB, nr_requests=1)
    others = [row for row in rows if row.job in (1, 2, 3, 4)]
    assert [(row.job, row.sector) for row in others] == [
        (nr, nr * GIB // SECTOR) for nr in (1, 2, 3, 4)
    ]
    assert all(row.arrival_ns > MS + COPY_NS for row in others)  # they slept
