# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched doctor`: what chooses schedulers at boot, and would take stream back.

Rules of udev are followed as far as they depend on what is known of a disk. Whatever depends on
anything else is "unsure", and no finding then says that all is well.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction

from streamsched.hosts.device import KEEP, STREAM
from streamsched.hosts.disks import Disk
from streamsched.hosts.doctor_finding import Finding, note, ok, problem
from streamsched.hosts.machine import Machine

# The first folder that has a file of some name has it for all.
UDEV = ("/etc/udev/rules.d", "/run/udev/rules.d", "/usr/local/lib/udev/rules.d")
UDEV_OF_PACKAGES = ("/usr/lib/udev/rules.d", "/lib/udev/rules.d")
OURS = "60-stream-iosched.rules"
TOKEN = re.compile(
    r"([A-Z_]+)(?:\{([^}\n]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*([ei]*)\"((?:[^\"\\]|\\.)*)\""
)
# With another operator than == and != udev ignores the line.
ONLY_COMPARED = {
    *("ACTION", "DEVPATH", "KERNEL", "KERNELS", "SUBSYSTEM", "SUBSYSTEMS", "DRIVER", "DRIVERS"),
    *("ATTRS", "TAGS", "TEST", "CONST", "RESULT"),
}
# By these a disk is known after each boot; programs of udev ask it for them.
DISK_IDS = ("ID_WWN_WITH_EXTENSION", "ID_WWN", "ID_SERIAL", "ID_PATH")
# Attributes that neither rules nor programs change.
FIXED = {"removable", "size", "ro", "device/vendor", "device/model", "device/type"}
# Where TEST finds what it found at boot.
FIXED_FOLDERS = ("/etc/", "/usr/", "/lib/", "/bin/", "/sbin/", "/opt/")
SUBSTITUTES = (
    *(("%S", "/sys"), ("$sys", "/sys"), ("%p", "/block/{0}"), ("$devpath", "/block/{0}")),
    *(("%k", "{0}"), ("$kernel", "{0}"), ("%N", "/dev/{0}"), ("$devnode", "/dev/{0}")),
)
# What a rule may hand to a shell.
ECHO = re.compile(r"echo\s+(?:-n\s+)?[\"'\\]*([\w-]+)[\"'\\]*\s*>\s*\S*queue/scheduler", re.ASCII)


# ---- udev ----


