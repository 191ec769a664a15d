# SPDX-License-Identifier: GPL-2.0-only
"""Arrays that the kernel drives, with their members' schedulers coordinated: `streamsched array`.

The layout comes from what md has in sysfs, or from the table of device mapper. It is written to
configfs, where stream-array-configfs.c of kernel/iosched/ takes it from. The array is not touched.
"""

from __future__ import annotations

import dataclasses
import os
import stat
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from streamsched.base.configfs import refused, write
from streamsched.base.errors import StreamschedError, UsageError, given
from streamsched.sim.array import MOST_MEMBERS, PARITIES, PARITY_LAYOUTS, WITHOUT_CHUNKS, Array

MODULE = "stream"
CONFIGFS = Path("/sys/kernel/config/stream-array")
SYSFS = Path("/sys")
# As md has them: near copies | far copies << 8 | 1 << 16 where far copies are at an offset.
RAID10_LAYOUTS = {0x102: "near", 0x201: "far", 0x10201: "offset"}
LEVELS = ("raid0", "raid1", "raid5", "raid6", "raid10", "linear")


@dataclasses.dataclass(frozen=True)
class Member:
    """Which part of which whole disk an array has."""

    disk: str  # as in /sys/block
    number: str  # of the disk, MAJOR:MINOR
    start_sector: int
    sectors: int


@dataclasses.dataclass(frozen=True)
class KernelArray:
    """An array as the kernel has it; a member that is None is missing."""

    name: str
    shape: Array
    members: tuple[Member | None, ...]

    @property
    def present(self) -> list[Member]:
        """Those that are there."""
        return [member for member in self.members if member]

    def attributes(self) -> dict[str, str]:
        """What is written to configfs, in this order."""
        lines = [
            f"{member.number} {member.start_sector} {member.sectors}" if member else "missing"
            for member in self.members
        ]
        shape = self.shape
        fixed = {"level": shape.level, "layout": shape.layout}
        if shape.level not in WITHOUT_CHUNKS:
            fixed["chunk_sectors"] = str(shape.chunk_sectors)
        return {**fixed, "members": "\n".join(lines)}


def kernel_name(device: str) -> str:
    """The kernel's name of block device @device, as md0."""
    try:
        status = Path(device).stat()
    except OSError as error:
        raise UsageError(f"{device}: {error.strerror}; name an array, as in /dev/md0") from None
    if not stat.S_ISBLK(status.st_mode):
        raise UsageError(f"{device}: is no block device; name an array, as in /dev/md0")
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    return (SYSFS / "dev/block" / number).resolve().name


