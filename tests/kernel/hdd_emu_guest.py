# SPDX-License-Identifier: GPL-2.0-only
"""What test_kernel_hdd_emu.py runs inside the rig, and what both sides use.

Called there with one argument, the name of a function and its arguments in JSON; what it
returns is printed behind RESULT. Nothing of pytest's is here: assertions say what they saw.
"""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import fcntl
import json
import mmap
import os
import random
import re
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamsched.base.errors import StreamschedError
from streamsched.hosts import hddemu
from streamsched.sim.diskfile import Disk, load_disk

SECTOR = 512
BLKDISCARD, BLKZEROOUT = 0x1277, 0x127F
# What may be written to each attribute: least, most.
U32, U64 = (1 << 32) - 1, (1 << 64) - 1
RANGES = {
    "capacity_sectors": (1, (1 << 48) - 1),
    "kind": (0, 1),
    "queue_depth": (1, 254),
    "read_watermark_permille": (0, 1000),
    "watermark_of": (0, 1),
    "write_series": (0, 1),
    "interface_unit_sectors": (1, 65535),
    "overhead_ns": (0, 10**8 - 1),
    "interface_bytes_per_s": (10**6, 10**11),
    "command_overhead_ns": (0, 10**8 - 1),
    "flush_ns": (0, 10**10 - 1),
    "queue_order": (0, 1),
    "queue_age_permille": (0, 1000),
    "queue_age_limit_ns": (0, U64),
    "actuators": (1, 2),
    "rotation_ns": (10**6, 5 * 10**7),
    "surfaces": (1, 64),
    "nr_zones": (1, 64),
    "zone_cylinders": (1, 10**6),
    "zone_sectors_per_track": (8, 65535),
    "track_skew_ns": (0, 5 * 10**7 - 1),
    "cylinder_skew_ns": (0, 5 * 10**7 - 1),
    "head_switch_ns": (0, 5 * 10**7),
    "write_settle_ns": (0, 5 * 10**7),
    "write_saves_ns": (0, 5 * 10**7),
    "physical_sectors": (1, 8),
    "nr_seek_points": (1, 256),
    "seek_cylinders": (1, U32),
    "seek_ns": (0, 2 * 10**8 - 1),
    "segments": (1, 64),
    "segment_sectors": (1, U32),
    "readahead_sectors": (0, U32),
    "write_cache_sectors": (0, U32),
    "segment_keeps_read": (0, 1),
    "ahead_until": (0, 4),
    "read_behind": (0, 1),
    "write_empties": (0, 1),
    "write_cache_extents": (1, 32768),
    "write_cache_durable": (0, 1),
    "write_order": (0, 1),
    "write_share_permille": (0, 900),
    "write_idle_ns": (0, 10**10 - 1),
    "media_sectors": (0, U32),
    "media_extents": (0, 262_144),
    "band_sectors": (0, 1 << 24),
    "media_idle_ns": (0, 10**10 - 1),
    "flat_channels": (1, 32),
    "flat_read_ns": (0, 10**9 - 1),
    "flat_write_ns": (0, 10**9 - 1),
    "flat_read_bytes_per_s": (10**6, 10**11),
    "flat_write_bytes_per_s": (10**6, 10**11),
    "size_sectors": (0, (1 << 48) - 1),
    "memory_limit_bytes": (4096, U64),
    "logical_block_size": (512, 4096),
    "physical_block_size": (512, 4096),
    "discard": (0, 1),
    "hardware_queues": (1, 64),
}
# How many values each list may have.
LISTS = {
    "overhead_ns": 8,
    "zone_cylinders": 64,
    "zone_sectors_per_track": 64,
    "seek_cylinders": 256,
    "seek_ns": 256,
}
OTHERS = ("backing", "power", "power_cut", "bad_ranges", "delays")
READ_ONLY = ("volatile_sectors", "memory_bytes")


def expect(actual: Any, wanted: Any, what: str = "") -> None:
    """An assertion that says what it saw; pytest is not there to do so in the rig."""
    if actual != wanted:
        raise AssertionError(f"{what}: {actual!r} instead of {wanted!r}")


def small(**changes: Any) -> Disk:
    """A disk of 1 GB with caches that are full soon."""
    disk = load_disk("wd5000aaks")
    fields: dict[str, Any] = {
        "capacity_sectors": 2_000_000,
        "nr_zones": 1,
        "zone_cylinders": disk.zone_cylinders[:1],
        "zone_sectors_per_track": disk.zone_sectors_per_track[:1],
        "queue_depth": 32,
        "write_cache_sectors": 2048,
        "write_cache_extents": 32,
    }
    return dataclasses.replace(disk, **(fields | changes))


# Of drives: plain; two halves that meet where there is much to do; shingled, with small bands.
KINDS: list[dict[str, Any]] = [
    {},
    {"actuators": 2, "capacity_sectors": 3200},
    {"media_sectors": 8192, "media_extents": 64, "band_sectors": 4096, "media_idle_ns": 10**7},
]


