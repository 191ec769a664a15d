# SPDX-License-Identifier: GPL-2.0-only
"""Stream scheduling for rotating disks, and the simulator that shows what it does."""

TYPE_CHECKING = False  # typing's, whose import takes longer than all the rest here
if TYPE_CHECKING:
    __version__: str
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


def _version() -> str:
    # Its import takes a third of the time that the command line needs to answer.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("streamsched")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0+source"


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _version()
    if name not in __all__:
        raise AttributeError(f"module 'streamsched' has no attribute {name!r}")
    from streamsched import api

    return getattr(api, name)
