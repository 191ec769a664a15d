# SPDX-License-Identifier: GPL-2.0-only
"""What programs say, and what is said when something is refused."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from streamsched.base.errors import UsageError


def ran(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """A program that was run, whatever became of it: what it said is text."""
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)


def refusal(call: Callable[..., object], *arguments: Any, **options: Any) -> str:
    """The one sentence with which a call is refused."""
    with pytest.raises(UsageError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)
