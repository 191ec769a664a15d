# SPDX-License-Identifier: GPL-2.0-only
"""Completion in shells: every command and option, and a decision about every value."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from said import BIN, ran
from typer.completion import get_completion_inspect_parameters
from typer.testing import CliRunner

from streamsched.cli.main import app

# Values of no list: files, numbers, and what only this machine knows.
FILES = "files the study trace inputs the --to --profile --plot --requests --trace --out what"
NUMBERS = (
    "--queue-depth --seed --parallel --minutes --seconds --runtime --memory --timeout --interval "
    "--wait-target --every"
)
OWN = (
    "--array --set --weight --device --trace-device --scheduler --between --listen --cluster "
    "--variant --kernel command device disk disks name"
)
FREE = set(f"{FILES} {NUMBERS} {OWN}".split())
# What has names, by parameter: one of them.
NAMED = {
    "--disk": "exos-x18",
    "--model": "exos-x18",
    "--policy": "stream:deadline",
    "--among": "mq-deadline",
    "--format": "blkparse",
    "job": "par-read",
    "works": "tpc-h",
    "inputs": "par-read",
    "figures": "fig7",
    "profile disk": "exos-x18",
}


def walk(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command of the program, commands of commands too."""
    yield words, command
    for name, one in getattr(command, "commands", {}).items():
        yield from walk(one, (*words, name))


get_completion_inspect_parameters()  # as streamsched.cli.main does
COMMANDS = dict(walk(typer.main.get_command(app)))


@functools.cache
def offered(*words: str) -> tuple[str, ...]:
    """What fits behind these words and a blank; the last word may be a beginning."""
    variables = {
        "_STREAMSCHED_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": " ".join(("streamsched", *words)),
    }
    result = CliRunner().invoke(app, [], env=variables, prog_name="streamsched")
    return tuple(line.partition("\t")[0] for line in result.stdout.splitlines() if line)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_and_option_is_offered(words: tuple[str, ...]) -> None:
    command = COMMANDS[words]
    names = set(getattr(command, "commands", {}))
    assert names <= set(offered(*words, "")), words
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    options = [name for param in shown for name in param.opts if name[0] == "-"]
    found = set(offered(*words, "--"))
    assert {name for name in options if name.startswith("--")} <= found


VALUES = [
    (words, param)
    for words, command in COMMANDS.items()
    for param in command.params
    if not getattr(param, "is_flag", False) and param.name != "help"
]


@pytest.mark.parametrize(("words", "param"), VALUES, ids=str)
def test_what_has_names_is_offered_by_name(words: tuple[str, ...], param: Any) -> None:
    """A new parameter is here: it offers names, or somebody has said that it has none."""
    option = param.opts[0]
    found = offered(*words, option, "") if option[0] == "-" else offered(*words, "")
    name = NAMED.get(option) or NAMED.get(" ".join((*words, option)))
    if name:
        assert name in found
    else:
        assert bool(found) != (option in FREE), f"{words} {option}: {found}"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("run par-r", ["par-read"]),
        ("run par-read --disk exos-x", ["exos-x18", "exos-x24"]),
        ("run par-read --disk exos-x18,exos-x", ["exos-x18,exos-x24"]),
        ("run par-read --policy noop,stream:dead", ["noop,stream:deadline"]),
        ("run par-read --policy noop,no", []),  # named already
        ("run jobs/par-r", []),  # then shells offer files
        ("run par-read --policy my.py:L", []),
        # What one mode alone needs is offered where that is named.
        ("run par-read --go", []),
        ("run par-read --policy noop,auto --go", ["--goal"]),
        ("run par-read --pat", []),
        ("run par-read --on kernel --pat", ["--path"]),
        ("run par-read --on kernel --path lo", ["loop"]),
        ("reproduce fig", ["fig3", "fig4", "fig5", "fig6", "fig7"]),
    ],
)
def test_words(line: str, found: list[str]) -> None:
    assert list(offered(*line.split(" "))) == found


ASK = """
. packaging/completion/streamsched.bash
COMP_LINE=$1; COMP_POINT=${#1}
_streamsched
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("streamsched research repr", ["reproduce"]),
        ("streamsched run par-r", ["par-read"]),
        # bash completes what stands behind the colon, and the equals sign.
        ("streamsched run par-read --policy stream:dead", ["deadline"]),
        ("streamsched run par-read --policy noop,stream:dead", ["deadline"]),
        ("streamsched run par-read --policy=stream:dead", ["deadline"]),
        ("streamsched run par-read --disk=exos-x2", ["exos-x24"]),
        ("streamsched run jobs/par", [""]),
    ],
)
def test_bash(root: Path, line: str, replies: list[str]) -> None:
    words = ["bash", "--norc", "-c", ASK, "bash", line]
    variables = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = ran(*words, cwd=root, env=variables)
    assert (done.stdout.splitlines(), done.stderr) == (replies, "")


@pytest.mark.e2e
@pytest.mark.skipif(not shutil.which("fish"), reason="fish is missing")
@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("run par-read --policy noop,stream:dead", ["noop,stream:deadline"]),
        ("run par-read --disk exos-x2", ["exos-x24"]),
        ("replay traces/pg", ["traces/pg-scan.blktrace.zst"]),
    ],
)
def test_fish(root: Path, tmp_path: Path, line: str, replies: list[str]) -> None:
    script = f"source packaging/completion/streamsched.fish; complete -C 'streamsched {line}'"
    path = f"{BIN}:{os.environ['PATH']}"
    variables = {**os.environ, "PATH": path, "HOME": str(tmp_path), "XDG_CONFIG_HOME": ""}
    words = ["fish", "--no-config", "-c", script]
    done = ran(*words, cwd=root, env=variables)
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == replies
