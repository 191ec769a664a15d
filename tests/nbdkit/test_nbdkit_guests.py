# SPDX-License-Identifier: GPL-2.0-only
"""Kernels as clients of the nbdkit plugin: the nbd driver of Linux, and a guest of qemu."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbd_server import LONG_FORM, Server, image, needs_plugin
from rig_driver import need_rig
from said import ran

from streamsched.hosts import rig
from streamsched.hosts.nbdhost import find_plugin

pytestmark = needs_plugin

EXT4 = """
set -eu
cd /tmp
for i in 0 1 2 3; do truncate -s 64M disk$i; done
nbdkit --foreground --unix /tmp/socket --pidfile /tmp/ready PLUGIN PARAMETERS 2>$OUT/nbdkit &
server=$!
for i in $(seq 100); do [ -e /tmp/ready ] && break; sleep 0.1; done
nbd-client -unix /tmp/socket /dev/nbd0 -connections 4
mkfs.ext4 -q /dev/nbd0
mkdir mnt
mount /dev/nbd0 mnt
cp -r /usr/include/linux mnt/
fstrim mnt
sync
umount mnt
fsck.ext4 -fn /dev/nbd0
mount /dev/nbd0 mnt
diff -r /usr/include/linux mnt/linux
umount mnt
nbd-client -d /dev/nbd0
kill $server
wait $server
"""
MEMBERS = "file=disk0 file=disk1 file=disk2 file=disk3"
SERVERS = {
    "a file": "disk0",
    "a set, page cache": f"{MEMBERS} direct=no rotational=yes",
    "a set, direct": f"{MEMBERS} direct=yes chunk=16k queue-depth=2",
    "an emulated disk": "emulate=wd5000aaks size=256M",
}


@pytest.mark.parametrize("name", SERVERS)
def test_ext4_on_the_kernels_nbd_client(name: str) -> None:
    if not shutil.which("nbd-client"):
        pytest.skip("nbd-client is missing; tools/setup.sh nbdkit installs it")
    need_rig("base")
    script = EXT4.replace("PLUGIN", find_plugin()).replace("PARAMETERS", f"{SERVERS[name]} stats=-")
    show = [Path(sys.prefix), rig.source_root()]
    result = rig.run_in_rig(script, timeout_s=200, show=show)
    said = result.stdout + result.stderr + result.files.get("nbdkit", b"").decode()
    assert result.status == 0, said[-3000:]
    assert "non-contiguous" in result.stdout
    assert result.complaints() == []
    flushes = re.findall(r"^  flush: (\d+), (\d+) errors$", said, re.MULTILINE)
    assert flushes and all(int(nr) > 0 and int(errors) == 0 for nr, errors in flushes)


# Reads a sector by the BIOS, prints it on the serial port, writes it elsewhere
# on the disk and ends the machine.
BOOT_SECTOR = """
.code16
.globl _start
_start:
	xor %ax, %ax
	mov %ax, %ds
	mov %ax, %es
	mov $packet, %si
	mov $0x42, %ah
	int $0x13
	jc end
	mov $0x8000, %si
	mov $0x3f8, %dx
next:
	lodsb
	test %al, %al
	jz write
	out %al, %dx
	jmp next
write:
	movw $4096, target
	mov $packet, %si
	mov $0x80, %dl
	mov $0x4300, %ax
	int $0x13
end:
	mov $0xf4, %dx
	mov $1, %al
	out %al, %dx
	hlt
packet:
	.byte 16, 0, 1, 0
	.word 0x8000, 0
target:
	.quad 2048
	.org 510
	.word 0xaa55
"""


@pytest.mark.parametrize("members", [1, 3])
def test_a_guest_boots_from_the_export(tmp_path: Path, members: int) -> None:
    for program in ("qemu-system-x86_64", "as", "ld"):
        if not shutil.which(program):
            pytest.skip(f"{program} is missing")
    (tmp_path / "boot.s").write_text(BOOT_SECTOR)
    for command in (
        ["as", "--32", "-o", "boot.o", "boot.s"],
        ["ld", "-m", "elf_i386", "-Ttext=0x7c00", "--oformat=binary", "-o", "boot", "boot.o"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True)
    message = b"booted from the export\n"
    disks = [f"file={image(tmp_path / f'disk{i}', 16 << 20)}" for i in range(members)]
    with Server(tmp_path, *disks) as server:
        handle = server.connect()
        handle.pwrite((tmp_path / "boot").read_bytes(), 0)
        handle.pwrite(message.ljust(512, b"\0"), 2048 * 512)
        handle.flush()
        done = subprocess.run(
            [
                *("qemu-system-x86_64", "-accel", "tcg", "-nodefaults", "-display", "none"),
                *("-m", "64", "-serial", "stdio", "-no-reboot"),
                *("-device", "isa-debug-exit,iobase=0xf4"),
                *("-drive", f"file={server.uri},format=raw,if=virtio,cache=none"),
            ],
            capture_output=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert message in done.stdout, done.stdout + done.stderr
        assert done.returncode == 3
        assert bytes(handle.pread(512, 4096 * 512)).rstrip(b"\0") == message
        handle.shutdown()


# ---- a Linux guest with its root on the export ----

MODULES = ("virtio_pci", "virtio_blk", "ext4")
FROM_RAM = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs none /dev
sh /load
mount -t ext4 /dev/vda /new || poweroff -f
mount --move /dev /new/dev
exec switch_root /new /init
"""
FROM_DISK = """#!/bin/busybox sh
/bin/busybox --install -s /bin
exec >/dev/ttyS0 2>&1
mount -t proc none /proc
mount -o remount,rw /
cd /
md5sum -c sums >/tmp/said && echo "read: $(grep -c OK /tmp/said) files"
cp -r files copy && sync && echo 3 >/proc/sys/vm/drop_caches
diff -r files copy && echo "copied: $(ls copy | wc -l) files"
fstrim /
mount -o remount,ro / && echo "clean: $(uname -r)"
poweroff -f
"""


