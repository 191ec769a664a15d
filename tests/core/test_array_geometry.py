# SPDX-License-Identifier: GPL-2.0-only
"""Where an array's sectors are: md's documented layouts, and the map's inverse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsched._core import ffi, lib

LEVELS = ("linear", "raid0", "raid5", "raid10", "raid6", "raid1")
LEFT_ASYMMETRIC, RIGHT_ASYMMETRIC, LEFT_SYMMETRIC, RIGHT_SYMMETRIC, NEAR, FAR, OFFSET = range(7)
CHUNK = 8


def geometry(
    level: str,
    members: int,
    chunk: int = CHUNK,
    layout: int | None = None,
    sectors: list[int] | None = None,
    start: list[int] | None = None,
) -> Any:
    made = ffi.new("struct ss_array_geometry *")
    made.level, made.nr_members = LEVELS.index(level), members
    made.chunk_sectors = chunk
    made.layout = (NEAR if level == "raid10" else LEFT_SYMMETRIC) if layout is None else layout
    for i in range(members):
        made.member_sectors[i] = sectors[i] if sectors else 100 * chunk
        made.start_sector[i] = start[i] if start else 0
    why = ffi.new("char[160]")
    assert lib.ss_array_geometry_init(made, why, 160) == 0, ffi.string(why)
    return made


def rows(made: Any, nr: int) -> list[str]:
    """The first rows as mdadm(8) and the kernel's documentation draw them; P is parity."""
    sector, run = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    drawn = []
    for row in range(nr):
        cells = []
        for member in range(made.nr_members):
            at = made.start_sector[member] + row * made.chunk_sectors
            kind = lib.ss_array_unmap(made, member, at, sector, run)
            chunk = sector[0] // made.chunk_sectors
            cells.append({0: "-", 1: str(chunk), 2: "P"}[kind])
        drawn.append(" ".join(cells))
    return drawn


# Five members, as in md's own comments on its four rotations: "left" begins with parity on the last
# member and goes down, "right" on the first and goes up; "symmetric" goes on behind the parity.
RAID5 = {
    LEFT_ASYMMETRIC: ["0 1 2 3 P", "4 5 6 P 7", "8 9 P 10 11", "12 P 13 14 15", "P 16 17 18 19"],
    RIGHT_ASYMMETRIC: ["P 0 1 2 3", "4 P 5 6 7", "8 9 P 10 11", "12 13 14 P 15", "16 17 18 19 P"],
    LEFT_SYMMETRIC: ["0 1 2 3 P", "5 6 7 P 4", "10 11 P 8 9", "15 P 12 13 14", "P 16 17 18 19"],
    RIGHT_SYMMETRIC: ["P 0 1 2 3", "7 P 4 5 6", "10 11 P 8 9", "13 14 15 P 12", "16 17 18 19 P"],
}


# The same with two parities, the second behind the first; drawn alike.
RAID6 = {
    LEFT_ASYMMETRIC: ["P 0 1 2 P", "3 4 5 P P", "6 7 P P 8", "9 P P 10 11", "P P 12 13 14"],
    RIGHT_ASYMMETRIC: ["P P 0 1 2", "3 P P 4 5", "6 7 P P 8", "9 10 11 P P", "P 12 13 14 P"],
    LEFT_SYMMETRIC: ["P 0 1 2 P", "3 4 5 P P", "7 8 P P 6", "11 P P 9 10", "P P 12 13 14"],
    RIGHT_SYMMETRIC: ["P P 0 1 2", "5 P P 3 4", "7 8 P P 6", "9 10 11 P P", "P 12 13 14 P"],
}


@pytest.mark.parametrize("layout", RAID6)
def test_raid6_layouts_are_mds(layout: int) -> None:
    assert rows(geometry("raid6", 5, layout=layout), 5) == RAID6[layout]


@pytest.mark.parametrize("layout", RAID5)
def test_raid5_layouts_are_mds(layout: int) -> None:
    assert rows(geometry("raid5", 5, layout=layout), 5) == RAID5[layout]


def test_raid0_goes_round() -> None:
    assert rows(geometry("raid0", 3), 2) == ["0 1 2", "3 4 5"]


def test_raid10_near_copies_stand_side_by_side() -> None:
    """md(4): with an odd number of devices a chunk's copies may stand in two rows."""
    assert rows(geometry("raid10", 4), 2) == ["0 0 1 1", "2 2 3 3"]
    assert rows(geometry("raid10", 3), 3) == ["0 0 1", "1 2 2", "3 3 4"]


