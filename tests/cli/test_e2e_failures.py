# SPDX-License-Identifier: GPL-2.0-only
"""What the machine does to a command: workers killed, no shared memory, closed descriptors."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from said import COMMAND, ROOT, ran

from streamsched.base.errors import UsageError
from streamsched.cli import main as cli
from streamsched.sim import auto
from streamsched.sim.diskfile import load_disk

JOB = ROOT / "tests/data/e2e/two-readers.fio"
LONG = ROOT / "tests/data/e2e/long.fio"


def sentence(said: bytes) -> str:
    """The one line on standard error."""
    (line,) = said.decode().splitlines()
    assert line.startswith("streamsched: ")
    return line.removeprefix("streamsched: ")


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(
    ("number", "jobs", "why"),
    [
        (
            signal.SIGKILL,
            2,
            "a worker process was killed, as Linux does when memory runs out; "
            "take fewer than 2 at once with --parallel",
        ),
        (
            signal.SIGKILL,
            1,
            "a worker process was killed, as Linux does when memory runs out; "
            "take less work at once",
        ),
        (
            signal.SIGSEGV,
            2,
            "a worker process ended by signal 11; if memory ran out, "
            "take fewer than 2 at once with --parallel",
        ),
    ],
)
def test_a_worker_that_is_killed_is_one_sentence(
    number: int, jobs: int, why: str, tmp_path: Path
) -> None:
    to = tmp_path / "results"
    command: list[str | Path] = [
        COMMAND,
        "run",
        LONG,
        "--policy",
        "noop,deadline,cscan",
        "--to",
        to,
    ]
    with subprocess.Popen(
        [*command, "--parallel", str(jobs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        until = time.monotonic() + 60
        while len(workers := children(running.pid)) < jobs and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)  # a worker that has not begun ignores nothing yet
        os.kill(workers[0], number)
        out, said = running.communicate(timeout=60)
    assert (running.returncode, out) == (1, b"")
    assert sentence(said) == why
    assert list(tmp_path.iterdir()) == []
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
def test_closed_descriptors(closed: tuple[int, ...], tmp_path: Path) -> None:
    """Results are in their file alone; without one, nowhere to print is an error."""
    shell = " ".join(f"{number}>&-" for number in closed)
    run = f"{COMMAND} run {JOB} --policy noop --output csv"
    kept = tmp_path / "kept.csv"
    for more in (f" --to {kept}", ""):
        done = subprocess.run(
            ["bash", "-c", f"{run}{more} {shell}"], capture_output=True, timeout=60
        )
        if more:
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
            assert kept.read_text().count("\n") == 2
        elif 1 in closed:
            assert done.returncode == 1
            if 2 not in closed:
                assert sentence(done.stderr) == "standard output: Bad file descriptor"
        else:
            assert (done.returncode, done.stderr) == (0, b"")
            assert done.stdout.count(b"\n") == 2


def test_results_on_standard_output_that_is_full(tmp_path: Path) -> None:
    for more in ([], ["--to", "-"], ["--to", "/dev/stdout"]):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [COMMAND, "run", JOB, "--policy", "noop", *more],
                stdout=full,
                stderr=subprocess.PIPE,
                timeout=60,
            )
        assert done.returncode == 1
        assert sentence(done.stderr) == "standard output: No space left on device"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_file_system_that_is_full(tmp_path: Path) -> None:
    """There is neither a part of the results nor a new file."""
    script = f"""
    mount -t tmpfs -o size=64k none {tmp_path} && cd {tmp_path} || exit 99
    echo policy,throughput_mb_s, >old.csv
    dd if=/dev/zero of=rest bs=1k count=100 2>/dev/null
    for name in old new; do
        {COMMAND} run {JOB} --policy noop --output json --force --to $name.csv && exit 98
    done
    cat old.csv
    ls -A
    """
    done = subprocess.run(["unshare", "-m", "bash", "-c", script], capture_output=True, timeout=60)
    assert done.stdout.decode().split() == ["policy,throughput_mb_s,", "old.csv", "rest"]
    assert done.stderr.decode().splitlines() == [
        f"streamsched: {name}.csv: cannot write it: No space left on device"
        for name in ("old", "new")
    ]


def test_standard_output_by_its_names(tmp_path: Path) -> None:
    """Also when it is a file, which is then not replaced by another one."""
    for name in ("-", "/dev/stdout", "/proc/self/fd/1", tmp_path / "out"):
        with (tmp_path / "out").open("wb") as out:
            out.write(b"before\n")
            out.flush()
            done = subprocess.run(
                [COMMAND, "run", JOB, "--policy", "noop", "--output", "csv", "--to", name],
                stdout=out,
                stderr=subprocess.PIPE,
                timeout=60,
            )
        assert (done.returncode, done.stderr) == (0, b"")
        first, *lines = (tmp_path / "out").read_text().splitlines()
        assert (first, len(lines)) == ("before", 2)
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide /dev/shm")
def test_no_shared_memory() -> None:
    script = f"mount -t proc none /dev/shm && exec {COMMAND} run {JOB} --policy noop"
    done = subprocess.run(["unshare", "-m", "bash", "-c", script], capture_output=True, timeout=60)
    assert done.returncode == 1
    assert sentence(done.stderr).startswith("cannot share memory with worker processes: ")


@pytest.mark.parametrize(
    ("files", "policies"), [(8, "noop"), (15, "noop,deadline"), (16, "noop,deadline")]
)
def test_limits_of_the_machine(files: int, policies: str) -> None:
    """Too few files for workers: for any, or for all of them."""
    limited = f"ulimit -n {files}; exec {COMMAND} run {JOB} --policy {policies} --parallel 2"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, timeout=60)
    assert done.returncode == 1
    assert "Too many open files" in sentence(done.stderr)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (MemoryError(), "out of memory; take less work, or lower --parallel"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError(5, "Input/output error", "a.fio"), "a.fio: Input/output error"),
    ],
)
def test_errors_of_the_system_are_one_sentence(
    error: Exception, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_options: object) -> None:
        raise error

    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(cli, "_without_types", lambda _command: fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"streamsched: {why}\n"


@pytest.mark.parametrize("days", [1, 106751])
def test_virtual_time_has_an_end(days: int, tmp_path: Path) -> None:
    """A wait that passes 2^64 ns with others is an error, not an early time."""
    job = tmp_path / "slow.fio"
    job.write_text(f"[a]\nrw=read\nbs=4k\nsize=1m\ndirect=1\nthinktime={days}d\n")
    done = subprocess.run(
        [COMMAND, "run", job, "--policy", "noop"], capture_output=True, timeout=60, check=False
    )
    if days == 1:
        assert done.returncode == 0
    else:
        assert done.returncode == 2
        assert "not over after 146 years of virtual time" in sentence(done.stderr)


IMPORTS = """
import signal, sys