# What only guests use.
class Emu:
    """A disk in the rig, made and switched on."""

    def __init__(self, name: str, disk: Disk | None = None, **settings: Any) -> None:
        self.name = name
        self.disk = disk or small()
        self.folder = hddemu.CONFIGFS / name
        self.path = Path("/dev") / name
        hddemu.create(name, self.disk, {key: str(value) for key, value in settings.items()})
        self.fd = -1

    def __enter__(self) -> Emu:
        self.fd = os.open(self.path, os.O_RDWR | os.O_DIRECT)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        hddemu.remove(self.name)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def get(self, attribute: str) -> str:
        return (self.folder / attribute).read_text().rstrip("\n")

    def put(self, attribute: str, value: object) -> None:
        hddemu.write(self.folder / attribute, str(value))

    def queue(self, attribute: str, value: object = None) -> str:
        """An attribute of the block layer's; with a value: after writing it."""
        path = Path("/sys/block") / self.name / "queue" / attribute
        if value is not None:
            path.write_text(f"{value}\n")
        return path.read_text().strip()

    def read(self, sector: int, sectors: int) -> bytes:
        buffer = mmap.mmap(-1, sectors * SECTOR)
        expect(os.preadv(self.fd, [buffer], sector * SECTOR), len(buffer), "read")
        return buffer[:]

    def write(self, sector: int, data: bytes, fua: bool = False) -> None:
        buffer = mmap.mmap(-1, len(data))
        buffer[:] = data
        if fua:
            self.fua(sector, buffer)
        else:
            expect(os.pwritev(self.fd, [buffer], sector * SECTOR), len(data), "written")

    def fua(self, sector: int, buffer: mmap.mmap) -> None:
        fd = os.open(self.path, os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
        try:
            expect(os.pwritev(fd, [buffer], sector * SECTOR), len(buffer), "written")
        finally:
            os.close(fd)

    def flush(self) -> None:
        os.fdatasync(self.fd)

    def _range(self, request: int, sector: int, sectors: int) -> None:
        both = (ctypes.c_uint64 * 2)(sector * SECTOR, sectors * SECTOR)
        fcntl.ioctl(self.fd, request, bytes(both))

    def discard(self, sector: int, sectors: int) -> None:
        self._range(BLKDISCARD, sector, sectors)

    def zero(self, sector: int, sectors: int) -> None:
        self._range(BLKZEROOUT, sector, sectors)

    def cut(self) -> None:
        """The power fails and comes back."""
        self.put("power_cut", 1)
        self.put("power_cut", 0)


def error_of(function: Callable[..., Any], *arguments: Any) -> str:
    """The name of the error that a system call gives; empty for none."""
    try:
        function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return ""


def commands(disk: str) -> int:
    """How many reads and writes the disk has had."""
    words = Path(f"/sys/block/{disk}/stat").read_text().split()
    return int(words[0]) + int(words[4])


class Log:
    """What a module of ours writes into the kernel's log from now on."""

    def __init__(self, prefix: str = "hdd_emu") -> None:
        self.prefix = f";{prefix}: "
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def lines(self) -> list[str]:
        """Those since the last call."""
        lines: list[str] = []
        while True:
            try:
                record = os.read(self.fd, 8192).decode().splitlines()[0]
            except BlockingIOError:
                return lines
            _, ours, text = record.partition(self.prefix)
            if ours:
                lines.append(text)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def write_once(path: Path, value: str) -> None:
    """One system call; Python's files would try again when they are closed."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def refused(path: Path, value: str, wanted: str = "EINVAL", prefix: str = "hdd_emu") -> str:
    """Write what must be refused; the one line that the log got."""
    shown = [path] if path.stat().st_mode & 0o400 else []
    before = [each.read_text() for each in shown]
    with Log(prefix) as log:
        expect(error_of(write_once, path, value), wanted, f"{path.name} <- {value!r}")
        lines = log.lines()
    expect([each.read_text() for each in shown], before, f"{path.name} after {value!r}")
    expect(len(lines), 1, f"lines in the log for {path.name} <- {value!r}: {lines}")
    return lines[0]


# The one with KASAN, kmemleak and others (kernel/rig/kasan.config).
CHECKED_KERNEL = Path("/sys/kernel/debug/kmemleak").exists()


def leaks() -> str:
    """What of ours kmemleak misses; empty where the kernel has none."""
    file = Path("/sys/kernel/debug/kmemleak")
    if not file.exists():
        return ""
    for _ in range(2):  # what is found only once may be in a register
        time.sleep(10)
        write_once(file, "scan")
    found = [
        part
        for part in file.read_text().split("unreferenced object")
        if "[stream_iosched]" in part or "[hdd_emu]" in part
    ]
    return "".join(found)


def fio(common: str, jobs: dict[str, str], one_by_one: bool = True) -> dict[str, Any]:
    """Jobs in one run of fio: their results by name. An error of fio's is one here."""
    file = Path("/tmp/jobs.fio")
    lines = ["[global]", *common.split(), *(["stonewall"] if one_by_one else [])]
    for name, text in jobs.items():
        lines += [f"[{name}]", *text.split()]
    file.write_text("\n".join([*lines, ""]))
    # It starts much faster with less memory to share.
    quick = ["--max-jobs=16", "--alloc-size=1024", "--thread"]
    output = ["--output-format=json", "--eta=never", "--clocksource=clock_gettime"]
    run = subprocess.run(["fio", *quick, *output, str(file)], capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(f"fio: exit code {run.returncode}: {run.stderr} {run.stdout[:2000]}")
    results = json.loads(run.stdout[run.stdout.index("{") :])["jobs"]
    return {job["jobname"]: job for job in results}


def attributes() -> list[str]:
    folder = hddemu.CONFIGFS / "d0"
    folder.mkdir()
    names = sorted(path.name for path in folder.iterdir())
    expect((folder / "logical_block_size").read_text(), "512\n")
    expect((folder / "physical_block_size").read_text(), "4096\n")
    expect((folder / "size_sectors").read_text(), "0\n")
    expect((folder / "discard").read_text(), "1\n")
    expect((folder / "hardware_queues").read_text(), "1\n")
    expect((folder / "backing").read_text(), "memory\n")
    expect((folder / "zone_cylinders").read_text(), "\n")
    for name in READ_ONLY:
        expect(error_of(os.open, folder / name, os.O_WRONLY), "EACCES", name)

    for name, (least, most) in RANGES.items():
        attribute = folder / name
        for good in {least, most, (least + most) // 2}:
            if "block_size" in name and good not in (least, most):
                continue
            attribute.write_text(f"{good}\n")
            expect(attribute.read_text(), f"{good}\n", name)
            attribute.write_text(f"  {good} ")
            expect(attribute.read_text(), f"{good}\n", name)
        bad = [str(least - 1), str(most + 1), "\n", "x", "-1", "1.5", "0x10", f"{most} x"]
        bad += [f"{most},{most}", str(1 << 64), "1e3", " ", f"+{most}", "9" * 4000]
        if name not in LISTS:
            bad.append(f"{most} {most}")
        for value in bad:
            line = refused(attribute, value)
            assert line.startswith(f"d0/{name}: "), line
            # The log cuts off long lines: their end must be there.
            assert re.search(r"(from \d+ to \d+|may be only one|may be 1 to (8|64|256))$", line), (
                line
            )
    for name, most in LISTS.items():
        values = " ".join(str(RANGES[name][0] + i) for i in range(most))
        (folder / name).write_text(values)
        expect((folder / name).read_text(), values + "\n", name)
        refused(folder / name, values + " 8")
        refused(folder / name, values.replace(" ", " x", 1))
        (folder / name).write_text("9 \t 10\n")
        expect((folder / name).read_text(), "9 10\n", name)
    for name in ("logical_block_size", "physical_block_size"):
        for value in ("513", "768", "3072"):
            refused(folder / name, value)
    folder.rmdir()
    return names


def other_attributes() -> None:
    with Emu("d0") as emu:
        for name, least, most in (("power", 0, 1), ("power_cut", 0, 1)):
            for value in (str(least - 1), str(most + 1), "on", "\n", "1 1"):
                refused(emu.folder / name, value)
        good = {
            "bad_ranges": ["0 1 read EIO", "8 16 write timeout\n99 1 both EIO\n7 1 read busy", ""],
            "delays": ["0 1 read 0", "5 281474976710656 both 3600000000000", "\n"],
        }
        bad = {
            "bad_ranges": ["0 1 read", "0 1 read EIO x", "0 0 read EIO", "x 1 read EIO"],
            "delays": ["0 1 read EIO", "0 1 read 3600000000001", "0 1 read -1", "0 1 rw 1"],
        }
        both = ["281474976710656 1 read", "0 281474976710657 read", "-1 1 read", "0 1 Read"]
        bad["bad_ranges"] += [f"{start} EIO" for start in both]
        bad["delays"] += [f"{start} 5" for start in both]
        for name in good:
            for text in good[name]:
                (emu.folder / name).write_text(text + "\n")
                expect(emu.get(name), text.strip(), name)
            rows = [f"{i} 1 read {'EIO' if name == 'bad_ranges' else i}" for i in range(64)]
            emu.put(name, "\n".join(rows))
            expect(emu.get(name), "\n".join(rows), name)
            line = refused(emu.folder / name, "\n".join([*rows, rows[0]]))
            assert line.startswith(f"d0/{name}: line 65: "), line
            for text in bad[name]:
                line = refused(emu.folder / name, "\n" + rows[0] + "\n" + text)
                assert line.startswith(f"d0/{name}: line 3: "), line
            emu.put(name, "")
            expect(emu.get(name), "", name)
        # While it is on, all else stays as it is.
        for name in [*RANGES, "backing"]:
            value = str(RANGES[name][0]) if name in RANGES else "memory"
            line = refused(emu.folder / name, value, "EBUSY")
            assert "the disk is on" in line, line
        refused(emu.folder / "backing", "file")
    folder = hddemu.CONFIGFS / "d1"
    folder.mkdir()
    refused(folder / "power_cut", "1")
    refused(folder / "power_cut", "0")
    refused(folder / "backing", "x")
    (folder / "backing").write_text("none\n")
    expect((folder / "backing").read_text(), "none\n")
    (folder / "power").write_text("0\n")
    folder.rmdir()


def switching_on() -> None:
    folder = hddemu.CONFIGFS / "d0"
    folder.mkdir()
    for disk in (small(), load_disk("ssd")):
        written = hddemu.attributes(disk)
        for name, value in written.items():
            line = refused(folder / "power", "1")
            assert re.match(r"d0/power: cannot be switched on: \w+ has not been written", line)
            (folder / name).write_text(value)
        (folder / "power").write_text("1")
        expect((folder / "power").read_text(), "1\n")
        (folder / "power").write_text("1")
        (folder / "power").write_text("0")
        expect((folder / "power").read_text(), "0\n")
        # The second one begins anew.
        folder.rmdir()
        folder.mkdir()
    for name, value in hddemu.attributes(small()).items():
        (folder / name).write_text(value)

    def wrong(name: str, value: str, reason: str, code: str = "EINVAL") -> None:
        before = (folder / name).read_text()
        (folder / name).write_text(value)
        line = refused(folder / "power", "1", code)
        assert reason in line, line
        (folder / name).write_text(before)

    wrong("zone_cylinders", "1 2", "zone_cylinders has 2 values but nr_zones is 1")
    wrong("zone_sectors_per_track", "9 9 9", "zone_sectors_per_track has 3 values")
    wrong("seek_cylinders", "1", "seek_cylinders has 1 values but nr_seek_points is")
    wrong("seek_ns", "1", "seek_ns has 1 values but nr_seek_points is")
    wrong("capacity_sectors", "99999999", "the zones hold fewer sectors")
    wrong("size_sectors", "2000001", "size_sectors is more than capacity_sectors")
    wrong("readahead_sectors", "4294967295", "readahead_sectors must not be larger")
    (folder / "logical_block_size").write_text("4096")
    wrong("size_sectors", "1999999", "not a multiple of logical_block_size")
    wrong("physical_block_size", "512", "logical_block_size is larger than")
    (folder / "logical_block_size").write_text("512")
    (folder / "power").write_text("1")

    # Open: not switched off; and no other disk of that name.
    fd = os.open("/dev/d0", os.O_RDONLY)
    line = refused(folder / "power", "0", "EBUSY")
    assert "it is open" in line, line
    os.close(fd)
    (folder / "power").write_text("0")
    assert not Path("/dev/d0").exists()
    folder.rmdir()
    subprocess.run(["losetup", "-f"], check=True, capture_output=True)
    Path("/dev/left").write_text("by a mistaken dd")
    for name, what in (
        ("loop0", "a block device of this name already"),
        ("null", "a file of this name in /dev that is no block device"),
        ("left", "a file of this name in /dev that is no block device"),
    ):
        try:
            hddemu.create(name, small())
        except StreamschedError as error:
            assert f"there is {what}" in str(error), error
        else:
            raise AssertionError(f"{name} was made twice")
        assert not (hddemu.CONFIGFS / name).exists()
    for name in ("x" * 32, "a.b", "a!b", "a b", "1ä"):
        with Log() as log:
            expect(error_of((hddemu.CONFIGFS / name).mkdir), "EINVAL", name)
            (line,) = log.lines()
        assert ": a disk's name must be" in line, line
    name = "x" * 31
    hddemu.create(name, small())
    hddemu.remove(name)


def limits() -> None:
    with Emu("d0") as emu:
        expect(emu.queue("rotational"), "1")
        expect(emu.queue("write_cache"), "write back")
        expect(emu.queue("fua"), "1")
        expect(emu.queue("max_hw_sectors_kb"), "1280")
        expect(emu.queue("logical_block_size"), "512")
        expect(emu.queue("physical_block_size"), "4096")
        expect(emu.queue("discard_granularity"), "4096")
        expect(Path("/sys/block/d0/size").read_text(), "2000000\n")
        expect(emu.queue("scheduler", "none").split()[0], "[none]")
        expect(emu.queue("nr_requests"), "32")
        expect(error_of(emu.read, 2_000_000 - 1, 1), "")
        expect(emu.read(2_000_000 - 1, 1), bytes(SECTOR))
        expect(os.preadv(emu.fd, [mmap.mmap(-1, SECTOR)], 2_000_000 * SECTOR), 0)
    disk = small(write_cache_sectors=0, queue_depth=1)
    with Emu("d0", disk, size_sectors=8192, logical_block_size=4096, discard=0) as emu:
        expect(emu.queue("write_cache"), "write through")
        expect(emu.queue("logical_block_size"), "4096")
        expect(emu.queue("discard_max_bytes"), "0")
        expect(Path("/sys/block/d0/size").read_text(), "8192\n")
        expect(error_of(emu.read, 1, 1), "EINVAL")
        expect(error_of(emu.discard, 0, 8), "ENOTSUP")
        emu.queue("scheduler", "none")
        expect(emu.queue("nr_requests"), "1")
    with Emu("d0", load_disk("ssd")) as emu:
        expect(emu.queue("rotational"), "0")
        expect(emu.queue("write_cache"), "write back")
        emu.write(8, b"x" * SECTOR)
        expect(emu.read(8, 1), b"x" * SECTOR)
    with Emu("d0", backing="none") as emu:
        emu.write(8, b"x" * SECTOR)
        emu.flush()
        expect(emu.read(8, 1), bytes(SECTOR))
        expect(emu.get("memory_bytes"), "0")


def times(name: str) -> dict[str, Any]:
    disk = load_disk(name)
    folder = hddemu.CONFIGFS / "d0"
    folder.mkdir()
    for attribute, value in hddemu.attributes(disk).items():
        hddemu.write(folder / attribute, value)
    begin = time.monotonic_ns()
    hddemu.write(folder / "power", "1")
    # The block layer has looked for partitions: make the drive forget that.
    hddemu.write(folder / "power_cut", "1")
    hddemu.write(folder / "power_cut", "0")
    fd = os.open("/dev/d0", os.O_RDWR | os.O_DIRECT)
    rng = random.Random(1)
    asked, ends = [], []
    sector = sectors = 0
    before = commands("d0")
    for i in range(400):
        sector += sectors  # going on, or elsewhere
        # Larger ones may be two commands: the block layer cuts what exceeds 2560 sectors counted
        # from where a physical block begins (get_max_io_size() in its blk-merge.c).
        sectors = rng.choice([1, 8, 16, 256, 2553])
        if i % 3 or sector + sectors > disk.capacity_sectors:
            sector = rng.randrange(disk.capacity_sectors - sectors)
        if i % 7 == 6:
            time.sleep(rng.randrange(30) / 1000)
        buffer = mmap.mmap(-1, sectors * SECTOR)
        op = int(rng.random() < 0.3)
        asked.append([op, sector, sectors, time.monotonic_ns() - begin])
        (os.pwritev if op else os.preadv)(fd, [buffer], sector * SECTOR)
        ends.append(time.monotonic_ns() - begin)
    os.close(fd)
    expect(commands("d0") - before, len(asked), "commands")
    hddemu.remove("d0")
    return {"commands": asked, "ends": ends}


def access_ranges() -> None:
    def ranges(name: str) -> list[tuple[int, int]]:
        folders = sorted(Path(f"/sys/block/{name}/queue").glob("independent_access_ranges/*"))
        return [
            (int((one / "sector").read_text()), int((one / "nr_sectors").read_text()))
            for one in folders
        ]

    two = small(actuators=2)
    with Emu("d0", two) as emu:
        expect(ranges("d0"), [(0, 1_000_000), (1_000_000, 1_000_000)])
        data = bytes(range(256)) * 32
        for sector in (8, 1_000_000 - 8, 1_999_984):
            emu.write(sector, data)
            expect(emu.read(sector, 16), data, str(sector))
    with Emu("d0", two, size_sectors=1_200_000):
        expect(ranges("d0"), [(0, 1_000_000), (1_000_000, 200_000)])
    with Emu("d0", two, size_sectors=800_000):
        expect(ranges("d0"), [])
    with Emu("d0"):
        expect(ranges("d0"), [])


def fio_rates(disk: str, jobs: dict[str, str]) -> dict[str, float]:
    with Emu("d0", load_disk(disk)) as emu:
        emu.queue("scheduler", "none")
        # Each begins with empty caches, as in the simulator.
        forget = Path("/tmp/forget")
        forget.write_text(
            f"#!/bin/sh\necho 1 >{emu.folder}/power_cut\necho 0 >{emu.folder}/power_cut"
        )
        forget.chmod(0o755)
        results = fio(f"filename=/dev/d0 direct=1 exec_prerun={forget}", jobs)
    return {name: job["read"]["bw_bytes"] / 1e6 for name, job in results.items()}


def two_disks() -> list[list[float]]:
    """The rates of both, alone and together."""
    work = "rw=randread bs=4k ioengine=libaio iodepth=8 io_size=2m norandommap direct=1"
    disks = [Emu("d0", load_disk("exos-x18")), Emu("d1", load_disk("wd5000aaks"))]
    jobs = {f"d{i}": f"filename=/dev/d{i}" for i in range(2)}
    rates = []
    for alone in (True, False):
        results = fio(work, jobs, alone)
        rates.append([results[f"d{i}"]["read"]["bw_bytes"] / 1e6 for i in range(2)])
    # Each has its own data.
    for i, emu in enumerate(disks):
        with emu:
            emu.write(5, bytes([i + 1]) * SECTOR)
            if i == 0:
                fd = os.open("/dev/d1", os.O_RDONLY | os.O_DIRECT)
                buffer = mmap.mmap(-1, SECTOR)
                os.preadv(fd, [buffer], 5 * SECTOR)
                expect(buffer[:], bytes(SECTOR))
                os.close(fd)
    return rates


def integrity(seed: int) -> int:
    rng = random.Random(seed)
    disk = small(write_cache_sectors=rng.choice([0, 64, 2048]))
    end = 40_000
    data = bytearray(end * SECTOR)
    checked = 0
    with Emu("d0", disk) as emu:
        for i in range(600):
            sectors = rng.choice([1, 1, 2, 7, 8, 9, 64, 255, 1024, 5000])
            sector = rng.choice([rng.randrange(end - sectors), rng.randrange(4000)])
            at, bytes_ = sector * SECTOR, sectors * SECTOR
            kind = rng.random()
            if kind < 0.4:
                new = rng.randbytes(bytes_)
                emu.write(sector, new, fua=rng.random() < 0.1)
                data[at : at + bytes_] = new
            elif kind < 0.8:
                expect(emu.read(sector, sectors) == data[at : at + bytes_], True, f"step {i}")
                checked += sectors
            elif kind < 0.87:
                emu.zero(sector, sectors)
                data[at : at + bytes_] = bytes(bytes_)
            elif kind < 0.94:
                emu.discard(sector, sectors)
                data[at : at + bytes_] = bytes(bytes_)
            elif kind < 0.97:
                emu.flush()
            else:
                time.sleep(rng.random() / 10)
        expect(emu.read(0, end) == data, True, "the whole")
        emu.discard(0, end)
        emu.flush()
        expect(emu.read(0, end) == bytes(len(data)), True, "after discarding it")
        expect(emu.get("memory_bytes"), "0")
    return checked


def fio_verify() -> None:
    common = "filename=/dev/d0 direct=1 verify=crc32c verify_fatal=1 ioengine=libaio iodepth=32"
    jobs = {
        "small": "rw=randwrite bs=4k size=2m",
        "mixed": "rw=randwrite bsrange=512-64k blockalign=512 size=4m",
        "large": "rw=write bs=1m size=32m",
        "sectors": "rw=randrw bs=512 size=256k",
        "buffered": "rw=randwrite bs=128k size=8m direct=0 end_fsync=1",
        "trims": "rw=randtrimwrite bs=4k size=2m",
    }
    with Emu("d0") as emu:
        for scheduler in ("none", "mq-deadline", "stream"):
            emu.queue("scheduler", scheduler)
            for name, job in fio(common, jobs).items():
                expect(job["error"], 0, name)
                expect(job["write"]["total_ios"] > 0, True, name)
                expect(job["read"]["total_ios"] > 0, True, f"{name} verified")
                expect(job["trim"]["total_ios"] > 0, name == "trims", f"{name} trimmed")


def memory_limit() -> None:
    with Emu("d0", memory_limit_bytes=1 << 20) as emu:
        block = b"x" * 4096
        for i in range(256):
            emu.write(i * 8, block)
        with Log() as log:
            expect(error_of(emu.write, 9000, block), "ENOSPC")
            assert "memory_limit_bytes, 1048576" in log.lines()[-1]
        emu.write(0, block)  # what is there can be written again
        expect(emu.read(0, 8), block)
        expect(emu.read(9000, 8), bytes(4096))
        emu.discard(8, 8)
        emu.write(9000, block)
        emu.flush()
        expect(emu.get("memory_bytes"), str(1 << 20))
    # More than there is: the rest of the machine goes on. Files are pushed out first.
    subprocess.run("sync; echo 3 >/proc/sys/vm/drop_caches", shell=True, check=True)
    free = int(re.findall(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text())[0]) << 10
    with Log() as log, Emu("d0", load_disk("exos-x18"), memory_limit_bytes=U64) as emu:
        written, code = 0, ""
        buffer = mmap.mmap(-1, 1 << 20)
        buffer[:] = b"y" * len(buffer)
        while not code and written < 2 * free:
            code = error_of(os.pwritev, emu.fd, [buffer], written)
            written += len(buffer)
        expect(code, "ENOSPC")
        # With checks each block has red zones and a record of who took it.
        least = free // 8 if CHECKED_KERNEL else free // 2
        expect(least < written < free, True, f"{written} of {free}")
        assert "memory are left" in log.lines()[-1]
        emu.write(0, b"a" * 4096)  # what is there can be written again
        emu.discard(0, written // SECTOR)
        emu.flush()
        if CHECKED_KERNEL:
            # KASAN keeps what was freed for a while, and gives it back to whoever allocates next
            # where that may sleep, as a new process does (kasan_quarantine_reduce()).
            subprocess.run(["true"], check=True)
        emu.write(0, b"z" * SECTOR)
        expect(emu.read(0, 1), b"z" * SECTOR)


def cut() -> None:
    def block(text: str) -> bytes:
        return text.encode().ljust(4096, b".")

    with Emu("d0") as emu:
        # Acknowledged, not flushed: lost.
        emu.write(800, block("old"))
        emu.flush()
        expect(emu.get("volatile_sectors"), "0")
        emu.write(800, block("new"))
        expect(emu.read(800, 8), block("new"))
        expect(emu.get("volatile_sectors"), "8")
        emu.cut()
        expect(emu.read(800, 8), block("old"), "unflushed")
        # Each of several, in any order.
        for i in (5, 0, 7, 2, 6, 1, 4, 3):
            emu.write(8000 * i, block("many"))
        expect(emu.get("volatile_sectors"), "64", "several")
        emu.cut()
        expect(emu.read(16000, 8), bytes(4096), "one of several")
        # Flushed: there.
        emu.write(800, block("flushed"))
        emu.flush()
        emu.cut()
        expect(emu.read(800, 8), block("flushed"))
        # Left alone, the drive writes it out by itself; then a newer one is lost alone.
        emu.write(800, block("idle"))
        time.sleep(1)
        expect(emu.get("volatile_sectors"), "0")
        emu.write(800, block("newer"))
        emu.cut()
        expect(emu.read(800, 8), block("idle"))
        wanted = block("idle")
        # Without power nothing goes; what is in the drive then fails.
        emu.put("power_cut", 1)
        expect(emu.get("power_cut"), "1")
        expect(error_of(emu.read, 0, 1), "EIO")
        expect(error_of(emu.write, 0, bytes(SECTOR)), "EIO")
        expect(error_of(emu.flush), "EIO")
        expect(error_of(emu.discard, 0, 8), "EIO")
        emu.put("power_cut", 1)
        emu.put("power_cut", 0)
        expect(emu.get("power_cut"), "0")
        expect(emu.read(800, 8), wanted)
        emu.put("delays", "0 8 both 5000000000")
        codes: list[str] = []
        thread = threading.Thread(target=lambda: codes.append(error_of(emu.read, 0, 8)))
        thread.start()
        time.sleep(1)
        begin = time.monotonic()
        emu.cut()
        thread.join()
        expect(codes, ["EIO"])
        assert time.monotonic() - begin < 0.1
        # Off and on again: the data stays, cached or not.
        emu.put("delays", "")
        emu.write(800, block("kept"))
        emu.close()
        emu.put("power", 0)
        emu.put("power", 1)
        emu.fd = os.open(emu.path, os.O_RDWR | os.O_DIRECT)
        expect(emu.read(800, 8), block("kept"))
        emu.cut()
        expect(emu.read(800, 8), block("kept"))
    cut_in_flush()
    with Emu("d0", small(write_cache_sectors=0)) as emu:
        emu.write(800, block("no cache"))
        emu.cut()
        expect(emu.read(800, 8), block("no cache"))
    with Emu("d0", load_disk("ssd")) as emu:
        emu.write(800, block("flushed"))
        emu.flush()
        emu.write(800, block("not flushed"))
        time.sleep(5)
        emu.cut()
        expect(emu.read(800, 8), block("flushed"))


def cut_in_flush() -> None:
    """A write with FUA is followed by a flush, as Linux has it; the power fails between them."""
    old = b"old".ljust(SECTOR, b".")
    with Emu("d0", small(flush_ns=5 * 10**9)) as emu:
        emu.write(800, old * 8)
        emu.flush()
        for sector in (801, 803):
            emu.write(sector, b"c" * SECTOR)
        codes: list[str] = []
        fua = threading.Thread(
            target=lambda: codes.append(error_of(emu.write, 803, b"f" * SECTOR, True))
        )
        fua.start()
        time.sleep(1)
        expect(emu.get("volatile_sectors"), "1", "in the middle of the flush")
        emu.cut()
        fua.join()
        expect(codes, ["EIO"], "the flush")
        expect(emu.read(800, 8), old * 3 + b"f" * SECTOR + old * 4)


def crashes(seed: int) -> dict[str, int]:
    """Writes, flushes and cuts at random; each sector must be one of those it may be."""
    rng = random.Random(seed)
    extents, cache = rng.choice([(4, 128), (32, 2048), (256, 512)])
    disk = small(write_cache_sectors=cache, write_cache_extents=extents, **KINDS[seed % 3])
    end = 3000
    may_be = [{0} for _ in range(end)]  # the medium's; versions are numbers
    now = [0] * end
    lost = kept = version = 0

    def stamp(number: int) -> bytes:
        return (number.to_bytes(8, "little") * (SECTOR // 8)) if number else bytes(SECTOR)

    with Emu("d0", disk) as emu:
        for _ in range(1500):
            sectors = rng.choice([1, 3, 8, 40, 200])
            sector = rng.randrange(end - sectors)
            places = range(sector, sector + sectors)
            kind = rng.random()
            if kind < 0.75:
                version += 1
                fua = kind < 0.05
                emu.write(sector, stamp(version) * sectors, fua)
                for i in places:
                    now[i] = version
                    may_be[i] = {version} if fua else may_be[i] | {version}
            elif kind < 0.80:
                emu.flush()
                may_be = [{number} for number in now]
            elif kind < 0.85:
                emu.zero(sector, sectors)
                for i in places:
                    now[i] = 0
                    may_be[i] |= {0}
            elif kind < 0.95:
                time.sleep(rng.random() / 20)
            else:
                emu.cut()
                found = emu.read(0, end)
                for i in range(end):
                    content = found[i * SECTOR : (i + 1) * SECTOR]
                    number = int.from_bytes(content[:8], "little")
                    expect(content == stamp(number), True, f"sector {i} is torn")
                    if number not in may_be[i]:
                        raise AssertionError(f"sector {i} is {number}, not of {may_be[i]}")
                    lost += number != now[i]
                    kept += number == now[i] and len(may_be[i]) > 1
                    now[i] = number
                    may_be[i] = {number}
    return {"lost": lost, "kept": kept}


def ext4() -> None:
    run = subprocess.run
    quiet: dict[str, Any] = {"check": True, "capture_output": True}
    with Emu("d0", small(), size_sectors=200_000) as emu:
        emu.close()
        run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0", "/dev/d0"], **quiet)
        Path("/tmp/mnt").mkdir()
        for i in range(5):
            run(["mount", "/dev/d0", "/tmp/mnt"], **quiet)
            for j in range(i):
                expect(Path(f"/tmp/mnt/f{j}").read_text(), f"{j}" * 10000)
            file = Path(f"/tmp/mnt/f{i}")
            with file.open("w") as stream:
                stream.write(f"{i}" * 10000)
                stream.flush()
                os.fsync(stream.fileno())
            Path(f"/tmp/mnt/unsynced{i}").write_text("x" * 100000)
            emu.put("power_cut", 1)
            run(["umount", "/tmp/mnt"], check=True)
            emu.put("power_cut", 0)
        check = run(["e2fsck", "-fp", "/dev/d0"], capture_output=True, text=True)
        assert check.returncode in (0, 1), check.stdout


def faults() -> dict[str, float]:
    with Emu("d0") as emu:
        data = bytes(range(256)) * 2 * 100
        emu.write(1000, data)
        emu.put("bad_ranges", "1010 5 read EIO\n1050 1 write EIO\n1060 2 both EIO")
        outcomes = {
            (1000, 10): "",
            (1009, 1): "",
            (1010, 1): "EIO",
            (1014, 1): "EIO",
            (1015, 1): "",
            (1000, 64): "EIO",
            (1050, 1): "",
            (1061, 1): "EIO",
            (1062, 30): "",
        }
        for (sector, sectors), wanted in outcomes.items():
            expect(error_of(emu.read, sector, sectors), wanted, f"reading {sector} {sectors}")
        for sector, wanted in {1010: "", 1049: "", 1050: "EIO", 1051: "", 1061: "EIO"}.items():
            expect(error_of(emu.write, sector, b"n" * SECTOR), wanted, f"writing {sector}")
        expect(error_of(emu.discard, 1048, 8), "EIO")
        expect(error_of(emu.zero, 1056, 8), "EIO")
        emu.put("bad_ranges", "")
        wanted_data = bytearray(data)
        for sector in (1010, 1049, 1051):
            at = (sector - 1000) * SECTOR
            wanted_data[at : at + SECTOR] = b"n" * SECTOR
        expect(emu.read(1000, 100), bytes(wanted_data), "what failed changed nothing")

        def seconds(function: Callable[..., Any], *arguments: Any) -> float:
            begin = time.monotonic()
            function(*arguments)
            return time.monotonic() - begin

        # Delays: that command, no other.
        emu.flush()
        emu.read(1000, 8)
        emu.put("delays", "1000 8 read 2000000000")
        expect(2 < seconds(emu.read, 1004, 1) < 2.05, True, "delayed read")
        expect(seconds(emu.read, 1008, 1) < 0.05, True, "its neighbour")
        expect(seconds(emu.write, 1000, b"d" * SECTOR) < 0.05, True, "a write there")
        emu.put("delays", "0 2000000 both 500000000")
        expect(0.5 < seconds(emu.discard, 4096, 8) < 0.51, True, "discard")
        emu.put("delays", "")

        # No answer: the block layer gives up.
        emu.queue("io_timeout", 3000)
        emu.put("bad_ranges", "5000 8 read timeout")
        begin = time.monotonic()
        code = error_of(emu.read, 5000, 8)
        timeout = time.monotonic() - begin
        expect(code, "ETIMEDOUT")
        # Busy: sent again, and served.
        emu.put("bad_ranges", "7000 8 both busy")
        emu.write(7000, b"b" * SECTOR)
        expect(emu.read(7000, 1), b"b" * SECTOR)
        emu.discard(7000, 8)
        expect(emu.read(7000, 1), bytes(SECTOR))
        emu.put("bad_ranges", "5000 8 read timeout")
        # Others meanwhile, and longer than the limit: not given up.
        codes: list[str] = []
        thread = threading.Thread(target=lambda: codes.append(error_of(emu.read, 5004, 1)))
        thread.start()
        time.sleep(0.1)
        expect(seconds(emu.read, 5008, 8) < 0.05, True, "another beside it")
        emu.put("delays", "6000 8 read 20000000000")
        slow = seconds(emu.read, 6000, 8)
        thread.join()
        expect(codes, ["ETIMEDOUT"])
        emu.put("bad_ranges", "")
        expect(emu.read(5000, 8), bytes(8 * SECTOR))
        return {"timeout": timeout, "slow": slow}


def hundred() -> list[int]:
    def memory() -> int:
        subprocess.run("sync; echo 3 >/proc/sys/vm/drop_caches", shell=True, check=True)
        found = re.findall(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text())
        return int(found[0]) << 10

    memories = []
    for i in range(100):
        with Emu(f"d{i % 3}") as emu:
            emu.write(i * 8, b"x" * 65536)
            if i % 2:
                emu.flush()
        if i in (9, 99):
            memories.append(memory())
    expect(leaks(), "", "kmemleak")
    return memories


def unplugged() -> None:
    emu = Emu("d0", size_sectors=200_000)
    subprocess.run(["mkfs.ext4", "-q", "/dev/d0"], check=True, capture_output=True)
    Path("/tmp/mnt").mkdir()
    subprocess.run(["mount", "/dev/d0", "/tmp/mnt"], check=True)
    Path("/tmp/mnt/file").write_text("x" * 100000)
    expect(error_of(write_once, emu.folder / "power", "0"), "EBUSY", "mounted")
    fd = os.open("/dev/d0", os.O_RDONLY | os.O_DIRECT)
    codes: list[str] = []
    emu.put("bad_ranges", "1000 8 read timeout")

    def hang() -> None:
        codes.append(error_of(os.preadv, fd, [mmap.mmap(-1, SECTOR)], 1000 * SECTOR))

    thread = threading.Thread(target=hang)
    thread.start()
    time.sleep(1)
    begin = time.monotonic()
    emu.folder.rmdir()
    thread.join()
    assert time.monotonic() - begin < 1
    expect(codes, ["EIO"])
    assert not emu.path.exists()
    expect(os.preadv(fd, [mmap.mmap(-1, SECTOR)], 0), 0, "bytes read of a disk that is gone")
    # The name is free again while the old one is still held open.
    with Emu("d0") as other:
        expect(other.read(0, 1), bytes(SECTOR))
    os.close(fd)
    subprocess.run(["umount", "/tmp/mnt"], check=True)


def unloading() -> None:
    def rmmod() -> int:
        return subprocess.run(["rmmod", "hdd-emu"], capture_output=True).returncode

    folder = hddemu.CONFIGFS / "d0"
    folder.mkdir()
    expect(rmmod(), 1, "with a directory")
    expect(folder.is_dir(), True)
    folder.rmdir()
    expect(rmmod(), 0, "without one")
    expect(hddemu.CONFIGFS.exists(), False)


def python() -> None:
    module = [sys.executable, "-m", "streamsched.hosts.hddemu"]

    def call(*arguments: str) -> tuple[int, str]:
        run = subprocess.run([*module, *arguments], capture_output=True, text=True)
        return run.returncode, run.stderr

    expect(call("create", "d0", "exos-x18", "--set", "size_sectors=4096"), (0, ""))
    expect(Path("/sys/block/d0/size").read_text(), "4096\n")
    code, message = call("create", "d0", "exos-x18")
    expect(code, 2)
    assert "there is a disk of this name already" in message
    code, message = call("create", "d1", "exos-x18", "--set", "size_sectors=x")
    expect(code, 1)
    assert 'size_sectors: "x" must be a whole number from 0 to' in message, message
    assert not Path("/sys/kernel/config/hdd-emu/d1").exists()
    expect(call("create", "d1", "exos-x18", "--set", "x=1")[0], 2)
    expect(call("create", "d1", "exos-x18", "--set", "size_sectors")[0], 2)
    with Path("/dev/d0").open("rb"):
        code, message = call("remove", "d0")
    expect(code, 1)
    assert "it is open" in message, message
    expect(call("remove", "d0"), (0, ""))
    expect(Path("/dev/d0").exists(), False)
    expect(call("remove", "d0")[0], 2)
    run = subprocess.run([*module, "script", "d2", "ssd"], capture_output=True, text=True)
    subprocess.run(["sh", "-c", run.stdout], check=True)
    expect(Path("/sys/block/d2/size").read_text(), f"{load_disk('ssd').capacity_sectors}\n")
    expect(subprocess.run(["sh", "-c", run.stdout], capture_output=True).returncode != 0, True)
    hddemu.remove("d2")


def examples(blocks: list[str]) -> None:
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    os.chdir("/tmp")
    script = "set -ex\n" + "".join(blocks)
    run = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(run.returncode, 0, run.stdout.decode())


def main(functions: dict[str, Any]) -> None:
    """Call what the argument says, of a guest module's globals()."""
    name, *arguments = json.loads(sys.argv[1])
    try:
        answer = functions[name](*arguments)
    except BaseException:
        print(traceback.format_exc(), flush=True)
        sys.exit(1)
    print("RESULT " + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(globals())
