# SPDX-License-Identifier: GPL-2.0-only
"""What test_kernel_array.py runs inside the rig: md and striped volumes over emulated disks."""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
import random
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hdd_emu_guest import Emu, error_of, expect, fio, main, refused, small, write_once
from stream_guest import POINTS, VERIFY, check, command, iosched, leaks, settled

from streamsched._core import ffi, lib
from streamsched.base.errors import StreamschedError
from streamsched.hosts import kernelarray
from streamsched.sim.array import Array
from streamsched.sim.diskfile import load_disk

MD = "/dev/md0"
CONFIGFS = kernelarray.CONFIGFS
REGION = 116 << 30
SECTORS = 400_000  # of a disk
# ... that is rebuilt again and again: all of it is then kept in memory.
FEW_SECTORS = 100_000


def must(*words: str) -> str:
    done = command(*words)
    expect(done.returncode, 0, f"{' '.join(words)}: {done.stdout} {done.stderr}")
    return done.stdout


@contextmanager
def disks(number: int, scheduler: str, sectors: int = SECTORS) -> Iterator[list[Emu]]:
    """Small disks d0, d1, ... under a scheduler."""
    found: list[Emu] = []
    try:
        for i in range(number):
            found.append(Emu(f"d{i}", small(capacity_sectors=sectors)))
            found[-1].queue("scheduler", scheduler)
        yield found
    finally:
        for disk in found:
            if disk.folder.exists():
                disk.folder.rmdir()


def create(level: str, members: list[Emu], *more: str) -> None:
    """The md array /dev/md0 of these disks."""
    words = ["mdadm", "--create", MD, "--run", "--metadata=1.2", f"--level={level}"]
    if level != "1":
        words.append("--chunk=64")
    words += ["--assume-clean", f"--raid-devices={len(members)}", *more]
    if level not in ("0", "linear"):
        # mdadm gives large arrays one; Linux 7.2 and mdadm 4.2 do not agree on how.
        words.append("--bitmap=none")
    words += [str(disk.path) for disk in members]
    # A kernel that frees late, as KASAN's does, knows the one before it for seconds more; some of
    # that is to be seen, and some only by what mdadm says.
    said = "/sys/block/md0 is still there"
    for _ in range(3):
        if not Path("/sys/block/md0").exists():
            done = command(*words)
            if done.returncode == 0:
                return
            said = f"{done.stdout} {done.stderr}"
            if "unexpected failure opening" not in said:
                break
        time.sleep(10)
    raise AssertionError(f"{' '.join(words)}: {said}")


@contextmanager
def array(level: str, number: int, sectors: int = SECTORS, layout: str = "") -> Iterator[list[Emu]]:
    """Disks under stream, and the md array of them."""
    with disks(number, "stream", sectors) as members:
        create(level, members, *([f"--layout={layout}"] if layout else []))
        try:
            yield members
        finally:
            if (CONFIGFS / "md0").is_dir():
                (CONFIGFS / "md0").rmdir()
            must("mdadm", "--stop", MD)


def counters() -> dict[str, int]:
    lines = (CONFIGFS / "md0/counters").read_text().splitlines()
    return {name: int(value) for name, value in map(str.split, lines)}


def states(name: str = "md0") -> list[str]:
    """What each member does."""
    lines = (CONFIGFS / name / "status").read_text().splitlines()
    return [line.split(" ", 2)[2] for line in lines]


def refusal(device: str = MD, act: Callable[[str], object] = kernelarray.attach) -> str:
    """The sentence with which attaching, or another act, is refused; nothing is changed."""
    before = sorted(path.name for path in CONFIGFS.iterdir())
    try:
        act(device)
    except StreamschedError as error:
        expect(sorted(path.name for path in CONFIGFS.iterdir()), before, "changed")
        return str(error)
    raise AssertionError(f"{device}: not refused")


# ---- attach, detach, status ----


def mapped(shape: Array, members: list[kernelarray.Member]) -> None:
    """What is written to places of the array is where geometry.c says, on all members.

    Chunks of data alone: parity is not looked at.
    """
    geometry = shape.geometry([member.sectors for member in members])
    place, rng = ffi.new("struct ss_array_place *"), random.Random(1)
    capacity = geometry.capacity_sectors // 8
    sectors = [8 * k for k in sorted({*range(60), capacity - 1, *rng.sample(range(capacity), 60)})]
    blocks = {sector: (b"%15d\n" % sector) * 256 for sector in sectors}
    with Path(MD).open("r+b", buffering=0) as file:
        for sector, block in blocks.items():
            file.seek(512 * sector)
            file.write(block)
        os.fsync(file.fileno())
    for sector, block in blocks.items():
        for copy in range(geometry.copies):
            lib.ss_array_map(geometry, sector, copy, place)
            member = members[place.member]
            with (Path("/dev") / member.disk).open("rb", buffering=0) as disk:
                disk.seek(512 * (member.start_sector + place.sector))
                expect(disk.read(4096)[:16], block[:16], f"{shape}: {sector}, copy {copy}")


