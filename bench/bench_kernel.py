# SPDX-License-Identifier: GPL-2.0-only
"""What the scheduler costs on a device that does nothing: stream against mq-deadline.

On Debian 12's own kernel in one boot under qemu, whose clock counts the processor's instructions,
one a nanosecond (kernel/qemu/boot.sh --counted): requests per second are then one over the
instructions for each, of the kernel and of fio together. They do not depend on what else this
machine does, and a second run gives the same; what caches and several processors make of them is
not in them. Root is needed, and what tools/setup.sh stock-all sets up.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from streamsched.errors import StreamschedError
from streamsched.results import plain_table

QEMU = Path(__file__).resolve().parents[1] / "kernel" / "qemu"
BASE = "mq-deadline"
KINDS = {
    "mq-deadline": ("mq-deadline", 0),
    "stream, not rotating": ("stream", 0),
    "stream, as on a rotating disk": ("stream", 1),
}
PATTERNS = ("randread", "randwrite", "read")
# By 16, as from a plugged list; nobody reads the clock for each.
SCRIPT = """#!/bin/sh
set -e
modprobe configfs
insmod /share/stream-iosched.ko
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=0 gb=4 hw_queue_depth=128
cd /sys/block/nullb0/queue
one() {
	echo none >scheduler; echo $2 >rotational; echo $1 >scheduler
	fio --name=a --filename=/dev/nullb0 --direct=1 --ioengine=libaio --iodepth=32 --thread \\
		--iodepth_batch=16 --iodepth_batch_complete_min=16 --bs=4k --rw=$3 --size=4g \\
		--norandommap --number_ios=REQUESTS --gtod_reduce=1 --output-format=json >/tmp/fio
	echo "$1 $2 $3" $(grep -o '"runtime" : [1-9][0-9]*' /tmp/fio)
}
"""


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        lines = done.stdout.strip().splitlines() or ["no reason was given"]
        raise StreamschedError(f"{Path(command[0]).name} failed: {lines[-1]}")
    return done.stdout


def measure(requests: int) -> dict[tuple[str, str], int]:
    """Per pattern and kind: milliseconds of the machine's clock for that many requests."""
    calls = [f"one {kind[0]} {kind[1]} {rw}" for rw in PATTERNS for kind in KINDS.values()]
    with tempfile.TemporaryDirectory(prefix="streamsched-cost-") as name:
        share = Path(name)
        _run(QEMU / "build.sh", "bookworm", share)
        script = share / "script"
        script.write_text("\n".join([SCRIPT.replace("REQUESTS", str(requests)), *calls, ""]))
        limits = ("--start", "1800", "--timeout", "7200")
        said = _run(QEMU / "boot.sh", "--counted", *limits, "--share", share, "bookworm", script)
    found = re.findall(r'^(\S+) (\d) (\w+) "runtime" : (\d+)', said, re.MULTILINE)
    took = {(name, int(flag), rw): int(ms) for name, flag, rw, ms in found}
    return {(rw, kind): took[(*KINDS[kind], rw)] for rw in PATTERNS for kind in KINDS}


def main() -> int:
    """What `python bench/bench_kernel.py` does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=60_000, help="of each kind and pattern")
    options = parser.parse_args()
    try:
        took = measure(options.requests)
    except StreamschedError as error:
        print(f"bench_kernel: {error}", file=sys.stderr)
        return error.exit_code
    table = plain_table("4 KiB on a null device, 32 at once, at 1,000,000,000 instructions/s")
    for column in ("", "work", "requests/s", f"over {BASE}"):
        table.add_column(column, justify="left" if column in ("", "work") else "right")
    for (rw, name), ms in took.items():
        ratio = took[rw, BASE] / ms
        table.add_row(name, rw, f"{requests_per_s(options.requests, ms):,}", f"{ratio:.3f}")
    Console().print(table)
    return 0


def requests_per_s(requests: int, ms: int) -> int:
    """Whole requests per second."""
    return requests * 1000 // ms


if __name__ == "__main__":
    sys.exit(main())
