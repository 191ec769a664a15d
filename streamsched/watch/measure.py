# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched measure`: which of two schedulers does more for the work that a disk has now.

They take turns in blocks of some 20 to 60 s. The beginning of each block is left out: there the
other scheduler's requests are still being served.

`--output json` is one object:

    version  1
    disk     its name
    between  the two schedulers
    seed     of the blocks' order and lengths
    pairs    how many pairs of blocks were measured
    blocks   a list of objects with the members of Block
    figures  by name (mb_s, requests_s, mean_ms, p99_ms) an object with the members of
             measure_stats.Difference and `found`, or null where it is not known
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from streamsched.base.errors import Interrupted, StreamschedError, UsageError
from streamsched.base.signals import until_stopped
from streamsched.base.tracing import TRACING, Instance
from streamsched.hosts.device import SYS, Device, device_of, keeping
from streamsched.watch.measure_state import Spec, State, specs_of
from streamsched.watch.measure_stats import CONFIDENCE, LEAST_PAIRS, Difference, compare
from streamsched.watch.parties import KernelDisk, Stat
from streamsched.work.blocktrace import LINE, LOST, Arrivals, p99

VERSION = 1
SHORTEST_S, MEAN_S = 20.0, 40.0  # of blocks
SETTLE_S = 5.0  # the part of each block that is left out
LOOK_S = 5.0  # is there any work?
STEP_S = 0.5
LEAST_RATE = 1.0  # requests in a second: less is no work
MOST_MINUTES = 7 * 24 * 60
LEAST_MINUTES = 2 * LEAST_PAIRS * SHORTEST_S / 60
FIGURES = {
    "mb_s": "MB/s",
    "requests_s": "requests/s",
    "mean_ms": "mean response, ms",
    "p99_ms": "p99 response, ms",
}


@dataclasses.dataclass(frozen=True)
class Block:
    """What was measured while one scheduler was in use."""

    scheduler: str
    seconds: float  # without the part that is left out
    mb_s: float
    requests_s: float
    mean_ms: float | None  # from arrival to completion
    p99_ms: float | None


class Responses:
    """From each request's arrival to its completion, by the block layer's trace events."""

    def __init__(self, device: Device, tracing: Path) -> None:
        events = ("block_bio_queue", "block_rq_complete")
        self._trace = Instance(device.name, device.number, events, tracing)
        self.close = self._trace.close
        self._arrivals = Arrivals()
        self._took_ns: list[int] = []
        self._lost = False

    def begin(self) -> None:
        """Only what is done from now on counts."""
        self.read()
        self._took_ns.clear()
        self._lost = False

    def read(self) -> None:
        """Take in what has come since the last time."""
        for line in self._trace.lines():
            if LOST.search(line):
                self._lost = True
            found = LINE.search(line)
            if not found:
                continue
            sector, sectors, kind = int(found["sector"]), int(found["sectors"]), found["rwbs"]
            if not sectors or not ("R" in kind or "W" in kind):  # a flush, a discard
                continue
            ns = int(found["s"]) * 1_000_000_000 + int(found["us"]) * 1000
            write = "W" in kind
            if found["event"] == "block_bio_queue":
                self._arrivals.add(write, sector, sectors, ns)
                continue
            took_ns = ns - self._arrivals.take(write, sector, sectors, ns)
            if took_ns:  # else it came before we looked
                self._took_ns.append(took_ns)

    def p99_ms(self) -> float | None:
        """None where it is not known."""
        self.read()
        took_ns = None if self._lost else p99(self._took_ns)
        return None if took_ns is None else took_ns / 1e6


