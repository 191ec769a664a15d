# SPDX-License-Identifier: GPL-2.0-only
"""What RAID 5 and 6 read to make the parity, with md's stripe cache.

The kernel's md, over emulated disks, has the same numbers (tests/kernel/test_kernel_array.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from streamsched.base.errors import UsageError
from streamsched.sim.array import Array, parse_array
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Run, Setup, run_jobs
from streamsched.work.jobfile import load_job_file

DISK = load_disk("wd5000aaks")
ROWS = 64
ORDER = f"rw=write bs=64k size={ROWS * 256}k"
RANDOM = "rw=randwrite bs=4k size=1m io_size=8m norandommap"


def run(array: str, job: str, tmp_path: Path) -> Run:
    path = tmp_path / "job.fio"
    path.write_text("\n".join(["[a]", "direct=1", *job.split(), ""]))
    file = load_job_file(path, capacity_bytes=100 << 30)
    setup = Setup(DISK, "noop", queue_depth=1, array=parse_array(array))
    return run_jobs(setup, file.processes)


@pytest.mark.parametrize(
    ("array", "job", "requests"),
    [
        # Of four chunks the first is written with two reads, the second with one, the third reads
        # the fourth, and that reads nothing.
        ("raid5:5", ORDER, ROWS * (4 * 2 + 2 + 1 + 1)),
        # Two parities: what is not written is read first, and all is known.
        ("raid6:6", ORDER, ROWS * (4 * 3 + 3)),
        # What is there at the same time is one row.
        ("raid5:5", f"{ORDER} ioengine=libaio iodepth=4", ROWS * 5),
        ("raid6:6", f"{ORDER} ioengine=libaio iodepth=4", ROWS * 6),
        # The same 1 MiB again and again: four reads of each of its 64 stripes, in all.
        ("raid5:5", RANDOM, 2 * 2048 + 4 * 64),
        # A part of a row at a time, and the next part is another one.
        ("raid5:5:256k", ORDER, ROWS * (4 * 2 + 2 + 1 + 1)),
        # 17 stripes are enough for the 16 of a row, for those used longest ago make room.
        ("raid5:5:stripes=17", "rw=write bs=4k size=1m", 2 * 256 + 4 * 64),
        # A member that is lost is not written.
        ("raid5:5:failed=0", f"{ORDER} ioengine=libaio iodepth=4", ROWS * 4),
    ],
)
def test_what_is_known_is_not_read(array: str, job: str, requests: int, tmp_path: Path) -> None:
    assert run(array, job, tmp_path).disk_requests == requests


def test_a_cache_too_small_forgets(tmp_path: Path) -> None:
    few, many = (
        run(f"raid5:5:stripes={number}", RANDOM, tmp_path).disk_requests for number in (17, 64)
    )
    assert many == 2 * 2048 + 4 * 64
    # Of 64 stripes 17 are there: about three of four writes find nothing.
    assert 2 * 2048 + 2048 < few <= 2 * 2048 + 2 * 2048


@pytest.mark.parametrize("members", [3, 5])
def test_of_parts_of_pages_the_pages_are_read_and_written(members: int, tmp_path: Path) -> None:
    """Blocks of 512 bytes: the first of a page reads it, and with it the parity or the others."""
    # 16 pages of one chunk.
    seen = run(f"raid5:{members}", "rw=write bs=512 size=64k", tmp_path).disk_requests
    assert seen == 128 * 2 + 16 * 2


def test_part_of_a_page_that_is_lost_is_made_of_all_others(tmp_path: Path) -> None:
    """Of three members one has the other chunk and one the parity, which alone is written."""
    seen = run("raid5:3:failed=0", "rw=write bs=512 size=64k", tmp_path).disk_requests
    assert seen == 128 + 16 * 2


def test_no_stripe_at_all_is_refused(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[a]\nrw=write\nsize=1m\n")
    setup = Setup(DISK, "noop", array=Array("raid5", 3, stripes=0))
    with pytest.raises(UsageError, match="has at least 1 stripe"):
        run_jobs(setup, load_job_file(job, capacity_bytes=100 << 30).processes)
