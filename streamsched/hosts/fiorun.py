# SPDX-License-Identifier: GPL-2.0-only
"""A result like the simulator's, from what fio said and a trace of the disk's requests."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from streamsched.sim.simulate import Buckets, JobRun, Run, Setup, Times
from streamsched.work.blocktrace import BlockTrace, Request, quantile, switch_cost
from streamsched.work.process import Process


def _times(values: Sequence[int]) -> Times:
    if not values:
        return Times(0.0, 0.0, 0.0, 0.0, 0.0)
    middle, most, nearly_all = (
        (quantile(values, permille) or 0) / 1e6 for permille in (500, 990, 999)
    )
    return Times(sum(values) / len(values) / 1e6, middle, most, nearly_all, max(values) / 1e6)


def _owner(processes: Sequence[Process], request: Request) -> int:
    """Whose region a request is in; -1: nobody's, as metadata is."""
    at = request.sector * 512
    for number, process in enumerate(processes):
        if process.offset <= at < process.offset + process.size:
            return number
    return -1


@dataclasses.dataclass(frozen=True)
class FioJob:
    """What one job read and wrote, in bytes, how long it took, and its completion latencies."""

    read: int
    written: int
    ns: int
    histogram: Buckets = ()


def _latencies(job: dict[str, Any]) -> Buckets:
    """Reads' and writes' completion latencies together, as --output-format=json+ has them."""
    sums: Counter[int] = Counter()
    for direction in ("read", "write"):
        for ns, count in job[direction].get("clat_ns", {}).get("bins", {}).items():
            sums[int(ns)] += count
    return tuple(sorted(sums.items()))


def times_of(histogram: Buckets) -> Times:
    """Of a histogram; as exact as its buckets are."""
    count = sum(nr for _, nr in histogram)
    if not count:
        return Times(0.0, 0.0, 0.0, 0.0, 0.0)
    below, at = [], 0
    for ns, nr in histogram:
        at += nr
        below.append((at, ns))

    def at_part(part: float) -> float:
        return next(ns for seen, ns in below if seen >= part * count) / 1e6

    mean = sum(ns * nr for ns, nr in histogram) / count / 1e6
    return Times(mean, at_part(0.5), at_part(0.99), at_part(0.999), below[-1][1] / 1e6)


def fio_jobs(text: str) -> list[FioJob]:
    """The jobs of fio's JSON, whatever fio said before it."""
    start = text.find("{")
    document = json.loads(text[start:])
    return [
        FioJob(
            job["read"]["io_bytes"],
            job["write"]["io_bytes"],
            job["job_runtime"] * 1_000_000,
            _latencies(job),
        )
        for job in document["jobs"]
    ]


def ramp_of_all(processes: Sequence[Process]) -> int:
    """How long after the first request the statistics begin: begin_statistics() of sim/sim.c."""
    first = [p for p in processes if p.stage == processes[0].stage and not p.wait_for]
    if not any(process.ramp_ns for process in first):
        return 0
    return min(p.startdelay_ns + p.ramp_ns for p in first) - min(p.startdelay_ns for p in first)


def _duration_ns(jobs: Sequence[FioJob], processes: Sequence[Process]) -> int:
    """From when the first job counts to the end of the last one: who waits for whom is known."""
    begins: list[int] = []
    ends: list[int] = []
    named: dict[str, int] = {}
    stage = earlier = 0
    for job, process in zip(jobs, processes, strict=True):
        if process.stage != stage:
            stage, earlier = process.stage, max(ends, default=0)
        since = max(earlier, named.get(process.wait_for, 0), process.startdelay_ns)
        if not job.ns:  # ended before it began, by the end of another one
            continue
        begins.append(since + process.ramp_ns)
        ends.append(begins[-1] + job.ns)
        named[process.name] = max(named.get(process.name, 0), ends[-1])
    return max(ends, default=0) - min(begins, default=0)


def fio_run(
    jobs: Sequence[FioJob],
    trace: BlockTrace,
    setup: Setup,
    processes: Sequence[Process],
    alone: float,
    counters: dict[str, int],
) -> Run:
    """@jobs are fio's of @processes, in their order; @alone: bytes/s of one by itself."""
    waits: dict[int, int] = {}
    for request in trace.requests:
        number = _owner(processes, request)
        waits[number] = max(waits.get(number, 0), request.wait_ns)
    switches, switch_ns = switch_cost(trace, lambda r: _owner(processes, r), alone)
    return Run(
        setup=setup,
        duration_ns=_duration_ns(jobs, processes),
        bytes_read=sum(job.read for job in jobs),
        bytes_written=sum(job.written for job in jobs),
        disk_requests=len(trace.requests),
        wait=_times([r.wait_ns for r in trace.requests]),
        service=_times([r.service_ns for r in trace.requests]),
        response=_times([r.wait_ns + r.service_ns for r in trace.requests]),
        switches=switches,
        switch_ns=switch_ns,
        position_ns=0,
        busy_ns=0,
        counters=counters,
        jobs=tuple(
            JobRun(
                processes[number].name,
                job.read,
                job.written,
                (0, 0),
                job.ns,
                ({}, {}),
                waits.get(number, 0),
                times_of(job.histogram),
                job.histogram,
                processes[number].stage,
                processes[number].section,
            )
            for number, job in enumerate(jobs)
        ),
    )
