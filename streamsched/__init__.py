# SPDX-License-Identifier: GPL-2.0-only
"""Stream scheduling for rotating disks, and the simulator that shows what it does."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("streamsched")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+source"
