# SPDX-License-Identifier: GPL-2.0-only
"""A made-up machine for doctor and enable: its files, and what its programs say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from said import ROOT
from udev_rules import alone

from streamsched.hosts import doctor
from streamsched.hosts.doctor_finding import Finding, Level
from streamsched.hosts.doctor_kernel import LOCKDOWN, SECURE_BOOT
from streamsched.hosts.machine import Done, Machine, run_program

RELEASE = "6.1.0-37-amd64"
MODULES = f"/lib/modules/{RELEASE}"
MODULE = f"{MODULES}/updates/dkms/stream-iosched.ko"
RULES = "60-stream-iosched.rules"
RULE = (ROOT / "kernel/packaging/udev" / RULES).read_text()
INSTALLED = f"streamsched/0.1.0, {RELEASE}, x86_64: installed\n"
GENERIC = "0:0 2048:4600000 78140:5100000 781407:5600000"
LEARNED = "0:0 1:1200000 2:1200000 4:1300000"


# The real udevadm sees a made-up machine: its disks, and of rules of udev its own alone.
ENTER = """
for one in sys run etc/udev/rules.d usr/lib/udev/rules.d; do
    mkdir -p "$0/$one"
    mount --bind "$0/$one" "/$one"
done
exec "$@"
"""


def real_udev(root: Path, command: Sequence[str]) -> Done | None:
    """What the real udev says, as root."""
    cmdline = (root / "proc/cmdline").read_text().strip()
    env = ["env", "SYSTEMD_DEVICE_VERIFY_SYSFS=0", f"SYSTEMD_PROC_CMDLINE={cmdline}"]
    return run_program([*env, "unshare", "--mount", "sh", "-ec", ENTER, str(root), *command])


def ask_the_real_udev(made: Made) -> None:
    """From now on; or the test is skipped."""
    made.real = True
    done = real_udev(made.root, ["udevadm", "--version"])
    if done is None or done.code:
        pytest.skip(f"udevadm cannot see a made-up machine: {done.complaint if done else ''}")


class Made:
    """A machine below a folder; programs say what @programs has."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.programs: dict[str, Done | None] = {}
        self.asked: list[list[str]] = []
        self.real = False  # does it have the real udevadm?
        self.machine = Machine(root, self.run)  # for its files; it keeps what programs said

    def run(self, command: Sequence[str]) -> Done | None:
        whole = list(command)
        if "udevadm" in whole:  # without what confines it
            command = whole[whole.index("udevadm") :]
        self.asked.append(list(command))
        if self.real and command[:2] == ["udevadm", "test"]:
            return real_udev(self.root, whole)
        if command[:2] == ["udevadm", "info"]:
            return Done(0, self.known(command[-1].rpartition("/")[2]))
        for asked in (" ".join(command), command[0]):
            if asked in self.programs:
                return self.programs[asked]
        return None

    def known(self, name: str) -> str:
        """The properties of a disk that udev has kept."""
        data = self.machine.text(f"/run/udev/data/b{self.machine.text(f'/sys/block/{name}/dev')}")
        kept = [line[2:] for line in data.splitlines() if line.startswith("E:")]
        return "\n".join(["DEVTYPE=disk", *kept])

    def write(self, name: str, text: str | bytes = "") -> None:
        path = self.machine.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def remove(self, name: str) -> None:
        self.machine.path(name).unlink()

    def disk(
        self, name: str, scheduler: str = "none [mq-deadline]", number: int = 0, **files: str
    ) -> None:
        """A rotating SATA disk of 4 TB, but for @files of its queue."""
        folder = f"/sys/devices/{name}"
        queue = {"rotational": "1", "zoned": "none", "nr_requests": "64"} | files
        for file, text in (queue | {"scheduler": scheduler}).items():
            self.write(f"{folder}/queue/{file}", f"{text}\n")
        uevent = {"MAJOR": 8, "MINOR": number, "DEVNAME": name, "DEVTYPE": "disk"}
        lines = [f"{key}={value}\n" for key, value in uevent.items()]
        self.write(f"{folder}/uevent", "".join(lines))
        self.machine.path(f"{folder}/subsystem").symlink_to("../../class/block")
        self.write(f"{folder}/size", "7814037168\n")
        self.write(f"{folder}/dev", f"8:{number}\n")
        self.write(f"{folder}/device/model", "ST4000NM0035-1V4\n")
        self.write(f"{folder}/device/queue_depth", "32\n")
        for link in (f"block/{name}", f"class/block/{name}", f"dev/block/8:{number}"):
            path = self.machine.path(f"/sys/{link}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(os.path.relpath(self.machine.path(folder), path.parent))

    def stream(self, name: str, points: str = LEARNED, number: int = 0, **files: str) -> None:
        """A disk under stream."""
        self.disk(name, "none mq-deadline [stream]", number, **files)
        self.write(f"/sys/devices/{name}/queue/iosched/service_curve", f"{points}\n")

    def md(self, level: str = "raid0", members: Sequence[str] = ("sda", "sdb")) -> None:
        folder = "/sys/block/md0"
        values = {
            "level": level,
            "array_state": "clean",
            "reshape_position": "none",
            "raid_disks": str(len(members)),
            "layout": "0",
            "chunk_size": "65536",
            "component_size": "0",
        }
        for file, text in values.items():
            self.write(f"{folder}/md/{file}", f"{text}\n")
        self.write(f"{folder}/size", "100000\n")
        for slot, name in enumerate(members):
            one = f"{folder}/md/dev-{name}"
            parts = {"slot": str(slot), "state": "in_sync", "size": "1000000", "offset": "2048"}
            for file, text in parts.items():
                self.write(f"{one}/{file}", f"{text}\n")
            block = self.machine.path(f"{one}/block")
            block.symlink_to(
                os.path.relpath(self.machine.path(f"/sys/devices/{name}"), block.parent)
            )

    @property
    def report(self) -> doctor.Report:
        return doctor.examine(Machine(self.root, self.run))

    def found(self, text: str) -> Finding:
        """The only finding with @text."""
        every = self.report.findings
        (one,) = [finding for finding in every if text in finding.text]
        return one

    @property
    def problems(self) -> list[str]:
        every = self.report.findings
        return [finding.text for finding in every if finding.level is Level.problem]


def good(root: Path) -> Made:
    """Debian 12 with the package installed, the module loaded, and one disk under stream."""
    made = Made(root)
    made.write("/proc/sys/kernel/osrelease", f"{RELEASE}\n")
    made.write("/proc/sys/kernel/modules_disabled", "0\n")
    made.write("/proc/modules")
    made.write("/proc/version", f"Linux version {RELEASE} (a@b) (gcc-12 (Debian 12.2.0) 12.2.0) #1")
    made.write("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro quiet")
    made.write("/sys/kernel/btf/vmlinux", b"\x9f\xeb")
    made.write(f"{MODULES}/build/include/generated/utsrelease.h", f'#define X "{RELEASE}"\n')
    made.write(f"{MODULES}/build/Module.symvers")
    made.write(MODULE)
    for program in ("apt-get", "gcc-12", "make", "pahole", "pfunct"):
        made.write(f"/usr/bin/{program}")
    made.write(SECURE_BOOT, b"\x06\0\0\0\0")
    made.write(LOCKDOWN, "[none] integrity confidentiality\n")
    made.write("/sys/module/stream_iosched/srcversion", "ABC\n")
    made.write("/etc/udev/rules.d/60-stream-iosched.rules", RULE)
    made.programs = {
        "dkms status": Done(0, "zfs/2.1.11, 6.1.0-36-amd64, x86_64: installed\n" + INSTALLED),
        f"modinfo -F vermagic {MODULE}": Done(0, f"{RELEASE} SMP preempt mod_unload modversions\n"),
        f"modinfo -F srcversion {MODULE}": Done(0, "ABC\n"),
        f"modinfo -F signer {MODULE}": Done(0, "DKMS module signing key\n"),
    }
    for action in ("add", "change"):
        asked = f"udevadm test --action={action} /sys/block/sda"
        made.programs[asked] = Done(0, alone(action))
    made.stream("sda")
    return made
