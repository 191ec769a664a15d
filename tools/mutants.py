# SPDX-License-Identifier: GPL-2.0-only
"""Put bugs in, one at a time, and see that the tests notice (make mutants).

Each row of tools/mutants.toml is one bug: a text of one file, what stands there instead, and the
tests that must fail then. Nothing of the tree is changed: the bugs go into a copy of it below
build/mutants/, which is built and tested there. The copy is kept, so that a second run need not
set it up again; files that have changed since are copied anew.

    python tools/mutants.py [--list] [WORD...]     only bugs with one of the words in their
                                                   name or their file's
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from check_style import project_files

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tools" / "mutants.toml"
SCRATCH = ROOT / "build" / "mutants"
# A bug may make a test wait for ever: that is noticed, too.
TEST_S = 600
# What is compiled again when a file there has changed.
STEPS = {"nbdkit": "nbdkit", "kernel": None}


@dataclass(frozen=True)
class Mutant:
    """One bug."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]

    def mutated(self) -> str:
        """The file with the bug in it."""
        return (ROOT / self.file).read_text().replace(self.old, self.new)

    def mistake(self) -> str | None:
        """Why it cannot be put in, or None."""
        if not (ROOT / self.file).is_file():
            return f"{self.name}: there is no file {self.file}"
        found = (ROOT / self.file).read_text().count(self.old)
        if found != 1:
            return f"{self.name}: its old text is {found} times in {self.file}, not once"
        if self.old == self.new:
            return f"{self.name}: its new text is the old one"
        missing = [test for test in self.tests if not (ROOT / test.split("::")[0]).is_file()]
        if missing or not self.tests:
            return f"{self.name}: there is no test {', '.join(missing) or 'named'}"
        return None


def load() -> list[Mutant]:
    """The table."""
    return [Mutant(**row) for row in tomllib.loads(TABLE.read_text())["mutant"]]


def run(*command: str, seconds: float | None = None) -> subprocess.CompletedProcess[str]:
    """A command in the copy."""
    # A process group of its own: what a test leaves behind at its time limit goes with it.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("VENV", "MAKEFLAGS")
    }
    environment.setdefault("HYPOTHESIS_PROFILE", "mutants")  # tests/conftest.py
    process = subprocess.Popen(
        command,
        cwd=SCRATCH,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except BaseException:
        os.killpg(process.pid, 9)
        process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, output)


def step_of(file: str) -> str | None:
    """What setup.sh has to do again when this file has changed, if anything."""
    return STEPS.get(Path(file).parts[0], "package")


def build(step: str | None) -> str | None:
    """What went wrong, or None."""
    if step is None:
        return None
    done = run("tools/setup.sh", step)
    return done.stdout if done.returncode else None


def copy_tree() -> None:
    """Files of the tree that are not in the copy as they are; what is gone goes."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    names = {str(path.relative_to(ROOT)) for path in project_files()}
    copied = SCRATCH / "copied"
    before = set(copied.read_text().splitlines()) if copied.exists() else set()
    for name in sorted(before - names):
        (SCRATCH / name).unlink(missing_ok=True)
    for name in sorted(names):
        source, target = ROOT / name, SCRATCH / name
        data = source.read_bytes()
        if not target.is_file() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(source.stat().st_mode)
    copied.write_text("\n".join(sorted(names)) + "\n")


def set_up() -> None:
    """The copy, built, with what tests it."""
    copy_tree()
    for step in ("tools", "package", "dev", "nbdkit"):
        print(f"==> setting up the copy: {step}", flush=True)
        wrong = build(step)
        if wrong:
            sys.exit(f"mutants: the copy cannot be built without a bug in it: {wrong}")


def test(tests: list[str], seconds: float | None) -> tuple[str, str]:
    """What became of them: passed, failed, skipped or broken; and what pytest said."""
    command = (".venv/bin/pytest", "--quiet", "-x", "-p", "no:cacheprovider", *tests)
    try:
        done = run(*command, seconds=seconds)
    except subprocess.TimeoutExpired:
        return "failed", f"not done within {seconds:g} s"
    lines = done.stdout.strip().splitlines()
    last = [line for line in lines if line.startswith("FAILED")] or lines[-1:] or [""]
    # Below 0: a bug in C has ended Python.
    if done.returncode == 1 or done.returncode < 0:
        return "failed", last[0]
    if done.returncode:
        return "broken", done.stdout[-2000:]
    return ("passed" if " passed" in last[0] else "skipped"), last[0]


def judge(mutant: Mutant) -> tuple[str, str]:
    """caught, SURVIVED, skipped or BROKEN; and a word on it."""
    target = SCRATCH / mutant.file
    before = target.read_text()
    try:
        target.write_text(mutant.mutated())
        wrong = build(step_of(mutant.file))
        if wrong:
            return "BROKEN", f"it cannot be built: {wrong[-500:]}"
        outcome, said = test(mutant.tests, TEST_S)
    finally:
        target.write_text(before)
    word = {"failed": "caught", "passed": "SURVIVED", "skipped": "skipped", "broken": "BROKEN"}
    return word[outcome], said


def chosen(words: list[str]) -> list[Mutant]:
    """Those that are asked for; ends with a sentence when the table does not fit the tree."""
    mutants = load()
    names = [mutant.name for mutant in mutants]
    if words:
        mutants = [m for m in mutants if any(word in f"{m.name} {m.file}" for word in words)]
    mistakes = [mistake for mutant in mutants if (mistake := mutant.mistake())]
    mistakes += [
        f"{name}: named twice" for name in sorted({n for n in names if names.count(n) > 1})
    ]
    if mistakes:
        sys.exit("\n".join(f"mutants: {mistake}" for mistake in mistakes))
    if not mutants:
        sys.exit(
            f"mutants: no bug has {' or '.join(words)} in its name or its file's; --list lists them"
        )
    return mutants


def main() -> int:
    """Exit code 1 when a bug was not noticed."""
    parser = argparse.ArgumentParser(prog="mutants", description="Do the tests notice bugs?")
    parser.add_argument("--list", action="store_true", help="print their names")
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="only bugs with it in the name or the file's"
    )
    options = parser.parse_args()
    mutants = chosen(options.words)
    if options.list:
        print("\n".join(mutant.name for mutant in mutants))
        return 0
    set_up()
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    print(f"==> {len(tests)} tests without a bug", flush=True)
    outcome, said = test(tests, None)
    if outcome in ("failed", "broken"):
        sys.exit(f"mutants: the tests fail without a bug: {said}")
    counts = {"caught": 0, "SURVIVED": 0, "BROKEN": 0, "skipped": 0}
    for mutant in mutants:
        started = time.monotonic()
        verdict, said = judge(mutant)
        counts[verdict] += 1
        print(f"{verdict:<8} {mutant.name} ({time.monotonic() - started:.0f} s)", flush=True)
        if verdict != "caught":
            print(f"         {said}", flush=True)
    # The last bug is still compiled in.
    for step in sorted({step for mutant in mutants if (step := step_of(mutant.file))}):
        build(step)
    failed = counts["SURVIVED"] + counts["BROKEN"]
    print(f"{counts['caught']} passed, {failed} failed, {counts['skipped']} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
