# SPDX-License-Identifier: GPL-2.0-only
"""What test_kernel_stream.py runs inside the rig; see hdd_emu_guest.py.

The situations are those that blktests looks for in its block group (tests/block of
https://github.com/linux-blktests/blktests): schedulers switched under load, few tags, timeouts
and requeues, tags that disks share, disks that go away.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import random
import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hdd_emu_guest import (
    CHECKED_KERNEL,
    SECTOR,
    Emu,
    Log,
    error_of,
    expect,
    fio,
    leaks,
    main,
    refused,
    small,
    write_once,
)

MODULES = os.environ.get("MODULES", "")
VERIFY = "direct=1 ioengine=libaio verify=crc32c verify_fatal=1 verify_state_save=0"
POINTS = "0:0 1000:8000000"


def streaming(emu: Emu) -> Emu:
    emu.queue("scheduler", "stream")
    return emu


def iosched(disk: str, name: str) -> Path:
    return Path("/sys/block") / disk / "queue" / "iosched" / name


def counters(disk: str) -> dict[str, int]:
    """The sums over the classes, and what is of no class."""
    text = (Path("/sys/kernel/debug/block") / disk / "sched" / "counters").read_text()
    sums: dict[str, int] = {}
    for name, value in re.findall(r"(\w+) (\d+)", text):
        sums[name] = sums.get(name, 0) + int(value)
    return sums


def settled(disk: str) -> dict[str, int]:
    """The counters, of a disk that has nothing to do; they must agree."""
    time.sleep(1)
    sums = counters(disk)
    expect((sums["pending"], sums["in_flight"]), (0, 0), f"{disk}: {sums}")
    # The others became part of one of these.
    joined = sums["arrivals"] - sums["removals"] - sums["dispatches"]
    expect(0 <= joined <= sums["merges"], True, f"{disk}: {sums}")
    expect(sums["dispatches"], sums["completions"], f"{disk}: {sums}")
    return sums


def check(jobs: dict[str, Any]) -> None:
    """All of fio's jobs wrote, and read back what they wrote."""
    for name, job in jobs.items():
        expect(job["error"], 0, name)
        # fio need not have come to verifying what it may trim again.
        kind = "trim" if "trims" in name else "read"
        expect(job[kind]["total_ios"] > 0, True, f"{name}: {kind}")


def command(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True)


# ---- what is written into sysfs ----


def refusals(rows: list[list[str]]) -> list[list[str]]:
    """Write each (file, value): refused, the file as it was, one line in the log. The lines."""
    lines = []
    with Emu("d0") as emu:
        streaming(emu)
        for name, value in rows:
            line = refused(iosched("d0", name), value, prefix="stream")
            expect(line.startswith(f"d0: {name}: "), True, line)
            lines.append([name, value, line])
    return lines


def usable(tags: Path) -> int:
    """How many tags can be taken."""
    found = re.search(r"^bitmap_tags:\ndepth=(\d+)", tags.read_text(), re.MULTILINE)
    assert found, tags.read_text()
    return int(found[1])


