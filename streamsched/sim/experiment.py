# SPDX-License-Identifier: GPL-2.0-only
"""What the papers' experiments are made of: simulations, and rows that compare with the paper.

A row states the paper's figure, ours, the rule by which they agree, and where the rule and the
model come from. A rule takes one reading of the paper: where a text can be read in two ways, the
plainer one.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

from rich.table import Table

from streamsched.sim.array import parse_array
from streamsched.sim.diskfile import load_disk
from streamsched.sim.policies import parse_weights
from streamsched.sim.results import plain_table
from streamsched.sim.simulate import NR_REQUESTS, Run, Setup
from streamsched.sim.tasks import Task
from streamsched.sim.workloads import WORKLOADS, job_path
from streamsched.work.jobfile import load_jobs
from streamsched.work.process import Process

PAPER_DISK = "wd5000aaks"
STREAM = "stream:deadline"
# Stream scheduling as Xu and Jiang published it.
PAPER_STREAM = "ss:deadline"
# Their anticipatory scheduler waits "about 4ms" (section 3.4): a tick of HZ=250.
PAPER_ANTICIPATORY = (("antic_expire", 4_000_000),)


@dataclasses.dataclass(frozen=True)
class Case:
    """One simulation: a workload or a shipped job under a policy, with some changes."""

    job: str
    policy: str
    owners: str = "none"
    think_us: int | None = None
    thinkers: int | None = None  # only this one of the processes thinks so; None: all
    think_blocks: int | None = None  # and only after so many blocks
    stall_blocks: int | None = None  # of those that stall
    slice_ms: int | None = None
    tunables: tuple[tuple[str, int], ...] = ()
    weights: tuple[str, ...] = ()  # as --weight takes them
    array: str | None = None
    depth: int = 1
    nr_requests: int = NR_REQUESTS
    disk: str = PAPER_DISK

    def changed(self, processes: Sequence[Process]) -> list[Process]:
        """@processes as this case has them."""
        result = []
        for number, process in enumerate(processes):
            changes: dict[str, int] = {}
            if self.think_us is not None and self.thinkers in (None, number):
                changes["thinktime_ns"] = self.think_us * 1000
                if self.think_blocks is not None:
                    changes["thinktime_blocks"] = self.think_blocks
            if self.stall_blocks is not None and process.stall_blocks:
                changes["stall_blocks"] = self.stall_blocks
            result.append(dataclasses.replace(process, **changes))  # type: ignore[arg-type]
        return result

    @property
    def label(self) -> str:
        """For a progress bar."""
        detail = "" if self.think_us is None else f" think {self.think_us} us"
        detail += "" if self.slice_ms is None else f" slice {self.slice_ms} ms"
        return f"{self.job} {self.policy}{detail}"


Runs = dict[Case, Run]


def work_case(job: str, policy: str, **more: object) -> Case:
    """@job, a workload, on the disks and with the owners that it is meant for."""
    workload = WORKLOADS[job]
    made = Case(job, policy, owners=workload.owners, array=workload.array, disk=workload.disk)
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


def case_task(case: Case) -> Task:
    """The simulation of @case."""
    tunables = case.tunables
    if case.slice_ms is not None:
        tunables = (*tunables, ("stream_time_slice", case.slice_ms * 1_000_000))
    workload = WORKLOADS.get(case.job)
    plain = workload.setup(case.policy) if workload else Setup(load_disk(case.disk), case.policy)
    setup = dataclasses.replace(
        plain,
        disk=load_disk(case.disk),
        owners=case.owners,
        queue_depth=case.depth,
        nr_requests=case.nr_requests,
        tunables=tunables,
        array=parse_array(case.array) if case.array else None,
    )
    if workload:
        processes = workload.processes(setup.capacity_bytes)
    else:
        processes = load_jobs(job_path(f"{case.job}.fio"), capacity_bytes=setup.capacity_bytes)
    processes = case.changed(processes)
    weights = parse_weights(list(case.weights), [case.policy], processes, case.owners)
    return Task(case.label, dataclasses.replace(setup, weights=weights), tuple(processes))


@dataclasses.dataclass(frozen=True)
class Row:
    """One comparison with the paper."""

    what: str
    paper: str
    ours: str
    rule: str
    agrees: bool
    # Was the rule stated before its row was measured? None: as its figure says.
    before: bool | None = None
    # Why it cannot fail; such a row is no evidence, and is not counted.
    idle: str = ""


HEADINGS = (
    "what",
    "paper",
    "ours",
    "agrees if",
    "rule first",
    "fitted",
    "model changed",
    "verdict",
)


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where the rules and the model of a figure come from."""

    before: bool  # the rules were stated before the rows were measured
    fitted: str = "no"  # a parameter that was chosen by a figure of the paper
    # What of the model was changed after the first result: the disk's for reasons outside of the
    # rows (recorded drives), or the workload's or the policy's because rows differed.
    changed: str = "disk"

    def cells(self, row: Row) -> tuple[str, ...]:
        """@row's, in the order of HEADINGS."""
        before = self.before if row.before is None else row.before
        verdict = "cannot fail" if row.idle else "agrees" if row.agrees else "DIFFERS"
        first = "yes" if before else "no"
        return (row.what, row.paper, row.ours, row.rule, first, self.fitted, self.changed, verdict)


