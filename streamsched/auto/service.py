# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched auto`: the rule of choose.py for a disk of this machine, as a small service.

It reads the disk's statistics (/sys/block/DEVICE/stat) and, where it may, the places of its
requests (the tracepoint block_bio_queue, counted by core/workload.c as in the simulator), and
changes the scheduler through sysfs. docs/AUTO.md says what of that is an approximation.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from streamsched._core import ffi, lib
from streamsched.auto.choose import Chooser, Selection
from streamsched.auto.profile import Profile
from streamsched.base.errors import StreamschedError, UsageError
from streamsched.base.tracing import TRACING, Instance
from streamsched.hosts.device import STREAM, SYS, Device, keeping
from streamsched.sim.chooser import Choice
from streamsched.sim.diskfile import Disk
from streamsched.work.blocktrace import LINE
from streamsched.work.looks import SAMPLE_S, Observation

# The kernel's schedulers that the core has as well. bfq and kyber are not among them: nothing
# here was measured that would say what they do.
KERNEL = {"noop": "none", "deadline": "mq-deadline"}
STREAM_PREFIX = f"{STREAM}:"
# What stream can be told to wrap (docs/KERNEL.md).
INNER = ("noop", "deadline", "cscan", "sptf", "linus")
# A disk and its description may differ by this much: makers round.
SAME_SIZE = 0.01
# Columns of /sys/block/DEVICE/stat (Documentation/block/stat.rst of Linux).
READS, READS_MERGED, READ_SECTORS, READ_MS, WRITES, WRITES_MERGED, WRITE_SECTORS, WRITE_MS = range(
    8
)


def scheduler_of(policy: str) -> tuple[str, str | None] | None:
    """The kernel's name of a policy, and stream's inner one; None if the kernel has none such."""
    if policy.startswith(STREAM_PREFIX):
        inner = policy.removeprefix(STREAM_PREFIX)
        return (STREAM, inner) if inner in INNER else None
    name = KERNEL.get(policy)
    return (name, None) if name else None


# ---- the device ----


def check_size(device: Device, disk: Disk) -> None:
    """Refuse the description of another disk."""
    sectors = int(device.text(device.folder / "size"))
    if abs(sectors - disk.capacity_sectors) > SAME_SIZE * disk.capacity_sectors:
        raise UsageError(
            f"{device.name}: has {sectors} sectors and {disk.name} has {disk.capacity_sectors}; "
            "name this disk's own description with --model (`streamsched calibrate` makes one)"
        )


