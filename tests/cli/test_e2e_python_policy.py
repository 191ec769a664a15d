# SPDX-License-Identifier: GPL-2.0-only
"""Policies in Python on the command line: what is wrong with one is one sentence."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from said import COMMAND, ROOT, ran

JOB = ROOT / "tests/data/e2e/two-readers.fio"
LIFO = (ROOT / "examples/lifo.py").read_text()

BAD = (
    LIFO
    + """

class Raises(Lifo):
    left = 20

    def choose(self, now_ns, head_sector):
        self.left -= 1
        print("left:", self.left)
        return self.stack[-1 if self.left else 99]


class Few(Lifo):
    def choose(self, now_ns):
        return None


class Made(Lifo):
    def __init__(self, depth):
        pass


class Lacks:
    arrived = dispatched = Lifo.arrived
    choose = Lifo.choose


class Loops(Lifo):
    def dispatched(self, request, now_ns):
        while True:
            pass


def function():
    pass
"""
)


def line_of(text: str) -> int:
    return BAD.splitlines().index(text) + 1


def run(folder: Path, policy: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [COMMAND, "run", JOB, "--policy", policy, *options]
    return ran(*command, cwd=folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my.py").write_text(BAD)
    return tmp_path


CASES = {
    "gone.py:A": "gone.py: cannot read it: No such file or directory",
    "d.py:A": "d.py: cannot read it: Is a directory",
    "my.py": 'policy "my.py": name its class too, as in my.py:Lifo',
    "my.py:Lfio": "my.py: unknown class 'Lfio'; did you mean 'Lifo'?",
    "my.py:function": "my.py: unknown class 'function'; there are: Lifo, Raises, Few, Made, "
    "Lacks, Loops",
    "syntax.py:A": "syntax.py: line 2: is no Python: ",
    "bytes.py:A": "bytes.py: is no Python: ",
    "empty.py:A": "empty.py: has no class; write one, as docs/sim/POLICY-IN-PYTHON.md has it",
    "raises.py:A": "raises.py: line 2: raised ZeroDivisionError: division by zero, when "
    "raises.py was loaded; mend that line",
    "exits.py:A": "exits.py: line 1: raised SystemExit: 0, when exits.py was loaded; mend that",
    "my.py:Few": f"my.py: line {line_of('    def choose(self, now_ns):')}: Few.choose(now_ns) "
    "must take (now_ns, head_sector)",
    "my.py:Made": f"my.py: line {line_of('class Made(Lifo):')}: Made() raised TypeError: ",
    "my.py:Lacks": f"my.py: line {line_of('class Lacks:')}: Lacks has no method "
    "removed(request, now_ns); `removed = dispatched` will often do",
    "stream:my.py:Lifo": 'policy "stream:my.py:Lifo": stream wraps policies of the core only; '
    "leave stream: out",
    "nwcs:my.py:Lifo": 'policy "nwcs:my.py:Lifo": nwcs wraps policies of the core only',
}


@pytest.mark.parametrize("policy", CASES)
def test_what_is_no_policy_is_refused_at_once(folder: Path, policy: str) -> None:
    (folder / "d.py").mkdir()
    (folder / "syntax.py").write_text("class A:\n    def x(self)\n")
    (folder / "bytes.py").write_bytes(b"\xff\xfe\x00")
    (folder / "empty.py").write_text("x = 1\n")
    (folder / "raises.py").write_text("class A: pass\n1 / 0\n")
    (folder / "exits.py").write_text("raise SystemExit(0)\n")
    before = sorted(folder.iterdir())
    done = run(folder, f"noop,{policy}")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"streamsched: {CASES[policy]}")
    assert sorted(folder.iterdir()) == before  # no __pycache__


def test_others_results_are_kept_when_one_fails(folder: Path) -> None:
    done = run(folder, "noop,my.py:Raises,my.py:Lifo", "--output=json", "--requests=r.csv")
    assert done.returncode == 2
    document = json.loads(done.stdout)  # what the policy prints is not in it
    assert [one["policy"] for one in document["runs"]] == ["noop", "my.py:Lifo"]
    assert document["complete"] is False
    *printed, said = done.stderr.splitlines()
    assert printed[0] == "left: 19"
    line = line_of("        return self.stack[-1 if self.left else 99]")
    assert said == (
        f"streamsched: my.py: line {line}: Raises.choose() raised IndexError: list index out of "
        "range; mend that line"
    )
    rows = (folder / "r.csv").read_text().splitlines()[1:]
    assert {row.split(",")[0] for row in rows} == {"noop", "my.py:Lifo"}


def test_a_failure_of_all_is_one_sentence(folder: Path) -> None:
    (folder / "my.py").write_text(BAD.replace('print("left:", self.left)', "pass"))
    done = run(folder, "my.py:Raises", "--to=out.json", "--output=json")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert not (folder / "out.json").exists()


def test_what_loops_for_ever_can_be_interrupted(folder: Path) -> None:
    command = [COMMAND, "run", JOB, "--policy", "noop,my.py:Loops"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        time.sleep(3)
        child.send_signal(signal.SIGINT)
        out, said = child.communicate(timeout=30)
    assert child.returncode == 130
    assert b"noop" in out and b"interrupted" in said and b"Traceback" not in said


def test_the_file_is_not_an_output(folder: Path) -> None:
    done = run(folder, "my.py:Lifo", "--to=my.py")
    assert done.returncode == 2 and "is read, and would be lost" in done.stderr
    assert (folder / "my.py").read_text() == BAD


@pytest.mark.parametrize(
    ("command", "where"),
    [
        (["run", str(JOB), "--on=kernel"], "--on kernel"),
        (["run", str(JOB), "--on=nbd"], "--on nbd"),
        (["profile", "wd5000aaks"], "profile"),
    ],
)
def test_only_the_simulator_has_them(folder: Path, command: list[str], where: str) -> None:
    done = ran(COMMAND, *command, "--policy=noop,my.py:Lifo", cwd=folder)
    assert done.returncode == 2
    assert f'policy "my.py:Lifo": not with {where}; only run and replay' in done.stderr
    assert len(done.stderr.splitlines()) == 1
