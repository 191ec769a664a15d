# SPDX-License-Identifier: GPL-2.0-only
"""Where a real fio runs the job file: its sections, its times, and what is left of the trace."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest

from streamsched.blocktrace import parse
from streamsched.diskfile import load_disk
from streamsched.fiorun import FioJob, fio_run, ramp_of_all
from streamsched.jobfile import Process, parse_jobs
from streamsched.kernelhost import process_section
from streamsched.simulate import Setup

S, MS, M = 10**9, 10**6, 1024**2
DISK = 100 * M
FIO = shutil.which("fio")


def jobs(text: str) -> list[Process]:
    return parse_jobs(text, "a.fio", capacity_bytes=DISK, environ={"STREAMSCHED_DISK": "disk"})


@pytest.mark.skipif(FIO is None, reason="fio is not installed")
@pytest.mark.parametrize(
    "lines",
    [
        "rw=read:-8k",
        "rw=randread:8\nrw_sequencer=identical",
        "rw=randrw\npercentage_random=70,20\nrwmixread=30",
        "rw=randread\nbs=4k,64k\nbs_is_seq_rand=1",
        "rw=randread\nbsrange=4k-64k",
        "rw=randrw\nbsrange=4k-64k,8k-8k",
        "rw=randread\nrandom_distribution=zipf:1.2:0.5",
        "rw=randread\nrandom_distribution=pareto",
        "rw=randread\nrandom_distribution=normal:10",
        "rw=randrw\nrandom_distribution=zoned:60/10:40/",
        "rw=randread\nrandom_distribution=zoned_abs:60/64k:40/512k",
    ],
)
def test_a_process_alone_is_the_same_process(lines: str, tmp_path: Path) -> None:
    """Its section for a real fio is read back as what it was made from, and fio takes it."""
    (process,) = jobs(f"[a]\nfilename=${{STREAMSCHED_DISK}}\nsize=1m\n{lines}\n")
    section = process_section(process, process.io_bytes)
    (again,) = jobs(section)
    # What a section for one process alone sets by itself.
    same = {"runtime_ns": again.runtime_ns, "seed": again.seed, "rate_unit": again.rate_unit}
    assert dataclasses.replace(process, **same) == again  # type: ignore[arg-type]
    assert FIO
    (tmp_path / "a.fio").write_text(section.replace("${STREAMSCHED_DISK}", "disk"))
    done = subprocess.run(
        [FIO, "--parse-only", str(tmp_path / "a.fio")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def duration_s(text: str, *seconds: float) -> float:
    """How long a run took whose jobs took @seconds each."""
    processes = jobs(text)
    ran = [FioJob(p.name, M, 0, int(s * S)) for p, s in zip(processes, seconds, strict=True)]
    setup = Setup(load_disk("ssd"), "none")
    return fio_run(ran, parse([]), setup, processes, 0.0, {}).seconds


def test_the_duration_knows_who_waited_for_whom() -> None:
    text = "[global]\nsize=1m\nfilename=x\n"
    assert duration_s(text + "[a]\n[b]\n", 3, 2) == 3
    assert duration_s(text + "[a]\n[b]\nstonewall\n", 3, 2) == 5
    assert duration_s(text + "[a]\n[b]\nwait_for=a\n[c]\n", 3, 2, 4) == 5
    assert duration_s(text + "[a]\n[b]\nstartdelay=2\n", 3, 2) == 4
    assert duration_s(text + "[a]\n[b]\nstonewall\nstartdelay=2\n", 3, 2) == 5
    # A ramp is not part of what fio says a job took, and none of ours.
    assert duration_s(text + "ramp_time=5\n[a]\n[b]\n", 3, 2) == 3
    assert duration_s(text + "ramp_time=5\n[a]\n[b]\nstonewall\n", 3, 2) == 10


def test_a_ramp_is_left_out_of_the_trace() -> None:
    text = "[global]\nsize=1m\nfilename=x\nstartdelay=1\n"
    assert ramp_of_all(jobs(text + "[a]\n[b]\n")) == 0
    assert ramp_of_all(jobs(text + "ramp_time=5\n[a]\n[b]\n")) == 5 * S
    assert ramp_of_all(jobs(text + "[a]\nramp_time=5\n[b]\n")) == 0
    assert ramp_of_all(jobs(text + "ramp_time=5\n[a]\n[b]\nramp_time=1\n[c]\nstonewall\n")) == S
    lines = []
    for second in range(4):
        for ms, event in ((0, "bio_queue"), (100, "rq_issue"), (200, "rq_complete")):
            lines.append(f" {second + 7}.{ms:03}000: block_{event}: 8,0 R {second * 800} + 8 [x]")
    whole = parse(lines)
    assert (len(whole.requests), whole.seeks, whole.idle_ns) == (4, 3, 400 * MS)
    late = parse(lines, skip_ns=1050 * MS)
    assert [request.sector for request in late.requests] == [800, 1600, 2400]
    assert (late.seeks, late.idle_ns) == (3, 250 * MS)
