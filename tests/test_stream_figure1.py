# SPDX-License-Identifier: GPL-2.0-only
"""stream: the paper's Figure 1, step by step, and the rules of design.md.

The curve is made by hand, so that every expected time can be worked out here:
positioning costs 1 ms up to 1,000 sectors, rises to 10 ms at 1,000,000 and
stays there; backward costs half as much again. A random one costs 10 ms.
"""

from __future__ import annotations

from typing import Any

import pytest
from policy_driver import Driver

Core = tuple[Any, Any]

MS = 1_000_000
SPAN = 1_000_000_000
POINTS = [(0, 0), (1_000, 1 * MS), (1_000_000, 10 * MS)]
FLAT = [(0, 100_000)]

FAR = 50_000_000  # sectors; 10 ms from the stream near 0
NEAR = 500_500  # as far from the stream's end as 5.5 ms
MIDDLE = 667_000  # as far from it as 7 ms
A = 1  # who reads the stream; stream never looks at it
B = 2


class Disk(Driver):
    """A driver whose scheduler has the curve above."""

    def __init__(self, core: Core, spec: str, points: Any = POINTS, **tunables: int) -> None:
        super().__init__(core, spec, **tunables)
        table = self.ffi.new("struct ss_curve_point[]", points)
        assert self.lib.ss_curve_set(self.curve, table, len(points), SPAN) == 0

    @property
    def curve(self) -> Any:
        return self.ffi.addressof(self.sched, "curve")

    def established(self, members: int = 4, sector: int = 0) -> int:
        """A stream of @members, sent ahead; the last one is in the disk. Where it ends."""
        self.send(A, sector)
        for _ in range(members - 1):
            rq = self.dispatch()
            sector += 8
            self.send(A, sector)
            self.later(1)
            self.complete(rq)
        assert self.dispatch().stream_size == members
        return sector + 8


@pytest.fixture
def d(core: Core) -> Disk:
    """The elevator stays where it is while there is something ahead."""
    return Disk(core, "stream:cscan")


def held(d: Disk, members: int = 4) -> tuple[int, Any]:
    """A stream of @members completes at 20 ms; one far request is pending."""
    end = d.established(members)
    far = d.send(B, FAR)
    d.at(20).complete()
    return end, far


def read_on(d: Disk, sector: int, until_ms: float, *, step_ms: float = 2) -> int:
    """The stream goes on, its next request always there at once, up to @until_ms."""
    while d.now + step_ms <= until_ms:
        d.serve(d.send(A, sector), ms=step_ms)
        sector += 8
    return sector


# The figure.


def test_figure_1_step_by_step(core: Core) -> None:
    """A reader with others of far regions; before it is established the head leaves."""
    d = Disk(core, "stream:noop")
    a1 = d.send(A, 0)
    d.dispatch(a1)
    b1 = d.at(1).send(B, 4 * FAR)
    d.at(2).complete(a1)
    d.dispatch(b1)  # a stream of 1: the head leaves

    a2 = d.at(3).send(A, 8)
    assert a2.stream_size == 2
    d.at(12).complete(b1)
    d.dispatch(a2)
    b2 = d.at(13).send(B, 3 * FAR)
    assert b2.stream_size == 1  # 1 ms after b1 and 15 ms behind it: nobody's child
    d.at(14).complete(a2)
    d.dispatch(b2)  # a stream of 2: the head leaves

    a3 = d.at(15).send(A, 16)
    assert a3.stream_size == 3
    d.at(24).complete(b2)
    d.dispatch(a3)
    b3 = d.at(25).send(B, 2 * FAR)
    d.at(26).complete(a3)
    d.dispatch(b3)  # a stream of 3: the head leaves for the last time

    a4 = d.at(27).send(A, 24)
    assert a4.stream_size == 4
    d.at(36).complete(b3)
    d.dispatch(a4)
    b4 = d.at(37).send(B, FAR)
    d.at(38).complete(a4)
    assert d.choose() == ("wait", 48)  # established: b4 is 10 ms away

    a5 = d.at(41).send(A, 32)
    d.dispatch(a5)
    d.at(42).complete(a5)
    assert d.choose() == ("wait", 52)

    a6 = d.at(51).send(A, 40)
    d.dispatch(a6)
    d.at(52).complete(a6)
    assert a6.stream_size == 6
    assert d.at(66.9).choose()[0] == "wait"
    d.at(67).dispatch(b4)  # no child, even at the second chance
    assert d.count("hits") == 2
    assert d.count("timeouts") == 1


