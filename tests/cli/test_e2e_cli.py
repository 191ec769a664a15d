# SPDX-License-Identifier: GPL-2.0-only
"""The command as a user runs it: bad input, output files, pipes, Ctrl-C, help."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import zstandard
from said import COMMAND, ran

from streamsched.sim.policies import WORK_CONSERVING, all_policies

DATA = Path(__file__).parents[1] / "data"
JOB = DATA / "e2e/two-readers.fio"
LONG = DATA / "e2e/long.fio"

EVENT = b"8,0 1 1 0.5 697 Q R 1000 + 8 [x]\n"
PLAIN = EVENT + b"8,0 1 2 0.6 697 Q R 2000 + 8 [x]\n8,0 1 3 0.7 697 Q W 3000 + 8 [x]\n"
PAPERS_LAST_SECTOR = 976_773_167

POLICIES = all_policies()
INNER = ", ".join(one.name for one in POLICIES.values() if one.flags & WORK_CONSERVING)
WRAPPING = f"write nwcs:POLICY or ss:POLICY or stream:POLICY with one of {INNER}"

NO_MODEL = (
    "is a disk, not the model of one; `streamsched list disks` has models, and "
    "`streamsched calibrate` makes one of a disk"
)
USB = ["--disk", "usb2-2tb", "--queue-depth", "4"]
WHY_USB = "--queue-depth 4: usb2-2tb takes 1 command at once"

Done = subprocess.CompletedProcess[str]


def streamsched(
    *arguments: object, stdin: bytes = b"", cwd: Path | None = None, **environ: str
) -> Done:
    done = subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=120,
        env={**os.environ, "COLUMNS": "120", **environ},
        cwd=cwd,
    )
    return Done(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def why_refused(*arguments: object, to: Path | None = None, stdin: bytes = b"") -> str:
    """The one sentence; nothing else was printed or written."""
    before = sorted(to.parent.iterdir()) if to else []
    more = ("--output", "json", "--to", to) if to else ()
    done = streamsched(*arguments, *more, stdin=stdin)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("streamsched: ")
    if to:
        assert sorted(to.parent.iterdir()) == before
    return lines[0].removeprefix("streamsched: ")


@pytest.fixture
def to(tmp_path: Path) -> Path:
    """Where results would go, in a folder of their own."""
    folder = tmp_path / "results"
    folder.mkdir()
    return folder / "results.json"


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A job that takes minutes."""
    job = tmp_path / "endless.fio"
    job.write_text(LONG.read_text().replace("6g", "4000g"))
    return job


# Options.


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--policy", "deadlin"], "unknown policy 'deadlin'; did you mean 'deadline'?"),
        (
            ["--policy", "stream"],
            'policy "stream": name the inner policy after a colon, as in stream:deadline',
        ),
        (
            ["--policy", "stream:anticipatory"],
            'policy "stream:anticipatory": only a work-conserving policy can be wrapped; '
            + WRAPPING,
        ),
        (
            ["--policy", "stream:cfq"],
            'policy "stream:cfq": only a work-conserving policy can be wrapped; ' + WRAPPING,
        ),
        (
            ["--policy", "stream:stream:deadline"],
            'policy "stream:stream:deadline": only a work-conserving policy can be wrapped; '
            + WRAPPING,
        ),
        (
            ["--policy", "nwcs:noop:x"],
            f"unknown policy 'x'; there are: {', '.join(POLICIES)}, auto",
        ),
        (
            ["--policy", "nwcs:noop:sptf"],
            'policy "nwcs:noop:sptf": this policy wraps no other; ' + WRAPPING,
        ),
        (
            ["--policy", "nwcs:stream:noop"],
            'policy "nwcs:stream:noop": only a work-conserving policy can be wrapped; ' + WRAPPING,
        ),
        (["--policy", "stream:deadlin"], "unknown policy 'deadlin'; did you mean 'deadline'?"),
        (
            ["--policy", "noop,deadline:noop"],
            'policy "deadline:noop": this policy wraps no other; ' + WRAPPING,
        ),
        (["--policy", "NOOP"], "unknown policy 'NOOP'; did you mean 'noop'?"),
        (["--policy", "atuo"], "unknown policy 'atuo'; did you mean 'auto'?"),
        (
            ["--policy", "stream:mq-deadline"],
            'policy "stream:mq-deadline": mq-deadline is of the kernel, there only with '
            "`run --on kernel`; deadline is like it",
        ),
        (
            ["--policy", "bfq"],
            'policy "bfq": bfq is of the kernel, there only with `run --on kernel`; '
            "cfq is its predecessor",
        ),
        (
            ["--policy", "kyber"],
            'policy "kyber": kyber is of the kernel, there only with `run --on kernel`; '
            "`streamsched list policies` lists those that are here",
        ),
        (["--policy", ""], "--policy is empty; name at least one, as in noop,stream:deadline"),
        (
            ["--policy", "noop,sptf, noop"],
            "--policy noop,sptf, noop: noop stands there twice; leave one of them out",
        ),
        (["--policy", " , "], "--policy is empty; name at least one, as in noop,stream:deadline"),
        (["--policy", "noop,,sptf"], "--policy noop,,sptf: a name is missing beside a comma"),
        (["--policy", "noop,"], "--policy noop,: a name is missing beside a comma"),
        (
            ["--policy", "stream:"],
            'policy "stream:": a name is missing beside the colon; '
            "write both, as in stream:deadline",
        ),
        (
            ["--policy", ":noop"],
            'policy ":noop": a name is missing beside the colon; write both, as in stream:deadline',
        ),
        (
            ["--policy", "noop,cfq", "--weight", "reader=2"],
            "--weight: none of noop, cfq has weights; these have: stride, wfq, stream",
        ),
        (
            ["--policy", "wfq", "--owners", "process", "--weight", "reader=0"],
            "--weight reader=0: a weight is a whole number from 1 to 1000",
        ),
        (
            ["--policy", "wfq", "--owners", "process", "--weight", "reader=1.5"],
            "--weight reader=1.5: a weight is a whole number from 1 to 1000",
        ),
        (
            ["--policy", "wfq", "--owners", "process", "--weight", f"reader={'9' * 5000}"],
            f"--weight reader={'9' * 5000}: a weight is a whole number from 1 to 1000",
        ),
        (
            ["--policy", "wfq", "--owners", "process", "--weight", "reader=\u0663"],
            "--weight reader=\u0663: a weight is a whole number from 1 to 1000",
        ),
        (
            ["--policy", "wfq", "--owners", "process", "--weight", "readex=2"],
            "unknown owner 'readex'; did you mean 'reader'?",
        ),
        (
            ["--policy", "wfq", "--owners", "process", "--weight", "reader"],
            "--weight reader: write OWNER=N, as in reader=2",
        ),
        (
            ["--policy", "wfq", "--owners", "none", "--weight", "reader=2"],
            "--weight: with --owners none nobody's share can be told from others'",
        ),
        (
            [
                "--policy",
                "wfq",
                "--owners",
                "process",
                "--weight",
                "reader=2",
                "--weight",
                "reader=3",
            ],
            "--weight reader=3: its owner has another weight already",
        ),
        (["--weight", "reader=2", "--on", "nbd"], "--weight reader=2: not with --on nbd"),
        (["--policy", "noop", "--set", "cooperation=0"], "--set cooperation: noop has no tunables"),
        (["--disk", "wd5000aak"], "no disk is called 'wd5000aak', did you mean 'wd5000aaks'?"),
        (["--disk", "sda"], f"sda: {NO_MODEL}"),
        (["--disk", "/dev/nvme0n1"], f"/dev/nvme0n1: {NO_MODEL}"),
        (["--disk", "none.toml"], "none.toml: cannot read it: No such file or directory"),
        (["--queue-depth", "0"], "--queue-depth 0: exos-x18 takes 1 to 32 commands at once"),
        (["--queue-depth", "33"], "--queue-depth 33: exos-x18 takes 1 to 32 commands at once"),
        (["--queue-depth", "-1"], "--queue-depth -1: exos-x18 takes 1 to 32 commands at once"),
        (USB, WHY_USB),
        ([*USB, "--on", "kernel"], WHY_USB),
        ([*USB, "--on", "nbd"], WHY_USB),
        (["--disk", "ssd,usb2-2tb", "--array", "raid0:2:64k", *USB[2:]], WHY_USB),
        (
            ["--set", "wait_targt=1s"],
            "unknown tunable 'wait_targt'; did you mean 'wait_target'?",
        ),
        (
            ["--set", "wait_target=100s"],
            "wait_target=100s: must be within 10ms to 60s",
        ),
        (
            ["--set", "wait_target=999us"],
            "wait_target=999us: must be within 10ms to 60s",
        ),
        (["--set", "stream_threshold=0"], "stream_threshold=0: must be within 2 to 1000"),
        (
            ["--set", "wait_target=100kb"],
            "wait_target=100kb: is not in a unit of a time; write ns, us, ms or s",
        ),
        (
            ["--set", "wait_target=fast"],
            "wait_target=fast: is no value; write a time such as 500ms",
        ),
        (
            ["--set", "wait_target"],
            "--set wait_target: write TUNABLE=VALUE, as in wait_target=500ms",
        ),
        (
            ["--set", "wait_target="],
            "wait_target=: is no value; write a time such as 500ms",
        ),
        # What is said to write instead is not refused in its turn.
        (
            ["--set", "wait_target=0.5"],
            "wait_target=0.5: has no unit; write a time such as 0.5s",
        ),
        (
            ["--set", "wait_target=0.0001"],
            "wait_target=0.0001: has no unit; write a time such as 500ms",
        ),
        (
            ["--set", "answer_time=10ms"],
            "--set answer_time: it is gone: how long the head waits is learned",
        ),
        (
            ["--set", "stream_time_slice=auto"],
            "--set stream_time_slice: it is gone: "
            "slices follow from wait_target, which is to be set instead",
        ),
        (
            ["--set", "backward_cost=2"],
            "backward_cost=2: has no unit; write a percentage such as 150%",
        ),
        (
            ["--set", "back_seek_max=16384"],
            "back_seek_max=16384: has no unit; write a length such as 16384sectors",
        ),
        (
            ["--set", "stream_threshold=5", "--set", "stream_threshold=6"],
            "--set stream_threshold=6: stream_threshold is set twice; leave one of them out",
        ),
        (["--set", "=5"], "--set =5: write TUNABLE=VALUE, as in wait_target=500ms"),
        (["--disk", "ssd,"], "--disk ssd,: a name is missing beside a comma"),
        (
            ["--policy", "noop", "--set", "wait_target=1s"],
            "--set wait_target: noop has no tunables",
        ),
        (
            ["--set", "age_limit=1s"],
            "--set age_limit: is a tunable of sptf; name it in --policy, or leave the setting out",
        ),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_bad_option(options: list[str], why: str, to: Path) -> None:
    assert why_refused("run", JOB, *options, to=to) == why


