# SPDX-License-Identifier: GPL-2.0-only
"""The network server, as `streamsched top` sees it: the file that its metrics= writes.

Each member of the server is a disk, and connections are its parties; they are the same for all
members, for the server counts them over all.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from streamsched.base.errors import StreamschedError, UsageError, printable
from streamsched.base.files import is_file, read_whole
from streamsched.watch.observe import Observation, Row

PREFIX = "streamsched_"
# The server writes every 10 s unless metrics-interval= says otherwise.
FILE_S = 15.0
_LINE = re.compile(r'streamsched_(\w+)(?:\{((?:\w+="[^"]*",?)*)\})? (\S+)\s*\Z')
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_NONE = "is no file of the network server's metrics=; name a disk, or such a file"

# Metrics by member (or connection): name, and the labels besides that, to a number.
_Values = dict[tuple[str, ...], float]


class Metrics:
    """What the file says at one time."""

    def __init__(self, text: str) -> None:
        """Raises UsageError, which names the line, where the server cannot have written it."""
        self.of: dict[tuple[str, str], _Values] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith(PREFIX):
                try:
                    self._take(line)
                except ValueError as error:
                    raise UsageError(
                        f"line {number}: {error}; the network server writes no such line"
                    ) from None

    def _take(self, line: str) -> None:
        found = _LINE.match(line)
        if not found:
            raise ValueError("is not a metric with its number")
        name, said = found[1], dict(_LABEL.findall(found[2] or ""))
        number = _number(name, found[3])
        label = "le" if name.endswith("_bucket") else "direction"
        if label == "le" and said.get(label) != "+Inf":
            _number("le", said.get(label, ""))
        for kind in ("member", "connection"):
            if kind in said:
                if not re.fullmatch(r"[0-9]+", said[kind]):
                    raise ValueError(f"{kind} {said[kind]!r} is no number")
                key = (name.removeprefix("connection_"), said.get(label, ""))
                self.of.setdefault((kind, said[kind]), {})[key] = number

    def names(self, kind: str) -> list[str]:
        return [name for one, name in self.of if one == kind]

    def follows(self, before: Metrics) -> bool:
        """Whether one server wrote both: what it counts only grows."""
        return all(
            number >= before.of.get(key, {}).get(name, 0.0)
            for key, values in self.of.items()
            for name, number in values.items()
        )


def _number(name: str, text: str) -> float:
    """What a server counts, in 64 bits; else ValueError, which names it."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{name} {text!r} is no number") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"{name} {text} is no count")
    return number


class _Change:
    """What a member or a connection did between two files."""

    def __init__(self, old: _Values, new: _Values, seconds: float) -> None:
        self._old, self._new, self._seconds = old, new, seconds

    def rate(self, name: str) -> float:
        """By second, directions together."""
        total = sum(
            number - self._old.get(key, 0.0) for key, number in self._new.items() if key[0] == name
        )
        return round(total / self._seconds, 2)

    def wait_p99_ms(self) -> float | None:
        """The upper end of the bucket with the 99th percentile."""
        buckets = sorted(
            (float(key[1]), number - self._old.get(key, 0.0))
            for key, number in self._new.items()
            if key[0] == "wait_seconds_bucket"
        )
        if not buckets or not buckets[-1][1]:
            return None
        rank = 0.99 * buckets[-1][1]
        below = next(limit for limit, number in buckets if number >= rank)
        return None if below == float("inf") else round(1000 * below, 3)


