# SPDX-License-Identifier: GPL-2.0-only
"""The command line: what commands there are, and how they end.

Each command checks all it was given before it begins.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import typer
import typer.core
import typer.main
from typer.completion import get_completion_inspect_parameters

import streamsched
from streamsched.base.errors import StreamschedError, UsageError, printable, said
from streamsched.base.signals import raise_again
from streamsched.cli.options import flag

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
HELP = "Schedulers for rotating disks: compared in a simulator, and looked after on real disks."
# Options that had another name, and what they are called now.
RENAMED = {"--jobs": "--parallel", "--disk": "--model"}
# What `list` lists, once commands of their own.
LISTS = ("policies", "disks", "workloads", "formats", "tunables")
# What the --help of some ends with.
MORE = "`--policy auto --help` shows what only that policy needs."
RUN_MORE = f"{MORE} `--on kernel --help` shows what only a real kernel needs."
# The panels of --help.
DISKS, SIMULATE, RESEARCH, KERNEL = "My disks", "Simulate", "Research", "Kernel"


class Place(NamedTuple):
    """Where a command, or a group of commands, is, and its panel of --help."""

    module: str  # in streamsched
    name: str  # a function, or a typer.Typer
    panel: str = ""
    more: str = ""  # what its --help ends with


# The commands and groups of `streamsched research`, which were the program's own once.
OF_RESEARCH = {
    "reproduce": Place("cli.papers", "reproduce"),
    "compare": Place("cli.papers", "compare_all"),
    "bound": Place("cli.bound", "bound"),
    "frontier": Place("cli.papers", "frontier"),
    "validate": Place("cli.validate", "app"),
}
# The program's, in the order of --help.
COMMANDS = {
    "doctor": Place("cli.disk", "doctor_", DISKS),
    "enable": Place("cli.enable", "enable_", DISKS),
    "disable": Place("cli.enable", "disable_", DISKS),
    "advise": Place("cli.advise", "advise", DISKS),
    "measure": Place("cli.watch", "measure_", DISKS),
    "top": Place("cli.watch", "top_", DISKS),
    "exporter": Place("cli.watch", "exporter_", DISKS),
    "weights": Place("cli.watch", "weights_", DISKS),
    "auto": Place("cli.auto", "auto_", DISKS),
    "calibrate": Place("cli.disk", "calibrate", DISKS),
    "run": Place("cli.run", "run", SIMULATE, RUN_MORE),
    "replay": Place("cli.run", "replay", SIMULATE, MORE),
    "report": Place("cli.report", "report", SIMULATE, MORE),
    "profile": Place("cli.disk", "profile_", SIMULATE),
    "study": Place("cli.study", "study", RESEARCH),
    "array": Place("hosts.kernelarray", "app", DISKS),
    "list": Place("cli.lists", "app", SIMULATE),
    "research": Place("cli.main", "research", RESEARCH),
    "rig": Place("cli.rig", "app", KERNEL),
    "hdd-emu": Place("hosts.hddemu", "app", KERNEL),
}


def _in_full(words: list[str]) -> list[str]:
    """A call's words, with the group of a command that was the program's own once."""
    return ["research", *words] if words and words[0] in OF_RESEARCH else words


class _Loaded(Mapping[str, Any]):
    """Commands by name, each imported when it is asked for: most starts need one of them."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self.places = places
        self.loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.loaded:
            self.loaded[name] = _load(name, self.places[name])
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


def _load(name: str, place: Place) -> Any:
    command: Any
    try:
        found = getattr(importlib.import_module(f"streamsched.{place.module}"), place.name)
    except ImportError as error:
        raise StreamschedError(f"cannot be loaded: {error}") from None
    if isinstance(found, typer.Typer):
        command = typer.main.get_group(found)
    else:
        alone = typer.Typer(add_completion=False)
        alone.command(name, epilog=place.more or None)(found)
        command = typer.main.get_command(alone)
    command.name = name
    command.rich_help_panel = place.panel
    return _without_types(command)


class _Group(typer.core.TyperGroup):
    """Commands that are imported when they are asked for."""

    places: Mapping[str, Place]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = _Loaded(self.places)  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.places)


class _Research(_Group):
    places = OF_RESEARCH


class _Commands(_Group):
    """The program's; what had another name is refused by the new one."""

    places = COMMANDS

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in LISTS:
            raise UsageError(f"{args[0]}: is called `streamsched list {args[0]}` now")
        return super().resolve_command(ctx, _in_full(args))


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
    cls=_Research,
    no_args_is_help=True,
    help="Repeat the papers, compare all schedulers, and see what is left.",
)


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
    commands = getattr(command, "commands", {})
    for one in () if isinstance(commands, _Loaded) else commands.values():
        _without_types(one)
    return command


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _asked() -> str:
    """The command that is called, as its words name it."""
    command = typer.main.get_command(app)
    path = ["streamsched"]
    for word in _in_full(sys.argv[1:]):
        commands = getattr(command, "commands", {})
        if word not in commands:
            break
        command = commands[word]
        path.append(word)
    return " ".join(path)


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
    if context and context.info_name == "auto":
        from streamsched.cli.auto import GONE

        if option in GONE:
            return f"{option}: {GONE[option]}"
    message: str = error.format_message()  # type: ignore[attr-defined]
    message = " ".join(message.replace("Value error, ", "").split()).rstrip(".")
    message = re.sub(r"\. (Did you mean .*\?)$", lambda hint: f" ({_lower(hint[1])})", message)
    message = message.replace(": Input should be ", ": it must be ")
    message = message.partition(", unable to parse ")[0]
    message = re.sub(r": Unable to parse .* exceeded maximum size", ": it is too large", message)
    # A command of commands, alone: its help has been printed, and that is all its exception says.
    message = _lower(message) or "name a command"
    # Of an option without its argument the parser does not say whose it is.
    command = context.command_path if context else _asked()
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
    raise_again(stopped)
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
    except (ImportError, SystemError) as error:
        # Of what only this command imports; the second is Python's own, short of memory.
        print(f"streamsched: cannot be loaded: {printable(str(error))}", file=sys.stderr)
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
