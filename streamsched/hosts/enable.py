# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched enable` and `disable`: rotating disks get stream, now and after each boot.

What was there before is kept in STATE (enable_state.py) until it is put back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.base.files import Target, check_output, write_whole
from streamsched.hosts import kernelarray
from streamsched.hosts.device import KEEP, STREAM, Device, keep_file, keeper
from streamsched.hosts.disks import (
    LEAST_REQUESTS,
    NO_DISK,
    ArrayState,
    Disk,
    arrays_of,
    disks_of,
)
from streamsched.hosts.doctor_boot import UDEV, check_boot
from streamsched.hosts.doctor_finding import Level
from streamsched.hosts.doctor_kernel import LOADED, check_dkms, check_kernel, modules_of
from streamsched.hosts.enable_state import (
    DISK_IDS,
    EVERY,
    RULES,
    STATE,
    One,
    OneArray,
    OneDisk,
    State,
    identity_of,
    name_now,
    read_state,
    record_of,
    rules_are_ours,
)
from streamsched.hosts.machine import Machine

ARRAY_RULE = "/usr/share/streamsched/61-stream-array.rules"
LINK = f"{UDEV[0]}/61-stream-array.rules"
ARRAY_IDS = ("MD_UUID", "DM_UUID")
UNIT = "streamsched-weights.service"
UNITS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")

# ---- which disk it is ----


def kernel_name(machine: Machine, given: str) -> str:
    """The kernel's name of sda, /dev/sda or a link in /dev."""
    path = machine.path(given if given.startswith("/") else f"/dev/{given}")
    name = os.path.relpath(os.path.realpath(path), os.path.realpath(machine.path("/dev")))
    return name.replace("/", "!")


def _below(machine: Machine, name: str) -> set[str]:
    """The disks and the arrays of md that a device stands on."""
    folder = machine.path(f"/sys/class/block/{name}")
    if machine.exists(f"/sys/class/block/{name}/partition"):
        return {folder.resolve().parent.name}
    if machine.exists(f"/sys/class/block/{name}/md"):
        return {name}
    below = machine.names(f"/sys/class/block/{name}/slaves")
    if file := machine.text(f"/sys/class/block/{name}/loop/backing_file"):
        with contextlib.suppress(OSError):
            number = machine.path(file).stat().st_dev
            device = machine.path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
            below += [device.resolve().name] if device.exists() else []
    return set().union(*(_below(machine, one) for one in below)) if below else {name}


def _is_of_all(machine: Machine, disk: Disk) -> bool:
    """As the rule has it."""
    return disk.is_for_stream and machine.text(f"/sys/block/{disk.name}/removable") != "1"


def check_disk(machine: Machine, name: str, disks: Mapping[str, Disk]) -> Disk:
    """The disk @name; UsageError with the reason if stream is not for it."""
    folder = f"/sys/class/block/{name}"
    if name.startswith(".") or not machine.exists(folder):
        there = f"; there are: {', '.join(disks)}" if disks else ""
        raise UsageError(f"{name}: there is no such disk{there}")
    if machine.exists(f"{folder}/partition"):
        (whole,) = _below(machine, name)
        raise UsageError(f"{name}: is a partition; name the disk, {whole}")
    if machine.text(f"{folder}/removable") == "1":
        raise UsageError(f"{name}: has removable media, for which stream is not meant")
    if NO_DISK.match(name) or name not in disks:
        below = ", ".join(sorted(_below(machine, name) - {name}))
        raise UsageError(f"{name}: is no disk; enable the disk below it{below and f': {below}'}")
    disk = disks[name]
    if disk.rotating is not True:
        why = "is a solid-state disk" if disk.rotating is False else "may not rotate"
        raise UsageError(f"{name}: {why}; stream has no seeks to save there")
    if disk.zoned != "none":
        zoned = disk.zoned or "not known how"
        raise UsageError(f"{name}: is a zoned disk ({zoned}), for which stream is not meant")
    return disk


# ---- what is to be done ----


@dataclasses.dataclass
class Plan:
    """What a call changes, all of it checked."""

    before: State
    after: State
    disks: list[Disk]
    arrays: list[ArrayState]  # to attach
    notes: list[str]


