# SPDX-License-Identifier: GPL-2.0-only
"""The command line. Each command checks all it was given before it begins."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import io
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamsched import __version__, auto, kernelarray, results, rig
from streamsched.array import Array, parse_array
from streamsched.auto import Goal, Rule
from streamsched.compare import Comparison, Trace, compare
from streamsched.diskfile import Disk, list_disks, load_disk
from streamsched.errors import StreamschedError, UsageError, unknown
from streamsched.files import is_no_file, write_whole
from streamsched.jobfile import Process, load_jobs
from streamsched.policies import (
    AUTO,
    AUTO_HELP,
    USES_OWNER,
    WORK_CONSERVING,
    WRAPPER,
    all_policies,
    check_spec,
    parse_settings,
    parse_weights,
    refuse_twice,
)
from streamsched.profile import POLICIES as PROFILE_POLICIES
from streamsched.simulate import Setup
from streamsched.workloads import WORKLOADS, shipped_jobs

DEFAULT_DISK = "wd5000aaks"
DEFAULT_POLICIES = "noop,deadline,anticipatory,cfq,stream:deadline"
WIDTH = 120
FLAG = ""  # what follows an option that takes no value; typer would say <bool>

app = typer.Typer(
    name="streamsched",
    help="Compare disk schedulers, stream scheduling among them, in virtual time.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Owners(enum.StrEnum):
    process = "process"
    group = "group"
    none = "none"


class Output(enum.StrEnum):
    table = "table"
    json = "json"
    csv = "csv"
    fio_json = "fio-json"


class Host(enum.StrEnum):
    sim = "sim"
    kernel = "kernel"
    nbd = "nbd"


class Layers(enum.StrEnum):
    direct = "direct"
    loop = "loop"
    crypt = "crypt"
    md0 = "md0"
    nbd = "nbd"


class Mode(enum.StrEnum):
    open = "open"
    closed = "closed"


class Curve(enum.StrEnum):
    measured = "measured"
    learned = "learned"


DiskOption = Annotated[
    str,
    typer.Option(
        "--disk",
        help="A name that `streamsched disks` lists, or a .toml file; "
        "for an array also one for each member, comma-separated.",
    ),
]
ArrayOption = Annotated[
    str | None,
    typer.Option(
        "--array",
        metavar="LEVEL:DISKS[:CHUNK]",
        help="Put disks together: linear, raid0, raid5 or raid10, of 2 to 32 disks, in chunks of "
        "4k to 1m, as in raid0:5:64k; with :uncoordinated each member schedules for itself.",
    ),
]
PolicyOption = Annotated[
    str, typer.Option("--policy", help="Policies, comma-separated; see `streamsched policies`.")
]
OwnersOption = Annotated[
    Owners,
    typer.Option(
        "--owners",
        help="What schedulers see of who sent a request: its process, its group (a VM), nothing.",
    ),
]
DepthOption = Annotated[
    int,
    typer.Option(
        "--queue-depth",
        help="Commands in the disk at once, 1 to 32; with 1 the scheduler alone decides the order.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="TUNABLE=VALUE", help="Set a tunable, as in stream_time_slice=200ms."
    ),
]
WeightOption = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="OWNER=N",
        help="Give a job's processes (or its group) the share of N others, under stride and wfq.",
    ),
]
CurveOption = Annotated[
    Curve,
    typer.Option(
        "--curve",
        help="Where the service-time curve comes from: measured on the disk before, "
        "or learned from completions while running.",
    ),
]
ProfileOption = Annotated[
    Path | None,
    typer.Option(
        "--profile",
        help="For auto: what `streamsched profile` has written for this disk; "
        "without it one is measured once and kept.",
    ),
]
GoalOption = Annotated[
    Goal,
    typer.Option("--goal", help="For auto: what to choose for; p99 of response times."),
]
RuleOption = Annotated[
    Rule,
    typer.Option(
        "--rule",
        help="For auto: what to choose by; size: requests' average size alone.",
    ),
]
OutputOption = Annotated[Output, typer.Option("--output", help="How to print the results.")]
ToOption = Annotated[
    Path | None, typer.Option("--to", help="Write the results to this file, whole or not at all.")
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="What all randomness is made from (0 to 2^64-1).")
]
JobsOption = Annotated[
    int, typer.Option("--jobs", min=0, help="Simulations at once; 0: one per processor.")
]


def _specs(policy: str) -> list[str]:
    specs = [spec.strip() for spec in policy.split(",") if spec.strip()]
    if not specs:
        raise UsageError("--policy is empty; name at least one, as in noop,stream:deadline")
    for spec in specs:
        check_spec(spec)
    refuse_twice(policy, specs)
    return specs


@dataclasses.dataclass(frozen=True)
class Storage:
    """What the work runs on: a disk, or disks put together."""

    disk: Disk
    array: Array | None = None
    disks: tuple[Disk, ...] = ()

    def __str__(self) -> str:
        if self.array is None:
            return self.disk.name
        names = dict.fromkeys(one.name for one in self.disks or (self.disk,))
        return f"{self.array} of {', '.join(names)}"

    def apply(self, setup: Setup) -> Setup:
        """@setup on this."""
        return dataclasses.replace(setup, disk=self.disk, array=self.array, disks=self.disks)

    @property
    def capacity_bytes(self) -> int:
        return self.apply(Setup(self.disk, "noop")).capacity_bytes


def _storage(disk: str, array: str | None) -> Storage:
    """What --disk and --array say, checked."""
    names = [name.strip() for name in disk.split(",")]
    if array is None:
        if len(names) > 1:
            raise UsageError(f"--disk {disk}: several disks need --array, as in raid0:5:64k")
        return Storage(load_disk(disk))
    described = parse_array(array)
    if len(names) not in (1, described.members):
        raise UsageError(
            f"--disk {disk}: name one disk, or each of the {described.members} of --array {array}; "
            f"these are {len(names)}"
        )
    disks = tuple(load_disk(name) for name in names)
    storage = Storage(disks[0], described, disks if len(disks) > 1 else ())
    if not storage.capacity_bytes:  # also refuses what cannot be put together
        raise UsageError(f"--array {array}: has no room")
    return storage


def _setups(
    disk: Disk,
    policy: str,
    owners: str,
    depth: int,
    settings: Sequence[str],
    curve: str,
    *,
    slice_is_fixed: bool = True,
) -> list[Setup]:
    if not 1 <= depth <= 32:
        raise UsageError(f"--queue-depth {depth}: a disk takes 1 to 32 commands at once")
    specs = _specs(policy)
    values = parse_settings(list(settings), specs, slice_is_fixed=slice_is_fixed)
    tunables = tuple(sorted(values.items()))
    return [
        Setup(disk, spec, owners=owners, queue_depth=depth, tunables=tunables, curve=curve)
        for spec in specs
    ]


def _nr_processes(processes: Sequence[object]) -> str:
    return f"{len(processes)} process{'' if len(processes) == 1 else 'es'}"


def _check_to(path: Path | None) -> None:
    """Refuse a file that could not be written in the end, before the work begins."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"--to {path}: cannot write it: Is a directory")
    if path.is_block_device():
        raise UsageError(f"--to {path}: is a disk, which would be overwritten; name a file")
    if is_no_file(path):
        if not os.access(path, os.W_OK):
            raise UsageError(f"--to {path}: cannot write it: Permission denied")
        return
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise UsageError(f"--to {path}: cannot write it: there is no directory {path.parent}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--to {path}: cannot write it: {path.parent} is not writable")


