# SPDX-License-Identifier: GPL-2.0-only
"""The modules on Debian's own kernels: they build, install, load, and keep data.

Kernels run under qemu with two processors (kernel/qemu). make test has the module that DKMS
built wear for 90 s on Debian 12's kernel; make test-all does so for ten minutes on each of two,
and does the rest. STOCK_SECONDS=N sets another time. Nothing here depends on how fast this
machine is.
"""

from __future__ import annotations

import fcntl
import functools
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from said import ROOT, ran
from said import transcript as run
from stock_table import with_counts

import streamsched

QEMU = ROOT / "kernel" / "qemu"
ROOTS = ROOT / "packaging" / "root.sh"
PRIVATE_HEADERS = ROOT / "kernel" / "packaging" / "btf" / "private-headers.sh"
INSTALL = ROOT / "docs" / "INSTALL.md"
SUITES = ("bookworm", "trixie", "sid")

# Only what hangs takes so long: programs start slowly there, and others want the processors.
BOOT_SECONDS = 1800
SHORT_SECONDS, LONG_SECONDS = 90, 600

pytestmark = pytest.mark.stock

LONGER = [pytest.param(suite, marks=pytest.mark.long) for suite in SUITES[1:]]
every_kernel = pytest.mark.parametrize("suite", [SUITES[0], *LONGER])


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "streamsched" / "stock"


# What is needed of this machine, and the Debian packages that have it.
PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "qemu-system-x86_64": "qemu-system-x86",
    "cpio": "cpio",
    "modprobe": "kmod",
    "unshare": "util-linux",
}


@functools.cache
def fetch(*arguments: str) -> Path | str:
    """Where fetch.sh has put it, or a sentence why not. Asked once: failing may be slow."""
    if os.getuid() != 0:
        return "stock kernels are set up by root only"
    for program, package in PROGRAMS.items():
        if not shutil.which(program):
            return f"{program} is missing: install the Debian package {package}"
    done = ran(QEMU / "fetch.sh", *arguments, timeout=3600)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["fetch.sh failed"])[-1]
    return cache() / done.stdout.strip()


def fetched(*arguments: str) -> Path:
    """What fetch.sh brings, or a skipped test with the reason."""
    where = fetch(*arguments)
    if isinstance(where, str):
        pytest.skip(where)
    return where


# ---- what several tests need, made once, by whichever worker comes first ----


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run of tests, of all its workers."""
    run_id = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    base = tmp_path_factory.getbasetemp()
    folder = base.parent / f"stock-{run_id}" if run_id else base / "stock"
    folder.mkdir(exist_ok=True)
    return folder


def once(folder: Path, make: str, *command: object) -> str:
    """What the command prints when it makes the folder; it is run by one worker only."""
    log = folder.with_suffix(".log")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not log.exists():
            done = run(*command, timeout=BOOT_SECONDS)
            log.write_text(f"{done.returncode}\n{done.stdout}")
    status, _, output = log.read_text().partition("\n")
    assert status == "0", f"{make} failed:\n{output[-4000:]}"
    return output


@pytest.fixture(scope="session")
def package(shared: Path) -> Path:
    """The folder of the package, built in a fresh Debian 12 as docs/INSTALL.md says."""
    fetched("bookworm")
    source = shared / "source"
    once(shared / "copy", "copying the sources", "sh", "-ec", f"""
        mkdir {source}
        cp -r {ROOT}/Makefile {ROOT}/meson.build {ROOT}/kernel {ROOT}/core {ROOT}/disk {source}
        cp -r {ROOT}/packaging {ROOT}/tools {source}
        mkdir {source}/docs
        cp {INSTALL} {source}/docs
        """)  # fmt: skip
    once(
        shared / "package",
        "building the package",
        *[QEMU / "inside.sh", "--bind", f"{source}:/project"],
        *["--bind", f"{fetched('bookworm')}/packages:/var/cache/apt/archives"],
        *["bookworm", "sh", "-ec", "cd /project\n" + block("build")],
    )
    (built,) = (source / "build").glob("streamsched-dkms_*_all.deb")
    return built.parent


def installed(suite: str, package: Path, shared: Path) -> Path:
    """The layer that docs/INSTALL.md's installation leaves on a fresh system."""
    tree = fetched(suite)
    layer = shared / f"layer-{suite}"
    output = once(
        shared / f"install-{suite}",
        f"installing on {suite}",
        *[QEMU / "inside.sh", "--layer", layer, "--bind", f"{package}:/package"],
        *["--bind", f"{tree}/packages:/var/cache/apt/archives"],
        *[suite, "sh", "-ec", "cd /package\n" + block("install")],
    )
    assert re.search(
        rf"^streamsched/[\d.]+, {re.escape(tree.name)}, x86_64: installed$", output, re.MULTILINE
    ), output[-4000:]
    return layer


def block(title: str) -> str:
    """The commands of docs/INSTALL.md that begin with a comment of this title."""
    (found,) = re.findall(rf"^```sh\n# {title}\n(.*?)^```$", INSTALL.read_text(), re.M | re.S)
    return str(found)


