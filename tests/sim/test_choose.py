# SPDX-License-Identifier: GPL-2.0-only
"""The rule that chooses a scheduler (streamsched/sim/choose.py), on made-up profiles."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Sequence

import pytest

from streamsched.sim.choose import BANNED_S, PROBATION_S, Choice, Chooser, Selection
from streamsched.sim.profile import Known, Outcome, Profile
from streamsched.work.looks import SAMPLE_S, Looks, Observation, between

KIB = 1 << 10
POLICIES = ("noop", "cscan", "stream:noop")

SEQUENTIAL = Looks(64 * KIB, 1.0, 4.0, 1.0, 1.0, 1.0)
RANDOM = Looks(4 * KIB, 1.0, 32.0, 1.0, 0.0, 0.05)
WRITES = Looks(16 * KIB, 0.0, 64.0, 0.0, 0.5, 0.9)

Rates = tuple[float, float, float]


def known(looks: Looks, rates: Rates, p99: Rates = (50, 50, 50), wait: Rates = (9, 9, 9)) -> Known:
    return Known(
        str(looks),
        "none",
        {spec: Outcome(rates[i], p99[i], wait[i], looks) for i, spec in enumerate(POLICIES)},
    )


def profile(*cells: Known) -> Profile:
    curves: dict[str, tuple[float, ...]] = {
        "noop": (1.0, 30.0),
        "cscan": (2.0, 20.0),
        "stream:noop": (1.5, 10.0),
    }
    return Profile("made-up", "0", 1, POLICIES, (4 * KIB, 1024 * KIB), curves, cells)


PLAIN = profile(
    known(SEQUENTIAL, (10, 10, 60), p99=(30, 30, 300)),
    known(RANDOM, (0.5, 0.9, 0.5), p99=(400, 700, 400)),
    known(WRITES, (10, 10.1, 10)),
)


class Host:
    """Sends a workload, and does what the chooser says at @rates (MB/s by policy)."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser = chooser
        self.now = Observation(0.0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0)
        self.choices: list[Choice] = []

    def works(self, looks: Looks, seconds: float, rates: dict[str, float] | None = None) -> None:
        for _ in range(round(seconds / SAMPLE_S)):
            rate = (rates or {}).get(self.chooser.current, 40.0)
            nr = round(rate * 1e6 * SAMPLE_S / looks.size_bytes)
            nr = max(nr, 100)
            now = self.now
            self.now = Observation(
                now.now_s + SAMPLE_S,
                now.requests + nr,
                now.sent_bytes + round(nr * looks.size_bytes),
                now.reads + round(nr * looks.reads),
                now.sync + round(nr * looks.sync),
                now.continuing + round(nr * looks.continuing),
                now.near + round(nr * looks.near),
                now.completed + nr,
                now.response_s + looks.outstanding * SAMPLE_S,
                now.done_bytes + round(rate * 1e6 * SAMPLE_S),
            )
            choice = self.chooser.observe(self.now)
            if choice:
                self.choices.append(choice)

    @property
    def chosen(self) -> list[str]:
        return [choice.policy for choice in self.choices]


def host(of: Profile = PLAIN, current: str | None = None, **how: object) -> Host:
    selection = dataclasses.replace(Selection(of, "none"), **how)  # type: ignore[arg-type]
    chooser = Chooser(selection)
    chooser.current = current or chooser.current
    return Host(chooser)


# ---- what is chosen ----


def test_it_begins_with_what_is_good_everywhere() -> None:
    """Of six times less where readers are in sequence, no gain elsewhere makes up."""
    assert host().chooser.current == "stream:noop"


@pytest.mark.parametrize(
    ("looks", "best"),
    [(SEQUENTIAL, "stream:noop"), (RANDOM, "cscan")],
    ids=["sequential", "random"],
)
@pytest.mark.parametrize("start", POLICIES)
def test_the_best_for_such_work(looks: Looks, best: str, start: str) -> None:
    one = host(current=start)
    one.works(looks, 10)
    assert one.chosen == ([] if start == best else [best])


def test_a_reason_is_given() -> None:
    one = host(current="noop")
    one.works(RANDOM, 10)
    (choice,) = one.choices
    assert "requests of 4 KiB, 100 % reads, 0 % in sequence, 5 % near others" in choice.why
    assert "80 % more throughput expected" in choice.why


def test_for_p99_another_one() -> None:
    one = host(current="stream:noop", goal="p99")
    one.works(SEQUENTIAL, 10)
    assert one.chosen in (["noop"], ["cscan"])
    # 30 instead of 300 ms.
    assert re.search(r": a p99 90 % lower expected$", one.choices[0].why)