# Forming.


def test_the_head_is_held_from_the_threshold_on(core: Core) -> None:
    for members, verdict in ((3, "dispatch"), (4, "wait")):
        d = Disk(core, "stream:cscan")
        held(d, members)
        assert d.choose()[0] == verdict


def test_stream_threshold_is_the_threshold(core: Core) -> None:
    d = Disk(core, "stream:cscan", stream_threshold=2)
    held(d, 2)
    assert d.choose() == ("wait", 30)


def test_a_child_may_be_some_way_ahead(d: Disk) -> None:
    end, _ = held(d)
    child = d.at(24.5).send(A, end + NEAR - 10)  # 4.5 + just below 5.5 ms
    assert child.stream_size == 5


def test_a_request_too_far_for_its_time_is_no_child(d: Disk) -> None:
    end, _ = held(d)
    assert d.at(24.5).send(A, end + NEAR).stream_size == 1  # 4.5 + 5.5 is not below 10


def test_a_backward_distance_costs_half_as_much_again(core: Core) -> None:
    """1,000 sectors ahead cost 1 ms, back 1.5 ms."""
    for sector, at_ms, size in ((1_001_032, 28.9, 5), (999_032, 28.4, 5), (999_032, 28.6, 1)):
        d = Disk(core, "stream:cscan")
        d.established(4, 1_000_000)
        d.send(B, FAR)
        d.at(20).complete()
        assert d.at(at_ms).send(A, sector).stream_size == size, (sector, at_ms)


def test_rule_6_forming_does_not_depend_on_what_is_dispatched(core: Core) -> None:
    """The same arrivals; the head stays, or leaves each time. The stream is the same."""
    sizes = []
    for threshold in (1, 1000):
        d = Disk(core, "stream:noop", stream_threshold=threshold, stream_time_slice=1000 * MS)
        d.dispatch(d.send(A, 0))
        grown = []
        for n in range(1, 6):
            at = 20 * n
            far = d.at(at - 1).send(B, FAR * n)
            d.at(at).complete()
            stays = d.choose()[0] == "wait"
            assert stays == (threshold == 1)
            if not stays:
                d.dispatch(far)
            child = d.at(at + 2).send(A, 8 * n)
            grown.append(child.stream_size)
            if not stays:
                d.at(at + 12).complete(far)
                d.dispatch(child)
                d.at(at + 16)
            else:
                # The far one goes meanwhile, taken back to keep both alike.
                d.dispatch(child)
                d.remove(far)
        sizes.append(grown)
    assert sizes[0] == sizes[1] == [2, 3, 4, 5, 6]


def test_rule_6_an_asynchronous_write_forms_no_stream(d: Disk) -> None:
    end = d.established()
    far = d.send(B, FAR)
    d.at(20).complete()
    write = d.at(21).send(A, end, write=True)
    assert write.stream_size == 1
    d.at(30).dispatch()
    assert far in d.pending or far in d.at_disk


# Rule 1: the tail is the parent-to-be, and its waiting counts from its completion.


def test_rule_1_an_early_child_has_waited_0(d: Disk) -> None:
    """Longer in the disk than the wait would be: the child came while it was there."""
    d.established()
    d.send(B, FAR)
    child = d.later(25).send(A, 32)
    assert child.stream_size == 5
    d.later(5).complete()
    d.dispatch(child)


