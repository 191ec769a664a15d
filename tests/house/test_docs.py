# SPDX-License-Identifier: GPL-2.0-only
"""What the documents say is so: examples, links, result keys, the man pages.

An example is a ```console block (in the man page: what stands between .EX and
.EE); each line that begins with "$ " is run by a shell at the top of the source
tree, and what follows is what it prints. Without anything that follows, only the
exit code counts. UPDATE_DOCS=1 pytest tests/house/test_docs.py writes the output anew
(and that of a new example, when some line stands there already).
"""

from __future__ import annotations

import enum
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from profile_data import small_profile
from said import BIN, COMMAND, ROOT, ran

from streamsched.cli.main import app
from streamsched.sim import requestlog
from streamsched.sim.policies import all_policies
from streamsched.sim.profile import as_text

MAN = ROOT / "man" / "streamsched.1"
MANS = sorted(MAN.parent.glob("*.1"))
RESULTS = ROOT / "docs" / "sim" / "RESULTS.md"
PAPERS = sorted(
    path
    for path in [*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *ROOT.glob("docs/*/*.md")]
    if not path.relative_to(ROOT).parts[0].startswith((".", "archive", "build"))
    and path.parent.name != "results"
)
SECONDS = 120

pytestmark = pytest.mark.e2e


# ---- examples ----


@dataclass(frozen=True)
class Example:
    """A command of a document, and the lines there that say what it prints."""

    path: Path
    line: int  # of the command, from 0
    command: str
    output: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line + 1}"


def fences(path: Path) -> tuple[str, str]:
    """What an example begins and ends with."""
    return (".EX", ".EE") if path.suffix == ".1" else ("```console", "```")


def unroff(text: str) -> str:
    """A line of a man page's example as it is shown."""
    return text.removeprefix("\\&").replace("\\-", "-").replace("\\(ti", "~").replace("\\e", "\\")


def roff(text: str) -> str:
    """The opposite of unroff()."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti")
    return "\\&" + text if text.startswith((".", "'")) else text


def examples(path: Path) -> Iterator[Example]:
    begin, end = fences(path)
    shown = unroff if path.suffix == ".1" else str
    command, at, output = "", -1, list[str]()
    inside = False
    for number, raw in enumerate(path.read_text().splitlines()):
        if inside and (raw == end or shown(raw).startswith("$ ")) and command:
            yield Example(path, at, command, tuple(output))
            command, output = "", []
        if raw in (begin, end):
            inside = raw == begin
        elif inside and shown(raw).startswith("$ "):
            command, at = shown(raw)[2:], number
        elif inside:
            assert command, f"{path.name}:{number + 1}: output without a command"
            output.append(shown(raw))


EXAMPLES = [example for path in [*PAPERS, *MANS] for example in examples(path)]


def lines_of(text: str) -> list[str]:
    """Without blanks at the ends of lines, or empty lines at the ends of the text."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n").splitlines()


def printed(command: str) -> list[str]:
    environment = {key: os.environ[key] for key in ("HOME", "LANG", "TMPDIR") if key in os.environ}
    environment["PATH"] = f"{BIN}:{os.environ['PATH']}"
    done = ran("bash", "-o", "pipefail", "-c", command, cwd=ROOT, env=environment, timeout=SECONDS)
    assert done.returncode == 0, f"$ {command}\nexit code {done.returncode}\n{done.stderr}"
    return lines_of(done.stdout + done.stderr.strip())


def rewrite(example: Example, output: list[str]) -> None:
    """Put @output behind the command, which may have moved since the file was read."""
    shown = roff if example.path.suffix == ".1" else str
    lines = example.path.read_text().splitlines()
    command = shown("$ " + example.command)
    at = min(
        (number for number, line in enumerate(lines) if line == command),
        key=lambda number: abs(number - example.line),
    )
    begin, end = fences(example.path)
    stop = at + 1
    while lines[stop] != end and not lines[stop].startswith("$ "):
        stop += 1
    assert begin in lines[:at]
    lines[at + 1 : stop] = [shown(line) for line in output]
    example.path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_prints_what_is_shown(example: Example) -> None:
    output = printed(example.command)
    shown = lines_of("\n".join(example.output))
    if os.environ.get("UPDATE_DOCS") and shown and shown != output:
        rewrite(example, output)
    elif shown:
        assert output == shown


