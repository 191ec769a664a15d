# SPDX-License-Identifier: GPL-2.0-only
"""fio-plot draws what --output fio-json writes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from said import BIN, COMMAND, ran

JOB = """\
[random]
ioengine=libaio
direct=1
rw=randread
bs=4k
size=1g
io_size=2m
iodepth={depth}
filename=/dev/sdx
"""
DEPTHS = (1, 4, 16)
RANDOM = ("-r", "randread", "-T", "reads")
OPTIONS = ("--policy", "deadline", "--output", "fio-json")
PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fio-plot")
    (folder / "results").mkdir()
    for depth in DEPTHS:
        job = folder / f"{depth}.fio"
        job.write_text(JOB.format(depth=depth))
        to = folder / "results" / f"any-name-{depth}.json"
        subprocess.run(
            [COMMAND, "run", job, *OPTIONS, "--to", to],
            check=True,
        )
    return folder


@pytest.mark.skipif(
    not (BIN / "fio-plot").exists(), reason="fio-plot is missing: make .venv/stamp-dev"
)
@pytest.mark.parametrize(
    "options",
    [
        ["-l", "-d", *map(str, DEPTHS)],
        ["-L", "-t", "iops", "-n", "1", "-d", *map(str, DEPTHS)],
        ["-H", "-d", "4", "-n", "1"],
    ],
    ids=["bars", "3d", "histogram"],
)
def test_fio_plot_draws_them(measured: Path, options: list[str], tmp_path: Path) -> None:
    picture = tmp_path / "out.png"
    words = ["-i", measured / "results", "-o", picture, *RANDOM, *options]
    done = ran(BIN / "fio-plot", *words, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    data = picture.read_bytes()
    assert data.startswith(PNG) and len(data) > 10_000


def test_what_it_reads(measured: Path) -> None:
    (job,) = json.loads((measured / "results" / "any-name-4.json").read_text())["jobs"]
    assert job["job options"] == {
        "name": "random",
        "rw": "randread",
        "bs": "4k",
        "iodepth": "4",
        "numjobs": "1",
    }
    shares = [share for unit in ("ns", "us", "ms") for share in job[f"latency_{unit}"].values()]
    assert sum(shares) == pytest.approx(100, abs=1e-3)
    times = job["read"]["clat_ns"]
    # Half of the blocks took no longer than the median, which is in one of the buckets.
    median_ms = times["percentile"]["50.000000"] / 1e6
    upto = sum(
        share
        for unit, ms in (("ns", 1e-6), ("us", 1e-3), ("ms", 1.0))
        for end, share in job[f"latency_{unit}"].items()
        if end != ">=2000" and float(end) * ms < median_ms
    )
    assert upto <= 50


@pytest.mark.parametrize("key", ["write_bw_log", "write_lat_log", "write_iops_log", "write_iolog"])
def test_no_log_is_written(key: str, tmp_path: Path) -> None:
    job = tmp_path / "a.fio"
    job.write_text(f"[a]\nsize=1m\n{key}=log\n")
    done = ran(COMMAND, "run", job, cwd=tmp_path)
    assert done.returncode == 0
    note = f"streamsched: note: {job}: of no effect on what is simulated: {key}\n"
    assert done.stderr == note
    assert [path.name for path in tmp_path.iterdir()] == ["a.fio"]
