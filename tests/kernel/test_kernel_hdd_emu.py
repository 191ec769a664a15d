# SPDX-License-Identifier: GPL-2.0-only
"""The emulated disk of the kernel (kernel/hdd-emu/), in the rig's real kernel and virtual time.

What runs there is in hdd_emu_guest.py, on the kernel that RIG_VARIANT names (rig_driver.py).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hdd_emu_guest as guest
import pytest
from hdd_emu_guest import OTHERS, RANGES, READ_ONLY, U32, U64, small
from rig_driver import ROOT, VARIANT, in_rig
from said import COMMAND

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.hosts import hddemu
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.sim.simulate import drive_memory

pytestmark = pytest.mark.e2e


def model_times(core: tuple[Any, Any], disk: Disk, commands: list[list[int]]) -> list[int]:
    """When the model alone is done with each of (op, sector, sectors, submit_ns), one by one."""
    ffi, lib = core
    params, why = ffi.new("struct hdd_params *", disk.params()), ffi.new("const char **")
    drive = drive_memory(params)
    assert lib.hdd_drive_init(drive, params, why) == 0
    done = []
    for op, sector, sectors, submit_ns in commands:
        command = ffi.new("struct hdd_cmd *")
        command.op, command.sector, command.nr_sectors = op, sector, sectors
        lib.hdd_drive_submit(drive, command, submit_ns)
        popped = ffi.NULL
        while popped == ffi.NULL:
            popped = lib.hdd_drive_pop(drive, lib.hdd_drive_next_ns(drive))
        assert popped == command
        done.append(int(command.done_ns))
    return done


# Attributes.


def test_attributes() -> None:
    """There is one for every field of struct hdd_params; each takes its range and no more."""
    names = in_rig(guest.attributes)
    assert names == sorted([*RANGES, *OTHERS, *READ_ONLY])
    assert set(load_disk("ssd").params()) <= set(names)


def test_ranges_are_the_models(core: tuple[Any, Any]) -> None:
    """What the attributes take, hdd_drive_init() takes; what they refuse, it refuses."""
    ffi, lib = core
    for base in (load_disk("exos-x18"), load_disk("ssd")):
        for name, value in base.params().items():
            # An unlimited field cannot be exceeded.
            least, most = RANGES[name]
            if most in (U32, U64) or base.kind != int(name.startswith("flat_")):
                continue
            for wrong in (least - 1, most + 1):
                if wrong < 0:
                    continue
                params = ffi.new("struct hdd_params *", base.params())
                if isinstance(value, list):
                    getattr(params, name)[0] = wrong
                else:
                    setattr(params, name, wrong)
                why = ffi.new("const char **")
                drive = drive_memory(params)
                assert lib.hdd_drive_init(drive, params, why) < 0, (name, wrong)


def test_other_attributes() -> None:
    """Switches, ranges; and what cannot be changed while the disk is on."""
    in_rig(guest.other_attributes)


def test_switching_on() -> None:
    """Only complete and consistent disks; switched off only when closed."""
    in_rig(guest.switching_on)


def test_limits() -> None:
    """What the block layer is told of a disk."""
    in_rig(guest.limits)


def test_access_ranges() -> None:
    """A disk of two actuators says so, and keeps its data in both halves and between them."""
    in_rig(guest.access_ranges)


# Times.


@pytest.mark.parametrize("name", ["wd5000aaks", "exos-x18", "exos-2x18", "archive-8tb", "ssd"])
def test_each_commands_time_is_the_models(core: tuple[Any, Any], name: str) -> None:
    """One at a time, reads and writes, near and far, after pauses: all within 5 us.

    Looking at the clock costs as much in the rig.
    """
    times = in_rig(guest.times, name)
    model = model_times(core, load_disk(name), times["commands"])
    late = [end - done for end, done in zip(times["ends"], model, strict=True)]
    assert min(late) >= 0 and max(late) <= 5000, (min(late), max(late))


# fio and the simulator have random numbers of their own: with so many requests, the rates of two
# such runs differ by 0.7 % at most (one standard deviation: exos-x18 with 32 at once).
JOBS = {
    "sequential-1": "rw=read bs=128k ioengine=psync size=256m",
    "sequential-32": "rw=read bs=128k ioengine=libaio iodepth=32 size=256m",
    "random-1": "rw=randread bs=4k ioengine=psync size=100g io_size=24m norandommap",
    "random-32": "rw=randread bs=4k ioengine=libaio iodepth=32 size=100g io_size=96m norandommap",
}


def simulated_rate(text: str, disk: str, folder: Path) -> float:
    job = folder / "job.fio"
    job.write_text("[job]\ndirect=1\n" + "\n".join(text.split()) + "\n")
    depth = str(load_disk(disk).queue_depth)
    command = [str(COMMAND), "run", str(job), "--disk", disk]
    run = subprocess.run(
        [*command, "--policy", "noop", "--queue-depth", depth, "--output", "json"],
        stdout=subprocess.PIPE,
        check=True,
    )
    return float(json.loads(run.stdout)["runs"][0]["throughput_mb_s"])


@pytest.mark.parametrize("disk", ["wd5000aaks", "exos-x18"])
def test_fio_agrees_with_the_simulator(disk: str, tmp_path: Path) -> None:
    """Sequential and random reads at depth 1 and 32: within 2 %."""
    kernel = in_rig(guest.fio_rates, disk, JOBS)
    for name, text in JOBS.items():
        simulated = simulated_rate(text, disk, tmp_path)
        assert kernel[name] == pytest.approx(simulated, rel=0.02), name


def test_two_disks_at_once() -> None:
    """Neither is slowed down by the other."""
    alone, together = in_rig(guest.two_disks)
    assert together == pytest.approx(alone, rel=0.02)


# Data.


@pytest.mark.parametrize("seed", range(3))
def test_integrity(seed: int) -> None:
    """Random reads, writes, zeroing and discards of 1 to 5000 sectors against a copy."""
    assert in_rig(guest.integrity, seed) > 50_000


def test_fio_verify() -> None:
    """fio writes, trims and verifies, with and without a scheduler."""
    in_rig(guest.fio_verify, timeout_s=600)


def test_memory() -> None:
    """A write that needs more than the limit, or than there is, fails; others go on."""
    in_rig(guest.memory_limit)


# Flushes and failing power.


def test_power_cut() -> None:
    """What was flushed or written with FUA stays; what the cache held is lost."""
    in_rig(guest.cut)


@pytest.mark.parametrize("seed", range(6))
def test_crashes(seed: int) -> None:
    """Whatever the order, a cut leaves each sector at its flushed version or a later one."""
    counts = in_rig(guest.crashes, seed)
    assert counts["lost"] > 100 and counts["kept"] > 100, counts


def test_ext4_keeps_what_was_synced() -> None:
    """A file system with a journal comes through five failures of power."""
    in_rig(guest.ext4)


# Faults.


def test_faults() -> None:
    """Errors, delays and silence concern their ranges only."""
    times = in_rig(guest.faults)
    assert 3 <= times["timeout"] <= 12, times  # the block layer looks every few seconds
    assert 20 <= times["slow"] < 20.1, times


# Coming and going.


def test_a_hundred_times() -> None:
    """Made, used and removed again and again; the memory comes back.

    KASAN keeps a thirty-second of all memory from being used again (QUARANTINE_FRACTION in its
    mm/kasan/quarantine.c); there kmemleak says whether something is lost.
    """
    before, after = in_rig(guest.hundred)
    kept = (1 << 30) // 32 if VARIANT == "kasan" else 0
    assert after > before - (2 << 20) - kept, (before, after)


def test_unplugged() -> None:
    """rmdir tears a disk out, even one that is mounted and has commands in it."""
    in_rig(guest.unplugged)


def test_unloading() -> None:
    """Not while there are disks."""
    in_rig(guest.unloading)


# The Python side, and the documentation.


def test_python_errors(tmp_path: Path) -> None:
    """Where there is no module, no disk or a second one, it says so."""
    with pytest.raises(StreamschedError, match="modprobe hdd-emu"):
        hddemu.create("d0", small(), configfs=tmp_path / "none")
    (tmp_path / "d0").mkdir()
    with pytest.raises(UsageError, match="there is a disk of this name already"):
        hddemu.create("d0", small(), configfs=tmp_path)
    with pytest.raises(UsageError, match="there is no disk of this name"):
        hddemu.remove("d1", configfs=tmp_path)
    with pytest.raises(UsageError, match="there is no such attribute"):
        hddemu.create("d2", small(), configfs=tmp_path)
    assert not (tmp_path / "d2").exists()


def test_python_commands() -> None:
    """create, remove and script; errors with the kernel's reason."""
    in_rig(guest.python)


def examples() -> Iterator[str]:
    """The shell examples of the documentation, in their order."""
    text = (ROOT / "docs" / "sim" / "HDD-EMU.md").read_text()
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if "modprobe" not in block:
            yield block


def test_documentation() -> None:
    """Its examples work, one after the other; it names every attribute."""
    in_rig(guest.examples, list(examples()))
    text = (ROOT / "docs" / "sim" / "HDD-EMU.md").read_text()
    for name in [*RANGES, *OTHERS, *READ_ONLY]:
        assert f"`{name}`" in text, name
