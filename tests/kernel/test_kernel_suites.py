# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own test suites under stream: what passes under mq-deadline passes there, too.

BLKTESTS=DIR and XFSTESTS=DIR name checkouts of the suites; without them those tests are skipped.
SUITES_FIRST=N takes the first N tests of each group only.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import table as main
from rig_driver import VARIANT, need_rig
from tables import suites as kernelsuites
from tables.suites import Log, Result, Table

from streamsched.base.errors import UsageError
from streamsched.hosts import rig

BENCH = Path(main.__file__).parent

PASS, FAIL, SKIP = Result("pass"), Result("fail", "dmesg"), Result("skip", "no null_blk")


@pytest.mark.stock
@pytest.mark.long
@pytest.mark.parametrize("suite", sorted(kernelsuites.WHERE))
def test_what_passes_under_mq_deadline_passes_under_stream(suite: str, tmp_path: Path) -> None:
    try:
        kernelsuites.checkout(suite)
    except UsageError as error:
        pytest.skip(str(error))
    if os.getuid() != 0:
        pytest.skip("stock kernels are set up by root only")
    first = os.environ.get("SUITES_FIRST")
    table = tmp_path / f"{suite}.md"
    words = [suite, "--to", str(table), "--keep", str(tmp_path)]
    status = main.main([*words, *(["--first", first] if first else [])])
    assert status == 0
    assert " | pass | pass |" in table.read_text()


# As blktests' throtl/001 does; under qemu its times vary with what else this machine does.
THROTTLED = """
insmod $MODULES/null_blk.ko nr_devices=1 gb=1
mkdir -p /run/cg && mount -t cgroup2 none /run/cg
group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
echo 1 >/sys/block/nullb0/queue/rotational
echo +io >$group/cgroup.subtree_control && mkdir $group/t || exit 1
number=$(cat /sys/block/nullb0/dev)
for scheduler in mq-deadline stream; do
	echo $scheduler >/sys/block/nullb0/queue/scheduler || exit 2
	for limit in wbps=1048576 wiops=256 rbps=1048576 riops=256; do
		echo "$number $limit" >$group/t/io.max || exit 3
		case $limit in
		w*) disk="if=/dev/zero of=/dev/nullb0 oflag=direct" ;;
		*) disk="if=/dev/nullb0 of=/dev/null iflag=direct" ;;
		esac
		begin=$(date +%s%N)
		sh -c "echo 0 >$group/t/cgroup.procs; exec dd $disk bs=4k count=256 status=none" || exit 4
		echo "$scheduler $limit $((($(date +%s%N) - begin) / 1000000))"
		echo "$number rbps=max wbps=max riops=max wiops=max" >$group/t/io.max
	done
done
"""


def test_throttled_requests_come_no_later_under_stream() -> None:
    """In virtual time, to 5 ms: 256 requests of 4 KiB at 1 MiB/s, and at 256/s."""
    need_rig()
    result = rig.run_in_rig(THROTTLED, variant=VARIANT, timeout_s=300)
    assert result.status == 0 and not result.complaints(), result.stderr
    rows = re.findall(r"^(\S+) (\S+) (\d+)$", result.stdout, re.M)
    times = {(scheduler, limit): int(ms) for scheduler, limit, ms in rows}
    limits = {limit for _, limit in times}
    assert len(times) == 8 and len(limits) == 4
    for limit in limits:
        assert 900 < times["mq-deadline", limit] < 1100
        assert times["stream", limit] <= times["mq-deadline", limit] + 5


def test_the_log_of_a_machine() -> None:
    log = Log.parse(
        "begin block/001\nblock/001\t-\tpass\t\n"
        "begin block/005\nblock/005\thdd-emu\tfail\tWARNING: a\n"
        "block/005\tnull_blk\tskip\tno\nend\n"
    )
    assert log.ended and log.begun == ["block/001", "block/005"]
    assert log.results == {
        ("block/001", "-"): PASS,
        ("block/005", "hdd-emu"): Result("fail", "WARNING: a"),
        ("block/005", "null_blk"): Result("skip", "no"),
    }


