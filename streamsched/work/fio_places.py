# SPDX-License-Identifier: GPL-2.0-only
"""fio's random_distribution: where random blocks lie, as shares of 2^64 for the simulator.

The shares are computed with decimal fractions, never with floating point, so that they are the
same on every machine. Distributions over many blocks are a table of ranges: each of the most
popular blocks is a range of its own, further ones share theirs, up to a 64th of their number.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from decimal import ROUND_CEILING, Decimal, InvalidOperation, localcontext

from streamsched.base.errors import UsageError
from streamsched.base.units import fio_bytes, whole_number

NAMES = ("random", "zipf", "pareto", "normal", "zoned", "zoned_abs")
# fio's, for a word without a number.
DEFAULTS = {"zipf": Decimal("1.1"), "pareto": Decimal("0.2"), "normal": Decimal(0)}
MAX_ZONES = 256
# enum sim_places
UNIFORM, TABLE, NORMAL = range(3)

SHARES = 2**64
DIGITS = 40
OCTAVE = 64  # ranges in which the number of blocks doubles

Zone = tuple[int, int]  # percentage of requests, and of the blocks (or bytes)
Table = tuple[tuple[int, ...], tuple[int, ...]]  # ends in blocks, shares below


@dataclasses.dataclass(frozen=True, slots=True)
class Places:
    """One random_distribution."""

    name: str
    value: Decimal = Decimal(0)
    center: Decimal | None = None
    zones: tuple[tuple[Zone, ...], tuple[Zone, ...]] = ((), ())  # of reads, of writes

    def __str__(self) -> str:
        """As fio reads it."""
        if not self.zoned:
            center = "" if self.center is None else f":{self.center:f}"
            return f"{self.name}:{self.value:f}{center}"
        parts = (":".join(f"{pct}/{size}" for pct, size in zones) for zones in self.zones)
        return f"{self.name}:{','.join(dict.fromkeys(parts))}"

    @property
    def zoned(self) -> bool:
        """Whether parts of the region are named."""
        return self.name.startswith("zoned")

    def shift(self, units: int) -> int:
        """How far center moves everything."""
        if self.center is None:
            return 0
        center = self.center - (Decimal("0.5") if self.name == "normal" else 0)
        return int(center * units) % units

    def spread(self, units: int) -> int:
        """What a deviation adds to a normal distribution, both sides together."""
        if self.name != "normal":
            return 0
        exact = self.value * units / 100
        return min(int(exact.to_integral_value(ROUND_CEILING)), units // 2)

    def table(self, direction: int, units: int, unit_bytes: int) -> Table | None:
        """What sim_set_places() takes; None for a normal distribution."""
        match self.name:
            case "zipf":
                return _zipf(self.value, units)
            case "pareto":
                return _pareto(self.value, units)
            case "zoned":
                return _zoned([(pct, at * units // 100) for pct, at in self.ends(direction)])
            case "zoned_abs":
                return _zoned([(pct, at // unit_bytes) for pct, at in self.ends(direction)])
        return None

    def ends(self, direction: int) -> Iterator[Zone]:
        """Percentage of requests of each zone, and where it ends."""
        zones = self.zones[direction]
        sizes = itertools.accumulate(size for _, size in zones)
        return ((pct, end) for (pct, _), end in zip(zones, sizes, strict=True))


# ---- as written ----


def parse_places(text: str, kb_base: int) -> Places | None:
    """Read a value of random_distribution; None for random, which is uniform."""
    name, _, rest = text.partition(":")
    if name not in NAMES:
        raise UsageError(f'"{name}" is not a distribution; write {", ".join(NAMES)}')
    if name == "random":
        return None
    if name.startswith("zoned"):
        return _parse_zones(name, rest, kb_base)
    number, _, middle = rest.partition(":")
    value = _decimal(number) if number else DEFAULTS[name]
    center = _decimal(middle) if middle else None
    if center is not None and not 0 <= center <= 1:
        raise UsageError(f"the center {middle} is out of range; write 0 to 1")
    if name == "zipf" and (value <= 0 or value == 1 or value > 100):
        raise UsageError(f"zipf of {value} is out of range; write above 0, not 1, as in zipf:1.2")
    if name == "pareto" and not 0 < value < 1:
        raise UsageError(f"pareto of {value} is out of range; write between 0 and 1")
    if name == "normal" and not 0 <= value < 100:
        raise UsageError(f"a deviation of {value} is out of range; write 0 to below 100 percent")
    return Places(name, value, center)


def _decimal(text: str) -> Decimal:
    try:
        if len(text) <= 20 and whole_number(text.replace(".", "", 1)) is not None:
            return Decimal(text)
    except InvalidOperation:
        pass
    raise UsageError(f'"{text}" is not a number; write one such as 1.2')


def _parse_zones(name: str, text: str, kb_base: int) -> Places:
    parts = text.split(",")
    if len(parts) > 3:
        raise UsageError("has more than three parts; write those for reads and for writes")
    zones = [_zones(name, part, kb_base) for part in parts[:2]]
    return Places(name, zones=(zones[0], zones[-1]))


def _zones(name: str, text: str, kb_base: int) -> tuple[Zone, ...]:
    zones: list[tuple[int, int | None]] = []
    percent = name == "zoned"
    example = f"{name}:60/10:40/90" if percent else f"{name}:60/10g:40/90g"
    for part in text.split(":"):
        requests, _, size = part.partition("/")
        if whole_number(requests) is None or len(requests) > 3:
            raise UsageError(f'"{part}" is not a zone; write percentages, as in {example}')
        if percent and (not size or (whole_number(size) is not None and len(size) <= 3)):
            zones.append((int(requests), int(size) if size else None))
        elif not percent and size:
            zones.append((int(requests), fio_bytes(size, kb_base)))
        else:
            raise UsageError(f'"{part}" has no size; write one, as in {example}')
    if len(zones) > MAX_ZONES:
        raise UsageError(f"has {len(zones)} zones; write at most {MAX_ZONES}")
    total = sum(requests for requests, _ in zones)
    if total != 100:
        raise UsageError(f"the percentages of requests add up to {total}; make them 100")
    given = sum(size or 0 for _, size in zones)
    unset = sum(size is None for _, size in zones)
    if percent and given > 100:
        raise UsageError(f"the percentages of the size add up to {given}; make them at most 100")
    filled = tuple((pct, (100 - given) // unset if size is None else size) for pct, size in zones)
    if not all(size for _, size in filled):
        raise UsageError(f"a zone has no size; write one, as in {example}")
    return filled


# ---- as shares ----


def _edges(blocks: int, octave: int) -> list[int]:
    """Ends of ranges from 1 to @blocks: each block, then a part of @octave of what is before."""
    edges = list(range(1, min(blocks, 2 * octave)))
    while edges and edges[-1] < blocks:
        edges.append(min(blocks, edges[-1] + max(1, edges[-1] // octave)))
    return edges or [blocks]


def _shares(sums: list[Decimal]) -> tuple[int, ...]:
    whole = sums[-1]
    return tuple(min(SHARES - 1, int(part * SHARES / whole)) for part in sums)


@functools.lru_cache(maxsize=32)
def _zipf(theta: Decimal, blocks: int) -> Table:
    """The n-th most popular of @blocks is asked for n ** -theta times as often as the first."""
    ends = _edges(blocks, OCTAVE)
    sums: list[Decimal] = []
    with localcontext(prec=DIGITS):
        half, power = Decimal("0.5"), 1 - theta
        total, before = Decimal(0), 0
        low = half**power
        for end in ends:
            high = (end + half) ** power
            # The sum over a range is the integral around its middle, but for the first ones.
            total += Decimal(end) ** -theta if end == before + 1 else (high - low) / power
            sums.append(total)
            low, before = high, end
        return tuple(ends), _shares(sums)


@functools.lru_cache(maxsize=32)
def _pareto(part: Decimal, blocks: int) -> Table:
    """fio's: @part of the blocks get 1 - @part of the requests."""
    if blocks == 1:
        return (1,), (SHARES - 1,)
    with localcontext(prec=DIGITS):
        power = (1 - part).ln() / part.ln()
        ends = _edges(blocks - 1, OCTAVE * max(1, min(16, int(power) + 1)))
        return tuple(ends), _shares([(Decimal(end) / (blocks - 1)) ** power for end in ends])


def _zoned(zones: list[Zone]) -> Table:
    """Ranges of the region, each with so many of 100 requests."""
    below = itertools.accumulate(pct for pct, _ in zones)
    return (
        tuple(end for _, end in zones),
        tuple(min(SHARES - 1, SHARES * pct // 100) for pct in below),
    )
