# SPDX-License-Identifier: GPL-2.0-only
"""What a scheduler costs on a device that does nothing: docs/results/nullblk.md.

    python bench/nullblk.py --to docs/results/nullblk.md --force     make results WHAT=nullblk

Debian's newest kernel runs under qemu's software emulation on one processor, whose clock counts
instructions, one a nanosecond (kernel/qemu/boot.sh --counted), so that nothing else on this machine
changes a figure. What all tasks ran for, less what they ran for with fewer reads, is what a read
costs. In each round every scheduler has each load once, in turn forwards and backwards. Root is
needed, and what tools/setup.sh stock-all sets up.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tables.machine import end_with_signals, must_print, positive, write_table

from streamsched.base.errors import StreamschedError, exit_code_of

QEMU = Path(__file__).resolve().parents[1] / "kernel" / "qemu"
BASE = "mq-deadline"
# Scheduler, queue/rotational, and whether the curve stays the one that it begins with.
KINDS = {
    "none": ("none", 0, 0),
    BASE: (BASE, 0, 0),
    "bfq": ("bfq", 1, 0),
    "stream": ("stream", 1, 0),
    "stream, not rotating": ("stream", 0, 0),
    "stream, a disk's curve": ("stream", 1, 1),
}
# fio's rw, jobs, depth, and how many are sent and taken back at once.
LOADS = {
    "random, depth 1": ("randread", 1, 1, 1),
    "random, depth 32": ("randread", 1, 32, 16),
    "4 in sequence, depth 1": ("read", 4, 1, 1),
    "4 in sequence, depth 32": ("read", 4, 32, 16),
}
QUEUES = (1, 4)
WARM, SHORT = 4000, 800
# The clock is not read for each request. The device completes by softirq and takes no time.
SCRIPT = """#!/bin/sh
set -e
modprobe configfs
modprobe bfq
insmod /share/stream-iosched.ko
device() {
	modprobe -r null_blk
	modprobe null_blk queue_mode=2 irqmode=1 gb=4 hw_queue_depth=128 submit_queues=$1
	cd /sys/block/nullb0/queue
}
# Nanoseconds that tasks have run.
busy() { awk '/^cpu/ { sum += $8 } END { printf "%.0f\\n", sum }' /proc/schedstat; }
reads() { # number rw jobs depth batch
	fio --name=a --filename=/dev/nullb0 --direct=1 --ioengine=libaio --thread --bs=4k \\
		--rw=$2 --numjobs=$3 --size=1g --offset_increment=1g --group_reporting \\
		--iodepth=$4 --iodepth_batch=$5 --iodepth_batch_complete_min=$5 \\
		--norandommap --number_ios=$(($1 / $3)) --gtod_reduce=1 \\
		--output-format=json >/tmp/fio
}
one() { # queues scheduler rotational fixed rw jobs depth batch
	name="$*"
	echo none >scheduler; echo $3 >rotational; echo $2 >scheduler
	[ $4 = 0 ] || { cat iosched/service_curve >/tmp/curve; cat /tmp/curve >iosched/service_curve; }
	shift 4
	reads WARM "$@"
	begin=$(busy); reads SHORT "$@"
	middle=$(busy); reads LONG "$@"
	ms=$(sed -n 's/.*"runtime" : \\([1-9][0-9]*\\).*/\\1/p' /tmp/fio | head -n 1)
	echo "$name: $((middle - begin)) $(($(busy) - middle)) $ms"
}
"""

Cell = tuple[int, str, str]  # hardware queues, load, kind
CELLS = [(queues, load, kind) for queues in QUEUES for load in LOADS for kind in KINDS]


def _call(cell: Cell) -> str:
    """The arguments of one(), which says them again."""
    queues, load, kind = cell
    return " ".join(map(str, (queues, *KINDS[kind], *LOADS[load])))


def script(reads: int, rounds: int) -> str:
    """All rounds, in the guest."""
    text = SCRIPT.replace("LONG", str(SHORT + reads))
    lines = [text.replace("SHORT", str(SHORT)).replace("WARM", str(WARM))]
    for number in range(rounds):
        for queues in QUEUES:
            mine = [cell for cell in CELLS if cell[0] == queues]
            calls = [f"one {_call(cell)}" for cell in mine[:: -1 if number % 2 else 1]]
            lines += [f"device {queues}", *calls]
    return "\n".join([*lines, ""])


def rounds_in(said: str, rounds: int) -> dict[Cell, list[tuple[float, float]]]:
    """Of each round: nanoseconds that the longer run was busy for longer, and milliseconds."""
    found = re.findall(r"^(\d .*): (\d+) (\d+) (\d+)$", said, re.MULTILINE)
    cells: dict[Cell, list[tuple[float, float]]] = {}
    for cell in CELLS:
        mine = [each for each in found if each[0] == _call(cell)]
        cells[cell] = [(int(long) - int(short), int(ms)) for _, short, long, ms in mine]
        if len(mine) != rounds:
            raise StreamschedError(f"fio in the guest did not say what {_call(cell)!r} took")
        if any(cost <= 0 or ms <= 0 for cost, ms in cells[cell]):
            raise StreamschedError(
                f"{_call(cell)!r} took no longer with more reads; give more with --reads"
            )
    return cells


def measure(suite: str, reads: int, rounds: int) -> dict[Cell, list[tuple[float, float]]]:
    """One boot."""
    with tempfile.TemporaryDirectory(prefix="streamsched-nullblk-") as name:
        share = Path(name)
        must_print(QEMU / "build.sh", suite, share)
        path = share / "script"
        path.write_text(script(reads, rounds))
        limits = ("--start", "1800", "--timeout", "14400", "--share", share)
        # The device has no more hardware queues than there could be processors.
        more = ("-smp", "1,maxcpus=4")
        said = must_print(QEMU / "boot.sh", "--counted", *limits, suite, path, *more)
    return rounds_in(said, rounds)


def _spread(values: Sequence[float], form: str) -> str:
    least, middle, most = min(values), statistics.median(values), max(values)
    return f"{middle:{form}} | {least:{form}} to {most:{form}}"


HEAD = """<!-- SPDX-License-Identifier: GPL-2.0-only -->
# Schedulers on a device that does nothing

