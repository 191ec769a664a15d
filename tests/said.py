# SPDX-License-Identifier: GPL-2.0-only
"""What programs say, and what is said when something is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamsched.base.errors import UsageError

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
COMMAND = BIN / "streamsched"


def ran(*command: object, check: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
    """A program that was run, whatever became of it: what it said is text."""
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, check=check, **options)


def transcript(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The same with both ways out in one, and nothing to read."""
    words = [str(word) for word in command]
    both: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, text=True, check=False, **both, **options
    )


def refusal(call: Callable[..., object], *arguments: Any, **options: Any) -> str:
    """The one sentence with which a call is refused."""
    with pytest.raises(UsageError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)