def attached(level: str, number: int, layout: str) -> list[str]:
    """Attached, looked at, detached; in between something is written and verified."""
    with array(level, number, layout=layout):
        found = kernelarray.attach(MD)
        expect(states(), ["coordinated"] * number)
        mapped(found.shape, found.present)
        files = [str(found.shape), (CONFIGFS / "md0/members").read_text()]
        job = "rw=randwrite bsrange=512-256k blockalign=512 size=16m iodepth=16"
        check(fio(f"filename={MD} {VERIFY}", {"a": job}))
        files.append(kernelarray.status("md0"))
        kernelarray.detach(MD)
        expect((CONFIGFS / "md0").exists(), False)
        files.append(kernelarray.status("md0"))
        for i in range(number):
            settled(f"d{i}")
        return files


def striped() -> list[str]:
    """A striped volume of device mapper."""
    with disks(3, "stream") as members:
        places = " ".join(f"{disk.path} {1024 * (i + 1)}" for i, disk in enumerate(members))
        table = f"0 {3 * 128 * 1000} striped 3 128 {places}"
        must("dmsetup", "create", "--noudevsync", "stripes", "--table", table)
        must("dmsetup", "mknodes", "stripes")
        found = kernelarray.attach("/dev/mapper/stripes")
        files = [found.name, str(found.shape), (CONFIGFS / found.name / "members").read_text()]
        expect(states(found.name), ["coordinated"] * 3)
        kernelarray.detach("/dev/mapper/stripes")
        must("dmsetup", "remove", "--noudevsync", "stripes")
        must(
            "dmsetup",
            "create",
            "--noudevsync",
            "lines",
            "--table",
            f"0 800 linear {members[0].path} 0",
        )
        must("dmsetup", "mknodes", "lines")
        files.append(refusal("/dev/mapper/lines"))
        must("dmsetup", "remove", "--noudevsync", "lines")
        return files


# ---- the udev rule ----

RULES = Path(__file__).resolve().parents[2] / "kernel/packaging/udev/61-stream-array.rules"


def ruled(name: str, action: str) -> list[str]:
    """What udev would run for the block device @name, as systemd 255 says it, or 257."""
    said = command("udevadm", "test", f"--action={action}", f"/sys/block/{name}")
    found = re.finditer(r"(?m)^(?:run: '(.*)'|  RUN\{program\} : (.*))$", said.stdout + said.stderr)
    return [run[1] or run[2] for run in found]


def udev() -> dict[str, list[str]]:
    """What the rule has run for arrays, volumes and what is neither."""
    folder = Path("/run/udev/rules.d")
    folder.mkdir(parents=True)
    (folder / RULES.name).write_text(RULES.read_text())
    runs = {}
    must("mount", "-t", "tmpfs", "none", "/usr/local/bin")
    with array("0", 4):
        runs["no command"] = ruled("md0", "change")
        said = command("udevadm", "test", "--action=change", "/sys/block/md0")
        runs["PROGRAM is skipped"] = re.findall(
            "skipping execution of .*", said.stdout + said.stderr
        )
    stand_in = Path("/usr/local/bin/streamsched")
    stand_in.touch(0o755)
    for level in ("0", "1", "5", "10", "4"):
        with array(level, 4) as members:
            runs[f"raid{level}"] = ruled("md0", "change")
            runs[members[0].name] = ruled("d0", "change")
            runs[f"raid{level} not attached, gone"] = ruled("md0", "remove")
            if level == "0":
                kernelarray.attach(MD)
                runs["attached, gone"] = ruled("md0", "remove")
                # A stopped array is still attached, by what udev calls it then.
                must("mdadm", "--stop", MD)
                expect((CONFIGFS / "md0").is_dir(), True)
                kernelarray.detach("md0")
                expect((CONFIGFS / "md0").is_dir(), False)
                create(level, members)
    with disks(2, "stream") as members:
        for kind in ("striped", "linear"):
            places = " ".join(f"{disk.path} 0" for disk in members)
            table = f"0 128000 striped 2 128 {places}"
            if kind == "linear":
                table = f"0 128000 linear {members[0].path} 0"
            must("dmsetup", "create", "--noudevsync", "volume", "--table", table)
            must("dmsetup", "mknodes", "volume")
            name = kernelarray.kernel_name("/dev/mapper/volume")
            runs[kind] = ruled(name, "change")
            if kind == "striped":
                kernelarray.attach("/dev/mapper/volume", update=True)
                runs["volume gone"] = ruled(name, "remove")
                kernelarray.detach(name)
            must("dmsetup", "remove", "--noudevsync", "volume")
    return runs


