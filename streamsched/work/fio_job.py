# SPDX-License-Identifier: GPL-2.0-only
"""One job of a fio job file: its options together, refused where they do not go together."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from streamsched.base.errors import UsageError
from streamsched.work.fio_lines import Section
from streamsched.work.fio_options import ASYNC_ENGINES, MAX_FILES
from streamsched.work.fio_values import READ, SECTOR_BYTES, WRITE, Amount, Values
from streamsched.work.process import RW_BITS, RW_RANDOM, RW_READ, RW_WRITE, Pair

NAME_BYTES = 63  # sim/sim.h has char name[64]
COLON = re.compile(r"(?<!\\):")  # between two names


@dataclasses.dataclass(frozen=True, slots=True)
class Blocks:
    """The block sizes of one direction: with weights or, with @high, a range."""

    sizes: tuple[int, ...]
    weights: tuple[int, ...]
    low: int = 0
    high: int = 0

    @property
    def smallest(self) -> int:
        return self.low or min(self.sizes)

    @property
    def mean(self) -> int:
        if self.high:
            return (self.low + self.high) // 2
        return sum(s * w for s, w in zip(self.sizes, self.weights, strict=True)) // 100


def names_of(text: str) -> list[str]:
    r"""The names of a list; "\:" is a colon of one."""
    return [part.replace(r"\:", ":") for part in COLON.split(text) if part.strip()]


class FioJob:
    """What the clones of a section have in common, as fio takes it.

    All sizes are bytes. Options that do not go together are a UsageError, which names the line.
    """

    def __init__(self, section: Section, values: Values) -> None:
        self.section = section
        self.values = values
        self.name = values.words.get("name") or section.name
        if len(self.name.encode()) > NAME_BYTES:
            raise section.error(f"its name is longer than {NAME_BYTES} bytes; write a shorter one")
        self.bits = RW_BITS[values.words["rw"]]
        self.skip = values.rw_skip
        self.by_order = bool(values.numbers["bs_is_seq_rand"])
        self.random = bool(self.bits & RW_RANDOM)
        self.blocks = (self._blocks(READ), self._blocks(WRITE))
        self.min_bs = min(blocks.smallest for blocks in self.blocks)
        used = [
            b
            for at, b in enumerate(self.blocks)
            if self.by_order or self.bits & (RW_READ, RW_WRITE)[at]
        ]
        self.used_min = min(blocks.smallest for blocks in used)
        self.mean = sum(blocks.mean for blocks in used) // len(used)
        sizes = {size for blocks in used for size in blocks.sizes}
        # The one block size of a job that has only one.
        self.fixed = sizes.pop() if len(sizes) == 1 and not any(b.high for b in used) else None
        self.align, self.own_align = self._align()
        self.places = values.places if self.random else None
        # As in fio: with any distribution but the uniform one, blocks may come twice.
        self.norandommap = (
            bool(values.numbers["norandommap"]) or self.own_align or self.places is not None
        )
        self.strided = values.words["zonemode"] == "strided"
        self.directories = names_of(values.words.get("directory", "")) or [""]
        self.names = [name.strip() for name in names_of(values.words.get("filename", ""))]
        # As in fio: whoever names files has those.
        self.files = len(self.names) if "filename" in values.words else self.number("nrfiles")
        # As in fio.
        self.no_runtime = bool(self.number("time_based") and not self.number("runtime"))
        if self.no_runtime:
            values.numbers["time_based"] = 0
        self.synced = values.words["sync"] not in ("none", "0") and bool(self.bits & RW_WRITE)
        if self.synced:
            values.numbers.update(fsync=1, fdatasync=0)
        self._check()
        self._check_pace()
        self._check_files()
        if values.numbers["filesize"]:
            self._take_filesize()

    def fail(self, key: str, problem: str) -> UsageError:
        """The error of a setting, or of the section if that is not set in the file."""
        setting = self.values.lines.get(key)
        return setting.error(problem) if setting else self.section.error(f"{key}: {problem}")

    def number(self, key: str) -> int:
        """The option @key: bytes, ns or a count, as fio_options.py says."""
        return self.values.numbers[key]

    def pair(self, key: str) -> Pair:
        """Numbers for reads and for writes; 0 where none is set."""
        return self.values.pairs.get(key, (0, 0))

    def _blocks(self, direction: int) -> Blocks:
        values = self.values
        split, bounds = values.splits[direction], values.ranges[direction]
        if split and bounds:
            raise self.fail("bssplit", "bsrange is set as well; write one of the two")
        if split:
            return Blocks(tuple(s for s, _ in split), tuple(w for _, w in split))
        if bounds and bounds[0] < bounds[1]:
            return Blocks((), (), *bounds)
        size = bounds[0] if bounds else values.bs[direction]
        assert size is not None  # bs has a default
        return Blocks((size,), (100,))

    def _align(self) -> tuple[int, bool]:
        """Alignment of random positions, and whether it is the user's own."""
        if not self.random:
            return self.used_min, False
        used = [at for at in (READ, WRITE) if self.bits & (RW_READ, RW_WRITE)[at]]
        aligns = [self.values.ba[at] or self.blocks[at].smallest for at in used]
        own = any(
            (self.values.ba[at] or blocks.smallest) != blocks.smallest
            for at, blocks in enumerate(self.blocks)
        )
        return min(aligns), own

    def _check(self) -> None:
        """What does not go together."""
        number = self.number
        if number("fsync") and number("fdatasync") and number("fsync") != number("fdatasync"):
            raise self.fail("fdatasync", "fsync is set to another number; write one of the two")
        if not self.strided:
            for key in ("zonesize", "zonerange", "zoneskip"):
                if number(key):
                    raise self.fail(key, "needs zonemode=strided; write that too")
        elif not number("zonesize"):
            raise self.fail("zonemode", "needs a zonesize; write zonesize=1m, say")
        elif self.skip:
            raise self.fail("rw", "cannot skip within zones; write zoneskip")
        for key in ("zonesize", "zonerange", "zoneskip", "offset_align"):
            self.check_sectors(key, number(key))
        if self.skip < 0 and (self.fixed is None or -self.skip < self.fixed):
            raise self.fail(
                "rw",
                "goes backwards by less than a block, or blocks have several sizes; with bs=4k "
                "write read:-8k",
            )
        if self.skip % SECTOR_BYTES:
            raise self.fail("rw", f"skips a part of a {SECTOR_BYTES}-byte sector; skip whole ones")
        if number("number_ios") and self.fixed is None:
            raise self.fail("number_ios", "blocks have several sizes; write io_size")

        if self.places and self.strided:
            raise self.fail(
                "random_distribution", "does not go with zonemode=strided; write one of the two"
            )

    def _check_pace(self) -> None:
        """When it does something, and where without a file's name."""
        values = self.values
        if any(self.pair("rate")) and any(self.pair("rate_iops")):
            raise self.fail("rate_iops", "rate is set as well; write one of the two")
        if self.number("thinktime") and values.words["io_submit_mode"] == "offload":
            raise self.fail("io_submit_mode", "does not go with thinktime; write one of the two")
        deep = values.words["io_submit_mode"] == "offload" and self.number("iodepth") > 1
        if deep and not self.number("direct"):
            raise self.fail("io_submit_mode", "needs direct=1 to keep several in flight")
        if values.words.get("wait_for") == self.name:
            raise self.fail("wait_for", "a job cannot wait for itself; name one above")

    def _check_files(self) -> None:
        """What several files cannot have."""
        if "filename" in self.values.words and not self.names:
            raise self.fail("filename", "names no file; write one, or leave the line out")
        if self.files == 1:
            return
        if self.files > MAX_FILES:
            raise self.fail("filename", f"names {self.files} files; write at most {MAX_FILES}")
        key = self.files_key
        if self.strided:
            raise self.fail(key, "does not go with zonemode=strided; write one of the two")
        if self.places:
            raise self.fail(key, "does not go with random_distribution; leave one of the two out")
        if not self.values.amounts.get("size") and not self.number("filesize"):
            raise self.fail(key, "fio divides size among them; write size= or filesize=")

    def _take_filesize(self) -> None:
        """Filesize is the region; size, beside it, only how much is transferred."""
        amounts = self.values.amounts
        region = self.number("filesize") * self.files
        size = amounts.get("size")
        if size and size.value and not size.percent and size.value > region:
            what = "is" if self.files == 1 else f"{self.files} files of it are"
            raise self.fail(
                "filesize", f"{what} less than size={size.value}; write io_size instead"
            )
        if size and size.value and not (amounts.get("io_size") and amounts["io_size"].value):
            amounts["io_size"] = size
        amounts["size"] = Amount(region)

    @property
    def files_key(self) -> str:
        """The key that says how many files there are."""
        return "filename" if self.names else "nrfiles"

    @property
    def shares(self) -> bool:
        """Whether its region is a share of what is there, which must be known."""
        amounts = self.values.amounts
        size = amounts.get("size")
        if not size or not size.value or size.percent:
            return True
        return any(
            amounts[key].percent and amounts[key].value for key in ("offset", "offset_increment")
        )

    def check_sectors(self, key: str, value: int) -> None:
        """A UsageError unless @value, the bytes of option @key, are whole sectors."""
        if value % SECTOR_BYTES:
            raise self.fail(
                key,
                f"{value} bytes is not a multiple of the disk's {SECTOR_BYTES}-byte sectors; "
                "write one that is",
            )

    @property
    def is_async(self) -> bool:
        """Whether its engine keeps several requests in flight."""
        return self.values.words["ioengine"] in ASYNC_ENGINES

    def rate(self) -> Pair:
        """Bytes a second, however it is given."""
        by_bytes, by_blocks = self.pair("rate"), self.pair("rate_iops")
        reads, writes = (
            by_bytes[at] or by_blocks[at] * self.blocks[at].smallest for at in (READ, WRITE)
        )
        return reads, writes

    def notes(self) -> Iterator[str]:
        """What is of no effect, though it is no error to fio."""
        number = self.number
        if self.no_runtime:
            yield f"time_based of {self.name} is of no effect without a runtime"
        if self.names and number("nrfiles") > 1:
            yield f"nrfiles={number('nrfiles')} of {self.name} is of no effect beside a filename"
        depth = number("iodepth")
        if depth > 1 and not self.is_async and self.values.words["io_submit_mode"] != "offload":
            yield (
                f"iodepth={depth} of {self.name} is of no effect with "
                f"ioengine={self.values.words['ioengine']}; libaio keeps so many in flight"
            )
        elif depth > 1 and not number("direct"):
            yield f"iodepth={depth} of {self.name} is of no effect without direct=1"
