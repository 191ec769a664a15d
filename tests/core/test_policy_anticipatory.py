# SPDX-License-Identifier: GPL-2.0-only
"""anticipatory: behaves as Linux 2.6.31's, one behaviour per test."""

from __future__ import annotations

import pytest
from policy_driver import FAR, FOREVER, Driver, read_with_another_pending


@pytest.fixture
def d() -> Driver:
    return Driver("anticipatory")


def test_wait_ends_with_a_write_of_the_same_process(d: Driver) -> None:
    other = read_with_another_pending(d)
    d.at(7).send(1, FAR + 10**7, write=True)
    # It ends the wait; the read batch goes on with what it has.
    d.dispatch(other)


def test_does_not_wait_after_an_async_write(d: Driver) -> None:
    other = d.serve_beside(1, 0, ms=5, write=True)
    d.dispatch(other)


def test_waits_while_only_writes_are_pending(d: Driver) -> None:
    rq = d.dispatch(d.send(1, 0))
    write = d.send(2, FAR, write=True)
    d.at(5).complete(rq)
    assert d.choose() == ("wait", 11)
    d.at(11).dispatch(write)


def test_does_not_wait_anew_before_the_next_request(d: Driver) -> None:
    other = read_with_another_pending(d)
    d.at(11).send(3, FAR + 10**7)
    d.dispatch(other)


def test_antic_expire_is_the_wait() -> None:
    d = Driver("anticipatory", antic_expire=3_000_000)
    read_with_another_pending(d)
    assert d.choose() == ("wait", 8)


def test_does_not_wait_for_a_process_with_others_pending(d: Driver) -> None:
    rq = d.dispatch(d.send(1, 0))
    other = d.send(2, FAR)
    d.send(1, FAR + 10**7, write=True)
    d.at(5).complete(rq)
    d.dispatch(other)


# Closeness.


@pytest.mark.parametrize("sector", [8192 + 1008, 1008 - 4096])
def test_close_request_of_anyone_ends_the_wait(d: Driver, sector: int) -> None:
    rq = d.dispatch(d.send(1, 1000 if sector > 1000 else 10_000))
    sector = sector if sector > 1000 else 10_008 - 4096
    d.send(2, FAR)
    d.at(5).complete(rq)
    d.dispatch(d.send(3, sector))
    assert d.count("hits") == 1


@pytest.mark.parametrize("sector", [10_008 + 8193, 10_008 - 4097])
def test_request_not_quite_close_does_not(d: Driver, sector: int) -> None:
    d.serve_beside(1, 10_000, ms=5)
    d.send(3, sector)
    assert d.choose() == ("wait", 11)


def test_closeness_doubles_each_ms(d: Driver) -> None:
    read_with_another_pending(d)
    d.at(8.99).send(3, 8 + (8192 << 4))
    assert d.choose() == ("wait", 11)
    d.at(9).dispatch(d.send(4, 8 + (8192 << 4) - 1))


def test_close_write_does_not_end_the_wait(d: Driver) -> None:
    read_with_another_pending(d)
    d.send(3, 16, write=True)
    assert d.choose() == ("wait", 11)


def test_nearer_than_the_usual_seek_is_close(d: Driver) -> None:
    """A process that seeks 1 million sectors on average gives way to nearer ones."""
    for n in range(4):
        d.serve(d.send(1, n * 1_000_000), ms=1)
    d.serve_beside(1, 4_000_000, ms=1)
    assert d.choose()[0] == "wait"
    d.dispatch(d.send(3, 4_000_008 + 900_000))


# What the process is known for.


def test_does_not_wait_for_a_process_that_thinks_too_long(d: Driver) -> None:
    d.serve(d.send(1, 0), ms=1)
    d.later(10).send(1, 8)
    rq = d.dispatch()
    other = d.send(2, FAR)
    d.later(1).complete(rq)
    d.dispatch(other)
    assert d.count("waits") == 0


def test_waits_again_once_it_thinks_shortly(d: Driver) -> None:
    d.serve(d.send(1, 0), ms=1)
    d.later(10)
    for n in range(8):
        d.serve(d.send(1, 8 + 8 * n), ms=1)
    d.serve_beside(1, 80, ms=1)
    assert d.choose()[0] == "wait"


