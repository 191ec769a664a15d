# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched doctor` on made-up machines, and once on this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_data import (
    GENERIC,
    INSTALLED,
    LEARNED,
    MODULE,
    MODULES,
    RELEASE,
    RULE,
    RULES,
    Made,
    good,
)
from typer.testing import CliRunner

from streamsched.cli.main import app
from streamsched.hosts import doctor
from streamsched.hosts.disks import disks_of, size_text
from streamsched.hosts.doctor_boot import Conditions, lines_for, parse_rules
from streamsched.hosts.doctor_finding import Level
from streamsched.hosts.doctor_kernel import DKMS_KEY, LOCKDOWN, SECURE_BOOT
from streamsched.hosts.machine import MOST_BYTES, Done, run_program


@pytest.fixture
def host(tmp_path: Path) -> Made:
    return good(tmp_path)


# ---- a machine as it should be ----


def test_nothing_is_wrong_with_a_good_machine(host: Made) -> None:
    report = host.report
    assert [one for one in report.findings if one.level is not Level.ok] == []
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
        *("dkms status", "modinfo -F vermagic", "modinfo -F srcversion")
    }


# ---- the kernel, and what a module is built with ----


@pytest.mark.parametrize(
    ("release", "level"),
    [
        ("5.10.0-30-amd64", Level.problem),
        ("6.0.9", Level.problem),
        ("6.1.0", Level.ok),
        ("6.12.3-arch1-1", Level.ok),
        ("10.0", Level.ok),
        ("rubbish", Level.note),
    ],
)
def test_the_kernels_version(host: Made, release: str, level: Level) -> None:
    host.write("/proc/sys/kernel/osrelease", release)
    (one,) = [finding for finding in host.report.findings if finding.area == "kernel"]
    assert one.level is level
    assert (one.advice is not None) == (level is Level.problem)


@pytest.mark.parametrize(
    ("gone", "text", "mend"),
    [
        ("/sys/kernel/btf/vmlinux", "has no type information", "CONFIG_DEBUG_INFO_BTF=y"),
        (f"{MODULES}/build/Module.symvers", "has no Module.symvers", "make modules"),
        (
            f"{MODULES}/build/include/generated/utsrelease.h",
            "has no include/generated/utsrelease.h",
            f"apt-get install -y linux-headers-{RELEASE}",
        ),
        ("/usr/bin/gcc-12", "compiler gcc-12 is missing", "apt-get install -y gcc-12"),
        ("/usr/bin/pahole", "program pahole is missing", "apt-get install -y pahole"),
    ],
)
def test_what_a_build_needs_is_missing(host: Made, gone: str, text: str, mend: str) -> None:
    host.remove(gone)
    # The module that is there goes on without it.
    assert host.found(text).level is Level.note
    host.remove(MODULE)
    one = host.found(text)
    assert one.level is Level.problem
    assert mend in f"{one.command} {one.advice}"


def test_no_headers_at_all(host: Made) -> None:
    host.remove(MODULE)
    build = host.machine.path(f"{MODULES}/build")
    build.rename(build.with_name("elsewhere"))
    one = host.found("headers of kernel")
    assert one.level is Level.problem
    assert one.command == f"apt-get install -y linux-headers-{RELEASE}"
    host.remove("/usr/bin/apt-get")
    one = host.found("headers of kernel")
    assert one.command is None and f"linux-headers-{RELEASE}" in (one.advice or "")


def test_headers_of_another_kernel(host: Made) -> None:
    host.write(f"{MODULES}/build/include/generated/utsrelease.h", '#define X "6.1.0-36-amd64"\n')
    assert "belongs to kernel 6.1.0-36-amd64" in host.found("build belongs").text


def test_debugging_symbols_do_for_type_information(host: Made) -> None:
    host.remove("/sys/kernel/btf/vmlinux")
    host.write(f"/usr/lib/debug/boot/vmlinux-{RELEASE}")
    assert host.found("type information").level is Level.ok


def test_another_version_of_the_compiler(host: Made) -> None:
    host.remove("/usr/bin/gcc-12")
    host.write("/usr/bin/gcc")
    one = host.found("built with gcc-12")
    assert (one.level, one.command) == (Level.note, "apt-get install -y gcc-12")


@pytest.mark.parametrize(
    ("said", "program"),
    [
        ("(x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0)", "gcc-13"),
        ("(clang version 17.0.6, LLD 17.0.6)", "clang"),
        ("nothing", "gcc"),
    ],
)
def test_the_kernels_compiler(host: Made, said: str, program: str) -> None:
    host.write("/proc/version", f"Linux version {RELEASE} (a@gcc.example) {said}")
    host.write(f"/usr/bin/{program}")
    assert host.found("compiler").text == f"compiler: {program}"


# ---- Secure Boot ----


@pytest.fixture
def locked(host: Made) -> Made:
    """The good host with Secure Boot on, and DKMS's key enrolled."""
    host.write(SECURE_BOOT, b"\x06\0\0\0\1")
    host.write(LOCKDOWN, "none [integrity] confidentiality\n")
    host.write(DKMS_KEY)
    host.programs[f"mokutil --test-key {DKMS_KEY}"] = Done(1, f"{DKMS_KEY} is already enrolled\n")
    return host


