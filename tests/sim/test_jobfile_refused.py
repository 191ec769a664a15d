# SPDX-License-Identifier: GPL-2.0-only
"""What is refused in a job file, and with which sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobfile_driver import DISK, M, job, jobs
from said import refusal

from streamsched.base.errors import UsageError
from streamsched.work import fio_options
from streamsched.work.jobfile import load_jobs


def test_a_group_has_one_weight() -> None:
    text = "[a]\nsize=1m\ncgroup=vm\nowner_weight=2\n[b]\nsize=1m\ncgroup=vm\n"
    assert refusal(jobs, text).endswith(
        "owner_weight: none: another section of cgroup vm has 2; write the same in both"
    )
    assert [process.weight for process in jobs(text + "owner_weight=2\n")] == [2, 2]


def test_include_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.fio"

    def message() -> str:
        return refusal(load_jobs, path, capacity_bytes=DISK).replace(f"{tmp_path}/", "")

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
WRONG_LINES = {
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


@pytest.mark.parametrize(("line", "problem"), WRONG_LINES.items())
def test_wrong_line(line: str, problem: str) -> None:
    size = [] if line.startswith("size") else ["size=1m"]
    text = line.replace(" =", "=")
    assert refusal(jobs, "\n".join(["[a]", line, *size])) == f"a.fio, line 2: {text}: {problem}"


WRONG_SECTIONS = {
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


@pytest.mark.parametrize(("text", "message"), WRONG_SECTIONS.items())
def test_wrong_section(text: str, message: str) -> None:
    assert refusal(jobs, text).startswith(message)


WITHOUT_CAPACITY = {
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


@pytest.mark.parametrize(("lines", "message"), WITHOUT_CAPACITY.items())
def test_percentages_need_the_capacity(lines: str, message: str) -> None:
    assert refusal(jobs, f"[a]\n{lines}", capacity_bytes=None) == message


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


def test_zones_are_within_the_region() -> None:
    with pytest.raises(UsageError, match=r"line 4: .*zones end at byte 2097152 of a region of"):
        job("rw=randread", "random_distribution=zoned_abs:50/1m:50/1m")
    with pytest.raises(UsageError, match="a zone holds no block of 65536 bytes; make it larger"):
        job("rw=randread", "bs=64k", "random_distribution=zoned:50/1:50/99")
    with pytest.raises(UsageError, match="does not go with zonemode=strided"):
        job("rw=randread", "random_distribution=zipf", "zonemode=strided", "zonesize=64k")
    with pytest.raises(UsageError, match="rate is set as well"):
        job("rate=1m", "rate_iops=5")
