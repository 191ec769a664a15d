# SPDX-License-Identifier: GPL-2.0-only
"""Print the totals of every test layer, and of all; see tools/run_tests.sh."""

from __future__ import annotations

import sys
from pathlib import Path

LAYERS = (
    "lint",
    "unit",
    "property",
    "golden",
    "end-to-end",
    "network server",
    "stock kernel",
    "fuzz",
)


def main() -> int:
    """Exit code 1 when anything failed, or a layer says nothing."""
    rows = dict.fromkeys(LAYERS, (0, 0, 0))
    for line in Path(sys.argv[1]).read_text().splitlines():
        name, *counts = line.rsplit(maxsplit=3)
        passed, failed, skipped = map(int, counts)
        before = rows.get(name, (0, 0, 0))
        rows[name] = (before[0] + passed, before[1] + failed, before[2] + skipped)
    for layer, (passed, failed, skipped) in rows.items():
        print(f"{layer:<14} {passed:6} passed {failed:4} failed {skipped:4} skipped")
    silent = [layer for layer, counts in rows.items() if not any(counts)]
    for layer in silent:
        print(f"the {layer} layer ran no test, or not to its end")
    passed, failed, _ = (sum(column) for column in zip(*rows.values(), strict=True))
    print(f"{passed} passed, {failed + len(silent)} failed")
    return 1 if failed or silent else 0


if __name__ == "__main__":
    sys.exit(main())
