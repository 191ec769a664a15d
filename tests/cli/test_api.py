# SPDX-License-Identifier: GPL-2.0-only
"""The Python interface: the examples of docs/sim/PYTHON.md, and what is refused."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from said import COMMAND, ran

import streamsched
from streamsched import Disk, Job, Trace, UsageError, simulate
from streamsched.api.place import Place

TWO = "[reader]\nrw=read\nsize=4m\nnumjobs=2\noffset_increment=100g\n"
POLICIES = ["noop", "stream:deadline"]


@pytest.mark.e2e
def test_the_documents_examples(root: Path, tmp_path: Path) -> None:
    """One after the other, as they stand there."""
    for module in ("pandas", "matplotlib"):
        pytest.importorskip(module, reason=f"{module} is missing")
    text = (root / "docs/sim/PYTHON.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 4
    done = ran(sys.executable, "-P", "-c", "\n".join(blocks), cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "stream:deadline[wait_target=1s]" in done.stdout
    assert done.stdout.splitlines()[-1] == "['noop', 'stream:deadline']"
    assert (tmp_path / "readers.svg").read_text().startswith("<?xml")


@pytest.mark.e2e
def test_it_is_what_the_command_line_prints(tmp_path: Path) -> None:
    """The same tables and documents, and the same disk, depth and owners where none are given."""
    job = tmp_path / "two.fio"
    job.write_text(TWO)
    result = simulate(job, policies=POLICIES, seed=3)

    def printed(output: str) -> str:
        words = [COMMAND, "run", job, "--policy", ",".join(POLICIES), "--seed", "3"]
        return ran(*words, "--output", output, check=True).stdout

    assert result.to_json() == printed("json")
    assert result.to_json() == printed("json+")
    assert result.to_csv() == printed("csv")
    assert result.table() == printed("table")
    assert json.loads(result.to_json()) == result.to_dict()


def test_tables_tell_settings_of_one_policy_apart() -> None:
    """What is in brackets is no markup: each row has a name of its own."""
    job = Job("two", text=TWO.replace("reader", ":smile:"))
    result = simulate(job, policies=["stream:deadline", "stream:deadline[stream_threshold=1000]"])
    for table in (result.table(), result.table(processes=True)):
        heads = re.findall(r"^ (stream:\S+) ", table, re.MULTILINE)
        assert heads == result.policies * (len(heads) // 2) and len(heads) in (4, 6)
    assert result.table(processes=True).count(" :smile: ") == 4


def test_a_result_says_where_it_comes_from() -> None:
    one, same, other = (
        simulate(Job("two", text=text), policies="noop").to_dict() for text in (TWO, TWO, TWO + "#")
    )
    assert one == same and one["work_sha256"] != other["work_sha256"]
    assert one["program"] == f"streamsched {streamsched.__version__}" and one["seed"] == 0
    described = simulate(Job("two", text=TWO), Disk.load("st2000dm006"), policies="noop")
    assert described.to_dict()["disk_sha256"] != one["disk_sha256"]
    array = simulate(Job("two", text=TWO), "ssd,exos-x18", array="raid0:2:64k", policies="noop")
    assert len(array.to_dict()["disk_sha256"]) == 2


def test_settings_of_one_policy() -> None:
    """In its brackets; they go before those for all."""
    policies = ["stream:noop", "stream:noop[wait_target=1s]", "noop"]
    result = simulate(Job("x", text=TWO), policies=policies, settings={"wait_target": "200ms"})
    assert result.policies == policies
    targets = [run["tunables"].get("wait_target") for run in result.to_dict()["runs"]]
    assert targets == [200_000_000, 1_000_000_000, None]


def test_requests_are_those_that_were_counted() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is missing")
    result = simulate(Job("x", text=TWO), policies=POLICIES)
    rows = result.requests()
    assert isinstance(rows, pandas.DataFrame)
    counted = {run["policy"]: run["disk_requests"] for run in result.to_dict()["runs"]}
    assert rows["policy"].value_counts().to_dict() == counted
    each = result.to_pandas(processes=True)
    assert len(each) == 4 and each["bytes_read"].sum() == 2 * 2 * 4 << 20


def test_a_trace_is_replayed(root: Path) -> None:
    trace = Trace(str(root / "traces/pg-scan.blktrace.zst"))
    closed, opened = (simulate(trace, policies="noop", mode=mode) for mode in ("closed", "open"))
    assert "closed:" in closed.title and "open:" in opened.title
    assert closed.to_dict()["runs"][0]["bytes_read"] == opened.to_dict()["runs"][0]["bytes_read"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"policies": "x"}, "unknown policy 'x'"),
    ({"policies": []}, "policies is empty"),
    ({"policies": "noop,noop"}, "policies noop,noop: noop stands there twice"),
    ({"policies": "stream:noop[wait_target=1s"}, "policies stream:noop[wait_target=1s: write"),
    ({"policies": "noop[wait_target=1s]"}, "policies noop[wait_target=1s]: wait_target: "),
    ({"policies": "stream:noop[]"}, "policies stream:noop[]: write settings in one pair"),
    ({"settings": {"wait_taget": 1}}, "unknown tunable 'wait_taget'"),
    ({"disk": "wd5000aak"}, "no disk is called 'wd5000aak'"),
    ({"queue_depth": 0}, "queue_depth 0: exos-x18 takes 1 to 32 commands"),
    ({"owners": "all"}, "owners 'all': must be one of process, group, none"),
    ({"curve": "known"}, "curve 'known': must be one of measured, learned"),
    ({"seed": -1}, "seed -1: must be within 0 to 2^64-1"),
    ({"mode": "half"}, "mode 'half': must be one of closed, open"),
    ({"weights": {"reader": 2}, "policies": "noop"}, "weights: noop has no weights"),
    ({"array": "raid9:2"}, ""),
    ({"goal": "p99"}, "goal p99: only with policies auto"),
]


@pytest.mark.parametrize(("given", "why"), WRONG, ids=[str(given) for given, _ in WRONG])
def test_what_is_wrong_is_said_in_the_parameters_words(given: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError) as caught:
        simulate(Job("x", text=TWO), **given)
    assert str(caught.value).startswith(why) and "--" not in str(caught.value)


def test_names_that_are_not_there() -> None:
    with pytest.raises(UsageError, match="unknown workload or job file 'pra-read'; did you mean"):
        simulate("pra-read")
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = streamsched.simulat  # type: ignore[attr-defined]
    assert set(streamsched.__all__) <= set(dir(streamsched.api))


def test_a_workload_on_a_disk_that_is_named_has_all_commands_of_it() -> None:
    """On the disk that it brings along it has one, as on the machines of the papers."""
    assert Place().of("ffsb-web").queue_depth == 1
    assert Place("exos-x18").of("ffsb-web").queue_depth is None
    assert Place(queue_depth=4).of("ffsb-web").queue_depth == 4


def test_a_runtime_ends_each_process_that_would_last_longer() -> None:
    text = "[global]\nrw=read\nsize=1g\n[a]\n[b]\nruntime=5\n[c]\nruntime=1\n"
    job = Job("job", text, runtime_ns=2_000_000_000).load(1 << 40, 0, [])
    assert [one.runtime_ns / 1e9 for one in job.processes] == [2, 2, 1]
