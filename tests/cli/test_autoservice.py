# SPDX-License-Identifier: GPL-2.0-only
"""The service that chooses a real disk's scheduler, against a folder that looks like sysfs."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from profile_data import GRID, small_profile

from streamsched.auto import profile_measure
from streamsched.auto import service as autoservice
from streamsched.auto import setting as auto
from streamsched.auto.choose import Selection
from streamsched.auto.service import (
    Places,
    Service,
    Watch,
    candidates,
    check_size,
    open_places,
    scheduler_of,
)
from streamsched.base.errors import StreamschedError, UsageError
from streamsched.cli import disk as cli_disk
from streamsched.cli.main import app
from streamsched.hosts import device as hostdevice
from streamsched.hosts.device import Device, device_of
from streamsched.sim.diskfile import Disk, load_disk
from streamsched.work.looks import SAMPLE_S

ROOT = Path(__file__).parents[2]
DISK = load_disk("wd5000aaks")


class FakeDevice(Device):
    """Its kernel does what is written: one scheduler in brackets, iosched/ as that one has it."""

    def write(self, path: Path, value: str) -> None:
        log = self.folder / "log"
        log.write_text(log.read_text() + f"{path.name}={value}\n")
        words = path.read_text().replace("[", "").replace("]", "").split()
        if value not in words:
            raise StreamschedError(f"{path}: could not be set to {value}: Invalid argument")
        path.write_text(" ".join(f"[{word}]" if word == value else word for word in words) + "\n")
        if path.name == "scheduler":
            inner = self.queue / "iosched" / "inner"
            inner.parent.mkdir(exist_ok=True)
            inner.write_text("noop [deadline] cscan sptf linus\n")

    @property
    def log(self) -> list[str]:
        return (self.folder / "log").read_text().splitlines()

    def stat(self, *columns: int) -> None:
        (self.folder / "stat").write_text(" ".join(map(str, columns)) + " 0" * (17 - len(columns)))


def sysfs(root: Path, schedulers: str = "none [mq-deadline] kyber bfq stream") -> FakeDevice:
    folder = root / "block" / "sda"
    (folder / "queue").mkdir(parents=True)
    (folder / "queue" / "scheduler").write_text(schedulers + "\n")
    (folder / "size").write_text(f"{DISK.capacity_sectors}\n")
    (folder / "dev").write_text("8:0\n")
    (folder / "log").write_text("")
    device = FakeDevice("sda", folder)
    device.stat(0, 0, 0, 0, 0, 0, 0, 0)
    return device


@pytest.fixture
def device(tmp_path: Path) -> FakeDevice:
    return sysfs(tmp_path)


def service(device: FakeDevice, *, dry_run: bool = False) -> tuple[Service, list[str]]:
    said: list[str] = []
    profile = small_profile()
    selection = Selection(profile, "none", policies=candidates(device, profile))
    return Service(device, selection, Watch(device, None), dry_run=dry_run, say=said.append), said


def random_reads(device: FakeDevice, one: Service, seconds: int, begin: int = 0) -> None:
    """4 KiB at a time, 32 at once, 120 a second."""
    for step in range(round(begin / SAMPLE_S), round((begin + seconds) / SAMPLE_S)):
        nr = 30 * step
        device.stat(nr, 0, 8 * nr, 8000 * step)
        one.step(step * SAMPLE_S)


# ---- which schedulers ----


@pytest.mark.parametrize(
    ("policy", "kernel"),
    [
        ("noop", ("none", None)),
        ("deadline", ("mq-deadline", None)),
        ("stream:linus", ("stream", "linus")),
        ("stream:stride", None),
        ("cfq", None),
        ("nwcs:sptf", None),
    ],
)
def test_what_the_kernel_calls_it(policy: str, kernel: tuple[str, str | None] | None) -> None:
    assert scheduler_of(policy) == kernel


def test_only_what_is_loaded(tmp_path: Path) -> None:
    with_stream = sysfs(tmp_path / "a")
    assert candidates(with_stream, small_profile()) == (
        *("noop", "deadline", "stream:deadline", "stream:linus"),
    )
    without = sysfs(tmp_path / "b", "[none] mq-deadline")
    assert candidates(without, small_profile()) == ("noop", "deadline")


def refused(device: Device, *wanted: str) -> str:
    with pytest.raises(UsageError) as error:
        candidates(device, small_profile(), wanted)
    return str(error.value)


def test_what_cannot_be_chosen_is_refused(tmp_path: Path) -> None:
    one = sysfs(tmp_path / "a", "[none] mq-deadline bfq")
    assert refused(one, "stream:linus") == (
        "sda: the scheduler stream is not loaded; it offers none, mq-deadline, bfq"
    )
    assert refused(one, "cscan") == "--policy cscan: the kernel has no such scheduler"
    assert refused(one, "cfq").startswith("--policy cfq: is not in the profile, which has noop,")
    assert refused(sysfs(tmp_path / "b", "[none]")) == (
        "sda: offers none, of which there is nothing to choose; load mq-deadline or stream"
    )


# ---- which device ----


def test_names_of_devices(tmp_path: Path, device: FakeDevice) -> None:
    assert device_of("sda", tmp_path) == device_of("/dev/sda", tmp_path)
    assert device_of("sda", tmp_path).in_use == "mq-deadline"
    for name in ("sdb", "/dev/sdb", "", "..", "sda/queue"):
        with pytest.raises(UsageError, match=r"no such block device.*; there are: sda$"):
            device_of(name, tmp_path)


def test_a_device_without_a_scheduler(tmp_path: Path) -> None:
    (tmp_path / "block" / "dm-0" / "queue").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"^dm-0: has no scheduler; name the disk beneath it$"):
        device_of("dm-0", tmp_path)


def test_the_description_must_be_this_disks(device: FakeDevice) -> None:
    check_size(device, DISK)
    with pytest.raises(UsageError, match=r"^sda: has 976773168 sectors and exos-x18 has \d+; name"):
        check_size(device, load_disk("exos-x18"))


# ---- what it sees ----


def test_the_columns_of_the_statistics(device: FakeDevice) -> None:
    device.stat(100, 10, 1600, 5000, 20, 5, 800, 3000)
    seen = Watch(device, None).observe(7.0)
    assert (seen.now_s, seen.requests, seen.completed, seen.reads) == (7.0, 135, 135, 110)
    assert (seen.sent_bytes, seen.done_bytes, seen.response_s) == (2400 * 512, 2400 * 512, 8.0)
    assert (seen.sync, seen.continuing, seen.near) == (None, None, None)


def test_statistics_that_are_none(device: FakeDevice) -> None:
    (device.folder / "stat").write_text("1 2 3\n")
    with pytest.raises(StreamschedError, match="has not the columns of Linux"):
        Watch(device, None).observe(0.0)
    (device.folder / "stat").unlink()
    with pytest.raises(StreamschedError, match="cannot read it: No such file"):
        Watch(device, None).observe(0.0)


def test_lines_of_the_trace(device: FakeDevice) -> None:
    places = Places.__new__(Places)  # without tracefs
    from streamsched._core import ffi, lib

    places.workload = ffi.new("struct ss_workload *")
    lib.ss_workload_init(places.workload, DISK.capacity_sectors)
    places._number = "8,0"
    for line in (
        "  fio-71 [000] .....  5.300000: block_bio_queue: 8,0 R 1000 + 128 [fio]",
        "  fio-71 [000] .....  5.400000: block_bio_queue: 8,0 RA 1128 + 128 [fio]",
        "  fio-71 [000] .....  5.500000: block_bio_queue: 8,0 W 5000 + 8 [kworker/u2:1]",
        "  fio-71 [000] .....  5.500000: block_bio_queue: 8,0 WS 90000 + 16 [a b]",
        # Not these: another disk, a flush, a discard, another event, a loss.
        "  fio-71 [000] .....  5.500000: block_bio_queue: 8,16 R 0 + 8 [fio]",
        "  fio-71 [000] .....  5.500000: block_bio_queue: 8,0 FF 0 + 0 [fio]",
        "  fio-71 [000] .....  5.500000: block_bio_queue: 8,0 DS 0 + 800 [fio]",
        "  fio-71 [000] .....  5.500000: block_rq_issue: 8,0 R 4096 () 0 + 8 [fio]",
        "CPU:0 [LOST 55 EVENTS]",
        "",
    ):
        places.take(line)
    seen = places.workload.totals
    assert (seen.requests, seen.sectors, seen.reads, seen.sync) == (4, 280, 2, 3)
    assert seen.continuing == 1


def test_without_tracefs_it_says_so(tmp_path: Path, device: FakeDevice) -> None:
    said: list[str] = []
    assert open_places(device, DISK, said.append, tmp_path) is None
    (line,) = said
    assert line.startswith("sda: the places of requests are not known") and "No such file" in line


# ---- what it does ----


def test_it_changes_the_scheduler_and_puts_it_back(device: FakeDevice) -> None:
    one, said = service(device)
    assert one.chooser.current == "deadline" and said == []
    # Made to look best, so that the test is of the service and not of the profile.
    one.chooser.forecast = lambda looks: {"deadline": 1.0, "stream:linus": 2.0}  # type: ignore[method-assign]
    random_reads(device, one, 10)
    assert device.log == ["scheduler=stream", "inner=linus"]
    (line,) = said
    assert line.startswith("sda: mq-deadline -> stream (inner linus): requests of 4 KiB, 100 % rea")
    assert "100 % more throughput expected" in line
    one.finish()
    assert device.in_use == "mq-deadline" and said[-1] == "sda: stopped, mq-deadline again"


def test_between_two_of_stream_it_begins_anew(device: FakeDevice) -> None:
    device.write(device.queue / "scheduler", "stream")
    one, _ = service(device)
    assert one.chooser.current == "stream:deadline"
    one.chooser.forecast = lambda looks: {"stream:deadline": 1.0, "stream:linus": 2.0}  # type: ignore[method-assign]
    random_reads(device, one, 10)
    assert device.log[1:] == ["scheduler=none", "scheduler=stream", "inner=linus"]
    one.finish()
    assert device.inner == "deadline"


def test_a_dry_run_changes_nothing_and_says_it_once(device: FakeDevice) -> None:
    one, said = service(device, dry_run=True)
    one.chooser.forecast = lambda looks: {"deadline": 1.0, "stream:linus": 2.0}  # type: ignore[method-assign]
    random_reads(device, one, 120)
    one.finish()
    assert device.log == [] and one.chooser.current == "deadline"
    (line,) = said
    assert line.startswith("sda: would change mq-deadline to stream (inner linus): requests of 4")


def test_what_nobody_measured_is_left_at_once(tmp_path: Path) -> None:
    bfq = sysfs(tmp_path, "none mq-deadline [bfq] stream")
    one, said = service(bfq)
    assert bfq.in_use != "bfq" and "what was there is not in the profile" in said[0]
    one.finish()
    assert bfq.in_use == "bfq"


def test_without_places_the_statistics_alone_decide(device: FakeDevice) -> None:
    """At random with a full queue: none of the candidates is worth leaving another for."""
    one, said = service(device)
    random_reads(device, one, 60)
    assert one.chooser.looks is not None
    assert one.chooser.looks.size_bytes == 4096 and one.chooser.looks.outstanding == 32
    assert len(said) <= 1


def test_no_permission_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sysfs(tmp_path)
    real = device_of("sda", tmp_path)

    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("streamsched.auto.service.os.open", denied)
    with pytest.raises(UsageError, match=r"^no permission to change .*; run this as root$"):
        real.set_scheduler("none", None)


# ---- the unit ----

PACKAGING = Path(__file__).resolve().parents[2] / "kernel" / "packaging"
UNIT = PACKAGING / "systemd" / "streamsched-auto@.service"


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is missing: install the Debian package systemd")
    command = Path(sys.executable).parent / "streamsched"
    unit = tmp_path / "streamsched-auto@sda.service"
    unit.write_text(UNIT.read_text().replace("ExecStart=streamsched", f"ExecStart={command}"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # Of other units on this machine it complains, too.
    assert "streamsched" not in done.stderr, done.stderr


def test_without_the_command_the_unit_is_skipped(tmp_path: Path) -> None:
    """With one sentence, as the package of the modules does not have the command."""
    (line,) = [line for line in UNIT.read_text().splitlines() if line.startswith("ExecCondition=")]
    words = shlex.split(line.removeprefix("ExecCondition=").replace("%I", "sda"))

    def tried() -> tuple[int, str]:
        done = subprocess.run(
            words, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    said = "the scheduler of sda is not chosen: systemd finds no command streamsched\n"
    assert tried() == (1, said)
    (tmp_path / "streamsched").touch(0o755)
    assert tried() == (0, "")


def test_the_units_command_has_these_options() -> None:
    """With another disk's name it gets as far as saying that this is not there."""
    (line,) = [line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart=")]
    command, *words = line.removeprefix("ExecStart=").replace("%I", "no-such-disk").split()
    assert command == "streamsched"
    done = subprocess.run(
        [Path(sys.executable).parent / command, *words], capture_output=True, text=True, check=False
    )
    # Ended so it is not begun again: RestartPreventExitStatus.
    assert done.returncode == 2 and "RestartPreventExitStatus=2\n" in UNIT.read_text()
    assert done.stderr.startswith("streamsched: no-such-disk: there is no such block device")


# ---- as documented ----


def documented(command: str) -> list[str]:
    """The arguments of a command of AUTO.md about the disk sda."""
    lines = (ROOT / "docs" / "AUTO.md").read_text().splitlines()
    (found,) = {line.partition("#")[0].strip() for line in lines if line.startswith(command)}
    return shlex.split(found)[1:]


@pytest.mark.parametrize("takes", [None, 1, 32])
def test_the_documented_commands_go_together(
    takes: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A profile measured as AUTO.md says, of fewer workloads, and the service that uses it."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "disks" / f"{DISK.name}.toml", "sda.toml")
    device = sysfs(tmp_path / "sys")
    if takes:
        (device.folder / "device").mkdir()
        (device.folder / "device" / "queue_depth").write_text(f"{takes}\n")
    monkeypatch.setattr(cli_disk, "PROFILE_POLICIES", ("noop", "deadline"))
    monkeypatch.setattr(profile_measure, "grid_cells", lambda: GRID[:2])
    monkeypatch.setattr(profile_measure, "SIZES_KIB", (64,))
    for module, name, real in (
        (hostdevice, "device_of", hostdevice.device_of),
        (autoservice, "serve", autoservice.serve),
    ):
        monkeypatch.setattr(module, name, functools.partial(real, sys_=tmp_path / "sys"))
    keep, seen = tmp_path / "run" / "streamsched" / "keep-sda", []

    def stop(_seconds: float) -> None:
        seen.append(keep.exists())
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(time, "sleep", stop)
    app(documented("streamsched profile sda.toml"), standalone_mode=False)
    app(documented("streamsched auto sda "), standalone_mode=False)
    out, err = capsys.readouterr()
    assert "sda: deadline of noop, deadline, for throughput" in out
    assert seen == [True] and not keep.exists()
    assert ("note: sda takes 1 at once, and the profile has 32" in err) == (takes == 1)
    again = [*documented("streamsched auto sda "), "--queue-depth", "1"]
    with pytest.raises(UsageError, match="was measured with queue depth 32, not 1"):
        app(again, standalone_mode=False)
    again[-1] = "33"
    with pytest.raises(UsageError, match="--queue-depth 33: wd5000aaks takes 1 to 32 commands"):
        app(again, standalone_mode=False)


def test_a_disk_of_one_command_is_profiled_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with the 32 that are taken where nobody says how many."""

    class Asked(Exception):
        pass

    def obtain(_disk: Disk, queue_depth: int | None, *_: object) -> None:
        raise Asked(queue_depth)

    monkeypatch.setattr(auto, "obtain", obtain)
    monkeypatch.setattr(autoservice, "check_size", lambda *_: None)
    real = hostdevice.device_of
    sysfs(tmp_path / "sys")
    monkeypatch.setattr(hostdevice, "device_of", functools.partial(real, sys_=tmp_path / "sys"))
    for disk, depth in (("usb2-2tb", 1), ("wd5000aaks", 32)):
        with pytest.raises(Asked, match=f"^{depth}$"):
            app(["auto", "sda", "--model", disk], standalone_mode=False)
