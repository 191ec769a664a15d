# SPDX-License-Identifier: GPL-2.0-only
"""What a shell offers for arguments and values that have names; the rest are files, and choices.

Each function is asked with the beginning of a word. Of what it answers, typer leaves out what does
not begin so. Where nothing fits, the shell offers files (packaging/completion).
"""

from __future__ import annotations

from collections.abc import Iterable

from streamsched.api import Job
from streamsched.sim.diskfile import list_disks
from streamsched.sim.policies import AUTO, WORK_CONSERVING, WRAPPER, all_policies


def _listed(names: Iterable[str], incomplete: str) -> list[str]:
    """@names for the last place of a comma-separated list."""
    before, comma, _ = incomplete.rpartition(",")
    return [before + comma + name for name in names if name not in before.split(",")]


def jobs() -> list[str]:
    """Shipped job files, and workloads."""
    return Job.names()


def disks(incomplete: str) -> list[str]:
    """Shipped descriptions; an array may have one for each member."""
    return _listed(list_disks(), incomplete)


def policies(incomplete: str) -> list[str]:
    """Those of the core, with what they wrap."""
    known = all_policies()
    inner = [name for name, one in known.items() if one.flags & WORK_CONSERVING]
    names = [AUTO]
    for name, one in known.items():
        names += [f"{name}:{other}" for other in inner] if one.flags & WRAPPER else [name]
    return _listed(names, incomplete)


def schedulers(incomplete: str) -> list[str]:
    """The kernel's, that `auto` chooses among."""
    from streamsched.auto.better import SCHEDULERS

    return _listed(SCHEDULERS, incomplete)


def formats() -> list[str]:
    """Trace formats."""
    from streamsched.work import tracefile

    return [name for name, _ in tracefile.formats()]


def figures() -> list[str]:
    """What `reproduce` repeats."""
    from streamsched.papers.reproduce import BY_THEMSELVES, FIGURES

    return [*FIGURES, "all", *BY_THEMSELVES]
