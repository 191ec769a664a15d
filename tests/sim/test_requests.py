# SPDX-License-Identifier: GPL-2.0-only
"""What run and replay --requests write, histograms, and what each process had."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from job_text import job_text
from said import COMMAND, ROOT, ran

from streamsched.sim.requestlog import COLUMNS

TRACE = ROOT / "traces" / "pg-scan.blktrace.zst"
JOB = job_text("""\
[global] filename=disk size=2m offset_increment=20g
[scan] rw=read size=8m numjobs=2
[direct] rw=randrw direct=1 bs=4k io_size=256k iodepth=4 ioengine=libaio
""")
POLICIES = ["noop", "stream:deadline"]

pytestmark = pytest.mark.e2e


def streamsched(*words: str | Path, fails: bool = False) -> str:
    done = ran(COMMAND, *words, timeout=120)
    assert bool(done.returncode) == fails, done.stderr
    if fails:
        assert len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr
    return done.stderr if fails else done.stdout


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("requests") / "three.fio"
    path.write_text(JOB)
    return path


def simulated(job: Path, *words: str | Path) -> dict[str, Any]:
    text = streamsched(
        "run",
        job,
        "--policy",
        ",".join(POLICIES),
        "--output",
        "json",
        *("--queue-depth", "4", "--owners", "process"),
        *([] if "--disk" in words else ["--disk", "wd5000aaks"]),
        *words,
    )
    document: dict[str, Any] = json.loads(text)
    return document


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("array", [[], ["--array", "raid0:2:64k"]])
def test_a_row_for_each_request(job: Path, tmp_path: Path, array: list[str]) -> None:
    to = tmp_path / "r.csv"
    document = simulated(job, "--requests", to, *array)
    found = rows(to)
    assert list(found[0]) == list(COLUMNS)
    for run in document["runs"]:
        of = [row for row in found if row["policy"] == run["policy"]]
        assert len(of) == run["disk_requests"]
        times = [
            [int(row[f"{name}_ns"]) for name in ("arrival", "dispatch", "start", "completion")]
            for row in of
        ]
        assert all(one == sorted(one) for one in times)
        assert [one[3] for one in times] == sorted(one[3] for one in times)
        for row, one in zip(of, times, strict=True):
            transfer_ns = one[3] - one[2] - int(row["positioning_ns"])
            assert int(row["transfer_ns"]) == max(0, transfer_ns)
        # The page cache's readahead reads as much as processes do, or more.
        bytes_read = sum(int(row["sectors"]) * 512 for row in of if row["direction"] == "read")
        assert bytes_read >= run["bytes_read"] > 0
        assert {row["process"] for row in of} == {"scan", "direct"}
        assert {row["number"] for row in of} == {"0", "1", "2"}
        assert {row["disk"] for row in of} == ({"0", "1"} if array else {"0"})


@pytest.mark.parametrize(
    ("was", "now", "more"),
    [
        ("", "", []),
        ("", "", ["--array", "raid0:2:64k"]),
        # A scheduler for each half of the disk.
        ("=20g", "=9500g", ["--disk", "exos-2x18"]),
        # More than a scheduler takes: the others wait before it.
        ("io_size=256k\niodepth=4", "size=1g\nio_size=4m\niodepth=400", []),
    ],
)
def test_reasons_and_parties(tmp_path: Path, was: str, now: str, more: list[str]) -> None:
    job = tmp_path / "job.fio"
    job.write_text(JOB.replace(was, now))
    document = simulated(job, "--requests", tmp_path / "r.csv", *more)
    found = rows(tmp_path / "r.csv")
    for run in document["runs"]:
        of = [row for row in found if row["policy"] == run["policy"]]
        number = Counter(row["reason"] for row in of)
        waited: Counter[str] = Counter()
        for row in of:
            waited[row["reason"]] += int(row["dispatch_ns"]) - int(row["arrival_ns"])
        assert {name: number[name] for name in run["reasons"]} == run["reasons"]
        assert {name: waited[name] / 1e9 for name in run["reasons"]} == run["reason_waits_s"]
        parties = {row["party"] for row in of}
        if run["policy"] == "noop":
            assert parties == {""}
            continue
        streams = [party for party in parties if party.isdigit()]
        assert parties <= {"rest", "write-back", "sender", *streams} and "rest" in parties
        assert sorted(map(int, streams)) == list(range(1, len(streams) + 1))
        assert all(
            row["party"] not in ("rest", "write-back") for row in of if row["reason"] == "own"
        )
        for stream in streams:
            own = {(row["disk"], int(row["sector"]) >> 23) for row in of if row["party"] == stream}
            assert len(own) == 1  # all within 4 GiB
        assert "scan" in {row["process"] for row in of if row["party"].isdigit()}


def test_each_stream_has_a_number_of_its_own(tmp_path: Path) -> None:
    """Each reader is in a place of its own, of 1 GiB."""
    path, to = tmp_path / "zones.fio", tmp_path / "r.csv"
    path.write_text(
        "[scan]\nrw=read\nbs=64k\ndirect=1\nsize=2m\nnumjobs=250\noffset_increment=1g\nfilename=disk\n"
    )
    words = ["--disk", "wd5000aaks", "--queue-depth", "1", "--policy", "stream:noop"]
    streamsched("run", path, *words, "--requests", to)
    zones: dict[str, set[int]] = {}
    for row in rows(to):
        if row["party"].isdigit():
            zones.setdefault(row["party"], set()).add(int(row["sector"]) >> 21)
    assert len(zones) > 200 and all(len(own) == 1 for own in zones.values())


def test_parquet_has_the_same(job: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is missing")
    simulated(job, "--requests", tmp_path / "r.csv")
    simulated(job, "--requests", tmp_path / "r.parquet")
    table = parquet.read_table(tmp_path / "r.parquet")
    assert table.column_names == list(COLUMNS)
    assert [{name: str(v) for name, v in row.items()} for row in table.to_pylist()] == rows(
        tmp_path / "r.csv"
    )


def test_a_trace(tmp_path: Path) -> None:
    to = tmp_path / "r.csv"
    words = ["replay", TRACE, "--policy", "noop", "--requests", to]
    run = json.loads(streamsched(*words, "--output", "json"))["runs"][0]
    found = rows(to)
    assert len(found) == run["disk_requests"]
    assert (
        sum(int(row["sectors"]) * 512 for row in found) == run["bytes_read"] + run["bytes_written"]
    )


def test_histograms_count_everything(job: Path, tmp_path: Path) -> None:
    document = simulated(job, "--requests", tmp_path / "r.csv")
    found = rows(tmp_path / "r.csv")
    for run in document["runs"]:
        of = [row for row in found if row["policy"] == run["policy"]]
        service = run["service_histogram"]
        assert sum(service["count"]) == run["disk_requests"]
        assert service["up_to_ms"] == sorted(set(service["up_to_ms"]))
        for limit in service["up_to_ms"]:
            counted = sum(
                count
                for at, count in zip(service["up_to_ms"], service["count"], strict=True)
                if at <= limit
            )
            exact = sum(
                int(row["completion_ns"]) - int(row["start_ns"]) <= round(limit * 1e6) for row in of
            )
            assert counted == exact
        for process in run["jobs"]:
            histogram = process["response_histogram"]
            assert histogram["up_to_ms"][-1] >= process["response_ms"]["max"]
            assert histogram["up_to_ms"][0] > 0
    # A 4 KiB block each: 256 KiB of the third process.
    assert sum(document["runs"][0]["jobs"][2]["response_histogram"]["count"]) == 64


def test_shares(job: Path) -> None:
    for run, alone in ((run, doc["alone_mb_s"]) for doc in [simulated(job)] for run in doc["runs"]):
        shares = [process["share"] for process in run["jobs"]]
        for number, process in enumerate(run["jobs"]):
            rate = (process["bytes_read"] + process["bytes_written"]) / process["duration_s"] / 1e6
            assert process["throughput_mb_s"] == pytest.approx(rate, rel=1e-6)
            assert process["share"] == pytest.approx(rate / alone[str(number)], rel=1e-4)
        assert run["least_share"] == pytest.approx(3 * min(shares), rel=1e-4)


def test_a_process_alone_has_all(tmp_path: Path) -> None:
    path = tmp_path / "one.fio"
    path.write_text("[one]\nrw=read\nsize=8m\nfilename=disk\n")
    run = json.loads(streamsched("run", path, "--policy", "noop", "--output", "json"))["runs"][0]
    assert run["least_share"] == run["jobs"][0]["share"] == 1.0


def test_behind_a_stonewall_a_process_has_all_again(tmp_path: Path) -> None:
    path = tmp_path / "two.fio"
    path.write_text("[global]\nrw=read\nsize=8m\nfilename=disk\n[one]\n[two]\nstonewall\n")
    run = json.loads(streamsched("run", path, "--policy", "noop", "--output", "json"))["runs"][0]
    assert run["least_share"] == pytest.approx(1, abs=0.1)


def test_the_table_by_process(job: Path) -> None:
    text = streamsched("run", job, "--policy", "noop", "--by", "process")
    assert text.count(" scan ") == 2 and text.count(" direct ") == 1
    assert "share" not in streamsched("run", job, "--policy", "noop").splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--requests", "r.txt"], "must end in .csv or .parquet"),
        (["--requests", "there.csv"], "is there; name another file"),
        (["--requests", "pipe.csv"], "is not a file"),
        (["--requests", "no/r.csv"], "there is no directory no"),
        (["--requests", "r.csv", "--to", "r.csv"], "is where the results go"),
        (["--requests", "r.csv", "--on", "kernel"], "not with --on kernel"),
        (["--by", "process", "--output", "csv"], "only with --output table"),
    ],
)
def test_what_is_refused(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.csv").write_text("somebody's figures\n")
    os.mkfifo("pipe.csv")
    assert says in streamsched("run", job, *words, fails=True)
    assert Path("there.csv").read_text() == "somebody's figures\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe.csv", "there.csv"]


def test_a_job_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "job.csv"
    path.write_text(JOB)
    assert "is read, and would be lost" in streamsched("run", path, "--requests", path, fails=True)
    assert path.read_text() == JOB