def plan(minutes: float, seed: int) -> list[tuple[float, bool]]:
    """Of each pair of blocks how long each is, and whether the second scheduler is first."""
    if minutes < LEAST_MINUTES:
        raise UsageError(
            f"--minutes {minutes:g}: is too short; {LEAST_PAIRS} pairs of blocks of "
            f"{SHORTEST_S:.0f} s take {LEAST_MINUTES:.0f}"
        )
    if not minutes <= MOST_MINUTES:
        raise UsageError(f"--minutes {minutes:g}: must be at most {MOST_MINUTES}, a week")
    drawn = random.Random(seed)
    seconds = 60 * minutes
    pairs = max(LEAST_PAIRS, round(seconds / 2 / MEAN_S))
    weights = [drawn.uniform(0.2, 1) for _ in range(pairs)]
    spare = seconds / 2 - pairs * SHORTEST_S
    return [
        (SHORTEST_S + spare * weight / sum(weights), drawn.random() < 0.5) for weight in weights
    ]


class Measurement:
    """The blocks of one disk.

    @state is what is restored at the end, @progress has a line for each block; without them that
    is what there is, and @say.
    """

    def __init__(
        self,
        device: Device,
        specs: tuple[Spec, Spec],
        say: Callable[[str], None],
        running: Callable[[], bool],
        sys_: Path = SYS,
        *,
        state: State | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._device, self._specs, self._say, self._running = device, specs, say, running
        self._disk = KernelDisk(device, sys_)
        self._state = state or State(device, sys_)
        self._progress = progress or say
        self.pairs: list[tuple[Block, Block]] = []
        try:
            self._responses: Responses | None = Responses(device, sys_ / TRACING)
        except OSError as error:
            self._responses = None
            say(f"note: {device.name}: p99 is not known ({sys_ / TRACING}: {error.strerror})")

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not self._running():
                raise Interrupted(f"{self._device.name}: stopped, too early to say anything")
            time.sleep(min(left, STEP_S))
            if self._responses:
                self._responses.read()

    def _rates(self, seconds: float) -> tuple[float, float, float, float | None]:
        """Seconds, bytes/s, requests/s and the mean response in ms, of the time from now on."""

        def sums(stat: Stat) -> tuple[int, int, float]:
            done = stat.done
            return (
                sum(one.bytes for one in done),
                sum(one.requests for one in done),
                sum(one.response_s for one in done),
            )

        began, before = time.monotonic(), sums(self._disk.stat())
        self._sleep(seconds)
        took, after = time.monotonic() - began, sums(self._disk.stat())
        size, number, response_s = (new - old for old, new in zip(before, after, strict=True))
        mean_ms = 1000 * response_s / number if number else None
        return took, size / took, number / took, mean_ms

    def check_work(self) -> None:
        """Refuse an idle disk."""
        took, _, rate, _ = self._rates(LOOK_S)
        if rate < LEAST_RATE:
            raise UsageError(
                f"{self._device.name}: is idle, {rate * took:.0f} requests in {took:.0f} s; "
                "measure while the work is there that is to be compared"
            )

    def _block(self, spec: Spec, seconds: float, number: str) -> Block:
        self._state.use(spec)
        self._sleep(SETTLE_S)
        if self._responses:
            self._responses.begin()
        took, rate, requests_s, mean_ms = self._rates(seconds - SETTLE_S)
        p99_ms = self._responses.p99_ms() if self._responses else None
        if self._device.in_use != spec.scheduler:
            raise StreamschedError(
                f"{self._device.name}: somebody else changed the scheduler to "
                f"{self._device.in_use} in block {number}; end what does that first"
            )
        if requests_s < LEAST_RATE:
            raise StreamschedError(
                f"{self._device.name}: became idle in block {number}; the work must last for all "
                "of the time"
            )
        self._progress(f"block {number}: {spec}, {seconds:.0f} s: {rate / 1e6:.2f} MB/s")
        return Block(str(spec), took, rate / 1e6, requests_s, mean_ms, p99_ms)

    def run(self, planned: Sequence[tuple[float, bool]]) -> None:
        """All pairs; whatever happens, the scheduler is then what it was."""
        try:
            for pair, (seconds, turned) in enumerate(planned):
                first, second = self._specs[::-1] if turned else self._specs
                blocks = [
                    self._block(spec, seconds, f"{2 * pair + at} of {2 * len(planned)}")
                    for at, spec in ((1, first), (2, second))
                ]
                self.pairs.append((blocks[turned], blocks[not turned]))
        finally:
            self._state.restore(self._say)

    def close(self) -> None:
        """Stop tracing."""
        if self._responses:
            self._responses.close()


def differences(pairs: Sequence[tuple[Block, Block]]) -> dict[str, Difference | None]:
    """By the figure's name."""
    return {
        name: compare([(getattr(a, name), getattr(b, name)) for a, b in pairs]) for name in FIGURES
    }


@dataclasses.dataclass(frozen=True)
class Result:
    """All that was measured."""

    disk: str
    specs: tuple[Spec, Spec]
    seed: int
    pairs: list[tuple[Block, Block]]
    stopped: bool  # before the end


def as_json(result: Result) -> str:
    """For programs; the module's docstring has the members."""
    figures = {
        name: None if one is None else {**dataclasses.asdict(one), "found": one.found}
        for name, one in differences(result.pairs).items()
    }
    data = {
        "version": VERSION,
        "disk": result.disk,
        "between": [str(spec) for spec in result.specs],
        "seed": result.seed,
        "pairs": len(result.pairs),
        "blocks": [dataclasses.asdict(block) for pair in result.pairs for block in pair],
        "figures": figures,
    }
    return json.dumps(data, indent=2) + "\n"


def _verdict(what: str, one: Difference, specs: tuple[Spec, Spec]) -> str:
    interval = f"({100 * one.low:+.1f} to {100 * one.high:+.1f})"
    if not one.found:
        return f"{what}: no difference was found {interval}"
    more = "more" if one.change > 0 else "less"
    return f"{what}: {specs[1]} has {100 * abs(one.change):.1f} % {more} than {specs[0]} {interval}"


def as_text(result: Result) -> str:
    """For people: at most 80 columns."""
    a, b = (str(spec) for spec in result.specs)
    seconds = sum(block.seconds + SETTLE_S for pair in result.pairs for block in pair)
    lines = [
        f"{result.disk}: {len(result.pairs)} pairs of blocks, {seconds / 60:.1f} minutes, "
        f"seed {result.seed}; the first {SETTLE_S:.0f} s of",
        f"each block are left out; {100 * CONFIDENCE:.0f} % confidence",
        "",
        f"{'':18} {a:>13} {b:>15}   {b} to {a}",
    ]
    found = differences(result.pairs)
    for name, what in FIGURES.items():
        one = found[name]
        lines.append(
            f"{what:18} {'not known':>13}"
            if one is None
            else f"{what:18} {one.first:>13.2f} {one.second:>15.2f}   {100 * one.change:+.1f} % "
            f"({100 * one.low:+.1f} to {100 * one.high:+.1f})"
        )
    throughput = found["mb_s"]
    if throughput:
        lines += ["", _verdict("throughput", throughput, result.specs)]
    return "\n".join(lines) + "\n"


def measure(
    name: str, between: str, minutes: float, seed: int | None, *, sys_: Path = SYS
) -> Result:
    """Compare both schedulers; all is then as before."""
    seed = int.from_bytes(os.urandom(4)) if seed is None else seed
    planned = plan(minutes, seed)
    device = device_of(name, sys_)
    specs = specs_of(between, device)
    if not os.access(device.queue / "scheduler", os.W_OK):
        raise UsageError(f"no permission to change {device.queue / 'scheduler'}; run this as root")

    def say(line: str) -> None:
        print(f"streamsched: {line}", file=sys.stderr, flush=True)

    with until_stopped() as running, keeping(device, say):
        work = Measurement(device, specs, say, running, sys_)
        try:
            say(f"{device.name}: {device.in_use} is in use, and will be again at the end")
            work.check_work()
            work.run(planned)
        except Interrupted:
            if len(work.pairs) < LEAST_PAIRS:
                raise
        finally:
            work.close()
    return Result(device.name, specs, seed, work.pairs, len(work.pairs) < len(planned))
