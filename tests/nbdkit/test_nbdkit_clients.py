# SPDX-License-Identifier: GPL-2.0-only
"""Clients that are killed with requests in flight."""

from __future__ import annotations

import configparser
import contextlib
import re
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest
from nbd_server import Server, connected, image, needs_plugin, wait_until
from said import ran

pytestmark = needs_plugin

MIB = 1 << 20
BLOCK = 4096
BLOCKS = 64
KILLS = 8
# Large reads whose answers wait to be sent, and beside them one write after the other, each told
# as soon as it is answered.
CLIENT = f"""
import nbd, sys
handle = nbd.NBD()
handle.connect_uri(sys.argv[1])
version = int(sys.argv[2])
buffers = [nbd.Buffer({2 * MIB}) for _ in range(12)]
while True:
    while handle.aio_in_flight() < len(buffers):
        handle.aio_pread(buffers[handle.aio_in_flight()], 0, lambda error: 1)
    version += 1
    block = version % {BLOCKS}
    data = version.to_bytes(8, "little") * {BLOCK // 8}
    handle.pwrite(data, block * {BLOCK}, nbd.CMD_FLAG_FUA)
    print(version, flush=True)
"""


def nbdkit_version() -> tuple[int, ...]:
    said = ran("nbdkit", "--version", check=True)
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", said.stdout)
    assert found
    return tuple(map(int, found.groups()))


# These abort when one of a client's answers cannot be sent and another one is to be.
FIRST_THAT_ABORTS, FIRST_MENDED = (1, 32, 4), (1, 33, 10)
ASSERTION = "raw_send_socket: Assertion `sock >= 0' failed"


def kill_a_client(server: Server, version: int) -> int:
    """Let it write from @version on for a while; the last that it was promised."""
    client = subprocess.Popen(
        ["/usr/bin/python3", "-c", CLIENT, server.uri, str(version)], stdout=subprocess.PIPE
    )
    assert client.stdout
    try:
        for _ in range(20):
            assert client.stdout.readline()
    finally:
        client.send_signal(signal.SIGKILL)
        rest = client.stdout.read().split()
        client.wait()
    return int(rest[-1]) if rest else version + 20


def has_noticed(server: Server, metrics: Path) -> bool:
    """No connection is left whose answers could still be sent, or the server has ended."""
    return server.has_ended() or set(
        re.findall(r'connection="(\d+)"', server.metrics(metrics))
    ) == {"0"}


@pytest.mark.parametrize("direct", ["detect", "no"])
def test_clients_that_are_killed(tmp_path: Path, direct: str) -> None:
    """Nothing promised is lost; the server goes on, or can be started again where nbdkit aborts."""
    disk, metrics = image(tmp_path / "disk", 4 * MIB), tmp_path / "metrics"
    own = (str(disk), f"direct={direct}", f"metrics={metrics}", "force=yes")
    version, ended = 0, 0
    with contextlib.ExitStack() as servers:
        server = servers.enter_context(Server(tmp_path, *own))
        for _ in range(KILLS):
            promised = kill_a_client(server, version)
            wait_until(partial(has_noticed, server, metrics), "the connection is closed")
            if server.has_ended():
                assert ASSERTION in server.text(), server.text()
                assert FIRST_THAT_ABORTS <= nbdkit_version() < FIRST_MENDED
                assert server.process and server.process.returncode == -signal.SIGABRT
                ended += 1
                server = servers.enter_context(Server(tmp_path, *own))
            found = written(server)
            for back in range(min(BLOCKS, promised)):
                block = (promised - back) % BLOCKS
                assert found[block] >= promised - back, f"block {block}"
            version = max(found)
    print(f"{KILLS} clients killed, nbdkit ended {ended} times")


def written(server: Server) -> list[int]:
    """The version of each block."""
    with connected(server) as (handle,):
        data = bytes(handle.pread(BLOCKS * BLOCK, 0))
    blocks = [data[i : i + BLOCK] for i in range(0, len(data), BLOCK)]
    assert all(block == block[:8] * (BLOCK // 8) for block in blocks)
    return [int.from_bytes(block[:8], "little") for block in blocks]


def test_systemd_starts_it_again() -> None:
    folder = Path(__file__).resolve().parents[2] / "nbdkit" / "systemd"
    unit = configparser.ConfigParser(interpolation=None)
    unit.read(folder / "streamsched-nbd.service")
    # After an abort; not where a parameter is refused, which exits with a status.
    assert unit["Service"]["Restart"] == "on-abnormal"
    assert int(unit["Unit"]["StartLimitBurst"]) > 5
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is missing: install the Debian package systemd")
    done = ran("systemd-analyze", "verify", "--man=no", *folder.glob("streamsched-nbd.*"))
    assert done.returncode == 0 and "streamsched-nbd" not in done.stderr, done.stderr
