# SPDX-License-Identifier: GPL-2.0-only
"""A made-up kernel: what is written to its disk happens, and time is virtual."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from watch_data import MadeDisk

from streamsched.base.errors import StreamschedError
from streamsched.hosts.device import Device, device_of


class MadeKernel:
    """A disk that does 80 requests of 64 KiB a second under stream, 60 under all others."""

    def __init__(self, made: MadeDisk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = made
        self.now = 100.0
        self.rates = {"stream": 80.0}
        self.usual = 60.0
        self.log: list[str] = []
        self.each: Callable[[], None] = lambda: None
        self.names = ["none", "mq-deadline", "stream"]
        made.scheduler = "none [mq-deadline] stream"
        made.flush()
        made.write("queue/wbt_lat_usec", 75000)
        self.begin("mq-deadline")
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)
        monkeypatch.setattr(Device, "write", self.write)

    @property
    def scheduler(self) -> str:
        return device_of("sda", self.made.root).in_use

    def begin(self, scheduler: str) -> None:
        """With its defaults."""
        shutil.rmtree(self.made.folder / "queue" / "iosched", ignore_errors=True)
        self.made.scheduler = " ".join(
            f"[{one}]" if one == scheduler else one for one in self.names
        )
        self.made.write("queue/scheduler", self.made.scheduler)
        self.made.write("queue/nr_requests", 64)
        self.made.write("queue/async_depth", 64)
        settings = {
            "none": {},
            "mq-deadline": {"read_expire": "500", "fifo_batch": "16"},
            "bfq": {"slice_idle": "8"},
            "stream": {
                "inner": "noop [deadline] cscan sptf linus",
                "wait_target": "500ms",
                "service_curve": "0:0 2048:4600000",
                "cgroup_weights": "",
            },
        }
        for name, value in settings[scheduler].items():
            self.made.write(f"queue/iosched/{name}", value)

    def write(self, path: Path, value: str) -> None:
        """As Device.write(), which monkeypatch has replaced; @path is the first argument."""
        self.log.append(f"{path.name}={value}")
        if path.name == "scheduler":
            self.begin(value)
        elif path.name == "inner":
            path.write_text(
                path.read_text().replace("[", "").replace("]", "").replace(value, f"[{value}]")
            )
        elif path.name == "cgroup_weights":
            path.write_text(path.read_text().lstrip() + f"{value}\n")
        else:
            path.write_text(f"{value}\n")

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.each()
        try:
            number = round(self.rates.get(self.scheduler, self.usual) * seconds)
        except StreamschedError:
            return
        self.made.stat[0] += number
        self.made.stat[2] += 128 * number
        self.made.stat[3] += 12 * number
        self.made.write("stat", " ".join(map(str, self.made.stat)))

    def wobbles(self, least: float, most: float) -> None:
        """Let it serve another number of requests each time, under all alike."""
        drawn = random.Random(1)

        def each() -> None:
            self.usual = drawn.uniform(least, most)

        self.rates, self.each = {}, each


def after(kernel: MadeKernel, seconds: float, what: Callable[[], object]) -> None:
    """Let something happen once, then."""
    done: list[bool] = []
    began = kernel.now

    def each() -> None:
        if kernel.now - began > seconds and not done:
            done.append(True)
            what()

    kernel.each = each
