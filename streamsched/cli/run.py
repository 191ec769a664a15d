# SPDX-License-Identifier: GPL-2.0-only
"""The commands run and replay: work under several policies, on each of the hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamsched.api import (
    DEFAULT_POLICIES,
    Job,
    Place,
    Result,
    Storage,
    check_seed,
    files_of,
    job_of,
    job_work,
    nr_processes,
    origin_of,
    setups_of,
    specs_of,
    trace_work,
)
from streamsched.auto import setting as auto
from streamsched.auto.setting import Goal, Rule
from streamsched.base.errors import UsageError, given
from streamsched.base.files import Kind, check_output
from streamsched.base.plotfile import check_plot, save
from streamsched.base.progress import nr_jobs
from streamsched.cli import complete
from streamsched.cli.options import (
    ArrayOption,
    By,
    ByOption,
    Curve,
    CurveOption,
    DepthOption,
    DeviceOption,
    DiskOption,
    FormatOption,
    GoalOption,
    Host,
    JobsOption,
    Layers,
    Mode,
    ModeOption,
    Output,
    OutputOption,
    Owners,
    OwnersOption,
    PlotOption,
    PolicyOption,
    ProfileOption,
    RequestsOption,
    RuleOption,
    SeedOption,
    SetOption,
    SkipBadOption,
    ToOption,
    WeightOption,
    WrapOption,
    policy_files,
    refuse_python,
)
from streamsched.cli.output import show
from streamsched.cli.work import check_apart, note, say
from streamsched.sim.compare import Trace
from streamsched.sim.diskfile import Disk
from streamsched.sim.policies import AUTO
from streamsched.sim.requestlog import check_requests
from streamsched.sim.workloads import WORKLOADS
from streamsched.work.jobfile import JobFile


def run(
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB.fio",
            autocompletion=complete.jobs,
            help="A fio job file, or a name that `streamsched workloads` lists.",
        ),
    ],
    disk: DiskOption = None,
    array: ArrayOption = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            autocompletion=complete.policies,
            help="Policies, comma-separated; see `streamsched policies`. "
            "One in Python is FILE.py:CLASS. On the kernel: "
            "none, mq-deadline, kyber, bfq, stream, with settings as in bfq:low_latency=0; "
            "noop, linus, deadline-2.6, anticipatory, cfq, cooperative of old kernels.",
            show_default=DEFAULT_POLICIES,
        ),
    ] = None,
    owners: OwnersOption = None,
    queue_depth: DepthOption = None,
    set_: SetOption = None,
    weight: WeightOption = None,
    curve: CurveOption = Curve.measured,
    profile: ProfileOption = None,
    goal: GoalOption = Goal.throughput,
    rule: RuleOption = Rule.workload,
    output: OutputOption = Output.table,
    by: ByOption = By.policy,
    to: ToOption = None,
    requests: RequestsOption = None,
    plot: PlotOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = 0,
    on: Annotated[
        Host,
        typer.Option(
            "--on",
            help="sim: the simulator; kernel: a real kernel in virtual time, with fio; "
            "nbd: fio over NBD against the nbdkit plugin, in real time.",
        ),
    ] = Host.sim,
    path: Annotated[
        Layers,
        typer.Option(
            "--path", help="--on kernel: what is between fio and the disk with the scheduler."
        ),
    ] = Layers.direct,
    kernel: Annotated[
        str,
        typer.Option("--kernel", help="--on kernel: a variant that `streamsched rig build` makes."),
    ] = "base",
) -> None:
    """Run a fio job file's processes on a simulated disk, under each policy."""
    workload = WORKLOADS.get(job)
    if workload is None:
        job = job_of(job)
    read = [None if workload else job, *files_of(disk), profile, *policy_files(policy)]
    check_output(to, Kind.RESULTS, *read)
    check_requests(requests, *read)
    check_plot(plot, *read)
    check_apart({"--to": to, "--requests": requests, "--plot": plot})
    _check_by(by, output)
    if workload and on is not Host.sim:
        raise UsageError(f"{job}: only with --on sim; fio cannot do what this workload does")
    check_seed(seed)
    if array is not None and on is not Host.sim:
        raise UsageError(f"--array {array}: only with --on sim")
    place = Place(disk, array, owners, queue_depth).of(job)
    storage, depth = place.storage()
    _check_host_options(on, owners, curve, seed, path, kernel)
    if weight and on is not Host.sim:
        raise UsageError(f"--weight: not with --on {on.value}")
    options = auto.Options(profile, goal, rule)
    if on is not Host.sim:
        refuse_python(policy, f"--on {on.value}")
        options.refuse()
        for name, file in (("--requests", requests), ("--plot", plot)):
            if file is not None:
                raise UsageError(f"{name} {file}: not with --on {on.value}")
    if on is Host.kernel:
        result = _run_on_kernel(
            job, storage, policy, path.value, depth, set_ or [], kernel, output, jobs
        )
    elif on is Host.nbd:
        result = _run_on_nbd(job, storage, policy, depth, set_ or [], output)
    else:
        specs = DEFAULT_POLICIES if policy is None else policy
        setups = setups_of(storage.disk, specs, place.seen, depth, set_ or [], curve)
        work = job_work(Job(job), storage, setups, weight or [], seed)
        say(work.notes)
        result = work.run(options, nr_jobs(jobs), requests, drawn=plot is not None)
    _plot(result, plot)
    show(result, output, to, by is By.process)


def _plot(result: Result, path: Path | None) -> None:
    """Draw what was finished, if that was asked for."""
    if path and result.drawn:
        from streamsched.report.plot import picture

        save(picture(result.drawn), path)


