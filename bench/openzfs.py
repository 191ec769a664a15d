# SPDX-License-Identifier: GPL-2.0-only
"""OpenZFS over the kernel's schedulers: docs/results/openzfs.md.

    python bench/openzfs.py --to docs/results/openzfs.md --force     make results WHAT=openzfs

Debian 13's kernel and its zfs-dkms (kernel/qemu/fetch.sh --zfs) run under qemu's software emulation
on one processor, whose clock counts instructions, one a nanosecond, so that nothing else on this
machine changes a figure. Pools are on emulated disks; four programs read at random, alone, beside a
scrub and beside a send. In each round every scheduler has each job once, in turn forwards and
backwards. Root is needed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tables.machine import end_with_signals, must_print, positive, write_table

from streamsched.base.cache import kept_in
from streamsched.base.errors import StreamschedError, exit_code_of
from streamsched.base.files import read_whole
from streamsched.hosts import hddemu
from streamsched.sim.diskfile import Disk, load_disk

QEMU = Path(__file__).resolve().parents[1] / "kernel" / "qemu"
SUITE = "trixie"
NR_DISKS = 4
NR_READERS = 4
RECORD = 16 << 10
READERS_MIB, SENT_MIB = 192, 768
PIECES = 24
# Its vdevs as zpool wants them, and MiB of a member: two thirds are in use.
POOLS = {
    "two mirrors": ("mirror $d0 $d1 mirror $d2 $d3", 1152),
    "raidz1": ("raidz1 $d0 $d1 $d2 $d3", 768),
}
SCHEDULERS = ("none", "mq-deadline", "bfq", "stream")
JOBS = ("alone", "scrub", "send")
# Readers run for a while before they are measured, and the other's rate is taken while they are.
RAMP, WITHIN = 1, 1
SCRIPT = r"""set -eu
fail() {
	echo "failed: $*"
	exit 1
}
modprobe configfs
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
modprobe -a bfq dm-mod
insmod /share/stream-iosched.ko
insmod /share/hdd-emu.ko
modprobe zfs zfs_arc_max=$((128 << 20))
echo "zfs $(cat /sys/module/zfs/version)"
# A member is in pieces at equal distances on its disk: seeks are as long as on a full one.
member() { # number MiB
	local piece=$(($2 * 2048 / pieces)) size part

	sh -e "/share/emu$1.sh"
	size=$(blockdev --getsz "/dev/emu$1")
	for ((part = 0; part < pieces; part++)); do
		echo "$((part * piece)) $piece linear /dev/emu$1 $((size / pieces / 8 * 8 * part))"
	done | DM_DISABLE_UDEV=1 dmsetup create "member$1"
	eval "d$1=/dev/mapper/member$1"
}
make() { # MiB of a member, zpool's words
	local number

	for ((number = 0; number < disks; number++)); do member $number "$1"; done
	eval "zpool create pool $2"
	zfs create -o recordsize=$record -o primarycache=metadata -o atime=off pool/vms
	zfs create pool/data
	dd if=/dev/urandom of=/tmp/random bs=1M count=64 2>/dev/null
	for ((number = 0; number < readers; number++)); do
		fill $readers_mib >/pool/vms/$number
	done
	fill $sent_mib >/pool/data/file
	rm /tmp/random
	zpool sync pool
	zfs snapshot pool/data@now
}
fill() { # MiB, a multiple of 64
	local begun

	for ((begun = 0; begun < $1; begun += 64)); do cat /tmp/random; done
}
# Sectors that the disks have read, the processor's idle jiffies and all of them, and the time.
seen() {
	cat /sys/block/emu*/stat | awk '{ sum += $3 } END { printf "%d ", sum }'
	awk '/^cpu / { printf "%d %d ", $5 + $6, $2 + $3 + $4 + $5 + $6 + $7 + $8 }' /proc/stat
	cut -d ' ' -f 1 /proc/uptime
}
read_at_random() { # seconds seed file
	local jobs=() number

	for ((number = 0; number < readers; number++)); do
		jobs+=("--name=$number" "--filename=/pool/vms/$number"
			"--randseed=$(($2 * readers + number))")
	done
	fio --rw=randread --bs=$record --size=${readers_mib}m --ioengine=psync --norandommap --thread \
		--time_based --ramp_time=$ramp --runtime="$1" --output-format=json+ --output="$3" \
		--allow_file_create=0 "${jobs[@]}" || fail "fio: $(cat "$3")"
}
scrub() { while [ -e /tmp/on ]; do zpool scrub pool; zpool wait -t scrub pool; done; }
send() { while [ -e /tmp/on ]; do zfs send pool/data@now >/dev/null; done; }
use() { # scheduler
	local number

	for ((number = 0; number < disks; number++)); do
		echo "$1" >/sys/block/emu$number/queue/scheduler
		grep -qF "[$1]" /sys/block/emu$number/queue/scheduler || fail "emu$number: no $1"
	done
	read_at_random 3 1 /tmp/unused
}
one() { # number job
	local first reading

	: >/tmp/on
	case $2 in
	scrub) scrub & ;;
	send) send & ;;
	esac
	sleep 1
	read_at_random $seconds $((1000 + $1)) "/share/$1.json" &
	reading=$!
	# Until fio itself is running.
	sleep $((ramp + within))
	first=$(seen)
	sleep $((seconds - 2 * within))
	echo "seen $1 $first $(seen)"
	wait $reading || fail "fio failed"
	rm /tmp/on
	case $2 in
	scrub) zpool scrub -s pool 2>/dev/null || : ;;
	send) pkill -x zfs || : ;;
	esac
	wait
}
end() {
	zpool status -x | grep -q 'all pools are healthy' || fail "$(zpool status pool)"
	echo "all done"
}
"""


@dataclass(frozen=True)
class Cell:
    """What is measured at once."""

    pool: str
    job: str
    scheduler: str


@dataclass(frozen=True)
class Figures:
    """Of one cell in one round."""

    iops: float
    least: float
    mean_ms: float
    p99_ms: float
    longest_ms: float
    other: float  # MB/s
    busy: float  # the processor's share


def order(rounds: int) -> list[tuple[str, str]]:
    """Schedulers and jobs in the order in which a pool has them."""
    return [
        (scheduler, job)
        for number in range(rounds)
        for scheduler in SCHEDULERS[:: -1 if number % 2 else 1]
        for job in JOBS
    ]


def guest_script(pool: str, seconds: int, rounds: int) -> str:
    """All rounds of a pool."""
    layout, size = POOLS[pool]
    values = {
        "disks": NR_DISKS,
        "readers": NR_READERS,
        "record": RECORD,
        "pieces": PIECES,
        "readers_mib": READERS_MIB,
        "sent_mib": SENT_MIB,
        "ramp": RAMP,
        "within": WITHIN,
        "seconds": seconds,
    }
    lines = ["#!/bin/bash", *(f"{name}={value}" for name, value in values.items()), SCRIPT]
    lines.append(f"make {size} '{layout}'")
    for number, (scheduler, job) in enumerate(order(rounds)):
        if job == JOBS[0]:
            lines.append(f"use {scheduler}")
        lines.append(f"one {number} {job}")
    return "\n".join([*lines, "end", ""])


def _quantile_ms(bins: Counter[int], share: float) -> float:
    """The least time that so great a share of the reads did not exceed."""
    left = share * bins.total()
    for time in sorted(bins):
        left -= bins[time]
        if left <= 0:
            return time / 1e6
    raise StreamschedError("fio in the guest has read nothing")


def figures(fio: str, seen: Sequence[str]) -> Figures:
    """The document of fio, and what seen() said twice."""
    found = [job["read"] for job in json.loads(fio)["jobs"]]
    if len(found) != NR_READERS:
        raise StreamschedError(f"fio in the guest told of {len(found)} readers")
    bins: Counter[int] = Counter()
    for each in found:
        bins.update({int(time): count for time, count in each["clat_ns"]["bins"].items()})
    rates = [float(each["iops"]) for each in found]
    total = sum(each["total_ios"] for each in found)
    sectors, idle, jiffies, time = (
        float(after) - float(before) for before, after in zip(seen[:4], seen[4:], strict=True)
    )
    return Figures(
        iops=sum(rates),
        least=min(rates),
        mean_ms=sum(each["clat_ns"]["mean"] * each["total_ios"] for each in found) / total / 1e6,
        p99_ms=_quantile_ms(bins, 0.99),
        longest_ms=max(each["clat_ns"]["max"] for each in found) / 1e6,
        other=(sectors * 512 / time - sum(rates) * RECORD) / 1e6,
        busy=1 - idle / jiffies,
    )


def measure(
    pool: str, disk: Disk, seconds: int, rounds: int, layers: Sequence[Path], share: Path
) -> tuple[str, dict[Cell, list[Figures]]]:
    """One boot: the version of ZFS, and each cell's rounds."""
    for number in range(NR_DISKS):
        (share / f"emu{number}.sh").write_text(hddemu.script(f"emu{number}", disk))
    path = share / "script"
    path.write_text(guest_script(pool, seconds, rounds))
    limits = ("--start", "1800", "--timeout", "14400", "--memory", "5000", "--share", share)
    with_layers = [word for layer in layers for word in ("--with", layer)]
    said = must_print(QEMU / "boot.sh", "--counted", *map(str, limits), *with_layers, SUITE, path)
    lines = [line.split() for line in said.splitlines()]
    if ["all", "done"] not in lines:
        raise StreamschedError(f"the guest failed: {said.strip().splitlines()[-1]}")
    seen = {int(words[1]): words[2:] for words in lines if words[:1] == ["seen"]}
    cells: dict[Cell, list[Figures]] = {}
    for number, (scheduler, job) in enumerate(order(rounds)):
        fio = read_whole(share / f"{number}.json")
        cell = Cell(pool, job, scheduler)
        cells.setdefault(cell, []).append(figures(fio, seen[number]))
    return next(words[1] for words in lines if words[:1] == ["zfs"]), cells


