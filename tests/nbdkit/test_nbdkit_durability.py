# SPDX-License-Identifier: GPL-2.0-only
"""What the nbdkit plugin has acknowledged survives its death.

NBDKIT_KILLS=200, as in make test-all, is the long form: so often is the server
killed, for each number of members.
"""

from __future__ import annotations

import errno
import os
import random
import struct
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from nbd_server import LONG_FORM, Server, connected, image, nbd, needs_plugin, shim, wait_until

pytestmark = needs_plugin

KILLS = int(os.environ.get("NBDKIT_KILLS", "200" if LONG_FORM else "20"))
BLOCK = 4096
BLOCKS = 96
MEMBER = 256 << 10


class Writer(threading.Thread):
    """One connection that writes, flushes and notes what it was promised.

    Each writer has blocks of its own. A block holds its number and version
    throughout, so a torn or older one shows.
    """

    def __init__(self, server: Server, number: int, writers: int, seed: int) -> None:
        super().__init__()
        self.handle = server.connect()
        self.rnd = random.Random(seed)
        self.blocks = range(number, BLOCKS, writers)
        self.sent: dict[int, int] = {}  # the last version sent
        self.acknowledged: dict[int, int] = {}
        self.promised: dict[int, int] = {}  # by a flush or FUA
        self.flushes = 0
        self.steps = 0

    def run(self) -> None:
        try:
            while True:
                self.step()
                self.steps += 1
        except nbd.Error:
            pass  # the server is gone

    def step(self) -> None:
        if self.rnd.random() < 0.1:
            # Of others, too: a flush is for all connections, but only this
            # one's knowledge is certain to be from before it was sent.
            before = dict(self.acknowledged)
            self.handle.flush()
            self.flushes += 1
            for block, version in before.items():
                self.promised[block] = max(version, self.promised.get(block, 0))
            return
        block = self.rnd.choice(self.blocks)
        version = self.sent.get(block, 0) + 1
        fua = self.rnd.random() < 0.2
        self.sent[block] = version
        self.handle.pwrite(content(block, version), block * BLOCK, nbd.CMD_FLAG_FUA if fua else 0)
        self.acknowledged[block] = version
        if fua:
            self.promised[block] = version


def wait_for_steps(writers: list[Writer], enough: int) -> None:
    wait_until(
        lambda: sum(writer.steps for writer in writers) >= enough, f"{enough} steps of the writers"
    )