def test_think_time_is_0_with_others_of_its_requests_at_work(d: Driver) -> None:
    d.serve(d.send(1, 0), ms=1)
    d.later(5)
    d.send(1, 8)  # thought for 5 ms
    rq = d.dispatch()
    d.later(10)
    d.send(1, 16)  # sent while the disk works: 0, not 15 ms
    d.complete(rq)
    rq = d.dispatch()
    d.send(2, FAR)
    d.later(1).complete(rq)
    assert d.choose()[0] == "wait"


def test_a_very_long_think_time_counts_as_19_ms(d: Driver) -> None:
    """After one of 19 ms and n of none the mean passes below 6 ms at the same n."""

    def recovery(think_ms: float) -> int:
        driver = Driver("anticipatory")
        driver.serve(driver.send(1, 0), ms=1)
        driver.later(think_ms)
        for n in range(1, 100):
            rq = driver.dispatch(driver.send(1, 8 * n))
            other = driver.send(2, FAR, write=True)
            driver.later(1).complete(rq)
            if driver.choose()[0] == "wait":
                return n
            driver.serve(other, ms=0)
        raise AssertionError

    assert recovery(19) == recovery(5000)
    assert recovery(7) < recovery(19)


def test_waits_for_an_exited_process_while_others_carry_on(d: Driver) -> None:
    read_with_another_pending(d)
    d.gone(1)
    assert d.choose() == ("wait", 11)
    d.dispatch(d.send(3, 8))


def exits(d: Driver, owner: int, *, rescued: bool = False) -> bool:
    """@owner reads once and exits; was it waited for?"""
    rq = d.dispatch(d.send(owner, 0))
    other = d.send(2, FAR)
    d.gone(owner)
    d.later(1).complete(rq)
    waited = d.choose()[0] == "wait"
    if waited and rescued:
        d.serve(d.send(owner + 100_000, 8))
        d.later(20)
    d.later(20 if waited else 0).serve(other)
    d.later(20)
    return bool(waited)


def test_stops_waiting_for_exited_processes_that_nobody_follows(d: Driver) -> None:
    waited = [exits(d, owner) for owner in range(1000, 1020)]
    assert waited[:3] == [True] * 3
    assert waited[-1] is False
    assert waited == sorted(waited, reverse=True)


def test_goes_on_waiting_for_exited_processes_that_others_follow(d: Driver) -> None:
    assert all(exits(d, owner, rescued=True) for owner in range(1000, 1020))


def test_each_follower_makes_up_for_exits(d: Driver) -> None:
    assert all(exits(d, owner) for owner in range(1000, 1004))
    assert all(exits(d, owner, rescued=True) for owner in range(1010, 1020))
    assert all(exits(d, owner) for owner in range(1020, 1023))


def is_waited_for(d: Driver, owner: int, *, gone: bool = False) -> bool:
    """When it has just read at sector 0."""
    rq = d.dispatch(d.send(owner, 0))
    other = d.send(2, FAR)
    if gone:
        d.gone(owner)
    d.later(1).complete(rq)
    waited = d.choose()[0] == "wait"
    d.later(20 if waited else 0).serve(other)
    d.later(20)
    return bool(waited)


def test_after_many_exits_only_those_known_are_waited_for(d: Driver) -> None:
    def show_itself() -> None:
        for _ in range(12):
            d.serve(d.send(1, 0), ms=1)

    assert is_waited_for(d, 3)
    for owner in range(1000, 1050):
        exits(d, owner)
    assert not is_waited_for(d, 4)
    show_itself()
    assert is_waited_for(d, 1)
    show_itself()
    assert not is_waited_for(d, 1, gone=True)


def test_newcomers_are_taken_to_think_as_others_did(d: Driver) -> None:
    def come_and_think(owner: int, ms: float) -> None:
        d.serve(d.send(owner, 0), ms=1)
        d.later(ms).send(owner, 8)
        d.serve(ms=1)
        d.later(20)

    for owner in range(1000, 1010):
        come_and_think(owner, 15)
    assert not is_waited_for(d, 3)
    for owner in range(2000, 2010):
        come_and_think(owner, 0)
    assert is_waited_for(d, 4)


