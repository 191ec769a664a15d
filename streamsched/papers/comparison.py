# SPDX-License-Identifier: GPL-2.0-only
"""Every policy on every workload: docs/results/comparison.md, and the same for some of them.

Owners are visible as the paper lets them be, which favours the policies that use them; stream
does not. A cell is the efficiency (see compare.py: 1.0 means that nothing was lost by serving
the processes together) and the longest wait of any process's request, in seconds.
"""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
from collections.abc import Mapping, Sequence

from rich.console import Console

from streamsched.base.errors import Interrupted, unknown
from streamsched.sim.compare import Comparison, alone_tasks
from streamsched.sim.experiment import PAPER_STREAM, STREAM, Case, case_task, work_case
from streamsched.sim.policies import WRAPPER, all_policies
from streamsched.sim.simulate import NS
from streamsched.sim.tasks import Task, run_tasks
from streamsched.sim.workloads import WORKLOADS, shipped_jobs

# nwcs over a policy for throughput and over one for shares.
WRAPPED = ("nwcs:sptf", "nwcs:wfq")
# How far behind the best stream may be: the aim.
AIM = 0.03
# Where it is farther: what it does over these and with these for wait_target.
INNERS = ("deadline", "cscan", "sptf")
TARGETS_MS = (500, 1000, 2000, 4000, 8000)
# Where processes wait for each other it is a matter of microseconds who meets whom, and one run
# says little: so many, whose processes begin up to this much later.
BEGINNINGS = 8
LATER_NS = 20_000_000
# A run that is not over by then, in virtual time, has starved somebody.
LIMIT_S = 3600


def policies() -> list[str]:
    """All that are compared, those that they are compared with last."""
    plain = [one.name for one in all_policies().values() if not one.flags & WRAPPER]
    return [*plain, *WRAPPED, PAPER_STREAM, STREAM]


def workloads() -> list[str]:
    """All: the shipped job files, then those that no job file can say."""
    return [*shipped_jobs(), *WORKLOADS]


@dataclasses.dataclass(frozen=True)
class Cell:
    """What came of one workload under one policy."""

    efficiency: float  # 0: somebody starved
    wait_s: float

    def __str__(self) -> str:
        if not self.efficiency:
            return "starves"
        return f"{self.efficiency:.3f} / {self.wait_s:.2f}"


Table = dict[str, dict[str, Cell]]  # by workload, by policy, or as setting_name() calls it


def setting_name(inner: str, target_ms: int) -> str:
    """Stream over @inner with this wait_target."""
    return f"stream:{inner}, {target_ms / 1000:g} s"


def _case(work: str, policy: str) -> Case:
    if work in WORKLOADS:
        return work_case(work, policy)
    return Case(work, policy, owners="process")


def _limited(case: Case) -> Task:
    task = case_task(case)
    limited = dataclasses.replace(task.setup, stop_ns=LIMIT_S * NS)
    return dataclasses.replace(task, setup=limited)


def _beginnings(task: Task) -> list[Task]:
    """@task, or it and others like it."""
    if not any(process.barrier for process in task.processes):
        return [task]
    tasks = [task]
    for number in range(1, BEGINNINGS):
        dice = random.Random(number)
        later = (
            dataclasses.replace(each, startdelay_ns=each.startdelay_ns + dice.randrange(LATER_NS))
            for each in task.processes
        )
        tasks.append(dataclasses.replace(task, processes=tuple(later)))
    return tasks


def _setting(work: str, inner: str, target_ms: int) -> Task:
    tunables = (("wait_target", target_ms * 1_000_000),)
    case = dataclasses.replace(_case(work, f"stream:{inner}"), tunables=tunables)
    return _limited(case)


