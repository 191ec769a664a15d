# SPDX-License-Identifier: GPL-2.0-only
"""blktrace's files, one for each processor: which belong together, and their order of time."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from said import COMMAND, ran, refusal

from streamsched.api import Trace, simulate
from streamsched.base.errors import UsageError
from streamsched.sim.simulate import trace_requests
from streamsched.work import tracefile
from streamsched.work.processors import joined, note_of, parts_of

MAGIC = 0x65617407
READ = 1 << 16
QUEUE, COMPLETE, MESSAGE = 1 | 1 << 20, 8 | 1 << 23, 1 << 26
MS = 1_000_000


def event(ns: int, sector: int, action: int, processor: int, pdu: bytes = b"") -> bytes:
    """One record of blktrace, of a read of 64 KiB."""
    return (
        struct.pack(
            "<IIQQIIIIIHH",
            *(MAGIC, 1, ns, sector, 65536, action | READ, 7 + processor, 8 << 20, processor, 0),
            len(pdu),
        )
        + pdu
    )


def made(folder: Path, seconds: float, processors: int = 2, name: str = "sda") -> list[Path]:
    """A reader on each processor, each in a place of its own; all complete on the last one."""
    logs: list[list[tuple[int, bytes]]] = [[] for _ in range(processors)]
    chance = random.Random(7)
    for number in range(int(seconds * 200)):
        ns, by = number * 5 * MS, number % processors
        sector = by * 50_000_000 + number // processors * 128
        pdu = b"cat\0" if chance.random() < 0.1 else b""
        logs[by].append((ns, event(ns, sector, QUEUE, by, pdu)))
        logs[-1].append((ns + 9 * MS, event(ns + 9 * MS, sector, COMPLETE, processors - 1)))
    folder.mkdir(exist_ok=True)
    files = [folder / f"{name}.blktrace.{number}" for number in range(processors)]
    for file, log in zip(files, logs, strict=True):
        log.sort()
        # A message has a time of no order.
        file.write_bytes(event(0, 0, MESSAGE, 0, b"name") + b"".join(one for _, one in log))
    return files


def requests(path: Path | str, *, skip_bad: bool = False) -> list[tuple[int, ...]]:
    """What a trace is read as."""
    opened = tracefile.open_trace(path, skip_bad=skip_bad)
    return [
        (one.arrival_ns, one.complete_ns, one.sector, one.owner)
        for one in trace_requests(opened.format, opened.chunks(), skip_bad=skip_bad)
    ]


@pytest.mark.parametrize("processors", [2, 5, 64])
def test_they_are_one_trace(processors: int, tmp_path: Path) -> None:
    """Longer than what the reader puts in order by itself, and than a piece of a file."""
    files = made(tmp_path / "all", 40, processors)
    want = 40 * 200
    whole = requests(tmp_path / "all")
    assert len(whole) == want
    assert [one[0] for one in whole] == [number * 5 * MS for number in range(want)]
    assert all(done - came == 9 * MS for came, done, _, _ in whole)
    assert [one[3] for one in whole] == [7 + number % processors for number in range(want)]
    assert tracefile.open_trace(tmp_path / "all").sha256() == (
        hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    )


def test_every_name_of_it(tmp_path: Path) -> None:
    files = [str(file) for file in made(tmp_path / "two", 1, 12)]
    for name in ("two", "two/sda", "two/sda.blktrace", "two/sda.blktrace.*", "two/."):
        assert parts_of(str(tmp_path / name)) == files
    assert joined(files) == joined(files[::-1]) == [str(tmp_path / "two" / "sda.blktrace.*")]
    packed = tmp_path / "two" / "sda.blktrace.11.gz"
    packed.write_bytes(gzip.compress(Path(files[11]).read_bytes()))
    with pytest.raises(UsageError, match=r"sda.blktrace: its processor 11 has two files"):
        parts_of(str(tmp_path / "two"))
    Path(files[11]).unlink()
    assert parts_of(str(tmp_path / "two"))[-1] == str(packed)
    assert len(requests(tmp_path / "two" / "sda")) == 200
    # A file with just this name is what is named.
    (tmp_path / "two" / "sda").write_text("x")
    assert parts_of(str(tmp_path / "two" / "sda")) == [str(tmp_path / "two" / "sda")]


def test_others_stay_what_they_are(tmp_path: Path) -> None:
    one, other = made(tmp_path, 1, 1, "sda") + made(tmp_path, 1, 1, "sdb")
    assert joined([str(one), str(other), "x", "-"]) == [str(one), str(other), "x", "-"]
    assert parts_of("-") == ["-"]
    assert len(requests(one)) == 200


def sentence(*arguments: str | Path) -> str:
    """What the command refuses."""
    done = ran(COMMAND, *arguments)
    assert done.returncode == 2 and not done.stdout and done.stderr.count("\n") == 1, done
    return done.stderr.removeprefix("streamsched: ").rstrip("\n")


def test_one_of_several_is_refused(tmp_path: Path) -> None:
    files = made(tmp_path / "two", 1, 3)
    says = f"{files[0]}: is one of the 3 files of a trace, one for each processor; name the whole"
    says += f" trace, as {tmp_path / 'two' / 'sda'}"
    some = f"the trace has 3 files, one for each processor; name each of them once, or {tmp_path}"
    for command in ("replay", "report"):
        to = ("--to", tmp_path / "p.html") if command == "report" else ()
        for named in ([files[0]], files[:2], [*files, files[0]]):
            assert some in sentence(command, *named, *to)
    assert sentence("advise", "--trace", files[0]) == says
    # As a shell writes `--trace two/*`.
    assert sentence("advise", "--trace", files[0], files[1]) == says
    with pytest.raises(UsageError, match="the trace has 3 files"):
        simulate(Trace(str(files[1])))
    made(tmp_path / "two", 1, 2, "sdb")
    assert sentence("replay", tmp_path / "two") == (
        f"{tmp_path / 'two'}: has 2 traces (sda, sdb); name one of them, as in "
        f"{tmp_path / 'two' / 'sda'}"
    )
    assert "is a folder, and has no trace" in sentence("replay", tmp_path)
    assert "sda has a file for each processor, which is blktrace's" in sentence(
        "replay", tmp_path / "two" / "sda", "--format", "spc"
    )


def test_no_part_is_written_over(tmp_path: Path) -> None:
    files = made(tmp_path / "two", 1)
    before = files[1].read_bytes()
    for named in (files, [tmp_path / "two"]):
        assert "sda.blktrace.1: " in sentence("replay", *named, "--to", files[1])
        assert files[1].read_bytes() == before


def test_replayed_it_is_one_disk(tmp_path: Path) -> None:
    """Two readers that compete, and one trace: not two disks one behind the other."""
    files = made(tmp_path / "two", 5)
    call = [COMMAND, "replay", "--policy", "noop,stream:deadline", "--output", "json"]
    found = []
    for named in (files, [tmp_path / "two"]):
        done = ran(*call, *named, check=True)
        assert not done.stderr
        found.append(json.loads(done.stdout))
    assert found[0].pop("work") == "sda.blktrace.*" and found[1].pop("work") == "two"
    assert found[0] == found[1]
    slow, fast = found[0]["runs"]
    assert fast["throughput_mb_s"] > 3 * slow["throughput_mb_s"]
    assert slow["bytes_read"] == 1000 * 65536
    assert simulate([Trace(str(file)) for file in files], policies="noop").rows()[0][
        "throughput_mb_s"
    ] == pytest.approx(slow["throughput_mb_s"])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-20], "truncated, 28 bytes of it are there"),
        (lambda data: data[:52] + b"x" * 48 + data[100:], "2 (byte 52): bad magic 0x78787878"),
        (lambda data: b"text that is none" * 9, "1 (byte 0): bad magic 0x74786574, expected"),
    ],
)
def test_what_is_bad_is_said_of_its_file(
    damage: Callable[[bytes], bytes], says: str, tmp_path: Path
) -> None:
    files = made(tmp_path / "two", 5)
    bad = damage(files[1].read_bytes())
    files[1].write_bytes(bad)
    message = refusal(requests, tmp_path / "two")
    assert message.startswith(f"{files[1]}: record ") and says in message
    assert len(requests(tmp_path / "two", skip_bad=True)) > 490
    words = ["--skip-bad", "--policy", "noop", "--output", "json"]
    done = ran(COMMAND, "replay", tmp_path / "two", *words, check=True)
    assert json.loads(done.stdout)["runs"][0]["skipped_records"] >= 1


def test_an_empty_file_is_an_idle_processor(tmp_path: Path) -> None:
    files = made(tmp_path / "two", 1)
    files[0].rename(tmp_path / "two" / "sda.blktrace.2")
    files[0].write_bytes(b"")
    assert len(requests(tmp_path / "two")) == 200
    for file in (files[1], tmp_path / "two" / "sda.blktrace.2"):
        file.write_bytes(b"")
    with pytest.raises(UsageError, match="the trace is empty"):
        requests(tmp_path / "two")


def test_what_may_be_missing_is_said(tmp_path: Path) -> None:
    files = made(tmp_path / "four", 1, 4)
    assert note_of(str(tmp_path / "four")) is None
    files[2].unlink()
    note = note_of(str(tmp_path / "four"))
    assert note and "none of processor 2 is there" in note
    alone = tmp_path / "sda.blktrace.0"
    files[0].rename(alone)
    note = note_of(str(alone))
    assert note and "none of processor 1 is there" in note
    done = ran(COMMAND, "replay", alone, check=True)
    assert done.stderr == f"streamsched: note: {note}\n"
    assert note_of("-") is None