@dataclass
class Boot:
    """One boot of a stock kernel, with a folder that the script sees as /share."""

    suite: str
    share: Path
    layer: Path | None = None
    alone: str = ""  # boot.sh's option: modules
    below: Path | None = None  # another layer, below that one

    def __call__(
        self, script: str, *qemu: str, memory: int = 1024, seconds: int = BOOT_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        self.share.mkdir(exist_ok=True)
        path = self.share / "script"
        path.write_text(script)
        layers = [layer for layer in (self.below, self.layer) if layer]
        return run(
            *[QEMU / "boot.sh", *(word for layer in layers for word in ("--with", layer))],
            *["--share", self.share, "--memory", str(memory)],
            *["--timeout", str(seconds), "--console", self.share / "console"],
            *(["--alone", self.alone] if self.alone else []),
            *[self.suite, path, *qemu],
            timeout=seconds + 300,
        )


# ---- private headers ----


@dataclass
class Kernel:
    """Headers of a kernel that never was."""

    folder: Path

    def __init__(self, folder: Path, release: str = "6.5.0-test", code: int = 6 << 16 | 5 << 8):
        self.folder = folder
        generated = folder / "include" / "generated"
        (generated / "uapi" / "linux").mkdir(parents=True)
        (generated / "utsrelease.h").write_text(f'#define UTS_RELEASE "{release}"\n')
        (generated / "uapi" / "linux" / "version.h").write_text(
            f"#define LINUX_VERSION_CODE {code}\n"
        )
        (folder / "Module.symvers").write_text("0x1\telv_register\tvmlinux\tEXPORT_SYMBOL_GPL\t\n")

    def refuses(self, tmp_path: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
        """The one sentence that private-headers.sh says, having written nothing."""
        output = tmp_path / "private.h"
        done = run(
            PRIVATE_HEADERS, "--headers", self.folder, *arguments, output, timeout=60, env=env
        )
        assert done.returncode == 1, done.stdout
        assert not output.exists()
        (line,) = done.stdout.splitlines()
        assert line.startswith("private-headers: ")
        return line.removeprefix("private-headers: ")


def boot_image(payload: bytes) -> bytes:
    """A boot image of which only what the boot protocol says of its payload is there."""
    image = bytearray(1024)
    image[497] = 1
    image[514:518] = b"HdrS"
    struct.pack_into("<II", image, 584, 16, len(payload))
    image[0:2] = b"MZ"
    return bytes(image + bytes(16) + payload)


def need_pahole() -> None:
    if not shutil.which("pahole"):
        pytest.skip("pahole is missing: tools/setup.sh stock installs it")


def test_headers_that_are_missing(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path / "headers")
    shutil.rmtree(kernel.folder)
    said = kernel.refuses(tmp_path, "6.5.0-test")
    assert said.endswith("install the Debian package linux-headers-6.5.0-test")


def test_headers_of_another_kernel(tmp_path: Path) -> None:
    said = Kernel(tmp_path / "headers").refuses(tmp_path, "6.6.0-test")
    assert "belongs to kernel 6.5.0-test, not to 6.6.0-test" in said
    assert said.endswith("install the Debian package linux-headers-6.6.0-test")


def test_headers_of_a_kernel_that_was_not_built(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path / "headers")
    (kernel.folder / "Module.symvers").unlink()
    assert "has no Module.symvers" in kernel.refuses(tmp_path, "6.5.0-test")


def test_a_kernel_that_is_too_old(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path / "headers", "6.0.19-test", 6 << 16 | 19)
    said = kernel.refuses(tmp_path, "6.0.19-test")
    assert said == "kernel 6.0.19-test is too old: the modules need 6.1 or later"


def test_a_machine_without_pahole(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "cat", "cut", "env", "sed", "uname"):
        where = shutil.which(name)
        assert where
        (programs / name).symlink_to(where)
    said = Kernel(tmp_path / "headers").refuses(tmp_path, "6.5.0-test", env={"PATH": str(programs)})
    assert said == "pahole is missing: install the Debian package pahole"


def test_a_kernel_that_is_not_installed(tmp_path: Path) -> None:
    need_pahole()
    said = Kernel(tmp_path / "headers").refuses(tmp_path, "6.5.0-test")
    assert said.endswith("install the Debian package linux-image-6.5.0-test")


def test_a_kernel_without_type_information(tmp_path: Path) -> None:
    need_pahole()
    kernel = Kernel(tmp_path / "headers")
    shutil.copy("/bin/true", kernel.folder / "vmlinux")
    assert "CONFIG_DEBUG_INFO_BTF=y" in kernel.refuses(tmp_path)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"\xfd7zXZ\0 and then no more", "xz cannot unpack the kernel"),
        (b"what is this?", "compressed in a way that is not known here"),
    ],
)
def test_a_boot_image_that_is_damaged(tmp_path: Path, payload: bytes, words: str) -> None:
    need_pahole()
    image = tmp_path / "vmlinuz"
    image.write_bytes(boot_image(payload))
    said = Kernel(tmp_path / "headers").refuses(tmp_path, "--vmlinux", str(image))
    assert words in said and str(image) in said


def test_a_boot_image_of_another_machine(tmp_path: Path) -> None:
    need_pahole()
    image = tmp_path / "vmlinuz"
    image.write_bytes(b"MZ" + bytes(2000))
    said = Kernel(tmp_path / "headers").refuses(tmp_path, "--vmlinux", str(image))
    assert "is no x86 boot image" in said


@pytest.mark.parametrize("arguments", [[], ["6.1.0-1-amd64"], ["--vmlinux"], ["a", "b", "c"]])
def test_how_it_is_called(arguments: list[str]) -> None:
    done = run(PRIVATE_HEADERS, *arguments)
    assert done.returncode == 1
    assert done.stdout.startswith("private-headers: usage: ")


# ---- booting ----

# Takes the place of qemu: @hung boots come to nothing, in the next one the script "runs".
STAND_IN = """#!/bin/bash
for option; do
	case $option in
	local,path=*,mount_tag=control,*)
		control=${option#local,path=}
		control=${control%%,*}
		;;
	file:*) console=${option#file:} ;;
	esac
done
echo boot >>"$BOOTS"
echo "[    2.0] words of boot $(wc -l <"$BOOTS")" >"$console"
if [ "$(wc -l <"$BOOTS")" -le HUNG ]; then
	exec sleep 1000
fi
touch "$control/started"
echo done >"$control/output"
echo 7 >"$control/status"
"""


def boot_stand_in(hung: int, folder: Path) -> tuple[subprocess.CompletedProcess[str], int]:
    """boot.sh with a machine that hangs in its first boots, and how often it was booted."""
    fetched("bookworm")
    programs = folder / "bin"
    programs.mkdir()
    stand_in = programs / "qemu-system-x86_64"
    stand_in.write_text(STAND_IN.replace("HUNG", str(hung)))
    stand_in.chmod(0o755)
    script = folder / "script"
    script.write_text("#!/bin/sh\n")
    boots = folder / "boots"
    done = run(
        *[QEMU / "boot.sh", "--start", "3", "bookworm", script],
        timeout=BOOT_SECONDS,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "BOOTS": str(boots)},
    )
    return done, len(boots.read_text().splitlines())


