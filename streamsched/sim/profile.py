# SPDX-License-Identifier: GPL-2.0-only
"""What each policy makes of a disk: measured once, kept in a file, used to choose by.

Seelam et al. (OLS 2005, "I/O Scheduler Selection, Preliminary Approach") measure for each
scheduler s the throughput f_s(r) of random reads and writes of size r. That is the first part
of a profile. The second one answers what they leave open: the same for workloads that differ in
locality, direction and concurrency too, with response times and with what each looks like to
somebody who sees its requests. profile_measure.py measures; docs/guide/AUTO.md describes the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from streamsched import _core
from streamsched.base.errors import UsageError
from streamsched.base.files import read_whole
from streamsched.sim.diskfile import Disk
from streamsched.sim.policies import AUTO, check_spec
from streamsched.work.looks import Looks

FORMAT, VERSION = "streamsched-profile", 2
# What a profile knows of who sent a request; `run --owners group` is as good as process.
OWNERS = ("process", "none")
# Those measured unless others are named. Without stride and wfq, which share by weight, and without
# nwcs:cscan, which leaves all but one reader without service for as long as it likes.
POLICIES = (
    "noop",
    "deadline",
    "cscan",
    "sptf",
    "linus",
    "anticipatory",
    "cooperative",
    "cfq",
    "nwcs:deadline",
    "nwcs:sptf",
    "stream:deadline",
    "stream:linus",
    "stream:cscan",
    "stream:sptf",
)


# ---- what is known ----


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One policy with one workload."""

    mb_s: float
    p99_ms: float  # response time
    longest_wait_ms: float
    looks: Looks


@dataclasses.dataclass(frozen=True)
class Known:
    """One workload under every policy."""

    name: str
    owners: str
    under: dict[str, Outcome]


@dataclasses.dataclass(frozen=True)
class Profile:
    """What a profile file holds."""

    disk: str
    fingerprint: str
    queue_depth: int
    policies: tuple[str, ...]
    sizes_bytes: tuple[int, ...]
    curves: dict[str, tuple[float, ...]]  # f_s(r) in MB/s
    cells: tuple[Known, ...]

    def check(self, disk: Disk, queue_depth: int, where: str) -> None:
        """Refuse a profile of another disk, or of the same one driven otherwise."""
        if self.fingerprint != fingerprint(disk):
            if self.disk != disk.name:
                raise UsageError(f"{where}: is a profile of {self.disk}, not of {disk.name}")
            raise UsageError(
                f"{where}: is a profile of another description of {disk.name}; "
                "measure it again with `streamsched profile`"
            )
        if self.queue_depth != queue_depth:
            raise UsageError(
                f"{where}: was measured with queue depth {self.queue_depth}, not {queue_depth}"
            )

    def owners(self) -> set[str]:
        return {cell.owners for cell in self.cells}


def fingerprint(disk: Disk) -> str:
    """Of all that the disk model knows of @disk."""
    return hashlib.sha256(disk.description_text().encode()).hexdigest()[:16]


def made_by() -> str:
    """Of the code that a measurement depends on: a kept profile of other code is not used."""
    measuring = Path(__file__).with_name("profile_measure.py")
    parts = (measuring.read_bytes(), Path(str(_core.__file__)).read_bytes())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


# ---- the file ----


