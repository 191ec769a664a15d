# SPDX-License-Identifier: GPL-2.0-only
"""fio job files as workloads: text in, one Process per clone out, computed as fio computes it.

What each option means is in fio_options.py, how lines are read in fio_lines.py, how values are
read in fio_values.py; here is what they mean together. docs/JOBS.md describes all of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamsched.base.errors import UsageError
from streamsched.base.units import FIO_MAX
from streamsched.work import fio_lines
from streamsched.work.fio_lines import read_sections, read_text
from streamsched.work.fio_options import ASYNC_ENGINES, IGNORED, MAX_JOBS, options_markdown
from streamsched.work.fio_places import NORMAL, TABLE, UNIFORM, Places
from streamsched.work.fio_values import (
    READ,
    SECTOR_BYTES,
    SERVICES,
    WRITE,
    Amount,
    Values,
    defaults,
)
from streamsched.work.process import RW_BITS, RW_RANDOM, RW_READ, RW_WRITE, Pair, Process

__all__ = [
    "Blocks",
    "JobFile",
    "Section",
    "load_job_file",
    "load_jobs",
    "options_markdown",
    "parse_job_file",
    "parse_jobs",
]

FILE_ALIGN = 4096  # where a file system begins one
NAME_BYTES = 63  # of char name[64]
# A run with a seed starts each process within so long.
START_SPREAD_NS = 20_000_000
U64_MASK = 2**64 - 1
# enum sim_exits
EXITS = {"group": 1, "stonewall": 2, "all": 3}


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


@dataclasses.dataclass(frozen=True, slots=True)
class _Region:
    offset: int
    size: int
    io_bytes: int
    # Of several files: from one to the next, and what is used of each.
    file_stride: int = 0
    file_size: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """One section, as fio_write.py writes it for a real fio."""

    name: str
    values: Values
    blocks: tuple[Blocks, Blocks]
    iodepth: int  # what is really kept in flight


@dataclasses.dataclass(frozen=True, slots=True)
class JobFile:
    """A job file that was read once, for all that is done with it."""

    name: str
    processes: tuple[Process, ...]
    sections: tuple[Section, ...]
    exits: bool = False  # the end of one job is that of others
    ignored: tuple[str, ...] = ()  # accepted keys without effect, which no fio is given
    sha256: str = ""  # of the text


class _Job:
    """One section, with everything that its clones have in common."""

    def __init__(self, section: fio_lines.Section, values: Values, capacity: int | None) -> None:
        self.section = section
        self.values = values
        self.capacity = capacity
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
        # As in fio: whoever names a file has that one.
        self.files = 1 if "filename" in values.words else self.number("nrfiles")
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
        return self.values.numbers[key]

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
        if number("time_based") and not number("runtime"):
            raise self.fail("time_based", "there is no runtime; write runtime=30s, say")
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
            self._whole_sectors(key, number(key))
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
        if "directory" in values.words and "filename" not in values.words and self.files == 1:
            raise self.fail(
                "directory",
                "without a filename fio makes a file there for each job, and here is one disk; "
                "write filename=, and offset= if each shall have its own part",
            )

    @property
    def _is_async(self) -> bool:
        return self.values.words["ioengine"] in ASYNC_ENGINES

    def notes(self) -> Iterator[str]:
        """What is of no effect, though it is no error to fio."""
        number = self.number
        if self.files < number("nrfiles"):
            yield f"nrfiles={number('nrfiles')} of {self.name} is of no effect beside a filename"
        depth = number("iodepth")
        if depth > 1 and not self._is_async and self.values.words["io_submit_mode"] != "offload":
            yield (
                f"iodepth={depth} of {self.name} is of no effect with "
                f"ioengine={self.values.words['ioengine']}; libaio keeps so many in flight"
            )
        elif depth > 1 and not number("direct"):
            yield f"iodepth={depth} of {self.name} is of no effect without direct=1"

    def _check_files(self) -> None:
        """What several files cannot have."""
        if self.files == 1:
            return
        if self.strided:
            raise self.fail("nrfiles", "does not go with zonemode=strided; write one of the two")
        if self.places:
            raise self.fail(
                "nrfiles", "does not go with random_distribution; leave one of the two out"
            )
        if not self.values.amounts.get("size") and not self.number("filesize"):
            raise self.fail("nrfiles", "fio divides size among them; write size= or filesize=")

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

    def pair(self, key: str) -> Pair:
        """Numbers for reads and for writes; 0 where none is set."""
        return self.values.pairs.get(key, (0, 0))

    def _rate(self) -> Pair:
        """Bytes a second, however it is given."""
        by_bytes, by_blocks = self.pair("rate"), self.pair("rate_iops")
        reads, writes = (
            by_bytes[at] or by_blocks[at] * self.blocks[at].smallest for at in (READ, WRITE)
        )
        return reads, writes

    def _whole_sectors(self, key: str, value: int) -> None:
        if value % SECTOR_BYTES:
            raise self.fail(
                key,
                f"{value} bytes is not a multiple of the disk's {SECTOR_BYTES}-byte sectors; "
                "write one that is",
            )

    def _disk_bytes(self, key: str, what: str) -> int:
        if self.capacity is None:
            raise self.fail(key, f"{what} depends on the disk, and none is given; write bytes")
        return self.capacity

    def _offset(self, clone: int) -> int:
        start, step = self.values.amounts["offset"], self.values.amounts["offset_increment"]
        increment = step.value
        if step.percent:
            increment = step.value * self._disk_bytes("offset_increment", "a percentage") // 100
        offset = start.value
        if start.percent:
            offset = start.value * self._disk_bytes("offset", "a percentage") // 100
        offset += clone * increment
        if (start.percent and start.value) or (step.percent and step.value):
            align = self.number("offset_align") or self.min_bs
            offset = -(-offset // align) * align
        else:
            self._whole_sectors("offset", start.value)
            self._whole_sectors("offset_increment", increment)
        return offset

    def _length(self, offset: int) -> int:
        """Bytes from @offset on that size stands for."""
        size = self.values.amounts.get("size")
        if size is None or not size.value or (size.percent and size.value == 100):
            return self._disk_bytes("size", "the rest of the disk") - offset
        if size.percent:
            disk = self._disk_bytes("size", "a percentage")
            length = min(disk * size.value // 100, disk - offset)
            return length - length % self.min_bs
        if size.value < self.used_min:
            raise self.fail("size", f"is less than one block of {self.used_min} bytes; write more")
        return size.value

    def _beyond(self, clone: int, what: str, byte: int) -> UsageError:
        which = f"clone {clone + 1} of job" if self.number("numjobs") > 1 else "job"
        return UsageError(
            f"{self.section.source}, line {self.section.line}: {which} {self.name}: {what} at byte "
            f"{byte}, but the disk has {self.capacity} bytes; make offset or size smaller, or take "
            "a larger disk"
        )

    def region(self, clone: int) -> _Region:
        """Where a clone works, and how much it does there."""
        offset = self._offset(clone)
        if self.capacity is not None and offset >= self.capacity:
            raise self._beyond(clone, "its region begins", offset)
        length = self._length(offset)
        if self.files > 1:
            return self._divided(clone, offset, length)
        if self.strided:
            size, whole = self._strided(clone, offset, length)
        else:
            if self.capacity is not None and offset + length > self.capacity:
                raise self._beyond(clone, "its region ends", offset + length)
            size, whole = self._random(length) if self.random else self._in_order(offset, length)
        return self._checked(_Region(offset, size, self._io_bytes(length, whole)), length)

    def _divided(self, clone: int, offset: int, length: int) -> _Region:
        """Several files: whole blocks of each are used, and each begins with a whole page."""
        each = length // self.files
        if self.capacity is not None and offset + length == self.capacity:
            each -= each % FILE_ALIGN
        used = each - each % (self.align if self.random else self.used_min)
        if not used:
            raise self.fail(
                "nrfiles",
                f"a file of {each} bytes holds no block of {self.used_min}; write fewer",
            )
        stride = -(-each // FILE_ALIGN) * FILE_ALIGN
        size = stride * self.files
        if self.capacity is not None and offset + size > self.capacity:
            raise self._beyond(clone, "the last of its files ends", offset + size)
        whole = self._up(length) if self.random and self.norandommap else used * self.files
        region = _Region(offset, size, self._io_bytes(length, whole), stride, used)
        return self._checked(region, length)

    def _checked(self, region: _Region, length: int) -> _Region:
        offset, size, io_bytes = region.offset, region.size, region.io_bytes
        if size <= 0 or io_bytes <= 0:
            raise self.section.error(
                f"its region of {length} bytes at {offset} holds no block of {self.used_min} "
                "bytes; make size larger"
            )
        if io_bytes > FIO_MAX:
            raise self.section.error(f"transfers more than {FIO_MAX} bytes; make size smaller")
        return region

    def _up(self, length: int) -> int:
        """Whole blocks, the last of which goes beyond @length: fio counts before a block."""
        block = self.fixed or self.used_min
        return -(-length // block) * block

    def _strided(self, clone: int, offset: int, length: int) -> Pair:
        """Zones go on to the end of the disk, wherever size ends; then from the start."""
        zone_size = self.number("zonesize")
        zone_range = self.number("zonerange") or zone_size
        if self.capacity is None:
            zones = -(-self._io_bytes(length, self._up(length)) // zone_size)
            return zones * (zone_range + self.number("zoneskip")), self._up(length)
        if offset + zone_range > self.capacity:
            raise self._beyond(clone, "its first zone ends", offset + zone_range)
        return self.capacity - offset, self._up(length)

    def _random(self, length: int) -> Pair:
        """Random positions are multiples of the alignment; the rest stays untouched."""
        size = length - length % self.align
        if self.norandommap:
            return size, self._up(length)
        block = self.fixed or self.used_min
        return size, length - length % block

    def _in_order(self, offset: int, length: int) -> Pair:
        """The last block of one pass begins within the region; it may end behind it."""
        if self.fixed is None:
            size = length - length % self.used_min
            blocks = -(-size // (self.mean + self.skip))
            # How much one pass transfers depends on chance; this is its mean.
            return size, self._up(blocks * self.mean) if self.skip else size
        if self.skip < 0:  # it comes round as often as needed
            return length - length % SECTOR_BYTES, self._up(length)
        step = self.fixed + self.skip
        blocks = -(-length // step)
        end = (blocks - 1) * step + self.fixed
        if self.capacity is not None and offset + end > self.capacity:
            blocks -= 1
            end -= step
        size = length - length % SECTOR_BYTES if self.skip else 0
        return max(end, size), blocks * self.fixed

    def _io_bytes(self, length: int, whole: int) -> int:
        """What io_size, number_ios and loops make of @whole, the bytes of one pass."""
        io_size = self.values.amounts.get("io_size")
        if io_size is None or not io_size.value:
            total = whole
        elif io_size.percent:
            total = min(whole, self._up(length * io_size.value // 100))
        else:
            total = self._up(io_size.value)
        if self.number("number_ios") and self.fixed is not None:
            total = min(total, self.number("number_ios") * self.fixed)
        return total * self.number("loops")

    def _opens(self) -> str:
        words = self.values.words
        name = words.get("filename", "")
        return f"{words['directory']}/{name}" if name and words.get("directory") else name

    def processes(
        self, section: int, group: int, stage: int, exits: bool, exit_group: int
    ) -> Iterator[Process]:
        """All clones, in ascending order of position; @exits: the end of one is that of others."""
        number = self.number
        writes = bool(self.bits & RW_WRITE)
        direct = bool(number("direct"))
        offload = self.values.words["io_submit_mode"] == "offload"
        deep = direct and (offload or self._is_async)
        percentages = self.pair("percentage_random")
        places = self.places
        rate = self._rate()
        mixed = bool(self.bits & RW_READ) and writes
        reads, written = self.blocks
        for clone in range(number("numjobs")):
            region = self.region(clone)
            units = region.size // self.align
            yield Process(
                name=self.name,
                section=section,
                group=group,
                rw=self.bits,
                read_pct=number("rwmixread") if mixed else (0 if writes else 100),
                offset=region.offset,
                size=region.size,
                io_bytes=region.io_bytes,
                nr_splits=(len(reads.sizes), len(written.sizes)),
                split_bytes=(reads.sizes, written.sizes),
                split_pct=(reads.weights, written.weights),
                range_min=(reads.low, written.low),
                range_max=(reads.high, written.high),
                align_bytes=self.align,
                seq_skip=self.skip,
                direct=direct,
                norandommap=self.norandommap,
                iodepth=number("iodepth") if deep else 1,
                thinktime_ns=number("thinktime"),
                thinktime_blocks=number("thinktime_blocks"),
                startdelay_ns=number("startdelay"),
                runtime_ns=number("runtime"),
                time_based=bool(number("time_based")),
                fsync_blocks=(number("fsync") or number("fdatasync")) if writes else 0,
                end_fsync=writes and bool(number("end_fsync") or number("fsync_on_close")),
                seed=self.values.numbers.get("randseed", 0),
                stage=stage,
                zone_size=number("zonesize") if self.strided else 0,
                zone_range=(number("zonerange") or number("zonesize")) if self.strided else 0,
                zone_skip=number("zoneskip") if self.strided else 0,
                in_order_pct=(100 - percentages[READ], 100 - percentages[WRITE]),
                random_every=self.values.rw_every,
                stays=self.values.words["rw_sequencer"] == "identical",
                sizes_by_order=self.by_order,
                places=UNIFORM if not places else NORMAL if places.name == "normal" else TABLE,
                scattered=places is not None and not places.zoned,
                scattered_alike=places is not None
                and (places.name == "normal" or places.center is not None),
                places_shift=places.shift(units) if places else 0,
                normal_spread=places.spread(units) if places else 0,
                rate=rate,
                rate_unit=(reads.smallest, written.smallest) if any(rate) else (0, 0),
                rate_poisson=any(rate) and self.values.words["rate_process"] == "poisson",
                rate_forgives=any(rate) and bool(number("rate_ignore_thinktime")),
                offload=offload,
                ramp_ns=number("ramp_time"),
                wait_for=self.values.words.get("wait_for", ""),
                nr_files=self.files,
                file_stride=region.file_stride,
                file_size=region.file_size,
                open_files=min(number("openfiles") or self.files, self.files),
                file_service=SERVICES.index(self.values.service[0]),
                file_service_blocks=self.values.service[1],
                exits=EXITS[self.values.words["exit_what"]] if exits else 0,
                exit_group=exit_group,
                distribution=self._placed(units),
                weight=self.values.numbers.get("owner_weight"),
                opens=self._opens(),
            )

    def _placed(self, units: int) -> Places | None:
        """The distribution, if all of it is within @units."""
        if self.places and self.places.name == "zoned_abs":
            for direction in (READ, WRITE):
                *_, (_, end) = self.places.ends(direction)
                if end > units * self.align:
                    raise self.fail(
                        "random_distribution",
                        f"its zones end at byte {end} of a region of {units * self.align}; make "
                        "them smaller or size larger",
                    )
        if self.places and self.places.zoned:
            for direction in (READ, WRITE):
                ends = self.places.table(direction, units, self.align)
                assert ends
                if any(a >= b for a, b in itertools.pairwise((0, *ends[0]))):
                    raise self.fail(
                        "random_distribution",
                        f"a zone holds no block of {self.align} bytes; make it larger",
                    )
        return self.places


def _mix(seed: int, number: int) -> int:
    """A seed of its own for each process (the finalizer of splitmix64)."""
    z = (seed + (number + 1) * 0x9E3779B97F4A7C15) & U64_MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & U64_MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & U64_MASK
    return z ^ (z >> 31)


def parse_job_file(
    text: str,
    source: str = "job file",
    *,
    capacity_bytes: int | None = None,
    environ: Mapping[str, str] | None = None,
    seed: int = 0,
    beside: Path | None = None,
    notes: list[str] | None = None,
) -> JobFile:
    """A job file's text, read.

    @source is what errors call the file, @capacity_bytes the disk's size (None: unknown, then
    percentages are errors), @environ what ${NAME} is sought in, @seed the run's seed, which a
    randseed goes before, and @beside the directory of the file, for its includes. What a user of
    fio would not expect, though it is no error, is added to @notes.
    """
    sections = read_sections(text, source, beside, os.environ if environ is None else environ)
    common = defaults()
    written: list[Section] = []
    processes: list[Process] = []
    groups: dict[tuple[str, str | int], int] = {}
    weights: dict[int, int | None] = {}  # by group
    files: list[tuple[object, Process]] = []  # each with what fio would open for it
    stage = jobs = exit_group = 0
    exits = _exits(sections)
    for section in sections:
        if section.is_global:
            common.apply_all(section.settings)
            continue
        values = common.copy()
        values.apply_all(section.settings)
        as_written = values.copy()
        job = _Job(section, values, capacity_bytes)
        stage += bool(jobs and values.numbers["stonewall"])
        exit_group += bool(jobs and (values.numbers["stonewall"] or values.numbers["new_group"]))
        if "exit_what" in values.lines and not exits:
            raise job.fail("exit_what", "needs exitall; write that too")
        if notes is not None:
            notes.extend(f"{source}: {note}, as in fio" for note in job.notes())
        cgroup = values.words.get("cgroup")
        owner = ("cgroup", cgroup) if cgroup else ("section", jobs)
        group = groups.setdefault(owner, len(groups))
        weight = values.numbers.get("owner_weight")
        if weights.setdefault(group, weight) != weight:
            raise job.fail(
                "owner_weight",
                f"{weight or 'none'}: another section of cgroup {cgroup} has "
                f"{weights[group] or 'none'}; write the same in both",
            )
        if len(processes) + values.numbers["numjobs"] > MAX_JOBS:
            raise section.error(f"makes it more than {MAX_JOBS} processes; write a smaller numjobs")
        base = values.numbers.get("randseed", seed)
        _check_waited_for(job, processes)
        for process in job.processes(jobs, group, stage, exits, exit_group):
            number = len(processes)
            own = _mix(base, number)
            process = dataclasses.replace(process, seed=own)
            # So that each seed makes another run, also of work in which nothing is random.
            if seed and "startdelay" not in values.lines:
                late_ns = _mix(seed, MAX_JOBS + number) % START_SPREAD_NS
                process = dataclasses.replace(process, startdelay_ns=late_ns)
            processes.append(process)
            name = values.words.get("filename")
            files.append(((values.words.get("directory"), name) if name else own, process))
        written.append(Section(job.name, as_written, job.blocks, processes[-1].iodepth))
        jobs += 1
    if not processes:
        raise UsageError(f"{source}: has no job; write a section [NAME] with rw= and size=")
    if notes is not None:
        notes.extend(_shared_places(source, files))
    keys = [one.key for section in sections for one in section.settings]
    ignored = dict.fromkeys(key for key in keys if key in IGNORED)
    name = Path(source).name
    digest = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    return JobFile(name, tuple(processes), tuple(written), exits, tuple(ignored), digest)


def parse_jobs(text: str, source: str = "job file", **options: Any) -> list[Process]:
    """The processes of a job file's text; see parse_job_file()."""
    return list(parse_job_file(text, source, **options).processes)


