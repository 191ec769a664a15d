# SPDX-License-Identifier: GPL-2.0-only
"""Write a blktrace binary of any length for benchmarks, the same every time.

    python bench/make_trace.py --requests 1000000 --output trace.blktrace

A part of the requests come from sequential readers, each in its own region of
the disk; the rest are random reads and writes of one more process. With
--completions each request is followed by its completion event.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

EVENT = struct.Struct("<IIQQIIIIIHH")
MAGIC = 0x65617407
READ, WRITE, SYNC = 1 << 16, 1 << 17, 1 << 19
QUEUED = 1 | 1 << 20
COMPLETED = 8 | 1 << 23
DEVICE = 8 << 20
SECTOR_BYTES = 512
BATCH = 4096


def events(options: argparse.Namespace) -> Iterator[bytes]:
    """Batches of events; the time between requests is random around its mean."""
    chance = random.Random(options.seed)
    sectors = options.disk_mib * 2048
    length = options.read_kib * 2
    region = sectors // max(options.streams, 1)
    places = [region * stream for stream in range(options.streams)]
    share = options.random_percent / 100 if options.streams else 1.0
    gap_ns = options.gap_us * 1000
    batch = bytearray()
    now_ns = sequence = stream = 0
    for number in range(options.requests):
        now_ns += int(gap_ns * 2 * chance.random())
        direction = READ
        count, pid = length, 0
        if chance.random() < share:
            count = 8
            sector = int(chance.random() * (sectors // 8 - 1)) * 8
            pid = 1000 + options.streams
            if chance.random() * 100 < options.write_percent:
                direction = WRITE | SYNC
        else:
            stream = (stream + 1) % options.streams
            sector = places[stream]
            pid = 1000 + stream
            places[stream] = sector + count
            if places[stream] + count > region * (stream + 1):
                places[stream] = region * stream
        todo = [(now_ns, QUEUED)]
        if options.completions:
            todo.append((now_ns, COMPLETED))
        for time_ns, action in todo:
            sequence += 1
            batch += EVENT.pack(
                *(MAGIC, sequence & 0xFFFFFFFF, time_ns, sector, count * SECTOR_BYTES),
                *(action | direction, pid, DEVICE, 0, 0, 0),
            )
        if number % BATCH == BATCH - 1:
            yield bytes(batch)
            batch.clear()
    yield bytes(batch)


def write(options: argparse.Namespace, to: BinaryIO) -> None:
    """The whole trace."""
    for batch in events(options):
        to.write(batch)


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    option = parser.add_argument
    option("--requests", type=int, default=1_000_000)
    option("--streams", type=int, default=4, help="sequential readers (default %(default)s)")
    option("--random-percent", type=int, default=30, help="random requests among all (30)")
    option("--write-percent", type=int, default=30, help="writes among the random ones (30)")
    option("--read-kib", type=int, default=128, help="length of a sequential read (128)")
    option("--gap-us", type=int, default=4000, help="mean time between requests (4000)")
    option("--disk-mib", type=int, default=400_000, help="size of the disk (400000)")
    option("--seed", type=int, default=1)
    option("--completions", action="store_true", help="also write when each was complete")
    option("--output", type=Path, help="default: standard output")
    return parser.parse_args(arguments)


def main() -> None:
    """Write to the file named, which is a new one, or to standard output."""
    options = parse_options()
    if options.output is None:
        write(options, sys.stdout.buffer)
        return
    try:
        to = options.output.open("xb")
    except FileExistsError:
        why = f"--output {options.output}: is there already; name a new file"
        print(f"make_trace.py: {why}", file=sys.stderr)
        sys.exit(2)
    with to:
        write(options, to)


if __name__ == "__main__":
    main()
