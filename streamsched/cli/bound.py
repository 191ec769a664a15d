# SPDX-License-Identifier: GPL-2.0-only
"""The command bound: what no scheduler can beat, and how far policies are from it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import TaskID

from streamsched.api.place import Place, setups_of
from streamsched.api.work import Job, Work, job_of, job_work
from streamsched.base.console import trimmed
from streamsched.base.errors import Interrupted, StreamschedError, UsageError
from streamsched.base.files import Target, write_whole
from streamsched.base.progress import nr_jobs, part_bars
from streamsched.cli import complete
from streamsched.cli.options import Form, FormOption, ParallelOption, argument
from streamsched.cli.simoptions import (
    POLICIES_HELP,
    ArrayOption,
    DepthOption,
    DeviceOption,
    DiskOption,
    FormatOption,
    OwnersOption,
    RuntimeOption,
    SkipBadOption,
    policy_option,
    runtime_ns,
    time_ns,
)
from streamsched.cli.work import say
from streamsched.sim.policies import AUTO
from streamsched.sim.results import plain_table
from streamsched.sim.tasks import Task, Trace, run_tasks
from streamsched.sim.workloads import WORKLOADS

TARGET = "500ms"
# Beyond this there is a bar, on a terminal.
PATIENCE_S = 2.0
# Neither a bound nor what is reached has more of them.
DIGITS = 1e-6


@dataclasses.dataclass(frozen=True)
class Asked:
    """What the command was asked for, beside work and disk."""

    target_s: float
    policy: str | None
    parallel: int


def _target_s(text: str) -> float:
    return time_ns("--wait-target", text, "ms", "nothing is reached in no time; write 500ms") / 1e9


def bound(
    work: Annotated[
        str,
        argument(
            "JOB|TRACE",
            "a job file or a block trace",
            "A fio job file, the name of a shipped one, a workload, or a block trace.",
            autocompletion=complete.jobs,
        ),
    ],
    disk: DiskOption = None,
    array: ArrayOption = None,
    policy: Annotated[
        str | None, policy_option(f"Beside it what these reach. {POLICIES_HELP}")
    ] = None,
    owners: OwnersOption = None,
    queue_depth: DepthOption = None,
    wait_target: Annotated[
        str,
        typer.Option(
            "--wait-target",
            metavar="TIME",
            help="No stream is without the head for longer, as in 500ms or 2s.",
        ),
    ] = TARGET,
    runtime: RuntimeOption = None,
    format_: FormatOption = None,
    device: DeviceOption = None,
    skip_bad: SkipBadOption = False,
    output: FormOption = Form.table,
    parallel: ParallelOption = 0,
) -> None:
    """Show what no scheduler can beat for a job or a trace."""
    from streamsched.bound.arm import check_solver

    asked = Asked(_target_s(wait_target), policy, nr_jobs(parallel))
    place = Place(disk, array, owners, queue_depth)
    check_solver()  # if it is missing, before there is work
    if _is_trace(work):
        if runtime is not None:
            raise UsageError("--runtime: is of a job; a trace is as long as it is")
        if array is not None:
            raise UsageError(f"--array {array}: a trace's bound is proved for one disk")
        trace = Trace(work, format_, device, skip_bad)
        answer = _trace(trace, place, asked)
        printed = _print_trace
    else:
        for option, value in (("--format", format_), ("--device", device)):
            if value is not None:
                raise UsageError(f"{option} {value}: is of a trace, and {work} is a job")
        answer = _job(work, place, asked, runtime_ns(runtime))
        printed = _print_job
    if output is Form.json:
        json.dump(answer, sys.stdout, indent=2)
        print()
    else:
        printed(answer)
    _check(work, answer)


def _check(work: str, answer: dict[str, Any]) -> None:
    for one in answer["policies"]:
        if one["regret"] < -DIGITS:
            raise StreamschedError(
                f"{one['policy']} is above the bound, which is a bug; report it with "
                f"{_saved(work, answer)}, where the case is"
            )


def _is_trace(work: str) -> bool:
    """A file that is no job file."""
    path = Path(work)
    return work not in WORKLOADS and path.suffix not in ("", ".fio", ".job", ".ini")


def _saved(work: str, answer: dict[str, Any]) -> str:
    """A file of this folder with all that finds @answer again."""
    path = Path(f"above-the-bound-{os.getpid()}.json")
    file = Path(work if Path(work).is_file() or work in WORKLOADS else job_of(work))
    text = file.read_text() if file.is_file() and not _is_trace(work) else None
    case = {"command": sys.argv[1:], "job": text, "answer": answer}
    write_whole(Target(path), json.dumps(case, indent=2) + "\n")
    return str(path)


def _job(name: str, place: Place, asked: Asked, most_ns: int) -> dict[str, Any]:
    job = Job(name if name in WORKLOADS else job_of(name), runtime_ns=most_ns)
    place = place.of(job.workload)
    storage, depth = place.storage()
    policies = asked.policy or "noop"
    setups = setups_of(storage.disk, policies, place.seen, depth, [], "measured")
    done = job_work(job, storage, setups, [], 0)
    say(done.notes)
    return _bounded(done, asked)


def check_works(works: Iterable[Work]) -> None:
    """Refuse what nothing is proved for, before it is done."""
    from streamsched.bound.job import check_setup

    for work in works:
        check_setup(work.setups[0])


def check_bound(policy: str | None) -> None:
    """Refuse --bound with what has none."""
    from streamsched.bound.arm import check_solver

    if AUTO in (policy or "").split(","):
        raise UsageError("--bound: not with the policy auto; name those that it chooses among")
    check_solver()


def regrets(work: Work, job: str, parallel: int) -> dict[str, float]:
    """What part of the bound each policy of @work, which does @job, does not reach; runs them."""
    answer = _bounded(work, Asked(_target_s(TARGET), "", parallel))
    _check(job, answer)
    return {one["policy"]: one["regret"] for one in answer["policies"]}


def print_regret(work: Work, job: str, parallel: int, title: bool) -> None:
    """How far the policies of @work, which does @job, are from the bound; runs them."""
    answer = _bounded(work, Asked(_target_s(TARGET), "", parallel))
    console = trimmed()
    if title:
        console.print(work.title, soft_wrap=True, markup=False, highlight=False)
    _print_policies(answer, console)
    _check(job, answer)


def _bounded(done: Work, asked: Asked) -> dict[str, Any]:
    from streamsched.bound.job import JobBound

    found = JobBound(done.setups[0], done.processes, asked.parallel, Console(stderr=True))
    ends = found.bound(asked.target_s)
    named = done.setups if asked.policy is not None else ()
    reached = [found.reached(one, asked.target_s) for one in named]
    processes = [
        {
            "process": party.name,
            "kind": party.kind.value,
            "alone_mb_s": party.rate / 1e6,
            "fair": ends.fair.shares[at],
            "most": ends.most.shares[at],
            "reached": {one.policy: one.shares[at] for one in reached},
        }
        for at, party in enumerate(found.parties)
    ]
    return {
        "job": done.name,
        "disk": done.setups[0].disk.name,
        "array": str(done.setups[0].array or ""),
        "queue_depth": done.setups[0].queue_depth,
        "wait_target_s": asked.target_s,
        "steady": found.steady,
        "loose": found.loose(),
        "processes": processes,
        "frontier": [{"least": one.least, "sum": one.total} for one in ends.curve],
        "policies": [
            {key: value for key, value in dataclasses.asdict(one).items() if key != "shares"}
            | {"least": one.least, "regret": one.regret}
            for one in reached
        ],
    }


def _trace(trace: Trace, place: Place, asked: Asked) -> dict[str, Any]:
    from streamsched.bound.arm import Arm
    from streamsched.bound.trace import TraceBound, requests_of

    storage, depth = place.storage()
    disk, console = storage.disk, Console(stderr=True)
    arm = Arm(disk)
    with trace.named(), _told(console, "reading the trace") as passed:
        requests = requests_of(trace, disk.capacity_sectors, passed)
    found = TraceBound(arm, requests)
    with _told(console, "the bound") as passed:
        floor_s = found.floor_s(asked.target_s, passed)
    policies = []
    if asked.policy:
        setups = setups_of(disk, asked.policy, place.seen, depth, [], "measured")
        tasks = [Task(one.shown, one, traces=(trace,)) for one in setups]
        runs, interrupted = run_tasks(tasks, asked.parallel, console)
        if interrupted:
            raise Interrupted("interrupted before there was a result")
        for run in (one for one in runs if one):
            longest_s = run.response.max / 1e3
            with _told(console, f"the bound of {run.setup.shown}") as passed:
                own_s = found.floor_s(max(longest_s, asked.target_s), passed)
            took_s = run.position_ns / 1e9
            policies.append(
                {
                    "policy": run.setup.shown,
                    "position_s": took_s,
                    "longest_s": longest_s,
                    "floor_s": own_s,
                    "regret": 1 - own_s / took_s if took_s else 0.0,
                }
            )
    return {
        "trace": Path(trace.path).name,
        "disk": disk.name,
        "queue_depth": depth,
        "wait_target_s": asked.target_s,
        "requests": len(requests),
        "counted": int(found.counted.sum()),
        "lasted_s": requests.lasted_s,
        "busy_s": requests.busy_s,
        "longest_s": requests.longest_s,
        "floor_s": floor_s,
        "policies": policies,
    }


@contextlib.contextmanager
def _told(console: Console, what: str) -> Iterator[Callable[[float], None]]:
    """A bar that is given the part done, once that takes a while, on a terminal."""
    progress = part_bars(console)
    began = time.monotonic()
    shown: list[TaskID] = []

    def passed(part: float) -> None:
        if not shown and time.monotonic() - began > PATIENCE_S:
            shown.append(progress.add_task(what, total=1.0))
            progress.start()
        for task in shown:
            progress.update(task, completed=part)

    try:
        yield passed
    finally:
        if shown:
            progress.stop()


def _print_trace(answer: dict[str, Any]) -> None:
    console = trimmed()
    console.print(
        f"{answer['trace']} on {answer['disk']}, queue depth {answer['queue_depth']}, "
        f"wait target {1000 * answer['wait_target_s']:g} ms",
        soft_wrap=True,
    )
    console.print()
    console.print(
        f"{answer['requests']:,} requests in {answer['lasted_s']:.2f} s, pending in "
        f"{answer['busy_s']:.2f} s of them. {answer['counted']:,} are reads that no cache can have."
    )
    console.print(f"No order positions the head for them in less than {answer['floor_s']:.2f} s.")
    if not answer["policies"]:
        return
    table = plain_table()
    table.add_column("policy")
    for head in ("position-\ning s", "bound", "regret", "longest\nresponse ms"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in answer["policies"]:
        table.add_row(
            one["policy"],
            f"{one['position_s']:.2f}",
            f"{one['floor_s']:.2f}",
            f"{100 * one['regret']:.1f} %",
            f"{1000 * one['longest_s']:,.0f}",
        )
    console.print()
    console.print(table)


def _print_job(answer: dict[str, Any]) -> None:
    console = trimmed()
    disk = " of ".join(filter(None, (answer["array"], answer["disk"])))
    console.print(
        f"{answer['job']} on {disk}, queue depth {answer['queue_depth']}"
        + (f", wait target {1000 * answer['wait_target_s']:g} ms" if answer["steady"] else "")
    )
    console.print()
    policies = [one["policy"] for one in answer["policies"]]
    table = plain_table()
    table.add_column("process")
    heads = (
        ["alone\nMB/s", "fair\nbound", "sum\nbound"]
        if answer["steady"]
        else ["alone\nMB/s", "bound"]
    )
    for head in (*heads, *policies):
        table.add_column(head, justify="right", no_wrap=True)
    for one in answer["processes"]:
        ends = [one["fair"], one["most"]] if answer["steady"] else [one["most"]]
        own = [one["reached"][name] if answer["steady"] else None for name in policies]
        cells = [f"{value:.3f}" if value is not None else "" for value in (*ends, *own)]
        table.add_row(one["process"], f"{one['alone_mb_s']:.2f}", *cells)
    console.print(table)
    if answer["steady"]:
        curve = ", ".join(f"{one['least']:.2f}/{one['sum']:.2f}" for one in answer["frontier"])
        console.print(f"The frontier, least share x n / sum of shares: {curve}")
    else:
        total = answer["frontier"][0]["sum"]
        console.print(f"No order is more efficient than {total:.3f}.")
    if answer["loose"]:
        names = ", ".join(dict.fromkeys(answer["loose"]))
        console.print(f"Loose: only the bytes are counted of {names}.")
    if answer["policies"]:
        _print_policies(answer, console)


def _print_policies(answer: dict[str, Any], console: Console) -> None:
    table = plain_table()
    table.add_column("policy")
    for head in ("sum of\nshares", "bound", "regret", "least\nx n", "away\nms"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in answer["policies"]:
        away = f"{1000 * one['absent_s']:,.0f}" if answer["steady"] else ""
        table.add_row(
            one["policy"],
            f"{one['total']:.3f}",
            f"{one['most']:.3f}",
            f"{100 * one['regret']:.1f} %",
            f"{one['least']:.2f}" if answer["steady"] else "",
            away,
        )
    console.print()
    console.print(table)
