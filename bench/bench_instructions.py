# SPDX-License-Identifier: GPL-2.0-only
"""Count what a request costs in the core, in instructions: needs valgrind.

    python bench/bench_instructions.py                    deadline and stream:deadline
    python bench/bench_instructions.py --policy sptf,stream:sptf

The same loop as in `make bench`, under callgrind: the count does not depend on
what else the machine does, nor does it know caches and wrong guesses.
bench/README.md says more.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

from bench import BASE, PENDING, STREAM, build_core

OPERATIONS = 100_000
COLLECTED = re.compile(r"Collected : (\d+)")


def instructions(program: Path, policy: str, pending: int, operations: int) -> int:
    """Of the whole program, its beginning included."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program)]
    said = subprocess.run(
        [*command, "1", str(operations), str(pending), policy],
        check=True,
        capture_output=True,
        text=True,
    ).stderr
    found = COLLECTED.search(said)
    if not found:
        raise SystemExit(f"valgrind did not say how many instructions it saw:\n{said}")
    return int(found[1])


def per_request(program: Path, policy: str, pending: int) -> float:
    """What the measured part adds, the measuring itself included."""
    begun = instructions(program, policy, pending, 1)
    return (instructions(program, policy, pending, OPERATIONS + 1) - begun) / OPERATIONS


def main() -> None:
    """One line for each policy, beside the first one's figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", default=f"{BASE},{STREAM}", help="names with commas between")
    policies = parser.parse_args().policy.split(",")
    program = build_core()
    print("The core alone: instructions per request")
    print("  policy          " + "".join(f"{f'{pending} pending':>19}" for pending in PENDING))
    base: dict[int, float] = {}
    for policy in ["loop", *policies]:
        line = f"  {policy:<16}"
        for pending in PENDING:
            count = per_request(program, policy, pending)
            if policy == "loop":
                line += f"{count:11.0f}        "
                continue
            line += f"{count:11.0f} ({count / base.setdefault(pending, count):4.2f}x)"
        print(line.rstrip() + ("   the measuring itself" if policy == "loop" else ""), flush=True)


if __name__ == "__main__":
    main()
