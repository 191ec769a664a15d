# SPDX-License-Identifier: GPL-2.0-only
"""The table of stock kernels takes what kernel/qemu/stress.sh prints."""

from __future__ import annotations

import re

from said import ROOT
from stock_table import ROWS, with_counts

SAID = """kernel: 6.12.200+deb13-amd64
emu0: 2048 KiB verified, 4096 KiB read
sda: 3072 KiB verified, 1 KiB read
switched: 11 times
resized: 12 times
inner: 13 times
discarded: 3 times
errors: 14 times
unplugged: 15 times
unloaded: 16 times
failures: 0
"""


def test_counts_go_into_the_column_of_their_kernel() -> None:
    old = (ROOT / "docs" / "results" / "stock-kernels.md").read_text()
    new = with_counts(old, SAID)
    changed = [line for line in new.splitlines() if line not in old.splitlines()]
    cells = [line.strip("| ").split(" | ") for line in changed]
    assert [row[-1] for row in cells[:-1]] == [
        "6.12.200+deb13-amd64",
        "5",
        "11",
        "12",
        "13",
        "14",
        "15",
    ]
    assert cells[-1] == ["module unloaded and loaded", "40", "16"]
    # 6.1's column, and what is no table, stay.
    assert [line for line in old.splitlines() if not line.startswith("|")] == [
        line for line in new.splitlines() if not line.startswith("|")
    ]
    assert with_counts(new, SAID) == new


def test_the_script_counts_each_of_these() -> None:
    script = (ROOT / "kernel" / "qemu" / "stress.sh").read_text()
    things = re.findall('^things="(.*)"$', script, re.MULTILINE)[0].split()
    assert {*ROWS.values()} - {"verified", "failures"} <= {*things}
