# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched auto`: the scheduler of a rotating disk, chosen by measuring the work it has.

The scheduler in use is compared with each other one, as `streamsched measure` compares them, and
better.py says whether it stays. kept.py puts back what there was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable

from streamsched.auto.better import SCHEDULERS, judge
from streamsched.auto.kept import Kept
from streamsched.base.errors import Interrupted, StreamschedError, UsageError
from streamsched.base.signals import until_stopped
from streamsched.base.tracing import TRACING
from streamsched.hosts.device import Device, device_of, keeping
from streamsched.hosts.disks import CONFIGFS, arrays_of, disks_of
from streamsched.hosts.enable import check_disk, kernel_name
from streamsched.hosts.enable_state import read_state, record_of
from streamsched.hosts.machine import Machine
from streamsched.watch.measure import Measurement, Responses, differences, plan
from streamsched.watch.measure_state import Spec

MOST_HOURS = 365 * 24
STEP_S = 1.0

Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class How:
    """What the command line says."""

    goal: str = "throughput"
    among: str | None = None  # names with commas
    minutes: float = 20
    hours: float = 24
    once: bool = False


# ---- which disk, which schedulers ----


def disk_of(machine: Machine, given: str) -> Device:
    """A disk whose scheduler may be chosen; or UsageError."""
    name = kernel_name(machine, given)
    check_disk(machine, name, {disk.name: disk for disk in disks_of(machine)})
    _refuse_member(machine, name)
    device = device_of(name, machine.path("/sys"))
    if not os.access(device.queue / "scheduler", os.W_OK):
        raise UsageError(f"no permission to change {device.queue / 'scheduler'}; run this as root")
    return device


def _refuse_member(machine: Machine, name: str) -> None:
    """Members of an array that is attached work together."""
    members = {array.name: set(array.members) for array in arrays_of(machine)}
    for array in machine.names(CONFIGFS):
        if machine.text(f"{CONFIGFS}/{array}/attached") != "1":
            continue
        if name in members.get(array, set()) | set(machine.names(f"/sys/block/{array}/slaves")):
            raise UsageError(
                f"{name}: is a member of {array}, which is attached; "
                f"`streamsched array detach /dev/{array}` first"
            )


def _refuse_enabled(machine: Machine, name: str) -> None:
    """What stays behind must not be taken back by udev."""
    state = read_state(machine)
    if state.all or record_of(machine, name, state.disks):
        undo = "--all" if state.all else name
        raise UsageError(
            f"{name}: is enabled, and a rule of udev would give it stream again; "
            f"`streamsched disable {undo}` first"
        )


def others_of(device: Device, among: str | None) -> tuple[str, ...]:
    """What may be chosen; UsageError where that is nothing but what is in use."""
    names = [name.strip() for name in among.split(",")] if among is not None else []
    for name in names:
        if name not in SCHEDULERS:
            raise UsageError(
                f"--among {among}: {name or 'an empty name'} cannot be chosen; "
                f"there are: {', '.join(SCHEDULERS)}"
            )
        if name not in device.offered:
            raise UsageError(
                f"--among {among}: {device.name} has no scheduler {name}; it offers "
                f"{', '.join(device.offered)} (`modprobe` loads others)"
            )
    found = tuple(one for one in SCHEDULERS if one in (names or device.offered))
    if not set(found) - {device.in_use}:
        raise UsageError(
            f"{device.name}: has {device.in_use}, and there is nothing else to choose; it offers "
            f"{', '.join(device.offered)} (`modprobe` loads others)"
        )
    return found


# ---- choosing ----


