# SPDX-License-Identifier: GPL-2.0-only
"""The lines of a fio job file: sections, comments, includes, variables. No option is known here."""

from __future__ import annotations

import codecs
import dataclasses
import itertools
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from streamsched.base.errors import UsageError
from streamsched.base.files import is_file, mode_of, open_input

MAX_INCLUDES = 16  # nested ones; more is a circle
# In all: files that include others several times each would come to 2^16 and more.
MOST_INCLUDED = 1000
MAX_FILE_BYTES = 16 * 1024 * 1024

VARIABLE = re.compile(r"\$\{([^}]*)\}")
PAGE_BYTES = "4096"  # what $pagesize stands for, on every machine
# What these mean depends on the machine, which a simulation must not.
MACHINE_WORDS = ("$mb_memory", "$ncpus")
# They stand for the disk under test, or have words of their own.
VERBATIM_KEYS = ("filename", "filename_format")


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """One line `key=value` or `key`."""

    source: str
    line: int
    key: str
    value: str | None

    @property
    def text(self) -> str:
        """The line as it stands, without comment."""
        return self.key if self.value is None else f"{self.key}={self.value}"

    def error(self, problem: str) -> UsageError:
        """The error that this line has."""
        return UsageError(f"{self.source}, line {self.line}: {self.text}: {problem}")


@dataclasses.dataclass(slots=True)
class Section:
    """`[name]` and the settings below it."""

    source: str
    line: int
    name: str
    settings: list[Setting] = dataclasses.field(default_factory=list)

    @property
    def is_global(self) -> bool:
        """Whether it only sets defaults for the sections below."""
        return self.name.startswith("global")

    def error(self, problem: str) -> UsageError:
        """An error of the section as a whole."""
        return UsageError(f"{self.source}, line {self.line}: job {self.name}: {problem}")


def read_text(path: Path, what: str) -> str:
    """The text of a file, or one sentence about why not."""
    if not what:
        raise UsageError("the job file's name is empty; name a file that can be read")
    # What a shell writes for <(...) leads to no name. One that has a name may have no writer.
    if stat.S_ISFIFO(mode_of(path)) and stat.S_ISFIFO(mode_of(os.path.realpath(path))):
        raise UsageError(f"{what}: is a named pipe; name a file")
    try:
        with open_input(path) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{what}: {error.strerror}; name a file that can be read") from None
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{what} has more than {MAX_FILE_BYTES} bytes; is it a job file?")
    if data.startswith(codecs.BOM_UTF8):  # not to be seen in what would be said of it
        raise UsageError(
            f"{what}, line 1: begins with a byte order mark, at which fio stops, too; "
            "save it without"
        )
    if b"\0" in data:  # which would end a name in C
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise UsageError(f"{what}, line {line}: has a NUL byte; is it a job file?")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{what}, line {line}: not UTF-8 text; is it a job file?") from None


def strip_comment(line: str) -> str:
    """The line without blanks around it and without what ; or # begins."""
    return re.split("[;#]", line, maxsplit=1)[0].strip()


def expand(setting: Setting, environ: Mapping[str, str]) -> Setting:
    """Replace ${VARIABLE} and fio's own words in the value."""
    value = setting.value
    if value is None or "$" not in value or setting.key in VERBATIM_KEYS:
        return setting

    def of_environment(match: re.Match[str]) -> str:
        name = match.group(1)
        if not environ.get(name):
            raise setting.error(
                f"the environment has no variable {name}; set it or write the value"
            )
        if not environ[name].isprintable():
            raise setting.error(
                f"{name} of the environment has a line break or another character that is no text; "
                "set it to one line of text"
            )
        return environ[name]

    value = VARIABLE.sub(of_environment, value).replace("$pagesize", PAGE_BYTES)
    for word in MACHINE_WORDS:
        if word in value:
            raise setting.error(
                f"{word} would make the result depend on this machine; write a number"
            )
    return dataclasses.replace(setting, value=value)


def _setting(source: str, number: int, line: str) -> Setting:
    key, equals, value = line.partition("=")
    return Setting(source, number, key.strip(), value if equals else None)


def _include(setting_line: str, source: str, number: int, beside: Path | None) -> Path:
    name = setting_line[len("include") :].strip().removeprefix("=").strip()
    if not name:
        raise UsageError(f"{source}, line {number}: include: names no file; write include FILE")
    path = Path(name)
    if not mode_of(path) and beside is not None:  # fio's order: here, then beside the job file
        path = beside / name
    if not is_file(path):
        raise UsageError(
            f"{source}, line {number}: include {name}: there is no such file; "
            "name one relative to this file"
        )
    return path


def _included(path: Path, name: str, depth: int, numbers: Iterator[int]) -> Iterator[Setting]:
    """The settings of an included file; @numbers counts what the job file includes in all."""
    if depth > MAX_INCLUDES:
        raise UsageError(f"{name}: included more than {MAX_INCLUDES} deep; does it include itself?")
    if next(numbers) > MOST_INCLUDED:
        raise UsageError(
            f"{name}: is included after {MOST_INCLUDED} others; write its settings there"
        )
    for number, raw in enumerate(read_text(path, name).split("\n"), 1):
        line = strip_comment(raw)
        if not line:
            continue
        if line.startswith("["):
            raise UsageError(
                f"{name}, line {number}: {line}: an included file cannot begin a section; "
                "write its settings only"
            )
        if re.match(r"include(?=[\s=]|$)", line):
            inner = _include(line, name, number, path.parent)
            yield from _included(inner, str(inner), depth + 1, numbers)
        else:
            yield _setting(name, number, line)


def read_sections(text: str, source: str, beside: Path | None) -> list[Section]:
    """Split a job file into its sections; @beside is the directory that includes are sought in."""
    sections: list[Section] = []
    numbers = itertools.count(1)
    for number, raw in enumerate(text.split("\n"), 1):
        line = strip_comment(raw)
        if not line:
            continue
        if line.startswith("["):
            if not line.endswith("]") or not line[1:-1].strip():
                raise UsageError(f"{source}, line {number}: {line}: not a section; write [NAME]")
            sections.append(Section(source, number, line[1:-1]))
        elif not sections:
            raise UsageError(
                f"{source}, line {number}: {line}: stands before the first section; "
                "write [global] or [NAME] above it"
            )
        elif re.match(r"include(?=[\s=]|$)", line):
            path = _include(line, source, number, beside)
            sections[-1].settings.extend(_included(path, str(path), 1, numbers))
        else:
            sections[-1].settings.append(_setting(source, number, line))
    return sections