def _measure(
    tasks: Mapping[tuple[str, str], Task], jobs: int, console: Console, together: str
) -> Table:
    """Tasks by workload and column, each workload's processes alone too."""
    alone: dict[str, dict[int, Task]] = {}
    for (work, _), task in tasks.items():
        if work not in alone:
            alone[work] = alone_tasks(task.processes, task.setup)
    drawn = {key: _beginnings(task) for key, task in tasks.items()}
    lone = [task for some in alone.values() for task in some.values()]
    flat = [*lone, *(task for some in drawn.values() for task in some)]
    results, interrupted = run_tasks(flat, jobs, console, together=together)
    if interrupted:
        raise Interrupted("interrupted before there was a result")
    lonely = iter(results)
    rates = {
        work: {number: run.bytes / run.seconds for number in some if (run := next(lonely))}
        for work, some in alone.items()
    }
    table: Table = {work: {} for work in alone}
    for (work, column), some in drawn.items():
        runs = [run for run in (next(lonely) for _ in some) if run]
        if not runs:
            continue
        found = [Comparison((run,), rates[work]).efficiency(run) or 0.0 for run in runs]
        starved = any(run.seconds >= LIMIT_S - 1 for run in runs)
        efficiency = 0.0 if starved else statistics.geometric_mean(found)
        longest_ns = max(job.longest_wait_ns for run in runs for job in run.jobs)
        table[work][column] = Cell(efficiency, longest_ns / 1e9)
    return table


def measure(works: Sequence[str], jobs: int, console: Console) -> Table:
    """All policies on @works."""
    for work in works:
        if work not in workloads():
            raise unknown("workload", work, workloads())
    tasks = {(work, spec): _limited(_case(work, spec)) for work in works for spec in policies()}
    return _measure(tasks, jobs, console, "comparison")


def measure_settings(table: Table, jobs: int, console: Console) -> Table:
    """What other settings do on the workloads of @table where stream is far behind."""
    tasks = {
        (work, setting_name(inner, target_ms)): _setting(work, inner, target_ms)
        for work, row in table.items()
        if behind(row) > AIM
        for target_ms in TARGETS_MS
        for inner in INNERS
    }
    return _measure(tasks, jobs, console, "other settings") if tasks else {}


def best_other(row: dict[str, Cell]) -> str:
    """The most efficient of the others."""
    others = [spec for spec in row if spec != STREAM]
    return max(others, key=lambda spec: row[spec].efficiency)


def behind(row: dict[str, Cell]) -> float:
    """By which part stream's efficiency is below the best other's; negative: above."""
    best = row[best_other(row)].efficiency
    return 1 - row[STREAM].efficiency / best if best else 0.0


def mean(table: Table, spec: str) -> float:
    """The geometric mean of a policy's efficiencies; 0 where it starves somebody."""
    rates = [row[spec].efficiency for row in table.values()]
    return math.exp(sum(math.log(rate) for rate in rates) / len(rates)) if all(rates) else 0.0


def table_row(work: str, row: dict[str, Cell]) -> str:
    """A line of the table."""
    best = max(cell.efficiency for cell in row.values())
    cells = [f"**{cell}**" if cell.efficiency == best else str(cell) for cell in row.values()]
    return f"| `{work}` | {' | '.join(cells)} |"


def markdown(table: Table) -> str:
    """The table, the means, and where another policy is better."""
    specs = policies()
    lines = [f"| workload | {' | '.join(specs)} |", "|---" * (len(specs) + 1) + "|"]
    lines += [table_row(work, row) for work, row in table.items()]
    means = " | ".join(f"{mean(table, spec):.3f}" if mean(table, spec) else "-" for spec in specs)
    lines += [f"| geometric mean | {means} |", ""]
    lost = [behind(row) for row in table.values()]
    near = sum(0 < each <= AIM for each in lost)
    far = sum(each > AIM for each in lost)
    lines += [
        f"{STREAM}: the most efficient or as good on {len(lost) - near - far} of {len(lost)} "
        f"workloads, at most {100 * AIM:.0f} % behind the best other on {near} more, and "
        f"further behind on {far}.",
        "",
    ]
    first = max(specs, key=lambda spec: mean(table, spec))
    lines += [f"The highest mean is that of {first}.", ""]
    worse = {work: row for work, row in table.items() if behind(row) > 0}
    if worse:
        lines += [
            f"| workload | most efficient other | that | {STREAM} | behind by |",
            "|---" * 5 + "|",
        ]
    for work, row in sorted(worse.items(), key=lambda item: -behind(item[1])):
        best = best_other(row)
        own = f"{row[STREAM]} | {100 * behind(row):.1f} %"
        lines.append(f"| `{work}` | {best} | {row[best]} | {own} |")
    return "\n".join(lines) + "\n"