def _console(file: object = None) -> Console:
    """Wide enough for the tables, whatever the terminal says of itself."""
    console = Console(file=file, highlight=False)  # type: ignore[arg-type]
    if not console.is_terminal or console.width < WIDTH:
        console.width = WIDTH
    return console


def _show(comparison: Comparison, output: str, to: Path | None, work: str, title: str) -> None:
    if not comparison.runs:
        print("streamsched: interrupted before any run was finished", file=sys.stderr)
        raise typer.Exit(130)
    if output == "table" and to is None:
        results.print_tables(comparison, title, _console())
    else:
        if output == "table":
            console = _console()
            with console.capture() as captured:
                results.print_tables(comparison, title, console)
            text = captured.get()
        else:
            text = results.render(comparison, output, work)
        if to is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            write_whole(to, text)
    if comparison.interrupted:
        print("streamsched: interrupted; what was finished is all there is", file=sys.stderr)
        raise typer.Exit(130)


def _jobs(jobs: int) -> int:
    return jobs or os.cpu_count() or 1


@app.command()
def run(
    context: typer.Context,
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB.fio",
            help="A fio job file, or a name that `streamsched workloads` lists.",
        ),
    ],
    disk: DiskOption = DEFAULT_DISK,
    array: ArrayOption = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            help="Policies, comma-separated; see `streamsched policies`. On the kernel: "
            "none, mq-deadline, kyber, bfq, stream, with settings as in bfq:low_latency=0; "
            "noop, linus, deadline-2.6, anticipatory, cfq, cooperative of old kernels.",
            show_default=DEFAULT_POLICIES,
        ),
    ] = None,
    owners: OwnersOption = Owners.process,
    queue_depth: DepthOption = 1,
    set_: SetOption = None,
    weight: WeightOption = None,
    curve: CurveOption = Curve.measured,
    profile: ProfileOption = None,
    goal: GoalOption = Goal.throughput,
    rule: RuleOption = Rule.workload,
    output: OutputOption = Output.table,
    to: ToOption = None,
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
    _check_to(to)
    workload = WORKLOADS.get(job)
    if not workload and not Path(job).suffix and Path(job).name == job and not Path(job).exists():
        if job in shipped_jobs():
            raise UsageError(f"{job} is a job file: name it by its path, as in jobs/{job}.fio")
        raise unknown("workload or job file", job, [*WORKLOADS, *shipped_jobs()])
    if workload:
        if on is not Host.sim:
            raise UsageError(f"{job}: only with --on sim; fio cannot do what this workload does")
        given = {
            name
            for name in ("disk", "array", "owners")
            if getattr(context.get_parameter_source(name), "name", "") != "DEFAULT"
        }
        disk = disk if "disk" in given else workload.disk
        array = array if "array" in given else workload.array
        owners = owners if "owners" in given else Owners(workload.owners)
    if seed >= 2**64:
        raise UsageError(f"--seed {seed}: must be within 0 to 2^64-1")
    if array is not None and on is not Host.sim:
        raise UsageError(f"--array {array}: only with --on sim")
    storage = _storage(disk, array)
    the_disk = storage.disk
    _check_host_options(on, owners, curve, seed, path, kernel)
    if weight and on is not Host.sim:
        raise UsageError(f"--weight: not with --on {on.value}")
    options = auto.Options(profile, goal, rule)
    if on is not Host.sim:
        options.refuse()
    if on is Host.kernel:
        _run_on_kernel(
            job, the_disk, policy, path.value, queue_depth, set_ or [], kernel, output, to, jobs
        )
        return
    if on is Host.nbd:
        _run_on_nbd(job, the_disk, policy, queue_depth, set_ or [], output, to)
        return
    specs = DEFAULT_POLICIES if policy is None else policy
    setups = [
        storage.apply(setup)
        for setup in _setups(the_disk, specs, owners, queue_depth, set_ or [], curve)
    ]
    if workload:
        setups = [workload.fit(setup) for setup in setups]
        processes = workload.processes(storage.capacity_bytes, seed)
    else:
        processes = _load(job, storage.capacity_bytes, seed)
    weights = parse_weights(weight or [], [s.policy for s in setups], processes, owners)
    setups = [dataclasses.replace(setup, weights=weights) for setup in setups]
    setups = auto.prepare(setups, options, _jobs(jobs), Console(stderr=True))
    comparison = compare(setups, processes, jobs=_jobs(jobs))
    name = Path(job).name
    title = (
        f"{name}: {_nr_processes(processes)} on {storage}, "
        f"owners {owners.value}, queue depth {queue_depth}"
    )
    _show(comparison, output, to, name, title)


