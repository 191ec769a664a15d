# SPDX-License-Identifier: GPL-2.0-only
"""The disk model beside what was published: docs/results/validation.md.

`streamsched research validate disk` measures every disk of disks/ in the model and writes it. The
model is deterministic, so the document changes only when a disk or the model does.
"""

from __future__ import annotations

import re
from typing import Any

from streamsched._core import ffi, lib
from streamsched.base.errors import UsageError
from streamsched.sim.diskfile import KINDS, QUEUE_ORDERS, Disk, list_disks, load_disk
from streamsched.sim.simulate import disk_params, drive_memory

MS = 1e6
MB = 1e6

# Key in a disk's [[published]], label, field of struct hdd_figures, its unit
# in the table's, digits. Depths are those of hdd_measure_figures(): none above the drive's.
FIGURES = [
    ("random_read_ms", "random read of 4 KiB, depth 1, ms", "random_read_ns", MS, 2),
    (
        "random_write_ms",
        "random write of 4 KiB past the cache, depth 1, ms",
        "random_write_ns",
        MS,
        2,
    ),
    ("read_iops", "random reads of 4 KiB per second, depth 1", "read_iops_1000", 1000, 1),
    (
        "read_iops_16",
        "random reads of 4 KiB per second, depth {some}",
        "read_iops_16_1000",
        1000,
        1,
    ),
    (
        "read_iops_deep",
        "random reads of 4 KiB per second, depth {all}",
        "read_iops_deep_1000",
        1000,
        1,
    ),
    (
        "write_iops_16",
        "cached random writes of 4 KiB per second, depth {some}",
        "write_iops_16_1000",
        1000,
        1,
    ),
    ("outer_mb_s", "sequential read, outer edge, MB/s", "outer_bytes_per_s", MB, 1),
    ("middle_mb_s", "sequential read, middle of the capacity, MB/s", "middle_bytes_per_s", MB, 1),
    ("inner_mb_s", "sequential read, inner edge, MB/s", "inner_bytes_per_s", MB, 1),
    ("mean_mb_s", "sequential read, mean of 16 places, MB/s", "mean_bytes_per_s", MB, 1),
    ("outer_write_mb_s", "sequential write, outer edge, MB/s", "outer_write_bytes_per_s", MB, 1),
    ("mean_write_mb_s", "sequential write, mean over the disk, MB/s", "", MB, 1),
    ("track_to_track_ms", "track-to-track seek, ms", "track_to_track_ns", MS, 2),
    ("mean_seek_ms", "mean seek between random sectors, ms", "mean_seek_ns", MS, 2),
    ("full_stroke_ms", "full-stroke seek, ms", "full_stroke_ns", MS, 2),
    ("flush_64_ms", "flush after 64 scattered writes of 4 KiB, ms", "flush_64_ns", MS, 0),
]
SEEKS = ("track_to_track_ms", "mean_seek_ms", "full_stroke_ms")

HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
# What the disk model reproduces

Written by `make results WHAT=validation`; do not edit. Each
disk of `disks/` is measured in the model from outside, by the times of its commands
(`disk/hdd_measure.c`). Published figures of the real disk stand beside. "-" means that
nothing was published, or nothing that we could cite.

A figure that was used to choose the model's parameters agrees because it was made
to: *fitted*. Evidence are the other figures, the paper's experiment below, and five
drives whose response times were recorded
([recorded-drives.md](recorded-drives.md)).
"""

LIMITS = """\
## What the model leaves out

- **Defects and retries.** No remapped sectors, no read errors, no thermal
  recalibration, no vibration. The same command at the same time always takes
  the same time; a real disk scatters.
- **Layout.** Sectors go along a track, over the surfaces of a cylinder, then
  inwards. Many real disks stay on one surface for a band of tracks and come
  back on the next. That moves the cost of a head switch, not its average size.
  Zones are estimated as equally wide with linear density.
- **Seeks.** One curve for both directions, by distance alone; a table of
  straight lines. Writes settle longer by a constant.
