# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own test suites under a scheduler, beside mq-deadline (make blktests).

    BLKTESTS=DIR python bench/table.py blktests [GROUP|TEST...]
    XFSTESTS=DIR python bench/table.py xfstests [--files TYPE] [GROUP|TEST...]
        [--kernel SUITE]... [--scheduler NAME]... [--first N] [--seconds N] [--limit N] [--to FILE]

DIR is a checkout of the suite; a copy of it is built and run on Debian's stock kernels under qemu,
as root (kernel/qemu/suites.sh is the script there). The exit status is 1 when a test fails under
another scheduler that passes under the first.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamsched.base.cache import kept_in
from streamsched.base.errors import StreamschedError, UsageError
from streamsched.base.files import Target, check_output, read_whole, target, write_whole
from streamsched.hosts import hddemu
from streamsched.hosts.rig import source_root
from streamsched.sim.diskfile import load_disk
from tables.machine import command, positive, printed

WHERE = {
    "blktests": "https://github.com/linux-blktests/blktests",
    "xfstests": "https://git.kernel.org/pub/scm/fs/xfs/xfstests-dev.git",
}
GROUPS = {
    "blktests": ("block", "loop", "dm", "md", "nbd", "scsi", "throtl", "ublk", "zbd"),
    "xfstests": ("quick", "log"),
}
LEFT_BY_RUNS = (".git", "results", "config", "local.config")
SCHEDULERS = ("mq-deadline", "stream")
DISK = "exos-x18"
# Of the machine's start, which has to wait for others on this one.
BOOT_SECONDS = 1200

Key = tuple[str, str]  # test, device


@dataclass(frozen=True)
class Result:
    """What became of a test on a device."""

    status: str  # pass, fail, skip
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}" if self.reason else self.status


MISSING = Result("fail", "no result")


@dataclass
class Log:
    """What the machine has written of its tests (kernel/qemu/suites.sh)."""

    results: dict[Key, Result] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    ended: bool = False

    @classmethod
    def parse(cls, text: str) -> Log:
        """The log; a test that has no result stopped the machine, and has failed."""
        log = cls()
        for line in text.splitlines():
            if line == "end":
                log.ended = True
            elif line.startswith("begin "):
                log.begun.append(line.removeprefix("begin "))
            else:
                test, device, status, reason = line.split("\t")
                log.results[test, device] = Result(status, reason)
        if log.begun and not log.ended and log.begun[-1] not in {test for test, _ in log.results}:
            log.results[log.begun[-1], "-"] = Result("fail", "the machine stopped")
        return log


def script(name: str) -> Path:
    """One of the scripts that boot stock kernels."""
    return source_root() / "kernel" / "qemu" / name


def checkout(suite: str) -> Path:
    """The folder of the suite that the environment names."""
    name = suite.upper()
    folder = os.environ.get(name)
    if not folder:
        raise UsageError(
            f"{name} is not set: set it to a checkout of {suite} (git clone {WHERE[suite]})"
        )
    if not (Path(folder) / "check").is_file() or not (Path(folder) / "tests").is_dir():
        raise UsageError(f"{name}={folder} is no checkout of {suite} (git clone {WHERE[suite]})")
    return Path(folder)


def copy_suite(folder: Path, to: Path) -> None:
    """Copy a checkout without what runs leave in it; below, such names are the suite's own."""

    def left(inside: str, _: object) -> tuple[str, ...]:
        return LEFT_BY_RUNS if Path(inside) == folder else ()

    shutil.copytree(folder, to, symlinks=True, ignore=left)


def group_of(suite: str, folder: Path, group: str, files: str) -> list[str]:
    """The tests of a group: a folder of blktests, a word in tests of xfstests."""
    folders = (group,) if suite == "blktests" else ("generic", files)
    found = [
        path
        for name in folders
        for path in sorted((folder / "tests" / name).glob("[0-9][0-9][0-9]"))
    ]
    if suite == "xfstests":
        word = re.compile(rf"^_begin_fstest\b.* {re.escape(group)}( |$)", re.M)
        found = [path for path in found if word.search(path.read_text(errors="replace"))]
    return [f"{path.parent.name}/{path.name}" for path in found]


def tests_of(suite: str, folder: Path, arguments: argparse.Namespace) -> list[str]:
    """The tests that are asked for by names of groups and tests."""
    found: list[str] = []
    for name in arguments.tests or GROUPS[suite]:
        if re.fullmatch(r"\w+/\d{3}", name) and (folder / "tests" / name).is_file():
            found.append(name)
            continue
        tests = group_of(suite, folder, name, arguments.files) if name.isalnum() else []
        if not tests:
            raise UsageError(f"{folder}: there is no test and no group {name}")
        found += tests[: arguments.first]
    return list(dict.fromkeys(found))


