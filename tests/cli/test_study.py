# SPDX-License-Identifier: GPL-2.0-only
"""Studies without workers: what is refused, what a cell depends on, what a summary says."""

from __future__ import annotations

import math
import random
import re
import shutil
import statistics
import sys
from pathlib import Path

import pytest
from said import ROOT, ran

from streamsched import _build_core
from streamsched._core import ffi, lib
from streamsched.base.errors import StreamschedError, UsageError
from streamsched.cli.main import app
from streamsched.study import cost
from streamsched.study.plan import Plan, read_plan
from streamsched.study.summary import mean, student, summarise
from streamsched.study.toml import KEYS

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
from pyarrow import parquet as pq

from streamsched.study.store import opened, parts, read_results

TRACE = ROOT / "tests/data/traces/loop.blktrace"
GOOD = """\
policies = ["noop", "stream:deadline"]
jobs = ["par-read", "pvfs"]
disks = ["wd5000aaks", "st2000dm006"]
queue_depths = [1, 4]
seeds = 3
settings = ["", "wait_target=200ms"]
"""


def plan_of(folder: Path, text: str) -> Plan:
    path = folder / "study.toml"
    path.write_text(text)
    return read_plan(path)


def refused(folder: Path, text: str) -> list[str]:
    with pytest.raises(StreamschedError) as caught:
        plan_of(folder, text)
    assert caught.value.exit_code == 2
    return [line.removeprefix(f"{folder}/study.toml:") for line in str(caught.value).splitlines()]


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.fio").write_text("[a]\nrw=raed\nsize=1m\n")
    text = """\
# "stream:deadlin" is not here
policies = [
    "noop",
    "stream:deadlin", "auto", "stream:noop",
]
jobs = ["par-raed", "bad.fio", "par-read", 'par-read', 7]
traces = ["none.blktrace"]
disks = ["wd5000aaks", "wd5000"]
queue_depths = [1, 33]
seeds = [1, -2]
owners = ["proces"]
settings = ["wait_target=900s"]
curve = "guessed"
wrap = 1
polices = ["noop"]

[more]
a = 1
"""
    lines = refused(tmp_path, text)
    assert [int(line.partition(":")[0]) for line in lines] == [
        4, 4, 6, 6, 6, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17,
    ]  # fmt: skip
    for words in (
        "4: unknown policy 'deadlin'; did you mean 'deadline'?",
        "4: policy auto: not in a study",
        "unknown workload or job file 'par-raed'; did you mean 'par-read'?",
        "bad.fio, line 2: ",
        "'par-read' is there twice",
        "7 is not text",
        "none.blktrace: ",
        "no disk is called 'wd5000'",
        "9: queue depth 33: ",
        "seed -2: must be within 0 to 2^64-1",
        "did you mean 'process'?",
        "12: wait_target=900s: must be within",
        "curve: 'guessed' is not one of measured, learned",
        "wrap: 1 is neither true nor false",
        "unknown key 'polices'; did you mean 'policies'?",
        "unknown key 'more'",
    ):
        assert sum(words in line for line in lines) == 1, (words, lines)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("policies = [", "1: not TOML: "),
        ("\nseeds =", "2: not TOML: "),
        ("", "1: policies is missing; write policies = [...]"),
        ('disks = "ssd"', "1: disks: write a list"),
        ("disks = []", "1: disks: write a list"),
        (
            "policies = ['stream:noop']\nsettings = ['wait_target=900s']",
            "2: wait_target=900s: must be",
        ),
        ("seeds = 0", "1: seeds 0: must be within 1 to 1000000"),
    ],
)
def test_refused(tmp_path: Path, text: str, line: str) -> None:
    assert any(one.startswith(line) for one in refused(tmp_path, text)), refused(tmp_path, text)


@pytest.mark.parametrize(
    "work", [r'jobs = ["a\u0000b.fio"]', r'traces = ["a\u0000/x"]', r'traces = ["a/\u0000"]']
)
def test_a_name_that_no_file_has(tmp_path: Path, work: str) -> None:
    (line,) = refused(tmp_path, f'policies = ["noop"]\ndisks = ["ssd"]\n{work}\n')
    assert line.startswith("3: ") and line.endswith(": no file has such a name")