def test_rule_1_waiting_counts_from_completion(d: Disk) -> None:
    end = d.established()
    d.send(B, FAR)
    d.later(30).complete()
    done = d.now
    assert d.choose() == ("wait", done + 10)
    assert d.later(9.9).send(A, end).stream_size == 5


def test_rule_1_the_tail_is_a_parent_while_others_are_in_the_disk(core: Core) -> None:
    d = Disk(core, "stream:cscan")
    other = d.send(B, FAR)
    d.dispatch(other)  # still there when the stream's last one is done
    end = d.established()
    d.send(B, 2 * FAR)
    tail = d.at_disk[-1]
    d.at(20).complete(tail)
    assert other in d.at_disk
    assert d.choose()[0] == "wait"
    d.dispatch(d.at(22).send(A, end))


def test_rule_1_a_held_stream_waits_for_its_own_completion_first(d: Disk) -> None:
    """Room in the device is not filled with another's request."""
    d.established()
    d.send(B, FAR)
    assert d.choose()[0] == "wait"
    d.later(50)
    assert d.choose()[0] == "wait"


def in_the_disk_together(d: Disk) -> tuple[int, Any, Any]:
    """An established stream's next two, in the disk at once; where it ends."""
    end = d.established()
    d.at(20).complete()
    d.dispatch(d.send(A, end))
    d.dispatch(d.send(A, end + 8))
    return end + 16, *d.at_disk


@pytest.mark.parametrize("tail_first", [False, True])
def test_rule_1_waiting_counts_from_when_all_members_are_done(d: Disk, tail_first: bool) -> None:
    """Windows of one reader: a drive with a queue may do the last one long before the others."""
    end, first, tail = in_the_disk_together(d)
    d.send(B, FAR)
    d.at(22).complete(tail if tail_first else first)
    d.at(50)  # the tail's patience would have been 10 ms
    assert d.choose()[0] == "wait"
    d.complete()
    assert d.choose()[0] == "wait"
    child = d.at(51).send(A, end)
    assert child.stream_size == 7
    d.dispatch(child)


def test_rule_1_a_stream_that_is_gone_is_not_done_once_more(core: Core) -> None:
    """What is still in the disk of it says nothing of the stream that has its place since."""
    d = Disk(core, "stream:cscan")
    end, first, tail = in_the_disk_together(d)
    writes = [d.send(A, end + 8 * n, write=True, sync=True) for n in range(2)]
    for rq in writes:
        d.dispatch(rq)
    d.complete(writes[1])  # at once: the drive has it in its cache, and the stream is no more
    fresh = d.send(B, FAR)
    d.dispatch(fresh)
    for rq in (first, tail, writes[0]):
        d.later(1).complete(rq)
    d.complete(fresh)
    assert d.later(50).send(B, FAR + 8).stream_size == 1  # too late for a child


# Rule 2: waiting is worth what would be done instead.


def test_rule_2_with_nothing_pending_it_is_a_random_request(d: Disk) -> None:
    """The far one comes 9 ms after; it costs the 10 ms that were supposed."""
    end = d.established()
    d.at(20).complete()
    assert d.choose() == ("nothing",)
    d.at(29).send(B, FAR)
    assert d.choose() == ("wait", 30)
    d.dispatch(d.at(29.9).send(A, end))


def test_rule_2_the_first_non_child_re_evaluates(d: Disk) -> None:
    end = d.established()
    d.at(20).complete()
    middle = d.at(26).send(B, end + MIDDLE)  # 6 + 7 ms: not a child
    assert middle.stream_size == 1
    assert d.choose() == ("wait", 27)
    d.at(27).dispatch(middle)


def test_rule_2_the_first_non_child_may_end_the_wait_at_once(d: Disk) -> None:
    end = d.established()
    d.at(20).complete()
    d.dispatch(d.at(28).send(B, end + MIDDLE))


def test_rule_2_a_nearer_choice_shortens_the_wait(d: Disk) -> None:
    end, far = held(d)
    assert d.choose() == ("wait", 30)
    near = d.at(25).send(B, end + NEAR)
    assert d.choose() == ("wait", 25.5)
    d.at(25.5).dispatch(near)
    assert far in d.pending


