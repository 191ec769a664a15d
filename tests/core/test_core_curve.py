# SPDX-License-Identifier: GPL-2.0-only
"""The service-time curve: tables, interpolation, the mean, and learning."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_driver import FAR, Driver

from streamsched._core import ffi, lib

Points = Sequence[tuple[int, int]]

US = 1_000
MS = 1_000_000
EINVAL = 22
SPAN = 2**32  # 2 TB
ONE_TB = 1_953_525_168
TABLE: Points = [(0, 0), (1_000, 1 * MS), (1_000_000, 10 * MS)]


class Curve:
    def __init__(self, span: int = SPAN) -> None:
        self.ffi, self.lib = ffi, lib
        self.c = self.ffi.new("struct ss_curve *")
        self.lib.ss_curve_init_generic(self.c, span)

    def set(self, points: Points, span: int = SPAN) -> int:
        table = self.ffi.new("struct ss_curve_point[]", list(points))
        return int(self.lib.ss_curve_set(self.c, table, len(points), span))

    def bytes(self) -> bytes:
        return bytes(self.ffi.buffer(self.c))

    def at(self, distance: int) -> int:
        return int(self.lib.ss_curve_distance_ns(self.c, distance))

    def between(self, start: int, end: int) -> int:
        return int(self.lib.ss_curve_service_ns(self.c, start, end))

    def backward(self, percent: int) -> None:
        self.lib.ss_curve_set_backward(self.c, percent)

    def learn(self, distance: int, sectors: int, service_ns: int) -> None:
        self.lib.ss_curve_learn(self.c, distance, sectors, service_ns)


@pytest.fixture
def curve() -> Curve:
    return Curve()


def interpolated(points: Points, distance: int) -> int:
    """What ss_curve_distance_ns() must be, in exact numbers rounded down."""
    for (d0, t0), (d1, t1) in pairwise(points):
        if distance < d1:
            return t0 + (t1 - t0) * (distance - d0) // (d1 - d0)
    return points[-1][1]


@st.composite
def tables(draw: st.DrawFn) -> list[tuple[int, int]]:
    distances = draw(st.lists(st.integers(1, 2**36), max_size=39, unique=True))
    times = draw(st.lists(st.integers(0, 16 * MS), min_size=40, max_size=40))
    return list(zip([0, *sorted(distances)], sorted(times), strict=False))


# A table.


def test_a_table_is_used(curve: Curve) -> None:
    assert curve.set(TABLE) == 0
    for distance, time_ns in TABLE:
        assert curve.at(distance) == time_ns
    assert curve.at(500) == 500 * US
    assert curve.at(500_500) == 5_500 * US


def test_beyond_its_end_a_table_is_level(curve: Curve) -> None:
    curve.set(TABLE)
    assert curve.at(1_000_001) == curve.at(2**63) == 10 * MS


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(1, 0)],
        [(0, 0), (0, 1)],
        [(0, 0), (2, 1), (1, 2)],
        [(0, 5), (1, 4)],
        [(0, 0), (1, 9), (2, 8), (3, 10)],
        [(n, n) for n in range(41)],
    ],
    ids=[
        "none",
        "not from 0",
        "a distance twice",
        "distance falls",
        "time falls",
        "time falls in between",
        "too many",
    ],
)
def test_a_wrong_table_is_refused_and_changes_nothing(curve: Curve, points: Points) -> None:
    before = curve.bytes()
    assert curve.set(points) == -EINVAL
    assert curve.bytes() == before


REFUSED = {
    "no points": ([], "service curve: must have 1 to 40 points"),
    "not from 0": ([(5, 5)], "point 1: 5 sectors, but distances must be ascending from 0"),
    "time falls": ([(0, 5), (9, 4)], "point 2: 4 ns, but times must never fall"),
    "beyond a second": ([(0, 0), (9, 10**9 + 1)], "point 2: 1000000001 ns is not within 0 to"),
    "the most": (
        [(0, 2**64 - 1)],
        "point 1: 18446744073709551615 ns is not within 0 to 1000000000",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_one_sentence_says_what_is_wrong_with_a_table(curve: Curve, name: str) -> None:
    points, sentence = REFUSED[name]
    before = curve.bytes()
    assert curve.set(points) == -EINVAL
    assert curve.bytes() == before
    why = curve.ffi.new("char[160]")
    table = curve.ffi.new("struct ss_curve_point[]", points)
    assert curve.lib.ss_curve_check(table, len(points), why, 160) == -EINVAL
    assert sentence in curve.ffi.string(why).decode()


def test_the_largest_and_the_widest_table_is_exact(curve: Curve) -> None:
    """A second from one end of the sectors that there can be to the other."""
    points = [(0, 0), (1, 1), (2**64 - 1, 10**9)]
    assert curve.set(points, span=2**63) == 0
    for distance in (1, 2, 2**32, 2**63 + 12345, 2**64 - 2, 2**64 - 1):
        assert curve.at(distance) == interpolated(points, distance)


def test_nothing_is_learned_beyond_what_a_table_may_say(curve: Curve) -> None:
    for _ in range(2000):
        for distance in (1, 10**3, 10**6, 10**9):
            curve.learn(distance, 8, 60_000 * MS)
    nr = curve.c.nr_points
    points = [(p.distance_sectors, p.time_ns) for p in curve.c.point[0:nr]]
    assert points[-1][1] == 10**9
    assert curve.set(points) == 0  # what sysfs shows can be written back


def test_a_disk_without_sectors_is_refused(curve: Curve) -> None:
    before = curve.bytes()
    assert curve.set(TABLE, 0) == -EINVAL
    assert curve.bytes() == before


def test_the_longest_table_there_may_be(curve: Curve) -> None:
    points = [(n * n, n * 100_000) for n in range(40)]
    assert curve.set(points) == 0
    assert curve.at(39 * 39) == 3_900_000
    assert curve.at(38 * 38) == 3_800_000


@given(table=tables(), distance=st.integers(0, 2**37))
def test_interpolation_is_exact(table: Points, distance: int) -> None:
    curve = Curve()
    assert curve.set(table) == 0
    assert curve.at(distance) == interpolated(table, distance)


def test_of_points_close_to_each_other_none_is_missed(curve: Curve) -> None:
    base = 2**20
    table = [(0, 0), (base + 1_000, 2 * MS), (base + 2_000, 3 * MS), (2 * base, 4 * MS)]
    curve.set(table)
    for distance in range(base, base + 4_000, 100):
        assert curve.at(distance) == interpolated(table, distance)


@given(table=tables(), distances=st.lists(st.integers(0, 2**37), min_size=2, max_size=20))
def test_farther_never_costs_less(table: Points, distances: list[int]) -> None:
    curve = Curve()
    curve.set(table)
    times = [curve.at(distance) for distance in sorted(distances)]
    assert times == sorted(times)


def test_a_table_is_not_learned_from(curve: Curve) -> None:
    curve.set(TABLE)
    before = curve.bytes()
    for _ in range(100):
        curve.learn(5_000, 8, 50 * MS)
    assert curve.bytes() == before


# Backward.


def test_backward_costs_half_as_much_again(curve: Curve) -> None:
    curve.set(TABLE)
    assert curve.between(10_000_000, 10_001_000) == 1 * MS
    assert curve.between(10_001_000, 10_000_000) == 1_500 * US
    assert curve.between(7, 7) == 0


def test_the_backward_factor_can_be_set(curve: Curve) -> None:
    curve.set(TABLE)
    curve.backward(100)
    assert curve.between(10_001_000, 10_000_000) == 1 * MS
    assert curve.between(10_000_000, 10_001_000) == 1 * MS
    curve.backward(333)
    assert curve.between(10_001_000, 10_000_000) == 3_330 * US


@given(percent=st.integers(100, 1000), time_ns=st.integers(0, 10**9))
def test_the_backward_cost_is_exact(percent: int, time_ns: int) -> None:
    curve = Curve()
    curve.set([(0, time_ns)])
    curve.backward(percent)
    assert curve.between(1_000, 0) == time_ns * percent // 100
    assert curve.between(0, 1_000) == time_ns


# The mean over random pairs of positions.


def forward_mean(time_at: Callable[[float], float]) -> float:
    """Of a distance d, as a share of the disk, the density is 2(1 - d)."""
    steps = 10_000
    return (
        sum(time_at((n + 0.5) / steps) * 2 * (1 - (n + 0.5) / steps) for n in range(steps)) / steps
    )


@pytest.mark.parametrize(
    "share",
    [
        [(0.0, 4.0), (1.0, 20.0)],
        [(0.0, 10.0), (1.0, 10.0)],
        [(0.0, 0.0), (0.01, 6.0), (0.3, 12.0), (1.0, 20.0)],
    ],
    ids=["a line", "level", "as a disk's"],
)
def test_the_mean_is_within_2_percent(curve: Curve, share: list[tuple[float, float]]) -> None:
    points = [(round(d * SPAN), round(ms * MS)) for d, ms in share]
    assert curve.set(points) == 0
    curve.backward(100)
    mean = forward_mean(lambda d: interpolated(points, round(d * SPAN)))
    assert curve.c.mean_random_ns == pytest.approx(mean, rel=0.02)


def test_the_mean_belongs_to_the_span(curve: Curve) -> None:
    line = [(0, 0), (2**32, 16 * MS)]
    curve.set(line, 2**32)
    whole = curve.c.mean_random_ns
    curve.set(line, 2**31)
    assert curve.c.mean_random_ns == pytest.approx(whole / 2, rel=0.01)


# Flat or not.


@pytest.mark.parametrize(
    ("points", "flat"),
    [
        ([(0, 100 * US)], True),
        ([(0, 0), (1, 80 * US)], True),
        ([(0, 0), (1, 60 * US), (SPAN, 100 * US)], True),
        (TABLE, False),
        ([(0, 0), (2_048, 2 * MS)], False),
    ],
    ids=["one time", "sequential is cheaper", "nearly", "a disk", "15,000 rpm"],
)
def test_flat_is_a_device_without_a_head(curve: Curve, points: Points, flat: bool) -> None:
    curve.set(points)
    assert curve.c.flat == flat


# The generic start.


@pytest.mark.parametrize("span", [1, 1_000, 2**21, 2**28, 2**32, 2**35, 2**40])
def test_the_generic_curve_is_a_curve(span: int) -> None:
    curve = Curve(span)
    points = [(p.distance_sectors, p.time_ns) for p in curve.c.point[0 : curve.c.nr_points]]
    assert points[0] == (0, 0)
    assert Curve(span).set(points, span) == 0  # in order, and not too many
    assert curve.c.learning


def test_the_generic_curve_is_a_7200_rpm_disks(curve: Curve) -> None:
    """A random read is 12 to 14 ms, half a turn (4.2 ms) of it rotation."""
    assert 11.5 * MS <= curve.c.mean_random_ns <= 17 * MS
    assert 4.2 * MS <= curve.at(4_096) <= 6 * MS
    assert 16 * MS <= curve.at(SPAN) <= 22 * MS
    assert not curve.c.flat


def test_a_disk_of_no_size_has_a_curve() -> None:
    curve = Curve(0)
    assert curve.c.span_sectors == 1


# Learning.

TRANSFER_PS = 4_000_000  # per sector: 128 MB/s


def teach(curve: Curve, time_at: Callable[[int], int], samples: int, seed: int = 1) -> None:
    """Requests of a disk whose positioning takes time_at(distance): every distance, some alike."""
    dice = random.Random(seed)
    for n in range(samples):
        sectors = dice.choice([8, 64, 256])
        distance = 0 if n % 4 == 0 else int(2 ** dice.uniform(0, 32))
        curve.learn(distance, sectors, time_at(distance) + TRANSFER_PS * sectors // 1000)


def slow_disk(distance: int) -> int:
    """3 ms and a root of the distance; nothing where it goes on."""
    return 3 * MS + int(distance**0.5 * 240) if distance else 0


def quick_disk(distance: int) -> int:
    """Half the generic curve's times, and more of a slope far out."""
    return 2 * MS + distance // 400 if distance else 0


