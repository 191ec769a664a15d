# SPDX-License-Identifier: GPL-2.0-only
"""The command advise."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from streamsched.api.place import DEPTH, files_of
from streamsched.base.errors import UsageError
from streamsched.base.files import Target, check_output, target, write_whole
from streamsched.cli import complete
from streamsched.cli.options import (
    ForceOption,
    Form,
    FormOption,
    argument,
    path_option,
    text_option,
)
from streamsched.cli.simoptions import FormatOption, depth_option
from streamsched.cli.work import check_force, note
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.simulate import check_depth
from streamsched.work.processors import note_of, parts_of

MOST_DEPTH = 32


def _check_heeded(context: typer.Context, names: tuple[str, ...], without: str) -> None:
    """Refuse options that would not be heeded."""
    for name in names:
        if getattr(context.get_parameter_source(name), "name", "") != "DEFAULT":
            option = f"--{name.removeprefix('trace_').rstrip('_')}"
            raise UsageError(f"{option}: {without}")


def _depth(asked: int | None, disk: Disk, takes: int | None) -> int:
    """Commands in the disk at once."""
    if asked is None:
        return min(takes or MOST_DEPTH, disk.queue_depth, MOST_DEPTH)
    check_depth(asked, [disk], DEPTH)
    return asked


@contextlib.contextmanager
def _told(doing: str) -> Iterator[Callable[[float], None]]:
    """A bar on a terminal, for work that says which part of it is done."""
    console = Console(stderr=True)
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    with bar as progress:
        task = progress.add_task(doing, total=1.0)
        yield lambda part: progress.update(task, completed=part)


def _say(name: str, answer: list[str], document: str, output: Form, to: Target | None) -> None:
    from streamsched.watch import advise as advising

    if to is not None:
        write_whole(to, advising.page(name, answer))
    elif output is Form.json:
        print(document)
    else:
        sys.stdout.write("".join(line.rstrip() + "\n" for line in answer))


def _say_without_seeks(name: str, before: str, why: str, output: Form, to: Target | None) -> None:
    from streamsched.watch import advise as advising

    document = advising.document_without_seeks(name, before, why)
    _say(name, list(advising.lines_without_seeks(name, why)), document, output, to)


def advise(
    context: typer.Context,
    device: Annotated[
        str | None,
        argument(
            "DISK", "a disk, as sda", "A whole disk of this machine, as sda, which is watched."
        ),
    ] = None,
    trace: Annotated[
        str | None,
        text_option(
            "--trace",
            "FILE",
            "a block trace",
            "Instead of watching: a trace with completions, as blktrace makes.",
        ),
    ] = None,
    trace_device: Annotated[
        str | None,
        typer.Option(
            "--device", metavar="DEVICE", help="Only this device's requests of the trace."
        ),
    ] = None,
    format_: FormatOption = None,
    scheduler: Annotated[
        str | None,
        text_option(
            "--scheduler",
            "NAME",
            "a scheduler",
            "Under which the trace was made: none, mq-deadline, bfq or stream.",
            show_default="mq-deadline",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", help="How long to watch, 1 to 3600.")
    ] = 60.0,
    model: Annotated[
        str | None,
        text_option(
            "--model",
            "DISK",
            "a disk",
            "What model it is: a name, or the .toml that `calibrate` has written.",
            autocompletion=complete.disks,
            show_default="found by the drive's name, or learned",
        ),
    ] = None,
    queue_depth: Annotated[int | None, depth_option("Commands in the disk at once.")] = None,
    output: FormOption = Form.table,
    to: Annotated[
        Path | None, path_option("--to", "a file", "Write the answer to this file, as HTML.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Watch a disk; forecast its work under other schedulers.

    Nothing is changed.
    """
    from streamsched.hosts.device import device_of
    from streamsched.watch import advise as advising
    from streamsched.watch.forecast import forecast
    from streamsched.watch.learn import WIDER
    from streamsched.watch.learn import learned as learn

    files = parts_of(trace) if trace is not None else []
    if (device is None) == (trace is None):
        raise UsageError(
            "name a disk to watch, as sda, or a recorded one with --trace; one of them"
        )
    if not 1 <= seconds <= 3600:
        raise UsageError(f"--seconds {seconds:g}: is not within 1 to 3600")
    if to is not None:
        _check_heeded(context, ("output",), "not with --to, which writes HTML")
    check_force(force, to)
    page = target(to, force)
    check_output(page, *files, *(files_of(model) if model else ()))
    described: Disk | None = load_disk(model) if model else None
    if trace is not None:
        _check_heeded(context, ("seconds",), "not with --trace, which is as long as it is")
        before = advising.scheduler_known(scheduler or "mq-deadline")
        found = advising.traced(trace, format_, trace_device)
        name = Path(trace).name
        if text := note_of(trace):
            note(text)
        capacity = max(bio.sector + bio.sectors for bio in found)
        if described and capacity > described.capacity_sectors:
            raise UsageError(
                f"{name}: has requests up to sector {capacity}, and {described.name} has "
                f"{described.capacity_sectors}; name the description of a larger disk"
            )
        known, takes = described, None
    else:
        assert device is not None
        _check_heeded(context, ("scheduler", "trace_device", "format_"), "only with --trace")
        there = device_of(device)
        if described:
            advising.check_size(there, described)
        name, capacity = there.name, int(there.text(there.folder / "size"))
        if there.text(there.queue / "rotational") == "0":
            _say_without_seeks(name, there.in_use, "it says that it does not rotate", output, page)
            return
        before = advising.scheduler_known(there.in_use)
        model_file = there.folder / "device" / "model"
        called = there.text(model_file) if model_file.exists() else ""
        known, takes = described or advising.of_model(called), there.queue_depth
        _depth(queue_depth, known or advising.of_size(capacity), takes)
        with _told(f"watching {name}") as passed:
            found = advising.watched(there, seconds, passed)
        if there.in_use != before:
            raise UsageError(
                f"{name}: its scheduler was changed meanwhile, from {before} to {there.in_use}; "
                "watch it again"
            )
    chosen = known or advising.of_size(capacity)
    depth = _depth(queue_depth, chosen, takes)
    advising.check_work(found, name, traced=trace is not None)
    if why := advising.why_no_seeks(found):
        _say_without_seeks(name, before, why, output, page)
        return
    learned = None
    if known is None:
        most = queue_depth or min(takes or MOST_DEPTH, MOST_DEPTH)
        bases = advising.mechanical()
        note(
            f"{name}: up to {len(bases)} models are compared with it, in some minutes at most; "
            "--model names one"
        )
        with _told("learning what disk it is") as passed:
            learned = learn(
                found, capacity, before, most, bases, whole=trace is None, passed=passed
            )
        if learned:
            chosen, depth = learned.disk, min(most, learned.disk.queue_depth)
        else:
            note(f"{name}: too few reads to learn what disk it is; the next larger one stands in")
    if described is None:
        note(f"{chosen.name} stands for {name}; `streamsched calibrate` makes its own description")
    lasted = (max(bio.complete_ns for bio in found) - found[0].arrival_ns) / 1e9
    wider = WIDER if learned else 0.0
    with _told("playing it under each scheduler") as passed:
        said = forecast(found, chosen, before, depth, wider=wider, passed=passed)
    answer = advising.advice(name, chosen, lasted, said, traced=trace is not None, learned=learned)
    advising.check_model(answer, named=described is not None)
    _say(name, list(advising.lines(answer)), advising.document(answer), output, page)
