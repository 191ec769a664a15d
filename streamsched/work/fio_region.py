# SPDX-License-Identifier: GPL-2.0-only
"""Where each clone of a job works, and how many bytes it moves there, as fio computes it."""

from __future__ import annotations

import dataclasses

from streamsched.base.errors import UsageError
from streamsched.base.units import FIO_MAX
from streamsched.work.fio_job import FioJob
from streamsched.work.fio_values import SECTOR_BYTES
from streamsched.work.process import Pair

FILE_ALIGN = 4096  # where a file system begins one


@dataclasses.dataclass(frozen=True, slots=True)
class CloneRegion:
    """A clone's part of the disk, and what it transfers there. All are bytes."""

    offset: int
    size: int
    io_bytes: int
    # Of several files: from one to the next, and what is used of each.
    file_stride: int = 0
    file_size: int = 0
    length: int = 0  # what size stands for


class Regions:
    """Where the clones of one job work. What does not fit is a UsageError."""

    def __init__(self, job: FioJob, capacity: int | None = None) -> None:
        """@capacity: bytes of the disk or the file; None: it is as long as it has to be."""
        self.job = job
        self.capacity = capacity

    def of(self, clone: int, beyond: int = 0) -> CloneRegion:
        """The region of clone number @clone, from 0 on, @beyond bytes behind what offset says."""
        job = self.job
        offset = self._offset(clone) + beyond
        if self.capacity is not None and offset >= self.capacity:
            raise self._beyond(clone, "its region begins", offset)
        length = self._length(offset)
        if job.files > 1:
            return self._divided(clone, offset, length)
        if job.strided:
            size, whole = self._strided(clone, offset, length)
        else:
            if self.capacity is not None and offset + length > self.capacity:
                raise self._beyond(clone, "its region ends", offset + length)
            size, whole = self._random(length) if job.random else self._in_order(offset, length)
        return self._checked(CloneRegion(offset, size, self._io_bytes(length, whole)), length)

    def end(self, clone: int) -> int:
        """Where size ends, in bytes."""
        offset = self._offset(clone)
        return offset + self._length(offset)

    def _divided(self, clone: int, offset: int, length: int) -> CloneRegion:
        """Several files: whole blocks of each are used, and each begins with a whole page."""
        job = self.job
        each = length // job.files
        if self.capacity is not None and offset + length == self.capacity:
            each -= each % FILE_ALIGN
        used = each - each % (job.align if job.random else job.used_min)
        if not used:
            raise job.fail(
                job.files_key,
                f"a file of {each} bytes holds no block of {job.used_min}; write fewer",
            )
        stride = -(-each // FILE_ALIGN) * FILE_ALIGN
        size = stride * job.files
        if self.capacity is not None and offset + size > self.capacity:
            raise self._beyond(clone, "the last of its files ends", offset + size)
        whole = self._up(length) if job.random and job.norandommap else used * job.files
        region = CloneRegion(offset, size, self._io_bytes(length, whole), stride, used)
        return self._checked(region, length)

    def _checked(self, region: CloneRegion, length: int) -> CloneRegion:
        job = self.job
        offset, size, io_bytes = region.offset, region.size, region.io_bytes
        if size <= 0 or io_bytes <= 0:
            raise job.section.error(
                f"its region of {length} bytes at {offset} holds no block of {job.used_min} "
                "bytes; make size larger"
            )
        if io_bytes > FIO_MAX:
            raise job.section.error(f"transfers more than {FIO_MAX} bytes; make size smaller")
        return dataclasses.replace(region, length=length)

    def _strided(self, clone: int, offset: int, length: int) -> Pair:
        """Zones go on to the end of the disk, wherever size ends; then from the start."""
        job = self.job
        zone_size = job.number("zonesize")
        zone_range = job.number("zonerange") or zone_size
        if self.capacity is None:
            zones = -(-self._io_bytes(length, self._up(length)) // zone_size)
            return zones * (zone_range + job.number("zoneskip")), self._up(length)
        if offset + zone_range > self.capacity:
            raise self._beyond(clone, "its first zone ends", offset + zone_range)
        return self.capacity - offset, self._up(length)

    def _random(self, length: int) -> Pair:
        """Random positions are multiples of the alignment; the rest stays untouched."""
        job = self.job
        size = length - length % job.align
        if job.norandommap:
            return size, self._up(length)
        block = job.fixed or job.used_min
        return size, length - length % block

    def _in_order(self, offset: int, length: int) -> Pair:
        """The last block of one pass begins within the region; it may end behind it."""
        job = self.job
        if job.fixed is None:
            size = length - length % job.used_min
            blocks = -(-size // (job.mean + job.skip))
            # How much one pass transfers depends on chance; this is its mean.
            return size, self._up(blocks * job.mean) if job.skip else size
        if job.skip < 0:  # it comes round as often as needed
            return length - length % SECTOR_BYTES, self._up(length)
        step = job.fixed + job.skip
        blocks = -(-length // step)
        end = (blocks - 1) * step + job.fixed
        if self.capacity is not None and offset + end > self.capacity:
            blocks -= 1
            end -= step
        size = length - length % SECTOR_BYTES if job.skip else 0
        return max(end, size), blocks * job.fixed

    def _up(self, length: int) -> int:
        """Whole blocks, the last of which goes beyond @length: fio counts before a block."""
        job = self.job
        block = job.fixed or job.used_min
        return -(-length // block) * block

    def _io_bytes(self, length: int, whole: int) -> int:
        """What io_size, number_ios and loops make of @whole, the bytes of one pass."""
        job = self.job
        io_size = job.values.amounts.get("io_size")
        if io_size is None or not io_size.value:
            total = whole
        elif io_size.percent:
            total = min(whole, self._up(length * io_size.value // 100))
        else:
            total = self._up(io_size.value)
        if job.number("number_ios") and job.fixed is not None:
            total = min(total, job.number("number_ios") * job.fixed)
        return total * job.number("loops")

    def _offset(self, clone: int) -> int:
        job = self.job
        start, step = job.values.amounts["offset"], job.values.amounts["offset_increment"]
        increment = step.value
        if step.percent:
            increment = step.value * self._disk_bytes("offset_increment", "a percentage") // 100
        offset = start.value
        if start.percent:
            offset = start.value * self._disk_bytes("offset", "a percentage") // 100
        offset += clone * increment
        if (start.percent and start.value) or (step.percent and step.value):
            align = job.number("offset_align") or job.min_bs
            offset = -(-offset // align) * align
        else:
            job.check_sectors("offset", start.value)
            job.check_sectors("offset_increment", increment)
        return offset

    def _length(self, offset: int) -> int:
        """Bytes from @offset on that size stands for."""
        job = self.job
        size = job.values.amounts.get("size")
        if size is None or not size.value or (size.percent and size.value == 100):
            return self._disk_bytes("size", "the rest of the disk") - offset
        if size.percent:
            disk = self._disk_bytes("size", "a percentage")
            length = min(disk * size.value // 100, disk - offset)
            return length - length % job.min_bs
        if size.value < job.used_min:
            raise job.fail("size", f"is less than one block of {job.used_min} bytes; write more")
        return size.value

    def _disk_bytes(self, key: str, what: str) -> int:
        if self.capacity is None:
            raise self.job.fail(key, f"{what} depends on the disk, and none is given; write bytes")
        return self.capacity

    def _beyond(self, clone: int, what: str, byte: int) -> UsageError:
        job = self.job
        which = f"clone {clone + 1} of job" if job.number("numjobs") > 1 else "job"
        return UsageError(
            f"{job.section.source}, line {job.section.line}: {which} {job.name}: {what} at byte "
            f"{byte}, but the disk has {self.capacity} bytes; make offset or size smaller, or take "
            "a larger disk"
        )
