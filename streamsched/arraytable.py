# SPDX-License-Identifier: GPL-2.0-only
"""The table of docs/KERNEL.md for arrays: five emulated disks under md, on the real kernel.

`python -m streamsched.arraytable` measures it all anew, or the jobs and levels that are named, and
writes it. Sizes and distances are four times those of the job files, so that each of the five
disks has about what a disk by itself has.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from streamsched import hddemu, rig
from streamsched.diskfile import load_disk
from streamsched.errors import StreamschedError
from streamsched.kernelhost import FIO_WORK, MEMORY_MB
from streamsched.kerneltable import DISK, FIO_JOBS, QUEUE_DEPTH, marks
from streamsched.simulate import NR_REQUESTS

DISKS = 5
CHUNK_KIB = 64
LEVELS = ("raid0", "raid5")
TOGETHER = "stream, coordinated"
# What is shown, and the scheduler in iosched that it is.
SCHEDULERS = {
    "none": "none",
    "mq-deadline": "mq-deadline",
    "bfq": "bfq",
    "bfq:low_latency=0": "bfq",
    "stream": "stream",
    TOGETHER: "stream",
}
SCALE = 4
TIMEOUT_S = 900

SCRIPT = """
fail() {{ echo "$*" >&2; exit 1; }}
. $IN/disks.sh || fail "the emulated disks could not be made"
for d in {names}; do
	echo {scheduler} >/sys/block/$d/queue/scheduler || fail "no scheduler {scheduler}"
	[ {scheduler} = none ] || echo {requests} >/sys/block/$d/queue/nr_requests
	{setting}
done
mdadm --create /dev/md0 --run --metadata=1.2 --level={level} --raid-devices={disks} \\
	--chunk={chunk} --assume-clean {paths} >/dev/null 2>&1 || fail "mdadm makes no array"
{attach}
export STREAMSCHED_DISK=/dev/md0
cd /tmp
# See kernel/rig/workload.sh.
echo 2000 >/proc/$$/timerslack_ns
sleep 0.05
bash -c '{work}'
"""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One job under one scheduler on one level."""

    job: str
    level: str
    scheduler: str
    mb_s: float
    efficiency: float | None
    p99_ms: float  # of the reads' times, as fio has them
    longest_ms: float


def scaled(text: str) -> str:
    """The job file's @text with SCALE times its sizes and distances."""

    def more(found: re.Match[str]) -> str:
        return f"{found[1]}={int(found[2]) * SCALE}{found[3]}"

    return re.sub(r"^(size|io_size|offset_increment)=(\d+)([a-z]*)$", more, text, flags=re.M)


def run(text: str, level: str, scheduler: str) -> list[dict[str, float]]:
    """The job file @text on a fresh array: for each clone bytes, seconds, p99 and longest in ms."""
    disk = dataclasses.replace(load_disk(DISK), queue_depth=QUEUE_DEPTH)
    names = [f"hdd{i}" for i in range(DISKS)]
    latency = "low_latency=0" in scheduler
    attach = f"{sys.prefix}/bin/streamsched array attach /dev/md0 >/dev/null || exit 1"
    script = SCRIPT.format(
        names=" ".join(names),
        paths=" ".join(f"/dev/{name}" for name in names),
        scheduler=SCHEDULERS[scheduler],
        requests=NR_REQUESTS,
        setting="echo 0 >/sys/block/$d/queue/iosched/low_latency" if latency else ":",
        level=level,
        disks=DISKS,
        chunk=CHUNK_KIB,
        attach=attach if scheduler == TOGETHER else "",
        work=FIO_WORK.strip(),
    )
    result = rig.run_in_rig(
        script,
        files={
            "disks.sh": "\n".join(hddemu.script(name, disk) for name in names),
            "job.fio": text,
            "fio-start.so": rig.compiled("fio-start.c", "-shared", "-fPIC").read_bytes(),
        },
        show=[Path(sys.prefix), rig.source_root()],
        timeout_s=TIMEOUT_S,
        memory_mb=MEMORY_MB,
    )
    if result.status or result.complaints():
        said = [*result.complaints(), *result.stderr.splitlines()[-3:]]
        raise StreamschedError(f"{level}, {scheduler}: {' | '.join(said)}")
    output = result.files["fio.json"].decode()
    jobs = json.loads(output[output.index("{") :])["jobs"]
    return [
        {
            "bytes": job["read"]["io_bytes"] + job["write"]["io_bytes"],
            "seconds": job["job_runtime"] / 1e3,
            "p99_ms": job["read"]["clat_ns"]["percentile"]["99.000000"] / 1e6,
            "longest_ms": job["read"]["clat_ns"]["max"] / 1e6,
        }
        for job in jobs
    ]


