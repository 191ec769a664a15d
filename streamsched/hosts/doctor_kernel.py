# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched doctor`: can the module be built, may it be loaded, and is it there?"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterator

from streamsched import __version__
from streamsched.hosts.doctor_finding import Finding, Level
from streamsched.hosts.machine import Machine

OLDEST = (6, 1)
EFI = "/sys/firmware/efi"
SECURE_BOOT = f"{EFI}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
LOCKDOWN = "/sys/kernel/security/lockdown"
SIG_ENFORCE = "/sys/module/module/parameters/sig_enforce"
LOADED = "/sys/module/stream_iosched"
DKMS_KEY, UBUNTU_KEY = "/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der"
CONFIRM = "Then boot, and confirm the key in the blue screen (Enroll MOK)."
GET_PACKAGE = "Install the package streamsched-dkms as docs/INSTALL.md says."
# "streamsched/0.1.0, 6.1.0-37-amd64, x86_64: installed"; DKMS 2 has a comma for the slash.
STATUS = re.compile(r"streamsched[/,]\s*([^,:\s]+)(?:,\s*([^,]+),\s*[^:]+)?:\s*(\w+)(.*)")
MODULE = re.compile(r"stream[-_]iosched\.ko(\.\w+)?")


def modules_of(machine: Machine) -> dict[str, str]:
    """The file of the module for each kernel that has it."""
    found: dict[str, str] = {}
    for release in machine.names("/lib/modules"):
        for file in machine.files_below(f"/lib/modules/{release}"):
            if MODULE.fullmatch(file.rpartition("/")[2]):
                found.setdefault(release, file)
    return found


# ---- the kernel, and what a module is built with ----


def check_kernel(machine: Machine) -> Iterator[Finding]:
    """The running kernel's version."""
    release = machine.release
    found = re.match(r"(\d{1,4})\.(\d{1,4})", release, re.ASCII)
    if not found:
        yield Finding("kernel", Level.note, "the version of the running kernel is not known")
    elif (int(found[1]), int(found[2])) < OLDEST:
        yield Finding(
            "kernel",
            Level.problem,
            f"{release} is too old: the module needs 6.1 or later",
            advice="Install a kernel of version 6.1 or later, and boot it.",
        )
    else:
        yield Finding("kernel", Level.ok, f"{release} (6.1 or later is needed)")


def check_build(machine: Machine, modules: dict[str, str]) -> Iterator[Finding]:
    """Type information, headers and tools. A module that is there does without them."""
    missing = Level.note if machine.release in modules else Level.problem
    yield _types(machine, missing)
    yield _headers(machine, missing)
    yield _compiler(machine, missing)
    for program, package in (("make", "make"), ("pahole", "pahole"), ("pfunct", "pahole")):
        if not machine.has_program(program):
            how = machine.install(package, program)
            yield Finding("build", missing, f"the program {program} is missing", **how)


def _types(machine: Machine, missing: Level) -> Finding:
    release = machine.release
    if machine.exists("/sys/kernel/btf/vmlinux"):
        return Finding("build", Level.ok, "type information (BTF): /sys/kernel/btf/vmlinux")
    for symbols in (
        f"/lib/modules/{release}/build/vmlinux",
        f"/usr/lib/debug/boot/vmlinux-{release}",
        f"/usr/lib/debug/lib/modules/{release}/vmlinux",
    ):
        if machine.exists(symbols):
            return Finding("build", Level.ok, f"type information: {symbols}")
    return Finding(
        "build",
        missing,
        "the kernel has no type information: there is no /sys/kernel/btf/vmlinux",
        advice="Boot a kernel that was built with CONFIG_DEBUG_INFO_BTF=y, "
        "or install this kernel's debugging symbols.",
    )