def test_bad_option_of_a_replay(tmp_path: Path, to: Path) -> None:
    trace = tmp_path / "a.trace"
    trace.write_bytes(PLAIN)
    assert "did you mean 'deadline'" in why_refused("replay", trace, "--policy", "deadlin", to=to)
    assert "1 to 32" in why_refused("replay", trace, "--queue-depth", "33", to=to)
    assert why_refused("replay", trace, *USB, to=to) == WHY_USB
    why = why_refused("replay", trace, "--format", "blkpars", to=to)
    assert why == "unknown trace format 'blkpars'; did you mean 'blkparse'?"


def test_fio_json_has_deviations(tmp_path: Path) -> None:
    """Of what processes see, as plots show them: random reads differ, others may not."""
    job = tmp_path / "a.fio"
    job.write_text(
        "[global]\ndirect=1\nsize=1m\n[a]\nrw=randread\n[b]\nrw=read\nbs=512k\nstonewall\n"
    )
    text = streamsched("run", job, "--policy", "noop", "--output", "fio-json").stdout
    jobs = json.loads(text)["jobs"]
    one, two = (entry["read"] for entry in jobs)
    times = one["clat_ns"]
    assert times["N"] == 256
    # Popoviciu's bound, and that of a sample with these ends.
    width = times["max"] - times["min"]
    assert width / (2 * times["N"]) ** 0.5 <= times["stddev"] <= 0.51 * width
    # Of two values it is known.
    few = two["clat_ns"]
    assert few["N"] == 2
    assert abs(few["stddev"] - (few["max"] - few["min"]) / 2**0.5) <= 1
    assert {one["lat_ns"]["stddev"], two["lat_ns"]["stddev"]} == {times["stddev"], few["stddev"]}
    assert all(entry["write"]["clat_ns"]["stddev"] == 0 for entry in jobs)


def test_fio_json_tells_reads_from_writes(tmp_path: Path) -> None:
    """Each with its own bytes and times, and rates in bytes and in KiB."""
    job = tmp_path / "a.fio"
    job.write_text("[a]\ndirect=1\nsize=1m\nrw=randread\n[b]\ndirect=1\nsize=3m\nrw=write\n")
    text = streamsched("run", job, "--policy", "noop", "--output", "fio-json").stdout
    reader, writer = json.loads(text)["jobs"]
    assert (reader["read"]["io_bytes"], reader["write"]["io_bytes"]) == (1 << 20, 0)
    assert (writer["read"]["io_bytes"], writer["write"]["io_bytes"]) == (0, 3 << 20)
    assert (reader["read"]["clat_ns"]["N"], reader["write"]["clat_ns"]["N"]) == (256, 0)
    assert (writer["read"]["clat_ns"]["N"], writer["write"]["clat_ns"]["N"]) == (0, 768)
    for entry in (reader["read"], writer["write"]):
        assert entry["io_kbytes"] == entry["io_bytes"] // 1024
        assert entry["bw"] == pytest.approx(entry["bw_bytes"] / 1024, abs=1)


def test_results_have_the_tunables_as_they_were(tmp_path: Path) -> None:
    job = tmp_path / "a.fio"
    job.write_text("[a]\ndirect=1\nsize=1m\nrw=read\n")
    arguments = ("--policy", "noop,deadline", "--set", "fifo_batch=7", "--output", "json")
    noop, deadline = json.loads(streamsched("run", job, *arguments).stdout)["runs"]
    assert noop["tunables"] == {}
    assert deadline["tunables"]["fifo_batch"] == 7
    assert deadline["tunables"]["writes_starved"] == 2


def test_fio_json_of_a_replay(tmp_path: Path, to: Path) -> None:
    trace = tmp_path / "a.trace"
    trace.write_bytes(PLAIN)
    done = streamsched("replay", trace, "--output", "fio-json", "--to", to)
    assert done.returncode == 2
    assert "a trace has no jobs" in done.stderr
    assert not to.exists()


def test_seed_out_of_range(to: Path) -> None:
    why = why_refused("run", JOB, "--seed", 2**64, to=to)
    assert why == f"--seed {2**64}: must be within 0 to 2^64-1"


RUNTIMES = {
    "0": "--runtime 0: nothing is done in no time; write one such as 30s",
    "-5s": "--runtime -5s: nothing is done in no time; write one such as 30s",
    "soon": '--runtime: "soon" is not a number; write a time with us, ms, s, m, h or d',
    "": '--runtime: "" is not a number; write a time with us, ms, s, m, h or d',
    "3kg": '--runtime: "kg" is not a unit of time; write us, ms, s, m, h or d',
}


@pytest.mark.parametrize("text", RUNTIMES)
def test_runtimes_that_are_none(text: str, to: Path) -> None:
    assert why_refused("run", JOB, "--runtime", text, to=to).startswith(RUNTIMES[text])


