# SPDX-License-Identifier: GPL-2.0-only
"""Check the rules of CONTRIBUTING.md that no ready-made tool checks.

Without arguments every file of the project is looked at; each finding is one
line, FILE:LINE: what is wrong. Exit code 1 when there are any.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

COLUMNS = 80
TAB = 8
SCREEN_LINES = 80

# Whose first or second line is a licence line. The rest is prose, or data
# whose format has no comments.
LICENSED_SUFFIXES = {".c", ".h", ".py", ".pyi", ".sh", ".toml", ".build", ".fio"}
LICENSED_NAMES = {"Makefile", ".gitignore", ".clang-format", "run"}
SPDX = "SPDX-License-Identifier: GPL-2.0-only"

# Folders shared by all hosts: they must compile inside the kernel.
SHARED = ("core", "disk")
# Quoted includes may only reach into these rooms: none of core/'s knows another one.
ARROWS = {
    "compat": {"compat"},
    "core": {"core"},
    "core/array": {"core/array", "core"},
    "core/policy": {"core/policy", "core"},
    "core/stream": {"core/stream", "core"},
    "disk": {"disk"},
    "sim": {"sim", "core", "core/array", "disk"},
    "nbdkit": {"nbdkit", "core", "core/array", "disk"},
    "kernel": {"kernel", "core", "core/array", "disk"},
}
# The rooms of the Python package, lowest first: a room knows itself and those before it.
ROOMS = (
    "base",
    "work",
    "sim",
    "bound",
    "hosts",
    "calibrate",
    "watch",
    "auto",
    "report",
    "api",
    "study",
    "papers",
    "cli",
)
IMPORTS = re.compile(r"^\s*(?:from|import) streamsched\.(\w+)", re.MULTILINE)
FORBIDDEN_SHARED = (
    (re.compile(r"\b(float|double)\b"), "floating point; use integers with a unit in the name"),
    (
        re.compile(r"\b(k|kv|v)?(m|c|z|re)alloc(_array)?\s*\(|\b(k|kv|v)?free\s*\("),
        "allocation; all memory comes from the host, at init",
    ),
    (re.compile(r"#\s*if.*\b__KERNEL__\b"), "__KERNEL__; the file is the same in every host"),
    (re.compile(r"#\s*include\s*<(?!linux/)"), "only <linux/...> headers may be included here"),
)
# In the opening comment of the room's main file: its files, one a line, each above those it knows.
LAYERS = {"core/stream": "core/stream/stream.c"}
LAYER = re.compile(r"^ \*\t(\w+)\.c\t", re.MULTILINE)
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
# A comment, or a literal that may hold what looks like one.
TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
# A figure of a measurement, in a document: digits with a unit, or a factor.
FIGURE = re.compile(
    r"(?<![\w.,])(?:x\d+\.\d+|\d[\d.,]* ?"
    r"(?:(?:[KMG]i?B|requests|reads|writes)/s|IOPS|instructions|[num]?s|µs|times|%))(?!\w)"
)
# What is not a document's own words: code, and what commands write or tests compare with a table.
NOT_PROSE = re.compile(
    r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)"
    r"|<!-- (?:rows|options|measured|programs)\b.*?<!-- (?:end|options: end)\b|<!--.*?-->",
    re.MULTILINE | re.DOTALL,
)
# A document's last line may list figures that nobody measured: defaults, sizes, those of papers.
CONSTANTS = re.compile(r"^<!-- constants: (.*) -->$", re.MULTILINE)

Finding = tuple[int, str]


def project_files() -> list[Path]:
    """Every file that is, or could be, committed."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            check=True,
        )
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:  # a release archive, or a machine without git
        paths = [path for path in ROOT.rglob("*") if not made(path.relative_to(ROOT))]
    return sorted(p for p in paths if p.is_file())


def made(path: Path) -> bool:
    """Is it of what make and the tools make? What .gitignore names, without git."""
    hidden = [part for part in path.parts[:-1] if part.startswith(".") and part != ".ci"]
    return bool(hidden) or not {"build", "__pycache__"}.isdisjoint(path.parts)


def blank(text: str, keep_strings: bool) -> str:
    """The text with comments, and strings too unless kept, turned into spaces."""

    def space(match: re.Match[str]) -> str:
        token = match.group()
        if keep_strings and token[0] in "\"'":
            return token
        return re.sub(r"[^\n]", " ", token)

    return TOKEN.sub(space, text)


def check_license(lines: list[str]) -> Iterator[Finding]:
    """The licence line stands first, or second behind a #! line."""
    first = 1 if lines and lines[0].startswith("#!") else 0
    if len(lines) <= first or SPDX not in lines[first]:
        yield first + 1, f"expected {SPDX!r} in this line"


def check_whitespace(lines: list[str]) -> Iterator[Finding]:
    """No blanks at the ends of lines or of the file."""
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "blank at the end of the line"
    if lines and not lines[-1]:
        yield len(lines), "empty line at the end of the file"


