# SPDX-License-Identifier: GPL-2.0-only
"""Read job files of which a test writes a few lines."""

from __future__ import annotations

import shutil

import pytest

from streamsched.work.jobfile import parse_jobs
from streamsched.work.process import Process

K, M, G = 1024, 1024**2, 1024**3
DISK = 100 * M
FIO = shutil.which("fio")
needs_fio = pytest.mark.skipif(FIO is None, reason="fio is not installed")


def jobs(text: str, **options: object) -> list[Process]:
    """The processes of a file of which one line each is given."""
    given: dict[str, object] = {"capacity_bytes": DISK, "environ": {}, **options}
    return parse_jobs(text, "a.fio", **given)  # type: ignore[arg-type]


def job(*lines: str, **options: object) -> Process:
    """The one process of a section with these lines."""
    (process,) = jobs("\n".join(("[a]", "size=1m", *lines)), **options)
    return process


def places(text: str, **options: object) -> list[tuple[int, int]]:
    """Offset and size of each process."""
    return [(process.offset, process.size) for process in jobs(text, **options)]