# ---- what a person can get wrong ----


def refusals() -> dict[str, str]:
    """The sentences."""
    said = {"disk": refusal("/dev/null"), "absent": refusal("/dev/md9")}
    with array("5", 3) as members:
        members[1].queue("scheduler", "mq-deadline")
        said["scheduler"] = refusal()
        members[1].queue("scheduler", "stream")
        kernelarray.attach(MD)
        said["no array"] = refusal("..", kernelarray.detach)
        said["twice"] = refusal()
        line = refused(CONFIGFS / "md0/attached", "1", "EBUSY", prefix="stream")
        said["twice in the kernel"] = line
        for name, value in (
            ("level", "raid0"),
            ("layout", "left-symmetric"),
            ("chunk_sectors", "8"),
        ):
            line = refused(CONFIGFS / "md0" / name, value, "EBUSY", prefix="stream")
            expect("write 0 to attached" in line, True, line)
        # Another array on the same disk.
        other = CONFIGFS / "other"
        other.mkdir()
        number = members[0].folder.name
        dev = (Path("/sys/block") / number / "dev").read_text().strip()
        dev1 = (Path("/sys/block") / members[1].name / "dev").read_text().strip()
        write_once(other / "members", f"{dev} 0 1024\n{dev1} 0 1024\n")
        write_once(other / "chunk_sectors", "128")
        said["member twice"] = refused(other / "attached", "1", "EBUSY", prefix="stream")
        other.rmdir()
        members[2].queue("rotational", "0")
        members[2].queue("scheduler", "none")
        members[2].queue("scheduler", "stream")
        expect(states(), ["coordinated", "coordinated", "not scheduled by stream"])
        kernelarray.detach(MD)
        said["flat"] = refusal()
    with array("4", 4):
        said["level"] = refusal()
    with array("10", 4) as members:
        must("mdadm", "--stop", MD)
        create("10", members, "--layout=n3")
        said["layout"] = refusal()
    return said


def written_by_hand() -> dict[str, str]:
    """What configfs refuses, by what was written."""
    said: dict[str, str] = {}
    with disks(2, "stream") as members:
        numbers = [(Path("/sys/block") / disk.name / "dev").read_text().strip() for disk in members]
        folder = CONFIGFS / "a"
        folder.mkdir()

        def no(name: str, value: str, wanted: str = "EINVAL") -> None:
            said[f"{len(said)} {name} {value}"] = refused(
                folder / name, value, wanted, prefix="stream"
            )

        no("attached", "1")
        for value in ("2", "yes", "\n"):
            no("attached", value)
        for value in ("raid4", "5", "\n"):
            no("level", value)
        for value in ("left", "6", "\n"):
            no("layout", value)
        for value in ("7", "2049", "x", "-8", "\n", "64k"):
            no("chunk_sectors", value)
        good = f"{numbers[0]} 0 4096"
        for value in ("x", "1 2 3", f"{good} 5", f"{good}\n{good}", "0:0 0 5"):
            no("members", value)
        major, _, minor = numbers[0].partition(":")
        no("members", f"{2**32 + int(major)}:{minor} 0 4096")
        no("members", f"{major}:{2**32 + int(minor)} 0 4096")
        no("members", f"{major}:{minor} {2**64} 4096")
        no("members", f"{major}:{minor} 0 {2**64 + 4096}")
        no("members", f"{major}:{minor} 0 4096x")
        no("members", f"{numbers[0]} 0 0")
        no("members", "\n".join(["missing"] * 33))
        write_once(folder / "chunk_sectors", "9")
        write_once(folder / "members", f"{good}\n{numbers[1]} 0 4096")
        no("attached", "1")
        write_once(folder / "chunk_sectors", "128")
        write_once(folder / "members", f"{good}\n{numbers[1]} 0 {SECTORS + 1}")
        no("attached", "1")
        write_once(folder / "members", f"{good}\nmissing")
        no("attached", "1")
        write_once(folder / "members", f"{good}\n{numbers[1]} 0 64")
        no("attached", "1")
        write_once(folder / "members", f"{good}\n{numbers[1]} 8 4096")
        write_once(folder / "attached", "1")
        no("members", good, "EBUSY")
        no("members", f"{good}\n259:99 8 4000")
        write_once(folder / "attached", "0")
        write_once(folder / "level", "linear")
        write_once(folder / "attached", "1")
        no("members", f"{good}\n259:99 8 4096")
        # The module stays while there is an array.
        expect(command("rmmod", "stream-iosched").returncode != 0, True, "rmmod")
        folder.rmdir()
    return said


