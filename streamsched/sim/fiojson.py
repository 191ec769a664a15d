# SPDX-License-Identifier: GPL-2.0-only
"""Results as fio --output-format=json has them, for the tools that read that (fio-plot)."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import streamsched
from streamsched.base.units import format_bytes
from streamsched.sim.compare import Comparison
from streamsched.sim.simulate import Buckets
from streamsched.work.process import RW_BITS, RW_READ, RW_WRITE, Process


def _fio_direction(nr_bytes: int, blocks: int, ns: int, times: dict[str, int]) -> dict[str, Any]:
    seconds = ns / 1e9
    latency = {
        "min": times["min_ns"],
        "max": times["max_ns"],
        "mean": float(times["mean_ns"]),
        "stddev": float(times["stddev_ns"]),
        "N": times["count"],
        "percentile": {
            "50.000000": times["p50_ns"],
            "99.000000": times["p99_ns"],
            "99.900000": times["p999_ns"],
        },
    }
    return {
        "io_bytes": nr_bytes,
        "io_kbytes": nr_bytes // 1024,
        "bw_bytes": int(nr_bytes / seconds) if ns else 0,
        "bw": int(nr_bytes / 1024 / seconds) if ns else 0,
        "iops": blocks / seconds if ns else 0.0,
        "runtime": ns // 1_000_000,
        "total_ios": blocks,
        "short_ios": 0,
        "drop_ios": 0,
        # fio's samples of half seconds: none are taken here.
        **{f"iops_{key}": 0 for key in ("min", "max", "mean", "stddev", "samples")},
        "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
        "clat_ns": latency,
        "lat_ns": {key: latency[key] for key in ("min", "max", "mean", "stddev", "N")},
    }


# Of fio's latency_ns, latency_us and latency_ms: the ends of their buckets.
_FIO_BUCKETS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
_FIO_RW = {bits: word for word, bits in reversed(RW_BITS.items())}


def _fio_latency(histogram: Buckets) -> dict[str, dict[str, float]]:
    """The percentages of blocks that fio shows: how many took up to so long."""
    units = (("ns", 1, _FIO_BUCKETS), ("us", 1000, _FIO_BUCKETS), ("ms", 10**6, _FIO_BUCKETS))
    ends = [(unit, str(end), end * ns) for unit, ns, all_ends in units for end in all_ends]
    ends += [("ms", "2000", 2 * 10**9), ("ms", ">=2000", sys.maxsize)]
    counts = dict.fromkeys(ends, 0)
    for longest_ns, count in histogram:
        counts[next(end for end in ends if longest_ns <= end[2])] += count
    total = max(1, sum(counts.values()))
    found: dict[str, dict[str, float]] = {"latency_ns": {}, "latency_us": {}, "latency_ms": {}}
    for (unit, key, _), count in counts.items():
        found[f"latency_{unit}"][key] = round(100 * count / total, 6)
    return found


def _fio_options(process: Process, processes: Sequence[Process]) -> dict[str, str]:
    """What the section of @process says, as far as tools look at it."""
    sizes = {
        size
        for at in (0, 1)
        if process.rw & (RW_READ, RW_WRITE)[at]
        for size in (process.split_bytes[at] or (process.range_min[at], process.range_max[at]))
    }
    return {
        "name": process.name,
        "rw": _FIO_RW[process.rw],
        "bs": "-".join(map(format_bytes, sorted({min(sizes), max(sizes)}))),
        "iodepth": str(process.iodepth),
        "numjobs": str(sum(one.section == process.section for one in processes)),
    }


def as_fio_json(comparison: Comparison, processes: Sequence[Process]) -> str:
    """What fio --output-format=json prints, one group of jobs per policy."""
    jobs = []
    for group, run in enumerate(comparison.runs):
        for process, job in zip(processes, run.jobs, strict=True):
            jobs.append(
                {
                    "jobname": f"{run.setup.shown}/{job.name}",
                    "groupid": group,
                    "error": 0,
                    "eta": 0,
                    "elapsed": job.duration_ns // 1_000_000_000,
                    "job options": _fio_options(process, processes),
                    "read": _fio_direction(
                        job.bytes_read, job.blocks[0], job.duration_ns, job.latency[0]
                    ),
                    "write": _fio_direction(
                        job.bytes_written, job.blocks[1], job.duration_ns, job.latency[1]
                    ),
                    "job_runtime": job.duration_ns // 1_000_000,
                    # Simulated processes have no computing of their own.
                    "usr_cpu": 0.0,
                    "sys_cpu": 0.0,
                    **_fio_latency(job.histogram),
                }
            )
    document = {
        "fio version": f"streamsched-{streamsched.__version__}",
        "timestamp": 0,
        "time": "simulated",
        "jobs": jobs,
    }
    return json.dumps(document, indent=2) + "\n"
