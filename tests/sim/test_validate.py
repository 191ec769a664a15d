# SPDX-License-Identifier: GPL-2.0-only
"""The disk model beside recorded drives: reading their times, comparing, what is refused."""

from __future__ import annotations

import dataclasses
import os
import random
import statistics
import subprocess
from pathlib import Path

import pytest
from said import COMMAND, ROOT, ran, refusal

from streamsched.base.errors import UsageError
from streamsched.base.files import MOST_BYTES
from streamsched.calibrate import validate
from streamsched.calibrate.recorded import Recorded, agreements, demerit, play, read_recorded
from streamsched.sim.diskfile import load_disk, parse_disk

RECORDED = ROOT.parent / "shared" / "validation"
DISK = (ROOT / "disks" / "exos-x18.toml").read_text()


def test_a_distribution_is_its_own_and_half_as_long_is_half_off() -> None:
    times = [1.0, 2.0, 3.0, 4.0]
    assert demerit(times, list(reversed(times))) == 0
    assert demerit([2.0] * 4, [1.0] * 4) == pytest.approx(50)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no request"),
        ("R Hit 1 2 3", ":1: must be R or W"),
        ("R Hit 1 2 3 4\nX Hit 1 2 3 4", ":2: must be"),
        ("R Hit -1 2 3 4", ":1: must be"),
        ("R Hit 1 0 3 4", ":1: must be"),
        ("R Hit 1 2 0 4", ":1: must be"),
        ("R Hit 1 2 nan 4", ":1: must be"),
        ("R Hit 1 2 inf 4", ":1: must be"),
        ("R Hit 1 2 3 -4", ":1: must be"),
        ("R Hit 1 2 3 1000000001", ":1: must be"),
        ("R Hit 1 2 99999999999999999999 4", ":1: must be"),
        ("RW Hit 1 2 3 4", ":1: must be"),
        ("R Hit x 2 3 4", ":1: must be"),
        ("R Hit 1_0 2 3 4", ":1: must be"),
        ("R Hit 1 2 3_0 4", ":1: must be"),
        ("\xff\xfe", "neither text nor"),
    ],
)
def test_a_recorded_trace_that_is_none(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "trace"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match=said):
        read_recorded(path)


def test_a_trace_that_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.touch()
    os.truncate(path, MOST_BYTES + 1)
    with pytest.raises(UsageError, match=f"{path}: has more than"):
        read_recorded(path)


def test_a_recorded_request_beyond_the_disk(tmp_path: Path) -> None:
    disk = load_disk("wd5000aaks")
    with pytest.raises(UsageError, match=r"request 1: ends at sector"):
        play(disk, [Recorded(False, disk.capacity_sectors, 8, 1000, 0)])


def test_what_the_model_answers_itself_agrees() -> None:
    """Requests with the model's own times have no demerit in any class."""
    disk = load_disk("st2000dm006")
    draw = random.Random(9)
    asked = [
        Recorded(
            draw.random() < 0.3, draw.randrange(10**6) * 8, 8, 1000, draw.randrange(20_000_000)
        )
        for _ in range(300)
    ]
    times = play(disk, asked)
    same = [
        Recorded(one.write, one.sector, one.nr_sectors, time, one.think_ns)
        for one, time in zip(asked, times, strict=True)
    ]
    assert all(row.demerit == 0 for row in agreements(same, play(disk, same)))


def demerits(folder: Path) -> dict[str, list[float]]:
    """By class, one for each recorded drive as the files in @folder describe it."""
    found: dict[str, list[float]] = {}
    for trace in sorted(RECORDED.glob("*.trace.zst")):
        disk = load_disk(str(folder / trace.name.replace(".trace.zst", ".toml")))
        requests = read_recorded(trace)
        for row in agreements(requests, play(disk, requests)):
            found.setdefault(row.what, []).append(row.demerit)
    return found


recorded = pytest.mark.skipif(
    not RECORDED.is_dir(), reason="there are no recorded drives beside the project"
)


@recorded
def test_recorded_drives_with_what_an_old_description_could_say() -> None:
    """Without the overheads by class that the drives have: 6 % at most."""
    found = demerits(RECORDED)["all"]
    assert len(found) == 5
    assert max(found) <= 6


@recorded
def test_recorded_drives_agree() -> None:
    """By a rule of which these traces have chosen a part (docs/results/recorded-drives.md)."""
    found = demerits(ROOT / "disks" / "recorded")
    assert statistics.median(found["all"]) <= 4 and max(found["all"]) <= 6
    assert statistics.median(found["random reads"]) <= 3