class Auto:
    """Of one disk."""

    def __init__(
        self,
        machine: Machine,
        device: Device,
        kept: Kept,
        how: How,
        running: Callable[[], bool],
        say: Say,
        note: Say,
    ) -> None:
        self._machine, self._device, self._how, self._running = machine, device, how, running
        self._sys, self.kept = machine.path("/sys"), kept
        self._say, self._noted, self._write = say, set[str](), note
        self._names = others_of(device, how.among)
        self._left: list[str] = []  # of a look that an error has ended
        if how.goal == "p99":
            try:
                Responses(device, self._sys / TRACING).close()
            except OSError as error:
                raise UsageError(
                    f"--goal p99: p99 is not known ({self._sys / TRACING}: {error.strerror})"
                ) from None
        kept.save()
        now = kept.chosen.scheduler
        others = ", ".join(name for name in self._names if name != now)
        say(f"{device.name}: {now} is compared with {others}, {how.minutes:g} minutes each")

    def note(self, line: str) -> None:
        """Once: a disk may be idle for long."""
        if line not in self._noted:
            self._write(line)
        self._noted.add(line)

    def look(self) -> None:
        """Compare what is in use with all others, and choose what is better.

        After an error the next look goes on behind the one that had it.
        """
        _refuse_member(self._machine, self._device.name)
        if said := self.kept.take_up():
            self._say(said)
        self._left = self._left or list(self._names)
        while self._left:
            name = self._left.pop(0)
            if name != self.kept.chosen.scheduler and name in self._device.offered:
                self._compare(Spec(name, None))

    def _compare(self, other: Spec) -> None:
        now, how = self.kept.chosen, self._how
        work = Measurement(
            self._device,
            (now, other),
            self.note,
            self._running,
            self._sys,
            state=self.kept,
            progress=self._write if how.once else lambda _line: None,
        )
        try:
            work.check_work()
            work.run(plan(how.minutes, int.from_bytes(os.urandom(4))))
        finally:
            work.close()
        verdict = judge(differences(work.pairs), how.goal)
        if verdict.better:
            self.kept.choose(other)
        head = f"{other} instead of {now}" if verdict.better else f"{now} stays"
        self._say(f"{self._device.name}: {head}: {other} {verdict.why}")

    def serve(self) -> None:
        """Look, and look again, until it is to end."""
        while self._running():
            rest_s = 3600 * self._how.hours
            try:
                self.look()
            except Interrupted:
                return
            except StreamschedError as error:
                if not (self._device.folder / "queue").is_dir() or not self.kept.same:
                    raise
                self.note(str(error))
                rest_s = 60 * self._how.minutes
            until = time.monotonic() + rest_s
            while self._running() and (left := until - time.monotonic()) > 0:
                time.sleep(min(left, STEP_S))


def choose(machine: Machine, given: str, how: How, say: Say, note: Say) -> None:
    """Choose until SIGINT, SIGTERM or SIGHUP, and then all is as before; or once, and leave it."""
    plan(how.minutes, 0)
    if not 0 < how.hours <= MOST_HOURS:
        raise UsageError(f"--every {how.hours:g}: must be more than 0 and at most {MOST_HOURS}")
    device = disk_of(machine, given)
    if how.once:
        _refuse_enabled(machine, device.name)
    with until_stopped() as running, keeping(device, note), contextlib.ExitStack() as end:
        kept = Kept(device, machine.path("/sys"))
        if kept.found:  # also where the rest is refused
            end.callback(kept.undo, say)
            if said := kept.take_up():
                say(said)
        before = kept.chosen
        one = Auto(machine, device, kept, how, running, say, note)
        if not kept.found:
            end.callback(kept.undo, say)
        if not how.once:
            one.serve()
            return
        if before.scheduler != kept.scheduler:  # an earlier --once stays, unless a better one comes
            end.pop_all()
        one.look()
        end.pop_all()
        if kept.chosen.scheduler == kept.scheduler:
            kept.undo(say)
            return
        say(
            f"{device.name}: {kept.chosen} stays until the next boot; "
            f"`streamsched auto --undo {device.name}` puts {kept.scheduler} back"
        )


def undo(machine: Machine, given: str, say: Say, note: Say) -> None:
    """Put back what there was before a choice that was left."""
    device = disk_of(machine, given)
    with keeping(device, note):
        kept = Kept(device, machine.path("/sys"))
        if not kept.found:
            raise UsageError(f"{device.name}: has no choice of auto; there is nothing to undo")
        if not kept.undo(say):
            raise StreamschedError(f"{device.name}: is not as it was; try it again")