class MetricsFile:
    """The file of one server; it is written anew every metrics-interval= seconds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._before: tuple[float, Metrics] | None = None
        self._now: tuple[float, Metrics] | None = None
        self._written = 0.0  # by time.monotonic()
        self.read()
        if not self.members:
            raise UsageError(f"{path}: {_NONE}")

    def read(self) -> None:
        """What has been written since the last time."""
        try:
            written = self.path.stat().st_mtime
        except OSError as error:
            raise UsageError(f"{self.path}: cannot read it: {error.strerror}") from None
        if self._now and written == self._now[0]:
            return
        if not is_file(self.path):
            raise UsageError(f"{self.path}: {_NONE}")
        try:
            text = read_whole(self.path)
        except UnicodeDecodeError:
            raise UsageError(f"{self.path}: {_NONE}") from None
        try:
            metrics = Metrics(text)
        except UsageError as error:
            raise UsageError(f"{self.path}: {error}") from None
        # One that is older than the last, as a copy of it may be, tells of no time between them.
        same = self._now and written > self._now[0] and metrics.follows(self._now[1])
        self._before, self._now = self._now if same else None, (written, metrics)
        self._written = time.monotonic() - max(0.0, time.time() - written)

    def late_s(self) -> float | None:
        """How long ago it was written, if that is longer than a server takes that runs."""
        usual = self._now[0] - self._before[0] if self._now and self._before else 0.0
        ago = time.monotonic() - self._written
        return ago if ago > max(FILE_S, 3 * usual) else None

    @property
    def members(self) -> list[str]:
        assert self._now
        return self._now[1].names("member")

    def state(self) -> tuple[float, Metrics, float, Metrics] | None:
        """The last two files, with their times; None until there are two."""
        if not self._before or not self._now:
            return None
        return (*self._before, *self._now)


class MemberSource:
    """One member of a server."""

    def __init__(self, file: MetricsFile, member: str) -> None:
        self.name = printable(f"{file.path.name} {member}")
        self._file, self._member = file, member
        self._seen = 0.0

    def close(self) -> None:
        """Nothing is open."""

    def look(self) -> Observation | None:
        """Between the last two files; None if there is nothing new, and not late either."""
        try:
            self._file.read()
        except StreamschedError as error:
            self._seen = 0.0
            return Observation(self.name, "", str(error))
        state = self._file.state()
        if state is None or state[2] == self._seen:
            late_s = self._file.late_s()
            return None if late_s is None else Observation(self.name, "", self._late(late_s))
        then, old, self._seen, new = state
        seconds = max(self._seen - then, 1e-3)
        key = ("member", self._member)
        if key not in new.of:
            return Observation(self.name, "", f"{self._file.path}: has no member {self._member}")
        disk = _Change(old.of.get(key, {}), new.of[key], seconds)
        return Observation(
            name=self.name,
            scheduler="network server",
            trouble=None,
            note="of a network server the parties are its connections",
            seconds=round(seconds, 3),
            mb_s=round(disk.rate("bytes_total") / 1e6, 2),
            requests_s=disk.rate("requests_total"),
            waits_s=disk.rate("waits_total"),
            paid_s=disk.rate("hits_total"),
            in_vain_s=disk.rate("timeouts_total"),
            idle=round(disk.rate("idle_seconds_total"), 4),
            seeks_s=disk.rate("seeks_total"),
            rows=self._rows(old, new, seconds),
        )

    def _late(self, seconds: float) -> str:
        return (
            f"{self._file.path}: was last written {seconds:,.0f} s ago; is the server running, "
            "with metrics-interval=1 for example?"
        )

    def _rows(self, old: Metrics, new: Metrics, seconds: float) -> tuple[Row, ...]:
        changes = [
            (
                name,
                _Change(old.of.get(("connection", name), {}), new.of["connection", name], seconds),
            )
            for name in new.names("connection")
        ]
        total = sum(change.rate("bytes_total") for _, change in changes) or 1.0
        return tuple(
            Row(
                place_bytes=None,
                kind=f"conn {name}" if name != "0" else "gone",
                mb_s=round(change.rate("bytes_total") / 1e6, 2),
                requests_s=change.rate("requests_total"),
                share=round(change.rate("bytes_total") / total, 4),
                wait_p99_ms=change.wait_p99_ms(),
                pending=None,
                turn=False,
                reasons={},
            )
            for name, change in changes
            if name != "0" or change.rate("requests_total")
        )


def sources_of(path: Path) -> list[MemberSource]:
    """One for each member of the server that writes the file @path."""
    file = MetricsFile(path)
    return [MemberSource(file, member) for member in file.members]
