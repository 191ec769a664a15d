# SPDX-License-Identifier: GPL-2.0-only
"""Rows of Iyer and Druschel, "Anticipatory Scheduling", SOSP 2001, from their slides.

Of the slides with results no figures survive in the copy we have, only what the others say of
them; the rules are about that.
"""

from __future__ import annotations

from streamsched.sim.experiment import (
    Case,
    Figure,
    Origin,
    Row,
    Runs,
    figure_row,
    within,
    work_case,
)
from streamsched.sim.workloads import IYER_DISK

SOURCE = "Iyer and Druschel, SOSP 2001"
# Seek-reducing, and fair: it has an age limit.
INNER = "sptf"
NWCS = f"nwcs:{INNER}"

# ---- proportional share, slides 11 and 26 ----

SHARE_POLICIES = ("stride", "wfq")


def _share_case(policy: str) -> Case:
    return Case("proportional-share", policy, owners="process", weights=("two=2",))


def _share_cases() -> list[Case]:
    return [_share_case(wrap + policy) for wrap in ("", "nwcs:") for policy in SHARE_POLICIES]


def _share_rows(runs: Runs) -> list[Row]:
    rows = []
    for case in _share_cases():
        one, two = runs[case].jobs
        ours, asked = two.bytes / one.bytes, 2.0 if case.policy.startswith("nwcs:") else 1.0
        rows.append(
            Row(
                f"{case.policy}, 1:2 is asked for",
                f"1:{asked:.0f}",
                f"1:{ours:.3f}",
                "+-5 %",
                within(ours, asked, 0.05),
            )
        )
    return rows


# ---- microbenchmark, slides 9, 10, 17 and 18 ----

PATTERNS = ("sequential", "alternate", "random")
WAYS = ("read", "mmap")


def _both(work: str, **more: object) -> list[Case]:
    return [work_case(work, policy, **more) for policy in (INNER, NWCS)]


def _gain(runs: Runs, work: str, **more: object) -> float:
    without, with_ = _both(work, **more)
    return runs[with_].mb_s / runs[without].mb_s


def _micro_cases() -> list[Case]:
    thinkers = _both("thinkers", think_us=0)
    alone = work_case("one-reader", INNER)
    return [
        *(case for p in PATTERNS for way in WAYS for case in _both(f"{p}-{way}")),
        *thinkers,
        alone,
    ]


def _micro_rows(runs: Runs) -> list[Row]:
    without, with_ = (runs[case].mb_s for case in _both("thinkers", think_us=0))
    alone = runs[work_case("one-reader", INNER)].mb_s
    rows = [
        figure_row("one reader of 64 KiB alone", 21.0, alone, "MB/s"),
        figure_row(f"two readers of 64 KiB in turn, {INNER}", 5.0, without, "MB/s"),
        Row(
            f"two readers of 64 KiB in turn, {INNER}, to one alone",
            "25 %",
            f"{100 * without / alone:.0f} %",
            "within a factor of 2",
            0.125 <= without / alone <= 0.5,
        ),
        Row(
            f"the same, {NWCS}",
            "good, as one alone",
            f"{100 * with_ / alone:.0f} %",
            "80 % or more",
            with_ >= 0.8 * alone,
        ),
    ]
    for pattern in PATTERNS:
        for way in WAYS:
            ours = _gain(runs, f"{pattern}-{way}")
            rows.append(
                Row(
                    f"{pattern}, {way}: {NWCS} to {INNER}",
                    "better",
                    f"{ours:.2f}x",
                    "1.0x or more",
                    ours >= 1.0,
                )
            )
    return rows


# ---- sensitivity, slide 25 ----

THINK_US = (0, 500, 1000, 2000, 3000, 5000, 7000, 10_000, 15_000, 20_000)
# The three ways: both think, one thinks, both think after each eighth block.
THINKING: tuple[tuple[str, dict[str, object]], ...] = (
    ("both processes think", {}),
    ("one of two thinks", {"thinkers": 0}),
    ("both think after each eighth block", {"think_blocks": 8}),
)
STALLS = (1, 2, 4, 8, 12, 16, 24, 32, 64)
ADVERSARIES = ("adversary", "random-adversary")


def _sense_cases() -> list[Case]:
    return [
        *(
            case
            for _, how in THINKING
            for think in THINK_US
            for case in _both("thinkers", think_us=think, **how)
        ),
        *(case for work in ADVERSARIES for nr in STALLS for case in _both(work, stall_blocks=nr)),
    ]


def _sense_rows(runs: Runs) -> list[Row]:
    rows = []
    for what, how in THINKING:
        gains = {think: _gain(runs, "thinkers", think_us=think, **how) for think in THINK_US}
        shown = ", ".join(f"{think / 1000:g}: {gain:.2f}" for think, gain in gains.items())
        good = sum(gain >= 0.98 for gain in gains.values())
        rows.append(
            Row(
                f"{what}, {NWCS} to {INNER} by ms",
                "almost always better",
                shown,
                "0.98x or more in nine of ten",
                good >= len(THINK_US) * 0.9,
            )
        )
    for work in ADVERSARIES:
        ours = {nr: _gain(runs, work, stall_blocks=nr) for nr in STALLS}
        worst = min(ours, key=lambda nr: ours[nr])
        rows.append(
            Row(
                f"{work}: {NWCS} to {INNER}, at its worst",
                "sometimes slightly worse",
                f"{ours[worst]:.2f}x, stops at every block {worst}",
                "0.8x or more",
                ours[worst] >= 0.8,
            )
        )
    return rows


TRIED = Origin(before=False, changed="policy")
# The disk was chosen because one reader alone has what theirs had.
FAST_AS_THEIRS = Origin(before=False, fitted="disk", changed="policy")
FIGURES = {
    "share": Figure("Shares of 1:2", _share_cases, _share_rows, SOURCE, origin=TRIED),
    "micro": Figure("Microbenchmark", _micro_cases, _micro_rows, SOURCE, IYER_DISK, FAST_AS_THEIRS),
    "sense": Figure(
        "Think times and an adversary", _sense_cases, _sense_rows, SOURCE, IYER_DISK, FAST_AS_THEIRS
    ),
}
