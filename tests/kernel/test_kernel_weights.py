# SPDX-License-Identifier: GPL-2.0-only
"""Weights in the rig's real kernel: of cgroups and of priority levels, behind loop devices."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest
from rig_driver import VARIANT, need_rig
from test_kernel_stream import DISK, fio_output, guest

from streamsched.hosts import hddemu, rig

pytestmark = pytest.mark.e2e

CGROUPS = """
need() { [ -e iosched/cgroup_weights ]; }
need
C=/sys/fs/cgroup
mount -t cgroup2 none $C
echo +io >$C/cgroup.subtree_control
mkdir $C/a $C/b $C/c
# within CGROUP COMMAND...
within() (g=$1; shift; exec sh -c 'echo $$ >$0/cgroup.procs; exec "$@"' $C/$g "$@")
"""
READ = (
    "fio --clocksource=clock_gettime --rw=read --bs=64k --direct=1 --ioengine=sync --runtime=8"
    " --time_based --output-format=json"
)


RANDOM = READ.replace("--rw=read ", "--rw=randread --norandommap --iodepth=4 ")
RANDOM = RANDOM.replace("--ioengine=sync", "--ioengine=libaio")
STREAMSCHED = Path(sys.prefix) / "bin" / "streamsched"
IO_WEIGHTS = "echo 200 >$C/b/io.weight; echo 400 >$C/c/io.weight\n"


def three(weigh: str, run: str, read: str = READ) -> list[float]:
    """What three readers have of what each has alone: each reads a third of the disk through a
    loop device of its own. @run starts fio for reader $g, $n."""
    loops = "".join(
        f"losetup -o $(({100 + 60 * n} << 30)) --sizelimit $((40 << 30)) --direct-io=on"
        f" /dev/loop{n} /dev/hdd0\n"
        for n in range(3)
    )
    # Each by itself, then all at the same time.
    script = (
        f"{CGROUPS}{loops}{weigh}\n"
        f"one() {{ {run} {read} --name=$g --filename=/dev/loop$n --output=$OUT/$1$g; }}\n"
        "n=0; for g in a b c; do one alone-; n=$((n + 1)); done\n"
        "n=0; for g in a b c; do one '' & n=$((n + 1)); done; wait\n"
    )
    result = guest(script)
    rates = {
        name: fio_output(result, name)["jobs"][0]["read"]["bw_bytes"]
        for name in [f"{kind}{g}" for kind in ("", "alone-") for g in "abc"]
    }
    return [rates[g] / rates[f"alone-{g}"] for g in "abc"]


def test_cgroups_share_by_weight_behind_loop_devices() -> None:
    """1 to 2 to 4 within a tenth; together as much as without weights."""
    shares = three(
        "echo '/b 200' >iosched/cgroup_weights; echo /c 400 >iosched/cgroup_weights", "within $g"
    )
    for share, weight in zip(shares, [1, 2, 4], strict=True):
        assert share / sum(shares) == pytest.approx(weight / 7, rel=0.1), shares
    assert sum(shares) >= 0.9, shares


@pytest.mark.parametrize(
    "read",
    [pytest.param(READ, id="row"), pytest.param(RANDOM, id="random", marks=pytest.mark.long)],
)
def test_the_command_gives_cgroups_the_shares_of_io_weight(read: str) -> None:
    """1 to 2 to 4 within a tenth."""
    shares = three(f"{IO_WEIGHTS}{STREAMSCHED} weights --once", "within $g", read)
    for share, weight in zip(shares, [1, 2, 4], strict=True):
        assert share / sum(shares) == pytest.approx(weight / 7, rel=0.1), shares


FOLLOW = """
import pathlib, time
for number in range(20):
    time.sleep(0.5 + number * 0.6180339 % 1)
    pathlib.Path("/sys/fs/cgroup/a/io.weight").write_text(str(200 + number))
    begin = time.monotonic()
    while f"/a {200 + number}\\n" != pathlib.Path("iosched/cgroup_weights").read_text():
        time.sleep(0.005)
    print(time.monotonic() - begin)
