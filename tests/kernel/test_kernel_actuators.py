# SPDX-License-Identifier: GPL-2.0-only
"""A disk with two actuators under stream, in the rig's real kernel: each has turns of its own."""

from __future__ import annotations

import re

import pytest
from test_kernel_stream import fio_output, guest

from streamsched.sim.diskfile import load_disk

pytestmark = pytest.mark.e2e

DISK = load_disk("exos-2x18")
HALF = DISK.capacity_sectors // 2
FIO = "fio --clocksource=clock_gettime --direct=1 --filename=/dev/hdd0 --output-format=json"
SCAN = "--rw=read --bs=64k --ioengine=sync"
RANDOM = "--rw=randread --bs=4k --ioengine=libaio --iodepth=4 --size=2t"


def at(name: str, half: int, place: int, what: str) -> str:
    """A job in this half, this many thousands of GB into it."""
    offset = HALF * half * 512 + (place << 40)
    return f" --name={name} --offset={offset} {what} --runtime=5 --time_based"


def rates(*jobs: str) -> list[float]:
    result = guest(f"{FIO} --output=$OUT/said{''.join(jobs)}", disk=DISK)
    return [job["read"]["bw_bytes"] for job in fio_output(result, "said")["jobs"]]


def test_readers_of_two_halves_do_not_wait_for_each_other() -> None:
    """Two of one half take turns."""
    first, second = at("a", 0, 1, SCAN), at("b", 1, 1, SCAN)
    alone = rates(first) + rates(second)
    apart = rates(first, second)
    assert min(both / one for both, one in zip(apart, alone, strict=True)) >= 0.97, (alone, apart)
    shared = rates(first, at("c", 0, 3, SCAN))
    assert max(shared) <= 0.6 * alone[0] and sum(shared) >= 0.8 * alone[0], (alone, shared)


def test_a_random_reader_does_not_feel_a_scan_of_the_other_half() -> None:
    """Several requests at once: the scan's take no more of the drive's queue than they need."""
    result = guest(
        f"{FIO} --output=$OUT/alone{at('r', 1, 0, RANDOM)}\n"
        f"{FIO} --output=$OUT/beside{at('r', 1, 0, RANDOM)}{at('s', 0, 0, SCAN)}\n"
        "grep -c 'be2: .*members' /sys/kernel/debug/block/hdd0/sched/parents || true\n"
        "cat /sys/kernel/debug/block/hdd0/sched/counters",
        disk=DISK,
    )
    tails = [
        fio_output(result, name)["jobs"][0]["read"]["clat_ns"]["percentile"]["99.000000"]
        for name in ("alone", "beside")
    ]
    assert tails[1] <= 1.05 * tails[0], tails
    sent = re.findall(r"^(be2?): .* arrivals (\d+) dispatches \2 ", result.stdout, re.MULTILINE)
    assert dict(sent).keys() == {"be", "be2"}, result.stdout


def test_nothing_is_lost_where_the_halves_meet() -> None:
    """Verified writes on both sides of the border, merged across it or not, of all classes, while
    the inner policy, the curve and the scheduler change.

    Whose write a block has is not asked: fio 3.39 would, by the seed in its header.
    """
    offset = HALF * 512 - (8 << 20)
    write = f"--rw=randwrite --bs=4k-64k --offset={offset} --size=16m --iodepth=16"
    jobs = "".join(
        f" --name=w{prio} --prioclass={prio} {write} --verify=crc32c"
        " --ioengine=libaio --do_verify=1 $SEED"
        for prio in (1, 2, 3)
    )
    guest(
        "(while :; do for p in cscan noop deadline; do echo $p >iosched/inner || exit 0;"
        " sleep 0.05; done; echo learn >iosched/service_curve; echo none >scheduler;"
        " echo stream >scheduler; done) 2>/dev/null &\n"
        "SEED=$(fio --cmdhelp=verify_header_seed |"
        " sed -n 's/^ *\\(verify_header_seed\\): .*/--\\1=0/p')\n"
        f"{FIO} --output=$OUT/said{jobs}\n"
        "kill $!\n"
        f"dd if=/dev/hdd0 of=/dev/null bs=1M iflag=skip_bytes skip={offset} count=16",
        disk=DISK,
    )


def test_such_a_disk_is_no_member_of_an_array() -> None:
    result = guest(
        "C=/sys/kernel/config/stream-array/a; mkdir $C; echo raid0 >$C/level\n"
        "echo 128 >$C/chunk_sectors; D=$(cat /sys/block/hdd0/dev)\n"
        'printf "%s 2048 1000000\\nmissing\\n" $D >$OUT/members; cat $OUT/members >$C/members\n'
        "echo 1 >$C/attached || dmesg\n",
        disk=DISK,
    )
    assert "member 0: hdd0 has two actuators; arrays of such disks are not coordinated" in (
        result.stdout
    )