def test_the_readme_shows_results() -> None:
    shown = [e for e in EXAMPLES if e.path.name == "README.md" and len(e.output) > 6]
    assert any("run direct-readers" in example.command for example in shown)


# ---- rows of measured tables ----

# Of docs/results/TABLE.md, the part that is marked so, the rows whose first cell is this.
ROWS = re.compile(r"(<!-- rows: (\S+) (\S+) (\S+) -->\n)(.*?)(<!-- end: rows -->)", re.DOTALL)


def rows_in_table(table: str, part: str, first: str) -> str:
    """The rows, and the table's head, without the first column."""
    text = (ROOT / "docs" / "results" / f"{table}.md").read_text()
    measured = text.split(f"<!-- measured: {part} -->", 1)[1].split("<!-- end:", 1)[0]
    head, line, *rows = (row.split("|", 2) for row in measured.strip().splitlines())
    kept = [head, line, *(row for row in rows if row[1].strip() == first)]
    assert kept[2:], f"docs/results/{table}.md has no {first} in {part}"
    return "\n" + "".join(f"|{row[2]}\n" for row in kept) + "\n"


@pytest.mark.parametrize(
    "path", [path for path in PAPERS if ROWS.search(path.read_text())], ids=lambda path: path.name
)
def test_rows_are_those_of_the_table(path: Path) -> None:
    text = path.read_text()
    now = ROWS.sub(lambda found: found[1] + rows_in_table(*found.group(2, 3, 4)) + found[6], text)
    if os.environ.get("UPDATE_DOCS"):
        path.write_text(now)
    assert path.read_text() == now


# ---- links ----


def without_code(text: str) -> str:
    """Markdown without its code, in which nothing is a link."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as forges make them."""
    headings = re.findall(
        r"^#+ +(.*)$",
        re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL),
        re.MULTILINE,
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text())):
        if re.match(r"https?://", target):
            continue
        name, _, anchor = target.partition("#")
        to = (path.parent / name).resolve() if name else path
        assert to.is_relative_to(ROOT) and to.exists(), f"{path.name}: {target}"
        if anchor:
            assert anchor in anchors(to), f"{path.name}: {target}"


