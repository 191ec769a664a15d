# SPDX-License-Identifier: GPL-2.0-only
"""A trace instance of our own, on a made-up tracefs: what is asked for, and what is read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamsched.base.tracing import Instance

EVENTS = ("block_rq_complete", "stream/stream_choose")
PARTS = (
    *("events/block", "events/block/block_rq_complete"),
    *("events/stream", "events/stream/stream_choose"),
)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Instance, int]]:
    """The instance of disk 8:16, and where the kernel writes what it has traced."""
    make: Callable[[Path], None] = Path.mkdir

    def made(folder: Path) -> None:
        """As the kernel fills it."""
        for name in ("", "events", *PARTS):
            make(folder / name)
        os.mkfifo(folder / "trace_pipe")

    (tmp_path / "instances").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", made)
        instance = Instance("test", (8, 16), EVENTS, tmp_path)
    (folder,) = (tmp_path / "instances").iterdir()
    writer = os.open(folder / "trace_pipe", os.O_WRONLY)
    yield instance, writer
    os.close(writer)
    instance.close()


def test_events_are_those_of_one_disk(kernel: tuple[Instance, int], tmp_path: Path) -> None:
    """The kernel has 20 bits for a device's minor number."""
    filters = [path.read_text() for path in tmp_path.glob("instances/*/events/*/*/filter")]
    assert filters == [f"dev == {(8 << 20) + 16}"] * 2
    enabled = tmp_path.glob("instances/*/events/*/*/enable")
    assert [path.read_text() for path in enabled] == ["1"] * 2


def test_a_line_that_comes_in_two_parts_is_one(kernel: tuple[Instance, int]) -> None:
    instance, writer = kernel
    assert instance.lines() == []
    os.write(writer, b"one\ntw")
    assert instance.lines() == ["one"]
    os.write(writer, b"o\nthree\n")
    assert instance.lines() == ["two", "three"]


def test_what_a_killed_process_left_goes_with_the_next(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    instances = tmp_path / "instances"
    mine, others = f"streamsched-sda-{os.getpid()}", f"perf-{ended.pid}"
    for name in (f"streamsched-sda-{ended.pid}", mine, others):
        (instances / name).mkdir(parents=True)
    with pytest.raises(FileNotFoundError):  # there are no events here
        Instance("sdb", (8, 16), ["block_rq_issue"], tmp_path)
    assert sorted(path.name for path in instances.iterdir()) == sorted([mine, others])
