# SPDX-License-Identifier: GPL-2.0-only
"""Patches that add the scheduler to mainline Linux (make upstream): build/upstream/*.patch.

    python tools/upstream.py [--quick]     LINUX=DIR names another kernel source

The patches are made from core/ and kernel/ (upstream_source.py), against the newest kernel source
that the rig knows, and checked, one line for each check. --quick leaves out all that compiles. Exit
code 1 when a check has failed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import upstream_check
import upstream_source
import upstream_tree
from upstream_source import FOLDER, Series
from upstream_tree import ROOT, Tree, call

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.sim.policies import all_policies

OUTPUT = ROOT / "build" / "upstream"
TEXTS = ROOT / "kernel" / "upstream"
RESULTS = ROOT / "docs" / "results"
# The path and the schedulers of docs/results/kernel.md's tables that a cover letter has room for.
PATHS = ("direct", "loop")
COLUMNS = 80
TITLE = "STREAM I/O SCHEDULER"


def person() -> dict[str, str]:
    """Who signs the patches, for git's environment: who commits to this tree."""
    # The same tree makes the same patches.
    values = {"DATE": call(["git", "log", "-1", "--format=%cI"], ROOT).strip()}
    for key in ("user.name", "user.email"):
        done = subprocess.run(["git", "config", key], cwd=ROOT, capture_output=True, check=False)
        values[key.partition(".")[2].upper()] = value = done.stdout.decode().strip()
        if not value:
            raise UsageError(
                f"the patches need an author, and git knows no {key} here: "
                f"set it with git config {key} (patches are signed with it)"
            )
    return {f"GIT_{who}_{k}": v for who in ("AUTHOR", "COMMITTER") for k, v in values.items()}


def template(name: str) -> str:
    """A text of kernel/upstream/, without the licence's line of this tree."""
    return re.sub(r"\A# SPDX.*\n", "", (TEXTS / name).read_text())


def makefile(names: list[str]) -> str:
    """FOLDER's, with these files in it."""
    objects = [name.replace(".c", ".o") for name in sorted(names) if name.endswith(".c")]
    wrapped = textwrap.wrap(" ".join(name for name in objects if name != "debugfs.o"), 66)
    rows = [
        "# SPDX-License-Identifier: GPL-2.0-only\n",
        "obj-$(CONFIG_MQ_IOSCHED_STREAM) += stream-iosched.o",
        "stream-iosched-y := " + " \\\n\t".join(wrapped),
    ]
    if "debugfs.o" in objects:
        rows += ["stream-iosched-$(CONFIG_BLK_DEBUG_FS) += debugfs.o\n"]
        rows += ["# For trace.h, which includes itself.", "CFLAGS_trace.o := -I$(src)"]
    return "\n".join(rows) + "\n"


def put_before(path: Path, where: str, text: str) -> None:
    """The text before the first line that begins like this."""
    old = path.read_text()
    match = re.search(where, old, re.MULTILINE)
    if not match:
        raise StreamschedError(f"{path}: has no line like {where}, where something is to be put in")
    path.write_text(old[: match.start()] + text + old[match.start() :])


def tunables(code: str) -> str:
    """The rows of the .rst: those that are sent."""
    rows = []
    for policy in ("stream", "deadline"):
        for row in all_policies()[policy].tunables:
            if f'.name = "{row.name}"' in code:
                help_text = re.sub(r" \([^)]*\)", "", row.help)
                span = f"{row.show(row.initial)}, from {row.show(row.minimum)} to "
                rows.append(f"{row.name} ({span}{row.show(row.maximum)})\n\t{help_text}\n")
    return "\n".join(rows)


def add_maintainers(path: Path, who: dict[str, str]) -> None:
    """An entry in its place by the alphabet."""
    entry = (
        f"{TITLE}\nM:\t{who['GIT_AUTHOR_NAME']} <{who['GIT_AUTHOR_EMAIL']}>\n"
        "L:\tlinux-block@vger.kernel.org\nS:\tMaintained\n"
        f"F:\tDocumentation/block/stream-iosched.rst\nF:\t{FOLDER}/\n\n"
    )
    titles = re.findall(r"(?<=\n\n)([A-Z0-9].*)\n(?=[A-Z]:\t)", path.read_text())
    after = next((title for title in titles if title > TITLE), "an entry behind it")
    put_before(path, rf"(?<=\n\n){re.escape(after)}\n", entry)


