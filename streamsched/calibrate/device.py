# SPDX-License-Identifier: GPL-2.0-only
"""The block device that `streamsched calibrate` reads: what it is, whether it may.

It is opened for reading, past the page cache, and exclusively: the kernel refuses
that when the disk is mounted or otherwise in use, and refuses to mount it meanwhile.
For writing it is opened only with --overwrite.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.calibrate.commands import LEAST_SECTORS
from streamsched.calibrate.found import SECTOR_BYTES

SYS = Path("/sys")
MOUNTS = Path("/proc/self/mountinfo")
SWAPS = Path("/proc/swaps")
LONGEST_SECTORS = 1024
UNKNOWN = "unknown"


@dataclass(frozen=True)
class DeviceInfo:
    """A disk, as its folder in sysfs describes it."""

    path: str
    name: str
    folder: Path
    model: str
    serial: str
    capacity_sectors: int
    logical_sectors: int
    rotational: bool
    write_back: bool
    queue_depth: int | None
    request_sectors: int | None
    """A longer read is split."""
    nominal_rpm: int | None

    @property
    def queue(self) -> Path:
        return self.folder / "queue"

    def file_name(self) -> str:
        """What its description is called if nobody says so: by its model."""
        words = re.findall(r"[a-z0-9]+", self.model.lower()) if self.model != UNKNOWN else []
        return "-".join(words) or self.folder.name


def _text(path: Path) -> str:
    """A file of sysfs; empty when it is not there."""
    try:
        return path.read_bytes().decode(errors="replace").strip("\0 \n\t")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None


def _vital_product_data(path: Path) -> bytes:
    """A SCSI drive's page about itself, without its four bytes of header."""
    try:
        return path.read_bytes()[4:]
    except OSError:
        return b""


def _model(folder: Path) -> str:
    device = folder / "device"
    vendor, model = _text(device / "vendor"), _text(device / "model") or _text(device / "name")
    if vendor and not vendor.startswith("0x") and vendor != "ATA":
        model = f"{vendor} {model}"
    return " ".join(model.split()) or UNKNOWN


def _serial(folder: Path) -> str:
    device = folder / "device"
    page = _vital_product_data(device / "vpd_pg80")
    found = page.decode(errors="replace") or _text(device / "serial") or _text(folder / "serial")
    return " ".join(found.strip("\0 ").split()) or _text(device / "wwid") or UNKNOWN


def _in_use(path: str, folder: Path) -> str:
    """Who has the disk, and what would give it back."""
    parts = [folder, *(part.parent for part in sorted(folder.glob("*/partition")))]
    numbers = {_text(part / "dev"): f"/dev/{part.name}" for part in parts}
    for line in _text(MOUNTS).splitlines():
        fields = line.split()
        source = fields[fields.index("-") + 2] if "-" in fields else ""
        found = numbers.get(fields[2]) or (source if source in numbers.values() else None)
        if found:
            return f"{found} is mounted on {fields[4]}; unmount it first"
    for line in _text(SWAPS).splitlines()[1:]:
        if line.split()[0] in numbers.values():
            return f"{line.split()[0]} is swap space; switch it off with swapoff first"
    for part in parts:
        holders = sorted(holder.name for holder in (part / "holders").glob("*"))
        if holders:
            return f"/dev/{part.name} is part of {', '.join(holders)}; stop that first"
    return "another program has it open for itself; end that first"


