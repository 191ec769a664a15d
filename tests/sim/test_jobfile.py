# SPDX-License-Identifier: GPL-2.0-only
"""What job files mean: fields, defaults, values, clones, seeds, included files."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_text import job_text
from jobfile_driver import DISK, G, K, M, job, jobs

from streamsched.base import units
from streamsched.base.errors import UsageError
from streamsched.sim.workloads import WORKLOADS, job_path, shipped_jobs
from streamsched.work import fio_options, fio_values
from streamsched.work.jobfile import load_jobs, options_markdown
from streamsched.work.process import Process


def test_process_is_struct_sim_job(root: Path) -> None:
    header = (root / "sim/job.h").read_text()
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
    text = (root / "docs/sim/JOBS.md").read_text()
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


def test_each_clone_draws_its_own_numbers() -> None:
    """Also where the file gives a seed."""
    for line in ("", "randseed=9"):
        seeds = [one.seed for one in jobs(f"[a]\nsize=1m\n{line}\nnumjobs=4\n[b]\nsize=1m")]
        assert len(set(seeds)) == 5


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


# Units.


@given(st.integers(0, 2**63 - 1))
def test_bytes_come_back(value: int) -> None:
    assert units.fio_bytes(units.format_bytes(value)) == value


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


def test_zones_come_back_as_written() -> None:
    for text in ("zoned:60/10:40/90", "zoned:60/10:40/90,50/50:50/50", "zoned_abs:100/65536"):
        assert str(job("rw=randrw", f"random_distribution={text}").distribution) == text
