# SPDX-License-Identifier: GPL-2.0-only
"""auto beside the best fixed policy on what `streamsched research reproduce auto` does not
have: evidence for docs/guide/AUTO.md.

    python bench/choice.py              all of them (5 min with the disks' profiles)
    python bench/choice.py many-readers ftp-2vm

Those of docs/sim/WORKLOADS.md, but for pvfs (a profile is of one disk), and jobs/many-readers.fio;
each with the owners that it has and with hidden ones. By throughput; where one process is there
only to be in the way of the other, by the time of that. Everything is virtual time: each run
prints the same.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence

from rich.console import Console

from streamsched.base.errors import exit_code_of, named
from streamsched.sim.auto import obtain
from streamsched.sim.choose import Selection
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.policies import AUTO
from streamsched.sim.profile import Profile
from streamsched.sim.simulate import Run, Setup, run_jobs
from streamsched.sim.workloads import WORKLOADS, job_path
from streamsched.work.jobfile import load_jobs
from streamsched.work.process import Process

JOBS = ("many-readers", "scrub-beside-vms")
WORKS = (*JOBS, *(name for name, workload in WORKLOADS.items() if not workload.array))
# Who takes longer, in virtual time, has starved somebody.
LIMIT_NS = 3600 * 10**9


def setup_of(work: str) -> tuple[Setup, list[Process]]:
    """What it runs on, and its processes."""
    if work in JOBS:
        setup = Setup(load_disk("wd5000aaks"), "noop", owners="process")
        path = job_path(f"{work}.fio")
        return setup, load_jobs(path, capacity_bytes=setup.capacity_bytes)
    setup = WORKLOADS[work].setup("noop")
    return setup, WORKLOADS[work].processes(setup.capacity_bytes)


def merit(run: Run, processes: Sequence[Process]) -> float:
    """MB/s, or the part of a second's work that is done in one where others are in the way."""
    if any(process.background for process in processes):
        last = run.jobs[-1]
        return 1e9 / last.duration_ns if last.duration_ns else 0.0
    return run.mb_s


def line(profile: Profile, work: str, *, hidden: bool) -> str:
    """Of one workload."""
    plain, processes = setup_of(work)
    owners = "none" if hidden else plain.owners
    plain = dataclasses.replace(plain, owners=owners, stop_ns=LIMIT_NS)
    runs = {
        spec: run_jobs(dataclasses.replace(plain, policy=spec), processes)
        for spec in profile.policies
    }
    selection = Selection(profile, "none" if hidden else "process")
    run = run_jobs(dataclasses.replace(plain, policy=AUTO, selection=selection), processes)
    limit_ns = selection.longest_wait_ms * 1e6
    bounded = [
        spec
        for spec, one in runs.items()
        if one.duration_ns < LIMIT_NS and max(j.longest_wait_ns for j in one.jobs) <= limit_ns
    ]
    best = max(bounded or runs, key=lambda spec: merit(runs[spec], processes))
    ratio = merit(run, processes) / merit(runs[best], processes)
    return (
        f"{work:17} {'hidden' if hidden else 'visible':8} {best:16} {ratio:.3f}  "
        f"{len(run.choices) - 1}  {run.choices[0].policy} ... {run.choices[-1].policy}"
    )


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name")
    (works,) = named(parser.parse_args().names, ("workload", WORKS))
    profiles: dict[Disk, Profile] = {}
    print("workload          owners   best fixed       auto to it, changes, begins ... ends with")
    for work in works:
        disk = setup_of(work)[0].disk
        if disk not in profiles:
            profiles[disk] = obtain(disk, 1, None, 1, Console(stderr=True))
        for hidden in (False, True):
            print(line(profiles[disk], work, hidden=hidden), flush=True)


if __name__ == "__main__":
    sys.exit(exit_code_of("choice.py", main))
