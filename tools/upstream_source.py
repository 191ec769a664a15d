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
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
INCLUDE = r'^#include "(.*)"\n'
COMMENT = r"/\*(?:[^*]|\*(?!/))*\*/"
# What stands at the left margin, and what inside of it; functions are looked for by themselves.
TAIL = r"(?:[ \t]*/\*.*\*/)?\n"
OUTSIDE = "|".join(
    (
        rf"extern [^;]*\bNAME(?:\[\w*\])?;{TAIL}",
        r"#define NAME .*\n",
        r"static const [^;={}]*\bNAME\[\] = {\n(?:.*\n)*?};\n",
        r"struct NAME {\n(?:.*\n)*?};\n",
    )
)
INSIDE = "|".join(
    (
        rf"\t(?:const )?(?:struct )?\w+ \**NAME(?:\[\w+\])?;{TAIL}",
        rf"\t[\w *]+\(\*NAME\)\([^()]*\);{TAIL}",
        rf"\t&?NAME,{TAIL}",
        r"\t\.\w+ = NAME,\n|\t\.NAME = \w+,\n|\t\[NAME\] = {\n(?:.*\n)*?\t},\n",
    )
)


@dataclass(frozen=True)
class Patch:
    """One patch of the series."""

    name: str
    subject: str
    body: str
    # Files that it brings, below a folder of this tree; a name without a dot is a .h and a .c.
    files: Mapping[str, str]


@dataclass(frozen=True)
class Series:
    """The whole of it."""

    patch: list[Patch]
    names: dict[str, str]  # what files are called there that have another name here
    left_out: list[str]

    def files(self, patch: int) -> dict[str, Path]:
        """Those that there are after the patch of this number, by their name there."""
        found = {}
        for folder, words in (
            pair for row in self.patch[: patch + 1] for pair in row.files.items()
        ):
            for word in words.split():
                for name in [word] if "." in word else [f"{word}.h", f"{word}.c"]:
                    stem, dot, suffix = name.partition(".")
                    found[self.names.get(stem, stem) + dot + suffix] = ROOT / folder / name
        return found

    @property
    def first_built(self) -> int:
        """The patch that brings the Makefile; those before are nothing by themselves."""
        return [patch.name for patch in self.patch].index("glue")


def load() -> Series:
    """The table, read."""
    rows = tomllib.loads(TABLE.read_text())
    return Series([Patch(**row) for row in rows["patch"]], rows["names"], rows["left_out"].split())


def closing(text: str, at: int) -> int:
    """Behind the bracket that closes the one at this place."""
    depth = 1
    while depth:
        at += 1
        depth += {"(": 1, ")": -1}.get(text[at], 0)
    return at + 1


def functions_of(text: str) -> list[str]:
    """The names of functions that it declares or defines."""
    return re.findall(r"^[A-Za-z_][\w \t*]*?\b(\w+)\([^;{}]*?\)\s*[;{]", text, re.MULTILINE)


def bare(text: str) -> str:
    """Without comments."""
    return re.sub(COMMENT, "", text)


def mainline(text: str) -> tuple[str, str]:
    """As #ifndef SS_MAINLINE and #ifdef HAVE_... have it there, and what that leaves out."""
    out = []

    def choose(match: re.Match[str]) -> str:
        out.append(match[2] if match[1] == "n" else match[3] or "")
        return (match[3] or "") if match[1] == "n" else match[2]

    block = r"^#if(?:(n)def SS_MAINLINE|def HAVE_\w+)\n((?:.*\n)*?)(?:#else\n((?:.*\n)*?))?#endif\n"
    return re.sub(block, choose, text, flags=re.MULTILINE), "".join(out)


def begins(text: str, at: int) -> int:
    """Where the comment above the line at this place begins, or that line."""
    if text.endswith("*/\n", 0, at):
        comment = text.rindex("/*", 0, at)
        line = text.rindex("\n", 0, comment) + 1
        return at if text[line:comment].strip() else line
    return at


def declared(text: str, name: str, at: int, kinds: str) -> int:
    """Where what the line at this place declares or defines under this name ends; else 0."""
    if match := re.compile(rf"[A-Za-z_][\w \t*]*\b{name}\(").match(text, at):
        end = closing(text, match.end() - 1)
        if text[end] == ";":
            return end + 2
        return text.index("\n}\n", end) + 3 if re.match(r"\s*{", text[end:]) else 0
    found = re.compile(kinds.replace("NAME", name)).match(text, at)
    return found.end() if found else 0