@dataclass
class Machine:
    """A stock kernel with the built suite and the modules."""

    kernel: str
    work: Path
    release: str = ""

    def prepare(self, suite: str, folder: Path) -> None:
        """Build what the tests need; @folder is not changed."""
        fetched = command(script("fetch.sh"), "--suites", self.kernel, what="fetch.sh")
        self.release = fetched.split()[-1]
        share, modules = self.work / "share", self.work / "modules"
        share.mkdir()
        copy_suite(folder, share / "suite")
        command(script("build.sh"), self.kernel, modules, what="building the modules")
        for module in ("stream-iosched.ko", "hdd-emu.ko"):
            shutil.copy(modules / module, share)
        command(
            *[script("inside.sh"), "--tools", "--with", self.layer("suites")],
            *["--bind", f"{share / 'suite'}:/suite", self.kernel, "make", "-j2", "-C", "/suite"],
            what=f"building {suite}",
        )
        disk = hddemu.script("emu0", load_disk(DISK), {"size_sectors": "2097152"})
        (share / "emu0.sh").write_text(disk)

    def layer(self, name: str) -> Path:
        """A layer that fetch.sh has made."""
        return kept_in("stock", "stock kernels") / self.release / name

    def boot(self, tests: Sequence[str], arguments: Sequence[str], limit: int) -> Log:
        """Run the tests, as far as the machine comes."""
        share, start = self.work / "share", self.work / "start"
        log, image = share / "log", self.work / "vda"
        log.write_text("")
        (share / "tests").write_text("".join(f"{test}\n" for test in tests))
        start.write_text(f"#!/bin/sh\nexec /share/suites.sh {' '.join(arguments)}\n")
        shutil.copy(script("suites.sh"), share)
        with image.open("wb") as file:
            file.truncate(4 << 30)
        words = [
            *[script("boot.sh"), "--with", self.layer("tools"), "--with", self.layer("suites")],
            *["--share", share, "--memory", 3072, "--start", 600],
            *["--timeout", BOOT_SECONDS + limit * len(tests)],
            *[self.kernel, start, "-drive", f"if=virtio,format=raw,file={image}"],
        ]
        said = printed(words).stdout
        (self.work / "boot").write_text(said)
        found = Log.parse(log.read_text(errors="replace"))
        if not found.begun:
            last = "\n".join(said.splitlines()[-12:])
            raise StreamschedError(f"{self.kernel}: the machine did not come to a test:\n{last}")
        return found


def run(
    machine: Machine, tests: Sequence[str], words: Sequence[str], limit: int
) -> Iterator[dict[Key, Result]]:
    """The results of each boot: after a test that stops the machine it is booted again."""
    left = list(tests)
    while left:
        log = machine.boot(left, words, limit)
        left = [] if log.ended else left[len(log.begun) :]
        print(f"{machine.release}, {words[1]}: {len(left)} of {len(tests)} left", file=sys.stderr)
        yield log.results


Table = dict[str, dict[Key, Result]]  # by scheduler


def worse(table: Table) -> list[str]:
    """What passes under the first scheduler and fails under another one."""
    first, *others = table
    pairs = [
        (key, other, table[other].get(key, MISSING))
        for other in others
        for key, before in table[first].items()
        if before.status == "pass"
    ]
    return [
        f"{test} on {device}: {result} under {other}"
        for (test, device), other, result in pairs
        if result.status == "fail"
    ]


def counts(results: Iterable[Result]) -> str:
    """So many of each status."""
    found = [one.status for one in results]
    return ", ".join(f"{found.count(one)} {one}" for one in ("pass", "fail", "skip"))


def chapter(release: str, table: Table) -> str:
    """The kernel's part of the document."""
    lines = [f"## Linux {release}", ""]
    lines += [f"{name}: {counts(results.values())}." for name, results in table.items()]
    bad = worse(table)
    lines += [f"Worse than under {next(iter(table))}: {len(bad)}.", ""]
    lines += [f"| test | disk | {' | '.join(table)} |", "|---" * (2 + len(table)) + "|"]
    keys = sorted({key for results in table.values() for key in results})
    for key in keys:
        cells = [str(results.get(key, "-")).replace("|", "/") for results in table.values()]
        lines.append(f"| {' | '.join([*key, *cells])} |")
    return "\n".join(lines) + "\n"


