# SPDX-License-Identifier: GPL-2.0-only
"""What programs here that boot stock kernels under qemu share."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from streamsched.base.errors import Interrupted, StreamschedError
from streamsched.base.files import check_output, target, write_whole

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not re.fullmatch(r"0*[1-9]\d{0,8}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def printed(words: Iterable[object]) -> subprocess.CompletedProcess[str]:
    """A command that has ended, with all that it printed.

    It has a process group of its own. If this program is stopped before, the whole group is, too:
    scripts and the qemu that they have begun.
    """
    command = [str(word) for word in words]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate()
        except BaseException:
            _end_group(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, said)


def must_print(*command: str | Path) -> str:
    """What a command printed; its last line is the error's."""
    done = printed(command)
    if done.returncode:
        lines = done.stdout.strip().splitlines() or ["no reason was given"]
        raise StreamschedError(f"{Path(command[0]).name} failed: {lines[-1]}")
    return done.stdout


def _end_group(process: subprocess.Popen[str]) -> None:
    """End a command with all that it has begun; scripts have some time to tidy up."""
    for number, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, 1)):
        end = time.monotonic() + seconds
        with contextlib.suppress(ProcessLookupError):  # none is left
            os.killpg(process.pid, number)
            while time.monotonic() < end:
                process.poll()  # one that nobody has waited for is still there
                os.killpg(process.pid, 0)
                time.sleep(0.05)


def write_table(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    make: Callable[[argparse.Namespace], str],
) -> None:
    """What @make says of the options, into the file of --to, which is checked first, or printed."""
    parser.add_argument("--to", type=Path, help="the file to write; else it is printed")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    options = parser.parse_args(arguments)
    to = target(options.to, options.force)
    check_output(to)
    text = make(options)
    if to:
        write_whole(to, text)
    else:
        print(text, end="")


def end_with_signals() -> None:
    """End what printed() runs when a signal ends this program; a second one does not disturb."""

    def stopped(number: int, _: object) -> None:
        for one in STOPPING:
            signal.signal(one, signal.SIG_IGN)
        error = Interrupted("interrupted")
        error.exit_code = 128 + number
        raise error

    for number in STOPPING:
        # What is ignored stays so: nohup, and the shell for a command in the background.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stopped)


def command(*words: object, what: str) -> str:
    """What a command prints; an error with its last lines when it fails."""
    done = printed(words)
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-12:])
        raise StreamschedError(f"{what} failed; its last lines:\n{last}")
    return done.stdout
