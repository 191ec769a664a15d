# SPDX-License-Identifier: GPL-2.0-only
"""The measured tables and pictures of docs/: which command writes each, and which are stale.

    tools/results.py [NAME | stale | stale-fast]...     make results WHAT="kernel nullblk"

Without a name it prints the list and measures nothing. Else it runs the commands of those rows. A
table's last line then says with which sources it was measured. A later change of one of them makes
the table stale. Comments in C do not count, and Python is not looked at. The line is missing where
a command was called by itself: such a table is "unknown".
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from streamsched.base.errors import StreamschedError, UsageError, exit_code_of, unknown
from streamsched.base.files import Target, write_whole

ROOT = Path(__file__).resolve().parents[1]

# The sources that measured figures depend on.
PARTS = {
    "core": ("core/**/*.[ch]",),
    "disk model": ("disk/**/*.[ch]", "disks/**/*.toml"),
    "simulator": ("sim/**/*.[ch]",),
    "kernel": ("kernel/iosched/*.[ch]", "kernel/hdd-emu/*.[ch]", "kernel/rig/*"),
    "jobs": ("jobs/**/*.fio",),
}
SIMULATED = ("core", "disk model", "simulator", "jobs")
ON_KERNEL = ("core", "disk model", "kernel", "jobs")
FAST_MINUTES = 5
LINE = re.compile(r"\n(?:<!-- )?Measured with ([^\n]*?)\.(?: -->)?\n\Z")


@dataclasses.dataclass(frozen=True)
class Row:
    """A table: its file in docs/, the only command that writes it, and what that takes."""

    name: str
    file: str
    command: str
    minutes: int
    parts: Sequence[str]
    needs: str = ""
    made_of: str = ""  # the row whose file it is made of, where it measures nothing itself

    @property
    def path(self) -> Path:
        """In the source tree."""
        return ROOT / "docs" / self.file

    @property
    def fast(self) -> bool:
        """Whether it may be measured at any time, on any machine."""
        return self.minutes <= FAST_MINUTES and not self.needs


def _simulated(name: str, command: str, minutes: int) -> Row:
    file = f"results/{name}.md"
    return Row(name, file, f"streamsched {command} --to docs/{file} --force", minutes, SIMULATED)


RIG = "the rig's kernel"
STOCK = "root, stock kernels"
DRIVES = ("barracuda", "cheetah4LP", "ibm18es", "hp_c2490a", "dec_rz26")
_PYTEST = "UPDATE_DOCS=1 pytest"
_TABLE = "python bench/table.py"
_RIG = "tools/setup.sh rig"

ROWS = (
    _simulated("auto", "reproduce auto", 4),
    _simulated("comparison", "compare", 1),
    _simulated("reproduction", "reproduce all", 1),
    dataclasses.replace(_simulated("validation", "validate disk", 1), parts=("disk model",)),
    Row(
        "yardsticks",
        "results/yardsticks.md",
        "python -P bench/yardsticks.py",
        1,
        SIMULATED,
    ),
    Row(
        "scrub-beside-vms",
        "results/scrub-beside-vms.md",
        "python -P bench/scrub_beside_vms.py --to docs/results/scrub-beside-vms.md --force",
        1,
        SIMULATED,
    ),
    Row(
        "regret",
        "results/regret.md",
        "PYTHONPATH=bench python -P bench/regret.py --to docs/results/regret.md --force",
        5,
        SIMULATED,
    ),
    Row(
        "frontier",
        "frontier.svg",
        "tools/setup.sh plots && streamsched research frontier --plot docs/frontier.svg --force",
        1,
        SIMULATED,
    ),
    Row(
        "array-scaling",
        "array-scaling.svg",
        "tools/setup.sh plots && "
        "python -P bench/array_scaling.py --plot docs/array-scaling.svg --force",
        1,
        SIMULATED,
    ),
    Row(
        "calibrate-write-out",
        "results/calibrate-write-out.md",
        f"{_PYTEST} tests/sim/test_calibrate.py -k share_of_write_out",
        1,
        ("disk model",),
    ),
    Row(
        "recorded-drives",
        "results/recorded-drives.md",
        "streamsched research validate disk "
        + " ".join(f'"$DRIVES/{name}.trace.zst" disks/recorded/{name}.toml' for name in DRIVES)
        + " --to docs/results/recorded-drives.md --force",
        1,
        ("disk model",),
        "DRIVES=DIR with DiskSim's recorded times",
    ),
    Row("kernel", "results/kernel.md", f"{_RIG} && {_TABLE} kernel", 40, ON_KERNEL, RIG),
    Row(
        "kernel-arrays",
        "results/kernel-arrays.md",
        f"tools/setup.sh applications && {_RIG} && {_TABLE} kernel-arrays",
        60,
        ON_KERNEL,
        f"root, network, {RIG}",
    ),
    Row(
        "applications",
        "results/applications.md",
        f"tools/setup.sh applications && {_RIG} && {_TABLE} applications",
        60,
        ("core", "disk model", "kernel"),
        f"root, network, {RIG}",
    ),
    Row(
        "servers",
        "results/servers.md",
        f"tools/setup.sh servers && {_RIG} servers && {_TABLE} servers",
        60,
        ON_KERNEL,
        f"root, network, {RIG}",
    ),
    Row(
        "s-suite",
        "results/s-suite.md",
        f"tools/setup.sh s-suite && {_RIG} && {_TABLE} s-suite",
        70,
        ("core", "disk model", "kernel"),
        f"root, network, {RIG}",
    ),
    Row(
        "reproduction-programs",
        "results/reproduction-programs.md",
        f"{_PYTEST} tests/kernel/test_kernel_applications.py -k of_what_was_measured",
        1,
        ("core", "disk model", "kernel"),
        made_of="applications",
    ),
    Row(
        "forecast",
        "results/forecast.md",
        f"{_RIG} && python -P bench/advise_forecast.py --to docs/results/forecast.md --force",
        30,
        ("core", "disk model", "kernel"),
        RIG,
    ),
    Row(
        "nullblk",
        "results/nullblk.md",
        "tools/setup.sh stock && python bench/nullblk.py --to docs/results/nullblk.md --force",
        10,
        ("core", "kernel"),
        STOCK,
    ),
    Row(
        "openzfs",
        "results/openzfs.md",
        "python bench/openzfs.py --to docs/results/openzfs.md --force",
        40,
        ("core", "disk model", "kernel"),
        "root, network, stock kernels",
    ),
    Row(
        "blktests",
        "results/blktests.md",
        "make blktests",
        180,
        ("core", "disk model", "kernel"),
        f"{STOCK}, BLKTESTS=DIR",
    ),
    Row(
        "xfstests",
        "results/xfstests.md",
        "make xfstests",
        2400,  # nobody has run all: some 700 tests, twice, at 1.7 minutes each
        ("core", "disk model", "kernel"),
        f"{STOCK}, XFSTESTS=DIR",
    ),
    Row(
        "stock-kernels",
        "results/stock-kernels.md",
        f"tools/setup.sh stock-all && STREAMSCHED_TESTS=all {_PYTEST} "
        "tests/kernel/test_kernel_stock.py -k 'data_is_right and not sid'",
        60,
        ("core", "disk model", "kernel"),
        STOCK,
    ),
    Row(
        "study-scaling",
        "results/study-scaling.md",
        "tools/setup.sh study && "
        "python -P bench/study.py --to docs/results/study-scaling.md --force",
        2,
        ("core", "disk model", "simulator"),
        "an idle machine",
    ),
)
BY_NAME = {row.name: row for row in ROWS}


def hashes(root: Path | None = None) -> dict[str, str]:
    """Of each part, what it is without the comments of C."""
    found, root = {}, root or ROOT
    for part, patterns in PARTS.items():
        of_part = hashlib.sha256()
        paths = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
        for path in sorted(paths):
            data = path.read_bytes()
            if path.suffix in (".c", ".h"):
                data = b" ".join(re.sub(rb"(?s)/\*.*?\*/", b"", data).split())
            of_part.update(f"{path.relative_to(root)}\0{len(data)}\0".encode() + data)
        found[part] = of_part.hexdigest()[:12]
    return found


def measured_with(text: str) -> dict[str, str]:
    """The hashes that a table has in its last line, by part; empty if it has none."""
    line = LINE.search(text)
    words = line[1].split(", ") if line else ()
    return dict(word.rsplit(" ", 1) for word in words)


def without_line(text: str) -> str:
    """A table as its command writes it."""
    return LINE.sub("", text)


def with_line(text: str, with_what: dict[str, str], suffix: str = ".md") -> str:
    """A table that says with what it was measured."""
    said = "Measured with " + ", ".join(f"{part} {is_}" for part, is_ in with_what.items()) + "."
    return without_line(text) + "\n" + (said if suffix == ".md" else f"<!-- {said} -->") + "\n"


def state(row: Row, now: dict[str, str]) -> str:
    """fresh, stale with what has changed, or unknown."""
    then = measured_with(row.path.read_text())
    if not then.keys() >= set(row.parts):
        return "unknown"
    changed = [part for part in row.parts if then[part] != now[part]]
    return f"stale: {', '.join(changed)}" if changed else "fresh"


def _wanted(row: Row, now: dict[str, str]) -> bool:
    """Whether its command would make it less stale."""
    if row.made_of:
        source = BY_NAME[row.made_of].path.read_text()
        return measured_with(source) != measured_with(row.path.read_text())
    return state(row, now) != "fresh"


def show() -> None:
    """The list."""
    now = hashes()
    for row in ROWS:
        time = f"{row.minutes} min" if row.minutes < 120 else f"{row.minutes // 60} h"
        needs = f"; needs {row.needs}" if row.needs else ""
        print(f"{row.name:22} {state(row, now):26} docs/{row.file}, {time}{needs}")
        print(f"{'':22} {row.command}")
    print('make results WHAT="NAME ...", WHAT=stale, or WHAT=stale-fast measures')


def chosen(words: Sequence[str]) -> list[Row]:
    """The rows that are named, in their order in the list."""
    now, names = hashes(), set[str]()
    for word in words:
        if word in ("stale", "stale-fast"):
            names |= {
                row.name for row in ROWS if _wanted(row, now) and (row.fast or word == "stale")
            }
        elif word not in BY_NAME:
            raise unknown("table", word, [*BY_NAME, "stale", "stale-fast"])
        else:
            names.add(word)
    for variable in ("DRIVES", "BLKTESTS", "XFSTESTS"):
        for row in (BY_NAME[name] for name in sorted(names)):
            if f"{variable}=DIR" in row.needs and not os.environ.get(variable):
                raise UsageError(f"{row.name}: needs {row.needs}")
    return [row for row in ROWS if row.name in names]


def _write(row: Row, text: str) -> None:
    write_whole(Target(row.path, replace=True), text)


def measure(row: Row) -> None:
    """Run its command, and add the line about the sources."""
    print(f"{row.name}: {row.command}", flush=True)
    before = hashes()
    # What is measured in part has no line, either.
    _write(row, without_line(row.path.read_text()))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        row.command, shell=True, cwd=ROOT, env=os.environ | {"PATH": path}, check=False
    )
    if done.returncode:
        raise StreamschedError(f"{row.name}: its command ended with {done.returncode}")
    text = row.path.read_text()
    if row.made_of:
        with_what = measured_with(BY_NAME[row.made_of].path.read_text())
    elif hashes() == before:
        with_what = {part: before[part] for part in row.parts}
    else:
        raise StreamschedError(f"{row.name}: the sources changed while it was measured")
    if with_what:
        _write(row, with_line(text, with_what, row.path.suffix))


def main(words: Sequence[str]) -> int:
    """List, or measure what is named."""
    if not words:
        return exit_code_of("results", show)

    def work() -> None:
        rows = chosen(words)
        for row in rows:
            measure(row)
        if not rows:
            print("nothing to measure")

    return exit_code_of("results", work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