def check_layout(path: Path, text: str) -> Iterator[Finding]:
    """Tabs, columns and the kind of comments, as in the kernel."""
    lines = text.splitlines()
    expected = f"// {SPDX}" if path.suffix == ".c" else f"/* {SPDX} */"
    if lines and lines[0] != expected:
        yield 1, f"the first line must be exactly {expected!r}"
    for number, line in enumerate(lines, 1):
        if re.match(r" {8}|\t+ {8}", line):
            yield number, "indented with spaces; use tabs"
        # As in the kernel, a string is never broken for the columns' sake.
        if len(line.expandtabs(TAB)) > COLUMNS and not re.search(r'"[^"]*"\s*[,;)} ]*$', line):
            yield number, f"longer than {COLUMNS} columns"
    for token in TOKEN.finditer(text):
        number = text.count("\n", 0, token.start()) + 1
        if token.group().startswith("//") and not (number == 1 and path.suffix == ".c"):
            yield number, "comment with //; use /* */"


def check_functions(code: str) -> Iterator[Finding]:
    """A function fits a screen. Its braces stand in the first column."""
    start = None
    for number, line in enumerate(code.splitlines(), 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start:
            if number - start - 1 > SCREEN_LINES:
                yield start, f"function of {number - start - 1} lines; {SCREEN_LINES} at most"
            start = None


def room_of(path: Path) -> str:
    """The room of a file, or the folder that it is in."""
    if not path.is_relative_to(ROOT):
        return "outside"
    parts = path.relative_to(ROOT).parts
    inner = "/".join(parts[:2])
    return inner if inner in ARROWS else parts[0]


def check_rules(path: Path, text: str) -> Iterator[Finding]:
    """What a folder may include and use."""
    folder = path.relative_to(ROOT).parts[0]
    code = blank(text, keep_strings=False)
    yield from check_functions(code)
    if folder in SHARED:
        for number, line in enumerate(code.splitlines(), 1):
            for pattern, message in FORBIDDEN_SHARED:
                if pattern.search(line):
                    yield number, f"{folder}/: {message}"
    room = room_of(path)
    allowed = ARROWS.get(room)
    if allowed is None:
        return
    for number, line in enumerate(blank(text, keep_strings=True).splitlines(), 1):
        include = INCLUDE.match(line)
        if include:
            target = (path.parent / include.group(1)).resolve()
            inside = room_of(target)
            if inside not in allowed:
                yield number, f"{room}/ may not include from {inside}/"


def check_layers(path: Path, text: str) -> Iterator[Finding]:
    """Within a room of layers a file includes only those below it."""
    room = room_of(path)
    if room not in LAYERS:
        return
    order = LAYER.findall((ROOT / LAYERS[room]).read_text())
    if path.stem not in order:
        yield 1, f"{path.name} is missing in the list of files in {LAYERS[room]}"
        return
    for number, line in enumerate(blank(text, keep_strings=True).splitlines(), 1):
        include = INCLUDE.match(line)
        target = (path.parent / include.group(1)).resolve() if include else path
        if target.parent != path.parent or target.stem not in order:
            continue
        if order.index(target.stem) < order.index(path.stem):
            yield number, f"{path.name} may not include {target.name}, which is above it"


def check_imports(path: Path, text: str) -> Iterator[Finding]:
    """A room of the Python package imports nothing of those above it, also not in functions."""
    parts = path.relative_to(ROOT).parts
    if parts[0] != "streamsched":
        return
    room = parts[1].removesuffix(".py")
    if room not in ROOMS:
        if len(parts) > 2:
            yield 1, f"streamsched/{room} is no room: {', '.join(ROOMS)}"
        return
    above = ROOMS[ROOMS.index(room) + 1 :]
    for number, line in enumerate(text.splitlines(), 1):
        found = IMPORTS.match(line)
        if found and found.group(1) in above:
            yield number, f"streamsched/{room}/ may not import from {found.group(1)}/"


def check_figures(text: str) -> Iterator[Finding]:
    """Measured figures are in docs/results/ alone, and in output that a test compares."""
    listed = {one for line in CONSTANTS.findall(text) for one in line.split(", ")}
    prose = NOT_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    used = set()
    for number, line in enumerate(prose.splitlines(), 1):
        for found in FIGURE.finditer(line):
            used.add(found.group())
            if found.group() not in listed:
                yield number, f"{found.group()}: a figure; leave it to the table that has it"
    for one in sorted(listed - used):
        yield text.count("\n"), f"{one}: listed as a constant, and not in the text"


def is_document(path: Path) -> bool:
    """For users, and not written by a command."""
    name = path.as_posix()
    if name.startswith("docs/results/"):
        return False
    return name == "README.md" or path.match("docs/*.md") or path.match("docs/*/*.md")


def check(path: Path) -> Iterator[Finding]:
    """Everything there is to say about one file."""
    if is_document(path.relative_to(ROOT)):
        yield from check_figures(path.read_text(encoding="utf-8"))
    licensed = path.suffix in LICENSED_SUFFIXES or path.name in LICENSED_NAMES
    if not licensed:
        return
    text = path.read_text(encoding="utf-8")
    yield from check_license(text.splitlines())
    yield from check_whitespace(text.splitlines())
    if path.suffix in {".c", ".h"}:
        yield from check_layout(path, text)
        yield from check_rules(path, text)
        yield from check_layers(path, text)
    if path.suffix == ".py":
        yield from check_imports(path, text)


def main() -> int:
    """Check the files named, or all."""
    paths = [Path(argument).resolve() for argument in sys.argv[1:]] or project_files()
    findings = 0
    for path in paths:
        for number, message in sorted(check(path)):
            print(f"{path.relative_to(ROOT)}:{number}: {message}")
            findings += 1
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