def test_runtime_is_the_most_of_each_process(tmp_path: Path, to: Path) -> None:
    job = tmp_path / "long.fio"
    job.write_text(
        "[global]\nfilename=/dev/sdx\nrw=read\nsize=300g\n[a]\n[b]\nruntime=500ms\noffset=300g\n"
        "[c]\nruntime=5m\nstonewall\n"
    )
    form = ("--policy", "noop", "--output", "json", "--to", to)
    done = streamsched("run", job, "--runtime", "1500ms", *form)
    assert done.returncode == 0, done.stderr
    document = json.loads(to.read_text())
    (run,) = document["runs"]
    assert [round(row["duration_s"], 1) for row in run["jobs"]] == [1.5, 0.5, 1.5]
    assert document["runtime_s"] == 1.5


def test_data_that_never_reaches_the_disk_is_said_to(tmp_path: Path) -> None:
    job = tmp_path / "copy.fio"
    for lines, words in (("", 1), ("end_fsync=1\n", 0), ("direct=1\n", 0)):
        job.write_text(f"[copy]\nrw=write\nsize=1m\n{lines}")
        table = streamsched("run", job, "--policy", "noop").stdout
        assert table.count("what was written stayed in the page cache") == words, lines


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ["run", JOB, "--queue-depth", "x"],
            "invalid value for '--queue-depth': it must be a valid integer;",
        ),
        (
            ["run", JOB, "--seed", "-1"],
            "invalid value for '--seed': it must be greater than or equal to 0;",
        ),
        (["run", JOB, "--output", "xml"], "invalid value for '--output': "),
        (["run", JOB, "--owners", "all"], "invalid value for '--owners': "),
        (["replay", JOB, "--mode", "opened"], "invalid value for '--mode': "),
        (["run", JOB, "--polcy", "noop"], "no such option: --polcy"),
        (["profile", "ssd", "ssd"], "got unexpected extra argument"),
        (["run"], "missing argument 'JOB.fio'"),
        (["runn"], "no such command 'runn' (did you mean 'run'?);"),
        (["replay"], "missing argument 'TRACE'"),
    ],
    ids=str,
)
def test_bad_usage(arguments: list[object], why: str) -> None:
    """What the command line's own parser refuses is one sentence too."""
    said = why_refused(*arguments)
    assert said.startswith(why)
    assert said.endswith(" --help` lists what there is")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["run", JOB, "--profile", ""], "--profile is empty; name a file"),
        (["run", JOB, "--to", ""], "--to is empty; name a file"),
        (["compare", "--to", ""], "--to is empty; name a file"),
        (["profile", "ssd", "--to", ""], "--to is empty; name a file"),
        (["calibrate", "/dev/null", "--to", ""], "--to is empty; name a .toml file"),
        (["frontier", "--plot", ""], "--plot is empty; name a .svg, .png or .pdf file"),
        (["rig", "exec", "--out", "", "true"], "--out is empty; name a folder"),
        (["replay", ""], "TRACE is empty; name a block trace"),
        (["calibrate", ""], "DEVICE is empty; name a disk, as /dev/sda"),
        (["auto", ""], "DISK is empty; name a disk, as sda"),
        (["array", "attach", ""], "DEVICE is empty; name an array, as in /dev/md0"),
        (["array", "detach", ""], "DEVICE is empty; name an array, as in /dev/md0"),
        (["array", "status", ""], "DEVICE is empty; name an array, as in /dev/md0"),
    ],
    ids=str,
)
def test_empty_name(arguments: list[object], why: str) -> None:
    """As a path it would be the folder that one is in."""
    assert why_refused(*arguments) == why


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--path", "loop"], "--path loop: only with --on kernel; there are no layers here"),
        (["--kernel", "kasan"], "--kernel kasan: only with --on kernel; there is no kernel here"),
        (
            ["--on", "kernel", "--owners", "none"],
            "--owners none: not --on kernel, where senders are what they are",
        ),
        (
            ["--on", "nbd", "--curve", "learned"],
            "--curve learned: not --on nbd, where the curve is always learned",
        ),
        (
            ["--on", "kernel", "--seed", "7"],
            "--seed 7: not --on kernel; write randseed= into the job file",
        ),
        (
            ["--on", "nbd", "--runtime", "30s"],
            "--runtime 30s: not --on nbd; write runtime= into the job file",
        ),
        (
            ["--on", "kernel", "--policy", ""],
            "--policy is empty; name at least one, as in mq-deadline,stream",
        ),
        (
            ["--on", "kernel", "--policy", "none,,stream"],
            "--policy none,,stream: a name is missing beside a comma",
        ),
        (
            ["--on", "kernel", "--policy", "bfq,none", "--set", "fifo_batch=3"],
            "--set fifo_batch=3: on the kernel it is for stream, which --policy does not name; "
            "write bfq:fifo_batch=3",
        ),
        (
            ["--on", "kernel", "--policy", "bfq:quantum=2:quantum=4"],
            'policy "bfq:quantum=2:quantum=4": quantum is set twice; leave one of them out',
        ),
        (
            ["--on", "kernel", "--policy", "bfq,bfq:low_latency=0,bfq"],
            "--policy bfq,bfq:low_latency=0,bfq: bfq stands there twice; leave one of them out",
        ),
    ],
    ids=str,
)
def test_options_that_the_host_would_not_heed(options: list[str], why: str) -> None:
    assert why_refused("run", JOB, *options) == why


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("", "a has no filename, and fio would make a file in memory with --on kernel"),
        ("filename=/tmp/x", "a opens /tmp/x, which is not the disk under test with --on kernel"),
        (
            "directory=d\nfilename=${STREAMSCHED_DISK}",
            "a opens d/${STREAMSCHED_DISK}, which is not the disk under test with --on kernel",
        ),
    ],
)
def test_on_the_kernel_a_job_works_on_the_disk(lines: str, why: str, tmp_path: Path) -> None:
    job = tmp_path / "a.fio"
    job.write_text(f"[a]\nsize=1m\n{lines}\n")
    said = why_refused("run", job, "--on", "kernel", "--policy", "none")
    assert said == f"{job}: {why}; write filename=${{STREAMSCHED_DISK}}"


@pytest.mark.parametrize("host", ["kernel", "nbd"])
def test_several_files_need_the_simulator(host: str, tmp_path: Path) -> None:
    job = tmp_path / "a.fio"
    job.write_text("[a]\nsize=1m\nnrfiles=4\n")
    assert why_refused("run", job, "--on", host) == (
        f"{job}: nrfiles of a: not with --on {host}, where fio would not have them on the disk; "
        "write filename= and offset="
    )


def test_without_fio_no_kernel_is_built_first(tmp_path: Path) -> None:
    env = {**os.environ, "PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = ran(COMMAND, "run", JOB, "--on", "kernel", env=env, timeout=120)
    assert done.stderr == "streamsched: fio is missing: install the Debian package fio\n"
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("run", JOB, "--policy"), "run"),
        (("research", "compare", "--to"), "research compare"),
        (("compare", "--to"), "research compare"),
    ],
    ids=str,
)
def test_an_option_without_its_argument(words: tuple[str | Path, ...], command: str) -> None:
    """The parser does not say whose it is, but the sentence does."""
    said = why_refused(*words)
    assert said == (
        f"option '{words[-1]}' requires an argument; "
        f"`streamsched {command} --help` lists what there is"
    )


@pytest.mark.parametrize("group", ["rig", "array"])
def test_a_group_alone_prints_its_help(group: str) -> None:
    done = streamsched(group)
    assert done.returncode == 2
    assert f"Usage: streamsched {group} " in done.stdout
    assert done.stderr == (
        f"streamsched: name a command; `streamsched {group} --help` lists what there is\n"
    )


