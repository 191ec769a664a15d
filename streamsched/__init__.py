# SPDX-License-Identifier: GPL-2.0-only
"""Stream scheduling for rotating disks, and the simulator that shows what it does."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("streamsched")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+source"

TYPE_CHECKING = False  # typing's, whose import takes longer than all the rest here
if TYPE_CHECKING:
    from streamsched.sim.pythonpolicy import Maker


def register_policy(name: str, policy: Maker) -> None:
    """Have the simulator know a policy in Python, a class, by @name: docs/POLICY-IN-PYTHON.md."""
    from streamsched.sim import policies

    policies.register_policy(name, policy)