def _spread(values: Sequence[float], form: str) -> str:
    texts = [format(value, form) for value in (min(values), max(values))]
    middle = format(statistics.median(values), form)
    return middle if texts[0] == texts[1] else f"{middle} ({texts[0]}..{texts[1]})"


HEAD = """<!-- SPDX-License-Identifier: GPL-2.0-only -->
# OpenZFS over the kernel's schedulers

Written by `make results WHAT=openzfs`; do not edit. OpenZFS {version}, its own queues at their
defaults, on Linux {release} under qemu without KVM. A pool has four emulated disks
{disk}: two mirrors of two, or one raidz1 of four. Four programs read 16 KiB at random, each
from a file of {readers} MiB with records of 16 KiB: alone, beside `zpool scrub`, or beside
`zfs send` of {sent} MiB with records of 128 KiB. Both begin again when they have ended.

- There is one processor, and its clock counts instructions, one a nanosecond. It was busy for
  {busy} of the time.
- A member is {pieces} pieces at equal distances on its disk (dm-linear), so seeks are as long as
  on a full one. The cache of ZFS has 128 MiB, and keeps none of the readers' data.
- Each line is measured for {seconds} s in each of {rounds} rounds. Shown are the median, and the
  least to the most.
- *reads/s* are those of all readers, *least* those of the reader that has fewest. *mean*, *p99* and
  *longest* are the times of all reads, in ms. *other* is what a scrub or a send has read from the
  disks, in MB/s.

| pool | beside | scheduler | reads/s | least | mean | p99 | longest | other |
|---|---|---|---:|---:|---:|---:|---:|---:|
"""