@pytest.mark.parametrize(
    "path", [*PAPERS, *MANS], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_files_that_are_named_exist(path: Path) -> None:
    text = path.read_text().replace("\\-", "-")
    folders = "core|disk|sim|streamsched|jobs|disks|traces|tests|docs|tools|bench|man"
    for name in re.findall(rf"`((?:{folders})/[\w./-]+\.\w+)`", text):
        assert (ROOT / name).exists() or "NAME" in name or "lifo" in name, f"{path.name}: {name}"


def test_nothing_is_said_of_this_machine() -> None:
    mine = {"README.md", "ARCHITECTURE.md", "RESULTS.md", "REPRODUCTION.md"} | {
        page.name for page in MANS
    }
    for path in [*PAPERS, *MANS]:
        if path.name in mine and path.parent != ROOT / "traces":
            found = re.findall(r"/(?:home|root|work|tmp)/\S*", path.read_text())
            assert not found, f"{path.name}: {found}"


# ---- the architecture's example of a policy ----


def test_the_example_policy_compiles(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "internals" / "ARCHITECTURE.md").read_text()
    (code,) = re.findall(r"^```c\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    source = tmp_path / "lifo.c"
    source.write_text(code)
    compiler = os.environ.get("CC", "cc")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run(
        [compiler, *flags, f"-I{ROOT / 'compat'}", f"-I{ROOT / 'core' / 'policy'}", str(source)],
        check=True,
        timeout=SECONDS,
    )


# ---- results ----


def keys_of(value: Any, prefix: str = "") -> Iterator[str]:
    """Every key of a JSON document, as docs/sim/RESULTS.md writes it: runs[].wait_ms.mean."""
    if isinstance(value, list):
        for entry in value:
            yield from keys_of(entry, prefix.removesuffix(".") + "[].")
    elif isinstance(value, dict):
        for key, inner in value.items():
            # Process numbers and names of tunables are data.
            name = re.sub(r"^\d+$", "N", key)
            if prefix.endswith(".tunables."):
                name = "NAME"
            if not isinstance(inner, dict) and not (
                isinstance(inner, list) and inner and isinstance(inner[0], dict)
            ):
                yield prefix + name
            yield from keys_of(inner, f"{prefix}{name}.")


def rows_of(heading: str) -> list[str]:
    """What the first column of the tables below a heading of docs/sim/RESULTS.md names."""
    text = RESULTS.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a small comparison prints in each output format."""
    job = tmp_path_factory.mktemp("docs") / "small.fio"
    job.write_text("[reader]\nrw=rw\nsize=1m\nnumjobs=2\noffset_increment=1g\n")
    streamsched = str(COMMAND)
    wide = {**os.environ, "COLUMNS": "120"}  # narrower tables leave columns out
    kinds = ("table", "json", "csv", "fio-json")
    command = [streamsched, "run", str(job), "--policy", "noop,stream:deadline"]
    command += ["--array", "raid0:2:64k", "--output"]
    profile = job.with_suffix(".json")
    profile.write_text(as_text(small_profile()))
    auto = [streamsched, "run", str(job), "--policy", "auto", "--profile", str(profile)]
    auto += ["--disk", "wd5000aaks", "--queue-depth", "1"]
    asked = {kind: [*command, kind] for kind in kinds} | {"auto": [*auto, "--output", "json"]}
    return {
        kind: ran(*words, check=True, timeout=SECONDS, env=wide).stdout
        for kind, words in asked.items()
    }


MEAN_AND_PERCENTILES = ["mean", "p50", "p99", "p999", "max"]


def each(row: str, names: list[str]) -> list[str]:
    """The keys that a row describes: one, or with a `*` in the end those of these names."""
    stem, star, _ = row.partition(".*")
    return [f"{stem}.{name}" for name in names] if star else [row]


def test_every_json_key_is_described_and_no_other(outputs: dict[str, str]) -> None:
    rows = rows_of("JSON")
    reasons = [row.rpartition(".")[2] for row in rows if row.startswith("runs[].reasons.")]
    described = [
        key
        for row in rows
        for key in each(row, reasons if "reason_waits" in row else MEAN_AND_PERCENTILES)
    ]
    assert len(described) == len(set(described))
    there = {key for kind in ("json", "auto") for key in keys_of(json.loads(outputs[kind]))}
    there |= {"setup.path", "runtime_s"}  # only of the real kernel, and where it is limited
    assert set(described) == there


def test_every_column_of_requests_is_described_and_no_other() -> None:
    assert rows_of("Requests") == list(requestlog.COLUMNS)


def test_every_csv_column_is_described_and_no_other(outputs: dict[str, str]) -> None:
    header = outputs["csv"].splitlines()[0].split(",")
    described: list[str] = []
    for row in rows_of("CSV"):
        stem, star, _ = row.partition("_*")
        found = [column for column in header if column.startswith(stem + "_")] if star else [row]
        assert found, row
        described += found
    assert sorted(described) == sorted(header)


def test_every_fio_key_is_described_and_no_other(outputs: dict[str, str]) -> None:
    described = {
        key
        for row in rows_of("fio-json")
        for key in each(row, ["min", "max", "mean", "stddev", "N"])
    }
    there = set()
    for key in keys_of(json.loads(outputs["fio-json"])):
        key = re.sub(r"^(jobs\[\])\.(read|write)\.", r"\1.read.", key)
        there.add(re.sub(r"percentile\..*", "percentile.P", key))
    assert described == there


def test_every_table_column_is_described(outputs: dict[str, str]) -> None:
    described = set(rows_of("Tables"))
    text = outputs["table"]
    for column in described:
        for word in column.split():
            assert word in text, column
    assert len(described) >= 14


def test_the_version_of_the_document_is_the_programs(outputs: dict[str, str]) -> None:
    version = json.loads(outputs["json"])["version"]
    assert f"version {version}" in RESULTS.read_text()


# ---- the man pages ----


def man_text(page: Path) -> str:
    """The page's source with dashes as they are shown, fonts left out."""
    text = page.read_text().replace("\\-", "-")
    return re.sub(r"\\f[BIRP]", "", text)


def man_section(page: Path, name: str) -> str:
    text = man_text(page).partition(f"\n.SH {name}\n")[2]
    return re.split(r"^\.SH ", text, flags=re.MULTILINE)[0]


def program() -> Any:
    return typer.main.get_command(app)


def commands() -> dict[str, Any]:
    """The program's commands, "" for the program itself."""

    def inner(command: Any, name: str) -> dict[str, Any]:
        groups = getattr(command, "commands", {}).items()
        found: dict[str, Any] = {}
        for word, one in groups:
            found |= inner(one, f"{name} {word}".strip())
        return found or {name: command}

    return {"": program()} | inner(program(), "")


def page_of(name: str) -> Path:
    """Of a command: that of its panel in --help."""
    if not name:
        return MAN
    panel: str = program().commands[name.partition(" ")[0]].rich_help_panel
    return MAN.with_name(f"streamsched-{panel.split()[-1].lower()}.1")


def commands_on(page: Path) -> dict[str, Any]:
    return {name: command for name, command in commands().items() if page_of(name) == page}


def options_of(command: Any) -> set[str]:
    found = {name for param in command.params for name in param.opts if name.startswith("--")}
    return found | {"--help"}


def synopses(page: Path) -> dict[str, set[str]]:
    """The options of each command in the page's synopsis."""
    found: dict[str, set[str]] = {}
    synopsis = man_section(page, "SYNOPSIS")
    for part in re.split(r"^\.(?:br|P|SY.*|YS)$", synopsis, flags=re.MULTILINE):
        words = re.sub(r"^\.[A-Z]+ ", "", part, flags=re.MULTILINE).split()
        if words:
            assert words[0] == "streamsched", part
            names = (" ".join(words[1:end]) for end in (4, 3, 2))
            name = next((name for name in names if name in commands()), "")
            found[name] = set(re.findall(r"--[a-z][a-z-]*", part))
    return found


each_page = pytest.mark.parametrize("page", MANS, ids=lambda page: page.stem)


def test_each_group_of_commands_has_a_page() -> None:
    assert {page_of(name) for name in commands()} == {*MANS}


def test_the_first_page_names_each_command_beside_its_page() -> None:
    section = man_section(MAN, "COMMANDS")
    for name in commands():
        if name:
            part = section.partition(f"\n.BR {page_of(name).stem} (1)\n")[2].partition("\n.TP\n")[0]
            assert re.search(rf"^\.BR? {name.partition(' ')[0]}(?: ,)?$", part, re.MULTILINE), name


@each_page
def test_the_synopsis_has_every_command_and_its_options(page: Path) -> None:
    there = {name: options_of(one) - {"--help"} for name, one in commands_on(page).items()}
    said = {name: options - {"--help"} for name, options in synopses(page).items()}
    assert said == there


def tags(page: Path) -> dict[str, str]:
    """What the options section says of each option, by its first long name."""
    parts = re.split(r"^\.TP\n", man_section(page, "OPTIONS"), flags=re.MULTILINE)[1:]
    found = {}
    for part in parts:
        tag, _, body = part.partition("\n")
        for name in re.findall(r"--[a-z][a-z-]*", tag):
            assert name not in found, name
            found[name] = body
    return found


def described(name: str) -> dict[str, str]:
    """What a command's page says of its options, or the page that it leads to."""
    found = tags(page_of(name))
    for option, body in found.items():
        other = re.search(r"\bas in\n\.BR (streamsched-\w+) \(1\)", body)
        if other:
            found[option] = tags(MAN.with_name(f"{other[1]}.1"))[option]
    return found


@each_page
def test_every_option_is_described_and_no_other(page: Path) -> None:
    there = set().union(*(options_of(one) for one in commands_on(page).values()))
    # That is the program's, and each command's.
    assert set(tags(page)) == (there if page == MAN else there - {"--help"})


@each_page
def test_no_other_option_is_named(page: Path) -> None:
    known = set().union(*(options_of(one) for one in commands().values()))
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", man_text(page))) <= known


@pytest.mark.parametrize(
    "path",
    [path for path in PAPERS if path.name != "CHANGELOG.md"],  # which has former names
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_commands_that_are_named_exist(path: Path) -> None:
    """With their options."""
    text = path.read_text().replace("\\\n", " ")
    named = re.findall(
        r"^(?:\$ |sudo )*streamsched (\w.*)|`streamsched (\w[^`]*)`", text, re.MULTILINE
    )
    for words in (
        re.split(r" (?:[|<>&#]|-- )|[;()]", line or inline)[0].split() for line, inline in named
    ):
        name = next((one for one in (" ".join(words[:2]), words[0]) if one in commands()), "")
        assert name or any(one.startswith(f"{words[0]} ") for one in commands()), words
        if name:
            said = {word.partition("=")[0] for word in words if re.match("--[a-z]", word)}
            assert said <= options_of(commands()[name]), words


def test_choices_and_defaults_are_described() -> None:
    for name, command in commands().items():
        said = described(name)
        for param in command.params:
            long = [name for name in param.opts if name.startswith("--")]
            if not long or long[0] in ("--version", "--help"):
                continue
            body = said[long[0]]
            default = param.default
            if isinstance(default, enum.Enum):
                for choice in type(default):
                    assert choice.value in body, f"{long[0]}: {choice.value}"
                assert re.search(rf"{default.value}\b[^.]*\(?the default", body), long[0]
            elif isinstance(default, str | int) and not isinstance(default, bool):
                assert re.search(rf"Default:\s+(?:\.BR? )?{default}", body), f"{long[0]}: {default}"


@pytest.mark.parametrize("page", [page for page in MANS if page != MAN], ids=lambda page: page.stem)
def test_every_command_has_a_section(page: Path) -> None:
    headings = re.findall(
        r"^\.SS streamsched ([\w-]+(?: \w+)*)", man_section(page, "COMMANDS"), re.MULTILINE
    )
    assert sorted(headings) == sorted(commands_on(page))


def test_every_policy_is_named() -> None:
    text = man_section(MAN, "POLICIES")
    for name in all_policies():
        assert re.search(rf"^\.B[IR]? {name}\b", text, re.MULTILINE), name


@each_page
def test_a_man_page_is_well_formed(page: Path) -> None:
    if shutil.which("mandoc"):
        command = ["mandoc", "-T", "lint", "-W", "warning", str(page)]
    elif shutil.which("groff"):
        command = ["groff", "-man", "-Tutf8", "-ww", "-z", str(page)]
    else:
        pytest.skip("neither mandoc nor groff is here")
    done = ran(*command, timeout=SECONDS)
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


@each_page
def test_a_man_page_is_installed(page: Path) -> None:
    path = Path(sys.prefix) / "share" / "man" / "man1" / page.name
    assert path.read_bytes() == page.read_bytes()