def test_secure_boot_with_the_key_enrolled(locked: Made) -> None:
    assert locked.problems == []
    assert locked.found("signed modules only (lockdown is integrity)").level is Level.ok
    assert locked.found("is enrolled").level is Level.ok


def test_the_key_is_not_enrolled(locked: Made) -> None:
    locked.programs["mokutil"] = Done(0, f"{DKMS_KEY} is not enrolled\n")
    del locked.programs[f"mokutil --test-key {DKMS_KEY}"]
    one = locked.found("is not enrolled")
    assert (one.level, one.command) == (Level.problem, f"mokutil --import {DKMS_KEY}")
    assert "Enroll MOK" in (one.advice or "")


def test_the_key_waits_for_the_next_boot(locked: Made) -> None:
    locked.programs[f"mokutil --test-key {DKMS_KEY}"] = Done(
        1, f"{DKMS_KEY} is already in the enrollment request\n"
    )
    one = locked.found("waits to be confirmed")
    assert one.level is Level.problem and one.command is None and one.advice


@pytest.mark.parametrize(
    "done", [None, Done(255, "", "EFI variables are not supported on this system\n")]
)
def test_whether_the_key_is_enrolled_cannot_be_told(locked: Made, done: Done | None) -> None:
    locked.programs[f"mokutil --test-key {DKMS_KEY}"] = done
    one = locked.found("is enrolled is not known")
    assert one.level is Level.note
    assert ("mokutil is missing" in one.text) == (done is None)


def test_there_is_no_key(locked: Made) -> None:
    locked.remove(DKMS_KEY)
    one = locked.found("no key to sign with")
    assert one.level is Level.problem
    assert one.command == (
        f"dkms build --force streamsched/0.1.0 -k {RELEASE} && "
        f"dkms install --force streamsched/0.1.0 -k {RELEASE} && mokutil --import {DKMS_KEY}"
    )


def test_the_module_is_not_signed(locked: Made) -> None:
    locked.programs[f"modinfo -F signer {MODULE}"] = Done(0, "\n")
    one = locked.found("is not signed")
    assert one.level is Level.problem and "dkms build --force" in (one.command or "")


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


def test_ubuntus_key(locked: Made) -> None:
    locked.remove(DKMS_KEY)
    locked.write("/var/lib/shim-signed/mok/MOK.der")
    locked.programs["mokutil"] = Done(0, "/var/lib/shim-signed/mok/MOK.der is not enrolled\n")
    assert "MOK.der" in (locked.found("is not enrolled").command or "")


def test_signatures_are_wanted_without_secure_boot(host: Made) -> None:
    host.write("/proc/cmdline", "quiet module.sig_enforce=1\n")
    assert "module.sig_enforce" in host.found("signed modules only").text
    assert host.found("no key to sign with").level is Level.problem


def test_secure_boot_without_lockdown_needs_no_signature(locked: Made) -> None:
    locked.write(LOCKDOWN, "[none] integrity confidentiality\n")
    assert locked.found("need no signature").level is Level.ok
    locked.remove(LOCKDOWN)  # nothing says that it is off
    assert locked.found("signed modules only").level is Level.ok


@pytest.mark.parametrize("data", [b"", b"\x06\0\0\0", b"rubbish"])
def test_the_variable_makes_no_sense(host: Made, data: bytes) -> None:
    host.write(SECURE_BOOT, data)
    assert host.found("does not say whether Secure Boot").level is Level.note


def test_what_only_root_can_see(host: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(path: Path, flags: int, *args: Any) -> int:
        if str(path).endswith(("e0098032b8c", SECURE_BOOT.rpartition("/")[2], ".rules")):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, *args)

    monkeypatch.setattr("streamsched.hosts.machine.os.open", refuse)
    assert host.problems == []
    assert host.found("only root can see whether Secure Boot is on").level is Level.note
    assert host.found("only root can read").level is Level.note


# ---- the module ----


def test_there_is_a_module_for_another_kernel_only(host: Made) -> None:
    host.remove(MODULE)
    host.programs["dkms status"] = Done(0, "streamsched/0.1.0, 6.1.0-36-amd64, x86_64: installed\n")
    one = host.found("there is no module for")
    assert one.text == f"there is no module for {RELEASE}, but one for 6.1.0-36-amd64"
    assert one.level is Level.problem
    assert one.command == f"dkms install streamsched/0.1.0 -k {RELEASE}"


@pytest.mark.parametrize(
    ("status", "there", "text", "command"),
    [
        ("streamsched/0.2: added", False, "there is no module", "dkms install streamsched/0.2"),
        (
            f"streamsched, 0.1.0, {RELEASE}, x86_64: built",
            False,
            "built, but not installed",
            "dkms install streamsched/0.1.0",
        ),
        (INSTALLED, False, "the file is missing", "dkms build --force"),
        ("streamsched/0.1.0: broken", False, "its sources are gone", "--reinstall"),
        (
            INSTALLED.strip() + " (WARNING! Diff between built and installed module!)",
            True,
            "not the one that it built",
            "dkms install --force",
        ),
    ],
)
def test_dkms_has_not_installed_it(
    host: Made, status: str, there: bool, text: str, command: str
) -> None:
    if not there:
        host.remove(MODULE)
    host.programs["dkms status"] = Done(0, status + "\n")
    one = host.found(text)
    assert one.level is Level.problem and command in (one.command or "")


