# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched enable` and `disable` on made-up machines; the rule also with this one's udev."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from machine_data import MODULE, Made, ask_the_real_udev, good
from said import ran
from typer.testing import CliRunner

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.cli import enable as cli_enable
from streamsched.cli.main import app
from streamsched.hosts import enable as hosts_enable
from streamsched.hosts import kernelarray
from streamsched.hosts.device import Device, keeping
from streamsched.hosts.enable_state import RULES, STATE
from streamsched.hosts.machine import Done, Machine

ETC = "/etc/udev/rules.d"
# As SUSE, CachyOS and Arch's wiki have it.
HOSTILE = (
    'ACTION=="add|change", KERNEL=="sd[a-z]*", ATTR{queue/rotational}=="1", '
    'ATTR{queue/scheduler}="bfq"\n'
)
IDS = {"sda": "ID_WWN=0x5000c500a1b2c3d4", "sdb": "ID_SERIAL=ST4000_ZX", "sdc": "ID_PATH=pci-0"}
KERNEL = ("none", "mq-deadline", "bfq", "stream")


class Kernel:
    """A made-up machine with three rotating disks, whose kernel takes what is written."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = good(root)
        (root / "run").mkdir(exist_ok=True)
        self.root = root
        self.ids = dict(IDS)
        for link in ("block", "class/block", "dev/block"):
            shutil.rmtree(root / "sys" / link)
        shutil.rmtree(root / "sys" / "devices")
        self.made.remove(f"{ETC}/60-stream-iosched.rules")
        self.refused: dict[str, str] = {}  # what is written where is refused
        self.done: list[str] = []
        self.said: list[str] = []
        self.notes: list[str] = []
        for number, name in enumerate(self.ids):
            self.disk(name, number)
        monkeypatch.setattr(Device, "write", self.write)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(cli_enable, "Machine", lambda: Machine(root, self.run))
        monkeypatch.setattr(kernelarray, "attach", self.attach)
        monkeypatch.setattr(kernelarray, "detach", self.detach)

    def disk(self, name: str, number: int, scheduler: str = "mq-deadline", **files: str) -> None:
        offered = " ".join(f"[{one}]" if one == scheduler else one for one in KERNEL)
        self.made.disk(name, offered, 16 * number, **files)
        self.made.write(f"/sys/devices/{name}/removable", "0\n")
        self.made.write(f"/run/udev/data/b8:{16 * number}", f"S:x\nE:{self.ids.get(name, 'X=1')}\n")

    def run(self, command: Sequence[str]) -> Done | None:
        line = " ".join(command)
        if command[:2] == ["udevadm", "info"]:
            name = command[-1].rpartition("/")[2]
            return Done(0, f"DEVTYPE=disk\nDEVNAME=/dev/{name}\n{self.ids.get(name, '')}\n")
        if "udevadm" in command[1:] and not self.made.real:
            return self.only_ours(*command[-2:])
        if command[0] in ("udevadm", "modprobe", "systemctl"):
            self.done.append(line)
            return self.made.programs.get(line, Done(0, ""))
        return self.made.run(command)

    def only_ours(self, action: str, disk: str) -> Done:
        """What udevadm says where no rule but ours chooses a scheduler."""
        writes = f"ATTR '{disk}/queue/scheduler' writing 'stream'"
        known = f"DEVTYPE=disk\n{self.ids.get(disk.rpartition('/')[2], '')}"
        action = action.removeprefix("--action=")
        lines = (f"Reading rules file: {RULES}", f"{RULES}:30 {writes}", f"ACTION={action}", known)
        return Done(0, "\n".join(lines))

    def ask_the_real_udev(self) -> None:
        """Which knows the disks' identities by a rule, where programs would ask them."""
        ask_the_real_udev(self.made)
        for name, one in self.ids.items():
            key, _, value = one.partition("=")
            rule = f'KERNEL=="{name}", ENV{{{key}}}="{value}"\n'
            self.made.write(f"/usr/lib/udev/rules.d/10-{name}.rules", rule)

    def write(self, path: Path, value: str) -> None:
        """In place of Device.write(); @path is its first argument."""
        if self.refused.get(path.name) == value or self.refused.get(str(path)) == value:
            raise StreamschedError(f"{path}: could not be set to {value}: Invalid argument")
        if path.name == "scheduler":
            if value not in KERNEL:
                raise StreamschedError(f"{path}: no {value}")
            path.write_text(" ".join(f"[{one}]" if one == value else one for one in KERNEL))
            depth = (path.parent.parent / "device" / "queue_depth").read_text().strip()
            (path.parent / "nr_requests").write_text(f"{2 * int(depth)}\n")
        else:
            path.write_text(f"{value}\n")

    def attach(self, device: str) -> None:
        name = device.removeprefix("/dev/")
        self.made.write(f"/sys/kernel/config/stream-array/{name}/attached", "1\n")

    def detach(self, name: str) -> None:
        shutil.rmtree(self.root / "sys/kernel/config/stream-array" / name)

    def scheduler(self, name: str) -> str:
        return Device(name, self.root / "sys/block" / name).in_use

    def requests(self, name: str) -> str:
        return self.made.machine.text(f"/sys/block/{name}/queue/nr_requests")

    def tree(self) -> dict[str, str]:
        """All files, links and folders."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            text = f"-> {path.readlink()}" if path.is_symlink() else ""
            if not path.is_symlink() and path.is_file():
                text = path.read_bytes().decode(errors="replace").strip()
            found[path.relative_to(self.root).as_posix()] = text
        return found

    def call(self, command: Callable[..., None], *words: str) -> str:
        """What it prints; notes in self.notes."""
        dry = "--dry-run" in words
        every = "--all" in words
        names = [word for word in words if not word.startswith("--")]
        self.said, self.notes = [], []
        machine = Machine(self.root, self.run)
        more = [self.notes.append] if command is hosts_enable.enable else []
        command(machine, names, every, dry, self.said.append, *more)
        return "\n".join(self.said)

    def enable(self, *words: str) -> str:
        return self.call(hosts_enable.enable, *words)

    def disable(self, *words: str) -> str:
        return self.call(hosts_enable.disable, *words)

    def state(self) -> dict[str, object]:
        return dict(json.loads(self.made.machine.text(STATE)))

    def md(self) -> None:
        self.made.md()
        for name in ("sda", "sdb"):
            path = self.root / "sys/block/md0/slaves" / name
            path.parent.mkdir(exist_ok=True)
            path.touch()
        self.made.write("/sys/block/md0/removable", "0")
        self.made.write("/sys/class/block/md0/md/level", "raid0")
        self.made.write("/usr/share/streamsched/61-stream-array.rules", "# rules\n")
        self.made.write("/usr/bin/streamsched", "")
        self.ids["md0"] = "MD_UUID=1:2:3:4"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


# ---- there and back ----


@pytest.mark.parametrize("words", [["sda"], ["sda", "/dev/sdc"], ["--all"]], ids=" ".join)
def test_there_and_back(kernel: Kernel, words: list[str]) -> None:
    """Twice; then each disk is where it was, and no file is left."""
    kernel.write(kernel.root / "sys/block/sda/queue/nr_requests", "48")
    before = kernel.tree()
    for _ in range(2):
        said = kernel.enable(*words)
        assert "sda: has stream instead of mq-deadline, now and after each boot\n" in said
        assert kernel.scheduler("sda") == "stream" and kernel.requests("sda") == "64"
        assert kernel.scheduler("sdb") == ("stream" if words == ["--all"] else "mq-deadline")
        assert kernel.notes == [
            "there is no streamsched-weights.service: io.weight and IOWeight= of cgroups do not "
            "count"
        ]
        more = {RULES.lstrip("/"), STATE.lstrip("/"), "var/lib/streamsched", "var/lib", "var"}
        assert set(kernel.tree()) - set(before) <= more
        said = kernel.disable(*words)
        assert "sda: has mq-deadline instead of stream" in said
        assert f"{RULES}: has been removed" in said
        after = kernel.tree()
        for name in ("var", "var/lib"):
            after.pop(name, None)
            before.pop(name, None)
        assert after == before
    assert kernel.done.count("udevadm control --reload") == 4


def test_a_dry_run_changes_nothing(kernel: Kernel) -> None:
    """Nor does it need root, and it says the same."""
    os.geteuid = lambda: 1000  # type: ignore[method-assign]
    before = kernel.tree()
    for words in (["sda", "sdb"], ["--all"]):
        would = kernel.enable(*words, "--dry-run")
        assert kernel.tree() == before and kernel.done == []
        os.geteuid = lambda: 0  # type: ignore[method-assign]
        assert kernel.enable(*words) == would.replace("would have", "has")
        enabled = kernel.tree()
        would = kernel.disable(*words, "--dry-run")
        assert kernel.tree() == enabled
        assert kernel.disable(*words) == would.replace("would have", "has")
        kernel.done.clear()
        shutil.rmtree(kernel.root / "var")  # which was not there


def test_a_state_over_several_calls(kernel: Kernel) -> None:
    kernel.enable("sda")
    kernel.enable("sdb")
    assert kernel.made.machine.text(RULES).count('GOTO="streamsched_stream"') == 2
    kernel.disable("sda")
    text = kernel.made.machine.text(RULES)
    assert "0x5000c500a1b2c3d4" not in text and 'ENV{ID_SERIAL}=="ST4000_ZX"' in text
    assert [kernel.scheduler(name) for name in ("sda", "sdb")] == ["mq-deadline", "stream"]
    kernel.enable("--all")
    said = kernel.disable("--all")
    assert [kernel.scheduler(name) for name in IDS] == ["mq-deadline"] * 3
    assert "sdb: has mq-deadline instead of stream" in said
    assert not kernel.made.machine.exists(STATE)


def test_how_disks_are_known(kernel: Kernel) -> None:
    kernel.enable("sda", "sdb", "sdc")
    text = kernel.made.machine.text(RULES)
    for key in ('ENV{ID_WWN}=="0x5000c500a1b2c3d4"', 'ENV{ID_SERIAL}=="ST4000_ZX"'):
        assert f'{key}, GOTO="streamsched_stream"' in text
    assert 'ENV{ID_PATH}=="pci-0"' in text
    assert 'TEST=="/run/streamsched/keep-%k", GOTO="streamsched_end"\n' in text


def test_a_disk_without_a_name_of_its_own(kernel: Kernel) -> None:
    """Two with the same number are told apart by another variable, or by the kernel's names."""
    kernel.disk("sdd", 3)
    kernel.disk("sde", 4)
    kernel.ids.update(sdd="ID_SERIAL=000000", sde="ID_SERIAL=000000")
    kernel.enable("sdd")
    assert 'KERNEL=="sdd"' in kernel.made.machine.text(RULES)
    assert any("which another disk may have after a boot" in one for one in kernel.notes)


