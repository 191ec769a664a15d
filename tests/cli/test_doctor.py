# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched doctor` on made-up machines, and once on this one."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_data import (
    GENERIC,
    INSTALLED,
    MODULE,
    MODULES,
    RELEASE,
    RULE,
    RULES,
    Made,
    ask_the_real_udev,
    good,
    real_udev,
)
from said import COMMAND, ran
from typer.testing import CliRunner
from udev_rules import (
    ARCH,
    CACHYOS,
    EVERY,
    FEDORA,
    OF_ADMIN,
    OF_PACKAGES,
    SUSE,
    alone,
    recorded,
)

from streamsched.cli.main import app
from streamsched.hosts import confined, doctor
from streamsched.hosts.disks import size_text
from streamsched.hosts.doctor_finding import Level
from streamsched.hosts.doctor_kernel import DKMS_KEY, LOADED, LOCKDOWN, SECURE_BOOT, UBUNTU_KEY
from streamsched.hosts.machine import MOST_BYTES, Done, run_program

OK, NOTE, PROBLEM = Level


@pytest.fixture
def host(tmp_path: Path) -> Made:
    return good(tmp_path)


# ---- a machine as it should be ----


def test_nothing_is_wrong_with_a_good_machine(host: Made) -> None:
    report = host.report
    assert [one for one in report.findings if one.level is not OK] == []
    assert report.problems == 0 and report.kernel == RELEASE
    assert {one.area for one in report.findings} == {
        *("kernel", "build", "secure boot", "module", "boot", "disk")
    }


def test_nothing_is_changed_and_only_questions_are_asked(host: Made) -> None:
    def tree() -> dict[str, bytes]:
        return {p.as_posix(): p.read_bytes() for p in host.root.rglob("*") if p.is_file()}

    before = tree()
    doctor.as_text(host.report)
    assert tree() == before
    assert {" ".join(one[:3]) for one in host.asked} == {
        *("dkms status", "modinfo -F vermagic", "modinfo -F srcversion"),
        *("udevadm test --action=add", "udevadm test --action=change"),
        "udevadm info --query=property",
    }


# ---- one thing that is otherwise ----

BUILD, DKMS = f"{MODULES}/build", f"-k {RELEASE}"
UTSRELEASE = f"{BUILD}/include/generated/utsrelease.h"
REBUILD = f"dkms build --force streamsched/0.1.0 {DKMS}"
REBUILD += f" && dkms install --force streamsched/0.1.0 {DKMS}"
SDA = "/sys/devices/sda/queue/"
LOCKED: dict[str, str | bytes | Done | None] = {
    SECURE_BOOT: b"\x06\0\0\0\1",
    LOCKDOWN: "none [integrity] confidentiality\n",
    DKMS_KEY: "",
    f"mokutil --test-key {DKMS_KEY}": Done(1, f"{DKMS_KEY} is already enrolled\n"),
}


def mokutil(done: Done | None) -> dict[str, str | bytes | Done | None]:
    return LOCKED | {f"mokutil --test-key {DKMS_KEY}": done}


def status(text: str, there: bool = False) -> dict[str, str | Done | None]:
    """What DKMS says, and whether there is a module."""
    return {"dkms status": Done(0, f"{text}\n")} | ({} if there else {MODULE: None})


# Files, and what programs say; None: it is gone. Then the only finding with a text: its level, and
# a part of what mends it.
ONE: list[tuple[Any, str, Level, str]] = [
    # What a module is built with; without a module that is missing.
    *(
        ({gone: None} | ({} if level is NOTE else {MODULE: None}), text, level, mend)
        for gone, text, mend in (
            ("/sys/kernel/btf/vmlinux", "has no type information", "CONFIG_DEBUG_INFO_BTF=y"),
            (f"{BUILD}/Module.symvers", "has no Module.symvers", "make modules"),
            (UTSRELEASE, "has no include/generated/utsrelease.h", f"-y linux-headers-{RELEASE}"),
            (BUILD, "headers of kernel", f"apt-get install -y linux-headers-{RELEASE}"),
            ("/usr/bin/gcc-12", "compiler gcc-12 is missing", "apt-get install -y gcc-12"),
            ("/usr/bin/pahole", "program pahole is missing", "apt-get install -y pahole"),
        )
        for level in (NOTE, PROBLEM)
    ),
    ({BUILD: None, "/usr/bin/apt-get": None}, "headers", NOTE, f"package linux-headers-{RELEASE}"),
    ({UTSRELEASE: '"6.1-36"'}, f"{BUILD} belongs to kernel 6.1-36", NOTE, "linux-headers"),
    (
        {"/sys/kernel/btf/vmlinux": None, f"/usr/lib/debug/boot/vmlinux-{RELEASE}": ""},
        *("type information: /usr/lib/debug/boot/", OK, ""),
    ),
    # Secure Boot, and DKMS's key.
    (mokutil(Done(0, "is not enrolled")), "is not enrolled", PROBLEM, f"--import {DKMS_KEY} Then"),
    (mokutil(Done(1, "in the enrollment request")), "waits to be confirmed", PROBLEM, "None Boot,"),
    (mokutil(None), "is enrolled is not known: mokutil is missing", NOTE, "-y mokutil"),
    (mokutil(Done(255, "", "no EFI\n")), "is enrolled is not known: mokutil: no EFI", NOTE, ""),
    (
        LOCKED | {DKMS_KEY: None},
        *("no key to sign with", PROBLEM, f"{REBUILD} && mokutil --import {DKMS_KEY} Then boot"),
    ),
    (
        LOCKED | {f"modinfo -F signer {MODULE}": Done(0, "\n")},
        *("stream-iosched.ko is not signed", PROBLEM, REBUILD),
    ),
    (
        LOCKED | {DKMS_KEY: None, UBUNTU_KEY: "", "mokutil": Done(0, "is not enrolled")},
        *(f"{UBUNTU_KEY} that DKMS signs with is not enrolled", PROBLEM, f"--import {UBUNTU_KEY}"),
    ),
    ({"/proc/cmdline": "module.sig_enforce=1"}, "signed modules only (module.sig_en", OK, ""),
    ({"/proc/cmdline": "module.sig_enforce=1"}, "no key to sign with", PROBLEM, "mokutil"),
    (LOCKED | {LOCKDOWN: "[none] integrity"}, "need no signature (lockdown is none)", OK, ""),
    (LOCKED | {LOCKDOWN: None}, "signed modules only (likely, with Secure Boot", OK, ""),
    *(
        ({SECURE_BOOT: data}, "does not say whether Secure Boot is on", NOTE, "")
        for data in (b"", b"\x06\0\0\0", b"rubbish")
    ),
    # The module.
    (
        status("streamsched/0.2: added"),
        "there is no module for",
        PROBLEM,
        "dkms install streamsched/0.2",
    ),
    (
        status("streamsched/0.1.0, 6.1.0-36-amd64, x86_64: installed"),
        f"there is no module for {RELEASE}, but one for 6.1.0-36-amd64",
        *(PROBLEM, f"dkms install streamsched/0.1.0 {DKMS}"),
    ),
    (
        status(f"streamsched, 0.1.0, {RELEASE}, x86_64: built"),
        *("built, but not installed", PROBLEM, "dkms install streamsched/0.1.0"),
    ),
    (status(INSTALLED), "the file is missing", PROBLEM, REBUILD),
    (status("streamsched/0.1.0: broken"), "its sources are gone", PROBLEM, "--reinstall"),
    (
        status(f"{INSTALLED.strip()} (WARNING! Diff between built and installed module!)", True),
        *("not the one that it built", PROBLEM, "dkms install --force"),
    ),
    (
        {f"modinfo -F vermagic {MODULE}": Done(0, "6.1.0-36-amd64 SMP\n")},
        *("was built for kernel 6.1.0-36-amd64", PROBLEM, REBUILD),
    ),
    (
        {f"modinfo -F srcversion {MODULE}": Done(0, "DEF\n")},
        "the loaded module is another build (ABC) than the installed one (DEF)",
        *(NOTE, "The next boot"),
    ),
    ({LOADED: None}, "stream-iosched is not loaded", NOTE, "modprobe stream-iosched"),
    (
        {LOADED: None, "/proc/sys/kernel/modules_disabled": "1"},
        *("loads no modules any more", PROBLEM, "nomodule"),
    ),
    ({LOADED: None, "/proc/modules": None}, "no loadable modules", PROBLEM, "CONFIG_MODULES=y"),
    # What is at boot.
    ({"/proc/cmdline": "elevator=deadline"}, "elevator=deadline on the kernel's", NOTE, ""),
    # The disk.
    ({f"{SDA}iosched/service_curve": GENERIC}, "sda: stream; the service curve is still", NOTE, ""),
    ({f"{SDA}iosched/service_curve": None}, "sda: stream; its service curve cannot be", NOTE, ""),
    (
        {f"{SDA}scheduler": "[none] stream"},
        *("sda: none; stream is not in use", NOTE, "echo stream > /sys/block/sda/queue/scheduler"),
    ),
    ({f"{SDA}scheduler": "[none]", MODULE: None}, "sda: none; stream is not in", NOTE, "None None"),
    (
        {f"{SDA}scheduler": "[none]", f"{SDA}zoned": "host-managed"},
        *("sda: none; zoned (host-managed), not for stream", OK, ""),
    ),
    (
        {f"{SDA}zoned": "host-managed"},
        *("sda: stream, on a zoned disk", NOTE, "echo mq-deadline > /sys/block/sda/queue/sched"),
    ),
    ({f"{SDA}rotational": None}, "sda: stream; whether it rotates is not known", NOTE, ""),
]


