# SPDX-License-Identifier: GPL-2.0-only
"""What a job's settings come to: every line is applied in order, as fio does it.

Settings are kept as written until all lines of a section are read; what they mean together is
decided in jobfile.py. A section begins as a copy of what the [global] sections above it left.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping

from streamsched.base.errors import UsageError
from streamsched.base.units import fio_bytes, fio_percent, fio_time_ns, whole_number
from streamsched.work.fio_lines import Setting, expand
from streamsched.work.fio_options import (
    BY_KEY,
    ENGINES,
    IGNORED,
    NOTED,
    OPTIONS,
    OTHER_WORDS,
    RW_WORDS,
    TRIM_WORDS,
    U32_MAX,
    UNSUPPORTED,
    Kind,
    Option,
    nearest_key,
)
from streamsched.work.fio_places import Places, parse_places

READ, WRITE = 0, 1
SECTOR_BYTES = 512
MAX_BLOCK_BYTES = 2**32 - SECTOR_BYTES
MAX_SPLITS = 16  # SIM_MAX_SPLITS

# enum sim_files
SERVICES = ("roundrobin", "sequential", "random")

DEFAULTS = "the defaults"
# A blank before the value of these is part of it, or left out; else fio misreads it.
BLANKS = ("name", "filename")


@dataclasses.dataclass(frozen=True, slots=True)
class Amount:
    """Bytes, or a percentage of something."""

    value: int
    percent: bool = False


@dataclasses.dataclass(slots=True)
class Values:
    """The settings of one section. Pairs are for reads and for writes; None is unset."""

    numbers: dict[str, int] = dataclasses.field(default_factory=dict)
    amounts: dict[str, Amount] = dataclasses.field(default_factory=dict)
    words: dict[str, str] = dataclasses.field(default_factory=dict)
    rw_skip: int = 0
    rw_every: int = 1
    pairs: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    places: Places | None = None
    service: tuple[str, int] = ("roundrobin", 1)
    bs: list[int | None] = dataclasses.field(default_factory=lambda: [None, None])
    ba: list[int | None] = dataclasses.field(default_factory=lambda: [None, None])
    ranges: list[tuple[int, int] | None] = dataclasses.field(default_factory=lambda: [None, None])
    splits: list[tuple[tuple[int, int], ...] | None] = dataclasses.field(
        default_factory=lambda: [None, None]
    )
    lines: dict[str, Setting] = dataclasses.field(default_factory=dict)

    def copy(self) -> Values:
        """One for a job, which can change on its own; fio gives each its own name."""
        copied = copy.deepcopy(self)
        copied.words.pop("name", None)
        return copied

    @property
    def kb_base(self) -> int:
        """What k counts."""
        return int(self.words.get("kb_base", "1024"))

    def apply_all(self, settings: list[Setting], environ: Mapping[str, str]) -> None:
        """Apply a section's lines; kb_base goes before what it changes, wherever it stands.

        @environ: what ${NAME} is sought in, but not for keys without effect.
        """
        for setting in sorted(settings, key=lambda setting: setting.key != "kb_base"):
            self.apply(setting, environ)

    def apply(self, setting: Setting, environ: Mapping[str, str]) -> None:
        """Apply one line."""
        key, value = setting.key, setting.value
        if key in IGNORED or key in NOTED:
            return
        option = BY_KEY.get(key)
        if option is None:
            raise setting.error(_why_not(key))
        if value and value[0].isspace() and key not in BLANKS:
            raise setting.error(f'fio misreads a blank after "="; write {key}={value.strip()}')
        setting = expand(setting, environ)
        try:
            self._store(option, _value_of(option, setting))
        except UsageError as error:
            raise setting.error(str(error)) from None
        self.lines[option.key] = setting

    def _store(self, option: Option, text: str) -> None:
        key = option.key
        match option.kind:
            case Kind.AMOUNT:
                self.amounts[key] = _amount(text, self.kb_base)
            case Kind.RW:
                self.words[key], self.rw_skip, self.rw_every = _rw(text, self.kb_base)
            case Kind.SIZES:
                self._store_sizes(self.bs if key == "bs" else self.ba, text)
            case Kind.RANGE:
                self._store_ranges(text)
            case Kind.SPLIT:
                self._store_splits(text)
            case Kind.RATES | Kind.COUNTS:
                self._store_pair(option, text)
            case Kind.PLACES:
                self.places = parse_places(text, self.kb_base)
            case Kind.SERVICE:
                self.service = _service(text, self.kb_base)
            case Kind.CHOICE:
                self.words[key] = _choice(option, text)
            case Kind.TEXT:
                # As in fio: each line, also of [global], names more files.
                if key == "filename" and text and self.words.get(key):
                    text = f"{self.words[key]}:{text}"
                self.words[key] = text
            case _:
                self.numbers[key] = _number(option, text, self.kb_base)
                self._mirror(key)

    def _mirror(self, key: str) -> None:
        """Two keys of one setting."""
        if key == "rwmixwrite":
            self.numbers["rwmixread"] = 100 - self.numbers[key]
        elif key == "buffered":
            self.numbers["direct"] = 1 - self.numbers[key]

    def _store_pair(self, option: Option, text: str) -> None:
        """Numbers for reads and for writes; what is empty stays as it was."""
        parts = _directions(text)
        read, write = self.pairs.get(option.key, (0, 0))
        if not any(parts):
            raise UsageError("has no number; write one or two")
        if parts[0]:
            read = _bounded(option, _pair_number(option, parts[0], self.kb_base))
        if len(parts) == 1:
            write = read
        elif parts[1]:
            write = _bounded(option, _pair_number(option, parts[1], self.kb_base))
        self.pairs[option.key] = (read, write)

    def _store_sizes(self, pair: list[int | None], text: str) -> None:
        parts = _directions(text)
        sizes = [_block(part, self.kb_base) if part else None for part in parts]
        if not any(sizes):
            raise UsageError("no size is given; write one such as 4k")
        for direction in (READ, WRITE):
            if direction < len(sizes) and sizes[direction] is not None:
                pair[direction] = sizes[direction]
            elif len(sizes) == 1:
                pair[direction] = sizes[0]

    def _store_ranges(self, text: str) -> None:
        parts = _directions(text)
        for direction in (READ, WRITE):
            part = parts[min(direction, len(parts) - 1)]
            ends = part.replace(":", "-").split("-")
            if len(ends) != 2:
                raise UsageError(f'"{part}" is not a range; write one such as 4k-64k')
            low, high = sorted(_block(end, self.kb_base) for end in ends)
            self.ranges[direction] = (low, high)

    def _store_splits(self, text: str) -> None:
        parts = _directions(text)
        for direction in (READ, WRITE):
            self.splits[direction] = _split(parts[min(direction, len(parts) - 1)], self.kb_base)


def _why_not(key: str) -> str:
    if key in UNSUPPORTED:
        return f'"{key}" of fio is not supported; {UNSUPPORTED[key]}'
    if not key:
        return "no key stands before the equals sign; write KEY=VALUE"
    word, _, rest = key.partition(" ")
    if word in BY_KEY and rest:
        return f"has no equals sign; write {word}={rest.strip()}"
    if key.startswith("--"):
        return f"a job file has no dashes; write {key.removeprefix('--')}"
    return f'unknown key "{key}"; the nearest known one is "{nearest_key(key)}"'


def _value_of(option: Option, setting: Setting) -> str:
    if setting.value is None:
        if option.kind is not Kind.FLAG:
            example = option.default or (option.choices or ("VALUE",))[0]
            raise UsageError(f"needs a value; write {setting.key}={example}")
        return "1"
    if not setting.value and option.kind is not Kind.TEXT:
        raise UsageError("has no value; write one after the equals sign or leave the line out")
    return setting.value


def _amount(text: str, kb_base: int) -> Amount:
    percent = fio_percent(text)
    if percent is not None:
        return Amount(percent, percent=True)
    return Amount(fio_bytes(text, kb_base, percent=True))


def _block(text: str, kb_base: int) -> int:
    if "-" in text[1:]:
        raise UsageError(f'"{text}" is a range; write bsrange={text}')
    size = fio_bytes(text, kb_base)
    if not 0 < size <= MAX_BLOCK_BYTES:
        raise UsageError(f'"{text}" is not a block size; write 512 bytes to 4095m')
    if size % SECTOR_BYTES:
        hint = f", that is {size} bytes," if text != str(size) else " bytes"
        kib = "; fio's kib counts 1000, its k 1024" if text.lower().endswith("ib") else ""
        raise UsageError(
            f"{text}{hint} is not a multiple of the disk's {SECTOR_BYTES}-byte sectors; "
            f"write one that is{kib}"
        )
    return size


def _directions(text: str) -> list[str]:
    """The parts for reads, writes and trims; the last is of no use here."""
    parts = text.split(",")
    if len(parts) > 3:
        raise UsageError("has more than three parts; write those for reads and for writes")
    return parts[:2]


def _pair_number(option: Option, text: str, kb_base: int) -> int:
    return fio_bytes(text, kb_base) if option.kind is Kind.RATES else _count(text, kb_base)


def _rw(text: str, kb_base: int) -> tuple[str, int, int]:
    """The pattern, what it skips after each block, and how many blocks go to one position."""
    word, colon, postfix = text.partition(":")
    if word in TRIM_WORDS:
        raise UsageError(f"the simulated disk has no trim; write {', '.join(RW_WORDS)}")
    if word not in RW_WORDS:
        raise UsageError(f'"{word}" is not a pattern; write {", ".join(RW_WORDS)}')
    if not colon:
        return word, 0, 1
    if word.startswith("rand"):
        every = fio_bytes(postfix, kb_base)
        if not 0 < every <= U32_MAX:
            raise UsageError(f'"{postfix}" is not a number of blocks; write {word}:8, say')
        return word, 0, every
    sign = -1 if postfix.startswith("-") else 1
    return word, sign * fio_bytes(postfix.removeprefix("-"), kb_base), 1


def _service(text: str, kb_base: int) -> tuple[str, int]:
    """How files have their turns, and how many blocks one is."""
    word, colon, postfix = text.partition(":")
    if word not in SERVICES:
        raise UsageError(f'"{word}" is not one of {", ".join(SERVICES)}; write one of these')
    blocks = _count(postfix, kb_base) if colon else 1
    if not 0 < blocks <= U32_MAX:
        raise UsageError(f'"{postfix}" is not a number of blocks; write {word}:8, say')
    return word, blocks


def _split(text: str, kb_base: int) -> tuple[tuple[int, int], ...]:
    """Sizes with weights that sum to 100."""
    entries: list[tuple[int, int | None]] = []
    for part in text.split(":"):
        size, _, weight = part.partition("/")
        percent = whole_number(weight or "0")
        if percent is None:
            raise UsageError(f'"{weight}" is not a percentage; write sizes such as 4k/60:64k/40')
        entries.append((_block(size, kb_base), percent or None))
    if len(entries) > MAX_SPLITS:
        raise UsageError(f"has {len(entries)} sizes; write at most {MAX_SPLITS}")
    given = sum(weight or 0 for _, weight in entries)
    unset = [at for at, (_, weight) in enumerate(entries) if weight is None]
    if given > 100 or (given < 100 and not unset):
        raise UsageError(f"the percentages add up to {given}; make them 100")
    weights = [weight or 0 for _, weight in entries]
    for at in unset:
        weights[at] = (100 - given) // len(unset)
    if unset:
        weights[unset[-1]] += 100 - sum(weights)
    smallest = min(size for size, _ in entries)
    return tuple(
        (size - size % smallest, weight)
        for (size, _), weight in zip(entries, weights, strict=True)
        if weight
    )


def _choice(option: Option, text: str) -> str:
    if option.key == "ioengine":
        text = OTHER_WORDS.get(text, text)
        if why := ENGINES.get(text):
            raise UsageError(f"it {why}; write ioengine=psync or libaio")
    if text in option.choices:
        return text
    if len(option.choices) == 1 or option.key == "verify":
        raise UsageError(f"only {option.choices[0]} is supported; {_lower(option.help)}")
    raise UsageError(f'"{text}" is not one of them; write {", ".join(option.choices)}')


def _lower(sentence: str) -> str:
    return (sentence[0].lower() + sentence[1:]).removesuffix(".")


def _number(option: Option, text: str, kb_base: int) -> int:
    match option.kind:
        case Kind.SECONDS | Kind.MICROSECONDS:
            if "-" in text[1:]:
                raise UsageError("a range of times is not supported; write one time")
            value = fio_time_ns(text, "s" if option.kind is Kind.SECONDS else "us")
        case Kind.BOOL | Kind.FLAG:
            if text not in ("0", "1"):
                raise UsageError(f'"{text}" is neither on nor off; write 1 or 0')
            value = int(text)
        case Kind.BYTES:
            if "-" in text[1:]:
                raise UsageError("a range of sizes is not supported; write one size")
            value = fio_bytes(text, kb_base)
        case _:
            value = _count(text, kb_base)
    return _bounded(option, value)


def _bounded(option: Option, value: int) -> int:
    if option.maximum is None:
        if value < option.minimum:
            raise UsageError(f"is too small; the least is {option.minimum}")
    elif not option.minimum <= value <= option.maximum:
        raise UsageError(f"is out of range; write {option.minimum} to {option.maximum}")
    return value


def _count(text: str, kb_base: int) -> int:
    number = whole_number(text)
    if number is not None:  # a seed may be larger than fio_bytes() allows
        return number
    if text[:1] == "-" and whole_number(text[1:]) is not None:
        raise UsageError(f'"{text}" is negative; write a number such as 4')
    try:
        return fio_bytes(text, kb_base)
    except UsageError:
        raise UsageError(f'"{text}" is not a whole number; write one such as 4') from None


def defaults() -> Values:
    """The values of a section in which nothing is said."""
    values = Values()
    for option in OPTIONS:
        if option.default and option.key not in ("buffered",):
            values.apply(Setting(DEFAULTS, 0, option.key, option.default), {})
    values.lines.clear()
    return values