@dataclasses.dataclass(frozen=True)
class Token:
    key: str
    attribute: str
    operator: str
    value: str
    prefix: str = ""  # e: with escapes; i: in any case

    def __str__(self) -> str:
        attribute = f"{{{self.attribute}}}" if self.attribute else ""
        return f'{self.key}{attribute}{self.operator}{self.prefix}"{self.value}"'


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a file of rules, with those that continue it."""

    number: int
    tokens: tuple[Token, ...]
    understood: bool = True  # it has nothing beside the tokens

    def value(self, key: str) -> str:
        return next((one.value for one in self.tokens if one.key == key), "")


@dataclasses.dataclass(frozen=True)
class Write:
    """A line that chooses a scheduler."""

    file: str
    number: int
    scheduler: str  # empty: not to be seen
    by_program: bool  # which udev starts when it is through with all rules
    # By action the disks that it reaches, of those that stream is for; and what that depends on,
    # empty when it is certain.
    disks: Mapping[str, Mapping[str, str]]

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
        # Between the parts of a line, too.
        if raw.lstrip().startswith("#"):
            continue
        begin = begin if whole else number
        whole += raw
        if raw.endswith("\\"):
            whole = whole[:-1] + " "
            continue
        tokens = tuple(
            Token(one[1], one[2] or "", one[3], one[5], one[4]) for one in TOKEN.finditer(whole)
        )
        if tokens:
            found.append(Line(begin, tokens, not TOKEN.sub("", whole).strip(", \t\r")))
        whole = ""
    return found


@dataclasses.dataclass(frozen=True)
class Choice:
    """What a part of a line chooses."""

    scheduler: str  # empty: not to be seen
    by_program: bool
    unsure: str  # what it depends on whether it chooses any; empty when it does


def choices_of(line: Line, machine: Machine) -> Iterator[Choice]:
    """The schedulers that a line chooses, itself or by what it starts."""
    for one in line.tokens:
        if one.key == "ATTR" and one.attribute == "queue/scheduler":
            if one.operator in ("=", ":=", "+="):
                yield Choice("" if set(one.value) & set("$%\\") else one.value, False, "")
        elif one.key in ("RUN", "PROGRAM", "IMPORT") and one.attribute in ("", "program"):
            later = one.key == "RUN"
            if "queue/scheduler" in one.value:
                said = set(ECHO.findall(one.value))
                yield Choice(said.pop() if len(said) == 1 else "", later, "")
            elif script := _script(one.value, machine):
                yield Choice("", later, f"what {script} does")


def _script(command: str, machine: Machine) -> str | None:
    """The file of a command that has to do with schedulers."""
    words = [word for word in re.split(r"[\s'\"]+", command) if word]
    files = [word for word in words if word.startswith("/")]
    if words and "/" not in words[0]:
        files += [f"/usr/lib/udev/{words[0]}", f"/lib/udev/{words[0]}"]
    return next((file for file in files if b"queue/scheduler" in machine.read(file).data), None)


class Conditions:
    """What udev's conditions on a disk come to, as far as it is known; None where it is not."""

    def __init__(self, machine: Machine, disk: Disk, action: str, assigned: set[str]) -> None:
        self.machine, self.disk = machine, disk
        self.assigned = assigned  # the names of all ENV that rules give a value
        self.known = {
            ("ACTION", ""): action,
            ("SUBSYSTEM", ""): "block",
            ("KERNEL", ""): disk.name,
            ("ENV", "DEVTYPE"): "disk",
            ("ATTR", "queue/rotational"): "1" if disk.rotating else "0",
            ("ATTR", "queue/zoned"): disk.zoned or "none",
        }
        self.record = machine.text(
            f"/run/udev/data/b{machine.text(f'/sys/block/{disk.name}/dev')}"
        )  # of udev; readable by all
        said = dict(re.findall(r"^E:([^=\n]+)=(.*)$", self.record, re.MULTILINE))
        self.known |= {("ENV", name): said[name] for name in DISK_IDS if name in said}

    def holds(self, line: Line) -> tuple[bool | None, str]:
        """Whether all of a line's conditions hold, and the first that is not known."""
        unknown = "" if line.understood else "text that is not understood"
        for one in line.tokens:
            holds = self._token(one)
            if holds is False:
                return False, ""
            if holds is None:
                unknown = unknown or str(one)
        return (None if unknown else True), unknown

    def _token(self, one: Token) -> bool | None:
        if one.key in ONLY_COMPARED and one.operator not in ("==", "!="):
            return None
        if one.key == "IMPORT" and one.attribute == "cmdline":
            words = self.machine.text("/proc/cmdline").split()
            found = any(word.partition("=")[0] == one.value for word in words)
            return found == (one.operator != "!=")
        if one.key in ("IMPORT", "PROGRAM"):
            return None
        if one.operator not in ("==", "!="):
            return True
        if one.key == "TEST":
            there = self._exists(one)
            return None if there is None else there == (one.operator == "==")
        if "\\" in one.value:
            return None
        value = self._value(one)
        if value is None:
            return None
        parts = one.value.split("|")
        if "i" in one.prefix:
            value, parts = value.lower(), [part.lower() for part in parts]
        return any(fnmatchcase(value, part) for part in parts) == (one.operator == "==")

    def _value(self, one: Token) -> str | None:
        if one.key == "ATTR" and one.attribute in FIXED:
            file = self.machine.read(f"/sys/block/{self.disk.name}/{one.attribute}")
            return file.text if file.there and not file.denied else None
        if one.key == "ENV" and self._is_unset(one.attribute):
            return ""
        return self.known.get((one.key, one.attribute))

    def _is_unset(self, name: str) -> bool:
        """Did no event leave this variable behind, and does no rule set it?"""
        # What asks the disk has asked it: another boot finds no more.
        assigned = name in self.assigned and name not in DISK_IDS
        if not self.record or name.startswith(".") or assigned:
            return False
        return ("ENV", name) not in self.known and f"\nE:{name}=" not in f"\n{self.record}"

    def _exists(self, one: Token) -> bool | None:
        path, own = one.value, f"/sys/block/{self.disk.name}/"
        for short, long in SUBSTITUTES:
            path = path.replace(short, long.format(self.disk.name))
        if path.startswith(KEEP):
            return False  # a program makes it, and not at boot
        path = path if path.startswith("/") else own + path
        fixed = path.startswith((own, *FIXED_FOLDERS)) and not path.startswith(
            f"{own}queue/iosched"
        )
        # A mode asks more than whether it is there, and the rest stands for other names.
        if one.attribute or set(path) & set("$%{*?[\\") or "/../" in path or not fixed:
            return None
        return self.machine.is_there(path)


