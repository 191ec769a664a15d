# SPDX-License-Identifier: GPL-2.0-only
"""How good is `advise` on a disk that no description is of? python bench/advise_learning.py

Each shipped mechanical disk in turn is the disk; its own description and those with the same
mechanics are hidden. A random job is recorded in the simulator under one scheduler, forecast for
another one, and done under that.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tables.machine import positive

from streamsched.base.progress import nr_jobs
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.simulate import Setup, run_jobs
from streamsched.watch import advise, learn
from streamsched.watch.forecast import (
    LARGEST,
    LEAST_RANGE,
    MODEL_NS,
    POLICIES,
    ROW,
    observed,
    play,
)
from streamsched.work.blocktrace import Bio
from streamsched.work.jobfile import parse_jobs
from streamsched.work.model import senders

SECONDS = 12
KINDS_OF_WORK = ("sequential", "random", "mixed")
PAIRS = (("mq-deadline", "stream"), ("stream", "mq-deadline"))
# Disks with the same mechanics are hidden together.
ALIKE = ({"exos-x18", "greedy-18tb"}, {"st2000dm006", "usb2-2tb"})
# Disks that had no queue.
UNQUEUED = ("deskstar-34gxp", "ide-20g", "usb2-2tb")


def job_of(kind: str, seed: int, capacity: int) -> str:
    """A random fio job of two to six processes."""
    dice = random.Random(f"{kind} {seed}")
    slot = capacity // 12 // (1 << 20)
    lines = [f"[global]\nsize={slot - 1}m\nruntime={SECONDS}\ntime_based"]
    for index, place in enumerate(dice.sample(range(12), dice.choice((2, 2, 3, 4, 6)))):
        one = kind
        if kind == "mixed":
            one = (
                ("sequential", "random")[index]
                if index < 2
                else dice.choice(("sequential", "random", "write", "think"))
            )
        lines += [f"[p{index}]", f"offset={place * slot}m"]
        if one in ("sequential", "think"):
            direct = dice.choice((0, 1))
            size = dice.choice((16, 64, 256, 1024) if direct else (4, 16, 64, 256))
            lines += ["rw=read", f"direct={direct}", f"bs={size}k"]
            if one == "think":
                lines.append(f"thinktime={dice.choice((200, 1000, 5000))}")
            continue
        lines += ["rw=randread" if one == "random" else dice.choice(("rw=write", "rw=randwrite"))]
        lines += ["direct=1", "ioengine=libaio", f"bs={dice.choice((4, 16, 64))}k"]
        lines.append(f"iodepth={dice.choice((1, 1, 4))}")
    return "\n".join(lines) + "\n"


def recorded(kind: str, seed: int, disk: Disk, scheduler: str, depth: int) -> list[Bio]:
    """What the disk was asked for, in the simulator."""
    capacity = disk.capacity_sectors * 512
    work = parse_jobs(job_of(kind, seed, capacity), "job", capacity_bytes=capacity)
    rows: list[tuple[int, ...]] = []
    setup = Setup(
        disk,
        POLICIES[scheduler][0],
        queue_depth=depth,
        max_request_sectors=LARGEST,
        cache_bytes=256 << 20,
    )
    run_jobs(setup, list(work), requests=lambda part: rows.extend(ROW.iter_unpack(part)))
    found = [
        Bio(row[5], row[7], bool(row[11]), True, row[8] + 1, f"p{row[8]}", row[0], row[3])
        for row in rows
    ]
    return sorted(found, key=lambda bio: bio.arrival_ns)


def hidden(name: str) -> list[Disk]:
    """The mechanical disks without @name and those like it."""
    alike = next((group for group in ALIKE if name in group), {name})
    return [disk for disk in advise.mechanical() if disk.name not in alike]


@dataclass(frozen=True)
class Row:
    """One forecast by one rule."""

    disk: str
    kind: str
    seed: int
    before: str
    after: str
    rule: str
    what: str  # the description
    said: float  # MB/s
    came: float
    off: float  # of the model, under the scheduler that was there

    @property
    def error(self) -> float:
        return self.said / self.came - 1

    @property
    def holds(self) -> bool:
        """Is what came in the range, but for what halves of the recording add to it?"""
        wide = LEAST_RANGE[0] + (learn.WIDER if self.rule == "learned" else 0.0) + abs(self.off)
        return abs(self.said - self.came) <= wide * self.said

    def line(self) -> str:
        return (
            f"{self.disk} {self.kind} {self.seed} {self.before} {self.after} {self.rule}: "
            f"{100 * self.error:+.0f} %, under {self.before} {100 * self.off:+.0f} % ({self.what})"
        )


def next_larger(disks: Sequence[Disk], capacity: int) -> Disk:
    """As advise.of_size()."""
    larger = [disk for disk in disks if disk.capacity_sectors >= 0.99 * capacity]
    if larger:
        return min(larger, key=lambda disk: disk.capacity_sectors)
    return max(disks, key=lambda disk: disk.capacity_sectors)


def rows_of(task: tuple[str, str, int]) -> list[Row]:
    """Of one job on one disk."""
    name, kind, seed = task
    disk, bases = load_disk(name), hidden(name)
    capacity, depth = disk.capacity_sectors, 1 if name in UNQUEUED else 32
    lives = {one: recorded(kind, seed, disk, one, depth) for one in ("mq-deadline", "stream")}
    rows = []
    for before, after in PAIRS:
        those = senders(lives[before])
        found = learn.learned(lives[before], capacity, before, depth, bases)
        size = next_larger(bases, capacity)
        single = next_larger([base for base in bases if base.actuators == 1], capacity)
        was = observed(lives[before], those).mb_s
        came = observed(lives[after], senders(lives[after])).mb_s
        for rule, one in (
            ("by size", size),
            ("by size, one arm", single),
            ("learned", found.disk if found else size),
            ("its own", disk),
        ):
            said, off = (
                play(those, one, POLICIES[now][0], min(depth, one.queue_depth), MODEL_NS).mb_s
                for now in (after, before)
            )
            what = one.name
            if rule == "learned" and found:
                what += f", rate x{found.rate:.2f}, seeks x{found.seeks:.2f}"
            row = Row(name, kind, seed, before, after, rule, what, said, came, off / was - 1)
            rows.append(row)
    return rows


def figures(rows: Sequence[Row]) -> str:
    """The median error, nine in ten, what would be refused, and what is in its range."""
    errors = sorted(abs(row.error) for row in rows)
    kept = [row for row in rows if abs(row.off) <= advise.WRONG_MODEL]
    nine = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
    return (
        f"{100 * statistics.median(errors):.1f} %, 9 in 10 {100 * nine:.0f} %, refused "
        f"{len(rows) - len(kept)} of {len(rows)}, in range {sum(row.holds for row in kept)}"
    )


def main(arguments: Sequence[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=positive, default=101, help="the first seed (101)")
    parser.add_argument("--seeds", type=positive, default=2, help="how many (2)")
    given = parser.parse_args(arguments)
    disks = [disk.name for disk in advise.mechanical()]
    seeds = range(given.first, given.first + given.seeds)
    tasks = [(disk, kind, seed) for seed in seeds for disk in disks for kind in KINDS_OF_WORK]
    rows: list[Row] = []
    with ProcessPoolExecutor(nr_jobs(0)) as pool:
        for part in pool.map(rows_of, tasks):
            rows += part
            for row in part:
                print(row.line(), flush=True)
    groups = [("all", rows)]
    groups += [(f"to {a}", [r for r in rows if r.after == a]) for _, a in PAIRS]
    groups += [(kind, [r for r in rows if r.kind == kind]) for kind in KINDS_OF_WORK]
    groups += [(disk, [r for r in rows if r.disk == disk]) for disk in disks]
    for title, group in groups:
        for rule in dict.fromkeys(row.rule for row in rows):
            print(f"{title}, {rule}: {figures([row for row in group if row.rule == rule])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