def _check_machine(machine: Machine, names: Iterable[str], dry_run: bool) -> None:
    """UsageError for what would fail later."""
    for name in names:
        if process := keeper(Device(name, machine.path(f"/sys/block/{name}"))):
            raise UsageError(f"{name}: process {process} changes its scheduler; end that first")
    if dry_run:
        return
    if os.geteuid():
        raise UsageError("only root can change that; run this as root, or with --dry-run")
    for name in (RULES, STATE):
        # One that leads to /dev/null is udev's way to mask a rule.
        if machine.path(name).is_symlink():
            raise UsageError(f"{name}: is a link, which is nobody's to write through; remove it")
        if name == RULES and not rules_are_ours(machine):
            raise UsageError(f"{name}: is there, and not of `streamsched enable`; move it away")
        if name == RULES or machine.exists(name):
            check_output(Target(machine.path(name), replace=True), option="")


def _check_module(machine: Machine, disks: Sequence[Disk]) -> None:
    """UsageError with what `streamsched doctor` says where stream cannot be chosen."""
    modules = modules_of(machine)
    there = machine.exists(LOADED) or any(STREAM in disk.schedulers for disk in disks)
    if there or machine.release in modules:
        return
    for one in (*check_kernel(machine), *check_dkms(machine, modules)):
        if one.level is Level.problem:
            advice = (one.advice or "").rstrip(".")
            raise UsageError(f"{one.text}; {one.command or advice[:1].lower() + advice[1:]}")


class _Choice:
    """The disks and arrays that a call of enable names."""

    def __init__(self, machine: Machine, state: State) -> None:
        self.machine, self.state = machine, state
        self.known = {disk.name: disk for disk in disks_of(machine)}
        self.arrays = {array.name: array for array in arrays_of(machine)}
        self.disks: dict[str, tuple[Disk, str]] = {}  # with OneDisk.by
        self.chosen: list[ArrayState] = []
        self.notes: list[str] = []

    def add_named(self, given: str) -> None:
        name = kernel_name(self.machine, given)
        if name in self.arrays:
            if self.arrays[name] not in self.chosen:
                self.add_array(self.arrays[name], name)
            return
        disk = check_disk(self.machine, name, self.known)
        if self.state.all:
            raise UsageError(f"{name}: is enabled already, with all rotating disks (--all)")
        if one := record_of(self.machine, name, self.state.disks):
            known = (own.name for own in self.state.arrays if own.value == one.by)
            more = f", with its array {next(known, one.by)}" if one.by else ""
            raise UsageError(f"{name}: is enabled already{more}")
        for array in self.arrays.values():
            if name in array.members and array.attached:
                raise UsageError(
                    f"{name}: is a member of {array.name}, which is attached; enable {array.name}"
                )
            if name in array.members and array.coordinable:
                self.notes.append(
                    f"{name}: is a member of {array.name}, which is not attached; "
                    f"`streamsched enable {array.name}` coordinates its members"
                )
        self.disks.setdefault(name, (disk, ""))

    def add_array(self, array: ArrayState, by: str) -> None:
        name = array.name
        if record_of(self.machine, name, self.state.arrays):
            raise UsageError(f"{name}: is enabled already")
        if not array.coordinable:
            raise UsageError(f"{name}: {array.why.removeprefix(f'{name}: ')}")
        for other in self.arrays.values():
            both = set(other.members) & set(array.members)
            if both and other is not array and (other.attached or other in self.chosen):
                raise UsageError(
                    f"{name}: its member {min(both)} is coordinated in {other.name}, and cannot "
                    "be in two arrays"
                )
        if not self.machine.exists(ARRAY_RULE):
            raise UsageError(
                f"{name}: there is no {ARRAY_RULE}, which coordinates its members at boot; "
                "install the package streamsched"
            )
        for member in array.members:
            try:
                disk = check_disk(self.machine, member, self.known)
            except UsageError as error:
                raise UsageError(f"{name}: its member {error}") from None
            if not record_of(self.machine, member, self.state.disks):
                self.disks.setdefault(member, (disk, by))
        self.chosen.append(array)

    def add_all(self) -> None:
        if self.state.all:
            raise UsageError("all rotating disks are enabled already")
        for disk in self.known.values():
            enabled = record_of(self.machine, disk.name, self.state.disks)
            if _is_of_all(self.machine, disk) and not enabled:
                self.disks[disk.name] = (disk, EVERY)
        # A disk can be in one array only: in the largest.
        for array in sorted(self.arrays.values(), key=self._size, reverse=True):
            rotates = any(self.known[one].rotating for one in array.members if one in self.known)
            if rotates and not record_of(self.machine, array.name, self.state.arrays):
                try:
                    self.add_array(array, EVERY)
                except UsageError as error:
                    self.notes.append(f"not coordinated: {error}")

    def _size(self, array: ArrayState) -> int:
        return self.machine.number(f"/sys/block/{array.name}/size") or 0


