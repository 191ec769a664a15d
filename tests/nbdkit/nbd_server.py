# SPDX-License-Identifier: GPL-2.0-only
"""An nbdkit with the plugin, and clients, for the tests of nbdkit/."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from said import ran

from streamsched.base.errors import StreamschedError
from streamsched.hosts.nbdhost import find_plugin

START_S = 60.0
STOP_S = 60.0
# What takes longer has failed; a slow machine with other work on it is that much slower.
PATIENCE_S = 120.0


def _libnbd() -> Any:
    """Debian's Python binding of libnbd, which is not among the virtual environment's."""
    folder = "/usr/lib/python3/dist-packages"
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        return importlib.import_module("nbd")
    except ImportError:
        return None


nbd = _libnbd()


def missing() -> str | None:
    """Why the tests cannot run, or None."""
    if nbd is None:
        return "python3-libnbd is missing; tools/setup.sh nbdkit installs it"
    try:
        find_plugin()
    except StreamschedError as error:
        return f"{error}; tools/setup.sh nbdkit builds it"
    return None


# make test-all: loads and kills in their long form.
LONG_FORM = os.environ.get("STREAMSCHED_TESTS") == "all"

needs_plugin = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@contextlib.contextmanager
def loop_device(file: object, *options: str) -> Iterator[str]:
    """A loop device over @file; where none can be had, the test is skipped."""
    made = ran("losetup", "--find", "--show", *options, file)
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    try:
        yield made.stdout.strip()
    finally:
        detach(made.stdout.strip())


def detach(device: str) -> None:
    """Detach a loop device, and wait until it is: somebody may have it open for a moment.

    A server does so that starts and looks at all of them.
    """
    subprocess.run(["losetup", "--detach", device], check=True)
    backing = Path("/sys/block", Path(device).name, "loop/backing_file")
    wait_until(lambda: not backing.exists(), f"{device} is detached")


def wait_until(happened: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> None:
    """Look again and again; a fixed pause is too short somewhere, and too long elsewhere."""
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, f"not within {seconds:g} s: {what}"
        time.sleep(0.005)


def has_open(pid: int, file: Path) -> bool:
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):  # closed meanwhile
            if link.readlink() == file:
                return True
    return False


class Server:
    """One nbdkit on a Unix socket, as a context manager."""

    def __init__(
        self,
        folder: Path,
        *parameters: str,
        options: tuple[str, ...] = (),
        plugin: str | None = None,
        wrapper: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        listen: tuple[str, ...] = (),
        fds: tuple[int, ...] = (),
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.socket = folder / "socket"
        self.ready = folder / "pid"  # written when clients are let in
        self.log = folder / "errors"
        self.uri = f"nbd+unix:///?socket={self.socket}"
        self.command = [
            *wrapper,
            "nbdkit",
            "--foreground",
            "--exit-with-parent",
            f"--pidfile={self.ready}",
            *(listen or ("--unix", str(self.socket))),
            *options,
            plugin or find_plugin(),
            *parameters,
        ]
        self.env = {**os.environ, **(env or {})}
        self.fds = fds
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        self.ready.unlink(missing_ok=True)
        if not self.fds:
            self.socket.unlink(missing_ok=True)
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stderr=errors,
                env=self.env,
                pass_fds=self.fds,
            )
        wait_until(
            lambda: self.ready.exists() or self.has_ended(), "nbdkit lets clients in", START_S
        )
        if self.has_ended():
            raise AssertionError(f"nbdkit ended: {self.text()}")
        return self

    @contextlib.contextmanager
    def serving(self, nr: int = 1) -> Iterator[tuple[Any, ...]]:
        """Started, and with @nr connections: the server, and their handles."""
        with self, connected(self, nr) as handles:
            yield self, *handles

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.process and self.process.poll() is None:
            if kind:
                # It would wait for clients, which the test has left behind.
                self.process.kill()
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"nbdkit does not stop: {self.text()}") from None

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    def stop(self) -> int:
        """Tell it to stop; its exit status."""
        self.__exit__(None, None, None)
        assert self.process
        return int(self.process.returncode)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        assert self.process
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @contextlib.contextmanager
    def signalled_from_the_beginning(self, locked: Path) -> Iterator[None]:
        """Started, with SIGUSR1 again and again from when it has opened its file @locked on."""

        def flood() -> None:
            wait_until(lambda: self.process, "the process is there")
            process = self.process
            assert process
            wait_until(
                lambda: has_open(process.pid, locked) or self.has_ended(), f"{locked} is open"
            )
            process.send_signal(signal.SIGUSR1)
            fcntl.lockf(file, fcntl.LOCK_UN)
            while not self.ready.exists() and not self.has_ended():
                process.send_signal(signal.SIGUSR1)
                time.sleep(0.0002)

        # It waits a second for the lock to be released.
        with locked.open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            thread = threading.Thread(target=flood)
            thread.start()
            with self:
                thread.join()
                yield

    def metrics(self, file: Path) -> str:
        """What it was given metrics=@file for, as of now."""
        before = file.stat().st_ino  # it is replaced as a whole
        os.kill(self.pid, signal.SIGUSR1)
        wait_until(lambda: file.stat().st_ino != before or self.has_ended(), "new metrics")
        return file.read_text()

    def dispatched(self, file: Path) -> int:
        """How many requests its members have got."""
        found = re.findall(
            r"^streamsched_dispatches_total.* (\d+)$", self.metrics(file), re.MULTILINE
        )
        return sum(map(int, found))

    def text(self) -> str:
        """What it wrote to standard error."""
        return self.log.read_text(errors="replace")

    def connect(self) -> Any:
        """A libnbd handle."""
        handle = nbd.NBD()
        handle.connect_uri(self.uri)
        return handle


@contextlib.contextmanager
def connected(server: Server, nr: int = 1) -> Iterator[list[Any]]:
    """Several connections."""
    handles = [server.connect() for _ in range(nr)]
    try:
        yield handles
    finally:
        for handle in handles:
            with contextlib.suppress(nbd.Error):
                handle.shutdown()


def refused(*parameters: str, wrapper: tuple[str, ...] = ()) -> str:
    """What nbdkit says when it refuses to serve: one line, exit status 1."""
    # With --unix - it would leave a folder behind for each time that it refuses.
    with tempfile.TemporaryDirectory() as folder:
        serve = ["nbdkit", "--unix", f"{folder}/socket", find_plugin(), *parameters]
        done = ran(*wrapper, *serve, "--run", "echo served", stdin=subprocess.DEVNULL)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "served" not in done.stdout
    lines = [line for line in done.stderr.splitlines() if line.startswith("nbdkit: error:")]
    assert len(lines) == 1, done.stderr
    return lines[0].removeprefix("nbdkit: error: ")


class Answers(dict[int, int]):
    """The errors, or 0, of requests under way, by a number that the test gives each of them."""

    def of(self, number: int) -> Callable[[Any], int]:
        """What libnbd is to call when that one is answered."""

        def done(error: Any) -> int:
            self[number] = int(getattr(error, "value", error))
            return 1

        return done

    def wait(self, handle: Any, nr: int) -> None:
        while len(self) < nr:
            assert handle.poll(10000) == 1


@contextlib.contextmanager
def mounted(*arguments: object) -> Iterator[None]:
    """mount(8) with these arguments, the last of them where; without the right to, skipped."""
    if ran("mount", *arguments).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(arguments[-1])], check=True)


def shim(folder: Path, source: str) -> str:
    """The variable by which functions of this C text stand in for those of libc in a program."""
    (folder / "shim.c").write_text(source)
    command = ["cc", "-shared", "-fPIC", "-o", "shim.so", "shim.c", "-ldl"]
    subprocess.run(command, cwd=folder, check=True)
    return f"LD_PRELOAD={folder / 'shim.so'}"


def image(path: Path, size: int, fill: bytes | None = None) -> Path:
    """A file of that size, sparse unless filled."""
    with path.open("wb") as file:
        if fill is not None:
            file.write((fill * (size // len(fill) + 1))[:size])
        file.truncate(size)
    return path