def scarce() -> dict[str, int]:
    """Do each thing for which memory is needed, with the first, the second, ... allocation failing.

    How many failures each has seen until it succeeded.
    """
    memory_for = Path("/sys/module/stream_iosched/parameters/memory_for")
    failed: dict[str, int] = {}

    def attempt(what: str, function: Callable[[], str], now: Callable[[], Any]) -> None:
        """@function gives the name of an error, ENOMEM until all is there; then @now changes."""
        for enough in range(100):
            before = now()
            write_once(memory_for, str(enough))
            code = function()
            left = int(memory_for.read_text())
            write_once(memory_for, "-1")
            if left >= 0:  # all that was asked for was there
                break
            expect((code, now()), ("ENOMEM", before), f"{what}, allocation {enough}")
            emu.write(8 * enough, bytes([enough + 1]) * 4096)
            expect(emu.read(8 * enough, 8), bytes([enough + 1]) * 4096)
        expect(code, "", what)
        failed[what] = enough

    def curve() -> str:
        return iosched("d0", "service_curve").read_text()

    def write(name: str, value: str) -> Callable[[], str]:
        return lambda: error_of(write_once, iosched("d0", name), value)

    with Emu("d0") as emu, Log("stream") as log:
        streaming(emu)
        attempt("shown", lambda: error_of(curve), int)
        attempt("curve", write("service_curve", POINTS), curve)
        expect(curve().strip(), POINTS)
        attempt("inner", write("inner", "sptf"), iosched("d0", "inner").read_text)
        expect("[sptf]" in iosched("d0", "inner").read_text(), True, "inner")
        for line in log.lines():
            expect(line in ("d0: service_curve: out of memory", "d0: inner: out of memory"), True)
        # The kernel cannot be told that there was no room for more requests.
        for number in (512, 700):
            tags = Path("/sys/kernel/debug/block/d0/hctx0/sched_tags")
            before = (usable(tags), counters("d0")["async_depth"])
            write_once(memory_for, "0")
            emu.queue("nr_requests", number)
            expect(memory_for.read_text().strip(), "-1", "one allocation failed")
            expect((usable(tags), counters("d0")["async_depth"]), before, "tags in use")
            line = f"d0: nr_requests: out of memory, {before[0]} stay in use"
            expect(log.lines(), [line], "log")
            job = "filename=/dev/d0 rw=randwrite bs=4k size=2m iodepth=256"
            check(fio(VERIFY, {"a": job}))
            settled("d0")
        write_once(memory_for, "0")
        emu.queue("nr_requests", 40)
        write_once(memory_for, "-1")
        expect((usable(tags), log.lines()), (40, []), "fewer need none")
        emu.queue("nr_requests", 600)
        expect((usable(tags), counters("d0")["async_depth"]), (600, 375), "memory is back")
        emu.queue("scheduler", "none")
        emu.queue("rotational", 0)
        streaming(emu)
        attempt("flat disk", write("service_curve", POINTS), lambda: (curve(), counters("d0")))
        expect(curve().strip(), POINTS)
        emu.queue("scheduler", "none")
        path = Path("/sys/block/d0/queue/scheduler")
        attempt("scheduler", lambda: error_of(write_once, path, "stream"), path.read_text)
        expect("[stream]" in path.read_text(), True, "scheduler")
        settled("d0")
    return failed


# ---- few tags, many queues ----


def one_tag() -> list[int]:
    """A disk that takes one command, and as few requests as the block layer allows."""
    with Emu("d0", small(queue_depth=1)) as emu:
        streaming(emu)
        write_once(Path("/sys/block/d0/queue/nr_requests"), "1")
        tags = int(emu.queue("nr_requests"))
        jobs = {
            "a": "rw=randwrite bsrange=512-64k blockalign=512 size=2m iodepth=32",
            "b": "rw=randwrite bs=4k size=512k offset=100m numjobs=4 offset_increment=2m",
            "c": "rw=write bs=64k size=8m offset=200m direct=0 end_fsync=1",
        }
        check(fio(f"filename=/dev/d0 {VERIFY}", jobs, one_by_one=False))
        sums = settled("d0")
        return [tags, sums["async_depth"]]


def asynchronous_depth() -> list[int] | None:
    """How many requests nobody waits for are let in: as usual, as said, after more requests, and
    as usual again; None where the kernel has no queue/async_depth.
    """
    with Emu("d0", small(queue_depth=1)) as emu:
        streaming(emu)
        if not Path("/sys/block/d0/queue/async_depth").exists():
            return None
        found = []
        for name, value in (
            ("nr_requests", 2),
            ("nr_requests", 64),
            ("async_depth", 16),
            ("nr_requests", 128),
            ("async_depth", 128),
        ):
            emu.queue(name, value)
            found.append(counters("d0")["async_depth"])
        for scheduler in ("none", "stream"):
            emu.queue("scheduler", scheduler)
        found.append(counters("d0")["async_depth"])
        return found


def number_of_requests() -> None:
    """Changed all the time, from the least to many."""
    with Emu("d0") as emu:
        streaming(emu)
        done = threading.Event()

        def change() -> None:
            rng = random.Random(1)
            while not done.is_set():
                number = rng.choice([4, 5, 31, 63, 64, 65, 256, 1024])
                expect(emu.queue("nr_requests", number), str(number))
                time.sleep(rng.random() / 20)

        thread = threading.Thread(target=change)
        thread.start()
        try:
            jobs = {
                "a": "rw=randwrite bsrange=512-64k blockalign=512 size=8m iodepth=64",
                "b": "rw=write bs=4k size=2m offset=100m iodepth=64",
            }
            check(fio(f"filename=/dev/d0 {VERIFY}", jobs, one_by_one=False))
        finally:
            done.set()
            thread.join()
        settled("d0")