@pytest.mark.parametrize("done", [None, Done(0, ""), Done(1, "", "Error! not today\n")])
def test_dkms_does_not_have_it(host: Made, done: Done | None) -> None:
    host.programs["dkms status"] = done
    assert host.found("not of DKMS").level is Level.ok
    host.remove(MODULE)
    one = host.found("no module is there")
    assert one.level is Level.problem and "INSTALL.md" in (one.advice or "")
    said = [one.text for one in host.report.findings if "says nothing" in one.text]
    assert said == (["`dkms status` says nothing: Error! not today"] if done and done.code else [])


def test_a_module_of_another_kernel(host: Made) -> None:
    host.programs[f"modinfo -F vermagic {MODULE}"] = Done(0, "6.1.0-36-amd64 SMP\n")
    one = host.found("was built for kernel 6.1.0-36-amd64")
    assert one.level is Level.problem and "dkms build --force" in (one.command or "")


def test_another_build_is_loaded(host: Made) -> None:
    host.programs[f"modinfo -F srcversion {MODULE}"] = Done(0, "DEF\n")
    one = host.found("the loaded module is another build (ABC) than the installed one (DEF)")
    assert one.level is Level.note


def unload(host: Made) -> None:
    folder = host.machine.path("/sys/module/stream_iosched")
    folder.rename(folder.with_name("other"))


def test_the_module_is_not_loaded(host: Made) -> None:
    unload(host)
    one = host.found("stream-iosched is not loaded")
    assert (one.level, one.command) == (Level.note, "modprobe stream-iosched")


def test_the_kernel_loads_no_modules(host: Made) -> None:
    unload(host)
    host.write("/proc/sys/kernel/modules_disabled", "1\n")
    assert host.found("loads no modules any more").level is Level.problem
    host.remove("/proc/modules")
    assert host.found("no loadable modules").level is Level.problem


# ---- what chooses schedulers at boot ----

OTHER = 'ACTION=="add", SUBSYSTEM=="block", KERNEL=="sd*", ATTR{queue/scheduler}="bfq"\n'


@pytest.mark.parametrize(
    ("file", "text", "level", "said"),
    [
        ("/etc/udev/rules.d/99-io.rules", OTHER, Level.problem, "for sda, after 60-stream"),
        (
            "/etc/udev/rules.d/10-io.rules",
            OTHER,
            Level.ok,
            "but 60-stream-iosched.rules comes later",
        ),
        # It acts at a change, too, and ours does not.
        (
            "/usr/lib/udev/rules.d/10-io.rules",
            OTHER.replace("add", "add|change"),
            Level.problem,
            "for sda at every change event",
        ),
        (
            "/run/udev/rules.d/99-io.rules",
            OTHER.replace("ATTR{", 'ATTR{queue/rotational}=="0", ATTR{', 1),
            Level.ok,
            "but for no rotating disk here",
        ),
        (
            "/etc/udev/rules.d/99-io.rules",
            OTHER.replace("sd*", "nvme*|mmcblk*"),
            Level.ok,
            "but for no rotating disk here",
        ),
        # A program is started when all rules are through.
        (
            "/etc/udev/rules.d/10-io.rules",
            'KERNEL=="sda", RUN+="/bin/sh -c \'echo kyber > /sys/block/%k/queue/scheduler\'"\n',
            Level.problem,
            "sets kyber for sda, after 60-stream",
        ),
        (
            "/etc/udev/rules.d/10-io.rules",
            'RUN+="/sbin/choose queue/scheduler"\n',
            Level.problem,
            "sets a scheduler that cannot be seen for sda",
        ),
    ],
)
def test_another_udev_rule(host: Made, file: str, text: str, level: Level, said: str) -> None:
    host.write(file, "# a comment\n\n" + text)
    one = host.found(f"{file}:3 sets")
    assert said in one.text
    assert one.level is level
    if level is Level.problem:
        where = "Take line 3" if file.startswith("/etc/") else "Copy"
        assert (one.advice or "").startswith(where)


def test_a_rule_that_only_compares_chooses_nothing(host: Made) -> None:
    host.write("/etc/udev/rules.d/99-io.rules", 'ATTR{queue/scheduler}=="bfq", SYMLINK+="x"\n')
    host.write("/etc/udev/rules.d/98-io.rules", '# ATTR{queue/scheduler}="bfq"\n')
    host.write("/etc/udev/rules.d/97-io.txt", OTHER)
    assert not [one for one in host.report.findings if "-io." in one.text]


def test_a_file_hides_those_of_its_name(host: Made) -> None:
    host.write("/usr/lib/udev/rules.d/99-io.rules", OTHER)
    assert host.problems
    host.write("/etc/udev/rules.d/99-io.rules")
    assert not host.problems


