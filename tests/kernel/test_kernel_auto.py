# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched auto` on the rig's real kernel, its schedulers and its trace, in virtual time."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from rig_driver import ROOT, VARIANT, need_rig

from streamsched.hosts import hddemu, rig
from streamsched.sim.diskfile import load_disk

pytestmark = pytest.mark.e2e

AUTO = f"{Path(sys.executable).parent / 'streamsched'} auto"
CHOOSE = f"{AUTO} hdd0 --among mq-deadline,stream --minutes 4"
FIO = "fio --clocksource=clock_gettime --filename=/dev/hdd0 --direct=1 --time_based --minimal"
SHOW = "cat scheduler iosched/read_expire nr_requests"
BEFORE = ["none [mq-deadline] kyber bfq stream", "250", "48"]


def readers(seconds: int) -> str:
    """Four readers of so much at once that seeks are a fourth of the time under any scheduler."""
    return (
        f"{FIO} --runtime={seconds} --name=r --rw=read --bs=3m --size=90g --numjobs=4"
        " --offset_increment=100g >/dev/null &\n"
    )


def guest(work: str) -> tuple[list[str], list[str], list[str]]:
    """What @work prints on the paper's disk, and what is in its files log and said."""
    need_rig()
    result = rig.run_in_rig(
        f"{hddemu.script('hdd0', load_disk('wd5000aaks'))}\nset -e\ncd /sys/block/hdd0/queue\n"
        "echo mq-deadline >scheduler; echo 250 >iosched/read_expire; echo 48 >nr_requests\n"
        f"touch $OUT/log $OUT/said\n{work}\nwait\n"
        "ls /run/streamsched /sys/kernel/tracing/instances",
        variant=VARIANT,
        timeout_s=600,
        show=[ROOT, Path(sys.prefix)],
    )
    assert result.status == 0, f"{result.stdout}\n{result.stderr}\n{result.files}"
    assert not result.complaints()
    assert "streamsched-" not in result.stdout  # no trace instance is left
    assert "auto-hdd0" not in result.stdout and "keep-hdd0" not in result.stdout
    printed = [line.rstrip() for line in result.stdout.splitlines()]
    return (printed, *(result.files[one].decode().splitlines() for one in ("log", "said")))


def test_it_finds_what_stream_gains_and_undo_puts_all_back() -> None:
    printed, log, _ = guest(
        f"{readers(255)}sleep 1\n{CHOOSE} --once >$OUT/log 2>$OUT/said\ncat scheduler\n"
        f"{AUTO} --undo hdd0 >>$OUT/log\n{SHOW}"
    )
    assert printed[:4] == ["none mq-deadline kyber bfq [stream]", *BEFORE]
    begun, changed, stays, undone = log
    assert begun == "hdd0: mq-deadline is compared with stream, 4 minutes each"
    found = r"hdd0: stream instead of mq-deadline: stream has [1-5]\d\.\d % more throughput \("
    assert re.match(found, changed)
    assert stays.startswith("hdd0: stream stays until the next boot; ")
    assert undone == "hdd0: mq-deadline again, as before"


def test_stopped_it_puts_all_back() -> None:
    """In the middle of a comparison."""
    printed, log, said = guest(
        f"{readers(80)}sleep 1\n{CHOOSE} >$OUT/log 2>$OUT/said & auto=$!\n"
        f"sleep 70; kill -TERM $auto; wait $auto\n{SHOW}"
    )
    assert printed[:3] == BEFORE
    assert log == ["hdd0: mq-deadline is compared with stream, 4 minutes each"] and said == []


def test_an_idle_disk_is_left_alone() -> None:
    printed, _, said = guest(f"{CHOOSE} --once >$OUT/log 2>$OUT/said && exit 1 || true\n{SHOW}")
    assert printed[:3] == BEFORE
    assert said[-1].startswith("streamsched: hdd0: is idle, 0 requests in 5 s; ")


def test_without_the_trace_it_says_so() -> None:
    printed, _, said = guest(
        "umount /sys/kernel/tracing\n"
        f"{CHOOSE} --once >$OUT/log 2>$OUT/said && exit 1 || true\n"
        f"mount -t tracefs tracefs /sys/kernel/tracing\n{SHOW}"
    )
    assert printed[:3] == BEFORE
    assert said[0].startswith("streamsched: note: hdd0: p99 is not known (/sys/kernel/tracing: ")