def test_rule_2_it_is_the_inner_policys_choice_that_counts(core: Core) -> None:
    """First come, first served: the nearer one that comes later is not chosen."""
    d = Disk(core, "stream:noop")
    end, far = held(d)
    d.at(25).send(B, end + NEAR)
    assert d.choose() == ("wait", 30)
    d.at(30).dispatch(far)


def test_rule_2_an_early_request_nearer_than_a_random_one_is_a_child(d: Disk) -> None:
    end = d.established()
    d.send(B, end + NEAR)
    d.at(20).complete()
    # In the disk it had waited 0, and 5.5 ms is less than the 10 supposed.
    assert d.pending[0].stream_size == 5


# Rule 3: what is held.


def test_rule_3_only_its_child_is_dispatched_while_a_stream_is_held(d: Disk) -> None:
    end, far = held(d)
    nearer = d.at(21).send(B, FAR - 8)
    assert d.choose()[0] == "wait"
    child = d.at(22).send(A, end)
    d.dispatch(child)
    assert d.choose()[0] == "wait"
    assert far in d.pending and nearer in d.pending


def test_rule_3_without_a_stream_the_device_is_filled(d: Disk) -> None:
    for n in range(32):
        d.send(B, n * 20_000_000)
    for _ in range(32):
        d.dispatch()
    assert d.choose() == ("nothing",)


def test_a_stream_that_grew_keeps_its_turn_beside_commands_of_its_own(core: Core) -> None:
    """Nothing is known of streams of 8 yet: it is tried, for nobody else's command is there."""
    d = Disk(core, "stream:noop")
    end, far = held(d)
    for n in range(6):
        d.dispatch(d.send(A, end + 8 * n))
    assert d.at_disk[-1].stream_size == 10
    assert d.choose()[0] == "wait"
    assert far in d.pending


def a_turn_begins(d: Disk) -> list[Any]:
    """Slices of 50 ms; one stream's is over, and another one's requests are next."""
    end = d.established()
    d.complete()
    waiting = [d.send(B, FAR + 8 * n) for n in range(5)]
    end = read_on(d, end, 53)
    d.at(54).send(A, end)
    return waiting


def test_what_goes_on_behind_a_turns_first_request_waits_for_the_head(core: Core) -> None:
    """A drive with a queue may begin with any of them, and come back for the first."""
    d = Disk(core, "stream:cscan", stream_time_slice=50 * MS)
    waiting = a_turn_begins(d)
    first = d.dispatch(waiting[0])
    assert d.choose()[0] == "wait"
    d.later(10).complete(first)
    for rq in waiting[1:]:
        d.dispatch(rq)


def test_what_lies_elsewhere_does_not_wait_for_a_turns_first_request(core: Core) -> None:
    """Of those a drive with a queue is to choose."""
    d = Disk(core, "stream:cscan", stream_time_slice=50 * MS)
    waiting = a_turn_begins(d)
    d.remove(waiting[1])
    d.dispatch(waiting[0])
    d.dispatch(waiting[2])


def test_rule_3_the_child_is_dispatched_at_once(d: Disk) -> None:
    end, _ = held(d)
    child = d.at(29.999).send(A, end)
    d.dispatch(child)
    assert (d.count("waits"), d.count("hits")) == (1, 1)


# The deadline and the second chance.


def test_the_wait_ends_at_the_deadline(d: Disk) -> None:
    end, far = held(d)
    assert d.at(29.999).choose() == ("wait", 30)
    d.at(30).dispatch(far)
    assert d.count("timeouts") == 1
    assert d.send(A, end).stream_size == 1


def test_a_long_stream_has_a_second_chance_at_one_and_a_half_times(core: Core) -> None:
    for members, until_ms in ((5, 30), (6, 35)):
        d = Disk(core, "stream:cscan")
        _, far = held(d, members)
        assert d.choose() == ("wait", until_ms)
        d.at(until_ms).dispatch(far)


