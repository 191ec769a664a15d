# SPDX-License-Identifier: GPL-2.0-only
"""Options that several commands have, and what they say, checked before anything begins."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any

import typer

from streamsched.api.place import DEFAULT_DISK, DEFAULT_OWNERS, DEPTH
from streamsched.base.errors import UsageError, given
from streamsched.base.units import fio_time_ns
from streamsched.cli import complete
from streamsched.sim.auto import Goal, Rule
from streamsched.sim.policies import AUTO

FOLDER = "a folder"


# Panels of --help.
RESULTS = "Results"
WITH_AUTO = "With the policy auto"
ON_KERNEL = "With --on kernel"


def path_option(name: str, what: str, tells: str, **more: Any) -> Any:
    """The option @name of typer, the path of @what, which must not be empty; @tells is its help."""

    def path(text: str) -> Path:
        # Path() would take it for the file of that name.
        if what != FOLDER and text.endswith(("/", "/.")):
            raise UsageError(f"{name} {text}: is the name of a folder; name {what}")
        return Path(text)

    metavar = "FOLDER" if what == FOLDER else "FILE"
    return typer.Option(name, metavar=metavar, parser=given(name, what, path), help=tells, **more)


def argument(name: str, what: str, tells: str, make: Any = str, **more: Any) -> Any:
    """The argument @name of typer, which names @what and must not be empty."""
    return typer.Argument(metavar=name, parser=given(name, what, make), help=tells, **more)


def text_option(name: str, metavar: str, what: str, tells: str, **more: Any) -> Any:
    """The option @name of typer, which names @what and must not be empty."""
    return typer.Option(name, metavar=metavar, parser=given(name, what, str), help=tells, **more)


def depth_option(tells: str, shown: str = "the disk's, up to 32") -> Any:
    """--queue-depth, of a command that shows @shown as its default."""
    return typer.Option(DEPTH, metavar="N", help=tells, show_default=shown)


def flag(name: str, tells: str, **more: Any) -> Any:
    """The option @name of typer, which takes no value; of itself typer would say <bool>."""
    return typer.Option(name, metavar="", help=tells, **more)


def reveal(context: typer.Context, panel: str) -> None:
    """Let --help, and completion, have the options of @panel, which one mode alone needs."""
    for param in context.command.params:
        if getattr(param, "rich_help_panel", None) == panel:
            param.hidden = False  # type: ignore[attr-defined]


def _policies(context: typer.Context, policy: str | None) -> str | None:
    if policy and AUTO in policy.split(","):
        reveal(context, WITH_AUTO)
    return policy


def policy_option(tells: str, **more: Any) -> Any:
    """--policy of a command that may choose by auto."""
    return typer.Option(
        "--policy",
        metavar="LIST",
        autocompletion=complete.policies,
        is_eager=True,
        callback=_policies,
        help=tells,
        **more,
    )


def time_ns(option: str, text: str, unit: str, no_time: str) -> int:
    """What @option says, a time of fio's, without a unit in @unit; @no_time: why it cannot be 0."""
    try:
        found = 0 if text.startswith("-") else fio_time_ns(text, unit)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None
    if not found:
        raise UsageError(f"{option} {text}: {no_time}")
    return found


def runtime_ns(text: str | None) -> int:
    """What --runtime says; 0 if it is not given."""
    if text is None:
        return 0
    return time_ns("--runtime", text, "s", "nothing is done in no time; write one such as 30s")


class Owners(enum.StrEnum):
    process = "process"
    group = "group"
    none = "none"


class Output(enum.StrEnum):
    table = "table"
    json = "json"
    json_plus = "json+"  # the same
    csv = "csv"
    fio_json = "fio-json"


class Form(enum.StrEnum):
    """Of what is no result."""

    table = "table"
    json = "json"


class By(enum.StrEnum):
    policy = "policy"
    process = "process"


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