def change(host: Made, changes: Mapping[str, str | bytes | Done | None]) -> None:
    for name, new in changes.items():
        if not name.startswith("/"):
            assert isinstance(new, Done | None)
            host.programs[name] = new
        elif isinstance(new, str | bytes):
            host.write(name, new)
        elif host.machine.path(name).is_dir():
            shutil.rmtree(host.machine.path(name))
        else:
            host.machine.path(name).unlink(missing_ok=True)


@pytest.mark.parametrize(("changes", "text", "level", "mend"), ONE)
def test_one_thing(host: Made, changes: Any, text: str, level: Level, mend: str) -> None:
    change(host, changes)
    one = host.found(text)
    assert one.level is level
    assert mend in f"{one.command} {one.advice}"


# ---- the kernel, and what a module is built with ----


@pytest.mark.parametrize(
    ("release", "level"),
    [
        ("5.10.0-30-amd64", PROBLEM),
        ("6.0.9", PROBLEM),
        ("6.1.0", OK),
        ("6.12.3-arch1-1", OK),
        ("10.0", OK),
        ("rubbish", NOTE),
    ],
)
def test_the_kernels_version(host: Made, release: str, level: Level) -> None:
    host.write("/proc/sys/kernel/osrelease", release)
    (one,) = [finding for finding in host.report.findings if finding.area == "kernel"]
    assert one.level is level
    assert (one.advice is not None) == (level is PROBLEM)


@pytest.mark.parametrize(
    ("said", "program", "found"),
    [
        ("(x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0)", "gcc-13", "compiler: gcc-13"),
        ("(clang version 17.0.6, LLD 17.0.6)", "clang", "compiler: clang"),
        ("nothing", "gcc", "compiler: gcc"),
        ("(gcc-11 (Debian))", "gcc", "compiler: gcc, but the kernel was built with gcc-11"),
    ],
)
def test_the_kernels_compiler(host: Made, said: str, program: str, found: str) -> None:
    host.write("/proc/version", f"Linux version {RELEASE} (a@gcc.example) {said}")
    host.write(f"/usr/bin/{program}")
    one = host.found("compiler")
    how = "apt-get install -y gcc-11" if "but" in found else None
    assert (one.text, one.level, one.command) == (found, NOTE if how else OK, how)


@pytest.fixture
def locked(host: Made) -> Made:
    """The good host with Secure Boot on, and DKMS's key enrolled."""
    change(host, LOCKED)
    return host


def test_secure_boot_with_the_key_enrolled(locked: Made) -> None:
    assert locked.problems == []
    assert locked.found("signed modules only (lockdown is integrity)").level is OK
    assert locked.found("is enrolled").level is OK


def test_dkms_has_been_told_of_another_key(locked: Made) -> None:
    locked.write("/etc/dkms/framework.conf", '# mok_certificate="/no.pub"\n')
    locked.write(
        "/etc/dkms/framework.conf.d/key.conf", 'mok_certificate="${dkms_tree}/my-$kernelver.der"\n'
    )
    key = f"/var/lib/dkms/my-{RELEASE}.der"
    assert key in locked.found("no key to sign with").text
    locked.write(key)
    locked.programs["mokutil"] = Done(0, f"{key} is not enrolled\n")
    assert locked.found("is not enrolled").command == f"mokutil --import {key}"


def test_what_only_root_can_see(host: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(path: Path, flags: int, *args: Any) -> int:
        if str(path).endswith(("e0098032b8c", SECURE_BOOT.rpartition("/")[2], ".rules")):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, *args)

    monkeypatch.setattr("streamsched.hosts.machine.os.open", refuse)
    assert host.problems == []
    assert host.found("only root can see whether Secure Boot is on").level is NOTE
    assert host.found("only root can read").level is NOTE


# ---- the module ----