def _check_host_options(
    on: Host, owners: Owners, curve: Curve, seed: int, path: Layers, kernel: str
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
    if owners is not Owners.process:
        raise UsageError(f"--owners {owners.value}: not {where}, where senders are what they are")
    if curve is not Curve.measured:
        raise UsageError(f"--curve {curve.value}: not {where}, where the curve is always learned")
    if seed:
        raise UsageError(f"--seed {seed}: not {where}; write randseed= into the job file")


def _load(job: str, capacity_bytes: int, seed: int) -> list[Process]:
    """The processes of a job file; what may surprise is said."""
    notes: list[str] = []
    processes = load_jobs(job, capacity_bytes=capacity_bytes, seed=seed, notes=notes)
    for note in notes:
        print(f"streamsched: note: {note}", file=sys.stderr)
    return processes


def _load_for_fio(job: str, disk: Disk, on: str) -> list[Process]:
    """The processes of a job file that a real fio will read."""
    processes = _load(job, disk.capacity_sectors * 512, 0)
    for process in processes:
        if process.weight is not None:
            raise UsageError(f"{job}: owner_weight of {process.name}: not with --on {on}")
        if process.nr_files > 1:
            raise UsageError(
                f"{job}: nrfiles of {process.name}: not with --on {on}, where fio would not have "
                "them on the disk; write filename= and offset="
            )
    return processes


def _run_on_kernel(
    job: str,
    disk: Disk,
    policy: str | None,
    path: str,
    depth: int,
    settings: list[str],
    variant: str,
    output: str,
    to: Path | None,
    jobs: int,
) -> None:
    from streamsched import kernelhost

    if output == Output.fio_json:
        raise UsageError("--output fio-json: not with --on kernel; use json or csv")
    if not 1 <= depth <= 32:
        raise UsageError(f"--queue-depth {depth}: a disk takes 1 to 32 commands at once")
    policies = kernelhost.parse_policies(
        kernelhost.DEFAULT_POLICIES if policy is None else policy, settings
    )
    processes = _load_for_fio(job, disk, "kernel")
    comparison = kernelhost.compare_on_kernel(
        Path(job),
        disk,
        processes,
        policies,
        path=path,
        queue_depth=depth,
        variant=variant,
        jobs=_jobs(jobs),
    )
    name = Path(job).name
    title = (
        f"{name}: {_nr_processes(processes)} on {disk.name}, "
        f"the real kernel, path {path}, queue depth {depth}"
    )
    _show(comparison, output, to, name, title)


def _run_on_nbd(
    job: str,
    disk: Disk,
    policy: str | None,
    depth: int,
    settings: list[str],
    output: str,
    to: Path | None,
) -> None:
    from streamsched import nbdhost

    if output == Output.fio_json:
        raise UsageError("--output fio-json: not with --on nbd; use json or csv")
    specs = nbdhost.DEFAULT_POLICIES if policy is None else policy
    if AUTO in _specs(specs):
        raise UsageError("auto: not with --on nbd; the plugin keeps the policy it began with")
    setups = _setups(disk, specs, "process", depth, settings, "learned", slice_is_fixed=False)
    processes = _load_for_fio(job, disk, "nbd")
    comparison = nbdhost.compare_on_nbd(Path(job), processes, setups)
    name = Path(job).name
    title = (
        f"{name}: {_nr_processes(processes)} on {disk.name}, "
        f"over NBD in real time, queue depth {depth}"
    )
    _show(comparison, output, to, name, title)


@app.command()
def replay(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="A block trace; - reads stdin.")],
    disk: DiskOption = DEFAULT_DISK,
    array: ArrayOption = None,
    policy: PolicyOption = DEFAULT_POLICIES,
    owners: OwnersOption = Owners.process,
    queue_depth: DepthOption = 1,
    set_: SetOption = None,
    curve: CurveOption = Curve.measured,
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            help="open: by time stamp; closed: each request as long after what it waited for.",
        ),
    ] = Mode.closed,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="The format, if it is not to be found out by content."),
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="Only this device's requests, as the trace says.")
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option(
            "--skip-bad", metavar=FLAG, help="Skip and count records that cannot be read."
        ),
    ] = False,
    wrap: Annotated[
        bool,
        typer.Option(
            "--wrap", metavar=FLAG, help="Fold positions beyond the disk's end back onto it."
        ),
    ] = False,
    profile: ProfileOption = None,
    goal: GoalOption = Goal.throughput,
    rule: RuleOption = Rule.workload,
    output: Annotated[
        Output,
        typer.Option("--output", metavar="<table|json|csv>", help="How to print the results."),
    ] = Output.table,
    to: ToOption = None,
    jobs: JobsOption = 0,
) -> None:
    """Replay a recorded block trace on a simulated disk, under each policy."""
    from streamsched import tracefile

    _check_to(to)
    if output is Output.fio_json:
        raise UsageError("--output fio-json: a trace has no jobs to report on; use json or csv")
    storage = _storage(disk, array)
    setups = [
        dataclasses.replace(storage.apply(setup), wrap=wrap, closed=mode is Mode.closed)
        for setup in _setups(storage.disk, policy, owners, queue_depth, set_ or [], curve)
    ]
    options = auto.Options(profile, goal, rule)
    setups = auto.prepare(setups, options, _jobs(jobs), Console(stderr=True))
    with tracefile.kept(trace) as path:
        opened = tracefile.open_trace(path, format_)
        comparison = compare(
            setups, trace=Trace(path, opened.format, device, skip_bad), jobs=_jobs(jobs)
        )
    name = Path(trace).name
    title = (
        f"{name} ({opened.format}), {mode.value}: on {storage}, "
        f"owners {owners.value}, queue depth {queue_depth}"
    )
    _show(comparison, output, to, name, title)


