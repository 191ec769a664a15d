# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel's tables are reckoned from, and how they are written; measuring takes the rig."""

from __future__ import annotations

import pytest
from tables import arrays, common, kernel
from tables.programs import Cell

from streamsched.base.errors import UsageError, named
from streamsched.hosts.rig import source_root
from streamsched.work.fio_write import Place, alone_text

GIB = 1 << 30


def readers(job: str = "direct-readers") -> str:
    return arrays.scaled((source_root() / "jobs" / "kernel" / f"{job}.fio").read_text())


@pytest.mark.parametrize("level", arrays.LEVELS)
def test_each_process_is_alone_in_its_own_place(level: str) -> None:
    """Farther in a disk is slower: the first one's rate is not what the others could have."""
    each = arrays.job_of(readers(), level).processes
    text = alone_text([(process, process.io_bytes) for process in each], Place(), 60)
    lines = text.splitlines()
    offsets = [int(line.split("=")[1]) for line in lines if line.startswith("offset=")]
    assert offsets == [n * 464 * GIB for n in range(4)]
    assert lines.count("stonewall") == 4
    assert lines.count(f"io_size={512 << 20}") == 4


def test_one_after_the_other_is_efficiency_one() -> None:
    alone = [{"bytes": 600.0, "seconds": 2.0}, {"bytes": 300.0, "seconds": 3.0}]
    together = [{"bytes": 300.0, "seconds": 4.0}, {"bytes": 300.0, "seconds": 3.0}]
    assert arrays.efficiency(together, alone) == pytest.approx((1 + 3) / 4)


def test_rows_that_were_not_measured_stay() -> None:
    """In the order of all rows, whichever were measured, and nothing of another table."""
    begin, end = common.marks("job")
    rows = ["| direct | none |", "| direct | stream |", "| loop | none |", "| loop | stream |"]
    old = "\n".join(["head", begin, "", "| path |", *(f"{row} 1 |" for row in rows[:3]), "", end])
    new = ["| path |", f"{rows[3]} 2 |", f"{rows[1]} 2 |"]
    text = common.with_rows(f"{old}\n{rows[0]} other |", "job", new, rows)
    measured = [f"{rows[0]} 1 |", f"{rows[1]} 2 |", f"{rows[2]} 1 |", f"{rows[3]} 2 |"]
    expected = ["head", begin, "", "| path |", *measured, "", end, f"{rows[0]} other |"]
    assert text.splitlines() == expected


def test_what_is_measured_can_be_named() -> None:
    kinds = (("level", ("raid0", "raid5")), ("scheduler", ("none", "stream")))
    assert named([], *kinds) == [["raid0", "raid5"], ["none", "stream"]]
    assert named(["stream", "raid5"], *kinds) == [["raid5"], ["stream"]]
    with pytest.raises(UsageError, match="unknown level or scheduler 'raid6'"):
        named(["raid6"], *kinds)


def test_a_table_of_programs_says_what_was_timed() -> None:
    cell = Cell("love-2", "raid0", "stream", 235.8, None, 5.58, 46.4, 521.4, 224.2)
    table = kernel.table_of("love-2", arrays.PROGRAMS, "level", [], title="On arrays: ")
    assert table.lines([kernel.row_of(cell)]) == [
        "## On arrays: streaming read, source tree read",
        "",
        "| level | scheduler | reading the tree, s | streaming reader, MB/s | disk MB/s | p99 ms "
        "| longest ms |",
        "|---|---|---:|---:|---:|---:|---:|",
        "| raid0 | stream | 5.58 | 224.2 | 235.8 | 46.4 | 521.4 |",
    ]