def drop_declarations(text: str, name: str, kinds: str = OUTSIDE) -> str:
    """Functions and what else is called so, each with the comment above it."""
    word, at = re.compile(rf"\b{name}\b"), 0
    while name in text and (match := word.search(text, at)):
        begin = text.rfind("\n", 0, match.start()) + 1
        line = text.rfind("\n", 0, begin - 1) + 1
        if text.startswith("extern", line) and ";" not in text[line:begin]:
            begin = line
        at, end = match.end(), declared(text, name, begin, kinds)
        if end:
            at = begins(text, begin)
            text = text[:at] + text[end:]
    return text


def drop_conditions(text: str, name: str) -> str:
    """The parts of conditions and of flags that it decides: it is NULL, 0 or false."""
    it = rf"[\w.>\[\]-]*\b{name}\b(?:\([^()]*\))?"
    false = rf"!{it} &&\s+|\s*&&\s+!{it}(?=\s&&|;|\))|{it} \|\|\s+|\s*\| {it}(?=[ ,;])"
    return re.sub(false, "", text)


def drop_statements(text: str, name: str, file: str) -> str:
    """Those with it; an if with it goes with what stands under it."""
    decisive = rf"[\w.>\[\]-]*\b{name}\b(?:\([^()]*\))?(?:\s&&(?!.*\|\|)|\)\Z)"
    while match := re.search(rf"^\t(?!\s*(?:/?\*|//)).*\b{name}\b", text, re.MULTILINE):
        begin = match.start()
        # Up to where the line before ends a statement, a comment, or begins a block.
        while not text.endswith((";\n", "{\n", "}\n", "*/\n", "\n\n", ":\n"), 0, begin):
            begin = text.rindex("\n", 0, begin - 1) + 1
        end, decides, inside = begin, False, None
        while not decides and (under := re.match(r"\s*if \(", text[end:])):
            start, end = end + under.end(), closing(text, end + under.end() - 1)
            decides = bool(re.match(decisive, text[start:end], re.DOTALL))
            inside = not decides and re.search(rf"\b{name}\b", text[start:end])
        plain = re.match(r"\s*[\w.>\[\]()&-]+(?: =\s|\()(?:(?!\b(?:if|for)\b)[^;])*;", text[end:])
        if inside or not (decides or plain):
            raise StreamschedError(f"{file}: {name} cannot be left out of: {match[0].strip()}")
        if text[end:].startswith(" {\n"):
            close = "\n" + "\t" * (len(text[begin:]) - len(text[begin:].lstrip("\t"))) + "}\n"
            end = text.index(close, end) + len(close)
        else:
            end = text.index(";", end)
            end = text.index("\n", end) + 1
        if text[end:].lstrip().startswith("else"):
            raise StreamschedError(f"{file}: {name} cannot be left out before else")
        text = text[: begins(text, begin)] + text[end:]
    return text


def undefined(texts: Iterable[str]) -> set[str]:
    """Names that the files declare and none defines."""
    code = [bare(text) for text in texts]
    declared = r"^extern [^;]*?\b(\w+)(?:\[\w*\])?;|^(?!static)[a-z][\w \t*]*?\b(\w+)\([^;{}]*?\);"
    defined = (
        r"^\w[^;={}()#]*?\b(\w+)(?:\[\w*\])?(?: __\w+)? = |^\w[\w \t*]*?\b(\w+)\([^;{}]*?\)\s*{"
    )
    return _names(declared, code) - _names(defined, code)


def _names(pattern: str, code: Iterable[str]) -> set[str]:
    return {
        match[1] or match[2] for text in code for match in re.finditer(pattern, text, re.MULTILINE)
    }


def unused(texts: Mapping[str, str]) -> Iterator[str]:
    """Functions, tables, structures and macros that nothing uses, nor what they alone use."""
    kept = dict(texts)
    kinds = (
        r"^\w[\w \t*]*?\b(\w+)\([^;{}]*?\)\s*[;{]|^static const [^;={}]*\b(\w+)\[\] = {"
        r"|^struct (\w+) {|^#define ((?:SS|STREAM|IOSCHED)_(?!\w+_H\b)\w+) "
    )
    while True:
        code = {name: bare(text) for name, text in kept.items()}
        words = Counter(word for text in code.values() for word in re.findall(r"\w+", text))
        names = {
            next(filter(None, match.groups()))
            for text in code.values()
            for match in re.finditer(kinds, text, re.MULTILINE)
        }
        dead = [
            name
            for name in sorted(names)
            if words[name] <= 2
            and not any(
                re.search(rf"\b{name}\b", drop_declarations(text, name))
                for text in code.values()
                if name in text
            )
        ]
        if not dead:
            return
        yield from dead
        for name in dead:
            kept = {file: drop_declarations(text, name) for file, text in kept.items()}


