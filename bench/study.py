# SPDX-License-Identifier: GPL-2.0-only
"""What a study costs and how it scales: docs/results/study-scaling.md.

    python bench/study.py --to FILE --force     make results WHAT=study-scaling

One and two workers do the same study. Then what a simulation costs a worker, and what it costs the
process that gives them out, is measured in processor time, and a model makes of both what 1,000
workers would need for a large set of traces (docs/sim/STUDY.md says what it assumes).
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import zstandard
from rich.console import Console

from streamsched import __version__
from streamsched.base.errors import exit_code_of
from streamsched.base.files import Target, check_output, write_whole
from streamsched.study.cell import Row, measure
from streamsched.study.plan import read_plan
from streamsched.study.run import order_of, run_study
from streamsched.study.store import opened, parts

ROUNDS = 5
SIMULATIONS = "[r]\nrw=randread\nbs=4k\nsize=4g\nio_size=512m\nnumjobs=2\noffset_increment=40g\n"
TINY = "[r]\nrw=read\nsize=4k\n"
TRACE_REQUESTS = 1_000_000
# The model: docs/sim/STUDY.md.
WORKERS, REQUESTS, PER_TRACE = 1000, 20_000_000_000, 10_000_000
POLICIES = ("noop", "deadline", "cfq", "stream:deadline")
HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
# What a study costs

Written by `make results WHAT=study-scaling`; do not edit. Measured on {cores} processors;
their load was {load:.1f} at first.

## One and two workers

The same study of {cells} simulations, from the first results on, the fastest of {rounds} rounds.

Others work on the machine, too: *had* is how many processors the workers had, and *led* how many
the client and the scheduler.

| workers | simulations a second | ratio | a worker's s for one | had | led |
|---:|---:|---:|---:|---:|---:|
"""


@dataclass(frozen=True)
class Took:
    """A study, from its first result to its last; so without what starting workers takes."""

    results: int
    wall_s: float
    own_s: float  # processor time of this process: client and scheduler
    workers_s: float
    row_bytes: float  # in Parquet

    @property
    def rate(self) -> float:
        """Results a second."""
        return self.results / self.wall_s


def workers_s() -> float:
    """Processor time of all workers until now."""
    times = [one.cpu_times() for one in psutil.Process().children(recursive=True)]
    return sum(one.user + one.system for one in times)


def study(folder: Path, job: str, seeds: int, jobs: int) -> Took:
    """Do a study here."""
    (folder / "job.fio").write_text(job)
    text = f'policies = ["noop"]\njobs = ["job.fio"]\ndisks = ["wd5000aaks"]\nseeds = {seeds}\n'
    (folder / "study.toml").write_text(text + "alone = false\n")
    to = folder / f"{time.monotonic_ns()}.parquet"
    seen: list[tuple[int, float, float, float]] = []
    plan = read_plan(folder / "study.toml")
    with opened(to, plan) as store:
        add = store.add

        def noted(rows: list[Row]) -> None:
            add(rows)
            # All workers have begun when each has done one. To look takes time itself.
            if len(store.done) == seeds or (not seen and len(store.done) >= 2 * jobs):
                now = (time.monotonic(), time.process_time())
                seen.append((len(store.done), *now, workers_s()))

        store.add = noted  # type: ignore[method-assign]
        run_study(plan, store, jobs, None, Console(stderr=True))
        store.write_part()
    size = sum(part.stat().st_size for part in parts(to))
    results, wall_s, own_s, of_workers_s = (b - a for a, b in zip(*seen, strict=True))
    return Took(int(results), wall_s, own_s, of_workers_s, size / seeds)


def scaling(folder: Path, cells: int) -> str:
    """Rows for one and two workers; of several rounds the fastest, for others work here, too."""
    best: dict[int, Took] = {}
    for _ in range(ROUNDS):
        for jobs in (1, 2):
            took = study(folder, SIMULATIONS, cells, jobs)
            if jobs not in best or took.rate > best[jobs].rate:
                best[jobs] = took
    return "".join(
        f"| {jobs} | {one.rate:.2f} | {one.rate / best[1].rate:.2f} | "
        f"{one.workers_s / one.results:.3f} | {one.workers_s / one.wall_s:.2f} | "
        f"{one.own_s / one.wall_s:.3f} |\n"
        for jobs, one in best.items()
    )


@dataclass(frozen=True)
class Costs:
    """What the model takes from measurements."""

    request_ns: dict[str, float]  # by policy, of a worker's processor
    trace_bytes: float  # per request
    worker_mb: float
    cell_ms: float  # of the process that gives simulations out
    order_bytes: int
    row_bytes: int
    kept_bytes: float  # per row, in Parquet


