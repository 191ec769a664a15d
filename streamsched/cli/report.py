# SPDX-License-Identifier: GPL-2.0-only
"""The command report: results, job files and traces as one HTML page."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from streamsched.api.place import DEFAULT_POLICIES, Place, files_of, setups_of
from streamsched.api.work import Job, Work, check_seed, job_of, job_work, trace_work
from streamsched.base.errors import StreamschedError, UsageError, given, install, said
from streamsched.base.files import check_output, is_file, mode_of, target, write_whole
from streamsched.base.progress import nr_jobs
from streamsched.cli import complete
from streamsched.cli.bound import check_bound, check_works, regrets
from streamsched.cli.options import ForceOption, ParallelOption, ToOption, given_options
from streamsched.cli.simoptions import (
    ArrayOption,
    BoundOption,
    Curve,
    CurveOption,
    DepthOption,
    DeviceOption,
    DiskOption,
    FormatOption,
    GoalOption,
    Mode,
    ModeOption,
    OwnersOption,
    PolicyOption,
    ProfileOption,
    RuleOption,
    SeedOption,
    SetOption,
    SkipBadOption,
    WeightOption,
    WrapOption,
)
from streamsched.cli.work import say, trace_files
from streamsched.sim import auto
from streamsched.sim.auto import Goal, Rule
from streamsched.sim.policies import policy_files
from streamsched.sim.pythonpolicy import PolicyError
from streamsched.sim.resultfile import is_other_result
from streamsched.sim.tasks import Trace
from streamsched.sim.workloads import WORKLOADS
from streamsched.work.processors import joined, parts_of

# What heeds an option; where no such input is named it is refused.
HEEDED_BY = {
    **dict.fromkeys(("--mode", "--format", "--device", "--skip-bad", "--wrap"), ("trace",)),
    **dict.fromkeys(("--seed", "--weight", "--bound"), ("job",)),
    **dict.fromkeys(
        (
            "--disk",
            "--array",
            "--policy",
            "--owners",
            "--queue-depth",
            "--set",
            "--curve",
            "--profile",
            "--goal",
            "--rule",
        ),
        ("job", "trace"),
    ),
}
# So much of a file shows what it is.
HEAD_BYTES = 4096
# A job file begins with a section, behind comments.
JOB = re.compile(rb"\A(\s*[#;][^\n]*\n|\s*\n)*\s*\[[^\n]*\]")


def _head(path: str) -> bytes:
    if not is_file(path):
        return b""
    try:
        with Path(path).open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:  # said by what reads it
        return b""


def _kind(name: str) -> str:
    """Whether an input is a result, a job or a trace."""
    if name not in WORKLOADS and parts_of(name) != [name]:
        return "trace"
    if name in WORKLOADS or name.endswith(".fio"):
        return "job"
    head = _head(name)
    if is_other_result(head):
        raise UsageError(f"{name}: is a result, but no JSON; make it again with --output json")
    if name.endswith(".json") or head.lstrip().startswith(b"{"):
        return "result"
    if name != "-" and not mode_of(name) and job_of(name) != name:
        return "job"
    return "job" if JOB.match(head) else "trace"


def _check_heeded(context: typer.Context, kinds: set[str]) -> None:
    """Refuse options that none of the inputs would heed."""
    for option in given_options(context):
        heeded_by = HEEDED_BY.get(option)
        if heeded_by and kinds.isdisjoint(heeded_by):
            raise UsageError(f"{option}: only for a {' or a '.join(heeded_by)}, and none is named")


def report(
    context: typer.Context,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT.json|JOB|TRACE",
            autocompletion=complete.jobs,
            parser=given("INPUT", "a result, a job file or a trace", str),
            help="What --output json wrote; a job file or a workload's name; a trace.",
        ),
    ],
    to: ToOption = None,
    force: ForceOption = False,
    disk: DiskOption = None,
    array: ArrayOption = None,
    policy: PolicyOption = DEFAULT_POLICIES,
    owners: OwnersOption = None,
    queue_depth: DepthOption = None,
    set_: SetOption = None,
    weight: WeightOption = None,
    curve: CurveOption = Curve.measured,
    mode: ModeOption = Mode.closed,
    format_: FormatOption = None,
    device: DeviceOption = None,
    skip_bad: SkipBadOption = False,
    wrap: WrapOption = False,
    profile: ProfileOption = None,
    goal: GoalOption = Goal.throughput,
    rule: RuleOption = Rule.workload,
    seed: SeedOption = 0,
    bound: BoundOption = False,
    parallel: ParallelOption = 0,
) -> None:
    """Draw results as one HTML page.

    Job files and traces are simulated first.
    """
    page = target(to, force)
    if page is None:
        raise UsageError("--to is missing: name the page, as in --to page.html")
    if not all(importlib.util.find_spec(name) for name in ("plotly", "numpy")):
        raise StreamschedError(
            f"report needs plotly and numpy, which are not installed: {install('report')}"
        )
    from streamsched.report import page as pages
    from streamsched.sim.resultfile import load_results

    inputs = joined(inputs)
    read = trace_files([one for one in inputs if one not in WORKLOADS])
    check_output(page, *read, *files_of(disk), profile, *policy_files(policy))
    kinds = {one: _kind(one) for one in inputs}
    _check_heeded(context, set(kinds.values()))
    if bound:
        check_bound(policy)
    check_seed(seed)

    def work_of(name: str, stack: contextlib.ExitStack) -> Work:
        is_job = kinds[name] == "job"
        place = Place(disk, array, owners, queue_depth)
        if is_job:
            place = place.of(name)
        storage, depth = place.storage()
        setups = setups_of(storage.disk, policy, place.seen, depth, set_ or [], curve)
        if is_job:
            job = Job(name if name in WORKLOADS else job_of(name))
            work = job_work(job, storage, setups, weight or [], seed)
            say(work.notes)
            return work
        trace = Trace(name, format_, device, skip_bad)
        work = stack.enter_context(trace_work([trace], storage, setups, mode is Mode.closed, wrap))
        say(work.notes)
        return work

    options = auto.Options(profile, goal, rule)
    sections = []
    failed: list[PolicyError] = []
    with contextlib.ExitStack() as stack:
        # All that was named is looked at before the first work begins.
        found = [
            (one, part)
            for one in inputs
            for part in (
                map(pages.section_of, load_results(Path(one)))
                if kinds[one] == "result"
                else [work_of(one, stack)]
            )
        ]
        if bound:
            check_works(one for _, one in found if isinstance(one, Work) and one.processes)
        for name, one in found:
            if isinstance(one, Work):
                work = one
                try:
                    result = work.run(options, nr_jobs(parallel), drawn=True)
                    if result.drawn is None:
                        raise KeyboardInterrupt
                except KeyboardInterrupt:
                    print("streamsched: interrupted; no page is written", file=sys.stderr)
                    raise typer.Exit(130) from None
                except PolicyError as error:  # no policy is left
                    failed.append(error)
                    continue
                failed += result.comparison.failed
                one = result.drawn
                if bound and work.processes and not result.comparison.failed:
                    far = regrets(work, name, nr_jobs(parallel))
                    for run in one.runs:
                        run["regret"] = far[run["policy"]]
            sections.append(one)
    if not sections:
        raise failed[0]
    write_whole(page, pages.page(sections))
    for why in failed:
        print(f"streamsched: {said(why)}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)
