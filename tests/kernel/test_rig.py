# SPDX-License-Identifier: GPL-2.0-only
"""The rig: it boots, its time is virtual, and whatever happens inside is told."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rig_driver import need_rig
from said import COMMAND, ran

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.hosts import rig

pytestmark = pytest.mark.e2e


def need(variant: str) -> Path:
    try:
        return rig.kernel_folder(variant)
    except rig.NotBuiltError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def kernel() -> Path:
    return need("base")


# ---- running scripts ----


def test_what_a_script_reads_says_and_leaves(kernel: Path) -> None:
    result = rig.run_in_rig(
        "cat $IN/sub/a; printf 'two\\tlines\\n' >&2\n"
        "mkdir $OUT/b; printf '\\0\\xff' >$OUT/b/c; exit 7",
        files={"sub/a": "content\n"},
        modules=False,
    )
    assert result.status == 7
    assert result.stdout == "content\n"
    assert result.stderr == "two\tlines\n"
    assert result.files == {"b/c": b"\0\xff"}
    assert "Linux version 6.12" in result.console
    assert result.complaints() == []


def test_much_output_arrives_whole(kernel: Path) -> None:
    result = rig.run_in_rig("seq 100000; seq 5 >&2", modules=False)
    assert result.stdout.split() == [str(number) for number in range(1, 100001)]
    assert result.stderr.split() == ["1", "2", "3", "4", "5"]


def test_a_signal_is_a_status_too(kernel: Path) -> None:
    assert rig.run_in_rig("kill -TERM $$", modules=False).status == 128 + 15


def test_children_that_live_on_do_not_keep_the_rig(kernel: Path) -> None:
    result = rig.run_in_rig("sleep 100000 & echo end", modules=False)
    assert result.stdout == "end\n"
    assert result.elapsed_ns < 1_000_000_000


def test_the_file_system_is_this_machines_and_cannot_be_changed(
    kernel: Path, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "here").write_text("seen\n")
    result = rig.run_in_rig(
        f"cat {root}/pyproject.toml | head -n 1; cat {tmp_path}/here\n"
        f"touch {root}/no || touch {tmp_path}/no || echo refused\n"
        "cd /tmp && ls -A && echo x >y && cat y /proc/sys/kernel/hostname",
        modules=False,
        show=[tmp_path, root],
    )
    assert result.stdout.splitlines()[:3] == [
        "# SPDX-License-Identifier: GPL-2.0-only",
        "seen",
        "refused",
    ]
    assert result.stdout.endswith("x\nrig\n")
    assert not (root / "no").exists() and not (tmp_path / "no").exists()


def test_a_cache_below_tmp_is_seen(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts copy the kernel's source out of it; a file system of the rig's own hides /tmp."""
    real = rig.cache()
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        (Path(name) / "streamsched").mkdir()
        (Path(name) / "streamsched" / "rig").symlink_to(real)
        monkeypatch.setenv("XDG_CACHE_HOME", name)
        folder = rig.kernel_folder()
        assert folder.is_relative_to(name)
        result = rig.run_in_rig(
            f"ls {folder}/linux; touch {folder}/no || echo refused", modules=False
        )
    assert result.stdout == f"{folder}/linux\nrefused\n"


# ---- time ----


def test_time_is_virtual(kernel: Path) -> None:
    start = time.monotonic()
    result = rig.run_in_rig("date +%s.%N; sleep 1000; date +%s.%N", modules=False, timeout_s=60)
    before, after = (float(line) for line in result.stdout.split())
    assert before == pytest.approx(rig.START_NS / 1e9, abs=0.01)
    assert after - before == pytest.approx(1000, abs=0.001)
    assert result.elapsed_ns == pytest.approx(1000e9, abs=0.01e9)
    # Booting and all; generous, for the machine may be busy.
    assert time.monotonic() - start < 60