def figure_table(title: str, rows: Sequence[Row], origin: Origin | None = None) -> Table:
    """@rows as they are printed."""
    table = plain_table(title)
    for heading, width in zip(HEADINGS[:4], (50, 20, 26, 26), strict=True):
        table.add_column(heading, max_width=width)
    if origin:
        for heading in HEADINGS[4:7]:
            table.add_column(heading, max_width=8)
    table.add_column(HEADINGS[7], no_wrap=True)
    for row in rows:
        cells = (origin or Origin(True)).cells(row)
        table.add_row(*(cells if origin else (*cells[:4], cells[7])))
    return table


def within(value: float, target: float, share: float) -> bool:
    """Whether @value is @target, give or take this share of it."""
    return abs(value - target) <= share * target


def figure_row(what: str, paper: float, ours: float, unit: str) -> Row:
    """A figure of the paper itself, and not a ratio of two."""
    shown = f"{ours:.0f}" if ours >= 1000 else f"{ours:.1f}"
    agrees = within(ours, paper, 0.15)
    return Row(what, f"{paper:g} {unit}", f"{shown} {unit}", "+-15 %", agrees)


def most_row(what: str, gains: dict[str, float]) -> Row:
    """The paper's "up to 3.2 times" (its abstract), for the largest of @gains over noop."""
    most = max(gains, key=lambda name: gains[name])
    shown = f"{most} {gains[most]:.2f}x"
    return Row(what, "up to 3.2x", shown, "3.2x or less, +10 %", gains[most] <= 3.2 * 1.1)


def factor_row(what: str, paper: float, ours: float, *, most: float = 2.0) -> Row:
    """Two ratios that agree if neither is more than @most times the other."""
    agrees = paper / most <= ours <= paper * most
    return Row(what, f"{paper:.2f}x", f"{ours:.2f}x", f"within a factor of {most:g}", agrees)


def order_row(what: str, paper: str, ours: Sequence[tuple[str, float]], unit: str) -> Row:
    """Values that must fall, or stay equal to within 1 %, in the order given."""
    shown = ", ".join(f"{name} {value:,.1f}" for name, value in ours)
    values = [value for _, value in ours]
    agrees = all(b <= a * 1.01 for a, b in itertools.pairwise(values))
    return Row(what, paper, f"{shown} {unit}", "in this order, or equal (1 %)", agrees)


@dataclasses.dataclass(frozen=True)
class Figure:
    """A paper's figure or table: its simulations, and the rows made of them."""

    title: str
    cases: Callable[[], list[Case]]
    rows: Callable[[Runs], list[Row]]
    source: str = "Xu and Jiang, FAST 2011"
    disk: str = PAPER_DISK  # of most rows
    origin: Origin = Origin(before=True)
