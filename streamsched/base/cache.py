# SPDX-License-Identifier: GPL-2.0-only
"""Where files are kept that nobody named a place for."""

from __future__ import annotations

import os
from pathlib import Path

from streamsched.base.errors import UsageError


def kept_in(folder: str, what: str) -> Path:
    """The folder of this name in the user's cache, for @what; it may not be there yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "streamsched" / folder
    except RuntimeError:
        raise UsageError(
            f"there is no home directory to keep {what} in; name a folder with XDG_CACHE_HOME"
        ) from None
