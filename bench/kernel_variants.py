# SPDX-License-Identifier: GPL-2.0-only
"""The real kernel with other readahead, other options of dm-crypt, and the newest one: the figures
of docs/internals/KERNEL.md that are in none of its tables.

    python bench/kernel_variants.py              all of them (some minutes)
    python bench/kernel_variants.py readahead    these: alone, crypt, newest, readahead

Everything is virtual time: on one kernel each run prints the same.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tables.kernel import PATHS, PROGRAMS
from tables.programs import DISK, QUEUE_DEPTH, program_cell

from streamsched.base.errors import exit_code_of, named
from streamsched.hosts import rig
from streamsched.hosts.kernelhost import compare_on_kernel, parse_policies
from streamsched.sim.diskfile import load_disk
from streamsched.work.jobfile import load_job_file

JOBS = rig.source_root() / "jobs" / "kernel"
# In the place of who streams in Love's tests.
NOBODY = """
import os, signal
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
signal.pause()
"""
READAHEAD_KIB = (128, 256, 512, 1024, 2560)
CRYPT_OPTIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("submit_from_crypt_cpus",),
    ("no_read_workqueue",),
    ("no_write_workqueue",),
)


def measure(title: str, job: Path, policies: str, **changes: Any) -> None:
    """Print a line for each policy: MB/s and efficiency."""
    disk = load_disk(DISK)
    file = load_job_file(job, capacity_bytes=disk.capacity_sectors * 512)
    depth = changes.pop("queue_depth", QUEUE_DEPTH)
    comparison = compare_on_kernel(
        file, disk, parse_policies(policies), queue_depth=depth, **changes
    )
    for run in comparison.runs:
        print(
            f"{title:<48} {run.setup.policy:<18} {run.mb_s:8.2f} MB/s"
            f"  efficiency {comparison.efficiency(run) or 0:.3f}",
            flush=True,
        )


def readahead() -> None:
    """How far the kernel may read ahead, straight to the disk."""
    for kib in READAHEAD_KIB:
        measure(
            f"four buffered readers, read_ahead_kb {kib}",
            JOBS / "buffered-readers.fio",
            "bfq:low_latency=0,stream",
            readahead_kib=kib,
        )


def newest() -> None:
    """The newest kernel, with 32 commands in the disk at a time, and with one."""
    for depth, policies in (
        (QUEUE_DEPTH, "none,bfq:low_latency=0,stream"),
        (1, "bfq:low_latency=0,stream"),
    ):
        measure(
            f"four buffered readers, newest kernel, {depth} at once",
            JOBS / "buffered-readers.fio",
            policies,
            variant="newest",
            queue_depth=depth,
        )


def crypt() -> None:
    """Who sends what dm-crypt reads and writes."""
    readers = JOBS / "direct-readers.fio"
    with tempfile.TemporaryDirectory() as folder:
        writers = Path(folder) / "direct-writers.fio"
        writers.write_text(readers.read_text().replace("rw=read", "rw=write"))
        for options in CRYPT_OPTIONS:
            name = " ".join(options) or "no options"
            for job in (readers, writers):
                measure(
                    f"{job.stem}, dm-crypt, {name}",
                    job,
                    "bfq:low_latency=0,stream",
                    path="crypt",
                    crypt_options=options,
                )


def alone() -> None:
    """What Love's tests take while nobody streams."""
    rig.build()
    rig.build_modules()
    for name in ("love-1", "love-2"):
        for path in PATHS:
            for policy in parse_policies("none,stream"):
                cell = program_cell(name, PROGRAMS[name], path, policy, streamer=NOBODY)
                print(
                    f"{name + ' alone, ' + path:<48} {policy.label:<18} {cell.seconds:8.2f} s",
                    flush=True,
                )


FIGURES: dict[str, Callable[[], None]] = {
    "alone": alone,
    "crypt": crypt,
    "newest": newest,
    "readahead": readahead,
}


def main() -> None:
    """Measure what is named, or everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("figures", nargs="*", metavar="FIGURES", help=", ".join(FIGURES))
    (figures,) = named(parser.parse_args().figures, ("figures", list(FIGURES)))
    for name in figures:
        FIGURES[name]()


if __name__ == "__main__":
    sys.exit(exit_code_of("kernel_variants.py", main))