def test_number_that_comes_back_is_a_new_process(d: Driver) -> None:
    d.serve(d.send(1, 0), ms=1)
    d.later(15).send(1, 8)
    d.serve(ms=1)
    d.later(20)
    assert not is_waited_for(d, 1)
    d.gone(1)
    assert is_waited_for(d, 1)


# Several requests at the disk.


def test_waits_for_the_disk_then_for_the_process(d: Driver) -> None:
    first, second = d.send(1, 0), d.send(1, 8)
    d.dispatch(first)
    d.dispatch(second)  # the disk holds two
    d.at(5).complete(first)
    d.at(6)
    d.send(2, FAR)
    # The awaited process's last request is still at the disk, another of it
    # has completed: the wait is timed from there.
    assert d.choose() == ("wait", 11)


def test_holds_the_disk_while_the_awaited_request_is_there(d: Driver) -> None:
    d.dispatch(d.send(1, 0))
    d.send(2, FAR)
    assert d.choose() == ("wait", FOREVER)
    d.at(4).complete()
    assert d.choose() == ("wait", 10)


# Batches.


def test_elevator_goes_up_and_back_a_little() -> None:
    d = Driver("anticipatory", antic_expire=0)
    d.dispatch(d.send(1, 5_000_000))
    behind, ahead = d.send(2, 4_999_000), d.send(3, 5_002_500)
    far_behind = d.send(4, 1000)
    d.complete()
    d.serve(behind)  # 2016 sectors at twice the cost, less than 2492 ahead
    d.serve(ahead)
    d.serve(far_behind)
    behind, ahead = d.send(2, 8), d.send(3, 1008 + 1500)
    d.serve(ahead)  # 1500 ahead, 2000 behind


def test_reads_and_writes_take_turns() -> None:
    d = Driver("anticipatory", antic_expire=0)
    d.dispatch(d.send(1, 0))
    for n in range(100):
        d.send(9, FAR + 8 * n, write=True)
    d.complete()
    for n in range(1, 1200):
        d.send(1, 8 * n)
    kinds = []
    starts = []
    for _ in range(1050):
        starts.append(d.now)
        kinds.append("RW"[d.serve().direction])
    runs = [(kinds[i], i) for i in range(len(kinds)) if i == 0 or kinds[i] != kinds[i - 1]]
    assert [kind for kind, _ in runs] == ["R", "W", "R", "W"]
    at = [starts[i] for _, i in runs]
    # The first read completed at 0; a batch goes on until its time is past.
    assert at[1] - at[0] == 501
    # Its time begins with the completion of its first read.
    assert at[3] - at[2] == 502


def write_batches(*service_ms: float) -> list[int]:
    """Sizes of the batches of writes between reads, by how long each write takes."""
    d = Driver("anticipatory", antic_expire=0)
    # Half a second after the beginning: then the first read says nothing of
    # how long writes take.
    d.at(499).send(1, 0)
    d.dispatch()
    for n in range(200):
        d.send(9, FAR + 8 * n, write=True)
    d.at(500).complete()
    d.tune("read_batch_expire", 1_000_000)
    sizes: list[int] = []
    was_write = False
    for sector in range(8, 80_000, 8):
        d.send(1, sector)
        rq = d.dispatch()
        write = rq.direction == d.lib.SS_WRITE
        if was_write and not write and len(sizes) == len(service_ms):
            return sizes
        if write:
            sizes += [] if was_write else [0]
            sizes[-1] += 1
        d.later(service_ms[len(sizes) - 1] if write else 2).complete(rq)
        was_write = write
    raise AssertionError


def test_write_batch_begins_with_12() -> None:
    assert write_batches(10) == [12]


def test_write_batch_doubles_when_it_took_less_than_a_third() -> None:
    assert write_batches(1, 1, 9) == [12, 24, 14]  # over after 125 ms


def test_write_batch_grows_and_shrinks_by_one() -> None:
    assert write_batches(9, 9, 9, 9) == [12, 13, 14, 13]


def test_write_batch_is_over_after_125_ms() -> None:
    assert write_batches(60) == [3]


