# SPDX-License-Identifier: GPL-2.0-only
"""What coordination of an array's members promises whole: it costs next to no throughput."""

from __future__ import annotations

import dataclasses
import random

import pytest
from test_property_sim import KIB, MIB, disk_of, workload

from streamsched.array import LAYOUTS, Array
from streamsched.jobfile import Process
from streamsched.simulate import Run, Setup, run_jobs

LEVELS = ("raid0", "raid0", "raid5", "raid10", "linear")
MEMBERS = (2, 2, 3, 4, 5, 5, 6, 8, 12, 16, 24, 32)
CHUNKS = tuple(k * KIB // 512 for k in (4, 16, 64, 64, 128, 256, 512, 1024))


@dataclasses.dataclass(frozen=True)
class ArrayWorkload:
    """Some processes on an array."""

    seed: int
    setup: Setup
    processes: tuple[Process, ...]

    def run(self, coordinated: bool) -> Run:
        assert self.setup.array is not None
        array = dataclasses.replace(self.setup.array, coordinated=coordinated)
        return run_jobs(dataclasses.replace(self.setup, array=array), list(self.processes))

    def ratio(self) -> float:
        """Throughput with coordination over that without, for the same work."""
        return self.run(False).duration_ns / self.run(True).duration_ns


def array_workload(seed: int) -> ArrayWorkload:
    """A random one, of test_property_sim's processes spread over a random array."""
    dice = random.Random(seed)
    base = workload(seed)
    level, members = dice.choice(LEVELS), dice.choice(MEMBERS)
    array = Array(level, members, dice.choice(CHUNKS), dice.choice(LAYOUTS))
    if level in ("raid5", "raid10") and dice.random() < 0.15:
        array = dataclasses.replace(array, failed=dice.randrange(members))
    processes = tuple(
        dataclasses.replace(p, offset=p.offset * array.data_members // MIB * MIB)
        for p in base.processes
    )
    setup = Setup(
        disk_of(base.disk),
        f"stream:{base.inner}",
        owners=base.owners,
        queue_depth=base.depth,
        array=array,
    )
    return ArrayWorkload(seed, setup, processes)
