# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched advise`: what a disk does, and what it would do under other schedulers.

It watches the disk, or reads a trace, and plays what it saw on a model of the disk (forecast.py).
Nothing is installed or changed.
"""

from __future__ import annotations

import html
import json
import os
import re
import statistics
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.base.tracing import Instance
from streamsched.hosts.device import SYS, Device
from streamsched.sim.diskfile import KINDS, Disk, list_disks, load_disk
from streamsched.sim.simulate import trace_requests
from streamsched.watch.forecast import POLICIES, Forecast, Range, SchedulerForecast
from streamsched.watch.learn import Learned
from streamsched.work import tracefile
from streamsched.work.blocktrace import Bio, bios
from streamsched.work.model import Sender

EVENTS = ("block_bio_queue", "block_rq_complete")
# Of each processor, in which events wait until they are read.
BUFFER_KIB = 8192
LOOK_S = 0.2
# From fewer nothing is forecast.
LEAST_REQUESTS = 50
# What is worth a change: more throughput, a fairer share with hardly less, a shorter tail.
MORE, FAIRER, HARDLY, SOONER = 1.05, 2.0, 0.95, 0.75
# Reads of places that were not touched before: no read-ahead and no cache has them. A rotating disk
# has to seek, so hardly any of them takes less than this.
COLD_SECTORS, COLD_LEAST, COLD_MS = 2048, 10, 1.0
# A model that is so far off forecasts nothing.
WRONG_MODEL = 0.5
# A disk and its description may differ by this much: makers round.
SAME_SIZE = 0.01
# Of struct trace_request: where no completion is known, and SS_SYNC.
NO_TIME, SYNC = (1 << 64) - 1, 1
FORMAT, VERSION = "streamsched-advice", 1
MARK = "<!-- streamsched's advice -->"


# ---- what is seen ----


def watched(
    device: Device, seconds: float, passed: Callable[[float], None], sys_: Path = SYS
) -> list[Bio]:
    """What was asked of the disk in so many seconds, from now on; @passed: a part of them."""
    if os.geteuid() != 0 and sys_ == SYS:
        raise UsageError("watching a disk needs root; run this as root, or give it a --trace")
    tracing = sys_ / "kernel" / "tracing"
    try:
        events = Instance(
            f"advise-{device.name}", device.number, EVENTS, tracing, buffer_kib=BUFFER_KIB
        )
    except OSError as error:
        raise UsageError(
            f"{tracing}: {error.strerror}; mount tracefs there (`mount -t tracefs nodev {tracing}`)"
        ) from None
    lines: list[str] = []
    try:
        begun = time.monotonic()
        while (now := time.monotonic() - begun) < seconds:
            time.sleep(min(LOOK_S, seconds - now))
            lines += events.lines()
            passed(min(now / seconds, 1.0))
        lines += events.lines()
    finally:
        events.close()
    return bios(lines)


def traced(path: str, format_name: str | None, device: str | None) -> list[Bio]:
    """What a block trace has, where it says when requests were done."""
    with tracefile.kept(path, format_name) as kept:
        opened = tracefile.open_trace(kept, format_name)
        try:
            found = [
                Bio(
                    request.sector,
                    request.nr_sectors,
                    request.direction == 1,
                    bool(request.flags & SYNC),
                    request.owner,
                    "pid",
                    request.arrival_ns,
                    request.complete_ns,
                )
                for request in trace_requests(opened.format, opened.chunks(), device=device)
                if request.complete_ns != NO_TIME
            ]
        except UsageError as error:
            raise UsageError(f"{tracefile.shown(path)}: {error}") from None
    if not found:
        raise UsageError(
            f"{tracefile.shown(path)}: it does not say when requests were done; record it with "
            "completions, as blktrace does"
        )
    found.sort(key=lambda bio: bio.arrival_ns)
    return found


def mechanical() -> list[Disk]:
    """The shipped descriptions of disks that rotate."""
    return [disk for disk in map(load_disk, list_disks()) if KINDS[disk.kind] == "mechanical"]


def of_model(model: str) -> Disk | None:
    """The shipped description of a disk's model."""
    # As in "ST2000DM006-2DM164"; a maker's name has no digits.
    words = [word for word in re.split(r"[\s-]+", model) if re.search(r"[A-Z]+\d\w{4}", word)]
    for disk in mechanical():
        if any(word in disk.model for word in words):
            return disk
    return None


def of_size(capacity: int) -> Disk:
    """The shipped description of the next larger size."""
    disks = mechanical()
    larger = [disk for disk in disks if disk.capacity_sectors >= 0.99 * capacity]
    if larger:
        return min(larger, key=lambda disk: disk.capacity_sectors)
    return max(disks, key=lambda disk: disk.capacity_sectors)