def test_names_change_at_a_boot(kernel: Kernel) -> None:
    """The disk that was sda is sdb now."""
    kernel.write(kernel.root / "sys/block/sda/queue/scheduler", "bfq")
    kernel.enable("sda")
    kernel.ids["sda"], kernel.ids["sdb"] = kernel.ids["sdb"], kernel.ids["sda"]
    kernel.write(kernel.root / "sys/block/sda/queue/scheduler", "mq-deadline")
    kernel.write(kernel.root / "sys/block/sdb/queue/scheduler", "stream")
    with pytest.raises(UsageError, match=r"^sda: is not enabled$"):
        kernel.disable("sda")
    assert "sdb: has bfq instead of stream" in kernel.disable("sdb")


def test_what_was_chosen_meanwhile_stays(kernel: Kernel) -> None:
    kernel.enable("sda", "sdb")
    kernel.write(kernel.root / "sys/block/sda/queue/scheduler", "bfq")
    kernel.write(kernel.root / "sys/block/sda/queue/nr_requests", "7")
    said = kernel.disable("--all")
    assert "sda: bfq stays, chosen by hand\n" in said
    assert kernel.scheduler("sda") == "bfq" and kernel.requests("sda") == "7"
    assert kernel.scheduler("sdb") == "mq-deadline"


