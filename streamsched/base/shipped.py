# SPDX-License-Identifier: GPL-2.0-only
"""What comes with the program: disks, job files, traces."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def shipped(folder: str) -> Path:
    """Where the files of @folder are: in the installed package, or in the source tree."""
    installed = Path(str(resources.files("streamsched"))) / "data" / folder
    if installed.is_dir():
        return installed
    return Path(__file__).resolve().parents[2] / folder
