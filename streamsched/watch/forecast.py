# SPDX-License-Identifier: GPL-2.0-only
"""What a disk would do under another scheduler, from a recorded piece of its life.

Those who sent the requests go on as they did (workmodel.py), on the model of the disk. The same
for the scheduler that was there says how far the model is from what was observed, and each half
of the recording says how much it matters which piece was seen: from both comes the range.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterable, Sequence

from streamsched.base.errors import StreamschedError
from streamsched.sim.diskfile import Disk
from streamsched.sim.simulate import Setup, run_trace
from streamsched.work.blocktrace import Bio, p99
from streamsched.work.model import NS, Sender, endless, lasting, senders

# The kernel's schedulers as the core has them. What bfq does is not in the core, so it is not
# forecast; where it was there, it waits for its readers as cfq does, or lets them mix as none does.
POLICIES = {
    "none": ("noop",),
    "mq-deadline": ("deadline",),
    "stream": ("stream:deadline",),
    "bfq": ("noop", "cfq"),
}
FORECAST = ("none", "mq-deadline", "stream")
# In the model; longer pieces are not played to their end, unless somebody rests in them.
MODEL_NS = 15 * NS
ALONE_NS = 3 * NS
# Requests of each sender in a piece as long as it is asked for.
MOST = 200_000
# Of a request as Linux builds it for a SATA disk (max_sectors_kb), in sectors.
LARGEST = 2560
# Whose share is looked at: those that sent most.
MOST_SENDERS = 16
# Of a figure, whatever the model is found to be good for: throughput, 99th percentile.
LEAST_RANGE = (0.05, 0.30)
# Told which part of the work is done, 0 to 1.
Passed = Callable[[float], None]
# struct sim_log_row.
ROW = struct.Struct("<7Q3IH2B")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a disk does, for somebody."""

    mb_s: float
    requests_s: float
    seeks_s: float
    p99_ms: float  # of a request, from when it is wanted until it is done
    rates: dict[int, float]  # MB/s by sender's number

    def least_share(self, alone: dict[int, float]) -> float:
        """The least part of what a sender has alone, times their number."""
        shares = [self.rates.get(number, 0.0) / rate for number, rate in alone.items() if rate]
        return min(shares) * len(shares) if shares else 0.0


@dataclasses.dataclass(frozen=True)
class Range:
    """A figure, and between what it is expected."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class SchedulerForecast:
    """Under one scheduler."""

    scheduler: str
    outcome: Outcome
    mb_s: Range
    p99_ms: Range
    least_share: float


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What was observed, what the model makes of it, and of other schedulers."""

    scheduler: str  # that was there
    observed: Outcome
    observed_share: float
    senders: tuple[Sender, ...]
    alone: dict[int, float]  # MB/s of each with the disk to itself, in the model
    model: Outcome  # of what was there
    forecasts: tuple[SchedulerForecast, ...]

    @property
    def error(self) -> float:
        """The model's throughput by the observed one, less one."""
        return self.model.mb_s / self.observed.mb_s - 1

    @property
    def p99_error(self) -> float:
        """The same of the 99th percentile."""
        return self.model.p99_ms / self.observed.p99_ms - 1


def not_told(_part: float) -> None:
    """Nobody wants to know."""


def _p99_ms(times_ns: Iterable[int]) -> float:
    """Of at least one."""
    found = p99(times_ns)
    assert found is not None
    return found / 1e6


def observed(bios: Sequence[Bio], those: Sequence[Sender]) -> Outcome:
    """What the recording itself says."""
    begin = bios[0].arrival_ns
    seconds = (max(bio.complete_ns for bio in bios) - begin) / NS
    moved = sum(bio.sectors for bio in bios) * 512 / 1e6
    seeks, head = 0, -1
    for bio in sorted(bios, key=lambda bio: bio.complete_ns):
        seeks += bio.sector != head
        head = bio.sector + bio.sectors
    rates = {
        one.number: sum(bio.sectors for bio in one.bios) * 512 / 1e6 / seconds for one in those
    }
    p99_ms = _p99_ms(bio.complete_ns - bio.arrival_ns for bio in bios)
    return Outcome(moved / seconds, len(bios) / seconds, seeks / seconds, p99_ms, rates)