@pytest.mark.parametrize("done", [None, Done(0, ""), Done(1, "", "Error! not today\n")])
def test_dkms_does_not_have_it(host: Made, done: Done | None) -> None:
    host.programs["dkms status"] = done
    assert host.found("not of DKMS").level is OK
    host.remove(MODULE)
    one = host.found("no module is there")
    assert one.level is PROBLEM and "INSTALL.md" in (one.advice or "")
    said = [one.text for one in host.report.findings if "says nothing" in one.text]
    assert said == (["`dkms status` says nothing: Error! not today"] if done and done.code else [])


# ---- what chooses schedulers at boot ----


@pytest.fixture
def udev(host: Made) -> Made:
    """The good host, which asks the real udev."""
    ask_the_real_udev(host)
    return host


OTHER = 'ACTION=="add", SUBSYSTEM=="block", KERNEL=="sd*", ATTR{queue/scheduler}="bfq"\n'
SET = 'ATTR{queue/scheduler}="bfq"'
UNSURE = "unsure, for it depends on "
SAY = "echo 1 > /x; echo -n kyber >/sys/block/%k/queue/scheduler"
AT_CHANGE = "for sda at every change event, for which 60-stream-iosched.rules does nothing"


@pytest.mark.parametrize(
    "text",
    [
        'ATTR{queue/scheduler}=="bfq", SYMLINK+="x"\n',
        '# ATTR{queue/scheduler}="bfq"\n',
        OTHER.replace("sd*", "nvme*|mmcblk*"),
        f'ATTR{{queue/rotational}}=="0", {SET}\n',
        f'GOTO="end"\n{SET}\nLABEL="end"\n',
    ],
)
def test_a_rule_that_chooses_nothing_here(udev: Made, text: str) -> None:
    udev.write("/etc/udev/rules.d/97-io.txt", OTHER)
    udev.write("/etc/udev/rules.d/99-io.rules", text)
    assert not [one for one in udev.report.findings if "-io." in one.text and ":" in one.text[:40]]
    assert udev.problems == []


def test_a_file_hides_those_of_its_name(udev: Made) -> None:
    udev.write("/usr/lib/udev/rules.d/99-io.rules", OTHER)
    assert udev.problems
    udev.write("/etc/udev/rules.d/99-io.rules")
    assert not udev.problems


def test_a_rule_over_several_lines(udev: Made) -> None:
    """udev counts it as its last line, since systemd 258 as its first."""
    text = '\nACTION=="add", \\\n# a comment\n  ATTR{queue/scheduler}="bfq"\n' + OTHER
    udev.write("/etc/udev/rules.d/99-io.rules", text)
    first, second = (re.match(r".*/99-io\.rules:(\d) sets bfq", one) for one in udev.problems)
    assert first and second and first[1] in "24" and second[1] == "5"
    advice = "Take line 5 out of /etc/udev/rules.d/99-io.rules, or limit it to other disks."
    assert udev.found("99-io.rules:5").advice == advice


SHAPES: list[tuple[str, str, dict[str, tuple[Level, str]]]] = [
    (
        "60-io-scheduler.rules",
        SUSE,
        {"5": (PROBLEM, AT_CHANGE)},
    ),
    ("60-ioschedulers.rules", CACHYOS, {"[23]": (PROBLEM, AT_CHANGE)}),
    ("60-ioschedulers.rules", ARCH, {"1": (PROBLEM, AT_CHANGE)}),
    ("60-block-scheduler.rules", FEDORA, {"2": (OK, "comes later")}),
    ("99-block-scheduler.rules", FEDORA, {"2": (PROBLEM, "for sda, after 60-stream")}),
]


@pytest.mark.parametrize(("file", "text", "lines"), SHAPES)
def test_rules_of_distributions(
    udev: Made, file: str, text: str, lines: dict[str, tuple[Level, str]]
) -> None:
    """What each line of theirs comes to; of the others nothing is said."""
    udev.write(f"{OF_PACKAGES}/{file}", text)
    said = [one for one in udev.report.findings if f"/{file}:" in one.text]
    assert len(said) == len(lines)
    for one, (line, (level, end)) in zip(said, lines.items(), strict=True):
        assert re.match(rf"{OF_PACKAGES}/{file}:{line} sets bfq", one.text)
        assert one.level is level and end in one.text
        copy = f"Copy {OF_PACKAGES}/{file} to {OF_ADMIN}/, and there take line "
        assert (one.advice or "").startswith(copy if level is PROBLEM else "")


def test_rules_of_the_shape_of_suse(udev: Made) -> None:
    """One queue or several, and a variable that another event has set."""
    udev.write(f"{OF_PACKAGES}/60-io-scheduler.rules", SUSE)
    udev.write("/run/udev/data/b8:0", "E:MULTIPATH=1\n")
    one = udev.found("60-io-scheduler.rules:5 sets bfq")
    assert (one.level, one.text.endswith(UNSURE + "ENV{MULTIPATH}")) == (NOTE, True)
    udev.write("/run/udev/data/b8:0", "I:1\n")
    udev.write("/sys/devices/sda/mq/1/nr_tags", "1")
    assert AT_CHANGE in udev.found("60-io-scheduler.rules:6 sets none").text


