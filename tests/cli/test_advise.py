# SPDX-License-Identifier: GPL-2.0-only
"""advise: who sent what, what the model makes of it, and what is said of that."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from said import COMMAND, ran

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.hosts.device import Device
from streamsched.sim.diskfile import load_disk
from streamsched.watch import advise
from streamsched.watch.forecast import forecast
from streamsched.work import model as workmodel
from streamsched.work.blocktrace import Bio, bios

MS = 1_000_000
DISK = load_disk("wd5000aaks")
GB = 1_000_000_000 // 512


def reader(pid: int, sector: int, number: int, think: int = 0, begin: int = 0) -> list[Bio]:
    """One that reads 64 KiB after 64 KiB, each taking 10 ms, as two do that share a disk."""
    step = 10 * MS + think
    return [
        Bio(
            sector + 128 * i,
            128,
            False,
            True,
            pid,
            "cat",
            begin + i * step,
            begin + i * step + step - think,
        )
        for i in range(number)
    ]


def two_readers() -> list[Bio]:
    both = [*reader(1, 0, 300), *reader(2, 200 * GB, 300, begin=5 * MS)]
    return sorted(both, key=lambda bio: bio.arrival_ns)


# ---- who sent what ----


def test_a_process_is_a_sender() -> None:
    found = workmodel.senders(two_readers())
    assert [(one.pid, len(one.bios), one.sequential) for one in found] == [
        (1, 300, True),
        (2, 300, True),
    ]


def test_a_worker_that_sends_for_several_is_as_many_senders() -> None:
    """As a loop device's: its streams wait at the same time, so none depends on the others."""
    handed_on = [Bio(**{**fields(bio), "pid": 7}) for bio in two_readers()]
    assert [len(one.bios) for one in workmodel.senders(handed_on)] == [300, 300]
    # One who reads two files in turn waits for each request.
    alone = [*reader(7, 0, 100), *reader(7, 200 * GB, 100, begin=1000 * MS)]
    assert [len(one.bios) for one in workmodel.senders(alone)] == [200]


def fields(bio: Bio) -> dict[str, Any]:
    return {name: getattr(bio, name) for name in Bio.__slots__}


def test_work_goes_on_behind_where_it_ended() -> None:
    [one] = workmodel.senders(reader(1, 0, 20))
    text = b"".join(workmodel.endless([one], DISK.capacity_sectors, 10**9)).decode()
    sectors = [int(found) for found in re.findall(r" Q RS (\d+) \+ 128 ", text)]
    assert len(sectors) > 1000 and sectors == [128 * i for i in range(len(sectors))]


