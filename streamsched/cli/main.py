# SPDX-License-Identifier: GPL-2.0-only
"""The command line: what commands there are, and how they end.

Each command checks all it was given before it begins.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
import typer.core
import typer.main
from typer.completion import get_completion_inspect_parameters

import streamsched
from streamsched.base.errors import StreamschedError, UsageError, printable, said
from streamsched.cli import advise as cli_advise
from streamsched.cli import auto as cli_auto
from streamsched.cli import bound as cli_bound
from streamsched.cli import disk as cli_disk
from streamsched.cli import enable as cli_enable
from streamsched.cli import lists as cli_lists
from streamsched.cli import papers as cli_papers
from streamsched.cli import report as cli_report
from streamsched.cli import rig as cli_rig
from streamsched.cli import run as cli_run
from streamsched.cli import study as cli_study
from streamsched.cli import validate as cli_validate
from streamsched.cli import watch as cli_watch
from streamsched.cli.options import flag
from streamsched.hosts import hddemu, kernelarray

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
HELP = "Schedulers for rotating disks: compared in a simulator, and looked after on real disks."
# Options that had another name, and what they are called now.
RENAMED = {"--jobs": "--parallel", "--disk": "--model"}
# What `list` lists, once commands of their own.
LISTS = ("policies", "disks", "workloads", "formats", "tunables")


class _Commands(typer.core.TyperGroup):
    """The commands; what had another name is refused by the new one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in LISTS:
            raise UsageError(f"{args[0]}: is called `streamsched list {args[0]}` now")
        if args[0] in research_names():
            args = ["research", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="streamsched",
    cls=_Commands,
    help=HELP,
    epilog="Begin with `streamsched run direct-readers`, or with `streamsched doctor`.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)
# What compares schedulers with papers, bounds and published figures.
research = typer.Typer(
    no_args_is_help=True, help="Repeat the papers, compare all schedulers, and see what is left."
)
research.command("reproduce")(cli_papers.reproduce)
research.command("compare")(cli_papers.compare_all)
research.command("bound")(cli_bound.bound)
research.command("frontier")(cli_papers.frontier)
research.add_typer(cli_validate.app, name="validate")


def research_names() -> list[str]:
    """Of its commands, which were the program's own, and are still found so."""
    commands = [one.name for one in research.registered_commands]
    return [name for name in (*commands, *(one.name for one in research.registered_groups)) if name]


# The commands and the groups of --help, in its order.
DISKS, SIMULATE, RESEARCH, KERNEL = "My disks", "Simulate", "Research", "Kernel"
app.command("doctor", rich_help_panel=DISKS)(cli_disk.doctor_)
app.command("enable", rich_help_panel=DISKS)(cli_enable.enable_)
app.command("disable", rich_help_panel=DISKS)(cli_enable.disable_)
app.command("advise", rich_help_panel=DISKS)(cli_advise.advise)
app.command("measure", rich_help_panel=DISKS)(cli_watch.measure_)
app.command("top", rich_help_panel=DISKS)(cli_watch.top_)
app.command("exporter", rich_help_panel=DISKS)(cli_watch.exporter_)
app.command("weights", rich_help_panel=DISKS)(cli_watch.weights_)
app.command("auto", rich_help_panel=DISKS)(cli_auto.auto_)
app.command("calibrate", rich_help_panel=DISKS)(cli_disk.calibrate)
app.command("run", rich_help_panel=SIMULATE, epilog=cli_run.RUN_MORE)(cli_run.run)
app.command("replay", rich_help_panel=SIMULATE, epilog=cli_run.MORE)(cli_run.replay)
app.command("report", rich_help_panel=SIMULATE, epilog=cli_run.MORE)(cli_report.report)
app.command("profile", rich_help_panel=SIMULATE)(cli_disk.profile_)
app.command("study", rich_help_panel=RESEARCH)(cli_study.study)
app.add_typer(kernelarray.app, name="array", rich_help_panel=DISKS)
app.add_typer(cli_lists.app, name="list", rich_help_panel=SIMULATE)
app.add_typer(research, name="research", rich_help_panel=RESEARCH)
app.add_typer(cli_rig.app, name="rig", rich_help_panel=KERNEL)
app.add_typer(hddemu.app, name="hdd-emu", rich_help_panel=KERNEL)


def _version(value: bool) -> None:
    if value:
        print(f"streamsched {streamsched.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, flag("--version", "Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options of the program itself."""


def _without_types(command: Any) -> Any:
    """@command, whose --help says <bool> of no flag, <str> of no argument, and no default None."""
    asks = command.get_help_option(typer.Context(command, **SETTINGS))
    for param in (*command.params, asks):
        if param is asks or param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None
        if param.default is None and param.show_default is True:  # typer 0.15 would say None
            param.show_default = False
    for one in getattr(command, "commands", {}).values():
        _without_types(one)
    return command


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _usage_sentence(error: Exception) -> str:
    """What typer's parser refuses, as one sentence that ends with where to look.

    typer carries its own copy of click, whose exceptions have no public names; what they share is
    format_message() and the context in which they were raised.
    """
    context = getattr(error, "ctx", None)
    option = getattr(error, "option_name", "")
    new = RENAMED.get(option)
    if context and any(new in param.opts for param in context.command.params):
        return f"{option}: is called {new} now"
    if context and context.info_name == "auto" and option in cli_auto.GONE:
        return f"{option}: {cli_auto.GONE[option]}"
    message: str = error.format_message()  # type: ignore[attr-defined]
    message = " ".join(message.replace("Value error, ", "").split()).rstrip(".")
    message = re.sub(r"\. (Did you mean .*\?)$", lambda hint: f" ({_lower(hint[1])})", message)
    message = message.replace(": Input should be ", ": it must be ")
    message = message.partition(", unable to parse ")[0]
    message = re.sub(r": Unable to parse .* exceeded maximum size", ": it is too large", message)
    # A command of commands, alone: its help has been printed, and that is all its exception says.
    message = _lower(message) or "name a command"
    command = context.command_path if context else "streamsched"
    return f"{message}; `{command} --help` lists what there is"


class _Stdout(io.TextIOWrapper):
    """Standard output, whose errors are told from those of other files."""

    def write(self, text: str) -> int:
        with _printing():
            return super().write(text)

    def flush(self) -> None:
        with _printing():
            super().flush()


@contextlib.contextmanager
def _printing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # What is still held would be tried again at the end, with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):  # who reads has had enough
            raise
        raise StreamschedError(f"standard output: {error.strerror}") from None


def _open_closed() -> None:
    """No file that is opened may be taken for a standard one: by us, by what we start.

    What is printed where standard output was closed is an error, not nothing.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # the lowest number that is free
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))
    if sys.stderr is None:
        sys.stderr = io.StringIO()