"""


def test_a_change_is_followed_within_the_interval() -> None:
    """As docs/internals/KERNEL.md has it."""
    result = guest(f"{CGROUPS}{STREAMSCHED} weights >/dev/null &\nsleep 2; python3 -c '{FOLLOW}'")
    waits = [float(line) for line in result.stdout.split()]
    assert len(waits) == 20 and max(waits) <= 1.02
    assert sum(waits) / len(waits) == pytest.approx(0.5, abs=0.15)


KEPT = f"""
W=iosched/cgroup_weights
{STREAMSCHED} weights >$OUT/said &
follower=$!
shows() {{ sleep 1.2; cat $W; echo -; }}
echo '/b 70' >$W; echo 200 >$C/a/io.weight; shows
echo '/a 9' >$W; shows
echo none >scheduler; echo stream >scheduler; shows
rmdir $C/a; mkdir $C/a; echo 200 >$C/a/io.weight; shows
echo '/b 70' >$W; echo 100 >$C/a/io.weight; shows
echo 300 >$C/c/io.weight; sleep 1.2; kill $follower; wait $follower; cat $W; cat $OUT/said >&2
"""


def test_the_service_on_the_real_files() -> None:
    """A scheduler and a cgroup that are made anew are noticed, by the numbers of their files."""
    result = guest(f"{CGROUPS}{KEPT}")
    assert result.stdout.split("-\n") == [
        "/b 70\n/a 200\n",
        "/b 70\n/a 9\n",
        "/a 200\n",
        "/a 200\n",
        "/b 70\n",
        "/b 70\n/c 300\n",
    ]


@pytest.mark.parametrize(
    "weigh", [pytest.param("", marks=pytest.mark.long), "echo 1000 >$C/c/io.weight"]
)
def test_without_weights_cgroups_share_alike(weigh: str) -> None:
    """io.weight is none of stream's."""
    shares = three(weigh, "within $g")
    assert min(shares) >= 0.9 * max(shares), shares


def test_levels_of_priority_are_weights() -> None:
    """Level 0 has twice the usual share, level 6 a half."""
    shares = three("", "ionice -c2 -n$((6 * (n == 2) + 4 * (n == 1)))")
    for share, weight in zip(shares, [4, 2, 1], strict=True):
        assert share / sum(shares) == pytest.approx(weight / 7, rel=0.15), shares


def test_the_level_of_a_journal_is_no_weight() -> None:
    """ext4 chooses level 3 for its own; that no administrator has given weights."""
    result = guest(
        "mkfs.ext4 -q -E nodiscard /dev/hdd0 4G; mkdir /tmp/fs; mount /dev/hdd0 /tmp/fs\n"
        "for i in 1 2 3; do touch /tmp/fs/$i; sync -f /tmp/fs; done\n"
        "cat /sys/kernel/debug/block/hdd0/sched/streams >$OUT/parties; umount /tmp/fs\n"
    )
    parties = result.files["parties"].decode().splitlines()
    assert any(" kind rest " in line for line in parties), parties
    # Level 3 would be a weight of 125, and who has that a sender at this place of the table.
    assert not any(f" party {1026 + 125 % 64} " in line for line in parties), parties


def test_weights_multiply_downwards() -> None:
    """Of two in a cgroup of twice the usual weight one weighs half, as much as one outside."""
    shares = three(
        "echo +io >$C/a/cgroup.subtree_control; mkdir $C/a/x $C/a/y\n"
        "echo '/a 200' >iosched/cgroup_weights; echo '/a/x 50' >iosched/cgroup_weights",
        "within $(case $g in a) echo a/x;; b) echo a/y;; c) echo c;; esac)",
    )
    for share, weight in zip(shares, [1, 2, 1], strict=True):
        assert share / sum(shares) == pytest.approx(weight / 4, rel=0.1), shares


