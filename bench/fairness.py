# SPDX-License-Identifier: GPL-2.0-only
"""Who pays for the sum: shares and the light process's latency, on mixes drawn at the time.

    python bench/fairness.py                      12 mixes of a fresh seed, which is printed
    python bench/fairness.py --seed 7 --mixes 40  the same mixes each time
    python bench/fairness.py --kind light scan    these kinds of mixes only
    python bench/fairness.py --array raid5:5 raid0:4  on such arrays in turn
    python bench/fairness.py --owners process     where the scheduler knows who sends

Each mix runs on one disk, with owners hidden, under none (noop), deadline, cfq and stream. On an
array cfq's place is taken by apart: stream on members that are not coordinated.
A process's share is its rate divided by its rate alone. A policy's line has, each with its noise
(half of the range over the same work begun up to 20 ms otherwise):

    sum       the sum of shares, and what part of the frontier 1 - c (n - 1) / W it is, where c is
              a switch between the processes' places by the disk's curve and W is 500 ms
    least     the least share times the number of processes: 1 is an equal part of the disk
    mean, p99 the light process's response times in ms, of several the slowest one's; the bounds
              stand above the table
    busy      what the others keep of their sum without the light ones
    wait      the longest wait of any request, in ms

"!" marks what misses its bound: sum 0.93 of the frontier, least 0.8 of it (equal readers and a scan
beside a random reader 0.9; more than the frontier none can have), busy 0.9 of
1 - min(2 c r, 1 / n). Everything is virtual time.

At the end stands what quantiles of all mixes have: the least share times the number of processes,
and the longest wait; also in how many the sum is below 0.97 of deadline's.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import random
import statistics
import sys
from collections.abc import Sequence

from rich.console import Console

from streamsched.base.errors import Interrupted, UsageError, exit_code_of, named
from streamsched.sim.array import Array, parse_array
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Run, Setup, measured_curve
from streamsched.sim.tasks import Task, run_task, run_tasks
from streamsched.work.jobfile import parse_jobs
from streamsched.work.process import Process

__all__ = ["bounds_of", "draw", "run_task", "task"]

DISKS = ("st2000dm006", "exos-x18", "wd5000aaks")
DEPTHS = (1, 32)
POLICIES = {
    "none": ("noop", ()),
    "deadline": ("deadline", ()),
    "cfq": ("cfq", ()),
    "stream": ("stream:deadline", ()),
}
ARRAY_POLICIES = {name: POLICIES[name] for name in ("none", "deadline")} | {
    "apart": POLICIES["stream"],
    "stream": POLICIES["stream"],
}
KINDS = ("equal", "random", "mixed", "writers", "scan", "light")
WIDER_KINDS = ("synced", "strided", "deep", "lights", "pieces", "small", "journal")
ALL_KINDS = KINDS + WIDER_KINDS
TARGET_S = 0.5
RUN_S, RAMP_S = 24, 4
LATER_NS = 20_000_000
# The bounds of a light process: how much above the larger of this and its part, and p99 to that.
LIGHT_MS, LIGHT_MEAN, LIGHT_P99 = 40, 1.2, 3
SUM, LEAST, EQUAL_LEAST, BUSY = 0.93, 0.8, 0.9, 0.9

READERS = {
    **{f"read-{k}k": f"rw=read\nbs={k}k" for k in (64, 256, 1024)},
    **{f"direct-read-{k}k": f"rw=read\nbs={k}k\ndirect=1" for k in (64, 256, 1024)},
    "scan": "rw=read\nbs=1m\ndirect=1\nioengine=libaio\niodepth=3",
    **{f"random-{k}k": f"rw=randread\nbs={k}k\ndirect=1" for k in (4, 64)},
    "random-4k-x4": "rw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4",
}
WRITERS = {
    "write-256k": "rw=write\nbs=256k",
    "direct-write-64k": "rw=write\nbs=64k\ndirect=1",
    "direct-write-1024k": "rw=write\nbs=1m\ndirect=1",
}
WIDER = {
    "synced": {
        "write-16k-fsync": "rw=write\nbs=16k\nfsync=1",
        "write-64k-fsync-8": "rw=write\nbs=64k\nfsync=8",
        "randwrite-4k-fsync": "rw=randwrite\nbs=4k\nfsync=1",
    },
    "strided": {
        f"strided-{k}k": f"rw=read:{skip}k\nbs={k}k\ndirect=1"
        for k, skip in ((8, 1024), (64, 64), (64, 1024))
    },
    "deep": {
        f"random-{k}k-x{nr}": f"rw=randread\nbs={k}k\ndirect=1\nioengine=libaio\niodepth={nr}"
        for k, nr in ((4, 16), (4, 32), (64, 8))
    },
    "pieces": {
        f"{size}k-pieces-by-{bs}k-x{nr}": f"rw=randread:{size // bs}\nbs={bs}k\ndirect=1\n"
        f"ioengine=libaio\niodepth={nr}"
        for size, bs, nr in ((512, 128, 2), (2048, 128, 2), (2048, 64, 1), (8192, 256, 1))
    },
}
JOBS = {
    **READERS,
    **WRITERS,
    **{name: job for some in WIDER.values() for name, job in some.items()},
}

# The quantiles that are shown of what should be high, and of what should be low.
LOW, HIGH = (0, 2, 5, 10, 25, 50), (50, 75, 90, 98, 100)


@dataclasses.dataclass(frozen=True)
class Mix:
    """Processes on a disk; light ones are the last."""

    kind: str
    disk: str
    depth: int
    names: tuple[str, ...]
    processes: tuple[Process, ...]
    rate: int = 0  # requests/s of a light one, 0: there is none
    lights: int = 0  # so many are light
    array: Array | None = None  # of such disks

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(ARRAY_POLICIES if self.array else POLICIES)

    @property
    def nr(self) -> int:
        return len(self.processes)

    def switch_s(self) -> float:
        """A switch between two processes' places, by the disk's curve, mean of all pairs."""
        curve = measured_curve(load_disk(self.disk))
        ways = []
        for one, other in itertools.combinations(self.processes, 2):
            far = abs(one.offset - other.offset) // 512
            far //= self.array.data_members if self.array else 1
            before = max(point for point in curve if point[0] <= far)
            ways.append(before[1] / 1e9)
        return statistics.mean(ways)

    def beginnings(self, nr: int) -> list[tuple[Process, ...]]:
        """The same work, begun at so many other moments."""
        result = []
        for number in range(nr):
            dice = random.Random(number)
            late = (dice.randrange(LATER_NS) if number else 0 for _ in self.processes)
            result.append(
                tuple(
                    dataclasses.replace(each, startdelay_ns=delay)
                    for each, delay in zip(self.processes, late, strict=True)
                )
            )
        return result


def _processes(texts: Sequence[str], capacity: int, small_mib: int) -> tuple[Process, ...]:
    """One of each, in equal parts of @capacity bytes; random ones side by side, if they are small.

    @small_mib: the size of those; 0: they are not.
    """
    part_mib = capacity // len(texts) >> 20
    job = f"[global]\nruntime={RUN_S}\nramp_time={RAMP_S}\ntime_based\n"
    for number, text in enumerate(texts):
        at_mib, size_mib = number * part_mib, part_mib * 3 // 4
        if small_mib and "randread" in text:
            at_mib, size_mib = number * small_mib, small_mib
        job += f"[p{number}]\n{text}\noffset={at_mib}m\nsize={size_mib}m\n"
    return tuple(parse_jobs(job, "mix", capacity_bytes=capacity))


def draw(dice: random.Random, kind: str, array: Array | None = None) -> Mix:
    """A mix of this kind, on one disk or an array of them."""
    disk, depth, rate, lights, small_mib = dice.choice(DISKS), dice.choice(DEPTHS), 0, 0, 0
    if kind == "equal":
        names = [dice.choice([n for n in READERS if "random" not in n])] * dice.randint(2, 8)
    elif kind == "random":
        names = [dice.choice([n for n in READERS if "random" in n])] * dice.randint(2, 8)
    elif kind == "scan":
        names = ["scan", "random-4k"]
    elif kind == "light":
        rate = dice.choice((10, 10, 50))
        nr = 1 if rate == 50 else dice.choice((1, 2, 4, 8, 16))
        names = [dice.choice(["read-64k", "direct-read-256k", "read-1024k"]) for _ in range(nr)]
        lights = 1
    elif kind == "lights":
        rate, lights = dice.choice((5, 10)), dice.randint(2, 4)
        names = [dice.choice([*READERS, *WIDER["deep"]]) for _ in range(dice.randint(1, 4))]
    elif kind == "journal":
        rate, lights = dice.choice((2, 5, 10)), dice.randint(1, 2)
        names = [dice.choice([*READERS, *WIDER["deep"]]) for _ in range(dice.randint(1, 4))]
    elif kind == "small":
        small_mib = dice.choice((50, 200, 500, 1000, 4000))
        names = [dice.choice([n for n in READERS if "random" in n])] * dice.randint(2, 16)
        names += dice.choice(([], ["scan"]))
    elif kind in WIDER:
        known = {**READERS, **WIDER[kind]}
        names = [dice.choice(list(known)) for _ in range(dice.randint(1, 6))]
        names.append(dice.choice(list(WIDER[kind])))
    else:
        known = {**READERS, **WRITERS} if kind == "writers" else READERS
        names = [dice.choice(list(known)) for _ in range(dice.randint(2, 8))]
        if kind == "writers":
            names[0] = dice.choice(list(WRITERS))
    if not small_mib:  # there a scan is last, behind them
        dice.shuffle(names)
    texts = [JOBS[name] for name in names]
    for _ in range(lights):
        kib, order = dice.choice((4, 16, 64)), dice.choice(("read", "randread"))
        sync = ""
        if kind == "journal":
            order, sync = order.replace("read", "write"), "fsync=1\n"
        texts.append(f"rw={order}\nbs={kib}k\ndirect=1\n{sync}thinktime={1_000_000 // rate}")
        names.append(f"light-{order}-{kib}k-{rate}/s")
    capacity = Setup(load_disk(disk), "noop", array=array).capacity_bytes
    processes = _processes(texts, capacity, small_mib)
    return Mix(kind, disk, depth, tuple(names), processes, rate, lights, array)


def task(mix: Mix, policy: str, processes: Sequence[Process], owners: str = "none") -> Task:
    """@processes of @mix under a policy that knows who sends (process), or not (none)."""
    spec, tunables = {**POLICIES, **ARRAY_POLICIES}[policy]
    array = mix.array
    if array and policy == "apart":
        array = dataclasses.replace(array, coordinated=False)
    setup = Setup(
        load_disk(mix.disk),
        spec,
        owners=owners,
        queue_depth=mix.depth,
        tunables=tunables,
        array=array,
    )
    return Task(policy, setup, tuple(processes))


def _mean_and_noise(values: Sequence[float]) -> tuple[float, float]:
    return statistics.mean(values), (max(values) - min(values)) / 2


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What a mix is to keep."""

    frontier: float
    mean_ms: float
    busy: float
    least: float