def test_tolerance_factor_is_the_second_chance(core: Core) -> None:
    for percent, members, until_ms in ((100, 7, 30), (100, 8, 40), (0, 4, 30)):
        d = Disk(core, "stream:cscan", tolerance_factor=percent)
        held(d, members)
        assert d.choose() == ("wait", until_ms)


def test_after_a_second_chance_the_stream_is_as_long_as_the_threshold(d: Disk) -> None:
    end, far = held(d, 6)
    child = d.at(32).send(A, end)
    assert child.stream_size == 5  # the threshold, and one
    assert d.count("second_chances") == 1
    d.dispatch(child)
    d.at(33).complete()
    assert d.choose() == ("wait", 43)
    d.at(43).dispatch(far)


# Rule 4: age.


def test_rule_4_an_expired_request_goes_at_once_and_the_stream_resumes(core: Core) -> None:
    d = Disk(core, "stream:deadline", read_expire=30 * MS)
    end = d.established()
    old = d.at(10).send(B, FAR)
    d.at(12).complete()
    end = read_on(d, end, 39)
    child = d.send(A, end)
    d.dispatch(child)
    younger = d.at(39.5).send(B, FAR + 2_000_000)  # where the elevator would go on
    next_child = d.send(A, end + 8)
    d.at(40).complete()
    d.dispatch(old)
    assert d.count("expired") == 1
    d.at(52).complete()
    d.dispatch(next_child)
    assert younger in d.pending


def test_rule_4_an_expired_request_ends_the_wait(core: Core) -> None:
    """Not at its deadline but as soon as the disk is asked after the expiry."""
    d = Disk(core, "stream:deadline", read_expire=15 * MS)
    end = d.established()
    old = d.at(10).send(B, FAR)
    d.at(20).complete()
    assert d.choose()[0] == "wait"
    child = d.at(26).send(A, end)
    d.dispatch(old)
    assert child in d.pending


# Rule 5: the slice.


def test_rule_5_after_124_ms_its_pending_child_is_passed_over_once(core: Core) -> None:
    """The stream's slice began when its fourth request went out, at 3 ms."""
    d = Disk(core, "stream:noop")
    end = d.established()
    assert d.now == 3
    far = d.send(B, FAR)
    d.at(5).complete()
    end = read_on(d, end, 126)
    child = d.send(A, end)
    d.dispatch(child)
    passed_over = d.at(126.9).send(A, end + 8)
    d.at(127).complete()
    d.dispatch(far)
    assert d.count("slices_ended") == 1
    later = d.later(1).send(B, 2 * FAR)
    d.later(9).complete()
    d.dispatch(passed_over)  # once
    d.later(1).complete()
    assert d.choose()[0] == "wait"  # a new slice
    assert later in d.pending


def test_rule_5_before_the_slice_ends_the_child_goes_first(d: Disk) -> None:
    end = d.established()
    d.send(B, FAR)
    d.at(5).complete()
    end = read_on(d, end, 126)
    d.at(126.9)
    d.dispatch(d.send(A, end))


def test_rule_5_a_wait_is_cut_short_by_the_end_of_the_slice(d: Disk) -> None:
    end = d.established()
    far = d.send(B, FAR)
    d.at(5).complete()
    read_on(d, end, 125)
    assert d.now == 125
    assert d.choose() == ("wait", 127)
    d.at(127).dispatch(far)


def test_rule_5_with_nobody_else_there_is_no_end(d: Disk) -> None:
    end = d.established()
    d.complete()
    end = read_on(d, end, 300)
    child = d.send(A, end)
    d.dispatch(child)


