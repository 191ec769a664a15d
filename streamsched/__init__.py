# SPDX-License-Identifier: GPL-2.0-only
"""Stream scheduling for rotating disks, and the simulator that shows what it does."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("streamsched")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+source"

TYPE_CHECKING = False  # typing's, whose import takes longer than all the rest here
if TYPE_CHECKING:
    from streamsched.api import (
        Disk,
        Job,
        Result,
        StreamschedError,
        Trace,
        UsageError,
        register_policy,
        simulate,
    )

# What is documented for users (docs/sim/PYTHON.md). It is imported when it is asked for: the
# command line is to answer at once.
__all__ = [
    "Disk",
    "Job",
    "Result",
    "StreamschedError",
    "Trace",
    "UsageError",
    "register_policy",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'streamsched' has no attribute {name!r}")
    from streamsched import api

    return getattr(api, name)
