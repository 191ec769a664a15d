# SPDX-License-Identifier: GPL-2.0-only
"""The block layer's own limits of cgroups over stream, in the rig's real kernel.

io.max and io.latency work above the scheduler, and need nothing of it; it must not undo them.
"""

from __future__ import annotations

from typing import Any

import pytest
from test_kernel_stream import fio_output, guest

from streamsched.hosts import rig

pytestmark = pytest.mark.e2e

# The cgroups a and b; within CGROUP COMMAND... runs a command in one. The disk is $D.
CGROUPS = """
C=/sys/fs/cgroup
mount -t cgroup2 none $C
echo +io >$C/cgroup.subtree_control
mkdir $C/a $C/b
D=$(cat ../dev)
within() (g=$1; shift; exec sh -c 'echo $$ >$0/cgroup.procs; exec "$@"' $C/$g "$@")
# Else fio spins through think times (kernel/rig/workload.sh).
echo 2000 >/proc/$$/timerslack_ns
FIO="fio --clocksource=clock_gettime --filename=/dev/hdd0 --direct=1 --time_based --norandommap"
FIO="$FIO --output-format=json"
"""


def within(scheduler: str, script: str) -> rig.RigResult:
    return guest(f"echo {scheduler} >scheduler\n{CGROUPS}{script}")


def rate(result: rig.RigResult, name: str, way: str = "read") -> float:
    """MB/s of fio's jobs in the file @name."""
    return sum(job[way]["bw_bytes"] for job in fio_output(result, name)["jobs"]) / 1e6


# ---- io.max ----

# So many at once that the budget of a tenth of a second is never left over.
LIMITED = "--name=a --offset=100g --size=40g --bs=64k --ioengine=libaio --iodepth=32 --runtime=4"
BESIDE = "--name=b --offset=250g --size=40g --bs=64k --rw=read --ioengine=psync --runtime=4"


@pytest.mark.parametrize(
    ("way", "limit", "most"),
    [
        ("read", "rbps=8000000", 8.0),
        pytest.param("read", "riops=100", 100 * 65536 / 1e6, marks=pytest.mark.long),
        pytest.param("write", "wbps=8000000", 8.0, marks=pytest.mark.long),
    ],
)
def test_io_max_is_kept_and_the_rest_is_for_others(way: str, limit: str, most: float) -> None:
    """A sequential job with a limit has that; the reader of another cgroup has what is left.

    Each request of the limited one costs two seeks: under mq-deadline half of the disk is left.
    """
    one = rate_with_limit("stream", way, limit)
    assert one["limited"] == pytest.approx(most, rel=0.05), one
    assert one["limited"] / one["limited alone"] + one["beside"] / one["beside alone"] >= 0.7, one


def rate_with_limit(scheduler: str, way: str, limit: str) -> dict[str, float]:
    """MB/s of both, together and alone; the limit is for the time together."""
    result = within(
        scheduler,
        f"within a $FIO {LIMITED} --rw={way} --output=$OUT/a-alone\n"
        f"within b $FIO {BESIDE} --output=$OUT/b-alone\n"
        f"echo $D {limit} >$C/a/io.max\n"
        f"within a $FIO {LIMITED} --rw={way} --output=$OUT/a & "
        f"within b $FIO {BESIDE} --output=$OUT/b & wait\n",
    )
    return {
        "limited": rate(result, "a", way),
        "limited alone": rate(result, "a-alone", way),
        "beside": rate(result, "b"),
        "beside alone": rate(result, "b-alone"),
    }


# ---- io.latency ----

PROTECTED = "--name=p --offset=10g --size=20g --bs=16k --rw=randread --ioengine=psync --runtime=20"
FLOOD = (
    "--name=f --offset=200g --size=200g --bs=64k --rw=randread --ioengine=libaio --iodepth=32"
    " --runtime=22"
)


def protected(scheduler: str, target: str) -> dict[str, float]:
    """Latencies in ms of a random reader beside 32 random reads of another cgroup at once."""
    result = within(
        scheduler,
        (f"echo $D target={target} >$C/a/io.latency\n" if target else "")
        + f"within b $FIO {FLOOD} --output=$OUT/f & sleep 1\n"
        f"within a $FIO {PROTECTED} --thinktime=20ms --output=$OUT/p; wait\n",
    )
    read = fio_output(result, "p")["jobs"][0]["read"]
    return {
        "mean": read["clat_ns"]["mean"] / 1e6,
        "p99": read["clat_ns"]["percentile"]["99.000000"] / 1e6,
        "flood": rate(result, "f"),
    }


