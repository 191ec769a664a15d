# SPDX-License-Identifier: GPL-2.0-only
"""How good is `advise` on a disk that no description is of? python bench/advise_learning.py

Each shipped mechanical disk in turn is the disk; its own description and those with the same
mechanics are hidden. A random job is recorded in the simulator under one scheduler, foretold for
another one, and done under that.
"""

from __future__ import annotations

import argparse
import random
import statistics
import struct
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from streamsched.watch import advise, learn
from streamsched.work.blocktrace import Bio
from streamsched.sim.diskfile import KINDS, Disk, list_disks, load_disk
from streamsched.work.jobfile import parse_jobs
from streamsched.watch.predict import LARGEST, POLICIES, observed, play, MODEL_NS
from streamsched.sim.simulate import Setup, run_jobs
from streamsched.work.model import senders

SECONDS = 12
KINDS_OF_WORK = ("sequential", "random", "mixed")
PAIRS = (("mq-deadline", "stream"), ("stream", "mq-deadline"))
# Disks with the same mechanics are hidden together.
ALIKE = ({"exos-x18", "greedy-18tb"}, {"st2000dm006", "usb2-2tb"})
# Disks that had no queue.
UNQUEUED = ("deskstar-34gxp", "ide-20g", "usb2-2tb")
WIDE = 0.25
ROW = struct.Struct("<7Q4I")


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
        Bio(row[5], row[7], bool(row[10]), True, row[8] + 1, f"p{row[8]}", row[0], row[3])
        for row in rows
    ]
    return sorted(found, key=lambda bio: bio.arrival_ns)


def hidden(name: str) -> list[Disk]:
    """The mechanical disks without @name and those like it."""
    alike = next((group for group in ALIKE if name in group), {name})
    disks = map(load_disk, list_disks())
    return [d for d in disks if KINDS[d.kind] == "mechanical" and d.name not in alike]


def rows_of(task: tuple[str, str, int, int]) -> list[tuple[object, ...]]:
    """(disk, kind, seed, before, after, rule, error, base, model's error, MB/s) of each forecast."""
    name, kind, seed, rounds = task
    disk = load_disk(name)
    depth = 1 if name in UNQUEUED else 32
    lives = {s: recorded(kind, seed, disk, s, depth) for s in ("mq-deadline", "stream")}
    bases = hidden(name)
    rows: list[tuple[object, ...]] = []
    for before, after in PAIRS:
        bios = lives[before]
        those = senders(bios)
        capacity = disk.capacity_sectors
        larger = [d for d in bases if d.capacity_sectors >= 0.99 * capacity]
        today = (
            min(larger, key=lambda d: d.capacity_sectors)
            if larger
            else max(bases, key=lambda d: d.capacity_sectors)
        )
        single = (
            min(
                (d for d in larger or bases if d.actuators == 1),
                key=lambda d: abs(d.capacity_sectors - capacity),
            )
            if any(d.actuators == 1 for d in larger or bases)
            else today
        )
        began = time.monotonic()
        found = learn.learned(bios, those, bases, capacity, before, depth, rounds)
        took = time.monotonic() - began
        came = observed(lives[after], senders(lives[after])).mb_s
        was = observed(bios, those).mb_s
        for rule, one in (
            ("today", today),
            ("one arm", single),
            ("learned", found.disk),
            ("true", disk),
        ):
            at = min(depth, one.queue_depth)
            said = play(those, one, POLICIES[after][0], at, MODEL_NS).mb_s
            model = play(those, one, POLICIES[before][0], at, MODEL_NS).mb_s
            what = one.name
            if rule == "learned":
                what += f" rate {found.rate:.2f} seeks {found.seeks:.2f} off {found.distance:.2f} {took:.0f}s"
            rows.append(
                (
                    name,
                    kind,
                    seed,
                    before,
                    after,
                    rule,
                    said / came - 1,
                    what,
                    model / was - 1,
                    came,
                )
            )
    return rows


def within(errors: Sequence[float], part: float) -> float:
    """So that @part of the errors are no larger."""
    ordered = sorted(map(abs, errors))
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def main(arguments: Sequence[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--disk", action="append")
    parser.add_argument("--rounds", type=int, default=learn.ROUNDS)
    given = parser.parse_args(arguments)
    disks = given.disk or [
        name for name in list_disks() if KINDS[load_disk(name).kind] == "mechanical"
    ]
    tasks = [
        (disk, kind, seed, given.rounds)
        for seed in range(given.first, given.first + given.seeds)
        for disk in disks
        for kind in KINDS_OF_WORK
    ]
    rows: list[tuple[object, ...]] = []
    with ProcessPoolExecutor(2) as pool:
        for part in pool.map(rows_of, tasks):
            rows += part
            for row in part:
                print(
                    *row[:6],
                    f"{100 * row[6]:+.0f} % now {100 * row[8]:+.0f} % of {row[9]:.1f}",
                    row[7],
                    flush=True,
                )
    for title, of in (
        ("all", lambda r: True),
        *((f"to {a}", lambda r, a=a: r[4] == a) for a in ("stream", "mq-deadline")),
        *((k, lambda r, k=k: r[1] == k) for k in KINDS_OF_WORK),
        *((d, lambda r, d=d: r[0] == d) for d in disks),
    ):
        cells = []
        for rule in ("today", "one arm", "learned", "true"):
            errors = [row[6] for row in rows if row[5] == rule and of(row)]
            cells.append(
                f"{rule} {100 * statistics.median(map(abs, errors)):.1f} {100 * within(errors, 0.9):.0f}"
            )
        print(f"{title}: {'; '.join(cells)} ({len(errors)})")
    for rule in ("today", "one arm", "learned", "true"):
        refused = [row for row in rows if row[5] == rule and abs(row[8]) > advise.WRONG_MODEL]
        wide = 0.05 + (WIDE if rule == "learned" else 0.0)
        kept = [row for row in rows if row[5] == rule and row not in refused]
        held = sum(abs(1 - 1 / (1 + row[6])) <= wide + abs(row[8]) for row in kept)
        errors = [row[6] for row in kept]
        print(
            f"{rule}: refused {len(refused)} of {len(refused) + len(kept)}; of the others held {held}, "
            f"errors {100 * statistics.median(map(abs, errors)):.1f} {100 * within(errors, 0.9):.0f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
