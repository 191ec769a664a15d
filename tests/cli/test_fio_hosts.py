# SPDX-License-Identifier: GPL-2.0-only
"""Where a real fio runs the job file: its sections, its times, and what is left of the trace."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
from said import ran

from streamsched.base.errors import UsageError
from streamsched.hosts.fiorun import FioJob, fio_run, ramp_of_all
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Setup
from streamsched.work.blocktrace import parse
from streamsched.work.fio_options import IGNORED, NOTED, OPTIONS
from streamsched.work.fio_write import OTHERWISE, Place, alone_text, job_text
from streamsched.work.jobfile import JobFile, parse_job_file
from streamsched.work.process import Process

S, MS, M = 10**9, 10**6, 1024**2
DISK = 100 * M
FIO = shutil.which("fio")


def job(text: str, beside: Path | None = None) -> JobFile:
    environ = {"STREAMSCHED_DISK": "disk"}
    return parse_job_file(text, "a.fio", capacity_bytes=DISK, environ=environ, beside=beside)


def jobs(text: str) -> list[Process]:
    return list(job(text).processes)


def fio_parses(text: str, folder: Path) -> None:
    """fio itself takes it."""
    assert FIO
    (folder / "a.fio").write_text(text.replace("${STREAMSCHED_DISK}", "disk"))
    done = ran(FIO, "--parse-only", "a.fio", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr


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
    section = alone_text([(process, process.io_bytes)], Place(), 20)
    (again,) = jobs(section)
    # What a section for one process alone sets by itself.
    same = {"runtime_ns": again.runtime_ns, "seed": again.seed, "rate_unit": again.rate_unit}
    again = dataclasses.replace(again, name=process.name)
    assert dataclasses.replace(process, **same) == again  # type: ignore[arg-type]
    fio_parses(section, tmp_path)


# Of each option a value that is not its default; and what it needs beside it.
VALUES = {
    "invalidate": "invalidate=0",
    "rw": "rw=write:8k",
    "rwmixread": "rw=rw\nrwmixread=30",
    "rwmixwrite": "rw=rw\nrwmixwrite=30",
    "bs": "rw=rw\nbs=8k,16k",
    "bsrange": "rw=randrw\nbsrange=4k-64k,8k-8k",
    "bssplit": "rw=randrw\nbssplit=4k/10:64k/,8k",
    "ba": "rw=randrw\nba=,8k",
    "bs_is_seq_rand": "rw=randread\nbs=4k,64k\nbs_is_seq_rand=1\npercentage_random=50",
    "filename": "filename=other",
    "directory": "filename=x\ndirectory=d",
    "filename_format": "numjobs=2\nfilename_format=x.$jobnum",
    "offset": "offset=30%",
    "offset_increment": "offset_increment=30%\nnumjobs=2",
    "offset_align": "offset=30%\noffset_align=8k",
    "size": "size=50%",
    "filesize": "filesize=2m",
    "nrfiles": "filename=x\nnrfiles=4",
    "file_service_type": "filename=x\nfile_service_type=random:8",
    "openfiles": "filename=x\nopenfiles=1",
    "io_size": "io_size=3m",
    "number_ios": "number_ios=7",
    "loops": "loops=3",
    "zonemode": "zonemode=strided\nzonesize=64k",
    "zonesize": "zonemode=strided\nzonesize=128k",
    "zonerange": "zonemode=strided\nzonesize=64k\nzonerange=128k",
    "zoneskip": "zonemode=strided\nzonesize=64k\nzoneskip=64k",
    "norandommap": "rw=randread\nnorandommap",
    "random_distribution": "rw=randread\nrandom_distribution=zipf:0.0000001",
    "percentage_random": "rw=randrw\npercentage_random=70,20",
    "rw_sequencer": "rw=randread:8\nrw_sequencer=identical",
    "randrepeat": "randrepeat=0",
    "randseed": "randseed=9223372036854775807",
    "direct": "direct=1",
    "buffered": "buffered=0",
    "ioengine": "ioengine=libaio",
    "iodepth": "ioengine=libaio\ndirect=1\niodepth=4",
    "fsync": "rw=write\nfsync=3",
    "fdatasync": "rw=write\nfdatasync=3",
    "end_fsync": "rw=write\nend_fsync=1",
    "fsync_on_close": "rw=write\nfsync_on_close=1",
    "numjobs": "numjobs=3",
    "thinktime": "thinktime=3ms",
    "thinktime_blocks": "thinktime=3ms\nthinktime_blocks=5",
    "rate": "rw=rw\nrate=1m,",
    "rate_iops": "rw=rw\nrate_iops=,9",
    "rate_process": "rate=1m\nrate_process=poisson",
    "rate_ignore_thinktime": "rate=1m\nrate_ignore_thinktime=1",
    "startdelay": "startdelay=1500ms",
    "runtime": "runtime=3",
    "time_based": "runtime=3\ntime_based",
    "ramp_time": "ramp_time=1500ms",
    "stonewall": "stonewall",
    "wait_for": "wait_for=first",
    "exitall": "exitall",
    "exit_what": "exitall\nexit_what=all",
    "new_group": "exitall\nnew_group",
    "name": "name=a b; c [d]",
    "cgroup": "cgroup=vm",
    "kb_base": "kb_base=1000\nbs=512k",
    "fadvise_hint": "fadvise_hint=0",
    "sync": "sync=0",
    "bs_unaligned": "bs_unaligned=0",
    "thinktime_blocks_type": "thinktime_blocks_type=complete",
    "pre_read": "pre_read=0",
    "verify": "verify=null",
    "file_append": "file_append=0",
    "io_submit_mode": "direct=1\nrate=1m\niodepth=4\nio_submit_mode=offload",
}


# Here each clone, or the job, has a file of its own beside that of the first.
OWN_FILES = ("filename_format", "numjobs", "filesize", "io_size", "cgroup")


def test_every_option_is_written_or_known_not_to_be() -> None:
    rows = {option.key for option in OPTIONS}
    assert rows - set(VALUES) == {"owner_weight"}  # which is fio's no more
    assert rows >= OTHERWISE


@pytest.mark.skipif(FIO is None, reason="fio is not installed")
@pytest.mark.parametrize("key", VALUES)
def test_a_job_file_written_anew_is_the_same(key: str, tmp_path: Path) -> None:
    """What fio is given is read back as the same processes, and fio takes it."""
    own = key in OWN_FILES or "filename=" in VALUES[key]
    disk = "" if own else "filename=f\n"
    file = job(f"[first]\nfilename=f\nsize=1m\n[a]\n{disk}size=1m\n{VALUES[key]}\n")
    text = job_text(file, Place())
    again = job(text)
    names = {f"job{number}": section.name for number, section in enumerate(file.sections)}

    def alike(process: Process, name: str, wait_for: str) -> Process:
        """Without what is the simulator's alone, and what is of no effect beside a filename."""
        return dataclasses.replace(
            process,
            name=name,
            wait_for=wait_for,
            opens="",
            group=0,
            file_service=0,
            file_service_blocks=1,
        )

    assert [alike(p, p.name, p.wait_for) for p in file.processes] == [
        alike(p, names[p.name], names.get(p.wait_for, p.wait_for)) for p in again.processes
    ]
    fio_parses(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "[a]\noffset=1m\nsize=1m\n[b]\nnumjobs=3\nsize=1m\n",
            "b: not under a real fio, for its files are not equally far apart on the disk",
        ),
        (
            "[a]\nsize=1m\n[b]\nsize=1m\nzonemode=strided\nzonesize=64k\nzoneskip=64k\n",
            "b: not under a real fio, for its zones would go on to the end of the disk, not of its "
            "file",
        ),
    ],
)
def test_files_that_no_region_of_the_disk_can_be(text: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        job_text(job(text), Place("nbd+unix:///?socket=socket"))
    assert str(caught.value) == f"a.fio: {why}; write filename= of the disk, and offset="


HOSTILE = (
    "exec_prerun=touch owned",
    "exec_postrun=touch owned",
    "description=${HOME}",
    "ioscheduler=none",
    "lockfile=none",
    "mem=mmaphuge:owned",
    "buffer_pattern='owned'",
    "name=owned]\tioengine=external:owned",
    "cgroup=owned",
    "cgroup_nodelete=1",
    "uid=1",
    "cpus_allowed=0",
    "directory=owned",
    "filename=owned",
    "write_bw_log=owned",
    "verify_state_save=owned",
    "fallocate=native",
    "unlink=1",
    "overwrite=1",
    "error_dump=1",
    "thread",
    "group_reporting",
    "include more",
)


@pytest.mark.skipif(FIO is None, reason="fio is not installed")
@pytest.mark.parametrize("uri", ["", "nbd+unix:///?socket=socket"])
@pytest.mark.parametrize("line", HOSTILE)
def test_nothing_of_a_job_file_reaches_fio_as_it_stands(
    line: str, uri: str, tmp_path: Path
) -> None:
    (tmp_path / "more").write_text("filename=owned\nioengine=psync\nexec_prerun=touch owned\n")
    plain = "[global]\nsize=1m\n[a]\nrw=write\n"
    file = job(f"{plain}filename=owned\n{line}\n", beside=tmp_path)
    text = job_text(file, Place(uri))
    assert text == job_text(job(plain), Place(uri))
    key = line.split("=")[0]
    assert (key in file.ignored) == (key in IGNORED or key in NOTED)
    alone = alone_text([(file.processes[0], 4096)], Place(uri), 1)
    for written in (text, alone):
        assert "owned" not in written
        assert "exec" not in written
        fio_parses(
            written.replace("ioengine=nbd", "ioengine=null").replace(f"uri={uri}", ""), tmp_path
        )
    assert not (tmp_path / "owned").exists()


def duration_s(text: str, *seconds: float) -> float:
    """How long a run took whose jobs took @seconds each."""
    processes = jobs(text)
    made = [FioJob(M, 0, int(s * S)) for s in seconds]
    setup = Setup(load_disk("ssd"), "none")
    return fio_run(made, parse([]), setup, processes, 0.0, {}).seconds


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