def lines_for(lines: Sequence[Line], conditions: Conditions) -> Iterator[tuple[Line, str]]:
    """The lines that udev acts on, and what that depends on; empty when it is certain."""
    # Of all ways through the file the part that comes by here, and that jumps to a label.
    here, jumping = Fraction(1), dict[str, Fraction]()
    why = ""
    for at, line in enumerate(lines):
        here += jumping.pop(line.value("LABEL"), Fraction(0))
        why = why if here < 1 else ""
        holds, unknown = conditions.holds(line)
        if not here or holds is False:
            continue
        yield line, why or unknown
        goto = line.value("GOTO")
        if goto and any(other.value("LABEL") == goto for other in lines[at + 1 :]):
            part = here if holds else here / 2
            jumping[goto] = jumping.get(goto, Fraction(0)) + part
            here -= part
            why = why or unknown


def rules_of(machine: Machine) -> list[str]:
    """The files of rules that are in force, in the order in which udev takes them."""
    found: dict[str, str] = {}
    for folder in (*UDEV, *UDEV_OF_PACKAGES):
        for name in machine.names(folder):
            if name.endswith(".rules"):
                found.setdefault(name, f"{folder}/{name}")
    return [found[name] for name in sorted(found)]


def writes_of(machine: Machine, rotating: Sequence[Disk]) -> list[Write]:
    """All lines that choose a scheduler, in the order in which they act."""
    files = {file: parse_rules(machine.lines(file)) for file in rules_of(machine)}
    tokens = [token for lines in files.values() for line in lines for token in line.tokens]
    assigned = {
        one.attribute for one in tokens if one.key == "ENV" and one.operator not in ("==", "!=")
    }
    # It takes back what other rules start, or forbids it.
    only = next((str(one) for one in tokens if one.key == "RUN" and one.operator != "+="), "")
    writes = []
    for file, lines in files.items():
        chosen = {line.number: list(choices_of(line, machine)) for line in lines}
        if not any(chosen.values()):
            continue
        reached: dict[int, dict[str, dict[str, str]]]
        reached = {number: {"add": {}, "change": {}} for number in chosen}
        for disk in rotating:
            for action in ("add", "change"):
                for line, why in lines_for(lines, Conditions(machine, disk, action, assigned)):
                    reached[line.number][action][disk.name] = why
        for number, choices in chosen.items():
            for one in choices:
                unsure = one.unsure or (only if one.by_program else "")
                disks = {
                    action: {name: why or unsure for name, why in names.items()}
                    for action, names in reached[number].items()
                }
                writes.append(Write(file, number, one.scheduler, one.by_program, disks))
    return sorted(writes, key=lambda write: write.by_program)