- **Shingled recording.** The drive's log takes a write for its transfer alone; a
  real one writes what its map gained, too. Bands are cleaned one by one, the oldest
  first, and only when the disk is idle or the log full. After a power cut the log is
  empty.
- **Two actuators** share nothing but interface and queue: neither waits for the
  other's servo, and each half's cache is its own.
- **Partial reads in passing.** A read starts at its first sector. Drives that
  take in a track from wherever they land save part of a revolution on long
  reads.
- **Reading ahead** goes on in one place, the last one read. The cache is
  equal segments of fixed size, replaced by least recent use; firmware adapts
  number and size, and shares memory between reading and writing.
- **Ordering.** Real firmware's rule is not known. The model takes the
  shortest positioning time less a share of the time waited, and the oldest
  command when that is over the limit. The share is chosen per disk: without
  it the model would gain more from a deep queue than the real disk.
- **The write cache** is written out in pieces of 256 KiB at most. This happens after an
  idle time, when half full or more, or on flush. What goes next is, by the disk, the next
  extent upwards, or the one with the shortest positioning time among 32 near the head.
  Beside reads the cache of some disks has a share of the time, in bursts of eight
  revolutions; the share is estimated. A flush lets no other command in. Data that went
  to the medium is not kept for reading.
- **Interface.** Data moves at the interface's rate, one command after the other, while
  the medium's data passes the head or after it, by the disk. A medium that is faster
  fills the cache without end. No link errors, no power states, no spin-up.
- **Flat disks** are a constant latency on parallel channels and a rate. No
  erase, no garbage collection, no read-ahead: sequential reads at depth 1 pay
  the latency each time and stay below the sheet's rate.
- **Sequential writes** run at the rate of reads. Measured ones are slower by
  some 8 % on the disk where both are published.
"""


def new_disk(disk: Disk) -> Any:
    """A struct hdd_drive that is @disk, idle at time 0."""
    params, why = disk_params(disk), ffi.new("const char **")
    drive = drive_memory(params)
    if lib.hdd_drive_init(drive, params, why):
        raise UsageError(f"{disk.name}: {ffi.string(why[0]).decode()}")
    return drive


def figures(disk: Disk) -> Any:
    """The disk's struct hdd_figures."""
    out = ffi.new("struct hdd_figures *")
    why = ffi.new("const char **")
    params = disk_params(disk)
    commands = ffi.new("struct hdd_cmd[]", lib.HDD_MAX_DEPTH)
    if lib.hdd_measure_figures(drive_memory(params), commands, params, out, why):
        raise UsageError(f"{disk.name}: {ffi.string(why[0]).decode()}")
    return out


def difference(model: float, published: str) -> str:
    """How far the model is from what was published, as the table shows it."""
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", published)]
    if len(numbers) == 2 and numbers[0] <= model <= numbers[1]:
        return "within"
    if not numbers or len(numbers) > 2:
        return ""
    middle = sum(numbers) / len(numbers)
    return f"{(model / middle - 1) * 100:+.1f} %"


def table(disk: Disk) -> list[str]:
    """The disk's rows."""
    measured = figures(disk)
    published = {row.figure: row for row in disk.published}
    said: set[str] = set()
    lines = [
        "| figure | model | published | difference | fitted | source |",
        "|---|---|---|---|---|---|",
    ]
    for key, label, field, unit, digits in FIGURES:
        row = published.get(key)
        if KINDS[disk.kind] == "flat" and key in SEEKS:
            continue
        label = label.format(some=min(16, disk.queue_depth), all=disk.queue_depth)
        if label in said and row is None:
            continue
        said.add(label)
        if not field:
            # The model's writes run at the rate of its reads.
            if row is None:
                continue
            field = "mean_bytes_per_s"
        model = getattr(measured, field) / unit
        if row is None:
            lines.append(f"| {label} | {model:.{digits}f} | - | | | |")
        else:
            lines.append(
                f"| {label} | {model:.{digits}f} | {row.value} | "
                f"{difference(model, row.value)} | {'fitted' if row.fitted else 'not fitted'} "
                f"| {row.source} |"
            )
    return lines


