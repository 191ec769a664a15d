# SPDX-License-Identifier: GPL-2.0-only
"""Kernels as clients of the nbdkit plugin: the nbd driver of Linux, and a guest of qemu."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from nbd_server import Server, image, needs_plugin

from streamsched import rig
from streamsched.errors import StreamschedError
from streamsched.nbdhost import find_plugin

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
    try:
        rig.kernel_folder()
    except StreamschedError as error:
        pytest.skip(str(error))
    script = EXT4.replace("PLUGIN", find_plugin()).replace("PARAMETERS", SERVERS[name])
    result = rig.run_in_rig(script, timeout_s=200)
    said = result.stdout + result.stderr + result.files.get("nbdkit", b"").decode()
    assert result.status == 0, said[-3000:]
    assert "non-contiguous" in result.stdout
    assert result.complaints() == []
    assert " 0 failed" in said and " 0 flushes" not in said.split("gone:")[0]


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