def check_udev(machine: Machine, disks: Sequence[Disk]) -> Iterator[Finding]:
    """Which rules choose a scheduler, and which of them undo what ours has chosen."""
    rotating = [disk for disk in disks if disk.is_for_stream]
    for file in rules_of(machine):
        if machine.leads_nowhere(file):
            if file.endswith(f"/{OURS}"):
                how = f"rm {shlex.quote(file)}"
                yield problem(f"{file} leads nowhere", how)
        elif machine.read(file).denied:
            yield note(f"only root can read {file}: unsure what it chooses")
    writes = writes_of(machine, rotating)
    ours = [write for write in writes if write.scheduler == STREAM]
    yield from _ours(machine, ours, rotating)
    for at, write in enumerate(writes):
        if write.scheduler != STREAM:
            later = [one for one in writes[at:] if one.scheduler == STREAM]
            yield _judge(write, ours, later)


def _named(disks: Mapping[str, str]) -> str:
    return ", ".join(sorted(disks))


def _depends(disks: Mapping[str, str]) -> str:
    return f"unsure, for it depends on {next(filter(None, disks.values()))}"


def _at_boot(ours: Sequence[Write]) -> dict[str, str]:
    """The disks that get stream at boot, and what that depends on."""
    found: dict[str, str] = {}
    for write in ours:
        for name, why in write.disks["add"].items():
            found[name] = why and found.get(name, why)
    return found


def _ours(machine: Machine, ours: Sequence[Write], rotating: Sequence[Disk]) -> Iterator[Finding]:
    for write in ours:
        reached = write.disks["add"]
        if any(reached.values()):
            what = f"{write.place} sets stream for {_named(reached)}: {_depends(reached)}"
            yield note(what)
        elif reached or not rotating:
            yield ok(f"{write.place} sets stream")
        else:
            what = f"{write.place} sets stream, but at boot for no rotating disk here"
            yield note(what)
    mine = _at_boot(ours)
    left = {disk.name: "" for disk in rotating if disk.name not in mine}
    if left and ours:
        what = f"no udev rule sets stream at boot for {_named(left)}"
        yield note(what)
    elif left:
        how = f"streamsched enable {' '.join(shlex.quote(name) for name in left)}"
        yield note("no udev rule sets stream at boot", how)


def _judge(write: Write, ours: Sequence[Write], later: Sequence[Write]) -> Finding:
    """A line that chooses another scheduler; @later: those of @ours that act after it."""
    what = f"{write.place} sets {write.scheduler or 'a scheduler that cannot be seen'}"
    reached = {**write.disks["change"], **write.disks["add"]}
    mine = _at_boot(ours)
    # Of the disks that get stream at boot, those that no later rule gives it again for certain.
    undone = {
        action: {
            name: why or mine[name]
            for name, why in write.disks[action].items()
            if name in mine and not any(one.disks[action].get(name) == "" for one in later)
        }
        for action in ("add", "change")
    }
    sure = {
        action: {name: why for name, why in names.items() if not why}
        for action, names in undone.items()
    }
    first = ours[0].name if ours else ""
    again = [
        name
        for name, why in write.disks["change"].items()
        if name in mine and not why and any(one.disks["change"].get(name) == "" for one in later)
    ]
    level = problem
    if sure["add"]:
        what += f" for {_named(sure['add'])}, after {first}"
    elif sure["change"]:
        what += (
            f" for {_named(sure['change'])} at every change event, for which {first} does nothing"
        )
    elif undone["add"] or undone["change"]:
        names = undone["add"] or undone["change"]
        return note(f"{what} for {_named(names)}: {_depends(names)}")
    elif again and reached.keys() <= mine.keys():
        level = note
        what += (
            f" for {', '.join(sorted(again))} at every change event, and {later[-1].name} stream "
            "again: each time what stream has learned of the disk is lost"
        )
    elif not reached:
        return ok(f"{what}, but for no rotating disk here")
    elif reached.keys() <= mine.keys():
        return ok(f"{what}, but {later[-1].name if later else first} comes later")
    elif any(reached.values()):
        return note(f"{what} for {_named(reached)}: {_depends(reached)}")
    else:
        return note(f"{what} for {_named(reached)}")
    if write.file.startswith("/etc/"):
        advice = f"Take line {write.number} out of {write.file}, or limit it to other disks."
    else:
        advice = (
            f"Copy {write.file} to {UDEV[0]}/, and there take line {write.number} out "
            "or limit it to other disks."
        )
    return level(what, advice=advice)