def _weights(machine: Machine, state: State, notes: list[str]) -> bool:
    """Is UNIT to be enabled?"""
    there = any(machine.exists(f"{folder}/{UNIT}") for folder in UNITS)
    if not there or not machine.exists("/run/systemd/system"):
        why = f"systemd, which starts {UNIT}, does not run" if there else f"there is no {UNIT}"
        notes.append(f"{why}: io.weight and IOWeight= of cgroups do not count")
        return state.weights
    asked = machine.ask(["systemctl", "is-enabled", UNIT])
    said = asked.out.strip() if asked else ""
    if said == "masked":
        notes.append(f"{UNIT} is masked: io.weight and IOWeight= of cgroups do not count")
    return state.weights or said == "disabled"


def plan_enable(machine: Machine, names: Sequence[str], every: bool, dry_run: bool) -> Plan:
    """What enabling these changes; UsageError if it cannot be."""
    state = read_state(machine)
    choice = _Choice(machine, state)
    if every:
        choice.add_all()
    for name in names:
        choice.add_named(name)
    disks = [disk for disk, _ in choice.disks.values()]
    _check_module(machine, disks)
    _check_machine(machine, choice.disks, dry_run)
    arrays = [
        OneArray(one.name, *identity_of(machine, one.name, ARRAY_IDS), one.attached)
        for one in choice.chosen
    ]
    values = {one.name: one.value for one in arrays}
    new = []
    for disk, by in choice.disks.values():
        key, value = identity_of(machine, disk.name, DISK_IDS)
        if not key and not every:
            choice.notes.append(
                f"{disk.name}: has neither a WWN, a serial number nor a path of its own; the rule "
                "is for its name, which another disk may have after a boot"
            )
        was = disk.scheduler or "none"
        by = values.get(by, by)
        new.append(OneDisk(disk.name, key, value, was, disk.nr_requests, by))
    wanted = bool(arrays) or (every and machine.exists(ARRAY_RULE))
    link = wanted and not machine.exists(LINK) and not machine.leads_nowhere(LINK)
    if wanted and not machine.has_program("streamsched"):
        choice.notes.append("udev finds no command streamsched, which coordinates arrays at boot")
    after = State(
        state.all or every,
        state.link or link,
        _weights(machine, state, choice.notes),
        (*state.disks, *new),
        (*state.arrays, *arrays),
    )
    attach = [one for one in choice.chosen if not one.attached]
    choice.notes += _findings(machine, after)
    return Plan(state, after, disks, attach, choice.notes)


class _Planned(Machine):
    """A machine whose folder for rules of udev is @planned."""

    def __init__(self, machine: Machine, planned: str) -> None:
        super().__init__(machine.root, machine.do)
        self.planned = planned

    def path(self, name: str) -> Path:
        inside = name == UDEV[0] or name.startswith(f"{UDEV[0]}/")
        return Path(self.planned + name.removeprefix(UDEV[0])) if inside else super().path(name)


def _findings(machine: Machine, after: State) -> Iterator[str]:
    """What `streamsched doctor` finds that takes enabled disks back."""
    disks = [
        disk
        for disk in disks_of(machine)
        if _is_of_all(machine, disk) and (after.all or record_of(machine, disk.name, after.disks))
    ]
    with tempfile.TemporaryDirectory() as planned:
        # What is no file, or leads nowhere, has no rules.
        with contextlib.suppress(shutil.Error, OSError):
            shutil.copytree(
                machine.path(UDEV[0]), planned, ignore_dangling_symlinks=True, dirs_exist_ok=True
            )
        Path(planned, Path(RULES).name).write_text(after.rules())
        for one in check_boot(_Planned(machine, planned), disks):
            if one.level is not Level.ok:
                more = one.command or one.advice
                yield f"{one.text}{f': {more}' if more else ''}"


