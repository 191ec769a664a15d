# SPDX-License-Identifier: GPL-2.0-only
"""Trace instances: whose they are, and when they go."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from streamsched.base.tracing import Instance


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