# ---- members leave and return ----


def comings_and_goings(level: str) -> dict[str, list[str]]:
    """A member loses its scheduler, fails, is removed and added, is torn out; in between states."""
    seen: dict[str, list[str]] = {}
    with array(level, 4, FEW_SECTORS) as members:
        kernelarray.attach(MD)
        members[1].queue("scheduler", "bfq")
        seen["bfq"] = states()
        members[1].queue("scheduler", "stream")
        seen["back"] = states()
        write_once(iosched("d1", "inner"), "sptf")
        seen["inner"] = states()
        if level != "0":
            must("mdadm", MD, "--fail", "/dev/d2")
            time.sleep(1)
            must("mdadm", MD, "--remove", "/dev/d2")
            kernelarray.attach(MD, update=True)
            seen["removed"] = states()
            must("mdadm", MD, "--add", "/dev/d2")
            rebuilt()
            kernelarray.attach(MD, update=True)
            seen["added"] = states()
            # Torn out, and replaced by another disk.
            members[3].folder.rmdir()
            time.sleep(1)
            seen["torn out"] = states()
            spare = Emu("d9", small(capacity_sectors=FEW_SECTORS))
            spare.queue("scheduler", "stream")
            members.append(spare)
            command("mdadm", MD, "--remove", "detached")
            must("mdadm", MD, "--add", "/dev/d9")
            rebuilt()
            kernelarray.attach(MD, update=True)
            seen["replaced"] = states()
            seen["replaced by"] = [kernelarray.status("md0")]
        job = "rw=randwrite bsrange=4k-256k blockalign=4k size=16m iodepth=16"
        check(fio(f"filename={MD} {VERIFY}", {"a": job}))
    for disk in members:
        if disk.folder.exists():
            disk.folder.rmdir()
    return seen


def rebuilt() -> None:
    """Until the array has all its members again."""
    until = time.monotonic() + 300
    while Path("/sys/block/md0/md/degraded").read_text() != "0\n":
        expect(time.monotonic() < until, True, Path("/proc/mdstat").read_text())
        time.sleep(1)


class Chaos:
    """What may happen to an array's members while they work; what was done how often."""

    def __init__(self, level: str, members: list[Emu], seed: int) -> None:
        self.level, self.members, self.rng = level, members, random.Random(seed)
        self.done: dict[str, int] = {}
        self.failed: Emu | None = None

    def attach(self) -> None:
        if error_of_attach():
            kernelarray.attach(MD, update=True)

    def detach(self) -> None:
        if (CONFIGFS / "md0").is_dir():
            kernelarray.detach(MD)

    def scheduler(self) -> None:
        disk = self.rng.choice(self.members)
        disk.queue("scheduler", self.rng.choice(["none", "mq-deadline", "bfq"]))
        time.sleep(self.rng.random() / 10)
        disk.queue("scheduler", "stream")

    def setting(self) -> None:
        disk = self.rng.choice(self.members)
        name, value = self.rng.choice(
            [
                ("inner", "sptf"),
                ("inner", "deadline"),
                ("service_curve", POINTS),
                ("service_curve", "learn"),
                ("wait_target", "10ms"),
                ("wait_target", "500ms"),
                ("stream_threshold", "2"),
            ]
        )
        expect(error_of(write_once, iosched(disk.name, name), value) in ("", "ENOENT"), True, name)

    def requests(self) -> None:
        self.rng.choice(self.members).queue("nr_requests", self.rng.choice([4, 64, 256]))

    def busy(self) -> None:
        """The driver sends commands back."""
        self.rng.choice(self.members).put("bad_ranges", self.rng.choice(["", "0 900000 both busy"]))

    def fail(self) -> None:
        """One member fails, is removed, and is added again; RAID 0 cannot do without any."""
        if self.level == "0":
            return
        if self.failed is None:
            self.failed = self.rng.choice(self.members)
            command("mdadm", MD, "--fail", str(self.failed.path))
        elif command("mdadm", MD, "--remove", str(self.failed.path)).returncode == 0:
            must("mdadm", MD, "--add", str(self.failed.path))
        elif "in_sync" in Path(f"/sys/block/md0/md/dev-{self.failed.name}/state").read_text():
            self.failed = None

    def look(self) -> None:
        if (CONFIGFS / "md0").is_dir():
            for path in (CONFIGFS / "md0").iterdir():
                path.read_text()
        must("cat", *map(str, Path("/sys/kernel/debug/block").glob("d*/sched/*")))

    def step(self) -> None:
        actions = [self.attach, self.attach, self.detach, self.scheduler, self.setting, self.fail]
        action = self.rng.choice([*actions, self.requests, self.busy, self.look])
        action()
        name = action.__name__
        self.done[name] = self.done.get(name, 0) + 1


