# SPDX-License-Identifier: GPL-2.0-only
"""stream: who reads at random has its part, also where no host says who sends."""

from __future__ import annotations

import pytest
from job_text import job_text
from test_stream_promise import run, shares

DISKS = ("exos-x18", "st2000dm006", "wd5000aaks")

GLOBAL = job_text("""
[global] rw=randread bs=4k direct=1 ioengine=libaio thinktime={think} size=20g runtime=24
ramp_time=6 time_based
""")

BESIDE = GLOBAL.format(think=0) + job_text("""
[many] iodepth=32 offset=10g
[one] offset=200g
""")

# Each takes a moment to ask for its next: that may come after another's was served.
THINKING = GLOBAL.format(think="300us") + job_text("""
[many] iodepth=32
[one] offset=100g offset_increment=60g numjobs=4
""")

EQUAL = job_text("""
[vm] rw=randread bs=4k direct=1 size=2g offset_increment=6g numjobs={nr} runtime=24 time_based
""")


@pytest.mark.parametrize("depth", [1, 32])
@pytest.mark.parametrize("disk", DISKS)
def test_one_has_its_part_beside_many(disk: str, depth: int) -> None:
    """It was a tenth or less."""
    assert 2 * min(shares(BESIDE, disk, depth)) >= 0.6


@pytest.mark.parametrize("late", [0, 6])
def test_who_is_seldom_served_keeps_its_area(late: int) -> None:
    """One in a hundred of what the drive serves is of it."""
    assert 2 * min(shares(BESIDE, "exos-x18", 32, late)) >= 0.7


@pytest.mark.parametrize("disk", DISKS)
def test_each_of_several_has_its_part_beside_many(disk: str) -> None:
    assert 5 * min(shares(THINKING, disk, 32)) >= 0.42


@pytest.mark.parametrize("depth", [1, 32])
@pytest.mark.parametrize("nr", [20, 40])
def test_of_very_many_none_is_told_apart(nr: int, depth: int) -> None:
    """Two that are taken for one would have half: then all is left as it was."""
    found = run(EQUAL.format(nr=nr), "exos-x18", depth)
    parts = [job.bytes for job in found.jobs]
    assert min(parts) * len(parts) / sum(parts) >= 0.6
    assert max(job.longest_wait_ns for job in found.jobs) < 1_800_000_000


WALKERS = job_text("""
[global] filename=/dev/sdx rw=read direct=1 ioengine=libaio offset=300g runtime=20 time_based
[small] bs=8k iodepth=8 size=1g numjobs=12
[strided] rw=read:1m bs=128k thinktime=100us size=8g numjobs=12
""")


def test_who_passes_through_has_no_area() -> None:
    """It would be a new sender again and again, and each is light: a quarter was left."""
    stream, plain = (
        run(WALKERS, "wd5000aaks", 8, spec) for spec in ("stream:deadline", "deadline")
    )
    assert stream.bytes / stream.duration_ns >= 0.5 * plain.bytes / plain.duration_ns


def test_an_area_of_two_is_not_one_who_has_two() -> None:
    """Files side by side, found two at a time, had a turn each: 0.7 was left."""
    work = EQUAL.format(nr=10).replace("size=2g", "size=500m").replace("6g", "500m")
    stream, plain = (run(work, "exos-x18", 32, spec) for spec in ("stream:deadline", "deadline"))
    assert stream.bytes / stream.duration_ns >= 0.85 * plain.bytes / plain.duration_ns
    assert max(job.longest_wait_ns for job in stream.jobs) < 500_000_000
