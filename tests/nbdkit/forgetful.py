# SPDX-License-Identifier: GPL-2.0-only
"""A folder whose files lose unsynced data at a power cut (forgetful.c)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from nbd_server import wait_until
from said import ran

SOURCE = Path(__file__).with_name("forgetful.c")


@cache
def program() -> Path:
    """It, compiled."""
    flags = ran("pkg-config", "--cflags", "--libs", "fuse3", check=True).stdout.split()
    binary = Path(tempfile.mkdtemp()) / "forgetful"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", "-O2", *warnings, "-o", binary, SOURCE, *flags], check=True)
    return binary


@cache
def missing() -> str | None:
    """Why it cannot run, or None."""
    if not shutil.which("fusermount3"):
        return "fusermount3 is missing: install the Debian package fuse3"
    found = (
        shutil.which("pkg-config")
        and not subprocess.run(["pkg-config", "--exists", "fuse3"], check=False).returncode
    )
    if not found:
        return "FUSE's headers are missing: install the Debian packages libfuse3-dev and pkg-config"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "files").mkdir()
        try:
            with Forgetful(Path(folder) / "files", Path(folder) / "mount"):
                return None
        except AssertionError as error:
            return f"FUSE does not work here: {error}"


class Forgetful:
    """The files of @folder, shown at @at, as a context manager."""

    def __init__(self, folder: Path, at: Path, seed: int = 0, delay_us: int = 0) -> None:
        self.folder, self.at = folder, at
        self.arguments = (str(seed), str(delay_us))
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Forgetful:
        self.at.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [program(), self.folder, self.at, *self.arguments], stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: os.path.ismount(self.at) or self.has_ended(), "the file system", 20)
        if self.has_ended():
            assert self.process.stderr
            raise AssertionError(self.process.stderr.read().strip() or "no reason is given")
        return self

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def end(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)
        # A program that has a file open is answered with errors from now on.
        assert self.process.wait(60) == 0
        subprocess.run(["fusermount3", "-u", "-z", self.at], check=False, capture_output=True)

    def cut_power(self) -> None:
        self.end(signal.SIGUSR1)

    def __exit__(self, *_: object) -> None:
        if not self.has_ended():
            self.end(signal.SIGTERM)