def error_of_attach() -> str:
    try:
        kernelarray.attach(MD)
    except StreamschedError as error:
        return str(error)
    return ""


def stress(level: str, seconds: int, seed: int) -> dict[str, int]:
    """Verified writes and readers on the array for that long, with all of this at once."""
    at = f"time_based runtime={seconds}"
    jobs = {
        "small": f"{at} rw=randwrite bs=4k size=64m iodepth=16",
        "large": f"{at} rw=write bs=256k size=30m offset=70m iodepth=8",
        **{
            f"reader{i}": f"{at} rw=read bs=64k size=90m offset={110 + 95 * i}m verify=0"
            for i in range(3)
        },
    }
    common = f"filename={MD} {VERIFY} verify_backlog=64"
    turns = 0
    with array(level, 4) as members:
        chaos = Chaos(level, members, seed)
        thread, outcome = in_background(lambda: fio(common, jobs, one_by_one=False))
        while thread.is_alive():
            if (CONFIGFS / "md0").is_dir():
                turns = max(turns, counters()["turns"])
            chaos.step()
            time.sleep(chaos.rng.random() / 3)
        for disk in members:
            disk.put("bad_ranges", "")
            disk.queue("scheduler", "stream")
        expect(is_whole(), True, "md goes on to rebuild")
        for disk in members:
            if disk is not chaos.failed:
                settled(disk.name)
    result = outcome()
    check(result)
    expect(leaks(), "", "kmemleak")
    ios = sum(job["read"]["total_ios"] for job in result.values())
    return chaos.done | {"turns": turns, "ios": ios}


# ---- the array itself changes ----

# What the members of an array that grows give it, in KiB: at first, and most.
LITTLE, MUCH = 24 << 10, 44 << 10
BACKUP = "/run/backup"
RESHAPED = "md0: is being reshaped; attach it when that is done"


def of_md(name: str) -> str:
    return (Path("/sys/block/md0/md") / name).read_text().strip()


class Kept:
    """4 MiB of the array that are written anew each time, and must be there whatever happens."""

    SECTOR, SECTORS = 40 << 10, 8 << 10

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.written = b""

    def write(self) -> None:
        self.written = self.rng.randbytes(512 * self.SECTORS)
        buffer = mmap.mmap(-1, len(self.written))
        buffer[:] = self.written
        self._whole(os.O_WRONLY, os.pwritev, buffer)

    def check(self) -> None:
        buffer = mmap.mmap(-1, len(self.written))
        self._whole(os.O_RDONLY, os.preadv, buffer)
        wrong = [at for at in range(0, len(buffer), 4096) if differs(buffer, self.written, at)]
        expect(wrong, [], "pages that are not what was written")

    def _whole(self, flags: int, act: Callable[..., int], buffer: mmap.mmap) -> None:
        fd = os.open(MD, flags | os.O_DIRECT)
        try:
            expect(act(fd, [buffer], 512 * self.SECTOR), len(buffer), "bytes")
        finally:
            os.close(fd)


def differs(one: mmap.mmap, other: bytes, at: int) -> bool:
    return one[at : at + 4096] != other[at : at + 4096]


