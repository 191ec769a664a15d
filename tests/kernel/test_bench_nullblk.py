# SPDX-License-Identifier: GPL-2.0-only
"""bench/nullblk.py: what a read costs under each scheduler, and how it is reckoned."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from said import ran

from streamsched.base.errors import StreamschedError

PROGRAM = Path(__file__).resolve().parents[2] / "bench" / "nullblk.py"
_spec = importlib.util.spec_from_file_location("nullblk", PROGRAM)
assert _spec and _spec.loader
nullblk = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(nullblk)


def said(rounds: int) -> str:
    """What the guest would say: mq-deadline costs 2000 a read, all others 3000, on top of 70000."""
    lines = ["a word of fio's"]
    for number in range(rounds):
        for queues, load, kind in nullblk.CELLS:
            call = nullblk._call((queues, load, kind))
            cost = 2000 if kind == nullblk.BASE else 3000
            lines.append(f"{call}: 70000 {70000 + 10 * cost + 100 * number} {cost // 100}")
    return "\n".join(lines)


def test_what_the_longer_run_adds_is_what_counts() -> None:
    cells = nullblk.rounds_in(said(2), 2)
    assert cells[4, "random, depth 32", "mq-deadline"] == [(20000, 20), (20100, 20)]
    assert cells[1, "random, depth 1", "stream"] == [(30000, 30), (30100, 30)]


def test_a_round_that_is_missing_is_told() -> None:
    with pytest.raises(StreamschedError, match="did not say what '1 none 0 0 randread 1 1 1' took"):
        nullblk.rounds_in(said(1), 2)


@pytest.mark.parametrize("took", ["70000 70000 20", "70000 69000 20", "70000 90000 0"])
def test_reads_that_took_no_time_are_told(took: str) -> None:
    for kind in ("mq-deadline", "stream"):  # the one that others are divided by, and another
        call = nullblk._call((4, "random, depth 32", kind))
        text = re.sub(rf"^{re.escape(call)}: .*$", f"{call}: {took}", said(1), flags=re.MULTILINE)
        assert text != said(1)
        with pytest.raises(StreamschedError, match=rf"^'{call}' took no longer with more reads; "):
            nullblk.rounds_in(text, 1)


def test_every_round_has_every_scheduler_in_turn() -> None:
    text = nullblk.script(5000, 2)
    calls = re.findall(r"^one (.*)$", text, re.MULTILINE)
    half = len(nullblk.CELLS)
    per_device = half // 2
    assert len(calls) == 2 * half
    assert calls[half : half + per_device] == calls[:per_device][::-1]
    assert "reads 5800 " in text and "reads 4000 " in text


@pytest.mark.stock
@pytest.mark.long
def test_the_command_writes_its_table(tmp_path: Path) -> None:
    """On Debian 12's kernel; with so few reads the figures are rough."""
    output = tmp_path / "table.md"
    options = ["--suite", "bookworm", "--rounds", "1", "--reads", "500", "--to", output]
    done = ran(sys.executable, "-P", PROGRAM, *options)
    if "is missing" in done.stderr or "must run as root" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    rows = [
        line.split(" | ") for line in output.read_text().splitlines() if line[:3] in ("| 1", "| 4")
    ]
    assert len(rows) == len(nullblk.CELLS)
    costs = {tuple(row[:3]): int(row[3].replace(",", "")) for row in rows}
    for (queues, load, kind), cost in costs.items():
        assert 1000 < cost < 100_000, (queues, load, kind, cost)