def test_no_level_of_nested_weights_is_lost() -> None:
    """Two have half the weight of a third: the levels multiply to it in one order or another."""
    nested = {"/a": 10000, "/a/x": 50, "/a/x/y": 1, "/b": 1, "/b/x": 1, "/b/x/y": 10000}
    nested |= {"/b/x/y/z": 5000}
    shares = three(
        "mkdir -p $C/a/x/y $C/b/x/y/z\n"
        "for g in a a/x b b/x b/x/y; do echo +io >$C/$g/cgroup.subtree_control; done\n"
        + "\n".join(
            f"echo {name} {weight} >iosched/cgroup_weights" for name, weight in nested.items()
        ),
        "within $(case $g in a) echo a/x/y;; b) echo b/x/y/z;; c) echo c;; esac)",
    )
    for share, weight in zip(shares, [1, 1, 2], strict=True):
        assert share / sum(shares) == pytest.approx(weight / 4, rel=0.1), shares
    assert sum(shares) >= 0.9, shares


def test_a_cgroup_made_again_has_the_usual_weight() -> None:
    """As docs/internals/KERNEL.md says: a weight goes with its cgroup."""
    result = guest(
        f"{CGROUPS}W=iosched/cgroup_weights\n"
        "echo '/a 300' >$W; rmdir $C/a; mkdir $C/a; cat $W; echo -; echo '/a 7' >$W; cat $W"
    )
    assert result.stdout == "-\n/a 7\n"


def test_weights_are_listed_and_can_be_taken_back() -> None:
    result = guest(
        f"{CGROUPS}cd iosched\nW=cgroup_weights\n"
        "cat $W; echo -\n"
        "mkdir '/sys/fs/cgroup/a/x y'\n"
        "echo '/a 300' >$W; echo '/a/x y 50' >$W; echo '/b 10000' >$W; cat $W; echo -\n"
        "echo '/a 7' >$W; echo '/b default' >$W; cat $W; echo -\n"
        "rmdir '/sys/fs/cgroup/a/x y'; cat $W; echo -\n"
        "cd ..; echo none >scheduler; echo stream >scheduler; cat iosched/$W\n"
    )
    assert result.stdout.split("-\n") == [
        "",
        "/a 300\n/a/x y 50\n/b 10000\n",
        "/a/x y 50\n/a 7\n",
        "/a 7\n",
        "",
    ]


REFUSED = [
    ("/a 0", "neither CGROUP WEIGHT"),
    ("/a 10001", "neither CGROUP WEIGHT"),
    ("/a -1", "neither CGROUP WEIGHT"),
    ("/a", "neither CGROUP WEIGHT"),
    ("a 5", "neither CGROUP WEIGHT"),
    ("/a 1.5", "neither CGROUP WEIGHT"),
    ("", "neither CGROUP WEIGHT"),
    ("/none 5", "/none is no cgroup of version 2"),
]


def test_what_makes_no_sense_is_refused_and_changes_nothing() -> None:
    words = json.dumps([text for text, _ in REFUSED])
    result = guest(
        f"{CGROUPS}cd iosched; echo '/a 5' >cgroup_weights; dmesg -c >/dev/null\n"
        f"python3 - <<'END'\nimport json, os\nfor text in json.loads('''{words}'''):\n"
        "    to = os.open('cgroup_weights', os.O_WRONLY)\n"
        "    try:\n        os.write(to, (text + '\\n').encode())\n"
        "        print('taken', repr(text))\n"
        "    except OSError:\n        pass\n    os.close(to)\nEND\n"
        "cat cgroup_weights; echo -; dmesg"
    )
    shown, said = result.stdout.split("-\n", 1)
    assert shown == "/a 5\n"
    lines = [line for line in said.splitlines() if "cgroup_weights" in line]
    assert len(lines) == len(REFUSED), said
    for line, (_, reason) in zip(lines, REFUSED, strict=True):
        assert reason in line


def test_so_many_cgroups_and_no_more() -> None:
    result = guest(
        f"{CGROUPS}for i in $(seq 65); do mkdir $C/g$i; echo /g$i 5 >iosched/cgroup_weights"
        " || echo refused $i; done; grep -c g iosched/cgroup_weights\n"
        # Those that are no more make room.
        "rmdir $C/g7; echo /g65 5 >iosched/cgroup_weights; grep -c g iosched/cgroup_weights"
    )
    assert result.stdout.split() == ["refused", "65", "64", "64"]