def content(block: int, version: int) -> bytes:
    return struct.pack("<II", block, version) * (BLOCK // 8)


def check(handle: Any, writers: list[Writer]) -> int:
    """Every promise is kept, and nothing is there that was never sent."""
    promises = 0
    for writer in writers:
        for block in writer.blocks:
            found = handle.pread(BLOCK, block * BLOCK)
            for at in range(0, BLOCK, 512):
                number, version = struct.unpack_from("<II", found, at)
                assert found[at : at + 512] == struct.pack("<II", number, version) * 64
                assert number == (block if version else 0)
                assert version <= writer.sent.get(block, 0)
                assert version >= writer.promised.get(block, 0), f"block {block} lost a promise"
            promises += block in writer.promised
    return promises


@pytest.mark.parametrize("members", [1, 4])
@pytest.mark.parametrize("emulate", [False, True])
def test_promises_survive_a_kill(tmp_path: Path, members: int, emulate: bool) -> None:
    rnd = random.Random(members)
    promises = flushes = 0
    for kill in range(max(3, KILLS // 5) if emulate else KILLS):
        files = [f"file={image(tmp_path / f'member{i}', MEMBER * 4)}" for i in range(members)]
        parameters = [*files, *(["chunk=4k"] if members > 1 else [])]
        if emulate:
            parameters.append("emulate=ssd")
        with Server(tmp_path, *parameters) as server:
            writers = [Writer(server, number, 3, kill * 10 + number) for number in range(3)]
            for writer in writers:
                writer.start()
            # A moment that depends on how far they are, whatever the machine's speed.
            wait_for_steps(writers, rnd.randrange(200))
            time.sleep(rnd.random() * 0.005)
            server.kill()
            for writer in writers:
                writer.join(60)
                assert not writer.is_alive()
            with server:
                promises += check(server.connect(), writers)
        flushes += sum(writer.flushes for writer in writers)
    assert promises and flushes
    print(f"{promises} promised blocks were there, after {flushes} flushes")


def test_a_flush_covers_other_connections(tmp_path: Path) -> None:
    """Several flush at once, over several members, while others write."""
    files = [f"file={image(tmp_path / f'member{i}', MEMBER)}" for i in range(4)]
    with Server(tmp_path, *files, "chunk=4k", "stats=-") as server:
        handles = [server.connect() for _ in range(4)]
        done = []

        def work(handle: Any, number: int) -> None:
            for step in range(40):
                handle.pwrite(bytes([number]) * BLOCK, (step * 4 + number) * BLOCK)
                handle.flush()
                done.append(number)

        threads = [
            threading.Thread(target=work, args=(handle, number))
            for number, handle in enumerate(handles)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(done) == 160
        for handle in handles:
            handle.shutdown()
    assert "flush: 160, 0 errors" in server.text()


# What Linux does when it could not write back what was in the page cache: one call of fdatasync
# is told, the next is not. Here the first one waits for a file before it is; without LOSES it
# succeeds. Each call adds a byte to the file CALLS.
FORGETFUL = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static int calls;

int fdatasync(int fd)
{
	int to = open(getenv("CALLS"), O_CREAT | O_APPEND | O_WRONLY, 0600);

	(void)fd;
	if (write(to, "x", 1) != 1)
		abort();
	close(to);
	if (__atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST))
		return 0;
	close(open(getenv("BEGUN"), O_CREAT | O_WRONLY, 0600));
	while (access(getenv("GO_ON"), F_OK))
		usleep(1000);
	errno = EIO;
	return getenv("LOSES") ? -1 : 0;
}

ssize_t pwritev64v2(int fd, const struct iovec *iov, int nr, off_t at, int flags)
{
	ssize_t (*real)(int, const struct iovec *, int, off_t, int) =
		(ssize_t (*)(int, const struct iovec *, int, off_t, int))dlsym(
			RTLD_NEXT, "pwritev64v2");

	/* A flush by another name, which would be told instead. */
	return flags ? (errno = ENOTSUP, -1) : real(fd, iov, nr, at, 0);
}
"""


def forgetful(folder: Path, *variables: str) -> tuple[str, ...]:
    """What nbdkit is started by so that its fdatasync() is the one above."""
    files = [f"{name.upper()}={folder / name}" for name in ("begun", "go_on", "calls")]
    return ("env", shim(folder, FORGETFUL), *files, *variables)


def test_a_flush_that_comes_during_another_is_one_of_its_own(tmp_path: Path) -> None:
    """The first may have begun before the write that the second is to make durable."""
    disk = image(tmp_path / "disk", MEMBER)
    server = Server(tmp_path, str(disk), wrapper=forgetful(tmp_path))
    with server, connected(server, 2) as (one, other):
        threads = [threading.Thread(target=handle.flush) for handle in (one, other)]
        threads[0].start()
        wait_until((tmp_path / "begun").exists, "the first flush")
        other.pwrite(bytes(BLOCK), 0)
        threads[1].start()
        threads[1].join(0.3)  # so that it comes before the first has ended
        (tmp_path / "go_on").touch()
        for thread in threads:
            thread.join()
        assert (tmp_path / "calls").stat().st_size == 2


@pytest.mark.parametrize("first", ["flush", "fua"])
@pytest.mark.parametrize("second", ["flush", "fua"])
def test_lost_data_is_told_to_all_that_flush(tmp_path: Path, first: str, second: str) -> None:
    """Also to those that begin while the first is not yet answered."""
    begun, go_on = tmp_path / "begun", tmp_path / "go_on"
    disk = image(tmp_path / "disk", MEMBER)
    errors: dict[str, int] = {}

    def call(handle: Any, how: str, name: str) -> None:
        try:
            if how == "flush":
                handle.flush()
            else:
                handle.pwrite(bytes(BLOCK), 0, nbd.CMD_FLAG_FUA)
            errors[name] = 0
        except nbd.Error as error:
            errors[name] = error.errnum

    server = Server(tmp_path, str(disk), "direct=no", wrapper=forgetful(tmp_path, "LOSES=1"))
    with server, connected(server, 2) as handles:
        handles[0].pwrite(bytes(BLOCK), 0)
        threads = [
            threading.Thread(target=call, args=(handles[0], first, "first")),
            threading.Thread(target=call, args=(handles[1], second, "second")),
        ]
        threads[0].start()
        wait_until(begun.exists, "the first flush")
        threads[1].start()
        threads[1].join(0.3)  # it would be wrong if it were answered
        go_on.touch()
        for thread in threads:
            thread.join()
        call(handles[0], "flush", "later")
    assert errors == {"first": errno.EIO, "second": errno.EIO, "later": errno.EIO}