def test_a_test_that_stops_the_machine_has_failed() -> None:
    log = Log.parse("begin block/001\nblock/001\t-\tpass\t\nbegin block/002\n")
    assert not log.ended
    assert log.results["block/002", "-"] == Result("fail", "the machine stopped")
    # Also one that has failed for some disks, or was stopped at its limit.
    log = Log.parse("begin block/001\nblock/001\t-\tfail\tnot done after 9 s\n")
    assert log.results == {("block/001", "-"): Result("fail", "not done after 9 s")}


def test_after_a_stop_the_machine_goes_on_behind_it() -> None:
    asked = []

    class Stopping(kernelsuites.Machine):
        def boot(self, tests: object, words: object, limit: int) -> Log:
            left = [*tests]  # type: ignore[misc]
            asked.append(left)
            text = "".join(f"begin {one}\n{one}\t-\tpass\t\n" for one in left if one < "block/002")
            return Log.parse(text + (f"begin {left[1]}\n" if len(left) > 2 else "end\n"))

    machine = Stopping("trixie", Path())
    tests = ["block/001", "block/002", "block/003"]
    boots = list(kernelsuites.run(machine, tests, ["", "x"], 1))
    assert asked == [["block/001", "block/002", "block/003"], ["block/003"]]
    assert boots[0]["block/002", "-"].status == "fail"


@pytest.mark.parametrize(
    ("mine", "bad"), [(PASS, False), (FAIL, True), (SKIP, False), (None, True)]
)
def test_only_what_passed_under_the_first_can_be_worse(mine: Result | None, bad: bool) -> None:
    key = ("block/001", "-")
    for first in (PASS, FAIL, SKIP):
        table = {"mq-deadline": {key: first}, "stream": {key: mine} if mine else {}}
        assert bool(kernelsuites.worse(table)) == (bad and first == PASS)


def test_rows_and_chapters_that_were_not_run_stay() -> None:
    def text(old: str, release: str, **rows: Result) -> str:
        names = ("mq-deadline", "stream")
        table: Table = kernelsuites.known(old, release, names)
        for name in names:
            table[name] |= {(f"block/{one}", "-"): result for one, result in rows.items()}
        chapter = kernelsuites.chapter(release, table)
        return kernelsuites.document("blktests", old, release, chapter)

    first = text("", "6.12.1+deb13-amd64", **{"001": PASS, "002": FAIL})
    more = text(first, "6.12.1+deb13-amd64", **{"002": SKIP})
    assert "| block/001 | - | pass | pass |" in more
    assert "| block/002 | - | skip: no null_blk | skip: no null_blk |" in more
    half = kernelsuites.chapter("6.12.1", {"a": {("block/001", "-"): PASS}, "b": {}})
    assert "| block/001 | - | pass | - |" in half
    assert kernelsuites.known(half, "6.12.1", ["a", "b"])["b"] == {}
    both = text(more, "6.1.0-56-amd64", **{"003": PASS})
    assert both.index("## Linux 6.1.0") < both.index("## Linux 6.12.1")
    assert text(both, "6.1.0-56-amd64", **{"003": PASS}) == both
    newer = text(both, "6.12.2+deb13-amd64", **{"001": PASS})
    assert "6.12.1" not in newer and "6.1.0-56" in newer


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    for name, text in {
        "generic/001": "_begin_fstest auto quick\n",
        "generic/002": "_begin_fstest auto log quick\n",
        "ext4/001": "_begin_fstest auto prealloc quick zero\n",
        "ext4/002": "_begin_fstest quickly\n",
        "ext4/001.out": "_begin_fstest quick\n",
        "block/005": "",
        "block/rc": "",
    }.items():
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "check").write_text("")
    return tmp_path


