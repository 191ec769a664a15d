# SPDX-License-Identifier: GPL-2.0-only
"""What test_kernel_historic.py runs inside the rig; see stream_guest.py."""

from __future__ import annotations

import mmap
import os
import threading
import time
from pathlib import Path

from hdd_emu_guest import SECTOR, Emu, expect, fio, main, small
from stream_guest import MODULES, VERIFY, check, command, counters, settled

WORK = {
    "random": "rw=randwrite bsrange=512-64k blockalign=512 size=4m iodepth=32",
    "sequential": "rw=write bs=4k size=2m offset=100m iodepth=32 numjobs=2 offset_increment=2m",
    "buffered": "rw=write bs=64k size=8m offset=200m direct=0 end_fsync=1",
    "synced": "rw=randwrite bs=4k size=256k offset=300m fsync=8",
}


def load_module() -> None:
    done = command("insmod", f"{MODULES}/historic-iosched.ko")
    expect(done.returncode, 0, done.stderr)


def each_keeps_data(names: list[str]) -> dict[str, int]:
    """How many requests each had; all that was written was read back."""
    load_module()
    arrivals = {}
    with Emu("d0") as emu:
        for name in names:
            emu.queue("scheduler", name)
            expect(f"[{name}]" in emu.queue("scheduler"), True, name)
            check(fio(f"filename=/dev/d0 {VERIFY}", WORK, one_by_one=False))
            arrivals[name] = settled("d0")["arrivals"]
    return arrivals


def switched_under_load(names: list[str]) -> int:
    """One after the other under verified writes, then the module unloaded; how many switches."""
    load_module()
    switches = 0
    done = threading.Event()
    with Emu("d0", small(queue_depth=4)) as emu:

        def change() -> None:
            nonlocal switches
            while not done.is_set():
                name = [*names, "stream", "none"][switches % (len(names) + 2)]
                emu.queue("scheduler", name)
                if name != "none":
                    emu.queue("nr_requests", 4 + 60 * (switches % 2))
                switches += 1
                time.sleep(0.05)

        thread = threading.Thread(target=change)
        thread.start()
        try:
            while switches < 3 * len(names) and thread.is_alive():
                check(fio(f"filename=/dev/d0 {VERIFY}", WORK, one_by_one=False))
        finally:
            done.set()
            thread.join()
        emu.queue("scheduler", names[0])
        settled("d0")
        expect(command("rmmod", "historic-iosched").returncode, 1, "in use")
        emu.queue("scheduler", "none")
    # See removal() in stream_guest.py.
    time.sleep(10)
    done_too = command("rmmod", "historic-iosched")
    expect(done_too.returncode, 0, done_too.stderr)
    return switches


def read_on(sectors: range) -> None:
    fd = os.open("/dev/d0", os.O_RDONLY | os.O_DIRECT)
    for sector in sectors:
        os.preadv(fd, [mmap.mmap(-1, 65536)], sector * SECTOR)
    os.close(fd)


def waits(scheduler: str, ways: int, ending: str) -> dict[str, int]:
    """What a scheduler counts while @ways readers read on, each in its own region.

    @ending: "exit" of each as soon as it has read, or "stay" for a second after that.
    """
    load_module()
    with Emu("d0") as emu:
        emu.queue("scheduler", scheduler)
        children = []
        for way in range(ways):
            first, length = 400_000 * way, 64 + 64 * way
            child = os.fork()
            if not child:
                read_on(range(first, first + 128 * length, 128))
                if ending == "stay":
                    time.sleep(1)
                os._exit(0)
            children.append(child)
        for child in children:
            expect(os.waitpid(child, 0)[1], 0)
        settled("d0")
        return counters("d0")


def schedulers() -> list[str]:
    load_module()
    with Emu("d0"):
        return Path("/sys/block/d0/queue/scheduler").read_text().split()


if __name__ == "__main__":
    main(globals())