def test_who_keeps_somebody_waiting_too_long_counts_half() -> None:
    cells = [known(RANDOM, (0.6, 0.9, 0.5), wait=(9, 9000, 9)), *PLAIN.cells[::2]]
    one = host(profile(*cells), current="stream:noop")
    one.works(RANDOM, 30)
    assert one.chosen == ["noop"]
    one = host(profile(*cells), current="stream:noop", longest_wait_ms=10_000.0)
    one.works(RANDOM, 30)
    assert one.chosen == ["cscan"]


@pytest.mark.parametrize(("size_kib", "best"), [(4, "cscan"), (64, "noop"), (1024, "noop")])
def test_the_papers_rule_goes_by_size_alone(size_kib: int, best: str) -> None:
    """Between 4 KiB and 1 MiB, straight over octaves: at 64 KiB 15.5, 11 and 5.75."""
    for other in (SEQUENTIAL, RANDOM):
        looks = dataclasses.replace(other, size_bytes=size_kib * KIB)
        one = host(current="stream:noop", rule="size")
        one.works(looks, 10)
        assert one.chosen == [best]


SEEING = ("nwcs:noop", "stream:noop")


def seen(looks: Looks, visible: float, hidden: float) -> list[Known]:
    """nwcs:noop to stream:noop, where it knows who sends and where it does not."""
    return [
        Known(
            str(looks),
            owners,
            {
                spec: Outcome(rate, 50, 9, looks)
                for spec, rate in zip(SEEING, (rate, 10.0), strict=True)
            },
        )
        for owners, rate in (("process", visible), ("none", hidden))
    ]


def who_is_seen(*cells: Known) -> Host:
    curves: dict[str, tuple[float, ...]] = dict.fromkeys(SEEING, (1.0,))
    return host(Profile("made-up", "0", 1, SEEING, (4 * KIB,), curves, cells), owners="process")


def test_it_does_not_begin_with_what_needs_to_know_who_reads() -> None:
    """Who sends need not be who reads. What is as good without is the better beginning."""
    assert who_is_seen(*seen(SEQUENTIAL, 11, 1)).chooser.current == "stream:noop"
    assert who_is_seen(*seen(SEQUENTIAL, 11, 10)).chooser.current == "nwcs:noop"
    # Whoever measured only that can only believe it.
    alone = seen(SEQUENTIAL, 11, 1)[:1]
    assert who_is_seen(*alone).chooser.current == "nwcs:noop"


@pytest.mark.parametrize(("visible", "chosen"), [(12, []), (40, ["nwcs:noop"])])
def test_nor_goes_to_it_for_a_little_more(visible: float, chosen: list[str]) -> None:
    """A tenth of what stream does if they are not, so a fifth more if they are is not enough."""
    one = who_is_seen(*seen(SEQUENTIAL, visible, 1), *(seen(WRITES, 1, 1) * 3))
    assert one.chooser.current == "stream:noop"
    one.works(SEQUENTIAL, 60)
    assert one.chosen == chosen


# ---- when it is changed ----


def test_not_before_it_is_steady() -> None:
    one = host(current="noop")
    one.works(SEQUENTIAL, 1.5)
    assert one.chosen == []  # a window of 1 s, then three that look alike
    one.works(SEQUENTIAL, 1.0)
    assert one.chosen == ["stream:noop"]


def test_not_while_the_work_changes() -> None:
    one = host(current="noop")
    for looks in itertools.islice(itertools.cycle((SEQUENTIAL, WRITES)), 60):
        one.works(looks, 1.0)
    assert one.chosen == []


def test_the_less_it_promises_the_later() -> None:
    """A change comes when as much was lost by waiting as it costs."""
    times = []
    for gain in (1.5, 1.1, 1.06):
        one = host(profile(known(RANDOM, (1, gain, 1))), current="noop")
        one.works(RANDOM, 30)
        assert one.chosen == ["cscan"]
        times.append(one.choices[0].at_s)
    assert times == sorted(times) and times[0] <= 2.5 and times[-1] - times[0] >= 2


@pytest.mark.parametrize("gain", [1.01, 1.035])
def test_what_promises_next_to_nothing_is_noise(gain: float) -> None:
    """The nearest workloads of a profile are not this one; so little is not theirs to say."""
    one = host(profile(known(RANDOM, (1, gain, 1))), current="noop")
    one.works(RANDOM, 300)
    assert one.chosen == []


def test_work_unlike_any_that_was_measured_changes_nothing() -> None:
    one = host(profile(known(SEQUENTIAL, (10, 20, 60))), current="noop")
    one.works(WRITES, 60)
    assert one.chosen == []


