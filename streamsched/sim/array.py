# SPDX-License-Identifier: GPL-2.0-only
"""Arrays of disks as the command line names them: LEVEL:MEMBERS[:CHUNK][:WORD]...

raid0:5:64k, raid1:2, raid5:5:64k:right-symmetric, raid10:4:far, linear:2. More words are
uncoordinated, stripes=N (how many the stripe cache of RAID 5 and 6 keeps), and failed=N or
failed=N@TIME for a member that is missing from the start or fails at that time. Geometry is
core/array/geometry.h.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from streamsched._core import ffi, lib
from streamsched.base.errors import UsageError, unknown
from streamsched.base.units import whole_number
from streamsched.sim.tunable import Tunable, Unit

# As core/array/geometry.h has them.
LEVELS = ("linear", "raid0", "raid5", "raid10", "raid6", "raid1")
PARITY_LAYOUTS = ("left-asymmetric", "right-asymmetric", "left-symmetric", "right-symmetric")
COPY_LAYOUTS = ("near", "far", "offset")
LAYOUTS = PARITY_LAYOUTS + COPY_LAYOUTS
PARITIES = {"raid5": 1, "raid6": 2}
WITHOUT_CHUNKS = ("linear", "raid1")
WITHOUT_SPARE = ("linear", "raid0")  # a member that fails takes the array with it
CHUNK_KIB = 64
MOST_MEMBERS = 32
PAGE_SECTORS = 8
# md's stripe_cache_size: what it has by itself, the least and the most that it takes.
STRIPES, LEAST_STRIPES, MOST_STRIPES = 256, 17, 32768
FAIL_AT = Tunable("failed", Unit.NS, 5 * 10**9, 1, 2**64 - 1)


def layouts_of(level: str) -> tuple[str, ...]:
    """The layouts of @level; none where there is only one way."""
    if level in PARITIES:
        return PARITY_LAYOUTS
    return COPY_LAYOUTS if level == "raid10" else ()


def default_layout(level: str) -> str:
    """As md has it; of a level without layouts a word that nobody reads."""
    return "near" if level == "raid10" else "left-symmetric"


@dataclasses.dataclass(frozen=True)
class Array:
    """How disks are put together."""

    level: str
    members: int
    chunk_sectors: int = CHUNK_KIB * 2
    layout: str = ""  # the level's default
    stripes: int = STRIPES  # that RAID 5 and 6 keep
    coordinated: bool = True  # members under a stream policy help each other
    failed: int | None = None  # this member is missing
    fail_at_ns: int = 0  # from this time on

    def __post_init__(self) -> None:
        if not self.layout:
            object.__setattr__(self, "layout", default_layout(self.level))

    def __str__(self) -> str:
        words = [self.level, str(self.members)]
        if self.level not in WITHOUT_CHUNKS:
            words.append(f"{self.chunk_sectors // 2}k")
        if layouts_of(self.level) and self.layout != default_layout(self.level):
            words.append(self.layout)
        if self.stripes != STRIPES:
            words.append(f"stripes={self.stripes}")
        if not self.coordinated:
            words.append("uncoordinated")
        if self.failed is not None:
            words.append(f"failed={self.failed}")
            if self.fail_at_ns:
                words[-1] += f"@{FAIL_AT.show(self.fail_at_ns)}"
        return ":".join(words)

    @property
    def data_members(self) -> int:
        """How many members' room is for data, without copies and parity."""
        if self.level == "raid1":
            return 1
        if self.level == "raid10":
            return self.members // 2
        return self.members - PARITIES.get(self.level, 0)

    @property
    def readahead_pages(self) -> int:
        """Md's window: two rows of data (Linux 2.6.31, raid0_run() and its like)."""
        if self.level in WITHOUT_CHUNKS:
            return 0
        # A row of far or offset has a chunk of data on each member.
        row = self.members if self.layout in ("far", "offset") else self.data_members
        return 2 * row * self.chunk_sectors // PAGE_SECTORS

    def capacity_sectors(self, members: list[int]) -> int:
        """Of an array of disks of so many sectors; UsageError if there is no such array."""
        return int(self.geometry(members).capacity_sectors)

    def geometry(self, members: list[int]) -> Any:
        """Struct ss_array_geometry, of disks of so many sectors; UsageError as above."""
        return _geometry(self, tuple(members))

    def params(self) -> Any:
        """Struct sim_array_config."""
        config = ffi.new("struct sim_array_config *")
        config.level = LEVELS.index(self.level)
        config.layout = LAYOUTS.index(self.layout)
        config.chunk_sectors = self.chunk_sectors
        config.stripes = self.stripes
        config.coordinated = self.coordinated
        config.failed_member = lib.SIM_NO_MEMBER if self.failed is None else self.failed
        config.fail_at_ns = self.fail_at_ns
        return config