def test_a_boot_that_hangs_is_tried_again(tmp_path: Path) -> None:
    done, boots = boot_stand_in(1, tmp_path)
    assert (done.returncode, boots) == (7, 2), done.stdout
    assert "words of boot 1\n" in done.stdout
    assert "did not come to the script within 3 s (boot 1 of 3, its" in done.stdout
    assert done.stdout.endswith("done\n")


def test_boots_that_hang_are_given_up(tmp_path: Path) -> None:
    done, boots = boot_stand_in(9, tmp_path)
    assert (done.returncode, boots) == (124, 3), done.stdout
    assert done.stdout.endswith("did not come to the script in any of 3 boots\n")


# ---- building ----


def build(suite: str, shared: Path) -> tuple[Path, str]:
    """Where the modules are, and what make and sparse said."""
    fetched("--tools", suite)
    folder = shared / f"build-{suite}"
    output = once(folder, f"building for {suite}", QEMU / "build.sh", suite, folder, "W=1", "C=2")
    return folder, output


@pytest.mark.long
@every_kernel
def test_both_modules_build_without_a_warning(suite: str, shared: Path) -> None:
    folder, output = build(suite, shared)
    assert (folder / "stream-iosched.ko").exists()
    assert (folder / "hdd-emu.ko").exists()
    # Each file was looked at by the compiler and by sparse.
    sources = len(re.findall(r"^ +CC \[M\] +(?:\S*/)?(?:core|disk|kernel)/\S+\.o$", output, re.M))
    assert sources >= 15
    assert len(re.findall(r"^ +CHECK ", output, re.M)) >= sources
    # Only what is said of our files; sparse also reads the kernel's headers.
    ours = [
        line
        for line in output.splitlines()
        if re.search(r"\b(?:warning|error):", line) and re.search(r"(?:core|disk|kernel)/\w", line)
    ]
    assert ours == []


@pytest.mark.long
@every_kernel
def test_private_headers_fit_the_kernel(suite: str, shared: Path) -> None:
    folder, _ = build(suite, shared)
    text = (folder / "kernel" / "private.h").read_text()
    assert f" * {fetched(suite).name}\n" in text
    newest = suite == "sid"
    assert ("#define HAVE_ELEVATOR_ALLOC 1" in text) is not newest
    assert ("#define HAVE_ELEVATOR_QUEUE_ET 1" in text) is newest
    oldest = suite == "bookworm"
    assert ("#define HAVE_ELEVATOR_TYPE_ELEVATOR_FEATURES 1" in text) is oldest
    assert ("#define HAVE_BLK_INSERT_T 1" in text) is not oldest
    # What looks at sizes is evaluated by the compiler.
    assert "static_assert(sizeof(struct elevator_queue) == 632);" in text
    assert re.search(r"static_assert\(offsetof\(struct elevator_mq_ops, has_work\) == \d+\);", text)


@pytest.mark.long
def test_a_wrong_layout_does_not_compile(shared: Path, tmp_path: Path) -> None:
    folder, _ = build("bookworm", shared)
    text = (folder / "kernel" / "private.h").read_text()
    wrong = text.replace("\tvoid *                     elevator_data;\n", "", 1)
    assert wrong != text
    source = tmp_path / "source"
    source.mkdir()
    (source / "private.h").write_text(wrong)
    (source / "one.c").write_text('#include "private.h"\n')
    (source / "Kbuild").write_text("obj-m := one.o\n")
    release = fetched("bookworm").name
    done = run(
        *[QEMU / "inside.sh", "--tools", "--bind", f"{source}:/source", "bookworm"],
        *["make", "-C", f"/lib/modules/{release}/build", "M=/source", "one.o"],
        timeout=300,
    )
    assert done.returncode
    assert "static assertion failed" in done.stdout


# ---- DKMS, and docs/INSTALL.md ----


@pytest.mark.long
def test_dkms_refuses_older_kernels(package: Path, shared: Path) -> None:
    layer = installed("bookworm", package, shared)
    done = run(
        *[QEMU / "inside.sh", "--with", layer, "bookworm", "sh", "-c"],
        "mkdir -p /lib/modules/5.10.0-1-amd64/build/include\n"
        "dkms build $(dkms status | sed 's/,.*//') -k 5.10.0-1-amd64",
        timeout=300,
    )
    assert done.returncode, done.stdout
    assert (
        "streamsched: kernel 5.10.0-1-amd64 is too old: the modules need 6.1 or later"
        in done.stdout
    )


def disks(folder: Path) -> Iterator[str]:
    """qemu's options for two disks: sda rotates, sdb does not."""
    yield from ("-device", "virtio-scsi-pci")
    for at, (name, rotation) in enumerate((("a", 7200), ("b", 1))):
        image = folder / f"{name}.img"
        with image.open("wb") as file:
            file.truncate(64 << 20)
        yield from ("-drive", f"if=none,id={name},format=raw,file={image}")
        yield from ("-device", f"scsi-hd,drive={name},scsi-id={at},rotation_rate={rotation}")