def test_programs_of_the_administrator_are_found(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a user, whose PATH Debian leaves these folders out of."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    result = rig.run_in_rig("command -v losetup && echo $PATH", modules=False)
    assert result.status == 0
    folders = "/run/rig/programs:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
    assert result.stdout.endswith(f"sbin/losetup\n{folders}\n")


def test_it_stays_on_one_processor(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed, wait = os.sched_getaffinity(0), rig._wait
    seen = []

    def watched(process: subprocess.Popen[bytes], *how: Any) -> bool:
        seen.append(os.sched_getaffinity(process.pid))
        return wait(process, *how)

    monkeypatch.setattr(rig, "_wait", watched)
    rig.run_in_rig("true", modules=False)
    assert [len(processors) for processors in seen] == [1]
    assert os.sched_getaffinity(0) == allowed


def test_rigs_have_different_processors_as_long_as_there_are_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Rigs of other tests have some of those of the usual cache.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rig.cache().mkdir(parents=True)
    allowed = os.sched_getaffinity(0)
    with contextlib.ExitStack() as rigs:
        taken = [rigs.enter_context(rig._own_processor()) for _ in range(len(allowed) + 1)]
    assert set(taken[:-1]) == allowed
    assert taken[-1] in allowed
    with rig._own_processor() as number:
        assert number == min(allowed)


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_fio_has_its_own_start(kernel: Path) -> None:
    prerun = "--exec_prerun=env --name=a --size=4k --filename=/tmp/a"
    result = rig.run_in_rig(f"command -v fio && fio {prerun} && cat a.prerun.txt", modules=False)
    assert result.stdout.startswith("/run/rig/programs/fio\n")
    assert "\nLD_PRELOAD=/run/rig/programs/fio-start.so\n" in result.stdout


def test_computing_takes_no_time(kernel: Path) -> None:
    result = rig.run_in_rig("i=0; while [ $((i += 1)) -lt 200000 ]; do :; done", modules=False)
    assert result.elapsed_ns < 10_000_000


def test_on_the_real_clock_it_does(kernel: Path) -> None:
    result = rig.run_in_rig("sleep 0.3", modules=False, clock=rig.Clock.real)
    assert result.status == 0
    assert result.elapsed_ns >= 300_000_000


def test_two_runs_are_the_same(kernel: Path) -> None:
    script = """
        head -c 16 /dev/urandom | od -A n -t x1
        cat /proc/sys/kernel/random/uuid /proc/uptime /proc/self/maps /proc/self/stat
        grep -E 'MemTotal|MemFree|Slab' /proc/meminfo
        insmod $MODULES/null_blk.ko irqmode=2 completion_nsec=300000
        for i in 1 2 3; do
            dd if=/dev/nullb0 of=/dev/null bs=4k count=200 iflag=direct status=none &
            dd if=/dev/nullb0 of=/dev/null bs=64k skip=$i count=200 iflag=direct status=none &
        done
        wait
        cat /proc/uptime /sys/block/nullb0/stat
        date +%N
    """
    results = [rig.run_in_rig(script, modules=False) for _ in range(2)]
    assert results[0].stdout == results[1].stdout
    assert results[0].elapsed_ns == results[1].elapsed_ns
    assert len(results[0].stdout.splitlines()) > 10


def test_several_at_once_do_not_meet(kernel: Path) -> None:
    def one(number: int) -> rig.RigResult:
        return rig.run_in_rig(
            f"echo {number} >/tmp/a; sleep {number}; cp /tmp/a $OUT/; exit {number}", modules=False
        )

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(one, range(4)))
    assert [result.status for result in results] == [0, 1, 2, 3]
    assert [result.files["a"] for result in results] == [b"0\n", b"1\n", b"2\n", b"3\n"]


# ---- what goes wrong ----


def test_a_panic_is_reported(kernel: Path) -> None:
    with pytest.raises(rig.RigError, match="panicked: VFS: Unable to mount root fs") as caught:
        rig.run_in_rig("echo never", modules=False, parameters=["rootfstype=ext4"])
    assert "Linux version" in caught.value.console
    assert "Kernel panic" in str(caught.value)  # the last lines


FREEZE = """
    echo before
    truncate -s 16M /tmp/image && mkfs.ext4 -q /tmp/image && mkdir /tmp/fs
    losetup /dev/loop0 /tmp/image && mount /dev/loop0 /tmp/fs
    fsfreeze -f /tmp/fs && touch /tmp/fs/x
    echo after
"""


def test_a_task_that_waits_for_ever_is_a_panic_with_its_name(kernel: Path) -> None:
    need_rig("base")  # and mkfs.ext4
    with pytest.raises(rig.RigError, match="panicked: hung_task") as caught:
        rig.run_in_rig(FREEZE, modules=False)
    assert caught.value.stdout == "before\n"
    assert "INFO: task touch" in caught.value.console


@pytest.mark.parametrize("command", [0x01234567, 0x4321FEDC, 0xCDEF0123])
def test_a_script_cannot_reboot(kernel: Path, command: int) -> None:
    """The kernel would run it again and again; switched off, it would have no exit status."""
    result = rig.run_in_rig(
        f"echo once; python3 -c 'import ctypes, sys; libc = ctypes.CDLL(None, use_errno=True)\n"
        f"print(libc.reboot(ctypes.c_int(int(sys.argv[1]))), ctypes.get_errno())' {command}",
        modules=False,
        timeout_s=60,
    )
    assert (result.status, result.stdout) == (0, "once\n-1 1\n"), result.stderr


def processes_with(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:  # ended meanwhile
            continue
    return found


def gone_soon(left: Callable[[], list[str]]) -> list[str]:
    """All are killed by then; on a busy machine the last may take a moment to be gone."""
    deadline = time.monotonic() + 60
    while left() and time.monotonic() < deadline:
        time.sleep(0.05)
    return left()


def test_a_hang_is_stopped_with_all_its_processes(kernel: Path) -> None:
    marker = f"marker={uuid.uuid4()}"
    for seconds in (8, 80):  # longer where it did not even boot in 8 s
        why = rf"stopped: .* after {seconds} s of this machine's"
        with pytest.raises(rig.RigError, match=why) as caught:
            rig.run_in_rig(
                "echo started; while :; do :; done",
                modules=False,
                timeout_s=seconds,
                parameters=[marker],
            )
        if caught.value.stdout:
            break
    assert caught.value.stdout == "started\n"
    assert gone_soon(lambda: processes_with(marker)) == []


def test_it_ends_when_its_caller_is_killed(kernel: Path) -> None:
    marker = f"marker={uuid.uuid4()}"
    script = "echo started; while :; do :; done"
    call = f"rig.run_in_rig({script!r}, modules=False, live=True, parameters=[{marker!r}])"
    command = [sys.executable, "-P", "-c", f"from streamsched.hosts import rig; {call}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout
        assert caller.stdout.readline() == "started\n"
        caller.kill()
    assert gone_soon(lambda: processes_with(marker)) == []


def test_a_module_that_does_not_load_is_named(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / rig.MODULES[0]).write_bytes(b"no module")
    monkeypatch.setattr(rig, "build_modules", lambda variant: tmp_path)
    with pytest.raises(rig.RigError, match=f"could not start: the module {rig.MODULES[0]}"):
        rig.run_in_rig("echo never")


@pytest.mark.parametrize("name", ["/etc/passwd", "../a", ""])
def test_a_file_outside_the_rigs_folder_is_refused(kernel: Path, name: str) -> None:
    with pytest.raises(UsageError, match="relative path"):
        rig.run_in_rig("true", files={name: ""}, modules=False)


# ---- modules ----


def test_the_kernels_own_module_loads(kernel: Path) -> None:
    result = rig.run_in_rig(
        "insmod $MODULES/null_blk.ko gb=1 && cd /sys/block/nullb0 && cat size queue/scheduler",
        modules=False,
    )
    assert result.stdout.split() == ["2097152", "[none]", "mq-deadline", "kyber", "bfq"]


def test_the_projects_modules_are_compiled_once_and_loaded(kernel: Path) -> None:
    built = rig.build_modules("base")
    names = {path.name for path in built.iterdir()}
    assert names == {*rig.MODULES, "historic-iosched.ko"}
    before = (built / rig.MODULES[0]).stat().st_mtime_ns
    assert rig.build_modules("base") == built
    assert (built / rig.MODULES[0]).stat().st_mtime_ns == before
    result = rig.run_in_rig("cut -d ' ' -f 1 /proc/modules; ls -d /sys/kernel/config/hdd-emu")
    assert set(result.stdout.split()) == {
        "stream_iosched",
        "hdd_emu",
        "/sys/kernel/config/hdd-emu",
    }
    assert result.complaints() == []


BAD_MODULE = """// SPDX-License-Identifier: GPL-2.0-only
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static DEFINE_SPINLOCK(one);
static DEFINE_SPINLOCK(two);

static int __init bad_init(void)
{
	char *gone = kmalloc(100, GFP_KERNEL);

	/* First, for lockdep trusts nothing after a report of KASAN. */
	spin_lock(&one);
	spin_lock(&two);
	spin_unlock(&two);
	spin_unlock(&one);
	spin_lock(&two);
	spin_lock(&one);
	spin_unlock(&one);
	spin_unlock(&two);
	kfree(gone);
	OPTIMIZER_HIDE_VAR(gone);
	pr_info("%d\\n", READ_ONCE(gone[7]));
	return 0;
}
module_init(bad_init);
MODULE_DESCRIPTION("Does what one must not");
MODULE_LICENSE("GPL");
"""


def test_the_kasan_variant_finds_what_it_is_for(tmp_path: Path) -> None:
    folder = need("kasan")
    (tmp_path / "bad.c").write_text(BAD_MODULE)
    (tmp_path / "Kbuild").write_text("obj-m := bad.o\n")
    subprocess.run(
        ["make", "-s", "-C", folder, f"M={tmp_path}", "modules"],
        check=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
    )
    clean = rig.run_in_rig("true", variant="kasan", modules=False)
    assert clean.complaints() == []
    result = rig.run_in_rig(
        "insmod $IN/bad.ko",
        variant="kasan",
        files={"bad.ko": (tmp_path / "bad.ko").read_bytes()},
        modules=False,
    )
    found = "\n".join(result.complaints())
    assert "KASAN: slab-use-after-free in bad_init" in found
    assert "possible circular locking dependency" in found


ENDS_OF_DISKS = """
insmod $MODULES/null_blk.ko nr_devices=0
cd /sys/kernel/config/nullb
for i in $(seq 40); do
	mkdir n$i; echo 64 >n$i/size; echo 1 >n$i/power
	echo mq-deadline >/sys/block/n$i/queue/scheduler
	echo 0 >n$i/power; rmdir n$i
done
sleep 10
cat /proc/modules
"""


def test_a_warning_of_the_kernels_own_is_told_from_others() -> None:
    """A disk's end gives it on kasan, without a module of ours; every other one counts."""
    need("kasan")
    result = rig.run_in_rig(ENDS_OF_DISKS, variant="kasan", modules=False)
    assert result.stdout.split()[0] == "null_blk" and len(result.stdout.splitlines()) == 1
    assert "timer_list hint: kobject_delayed_cleanup+" in result.console
    assert result.complaints() == []
    for part, other in (
        ("hint: kobject_delayed_cleanup+", "hint: iosched_timer+"),
        ("bdev_free_inode+", "iosched_exit_hctx+"),
    ):
        console = result.console.replace(part, other)
        assert len(dataclasses.replace(result, console=console).complaints()) >= 2, part
    console = f"BUG: before\n{result.console}\nBUG: after\n"
    said = dataclasses.replace(result, console=console).complaints()
    assert said == ["BUG: before", "BUG: after"]


def test_the_newest_kernel_boots_with_the_modules() -> None:
    need("newest")
    result = rig.run_in_rig("uname -r; cat /proc/modules; sleep 1000", variant="newest")
    assert int(result.stdout.split(".")[0]) >= 7
    assert "stream_iosched" in result.stdout and "hdd_emu" in result.stdout
    assert result.elapsed_ns == pytest.approx(1000e9, abs=0.5e9)
    assert result.complaints() == []


# ---- building ----


def build_sh(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return ran(root / "kernel" / "rig" / "build.sh", *arguments, env=os.environ | environment)


def without_apt(folder: Path) -> str:
    """A PATH whose apt knows no mirror: no source of a kernel can be fetched."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "apt-get").write_text("#!/bin/sh\n")
    (folder / "bin" / "apt-get").chmod(0o755)
    return f"{folder / 'bin'}:{os.environ['PATH']}"


def need_tools(root: Path, folder: Path) -> None:
    """Skip this test where no kernel could be built."""
    done = build_sh(root, XDG_CACHE_HOME=str(folder / "none"), PATH=without_apt(folder))
    missing = re.search(r"the rig's kernel cannot be built without .*", done.stderr)
    if missing:
        pytest.skip(missing[0])


def test_what_is_not_built_is_said(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(rig.NotBuiltError, match="rig build --variant kasan"):
        rig.kernel_folder("kasan")
    assert build_sh(root, "--where").returncode == 3
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_variant_is_refused(root: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'kasan'"):
        rig.kernel_folder("kasam")
    done = build_sh(root, "kasam")
    assert done.returncode == 1 and "unknown argument 'kasam'" in done.stderr


def test_a_folder_that_is_no_source_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = build_sh(root, RIG_SOURCE=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 1 and f"RIG_SOURCE={tmp_path} is no kernel source" in done.stderr
    monkeypatch.setenv("STREAMSCHED_SOURCE", str(tmp_path))
    with pytest.raises(UsageError, match="not a source tree of streamsched"):
        rig.source_root()


def test_missing_tools_are_named_with_their_packages(root: Path, tmp_path: Path) -> None:
    for folder in (Path("/usr/bin"), Path("/usr/sbin"), Path("/bin")):
        for program in folder.iterdir():
            link = tmp_path / program.name
            if program.name not in ("flex", "pahole") and not link.is_symlink():
                link.symlink_to(program)
    done = build_sh(root, PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 1
    said = re.search(r"cannot be built without (.*): install the Debian packages (.*)", done.stderr)
    assert said and all({"flex", "pahole"} <= set(words.split()) for words in said.groups())


@pytest.mark.long
def test_an_option_that_kconfig_drops_is_noticed(kernel: Path, root: Path, tmp_path: Path) -> None:
    """MD_RAID456 turns a benchmark on with which there is no virtual time."""
    own = tmp_path / "rig"
    shutil.copytree(root / "kernel" / "rig", own)
    config = (own / "base.config").read_text()
    off = "# CONFIG_RAID6_PQ_BENCHMARK is not set\n"
    assert off in config
    (own / "base.config").write_text(config.replace(off, "CONFIG_RAID6_PQ_BENCHMARK=y\n"))
    (tmp_path / "cache" / "streamsched" / "rig").mkdir(parents=True)
    (tmp_path / "cache" / "streamsched" / "rig" / "source").symlink_to(rig.cache() / "source")
    done = ran(own / "build.sh", env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.returncode == 1
    assert "does not take these options" in done.stderr
    assert "CONFIG_UML_TIME_TRAVEL_SUPPORT=y" in done.stderr


NO_KERNEL = """\
VERSION = 6
PATCHLEVEL = 12
SUBLEVEL = 999
mrproper:
allnoconfig:
	cp $(KCONFIG_ALLCONFIG) $(O)/.config
linux modules:
	@echo '  CC      one.o'; sleep 1.5; echo '  CC      two.o'; sleep 1.5
"""


def no_source(folder: Path) -> Path:
    """A source of a kernel that is none, and is built in seconds."""
    (folder / "arch" / "um").mkdir(parents=True)
    (folder / "kernel" / "configs").mkdir(parents=True)
    (folder / "arch" / "um" / "Makefile").touch()
    (folder / "kernel" / "configs" / "tiny-base.config").touch()
    (folder / "Makefile").write_text(NO_KERNEL)
    return folder


def test_a_build_says_first_what_it_is_and_then_how_far_it_is(root: Path, tmp_path: Path) -> None:
    need_tools(root, tmp_path)
    own = tmp_path / "rig"
    shutil.copytree(root / "kernel" / "rig", own)
    (own / "patch.sh").write_text("#!/bin/sh\n")
    script = (own / "build.sh").read_text()
    assert "EVERY_S=60\n" in script
    (own / "build.sh").write_text(script.replace("EVERY_S=60\n", "EVERY_S=1\n"))
    environment = {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "RIG_SOURCE": str(no_source(tmp_path / "source")),
    }

    def built() -> tuple[list[str], str]:
        done = ran(own / "build.sh", check=True, env=os.environ | environment)
        return done.stderr.splitlines(), done.stdout.splitlines()[-1]

    said, folder = built()
    cache = tmp_path / "cache" / "streamsched" / "rig"
    assert Path(folder).parent == cache
    assert re.fullmatch(
        r"==> the rig's kernel \(base\) is not built yet: Linux 6\.12\.999 is compiled, once, "
        r"in about \d+ minutes on (one processor|\d+ processors), to "
        rf"{re.escape(str(cache))} \(2 GB\); interrupted, it goes on from there the next time",
        said[0],
    )
    steps = re.compile(
        r"==> compiling Linux 6\.12\.999 \(base\): [1-4] of about \d+ steps, 0 min [1-9] s"
    )
    assert sum(steps.fullmatch(line) is not None for line in said) >= 2, said
    assert built() == ([], folder)


def test_a_download_is_announced(root: Path, tmp_path: Path) -> None:
    """Without a source that is there; a machine without apt's lists ends it."""
    need_tools(root, tmp_path)
    path = without_apt(tmp_path)
    for variant, linux in (("base", "Linux 6.12"), ("newest", "the newest Linux of Debian sid")):
        done = build_sh(root, variant, XDG_CACHE_HOME=str(tmp_path / "cache"), PATH=path)
        assert done.returncode == 1 and "apt knows no Debian mirror" in done.stderr
        said = f"({variant}) is not built yet: {linux} is downloaded (150 MB) and compiled, once, "
        assert said in done.stderr.splitlines()[0]


# ---- the command line ----


def streamsched(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return ran(COMMAND, "rig", *arguments, cwd=cwd)


def test_exec_is_like_running_the_command(kernel: Path, tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("text\n")
    (tmp_path / "results").mkdir()
    script = 'cat "a file"; echo no >&2; echo r >$OUT/r; exit 3'
    done = streamsched(
        *("exec", "--no-modules", "--out", "results", "--", "sh", "-c", script), cwd=tmp_path
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "text\n", "no\n")
    assert (tmp_path / "results" / "r").read_text() == "r\n"


def test_exec_says_what_the_rig_died_of(kernel: Path, tmp_path: Path) -> None:
    done = streamsched(
        *("exec", "--no-modules", "--timeout", "2", "--", "sh", "-c", "while :; do :; done"),
        cwd=tmp_path,
    )
    assert done.returncode == 125
    assert re.match(r"streamsched: the rig was stopped: .* 2 s .*", done.stderr)


def test_commands_refuse_what_they_cannot_do(tmp_path: Path) -> None:
    done = streamsched("exec", "--variant", "new", "--", "true", cwd=tmp_path)
    assert done.returncode == 2 and "unknown rig variant 'new'" in done.stderr
    done = streamsched("exec", "--out", "nowhere", "--", "true", cwd=tmp_path)
    assert done.returncode == 2 and "nowhere: there is no such folder" in done.stderr
    done = streamsched("shell", cwd=tmp_path)
    assert done.returncode == 2 and "needs a terminal" in done.stderr


def read_until(terminal: int, word: bytes) -> bytes:
    """What a terminal shows up to @word, or to its end."""
    shown = b""
    while word not in shown and select.select([terminal], [], [], 60)[0]:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # whoever wrote has ended
            break
        if not part:
            break
        shown += part
    return shown


def test_shell_is_a_shell(kernel: Path, tmp_path: Path) -> None:
    master, slave = os.openpty()
    process = subprocess.Popen(
        [COMMAND, "rig", "shell", "--no-modules"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=tmp_path,
        start_new_session=True,
    )
    os.close(slave)
    try:
        assert str(tmp_path).encode() in read_until(master, b"# ")
        # Said by the process that ^C is for, so that it is there and listens.
        os.write(master, b"sh -c 'echo $((6 * 7)) $(uname -n); exec sleep 1000'\n")
        assert b"42 rig\r\n" in read_until(master, b"42 rig\r\n")
        os.write(master, b"\x03")
        assert b"# " in read_until(master, b"# ")
        os.write(master, b"exit 5\n")
        read_until(master, b"never")
        assert process.wait(60) == 5
    finally:
        process.terminate()  # and its kernel with it
        process.wait(60)
        os.close(master)


def folders_in_use(top: Path) -> list[str]:
    """Working directories of processes below @top."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if link.readlink().is_relative_to(top):
                found.append(str(link.readlink()))
    return found


def test_stopping_a_build_leaves_no_compiler(tmp_path: Path) -> None:
    lines = [
        "import signal",
        "from streamsched.hosts import rig",
        "signal.signal(signal.SIGALRM, signal.default_int_handler)",
        "signal.alarm(1)",
        f"rig._call(['sh', '-c', 'sleep 1000 & touch {tmp_path}/begun; wait'], 'a build')",
    ]
    done = subprocess.run(
        [sys.executable, "-P", "-c", "\n".join(lines)],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert b"KeyboardInterrupt" in done.stderr and (tmp_path / "begun").exists()
    assert gone_soon(lambda: folders_in_use(tmp_path)) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_a_comparison_stops_its_rigs(
    kernel: Path, tmp_path: Path, root: Path, number: signal.Signals
) -> None:
    job = root / "jobs/kernel/thinking-readers.fio"
    with subprocess.Popen(
        [COMMAND, "run", job, "--on", "kernel", "--policy", "none", "--parallel", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=root,
    ) as process:
        while process.poll() is None and not folders_in_use(tmp_path):
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    said = b"streamsched: interrupted before any run was finished\n"
    assert (process.returncode, out) == ((130 if number == signal.SIGINT else 143), b"")
    assert err.endswith(said) if number == signal.SIGINT else b"Traceback" not in err
    assert gone_soon(lambda: folders_in_use(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_the_documents_example_runs(kernel: Path, root: Path) -> None:
    text = (root / "docs" / "internals" / "RIG.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    done = ran(sys.executable, "-c", code, cwd=root / "docs")
    assert (done.returncode, done.stderr) == (0, "")
    assert "READ: bw=" in done.stdout


def test_errors_are_the_projects_own() -> None:
    assert issubclass(rig.RigError, StreamschedError) and rig.RigError.exit_code == 125