def _nearest(cells: Mapping[str, Cell], goal: float) -> str:
    """Of the settings that reach @goal the one with the shortest wait; else the most efficient."""
    reached = [name for name, cell in cells.items() if cell.efficiency >= goal]
    if reached:
        return min(reached, key=lambda name: cells[name].wait_s)
    return max(cells, key=lambda name: cells[name].efficiency)


def settings_markdown(table: Table, settings: Table) -> str:
    """What of @settings comes within the aim of the best other policy, and then all of them."""
    if not settings:
        return ""
    part = f"{100 * AIM:.0f} %"
    lines = [
        "## With other settings",
        "",
        f"Where {STREAM} is more than {part} behind: stream over {', '.join(INNERS[:-1])} and",
        f"{INNERS[-1]}, with a `wait_target` of "
        f"{', '.join(f'{ms / 1000:g}' for ms in TARGETS_MS)} s. Of the settings that are at most "
        f"{part} behind the one with",
        "the shortest wait is named; where there is none, the most efficient.",
        "",
        "| workload | most efficient other | that | setting | that | behind by | |",
        "|---" * 7 + "|",
    ]
    for work, cells in settings.items():
        row = table[work]
        best = best_other(row)
        name = _nearest(cells, (1 - AIM) * row[best].efficiency)
        lost = 1 - cells[name].efficiency / row[best].efficiency
        lines.append(
            f"| `{work}` | {best} | {row[best]} | {name} | {cells[name]} | {100 * lost:.1f} % | "
            f"{'reached' if lost <= AIM else 'the nearest'} |"
        )
    for work, cells in settings.items():
        row = table[work]
        best = best_other(row)
        goal = (1 - AIM) * row[best].efficiency
        lines += [
            "",
            f"`{work}`, where {best} has {row[best]}; bold: at most {part} behind.",
            "",
            f"| wait_target | {' | '.join(f'stream:{inner}' for inner in INNERS)} |",
            "|---" * (1 + len(INNERS)) + "|",
        ]
        for target_ms in TARGETS_MS:
            own = [cells[setting_name(inner, target_ms)] for inner in INNERS]
            shown = " | ".join(
                f"**{cell}**" if cell.efficiency >= goal else str(cell) for cell in own
            )
            lines.append(f"| {target_ms / 1000:g} s | {shown} |")
    return "\n".join(["", *lines]) + "\n"


HEAD = f"""\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
# Every policy on every workload

Written by `make results WHAT=comparison`; do not edit.

A cell is the efficiency and the longest wait of a process's request in seconds. Efficiency is the
time of the processes one after the other, each alone on the disk, divided by their time together
([RESULTS.md](../sim/RESULTS.md)). It may exceed 1: writes may end in memory, one process may think
while another is served, or read what another has read.
The highest of a line is bold. A policy with long waits may be efficient: look at the wait.
One that "starves" was not done after {LIMIT_S} s of virtual time.

One command in the disk at a time. Owners are visible, each process or (`-1vm`, `-2vm`) each VM;
{STREAM} does not look at them, and {PAPER_STREAM}, the paper's algorithm, does not either. The
workloads of job files are in `jobs/` ([JOBS.md](../sim/JOBS.md)) and run on `wd5000aaks`;
`streamsched list workloads` lists the others, with their disks. Where processes wait for each other
(`multi-threads`, `pvfs`) microseconds decide the outcome. There the cell is the mean of
{BEGINNINGS} runs, whose processes begin up to 20 ms later, and the longest wait of all.

Not every wrapped policy is here: of nwcs one over a policy for throughput and one for shares. What
is left out matters: nwcs:cscan serves one reader to its end while all others wait. With many
readers that is more efficient. The policy `auto`, which chooses one of these, is in
[AUTO.md](../guide/AUTO.md).

"""


LEGEND = """\
Efficiency (1.0: as one after the other, alone) / longest wait of a request in s. The highest
efficiency of a line is bold.

"""


def printed(table: Table, settings: Table) -> str:
    """What is printed where there is no document around it."""
    return LEGEND + markdown(table) + settings_markdown(table, settings)


def document(table: Table, settings: Table) -> str:
    """docs/results/comparison.md."""
    return HEAD + markdown(table) + settings_markdown(table, settings)
