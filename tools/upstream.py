# SPDX-License-Identifier: GPL-2.0-only
"""Patches that add the scheduler to mainline Linux (make upstream): build/upstream/*.patch.

    python tools/upstream.py [--quick]     LINUX=DIR names another kernel source

The patches are made from core/ and kernel/ (upstream_source.py), against the newest kernel source
that the rig knows, and checked: one line for each check, exit code 1 when one has failed. --quick
leaves out all that compiles.
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

import upstream_source
from upstream_check import call, check
from upstream_source import FOLDER, ROOT, Series

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.hosts import rig
from streamsched.sim.policies import all_policies

OUTPUT = ROOT / "build" / "upstream"
TEXTS = ROOT / "kernel" / "upstream"
RESULTS = ROOT / "docs" / "results"
FORMATTER = Path(sys.executable).parent / "clang-format"
# As in this tree, but checkpatch.pl --strict wants no line that ends in an opening bracket.
STYLE = (
    "--style={BasedOnStyle: InheritParentConfig, PenaltyBreakOpenParenthesis: 100000, "
    "PenaltyBreakBeforeFirstCallParameter: 100000, PenaltyExcessCharacter: 10}"
)
# What a source must have, in which file, and what one without it is.
NEEDED = (
    ("block/elevator.h", "", "is no kernel source: there is no block/elevator.h in it"),
    (
        "include/linux/slab.h",
        "kvmalloc_obj(",
        "has no kvmalloc_obj(): the series needs a newer one",
    ),
)
# By files' names, sizes and times, as the rig tells a given source.
HASH = "find . -name .git -prune -o -printf '%p %s %T@\\n' | sort | sha256sum"
# A git repository of $0, a package or a folder, in the new folder $1.
PREPARE = r"""
rm -rf "$1.new" && mkdir -p "$1.new" && cd "$1.new"
if [ -d "$0" ]; then
	tar -C "$0" --exclude=.git -c .
else
	dpkg-deb --fsys-tarfile "$0" | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' | xz -dc
fi | tar -x --strip-components=1
make -s mrproper
git init -q -b base
git add -f -- block Documentation/block MAINTAINERS
git -c user.name=base -c user.email=base@localhost commit -q -m base
mv "$1.new" "$1"
"""


def version_of(source: Path) -> str:
    """As the kernel's Makefile says it."""
    return call(["make", "-s", "kernelversion"], source).strip()


