# SPDX-License-Identifier: GPL-2.0-only
"""The rig: a real Linux kernel as a process, in virtual time (docs/internals/RIG.md).

The kernel is User Mode Linux. It runs on this machine's own file system, read-only, so that
every program there is here can be run on it, with the project's modules loaded and their
emulated disks underneath. Computing takes no time there and idling is skipped: what a script
measures is what disks and schedulers do, and the same script measures the same each time.

    result = run_in_rig("fio --output=$OUT/fio.json ... $IN/job.fio", files={"job.fio": text})
    result.status, result.stdout, result.files["fio.json"]
"""

from __future__ import annotations

import enum
import fcntl
import functools
import hashlib
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from streamsched.base.cache import kept_in
from streamsched.base.errors import StreamschedError, UsageError, unknown

VARIANTS = {
    "base": "Linux 6.12",
    "kasan": "Linux 6.12 with the kernel's own checks: KASAN, lockdep and others",
    "servers": "Linux 6.12 with NFS, SMB, FUSE and SCSI targets",
    "newest": "the newest kernel in Debian sid",
}
# Loaded in this order, those that there are.
MODULES = ("stream-iosched.ko", "hdd-emu.ko")
# For make: those too that are no part of an installation (kernel/Kbuild).
EVERY_MODULE = "HISTORIC=m"
# A tmpfs hides what the host has there.
HIDDEN = ("/tmp", "/var/tmp", "/mnt", "/dev/shm", "/run")
# The clock inside starts here in every run: the first of January 2030, in ns.
START_NS = 1_893_456_000 * 1_000_000_000
LAST_LINES = 25
_NOT_BUILT = 3
# What the kernel says when it finds something wrong with itself.
_COMPLAINT = re.compile(
    r"WARNING:|BUG:|KASAN:|UBSAN:|Oops|INFO: task .* blocked|possible (circular|recursive|irq)"
    r"|inconsistent lock|suspicious RCU|ODEBUG:|Kernel panic|unreferenced object|rig: "
)
# A warning with its trace.
_WARNING = re.compile(r"^.*-\[ cut here \]-(?:.*\n)+?.*-\[ end trace .*$", re.MULTILINE)
# One that is no fault of a module's. The kernel with checks puts off the release of each kobject
# by one to four seconds (CONFIG_DEBUG_KOBJECT_RELEASE). A gendisk contains its queue's, and does
# not wait for that: when its own release comes first, bdev_free_inode() frees both (block/bdev.c).
_KERNELS_OWN = re.compile(
    r"ODEBUG: free active .* object type: timer_list hint: kobject_delayed_cleanup\+"
    r"(?:.*\n)+.*\? kfree\+(?:.*\n)+.*\? bdev_free_inode\+"
)
# Paths that go through a kernel's command line and mount options as they are.
_PLAIN_PATH = re.compile(r"/[\w./+@:%~-]*", re.ASCII)


class Clock(enum.StrEnum):
    """How time passes inside."""

    virtual = "virtual"
    """Computing takes no time, idling is skipped. The same script has the same result."""
    computing = "computing"
    """Computing takes what it takes on this machine, idling is skipped."""
    real = "real"
    """As on this machine."""


_CLOCK_PARAMETERS = {
    Clock.virtual: ["time-travel=inf-cpu", f"time-travel-start={START_NS}"],
    Clock.computing: ["time-travel", f"time-travel-start={START_NS}"],
    Clock.real: [],
}


class NotBuiltError(StreamschedError):
    """The variant is not there; `streamsched rig build` makes it."""


class RigError(StreamschedError):
    """The rig did not come to the script's end: a panic, a hang, or it did not start."""

    exit_code = 125

    def __init__(self, message: str, console: str = "", stdout: str = "", stderr: str = "") -> None:
        super().__init__(message)
        self.console = console
        self.stdout = stdout
        self.stderr = stderr