class Changes(Chaos):
    """... and what may happen to the array itself: it grows, gets another shape, is stopped."""

    def __init__(self, level: str, members: list[Emu], spare: Emu, seed: int) -> None:
        super().__init__(level, members, seed)
        self.spare, self.kept = spare, Kept(seed)
        self.kept.write()
        # What is to be done once a reshape has ended.
        self.afterwards: Callable[[], None] | None = None

    def note(self, what: str) -> None:
        self.done[what] = self.done.get(what, 0) + 1

    def attach(self) -> None:
        if of_md("reshape_position") != "none":
            expect(refusal(act=update), RESHAPED)
            self.note("refused")
            return
        if of_md("sync_action") != "reshape":
            update(MD)
            expect(coordinated(), kernelarray.read_array("md0").attributes())

    def is_idle(self) -> bool:
        """Whether mdadm would change the array now."""
        if self.failed or of_md("degraded") != "0" or of_md("sync_action") != "idle":
            return False
        if self.afterwards:
            self.afterwards()
            self.afterwards = None
        return True

    def grow(self) -> None:
        """As large as it can be, or as small as it was."""
        if self.is_idle():
            other = LITTLE if int(of_md("component_size")) > LITTLE else MUCH
            must("mdadm", "--grow", MD, f"--size={other}")
            self.note("grown" if other == MUCH else "shrunk")

    def reshape(self) -> None:
        """One disk more or less, other chunks, another layout."""
        if not self.is_idle():
            return
        change = self._disks
        if self.level in ("5", "6"):
            change = self.rng.choice([self._disks, self._disks, self._chunk, self._layout])
        change()
        # A mirror more or less is none to md.
        if of_md("reshape_position") != "none":
            expect(refusal(act=update), RESHAPED)
        self.note(change.__name__.strip("_"))

    def _disks(self) -> None:
        if self.spare not in self.members:
            must("mdadm", MD, "--add", str(self.spare.path))
            self.members.append(self.spare)
            must("mdadm", "--grow", MD, "--raid-devices=5")
            return
        self.members.remove(self.spare)
        if self.level == "1":
            must("mdadm", MD, "--fail", str(self.spare.path))
            self._without_spare()
            must("mdadm", "--grow", MD, "--raid-devices=4")
            return
        fewer = (4 - (2 if self.level == "6" else 1)) * int(of_md("component_size"))
        must("mdadm", "--grow", MD, f"--array-size={fewer}")
        must("mdadm", "--grow", MD, "--raid-devices=4", f"--backup-file={BACKUP}")
        self.afterwards = self._with_fewer

    def _with_fewer(self) -> None:
        must("mdadm", "--grow", MD, "--array-size=max")
        self._without_spare()

    def _without_spare(self) -> None:
        for _ in range(20):
            if command("mdadm", MD, "--remove", str(self.spare.path)).returncode == 0:
                return
            time.sleep(1)
        raise AssertionError(f"{self.spare.name} is not let go")

    def _chunk(self) -> None:
        now = int(of_md("chunk_size")) >> 10
        chunk = self.rng.choice([size for size in (16, 32, 64, 128) if size != now])
        must("mdadm", "--grow", MD, f"--chunk={chunk}")

    def _layout(self) -> None:
        now = int(of_md("layout"))
        layout = self.rng.choice(
            [name for i, name in enumerate(("la", "ra", "ls", "rs")) if i != now]
        )
        must("mdadm", "--grow", MD, f"--layout={layout}")

    def fail(self) -> None:
        """One member fails, is removed, is added, and is whole again."""
        if self.failed is None:
            if self.is_idle():
                self.failed = self.rng.choice(self.members)
                must("mdadm", MD, "--fail", str(self.failed.path))
            return
        state = Path(f"/sys/block/md0/md/dev-{self.failed.name}/state")
        if not state.exists():
            must("mdadm", MD, "--add", str(self.failed.path))
        elif "faulty" in state.read_text():
            command("mdadm", MD, "--remove", str(self.failed.path))
        elif "in_sync" in state.read_text():
            self.failed = None

    def come_to_rest(self) -> None:
        """Until nothing is missing and md has nothing to do."""
        until = time.monotonic() + 300
        while not self.is_idle():
            expect(time.monotonic() < until, True, Path("/proc/mdstat").read_text())
            if self.failed:
                self.fail()
            time.sleep(1)

    def restart(self) -> None:
        """Stopped, whatever it does just now, and assembled again."""
        for disk in self.members:
            disk.put("bad_ranges", "")
        self.kept.check()
        where = "in a reshape" if of_md("reshape_position") != "none" else "whole"
        was_attached = (CONFIGFS / "md0").is_dir()
        must("mdadm", "--stop", MD)
        expect((CONFIGFS / "md0").is_dir(), was_attached, "attached though it is stopped")
        paths = [str(disk.path) for disk in self.members if disk is not self.failed]
        if self.afterwards:
            paths.append(str(self.spare.path))
        words = ["mdadm", "--assemble", MD, "--run", f"--backup-file={BACKUP}"]
        must(*words, *paths)
        self.note(f"stopped {where}")
        self.kept.check()
        self.kept.write()

    def step(self) -> None:
        actions = [self.attach, self.attach, self.detach, self.scheduler, self.setting]
        actions += [self.requests, self.busy, self.look, self.fail]
        # mdadm changes what is whole only, which it seldom is.
        if self.is_idle():
            actions = [self.grow, self.reshape, self.reshape, self.fail, self.attach]
        action = self.rng.choice(actions)
        action()
        self.note(action.__name__)