def test_stream_was_there_before(kernel: Kernel) -> None:
    kernel.write(kernel.root / "sys/block/sda/queue/scheduler", "stream")
    assert "sda: has stream, now and after each boot\n" in kernel.enable("sda")
    assert "sda: stream stays, as before" in kernel.disable("sda")
    assert kernel.scheduler("sda") == "stream"


def test_a_scheduler_that_is_gone(kernel: Kernel) -> None:
    kernel.write(kernel.root / "sys/block/sda/queue/scheduler", "bfq")
    kernel.enable("sda")
    kernel.refused["scheduler"] = "bfq"
    assert "sda: has mq-deadline instead of stream, for bfq is refused" in kernel.disable("sda")


def test_a_disk_that_is_gone(kernel: Kernel) -> None:
    kernel.enable("sda", "sdb")
    for link in ("block/sda", "class/block/sda"):
        kernel.made.remove(f"/sys/{link}")
    assert "sda: is gone, and no longer enabled" in kernel.disable("sda")
    assert "0x5000" not in kernel.made.machine.text(RULES)


def test_disks_that_came_later(kernel: Kernel) -> None:
    kernel.enable("--all")
    kernel.disk("sdd", 3, "stream")
    assert "sdd: has mq-deadline instead of stream" in kernel.disable("--all")