@dataclass(frozen=True)
class RigResult:
    """What came out of a rig whose script ended."""

    status: int
    """The script's exit status; 128 and the signal's number if a signal ended it."""
    stdout: str
    stderr: str
    console: str
    """What the kernel said."""
    files: dict[str, bytes] = field(repr=False)
    """What the script left in $OUT, by path relative to it."""
    elapsed_ns: int
    """How long the rig ran, by its own clock, booting included."""

    def complaints(self) -> list[str]:
        """The kernel's lines that say something is wrong: warnings, KASAN, lockdep.

        Not the one warning that a disk's end can give on the variant kasan, whoever made the disk.
        """
        text = _WARNING.sub(
            lambda found: "" if _KERNELS_OWN.search(found[0]) else found[0], self.console
        )
        return [line for line in text.splitlines() if _COMPLAINT.search(line)]


# ---- where things are ----


def cache() -> Path:
    """The folder of all that is built for the rig."""
    return kept_in("rig", "the rig's kernel")


def source_root() -> Path:
    """The source tree of streamsched, which has the modules and the rig's own files."""
    named = os.environ.get("STREAMSCHED_SOURCE")
    if named:
        candidates = [Path(named)]
    else:
        here = Path.cwd()
        # A virtual environment stands in the tree that it was made for.
        candidates = [here, *here.parents, Path(sys.prefix).parent]
    for candidate in candidates:
        if (candidate / "kernel" / "rig" / "build.sh").is_file():
            return candidate.resolve()
    if named:
        raise UsageError(
            f"STREAMSCHED_SOURCE={named} is not a source tree of streamsched: "
            "there is no kernel/rig/build.sh in it"
        )
    raise UsageError(
        "the rig is built from streamsched's source tree: call streamsched inside it, "
        "or name it with STREAMSCHED_SOURCE=DIR"
    )


def _check_variant(variant: str) -> None:
    if variant not in VARIANTS:
        raise unknown("rig variant", variant, VARIANTS)


def build(variant: str = "base", *, update: bool = False) -> Path:
    """Build the variant's kernel unless it is there; the folder of the build.

    Takes minutes the first time; progress goes to standard error. With @update, a newer version
    of the kernel's source is looked for.
    """
    _check_variant(variant)
    command = [str(source_root() / "kernel" / "rig" / "build.sh")]
    done = subprocess.run(
        [*command, *(["--update"] if update else []), variant],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotBuiltError(
            f"the rig's kernel ({variant}) could not be built (the reason is above)"
        )
    return Path(done.stdout.splitlines()[-1])


def kernel_folder(variant: str = "base") -> Path:
    """The folder of the variant's build; NotBuiltError when it is not there."""
    _check_variant(variant)
    done = subprocess.run(
        [source_root() / "kernel" / "rig" / "build.sh", "--where", variant],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == _NOT_BUILT:
        raise NotBuiltError(
            f"the rig's kernel ({variant}) is not built; "
            f"`streamsched rig build --variant {variant}` does it"
        )
    if done.returncode != 0:
        raise NotBuiltError(done.stderr.strip().removeprefix("streamsched: "))
    return Path(done.stdout.splitlines()[-1])


# ---- what is compiled for it ----


def content_hash(*items: Path | str) -> str:
    """A name for the content of files, folders and words."""
    digest = hashlib.sha256()

    def add(data: bytes) -> None:
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)

    for item in items:
        if isinstance(item, str):
            add(item.encode())
        elif item.is_dir():
            for path in sorted(path for path in item.rglob("*") if path.is_file()):
                add(str(path.relative_to(item)).encode())
                add(path.read_bytes())
        else:
            add(item.read_bytes())
    return digest.hexdigest()[:16]


def _call(command: Sequence[str | Path], what: str) -> None:
    """Run a command of the build; its last lines are the error's."""
    # A make around us is not this one's, nor are the settings of another kernel's build.
    strange = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "KBUILD_OUTPUT", "ARCH", "CROSS_COMPILE"}
    environment = {name: value for name, value in os.environ.items() if name not in strange}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment | {"LC_ALL": "C"},
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate()
        except BaseException:
            # A compiler that is left running writes into a folder that its caller removes. All of
            # them hold the pipe: they have ended when it has.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
    if process.returncode != 0:
        last = "\n".join(printed.strip().splitlines()[-LAST_LINES:])
        raise StreamschedError(f"{what} failed; its last lines:\n{last}")


