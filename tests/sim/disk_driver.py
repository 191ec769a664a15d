# SPDX-License-Identifier: GPL-2.0-only
"""Drive the mechanical disk's model, compiled here alone: a small disk, quick to go over wholly.

The times that tests expect are worked out a second time, sector by sector from the disk's map,
and not with the formulas of the model.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import tempfile
from typing import Any

from cffi import FFI
from said import ROOT

from streamsched import _build_core

READ, WRITE, FLUSH = 0, 1, 2
NEVER = (1 << 64) - 1
EINVAL, EBUSY = 22, 16
MS = 1_000_000
HEADERS = [f"disk/hdd{name}.h" for name in ("_params", "", "_drive", "_measure", "_media")]


@functools.cache
def disk_core() -> tuple[Any, Any]:
    """(ffi, lib) of the disk model alone: nothing of the rest of the core is in it."""
    builder = FFI()
    builder.cdef(_build_core.make_cdef(["cc"], ROOT, HEADERS))
    builder.set_source(
        "_disk_under_test",
        "".join(f'#include "{header}"\n' for header in HEADERS),
        sources=[
            *(str(path) for path in sorted((ROOT / "disk").glob("*.c"))),
            str(ROOT / "compat" / "rbtree.c"),
        ],
        include_dirs=[str(ROOT), str(ROOT / "compat")],
        extra_compile_args=["-std=gnu11", "-O2", "-include", "asm/types.h"],
    )
    with tempfile.TemporaryDirectory() as scratch:
        path = builder.compile(tmpdir=scratch)
        spec = importlib.util.spec_from_file_location("_disk_under_test", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module.ffi, module.lib


SMALL: dict[str, Any] = {
    "kind": 0, "capacity_sectors": 2 * (7 * 100 + 5 * 83 + 9 * 61) - 30, "actuators": 1,
    "interface_bytes_per_s": 300_000_000, "interface_unit_sectors": 8,
    "command_overhead_ns": 50_000, "overhead_ns": [50_000] * 8, "flush_ns": 3 * MS,
    "queue_depth": 32, "queue_order": 1,
    "queue_age_permille": 0, "queue_age_limit_ns": 100_000 * MS,
    "rotation_ns": 8_333_333, "surfaces": 2, "physical_sectors": 1,
    "nr_zones": 3, "zone_cylinders": [7, 5, 9], "zone_sectors_per_track": [100, 83, 61],
    "track_skew_ns": 1_100_001, "cylinder_skew_ns": 1_700_003,
    "head_switch_ns": 900_000, "write_settle_ns": 400_000,
    "nr_seek_points": 3, "seek_cylinders": [1, 5, 40], "seek_ns": [1_500_000, 2_500_000, 9_000_000],
    "segments": 4, "segment_sectors": 64, "readahead_sectors": 32, "segment_keeps_read": 1,
    "write_cache_sectors": 96, "write_cache_extents": 6, "write_idle_ns": 4 * MS,
}  # fmt: skip
FLAT: dict[str, Any] = {
    "kind": 1, "capacity_sectors": 100_000, "queue_depth": 32, "flush_ns": MS,
    "interface_bytes_per_s": 600_000_000, "command_overhead_ns": 3_000,
    "flat_channels": 4, "flat_read_ns": 60_000, "flat_write_ns": 20_000,
    "flat_read_bytes_per_s": 500_000_000, "flat_write_bytes_per_s": 400_000_000,
}  # fmt: skip
# The same without what the drive does on its own.
BARE = SMALL | {"readahead_sectors": 0, "write_cache_sectors": 0, "segments": 1}


class Drive:
    """A disk of the model and the commands in it, which C must not lose."""

    calls = "hdd_"  # what its functions begin with

    def __init__(self, params: dict[str, Any], **changes: Any) -> None:
        self.ffi, self.lib = disk_core()
        self.params = self.ffi.new("struct hdd_params *", params | changes)
        self.inside: dict[int, Any] = {}
        self.hdd = self.memory()
        why = self.ffi.new("const char **")
        assert self.call("init", self.params, why) == 0, self.ffi.string(why[0])

    def memory(self) -> Any:
        """Of the disk, for those parameters."""
        return self.ffi.new("struct hdd *")

    def call(self, name: str, *arguments: Any) -> Any:
        return getattr(self.lib, self.calls + name)(self.hdd, *arguments)

    def submit(self, op: int, sector: int, nr: int, now: int, fua: bool = False) -> Any:
        cmd = self.ffi.new("struct hdd_cmd *")
        cmd.op, cmd.sector, cmd.nr_sectors, cmd.fua = op, sector, nr, fua
        self.inside[int(self.ffi.cast("uintptr_t", cmd))] = cmd
        self.call("submit", cmd, now)
        return cmd

    def next(self) -> int:
        return int(self.call("next_ns"))

    def pop(self, now: int) -> Any:
        """A command that is done, or None; it must be one of those inside."""
        cmd = self.call("pop", now)
        if cmd == self.ffi.NULL:
            return None
        return self.inside.pop(int(self.ffi.cast("uintptr_t", cmd)))

    def drain(self) -> list[Any]:
        """All that is inside, in order of completion."""
        done = []
        while self.next() != NEVER:
            cmd = self.pop(self.next())
            assert cmd is not None
            done.append(cmd)
        return done

    def one(self, op: int, sector: int, nr: int, now: int, fua: bool = False) -> Any:
        """A command alone in the disk, popped."""
        cmd = self.submit(op, sector, nr, now, fua)
        assert self.pop(self.next()) is cmd
        return cmd

    def map(self, sector: int) -> tuple[int, int, int]:
        """Cylinder, head and angle."""
        out = self.ffi.new("u32[3]")
        self.lib.hdd_map(self.hdd, sector, out, out + 1, out + 2)
        return out[0], out[1], out[2]

    def dirty(self) -> list[tuple[int, int]]:
        """What the write cache holds: [first, end)."""
        held = []

        def look(node: Any) -> None:
            if node != self.ffi.NULL:
                look(node.rb_left)
                piece = self.ffi.cast("struct hdd_dirty *", node)
                place = (piece.cylinder, piece.head, piece.angle_ns)
                assert place == self.map(piece.sector)
                held.append((piece.sector, piece.sector + piece.nr_sectors))
                look(node.rb_right)

        look(self.hdd.dirty_tree.rb_node)
        assert len(held) == self.hdd.nr_dirty
        return held

    def seek(self, cylinders: int) -> int:
        return int(self.lib.hdd_seek_time_ns(self.hdd, cylinders))

    def passing_ns(self, first: int, end: int) -> int:
        """From the start of @first to the start of @end under the head, step by step."""
        angles = [self.map(sector)[2] for sector in range(first, end + 1)]
        return sum((b - a) % self.params.rotation_ns for a, b in itertools.pairwise(angles))

    def same_track(self, a: int, b: int) -> bool:
        return self.map(a)[:2] == self.map(b)[:2]


def check_dirty(drive: Drive, params: dict[str, Any]) -> None:
    """The write cache is in order, disjoint, not beyond its size."""
    pieces = drive.dirty()
    assert all(a < b for a, b in pieces)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(pieces))
    assert sum(b - a for a, b in pieces) == drive.hdd.dirty_sectors
    assert drive.hdd.dirty_sectors <= params.get("write_cache_sectors", 0)


def drive_memory(params: Any) -> tuple[Any, Any]:
    """A struct hdd_drive, and the memory it is in, which must be kept."""
    ffi, lib = disk_core()
    memory = ffi.new("char[]", lib.hdd_drive_bytes(params))
    return ffi.cast("struct hdd_drive *", memory), memory
