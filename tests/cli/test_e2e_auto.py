# SPDX-License-Identifier: GPL-2.0-only
"""`profile` and `--policy auto` as a user runs them."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from profile_data import small_profile
from rich.console import Console
from said import ROOT, ran
from test_e2e_cli import COMMAND, streamsched, why_refused

from streamsched.cli import papers
from streamsched.cli.papers import AUTO_DOCUMENT
from streamsched.papers import selection as autocheck
from streamsched.papers.selection import JOBS, SEQUENCE
from streamsched.sim import profile
from streamsched.sim.chooser import Choice
from streamsched.sim.diskfile import load_disk
from streamsched.sim.policies import AUTO
from streamsched.sim.simulate import Setup, run_jobs
from streamsched.sim.workloads import WORKLOADS, shipped_jobs

DISK = load_disk("wd5000aaks")
READERS = ROOT / "jobs/direct-readers.fio"
RANDOM = ROOT / "jobs/random-disk.fio"
TRACE = ROOT / "traces/pg-scan.blktrace.zst"
# What small_profile() was measured on.
MEASURED = ("--disk", "wd5000aaks", "--queue-depth", "1")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile file of few workloads."""
    path = tmp_path_factory.mktemp("profile") / "small.json"
    path.write_text(profile.as_text(small_profile()))
    return path


def document(*arguments: object) -> dict[str, Any]:
    done = streamsched(*arguments, "--output", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# ---- run and replay ----


def test_auto_is_as_good_as_the_best(small: Path) -> None:
    """Begins with the wrong one where stream is left out of the profile's beginning."""
    found = document(
        *("run", READERS, *MEASURED, "--owners", "none", "--profile", small),
        *("--policy", "noop,stream:linus,auto"),
    )
    noop, stream, auto = found["runs"]
    assert auto["throughput_mb_s"] > 0.99 * stream["throughput_mb_s"] > 5 * noop["throughput_mb_s"]
    assert auto["policy"] == "auto" and auto["tunables"] == {}
    (begin,) = auto["choices"]
    assert begin["at_s"] == 0 and begin["policy"].startswith("stream:")
    assert "choices" not in noop
    # What a process does with the disk to itself is not chosen.
    assert found["alone_mb_s"]["0"] > 0


def test_the_table_says_what_was_chosen_and_why(small: Path) -> None:
    done = streamsched(
        *("run", RANDOM, *MEASURED, "--profile", small, "--policy", "auto", "--rule", "size")
    )
    assert done.returncode == 0
    assert "auto, 0.00 s: " in done.stdout and "(nothing is known yet)" in done.stdout


def test_the_same_twice(small: Path) -> None:
    command = (
        "run",
        ROOT / "jobs/mixed.fio",
        *MEASURED,
        "--profile",
        small,
        "--policy",
        "auto,noop",
    )
    assert document(*command, "--parallel", "1") == document(*command, "--parallel", "2")


def test_replay_takes_it_too(small: Path) -> None:
    found = document("replay", TRACE, *MEASURED, "--profile", small, "--policy", "noop,auto")
    noop, auto = found["runs"]
    assert auto["bytes_read"] == noop["bytes_read"] > 0
    assert auto["choices"]


def test_it_is_listed() -> None:
    listed = streamsched("list", "policies").stdout
    assert any(line.split()[:2] == ["auto", "chooses"] for line in listed.splitlines())


# ---- profile ----


def test_a_profile_is_written_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    done = streamsched(
        "profile", "wd5000aaks", "--policy", "noop,cscan", *MEASURED[2:], "--to", path
    )
    assert done.returncode == 0, done.stderr
    assert str(path) in done.stdout and "noop" in done.stdout
    written, _ = profile.read(path)
    written.check(DISK, 1, "")
    assert written.policies == ("noop", "cscan")
    assert {cell.owners for cell in written.cells} == {"process", "none"}
    # The same numbers as of any other profile.
    small = small_profile()
    assert written.curves["noop"] == pytest.approx(small.curves["noop"], abs=1e-4)
    for size, value in zip(written.sizes_bytes, written.curves["cscan"], strict=True):
        # The file has four digits: of half a hundredth they do not tell the side.
        shown = {f"{value + off:.2f}" for off in (-0.0001, 0, 0.0001)}
        assert size and any(each in done.stdout for each in shown)


# ---- bad input ----


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--policy", "noop", "--goal", "p99"], "--goal p99: only with --policy auto"),
        (["--policy", "noop", "--rule", "size"], "--rule size: only with --policy auto"),
        (["--policy", "noop", "--profile", "x"], "--profile x: only with --policy auto"),
        (["--policy", "auto", "--profile", "x"], "x: cannot read it: No such file or directory"),
        (
            ["--policy", "auto", "--rule", "size", "--goal", "p99"],
            "--rule size: goes by throughput alone; leave --goal p99 out",
        ),
        (
            ["--policy", "stream:auto"],
            'policy "stream:auto": auto stands alone; it chooses what to wrap by itself',
        ),
        (
            ["--policy", "auto:noop"],
            'policy "auto:noop": auto stands alone; it chooses what to wrap by itself',
        ),
        (
            ["--policy", "auto", "--array", "raid0:2:64k"],
            "auto: not with --array; a profile is of one disk",
        ),
        (
            ["--policy", "auto", "--set", "read_expire=1s"],
            "--set read_expire: auto has no tunables",
        ),
        (["--policy", "auto", "--on", "kernel"], "unknown kernel scheduler 'auto'"),
        (
            ["--policy", "auto", "--on", "nbd"],
            "auto: not with --on nbd; the plugin keeps the policy it began with",
        ),
        (["--policy", "auto", "--on", "nbd", "--goal", "p99"], "--goal p99: only with"),
    ],
)
def test_options_that_make_no_sense(options: list[str], why: str) -> None:
    assert why_refused("run", READERS, *options).startswith(why)


