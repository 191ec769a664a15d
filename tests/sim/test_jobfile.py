# SPDX-License-Identifier: GPL-2.0-only
"""Job files: what they mean, what is refused and how, and that a real fio agrees."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from job_text import job_text

from streamsched.base import units
from streamsched.base.errors import UsageError
from streamsched.sim.workloads import WORKLOADS, job_path, shipped_jobs
from streamsched.work import fio_options, fio_values
from streamsched.work.jobfile import load_jobs, options_markdown, parse_jobs
from streamsched.work.process import Process

K, M, G = 1024, 1024**2, 1024**3
DISK = 100 * M

FIO = shutil.which("fio")
needs_fio = pytest.mark.skipif(FIO is None, reason="fio is not installed")


def jobs(text: str, **options: object) -> list[Process]:
    """The processes of a file of which one line each is given."""
    given: dict[str, object] = {"capacity_bytes": DISK, "environ": {}, **options}
    return parse_jobs(text, "a.fio", **given)  # type: ignore[arg-type]


def job(*lines: str, **options: object) -> Process:
    """The one process of a section with these lines."""
    (process,) = jobs("\n".join(("[a]", "size=1m", *lines)), **options)
    return process


# Fields and tables are the C headers'.


def test_process_is_struct_sim_job(root: Path) -> None:
    header = (root / "sim/sim.h").read_text()
    body = re.search(r"struct sim_job \{(.*?)\n\};", header, re.DOTALL)
    assert body
    plain = re.sub(r"/\*.*?\*/", "", body.group(1), flags=re.DOTALL)
    fields = re.findall(r"(\w+)(?:\[\w+\])*;", plain)
    # The weight is not the process's but its owner's: sim_weigh(). A distribution is a table. What
    # fio would open is nothing to the simulator.
    ours = [field.name for field in dataclasses.fields(Process)]
    assert sorted(ours) == sorted([*fields, "weight", "distribution", "opens"])
    splits = re.search(r"#define SIM_MAX_SPLITS (\d+)", header)
    assert splits and int(splits.group(1)) == fio_values.MAX_SPLITS
    assert "SIM_RW_READ = 1," in header and "SIM_RW_RANDOM = 4," in header


def test_documentation_has_the_options(root: Path) -> None:
    text = (root / "docs/JOBS.md").read_text()
    begin, end = "<!-- options: begin -->\n", "<!-- options: end -->"
    assert text[text.index(begin) + len(begin) : text.index(end)] == options_markdown()


def test_no_key_is_in_two_tables() -> None:
    keys = [
        *(*fio_options.BY_KEY, *fio_options.IGNORED),
        *(*fio_options.NOTED, *fio_options.UNSUPPORTED),
    ]
    assert len(keys) == len(set(keys))
    named = [name for option in fio_options.OPTIONS for name in (option.key, *option.aliases)]
    assert len(named) == len(set(named))


@needs_fio
def test_every_option_of_fio_is_in_a_table() -> None:
    assert FIO
    shown = subprocess.run([FIO, "--cmdhelp=all"], capture_output=True, text=True).stdout
    theirs = {line.split()[0].rstrip(":") for line in shown.splitlines() if line[:1].isalpha()}
    ours = {*fio_options.BY_KEY, *fio_options.IGNORED, *fio_options.NOTED, *fio_options.UNSUPPORTED}
    assert theirs and not theirs - ours
    shown = subprocess.run([FIO, "--enghelp"], capture_output=True, text=True).stdout
    engines = set(shown.split(":", 1)[1].split())
    known = {*fio_options.SYNC_ENGINES, *fio_options.ASYNC_ENGINES, *fio_options.ENGINES}
    assert engines and not engines - known
    for engine in engines:
        shown = subprocess.run([FIO, f"--enghelp={engine}"], capture_output=True, text=True).stdout
        theirs = {
            line.split(":")[0].strip()
            for line in shown.splitlines()
            if ":" in line and line[:1] != " "
        }
        assert not theirs - ours, engine


# Meaning.


def test_defaults() -> None:
    assert job() == Process(
        name="a", section=0, group=0, rw=1, read_pct=100, offset=0, size=M, io_bytes=M,
        nr_splits=(1, 1), split_bytes=((4096,), (4096,)), split_pct=((100,), (100,)),
        range_min=(0, 0), range_max=(0, 0), align_bytes=4096, seq_skip=0, direct=False,
        norandommap=False, drops_pages=True, iodepth=1, thinktime_ns=0, thinktime_blocks=1,
        startdelay_ns=0, runtime_ns=0, time_based=False, fsync_blocks=0, end_fsync=False,
        seed=job().seed, stage=0, zone_size=0, zone_range=0, zone_skip=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rw", "bits", "read_pct"),
    [
        ("read", 1, 100),
        ("write", 2, 0),
        ("rw", 3, 50),
        ("readwrite", 3, 50),
        ("randread", 5, 100),
        ("randwrite", 6, 0),
        ("randrw", 7, 50),
        ("randread:1", 5, 100),
    ],
)
def test_rw(rw: str, bits: int, read_pct: int) -> None:
    process = job(f"rw={rw}")
    assert (process.rw, process.read_pct) == (bits, read_pct)


@pytest.mark.parametrize(
    ("lines", "field", "value"),
    [
        (["rw=rw", "rwmixread=70"], "read_pct", 70),
        (["rw=rw", "rwmixwrite=70"], "read_pct", 30),
        (["rw=rw", "rwmixwrite=70", "rwmixread=60"], "read_pct", 60),
        (["rw=read", "rwmixread=70"], "read_pct", 100),
        (["bs=8k"], "split_bytes", ((8192,), (8192,))),
        (["blocksize=8k,16k"], "split_bytes", ((8192,), (16384,))),
        (["bs=8k,16k,32k"], "split_bytes", ((8192,), (16384,))),
        (["bs=,16k"], "split_bytes", ((4096,), (16384,))),
        (["bs=16k,"], "split_bytes", ((16384,), (4096,))),
        (["bs=0x1000"], "split_bytes", ((4096,), (4096,))),
        (["bs=$pagesize"], "split_bytes", ((4096,), (4096,))),
        (["bssplit=4k/10:64k/50:32k/40"], "split_pct", ((10, 50, 40), (10, 50, 40))),
        (["bssplit=4k/50:8k/:16k"], "split_pct", ((50, 25, 25), (50, 25, 25))),
        (["bssplit=4k:8k:16k"], "split_pct", ((33, 33, 34), (33, 33, 34))),
        (["bssplit=4k"], "split_pct", ((100,), (100,))),
        (["bssplit=8k/50:1536/50"], "split_bytes", ((7680, 1536), (7680, 1536))),
        (["bssplit=2k/50:4k/50,4k/90:8k/10"], "split_bytes", ((2048, 4096), (4096, 8192))),
        (["bssplit=8k", "bs=64k"], "split_bytes", ((8192,), (8192,))),
        (["bsrange=4k-64k"], "range_max", (65536, 65536)),
        (["bsrange=4k-64k"], "nr_splits", (0, 0)),
        (["bsrange=64k:4k,8k-16k"], "range_min", (4096, 8192)),
        (["bsrange=8k-8k"], "split_bytes", ((8192,), (8192,))),
        (["rw=randread", "bs=8k"], "align_bytes", 8192),
        (["rw=randrw", "bs=8k,16k"], "align_bytes", 8192),
        (["rw=randread", "bs=8k", "ba=512"], "align_bytes", 512),
        (["rw=randread", "bs=8k", "blockalign=512"], "norandommap", True),
        (["rw=randread", "bs=8k", "ba=8k"], "norandommap", False),
        (["rw=read", "bs=8k", "ba=512"], "norandommap", False),
        (["rw=read:12k"], "seq_skip", 12 * K),
        (["rw=read:12k"], "io_bytes", 256 * K),
        (["direct=1"], "direct", True),
        (["buffered=0"], "direct", True),
        (["direct=1", "buffered=1"], "direct", False),
        (["direct=1", "ioengine=libaio", "iodepth=8"], "iodepth", 8),
        (["direct=1", "ioengine=io_uring", "iodepth=1k"], "iodepth", 1024),
        (["direct=1", "ioengine=psync", "iodepth=8"], "iodepth", 1),
        (["direct=1", "iodepth=8"], "iodepth", 1),
        (["direct=0", "ioengine=libaio", "iodepth=8"], "iodepth", 1),
        (["thinktime=300"], "thinktime_ns", 300_000),
        (["thinktime=2ms", "thinktime_blocks=4"], "thinktime_blocks", 4),
        (["startdelay=2"], "startdelay_ns", 2 * 10**9),
        (["startdelay=2ms"], "startdelay_ns", 2 * 10**6),
        (["runtime=2m"], "runtime_ns", 120 * 10**9),
        (["timeout=5"], "runtime_ns", 5 * 10**9),
        (["runtime=5", "time_based"], "time_based", True),
        (["runtime=5", "time_based=0"], "time_based", False),
        (["rw=write", "fsync=32"], "fsync_blocks", 32),
        (["rw=write", "fdatasync=32"], "fsync_blocks", 32),
        (["rw=read", "fsync=32"], "fsync_blocks", 0),
        (["rw=write", "end_fsync=1"], "end_fsync", True),
        (["rw=write", "fsync_on_close=1"], "end_fsync", True),
        (["rw=read", "end_fsync=1"], "end_fsync", False),
        (["norandommap"], "norandommap", True),
        (["name=b"], "name", "b"),
        (["offset=1m"], "offset", M),
        (["fileoffset=0x200"], "offset", 512),
        (["offset=50%"], "offset", 50 * M),
        (["offset=33%", "bs=1m"], "offset", 33 * M),
        (["offset=1%", "bs=1m", "offset_align=64k"], "offset", M),
        (["size=30%"], "size", 30 * M),
        (["size=100%", "offset=25%"], "size", 75 * M),
        (["size=95%", "offset=10%"], "size", 90 * M),
        (["size=10%", "bs=3m"], "size", 9 * M),
        (["size=0"], "size", DISK),
        (["size=10k"], "io_bytes", 12 * K),
        (["size=10k", "rw=randread"], "io_bytes", 8 * K),
        (["size=10k", "rw=randread", "norandommap"], "io_bytes", 12 * K),
        (["size=10k", "rw=randread"], "size", 8 * K),
        (["io_size=50%"], "io_bytes", 512 * K),
        (["io_size=26k"], "io_bytes", 28 * K),
        (["io_limit=4m", "loops=2"], "io_bytes", 8 * M),
        (["loops=3"], "io_bytes", 3 * M),
        (["number_ios=5"], "io_bytes", 20 * K),
        (["kb_base=1000", "bs=512", "size=512k"], "size", 512_000),
        (["size=1024kb"], "size", M),
        (["size=1ki", "bs=512"], "size", 1024),
        (["size=512kib", "bs=512"], "size", 512_000),
        (["size=512kib", "bs=512", "kb_base=1000"], "size", 512 * K),
        (["description=a 50% job", "group_reporting", "thread"], "size", M),
        (["size=2m ; a comment", "  # another"], "size", 2 * M),
        (["filename=${NOT_SET}"], "size", M),
        (["filename=/dev/disk/by-path/a\\:b"], "size", M),
        (["zonemode=strided", "zonesize=8k"], "zone_range", 8 * K),
        (["zonemode=strided", "zonesize=8k", "zonerange=1m"], "zone_range", M),
        (["zonemode=strided", "zonesize=8k", "zoneskip=1m"], "zone_skip", M),
        (["zonemode=strided", "zonesize=8k", "offset=1m"], "size", DISK - M),
        (["rw=read:-8k"], "seq_skip", -8 * K),
        (["rw=read:-8k"], "io_bytes", M),
        (["rw=randread:8"], "random_every", 8),
        (["rw=randread:8", "rw_sequencer=identical"], "stays", True),
        (["rw=randread", "percentage_random=70"], "in_order_pct", (30, 30)),
        (["rw=randrw", "percentage_random=70,20"], "in_order_pct", (30, 80)),
        (["rw=randrw", "percentage_random=,20"], "in_order_pct", (0, 80)),
        (["bs=4k,64k", "bs_is_seq_rand=1"], "sizes_by_order", True),
        (["rate=1m"], "rate", (M, M)),
        (["rate=1m,"], "rate", (M, 0)),
        (["rate=,500k"], "rate", (0, 500 * K)),
        (["rate=1m,500k,250k"], "rate", (M, 500 * K)),
        (["rate_iops=100", "bs=8k,16k"], "rate", (800 * K, 1600 * K)),
        (["rate_iops=100,", "bsrange=8k-64k"], "rate", (800 * K, 0)),
        (["rate_iops=,100", "bsrange=8k-64k"], "rate_unit", (8 * K, 8 * K)),
        (["rate=1m", "rate_process=poisson"], "rate_poisson", True),
        (["rate=1m", "rate_ignore_thinktime=1"], "rate_forgives", True),
        (["ramp_time=2"], "ramp_ns", 2 * 10**9),
        (["ramp_time=500ms"], "ramp_ns", 500 * 10**6),
        (["io_submit_mode=offload", "iodepth=8", "direct=1"], "iodepth", 8),
        (["filesize=2m"], "size", 2 * M),
        (["filesize=2m"], "io_bytes", M),
        (["filesize=2m", "io_size=3m"], "io_bytes", 3 * M),
        (["filesize=2m", "size=50%"], "io_bytes", M),
        (["filename=x", "directory=/mnt"], "size", M),
        (["directory=/mnt"], "opens", ""),
        (["filename= x", "directory=/mnt"], "opens", "/mnt/x"),
        (["filename=a: b"], "nr_files", 2),
        (["name= b"], "name", " b"),
        (["direct=1", "ioengine=linuxaio", "iodepth=8"], "iodepth", 8),
        (["direct=1", "ioengine=windowsaio", "iodepth=8"], "iodepth", 8),
        (["fill_device=1", "write_bw_log=${NOT_SET}", "cpus_allowed= 1"], "size", M),
        (["rw=randread", "random_distribution=zipf:0.9"], "places", 1),
        (["rw=randread", "random_distribution=zipf"], "scattered", True),
        (["rw=randread", "random_distribution=zipf"], "norandommap", True),
        (["rw=randread", "random_distribution=zipf:0.9"], "scattered_alike", False),
        (["rw=randread", "random_distribution=zipf:0.9:0.25"], "scattered_alike", True),
        (["rw=randread", "random_distribution=zipf:0.9:0.25"], "places_shift", 64),
        (["rw=randread", "random_distribution=normal:10"], "places", 2),
        (["rw=randread", "random_distribution=normal:10"], "normal_spread", 26),
        (["rw=randread", "random_distribution=normal:10:0.25"], "places_shift", 192),
        (["rw=randread", "random_distribution=zoned:50/5:50/"], "scattered", False),
        (["rw=randread", "random_distribution=random"], "norandommap", False),
        (["rw=read", "random_distribution=zipf:0.9"], "norandommap", False),
        ([], "weight", None),
        (["owner_weight=2"], "weight", 2),
    ],
)
def test_setting(lines: list[str], field: str, value: object) -> None:
    assert getattr(job(*lines), field) == value


def test_clones_sections_groups_and_stages() -> None:
    found = jobs(
        job_text("""
