# SPDX-License-Identifier: GPL-2.0-only
"""The commands of the rig: a real kernel in virtual time, built, and with something in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamsched.cli.options import FOLDER, flag, path_option
from streamsched.hosts import rig

app = typer.Typer(
    help="Build a real kernel that runs in virtual time, and run in it.",
    no_args_is_help=True,
)

VariantOption = Annotated[
    str,
    typer.Option(
        "--variant",
        metavar="VARIANT",
        help="base: Linux 6.12; kasan: with the kernel's own checks; newest: Debian sid's newest.",
    ),
]
NoModulesOption = Annotated[
    bool, flag("--no-modules", "Do not compile and load stream-iosched and hdd-emu.")
]
MemoryOption = Annotated[
    int,
    typer.Option("--memory", metavar="MB", min=64, max=1 << 20, help="The kernel's memory, in MB."),
]


@app.command("build")
def rig_build(
    variant: VariantOption = "base",
    update: Annotated[
        bool, flag("--update", "Look for a newer version of the kernel's source.")
    ] = False,
) -> None:
    """Build the kernel, once for each version and configuration; print its folder."""
    print(rig.build(variant, update=update))


@app.command("exec", context_settings={"allow_interspersed_args": False})
def rig_exec(
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help="A command and its arguments."),
    ],
    variant: VariantOption = "base",
    no_modules: NoModulesOption = False,
    memory: MemoryOption = 1024,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", min=1, help="Seconds of this machine's time."),
    ] = 600,
    clock: Annotated[
        rig.Clock,
        typer.Option(
            "--clock",
            metavar="CLOCK",
            help="virtual: computing takes no time; computing: it does, idling is skipped; real.",
        ),
    ] = rig.Clock.virtual,
    out: Annotated[
        Path | None,
        path_option("--out", FOLDER, "The folder for what is left in $OUT."),
    ] = None,
) -> None:
    """Run a command inside, in this folder; exit with its status, or 125 if the rig failed."""
    raise typer.Exit(
        rig.run_command(
            command,
            variant=variant,
            timeout_s=timeout,
            modules=not no_modules,
            memory_mb=memory,
            clock=clock,
            out=out,
        )
    )


@app.command("shell")
def rig_shell(
    variant: VariantOption = "base",
    no_modules: NoModulesOption = False,
    memory: MemoryOption = 1024,
) -> None:
    """Open a shell inside, on this terminal. Time is real there."""
    raise typer.Exit(rig.shell(variant, modules=not no_modules, memory_mb=memory))
