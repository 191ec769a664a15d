# SPDX-License-Identifier: GPL-2.0-only
"""The disk model in the place of a device, for calibrate."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from streamsched._core import ffi, lib
from streamsched.calibrate import commands, measure
from streamsched.calibrate import device as devices
from streamsched.calibrate import file as files
from streamsched.calibrate.found import Mechanics
from streamsched.sim.diskfile import Disk, load_disk, parse_disk
from streamsched.sim.simulate import disk_params

TODAY = datetime.date(2026, 11, 20)
MS = 1_000_000


class ModelDisk:
    """A disk in virtual time. With @noise, each read is late by so much in the mean."""

    align_sectors = 1

    def __init__(self, disk: Disk, noise_ns: int = 0) -> None:
        self.ffi, self.lib = ffi, lib
        self.hdd = self.ffi.new("struct hdd *")
        self.command = self.ffi.new("struct hdd_cmd *")
        why = self.ffi.new("const char **")
        assert self.lib.hdd_init(self.hdd, disk_params(disk), why) == 0
        self.capacity_sectors = disk.capacity_sectors
        self.now_ns = 0
        self.noise_ns = noise_ns
        self.random = random.Random(5)
        self.reads: list[tuple[int, int]] = []
        self.writes = 0
        self.may_write = False

    def submit(self, sector: int, nr_sectors: int) -> None:
        self.command.sector, self.command.nr_sectors = sector, nr_sectors
        self.lib.hdd_submit(self.hdd, self.command, self.now_ns)
        self.now_ns = self.lib.hdd_next_ns(self.hdd)
        self.lib.hdd_pop(self.hdd, self.now_ns)

    def read(self, sector: int, nr_sectors: int) -> tuple[int, int]:
        assert 0 <= sector <= self.capacity_sectors - nr_sectors
        assert sector % self.align_sectors == nr_sectors % self.align_sectors == 0
        self.reads.append((sector, nr_sectors))
        begin = self.now_ns
        self.submit(sector, nr_sectors)
        if self.noise_ns:
            self.now_ns += round(self.random.expovariate(1 / self.noise_ns))
            if self.random.random() < 1e-4:  # a retry
                self.now_ns += 80 * MS
        return begin, self.now_ns

    def write(self, sector: int, nr_sectors: int) -> tuple[int, int]:
        assert 0 <= sector <= self.capacity_sectors - nr_sectors
        assert self.may_write
        self.writes += 1
        begin = self.now_ns
        self.command.op = self.lib.HDD_WRITE
        self.submit(sector, nr_sectors)
        self.command.op = self.lib.HDD_READ
        return begin, self.now_ns

    def read_together(self, sectors: Sequence[int], nr_sectors: int, depth: int) -> list[int]:
        commands = self.ffi.new("struct hdd_cmd[]", len(sectors))
        ends: list[int] = []
        for number, sector in enumerate(sectors):
            self.reads.append((sector, nr_sectors))
            if number >= depth:
                ends.append(self.pop())
            commands[number].sector, commands[number].nr_sectors = sector, nr_sectors
            self.lib.hdd_submit(self.hdd, self.ffi.addressof(commands[number]), self.now_ns)
        return ends + [self.pop() for _ in range(depth)]

    def pop(self) -> int:
        self.now_ns = self.lib.hdd_next_ns(self.hdd)
        self.lib.hdd_pop(self.hdd, self.now_ns)
        return self.now_ns

    def idle(self, ns: int) -> None:
        self.now_ns += ns


def measured(name: str, **options: Any) -> Mechanics:
    found = measure.Meter(ModelDisk(load_disk(name), **options), commands.FAST).measure()
    assert isinstance(found, Mechanics)
    return found


INFO = devices.DeviceInfo(
    path="/dev/sdx",
    name="sdx",
    folder=Path("/sys/block/sdx"),
    model='Maker "Quoted" Drive 5',
    serial="S3R1AL",
    capacity_sectors=load_disk("wd5000aaks").capacity_sectors,
    logical_sectors=1,
    rotational=True,
    write_back=True,
    queue_depth=32,
    request_sectors=2560,
    nominal_rpm=7200,
)


@functools.lru_cache
def quick(name: str) -> Mechanics:
    return measured(name)


def described(change: Callable[[Any], Any] = lambda found: found, **fields: Any) -> tuple[Any, str]:
    found = change(quick("wd5000aaks"))
    text = files.describe(found, dataclasses.replace(INFO, **fields), "mine", 32, TODAY)
    return parse_disk(text, "mine.toml"), text
