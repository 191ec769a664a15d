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
from typing import Annotated

import typer
from typer.completion import get_completion_inspect_parameters

from streamsched import __version__
from streamsched.base.errors import StreamschedError, printable, said
from streamsched.cli import advise as cli_advise
from streamsched.cli import disk as cli_disk
from streamsched.cli import lists as cli_lists
from streamsched.cli import papers as cli_papers
from streamsched.cli import report as cli_report
from streamsched.cli import rig as cli_rig
from streamsched.cli import run as cli_run
from streamsched.cli import study as cli_study
from streamsched.cli import validate as cli_validate
from streamsched.cli import watch as cli_watch
from streamsched.cli.options import FLAG
from streamsched.hosts import kernelarray

app = typer.Typer(
    name="streamsched",
    help="Compare disk schedulers, stream scheduling among them, in virtual time.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# In the order of --help.
app.command()(cli_run.run)
app.command()(cli_run.replay)
app.command()(cli_study.study)
app.command()(cli_report.report)
app.command()(cli_lists.policies)
app.command()(cli_lists.disks)
app.command()(cli_lists.formats)
app.command()(cli_lists.workloads)
app.command()(cli_lists.tunables)
app.command()(cli_papers.reproduce)
app.command("compare")(cli_papers.compare_all)
app.command()(cli_papers.frontier)
app.command()(cli_disk.calibrate)
app.command("auto")(cli_disk.auto_)
app.command("profile")(cli_disk.profile_)
app.command("doctor")(cli_disk.doctor_)
app.command("top")(cli_watch.top_)
app.command("exporter")(cli_watch.exporter_)
app.command("measure")(cli_watch.measure_)
app.command()(cli_advise.advise)
app.add_typer(cli_validate.app, name="validate")
app.add_typer(cli_rig.app, name="rig")
app.add_typer(kernelarray.app, name="array")


def _version(value: bool) -> None:
    if value:
        print(f"streamsched {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar=FLAG, callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Compare disk schedulers, stream scheduling among them, in virtual time."""


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _usage_sentence(error: Exception) -> str:
    """What typer's parser refuses, as one sentence that ends with where to look.

    typer carries its own copy of click, whose exceptions have no public names; what they share is
    format_message() and the context in which they were raised.
    """
    message: str = error.format_message()  # type: ignore[attr-defined]
    message = " ".join(message.replace("Value error, ", "").split()).rstrip(".")
    message = re.sub(r"\. (Did you mean .*\?)$", lambda hint: f" ({_lower(hint[1])})", message)
    message = message.replace(": Input should be ", ": it must be ")
    message = message.partition(", unable to parse ")[0]
    message = re.sub(r": Unable to parse .* exceeded maximum size", ": it is too large", message)
    # A command of commands, alone: its help has been printed, and that is all its exception says.
    message = _lower(message) or "name a command"
    context = getattr(error, "ctx", None)
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
        code = app(standalone_mode=False)
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
        print("streamsched: out of memory; take less work, or fewer --jobs", file=sys.stderr)
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