def test_descriptions_of_recorded_drives_are_whole() -> None:
    files = sorted((ROOT / "disks" / "recorded").glob("*.toml"))
    assert len(files) == 5
    for file in files:
        assert load_disk(str(file)).name == file.stem
        validate.new_disk(load_disk(str(file)))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("fitted = true", 'fitted = "yes"', "].fitted: must be true or false"),
        ("fitted = true\n", "", "must have the keys figure, value, source and fitted"),
        ('figure = "read_iops_16"', 'figure = "read_iops_at"', 'is "read_iops_at" but must be one'),
    ],
)
def test_a_published_figure_says_whether_it_was_fitted(old: str, new: str, said: str) -> None:
    assert old in DISK
    assert said in refusal(parse_disk, DISK.replace(old, new, 1), "x.toml")


def test_a_depth_is_the_one_that_was_measured() -> None:
    """And is said once: a drive that takes one command has no other depth."""
    disk = load_disk("exos-x18")

    def depths(queue_depth: int) -> list[str]:
        rows = validate.table(dataclasses.replace(disk, published=(), queue_depth=queue_depth))
        return [row.split(", ")[1].split(" |")[0] for row in rows if " per second, depth" in row]

    assert depths(1) == ["depth 1", "depth 1"]  # reads and writes
    assert depths(4) == ["depth 1", "depth 4", "depth 4"]
    assert depths(32) == ["depth 1", "depth 16", "depth 32", "depth 16"]


# ---- the command ----


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return ran(COMMAND, "validate", "disk", *map(str, arguments), timeout=60)


def test_the_document_is_what_the_command_prints() -> None:
    text = (ROOT / "docs" / "results" / "validation.md").read_text()
    # After it may come the line of tools/results.py.
    assert text.startswith(run().stdout) and text.removeprefix(run().stdout).count("\n") <= 2


def test_a_drive_by_the_command(tmp_path: Path) -> None:
    trace, disk = tmp_path / "a.trace", ROOT / "disks" / "wd5000aaks.toml"
    trace.write_text("R Miss 0 8 9000 20000\nR Hit 8 8 200 20000\nW Miss 70000 8 300 20000\n")
    done = run(trace, disk)
    assert done.returncode == 0, done.stderr
    classes = ["all", "random reads", "sequential reads", "random writes"]
    rows = [line for line in done.stdout.splitlines() if "wd5000aaks" in line]
    assert len(rows) == len(classes)
    assert all(what in row for what, row in zip(classes, rows, strict=True))
    to = tmp_path / "drives.md"
    assert run(trace, disk, "--to", to).returncode == 0
    assert to.read_text().count("| wd5000aaks |") == len(classes)


def test_what_the_command_refuses(tmp_path: Path) -> None:
    trace, disk = tmp_path / "a.trace", ROOT / "disks" / "wd5000aaks.toml"
    trace.write_text("R Miss 0 8 9000 20000\nR Miss 99999999999 8 9000 20000\n")
    for arguments, said in (
        ([trace], f"{trace}: each trace needs a description: TRACE DISK.toml ..."),
        ([trace, disk], f"{trace}: request 2: ends at sector 100000000007, but wd5000aaks has "),
        ([tmp_path / "none", disk], f"{tmp_path}/none: cannot read it: No such file or directory"),
        ([trace, disk, "--to", trace], f"--to {trace}: is read, and would be lost"),
    ):
        done = run(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith(f"streamsched: {said}"), done.stderr
        assert trace.read_text().startswith("R Miss 0 8")


def test_the_first_request_of_a_recorded_drive_goes_on_from_none() -> None:
    """Even where it begins at the end of the last one."""
    asked = [Recorded(False, 8, 8, 1000, 0), Recorded(False, 0, 8, 1000, 0)]
    rows = [(row.what, row.nr) for row in agreements(asked, [1000, 1000])]
    assert rows == [("all", 2), ("random reads", 2)]


def test_what_a_recorded_drive_rested_the_model_rests() -> None:
    """Meanwhile the disk turns: after a whole revolution all is as without the rest."""
    disk = load_disk("st2000dm006")

    def second_ns(rest_ns: int) -> int:
        asked = [Recorded(False, at, 8, 1000, rest_ns) for at in (0, 10**9)]
        return play(disk, asked)[1]

    assert second_ns(disk.rotation_ns) == second_ns(0)
    half = disk.rotation_ns // 2
    assert second_ns(half) - second_ns(0) == disk.rotation_ns - half
