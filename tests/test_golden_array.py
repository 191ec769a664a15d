# SPDX-License-Identifier: GPL-2.0-only
"""What a coordinated array dispatches on one fixed workload, byte for byte.

A change of the coordinator that is meant changes the log: UPDATE_GOLDEN=1 pytest
tests/test_golden_array.py writes it anew, and the difference is part of the change.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamsched.array import parse_array
from streamsched.diskfile import load_disk
from streamsched.jobfile import parse_jobs
from streamsched.simulate import Setup, Simulation

GOLDEN = Path(__file__).parent / "golden"

JOBS = """\
[sequential]
rw=read
bs=64k
size=1g
io_size=24m
direct=1
offset_increment=100g
numjobs=2

[random]
rw=randread
bs=4k
size=8g
io_size=160k
direct=1
offset=300g
norandommap
"""


@pytest.mark.parametrize("array", ["raid0:3:64k", "raid5:4:64k"])
def test_an_arrays_dispatches_are_the_golden_ones(array: str) -> None:
    path = GOLDEN / f"array-{array.replace(':', '-')}.txt"
    setup = Setup(
        load_disk("wd5000aaks"), "stream:deadline", owners="none", array=parse_array(array)
    )
    processes = parse_jobs(JOBS, "golden", capacity_bytes=setup.capacity_bytes)
    with Simulation(setup) as simulation:
        for process in processes:
            simulation.add(process)
        simulation.log(1 << 16)
        for _ in simulation.steps():
            pass
        rows = zip(simulation.log_rows(), simulation.log_disks(), strict=True)
        run = simulation.result([process.name for process in processes])
    lines = [
        f"{dispatch} disk {disk} job {job} sector {sector}+{sectors} until {done}"
        for (_, dispatch, done, sector, sectors, job), disk in rows
    ]
    lines += [f"{name} {value}" for name, value in {**run.counters, **run.array_counters}.items()]
    log = "\n".join(lines) + "\n"
    assert run.array_counters["turns"] > 1
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(log)
    golden = path.read_text()
    if log != golden:
        pairs = zip(golden.splitlines(), log.splitlines(), strict=False)
        where = next((f"{was!r}, now {now!r}" for was, now in pairs if was != now), "the end")
        pytest.fail(f"{path.name}: golden {where}", pytrace=False)