def test_what_looks_little_alike_is_not_believed_against_all_others() -> None:
    """The nearer, the more it says; elsewhere what is good on the whole counts, too."""
    others = [known(WRITES, (10, 10, 40)) for _ in range(20)]
    for distance, chosen in ((0.0, ["cscan"]), (0.3, [])):
        near = dataclasses.replace(RANDOM, reads=RANDOM.reads - distance / 0.8)
        assert near.distance(RANDOM) == pytest.approx(distance)
        one = host(profile(known(near, (1, 1.5, 1)), *others), current="stream:noop")
        one.works(RANDOM, 60)
        assert one.chosen == chosen


def test_one_change_for_each_phase() -> None:
    one = host(current="noop")
    for looks in (RANDOM, SEQUENTIAL, RANDOM, SEQUENTIAL):
        one.works(looks, 60)
    assert one.chosen == ["cscan", "stream:noop", "cscan", "stream:noop"]
    for number, choice in enumerate(one.choices):
        assert 60 * number < choice.at_s < 60 * number + 8


def test_too_little_to_judge_by() -> None:
    one = host(current="noop")
    now = one.now
    for step in range(1, 400):
        now = dataclasses.replace(now, now_s=step * SAMPLE_S, requests=step, reads=step)
        assert one.chooser.observe(now) is None
    assert one.chooser.looks is None


# ---- no harm ----


def test_what_turns_out_worse_is_taken_back() -> None:
    rates = {"noop": 1.0, "cscan": 0.5}
    one = host(current="noop")
    one.works(RANDOM, 20, rates)
    assert one.chosen == ["cscan", "noop"]
    there, back = one.choices
    assert PROBATION_S <= back.at_s - there.at_s <= PROBATION_S + 2 * SAMPLE_S
    assert "cscan did 50 % worse than noop with the same work" in back.why
    # It is tried again, but not for a minute, then not for two.
    one.works(RANDOM, BANNED_S - 20, rates)
    assert len(one.choices) == 2
    one.works(RANDOM, 300, rates)
    tried = [choice.at_s for choice in one.choices if choice.policy == "cscan"]
    gaps = [b - a for a, b in itertools.pairwise(tried)]
    assert gaps[0] >= BANNED_S and gaps[1] >= 2 * BANNED_S


def test_what_is_as_good_as_before_stays() -> None:
    one = host(current="noop")
    one.works(RANDOM, 120, {"noop": 1.0, "cscan": 0.95})
    assert one.chosen == ["cscan"]


def test_other_work_says_nothing_of_the_change() -> None:
    """It becomes less because there is less to do."""
    one = host(current="noop")
    one.works(RANDOM, 3.25)
    assert one.chosen == ["cscan"]
    one.works(WRITES, 20, {"cscan": 0.1})
    assert one.chosen == ["cscan"]


# ---- begins anew ----


def after_random(rate: float) -> list[str]:
    """Readers in sequence after long work at random, served at @rate of the 60 MB/s known."""
    one = host(profile(known(SEQUENTIAL, (10, 10, 60)), known(RANDOM, (0.5, 0.5, 0.5))))
    one.works(RANDOM, 40, {"stream:noop": 0.5})
    assert one.chosen == []
    one.works(SEQUENTIAL, 30, {"stream:noop": rate})
    assert all("begins anew" in choice.why for choice in one.choices)
    return one.chosen


def test_who_learned_from_other_work_begins_anew_where_that_misleads() -> None:
    assert after_random(60) == after_random(40) == []
    assert after_random(20) == ["stream:noop"]  # once, whatever comes of it


def test_what_does_not_learn_does_not() -> None:
    one = host(profile(known(SEQUENTIAL, (60, 10, 10)), known(RANDOM, (0.5, 0.5, 0.5))))
    assert one.chooser.current == "noop"
    one.works(RANDOM, 40, {"noop": 0.5})
    one.works(SEQUENTIAL, 30, {"noop": 5})
    assert one.chosen == []


# ---- looks ----


def observations(*values: Sequence[int]) -> list[Observation]:
    return [Observation(float(i), n, 4096 * n, n, n, n, n, n, 2.0 * i, n) for i, n in values]


def test_looks_between_two_observations() -> None:
    then, now = observations((0, 0), (2, 100))
    looks = between(then, now)
    assert looks == Looks(4096.0, 1.0, 2.0, 1.0, 1.0, 1.0)
    assert between(now, now) is None and between(now, then) is None


def test_distance_is_symmetric_and_zero_for_the_same() -> None:
    for a, b in itertools.product((SEQUENTIAL, RANDOM, WRITES), repeat=2):
        assert a.distance(b) == b.distance(a)
        assert (a.distance(b) == 0) == (a == b)
    deep = dataclasses.replace(RANDOM, outstanding=64.0)
    assert deep.distance(dataclasses.replace(deep, outstanding=500.0)) == 0