Written by `make results WHAT=nullblk`; do not edit. In each of {rounds} rounds fio reads
{reads:,} times 4 KiB from null_blk, on Linux {release} under qemu without KVM. Shown are
the median, and the least to the most.
There is one processor, and its clock counts instructions, one a nanosecond. What caches, memory and
a lock that several processors want cost is not in the figures.

- *instructions* are those per read, of fio and the kernel together, without what passes while
  nobody works. *over mq-deadline* is their ratio.
- *reads/s* are a part of mq-deadline's in the same round, with what passes while nobody works.
- At depth 32 each job sends 16 at a time, so that reads in sequence are merged.
- Schedulers are measured when they know the device: {warm:,} reads of the same kind go before.
  *stream, a disk's curve* goes on believing that seeks take what it assumes of a disk at first.
  Then the head waits, as it would on a disk.

| queues | load | scheduler | instructions | rounds | over mq-deadline | reads/s | rounds |
|---:|---|---|---:|---:|---:|---:|---:|
"""


def table(suite: str, reads: int, rounds: int) -> str:
    """The whole document."""
    release = must_print(QEMU / "fetch.sh", "--tools", suite).splitlines()[-1]
    took = measure(suite, reads, rounds)
    text = HEAD.format(reads=reads, release=release, rounds=rounds, warm=WARM)
    for cell in CELLS:
        queues, load, kind = cell
        pairs = list(zip(took[cell], took[queues, load, BASE], strict=True))
        cost = _spread([mine[0] / reads for mine, _ in pairs], ",.0f")
        over = statistics.median(mine[0] / base[0] for mine, base in pairs)
        rate = _spread([base[1] / mine[1] for mine, base in pairs], ".2f")
        text += f"| {queues} | {load} | {kind} | {cost} | {over:.2f} | {rate} |\n"
    return text


def write(arguments: Sequence[str]) -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(prog="nullblk", description=__doc__)
    parser.add_argument("--reads", type=positive, default=10_000, help="of each load and scheduler")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--suite", choices=("bookworm", "trixie", "sid"), default="sid")
    write_table(parser, arguments, lambda what: table(what.suite, what.reads, what.rounds))


if __name__ == "__main__":
    end_with_signals()
    sys.exit(exit_code_of("nullblk", lambda: write(sys.argv[1:])))
