# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched advise` watching a disk on the rig's real kernel: what it forecasts comes."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rig_driver import ROOT, VARIANT, need_rig
from said import COMMAND

from streamsched.hosts import hddemu, rig
from streamsched.sim.diskfile import load_disk

pytestmark = pytest.mark.e2e

DISK = dataclasses.replace(load_disk("wd5000aaks"), queue_depth=32)
FIO = "fio --clocksource=clock_gettime --filename=/dev/hdd0 --direct=1 --time_based --minimal"
READERS = (
    f"{FIO} --name=r --rw=read --bs=64k --size=8g --numjobs=3 --offset_increment=100g --runtime=9s"
)


def advised(work: str, options: str, begin: str) -> rig.RigResult:
    """Do @work while the disk is watched, and again under stream."""
    need_rig()
    advise = f"{COMMAND} advise hdd0 --model wd5000aaks --queue-depth 32 --output json"
    result = rig.run_in_rig(
        f"{hddemu.script('hdd0', DISK)}\nset -e\necho {begin} >/sys/block/hdd0/queue/scheduler\n"
        f"{work} >$OUT/before &\nsleep 1\n{advise} {options} >$OUT/said 2>$OUT/err || true\nwait\n"
        "cat /sys/block/hdd0/queue/scheduler; ls /sys/kernel/tracing/instances\n"
        f"echo stream >/sys/block/hdd0/queue/scheduler\n{work} >$OUT/after\n",
        variant=VARIANT,
        timeout_s=600,
        show=[ROOT, Path(sys.prefix)],
    )
    assert result.status == 0, f"{result.stdout}\n{result.stderr}\n{result.files}"
    assert not result.complaints()
    # Nothing was changed, and nothing is left.
    assert f"[{begin}]" in result.stdout and "streamsched-" not in result.stdout
    return result


def mb_s(minimal: bytes) -> float:
    """The sum over jobs of fio's --minimal: its sixth field is KiB read a second or so."""
    return sum(int(line.split(";")[6]) * 1024 / 1e6 for line in minimal.decode().splitlines())


def test_readers_in_sequence_are_forecast_under_stream() -> None:
    result = advised(READERS, "--seconds 6", "mq-deadline")
    said: dict[str, Any] = json.loads(result.files["said"])
    assert said["advice"] == "stream" and said["observed"]["senders"] == 3
    assert abs(said["model_error"]["mb_s"]) < 0.05
    assert said["observed"]["mb_s"] == pytest.approx(mb_s(result.files["before"]), rel=0.1)
    [stream] = [one for one in said["forecasts"] if one["scheduler"] == "stream"]
    assert stream["mb_s"]["value"] == pytest.approx(mb_s(result.files["after"]), rel=0.1)


def test_a_full_random_queue_is_left_alone() -> None:
    work = (
        f"{FIO} --name=r --rw=randread --bs=4k --iodepth=32 --ioengine=libaio --runtime=7s"
        " --norandommap"
    )
    result = advised(work, "--seconds 5", "mq-deadline")
    said = json.loads(result.files["said"])
    assert said["advice"] == "mq-deadline" and "no scheduler" in said["why"]


def test_an_idle_disk_is_one_sentence() -> None:
    result = advised("sleep 4", "--seconds 1", "none")
    assert result.files["said"] == b""
    assert b"hdd0: only 0 requests came meanwhile" in result.files["err"]