def _check_by(by: By, output: Output) -> None:
    """Refuse what would not be heeded."""
    if by is By.process and output is not Output.table:
        raise UsageError(
            f"--by process: only with --output table; {output.value} "
            + ("has no processes" if output is Output.csv else "has the processes anyway")
        )


def _check_host_options(
    on: Host, owners: Owners | None, curve: Curve, seed: int, path: Layers, kernel: str
) -> None:
    """Refuse what the chosen host would not heed."""
    if on is not Host.kernel:
        if path is not Layers.direct:
            raise UsageError(
                f"--path {path.value}: only with --on kernel; there are no layers here"
            )
        if kernel != "base":
            raise UsageError(f"--kernel {kernel}: only with --on kernel; there is no kernel here")
    if on is Host.sim:
        return
    where = f"--on {on.value}"
    if owners not in (None, Owners.process):
        raise UsageError(f"--owners {owners.value}: not {where}, where senders are what they are")
    if curve is not Curve.measured:
        raise UsageError(f"--curve {curve.value}: not {where}, where the curve is always learned")
    if seed:
        raise UsageError(f"--seed {seed}: not {where}; write randseed= into the job file")


# How a job file names the disk with --on kernel; over NBD it has none.
DISK_UNDER_TEST = "${STREAMSCHED_DISK}"


def _load_for_fio(job: str, disk: Disk, on: str) -> JobFile:
    """A job file that a real fio will do."""
    notes: list[str] = []
    file = Job(job).load(disk.capacity_sectors * 512, 0, notes)
    say(notes)
    if file.ignored:
        note(f"{job}: fio is not given {', '.join(file.ignored)}")
    for process in file.processes:
        if process.weight is not None:
            raise UsageError(f"{job}: owner_weight of {process.name}: not with --on {on}")
        if process.nr_files > 1:
            raise UsageError(
                f"{job}: nrfiles of {process.name}: not with --on {on}, where fio would not have "
                "them on the disk; write filename= and offset="
            )
        if on == "kernel" and process.opens != DISK_UNDER_TEST:
            what = "has no filename, and fio would make a file in memory"
            if process.opens:
                what = f"opens {process.opens}, which is not the disk under test"
            raise UsageError(
                f"{job}: {process.name} {what} with --on {on}; write filename={DISK_UNDER_TEST}"
            )
    return file


def _run_on_kernel(
    job: str,
    storage: Storage,
    policy: str | None,
    path: str,
    depth: int,
    settings: list[str],
    variant: str,
    output: str,
    jobs: int,
) -> Result:
    from streamsched.hosts import kernelhost

    if output == Output.fio_json:
        raise UsageError("--output fio-json: not with --on kernel; use json or csv")
    policies = kernelhost.parse_policies(
        kernelhost.DEFAULT_POLICIES if policy is None else policy, settings
    )
    disk = storage.disk
    file = _load_for_fio(job, disk, "kernel")
    comparison = kernelhost.compare_on_kernel(
        file,
        disk,
        policies,
        path=path,
        queue_depth=depth,
        variant=variant,
        jobs=nr_jobs(jobs),
    )
    title = (
        f"{file.name}: {nr_processes(file.processes)} on {disk.name}, "
        f"the real kernel, path {path}, queue depth {depth}"
    )
    return Result(comparison, file.name, title, origin_of(storage, 0, file.sha256))


def _run_on_nbd(
    job: str, storage: Storage, policy: str | None, depth: int, settings: list[str], output: str
) -> Result:
    from streamsched.hosts import nbdhost

    if output == Output.fio_json:
        raise UsageError("--output fio-json: not with --on nbd; use json or csv")
    specs = nbdhost.DEFAULT_POLICIES if policy is None else policy
    if AUTO in specs_of(specs):
        raise UsageError("auto: not with --on nbd; the plugin keeps the policy it began with")
    disk = storage.disk
    setups = setups_of(disk, specs, "process", depth, settings, "learned")
    file = _load_for_fio(job, disk, "nbd")
    comparison = nbdhost.compare_on_nbd(file, setups)
    title = (
        f"{file.name}: {nr_processes(file.processes)} on {disk.name}, "
        f"over NBD in real time, queue depth {depth}"
    )
    return Result(comparison, file.name, title, origin_of(storage, 0, file.sha256))


def replay(
    trace: Annotated[
        str,
        typer.Argument(
            metavar="TRACE",
            parser=given("TRACE", "a block trace", str),
            help="A block trace; - reads stdin.",
        ),
    ],
    disk: DiskOption = None,
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
            "--output", metavar="<table|json|json+|csv>", help="How to print the results."
        ),
    ] = Output.table,
    to: ToOption = None,
    requests: RequestsOption = None,
    plot: PlotOption = None,
    jobs: JobsOption = 0,
) -> None:
    """Replay a recorded block trace on a simulated disk, under each policy."""
    read = [trace, *files_of(disk), profile, *policy_files(policy)]
    check_output(to, Kind.RESULTS, *read)
    check_requests(requests, *read)
    check_plot(plot, *read)
    check_apart({"--to": to, "--requests": requests, "--plot": plot})
    if output is Output.fio_json:
        raise UsageError("--output fio-json: a trace has no jobs to report on; use json or csv")
    place = Place(disk, array, owners, queue_depth)
    storage, depth = place.storage()
    setups = setups_of(storage.disk, policy, place.seen, depth, set_ or [], curve)
    options = auto.Options(profile, goal, rule)
    the_trace = Trace(trace, format_, device, skip_bad)
    with trace_work(the_trace, storage, setups, mode is Mode.closed, wrap) as work:
        result = work.run(options, nr_jobs(jobs), requests, drawn=plot is not None)
    _plot(result, plot)
    show(result, output, to)
