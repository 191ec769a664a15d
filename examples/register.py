# SPDX-License-Identifier: GPL-2.0-only
"""A policy by a name of its own, from Python: python examples/register.py JOB.fio."""

from __future__ import annotations

import sys

from lifo import Lifo

import streamsched
from streamsched.sim.compare import compare
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Setup
from streamsched.work.jobfile import load_jobs

# Not below: a worker process that is spawned runs only what is up here.
streamsched.register_policy("lifo", Lifo)

if __name__ == "__main__":
    disk = load_disk("wd5000aaks")
    processes = load_jobs(sys.argv[1], capacity_bytes=disk.capacity_sectors * 512)
    for run in compare([Setup(disk, "lifo"), Setup(disk, "deadline")], processes, jobs=2).runs:
        print(f"{run.setup.policy}: {run.mb_s:.1f} MB/s, longest wait {run.wait.max:.0f} ms")