def bounds_of(mix: Mix) -> Bounds:
    """See the module."""
    switch_s, nr = mix.switch_s(), mix.nr
    think_s = 1 / mix.rate if mix.rate else 0.0
    part_ms = 1000 * (nr * 2 * switch_s - think_s)
    least = EQUAL_LEAST if mix.kind in ("equal", "random", "scan") else LEAST
    frontier = max(1 - switch_s * (nr - 1) / TARGET_S, 0.01)
    return Bounds(
        frontier=frontier,
        mean_ms=LIGHT_MEAN * max(LIGHT_MS, part_ms),
        busy=BUSY * (1 - min(2 * switch_s * mix.rate, 1 / nr)),
        least=least * frontier,
    )


@dataclasses.dataclass(frozen=True)
class Line:
    """What came of a mix under a policy, each figure with its noise."""

    total: tuple[float, float]
    least: tuple[float, float]
    mean_ms: tuple[float, float]
    p99_ms: tuple[float, float]
    busy: tuple[float, float]
    wait_ms: float


def line_of(mix: Mix, runs: Sequence[Run], alone: Sequence[float], busy_alone: float) -> Line:
    """Of @runs, which differ only in when the processes began."""
    shares = [
        [job.bytes / RUN_S / rate for job, rate in zip(r.jobs, alone, strict=True)] for r in runs
    ]
    first = mix.nr - max(1, mix.lights)
    lights = [
        [max(job.latency, key=lambda times: times["max_ns"]) for job in run.jobs[first:]]
        for run in runs
    ]
    light = [max(some, key=lambda times: times["mean_ns"]) for some in lights]
    return Line(
        _mean_and_noise([sum(some) for some in shares]),
        _mean_and_noise([min(some) * mix.nr for some in shares]),
        _mean_and_noise([times["mean_ns"] / 1e6 for times in light]),
        _mean_and_noise([times["p99_ns"] / 1e6 for times in light]),
        _mean_and_noise([sum(some[:first]) / busy_alone if busy_alone else 0.0 for some in shares]),
        max(job.longest_wait_ns for run in runs for job in run.jobs) / 1e6,
    )