@functools.lru_cache(maxsize=64)
def _geometry(array: Array, members: tuple[int, ...]) -> Any:
    geometry = ffi.new("struct ss_array_geometry *")
    geometry.level = LEVELS.index(array.level)
    geometry.layout = LAYOUTS.index(array.layout)
    geometry.chunk_sectors = array.chunk_sectors
    geometry.nr_members = array.members
    for member, sectors in enumerate(members):
        geometry.member_sectors[member] = sectors
    why = ffi.new("char[160]")
    if lib.ss_array_geometry_init(geometry, why, 160):
        raise UsageError(f"--array {array}: {ffi.string(why).decode()}")
    return geometry


def _chunk(text: str, word: str) -> int:
    digits = word.lower().removesuffix("b").removesuffix("i")
    scale = {"k": 1 << 10, "m": 1 << 20}.get(digits[-1:], 1)
    number = digits.rstrip("km") if scale > 1 else digits
    nr_bytes = (whole_number(number) or 0) * scale
    if nr_bytes % 4096 or not 4096 <= nr_bytes <= 1 << 20:
        raise UsageError(
            f"--array {text}: {word} is no chunk; it is a multiple of 4k from 4k to 1m, as in 64k"
        )
    return nr_bytes // 512


def _stripes(text: str, word: str, array: Array) -> Array:
    if array.level not in PARITIES:
        raise UsageError(
            f"--array {text}: {array.level} has no stripe cache; raid5 and raid6 have one"
        )
    number = whole_number(word.removeprefix("stripes="))
    if number is None or not LEAST_STRIPES <= number <= MOST_STRIPES:
        raise UsageError(
            f"--array {text}: {word}: md keeps {LEAST_STRIPES} to {MOST_STRIPES} stripes, as in "
            f"stripes={STRIPES}"
        )
    return dataclasses.replace(array, stripes=number)


def _failed(text: str, word: str, array: Array) -> Array:
    member, at, when = word.removeprefix("failed=").partition("@")
    if array.level in WITHOUT_SPARE:
        raise UsageError(f"--array {text}: {array.level} cannot do without a member")
    number = whole_number(member)
    if number is None or number >= array.members:
        raise UsageError(
            f"--array {text}: {word}: name one of the members 0 to {array.members - 1}, "
            "as in failed=0 or failed=0@5s"
        )
    fail_at_ns = 0
    if at:
        fail_at_ns, why = FAIL_AT.read(when)
        if why:
            raise UsageError(f"--array {text}: {word}: the time {why}")
    return dataclasses.replace(array, failed=number, fail_at_ns=fail_at_ns)


def _kind(word: str) -> str:
    """What a word of --array says: each may be said once."""
    if word[:1].isdigit():
        return "chunk"
    return "layout" if word in LAYOUTS else word.partition("=")[0]


def parse_array(text: str) -> Array:
    """The array that @text describes, or UsageError."""
    level, *words = text.split(":")
    if level not in LEVELS:
        raise unknown("array level", level, LEVELS)
    said_members = words.pop(0) if words else ""
    members = whole_number(said_members)
    if members is None:
        example = f"{level}:2" if level in WITHOUT_CHUNKS else f"{level}:5:64k"
        raise UsageError(f"--array {text}: say of how many disks, as in {example}")
    if not 2 <= members <= MOST_MEMBERS:
        raise UsageError(
            f"--array {text}: an array has 2 to {MOST_MEMBERS} disks, not {said_members}"
        )
    if level == "raid6" and members < 4:
        raise UsageError(f"--array {text}: raid6 has at least 4 disks, not {said_members}")
    array = Array(level, members)
    said: dict[str, str] = {}
    for word in words:
        kind = _kind(word)
        if kind in said:
            raise UsageError(f"--array {text}: has {said[kind]} and {word}; leave one of them out")
        said[kind] = word
        if kind == "chunk":
            if level in WITHOUT_CHUNKS:
                raise UsageError(f"--array {text}: {level} has no chunks; leave out {word}")
            array = dataclasses.replace(array, chunk_sectors=_chunk(text, word))
        elif kind == "layout":
            if word not in layouts_of(level):
                known = ", ".join(layouts_of(level))
                raise UsageError(
                    f"--array {text}: {word} is no layout of {level}; it has {known}"
                    if known
                    else f"--array {text}: {level} has only one layout; leave out {word}"
                )
            array = dataclasses.replace(array, layout=word)
        elif word == "uncoordinated":
            array = dataclasses.replace(array, coordinated=False)
        elif kind == "stripes" and word != kind:
            array = _stripes(text, word, array)
        elif kind == "failed" and word != kind:
            array = _failed(text, word, array)
        else:
            raise unknown(
                "word of --array", word, [*LAYOUTS, "uncoordinated", "stripes=N", "failed=N"]
            )
    return array