def test_what_runs_left_is_not_copied(
    suites: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name in ("config", "local.config", "results/check.log", "common/config"):
        (suites / name).parent.mkdir(exist_ok=True)
        (suites / name).write_text("")
    copy = tmp_path_factory.mktemp("copy") / "suite"
    kernelsuites.copy_suite(suites, copy)
    assert sorted(path.name for path in copy.iterdir()) == ["check", "common", "tests"]
    assert (copy / "common" / "config").is_file()


@pytest.mark.parametrize(
    ("suite", "names", "tests"),
    [
        ("xfstests", ["quick"], ["generic/001", "generic/002", "ext4/001"]),
        ("xfstests", ["log", "ext4/002"], ["generic/002", "ext4/002"]),
        ("blktests", ["block"], ["block/005"]),
    ],
)
def test_groups_of_tests(suite: str, names: list[str], tests: list[str], suites: Path) -> None:
    arguments = argparse.Namespace(tests=names, files="ext4", first=None)
    assert kernelsuites.tests_of(suite, suites, arguments) == tests
    arguments.first = 1
    assert kernelsuites.tests_of(suite, suites, arguments)[0] == tests[0]


def test_mistakes_get_a_sentence(
    suites: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*words: str) -> str:
        assert main.main(words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    monkeypatch.delenv("BLKTESTS", raising=False)
    assert "BLKTESTS is not set: set it to a checkout of blktests (git clone " in said("blktests")
    monkeypatch.setenv("BLKTESTS", str(suites / "tests"))
    assert "is no checkout of blktests" in said("blktests")
    monkeypatch.setenv("BLKTESTS", str(suites))
    for name in ("blokc", "block/999", "../tests"):
        assert f"there is no test and no group {name}" in said("blktests", name)
    foreign = suites / "foreign.md"
    foreign.write_text("mine\n")
    why = said("blktests", "block", "--to", str(foreign))
    assert "is there; name another file, or add --force" in why


FAKE_QEMU = """#!/bin/sh
echo $$ >"$FAKE_PID"
exec sleep 600
"""
BOOTS = """import sys
from tables.machine import end_with_signals, printed
from streamsched.base.errors import exit_code_of
end_with_signals()
sys.exit(exit_code_of("kernel-suites", lambda: printed(sys.argv[1:])))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_machine_too(number: signal.Signals, tmp_path: Path) -> None:
    """boot.sh itself, with a qemu that does nothing on a kernel that is none."""
    if os.getuid() != 0:
        pytest.skip("boot.sh mounts, as root only")
    cache, bin_, told = tmp_path / "cache", tmp_path / "bin", tmp_path / "pid"
    root = cache / "streamsched" / "stock" / "9.9-none" / "root"
    for folder in (root / "boot", root / "bin", bin_, tmp_path / "tmp"):
        folder.mkdir(parents=True)
    (root / "boot" / "vmlinuz-9.9-none").touch()
    (root / "bin" / "busybox").touch()
    (bin_ / "qemu-system-x86_64").write_text(FAKE_QEMU)
    (bin_ / "cpio").write_text("#!/bin/sh\ncat >/dev/null\n")
    (bin_ / "modprobe").write_text("#!/bin/sh\n")
    for program in bin_.iterdir():
        program.chmod(0o755)
    script = tmp_path / "script"
    script.touch()
    with subprocess.Popen(
        [sys.executable, "-P", "-c", BOOTS, kernelsuites.script("boot.sh"), "9.9-none", script],
        env={
            **os.environ,
            "PYTHONPATH": str(BENCH),
            "PATH": f"{bin_}:{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(cache),
            "TMPDIR": str(tmp_path / "tmp"),
            "FAKE_PID": str(told),
        },
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        end = time.monotonic() + 60
        while not (told.exists() and told.read_text().endswith("\n")):
            assert process.poll() is None and time.monotonic() < end, process.communicate()
            time.sleep(0.05)
        qemu = int(told.read_text())
        os.kill(qemu, 0)
        process.send_signal(number)
        try:
            _, said = process.communicate(timeout=30)
        finally:
            with contextlib.suppress(ProcessLookupError):  # as it should be
                os.kill(qemu, signal.SIGKILL)
                pytest.fail("qemu was left running")
    assert (process.returncode, said) == (128 + number, "kernel-suites: interrupted\n")
    # boot.sh and inside.sh have tidied up.
    assert [*(tmp_path / "tmp").iterdir()] == []
    assert [path.name for path in root.parents[1].iterdir()] == ["9.9-none"]
