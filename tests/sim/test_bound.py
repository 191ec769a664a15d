# SPDX-License-Identifier: GPL-2.0-only
"""Bounds (streamsched/bound/): against the model, against the best order, against policies."""

from __future__ import annotations

import dataclasses
import itertools
import random
import statistics
import time
from pathlib import Path

import exact_bound as exact
import pytest
from exact_bound import Read
from job_text import job_text
from rich.console import Console

from streamsched._core import ffi, lib
from streamsched.base.errors import StreamschedError, UsageError
from streamsched.bound import arm as arms
from streamsched.bound import trace
from streamsched.bound.arm import Arm
from streamsched.bound.job import Absence, JobBound
from streamsched.bound.mix import Asked, Mix
from streamsched.bound.party import Kind, Party, sharing
from streamsched.bound.spread import Spread, spread_of
from streamsched.sim.array import parse_array
from streamsched.sim.diskfile import list_disks, load_disk
from streamsched.sim.requestlog import row_layout
from streamsched.sim.simulate import Setup, disk_params, drive_memory, run_jobs, run_trace
from streamsched.sim.tasks import Trace
from streamsched.work.jobfile import parse_jobs
from streamsched.work.tracefile import open_trace

np = pytest.importorskip("numpy")
pytest.importorskip("scipy")

DISKS = ("st2000dm006", "exos-x18", "wd5000aaks")
ARMS = [Arm(load_disk(name)) for name in DISKS]
CASES, SAMPLE = 1000, "small"


class Drive:
    """The model, one command after the other."""

    def __init__(self, arm: Arm) -> None:
        self.params = disk_params(arm.disk)
        self.drive = drive_memory(self.params)
        assert not lib.hdd_drive_init(self.drive, self.params, ffi.new("char **"))
        self.now = 0
        self.kept: list[object] = []

    def read(self, sector: int, nr_sectors: int) -> tuple[int, int]:
        """When the drive began with it, and the positioning; goes on when it is done."""
        command = ffi.new("struct hdd_cmd *")
        command.sector, command.nr_sectors, command.op = sector, nr_sectors, lib.HDD_READ
        self.kept.append(command)
        lib.hdd_drive_submit(self.drive, command, self.now)
        self.now = lib.hdd_drive_next_ns(self.drive)
        lib.hdd_drive_pop(self.drive, self.now)
        return command.start_ns, command.position_ns


@pytest.mark.unit
@pytest.mark.parametrize("arm", ARMS, ids=DISKS)
def test_places_and_ways_are_those_of_the_model(arm: Arm) -> None:
    dice, turn = random.Random(1), arm.disk.rotation_ns
    last = arm.disk.capacity_sectors - 4096
    for number in range(200):
        one = dice.randrange(last)
        reach = 10**8 if number % 2 else last
        other = min(max(one + dice.randrange(-reach, reach), 0), last)
        if abs(other - one) < 10_000:  # read ahead
            continue
        drive = Drive(arm)
        drive.read(one, 8)
        start, took = drive.read(other, 8)
        spots = arm.spots(np.array([one, other]))
        way = float(arm.seek_ns(abs(int(spots.cylinder[1] - spots.cylinder[0]))))
        found = way + (spots.angle_ns[1] - (start + way)) % turn
        off = abs(found - took)
        assert min(off, abs(off - turn)) < arms.SLACK_NS
        assert arm.least_seek_ns(abs(int(spots.cylinder[1] - spots.cylinder[0]))) <= took + 1


@pytest.mark.unit
def test_a_way_over_another_place_is_not_shorter() -> None:
    for name in list_disks():
        try:
            arm = Arm(load_disk(name))
        except UsageError:
            continue
        far = np.unique(np.geomspace(1, 200_000, 300).astype(int))
        both = arm.least_seek_ns(far)[:, None] + arm.least_seek_ns(far)[None, :]
        assert (both >= arm.least_seek_ns(far[:, None] + far[None, :])).all(), name


# ---- a few requests ----