def test_a_rule_over_several_lines(host: Made) -> None:
    text = '\nACTION=="add", \\\n# a comment\n  ATTR{queue/scheduler}="bfq"\n' + OTHER
    host.write("/etc/udev/rules.d/99-io.rules", text)
    assert [one.split(" ", 1)[0] for one in host.problems] == [
        f"/etc/udev/rules.d/99-io.rules:{number}" for number in (2, 5)
    ]


def reached(made: Made, text: str, action: str = "add") -> dict[str, list[str]]:
    """By disk what it depends on that each line which udev acts on is reached."""
    lines = parse_rules(text.split("\n"))
    return {
        disk.name: [
            why for _, why in lines_for(lines, Conditions(made.machine, disk, action, set()))
        ]
        for disk in disks_of(made.machine)
    }


def test_jumps_are_followed(host: Made) -> None:
    for jump, end, whys in (
        ('KERNEL=="sd*", GOTO="end"', 'LABEL="end"', ["", ""]),
        ('KERNEL!="sd*", GOTO="end"', 'LABEL="end"', ["", ""]),
        ('KERNEL=="sd*", GOTO="nowhere"', "", ["", ""]),
        # To the next label of that name.
        ('KERNEL=="sd*", GOTO="end"', 'LABEL="end"\nLABEL="end"', ["", "", ""]),
        # It is not known whether; behind the label that does not matter any more.
        ('ENV{X}=="y", GOTO="end"', 'LABEL="end"', ['ENV{X}=="y"', 'ENV{X}=="y"', ""]),
        ('ENV{X}=="y"', 'GOTO="end"\nLABEL="end"', ['ENV{X}=="y"', "", "", ""]),
    ):
        text = f'{jump}\nATTR{{queue/scheduler}}="bfq"\n{end}'
        assert reached(host, text)["sda"] == whys, text


def test_our_rule_is_followed(host: Made) -> None:
    """All of it is known, and it acts on rotating disks without zones when they are added."""
    host.disk("sdb", number=16, rotational="0")
    host.disk("sdc", number=32, zoned="host-managed")
    lines = parse_rules(RULE.splitlines())
    chosen = set()
    for disk in disks_of(host.machine):
        for action in ("add", "change"):
            for line, why in lines_for(lines, Conditions(host.machine, disk, action, set())):
                assert not why
                if line.tokens[0].attribute == "queue/scheduler":
                    chosen.add((disk.name, action))
    assert chosen == {("sda", "add")}


UNSURE = "unsure, for it depends on "
SET = 'ATTR{queue/scheduler}="bfq"'


@pytest.mark.parametrize(
    ("condition", "level", "said"),
    [
        # udev looks for files of the disk, and elsewhere.
        ('TEST=="queue/nr_requests"', Level.problem, "for sda, after"),
        ('TEST!="%S%p/queue/nr_requests"', Level.ok, "for no rotating disk"),
        ('TEST!="%S%p/mq/1"', Level.problem, "for sda, after"),
        ('TEST=="$sys$devpath/mq/1"', Level.ok, "for no rotating disk"),
        ('TEST=="/sys/block/%k/queue/zoned"', Level.problem, "for sda, after"),
        ('TEST=="/etc/udev/rules.d"', Level.problem, "for sda, after"),
        ('TEST=="/etc/none"', Level.ok, "for no rotating disk"),
        # What may have been otherwise at boot, or stands for something else.
        ('TEST=="queue/iosched/slice_idle"', Level.note, UNSURE),
        ('TEST=="/run/x"', Level.note, UNSURE),
        ('TEST=="/etc/../run/x"', Level.note, UNSURE),
        ('TEST{0111}=="queue/zoned"', Level.note, UNSURE),
        ('TEST=="$env{X}"', Level.note, UNSURE),
        ('TEST="queue/nr_requests"', Level.note, UNSURE),
        # Other keys.
        ('ATTR{removable}=="0"', Level.note, UNSURE),
        ('ATTR{size}=="7814037168"', Level.problem, "for sda, after"),
        ('ATTR{size}!="7814037168"', Level.ok, "for no rotating disk"),
        ('ATTR{queue/scheduler}!="none"', Level.note, UNSURE),
        ('ATTRS{model}=="ST*"', Level.note, UNSURE),
        ('ENV{ID_BUS}=="usb"', Level.note, UNSURE),
        ('CONST{virt}=="kvm"', Level.note, UNSURE),
        ('TAG=="x"', Level.note, UNSURE),
        ('PROGRAM=="/bin/true"', Level.note, UNSURE),
        ('PROGRAM="/bin/true"', Level.note, UNSURE),
        ('IMPORT{program}="/bin/true"', Level.note, UNSURE),
        ('IMPORT{cmdline}="elevator"', Level.ok, "for no rotating disk"),
        ('IMPORT{cmdline}=="root"', Level.problem, "for sda, after"),
        ('IMPORT{cmdline}!="root"', Level.ok, "for no rotating disk"),
        # With these operators udev ignores the line; and what is no rule at all.
        ('ACTION="add"', Level.note, UNSURE),
        ('KERNEL+="sda"', Level.note, UNSURE),
        ("KERNEL=='sda'", Level.note, UNSURE + "text that is not understood"),
        ("KERNEL==sdb", Level.note, UNSURE + "text that is not understood"),
        # Values with escapes, and in any case.
        ('KERNEL=="s\\da"', Level.note, UNSURE),
        ('KERNEL==e"sda"', Level.problem, "for sda, after"),
        ('KERNEL==i"SDA"', Level.problem, "for sda, after"),
        ('KERNEL=="SDA"', Level.ok, "for no rotating disk"),
        ('KERNEL=="sdb|sda"', Level.problem, "for sda, after"),
    ],
)
def test_conditions(host: Made, condition: str, level: Level, said: str) -> None:
    """Each of another rule; and of ours, which is never "ok" when it is not known."""
    rules = "/etc/udev/rules.d"
    host.write(f"{rules}/99-io.rules", f"{condition}, {SET}\n")
    one = host.found("99-io.rules:1 sets bfq")
    assert (one.level, said in one.text) == (level, True), one
    host.remove(f"{rules}/99-io.rules")
    host.write(f"{rules}/{RULES}", f"{condition}, {SET.replace('bfq', 'stream')}\n")
    ours = host.found(f"{RULES}:1 sets stream")
    assert ours.level is (Level.ok if level is Level.problem else Level.note), ours
    missing = [one for one in host.report.findings if "no udev rule sets stream" in one.text]
    assert bool(missing) == (level is Level.ok)