def shared_tags(bitmap: int) -> list[int]:
    """Two disks have two tags together; @bitmap: the schedulers' are one set, too."""
    options = "gb=1 queue_mode=2 irqmode=2 completion_nsec=500000 memory_backed=1 nr_devices=2"
    # Its memory is allocated where it may sleep; it does not see to that by itself when tags
    # are shared (null_init_global_tag_set() in drivers/block/null_blk/main.c).
    shared = f"blocking=1 hw_queue_depth=2 shared_tags=1 shared_tag_bitmap={bitmap}"
    done = command("insmod", f"{MODULES}/null_blk.ko", *options.split(), *shared.split())
    expect(done.returncode, 0, done.stderr)
    for disk in ("nullb0", "nullb1"):
        write_once(Path("/sys/block") / disk / "queue" / "scheduler", "stream")
        # A curve makes it wait on these, too.
        write_once(iosched(disk, "service_curve"), POINTS)
    work = "rw=randwrite bsrange=512-64k blockalign=512 size=8m iodepth=32 numjobs=2"
    jobs = {
        f"{disk}{i}": f"filename=/dev/{disk} offset={100 * i}m offset_increment=20m {work}"
        for disk in ("nullb0", "nullb1")
        for i in range(2)
    }
    check(fio(VERIFY, jobs, one_by_one=False))
    arrivals = [settled(disk)["arrivals"] for disk in ("nullb0", "nullb1")]
    expect(command("rmmod", "null_blk").returncode, 0)
    return arrivals


def hardware_queues() -> dict[str, int]:
    """A disk with two, each with tags of its own; they share the disk's one scheduler.

    With the rig's one processor null_blk makes one queue for submitting and one for polling, and
    all requests come by the first; kernel/qemu/stress.sh has two queues for two processors.
    """
    options = "gb=1 queue_mode=2 irqmode=2 completion_nsec=500000 memory_backed=1 nr_devices=1"
    queues = "blocking=1 hw_queue_depth=4 submit_queues=4 poll_queues=1"
    done = command("insmod", f"{MODULES}/null_blk.ko", *options.split(), *queues.split())
    expect(done.returncode, 0, done.stderr)
    queue = Path("/sys/block/nullb0/queue")
    work = "filename=/dev/nullb0 rw=randwrite bsrange=512-64k blockalign=512 iodepth=32"
    jobs = {
        f"a{i}": f"{work} size=2m offset={100 * i}m numjobs=2 offset_increment=20m"
        for i in range(2)
    }
    reader = "filename=/dev/nullb0 rw=read bs=64k ioengine=psync verify=0 size=8m"
    jobs |= {f"r{i}": f"{reader} offset={60 + 20 * i}m" for i in range(2)}
    for requests in (4, 64):
        write_once(queue / "scheduler", "stream")
        # A curve makes it wait here, too.
        write_once(iosched("nullb0", "service_curve"), POINTS)
        write_once(queue / "nr_requests", str(requests))
        check(fio(VERIFY, jobs, one_by_one=False))
        sums = settled("nullb0")
        write_once(queue / "scheduler", "none")
    sums["queues"] = len(list(Path("/sys/kernel/debug/block/nullb0").glob("hctx*")))
    expect(command("rmmod", "null_blk").returncode, 0)
    return sums


def busy(disk: str) -> list[int]:
    """How many commands of each hardware queue the drive has: no virtual time passes in between."""
    queues = sorted(Path(f"/sys/kernel/debug/block/{disk}").glob("hctx*"))
    return [(queue / "busy").read_text().count("\n") for queue in queues]


def in_order(event: str, trace: str) -> list[int]:
    return [int(sector) for sector in re.findall(rf"{event}: .* \(\) (\d+) \+ ", trace)]


