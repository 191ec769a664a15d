# SPDX-License-Identifier: GPL-2.0-only
"""How options are written, and those of commands of every kind."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any

import typer

from streamsched.base.errors import UsageError, given

FOLDER = "a folder"
# A panel of --help.
RESULTS = "Results"


def path_option(name: str, what: str, tells: str, **more: Any) -> Any:
    """The option @name of typer, the path of @what, which must not be empty; @tells is its help."""

    def path(text: str) -> Path:
        # Path() would take it for the file of that name.
        if what != FOLDER and text.endswith(("/", "/.")):
            raise UsageError(f"{name} {text}: is the name of a folder; name {what}")
        return Path(text)

    metavar = "FOLDER" if what == FOLDER else "FILE"
    return typer.Option(name, metavar=metavar, parser=given(name, what, path), help=tells, **more)


def argument(name: str, what: str, tells: str, make: Any = str, **more: Any) -> Any:
    """The argument @name of typer, which names @what and must not be empty."""
    return typer.Argument(metavar=name, parser=given(name, what, make), help=tells, **more)


def text_option(name: str, metavar: str, what: str, tells: str, **more: Any) -> Any:
    """The option @name of typer, which names @what and must not be empty."""
    return typer.Option(name, metavar=metavar, parser=given(name, what, str), help=tells, **more)


def flag(name: str, tells: str, **more: Any) -> Any:
    """The option @name of typer, which takes no value; of itself typer would say <bool>."""
    return typer.Option(name, metavar="", help=tells, **more)


def reveal(context: typer.Context, panel: str) -> None:
    """Let --help, and completion, have the options of @panel, which one mode alone needs."""
    for param in context.command.params:
        if getattr(param, "rich_help_panel", None) == panel:
            param.hidden = False  # type: ignore[attr-defined]


class Form(enum.StrEnum):
    """Of what is no result."""

    table = "table"
    json = "json"


ToOption = Annotated[
    Path | None,
    path_option(
        "--to",
        "a file",
        "Write the results to this file, whole or not at all.",
        rich_help_panel=RESULTS,
    ),
]
ForceOption = Annotated[
    bool, flag("--force", "Replace files that are there.", rich_help_panel=RESULTS)
]
FormOption = Annotated[
    Form, typer.Option("--output", metavar="FORM", help="As a table, or as json.")
]
PlotOption = Annotated[
    Path | None,
    path_option(
        "--plot",
        "a .svg, .png or .pdf file",
        "Draw the picture too, as .svg, .png or .pdf.",
        rich_help_panel=RESULTS,
    ),
]
ParallelOption = Annotated[
    int,
    typer.Option(
        "--parallel", metavar="N", min=0, help="Simulations at once; 0: one per processor."
    ),
]


def given_options(context: typer.Context) -> dict[str, Any]:
    """The options that stand on the command line, by name; of a list what it begins with."""
    found = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.param_type_name == "option" and getattr(source, "name", "") != "DEFAULT":
            value = context.params[parameter.name or ""]
            found[parameter.opts[0]] = value[0] if isinstance(value, (list, tuple)) else value
    return found