def par_read(disk: Disk, streams: int, sectors: int, think_ns: int) -> tuple[float, float]:
    """Readers as the paper's par-read under noop: MB/s in total, mean ms of positioning.

    Each reads on in its own region, 50 GB behind the next, one read at a time;
    every read goes to the drive at once.
    """
    drive = new_disk(disk)
    gap = 51 * 10**9 // 512
    commands = [ffi.new("struct hdd_cmd *") for _ in range(streams)]
    reader = {int(ffi.cast("uintptr_t", cmd)): i for i, cmd in enumerate(commands)}
    place = [i * gap for i in range(streams)]
    thinking = [(0, i) for i in range(streams)]
    now = done = position_ns = 0
    while done < 4000:
        if thinking and thinking[0][0] <= lib.hdd_drive_next_ns(drive):
            now, i = thinking.pop(0)
            commands[i].sector, commands[i].nr_sectors = place[i], sectors
            place[i] += sectors
            lib.hdd_drive_submit(drive, commands[i], now)
        else:
            now = lib.hdd_drive_next_ns(drive)
            cmd = lib.hdd_drive_pop(drive, now)
            if cmd == ffi.NULL:
                continue
            done += 1
            position_ns += cmd.position_ns
            thinking.append((now + think_ns, reader[int(ffi.cast("uintptr_t", cmd))]))
    return done * sectors * 512 / now * 1e9 / MB, position_ns / done / MS


def paper() -> list[str]:
    """The paper's experiment that depends on nothing but the disk."""
    disk = load_disk("wd5000aaks")
    rate, position = par_read(disk, 4, 256, 60_000)
    return [
        "## The paper's four readers",
        "",
        "Xu and Jiang (FAST 2011, section 3.3): four processes read files of 1 GB that lie",
        "50 GB apart, each through the kernel's readahead (windows of 128 KiB). The scheduler is",
        "noop, so the drive orders what it holds. The paper has 16.0 MB/s in total. The same",
        "four commands kept in `wd5000aaks`:",
        "",
        "| | model | paper | difference |",
        "|---|---|---|---|",
        f"| four readers, MB/s | {rate:.1f} | 16.0 | {difference(rate, '16.0')} |",
        f"| mean positioning per read, ms | {position:.2f} | - | |",
        "",
        "The short hops of the seek curve were estimated with the paper in view, within the",
        "published averages. `streamsched research reproduce` runs the whole experiment, processes",
        "and page cache included.",
        "",
        "## The simulator and the kernel",
        "",
        "`tests/kernel/test_kernel_stream.py` runs the jobs of `jobs/kernel/` in the simulator and",
        "on the rig's kernel, on the same disk, at depths 1 and 32. Schedulers are noop (none),",
        "deadline (mq-deadline) and stream. Throughput must differ by less than 5 %, with the page",
        "cache, without it, with think time and at random.",
        "",
        "At depth 1, none is not compared. Without a scheduler the kernel has as many requests as",
        "the disk has commands. So readahead waits for the only one, and nothing is merged (four",
        "buffered readers: 8.3 MB/s). noop has a queue of 128 (15.7 MB/s).",
        "",
        "Real programs on ext4 have no counterpart in the simulator, and kyber and bfq are",
        "not in it.",
        "",
    ]


def report() -> str:
    """The whole document."""
    lines = [HEAD]
    for name in list_disks():
        disk = load_disk(name)
        lines += [f"## {name}", "", f"{disk.model}: {disk.description}.", ""]
        if KINDS[disk.kind] == "mechanical":
            order = QUEUE_ORDERS[disk.queue_order].upper()
            lines += [
                f"{len(disk.zone_cylinders)} zones, {sum(disk.zone_cylinders):,} cylinders, "
                f"{disk.surfaces} surfaces; {order} in the drive.",
                "",
            ]
        lines += [*table(disk), ""]
    lines += paper()
    lines.append(LIMITS)
    return "\n".join(lines)
