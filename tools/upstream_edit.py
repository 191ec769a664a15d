# SPDX-License-Identifier: GPL-2.0-only
"""What of this tree goes into the kernel's, and how: the table kernel/upstream/series.toml at work.

Each [[file]] names a file here and its name there; each [[edit]] says what is to change on the
way. An edit whose text is not there any more is an error, so that the table cannot grow stale.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from streamsched.base.errors import StreamschedError

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "kernel" / "upstream" / "series.toml"
# Where the kernel keeps them; the files there are named without it.
FOLDER = "block/stream"


# checkpatch.pl --strict wants no line that ends in an opening bracket.
PENALTIES = {
    "PenaltyBreakOpenParenthesis": 100000,
    "PenaltyBreakBeforeFirstCallParameter": 100000,
    "PenaltyExcessCharacter": 10,
}


class TableError(StreamschedError):
    """The table does not fit the sources: says which edit, and what was expected."""


@dataclass(frozen=True)
class Patch:
    """One patch of the series."""

    name: str
    subject: str
    body: str
    # Files that other patches have begun and that change with this one.
    changes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class File:
    """Where it is from, what it is called there, and the patch that brings it."""

    source: str
    name: str
    patch: str


@dataclass(frozen=True)
class Edit:
    """One change, of the kind that is given: drop, old (with new), or regex (with new)."""

    file: str = ""  # a name, or a pattern
    drop: list[str] = field(default_factory=list)  # functions, of all files if none is named
    old: str = ""
    new: str = ""
    take: list[str] = field(default_factory=list)  # functions of kernel/compat.h before old
    regex: str = ""
    until: str = ""  # only in patches before the one of this name


@dataclass(frozen=True)
class Table:
    """The whole of it."""

    patches: list[Patch]
    files: list[File]
    edits: list[Edit]


def load() -> Table:
    """The table, read."""
    rows = tomllib.loads(TABLE.read_text())
    files = [
        File(source, name, patch)
        for patch, names in rows["files"].items()
        for name, source in names.items()
    ]
    return Table(
        [Patch(**row) for row in rows["patch"]], files, [Edit(**row) for row in rows["edit"]]
    )


def find_function(text: str, name: str) -> list[tuple[int, int]]:
    """Where it is declared or defined, comment included, in kernel style: begin and end."""
    found = []
    for match in re.finditer(rf"^[A-Za-z_][\w \t*]*\b{name}\(", text, re.MULTILINE):
        at, depth = match.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        rest = text[at:]
        if rest.startswith(";"):
            end = at + 2
        elif re.match(r"\s*{", rest):
            end = text.index("\n}\n", at) + 3
        else:
            continue
        comment = re.search(r"^/\*(?:[^*]|\*(?!/))*\*/\n\Z", text[: match.start()], re.MULTILINE)
        found.append((comment.start() if comment else match.start(), end))
    return found


def drop_function(text: str, name: str) -> str:
    """Without it; unchanged if it is not there."""
    for begin, end in reversed(find_function(text, name)):
        text = text[:begin] + text[end:]
    return text


def taken(name: str) -> str:
    """A function of kernel/compat.h, as one of a .c file under a name without compat_."""
    text = (ROOT / "kernel" / "compat.h").read_text()
    where = find_function(text, name)
    if len(where) != 1:
        raise TableError(f"{TABLE}: take: {name} is {len(where)} times in kernel/compat.h")
    begin, end = where[0]
    newest = r"#if LINUX_VERSION_CODE >= .*\n((?:.*\n)*?)#endif\n"
    return (
        re.sub(newest, r"\1", text[begin:end])
        .replace("static inline ", "static ")
        .replace("compat_", "")
    )


def apply(edit: Edit, number: int, texts: dict[str, str]) -> None:
    """Change the texts."""
    what = f"{TABLE.relative_to(ROOT)}: edit {number}"
    if edit.drop:
        for function in edit.drop:
            among = fnmatch.filter(texts, edit.file or "*")
            hit = [name for name in among if find_function(texts[name], function)]
            if not hit:
                raise TableError(f"{what}: no file has the function {function} to drop")
            for name in hit:
                texts[name] = drop_function(texts[name], function)
        return
    names = fnmatch.filter(texts, edit.file)
    if edit.regex:
        count = 0
        for name in names:
            texts[name], times = re.subn(edit.regex, edit.new, texts[name], flags=re.MULTILINE)
            count += times
        if not count:
            raise TableError(f"{what}: {edit.file} has nothing like {edit.regex}")
        return
    new = "".join(taken(name) + "\n" for name in edit.take) + (edit.old if edit.take else edit.new)
    count = sum(texts[name].count(edit.old) for name in names)
    if count != 1:
        raise TableError(f"{what}: {edit.file} has this text {count} times, not once: {edit.old!r}")
    for name in names:
        texts[name] = texts[name].replace(edit.old, new)


def tidy(text: str) -> str:
    """Without the empty lines that edits leave."""
    text = re.sub(r"\n{3,}", "\n\n", text)
    return re.sub(r"{\n\n", "{\n", text)


def style() -> str:
    """For clang-format: this tree's, with the penalties of checkpatch.pl."""
    rows = (ROOT / ".clang-format").read_text().splitlines()
    kept = [row for row in rows if row and row[0] != "#" and row.split(":")[0] not in PENALTIES]
    penalties = [f"{name}: {value}" for name, value in PENALTIES.items()]
    return "\n".join([*kept, *penalties]) + "\n"


def format_files(formatter: Path, folder: Path) -> None:
    """Lines are broken anew: names have become shorter or longer."""
    if not formatter.is_file():
        raise StreamschedError(f"{formatter} is missing: make upstream installs it")
    files = sorted(folder.glob("*.[ch]"))
    config = folder / ".clang-format"
    config.write_text(style())
    try:
        subprocess.run([formatter, "-i", *files], check=True)
    finally:
        config.unlink()


def generate(table: Table, patch: int) -> dict[str, str]:
    """The files below FOLDER as they are after the patch of this number, from 0."""
    order = [row.name for row in table.patches]
    texts = {row.name: (ROOT / row.source).read_text() for row in table.files}
    for number, edit in enumerate(table.edits, 1):
        if not edit.until or order.index(edit.until) > patch:
            apply(edit, number, texts)
    return {
        row.name: tidy(texts[row.name]) for row in table.files if order.index(row.patch) <= patch
    }
