# SPDX-License-Identifier: GPL-2.0-only
"""streamsched calibrate: the command, on emulated disks of the real kernel."""

from __future__ import annotations

import random
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from model_disk import MS, ModelDisk
from rig_driver import need_rig
from said import BIN

from streamsched.calibrate import arm, numeric
from streamsched.hosts import rig
from streamsched.sim.diskfile import Disk, load_disk, parse_disk
from streamsched.sim.simulate import measured_curve


def dense_curve(disk: Disk) -> list[tuple[int, float]]:
    """What hdd_measure_curve() measures, with 10 to 160 times as many pairs."""
    rnd = random.Random(11)
    model = ModelDisk(disk)
    points = arm.distances(disk.capacity_sectors)
    times = []
    for distance in points:
        # The nearer the rarer is what costs most: the end of a track.
        pairs = 160_000 if distance < 50 else 40_000 if distance < 100 else 10_000
        span = disk.capacity_sectors - distance - 16
        total = 0
        for _ in range(pairs):
            sector = rnd.randrange(span + 1)
            model.now_ns += rnd.randrange(20 * MS)
            model.submit(sector, 8)
            model.submit(sector + 8 + distance, 8)
            total += model.command.position_ns
        times.append(total / pairs)
    return list(zip(points, numeric.never_fall(times), strict=True))


DISK = "hdd0"
MAKE = f"{sys.executable} -B -m streamsched.hosts.hddemu create {DISK}"
CALIBRATE = f"{BIN}/streamsched calibrate"


def in_rig(script: str, **options: Any) -> rig.RigResult:
    need_rig("base")
    # This may be below a folder that is hidden there.
    show = [Path(sys.prefix), rig.source_root()]
    result = rig.run_in_rig("set -e\n" + script, show=show, **options)
    assert result.status == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert result.complaints() == []
    return result


def curve_of(said: str) -> list[tuple[int, int]]:
    (line,) = re.findall(r"^service_curve='(.*)'$", said, re.MULTILINE)
    points = [point.split(":") for point in line.split()]
    return [(int(distance), int(time)) for distance, time in points]


def show_errors(name: str, errors: Sequence[tuple[int, float]], elapsed_ns: int) -> None:
    """For docs/guide/CALIBRATE.md; pytest -s shows it."""
    worst = max(errors, key=lambda one: abs(one[1]))
    mean = statistics.fmean(abs(error) for _, error in errors)
    seconds = elapsed_ns / 1e9
    print(f"{name}: {seconds:.0f} s, worst {worst[1]:+.1%} at {worst[0]}, mean {mean:.1%}")


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["wd5000aaks", "exos-x18"])
def test_the_curve_of_an_emulated_disk(name: str) -> None:
    result = in_rig(
        f"""
{MAKE} {name}
{CALIBRATE} /dev/{DISK} --to $OUT/{name}.toml >$OUT/said
# What is said to be done can be done.
tail -n 3 $OUT/said >/tmp/apply
sh -ex /tmp/apply
cat /sys/block/{DISK}/queue/iosched/service_curve >$OUT/curve
"""
    )
    disk = load_disk(name)
    found = curve_of(result.files["said"].decode())
    assert result.files["curve"].decode().split() == [f"{d}:{t}" for d, t in found]
    wanted = dense_curve(disk)
    assert [distance for distance, _ in found] == [distance for distance, _ in wanted]
    errors = [(d, a / b - 1) for (d, a), (_, b) in zip(found, wanted, strict=True) if b]
    show_errors(name, errors, result.elapsed_ns)
    for distance, error in errors:
        assert abs(error) < 0.05, (distance, error)
    # The model's own measurement takes few pairs: near ones are right to some us.
    for (distance, ours), (_, theirs) in zip(found, measured_curve(disk), strict=True):
        assert abs(ours - theirs) < max(0.05 * theirs, 15_000), distance

    described = parse_disk(result.files[f"{name}.toml"].decode(), f"{name}.toml")
    assert described.rotation_ns == disk.rotation_ns
    assert described.surfaces == disk.surfaces
    assert described.zone_sectors_per_track == disk.zone_sectors_per_track
    assert described.track_skew_ns == pytest.approx(disk.track_skew_ns, abs=2000)
    assert described.cylinder_skew_ns == pytest.approx(disk.cylinder_skew_ns, abs=2000)
    assert described.segments == disk.segments
    assert described.readahead_sectors == disk.readahead_sectors
    assert described.queue_depth == disk.queue_depth
    curves = zip(measured_curve(described), wanted, strict=True)
    assert statistics.fmean(abs(a / b - 1) for (_, a), (_, b) in curves if b) < 0.05


