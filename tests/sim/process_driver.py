# SPDX-License-Identifier: GPL-2.0-only
"""Play processes in virtual time, and look at the log of the disk's requests.

Most is played on the flat disk of disks/ssd.toml: there a request that has the
disk to itself takes the same time wherever it lies.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any, NamedTuple

from finished import finished

from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Run, Setup
from streamsched.work.jobfile import parse_jobs
from streamsched.work.process import Process

US, MS, S = 1_000, 1_000_000, 1_000_000_000
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SECTOR = 512
SSD = load_disk("ssd")
PAPERS = load_disk("wd5000aaks")
FIO = shutil.which("fio")


class Row(NamedTuple):
    arrival_ns: int
    dispatch_ns: int
    complete_ns: int
    sector: int
    nr_sectors: int
    job: int

    @property
    def end(self) -> int:
        return self.sector + self.nr_sectors


def jobs(text: str, disk: Any = SSD) -> list[Process]:
    return parse_jobs(text, capacity_bytes=disk.capacity_sectors * SECTOR, environ={})


def played(
    work: str | Sequence[Process], policy: str = "noop", disk: Any = SSD, **setup: Any
) -> tuple[list[Row], Run]:
    """The disk's requests in order of completion, and the result."""
    processes = jobs(work, disk) if isinstance(work, str) else list(work)
    with finished(Setup(disk, policy, **setup), processes) as simulation:
        rows = [Row(*row) for row in simulation.log_rows()]
        return rows, simulation.result(processes)


def one_read_ns(nr_bytes: int, disk: Any = SSD) -> int:
    """What a direct read of this length takes when nothing else goes on."""
    rows, _ = played(f"[r]\nrw=read\ndirect=1\nbs={nr_bytes}\nsize={nr_bytes}\n", disk=disk)
    return rows[0].complete_ns - rows[0].dispatch_ns


def covered(rows: Sequence[Row]) -> list[int]:
    """Every sector moved, with repetitions, sorted."""
    return sorted(sector for row in rows for sector in range(row.sector, row.end))
