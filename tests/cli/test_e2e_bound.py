# SPDX-License-Identifier: GPL-2.0-only
"""The command bound: what it prints, and what it refuses in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from said import COMMAND, ran

from streamsched.base.errors import StreamschedError
from streamsched.cli import bound as cli
from streamsched.cli.options import Form

pytest.importorskip("scipy", reason="scipy is missing: pip install 'streamsched[bound]'")

pytestmark = pytest.mark.e2e

READERS = """[reader]
rw=read
bs=64k
direct=1
size=20g
numjobs=4
offset_increment=100g
runtime=5
time_based
"""
DONE = "8,0 0 {n} 0.00{n}000000 1 {what} R {sector} + 8 [a]\n"


def said(*words: object, command: str = "bound") -> subprocess.CompletedProcess[str]:
    return ran(COMMAND, command, *words, timeout=120)


def answer(*words: object) -> Any:
    done = said(*words, "--output", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "readers.fio"
    path.write_text(READERS)
    return path


def test_a_job_has_both_ends_and_policies_beside_them(job: Path) -> None:
    found = answer(job, "--disk", "wd5000aaks", "--policy", "noop,stream:deadline")
    assert found["steady"] and not found["loose"]
    fair, most = found["frontier"][0], found["frontier"][-1]
    assert fair["least"] > most["least"] and fair["sum"] <= most["sum"] + 1e-6
    assert 0.5 < fair["sum"] < 1.02
    for policy in found["policies"]:
        assert 0 <= policy["regret"] < 1
    assert all(set(one["reached"]) == {"noop", "stream:deadline"} for one in found["processes"])
    text = said(job, "--disk", "wd5000aaks", "--policy", "noop").stdout
    assert "frontier" in text and "regret" in text


def test_run_has_the_regret_below_its_table(job: Path) -> None:
    words = (job, "--disk", "wd5000aaks", "--policy", "noop,stream:deadline")
    plain, more = said(*words, command="run"), said(*words, "--bound", command="run")
    assert plain.returncode == more.returncode == 0, more.stderr
    assert more.stdout.startswith(plain.stdout)
    table = more.stdout.removeprefix(plain.stdout).strip("\n")
    assert "regret" in table and said(*words).stdout.rstrip("\n").endswith(table)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--output", "json"), "--bound: only with tables that are printed; "),
        (("--to", "new"), "--bound: only with tables that are printed; "),
        (("--policy", "noop,auto"), "--bound: not with the policy auto; "),
        (("--on", "kernel"), "--bound: not with --on kernel, which has no model"),
        (("--array", "linear:2"), "linear: the bound is proved for stripes and mirrors"),
    ],
)
def test_where_run_has_no_bound(job: Path, words: tuple[str, ...], why: str) -> None:
    done = said(job, "--bound", *words, command="run")
    assert done.returncode == 2 and why in done.stderr.splitlines()[-1], done.stderr


def test_several_have_their_titles(job: Path) -> None:
    words = (job, "--disk", "wd5000aaks", "--disk", "ssd", "--policy", "noop", "--bound")
    one = said(job, "--disk", "wd5000aaks", "--policy", "noop", "--bound", command="run").stdout
    both = said(*words[:3], "--disk", "exos-x18", *words[5:], command="run").stdout
    for disk in ("wd5000aaks", "exos-x18"):
        assert both.count(f"readers.fio: 4 processes on {disk}, ") == 2
    assert one.count("readers.fio: ") == 1


def test_what_stays_in_memory_needs_no_head(tmp_path: Path) -> None:
    """A writer that ends before anything is written out is as fast as memory."""
    path = tmp_path / "writer.fio"
    path.write_text("[a]\nrw=write\nsize=4m\n")
    (noop,) = answer(path, "--policy", "noop")["policies"]
    assert noop["regret"] >= 0


def test_the_same_twice(job: Path) -> None:
    assert answer(job) == answer(job)


def test_a_shorter_target_leaves_less(job: Path) -> None:
    sums = [
        answer(job, "--wait-target", target)["frontier"][-1]["sum"] for target in ("2s", "60ms")
    ]
    assert sums[0] > sums[1]


def test_a_job_with_an_end_has_an_efficiency(tmp_path: Path) -> None:
    path = tmp_path / "ends.fio"
    path.write_text("[a]\nrw=read\nsize=100m\n[b]\nrw=read\nsize=200m\noffset=50g\n")
    found = answer(path, "--policy", "noop")
    assert not found["steady"] and len(found["frontier"]) == 1
    assert found["policies"][0]["total"] <= found["policies"][0]["most"]
    assert "No order is more efficient than" in said(path).stdout


def test_a_trace_has_a_floor(tmp_path: Path) -> None:
    path = tmp_path / "t.blkparse"
    lines = [
        DONE.format(n=n, what=what, sector=10**8 * n) for n in range(1, 9) for what in ("Q", "C")
    ]
    path.write_text("".join(lines))
    found = answer(path, "--policy", "noop")
    assert found["requests"] == 8 and found["floor_s"] > 0
    assert found["policies"][0]["floor_s"] <= found["policies"][0]["position_s"]
    assert "No order positions the head" in said(path).stdout


def refused(*words: object) -> str:
    done = said(*words)
    assert done.returncode == 2 and not done.stdout, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[r]\nrw=read\nbs=64k\n", "has no end within an hour"),
        ("[r]\nrw=randread\nbs=4k\nsize=1t\n", "has no end within an hour"),
    ],
)
def test_a_job_without_an_end(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "endless.fio"
    path.write_text(text)
    assert why in refused(path)
    assert said(path, "--runtime", "2s").returncode == 0


def test_a_trace_without_completions(tmp_path: Path) -> None:
    path = tmp_path / "t.blkparse"
    path.write_text("".join(DONE.format(n=n, what="Q", sector=n) for n in range(1, 9)))
    assert "does not say when its requests were done" in refused(path)


def test_a_target_that_cannot_be_kept(job: Path) -> None:
    why = refused(job, "--wait-target", "5ms")
    assert "a wait target of 5 ms cannot be kept" in why and "ms at least" in why


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["traces/three-readers.blkparse.zst", "--array", "raid0:2"], "is proved for one disk"),
        (["par-read", "--disk", "ssd"], "has no arm"),
        (["par-read", "--wait-target", "-3"], "--wait-target -3"),
        (["par-read", "--wait-target", "soon"], "--wait-target: "),
        (["par-read", "--wait-target", "0"], "nothing is reached in no time"),
        (["par-read", "--device", "8,0"], "is of a trace"),
        (["nosuch"], "unknown workload or job file"),
        (["nosuch.blktrace"], "cannot be read"),
        (["traces/three-readers.blkparse.zst", "--runtime", "3s"], "is of a job"),
        ([""], "JOB|TRACE is empty"),
    ],
)
def test_what_it_cannot_bound(words: list[str], why: str) -> None:
    assert why in refused(*words)


def test_a_missing_solver(job: Path) -> None:
    """As where the extra is not installed."""
    code = (
        "import sys; sys.modules['scipy'] = None; sys.argv[:1] = ['streamsched', 'bound']; "
        "from streamsched.__main__ import main; main()"
    )
    done = ran(sys.executable, "-P", "-c", code, job)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert "bound needs scipy" in done.stderr and "streamsched[bound]" in done.stderr


def test_a_policy_above_its_bound_is_said_to_be_a_bug(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamsched.bound.job import JobBound
    from streamsched.bound.mix import Shares

    monkeypatch.setattr(JobBound, "bound_most", lambda self, absent_s: Shares((0.01,)))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StreamschedError, match="noop is above the bound, which is a bug"):
        cli.bound(
            str(job),
            disk=None,
            policy="noop",
            owners=None,
            queue_depth=None,
            wait_target="500ms",
            runtime=None,
            format_=None,
            device=None,
            skip_bad=False,
            output=Form.table,
            parallel=1,
        )
    (saved,) = tmp_path.glob("above-the-bound-*.json")
    case = json.loads(saved.read_text())
    assert case["job"] == READERS and case["answer"]["policies"][0]["regret"] < 0