@pytest.mark.parametrize(("version", "line"), [(252, 3), (257, 3), (262, 2)])
def test_what_udevadm_said(host: Made, version: int, line: int) -> None:
    """Recorded; each version says it in other words."""
    for file, text in EVERY.items():
        host.write(file, text)
    for action in ("add", "change"):
        asked = f"udevadm test --action={action} /sys/block/sda"
        host.programs[asked] = Done(0, recorded(version, action))
    bfq, found = f"sets bfq {AT_CHANGE}", host.report.findings
    ours = "60-stream-iosched.rules"
    assert {one.text.rpartition("/")[2]: one.level for one in found if one.area == "boot"} == {
        f"59-ioschedulers.rules:1 {bfq}": PROBLEM,
        f"60-block-scheduler.rules:2 sets bfq, but {ours} comes later": OK,
        f"60-io-scheduler.rules:5 {bfq}": PROBLEM,
        f"60-ioschedulers.rules:{line} {bfq}": PROBLEM,
        f"{ours}:19 sets stream": OK,
        f"99-program.rules:1 sets kyber for sda: {UNSURE}the program of line 1": NOTE,
        f"98-run.rules:1 sets bfq for sda, after {ours}": PROBLEM,
        f"98-run.rules:2 sets kyber {AT_CHANGE}": PROBLEM,
    }


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ('TEST=="queue/nr_requests"', ""),
        ('ATTR{size}=="7814037168"', ""),
        ('IMPORT{cmdline}=="root"', ""),
        ('ENV{elevator}!="?*"', ""),
        ('ENV{DEVTYPE}=="disk", ENV{X}!="1"', ""),
        # What may have been otherwise at boot, or is hidden.
        ('TEST=="queue/iosched/slice_idle"', 'TEST=="queue/iosched/slice_idle"'),
        ('TEST=="/run/x"', 'TEST=="/run/x"'),
        ('ATTR{queue/scheduler}!="none"', "ATTR{queue/scheduler}"),
        ('ENV{ID_BUS}=="usb"', "ENV{ID_BUS}"),
        ('ENV{ID_BUS}!="usb"', "ENV{ID_BUS}"),
        ('ENV{Y}="$env{ID_BUS}"', "ENV{ID_BUS}"),
        # Programs; since systemd 256 they are not started.
        ('PROGRAM=="/bin/true"', "the program of line 1"),
        ('PROGRAM!="/bin/true"', "the program of line 1"),
        ('IMPORT{program}=="/bin/echo Z=1"', "the program of line 1"),
    ],
)
def test_what_udev_does_not_know_for_certain(udev: Made, condition: str, why: str) -> None:
    """Of another rule; and of ours, which is never "ok" then."""
    udev.write("/run/udev/data/b8:0", "I:1\nE:ID_BUS=ata\n")
    udev.write(f"{OF_ADMIN}/99-io.rules", f"{condition}, {SET}\n")
    one = udev.found("/99-io.rules")
    assert one.level is (NOTE if why else PROBLEM)
    assert one.text.endswith(f"for sda: {UNSURE}{why}" if why else "60-stream-iosched.rules")
    udev.remove(f"{OF_ADMIN}/99-io.rules")
    udev.write(f"{OF_ADMIN}/{RULES}", f"{condition}, {SET.replace('bfq', 'stream')}\n")
    ours = udev.found(RULES)
    assert ours.level is (NOTE if why else OK)
    assert not [one for one in udev.report.findings if "no udev rule" in one.text]


def test_not_every_disk_gets_stream(udev: Made) -> None:
    udev.disk("sdb", number=16)
    udev.write(f"{OF_ADMIN}/{RULES}", 'KERNEL=="sda", ATTR{queue/scheduler}="stream"\n')
    assert udev.found("sets stream at boot for sdb").level is NOTE
    udev.write(f"{OF_ADMIN}/10-io.rules", f"{SET}\n")
    one = udev.found("10-io.rules:1 sets bfq for sda")
    assert one.level is NOTE and "stream again" in one.text
    udev.write(f"{OF_ADMIN}/10-io.rules", f'ACTION=="add", {SET}\n')
    assert udev.found("10-io.rules:1 sets bfq for sdb").level is NOTE


@pytest.mark.parametrize(
    ("text", "level", "said"),
    [
        ('RUN+="/sbin/choose queue/scheduler"', PROBLEM, "a scheduler that cannot be seen for sda"),
        (f"RUN+=\"/bin/sh -c '{SAY}'\"", PROBLEM, "sets kyber for sda"),
        (
            f"RUN+=\"/bin/sh -c '{SAY}; echo bfq > /sys/block/%k/queue/scheduler'\"",
            PROBLEM,
            "a scheduler that cannot be seen for sda",
        ),
        ('RUN+="/usr/local/bin/choose %k"', NOTE, f"{UNSURE}what /usr/local/bin/choose does"),
        ('RUN+="pick %k"', NOTE, f"{UNSURE}what /usr/lib/udev/pick does"),
        ('ATTR{queue/scheduler}="$kernel"', PROBLEM, "sets sda for sda, after"),
        (f"RUN+=\"/bin/sh -c '{SAY.replace('kyber', 'stream')}'\"", OK, "sets stream"),
        (
            f'ATTR{{queue/scheduler}}="stream", RUN+="/bin/sh -c \'{SAY}\'"',
            PROBLEM,
            "sets kyber for sda, after",
        ),
        (f'ATTR{{queue/scheduler}}="stream", {SET}', PROBLEM, "sets bfq for sda, after"),
        (f'RUN+="/bin/sh -c \'{SAY}\'"\nRUN="/bin/true"', None, ""),
    ],
)
def test_programs_that_choose(udev: Made, text: str, level: Level | None, said: str) -> None:
    """What a shell is told, what a script has, and what takes a program back."""
    udev.write("/usr/local/bin/choose", "#!/bin/sh\necho bfq > /sys/block/$1/queue/scheduler\n")
    udev.write("/usr/lib/udev/pick", "queue/scheduler")
    udev.write(f"{OF_ADMIN}/99-io.rules", f"{text}\n")
    found = [one for one in udev.report.findings if "99-io.rules:1 sets" in one.text]
    found = [one for one in found if said in one.text]
    assert [one.level for one in found] == ([level] if level else [])


# ---- udev is asked where it changes nothing ----


def test_asking_changes_nothing(udev: Made) -> None:
    """udevadm of systemd before 256 does what the rules say, and starts programs."""
    open_folder = udev.machine.path("/open")
    open_folder.mkdir(mode=0o777)
    open_folder.chmod(0o777)
    udev.machine.path("/sys/devices/sda/queue/scheduler").chmod(0o666)
    udev.write("/run/systemd/private")
    tries = (
        f"touch {open_folder}/touched",
        "touch /dev/touched",
        "test -e /run/systemd/private",
        "mount -o remount,rw /sys",
        f"kill -0 {os.getpid()}",
        "exec 3<>/dev/loop-control",
    )
    udev.write(f"{OF_ADMIN}/10-io.rules", f'SYMLINK+="x", {SET}\n')

    def tree() -> dict[str, bytes | None]:
        inside = [one for one in udev.root.rglob("*") if one.is_file()]
        every = {one.as_posix(): one.read_bytes() for one in inside}
        return every | dict.fromkeys(os.listdir("/dev"))  # noqa: PTH208 - names, not paths

    before = tree()
    assert AT_CHANGE in udev.found("10-io.rules:1 sets bfq").text
    program = "; ".join(f"({one}) && echo {one}" for one in tries)
    start = [sys.executable, "-I", confined.__file__, ""]
    done = real_udev(udev.root, [*start, "sh", "-c", f"true && echo began; {program}"])
    assert done and done.out == "began\n"
    assert tree() == before


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (None, "udevadm says nothing"),
        (Done(1, "", "only root can ask udev\n"), "only root can ask udev"),
        (Done(1, "", "x\nFailed to open device\n\n"), "Failed to open device"),
        (Done(0, "ACTION=add\n"), f"`udevadm test` does not say that it reads {OF_ADMIN}/{RULES}"),
        (
            Done(0, alone("add") + "\nrun: 'echo bfq > /sys/block/sda/queue/scheduler'\n"),
            "`udevadm test` does not say which rule starts a program",
        ),
    ],
)
def test_udev_does_not_say(host: Made, done: Done | None, why: str) -> None:
    host.programs["udevadm test --action=add /sys/block/sda"] = done
    unsure = "unsure what udev's rules choose for sda: "
    one = host.found(unsure)
    assert one.text == f"{unsure}{why}; queue/scheduler is named in {OF_ADMIN}/{RULES}"
    assert one.level is NOTE and not host.problems
    assert not [one for one in host.report.findings if "no udev rule" in one.text]
    host.remove(f"{OF_ADMIN}/{RULES}")
    if done is None or done.code:
        assert host.found(unsure).text == unsure + why
        assert host.found("no udev rule sets stream at boot").command == "streamsched enable sda"


