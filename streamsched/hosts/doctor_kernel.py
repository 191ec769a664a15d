# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched doctor`: can the module be built, may it be loaded, and is it there?"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import streamsched
from streamsched.hosts.doctor_finding import Finding, note, ok, problem
from streamsched.hosts.machine import Machine

OLDEST = (6, 1)
BTF = "/sys/kernel/btf/vmlinux"
EFI = "/sys/firmware/efi"
SECURE_BOOT = f"{EFI}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
LOCKDOWN = "/sys/kernel/security/lockdown"
SIG_ENFORCE = "/sys/module/module/parameters/sig_enforce"
LOADED = "/sys/module/stream_iosched"
DKMS_KEY, UBUNTU_KEY = "/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der"
CONFIRM = "Boot, and confirm the key in the blue screen (Enroll MOK)."
THEN = CONFIRM.replace("Boot", "Then boot")
# "streamsched/0.1.0, 6.1.0-37-amd64, x86_64: installed"; DKMS 2 has a comma for the slash.
STATUS = re.compile(r"streamsched[/,]\s*([^,:\s]+)(?:,\s*([^,]+),\s*[^:]+)?:\s*(\w+)(.*)")
MODULE = re.compile(r"stream[-_]iosched\.ko(\.\w+)?")
MOK = re.compile(r"\s*(mok_certificate|dkms_tree)=[\"']?([^\"'#\s]+)")


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
        yield note("the version of the running kernel is not known")
    elif (int(found[1]), int(found[2])) < OLDEST:
        advice = "Install a kernel of version 6.1 or later, and boot it."
        yield problem(f"{release} is too old: the module needs 6.1 or later", advice=advice)
    else:
        yield ok(f"{release} (6.1 or later is needed)")


def check_build(machine: Machine, modules: dict[str, str]) -> Iterator[Finding]:
    """Type information, headers and tools. A module that is there does without them."""
    release = machine.release
    missing = note if release in modules else problem
    folder, debug = f"/lib/modules/{release}/build", "/usr/lib/debug"
    symbols = (f"{folder}/vmlinux", f"{debug}/boot/vmlinux-{release}")
    types = (BTF, *symbols, f"{debug}/lib/modules/{release}/vmlinux")
    if there := next(filter(machine.exists, types), None):
        yield ok(f"type information{' (BTF)' if there == BTF else ''}: {there}")
    else:
        advice = "Boot a kernel that was built with CONFIG_DEBUG_INFO_BTF=y, or install this "
        advice += "kernel's debugging symbols."
        yield missing(f"the kernel has no type information: there is no {BTF}", advice=advice)
    how = machine.install(f"linux-headers-{shlex.quote(release)}", "the kernel's headers")
    named = re.findall(r'"([^"]+)"', machine.text(f"{folder}/include/generated/utsrelease.h"))
    if not machine.exists(folder):
        yield missing(f"the headers of kernel {release} are missing ({folder})", **how)
    elif release not in named:
        has = f"belongs to kernel {named[0]}" if named else "has no include/generated/utsrelease.h"
        yield missing(f"{folder} {has}", **how)
    elif not machine.exists(f"{folder}/Module.symvers"):
        advice = "Build that kernel itself first: `make`, then `make modules`."
        yield missing(f"{folder} has no Module.symvers", advice=advice)
    else:
        yield ok(f"headers: {folder}")
    # The compiler that the kernel was built with, or another version of the same one.
    found = re.search(r"\(([\w.+-]*(gcc|clang)[\w.-]*)", machine.text("/proc/version"), re.ASCII)
    exact, family = (found[1], found[2]) if found else ("gcc", "gcc")
    short = exact[exact.index(family) :]
    how = machine.install(short, short)
    if there := next(filter(machine.has_program, (exact, short)), None):
        yield ok(f"compiler: {there}")
    elif machine.has_program(family):
        yield note(f"compiler: {family}, but the kernel was built with {short}", **how)
    else:
        yield missing(f"the compiler {short} is missing", **how)
    for program in ("make", "pahole"):  # pfunct comes with pahole
        if not machine.has_program(program):
            how = machine.install(program, program)
            yield missing(f"the program {program} is missing", **how)


