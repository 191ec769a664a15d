# SPDX-License-Identifier: GPL-2.0-only
"""Measure the tables of docs/results/ that come from real kernels; writes what it has measured.

    python bench/table.py kernel love-1 crypt stream       what is named anew (nothing: all)
    python bench/table.py applications ftp --parallel 1    with one rig at a time
    python bench/table.py blktests --help

`make results` calls it, with what must be installed before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tables import applications, arrays, kernel, reproduction, s_suite, servers, suites
from tables.machine import end_with_signals

from streamsched.base.errors import exit_code_of, unknown

MEASURE = {
    "kernel": kernel.measure,
    "kernel-arrays": arrays.measure,
    "applications": applications.measure,
    "reproduction-programs": reproduction.measure,
    "servers": servers.measure,
    "s-suite": s_suite.measure,
    "blktests": suites.measure,
    "xfstests": suites.measure,
}


def main(words: Sequence[str]) -> int:
    """The table's name, and what it understands."""
    if not words or words[0] in ("-h", "--help"):
        print(f"{__doc__}\nTables: {', '.join(MEASURE)}.")
        return 0 if words else 2
    name, *rest = words

    def work() -> None:
        if name not in MEASURE:
            raise unknown("table", name, MEASURE)
        MEASURE[name](words if name in suites.WHERE else rest)

    return exit_code_of(name if name in MEASURE else "table.py", work)


if __name__ == "__main__":
    end_with_signals()
    sys.exit(main(sys.argv[1:]))
