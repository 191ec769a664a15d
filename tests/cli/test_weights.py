# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched weights` on made-up trees of sysfs and cgroups, and its unit."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from said import COMMAND, ROOT, ran
from typer.testing import CliRunner

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.cli.main import app
from streamsched.hosts import cgroups
from streamsched.hosts.machine import Machine
from streamsched.watch import weights

UNIT = ROOT / "kernel" / "packaging" / "systemd" / "streamsched-weights.service"


class Made:
    """A machine below a folder, with cgroups and disks under stream."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.machine = Machine(root)
        self.top = root / "sys/fs/cgroup"
        self.write("cgroup.controllers", "cpu io\n")
        self.write("cgroup.subtree_control", "cpu io\n")
        self.said: list[str] = []
        self.follower = weights.Follower(self.machine, self.said.append)

    def write(self, name: str, text: str) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def cgroup(self, path: str, weight: str = "default 100\n", file: str = "io.weight") -> None:
        self.write(f"{path.lstrip('/')}/{file}", weight)

    def file(self, disk: str) -> Path:
        return self.root / "sys/block" / disk / "queue/iosched/cgroup_weights"

    def disk(self, name: str, number: int = 0) -> None:
        """Under stream. Its file keeps what was written last, where the kernel's has lines."""
        self.file(name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / "sys/block" / name / "dev").write_text(f"8:{number}\n")
        # Made beside it: its number is another than that of the one that was there.
        beside = self.file(name).with_name("new")
        beside.write_text("")
        beside.replace(self.file(name))

    def look(self) -> list[str]:
        """What is set in one look."""
        self.said.clear()
        assert self.follower.look() is None
        return list(self.said)


@pytest.fixture
def host(tmp_path: Path) -> Made:
    made = Made(tmp_path)
    made.disk("sda")
    return made


# ---- what io.weight says ----


@pytest.mark.parametrize(
    ("text", "weight", "of_device"),
    [
        ("default 100\n", 100, {}),
        ("default 250\n8:16 30\n259:0 10000\n", 250, {"8:16": 30, "259:0": 10000}),
        ("70\n", 70, {}),
        ("", 100, {}),
        ("default none\n\nx\n", 100, {}),
        ("8:0 0\n", 100, {}),
    ],
)
def test_what_a_file_says(text: str, weight: int, of_device: dict[str, int]) -> None:
    assert cgroups._parse(text) == (weight, of_device)


def test_only_other_weights_than_the_usual_are_read(host: Made) -> None:
    host.cgroup("/system.slice")
    host.cgroup("/system.slice/a.service", "default 200\n")
    host.cgroup("/machine.slice/b c", "default 100\n8:0 50\n")
    host.cgroup("/machine.slice")
    (host.top / "no-controller").mkdir()
    found = cgroups.weighted(host.machine, "/sys/fs/cgroup")
    assert [(one.path, one.on("8:0"), one.on("8:16")) for one in found] == [
        ("/machine.slice/b c", 50, 100),
        ("/system.slice/a.service", 200, 200),
    ]


def test_bfqs_weight_counts_where_io_weight_says_nothing(host: Made) -> None:
    """libvirt without systemd writes it alone. systemd writes both; io.weight is what was asked."""
    for path, io_weight, bfq in (("/a", 100, 300), ("/b", 500, 136), ("/c", 100, 100)):
        host.cgroup(path, f"default {io_weight}\n")
        host.cgroup(path, f"default {bfq}\n", "io.bfq.weight")
    assert host.look() == ["sda: /a has the weight 300", "sda: /b has the weight 500"]


def test_bfqs_weight_alone(host: Made) -> None:
    """Of a kernel without iocost, which has io.weight."""
    host.cgroup("/a", "100\n", "io.bfq.weight")
    host.cgroup("/b", "40\n", "io.bfq.weight")
    assert host.look() == ["sda: /b has the weight 40"]


