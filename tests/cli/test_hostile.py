# SPDX-License-Identifier: GPL-2.0-only
"""Calls that cannot end well: each is one sentence and status 2, and changes nothing.

Every command that writes or watches is given each bad input and each bad output. A call is a
process forked from this one, in which all is imported already.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from said import COMMAND, ROOT, ran

from streamsched.cli import main as cli

for _name in ("numpy", "plotly", "pyarrow", "distributed", "prometheus_client"):
    pytest.importorskip(_name, reason=f"{_name} is missing: make test installs it")

pytestmark = pytest.mark.e2e
JOB = "[a]\nrw=randread\nbs=4k\nsize=256k\ndirect=1\n"
STUDY = 'policies = ["noop", "deadline"]\njobs = ["job.fio"]\ndisks = ["wd5000aaks"]\n'
METRIC = 'streamsched_requests_total{member="0",direction="read"} '
DIGITS = "9" * 5000
DEEP = "[" * 100_000
SECONDS = 60
# make test-all makes each call; make test each seventh, which is of another command each time.
STEP = 1 if os.environ.get("STREAMSCHED_TESTS") == "all" else 7
IS_ROOT = os.geteuid() == 0

Word = str | bytes
Call = tuple[Word, ...]


# ---- what there is to be read ----


def make(folder: Path, result: str) -> None:
    """All that calls may name."""
    disk = (ROOT / "disks/wd5000aaks.toml").read_text()
    mb_s = '"throughput_mb_s": '
    files: dict[str, str | bytes] = {
        "job.fio": JOB,
        "study.toml": STUDY,
        "disk.toml": disk,
        "trace": (ROOT / "tests/data/traces/good.blkparse").read_bytes(),
        "notes": "precious\n",
        "notes.png": "precious\n",
        "empty": "",
        "bytes": b"\xff\xfe\x00\x80" * 99,
        "result.json": result,
        "cut.json": result[: len(result) // 2],
        "nan.json": result.replace(mb_s, f'{mb_s}NaN, "y": ', 1),
        "huge.json": result.replace(mb_s, f'{mb_s}1e999, "y": ', 1),
        "long.json": result.replace(mb_s, f'{mb_s}1{"0" * 400}, "y": ', 1),
        "digits.json": result.replace(mb_s, f'{mb_s}{DIGITS}, "y": ', 1),
        "deep.json": DEEP,
        "cut.toml": disk[: len(disk) // 2],
        "digits.toml": f"capacity_gb = {DIGITS}\n{disk}",
        "deep.toml": f"x = {DEEP}",
        "bad.prom": f"{METRIC}x\n",
        "nan.prom": f"{METRIC}nan\n",
        "good.prom": f"{METRIC}1\n",
    }
    wrong = {
        "cut": STUDY[:-5],
        "nan": f"{STUDY}seeds = nan\n",
        "digits": f"{STUDY}seeds = {DIGITS}\n",
        "hex": f"{STUDY}seeds = 0x{'f' * 5000}\n",
        "deep": f"x = {DEEP}",
        "fifo": STUDY.replace("job.fio", "fifo"),
        "trace": f'{STUDY}traces = ["fifo"]\n',
        "nul": STUDY.replace("job.fio", r"a\u0000b"),
        "nuls": rf'{STUDY}traces = ["a\u0000b"]' + "\n",
    }
    files |= {f"study-{name}.toml": text for name, text in wrong.items()}
    for broken, content in (
        ("_study.json", "{"),
        ("_study.json", '{"format": "streamsched-study", "policies": 3}'),
        ("_journal.jsonl", '{"cell":\n'),
        ("_journal.jsonl", '{"cell": "a"}\n'),
        ("_journal.jsonl", b"\xff\n"),
        ("part-000000.parquet", "PAR1"),
    ):
        name = f"results-{len(files)}"
        files[f"{name}/_study.json"] = '{"format": "streamsched-study", "policies": ["noop"]}'
        files[f"{name}/{broken}"] = content
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for name in ("fifo", "fifo.png"):
        os.mkfifo(folder / name)
    (folder / "dir").mkdir()
    (folder / "dir/precious").touch()
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("none/x")
    (folder / "to-full").symlink_to("/dev/full")
    for name in ("job.fio", "trace", "disk.toml", "result.json"):
        (folder / f"to-{name}").symlink_to(name)
        (folder / f"same-{name}").hardlink_to(folder / name)
    with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(folder):
        one.bind("socket")
    if IS_ROOT:
        # The first loop device, and the kernel's log.
        os.mknod(folder / "block", 0o600 | stat.S_IFBLK, os.makedev(7, 0))
        os.mknod(folder / "char", 0o600 | stat.S_IFCHR, os.makedev(1, 11))


# ---- calls ----

NAMES: tuple[Word, ...] = (
    *("missing", "dir", ".", "/", "fifo", "empty", "bytes", "loop", "dangling", "socket", "char"),
    *("", "a\nb", b"\xff\xfe", "x" * 300, "a/" * 3000, "/dev/zero", "/dev/full", "-"),
)
OUTPUTS: tuple[Word, ...] = (
    *("missing/x", "dir", "dir/", ".", "/", "fifo", "to-full", "/dev/full", "block", "char", ""),
    *("socket", "loop", "dangling", "notes", "/proc/x", "a\nb/q", "x" * 300, b"\xff\xfe/x"),
)
NUMBERS = ("-1", "nan", "inf", "1e400", DIGITS, "", "x", "9" * 24)
ADDRESSES = ("9842", ":99999", ":-1", "[::1:80", "a..b:80", f"{'x' * 70}:80", "\n:80", ":8\n0")
FEW = ("--policy", "noop,deadline", "--queue-depth", "1")


def inputs() -> Iterator[Call]:
    """Each command on each bad input."""
    for name in NAMES:
        yield "top", "--once", name
        yield "report", name, "--to", "page.html"
        yield "study", name, "--to", "out"
        yield "study", name, "--table"
        yield "calibrate", name, "--to", "d.toml"
        yield "profile", name, "--to", "p.json"
        yield "advise", "--trace", name, "--to", "a.html"
        yield "run", name, "--output", "json", "--to", "o.json"
        yield "replay", name, "--output", "json", "--to", "o.json"
        yield "measure", name, "--between", "none,x"
        yield "run", "job.fio", "--disk", name, "--to", "o.json"
        yield "run", "job.fio", "--policy", "auto", "--profile", name, "--to", "o.json"
    for name in ("cut", "nan", "huge", "long", "digits", "deep"):
        yield "report", f"{name}.json", "--to", "page.html"
    for name in ("cut", "digits", "deep"):
        yield "profile", f"{name}.toml", "--to", "p.json"
    for name in ("cut", "nan", "digits", "hex", "deep", "fifo", "trace", "nul", "nuls"):
        yield "study", f"study-{name}.toml", "--to", "out"
    for name in ("bad", "nan", "no"):
        yield "top", "--once", f"{name}.prom"
    for option in ("--model", "--scheduler", "--format", "--device", "--to"):
        yield "advise", "--trace", "trace", option, ""
    for option in ("--disk", "--profile", "--to", "--plot", "--requests", "--policy", "--set"):
        yield "run", "job.fio", option, ""


def outputs() -> Iterator[Call]:
    """Each command on each bad output, and on what it reads."""
    for name in OUTPUTS:
        full = name in ("to-full", "/dev/full")  # which is seen in the end
        yield "run", "job.fio", "--policy", "noop", "--output", "json", "--to", name
        yield "replay", "trace", "--policy", "noop", "--to", name
        yield "report", "result.json", "--to", name
        yield "study", "study.toml", "--to", name
        yield "calibrate", "/dev/loop0", "--to", name
        yield "run", "job.fio", "--plot", name
        yield "run", "job.fio", "--requests", name
        if not full:
            yield "profile", "disk.toml", *FEW, "--to", name
            yield "advise", "--trace", "trace", "--model", "disk.toml", "--to", name
    for name in ("fifo.png", "notes.png"):
        yield "run", "job.fio", "--policy", "noop", "--plot", name
    for way in ("", "./", "dir/../", "to-", "same-"):
        yield "run", "job.fio", "--policy", "noop", "--to", f"{way}job.fio"
        yield "report", "job.fio", "--to", f"{way}job.fio"
        yield "replay", "trace", "--policy", "noop", "--to", f"{way}trace"
        yield "advise", "--trace", "trace", "--to", f"{way}trace"
        yield "report", "result.json", "--to", f"{way}result.json"
        yield "profile", "disk.toml", *FEW, "--to", f"{way}disk.toml"
    yield "run", "job.fio", "--to", "x.png", "--plot", "./x.png"
    yield "run", "job.fio", "--to", "x.csv", "--requests", "./x.csv"


def values() -> Iterator[Call]:
    """Each command with bad numbers and addresses; nothing that would change a disk."""
    for value in NUMBERS:
        yield "run", "job.fio", "--seed", value
        yield "run", "job.fio", "--parallel", value
        yield "study", "study.toml", "--to", "out", "--parallel", value
        yield "profile", "disk.toml", "--to", "p.json", "--queue-depth", value
        yield "advise", "no-such-disk", "--seconds", value
        yield "measure", "no-such-disk", "--between", "none,x", "--minutes", value
        yield "top", "--once", "no.prom", "--interval", value
    for value in ADDRESSES:
        yield "exporter", "--listen", value
    for value in ("x", "", "tcp://127.0.0.1:x"):
        yield "study", "study.toml", "--to", "out", "--cluster", value


# ---- what comes of them ----


def _run(call: Call, folder: Path, out: int, err: int) -> NoReturn:
    """The command, in a process of its own, as if it had been started."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        for to, number in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
            os.dup2(to, number)
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
        sys.stderr = io.TextIOWrapper(
            io.FileIO(2, "w", closefd=False), errors="backslashreplace", write_through=True
        )
        sys.argv = ["streamsched", *map(os.fsdecode, call)]
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:
            traceback.print_exc()
    finally:
        os._exit(code)