HEAD = """<!-- SPDX-License-Identifier: GPL-2.0-only -->
# {suite} under the schedulers

Written by `make {suite}`; do not edit. What is run, and on what:
[KERNEL.md](../internals/KERNEL.md#the-kernels-own-tests). The rows of tests that are run are
written anew.
"""
CHAPTER = re.compile(r"^## Linux (\S+)\n([\s\S]*?)(?=^## |\Z)", re.M)


def known(old: str, release: str, schedulers: Sequence[str]) -> Table:
    """The results that a document has of this kernel, if it has them of these schedulers."""
    text = dict(CHAPTER.findall(old)).get(release, "")
    table: Table = {name: {} for name in schedulers}
    if f"| test | disk | {' | '.join(schedulers)} |" not in text:
        return table
    for row in re.findall(r"^\| (\w+/\d+) \| (.*) \|$", text, re.M):
        device, *cells = row[1].split(" | ")
        for name, cell in zip(schedulers, cells, strict=True):
            if cell != "-":
                table[name][row[0], device] = Result(*cell.split(": ", 1))
    return table


def document(suite: str, old: str, release: str, new: str) -> str:
    """The document with the chapter of this kernel anew, instead of one of its patch levels."""
    series = release.split(".")[:2]
    kept = {name: text for name, text in CHAPTER.findall(old) if name.split(".")[:2] != series}
    kept[release] = new.split("\n", 1)[1]
    order = sorted(kept, key=lambda name: [int(part) for part in name.split(".")[:2]])
    bodies = [f"## Linux {name}\n{kept[name].rstrip()}\n" for name in order]
    return "\n".join([HEAD.format(suite=suite), *bodies])


def fill(
    table: Table, machine: Machine, tests: Sequence[str], arguments: argparse.Namespace
) -> Iterator[None]:
    """Run the tests under each of the table's schedulers; a row is new after each boot."""
    suite = arguments.suite
    for scheduler, results in table.items():
        words = [suite, scheduler, str(arguments.seconds), str(arguments.limit)]
        words += [arguments.files] if suite == "xfstests" else []
        for key in [*results]:
            if key[0] in tests and (suite == "blktests" or key[1] in ("-", arguments.files)):
                del results[key]
        output = machine.work / "share" / "out"
        shutil.rmtree(output, ignore_errors=True)
        for found in run(machine, tests, words, arguments.limit):
            results.update(found)
            yield
        if arguments.keep:
            kept = arguments.keep / machine.release / scheduler
            shutil.copytree(output, kept, dirs_exist_ok=True)


def compare(arguments: argparse.Namespace) -> None:
    """Run the suite on each kernel, under each scheduler; fail when one is worse."""
    suite, to = arguments.suite, target(arguments.to, arguments.force)
    folder = checkout(suite)
    tests = tests_of(suite, folder, arguments)
    check_output(to)
    bad: list[str] = []
    for kernel in arguments.kernel or ["trixie"]:
        with tempfile.TemporaryDirectory(prefix="kernel-suites.") as work:
            machine = Machine(kernel, Path(work))
            machine.prepare(suite, folder)
            old = read_whole(to.path) if to and to.path.exists() else ""
            table = known(old, machine.release, arguments.scheduler or SCHEDULERS)
            for _ in fill(table, machine, tests, arguments):
                if to:
                    text = document(suite, old, machine.release, chapter(machine.release, table))
                    write_whole(to, text)
                    to = Target(to.path, replace=True)  # it is this command's from now on
        print(chapter(machine.release, table))
        bad += [f"{machine.release}: {line}" for line in worse(table)]
    if bad:
        raise StreamschedError("\n".join(bad))


def measure(words: Sequence[str]) -> None:
    """The suite, and what else @words say."""
    parser = argparse.ArgumentParser(prog="table.py", description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=sorted(WHERE))
    parser.add_argument("tests", nargs="*", help="groups and tests; all usual groups if none")
    parser.add_argument("--files", choices=("ext4", "xfs", "btrfs"), default="ext4")
    parser.add_argument("--first", type=positive, help="so many tests of each group, no more")
    parser.add_argument("--kernel", action="append", choices=("bookworm", "trixie", "sid"))
    parser.add_argument("--scheduler", action="append", help="the first is compared with")
    parser.add_argument("--seconds", type=positive, default=15, help="of tests without an end")
    parser.add_argument("--limit", type=positive, default=600, help="seconds that a test may take")
    parser.add_argument("--keep", type=Path, help="a folder for what failed tests print")
    parser.add_argument("--to", type=Path, help="a document to write")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    compare(parser.parse_intermixed_args(words))
