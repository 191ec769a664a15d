# SPDX-License-Identifier: GPL-2.0-only
"""Is another scheduler better than the one in use, by what `measure` found of both?

docs/guide/AUTO.md has the rule. It is cautious: a scheduler stays unless another one was found
better.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from streamsched.watch.measure_stats import Difference

# What is chosen among.
SCHEDULERS = ("none", "mq-deadline", "bfq", "stream")
# A difference counts once all of its interval is beyond this. So noise changes nothing, and what
# was chosen is not left again for a little.
GAIN = 0.05
# With a p99 of more than this somebody waits too long, whatever the throughput.
LONG_MS = 1000.0
# What decides, and what decides where that is the same.
FIGURES = {"throughput": ("mb_s", "p99_ms"), "p99": ("p99_ms", "mb_s")}

Found = Mapping[str, Difference | None]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Of the other scheduler; @why goes on after its name."""

    better: bool
    why: str


def _interval(name: str, one: Difference) -> tuple[float, float]:
    """Of the logarithm of the gain: more throughput, or a shorter p99."""
    low, high = math.log1p(one.low), math.log1p(one.high)
    return (low, high) if name == "mb_s" else (-high, -low)


def _text(name: str, one: Difference) -> str:
    interval = f"({100 * one.low:+.1f} to {100 * one.high:+.1f})"
    if name == "p99_ms":
        return f"a p99 of {one.second:.0f} ms instead of {one.first:.0f} ms {interval}"
    more = "more" if one.change > 0 else "less"
    return f"{100 * abs(one.change):.1f} % {more} throughput {interval}"


def judge(found: Found, goal: str) -> Verdict:
    """Of the second of two schedulers, to the first, which is in use."""
    p99 = found["p99_ms"]
    if p99 and p99.second > LONG_MS and p99.change > GAIN:
        return Verdict(False, f"has {_text('p99_ms', p99)}, which is too long")
    enough, texts = math.log1p(GAIN), []
    for name in FIGURES[goal]:
        one = found[name]
        if one is None:
            break
        texts.append(_text(name, one))
        low, high = _interval(name, one)
        if low > enough:
            return Verdict(True, f"has {' and '.join(texts)}")
        if not -enough < low <= high < enough:  # not the same
            break
    else:
        return Verdict(False, f"does about the same: {' and '.join(texts)}")
    return Verdict(False, f"has {' and '.join(texts) or 'done too little to be compared'}")
