# SPDX-License-Identifier: GPL-2.0-only
"""Files that are written: what they may replace, what stays of the old one, what is left behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamsched.base import files
from streamsched.base.errors import UsageError
from streamsched.base.files import (
    Target,
    check_output,
    open_input,
    output,
    write_whole,
)

NOBODY = 65534
RESULT = b'{\n  "format": "streamsched-results"'
IS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def refused(path: Path, replace: bool = True) -> str:
    """Why, at the beginning and at the end; all is as it was."""
    before = sorted(path.parent.iterdir())
    to = Target(path, replace)
    with pytest.raises(UsageError) as early:
        check_output(to)
    with pytest.raises(UsageError) as late:
        write_whole(to, "new")
    assert sorted(path.parent.iterdir()) == before
    assert str(early.value) == f"--to {late.value}"
    return str(late.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize("content", [b"x", RESULT, b"Remember: results are elsewhere\n"])
def test_a_file_that_is_there_is_replaced_only_where_that_is_asked_for(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    why = refused(path, replace=False)
    assert why == "is there; name another file, or add --force to replace it"
    check_output(Target(path, replace=True))
    assert path.read_bytes() == content
    write_whole(Target(path, replace=True), "new")
    assert path.read_bytes() == b"new"


def test_what_comes_while_it_is_written_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    taken = pytest.raises(UsageError, match="is there; name another file")
    with taken, output(Target(path)) as file:
        file.write(b"new")
        path.write_text("precious")
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]
    with output(Target(path, replace=True)) as file:
        file.write(b"new")
    assert path.read_text() == "new"


def test_in_an_empty_file_there_is_nothing_to_lose(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    check_output(Target(path))
    write_whole(Target(path), "new")
    assert path.read_bytes() == b"new"


def test_what_is_read_is_not_written_to_by_any_name(tmp_path: Path) -> None:
    read, hard, soft = (tmp_path / name for name in ("read", "hard", "soft"))
    read.write_bytes(RESULT)
    hard.hardlink_to(read)
    soft.symlink_to(read)
    for path in (read, hard, soft):
        with pytest.raises(UsageError, match="is read, and would be lost"):
            check_output(Target(path, replace=True), None, tmp_path / "none", read)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666, 0o200 | 0o400, 0o777])
def test_the_mode_stays(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    write_whole(Target(path, replace=True), "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(Target(tmp_path / "file"), "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@IS_ROOT
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(0o600)
    os.chown(path, NOBODY, NOBODY)
    write_whole(Target(path, replace=True), "new")
    after = path.stat()
    assert (after.st_uid, after.st_gid, after.st_mode & 0o777) == (NOBODY, NOBODY, 0o600)


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@IS_ROOT
def test_what_would_change_its_owner_is_refused() -> None:
    # Where others may come in, as pytest's own folders are not.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        path = folder / "file"
        path.touch()
        path.chmod(0o666)
        with as_nobody():
            why = refused(path)
            assert why == (
                "belongs to somebody else, and would be yours; remove it or name another file"
            )
            path = folder / "own"
            path.touch()
            path.chmod(0o444)
            assert refused(path) == "cannot write it: Permission denied"
        folder.chmod(0o755)
        with as_nobody():
            assert refused(folder / "new") == "cannot write it: Permission denied"


@IS_ROOT
@pytest.mark.parametrize("mode", [0o1777, 0o1775])
def test_a_link_of_somebody_else_in_a_shared_folder(mode: int, tmp_path: Path) -> None:
    """As with fs.protected_symlinks, whatever this kernel has there."""
    victim, shared = tmp_path / "victim", tmp_path / "shared"
    victim.write_bytes(RESULT)
    shared.mkdir()
    shared.chmod(mode)
    for link, leads in (("file", victim), ("new", tmp_path / "new"), ("dev", Path("/dev/null"))):
        (shared / link).symlink_to(leads)
        os.chown(shared / link, NOBODY, NOBODY, follow_symlinks=False)
        why = refused(shared / link)
        assert why == "is somebody else's link, in a folder that all may write to"
    assert victim.read_bytes() == RESULT
    # One's own is followed, and so is any in a folder of one's own.
    (shared / "own").symlink_to(victim)
    (tmp_path / "link").symlink_to(victim)
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    for path in (shared / "own", tmp_path / "link"):
        victim.write_bytes(RESULT)
        write_whole(Target(path, replace=True), "new")
        assert path.is_symlink() and victim.read_bytes() == b"new"
    # A file that somebody put there is his to read.
    (shared / "his").touch()
    os.chown(shared / "his", NOBODY, NOBODY)
    os.mkfifo(shared / "fifo")
    os.chown(shared / "fifo", NOBODY, NOBODY)
    for name in ("his", "fifo"):
        assert (
            refused(shared / name) == "belongs to somebody else, in a folder that all may write to"
        )


def test_a_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refused(pipe) == "is a pipe that nobody reads; begin to read it first"
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_output(Target(pipe))
    write_whole(Target(pipe), "new")
    assert os.read(reader, 9) == b"new"
    os.close(reader)
    with pytest.raises(UsageError, match="is a pipe that nobody reads"):
        write_whole(Target(pipe), "new")


def test_links(tmp_path: Path) -> None:
    loop, far, new = (tmp_path / name for name in ("loop", "far", "new"))
    loop.symlink_to(loop)
    assert refused(loop) == "is a circle of links"
    far.symlink_to("none/file")
    assert refused(far) == "cannot write it: it is a link to a folder that is not there"
    new.symlink_to("made")
    write_whole(Target(new), "new")
    assert new.is_symlink() and (tmp_path / "made").read_text() == "new"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/", "cannot write it: Is a directory"),
        (".", "cannot write it: Is a directory"),
        ("..", "cannot write it: Is a directory"),
        ("/dev/kmsg", "is a device, which would be written to; name a file"),
        ("/dev/random", "is a device, which would be written to; name a file"),
    ],
)
def test_what_is_no_file(name: str, why: str, tmp_path: Path) -> None:
    if not Path(name).exists():
        pytest.skip(f"this machine has no {name}")
    if name.startswith("/dev") and not os.access(name, os.W_OK):
        pytest.skip(f"who runs this may not write to {name}")
    with contextlib.chdir(tmp_path):
        assert refused(Path(name)) == why


def test_an_open_file_has_a_name_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(RESULT)
    with path.open("rb") as file, pytest.raises(UsageError, match="is a file that is open"):
        check_output(Target(Path(f"/dev/fd/{file.fileno()}")))
    reader, writer = os.pipe()
    for pipe in (f"/dev/fd/{writer}", f"/proc/self/fd/{writer}"):  # as >(...) of a shell
        check_output(Target(Path(pipe)))
        write_whole(Target(Path(pipe)), "new")
        assert os.read(reader, 9) == b"new"
    os.close(reader)
    os.close(writer)


def test_a_pipe_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless somebody is at its other end."""
    monkeypatch.setattr(files, "WRITER_MS", 20)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match=f"^{pipe}: is a pipe that nobody writes to; name a file"):
        open_input(pipe)
    assert refused(pipe) == "is a pipe that nobody reads; begin to read it first"
    writer = threading.Timer(0.1, lambda: pipe.write_text("late"))
    held = os.open(pipe, os.O_RDWR)  # as somebody who has yet to write
    writer.start()
    with open_input(pipe) as file:
        assert file.read(4) == b"late"
    writer.join()
    os.close(held)
    # Its reader sees no end between the look and the results.
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    while True:
        with contextlib.suppress(UsageError):
            check_output(Target(pipe))
            break
        time.sleep(0.01)
    time.sleep(0.1)
    write_whole(Target(pipe), "new")
    assert reader.communicate(timeout=120) == (b"new", None)


