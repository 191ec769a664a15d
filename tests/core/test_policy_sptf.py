# SPDX-License-Identifier: GPL-2.0-only
"""sptf: what goes first because of its age."""

from __future__ import annotations

from policy_driver import FAR, Driver


def test_a_request_goes_first_from_its_age_limit_on() -> None:
    d = Driver("sptf", age_limit=100_000_000)
    old = d.send(1, FAR)
    near = d.at(99.999999).send(1, 8)
    assert d.choose() == ("dispatch", near)
    d.at(100)
    assert d.choose() == ("dispatch", old)
