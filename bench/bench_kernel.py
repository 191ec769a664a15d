# SPDX-License-Identifier: GPL-2.0-only
"""What the scheduler costs on a device that does nothing: IOPS, stream against mq-deadline.

On the rig's kernel with time as it really passes. The schedulers take turns in one run and each
pair of neighbours gives a ratio, so that what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys

from rich.console import Console

from streamsched import rig
from streamsched.errors import StreamschedError
from streamsched.results import plain_table

SCRIPT = """
set -e
insmod $MODULES/null_blk.ko nr_devices=1 queue_mode=2 irqmode=0 gb=4 hw_queue_depth=128
cd /sys/block/nullb0/queue
one() {  # NAME SCHEDULER ROTATIONAL RW
	echo none >scheduler; echo $3 >rotational; echo $2 >scheduler
	fio --name=a --filename=/dev/nullb0 --direct=1 --ioengine=libaio --iodepth=32 --bs=4k \\
		--rw=$4 --norandommap --runtime=$SECONDS_EACH --time_based --clocksource=clock_gettime \\
		--output-format=json --output=$OUT/$1
}
for i in $(seq $ROUNDS); do
	for rw in randread randwrite; do
		one $rw.mq-deadline.$i mq-deadline 1 $rw
		one $rw.flat.$i stream 0 $rw
		one $rw.stream.$i stream 1 $rw
	done
done
"""
KINDS = {
    "stream": "stream, as on a rotating disk",
    "flat": "stream, not rotating",
}


def measure(rounds: int, seconds: int) -> dict[tuple[str, str], list[float]]:
    """Per direction and kind, stream's IOPS over mq-deadline's of the same round."""
    rig.build()
    result = rig.run_in_rig(
        SCRIPT,
        clock=rig.Clock.real,
        environment={"ROUNDS": str(rounds), "SECONDS_EACH": str(seconds)},
        timeout_s=60 + rounds * seconds * 12,
    )
    if result.status != 0:
        raise StreamschedError(f"the rig: {result.stderr.strip()}")

    def iops(name: str) -> float:
        job = json.loads(result.files[name])["jobs"][0]
        return float(job["read"]["iops"] + job["write"]["iops"])

    return {
        (rw, kind): [
            iops(f"{rw}.{kind}.{i}") / iops(f"{rw}.mq-deadline.{i}") for i in range(1, rounds + 1)
        ]
        for rw in ("randread", "randwrite")
        for kind in KINDS
    }


def main() -> int:
    """What `python bench/bench_kernel.py` does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=2, help="per scheduler and round")
    options = parser.parse_args()
    try:
        ratios = measure(options.rounds, options.seconds)
    except StreamschedError as error:
        print(f"bench_kernel: {error}", file=sys.stderr)
        return error.exit_code
    table = plain_table("4 KiB on a null device, 32 at once: IOPS over those of mq-deadline")
    for column in ("", "work", "median", "least", "most"):
        table.add_column(column, justify="left" if column in ("", "work") else "right")
    for (rw, kind), values in ratios.items():
        table.add_row(
            KINDS[kind],
            rw,
            f"{statistics.median(values):.3f}",
            f"{min(values):.3f}",
            f"{max(values):.3f}",
        )
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
