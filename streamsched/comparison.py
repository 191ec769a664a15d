# SPDX-License-Identifier: GPL-2.0-only
"""Every policy on every workload: docs/COMPARISON.md, and the same for some of them.

Owners are visible as the paper lets them be, which favours the policies that use them; stream
does not. A cell is the efficiency (see compare.py: 1.0 means that nothing was lost by serving
the processes together) and the longest wait of any process's request, in seconds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from rich.console import Console

from streamsched.compare import Comparison, Task, alone_tasks, run_tasks
from streamsched.errors import Interrupted, unknown
from streamsched.experiment import STREAM, Case, case_task, work_case
from streamsched.policies import WRAPPER, all_policies
from streamsched.simulate import NS
from streamsched.workloads import WORKLOADS, shipped_jobs

# nwcs over a policy for throughput and over one for shares.
WRAPPED = ("nwcs:sptf", "nwcs:wfq")
# As the kernel's scheduler and the block server begin: slices follow from wait_target, 500 ms.
AUTO = f"{STREAM}, auto"
# How far behind the best stream may be: the aim.
AIM = 0.03
# A run that is not over by then, in virtual time, has starved somebody.
LIMIT_S = 3600


def policies() -> list[str]:
    """All that are compared, those that they are compared with last."""
    plain = [one.name for one in all_policies().values() if not one.flags & WRAPPER]
    return [*plain, *WRAPPED, STREAM, AUTO]


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


Table = dict[str, dict[str, Cell]]  # by workload, by policy


def _case(work: str, policy: str) -> Case:
    if policy == AUTO:
        return dataclasses.replace(_case(work, STREAM), tunables=(("stream_time_slice", 0),))
    if work in WORKLOADS:
        return work_case(work, policy)
    return Case(work, policy, owners="process")


def _task(work: str, policy: str) -> Task:
    task = case_task(_case(work, policy))
    limited = dataclasses.replace(task.setup, stop_ns=LIMIT_S * NS)
    return dataclasses.replace(task, setup=limited)


def measure(works: Sequence[str], jobs: int, console: Console) -> Table:
    """All policies on @works."""
    for work in works:
        if work not in workloads():
            raise unknown("workload", work, workloads())
    specs = policies()
    tasks = {(work, spec): _task(work, spec) for work in works for spec in specs}
    alone = {}
    for work in works:
        task = tasks[work, specs[0]]
        alone[work] = alone_tasks(task.processes, task.setup)
    flat = [*tasks.values(), *(task for some in alone.values() for task in some.values())]
    results, interrupted = run_tasks(flat, jobs, console, together="comparison")
    if interrupted:
        raise Interrupted("interrupted before there was a result")
    runs = dict(zip(tasks, results, strict=False))
    lonely = iter(results[len(tasks) :])
    table: Table = {}
    for work in works:
        rates = {number: run.bytes / run.seconds for number in alone[work] if (run := next(lonely))}
        row = table[work] = {}
        for spec in specs:
            run = runs[work, spec]
            if not run:
                continue
            efficiency = Comparison((run,), rates).efficiency(run) or 0.0
            if run.seconds >= LIMIT_S - 1:
                efficiency = 0.0
            row[spec] = Cell(efficiency, max(job.longest_wait_ns for job in run.jobs) / 1e9)
    return table


def best_other(row: dict[str, Cell]) -> str:
    """The most efficient of the others."""
    others = [spec for spec in row if spec not in (STREAM, AUTO)]
    return max(others, key=lambda spec: row[spec].efficiency)


def behind(row: dict[str, Cell], spec: str) -> float:
    """By which part @spec's efficiency is below the best other's; negative: above."""
    best = row[best_other(row)].efficiency
    return 1 - row[spec].efficiency / best if best else 0.0


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
    for spec in (STREAM, AUTO):
        lost = [behind(row, spec) for row in table.values()]
        near = sum(0 < each <= AIM for each in lost)
        far = sum(each > AIM for each in lost)
        lines += [
            f"{spec}: the most efficient or as good on {len(lost) - near - far} of {len(lost)} "
            f"workloads, at most {100 * AIM:.0f} % behind the best other on {near} more, and "
            f"further behind on {far}.",
            "",
        ]
    first = max(specs, key=lambda spec: mean(table, spec))
    lines += [f"The highest mean is that of {first}.", ""]
    worse = {
        work: row for work, row in table.items() if max(behind(row, STREAM), behind(row, AUTO)) > 0
    }
    if worse:
        lines += [
            f"| workload | most efficient other | that | {STREAM} | behind by | auto | behind by |",
            "|---" * 7 + "|",
        ]
    for work, row in sorted(worse.items(), key=lambda item: -behind(item[1], AUTO)):
        best = best_other(row)
        own = " | ".join(
            f"{row[spec]} | {100 * behind(row, spec):.1f} %" for spec in (STREAM, AUTO)
        )
        lines.append(f"| `{work}` | {best} | {row[best]} | {own} |")
    return "\n".join(lines) + "\n"


HEAD = f"""\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
# Every policy on every workload

Written by `make comparison` (`streamsched compare --to docs/COMPARISON.md`) from measured runs;
do not edit. A cell is the efficiency and the longest wait of a process's request in seconds.
Efficiency is the time that the processes would need one after the other, each with the disk to
itself, divided by the time they took together ([RESULTS.md](RESULTS.md)); it may exceed 1 where
writes end in memory, where one process thinks while another is served, or where one reads what
another has read. The highest of a line is bold. A policy that lets somebody wait for long may be
efficient: look at the wait. One that "starves" was not done after {LIMIT_S} s of virtual time.

One command in the disk at a time. Owners are visible, each process or (`-1vm`, `-2vm`) each VM;
{STREAM} does not look at them; as "auto" it has `stream_time_slice=auto`, as the kernel's
scheduler and the block server have by default. The workloads of job files are in `jobs/`
([JOBS.md](JOBS.md)) and run on `wd5000aaks`; `streamsched workloads` lists the others, with
their disks.

"""


LEGEND = f"""\
Efficiency (1.0: as one after the other, alone) / longest wait of a request in s. The highest
efficiency of a line is bold; "auto" is {STREAM} with stream_time_slice=auto.

"""


def printed(table: Table) -> str:
    """What is printed where there is no document around it."""
    return LEGEND + markdown(table)


def document(table: Table) -> str:
    """docs/COMPARISON.md."""
    return HEAD + markdown(table)
