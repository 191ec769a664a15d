# SPDX-License-Identifier: GPL-2.0-only
"""How far policies are from the bound of `streamsched bound`, and whether any is above it.

    python bench/regret.py                       the workloads of docs/results/comparison.md
    python bench/regret.py --mixes 50            as many mixes of bench/fairness.py, of a fresh seed
    python bench/regret.py --mixes 50 --seed 7   the same mixes each time
    python bench/regret.py par-read pvfs         these workloads only

A policy's regret is the part of the bound that it does not reach: of the greatest sum of shares
or, of work with an end, of the greatest efficiency. The bound holds for the longest time that the
head was away from a stream under that policy, if that is more than 500 ms. A "~" is beside a bound
that knows of some process only how many bytes it moves. A policy above its bound is a bug: the
case is written to a file, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairness import ALL_KINDS, draw
from rich.console import Console

from streamsched.base.errors import StreamschedError, UsageError, exit_code_of
from streamsched.bound.job import JobBound, Reached
from streamsched.papers.comparison import LIMIT_S, workloads
from streamsched.sim.diskfile import load_disk
from streamsched.sim.experiment import STREAM, Case, case_task, work_case
from streamsched.sim.simulate import NS, Setup
from streamsched.sim.workloads import WORKLOADS
from streamsched.work.process import Process

TARGET_S = 0.5
POLICIES = (STREAM, "nwcs:sptf", "cfq", "anticipatory")
# What a figure may be above its bound by: neither shares nor bounds have more digits.
DIGITS = 1e-6


@dataclasses.dataclass(frozen=True)
class Work:
    """Processes, and what they run on."""

    name: str
    setup: Setup
    processes: Sequence[Process]


def compared(names: Sequence[str]) -> Iterator[Work]:
    """The workloads of the comparison, as that runs them."""
    for name in names or workloads():
        if name in WORKLOADS:
            case = work_case(name, "noop")
        else:
            case = Case(name, "noop", owners="process")
        task = case_task(case)
        yield Work(name, dataclasses.replace(task.setup, stop_ns=LIMIT_S * NS), task.processes)


def drawn(seed: int, nr: int, kinds: Sequence[str]) -> Iterator[Work]:
    """Mixes of bench/fairness.py."""
    for number in range(nr):
        mix = draw(random.Random(f"{seed}-{number}"), kinds[number % len(kinds)])
        setup = Setup(load_disk(mix.disk), "noop", owners="process", queue_depth=mix.depth)
        counts = {name: mix.names.count(name) for name in dict.fromkeys(mix.names)}
        what = " ".join(f"{count}x{name}" for name, count in counts.items())
        yield Work(f"{number} {mix.kind} {mix.disk}/{mix.depth} {what}", setup, mix.processes)


def keep(work: Work, reached: Reached, shares: Sequence[float]) -> Path:
    """A case that should not be, in a file of its own."""
    text = {
        "work": work.name,
        "disk": work.setup.disk.name,
        "queue_depth": work.setup.queue_depth,
        "policy": reached.policy,
        "reached": dataclasses.asdict(reached),
        "bound": list(shares),
        "processes": [dataclasses.asdict(process) for process in work.processes],
    }
    safe = "".join(one if one.isalnum() else "-" for one in f"{work.name} {reached.policy}")[:80]
    path = Path(f"above-{safe}.json")
    path.write_text(json.dumps(text, indent=1, default=str) + "\n")
    return path


def row(work: Work, regrets: dict[str, list[float]], tight: dict[str, list[float]]) -> bool:
    """Measure @work, print its line; whether no policy is above its bound."""
    began = time.monotonic()
    try:
        bound = JobBound(work.setup, work.processes, 1, Console(stderr=True))
    except UsageError as error:
        print(f"{work.name:40}  no bound: {error}", flush=True)
        return True
    cells, good = [], True
    for policy in POLICIES:
        reached = bound.reached(dataclasses.replace(work.setup, policy=policy), TARGET_S)
        above = reached.total > reached.most + DIGITS
        cells.append(f"{reached.total:6.3f}/{reached.most:<6.3f}{100 * reached.regret:5.1f}%")
        regrets[policy].append(reached.regret)
        if not bound.loose():
            tight[policy].append(reached.regret)
        if above:
            good = False
            path = keep(work, reached, bound.bound_most(max(TARGET_S, reached.absent_s)).shares)
            cells[-1] += f" ABOVE, see {path}"
    mark = "~" if bound.loose() else " "
    took = time.monotonic() - began
    print(f"{work.name:40}{mark} {'  '.join(cells)}  {took:.0f} s", flush=True)
    return good


def main() -> None:
    """Measure all, print each, then each policy's regret over all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("work", nargs="*", help="workloads; without any, all")
    parser.add_argument("--mixes", type=int, default=0, help="as many mixes instead")
    parser.add_argument("--seed", type=int, help="of the mixes; without it a fresh one")
    parser.add_argument("--kind", nargs="*", default=[], choices=ALL_KINDS, help="of the mixes")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    works = compared(options.work)
    if options.mixes:
        print(f"seed {seed}")
        works = drawn(seed, options.mixes, options.kind or ALL_KINDS)
    print("reached/bound and regret: " + ", ".join(POLICIES), flush=True)
    regrets: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    tight: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    good = [row(work, regrets, tight) for work in works]
    for policy in POLICIES:
        for what, of in (("all", regrets[policy]), ("without ~", tight[policy])):
            if of:
                print(
                    f"{policy:16} {what:10} {len(of):3}: regret {100 * min(of):5.1f} % least, "
                    f"{100 * statistics.median(of):5.1f} % median, {100 * max(of):5.1f} % most"
                )
    if not all(good):
        raise StreamschedError(f"{good.count(False)} of {len(good)} have a policy above its bound")
    print(f"no policy is above its bound, on {len(good)}")


if __name__ == "__main__":
    sys.exit(exit_code_of("regret.py", main))
