# SPDX-License-Identifier: GPL-2.0-only
"""The Python interface: work on a disk, under some policies, in the simulator.

The command line uses it too. What is documented for users is `simulate()`, `Job`, `Trace`, `Disk`
and `Result` (docs/sim/PYTHON.md); all of them are there as `streamsched.simulate` and so on.
"""

from __future__ import annotations

from streamsched.api.call import simulate
from streamsched.api.result import Result
from streamsched.api.work import Job
from streamsched.base.errors import StreamschedError, UsageError
from streamsched.sim.diskfile import Disk
from streamsched.sim.policies import register_policy
from streamsched.sim.tasks import Trace

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
