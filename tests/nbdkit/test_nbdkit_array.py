# SPDX-License-Identifier: GPL-2.0-only
"""The plugin's stripe set, its members coordinated (nbdkit/array.c), on emulated disks."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest
from nbd_server import Server, image, needs_plugin, refused

pytestmark = needs_plugin

CHUNK = 64 << 10
PART = 96 << 20  # of each reader
READERS = 3
MEMBERS = 3
LONGEST_S = 120


def stripes(folder: Path) -> list[str]:
    """The members' files: chunk k of the export begins with k."""
    files = []
    for i in range(MEMBERS):
        path = image(folder / f"d{i}", READERS * PART // MEMBERS)
        with path.open("r+b") as file:
            for chunk in range(i, READERS * PART // CHUNK, MEMBERS):
                file.seek(chunk // MEMBERS * CHUNK)
                file.write(chunk.to_bytes(8, "little"))
        files.append(f"file={path}")
    return files


def array_metrics(server: Server, file: Path) -> dict[str, int]:
    """The stripe set's lines, written anew."""
    text = server.metrics(file)
    found = re.findall(r"^streamsched_array_(\w+)_total (\d+)$", text, re.MULTILINE)
    return {name: int(value) for name, value in found}


@pytest.mark.parametrize("coordinate", ["detect", "no"])
def test_readers_of_a_stripe_set(tmp_path: Path, coordinate: str) -> None:
    """Turns when coordinated, none when not; what is read is right, and all threads end."""
    file = tmp_path / "metrics"
    own = (f"chunk={CHUNK}", f"coordinate={coordinate}", "emulate=wd5000aaks", f"metrics={file}")
    stop = threading.Event()
    wrong: list[int] = []

    with Server(tmp_path, *stripes(tmp_path), *own).serving(READERS) as (server, *handles):

        def read(which: int) -> None:
            chunks = PART // CHUNK
            at = 0
            while not stop.is_set():
                chunk = which * chunks + at % chunks
                data = handles[which].pread(CHUNK, chunk * CHUNK)
                if int.from_bytes(data[:8], "little") != chunk:
                    wrong.append(chunk)
                at += 1

        threads = [threading.Thread(target=read, args=(i,)) for i in range(READERS)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + (LONGEST_S if coordinate == "detect" else 2)
        counted = array_metrics(server, file)
        while time.monotonic() < until and counted.get("turns", 0) < 3:
            time.sleep(0.2)
            counted = array_metrics(server, file)
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
    if coordinate == "no":
        assert counted == {}
    else:
        assert counted["turns"] >= 3 and counted["streams"] >= 1


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (["policy=deadline"], "coordinate=yes: the policy is not stream"),
        (["rotational=no"], "coordinate=yes: the disks do not rotate"),
        (["chunk=2M"], "coordinate=yes: chunks are larger than 1m"),
    ],
)
def test_what_cannot_be_coordinated(tmp_path: Path, parameters: list[str], sentence: str) -> None:
    files = [f"file={image(tmp_path / name, 64 << 20)}" for name in "ab"]
    assert refused(*files, "coordinate=yes", *parameters) == sentence


def test_one_file_is_no_stripe_set(tmp_path: Path) -> None:
    file = image(tmp_path / "a", 1 << 20)
    assert refused(str(file), "coordinate=yes") == "coordinate=yes: only with several files"
    assert "detect" in refused(str(file), "coordinate=perhaps")
