# SPDX-License-Identifier: GPL-2.0-only
"""The policy `auto` of run and replay: where its profile comes from, and what is refused."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from streamsched.base import cache
from streamsched.base.errors import UsageError
from streamsched.base.files import Target, is_file, write_whole
from streamsched.sim import profile as profiles
from streamsched.sim.choose import Selection
from streamsched.sim.diskfile import Disk
from streamsched.sim.policies import AUTO
from streamsched.sim.profile import Profile
from streamsched.sim.simulate import Setup

MAX_DEPTH = 32  # commands in a disk at once


class Goal(enum.StrEnum):
    throughput = "throughput"
    p99 = "p99"


class Rule(enum.StrEnum):
    workload = "workload"
    size = "size"


@dataclasses.dataclass(frozen=True)
class Options:
    """What the command line says of auto."""

    profile: Path | None = None
    goal: Goal = Goal.throughput
    rule: Rule = Rule.workload

    def refuse(self) -> None:
        """Refuse what nobody would heed."""
        for option, given in (
            (f"--profile {self.profile}", self.profile is not None),
            (f"--goal {self.goal.value}", self.goal is not Goal.throughput),
            (f"--rule {self.rule.value}", self.rule is not Rule.workload),
        ):
            if given:
                raise UsageError(f"{option}: only with --policy {AUTO}")

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.rule is Rule.size and self.goal is not Goal.throughput:
            raise UsageError(
                f"--rule size: goes by throughput alone; leave --goal {self.goal.value} out"
            )


def kept_in() -> Path:
    """Where profiles are kept that nobody named a place for."""
    return cache.kept_in("profiles", "profiles")


def default_path(disk: Disk, queue_depth: int) -> Path:
    """For this disk as it is described, and driven so."""
    # A description's name is anybody's text.
    name = re.sub(r"[^\w.-]", "_", disk.name)[:64]
    return kept_in() / f"{name}-{profiles.fingerprint(disk)}-q{queue_depth}.json"


def keep(profile: Profile, to: Target) -> None:
    """Write the file, whole or not at all."""
    write_whole(to, profiles.as_text(profile))


def _kept(disk: Disk, queue_depth: int) -> Profile | None:
    """One that was measured before, by this very code; one that is damaged does not count."""
    path = default_path(disk, queue_depth)
    if not is_file(path):
        return None
    try:
        profile, made_by = profiles.read(path)
        profile.check(disk, queue_depth, str(path))
    except UsageError:
        return None
    return profile if made_by == profiles.made_by() else None


def obtain(
    disk: Disk, queue_depth: int | None, path: Path | None, jobs: int, console: Console
) -> Profile:
    """The profile in @path; without one that was kept; else it is measured now, and kept.

    Without a @queue_depth that of the profile in @path counts, or else the most there is.
    """
    from streamsched.sim.profile_measure import measure

    if path is not None:
        profile, _ = profiles.read(path)
        profile.check(disk, queue_depth or profile.queue_depth, str(path))
        return profile
    queue_depth = queue_depth or MAX_DEPTH
    kept = _kept(disk, queue_depth)
    if kept:
        return kept
    console.print(
        f"measuring what each policy makes of {disk.name}, once (`streamsched profile`)",
        highlight=False,
        markup=False,
    )
    profile = measure(disk, queue_depth=queue_depth, jobs=jobs, console=console)
    place = default_path(disk, queue_depth)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        keep(profile, Target(place, replace=True))
    except (OSError, UsageError):
        console.print(
            f"cannot keep it in {place}; it will be measured again", highlight=False, markup=False
        )
    # As it would be read, so that a first run and a second one do the same.
    return profiles.parse(profiles.as_text(profile), str(place))[0]


def prepare(setups: Sequence[Setup], options: Options, jobs: int, console: Console) -> list[Setup]:
    """@setups, those of auto with how to choose."""
    chosen = [setup for setup in setups if setup.policy == AUTO]
    if not chosen:
        options.refuse()
        return list(setups)
    options.check()
    one = chosen[0]
    if one.array is not None:
        raise UsageError("auto: not with --array; a profile is of one disk")
    profile = obtain(one.disk, one.queue_depth, options.profile, jobs, console)
    owners = "none" if one.owners == "none" else "process"
    if owners not in profile.owners():
        raise UsageError(
            f"{options.profile}: was not measured with --owners {owners}; "
            "measure it again with `streamsched profile`"
        )
    selection = Selection(profile, owners, options.goal.value, options.rule.value)
    return [
        dataclasses.replace(setup, selection=selection) if setup.policy == AUTO else setup
        for setup in setups
    ]