def test_a_misspelt_job_file_without_its_folder() -> None:
    why = why_refused("run", "pra-read")
    assert why == "unknown workload or job file 'pra-read'; did you mean 'par-read'?"


def test_a_shipped_job_file_by_its_name(tmp_path: Path) -> None:
    """From anywhere; a file of that name in this folder goes before."""
    done = streamsched("run", "par-read", "--policy", "noop", cwd=tmp_path)
    assert done.stdout.startswith("par-read.fio: 4 processes on exos-x18, owners none, ")
    (tmp_path / "par-read").write_text("[one]\nsize=64k\n")
    done = streamsched("run", "par-read", "--policy", "noop", cwd=tmp_path)
    assert done.stdout.startswith("par-read: 1 process on ")
    assert why_refused("run", "multi-thread").endswith("did you mean 'multi-threads'?")


def test_a_picture_that_cannot_be_drawn_is_refused_before_the_work(tmp_path: Path) -> None:
    plot = tmp_path / "nowhere" / "a.svg"
    why = why_refused("frontier", "--plot", plot)
    assert why == f"--plot {plot}: cannot write it: there is no directory {plot.parent}"


def test_long_waits_are_not_cut_off(tmp_path: Path) -> None:
    """Nor is the title folded: the tables are as wide as they need to be."""
    job = tmp_path / "deep.fio"
    job.write_text(
        "[deep]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=32\nnumjobs=16\nsize=100%\n"
        "number_ios=40\nnorandommap\n"
    )
    table = streamsched("run", job, "--policy", "noop,stream:deadline").stdout
    assert "…" not in table
    title = f"{job.name}: 16 processes on exos-x18, owners none, queue depth 32"
    assert table.splitlines()[0] == title
    job.write_text("[one]\nsize=64k\n")
    title = f"{job.name}: 1 process on exos-x18, owners none, queue depth 32"
    assert streamsched("run", job, "--policy", "noop").stdout.splitlines()[0] == title


def test_no_arguments_print_the_help() -> None:
    done = streamsched()
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: streamsched" in done.stdout


def test_a_reader_that_goes_away_hears_nothing() -> None:
    """As in `streamsched list tunables | head -1`: an exit code, and no word."""
    work = subprocess.Popen(
        [str(COMMAND), "list", "tunables"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert work.stdout and work.stderr
    work.stdout.close()
    said = work.stderr.read()
    assert (work.wait(), said) == (1, b"")


def test_unknown_figure() -> None:
    assert why_refused("reproduce", "fig9").startswith("unknown figure 'fig9'; did you mean")
    assert why_refused("reproduce", "fig3", "auto") == (
        "auto: is no figure of a paper; name it by itself"
    )


def test_results_that_cannot_be_written_are_refused_before_the_work(
    tmp_path: Path, endless: Path
) -> None:
    missing = tmp_path / "none/results.json"
    why = why_refused("run", endless, "--to", missing)
    assert why == f"--to {missing}: cannot write it: there is no directory {missing.parent}"
    assert why_refused("run", endless, "--to", tmp_path).endswith("cannot write it: Is a directory")
    trace = tmp_path / "a.trace"
    trace.write_bytes(PLAIN)
    assert "no directory" in why_refused("replay", trace, "--to", missing)


def test_what_is_no_file_is_written_to_and_stays(to: Path) -> None:
    """Root's `--to /dev/null` must not leave a file in its place."""
    os.mkfifo(to)
    with subprocess.Popen(["cat", str(to)], stdout=subprocess.PIPE) as reader:
        done = streamsched("run", JOB, "--policy", "noop", "--output", "json", "--to", to)
        if to.is_fifo():
            out, _ = reader.communicate(timeout=60)
        else:
            reader.kill()
            out = b""
    assert to.is_fifo()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads(out)["complete"] is True
    assert list(to.parent.iterdir()) == [to]


def test_a_disk_is_not_written_to() -> None:
    disks = [path for path in Path("/dev").iterdir() if path.is_block_device()]
    if not disks:
        pytest.skip("this machine shows no disk")
    why = f"--to {disks[0]}: is a disk, which would be overwritten; name a file"
    # Refused for its options otherwise: no test may write to a disk.
    assert why_refused("run", JOB, "--policy", "", "--to", disks[0]) == why


def test_a_link_is_followed(to: Path) -> None:
    real = to.with_name("real.json")
    real.touch()
    to.symlink_to(real.name)
    done = streamsched("run", JOB, "--policy", "noop", "--output", "json", "--to", to)
    assert done.returncode == 0
    assert to.is_symlink()
    assert json.loads(real.read_text())["complete"] is True


def test_results_are_written_whole(to: Path) -> None:
    to.write_text("precious\n")
    command = ("run", JOB, "--policy", "noop", "--output", "json", "--to", to)
    why = why_refused(*command)
    assert why == f"--to {to}: is there; name another file, or add --force to replace it"
    assert to.read_text() == "precious\n"
    done = streamsched(*command, "--force")
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(to.read_text())["complete"] is True
    assert [path.name for path in to.parent.iterdir()] == [to.name]
    # What is refused leaves what was there.
    before = to.read_text()
    why_refused("run", JOB, "--policy", "nop", to=to)
    assert to.read_text() == before


@pytest.mark.parametrize(
    "words",
    [
        ("run", JOB),
        ("replay", "x.trace"),
        ("profile", "ssd"),
        *(("research", name) for name in ("reproduce", "compare", "frontier")),
        ("research", "validate", "disk"),
    ],
    ids=str,
)
def test_there_is_something_to_replace_by_force(words: tuple[object, ...]) -> None:
    assert why_refused(*words, "--force") == (
        "--force: there is nothing to replace; name a file, as with --to"
    )


# Disks and job files.


def test_bad_disk_file(tmp_path: Path, to: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("name = [\n")
    assert why_refused("run", JOB, "--disk", bad, to=to).startswith(f"{bad}: not a TOML file: ")
    assert why_refused("run", JOB, "--disk", tmp_path, to=to).startswith(f"{tmp_path}: ")
    bad.write_bytes(b"\xff\xfe")
    assert str(bad) in why_refused("run", JOB, "--disk", bad, to=to)
    bad.write_text('name = "x"\nkind = "mechanical"\ncapacity_sectors = -5\n')
    assert str(bad) in why_refused("run", JOB, "--disk", bad, to=to)
    bad.write_text("")
    assert str(bad) in why_refused("run", JOB, "--disk", bad, to=to)


HEAD = "[r]\nrw=read\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            HEAD + "size=1m\nblocksiz=4k\n",
            'line 4: blocksiz=4k: unknown key "blocksiz"; the nearest known one is "blocksize"',
        ),
        (
            HEAD + "size=1mm\n",
            'line 3: size=1mm: "mm" is not a unit; write bytes with k, m, g or t, or a percentage',
        ),
        (
            HEAD + "size=1m\nthinktime=3parsecs\n",
            'line 4: thinktime=3parsecs: "parsecs" is not a unit',
        ),
        ("[r]\nrw=reed\nsize=1m\n", "line 2: rw=reed: "),
        (HEAD + "size=10t\n", "the disk has 500107862016 bytes"),
        ("", ": has no job; write a section [NAME] with rw= and size="),
        ("# nothing\n\n", ": has no job; write a section [NAME] with rw= and size="),
        ("[global]\nrw=read\n", ": has no job"),
        ("rw=read\n", "line 1"),
        ("[r\nrw=read\n", "line 1"),
        ("\ufeff" + HEAD, "line 1: begins with a byte order mark, at which fio stops, too; save"),
        (HEAD + "size=4k\n[a\0b]\n", "line 4: has a NUL byte; is it a job file?"),
        (HEAD.replace("\n", "\r") + "size=4k", "line 1: [r]\\rrw=read\\rsize=4k: not a section"),
        (HEAD + "size=\x1b[2J\n", 'line 3: size=\\x1b[2J: "\\x1b[2J" is not a number'),
    ],
    ids=[
        "key",
        "size",
        "time",
        "value",
        "beyond",
        "empty",
        "comment",
        "global",
        "no section",
        "bracket",
        "mark",
        "NUL",
        "carriage returns",
        "escape",
    ],
)
def test_bad_job_file(tmp_path: Path, to: Path, text: str, why: str) -> None:
    job = tmp_path / "bad.fio"
    job.write_text(text)
    said = why_refused("run", job, "--disk", "wd5000aaks", to=to)
    assert said.startswith(str(job))
    assert why in said


