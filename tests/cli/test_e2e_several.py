# SPDX-License-Identifier: GPL-2.0-only
"""Several jobs, disks and seeds in one call, and several traces together on one disk."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from said import COMMAND, ran

from streamsched.api.host import HOSTS
from streamsched.sim.simulate import trace_owner

POLICIES = ("--policy", "noop,stream:deadline")

pytestmark = pytest.mark.e2e


def streamsched(*words: str | Path, fails: bool = False) -> str:
    done = ran(COMMAND, *words, timeout=120)
    assert bool(done.returncode) == fails, done.stderr
    if fails:
        assert len(done.stderr.strip().splitlines()) == 1 and not done.stdout
        return done.stderr.strip().removeprefix("streamsched: ")
    return done.stdout


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("several")
    for name, rw in (("scan", "read"), ("random", "randread")):
        text = f"[a]\nrw={rw}\nsize=1m\nnumjobs=2\noffset_increment=10g\n"
        (folder / f"{name}.fio").write_text(text)
    return [folder / "scan.fio", folder / "random.fio"]


GRID = ("--disk", "exos-x18", "--disk", "wd5000aaks", "--seed", "1", "--seed", "2")


def test_each_result_is_what_it_is_alone(jobs: list[Path]) -> None:
    document = json.loads(streamsched("run", *jobs, *GRID, *POLICIES, "--output", "json"))
    assert list(document) == ["format", "version", "complete", "results"]
    assert document["complete"] is True
    cells = itertools.product(jobs, ("exos-x18", "wd5000aaks"), ("1", "2"))
    for one, (job, disk, seed) in zip(document["results"], cells, strict=True):
        words = ("run", job, "--disk", disk, "--seed", seed, *POLICIES, "--output", "json")
        assert one == json.loads(streamsched(*words))


def test_tables_and_csv(jobs: list[Path], tmp_path: Path) -> None:
    titles = [
        f"{job.name}: 2 processes on {disk}, owners none, queue depth 32, seed {seed}"
        for job in jobs
        for disk in ("exos-x18", "wd5000aaks")
        for seed in (1, 2)
    ]
    text = streamsched("run", *jobs, *GRID, *POLICIES)
    assert [line for line in text.splitlines() if ": 2 processes on " in line] == titles
    rows = list(
        csv.DictReader(io.StringIO(streamsched("run", *jobs, *GRID, *POLICIES, "--output", "csv")))
    )
    assert [(row["work"], row["disk"], row["seed"], row["policy"]) for row in rows] == [
        (job.name, disk, seed, policy)
        for job in jobs
        for disk in ("exos-x18", "wd5000aaks")
        for seed in ("1", "2")
        for policy in POLICIES[1].split(",")
    ]
    for form in ("table", "json", "csv"):
        for force in ((), ("--force",)):
            to = tmp_path / form
            streamsched("run", jobs[0], *GRID, *POLICIES, "--output", form, "--to", to, *force)


def test_a_report_has_them_all(jobs: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    result, page = tmp_path / "result.json", tmp_path / "page.html"
    streamsched("run", *jobs, *POLICIES, "--output", "json", "--to", result)
    streamsched("report", result, "--to", page)
    assert all(f"<h2>{job.name}" in page.read_text() for job in jobs)
    document = json.loads(result.read_text())
    del document["results"][1]["work"]
    result.write_text(json.dumps(document))
    said = streamsched("report", result, "--to", page, "--force", fails=True)
    assert said.startswith(f"{result}: results[1]: work is missing; ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--plot", "x.svg"), "--plot x.svg: is of one result, and these are 2; "),
        (("--requests", "x.csv"), "--requests x.csv: is of one result, and these are 2; "),
        (("--output", "fio-json"), "--output fio-json: is of one result, and these are 2; "),
        (("--seed", "4"), "--seed 4: stands there twice; leave one of them out"),
        (("--disk", "ssd", "--disk", "ssd"), "--disk ssd: stands there twice"),
        (("--disk", "ssd", "--disk", "none"), "no disk is called 'none'"),
        (("--disk", "ssd", "--disk", "ssd,ssd"), "--disk ssd,ssd: several disks need --array"),
        (("--on", "kernel"), "--seed 4: not --on kernel; write randseed= into the job file"),
    ],
    ids=str,
)
def test_what_is_wrong_with_one_is_said_before_any_runs(
    words: tuple[str, ...], said: str, jobs: list[Path], tmp_path: Path
) -> None:
    to = tmp_path / "result"
    given = ("run", jobs[0], "--seed", "4", "--seed", "5", "--to", to, *words)
    assert streamsched(*given, fails=True).startswith(said)
    assert not to.exists()


def test_a_job_that_is_named_twice_or_is_wrong(jobs: list[Path], tmp_path: Path) -> None:
    assert streamsched("run", jobs[0], jobs[0], fails=True).startswith(f"JOB {jobs[0]}: stands ")
    bad = tmp_path / "bad.fio"
    bad.write_text("[a]\nrw=reed\nsize=1m\n")
    assert streamsched("run", jobs[0], bad, fails=True).startswith(f"{bad}, line 2: ")


@pytest.mark.parametrize("host", HOSTS)
def test_what_a_host_refuses_is_an_option_of_run(host: str) -> None:
    text = streamsched("run", "--on", "kernel", "--policy", "auto", "--help")
    for option in HOSTS[host].refuses:
        assert option.split()[0] in text


# ---- traces ----


def trace(path: Path, *requests: tuple[int, int, int]) -> Path:
    """A trace of reads of 8 sectors: (ms, pid, sector)."""
    path.write_text(
        "".join(
            f"8,0 1 {n + 1} {ms // 1000}.{ms % 1000:03d}000000 {pid} Q R {sector} + 8 [p]\n"
            for n, (ms, pid, sector) in enumerate(requests)
        )
    )
    return path


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    return [
        trace(tmp_path / "a", (5000, 7, 100), (5020, 8, 5000), (5040, 7, 200)),
        trace(tmp_path / "b", (0, 7, 0), (30, 7, 300), (31, 9, 4_000_000)),
    ]


def served(tmp_path: Path, *words: str | Path) -> list[dict[str, Any]]:
    to = tmp_path / "rows.csv"
    streamsched("replay", *words, "--policy", "noop", "--requests", to, "--force")
    return list(csv.DictReader(io.StringIO(to.read_text())))


# Each trace is as long as it reaches, in whole MiB.
BEHIND_A = -(-5008 // 2048) * 2048


def test_each_trace_has_its_place_and_begins_at_time_0(two: list[Path], tmp_path: Path) -> None:
    rows = served(tmp_path, *two, "--mode", "open")
    assert sorted(
        (int(row["arrival_ns"]) // 10**6, int(row["number"]), int(row["sector"])) for row in rows
    ) == [
        (0, 7, 100),
        (0, trace_owner(1, 7), BEHIND_A),
        (20, 8, 5000),
        (30, trace_owner(1, 7), BEHIND_A + 300),
        (31, trace_owner(1, 9), BEHIND_A + 4_000_000),
        (40, 7, 200),
    ]
    # None is sent after a later one of the other trace.
    assert all(int(row["dispatch_ns"]) - int(row["arrival_ns"]) < 20 * 10**6 for row in rows)
    # Closed: all of them, too; and the other way round the other place.
    closed = served(tmp_path, *reversed(two))
    assert sorted(int(row["sector"]) for row in closed)[:2] == [0, 300]
    assert len(closed) == 6


def test_what_came_of_traces_together(two: list[Path]) -> None:
    document = json.loads(streamsched("replay", *two, "--policy", "noop", "--output", "json"))
    assert document["work"] == "a + b"
    assert len(document["work_sha256"]) == 2
    [run] = document["runs"]
    assert run["disk_requests"] == 6 and run["efficiency"] is not None
    assert streamsched("replay", *two).startswith("a + b (blkparse), closed: on exos-x18, owners ")


def test_one_owner_has_no_efficiency(two: list[Path], tmp_path: Path) -> None:
    """Alone it is what it is: there is nothing that it could be compared with."""
    one = trace(tmp_path / "one", (0, 7, 100), (20, 7, 5000), (40, 7, 200))
    none = tmp_path / "none"
    none.write_text("".join(f"{n}.0 0 {n * 5000} 8 1\n" for n in range(9)))
    for alone in (one, none):
        document = json.loads(streamsched("replay", alone, "--output", "json"))
        assert [run["efficiency"] for run in document["runs"]] == [None] * 4
        assert re.search(r"^ noop\b.* [\d.]+ +x1\.00 +- +- ", streamsched("replay", alone), re.M)
    document = json.loads(streamsched("replay", two[0], "--output", "json"))
    assert None not in [run["efficiency"] for run in document["runs"]]


def test_a_pace_that_cannot_be_is_said(tmp_path: Path) -> None:
    """Nanoseconds that are read as milliseconds; and microseconds as nanoseconds."""

    def notes(name: str, text: str, *words: str) -> str:
        (tmp_path / name).write_text(text)
        call = [COMMAND, "replay", tmp_path / name, "--policy", "noop", *words]
        return ran(*call, check=True, cwd=tmp_path).stderr

    text = "".join(f"{n * 20_000} 0 {n * 64} 64 1\n" for n in range(40))
    assert notes("mqsim", text) == ""
    assert notes("mqsim", text, "--format", "disksim", "--mode", "open") == (
        f"streamsched: note: {tmp_path / 'mqsim'}: its first 40 requests come 20 s apart; if they "
        "were not, its times are not in the unit of disksim (docs/sim/TRACES.md)\n"
    )
    fiu = "".join(f"{n * 100} 7 a {n * 64} 64 R 8 0\n" for n in range(40))
    assert "requests are 336 GB a second; if they were not" in notes("fiu", fiu)
    # Fewer requests than can be judged, all at once, and one an hour later.
    assert notes("few", "".join(f"{n}000000.0 0 {n * 64} 64 1\n" for n in range(9))) == ""
    assert notes("once", "fio version 2 iolog\n" + "/a read 0 65536\n" * 40) == ""


def test_many_senders_taken_for_one_are_said(tmp_path: Path) -> None:
    """A closed replay lets all requests wait for each other if a trace tells neither."""

    def notes(columns: str, apart_us: int, *words: str, head: str = "") -> str:
        lines = [columns.format(at=n * apart_us, place=n % 3 << 30) for n in range(40)]
        (tmp_path / "mine").write_text(head + "".join(lines))
        call = (COMMAND, "replay", tmp_path / "mine", "--policy", "noop", *words)
        return ran(*call, check=True).stderr

    alibaba = "7,R,{place},65536,{at}\n"
    assert notes(alibaba, 1000) == (
        f"streamsched: note: {tmp_path / 'mine'}: says neither who sent a request nor when it was "
        "done, so all wait for each other as if one program had sent them; if many did, "
        "use --mode open\n"
    )
    assert notes(alibaba, 1000, "--mode", "open") == ""
    # Together, and so seldom that none waits.
    assert notes(alibaba, 10) == notes(alibaba, 50_000) == ""
    msr = "{at}0,host,0,Read,{place},65536,20000\n"
    assert notes(msr, 1000) == ""  # it has completions
    fio = "{at} /a read {place} 65536\n"
    assert notes(fio, 1000, head="fio version 3 iolog\n") == ""  # one job's


def test_who_is_told_apart(tmp_path: Path) -> None:
    """cfq gives each owner a slice: with the group a trace is one owner, with process each pid."""
    steps = [(n, 7 + n % 2, n % 2 * 2_000_000 + n * 8) for n in range(400)]
    both = [trace(tmp_path / "a", *steps), trace(tmp_path / "b", *steps)]
    found = {
        owners: streamsched(
            "replay", *both, "--policy", "cfq", "--owners", owners, "--queue-depth", "1"
        ).splitlines()[3:]
        for owners in ("process", "group", "none")
    }
    assert found["process"] != found["group"] != found["none"]
    alone = [
        streamsched("replay", both[0], "--policy", "cfq", "--owners", owners).splitlines()[3:]
        for owners in ("process", "group")
    ]
    assert alone[0] == alone[1]  # of one trace a group is a process


def test_traces_that_do_not_fit(tmp_path: Path) -> None:
    large = [trace(tmp_path / name, (0, 1, 600_000_000)) for name in "ab"]
    small = ("--disk", "wd5000aaks", "--policy", "noop")
    said = streamsched("replay", *large, *small, fails=True)
    assert said == (
        "the 2 traces need 1200001024 sectors one behind the other, and the disk has 976773168; "
        "choose a larger disk, or fold positions with --wrap"
    )
    rows = served(tmp_path, *large, "--disk", "wd5000aaks", "--wrap")
    assert sorted(int(row["sector"]) for row in rows) == [
        (600_000_512 + 600_000_000) % 976_773_168,
        600_000_000,
    ]


def test_what_is_wrong_with_a_trace_says_with_which(two: list[Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_text(two[0].read_text() + "8,0 1 4 5.050000000 7 Q R x + 8 [p]\n")
    said = streamsched("replay", two[1], bad, fails=True)
    assert said.startswith(f"{bad}: line 4, column ")
    assert streamsched("replay", "-", "-", fails=True).startswith("-: stands there twice; ")
    assert streamsched("replay", two[0], tmp_path / "none", fails=True).startswith(
        f"{tmp_path / 'none'}: cannot be read: "
    )


def test_a_trace_on_several_disks(two: list[Path]) -> None:
    disks = ("--disk", "exos-x18", "--disk", "wd5000aaks")
    text = streamsched("replay", two[0], *disks, "--output", "csv", *POLICIES)
    assert [row["disk"] for row in csv.DictReader(io.StringIO(text))] == [
        "exos-x18",
        "exos-x18",
        "wd5000aaks",
        "wd5000aaks",
    ]


def test_the_same_in_python(two: list[Path]) -> None:
    import streamsched as package

    traces = [package.Trace(str(one)) for one in two]
    result = package.simulate(traces, policies="noop")
    assert result.to_dict()["runs"][0]["disk_requests"] == 6
    with pytest.raises(package.UsageError, match="no trace is given"):
        package.simulate([])