def test_one_command_at_a_time(kernel: Kernel) -> None:
    kernel.made.write("/sys/devices/sda/device/queue_depth", "1\n")
    kernel.write(kernel.root / "sys/block/sda/queue/scheduler", "mq-deadline")
    assert kernel.requests("sda") == "2"
    assert (
        "sda: has stream instead of mq-deadline, now and after each boot, with nr_requests 64"
        in (kernel.enable("sda"))
    )
    assert kernel.requests("sda") == "64"
    kernel.disable("sda")
    assert kernel.requests("sda") == "2"


def test_two_at_once(kernel: Kernel) -> None:
    """The second changes nothing, and a dry run may look all the same."""
    handle = os.open(kernel.root / "run", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    before = kernel.tree()
    for call in (kernel.enable, kernel.disable):
        with pytest.raises(StreamschedError, match="another `streamsched enable`"):
            call("sda")
    assert kernel.tree() == before
    assert "would" in kernel.enable("sda", "--dry-run")
    os.close(handle)
    kernel.enable("sda")


def others(kernel: Kernel) -> None:
    """A solid-state disk, a zoned one and one with removable media."""
    kernel.disk("sdd", 3, rotational="0")
    kernel.disk("sde", 4, zoned="host-managed")
    kernel.disk("sdf", 5)
    kernel.made.write("/sys/devices/sdf/removable", "1\n")


def test_only_disks_that_stream_is_for(kernel: Kernel) -> None:
    """--all leaves alone what it is not for."""
    others(kernel)
    said = kernel.enable("--all")
    assert re.findall(r"^(sd.):", said, re.MULTILINE) == ["sda", "sdb", "sdc"]
    assert f"{RULES}: has been written, for all rotating disks" in said


# ---- what may take disks back ----


@pytest.mark.parametrize("operator", ["=", ":="])
def test_a_hostile_rule(kernel: Kernel, operator: str) -> None:
    """udev has no last word for an attribute: with := a later rule comes later, too."""
    kernel.ask_the_real_udev()
    text = HOSTILE.replace('}="', f'}}{operator}"')
    kernel.made.write(f"{ETC}/60-ioschedulers.rules", text)
    kernel.enable("sda")
    (note,) = [one for one in kernel.notes if "60-ioschedulers" in one]
    assert "sets bfq for sda at every change event, and 99-streamsched.rules stream again" in note
    assert f"Take line 1 out of {ETC}/60-ioschedulers.rules" in note


def test_what_acts_after_our_rule(kernel: Kernel) -> None:
    kernel.ask_the_real_udev()
    kernel.made.write(f"{ETC}/99-z.rules", HOSTILE)
    kernel.made.write("/etc/tuned/active_profile", "mine\n")
    kernel.made.write("/etc/tuned/mine/tuned.conf", "[disk]\nelevator=bfq\n")
    kernel.made.write("/etc/tlp.conf", "DISK_IOSCHED=bfq\n")
    kernel.made.write("/proc/cmdline", "elevator=bfq")
    for words in (["--dry-run"], []):
        kernel.enable("sda", *words)
        notes = "\n".join(kernel.notes)
        assert "99-z.rules:1 sets bfq for sda, after 99-streamsched.rules" in notes
        for text in ("tuned: the profile mine sets bfq", "TLP: ", "elevator=bfq"):
            assert text in notes


def test_doctor_knows_the_rule(kernel: Kernel) -> None:
    kernel.ask_the_real_udev()
    kernel.enable("sda", "sdb", "sdc")
    report = Made.report.fget(kernel.made)  # type: ignore[attr-defined]
    ours = [one.text for one in report.findings if "99-streamsched" in one.text]
    assert len(ours) == 1 and re.fullmatch(rf"{RULES}:\d+ sets stream", ours[0])
    assert not [one for one in report.findings if "no udev rule" in one.text]


def test_a_program_that_changes_the_scheduler_for_a_time(kernel: Kernel) -> None:
    device = Device("sda", kernel.root / "sys/block/sda")
    kernel.made.write(f"/proc/{os.getpid()}/stat", "")
    keep = kernel.root / "run/streamsched/keep-sda"
    with keeping(device, kernel.notes.append):
        assert keep.read_text() == f"{os.getpid()}\n"
        with pytest.raises(UsageError, match=r"^sda: process \d+ changes its scheduler; end that"):
            kernel.enable("sda")
        with pytest.raises(UsageError, match="sda: process"), keeping(device, print):
            pass
    assert not keep.exists()
    with pytest.raises(KeyboardInterrupt), keeping(device, print):
        raise KeyboardInterrupt
    assert not keep.exists()
    # One that was killed is no hindrance.
    keep.write_text("99999999\n")
    kernel.enable("sda")
    assert not keep.exists()
    kernel.disable("sda")
    assert not keep.parent.exists()


# ---- arrays, weights ----


@pytest.mark.parametrize("words", [["md0"], ["--all"]], ids=" ".join)
def test_an_array(kernel: Kernel, words: list[str]) -> None:
    kernel.md()
    kernel.made.write("/var/lib/x")
    before = kernel.tree()
    said = kernel.enable(*words)
    assert "md0: has coordinated members, sda, sdb\n" in said
    assert f"{ETC}/61-stream-array.rules: has been linked to the rule for arrays\n" in said
    assert [kernel.scheduler(one) for one in ("sda", "sdb")] == ["stream", "stream"]
    if words == ["md0"]:
        for disk in ("sda", "sdb"):
            with pytest.raises(UsageError, match=f"{disk}: is enabled already, with its array md0"):
                kernel.enable(disk)
            with pytest.raises(UsageError, match=f"{disk}: is enabled with its array md0; disable"):
                kernel.disable(disk)
    said = kernel.disable(*words)
    assert "md0: has members that are no longer coordinated\n" in said
    after = kernel.tree()
    after.pop("sys/kernel/config/stream-array"), after.pop("sys/kernel/config")
    assert after == before


def test_an_array_that_was_coordinated_before(kernel: Kernel) -> None:
    """By hand: it still is, afterwards."""
    kernel.md()
    for name in ("sda", "sdb"):
        kernel.write(kernel.root / "sys/block" / name / "queue/scheduler", "stream")
    kernel.attach("md0")
    (kernel.root / f"{ETC}/61-stream-array.rules".lstrip("/")).symlink_to("/usr/share/x")
    with pytest.raises(UsageError, match="sda: is a member of md0, which is attached; enable md0"):
        kernel.enable("sda")
    before = kernel.tree()
    kernel.enable("md0")
    kernel.disable("md0")
    after = kernel.tree()
    assert {name: after[name] for name in before} == before


def test_two_arrays_on_the_same_disks(kernel: Kernel) -> None:
    """Of partitions; the module coordinates a disk in one of them."""
    kernel.md()
    shutil.copytree(kernel.root / "sys/block/md0", kernel.root / "sys/block/md1", symlinks=True)
    kernel.made.write("/sys/block/md1/size", "200000\n")
    kernel.ids["md1"] = "MD_UUID=5:6:7:8"
    said = kernel.enable("--all")
    assert "md1: has coordinated members, sda, sdb\n" in said and "md0: " not in said
    assert "not coordinated: md0: its member sda is coordinated in md1, and cannot be in two " in (
        "\n".join(kernel.notes)
    )
    kernel.disable("--all")
    with pytest.raises(UsageError, match=r"^md1: its member sda is coordinated in md0, and cannot"):
        kernel.enable("md0", "md1")


def test_a_member_alone(kernel: Kernel) -> None:
    kernel.md()
    kernel.enable("sda")
    assert any("sda: is a member of md0, which is not attached" in one for one in kernel.notes)
    kernel.enable("md0")
    with pytest.raises(UsageError, match="sda: is enabled with its array md0; disable that"):
        kernel.disable("sda")
    kernel.disable("md0")
    assert [kernel.scheduler(one) for one in ("sda", "sdb")] == ["stream", "mq-deadline"]


def test_weights(kernel: Kernel) -> None:
    """The service is enabled where it is, and disabled if it was not before."""
    unit = "streamsched-weights.service"
    kernel.made.write("/run/systemd/system/x")
    kernel.made.write(f"/usr/lib/systemd/system/{unit}")
    kernel.made.programs[f"systemctl is-enabled {unit}"] = Done(1, "disabled\n")
    assert f"{unit}: has been enabled\n" in kernel.enable("sda") and not kernel.notes
    kernel.enable("sdb")
    assert kernel.done.count(f"systemctl enable --now {unit}") == 1
    assert "systemctl" not in kernel.disable("sda")
    assert f"{unit}: has been disabled" in kernel.disable("sdb")
    assert kernel.done.count(f"systemctl disable --now {unit}") == 1
    kernel.made.programs[f"systemctl is-enabled {unit}"] = Done(0, "enabled\n")
    kernel.done.clear()
    kernel.enable("sda")
    kernel.disable("sda")
    assert not [one for one in kernel.done if "able --now" in one]


def test_a_service_without_systemd(kernel: Kernel) -> None:
    """It is there all the same, and said to be."""
    kernel.made.write("/usr/lib/systemd/system/streamsched-weights.service")
    kernel.enable("sda")
    assert [note.partition(":")[0] for note in kernel.notes] == [
        "systemd, which starts streamsched-weights.service, does not run"
    ]
    assert not [one for one in kernel.done if "systemctl" in one]


def test_a_masked_service_stays_so(kernel: Kernel) -> None:
    unit = "streamsched-weights.service"
    kernel.made.write("/run/systemd/system/x")
    kernel.made.write(f"/usr/lib/systemd/system/{unit}")
    kernel.made.programs[f"systemctl is-enabled {unit}"] = Done(1, "masked\n")
    kernel.enable("sda")
    assert any("is masked" in note for note in kernel.notes)
    assert not [one for one in kernel.done if "able --now" in one]


def test_a_link_is_not_written_through(kernel: Kernel) -> None:
    """To /dev/null it masks a rule: what is written there is nowhere."""
    rules = kernel.root / "etc/udev/rules.d/99-streamsched.rules"
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.symlink_to("/dev/null")
    before = kernel.tree()
    with pytest.raises(UsageError, match=r"99-streamsched\.rules: is a link"):
        kernel.enable("sda")
    assert kernel.tree() == before


def test_requests_that_are_refused_now_do_not_stop_it(kernel: Kernel) -> None:
    """The disk hangs on another controller, which takes fewer."""
    requests = kernel.root / "sys/block/sdb/queue/nr_requests"
    was = "2"
    kernel.made.write("/sys/block/sdb/queue/nr_requests", was)
    kernel.enable("sdb")
    assert requests.read_text().strip() != was
    kernel.refused[str(requests)] = was
    assert f"sdb: nr_requests {was} is refused" in kernel.disable("sdb")
    assert not (kernel.root / "var/lib/streamsched").exists()


# ---- a failure takes all back ----


def refuse_second(kernel: Kernel) -> None:
    kernel.refused[str(kernel.root / "sys/block/sdb/queue/scheduler")] = "stream"


def refuse_requests(kernel: Kernel) -> None:
    kernel.made.write("/sys/devices/sdb/device/queue_depth", "1\n")
    kernel.made.write("/sys/devices/sdb/queue/nr_requests", "2\n")
    kernel.refused[str(kernel.root / "sys/block/sdb/queue/nr_requests")] = "64"


def refuse_reload(kernel: Kernel) -> None:
    kernel.made.programs["udevadm control --reload"] = Done(1, "", "no udevd")


def refuse_module(kernel: Kernel) -> None:
    shutil.rmtree(kernel.root / "sys/module/stream_iosched")
    refused = Done(1, "", "modprobe: ERROR: Key was rejected by service")
    kernel.made.programs["modprobe stream-iosched"] = refused


def refuse_weights(kernel: Kernel) -> None:
    unit = "streamsched-weights.service"
    kernel.made.write("/run/systemd/system/x")
    kernel.made.write(f"/usr/lib/systemd/system/{unit}")
    kernel.made.programs[f"systemctl is-enabled {unit}"] = Done(1, "disabled\n")
    kernel.made.programs[f"systemctl enable --now {unit}"] = Done(1, "", "no")


@pytest.mark.parametrize(
    "fails", [refuse_second, refuse_requests, refuse_reload, refuse_module, refuse_weights]
)
def test_a_failure_takes_all_back(kernel: Kernel, fails: Callable[[Kernel], None]) -> None:
    kernel.made.write("/var/lib/x")
    kernel.enable("sdc")
    fails(kernel)
    before = kernel.tree()
    with pytest.raises(StreamschedError, match=r"; all is as it was before") as caught:
        kernel.enable("sda", "sdb")
    assert caught.value.exit_code == 1 and "\n" not in str(caught.value)
    assert kernel.tree() == before
    assert not kernel.said


def test_a_failure_at_the_first_call(kernel: Kernel) -> None:
    kernel.made.write("/var/lib/x")
    before = kernel.tree()
    refuse_second(kernel)
    with pytest.raises(StreamschedError, match=r"Invalid argument; all is as it was before$"):
        kernel.enable("--all")
    assert kernel.tree() == before


def test_a_failure_while_disabling(kernel: Kernel) -> None:
    """The state stays, and the next call does the rest."""
    kernel.enable("sda", "sdb")
    kernel.refused["scheduler"] = "mq-deadline"
    kernel.refused[str(kernel.root / "sys/block/sda/queue/scheduler")] = "none"
    with pytest.raises(StreamschedError, match="sda: the kernel keeps stream; what is not undone"):
        kernel.disable("--all")
    kernel.refused.clear()
    kernel.disable("--all")
    assert [kernel.scheduler(one) for one in ("sda", "sdb")] == ["mq-deadline", "mq-deadline"]
    assert not kernel.made.machine.exists(STATE) and not kernel.made.machine.exists(RULES)


# ---- what is refused ----


def refusals(kernel: Kernel) -> None:
    others(kernel)
    kernel.made.write("/sys/devices/sda/sda1/partition", "1\n")
    (kernel.root / "sys/class/block/sda1").symlink_to(kernel.root / "sys/devices/sda/sda1")
    for name in ("loop0", "dm-0", "dm-1"):
        kernel.made.write(f"/sys/block/{name}/removable", "0\n")
        (kernel.root / "sys/class/block" / name).symlink_to(kernel.root / "sys/block" / name)
    number = kernel.root.stat().st_dev
    below = kernel.root / f"sys/dev/block/{os.major(number)}:{os.minor(number)}"
    below.unlink(missing_ok=True)
    below.symlink_to("../../devices/sda/sda1")
    kernel.made.write("/sys/block/loop0/loop/backing_file", "/image")
    kernel.made.write("/image")
    for name in ("dm-0/slaves/sda1", "dm-1/slaves/dm-0"):
        kernel.made.write(f"/sys/block/{name}")
    kernel.made.write("/sys/block/dm-0/dm/name", "crypt\n")
    kernel.made.write("/dev/dm-0")
    kernel.made.write("/dev/mapper/x")
    kernel.made.remove("/dev/mapper/x")
    (kernel.root / "dev/mapper/crypt").symlink_to("../dm-0")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("sdd", "sdd: is a solid-state disk; stream has no seeks to save there"),
        ("sde", "sde: is a zoned disk (host-managed), for which stream is not meant"),
        ("sdf", "sdf: has removable media, for which stream is not meant"),
        ("sda1", "sda1: is a partition; name the disk, sda"),
        ("loop0", "loop0: is no disk; enable the disk below it: sda"),
        ("/dev/mapper/crypt", "dm-0: is no disk; enable the disk below it: sda"),
        ("dm-1", "dm-1: is no disk; enable the disk below it: sda"),
        ("sdx", "sdx: there is no such disk; there are: sda, sdb, sdc, sdd, sde, sdf"),
        ("../../etc", "../../etc: there is no such disk; there are: sda, sdb, sdc, sdd, sde, sdf"),
        ("sdb", "sdb: is enabled already"),
        ("sda sdb", "sdb: is enabled already"),
        ("sda sdd", "sdd: is a solid-state disk; stream has no seeks to save there"),
        ("", "name a disk, as sda, or give --all"),
        ("sda --all", "--all: stands for every disk; leave out sda"),
        ("disable sda", "sda: is not enabled"),
        ("disable sdb sda", "sda: is not enabled"),
        ("disable sdx", "sdx: is not enabled"),
        ("disable", "name a disk, as sda, or give --all"),
    ],
)
def test_what_is_refused(kernel: Kernel, words: str, says: str) -> None:
    """In one sentence, with exit code 2, and nothing is changed."""
    refusals(kernel)
    kernel.enable("sdb")
    before = kernel.tree()
    command = words.split() if words.startswith("disable") else ["enable", *words.split()]
    with pytest.raises(UsageError) as caught:
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert caught.value.exit_code == 2
    assert str(caught.value).replace("!", "/") == says
    assert kernel.tree() == before


