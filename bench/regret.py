# SPDX-License-Identifier: GPL-2.0-only
"""How far policies are from the bound of `streamsched research bound`, and whether any is above it.

    python bench/regret.py                       the workloads of docs/results/comparison.md
    python bench/regret.py --mixes 50            as many mixes of bench/fairness.py, of a fresh seed
    python bench/regret.py --mixes 50 --seed 7   the same mixes each time
    python bench/regret.py par-read pvfs         these workloads only
    python bench/regret.py --mixes 50 --array raid0:4 raid10:4  mixes on such arrays in turn

A policy's regret is the part of the bound that it does not reach: of the greatest sum of shares
or, of work with an end, of the greatest efficiency. The bound holds for the longest time that the
head was away from a stream under that policy, if that is more than 500 ms. A "~" is beside a bound
that knows of some process only how many bytes it moves. A policy above its bound is a bug: the
case is written to a file, and the exit code is 1. --to writes docs/results/regret.md.
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
from streamsched.base.files import check_output, target, write_whole
from streamsched.bound.job import JobBound, Reached
from streamsched.papers.comparison import LIMIT_S, workloads
from streamsched.sim.array import Array, parse_array
from streamsched.sim.diskfile import load_disk
from streamsched.sim.experiment import STREAM, Case, case_task, work_case
from streamsched.sim.simulate import NS, Setup
from streamsched.sim.workloads import WORKLOADS
from streamsched.work.process import Process

TARGET_S = 0.5
POLICIES = (STREAM, "nwcs:sptf", "cfq", "anticipatory")
DOCUMENT_SEED, DOCUMENT_MIXES = 1137, 50
HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
# How far policies are from the bound

Written by `make results WHAT=regret`; do not edit. The bound is that of
[BOUNDS.md](../research/BOUNDS.md) for a wait target of 500 ms. A cell has what the policy reaches,
the bound, and the regret: the part of the bound that is missing. What is reached is the efficiency
or, where all processes run for the same time, the sum of shares. A "~" is beside workloads with
processes of which only bytes are counted. Their bounds are loose, so they have no regret. The bound
is loose, too, where many random requests are outstanding.

The workloads are those of [comparison.md](comparison.md), on the same disks, with owners visible.
The {mixes} mixes are of `bench/fairness.py`, seed {seed}.

"""
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