def rotation(d: Disk, streams: int, from_ms: int, to_ms: int) -> tuple[float, int]:
    """Readers whose next request comes as the last one is done; the longest wait, the turns.

    A service is 0.5 ms, or 10.5 after a move of the head. Both are counted
    from @from_ms on, when all are established.
    """
    ask, done = d.lib.ss_sched_choose, d.lib.ss_sched_completed
    head = turns = longest_ns = 0
    for owner in range(1, streams + 1):
        d.send(owner, owner * FAR)
    while d.now < to_ms:
        decision = ask(d.sched, d.now_ns)
        assert decision.verdict == d.lib.SS_DISPATCH
        rq = decision.rq
        cost = 0.5 if rq.sector == head else 10.5
        if d.now >= from_ms:
            longest_ns = max(longest_ns, d.now_ns - rq.arrival_ns)
            turns += rq.sector != head
        head = rq.sector + rq.nr_sectors
        d.lib.ss_sched_dispatched(d.sched, rq, d.now_ns)
        d.later(cost)
        done(d.sched, rq, d.now_ns)
        d.send(rq.owner, head)
    return longest_ns / MS, turns


@pytest.mark.parametrize("streams", [2, 4, 8])
def test_rule_5_nobody_waits_longer_than_the_others_slices_and_one_service(
    core: Core, streams: int
) -> None:
    """cscan by itself serves one of them for ever: then the others' slices are 16 times as long."""
    round_ms = 124 * streams
    d = Disk(core, "stream:cscan")
    longest, turns = rotation(d, streams, round_ms, 12 * round_ms)
    assert longest <= (16 * 124 + 0.5) * (streams - 1) + 10.5
    assert turns <= 11 * streams + 1


# Rule 5 with stream_time_slice=auto.


@pytest.mark.parametrize("target_ms", [300, 500, 1000, 2000])
@pytest.mark.parametrize("streams", [2, 4, 8, 16])
def test_auto_slices_keep_the_wait_target_and_switch_no_more_than_it_asks(
    core: Core, streams: int, target_ms: int
) -> None:
    """The longest wait is the target and one service at most; the disk does not switch for less.

    A reader waits for the others' turns: at n - 1 turns in a target the wait is the target. A
    trial (test_stream_trials.py) would put them out of step.
    """
    d = Disk(core, "stream:deadline", stream_time_slice=0, wait_target=target_ms * MS, trials=0)
    longest, turns = rotation(d, streams, 2 * target_ms, 12 * target_ms)
    assert longest <= target_ms + 10.5
    needed = 10 * (streams - 1)
    assert turns <= needed * 1.12 + 2


def test_auto_does_not_let_age_below_the_target_interrupt(core: Core) -> None:
    d = Disk(
        core,
        "stream:deadline",
        stream_time_slice=0,
        wait_target=1000 * MS,
        read_expire=500 * MS,
    )
    end = d.established()
    d.send(B, FAR)
    d.complete()
    end = read_on(d, end, 700)
    d.dispatch(d.send(A, end))


def test_auto_is_the_only_value_below_the_range(d: Disk) -> None:
    why = d.ffi.new("char[160]")
    tune = d.lib.ss_sched_tune
    assert tune(d.sched, b"stream_time_slice", 0, 0, why, 160) == 0
    assert tune(d.sched, b"stream_time_slice", 1, 0, why, 160) < 0
    assert tune(d.sched, b"wait_target", 0, 0, why, 160) < 0


# Rule 7: a device without a head.


def test_rule_7_on_a_flat_curve_nothing_is_waited_for(core: Core) -> None:
    d = Disk(core, "stream:cscan", FLAT)
    assert d.sched.curve.flat
    d.send(A, 0)
    for n in range(1, 20):
        rq = d.dispatch()
        d.send(A, 8 * n)
        d.later(0.1)
        d.complete(rq)
    d.dispatch()
    far = d.send(B, FAR)
    d.later(0.1)
    d.complete()
    d.dispatch(far)
    assert d.count("waits") == 0


def test_rule_7_on_the_same_events_a_rotating_disk_waits(core: Core) -> None:
    d = Disk(core, "stream:cscan")
    d.established(20)
    d.send(B, FAR)
    d.later(0.1)
    d.complete()
    assert d.choose()[0] == "wait"