def why_no_seeks(found: list[Bio]) -> str | None:
    """Why these requests, in order of arrival, cannot be of a rotating disk; None: they may be."""
    touched: set[int] = set()
    took: list[float] = []
    for bio in found:
        first, last = bio.sector // COLD_SECTORS, (bio.sector + bio.sectors - 1) // COLD_SECTORS
        if not bio.write and touched.isdisjoint((first - 1, first)):
            took.append((bio.complete_ns - bio.arrival_ns) / 1e6)
        touched.update(range(first, last + 1))
    if len(took) < COLD_LEAST:
        return None
    quartile = statistics.quantiles(took)[2]
    if quartile >= COLD_MS:
        return None
    return (
        f"it looks like no rotating disk: of {len(took)} reads far from all before, three in four "
        f"took less than {quartile:.2f} ms"
    )


# ---- what is said ----


@dataclass(frozen=True)
class Advice:
    """A forecast, and what follows from it."""

    name: str  # the disk's, or the trace's
    disk: Disk
    seconds: float
    forecast: Forecast
    best: SchedulerForecast | None  # None: what is there may stay
    why: str
    traced: bool = False  # it is the name of a trace
    learned: Learned | None = None  # where the description came from, if it is not the disk's own


def _better(now: Forecast, one: SchedulerForecast) -> str | None:
    """Why a scheduler is worth a change; None: it is not."""
    if one.mb_s.low > MORE * now.observed.mb_s:
        return f"it moves {one.mb_s.value / now.observed.mb_s:.1f} times as much"
    keeps = one.mb_s.value >= HARDLY * now.observed.mb_s
    if keeps and one.least_share > FAIRER * max(now.observed_share, 0.01):
        return "it moves as much, and who has least has more"
    if keeps and one.p99_ms.high < SOONER * now.observed.p99_ms:
        return "it moves as much, and the longest waits are shorter"
    return None


def advice(
    name: str,
    disk: Disk,
    seconds: float,
    forecast: Forecast,
    *,
    traced: bool = False,
    learned: Learned | None = None,
) -> Advice:
    """What to do."""
    worth = [(one, why) for one in forecast.forecasts if (why := _better(forecast, one))]
    if not worth:
        why = "no scheduler would do more here"
        return Advice(name, disk, seconds, forecast, None, why, traced, learned)
    best, why = max(worth, key=lambda pair: pair[0].mb_s.value)
    return Advice(name, disk, seconds, forecast, best, why, traced, learned)


def _worst(forecast: Forecast) -> tuple[Sender, float] | None:
    """Who has the least part of what it has alone, and how much that is."""
    shares = [
        (forecast.observed.rates.get(one.number, 0.0) / forecast.alone[one.number], one.number, one)
        for one in forecast.senders
        if forecast.alone.get(one.number)
    ]
    if len(shares) < 2:
        return None
    share, _, sender = min(shares)
    return sender, share


def _range(one: Range) -> str:
    digits = 1 if one.value < 100 else 0
    return f"{one.value:.{digits}f} ({one.low:.{digits}f} to {one.high:.{digits}f})"


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def lines(found: Advice) -> Iterator[str]:
    """The answer, for a terminal of 80 columns."""
    now, seen = found.forecast, found.forecast.observed
    yield (
        f"{found.name}: {_many(len(now.senders), 'sender')} in {found.seconds:.0f} s under "
        f"{now.scheduler}."
    )
    yield (
        f"Its model, {found.disk.name}, makes {100 * now.error:+.0f} % MB/s and "
        f"{100 * now.p99_error:+.0f} % p99 of what was seen."
    )
    if found.learned:
        yield (
            f"Learned from this trace: nearest {found.disk.name}, transfer rate "
            f"x{found.learned.rate:.2f}, seeks x{found.learned.seeks:.2f}."
        )
    yield ""
    yield f"{'scheduler':<15} {'MB/s':<19} {'p99, ms':<21} {'seeks/s':>8} {'least share':>12}"
    yield (
        f"{now.scheduler + ' now':<15} {seen.mb_s:<19.1f} {seen.p99_ms:<21.1f} "
        f"{seen.seeks_s:>8.0f} {now.observed_share:>12.2f}"
    )
    for one in now.forecasts:
        yield (
            f"{one.scheduler:<15} {_range(one.mb_s):<19} "
            f"{_range(one.p99_ms):<21} {one.outcome.seeks_s:>8.0f} {one.least_share:>12.2f}"
        )
    yield ""
    if worst := _worst(now):
        sender, share = worst
        then = ""
        if found.best:
            after = found.best.outcome.rates.get(sender.number, 0.0) / now.alone[sender.number]
            then = f", {100 * after:.0f} % under {found.best.scheduler}"
        yield (
            f"{sender.comm} {sender.pid} loses most: it has {100 * share:.0f} % of what it would "
            f"have alone{then}."
        )
    if found.best is None:
        yield f"Leave it as it is: {found.why}."
        return
    yield f"Try {found.best.scheduler}: {found.why}."
    yield f"    {command(found)}"


def command(found: Advice) -> str:
    """How to try it."""
    assert found.best
    name = "DISK" if found.traced else found.name
    load = "modprobe stream-iosched && " if found.best.scheduler == "stream" else ""
    return f"{load}echo {found.best.scheduler} >/sys/block/{name}/queue/scheduler"