# ---- Secure Boot ----


def check_signing(machine: Machine, modules: dict[str, str]) -> Iterator[Finding]:
    """Secure Boot, and the key that DKMS signs with."""
    read, secure_boot = machine.read(SECURE_BOOT), False
    if len(read.data) == 5:  # four bytes of attributes before the value
        secure_boot = read.data[4] == 1
        yield ok(f"Secure Boot is {'on' if secure_boot else 'off'}")
    elif not machine.exists(EFI):
        yield ok("no Secure Boot: not booted by EFI")
    elif read.denied:
        yield note("only root can see whether Secure Boot is on")
    elif read.there or machine.names(f"{EFI}/efivars"):
        yield note("the firmware does not say whether Secure Boot is on")
    else:
        yield note(f"whether Secure Boot is on is not known: nothing is in {EFI}/efivars")
    words = machine.text("/proc/cmdline").split()
    asked = {"module.sig_enforce", "module.sig_enforce=1"} & {*words}
    mode = re.search(r"\[(\w+)\]", machine.text(LOCKDOWN), re.ASCII)
    why = "no lockdown is seen"
    if asked or machine.text(SIG_ENFORCE) == "Y":
        why = "module.sig_enforce"
    elif mode:
        why = f"lockdown is {mode[1]}"
    elif secure_boot:
        why = f"likely, with Secure Boot; {LOCKDOWN} cannot be read"
    if why in ("no lockdown is seen", "lockdown is none"):
        yield ok(f"modules need no signature ({why})")
    else:
        yield ok(f"the kernel takes signed modules only ({why})")
        yield from _check_key(machine, modules.get(machine.release))


def _check_key(machine: Machine, file: str | None) -> Iterator[Finding]:
    key = _key(machine)
    enroll = f"mokutil --import {shlex.quote(key)}"
    if not machine.exists(key):
        how = f"{_rebuild(machine)} && {enroll}"
        yield problem(f"DKMS has no key to sign with ({key})", how, THEN)
        return
    done = machine.ask(["mokutil", "--test-key", key])
    said = f"{done.out}\n{done.err}" if done else ""
    unknown = f"whether the key {key} is enrolled is not known: mokutil"
    if done is None:
        yield note(f"{unknown} is missing", **machine.install("mokutil", "mokutil"))
    elif "enrollment request" in said:
        yield problem(f"the key {key} waits to be confirmed", advice=CONFIRM)
    elif "is not enrolled" in said:
        what = f"the key {key} that DKMS signs with is not enrolled"
        yield problem(what, enroll, THEN)
    elif "already enrolled" in said or "already in " in said:
        yield ok(f"the key {key} is enrolled")
    else:
        yield note(f"{unknown}: {done.complaint}")
    signer = machine.ask(["modinfo", "-F", "signer", file]) if file else None
    if signer and not signer.code and not signer.out.strip():
        yield problem(f"{file} is not signed", _rebuild(machine))


def _key(machine: Machine) -> str:
    """The certificate that DKMS signs with: the one of its configuration, or its own."""
    named = {"dkms_tree": "/var/lib/dkms", "kernelver": machine.release}
    conf = "/etc/dkms/framework.conf"
    drop_ins = [name for name in machine.names(f"{conf}.d") if name.endswith(".conf")]
    for file in (conf, *(f"{conf}.d/{name}" for name in drop_ins)):
        named |= {found[1]: found[2] for found in map(MOK.match, machine.lines(file)) if found}
    own = f"{named['dkms_tree']}/mok.pub"
    usual = UBUNTU_KEY if machine.exists(UBUNTU_KEY) and not machine.exists(own) else own
    value = named.get("mok_certificate", usual)
    return re.sub(r"\$\{?(dkms_tree|kernelver)\}?", lambda name: named[name[1]], value)


# ---- the module ----


def _dkms_status(machine: Machine) -> list[tuple[str, str, str, str]] | str | None:
    """Version, kernel, state and a remark of each; why DKMS says nothing; None: there is none."""
    done = machine.ask(["dkms", "status"])
    if done is None:
        return None
    lines = filter(None, map(STATUS.match, done.out.splitlines()))
    found = [(one[1], (one[2] or "").strip(), one[3], one[4]) for one in lines]
    return done.complaint if done.code and not found else found