@contextmanager
def made_whole(target: Path) -> Iterator[Path]:
    """A new folder that becomes @target when all went well; who comes second changes nothing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        yield new
        new.chmod(0o755)
        try:
            new.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _private_headers(root: Path, kernel: Path) -> Path:
    """The block layer's private types as this kernel has them."""
    maker = root / "kernel" / "packaging" / "btf" / "private-headers.sh"
    target = kernel / f"private-{content_hash(maker)}"
    if not target.is_dir():
        with made_whole(target) as new:
            _call(
                [maker, "--headers", kernel, "--vmlinux", kernel / "vmlinux", new / "private.h"],
                "kernel/packaging/btf/private-headers.sh",
            )
    return target / "private.h"


def stage_modules(variant: str, folder: Path) -> Path:
    """Lay out the modules' sources in @folder; the KERNEL for `make -C KERNEL M=FOLDER`."""
    root = source_root()
    kernel = kernel_folder(variant)
    _call([root / "kernel" / "packaging" / "stage.sh", folder], "kernel/packaging/stage.sh")
    if (root / "kernel" / "packaging" / "btf" / "private-headers.sh").is_file():
        shutil.copy(_private_headers(root, kernel), folder / "kernel" / "private.h")
    return kernel


def build_modules(variant: str = "base") -> Path:
    """A folder with the project's modules, compiled for the variant unless that was done before."""
    with tempfile.TemporaryDirectory(prefix="streamsched-modules-") as name:
        staged = Path(name)
        kernel = stage_modules(variant, staged)
        target = kernel / "modules" / content_hash(staged)
        if not target.is_dir():
            options = (EVERY_MODULE, "KCFLAGS=-Werror", f"-j{os.cpu_count() or 1}")
            _call(
                ["make", "-C", kernel, f"M={staged}", *options, "modules"],
                f"compiling the modules for the rig ({variant})",
            )
            with made_whole(target) as new:
                for module in staged.glob("*.ko"):
                    shutil.copy(module, new)
    os.utime(target)
    _forget_old(target.parent)
    return target


def _forget_old(folder: Path, keep: int = 10, days: float = 7) -> None:
    """Remove builds that were not used for days, but the last few."""
    builds = sorted(
        (path for path in folder.iterdir() if not path.name.startswith(".")),
        key=lambda path: path.stat().st_mtime,
    )
    for path in builds[:-keep]:
        if path.stat().st_mtime < time.time() - days * 86400:
            shutil.rmtree(path, ignore_errors=True)


def compiled(name: str, *options: str) -> Path:
    """The C file kernel/rig/@name, compiled with the further @options; kept in the cache."""
    source = source_root() / "kernel" / "rig" / name
    target = cache() / f"{source.stem}-{content_hash(source)}"
    if not target.is_dir():
        with made_whole(target) as new:
            _call(
                ["gcc", "-O2", "-Wall", *options, "-o", new / source.stem, source],
                f"compiling kernel/rig/{name}",
            )
    return target / source.stem


# ---- a run ----


def _write(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def _check_name(name: str) -> None:
    parts = Path(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        raise UsageError(f'file "{name}" for the rig: give a relative path without ".."')


def _check_path(path: Path, what: str) -> None:
    if not _PLAIN_PATH.fullmatch(str(path)):
        raise UsageError(
            f"{what} {str(path)!r}: the rig takes only letters, digits and ./+@:%~_- in its path"
        )


def _hidden(path: Path) -> bool:
    return any(path == Path(top) or Path(top) in path.parents for top in HIDDEN)


@functools.cache
def _dies_with_caller() -> list[str]:
    """A caller that is killed cannot stop its rig, and the script may take for ever."""
    return ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


def _without_randomization() -> tuple[str, ...]:
    """What to put before a command so that its addresses, and memory's size, are the same."""
    done = subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False)
    if done.returncode == 0:
        return ("setarch", "-R")
    print(
        "streamsched: addresses stay random here (setarch -R is not permitted): "
        "the rig's memory may differ by some MB between runs",
        file=sys.stderr,
    )
    return ()


def _memory_folder(memory_mb: int) -> str:
    """Where the rig's memory is kept, as a file: a tmpfs if one has room."""
    for folder in ("/dev/shm", tempfile.gettempdir()):
        if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):  # noqa: PTH112
            stat = os.statvfs(folder)
            if stat.f_bavail * stat.f_frsize >= memory_mb << 20:
                return folder
    raise RigError(
        f"neither /dev/shm nor {tempfile.gettempdir()} has room for the rig's {memory_mb} MB of "
        "memory; name a folder with room in TMPDIR"
    )