def _cell(value: tuple[float, float], missed: bool, digits: int = 2) -> str:
    return f"{value[0]:7.{digits}f}{'!' if missed else ' '}+-{value[1]:<5.{digits}f}"


def show(mix: Mix, bounds: Bounds, lines: dict[str, Line]) -> None:
    """A table of at most 80 columns."""
    on = f"{mix.array} of {mix.disk}" if mix.array else mix.disk
    print(f"{mix.kind}: {on}, {mix.depth} commands, switch {1000 * mix.switch_s():.1f} ms")
    counts = {name: mix.names.count(name) for name in dict.fromkeys(mix.names)}
    print("  " + ", ".join(f"{nr} {name}" if nr > 1 else name for name, nr in counts.items()))
    if mix.rate:
        print(
            f"  bounds: mean {bounds.mean_ms:.0f} ms, p99 {LIGHT_P99 * bounds.mean_ms:.0f} ms, "
            f"busy {bounds.busy:.2f}"
        )
        print(
            f"  {'policy':9} {'mean ms':>8}{'':7} {'p99 ms':>8}{'':7} "
            f"{'busy':>8}{'':7} {'wait ms':>8}"
        )
    else:
        print(f"  frontier {bounds.frontier:.3f}")
        print(f"  {'policy':9} {'sum':>8}{'':7} {'of it':>6} {'least x n':>9}{'':6} {'wait ms':>8}")
    for policy, line in lines.items():
        if mix.rate:
            cells = (
                _cell(line.mean_ms, line.mean_ms[0] > bounds.mean_ms, 1),
                _cell(line.p99_ms, line.p99_ms[0] > LIGHT_P99 * bounds.mean_ms, 1),
                _cell(line.busy, line.busy[0] < bounds.busy),
            )
            print(f"  {policy:9} {' '.join(cells)} {line.wait_ms:8.0f}")
            continue
        part = line.total[0] / bounds.frontier
        total = _cell(line.total, part < SUM)
        least = _cell(line.least, line.least[0] < bounds.least)
        print(f"  {policy:9} {total} {part:6.2f} {least} {line.wait_ms:8.0f}")
    print(flush=True)