def _dkms(machine: Machine, action: str) -> str:
    status = _dkms_status(machine)
    version = status[-1][0] if isinstance(status, list) and status else streamsched.__version__
    return (
        f"dkms {action} {shlex.quote(f'streamsched/{version}')} -k {shlex.quote(machine.release)}"
    )


def _rebuild(machine: Machine) -> str:
    """Signs, too; DKMS makes a key when there is none."""
    return f"{_dkms(machine, 'build --force')} && {_dkms(machine, 'install --force')}"


def check_dkms(machine: Machine, modules: dict[str, str]) -> Iterator[Finding]:
    """Whether there is a module for the running kernel, of DKMS or made by hand."""
    release, status = machine.release, _dkms_status(machine)
    file = modules.get(release)
    if isinstance(status, str):
        yield note(f"`dkms status` says nothing: {status}")
        status = []
    states = {one[2]: one for one in status or [] if one[1] == release}
    others = sorted({one[1] for one in status or [] if one[2] == "installed"} - {""})
    if not status and file:
        yield ok(f"{file}, not of DKMS")
    elif not status:
        what = "DKMS is not installed" if status is None else "DKMS has no streamsched"
        advice = "Install the package streamsched-dkms as docs/INSTALL.md says."
        yield problem(f"{what}, and no module is there", advice=advice)
    elif "installed" in states and file:
        text = f"DKMS has installed {states['installed'][0]} for {release}"
        if "Diff" in states["installed"][3]:
            text += ", but the installed file is not the one that it built"
            yield problem(text, _dkms(machine, "install --force"))
        else:
            yield ok(text)
    elif "installed" in states:
        what = f"DKMS says it is installed for {release}, but the file is missing"
        yield problem(what, _rebuild(machine))
    elif any(one[2] == "broken" for one in status):
        how = machine.install("--reinstall streamsched-dkms", "the package again")
        yield problem("DKMS calls it broken: its sources are gone", **how)
    elif "built" in states:
        what = f"the module for {release} is built, but not installed"
        yield problem(what, _dkms(machine, "install"))
    else:
        but = f", but one for {', '.join(others)}" if others else ""
        yield problem(f"there is no module for {release}{but}", _dkms(machine, "install"))


def check_loaded(machine: Machine, modules: dict[str, str]) -> Iterator[Finding]:
    """Whether the module is loaded, and is the one that is installed."""
    release, file = machine.release, modules.get(machine.release)

    def modinfo(field: str) -> str:
        done = machine.ask(["modinfo", "-F", field, file]) if file else None
        return next(iter(done.out.split()), "") if done and not done.code else ""

    built_for = modinfo("vermagic")
    if built_for and built_for != release:
        what = f"{file} was built for kernel {built_for}, not for {release}"
        yield problem(what, _rebuild(machine))
    if machine.exists(LOADED):
        loaded, version = (machine.text(f"{LOADED}/{one}") for one in ("srcversion", "version"))
        installed = modinfo("srcversion") if loaded else ""
        if installed and installed != loaded:
            text = f"the loaded module is another build ({loaded}) than the installed one"
            advice = "The next boot loads the installed one."
            yield note(f"{text} ({installed})", advice=advice)
        else:
            yield ok(f"stream-iosched {version}{' ' if version else ''}is loaded")
    elif machine.exists("/proc/version") and not machine.exists("/proc/modules"):
        advice = "Boot a kernel that was built with CONFIG_MODULES=y."
        yield problem("this kernel has no loadable modules", advice=advice)
    elif machine.text("/proc/sys/kernel/modules_disabled") == "1":
        advice = "Boot without `nomodule` and without the sysctl kernel.modules_disabled=1."
        what = "the module is not loaded, and this kernel loads no modules any more"
        yield problem(what, advice=advice)
    elif file:
        text = "stream-iosched is not loaded; it is when `stream` is first chosen for a disk"
        yield note(text, "modprobe stream-iosched")