def scripted(each: int, pause: int = 0) -> list[Bio]:
    """500 reads far apart; every @each of another process, as a script's commands, after @pause."""
    dice, at, found = random.Random(1), 0, []
    for i in range(500):
        at += 300_000 + (pause if i % 25 == 0 else 0)
        took = int(dice.uniform(8, 16.5) * MS)
        found.append(
            Bio(dice.randrange(900 * GB // 2), 8, False, True, i // each, "x", at, at + took)
        )
        at += took
    return found


def test_who_ended_rests_until_the_recording_is_over() -> None:
    goes_on, ended = reader(1, 0, 300), reader(2, 200 * GB, 30, begin=5 * MS)
    late = reader(3, 300 * GB, 100, begin=2000 * MS)

    def rests(bios: list[Bio]) -> list[float]:
        return [one.rest_ns / MS for one in workmodel.senders(bios)]

    assert rests([*goes_on, *ended]) == [0, 3000 - 300]
    # Only where the recording is repeated has who came late to wait.
    assert rests([*goes_on, *late]) == [0, 0]
    assert rests([*goes_on, *late, *ended]) == [0, 2000, 3000 - 300]
    # A pause as it had them before is no end, nor is one that all make.
    paused = [*reader(2, 200 * GB, 30), *reader(2, 201 * GB, 30, begin=1500 * MS)]
    assert rests([*goes_on, *paused]) == rests([*goes_on[:30], *ended]) == [0, 0]


# ---- what is forecast ----


@pytest.mark.parametrize("pause", [0, 1000 * MS], ids=["at once", "pausing"])
def test_a_scripts_commands_are_forecast_as_one_process(pause: int) -> None:
    """One after the other; endless, each, they would all be there at the same time."""
    one, several = (
        forecast(scripted(each, pause), DISK, "mq-deadline", 32, ()) for each in (500, 25)
    )
    assert (len(one.senders), len(several.senders)) == (1, 20)
    assert abs(several.error) < 0.1 > abs(several.error - one.error)


def test_two_readers_are_forecast_to_gain() -> None:
    """Under none they have a tenth of what stream gives them."""
    said = forecast(two_readers(), DISK, "none", 1, ("stream",))
    [one] = said.forecasts
    assert one.mb_s.value > 60 > 10 > said.model.mb_s
    assert one.mb_s.low <= one.mb_s.value <= one.mb_s.high
    assert one.least_share > 0.8
    found = advise.advice("sda", DISK, 3.0, said)
    assert found.best is one and "times as much" in found.why
    assert advise.command(found).endswith("echo stream >/sys/block/sda/queue/scheduler")
    assert all(len(line) <= 80 for line in advise.lines(found))
    document = json.loads(advise.document(found))
    assert document["advice"] == "stream" and document["loses_most"]["pid"] in (1, 2)


def test_one_reader_is_left_alone() -> None:
    quick = [
        Bio(**{**fields(bio), "arrival_ns": i * 700_000, "complete_ns": i * 700_000 + 690_000})
        for i, bio in enumerate(reader(1, 0, 600))
    ]
    found = advise.advice("sda", DISK, 0.4, forecast(quick, DISK, "mq-deadline", 32))
    assert found.best is None
    assert "Leave it as it is: no scheduler would do more here." in list(advise.lines(found))


def test_the_model_of_another_disk_forecasts_nothing() -> None:
    slow = [
        Bio(
            **{
                **fields(bio),
                "arrival_ns": 40 * bio.arrival_ns,
                "complete_ns": 40 * bio.complete_ns,
            }
        )
        for bio in two_readers()
    ]
    found = advise.advice("sda", DISK, 3.0, forecast(slow, DISK, "none", 1, ("stream",)))
    with pytest.raises(StreamschedError, match=r"sda: the model of wd5000aaks makes \+\d+ % MB/s"):
        advise.check_model(found, named=True)


def cold_reads(took_ms: float, number: int = 40) -> list[Bio]:
    """Reads far from one another, and between them some in sequence that a cache answers."""
    found = []
    for i in range(number):
        place, at = i * 7 * GB, i * 50 * MS
        found.append(Bio(place, 8, False, True, 1, "x", at, at + int(took_ms * MS)))
        found += [
            Bio(
                place + 8 * n,
                8,
                False,
                True,
                1,
                "x",
                at + n * MS + 20 * MS,
                at + n * MS + 20 * MS + 9,
            )
            for n in range(1, 9)
        ]
    return found


def test_the_description_must_be_this_disks(tmp_path: Path) -> None:
    disk = load_disk("wd5000aaks")
    (tmp_path / "size").write_text(f"{disk.capacity_sectors}\n")
    device = Device("sda", tmp_path)
    advise.check_size(device, disk)
    with pytest.raises(UsageError, match=r"^sda: has 976773168 sectors and exos-x18 has \d+; name"):
        advise.check_size(device, load_disk("exos-x18"))


def test_what_answers_at_once_everywhere_does_not_rotate() -> None:
    why = advise.why_no_seeks(cold_reads(0.2))
    assert why == (
        "it looks like no rotating disk: of 40 reads far from all before, three in four took less "
        "than 0.20 ms"
    )
    # Nine in ten are answered at once, by read-ahead; the others seek.
    assert advise.why_no_seeks(cold_reads(6)) is None
    assert advise.why_no_seeks(cold_reads(0.2, 9)) is None  # too few
    quick = [Bio(**{**fields(bio), "write": True}) for bio in cold_reads(0.2)]
    assert advise.why_no_seeks(quick) is None  # a drive's cache takes writes at once
    assert advise.why_no_seeks(two_readers()) is None


@pytest.mark.parametrize("name", ["grep-twice", "pg-scan", "postmark"])
def test_shipped_traces_of_fast_storage(name: str, root: Path, tmp_path: Path) -> None:
    """At once, in every form, and no dead end."""
    trace = root / "traces" / f"{name}.blktrace.zst"
    call = [COMMAND, "advise", "--trace", trace, "--scheduler", "none"]
    text = ran(*call, check=True, timeout=60)
    assert not text.stderr and all(len(line) <= 80 for line in text.stdout.splitlines())
    assert "looks like no rotating disk" in " ".join(text.stdout.split())
    assert "Leave it as it is: stream saves seeks, and there are none." in text.stdout
    done = ran(*call, "--output", "json", check=True)
    answer = json.loads(done.stdout)
    assert (answer["format"], answer["model"], answer["advice"]) == (advise.FORMAT, None, "none")
    page = tmp_path / "page.html"
    subprocess.run([*call, "--to", page], check=True)
    assert page.read_text().startswith(advise.MARK) and "no rotating disk" in page.read_text()


def test_the_model_that_comes_nearest_may_be_far() -> None:
    """It was learned, or named with --model: what helps differs."""
    busy = two_readers()
    found = advise.advice("t", DISK, 3.0, forecast(busy, DISK, "none", 1), traced=True)
    far = dataclasses.replace(found.forecast.model, mb_s=9 * found.forecast.observed.mb_s)
    found = dataclasses.replace(found, forecast=dataclasses.replace(found.forecast, model=far))
    says = {False: "docs/guide/ADVISE.md says what can be done", True: "with --model"}
    for named, said in says.items():
        with pytest.raises(StreamschedError, match=said):
            advise.check_model(found, named=named)


# ---- the kernel's trace ----

LINES = """\
             cat-70      [000] ..... 1.000000: block_bio_queue: 8,0 R 1000 + 8 [cat]
 kworker/0:1-H-71      [001] ..... 1.000100: block_bio_queue: 8,0 WS 5000 + 16 [kworker/0:1]
             cat-70      [000] ..... 1.000200: block_bio_queue: 8,16 R 1000 + 8 [cat]
          <idle>-0       [000] ..s.. 1.010000: block_rq_complete: 8,0 R () 1000 + 8 be,0,4 [0]
          <idle>-0       [000] ..s.. 1.020000: block_rq_complete: 8,0 WS () 5000 + 16 be,0,4 [0]
"""


def test_what_was_wanted_and_done() -> None:
    first, second = bios(LINES.splitlines(), "8,0")
    assert (first.pid, first.comm, first.sector, first.write) == (70, "cat", 1000, False)
    assert first.complete_ns - first.arrival_ns == 10 * MS
    assert (second.pid, second.comm, second.write, second.sync) == (71, "kworker/0:1-H", True, True)


def test_a_trace_of_that_text_is_read_alike(tmp_path: Path) -> None:
    """What is watched, and the same text as a file: from tracefs, and as perf script has it."""
    rows = range(200)
    lines = [
        text
        for i in rows
        for text in (
            f"       cat-{70 + i % 2}  [00{i % 2}] ..... {i}.000000: block_bio_queue: 8,0 "
            f"{'RS' if i % 3 else 'WS'} {i * 10**6} + {8 << i % 4} [cat]",
            f"    <idle>-0   [000] ..s.. {i}.012000: block_rq_complete: 8,0 "
            f"{'RS' if i % 3 else 'WS'} () {i * 10**6} + {8 << i % 4} be,0,4 [0]",
        )
    ]
    seen = bios(lines, "8,0")
    perf = [
        re.sub(r"(cat|<idle>)-(\d+) (.*?) ..... (\S+: )", r"\1 \2 \3 \4 block:", one)
        for one in lines
    ]
    for name, text in (("trace", ["# tracer: nop", *lines]), ("script", perf)):
        path = tmp_path / name
        path.write_text("\n".join(text) + "\n")
        read = advise.traced(str(path), None, None)
        assert [dataclasses.replace(one, comm="cat") for one in read] == seen
        done = ran(COMMAND, "replay", path, "--policy", "noop", "--output", "json", check=True)
        assert json.loads(done.stdout)["runs"][0]["disk_requests"] == len(rows)


def test_lost_events_are_counted() -> None:
    lost = [*LINES.splitlines(), "CPU:1 [LOST 20 EVENTS]", "CPU:0 [LOST 3 EVENTS]"]
    with pytest.raises(StreamschedError, match="23 events are lost"):
        bios(lost, "8,0")


# ---- the command ----


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name a disk to watch, as sda, or a recorded one with --trace"),
        (["sda", "--trace", "x"], "one of them"),
        (["sda", "--seconds", "0"], "--seconds 0: is not within 1 to 3600"),
        (["no-such-disk"], "no-such-disk: there is no such block device"),
        (["--trace", "TRACE", "--scheduler", "kyber"], "--scheduler kyber: what was recorded"),
        (["--trace", "TRACE", "--model", "ide-20g", "--queue-depth", "1"], "a larger disk"),
        (["--trace", "TRACE", "--queue-depth", "0"], "--queue-depth 0: "),
        (["--trace", "TRACE", "--queue-depth", "33"], "takes 1 to 32 commands at once"),
        (
            ["--trace", "SHORT"],
            "has only 3 requests, too few to forecast anything; record a longer",
        ),
        (["--trace", "TRACE", "--seconds", "5"], "--seconds: not with --trace"),
        (["sda", "--device", "8,0"], "--device: only with --trace"),
        (["--trace", "TRACE", "--output", "json", "--to", "x.html"], "--output: not with --to"),
    ],
)
def test_what_a_person_can_get_wrong(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    for name, number in (("TRACE", 59), ("SHORT", 3)):
        (tmp_path / name).write_text(
            "".join(
                f"8,0 0 {2 * i} {i}.000000000 7 Q R {i * 10**6} + 8 [x]\n"
                f"8,0 0 {2 * i + 1} {i}.010000000 7 C R {i * 10**6} + 8 [0]\n"
                for i in range(1, number + 1)
            )
        )
    done = ran(COMMAND, "advise", *arguments, cwd=tmp_path)
    assert done.returncode in (1, 2) and sentence in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and not done.stdout
