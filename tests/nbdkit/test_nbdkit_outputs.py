# SPDX-License-Identifier: GPL-2.0-only
"""What the nbdkit plugin writes for its user (log=, stats=, metrics=), and what it must not."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbd_server import Server, connected, image, loop_device, needs_plugin, refused, wait_until
from said import ROOT, ran

from streamsched.hosts.nbdhost import find_plugin
from streamsched.sim.diskfile import parse_disk

pytestmark = needs_plugin

MIB = 1 << 20
KINDS = ("log", "stats", "metrics")
OURS = {
    "log": b"  0,0    0        0     0.000000000     0  m   N streamsched log\nold\n",
    "stats": b"streamsched: member 0 (old):\n",
    "metrics": b"# HELP streamsched_requests_total old\n",
}
IS_THERE = "is there; name a new file, or add force=yes to replace it"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return image(tmp_path / "disk", MIB, b"data")


@pytest.fixture
def loop(disk: Path) -> Iterator[str]:
    with loop_device(disk) as device:
        yield device


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_served_is_not_written(tmp_path: Path, disk: Path, kind: str) -> None:
    soft, hard, twin = tmp_path / "soft", tmp_path / "hard", tmp_path / "twin"
    soft.symlink_to(disk)
    hard.hardlink_to(disk)
    before = disk.read_bytes()
    for name in (disk, hard, tmp_path / "." / "disk"):
        assert "is what is to be served" in refused(str(disk), f"{kind}={name}")
    assert "is a symbolic link" in refused(str(disk), f"{kind}={soft}")
    # Even where it begins as our own do.
    twin.write_bytes(OURS[kind] + bytes(MIB - len(OURS[kind])))
    assert "is what is to be served" in refused(f"file={disk}", f"file={twin}", f"{kind}={twin}")
    assert disk.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"disk", "soft", "hard", "twin"}


@pytest.mark.parametrize("kind", KINDS)
def test_nor_what_a_loop_device_lies_on(tmp_path: Path, disk: Path, loop: str, kind: str) -> None:
    before = disk.read_bytes()
    assert "is what is to be served" in refused(loop, f"{kind}={disk}")
    other = image(tmp_path / "other", MIB)
    assert "is there, and no regular file" in refused(str(other), f"{kind}={loop}")
    assert disk.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_there_is_refused(tmp_path: Path, disk: Path, kind: str) -> None:
    file = tmp_path / "file"
    for content in (b"precious\n", OURS[kind], b"\0"):
        file.write_bytes(content)
        for force in ((), ("force=no",)):
            assert IS_THERE in refused(str(disk), f"{kind}={file}", *force)
        assert file.read_bytes() == content
    # What another server serves, too.
    with Server(tmp_path / "a", str(disk)).serving() as (_, handle):
        mine = image(tmp_path / "mine", MIB)
        assert IS_THERE in refused(str(mine), f"{kind}={disk}")
        assert handle.pread(512, 0)[:4] == b"data"


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_are_no_files(tmp_path: Path, disk: Path, kind: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for name, why in {
        pipe: "is there, and no regular file",
        tmp_path: "is there, and no regular file",
        f"{tmp_path}/": "is a folder's name; name a file in it",
        "/dev/null": "is there, and no regular file",
        "/dev/stderr": "is a symbolic link; name the file itself",
        "/nowhere/file": "/nowhere: No such file or directory",
        f"{disk}/file": f"{disk}: Not a directory",
        f"{tmp_path}/{'x' * 300}": "File name too long",
        "/proc/1/status": "no file can be made there: ",
        "/proc/file": "no file can be made there: No such file or directory",
    }.items():
        assert why in refused(str(disk), f"{kind}={name}")
    assert f"{kind}=: a file's name is missing" in refused(str(disk), f"{kind}=")


def test_its_own_file_is_written_anew_but_none_that_took_its_place(
    tmp_path: Path, disk: Path
) -> None:
    metrics = tmp_path / "x.prom"
    with Server(tmp_path / "a", str(disk), f"metrics={metrics}", "metrics-interval=1") as server:
        wait_until(metrics.exists, "metrics are written")
        first = metrics.stat().st_ino
        wait_until(lambda: metrics.stat().st_ino != first, "they are written anew")
        other = tmp_path / "other"
        other.write_text("precious\n")
        other.rename(metrics)
        os.kill(server.pid, signal.SIGUSR1)
        wait_until(lambda: IS_THERE in server.text(), "the other file is refused")
    assert metrics.read_text() == "precious\n"


@pytest.mark.parametrize("kind", KINDS)
def test_nor_the_description_of_an_emulated_disk(tmp_path: Path, kind: str) -> None:
    """Its first line is a comment, and may be any; log= and stats= begin with no comment."""
    disk = parse_disk((ROOT / "disks" / "wd5000aaks.toml").read_text(), "wd5000aaks")
    file = tmp_path / "disk.txt"
    file.write_text(f"{OURS['metrics'].decode()}{disk.description_text()}")
    before = file.read_bytes()
    assert "is what is to be served" in refused(f"emulate={file}", "size=1M", f"{kind}={file}")
    assert file.read_bytes() == before


def test_a_description_is_checked_before_its_size_is_used(tmp_path: Path) -> None:
    """2^55 sectors are 0 bytes in 64 bits."""
    disk = parse_disk((ROOT / "disks" / "wd5000aaks.toml").read_text(), "wd5000aaks")
    file = tmp_path / "disk.txt"
    for sectors in (0, 1 << 55, (1 << 55) + 2048, (1 << 64) - 1):
        text = re.sub(r"(?<=^capacity_sectors )\d+", str(sectors), disk.description_text())
        assert text.startswith(f"capacity_sectors {sectors}\n")
        file.write_text(text)
        why = f"emulate={file}: capacity_sectors must be between 1 and 2^48"
        assert refused(f"emulate={file}") == why
        assert refused(f"emulate={file}", "size=1M") == why


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("kind 0\n", "kind 0\nkind 1\n", ":3: kind is there twice"),
        ("kind 0\n", "kind\n", ":2: kind has no number"),
        ("kind 0\n", "kind \n", ':2: kind takes at most 1 whole numbers of 32 bits, "" is not one'),
        ("kind 0\n", "\0", ": not the description of a disk"),
    ],
)
def test_a_description_has_each_number_once(tmp_path: Path, old: str, new: str, why: str) -> None:
    disk = parse_disk((ROOT / "disks" / "wd5000aaks.toml").read_text(), "wd5000aaks")
    file = tmp_path / "disk.txt"
    text = disk.description_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    assert refused(f"emulate={file}").removeprefix("emulate=") == f"{file}{why}"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts")
@pytest.mark.parametrize("kind", KINDS)
def test_where_no_file_can_be_made_nothing_is_served(tmp_path: Path, disk: Path, kind: str) -> None:
    """It must be known before nbdkit forks: with --run clients would wait for ever after it."""
    old, point = tmp_path / "old", tmp_path / "point"
    old.write_bytes(OURS[kind])
    point.touch()
    folder = tmp_path / "folder"
    folder.mkdir()

    def mounted(script: str) -> tuple[str, ...]:
        return ("unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh")

    bind = mounted(f"mount --bind {old} {point}")
    assert "is a mount point" in refused(str(disk), f"{kind}={point}", "force=yes", wrapper=bind)
    full = mounted(
        f"mount -t tmpfs -o size=4k none {folder} && head -c 4096 /dev/zero >{folder}/full"
    )
    said = refused(str(disk), f"{kind}={folder}/new", wrapper=full)
    assert "no file can be made there: No space left on device" in said
    assert old.read_bytes() == OURS[kind]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user")
@pytest.mark.parametrize("kind", ["stats", "metrics"])
def test_the_server_s_own_user_must_be_able_to_write(tmp_path: Path, disk: Path, kind: str) -> None:
    """They are written as nbdkit's --user, who may do less than root."""
    folder = tmp_path / "of-root"
    folder.mkdir()
    command = ["nbdkit", "--foreground", "--unix", f"{tmp_path}/socket", "--user", "nobody"]
    done = subprocess.run(
        [*command, find_plugin(), disk, f"{kind}={folder}/new"],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert f"{kind}={folder}/new: " in done.stderr and "Permission denied" in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_written_before_all_is_checked(tmp_path: Path, disk: Path, kind: str) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(OURS[kind])
    for wrong in ("fault=9:read:EIO", "chunk=64k", "coordinate=yes", "curve=5:1", "policy=x"):
        for name in (old, new):
            refused(str(disk), f"{kind}={name}", "force=yes", wrong)
    refused(f"{disk}x", f"{kind}={old}", "force=yes")
    assert old.read_bytes() == OURS[kind]
    assert {path.name for path in tmp_path.iterdir()} == {"disk", "old"}


@pytest.mark.parametrize(("a", "b"), [("log", "metrics"), ("log", "stats"), ("metrics", "stats")])
def test_two_outputs_are_two_files(tmp_path: Path, disk: Path, a: str, b: str) -> None:
    said = refused(str(disk), f"{a}={tmp_path}/x", f"{b}={tmp_path}/./x")
    assert f"the same file as {a}=" in said or f"the same file as {b}=" in said


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_there_is_replaced_by_force(tmp_path: Path, disk: Path, kind: str) -> None:
    """By a new file with the owner and the mode of the old one; other names keep the old one."""
    file, other = tmp_path / "file", tmp_path / "other-name"
    file.write_bytes(OURS[kind])
    file.chmod(0o640)
    other.hardlink_to(file)
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
    owner = file.stat().st_uid
    with Server(tmp_path / "a", str(disk), f"{kind}={file}", "force=yes") as server:
        with connected(server) as (handle,):
            handle.pread(512, 0)
        assert server.stop() == 0
    text = file.read_bytes()
    assert text.startswith(OURS[kind].split(b"old")[0].split(b" (")[0]) and b"old" not in text
    assert other.read_bytes() == OURS[kind]
    assert (file.stat().st_mode & 0o777, file.stat().st_uid) == (0o640, owner)
    assert {path.name for path in tmp_path.iterdir()} == {"disk", "file", "other-name", "a"}


def test_a_log_that_is_being_written_is_not_replaced(tmp_path: Path, disk: Path) -> None:
    log = tmp_path / "log"
    with Server(tmp_path / "a", str(disk), f"log={log}"):
        other = image(tmp_path / "other", MIB)
        said = refused(str(other), f"log={log}", "force=yes")
        assert "another server is writing to it" in said


def test_links_that_others_place_are_not_followed(tmp_path: Path, disk: Path) -> None:
    """Whoever may write to the folder puts a link where the server would write next."""
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o777)
    metrics = folder / "x.prom"
    (folder / "x.prom.new").symlink_to(victim)
    with Server(tmp_path / "a", str(disk), f"metrics={metrics}", "metrics-interval=1") as server:
        wait_until(metrics.exists, "metrics are written")
        assert metrics.read_text().startswith("# HELP streamsched_")
        link = tmp_path / "link"
        link.symlink_to(victim)
        link.rename(metrics)
        os.kill(server.pid, signal.SIGUSR1)
        wait_until(lambda: "is a symbolic link" in server.text(), "the link is refused")
    assert victim.read_text() == "precious\n" and metrics.is_symlink()
    assert {path.name for path in folder.iterdir()} == {"x.prom", "x.prom.new"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of other users")
def test_files_that_others_place_are_not_taken(tmp_path: Path, disk: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    file = folder / "x.prom"
    file.write_bytes(OURS["metrics"])
    os.chown(file, 65534, 65534)
    assert "belongs to another user" in refused(str(disk), f"metrics={file}")
    assert file.read_bytes() == OURS["metrics"]


def test_a_log_that_may_not_grow_does_not_end_the_server(tmp_path: Path, disk: Path) -> None:
    limit = ("sh", "-c", 'ulimit -f 8 && exec "$@"', "sh")
    with Server(tmp_path / "a", str(disk), f"log={tmp_path}/log", wrapper=limit) as server:
        with connected(server) as (handle,):
            for _ in range(200):
                handle.pread(512, 0)
        assert server.stop() == 0
    assert "it is not complete" in server.text()


@pytest.mark.parametrize("kind", KINDS)
def test_where_no_file_may_grow_the_server_says_so(tmp_path: Path, disk: Path, kind: str) -> None:
    """Not a signal's end, nor a file left behind."""
    command = ["nbdkit", "-U", "-", find_plugin(), str(disk), f"{kind}={tmp_path}/new"]
    done = ran("sh", "-c", 'ulimit -f 0 && exec "$@"', "sh", *command, "--run", "true")
    assert done.returncode >= 0, done
    assert {path.name for path in tmp_path.iterdir()} <= {"disk", "new"}


def test_a_value_is_one_line(disk: Path) -> None:
    text = refused(str(disk), "curve=0:1\n1:2")
    assert "curve: has a line break or another control character in it" in text


# ---- when statistics come ----


def test_nothing_is_said_at_the_end_unasked(tmp_path: Path, disk: Path) -> None:
    with Server(tmp_path, str(disk)) as server:
        assert server.stop() == 0
    assert "streamsched: member" not in server.text()
    with Server(tmp_path, str(disk)) as server:
        os.kill(server.pid, signal.SIGUSR1)
        wait_until(lambda: "that are gone" in server.text(), "statistics")
        assert server.stop() == 0
    assert server.text().count("streamsched: member 0") == 1
    with Server(tmp_path, str(disk), "stats=-") as server:
        assert server.stop() == 0
    text = server.text().replace(str(tmp_path), "")
    assert text.count("streamsched: member 0") == 1
    lines = text[text.index("streamsched: member") :].splitlines()
    assert len(lines) > 10 and max(map(len, lines)) <= 80


def test_a_signal_that_comes_early_is_answered(tmp_path: Path) -> None:
    """While the server starts it must neither end it nor be lost."""
    disks = [image(tmp_path / f"disk{i}", MIB) for i in range(8)]
    for turn in range(6):
        stats = tmp_path / f"stats{turn}"
        server = Server(tmp_path / "s", *(f"file={disk}" for disk in disks), f"stats={stats}")
        with server.signalled_from_the_beginning(disks[-1]):
            wait_until(lambda: stats.exists() or server.has_ended(), "statistics")  # noqa: B023
            assert server.stop() == 0
