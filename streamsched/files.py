# SPDX-License-Identifier: GPL-2.0-only
"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from streamsched.errors import UsageError


def write_whole(path: Path, text: str) -> None:
    """Write @path by way of a new file beside it, so that it is never half written."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        new = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            umask = os.umask(0)
            os.umask(umask)
            new.chmod(0o666 & ~umask)
            new.replace(path)
        except BaseException:
            new.unlink()
            raise
    except OSError as error:
        raise UsageError(f"{path}: cannot write it: {error.strerror}") from None
