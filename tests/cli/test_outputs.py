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
    Kind,
    check_output,
    open_input,
    output,
    picture_metadata,
    write_whole,
)

NOBODY = 65534
RESULT = b'{\n  "format": "streamsched-results"'
IS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")

TABLE = b"\n                 effi-   least\n policy   MB/s   ciency  share\n"
LICENCE = b"<!-- SPDX-License-Identifier: GPL-2.0-only -->\n"

OURS = {
    Kind.RESULTS: (
        RESULT,
        b'{\n  "fio version": "streamsched-0.1"',
        b"policy,throughput_mb_s,efficiency\n",
        b"work,seed,disk,array,owners,queue_depth,path,policy,throughput_mb_s,efficiency\n",
        b"a.fio: 4 processes on ssd, owners process, queue depth 1\n" + TABLE,
        b"a b: c.fio: 1 process on ssd, the real kernel, path direct, queue depth 32\n" + TABLE,
        b"x (blktrace), closed: on raid0:2:64k of a, b, owners none, queue depth 32\n" + TABLE,
    ),
    Kind.REQUESTS: (
        b"policy,process,number,disk,direction,sector\nnoop,a,0,0,read,8\n",
        b"PAR1" + bytes(10_000) + b"positioning_ns....PAR1",
    ),
    Kind.PROFILE: (b'{\n "format": "streamsched-profile",\n',),
    Kind.DESCRIPTION: (
        b"# SPDX-License-Identifier: GPL-2.0-only\n#\n# Sources:\n"
        b"#   [meas]  measured by streamsched calibrate 0.1 on 2026-01-01\n",
    ),
    Kind.DOCUMENT: (LICENCE + b"# X\n\nWritten by `streamsched compare`; do not edit.\n",),
    Kind.CHAPTER: (LICENCE + b"# X\n",),
    Kind.ADVICE: (b"<!-- streamsched's advice -->\n<html>",),
    Kind.PAGE: (b"<!DOCTYPE html>\n<!-- streamsched's page -->\n<html>",),
    Kind.PICTURE: (
        b'<?xml version="1.0"?>\n<dc:title>streamsched\'s picture</dc:title>',
        b"\x89PNG\r\n\x1a\n....tEXtSoftware\0streamsched's picture",
        b"%PDF-1.4\n" + bytes(10_000) + b"/Creator (streamsched's picture)\n%%EOF\n",
    ),
    Kind.UDEV_RULES: (b"# Written by `streamsched enable`, which writes it anew\n",),
    Kind.ENABLED: (b'{\n  "format": "streamsched-enabled",\n',),
    Kind.STUDY: [b'{\n  "format": "streamsched-study",\n', b"PAR1 rows \0 study_sha256 \0 PAR1"],
}
# A job file, a description that somebody wrote, a trace, an image, notes, a picture of somebody's.
FOREIGN = (
    b"[reader]\nrw=read\nsize=1g\n",
    b'# SPDX-License-Identifier: GPL-2.0-only\n#\n# Sources: a data sheet\nname = "x"\n',
    b"8,0 1 1 0.5 697 Q R 1000 + 8 [x]\n",
    bytes(1 << 20),
    b"Remember: results are on the other disk\n",
    b'<?xml version="1.0"?>\n<svg>a drawing</svg>\n',
    b'<?xml version="1.0"?>\n<dc:title>Matplotlib v3.8</dc:title>',
    b"Friday: on holiday, back on Monday, queue depth 1\nprecious\n",
    b"# X\n\nWritten by `streamsched compare`\n",
    b"\n" + RESULT,
    b"<!DOCTYPE html>\n<html>my home page</html>\n",
)


def refused(path: Path, kind: Kind = Kind.RESULTS) -> str:
    """Why, at the beginning and at the end; all is as it was."""
    before = sorted(path.parent.iterdir())
    with pytest.raises(UsageError) as early:
        check_output(path, kind)
    with pytest.raises(UsageError) as late:
        write_whole(path, "new", kind)
    assert sorted(path.parent.iterdir()) == before
    assert str(early.value) == f"--to {late.value}"
    return str(late.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize("kind", list(Kind))
def test_only_what_is_of_the_same_kind_is_replaced(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"", *OURS[kind]):
        path.write_bytes(content)
        check_output(path, kind)
        assert path.read_bytes() == content
        write_whole(path, "new", kind)
        assert path.read_bytes() == b"new"
    # A document that a command writes is one of the project, too.
    same = {Kind.CHAPTER: (Kind.CHAPTER, Kind.DOCUMENT)}.get(kind, (kind,))
    others = [one for other, texts in OURS.items() if other not in same for one in texts]
    for content in (*FOREIGN, *others):
        path.write_bytes(content)
        why = refused(path, kind)
        assert why == f"is there, and is not {kind.words}; remove it or name another file"
        assert path.read_bytes() == content


def test_what_is_read_is_not_written_to_by_any_name(tmp_path: Path) -> None:
    read, hard, soft = (tmp_path / name for name in ("read", "hard", "soft"))
    read.write_bytes(RESULT)
    hard.hardlink_to(read)
    soft.symlink_to(read)
    for path in (read, hard, soft):
        with pytest.raises(UsageError, match="is read, and would be lost"):
            check_output(path, Kind.RESULTS, None, tmp_path / "none", read)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666, 0o200 | 0o400, 0o777])
def test_the_mode_stays(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    write_whole(path, "new", Kind.RESULTS)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "file", "new", Kind.RESULTS)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@IS_ROOT
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(0o600)
    os.chown(path, NOBODY, NOBODY)
    write_whole(path, "new", Kind.RESULTS)
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
        write_whole(path, "new", Kind.RESULTS)
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
    check_output(pipe, Kind.RESULTS)
    write_whole(pipe, "new", Kind.RESULTS)
    assert os.read(reader, 9) == b"new"
    os.close(reader)
    with pytest.raises(UsageError, match="is a pipe that nobody reads"):
        write_whole(pipe, "new", Kind.RESULTS)


def test_links(tmp_path: Path) -> None:
    loop, far, new = (tmp_path / name for name in ("loop", "far", "new"))
    loop.symlink_to(loop)
    assert refused(loop) == "is a circle of links"
    far.symlink_to("none/file")
    assert refused(far) == "cannot write it: it is a link to a folder that is not there"
    new.symlink_to("made")
    write_whole(new, "new", Kind.RESULTS)
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
        check_output(Path(f"/dev/fd/{file.fileno()}"), Kind.RESULTS)
    reader, writer = os.pipe()
    for pipe in (f"/dev/fd/{writer}", f"/proc/self/fd/{writer}"):  # as >(...) of a shell
        check_output(Path(pipe), Kind.RESULTS)
        write_whole(Path(pipe), "new", Kind.RESULTS)
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
            check_output(pipe, Kind.RESULTS)
            break
        time.sleep(0.01)
    time.sleep(0.1)
    write_whole(pipe, "new", Kind.RESULTS)
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
        with pytest.raises((error, UsageError)), output(path, Kind.RESULTS) as file:
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


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_a_picture_of_ours_is_known_as_one(suffix: str, tmp_path: Path) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    path = tmp_path / f"x.{suffix}"
    figure, _ = plt.subplots()
    figure.savefig(path)
    assert refused(path, Kind.PICTURE)
    figure.savefig(path, metadata=picture_metadata(path))
    plt.close(figure)
    check_output(path, Kind.PICTURE)
