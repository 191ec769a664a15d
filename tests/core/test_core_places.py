# SPDX-License-Identifier: GPL-2.0-only
"""core/places.c against a plain list: what is at a sector, and what is near it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamsched._core import ffi, lib

NOWHERE = (2**64 - 1) // 2
NONE = 2**16 - 1

SECTORS = st.one_of(st.integers(0, 2**36), st.integers(0, 40), st.just(NOWHERE))
MOVES = st.lists(st.tuples(st.integers(0, 30), SECTORS), max_size=120)
REACHES = st.one_of(st.integers(0, 50), st.integers(0, 2**34), st.just(NOWHERE // 2))


def at(lib: Any, places: Any, sector: int) -> set[int]:
    found, i = set(), NONE
    while (i := lib.ss_places_at(places, sector, i)) != NONE:
        assert i not in found
        found.add(i)
    return found


def near(places: Any, sector: int, reach: int) -> set[int]:
    found, walk = set(), ffi.new("struct ss_places_walk *")
    lib.ss_places_begin(places, sector, reach, walk)
    while (i := lib.ss_places_next(places, walk)) != NONE:
        assert i not in found
        found.add(i)
    return {i for i in found if abs(places.place[i].sector - sector) <= reach}


@given(moves=MOVES, asked=st.lists(st.tuples(SECTORS, REACHES), min_size=1, max_size=8))
def test_places_are_found_where_they_are(
    moves: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    places = ffi.new("struct ss_places *")
    lib.ss_places_init(places)
    model: dict[int, int] = {}
    for i, sector in moves:
        lib.ss_places_move(places, i, sector)
        model[i] = sector
        if sector == NOWHERE:
            del model[i]
    # A reach that is much longer or shorter has the stretches made anew in between.
    for sector, reach in [*asked, *((sector, 3) for _, sector in moves[:5])]:
        if sector == NOWHERE:
            continue
        assert at(lib, places, sector) == {i for i, where in model.items() if where == sector}
        expected = {i for i, where in model.items() if abs(where - sector) <= reach}
        assert near(places, sector, reach) == expected


def test_all_places_may_be_at_one_sector() -> None:
    places = ffi.new("struct ss_places *")
    lib.ss_places_init(places)
    for i in range(1024):
        lib.ss_places_move(places, i, 77)
    assert at(lib, places, 77) == set(range(1024)) == near(places, 70, 10)
    for i in range(1024):
        lib.ss_places_move(places, i, NOWHERE)
    assert at(lib, places, 77) == set() == near(places, 70, 10)


def test_a_hidden_place_is_met_by_no_walk_until_it_moves() -> None:
    """Whether it moves within its stretch, out of it or not at all; by its sector it is found."""
    places = ffi.new("struct ss_places *")
    lib.ss_places_init(places)
    for i, sector in enumerate((77, 78, 79)):
        lib.ss_places_move(places, i, sector)
    for to in (77, 90, 2**30):
        assert 0 in near(places, int(places.place[0].sector), 2**20)
        lib.ss_places_hide(places, 0)
        assert 0 not in near(places, 77, 2**31)
        assert at(lib, places, int(places.place[0].sector)) >= {0}
        lib.ss_places_move(places, 0, to)
    assert near(places, 77, 2**31) == {0, 1, 2}
    lib.ss_places_hide(places, 0)
    lib.ss_places_move(places, 0, NOWHERE)
    assert near(places, 77, 2**31) == {1, 2} and at(lib, places, 2**30) == set()
