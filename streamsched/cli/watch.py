# SPDX-License-Identifier: GPL-2.0-only
"""The commands that look at disks at work: top, exporter, measure and weights."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from streamsched.base.errors import UsageError, install
from streamsched.cli.options import Form, FormOption, argument, flag


def top_(
    disks: Annotated[
        list[str] | None,
        argument(
            "DISK",
            "a disk, as sda, or a file of the network server",
            "Disks under stream, as sda, or the file that the network server's metrics= "
            "writes; without any all disks under stream.",
        ),
    ] = None,
    interval: Annotated[
        float,
        typer.Option("--interval", metavar="S", help="Seconds between two looks, 0.1 to 3600."),
    ] = 2,
    once: Annotated[bool, flag("--once", "Print what happens in one second, and end.")] = False,
    output: FormOption = Form.table,
) -> None:
    """Show live who uses a disk under stream, and whose turn it is."""
    from streamsched.watch import top

    if not 0.1 <= interval <= 3600:
        raise UsageError(f"--interval {interval:g}: is not within 0.1 to 3600")
    if output != Form.table and not once:
        raise UsageError(f"--output {output.value}: goes with --once")
    sources = top.sources_of(disks or [])
    if once:
        from streamsched.watch.observe import as_json

        seen = top.once(sources)
        print(as_json(seen) if output == Form.json else top.as_table(seen), end="")
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("top needs a terminal; with --once it prints what it sees, and ends")
    try:
        from streamsched.watch import top_screen
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("textual"):
            raise
        raise UsageError(
            f"top's screen needs Textual: {install('top')}; --once does without it"
        ) from None
    top_screen.run(sources, interval)


def exporter_(
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="Where to be asked; :PORT is every address of this machine.",
        ),
    ] = "127.0.0.1:9842",
) -> None:
    """Serve the figures of this machine's disks to Prometheus."""
    try:
        from streamsched.watch import exporter
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("prometheus_client"):
            raise
        raise UsageError(f"the exporter needs prometheus_client: {install('exporter')}") from None
    exporter.serve(listen)


def weights_(
    interval: Annotated[
        float,
        typer.Option("--interval", metavar="S", help="Seconds between two looks, 0.1 to 60."),
    ] = 1,
    once: Annotated[bool, flag("--once", "Set all weights, print them, and end.")] = False,
) -> None:
    """Give disks under stream the weights of cgroups.

    Without --once all changes are followed until it is stopped.
    """
    from streamsched.hosts.machine import Machine
    from streamsched.watch import weights

    if not 0.1 <= interval <= 60:
        raise UsageError(f"--interval {interval:g}: is not within 0.1 to 60")
    weights.check_root()
    if once:
        print(weights.once(Machine()), end="")
    else:
        weights.serve(Machine(), interval)


def measure_(
    disk: Annotated[
        str, argument("DISK", "a disk, as sda", "A whole disk that is at work, as sda.")
    ],
    between: Annotated[
        str,
        typer.Option(
            "--between",
            metavar="A,B",
            help="The two schedulers, as the kernel names them; stream:sptf is stream with sptf "
            "inside.",
        ),
    ],
    minutes: Annotated[
        float, typer.Option("--minutes", metavar="N", help="How long, 4 or more.")
    ] = 20,
    output: FormOption = Form.table,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            min=0,
            help="What the blocks' order and lengths are made from.",
            show_default="another one each time",
        ),
    ] = None,
) -> None:
    """Alternate two schedulers on a live disk, and compare them.

    Afterwards all is as before.
    """
    from streamsched.watch import measure

    found = measure.measure(disk, between, minutes, seed)
    print(measure.as_json(found) if output == Form.json else measure.as_text(found), end="")
    if found.stopped:
        print("streamsched: stopped; what was measured is all there is", file=sys.stderr)
        raise typer.Exit(130)
