# SPDX-License-Identifier: GPL-2.0-only
"""Drive an array's coordinator and its members' schedulers, under one clock in ms."""

from __future__ import annotations

from typing import Any

from policy_driver import FAR, Driver

from streamsched._core import ffi, lib

CHUNK = 128
THRESHOLD = 4  # stream_threshold's default
MEMBER = 2**30  # sectors of a member that are the array's; its disk has more


class ArrayDriver:
    """Members under one clock, in ms, attached to a coordinator."""

    def __init__(
        self,
        nr: int = 2,
        spec: str = "stream:noop",
        *,
        level: str = "RAID0",
        attach: bool = True,
        rows: int = MEMBER // CHUNK,
        **tun: int,
    ) -> None:
        self.ffi, self.lib = ffi, lib
        self.members = [Driver(spec, **tun) for _ in range(nr)]
        geometry = self.ffi.new("struct ss_array_geometry *")
        geometry.level, geometry.nr_members = getattr(self.lib, f"SS_ARRAY_{level}"), nr
        layout = "NEAR" if level == "RAID10" else "LEFT_SYMMETRIC"
        geometry.layout = getattr(self.lib, f"SS_ARRAY_{layout}")
        geometry.chunk_sectors = CHUNK
        for i in range(nr):
            geometry.member_sectors[i] = rows * CHUNK
        self.why = self.ffi.new("char[160]")
        assert self.lib.ss_array_geometry_init(geometry, self.why, 160) == 0
        self.array = self.ffi.new("struct ss_array *")
        self.kicked: list[int] = []
        self.locked = 0
        self._callbacks(ffi)
        self.lib.ss_array_init(self.array, geometry)
        if attach:
            for i in range(nr):
                assert self.attach(i) == 0, self.sentence()

    def _callbacks(self, ffi: Any) -> None:
        """The lock is taken once at a time, and kick comes under it."""

        def lock(_: Any) -> None:
            assert not self.locked
            self.locked += 1

        def unlock(_: Any) -> None:
            assert self.locked
            self.locked -= 1

        def kick(_: Any, member: int) -> None:
            assert self.locked
            self.kicked.append(member)

        self.keep = [
            ffi.callback("void(struct ss_array *)", lock),
            ffi.callback("void(struct ss_array *)", unlock),
            ffi.callback("void(struct ss_array *, uint32_t)", kick),
        ]
        self.array.lock, self.array.unlock, self.array.kick = self.keep

    def attach(self, member: int) -> int:
        sched = self.members[member].sched
        return int(self.lib.ss_array_attach(self.array, member, sched, self.why, 160))

    def detach(self, member: int) -> None:
        self.lib.ss_array_detach(self.array, member, self.members[member].now_ns)

    def sentence(self) -> str:
        return str(self.ffi.string(self.why).decode())

    @property
    def now(self) -> float:
        return max(member.now for member in self.members)

    def at(self, ms: float) -> None:
        for member in self.members:
            member.at(ms)

    def later(self, ms: float) -> None:
        self.at(self.now + ms)

    def count(self, counter: str) -> int:
        counters = self.ffi.new("struct ss_array_counters *")
        self.lib.ss_array_counters(self.array, counters)
        return int(getattr(counters, counter))

    def reasons(self, name: str) -> int:
        """How many requests were released because of this."""
        return int(self.array.sched.dispatched_by[getattr(self.lib, f"SS_WHY_{name}")])

    def turn(self) -> tuple[bool, int]:
        """Is it a stream's, and where has it come to?"""
        return bool(self.array.turn), int(self.array.turn_sector)

    def in_turn(self) -> bool:
        return self.turn()[0]

    def counts(self) -> dict[str, int]:
        """Of all members together; checked against what their schedulers have."""
        names = ("plain", "held", "released", "sent")
        total = dict.fromkeys(names, 0)
        for one in self.array.member[0 : len(self.members)]:
            nr = {name: int(getattr(one, f"nr_{name}")) for name in names}
            if one.sched:
                assert nr["plain"] + nr["held"] + nr["released"] <= one.sched.nr_pending
                assert nr["sent"] <= one.sched.nr_in_flight
            else:
                assert not any(nr.values())
            total = {name: total[name] + nr[name] for name in names}
        assert total["held"] == self.array.sched.nr_pending
        assert total["released"] + total["sent"] == self.array.sched.nr_in_flight
        return total

    def is_empty(self) -> bool:
        """Nothing is counted, and each place for a request is free."""
        free, node = 0, self.array.free.next
        while node != self.ffi.addressof(self.array.free):
            free, node = free + 1, node.next
        assert not self.array.sched.nr_async_in_flight
        return free == self.lib.SS_ARRAY_REQUESTS and not any(self.counts().values())

    def place(self, chunk: int) -> tuple[Driver, int]:
        """Which member has this chunk of the array, and where."""
        at = self.ffi.new("struct ss_array_place *")
        geometry = self.ffi.addressof(self.array.geometry)
        self.lib.ss_array_map(geometry, chunk * CHUNK, 0, at)
        return self.members[at.member], int(at.sector)

    def read(self, chunk: int, sectors: int = CHUNK, **kind: bool) -> tuple[Driver, Any]:
        """Asks for the beginning of a chunk of the array."""
        member, sector = self.place(chunk)
        return member, member.send(0, sector, sectors, **kind)

    def serve(self, member: Driver, rq: Any, ms: float = 1) -> None:
        """As soon as the member may send it."""
        member.wait().dispatch(rq)
        self.at(member.now + ms)
        member.complete(rq)

    def follow(
        self,
        first: int,
        nr: int,
        *,
        service: float = 1,
        think: float = 0.1,
        step: int = 1,
        sectors: int = CHUNK,
        **kind: bool,
    ) -> int:
        """A reader of every @step-th chunk, one at a time; returns the one that comes next."""
        for chunk in range(first, first + nr * step, step):
            self.serve(*self.read(chunk, sectors, **kind), service)
            self.later(think)
        return first + nr * step

    def burden(self) -> None:
        """The rest has had the heads for so long that it interrupts nobody."""
        for i in range(40):
            member = self.members[i % len(self.members)]
            self.serve(member, member.send(0, FAR + i * 2**23), 15)

    def serve_all(self, ms: float = 5) -> None:
        """All that is pending and in flight, one after the other."""
        for _ in range(100_000):
            self.later(0.1)
            for member in self.members:
                while member.choose()[0] == "dispatch":
                    member.dispatch()
            busy = [member for member in self.members if member.at_disk]
            if not busy and not any(member.pending for member in self.members):
                return
            self.later(ms)
            for member in busy:
                member.complete()
        raise AssertionError("something is stuck")


def stream(arr: ArrayDriver, *, burden: bool = True) -> int:
    """A wide stream that has its turn; its next chunk."""
    if burden:
        arr.burden()
    chunk = arr.follow(0, 4 * len(arr.members))
    assert arr.in_turn() and arr.count("established") == 1
    return chunk


def wanted(arr: ArrayDriver, member: int) -> tuple[int, int] | None:
    """What the host is asked to read there: sector, length."""
    sector, nr = arr.ffi.new("uint64_t *"), arr.ffi.new("uint32_t *")
    if not arr.lib.ss_array_place(arr.array, member, sector, nr):
        return None
    return int(sector[0]), int(nr[0])