# ---- files that others read at boot ----

SYSFSUTILS, RC_LOCAL = "/etc/sysfs.conf", ("/etc/rc.local", "/etc/rc.d/rc.local")
AT_BOOT = (
    *(("/etc/tmpfiles.d", ".conf"), ("/run/tmpfiles.d", ".conf"), ("/usr/lib/tmpfiles.d", ".conf")),
    *(("/etc/sysfs.d", ".conf"), ("/etc/systemd/system", ".service")),
)


def check_files(machine: Machine) -> Iterator[Finding]:
    """tmpfiles, sysfsutils, services and rc.local may write to queue/scheduler, too."""
    files = [SYSFSUTILS, *RC_LOCAL]
    for folder, end in AT_BOOT:
        files += [f"{folder}/{name}" for name in machine.names(folder) if name.endswith(end)]
    for file in files:
        for number, line in enumerate(machine.lines(file), 1):
            chooses = "queue/scheduler" in line and not line.lstrip().startswith(("#", ";"))
            if chooses and not re.search(rf"\b{STREAM}\b", line):
                yield note(
                    f"{file}:{number} names queue/scheduler: unsure whether it takes stream back",
                    advice="Limit it to other disks, or take it out.",
                )


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


def _elevator(
    machine: Machine, name: str, seen: set[str], unseen: list[str]
) -> tuple[str, int, str] | None:
    """Where the profile @name sets a scheduler, and to what; what it includes counts less.

    @unseen: the profiles that could not be read are added.
    """
    file = _profile_file(machine, name)
    if name in seen:
        return None
    seen.add(name)
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
            included += re.split(r"[\s,;]+", value)
    # Each section may be for other disks.
    found.sort(key=lambda one: one[2] == STREAM)
    if not found:
        deeper = (_elevator(machine, other, seen, unseen) for other in included if other)
        found = [one for one in deeper if one]
    return found[0] if found else None


def check_tuned(machine: Machine) -> Iterator[Finding]:
    """The active profile of tuned."""
    seen: set[str] = set()
    for name in machine.text("/etc/tuned/active_profile").split():
        unseen: list[str] = []
        found = _elevator(machine, name, seen, unseen)
        if found is None and unseen:
            what = f"tuned: unsure whether the profile {name} sets a scheduler"
            yield note(f"{what}: {unseen[0]} cannot be read")
            continue
        if found is None:
            yield ok(f"tuned: the profile {name} sets no scheduler")
            continue
        file, number, value = found
        what = f"tuned: the profile {name} sets {value} ({file}:{number})"
        if value == STREAM:
            yield ok(what)
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
            yield problem(what, advice=advice)
        else:
            yield note(f"{what}, but tuned is not enabled")


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
        yield ok(what)
    elif _enabled(machine, "tlp"):
        advice = f"Write `keep` for the rotating disks in line {number} of {file}."
        yield problem(what, advice=advice)
    else:
        yield note(f"{what}, but TLP is not enabled")


def check_cmdline(machine: Machine) -> Iterator[Finding]:
    """elevator= on the kernel's command line."""
    for word in machine.text("/proc/cmdline").split():
        if word.startswith("elevator="):
            yield note(
                f"{word} on the kernel's command line: Linux has ignored it since 5.0",
            )


def check_boot(machine: Machine, disks: Sequence[Disk]) -> Iterator[Finding]:
    """All that chooses schedulers at boot."""
    yield from check_udev(machine, disks)
    yield from check_files(machine)
    yield from check_tuned(machine)
    yield from check_tlp(machine, disks)
    yield from check_cmdline(machine)