def _headers(machine: Machine, missing: Level) -> Finding:
    release = machine.release
    folder = f"/lib/modules/{release}/build"
    how = machine.install(f"linux-headers-{shlex.quote(release)}", "the kernel's headers")
    named = machine.text(f"{folder}/include/generated/utsrelease.h")
    if not machine.exists(folder):
        return Finding(
            "build", missing, f"the headers of kernel {release} are missing ({folder})", **how
        )
    if f'"{release}"' not in named:
        found = re.search(r'"([^"]+)"', named)
        what = f"belongs to kernel {found[1]}" if found else "has no include/generated/utsrelease.h"
        return Finding("build", missing, f"{folder} {what}", **how)
    if not machine.exists(f"{folder}/Module.symvers"):
        return Finding(
            "build",
            missing,
            f"{folder} has no Module.symvers",
            advice="Build that kernel itself first: `make`, then `make modules`.",
        )
    return Finding("build", Level.ok, f"headers: {folder}")


def _compiler(machine: Machine, missing: Level) -> Finding:
    """The compiler that the kernel was built with, or another version of the same one."""
    found = re.search(r"\(([\w.+-]*(gcc|clang)[\w.-]*)", machine.text("/proc/version"), re.ASCII)
    exact, family = (found[1], found[2]) if found else ("gcc", "gcc")
    short = exact[exact.index(family) :]
    for name in (exact, short):
        if machine.has_program(name):
            return Finding("build", Level.ok, f"compiler: {name}")
    if machine.has_program(family):
        return Finding(
            "build",
            Level.note,
            f"compiler: {family}, but the kernel was built with {short}",
            **machine.install(short, short),
        )
    how = machine.install(short, short)
    return Finding("build", missing, f"the compiler {short} is missing", **how)


# ---- Secure Boot ----


@dataclasses.dataclass(frozen=True)
class Signing:
    """Whether the kernel takes signed modules alone, and where that was seen."""

    enforced: bool
    why: str


def _secure_boot(machine: Machine) -> tuple[bool | None, Finding]:
    read = machine.read(SECURE_BOOT)
    if len(read.data) == 5:  # four bytes of attributes before the value
        on = read.data[4] == 1
        return on, Finding("secure boot", Level.ok, f"Secure Boot is {'on' if on else 'off'}")
    if not machine.exists(EFI):
        return False, Finding("secure boot", Level.ok, "no Secure Boot: not booted by EFI")
    if read.denied:
        text = "only root can see whether Secure Boot is on"
    elif read.there or machine.names(f"{EFI}/efivars"):
        text = "the firmware does not say whether Secure Boot is on"
    else:
        text = f"whether Secure Boot is on is not known: nothing is in {EFI}/efivars"
    return None, Finding("secure boot", Level.note, text)


def _signing(machine: Machine, secure_boot: bool | None) -> Signing:
    words = machine.text("/proc/cmdline").split()
    if machine.text(SIG_ENFORCE) == "Y" or {"module.sig_enforce", "module.sig_enforce=1"} & {
        *words
    }:
        return Signing(True, "module.sig_enforce")
    mode = re.search(r"\[(\w+)\]", machine.text(LOCKDOWN), re.ASCII)
    if mode:
        return Signing(mode[1] != "none", f"lockdown is {mode[1]}")
    if secure_boot:
        return Signing(True, f"likely, with Secure Boot; {LOCKDOWN} cannot be read")
    return Signing(False, "no lockdown is seen")


def check_signing(machine: Machine, modules: dict[str, str]) -> Iterator[Finding]:
    """Secure Boot, and the key that DKMS signs with."""
    secure_boot, finding = _secure_boot(machine)
    yield finding
    signing = _signing(machine, secure_boot)
    if not signing.enforced:
        yield Finding("secure boot", Level.ok, f"modules need no signature ({signing.why})")
        return
    yield Finding("secure boot", Level.ok, f"the kernel takes signed modules only ({signing.why})")
    file = modules.get(machine.release)
    key = _key(machine)
    if not machine.exists(key):
        yield Finding(
            "secure boot",
            Level.problem,
            f"DKMS has no key to sign with ({key})",
            f"{_rebuild(machine)} && mokutil --import {shlex.quote(key)}",
            CONFIRM,
        )
        return
    yield _enrolled(machine, key)
    signer = machine.ask(["modinfo", "-F", "signer", file]) if file else None
    if signer and not signer.code and not signer.out.strip():
        yield Finding(
            "secure boot", Level.problem, f"{file} is not signed", command=_rebuild(machine)
        )


