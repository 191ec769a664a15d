# SPDX-License-Identifier: GPL-2.0-only
"""stream and readers with large readahead, two windows of which are several commands.

As on Linux 7: 2.5 MiB are read ahead on a disk that rotates, a command moves 1.25 MiB at most. A
drive with a queue has all windows of all readers at once, unless somebody keeps them back.
"""

from __future__ import annotations

import functools

import pytest

from streamsched.diskfile import load_disk
from streamsched.jobfile import parse_jobs
from streamsched.simulate import Run, Setup, run_jobs

AUTO = 0
LARGEST_SECTORS = 2560
READERS = """
[reader]
rw=read
bs=64k
size=128m
numjobs=4
offset_increment=116g
"""


@functools.cache
def four_readers(policy: str, depth: int, window_pages: int, trials: int = 1) -> Run:
    disk = load_disk("wd5000aaks")
    setup = Setup(
        disk,
        policy,
        owners="none",
        queue_depth=depth,
        tunables=(("stream_time_slice", AUTO), ("trials", trials)),
        curve="learned",
        readahead_pages=window_pages,
        max_request_sectors=LARGEST_SECTORS,
    )
    return run_jobs(setup, parse_jobs(READERS, capacity_bytes=disk.capacity_sectors * 512))


@pytest.mark.parametrize("window_pages", [256, 640])
def test_a_queue_in_the_disk_costs_turns_little(window_pages: int) -> None:
    """All that goes to the disk at once is of one reader, and in its order."""
    one, many = (four_readers("stream:deadline", depth, window_pages) for depth in (1, 32))
    assert many.mb_s >= 0.975 * one.mb_s
    assert many.mb_s >= 1.06 * four_readers("deadline", 32, window_pages).mb_s


@pytest.mark.parametrize("window_pages", [256, 640])
def test_nobody_waits_for_more_than_the_target_and_what_the_disk_has(window_pages: int) -> None:
    """Beyond 500 ms: the windows that a turn leaves in the disk, 2.5 MiB twice, and its own."""
    run = four_readers("stream:deadline", 32, window_pages)
    windows_ms = 3 * window_pages * 4096 / 60e6 * 1000
    assert run.response.max <= 500 + windows_ms


def test_with_a_target_and_several_commands_in_the_disk_nothing_is_tried() -> None:
    """The inner policy alone would leave the order to the drive, which keeps no target."""
    tried, untried = (four_readers("stream:deadline", 32, 640, trials) for trials in (1, 0))
    assert tried.duration_ns == untried.duration_ns