def held_then_sent(emu: Emu, seed: int) -> list[int]:
    """A stream is held for; meanwhile writes arrive, and go when it ends.

    They go in the order in which they came, as the inner policy is noop; several reads of one
    process would be apart, by position. How many commands of each hardware queue the drive had.
    """
    tracing = Path("/sys/kernel/tracing")
    rng = random.Random(seed)
    sectors = [rng.randrange(100_000, 240_000) * 8 for _ in range(12)]
    stopped = threading.Event()

    def send(at: int) -> None:
        stopped.wait()
        time.sleep((at + 1) * 1e-4)
        emu.write(sectors[at], sectors[at].to_bytes(8) * 512)

    # Anew: what it learns by this is that waiting was wrong. It thinks for some time, for so long
    # it is waited for.
    write_once(iosched("d0", "inner"), "noop")
    threads = [threading.Thread(target=send, args=(at,)) for at in range(len(sectors))]
    for thread in threads:
        thread.start()
    for at in range(10):
        time.sleep((1 + at % 3 * 3) * 1e-3)
        emu.read((1000 * seed + at) * 8, 8)
    before = counters("d0")
    write_once(tracing / "tracing_on", "1")
    stopped.set()
    time.sleep(2e-3)
    expect(sum(busy("d0")), 0, "in the drive while the head is held")
    waited = counters("d0")
    expect((waited["waits"] - before["waits"], waited["pending"]), (1, 12), "held")
    while not sum(busy("d0")):
        time.sleep(2e-5)
    # They may have been sent in the middle of that look.
    seen = busy("d0")
    for thread in threads:
        thread.join()
    write_once(tracing / "tracing_on", "0")
    trace = (tracing / "trace").read_text()
    (tracing / "trace").open("w").close()
    expect(in_order("block_rq_insert", trace), sectors, "as they came")
    expect(in_order("block_rq_issue", trace), sectors, "as they went")
    for at in range(len(sectors)):
        expect(emu.read(sectors[at], 8), sectors[at].to_bytes(8) * 512, f"write {at}")
    return seen


def busy_queues(queues: int) -> list[list[int]]:
    """Several hardware queues with commands in the drive at once."""
    # So that a pause is as long as it says: the drive's cache takes several writes in 0.1 ms.
    Path("/proc/self/timerslack_ns").write_text("2000")
    seen = []
    with Emu("d0", hardware_queues=queues) as emu:
        streaming(emu)
        write_once(iosched("d0", "service_curve"), POINTS)
        tracing = Path("/sys/kernel/tracing")
        write_once(tracing / "tracing_on", "0")
        for event in ("block_rq_insert", "block_rq_issue"):
            write_once(tracing / "events/block" / event / "enable", "1")
        for seed in range(5):
            seen.append(held_then_sent(emu, seed))
            settled("d0")
        for event in ("block_rq_insert", "block_rq_issue"):
            write_once(tracing / "events/block" / event / "enable", "0")
        # More than the drive takes, so that tags have to be waited for.
        for requests in (8, 128):
            emu.queue("nr_requests", requests)
            jobs = {
                f"{way}{i}": f"rw={way} bs=4k size=1m offset={50 * at + 20 * i}m iodepth=32"
                for at, way in enumerate(("randwrite", "write", "randrw"))
                for i in range(2)
            }
            check(fio(f"filename=/dev/d0 {VERIFY} verify_backlog=64", jobs, one_by_one=False))
            settled("d0")
    return seen


# ---- what the driver does ----


def requeues(disk: str) -> dict[str, int]:
    """Every command comes back once: each is served, once, whatever it was merged with."""
    depth = {"queue_depth": 1} if disk == "plain" else {}
    with Emu("d0", small(**depth)) as emu:
        streaming(emu)
        emu.put("bad_ranges", "0 2000000 both busy")
        jobs = {
            "random": "rw=randwrite bsrange=512-64k blockalign=512 size=4m iodepth=32",
            "sequential": "rw=write bs=4k size=2m offset=100m iodepth=32",
            "synced": "rw=randwrite bs=4k size=256k offset=200m fsync=8",
            "trims": "rw=randtrimwrite bs=4k size=1m offset=300m iodepth=8",
        }
        check(fio(f"filename=/dev/d0 {VERIFY}", jobs, one_by_one=False))
        return settled("d0")


def curve_of_returned() -> list[str]:
    """The service curve before and after many commands that the drive gave back at once."""
    with Emu("d0", small(queue_depth=1)) as emu:
        streaming(emu)
        emu.put("bad_ranges", "0 2000000 both busy")
        curve = iosched("d0", "service_curve")
        before = curve.read_text()
        job = "rw=randread norandommap bs=4k size=900m io_size=4m"
        fio("filename=/dev/d0 direct=1 ioengine=psync", {"a": job})
        return [before, curve.read_text()]


def merged_before(way: str) -> int:
    """How many of 256 that come in descending order are joined."""
    with Emu("d0", small(queue_depth=1)) as emu:
        streaming(emu).queue("nr_requests", 64)
        job = f"rw={way}:-8k bs=4k size=1m offset=100m iodepth=32"
        fio("filename=/dev/d0 direct=1 ioengine=libaio", {"a": job})
        return settled("d0")["merges"]