def test_what_udev_keeps_of_a_disk(host: Made) -> None:
    """A variable that no event has left and no rule sets is empty."""
    host.write("/etc/udev/rules.d/99-io.rules", f'ENV{{X}}=="1", {SET}\n')
    assert host.found("99-io.rules:1").level is Level.note
    host.write("/run/udev/data/b8:0", "I:1\nE:ID_BUS=ata\n")
    assert host.found("99-io.rules:1").level is Level.ok
    host.write("/run/udev/data/b8:0", "E:X=0\n")
    assert host.found("99-io.rules:1").level is Level.note
    host.write("/run/udev/data/b8:0", "I:1\n")
    host.write("/etc/udev/rules.d/50-x.rules", 'KERNEL=="sda", ENV{X}="1"\n')
    assert host.found("99-io.rules:1").level is Level.note


SUSE = """
SUBSYSTEM!="block", GOTO="end"
ACTION!="add|change", GOTO="end"
TEST!="%S%p/queue/scheduler", GOTO="end"
ENV{MULTIPATH}=="1", ATTR{queue/scheduler}="none", GOTO="end"
ATTR{queue/rotational}!="0", TEST!="%S%p/mq/1", ATTR{queue/scheduler}="bfq", GOTO="end"
ATTR{queue/scheduler}="none"
LABEL="end"
"""


def test_rules_of_the_shape_of_suse(host: Made) -> None:
    """One queue or several; a variable that may be set; and what a jump leaves out."""
    host.write("/usr/lib/udev/rules.d/60-io-scheduler.rules", SUSE)
    file = "60-io-scheduler.rules"
    assert host.found(f"{file}:5 sets none").level is Level.note
    assert host.found(f"{file}:6 sets bfq").text.endswith(UNSURE + 'ENV{MULTIPATH}=="1"')
    assert host.found(f"{file}:7 sets none").level is Level.ok
    host.write("/run/udev/data/b8:0", "I:1\n")
    assert host.found(f"{file}:5 sets none").level is Level.ok
    assert "for sda at every change event" in host.found(f"{file}:6 sets bfq").text
    host.write("/sys/devices/sda/mq/1/nr_tags", "1")
    assert host.found(f"{file}:6 sets bfq").level is Level.ok
    assert "for sda at every change event" in host.found(f"{file}:7 sets none").text


def test_not_every_disk_gets_stream(host: Made) -> None:
    host.disk("sdb", number=16)
    host.write(f"/etc/udev/rules.d/{RULES}", 'KERNEL=="sda", ATTR{queue/scheduler}="stream"\n')
    assert host.found("sets stream at boot for sdb").level is Level.note
    host.write("/etc/udev/rules.d/10-io.rules", f"{SET}\n")
    assert host.found("10-io.rules:1 sets bfq for sda, sdb").level is Level.note


