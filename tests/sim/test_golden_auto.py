# SPDX-License-Identifier: GPL-2.0-only
"""What auto chooses on one fixed workload, when, and why, byte for byte.

Its rule is not of the core (streamsched/sim/choose.py), so it has a log of its own: of each rule
and goal a line with the time in seconds, the policy and the reason. A change of the rule, of what
workloads look like, or of a policy in the profile changes it: UPDATE_GOLDEN=1 pytest
tests/sim/test_golden_auto.py writes it anew, and the difference is part of the change.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from job_text import job_text
from profile_data import small_profile

from streamsched.sim.choose import Selection
from streamsched.sim.diskfile import load_disk
from streamsched.sim.profile import OWNERS
from streamsched.sim.simulate import Setup, run_jobs
from streamsched.work.jobfile import parse_jobs

GOLDEN = Path(__file__).parents[1] / "golden" / "auto.txt"
DISK = load_disk("wd5000aaks")
# Rule and goal.
RUNS = (("workload", "throughput"), ("workload", "p99"), ("size", "throughput"))
# Random reads of the whole disk, readers in sequence, both at once, random reads again.
WORK = job_text("""\
[global] direct=1 time_based runtime=15
[random] rw=randread bs=4k iodepth=32 ioengine=libaio
[readers] stonewall rw=read bs=64k size=20g offset_increment=25% numjobs=4
[both] stonewall rw=randread bs=4k
[and-readers] rw=read bs=64k size=20g offset_increment=50% numjobs=2
[again] stonewall rw=randread bs=4k iodepth=32 ioengine=libaio
""")


def play() -> str:
    """All that was chosen."""
    profile = small_profile()
    processes = parse_jobs(
        WORK, "auto", capacity_bytes=DISK.capacity_sectors * 512, environ={}, seed=0
    )
    lines = []
    for owners in OWNERS:
        for rule, goal in RUNS:
            lines.append(f"owners {owners}, rule {rule}, goal {goal}\n")
            chosen = Selection(profile, owners, goal=goal, rule=rule)
            setup = Setup(DISK, "auto", owners=owners, selection=chosen)
            run = run_jobs(setup, processes)
            lines += [f"{one.at_s:9.3f} {one.policy}: {one.why}\n" for one in run.choices]
            lines.append(f"{run.bytes} bytes in {run.duration_ns} ns\n")
    return "".join(lines)


def test_choices_are_the_golden_ones() -> None:
    log = play()
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_bytes(log.encode())
    golden = GOLDEN.read_bytes().decode()
    for number, (was, now) in enumerate(
        zip(golden.splitlines(), log.splitlines(), strict=False), start=1
    ):
        if was != now:
            pytest.fail(f"auto chooses otherwise at line {number}: {now}", pytrace=False)
    assert log == golden


def test_the_log_has_changes() -> None:
    """For throughput what it begins with stays; for p99 and by size there are changes."""
    found = {
        one.splitlines()[0]: [line.split()[1] for line in one.splitlines()[1:-1]]
        for one in GOLDEN.read_text().split("owners ")[1:]
    }
    assert len(found) == len(OWNERS) * len(RUNS)
    for owners in OWNERS:
        (first,) = found[f"{owners}, rule workload, goal throughput"]
        assert first.startswith("stream:")
        changes = found[f"{owners}, rule workload, goal p99"]
        assert changes
        before, after = found[f"{owners}, rule size, goal throughput"]
        assert before == "deadline:" != after