def _key(machine: Machine) -> str:
    """The certificate that DKMS signs with: the one of its configuration, or its own."""
    drop_ins = machine.names("/etc/dkms/framework.conf.d")
    named: dict[str, str] = {"dkms_tree": "/var/lib/dkms", "kernelver": machine.release}
    for file in (
        "/etc/dkms/framework.conf",
        *(f"/etc/dkms/framework.conf.d/{name}" for name in drop_ins if name.endswith(".conf")),
    ):
        for line in machine.lines(file):
            found = re.match(r"\s*(mok_certificate|dkms_tree)=[\"']?([^\"'#\s]+)", line)
            if found:
                named[found[1]] = found[2]
    if "mok_certificate" in named:
        return re.sub(
            r"\$\{?(dkms_tree|kernelver)\}?", lambda name: named[name[1]], named["mok_certificate"]
        )
    own = f"{named['dkms_tree']}/mok.pub"
    return UBUNTU_KEY if machine.exists(UBUNTU_KEY) and not machine.exists(own) else own


def _enrolled(machine: Machine, key: str) -> Finding:
    done = machine.ask(["mokutil", "--test-key", key])
    if done is None:
        return Finding(
            "secure boot",
            Level.note,
            f"whether the key {key} is enrolled is not known: mokutil is missing",
            **machine.install("mokutil", "mokutil"),
        )
    said = f"{done.out}\n{done.err}"
    if "enrollment request" in said:
        return Finding(
            "secure boot",
            Level.problem,
            f"the key {key} waits to be confirmed",
            advice="Boot, and confirm the key in the blue screen (Enroll MOK).",
        )
    if "is not enrolled" in said:
        return Finding(
            "secure boot",
            Level.problem,
            f"the key {key} that DKMS signs with is not enrolled",
            f"mokutil --import {shlex.quote(key)}",
            CONFIRM,
        )
    if "already enrolled" in said or "already in " in said:
        return Finding("secure boot", Level.ok, f"the key {key} is enrolled")
    return Finding(
        "secure boot",
        Level.note,
        f"whether the key {key} is enrolled is not known: mokutil: {done.complaint}",
    )


# ---- the module ----


@dataclasses.dataclass(frozen=True)
class Built:
    """A line of `dkms status`."""

    version: str
    release: str
    state: str
    remark: str


def _dkms_status(machine: Machine) -> list[Built] | str | None:
    """What DKMS says of the package; why it says nothing; None: there is no DKMS."""
    done = machine.ask(["dkms", "status"])
    if done is None:
        return None
    found = [
        Built(line[1], (line[2] or "").strip(), line[3], line[4].strip())
        for line in map(STATUS.match, done.out.splitlines())
        if line
    ]
    return done.complaint if done.code and not found else found


def _version(machine: Machine) -> str:
    status = _dkms_status(machine)
    if isinstance(status, list) and status:
        return status[-1].version
    return __version__


def _dkms(machine: Machine, action: str) -> str:
    name = shlex.quote(f"streamsched/{_version(machine)}")
    return f"dkms {action} {name} -k {shlex.quote(machine.release)}"


def _rebuild(machine: Machine) -> str:
    """Signs, too; DKMS makes a key when there is none."""
    return f"{_dkms(machine, 'build --force')} && {_dkms(machine, 'install --force')}"