def test_no_work_is_refused(tmp_path: Path) -> None:
    lines = refused(tmp_path, 'policies = ["noop"]\ndisks = ["ssd"]\n')
    assert lines == ["1: has no work; write jobs or traces"]


def test_cells(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, GOOD + f'traces = ["{TRACE}"]\n')
    cells = list(plan.cells())
    # A trace has no seeds.
    assert len(cells) == len(plan) == 2 * 2 * 2 * 2 * (3 + 3 + 1)
    assert len({plan.id(cell) for cell in cells}) == len(cells)
    groups = {plan.group(cell) for cell in cells}
    assert len(groups - {None}) == 2 * 2 * 2 * 3
    pvfs = next(cell for cell in cells if cell.work.name == "pvfs")
    assert pvfs.owners == "process" and plan.task(pvfs).setup.array is not None


def test_a_cell_is_known_by_all_that_it_depends_on(tmp_path: Path) -> None:
    (tmp_path / "a.fio").write_text("[a]\nrw=read\nsize=1m\n")
    text = GOOD.replace('"pvfs"', '"a.fio"')

    def ids(text: str) -> list[str]:
        plan = plan_of(tmp_path, text)
        return [plan.id(cell) for cell in plan.cells() if cell.work.name == "a.fio"]

    before = ids(text)
    assert ids("# a comment\n" + text) == before
    assert set(ids(text.replace("seeds = 3", "seeds = 4"))) > set(before)
    assert not set(ids(text + 'curve = "learned"\n')) & set(before)
    assert not set(ids(text + "alone = false\n")) & set(before)
    (tmp_path / "a.fio").write_text("[a]\nrw=read\nsize=2m\n")
    assert not set(ids(text)) & set(before)


def test_the_document_has_a_study_and_every_key() -> None:
    text = (ROOT / "docs/sim/STUDY.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    keys = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert keys == list(KEYS)
    path = ROOT / "build/study.toml"  # its names are relative to it
    path.parent.mkdir(exist_ok=True)
    path.write_text(re.sub(r'"((jobs|traces)/)', r'"../\1', example))
    try:
        assert len(read_plan(path)) == 3 * 2 * 2 * (3 * 10 + 1)
    finally:
        path.unlink()


def test_students_distribution() -> None:
    # Of the tables in any book, 97.5 %.
    known = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 10: 2.228, 30: 2.042, 120: 1.980}
    for freedom, value in known.items():
        assert student(freedom) == pytest.approx(value, abs=5e-4)


def test_an_interval_covers_the_mean_as_often_as_it_says() -> None:
    chance = random.Random(5)
    hits = 0
    for _ in range(4000):
        found = mean([chance.gauss(10, 3) for _ in range(5)])
        assert found.half is not None
        hits += abs(found.value - 10) < found.half
    assert hits / 4000 == pytest.approx(0.95, abs=0.015)


def test_pairs_take_out_what_a_seed_does_to_both() -> None:
    chance = random.Random(6)
    where = {"work": "w", "disk": "d", "queue_depth": 1, "owners": "process", "settings": ""}
    rows = []
    for seed in range(10):
        luck = chance.gauss(0, 20)
        for policy, more in (("b", 3.0), ("a", 0.0)):
            rate = 100 + luck + more + chance.gauss(0, 0.5)
            figures = {"throughput_mb_s": rate, "response_p99_ms": 7.0, "least_share": None}
            rows.append({**where, **figures, "policy": policy, "seed": seed})
    chance.shuffle(rows)
    ((place, (first, second)),) = summarise(rows, ["a", "b"]).items()
    assert place == tuple(where.values())
    assert (first.policy, second.policy, first.nr) == ("a", "b", 10)
    assert first.differences["throughput_mb_s"] is None
    own, less = second.means["throughput_mb_s"], second.differences["throughput_mb_s"]
    assert own and own.half and less and less.half
    assert less.value == pytest.approx(3, abs=0.6) and less.found
    assert less.half < own.half / 10
    rates = {r["seed"]: r["throughput_mb_s"] for r in rows if r["policy"] == "b"}
    error = statistics.stdev(rates.values()) / math.sqrt(10)
    assert own.half == pytest.approx(2.262157 * error, rel=1e-6)
    assert second.means["least_share"] is None