@pytest.mark.parametrize("value", ["a\udcff", "64k\nbs=4k", "a\x1b[2J"])
@pytest.mark.parametrize("key", ["size", "name", "cgroup", "wait_for"])
def test_a_variable_that_is_no_line_of_text(
    key: str, value: str, tmp_path: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tmp_path / "a.fio"
    job.write_text(f"{HEAD}size=4k\n{key}=${{ODD}}\n")
    monkeypatch.setenv("ODD", value)
    why = "ODD of the environment has a line break or another character that is no text; "
    assert why_refused("run", job, to=to).startswith(f"{job}, line 4: {key}=${{ODD}}: {why}")


def test_files_that_include_each_other_many_times(tmp_path: Path, to: Path) -> None:
    for number in range(14):
        (tmp_path / f"{number}.inc").write_text(f"include {number + 1}.inc\n" * 10)
    (tmp_path / "14.inc").write_text("bs=4k\n")
    job = tmp_path / "a.fio"
    job.write_text(f"{HEAD}size=4k\ninclude 0.inc\n")
    assert "is included after 1000 others; " in why_refused("run", job, to=to)


def test_a_name_of_two_lines(tmp_path: Path, to: Path) -> None:
    job = tmp_path / "a\nb.fio"
    assert f"{tmp_path}/a\\nb.fio: No such file" in why_refused("run", job, to=to)
    job.write_text(f"{HEAD}size=4k\n")
    for _ in range(2):
        done = streamsched("run", job, "--policy", "noop", "--disk", "ssd", "--force", "--to", to)
        assert (done.returncode, done.stderr) == (0, "")
        assert to.read_text().startswith("a\\nb.fio: 1 process on ssd, ")


@pytest.mark.parametrize("end", ["/", "/."])
@pytest.mark.parametrize("there", [False, True])
def test_the_name_of_a_folder_is_not_that_of_a_file(
    there: bool, end: str, tmp_path: Path, to: Path
) -> None:
    name = tmp_path / "name"
    if there:
        name.write_text('{\n  "format": "streamsched-results"')
    for option in ("--to", "--profile"):
        why = why_refused("run", JOB, option, f"{name}{end}")
        assert why == f"{option} {name}{end}: is the name of a folder; name a file"
    assert name.exists() is there


TOO_LONG = "a" * 300  # no file system has such names


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["run", TOO_LONG], f"unknown workload or job file '{TOO_LONG}'; there are: "),
        (["run", JOB, "--to", TOO_LONG], f"--to {TOO_LONG}: cannot write it: File name too long"),
        (
            ["frontier", "--plot", f"{TOO_LONG}.svg"],
            f"--plot {TOO_LONG}.svg: cannot write it: File name too long",
        ),
        (
            ["frontier", "--plot", "/"],
            "--plot /: is the name of a folder; name a .svg, .png or .pdf file",
        ),
        (["run", JOB, "--disk", "/dev/zero"], "/dev/zero: is a device, which has no end; "),
        (
            ["run", JOB, "--policy", "auto", "--profile", "/dev/zero"],
            "/dev/zero: is a device, which has no end; ",
        ),
        (["replay", "/dev/zero", "--format", "msr"], "/dev/zero: is a device, which has no end; "),
        (["replay", "/dev/null", "--format", "msr"], "/dev/null: the trace is empty"),
        (["run", JOB, "--seed", "9" * 5000], "invalid value for '--seed': it is too large;"),
        (["run", "/dev/null", "--on", "nbd"], "/dev/null: has no job; write a section [NAME]"),
    ],
    ids=lambda v: " ".join(map(str, v))[-40:] if isinstance(v, list) else "",
)
def test_names_that_no_file_has(arguments: list[object], why: str) -> None:
    assert why_refused(*arguments).startswith(why)


def test_what_a_job_file_includes_may_have_a_long_name(tmp_path: Path, to: Path) -> None:
    job = tmp_path / "a.fio"
    job.write_text(f"[r]\ninclude {TOO_LONG}\n")
    said = why_refused("run", job, to=to)
    assert said.startswith(f"{job}, line 2: include {TOO_LONG}: there is no such file; ")


def test_what_is_read_is_not_written_to(tmp_path: Path) -> None:
    names = ("a.fio", "a.toml", "a.trace", "a.json")
    job, disk, trace, profile = (tmp_path / name for name in names)
    shutil.copy(JOB, job)
    shutil.copy(Path(__file__).parents[2] / "disks" / "ssd.toml", disk)
    trace.write_bytes(PLAIN)
    profile.write_text("{}")
    link = tmp_path / "link"
    link.symlink_to(job)
    before = [path.read_bytes() for path in (job, disk, trace, profile)]
    for to, *command in (
        (link, "run", job),
        (disk, "run", job, "--disk", disk),
        (trace, "replay", trace),
        (disk, "profile", disk),
        (profile, "run", job, "--policy", "auto", "--profile", profile),
        (profile, "replay", trace, "--policy", "auto", "--profile", profile),
    ):
        why = f"--to {to}: is read, and would be lost; name another file"
        assert why_refused(*command, "--to", to) == why
    picture = tmp_path / "a.svg"
    picture.mkdir()
    why = f"--plot {picture}: cannot write it: Is a directory"
    assert why_refused("frontier", "--plot", picture) == why
    assert [path.read_bytes() for path in (job, disk, trace, profile)] == before


