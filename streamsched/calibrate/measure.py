# SPDX-License-Identifier: GPL-2.0-only
"""All that `streamsched calibrate` measures on a disk, in its order (docs/guide/CALIBRATE.md).

The parts are in commands.py, tracks.py, arm.py and caches.py, what they find is in found.py.
"""

from __future__ import annotations

from streamsched.calibrate.arm import Arm
from streamsched.calibrate.caches import Caches
from streamsched.calibrate.found import Flat, Mechanics
from streamsched.calibrate.tracks import Tracks


class Meter(Tracks, Arm, Caches):
    """Measures one disk."""

    def measure(
        self, *, overwrite: bool = False, queue_depth: int | None = None
    ) -> Mechanics | Flat:
        """Everything; what kind of disk it is shows first.

        With @overwrite also what only writing shows.
        """
        self.bus = self.measure_bus()
        if self.is_flat(self.bus):
            return self.measure_flat()
        self.rotation_ns, rotation_error_ns = self.measure_rotation()
        self.geometry = self.measure_zones(self.bus)
        curve = self.measure_curve()
        seeks = self.measure_seeks()
        cache = self.measure_cache()
        self.progress("cache", 1.0)
        write_out = self.measure_write_out(queue_depth) if overwrite else None
        return Mechanics(
            bus=self.bus,
            geometry=self.geometry,
            curve=curve,
            seeks=seeks,
            cache=cache,
            random_read_ns=self.random_ns,
            rotation_error_ns=rotation_error_ns,
            dropped=self.dropped,
            samples=self.samples,
            write_out=write_out,
        )
