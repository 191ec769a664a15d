# SPDX-License-Identifier: GPL-2.0-only
"""What stream costs where its curve is learned: random jobs on random flat devices, and on disks.

    python bench/flat.py 100000 400         400 seeds from 100000 on, flat devices
    python bench/flat.py 100000 200 disks   the mechanical disks

A flat device serves every place alike: an SSD, a RAID card with a cache, a virtual disk. For each
seed the throughput under stream:INNER over that under INNER, for the same work, of which the
inner policy needs 3 s or more (20 s with a disk, where a request takes longer). Everything is
virtual time: each run prints the same.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import random
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "sim"))
import test_property_sim as jobs

from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.simulate import Run, Setup, run_jobs

US = 1_000


def flat_device(seed: int) -> Disk:
    """From a fast SSD to a virtual disk that takes 2 ms for each request, one at a time."""
    dice = random.Random(f"device {seed}")
    return dataclasses.replace(
        load_disk("ssd"),
        flat_channels=dice.choice((1, 1, 2, 4, 8, 16)),
        flat_read_ns=dice.choice((20, 67, 200, 500, 1000, 2000)) * US,
        flat_write_ns=dice.choice((17, 50, 200, 1000)) * US,
    )


def ratio(seed: int, on_disks: bool) -> float:
    """Throughput under stream over that of the inner policy, with a learned curve."""
    jobs.LASTS_NS = 20_000_000_000 if on_disks else 3_000_000_000
    if not on_disks:
        jobs._disks.update(dict.fromkeys(jobs.MECHANICAL, load_disk("wd5000aaks")))
    one = jobs.workload(seed)
    disk = jobs.disk_of(one.disk) if on_disks else flat_device(seed)

    class Work(jobs.Workload):
        def run(self, policy: str, **_: int) -> Run:
            setup = Setup(disk, policy, owners=self.owners, queue_depth=self.depth, curve="learned")
            return run_jobs(setup, list(self.processes))

    fields = {f.name: getattr(one, f.name) for f in dataclasses.fields(one)}
    return Work(**fields).lasting().ratio()  # type: ignore[no-any-return]


def task(args: tuple[int, bool]) -> tuple[int, float]:
    """One seed, for a process of the pool."""
    seed, on_disks = args
    return seed, ratio(seed, on_disks)


def main() -> None:
    """Print the shares that are below, and the worst seeds."""
    first, nr = int(sys.argv[1]), int(sys.argv[2])
    on_disks = sys.argv[3:4] == ["disks"]
    tasks = [(seed, on_disks) for seed in range(first, first + nr)]
    with multiprocessing.Pool(2) as pool:
        found = dict(pool.map(task, tasks, chunksize=4))
    ratios = list(found.values())
    worst = sorted(found, key=lambda seed: found[seed])[:8]
    print(
        f"{nr} jobs, "
        f"{sum(r < 0.97 for r in ratios) / nr:.1%} below 0.97, "
        f"{sum(r < 0.9 for r in ratios) / nr:.1%} below 0.9, "
        f"least {min(ratios):.3f}, geometric mean {statistics.geometric_mean(ratios):.4f}"
    )
    print("  " + ", ".join(f"{seed}: {found[seed]:.3f}" for seed in worst), flush=True)


if __name__ == "__main__":
    main()