@app.command()
def policies() -> None:
    """List the policies, and what each does."""
    table = results.plain_table()
    for column in ("policy", "kind", "what it does"):
        table.add_column(column, no_wrap=column != "what it does")
    for one in all_policies().values():
        kind = [
            word
            for flag, word in (
                (WORK_CONSERVING, "work-conserving"),
                (USES_OWNER, "uses the owner"),
                (WRAPPER, "wraps another"),
            )
            if one.flags & flag
        ]
        name = f"{one.name}:POLICY" if one.flags & WRAPPER else one.name
        table.add_row(name, ", ".join(kind), one.help)
    table.add_row(AUTO, "chooses", AUTO_HELP)
    _console().print(table)


@app.command()
def disks() -> None:
    """List the disks that are described."""
    table = results.plain_table()
    table.add_column("disk", no_wrap=True)
    table.add_column("capacity\nGB", justify="right")
    table.add_column("rotation\nrpm", justify="right")
    table.add_column("model and description")
    for name in list_disks():
        one = load_disk(name)
        rpm = f"{round(60e9 / one.rotation_ns)}" if one.rotation_ns else "-"
        table.add_row(
            name,
            f"{one.capacity_sectors * 512 / 1e9:,.0f}",
            rpm,
            f"{one.model}: {one.description}",
        )
    _console().print(table)


