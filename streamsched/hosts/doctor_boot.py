# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched doctor`: what chooses schedulers at boot, and would take stream back.

Rules of udev are followed as far as they depend on what is known of a disk; a condition on anything
else is taken to hold.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from streamsched.hosts.doctor_disks import STREAM, Disk
from streamsched.hosts.doctor_machine import Finding, Level, Machine

# The first folder that has a file of some name has it for all.
UDEV = ("/etc/udev/rules.d", "/run/udev/rules.d", "/usr/local/lib/udev/rules.d")
UDEV_OF_PACKAGES = ("/usr/lib/udev/rules.d", "/lib/udev/rules.d")
OURS = "60-stream-iosched.rules"
PACKAGED = f"/usr/share/streamsched-dkms/{OURS}"
TOKEN = re.compile(
    r"([A-Z_]+)(?:\{([^}\n]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*[ei]?\"((?:[^\"\\]|\\.)*)\""
)
# What a rule may hand to a shell.
ECHO = re.compile(r"echo\s+(?:-n\s+)?[\"']?([\w-]+)", re.ASCII)


# ---- udev ----


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a file of rules, with those that continue it."""

    number: int
    tokens: tuple[tuple[str, str, str, str], ...]  # key, its attribute, operator, value

    def value(self, key: str) -> str:
        return next((value for name, _, _, value in self.tokens if name == key), "")

    @property
    def starts_it(self) -> bool:
        """Whether it is a program that chooses the scheduler."""
        return not any(one[:2] == ("ATTR", "queue/scheduler") for one in self.tokens)

    @property
    def scheduler(self) -> str | None:
        """The scheduler that it chooses; empty if that is not to be seen."""
        for key, attribute, operator, value in self.tokens:
            if key == "ATTR" and attribute == "queue/scheduler" and operator in ("=", ":=", "+="):
                return value
            if key == "RUN" and "queue/scheduler" in value:
                found = ECHO.search(value)
                return found[1] if found else ""
        return None


@dataclasses.dataclass(frozen=True)
class Write:
    """A line that chooses a scheduler."""

    file: str
    number: int
    scheduler: str
    by_program: bool  # which udev starts when it is through with all rules
    disks: Mapping[str, set[str]]  # for each action those it reaches, of those that stream is for

    @property
    def place(self) -> str:
        return f"{self.file}:{self.number}"

    @property
    def name(self) -> str:
        return self.file.rpartition("/")[2]


def parse_rules(raws: Sequence[str]) -> list[Line]:
    """What the lines of a file of rules say."""
    found: list[Line] = []
    begin, whole = 0, ""
    for number, raw in enumerate(raws, 1):
        if not whole:
            begin = number
            if raw.lstrip().startswith("#"):
                continue
        whole += raw
        if raw.endswith("\\"):
            whole = whole[:-1] + " "
            continue
        tokens = tuple((one[1], one[2] or "", one[3], one[4]) for one in TOKEN.finditer(whole))
        if tokens:
            found.append(Line(begin, tokens))
        whole = ""
    return found


def _known(disk: Disk, action: str) -> dict[tuple[str, str], str]:
    """What udev knows of a disk that is known here."""
    return {
        ("ACTION", ""): action,
        ("SUBSYSTEM", ""): "block",
        ("KERNEL", ""): disk.name,
        ("ENV", "DEVTYPE"): "disk",
        ("ATTR", "queue/rotational"): "1" if disk.rotating else "0",
        ("ATTR", "queue/zoned"): disk.zoned or "none",
    }


def _holds(line: Line, known: dict[tuple[str, str], str]) -> bool | None:
    """Whether all conditions of a line hold; None: as far as they are known."""
    certain = True
    for key, attribute, operator, value in line.tokens:
        if operator in ("==", "!="):
            one = known.get((key, attribute))
            if one is None:
                certain = False
            elif any(fnmatchcase(one, part) for part in value.split("|")) != (operator == "=="):
                return False
        elif key in ("IMPORT", "PROGRAM"):
            certain = False
    return True if certain else None


def lines_for(lines: Sequence[Line], disk: Disk, action: str) -> Iterator[Line]:
    """The lines that choose a scheduler for @disk at @action."""
    known = _known(disk, action)
    labels = {line.value("LABEL"): at for at, line in enumerate(lines)}
    wanted = ""
    for at, line in enumerate(lines):
        if wanted and line.value("LABEL") != wanted:
            continue
        wanted = ""
        holds = _holds(line, known)
        if holds is False:
            continue
        if line.scheduler is not None:
            yield line
        goto = line.value("GOTO")
        if holds and goto and labels.get(goto, at) > at:
            wanted = goto


def rules_of(machine: Machine) -> list[str]:
    """The files of rules that are in force, in the order in which udev takes them."""
    found: dict[str, str] = {}
    for folder in (*UDEV, *UDEV_OF_PACKAGES):
        for name in machine.names(folder):
            if name.endswith(".rules"):
                found.setdefault(name, f"{folder}/{name}")
    return [found[name] for name in sorted(found)]


def _reached(lines: Sequence[Line], rotating: Sequence[Disk], action: str) -> dict[int, set[str]]:
    """By the number of each line that chooses a scheduler, the disks for which it does."""
    found: dict[int, set[str]] = {
        line.number: set() for line in lines if line.scheduler is not None
    }
    for disk in rotating:
        for line in lines_for(lines, disk, action):
            found[line.number].add(disk.name)
    return found


def _writes(machine: Machine, file: str, rotating: Sequence[Disk]) -> Iterator[Write]:
    lines = parse_rules(machine.lines(file))
    add, change = (_reached(lines, rotating, action) for action in ("add", "change"))
    for line in lines:
        if line.scheduler is not None:
            disks = {"add": add[line.number], "change": change[line.number]}
            yield Write(file, line.number, line.scheduler, line.starts_it, disks)


def check_udev(machine: Machine, disks: Sequence[Disk]) -> Iterator[Finding]:
    """Which rules choose a scheduler, and which of them undo what ours has chosen."""
    rotating = [disk for disk in disks if disk.is_for_stream]
    writes: list[Write] = []
    for file in rules_of(machine):
        if machine.leads_nowhere(file):
            if file.endswith(f"/{OURS}"):
                how = f"rm {shlex.quote(file)}"
                yield Finding("boot", Level.problem, f"{file} leads nowhere", how)
        elif machine.read(file).denied:
            yield Finding("boot", Level.note, f"only root can read {file}")
        writes += _writes(machine, file, rotating)
    writes.sort(key=lambda write: write.by_program)
    ours = [write for write in writes if write.scheduler == STREAM]
    yield from _ours(machine, ours, rotating)
    mine = set[str]().union(*(write.disks["add"] for write in ours))
    first = ours[0].name if ours else ""
    for at, write in enumerate(writes):
        if write.scheduler == STREAM:
            continue
        later = [one for one in writes[at:] if one.scheduler == STREAM]
        # Of the disks that get stream at boot, those that a later rule does not give it again.
        undone = {
            action: (names & mine).difference(*(one.disks[action] for one in later))
            for action, names in write.disks.items()
        }
        yield _judge(write, undone, first)


def _ours(machine: Machine, ours: Sequence[Write], rotating: Sequence[Disk]) -> Iterator[Finding]:
    if ours:
        for write in ours:
            yield Finding("boot", Level.ok, f"{write.place} sets stream")
    elif rotating:
        how = f"ln -s {PACKAGED} {UDEV[0]}/" if machine.exists(PACKAGED) else None
        advice = None if how else f"The package streamsched-dkms has one, {PACKAGED}."
        yield Finding("boot", Level.note, "no udev rule sets stream at boot", how, advice)


def _judge(write: Write, undone: Mapping[str, set[str]], ours: str) -> Finding:
    """A line that chooses another scheduler; @undone: for disks to which @ours gives stream."""
    what = f"{write.place} sets {write.scheduler or 'a scheduler by a program'}"
    reached = write.disks["add"] | write.disks["change"]
    names = ", ".join(sorted(undone["add"] or undone["change"]))
    if undone["add"]:
        what += f" for {names}, after {ours}"
    elif undone["change"]:
        what += f" for {names} at every change event, for which {ours} does nothing"
    elif not reached:
        return Finding("boot", Level.ok, f"{what}, but for no rotating disk here")
    elif ours:
        return Finding("boot", Level.ok, f"{what}, but {ours} comes later")
    else:
        return Finding("boot", Level.note, f"{what} for {', '.join(sorted(reached))}")
    if write.file.startswith("/etc/"):
        advice = f"Take line {write.number} out of {write.file}, or limit it to other disks."
    else:
        advice = (
            f"Copy {write.file} to {UDEV[0]}/, and there take line {write.number} out "
            "or limit it to other disks."
        )
    return Finding("boot", Level.problem, what, advice=advice)


# ---- tuned ----


def _enabled(machine: Machine, service: str) -> bool:
    folder = "/etc/systemd/system"
    return any(
        machine.exists(f"{folder}/{name}/{service}.service")
        or machine.leads_nowhere(f"{folder}/{name}/{service}.service")
        for name in machine.names(folder)
        if name.endswith(".wants")
    )


def _profile_file(machine: Machine, name: str) -> str | None:
    for folder in (
        "/etc/tuned/profiles",
        "/etc/tuned",
        "/usr/lib/tuned/profiles",
        "/usr/lib/tuned",
    ):
        file = f"{folder}/{name}/tuned.conf"
        if machine.exists(file):
            return file
    return None


def _elevator(machine: Machine, name: str, seen: set[str]) -> tuple[str, int, str] | None:
    """Where the profile @name sets elevator=, and to what; what includes goes before."""
    file = _profile_file(machine, name)
    if file is None or name in seen:
        return None
    seen.add(name)
    included: list[str] = []
    for number, line in enumerate(machine.lines(file), 1):
        key, _, value = (part.strip() for part in line.partition("="))
        if key == "elevator" and value:
            return file, number, value
        if key == "include":
            included += re.split(r"[\s,;]+", value)
    for other in included:
        found = _elevator(machine, other, seen) if other else None
        if found:
            return found
    return None


def check_tuned(machine: Machine) -> Iterator[Finding]:
    """The active profile of tuned."""
    seen: set[str] = set()
    for name in machine.text("/etc/tuned/active_profile").split():
        found = _elevator(machine, name, seen)
        if found is None:
            yield Finding("boot", Level.ok, f"tuned: the profile {name} sets no scheduler")
            continue
        file, number, value = found
        what = f"tuned: the profile {name} sets {value} ({file}:{number})"
        if value == STREAM:
            yield Finding("boot", Level.ok, what)
            continue
        runs = _enabled(machine, "tuned") or machine.exists("/run/tuned/tuned.pid")
        if file.startswith("/etc/"):
            advice = f"Take line {number} out of {file}, and start tuned again."
        else:
            folder = file.removesuffix("/tuned.conf")
            advice = (
                f"Copy {folder} to /etc/tuned/, take line {number} out of tuned.conf there, "
                "and start tuned again."
            )
        if runs:
            yield Finding("boot", Level.problem, what, advice=advice)
        else:
            yield Finding("boot", Level.note, f"{what}, but tuned is not enabled")


# ---- TLP, the kernel's command line ----


def check_tlp(machine: Machine, disks: Sequence[Disk]) -> Iterator[Finding]:
    """DISK_IOSCHED of TLP: one word for each disk of DISK_DEVICES, the last file counts."""
    drop_ins = [name for name in machine.names("/etc/tlp.d") if name.endswith(".conf")]
    chosen: tuple[str, int, list[str]] | None = None
    devices: list[str] = []
    for file in (*(f"/etc/tlp.d/{name}" for name in drop_ins), "/etc/tlp.conf"):
        for number, line in enumerate(machine.lines(file), 1):
            found = re.match(r"\s*(DISK_IOSCHED|DISK_DEVICES)\s*=\s*\"?([^\"#]*)", line)
            if found and found[1] == "DISK_DEVICES":
                devices = found[2].split()
            elif found:
                chosen = (file, number, found[2].split())
    if chosen is None or not chosen[2]:
        return
    file, number, words = chosen
    known = {disk.name: disk for disk in disks}
    # Which disk a word is for is known if TLP names it as the kernel does.
    taken = [
        word
        for at, word in enumerate(words)
        if word not in ("keep", STREAM)
        and not (at < len(devices) and devices[at] in known and not known[devices[at]].rotating)
    ]
    what = f"TLP: {file}:{number} sets {' '.join(words)}"
    if not taken:
        yield Finding("boot", Level.ok, what)
    elif _enabled(machine, "tlp"):
        advice = f"Write `keep` for the rotating disks in line {number} of {file}."
        yield Finding("boot", Level.problem, what, advice=advice)
    else:
        yield Finding("boot", Level.note, f"{what}, but TLP is not enabled")


def check_cmdline(machine: Machine) -> Iterator[Finding]:
    """elevator= on the kernel's command line."""
    for word in machine.text("/proc/cmdline").split():
        if word.startswith("elevator="):
            yield Finding(
                "boot",
                Level.note,
                f"{word} on the kernel's command line: Linux has ignored it since 5.0",
            )


def check_boot(machine: Machine, disks: Sequence[Disk]) -> Iterator[Finding]:
    """All that chooses schedulers at boot."""
    yield from check_udev(machine, disks)
    yield from check_tuned(machine)
    yield from check_tlp(machine, disks)
    yield from check_cmdline(machine)