def examine(path: str, sys: Path = SYS) -> DeviceInfo:
    """What disk this is; refuses what is no whole disk, in one sentence."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name a disk, as /dev/sda") from None
    if not stat.S_ISBLK(status.st_mode):
        raise UsageError(f"{path}: not a block device; name a disk, as /dev/sda")
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    folder = (sys / "dev" / "block" / number).resolve()
    if not folder.is_dir():
        raise UsageError(f"{path}: there is no block device {number}; name a disk, as /dev/sda")
    if (folder / "partition").exists():
        raise UsageError(
            f"{path}: a partition; name the whole disk that it is on, /dev/{folder.parent.name}"
        )
    below = sorted(slave.name for slave in (folder / "slaves").glob("*"))
    backing = _text(folder / "loop" / "backing_file")
    if below or backing:
        what = ", ".join(f"/dev/{name}" for name in below) or backing
        raise UsageError(f"{path}: not a disk but a layer over {what}; name the disk beneath")
    info = _info(path, folder)
    if info.capacity_sectors < LEAST_SECTORS:
        raise UsageError(
            f"{path}: too small to be measured: it has {info.capacity_sectors} sectors of 512 "
            f"bytes and must have at least {LEAST_SECTORS} (4 GiB)"
        )
    return info


def check_overwrite(info: DeviceInfo) -> None:
    """Refuse --overwrite where nothing would come of it, or where there plainly is data."""
    parts = sorted(part.parent.name for part in info.folder.glob("*/partition"))
    if parts:
        raise UsageError(
            f"--overwrite: {info.path} has partitions ({', '.join(parts)}); "
            "it is only for a disk without any"
        )
    if not info.write_back:
        raise UsageError(
            f"--overwrite: {info.path} has no write cache to measure; leave the option out"
        )
    found = _signatures(info.path)
    if found:
        raise UsageError(
            f"--overwrite: {info.path} holds data ({', '.join(found)}); if nobody needs it, "
            f"remove its signatures first: wipefs --all {info.path}"
        )


def _signatures(path: str) -> list[str]:
    """File systems, RAID members, LVM, partition tables ... on the disk, as wipefs names them."""
    wipefs = shutil.which("wipefs", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if not wipefs:
        raise UsageError(
            f"--overwrite: wipefs, which sees whether {path} holds data, is missing; "
            "install util-linux"
        )
    done = subprocess.run(
        [wipefs, "--no-act", "--json", "--output", "TYPE,OFFSET", path],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        done.check_returncode()
        # Some versions print nothing when there is none.
        found = json.loads(done.stdout or '{"signatures": []}')["signatures"]
        return [f"{one['type']} at {one['offset']}" for one in found]
    except (subprocess.CalledProcessError, ValueError, LookupError, TypeError):
        said = (done.stderr.strip().splitlines() or ["wipefs failed"])[-1]
        raise UsageError(
            f"--overwrite: it cannot be seen whether {path} holds data: {said}"
        ) from None


def _info(path: str, folder: Path) -> DeviceInfo:
    queue = folder / "queue"
    logical = _number(queue / "logical_block_size") or SECTOR_BYTES
    rate = int.from_bytes(_vital_product_data(folder / "device" / "vpd_pgb1")[:2], "big")
    return DeviceInfo(
        path=path,
        name=folder.name.replace("!", "/"),
        folder=folder,
        model=_model(folder),
        serial=_serial(folder),
        capacity_sectors=_number(folder / "size") or 0,
        logical_sectors=logical // SECTOR_BYTES,
        rotational=_text(queue / "rotational") == "1",
        write_back=_text(queue / "write_cache") == "write back",
        queue_depth=_number(folder / "device" / "queue_depth"),
        request_sectors=(_number(queue / "max_sectors_kb") or 0) * 2 or None,
        # 1 is a drive that does not rotate.
        nominal_rpm=rate if 1 < rate < 0xFFFF else None,
    )


# ---- commands ----


class BlockDevice:
    """The disk, opened for measuring (a Device of commands.py)."""

    def __init__(self, info: DeviceInfo, *, overwrite: bool = False) -> None:
        self.capacity_sectors = info.capacity_sectors
        self.align_sectors = info.logical_sectors
        self.path = info.path
        self.request_sectors = info.request_sectors or LONGEST_SECTORS
        self.commands = 0
        flags = (os.O_RDWR if overwrite else os.O_RDONLY) | os.O_DIRECT | os.O_EXCL | os.O_CLOEXEC
        try:
            self.file = os.open(info.path, flags)
        except OSError as error:
            raise UsageError(f"{info.path}: {_why_not(error, info)}") from None
        self.buffer, self.zeros = _pages(), _pages()

    def close(self) -> None:
        os.close(self.file)

    def read(self, sector: int, nr_sectors: int) -> tuple[int, int]:
        """Read past the page cache; when it was sent and done by CLOCK_MONOTONIC."""
        self.commands += -(-nr_sectors // self.request_sectors)
        return self._transfer(os.preadv, "read", self.buffer, sector, nr_sectors)

    def write(self, sector: int, nr_sectors: int) -> tuple[int, int]:
        """Overwrite with zeros, past the page cache; the same."""
        self.commands += -(-nr_sectors // self.request_sectors)
        return self._transfer(os.pwritev, "written", self.zeros, sector, nr_sectors)

    def _transfer(
        self,
        call: Callable[[int, list[memoryview], int], int],
        what: str,
        buffer: memoryview,
        sector: int,
        nr_sectors: int,
    ) -> tuple[int, int]:
        part = [buffer[: nr_sectors * SECTOR_BYTES]]
        offset = sector * SECTOR_BYTES
        start = time.monotonic_ns()
        try:
            done = call(self.file, part, offset)
            end = time.monotonic_ns()
        except OSError as error:
            raise StreamschedError(
                f"{self.path}: sector {sector} could not be {what}: {error.strerror}"
            ) from None
        if done != nr_sectors * SECTOR_BYTES:
            raise StreamschedError(
                f"{self.path}: sector {sector}: {done} bytes were {what} instead of "
                f"{nr_sectors * SECTOR_BYTES}"
            )
        return start, end

    def read_together(self, sectors: Sequence[int], nr_sectors: int, depth: int) -> list[int]:
        """Read at each of @sectors, @depth at once; when each was done, ascending."""
        self.commands += len(sectors) * -(-nr_sectors // self.request_sectors)
        left = iter(sectors)  # which the threads share

        def reader() -> list[int]:
            buffer = _pages()
            return [
                self._transfer(os.preadv, "read", buffer, sector, nr_sectors)[1] for sector in left
            ]

        with ThreadPoolExecutor(depth) as pool:
            readers = [pool.submit(reader) for _ in range(depth)]
        return sorted(end for one in readers for end in one.result())

    def idle(self, ns: int) -> None:
        time.sleep(ns / 1e9)


def _pages() -> memoryview:
    """A buffer in pages of its own: past the page cache the kernel wants it aligned."""
    return memoryview(mmap.mmap(-1, LONGEST_SECTORS * SECTOR_BYTES))


def _why_not(error: OSError, info: DeviceInfo) -> str:
    if error.errno == errno.EBUSY:
        return f"in use: {_in_use(info.path, info.folder)}"
    if error.errno in (errno.EACCES, errno.EPERM):
        if os.geteuid() == 0:
            return "no permission to read it, not even as root; is this a container without it?"
        return "no permission to read it; run this as root"
    if error.errno == errno.EINVAL:
        return "it cannot be read past the page cache (O_DIRECT); name a disk"
    return f"cannot open it: {error.strerror}"


def commands_done(info: DeviceInfo) -> int:
    """How many reads, writes, discards and flushes the disk has done for anybody."""
    fields = [int(field) for field in _text(info.folder / "stat").split()]
    return sum(fields[at] for at in (0, 4, 11, 15) if at < len(fields))