def replays(folder: Path) -> tuple[dict[str, float], float, int, int]:
    """Processor time of a request by policy, trace bytes per request, bytes of an order, a row."""
    make = Path(__file__).with_name("make_trace.py")
    raw, packed = folder / "t.blktrace", folder / "t.blktrace.zst"
    subprocess.run(
        [sys.executable, str(make), "--requests", str(TRACE_REQUESTS), "--gap-us", "1000",
         "--output", str(raw)],
        check=True,
    )  # fmt: skip
    packed.write_bytes(zstandard.compress(raw.read_bytes(), 3))
    (folder / "replay.toml").write_text(
        f"policies = {json.dumps(POLICIES)}\ntraces = ['{packed.name}']\ndisks = ['wd5000aaks']\n"
    )
    plan = read_plan(folder / "replay.toml")
    costs, order_bytes, row_bytes = {}, 0, 0
    for cell in plan.cells():
        order = order_of(plan, cell)
        began = time.process_time()
        row = measure(order, {**cell.labels(), "cell": plan.id(cell)}, None)
        costs[cell.policy] = (time.process_time() - began) / TRACE_REQUESTS * 1e9
        order_bytes, row_bytes = len(pickle.dumps(order)), len(json.dumps(row))
    with opened(folder / "replay.parquet", plan) as store:  # of the worker the memory counts
        run_study(plan, store, 1, None, Console(stderr=True))
    return costs, packed.stat().st_size / TRACE_REQUESTS, order_bytes, row_bytes


def model(costs: Costs) -> str:
    """The table of what many workers need."""
    traces = REQUESTS // PER_TRACE
    cells = traces * len(POLICIES)
    cpu_s = REQUESTS * sum(costs.request_ns.values()) / 1e9
    slowest_s = PER_TRACE * max(costs.request_ns.values()) / 1e9
    wall_s = cpu_s / WORKERS + slowest_s
    read = costs.trace_bytes * REQUESTS * len(POLICIES)
    given = cells * costs.cell_ms / 1e3
    rows = (
        ("simulations", f"{cells:,}, of {PER_TRACE / 1e6:,.0f} million requests each"),
        ("processor time of workers", f"{cpu_s / 3600:,.0f} h"),
        ("wall time, the last simulation after all others", f"{wall_s / 60:.1f} min"),
        ("processor time of scheduler and client", f"{given:.0f} s, {given / wall_s:.1%} of it"),
        ("simulations a second that these can give out", f"{1e3 / costs.cell_ms:,.0f}"),
        ("simulations a second that workers finish", f"{cells / wall_s:.1f}"),
        ("traces, compressed", f"{costs.trace_bytes * REQUESTS / 1e9:,.0f} GB"),
        ("traces read, once for each simulation", f"{read / 1e9:,.0f} GB"),
        ("read by all workers together", f"{read / wall_s / 1e6:,.0f} MB/s"),
        ("read by each worker", f"{read / wall_s / WORKERS / 1e6:.1f} MB/s"),
        ("orders and results", f"{cells * (costs.order_bytes + costs.row_bytes) / 1e6:,.0f} MB"),
        ("results kept", f"{cells * costs.kept_bytes / 1e6:,.1f} MB"),
        ("memory of a worker", f"{costs.worker_mb:.0f} MB"),
        ("memory of all workers", f"{costs.worker_mb * WORKERS / 1e3:.0f} GB"),
    )
    return "| | |\n|---|---|\n" + "".join(f"| {what} | {value} |\n" for what, value in rows)


def document(cells: int) -> str:
    """All of it."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = scaling(folder, cells)
        request_ns, trace_bytes, order_bytes, row_bytes = replays(folder)
        worker_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
        tiny = study(folder, TINY, 25 * cells, 1)
        cell_ms, kept = tiny.own_s / tiny.results * 1e3, tiny.row_bytes
    costs = Costs(request_ns, trace_bytes, worker_mb, cell_ms, order_bytes, row_bytes, kept)
    each = "".join(f"| {policy} | {ns:,.0f} |\n" for policy, ns in request_ns.items())
    return (
        HEAD.format(cores=os.cpu_count(), load=load, cells=cells, rounds=ROUNDS)
        + table
        + f"\n## A simulation\n\nA worker's processor time, closed replay of {TRACE_REQUESTS:,} "
        "requests (`bench/make_trace.py`).\n\n| policy | ns per request |\n|---|---:|\n"
        + each
        + f"\nGiving out a simulation and keeping its row takes {cell_ms:.2f} ms of one processor."
        f" An order has {order_bytes:,} bytes,\na result {row_bytes:,}, a row in Parquet "
        f"{kept:,.0f}. The compressed trace has {trace_bytes:.1f} bytes per request.\n"
        + f"\n## {WORKERS:,} workers, {REQUESTS / 1e9:.0f} billion requests\n\n"
        "Computed from these figures, with what docs/sim/STUDY.md assumes.\n\n" + model(costs)
    )


def main() -> None:
    """Measure, and write the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument("--simulations", type=int, default=40)
    options = parser.parse_args()
    to = Target(options.to, options.force)
    check_output(to)
    write_whole(to, document(options.simulations))


if __name__ == "__main__":
    sys.exit(exit_code_of(f"bench/study.py {__version__}", main))