def replay(
    those: Sequence[Sender],
    disk: Disk,
    policy: str,
    depth: int,
    length_ns: int,
    most: int = MOST,
) -> tuple[list[tuple[int, ...]], int]:
    """Rows of what @disk served in @length_ns, and its seeks; @most: requests of each sender.

    In a row: arrival, dispatch, start, completion, positioning, sector, owner, sectors, sender,
    party, disk, direction, reason.
    """
    setup = Setup(
        disk,
        policy,
        owners="process" if policy == "cfq" else "none",
        queue_depth=depth,
        closed=True,
        wrap=True,
        stop_ns=length_ns,
        max_request_sectors=LARGEST,
    )
    rows: list[tuple[int, ...]] = []
    run = run_trace(
        setup,
        "blkparse",
        ((text, 0.0) for text in endless(those, disk.capacity_sectors, length_ns, most)),
        requests=lambda part: rows.extend(ROW.iter_unpack(part)),
    )
    if not rows:
        raise StreamschedError("the recording has too little in it to be played")
    return rows, run.counters["seeks"]


def play(those: Sequence[Sender], disk: Disk, policy: str, depth: int, length_ns: int) -> Outcome:
    """@those on the model of @disk under a policy, for @length_ns at least."""
    asked_ns, length_ns = length_ns, lasting(those, length_ns)
    most = MOST * length_ns // asked_ns
    rows, seeks = replay(those, disk, policy, depth, length_ns, most)
    last_ns = max(row[3] for row in rows)
    # Rest at the end is part of what was played.
    seconds = (max(last_ns, length_ns) if any(one.rest_ns for one in those) else last_ns) / NS
    rates: dict[int, float] = {}
    for row in rows:
        rates[row[8]] = rates.get(row[8], 0.0) + row[7] * 512 / 1e6 / seconds
    p99_ms = _p99_ms(row[3] - row[0] for row in rows)
    return Outcome(sum(rates.values()), len(rows) / seconds, seeks / seconds, p99_ms, rates)


def _range(value: float, halves: Sequence[float], error: float, least: float) -> Range:
    """@error: of the model, where it can be seen."""
    spread = max(abs(half - value) for half in halves) if halves else 0.0
    width = value * (least + abs(error)) + spread
    return Range(value, max(0.0, value - width), value + width)


def forecast(
    bios: Sequence[Bio],
    disk: Disk,
    scheduler: str,
    depth: int,
    others: Sequence[str] = FORECAST,
    length_ns: int = MODEL_NS,
    wider: float = 0.0,
    passed: Passed = not_told,
) -> Forecast:
    """What @others than @scheduler, under which @bios were recorded, would make of such work.

    @bios in order of arrival, @depth: commands in the disk at once; @wider: of the ranges, for a
    description that is not the disk's own; @passed: told which part is done.
    """
    if len(bios) < 2:
        raise StreamschedError(
            f"{len(bios)} requests were recorded: nothing can be forecast from so few; "
            "record while the disk has work"
        )
    those = senders(bios)
    middle = bios[len(bios) // 2].arrival_ns
    halves = [
        part
        for part in (
            senders([bio for bio in bios if bio.complete_ns < middle]),
            senders([bio for bio in bios if bio.arrival_ns >= middle]),
        )
        if part
    ]
    seen = observed(bios, those)
    model = min(
        (play(those, disk, policy, depth, length_ns) for policy in POLICIES[scheduler]),
        key=lambda outcome: abs(outcome.mb_s - seen.mb_s),
    )
    most = sorted(those, key=lambda one: -len(one.bios))[:MOST_SENDERS]
    apart = [other for other in others if other != scheduler]
    steps = 1 + len(apart)  # the model of now and its senders alone, and each other scheduler
    alone = {
        one.number: play([one], disk, "noop", depth, ALONE_NS).mb_s
        for one in most
        if len(one.bios) >= len(bios) / 1000
    }
    error, p99_error = model.mb_s / seen.mb_s - 1, model.p99_ms / seen.p99_ms - 1
    least = [one + wider for one in LEAST_RANGE]
    found = []
    for number, other in enumerate(apart, 1):
        passed(number / steps)
        [policy] = POLICIES[other]
        whole = play(those, disk, policy, depth, length_ns)
        parts = [play(part, disk, policy, depth, length_ns // 2) for part in halves]
        found.append(
            SchedulerForecast(
                other,
                whole,
                _range(whole.mb_s, [part.mb_s for part in parts], error, least[0]),
                _range(whole.p99_ms, [part.p99_ms for part in parts], p99_error, least[1]),
                whole.least_share(alone),
            )
        )
    return Forecast(
        scheduler, seen, seen.least_share(alone), tuple(those), alone, model, tuple(found)
    )
