# SPDX-License-Identifier: GPL-2.0-only
"""The fuzz targets of the core, of arrays and of waits, on their corpus and on bytes that are the
same in each run. They check the invariants of docs/ARCHITECTURE.md without libFuzzer.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "tests" / "fuzz"


@pytest.mark.parametrize(
    ("target", "random_inputs"), [("core", 1000), ("array", 400), ("wait", 100)]
)
def test_invariants_hold(target: str, random_inputs: int, tmp_path: Path) -> None:
    program = tmp_path / target
    sources = [FUZZ / "replay.c", FUZZ / f"fuzz_{target}.c"]
    sources += [*ROOT.glob("core/**/*.c"), *ROOT.glob("compat/*.c"), *ROOT.glob("disk/*.c")]
    flags = ["-std=gnu11", "-O1", "-DSS_CHECKS", "-fno-strict-aliasing", f"-I{ROOT / 'compat'}"]
    compiler = shlex.split(os.environ.get("CC", "cc"))
    subprocess.run([*compiler, *flags, "-o", program, *sources], check=True)
    corpus = sorted((FUZZ / "corpus" / target).iterdir())
    assert corpus
    done = subprocess.run(
        [program, str(random_inputs), *corpus], stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
