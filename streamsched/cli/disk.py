# SPDX-License-Identifier: GPL-2.0-only
"""The commands about disks: calibrate, profile and doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamsched.api.place import DEPTH, files_of, specs_of
from streamsched.base.console import trimmed
from streamsched.base.errors import UsageError
from streamsched.base.files import Target, check_output, is_stdout, target, write_whole
from streamsched.base.progress import nr_jobs
from streamsched.cli import complete
from streamsched.cli.options import (
    ForceOption,
    Form,
    FormOption,
    ParallelOption,
    argument,
    flag,
    path_option,
)
from streamsched.cli.simoptions import depth_option
from streamsched.cli.work import check_force
from streamsched.sim import auto
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.policies import AUTO, refuse_python
from streamsched.sim.profile import POLICIES as PROFILE_POLICIES
from streamsched.sim.results import widen
from streamsched.sim.simulate import check_depth


def calibrate(
    device: Annotated[
        str,
        argument("DEVICE", "a disk, as /dev/sda", "A whole disk that is not in use, as /dev/sda."),
    ],
    to: Annotated[
        Path | None,
        path_option(
            "--to",
            "a .toml file",
            "Write the description to this .toml file, whole or not at all.",
        ),
    ] = None,
    force: ForceOption = False,
    fast: Annotated[bool, flag("--fast", "In less than a minute, and only roughly.")] = False,
    overwrite: Annotated[
        bool,
        flag(
            "--overwrite",
            "Also measure write-out beside reads, by writing all over the disk: "
            "WHAT IS ON IT IS LOST.",
        ),
    ] = False,
) -> None:
    """Measure a disk by reading it, and describe it for the simulator."""
    from streamsched.calibrate import description as calibration
    from streamsched.calibrate.device import examine

    info = examine(device)
    path = calibration.target(info, to)
    description = Target(path, force)
    check_output(description)
    found = calibration.calibrate(
        info, path.stem, fast=fast, overwrite=overwrite, console=Console(stderr=True)
    )
    write_whole(description, found.text)
    print(calibration.summary(found, path), end="")


def _check_profile_depth(depth: int, disk: Disk) -> None:
    """Refuse a --queue-depth that no profile of @disk can have."""
    check_depth(depth, [disk], DEPTH)
    if depth > auto.MAX_DEPTH:
        raise UsageError(f"{DEPTH} {depth}: a profile is of 1 to {auto.MAX_DEPTH} commands at once")


def profile_(
    disk: Annotated[
        str,
        typer.Argument(
            metavar="DISK",
            autocompletion=complete.disks,
            help="A name (`streamsched list disks`), or a .toml file.",
        ),
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="LIST",
            autocompletion=complete.policies,
            help="Policies, comma-separated; with --to only.",
            show_default="all that run can choose among",
        ),
    ] = None,
    queue_depth: Annotated[
        int | None, depth_option("Commands in the disk at once, up to its queue_depth.")
    ] = None,
    to: Annotated[
        Path | None,
        path_option(
            "--to",
            "a file",
            "Write the profile to this file; without it to where run and replay look for it.",
        ),
    ] = None,
    force: ForceOption = False,
    parallel: ParallelOption = 0,
) -> None:
    """Measure a simulated disk, for the policy auto to choose by."""
    from streamsched.sim import profile_measure

    refuse_python(policy, "profile")
    specs = list(PROFILE_POLICIES) if policy is None else specs_of(policy)
    if AUTO in specs:
        raise UsageError("--policy auto: it chooses by a profile and cannot be in one")
    if len(specs) < 2:
        raise UsageError("--policy: name at least two; of one there is nothing to choose")
    if to is None and policy is not None:
        raise UsageError("--policy: name a file with --to; what is kept has every policy")
    check_force(force, to)
    check_output(target(to, force), *files_of(disk))
    described = load_disk(disk)
    depth = min(described.queue_depth, auto.MAX_DEPTH) if queue_depth is None else queue_depth
    _check_profile_depth(depth, described)
    path = to or auto.default_path(described, depth)
    if to is None:  # before the work, as --to
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{path.parent}: cannot make it: {error.strerror}; name a file with --to"
            ) from None
        check_output(Target(path, replace=True), option="profile")
    found = profile_measure.measure(
        described,
        specs,
        queue_depth=depth,
        jobs=nr_jobs(parallel),
        console=Console(stderr=True),
    )
    auto.keep(found, Target(path, force or to is None))
    if is_stdout(to):
        return
    console = trimmed()
    table = profile_measure.table(found)
    widen(console, table).print(table)
    console.print(f"{len(found.cells)} more workloads; all in {path}")


def doctor_(output: FormOption = Form.table) -> None:
    """Check what this machine needs to run stream; change nothing."""
    from streamsched.hosts import doctor

    report = doctor.examine()
    print(doctor.as_json(report) if output is Form.json else doctor.as_text(report), end="")
    if report.problems:
        raise typer.Exit(1)