[global] size=1m bs=8k
[a] stonewall numjobs=3 offset=10% offset_increment=2m
[global] bs=,64k direct=1
[b] cgroup=vm
[c] stonewall bs=4k
[d] cgroup=vm new_group
""")
    )
    # Those that say no offset have a file each.
    at = [10 * M, 12 * M, 14 * M, 0, M, 2 * M]
    assert [p.name for p in found] == ["a", "a", "a", "b", "c", "d"]
    assert [p.section for p in found] == [0, 0, 0, 1, 2, 3]
    assert [p.group for p in found] == [0, 0, 0, 1, 2, 1]
    assert [p.stage for p in found] == [0, 0, 0, 0, 1, 1]
    assert [p.offset for p in found] == at
    assert [p.direct for p in found] == [False, False, False, True, True, True]
    assert [p.split_bytes[1] for p in found] == [(8192,)] * 3 + [(65536,), (4096,), (65536,)]
    assert len({p.seed for p in found}) == 6


def test_increment_in_percent_rounds_every_clone_up() -> None:
    text = "[a]\nsize=1m\nbs=1m\noffset=333k\nnumjobs=3\noffset_increment=7%"
    assert [p.offset for p in jobs(text)] == [M, 8 * M, 15 * M]


def test_seeds() -> None:
    assert job(seed=1) == job(seed=1)
    assert job(seed=1).seed != job(seed=2).seed
    assert job("randseed=9", seed=1).seed == job("randseed=9", seed=2).seed
    assert job("randseed=9").seed == job(seed=9).seed
    assert 0 <= job(f"randseed={2**63 - 1}").seed < 2**64


def test_a_seed_moves_each_start() -> None:
    late = [p.startdelay_ns for s in range(1, 51) for p in jobs("[a]\nsize=1m\nnumjobs=4", seed=s)]
    assert len(set(late)) == 200
    assert 0 <= min(late) < 2_000_000 and 18_000_000 < max(late) < 20_000_000
    assert job(seed=0).startdelay_ns == 0
    assert job("randseed=9", seed=1).startdelay_ns == job(seed=1).startdelay_ns > 0
    # What the file says stays, also where a section has it from [global].
    assert job("startdelay=0", seed=1).startdelay_ns == 0
    inherited = jobs("[global]\nstartdelay=1\n[a]\nsize=1m\n[b]\nsize=1m", seed=1)
    assert [p.startdelay_ns for p in inherited] == [1_000_000_000] * 2


@pytest.mark.parametrize("name", [*WORKLOADS, *shipped_jobs()])
def test_a_seed_moves_something_in_every_workload(name: str) -> None:
    def starts(seed: int) -> list[int]:
        if name in WORKLOADS:
            found = WORKLOADS[name].processes(500 * G, seed)
        else:
            found = load_jobs(job_path(f"{name}.fio"), capacity_bytes=500 * G, seed=seed)
        return [p.startdelay_ns for p in found]

    assert starts(1) != starts(0) != starts(2) != starts(1)


def test_variables_are_the_environments() -> None:
    environ = {"SIZE": "2", "UNIT": "m"}
    assert job("size=${SIZE}${UNIT}", environ=environ).size == 2 * M


def test_bytes_need_no_capacity() -> None:
    assert job("offset=50g", capacity_bytes=None).offset == 50 * G
    assert (
        job("zonemode=strided", "zonesize=64k", "zoneskip=64k", capacity_bytes=None).size == 2 * M
    )


def test_params_are_what_cffi_takes() -> None:
    params = job().params()
    assert params["name"] == b"a" and params["split_bytes"] == ((4096,), (4096,))
    ours = [field.name for field in dataclasses.fields(Process)]
    assert [*params, "weight", "distribution", "opens"] == ours


@pytest.mark.parametrize("weight", ["0", "1001", "-1", "1.5"])
def test_a_weight_is_a_share(weight: str) -> None:
    with pytest.raises(UsageError, match="owner_weight") as caught:
        job(f"owner_weight={weight}")
    assert "\n" not in str(caught.value)


def test_a_group_has_one_weight() -> None:
    text = "[a]\nsize=1m\ncgroup=vm\nowner_weight=2\n[b]\nsize=1m\ncgroup=vm\n"
    with pytest.raises(UsageError) as caught:
        jobs(text)
    assert str(caught.value).endswith(
        "owner_weight: none: another section of cgroup vm has 2; write the same in both"
    )
    assert [process.weight for process in jobs(text + "owner_weight=2\n")] == [2, 2]


def test_include(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.fio").write_text("[a]\nbs=4k\ninclude sub/b.inc\n")
    (tmp_path / "sub/b.inc").write_text("# more\nsize=2m\ninclude c.inc\n")
    (tmp_path / "sub/c.inc").write_text("bs=16k\n")
    (process,) = load_jobs(tmp_path / "a.fio", capacity_bytes=DISK)
    assert (process.size, process.split_bytes[0]) == (2 * M, (16384,))

    # The working directory goes before the job file's, as in fio.
    (tmp_path / "here/sub").mkdir(parents=True)
    (tmp_path / "here/sub/b.inc").write_text("size=3m\n")
    monkeypatch.chdir(tmp_path / "here")
    (process,) = load_jobs(tmp_path / "a.fio", capacity_bytes=DISK)
    assert process.size == 3 * M


def test_include_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.fio"

    def message() -> str:
        with pytest.raises(UsageError) as caught:
            load_jobs(path, capacity_bytes=DISK)
        return str(caught.value).replace(f"{tmp_path}/", "")

    path.write_text("[a]\ninclude b.inc\n")
    assert message() == (
        "a.fio, line 2: include b.inc: there is no such file; name one relative to this file"
    )
    path.write_text("[a]\ninclude\n")
    assert message() == "a.fio, line 2: include: names no file; write include FILE"
    path.write_text("[a]\ninclude b.inc\n")
    (tmp_path / "b.inc").write_text("size=1m\n\nsize=1q\n")
    assert message() == (
        'b.inc, line 3: size=1q: "q" is not a unit; write bytes with k, m, g or t, or a percentage'
    )
    (tmp_path / "b.inc").write_text("[b]\n")
    assert message() == (
        "b.inc, line 1: [b]: an included file cannot begin a section; write its settings only"
    )
    (tmp_path / "b.inc").write_text("include b.inc\n")
    assert message() == "b.inc: included more than 16 deep; does it include itself?"


def test_file_errors(tmp_path: Path) -> None:
    for data, message in (
        (None, "No such file or directory; name a file that can be read"),
        (b"[a]\n\xff", ", line 2: not UTF-8 text; is it a job file?"),
        (b"#" * (16 * M + 1), " has more than 16777216 bytes; is it a job file?"),
    ):
        path = tmp_path / "a.fio"
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(UsageError, match=re.escape(message)):
            load_jobs(path)


SIZES = "write bytes with k, m, g or t"
SECTORS = "is not a multiple of the disk's 512-byte sectors; write one that is"
DISTRIBUTIONS = "random, zipf, pareto, normal, zoned, zoned_abs"
PATTERNS = "read, write, randread, randwrite, rw, readwrite, randrw"
NINES = "9" * 5000  # int() refuses more than 4300 digits


WRONG_LINE = {
    "size=1q": f'"q" is not a unit; {SIZES}, or a percentage',
    "size=1kq": f'"kq" is not a unit; {SIZES}, or a percentage',
    "size=x": '"x" is not a number; write a number of bytes with k, m, g or t',
    "size=-1": '"-1" is negative; write zero or more',
    "size=(1m*2)": '"(1m*2)" is a calculation; write the number it comes to',
    "size=1.5g": (
        '"1.5g" has a fraction, and fio reads whole numbers only; write it in a smaller unit, '
        "such as 1536m for 1.5g or 1500ms for 1.5s"
    ),
    "size=110%": '"110%" is not a percentage of the disk; write 0% to 100%',
    "size=1k%": '"1k%" is not a percentage of the disk; write 0% to 100%',
    "offset=3z": f'"3z" counts zones of a zoned disk; {SIZES}, or a percentage',
    "size=99999999999g": f'"99999999999g" is too large; the most is {2**63 - 1} bytes',
    "size=99999999999999999999": f'"{"9" * 20}" is too large; the most is {2**63 - 1}',
    "size=": "has no value; write one after the equals sign or leave the line out",
    "size": "needs a value; write size=VALUE",
    "bs": "needs a value; write bs=4k",
    "size= 1m": 'fio misreads a blank after "="; write size=1m',
    "size = 1m": 'fio misreads a blank after "="; write size=1m',
    "size=1k": "is less than one block of 4096 bytes; write more",
    "bs=4kib": f"4kib, that is 4000 bytes, {SECTORS}; fio's kib counts 1000, its k 1024",
    "bs=1000": f"1000 bytes {SECTORS}",
    "bs=0": '"0" is not a block size; write 512 bytes to 4095m',
    "bs=4g": '"4g" is not a block size; write 512 bytes to 4095m',
    "bs=10%": f'"10%" is a percentage, which is not possible here; {SIZES}',
    "bs=4k,8k,16k,32k": "has more than three parts; write those for reads and for writes",
    "bs=,": "no size is given; write one such as 4k",
    "bs=4k:8k": f'"k:8k" is not a unit; {SIZES}',
    "bsrange=4k": '"4k" is not a range; write one such as 4k-64k',
    "bsrange=4k-1000": f"1000 bytes {SECTORS}",
    "bssplit=4k/50:8k/60": "the percentages add up to 110; make them 100",
    "bssplit=4k/50:8k/40": "the percentages add up to 90; make them 100",
    "bssplit=4k/x": '"x" is not a percentage; write sizes such as 4k/60:64k/40',
    f"bssplit={':'.join(['4k'] * 17)}": "has 17 sizes; write at most 16",
    "rw=foo": f'"foo" is not a pattern; write {PATTERNS}',
    "rw=READ": f'"READ" is not a pattern; write {PATTERNS}',
    "rw=trim": f"the simulated disk has no trim; write {PATTERNS}",
    "rw=read:-2k": (
        "goes backwards by less than a block, or blocks have several sizes; with bs=4k write "
        "read:-8k"
    ),
    "rw=randread:0": '"0" is not a number of blocks; write randread:8, say',
    "--bs=4k": "a job file has no dashes; write bs",
    "rw=read:": '"" is not a number; write a number of bytes with k, m, g or t',
    "rw=read:100": "skips a part of a 512-byte sector; skip whole ones",
    "rwmixread=101": "is out of range; write 0 to 100",
    "iodepth=0": "is out of range; write 1 to 4096",
    "numjobs=0": "is out of range; write 1 to 4096",
    "loops=0": "is too small; the least is 1",
    "numjobs=many": '"many" is not a whole number; write one such as 4',
    "fsync=-1": '"-1" is negative; write a number such as 4',
    "iodepth=1.5": '"1.5" is not a whole number; write one such as 4',
    f"randseed={2**63}": f"is out of range; write 0 to {2**63 - 1}",
    f"randseed={'1' * 5000}": f"is out of range; write 0 to {2**63 - 1}",
    f"size={NINES}": f'"{NINES}" is too large; the most is {2**63 - 1}',
    f"thinktime={NINES}": f'"{NINES}" is too large; the most is {2**63 - 1}',
    f"bssplit=4k/{NINES}": f"the percentages add up to {10**40}; make them 100",
    "iodepth=\u0663": '"\u0663" is not a whole number; write one such as 4',
    "bssplit=4k/\u0663": '"\u0663" is not a percentage; write sizes such as 4k/60:64k/40',
    "random_distribution=pareto:0.\u0663": '"0.\u0663" is not a number; write one such as 1.2',
    "direct=yes": '"yes" is neither on nor off; write 1 or 0',
    "direct": "needs a value; write direct=0",
    "runtime=5x": '"x" is not a unit of time; write us, ms, s, m, h or d',
    "runtime=5ns": '"ns" is not a unit of time; write us, ms, s, m, h or d',
    "thinktime=fast": '"fast" is not a number; write a time with us, ms, s, m, h or d',
    "startdelay=1-3": "a range of times is not supported; write one time",
    "runtime=999999999d": '"999999999d" is too long; the most is 106751d',
    "ramp_time=5x": '"x" is not a unit of time; write us, ms, s, m, h or d',
    "wait_for=a": "a job cannot wait for itself; name one above",
    "wait_for=b": "no job above has this name",
    "rate=fast": '"fast" is not a number; write a number of bytes with k, m, g or t',
    "rate=,": "has no number; write one or two",
    "rate_iops=many": '"many" is not a whole number; write one such as 4',
    "rate_process=normal": '"normal" is not one of them; write linear, poisson',
    "percentage_random=101": "is out of range; write 0 to 100",
    "random_distribution=zip": f'"zip" is not a distribution; write {DISTRIBUTIONS}',
    "random_distribution=zipf:1": "zipf of 1 is out of range; write above 0, not 1, as in zipf:1.2",
    "random_distribution=zipf:-1": '"-1" is not a number; write one such as 1.2',
    "random_distribution=pareto:1": "pareto of 1 is out of range; write between 0 and 1",
    "random_distribution=normal:100": (
        "a deviation of 100 is out of range; write 0 to below 100 percent"
    ),
    "random_distribution=zipf:2:3": "the center 3 is out of range; write 0 to 1",
    "random_distribution=zoned:50/10:40/90": (
        "the percentages of requests add up to 90; make them 100"
    ),
    "random_distribution=zoned:50/60:50/60": (
        "the percentages of the size add up to 120; make them at most 100"
    ),
    "random_distribution=zoned_abs:100": (
        '"100" has no size; write one, as in zoned_abs:60/10g:40/90g'
    ),
    "filesize=4k-8k": "a range of sizes is not supported; write one size",
    "filesize=512k": "is less than size=1048576; write io_size instead",
    "io_submit_mode=later": '"later" is not one of them; write inline, offload',
    "verify=crc32c": "only 0 is supported; the simulated disk has no contents; leave it out",
    "=read": "no key stands before the equals sign; write KEY=VALUE",
    "rw read": "has no equals sign; write rw=read",
    "bs=4k-8k": '"4k-8k" is a range; write bsrange=4k-8k',
    "nrfiles=0": "is out of range; write 1 to 4096",
    "file_service_type=zipf": (
        '"zipf" is not one of roundrobin, sequential, random; write one of these'
    ),
    "file_service_type=random:0": '"0" is not a number of blocks; write random:8, say',
    "sync=2": '"2" is not one of them; write none, 0, 1, sync, dsync',
    "ioengine=null": "it reads and writes nothing; write ioengine=psync or libaio",
    "ioengine=sg": (
        "it sends commands past the block layer, where no I/O scheduler sees them; write "
        "ioengine=psync or libaio"
    ),
    "ioengine=nul": (
        '"nul" is not one of them; write sync, psync, vsync, pvsync, pvsync2, libaio, '
        "io_uring, posixaio"
    ),
    "filename=/dev/sda:/dev/sdb": "names several disks, and here is one; name one of them",
    "filename=:": "names no file; write one, or leave the line out",
    "cgroup= a": 'fio misreads a blank after "="; write cgroup=a',
    "iodeth=${DEPTH}": 'unknown key "iodeth"; the nearest known one is "iodepth"',
    "offset=100": f"100 bytes {SECTORS}",
    "offset_increment=100": f"100 bytes {SECTORS}",
    "zonesize=64k": "needs zonemode=strided; write that too",
    "zonemode=strided": "needs a zonesize; write zonesize=1m, say",
    "zonemode=zbd": '"zbd" is not one of them; write none, strided',
    "bs=$ncpus": "$ncpus would make the result depend on this machine; write a number",
    "bs=${BLOCK}": "the environment has no variable BLOCK; set it or write the value",
    "iodeth=4": 'unknown key "iodeth"; the nearest known one is "iodepth"',
    "start_delay=4": 'unknown key "start_delay"; the nearest known one is "startdelay"',
    "BS=4k": 'unknown key "BS"; the nearest known one is "bs"',
    "flow=1": '"flow" of fio is not supported; give the process a thinktime or a rate instead',
    "read_iolog=x": (
        '"read_iolog" of fio is not supported; traces are replayed by `streamsched replay`'
    ),
}


@pytest.mark.parametrize(("line", "problem"), WRONG_LINE.items())
def test_wrong_line(line: str, problem: str) -> None:
    size = [] if line.startswith("size") else ["size=1m"]
    with pytest.raises(UsageError) as caught:
        jobs("\n".join(["[a]", line, *size]))
    text = line.replace(" =", "=")
    assert str(caught.value) == f"a.fio, line 2: {text}: {problem}"


WRONG_SECTION = {
    "": "a.fio: has no job; write a section [NAME] with rw= and size=",
    "[global]\nbs=4k": "a.fio: has no job; write a section [NAME] with rw= and size=",
    "\nbs=4k": (
        "a.fio, line 2: bs=4k: stands before the first section; write [global] or [NAME] above it"
    ),
    "[a": "a.fio, line 1: [a: not a section; write [NAME]",
    "[]": "a.fio, line 1: []: not a section; write [NAME]",
    f"[{'a' * 64}]\nsize=1m": (
        f"a.fio, line 1: job {'a' * 64}: its name is longer than 63 bytes; write a shorter one"
    ),
    "[a]\noffset=99m\nsize=2m": (
        f"a.fio, line 1: job a: its region ends at byte {101 * M}, but the disk has {DISK} "
        "bytes; make offset or size smaller, or take a larger disk"
    ),
    "[a]\nname=b\nnumjobs=3\nsize=1m\noffset_increment=60m": (
        f"a.fio, line 1: clone 3 of job b: its region begins at byte {120 * M}, but the disk "
        f"has {DISK} bytes; make offset or size smaller, or take a larger disk"
    ),
    "[a]\nzonemode=strided\nzonesize=64k\noffset=99m\nzonerange=2m": (
        f"a.fio, line 1: job a: its first zone ends at byte {101 * M}, but the disk has {DISK} "
        "bytes; make offset or size smaller, or take a larger disk"
    ),
    "[a]\noffset=100%": (
        f"a.fio, line 1: job a: its region begins at byte {DISK}, but the disk has {DISK} "
        "bytes; make offset or size smaller, or take a larger disk"
    ),
    f"[a]\noffset={DISK - 512}": (
        f"a.fio, line 1: job a: its region of 512 bytes at {DISK - 512} holds no block of 4096 "
        "bytes; make size larger"
    ),
    "[a]\nrw=rw:4k\nzonemode=strided\nzonesize=1m": (
        "a.fio, line 2: rw=rw:4k: cannot skip within zones; write zoneskip"
    ),
    "[a]\nbssplit=4k/50:8k/50\nnumber_ios=4": (
        "a.fio, line 3: number_ios=4: blocks have several sizes; write io_size"
    ),
    "[a]\nbssplit=4k/50:8k/50\nbsrange=4k-8k": (
        "a.fio, line 2: bssplit=4k/50:8k/50: bsrange is set as well; write one of the two"
    ),
    "[a]\nfsync=4\nfdatasync=8": (
        "a.fio, line 3: fdatasync=8: fsync is set to another number; write one of the two"
    ),
    "[a]\nsize=1t\nloops=999999999": "a.fio, line 1: job a: its region ends at byte",
    "[a]\nsize=1m\nnumjobs=4096\n[b]": (
        "a.fio, line 4: job b: makes it more than 4096 processes; write a smaller numjobs"
    ),
    "[a]\nloops=999999999999": (
        f"a.fio, line 1: job a: transfers more than {2**63 - 1} bytes; make size smaller"
    ),
}


@pytest.mark.parametrize(("text", "message"), WRONG_SECTION.items())
def test_wrong_section(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        jobs(text)
    assert str(caught.value).startswith(message)


PERCENTAGES_NEED_THE_CAPACITY = {
    "rw=read": (
        "a.fio, line 1: job a: size: the rest of the disk depends on the disk, and none is "
        "given; write bytes"
    ),
    "size=50%": (
        "a.fio, line 2: size=50%: a percentage depends on the disk, and none is given; write bytes"
    ),
    "offset=5%": (
        "a.fio, line 2: offset=5%: a percentage depends on the disk, and none is given; write bytes"
    ),
}


@pytest.mark.parametrize(("lines", "message"), PERCENTAGES_NEED_THE_CAPACITY.items())
def test_percentages_need_the_capacity(lines: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        jobs(f"[a]\n{lines}", capacity_bytes=None)
    assert str(caught.value) == message


@given(st.text(alphabet="[]=;#${}%:,-/ \nabgkmrwsize0123456789", max_size=200))
def test_any_text_is_read_or_refused_in_one_sentence(text: str) -> None:
    try:
        jobs(text, capacity_bytes=DISK)
    except UsageError as error:
        assert str(error).startswith("a.fio") and "\n" not in str(error)


@given(
    st.sampled_from(sorted(fio_options.BY_KEY)),
    st.text(alphabet="%:,-/.0123456789kmgtxsu", max_size=30),
)
def test_any_value_is_read_or_refused_in_one_sentence(key: str, value: str) -> None:
    try:
        found = jobs(f"[a]\nnumjobs=2\n{key}={value}")
    except UsageError as error:
        assert str(error).startswith("a.fio") and "\n" not in str(error)
        return
    for process in found:
        assert 0 <= process.offset < process.offset + process.size <= DISK
        assert process.io_bytes > 0 and process.thinktime_blocks and process.iodepth
        for sizes, weights in zip(process.split_bytes, process.split_pct, strict=True):
            assert sum(weights) in (0, 100) and all(size % 512 == 0 for size in sizes)


# Units.


@given(st.integers(0, 2**63 - 1))
def test_bytes_come_back(value: int) -> None:
    assert units.fio_bytes(units.format_bytes(value)) == value


# Who shares what.


A_NOTE_SAYS_WHO_SHARES_A_PLACE = {
    "[r]\nsize=1m\nnumjobs=4\n": None,
    "[r]\nsize=1m\n[s]\nsize=2m\n": None,
    "[r]\nsize=2m\n[s]\nsize=2m\noffset=1m\n": None,
    "[r]\nsize=2m\noffset=2m\n[s]\nsize=2m\noffset=1m\n": f"s and r both work at byte {2 * M}",
    "[r]\nsize=2m\nfilename=x\n[s]\nsize=1m\nfilename=y\n": None,
    # fio has to be told the file's name: there is one.
    "[r]\nnumjobs=4\n[s]\nsize=2m\n": None,
    "[r]\nsize=1m\nnumjobs=4\nfilename=x\n": None,
    "[r]\nsize=1m\nnumjobs=4\noffset_increment=1m\n": None,
    "[r]\nsize=1m\n[s]\nsize=2m\noffset=1m\n": None,
}


@pytest.mark.parametrize(("text", "both"), A_NOTE_SAYS_WHO_SHARES_A_PLACE.items())
def test_a_note_says_who_shares_a_place(text: str, both: str | None) -> None:
    notes: list[str] = []
    jobs(text, notes=notes)
    assert [note.partition(" of the only disk")[0] for note in notes] == (
        [f"a.fio: {both}"] if both else []
    )


A_NOTE_SAYS_WHAT_IS_OF_NO_EFFECT = {
    "iodepth=8": "iodepth=8 of a is of no effect with ioengine=psync; libaio keeps so many in",
    "iodepth=8\ndirect=1": "iodepth=8 of a is of no effect with ioengine=psync; libaio",
    "iodepth=8\nioengine=libaio": "iodepth=8 of a is of no effect without direct=1",
    "iodepth=8\nioengine=libaio\ndirect=1": "",
    "iodepth=8\ndirect=1\nio_submit_mode=offload\nrate=1m": "",
    "nrfiles=4\nfilename=x": "nrfiles=4 of a is of no effect beside a filename",
    "time_based": "time_based of a is of no effect without a runtime",
}


@pytest.mark.parametrize(("text", "note"), A_NOTE_SAYS_WHAT_IS_OF_NO_EFFECT.items())
def test_a_note_says_what_is_of_no_effect(text: str, note: str) -> None:
    notes: list[str] = []
    jobs(f"[a]\nsize=1m\n{text}\n", notes=notes)
    assert len(notes) == bool(note)
    assert all(one.startswith(f"a.fio: {note}") and one.endswith(", as in fio") for one in notes)


@pytest.mark.parametrize(
    "text", ["[a]\nfilename=x\nfilename=y\n", "[global]\nfilename=x\n[a]\nfilename=y\n"]
)
def test_each_filename_names_more_files(text: str) -> None:
    assert jobs(f"{text}size=1m\n") == jobs("[a]\nfilename=x:y\nsize=1m\n")


@pytest.mark.parametrize("word", ["1", "sync", "dsync"])
def test_synchronous_writes_are_synced_each(word: str) -> None:
    notes: list[str] = []
    text = "[a]\nrw=write\nsize=1m\n"
    assert jobs(f"{text}sync={word}\n", notes=notes) == jobs(f"{text}fsync=1\n")
    assert notes == [f"a.fio: sync={word} of a is simulated as fsync=1"]


def places(text: str, **options: object) -> list[tuple[int, int]]:
    """Offset and size of each process."""
    return [(process.offset, process.size) for process in jobs(text, **options)]


SIDE_BY_SIDE = [(0, M), (M, M), (2 * M, M), (3 * M, M)]


WHERE_FILES_LIE = {
    # Each clone has a file of its own, with a directory and without.
    "[r]\nnumjobs=4\nsize=1m\n": SIDE_BY_SIDE,
    "[r]\nnumjobs=4\nsize=1m\ndirectory=/data\n": SIDE_BY_SIDE,
    "[r]\nnumjobs=4\nsize=1m\ndirectory=/data:/more\n": SIDE_BY_SIDE,
    "[r]\nnumjobs=2\nsize=1m\n[s]\nsize=1m\n[t]\nsize=1m\n": SIDE_BY_SIDE,
    "[r]\nnumjobs=2\nsize=1m\n[s]\nsize=1m\nnumjobs=2\ndirectory=d\n": SIDE_BY_SIDE,
    # A name is one file, and so is a disk.
    "[r]\nnumjobs=4\nsize=1m\nfilename=x\n": [(0, M)] * 4,
    "[r]\nnumjobs=4\nsize=1m\nfilename=/dev/sdx\n": [(0, M)] * 4,
    "[/dev/sdx]\nnumjobs=4\nsize=1m\n": [(0, M)] * 4,
    "[/dev/sdx]\nnumjobs=2\noffset=1m\nsize=1m\n": [(M, M)] * 2,
    "[/dev/sdx]\noffset=99m\n[r]\nnumjobs=2\nsize=1m\n": [(99 * M, M), (0, M), (M, M)],
    "[r]\nsize=1m\nfilename=sdx\ndirectory=/dev\n[s]\nfilename=/dev/sdx\n": [(0, M), (0, DISK)],
    "[r]\nsize=1m\nfilename=d/x\n[s]\nsize=1m\nfilename=x\ndirectory=d\n": [(0, M)] * 2,
    # Files end where the last job in them does, and begin with a page.
    "[r]\nsize=5k\nfilename=x\n[s]\nsize=1m\nfilename=y\n[t]\nsize=1m\noffset=1m\nfilename=x\n": [
        (0, 8 * K),
        (2 * M, M),
        (M, M),
    ],
    # A share is that of the file.
    "[r]\nsize=2m\nfilename=x\n[s]\nsize=1m\nfilename=y\n[t]\nsize=50%\noffset=50%\nfilename=x\n": [
        (0, 2 * M),
        (2 * M, M),
        (M, M),
    ],
    # Without a filename, offset says where on the disk the first of them begins.
    "[r]\nnumjobs=2\noffset=1m\nsize=5k\n": [(M, 8 * K), (M + 8 * K, 8 * K)],
    "[r]\nnumjobs=2\noffset_increment=8m\nsize=1m\n": [(0, M), (8 * M, M)],
    # Others lie beside it.
    "[r]\noffset=1m\nsize=1m\n[s]\nsize=1m\n[t]\nsize=2m\n": [(M, M), (0, M), (2 * M, 2 * M)],
    # The names of files may be those of several jobs.
    "[r]\nnumjobs=2\nsize=1m\nfilename_format=x.$filenum\n": [(0, M)] * 2,
    "[r]\nnumjobs=2\nsize=1m\noffset=1m\nfilename_format=x\n": [(M, M)] * 2,
    "[global]\nsize=1m\nnumjobs=2\nfilename_format=x.$jobnum\n[r]\n[s]\n": [(0, M), (M, M)] * 2,
    "[r]\nsize=1m\n[r]\nsize=1m\n[s]\nsize=1m\n": [(0, M), (0, M), (M, M)],
    # Several each.
    "[r]\nnumjobs=2\nnrfiles=2\nsize=2m\n": [(0, 2 * M), (2 * M, 2 * M)],
    "[r]\nfilename=x:y\nsize=2m\n[s]\nfilename=z\nsize=1m\n[t]\nfilename=x:y\nsize=4m\n": [
        (0, 4 * M),
        (4 * M, M),
        (0, 4 * M),
    ],
}


@pytest.mark.parametrize(("text", "found"), WHERE_FILES_LIE.items())
def test_where_files_lie(text: str, found: list[tuple[int, int]]) -> None:
    notes: list[str] = []
    assert places(text, notes=notes) == found
    assert notes == []


def test_zones_of_a_file_end_with_it() -> None:
    text = "[r]\nnumjobs=2\nsize=1m\nzonemode=strided\nzonesize=64k\nzoneskip=64k\n"
    assert places(text) == SIDE_BY_SIDE[:2]


def test_a_variable_of_the_environment_may_name_the_disk() -> None:
    text = "[r]\nsize=1m\nfilename=${A}\n[s]\nsize=1m\nfilename=${B}\n"
    assert places(text) == [(0, M), (M, M)]
    assert places(text, environ={"A": "/dev/sdx", "B": "/dev/sdx"}) == [(0, M), (0, M)]


FILES_THAT_CANNOT_BE = {
    "[r]\nfilename=/dev/sdx\n[s]\nfilename=/dev/sdy\n": (
        "line 4: filename=/dev/sdy: another disk than /dev/sdx of job r, and here is one; "
        "leave the jobs of all disks but one out"
    ),
    "[r]\nsize=1m\nfilename=/dev/null\n": (
        "line 3: filename=/dev/null: /dev/null is no disk; name a file or a disk"
    ),
    "[r]\nsize=1m\nfilename=x\n[s]\nfilename=y\n": (
        "line 4: job s: size: how long y is, is not known, and there are other files; write bytes"
    ),
    "[r]\nsize=1m\nfilename=x\n[s]\nfilename=y\nsize=1m\noffset=10%\n": (
        "line 7: offset=10%: how long y is, is not known, and there are other files; write bytes"
    ),
    "[r]\nnumjobs=2\nsize=60m\n": (
        f"line 1: job r: no room for its file of {60 * M} bytes; all files need {120 * M} of "
        f"the disk's {DISK} bytes; make size smaller, or take a larger disk"
    ),
    "[r]\nfilename=/dev/sdx\n[s]\nsize=1m\ndirectory=/data\n": (
        f"line 1: job r: size: without one it uses {DISK} of the disk's {DISK} bytes, so job s "
        f"has no room for its file of {M} bytes; write how many bytes it uses"
    ),
    "[s]\nsize=1m\ndirectory=/data\n[r]\nfilename=/dev/sdx\nsize=100%\n": (
        f"line 6: size=100%: it uses {DISK} of the disk's {DISK} bytes, so job s has no room "
        f"for its file of {M} bytes; write fewer"
    ),
    "[r]\nfilename=/dev/sdx\nsize=1m\nzonemode=strided\nzonesize=1m\nzoneskip=1m\n"
    "[s]\nsize=1m\ndirectory=/data\n": (
        "line 1: job r: its zones go on to the end of the disk, so job s has no room for its "
        f"file of {M} bytes; name a file for it too"
    ),
    "[r]\nfilename=/dev/sdx\nsize=10m\n[s]\nsize=95m\ndirectory=/data\n": (
        f"line 4: job s: no room for its file of {95 * M} bytes beside what other jobs use of "
        f"the disk; all files need {95 * M} of the disk's {DISK} bytes; make size smaller, or "
        "take a larger disk"
    ),
    "[r]\nsize=2m\nfilename=x:y\n[s]\nsize=1m\nfilename=y\n": (
        "line 6: filename=y: job r has y as well, but not the same files; name the same ones "
        "in both"
    ),
    "[r]\nsize=2m\nfilename=x:y\noffset=1m\n[s]\nsize=1m\n": (
        "line 4: offset=1m: fio skips it in each of several files; leave it out"
    ),
}


@pytest.mark.parametrize(("text", "why"), FILES_THAT_CANNOT_BE.items())
def test_files_that_cannot_be(text: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        jobs(text)
    assert str(caught.value) == f"a.fio, {why}"


@needs_fio
def test_fio_has_the_same_files(tmp_path: Path) -> None:
    """Clones and jobs that share one with fio do here, and no others."""
    text = (
        "[global]\nsize=64k\nrw=write\n[a]\nnumjobs=3\n[b]\nnumjobs=2\nfilename=x\n"
        "[c]\nfilename= x\n[d]\nfilename_format=$jobname.$filenum\nnumjobs=2\n[a]\n"
        "[e]\nname=f\ndirectory=one:two\nnumjobs=3\n"
    )
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "a.fio").write_text(text)
    assert FIO
    done = subprocess.run([FIO, "a.fio"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    theirs = [path for path in tmp_path.rglob("*") if path.stat().st_size == 64 * K]
    assert len(theirs) == len(set(places(text))) == 8


def test_a_name_is_of_one_job() -> None:
    """As in fio, where that of [global] is no job's."""
    found = jobs("[global]\nname= Size\nsize=1m\nfilename=x\n[a]\n[b]\nname= c\n")
    assert [process.name for process in found] == ["a", " c"]