def stock_kernel() -> Path:
    """A stock kernel's tree, if kernel/qemu/fetch.sh has brought one; else a skipped test."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for suite in ("bookworm", "trixie", "sid"):
        tree = cache / "streamsched" / "stock" / suite
        if (tree / "root/bin/busybox").exists() and list((tree / "root/boot").glob("vmlinuz-*")):
            return tree.resolve()
    pytest.skip("there is no stock kernel; tools/setup.sh stock fetches some")


def run(*command: object, folder: Path) -> str:
    done = ran(*command, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def make_ram_disk(tree: Path, folder: Path) -> Path:
    """What finds the export and goes on from there."""
    ram = folder / "ram"
    for name in ("bin", "dev", "new"):
        (ram / name).mkdir(parents=True)
    shutil.copy(tree / "root/bin/busybox", ram / "bin")
    load = []
    shown = run(
        "modprobe",
        "-d",
        tree / "root",
        "-S",
        tree.name,
        "-a",
        "--show-depends",
        *MODULES,
        folder=folder,
    )
    for line in dict.fromkeys(shown.splitlines()):
        if line.startswith("insmod "):
            module = Path(line.split()[1])
            name = module.name.partition(".")[0] + ".ko"
            tool = {".xz": "xz", ".zst": "zstd"}.get(module.suffix, "cat")
            options = () if tool == "cat" else ("-dc",)
            with (ram / name).open("wb") as file:
                subprocess.run([tool, *options, module], stdout=file, check=True)
            load.append(f"insmod /{name}\n")
    (ram / "load").write_text("".join(load))
    (ram / "init").write_text(FROM_RAM)
    (ram / "init").chmod(0o755)
    run("sh", "-c", "cd ram && find . | cpio -o -H newc --quiet -R 0:0 >../ram.cpio", folder=folder)
    return folder / "ram.cpio"


def make_root(tree: Path, folder: Path, size: int) -> Path:
    """An ext4 of that size, with files of known content."""
    root = folder / "root"
    for name in ("bin", "dev", "proc", "tmp", "files"):
        (root / name).mkdir(parents=True)
    shutil.copy(tree / "root/bin/busybox", root / "bin")
    rnd = random.Random(1)
    sums = []
    for number in range(200):
        data = rnd.randbytes(rnd.randrange(1, 1 << rnd.randrange(1, 19)))
        (root / "files" / str(number)).write_bytes(data)
        sums.append(f"{hashlib.md5(data).hexdigest()}  files/{number}\n")
    (root / "sums").write_text("".join(sums))
    (root / "init").write_text(FROM_DISK)
    (root / "init").chmod(0o755)
    disk = image(folder / "root.ext4", size)
    run("mkfs.ext4", "-q", "-d", "root", disk, folder=folder)
    return disk


@pytest.mark.parametrize("where", ["three files", "an emulated disk"])
def test_a_linux_guest_lives_on_the_export(tmp_path: Path, where: str) -> None:
    if not LONG_FORM:
        pytest.skip("a guest takes a minute: make test-all boots one")
    tree = stock_kernel()
    for program in ("qemu-system-x86_64", "nbdcopy", "mkfs.ext4", "cpio", "modprobe"):
        if not shutil.which(program):
            pytest.skip(f"{program} is missing")
    size = 96 << 20
    ram, disk = make_ram_disk(tree, tmp_path), make_root(tree, tmp_path, size)
    parameters = ["emulate=wd5000aaks", f"size={size}"]
    if where == "three files":
        parameters = [f"file={image(tmp_path / f'disk{i}', size // 3)}" for i in range(3)]
    with Server(tmp_path, *parameters) as server:
        run("nbdcopy", disk, server.uri, folder=tmp_path)
        said = run(
            *("timeout", "600", "qemu-system-x86_64", "-accel", "tcg", "-cpu", "Nehalem"),
            *("-nodefaults", "-display", "none", "-m", "256", "-serial", "stdio", "-no-reboot"),
            *("-kernel", tree / "root/boot" / f"vmlinuz-{tree.name}", "-initrd", ram),
            *("-append", "console=ttyS0 panic=-1 quiet"),
            *("-drive", f"file={server.uri},format=raw,if=virtio,cache=none,discard=unmap"),
            folder=tmp_path,
        )
        assert "read: 200 files" in said, said
        assert "copied: 200 files" in said, said
        assert f"clean: {tree.name}" in said, said
        run("nbdcopy", server.uri, "after.ext4", folder=tmp_path)
    run("e2fsck", "-fn", "after.ext4", folder=tmp_path)
    (tmp_path / "after").mkdir()
    run("debugfs", "-R", "rdump /copy after", "after.ext4", folder=tmp_path)
    run("diff", "-r", "root/files", "after/copy", folder=tmp_path)
    assert " 0 failed" in server.text() and " 0 flushes" not in server.text().split("gone:")[0]