def _exits(sections: Sequence[fio_lines.Section]) -> bool:
    """Whether exitall stands anywhere: to fio it is not a job's own."""
    found = [one for section in sections for one in section.settings if one.key == "exitall"]
    for setting in found:
        if setting.value == "0":
            raise setting.error("fio 3.33 takes it for exitall=1; leave it out")
    return bool(found)


def _check_waited_for(job: _Job, above: Sequence[Process]) -> None:
    """fio: a job waits for one that stands above, and that name must be clear."""
    name = job.values.words.get("wait_for")
    if not name:
        return
    names = dict.fromkeys(process.name for process in above)
    if name not in names:
        known = f"; above are {', '.join(names)}" if names else ""
        raise job.fail("wait_for", f"no job above has this name{known}")
    if len({process.section for process in above if process.name == name}) > 1:
        raise job.fail("wait_for", "several jobs above have this name; give them different ones")


def _shared_places(source: str, files: Sequence[tuple[object, Process]]) -> Iterator[str]:
    """The first two processes that work in the same place, though fio has a file for each."""
    last: tuple[object, Process] | None = None
    for file, process in sorted(files, key=lambda pair: pair[1].offset):
        if last and last[0] != file and process.offset < last[1].offset + last[1].size:
            other = last[1]
            both = (
                f"clones of {process.name} all"
                if process.section == other.section
                else f"{other.name} and {process.name} both"
            )
            yield (
                f"{source}: {both} work at byte {process.offset} of the only disk, and fio would "
                "have a file for each; write offset= or offset_increment=, or one filename= for "
                "all if they shall share it"
            )
            return
        if not last or process.offset + process.size > last[1].offset + last[1].size:
            last = file, process


def load_job_file(path: str | os.PathLike[str], **options: Any) -> JobFile:
    """The job file @path; see parse_job_file()."""
    text = read_text(Path(path), str(path))
    return parse_job_file(text, str(path), beside=Path(path).parent, **options)


def load_jobs(path: str | os.PathLike[str], **options: Any) -> list[Process]:
    """The processes of the job file @path; see parse_job_file()."""
    return list(load_job_file(path, **options).processes)


if __name__ == "__main__":
    sys.stdout.write(options_markdown())
