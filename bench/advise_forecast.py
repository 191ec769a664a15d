# SPDX-License-Identifier: GPL-2.0-only
"""How good are `advise`'s forecasts? Recorded under one scheduler, forecast for another one, and
done under that, on the real kernel in the rig. Writes docs/results/forecast.md.

`make results WHAT=forecast` runs it.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from streamsched.base.errors import UsageError, exit_code_of
from streamsched.base.files import Target, check_output, write_whole
from streamsched.base.progress import counted, nr_jobs
from streamsched.hosts.kernelhost import FIO_WORK, boot, parse_policies
from streamsched.sim.diskfile import load_disk
from streamsched.watch.forecast import Forecast, forecast, observed
from streamsched.work.blocktrace import Bio, bios
from streamsched.work.model import senders

DISK, DEPTH = "wd5000aaks", 32
PAIRS = (
    ("none", "stream"),
    ("mq-deadline", "stream"),
    ("bfq", "stream"),
    ("stream", "mq-deadline"),
)
SCHEDULERS = ("none", "mq-deadline", "bfq", "stream")
FIRST, JOBS = 7001, 25
SECONDS = 12
# What is asked of it: error of the median, and of nine in ten, of throughput and of the p99.
WANTED = ((0.10, 0.25), (0.30, 0.60))


def job_of(seed: int) -> tuple[str, str]:
    """A random fio job of one to eight processes, and the layers above the disk."""
    dice = random.Random(seed)
    path = "loop" if dice.random() < 0.2 else "direct"
    lines = [
        *("[global]", f"runtime={SECONDS}", "time_based"),
        *("filename=${STREAMSCHED_DISK}", "size=36g"),
    ]
    number = dice.choice((1, 2, 2, 3, 3, 4, 4, 6, 8))
    sizes: tuple[str, ...]
    depths: tuple[int, ...]
    for index, slot in enumerate(dice.sample(range(12), number)):
        kind = dice.choice(("seq", "seq", "seq", "random", "random", "write", "think"))
        lines += [f"[p{index}]", f"offset={slot * 38}g"]
        if kind in ("seq", "think"):
            direct = dice.choice((0, 1))
            sizes = ("16k", "64k", "256k", "1m") if direct else ("4k", "16k", "64k", "256k", "1m")
            lines += ["rw=read", f"direct={direct}", f"bs={dice.choice(sizes)}", "ioengine=psync"]
            if kind == "think":
                lines += [
                    f"thinktime={dice.choice((200, 1000, 5000, 20000))}",
                    f"thinktime_blocks={dice.choice((1, 4, 16))}",
                ]
            continue
        if kind == "random":
            rw, sizes, depths = "randread", ("4k", "16k", "64k"), (1, 1, 2, 4, 16)
        else:
            rw = dice.choice(("write", "randwrite"))
            sizes, depths = ("16k", "64k", "256k"), (1, 4)
        lines += [f"rw={rw}", "direct=1", f"bs={dice.choice(sizes)}", "ioengine=libaio"]
        lines.append(f"iodepth={dice.choice(depths)}")
        if dice.random() < 0.4:
            lines.append(f"thinktime={dice.choice((1000, 10000, 50000))}")
    return "\n".join(lines) + "\n", path


def recorded(seed: int, scheduler: str) -> list[Bio]:
    """What the disk was asked for, in the rig."""
    text, path = job_of(seed)
    result = boot(
        load_disk(DISK),
        parse_policies(scheduler)[0],
        FIO_WORK,
        path=path,
        queue_depth=DEPTH,
        files={"job.fio": text},
    )
    device = result.files["dev"].decode().split()[0].replace(":", ",")
    return bios(result.files["trace"].decode().splitlines(), device)


@dataclass(frozen=True)
class Row:
    """One forecast and what came of it."""

    seed: int
    before: str
    after: str
    said: Forecast
    mb_s: float
    p99_ms: float

    @property
    def error(self) -> float:
        return self.said.forecasts[0].mb_s.value / self.mb_s - 1

    @property
    def p99_error(self) -> float:
        return self.said.forecasts[0].p99_ms.value / self.p99_ms - 1

    @property
    def holds(self) -> tuple[bool, bool]:
        """Is what came within the ranges that were given?"""
        one = self.said.forecasts[0]
        return (
            one.mb_s.low <= self.mb_s <= one.mb_s.high,
            one.p99_ms.low <= self.p99_ms <= one.p99_ms.high,
        )


def rows_of(seed: int) -> list[Row]:
    """All pairs of one job."""
    lives = {scheduler: recorded(seed, scheduler) for scheduler in SCHEDULERS}
    rows = []
    for before, after in PAIRS:
        said = forecast(lives[before], load_disk(DISK), before, DEPTH, (after,))
        came = observed(lives[after], senders(lives[after]))
        rows.append(Row(seed, before, after, said, came.mb_s, came.p99_ms))
    return rows


def _within(errors: Sequence[float], part: float) -> float:
    """So that @part of the errors are no larger."""
    ordered = sorted(map(abs, errors))
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The document."""
    yield "<!-- SPDX-License-Identifier: GPL-2.0-only -->"
    yield "# Forecasts, and what came of them"
    yield ""
    yield "<!-- Written by `make results WHAT=forecast`. -->"
    yield ""
    yield (
        f"{len({row.seed for row in rows})} random fio jobs, seeds {rows[0].seed} to "
        f"{rows[-1].seed}, of {SECONDS} s on the real kernel in the rig, the disk {DISK} with "
        f"{DEPTH} commands at once, a fifth of them behind a loop device. Recorded under one "
        "scheduler, forecast for another one by `advise`'s model, then done under that. p99: of a "
        "request's time from when it is wanted until it is done. Holds: what came is within the "
        "range that the forecast gave."
    )
    yield ""
    head = "median error, {} | 9 in 10 | holds"
    yield f"| from | to | {head.format('MB/s')} | {head.format('p99')} |"
    yield "|---|---|---|---|---|---|---|---|"
    groups = [
        (f"{a}", f"{b}", [r for r in rows if (r.before, r.after) == (a, b)]) for a, b in PAIRS
    ]
    for before, after, group in [*groups, ("all", "", list(rows))]:
        cells = []
        for index, errors in enumerate(([r.error for r in group], [r.p99_error for r in group])):
            held = sum(row.holds[index] for row in group)
            cells += [
                f"{100 * statistics.median(map(abs, errors)):.1f} %",
                f"{100 * _within(errors, 0.9):.0f} %",
                f"{held} of {len(group)}",
            ]
        yield f"| {before} | {after} | {' | '.join(cells)} |"
    (median, nine), (p99_median, p99_nine) = WANTED
    yield ""
    yield (
        f"Wanted: {100 * median:.0f} % and {100 * nine:.0f} % of throughput, "
        f"{100 * p99_median:.0f} % and {100 * p99_nine:.0f} % of the p99, and 9 of 10 within their "
        "ranges."
    )
    yield ""
    yield "| job | from | to | said, MB/s | came | error | said, p99 ms | came | error |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        one = row.said.forecasts[0]
        marks = ["" if held else " !" for held in row.holds]
        yield (
            f"| {row.seed} | {row.before} | {row.after} | {one.mb_s.value:.1f} ({one.mb_s.low:.1f} "
            f"to {one.mb_s.high:.1f}) | {row.mb_s:.1f}{marks[0]} | {100 * row.error:+.0f} % | "
            f"{one.p99_ms.value:.1f} ({one.p99_ms.low:.1f} to {one.p99_ms.high:.1f}) | "
            f"{row.p99_ms:.1f}{marks[1]} | {100 * row.p99_error:+.0f} % |"
        )


def write(arguments: Sequence[str]) -> None:
    """Measure, and write to --to FILE."""
    if arguments[:1] != ["--to"] or len(arguments) < 2 or arguments[2:] not in ([], ["--force"]):
        raise UsageError("write --to FILE [--force], as in --to docs/results/forecast.md")
    to = Target(Path(arguments[1]), "--force" in arguments[2:])
    check_output(to)
    rows: list[Row] = []
    with ProcessPoolExecutor(nr_jobs(0)) as pool, counted() as progress:
        task = progress.add_task("jobs", total=JOBS)
        for part in pool.map(rows_of, range(FIRST, FIRST + JOBS)):
            rows += part
            progress.advance(task)
    write_whole(to, "\n".join(table(rows)) + "\n")


def main(arguments: Sequence[str]) -> int:
    """What `bench/advise_forecast.py` does."""
    return exit_code_of("advise_forecast", lambda: write(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
