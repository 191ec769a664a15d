# SPDX-License-Identifier: GPL-2.0-only
"""study.toml as it stands: its keys and values, each with its line, and all that is wrong."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from streamsched.base.errors import StreamschedError, UsageError, printable, unknown
from streamsched.base.files import read_whole

T = TypeVar("T")
KINDS = {str: "text", int: "a whole number"}
KEYS = (
    "policies",
    "jobs",
    "traces",
    "disks",
    "queue_depths",
    "seeds",
    "owners",
    "settings",
    "curve",
    "trace_mode",
    "wrap",
    "alone",
)


class StudyError(StreamschedError):
    """All that is wrong with a study, one sentence a line."""

    exit_code = 2

    def __init__(self, path: Path, wrong: Sequence[tuple[int, str]]) -> None:
        # One mistake may be found again with each disk.
        lines = [f"{path}:{line}: {printable(why)}" for line, why in sorted(dict.fromkeys(wrong))]
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class Given(Generic[T]):
    """A value, and where it stands."""

    value: T
    line: int
    text: str


class Document:
    """The file, while it is read."""

    def __init__(self, path: Path) -> None:
        self.wrong: list[tuple[int, str]] = []
        try:
            self.text = read_whole(path)
            self._data: dict[str, Any] = tomllib.loads(self.text)
            repr(self._data)  # an error where a number is too long to be shown
        except UnicodeDecodeError:
            raise UsageError(f"{path}: not a TOML file: it is not UTF-8 text") from None
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"(.*) \(at line (\d+), column \d+\)", str(error))
            end = len(self.text.splitlines())
            line, why = (int(found[2]), found[1]) if found else (end, str(error))
            raise StudyError(path, [(line, f"not TOML: {why}")]) from None
        except ValueError:  # int() reads none of more than 4300, nor writes it where it was in hex
            raise UsageError(f"{path}: not a TOML file: a number has thousands of digits") from None
        except RecursionError:
            raise UsageError(f"{path}: not a TOML file: too many lists within lists") from None
        self._lines = self.text.splitlines()
        self._found: dict[str, list[Given[Any]]] = {}

    def error(self, line: int, why: str) -> None:
        """One more thing that is wrong."""
        self.wrong.append((line, why))

    @contextlib.contextmanager
    def errors(self, given: Given[Any]) -> Iterator[None]:
        """What is wrong with @given, noted."""
        try:
            yield
        except UsageError as error:
            # Written for the options of other commands.
            why = str(error).removeprefix("--set ").replace("--policy", "policies")
            self.error(given.line, why)

    def has(self, key: str) -> bool:
        """Whether it is written, right or wrong."""
        return key in self._data

    def line(self, key: str, value: object = None) -> int:
        """The line of @key, or of @value among its values."""
        name = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
        begin = next((i for i, text in enumerate(self._lines) if name.match(text)), 0)
        if value is None:
            return begin + 1
        quoted = (f'"{value}"', f"'{value}'")
        number = re.compile(rf"(?<![\w.]){re.escape(str(value))}(?![\w.])")
        for i, text in enumerate(self._lines[begin:]):
            if i and re.match(r"\s*[\w-]+\s*=", text):
                break
            if isinstance(value, str) and any(one in text for one in quoted):
                return begin + i + 1
            if not isinstance(value, str) and number.search(text.partition("#")[0]):
                return begin + i + 1
        return begin + 1

    def no_more(self) -> None:
        """Refuse the keys that there are not."""
        for key in self._data:
            if key not in KEYS:
                self.error(self.line(key), str(unknown("key", key, KEYS)))

    def list(
        self,
        key: str,
        kind: type,
        check: Callable[[Any], Any] = lambda value: value,
        needed: bool = False,
        default: Sequence[Any] = (),
    ) -> list[Given[Any]]:
        """The values of @key as @check makes them of what is written."""
        found: list[Given[Any]] = []
        self._found[key] = found
        if key not in self._data:
            if needed:
                self.error(1, f"{key} is missing; write {key} = [...]")
            found.extend(Given(check(value), 1, str(value)) for value in default)
            return found
        values = self._data[key]
        if not isinstance(values, list) or not values:
            self.error(self.line(key), f"{key}: write a list of at least one, as in {key} = [...]")
            return found
        seen: set[object] = set()
        for value in values:
            line = self.line(key, value)
            if not isinstance(value, kind) or isinstance(value, bool):
                self.error(line, f"{key}: {value!r} is not {KINDS[kind]}")
            elif value in seen:
                self.error(line, f"{key}: {value!r} is there twice; leave one out")
            else:
                seen.add(value)
                with self.errors(Given(value, line, str(value))):
                    found.append(Given(check(value), line, str(value)))
        return found

    def given(self, key: str, values: Sequence[T]) -> Iterator[Given[T]]:
        """@values, which came of @key's, with their lines."""
        for value, given in zip(values, self._found[key], strict=True):
            yield Given(value, given.line, given.text)

    def choice(self, key: str, known: Sequence[str]) -> str:
        """One of @known; the first one if nothing is written."""
        value = self._data.get(key, known[0])
        if value not in known:
            self.error(self.line(key), f"{key}: {value!r} is not one of {', '.join(known)}")
            return known[0]
        return str(value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._data.get(key, default)
        if not isinstance(value, bool):
            self.error(self.line(key), f"{key}: {value!r} is neither true nor false")
            return default
        return value

    def is_number(self, key: str) -> bool:
        """Whether it is one number, and no list."""
        value = self._data.get(key)
        return isinstance(value, int) and not isinstance(value, bool)

    def number(self, key: str, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = int(self._data[key])
        if not least <= value <= most:
            self.error(self.line(key), f"{key} {value}: must be within {least} to {most}")
            return least
        return value