# ---- the folder of results ----


def row(plan: Plan, number: int) -> dict[str, object]:
    cell = list(plan.cells())[number]
    return {**cell.labels(), "cell": plan.id(cell), "throughput_mb_s": 0.1 + number}


def stored(folder: Path) -> list[float]:
    columns = ("throughput_mb_s",)
    return sorted(round(one[columns[0]] - 0.1) for one in read_results(folder))


def test_what_was_added_is_there_after_any_end(tmp_path: Path) -> None:
    plan, folder = plan_of(tmp_path, GOOD), tmp_path / "r.parquet"
    with opened(folder, plan) as store:
        store.add([row(plan, 0), row(plan, 1)])
        store.write_part()
        store.add([row(plan, 1), row(plan, 2)])
        assert (folder / "_journal.jsonl").read_bytes().count(b"\n") == 1
    # As a command leaves it that is killed in the middle of a line ...
    journal = folder / "_journal.jsonl"
    with journal.open("a") as file:
        file.write('{"cell": "half of')
    with opened(folder, plan) as store:
        assert len(store.done) == 3
        store.add([row(plan, 3)])
        assert stored(folder) == [0, 1, 2, 3]
        kept = journal.read_bytes()
        store.write_part()
    # ... and when a part is there, and the journal has its lines still.
    journal.write_bytes(kept)
    half = folder / ".part-000001.parquet.0123456789abcdef"
    half.write_bytes(b"half")
    theirs = [folder / name for name in (".part-mine", f"{half.name}.txt", "part-0 (1).parquet")]
    for one in theirs:
        one.write_text("mine")
    assert stored(folder) == [0, 1, 2, 3]
    with opened(folder, plan) as store:
        assert len(store.done) == 4
        store.write_part()
    assert len(parts(folder)) == 2 and stored(folder) == [0, 1, 2, 3]
    assert sum(pq.read_metadata(part).num_rows for part in parts(folder)) == 4
    assert not half.exists() and [one.read_text() for one in theirs] == ["mine"] * 3


def test_two_at_once_and_a_changed_study_are_refused(tmp_path: Path) -> None:
    plan, folder = plan_of(tmp_path, GOOD), tmp_path / "r.parquet"
    with opened(folder, plan) as store:
        store.add([row(plan, 0)])
        with (
            pytest.raises(StreamschedError, match="another study is at work there"),
            opened(folder, plan),
        ):
            pass
    more = plan_of(tmp_path, GOOD.replace('"noop", ', '"noop", "cfq", '))
    with opened(folder, more) as store:
        assert len(store.done) == 1
    other = plan_of(tmp_path, GOOD.replace('"noop", ', ""))
    with (
        pytest.raises(UsageError, match="1 of its 1 results are not of this study"),
        opened(folder, other),
    ):
        pass


@pytest.mark.parametrize("there", ["file", "folder"])
def test_what_is_not_ours_is_left(tmp_path: Path, there: str) -> None:
    plan, place = plan_of(tmp_path, GOOD), tmp_path / "mine"
    if there == "folder":
        place.mkdir()
        (place / "part-000000.parquet").write_text("mine")
    else:
        place.write_text("mine")
    with pytest.raises(UsageError, match="is there, and is no"), opened(place, plan):
        pass
    assert [p.name for p in tmp_path.rglob("*") if p.name.startswith("_")] == []