def test_what_is_refused_with_all_enabled(kernel: Kernel) -> None:
    kernel.enable("--all")
    for command, words, says in (
        (kernel.enable, "sda", r"^sda: is enabled already, with all rotating disks \(--all\)$"),
        (kernel.enable, "--all", "^all rotating disks are enabled already$"),
        (kernel.disable, "sda", "^sda: all rotating disks are enabled; only --all disables them$"),
    ):
        with pytest.raises(UsageError, match=says):
            command(words)
    kernel.disable("--all")
    with pytest.raises(UsageError, match=r"^nothing is enabled$"):
        kernel.disable("--all")


def test_not_root(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="only root can change that; run this as root, or with"):
        kernel.enable("sda")


def test_no_module(kernel: Kernel) -> None:
    shutil.rmtree(kernel.root / "sys/module/stream_iosched")
    kernel.made.remove(MODULE)
    kernel.made.write("/sys/devices/sda/queue/scheduler", "none [mq-deadline]\n")
    kernel.made.programs["dkms status"] = Done(0, "")
    with pytest.raises(UsageError, match="no module is there; install the package streamsched-dk"):
        kernel.enable("sda")


def test_files_that_are_not_ours(kernel: Kernel) -> None:
    kernel.made.write(RULES, "# mine\n")
    with pytest.raises(UsageError, match="is there, and not of `streamsched enable`; move it away"):
        kernel.enable("sda")
    kernel.made.remove(RULES)
    kernel.made.write(STATE, "{}")
    with pytest.raises(StreamschedError, match="is not as `streamsched enable` writes it"):
        kernel.enable("sda")