# ---- following ----


def test_it_writes_as_the_kernel_reads(host: Made) -> None:
    host.cgroup("/a b", "default 200\n")
    host.look()
    assert host.file("sda").read_text() == "/a b 200\n"


def test_each_disk_has_its_own(host: Made) -> None:
    host.disk("sdb", 16)
    host.cgroup("/a", "default 200\n8:16 30\n")
    host.cgroup("/b", "default 300\n8:16 100\n")
    host.look()
    assert host.follower.rows() == [
        weights.Row("/a", 30, ("sdb",)),
        weights.Row("/a", 200, ("sda",)),
        weights.Row("/b", 300, ("sda",)),
    ]


def test_new_changed_and_usual_again(host: Made) -> None:
    host.cgroup("/a")
    assert host.look() == []
    host.cgroup("/a", "default 200\n")
    assert host.look() == ["sda: /a has the weight 200"]
    assert host.look() == []
    host.cgroup("/a", "default 300\n")
    host.cgroup("/b/c", "default 50\n")
    assert host.look() == ["sda: /a has the weight 300", "sda: /b/c has the weight 50"]
    host.cgroup("/a")
    assert host.look() == ["sda: /a has the usual weight"]
    assert host.file("sda").read_text() == "/a default\n"
    assert host.look() == []


def test_a_cgroup_that_was_removed(host: Made) -> None:
    """The kernel forgets it, too; made again it has its weight again."""
    host.cgroup("/a", "default 200\n")
    host.look()
    (host.top / "a").rename(host.root / "old")  # which keeps its number from the new one
    assert host.look() == [] and host.follower.rows() == []
    host.cgroup("/a", "default 200\n")
    assert host.look() == ["sda: /a has the weight 200"]


def test_a_cgroup_that_was_made_again_between_two_looks(host: Made) -> None:
    host.cgroup("/a", "default 200\n")
    host.cgroup("/b", "default 200\n")
    host.look()
    for name in "ab":
        (host.top / name).rename(host.root / name)
    host.cgroup("/a", "default 200\n")
    host.cgroup("/b")  # its weight is none that was set by us
    assert host.look() == ["sda: /a has the weight 200"]


def test_a_disk_that_comes_under_stream_and_goes(host: Made) -> None:
    host.cgroup("/a", "default 200\n")
    host.look()
    host.disk("sdb", 16)
    assert host.look() == ["sdb: /a has the weight 200"]
    host.file("sda").unlink()
    assert host.look() == []
    assert host.follower.rows() == [weights.Row("/a", 200, ("sdb",))]


def test_a_scheduler_that_was_another_between_two_looks(host: Made) -> None:
    """All weights went with it."""
    host.cgroup("/a", "default 200\n")
    host.look()
    host.disk("sda")
    assert host.look() == ["sda: /a has the weight 200"]


def test_what_somebody_wrote_by_hand_is_left_alone(host: Made) -> None:
    host.cgroup("/mine")
    host.cgroup("/a", "default 200\n")
    host.file("sda").write_text("/mine 70\n")
    assert host.look() == ["sda: /a has the weight 200"]
    host.file("sda").write_text("/mine 70\n/a 9\n")
    assert host.look() == []
    assert host.file("sda").read_text() == "/mine 70\n/a 9\n"
    host.cgroup("/a", "default 201\n")
    assert host.look() == ["sda: /a has the weight 201"]
    host.cgroup("/a")
    assert host.look() == ["sda: /a has the usual weight"]


# ---- what is in the way ----


def test_no_cgroups_of_version_2(host: Made) -> None:
    (host.top / "cgroup.controllers").unlink()
    with pytest.raises(UsageError, match=r"^cgroup v2 is not mounted"):
        weights.once(host.machine)
    with pytest.raises(UsageError, match=r"^cgroup v2 is not mounted"):
        weights.serve(host.machine, 1)


