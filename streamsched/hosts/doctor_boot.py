# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched doctor`: what chooses schedulers at boot, and would take stream back.

What udev does to a disk is asked of udev, by `udevadm test` where that can change nothing. What
it does not say for certain is "unsure", and no finding then says that all is well.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence

from streamsched.hosts import confined
from streamsched.hosts.device import STREAM
from streamsched.hosts.disks import Disk
from streamsched.hosts.doctor_finding import Finding, note, ok, problem
from streamsched.hosts.machine import Machine

# The first folder that has a file of some name has it for all.
UDEV = [f"{one}/udev/rules.d" for one in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")]

# ---- what udev says ----

# Of systemd 249 to 255, 256 and 257, 258 and later.
PLACE = re.compile(r"(/.*?\.rules):(\d+) (.*)")
WRITES = re.compile(
    r"ATTR '[^']*queue/scheduler' writing '(.*)'"
    r"|writing ATTR\{[^}]*queue/scheduler\}=\"(.*)\""
    r"|writing \"(.*)\" to sysfs attribute \"[^\"]*queue/scheduler\""
)
QUEUES = re.compile(r"RUN '(.*)'$|RUN.*: Set command: (.*)$")
QUEUED = re.compile(r"run: '(.*)'$|\s+RUN\{program\} : (.*)$")
ASKS = re.compile(r"(?:Running )?PROGRAM|IMPORT\{program\}|Importing properties from results of '")
PROPERTY = re.compile(r"\s*([A-Za-z]\w*)=(.*)")
# What a rule may hand to a shell.
ECHO = re.compile(r"echo\s+(?:-n\s+)?[\"'\\]*([\w-]+)[\"'\\]*\s*>\s*\S*queue/scheduler", re.ASCII)
# What a rule may depend on that is not at boot as it is now, or that is hidden from `udevadm test`.
NOW = re.compile(
    r"ATTRS?\{queue/scheduler\}\s*[!=]="
    r"|TEST[^\"]*\"(?:[^\"]*queue/iosched|/run/(?!streamsched/keep-))[^\"]*\""
)
ENV = re.compile(r"ENV\{(\w+)\}\s*[!=]=|\$env\{(\w+)\}|%E\{(\w+)\}")


@dataclasses.dataclass(frozen=True)
class Act:
    """A line of a rule that chooses a scheduler for a disk."""

    place: str
    scheduler: str  # empty: not to be seen
    why: str = ""  # what that depends on; empty when it is certain

    @property
    def file(self) -> str:
        return re.sub(r":\d+$", "", self.place)

    @property
    def name(self) -> str:
        return self.file.rpartition("/")[2]


def _chosen(found: re.Match[str], machine: Machine) -> tuple[str, str] | None:
    """The scheduler that a command of RUN chooses, and what that depends on."""
    command = found[found.lastindex or 0]
    if "queue/scheduler" in command:
        said = set(ECHO.findall(command))
        return (said.pop() if len(said) == 1 else ""), ""
    words = [word for word in re.split(r"[\s'\"]+", command) if word]
    files = [word for word in words if word.startswith("/")]
    if words and "/" not in words[0]:
        files += [f"/usr/lib/udev/{words[0]}", f"/lib/udev/{words[0]}"]
    script = next((one for one in files if b"queue/scheduler" in machine.read(one).data), None)
    return ("", f"what {script} does") if script else None


class Udev:
    """udev's rules, and what they do to a disk."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        found: dict[str, str] = {}
        for folder in UDEV:
            for name in machine.names(folder):
                if name.endswith(".rules"):
                    found.setdefault(name, f"{folder}/{name}")
        self.files = [found[name] for name in sorted(found)]
        # Those that name the attribute, without comments.
        self.texts: dict[str, str] = {}
        for file in self.files:
            lines = [one for one in machine.lines(file) if not one.lstrip().startswith("#")]
            if any("queue/scheduler" in line for line in lines):
                self.texts[file] = "\n".join(lines)

    def acts(self, name: str, action: str) -> list[Act]:
        """What chooses a scheduler at an event, in this order; ValueError if udev does not say."""
        start = [sys.executable, "-I", confined.__file__, self.machine.planned]
        test = ["udevadm", "test", f"--action={action}", f"/sys/block/{name}"]
        done = self.machine.ask([*start, *test])
        said = f"{done.err}\n{done.out}".splitlines() if done else []
        tested = {found[1]: found[2] for found in map(PROPERTY.fullmatch, said) if found}
        if tested.get("ACTION") != action:
            raise ValueError(next((one for one in said[::-1] if one), "udevadm says nothing"))
        for file in self.texts:
            if f"Reading rules file: {file}" not in said:
                raise ValueError(f"`udevadm test` does not say that it reads {file}")
        doubts = self._doubts(name, tested)
        acts: list[Act] = []
        queue: list[Act] = []  # of RUN, which comes after all rules
        for found in filter(None, map(PLACE.search, said)):
            file, number, text = found.groups()
            act = Act(f"{file}:{number}", "", doubts.get(file, ""))
            if written := WRITES.search(text):
                acts.append(dataclasses.replace(act, scheduler=written[written.lastindex or 0]))
            elif (queued := QUEUES.match(text)) and _chosen(queued, self.machine):
                queue.append(act)
            elif ASKS.match(text):
                doubts.setdefault(file, f"the program of line {number}")
        runs = [_chosen(run, self.machine) for run in map(QUEUED.fullmatch, said) if run]
        chosen = [run for run in runs if run]
        if len(chosen) > len(queue):
            raise ValueError("`udevadm test` does not say which rule starts a program")
        silent = doubts.keys() & self.texts.keys() - {act.file for act in (*acts, *queue)}
        acts += [Act(file, "", doubts[file]) for file in silent]
        acts.sort(key=lambda act: act.name)  # as udev takes the files
        # RUN= takes back what was in the queue before.
        left = zip(queue[len(queue) - len(chosen) :], chosen, strict=True)
        return acts + [Act(act.place, one, why or act.why) for act, (one, why) in left]

    def _doubts(self, name: str, tested: Mapping[str, str]) -> dict[str, str]:
        """By file, what its rules depend on that `udevadm test` may not know."""
        known, found = self.machine.properties(name), {}
        for file, text in self.texts.items():
            keys = {key for names in ENV.findall(text) for key in names if key}
            # Where a program of udev could not be started, or another event set it.
            differ = [key for key in keys if tested.get(key, "") != known.get(key, "")]
            if now := NOW.search(text):
                found[file] = now[0].strip("=! ")
            elif differ:
                found[file] = f"ENV{{{min(differ)}}}"
        return found


# ---- what that comes to ----

# Of a line that chooses a scheduler, the gravest first. {0}: the disks.
VERDICTS = (
    (problem, " for {0}, after {1}"),
    (problem, " for {0} at every change event, for which {1} does nothing"),
    (note, " for {0}: unsure, for it depends on {1}"),
    (
        note,
        " for {0} at every change event, and {1} stream again: each time what stream has "
        "learned of the disk is lost",
    ),
    (note, " for {0}"),
    (ok, ", but {1} comes later"),
    (ok, ""),
)
AFTER, AT_CHANGE, UNSURE, AGAIN, ALONE, BEFORE, OURS = range(len(VERDICTS))


def _verdict(act: Act, later: Sequence[Act], action: str, mine: Act | None) -> tuple[int, str]:
    """One of VERDICTS, and its {1}. @mine gives the disk stream at boot; @later follows @act."""
    again = [one for one in later if one.scheduler == STREAM and not one.why]
    why = act.why or (mine.why if mine else "")
    if act.scheduler == STREAM:
        return (UNSURE, act.why) if act.why else (OURS, "")
    if why and not again:
        return UNSURE, why
    if mine is None:
        return ALONE, ""
    if not again:
        return (AFTER if action == "add" else AT_CHANGE), mine.name
    return (BEFORE if action == "add" or act.why else AGAIN), again[-1].name


def check_udev(machine: Machine, disks: Sequence[Disk]) -> Iterator[Finding]:
    """Which rules choose a scheduler, and which of them undo what ours has chosen."""
    udev = Udev(machine)
    for file in udev.files:
        if machine.leads_nowhere(file) and file.endswith("/60-stream-iosched.rules"):
            yield problem(f"{file} leads nowhere", f"rm {shlex.quote(file)}")
        elif machine.read(file).denied:
            yield note(f"only root can read {file}: unsure what it chooses")
    silent: dict[str, list[str]] = {}  # by the reason
    with_stream, without = [], []
    found: dict[tuple[str, str], dict[int, dict[str, str]]] = {}  # by line, verdict and disk
    for name in (disk.name for disk in disks if disk.is_for_stream):
        try:
            acts = {action: udev.acts(name, action) for action in ("add", "change")}
        except ValueError as error:
            silent.setdefault(str(error), []).append(name)
            continue
        ours = [act for act in acts["add"] if act.scheduler == STREAM]
        mine = min(ours, key=lambda act: bool(act.why), default=None)
        with_stream += [name] if mine else []
        # What cannot be seen may be stream.
        without += [] if mine or any(not act.scheduler for act in acts["add"]) else [name]
        each = [(action, *one) for action, every in acts.items() for one in enumerate(every)]
        for action, at, act in each:
            rank, more = _verdict(act, acts[action][at:], action, mine)
            line = found.setdefault((act.place, act.scheduler), {})
            line.setdefault(rank, {})[name] = more
    for (place, scheduler), ranks in found.items():
        rank = min(ranks)
        names, (level, text) = ranks[rank], VERDICTS[rank]
        what = f"{place} sets {scheduler or 'a scheduler that cannot be seen'}"
        file, _, number = place.rpartition(":")
        advice = f"Copy {file} to {UDEV[0]}/, and there take line {number} out"
        if file.startswith(f"{UDEV[0]}/"):
            advice = f"Take line {number} out of {file},"
        advice += " or limit it to other disks."
        text = text.format(", ".join(names), next(iter(names.values())))
        yield level(what + text, advice=advice if rank in (AFTER, AT_CHANGE, AGAIN) else None)
    for why, some in silent.items():
        named = f"; queue/scheduler is named in {', '.join(udev.texts)}" if udev.texts else ""
        yield note(f"unsure what udev's rules choose for {', '.join(some)}: {why}{named}")
        named_ours = any(re.search(rf"\b{STREAM}\b", text) for text in udev.texts.values())
        without += [] if named_ours else some
    if without and with_stream:
        yield note(f"no udev rule sets stream at boot for {', '.join(without)}")
    elif without:
        how = f"streamsched enable {' '.join(map(shlex.quote, without))}"
        yield note("no udev rule sets stream at boot", how)


# ---- what else chooses ----


def check_files(machine: Machine) -> Iterator[Finding]:
    """tmpfiles, sysfsutils, services and rc.local may write to queue/scheduler, too."""
    files = ["/etc/sysfs.conf", "/etc/rc.local", "/etc/rc.d/rc.local"]
    folders = dict.fromkeys(("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/lib/tmpfiles.d"), ".conf")
    folders |= {"/etc/sysfs.d": ".conf", "/etc/systemd/system": ".service"}
    for folder, end in folders.items():
        files += [f"{folder}/{name}" for name in machine.names(folder) if name.endswith(end)]
    for file in files:
        for number, line in enumerate(machine.lines(file), 1):
            chooses = "queue/scheduler" in line and not line.lstrip().startswith(("#", ";"))
            if chooses and not re.search(rf"\b{STREAM}\b", line):
                what = f"{file}:{number} names queue/scheduler: unsure whether it takes stream back"
                yield note(what, advice="Limit it to other disks, or take it out.")


def _of_service(machine: Machine, service: str, what: str, advice: str) -> Finding:
    unit, folder = f"{service.lower()}.service", "/etc/systemd/system"
    wants = [name for name in machine.names(folder) if name.endswith(".wants")]
    enabled = any(unit in machine.names(f"{folder}/{name}") for name in wants)
    if enabled or machine.exists(f"/run/{service}/{service}.pid"):
        return problem(what, advice=advice)
    return note(f"{what}, but {service} is not enabled")


def _elevator(
    machine: Machine, name: str, seen: set[str], unseen: list[str]
) -> tuple[str, int, str] | None:
    """Where a profile sets a scheduler, and to what. @unseen: those that cannot be read."""
    if name in seen:
        return None
    seen.add(name)
    folders = [f"{top}/tuned{more}" for top in ("/etc", "/usr/lib") for more in ("/profiles", "")]
    files = [f"{folder}/{name}/tuned.conf" for folder in folders]
    file = next(filter(machine.exists, files), None)
    if file is None or machine.read(file).denied:
        unseen.append(name)
        return None
    included: list[str] = []
    found: list[tuple[str, int, str]] = []
    for number, line in enumerate(machine.lines(file), 1):
        key, _, value = (part.strip() for part in line.partition("="))
        if value and (key == "elevator" or re.match(r"/sys/.*queue/scheduler$", key)):
            found.append((file, number, value))
        if key == "include":
            included += filter(None, re.split(r"[\s,;]+", value))
    deeper = [] if found else [_elevator(machine, other, seen, unseen) for other in included]
    # Each section may be for other disks; what is included counts less.
    found.sort(key=lambda one: one[2] == STREAM)
    return next(filter(None, [*found, *deeper]), None)


def check_tuned(machine: Machine) -> Iterator[Finding]:
    """The active profile of tuned."""
    seen: set[str] = set()
    for name in machine.text("/etc/tuned/active_profile").split():
        unseen: list[str] = []
        found = _elevator(machine, name, seen, unseen)
        if found is None:
            unsure = f"tuned: unsure whether the profile {name} sets a scheduler"
            sure = ok(f"tuned: the profile {name} sets no scheduler")
            yield note(f"{unsure}: {unseen[0]} cannot be read") if unseen else sure
            continue
        file, number, value = found
        what = f"tuned: the profile {name} sets {value} ({file}:{number})"
        folder = file.removesuffix("/tuned.conf")
        advice = f"Copy {folder} to /etc/tuned/, take line {number} out of tuned.conf there,"
        if file.startswith("/etc/"):
            advice = f"Take line {number} out of {file},"
        advice += " and start tuned again."
        yield ok(what) if value == STREAM else _of_service(machine, "tuned", what, advice)


def check_tlp(machine: Machine, disks: Sequence[Disk]) -> Iterator[Finding]:
    """DISK_IOSCHED of TLP: one word for each disk of DISK_DEVICES, the last file counts."""
    drop_ins = [name for name in machine.names("/etc/tlp.d") if name.endswith(".conf")]
    said = {"DISK_IOSCHED": ("", 0, [""]), "DISK_DEVICES": ("", 0, [""])}
    for file in (*(f"/etc/tlp.d/{name}" for name in drop_ins), "/etc/tlp.conf"):
        for number, line in enumerate(machine.lines(file), 1):
            if found := re.match(r"\s*(DISK_IOSCHED|DISK_DEVICES)\s*=\s*\"?([^\"#]*)", line):
                said[found[1]] = (file, number, found[2].split())
    file, number, words = said["DISK_IOSCHED"]
    devices = said["DISK_DEVICES"][2]
    # Which disk a word is for is known if TLP names it as the kernel does.
    still = {disk.name for disk in disks if not disk.rotating}
    spared = [at < len(devices) and devices[at] in still for at in range(len(words))]
    keeps = [word in ("keep", STREAM) for word in words]
    what = f"TLP: {file}:{number} sets {' '.join(words)}"
    if file and words and all(map(max, spared, keeps)):
        yield ok(what)
    elif file and words:
        advice = f"Write `keep` for the rotating disks in line {number} of {file}."
        yield _of_service(machine, "TLP", what, advice)


def check_cmdline(machine: Machine) -> Iterator[Finding]:
    """elevator= on the kernel's command line."""
    for word in machine.text("/proc/cmdline").split():
        if word.startswith("elevator="):
            yield note(f"{word} on the kernel's command line: Linux has ignored it since 5.0")


def check_boot(machine: Machine, disks: Sequence[Disk]) -> Iterator[Finding]:
    """All that chooses schedulers at boot."""
    yield from (*check_udev(machine, disks), *check_files(machine), *check_tuned(machine))
    yield from (*check_tlp(machine, disks), *check_cmdline(machine))
