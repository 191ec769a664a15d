# SPDX-License-Identifier: GPL-2.0-only
"""Files that are written whole or not at all, and such as are read whole.

An output takes the place of no file that is there, unless that is empty or was asked for. It is
written to a new file beside it, which then has its place, with its mode and owner.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import select
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from streamsched.base.errors import UsageError

# More than any description or profile has: somebody may name /dev/zero.
MOST_BYTES = 64 * 1024 * 1024
MOST_LINKS = 40  # of the kernel's
WRITER_MS = 2000  # in which who writes to a pipe has begun
STDOUT = Path("-")
TAKEN = "is there; name another file, or add --force to replace it"
# Character devices that take anything: null, zero, full. Of these only null has an end.
NULL = os.makedev(1, 3)
SINKS = {NULL, os.makedev(1, 5), os.makedev(1, 7)}


@dataclass(frozen=True)
class Target:
    """Where something is written, and whether it may take the place of a file that is there."""

    path: Path
    replace: bool = False


def target(path: Path | None, replace: bool) -> Target | None:
    """What an option names, if it does."""
    return None if path is None else Target(path, replace)


def mode_of(path: str | Path) -> int:
    """The st_mode of what is there; 0 if nothing is, or nothing can be seen there.

    Path.exists() and others raise some errors, as for a name that is too long.
    """
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):  # a NUL, as TOML may have it
        return 0


def is_file(path: str | Path) -> bool:
    """Whether there is a file."""
    return stat.S_ISREG(mode_of(path))


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder."""
    return stat.S_ISDIR(mode_of(path))


def is_link(path: str | Path) -> bool:
    """Whether there is a symbolic link, wherever it leads."""
    try:
        return stat.S_ISLNK(Path(path).lstat().st_mode)
    except (OSError, ValueError):
        return False


def open_input(path: str | Path) -> BinaryIO:
    """@path, to be read from; OSError, or UsageError where reading would never end.

    That is a device such as a terminal or /dev/kmsg, and a pipe that nobody writes to.
    """
    try:
        # First by its name: not everybody may open each device.
        _check_end(path, Path(path).stat())
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError:
        raise UsageError(f"{path}: no file has such a name") from None
    try:
        seen = os.fstat(handle)
        _check_end(path, seen)
        if stat.S_ISFIFO(seen.st_mode):
            _check_writer(path, handle)
        os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _check_end(path: str | Path, seen: os.stat_result) -> None:
    """Refuse a device from which reading would never end."""
    if stat.S_ISCHR(seen.st_mode) and seen.st_rdev != NULL:
        raise UsageError(f"{path}: is a device, which has no end; name a file")