def called(call: Call, folder: Path) -> tuple[int | None, bytes, bytes]:
    """Its status (None: it did not end), and what it printed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            _run(call, folder, out.fileno(), err.fileno())
        until, status = time.monotonic() + SECONDS, None
        while status is None:
            done, how = os.waitpid(child, os.WNOHANG)
            if done:
                status = os.waitstatus_to_exitcode(how)
            elif time.monotonic() > until:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                break
            time.sleep(0.005)
        for file in (out, err):
            file.seek(0)
        return status, out.read(), err.read()


def seen(folder: Path) -> dict[Path, tuple[int, int, str]]:
    """All there is below @folder: modes, times and contents."""
    found = {}
    for path in folder.rglob("*"):
        status, content = path.lstat(), ""
        if stat.S_ISREG(status.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        when = 0 if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns
        found[path] = status.st_mode, when, content
    return found


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "job.fio").write_text(JOB)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        done = ran(COMMAND, "run", "job.fio", "--output", "json", cwd=folder, check=True)
        make(folder, done.stdout)
        yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("calls", [inputs, outputs, values], ids=lambda calls: str(calls.__name__))
def test_a_call_that_cannot_end_well_is_one_sentence(calls: object, there: Path) -> None:
    assert callable(calls)
    before, wrong = seen(there), []
    for call in itertools.islice(calls(), 0, None, STEP):
        if not IS_ROOT and {"block", "char", "/dev/loop0"} & set(call):
            continue
        status, out, err = called(call, there)
        said = [line for line in err.splitlines() if not line.startswith(b"streamsched: note: ")]
        # Of a study all that is wrong is said at once.
        several = "study" in call and all(line.count(b":") >= 2 for line in said)
        one = len(said) == 1 or (said and several)
        after = seen(there)
        if (status, out) != (2, b"") or not one or b"Traceback" in err or after != before:
            changed = [
                str(path) for path in before.keys() | after if before.get(path) != after.get(path)
            ]
            wrong.append((call, status, out[:200], err[-2000:], changed))
            assert all(before.get(path) == after.get(path) for path in before), wrong
            before = after
    assert not wrong, "\n".join(map(str, wrong))


def _heeds_signals(pid: int) -> bool:
    """Whether a process has come to where it says what SIGTERM does."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