# ---- how it is done ----

Say = Callable[[str], None]


def _call(machine: Machine, *command: str) -> None:
    """Start a program; StreamschedError if it fails."""
    done = machine.do(command)
    if done is None or done.code:
        why = done.complaint if done else "there is no such program"
        raise StreamschedError(f"{' '.join(command)}: {why}")


def _put(path: Path, text: str | bytes | None) -> None:
    """The file with @text, whole or not at all; None: no file, nor an empty folder of ours."""
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(Target(path, replace=True), text)
        return
    path.unlink(missing_ok=True)
    _remove_empty(path.parent)


def _remove_empty(folder: Path) -> None:
    if folder.name == "streamsched":
        with contextlib.suppress(OSError):
            folder.rmdir()


class _Undo:
    """What takes back, last things first, what was done."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._failed: list[str] = []

    def add(self, what: Callable[..., object], *arguments: object) -> None:
        def step() -> None:
            try:
                what(*arguments)
            except (StreamschedError, OSError) as error:
                self._failed.append(str(error))

        self._stack.callback(step)

    @contextlib.contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """An error in here takes all back, and says so; StreamschedError."""
        try:
            with self._stack:
                yield
                self._stack.pop_all()
        except (StreamschedError, OSError) as error:
            more = f", but for this: {'; '.join(self._failed)}" if self._failed else ""
            raise StreamschedError(f"{error}; all is as it was before{more}") from None


class _Work:
    """Things that are done, or with @dry_run only said, each with a line for people."""

    def __init__(self, machine: Machine, dry_run: bool, say: Say) -> None:
        self.machine, self.dry_run, self.say = machine, dry_run, say
        self.has = "would have" if dry_run else "has"
        self.undo = _Undo()

    def do(self, name: str, text: str, what: Callable[[], str | None]) -> None:
        """@what, which may add to the line that @name has @text."""
        more = "" if self.dry_run else what() or ""
        self.say(f"{name}: {self.has} {text}{more}")

    def device(self, name: str) -> Device:
        return Device(name, self.machine.path(f"/sys/block/{name}"))

    def write_files(self, after: State) -> None:
        """STATE and then RULES; nothing is taken back by udev after that."""
        if not self.machine.exists(LOADED):
            self.undo.add(self.machine.do, ["modprobe", "-r", "stream-iosched"])
            _call(self.machine, "modprobe", "stream-iosched")
        state, rules = self.machine.path(STATE), self.machine.path(RULES)
        olds = [path.read_bytes() if path.exists() else None for path in (state, rules)]
        self.undo.add(_put, state, olds[0])
        _put(state, after.text())
        self.undo.add(_call, self.machine, "udevadm", "control", "--reload")
        self.undo.add(_put, rules, olds[1])
        _put(rules, after.rules())
        _call(self.machine, "udevadm", "control", "--reload")

    def to_stream(self, disk: Disk) -> str:
        """Have the disk scheduled by stream now."""
        device = self.device(disk.name)
        keep_file(device).unlink(missing_ok=True)  # of a process that was killed
        requests = device.queue / "nr_requests"
        if disk.nr_requests is not None:
            self.undo.add(device.write, requests, str(disk.nr_requests))
        self.undo.add(device.set_scheduler, device.in_use, None)
        device.set_scheduler(STREAM, None)
        if device.in_use != STREAM:
            raise StreamschedError(f"{disk.name}: the kernel does not take stream")
        number = self.machine.number(f"/sys/block/{disk.name}/queue/nr_requests")
        if number is None or number >= LEAST_REQUESTS:
            return ""
        device.write(requests, str(LEAST_REQUESTS))
        return f", with nr_requests {LEAST_REQUESTS} instead of {number}"

    def attach(self, name: str) -> None:
        kernelarray.attach(f"/dev/{name}")
        self.undo.add(kernelarray.detach, name)

    def link(self) -> None:
        self.machine.path(LINK).symlink_to(ARRAY_RULE)
        self.undo.add(self.machine.path(LINK).unlink)

    def start_weights(self) -> None:
        self.undo.add(self.machine.do, ["systemctl", "disable", "--now", UNIT])
        _call(self.machine, "systemctl", "enable", "--now", UNIT)

    # ---- and undone ----

    def from_stream(self, name: str, one: OneDisk | None) -> None:
        """The scheduler that was there before, where nobody has chosen another."""
        device = self.device(name)
        if not self.dry_run:
            keep_file(device).unlink(missing_ok=True)  # of a process that was killed
        if device.in_use != STREAM or (one and one.scheduler == STREAM):
            why = "as before" if one and one.scheduler == device.in_use else "chosen by hand"
            self.say(f"{name}: {device.in_use} stays, {why}")
            return
        now = was = one.scheduler if one else "mq-deadline"
        if not self.dry_run:
            now = self._choose(device, was, one)
        more = "" if now == was else f", for {was} is refused"
        self.say(f"{name}: {self.has} {now} instead of stream{more}")

    def _choose(self, device: Device, was: str, one: OneDisk | None) -> str:
        """The scheduler @was, or where the kernel has it no more another one."""
        for scheduler in (was, "mq-deadline", "none"):
            with contextlib.suppress(StreamschedError):
                device.set_scheduler(scheduler, None)
                break
        if device.in_use == STREAM:
            raise StreamschedError(f"{device.name}: the kernel keeps stream")
        if one and one.nr_requests is not None and device.in_use == was:
            requests = device.queue / "nr_requests"
            if device.text(requests) != str(one.nr_requests):
                try:
                    device.write(requests, str(one.nr_requests))
                except StreamschedError:
                    self.say(f"{device.name}: nr_requests {one.nr_requests} is refused")
        return device.in_use


@contextlib.contextmanager
def _alone(machine: Machine, dry_run: bool) -> Iterator[None]:
    """While no other such command is at work. What is locked is a folder: no file is left."""
    if dry_run:
        yield
        return
    handle = os.open(machine.path("/run"), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StreamschedError(
                "another `streamsched enable` or `disable` is at work; "
                "call this again when it has ended"
            ) from None
        yield
    finally:
        os.close(handle)


def enable(
    machine: Machine, names: Sequence[str], every: bool, dry_run: bool, say: Say, note: Say
) -> None:
    """Do what plan_enable() says, all of it or nothing; @say has a line for each thing."""
    with _alone(machine, dry_run):
        _enable(machine, names, every, dry_run, say, note)


def _enable(
    machine: Machine, names: Sequence[str], every: bool, dry_run: bool, say: Say, note: Say
) -> None:
    plan = plan_enable(machine, names, every, dry_run)
    before, after = plan.before, plan.after
    lines: list[str] = []
    work = _Work(machine, dry_run, lines.append)
    with work.undo.all_or_nothing():
        if not dry_run:
            work.write_files(after)
        for disk in plan.disks:
            was = "" if disk.scheduler == STREAM else f" instead of {disk.scheduler}"
            if dry_run and disk.queue_depth == 1:
                was += f", with nr_requests {LEAST_REQUESTS}"
            do = functools.partial(work.to_stream, disk)
            work.do(disk.name, f"stream{was}, now and after each boot", do)
        for array in plan.arrays:
            members = ", ".join(array.members)
            attach = functools.partial(work.attach, array.name)
            work.do(array.name, f"coordinated members, {members}", attach)
        if after.link and not before.link:
            work.do(LINK, "been linked to the rule for arrays", work.link)
        if after.weights and not before.weights:
            work.do(UNIT, "been enabled", work.start_weights)
        disks = "all rotating disks" if after.all else "these disks"
        work.do(RULES, f"been written, for {disks}", lambda: None)
    for line in lines:
        say(line)
    for line in plan.notes:
        note(line)


# ---- disable ----


def _record_of(machine: Machine, state: State, given: str) -> OneDisk | OneArray:
    """That of the disk or array; UsageError if it cannot be undone by itself."""
    name = kernel_name(machine, given)
    records: tuple[OneDisk | OneArray, ...] = (*state.disks, *state.arrays)
    found = record_of(machine, name, records)
    if not machine.exists(f"/sys/block/{name}"):
        gone = (one for one in records if one.name == name and not name_now(machine, one))
        found = next(gone, None)
    if state.all:
        raise UsageError(f"{name}: all rotating disks are enabled; only --all disables them")
    if found is None:
        raise UsageError(f"{name}: is not enabled")
    for array in arrays_of(machine) if isinstance(found, OneDisk) else []:
        if name in array.members and record_of(machine, array.name, state.arrays):
            raise UsageError(f"{name}: is enabled with its array {array.name}; disable that")
    return found


def _later(machine: Machine, state: State) -> list[str]:
    """Disks that have come since all were enabled."""
    return [
        disk.name
        for disk in disks_of(machine)
        if disk.scheduler == STREAM
        and _is_of_all(machine, disk)
        and not record_of(machine, disk.name, state.disks)
    ]


def disable(machine: Machine, names: Sequence[str], every: bool, dry_run: bool, say: Say) -> None:
    """Put back what there was before enable(); @say has a line for each thing."""
    with _alone(machine, dry_run):
        _disable(machine, names, every, dry_run, say)


def _disable(machine: Machine, names: Sequence[str], every: bool, dry_run: bool, say: Say) -> None:
    state = read_state(machine)
    if every and state.is_empty and not machine.exists(RULES):
        raise UsageError("nothing is enabled")
    gone = {_record_of(machine, state, name) for name in names}
    if every:
        gone |= {*state.disks, *state.arrays}
    arrays = {one.value for one in gone if isinstance(one, OneArray)}
    gone |= {one for one in state.disks if one.by in arrays}
    after = dataclasses.replace(
        state,
        all=state.all and not every,
        disks=tuple(one for one in state.disks if one not in gone),
        arrays=tuple(one for one in state.arrays if one not in gone),
    )
    after = dataclasses.replace(
        after,
        link=state.link and bool(after.arrays),
        weights=state.weights and not after.is_empty,
    )
    where = {one: name_now(machine, one) for one in gone if isinstance(one, OneDisk)}
    back: dict[str, OneDisk | None] = {name: one for one, name in where.items() if name}
    back |= dict.fromkeys(_later(machine, state) if state.all and every else [])
    _check_machine(machine, back, dry_run)
    work = _Work(machine, dry_run, say)
    try:
        _give_back(work, state, after, back, gone)
    except (StreamschedError, OSError) as error:
        raise StreamschedError(
            f"{error}; what is not undone yet is when this is called again"
        ) from None
    for one, name in where.items():
        if name is None:
            say(f"{one.name}: is gone, and no longer enabled")


def _give_back(
    work: _Work,
    before: State,
    after: State,
    back: Mapping[str, OneDisk | None],
    gone: Collection[One],
) -> None:
    machine, rules, state = work.machine, work.machine.path(RULES), work.machine.path(STATE)
    # First, for a change would give them back to stream.
    if not work.dry_run:
        _put(rules, None if after.is_empty else after.rules())
        _call(machine, "udevadm", "control", "--reload")
    leave = {
        name
        for name, one in back.items()
        if work.device(name).in_use == STREAM and not (one and one.scheduler == STREAM)
    }
    for array in arrays_of(machine):
        one = record_of(machine, array.name, (one for one in gone if isinstance(one, OneArray)))
        if array.attached and (leave & set(array.members) or (one and not one.attached)):
            do = functools.partial(kernelarray.detach, array.name)
            work.do(array.name, "members that are no longer coordinated", do)
    for name in sorted(back):
        work.from_stream(name, back[name])
    if before.link and not after.link and machine.path(LINK).is_symlink():
        work.do(LINK, "been removed", machine.path(LINK).unlink)
    if before.weights and not after.weights:
        do = functools.partial(_call, machine, "systemctl", "disable", "--now", UNIT)
        work.do(UNIT, "been disabled", do)
    work.do(RULES, "been removed" if after.is_empty else "been written anew", lambda: None)
    if not work.dry_run:
        _put(state, None if after.is_empty else after.text())
        if after.is_empty:
            _remove_empty(machine.path(KEEP).parent)