def lines_without_seeks(name: str, why: str) -> Iterator[str]:
    """The answer for what does not rotate, for a terminal."""
    yield from textwrap.wrap(f"{name}: {why}.", 80, break_long_words=False, break_on_hyphens=False)
    yield "Leave it as it is: stream saves seeks, and there are none."


def document_without_seeks(name: str, scheduler: str, why: str) -> str:
    """The same as JSON."""
    keys = {"format": FORMAT, "version": VERSION, "disk": name, "model": None}
    return json.dumps({**keys, "scheduler": scheduler, "advice": scheduler, "why": why}, indent=2)


def document(found: Advice) -> str:
    """As JSON."""
    now = found.forecast

    def bounds(one: Range) -> dict[str, float]:
        return {"value": round(one.value, 3), "low": round(one.low, 3), "high": round(one.high, 3)}

    worst = _worst(now)
    return json.dumps(
        {
            "format": FORMAT,
            "version": VERSION,
            "disk": found.name,
            "model": found.disk.name,
            "learned": None
            if found.learned is None
            else {
                "transfer_rate": round(found.learned.rate, 3),
                "seeks": round(found.learned.seeks, 3),
            },
            "seconds": round(found.seconds, 3),
            "scheduler": now.scheduler,
            "observed": {
                "mb_s": round(now.observed.mb_s, 3),
                "p99_ms": round(now.observed.p99_ms, 3),
                "seeks_s": round(now.observed.seeks_s, 3),
                "least_share": round(now.observed_share, 4),
                "senders": len(now.senders),
            },
            "model_error": {"mb_s": round(now.error, 4), "p99": round(now.p99_error, 4)},
            "forecasts": [
                {
                    "scheduler": one.scheduler,
                    "mb_s": bounds(one.mb_s),
                    "p99_ms": bounds(one.p99_ms),
                    "seeks_s": round(one.outcome.seeks_s, 3),
                    "least_share": round(one.least_share, 4),
                }
                for one in now.forecasts
            ],
            "loses_most": None
            if worst is None
            else {"command": worst[0].comm, "pid": worst[0].pid, "share": round(worst[1], 4)},
            "advice": found.best.scheduler if found.best else now.scheduler,
            "why": found.why,
        },
        indent=2,
    )


def page(name: str, answer: Iterable[str]) -> str:
    """The lines of an answer as a page of HTML that needs nothing else."""
    text = html.escape("\n".join(answer))
    title = html.escape(f"{name}: what another scheduler would do")
    return (
        f"{MARK}\n<!doctype html>\n<html lang=en><meta charset=utf-8><title>{title}</title>\n"
        "<meta name=viewport content='width=device-width'>\n"
        "<style>:root{color-scheme:light dark}body{max-width:90ch;margin:2em auto;padding:0 1em}"
        f"pre{{overflow-x:auto}}</style>\n<h1>{title}</h1>\n<pre>{text}</pre>\n</html>\n"
    )


def check_size(device: Device, disk: Disk) -> None:
    """Refuse the description of another disk."""
    sectors = int(device.text(device.folder / "size"))
    if abs(sectors - disk.capacity_sectors) > SAME_SIZE * disk.capacity_sectors:
        raise UsageError(
            f"{device.name}: has {sectors} sectors and {disk.name} has {disk.capacity_sectors}; "
            "name this disk's own description with --model (`streamsched calibrate` makes one)"
        )


def check_model(found: Advice, *, named: bool) -> None:
    """Refuse to forecast anything from the model of quite another disk; @named: with --model."""
    error = found.forecast.error
    if abs(error) > WRONG_MODEL and not named:
        raise StreamschedError(
            f"{found.name}: the model that comes nearest, {found.disk.name}, makes "
            f"{100 * error:+.0f} % MB/s of what was seen: it is an array, no rotating disk, or an "
            "unusual one; docs/guide/ADVISE.md says what can be done with the trace alone"
            if found.traced
            else f"{found.name}: the model that comes nearest, {found.disk.name}, makes "
            f"{100 * error:+.0f} % MB/s of what was seen; make a description of this disk with "
            "`streamsched calibrate` and name it with --model"
        )
    if abs(error) > WRONG_MODEL:
        raise StreamschedError(
            f"{found.name}: the model of {found.disk.name} makes {100 * error:+.0f} % MB/s of what "
            "was seen, so it is no model of this disk; name its description with --model "
            "(`streamsched calibrate` makes one)"
        )


def check_work(found: list[Bio], name: str, *, traced: bool) -> None:
    """Refuse too little to say anything of; @traced: it comes from --trace."""
    if len(found) < LEAST_REQUESTS and traced:
        raise StreamschedError(
            f"{name}: has only {len(found)} requests, too few to forecast anything; record a "
            "longer trace while the disk has work"
        )
    if len(found) < LEAST_REQUESTS:
        raise StreamschedError(
            f"{name}: only {len(found)} requests came meanwhile, too few to forecast anything; "
            "watch it while it has work, or for longer (--seconds)"
        )


def scheduler_known(name: str) -> str:
    """@name, or UsageError."""
    if name in POLICIES:
        return name
    raise UsageError(
        f"--scheduler {name}: what was recorded under it cannot be played; known are "
        f"{', '.join(POLICIES)}"
    )