@contextlib.contextmanager
def begun(words: Sequence[str | Path], there: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command, from where it heeds signals; it does not outlive the test."""
    with subprocess.Popen(
        [COMMAND, *words],
        cwd=there,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        try:
            while running.poll() is None and not _heeds_signals(running.pid):
                time.sleep(0.05)
            yield running
        finally:
            running.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "words",
    [
        ("run", "long.fio", "--to", "o.json", "--plot", "o.png"),
        ("report", "long.fio", "--to", "o.html"),
        ("profile", "exos-x18", "--to", "o.json"),
        ("top", "--once", "good.prom"),
        ("exporter", "--listen", "127.0.0.1:0"),
    ],
    ids=lambda words: str(words[0]),
)
def test_what_is_interrupted_leaves_nothing(
    words: tuple[str | Path, ...], number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "good.prom").write_text(f"{METRIC}1\n")
    long = (ROOT / "tests/data/e2e/long.fio").read_text()
    (tmp_path / "long.fio").write_text(long.replace("io_size=6g", "io_size=4000g"))
    before = seen(tmp_path)
    if words[0] == "exporter":
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            words = (*words[:2], f"127.0.0.1:{one.getsockname()[1]}")
    with begun(words, tmp_path) as running:
        if words[0] == "exporter":  # it says when it is there
            assert running.stdout and running.stdout.readline()
        time.sleep(1)
        running.send_signal(number)
        _, err = running.communicate(timeout=SECONDS)
    assert running.returncode in ((0,) if words[0] == "exporter" else (130, 143))
    assert b"Traceback" not in err and err.count(b"\n") <= 2, err
    assert seen(tmp_path) == before


# The signal comes while Python runs a callback of its own, and raises nothing there.
IN_A_CALLBACK = """
import os, sys
from streamsched.cli import main

class Callback:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv.pop(1)))
        sum(range(1000))

watch = main._watch_stdout
main._watch_stdout = lambda: (watch(), Callback())[0]
main.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_in_a_callback_is_not_lost(
    number: signal.Signals, tmp_path: Path
) -> None:
    """As Python's import has them all the time."""
    words = ("profile", "exos-x18", "--to", "o.json")
    done = subprocess.run(
        [sys.executable, "-P", "-c", IN_A_CALLBACK, str(int(number)), *words],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stderr) == (130 if number == signal.SIGINT else 128 + number, b"")
    assert not list(tmp_path.iterdir())


def test_interrupted_while_workers_send_results(tmp_path: Path) -> None:
    """Whenever that is: of a result whose worker was ended the rest never comes."""
    for part in range(4):
        with begun(("profile", "exos-x18", "--to", "o.json"), tmp_path) as running:
            time.sleep(0.4 + part / 5)
            running.send_signal(signal.SIGINT)
            assert running.wait(timeout=SECONDS) in (0, 130)
        made = list(tmp_path.iterdir())
        assert not made or running.returncode == 0
        for path in made:
            path.unlink()
