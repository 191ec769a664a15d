# SPDX-License-Identifier: GPL-2.0-only
"""The bound of a job file: what its processes do alone, and how much of that all can do together.

A policy is compared with the bound for the longest time that the head was away from a stream in
its own run: where that is longer than the target, it has bought its shares with waits.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Iterable, Sequence

from rich.console import Console

from streamsched.base.errors import Interrupted, UsageError
from streamsched.bound.arm import Arm
from streamsched.bound.mix import Asked, Bound, Infeasible, Mix, Shares
from streamsched.bound.party import Kind, party_of, sharing
from streamsched.bound.spread import ONE_DISK, Spread, spread_of
from streamsched.sim.compare import Comparison, alone_tasks, stand_ins
from streamsched.sim.requestlog import row_layout
from streamsched.sim.simulate import NS, Run, Setup, run_jobs
from streamsched.sim.tasks import run_tasks
from streamsched.work.process import RW_RANDOM, RW_WRITE, Process

# A process that alone took so much of its runtime would have gone on.
STOPPED = 0.99
# Without a runtime nothing takes longer alone, in virtual time.
MOST_S = 3600
# A writer that caches might take so much more of than it has alone.
LOOSE = 2.0


@dataclasses.dataclass(frozen=True)
class Reached:
    """What a policy gives, and the bound that holds for it."""

    policy: str
    shares: tuple[float, ...]
    total: float  # the sum of shares, or the efficiency of a job with an end
    absent_s: float  # the longest that the head was away from a stream
    most: float  # the greatest total

    @property
    def least(self) -> float:
        return min(self.shares) * len(self.shares)

    @property
    def regret(self) -> float:
        """What part of the greatest sum is missing; below 0 there is a bug."""
        return 1 - self.total / self.most


def check_setup(setup: Setup) -> None:
    """Refuse a disk or an array that nothing is proved for."""
    spread_of(setup)
    Arm(setup.disk)


class JobBound:
    """A job's processes on a disk, measured alone."""

    def __init__(
        self, setup: Setup, processes: Sequence[Process], jobs: int, console: Console
    ) -> None:
        self.spread = spread_of(setup)
        self.setup, self.processes = setup, list(processes)
        arm = self.arm = Arm(setup.disk)
        for process in self.processes:
            self._check_end(process)
        tasks = alone_tasks(self.processes, setup)
        runs, interrupted = run_tasks(list(tasks.values()), jobs, console)
        if interrupted:
            raise Interrupted("interrupted before there was a bound")
        alone = dict(zip(tasks, (run for run in runs if run), strict=True))
        standing = stand_ins([process.section for process in self.processes])
        self.alone = [alone[number] for number in standing]
        for process, run in zip(self.processes, self.alone, strict=True):
            if not run.bytes or not run.duration_ns:
                raise UsageError(f"{process.name}: does no I/O alone, so it has no share to bound")
        shared = sharing(self.processes, setup)
        self.parties = [
            party_of(process, run, setup, arm, nr)
            for process, run, nr in zip(self.processes, self.alone, shared, strict=True)
        ]
        self.rates = {number: party.rate for number, party in enumerate(self.parties)}

    def _check_end(self, process: Process) -> None:
        """Refuse what would be measured alone for more than an hour of its own.

        One in the background ends with the others.
        """
        if process.runtime_ns or process.background:
            return
        nr_bytes = process.io_bytes or process.size
        blocks = nr_bytes / max(process.align_bytes, 512) if process.rw & RW_RANDOM else 0
        disk = self.setup.disk
        need_s = nr_bytes * self.arm.sector_ns(0, disk.capacity_sectors) / 512 / NS
        need_s += blocks * disk.rotation_ns / 2 / NS
        need_s /= self.spread.members
        if need_s > MOST_S or process.time_based:
            raise UsageError(
                f"{process.name}: has no end within an hour, so there is nothing to bound; give it "
                "a runtime, as with --runtime 30s"
            )

    def _stopped(self, at: int) -> bool:
        """By its runtime: it would have gone on."""
        process = self.processes[at]
        if process.time_based:
            return True
        return (
            process.runtime_ns > 0 and self.alone[at].seconds * NS >= STOPPED * process.runtime_ns
        )

    @property
    def steady(self) -> bool:
        """All go on until their runtime ends, and that together."""
        spans = {(one.runtime_ns, one.ramp_ns, one.stage) for one in self.processes}
        return (
            len(spans) == 1
            and not any(one.background or one.wait_for for one in self.processes)
            and all(self._stopped(at) for at in range(len(self.processes)))
        )

    def mix(self, absent_s: float) -> Mix:
        """The program, for streams that the head leaves alone for so long at most."""
        if self.steady:
            seconds = self.processes[0].runtime_ns / NS
            late = max(process.startdelay_ns for process in self.processes) / NS
            absent_ns = (absent_s + late) * NS
            heads = self.spread.members if self.spread.copies > 1 else 1
            asked = Asked(self.setup.queue_depth, absent_ns, seconds, heads=heads)
            return Mix(self.arm, self.parties, asked)
        works = tuple(
            0.0 if process.background or self._stopped(at) else self.parties[at].alone_s
            for at, process in enumerate(self.processes)
        )
        seconds = max(max(party.alone_s for party in self.parties), 1e-3)
        return Mix(self.arm, self.parties, Asked(self.setup.queue_depth, None, seconds, works))

    def bound(self, target_s: float) -> Bound:
        """Both ends of the frontier, where all run for as long; else what their work allows."""
        mix = self.mix(target_s)
        # Of several heads none need go everywhere.
        tour_ns = 0.0 if self.spread.copies > 1 else mix.tour_ns()
        late = f"a wait target of {1000 * target_s:g} ms cannot be kept"
        if self.steady and tour_ns >= target_s * NS:
            raise UsageError(
                f"{late}: the arm's way through the places of the streams takes "
                f"{tour_ns / 1e6:.1f} ms at least"
            )
        try:
            if self.steady:
                return mix.bound()
            shares = mix.efficiency()
        except Infeasible:
            raise UsageError(f"{late} by any order") from None
        return Bound(shares, shares, (shares,))

    def reached(self, policy: Setup, target_s: float) -> Reached:
        """What @policy, a setup like this one's, gives; runs it."""
        absence = Absence([process.rw & RW_WRITE > 0 for process in self.processes], self.spread)
        run = run_jobs(policy, self.processes, requests=absence.feed)
        return self.reached_by(run, absence, target_s)

    def reached_by(self, run: Run, absence: Absence, target_s: float) -> Reached:
        """Of a run whose requests @absence has seen."""
        comparison = Comparison((run,), self.rates)
        absent_s = target_s
        if self.steady:
            readers = [at for at, party in enumerate(self.parties) if party.visited]
            absent_s = max([absence.longest_s(at, run.seconds) for at in readers], default=0.0)
            seconds = self.processes[0].runtime_ns / NS
            shares = tuple(job.bytes / seconds / self.rates[at] for at, job in enumerate(run.jobs))
            total = sum(shares)
        else:
            shares = tuple(comparison.share(run, at) or 0.0 for at in range(len(run.jobs)))
            total = comparison.efficiency(run) or 0.0
        most = self.bound_most(max(absent_s, target_s))
        return Reached(run.setup.shown, shares, total, absent_s, most.total)

    def bound_most(self, absent_s: float) -> Shares:
        """The greatest sum."""
        mix = self.mix(absent_s)
        return mix.most() if self.steady else mix.efficiency()

    def loose(self) -> list[str]:
        """The processes that their bytes alone bound, or how fast caches take what they write."""
        return [
            party.name
            for party in self.parties
            if party.kind is Kind.other or (party.head_free and party.cap > LOOSE)
        ]