@app.command()
def formats() -> None:
    """List the trace formats that can be read."""
    from streamsched import tracefile

    table = results.plain_table()
    table.add_column("format", no_wrap=True)
    table.add_column("what it is")
    for name, help_ in tracefile.formats():
        table.add_row(name, help_)
    _console().print(table)
    _console().print("\nplain, gzip or zstd; found out by content")


@app.command()
def workloads() -> None:
    """List the workloads that a job file cannot say."""
    table = results.plain_table()
    for column in ("workload", "from", "disk", "owners"):
        table.add_column(column, no_wrap=True)
    table.add_column("what it is")
    for one in WORKLOADS.values():
        storage = f"{one.array} of {one.disk}" if one.array else one.disk
        table.add_row(one.name, one.source, storage, one.owners, one.help)
    _console().print(table)


@app.command()
def tunables() -> None:
    """List each policy's tunables with default and range."""
    table = results.plain_table()
    for column in ("policy", "tunable", "default", "least", "most"):
        table.add_column(column, no_wrap=True)
    table.add_column("what it is")
    for one in all_policies().values():
        for row in one.tunables:
            most = row.show(row.maximum) + (f" or {row.word}" if row.word else "")
            table.add_row(
                one.name, row.name, row.show(row.initial), row.show(row.minimum), most, row.help
            )
    _console().print(table)


