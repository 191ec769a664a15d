# SPDX-License-Identifier: GPL-2.0-only
"""Emulated disks of the kernel module hdd-emu (docs/sim/HDD-EMU.md), from disk descriptions.

A disk is a directory in configfs whose attributes are the fields of struct
hdd_params. This module writes them: here and now, or as a shell script for
another machine.
"""

from __future__ import annotations

import errno
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from streamsched.base.configfs import refused
from streamsched.base.configfs import write as configfs_write
from streamsched.base.errors import StreamschedError, UsageError, exit_code_of
from streamsched.sim.diskfile import KINDS, Disk, list_disks, load_disk

MODULE = "hdd_emu"
CONFIGFS = Path("/sys/kernel/config/hdd-emu")
# Fields that a flat disk has besides those of its own.
COMMON = (
    "capacity_sectors",
    "kind",
    "queue_depth",
    "interface_bytes_per_s",
    "command_overhead_ns",
    "flush_ns",
)
# Programs that look at every new disk (udev's) have it open for a moment.
BUSY_S = 5.0
BUSY_STEP_S = 0.05


def attributes(disk: Disk) -> dict[str, str]:
    """The attributes that describe a disk, with what to write to each."""
    flat = KINDS[disk.kind] == "flat"
    written: dict[str, str] = {}
    for name, value in disk.params().items():
        own = name.startswith("flat_") == flat
        if own or name in COMMON:
            values = value if isinstance(value, list) else [value]
            written[name] = " ".join(str(one) for one in values)
    return written


def script(name: str, disk: Disk, settings: Mapping[str, str] | None = None) -> str:
    """Shell commands that make the disk and switch it on; they stop at the first error."""
    folder = shlex.quote(str(_folder(CONFIGFS, name)))
    lines = ["(", "set -e", f"mkdir {folder}", f"cd {folder}"]
    for attribute, value in {**attributes(disk), **(settings or {}), "power": "1"}.items():
        lines.append(f"echo {shlex.quote(value)} >{attribute}")
    return "\n".join([*lines, ")", ""])


def _folder(configfs: Path, name: str) -> Path:
    """The disk's; UsageError for a name that leads to another place."""
    if not name or "/" in name or name in (".", ".."):
        raise UsageError(f"{name!r}: is no name of a disk; give one without /, as emu0")
    return configfs / name


def create(
    name: str,
    disk: Disk,
    settings: Mapping[str, str] | None = None,
    configfs: Path = CONFIGFS,
) -> None:
    """Make the disk /dev/NAME and switch it on; after an error nothing is left of it."""
    folder = _folder(configfs, name)
    if not configfs.is_dir():
        raise StreamschedError(
            f"{configfs}: there is no such folder; load the module with `modprobe hdd-emu` first"
        )
    try:
        folder.mkdir()
    except FileExistsError:
        raise UsageError(f"{folder}: there is a disk of this name already") from None
    except OSError as error:
        raise refused(folder, error, MODULE) from None
    try:
        for attribute, value in {**attributes(disk), **(settings or {}), "power": "1"}.items():
            write(folder / attribute, value)
    except StreamschedError:
        folder.rmdir()
        raise


def remove(name: str, configfs: Path = CONFIGFS) -> None:
    """Switch the disk off and forget it and its data; an error when it is open."""
    folder = _folder(configfs, name)
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no disk of this name")
    until = time.monotonic() + BUSY_S
    while True:
        try:
            (folder / "power").write_text("0\n")
            break
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() >= until:
                raise refused(folder / "power", error, MODULE) from None
        time.sleep(BUSY_STEP_S)
    folder.rmdir()


def write(attribute: Path, value: str) -> None:
    """Write one attribute of a disk."""
    configfs_write(attribute, value, MODULE)


app = typer.Typer(
    help="Emulated disks of the kernel module hdd-emu.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The disk becomes /dev/NAME.")]
DiskArgument = Annotated[
    str,
    typer.Argument(
        metavar="DISK",
        help="A name (`streamsched list disks`), or a file.",
        autocompletion=lambda: list(list_disks()),
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="ATTRIBUTE=VALUE", help="Another attribute; may be repeated."),
]


def _settings(settings: list[str] | None) -> dict[str, str]:
    values: dict[str, str] = {}
    for setting in settings or []:
        attribute, equals, value = setting.partition("=")
        if not equals or not attribute or "/" in attribute:
            raise UsageError(f"--set {setting}: must be ATTRIBUTE=VALUE, as size_sectors=2097152")
        values[attribute] = value
    return values


@app.command("create")
def create_command(name: NameArgument, disk: DiskArgument, set_: SetOption = None) -> None:
    """Make a disk and switch it on."""
    create(name, load_disk(disk), _settings(set_))


@app.command("remove")
def remove_command(name: NameArgument) -> None:
    """Switch a disk off; its data is gone."""
    remove(name)


@app.command("script")
def script_command(name: NameArgument, disk: DiskArgument, set_: SetOption = None) -> None:
    """Print shell commands that do what create does, for another machine."""
    sys.stdout.write(script(name, load_disk(disk), _settings(set_)))


def main() -> int:
    """What `python -m streamsched.hosts.hddemu` does."""
    return exit_code_of("streamsched", app)


if __name__ == "__main__":
    sys.exit(main())
