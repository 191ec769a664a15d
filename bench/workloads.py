# SPDX-License-Identifier: GPL-2.0-only
"""Workloads drawn at the time: what stream gains, whom it costs, and how long anybody waits.

    python bench/workloads.py                       100 workloads of a fresh seed, which is printed
    python bench/workloads.py --seed 7 --count 300  the same workloads each time
    python bench/workloads.py --wide                also hundreds of processes, readers of one
                                                    place, direct writers that sync
    python bench/workloads.py --place               readers of one place that begin within 20 ms,
                                                    most of which leave gaps

Each runs under its inner policy, under the same with its processes begun up to 20 ms otherwise
(the noise), and under stream, as long as the inner policy needs 20 s for. A ratio is throughput
over the inner policy's. A wait is beyond its bound if it is longer than
max(W, n (2 c + s)) + W, where W is the target of 500 ms, n the number of requests that all
processes may have outstanding, c the longest way by the disk's curve and s what moving the largest
request takes. Everything is virtual time.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import multiprocessing
import random
import statistics
import sys

from streamsched.base.errors import exit_code_of
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.simulate import Run, Setup, measured_curve, run_jobs
from streamsched.work.process import Process

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
US, MS = 1_000, 1_000_000

# A workload is repeated until it lasts so long, in a few steps.
LASTS_NS, MORE_OFTEN, MORE_AT_ONCE = 20_000 * MS, 4, 100

MECHANICAL = ("wd5000aaks", "st2000dm006", "exos-x18")
INNER = ("noop", "deadline", "cscan", "sptf")

READ, WRITE, MIXED, RANDOM = 1, 2, 3, 4


def process(
    index: int,
    *,
    rw: int = READ,
    offset: int = 0,
    size: int = GIB,
    io: int = 4 * MIB,
    bs: int | tuple[int, ...] = 64 * KIB,
    direct: bool = True,
    iodepth: int = 1,
    think: int = 0,
    think_blocks: int = 1,
    delay: int = 0,
    read_pct: int | None = None,
    fsync: int = 0,
    end_fsync: bool = False,
    skip: int = 0,
    repeat: bool = False,
) -> Process:
    """One process. @bs may be several sizes, equally likely."""
    sizes = (bs,) if isinstance(bs, int) else bs
    weights = tuple(100 // len(sizes) for _ in sizes[1:])
    weights = (100 - sum(weights), *weights)
    if read_pct is None:
        read_pct = {READ: 100, WRITE: 0}.get(rw & MIXED, 50)
    return Process(
        name=f"p{index}",
        section=index,
        group=index,
        rw=rw,
        read_pct=read_pct,
        offset=offset,
        size=size,
        io_bytes=io,
        nr_splits=(len(sizes), len(sizes)),
        split_bytes=(sizes, sizes),
        split_pct=(weights, weights),
        range_min=(0, 0),
        range_max=(0, 0),
        align_bytes=min(sizes),
        seq_skip=skip,
        direct=direct,
        norandommap=repeat,
        iodepth=iodepth if direct else 1,
        thinktime_ns=think,
        thinktime_blocks=think_blocks,
        startdelay_ns=delay,
        runtime_ns=0,
        time_based=False,
        fsync_blocks=fsync,
        end_fsync=end_fsync,
        seed=index * 7919 + 1,
        stage=0,
        zone_size=0,
        zone_range=0,
        zone_skip=0,
    )


@dataclasses.dataclass(frozen=True)
class Workload:
    """Some processes on a disk, and how the disk is used."""

    seed: int
    disk: str
    inner: str
    depth: int
    owners: str
    processes: tuple[Process, ...]

    def setup(self, policy: str) -> Setup:
        return Setup(disk_of(self.disk), policy, owners=self.owners, queue_depth=self.depth)

    def lasting(self) -> Workload:
        """As many times its work that the inner policy needs LASTS_NS for it, or about.

        Throughput is a rate: of half a second, nothing can be learned in time. What
        stream makes of it is not looked at.
        """
        times, took = 1, self.run(self.inner).duration_ns
        for _ in range(MORE_OFTEN):
            if took >= LASTS_NS:
                break
            times = math.ceil(times * 1.05 * min(LASTS_NS / took, MORE_AT_ONCE))
            took = self.more(times).run(self.inner).duration_ns
        return self.more(times)

    def more(self, times: int) -> Workload:
        longer = tuple(
            dataclasses.replace(each, io_bytes=times * each.io_bytes) for each in self.processes
        )
        return dataclasses.replace(self, processes=longer)

    def ratio(self, **tunables: int) -> float:
        """Throughput under stream over that under the inner policy, for the same work."""
        stream = self.run(f"stream:{self.inner}", **tunables)
        return self.run(self.inner).duration_ns / stream.duration_ns

    def run(self, policy: str, **tunables: int) -> Run:
        setup = dataclasses.replace(self.setup(policy), tunables=tuple(tunables.items()))
        return run_jobs(setup, list(self.processes))


def disk_of(name: str) -> Disk:
    """The shipped disk of this name, read once."""
    if name not in _disks:
        _disks[name] = load_disk(name)
    return _disks[name]


_disks: dict[str, Disk] = {}

# What processes do: share, direction and order.
KINDS = {
    "seq": (READ, False),
    "rand": (READ | RANDOM, True),
    "regional": (READ | RANDOM, True),
    "seqwrite": (WRITE, False),
    "randwrite": (WRITE | RANDOM, True),
    "seqmixed": (MIXED, False),
    "randmixed": (MIXED | RANDOM, True),
}
THINKS = (0, 0, 0, 50 * US, 100 * US, 300 * US, 500 * US, 1 * MS)
SIZES = tuple(k * KIB for k in (4, 8, 16, 32, 64, 128, 256))


def workload(seed: int) -> Workload:
    """A random one: sizes, positions, kinds, think times, depths, disks. The same for one seed."""
    dice = random.Random(seed)
    disk = dice.choice(MECHANICAL)
    capacity = disk_of(disk).capacity_sectors * 512
    nr = dice.choice((1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16, 24, 32))
    depth = dice.choice((1, 1, 1, 2, 4, 8, 16, 32))
    # Alike, of two kinds, or each as it comes.
    variety = dice.choice((1, 1, 2, nr))
    near = dice.random() < 0.3
    base = dice.randrange(0, capacity // 2)
    models = []
    for _ in range(variety):
        kind = dice.choice(("seq",) * 4 + tuple(KINDS))
        rw, scattered = KINDS[kind]
        bs: int | tuple[int, ...] = dice.choice(SIZES)
        if dice.random() < 0.25:
            bs = tuple(sorted(dice.sample(SIZES, dice.choice((2, 3)))))
        direct = dice.random() < 0.5
        models.append(
            {
                "kind": kind,
                "rw": rw,
                "bs": bs,
                "direct": direct,
                "iodepth": dice.choice((1, 1, 1, 2, 4, 8, 16, 32)) if direct else 1,
                "think": dice.choice(THINKS) if dice.random() < 0.8 else dice.randrange(1 * MS),
                "think_blocks": dice.choice((1, 1, 1, 4, 16)),
                "read_pct": dice.choice((10, 50, 70, 90)) if (rw & MIXED) == MIXED else None,
                "fsync": dice.choice((0, 0, 1, 8, 32)) if not direct and rw & WRITE else 0,
                "skip": dice.choice((0, 0, 0, 0, 4 * KIB, 64 * KIB, 1 * MIB))
                if not scattered
                else 0,
                "repeat": dice.random() < 0.5,
            }
        )
    # About this many blocks are asked for in all.
    budget = 4000
    processes = []
    for i in range(nr):
        model = dict(models[i % variety] if variety < nr else models[i])
        kind = model.pop("kind")
        sizes = (model["bs"],) if isinstance(model["bs"], int) else model["bs"]
        mean = sum(sizes) // len(sizes)
        scattered = KINDS[kind][1]
        io = max(mean * (budget // nr), 256 * KIB)
        if not scattered:
            io = min(max(io, 2 * MIB), 32 * MIB)
        io -= io % sizes[-1]
        size = 1 * GIB
        if kind == "regional":
            size = dice.choice((1, 4, 16, 64, 256, 1024)) * MIB
            size = max(size, io if not model["repeat"] else 1 * MIB)
        elif scattered:
            size = capacity // dice.choice((1, 1, 2, 10, 100))
            model["repeat"] = True
            if not model["direct"] and KINDS[kind][0] & WRITE:
                size = 256 * MIB  # an fsync looks at all of its file
        elif model["skip"]:
            size = 8 * GIB if model["direct"] else 1 * GIB
        room = (capacity - size) // MIB * MIB
        at = base + i * dice.choice((1, 2, 8)) * GIB if near else dice.randrange(room + 1)
        offset = min(at, room) // MIB * MIB
        processes.append(
            process(
                i + seed * 64,
                offset=offset,
                size=size // MIB * MIB,
                io=io,
                delay=dice.randrange(20 * MS),
                end_fsync=bool(KINDS[kind][0] & WRITE) and not model["direct"],
                **model,
            )
        )
    return Workload(
        seed,
        disk,
        dice.choice(INNER),
        depth,
        dice.choice(("process", "none")),
        tuple(processes),
    )


def widened(seed: int) -> Workload:
    """workload(), and with it what it cannot draw: the many, one place, direct syncs, pieces."""
    dice = random.Random(f"wide {seed}")
    one = workload(seed)
    processes = list(one.processes)
    if dice.random() < 0.3:
        nr = dice.choice((48, 96, 200))
        step = disk_of(one.disk).capacity_sectors * 512 // (nr + 1) // MIB * MIB
        times = -(-nr // len(processes))
        processes = [
            dataclasses.replace(
                each,
                name=f"p{number}",
                group=number,
                offset=number * step,
                size=min(each.size, step),
                io_bytes=max(each.io_bytes // times // each.align_bytes, 1) * each.align_bytes,
                seed=each.seed + number,
            )
            for number, each in enumerate((processes * times)[:nr])
        ]
    if dice.random() < 0.2:
        first = processes[0].offset
        room = disk_of(one.disk).capacity_sectors * 512 - first
        processes = [
            dataclasses.replace(each, offset=first, size=min(each.size, room // MIB * MIB))
            for each in processes
        ]
    if dice.random() < 0.4:
        blocks = dice.choice((1, 8))
        processes = [
            dataclasses.replace(each, fsync_blocks=blocks) if each.rw & WRITE else each
            for each in processes
        ]
    if dice.random() < 0.3:
        piece = dice.choice((256 * KIB, 2 * MIB, 8 * MIB))
        capacity = disk_of(one.disk).capacity_sectors * 512
        processes = [
            dataclasses.replace(
                each,
                rw=READ | RANDOM,
                random_every=max(piece // each.align_bytes, 1),
                norandommap=True,
                offset=0,
                size=capacity // MIB * MIB,
            )
            if each.rw == READ and not each.seq_skip
            else each
            for each in processes
        ]
    return dataclasses.replace(one, processes=tuple(processes))


def placed(seed: int) -> Workload:
    """Two to eight direct readers of one image, each from its beginning on."""
    dice = random.Random(f"place {seed}")
    disk = dice.choice(MECHANICAL)
    offset = dice.randrange(100) * GIB
    model = {
        "bs": dice.choice((16, 64, 64, 256)) * KIB,
        "skip": dice.choice((0, 4 * KIB, 4 * KIB, 64 * KIB)),
        "think": dice.choice((0, 100 * US, 300 * US, 300 * US, 1 * MS)),
        "iodepth": dice.choice((1, 1, 2, 4)),
    }
    processes = tuple(
        process(
            i + seed * 64,
            offset=offset,
            size=2 * GIB,
            io=96 * MIB,
            delay=dice.randrange(LATER_NS),
            **model,
        )
        for i in range(dice.choice((2, 3, 3, 4, 6, 8)))
    )
    owners = dice.choice(("process", "none"))
    return Workload(seed, disk, dice.choice(INNER), dice.choice((1, 4, 32)), owners, processes)


# ---- the command ----

TARGET_NS, LATER_NS = 500 * MS, 20 * MS
MOST_SEED = 6 * 10**7


@dataclasses.dataclass(frozen=True)
class Found:
    """What came of a workload: ratios, and the longest wait over its bound."""

    seed: int
    ratio: float
    noise: float
    wait_ns: int
    inner_wait_ns: int
    bound_ns: float


def slowest_bytes_per_s(disk: Disk) -> float:
    """Of its innermost tracks, without the ways between them."""
    tracks_per_s = 1e9 / disk.rotation_ns
    return min(disk.zone_sectors_per_track[: disk.nr_zones]) * 512 * tracks_per_s


def bound_ns(one: Workload) -> float:
    """See the module."""
    curve = measured_curve(disk_of(one.disk))
    nr = sum(each.iodepth for each in one.processes)
    largest = max(max(each.split_bytes[0] + each.split_bytes[1]) for each in one.processes)
    moves_ns = largest / slowest_bytes_per_s(disk_of(one.disk)) * 1e9
    return max(TARGET_NS, nr * (2 * max(point[1] for point in curve) + moves_ns)) + TARGET_NS


def longest_wait_ns(run: Run) -> int:
    """Of any process."""
    return max(job.longest_wait_ns for job in run.jobs)


DRAWN = {"": workload, "wide": widened, "place": placed}


def judge(task: tuple[int, str]) -> Found:
    """Run one of them."""
    seed, drawn = task
    one = DRAWN[drawn](seed).lasting()
    dice = random.Random(seed)
    begun = tuple(
        dataclasses.replace(each, startdelay_ns=dice.randrange(LATER_NS)) for each in one.processes
    )
    inner, stream = one.run(one.inner), one.run(f"stream:{one.inner}")
    again = dataclasses.replace(one, processes=begun).run(one.inner)
    return Found(
        seed,
        inner.duration_ns / stream.duration_ns,
        inner.duration_ns / again.duration_ns,
        longest_wait_ns(stream),
        longest_wait_ns(inner),
        bound_ns(one),
    )


def extremes(values: dict[int, float], most: bool) -> str:
    """The two that are farthest off, with their seeds, of values by seed."""
    seeds = sorted(values, key=lambda seed: values[seed], reverse=most)[:2]
    return ", ".join(f"{values[seed]:.2f} ({seed})" for seed in seeds)


def show(found: list[Found]) -> None:
    """Two tables: of throughput, and of waits."""
    print(f"{'':13} {'mean':>6} {'< 0.97':>6} {'< 0.9':>6} {'< 0.8':>6}  lowest (seed)")
    for name in ("ratio", "noise"):
        ratios = {one.seed: getattr(one, name) for one in found}
        mean = statistics.geometric_mean(ratios.values())
        below = [sum(ratio < most for ratio in ratios.values()) for most in (0.97, 0.9, 0.8)]
        what = {"ratio": "stream", "noise": "inner, again"}[name]
        print(f"{what:13} {mean:6.3f} {below[0]:6} {below[1]:6} {below[2]:6}  ", end="")
        print(extremes(ratios, most=False))
    print(f"\n{'':13} {'longest wait':>13} {'beyond':>7}  most beyond the bound (seed)")
    for name in ("wait_ns", "inner_wait_ns"):
        waits = {one.seed: getattr(one, name) / one.bound_ns for one in found}
        most = max(getattr(one, name) for one in found)
        over = sum(part > 1 for part in waits.values())
        what = {"wait_ns": "stream", "inner_wait_ns": "inner"}[name]
        print(f"{what:13} {most / 1e9:11.1f} s {over:7}  {extremes(waits, most=True)}")
    alone = sum(one.wait_ns > one.bound_ns >= one.inner_wait_ns for one in found)
    print(f"\nBeyond the bound under stream and not under the inner policy: {alone}")


def whole(text: str) -> int:
    """An argument that counts something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def first_seed(text: str) -> int:
    """A seed; each workload's processes have 64 of the simulator's, of 32 bits."""
    if not text.isdecimal() or int(text) > MOST_SEED:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number up to {MOST_SEED}")
    return int(text)


def main() -> None:
    """Draw, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=first_seed, help="of the first; without it a fresh one")
    parser.add_argument("--count", type=whole, default=100, help="how many")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--wide", dest="drawn", action="store_const", const="wide", help="draw from more kinds"
    )
    kinds.add_argument(
        "--place", dest="drawn", action="store_const", const="place", help="readers of one place"
    )
    parser.add_argument("--parallel", type=whole, default=2, help="simulations at once")
    arguments = parser.parse_args()
    seed = arguments.seed
    if seed is None:
        seed = random.SystemRandom().randrange(10**6, MOST_SEED)
    print(f"seed {seed}, {arguments.count} workloads\n", flush=True)
    tasks = [(seed + number, arguments.drawn or "") for number in range(arguments.count)]
    found = []
    with multiprocessing.Pool(arguments.parallel) as pool:
        for one in pool.imap(judge, tasks):
            found.append(one)
            if sys.stderr.isatty():
                print(f"\r{len(found)} of {len(tasks)}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    show(found)


if __name__ == "__main__":
    sys.exit(exit_code_of("workloads.py", main))