def check_dkms(machine: Machine, modules: dict[str, str]) -> Iterator[Finding]:
    """Whether there is a module for the running kernel, of DKMS or made by hand."""
    release, status = machine.release, _dkms_status(machine)
    file = modules.get(release)
    if isinstance(status, str):
        yield Finding("module", Level.note, f"`dkms status` says nothing: {status}")
        status = []
    if not status:
        if file:
            yield Finding("module", Level.ok, f"{file}, not of DKMS")
            return
        what = "DKMS is not installed" if status is None else "DKMS has no streamsched"
        what += ", and no module is there"
        yield Finding("module", Level.problem, what, advice=GET_PACKAGE)
        return
    ours = [one for one in status if one.release == release]
    states = {one.state: one for one in ours}
    if "installed" in states and file:
        one = states["installed"]
        text = f"DKMS has installed {one.version} for {release}"
        if "Diff" in one.remark:
            yield Finding(
                "module",
                Level.problem,
                f"{text}, but the installed file is not the one that it built",
                command=_dkms(machine, "install --force"),
            )
        else:
            yield Finding("module", Level.ok, text)
    elif "installed" in states:
        yield Finding(
            "module",
            Level.problem,
            f"DKMS says it is installed for {release}, but the file is missing",
            command=_rebuild(machine),
        )
    elif any(one.state == "broken" for one in status):
        yield Finding(
            "module",
            Level.problem,
            "DKMS calls it broken: its sources are gone",
            **machine.install("--reinstall streamsched-dkms", "the package again"),
        )
    else:
        others = sorted({one.release for one in status if one.state == "installed"} - {""})
        text = f"there is no module for {release}"
        if "built" in states:
            text = f"the module for {release} is built, but not installed"
        elif others:
            text += f", but one for {', '.join(others)}"
        command = _dkms(machine, "install")
        yield Finding("module", Level.problem, text, command)


def check_loaded(machine: Machine, modules: dict[str, str]) -> Iterator[Finding]:
    """Whether the module is loaded, and is the one that is installed."""
    release, file = machine.release, modules.get(machine.release)
    if file:
        magic = machine.ask(["modinfo", "-F", "vermagic", file])
        words = magic.out.split() if magic and not magic.code else []
        if words and words[0] != release:
            yield Finding(
                "module",
                Level.problem,
                f"{file} was built for kernel {words[0]}, not for {release}",
                command=_rebuild(machine),
            )
    if not machine.exists(LOADED):
        yield from _not_loaded(machine, file)
        return
    loaded = machine.text(f"{LOADED}/srcversion")
    done = machine.ask(["modinfo", "-F", "srcversion", file]) if file and loaded else None
    installed = done.out.strip() if done and not done.code else ""
    if installed and installed != loaded:
        yield Finding(
            "module",
            Level.note,
            f"the loaded module is another build ({loaded}) than the installed one ({installed})",
            advice="The next boot loads the installed one.",
        )
    else:
        version = machine.text(f"{LOADED}/version")
        text = f"stream-iosched {version} is loaded" if version else "stream-iosched is loaded"
        yield Finding("module", Level.ok, text)


def _not_loaded(machine: Machine, file: str | None) -> Iterator[Finding]:
    if machine.exists("/proc/version") and not machine.exists("/proc/modules"):
        yield Finding(
            "module",
            Level.problem,
            "this kernel has no loadable modules",
            advice="Boot a kernel that was built with CONFIG_MODULES=y.",
        )
    elif machine.text("/proc/sys/kernel/modules_disabled") == "1":
        yield Finding(
            "module",
            Level.problem,
            "the module is not loaded, and this kernel loads no modules any more",
            advice="Boot without `nomodule` and without the sysctl kernel.modules_disabled=1.",
        )
    elif file:
        yield Finding(
            "module",
            Level.note,
            "stream-iosched is not loaded; it is when `stream` is first chosen for a disk",
            "modprobe stream-iosched",
        )