def guest_script(*parts: str) -> str:
    return "\n".join(
        [
            "#!/bin/sh",
            "set -ex",
            # To settle may take longer than the two minutes that it is given by itself.
            'udevadm() { command udevadm "$@" $([ "$1" != settle ] || echo --timeout=1500); }',
            "/lib/systemd/systemd-udevd --daemon",
            "udevadm trigger --action=add --subsystem-match=pci --subsystem-match=virtio",
            "udevadm settle",
            # sh -e lets pass what stands behind an exclamation mark.
            'not() { if "$@"; then echo "should fail: $*"; exit 1; fi; }',
            'uses() { grep -qF "[$2]" /sys/block/$1/queue/scheduler; }',
            # Disks are looked for in the background.
            "until [ -b /dev/sda ] && [ -b /dev/sdb ]; do sleep 0.1; done",
            # Which is which depends on who was looked at first: now it is one after the other.
            "for disk in sda sdb; do echo 1 >/sys/block/$disk/device/delete; done",
            "until ! [ -b /dev/sda ] && ! [ -b /dev/sdb ]; do sleep 0.1; done",
            "echo 0 0 0 >/sys/class/scsi_host/host0/scan",
            "until [ -b /dev/sda ]; do sleep 0.1; done",
            "echo 0 1 0 >/sys/class/scsi_host/host0/scan",
            "until [ -b /dev/sdb ]; do sleep 0.1; done",
            "udevadm settle",
            "grep -q 1 /sys/block/sda/queue/rotational",
            "grep -q 0 /sys/block/sdb/queue/rotational",
            *parts,
            "echo all done",
        ]
    )  # fmt: skip


# What holds after each part of docs/INSTALL.md.
TRIED = """
uses sda stream
not uses sdb stream
fio --name=f --filename=/dev/sda --direct=1 --rw=randrw --bs=4k-64k --io_size=4m \\
	--verify=crc32c --output=/tmp/fio
"""
TUNED = """
grep -q 300ms /sys/block/sda/queue/iosched/wait_target
not sh -c 'echo 0ms >/sys/block/sda/queue/iosched/wait_target'
grep -q 300ms /sys/block/sda/queue/iosched/wait_target
echo none >/sys/block/sda/queue/scheduler
modprobe null_blk nr_devices=0
mount -t configfs configfs /sys/kernel/config
cd /sys/kernel/config/nullb
mkdir zoned
echo 1 >zoned/zoned
echo 64 >zoned/size
echo 16 >zoned/zone_size
echo 1 >zoned/memory_backed
echo 1 >zoned/power
truncate -s 1M /tmp/loop
modprobe loop
losetup /dev/loop7 /tmp/loop
cd /
"""
ALWAYS = """
uses sda stream
not uses sdb stream
not uses zoned stream
not uses loop7 stream
echo none >/sys/block/sda/queue/scheduler
dd if=/dev/zero of=/dev/sda bs=4k count=1 oflag=direct
udevadm settle
uses sda none
echo stream >/sys/block/sda/queue/scheduler
modprobe hdd-emu
"""
REMOVED = """
uses sda mq-deadline
not grep -E 'stream_iosched|hdd_emu' /proc/modules
not modinfo stream-iosched
not ls /usr/src/streamsched-*
not readlink /etc/udev/rules.d/60-stream-iosched.rules
"""