@pytest.mark.e2e
def test_an_emulated_ssd() -> None:
    result = in_rig(f"{MAKE} ssd\n{CALIBRATE} /dev/{DISK} --fast --to $OUT/ssd.toml >$OUT/said")
    assert parse_disk(result.files["ssd.toml"].decode(), "ssd.toml").kind == 1
    said = result.files["said"].decode()
    assert "kind:                flat" in said
    ((distance, time),) = curve_of(said)
    assert distance == 0 and time == pytest.approx(69_600, rel=0.05)


@pytest.mark.e2e
def test_an_emulated_disk_that_is_overwritten() -> None:
    """Only when that is said; each write is counted by the kernel."""
    result = in_rig(
        f"""
{MAKE} exos-x18 --set write_share_permille=300 --set write_cache_extents=500
writes() {{ awk '{{ print $5 }}' /sys/block/{DISK}/stat; }}
{CALIBRATE} /dev/{DISK} --fast --to $OUT/read.toml >/dev/null
writes >$OUT/writes
{CALIBRATE} /dev/{DISK} --fast --overwrite --to $OUT/written.toml >$OUT/said 2>$OUT/warned
writes >>$OUT/writes
mkswap /dev/{DISK} >/dev/null && writes >>$OUT/writes
! {CALIBRATE} /dev/{DISK} --fast --overwrite --to $OUT/none.toml 2>$OUT/refused
writes >>$OUT/writes
"""
    )
    none, some, swap, same = map(int, result.files["writes"].split())
    assert none == 0 and 500 < some < 10_000 and swap == same > some
    assert result.files["refused"].decode() == (
        f"streamsched: --overwrite: /dev/{DISK} holds data (swap at 0xff6); if nobody needs it, "
        f"remove its signatures first: wipefs --all /dev/{DISK}\n"
    )
    assert "none.toml" not in result.files
    before, after = (result.files[f"{name}.toml"].decode() for name in ("read", "written"))
    assert "write_share_percent = 0 # estimated: nothing was written\n" in before
    assert parse_disk(after, "written.toml").write_share_permille == pytest.approx(300, abs=60)
    assert re.search(r"^write-out: +\d+% of the time", result.files["said"].decode(), re.M)
    assert result.files["warned"].decode().startswith(f"measuring and overwriting /dev/{DISK};")


# Runs inside: the settings before, meanwhile and after; signals to the command.
INTERRUPT = """
import os, signal, subprocess, sys, time
from pathlib import Path

queue = Path("/sys/block/hdd0/queue")

def settings():
    found = {}
    for path in sorted([*queue.glob("*"), *queue.glob("iosched/*")]):
        try:
            found[str(path.relative_to(queue))] = path.read_text()
        except OSError:
            pass
    return found

def write(name, value):
    (queue / name).write_text(value)

def prepare(scheduler, changes):
    write("scheduler", "none")
    write("scheduler", scheduler)
    for name, value in changes.items():
        write(name, value)

CASES = [
    ("mq-deadline", {"nr_requests": "77", "iosched/read_expire": "200"}),
    ("bfq", {"iosched/low_latency": "0", "read_ahead_kb": "64", "wbt_lat_usec": "0"}),
    ("stream", {"iosched/inner": "sptf", "iosched/wait_target": "300ms",
                "iosched/service_curve": "0:0 2048:4000000 100000000:9000000"}),
    ("none", {"nr_requests": "20", "nomerges": "2"}),
]
SIGNALS = [[signal.SIGINT], [signal.SIGTERM], [signal.SIGHUP], [signal.SIGTERM, signal.SIGINT]]
for (scheduler, changes), signals in zip(CASES, SIGNALS):
    prepare(scheduler, {k: v for k, v in changes.items() if (queue / k).exists()})
    before = settings()
    for after_s in (0.5, 20, 60) if scheduler == "mq-deadline" else (20,):
        output = Path(f"/tmp/{scheduler}.toml")
        run = subprocess.Popen(
            [sys.argv[1], "calibrate", "/dev/hdd0", "--to", output], stderr=subprocess.PIPE
        )
        time.sleep(after_s)
        assert run.poll() is None, run.stderr.read()
        meanwhile = settings()
        assert "[none]" in meanwhile["scheduler"], meanwhile["scheduler"]
        assert meanwhile["read_ahead_kb"] == "0\\n"
        for number in signals:
            run.send_signal(number)
        said = run.stderr.read().decode().splitlines()[-1]
        code = run.wait()
        assert code in [128 + number for number in signals], (code, said)
        assert said == "streamsched: interrupted; the settings of hdd0 are as they were", said
        after = settings()
        assert after == before, set(after.items()) ^ set(before.items())
        assert not output.exists()
        os.close(os.open("/dev/hdd0", os.O_RDONLY | os.O_EXCL))
    print(scheduler, "as before")

# An error in the middle, too.
prepare("mq-deadline", {"nr_requests": "77"})
before = settings()
Path("/sys/kernel/config/hdd-emu/hdd0/bad_ranges").write_text("200000000 300000000 read EIO\\n")
command = [sys.argv[1], "calibrate", "/dev/hdd0", "--to", "/tmp/x.toml"]
run = subprocess.run(command, stderr=subprocess.PIPE)
assert run.returncode == 1 and b"could not be read: Input/output error" in run.stderr, run.stderr
assert settings() == before and not Path("/tmp/x.toml").exists()
print("error as before")
"""


