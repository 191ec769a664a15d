# SPDX-License-Identifier: GPL-2.0-only
"""streamsched calibrate: which disks are overwritten, and which are not."""

from __future__ import annotations

import dataclasses
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from model_disk import INFO
from rich.console import Console
from said import refusal

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.calibrate import description as calibrate
from streamsched.calibrate import device as devices


def test_it_is_opened_for_writing_only_to_be_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "disk"
    path.write_bytes(b"x" * 65536)
    info = dataclasses.replace(INFO, path=str(path))
    real, asked = os.open, []

    def opened(path: str, flags: int) -> int:
        asked.append(flags)
        return real(path, flags & ~os.O_DIRECT)  # not every file system has that

    monkeypatch.setattr(os, "open", opened)
    reader = devices.BlockDevice(info)
    with pytest.raises(StreamschedError, match="sector 8 could not be written: Bad file"):
        reader.write(8, 8)
    writer = devices.BlockDevice(info, overwrite=True)
    writer.write(8, 8)
    assert [flags & os.O_ACCMODE for flags in asked] == [os.O_RDONLY, os.O_RDWR]
    assert all(flags & os.O_EXCL and flags & os.O_DIRECT for flags in asked)
    assert path.read_bytes() == b"x" * 4096 + bytes(4096) + b"x" * (65536 - 8192)
    ends = writer.read_together([0, 64, 16, 48, 8], 8, 4)
    assert len(ends) == 5 and ends == sorted(ends)
    assert (writer.commands, bytes(writer.zeros[:4096])) == (6, bytes(4096))
    with pytest.raises(StreamschedError, match="sector 4096: 0 bytes were read instead of 4096"):
        writer.read_together([0, 4096], 8, 2)
    reader.close()
    writer.close()


def test_disks_that_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    info = dataclasses.replace(INFO, path=str(path), folder=tmp_path)
    path.write_bytes(bytes(8 << 20))
    devices.check_overwrite(info)
    assert refusal(devices.check_overwrite, dataclasses.replace(info, write_back=False)) == (
        f"--overwrite: {path} has no write cache to measure; leave the option out"
    )
    (tmp_path / "sdx1").mkdir()
    (tmp_path / "sdx1" / "partition").write_text("1\n")
    assert refusal(devices.check_overwrite, info) == (
        f"--overwrite: {path} has partitions (sdx1); it is only for a disk without any"
    )


def boot_sector() -> bytes:
    """A partition table of DOS with one partition, which the kernel has not looked at."""
    entry = struct.pack("<BBBBBBBBII", 0, 0, 2, 0, 0x83, 0, 2, 0, 2048, 8192)
    return bytes(446) + entry + bytes(48) + b"\x55\xaa"


@pytest.mark.parametrize(
    ("data", "command", "sentence"),
    [
        (b"", "mkfs.ext4 -q", "ext4 at 0x438"),
        (b"", "mkswap", "swap at 0xff6"),
        (boot_sector(), "", "dos at 0x1fe"),
        (b"LUKS\xba\xbe\0\x01", "", "crypto_LUKS at 0x0"),
    ],
)
def test_a_disk_without_partitions_that_holds_data_is_not_overwritten(
    data: bytes, command: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "disk"
    path.write_bytes(data + bytes((8 << 20) - len(data)))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    if command:
        if not shutil.which(command.split()[0]):
            pytest.skip(f"{command.split()[0]} is missing")
        subprocess.run([*command.split(), path], check=True, capture_output=True)
    before = path.read_bytes()
    info = dataclasses.replace(INFO, path=str(path), folder=tmp_path)
    assert refusal(
        calibrate.calibrate, info, "mine", fast=True, overwrite=True, console=Console(quiet=True)
    ) == (
        f"--overwrite: {path} holds data ({sentence}); if nobody needs it, "
        f"remove its signatures first: wipefs --all {path}"
    )
    assert path.read_bytes() == before
    subprocess.run(["wipefs", "--all", "--force", "--quiet", path], check=True)
    devices.check_overwrite(info)


def test_without_wipefs_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = dataclasses.replace(INFO, path=str(tmp_path / "none"), folder=tmp_path)
    with pytest.raises(UsageError, match=r"cannot be seen whether .* holds data: .*No such file"):
        devices.check_overwrite(info)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(UsageError, match=r"wipefs, which sees .* is missing; install util-linux"):
        devices.check_overwrite(info)
