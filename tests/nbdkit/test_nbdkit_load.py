# SPDX-License-Identifier: GPL-2.0-only
"""Many clients at once, with the address and the thread sanitizer watching.

NBDKIT_LOAD_S=60, as in make test-all, is the long form: so long does each load last.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from nbd_server import LONG_FORM, Server, image, nbd, needs_plugin, wait_until
from sanitized import SANITIZERS, found, sanitized_plugin, wrapper_of

pytestmark = needs_plugin

LOAD_S = float(os.environ.get("NBDKIT_LOAD_S", "60" if LONG_FORM else "4"))
CONNECTIONS = 64
BLOCK = 16384  # several chunks
BLOCKS = 16  # of each connection
DEPTH = 4


class Client(threading.Thread):
    """One connection with several requests at once, each block's content known."""

    def __init__(self, server: Server, number: int) -> None:
        super().__init__()
        self.handle = server.connect()
        self.number = number
        self.until = 0.0
        self.rnd = random.Random(number)
        self.version = [0] * BLOCKS
        self.busy: set[int] = set()
        self.replies = 0
        self.sent = 0
        self.problem: str | None = None

    def run(self) -> None:
        try:
            while not self.problem:
                while len(self.busy) < DEPTH:
                    self.send()
                self.handle.poll(10000)
                if time.monotonic() >= self.until:  # last: each sends something
                    break
            while self.busy and not self.problem:
                if self.handle.poll(30000) == 0:
                    self.problem = f"{len(self.busy)} replies do not come"
            self.handle.flush()
            self.handle.shutdown()
        except nbd.Error as error:
            self.problem = str(error)

    def content(self, block: int) -> bytes:
        mark = struct.pack("<HHI", self.number, block, self.version[block])
        return mark * (BLOCK // 8) if self.version[block] else bytes(BLOCK)

    def send(self) -> None:
        block = self.rnd.choice([b for b in range(BLOCKS) if b not in self.busy])
        self.busy.add(block)
        self.sent += 1
        offset = (self.number * BLOCKS + block) * BLOCK
        write = self.rnd.random() < 0.4
        if write:
            self.version[block] += 1
            buffer = nbd.Buffer.from_bytearray(bytearray(self.content(block)))
        else:
            buffer = nbd.Buffer(BLOCK)
        answered = False

        def done(error: Any) -> int:
            nonlocal answered
            if answered:
                self.problem = f"block {block} was answered twice"
            answered = True
            if getattr(error, "value", error):
                self.problem = f"block {block}: error {error}"
            elif not write and bytes(buffer.to_bytearray()) != self.content(block):
                self.problem = f"block {block} reads as something else"
            self.busy.discard(block)
            self.replies += 1
            return 1

        if write:
            flags = nbd.CMD_FLAG_FUA if self.rnd.random() < 0.1 else 0
            self.handle.aio_pwrite(buffer, offset, done, flags)
        else:
            self.handle.aio_pread(buffer, offset, done)


def memory_kib(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def threads_of(pid: int) -> int:
    """Without the kernel's own, which serve io_uring and stay for a while."""
    nr = 0
    for comm in Path(f"/proc/{pid}/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            nr += not comm.read_text().startswith("iou-")
    return nr


def wait_until_closed(server: Server, stats: Path) -> None:
    """No connection is left: those that are at the end nbdkit neither closes nor frees.

    It frees one in the last moments of its threads: for as long as these become fewer.
    """

    def closed() -> bool:
        stats.unlink(missing_ok=True)
        os.kill(server.pid, signal.SIGUSR1)
        wait_until(lambda: stats.exists() or server.has_ended(), "statistics")
        return server.has_ended() or "connection " not in stats.read_text()

    wait_until(closed, "all connections are closed")
    wait_until_threads_stay(server)


def wait_until_threads_stay(server: Server) -> None:
    """Those of connections have ended."""
    before, now = 0, threads_of(server.pid)
    while now != before:
        time.sleep(0.5)
        before, now = now, threads_of(server.pid)


@pytest.mark.parametrize("io", ["uring", "threads"])
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_load_under_a_sanitizer(root: Path, tmp_path: Path, sanitizer: str, io: str) -> None:
    wrapper = wrapper_of(root, sanitizer)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    plugin = sanitized_plugin(root, sanitizer)
    size = CONNECTIONS * BLOCKS * BLOCK // 4
    files = [f"file={image(tmp_path / f'member{i}', size)}" for i in range(4)]
    # Shallow, so that the disk thread, the timer and joining have work.
    server = Server(
        tmp_path,
        *files,
        "chunk=4k",
        "queue-depth=4",
        "rotational=yes",
        f"io={io}",
        f"stats={tmp_path / 'stats'}",
        plugin=plugin,
        wrapper=wrapper,
        options=("--threads=8",),
    )
    with server:
        clients = [Client(server, number) for number in range(CONNECTIONS)]
        for client in clients:
            client.until = time.monotonic() + LOAD_S
            client.start()
        time.sleep(LOAD_S / 2)
        half = memory_kib(server.pid)
        for client in clients:
            client.join(LOAD_S + 120)
        end = memory_kib(server.pid)
        wait_until_closed(server, tmp_path / "stats")
        status = server.stop()
    said = server.text()
    assert [client.problem for client in clients if client.problem] == []
    assert not found(said), said[:5000]
    assert status == 0
    assert sum(client.replies for client in clients) == sum(client.sent for client in clients)
    assert all(client.replies > 0 for client in clients)
    replies = sum(client.replies for client in clients)
    print(f"{replies} replies; {half} KiB of memory at half time, {end} KiB at the end")
    if LOAD_S >= 30:  # before that it only shows what starting takes
        assert end < half * 1.25 + 20_000


def test_statistics_while_the_server_starts(root: Path, tmp_path: Path) -> None:
    """The thread sanitizer sees whether they are taken from an array that is being made."""
    wrapper = wrapper_of(root, "thread")
    disks = [image(tmp_path / f"member{i}", 1 << 20) for i in range(4)]
    server = Server(
        tmp_path,
        *(f"file={disk}" for disk in disks),
        *("rotational=yes", f"stats={tmp_path / 'stats'}", f"metrics={tmp_path / 'metrics'}"),
        plugin=sanitized_plugin(root, "thread"),
        wrapper=wrapper,
    )
    with server.signalled_from_the_beginning(disks[-1]):
        wait_until(lambda: (tmp_path / "stats").exists() or server.has_ended(), "statistics")
        status = server.stop()
    assert not found(server.text()), server.text()[:5000]
    assert status == 0


@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_a_sanitized_server_ends_after_an_error(root: Path, tmp_path: Path, sanitizer: str) -> None:
    """strerror() for a client that left must not make exit() wait for ever (sanitized.py)."""
    server = Server(
        tmp_path,
        *("emulate=ssd", "size=1M"),
        plugin=sanitized_plugin(root, sanitizer),
        wrapper=wrapper_of(root, sanitizer),
    )
    with server:
        # Until an answer could not be sent: to send may be quicker than to leave.
        while "handshake: Broken pipe" not in server.text():
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(server.socket))
        # nbdkit waits for no connection's thread at its end, and frees the list of filters and
        # plugins that such a thread's last lines go through.
        wait_until_threads_stay(server)
        assert server.stop() == 0