def test_results_may_have_as_long_a_name_as_there_can_be(tmp_path: Path) -> None:
    to = tmp_path / ("b" * 255)
    assert streamsched("run", JOB, "--policy", "noop", "--to", to).returncode == 0
    assert [to] == list(tmp_path.iterdir()) and to.read_bytes()


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """Printed, written to a file, and as a device; also where a terminal has few characters."""
    job = tmp_path / os.fsdecode(b"\xff.fio")
    shutil.copy(JOB, job)
    for encoding in ("utf-8:strict", "ascii"):
        done = streamsched("run", job, "--policy", "noop", PYTHONIOENCODING=encoding)
        assert done.returncode == 0, done.stderr
        assert "\\udcff.fio: " in done.stdout
    to = tmp_path / "to"
    assert streamsched("run", job, "--policy", "noop", "--to", to).returncode == 0
    assert "\\udcff.fio: " in to.read_text()
    done = streamsched("run", "--help", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    trace = tmp_path / "a.trace"
    trace.write_bytes(PLAIN)
    for device in (os.fsdecode(b"\xff"), "\U0001f4be" * 40, "x" + "\U0001f4be" * 40):
        why = why_refused("replay", trace, "--device", device)
        assert why.startswith(f"{trace}: no device of this format is spelled ")


def test_standard_input_that_is_closed() -> None:
    done = ran(COMMAND, "replay", "-", preexec_fn=lambda: os.close(0))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "streamsched: standard input: is closed; name a file\n"


def test_job_file_that_cannot_be_read(tmp_path: Path, to: Path) -> None:
    missing = tmp_path / "none.fio"
    for path, reason in (
        (missing, "No such file"),
        (tmp_path, "Is a directory"),
        (Path("/proc/self/mem"), "Input/output error"),
    ):
        why = why_refused("run", path, to=to)
        assert why.startswith(f"{path}: ") and reason in why
    why = "the job file's name is empty; name a file that can be read"
    assert why_refused("run", "", to=to) == why
    binary = tmp_path / "binary.fio"
    binary.write_bytes(b"\x00\xff\xfe[r]")
    assert str(binary) in why_refused("run", binary, to=to)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_permission(tmp_path: Path, to: Path) -> None:
    closed = tmp_path / "closed"
    closed.write_bytes(PLAIN)
    closed.chmod(0)
    for command in ("run", "replay"):
        assert "Permission denied" in why_refused(command, closed, to=to)


# Traces.


def blktrace_event(number: int) -> bytes:
    head = struct.pack(
        "<IIQQIIIIIHH",
        0x65617407,
        number,
        number,
        8 * number,
        4096,
        1 | 1 << 16,
        7,
        8 << 20,
        0,
        0,
        0,
    )
    assert len(head) == 48
    return head


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


MANY = EVENT * 300

BAD_TRACES = {
    "bad line": (
        EVENT + b"8,0 1 2 0.6 697 Q R abc + 8 [x]\n",
        'line 2, column 21: expected the sector as a decimal number, found "abc"',
    ),
    "half a line": (EVENT + b"8,0 1 2 0.6", "line 2, column 12: expected the process id"),
    "truncated record": (
        blktrace_event(1) + blktrace_event(2)[:20],
        "record 2 (byte 48): truncated, 20 of its 48 bytes are there",
    ),
    "corrupt gzip": (flipped(gzip.compress(MANY)), "the gzip data is corrupt"),
    "truncated gzip": (gzip.compress(MANY)[:-9], "the gzip data is truncated"),
    "corrupt zstd": (
        flipped(zstandard.ZstdCompressor(write_checksum=True).compress(MANY)),
        "the zstd data is corrupt",
    ),
    "truncated zstd": (zstandard.compress(MANY)[:-3], "the zstd data is truncated"),
    "bzip2": (b"BZh91AY&SY", "compressed with bzip2, which is not read; gzip and zstd are"),
    "beyond the disk": (
        b"\n8,0 1 1 0.5 697 Q R 99999999999 + 8 [x]\n",
        "line 2: sectors 99999999999 to 100000000006 lie beyond the disk's last sector "
        f"{PAPERS_LAST_SECTOR}; choose a larger disk, or fold positions with --wrap",
    ),
    "time backwards": (
        EVENT + b"8,0 1 2 0.4 697 Q R 2000 + 8 [x]\n",
        "line 2: time runs backwards, from 0.500000000 s to 0.400000000 s",
    ),
    "empty": (b"", "the trace is empty"),
    "empty gzip": (gzip.compress(b""), "the trace is empty"),
    "no format": (
        b"hello world\n",
        "its format cannot be told from its content: its beginning (12 bytes) fits no "
        "format; force one with --format (blkparse, ",
    ),
    "two formats": (
        b"0 0 8 8 1\n5000 0 16 8 1\n",
        "its format cannot be told from its content: its beginning (24 bytes) fits "
        "disksim, mqsim alike; force one with --format (blkparse, ",
    ),
    "several devices": (
        EVENT + b"8,16 1 2 0.6 697 Q R 2000 + 8 [x]\n",
        "line 2: the trace holds requests of several devices (8,0, now 8,16): "
        "choose one with --device",
    ),
}


@pytest.mark.parametrize("mode", ["open", "closed"])
@pytest.mark.parametrize("kind", BAD_TRACES)
def test_bad_trace(tmp_path: Path, to: Path, kind: str, mode: str) -> None:
    data, why = BAD_TRACES[kind]
    trace = tmp_path / "my.trace"
    trace.write_bytes(data)
    said = why_refused("replay", trace, "--disk", "wd5000aaks", "--mode", mode, to=to)
    assert said.startswith(f"{trace}: "), said
    assert said.count(str(trace)) == 1
    assert why in said


def test_bad_trace_on_standard_input(to: Path) -> None:
    data, why = BAD_TRACES["bad line"]
    assert why_refused("replay", "-", stdin=data, to=to) == f"standard input: {why}"
    assert why_refused("replay", "-", to=to) == "standard input: the trace is empty"


@pytest.mark.parametrize(
    ("forced", "why"),
    [([], b"its format cannot be told"), (["--format", "msr"], b"line 1 is longer than ")],
    ids=["any", "forced"],
)
def test_what_has_no_end_is_refused_by_its_beginning(forced: list[str], why: bytes) -> None:
    """Standard input that is no trace is not copied until the disk is full."""
    with (
        Path("/dev/zero").open("rb") as endless,
        subprocess.Popen(["cat"], stdin=endless, stdout=subprocess.PIPE) as cat,
    ):
        done = subprocess.run(
            [COMMAND, "replay", "-", *forced],
            stdin=cat.stdout,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
        cat.kill()
    assert done.returncode == 2
    assert b"standard input: " + why in done.stderr


def test_bad_record_late_in_a_long_trace(tmp_path: Path, to: Path) -> None:
    """It is met after much has been simulated; still there is no result."""
    trace = tmp_path / "long.trace"
    lines = [f"8,0 1 {i} {i / 100:.2f} 697 Q R {i * 8} + 8 [x]\n" for i in range(50_000)]
    trace.write_text("".join(lines) + "oops\n")
    said = why_refused("replay", trace, "--policy", "noop,deadline", "--mode", "open", to=to)
    assert said.startswith(f"{trace}: line 50001, column 1: expected the device")


def test_wrong_format(tmp_path: Path, to: Path) -> None:
    trace = tmp_path / "my.trace"
    trace.write_bytes(PLAIN)
    said = why_refused("replay", trace, "--format", "msr", to=to)
    assert said.startswith(f"{trace}: line 1, column ") and "expected" in said
    said = why_refused("replay", trace, "--format", "blktrace", to=to)
    assert said.startswith(f"{trace}: record 1 (byte 0): bad magic")


def test_trace_that_cannot_be_read(tmp_path: Path, to: Path) -> None:
    for path, reason in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "is a folder"),
        (Path("/proc/self/mem"), "Input/output error"),
    ):
        why = why_refused("replay", path, to=to)
        assert why.startswith(f"{path}: ") and reason in why


def replayed(trace: Path, *options: str) -> dict[str, object]:
    done = streamsched("replay", trace, "--policy", "noop", "--output", "json", *options)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    run: dict[str, object] = json.loads(done.stdout)["runs"][0]
    return run


def test_wrap_folds(tmp_path: Path) -> None:
    trace = tmp_path / "my.trace"
    trace.write_bytes(BAD_TRACES["beyond the disk"][0])
    assert replayed(trace, "--wrap")["disk_requests"] == 1


@pytest.mark.parametrize("wrap", [[], ["--wrap"]])
def test_what_is_longer_than_the_disk_cannot_be_folded(tmp_path: Path, wrap: list[str]) -> None:
    trace = tmp_path / "my.trace"
    trace.write_text("1,usr,0,Read,0,600000000000,1\n")
    why = why_refused("replay", trace, "--disk", "wd5000aaks", *wrap)
    assert why.endswith(f"beyond the disk's last sector {PAPERS_LAST_SECTOR}; choose a larger disk")


def test_device_selects(tmp_path: Path, to: Path) -> None:
    trace = tmp_path / "my.trace"
    trace.write_bytes(BAD_TRACES["several devices"][0] + b"8,16 1 3 0.7 697 Q R 9000 + 8 [x]\n")
    assert replayed(trace, "--device", "8,16")["disk_requests"] == 2
    assert replayed(trace, "--device", "8,0")["disk_requests"] == 1
    said = why_refused("replay", trace, "--device", "8,32", to=to)
    assert said == f"{trace}: the trace holds no requests of device 8,32; it does of 8,0"