def timeouts() -> list[float]:
    """A command without an answer keeps no other one from being served."""
    with Emu("d0") as emu:
        streaming(emu)
        emu.queue("io_timeout", 3000)
        emu.put("bad_ranges", "1000000 100000 read timeout")
        codes: list[str] = []
        ends: list[float] = []
        begin = time.monotonic()

        def read(sector: int) -> None:
            fd = os.open("/dev/d0", os.O_RDONLY | os.O_DIRECT)
            codes.append(error_of(os.preadv, fd, [mmap.mmap(-1, 4096)], sector * SECTOR))
            ends.append(time.monotonic() - begin)
            os.close(fd)

        threads = [threading.Thread(target=read, args=(1_000_000 + 800 * i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        job = "rw=randread bs=4k size=480m io_size=512k iodepth=16 norandommap"
        result = fio("filename=/dev/d0 direct=1 ioengine=libaio", {"a": job})
        took = time.monotonic() - begin
        for thread in threads:
            thread.join()
        expect(codes, ["ETIMEDOUT"] * 8)
        expect(result["a"]["error"], 0)
        emu.put("bad_ranges", "")
        emu.read(1_000_000, 8)
        settled("d0")
        return [took, min(ends), max(ends)]


def errors() -> None:
    """What the disk refuses is refused, what was merged with it too, the rest is served."""
    with Emu("d0") as emu:
        streaming(emu)
        emu.put("bad_ranges", "2048 8 read EIO")
        expect(error_of(emu.read, 2048, 8), "EIO")
        for sector in (2040, 2056, 100_000):
            expect(error_of(emu.read, sector, 8), "")
        settled("d0")


def removal() -> None:
    """The disk is torn out under load, with requests in it, held and waiting for tags."""

    def load(path: Path, seed: int, codes: list[str]) -> None:
        """Requests until one fails, or finds a disk without sectors."""
        rng, at = random.Random(seed), 100_000 * seed
        fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        buffer = mmap.mmap(-1, 65536)
        done, code = 1, ""
        while done and not code:
            try:
                if seed % 4:
                    done = os.preadv(fd, [buffer], at * SECTOR)
                else:
                    done = os.pwritev(fd, [buffer], at * SECTOR)
            except OSError as error:
                code = errno.errorcode[error.errno or 0]
            at = at + 128 if seed % 2 else rng.randrange(1_900_000)
        os.close(fd)
        codes.append(code)

    for attempt in range(4):
        emu = streaming(Emu("d0", small(queue_depth=1 + 31 * (attempt % 2))))
        emu.queue("nr_requests", 8)
        write_once(iosched("d0", "inner"), ("deadline", "sptf")[attempt // 2])
        codes: list[str] = []
        threads = [
            threading.Thread(target=load, args=(emu.path, seed, codes), daemon=True)
            for seed in range(16)
        ]
        for thread in threads:
            thread.start()
        time.sleep(1 + attempt / 7)
        expect(codes, [], "nothing fails before")
        begin = time.monotonic()
        emu.folder.rmdir()
        for thread in threads:
            thread.join()
        expect(time.monotonic() - begin < 5, True, "seconds until all were gone")
        expect(set(codes) <= {"EIO", "ENXIO", "ENODEV", "ENOSPC", ""}, True, f"{codes}")
        expect(emu.path.exists(), False)
    # Nobody uses the scheduler any more; the kernel with checks puts off for seconds the end of
    # what is used no longer, to find who uses it nevertheless (CONFIG_DEBUG_KOBJECT_RELEASE).
    time.sleep(10)
    expect(command("rmmod", "stream-iosched").returncode, 0)


# ---- what requests are ----


def discards() -> None:
    """Scheduled as writes that nobody waits for; what is read after one is zero."""
    with Emu("d0") as emu:
        streaming(emu)
        job = "rw=randtrimwrite bs=4k size=4m iodepth=32"
        (done,) = fio(f"filename=/dev/d0 {VERIFY}", {"a": job}).values()
        expect(done["error"], 0)
        expect(done["trim"]["total_ios"] > 500, True, "trims")
        data = bytes(range(256)) * 16
        for i in range(64):
            emu.write(8 * i, data)
        stop = threading.Event()

        # Behind the disk's end no read takes time, and here nothing goes on without time.
        def load() -> None:
            fd = os.open("/dev/d0", os.O_RDONLY | os.O_DIRECT)
            begin, end = 1_000_000, os.lseek(fd, 0, os.SEEK_END) // SECTOR - 128
            at, room = begin, mmap.mmap(-1, 65536)
            while not stop.is_set():
                os.preadv(fd, [room], at * SECTOR)
                at = at + 128 if at + 128 <= end else begin
            os.close(fd)

        thread = threading.Thread(target=load)
        thread.start()
        for i in range(0, 64, 2):
            emu.discard(8 * i, 8)
            expect(emu.read(8 * i, 16), bytes(4096) + data, f"block {i}")
        stop.set()
        thread.join()
        settled("d0")


def merged_behind_write_back() -> list[int]:
    """A write that somebody waits for, right behind the last but one of 100 that nobody does.

    How many requests were merged, and how many were sent while he waited.
    """
    with Emu("d0", small(queue_depth=1)) as emu:
        streaming(emu)
        emu.queue("nr_requests", 256)
        fd = os.open("/dev/d0", os.O_RDWR)
        for at in range(100):
            os.pwrite(fd, bytes(4096), at * 2**20)
        libc = ctypes.CDLL(None, use_errno=True)
        whole, begin = ctypes.c_int64(0), 2  # SYNC_FILE_RANGE_WRITE
        expect(libc.sync_file_range(fd, whole, whole, begin), 0)
        before = counters("d0")
        expect(before["pending"] > 90, True, f"{before}")
        emu.write(98 * 2**20 // SECTOR + 8, bytes(4096))
        after = counters("d0")
        os.close(fd)
        settled("d0")
    return [after[name] - before[name] for name in ("merges", "dispatches")]


class Writer(threading.Thread):
    """Writes, and sometimes flushes, its own part of a disk until that fails.

    may_be: for each of its sectors the versions that it may have after a failure of power.
    """

    def __init__(self, path: Path, first: int, sectors: int, versions: list[int], seed: int):
        super().__init__()
        self.path, self.first, self.rng = path, first, random.Random(seed)
        self.now = versions
        self.may_be = [{version} for version in versions]
        self.version = max(versions)
        self.flushes = 0

    @staticmethod
    def stamp(version: int) -> bytes:
        return version.to_bytes(8, "little") * (SECTOR // 8)

    def write(self, fd: int, synced: bool) -> bool:
        sectors = self.rng.choice([1, 3, 8, 40])
        at = self.rng.randrange(len(self.now) - sectors)
        self.version += 1
        buffer = mmap.mmap(-1, sectors * SECTOR)
        buffer[:] = self.stamp(self.version) * sectors
        failed = error_of(os.pwritev, fd, [buffer], (self.first + at) * SECTOR)
        for i in range(at, at + sectors):
            if synced and not failed:
                self.may_be[i] = {self.version}
            else:
                self.may_be[i] = self.may_be[i] | {self.version}
            self.now[i] = self.version
        return not failed

    def run(self) -> None:
        fd = os.open(self.path, os.O_RDWR | os.O_DIRECT)
        synced = os.open(self.path, os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
        going = True
        while going:
            kind = self.rng.random()
            if kind < 0.1:
                going = not error_of(os.fdatasync, fd)
                if going:
                    self.may_be = [{version} for version in self.now]
                    self.flushes += 1
            else:
                going = self.write(*((synced, True) if kind < 0.2 else (fd, False)))
            if self.rng.random() < 0.05:
                time.sleep(self.rng.random() / 20)
        os.close(fd)
        os.close(synced)


def power_cuts(scheduler: str, seed: int) -> dict[str, int]:
    """Several write and flush at once, in whatever order; then the power fails.

    What was flushed, or written with FUA, before is there; nothing is that nobody wrote.
    """
    rng = random.Random(seed)
    sectors, writers, lost, kept, flushes = 512, 6, 0, 0, 0
    versions = [[0] * sectors for _ in range(writers)]
    with Emu("d0", small(write_cache_sectors=512, write_cache_extents=16)) as emu:
        emu.queue("scheduler", scheduler)
        for _ in range(12):
            threads = [
                Writer(emu.path, i * 20_000, sectors, versions[i], rng.randrange(10**9))
                for i in range(writers)
            ]
            for thread in threads:
                thread.start()
            time.sleep(rng.random() / 2)
            emu.put("power_cut", 1)
            for thread in threads:
                thread.join()
            emu.put("power_cut", 0)
            for i, thread in enumerate(threads):
                found = emu.read(thread.first, sectors)
                for at in range(sectors):
                    sector = found[at * SECTOR : (at + 1) * SECTOR]
                    version = int.from_bytes(sector[:8], "little")
                    expect(sector == Writer.stamp(version), True, f"{i}: sector {at} is whole")
                    if version not in thread.may_be[at]:
                        raise AssertionError(
                            f"{i}: sector {at} is {version}, not of {thread.may_be[at]}"
                        )
                    lost += version != thread.now[at]
                    kept += version == thread.now[at] and len(thread.may_be[at]) > 1
                    versions[i][at] = version
                flushes += thread.flushes
    return {"lost": lost, "kept": kept, "flushes": flushes}


def changed_inner() -> float:
    """Seconds until a request is served that is passed over until it is old.

    The inner policy changes every 100 ms: as if all began anew, it would never be.
    """
    with Emu("d0", small(queue_depth=1)) as emu:
        streaming(emu)
        write_once(iosched("d0", "inner"), "sptf")
        write_once(iosched("d0", "age_limit"), "500ms")
        # With the two that there would be, it would wait to be a request at all.
        emu.queue("nr_requests", 64)
        stop = threading.Event()

        def near(seed: int) -> None:
            fd = os.open("/dev/d0", os.O_RDONLY | os.O_DIRECT)
            rng = random.Random(seed)
            while not stop.is_set():
                os.preadv(fd, [mmap.mmap(-1, SECTOR)], rng.randrange(2000) * SECTOR)
            os.close(fd)

        threads = [threading.Thread(target=near, args=(seed,)) for seed in range(4)]
        took: list[float] = []

        def far() -> None:
            fd = os.open("/dev/d0", os.O_RDONLY | os.O_DIRECT)
            begin = time.monotonic()
            os.preadv(fd, [mmap.mmap(-1, SECTOR)], 1_900_000 * SECTOR)
            took.append(time.monotonic() - begin)
            os.close(fd)

        for thread in threads:
            thread.start()
        time.sleep(0.2)
        lone = threading.Thread(target=far)
        lone.start()
        for _ in range(20):
            time.sleep(0.1)
            write_once(iosched("d0", "inner"), "sptf")
        stop.set()
        for thread in [*threads, lone]:
            thread.join()
        return took[0]


# ---- all at once ----

SCHEDULERS = ["stream", "stream", "stream", "mq-deadline", "none", "kyber", "bfq"]
SETTINGS = {
    "inner": ["noop", "deadline", "cscan", "sptf"],
    "stream_threshold": ["2", "4", "50"],
    "wait_target": ["10ms", "1s"],
    "read_expire": ["1ms", "500ms"],
    "prio_aging_expire": ["1ms", "10s"],
    "service_curve": ["learn", POINTS],
}
FAULTY = 1_000_000  # from this sector on commands may fail
FAULTS = [
    "",
    f"{FAULTY} 200000 both EIO",
    f"{FAULTY} 100000 both timeout",
    f"{FAULTY} 1000 read timeout\n0 2000000 both busy",
    "0 2000000 both busy",
]


class Chaos:
    """Changes to disks at random, while they are in use; what was done how often."""

    def __init__(self, disks: list[Emu], seed: int) -> None:
        self.disks, self.rng = disks, random.Random(seed)
        self.done: dict[str, int] = {}

    def attempt(self, path: Path, value: str) -> bool:
        """Write what cannot always be: a scheduler's own file may just have gone."""
        code = error_of(write_once, path, value)
        expect(code in ("", "EINVAL", "ENOENT", "ENODEV", "EBUSY"), True, f"{path}: {code}")
        return not code

    def scheduler(self, disk: Emu) -> bool:
        queue = Path("/sys/block") / disk.name / "queue"
        if self.rng.random() < 0.3:
            # Several at the same time.
            names = self.rng.sample(SCHEDULERS, 3)
            writes = [f"echo {name} >{queue}/scheduler &" for name in names]
            return command("sh", "-c", "\n".join([*writes, "wait"])).returncode == 0
        return self.attempt(queue / "scheduler", self.rng.choice(SCHEDULERS))

    def setting(self, disk: Emu) -> bool:
        name = self.rng.choice(list(SETTINGS))
        return self.attempt(iosched(disk.name, name), self.rng.choice(SETTINGS[name]))

    def requests(self, disk: Emu) -> bool:
        path = Path("/sys/block") / disk.name / "queue"
        self.attempt(path / "nomerges", str(self.rng.randrange(3)))
        return self.attempt(path / "nr_requests", self.rng.choice(["4", "17", "64", "256"]))

    def faults(self, disk: Emu) -> bool:
        disk.put("bad_ranges", self.rng.choice(FAULTS))
        disk.put("delays", self.rng.choice(["", "0 2000000 both 3000000"]))
        return True

    def look(self, disk: Emu) -> bool:
        """All that can be read of the scheduler."""
        read = 0
        for folder in (f"/sys/block/{disk.name}/queue", f"/sys/kernel/debug/block/{disk.name}"):
            for path in Path(folder).rglob("*"):
                if path.is_file() and os.access(path, os.R_OK):
                    read += not error_of(path.read_bytes)
        return read > 0

    def module(self, _: Emu) -> bool:
        """Out of use, unloaded, loaded.

        Not on the kernel with checks: User Mode Linux keeps KASAN's marks around the variables of
        an unloaded module, and reports the next one that is loaded into the same memory.
        """
        if CHECKED_KERNEL:
            return True
        for disk in self.disks:
            self.attempt(Path("/sys/block") / disk.name / "queue/scheduler", "none")
        unloaded = command("rmmod", "stream-iosched").returncode == 0
        if unloaded:
            expect(command("insmod", f"{MODULES}/stream-iosched.ko").returncode, 0, "insmod")
        return unloaded

    def step(self) -> None:
        actions: list[Callable[[Emu], bool]] = [
            *[self.scheduler] * 4,
            *[self.setting] * 6,
            *[self.requests] * 3,
            *[self.faults] * 2,
            self.look,
            self.module,
        ]
        action = self.rng.choice(actions)
        name = action.__name__
        self.done[name] = self.done.get(name, 0) + action(self.rng.choice(self.disks))


def stress(seconds: int, seed: int) -> dict[str, int]:
    """Verified writes to two disks for that long, with all of the above at once."""
    jobs = {}
    for disk in ("d0", "d1"):
        at = f"filename=/dev/{disk} time_based runtime={seconds}"
        jobs |= {
            f"{disk}-small": f"{at} rw=randwrite bs=4k size=64m iodepth=16",
            f"{disk}-large": f"{at} rw=write bs=64k size=64m offset=100m iodepth=8",
            f"{disk}-synced": f"{at} rw=randwrite bs=4k size=16m offset=200m fsync=16",
            f"{disk}-idle": f"{at} rw=randwrite bs=8k size=16m offset=300m prioclass=3 iodepth=4",
            f"{disk}-trims": f"{at} rw=randtrimwrite bs=4k size=16m offset=350m iodepth=4",
            f"{disk}-failing": f"{at} rw=randrw bs=4k size=100m offset=512m iodepth=4 verify=0"
            " continue_on_error=all ignore_error=5:110,5:110",
        }
    outcome: list[dict[str, Any] | Exception] = []

    def load() -> None:
        try:
            outcome.append(fio(f"{VERIFY} verify_backlog=64", jobs, one_by_one=False))
        except Exception as error:  # told by the thread that waits for this one
            outcome.append(error)

    with Emu("d0") as first, Emu("d1", small(queue_depth=1)) as second:
        chaos = Chaos([first, second], seed)
        for disk in chaos.disks:
            disk.queue("io_timeout", 1000)
        thread = threading.Thread(target=load)
        thread.start()
        while thread.is_alive():
            chaos.step()
            time.sleep(chaos.rng.random() / 10)
        for disk in chaos.disks:
            disk.put("bad_ranges", "")
            disk.queue("scheduler", "stream")
            disk.read(0, 8)
            settled(disk.name)
    (result,) = outcome
    if isinstance(result, Exception):
        raise result
    for name, job in result.items():
        # One that its injected faults hit at its very end reports the last of them.
        allowed = (0, errno.EIO, errno.ETIMEDOUT) if "failing" in name else (0,)
        expect(job["error"] in allowed, True, f"{name}: {job['error']}")
    expect(leaks(), "", "kmemleak")
    ios = {
        name: sum(job[kind]["total_ios"] for kind in ("read", "write", "trim"))
        for name, job in result.items()
        if "idle" not in name  # which may have to wait for all others
    }
    for name, count in ios.items():
        expect(count > 0, True, f"{name} did something: {result[name]['error']}")
    return chaos.done | {"ios": sum(ios.values())}


if __name__ == "__main__":
    main(globals())