def _rate(clones: Sequence[dict[str, float]]) -> float:
    return sum(c["bytes"] for c in clones) / 1e6 / max(c["seconds"] for c in clones)


def cells(job: str, level: str) -> list[Cell]:
    """@job under every scheduler, against one of its processes alone."""
    file = rig.source_root() / "jobs" / "kernel" / f"{job}.fio"
    text = scaled(file.read_text())
    alone = _rate(run(re.sub(r"^numjobs=\d+$", "numjobs=1", text, flags=re.M), level, "none"))
    found = []
    for scheduler in SCHEDULERS:
        clones = run(text, level, scheduler)
        found.append(
            Cell(
                job,
                level,
                scheduler,
                _rate(clones),
                _rate(clones) / alone if len(clones) > 1 else None,
                max(c["p99_ms"] for c in clones),
                max(c["longest_ms"] for c in clones),
            )
        )
    return found


def markdown(rows: Sequence[Cell]) -> str:
    """One job's table."""
    title = FIO_JOBS[rows[0].job]
    out = [f"### On arrays: {title}", ""]
    out.append("| level | scheduler | MB/s | efficiency | p99 ms | longest ms |")
    out.append("|---|---|---:|---:|---:|---:|")
    for cell in rows:
        efficiency = "" if cell.efficiency is None else f"{cell.efficiency:.3f}"
        out.append(
            f"| {cell.level} | {cell.scheduler} | {cell.mb_s:.2f} | {efficiency} "
            f"| {cell.p99_ms:.1f} | {cell.longest_ms:.1f} |"
        )
    return "\n".join(out)


def write_into(document: Path, rows: Sequence[Cell]) -> None:
    """Replace the rows of the level that was measured, and leave those of others."""
    job = rows[0].job
    begin, end = marks(f"arrays {job}")
    head, rest = document.read_text().split(begin, 1)
    old, tail = rest.split(end, 1)
    new = markdown(rows).splitlines()
    measured = {cell.level for cell in rows}
    lines = [row for row in new if not row.startswith("| raid")]
    for level in LEVELS:
        source = new if level in measured else old.splitlines()
        lines += [row for row in source if row.startswith(f"| {level} |")]
    text = "\n".join(lines)
    document.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}")


def main(arguments: Sequence[str]) -> int:
    """Measure what is named (jobs, then levels; nothing: all) and write docs/KERNEL.md."""
    jobs = [word for word in arguments if word in FIO_JOBS] or list(FIO_JOBS)
    levels = [word for word in arguments if word in LEVELS] or list(LEVELS)
    strange = [word for word in arguments if word not in FIO_JOBS and word not in LEVELS]
    if strange:
        print(
            f"array-table: {strange[0]!r} is neither a job ({', '.join(FIO_JOBS)}) "
            f"nor a level ({', '.join(LEVELS)})",
            file=sys.stderr,
        )
        return 2
    rig.build()
    rig.build_modules()
    document = rig.source_root() / "docs" / "KERNEL.md"
    try:
        for job in jobs:
            for level in levels:
                rows = cells(job, level)
                write_into(document, rows)
                for cell in rows:
                    print(cell, flush=True)
    except StreamschedError as error:
        print(f"array-table: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