@dataclass(frozen=True)
class _Plan:
    """A rig that is about to boot: its folder on this machine and its kernel's parameters."""

    folder: Path
    kernel: Path
    memory_mb: int
    clock: Clock
    parameters: Sequence[str]

    def command(self, channels: Sequence[str]) -> list[str]:
        """What to start, in the rig's folder.

        The command line of the kernel goes into its random numbers. So it is the same for the
        same options: the folder and the open files have always the same names in it.
        """
        return [
            *("sh", "-c", f'ulimit -c 0; exec "$@" {" ".join(channels)}', "sh"),
            *_dies_with_caller(),
            *_without_randomization(),
            str(self.kernel / "linux"),
            f"mem={self.memory_mb}M",
            *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
            *("init=/proc/self/cwd/init.sh", "uml_dir=uml/", "umid=rig"),
            *("con=null", "con0=null,fd:1", "con1=fd:3,fd:4", "con2=null,fd:5"),
            # Addresses inside are the same in every run, too.
            "norandmaps",
            *_CLOCK_PARAMETERS[self.clock],
            *self.parameters,
        ]

    def environment(self) -> dict[str, str]:
        """The kernel's own environment: where it keeps its memory, nothing of the caller's."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "TMPDIR": _memory_folder(self.memory_mb),
        }


def _lay_out(
    folder: Path,
    script: str,
    variant: str,
    files: Mapping[str, bytes | str],
    modules: bool,
    environment: Mapping[str, str],
    show: Sequence[Path],
    mode: str,
) -> Path:
    """Fill the rig's folder as kernel/rig/init.sh wants it; the kernel's build."""
    root = source_root()
    kernel = kernel_folder(variant)
    for name in ("files", "out", "modules", "programs", "uml"):
        (folder / name).mkdir()
    for name, content in files.items():
        _check_name(name)
        _write(folder / "files" / name, content)
    load = []
    built = [*sorted((kernel / "rig-modules").glob("*.ko"))]
    if modules:
        own = build_modules(variant)
        built += sorted(own.glob("*.ko"))
        load = [name for name in MODULES if (own / name).is_file()]
    for module in built:
        shutil.copy(module, folder / "modules")
    # The cache has the kernel's source, which scripts copy.
    seen = dict.fromkeys([*show, cache(), cache().resolve()])
    hidden = [path for path in seen if _hidden(path)]
    for path in hidden:
        _check_path(path, "folder")
        if not path.is_dir():
            raise UsageError(f"{path}: there is no such folder to show inside the rig")
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    _write(folder / "env", "\n".join([*lines, f"mode={mode}", ""]))
    _write(folder / "load", "".join(f"{name}\n" for name in load))
    _write(folder / "show", "".join(f"{path}\n" for path in hidden))
    first = "" if script.startswith("#!") else "#!/bin/bash\n"
    _write(folder / "script", first + script)
    shutil.copy(root / "kernel" / "rig" / "init.sh", folder)
    shutil.copy(compiled("run.c"), folder / "run")
    names = ["script", "init.sh", "run"]
    if (fio := shutil.which("fio", path=roots_path())) and not _hidden(Path(fio)):
        preloaded = folder / "programs" / "fio-start.so"
        shutil.copy(compiled("fio-start.c", "-shared", "-fPIC"), preloaded)
        start = "export LD_PRELOAD=/run/rig/programs/fio-start.so\nexec"
        _write(folder / "programs" / "fio", f'#!/bin/sh\n{start} {shlex.quote(fio)} "$@"\n')
        names.append("programs/fio")
    for name in names:
        (folder / name).chmod(0o755)
    return kernel


@contextmanager
def _own_processor() -> Iterator[int]:
    """The number of a processor that no other rig of this cache has; if each has one, of any.

    The kernel and what runs in it are processes that take turns and never run at the same time.
    On two processors each turn has to wake an idle one, which takes far longer than the turn.
    """
    allowed = sorted(os.sched_getaffinity(0))
    with ExitStack() as locks:
        for number in allowed:
            with suppress(OSError):
                lock = locks.enter_context((cache() / f"processor-{number}.lock").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
        else:
            number = random.choice(allowed)
        yield number


def _start(plan: _Plan, processor: int, channels: str) -> subprocess.Popen[bytes]:
    """Boot; @channels are redirections of the files 3, 4 and 5: a terminal's input and output,
    and the output of another.
    """
    for name in ("console", "stdout", "stderr"):
        (plan.folder / name).touch()
    # A child has the processors of the thread that starts it.
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        return subprocess.Popen(
            plan.command([channels, "</dev/null", ">>console", "2>&1"]),
            env=plan.environment(),
            cwd=plan.folder,
            # A panic ends all of its process group.
            start_new_session=True,
        )
    finally:
        os.sched_setaffinity(0, allowed)


def _has_ended(pid: int) -> bool:
    """Whether the child has ended; it stays a zombie, so that its number is not used again."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, pid, flags) is not None