def candidates(device: Device, profile: Profile, wanted: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The profile's policies that this kernel offers, of those @wanted (all, if none is named)."""
    for policy in wanted:
        if policy not in profile.policies:
            raise UsageError(
                f"--policy {policy}: is not in the profile, which has {', '.join(profile.policies)}"
            )
    found, missing = [], []
    for policy in wanted or profile.policies:
        scheduler = scheduler_of(policy)
        if scheduler is None:
            if wanted:
                raise UsageError(f"--policy {policy}: the kernel has no such scheduler")
        elif scheduler[0] in device.offered:
            found.append(policy)
        else:
            missing.append(scheduler[0])
            if wanted:
                raise UsageError(
                    f"{device.name}: the scheduler {scheduler[0]} is not loaded; it offers "
                    f"{', '.join(device.offered)}"
                )
    if len(found) < 2:
        raise UsageError(
            f"{device.name}: offers {', '.join(device.offered)}, of which there is nothing to "
            f"choose; load {' or '.join(dict.fromkeys(missing)) or 'a scheduler'}"
        )
    return tuple(found)


# ---- watching ----


class Places:
    """Where the disk's requests are, from a trace instance of our own."""

    def __init__(self, device: Device, span_sectors: int, tracing: Path) -> None:
        self.workload = ffi.new("struct ss_workload *")
        lib.ss_workload_init(self.workload, span_sectors)
        major, minor = device.number
        self._number = f"{major},{minor}"
        self._events = Instance(device.name, device.number, ["block_bio_queue"], tracing)

    def close(self) -> None:
        """Stop tracing."""
        self._events.close()

    def read(self) -> None:
        """Take in what has come since the last time."""
        for line in self._events.lines():
            self.take(line)

    def take(self, line: str) -> None:
        """One line of the trace."""
        found = LINE.search(line)
        if not found or found["event"] != "block_bio_queue" or found["dev"] != self._number:
            return
        sectors, kind = int(found["sectors"]), found["rwbs"]
        if not sectors or "D" in kind:  # a flush, a discard
            return
        write = "W" in kind
        lib.ss_workload_arrived(
            self.workload, int(found["sector"]), sectors, write, not write or "S" in kind
        )


class Watch:
    """Observations of a disk, as choose.Chooser wants them."""

    def __init__(self, device: Device, places: Places | None) -> None:
        self.device = device
        self.places = places

    def observe(self, now_s: float) -> Observation:
        """The sums until now."""
        column = [int(word) for word in self.device.text(self.device.folder / "stat").split()]
        if len(column) <= WRITE_MS:
            raise StreamschedError(f"{self.device.folder / 'stat'}: has not the columns of Linux")
        reads = column[READS] + column[READS_MERGED]
        done = reads + column[WRITES] + column[WRITES_MERGED]
        moved = 512 * (column[READ_SECTORS] + column[WRITE_SECTORS])
        response_s = (column[READ_MS] + column[WRITE_MS]) / 1000
        if self.places is None:
            return Observation(now_s, done, moved, reads, None, None, None, done, response_s, moved)
        self.places.read()
        seen = self.places.workload.totals
        return Observation(
            now_s,
            seen.requests,
            seen.sectors * 512,
            seen.reads,
            seen.sync,
            seen.continuing,
            seen.near,
            done,
            response_s,
            moved,
        )


# ---- the service ----


class Service:
    """Chooses for one disk until it is told to stop."""

    def __init__(
        self,
        device: Device,
        selection: Selection,
        watch: Watch,
        *,
        dry_run: bool,
        say: Callable[[str], None],
    ) -> None:
        self.device, self.watch, self.dry_run, self.say = device, watch, dry_run, say
        self.before = (device.in_use, device.inner)
        now = next((p for p in selection.candidates if scheduler_of(p) == self.before), None)
        self.chooser = Chooser(selection, current=now)
        self._said = ""
        if now is None:
            self._apply(Choice(0.0, self.chooser.current, "what was there is not in the profile"))

    def _apply(self, choice: Choice) -> None:
        scheduler = scheduler_of(choice.policy)
        assert scheduler
        name, inner = scheduler
        shown = name if inner is None else f"{name} (inner {inner})"
        before = (
            f"{self.device.in_use}{f' (inner {self.device.inner})' if self.device.inner else ''}"
        )
        if self.dry_run:
            if self._said != shown:
                self.say(f"{self.device.name}: would change {before} to {shown}: {choice.why}")
            self._said = shown
            return
        self.device.set_scheduler(name, inner, anew=True)
        self.say(f"{self.device.name}: {before} -> {shown}: {choice.why}")

    def step(self, now_s: float) -> None:
        """Look once, and change the scheduler if it is time to."""
        before = self.chooser.current
        choice = self.chooser.observe(self.watch.observe(now_s))
        if choice is None:
            return
        self._apply(choice)
        if self.dry_run:
            # What is seen goes on to be seen under the scheduler that is really there.
            self.chooser.current = before

    def finish(self) -> None:
        """The scheduler that was there before."""
        if self.dry_run or (self.device.in_use, self.device.inner) == self.before:
            return
        self.device.set_scheduler(*self.before)
        self.say(f"{self.device.name}: stopped, {self.before[0]} again")


def open_places(
    device: Device, disk: Disk, say: Callable[[str], None], sys_: Path = SYS
) -> Places | None:
    """The trace of the disk's requests; None, and why, where there can be none."""
    tracing = sys_ / TRACING
    try:
        return Places(device, disk.capacity_sectors, tracing)
    except OSError as error:
        say(
            f"{device.name}: the places of requests are not known ({tracing}: {error.strerror}); "
            "it is chosen without them"
        )
        return None


@contextlib.contextmanager
def until_stopped() -> Iterator[Callable[[], bool]]:
    """True until a signal asks to stop."""
    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield lambda: not stopped
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def serve(
    device: Device,
    disk: Disk,
    selection: Selection,
    *,
    dry_run: bool,
    sys_: Path = SYS,
) -> None:
    """Choose until SIGINT, SIGTERM or SIGHUP; then all is as before."""

    def say(line: str) -> None:
        print(line, flush=True)

    if not dry_run and not os.access(device.queue / "scheduler", os.W_OK):
        raise UsageError(
            f"no permission to change {device.queue / 'scheduler'}; run this as root, "
            "or with --dry-run"
        )
    kept = contextlib.nullcontext() if dry_run else keeping(device, say)
    places = open_places(device, disk, say, sys_)
    try:
        with until_stopped() as running, kept:
            service = Service(device, selection, Watch(device, places), dry_run=dry_run, say=say)
            names = ", ".join(selection.candidates)
            say(f"{device.name}: {service.chooser.current} of {names}, for {selection.goal}")
            try:
                began = time.monotonic()
                while running():
                    service.step(time.monotonic() - began)
                    time.sleep(SAMPLE_S)
            finally:
                service.finish()
    finally:
        if places:
            places.close()
        sys.stdout.flush()
