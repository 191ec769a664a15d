# SPDX-License-Identifier: GPL-2.0-only
"""What the nbdkit plugin has promised survives a power cut.

The members lie on a file system that forgets what was not synced (forgetful.c); a kill of the
server alone cannot show a missing sync, for the page cache outlives it. POWER_CUTS=40, as in
make test-all, is the long form: so often is the power cut for each set of parameters.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import random
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from forgetful import Forgetful, missing
from nbd_server import LONG_FORM, Server, image, nbd, needs_plugin, wait_until

needs_forgetful = pytest.mark.skipif(missing() is not None, reason=str(missing()))
pytestmark = pytest.mark.nbdkit

CUTS = int(os.environ.get("POWER_CUTS", "40" if LONG_FORM else "5"))
SECTOR = 512
BLOCK = 4096
BLOCKS = 96
WRITERS = 3
DELAY_US = 400  # so that requests are pending behind others, and joined


# ---- the file system itself ----

RWF_DSYNC = 2
libc = ctypes.CDLL(None, use_errno=True)


def page(number: int) -> mmap.mmap:
    """Memory that direct I/O takes."""
    memory = mmap.mmap(-1, BLOCK)
    memory.write(bytes([number]) * BLOCK)
    return memory


def write_plainly(fd: int) -> None:
    os.pwritev(fd, [page(1)], 0)


def write_and_sync(fd: int) -> None:
    write_plainly(fd)
    os.fdatasync(fd)


def write_synced(fd: int) -> None:
    os.pwritev(fd, [page(1)], 0, RWF_DSYNC)


def sync_and_write(fd: int) -> None:
    os.fsync(fd)
    write_plainly(fd)


def punch(fd: int) -> None:
    keep_size_punch = 3
    assert not libc.fallocate(fd, keep_size_punch, ctypes.c_long(0), ctypes.c_long(BLOCK))


def punch_and_sync(fd: int) -> None:
    punch(fd)
    os.fsync(fd)


@needs_forgetful
@pytest.mark.parametrize("direct", [0, os.O_DIRECT])
@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (write_plainly, False),
        (sync_and_write, False),
        (punch, False),
        (write_and_sync, True),
        (write_synced, True),
        (punch_and_sync, True),
    ],
)
def test_what_is_forgotten(
    tmp_path: Path, change: Callable[[int], None], kept: bool, direct: int
) -> None:
    """Only what was synced is there after each of several power cuts."""
    there = []
    for seed in range(6):
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        file = image(folder / "file", 2 * BLOCK, b"\xff")
        with Forgetful(folder, tmp_path / f"{seed}.mount", seed) as forgetful:
            fd = os.open(forgetful.at / "file", os.O_RDWR | direct)
            change(fd)
            memory = mmap.mmap(-1, BLOCK)
            os.preadv(fd, [memory], 0)
            now = memory[:]
            forgetful.cut_power()
            with contextlib.suppress(OSError):  # not connected
                os.close(fd)
        assert now in (bytes(BLOCK), bytes([1]) * BLOCK)
        content = file.read_bytes()
        assert content[BLOCK:] == b"\xff" * BLOCK
        assert kept or content[:BLOCK] in (now, b"\xff" * BLOCK) or len(set(content)) == 2
        there.append(content[:BLOCK] == now)
    assert all(there) if kept else not all(there)


@needs_forgetful
def test_unmounting_forgets_nothing(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    file = image(tmp_path / "files" / "file", BLOCK)
    with Forgetful(tmp_path / "files", tmp_path / "mount") as forgetful:
        (forgetful.at / "file").open("r+b").write(b"\x01" * BLOCK)
    assert file.read_bytes() == b"\x01" * BLOCK


# ---- the server over it ----


@dataclass
class Block:
    """What one block was made to hold, in order; True is data, False zeros. It begins as zeros."""

    versions: list[bool] = field(default_factory=lambda: [False])
    acknowledged: int = 0
    promised: int = 0  # by a flush or FUA
    busy: bool = False

    def may_hold(self, version: int) -> bool:
        """@version 0 stands for zeros."""
        if version:
            return self.promised <= version < len(self.versions) and self.versions[version]
        return not all(self.versions[self.promised :])


def content(block: int, version: int) -> bytes:
    return b"".join(
        struct.pack("<II", block * BLOCK // SECTOR + i, version) * (SECTOR // 8)
        for i in range(BLOCK // SECTOR)
    )


class Client(threading.Thread):
    """One connection with many commands in flight, over blocks of its own."""

    def __init__(self, server: Server, number: int, seed: int) -> None:
        super().__init__()
        self.handle = server.connect()
        self.rnd = random.Random(seed)
        share = BLOCKS // WRITERS
        self.first, self.end = number * share, (number + 1) * share
        self.blocks = {block: Block() for block in range(self.first, self.end)}
        self.under_way = 0
        self.steps = 0
        self.over = False
        self.last_error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.over:
                self.step()
                while self.under_way > 12 and not self.over:
                    self.handle.poll(1000)
        except nbd.Error:
            pass  # the server is gone
        except BaseException as error:
            self.last_error = error
            raise

    def begin(self, command: Callable[..., Any], *what: Any, done: Callable[[], None]) -> None:
        def answer(error: Any) -> int:
            self.under_way -= 1
            self.steps += 1
            if error.value:
                self.over = True  # the power is cut
            else:
                done()
            return 1

        self.under_way += 1
        command(*what[:-1], completion=answer, flags=what[-1])

    def step(self) -> None:
        if self.rnd.random() < 0.05:
            self.flush()
            return
        # Several that touch, for the scheduler to join, whatever their flags: each behind the one
        # before, or each before it.
        at = self.rnd.randrange(self.first, self.end)
        backward = self.rnd.random() < 0.5
        for _ in range(self.rnd.randint(1, 4)):
            size = self.rnd.choice((1, 1, 2, 5))
            begin = at - size if backward else at
            blocks = range(max(begin, self.first), min(begin + size, self.end))
            if not blocks or any(self.blocks[block].busy for block in blocks):
                return
            self.change(blocks)
            at = blocks.start if backward else blocks.stop

    def flush(self) -> None:
        before = {number: block.acknowledged for number, block in self.blocks.items()}

        def done() -> None:
            for number, version in before.items():
                block = self.blocks[number]
                block.promised = max(version, block.promised)

        self.begin(self.handle.aio_flush, 0, done=done)

    def change(self, numbers: range) -> None:
        blocks = [self.blocks[number] for number in numbers]
        how = self.rnd.random()
        fua = self.rnd.random() < 0.3
        flags = nbd.CMD_FLAG_FUA if fua else 0
        for block in blocks:
            block.busy = True
            block.versions.append(how < 0.8)

        def done() -> None:
            for block in blocks:
                block.busy = False
                block.acknowledged = len(block.versions) - 1
                if fua:
                    block.promised = block.acknowledged

        offset, size = numbers.start * BLOCK, len(numbers) * BLOCK
        if how < 0.8:
            data = b"".join(
                content(number, len(self.blocks[number].versions) - 1) for number in numbers
            )
            buffer = nbd.Buffer.from_bytearray(bytearray(data))
            self.begin(self.handle.aio_pwrite, buffer, offset, flags, done=done)
        elif how < 0.9:
            self.begin(self.handle.aio_trim, size, offset, flags, done=done)
        else:
            flags |= self.rnd.choice((0, nbd.CMD_FLAG_NO_HOLE))
            self.begin(self.handle.aio_zero, size, offset, flags, done=done)


def export(members: list[Path], chunk: int) -> bytes:
    """What the export holds, by the documented map of a stripe set."""
    held = [member.read_bytes() for member in members]
    rows = len(held[0]) // chunk
    return b"".join(part[row * chunk : (row + 1) * chunk] for row in range(rows) for part in held)


def check(whole: bytes, clients: list[Client]) -> int:
    """Every sector holds what was promised or came later; the number of promised blocks."""
    promises = 0
    for number, block in ((n, b) for client in clients for n, b in client.blocks.items()):
        promises += block.promised > 0
        for at in range(number * BLOCK, (number + 1) * BLOCK, SECTOR):
            sector = whole[at : at + SECTOR]
            place, version = struct.unpack_from("<II", sector)
            assert sector == struct.pack("<II", place, version) * (SECTOR // 8)
            assert place == (at // SECTOR if version else 0)
            assert block.may_hold(version), (
                f"sector {at // SECTOR} holds version {version}, promised is {block.promised} "
                f"of {block.versions}"
            )
    return promises


def cut_power_once(
    folder: Path, nr_members: int, chunk: int, parameters: tuple[str, ...], seed: int
) -> int:
    rnd = random.Random(seed)
    files = folder / "files"
    files.mkdir(parents=True)
    members = [image(files / f"member{i}", BLOCKS * BLOCK // nr_members) for i in range(nr_members)]
    if nr_members > 1:
        parameters = (*parameters, f"chunk={chunk}")
    else:
        chunk = BLOCK

    def server(at: Path) -> Server:
        return Server(folder, *(f"file={at / member.name}" for member in members), *parameters)

    forgetful = Forgetful(files, folder / "mount", seed, DELAY_US)
    with forgetful, server(forgetful.at) as running:
        clients = [Client(running, number, seed * 10 + number) for number in range(WRITERS)]
        for client in clients:
            client.start()
        enough = rnd.randrange(20, 400)
        wait_until(
            lambda: (
                sum(client.steps for client in clients) >= enough
                or not any(client.is_alive() for client in clients)
            ),
            "the clients' steps",
        )
        time.sleep(rnd.random() * 0.003)
        forgetful.cut_power()
        running.kill()
        for client in clients:
            client.join(60)
            assert not client.is_alive() and not client.last_error
    whole = export(members, chunk)
    promises = check(whole, clients)
    with server(files) as again:
        assert again.connect().pread(len(whole), 0) == whole
        again.kill()
    return promises


def sets_of_parameters() -> Iterator[Any]:
    """Each way to write, over one member and several."""
    for io in ("uring", "threads"):
        for direct in ("yes", "no"):
            for members, chunk in ((1, 0), (2, 4096), (3, 8192)):
                parameters = (f"io={io}", f"direct={direct}", "queue-depth=2")
                yield pytest.param(members, chunk, parameters, id=f"{members}-{io}-{direct}")
    for others in (
        ("policy=noop",),
        ("policy=stream:deadline", "rotational=yes", "queue-depth=1"),
        ("policy=cfq", "writes=async", "queue-depth=1"),
        ("policy=deadline", "max-request=64k", "queue-depth=3"),
        ("emulate=ssd",),
        ("coordinate=yes", "rotational=yes", "queue-depth=4"),
    ):
        yield pytest.param(3, 4096, others, id="-".join(others))


@needs_plugin
@needs_forgetful
@pytest.mark.parametrize(("members", "chunk", "parameters"), [*sets_of_parameters()])
def test_promises_survive_a_power_cut(
    tmp_path: Path, members: int, chunk: int, parameters: tuple[str, ...]
) -> None:
    """Writes, trims and zeros with FUA, and what a flush covers, joined with others or not."""
    promises = 0
    for cut in range(CUTS):
        promises += cut_power_once(tmp_path / f"{cut}", members, chunk, parameters, cut + 1)
    assert promises
    print(f"{promises} promised blocks were there")