@pytest.mark.parametrize(
    ("user", "words", "why"),
    [(65534, ["true"], "only root can ask udev"), (None, ["/no/program"], "/no/program: No such")],
)
def test_what_cannot_be_confined(udev: Made, user: int | None, words: list[str], why: str) -> None:
    script = Path(confined.__file__).read_text()
    done = ran("/usr/bin/env", "python3", "-I", "-", "", *words, input=script, user=user)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(why) and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("/etc/tmpfiles.d/io.conf", "w /sys/block/sda/queue/scheduler - - - - mq-deadline"),
        ("/etc/sysfs.conf", "block/sda/queue/scheduler = deadline"),
        ("/etc/sysfs.d/io.conf", "block/sda/queue/scheduler = deadline"),
        ("/etc/rc.local", "echo bfq > /sys/block/sda/queue/scheduler"),
        ("/etc/systemd/system/io.service", "ExecStart=sh -c 'echo bfq >/sys/x/queue/scheduler'"),
    ],
)
def test_other_files_that_choose(host: Made, file: str, line: str) -> None:
    host.write(file, f"# {line}\n{line}\n")
    one = host.found(f"{file}:2 names queue/scheduler: unsure")
    assert one.level is NOTE and one.advice
    host.write(file, "stream " + line)
    assert not [one for one in host.report.findings if file in one.text]


FOLLOWS = "systemctl enable --now streamsched-weights.service"


def test_weights_that_stream_has_not(host: Made) -> None:
    host.write("/sys/fs/cgroup/cgroup.controllers", "io\n")
    group = "/sys/fs/cgroup/system.slice/backup.service"
    host.write(f"{group}/io.weight", "default 100\n")
    assert not [one for one in host.report.findings if "weight" in one.text]
    host.write(f"{group}/io.weight", "default 50\n")
    one = host.found(f"sda: stream has not the weights of cgroups, as 50 in {group}/io.weight")
    assert (one.level, one.command) == (NOTE, FOLLOWS)
    assert one.text.endswith("io.weight")
    host.write("/sys/fs/cgroup/a b/io.weight", "default 300\n")
    assert host.found("as 300 in /sys/fs/cgroup/a b/io.weight and 1 more").command == FOLLOWS
    weights = "/sys/devices/sda/queue/iosched/cgroup_weights"
    host.write(weights, "/a b 300\n/system.slice/backup.service 51\n/other 5\n")
    assert host.found(f"as 50 in {group}/io.weight").text.endswith("io.weight")
    host.write(weights, "/a b 300\n/system.slice/backup.service 50\n/other 5\n")
    assert host.found("sda: stream has the weights of cgroups").level is OK
    assert not [one for one in host.report.findings if "has not" in one.text]


def test_weights_of_one_disk(host: Made) -> None:
    """Where it has the usual one there is nothing to say."""
    host.write("/sys/fs/cgroup/cgroup.controllers", "io\n")
    host.write("/sys/fs/cgroup/a/io.weight", "default 300\n8:0 100\n")
    assert not [one for one in host.report.findings if "weight" in one.text]
    host.stream("sdb", number=16)
    assert host.found("sdb: stream has not the weights").command == FOLLOWS
    host.write("/sys/devices/sdb/queue/iosched/cgroup_weights", "/a 300\n")
    assert host.found("sdb: stream has the weights").level is OK


def test_weights_of_units(host: Made) -> None:
    """A service that does not run has no cgroup."""
    host.write("/etc/systemd/system/b.service", "[Service]\n#IOWeight=50\n")
    assert not [one for one in host.report.findings if "IOWeight" in one.text]
    host.write("/etc/systemd/system/b.service.d/x.conf", "[Service]\nStartupIOWeight=50\n")
    one = host.found("IOWeight=, as in /etc/systemd/system/b.service.d/x.conf:2")
    assert (one.level, one.command) == (NOTE, FOLLOWS)
    host.write("/etc/systemd/system/multi-user.target.wants/streamsched-weights.service")
    assert not [one for one in host.report.findings if "IOWeight" in one.text]


def test_no_rule_of_ours(udev: Made) -> None:
    udev.remove("/etc/udev/rules.d/60-stream-iosched.rules")
    udev.write("/etc/udev/rules.d/99-io.rules", OTHER)
    one = udev.found("no udev rule sets stream")
    assert one.level is NOTE and one.command == "streamsched enable sda"
    assert udev.found("99-io.rules:1 sets bfq for sda").level is NOTE


def test_our_rule_leads_nowhere(host: Made) -> None:
    name = "/etc/udev/rules.d/60-stream-iosched.rules"
    host.remove(name)
    host.machine.path(name).symlink_to("gone")
    one = host.found("leads nowhere")
    assert (one.level, one.command) == (PROBLEM, f"rm {name}")


WANTS = "/etc/systemd/system/multi-user.target.wants"


def test_tuned(host: Made) -> None:
    host.write("/etc/tuned/active_profile", "mine\n")
    host.write("/etc/tuned/mine/tuned.conf", "[main]\ninclude=throughput-performance\n")
    other = "/usr/lib/tuned/throughput-performance/tuned.conf"
    host.write(other, "[disk]\nreadahead=4096\n")
    assert host.found("tuned").text == "tuned: the profile mine sets no scheduler"
    host.write(other, "[disk]\nelevator = mq-deadline\n")
    one = host.found("tuned")
    assert f"the profile mine sets mq-deadline ({other}:2)" in one.text
    assert one.level is NOTE and "not enabled" in one.text
    host.write(f"{WANTS}/tuned.service")
    one = host.found("tuned")
    assert one.level is PROBLEM and (one.advice or "").startswith("Copy /usr/lib/tuned/")
    host.write("/etc/tuned/mine/tuned.conf", "[disk]\nelevator=bfq\n[main]\ninclude=mine\n")
    one = host.found("tuned")
    assert one.level is PROBLEM and "Take line 2 out of /etc/tuned/mine" in (one.advice or "")
    host.write("/etc/tuned/mine/tuned.conf", "[main]\ninclude=mine\n")
    assert host.found("tuned").level is OK
    host.write("/etc/tuned/mine/tuned.conf", "[disk]\nelevator=stream\n")
    assert host.found("tuned").level is OK
    host.write("/etc/tuned/mine/tuned.conf", "[a]\nelevator=stream\n[b]\nelevator=bfq\n")
    assert "mine sets bfq (/etc/tuned/mine/tuned.conf:4)" in host.found("tuned").text
    host.write("/etc/tuned/mine/tuned.conf", "[sysfs]\n/sys/block/sda/queue/scheduler=bfq\n")
    assert "mine sets bfq" in host.found("tuned").text
    host.write("/etc/tuned/mine/tuned.conf", "[main]\ninclude=${other}\n")
    assert host.found("tuned: unsure").text.endswith("${other} cannot be read")
    host.write("/etc/tuned/active_profile", "none\n")
    assert host.found("tuned: unsure").level is NOTE


