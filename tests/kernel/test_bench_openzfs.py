# SPDX-License-Identifier: GPL-2.0-only
"""bench/openzfs.py: what the guest says becomes figures, and how they are ordered."""

from __future__ import annotations

import json
import re

import openzfs
import pytest

from streamsched.base.errors import StreamschedError


def fio(longest_ms: int = 90) -> str:
    """Four readers of 99 reads of 10 ms, and one longer."""
    reader = {
        "iops": 25.0,
        "total_ios": 100,
        "clat_ns": {
            "mean": 11e6,
            "max": longest_ms * 10**6,
            "bins": {"10000000": 99, str(longest_ms * 10**6): 1},
        },
    }
    return json.dumps({"jobs": [{"read": reader}] * openzfs.NR_READERS})


def test_the_readers_part_is_taken_from_what_the_disks_read() -> None:
    # In 2 s: 20,000 sectors, 60 of 200 jiffies idle.
    found = openzfs.figures(fio(), ["1000", "40", "100", "5.0", "21000", "100", "300", "7.0"])
    assert (found.iops, found.least) == (100, 25)
    assert (found.mean_ms, found.p99_ms, found.longest_ms) == (11, 10, 90)
    assert found.other == pytest.approx((20_000 * 512 / 2 - 100 * 16384) / 1e6)
    assert found.busy == pytest.approx(0.7)


def test_a_reader_that_is_missing_is_told() -> None:
    few = json.dumps({"jobs": json.loads(fio())["jobs"][1:]})
    with pytest.raises(StreamschedError, match="told of 3 readers"):
        openzfs.figures(few, ["0"] * 4 + ["1"] * 4)


def test_every_round_has_every_scheduler_with_every_job() -> None:
    first, second = openzfs.order(1), openzfs.order(2)[len(openzfs.order(1)) :]
    assert len({*first}) == len(first) == len(openzfs.SCHEDULERS) * len(openzfs.JOBS)
    assert {*first} == {*second}
    assert first[0][0] == second[-1][0] == openzfs.SCHEDULERS[0]
    text = openzfs.guest_script("raidz1", 7, 2)
    assert len(re.findall(r"^one \d+ \w+$", text, re.MULTILINE)) == len(first) * 2
    assert len(re.findall(r"^use \S+$", text, re.MULTILINE)) == len(openzfs.SCHEDULERS) * 2


def test_a_row_has_the_median_and_the_spread() -> None:
    figures = [
        openzfs.Figures(iops, iops / 4, 10, 20, 30, 100, 0.5) for iops in (90.0, 110.0, 100.0)
    ]
    row = openzfs.row(openzfs.Cell("raidz1", "scrub", "none"), figures)
    assert row.startswith("| raidz1 | scrub | none | 100 (90..110) | 25 (22..28) | 10.0 | 20 | 30 ")
    assert "| nothing |" in openzfs.row(openzfs.Cell("raidz1", "alone", "none"), figures)
