# SPDX-License-Identifier: GPL-2.0-only
"""The values of tunables as text: core/tunable.c, which every host reads and writes them by."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from said import refusal

from streamsched.sim.policies import all_policies
from streamsched.sim.tunable import Tunable, Unit

MOST = 2**64 - 1
ROWS = {
    Unit.NONE: Tunable("count", Unit.NONE, 4, 0, MOST),
    Unit.NS: Tunable("time", Unit.NS, 124_000_000, 0, MOST),
    Unit.PERCENT: Tunable("part", Unit.PERCENT, 50, 0, MOST),
    Unit.SECTORS: Tunable("length", Unit.SECTORS, 256, 0, MOST),
    Unit.BOOL: Tunable("switch", Unit.BOOL, 0, 0, 1),
}
UNITS = {
    Unit.NS: {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9},
    Unit.PERCENT: {"%": 1},
    Unit.SECTORS: {"sector": 1, "sectors": 1, "k": 2, "KiB": 2, "m": 2**11, "g": 2**21},
}
TARGET = Tunable("wait_target", Unit.NS, 500_000_000, 10_000_000, 60 * 10**9)


def test_units_are_enum_ss_unit(root: Path) -> None:
    names = re.findall(r"SS_UNIT_(\w+),", (root / "core/tunable.h").read_text())
    assert names == [unit.name for unit in Unit]


@given(st.integers(0, MOST), st.sampled_from([unit for unit in Unit if unit is not Unit.BOOL]))
def test_a_value_comes_back(value: int, unit: Unit) -> None:
    row = ROWS[unit]
    assert row.parse(row.show(value)) == value


def test_every_default_and_bound_comes_back() -> None:
    for policy in all_policies().values():
        for row in policy.tunables:
            for value in (row.initial, row.minimum, row.maximum):
                assert row.parse(row.show(value)) == value


@given(
    st.one_of(
        st.decimals(0, 10**6, places=12),
        st.integers(0, 10**24).map(Decimal),
    ),
    st.sampled_from([(unit, name) for unit, names in UNITS.items() for name in names]),
    st.sampled_from(["", " ", "000"]),
)
def test_values_are_exact(number: Decimal, named: tuple[Unit, str], between: str) -> None:
    """Or refused: a fraction of the smallest unit, or more than there is."""
    unit, name = named
    if between == "000" and "." not in str(number):
        between = ""
    exact = number * UNITS[unit][name]
    text = f"{number:f}{between}{name}"
    value, why = ROWS[unit].read(text)
    if exact == int(exact) and exact <= MOST:
        assert (value, why) == (exact, "")
    elif exact > MOST:
        assert "must be within" in why
    else:
        assert "is a fraction of the smallest unit" in why


@given(st.text(max_size=40), st.sampled_from(list(Unit)))
def test_any_text_is_a_value_or_a_sentence(text: str, unit: Unit) -> None:
    value, why = ROWS[unit].read(text)
    assert why or ROWS[unit].minimum <= value <= ROWS[unit].maximum
    assert "\n" not in why and not why.endswith(".")


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("124ms", Unit.NS, 124_000_000),
        ("0.5s", Unit.NS, 500_000_000),
        (" 1000 MS ", Unit.NS, 10**9),
        ("0", Unit.NS, 0),
        ("50%", Unit.PERCENT, 50),
        ("0", Unit.PERCENT, 0),
        ("256sectors", Unit.SECTORS, 256),
        ("0", Unit.SECTORS, 0),
        ("256 sectors", Unit.SECTORS, 256),
        ("128k", Unit.SECTORS, 256),
        ("0.5k", Unit.SECTORS, 1),
        ("1GiB", Unit.SECTORS, 2**21),
        ("on", Unit.BOOL, 1),
        (" Yes", Unit.BOOL, 1),
        ("0", Unit.BOOL, 0),
        ("4", Unit.NONE, 4),
    ],
)
def test_what_is_read(text: str, unit: Unit, value: int) -> None:
    assert ROWS[unit].parse(text) == value


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (124_000_000, Unit.NS, "124ms"),
        (1_500_000_000, Unit.NS, "1500ms"),
        (2 * 10**9, Unit.NS, "2s"),
        (0, Unit.NS, "0ns"),
        (7, Unit.NONE, "7"),
        (150, Unit.PERCENT, "150%"),
        (2048, Unit.SECTORS, "2048sectors"),
        (1, Unit.BOOL, "on"),
        (0, Unit.BOOL, "off"),
    ],
)
def test_what_is_shown(value: int, unit: Unit, text: str) -> None:
    assert ROWS[unit].show(value) == text


@pytest.mark.parametrize(
    ("text", "row", "why"),
    [
        ("124", ROWS[Unit.NS], "has no unit; write a time such as 124ms"),
        ("0.5", TARGET, "has no unit; write a time such as 0.5s"),
        ("500", TARGET, "has no unit; write a time such as 500ms"),
        ("9000000000", TARGET, "has no unit; write a time such as 9000000000ns"),
        ("0.0001", TARGET, "has no unit; write a time such as 500ms"),
        ("999us", TARGET, "must be within 10ms to 60s"),
        ("5m", TARGET, "is not in a unit of a time; write ns, us, ms or s"),
        ("1e3s", TARGET, "is not in a unit of a time; write ns, us, ms or s"),
        ("500milliseconds", TARGET, "is not in a unit of a time; write ns, us, ms or s"),
        ("fast", TARGET, "is no value; write a time such as 500ms"),
        ("", TARGET, "is no value; write a time such as 500ms"),
        ("1.s", TARGET, "is no value; write a time such as 500ms"),
        ("-1ms", TARGET, "is no value; write a time such as 500ms"),
        ("0.5ns", TARGET, "is a fraction of the smallest unit; write a time such as 500ms"),
        ("99999999999s", TARGET, "must be within 10ms to 60s"),
        ("1" * 41, ROWS[Unit.NONE], f"must be within 0 to {MOST}"),
        ("1.5", ROWS[Unit.PERCENT], "has no unit; write a percentage such as 50%"),
        ("75", ROWS[Unit.PERCENT], "has no unit; write a percentage such as 75%"),
        ("99", ROWS[Unit.SECTORS], "has no unit; write a length such as 99sectors"),
        ("50ms", ROWS[Unit.PERCENT], "is not in a unit of a percentage; write %"),
        (
            "4k",
            ROWS[Unit.NONE],
            "is no plain count, which has no unit; write a whole number such as 4",
        ),
        (
            "100q",
            ROWS[Unit.SECTORS],
            "is not in a unit of a length; write sectors, or bytes with k, m or g",
        ),
        ("maybe", ROWS[Unit.BOOL], "is neither on nor off; write on or off"),
    ],
)
def test_what_is_refused(text: str, row: Tunable, why: str) -> None:
    assert refusal(row.parse, text) == f"{row.name}={text}: {why}"