POLICIES_HELP = (
    "The schedulers, comma-separated (`streamsched list policies`; FILE.py:CLASS is one in "
    "Python), each with settings in brackets, as in stream:deadline\\[wait_target=1s]."
)
DiskOption = Annotated[
    str | None,
    text_option(
        "--disk",
        "DISK",
        "a disk",
        "A name (`streamsched list disks`) or a .toml file; "
        "of an array also a list, one for each member.",
        autocompletion=complete.disks,
        show_default=f"{DEFAULT_DISK}; a workload's own",
    ),
]
DisksOption = Annotated[
    list[str] | None,
    text_option(
        "--disk",
        "DISK",
        "a disk",
        "A name (`streamsched list disks`) or a .toml file; "
        "of an array also a list, one for each member. Several times: a result of each.",
        autocompletion=complete.disks,
        show_default=f"{DEFAULT_DISK}; a workload's own",
    ),
]
ArrayOption = Annotated[
    str | None,
    typer.Option(
        "--array",
        metavar="ARRAY",
        help="LEVEL:DISKS:CHUNK, as in raid0:5:64k: linear, raid0, raid1, raid5, raid6 or raid10, "
        "of 2 to 32 disks, in chunks of 4k to 1m. With :uncoordinated each member schedules "
        "for itself.",
    ),
]
BoundOption = Annotated[
    bool,
    flag(
        "--bound",
        "Also how far each policy is from what no scheduler can beat "
        "(docs/research/BOUNDS.md); takes about twice as long.",
        rich_help_panel=RESULTS,
    ),
]
PolicyOption = Annotated[
    str,
    policy_option(POLICIES_HELP),
]
OwnersOption = Annotated[
    Owners | None,
    typer.Option(
        "--owners",
        metavar="WHO",
        help="What schedulers see of who sent a request: its process, its group (a VM), or none.",
        show_default=f"{DEFAULT_OWNERS}; a workload's own",
    ),
]
DepthOption = Annotated[
    int | None,
    depth_option(
        "Commands in the disk at once, up to its queue_depth; "
        "with 1 the scheduler alone decides the order.",
        "the disk's; 1 with a workload's own disk",
    ),
]
RuntimeOption = Annotated[
    str | None,
    typer.Option(
        "--runtime",
        metavar="TIME",
        help="Each process ends after so long of its own at most, as in 30s or 5m.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TUNABLE=VALUE", help="Set a tunable, as in wait_target=200ms."),
]
WeightOption = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="OWNER=N",
        help="Give a job the share of N others (under stream, stride, wfq).",
    ),
]
CurveOption = Annotated[
    Curve,
    typer.Option(
        "--curve",
        metavar="SOURCE",
        help="The service-time curve for stream and sptf: measured on the disk before, "
        "or learned while running.",
    ),
]
PROFILE_HELP = (
    "What `streamsched profile` has written for this disk; without it one is measured once and "
    "kept."
)
GOAL_HELP = "What to choose for: throughput, or p99 of response times."
RULE_HELP = "What to choose by: the kind of workload, or the average size of requests."
ProfileOption = Annotated[
    Path | None,
    path_option("--profile", "a file", PROFILE_HELP, hidden=True, rich_help_panel=WITH_AUTO),
]
GoalOption = Annotated[
    Goal,
    typer.Option("--goal", metavar="GOAL", help=GOAL_HELP, hidden=True, rich_help_panel=WITH_AUTO),
]
RuleOption = Annotated[
    Rule,
    typer.Option("--rule", metavar="RULE", help=RULE_HELP, hidden=True, rich_help_panel=WITH_AUTO),
]
OutputOption = Annotated[
    Output,
    typer.Option(
        "--output",
        metavar="FORM",
        help="table, json, json+ (with histograms), csv or fio-json (fio's own).",
        rich_help_panel=RESULTS,
    ),
]
ToOption = Annotated[
    Path | None,
    path_option(
        "--to",
        "a file",
        "Write the results to this file, whole or not at all.",
        rich_help_panel=RESULTS,
    ),
]
ForceOption = Annotated[
    bool, flag("--force", "Replace files that are there.", rich_help_panel=RESULTS)
]
ByOption = Annotated[
    By,
    typer.Option(
        "--by",
        metavar="WHAT",
        help="policy, or process: also a table of what each process had.",
        rich_help_panel=RESULTS,
    ),
]
RequestsOption = Annotated[
    Path | None,
    path_option(
        "--requests",
        "a file",
        "Write a row for each request that the disks served to this .csv or .parquet file.",
        rich_help_panel=RESULTS,
    ),
]
FormOption = Annotated[
    Form, typer.Option("--output", metavar="FORM", help="As a table, or as json.")
]
PlotOption = Annotated[
    Path | None,
    path_option(
        "--plot",
        "a .svg, .png or .pdf file",
        "Draw the picture too, as .svg, .png or .pdf.",
        rich_help_panel=RESULTS,
    ),
]
ModeOption = Annotated[
    Mode,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="open: by time stamp; closed: each request as long after what it waited for.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        autocompletion=complete.formats,
        help="The trace's format, if it is not to be found out by content.",
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option("--device", metavar="DEVICE", help="Only this device's requests of the trace."),
]
SkipBadOption = Annotated[bool, flag("--skip-bad", "Skip and count records that cannot be read.")]
WrapOption = Annotated[bool, flag("--wrap", "Fold positions beyond the disk's end back onto it.")]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", min=0, help="What all randomness is made from (0 to 2^64-1)."
    ),
]
SeedsOption = Annotated[
    list[int] | None,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        help="What all randomness is made from (0 to 2^64-1). Several times: a result of each.",
        show_default="0",
    ),
]
ParallelOption = Annotated[
    int,
    typer.Option(
        "--parallel", metavar="N", min=0, help="Simulations at once; 0: one per processor."
    ),
]


def given_options(context: typer.Context) -> dict[str, Any]:
    """The options that stand on the command line, by name; of a list what it begins with."""
    found = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.param_type_name == "option" and getattr(source, "name", "") != "DEFAULT":
            value = context.params[parameter.name or ""]
            found[parameter.opts[0]] = value[0] if isinstance(value, list) else value
    return found