def test_programs_that_choose(host: Made) -> None:
    """What a shell is told, what a script has, and what takes a program back."""
    file = "/etc/udev/rules.d/99-io.rules"
    say = "echo 1 > /x; echo -n kyber >/sys/block/%k/queue/scheduler"
    host.write(file, f"RUN+=\"/bin/sh -c '{say}'\"\n")
    assert "sets kyber for sda" in host.found("99-io.rules:1").text
    host.write(file, f"RUN+=\"/bin/sh -c '{say}; echo bfq > /sys/block/%k/queue/scheduler'\"\n")
    assert "a scheduler that cannot be seen for sda" in host.found("99-io.rules:1").text
    host.write("/usr/local/bin/choose", "#!/bin/sh\necho bfq > /sys/block/$1/queue/scheduler\n")
    host.write(file, 'RUN+="/usr/local/bin/choose %k"\n')
    assert host.found("99-io.rules:1").text.endswith(UNSURE + "what /usr/local/bin/choose does")
    host.write("/usr/lib/udev/pick", "queue/scheduler")
    host.write(file, 'RUN+="pick %k"\n')
    assert host.found("99-io.rules:1").text.endswith(UNSURE + "what /usr/lib/udev/pick does")
    host.write(file, 'ATTR{queue/scheduler}="$env{SCHEDULER}"\n')
    assert "a scheduler that cannot be seen for sda" in host.found("99-io.rules:1").text
    host.write(file, "RUN+=\"/bin/sh -c 'echo stream > /sys/block/%k/queue/scheduler'\"\n")
    assert host.found("99-io.rules:1").level is Level.ok
    host.write(file, f'ATTR{{queue/scheduler}}="stream", RUN+="/bin/sh -c \'{say}\'"\n')
    assert host.found("99-io.rules:1 sets kyber for sda, after").level is Level.problem
    host.write(file, 'ATTR{queue/scheduler}="stream", ATTR{queue/scheduler}="bfq"\n')
    assert host.found("99-io.rules:1 sets bfq for sda, after").level is Level.problem
    host.write(file, "RUN+=\"/bin/sh -c 'echo stream > /sys/block/%k/queue/scheduler'\"\n")
    host.write("/etc/udev/rules.d/98-io.rules", 'KERNEL=="sda", RUN="/bin/true"\n')
    assert host.found("99-io.rules:1").text.endswith(UNSURE + 'RUN="/bin/true"')


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("/etc/tmpfiles.d/io.conf", "w /sys/block/sda/queue/scheduler - - - - mq-deadline"),
        ("/etc/sysfs.conf", "block/sda/queue/scheduler = deadline"),
        ("/etc/sysfs.d/io.conf", "block/sda/queue/scheduler = deadline"),
        ("/etc/rc.local", "echo bfq > /sys/block/sda/queue/scheduler"),
        (
            "/etc/systemd/system/io.service",
            "ExecStart=/bin/sh -c 'echo bfq >/sys/block/sda/queue/scheduler'",
        ),
    ],
)
def test_other_files_that_choose(host: Made, file: str, line: str) -> None:
    host.write(file, f"# {line}\n{line}\n")
    one = host.found(f"{file}:2 names queue/scheduler: unsure")
    assert one.level is Level.note and one.advice
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
    assert (one.level, one.command) == (Level.note, FOLLOWS)
    assert one.text.endswith("io.weight")
    host.write("/sys/fs/cgroup/a b/io.weight", "default 300\n")
    assert host.found("as 300 in /sys/fs/cgroup/a b/io.weight and 1 more").command == FOLLOWS
    weights = "/sys/devices/sda/queue/iosched/cgroup_weights"
    host.write(weights, "/a b 300\n/system.slice/backup.service 51\n/other 5\n")
    assert host.found(f"as 50 in {group}/io.weight").text.endswith("io.weight")
    host.write(weights, "/a b 300\n/system.slice/backup.service 50\n/other 5\n")
    assert host.found("sda: stream has the weights of cgroups").level is Level.ok
    assert not [one for one in host.report.findings if "has not" in one.text]


def test_weights_of_one_disk(host: Made) -> None:
    """Where it has the usual one there is nothing to say."""
    host.write("/sys/fs/cgroup/cgroup.controllers", "io\n")
    host.write("/sys/fs/cgroup/a/io.weight", "default 300\n8:0 100\n")
    assert not [one for one in host.report.findings if "weight" in one.text]
    host.stream("sdb", number=16)
    assert host.found("sdb: stream has not the weights").command == FOLLOWS
    host.write("/sys/devices/sdb/queue/iosched/cgroup_weights", "/a 300\n")
    assert host.found("sdb: stream has the weights").level is Level.ok


def test_weights_of_units(host: Made) -> None:
    """A service that does not run has no cgroup."""
    host.write("/etc/systemd/system/b.service", "[Service]\n#IOWeight=50\n")
    assert not [one for one in host.report.findings if "IOWeight" in one.text]
    host.write("/etc/systemd/system/b.service.d/x.conf", "[Service]\nStartupIOWeight=50\n")
    one = host.found("IOWeight=, as in /etc/systemd/system/b.service.d/x.conf:2")
    assert (one.level, one.command) == (Level.note, FOLLOWS)
    host.write("/etc/systemd/system/multi-user.target.wants/streamsched-weights.service")
    assert not [one for one in host.report.findings if "IOWeight" in one.text]


def test_no_rule_of_ours(host: Made) -> None:
    host.remove("/etc/udev/rules.d/60-stream-iosched.rules")
    host.write("/etc/udev/rules.d/99-io.rules", OTHER)
    one = host.found("no udev rule sets stream")
    assert one.level is Level.note and one.command == "streamsched enable sda"
    assert host.found("99-io.rules:1 sets bfq for sda").level is Level.note