class Absence:
    """How long the head is away from each process, by the rows of a simulation's log.

    It is with a process from when it has gone to one of its requests until it goes to another's.
    In an array some member's head is away; where blocks have copies, the heads of all.
    What a drive's cache holds back moves the head without a request: beside writers a process is
    taken to be left alone from each of its requests to the next.
    """

    def __init__(self, writes: Sequence[bool], spread: Spread = ONE_DISK) -> None:
        self._layout, names = row_layout()
        self._at = {name: number for number, name in enumerate(names)}
        self._writers = any(writes)
        self._copies = spread.copies > 1
        self._rows: list[list[tuple[int, int, int, int]]] = [[] for _ in range(spread.members)]

    def feed(self, rows: bytes) -> None:
        """Some more rows."""
        at = self._at
        for row in self._layout.iter_unpack(rows):
            self._rows[row[at["disk"]]].append(
                (
                    row[at["start_ns"]],
                    row[at["complete_ns"]],
                    row[at["job"]],
                    row[at["position_ns"]],
                )
            )

    def _presence(self, process: int, disk: int) -> Iterable[tuple[int, int]]:
        """From when until when the head of @disk is there."""
        rows = sorted(self._rows[disk])
        begin: int | None = None
        for start, done, job, position in rows:
            if self._writers:
                if job == process:
                    yield start + position, done
            elif position:
                if job == process and begin is None:
                    begin = start + position
                elif job != process and begin is not None:
                    yield begin, start
                    begin = None
        if begin is not None:
            yield begin, max(row[1] for row in rows)

    def longest_s(self, process: int, seconds: float) -> float:
        """The longest absence in a run of so long."""
        there = [self._presence(process, disk) for disk in range(len(self._rows))]
        if self._copies:
            there = [heapq.merge(*there)]
        return max(self._longest_s(one, seconds) for one in there)

    @staticmethod
    def _longest_s(presence: Iterable[tuple[int, int]], seconds: float) -> float:
        longest, since = 0, 0
        for begin, end in presence:
            longest = max(longest, begin - since)
            since = max(since, end)
        return max(longest / NS, seconds - since / NS)
