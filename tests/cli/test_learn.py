# SPDX-License-Identifier: GPL-2.0-only
"""advise on a disk of no known model: what it learns of the disk from a trace."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from said import COMMAND, ran

from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.simulate import Setup, measured_curve, run_jobs
from streamsched.watch import advise, learn
from streamsched.watch.forecast import ROW, forecast, observed
from streamsched.work.blocktrace import Bio
from streamsched.work.jobfile import parse_jobs
from streamsched.work.model import senders

WD = load_disk("wd5000aaks")
TB = 1_000_000_000_000 // 512
READERS = """\
[global]
rw=read
bs=256k
direct=1
size=100g
runtime=6
time_based
[a]
[b]
offset=300g
[c]
offset=600g
"""
RANDOM = READERS.replace("rw=read", "rw=randread").replace("256k", "16k")


def recorded(disk: Disk, policy: str, text: str) -> list[Bio]:
    """What the processes of @text ask of @disk, in virtual time."""
    work = parse_jobs(text, "test", capacity_bytes=disk.capacity_sectors * 512)
    rows: list[tuple[int, ...]] = []
    run_jobs(
        Setup(disk, policy, queue_depth=32),
        list(work),
        requests=lambda part: rows.extend(ROW.iter_unpack(part)),
    )
    bios = [Bio(r[5], r[7], bool(r[11]), True, r[8] + 1, "fio", r[0], r[3]) for r in rows]
    return sorted(bios, key=lambda bio: bio.arrival_ns)


@pytest.mark.parametrize(("rate", "seeks"), [(1.6, 0.7), (0.7, 1.5)])
def test_factors_are_learned(rate: float, seeks: float) -> None:
    """Of a disk that is another one but for two factors, which then forecast it."""
    disk = learn.scaled(WD, TB, rate, seeks)
    before = recorded(disk, "stream:deadline", READERS)
    found = learn.learned(before, TB, "stream", 32, [WD])
    assert found and found.rate == pytest.approx(rate, rel=0.05)
    after = recorded(disk, "noop", RANDOM)
    found = learn.learned(after, TB, "none", 32, [WD])
    assert found and found.seeks == pytest.approx(seeks, rel=0.1)
    # Both factors, from what goes on and what jumps.
    found = learn.learned(before, TB, "stream", 32, [WD])
    assert found
    said = forecast(before, found.disk, "stream", 32, ("mq-deadline",), wider=learn.WIDER)
    after = recorded(disk, "deadline", READERS)
    came = observed(after, senders(after)).mb_s
    [range_] = [one.mb_s for one in said.forecasts]
    assert range_.low <= came <= range_.high
    plain = learn.scaled(WD, TB)
    [other] = forecast(before, plain, "stream", 32, ("mq-deadline",)).forecasts
    assert abs(range_.value - came) < abs(other.mb_s.value - came)


def test_the_nearest_disk_is_taken() -> None:
    """The one that explains the trace, not the one of that size."""
    slow, fast = load_disk("st2000dm006"), load_disk("archive-8tb")
    for disk in (slow, fast):
        bios = recorded(disk, "stream:deadline", READERS)
        found = learn.learned(bios, disk.capacity_sectors, "stream", 32, [slow, fast, WD])
        assert found and found.disk.name == disk.name
        assert found.rate == pytest.approx(1.0, rel=0.05)


def test_too_little_to_learn_from() -> None:
    bios = recorded(WD, "deadline", READERS.replace("600g", "350g"))
    assert learn.learned(bios[: learn.LEAST_SERVED - 1], TB, "mq-deadline", 32, [WD]) is None
    writes = [Bio(10_000 * i, 8, True, True, 1, "w", i * 10**7, i * 10**7 + 1) for i in range(500)]
    assert learn.learned(writes, TB, "mq-deadline", 32, [WD]) is None
    # No shipped disk is anywhere near that size.
    assert learn.learned(bios, 1000 * TB, "mq-deadline", 32, [WD]) is None


def test_what_was_done_at_once_was_one_request() -> None:
    bios = [Bio(8 * i, 8, False, True, 1, "cat", 100 + i, 5000) for i in range(4)]
    [one] = learn.joined([*reversed(bios)])
    assert (one.sector, one.sectors, one.arrival_ns) == (0, 32, 100)


@pytest.mark.parametrize("disk", advise.mechanical(), ids=lambda disk: disk.name)
def test_every_disk_can_be_scaled(disk: Disk) -> None:
    """The model takes what comes of it."""
    for times in (1 / learn.LIKE, 0.3, 1.0, 3.0, learn.LIKE):
        for factor in learn.BOUNDS:
            capacity = int(times * disk.capacity_sectors)
            made = learn.scaled(disk, capacity, factor, factor)
            assert capacity <= made.capacity_sectors < capacity + 16
            assert measured_curve(made)
    same = learn.scaled(disk, disk.capacity_sectors)
    assert abs(sum(same.zone_cylinders) - sum(disk.zone_cylinders)) <= sum(disk.zone_cylinders) / 50


def test_a_known_model_is_found_by_name() -> None:
    found = advise.of_model("ST2000DM006-2DM164")
    assert found == load_disk("st2000dm006")
    assert advise.of_model("HGST HUS726T6TALE6L4") is None


# ---- the command ----


def advised(bios: list[Bio], tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command on a trace of @bios."""
    events = [(bio.arrival_ns, "Q", bio) for bio in bios]
    events += [(bio.complete_ns, "C", bio) for bio in bios]
    events.sort(key=lambda event: event[0])
    trace = tmp_path / "trace.blkparse"
    trace.write_text(
        "".join(
            f"8,0 0 {number} {ns // 10**9}.{ns % 10**9:09d} {bio.pid} {what} "
            f"{'WS' if bio.write else 'RS'} {bio.sector} + {bio.sectors} [x]\n"
            for number, (ns, what, bio) in enumerate(events, 1)
        )
    )
    return ran(COMMAND, "advise", "--trace", trace, *options, check=True)


def test_the_answer_says_where_its_description_came_from(tmp_path: Path) -> None:
    bios = recorded(WD, "deadline", READERS.replace("600g", "350g"))
    said = advised(bios, tmp_path)
    assert "\nLearned from this trace: nearest " in said.stdout
    assert all(len(line) <= 80 for line in said.stdout.splitlines())
    learned = json.loads(advised(bios, tmp_path, "--output", "json").stdout)
    named = json.loads(advised(bios, tmp_path, "--output", "json", "--model", WD.name).stdout)
    assert learned["learned"].keys() == {"transfer_rate", "seeks"} and named["learned"] is None
    widths = [
        (one["high"] - one["low"]) / one["value"]
        for one in (document["forecasts"][1]["mb_s"] for document in (learned, named))
    ]
    assert widths[0] >= 2 * (0.05 + learn.WIDER) - 0.01 > widths[1]


def test_a_trace_too_short_to_learn_from(tmp_path: Path) -> None:
    bios = recorded(WD, "deadline", READERS.replace("600g", "350g"))[:100]
    said = advised(bios, tmp_path)
    assert "too few reads to learn what disk it is; the next larger one stands in" in said.stderr
    assert "wd5000aaks stands for trace.blkparse" in said.stderr
    assert "Learned" not in said.stdout