def small_case(dice: random.Random, most: int = exact.MOST) -> tuple[Arm, list[Read]]:
    """Up to @most requests of some processes: in order, at random, or several at once."""
    arm = dice.choice(ARMS)
    capacity = arm.disk.capacity_sectors
    places = []
    for _ in range(dice.randint(1, 6)):
        span = dice.choice((2**21, 2**28, capacity // 10))
        begin = dice.randrange(capacity * 8 // 10)
        places.append([dice.choice(("order", "random", "deep")), begin, span])
    sectors = [dice.choice((8, 128, 1024)) for _ in places]
    reads = []
    for number in range(dice.randint(2, most)):
        process = dice.randrange(len(places))
        kind, begin, span = places[process]
        if kind == "order":
            sector = begin
            places[process][1] += sectors[process]
        else:
            sector = begin + dice.randrange(span)
        # Several outstanding: in any order.
        owner = 100 + number if kind == "deep" else process
        reads.append(Read(sector, sectors[process], owner))
    return arm, reads


@pytest.mark.property
def test_the_best_order_is_the_best() -> None:
    dice = random.Random(2)
    for _ in range(60):
        arm, reads = small_case(dice, 6)
        ways, first = exact.table(arm, reads)
        ends = []
        for order in itertools.permutations(range(len(reads))):
            of = [[at for at in order if reads[at].process == one.process] for one in reads]
            if all(some == sorted(some) for some in of):
                ends.append(first[order[0]] + sum(ways[a, b] for a, b in itertools.pairwise(order)))
        assert exact.optimum_ns(ways, first, reads) == pytest.approx(min(ends))


def tightness(cases: int, seed: int) -> list[float]:
    """The floor's part of the best order's time, of random small cases."""
    dice = random.Random(seed)
    parts = []
    for _ in range(cases):
        arm, reads = small_case(dice)
        ways, first = exact.table(arm, reads)
        best = exact.optimum_ns(ways, first, reads)
        floor = exact.floor_ns(ways, first, reads)
        assert floor <= best * (1 + 1e-9), (arm.disk.name, reads)
        parts.append(floor / best)
    return parts


@pytest.mark.property
def test_the_floor_is_below_the_best_order_and_near_it() -> None:
    parts = sorted(tightness(CASES, 3))
    tenths = [round(parts[len(parts) * tenth // 10], 3) for tenth in range(10)]
    print(f"floor / best order, least and each tenth: {tenths}")
    assert statistics.median(parts) >= 0.9


@pytest.mark.property
def test_no_order_on_the_model_beats_the_floor() -> None:
    dice = random.Random(4)
    for _ in range(150):
        arm, reads = small_case(dice, 8)
        floor = exact.floor_ns(*exact.table(arm, reads), reads)
        # Any order in which each process's come as they are.
        left = {one.process: [r for r in reads if r.process == one.process] for one in reads}
        drive = Drive(arm)
        while left:
            process = dice.choice(list(left))
            one = left[process].pop(0)
            left = {owner: some for owner, some in left.items() if some}
            drive.read(one.sector, one.nr_sectors)
        # What was read ahead by chance is no part of the table.
        near = any(
            0 < other.sector - one.sector < 2 * arm.disk.segment_sectors
            for one in reads
            for other in reads
        )
        assert near or drive.now >= floor, (arm.disk.name, reads)


# ---- mixes ----


def stream(number: int, arm: Arm, rate: float = 1e8) -> Party:
    """A reader that the medium alone limits, at a place of its own."""
    first = number * arm.disk.capacity_sectors // 10
    end = first + 2048
    byte_ns = 1e9 / rate
    low = arm.cylinder(first)
    return Party(
        name=f"reader{number}",
        kind=Kind.stream,
        rate=rate,
        alone_s=20.0,
        first=first,
        end=end,
        low=low,
        high=low,
        request_bytes=65536,
        head_ns=byte_ns,
        bare_ns=byte_ns,
        slot_ns=0.0,
        head_free=0.0,
        early=0.0,
        placed=True,
        visited=True,
        outstanding=1,
        hit=0.0,
        cap=1.01,
        proved=True,
    )


@pytest.mark.unit
def test_two_equal_readers_have_the_frontier() -> None:
    arm, target_s = ARMS[0], 0.5
    parties = [stream(number, arm) for number in (0, 5)]
    mix = Mix(arm, parties, Asked(1, target_s * 1e9, 1e6))
    switch_s = mix.way_ns(0, 1, 0.0) / 1e9
    found = mix.bound()
    # n slices s and switches c, each away for W = (n - 1) s + n c: (W - n c) / (W - c).
    assert found.most.total == pytest.approx(
        (target_s - 2 * switch_s) / (target_s - switch_s), rel=1e-3
    )
    assert found.fair.least == pytest.approx(found.fair.total, rel=1e-3)
    assert [one.least for one in found.curve] == sorted(
        (s.least for s in found.curve), reverse=True
    )


@pytest.mark.unit
def test_a_shorter_target_and_more_readers_leave_less() -> None:
    arm = ARMS[1]
    parties = [stream(number, arm) for number in range(8)]
    sums = [
        Mix(arm, parties[:nr], Asked(1, 1e9 * target, 1e6)).most().total
        for target, nr in ((1.0, 4), (0.3, 4), (0.3, 8))
    ]
    assert sums == sorted(sums, reverse=True)
    assert Mix(arm, parties, Asked(1, None, 1e6)).most().total == pytest.approx(1.0)


@pytest.mark.unit
def test_each_of_two_heads_may_stay_with_one_of_two_streams() -> None:
    """Of a mirror: no head goes anywhere, however short the target is."""
    arm = ARMS[0]
    alone = [stream(number, arm) for number in (0, 5)]
    halves = [
        dataclasses.replace(one, head_ns=one.head_ns / 2, bare_ns=one.bare_ns / 2) for one in alone
    ]
    mirror = Mix(arm, halves, Asked(1, 10e6, 1e6, heads=2)).bound()
    assert mirror.fair.total == pytest.approx(2.0, rel=1e-3)
    # One more than there are heads needs ways again.
    third = dataclasses.replace(halves[0], name="third", low=halves[1].high // 2)
    third = dataclasses.replace(third, high=third.low)
    assert Mix(arm, [*halves, third], Asked(1, 200e6, 1e6, heads=2)).most().total < 1.99


def bound_of(job: str, disk: str, depth: int, owners: str = "none", array: str = "") -> JobBound:
    on = parse_array(array) if array else None
    setup = Setup(load_disk(disk), "noop", owners=owners, queue_depth=depth, array=on)
    processes = parse_jobs(job, "job", capacity_bytes=setup.capacity_bytes)
    return JobBound(setup, processes, 1, Console(stderr=True))


READERS = job_text("""\
[global] runtime=8 time_based
[reader] rw=read bs=64k direct=1 size=20g numjobs=3 offset_increment=100g
""")
RANDOM = job_text("""\
[random] rw=randread bs=4k direct=1 ioengine=libaio iodepth={depth} offset=50g size=100g runtime=8
time_based
""")


@pytest.mark.e2e
@pytest.mark.parametrize("disk", DISKS)
@pytest.mark.parametrize("depth", [1, 32])
@pytest.mark.parametrize(
    "job",
    [
        READERS,
        RANDOM.format(depth=1),
        RANDOM.format(depth=16),
        READERS + RANDOM.format(depth=4).replace("offset=50g", "offset=320g"),
    ],
    ids=["readers", "random", "deep", "both"],
)
def test_no_policy_is_above_its_bound(job: str, disk: str, depth: int) -> None:
    bound = bound_of(job, disk, depth)
    assert bound.steady and not bound.loose()
    for policy in ("noop", "sptf", "cfq", "stream:deadline"):
        reached = bound.reached(dataclasses.replace(bound.setup, policy=policy), 0.1)
        assert reached.total <= reached.most + 1e-6, reached


ARRAYS = ("raid0:3", "raid5:4", "raid6:6", "raid1:2", "raid10:4", "raid10:5", "raid10:4:64k:far")
BOTH = READERS + RANDOM.format(depth=4).replace("offset=50g", "offset=320g")


@pytest.mark.e2e
@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("depth", [1, 32])
def test_no_policy_is_above_its_bound_on_an_array(array: str, depth: int) -> None:
    bound = bound_of(BOTH, "st2000dm006", depth, array=array)
    assert bound.steady
    for policy in ("noop", "cfq", "stream:deadline"):
        reached = bound.reached(dataclasses.replace(bound.setup, policy=policy), 0.1)
        assert reached.total <= reached.most + 1e-6, reached


@pytest.mark.e2e
@pytest.mark.parametrize(("array", "most"), [("raid0:2", 1.1), ("raid0:4", 1.1), ("raid1:2", 2.5)])
def test_an_array_cannot_give_more_than_its_heads(array: str, most: float) -> None:
    """Three wide readers are alone as fast as all heads are, or as little more than one of two."""
    job = READERS.replace("bs=64k", "bs=1m").replace(
        "rw=read", "rw=read\nioengine=libaio\niodepth=8"
    )
    bound = bound_of(job, "wd5000aaks", 32, array=array).bound(0.5)
    assert 0.7 * most < bound.most.total < most


@pytest.mark.unit
@pytest.mark.parametrize("array", [*ARRAYS, "raid10:4:64k:offset", "raid10:3", "raid0:5:512k"])
@pytest.mark.parametrize("write", [False, True])
def test_where_an_array_has_what_is_read_or_written(array: str, write: bool) -> None:
    job = """[a]
rw=randwrite
bs=4k
direct=1
offset=9g
size=40g
io_size=4m
"""
    disk = dataclasses.replace(load_disk("wd5000aaks"), write_cache_sectors=0)
    setup = Setup(disk, "noop", array=parse_array(array))
    text = job if write else job.replace("randwrite", "randread")
    (process,) = parse_jobs(text, "job", capacity_bytes=setup.capacity_bytes)
    spread, moved = spread_of(setup), [0] * len(setup.members)
    low, high = spread.region(process.offset // 512, (process.offset + process.size) // 512)
    layout, names = row_layout()

    def feed(rows: bytes) -> None:
        for values in layout.iter_unpack(rows):
            row = dict(zip(names, values, strict=True))
            assert low <= row["sector"] and row["sector"] + row["nr_sectors"] <= high
            moved[row["disk"]] += row["nr_sectors"] * 512 * (row["direction"] == write)

    run = run_jobs(setup, [process], requests=feed)
    mean = sum(moved) / len(moved)
    if write and array.startswith(("raid5", "raid6")):  # parity comes to it
        assert mean > spread.part(not write) * run.bytes
    else:
        assert mean == pytest.approx(spread.part(not write) * run.bytes, rel=0.01)


@pytest.mark.unit
@pytest.mark.parametrize("array", ["linear:2", "raid5:3:64k:failed=1"])
def test_arrays_without_a_bound_are_refused(array: str) -> None:
    with pytest.raises(UsageError, match=f"{array.partition(':')[0]}.*: the bound is proved for"):
        bound_of(READERS, "wd5000aaks", 1, array=array)


@pytest.mark.unit
def test_members_that_differ_have_no_bound() -> None:
    disks = (load_disk("wd5000aaks"), load_disk("st2000dm006"))
    setup = Setup(disks[0], "noop", array=parse_array("raid0:2"), disks=disks)
    with pytest.raises(UsageError, match="of disks that are alike"):
        spread_of(setup)


@pytest.mark.e2e
def test_equal_readers_come_near_their_bound() -> None:
    bound = bound_of(READERS, "wd5000aaks", 1)
    reached = bound.reached(dataclasses.replace(bound.setup, policy="stream:deadline"), 0.5)
    assert 0 <= reached.regret < 0.1


@pytest.mark.unit
def test_absence_is_from_when_the_head_leaves_until_it_is_back() -> None:
    row = ffi.new("struct sim_log_row[5]")
    for at, (job, start, position, done) in enumerate(
        [(0, 0, 5, 20), (0, 20, 0, 30), (1, 30, 10, 60), (0, 50, 0, 55), (0, 60, 10, 90)]
    ):
        row[at].job, row[at].start_ns, row[at].position_ns = job, start, position
        row[at].complete_ns = done
    absence = Absence([False, False])
    absence.feed(bytes(ffi.buffer(row)))
    # It left at 30, a cache answered at 50, and it was back at 70.
    assert absence.longest_s(0, 90e-9) == pytest.approx(40e-9)
    assert absence.longest_s(1, 90e-9) == pytest.approx(40e-9)
    # Who had nothing more is away until the end.
    assert absence.longest_s(0, 200e-9) == pytest.approx(110e-9)
    assert absence.longest_s(1, 200e-9) == pytest.approx(140e-9)


@pytest.mark.unit
@pytest.mark.parametrize(("copies", "away_ns"), [(1, 90), (2, 50)])
def test_absence_in_an_array_is_from_a_member_or_from_all_copies(copies: int, away_ns: int) -> None:
    rows = [(0, 0, 0, 10), (1, 0, 0, 10), (0, 1, 40, 50), (1, 1, 90, 100)]
    row = ffi.new("struct sim_log_row[4]")
    for at, (job, disk, start, done) in enumerate(rows):
        row[at].job, row[at].disk, row[at].start_ns = job, disk, start
        row[at].position_ns, row[at].complete_ns = 1, done
    absence = Absence([False, True], Spread(members=2, copies=copies, chunk=128))
    absence.feed(bytes(ffi.buffer(row)))
    # Each of two members has it once: from 1 to 10, and from 41 to 50.
    assert absence.longest_s(0, 100e-9) == pytest.approx(away_ns * 1e-9)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("disk", "why"),
    [("ssd", "has no arm"), ("exos-2x18", "has two arms"), ("archive-8tb", "shingled")],
)
def test_disks_that_the_proof_does_not_hold_for_are_refused(disk: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Arm(load_disk(disk))


@pytest.mark.unit
def test_readers_of_the_same_blocks_share_their_bytes() -> None:
    job = READERS.replace("offset_increment=100g", "filename=one")
    bound = bound_of(job, "wd5000aaks", 1)
    assert bound.loose() == ["reader"] * 3
    alone = bound_of(READERS, "wd5000aaks", 1)
    assert bound.parties[0].head_ns == pytest.approx(alone.parties[0].head_ns / 3, rel=0.05)


@pytest.mark.unit
def test_regions_that_only_touch_have_no_blocks_in_common() -> None:
    setup = Setup(load_disk("wd5000aaks"), "noop")
    text = "[global]\nfilename=/dev/sda\nrw=read\nsize=1m\n[a]\n[b]\noffset={}k\n[c]\noffset=1g\n"
    for offset, met in ((1024, [1, 1, 1]), (1020, [2, 2, 1])):
        work = parse_jobs(text.format(offset), capacity_bytes=setup.capacity_bytes, environ={})
        assert sharing(work, setup) == met


@pytest.mark.unit
def test_a_missing_solver_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "scipy.optimize", None)
    monkeypatch.setitem(__import__("sys").modules, "scipy", None)
    with pytest.raises(StreamschedError, match=r"scipy, .*\[bound\]"):
        arms.solver()


# ---- traces ----


def written(folder: Path, nr: int, gap_us: int) -> Path:
    """A trace of @nr reads at random, each done in 3 ms, as text."""
    dice, lines = random.Random(7), []
    for number in range(nr):
        at_us = number * gap_us + dice.randrange(gap_us)
        sector = dice.randrange(900_000_000)
        for moment, what in ((at_us, "Q"), (at_us + 3000, "C")):
            text = f"{moment // 10**6}.{moment % 10**6:06}000"
            lines.append((moment, f"  8,0 0 {number} {text} 1 {what} R {sector} + 8 [a]\n"))
    path = folder / "random.blkparse"
    path.write_text("".join(line for _, line in sorted(lines)))
    return path


@pytest.mark.e2e
def test_a_trace_is_bounded_soon_and_no_policy_needs_less(tmp_path: Path) -> None:
    path = written(tmp_path, 10_000, 20_000)
    disk = load_disk("wd5000aaks")
    began, parts = time.monotonic(), list[float]()
    requests = trace.requests_of(Trace(str(path)), disk.capacity_sectors, parts.append)
    found = trace.TraceBound(Arm(disk), requests)
    floor_s = found.floor_s(0.5, parts.append)
    assert time.monotonic() - began < 10
    assert parts[-1] == 1.0 and floor_s > 1
    for policy in ("noop", "sptf", "stream:deadline"):
        opened = open_trace(path)
        run = run_trace(Setup(disk, policy, queue_depth=32), opened.format, opened.chunks())
        longest_s = max(0.5, run.response.max / 1e3)
        assert found.floor_s(longest_s, parts.append) <= run.position_ns / 1e9


@pytest.mark.unit
def test_a_longer_wait_leaves_a_lower_floor(tmp_path: Path) -> None:
    path = written(tmp_path, 600, 4_000)
    disk = load_disk("st2000dm006")
    requests = trace.requests_of(Trace(str(path)), disk.capacity_sectors, lambda part: None)
    found = trace.TraceBound(Arm(disk), requests)
    floors = [found.floor_s(wait, lambda part: None) for wait in (0.0, 0.1, 1.0)]
    assert floors == sorted(floors, reverse=True)
