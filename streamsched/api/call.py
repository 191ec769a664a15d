# SPDX-License-Identifier: GPL-2.0-only
"""The one call of the Python interface."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from streamsched.api.place import DEFAULT_POLICIES, Place, setups_of
from streamsched.api.result import Result
from streamsched.api.work import Job, job_work, trace_work
from streamsched.base.errors import UsageError
from streamsched.base.progress import nr_jobs
from streamsched.sim import auto
from streamsched.sim.diskfile import Disk
from streamsched.sim.tasks import Trace

# The parameters that the command line has other names for.
PARAMETERS = {"policy": "policies", "set": "settings", "weight": "weights"}


def _parameters(message: str) -> str:
    """A sentence of the command line's, with the names that parameters have."""

    def name(match: re.Match[str]) -> str:
        return PARAMETERS.get(match[1], match[1].replace("-", "_"))

    return re.sub(r"(?<!\S)--([a-z][a-z-]*)", name, message)


def simulate(
    work: Job | Trace | Sequence[Trace] | str | os.PathLike[str],
    disk: Disk | str | None = None,
    *,
    policies: str | Sequence[str] = DEFAULT_POLICIES,
    array: str | None = None,
    owners: str | None = None,
    queue_depth: int | None = None,
    settings: Mapping[str, object] | None = None,
    weights: Mapping[str, int] | None = None,
    curve: str = "measured",
    seed: int = 0,
    mode: str = "closed",
    wrap: bool = False,
    workers: int = 0,
    profile: str | os.PathLike[str] | None = None,
    goal: str = "throughput",
    rule: str = "workload",
) -> Result:
    """Do @work on @disk under each of @policies, in virtual time: the same call, the same result.

    work: a Job, a Trace, or a list of traces that are replayed together (docs/sim/TRACES.md); a
        text is what Job takes.
    disk: a name of Disk.names(), the path of a description, or a Disk; for an array also one for
        each member, comma-separated. Without one the disk a workload brings along, or exos-x18.
    policies: names as `streamsched list policies` lists them, comma-separated or a list, each with
        settings of its own in brackets, as in "stream:deadline[wait_target=200ms]".
    array: several disks put together, as in "raid0:5:64k" (docs/internals/ARCHITECTURE.md).
    owners: what schedulers see of who sent a request: "none" as behind a loop device or a network,
        "process" or "group".
    queue_depth: commands in each disk at once, 1 to what the disk takes, which is the default.
    settings: tunables of policies, as in {"wait_target": "200ms"}.
    weights: of a job's processes, 1 to 1000, for policies that give shares.
    curve: the service-time curve, "measured" before or "learned" meanwhile.
    seed: 0 to 2^64-1, what all randomness is made from.
    mode, wrap: of a trace: "closed" or "open"; whether positions beyond the disk's end are folded.
    workers: simulations at once; 0: one per processor.
    profile, goal, rule: for the policy auto (docs/guide/AUTO.md).

    Raises UsageError, with one sentence, for whatever of these is wrong; KeyboardInterrupt.
    Source: the policies are those of Xu and Jiang, FAST 2011, and of docs/research/REPRODUCTION.md.
    """
    try:
        return _simulate(
            _work(work),
            policies if isinstance(policies, str) else ",".join(policies),
            Place(disk, array, owners, queue_depth),
            [f"{name}={value}" for name, value in (settings or {}).items()],
            [f"{name}={value}" for name, value in (weights or {}).items()],
            _one_of("curve", curve, ("measured", "learned")),
            seed,
            _one_of("mode", mode, ("closed", "open")) == "closed",
            wrap,
            nr_jobs(workers),
            auto.Options(
                Path(profile) if profile is not None else None,
                auto.Goal(_one_of("goal", goal, tuple(auto.Goal))),
                auto.Rule(_one_of("rule", rule, tuple(auto.Rule))),
            ),
        )
    except UsageError as error:
        raise UsageError(_parameters(str(error))) from None


def _work(work: Job | Trace | Sequence[Trace] | str | os.PathLike[str]) -> Job | list[Trace]:
    if isinstance(work, Job):
        return work
    if isinstance(work, Trace):
        return [work]
    if isinstance(work, str | os.PathLike):
        return Job(work)
    if not work:
        raise UsageError("no trace is given; name at least one")
    return list(work)


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise UsageError(f"{name} {value!r}: must be one of {', '.join(known)}")
    return value


def _simulate(
    work: Job | list[Trace],
    policies: str,
    place: Place,
    settings: Sequence[str],
    weights: Sequence[str],
    curve: str,
    seed: int,
    closed: bool,
    wrap: bool,
    jobs: int,
    options: auto.Options,
) -> Result:
    if place.owners is not None:
        _one_of("owners", place.owners, ("process", "group", "none"))
    if isinstance(work, Job):
        place = place.of(work.workload)
    storage, depth = place.storage()
    setups = setups_of(storage.disk, policies, place.seen, depth, settings, curve)
    if isinstance(work, Job):
        one = job_work(work, storage, setups, weights, seed)
        for note in one.notes:
            warnings.warn(note, stacklevel=4)
        return _whole(one.run(options, jobs))
    if weights or seed:
        raise UsageError(f"{'weights' if weights else 'seed'}: not with a trace")
    with trace_work(work, storage, setups, closed, wrap) as one:
        return _whole(one.run(options, jobs))


def _whole(result: Result) -> Result:
    if result.comparison.failed:
        raise result.comparison.failed[0]
    if result.comparison.interrupted:
        raise KeyboardInterrupt
    return result
