# SPDX-License-Identifier: GPL-2.0-only
"""Options that several commands have, and what they say, checked before anything begins."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any

import typer

from streamsched.api.place import DEFAULT_DISK, DEFAULT_OWNERS, DEPTH
from streamsched.auto.setting import Goal, Rule
from streamsched.base.errors import UsageError, given
from streamsched.cli import complete

FOLDER = "a folder"


def path_option(name: str, what: str, tells: str) -> Any:
    """The option @name of typer, the path of @what, which must not be empty; @tells is its help."""

    def path(text: str) -> Path:
        # Path() would take it for the file of that name.
        if what != FOLDER and text.endswith(("/", "/.")):
            raise UsageError(f"{name} {text}: is the name of a folder; name {what}")
        return Path(text)

    return typer.Option(name, metavar="<path>", parser=given(name, what, path), help=tells)


FLAG = ""  # what follows an option that takes no value; typer would say <bool>


class Owners(enum.StrEnum):
    process = "process"
    group = "group"
    none = "none"


class Output(enum.StrEnum):
    table = "table"
    json = "json"
    json_plus = "json+"
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


DiskOption = Annotated[
    str | None,
    typer.Option(
        "--disk",
        autocompletion=complete.disks,
        help="A name that `streamsched disks` lists, or a .toml file; "
        "for an array also one for each member, comma-separated.",
        show_default=f"{DEFAULT_DISK}; a workload's own",
    ),
]
DisksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--disk",
        metavar="DISK",
        autocompletion=complete.disks,
        help="A name that `streamsched disks` lists, or a .toml file; "
        "for an array also one for each member, comma-separated. Several times: a result of each.",
        show_default=f"{DEFAULT_DISK}; a workload's own",
    ),
]
ArrayOption = Annotated[
    str | None,
    typer.Option(
        "--array",
        metavar="LEVEL:DISKS[:CHUNK]",
        help="Put disks together: linear, raid0, raid1, raid5, raid6 or raid10, of 2 to 32 disks, "
        "in chunks of 4k to 1m, as in raid0:5:64k; with :uncoordinated each member schedules "
        "for itself.",
    ),
]
PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        autocompletion=complete.policies,
        help="Policies, comma-separated, each with settings of its own in brackets, "
        "as in stream:deadline[wait_target=1s]; see `streamsched policies`. "
        "One in Python is FILE.py:CLASS.",
    ),
]
OwnersOption = Annotated[
    Owners | None,
    typer.Option(
        "--owners",
        help="What schedulers see of who sent a request: its process, its group (a VM), nothing.",
        show_default=f"{DEFAULT_OWNERS}; a workload's own",
    ),
]
DepthOption = Annotated[
    int | None,
    typer.Option(
        DEPTH,
        help="Commands in the disk at once, no more than its queue_depth; "
        "with 1 the scheduler alone decides the order.",
        show_default="the disk's queue_depth; 1 with a workload's own disk",
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
        help="Give a job's processes (or group) the share of N others (stream, stride, wfq).",
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
    path_option(
        "--profile",
        "a file",
        "For auto: what `streamsched profile` has written for this disk; "
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
    Path | None,
    path_option("--to", "a file", "Write the results to this file, whole or not at all."),
]
ByOption = Annotated[
    By,
    typer.Option("--by", help="process: the table has what each process had under each policy."),
]
RequestsOption = Annotated[
    Path | None,
    path_option(
        "--requests",
        "a file",
        "Write a row for each request that the disks served to this .csv or .parquet file.",
    ),
]
FormOption = Annotated[Form, typer.Option("--output", help="How to print what was found.")]
PlotOption = Annotated[
    Path | None,
    path_option(
        "--plot", "a .svg, .png or .pdf file", "Draw the picture too, as .svg, .png or .pdf."
    ),
]
ModeOption = Annotated[
    Mode,
    typer.Option(
        "--mode",
        help="open: by time stamp; closed: each request as long after what it waited for.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        autocompletion=complete.formats,
        help="The format, if it is not to be found out by content.",
    ),
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", help="Only this device's requests, as the trace says.")
]
SkipBadOption = Annotated[
    bool,
    typer.Option("--skip-bad", metavar=FLAG, help="Skip and count records that cannot be read."),
]
WrapOption = Annotated[
    bool,
    typer.Option("--wrap", metavar=FLAG, help="Fold positions beyond the disk's end back onto it."),
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="What all randomness is made from (0 to 2^64-1).")
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
JobsOption = Annotated[
    int, typer.Option("--jobs", min=0, help="Simulations at once; 0: one per processor.")
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