# The bound on idling (design.md, Invariants), where the choice changes while the head is held.


def idle_bound_ms(d: Disk, choice: Any) -> float:
    """What may pass from now until the disk moves, by what it could do instead."""
    cost_ns = d.lib.ss_curve_service_ns(
        d.ffi.addressof(d.sched, "curve"), d.sched.head_sector, choice.sector
    )
    return float(cost_ns * 1.5 / MS)


def test_idling_is_bounded_by_another_streams_child(d: Disk) -> None:
    """It is no child of the held stream, so it is what would be done instead (rule 2)."""
    tail = d.send(A, 0)
    parent = d.send(B, 1_032)
    d.dispatch(tail)
    d.dispatch(parent)
    for sector in (8, 16, 24):
        child = d.send(A, sector)
        d.later(12).complete(tail)
        tail = d.dispatch(child)
    d.at(47.5).complete(parent)
    d.at(48).complete(tail)
    other = d.at(48.1).send(B, 1_040)  # 0.6 ms for its parent, 1.1 for the held stream
    assert (tail.stream_size, other.stream_size) == (4, 2)
    verdict, *until = d.choose()
    assert verdict == "dispatch" or until[0] - d.now <= idle_bound_ms(d, other)


def test_idling_is_bounded_by_what_a_removal_leaves(core: Core) -> None:
    d = Disk(core, "stream:noop")
    end = d.established()
    far = d.send(B, FAR)
    d.at(20).complete()
    near = d.at(25).send(B, end + NEAR)
    d.remove(far)
    verdict, *until = d.choose()
    assert verdict == "dispatch" or until[0] <= 25.5
    d.at(25.5).dispatch(near)


def test_idling_is_bounded_from_where_an_expired_request_took_the_head(core: Core) -> None:
    d = Disk(core, "stream:deadline", read_expire=15 * MS)
    d.established()
    old = d.at(10).send(B, FAR)
    d.at(20).complete()
    next_to_old = d.at(24).send(B, FAR + 10)
    d.at(25).dispatch(old)
    d.at(26).complete()
    verdict, *until = d.choose()
    assert verdict == "dispatch" or until[0] - d.now <= idle_bound_ms(d, next_to_old)


def test_rule_4_a_wait_ends_when_a_request_expires(core: Core) -> None:
    """A host asks again at until_ns: that must not be after the expiry."""
    d = Disk(core, "stream:deadline", read_expire=15 * MS)
    d.established()
    d.at(10).send(B, FAR)
    d.at(20).complete()
    assert d.choose() == ("wait", 25)


def test_a_removed_tip_leaves_its_parent_a_parent(d: Disk) -> None:
    """The stream is as long as before the request that was taken back."""
    end, _ = held(d)
    taken_back = d.at(21).send(A, end)
    assert taken_back.stream_size == 5
    d.remove(taken_back)
    assert d.at(22).send(A, end).stream_size == 5


def test_rule_2_the_mean_is_by_distance_alone(core: Core) -> None:
    """With backward costs in it, every forward request would be cheaper than the mean."""
    d = Disk(core, "stream:cscan")
    assert d.curve.mean_random_ns == pytest.approx(10 * MS, rel=0.02)


def test_a_prolonged_wait_is_a_second_chance_whether_or_not_a_child_comes(d: Disk) -> None:
    _, far = held(d, 6)
    d.at(35).dispatch(far)
    assert d.count("second_chances") == 1


def test_a_pending_request_that_is_continued_comes_before_a_far_parent(core: Core) -> None:
    """By the paper's inequality A2 is a child of T: it is a little nearer to T than A1 is."""
    d = Driver(core, "stream:noop")
    size = 256
    a0 = d.send(1, 0, size)
    d.serve(a0)
    t = d.send(2, 1_900_000_000, 8)
    a1 = d.send(1, size, size)
    d.serve(t)
    a2 = d.send(1, 2 * size, size)
    assert [rq.stream_size for rq in (a0, t, a1, a2)] == [1, 1, 2, 3]