@app.command()
def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE]...",
            help="fig3, fig4, fig5, fig6, fig7, love, seelam, profiles, share, micro, sense, all, "
            "or auto.",
        ),
    ] = None,
    jobs: JobsOption = 0,
) -> None:
    """Repeat the papers' experiments: the paper's number, ours, and whether they agree."""
    from streamsched.reproduce import reproduce as repeat

    if figures == [AUTO]:
        from streamsched.autocheck import reproduce_auto

        if not reproduce_auto(_jobs(jobs), _console()):
            raise typer.Exit(1)
    elif not repeat(figures or ["all"], _jobs(jobs), _console()):
        raise typer.Exit(1)


@app.command("compare")
def compare_all(
    works: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORKLOAD]...",
            help="Job files without .fio, or what `streamsched workloads` lists; unset: all.",
        ),
    ] = None,
    to: ToOption = None,
    jobs: JobsOption = 0,
) -> None:
    """Run every policy on every workload; print efficiency and longest wait as Markdown."""
    from streamsched import comparison

    _check_to(to)
    chosen = list(dict.fromkeys(works or comparison.workloads()))
    table = comparison.measure(chosen, _jobs(jobs), Console(stderr=True))
    if to is None:
        sys.stdout.write(comparison.printed(table))
    else:
        write_whole(to, comparison.document(table))


@app.command()
def frontier(
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the picture too, as .svg, .png or .pdf.")
    ] = None,
    jobs: JobsOption = 0,
) -> None:
    """Show how near sequential readers come to the physical limit, for a wait target."""
    from streamsched import frontier as limits

    if plot and plot.suffix not in (".svg", ".png", ".pdf"):
        raise UsageError(f"--plot {plot}: name a .svg, .png or .pdf file")
    if plot:
        limits.check_plot(plot)
    cases = limits.auto_cases()
    if plot:
        cases += limits.fixed_cases()
    points = limits.measure(cases, _jobs(jobs), Console(stderr=True))
    auto = [point for point in points if point.case.target_ms]
    console = _console()
    console.print(limits.table(auto))
    good = sum(point.reaches and point.in_time for point in auto)
    console.print(
        f"{good} of {len(auto)} are within 5 % of the frontier, "
        "with the longest wait within the target and one service time"
    )
    if plot:
        limits.plot(points, plot)
    if good < len(auto):
        raise typer.Exit(1)


rig_app = typer.Typer(
    help="A real Linux kernel in virtual time, on this machine's own files (docs/RIG.md).",
    no_args_is_help=True,
)
app.add_typer(rig_app, name="rig")
app.add_typer(kernelarray.app, name="array")

VariantOption = Annotated[
    str,
    typer.Option(
        "--variant",
        help="base: Linux 6.12; kasan: with the kernel's own checks; newest: Debian sid's newest.",
    ),
]
NoModulesOption = Annotated[
    bool,
    typer.Option(
        "--no-modules", metavar=FLAG, help="Do not compile and load stream-iosched and hdd-emu."
    ),
]
MemoryOption = Annotated[
    int, typer.Option("--memory", min=64, max=1 << 20, help="The kernel's memory, in MB.")
]