def test_beside_version_1(host: Made) -> None:
    host.write("unified/cgroup.controllers", "io\n")
    host.write("unified/cgroup.subtree_control", "io\n")
    host.write("unified/a/io.weight", "default 200\n")
    (host.top / "cgroup.controllers").unlink()
    assert host.look() == ["sda: /a has the weight 200"]


def test_without_the_controller_io(host: Made) -> None:
    """--once ends; the service says so once, and waits."""
    host.cgroup("/a", "default 200\n")
    host.write("cgroup.subtree_control", "cpu pids\n")
    with pytest.raises(UsageError, match=r"^the controller io is not enabled .* no effect$"):
        weights.once(host.machine)
    host.follower.wait()
    host.follower.wait()
    assert host.said == [f"{weights.NO_IO}; waiting"]
    host.write("cgroup.subtree_control", "cpu io pids\n")
    host.follower.wait()
    assert host.said[1:] == ["sda: /a has the weight 200"]


def test_without_a_disk_under_stream(host: Made) -> None:
    host.cgroup("/a", "default 200\n")
    host.file("sda").unlink()
    with pytest.raises(UsageError, match=f"^{weights.NO_DISK}$"):
        weights.once(host.machine)
    host.follower.wait()
    host.follower.wait()
    assert host.said == [f"{weights.NO_DISK}; waiting"]
    host.disk("sda")
    host.follower.wait()
    assert host.said[1:] == ["sda: /a has the weight 200"]