def test_io_latency_protects() -> None:
    """Microseconds: with the target the flood has fewer requests at once."""
    without, with_target = protected("stream", ""), protected("stream", "25000")
    assert with_target["mean"] < 0.7 * without["mean"], (without, with_target)
    assert with_target["p99"] < without["p99"], (without, with_target)


# ---- io.weight with blk-iocost ----

# Below what the disk can, so that the model says when a cgroup has had its share.
MODEL = "rbps=60000000 rseqiops=1000 rrandiops=70 wbps=60000000 wseqiops=1000 wrandiops=70"
QOS = "rpct=0 rlat=250000 wpct=0 wlat=250000 min=100 max=100"


def by_weight(scheduler: str, work: str, model: str = MODEL, qos: str = QOS) -> tuple[float, float]:
    """MB/s of two cgroups of io.weight 200 and 100 that do the same work at two places."""
    result = within(
        scheduler,
        f"echo $D ctrl=user model=linear {model} >$C/io.cost.model\n"
        f"echo $D enable=1 ctrl=user {qos} >$C/io.cost.qos\n"
        "echo 200 >$C/a/io.weight; echo 100 >$C/b/io.weight\n"
        f"within a $FIO --name=a --offset=100g --size=40g {work} --output=$OUT/a & "
        f"within b $FIO --name=b --offset=160g --size=40g {work} --output=$OUT/b & wait\n",
    )
    return rate(result, "a"), rate(result, "b")


@pytest.mark.parametrize(
    "work",
    [
        "--rw=read --bs=64k --ioengine=psync --runtime=8",
        "--rw=randread --bs=16k --ioengine=libaio --iodepth=8 --runtime=12",
    ],
)
def test_io_weight_shares_by_iocost(work: str) -> None:
    """Two to one within a tenth."""
    heavy, light = by_weight("stream", work)
    assert heavy / light == pytest.approx(2, rel=0.1), (heavy, light)


# ---- the idle class ----

SCAN = "--name=scan --prioclass=3 --offset=300g --size=100g --rw=read --bs=128k"
SCANS = [
    pytest.param("--direct=0 --ioengine=psync", marks=pytest.mark.long),
    "--direct=1 --ioengine=libaio --iodepth=16",
]
FOREGROUND = "--name=fg --offset=50g --size=40g --direct=1 --ioengine=psync --runtime=3"


def beside_scan(scheduler: str, work: str, scan: str) -> tuple[float, float, float]:
    """The foreground's rate and 99th percentile beside a scan, of those alone; and how much of the
    disk the scan has while nobody else reads, of what it has alone."""
    fio = "$FIO --direct=0"
    result = within(
        scheduler,
        f"{fio} {FOREGROUND} {work} --output=$OUT/alone\n"
        f"{fio} {SCAN} {scan} --runtime=2 --output=$OUT/scan-alone\n"
        # The scan goes on for two more seconds.
        f"{fio} {SCAN} {scan} --runtime=5 --output=$OUT/scan & "
        f"{fio} {FOREGROUND} {work} --output=$OUT/both; wait\n",
    )
    alone, both = (fio_output(result, name)["jobs"][0]["read"] for name in ("alone", "both"))

    def p99(read: dict[str, Any]) -> float:
        return float(read["clat_ns"]["percentile"]["99.000000"])

    return (
        both["bw_bytes"] / alone["bw_bytes"],
        p99(both) / p99(alone),
        rate(result, "scan") * 5 / (rate(result, "scan-alone") * 2),
    )


@pytest.mark.parametrize("scan", SCANS)
def test_an_idle_scan_leaves_a_reader_its_rate(scan: str) -> None:
    share, _, idle = beside_scan("stream", "--rw=read --bs=128k", scan)
    assert share >= 0.85 and idle >= 0.95, (share, idle)


@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize("think", [pytest.param("0", marks=pytest.mark.long), "5ms"])
def test_an_idle_scan_leaves_random_reads_their_latency(think: str, scan: str) -> None:
    """Also with think times of less than a seek, which are waited out."""
    work = f"--rw=randread --bs=4k --thinktime={think}"
    share, p99, idle = beside_scan("stream", work, scan)
    assert share >= 0.85 and p99 <= 1.3 and idle >= 0.9, (share, p99, idle)
