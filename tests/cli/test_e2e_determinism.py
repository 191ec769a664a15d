# SPDX-License-Identifier: GPL-2.0-only
"""Same inputs, same outputs, bit for bit, whatever runs beside; another seed, other chance."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from said import COMMAND

DATA = Path(__file__).parents[1] / "data"
JOB = DATA / "e2e/two-readers.fio"
TRACE = DATA / "traces/loop.blktrace"
POLICIES = "noop,deadline,cscan,sptf,anticipatory,cfq,stream:noop,stream:deadline,stream:sptf"


def output(*arguments: object, **environment: str) -> bytes:
    done = subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        capture_output=True,
        timeout=120,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout


def runs(text: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)["runs"]
    return found


RUN = ("run", JOB, "--policy", POLICIES, "--output")
REPLAY = ("replay", TRACE, "--policy", POLICIES, "--output")


@pytest.mark.parametrize(
    ("command", "form"),
    [(RUN, form) for form in ("json", "csv", "fio-json", "table")]
    + [(REPLAY, form) for form in ("json", "csv", "table")],
    ids=lambda v: v if isinstance(v, str) else v[0],
)
def test_the_same_again_with_any_number_of_jobs(command: tuple[object, ...], form: str) -> None:
    first = output(*command, form, "--parallel", 1)
    assert len(first) > 100
    for jobs in (1, 2, 4):
        assert output(*command, form, "--parallel", jobs) == first


@pytest.mark.parametrize("depth", [1, 32])
@pytest.mark.parametrize("mode", ["open", "closed"])
def test_replay_again(mode: str, depth: int) -> None:
    command = (*REPLAY, "json", "--mode", mode, "--queue-depth", depth)
    assert output(*command, "--parallel", 1) == output(*command, "--parallel", 4)


def test_hash_seed_locale_and_place_do_not_matter(tmp_path: Path) -> None:
    first = output(*RUN, "json", PYTHONHASHSEED="1")
    assert (
        output(*RUN, "json", PYTHONHASHSEED="2", LC_ALL="C", TZ="Asia/Tokyo", COLUMNS="40") == first
    )
    to = tmp_path / "out.json"
    output(*RUN, "json", "--to", to)
    assert to.read_bytes() == first


def test_a_policy_does_not_depend_on_its_company() -> None:
    together = {run["policy"]: run for run in runs(output(*RUN, "json"))}
    for policy in ("deadline", "stream:sptf"):
        alone = runs(output("run", JOB, "--policy", policy, "--output", "json"))
        assert alone == [together[policy]]


def test_seed() -> None:
    def with_seed(seed: int) -> bytes:
        return output(
            "run", JOB, "--policy", "noop,stream:noop", "--output", "json", "--seed", seed
        )

    default, same, other = with_seed(0), with_seed(0), with_seed(1)
    assert default == same != other
    assert output("run", JOB, "--policy", "noop,stream:noop", "--output", "json") == default
    for a, b in zip(runs(default), runs(other), strict=True):
        assert a["duration_s"] != b["duration_s"]
        assert a["bytes_read"] == b["bytes_read"]
    assert with_seed(2**64 - 1) not in (default, other)


def test_each_seed_is_another_run_without_chance_too(tmp_path: Path) -> None:
    job = tmp_path / "sequential.fio"
    text = "[r]\nrw=read\nsize=4m\nnumjobs=2\noffset_increment=10g\n"

    def results() -> list[object]:
        return [runs(output("run", job, "--output", "json", "--seed", seed)) for seed in (0, 1, 99)]

    job.write_text(text)
    first, *others = results()
    assert first not in others and others[0] != others[1]
    job.write_text(text + "startdelay=0\n")
    first, *others = results()
    assert others == [first, first]


def test_randseed_goes_before_seed(tmp_path: Path) -> None:
    job = tmp_path / "random.fio"
    text = "[r]\nrw=randread\ndirect=1\nsize=1g\nio_size=1m\nstartdelay=0\n"
    job.write_text(text + "randseed=7\n")
    fixed = [runs(output("run", job, "--output", "json", "--seed", seed)) for seed in (0, 1)]
    assert fixed[0] == fixed[1]
    job.write_text(text + "randseed=8\n")
    assert runs(output("run", job, "--output", "json")) not in fixed