def grows(level: str) -> dict[str, Any]:
    """An attached array grows and shrinks; the streams found where it was not before."""
    seen: dict[str, Any] = {}
    with disks(4, "stream", FEW_SECTORS) as members:
        create(level, members, f"--size={LITTLE}")
        kernelarray.attach(MD)
        end = int(Path("/sys/block/md0/size").read_text()) << 9
        must("mdadm", "--grow", MD, f"--size={MUCH}")
        expect(is_whole(), True, "resynced")
        job = "rw=read bs=64k ioengine=psync numjobs=2 size=8m offset_increment=16m loops=4"
        for when in ("before", "after"):
            was = counters()["established"]
            fio_each(f"filename={MD} direct=1 offset={end} {job}")
            seen[when] = counters()["established"] - was
            update(MD)
        seen["grown"] = (CONFIGFS / "md0/members").read_text()
        must("mdadm", "--grow", MD, f"--size={LITTLE}")
        update(MD)
        seen["shrunk"] = (CONFIGFS / "md0/members").read_text()
        seen["states"] = states()
        kernelarray.detach(MD)
        must("mdadm", "--stop", MD)
    return seen


def update(device: str) -> None:
    kernelarray.attach(device, update=True)


def coordinated() -> dict[str, str]:
    """What configfs has of the array."""
    names = kernelarray.read_array("md0").attributes()
    return {name: (CONFIGFS / "md0" / name).read_text().strip() for name in names}


def changes(level: str, rounds: int, seconds: int, seed: int) -> dict[str, int]:
    """So many rounds of verified I/O with all of this at once; after each it is stopped."""
    at = f"time_based runtime={seconds}"
    jobs = {
        "small": f"{at} rw=randwrite bs=4k size=8m iodepth=16 verify_backlog=16",
        "large": f"{at} rw=write bs=256k size=6m offset=8m iodepth=8 verify_backlog=64",
        **{
            f"reader{i}": f"{at} rw=read bs=64k size=2m offset={14 + 2 * i}m verify=0"
            for i in range(3)
        },
    }
    common = f"filename={MD} {VERIFY}"
    with disks(5, "stream", FEW_SECTORS) as found:
        create(level, found[:4], f"--size={LITTLE}")
        chaos = Changes(level, found[:4], found[4], seed)
        for _ in range(rounds):
            # So that much happens while it is reshaped.
            write_once(Path("/sys/block/md0/md/sync_speed_min"), "8000")
            thread, outcome = in_background(lambda: fio(common, jobs, one_by_one=False))
            while thread.is_alive():
                chaos.step()
                time.sleep(chaos.rng.random() / 6)
            result = outcome()
            check(result)
            chaos.restart()
        chaos.come_to_rest()
        chaos.attach()
        expect(set(states()), {"coordinated"})
        found_array = kernelarray.read_array("md0")
        mapped(found_array.shape, found_array.present)
        (CONFIGFS / "md0").rmdir()
        must("mdadm", "--stop", MD)
        for disk in found:
            disk.queue("scheduler", "stream")
            settled(disk.name)
    expect(leaks(), "", "kmemleak")
    return chaos.done


def in_background(
    act: Callable[[], dict[str, Any]],
) -> tuple[threading.Thread, Callable[[], dict[str, Any]]]:
    """A thread that does it, and how to have what came of it once it has ended."""
    outcome: list[dict[str, Any] | Exception] = []

    def run() -> None:
        try:
            outcome.append(act())
        except Exception as error:  # told by the thread that waits for this one
            outcome.append(error)

    def result() -> dict[str, Any]:
        (one,) = outcome
        if isinstance(one, Exception):
            raise one
        return one

    thread = threading.Thread(target=run)
    thread.start()
    return thread, result


def is_whole() -> bool:
    """Whether md has nothing to rebuild, soon at least."""
    for _ in range(12):
        time.sleep(5)
        if not re.search("recovery|resync", Path("/proc/mdstat").read_text()):
            return True
    return False


def module_users() -> int:
    return int(Path("/sys/module/stream_iosched/refcnt").read_text())


