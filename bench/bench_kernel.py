# SPDX-License-Identifier: GPL-2.0-only
"""What the scheduler costs on a device that does nothing: stream against mq-deadline.

On the rig's kernel, which is a process of this machine: each run has a rig of its own that sends
a fixed number of requests, and what counts is the processor time of that process, not how long
it took: other work on the machine falls on it much less. The device answers at once, so requests
per second are one over the processor time for each. Time is virtual, so every run of a kind does
the same. The schedulers take turns, and each round gives a ratio; what a rig needs to start, the
same with one request, is subtracted.

The requests come by 16, as from a plugged list, and nobody reads the clock for each: otherwise
a User Mode Linux would mostly be busy with system calls, under any scheduler.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys

from rich.console import Console
from rich.progress import Progress

from streamsched import rig
from streamsched.errors import StreamschedError
from streamsched.results import plain_table

SCRIPT = """
set -e
insmod $MODULES/null_blk.ko nr_devices=1 queue_mode=2 irqmode=0 gb=4 hw_queue_depth=128
cd /sys/block/nullb0/queue
echo none >scheduler; echo $ROTATIONAL >rotational; echo $SCHEDULER >scheduler
LD_PRELOAD=$IN/fio-start.so fio --name=a --filename=/dev/nullb0 --direct=1 --ioengine=libaio \\
	--iodepth=32 --iodepth_batch=16 --iodepth_batch_complete_min=16 --bs=4k --rw=$RW \\
	--norandommap --number_ios=$REQUESTS --size=4g --gtod_reduce=1 --clocksource=clock_gettime \\
	--output=/dev/null
read -r reads read_merges _ _ writes write_merges _ <../stat
[ $((reads + read_merges + writes + write_merges)) -ge $REQUESTS ]
"""
BASE = ("mq-deadline", 1)
KINDS = {
    "stream, as on a rotating disk": ("stream", 1),
    "stream, not rotating": ("stream", 0),
}
PATTERNS = ("randread", "randwrite", "read")


def _processor_s(kind: tuple[str, int], rw: str, requests: int) -> float:
    """Processor time of one rig and all in it."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    result = rig.run_in_rig(
        SCRIPT,
        memory_mb=256,
        files={"fio-start.so": rig.compiled("fio-start.c", "-shared", "-fPIC").read_bytes()},
        environment={
            "SCHEDULER": kind[0],
            "ROTATIONAL": str(kind[1]),
            "RW": rw,
            "REQUESTS": str(requests),
        },
    )
    if result.status != 0:
        raise StreamschedError(f"the rig: {(result.stdout + result.stderr).strip()}")
    return used() - before


def measure(rounds: int, requests: int, console: Console) -> dict[tuple[str, str], list[float]]:
    """Per pattern and kind: mq-deadline's processor time over stream's, of each round."""
    rig.build()
    rig.build_modules()
    ratios: dict[tuple[str, str], list[float]] = {}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("rounds", total=rounds * len(PATTERNS) + 1)
        start = statistics.median(_processor_s(BASE, "read", 1) for _ in range(3))
        progress.advance(task)
        for _ in range(rounds):
            for rw in PATTERNS:
                base = _processor_s(BASE, rw, requests) - start
                for name, kind in KINDS.items():
                    own = _processor_s(kind, rw, requests) - start
                    ratios.setdefault((rw, name), []).append(base / own)
                progress.advance(task)
    return ratios


def main() -> int:
    """What `python bench/bench_kernel.py` does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=200_000, help="of each run")
    options = parser.parse_args()
    try:
        ratios = measure(options.rounds, options.requests, Console(stderr=True))
    except StreamschedError as error:
        print(f"bench_kernel: {error}", file=sys.stderr)
        return error.exit_code
    table = plain_table(
        "4 KiB on a null device, 32 at once: requests per processor second over mq-deadline's"
    )
    for column in ("", "work", "median", "least", "most"):
        table.add_column(column, justify="left" if column in ("", "work") else "right")
    for (rw, name), values in ratios.items():
        table.add_row(
            name,
            rw,
            f"{statistics.median(values):.3f}",
            f"{min(values):.3f}",
            f"{max(values):.3f}",
        )
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
