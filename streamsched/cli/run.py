# SPDX-License-Identifier: GPL-2.0-only
"""The commands run and replay: work under several policies, on each of the hosts."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from streamsched.api.host import HOSTS, Asked
from streamsched.api.place import DEFAULT_POLICIES, Place, setups_of
from streamsched.api.result import Result
from streamsched.api.work import Job, job_of, run_each, trace_work
from streamsched.base.errors import UsageError
from streamsched.base.files import Target, target
from streamsched.base.plotfile import save
from streamsched.base.progress import nr_jobs
from streamsched.cli import complete
from streamsched.cli.bound import check_bound, check_works, print_regret
from streamsched.cli.options import (
    RESULTS,
    ForceOption,
    ParallelOption,
    PlotOption,
    ToOption,
    argument,
    given_options,
    reveal,
)
from streamsched.cli.output import show
from streamsched.cli.simoptions import (
    ON_KERNEL,
    POLICIES_HELP,
    ArrayOption,
    BoundOption,
    By,
    ByOption,
    Curve,
    CurveOption,
    DepthOption,
    DeviceOption,
    DisksOption,
    FormatOption,
    GoalOption,
    Host,
    Layers,
    Mode,
    ModeOption,
    Output,
    OutputOption,
    OwnersOption,
    PolicyOption,
    ProfileOption,
    RequestsOption,
    RuleOption,
    RuntimeOption,
    SeedsOption,
    SetOption,
    SkipBadOption,
    WeightOption,
    WrapOption,
    policy_option,
    runtime_ns,
)
from streamsched.cli.work import (
    check_force,
    check_outputs,
    check_several,
    disk_files,
    refuse_same,
    say,
    trace_files,
)
from streamsched.sim import auto
from streamsched.sim.auto import Goal, Rule
from streamsched.sim.policies import policy_files
from streamsched.sim.tasks import Trace
from streamsched.sim.workloads import WORKLOADS


def _host(context: typer.Context, on: Host) -> Host:
    if on is Host.kernel:
        reveal(context, ON_KERNEL)
    return on


def run(
    context: typer.Context,
    job: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB.fio",
            autocompletion=complete.jobs,
            help="A fio job file, the name of a shipped one, or a workload "
            "(`streamsched list workloads`). Several: a result of each.",
        ),
    ],
    disk: DisksOption = None,
    array: ArrayOption = None,
    policy: Annotated[
        str | None,
        policy_option(POLICIES_HELP, show_default=DEFAULT_POLICIES),
    ] = None,
    owners: OwnersOption = None,
    queue_depth: DepthOption = None,
    runtime: RuntimeOption = None,
    set_: SetOption = None,
    weight: WeightOption = None,
    curve: CurveOption = Curve.measured,
    profile: ProfileOption = None,
    goal: GoalOption = Goal.throughput,
    rule: RuleOption = Rule.workload,
    output: OutputOption = Output.table,
    by: ByOption = By.policy,
    bound: BoundOption = False,
    to: ToOption = None,
    requests: RequestsOption = None,
    plot: PlotOption = None,
    force: ForceOption = False,
    seed: SeedsOption = None,
    parallel: ParallelOption = 0,
    on: Annotated[
        Host,
        typer.Option(
            "--on",
            metavar="HOST",
            is_eager=True,
            callback=_host,
            help="sim: the simulator; kernel: a real kernel in virtual time, with fio; "
            "nbd: fio over NBD against the nbdkit plugin, in real time.",
        ),
    ] = Host.sim,
    path: Annotated[
        Layers,
        typer.Option(
            "--path",
            metavar="LAYER",
            help="What is between fio and the disk: direct (nothing), loop, crypt, md0 or nbd.",
            hidden=True,
            rich_help_panel=ON_KERNEL,
        ),
    ] = Layers.direct,
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel",
            metavar="VARIANT",
            help="base: Linux 6.12; kasan: with the kernel's own checks; newest: Debian sid's "
            "newest. Policies are none, mq-deadline, kyber, bfq, stream, with settings as in "
            "bfq:low_latency=0; noop, linus, deadline-2.6, anticipatory, cfq, cooperative of old "
            "kernels.",
            hidden=True,
            rich_help_panel=ON_KERNEL,
        ),
    ] = "base",
) -> None:
    """Run a fio job file on a simulated disk, under several schedulers."""
    most_ns = runtime_ns(runtime)
    named = [Job(one if one in WORKLOADS else job_of(one), runtime_ns=most_ns) for one in job]
    read = [str(one.source) for one in named if not one.workload]
    outputs = {"--requests": target(requests, force), "--plot": target(plot, force)}
    check_several(len(named) * len(disk or [""]) * len(seed or [0]), output, outputs)
    check_force(force, to, requests, plot)
    results_to = target(to, force)
    check_outputs(results_to, outputs, [*read, *disk_files(disk), profile, *policy_files(policy)])
    _check_by(by, output)
    if bound:
        _check_bound(policy, output, to)
    host = HOSTS[on]
    host.refuse(given_options(context))
    refuse_same("JOB", job)
    refuse_same("--disk", disk or [])
    refuse_same("--seed", seed or [])
    asked = Asked(
        policy=policy,
        settings=set_ or [],
        processes=nr_jobs(parallel),
        weights=weight or [],
        curve=curve,
        options=auto.Options(profile, goal, rule),
        requests=outputs["--requests"],
        drawn=plot is not None,
        path=path.value,
        variant=kernel,
    )
    works = [
        host.work(one, Place(where, array, owners, queue_depth), number, asked)
        for one in named
        for where in disk or (None,)
        for number in seed or (0,)
    ]
    say(dict.fromkeys(text for work in works for text in work.notes))
    if bound:
        check_works(works)
    results = host.run(works, asked)
    _plot(results[0], outputs["--plot"])
    show(results, output, results_to, by is By.process)
    jobs = [one for one in job for _ in range(len(works) // len(job))]
    for work, name in zip(works, jobs, strict=True) if bound else ():
        print()
        print_regret(work, name, nr_jobs(parallel), title=len(works) > 1)


def _plot(result: Result, to: Target | None) -> None:
    """Draw what was finished, if that was asked for."""
    if to and result.drawn:
        from streamsched.report.plot import picture

        save(picture(result.drawn), to)


def _check_bound(policy: str | None, output: Output, to: Path | None) -> None:
    """Refuse what has no bound, or no place for it."""
    if output is not Output.table or to is not None:
        raise UsageError(
            "--bound: only with tables that are printed; `streamsched research bound --output "
            "json` has it as JSON"
        )
    check_bound(policy)


def _check_by(by: By, output: Output) -> None:
    """Refuse what would not be heeded."""
    if by is By.process and output is not Output.table:
        raise UsageError(
            f"--by process: only with --output table; {output.value} "
            + ("has no processes" if output is Output.csv else "has the processes anyway")
        )


def replay(
    trace: Annotated[
        list[str],
        argument(
            "TRACE",
            "a block trace",
            "A block trace; - reads stdin. Several are replayed together on one disk.",
        ),
    ],
    disk: DisksOption = None,
    array: ArrayOption = None,
    policy: PolicyOption = DEFAULT_POLICIES,
    owners: OwnersOption = None,
    queue_depth: DepthOption = None,
    set_: SetOption = None,
    curve: CurveOption = Curve.measured,
    mode: ModeOption = Mode.closed,
    format_: FormatOption = None,
    device: DeviceOption = None,
    skip_bad: SkipBadOption = False,
    wrap: WrapOption = False,
    profile: ProfileOption = None,
    goal: GoalOption = Goal.throughput,
    rule: RuleOption = Rule.workload,
    output: Annotated[
        Output,
        typer.Option(
            "--output",
            metavar="FORM",
            help="table, json, json+ (with histograms) or csv.",
            rich_help_panel=RESULTS,
        ),
    ] = Output.table,
    to: ToOption = None,
    requests: RequestsOption = None,
    plot: PlotOption = None,
    force: ForceOption = False,
    parallel: ParallelOption = 0,
) -> None:
    """Replay a recorded block trace, under several schedulers."""
    outputs = {"--requests": target(requests, force), "--plot": target(plot, force)}
    check_several(len(disk or [""]), output, outputs)
    check_force(force, to, requests, plot)
    results_to = target(to, force)
    read = [*trace_files(trace), *disk_files(disk), profile, *policy_files(policy)]
    check_outputs(results_to, outputs, read)
    if output is Output.fio_json:
        raise UsageError("--output fio-json: a trace has no jobs to report on; use json or csv")
    refuse_same("--disk", disk or [])
    traces = [Trace(one, format_, device, skip_bad) for one in trace]
    options = auto.Options(profile, goal, rule)
    with contextlib.ExitStack() as stack:
        works = []
        for where in disk or (None,):
            place = Place(where, array, owners, queue_depth)
            storage, depth = place.storage()
            setups = setups_of(storage.disk, policy, place.seen, depth, set_ or [], curve)
            work = trace_work(traces, storage, setups, mode is Mode.closed, wrap)
            works.append(stack.enter_context(work))
        say(dict.fromkeys(text for one in works for text in one.notes))
        if len(works) > 1:
            results = run_each(works, options, nr_jobs(parallel))
        else:
            results = [
                works[0].run(
                    options, nr_jobs(parallel), outputs["--requests"], drawn=plot is not None
                )
            ]
    _plot(results[0], outputs["--plot"])
    show(results, output, results_to)