def test_a_note_says_what_changes_nothing() -> None:
    notes: list[str] = []
    text = "write_bw_log=${LOG}\ndo_verify=1\nverify_backlog=x\niodepth_batch=8\nrate_min=1m\n"
    found = jobs(f"[global]\n{text}[a]\nsize=1m\nwrite_bw_log=b\nthread\n", notes=notes)
    assert found == jobs("[a]\nsize=1m\n")
    assert notes == [
        "a.fio: of no effect on what is simulated: write_bw_log, do_verify, verify_backlog, "
        "iodepth_batch, rate_min"
    ]


@pytest.mark.parametrize("name", ["pipe", "link"])
def test_a_pipe_is_no_job_file(name: str, tmp_path: Path) -> None:
    """Nobody may ever write to it."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with pytest.raises(UsageError, match="is a named pipe; name a file"):
        load_jobs(tmp_path / name)


def test_what_a_shell_writes_for_a_command_is_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"[a]\nsize=1m\n")
    os.close(writer)
    assert load_jobs(f"/dev/fd/{reader}")[0].size == M
    os.close(reader)


def test_several_files() -> None:
    (process,) = jobs("[a]\nsize=10m\nnrfiles=3\noffset=1m\nopenfiles=8\n")
    assert (process.nr_files, process.open_files) == (3, 3)
    # Of 10 MB / 3 whole blocks are used; each begins with a page.
    assert (process.file_size, process.file_stride) == (3493888, 3497984)
    assert (process.offset, process.size, process.io_bytes) == (M, 3 * 3497984, 3 * 3493888)
    # The rest of the disk: they are not longer than that.
    (process,) = jobs(f"[a]\nsize={99 * M}\nnrfiles=7\noffset=1m\n")
    assert process.offset + process.size <= DISK
    # Whoever names a file has one, wherever that stands.
    notes: list[str] = []
    found = jobs("[global]\nfilename=x\n[a]\nsize=1m\nnrfiles=4\n", notes=notes)
    assert [p.nr_files for p in found] == [1]
    assert notes == ["a.fio: nrfiles=4 of a is of no effect beside a filename, as in fio"]
    # Without one, a directory for them is as good as none.
    assert jobs("[a]\nsize=1m\nnrfiles=4\ndirectory=/data\n")[0].nr_files == 4


SEVERAL_FILES_THAT_CANNOT_BE = {
    "": "line 2: nrfiles=4: fio divides size among them; write size= or filesize=",
    "size=8k": "line 2: nrfiles=4: a file of 2048 bytes holds no block of 4096; write fewer",
    "filesize=16k\nsize=1m": (
        "line 3: filesize=16k: 4 files of it are less than size=1048576; write io_size instead"
    ),
    "filesize=90m": (
        f"line 1: job a: the last of its files ends at byte {360 * M}, but the disk has {DISK} "
        "bytes; make offset or size smaller, or take a larger disk"
    ),
    "size=1m\nrw=randread\nrandom_distribution=zipf:1.2": (
        "line 2: nrfiles=4: does not go with random_distribution; leave one of the two out"
    ),
    "size=1m\nzonemode=strided\nzonesize=64k": (
        "line 2: nrfiles=4: does not go with zonemode=strided; write one of the two"
    ),
}


@pytest.mark.parametrize(("more", "why"), SEVERAL_FILES_THAT_CANNOT_BE.items())
def test_several_files_that_cannot_be(more: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        jobs(f"[a]\nnrfiles=4\n{more}\n")
    assert str(caught.value) == f"a.fio, {why}"


def test_whose_end_a_job_is() -> None:
    """Exitall is for all, wherever it stands; exit_what is a job's own."""
    text = (
        "[a]\nsize=1m\n[b]\nsize=1m\nexitall\n[c]\nnew_group\nexit_what=all\nsize=1m\n"
        "[d]\nstonewall\nsize=1m\n"
    )
    assert [(p.exits, p.exit_group) for p in jobs(text)] == [(1, 0), (1, 0), (3, 1), (1, 2)]
    assert {p.exits for p in jobs("[a]\nsize=1m\n[b]\nsize=1m\n")} == {0}
    with pytest.raises(UsageError, match=r"line 2: exitall=0: fio 3.33 takes it for exitall=1"):
        jobs("[a]\nexitall=0\nsize=1m\n")
    with pytest.raises(UsageError, match=r"line 2: exit_what=all: needs exitall; write that too"):
        jobs("[a]\nexit_what=all\nsize=1m\n")