@pytest.mark.parametrize("bad", [1, 3])
def test_skip_bad_counts_and_reports(tmp_path: Path, bad: int) -> None:
    trace = tmp_path / "my.trace"
    trace.write_bytes(
        EVENT + b"8,0 1 2 0.6 697 Q R abc + 8 [x]\n" * bad + b"8,0 1 3 0.7 697 Q R 9000 + 8 [x]\n"
    )
    run = replayed(trace, "--skip-bad")
    assert (run["skipped_records"], run["disk_requests"]) == (bad, 2)
    done = streamsched("replay", trace, "--skip-bad", "--policy", "noop,deadline")
    words = "1 bad record was skipped" if bad == 1 else f"{bad} bad records were skipped"
    assert done.stdout.splitlines()[-1] == words
    assert "skipped" not in streamsched("replay", DATA / "traces/good.msr", "--disk", "ssd").stdout


def test_compressed_alike(tmp_path: Path) -> None:
    plain, packed, zst = (tmp_path / name for name in ("a", "b", "c"))
    plain.write_bytes(PLAIN)
    packed.write_bytes(gzip.compress(PLAIN))
    zst.write_bytes(zstandard.compress(PLAIN))
    assert replayed(plain) == replayed(packed) == replayed(zst)


# Pipes and Ctrl-C.


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "policies"],
        ["list", "tunables"],
        ["run", str(JOB)],
        ["run", str(JOB), "--output", "json"],
        ["run", str(JOB), "--output", "csv"],
    ],
    ids=str,
)
def test_broken_pipe_is_silent(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [COMMAND, *arguments], stdout=closed, stderr=subprocess.PIPE, timeout=120
        )
    assert b"Traceback" not in done.stderr and b"Exception" not in done.stderr, done.stderr
    assert done.returncode not in (0, 2)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["list", "policies"], ["run", str(JOB), "--output", "json"]],
)
def test_a_full_disk_is_said(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=120
        )
    why = b"streamsched: standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, why)


def gone(pid: int) -> bool:
    """Whether the process has ended; who is to wait for it may be nobody."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_worker_outlives_the_command(number: signal.Signals, to: Path, endless: Path) -> None:
    command = ("run", endless, "--policy", "noop,sptf", "--parallel", "2", "--to", to)
    with subprocess.Popen(
        [str(COMMAND), *map(str, command)], stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        try:
            while process.poll() is None and len(children.read_text().split()) < 2:
                time.sleep(0.05)
            time.sleep(0.5)  # to have said what they want to be told
            workers = [int(pid) for pid in children.read_text().split()]
            process.send_signal(number)
            code = process.wait(timeout=60)
            assert len(workers) == 2
            assert code == (-number if number == signal.SIGKILL else 128 + number)
            until = time.monotonic() + 120
            while not all(map(gone, workers)) and time.monotonic() < until:
                time.sleep(0.05)
            assert [pid for pid in workers if not gone(pid)] == []
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert list(to.parent.iterdir()) == []


def interrupted(
    after_s: float, *arguments: object, command: Sequence[object] = (COMMAND,)
) -> tuple[int, str, str]:
    """Exit code, output and errors of a run that gets Ctrl-C @after_s after its first worker came.

    A busy machine may take seconds to get as far as that.
    """
    with subprocess.Popen(
        [*map(str, command), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while process.poll() is None and not children.read_text():
            time.sleep(0.05)
        time.sleep(after_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out.decode(), err.decode()


def test_ctrl_c_leaves_the_finished_rows() -> None:
    names = ["noop", "deadline", "cscan", "sptf"]
    command = ("run", LONG, "--policy", ",".join(names), "--parallel", "1", "--output", "json")
    after_s, code, out, err = 3.0, -1, "", ""
    # Sooner if it was over by then, later if nothing was finished.
    for _ in range(12):
        code, out, err = interrupted(after_s, *command)
        assert "Traceback" not in err
        # Once all is printed there is nothing to say.
        if code == 130 and out and err:
            break
        after_s *= 0.6 if code == 0 or out else 1.4
    assert code == 130
    assert err.splitlines()[-1] == "streamsched: interrupted; what was finished is all there is"
    document = json.loads(out)
    assert document["complete"] is False
    finished = [run["policy"] for run in document["runs"]]
    assert finished and finished == names[: len(finished)]
    assert all(run["duration_s"] > 0 for run in document["runs"])


def test_ctrl_c_before_anything_was_finished(to: Path, endless: Path) -> None:
    command = ("run", endless, "--policy", "noop,sptf", "--parallel", "1", "--to", to)
    code, out, err = interrupted(0.5, *command)
    assert (code, out) == (130, "")
    assert "interrupted before any run was finished" in err
    assert "Traceback" not in err
    assert list(to.parent.iterdir()) == []


# A busy machine may let a worker do nothing for a while when it has just begun.
SLOWLY = """
import time
import streamsched.sim.tasks
from streamsched.cli.main import main

begin = streamsched.sim.tasks._begin_worker

def slowly(parts):
    time.sleep(1)
    begin(parts)