class Writes:
    """os.write() as the kernel's file has it: some lines are refused, or come too late."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
        self.error, self.refuses, self.lines = error, "/a ", list[str]()
        self.before = lambda: None
        monkeypatch.setattr(weights.os, "write", self.write)

    def write(self, _file: int, data: bytes) -> int:
        self.lines.append(data.decode())
        if self.lines[-1].startswith(self.refuses):
            self.before()
            raise OSError(self.error, os.strerror(self.error))
        return len(data)


def test_a_cgroup_that_goes_while_it_is_written(
    host: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.cgroup("/a", "default 200\n")
    host.cgroup("/b", "default 200\n")
    writes = Writes(monkeypatch, 22)
    writes.before = lambda: (host.top / "a").rename(host.root / "gone") and None
    assert host.look() == ["sda: /b has the weight 200"]
    assert writes.lines == ["/a 200\n", "/b 200\n"] and not host.follower.refused


def test_a_cgroup_that_has_gone_before_it_is_written(
    host: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cgroups.Cgroup("/a", 1, "io.weight", 200, {})
    monkeypatch.setattr(weights, "weighted", lambda *_: [found])
    writes = Writes(monkeypatch, 22)
    assert host.look() == [] and writes.lines == []


def test_a_disk_that_goes_while_it_is_written(host: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cgroup("/a", "default 200\n")
    writes = Writes(monkeypatch, 19)
    writes.before = host.file("sda").unlink
    assert host.look() == [] and not host.follower.refused


@pytest.mark.parametrize(
    ("error", "why"), [(28, "it has no room for more weights"), (22, "Invalid argument")]
)
def test_a_weight_that_the_kernel_refuses(
    host: Made, monkeypatch: pytest.MonkeyPatch, error: int, why: str
) -> None:
    """Said once, and tried again when something has changed."""
    host.cgroup("/a", "default 200\n")
    host.cgroup("/b", "default 300\n")
    writes = Writes(monkeypatch, error)
    said = f"sda: the kernel refuses the weight 200 of /a: {why}"
    with pytest.raises(StreamschedError, match=f"^{said}$") as raised:
        weights.once(host.machine)
    assert raised.value.exit_code == 1
    assert host.look() == [said, "sda: /b has the weight 300"]
    assert host.look() == []
    host.cgroup("/b")
    writes.lines.clear()
    host.look()
    assert writes.lines == ["/b default\n", "/a 200\n"]  # first what makes room
    writes.refuses = "/none"
    host.cgroup("/b", "default 7\n")
    assert host.look() == ["sda: /a has the weight 200", "sda: /b has the weight 7"]


def test_no_permission_is_one_sentence(host: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cgroup("/a", "default 200\n")
    Writes(monkeypatch, 13)
    with pytest.raises(UsageError, match=r"^no permission to change .*; run this as root$"):
        host.look()


def test_a_name_that_ends_with_a_blank_is_left_out(host: Made) -> None:
    """The kernel would take it for the cgroup without the blank."""
    host.cgroup("/a ", "default 200\n")
    assert host.look() == []


# ---- the command ----


@pytest.fixture
def command(host: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    """The command sees this machine, as root."""
    monkeypatch.setattr("streamsched.hosts.machine.Machine", lambda: host.machine)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return host


def test_once_prints_what_is_set(command: Made) -> None:
    command.disk("sdb", 16)
    command.cgroup("/machine.slice/a", "default 200\n8:16 50\n")
    command.cgroup("/b", "default 10000\n")
    done = CliRunner().invoke(app, ["weights", "--once"])
    assert done.exit_code == 0, done.output
    assert done.output == (
        "cgroup            weight  disks\n"
        "/b                 10000  sda, sdb\n"
        "/machine.slice/a      50  sdb\n"
        "/machine.slice/a     200  sda\n"
    )


def test_once_with_nothing_to_set(command: Made) -> None:
    command.cgroup("/a")
    done = CliRunner().invoke(app, ["weights", "--once"])
    assert done.output == "no cgroup has a weight other than 100\n"


def test_only_root(command: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    done = CliRunner().invoke(app, ["weights", "--once"])
    assert isinstance(done.exception, UsageError) and str(done.exception) == weights.NO_ROOT
    assert done.exception.exit_code == 2


@pytest.mark.parametrize("interval", ["0.05", "61", "nan"])
def test_an_interval_out_of_range(command: Made, interval: str) -> None:
    done = CliRunner().invoke(app, ["weights", "--interval", interval])
    assert isinstance(done.exception, UsageError), done.output
    assert str(done.exception) == f"--interval {interval}: is not within 0.1 to 60"


def test_it_follows_until_it_is_stopped(host: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """SIGTERM ends it soon, also in a long interval, and the weights stay."""
    host.cgroup("/a", "default 200\n")

    def end() -> None:
        deadline = time.monotonic() + 20
        while not host.file("sda").read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=end)
    begin = time.monotonic()
    thread.start()
    weights.serve(host.machine, 60)
    thread.join()
    assert time.monotonic() - begin < 20
    assert host.file("sda").read_text() == "/a 200\n"
    assert capsys.readouterr().out == "sda: /a has the weight 200\n"


# ---- the unit ----


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is missing: install the Debian package systemd")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("ExecStart=streamsched", f"ExecStart={COMMAND}"))
    done = ran("systemd-analyze", "verify", "--man=no", unit)
    assert done.returncode == 0, done.stderr
    assert "streamsched" not in done.stderr, done.stderr


def test_the_unit_can_write_sysfs_and_no_more() -> None:
    lines = set(UNIT.read_text().splitlines())
    assert {"ProtectSystem=strict", "ProtectControlGroups=yes", "NoNewPrivileges=yes"} <= lines
    assert not any(line.startswith("ProtectKernelTunables") for line in lines)  # /sys read-only
    assert "ExecStart=streamsched weights" in lines


def test_without_the_command_the_unit_is_skipped(tmp_path: Path) -> None:
    (line,) = [line for line in UNIT.read_text().splitlines() if line.startswith("ExecCondition=")]
    words = shlex.split(line.removeprefix("ExecCondition="))
    done = ran(*words, env={"PATH": str(tmp_path)})
    said = "no weights are set: systemd finds no command streamsched\n"
    assert (done.returncode, done.stdout) == (1, said)
