# SPDX-License-Identifier: GPL-2.0-only
"""A simulation that has been played to its end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from streamsched.sim.simulate import Setup, Simulation
from streamsched.work.process import Process


@contextlib.contextmanager
def finished(setup: Setup, work: Iterable[Process], log: int = 1_000_000) -> Iterator[Simulation]:
    """When all of @work is done; its log has as many of the disk's requests, 0 for all."""
    with Simulation(setup) as simulation:
        for process in work:
            simulation.add(process)
        simulation.log(log)
        for _ in simulation.steps():
            pass
        yield simulation