def drawn(seed: int, nr: int, kinds: Sequence[str], arrays: Sequence[Array] = ()) -> Iterator[Work]:
    """Mixes of bench/fairness.py, on one disk or on @arrays in turn."""
    for number in range(nr):
        array = arrays[number % len(arrays)] if arrays else None
        # Each array meets all kinds, though their numbers have a common divisor.
        turn = number + (number // len(arrays) if arrays else 0)
        mix = draw(random.Random(f"{seed}-{number}"), kinds[turn % len(kinds)], array)
        setup = Setup(
            load_disk(mix.disk), "noop", owners="process", queue_depth=mix.depth, array=array
        )
        counts = {name: mix.names.count(name) for name in dict.fromkeys(mix.names)}
        what = " ".join(f"{count}x{name}" for name, count in counts.items())
        on = f"{array} of {mix.disk}" if array else mix.disk
        yield Work(f"{number} {mix.kind} {on}/{mix.depth} {what}", setup, mix.processes)


def keep(work: Work, reached: Reached, shares: Sequence[float]) -> Path:
    """A case that should not be, in a file of its own."""
    text = {
        "work": work.name,
        "disk": work.setup.disk.name,
        "array": str(work.setup.array or ""),
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


@dataclasses.dataclass(frozen=True)
class Row:
    """What came of a work: under each policy, or why there is no bound."""

    work: Work
    reached: dict[str, Reached]
    loose: bool = False
    why: str = ""
    above: tuple[str, ...] = ()  # files of cases that should not be


def measured(work: Work) -> Row:
    """@work under all policies."""
    try:
        bound = JobBound(work.setup, work.processes, 1, Console(stderr=True))
    except UsageError as error:
        return Row(work, {}, why=str(error))
    reached, above = {}, []
    for policy in POLICIES:
        found = bound.reached(dataclasses.replace(work.setup, policy=policy), TARGET_S)
        reached[policy] = found
        if found.total > found.most + DIGITS:
            shares = bound.bound_most(max(TARGET_S, found.absent_s)).shares
            above.append(str(keep(work, found, shares)))
    return Row(work, reached, bool(bound.loose()), above=tuple(above))


def show(row: Row, took_s: float) -> None:
    """A line."""
    if row.why:
        print(f"{row.work.name:40}  no bound: {row.why}", flush=True)
        return
    cells = [
        f"{one.total:6.3f}/{one.most:<6.3f}{100 * one.regret:5.1f}%" for one in row.reached.values()
    ]
    above = f"  ABOVE: {', '.join(row.above)}" if row.above else ""
    mark = "~" if row.loose else " "
    print(f"{row.work.name:40}{mark} {'  '.join(cells)}  {took_s:.0f} s{above}", flush=True)


def all_of(works: Iterator[Work]) -> list[Row]:
    """All of @works, each shown when it is done."""
    rows = []
    for work in works:
        began = time.monotonic()
        rows.append(measured(work))
        show(rows[-1], time.monotonic() - began)
    return rows


def regrets(rows: Sequence[Row], policy: str) -> list[float]:
    """Of those with a bound."""
    return [row.reached[policy].regret for row in rows if row.reached]


def _tight(rows: Sequence[Row]) -> list[Row]:
    """Those with a bound of more than bytes."""
    return [row for row in rows if row.reached and not row.loose]


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def summary(name: str, rows: Sequence[Row]) -> str:
    """A line in Markdown: how many, and the median of each policy."""
    medians = [statistics.median(regrets(rows, policy)) for policy in POLICIES]
    return f"| {name} | {len(rows)} | {' | '.join(map(_percent, medians))} |"


def document(works: Sequence[Row], mixes: Sequence[Row], seed: int) -> str:
    """docs/results/regret.md."""
    head = " | ".join(POLICIES)
    lines = [HEAD.format(seed=seed, mixes=len(mixes)), f"| workload | {head} |", "|---" * 5 + "|"]
    for row in works:
        cells = [
            f"{one.total:.3f} / {one.most:.3f}" + ("" if row.loose else f", {_percent(one.regret)}")
            for one in row.reached.values()
        ]
        name = f"`{row.work.name}`{' ~' if row.loose else ''}"
        lines.append(f"| {name} | {' | '.join(cells or ['no bound'] * 4)} |")
    lines += ["", "## Medians of regret", "", f"| | works | {head} |", "|---" * 6 + "|"]
    lines.append(summary("workloads without ~", _tight(works)))
    for kind in ALL_KINDS:
        of_kind = [row for row in _tight(mixes) if row.work.name.split()[1] == kind]
        if of_kind:
            lines.append(summary(f"mixes: {kind}", of_kind))
    least = min(one.regret for row in (*works, *mixes) for one in row.reached.values())
    lines += ["", f"The least regret of all is {_percent(least)}: no policy is above its bound."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure all, print each, then each policy's regret over all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("work", nargs="*", help="workloads; without any, all")
    parser.add_argument("--mixes", type=int, default=0, help="as many mixes instead")
    parser.add_argument("--seed", type=int, help="of the mixes; without it a fresh one")
    parser.add_argument("--kind", nargs="*", default=[], choices=ALL_KINDS, help="of the mixes")
    parser.add_argument("--array", type=parse_array, nargs="+", default=[], help="of the mixes")
    parser.add_argument("--to", type=Path, help="write both, as Markdown, to this file")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    kinds = options.kind or ALL_KINDS
    if options.array and not options.mixes:
        raise UsageError("--array: the workloads are of one disk; say how many --mixes")
    to = target(options.to, options.force)
    check_output(to)
    print("reached/bound and regret: " + ", ".join(POLICIES), flush=True)
    works, mixes = [], []
    if options.to or not options.mixes:
        works = all_of(compared(options.work))
    if options.to or options.mixes:
        seed = seed if options.seed is not None or not options.to else DOCUMENT_SEED
        print(f"seed {seed}", flush=True)
        mixes = all_of(drawn(seed, options.mixes or DOCUMENT_MIXES, kinds, options.array))
    rows = [*works, *mixes]
    for policy in POLICIES:
        tight = regrets([row for row in rows if not row.loose], policy)
        for what, of in (("all", regrets(rows, policy)), ("without ~", tight)):
            if of:
                print(
                    f"{policy:16} {what:10} {len(of):3}: regret {100 * min(of):5.1f} % least, "
                    f"{100 * statistics.median(of):5.1f} % median, {100 * max(of):5.1f} % most"
                )
    above = sum(bool(row.above) for row in rows)
    if above:
        raise StreamschedError(f"{above} of {len(rows)} have a policy above its bound")
    print(f"no policy is above its bound, on {len(rows)}")
    if to:
        write_whole(to, document(works, mixes, seed))


if __name__ == "__main__":
    sys.exit(exit_code_of("regret.py", main))