@pytest.mark.parametrize("disk", [slow_disk, quick_disk])
def test_learning_converges_to_the_disks_curve(curve: Curve, disk: Callable[[int], int]) -> None:
    teach(curve, disk, 20_000)
    for digits in range(1, 32):
        distance = 3 * 2**digits // 2
        assert curve.at(distance) == pytest.approx(disk(distance), rel=0.05), distance
    assert curve.at(0) < 50 * US
    assert not curve.c.flat


def test_learning_follows_a_change(curve: Curve) -> None:
    teach(curve, slow_disk, 20_000)
    teach(curve, quick_disk, 20_000, seed=2)
    assert curve.at(1_500_000) == pytest.approx(quick_disk(1_500_000), rel=0.05)


def test_learning_the_rate_of_transfer(curve: Curve) -> None:
    for _ in range(100):
        curve.learn(0, 256, TRANSFER_PS * 256 // 1000)
    assert curve.c.transfer_ps == pytest.approx(TRANSFER_PS, rel=0.01)
    assert curve.at(0) == 0


def test_the_rate_of_a_slow_disk_is_learned(curve: Curve) -> None:
    """1 MB/s, 170 times as slow as was assumed: such are believed after some requests."""
    for _ in range(64):
        curve.learn(0, 8, 4 * MS)
    assert curve.c.transfer_ps == pytest.approx(4 * MS * 1000 / 8, rel=0.1)


def test_a_slow_disks_positioning_is_learned(curve: Curve) -> None:
    """200 ms wherever it goes, 16 times as long as was assumed."""
    for _ in range(64):
        for distance in (0, 3 * 2**20, 3 * 2**28):
            curve.learn(distance, 8, 200 * MS if distance else 24 * US)
    assert curve.at(3 * 2**20) == pytest.approx(200 * MS, rel=0.1)
    assert curve.at(3 * 2**28) == pytest.approx(200 * MS, rel=0.1)


def test_of_small_sequential_requests_most_is_not_transfer(curve: Curve) -> None:
    """A command costs 50 us. What far requests of 1.25 MiB take besides is not 256 times that."""
    positioning = 12 * MS
    for _ in range(64):
        curve.learn(0, 8, 50 * US + 8 * 3 * US)
        curve.learn(3 * 2**28, 2560, positioning + 50 * US + 2560 * 3 * US)
    assert curve.at(3 * 2**28) == pytest.approx(positioning, rel=0.02)


# A wrong start, or a mishap later.

Samples = list[tuple[int, int, int]]  # distance, sectors, time in ns
SEEN = [0, *(3 * 2**digits // 2 for digits in range(15, 32))]

MISHAPS: dict[str, Samples] = {
    "a revolution for what goes on": [(0, 8, 8 * MS)] * 4,
    "a revolution for one page, then windows": [(0, 8, 8 * MS)] * 2 + [(0, 256, 9 * MS)] * 2,
    "a drive that spins up": [(0, 8, 8_000 * MS)],
    "it spins up, and everything waits for it": [(d, 8, 8_000 * MS) for d in SEEN],
    "it wakes up thrice": [(0, 8, 1_500 * MS), (SEEN[5], 8, 1_500 * MS), (SEEN[15], 8, 1_500 * MS)],
    "retries": [(distance, 64, 2_000 * MS) for distance in SEEN[1:]],
    "its cache": [(distance, 8, 70 * US) for distance in SEEN] * 4,
    "its cache, one megabyte at a time": [(distance, 2048, 4 * MS) for distance in SEEN] * 4,
}


def see_all(curve: Curve, rounds: int, seed: int = 1) -> None:
    """@rounds requests at each distance of SEEN, in any order."""
    dice = random.Random(seed)
    distances = SEEN * rounds
    dice.shuffle(distances)
    for distance in distances:
        sectors = dice.choice([8, 64, 256])
        curve.learn(distance, sectors, slow_disk(distance) + TRANSFER_PS * sectors // 1000)


def off_by(curve: Curve) -> float:
    """How far off the curve is, where it is worst, by slow_disk's time there."""
    return max(abs(curve.at(d) / slow_disk(d) - 1) for d in SEEN[1:])


@pytest.mark.parametrize("mishap", MISHAPS.values(), ids=MISHAPS)
def test_a_wrong_start_is_forgotten(curve: Curve, mishap: Samples) -> None:
    """By 64 requests at each distance to 20 %, by 256 to 2 %; the rate of transfer to 5 %."""
    for sample in mishap:
        curve.learn(*sample)
    see_all(curve, 64)
    assert off_by(curve) < 0.2
    see_all(curve, 192, seed=2)
    assert off_by(curve) < 0.02
    assert curve.c.transfer_ps == pytest.approx(TRANSFER_PS, rel=0.05)


@pytest.mark.parametrize("mishap", MISHAPS.values(), ids=MISHAPS)
def test_a_later_mishap_changes_little(curve: Curve, mishap: Samples) -> None:
    """A few times as long as the others at most, each for one of 64: then soon forgotten, too."""
    see_all(curve, 64)
    for sample in mishap * 2:
        curve.learn(*sample)
    see_all(curve, 32, seed=2)
    assert off_by(curve) < 0.2
    see_all(curve, 192, seed=3)
    assert off_by(curve) < 0.02


def test_revolutions_that_are_lost_again_and_again_are_no_mishap(curve: Curve) -> None:
    """One of eight that go on comes too late; what the others take says nothing of it."""
    took = [8 * MS + 400 * US] + [100 * US] * 7
    for _ in range(32):
        for service_ns in took:
            curve.learn(0, 8, service_ns)
    assert curve.c.transfer_ps == pytest.approx(sum(took) / len(took) * 1000 / 8, rel=0.2)


@pytest.mark.parametrize("first", [8 * MS, 8_000 * MS])
def test_a_revolution_is_no_transfer(curve: Curve, first: int) -> None:
    """The next sector had just passed, and nothing goes on after that. Far requests cost what
    they cost all the same, and heads move."""
    for _ in range(3):
        curve.learn(0, 8, first)
    for _ in range(60):
        curve.learn(400_000_000, 128, 8 * MS)
    assert curve.at(400_000_000) == pytest.approx(8 * MS, rel=0.1)
    assert not curve.c.flat


def test_a_better_rate_of_transfer_corrects_what_was_learned(curve: Curve) -> None:
    """Twice the rate, known only afterwards: 256 sectors had been taken for 0.8 ms."""
    for _ in range(64):
        curve.learn(3 * 2**20, 256, 6 * MS + 256 * 6 * US)
    for _ in range(64):
        curve.learn(0, 256, 256 * 6 * US)
    assert curve.at(3 * 2**20) == pytest.approx(6 * MS, rel=0.01)


@pytest.fixture
def driver() -> Driver:
    return Driver("noop")


def learned_from(driver: Driver) -> int:
    return sum(bucket.samples for bucket in driver.sched.curve.bucket)


def test_where_the_head_is_at_first_nobody_knows(driver: Driver) -> None:
    """The first request, mostly for the first sectors, does not go on anywhere."""
    driver.serve(driver.send(0, 0), ms=8)
    assert learned_from(driver) == 0
    driver.serve(driver.send(0, 8), ms=0.1)
    assert learned_from(driver) == 1


def test_nor_after_an_error(driver: Driver) -> None:
    driver.serve(driver.send(0, 0))
    failed = driver.dispatch(driver.send(0, FAR))
    driver.at_disk.remove(failed)
    driver.lib.ss_sched_returned(driver.sched, failed, driver.later(30).now_ns)
    driver.serve(driver.send(0, FAR + 8), ms=8)
    assert learned_from(driver) == 0
    driver.serve(driver.send(0, FAR + 16), ms=0.1)
    assert learned_from(driver) == 1


def busy(ms: float, nr: int, *, write: bool = False) -> Driver:
    """Far requests alone, in 0.07 ms; then @nr of @ms, each with seven others in the disk."""
    driver = Driver("noop")
    dice = random.Random(4)

    def send(*, write: bool = False) -> None:
        driver.send(0, dice.randrange(2**31 - 8), write=write)

    for _ in range(100):
        send()
        driver.serve(ms=0.07)
    assert driver.sched.curve.flat
    for _ in range(8):
        send(write=write)
        driver.dispatch()
    for _ in range(nr):
        driver.later(ms).complete()
        send(write=write)
        driver.dispatch()
    return driver


def test_a_flat_curve_that_does_not_hold_is_learned_anew() -> None:
    """Nothing is alone in the disk any more, to learn from: heads that move show all the same."""
    assert not busy(4, 64).sched.curve.flat


def test_a_flat_curve_that_holds_stays() -> None:
    """Also where a few requests take long, or writes, which a drive may put off and then do."""
    assert busy(0.07, 1_000).sched.curve.flat
    driver = busy(0.07, 0)
    for i in range(1_000):
        driver.later(10 if i % 3 == 0 else 0.07).complete()
        driver.dispatch(driver.send(0, i * 1_000_000))
    assert driver.sched.curve.flat
    assert busy(4, 1_000, write=True).sched.curve.flat


def test_learning_anew_keeps_what_backward_costs(curve: Curve) -> None:
    curve.backward(200)
    teach(curve, slow_disk, 1_000)
    curve.lib.ss_curve_forget(curve.c)
    fresh = Curve()
    fresh.backward(200)
    assert curve.bytes() == fresh.bytes()


def test_what_was_learned_is_a_table_that_would_be_taken() -> None:
    """Distances ascend and times never fall, whatever the completions said."""
    dice = random.Random(3)
    curve = Curve()
    for _ in range(5_000):
        curve.learn(int(2 ** dice.uniform(-1, 34)), 8, dice.randrange(30 * MS))
    points = [(p.distance_sectors, p.time_ns) for p in curve.c.point[0 : curve.c.nr_points]]
    assert Curve().set(points) == 0


def test_a_few_slow_samples_do_not_make_all_longer_distances_dear(curve: Curve) -> None:
    """A bucket that contradicts its neighbours counts as much as it has samples."""
    for _ in range(5):
        curve.learn(6_000, 8, 9 * MS)
    for digits in range(14, 24):
        for _ in range(64):
            curve.learn(3 * 2**digits // 2, 8, 6 * MS)
    for _ in range(32):
        curve.learn(6_000 * 4096, 8, 7 * MS)
    assert curve.at(100_000) == pytest.approx(6 * MS, rel=0.02)
    assert curve.at(3 * 2**22 // 2) == pytest.approx(6 * MS, rel=0.02)


def test_a_few_samples_are_not_believed(curve: Curve) -> None:
    before = curve.at(1_500_000)
    for n in range(64):
        curve.learn(1_500_000 if n < 3 else 0, 8, 50 * MS if n < 3 else 32 * US)
    assert curve.at(1_500_000) == pytest.approx(before, rel=0.001)


def test_the_unseen_follows_what_was_seen(curve: Curve) -> None:
    """Distances a little longer than the ones seen have moved with them."""
    before = curve.at(3 * 2**22)
    for _ in range(64):
        curve.learn(3 * 2**20, 8, curve.at(3 * 2**20) + 5 * MS)
    assert curve.at(3 * 2**22) > before + 3 * MS


def ssd(latency_us: int, span: int, *, random_only: bool = False) -> Curve:
    """After 1,000 requests that take as long wherever they are."""
    curve = Curve(span)
    dice = random.Random(latency_us)
    for n in range(1_000):
        distance = int(dice.random() ** 2 * span) if random_only else int(span ** dice.random())
        if n % 4 == 0:
            distance = 0
        curve.learn(distance, 8, latency_us * US + dice.randrange(20 * US))
    return curve


@pytest.mark.parametrize("latency_us", [60, 90, 250])
def test_an_ssd_is_flat_after_a_few_requests_at_each_distance(latency_us: int) -> None:
    curve = ssd(latency_us, ONE_TB)
    assert curve.c.flat
    assert curve.c.mean_random_ns < 1 * MS


def test_an_ssd_of_a_power_of_two_is_flat() -> None:
    """As a virtual machine's disk mostly is: no request is as far away as the last bucket."""
    assert ssd(90, 2**31).c.flat


def test_an_ssd_is_flat_after_random_access_alone() -> None:
    """What is nearer than a distance that was seen cannot cost more."""
    curve = ssd(90, ONE_TB, random_only=True)
    assert curve.at(ONE_TB // 2) < 1 * MS
    assert curve.c.flat


@pytest.mark.parametrize("skip", [0, 128, 2048])
def test_what_was_read_ahead_teaches_nothing(driver: Driver, skip: int) -> None:
    """Two sequences far apart, both from the drive's cache: far is not near for that."""
    before = driver.sched.curve.mean_random_ns
    for i in range(100):
        for start in (0, FAR):
            driver.send(0, start + i * (128 + skip), 128)
            # The first of each has to be gone for.
            driver.serve(ms=15 if i == 0 else 0.3)
    assert driver.sched.curve.mean_random_ns > before / 2


def test_far_requests_of_a_disk_without_a_head_are_learned(driver: Driver) -> None:
    dice = random.Random(1)
    for _ in range(400):
        driver.serve(driver.send(0, dice.randrange(2**31 - 8)), ms=0.1)
    assert driver.sched.curve.flat


def test_an_ssd_read_in_order_only_is_not_called_flat(curve: Curve) -> None:
    """Nothing is known of its seeks."""
    for _ in range(400):
        curve.learn(0, 8, 80 * US)
    assert not curve.c.flat


@given(
    st.lists(
        st.tuples(st.integers(0, 2**36), st.integers(1, 2**16), st.integers(0, 10**11)),
        max_size=200,
    )
)
def test_learning_survives_anything(samples: list[tuple[int, int, int]]) -> None:
    curve = Curve()
    for sample in samples:
        curve.learn(*sample)
    times = [curve.at(2**n) for n in range(37)]
    assert times == sorted(times)
    assert max(times) <= 10**11 + 20 * MS
