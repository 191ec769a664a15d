# SPDX-License-Identifier: GPL-2.0-only
"""Random parameters and garbage clients, with each sanitizer watching.

Each turn starts a server with drawn parameters. It is refused with one sentence, or it serves:
then clients of garbage.py come, and one that behaves and knows what it must read. No file but
the second half of what is served may change, and the server must end.

NBDKIT_FUZZ_S=1500: so many seconds for each sanitizer. NBDKIT_FUZZ_TURNS=N: that many turns at
most. NBDKIT_FUZZ_SEED=N draws others. NBDKIT_FUZZ_FIRST=N begins with turn N, so that what a
failure prints is seen again (as far as the threads' order allows it).
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from garbage import Folder, Garbage, second_half
from nbd_server import LONG_FORM, STOP_S, Server, nbd, needs_plugin, wait_until
from sanitized import SANITIZERS, STATUS, found, sanitized_plugin, wrapper_of
from test_nbdkit_clients import ASSERTION, FIRST_MENDED, FIRST_THAT_ABORTS, nbdkit_version

pytestmark = [needs_plugin, pytest.mark.long]

SECONDS = float(os.environ.get("NBDKIT_FUZZ_S", "300" if LONG_FORM else "20"))
TURNS = int(os.environ.get("NBDKIT_FUZZ_TURNS", "1000000"))
SEED = os.environ.get("NBDKIT_FUZZ_SEED", "1")
FIRST = int(os.environ.get("NBDKIT_FUZZ_FIRST", "0"))
HANG_S = 150.0
BLOCK = 4096
MOST_KNOWN = 256  # blocks that the good client looks at, just below the garbage's
REQUESTS = 60  # of the good client
ENDED_S = 0.2


class Good:
    """A client that reads what was there before, and what it has written."""

    def __init__(self, server: Server, turn: Turn) -> None:
        self.turn = turn
        self.rnd = turn.rnd
        self.handle = server.connect()
        self.size = self.handle.get_size()
        half = second_half(self.size)
        self.blocks = min(half // BLOCK, MOST_KNOWN)
        self.begin = half // BLOCK * BLOCK - self.blocks * BLOCK
        self.readonly = self.handle.is_read_only()
        self.known = self.content()
        self.unknown: set[int] = set()  # blocks of which a write failed

    def content(self) -> bytearray:
        """What the files hold."""
        return self.turn.content(self.size, self.begin, self.begin + self.blocks * BLOCK)

    def check(self, block: int, data: bytes) -> None:
        if block not in self.unknown:
            expected = bytes(self.known[block * BLOCK :][:BLOCK])
            assert data == expected, f"block {block} reads as something else"

    def one(self) -> None:
        block = self.rnd.randrange(self.blocks)
        nr = self.rnd.randint(1, min(8, self.blocks - block))
        kind = self.rnd.random()
        if kind < 0.1:
            self.handle.flush()
        elif kind < 0.5 and not self.readonly:
            data = self.rnd.randbytes(BLOCK) * nr
            self.unknown |= set(range(block, block + nr))
            flags = nbd.CMD_FLAG_FUA if self.rnd.random() < 0.2 else 0
            self.handle.pwrite(data, self.begin + block * BLOCK, flags)
            self.unknown -= set(range(block, block + nr))
            self.known[block * BLOCK : block * BLOCK + len(data)] = data
        else:
            data = self.handle.pread(nr * BLOCK, self.begin + block * BLOCK)
            for i in range(nr):
                self.check(block + i, data[i * BLOCK :][:BLOCK])

    def behave(self) -> None:
        for _ in range(REQUESTS if self.blocks > 0 else 0):
            if self.rnd.random() < self.turn.asks:
                os.kill(self.turn.server.pid, signal.SIGUSR1)
            time.sleep(self.turn.pause_s)
            try:
                self.one()
            except nbd.Error:
                if not self.turn.may_fail:
                    raise
        self.handle.shutdown()


class Turn:
    def __init__(self, folder: Path, number: int, plugin: str, wrapper: tuple[str, ...]) -> None:
        self.rnd = random.Random(f"{SEED} {number}")
        self.folder = Folder(folder / "files", self.rnd)
        self.parameters = self.folder.parameters(self.rnd)
        self.may_fail = any(text.startswith("fault=") for text in self.parameters)
        self.files = [
            Path(text.removeprefix("file=")) for text in self.parameters if text.startswith("file=")
        ]
        # One thread for each connection: with more this nbdkit may abort (docs/guide/NBDKIT.md).
        threads = self.rnd.choice(("1", "1", "1", "4", "16"))
        self.server = Server(
            folder / "server",
            *self.parameters,
            options=(f"--threads={threads}", *self.rnd.choice(((), (), ("-r",)))),
            plugin=plugin,
            # Outputs may have names without a folder.
            wrapper=("env", f"--chdir={self.folder.path}", *wrapper),
        )
        self.asks = self.rnd.choice((0, 0, 0.1))  # for statistics, beside each request
        # Metrics are to be written meanwhile; the thread sanitizer keeps signals back.
        self.pause_s = 0.03 if "metrics-interval=1" in self.parameters else 0.0
        self.outcome = "refused"

    def content(self, size: int, begin: int, end: int) -> bytearray:
        """Bytes @begin to @end of what is served, @size bytes."""
        if not self.files:
            return bytearray(end - begin)
        chunk = 65536
        for text in self.parameters:
            if text.startswith("chunk=") and len(self.files) > 1:
                chunk = int(text.removeprefix("chunk=").removesuffix("k")) * 1024
        files = [file.read_bytes()[: size // len(self.files)] for file in self.files]
        if len(files) == 1:
            return bytearray(files[0][begin:end])
        data = bytearray()
        for at in range(0, end, chunk):
            row, index = divmod(at // chunk, len(files))
            data += files[index][row * chunk :][:chunk]
        return data[begin:end]

    def start(self) -> bool:
        try:
            self.server.__enter__()
        except AssertionError:
            assert self.server.has_ended()
        return not self.server.has_ended()

    def check_refusal(self) -> None:
        said = self.server.text()
        assert self.server.process and self.server.process.returncode == 1, said[-5000:]
        lines = [line for line in said.splitlines() if line.startswith("nbdkit: error:")]
        assert len(lines) == 1, said

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """If nothing moves any more, clients are let go by killing the server."""
        timer = threading.Timer(HANG_S, self.server.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def serve(self) -> None:
        crowd = [
            Garbage(self.server.socket, random.Random(self.rnd.random()))
            for _ in range(self.rnd.randint(1, 10))
        ]
        with self.watched():
            for client in crowd:
                client.start()
            try:
                good = Good(self.server, self)
                good.behave()
            finally:
                for client in crowd:
                    client.join()
            status = self.server.stop()
        # With a status of its own it has also told what it found.
        assert status in (0, STATUS), self.server.text()[-5000:]
        if self.files and not self.may_fail:
            assert good.content() == good.known, "the files hold something else"
        self.outcome = "served"

    def has_aborted(self) -> bool:
        """Did nbdkit itself, as some versions do when clients leave?"""
        with contextlib.suppress(AssertionError):
            wait_until(self.server.has_ended, "the server has ended", ENDED_S)
        return (
            ASSERTION in self.server.text()
            and FIRST_THAT_ABORTS <= nbdkit_version() < FIRST_MENDED
            and self.server.process is not None
            and self.server.process.wait(STOP_S) == -signal.SIGABRT
        )

    def run(self) -> None:
        try:
            if self.start():
                self.serve()
            else:
                self.check_refusal()
        except (nbd.Error, AssertionError, OSError):
            if not self.has_aborted():
                raise
            self.outcome = "nbdkit aborted"
        said = self.server.text()
        assert not found(said), said[:5000]
        assert self.folder.changed(served=self.outcome != "refused") == []


@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_random_parameters_and_garbage_clients(root: Path, tmp_path: Path, sanitizer: str) -> None:
    plugin, wrapper = sanitized_plugin(root, sanitizer), wrapper_of(root, sanitizer)
    outcomes: Counter[str] = Counter()
    until = time.monotonic() + SECONDS
    number, slowest = FIRST, (0.0, FIRST)
    while number - FIRST < TURNS and time.monotonic() < until:
        folder = tmp_path / str(number)
        folder.mkdir()
        turn = Turn(folder, number, plugin, wrapper)
        began = time.monotonic()
        try:
            turn.run()
        except BaseException:
            print(f"NBDKIT_FUZZ_SEED={SEED} NBDKIT_FUZZ_FIRST={number} NBDKIT_FUZZ_TURNS=1")
            print(turn.server.command)
            print(turn.server.text()[-3000:])
            raise
        finally:
            if turn.server.process and turn.server.process.poll() is None:
                turn.server.kill()
        outcomes[turn.outcome] += 1
        slowest = max(slowest, (time.monotonic() - began, number))
        shutil.rmtree(folder)
        number += 1
    print(f"{sanitizer}: {number - FIRST} turns: {dict(outcomes)}; slowest: {slowest}")
    assert (outcomes["served"] and outcomes["refused"]) or TURNS < 10
