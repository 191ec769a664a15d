# SPDX-License-Identifier: GPL-2.0-only
"""What the nbdkit plugin is for: readers over the paper's emulated disk, in real time.

Time is real here, and other work on the machine only takes it away; so each
claim has several attempts. Only make test-all runs this.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbd_server import Server, nbd, needs_plugin
from said import ran

pytestmark = needs_plugin

READ_S = float(os.environ.get("NBDKIT_READ_S", "2"))
ATTEMPTS = 6
BLOCK = 65536
STARTS = [n * 100 << 30 for n in range(4)]
EFFICIENCY = 0.85
GAIN = 5

Rates = list[float]  # bytes per second of each reader


def fio_readers(server: Server, starts: list[int], seconds: float) -> Rates:
    """Processes of fio, each with a connection of its own."""
    job = "[global]\nioengine=nbd\nuri=" + server.uri + "\nrw=read\nbs=64k\nsize=8g\n"
    job += f"time_based=1\nruntime={int(seconds * 1000)}ms\n"
    job += "".join(f"[reader{n}]\noffset={start}\n" for n, start in enumerate(starts))
    done = ran("fio", "--output-format=json", "-", input=job, check=True)
    document = json.loads(done.stdout[done.stdout.index("{") :])
    return [one["read"]["io_bytes"] * 1000 / one["job_runtime"] for one in document["jobs"]]


def shared_connection(server: Server, starts: list[int], seconds: float) -> Rates:
    """One client with one connection, as of a machine with several readers in it."""
    handle = server.connect()
    at = list(starts)
    until = time.monotonic() + seconds
    running = 0

    def go_on(reader: int) -> None:
        nonlocal running
        buffer = nbd.Buffer(BLOCK)
        running += 1

        def done(error: Any) -> int:
            nonlocal running
            assert not getattr(error, "value", error)
            running -= 1
            at[reader] += BLOCK
            if time.monotonic() < until:
                waiting.append(reader)
            return 1

        handle.aio_pread(buffer, at[reader], done)

    waiting = list(range(len(starts)))
    while waiting or running:
        while waiting:
            go_on(waiting.pop())
        handle.poll(1000)
    handle.shutdown()
    return [(end - start) / seconds for start, end in zip(starts, at, strict=True)]


def qemu_readers(server: Server, starts: list[int], seconds: float) -> Rates:
    """Processes of qemu-io; each is given more to read than it can."""
    readers = [
        subprocess.Popen(
            ["qemu-io", "-r", "-f", "raw", server.uri],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in starts
    ]
    said = ["" for _ in starts]

    def write(number: int) -> None:
        reads = "".join(f"read {starts[number] + n * BLOCK} {BLOCK}\n" for n in range(20000))
        stdin = readers[number].stdin
        assert stdin
        with contextlib.suppress(BrokenPipeError):
            stdin.write(reads)
            stdin.flush()

    def read(number: int) -> None:
        stdout = readers[number].stdout
        assert stdout
        said[number] = stdout.read()

    threads = [
        threading.Thread(target=work, args=(number,))
        for work in (write, read)
        for number in range(len(starts))
    ]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    for reader in readers:
        reader.kill()
    for thread in threads:
        thread.join(30)
    for reader in readers:
        reader.wait()
    return [text.count("read 65536/65536") * BLOCK / seconds for text in said]


CLIENTS: dict[str, Callable[[Server, list[int], float], Rates]] = {
    "fio": fio_readers,
    "one connection": shared_connection,
    "qemu-io": qemu_readers,
}


def measure(folder: Path, policy: str, client: str, starts: list[int]) -> Rates:
    parameters = ("emulate=wd5000aaks", f"policy={policy}")
    with Server(folder, *parameters) as server:
        return CLIENTS[client](server, starts, READ_S)


@pytest.mark.parametrize("client", CLIENTS)
def test_four_readers_get_nearly_the_disks_speed(tmp_path: Path, client: str) -> None:
    tried = []
    for _ in range(ATTEMPTS):
        alone = [measure(tmp_path, "noop", client, [start])[0] for start in STARTS]
        rates = {
            policy: measure(tmp_path, policy, client, STARTS)
            for policy in ("noop", "deadline", "stream:deadline")
        }
        efficiency = sum(r / a for r, a in zip(rates["stream:deadline"], alone, strict=True))
        others = max(sum(rates["noop"]), sum(rates["deadline"]))
        gain = sum(rates["stream:deadline"]) / others
        tried.append((round(efficiency, 3), round(gain, 2)))
        # More than all there is: the reader alone was disturbed, so this tells nothing.
        if EFFICIENCY <= efficiency <= 1.02 and gain >= GAIN:
            print(f"{client}: efficiency {efficiency:.3f}, gain {gain:.1f}")
            return
    raise AssertionError(f"(efficiency, gain) of each attempt: {tried}")