def test_a_cgroup_goes_while_its_requests_are_pending() -> None:
    """Weights are set and taken back, cgroups come and go, schedulers change; nothing is lost."""
    result = guest(
        f"{CGROUPS}for i in $(seq 12); do\n"
        "mkdir -p $C/t$i; echo /t$i $((i * 7)) >iosched/cgroup_weights 2>/dev/null || true\n"
        f"within t$i fio --clocksource=clock_gettime --filename=/dev/hdd0 --direct=1 --name=t"
        " --rw=randrw --bs=4k --ioengine=libaio --iodepth=8 --size=1g --offset=$((i * 2))g"
        " --io_size=64k --verify=crc32c --verify_state_save=0 --output=/dev/null &\n"
        "sleep 0.02; [ $((i % 9)) != 8 ] || { echo none >scheduler; echo stream >scheduler; }\n"
        "done; wait\n"
        "for i in $(seq 12); do rmdir $C/t$i; done; echo /a 5 >iosched/cgroup_weights\n"
        "cat iosched/cgroup_weights"
    )
    assert result.stdout == "/a 5\n"


CHECK = r"""
echo CREATE names=yes >/tmp/mdadm.conf
mdadm --create /dev/md/$NAME --config=/tmp/mdadm.conf --run --metadata=1.2 --level=1 \
--raid-devices=2 --assume-clean /dev/hdd0 /dev/hdd1 >/dev/null 2>&1
[ -d /sys/block/md_$NAME ]
for d in hdd0 hdd1; do echo stream >/sys/block/$d/queue/scheduler; done
cd /sys/block/md_$NAME/md
# sync_completed goes on every ten seconds only.
at() { sed -n 's/.*(\([0-9]*\)\/[0-9]*).*/\1/p' /proc/mdstat; }
fio() { command fio --clocksource=clock_gettime --filename=/dev/md_$NAME --direct=1 \
--ioengine=sync --runtime=5 --time_based --output-format=json "$@"; }
beside() { # NAME OPTION...
    name=$1; shift
    fio "$@" --output=$OUT/$name-alone
    echo check >sync_action; sleep 1; begin=$(at); fio "$@" --output=$OUT/$name
    echo $(($(at) - begin)) >$OUT/$name-check; echo idle >sync_action; sleep 0.5
}
echo check >sync_action; sleep 1; begin=$(at); sleep 5; echo $(($(at) - begin)) >$OUT/check
echo idle >sync_action; sleep 0.5
"""


@pytest.mark.parametrize("name", [pytest.param("a", marks=pytest.mark.long), "backupdsk"])
def test_a_check_leaves_others_their_rate_and_goes_on(name: str) -> None:
    """RAID 1: four readers, and a random one, beside md's check, which is background.

    Of the longer array's thread, md_backupdsk_resync, Linux cuts the name behind "_re".
    """
    need_rig()
    readers = " ".join(
        f"--name=r{i} --rw=read --bs=64k --offset={5 + 20 * i}% --size=20g" for i in range(4)
    )
    disk = dataclasses.replace(DISK, queue_depth=32)
    disks = "\n".join(hddemu.script(f"hdd{i}", disk) for i in range(2))
    result = rig.run_in_rig(
        f"{disks}\nset -e\nNAME={name}\n{CHECK}beside readers {readers}\n"
        "beside random --name=x --rw=randread --bs=16k --norandommap\n",
        variant=VARIANT,
    )
    assert result.status == 0 and not result.complaints(), result.stderr
    check = int(result.files["check"])
    assert check > 100_000
    for load in ("readers", "random"):
        alone, beside = (
            sum(job["read"]["bw_bytes"] for job in fio_output(result, file)["jobs"])
            for file in (f"{load}-alone", load)
        )
        assert beside >= 0.85 * alone, load
        assert int(result.files[f"{load}-check"]) >= 0.05 * check, load