@rig_app.command("build")
def rig_build(
    variant: VariantOption = "base",
    update: Annotated[
        bool,
        typer.Option(
            "--update", metavar=FLAG, help="Look for a newer version of the kernel's source."
        ),
    ] = False,
) -> None:
    """Build the kernel, once for each version and configuration; print its folder."""
    print(rig.build(variant, update=update))


@rig_app.command("exec", context_settings={"allow_interspersed_args": False})
def rig_exec(
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help="A command and its arguments."),
    ],
    variant: VariantOption = "base",
    no_modules: NoModulesOption = False,
    memory: MemoryOption = 1024,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds of this machine's time.")
    ] = 600,
    clock: Annotated[
        rig.Clock,
        typer.Option(
            "--clock",
            help="virtual: computing takes no time; computing: it does, idling is skipped; real.",
        ),
    ] = rig.Clock.virtual,
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder for what is left in $OUT.")
    ] = None,
) -> None:
    """Run a command inside, in this folder; exit with its status, or 125 if the rig failed."""
    raise typer.Exit(
        rig.run_command(
            command,
            variant=variant,
            timeout_s=timeout,
            modules=not no_modules,
            memory_mb=memory,
            clock=clock,
            out=out,
        )
    )


@rig_app.command("shell")
def rig_shell(
    variant: VariantOption = "base",
    no_modules: NoModulesOption = False,
    memory: MemoryOption = 1024,
) -> None:
    """Open a shell inside, on this terminal. Time is real there."""
    raise typer.Exit(rig.shell(variant, modules=not no_modules, memory_mb=memory))


@app.command()
def calibrate(
    device: Annotated[
        str, typer.Argument(metavar="DEVICE", help="A whole disk that is not in use, as /dev/sda.")
    ],
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Write the description to this .toml file, whole or not at all."),
    ] = None,
    fast: Annotated[
        bool,
        typer.Option("--fast", metavar=FLAG, help="In less than a minute, and only roughly."),
    ] = False,
) -> None:
    """Measure a disk by reading it: its description, and the curve for the scheduler."""
    from streamsched import calibrate as calibration
    from streamsched.calibrate_device import examine

    info = examine(device)
    path = calibration.target(info, to)
    _check_to(path)
    found = calibration.calibrate(info, path.stem, fast=fast, console=Console(stderr=True))
    write_whole(path, found.text)
    print(calibration.summary(found, path), end="")


@app.command("auto")
def auto_(
    device: Annotated[
        str, typer.Argument(metavar="DEVICE", help="A whole disk of this machine, as sda.")
    ],
    disk: Annotated[
        str,
        typer.Option(
            "--disk", help="What describes it: a name, or the .toml that `calibrate` has written."
        ),
    ],
    profile: ProfileOption = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            help="Only these, as the profile has them: noop is none, deadline mq-deadline; "
            "without it all that are loaded.",
        ),
    ] = None,
    goal: GoalOption = Goal.throughput,
    rule: RuleOption = Rule.workload,
    queue_depth: DepthOption = 32,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", metavar=FLAG, help="Say what would be changed, and change nothing."
        ),
    ] = False,
    jobs: JobsOption = 0,
) -> None:
    """Choose a real disk's scheduler as its work changes, until it is stopped."""
    from streamsched import autoservice
    from streamsched.choose import Selection

    if not 1 <= queue_depth <= 32:
        raise UsageError(f"--queue-depth {queue_depth}: a disk takes 1 to 32 commands at once")
    wanted = tuple(_specs(policy)) if policy is not None else ()
    found = autoservice.device_of(device)
    described = load_disk(disk)
    autoservice.check_size(found, described)
    known = auto.obtain(described, queue_depth, profile, _jobs(jobs), Console(stderr=True))
    selection = Selection(
        known,
        # Who sent a request matters to none of the kernel's schedulers that can be chosen.
        sorted(known.owners())[0],
        goal.value,
        rule.value,
        policies=autoservice.candidates(found, known, wanted),
    )
    autoservice.serve(found, described, selection, dry_run=dry_run)


