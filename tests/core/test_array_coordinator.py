# SPDX-License-Identifier: GPL-2.0-only
"""An array's coordinator under random events: nothing is lost, stuck or missed."""

from __future__ import annotations

import random
from typing import Any

import pytest
from array_driver import MEMBER, ArrayDriver, wanted
from policy_driver import FAR, FOREVER


class Steps:
    """Readers and others at random on a random array; members come and go."""

    def __init__(self, seed: int, *, eager: bool = False) -> None:
        self.dice = dice = random.Random(seed)
        nr = dice.choice((2, 3, 5, 8, 32))
        spec = dice.choice(("stream:noop", "stream:deadline", "stream:sptf"))
        level = "RAID5" if nr > 2 and dice.random() < 0.3 else "RAID0"
        target = dice.choice((10, 124, 500)) * 1_000_000
        self.depth = dice.choice((1, 1, 4))
        self.eager = eager
        self.arr = ArrayDriver(nr, spec, level=level, wait_target=target)
        self.arr.array.places = dice.random() < 0.5
        self.places = [dice.randrange(8) * 2**20 for _ in range(4)]
        self.due: list[tuple[float, int, Any]] = []
        self.wake = [0.0] * nr
        self.arrived = self.gone = self.idle = 0

    def ask(self, i: int) -> None:
        arr, member = self.arr, self.arr.members[i]
        place = wanted(arr, i)
        if place and self.dice.random() < 0.8:
            member.send(0, *place, placing=True)
            self.arrived += 1
        while len(member.at_disk) < self.depth:
            verdict, *rest = member.choose()
            after = bytes(arr.ffi.buffer(arr.array))
            assert member.choose() == (verdict, *rest)
            assert bytes(arr.ffi.buffer(arr.array)) == after, "asking twice changed something"
            if verdict == "dispatch":
                rq = member.dispatch(rest[0])
                self.due.append((member.now + self.dice.choice((0.3, 1, 12)), i, rq))
                continue
            if verdict == "wait" and rest[0] is not FOREVER:
                self.wake[i] = rest[0]
            break

    def arrives(self) -> None:
        dice, arr = self.dice, self.arr
        self.arrived += 1
        if dice.random() < 0.75:
            which = dice.randrange(4)
            i = arr.members.index(arr.read(self.places[which])[0])
            self.places[which] += 1
        else:
            i = dice.randrange(len(arr.members))
            kind = {"write": dice.random() < 0.3, "sync": dice.random() < 0.5}
            sector = dice.choice((dice.randrange(FAR), MEMBER + dice.randrange(FAR)))
            arr.members[i].send(0, sector, dice.choice((8, 128, 300)), **kind)
        self.ask(i)

    def changes(self) -> None:
        """A member leaves or returns, or one of its requests is taken back or grows."""
        dice, arr = self.dice, self.arr
        i = dice.randrange(len(arr.members))
        member = arr.members[i]
        if dice.random() < 0.3:
            arr.detach(i)
            self.ask(i)
        elif not arr.array.attached & (1 << i):
            assert arr.attach(i) == 0
        elif member.pending and dice.random() < 0.5:
            member.remove(dice.choice(member.pending))
            self.gone += 1
        elif member.pending:
            member.merge(dice.choice(member.pending))
        elif dice.random() < 0.5:
            member.flushes(begins=True)
            member.flushes(begins=False)
        self.ask(i)

    def time_passes(self, may_stop: bool) -> None:
        """To the next completion or the end of a wait."""
        arr = self.arr
        times = [t for t, _, _ in self.due]
        times += [w for i, w in enumerate(self.wake) if w and arr.members[i].pending]
        assert times or may_stop, "nothing will ever happen"
        if times:
            arr.at(min(times))
        now = arr.now + 1e-6
        self.idle += 1
        for i in range(len(arr.members) if self.eager else 0):
            self.ask(i)
        self.asks_kicked()
        for done in sorted([d for d in self.due if d[0] <= now], key=lambda d: d[:2]):
            self.due.remove(done)
            arr.members[done[1]].complete(done[2])
            self.gone += 1
            self.idle = 0
            self.ask(done[1])
        for i, at in enumerate(self.wake):
            if at and at <= now:
                self.wake[i] = 0.0
                self.ask(i)
        assert self.idle < 20000, "waits again and again"

    def asks_kicked(self) -> None:
        while self.arr.kicked:
            self.ask(self.arr.kicked.pop())

    def run(self) -> None:
        arr, left = self.arr, 250
        while left or self.due or any(member.pending for member in arr.members):
            if left and self.dice.random() < 0.6:
                left -= 1
                self.arrives()
            elif left and self.dice.random() < 0.1:
                self.changes()
            else:
                self.time_passes(left > 0)
            self.asks_kicked()
            arr.counts()
            self.nobody_is_missed()
        assert self.gone == self.arrived
        assert arr.is_empty()
        assert all(member.choose() == ("nothing",) for member in arr.members)

    def nobody_is_missed(self) -> None:
        """Who was asked when time passed and could send something now has been kicked."""
        for member in self.arr.members if self.eager else ():
            if len(member.at_disk) < self.depth and member.pending:
                assert member.choose()[0] == "wait"
        assert not self.eager or not self.arr.kicked


@pytest.mark.property
@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_lost_or_stuck(seed: int) -> None:
    Steps(seed).run()


@pytest.mark.property
def test_who_may_send_something_is_asked() -> None:
    """Nobody could send something, asked at this moment once more, without a kick."""
    for seed in (*range(20), 44, 75, 84):
        Steps(seed, eager=True).run()