def _check_writer(path: str | Path, handle: int) -> None:
    """Refuse a pipe to which nothing comes, as nobody writes to it."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    if poll.poll(WRITER_MS):
        return
    with contextlib.suppress(BlockingIOError):  # somebody has it open, and will write
        os.read(handle, 1)
        raise UsageError(f"{path}: is a pipe that nobody writes to; name a file")


def read_whole(path: Path) -> str:
    """The text of @path; UnicodeDecodeError if it is none."""
    try:
        with open_input(path) as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot read it: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"{path}: cannot read it: it has more than {MOST_BYTES} bytes")
    return data.decode()


# ---- where an output goes ----


@dataclass(frozen=True)
class _Place:
    """A name in a folder that is held open, and what is there; @old is never that of a link."""

    folder: int
    name: str
    old: os.stat_result | None

    def open(self, flags: int, mode: int = 0o666) -> int:
        return os.open(self.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self.folder)


def _shared(folder: int) -> bool:
    """Whether others may make files in a folder, but not remove those of each other."""
    mode = os.fstat(folder).st_mode
    return bool(mode & stat.S_ISVTX and mode & (stat.S_IWGRP | stat.S_IWOTH))


def _somebody_elses(folder: int, owner: int) -> bool:
    """fs.protected_symlinks and its like, which the kernel need not have set."""
    return _shared(folder) and owner not in (os.geteuid(), os.fstat(folder).st_uid)


def _open_folder(path: Path | str, inside: int | None = None) -> int:
    return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inside)


@contextlib.contextmanager
def _place(path: Path) -> Iterator[_Place]:
    """Where @path leads. Each link is followed here, in a folder that nobody can exchange."""
    folder, name = _open_folder(path.parent), path.name or "."
    try:
        for _ in range(MOST_LINKS):
            try:
                found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            except FileNotFoundError:
                yield _Place(folder, name, None)
                return
            try:
                old = os.fstat(found)
                leads = os.readlink("", dir_fd=found) if stat.S_ISLNK(old.st_mode) else None
            finally:
                os.close(found)
            if leads is None:
                if _somebody_elses(folder, old.st_uid):
                    raise UsageError("belongs to somebody else, in a folder that all may write to")
                yield _Place(folder, name, old)
                return
            if _somebody_elses(folder, old.st_uid):
                raise UsageError("is somebody else's link, in a folder that all may write to")
            before, next_ = folder, Path(leads)
            folder, name = _open_folder(next_.parent, before), next_.name or "."
            os.close(before)
        raise UsageError("is a circle of links")
    finally:
        os.close(folder)


def _stream_of(path: Path) -> TextIO | None:
    """Standard output or standard error, if @path is one of them, by whatever name."""
    if path == STDOUT:
        return sys.stdout
    try:
        there = path.stat()
    except OSError:
        return None
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError, ValueError):
            if os.path.samestat(os.fstat(stream.fileno()), there):
                return stream
    return None


def is_stdout(path: Path | None) -> bool:
    """Whether what is written to @path goes where print() writes."""
    return path is not None and _stream_of(path) is sys.stdout


def _check_sink(mode: int, device: int, terminal: bool) -> None:
    """Refuse what is neither a file nor a mere end of a pipe."""
    if stat.S_ISDIR(mode):
        raise UsageError("cannot write it: Is a directory")
    if stat.S_ISBLK(mode):
        raise UsageError("is a disk, which would be overwritten; name a file")
    if stat.S_ISCHR(mode) and device not in SINKS and not terminal:
        raise UsageError("is a device, which would be written to; name a file")
    if stat.S_ISSOCK(mode):
        raise UsageError("is a socket; name a file")


def _check_writable(place: _Place) -> None:
    if not os.access(place.name, os.W_OK, dir_fd=place.folder, effective_ids=True):
        raise UsageError("cannot write it: Permission denied")


def _check_old(place: _Place, replace: bool) -> None:
    """Refuse to replace a file that has something in it, unless that was asked for."""
    assert place.old
    _check_writable(place)
    if place.old.st_size and not replace:
        raise UsageError(TAKEN)


@contextlib.contextmanager
def _beside(place: _Place) -> Iterator[tuple[str, BinaryIO]]:
    """A new file, with the mode and owner of the old one; it is gone at the end."""
    name = f".{place.name[:32]}.{secrets.token_hex(8)}"
    fresh = _Place(place.folder, name, None)
    handle = fresh.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if place.old else 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            if place.old:
                _take_over(place, handle)
            yield name, file
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=place.folder)


def _take_over(place: _Place, new: int) -> None:
    old = place.old
    assert old
    made = os.fstat(new)
    if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(new, old.st_uid, old.st_gid)
        except PermissionError:
            raise UsageError(
                "belongs to somebody else, and would be yours; remove it or name another file"
            ) from None
    os.fchmod(new, stat.S_IMODE(old.st_mode) & 0o777)


def _write_sink(path: Path, place: _Place | None, content: bytes) -> None:
    """What is no file is written to: in place of /dev/null there must not be one."""
    flags = os.O_WRONLY | os.O_NOCTTY
    if place and place.old and stat.S_ISFIFO(place.old.st_mode):
        handle = _open_pipe(place)
    else:
        handle = place.open(flags) if place else os.open(path, flags | os.O_CLOEXEC)
    with os.fdopen(handle, "wb") as file:
        seen = os.fstat(handle)
        _check_sink(seen.st_mode, seen.st_rdev, os.isatty(handle))
        file.write(content)


# Pipes to be written to in the end: opened at once, for to close one tells its reader to end.
_pipes: dict[tuple[int, int], int] = {}


def _open_pipe(place: _Place) -> int:
    """To be written to; nobody waits here until somebody comes to read it."""
    assert place.old
    handle = _pipes.pop((place.old.st_dev, place.old.st_ino), None)
    if handle is not None:
        return handle
    try:
        handle = place.open(os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise UsageError("is a pipe that nobody reads; begin to read it first") from None
    os.set_blocking(handle, True)
    return handle


def _is_open_file(path: Path) -> bool:
    """Whether @path is one of /proc's names of open files, which lead where no name does."""
    try:
        folder = Path(os.path.realpath(path.parent)) / path.name
        leads = folder.readlink()
    except OSError:
        return False
    names = (str(folder), str(leads))
    return any(re.match(r"/proc/[^/]+/(task/[^/]+/)?fd/\d+\Z", name) for name in names)


