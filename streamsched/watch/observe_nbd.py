# SPDX-License-Identifier: GPL-2.0-only
"""The network server, as `streamsched top` sees it: the file that its metrics= writes.

Each member of the server is a disk, and connections are its parties; they are the same for all
members, for the server counts them over all.
"""

from __future__ import annotations

import re
from pathlib import Path

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.watch.observe import Observation, Row

_LINE = re.compile(r'^streamsched_(\w+)\{((?:\w+="[^"]*",?)*)\} (\S+)$', re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')

# Metrics by member (or connection): name, and the labels besides that, to a number.
_Values = dict[tuple[str, ...], float]


class Metrics:
    """What the file says at one time."""

    def __init__(self, text: str) -> None:
        self.of: dict[tuple[str, str], _Values] = {}
        for name, labels, number in _LINE.findall(text):
            said = dict(_LABEL.findall(labels))
            for kind in ("member", "connection"):
                if kind in said:
                    rest = tuple(said[one] for one in sorted(said) if one != kind)
                    key = (name.removeprefix("connection_"), *rest)
                    self.of.setdefault((kind, said[kind]), {})[key] = float(number)

    def names(self, kind: str) -> list[str]:
        return [name for one, name in self.of if one == kind]


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
        self.read()
        if not self._now or not self._now[1].of:
            raise UsageError(
                f"{path}: is no file of the network server's metrics=; name a disk, or such a file"
            )

    def read(self) -> None:
        """What has been written since the last time."""
        try:
            written = self.path.stat().st_mtime
            if self._now and written == self._now[0]:
                return
            text = self.path.read_text(errors="replace")
        except OSError as error:
            raise StreamschedError(f"{self.path}: cannot read it: {error.strerror}") from None
        self._before, self._now = self._now, (written, Metrics(text))

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
        self.name = f"{file.path.name} {member}"
        self._file, self._member = file, member
        self._seen = 0.0

    def close(self) -> None:
        """Nothing is open."""

    def look(self) -> Observation | None:
        """Between the last two files; None if there is nothing new."""
        try:
            self._file.read()
        except StreamschedError as error:
            self._seen = 0.0
            return Observation(self.name, "", str(error))
        state = self._file.state()
        if state is None or state[2] == self._seen:
            return None
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
