# SPDX-License-Identifier: GPL-2.0-only
"""Studies with real workers on loopback: killed, interrupted and resumed, each result once."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from said import BIN, COMMAND, ran

pytest.importorskip("distributed", reason="dask.distributed is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import psutil  # dask.distributed's
from pyarrow import dataset

TRACE = Path(__file__).parents[1] / "data/traces/loop.blktrace"
JOB = "[r]\nrw=randread\nbs=4k\nsize=4g\nio_size=256m\nnumjobs=2\noffset_increment=40g\n"
STUDY = f"""\
policies = ["noop", "stream:deadline"]
jobs = ["job.fio"]
traces = ["{TRACE}"]
disks = ["wd5000aaks"]
seeds = 8
"""
CELLS = 2 * 8 + 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.fio").write_text(JOB)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The results without any interruption."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "job.fio").write_text(JOB)
    (folder / "study.toml").write_text(STUDY)
    done = study(folder)
    assert done.returncode == 0, done.stderr
    return rows(folder)


def rows(folder: Path) -> list[dict[str, Any]]:
    found = dataset.dataset(folder / "r.parquet", format="parquet").to_table().to_pylist()
    return sorted(found, key=lambda row: str(row["cell"]))


def command(*more: object) -> list[str]:
    return [str(COMMAND), "study", "study.toml", "--to", "r.parquet", *map(str, more)]


def study(folder: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return ran(*command(*more), cwd=folder, timeout=60)


@contextmanager
def running(folder: Path, *more: object) -> Iterator[subprocess.Popen[str]]:
    """The command at work, in a group of its own as a shell has it."""
    with subprocess.Popen(
        command(*more), cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def results_so_far(folder: Path) -> int:
    journal = folder / "r.parquet/_journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def wait_for(folder: Path, nr: int) -> None:
    until = time.monotonic() + 120
    while results_so_far(folder) < nr:
        assert time.monotonic() < until
        time.sleep(0.02)


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    found = psutil.Process(process.pid).children()
    return [one for one in found if "spawn_main" in " ".join(one.cmdline())]


def at_work(process: psutil.Process) -> bool:
    """Also if nobody asks how it has ended, as in a container whose first process is no init."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_results(folder: Path, whole: list[dict[str, Any]]) -> None:
    assert len(whole) == len({row["cell"] for row in whole}) == CELLS
    one = next(r for r in whole if (r["policy"], r["seed"]) == ("stream:deadline", 5))
    # The same as the command run has.
    done = subprocess.run(
        [COMMAND, "run", "job.fio", "--policy", "noop,stream:deadline",
         "--disk", "wd5000aaks", "--seed", "5", "--output", "json"],
        cwd=folder, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    run = json.loads(done.stdout)["runs"][1]
    for key in ("throughput_mb_s", "least_share", "efficiency", "duration_s", "disk_requests"):
        assert one[key] == run[key]
    assert one["response_p99_ms"] == run["response_ms"]["p99"]
    assert one["seeks"] == run["counters"]["seeks"]
    assert [p["share"] for p in one["processes"]] == [job["share"] for job in run["jobs"]]
    assert len({row["throughput_mb_s"] for row in whole if row["policy"] == "noop"}) == 9
    replays = [row for row in whole if row["work"] == TRACE.name]
    assert [row["seed"] for row in replays] == [None, None]
    assert replays[0]["work_sha256"] != one["work_sha256"]


def test_again_and_more(folder: Path) -> None:
    small = STUDY.replace("seeds = 8", "seeds = 2")
    (folder / "study.toml").write_text(small)
    plan = study(folder, "--dry-run")
    assert re.match(r"6 simulations, 6 of them to do: about \d+ s of one", plan.stdout)
    assert not (folder / "r.parquet").exists()
    assert study(folder).returncode == 0
    part = folder / "r.parquet/part-000000.parquet"
    before = part.read_bytes()
    again = study(folder, "--table")
    assert again.stderr == "streamsched: all 6 simulations are in r.parquet\n"
    assert max(map(len, again.stdout.splitlines())) <= 80
    assert "less noop" in again.stdout and "±" in again.stdout
    (folder / "study.toml").write_text(small.replace("2\n", "3\n"))
    more = study(folder)
    assert "2 of 8 simulations" in more.stderr and len(rows(folder)) == 8
    assert part.read_bytes() == before
    metadata = dataset.dataset(part).schema.metadata
    assert {b"streamsched_version", b"study_sha256", b"work_sha256", b"disk_sha256"} < {*metadata}
    (folder / "study.toml").write_text(small.replace("2\n", "1\n"))
    fewer = study(folder)
    assert fewer.returncode == 2
    assert "4 of its 8 results are not of this study: the study was changed" in fewer.stderr


def test_killed_interrupted_and_resumed(folder: Path, whole: list[dict[str, Any]]) -> None:
    with running(folder, "--parallel", 2) as process:
        wait_for(folder, 2)
        workers_of(process)[0].kill()  # a worker, in the middle
        second = study(folder)
        assert second.returncode == 1 and "another study is at work there" in second.stderr
        wait_for(folder, 5)
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
        _, said = process.communicate(timeout=30)
        assert process.returncode == 130, said
        assert re.search(r"interrupted; \d+ of 18 simulations are in r\.parquet, and", said)
        assert len(said.splitlines()) == 2, said
    kept = len(rows(folder))
    assert 5 <= kept < CELLS
    with running(folder, "--parallel", 2) as process:
        wait_for(folder, 3)
        workers = workers_of(process)
        process.kill()  # and with no time to say anything
        process.wait()
    until = time.monotonic() + 120
    while any(at_work(one) for one in workers):
        assert time.monotonic() < until
        time.sleep(0.1)
    kept += results_so_far(folder)
    last = study(folder)
    assert f"streamsched: {CELLS - kept} of {CELLS} simulations on" in last.stderr
    assert rows(folder) == whole


def test_a_terminal_that_is_closed(folder: Path) -> None:
    """All of the group are sent SIGHUP; who notes what processes share must not end before them."""
    with running(folder, "--parallel", 2) as process:
        wait_for(folder, 2)
        os.killpg(process.pid, signal.SIGHUP)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGHUP, said
    assert len(said.splitlines()) == 1, said


def dask(log: Path, *words: object) -> subprocess.Popen[bytes]:
    with log.open("ab") as file:
        return subprocess.Popen(
            [BIN / "dask", *map(str, words), "--no-dashboard"], stdout=file, stderr=file
        )


def test_a_scheduler_that_dies_and_comes_back(folder: Path, whole: list[dict[str, Any]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    where = f"tcp://127.0.0.1:{port}"
    scheduler = ("scheduler", "--host", "127.0.0.1", "--port", port)
    worker = ("worker", where, "--nthreads", 1, "--nworkers", 2, "--local-directory", folder)
    log = folder / "log"
    started = [dask(log, *scheduler), dask(log, *worker)]
    try:
        with running(folder, "--cluster", where) as process:
            wait_for(folder, 3)
            started[0].kill()
            started[0].wait()
            started[1].kill()
            before = results_so_far(folder)
            started += [dask(log, *scheduler), dask(log, *worker)]
            _, said = process.communicate(timeout=50)
        assert process.returncode == 0, said
        assert f"streamsched: {where} is gone; waiting for it" in said.splitlines()
        assert 3 <= before < CELLS
    finally:
        for one in started:
            one.terminate()
        for one in started:
            one.wait(20)
    assert rows(folder) == whole


def test_no_scheduler(folder: Path) -> None:
    for where, words in (
        ("tcp://127.0.0.1:1", "no scheduler answers there"),
        ("127.0.0.1:1", "write tcp://HOST:PORT"),
        ("bogus://127.0.0.1:1", "write tcp://HOST:PORT"),
        ("tls://127.0.0.1:1", "dask has no certificates for it"),
    ):
        done = study(folder, "--to", f"r{where[:3]}", "--cluster", where)
        assert done.returncode in (1, 2) and words in done.stderr
        assert (folder / f"r{where[:3]}").exists() == (done.returncode == 1)
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_full_disk(folder: Path, whole: list[dict[str, Any]]) -> None:
    """What was finished before is kept, and with more room the rest comes."""
    script = f"""
    mkdir r.parquet && mount -t tmpfs -o size=28k none r.parquet || exit 99
    {" ".join(command())}; echo $?
    wc -l <r.parquet/_journal.jsonl
    mount -o remount,size=1m r.parquet
    {" ".join(command())} && cp -r r.parquet kept
    """
    done = ran("unshare", "-m", "bash", "-c", script, cwd=folder, timeout=90)  # fmt: skip
    first, *rest = done.stdout.split()
    said = done.stderr.splitlines()
    assert first == "1", done.stderr
    assert said[1].endswith(
        "No space left on device; finished results are kept; "
        "make room, then the same command goes on"
    )
    kept = int(rest[0])
    assert 0 < kept < CELLS
    assert f"{CELLS - kept} of {CELLS} simulations on" in said[2]
    (folder / "r.parquet").rmdir()
    (folder / "kept").rename(folder / "r.parquet")
    assert rows(folder) == whole
