# SPDX-License-Identifier: GPL-2.0-only
"""A scrub beside VMs that read at random: who has which part, and how long a VM waits.

    python -P bench/scrub_beside_vms.py [--to docs/results/scrub-beside-vms.md --force]

jobs/scrub-beside-vms.fio with 1 to 32 VMs, on several disks. Everything is virtual time.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from rich.console import Console

from streamsched.base.errors import exit_code_of
from streamsched.base.files import check_output, target, write_whole
from streamsched.base.progress import nr_jobs
from streamsched.sim.compare import compare
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.simulate import Setup
from streamsched.work.jobfile import load_jobs
from streamsched.work.process import Process

JOB = Path(__file__).resolve().parents[1] / "jobs" / "scrub-beside-vms.fio"
DISKS = ("exos-x18", "st2000dm006", "wd5000aaks")
DEPTHS = (32, 1)
VMS = (1, 2, 4, 8, 16, 32)
# Of cfq we say what it does where it sees who sends.
POLICIES = (("deadline", "none"), ("cfq", "process"), ("stream:deadline", "none"))

HEAD = """<!-- SPDX-License-Identifier: GPL-2.0-only -->
# A scrub beside VMs

Written by `make results WHAT=scrub-beside-vms`; do not edit. In the simulator,
`jobs/scrub-beside-vms.fio` with 1 to 32 VMs: a scrub has three reads of 1 MiB at once, each VM
one of 4 KiB at random. Only cfq sees who sends.

- A *part* is a rate as part of that alone, times how many they are: 1.0 is an equal part. Of the
  VMs it is that of the one that has least. All have more where a disk gains by several commands.
- *mean* and *p99* are response times in ms of the VM whose mean is longest; *longest* is the wait
  of any request, in ms, until it goes to the disk.

| disk | commands | VMs | policy | scrub's part | a VM's part | mean | p99 | longest |
|---|---:|---:|---|---:|---:|---:|---:|---:|
"""


def work(disk: Disk, nr: int) -> list[Process]:
    """The scrub at the beginning of @disk, and @nr VMs as far apart as in the job, if they fit."""
    capacity = disk.capacity_sectors * 512
    scrub, vm, other = load_jobs(JOB, capacity_bytes=capacity, environ={})[:3]
    step = min(other.offset - vm.offset, (capacity - vm.offset) // nr >> 20 << 20)
    vms = [
        dataclasses.replace(
            vm,
            name=f"vm{number}",
            group=1 + number,
            offset=vm.offset + number * step,
            size=min(vm.size, step),
            seed=vm.seed + number,
        )
        for number in range(nr)
    ]
    return [scrub, *vms]


def rows(name: str, depth: int, nr: int, jobs: int) -> list[str]:
    """A disk, so many commands in it, so many VMs."""
    disk = load_disk(name)
    setups = [Setup(disk, policy, owners=owners, queue_depth=depth) for policy, owners in POLICIES]
    comparison = compare(setups, work(disk, nr), jobs=jobs, console=Console(stderr=True))
    lines = []
    for run in comparison.runs:
        shares = [(comparison.share(run, number) or 0.0) * (nr + 1) for number in range(nr + 1)]
        slow = max((job.response for job in run.jobs[1:]), key=lambda times: times.mean)
        longest = max(job.longest_wait_ns for job in run.jobs) / 1e6
        lines.append(
            f"| {name} | {depth} | {nr} | {run.setup.policy} | {shares[0]:.2f} "
            f"| {min(shares[1:]):.2f} | {slow.mean:.0f} | {slow.p99:.0f} | {longest:.0f} |"
        )
    return lines


def main() -> None:
    """Measure all; print the document or write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", type=Path, help="the document; without it the table is printed")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    arguments = parser.parse_args()
    document = target(arguments.to, arguments.force)
    check_output(document)
    jobs = nr_jobs(0)
    lines = [
        line
        for name in DISKS
        for depth in DEPTHS
        for nr in VMS
        for line in rows(name, depth, nr, jobs)
    ]
    text = HEAD + "\n".join(lines) + "\n"
    if document:
        write_whole(document, text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    sys.exit(exit_code_of("scrub_beside_vms.py", main))
