# SPDX-License-Identifier: GPL-2.0-only
"""top, exporter and measure on the rig's real kernel, in virtual time."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from rig_driver import ROOT, VARIANT, need_rig
from said import COMMAND

from streamsched.hosts import hddemu, rig
from streamsched.sim.diskfile import load_disk

pytestmark = pytest.mark.e2e

FIO = "fio --clocksource=clock_gettime --filename=/dev/hdd0 --direct=1 --time_based --minimal"
QUEUE = "/sys/block/hdd0/queue"


READERS = (
    f"{FIO} --runtime=8 --name=r --rw=read --bs=128k --size=90g --numjobs=4"
    " --offset_increment=100g --name=x --runtime=8 --time_based --rw=randread --bs=4k --size=400g"
    " --norandommap --thinktime=100ms >/dev/null &\n"
)


def large(seconds: int) -> str:
    """Four readers of so much at once that seeks are a fourth of the time under any scheduler."""
    return (
        f"{FIO} --runtime={seconds} --name=r --rw=read --bs=3m --size=90g --numjobs=4"
        " --offset_increment=100g >/dev/null &\n"
    )


def guest(work: str, disk: str = "wd5000aaks", timeout_s: int = 300) -> rig.RigResult:
    need_rig()
    result = rig.run_in_rig(
        f"{hddemu.script('hdd0', load_disk(disk))}\nset -e\ncd {QUEUE}\n{work}\n"
        "wait; ls /sys/kernel/tracing/instances",
        variant=VARIANT,
        timeout_s=timeout_s,
        show=[ROOT, Path(sys.prefix)],
    )
    assert result.status == 0, f"{result.stdout}\n{result.stderr}"
    assert not result.complaints()
    assert "streamsched-" not in result.stdout  # no trace instance is left
    return result


def test_top_sees_who_uses_the_disk() -> None:
    result = guest(
        f"echo stream >scheduler\n{READERS}sleep 5\n"
        f"{COMMAND} top --once --output json >$OUT/seen\n"
        f"echo mq-deadline >scheduler\n{COMMAND} top hdd0 --once 2>$OUT/other && exit 1 || true"
    )
    (disk,) = json.loads(result.files["seen"])["disks"]
    assert disk["scheduler"] == "stream (deadline)" and disk["trouble"] is disk["note"] is None
    streams = [row for row in disk["rows"] if row["kind"] == "stream"]
    # What is light is the rest's, or its known sender's.
    others = [row for row in disk["rows"] if row["kind"] in ("rest", "sender")]
    assert others
    # A reader may have begun a second stream meanwhile: its busiest counts.
    busiest = {
        row["place_bytes"] // (100 << 30): row for row in sorted(streams, key=lambda r: r["mb_s"])
    }
    assert set(busiest) == {0, 1, 2, 3}
    assert sum(row["share"] for row in disk["rows"]) == pytest.approx(1, abs=0.001)
    assert sum(row["mb_s"] for row in disk["rows"]) == pytest.approx(disk["mb_s"], rel=0.03)
    assert sum(row["turn"] for row in disk["rows"]) == 1
    assert max(row["wait_p99_ms"] for row in streams) < 1000
    assert max(row["wait_p99_ms"] or 0 for row in others) < 200
    for row in busiest.values():
        assert max(row["reasons"], key=row["reasons"].get) == "own", row
    assert disk["paid_s"] > 50 and disk["reasons"]["own"] > 0.9
    assert result.files["other"].decode() == (
        "streamsched: hdd0: its scheduler is mq-deadline, not stream\n"
    )


def test_top_tells_two_actuators_apart() -> None:
    half = load_disk("exos-2x18").capacity_sectors // 2 * 512
    scan = f"{FIO} --runtime=6 --rw=read --bs=256k"
    result = guest(
        f"echo stream >scheduler\n{scan} --name=a --offset=1t >/dev/null &\n"
        f"{scan} --name=b --offset={half + (1 << 40)} >/dev/null &\nsleep 3\n"
        f"{COMMAND} top --once --output json >$OUT/seen",
        disk="exos-2x18",
    )
    (disk,) = json.loads(result.files["seen"])["disks"]
    kinds = {row["kind"]: row for row in disk["rows"] if row["mb_s"] > 1}
    assert set(kinds) == {"stream", "stream be2"}
    assert kinds["stream be2"]["place_bytes"] > half > kinds["stream"]["place_bytes"]
    assert all(row["wait_p99_ms"] is not None for row in kinds.values())


ASK = (
    "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9842/metrics').read().decode())"
)


def test_the_exporter_tells_what_the_disk_did() -> None:
    """Exactly what fio read; and it ends when it is told to."""
    result = guest(
        f"echo stream >scheduler\n{COMMAND} exporter >$OUT/said & exporter=$!\nsleep 2\n"
        f"{FIO.replace(' --time_based', '')} --name=r --rw=read --bs=64k --size=8m --numjobs=4"
        " --offset_increment=100g >/dev/null\n"
        f'{sys.executable} -c "{ASK}" >$OUT/metrics\nkill -TERM $exporter; wait $exporter'
    )
    assert result.files["said"].decode() == "http://127.0.0.1:9842/metrics\n"
    text = result.files["metrics"].decode()

    def value(of: str) -> float:
        (found,) = re.findall(rf"^streamsched_{re.escape(of)} (\S+)$", text, re.MULTILINE)
        return float(found)

    assert value('bytes_total{direction="read",disk="hdd0"}') >= 4 << 23
    assert value('dispatches_total{disk="hdd0"}') == value('wait_seconds_count{disk="hdd0"}') >= 512
    assert value('hits_total{disk="hdd0"}') > 100
    assert value('scheduler_info{disk="hdd0",inner="deadline",scheduler="stream"}') == 1


def test_measure_finds_what_stream_gains_and_puts_all_back() -> None:
    result = guest(
        "echo mq-deadline >scheduler; echo 250 >iosched/read_expire; echo 48 >nr_requests\n"
        f"{large(255)}sleep 1\n"
        f"{COMMAND} measure hdd0 --between mq-deadline,stream --minutes 4 --output json"
        " >$OUT/found 2>$OUT/said\n"
        "cat scheduler iosched/read_expire nr_requests"
    )
    found = json.loads(result.files["found"])
    assert found["pairs"] == 6 and len(found["blocks"]) == 12
    for name in ("mb_s", "requests_s"):
        assert found["figures"][name]["found"] and 0.1 < found["figures"][name]["low"] < 0.5, name
    assert found["figures"]["mean_ms"]["high"] < -0.1
    assert 100 < found["figures"]["p99_ms"]["second"] < 1500
    assert [line.rstrip() for line in result.stdout.splitlines()[:3]] == [
        "none [mq-deadline] kyber bfq stream",
        "250",
        "48",
    ]


def test_measure_that_is_stopped_puts_all_back() -> None:
    result = guest(
        f"echo stream >scheduler; echo 150ms >iosched/wait_target; echo cscan >iosched/inner\n"
        f"{large(50)}sleep 1\n"
        f"{COMMAND} measure hdd0 --between none,stream 2>$OUT/said & measure=$!\n"
        "sleep 40; kill -TERM $measure; wait $measure || echo ended with $?\n"
        "cat scheduler iosched/wait_target iosched/inner"
    )
    assert [line.rstrip() for line in result.stdout.splitlines()[:4]] == [
        "ended with 130",
        "none mq-deadline kyber bfq [stream]",
        "150ms",
        "noop deadline [cscan] sptf linus",
    ]
    assert result.files["said"].decode().splitlines()[-1] == (
        "streamsched: hdd0: stopped, too early to say anything"
    )


def test_measure_refuses_an_idle_disk() -> None:
    result = guest(f"{COMMAND} measure hdd0 --between none,stream 2>$OUT/said && exit 1 || true")
    assert result.files["said"].decode().splitlines()[-1] == (
        "streamsched: hdd0: is idle, 0 requests in 5 s; measure while the work is there that is to "
        "be compared"
    )