def test_a_profile_of_another_disk(small: Path) -> None:
    with_auto = ("--policy", "auto", "--profile", small)
    assert why_refused("run", READERS, *with_auto, "--disk", "exos-x18") == (
        f"{small}: is a profile of wd5000aaks, not of exos-x18"
    )
    assert why_refused("run", READERS, *with_auto, *MEASURED[:2], "--queue-depth", "8") == (
        f"{small}: was measured with queue depth 1, not 8"
    )
    assert why_refused("replay", TRACE, *with_auto, "--disk", "ssd").endswith("not of ssd")


def test_a_profile_without_these_owners(tmp_path: Path) -> None:
    cells = tuple(cell for cell in small_profile().cells if cell.owners == "none")
    path = tmp_path / "hidden.json"
    path.write_text(profile.as_text(dataclasses.replace(small_profile(), cells=cells)))
    assert why_refused(
        *("run", READERS, *MEASURED, "--owners", "process", "--policy", "auto", "--profile", path)
    ) == (
        f"{path}: was not measured with --owners process; "
        "measure it again with `streamsched profile`"
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["nosuch"], "no disk is called 'nosuch'"),
        (["ssd", "--policy", "nop,cscan", "--to", "x"], "unknown policy 'nop'"),
        (["ssd", "--policy", "auto,noop", "--to", "x"], "--policy auto: it chooses by a profile"),
        (["ssd", "--policy", "noop", "--to", "x"], "--policy: name at least two; of one"),
        (["ssd", "--policy", "noop,cscan"], "--policy: name a file with --to; what is kept has"),
        (["ssd", "--queue-depth", "33"], "--queue-depth 33: ssd takes 1 to 32 commands at once"),
        (["usb2-2tb", "--queue-depth", "2"], "--queue-depth 2: usb2-2tb takes 1 command at once"),
        (["ssd", "--to", "/nowhere/x.json"], "--to /nowhere/x.json: cannot write it"),
    ],
)
def test_profiles_that_cannot_be_made(options: list[str], why: str) -> None:
    assert why_refused("profile", *options).startswith(why)


def test_a_profile_that_cannot_be_kept_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    place = tmp_path / "file" / "streamsched" / "profiles"
    assert why_refused("profile", "ssd") == (
        f"{place}: cannot make it: Not a directory; name a file with --to"
    )


# ---- the comparison with fixed policies ----


def test_the_sequence_is_all_jobs_in_turn() -> None:
    processes = autocheck.sequence(DISK)
    assert [p.stage for p in processes] == sorted(p.stage for p in processes)
    assert {p.stage for p in processes} == set(range(len(JOBS)))
    shipped = {path.stem for path in (ROOT / "jobs").glob("*.fio")}
    assert set(JOBS) <= shipped