def tlp(host: Made) -> None:
    """A problem."""
    host.write("/etc/tlp.conf", "DISK_IOSCHED=bfq\n")
    host.write(f"{WANTS}/tlp.service")


def test_tlp(host: Made) -> None:
    host.write("/etc/tlp.conf", '#DISK_IOSCHED="bfq"\nDISK_DEVICES="nvme0n1 sda"\n')
    assert not [one for one in host.report.findings if "TLP" in one.text]
    host.write("/etc/tlp.d/10-disk.conf", 'DISK_IOSCHED="none mq-deadline"  # as I like it\n')
    what = "TLP: /etc/tlp.d/10-disk.conf:1 sets none mq-deadline"
    assert host.found("TLP").text == f"{what}, but TLP is not enabled"
    host.machine.path(WANTS).mkdir(parents=True)
    host.machine.path(f"{WANTS}/tlp.service").symlink_to("/lib/systemd/system/tlp.service")
    one = host.found("TLP")
    assert (one.level, one.text) == (PROBLEM, what)
    assert "line 1 of /etc/tlp.d/10-disk.conf" in (one.advice or "")
    host.write("/etc/tlp.conf", 'DISK_DEVICES="nvme0n1 sda"\nDISK_IOSCHED="keep keep"\n')
    assert host.found("TLP").level is OK
    # The first word is for a disk that does not rotate.
    host.disk("nvme0n1", "[none]", 16, rotational="0")
    host.write("/etc/tlp.conf", 'DISK_DEVICES="nvme0n1 sda"\nDISK_IOSCHED="kyber keep"\n')
    assert host.found("TLP").level is OK


# ---- disks ----


def test_what_is_known_of_a_disk(host: Made) -> None:
    (disk,) = host.report.disks
    assert (disk.name, disk.model, disk.size_bytes) == (
        *("sda", "ST4000NM0035-1V4"),
        512 * 7814037168,
    )
    assert (disk.rotating, disk.zoned, disk.access_ranges) == (True, "none", 1)
    assert (disk.queue_depth, disk.nr_requests) == (32, 64)
    assert (disk.scheduler, disk.schedulers) == ("stream", ("none", "mq-deadline", "stream"))
    assert disk.curve_learned is True


def test_what_is_no_disk_is_left_out(host: Made) -> None:
    for number, name in enumerate(("loop0", "dm-0", "md0", "zram0", "sr0", "nbd0"), 1):
        host.disk(name, number=number)
    host.disk("nvme0c0n1", number=9)
    host.write("/sys/devices/nvme0c0n1/hidden", "1\n")
    assert [disk.name for disk in host.report.disks] == ["nbd0", "sda"]


def test_solid_state_only(tmp_path: Path) -> None:
    host = good(tmp_path)
    host.write("/sys/devices/sda/queue/rotational", "0\n")
    host.write("/sys/devices/sda/queue/scheduler", "[none] mq-deadline\n")
    assert host.found("no disk rotates").level is NOTE
    assert host.found("sda: none").level is OK
    assert not host.problems
    host.stream("sdb", GENERIC, 16, rotational="0")
    assert "only the inner policy" in host.found("sdb: stream").text


@pytest.mark.parametrize(("zoned", "level"), [(0, None), (1, None), (2, NOTE), (3, None)])
def test_a_drive_managed_disk(host: Made, zoned: int, level: Level | None) -> None:
    """sysfs calls it not zoned, as it does all other disks; its VPD page B1h tells it."""
    page = bytes([0, 0xB1, 0, 60, 0x1C, 0x20, 0, 2, zoned << 4, *[0] * 55])
    host.write("/sys/devices/sda/device/vpd_pgb1", page)
    said = [one for one in host.report.findings if "drive-managed SMR" in one.text]
    assert [one.level for one in said] == [level] * (level is not None)
    (disk,) = host.report.disks
    assert disk.drive_managed is bool(said) and disk.is_for_stream
    assert (" drive " in lines_fit(host.report)) is bool(said)
    host.write("/sys/devices/sda/device/vpd_pgb1", page[:8])
    assert not host.report.disks[0].drive_managed


def test_a_disk_with_several_actuators(host: Made) -> None:
    """Two are scheduled apart, so there is nothing to say of them."""
    for number in range(3):
        said = [one.text for one in host.report.findings if "actuators" in one.text]
        assert not said
        host.write(f"/sys/devices/sda/queue/independent_access_ranges/{number}/sector", "0\n")
    assert host.report.disks[0].access_ranges == 3
    one = host.found("3 actuators")
    assert one.level is NOTE and "one head" in one.text


def test_too_few_requests_to_choose_from(host: Made) -> None:
    host.write("/sys/devices/sda/queue/nr_requests", "2\n")
    assert not [one for one in host.report.findings if "nr_requests" in one.text]
    host.write("/sys/devices/sda/queue/nr_requests", "64\n")
    host.write("/sys/devices/sda/device/queue_depth", "1\n")
    assert not [one for one in host.report.findings if "nr_requests" in one.text]
    host.write("/sys/devices/sda/queue/nr_requests", "2\n")
    one = host.found("nr_requests 2")
    assert (one.level, one.command) == (*(NOTE, "echo 64 > /sys/block/sda/queue/nr_requests"),)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, "?"),
        (0, "0 B"),
        (4_000_787_030_016, "4.0 TB"),
        (274_877_906_944, "274 GB"),
        (15_999_999, "15.9 MB"),
        (20 * 10**15, "20.0 PB"),
    ],
)
def test_sizes(size: int | None, text: str) -> None:
    assert size_text(size) == text


# ---- arrays ----


@pytest.fixture
def raid(host: Made) -> Made:
    host.stream("sdb", number=16)
    host.md()
    return host


