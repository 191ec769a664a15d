# SPDX-License-Identifier: GPL-2.0-only
"""The same bytes under several names: a file, its loop devices, their partitions, volumes."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbd_server import Server, connected, detach, image, needs_plugin, refused
from nbd_server import loop_device as loop
from said import ran

pytestmark = [
    needs_plugin,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices"),
]

MIB = 1 << 20
IN_USE = "in use by another server or program (it holds a lock)"


def call(*command: object) -> str:
    done = ran(*command)
    if done.returncode:
        pytest.skip(f"not possible here: {done.stderr.strip()}")
    return done.stdout.strip()


def mapped(folder: Path, device: str, below: str) -> tuple[str, ...]:
    """A wrapper for whom @device is, as sysfs tells it, a volume somewhere on @below.

    The kernels that tests run on need not have the device mapper.
    """
    name, number = Path(device).name, Path(below).stat().st_rdev
    slave = folder / f"slaves-{name}" / Path(below).name
    slave.mkdir(parents=True, exist_ok=True)
    (slave / "dev").write_text(f"{os.major(number)}:{os.minor(number)}\n")
    script = f'mount --bind {slave.parent} /sys/block/{name}/slaves && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", script, "sh")


BLKPG, ADD, DELETE = 0x1269, 1, 2  # <linux/blkpg.h>


def change_partition(device: str, change: int, number: int, start: int = 0, nr: int = 0) -> None:
    """As addpart(8) and delpart(8), which Debian 13 does not have; sectors of 512 bytes."""
    partition = ctypes.create_string_buffer(
        struct.pack("=qqi64s64s4x", start * 512, nr * 512, number, b"", b"")
    )
    argument = struct.pack(
        "@iiiP", change, 0, ctypes.sizeof(partition), ctypes.addressof(partition)
    )
    with Path(device).open("rb") as file:
        fcntl.ioctl(file, BLKPG, argument)


@contextlib.contextmanager
def partitions(file: Path) -> Iterator[tuple[str, str, str]]:
    """A loop device and its two partitions, each of 4 MiB."""
    with loop(file) as device:
        try:
            for number, start in ((1, 2048), (2, 10240)):
                change_partition(device, ADD, number, start, 8192)
            parts = (f"{device}p1", f"{device}p2")
            if not all(map(os.path.exists, parts)):
                pytest.skip("a loop device's partitions cannot be had here")
            yield (device, *parts)
        finally:
            for number in (1, 2):
                with contextlib.suppress(OSError):  # where it was not made
                    change_partition(device, DELETE, number)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return image(tmp_path / "disk", 16 * MIB)


def refused_both_ways(
    a: object, b: object, *parameters: str, wrapper: tuple[str, ...] = ()
) -> None:
    """As members of one set."""
    for one, other in ((a, b), (b, a)):
        files = (f"file={one}", f"file={other}", "truncate=yes")
        said = refused(*files, *parameters, wrapper=wrapper)
        assert f"{other}: holds bytes of {one}, which would be written over" in said


def test_members_of_one_set(tmp_path: Path, disk: Path) -> None:
    link, node = tmp_path / "link", tmp_path / "node"
    link.hardlink_to(disk)
    with loop(disk) as device:
        for file in (disk, link):
            refused_both_ways(file, device)
            refused_both_ways(file, device, "readonly=yes")
        with loop(disk) as again, loop(device) as upon:
            refused_both_ways(device, again)
            refused_both_ways(disk, upon)
            refused_both_ways(device, upon)
        os.mknod(node, 0o60600, Path(device).stat().st_rdev)
        refused_both_ways(device, node, "readonly=yes")


def test_volumes(tmp_path: Path, disk: Path) -> None:
    other = image(tmp_path / "other", 16 * MIB)
    with loop(disk) as device, loop(other) as a:
        wrapper = mapped(tmp_path, a, device)
        refused_both_ways(disk, a, wrapper=wrapper)
        refused_both_ways(device, a, wrapper=wrapper)
        with Server(tmp_path / "s", str(disk), "readonly=yes"):
            pass
        # The other server first: before it is gone the loop device cannot be detached. But below a
        # root directory of its own, as in a container, another mount namespace has other names for
        # files; then that server could not lock this one.
        backing = call(*wrapper, "cat", f"/sys/block/{Path(device).name}/loop/backing_file")
        reason = IN_USE if backing == str(disk) else f"in use by this machine as {device}"
        with Server(tmp_path / "s", a, wrapper=wrapper):
            assert reason in refused(str(disk))
            # Another volume of the same device may have other bytes of it.
            third = image(tmp_path / "third", 16 * MIB)
            with loop(third) as b, Server(tmp_path / "t", b, wrapper=mapped(tmp_path, b, device)):
                pass


def test_partitions(tmp_path: Path, disk: Path) -> None:
    with partitions(disk) as (device, first, second):
        for part in (first, second):
            refused_both_ways(device, part, "readonly=yes")
            refused_both_ways(disk, part, "readonly=yes")
        with Server(tmp_path, f"file={first}", f"file={second}").serving() as (_, handle):
            handle.pwrite(b"x" * MIB, 0)
        with Server(tmp_path / "a", first), Server(tmp_path / "b", second):
            assert IN_USE in refused(str(disk))


def test_loop_devices_that_share_nothing(disk: Path) -> None:
    """Two halves of one file may be a set; two that overlap may not."""
    half = f"--sizelimit={8 * MIB}"
    with loop(disk, half) as first, loop(disk, f"--offset={8 * MIB}") as second:
        with Server(disk.parent, f"file={first}", f"file={second}").serving() as (_, handle):
            handle.pwrite(b"x" * MIB, 0)
        with Server(disk.parent / "a", first), Server(disk.parent / "b", second):
            pass
        with loop(disk, f"--offset={7 * MIB}") as third:
            refused_both_ways(first, third)


def test_two_servers(tmp_path: Path, disk: Path) -> None:
    """One on the file, one on its loop device, in both orders."""
    with loop(disk) as device:
        below = f"{device}: lies on {disk}, which is {IN_USE}"
        with Server(tmp_path / "a", device):
            for mode in ("no", "yes"):
                assert IN_USE in refused(str(disk), f"readonly={mode}")
            with loop(disk) as other:
                assert f"{other}: lies on {disk}, which is {IN_USE}" in refused(other)
        with Server(tmp_path / "a", device, "readonly=yes"):
            assert IN_USE in refused(str(disk))
            with Server(tmp_path / "b", str(disk), "readonly=yes"):
                pass
        with Server(tmp_path / "a", str(disk), "readonly=yes"):
            assert below in refused(device)
    with Server(tmp_path / "a", str(disk)), loop(disk) as device:
        below = f"{device}: lies on {disk}, which is {IN_USE}"
        assert below in refused(device)
        assert below in refused(device, "readonly=yes")


def refused_beside(device: str, other: Path, folder: Path) -> None:
    """In one set, and in two servers."""
    refused_both_ways(device, other)
    assert f"in use by this machine as {device}" in refused(str(other))
    assert "is what is to be served" in refused(device, f"log={other}")
    with Server(folder, str(other), "readonly=yes"):
        with Server(folder / "b", device, "readonly=yes"):
            pass
        assert IN_USE in refused(device)
    with Server(folder, device):
        pass


def test_a_loop_device_whose_file_has_lost_its_name(tmp_path: Path, disk: Path) -> None:
    """The kernel still tells the old name, which is no file, or another one."""
    link, deleted = tmp_path / "link", tmp_path / "disk (deleted)"
    link.hardlink_to(disk)
    with loop(disk) as device:
        disk.unlink()
        refused_beside(device, link, tmp_path / "s")
        image(disk, 16 * MIB)
        image(deleted, 16 * MIB)
        refused_beside(device, link, tmp_path / "s")
        # Those are not the device's.
        for other in (disk, deleted):
            with Server(tmp_path / "s", str(other)), Server(tmp_path / "t", device) as server:
                assert "cannot be locked (the name is another file's now)" in server.text()


def test_a_loop_device_made_in_another_mount_namespace(tmp_path: Path, disk: Path) -> None:
    mounted = tmp_path / "mounted"
    mounted.touch()
    script = 'mount --bind "$0" "$1" && losetup --find --show "$1"'
    device = call("unshare", "--mount", "sh", "-c", script, disk, mounted)
    try:
        refused_both_ways(disk, device)
        assert f"in use by this machine as {device}" in refused(str(disk))
    finally:
        detach(device)


def test_a_loop_device_over_a_name_of_two_lines(tmp_path: Path) -> None:
    disk = image(tmp_path / "two\nlines", 16 * MIB)
    with loop(disk) as device:
        for one, other in ((disk, device), (device, disk)):
            with (
                pytest.raises(AssertionError, match="holds bytes of"),
                Server(tmp_path / "s", f"file={one}", f"file={other}"),
            ):
                pass


def test_a_file_that_this_machine_uses_as_a_device(tmp_path: Path, disk: Path) -> None:
    """It could be mounted; as with a mounted device only reading is allowed."""
    with loop(disk) as device:
        assert (
            f"in use by this machine as {device}; stop what uses that device and detach it"
            in refused(str(disk))
        )
        with Server(tmp_path, str(disk), "readonly=yes"):
            pass
    with Server(tmp_path, str(disk)):
        pass


def test_a_disk_that_is_write_protected(disk: Path) -> None:
    with (
        loop(disk, "--read-only") as device,
        Server(disk.parent, device) as server,
        connected(server) as (handle,),
    ):
        assert handle.is_read_only()
        assert "cannot be written (Read-only file system)" in server.text()
    with loop(disk, "--read-only") as device:
        assert "cannot be written (Read-only file system)" in refused(device, "readonly=no")
