# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched top`: the parties of disks under `stream`, as lines of text and once as JSON.

The screen that shows these lines is in top_screen.py.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from streamsched.base.errors import Interrupted, StreamschedError
from streamsched.base.files import is_file, is_folder
from streamsched.base.signals import until_stopped
from streamsched.hosts.device import SYS
from streamsched.watch.observe import KernelSource, Observation, Row, Source
from streamsched.watch.parties import kernel_disks

LOOK_S = 1.0  # between the two looks of --once
STRIP_HEIGHT = 4
STRIP_S = 15.0
HEADING = (
    f"  {'place':>9}  {'kind':<12} {'MB/s':>6}  {'requests/s':>10}  {'share':>5}  {'p99 ms':>6}"
    "   why"
)
# What rows can be sorted by, in the order in which the key goes through them.
SORTS: dict[str, Callable[[Row], float]] = {
    "place": lambda row: float("inf") if row.place_bytes is None else row.place_bytes,
    "MB/s": lambda row: -row.mb_s,
    "requests/s": lambda row: -row.requests_s,
    "share": lambda row: -row.share,
    "p99": lambda row: -(row.wait_p99_ms or 0.0),
}


def sources_of(names: Sequence[str], sys_: Path = SYS) -> list[Source]:
    """What is to be looked at: disks, and files of network servers."""
    files = [name for name in names if _is_file(name, sys_)]
    disks = [name for name in names if name not in files]
    found: list[Source] = []
    if disks or not files:
        found += [KernelSource(disk, sys_) for disk in kernel_disks(disks, sys_)]
    if files:
        from streamsched.watch import observe_nbd

        for name in dict.fromkeys(files):
            found += observe_nbd.sources_of(Path(name))
    return found


def _is_file(name: str, sys_: Path) -> bool:
    """Whether a file of a network server is meant, and no disk of this machine."""
    if "/" in name:
        return not name.startswith("/dev/")
    # No disk has a name with a dot: who writes nbd.prom means a file, also one that is missing.
    return not is_folder(sys_ / "block" / name) and ("." in name or is_file(name))


def once(sources: Sequence[Source]) -> list[Observation]:
    """Two looks at each, LOOK_S apart, or as soon as a server has written its file anew."""
    found: dict[int, Observation] = {}  # by the place: files in two folders may have one name
    with until_stopped() as running:
        try:
            for step in itertools.count():
                for number, source in enumerate(sources):
                    seen = source.look() if number not in found else None
                    # A disk that cannot be looked at now may be so in a second.
                    if seen and (seen.trouble is None or step):
                        found[number] = seen
                if len(found) == len(sources):
                    break
                if step == 2:
                    late = next(one for n, one in enumerate(sources) if n not in found)
                    print(
                        f"streamsched: note: {late.name}: nothing new yet; waiting for it",
                        file=sys.stderr,
                    )
                time.sleep(LOOK_S)
                if not running():
                    raise Interrupted("interrupted before there was anything to show")
        finally:
            for source in sources:
                source.close()
    observations = [found[number] for number in range(len(sources))]
    troubles = [one.trouble for one in observations if one.trouble]
    if len(troubles) == len(observations):
        raise StreamschedError(troubles[0])
    return observations


# ---- lines of text ----


def place_text(place_bytes: int | None) -> str:
    """As disks are sold: in powers of 1000."""
    if place_bytes is None:
        return "-"
    return f"{place_bytes / 1e12:.3f} TB" if place_bytes >= 1e12 else f"{place_bytes / 1e9:.1f} GB"


def _parts_text(parts: dict[str, float], most: int) -> str:
    shown = [f"{name} {100 * part:.0f}%" for name, part in parts.items() if part >= 0.005]
    return " ".join(shown[:most])


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def row_text(row: Row) -> str:
    """One party, under HEADING."""
    turn = ">" if row.turn else " "
    return (
        f"{turn} {place_text(row.place_bytes):>9}  {row.kind:<12} {row.mb_s:>6.1f}"
        f"  {row.requests_s:>10.1f}  {100 * row.share:>4.0f}%  {_number(row.wait_p99_ms):>6}"
        f"   {_parts_text(row.reasons, 2)}"
    )


def ordered(rows: Sequence[Row], sort: str, reverse: bool = False) -> list[Row]:
    """By one of SORTS."""
    return sorted(rows, key=SORTS[sort], reverse=reverse)


def summary(seen: Observation) -> list[str]:
    """The disk as a whole: three lines."""
    queue = "" if seen.in_flight is None else f"  queue {seen.in_flight}  pending {seen.pending}"
    first = (
        f"{seen.name}  {seen.scheduler}  {seen.mb_s:.1f} MB/s  {seen.requests_s:.0f} requests/s"
        f"{queue}"
    )
    waits = (
        f"waits {seen.waits_s:.1f}/s: paid {seen.paid_s:.1f}, in vain {seen.in_vain_s:.1f}"
        f"   head idle {100 * seen.idle:.1f}%   seeks {seen.seeks_s:.1f}/s"
    )
    why = f"why {_parts_text(seen.reasons, 6)}" if seen.reasons else seen.note or ""
    return [first, waits, seen.note if seen.note else why]


def strip(seen: Observation, width: int) -> list[str]:
    """The head's path over the last STRIP_S: time from left to right, the disk's end on top.

    In dots, two by four in each character (U+2800 and what follows).
    """
    label = [f"{place_text(seen.size_bytes):>9} ", *[" " * 10] * (STRIP_HEIGHT - 2), f"{'0':>9} "]
    width -= len(label[0])
    columns, rows = 2 * width, 4 * STRIP_HEIGHT
    cells = [[0] * width for _ in range(STRIP_HEIGHT)]
    sectors = max(seen.size_bytes // 512, 1)
    last = seen.path[-1][0] if seen.path else 0.0
    for when, sector in seen.path:
        column = columns - 1 - int((last - when) / STRIP_S * columns)
        if column < 0:
            continue
        row = rows - 1 - min(sector * rows // sectors, rows - 1)
        # The dots' bits: 0 to 2 and 6 down the left column, 3 to 5 and 7 down the right one.
        y = row % 4
        bit = (6 + column % 2) if y == 3 else y + 3 * (column % 2)
        cells[row // 4][column // 2] |= 1 << bit
    dots = ["".join(chr(0x2800 + cell) for cell in line) for line in cells]
    return [before + line for before, line in zip(label, dots, strict=True)]


def as_table(observations: Sequence[Observation]) -> str:
    """For people, once."""
    lines: list[str] = []
    for seen in observations:
        lines += ["", seen.trouble] if seen.trouble else ["", *summary(seen), HEADING]
        if not seen.trouble:
            lines += [row_text(row) for row in ordered(seen.rows, "place")]
    return "\n".join(line.rstrip() for line in lines[1:]) + "\n"