def find(given: str) -> Path:
    """The source, made if it is not there, of this folder or of the newest package."""
    origin = Path(given).resolve()
    if given:
        for name, text, problem in NEEDED:
            if not (origin / name).is_file() or text not in (origin / name).read_text():
                raise UsageError(f"LINUX={origin} {problem}; or leave LINUX out")
        name = f"{version_of(origin)}-given-{call(['bash', '-c', HASH], origin)[:12]}"
    else:
        command = [str(ROOT / "kernel" / "rig" / "build.sh"), "--package", "newest"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise StreamschedError("there is no kernel source (see above); name one with LINUX=DIR")
        origin = Path(done.stdout.strip())
        name = origin.name.split("_")[1]
    source = rig.cache().parent / "upstream" / name / "source"
    if not source.is_dir():
        print(f"==> preparing a kernel source in {source.parent} (2 GB)", flush=True)
        call(["bash", "-eu", "-o", "pipefail", "-c", PREPARE, origin, source], ROOT)
    return source


def person() -> dict[str, str]:
    """Who signs the patches, for git's environment: who commits to this tree."""
    # The same tree makes the same patches.
    values = {"DATE": call(["git", "log", "-1", "--format=%cI"], ROOT).strip()}
    for key in ("name", "email"):
        command = ["git", "config", f"user.{key}"]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        values[key.upper()] = done.stdout.strip()
        if not values[key.upper()]:
            raise UsageError(
                f"the patches need an author, and git knows no user.{key} here: "
                f"set it with git config user.{key} (patches are signed with it)"
            )
    return {f"GIT_{who}_{k}": v for who in ("AUTHOR", "COMMITTER") for k, v in values.items()}


def template(name: str) -> str:
    """A text of kernel/upstream/ without its first line, the licence of this tree."""
    return (TEXTS / name).read_text().partition("\n")[2]


def makefile(names: list[str]) -> str:
    """FOLDER's, with these files in it."""
    objects = " ".join(name.replace(".c", ".o") for name in sorted(names) if name.endswith(".c"))
    wrapped = " \\\n\t".join(textwrap.wrap(objects.replace("debugfs.o ", ""), 66))
    rows = ["# SPDX-License-Identifier: GPL-2.0-only\n"]
    rows += [
        "obj-$(CONFIG_MQ_IOSCHED_STREAM) += stream-iosched.o",
        f"stream-iosched-y := {wrapped}",
    ]
    if "debugfs.o" in objects:
        rows += ["stream-iosched-$(CONFIG_BLK_DEBUG_FS) += debugfs.o\n"]
        rows += ["# For trace.h, which includes itself.", "CFLAGS_trace.o := -I$(src)"]
    return "\n".join(rows) + "\n"


def put_before(path: Path, where: str, text: str) -> None:
    """The text before the first line that begins like this."""
    new, count = re.subn(where, lambda m: text + m[0], path.read_text(), count=1, flags=re.M)
    if not count:
        raise StreamschedError(f"{path}: has no line like {where}, where something is to be put in")
    path.write_text(new)


def tunables(code: str) -> str:
    """The rows of the .rst: those that are sent."""
    rows = []
    for row in (row for name in ("stream", "deadline") for row in all_policies()[name].tunables):
        if f'.name = "{row.name}"' in code:
            help_text = re.sub(r" \([^)]*\)", "", row.help)
            first, least, most = map(row.show, (row.initial, row.minimum, row.maximum))
            rows.append(f"{row.name} ({first}, from {least} to {most})\n\t{help_text}\n")
    return "\n".join(rows)


def write_files(series: Series, number: int, tree: Path, who: dict[str, str]) -> None:
    """The kernel's files as they are after the patch of this number."""
    texts, folder = upstream_source.generate(series, number), tree / FOLDER
    folder.mkdir(exist_ok=True)
    for file, text in texts.items():
        (folder / file).write_text(text)
    # Lines are broken anew: names have become shorter, and conditions.
    call([FORMATTER, "-i", STYLE, *sorted(texts)], folder)
    if number >= series.first_built:
        (folder / "Makefile").write_text(makefile(list(texts)))
    if number == series.first_built:
        built = "obj-$(CONFIG_MQ_IOSCHED_STREAM)\t+= stream/\n"
        put_before(tree / "block" / "Kconfig.iosched", "^endmenu", template("Kconfig") + "\n")
        put_before(tree / "block" / "Makefile", r"^bfq-y\b", built)
    if number == len(series.patch) - 1:
        docs, rows = tree / "Documentation" / "block", tunables("".join(texts.values()))
        rst = (TEXTS / "stream-iosched.rst").read_text().replace("@TUNABLES@", rows)
        (docs / "stream-iosched.rst").write_text(rst)
        put_before(docs / "index.rst", "^   switching-sched", "   stream-iosched\n")
        maintainers, entry = tree / "MAINTAINERS", template("MAINTAINERS").format_map(who) + "\n"
        titles = re.findall(r"(?<=\n\n)([A-Z0-9].*)\n(?=[A-Z]:\t)", maintainers.read_text())
        after = next(title for title in titles if title > entry)
        put_before(maintainers, rf"(?<=\n\n){re.escape(after)}\n", entry)


def measured(name: str, without: str) -> str:
    """A table of docs/results/kernel.md by its mark, or the one of docs/results/, as plain text."""
    text, file = (RESULTS / "kernel.md").read_text(), RESULTS / f"{name}.md"
    text = text.partition(f"measured: {name} -->")[2].partition("<!-- end")[0] or file.read_text()
    rows = [line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ")]
    by_path = rows[0][0] == "path"
    # There is no room for more.
    rows = [row for row in rows if not by_path or row[0] in ("path", "direct", "loop")]
    rows[0] = [cell.replace(",", "") for cell in rows[0]]
    columns = [one for one in zip(*rows, strict=True) if one[0] not in without.split(", ")]
    widths = [max(map(len, column)) for column in columns]
    text = "".join(re.findall(r"^## (.*\n)", text, re.M)[:1])
    for row in zip(*columns, strict=True):
        cells = [f"{one:{'<' if i <= by_path else '>'}{widths[i]}}" for i, one in enumerate(row)]
        text += "  ".join(cells).rstrip() + "\n"
    return text


def cover_letter(version: str) -> str:
    """The subject and the text of 0000, with the tables in it."""
    text = template("cover.txt").replace("@VERSION@", version)
    return re.sub(r"@TABLE (\S+)(?: without (.*))?@", lambda m: measured(m[1], m[2] or ""), text)


def generate(source: Path, output: Path) -> list[Path]:
    """Write the patches; those that were there are gone. The cover letter is the first."""
    series, who = upstream_source.load(), person()
    if not FORMATTER.is_file():
        raise StreamschedError(f"{FORMATTER} is missing: make upstream installs it")
    with tempfile.TemporaryDirectory(prefix="streamsched-upstream-") as name:
        shutil.copy(ROOT / ".clang-format", name)
        work = Path(name) / "linux"
        call(["git", "clone", "-q", "--shared", "-b", "base", source, work], ROOT)
        for number, patch in enumerate(series.patch):
            write_files(series, number, work, who)
            call(["git", "add", "-A"], work)
            call(["git", "commit", "-q", "-s", "-m", patch.message], work, who)
        shutil.rmtree(output, ignore_errors=True)
        call(["git", "config", "branch.base.description", cover_letter(version_of(source))], work)
        command = ["git", "format-patch", "-q", "--rfc", "--cover-letter", "--no-signature"]
        command += ["--cover-from-description=subject", "-o", str(output), "origin/base"]
        call(command, work, who)
    return sorted(output.glob("*.patch"))


def main(arguments: list[str]) -> int:
    """What the module's docstring says."""
    try:
        if arguments not in ([], ["--quick"]):
            raise UsageError("usage: python tools/upstream.py [--quick]")
        if not shutil.which("git"):
            raise UsageError("git, which makes patches, is missing: install the Debian package git")
        source = find(os.environ.get("LINUX", ""))
        patches = generate(source, OUTPUT)[1:]
        where = f"Linux {version_of(source)} in {OUTPUT.relative_to(ROOT)}/"
        print(f"{len(patches)} patches and a cover letter for {where}", flush=True)
        return 0 if check(source, patches, quick=bool(arguments)) else 1
    except StreamschedError as error:
        print(f"streamsched: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