def write_files(series: Series, number: int, tree: Path, who: dict[str, str]) -> None:
    """The kernel's files as they are after the patch of this number."""
    name, texts = series.patch[number].name, upstream_source.generate(series, number)
    folder = tree / FOLDER
    folder.mkdir(exist_ok=True)
    for file, text in texts.items():
        (folder / file).write_text(text)
    upstream_source.format_files(Path(sys.executable).parent / "clang-format", folder)
    if number >= series.first_built:
        (folder / "Makefile").write_text(makefile(list(texts)))
    if number == series.first_built:
        built = "obj-$(CONFIG_MQ_IOSCHED_STREAM)\t+= stream/\n"
        put_before(tree / "block" / "Kconfig.iosched", "^endmenu", template("Kconfig") + "\n")
        put_before(tree / "block" / "Makefile", r"^bfq-y\b", built)
    if name == "docs":
        docs = tree / "Documentation" / "block"
        (docs / "stream-iosched.rst").write_text(
            template("stream-iosched.rst").replace("@TUNABLES@", tunables("".join(texts.values())))
        )
        put_before(docs / "index.rst", "^   switching-sched", "   stream-iosched\n")
        add_maintainers(tree / "MAINTAINERS", who)


def measured(name: str) -> str:
    """A table of docs/results/kernel.md by its mark, or the one of docs/results/, as plain text."""
    file = RESULTS / f"{name}.md"
    text, title = file.read_text() if file.exists() else "", ""
    if not text:
        file = RESULTS / "kernel.md"
        text = file.read_text().partition(f"<!-- measured: {name} -->")[2].partition("<!-- end")[0]
        title = "".join(re.findall(r"^### (.*)$", text, re.MULTILINE)[:1])
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    if len(rows) < 3:
        raise StreamschedError(f"{file.relative_to(ROOT)} has no measured table {name}")
    head = [cell.replace(",", "") for cell in rows[0]]
    by_path = head[0] == "path"
    rows = [head, *(row for row in rows[2:] if not by_path or row[0] in PATHS)]
    # What a mail has no room for.
    for left_out in ("", "rounds", "reads/s", "instructions", "disk MB/s", "p99 ms"):
        kept = [i for i, column in enumerate(rows[0]) if column != left_out]
        rows = [[row[i] for i in kept] for row in rows]
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        if sum(widths) + 2 * (len(widths) - 1) <= COLUMNS:
            break
    text = f"{title}:\n\n" if title else ""
    for row in rows:
        cells = [
            cell.ljust(width) if i <= by_path else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        text += "  ".join(cells).rstrip() + "\n"
    return text


def cover_letter(version: str) -> str:
    """The text of 0000, with the tables in it."""
    text = template("cover.txt").replace("@VERSION@", version)
    return re.sub(r"@TABLE (.*)@", lambda match: measured(match[1]), text)


def generate(tree: Tree, output: Path) -> list[Path]:
    """Write the patches; those that were there are gone. The cover letter is the first."""
    series, who = upstream_source.load(), person()
    with tempfile.TemporaryDirectory(prefix="streamsched-upstream-") as name:
        work = Path(name) / "linux"
        call(["git", "clone", "-q", "--shared", "-b", "base", tree.source, work], ROOT)
        for number, patch in enumerate(series.patch):
            write_files(series, number, work, who)
            call(["git", "add", "-A"], work)
            message = f"{patch.subject}\n\n{patch.body.strip()}\n"
            call(["git", "commit", "-q", "-s", "-m", message], work, **who)
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        command = ["git", "format-patch", "-q", "--rfc", "--cover-letter", "--no-signature"]
        call([*command, "-o", output, "origin/base"], work, **who)
    patches = sorted(output.glob("*.patch"))
    cover = patches[0].read_text()
    cover = cover.replace("*** SUBJECT HERE ***", "block: the stream I/O scheduler")
    cover = cover.replace("*** BLURB HERE ***", cover_letter(tree.version).strip())
    patches[0].write_text(cover)
    return patches


def main(arguments: list[str]) -> int:
    """What the module's docstring says."""
    try:
        if arguments not in ([], ["--quick"]):
            raise UsageError("usage: python tools/upstream.py [--quick]")
        if not shutil.which("git"):
            raise UsageError("git, which makes patches, is missing: install the Debian package git")
        tree = upstream_tree.find(os.environ.get("LINUX", ""))
        assert tree
        patches = generate(tree, OUTPUT)
        where = OUTPUT.relative_to(ROOT)
        print(f"{len(patches) - 1} patches and a cover letter for Linux {tree.version} in {where}/")
        return upstream_check.check(tree, patches, quick=bool(arguments))
    except StreamschedError as error:
        print(f"streamsched: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
