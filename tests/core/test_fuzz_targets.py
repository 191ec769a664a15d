# SPDX-License-Identifier: GPL-2.0-only
"""The fuzz targets of the core, of arrays and of waits, on their corpus and on bytes that are the
same in each run. They check the invariants of docs/internals/ARCHITECTURE.md without libFuzzer.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from said import ROOT

FUZZ = ROOT / "tests" / "fuzz"


def replay(target: str, tmp_path: Path, define: str, *inputs: str | Path) -> None:
    """Compile @target with the assertions and @define, and let it take what is there."""
    program = tmp_path / target
    sources = [FUZZ / "replay.c", FUZZ / f"fuzz_{target}.c"]
    sources += [*ROOT.glob("core/**/*.c"), *ROOT.glob("compat/*.c"), *ROOT.glob("disk/*.c")]
    flags = ["-std=gnu11", "-O1", "-fno-strict-aliasing", f"-I{ROOT / 'compat'}", f"-D{define}"]
    compiler = shlex.split(os.environ.get("CC", "cc"))
    subprocess.run([*compiler, *flags, "-DSS_CHECKS", "-o", program, *sources], check=True)
    done = subprocess.run([program, *inputs], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("target", "random_inputs"), [("core", 1000), ("array", 400), ("wait", 100)]
)
def test_invariants_hold(target: str, random_inputs: int, tmp_path: Path) -> None:
    corpus = sorted((FUZZ / "corpus" / target).iterdir())
    assert corpus
    replay(target, tmp_path, "ALL", str(random_inputs), *corpus)


def test_who_gets_a_turn_in_its_middle_has_not_had_one(tmp_path: Path) -> None:
    """Else he waits for half as much again as the bound."""
    found = FUZZ / "corpus" / "wait" / "answer-takes-turn"
    replay("wait", tmp_path, "MOST_PERMILLE=1350", "0", found)
