# SPDX-License-Identifier: GPL-2.0-only
"""auto on work that its profile and its rule were not made for."""

from __future__ import annotations

import dataclasses
import math

import pytest
from rich.console import Console
from workloads import disk_of, workload

from streamsched.sim.choose import Selection
from streamsched.sim.profile_measure import measure
from streamsched.sim.simulate import Setup, run_jobs

DISK = "wd5000aaks"
SEEDS = range(8000, 8120)


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


@pytest.mark.long
def test_auto_does_no_harm_on_generated_work() -> None:
    """Rates, relative to the best fixed policy of each workload that lets nobody wait for long."""
    disk = disk_of(DISK)
    profile = measure(disk, jobs=2, console=Console(quiet=True))
    ratios: dict[str, list[float]] = {spec: [] for spec in (*profile.policies, "auto", "size")}
    for seed in SEEDS:
        one = workload(seed)
        if one.disk != DISK:
            continue
        work = list(dataclasses.replace(one, depth=1).lasting().processes)
        plain = Setup(disk, "auto", owners=one.owners)
        fixed = {
            spec: run_jobs(dataclasses.replace(plain, policy=spec), work)
            for spec in profile.policies
        }
        limit = Selection(profile, one.owners).longest_wait_ms
        bounded = [
            run
            for run in fixed.values()
            if max(job.longest_wait_ns for job in run.jobs) <= limit * 1e6
        ]
        least = min(run.seconds for run in bounded or fixed.values())
        for spec, run in fixed.items():
            ratios[spec].append(least / run.seconds)
        for name, rule in (("auto", "workload"), ("size", "size")):
            selection = Selection(profile, one.owners, rule=rule)
            run = run_jobs(dataclasses.replace(plain, selection=selection), work)
            ratios[name].append(least / run.seconds)
    means = {name: round(mean(found), 3) for name, found in ratios.items()}
    near = {name: sum(ratio >= 0.95 for ratio in found) for name, found in ratios.items()}
    # docs/guide/AUTO.md: here it is enough to begin with stream, and to leave it is seldom right.
    assert means.pop("auto") >= 0.955 >= max(means.values()) - 0.016, means
    assert near.pop("auto") >= 34 >= max(near.values()) - 2, near
    # The lowest is a workload on which nwcs:sptf is best and each stream is 0.76 or less: that
    # owners are who reads, as here, auto does not take for certain.
    assert min(ratios["auto"]) >= 0.74
    assert max(means["anticipatory"], means["cfq"], means["deadline"], means["noop"]) < 0.82
