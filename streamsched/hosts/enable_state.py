# SPDX-License-Identifier: GPL-2.0-only
"""What `streamsched enable` has enabled: kept in STATE, and written as a rule for udev.

STATE is one object:

    format   "streamsched-enabled"
    version  1
    all      whether all rotating disks are enabled, those that come later too
    link     whether the link to the rule for arrays was made
    weights  whether the service streamsched-weights was enabled
    disks    a list of objects with the members of OneDisk
    arrays   a list of objects with the members of OneArray
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

from streamsched.base.errors import StreamschedError
from streamsched.hosts.device import KEEP, STREAM
from streamsched.hosts.disks import LEAST_REQUESTS, NO_DISK
from streamsched.hosts.doctor_boot import UDEV
from streamsched.hosts.machine import Machine

RULES = f"{UDEV[0]}/99-streamsched.rules"
STATE = "/var/lib/streamsched/enabled.json"
FORMAT, VERSION = "streamsched-enabled", 1
# By these a disk is known after each boot.
DISK_IDS = ("ID_WWN_WITH_EXTENSION", "ID_WWN", "ID_SERIAL", "ID_PATH")
EVERY = "--all"  # OneDisk.by
HEAD = f"""\
# Written by `streamsched enable`, which writes it anew: changes are lost. To undo
# it, call `streamsched disable --all`. Without that command: remove this file and
# {STATE}, and call `udevadm control --reload`.
#
# At a change, too, and after the rules of distributions, which would take the
# disks back. Left alone are disks whose scheduler a program changes for a time.
ACTION!="add|change", GOTO="streamsched_end"
SUBSYSTEM!="block", GOTO="streamsched_end"
ENV{{DEVTYPE}}!="disk", GOTO="streamsched_end"
KERNEL=="loop*|dm-*|md*|zram*|ram*|drbd*|bcache*|fd*|sr*", GOTO="streamsched_end"
ATTR{{queue/rotational}}!="1", GOTO="streamsched_end"
ATTR{{queue/zoned}}!="none", GOTO="streamsched_end"
ATTR{{removable}}=="1", GOTO="streamsched_end"
TEST=="{KEEP}%k", GOTO="streamsched_end"

"""
TAIL = f"""
LABEL="streamsched_stream"
ATTR{{queue/scheduler}}="{STREAM}"
# Too few to choose from, where the disk takes one command at a time.
ATTR{{queue/nr_requests}}=="[1-9]|[1-5][0-9]|6[0-3]", ATTR{{queue/nr_requests}}="{LEAST_REQUESTS}"

LABEL="streamsched_end"
"""


@dataclasses.dataclass(frozen=True)
class One:
    name: str  # the kernel's, when it was enabled
    key: str  # udev's variable that has the value; empty: the value is the name
    value: str


@dataclasses.dataclass(frozen=True)
class OneDisk(One):
    """A disk that is enabled, and what it had before."""

    scheduler: str
    nr_requests: int | None
    by: str  # OneArray.value with which it was enabled, or EVERY; empty: by its own name


@dataclasses.dataclass(frozen=True)
class OneArray(One):
    """An array that is enabled; @attached: its members were coordinated before."""

    attached: bool


@dataclasses.dataclass(frozen=True)
class State:
    """All that is enabled."""

    all: bool = False
    link: bool = False
    weights: bool = False
    disks: tuple[OneDisk, ...] = ()
    arrays: tuple[OneArray, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.all or self.disks or self.arrays)

    def text(self) -> str:
        """What STATE has."""
        data = {"format": FORMAT, "version": VERSION} | dataclasses.asdict(self)
        return json.dumps(data, indent=2) + "\n"

    def rules(self) -> str:
        """What RULES has."""
        lines = []
        for one in () if self.all else self.disks:
            # What a pattern has a meaning for stands for any character.
            value = re.sub(r"[^\w .:;,=@#+/!-]", "?", one.value, flags=re.ASCII)
            key = f"ENV{{{one.key}}}" if one.key else "KERNEL"
            value = value if one.key else value.replace("!", "/")  # as udev calls it
            lines.append(f'# {one.name}\n{key}=="{value}", GOTO="streamsched_stream"\n')
        return HEAD + "".join(lines) + ("" if self.all else 'GOTO="streamsched_end"\n') + TAIL


def read_state(machine: Machine) -> State:
    """What is enabled; StreamschedError if that cannot be read."""
    read = machine.read(STATE)
    if not read.there:
        return State()
    if read.denied:
        raise StreamschedError(f"{STATE}: only root can read it")
    try:
        data = json.loads(read.data)
        if data["version"] != VERSION:
            raise ValueError
        disks = tuple(OneDisk(**one) for one in data["disks"])
        arrays = tuple(OneArray(**one) for one in data["arrays"])
        return State(data["all"], data["link"], data["weights"], disks, arrays)
    except (ValueError, KeyError, TypeError):
        raise StreamschedError(
            f"{STATE}: is not as `streamsched enable` writes it; remove it, and {RULES}"
        ) from None


def rules_are_ours(machine: Machine) -> bool:
    """Whether RULES may be written: there is no such file, or it is one that was written here."""
    data = machine.read(RULES).data.strip()
    return not data or data.startswith(HEAD.splitlines()[0].encode())


# ---- which disk is which ----

T = TypeVar("T", bound=One)


def identity_of(machine: Machine, name: str, keys: Sequence[str]) -> tuple[str, str]:
    """The variable by which udev knows the device @name and no other of its kind, and its value."""
    layer = bool(NO_DISK.match(name))
    others = [one for one in machine.names("/sys/block") if bool(NO_DISK.match(one)) == layer]
    mine = machine.properties(name)
    for key in keys:
        value = mine.get(key)
        same = (one for one in others if machine.properties(one).get(key) == value)
        if value and all(one == name for one in same):
            return key, value
    return "", name


def record_of(machine: Machine, name: str, records: Iterable[T]) -> T | None:
    """That of @records which is of the device @name."""
    mine = machine.properties(name)
    fits = (one for one in records if one.value == (mine.get(one.key) if one.key else name))
    return next(fits, None)


def name_now(machine: Machine, one: One) -> str | None:
    """The name that a disk or an array has now; None: it is gone."""
    names = machine.names("/sys/block")
    return next((name for name in names if record_of(machine, name, [one])), None)