def test_phases_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs one after the other take as long as all of it, and do what they do by themselves."""
    jobs = ("proportional-share", "random-regions")
    monkeypatch.setattr(autocheck, "JOBS", jobs)
    setup = Setup(DISK, "stream:deadline", owners="none")
    whole = run_jobs(setup, list(autocheck.sequence(DISK)))
    phases = autocheck.phases_of(whole, DISK)
    assert phases[0].begin_s == 0 and phases[0].end_s == phases[1].begin_s
    assert phases[1].end_s == pytest.approx(whole.seconds, abs=0.001)
    for job, phase in zip(jobs, phases, strict=True):
        alone = run_jobs(setup, list(autocheck.work_of(job, DISK)))
        # Less alike where stream has learned from the job before.
        assert phase.mb_s == pytest.approx(alone.mb_s, rel=0.2)
    assert phases[0].mb_s == pytest.approx(
        run_jobs(setup, list(autocheck.work_of(jobs[0], DISK))).mb_s, rel=1e-9
    )


def test_rows_of_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = ("proportional-share",)
    monkeypatch.setattr(autocheck, "JOBS", jobs)
    quiet = Console(quiet=True)
    hidden, whole, phase, *visible = autocheck.check(small_profile(), DISK, 1, quiet)
    assert [row.work.strip() for row in (hidden, whole, phase)] == [jobs[0], SEQUENCE, jobs[0]]
    assert [row.owners for row in (hidden, *visible)] == ["none"] + ["process"] * 3
    # With one job the sequence is that job.
    assert whole.ratio == pytest.approx(hidden.ratio) == pytest.approx(phase.ratio)
    assert hidden.best.startswith("stream:") and hidden.ratio > 0.95 and hidden.holds
    fails = dataclasses.replace(hidden, auto_mb_s=0.94 * hidden.best_mb_s)
    often = dataclasses.replace(hidden, choices=hidden.choices * 3)
    assert not fails.holds and not often.holds


def test_no_workload_is_left_out() -> None:
    """What reproduce auto does not have bench/choice.py has, but for an array."""
    spec = importlib.util.spec_from_file_location("choice", ROOT / "bench" / "choice.py")
    assert spec and spec.loader
    choice = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(choice)
    assert {*JOBS, *choice.WORKS} == {*shipped_jobs(), *WORKLOADS} - {"pvfs"}


def table_in_document() -> list[str]:
    """The lines of docs/results/auto.md that reproduce auto prints."""
    text = (ROOT / "docs" / "results" / "auto.md").read_text()
    assert text.startswith(AUTO_DOCUMENT.partition("{}")[0])
    return text.partition("```text\n")[2].partition("\n```\n")[0].splitlines()


def test_the_rows_of_the_document_are_written_as_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other columns or verdicts the document is stale, though the figures are not."""
    rows = []
    for line in table_in_document():
        cells = re.split(r"  +", line.strip())
        if len(cells) == 10 and cells[1] in ("hidden", "visible"):
            work = f"  {cells[0]}" if line.startswith("   ") else cells[0]
            owners = "none" if cells[1] == "hidden" else "process"
            best, ratio, size = (float(cells[i]) for i in (3, 4, 5))
            choices = (Choice(0, cells[8], ""),) * (1 + int(cells[6]))
            figures = (best, best * ratio, best * size)
            rows.append(autocheck.Row(work, owners, cells[2], *figures, choices, int(cells[7])))
    assert len(rows) == 2 * (2 * len(JOBS) + 1)
    monkeypatch.setattr(autocheck, "obtain", lambda *_: None)
    monkeypatch.setattr(autocheck, "check", lambda *_: rows)
    to = tmp_path / "auto.md"
    papers.reproduce([AUTO], to=to, parallel=1)
    assert to.read_text() == AUTO_DOCUMENT.format("\n".join(table_in_document()))


def test_reproduce_auto_does_not_replace_what_is_not_its_own(tmp_path: Path) -> None:
    """It says so before it measures."""
    to = tmp_path / "mine.md"
    to.write_text("mine\n")
    assert why_refused("reproduce", AUTO, "--to", str(to)).startswith(f"--to {to}: ")
    assert to.read_text() == "mine\n"


@pytest.mark.long
def test_the_document_has_what_reproduce_auto_prints(tmp_path: Path) -> None:
    """Virtual time: the same each time. A change that is meant writes it anew."""
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = ran(COMMAND, "reproduce", AUTO, timeout=3600, env=env)
    lines = [line.rstrip() for line in done.stdout.strip().splitlines()]
    assert table_in_document() == lines
    assert done.returncode == (1 if "FAILS" in done.stdout else 0)