def test_our_rule_leads_nowhere(host: Made) -> None:
    name = "/etc/udev/rules.d/60-stream-iosched.rules"
    host.remove(name)
    host.machine.path(name).symlink_to("gone")
    one = host.found("leads nowhere")
    assert (one.level, one.command) == (Level.problem, f"rm {name}")


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
    assert one.level is Level.note and "not enabled" in one.text
    host.write(f"{WANTS}/tuned.service")
    one = host.found("tuned")
    assert one.level is Level.problem and (one.advice or "").startswith("Copy /usr/lib/tuned/")
    host.write("/etc/tuned/mine/tuned.conf", "[disk]\nelevator=bfq\n[main]\ninclude=mine\n")
    one = host.found("tuned")
    assert one.level is Level.problem and "Take line 2 out of /etc/tuned/mine" in (one.advice or "")
    host.write("/etc/tuned/mine/tuned.conf", "[main]\ninclude=mine\n")
    assert host.found("tuned").level is Level.ok
    host.write("/etc/tuned/mine/tuned.conf", "[disk]\nelevator=stream\n")
    assert host.found("tuned").level is Level.ok
    host.write("/etc/tuned/mine/tuned.conf", "[a]\nelevator=stream\n[b]\nelevator=bfq\n")
    assert "mine sets bfq (/etc/tuned/mine/tuned.conf:4)" in host.found("tuned").text
    host.write("/etc/tuned/mine/tuned.conf", "[sysfs]\n/sys/block/sda/queue/scheduler=bfq\n")
    assert "mine sets bfq" in host.found("tuned").text
    host.write("/etc/tuned/mine/tuned.conf", "[main]\ninclude=${other}\n")
    assert host.found("tuned: unsure").text.endswith("${other} cannot be read")
    host.write("/etc/tuned/active_profile", "none\n")
    assert host.found("tuned: unsure").level is Level.note


def test_tlp(host: Made) -> None:
    host.write("/etc/tlp.conf", '#DISK_IOSCHED="bfq"\nDISK_DEVICES="nvme0n1 sda"\n')
    assert not [one for one in host.report.findings if "TLP" in one.text]
    host.write("/etc/tlp.d/10-disk.conf", 'DISK_IOSCHED="none mq-deadline"  # as I like it\n')
    what = "TLP: /etc/tlp.d/10-disk.conf:1 sets none mq-deadline"
    assert host.found("TLP").text == f"{what}, but TLP is not enabled"
    host.machine.path(WANTS).mkdir(parents=True)
    host.machine.path(f"{WANTS}/tlp.service").symlink_to("/lib/systemd/system/tlp.service")
    one = host.found("TLP")
    assert (one.level, one.text) == (Level.problem, what)
    assert "line 1 of /etc/tlp.d/10-disk.conf" in (one.advice or "")
    host.write("/etc/tlp.conf", 'DISK_DEVICES="nvme0n1 sda"\nDISK_IOSCHED="keep keep"\n')
    assert host.found("TLP").level is Level.ok
    # The first word is for a disk that does not rotate.
    host.disk("nvme0n1", "[none]", 16, rotational="0")
    host.write("/etc/tlp.conf", 'DISK_DEVICES="nvme0n1 sda"\nDISK_IOSCHED="kyber keep"\n')
    assert host.found("TLP").level is Level.ok


def test_elevator_on_the_command_line(host: Made) -> None:
    host.write("/proc/cmdline", "quiet elevator=deadline\n")
    one = host.found("elevator=deadline")
    assert one.level is Level.note and "ignored" in one.text


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


def test_the_curve_is_still_the_generic_one(tmp_path: Path) -> None:
    host = good(tmp_path)
    host.write("/sys/devices/sda/queue/iosched/service_curve", f"{GENERIC}\n")
    one = host.found("sda: stream")
    assert one.level is Level.note and "still the generic one" in one.text
    host.remove("/sys/devices/sda/queue/iosched/service_curve")
    assert "cannot be read" in host.found("sda: stream").text


def test_a_rotating_disk_under_another_scheduler(host: Made) -> None:
    host.disk("sdb", number=16)
    one = host.found("sdb: mq-deadline")
    assert (one.level, one.command) == (Level.note, "echo stream > /sys/block/sdb/queue/scheduler")
    host.remove(MODULE)
    assert host.found("sdb: mq-deadline").command is None


def test_solid_state_only(tmp_path: Path) -> None:
    host = good(tmp_path)
    host.write("/sys/devices/sda/queue/rotational", "0\n")
    host.write("/sys/devices/sda/queue/scheduler", "[none] mq-deadline\n")
    assert host.found("no disk rotates").level is Level.note
    assert host.found("sda: none").level is Level.ok
    assert not host.problems
    host.stream("sdb", GENERIC, 16, rotational="0")
    assert "only the inner policy" in host.found("sdb: stream").text


def test_a_zoned_disk(host: Made) -> None:
    host.disk("sdb", number=16, zoned="host-managed")
    one = host.found("sdb: mq-deadline; zoned")
    assert one.level is Level.ok and "not for stream" in one.text
    host.stream("sdc", LEARNED, 32, zoned="host-managed")
    one = host.found("sdc: stream, on a zoned disk")
    assert one.level is Level.note and "mq-deadline" in (one.command or "")