def test_an_array_that_is_not_attached(raid: Made) -> None:
    one = raid.found("md0: raid0:2:64k: not attached")
    assert (one.level, one.command) == (PROBLEM, "streamsched array attach /dev/md0")
    (array,) = raid.report.arrays
    assert (array.members, array.coordinable, array.attached) == (("sda", "sdb"), True, False)


def test_an_array_that_is_attached(raid: Made) -> None:
    raid.write("/sys/kernel/config/stream-array/md0/attached", "1\n")
    assert raid.found("md0").level is OK
    assert raid.report.arrays[0].attached
    raid.write("/sys/devices/sdb/queue/scheduler", "none [mq-deadline] stream\n")
    one = raid.found("md0")
    assert one.level is PROBLEM and "does not schedule sdb" in one.text
    assert one.command == "echo stream > /sys/block/sdb/queue/scheduler"


def test_an_array_whose_members_stream_does_not_schedule(raid: Made) -> None:
    raid.write("/sys/devices/sdb/queue/scheduler", "none [mq-deadline] stream\n")
    one = raid.found("md0")
    assert one.level is NOTE and "does not schedule sdb" in one.text


def test_an_array_of_solid_state_disks(tmp_path: Path) -> None:
    host = Made(tmp_path)
    for number, name in enumerate(("sda", "sdb")):
        host.disk(name, "[none]", number, rotational="0")
    host.md()
    assert host.found("md0").text == "md0: raid0:2:64k: no member rotates, nothing to coordinate"


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("level", "raid4", "is raid4, none of raid0"),
        ("array_state", "inactive", "is not running"),
        ("reshape_position", "4096", "is being reshaped"),
        ("chunk_size", "2097152", "has chunks of 2097152 bytes"),
    ],
)
def test_an_array_that_cannot_be_coordinated(raid: Made, file: str, text: str, why: str) -> None:
    raid.write(f"/sys/block/md0/md/{file}", f"{text}\n")
    one = raid.found("cannot be coordinated")
    assert one.level is NOTE and why in one.text
    assert one.text.count("md0") == 1


@pytest.mark.parametrize("file", ["raid_disks", "chunk_size", "dev-sda/slot", "component_size"])
def test_md_says_what_makes_no_sense(raid: Made, file: str) -> None:
    raid.write(f"/sys/block/md0/md/{file}", b"99999999999999999999999999\n")
    assert raid.found("md0").level is NOTE
    raid.write(f"/sys/block/md0/md/{file}", b"\xff\0\n")
    raid.report  # noqa: B018


def striped(raid: Made, table: Done | None) -> None:
    raid.write("/sys/block/dm-0/dm/name", "vg-data\n")
    raid.write("/sys/block/dm-0/size", "2000000\n")
    for name in ("sda", "sdb"):
        raid.write(f"/sys/block/dm-0/slaves/{name}")
    raid.programs["dmsetup table vg-data"] = table


def test_a_striped_volume(raid: Made) -> None:
    striped(raid, Done(0, "0 2000000 striped 2 128 8:0 2048 8:16 2048\n"))
    one = raid.found("dm-0: raid0:2:64k: not attached")
    assert one.command == "streamsched array attach /dev/dm-0"


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (None, "dmsetup is missing"),
        (Done(1, "", "/dev/mapper/control: open failed: Permission denied\n"), "only root"),
        (Done(1, "", "No such device\n"), "dmsetup: No such device"),
        (Done(0, "0 10 striped 2 128 8:0 0 8:16 0\n10 10 linear 8:0 90\n"), "in 2 parts"),
        (Done(0, "0 10 raid raid5_ls 3 128 region_size 1024\n"), "not one striped volume"),
        (Done(0, "0 10 striped 2\n"), "cannot be parsed"),
    ],
)
def test_a_volume_that_cannot_be_coordinated(raid: Made, done: Done | None, why: str) -> None:
    striped(raid, done)
    one = raid.found("dm-0")
    assert one.level is NOTE and why in one.text


def test_a_volume_that_is_no_array_is_left_out(raid: Made) -> None:
    striped(raid, Done(0, "0 10 linear 8:0 2048\n10 10 linear 8:16 2048\n"))
    assert [array.name for array in raid.report.arrays] == ["md0"]
    raid.remove("/sys/block/dm-0/slaves/sdb")
    raid.asked.clear()
    assert [array.name for array in raid.report.arrays] == ["md0"]
    assert ["dmsetup", "table", "vg-data"] not in raid.asked


# ---- output ----


def lines_fit(report: doctor.Report) -> str:
    text = doctor.as_text(report)
    for line in text.splitlines():
        assert len(line) <= 80 and line.isascii() and line.isprintable(), line
    return text


def test_the_text(locked: Made) -> None:
    locked.remove(DKMS_KEY)
    tlp(locked)
    text = lines_fit(locked.report)
    assert text.splitlines()[0].split() == [
        *("disk", "model", "size", "rotates", "zoned", "ranges", "depth", "now")
    ]
    assert text.splitlines()[1].split() == [
        *("sda", "ST4000NM0035-1V4", "4.0", "TB", "yes", "no", "1", "32", "stream")
    ]
    assert text.endswith("\n\n2 problems, no notes\n")
    # What is printed is a command as it stands, on several lines.
    begin = text.index("# dkms build") + 2
    command = text[begin : text.index("Then boot", begin)]
    programs = "dkms() { echo dkms $*; }; mokutil() { echo mokutil $*; }"
    done = ran("bash", "-c", f"{programs}\n{command}", check=True)
    assert done.stdout.splitlines() == [
        f"dkms build --force streamsched/0.1.0 -k {RELEASE}",
        f"dkms install --force streamsched/0.1.0 -k {RELEASE}",
        f"mokutil --import {DKMS_KEY}",
    ]


def test_a_long_model_is_cut(host: Made) -> None:
    host.write("/sys/devices/sda/device/model", "A very long name of a disk\x1b[2J" * 3)
    lines_fit(host.report)


def test_json(host: Made) -> None:
    tlp(host)
    host.stream("sdb", number=16)
    host.md()
    data = json.loads(doctor.as_json(host.report))
    described = doctor.__doc__ or ""
    assert list(data) == ["version", "kernel", "problems", "findings", "disks", "arrays"]
    assert (data["version"], data["kernel"], data["problems"]) == (1, RELEASE, 2)
    for one in data["findings"]:
        assert list(one) == ["area", "level", "text", "command", "advice"]
        assert f'"{one["area"]}"' in described
        assert one["level"] != "problem" or one["command"] or one["advice"]
    for key in (*data, *data["findings"][0]):
        assert f"    {key} " in described
    assert [disk["name"] for disk in data["disks"]] == ["sda", "sdb"]
    assert data["arrays"][0]["members"] == ["sda", "sdb"]