class Watch:
    def find_spec(self, name, path, target=None):
        if name == "streamsched.cli.main":
            print(signal.getsignal(signal.SIGINT) is signal.SIG_DFL)

sys.meta_path.insert(0, Watch())
sys.argv = ["streamsched", "--version"]
from streamsched.__main__ import main
try:
    main()
finally:
    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_ctrl_c_while_the_command_is_imported_leaves_no_traceback() -> None:
    """Then the signal has its default action; later it is Python's again."""
    done = ran(sys.executable, "-P", "-c", IMPORTS, check=True)
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("True", "True")


ASKED = """
import sys

class Broken:
    def find_spec(self, name, path, target=None):
        if name == "streamsched._core":
            raise ImportError("not for this Python")

if sys.argv[1] == "broken":
    sys.meta_path.insert(0, Broken())
sys.argv[:2] = ["streamsched"]
from streamsched.__main__ import main
try:
    main()
finally:
    print("streamsched.api" in sys.modules)
"""


@pytest.mark.parametrize(
    ("words", "loaded"),
    [("--version", False), ("weights --help", False), ("rig --help", False), ("run --help", True)],
)
def test_a_command_loads_what_it_needs(words: str, loaded: bool) -> None:
    """The simulator takes longer to load than anything else."""
    done = ran(sys.executable, "-P", "-c", ASKED, "whole", *words.split(), check=True)
    assert done.stdout.splitlines()[-1] == str(loaded)


def test_a_part_that_cannot_be_loaded_is_said() -> None:
    done = ran(sys.executable, "-P", "-c", ASKED, "broken", "run", JOB)
    assert done.returncode == 1
    assert done.stderr == "streamsched: cannot be loaded: not for this Python\n"


def test_signals_to_the_whole_group_end_it_soon(tmp_path: Path) -> None:
    """As `timeout` sends them, two at a time, whatever the workers do just then."""
    for turn in range(8):
        done = subprocess.Popen(
            [str(COMMAND), "profile", "ssd", "--parallel", "2"],
            # So that it can say where it was if it does not end.
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONFAULTHANDLER": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        time.sleep(1.1 + 0.1 * turn)
        os.kill(done.pid, signal.SIGTERM)
        os.killpg(done.pid, signal.SIGTERM)
        try:
            _, said = done.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(done.pid, signal.SIGABRT)
            _, said = done.communicate()
            pytest.fail(f"it does not end: {said.decode()}")
        assert b"Traceback" not in said, said.decode()
        assert done.returncode in (128 + signal.SIGTERM, -signal.SIGTERM)


@pytest.mark.usefixtures("no_home")
def test_no_home() -> None:
    with pytest.raises(UsageError, match="there is no home directory to keep profiles in"):
        auto.default_path(load_disk("ssd"), 1)


@pytest.mark.parametrize("kib", range(24000, 72000, 6000))
def test_too_little_memory_to_begin(kib: int) -> None:
    """Where it runs out differs: in the interpreter, in a library, in what the command imports."""
    done = subprocess.run(
        ["sh", "-c", f"ulimit -v {kib}; exec {COMMAND} list disks"],
        capture_output=True,
        check=False,
    )
    assert done.returncode and b"Traceback" not in done.stderr


def test_a_description_s_name_is_no_path(tmp_path: Path) -> None:
    disk = dataclasses.replace(load_disk("ssd"), name="../../../x/y")
    path = auto.default_path(disk, 1)
    assert path.parent == auto.kept_in() and "/" not in path.name


def test_two_outputs_by_other_names_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    done = subprocess.run(
        [str(COMMAND), "run", str(JOB), "--requests", "dir/../x.csv", "--to", "x.csv"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2 and "is where the results go" in sentence(done.stderr)