def test_whom_a_job_waits_for_is_clear() -> None:
    waits = "[b]\nsize=1m\nwait_for=a\n"
    assert [p.wait_for for p in jobs("[a]\nsize=1m\nnumjobs=2\n" + waits)] == ["", "", "a"]
    with pytest.raises(UsageError, match=r"line 5: wait_for=x: no job above .*; above are a$"):
        jobs("[a]\nsize=1m\n" + waits.replace("=a", "=x"))
    with pytest.raises(UsageError, match=r"line 7: wait_for=a: several jobs above"):
        jobs("[a]\nsize=1m\n[a]\nsize=1m\n" + waits)


def test_zones_come_back_as_written() -> None:
    for text in ("zoned:60/10:40/90", "zoned:60/10:40/90,50/50:50/50", "zoned_abs:100/65536"):
        assert str(job("rw=randrw", f"random_distribution={text}").distribution) == text


def test_zones_are_within_the_region() -> None:
    with pytest.raises(UsageError, match=r"line 4: .*zones end at byte 2097152 of a region of"):
        job("rw=randread", "random_distribution=zoned_abs:50/1m:50/1m")
    with pytest.raises(UsageError, match="a zone holds no block of 65536 bytes; make it larger"):
        job("rw=randread", "bs=64k", "random_distribution=zoned:50/1:50/99")
    with pytest.raises(UsageError, match="does not go with zonemode=strided"):
        job("rw=randread", "random_distribution=zipf", "zonemode=strided", "zonesize=64k")
    with pytest.raises(UsageError, match="rate is set as well"):
        job("rate=1m", "rate_iops=5")


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
    shown = subprocess.run(command, capture_output=True, text=True, cwd=where, timeout=60)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    ran = []
    found = json.loads(shown.stdout[shown.stdout.index("{") :])["jobs"]
    for number, report in enumerate(found, 1):
        log = (where / f"log_lat.{number}.log").read_text().splitlines()
        rows = [[int(cell) for cell in line.split(",")] for line in log]
        ran.append(
            Ran(
                [(row[4], row[3], row[2]) for row in rows],
                sum(report[way]["total_ios"] for way in ("read", "write")),
                sum(report[way]["io_bytes"] for way in ("read", "write")),
            )
        )
    # fio starts the first clone, then the last, the last but one, ...
    return [ran[0], *reversed(ran[1:])] if len(ran) > 1 else ran


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
    ran = run_fio(text + "\n", tmp_path / "disk")
    if text.count("[") > 1:  # sections, not clones
        ran = [ran[0], *reversed(ran[1:])]
    assert len(processes) == len(ran)
    for process, real in zip(processes, ran, strict=True):
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