def leave_out(series: Series, patch: int) -> dict[str, str]:
    """The files after the patch of this number, without what is not sent."""
    files = series.files(max(patch, series.first_built))
    headers = {
        path.name: path for part in ("core", "kernel") for path in ROOT.glob(f"{part}/**/*.h")
    }
    ours = {path.name: name for name, path in files.items()}
    texts, out = {}, set(series.left_out)

    def include(match: re.Match[str]) -> str:
        header = Path(match[1]).name
        if header in ours:
            return f'#include "{ours[header]}"\n'
        return "" if header in headers else match[0]  # one of the kernel's

    for name, path in files.items():
        text, gone = mainline(path.read_text())
        texts[name] = re.sub(INCLUDE, include, text, flags=re.MULTILINE)
        used = {Path(match[1]).name for match in re.finditer(INCLUDE, text + gone, re.MULTILINE)}
        for header in used.intersection(headers).difference(ours):
            gone += headers[header].read_text()
        out.update(functions_of(gone))
    for word in series.left_out:
        if not any(re.search(rf"\b{word}\b", path.read_text()) for path in files.values()):
            raise StreamschedError(f"{TABLE.relative_to(ROOT)}: no file has {word} to leave out")
    out |= undefined(texts.values())
    for name, text in texts.items():
        here = sorted(word for word in out if re.search(rf"\b{word}\b", text))
        for word in here:
            text = drop_declarations(text, word, f"{OUTSIDE}|{INSIDE}")
        for word in here:
            text = drop_statements(drop_conditions(text, word), word, name)
        texts[name] = rename(series, text, ours)
    return {name: texts[name] for name in series.files(patch)}


def rename(series: Series, text: str, ours: Mapping[str, str]) -> str:
    """Under the names of the newest kernel, and of the files there."""
    text = re.sub(r"^COMPAT_WRAP_\w+\(\w+\)\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bCOMPAT_\w+\(([\w>-]+)\)", r"\1", text)
    for old, new in series.names.items():
        text = re.sub(rf"\b{old}(?=\.[ch]\b|$)", new, text, flags=re.MULTILINE)
    # A list of files in a comment, and unused parameters, of which the kernel has no warning.
    gone = rf"^ \*\t(?!{'|'.join(map(re.escape, ours))})[a-z]+\.c\t.*\n|^\t\(void\)\w+;\n"
    return re.sub(gone, "", text, flags=re.MULTILINE)


def tidy(text: str) -> str:
    """Without what is empty now."""
    text = re.sub(r"^#ifdef \w+\n#endif\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\t/\* clang-format o\w+ \*/\n", "", text, flags=re.MULTILINE)
    return re.sub(r"{\n\n", "{\n", re.sub(r"\n{3,}", "\n\n", text))


def generate(series: Series, patch: int) -> dict[str, str]:
    """The files below FOLDER as they are after the patch of this number, from 0."""
    texts = leave_out(series, patch)
    for name in unused(leave_out(series, len(series.patch) - 1)):
        texts = {file: drop_declarations(text, name) for file, text in texts.items()}
    return {file: tidy(text) for file, text in texts.items()}


def format_files(formatter: Path, folder: Path) -> None:
    """Lines are broken anew: names have become shorter, and conditions."""
    if not formatter.is_file():
        raise StreamschedError(f"{formatter} is missing: make upstream installs it")
    rows = (ROOT / ".clang-format").read_text().splitlines()
    kept = [row for row in rows if row and row[0] != "#" and row.split(":")[0] not in PENALTIES]
    style = folder / ".clang-format"
    style.write_text("\n".join([*kept, *(f"{name}: {n}" for name, n in PENALTIES.items()), ""]))
    try:
        subprocess.run([formatter, "-i", *sorted(folder.glob("*.[ch]"))], check=True)
    finally:
        style.unlink()
