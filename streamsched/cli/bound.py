# SPDX-License-Identifier: GPL-2.0-only
"""The command bound: what no scheduler can beat, and how far policies are from it."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from streamsched.api.place import Place, setups_of
from streamsched.api.work import Job, job_of, job_work
from streamsched.base.console import trimmed
from streamsched.base.errors import UsageError, given
from streamsched.base.progress import nr_jobs
from streamsched.base.units import fio_time_ns
from streamsched.cli import complete
from streamsched.cli.options import (
    POLICIES_HELP,
    DepthOption,
    DiskOption,
    Form,
    FormOption,
    OwnersOption,
    ParallelOption,
    RuntimeOption,
    policy_option,
    runtime_ns,
)
from streamsched.cli.work import say
from streamsched.sim.results import plain_table
from streamsched.sim.workloads import WORKLOADS

TARGET = "500ms"
# A job that has neither an end nor a runtime would be measured for ever.
NEVER = "has no end, so there is nothing to bound; give it a runtime, or --runtime 30s"


def _target_s(text: str) -> float:
    try:
        target_ns = 0 if text.startswith("-") else fio_time_ns(text, "ms")
    except UsageError as error:
        raise UsageError(f"--wait-target: {error}") from None
    if not target_ns:
        raise UsageError(f"--wait-target {text}: nothing is reached in no time; write 500ms")
    return target_ns / 1e9


def bound(
    work: Annotated[
        str,
        typer.Argument(
            metavar="JOB|TRACE",
            parser=given("JOB|TRACE", "a job file or a block trace", str),
            autocompletion=complete.jobs,
            help="A fio job file, the name of a shipped one, a workload, or a block trace.",
        ),
    ],
    disk: DiskOption = None,
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
    output: FormOption = Form.table,
    parallel: ParallelOption = 0,
) -> None:
    """Show what no scheduler can beat, even one that knows all requests beforehand."""
    from streamsched.bound.arm import solver

    target_s = _target_s(wait_target)
    place = Place(disk, None, owners, queue_depth)
    solver()  # if it is missing, before there is work
    _job(work, place, target_s, policy, runtime_ns(runtime), output, nr_jobs(parallel))


def _job(
    name: str,
    place: Place,
    target_s: float,
    policy: str | None,
    most_ns: int,
    output: Form,
    jobs: int,
) -> None:
    from streamsched.bound.job import JobBound, Reached

    job = Job(name if name in WORKLOADS else job_of(name), runtime_ns=most_ns)
    place = place.of(job.workload)
    storage, depth = place.storage()
    setups = setups_of(storage.disk, policy or "noop", place.seen, depth, [], "measured")
    done = job_work(job, storage, setups, [], 0)
    say(done.notes)
    for process in done.processes:
        if process.time_based and not process.runtime_ns:
            raise UsageError(f"{done.name}: {process.name} {NEVER}")
    found = JobBound(done.setups[0], done.processes, jobs, Console(stderr=True))
    ends = found.bound(target_s)
    reached: list[Reached] = []
    if policy:
        reached = [found.reached(setup, target_s) for setup in done.setups]
    shares = {one.policy: one.shares for one in reached}
    processes = [
        {
            "process": party.name,
            "kind": party.kind.value,
            "alone_mb_s": party.rate / 1e6,
            "fair": ends.fair.shares[at],
            "most": ends.most.shares[at],
            "reached": {name: of[at] for name, of in shares.items()},
        }
        for at, party in enumerate(found.parties)
    ]
    answer: dict[str, Any] = {
        "job": done.name,
        "disk": str(storage),
        "queue_depth": depth,
        "wait_target_s": target_s,
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
    if output is Form.json:
        json.dump(answer, sys.stdout, indent=2)
        print()
        return
    _print(answer)
    for one in reached:
        if one.regret < -1e-9:
            raise UsageError(
                f"{one.policy} is above the bound, {one.total:.4f} of {one.most:.4f}: this is a "
                "bug; please report it with the job, the disk and this sentence"
            )


def _print(answer: dict[str, Any]) -> None:
    console = trimmed()
    console.print(
        f"{answer['job']} on {answer['disk']}, queue depth {answer['queue_depth']}"
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