def test_an_array_that_cannot_be(kernel: Kernel) -> None:
    kernel.md()
    rule = "/usr/share/streamsched/61-stream-array.rules"
    kernel.made.remove(rule)
    with pytest.raises(UsageError, match="md0: there is no /usr/share/streamsched/61"):
        kernel.enable("md0")
    kernel.enable("--all")
    assert any("not coordinated: md0: there is no" in one for one in kernel.notes)
    kernel.disable("--all")
    kernel.made.write(rule)
    kernel.made.write("/sys/devices/sdb/queue/rotational", "0\n")
    with pytest.raises(UsageError, match="md0: its member sdb: is a solid-state disk"):
        kernel.enable("md0")
    kernel.made.write("/sys/block/md0/md/array_state", "inactive\n")
    with pytest.raises(UsageError, match=r"^md0: is not running"):
        kernel.enable("md0")


# ---- this machine's udev ----


@pytest.mark.parametrize("words", [["sda", "sdb"], ["--all"]], ids=" ".join)
def test_udev_takes_the_rule(kernel: Kernel, words: list[str]) -> None:
    udevadm = shutil.which("udevadm", path="/usr/bin:/bin:/sbin:/usr/sbin")
    if not udevadm:
        pytest.skip("udevadm is missing: install the Debian package udev")
    said = ran(udevadm, "--version")
    if not said.stdout.strip().isdigit() or int(said.stdout) < 254:
        pytest.skip("udevadm verify is of systemd 254 or later")
    kernel.enable(*words)
    file = kernel.root / RULES.lstrip("/")
    done = ran(udevadm, "verify", file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_number_is_no_pattern(kernel: Kernel) -> None:
    """Where udev would take a character for one, any character fits."""
    kernel.disk("sdd", 3)
    kernel.ids["sdd"] = "ID_SERIAL=A*[1-9]|B?C"
    kernel.enable("sdd")
    assert 'ENV{ID_SERIAL}=="A??1-9??B?C", GOTO=' in kernel.made.machine.text(RULES)
