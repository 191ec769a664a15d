# SPDX-License-Identifier: GPL-2.0-only
"""The files of the series for mainline Linux, made from core/ and kernel/ by leaving out.

kernel/upstream/series.toml says which files are sent. From these goes what stands under #ifndef
SS_MAINLINE and what belongs to what is not sent: includes of other files, and each declaration,
statement and part of a condition with a name that is left out. Such a name is in the list left_out,
declared in a file that is not sent, or defined nowhere. Last go functions and the like that nobody
uses then. What this cannot leave out is an error; a wrong result does not compile.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from streamsched.base.errors import StreamschedError

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "kernel" / "upstream" / "series.toml"
# Where the kernel keeps them; the files there are named without it.
FOLDER = "block/stream"
# An include, or a file in a comment's list.
MENTION = r'(?m)^(?:#include "(?P<header>.*)"| \*\t(?P<listed>[a-z]+\.c)\t.*)\n'
BLOCK = r"(?m)^#if(?:(n)def SS_MAINLINE|def HAVE_\w+)\n((?:.*\n)*?)(?:#else\n((?:.*\n)*?))?#endif\n"
COMMENT = r"/\*(?:[^*]|\*(?!/))*\*/"
# Where a declaration or statement ends, unless a bracket is open; what may stand behind it.
MARKS = re.compile(rf'{COMMENT}|"(?:[^"\\]|\\.)*"|(?P<open>[(\[{{])|(?P<close>[)\]}}])|[;,]')
TAIL = re.compile(r"[ \t]*(?:/\*.*\*/)?\n(?!\t*else\b)")
# What is declared or defined at the left margin, and macros of our own.
SAID = re.compile(
    r"^(?:#define (?P<macro>(?:SS|STREAM|IOSCHED)_\w+) |"
    r"(?!enum \w+ {)(?P<extern>extern )?[A-Za-z_][\w \t*]*?\b(?P<name>\w+)(?:\[\w*\])?"
    r"(?P<call>\([^;{}]*?\))?(?: __\w+)?(?P<end>;|\s*{| = ))",
    re.MULTILINE,
)
IF = re.compile(r"\s*if \(((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)\)")
# What goes with a name that is left out, if it is not at the left margin.
INSIDE = "|".join(
    (
        r"(?:const )?(?:struct )?\w+ \**NAME[;\[]|[\w *]+\(\*NAME\)\(",  # of a structure
        r"&?NAME,|\.NAME = |\[NAME\] = |\.\w+ = NAME,",  # of a list or table
        r"[\w.>\[\]()&-]+(?: =\s|\()(?:(?!\b(?:if|for)\b)[^;])*;",  # assignment or call
    )
)
# The newest kernel needs no compat.h and does not warn of unused parameters; nothing is left empty.
TIDY = (
    (r"^COMPAT_WRAP_\w+\(\w+\)\n|^\t\(void\)\w+;\n|^\t/\* clang-format o\w+ \*/\n", ""),
    (r"\bCOMPAT_\w+\(([\w>-]+)\)", r"\1"),
    (r"^#ifdef \w+\n#endif\n", ""),
    (r"(?<=[{\n]\n)\n+", ""),
)


class Patch(NamedTuple):
    """One patch of the series."""

    message: str
    files: dict[str, Path]  # all that there are after it, by their name there


class Series(NamedTuple):
    """The whole of it."""

    patch: list[Patch]
    first_built: int  # the patch that brings the Makefile; those before are nothing by themselves
    left_out: list[str]


def load() -> Series:
    """The table, read."""
    table, patches, files = tomllib.loads(TABLE.read_text()), [], dict[str, Path]()
    for row in table["patch"]:
        for folder, words in row.get("files", {}).items():
            for word in words.split():
                for name in [word] if "." in word else [f"{word}.h", f"{word}.c"]:
                    files[renamed(name)] = ROOT / folder / name
        patches.append(Patch(row["message"], dict(files)))
    first = next(number for number, patch in enumerate(patches) if "main.c" in patch.files)
    return Series(patches, first, table["left_out"].split())


def renamed(text: str) -> str:
    """With the names that files have in FOLDER: main.c, and others without their prefix."""
    text = re.sub(r"\bstream-iosched(?=\.[ch]\b|$)", "main", text, flags=re.MULTILINE)
    return re.sub(r"\b(?:core|stream)-(?=\w+(?:\.[ch]\b|$))", "", text, flags=re.MULTILINE)


def said(texts: Iterable[str]) -> list[re.Match[str]]:
    """What they declare and define."""
    return list(SAID.finditer(re.sub(COMMENT, "", "\n".join(texts))))


def around(text: str, at: int, name: str) -> tuple[int, int]:
    """From where to where the declaration or statement at this place is; empty if not in lines."""
    begin = text.rfind("\n", 0, at) + 1
    row = re.compile(rf"#|extern |\t(?:&?{name},|[.\[])").match(text, begin)
    # Up to where the line before ends a statement, a comment, or begins a block.
    above = text[:begin].splitlines(keepends=True)
    while not row and above and not re.match(r"#|\s*$|.*(?:[;{}:]|\*/)$", above[-1]):
        begin -= len(above.pop())
    if text[begin] == "#":
        return begin, text.index("\n", begin) + 1
    depth = 0
    for mark in MARKS.finditer(text, begin):
        depth += bool(mark["open"]) - bool(mark["close"])
        if not depth and (mark[0] in ";," or (mark[0] == "}" and text[mark.end()] not in ";,")):
            tail = TAIL.match(text, mark.end())
            return begin, tail.end() if tail else begin
    return begin, begin


def drop(text: str, name: str, goes: Callable[[str], bool]) -> str:
    """Without what has this name and goes, each with the comment above it."""
    word, at = re.compile(rf"{COMMENT}|\b{name}\b"), 0
    while match := word.search(text, at):
        at = match.end()
        if match[0] != name:
            continue
        begin, end = around(text, match.start(), name)
        if goes(text[begin:end]):
            comment = re.search(rf"^[ \t]*{COMMENT}\n\Z", text[:begin], re.MULTILINE)
            at = comment.start() if comment else begin
            text = text[:at] + text[end:]
    return text


def drop_declarations(text: str, name: str) -> str:
    """Functions and what else is called so at the left margin."""
    declares = re.compile(rf"(?:#define )?[\w\s*]*\b{name}\b(?! \*)")
    return drop(text, name, lambda code: bool(declares.match(code)))


def drop_statements(text: str, name: str, file: str) -> str:
    """Statements and members with it, and what it decides, being NULL, 0 or false, of an if."""
    it = rf"[\w.>\[\]-]*\b{name}\b(?:\([^()]*\))?"
    false = rf"!{it} &&\s+|\s*&&\s+!{it}(?=\s&&|;|\))|{it} \|\|\s+|\s*\| {it}(?=[ ,;])"
    decisive = re.compile(rf"{it}(?:\s&&(?!.*\|\|)|\Z)", re.DOTALL)
    inside = re.compile(rf"\s*(?!return\b)(?:{INSIDE.replace('NAME', name)})")

    def goes(code: str) -> bool:
        if code[:1] not in ("", "\t"):
            return False
        at, under = 0, IF.match(code)
        while under and not re.search(rf"\b{name}\b", under[1]):
            at, under = under.end(), IF.match(code, under.end())
        if not (decisive.match(under[1]) if under else inside.match(code, at)):
            raise StreamschedError(f"{file}: {name} cannot be left out of: {code or 'a line'}")
        return True

    return drop(re.sub(false, "", text), name, goes)


def unused(texts: Mapping[str, str]) -> Iterator[str]:
    """Functions, tables, structures and macros that nothing uses, nor what they alone use."""
    kept = dict(texts)
    while True:
        names = Counter(match["macro"] or match["name"] for match in said(kept.values()))
        words = Counter(re.findall(r"\w+", re.sub(COMMENT, "", "\n".join(kept.values()))))
        dead = [name for name in sorted(names) if names[name] == words[name]]
        yield from dead
        before = kept
        for name in dead:
            kept = {file: drop_declarations(text, name) for file, text in kept.items()}
        if kept == before:
            return


def leave_out(series: Series, patch: int) -> dict[str, str]:
    """The files after the patch of this number, without what is not sent."""
    files = series.patch[max(patch, series.first_built)].files
    sent = {path.name for path in files.values()}
    paths = [*ROOT.glob("core/**/*.h"), *ROOT.glob("kernel/**/*.h")]
    not_sent = {path.name: path.read_text() for path in paths if path.name not in sent}
    texts, gone = {}, list(not_sent.values())

    def mention(match: re.Match[str]) -> str:
        file = Path(match["header"] or match["listed"]).name
        if match["listed"] or file in not_sent:
            return match[0] if file in sent else ""
        return re.sub('".*/', '"', match[0]) if file in sent else match[0]  # or the kernel's own

    for name, path in files.items():
        text = path.read_text()
        gone += [yes if kind else no for kind, yes, no in re.findall(BLOCK, text)]
        text = re.sub(BLOCK, lambda match: (match[3] or "") if match[1] else match[2], text)
        texts[name] = re.sub(MENTION, mention, text)
    for word in series.left_out:
        if not any(re.search(rf"\b{word}\b", path.read_text()) for path in files.values()):
            raise StreamschedError(f"{TABLE.relative_to(ROOT)}: no file has {word} to leave out")
    ours = said(texts.values())
    names = {match["name"] for match in ours if match["call"] or match["extern"]}
    names -= {match["name"] for match in ours if match["end"] != ";"}
    names |= {match["name"] for match in said(gone) if match["call"]} | set(series.left_out)
    for name, text in texts.items():
        here = sorted(names.intersection(re.findall(r"\w+", text)))
        for word in here:
            text = drop_declarations(text, word)
        for word in here:
            text = drop_statements(text, word, name)
        texts[name] = renamed(text)
    return {name: texts[name] for name in series.patch[patch].files}


def tidy(text: str) -> str:
    """Without what the kernel does not need, and what is empty now."""
    for pattern, new in TIDY:
        text = re.sub(pattern, new, text, flags=re.MULTILINE)
    return text


def generate(series: Series, patch: int) -> dict[str, str]:
    """The files below FOLDER as they are after the patch of this number, from 0."""
    texts = leave_out(series, patch)
    for name in unused(leave_out(series, len(series.patch) - 1)):
        texts = {file: drop_declarations(text, name) for file, text in texts.items()}
    return {file: tidy(text) for file, text in texts.items()}
