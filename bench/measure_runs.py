# SPDX-License-Identifier: GPL-2.0-only
"""How much `streamsched measure` finds in ten minutes, on the rig: python bench/measure_runs.py [N]

N runs (20) of two schedulers that differ by some 10 % in throughput, and N of one beside itself,
each with other random numbers: four readers of 4 MiB at once beside bursts of random reads. A run
takes about a minute.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from tables.machine import positive

from streamsched.hosts import hddemu, rig
from streamsched.sim.diskfile import load_disk
from streamsched.watch.measure import FIGURES

MINUTES = 10
COMMAND = Path(sys.executable).parent / "streamsched"
JOBS = (
    "--name=scan --rw=read --bs=4m --size=90g --numjobs=4 --offset_increment=100g",
    "--name=burst --rw=randread --bs=4k --size=400g --norandommap --numjobs=2"
    " --thinktime=9s --thinktime_blocks=150",
)


def one(between: str, seed: int) -> dict[str, Any]:
    """What a run prints."""
    each = f"--filename=/dev/hdd0 --direct=1 --time_based --runtime={60 * MINUTES + 20}"
    each += f" --randrepeat=0 --randseed={seed}"
    jobs = " ".join(f"{job} {each}" for job in JOBS)
    result = rig.run_in_rig(
        f"{hddemu.script('hdd0', load_disk('wd5000aaks'))}\nset -e\n"
        "echo mq-deadline >/sys/block/hdd0/queue/scheduler\n"
        f"fio --clocksource=clock_gettime --minimal {jobs} >/dev/null &\nsleep 1\n"
        f"{COMMAND} measure hdd0 --between {between} --minutes {MINUTES} --seed {seed}"
        " --output json >$OUT/found",
        show=[rig.source_root(), Path(sys.prefix)],
    )
    if result.status:
        sys.exit(result.stderr)
    figures: dict[str, Any] = json.loads(result.files["found"])["figures"]
    return figures


def main() -> None:
    """Print what was found how often."""
    parser = argparse.ArgumentParser(prog="measure_runs", description=__doc__)
    parser.add_argument("runs", nargs="?", type=positive, default=20)
    runs = parser.parse_args().runs
    for between in ("mq-deadline,stream", "mq-deadline,mq-deadline"):
        figures = [one(between, seed) for seed in range(1, runs + 1)]
        print(f"{between}, {runs} runs of {MINUTES} minutes")
        for name, what in FIGURES.items():
            seen = [each[name] for each in figures]
            changes = [100 * each["change"] for each in seen]
            wide = statistics.fmean(50 * (each["high"] - each["low"]) for each in seen)
            print(
                f"  {what:18} {statistics.fmean(changes):+6.1f} % ({min(changes):+.1f} to"
                f" {max(changes):+.1f}, each ±{wide:.1f}): {sum(e['found'] for e in seen)} found"
            )


if __name__ == "__main__":
    main()