def dm_table(called: str) -> str:
    """The table of the device that device mapper calls @called, one line for each target."""
    try:
        done = subprocess.run(
            ["dmsetup", "table", called], capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise StreamschedError("dmsetup is missing: install the Debian package dmsetup") from None
    except subprocess.CalledProcessError as error:
        raise StreamschedError(f"{called}: dmsetup: {error.stderr.strip()}") from None
    return done.stdout


def read_array(
    name: str, sysfs: Path = SYSFS, table: Callable[[str], str] = dm_table
) -> KernelArray:
    """What the kernel says of array @name; UsageError when it cannot be coordinated."""
    folder = sysfs / "block" / name
    if (folder / "md").is_dir():
        try:
            return _read_md(name, folder / "md", sysfs)
        except (OSError, ValueError, IndexError):
            # A member went, or a reshape began, between two of its files.
            raise UsageError(f"{name}: changed while its state was read; try again") from None
    if (folder / "dm").is_dir():
        return _read_dm(name, folder, sysfs, table)
    raise UsageError(f"{name}: is neither an md array nor a device of device mapper")


def _text(path: Path) -> str:
    return path.read_text().strip()


def _member(array: str, device: str, start_sector: int, sectors: int, sysfs: Path) -> Member:
    """@device, a disk or a partition of one, by its name in /sys/class/block."""
    folder = (sysfs / "class/block" / device).resolve()
    if (folder / "partition").exists():
        start_sector += int(_text(folder / "start"))
        folder = folder.parent
    if "[" not in _text(folder / "queue/scheduler"):
        raise UsageError(
            f"{array}: its member {device} has no scheduler; disks and their partitions have"
        )
    return Member(folder.name, _text(folder / "dev"), start_sector, sectors)


# ---- md ----


def _read_md(name: str, folder: Path, sysfs: Path) -> KernelArray:
    level, state = _text(folder / "level"), _text(folder / "array_state")
    if state in ("clear", "inactive"):
        raise UsageError(f"{name}: is not running (its array_state is {state})")
    if level not in LEVELS:
        raise UsageError(f"{name}: is {level or 'of no level'}, none of {', '.join(LEVELS)}")
    if _is_reshaped(folder):
        raise UsageError(f"{name}: is being reshaped; attach it when that is done")
    shape = _md_shape(name, folder, level)
    # 0 where each member gives what it has.
    component = 2 * int(_text(folder / "component_size"))
    members: list[Member | None] = [None] * shape.members
    for one in sorted(folder.glob("dev-*")):
        slot, states = _text(one / "slot"), _text(one / "state").split(",")
        if not slot.isdigit() or {"faulty", "replacement"} & set(states):
            continue
        device = (one / "block").resolve().name
        sectors = component or 2 * int(_text(one / "size"))
        members[int(slot)] = _member(name, device, int(_text(one / "offset")), sectors, sysfs)
    array = KernelArray(name, shape, tuple(members))
    _check_size(array, int(_text(folder.parent / "size")))
    return array


def _is_reshaped(folder: Path) -> bool:
    """Also when the last sector is in place already, but members still have their old offsets."""
    action = folder / "sync_action"  # RAID 0 and linear have none
    return _text(folder / "reshape_position") != "none" or (
        action.exists() and _text(action) == "reshape"
    )


def _md_shape(name: str, folder: Path, level: str) -> Array:
    members, layout = int(_text(folder / "raid_disks")), int(_text(folder / "layout"))
    if not 2 <= members <= MOST_MEMBERS:
        raise UsageError(f"{name}: has {members} members; coordinated are 2 to {MOST_MEMBERS}")
    shape = Array(level, members)
    if level not in WITHOUT_CHUNKS:
        shape = dataclasses.replace(shape, chunk_sectors=_chunk(name, folder))
    if level in PARITIES:
        if layout not in range(len(PARITY_LAYOUTS)):
            known = ", ".join(PARITY_LAYOUTS)
            raise UsageError(f"{name}: has RAID {level[-1]} layout {layout}; known are {known}")
        shape = dataclasses.replace(shape, layout=PARITY_LAYOUTS[layout])
    if level == "raid10":
        if layout not in RAID10_LAYOUTS:
            raise UsageError(
                f"{name}: has RAID 10 layout {layout:#x}; known are two copies, near, far or offset"
            )
        shape = dataclasses.replace(shape, layout=RAID10_LAYOUTS[layout])
    return shape


def _chunk(name: str, folder: Path) -> int:
    chunk = int(_text(folder / "chunk_size"))
    if chunk % 4096 or not 4096 <= chunk <= 1 << 20:
        raise UsageError(f"{name}: has chunks of {chunk} bytes; known are 4 KiB to 1 MiB")
    return chunk // 512


def _check_size(array: KernelArray, sectors: int) -> None:
    """The layout must have the array's sectors; RAID 0 may have more, on larger members."""
    least = min((member.sectors for member in array.present), default=0)
    sizes = [member.sectors if member else least for member in array.members]
    room = array.shape.capacity_sectors(sizes)
    if room < sectors and array.shape.level != "raid0":
        raise UsageError(
            f"{array.name}: has {sectors} sectors, but {array.shape} of its members only {room}"
        )


# ---- device mapper ----


def _read_dm(name: str, folder: Path, sysfs: Path, table: Callable[[str], str]) -> KernelArray:
    """A table of one line, "0 SECTORS striped NUMBER CHUNK (DEVICE START)..."."""
    called = _text(folder / "dm/name")
    lines = table(called).splitlines()
    words = lines[0].split() if len(lines) == 1 else []
    if words[2:3] != ["striped"]:
        raise UsageError(
            f"{name}: {called} is not one striped volume; its table has "
            + ", ".join(dict.fromkeys(line.split()[2] for line in lines))
            + (f" in {len(lines)} parts" if len(lines) > 1 else "")
        )
    sectors, number, chunk = int(words[1]), int(words[3]), int(words[4])
    if chunk % 8 or not 8 <= chunk <= 2048:
        raise UsageError(f"{name}: has stripes of {chunk} sectors; known are 8 to 2048")
    if not 2 <= number <= MOST_MEMBERS:
        raise UsageError(f"{name}: has {number} stripes; coordinated are 2 to {MOST_MEMBERS}")
    members = []
    for device, start in zip(words[5::2], words[6::2], strict=True):
        known = (sysfs / "dev/block" / device).resolve().name
        members.append(_member(name, known, int(start), sectors // number, sysfs))
    shape = Array("raid0", number, chunk_sectors=chunk)
    return KernelArray(name, shape, tuple(members))


# ---- attached and not ----


def _folder(name: str) -> Path:
    if not CONFIGFS.is_dir():
        raise StreamschedError(
            f"{CONFIGFS}: there is no such folder; load the module with `modprobe stream-iosched`"
        )
    return CONFIGFS / name


def _is_attached(folder: Path) -> bool:
    return folder.is_dir() and _text(folder / "attached") == "1"


def _scheduler(disk: str) -> str:
    return _text(SYSFS / "block" / disk / "queue/scheduler").partition("[")[2].partition("]")[0]


def _check_schedulers(array: KernelArray) -> None:
    others = [member.disk for member in array.present if _scheduler(member.disk) != "stream"]
    if not others:
        return
    files = " ".join(f"/sys/block/{disk}/queue/scheduler" for disk in others)
    raise UsageError(
        f"{array.name}: {', '.join(others)}: not scheduled by stream; "
        f"`echo stream | tee {files}` changes that"
    )


def attach(device: str, update: bool = False) -> KernelArray:
    """Coordinate the members of the array @device; an error changes nothing.

    @update: when it is attached already, take over what has become of its members.
    """
    name = kernel_name(device)
    folder = _folder(name)
    attached = _is_attached(folder)
    if attached and not update:
        raise UsageError(
            f"{name}: is attached already; `streamsched array detach {device}` detaches it"
        )
    array = read_array(name)
    if attached and array.attributes() == _written(folder, array):
        return array
    if attached and _same_shape(folder, array):
        write(folder / "members", array.attributes()["members"], MODULE)
        return array
    _check_schedulers(array)
    if attached:
        _remove(folder)
    made = not folder.is_dir()
    if made:
        _make(folder)
    try:
        for attribute, value in {**array.attributes(), "attached": "1"}.items():
            write(folder / attribute, value, MODULE)
    except StreamschedError as error:
        if made:
            _remove(folder)
        raise StreamschedError(f"{name}: {str(error).partition(': ')[2]}") from None
    return array


def _make(folder: Path) -> None:
    try:
        folder.mkdir()
    except OSError as error:
        raise refused(folder, error, MODULE) from None


def _remove(folder: Path) -> None:
    """Another call may be at it: udev's, when md reports a change."""
    with suppress(FileNotFoundError):
        folder.rmdir()


def _written(folder: Path, array: KernelArray) -> dict[str, str]:
    return {name: _text(folder / name) for name in array.attributes()}


def _same_shape(folder: Path, array: KernelArray) -> bool:
    """Whether the kernel needs other disks only. It works out once where the array ends."""
    ours, theirs = array.attributes(), _written(folder, array)
    sizes = [_sizes(written.pop("members")) for written in (ours, theirs)]
    if ours != theirs or len(sizes[0]) != len(sizes[1]) or array.shape.level == "linear":
        return False
    return all(new == old or not new or not old for new, old in zip(*sizes, strict=True))


def _sizes(members: str) -> list[str]:
    """How many sectors each of them gives, of the attribute's lines; empty for one missing."""
    return [line.partition(" ")[2].partition(" ")[2] for line in members.splitlines()]


def detach(device: str) -> None:
    """Let the members of the array @device schedule for themselves again."""
    # What is gone from /dev can still be detached, by the kernel's name of it.
    known = {one.name for one in _folder("").iterdir()}
    name = device if device in known else kernel_name(device)
    folder = _folder(name)
    if not folder.is_dir():
        raise UsageError(f"{name}: is not attached")
    folder.rmdir()


def status(name: str) -> str:
    """What is known of the attached array @name, for people."""
    folder = _folder(name)
    if not _is_attached(folder):
        return f"{name}: not attached\n"
    level, chunk = _text(folder / "level"), int(_text(folder / "chunk_sectors"))
    members = _text(folder / "members").splitlines()
    shape = Array(level, len(members), chunk, _text(folder / "layout"))
    lines = [f"{name}: attached, {shape}"]
    for line in _text(folder / "status").splitlines():
        index, number, state = line.split(" ", 2)
        disk = SYSFS / "dev/block" / number
        known = disk.resolve().name if disk.exists() else "-"
        lines.append(f"  {index:>2}  {known:10}  {state}")
    counted = dict(line.split() for line in _text(folder / "counters").splitlines())
    lines.append(
        f"  streams found {counted['established']}; "
        f"turns {counted['turns']}, ended by time {counted['slices_ended']}; "
        f"compared with members apart {counted['trials']} times, "
        f"which was faster {counted['trials_lost']} times"
    )
    return "\n".join(lines) + "\n"


# ---- commands ----

app = typer.Typer(
    help="Coordinate the schedulers of an array's members.",
    no_args_is_help=True,
)
_given_device = given("DEVICE", "an array, as in /dev/md0", str)
DeviceArgument = Annotated[
    str,
    typer.Argument(
        metavar="DEVICE", parser=_given_device, help="The array, as /dev/md0 or /dev/mapper/NAME."
    ),
]


@app.command("attach")
def attach_command(
    device: DeviceArgument,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            metavar="",
            help="Attached already: take over what its members have become.",
        ),
    ] = False,
) -> None:
    """Have the members' schedulers work together from now on."""
    array = attach(device, update)
    disks = ", ".join(member.disk if member else "(missing)" for member in array.members)
    print(f"{array.name}: {array.shape}: {disks}")


@app.command("detach")
def detach_command(device: DeviceArgument) -> None:
    """Have each member schedule for itself again."""
    detach(device)


@app.command("status")
def status_command(
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="DEVICE", parser=_given_device, help="Without it: all that are attached."
        ),
    ] = None,
) -> None:
    """Show what is attached, what its members do, and how often it helped."""
    if device is not None:
        print(status(kernel_name(device)), end="")
        return
    names = sorted(path.name for path in _folder("").iterdir() if _is_attached(path))
    print("".join(map(status, names)) or "nothing is attached\n", end="")