@pytest.mark.long
@every_kernel
def test_the_instructions(suite: str, package: Path, shared: Path, tmp_path: Path) -> None:
    boot = Boot(suite, tmp_path / "share", installed(suite, package, shared))
    done = boot(
        guest_script(
            *[block("try"), TRIED, block("tune"), TUNED],
            *[block("always"), ALWAYS, block("remove"), REMOVED],
        ),
        *disks(tmp_path),
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert done.stdout.endswith("all done\n")


# ---- streamsched enable ----

# What the command is made of where this machine's is taken, beside Python itself.
SITE = (
    *("streamsched", "streamsched-*", "_cffi_backend*", "annotated_*", "pydantic*", "rich"),
    *("markdown_it", "mdurl", "pygments", "shellingham", "typer", "typing_*", "zstandard"),
)
# It is unpacked there: each file of /share costs a way out of the machine, at each start.
COMMAND = """
mkdir -p /usr/local/bin /run/site
tar -x -C /run/site -f /share/site.tar
echo '#!/bin/sh\nPYTHONPATH=/run/site exec python3 -P -m streamsched "$@"' \
	>/usr/local/bin/streamsched
chmod +x /usr/local/bin/streamsched
"""
# In a bare root of the suite: the package, of which apt fetches what it needs beside Python.
PACKAGED = """
mkdir /root/source && cd /source &&
tar -c --exclude='./.*' --exclude=./build --exclude=./tests --exclude=./bench . |
	tar -x -C /root/source &&
cd /root/source && packaging/deb.sh && cp build/streamsched_*.deb /debs
"""
INSTALLS = """
install() { apt-get install -y --no-install-recommends /debs/*.deb; }
install || { apt-get update && install; }
"""
# As distributions have it, and with what udev ignores for attributes: a last word.
TAKES_BACK = """
modprobe hdd-emu
mount -t configfs configfs /sys/kernel/config
. /share/emu0.sh
files() { find /etc /var/lib/streamsched /run/streamsched 2>/dev/null | sort; }
state() { grep -o '\\[.*\\]' /sys/block/sda/queue/scheduler; cat /sys/block/sda/queue/nr_requests; }
cat >/etc/udev/rules.d/60-ioschedulers.rules <<END
ACTION=="add|change", KERNEL=="sd[a-z]*|emu*", ATTR{queue/rotational}=="1", \
  ATTR{queue/scheduler}:="none"
END
udevadm control --reload
echo mq-deadline >/sys/block/sda/queue/scheduler
echo 48 >/sys/block/sda/queue/nr_requests
files >/tmp/files
state >/tmp/state
changed() { udevadm trigger --action=change --subsystem-match=block; udevadm settle; }
"""
ENABLED = """
cat /etc/udev/rules.d/99-streamsched.rules
uses sda stream
not uses sdb stream
changed
uses sda stream
dd if=/dev/zero of=/dev/sda bs=4k count=1 oflag=direct
udevadm settle
uses sda stream
# The disk is gone, and comes back.
echo 1 >/sys/block/sda/device/delete
until ! [ -b /dev/sda ]; do sleep 0.1; done
echo 0 0 0 >/sys/class/scsi_host/host0/scan
until [ -b /dev/sda ]; do sleep 0.1; done
udevadm settle
uses sda stream
# A program changes the scheduler for a time.
echo 1 >/run/streamsched-other
mkdir -p /run/streamsched
touch /run/streamsched/keep-sda
echo mq-deadline >/sys/block/sda/queue/scheduler
changed
uses sda none
rm /run/streamsched/keep-sda
changed
uses sda stream
rm -r /run/streamsched /run/streamsched-other
"""
# All at once, of which emu0 is a slow one.
ALL_ENABLED = """
uses emu0 none
streamsched enable --all
uses sda stream
uses emu0 stream
not uses sdb stream
grep -x 64 /sys/block/emu0/queue/nr_requests
echo mq-deadline >/sys/block/emu0/queue/scheduler
grep -x 2 /sys/block/emu0/queue/nr_requests
changed
uses emu0 stream
grep -x 64 /sys/block/emu0/queue/nr_requests
streamsched disable --all
uses emu0 none
files >/tmp/files-after
diff /tmp/files /tmp/files-after
# Once more, for the package.
streamsched enable --all
uses sda stream
"""
DISABLED = """
files >/tmp/files-after
diff /tmp/files /tmp/files-after
state | diff /tmp/state -
changed
uses sda none
"""
# dkms calls depmod, which reads all modules, by the slow way to this machine: these are hidden.
FEW_MODULES = """
for kind in net sound drivers/media drivers/net drivers/iio drivers/usb drivers/hid \\
	drivers/hwmon drivers/input drivers/platform drivers/comedi drivers/mtd; do
	[ ! -d /lib/modules/$(uname -r)/kernel/$kind ] ||
		mount -t tmpfs none /lib/modules/$(uname -r)/kernel/$kind
done
"""
GONE = """
not uses sda stream
not ls /etc/udev/rules.d/99-streamsched.rules
not ls -d /var/lib/streamsched
not grep stream_iosched /proc/modules
"""


def without_data(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if info.isdir() and Path(info.name).name == "data" else info


def with_this_command(share: Path) -> None:
    """This machine's command, in the folder @share."""
    python = f"python3.{sys.version_info.minor}"
    if not (fetched("bookworm") / "root" / "usr" / "bin" / python).exists():
        pytest.skip(f"Debian 12 has no {python}, for which the command is compiled here")
    with tarfile.open(share / "site.tar", "w") as site:
        for pattern in SITE:
            for path in Path(streamsched.__file__).parents[1].glob(pattern):
                site.add(path, path.name, filter=without_data)


def with_packaged_command(suite: str, layer: Path, folder: Path) -> Path:
    """A layer as @layer that also has the package streamsched, built in a root of the suite."""
    made = run(ROOTS, "keep", suite, "build", timeout=BOOT_SECONDS)
    if made.returncode:
        pytest.skip(made.stdout.strip())
    debs, both = folder / "debs", folder / "layer"
    debs.mkdir()
    for command in (
        [
            *[ROOTS, "run", "--throw-away", "--bind", f"{ROOT}:/source"],
            *["--bind", f"{debs}:/debs", made.stdout.splitlines()[-1], "root", PACKAGED],
        ],
        ["cp", "-a", layer, both],
        [
            *[QEMU / "inside.sh", "--layer", both, "--bind", f"{debs}:/debs"],
            *["--bind", f"{fetched(suite)}/packages:/var/cache/apt/archives"],
            *[suite, "sh", "-ec", INSTALLS],
        ],
    ):
        done = run(*command, timeout=BOOT_SECONDS)
        assert done.returncode == 0, done.stdout[-4000:]
    return both


@pytest.mark.parametrize("suite", ["bookworm", pytest.param("trixie", marks=pytest.mark.long)])
def test_disks_are_enabled(suite: str, package: Path, shared: Path, tmp_path: Path) -> None:
    """Beside a rule that takes disks back at each change; by real files of sysfs and real udev."""
    layer = installed(suite, package, shared)
    boot = Boot(suite, tmp_path / "share", layer)
    boot.share.mkdir()
    if suite == "bookworm":
        with_this_command(boot.share)
    else:
        boot.layer = with_packaged_command(suite, layer, tmp_path)
    emulated_disk(boot.share, "emu0", depth=1)
    done = boot(
        guest_script(
            *([COMMAND] if suite == "bookworm" else []),
            *["streamsched --version", TAKES_BACK, block("enable"), ENABLED],
            *[block("disable"), DISABLED, ALL_ENABLED, FEW_MODULES, block("remove"), GONE],
        ),
        *disks(tmp_path),
        memory=1536,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert done.stdout.endswith("all done\n")
    assert "60-ioschedulers.rules:1 sets none for sda at every change event" in done.stdout
    # Only the package has it.
    why = "there is no {}" if suite == "bookworm" else "systemd, which starts {}, does not run"
    assert f"note: {why.format('streamsched-weights.service')}: io.weight" in done.stdout


# All that the package's removal finds in use: a disk, an array, an emulated disk, links.
IN_USE = """
modprobe stream-iosched
modprobe hdd-emu
mount -t configfs configfs /sys/kernel/config
. /share/emu0.sh
ln -s /usr/share/streamsched-dkms/60-stream-iosched.rules /etc/udev/rules.d/
ln -s ../../../usr/share/streamsched-dkms/60-stream-iosched.rules /etc/udev/rules.d/again.rules
ln -s /etc/hostname /etc/udev/rules.d/another
for disk in sda emu0; do
	echo stream >/sys/block/$disk/queue/scheduler
	uses $disk stream
done
mkdir /sys/kernel/config/stream-array/a
cd /sys/kernel/config/stream-array/a
echo 128 >chunk_sectors
{ sed 's/$/ 0 65536/' /sys/block/sda/dev /sys/block/emu0/dev; } >/tmp/members
cat /tmp/members >members
echo 1 >attached
cd /
fio --name=f --filename=/dev/sda --direct=1 --rw=randread --bs=4k --time_based \
	--rate_iops=50 --runtime=1h --output=/tmp/fio &
fio=$!
"""
# dkms is not asked to build anything anew.
UPGRADED = """
mkdir /tmp/stand-in
printf '#!/bin/sh\\n' >/tmp/stand-in/dkms
chmod +x /tmp/stand-in/dkms
PATH=/tmp/stand-in:$PATH /var/lib/dpkg/info/streamsched-dkms.prerm upgrade 9 >/tmp/upgrade
grep 'disks keep the module that is loaded' /tmp/upgrade
uses sda stream
"""
PURGED = """
apt-get purge -y streamsched-dkms >/tmp/purge 2>&1 || { cat /tmp/purge; exit 1; }
grep ^streamsched-dkms: /tmp/purge
kill $fio
wait $fio || :
uses sda mq-deadline
uses emu0 mq-deadline
not grep stream_iosched /proc/modules
grep hdd_emu /proc/modules
not readlink /etc/udev/rules.d/60-stream-iosched.rules
not readlink /etc/udev/rules.d/again.rules
readlink /etc/udev/rules.d/another
"""
SAID = """\
streamsched-dkms: disks keep the module that is loaded; another one is used from the next boot on
streamsched-dkms: array a: its disks are no longer coordinated
streamsched-dkms: emu0: its scheduler is now mq-deadline instead of stream
streamsched-dkms: sda: its scheduler is now mq-deadline instead of stream
streamsched-dkms: module stream-iosched: unloaded
streamsched-dkms: module hdd-emu: stays loaded until the next boot: an emulated disk is in use
streamsched-dkms: /etc/udev/rules.d/60-stream-iosched.rules: removed, the rule is gone
streamsched-dkms: /etc/udev/rules.d/again.rules: removed, the rule is gone
"""


def emulated_disk(folder: Path, name: str, queues: int = 1, depth: int = 32) -> None:
    """A script that makes the disk @name, in @folder."""
    script = subprocess.check_output(
        [
            *[sys.executable, "-m", "streamsched.hosts.hddemu", "script", name, "wd5000aaks"],
            *["--set", "size_sectors=131072", "--set", f"hardware_queues={queues}"],
            *["--set", f"queue_depth={depth}"],
        ]
    )
    (folder / f"{name}.sh").write_bytes(script)


@every_kernel
def test_the_package_gives_back_what_uses_it(
    suite: str, package: Path, shared: Path, tmp_path: Path
) -> None:
    """Purged while in use: the disks are switched, each said; an upgrade switches none."""
    boot = Boot(suite, tmp_path / "share", installed(suite, package, shared))
    boot.share.mkdir()
    emulated_disk(boot.share, "emu0")
    done = boot(guest_script(IN_USE, UPGRADED, FEW_MODULES, PURGED), *disks(tmp_path))
    assert done.returncode == 0, done.stdout[-6000:]
    said = re.findall(r"^streamsched-dkms: .*\n", done.stdout, re.M)
    assert "".join(said) == SAID
    assert done.stdout.endswith("all done\n")


def test_the_package_is_removed_in_a_chroot(package: Path, shared: Path) -> None:
    """With nothing in /sys, or this machine's, where the disks are another system's: silence."""
    layer = installed("bookworm", package, shared)
    for bind in ([], ["--bind", "/sys:/sys"]):
        done = run(
            *[QEMU / "inside.sh", "--with", layer, *bind, "bookworm", "sh", "-ec"],
            "ln -s /usr/share/streamsched-dkms/60-stream-iosched.rules /etc/udev/rules.d/\n"
            "apt-get remove -y streamsched-dkms && ! readlink /etc/udev/rules.d/60*\n"
            "apt-get purge -y streamsched-dkms && ! ls /usr/src/streamsched-*",
            timeout=300,
        )
        assert done.returncode == 0, done.stdout[-4000:]
        (line,) = re.findall(r"^streamsched-dkms: .*$", done.stdout, re.M)
        assert line.endswith("60-stream-iosched.rules: removed, the rule is gone")


@pytest.mark.long
def test_by_hand(package: Path, shared: Path) -> None:
    """In a fresh Debian 12, as if its kernel were the running one."""
    tree = fetched("bookworm")
    done = run(
        *[QEMU / "inside.sh", "--bind", f"{package}:/package"],
        *["--bind", f"{tree}/packages:/var/cache/apt/archives"],
        *["bookworm", "sh", "-ec"],
        # The sources without DKMS, and without a kernel that could load them.
        "dpkg -x /package/streamsched-dkms_*_all.deb /\n"
        f"uname() {{ echo {tree.name}; }}\n"
        "insmod() { test -f $1 && echo built; }\n"
        + block("by hand").replace("make -C", f"make RELEASE={tree.name} -C"),
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert done.stdout.endswith("built\n")


@pytest.mark.long
def test_the_whole_of_the_instructions_under_qemu(package: Path, tmp_path: Path) -> None:
    """Installing and compiling, too, in a fresh Debian 12 without a network."""
    tree = fetched("bookworm")
    boot = Boot("bookworm", tmp_path / "share")
    boot.share.mkdir()
    for path in (tree / "packages").glob("*.deb"):
        shutil.copy(path, boot.share)
    shutil.copytree(package.parent, boot.share / "project")
    shutil.rmtree(boot.share / "project" / "build")
    done = boot(
        guest_script(
            # When each command began, in seconds.
            """PS4='+ $(cut -d " " -f 1 /proc/uptime): '""",
            # Pages that nobody reads here, and man-db would make an index of.
            "echo 'path-exclude=/usr/share/man/*' >/etc/dpkg/dpkg.cfg.d/no-pages",
            "cp /share/*.deb /var/cache/apt/archives/",
            "cd /share/project",
            *[block("build"), "cd build", block("install")],
            *[block("try"), TRIED, block("tune"), TUNED],
            *[block("always"), ALWAYS],
            *["echo none >/sys/block/sda/queue/scheduler", "modprobe -r stream-iosched hdd-emu"],
            *[block("by hand"), "echo stream >/sys/block/sda/queue/scheduler"],
            *["uses sda stream", "echo mq-deadline >/sys/block/sda/queue/scheduler"],
            *[block("by hand, undone"), block("remove"), REMOVED],
        ),
        *disks(tmp_path),
        memory=3072,
        seconds=4 * BOOT_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert done.stdout.endswith("all done\n")


# ---- wear ----


def stress_seconds(suite: str) -> int:
    # The newest kernel changes from day to day: that is tried, not sworn to.
    everything = os.environ.get("STREAMSCHED_TESTS") == "all" and suite != "sid"
    seconds = LONG_SECONDS if everything else SHORT_SECONDS
    return int(os.environ.get("STOCK_SECONDS", seconds))


@every_kernel
def test_data_is_right_whatever_happens(
    suite: str, package: Path, shared: Path, tmp_path: Path
) -> None:
    """The module that DKMS built, on two processors; what happens is in kernel/qemu/stress.sh."""
    seconds = stress_seconds(suite)
    # An array needs minutes until all has happened to it.
    more, mdadm = (
        ("array", fetched("--md", suite) / "md") if seconds > SHORT_SECONDS else ("", None)
    )
    boot = Boot(suite, tmp_path / "share", installed(suite, package, shared), below=mdadm)
    boot.share.mkdir()
    shutil.copy(QEMU / "stress.sh", boot.share)
    # One is behind an adapter with a queue for reads and one for the rest on each processor.
    for name, queues in (("emu0", 1), ("emu1", 4), ("emu2", 1)):
        emulated_disk(boot.share, name, queues)
    for i in range(4):
        emulated_disk(boot.share, f"member{i}")
    done = boot(
        f"#!/bin/sh\necho kernel: $(uname -r)\nexec /share/stress.sh {seconds} 1 {more}\n",
        memory=2048,
        seconds=BOOT_SECONDS + seconds,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    print(done.stdout)
    assert done.stdout.endswith("failures: 0\n")
    if os.environ.get("UPDATE_DOCS") and seconds == LONG_SECONDS:
        document = ROOT / "docs" / "results" / "stock-kernels.md"
        document.write_text(with_counts(document.read_text(), done.stdout))


SWITCHED_AND_LOOKED_AT = """#!/bin/bash
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
modprobe null_blk nr_devices=1
modprobe stream-iosched
modprobe bfq
look() {
	while [ ! -e /tmp/enough ]; do
		for file in /sys/kernel/debug/block/nullb0/sched/{counters,streams,parents,waits}; do
			{ seen=$(<"$file"); } 2>/dev/null && echo >>/tmp/seen
		done
	done
}
look & look &
end=$((SECONDS + 30))
until [ $SECONDS -ge $end ]; do
	for next in stream none stream mq-deadline stream bfq; do
		echo $next >/sys/block/nullb0/queue/scheduler || exit 1
	done
done
touch /tmp/enough
wait
[ "$(wc -l </tmp/seen)" -gt 20 ] || exit 2
echo all done
"""


@pytest.mark.long
@every_kernel
def test_debugfs_is_read_while_the_scheduler_changes(
    suite: str, package: Path, shared: Path, tmp_path: Path
) -> None:
    """Since Linux 6.16 such a file is there for a moment longer than what it tells of."""
    boot = Boot(suite, tmp_path / "share", installed(suite, package, shared))
    done = boot(SWITCHED_AND_LOOKED_AT)
    assert done.returncode == 0, done.stdout[-6000:]
    assert done.stdout.endswith("all done\n")


# ---- disks that go, disks that are refused, a machine that sleeps ----

# A part that fails says so and ends all.
REFUSED = """#!/bin/bash
fail() { echo "failed: $*"; exit 1; }
modprobe configfs
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
modprobe stream-iosched
modprobe null_blk nr_devices=0
null() { # NAME ATTRIBUTE=VALUE...
	local one

	mkdir "/sys/kernel/config/nullb/$1"
	for one in "${@:2}"; do
		echo "${one#*=}" >"/sys/kernel/config/nullb/$1/${one%%=*}" || fail "null_blk: $one"
	done
}
null zoned zoned=1 size=64 zone_size=16 memory_backed=1 power=1
grep host-managed /sys/block/zoned/queue/zoned || fail "not zoned"
words=$( { echo stream >/sys/block/zoned/queue/scheduler; } 2>&1) && fail "stream was taken"
echo "refused: ${words##*: }"
grep -qF '[stream]' /sys/block/zoned/queue/scheduler && fail "stream is there"
dmesg | sed -n 's/^.*stream: zoned: /said: /p'
echo 0 >/sys/kernel/config/nullb/zoned/power
rmdir /sys/kernel/config/nullb/zoned
"""
UNPLUGGED = """
modprobe sd_mod
modprobe scsi_debug dev_size_mb=64 delay=1 max_queue=32
# await WHAT COMMAND...: for as long as it takes, within reason
await() {
	local tries

	for tries in {1..1500}; do
		"${@:2}" && return
		sleep 0.2
	done
	fail "$1, after $tries tries"
}
scsi_disk() {
	disk=$(cd /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*:*/block 2>/dev/null && ls)
	[ -n "$disk" ] && [ -b "/dev/$disk" ]
}
# Some thousand sectors later: requests are pending and in flight.
is_busy() {
	local reads sectors

	read -r reads _ sectors _ <"/sys/block/$disk/stat" 2>/dev/null
	[ "$sectors" -gt 4000 ] && [ "$reads" -gt 100 ]
}
gone() { [ ! -e "/sys/block/$disk" ]; }
in_use() { [ "$(cut -d ' ' -f 3 <(grep ^stream_iosched /proc/modules))" != 0 ]; }
round() { # COMMAND...: takes $disk away
	echo 1 >/sys/block/$disk/queue/rotational
	echo stream >/sys/block/$disk/queue/scheduler || fail "$disk: no stream"
	fio --filename=/dev/$disk --direct=1 --time_based --runtime=1h --thread --output=/dev/null \\
		--name=a --rw=randrw --bs=4k --ioengine=libaio --iodepth=16 \\
		--name=b --rw=read --bs=64k --ioengine=psync \\
		--name=c --rw=write --bs=16k --ioengine=psync --direct=0 2>/dev/null &
	await "$disk: no load" is_busy
	"$@" || fail "$disk: not taken away"
	wait
	await "$disk: still there" gone
}
take_scsi() { echo 1 >/sys/block/$disk/device/delete; }
take_null() { echo 0 >/sys/kernel/config/nullb/n0/power; }
find_scsi() { for host in /sys/class/scsi_host/host*; do echo - - - >$host/scan; done; }
"""
# ROUNDS of both, and then nobody has the module.
AGAIN = """
for ((i = 0; i < ROUNDS; i++)); do
	await "no disk of scsi_debug" scsi_disk
	round take_scsi
	find_scsi
	null n0 size=64 memory_backed=1 irqmode=2 completion_nsec=1000000 power=1
	disk=n0
	round take_null
	rmdir /sys/kernel/config/nullb/n0
done
echo "rounds: $i"
rmmod stream_iosched || fail "stream_iosched stays in use"
await "no disk of scsi_debug" scsi_disk
grep stream "/sys/block/$disk/queue/scheduler" && fail "stream is still offered"
rmmod scsi_debug null_blk || fail "the disks' modules stay in use"
echo all done
"""


@every_kernel
def test_disks_are_torn_out_and_zoned_ones_refused(
    suite: str, package: Path, shared: Path, tmp_path: Path
) -> None:
    """Under load, again and again; nothing is left behind that would keep the module."""
    everything = os.environ.get("STREAMSCHED_TESTS") == "all"
    rounds = 100 if everything else 10
    boot = Boot(suite, tmp_path / "share", installed(suite, package, shared))
    done = boot(REFUSED + UNPLUGGED + AGAIN.replace("ROUNDS", str(rounds)))
    assert done.returncode == 0, done.stdout[-6000:]
    assert done.stdout.endswith("all done\n") and f"rounds: {rounds}\n" in done.stdout
    refused = re.findall(r"^refused: (.*)$", done.stdout, re.M)
    said = re.findall(r"^said: (.*)$", done.stdout, re.M)
    if suite == "bookworm":
        # The block layer itself refuses what lacks a feature, and tells no reason.
        assert (refused, said) == (["Invalid argument"], [])
    else:
        assert refused == ["Operation not supported"]
        assert len(said) == 1 and "choose mq-deadline" in said[0]


ASLEEP = r"""
fail() { echo "failed: $*"; exit 1; }
mount -t configfs configfs /sys/kernel/config
EMULATED
# As far as the drivers and, for every second one, the second processor.
echo 1 >/sys/module/suspend/parameters/pm_test_delay
disks="emu0 sda nullb0"
reads() { awk '{ print $1 }' /sys/block/$1/stat; }
dd if=/dev/urandom of=/tmp/data bs=64k count=32 2>/dev/null
for disk in $disks; do
	until [ -b /dev/$disk ]; do sleep 0.1; done
	echo 1 >/sys/block/$disk/queue/rotational
	echo stream >/sys/block/$disk/queue/scheduler || fail "$disk: no stream"
	dd if=/tmp/data of=/dev/$disk bs=64k conv=fsync 2>/dev/null || fail "$disk: not written"
done
: >/tmp/on
for disk in $disks; do
	while [ -e /tmp/on ]; do
		dd if=/dev/$disk of=/tmp/seen-$disk bs=64k count=32 iflag=direct 2>/dev/null
		cmp /tmp/data /tmp/seen-$disk || echo $disk >>/tmp/wrong
	done &
	while [ -e /tmp/on ]; do
		dd if=/dev/$disk of=/dev/null bs=16k skip=1024 count=512 iflag=direct 2>/dev/null
	done &
	while [ -e /tmp/on ]; do
		dd if=/tmp/data of=/dev/$disk bs=16k seek=2048 conv=fsync 2>/dev/null
	done &
done
for i in 1 2 3 4 5; do
	for state in freeze mem; do
		for disk in $disks; do eval "before_$disk=\$(reads $disk)"; done
		[ $state = mem ] && echo processors >/sys/power/pm_test || echo devices >/sys/power/pm_test
		echo $state >/sys/power/state || fail "$state, round $i"
		for disk in $disks; do
			tries=0
			eval before=\$before_$disk
			while [ $(reads $disk) -le $((before + 50)) ]; do
				tries=$((tries + 1))
				[ $tries -lt 600 ] || fail "$disk: nothing is read after $state, round $i"
				sleep 0.2
			done
		done
		echo "woken from $state"
	done
done
rm /tmp/on
wait
[ ! -e /tmp/wrong ] || fail "wrong data: $(cat /tmp/wrong)"
for disk in $disks; do
	grep -qF '[stream]' /sys/block/$disk/queue/scheduler || fail "$disk: stream is gone"
	echo none >/sys/block/$disk/queue/scheduler
done
rmmod stream_iosched || fail "stream_iosched stays in use"
echo all done
"""


@every_kernel
def test_a_machine_sleeps_under_load(
    suite: str, package: Path, shared: Path, tmp_path: Path
) -> None:
    """Ten times, to memory and to idle: disks go on afterwards, and their data is right."""
    folder = tmp_path / "emulated"
    folder.mkdir()
    emulated_disk(folder, "emu0")
    modules = (
        "stream-iosched hdd-emu sd_mod scsi_debug:dev_size_mb=64:delay=1 "
        "null_blk:nr_devices=1:gb=1:memory_backed=1:irqmode=2:completion_nsec=1000000"
    )
    boot = Boot(suite, tmp_path / "share", installed(suite, package, shared), modules)
    done = boot(ASLEEP.replace("EMULATED", (folder / "emu0.sh").read_text()))
    assert done.returncode == 0, done.stdout[-6000:]
    assert done.stdout.endswith("all done\n")
    for state in ("freeze", "mem"):
        assert done.stdout.count(f"woken from {state}\n") == 5