streamsched.sim.tasks._begin_worker = slowly
main()
"""


def test_ctrl_c_while_workers_begin(to: Path, endless: Path) -> None:
    arguments = ("run", endless, "--policy", "noop,sptf", "--parallel", "2", "--to", to)
    command = (sys.executable, "-P", "-c", SLOWLY)
    code, out, err = interrupted(0.2, *arguments, command=command)
    assert (code, out) == (130, "")
    assert err == "streamsched: interrupted before any run was finished\n"
    assert list(to.parent.iterdir()) == []


# What had another name.


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", str(JOB), "--jobs", "2"], "--jobs: is called --parallel now"),
        (["study", "a.toml", "--jobs=2"], "--jobs: is called --parallel now"),
        (["advise", "sda", "--disk", "ssd"], "--disk: is called --model now"),
        (["policies"], "policies: is called `streamsched list policies` now"),
        (["tunables", "--output", "json"], "tunables: is called `streamsched list tunables` now"),
        (["disks", "--help"], "disks: is called `streamsched list disks` now"),
        # It never had one.
        (
            ["rig", "shell", "--jobs", "2"],
            "no such option: --jobs; `streamsched rig shell --help` lists what there is",
        ),
    ],
    ids=str,
)
def test_an_old_name_is_refused_by_the_new_one(arguments: list[str], sentence: str) -> None:
    done = streamsched(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"streamsched: {sentence}\n")


# Help.

COMMANDS = ("run", "replay", "research", "list")
LISTS = ("policies", "disks", "formats", "workloads", "tunables")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command: str) -> None:
    done = streamsched(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"streamsched {command}" in done.stdout
    text = re.sub(r"[│╭╮╰╯─\s]+", " ", done.stdout)
    # A sentence on what it does, and one on each option.
    assert re.search(r"[A-Z][a-z]+ .{15,}?\.", text)
    for option in re.findall(r"│ +\*? *(--[a-z-]+)[^│]*│", done.stdout):
        row = re.search(re.escape(option) + r"\s(.*)│", done.stdout)
        assert row and len(re.findall(r"[a-z]{2,}", row.group(1))) >= 3, option


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "run",
            [
                "JOB.fio",
                "streamsched list disks",
                "streamsched list policies",
                "process",
                "group",
                "none",
                "its queue_depth",
                "wait_target=200ms",
                "stream:deadline[wait_target=1s]",
                "table",
                "json",
                "csv",
                "fio-json",
                "whole or not at all",
                "exos-x18",
                "one per processor",
            ],
        ),
        (
            "replay",
            [
                "TRACE",
                "reads stdin",
                "open",
                "closed",
                "--format",
                "--skip-bad",
                "--wrap",
                "--device",
                "by time stamp",
                "by content",
            ],
        ),
        ("reproduce", ["fig3", "fig4", "fig6", "fig7", "share", "all"]),
    ],
)
def test_help_is_enough_to_go_on(command: str, words: list[str]) -> None:
    text = re.sub(r"[│\s]+", " ", streamsched(command, "--help").stdout)
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("replay", ["--skip-bad", "--wrap"]),
        ("auto", ["--once", "--undo"]),
        ("calibrate", ["--fast"]),
    ],
)
def test_what_takes_no_value_is_shown_with_none(command: str, flags: list[str]) -> None:
    text = streamsched(command, "--help").stdout
    for flag in flags:
        assert re.search(rf"{flag} +[A-Z][a-z]+ ", text), text


@pytest.mark.parametrize(
    ("arguments", "shown", "hidden"),
    [
        (["run"], ["--on", "--policy"], ["--path", "--kernel", "--goal", "bfq"]),
        (["run", "--on", "kernel"], ["--path", "--kernel", "bfq"], ["--goal", "--rule"]),
        (["run", "--policy", "noop,auto"], ["--profile", "--goal", "--rule"], ["--path"]),
        (["replay"], ["--mode"], ["--profile", "--goal", "--rule"]),
        (["report", "--policy=auto"], ["--profile", "--goal", "--rule"], []),
        (["auto"], ["--goal"], ["--profile", "--rule"]),
    ],
    ids=str,
)
def test_help_has_what_one_mode_needs_where_it_is_named(
    arguments: list[str], shown: list[str], hidden: list[str]
) -> None:
    rows = re.findall(r"│[ *]+(--\w+|.*bfq)", streamsched(*arguments, "--help").stdout)
    text = " ".join(rows)
    assert [word for word in shown if word not in text] == []
    assert [word for word in hidden if word in text] == []


def test_help_says_no_types_of_python() -> None:
    """Of the program, of each command, and of commands of commands."""
    commands = ("", "run", "advise", "array", "array attach", "list", "study", "reproduce", "top")
    for words in map(str.split, commands):
        text = streamsched(*words, "--help", COLUMNS="80").stdout
        assert not re.search(r"<\w+|\[\[", text), words
        assert max(map(len, text.splitlines())) <= 80


def test_help_groups_commands_and_says_each_in_a_line() -> None:
    text = streamsched("--help", COLUMNS="80").stdout
    groups = re.findall(r"╭─ ([\w ]+) ─", text)
    assert groups == ["Options", "My disks", "Simulate", "Research", "Kernel"]
    rows = re.findall(r"^│ ([a-z-]*) +(.*?) +│$", text, re.MULTILINE)
    assert len(rows) >= 18 and all(name and says.endswith(".") for name, says in rows)


def test_help_of_replay_has_only_its_own_forms() -> None:
    assert "fio-json" not in streamsched("replay", "--help").stdout


@pytest.mark.parametrize("command", ["reproduce", "compare", "bound", "frontier", "validate"])
def test_research_is_found_by_its_old_names(command: str) -> None:
    old, new = streamsched(command, "--help"), streamsched("research", command, "--help")
    assert old.returncode == 0 and old.stdout == new.stdout
    assert f"streamsched research {command}" in new.stdout


def test_help_names_the_commands() -> None:
    for arguments in (["--help"], ["-h"]):
        done = streamsched(*arguments)
        assert done.returncode == 0
        assert [command for command in COMMANDS if command not in done.stdout] == []


def test_lists() -> None:
    """What there is, with units and defaults."""
    lists = {name: streamsched("list", name) for name in LISTS}
    assert all(done.returncode == 0 and done.stderr == "" for done in lists.values())
    bare = "noop deadline cscan sptf linus stride wfq anticipatory cooperative cfq"
    for policy in (*bare.split(), "nwcs:POLICY", "ss:POLICY", "stream:POLICY"):
        assert policy in lists["policies"].stdout
    for disk in ("wd5000aaks", "st2000dm006", "exos-x18", "ssd"):
        assert disk in lists["disks"].stdout
    formats = "blkparse blktrace ftrace fio-v2 fio-v3 msr spc alibaba tencent systor fiu vscsi"
    for name in (*formats.split(), "disksim", "mqsim"):
        assert name in lists["formats"].stdout
    assert re.search(r"wait_target\s+500ms\s+10ms to 60s", lists["tunables"].stdout)


# Lists.


def on_a_terminal(*arguments: str, columns: int) -> list[str]:
    """What is printed there, without the colours."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    with os.fdopen(ours, "rb") as seen:
        work = subprocess.Popen([COMMAND, *arguments], stdout=theirs, env=variables)
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # the terminal's other end is closed
            while part := seen.read1():
                text += part
        assert work.wait(timeout=60) == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).splitlines()


@pytest.mark.parametrize("command", LISTS)
@pytest.mark.parametrize("columns", [80, 120, 200])
def test_a_list_on_a_terminal_is_no_wider(command: str, columns: int) -> None:
    """Words are whole; what has no room beside a row is below it."""
    table = on_a_terminal("list", command, columns=columns)
    assert max(len(line.rstrip()) for line in table) <= columns
    rows = json.loads(streamsched("list", command, "--output", "json").stdout)
    names = [next(iter(row.values())) for row in rows]
    first = [line.split()[0] for line in table if re.match(r" \S", line)]
    assert [name for name in first if name in names] == names
    shown = " ".join(table).split()
    for row in rows:
        assert set(row.get("help", row.get("description", "")).split()) <= set(shown)


@pytest.mark.parametrize("command", LISTS)
@pytest.mark.parametrize("columns", ["20", "80"])
def test_a_list_in_a_pipe_has_a_line_for_each(command: str, columns: str) -> None:
    """However narrow: `grep` finds all of one, `awk` its first words."""
    lines = streamsched("list", command, COLUMNS=columns).stdout.splitlines()[1:]
    assert [line for line in lines if line != line.rstrip()] == []
    rows = json.loads(streamsched("list", command, "--output", "json").stdout)
    for line, row in zip(lines, rows, strict=True):
        assert line.split()[0] == next(iter(row.values()))
        assert line.endswith(row.get("help", row.get("description")))


@pytest.mark.parametrize("columns", ["80", "200"])
def test_results_in_their_columns(columns: str) -> None:
    table = streamsched("run", JOB, "--by", "process", COLUMNS=columns).stdout
    assert max(map(len, table.splitlines())) <= int(columns)
    assert ("timeouts" in table.replace("-\n", "") or "time-" in table) == (columns == "200")
    assert not [line for line in table.splitlines() if line != line.rstrip()]


def test_the_first_table_has_the_longest_response_even_at_80_columns() -> None:
    words = ("run", JOB, "--policy", "noop,stream:deadline")
    runs = json.loads(streamsched(*words, "--output", "json").stdout)["runs"]
    table = streamsched(*words, COLUMNS="80").stdout
    assert re.search(r" p99 +max +dura-.*\n.* ms +ms +tion s", table)
    rows = table.partition("─\n")[2].splitlines()
    for run, row in zip(runs, rows, strict=False):
        times = run["response_ms"]
        assert row.split()[5:7] == [f"{times['p99']:.1f}", f"{times['max']:.1f}"]


@pytest.mark.parametrize("columns", ["80", "200"])
def test_policies_whose_rows_are_alike_share_one(to: Path, columns: str) -> None:
    """In each table; JSON has each by itself."""
    job = to.with_suffix(".fio")
    job.write_text("[r]\nrw=read\nbs=64k\nsize=4m\ndirect=1\nnumjobs=2\noffset_increment=1g\n")
    words = ("run", job, "--policy", "noop,sptf,cfq,stream:deadline", "--by", "process")
    runs = json.loads(streamsched(*words[:-2], "--output", "json").stdout)["runs"]
    assert [run["policy"] for run in runs] == words[3].split(",")
    text = streamsched(*words, COLUMNS=columns).stdout
    for table in text.split("─\n")[1:]:
        rows = table.partition("\n\n")[0]
        assert "noop = sptf = cfq " in " ".join(rows.split()), rows
        assert len(re.findall(r"^ stream:deadline ", rows, re.MULTILINE)) == 1
    assert max(map(len, text.splitlines())) <= int(columns)
