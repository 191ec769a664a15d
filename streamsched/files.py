# SPDX-License-Identifier: GPL-2.0-only
"""Files that are written whole or not at all, and such as are read whole."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from streamsched.errors import UsageError

# More than any description or profile has: somebody may name /dev/zero.
MOST_BYTES = 64 * 1024 * 1024


def mode_of(path: str | Path) -> int:
    """The st_mode of what is there; 0 if nothing is, or nothing can be seen there.

    Path.exists() and others raise some errors, as for a name that is too long.
    """
    try:
        return Path(path).stat().st_mode
    except OSError:
        return 0


def is_file(path: str | Path) -> bool:
    """Whether there is a file."""
    return stat.S_ISREG(mode_of(path))


def is_no_file(path: str | Path) -> bool:
    """Whether there is something else than a file, as /dev/null or a pipe."""
    mode = mode_of(path)
    return bool(mode) and not stat.S_ISREG(mode)


def read_whole(path: Path) -> str:
    """The text of @path; UnicodeDecodeError if it is none."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot read it: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"{path}: cannot read it: it has more than {MOST_BYTES} bytes")
    return data.decode()


def write_whole(path: Path, content: str | bytes) -> None:
    """Write @path by way of a new file beside it, so that it is never half written.

    A link is followed. What is no file is written to: in place of /dev/null there must not be one.
    """
    if isinstance(content, str):  # in which the name of a file may be no UTF-8
        content = content.encode(errors="backslashreplace")
    try:
        if is_no_file(path):
            path.write_bytes(content)
            return
        target = Path(os.path.realpath(path))  # resolve() would end at a circle of links
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:32]}.")
        new = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            umask = os.umask(0)
            os.umask(umask)
            new.chmod(0o666 & ~umask)
            new.replace(target)
        except BaseException:
            new.unlink()
            raise
    except OSError as error:
        raise UsageError(f"{path}: cannot write it: {error.strerror}") from None