@pytest.mark.parametrize("name", ["/dev/kmsg", "/dev/ptmx", "/dev/zero", "/dev/full"])
def test_a_device_without_an_end_is_not_read(name: str) -> None:
    if not os.access(name, os.R_OK):
        pytest.skip(f"who runs this may not read {name}")
    with pytest.raises(UsageError, match=f"^{name}: is a device, which has no end; name a file$"):
        open_input(name)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, SystemExit, MemoryError])
def test_nothing_is_left_behind(error: type[BaseException], tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(RESULT)
    for path in (old, new):
        with pytest.raises((error, UsageError)), output(Target(path, replace=True)) as file:
            file.write(b"half")
            file.flush()
            assert len(list(tmp_path.iterdir())) == 2
            raise error
    assert list(tmp_path.iterdir()) == [old]
    assert old.read_bytes() == RESULT


def test_a_name_that_is_guessed_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr(secrets, "token_hex", lambda _nr: "known")
    (tmp_path / ".file.known").symlink_to(victim)
    assert refused(tmp_path / "file") == "cannot write it: File exists"
    assert victim.read_text() == "precious"


@IS_ROOT
def test_the_group_stays_where_the_owner_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(0o640)
    os.chown(path, -1, NOBODY)
    write_whole(Target(path, replace=True), "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (os.geteuid(), NOBODY)


def test_what_is_longer_than_any_description_is_not_read_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 8)
    path = tmp_path / "file"
    path.write_text("12345678")
    assert files.read_whole(path) == "12345678"
    path.write_text("123456789")
    with pytest.raises(UsageError, match="cannot read it: it has more than 8 bytes"):
        files.read_whole(path)