@pytest.mark.parametrize(("zoned", "level"), [(0, None), (1, None), (2, Level.note), (3, None)])
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
    assert one.level is Level.note and "one head" in one.text


def test_too_few_requests_to_choose_from(host: Made) -> None:
    host.write("/sys/devices/sda/queue/nr_requests", "2\n")
    assert not [one for one in host.report.findings if "nr_requests" in one.text]
    host.write("/sys/devices/sda/queue/nr_requests", "64\n")
    host.write("/sys/devices/sda/device/queue_depth", "1\n")
    assert not [one for one in host.report.findings if "nr_requests" in one.text]
    host.write("/sys/devices/sda/queue/nr_requests", "2\n")
    one = host.found("nr_requests 2")
    assert (one.level, one.command) == (
        *(Level.note, "echo 64 > /sys/block/sda/queue/nr_requests"),
    )


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
    assert (one.level, one.command) == (Level.problem, "streamsched array attach /dev/md0")
    (array,) = raid.report.arrays
    assert (array.members, array.coordinable, array.attached) == (("sda", "sdb"), True, False)


def test_an_array_that_is_attached(raid: Made) -> None:
    raid.write("/sys/kernel/config/stream-array/md0/attached", "1\n")
    assert raid.found("md0").level is Level.ok
    assert raid.report.arrays[0].attached
    raid.write("/sys/devices/sdb/queue/scheduler", "none [mq-deadline] stream\n")
    one = raid.found("md0")
    assert one.level is Level.problem and "does not schedule sdb" in one.text
    assert one.command == "echo stream > /sys/block/sdb/queue/scheduler"


def test_an_array_whose_members_stream_does_not_schedule(raid: Made) -> None:
    raid.write("/sys/devices/sdb/queue/scheduler", "none [mq-deadline] stream\n")
    one = raid.found("md0")
    assert one.level is Level.note and "does not schedule sdb" in one.text


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
    assert one.level is Level.note and why in one.text
    assert one.text.count("md0") == 1


@pytest.mark.parametrize("file", ["raid_disks", "chunk_size", "dev-sda/slot", "component_size"])
def test_md_says_what_makes_no_sense(raid: Made, file: str) -> None:
    raid.write(f"/sys/block/md0/md/{file}", b"99999999999999999999999999\n")
    assert raid.found("md0").level is Level.note
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
    assert one.level is Level.note and why in one.text


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
    locked.write("/etc/udev/rules.d/99-io.rules", OTHER)
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
    done = subprocess.run(
        ["bash", "-c", f"dkms() {{ echo dkms $*; }}; mokutil() {{ echo mokutil $*; }}\n{command}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        f"dkms build --force streamsched/0.1.0 -k {RELEASE}",
        f"dkms install --force streamsched/0.1.0 -k {RELEASE}",
        f"mokutil --import {DKMS_KEY}",
    ]


def test_a_long_model_is_cut(host: Made) -> None:
    host.write("/sys/devices/sda/device/model", "A very long name of a disk\x1b[2J" * 3)
    lines_fit(host.report)


def test_json(host: Made) -> None:
    host.write("/etc/udev/rules.d/99-io.rules", OTHER)
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
    assert raid.found("md0").level is Level.note


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
        *(
            "raid5",
            "raid10",
            "linear",
            "258",
            "0",
            "1",
            "-1",
            "65536",
            "9" * 30,
            "9" * 5000,
            "mine",
        ),
        *("stream", "[stream] none", "0:0 2048:4600000", "include=mine\nelevator=bfq", "6.1"),
        *(OTHER, RULE, 'KERNEL=="[z-a]*[!", GOTO="x"\nLABEL="x"', "none [integrity]", "\\\n" * 3),
        *('mok_certificate="/a\0b"', "DISK_IOSCHED=bfq", "8:16 8:0", "0 9 striped 2 8 8:0 0 8:1 0"),
        *(
            "striped",
            "mine",
            f"streamsched/1, {RELEASE}, x: built",
            "\u0660\u0661",
            "in_sync,faulty",
        ),
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
    st.fixed_dictionaries(dict.fromkeys(("dkms", "modinfo", "mokutil", "dmsetup"), SAYS)),
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
            assert one.level is not Level.problem or one.command or one.advice


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
    command = [Path(sys.executable).parent / "streamsched", "doctor"]
    text, data = (
        subprocess.run([*command, *more], capture_output=True, text=True, timeout=120, check=False)
        for more in ([], ["--output", "json"])
    )
    problems = json.loads(data.stdout)["problems"]
    for done in (text, data):
        assert (done.returncode, done.stderr) == (int(problems > 0), "")
    assert all(len(line) <= 80 for line in text.stdout.splitlines())


@pytest.mark.e2e
@pytest.mark.parametrize("words", [["--output", "csv"], ["sda"]])
def test_wrong_usage(words: list[str]) -> None:
    command = [Path(sys.executable).parent / "streamsched", "doctor", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("streamsched: ") and done.stderr.count("\n") == 1
