# SPDX-License-Identifier: GPL-2.0-only
"""Profiles: what is measured, the file, and each way in which a file can be wrong."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from profile_data import GRID, POLICIES, small_profile
from rich.console import Console
from said import refusal

from streamsched.base.errors import UsageError
from streamsched.sim import auto
from streamsched.sim import profile as profiles
from streamsched.sim.choose import Selection, relative_merits
from streamsched.sim.diskfile import load_disk
from streamsched.sim.policies import USES_OWNER, check_spec
from streamsched.sim.profile_measure import (
    AGED_S,
    RUN_S,
    SIZES_KIB,
    Part,
    curve_cells,
    grid_cells,
    measure,
    name_of,
    processes_of,
    table,
)
from streamsched.sim.simulate import Setup, run_jobs

DISK = load_disk("wd5000aaks")
GIB = 1 << 30


# ---- what is measured ----


def test_the_papers_curve_is_a_plain_run() -> None:
    """f_s(r): random reads and writes of one size, on the whole disk."""
    profile = small_profile()
    (part,) = curve_cells()[0]
    assert (part.pattern, part.size_kib, part.reads_pct) == ("disk", 4, 50)
    for index, size in ((0, 4), (8, 1024)):
        cell = curve_cells()[index]
        assert cell[0].size_kib == size == SIZES_KIB[index]
        for spec in ("noop", "stream:deadline"):
            setup = Setup(DISK, spec, owners="none")
            run = run_jobs(setup, list(processes_of(cell, DISK)))
            assert profile.curves[spec][index] == run.mb_s
    for values in profile.curves.values():
        # Larger requests, more throughput.
        assert all(larger > 0.98 * small for small, larger in itertools.pairwise(values))


def test_a_cell_is_a_plain_run() -> None:
    profile = small_profile()
    cell = next(one for one in profile.cells if one.name == name_of(GRID[0]))
    processes = list(processes_of(GRID[0], DISK))
    setup = Setup(DISK, "stream:deadline", owners=cell.owners)
    run = run_jobs(setup, processes)
    one = cell.under["stream:deadline"]
    # What the disk moved; the last requests may be under way when time is over.
    assert one.mb_s == pytest.approx(run.mb_s, rel=0.001)
    assert (one.p99_ms, one.longest_wait_ms) == (run.response.p99, run.wait.max)
    assert one.looks.size_bytes == 65536 and one.looks.reads == 1.0
    assert one.looks.continuing is not None and one.looks.continuing > 0.99
    assert 3.9 < one.looks.outstanding <= 4.0


def test_where_pages_are_written_while_others_are_read() -> None:
    """From when the first were left 30 s ago; the merit is what the processes do."""
    cell = (Part("small", 4, 50, 4, buffered=True, think_us=200, aged=True),)
    assert cell in grid_cells()
    console = Console(quiet=True)
    specs = ("cscan", "stream:deadline")
    profile = measure(DISK, specs, ("none",), grid=[cell], jobs=1, console=console)
    processes = list(processes_of(cell, DISK))
    for spec, found in profile.cells[0].under.items():
        run = run_jobs(Setup(DISK, spec, owners="none"), processes)
        assert run.observed and run.observed[0].now_s == pytest.approx(AGED_S, abs=0.1)
        assert all(RUN_S <= job.duration_ns / 1e9 < RUN_S + 1 for job in run.jobs)
        assert found.mb_s == run.mb_s
        # Nobody waits for write-back, and stream:deadline leaves it for last.
        assert found.longest_wait_ms == max(job.longest_wait_ns for job in run.jobs) / 1e6
        assert found.looks.reads < 0.99
    reads = {spec: found.looks.reads for spec, found in profile.cells[0].under.items()}
    assert reads["stream:deadline"] > reads["cscan"]
    merits = {spec: found.mb_s for spec, found in profile.cells[0].under.items()}
    assert merits["stream:deadline"] > 1.5 * merits["cscan"]


def test_every_workload_is_there_for_both_kinds_of_owners() -> None:
    profile = small_profile()
    assert [(c.owners, c.name) for c in profile.cells] == [
        (owners, name_of(cell)) for owners in ("process", "none") for cell in GRID
    ]
    # Who does not look at owners is the same for both.
    half = len(GRID)
    blind = [s for s in POLICIES if not any(p.flags & USES_OWNER for p in check_spec(s))]
    assert blind == ["noop", "cscan", "deadline"]
    for known, unknown in zip(profile.cells[:half], profile.cells[half:], strict=True):
        for spec in blind:
            assert known.under[spec] == unknown.under[spec]


def test_stream_is_best_for_readers_in_sequence() -> None:
    merits = relative_merits(Selection(small_profile(), "none"))
    assert merits[0]["stream:deadline"] > 0.99 > 0.2 > merits[0]["noop"]


def test_the_table_lines_up_beside_its_marks() -> None:
    """The best of a size is marked; the figures of the others stand where its figures do."""
    profile = small_profile()
    console = Console(width=120, color_system=None)
    with console.capture() as captured:
        console.print(table(profile))
    lines = captured.get().splitlines()
    rows = [line for line in lines if any(line.split()[:1] == [spec] for spec in POLICIES)]
    points = [[at for at, char in enumerate(row) if char == "."] for row in rows]
    assert len(rows) == len(POLICIES) and len(points[0]) == len(SIZES_KIB)
    assert all(one == points[0] for one in points)
    assert "*" in captured.get()
    head = next(line for line in lines if line.split()[:1] == ["policy"])
    assert [end.end() for end in re.finditer(r"\b\d+[km]\b", head)] == [at + 3 for at in points[0]]


def test_measuring_again_gives_the_same() -> None:
    console = Console(quiet=True)
    again = [
        measure(DISK, POLICIES[:2], ("none",), grid=GRID[:1], jobs=jobs, console=console)
        for jobs in (1, 2)
    ]
    assert again[0] == again[1]
    assert again[0].cells[0].under["noop"] == small_profile().cells[0].under["noop"]


def test_the_grid_covers_what_it_says() -> None:
    cells = grid_cells()
    assert len(cells) == len(set(cells)) == len({name_of(cell) for cell in cells})
    parts = [part for cell in cells for part in cell]
    assert {part.pattern for part in parts} == {
        *("disk", "area", "region", "small", "stream", "files")
    }
    assert {0, 50, 100} <= {part.reads_pct for part in parts}
    assert {1, 2, 4, 8} <= {part.processes for part in parts}
    assert {True, False} == {part.buffered for part in parts}


@pytest.mark.parametrize("disk", ["wd5000aaks", "exos-x18", "ssd"])
def test_every_workload_fits_on_the_disk(disk: str) -> None:
    described = load_disk(disk)
    capacity = described.capacity_sectors * 512
    for cell in (*curve_cells(), *grid_cells()):
        processes = processes_of(cell, described)
        assert len(processes) == sum(part.processes for part in cell)
        for one in processes:
            assert one.offset + one.size <= capacity
            assert one.time_based and one.runtime_ns == RUN_S * 10**9
        apart = sorted((one.offset, one.size) for one in processes if one.size < capacity // 2)
        for (at, size), (then, _) in itertools.pairwise(apart):
            assert at + size <= then


def test_names_say_what_is_done() -> None:
    assert str(Part("stream", 64, processes=2)) == "2 stream read 64k"
    writer = Part("region", 4, 0, depth=8)
    assert name_of((writer, Part("disk", 8, 50, buffered=True, think_us=5))) == (
        "1 region write 4k x8 + 1 disk rw50 8k buffered think 5us"
    )


# ---- the file ----


def test_a_file_is_read_as_it_was_written() -> None:
    text = profiles.as_text(small_profile())
    read, made_by = profiles.parse(text, "x")
    assert made_by == profiles.made_by()
    assert profiles.as_text(read) == text
    assert (read.policies, read.disk, read.queue_depth) == (POLICIES, "wd5000aaks", 1)
    assert [cell.name for cell in read.cells] == [cell.name for cell in small_profile().cells]


def test_of_another_disk_it_is_refused() -> None:
    profile = small_profile()
    profile.check(DISK, 1, "p.json")
    assert (
        refusal(profile.check, load_disk("ssd"), 1, "p.json")
        == "p.json: is a profile of wd5000aaks, not of ssd"
    )
    assert refusal(
        profile.check, dataclasses.replace(DISK, rotation_ns=DISK.rotation_ns + 1), 1, "p.json"
    ) == (
        "p.json: is a profile of another description of wd5000aaks; "
        "measure it again with `streamsched profile`"
    )
    assert (
        refusal(profile.check, DISK, 32, "p.json")
        == "p.json: was measured with queue depth 1, not 32"
    )


def change(*path: str | int, to: Any) -> Callable[[Any], None]:
    def apply(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        if to is KeyError:
            del document[path[-1]]
        else:
            document[path[-1]] = to

    return apply


NOOP = ("cells", 0, "under", "noop")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (change("format", to="x"), 'is not a profile: it does not say "format"'),
        (change("version", to=1), "has version 1; this streamsched reads 2"),
        (change("version", to=KeyError), "has version None; this streamsched reads 2"),
        (change("policies", to=[]), "policies must be a list of policies"),
        (change("policies", to=[1]), "policies must be a list of policies"),
        (change("policies", 0, to="nop"), "policies: unknown policy 'nop'; did you mean 'noop'?"),
        (change("policies", to=["noop"]), "random_mb_s must be an object with every policy"),
        (change("policies", 0, to="auto"), "policies: auto chooses by a profile and cannot be in"),
        (change("policies", 1, to="noop"), "policies: noop stands there twice"),
        (change("request_bytes", 0, to=0), "request_bytes must be a list of whole numbers from 1"),
        (change("request_bytes", 0, to=True), "request_bytes must be a list of whole numbers"),
        (change("request_bytes", 0, to=1 << 30), "request_bytes must be ascending"),
        (change("random_mb_s", "noop", to=[1]), "random_mb_s['noop'] must be a list with a number"),
        (change("random_mb_s", "noop", 3, to=-1), "random_mb_s['noop'][3] must be a number of 0"),
        (change("queue_depth", to="1"), "queue_depth must be a whole number from 1 to 32"),
        (change("queue_depth", to=0), "queue_depth must be a whole number from 1 to 32"),
        (change("fingerprint", to=KeyError), "fingerprint must be text"),
        (change("disk", to=3), "disk must be a disk's name"),
        (change("cells", to={}), "cells must be a list"),
        (change("cells", to=[]), "cells must be a list that is not empty"),
        (change("cells", 2, to=1), "cells[2] must be an object"),
        (change("cells", 2, "owners", to="me"), "cells[2].owners must be process or none"),
        (change("cells", 2, "name", to=None), "cells[2].name must be text"),
        (change(*NOOP, to=KeyError), "cells[0].under must be an object with every policy"),
        (change(*NOOP, to=1), "cells[0].under['noop'] must be an object"),
        (change(*NOOP, "mb_s", to=KeyError), "cells[0].under['noop'].mb_s must be a number of 0"),
        (change(*NOOP, "mb_s", to=float("nan")), "cells[0].under['noop'].mb_s must be a number"),
        (change(*NOOP, "near", to=1.5), "cells[0].under['noop'].near must be a number from 0 to 1"),
        (change(*NOOP, "reads", to=False), "cells[0].under['noop'].reads must be a number from 0"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(damage: Callable[[Any], None], why: str) -> None:
    document = json.loads(profiles.as_text(small_profile()))
    damage(document)
    assert refusal(profiles.parse, json.dumps(document), "p.json").startswith(f"p.json: {why}")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '"x"', "{}"])
def test_what_is_no_profile_at_all(text: str) -> None:
    with pytest.raises(UsageError, match=r"^p\.json: is not a profile: it "):
        profiles.parse(text, "p.json")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read it: No such file"):
        profiles.read(tmp_path / "none.json")
    with pytest.raises(UsageError, match=r"cannot read it: Is a directory"):
        profiles.read(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"is not a profile: it is not text"):
        profiles.read(tmp_path / "binary")


# ---- where it is kept ----


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """How often a profile is measured; a small one is."""
    measured: list[str] = []

    def small(disk: Any, **_: Any) -> Any:
        measured.append(disk.name)
        return small_profile()

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("streamsched.sim.profile_measure.measure", small)
    return measured


def obtain() -> profiles.Profile:
    return auto.obtain(DISK, 1, None, 1, Console(quiet=True))


def test_it_is_measured_once_and_kept(counted: list[str], tmp_path: Path) -> None:
    first, second = obtain(), obtain()
    assert counted == ["wd5000aaks"] and first == second
    (kept,) = (tmp_path / "streamsched" / "profiles").iterdir()
    assert kept.name == f"wd5000aaks-{profiles.fingerprint(DISK)}-q1.json"


def test_one_by_other_code_or_damaged_is_measured_again(
    counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    obtain()
    with monkeypatch.context() as other:
        other.setattr(profiles, "made_by", lambda: "other code")
        obtain()
    assert len(counted) == 2
    kept = auto.default_path(DISK, 1)
    kept.write_text(kept.read_text()[:100])
    obtain()
    obtain()
    assert len(counted) == 3


def test_where_it_cannot_be_kept_it_is_used_all_the_same(
    counted: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert obtain() == obtain() and len(counted) == 2
