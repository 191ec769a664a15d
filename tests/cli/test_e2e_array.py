# SPDX-License-Identifier: GPL-2.0-only
"""Arrays on the command line: what is refused, and what a run on one does to its disks."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from said import ran

STREAMSCHED = str(Path(sys.executable).with_name("streamsched"))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return ran(STREAMSCHED, *arguments)


NINES = "9" * 5000  # int() refuses more than 4300 digits


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "job.fio"
    path.write_text("[reader]\nrw=read\nbs=64k\nsize=8m\ndirect=1\nnumjobs=2\n")
    return str(path)


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        ("raid01:4", "unknown array level 'raid01'; did you mean 'raid1'?"),
        ("raid6:3", "--array raid6:3: raid6 has at least 4 disks, not 3"),
        ("raid1", "--array raid1: say of how many disks, as in raid1:2"),
        ("raid1:1", "--array raid1:1: an array has 2 to 32 disks, not 1"),
        ("raid1:2:64k", "--array raid1:2:64k: raid1 has no chunks; leave out 64k"),
        (
            "raid1:2:near",
            "--array raid1:2:near: raid1 has only one layout; leave out near",
        ),
        (
            "raid10:4:left-symmetric",
            "--array raid10:4:left-symmetric: left-symmetric is no layout of raid10; "
            "it has near, far, offset",
        ),
        (
            "raid5:4:far",
            "--array raid5:4:far: far is no layout of raid5; it has left-asymmetric, "
            "right-asymmetric, left-symmetric, right-symmetric",
        ),
        ("raid10:4:farr", "unknown word of --array 'farr'; did you mean 'far'?"),
        ("raid10:4:far:near", "--array raid10:4:far:near: has far and near; leave one of them out"),
        ("raid0", "--array raid0: say of how many disks, as in raid0:5:64k"),
        ("raid0:x", "--array raid0:x: say of how many disks, as in raid0:5:64k"),
        ("raid0:1", "--array raid0:1: an array has 2 to 32 disks, not 1"),
        ("raid0:33", "--array raid0:33: an array has 2 to 32 disks, not 33"),
        (f"raid0:{NINES}", f"--array raid0:{NINES}: an array has 2 to 32 disks, not {NINES}"),
        (
            "raid0:5:3k",
            "--array raid0:5:3k: 3k is no chunk; it is a multiple of 4k from 4k to 1m, as in 64k",
        ),
        (
            "raid0:5:2m",
            "--array raid0:5:2m: 2m is no chunk; it is a multiple of 4k from 4k to 1m, as in 64k",
        ),
        (
            f"raid0:5:{NINES}k",
            f"--array raid0:5:{NINES}k: {NINES}k is no chunk; it is a multiple of 4k from 4k to "
            "1m, as in 64k",
        ),
        ("linear:2:64k", "--array linear:2:64k: linear has no chunks; leave out 64k"),
        (
            "raid0:5:stripes=64",
            "--array raid0:5:stripes=64: raid0 has no stripe cache; raid5 and raid6 have one",
        ),
        (
            "raid5:5:stripes=16",
            "--array raid5:5:stripes=16: stripes=16: md keeps 17 to 32768 stripes, "
            "as in stripes=256",
        ),
        (
            f"raid5:5:stripes={NINES}",
            f"--array raid5:5:stripes={NINES}: stripes={NINES}: md keeps 17 to 32768 stripes, "
            "as in stripes=256",
        ),
        (
            "raid6:5:stripes=17:stripes=18",
            "--array raid6:5:stripes=17:stripes=18: has stripes=17 and stripes=18; "
            "leave one of them out",
        ),
        ("raid6:5:stripes", "unknown word of --array 'stripes'; did you mean 'stripes=N'?"),
        (
            "raid0:5:64k:left-symmetric",
            "--array raid0:5:64k:left-symmetric: raid0 has only one layout; "
            "leave out left-symmetric",
        ),
        (
            "raid5:5:64k:left-symetric",
            "unknown word of --array 'left-symetric'; did you mean 'left-symmetric'?",
        ),
        (
            "raid5:5:failed=1:failed=2",
            "--array raid5:5:failed=1:failed=2: has failed=1 and failed=2; leave one of them out",
        ),
        (
            "raid0:5:64k:128k",
            "--array raid0:5:64k:128k: has 64k and 128k; leave one of them out",
        ),
        ("raid0:5:failed=1", "--array raid0:5:failed=1: raid0 cannot do without a member"),
        (
            "raid5:5:failed=5",
            "--array raid5:5:failed=5: failed=5: name one of the members 0 to 4, "
            "as in failed=0 or failed=0@5s",
        ),
        (
            f"raid5:5:failed={NINES}",
            f"--array raid5:5:failed={NINES}: failed={NINES}: name one of the members 0 to 4, "
            "as in failed=0 or failed=0@5s",
        ),
        (
            "raid5:5:failed=1@5x",
            "--array raid5:5:failed=1@5x: failed=1@5x: the time is not in a unit of a time; "
            "write ns, us, ms or s",
        ),
        (
            "raid5:5:failed=1@",
            "--array raid5:5:failed=1@: failed=1@: the time is no value; write a time such as 5s",
        ),
    ],
)
def test_what_is_no_array_is_one_sentence(job: str, array: str, sentence: str) -> None:
    done = run("run", job, "--array", array)
    assert (done.returncode, done.stderr, done.stdout) == (2, f"streamsched: {sentence}\n", "")


def test_disks_that_do_not_fit_are_one_sentence(job: str) -> None:
    done = run("run", job, "--disk", "ssd,ssd")
    assert done.stderr == (
        "streamsched: --disk ssd,ssd: several disks need --array, as in raid0:5:64k\n"
    )
    done = run("run", job, "--disk", "ssd,ssd", "--array", "raid0:3")
    assert done.stderr == (
        "streamsched: --disk ssd,ssd: name one disk, or each of the 3 of --array raid0:3; "
        "these are 2\n"
    )
    done = run("run", job, "--array", "raid0:3", "--on", "kernel")
    assert done.stderr == "streamsched: --array raid0:3: only with --on sim\n"


def requests(array: str, text: str, tmp_path: Path, *more: str) -> tuple[int, int]:
    """What the disks of an array were asked for, and what the processes moved."""
    path = tmp_path / "job.fio"
    path.write_text(text)
    done = run("run", str(path), "--array", array, "--policy", "noop", "--output", "json", *more)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["setup"]["array"] == array
    result = document["runs"][0]
    return result["disk_requests"], result["bytes_read"] + result["bytes_written"]


READ = "[r]\nrw=read\nbs={bs}\nsize=1m\ndirect=1\n"
WRITE = "[w]\nrw=write\nbs={bs}\nsize=1m\ndirect=1\n"


@pytest.mark.parametrize(
    ("array", "text", "expected"),
    [
        # Cut at chunks; consecutive rows of one request touch on each member and merge.
        ("raid0:4:64k", READ.format(bs="64k"), 16),
        ("raid0:4:64k", READ.format(bs="256k"), 16),
        ("raid0:4:64k", READ.format(bs="512k"), 8),
        ("raid0:4:64k", READ.format(bs="4k"), 256),
        ("linear:4", READ.format(bs="64k"), 16),
        ("raid10:4:64k", READ.format(bs="64k"), 16),
        ("raid10:4:64k:far", READ.format(bs="256k"), 16),
        ("raid1:3", READ.format(bs="64k"), 16),
        # All copies.
        ("raid10:4:64k", WRITE.format(bs="64k"), 32),
        ("raid10:4:64k:far", WRITE.format(bs="64k"), 32),
        ("raid10:4:64k:offset", WRITE.format(bs="64k"), 32),
        ("raid1:3", WRITE.format(bs="64k"), 3 * 16),
        # Each write is one of data and one of parity. A page reads of its stripe, the first one old
        # data and old parity, the second old data, the third what is left, and then all is known.
        # A whole row reads nothing, half a row the other half.
        ("raid5:5:64k", WRITE.format(bs="4k"), 2 * 256 + 4 * 64),
        ("raid5:5:64k", WRITE.format(bs="256k"), 5 * 4),
        ("raid5:5:64k", WRITE.format(bs="128k"), 3 * 8 + 2 * 4),
        # With two parities. Of four and of three chunks the first page reads the others; of six it
        # reads three, the next three one each, and the fifth the last.
        ("raid6:6:64k", WRITE.format(bs="4k"), 3 * 256 + 3 * 64),
        ("raid6:8:64k", WRITE.format(bs="4k"), 3 * 256 + 7 * 32 + 6 * 16),
        ("raid6:5:64k", WRITE.format(bs="4k"), 3 * 256 + 2 * 96),
        ("raid6:6:64k", WRITE.format(bs="256k"), 6 * 4),
        ("raid6:6:64k", WRITE.format(bs="128k"), 4 * 8 + 2 * 4),
        # Without a member: a chunk that is there takes one read, one that is not four.
        ("raid5:5:64k:failed=0", READ.format(bs="64k"), 16 + 4 * 3),
        ("raid10:4:64k:failed=0", READ.format(bs="64k"), 16),
        ("raid10:4:64k:far:failed=0", READ.format(bs="64k"), 16),
        ("raid1:2:failed=0", READ.format(bs="64k"), 16),
        ("raid1:3:failed=0", WRITE.format(bs="64k"), 2 * 16),
        ("raid6:6:64k:failed=0", READ.format(bs="64k"), 16 + 4 * 3),
    ],
)
def test_what_the_disks_are_asked_for(array: str, text: str, expected: int, tmp_path: Path) -> None:
    assert requests(array, text, tmp_path) == (expected, 1 << 20)


@pytest.mark.parametrize(
    ("array", "reads", "writes"),
    [
        # Both ways take as many reads: those of what is not written.
        ("raid5:4:64k", [1, 2], [0, 3]),
        ("raid6:6:64k", [2, 3, 4], [0, 1, 5]),
        # Fewer are those of the old data and the old parity.
        ("raid5:5:64k", [0, 4], [0, 4]),
        ("raid6:8:64k", [0, 1, 7], [0, 1, 7]),
        # Without the chunk that is written, another chunk, or a parity.
        ("raid6:6:64k:failed=1", [2, 3, 4], [0, 5]),
        ("raid6:6:64k:failed=4", [0, 1, 5], [0, 1, 5]),
        ("raid6:6:64k:failed=5", [0, 1], [0, 1]),
    ],
)
def test_which_disks_a_small_write_reads(
    array: str, reads: list[int], writes: list[int], tmp_path: Path
) -> None:
    """To the first chunk. Its parity is on the last member, RAID 6's second one on the first."""
    path, rows = tmp_path / "job.fio", tmp_path / "rows.csv"
    path.write_text("[w]\nrw=write\nbs=4k\nsize=4k\ndirect=1\n")
    words = ["--policy", "noop", "--requests", str(rows)]
    done = run("run", str(path), "--array", array, *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[int]] = {"read": [], "write": []}
    for row in csv.DictReader(rows.open()):
        found[row["direction"]].append(int(row["disk"]))
    assert (sorted(found["read"]), sorted(found["write"])) == (reads, writes)


def test_an_array_of_different_disks(tmp_path: Path) -> None:
    disks = "wd5000aaks,exos-x18,ssd"
    assert requests("raid0:3:64k", READ.format(bs="64k"), tmp_path, "--disk", disks)[0] == 16


def test_efficiency_is_against_the_array(job: str) -> None:
    """One process after the other has the array to itself: 1.0 is what the array can do."""
    on = ("--disk", "wd5000aaks", "--queue-depth", "1")
    done = run("run", job, "--array", "raid0:4:64k", "--policy", "noop", "--output", "json", *on)
    alone = json.loads(done.stdout)["alone_mb_s"]
    single = run("run", job, "--policy", "noop", "--output", "json", *on)
    assert min(alone.values()) > 1.2 * max(json.loads(single.stdout)["alone_mb_s"].values())


def test_a_trace_is_replayed_on_an_array() -> None:
    trace = str(Path(__file__).resolve().parents[2] / "traces" / "pg-scan.blktrace.zst")
    done = run("replay", trace, "--array", "raid5:4:64k", "--policy", "stream:deadline")
    assert done.returncode == 0, done.stderr
    assert "raid5:4:64k of exos-x18" in done.stdout