def as_text(profile: Profile) -> str:
    """The file's content; the same for the same profile."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": made_by(),
        "disk": profile.disk,
        "fingerprint": profile.fingerprint,
        "queue_depth": profile.queue_depth,
        "policies": list(profile.policies),
        "request_bytes": list(profile.sizes_bytes),
        "random_mb_s": {
            spec: [round(value, 4) for value in values] for spec, values in profile.curves.items()
        },
        "cells": [
            {
                "name": cell.name,
                "owners": cell.owners,
                "under": {spec: _outcome_dict(one) for spec, one in cell.under.items()},
            }
            for cell in profile.cells
        ],
    }
    cells = document.pop("cells")
    head = json.dumps(document, indent=1).removesuffix("\n}")
    rows = ",\n  ".join(json.dumps(cell) for cell in cells)
    return f'{head},\n "cells": [\n  {rows}\n ]\n}}\n'


def _outcome_dict(one: Outcome) -> dict[str, float]:
    looks = {key: round(value, 4) for key, value in dataclasses.asdict(one.looks).items()}
    return {
        "mb_s": round(one.mb_s, 4),
        "p99_ms": round(one.p99_ms, 3),
        "longest_wait_ms": round(one.longest_wait_ms, 3),
        **looks,
    }


class _Reader:
    """Takes a document apart; what is wrong is one sentence with its place."""

    def __init__(self, where: str) -> None:
        self.where = where

    def error(self, place: str, right: str) -> UsageError:
        return UsageError(f"{self.where}: {place} must be {right}")

    def get(self, table: Mapping[str, Any], key: str, place: str, kind: Any, right: str) -> Any:
        value = table.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.error(f"{place}{key}", right)
        return value

    def number(self, table: Mapping[str, Any], key: str, place: str, most: float) -> float:
        right = f"a number from 0 to {most:g}" if most < 1e15 else "a number of 0 or more"
        value = self.get(table, key, place, (int, float), right)
        if not 0 <= value <= most:  # also refuses NaN
            raise self.error(f"{place}{key}", right)
        return float(value)

    def outcome(self, table: Any, place: str) -> Outcome:
        if not isinstance(table, dict):
            raise self.error(place.rstrip("."), "an object")
        numbers = {
            key: self.number(table, key, place, 1e15)
            for key in ("mb_s", "p99_ms", "longest_wait_ms", "size_bytes", "outstanding")
        }
        shares = {
            key: self.number(table, key, place, 1.0)
            for key in ("reads", "sync", "continuing", "near")
        }
        return Outcome(
            numbers["mb_s"],
            numbers["p99_ms"],
            numbers["longest_wait_ms"],
            Looks(
                numbers["size_bytes"],
                shares["reads"],
                numbers["outstanding"],
                shares["sync"],
                shares["continuing"],
                shares["near"],
            ),
        )

    def cells(self, rows: list[Any], policies: tuple[str, ...]) -> Iterator[Known]:
        for index, row in enumerate(rows):
            place = f"cells[{index}]"
            if not isinstance(row, dict):
                raise self.error(place, "an object")
            owners = self.get(row, "owners", f"{place}.", str, "process or none")
            if owners not in OWNERS:
                raise self.error(f"{place}.owners", "process or none")
            under = self.get(row, "under", f"{place}.", dict, "an object")
            if set(under) != set(policies):
                raise self.error(f"{place}.under", "an object with every policy and no other")
            yield Known(
                self.get(row, "name", f"{place}.", str, "text"),
                owners,
                {spec: self.outcome(under[spec], f"{place}.under[{spec!r}].") for spec in policies},
            )


def parse(text: str, where: str) -> tuple[Profile, str]:
    """A file's content, and by which code it was made; or UsageError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{where}: is not a profile: it is not JSON") from None
    reader = _Reader(where)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(f'{where}: is not a profile: it does not say "format": "{FORMAT}"')
    if document.get("version") != VERSION:
        raise UsageError(
            f"{where}: has version {document.get('version')!r}; this streamsched reads {VERSION}"
        )
    specs = reader.get(document, "policies", "", list, "a list of policies")
    if not specs or not all(isinstance(spec, str) for spec in specs):
        raise reader.error("policies", "a list of policies")
    for spec in specs:
        try:
            check_spec(spec)
        except UsageError as error:
            raise UsageError(f"{where}: policies: {error}") from None
        if spec == AUTO:
            raise UsageError(f"{where}: policies: {AUTO} chooses by a profile and cannot be in one")
        if specs.count(spec) > 1:
            raise UsageError(f"{where}: policies: {spec} stands there twice")
    policies = tuple(specs)
    sizes = reader.get(document, "request_bytes", "", list, "a list of whole numbers")
    if not sizes or any(type(size) is not int or size <= 0 for size in sizes):
        raise reader.error("request_bytes", "a list of whole numbers from 1 on")
    if sizes != sorted(set(sizes)):
        raise reader.error("request_bytes", "ascending")
    curves = reader.get(document, "random_mb_s", "", dict, "an object")
    if set(curves) != set(policies):
        raise reader.error("random_mb_s", "an object with every policy and no other")
    for spec, values in curves.items():
        place = f"random_mb_s[{spec!r}]"
        if not isinstance(values, list) or len(values) != len(sizes):
            raise reader.error(place, "a list with a number for each of request_bytes")
        for index in range(len(values)):
            reader.number({f"{place}[{index}]": values[index]}, f"{place}[{index}]", "", 1e15)
    rows = reader.get(document, "cells", "", list, "a list")
    cells = tuple(reader.cells(rows, policies))
    if not cells:
        raise reader.error("cells", "a list that is not empty")
    depth = reader.get(document, "queue_depth", "", int, "a whole number from 1 to 32")
    if not 1 <= depth <= 32:
        raise reader.error("queue_depth", "a whole number from 1 to 32")
    profile = Profile(
        reader.get(document, "disk", "", str, "a disk's name"),
        reader.get(document, "fingerprint", "", str, "text"),
        depth,
        policies,
        tuple(sizes),
        {spec: tuple(map(float, values)) for spec, values in curves.items()},
        cells,
    )
    return profile, str(document.get("made_by"))


def read(path: Path) -> tuple[Profile, str]:
    """The profile in @path, and by which code it was made."""
    try:
        return parse(read_whole(path), str(path))
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not a profile: it is not text") from None