# Set while the rigs of a pool are to end at once.
_stopping = threading.Event()


@contextmanager
def pool(rigs: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for so many rigs at once. An exception, Ctrl-C too, stops those that run."""
    with ThreadPoolExecutor(max(1, rigs)) as threads:
        try:
            yield threads
        except BaseException:
            _stopping.set()
            threads.shutdown(wait=True, cancel_futures=True)
            _stopping.clear()
            raise


def _wait(process: subprocess.Popen[bytes], timeout_s: float, show: Sequence[_Tail]) -> bool:
    """Until the kernel ends, with all that belongs to it; False: it took too long."""
    deadline = time.monotonic() + timeout_s
    pause = 0.005
    try:
        while not (ended := _has_ended(process.pid)) and time.monotonic() < deadline:
            if _stopping.is_set():
                break
            for tail in show:
                tail.show()
            time.sleep(pause)
            pause = min(0.1, pause * 1.2)
        return ended
    finally:
        # The processes inside are processes of this machine, in the kernel's group.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for tail in show:
            tail.show()


class _Tail:
    """Shows what is added to a file."""

    def __init__(self, path: Path, to: BinaryIO) -> None:
        self.file = path.open("rb")
        self.to = to

    def show(self) -> None:
        if data := self.file.read():
            self.to.write(data)
            self.to.flush()


def _reason(console: str, ended: bool, timeout_s: float, code: int) -> str:
    """Why there is no exit status."""
    if not ended:
        return f"the rig was stopped: it had not ended after {timeout_s:g} s of this machine's time"
    panic = re.search(r"Kernel panic - not syncing: (.*)", console)
    own = re.findall(r"rig: (.*)", console)
    if panic and own and "init" in panic.group(1):
        return f"the rig could not start: {own[-1]}"
    if panic:
        return f"the rig's kernel panicked: {panic.group(1).strip()}"
    return f"the rig ended before its script did (exit code {code})"


def _collect(plan: _Plan, ended: bool, timeout_s: float, code: int) -> RigResult:
    folder = plan.folder

    def text(name: str) -> str:
        return (folder / name).read_bytes().decode(errors="replace").replace("\r\n", "\n")

    console, stdout, stderr = text("console"), text("stdout"), text("stderr")
    status = folder / "status"
    if not ended or not status.exists():
        reason = _reason(console, ended, timeout_s, code)
        lines = [line for line in console.splitlines() if line.strip()][-LAST_LINES:]
        last = "\n".join(lines) or "(nothing)"
        raise RigError(f"{reason}; the kernel's last lines:\n{last}", console, stdout, stderr)
    number, elapsed_ns = status.read_text().split()
    out = folder / "out"
    files = {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
    return RigResult(int(number), stdout, stderr, console, files, int(elapsed_ns))


@contextmanager
def _own_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="streamsched-rig-") as name:
        folder = Path(name).resolve()
        _check_path(folder, "the temporary folder")
        yield folder


def roots_path() -> str:
    """The caller's PATH, and what Debian leaves out of a user's: in the rig all are root."""
    folders = os.environ.get("PATH", os.defpath).split(":")
    administration = ("/usr/local/sbin", "/usr/sbin", "/sbin")
    return ":".join([*folders, *(folder for folder in administration if folder not in folders)])


def run_in_rig(
    script: str,
    *,
    variant: str = "base",
    files: Mapping[str, bytes | str] | None = None,
    timeout_s: float = 600,
    modules: bool = True,
    memory_mb: int = 1024,
    clock: Clock = Clock.virtual,
    show: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    parameters: Sequence[str] = (),
    live: bool = False,
) -> RigResult:
    """Boot a rig, run @script in it as root, and bring back what came out.

    @script     by bash, unless it begins with #!; it starts in a folder of its own
    @files      readable as $IN/NAME; what the script leaves in $OUT comes back
    @timeout_s  of this machine's time, after which the rig is stopped
    @modules    compile (if need be) and load stream-iosched and hdd-emu; all modules, null_blk
                among them, are in $MODULES
    @show       folders of this machine to be seen inside though a tmpfs is mounted over them;
                the rig's cache is, too
    @parameters more for the kernel's command line
    @live       show the script's output as it comes

    The file system is this machine's, read-only; /tmp, /var/tmp, /mnt, /run and /dev/shm are
    empty and writable. Nothing is shared with other rigs: any number may run at once. Raises
    RigError when the kernel panics or hangs or does not boot, NotBuiltError when the variant is
    not built.
    """
    with _own_folder() as folder, _own_processor() as processor:
        environment = {"PATH": roots_path(), **(environment or {})}
        kernel = _lay_out(folder, script, variant, files or {}, modules, environment, show, "pipes")
        plan = _Plan(folder, kernel, memory_mb, clock, parameters)
        process = _start(plan, processor, "3</dev/null 4>>stdout 5>>stderr")
        tails = []
        if live:
            tails = [
                _Tail(folder / "stdout", sys.stdout.buffer),
                _Tail(folder / "stderr", sys.stderr.buffer),
            ]
        ended = _wait(process, timeout_s, tails)
        return _collect(plan, ended, timeout_s, process.returncode)


def run_command(
    command: Sequence[str],
    *,
    variant: str = "base",
    timeout_s: float = 600,
    modules: bool = True,
    memory_mb: int = 1024,
    clock: Clock = Clock.virtual,
    out: Path | None = None,
) -> int:
    """`streamsched rig exec`: the command in the present folder, its output as it comes.

    Builds what is not built. The command's exit status. What it leaves in $OUT goes to the folder
    @out.
    """
    if out is not None and not out.is_dir():
        raise UsageError(f"--out {out}: there is no such folder")
    build(variant)
    here = Path.cwd()
    result = run_in_rig(
        f"cd {shlex.quote(str(here))} && exec {shlex.join(command)}",
        variant=variant,
        timeout_s=timeout_s,
        modules=modules,
        memory_mb=memory_mb,
        clock=clock,
        show=[here],
        live=True,
    )
    if out is not None:
        for name, content in result.files.items():
            _write(out / name, content)
    complaints = result.complaints()
    if complaints:
        print(
            f"streamsched: the kernel complained, {len(complaints)} lines; the first: "
            f"{complaints[0].strip()}",
            file=sys.stderr,
        )
    return result.status


def shell(variant: str = "base", *, modules: bool = True, memory_mb: int = 1024) -> int:
    """`streamsched rig shell`: bash on this terminal, inside the rig. Time is real there."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("rig shell needs a terminal; `streamsched rig exec` runs a command")
    build(variant)
    here = Path.cwd()
    columns, rows = shutil.get_terminal_size()
    script = (
        f"stty rows {rows} cols {columns}\n"
        f"cd {shlex.quote(str(here))}\n"
        f"PS1='rig \\w# ' exec bash --noprofile --norc -i\n"
    )
    saved = termios.tcgetattr(0)
    with _own_folder() as folder, _own_processor() as processor:
        environment = {
            "PATH": roots_path(),
            "TERM": os.environ.get("TERM", "dumb"),
        }
        kernel = _lay_out(folder, script, variant, {}, modules, environment, [here], "shell")
        plan = _Plan(folder, kernel, memory_mb, Clock.real, ())
        try:
            process = _start(plan, processor, "3<&0 4>&1 5>>stderr")
            ended = _wait(process, float("inf"), ())
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, saved)
        return _collect(plan, ended, float("inf"), process.returncode).status