@pytest.mark.e2e
def test_whatever_interrupts_it_the_settings_are_as_before() -> None:
    result = in_rig(
        f"{MAKE} wd5000aaks\n{sys.executable} -B $IN/interrupt.py {BIN}/streamsched",
        files={"interrupt.py": INTERRUPT},
    )
    assert result.stdout.split("\n")[:-1] == [
        *(f"{scheduler} as before" for scheduler in ("mq-deadline", "bfq", "stream", "none")),
        "error as before",
    ]


REFUSALS = f"""
try() {{
    code=0
    "$@" 2>/tmp/said >/tmp/out || code=$?
    [ "$(wc -l </tmp/said)" = 1 ] || {{ cat /tmp/said; exit 1; }}
    echo "$code $(cat /tmp/said)"
}}
cd /tmp
grep . /sys/block/{DISK}/queue/scheduler /sys/block/{DISK}/queue/read_ahead_kb >before
mkfs.ext4 -q -E lazy_itable_init=1 -O ^resize_inode /dev/{DISK} 2000000
mkdir m; mount /dev/{DISK} m
try {CALIBRATE} /dev/{DISK}
umount m
{sys.executable} -c 'import os, time
os.open("/dev/{DISK}", os.O_RDONLY | os.O_EXCL)
time.sleep(50)' &
sleep 1
try {CALIBRATE} /dev/{DISK}
wait $!
losetup /dev/loop0 /dev/{DISK}
try {CALIBRATE} /dev/loop0
losetup -d /dev/loop0
as_nobody() {{
    setpriv --reuid 65534 --regid 65534 --clear-groups venv/bin/python -P -B \\
        -c 'from streamsched.cli.main import main; raise SystemExit(main())' "$@"
}}
# The checkout may be below a folder that only its owner may enter.
mkdir venv; mount --bind {sys.prefix} venv
try as_nobody calibrate /dev/{DISK}
chmod 644 /dev/{DISK}
try as_nobody calibrate /dev/{DISK}
{MAKE.replace(DISK, "hdd1")} wd5000aaks --set size_sectors=8388600
try {CALIBRATE} /dev/hdd1
try {CALIBRATE} /dev/{DISK} --to /nowhere/x.toml
try {CALIBRATE} /dev/{DISK} --to x.txt
grep . /sys/block/{DISK}/queue/scheduler /sys/block/{DISK}/queue/read_ahead_kb | cmp - before
[ "$(ls *.toml 2>/dev/null)" = "" ]
"""


@pytest.mark.e2e
def test_refusals() -> None:
    result = in_rig(f"{MAKE} wd5000aaks\n{REFUSALS}")
    start = f"2 streamsched: /dev/{DISK}: "
    said = result.stdout.splitlines()
    assert said == [
        start + f"in use: /dev/{DISK} is mounted on /tmp/m; unmount it first",
        start + "in use: another program has it open for itself; end that first",
        f"2 streamsched: /dev/loop0: not a disk but a layer over /dev/{DISK}; "
        "name the disk beneath",
        start + "no permission to read it; run this as root",
        f"2 streamsched: no permission to change /sys/devices/virtual/block/{DISK}/queue/"
        "scheduler; run this as root",
        "2 streamsched: /dev/hdd1: too small to be measured: it has 8388600 sectors of 512 "
        "bytes and must have at least 8388608 (4 GiB)",
        "2 streamsched: --to /nowhere/x.toml: cannot write it: there is no directory /nowhere",
        "2 streamsched: --to x.txt: name a .toml file",
    ]


@pytest.mark.e2e
def test_a_disk_that_others_read_is_noted() -> None:
    result = in_rig(
        f"""
{MAKE} wd5000aaks
(while :; do
    dd if=/dev/{DISK} of=/dev/null bs=4k count=1 skip=$((RANDOM * 3000)) iflag=direct status=none
    sleep 0.2
done) & other=$!
{CALIBRATE} /dev/{DISK} --fast --to $OUT/x.toml >$OUT/said
kill $other
"""
    )
    assert re.search(r"^note: +others sent \d+ commands", result.files["said"].decode(), re.M)
    parse_disk(result.files["x.toml"].decode(), "x.toml")
