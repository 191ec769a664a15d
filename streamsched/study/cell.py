# SPDX-License-Identifier: GPL-2.0-only
"""One simulation of a study, wherever it is done, and the row of results that comes of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamsched.base.errors import StreamschedError
from streamsched.sim.compare import Comparison
from streamsched.sim.results import TIME_KEYS, run_dict
from streamsched.sim.simulate import COUNTERS, Run
from streamsched.sim.tasks import Task, run_task
from streamsched.study.plan import trace_digest
from streamsched.study.program import program

Row = dict[str, Any]
Rates = dict[int, float]  # process number -> bytes a second with the disk to itself

# Columns of a row, and of each process in it: name -> type in Parquet.
_TIMES = {
    f"{what}_{key}_ms": "double" for what in ("wait", "service", "response") for key in TIME_KEYS
}
LABELS = {
    "policy": "string",
    "work": "string",
    "disk": "string",
    "queue_depth": "int32",
    "seed": "uint64",
    "owners": "string",
    "settings": "string",
}
FIGURES = {
    "throughput_mb_s": "double",
    "efficiency": "double",
    "least_share": "double",
    "duration_s": "double",
    "bytes_read": "uint64",
    "bytes_written": "uint64",
    "disk_requests": "uint64",
    **_TIMES,
    "seeks_per_s": "double",
    "switches": "uint64",
    "switch_ms": "double",
    "idle_share": "double",
    "skipped_records": "uint64",
    **dict.fromkeys(COUNTERS, "uint64"),
}
PROCESS = {
    "name": "string",
    "bytes_read": "uint64",
    "bytes_written": "uint64",
    "duration_s": "double",
    "throughput_mb_s": "double",
    "alone_mb_s": "double",
    "share": "double",
    **{f"response_{key}_ms": "double" for key in TIME_KEYS},
    "longest_wait_ms": "double",
}
MARKS = {"cell": "string", "work_sha256": "string", "disk_sha256": "string"}


@dataclasses.dataclass(frozen=True)
class Order:
    """What a worker is asked for."""

    task: Task
    version: str  # of streamsched, which the worker must have
    trace_sha256: str | None = None  # what its trace must be

    def run(self, progress: Callable[[float], None] | None = None) -> Run:
        """The one place that simulates."""
        if self.version != program():
            raise StreamschedError(
                f"a worker has streamsched {program()}, and the study is of {self.version}; "
                "install the same on all machines"
            )
        for trace in self.task.traces:
            if trace_digest(trace.path) != self.trace_sha256:
                raise StreamschedError(
                    f"{trace.path}: a worker has another file of this name; "
                    "copy the study's to all machines"
                )
        return run_task(self.task, progress)


def measure_alone(orders: Mapping[int, Order]) -> Rates:
    """The alone rates, in a worker."""
    runs = {number: order.run() for number, order in orders.items()}
    return {n: run.bytes / run.seconds for n, run in runs.items() if run.duration_ns}


def _flat(source: Mapping[str, Any], columns: Mapping[str, str]) -> Row:
    """@source's, where {"wait_ms": {"p99": ...}} becomes wait_p99_ms."""
    flat = dict(source)
    for name, value in source.items():
        if isinstance(value, dict) and name.endswith("_ms"):
            flat |= {f"{name[:-3]}_{key}_ms": one for key, one in value.items()}
    return {name: flat[name] for name in columns if name in flat}


def measure(order: Order, labels: Row, rates: Rates | None) -> Row:
    """The row of a cell, in a worker."""
    run = order.run()
    comparison = Comparison((run,), rates or {})
    found = run_dict(comparison, run)
    processes: Sequence[Row] = [
        _flat(job, PROCESS) | {"alone_mb_s": _mb_s(comparison.alone_rate(run, number))}
        for number, job in enumerate(found["jobs"])
    ]
    flat = _flat({**found, **found["counters"]}, FIGURES)
    return {**labels, **flat, "processes": processes}


def _mb_s(rate: float | None) -> float | None:
    return None if rate is None else round(rate / 1e6, 6)