def test_write_batch_is_halved_when_it_took_three_times_too_long() -> None:
    assert write_batches(400, 9) == [1, 6]


def test_write_batch_without_competition_is_not_timed() -> None:
    d = Driver("anticipatory", antic_expire=0)
    d.at(499)
    d.serve(d.send(1, 0))
    for n in range(12):
        d.serve(d.send(9, FAR + 8 * n, write=True), ms=60)
    rq = d.dispatch(d.send(1, 8))
    for n in range(100):
        d.send(9, FAR + 8 * n, write=True)
    d.tune("read_batch_expire", 0)
    d.later(2).complete(rq)
    for n in range(20):
        d.send(1, 16 + 8 * n)
    while d.serve().direction == d.lib.SS_READ:
        pass
    run = 1
    while d.serve().direction == d.lib.SS_WRITE:
        run += 1
    assert run == 12


def test_other_kind_waits_until_the_disk_is_free() -> None:
    d = Driver("anticipatory", antic_expire=0)
    first, second = d.send(1, 0), d.send(1, 8)
    d.dispatch(first)
    d.dispatch(second)
    write = d.send(2, FAR, write=True)
    assert d.choose() == ("wait", FOREVER)
    d.at(1).complete(first)
    assert d.choose() == ("wait", FOREVER)
    # The decision stands, though reads come meanwhile.
    d.send(1, 16)
    d.at(2).complete(second)
    d.dispatch(write)


# Age.


def overtaken_until(number: int) -> list[float]:
    """When @number far reads that came at 0 are sent; another process reads on."""
    d = Driver("anticipatory")
    d.dispatch(d.send(1, 0))
    far = [d.send(2 + n, FAR - n * 10**7) for n in range(number)]
    d.later(6).complete()
    sent: list[float] = []
    for sector in range(8, 8000, 8):
        d.send(1, sector)
        verdict, what = d.choose()
        if verdict == "wait":  # for the far reader
            d.at(what)
        began = d.now
        if d.serve(ms=6) in far:
            sent.append(began)
            if len(sent) == number:
                assert d.count("expired") == number
                return sent
    raise AssertionError


def test_read_older_than_125_ms_goes() -> None:
    assert overtaken_until(1) == [126]


def test_age_is_looked_at_once_in_125_ms() -> None:
    assert overtaken_until(2) == [126, 126 + 126]


def test_write_older_than_250_ms_goes_within_its_batch() -> None:
    d = Driver("anticipatory")
    old = d.send(1, 0, write=True)
    d.serve(old, ms=1)
    behind = d.send(1, 1_000_000, write=True)  # not first in any sweep below
    d.serve(behind)
    left = d.send(1, 10, write=True)
    sector = 2_000_000
    while d.now < 252:
        d.send(1, sector, write=True)
        assert d.serve(ms=10) != left
        sector += 8
    d.send(1, sector, write=True)
    while d.now < 520 and d.count("expired") == 0:
        sector += 8
        d.send(1, sector, write=True)
        d.serve(ms=10)
    assert left not in d.pending
    assert d.count("expired") == 1


# Taking back, growing.


def test_removed_request_is_not_chosen(d: Driver) -> None:
    other = read_with_another_pending(d)
    third = d.send(3, FAR + 10**7)
    d.remove(other)
    d.at(11).dispatch(third)


# cooperation=0: as Linux 2.6.12, before others could go on where a process had exited.


def test_without_cooperation_who_has_exited_is_not_waited_for() -> None:
    d = Driver("anticipatory", cooperation=0)
    other = read_with_another_pending(d)
    assert d.choose()[0] == "wait"
    d.gone(1)
    # As in Linux nobody looks again before a request comes, whoever's it is.
    assert d.choose()[0] == "wait"
    d.at(7).send(3, 2 * FAR)
    d.dispatch(other)
    assert d.count("hits") == 0


def test_without_cooperation_close_is_closer() -> None:
    for cooperation, waits in ((1, False), (0, True)):
        d = Driver("anticipatory", cooperation=cooperation)
        read_with_another_pending(d)
        d.at(6).send(3, 4096)
        assert (d.choose()[0] == "wait") is waits