@pytest.mark.parametrize(("words", "code"), [(["doctor"], 0), (["doctor", "--output", "json"], 0)])
def test_the_exit_status(
    host: Made, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int
) -> None:
    monkeypatch.setattr("streamsched.hosts.doctor.Machine", lambda: host.machine)
    assert CliRunner().invoke(app, words).exit_code == code
    host.write("/proc/sys/kernel/osrelease", "5.4.0\n")
    assert CliRunner().invoke(app, words).exit_code == 1


# ---- whatever the machine looks like ----


def test_a_machine_without_anything(tmp_path: Path) -> None:
    lines_fit(Made(tmp_path).report)
    lines_fit(Made(tmp_path / "missing").report)


def test_a_pipe_is_not_waited_for(host: Made) -> None:
    name = "/etc/udev/rules.d/70-pipe.rules"
    os.mkfifo(host.machine.path(name))
    host.machine.path("/etc/tlp.conf").symlink_to("/dev/zero")
    assert host.machine.read(name).data == b""
    assert len(host.machine.read("/etc/tlp.conf").data) == MOST_BYTES
    assert host.problems == []


def test_names_that_no_file_can_have(host: Made) -> None:
    assert not host.machine.read("/a\0b").there
    assert not host.machine.exists("/a\0b")
    assert host.machine.names("/a\0b") == []


def test_what_is_not_ascii_is_escaped(host: Made) -> None:
    host.write("/proc/sys/kernel/osrelease", "6.1-\u00e9\u4e16\n")
    assert "6.1-\\xe9\\u4e16 " in lines_fit(host.report)


def test_links_that_lead_in_circles(raid: Made) -> None:
    block = raid.machine.path("/sys/block/md0/md/dev-sda/block")
    block.unlink()
    block.symlink_to("block")
    raid.machine.path("/sys/block/sdz").symlink_to("sdz")
    assert raid.found("md0").level is NOTE


FILES = sorted(
    {
        *("/proc/sys/kernel/osrelease", "/proc/version", "/proc/cmdline", "/proc/modules"),
        *(SECURE_BOOT, LOCKDOWN, DKMS_KEY, MODULE, "/sys/module/stream_iosched/srcversion"),
        *("/etc/dkms/framework.conf", "/etc/tuned/active_profile", "/etc/tlp.conf"),
        *("/etc/tuned/mine/tuned.conf", "/etc/udev/rules.d/99-io.rules"),
        f"{MODULES}/build/include/generated/utsrelease.h",
        *(f"/sys/devices/sda/queue/{name}" for name in ("scheduler", "rotational", "zoned")),
        *(f"/sys/devices/sda/{name}" for name in ("size", "dev", "device/model")),
        *(f"/sys/devices/sda/{name}" for name in ("device/queue_depth", "queue/nr_requests")),
        "/sys/devices/sda/queue/iosched/service_curve",
        *(f"/sys/block/md0/md/{name}" for name in ("level", "layout", "raid_disks", "chunk_size")),
        *(f"/sys/block/md0/md/dev-sda/{name}" for name in ("slot", "state", "size", "offset")),
        *("/sys/block/md0/size", "/sys/block/md0/md/component_size", "/sys/block/dm-0/dm/name"),
        "/sys/kernel/config/stream-array/md0/attached",
    }
)
WORDS = st.sampled_from(
    [
        *("raid5", "raid10", "linear", "striped", "mine", "258", "0", "1", "-1", "65536", "6.1"),
        "in_sync,faulty",
        *("9" * 30, "9" * 5000, "\u0660\u0661", "\\\n" * 3, "none [integrity]", "8:16 8:0"),
        *("stream", "[stream] none", "0:0 2048:4600000", "include=mine\nelevator=bfq"),
        *(OTHER, RULE, alone("add"), recorded(252, "change"), "DISK_IOSCHED=bfq"),
        *('mok_certificate="/a\0b"', "0 9 striped 2 8 8:0 0 8:1 0"),
        f"streamsched/1, {RELEASE}, x: built",
    ]
)
CONTENT = st.one_of(
    st.none(),  # missing
    st.just("a folder"),
    st.binary(max_size=40),
    WORDS.map(str.encode),
    st.lists(WORDS, max_size=4).map(lambda words: " ".join(words).encode()),
)
SAYS = st.one_of(
    st.none(),
    st.builds(
        Done,
        st.sampled_from([0, 1, -1]),
        st.one_of(st.text(max_size=40), WORDS),
        st.text(max_size=20),
    ),
)


@pytest.mark.property
@given(
    st.dictionaries(st.sampled_from(FILES), CONTENT, max_size=8),
    st.fixed_dictionaries(
        dict.fromkeys(("dkms", "modinfo", "mokutil", "dmsetup", "udevadm"), SAYS)
    ),
)
def test_nothing_is_a_traceback(
    files: dict[str, bytes | str | None], programs: dict[str, Done | None]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = good(Path(folder))
        made.stream("sdb", number=16)
        made.md()
        striped(made, None)
        for name, content in files.items():
            path = made.machine.path(name)
            path.unlink(missing_ok=True)
            if content == "a folder":
                path.mkdir(parents=True)
            elif isinstance(content, bytes):
                made.write(name, content)
        made.programs = dict(programs)
        report = made.report
        lines_fit(report)
        assert json.loads(doctor.as_json(report))["problems"] == report.problems
        for one in report.findings:
            assert one.level is not PROBLEM or one.command or one.advice


# ---- programs, and this machine ----


def test_programs(tmp_path: Path) -> None:
    assert run_program(["no-such-program-as-this"]) is None
    assert run_program(["a\0b"]) is None
    done = run_program(["sh", "-c", r"printf '\377x'; echo no >&2; exit 3"])
    assert done == Done(3, "\ufffdx", "no\n")
    assert done and done.complaint == "no"
    assert Done(2, "").complaint == "exit status 2"


def test_a_program_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamsched.hosts.machine.SECONDS", 0.1)
    done = run_program(["sleep", "9"])
    assert done and done.code and "no answer" in done.complaint


@pytest.mark.e2e
def test_this_machine() -> None:
    command = [COMMAND, "doctor"]
    text, data = (ran(*command, *more, timeout=120) for more in ([], ["--output", "json"]))
    problems = json.loads(data.stdout)["problems"]
    for done in (text, data):
        assert (done.returncode, done.stderr) == (int(problems > 0), "")
    assert all(len(line) <= 80 for line in text.stdout.splitlines())


@pytest.mark.e2e
@pytest.mark.parametrize("words", [["--output", "csv"], ["sda"]])
def test_wrong_usage(words: list[str]) -> None:
    command = [COMMAND, "doctor", *words]
    done = ran(*command, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("streamsched: ") and done.stderr.count("\n") == 1