@contextlib.contextmanager
def _said(path: Path, option: str = "") -> Iterator[None]:
    """Errors with the name of the output."""
    name = f"{option} {path}".strip()
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink() and path.parent.is_dir():
            why = "it is a link to a folder that is not there"
        else:
            why = f"there is no directory {path.parent}"
        raise UsageError(f"{name}: cannot write it: {why}") from None
    except OSError as error:
        raise UsageError(f"{name}: cannot write it: {error.strerror}") from None


def check_output(to: Target | None, *read: str | Path | None, option: str = "--to") -> None:
    """Refuse an output that could not be written in the end, before the work begins.

    Nor must it be one of those that are @read: they would be lost.
    """
    if to is None or to.path == STDOUT:
        return
    path = to.path
    with _said(path, option):
        for one in read:
            if one and mode_of(path) and mode_of(one) and path.samefile(one):
                raise UsageError("is read, and would be lost; name another file")
        if _stream_of(path):
            return
        if _is_open_file(path):
            there = path.stat()
            if stat.S_ISREG(there.st_mode):
                raise UsageError("is a file that is open; name it by its own name")
            _check_sink(there.st_mode, there.st_rdev, terminal=True)
            return
        with _place(path) as place:
            if place.old and not stat.S_ISREG(place.old.st_mode):
                _check_device(place)
                return
            if place.old:
                _check_old(place, to.replace)
            with _beside(place):
                pass


def _check_device(place: _Place) -> None:
    old = place.old
    assert old
    _check_sink(old.st_mode, old.st_rdev, terminal=True)
    _check_writable(place)
    if stat.S_ISFIFO(old.st_mode):
        _pipes[old.st_dev, old.st_ino] = _open_pipe(place)
    if stat.S_ISCHR(old.st_mode) and old.st_rdev not in SINKS:
        handle = place.open(os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            _check_sink(old.st_mode, old.st_rdev, os.isatty(handle))
        finally:
            os.close(handle)


@contextlib.contextmanager
def output(to: Target) -> Iterator[BinaryIO]:
    """A file to write to that is there when all is written, or never."""
    with _said(to.path), _place(to.path) as place:
        if place.old:
            _check_old(place, to.replace)
        with _beside(place) as (name, file):
            yield file
            file.flush()
            os.fsync(file.fileno())
            _put_in_place(place, name, replace=to.replace)


def _put_in_place(place: _Place, name: str, replace: bool) -> None:
    """The new file @name has the place from now on; what has come there meanwhile stays."""
    folder = place.folder
    if not place.old and not replace:
        try:
            os.link(name, place.name, src_dir_fd=folder, dst_dir_fd=folder)
            return
        except FileExistsError:
            raise UsageError(TAKEN) from None
        except OSError:  # of a file system without links
            pass
    os.rename(name, place.name, src_dir_fd=folder, dst_dir_fd=folder)


def write_whole(to: Target, content: str | bytes) -> None:
    """Write it, so that it is never half written; what is no file is written to."""
    path = to.path
    # In which the name of a file may be no UTF-8.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    stream = _stream_of(path)
    if stream:
        stream.flush()
        if isinstance(content, str):
            stream.write(content)
        else:
            stream.buffer.write(content)
        stream.flush()
        return
    with _said(path):
        if _is_open_file(path):
            _write_sink(path, None, data)
            return
        with _place(path) as place:
            if place.old and not stat.S_ISREG(place.old.st_mode):
                _write_sink(path, place, data)
                return
    with output(to) as file:
        file.write(data)