@app.command("profile")
def profile_(
    disk: Annotated[
        str, typer.Argument(metavar="DISK", help="A name that `streamsched disks` lists, or .toml.")
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            help="Policies, comma-separated; with --to only.",
            show_default="all that run can choose among",
        ),
    ] = None,
    queue_depth: DepthOption = 1,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help="Write the profile to this file; without it to where run and replay look for it.",
        ),
    ] = None,
    jobs: JobsOption = 0,
) -> None:
    """Measure what each policy makes of a disk, for the policy auto to choose by."""
    from streamsched import profile_measure

    if not 1 <= queue_depth <= 32:
        raise UsageError(f"--queue-depth {queue_depth}: a disk takes 1 to 32 commands at once")
    specs = list(PROFILE_POLICIES) if policy is None else _specs(policy)
    if AUTO in specs:
        raise UsageError("--policy auto: it chooses by a profile and cannot be in one")
    if len(specs) < 2:
        raise UsageError("--policy: name at least two; of one there is nothing to choose")
    if to is None and policy is not None:
        raise UsageError("--policy: name a file with --to; what is kept has every policy")
    _check_to(to)
    described = load_disk(disk)
    found = profile_measure.measure(
        described,
        specs,
        queue_depth=queue_depth,
        jobs=_jobs(jobs),
        console=Console(stderr=True),
    )
    path = to or auto.default_path(described, queue_depth)
    if to is None:
        path.parent.mkdir(parents=True, exist_ok=True)
    auto.keep(found, path)
    console = _console()
    console.print(profile_measure.table(found))
    console.print(f"{len(found.cells)} more workloads; all in {path}")


def _version(value: bool) -> None:
    if value:
        print(f"streamsched {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar=FLAG, callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Compare disk schedulers, stream scheduling among them, in virtual time."""


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _usage_sentence(error: Exception) -> str:
    """What typer's parser refuses, as one sentence that ends with where to look.

    typer carries its own copy of click, whose exceptions have no public names; what they share is
    format_message() and the context in which they were raised.
    """
    message: str = error.format_message()  # type: ignore[attr-defined]
    message = " ".join(message.replace("Value error, ", "").split()).rstrip(".")
    message = re.sub(r"\. (Did you mean .*\?)$", lambda hint: f" ({_lower(hint[1])})", message)
    message = message.replace(": Input should be ", ": it must be ")
    message = message.partition(", unable to parse ")[0]
    # A command of commands, alone: its help has been printed, and that is all its exception says.
    message = _lower(message) or "name a command"
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "streamsched"
    return f"{message}; `{command} --help` lists what there is"


class _Stdout(io.TextIOWrapper):
    """Standard output, whose errors are told from those of other files."""

    def write(self, text: str) -> int:
        with _printing():
            return super().write(text)

    def flush(self) -> None:
        with _printing():
            super().flush()


@contextlib.contextmanager
def _printing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # who reads has had enough
        raise
    except OSError as error:
        # What is still held would be tried again at the end, with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise StreamschedError(f"standard output: {error.strerror}") from None


def _watch_stdout() -> None:
    out = sys.stdout
    if type(out) is io.TextIOWrapper:  # none if it is closed, another where it is captured
        sys.stdout = _Stdout(
            out.detach(),
            out.encoding,
            out.errors,
            line_buffering=out.line_buffering,
            write_through=out.write_through,
        )


def main() -> None:
    """Entry point: errors are one sentence and an exit code, never a traceback."""

    def stopped(number: int, _frame: object) -> None:
        # As for Ctrl-C: rigs, servers and workers that were started are stopped, files are whole.
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, stopped)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        signal.signal(signal.SIGHUP, stopped)
    _watch_stdout()
    try:
        if len(sys.argv) == 1:
            sys.argv.append("--help")
        code = app(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        sys.exit(code)
    except StreamschedError as error:
        print(f"streamsched: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        print(f"streamsched: {_usage_sentence(error)}", file=sys.stderr)
        sys.exit(2)
