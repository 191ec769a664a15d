# SPDX-License-Identifier: GPL-2.0-only
"""Options of commands that simulate, and what they say, checked before anything begins."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any

import typer

from streamsched.api.place import DEFAULT_DISK, DEFAULT_OWNERS, DEPTH
from streamsched.base.errors import UsageError
from streamsched.base.units import fio_time_ns
from streamsched.cli import complete
from streamsched.cli.options import RESULTS, flag, path_option, reveal, text_option
from streamsched.sim.auto import Goal, Rule
from streamsched.sim.policies import AUTO

# Panels of --help.
WITH_AUTO = "With the policy auto"
ON_KERNEL = "With --on kernel"


def depth_option(tells: str, shown: str = "the disk's, up to 32") -> Any:
    """--queue-depth, of a command that shows @shown as its default."""
    return typer.Option(DEPTH, metavar="N", help=tells, show_default=shown)


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


def disk_option(more: str = "") -> Any:
    """--disk; its help ends with @more."""
    return text_option(
        "--disk",
        "DISK",
        "a disk",
        "A name (`streamsched list disks`) or a .toml file; "
        f"of an array also a list, one for each member.{more}",
        autocompletion=complete.disks,
        show_default=f"{DEFAULT_DISK}; a workload's own",
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
DiskOption = Annotated[str | None, disk_option()]
DisksOption = Annotated[list[str] | None, disk_option(" Several times: a result of each.")]
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
