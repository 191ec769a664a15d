# SPDX-License-Identifier: GPL-2.0-only
"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from streamsched.errors import UsageError


def is_no_file(path: Path) -> bool:
    """Whether there is something else than a file, as /dev/null or a pipe."""
    return path.exists() and not path.is_file()


def write_whole(path: Path, text: str) -> None:
    """Write @path by way of a new file beside it, so that it is never half written.

    A link is followed. What is no file is written to: in place of /dev/null there must not be one.
    """
    try:
        if is_no_file(path):
            path.write_text(text, encoding="utf-8")
            return
        target = Path(os.path.realpath(path))  # resolve() would end at a circle of links
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        new = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            umask = os.umask(0)
            os.umask(umask)
            new.chmod(0o666 & ~umask)
            new.replace(target)
        except BaseException:
            new.unlink()
            raise
    except OSError as error:
        raise UsageError(f"{path}: cannot write it: {error.strerror}") from None
