# SPDX-License-Identifier: GPL-2.0-only
"""Which streamsched this is: results of another one may differ, even if it has the same version."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import streamsched
from streamsched._core import ffi, lib

# What makes results, beside the C: that a sentence of the command line is another one is no reason
# to simulate again.
SOURCES = ("api.py", "base/*.py", "work/*.py", "sim/*.py", "study/cell.py", "study/plan.py")


@functools.cache
def program() -> str:
    """The version, and a digest of the C that was compiled and of the Python that is beside it."""
    found = hashlib.sha256(ffi.string(lib.sources_sha256))
    package = Path(__file__).parents[1]
    for path in sorted(path for pattern in SOURCES for path in package.glob(pattern)):
        found.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return f"{streamsched.__version__}-{found.hexdigest()[:12]}"