def measure(mix: Mix, beginnings: int, jobs: int, owners: str, console: Console) -> dict[str, Line]:
    """All policies on @mix."""
    drawn = mix.beginnings(beginnings)
    alone = [task(mix, "none", (process,)) for process in mix.processes]
    if mix.rate:
        # The others without the light ones: by the policy itself.
        heavy = mix.processes[: -mix.lights]
        alone += [task(mix, policy, heavy, owners) for policy in mix.policies]
    tasks = [task(mix, policy, some, owners) for policy in mix.policies for some in drawn]
    results, interrupted = run_tasks([*alone, *tasks], jobs, console, together="fairness")
    if interrupted:
        raise Interrupted("interrupted before there was a result")
    found = [run for run in results if run]
    rates = [run.jobs[0].bytes / RUN_S for run in found[: mix.nr]]
    without = found[mix.nr : len(alone)]
    lines = {}
    for number, policy in enumerate(mix.policies):
        at = len(alone) + number * beginnings
        busy = 0.0
        if mix.rate:
            pairs = zip(without[number].jobs, rates, strict=False)
            busy = sum(job.bytes / RUN_S / rate for job, rate in pairs)
        lines[policy] = line_of(mix, found[at : at + beginnings], rates, busy)
    return lines


def quantile(values: Sequence[float], percent: int) -> float:
    """The value that @percent of @values, one or more, are below, or nearly."""
    return sorted(values)[min(len(values) * percent // 100, len(values) - 1)]


def show_quantiles(every: dict[str, list[Line]], waits: dict[str, list[float]]) -> None:
    """How all mixes are spread: @every those with a least share, @waits of all in ms."""
    if every["deadline"]:
        heads = "".join(f"{f'{percent} %':>7}" for percent in LOW)
        print(f"\nleast x n  {heads}   sum  below 0.97 of deadline's")
        for policy, lines in every.items():
            shares = "".join(f"{quantile([one.least[0] for one in lines], p):7.2f}" for p in LOW)
            pairs = zip(lines, every["deadline"], strict=True)
            below = sum(one.total[0] < 0.97 * other.total[0] for one, other in pairs)
            total = statistics.mean(one.total[0] for one in lines)
            print(f"  {policy:9}{shares} {total:5.2f}  {below} of {len(lines)}")
    heads = "".join(f"{f'{percent} %':>7}" for percent in HIGH)
    print(f"\nwait ms    {heads}")
    for policy, found in waits.items():
        print(f"  {policy:9}{''.join(f'{quantile(found, percent):7.0f}' for percent in HIGH)}")


def main() -> None:
    """Draw, run, print; then how many mixes each policy keeps the bounds of."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, help="of the mixes; without it a fresh one")
    parser.add_argument("--mixes", type=int, default=12, help="how many")
    parser.add_argument("--kind", nargs="*", default=[], help=f"of {', '.join(ALL_KINDS)}")
    parser.add_argument("--owners", choices=("none", "process"), default="none", help="known")
    parser.add_argument(
        "--array", type=parse_array, nargs="+", help="as run --array has it; several: in turn"
    )
    parser.add_argument("--beginnings", type=int, default=3, help="runs of each, for the noise")
    parser.add_argument("--parallel", type=int, default=2, help="simulations at once")
    arguments = parser.parse_args()
    for option in ("mixes", "beginnings", "parallel"):
        if getattr(arguments, option) < 1:
            raise UsageError(f"--{option}: {getattr(arguments, option)} is too few; at least 1")
    (kinds,) = named(arguments.kind, ("kind", ALL_KINDS))
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(10**6)
    policies = ARRAY_POLICIES if arguments.array else POLICIES
    print(f"seed {seed}; policies {', '.join(policies)}; owners {arguments.owners}\n", flush=True)
    kept: dict[str, list[int]] = {policy: [0, 0, 0] for policy in policies}
    every: dict[str, list[Line]] = {policy: [] for policy in policies}
    waits: dict[str, list[float]] = {policy: [] for policy in policies}
    totals = [0, 0, 0]
    for number in range(arguments.mixes):
        array = arguments.array[number % len(arguments.array)] if arguments.array else None
        # Each array meets all kinds, though their numbers have a common divisor.
        turn = number + number // len(arguments.array or (None,))
        dice = random.Random(f"{seed}-{number}")
        mix = draw(dice, kinds[(turn if array else number) % len(kinds)], array)
        bounds = bounds_of(mix)
        lines = measure(
            mix, arguments.beginnings, arguments.parallel, arguments.owners, Console(stderr=True)
        )
        show(mix, bounds, lines)
        for at, one in enumerate((not mix.rate, not mix.rate, mix.rate)):
            totals[at] += bool(one)
        for policy, line in lines.items():
            waits[policy].append(line.wait_ms)
            if mix.rate:
                kept[policy][2] += (
                    line.mean_ms[0] <= bounds.mean_ms
                    and line.p99_ms[0] <= LIGHT_P99 * bounds.mean_ms
                    and line.busy[0] >= bounds.busy
                )
            else:
                every[policy].append(line)
                kept[policy][0] += line.least[0] >= bounds.least
                kept[policy][1] += line.total[0] >= SUM * bounds.frontier
    print("mixes within the bounds: least share, sum, light")
    for policy, counts in kept.items():
        within = "   ".join(f"{n:3} of {t}" for n, t in zip(counts, totals, strict=True))
        print(f"  {policy:9} {within}")
    show_quantiles(every, waits)


if __name__ == "__main__":
    sys.exit(exit_code_of("fairness.py", main))