def test_a_beginning_that_came_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a disk that was full, or as a command left it that was killed, now or in an older one."""
    plan, folder = plan_of(tmp_path, GOOD), tmp_path / "r.parquet"

    def full(path: Path, *_: object) -> None:
        raise UsageError(f"{path}: cannot write it: No space left on device")

    with (
        monkeypatch.context() as patched,
        pytest.raises(StreamschedError, match=r"No space left on device; .*make room") as caught,
    ):
        patched.setattr("streamsched.study.store.write_whole", full)
        with opened(folder, plan):
            pass
    assert caught.value.exit_code == 1
    for name in ("_journal.jsonl", "_alone.jsonl", "._study.json.0123456789abcdef"):
        (folder / name).touch()
    with opened(folder, plan) as store:
        store.add([row(plan, 0)])
    assert stored(folder) == [0] and not list(folder.glob(".*"))
    (folder / "_study.json").unlink()  # then nothing says whose the journal is
    with pytest.raises(UsageError, match="is not results of a study"), opened(folder, plan):
        pass


def test_a_folder_is_called_what_it_is(tmp_path: Path) -> None:
    results = tmp_path / "r.parquet"
    with opened(results, plan_of(tmp_path, GOOD)):
        pass
    for name, why in (
        (str(results), "is results; add --table, or name a study"),
        (str(tmp_path), "is a folder; name a study, which is a file"),
        ("", "STUDY.toml is empty; name a study"),
    ):
        with pytest.raises(UsageError) as caught:
            app(["study", name], standalone_mode=False)
        assert str(caught.value) == f"{name}: {why}".removeprefix(": ")


@pytest.mark.parametrize("leads_to", ["nowhere", "link"])
def test_a_link_to_nothing_is_called_so(leads_to: str, tmp_path: Path) -> None:
    plan, link = plan_of(tmp_path, GOOD), tmp_path / "link"
    link.symlink_to(leads_to)
    with pytest.raises(UsageError, match="is a link that leads nowhere"), opened(link, plan):
        pass
    assert link.is_symlink()


def test_a_changed_core_is_another_program(tmp_path: Path) -> None:
    """The module has a digest of the C that it was compiled of; a byte of it changes the digest."""
    assert ffi.string(lib.sources_sha256).decode() == _build_core.sources_sha256(ROOT)
    for folder in ("compat", "core", "disk", "sim"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    assert _build_core.sources_sha256(tmp_path) == _build_core.sources_sha256(ROOT)
    changed = tmp_path / "core/stream/wait.c"
    changed.write_bytes(changed.read_bytes() + b"\n")
    assert _build_core.sources_sha256(tmp_path) != _build_core.sources_sha256(ROOT)


OTHER = """
import sys
from pathlib import Path
import streamsched.study.program as module
from streamsched.base.errors import UsageError
if sys.argv[1] == "changed":
    module.lib = type("lib", (), {"sources_sha256": module.ffi.new("char[]", b"another")})
from streamsched.study.plan import read_plan
from streamsched.study.store import opened
plan = read_plan(Path("study.toml"))
print(module.program(), plan.group(next(plan.cells())), end=" ")
try:
    with opened(Path("results"), plan) as store:
        row = dict(policy="noop", cell=plan.id(next(plan.cells())))
        store.add([row])
        print(len(store.done))
except UsageError as error:
    print(error)
"""


def test_results_of_another_core_are_not_taken_for_this_ones(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(GOOD)

    def resume(core: str) -> list[str]:
        words = [sys.executable, "-P", "-c", OTHER, core]
        done = ran(*words, cwd=tmp_path, check=True)
        return done.stdout.strip().split(maxsplit=2)

    ours, alone, done = resume("same")
    assert resume("same") == [ours, alone, done] and done == "1"
    other, others_alone, said = resume("changed")
    assert other != ours and others_alone != alone
    assert said.startswith("--to results: 1 of its 1 results are not of this study: they are of")
    assert f"streamsched {ours}, and this is {other};" in said


def test_rates_alone_cost_one_simulation_of_each_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where each simulation takes a second."""
    monkeypatch.setattr(cost, "_pilot_s", lambda *_: 1.0)
    plan = plan_of(tmp_path, GOOD)
    groups = {plan.group(cell) for cell in plan.cells()} - {None}
    found = cost.estimate(plan, set())
    assert 1 < len(groups) < len(plan)
    assert found == cost.Cost(len(plan), len(plan), len(plan) + len(groups))
