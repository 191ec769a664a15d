# SPDX-License-Identifier: GPL-2.0-only
"""A real fio takes the same job files, and does the same."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jobfile_driver import DISK, FIO, jobs, needs_fio
from said import ran

from streamsched.work import fio_options
from streamsched.work.process import Process


@needs_fio
def test_every_option_of_fio_is_in_a_table() -> None:
    assert FIO
    shown = ran(FIO, "--cmdhelp=all").stdout
    theirs = {line.split()[0].rstrip(":") for line in shown.splitlines() if line[:1].isalpha()}
    ours = {*fio_options.BY_KEY, *fio_options.IGNORED, *fio_options.NOTED, *fio_options.UNSUPPORTED}
    assert theirs and not theirs - ours
    shown = ran(FIO, "--enghelp").stdout
    engines = set(shown.split(":", 1)[1].split())
    known = {*fio_options.SYNC_ENGINES, *fio_options.ASYNC_ENGINES, *fio_options.ENGINES}
    assert engines and not engines - known
    for engine in engines:
        shown = ran(FIO, f"--enghelp={engine}").stdout
        theirs = {
            line.split(":")[0].strip()
            for line in shown.splitlines()
            if ":" in line and line[:1] != " "
        }
        assert not theirs - ours, engine


# A real fio does the same.


@dataclasses.dataclass(frozen=True)
class Ran:
    """What one process of fio did: its requests as (offset, bytes, is write), in order."""

    requests: list[tuple[int, int, int]]
    total_ios: int
    total_bytes: int


def run_fio(text: str, disk: Path) -> list[Ran]:
    """Run a job file on a file as large as DISK; clones in the order of our list."""
    assert FIO
    where = disk.parent
    with disk.open("wb") as file:
        file.truncate(DISK)
    extra = f"[global]\nfilename={disk}\nwrite_lat_log={where}/log\nlog_offset=1\n"
    (where / "a.fio").write_text(extra + text)
    command = [FIO, "--output-format=json", str(where / "a.fio")]
    shown = ran(*command, cwd=where, timeout=60)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    done = []
    found = json.loads(shown.stdout[shown.stdout.index("{") :])["jobs"]
    for number, report in enumerate(found, 1):
        log = (where / f"log_lat.{number}.log").read_text().splitlines()
        rows = [[int(cell) for cell in line.split(",")] for line in log]
        done.append(
            Ran(
                [(row[4], row[3], row[2]) for row in rows],
                sum(report[way]["total_ios"] for way in ("read", "write")),
                sum(report[way]["io_bytes"] for way in ("read", "write")),
            )
        )
    # fio starts the first clone, then the last, the last but one, ...
    return [done[0], *reversed(done[1:])] if len(done) > 1 else done


def visits(process: Process) -> Iterator[tuple[int, int]]:
    """Where a process of one block size that goes in order does so: what our fields mean."""
    block = process.split_bytes[process.rw == 2][0]
    zone = position = process.offset
    zone_end = zone + process.zone_range
    in_zone = 0
    for _ in range(process.io_bytes // block):
        yield position, block
        position += block + process.seq_skip
        in_zone += block
        if process.zone_size:
            if in_zone >= process.zone_size:
                zone += process.zone_range + process.zone_skip
                if zone >= process.offset + process.size:
                    zone = process.offset
                position, zone_end, in_zone = zone, zone + process.zone_range, 0
            elif position >= zone_end:
                position = zone
        elif position < process.offset:  # backwards
            position = process.offset + process.size + process.seq_skip
        elif position >= process.offset + process.size:
            position = process.offset


@needs_fio
@pytest.mark.parametrize(
    "lines",
    [
        "size=64k",
        "size=64k\noffset=1m\nbs=8k",
        "size=10k",
        "size=100%\nbs=1m\noffset=3333k",
        "size=95%\nbs=1m\noffset=10%",
        "size=7%\nbs=1m\noffset=11%\noffset_align=64k",
        "size=10%\nbs=3m",
        "bs=1m",
        "size=64k\nrw=read:12k",
        "size=64k\nrw=read:10k\noffset=1m",
        "size=64k\nrw=read:12k\nio_size=24k",
        "size=64k\nrw=read:12k\nio_size=50%",
        "size=64k\nrw=read:4k\nio_size=50%",
        "size=64k\nrw=read:12k\nloops=2",
        "size=64k\nrw=read:-8k",
        "size=64k\nrw=read:-12k\nbs=8k\nio_size=128k",
        "filesize=100m\nsize=64k",
        "size=16k\nio_size=26k\noffset=1m",
        "size=64k\nio_size=50%\nloops=2",
        "size=64k\nnumber_ios=5",
        "size=64k\nrw=write\nbs=4k,16k",
        "size=64k\nrw=write\nbs=8k,",
        "size=512kib\nbs=0x200\nio_size=100k",
        "kb_base=1000\nsize=512k\nbs=5120",
        "size=1m\nbs=1m\noffset=333k\nnumjobs=4\noffset_increment=7%",
        "size=64k\noffset=10%\nnumjobs=3\noffset_increment=1m",
        "size=64k\nzonemode=strided\nzonesize=8k\nzoneskip=24k",
        "size=64k\nio_size=128k\nzonemode=strided\nzonesize=8k\nzoneskip=24k",
        "size=64k\nzonemode=strided\nzonesize=8k\nzonerange=16k\nzoneskip=24k",
        "size=64k\nzonemode=strided\nzonesize=16k\nzonerange=8k\nzoneskip=24k",
        "size=64k\noffset=99m\nzonemode=strided\nzonesize=8k\nzonerange=16k\nzoneskip=500k",
        "size=64k\nzonemode=strided\nzonesize=6k\nzoneskip=24k",
        "[global]\nsize=64k\nbs=8k\n[a]\n[global]\nbs=,16k\nrw=write\n[b]\n[c]\nbs=4k",
    ],
)
def test_fio_goes_where_we_go(lines: str, tmp_path: Path) -> None:
    text = lines if lines.startswith("[") else f"[a]\n{lines}"
    processes = jobs(f"[global]\nfilename=x\n{text}\n")
    done = run_fio(text + "\n", tmp_path / "disk")
    if text.count("[") > 1:  # sections, not clones
        done = [done[0], *reversed(done[1:])]
    assert len(processes) == len(done)
    for process, real in zip(processes, done, strict=True):
        assert list(visits(process)) == [(at, length) for at, length, _ in real.requests]
        assert process.io_bytes == real.total_bytes


@needs_fio
@pytest.mark.parametrize(
    "lines",
    [
        "rw=randread\nsize=1m",
        "rw=randread\nsize=10k",
        "rw=randread\nsize=62k\nnorandommap",
        "rw=randread\nsize=16k\nio_size=26k",
        "rw=randwrite\nsize=1m\nbs=8k\noffset=50%",
        "rw=randread\nsize=100%\nbs=1m\noffset=3333k",
        "rw=randread\nsize=64k\nbs=8k\nba=512",
        "rw=randread\nsize=1m\nio_size=32k\nloops=2",
        "rw=randread\nsize=1m\nrandom_distribution=zipf:1.2",
        "rw=randread\nsize=1m\nrandom_distribution=pareto:0.3",
        "rw=randread\nsize=1m\nrandom_distribution=normal:10",
        "rw=randread\nsize=222k\nrandom_distribution=zoned:50/5:50/",
        "rw=randread\nsize=1m\nrandom_distribution=zoned_abs:50/64k:50/512k",
        "rw=randread\nsize=100%\nbs=1m\nnorandommap\npercentage_random=50",
        "rw=randread:8\nsize=100%\nbs=1m\nnorandommap",
        "rw=randrw\nsize=62k\nrwmixread=80",
        "rw=randread\nsize=1m\nrandseed=17\nnumber_ios=9",
        "rw=randread\nsize=64k\nzonemode=strided\nzonesize=8k\nzonerange=64k\nzoneskip=64k",
    ],
)
def test_fio_goes_as_far_at_random(lines: str, tmp_path: Path) -> None:
    (process,) = jobs(f"[a]\n{lines}\n")
    (real,) = run_fio(f"[a]\n{lines}\n", tmp_path / "disk")
    assert real.total_bytes == process.io_bytes
    for at, length, _ in real.requests:
        assert process.offset <= at < at + length <= process.offset + process.size
        assert (at - process.offset) % process.align_bytes == 0
    places = {at for at, _, _ in real.requests}
    if not process.norandommap and process.io_bytes <= process.size:
        assert len(places) == len(real.requests)


@needs_fio
@pytest.mark.parametrize(
    "lines",
    [
        "bssplit=8k/50:1536/50\nsize=640k",
        "bssplit=4k/20:8k:64k/30\nsize=2m",
        "bsrange=1k-5k\nsize=256k",
        "bssplit=4k/50:8k/50\nrw=randread\nsize=256k",
        "bssplit=4k/50:8k/50,16k/100\nrw=rw\nsize=1m",
        "bssplit=8k/90:64k/10\nbs=32k\nsize=1m",
    ],
)
def test_fio_draws_from_our_sizes(lines: str, tmp_path: Path) -> None:
    (process,) = jobs(f"[a]\n{lines}\n")
    (real,) = run_fio(f"[a]\n{lines}\n", tmp_path / "disk")
    for _, length, way in real.requests:
        if process.range_max[way]:
            assert process.range_min[way] <= length <= process.range_max[way]
            assert length % process.range_min[way] == 0
        else:
            assert length in process.split_bytes[way]
    largest = max(*process.range_max, *(max(sizes, default=0) for sizes in process.split_bytes))
    assert abs(real.total_bytes - process.io_bytes) < largest


@needs_fio
def test_fio_skips_between_blocks_of_several_sizes(tmp_path: Path) -> None:
    text = "[a]\nrw=read:4k\nbssplit=4k/60:16k/40\nsize=8m\n"
    (process,) = jobs(text)
    (real,) = run_fio(text, tmp_path / "disk")
    for (at, length, _), (after, _, _) in itertools.pairwise(real.requests):
        assert after == at + length + process.seq_skip
    # Ours is the mean of what fio leaves to chance.
    assert abs(real.total_bytes - process.io_bytes) < process.io_bytes // 20


@needs_fio
def test_fio_thinks_as_long(tmp_path: Path) -> None:
    text = "[a]\nsize=64k\nthinktime=20ms\nthinktime_blocks=4\n"
    (process,) = jobs(text)
    assert (process.thinktime_ns, process.thinktime_blocks) == (20_000_000, 4)
    run_fio(text, tmp_path / "disk")
    log = (tmp_path / "log_lat.1.log").read_text().splitlines()
    at_ms = [int(line.split(",")[0]) for line in log]
    gaps = [after - before for before, after in itertools.pairwise(at_ms)]
    assert all(gap >= 19 for gap in gaps[3::4])
    assert sum(gap >= 19 for gap in gaps) - len(gaps[3::4]) <= 2  # a busy machine's own pauses


@needs_fio
@settings(max_examples=15)
@given(
    st.sampled_from(["512", "1k", "4k", "5120", "64k"]),
    st.sampled_from(["", ":512", ":4k", ":12k"]),
    st.integers(1, 400),
    st.integers(0, 20000),
)
def test_fio_agrees_on_any_region(
    tmp_path_factory: pytest.TempPathFactory, bs: str, skip: str, kilobytes: int, sector: int
) -> None:
    text = f"[a]\nrw=read{skip}\nbs={bs}\nsize={kilobytes + 64}k\noffset={sector * 512}\n"
    (process,) = jobs(text)
    (real,) = run_fio(text, tmp_path_factory.mktemp("fio") / "disk")
    assert list(visits(process)) == [(at, length) for at, length, _ in real.requests]