@pytest.mark.parametrize(
    ("layout", "members", "drawn"),
    [
        # All first copies as RAID 0, then all second copies shifted by one device.
        (FAR, 2, ["0 1", "2 3", "1 0", "3 2"]),
        (FAR, 3, ["0 1 2", "3 4 5", "2 0 1", "5 3 4"]),
        (FAR, 4, ["0 1 2 3", "4 5 6 7", "3 0 1 2", "7 4 5 6"]),
        # Each stripe is followed by its copy, shifted by one device.
        (OFFSET, 2, ["0 1", "1 0", "2 3", "3 2"]),
        (OFFSET, 3, ["0 1 2", "2 0 1", "3 4 5", "5 3 4"]),
        (OFFSET, 4, ["0 1 2 3", "3 0 1 2", "4 5 6 7", "7 4 5 6"]),
    ],
)
def test_raid10_far_and_offset_copies(layout: int, members: int, drawn: list[str]) -> None:
    """md(4)."""
    made = geometry("raid10", members, layout=layout, sectors=[5 * CHUNK] * members)
    assert rows(made, 5) == [*drawn, " ".join("-" * members)]
    assert made.capacity_sectors == 2 * members * CHUNK


def test_raid1_is_the_same_everywhere() -> None:
    made = geometry("raid1", 3, chunk=0, sectors=[10, 20, 15], start=[0, 100, 7])
    assert (made.capacity_sectors, made.used_sectors, made.copies) == (10, 10, 3)
    place = ffi.new("struct ss_array_place *")
    found = []
    for copy in range(3):
        lib.ss_array_map(made, 4, copy, place)
        found.append((place.member, place.sector, place.run_sectors))
    assert found == [(0, 4, 6), (1, 104, 6), (2, 11, 6)]
    sector, run = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    assert lib.ss_array_unmap(made, 1, 110, sector, run) == lib.SS_ARRAY_OUTSIDE


def test_linear_is_one_after_the_other() -> None:
    made = geometry("linear", 3, sectors=[10, 20, 5], start=[0, 100, 7])
    assert made.capacity_sectors == 35
    place = ffi.new("struct ss_array_place *")
    found = []
    for sector in (0, 9, 10, 29, 30, 34):
        lib.ss_array_map(made, sector, 0, place)
        found.append((place.member, place.sector, place.run_sectors))
    assert found == [(0, 0, 10), (0, 9, 1), (1, 100, 20), (1, 119, 1), (2, 7, 5), (2, 11, 1)]


def test_capacity_follows_the_smallest_member() -> None:
    sizes = [80, 47, 64, 80]
    assert geometry("raid0", 4, sectors=sizes).capacity_sectors == 4 * 40
    assert geometry("raid5", 4, sectors=sizes).capacity_sectors == 3 * 40
    assert geometry("raid10", 4, sectors=sizes).capacity_sectors == 2 * 40
    # Five rows, the last of which has no row of copies.
    for layout in (FAR, OFFSET):
        made = geometry("raid10", 4, layout=layout, sectors=sizes)
        assert (made.capacity_sectors, made.used_sectors) == (4 * 2 * CHUNK, 4 * CHUNK)


@st.composite
def arrays(draw: st.DrawFn) -> dict[str, Any]:
    level = draw(st.sampled_from(LEVELS))
    members = draw(st.integers(4 if level == "raid6" else 2, 32))
    chunk = 8 * draw(st.integers(1, 256))
    layout = draw(st.sampled_from((NEAR, FAR, OFFSET)) if level == "raid10" else st.integers(0, 3))
    least = 2 * chunk if layout in (FAR, OFFSET) else chunk
    return {
        "level": level,
        "members": members,
        "chunk": chunk,
        "layout": layout,
        "sectors": draw(st.lists(st.integers(least, 1 << 31), min_size=members, max_size=members)),
        "start": draw(st.lists(st.integers(0, 1 << 20), min_size=members, max_size=members)),
    }


