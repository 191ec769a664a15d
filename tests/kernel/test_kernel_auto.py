# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched auto` on the rig's real kernel, its schedulers and its trace, in virtual time."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from profile_data import small_profile
from rig_driver import ROOT, VARIANT, need_rig

from streamsched.auto import profile
from streamsched.hosts import hddemu, rig
from streamsched.sim.diskfile import load_disk

pytestmark = pytest.mark.e2e

COMMAND = Path(sys.executable).parent / "streamsched"
FIO = "fio --clocksource=clock_gettime --filename=/dev/hdd0 --direct=1 --time_based --minimal"
READERS = (
    f"{FIO} --name=reader --rw=read --bs=64k --size=8g --numjobs=4 --offset_increment=100g"
    " --runtime=12s >$OUT/readers"
)
SCHEDULER = "cat /sys/block/hdd0/queue/scheduler"


def guest(
    work: str, options: str = "", begin: str = "echo mq-deadline >scheduler"
) -> rig.RigResult:
    """Do @work on the paper's disk while the service chooses; its output is in the file log."""
    need_rig()
    service = f"{COMMAND} auto hdd0 --model wd5000aaks --profile $IN/profile.json --queue-depth 1"
    return rig.run_in_rig(
        f"{hddemu.script('hdd0', load_disk('wd5000aaks'))}\nset -e\n"
        f"(cd /sys/block/hdd0/queue; {begin})\n"
        f"{service} {options} >$OUT/log 2>&1 & service=$!\nsleep 1\n{work}\n{SCHEDULER}\n"
        f"kill -TERM $service; wait $service\n{SCHEDULER}\nls /sys/kernel/tracing/instances\n",
        variant=VARIANT,
        files={"profile.json": profile.as_text(small_profile())},
        timeout_s=600,
        show=[ROOT, Path(sys.prefix)],
    )


def outcome(result: rig.RigResult) -> tuple[list[str], list[str]]:
    """(schedulers in use, the service's log); it ended well and left no trace instance."""
    assert result.status == 0, f"{result.stdout}\n{result.stderr}\n{result.files}"
    assert not result.complaints()
    assert "streamsched-" not in result.stdout
    return re.findall(r"\[(\S+)\]", result.stdout), result.files["log"].decode().splitlines()


def test_it_finds_readers_in_sequence_and_puts_back_what_was_there() -> None:
    used, log = outcome(guest(READERS))
    assert used == ["stream", "mq-deadline"]
    begun, changed, ended = log
    assert begun.startswith("hdd0: deadline of noop, deadline, stream:deadline, stream:linus, for")
    looks = r"requests of 64 KiB, 100 % reads, (9\d|100) % in sequence, (9\d|100) % near others"
    found = rf"hdd0: mq-deadline -> stream \(inner \w+\): {looks}, [34]\.\d at once: "
    assert re.match(found, changed)
    assert ended == "hdd0: stopped, mq-deadline again"


def test_a_dry_run_changes_nothing() -> None:
    used, log = outcome(guest(READERS, "--dry-run"))
    assert used == ["mq-deadline", "mq-deadline"]
    assert len(log) == 2 and "would change mq-deadline to stream (inner " in log[1]


def test_work_that_it_was_right_for_is_left_alone() -> None:
    random = f"{FIO} --name=random --rw=randread --bs=4k --iodepth=32 --ioengine=libaio"
    begin = "echo stream >scheduler; echo linus >iosched/inner"
    used, log = outcome(guest(f"{random} --runtime=12s --norandommap >$OUT/r", begin=begin))
    assert used == ["stream", "stream"] and len(log) == 1


def test_without_the_trace_it_says_so_and_goes_on() -> None:
    work = f"{READERS}\nmount -t tracefs tracefs /sys/kernel/tracing"
    result = guest(work, begin="echo mq-deadline >scheduler; umount /sys/kernel/tracing")
    used, log = outcome(result)
    assert used[-1] == "mq-deadline"
    assert log[0].startswith("hdd0: the places of requests are not known (/sys/kernel/tracing: ")