def row(cell: Cell, found: Sequence[Figures]) -> str:
    """A line of the table."""
    columns = (
        _spread([each.iops for each in found], ".0f"),
        _spread([each.least for each in found], ".0f"),
        _spread([each.mean_ms for each in found], ".1f"),
        _spread([each.p99_ms for each in found], ".0f"),
        _spread([each.longest_ms for each in found], ".0f"),
        "" if cell.job == "alone" else _spread([each.other for each in found], ".0f"),
    )
    job = "nothing" if cell.job == "alone" else cell.job
    return f"| {cell.pool} | {job} | {cell.scheduler} | {' | '.join(columns)} |\n"


def document(
    cells: dict[Cell, list[Figures]], options: argparse.Namespace, version: str, release: str
) -> str:
    """All of it, from what was measured."""
    busy = [each.busy for found in cells.values() for each in found]
    text = HEAD.format(
        version=version,
        release=release,
        disk=options.disk,
        readers=READERS_MIB,
        sent=SENT_MIB,
        pieces=PIECES,
        rounds=options.rounds,
        seconds=options.seconds,
        busy=f"{min(busy):.0%} to {max(busy):.0%}",
    )
    ranked = sorted(cells, key=lambda cell: ([*POOLS].index(cell.pool), JOBS.index(cell.job)))
    return text + "".join(row(cell, cells[cell]) for cell in ranked)


def table(options: argparse.Namespace) -> str:
    """Measure, and tell."""
    disk = load_disk(options.disk)
    release = must_print(QEMU / "fetch.sh", "--zfs", SUITE).splitlines()[-1]
    tree = kept_in("stock", "stock kernels") / release
    cells: dict[Cell, list[Figures]] = {}
    version = ""
    for pool in options.pool or POOLS:
        with tempfile.TemporaryDirectory(prefix="streamsched-openzfs-") as name:
            share = Path(name)
            must_print(QEMU / "build.sh", SUITE, share)
            layers = (tree / "tools", tree / "zfs")
            version, found = measure(pool, disk, options.seconds, options.rounds, layers, share)
        cells |= found
    return document(cells, options, version, release)


def _seconds(text: str) -> int:
    seconds = positive(text)
    if seconds <= 2 * WITHIN:
        raise argparse.ArgumentTypeError(f"give more than {2 * WITHIN}")
    return seconds


def write(arguments: Sequence[str]) -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(prog="openzfs", description=__doc__)
    parser.add_argument("--disk", default="wd5000aaks", help="the model of the disks")
    parser.add_argument("--pool", choices=tuple(POOLS), action="append", help="only this pool")
    parser.add_argument("--seconds", type=_seconds, default=7, help="of each line")
    parser.add_argument("--rounds", type=positive, default=3)
    write_table(parser, arguments, table)


if __name__ == "__main__":
    end_with_signals()
    sys.exit(exit_code_of("openzfs", lambda: write(sys.argv[1:])))
