# SPDX-License-Identifier: GPL-2.0-only
"""docs/results/stock-kernels.md: the counts that kernel/qemu/stress.sh prints, by kernel."""

from __future__ import annotations

import re

ROWS = {
    "verified, MiB": "verified",
    "changes of scheduler": "switched",
    "changes of the number of requests": "resized",
    "changes of the inner policy": "inner",
    "errors injected, times": "errors",
    "disks torn out": "unplugged",
    "module unloaded and loaded": "unloaded",
    "wrong data, lost commands, warnings of the kernel": "failures",
}


def counts(said: str) -> dict[str, int]:
    """What the script has counted."""
    found = {name: int(number) for name, number in re.findall(r"^(\S+): (\d+) times$", said, re.M)}
    found["verified"] = sum(map(int, re.findall(r": (\d+) KiB verified", said))) // 1024
    found["failures"] = int(re.findall(r"^failures: (\d+)$", said, re.M)[-1])
    return found


def with_counts(text: str, said: str) -> str:
    """The document @text with a kernel's counts in its column: that of the same x.y version."""
    release = re.findall(r"^kernel: (\S+)$", said, re.M)[0]
    lines = text.splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith("| | "))
    head = [cell.strip() for cell in lines[start].strip().strip("|").split("|")]
    version = ".".join(release.split(".")[:2]) + "."
    column = next(i for i, name in enumerate(head) if name.startswith(version))
    found = counts(said)
    for i in (start, *range(start + 2, start + 2 + len(ROWS))):
        cells = [cell.strip() for cell in lines[i].strip().strip("|").split("|")]
        cells[column] = str(found[ROWS[cells[0]]]) if cells[0] else release
        lines[i] = f"| {' | '.join(cells)} |\n".replace("|  |", "| |")
    return "".join(lines)
