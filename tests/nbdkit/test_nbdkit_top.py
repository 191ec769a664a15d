# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched top` beside a real network server, by the file that its metrics= writes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from nbd_server import Server, image, needs_plugin
from said import COMMAND

pytestmark = needs_plugin

MIB = 1 << 20


def test_connections_are_parties(tmp_path: Path) -> None:
    disks = [image(tmp_path / name, 4 * MIB, b"data") for name in "ab"]
    file = tmp_path / "nbd.prom"
    files = [f"file={disk}" for disk in disks]
    server = Server(tmp_path, *files, "chunk=64k", f"metrics={file}", "metrics-interval=1")
    with server.serving(2) as (_, often, seldom):
        top = subprocess.Popen(
            [COMMAND, "top", file, "--once", "--output", "json"], stdout=subprocess.PIPE
        )
        number = 0
        while top.poll() is None:
            often.pread(65536, number % 128 * 65536)
            if not number % 3:
                seldom.pread(65536, number % 128 * 65536)
            number += 1
        assert top.stdout
        found = json.loads(top.stdout.read())
        assert top.returncode == 0
    first, second = found["disks"]
    assert (first["name"], second["name"]) == ("nbd.prom 0", "nbd.prom 1")
    # Chunk by chunk: both members have the same to do.
    assert first["mb_s"] > 0 and 0.8 < first["mb_s"] / second["mb_s"] < 1.25
    more, less = sorted(first["rows"], key=lambda row: -row["mb_s"])
    assert more["kind"].startswith("conn ") and less["kind"].startswith("conn ")
    assert 2.5 < more["requests_s"] / less["requests_s"] < 3.5
    assert more["share"] + less["share"] == 1 and 0.7 < more["share"] < 0.8
    assert more["mb_s"] + less["mb_s"] > 0.8 * (first["mb_s"] + second["mb_s"])