def placing_reads_are_held() -> dict[str, int]:
    """How many users the module has with placing reads throttled, their schedulers gone, and after.

    cgroup v1 can throttle the root, where the kernel's own threads are; the readers are below it.
    """
    mount = Path("/mnt")
    must("mount", "-t", "cgroup", "-o", "blkio", "none", str(mount))
    child = mount / "readers"
    child.mkdir()
    (child / "cgroup.procs").write_text(str(os.getpid()))
    disk = dataclasses.replace(load_disk("wd5000aaks"), queue_depth=32)
    members = [Emu(f"d{i}", disk) for i in range(5)]
    for member in members:
        member.queue("scheduler", "stream")
    create("0", members)
    kernelarray.attach(MD)
    seen = {"before": module_users()}

    def limit(bytes_s: int) -> None:
        for member in members:
            dev = Path(f"/sys/block/{member.name}/dev").read_text().strip()
            (mount / "blkio.throttle.read_bps_device").write_text(f"{dev} {bytes_s}")

    limit(1)
    job = f"rw=read bs=64k ioengine=psync numjobs=4 offset_increment={REGION}"
    fio_each(f"filename={MD} direct=1 time_based runtime=5s {job}")
    seen["turns"] = counters()["turns"]
    seen["read"] = module_users()
    for member in members:
        member.queue("scheduler", "none")
    (CONFIGFS / "md0").rmdir()
    seen["gone"] = module_users()
    expect(command("rmmod", "stream_iosched").returncode == 0, False, "rmmod")
    limit(0)
    time.sleep(5)
    seen["ended"] = module_users()
    must("rmmod", "stream_iosched")
    must("mdadm", "--stop", MD)
    expect(leaks(), "", "kmemleak")
    return seen


# ---- what it is for ----


def readers(
    level: str,
    scheduler: str,
    attach: bool,
    number: int,
    job: str,
    nr_disks: int = 5,
    layout: str = "",
    apart: int = REGION,
) -> dict[str, Any]:
    """So many of @job's processes on large disks: MB/s, the longest wait, the counters."""
    disk = dataclasses.replace(load_disk("wd5000aaks"), queue_depth=32)
    members = [Emu(f"d{i}", disk) for i in range(nr_disks)]
    for member in members:
        member.queue("scheduler", scheduler)
        if scheduler != "none":
            member.queue("nr_requests", 128)
    create(level, members, *([f"--layout={layout}"] if layout else []))
    if attach:
        kernelarray.attach(MD)
    # See kernel/rig/workload.sh: fio's own sleeping is measured when it starts.
    Path("/proc/self/timerslack_ns").write_text("2000")
    time.sleep(0.05)
    common = f"filename={MD} direct=1 numjobs={number} offset_increment={apart} runtime=15s"
    result = fio_each(f"{common} {job}")
    total = sum(one["read"]["io_bytes"] + one["write"]["io_bytes"] for one in result)
    took = max(one["job_runtime"] for one in result) / 1000
    return {
        "mb_s": total / 1e6 / took,
        "slowest_mb_s": min(one["read"]["bw_bytes"] for one in result) / 1e6,
        "longest_ms": max(one["read"]["clat_ns"]["max"] for one in result) / 1e6,
        "counters": counters() if attach else {},
    }


def requests_of(level: str, number: int, jobs: list[str]) -> list[int]:
    """How many requests the members of a fresh array get for each of these jobs."""
    found = []
    for job in jobs:
        with disks(number, "none", 1 << 20) as members:
            create(level, members)
            before = sum(map(requests, members))
            fio_each(f"filename={MD} direct=1 {job}")
            time.sleep(1)
            found.append(sum(map(requests, members)) - before)
            must("mdadm", "--stop", MD)
    return found


def requests(disk: Emu) -> int:
    """Reads and writes since the disk is there."""
    stat = Path(f"/sys/block/{disk.name}/stat").read_text().split()
    return int(stat[0]) + int(stat[4])


def fio_each(section: str) -> list[dict[str, Any]]:
    """Each clone of one job."""
    file = Path("/tmp/job.fio")
    file.write_text("\n".join(["[reader]", *section.split(), ""]))
    words = ["fio", "--max-jobs=32", "--alloc-size=1024", "--thread", "--output-format=json"]
    words += ["--eta=never", "--clocksource=clock_gettime", str(file)]
    run = subprocess.run(words, capture_output=True, text=True)
    expect(run.returncode, 0, run.stderr)
    jobs: list[dict[str, Any]] = json.loads(run.stdout[run.stdout.index("{") :])["jobs"]
    return jobs


if __name__ == "__main__":
    main(globals())