@pytest.mark.property
@given(array=arrays(), part=st.floats(0, 1, exclude_max=True))
def test_unmap_is_the_inverse_of_map(array: dict[str, Any], part: float) -> None:
    made = geometry(**array)
    sector = int(part * made.capacity_sectors)
    place = ffi.new("struct ss_array_place *")
    back, run = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    members = set()
    for copy in range(made.copies):
        lib.ss_array_map(made, sector, copy, place)
        members.add(place.member)
        assert place.sector >= array["start"][place.member]
        assert place.sector < array["start"][place.member] + array["sectors"][place.member]
        assert lib.ss_array_unmap(made, place.member, place.sector, back, run) == lib.SS_ARRAY_DATA
        assert (back[0], run[0]) == (sector, place.run_sectors)
        # To the end of the run it goes on there, and no further.
        last = place.sector + place.run_sectors - 1
        lib.ss_array_unmap(made, place.member, last, back, run)
        assert (back[0], run[0]) == (sector + place.run_sectors - 1, 1)
    assert len(members) == made.copies


@pytest.mark.property
@given(array=arrays(), part=st.floats(0, 1, exclude_max=True))
def test_every_place_of_a_member_is_mapped_once(array: dict[str, Any], part: float) -> None:
    """What a member holds is data that the map puts there, or parity, or outside."""
    made = geometry(**array)
    member = int(part * made.nr_members)
    at = array["start"][member] + int(part * array["sectors"][member])
    sector, run = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    kind = lib.ss_array_unmap(made, member, at, sector, run)
    if kind == lib.SS_ARRAY_OUTSIDE:
        used_end = array["start"][member] + made.used_sectors
        last_odd = array["layout"] == NEAR and made.nr_members % 2 == 1
        assert at >= used_end - (array["chunk"] if last_odd else 0)
        return
    place = ffi.new("struct ss_array_place *")
    places = []
    for copy in range(made.copies):
        lib.ss_array_map(made, sector[0], copy, place)
        places.append((place.member, place.sector))
    if kind == lib.SS_ARRAY_DATA:
        assert (member, at) in places
        return
    row = (at - array["start"][member]) // array["chunk"]
    assert array["level"] in ("raid5", "raid6")
    parity = lib.ss_array_parity_member(made, row)
    assert member in [(parity + k) % made.nr_members for k in range(made.parities)]
    assert all(there != member for there, _ in places)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"members": 1}, "an array has 2 to 32 members, 1 is not among that"),
        ({"members": 33}, "an array has 2 to 32 members, 33 is not among that"),
        (
            {"chunk": 12},
            "a chunk of 12 sectors: it must be a multiple of 8, from 8 to 2048 (4 KiB to 1 MiB)",
        ),
        (
            {"chunk": 4096},
            "a chunk of 4096 sectors: it must be a multiple of 8, from 8 to 2048 (4 KiB to 1 MiB)",
        ),
        ({"layout": 4}, "parity layout number 4 is none of the four that are known, 0 to 3"),
        ({"level": 9}, "level number 9 is none of linear, RAID 0, 1, 5, 6 and 10"),
        (
            {"level": 3, "layout": LEFT_SYMMETRIC},
            "RAID 10 layout number 2 is none of near, far and offset, 4 to 6",
        ),
        (
            {"level": 3, "layout": 7},
            "RAID 10 layout number 7 is none of near, far and offset, 4 to 6",
        ),
        (
            {"level": 3, "layout": FAR, "sectors": 15},
            "member 0 has no room for two chunks",
        ),
        ({"level": 5, "members": 1}, "an array has 2 to 32 members, 1 is not among that"),
        ({"level": 5, "sectors": 0}, "member 0 has no room for a single sector"),
        ({"level": 0, "sectors": 0}, "member 0 has no room for a single sector"),
        ({"level": 4}, "RAID 6 has at least 4 members, 3 are too few"),
        ({"sectors": 7}, "member 0 has no room for a single chunk"),
        ({"sectors": 1 << 49}, "member 0 has more than 2^48 sectors"),
    ],
)
def test_what_is_no_array_is_refused(change: dict[str, int], sentence: str) -> None:
    made = ffi.new("struct ss_array_geometry *")
    made.level = change.get("level", lib.SS_ARRAY_RAID5)
    made.nr_members = change.get("members", 3)
    made.chunk_sectors = change.get("chunk", 8)
    made.layout = change.get("layout", 0)
    for i in range(min(made.nr_members, 32)):
        made.member_sectors[i] = change.get("sectors", 800)
    why = ffi.new("char[160]")
    assert lib.ss_array_geometry_init(made, why, 160) == -22
    assert ffi.string(why).decode() == sentence