def _watch_stdout() -> None:
    out = sys.stdout
    if type(out) is io.TextIOWrapper:  # another where it is captured
        sys.stdout = _Stdout(
            out.detach(),
            out.encoding,
            # The name of a file may be no UTF-8, and a terminal may not have all characters.
            "backslashreplace" if out.errors == "strict" else out.errors,
            line_buffering=out.line_buffering,
            write_through=out.write_through,
        )


def main() -> None:
    """Entry point: errors are one sentence and an exit code, never a traceback."""

    def stopped(number: int, _frame: object) -> None:
        # As for Ctrl-C: rigs, servers and workers that were started are stopped, files are whole.
        # Once: `timeout` sends two, and a second one would break that off.
        for once in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(once, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, stopped)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        signal.signal(signal.SIGHUP, stopped)
    _open_closed()
    _watch_stdout()
    try:
        if "_STREAMSCHED_COMPLETE" in os.environ:  # a shell asks (packaging/completion)
            get_completion_inspect_parameters()  # which has typer answer its shells
        if len(sys.argv) == 1:
            sys.argv.append("--help")
        code = _without_types(typer.main.get_command(app))(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code)
    except StreamschedError as error:
        print(f"streamsched: {said(error)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except MemoryError:
        print("streamsched: out of memory; take less work, or lower --parallel", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        # What no other place has a sentence for: of the machine, not of the code.
        what = f"{error.filename}: " if error.filename else ""
        print(f"streamsched: {printable(f'{what}{error.strerror or error}')}", file=sys.stderr)
        sys.exit(1)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        print(f"streamsched: {printable(_usage_sentence(error))}", file=sys.stderr)
        sys.exit(2)
