# SPDX-License-Identifier: GPL-2.0-only
"""What tests of the core share."""

from __future__ import annotations

import pytest
from array_driver import ArrayDriver


@pytest.fixture
def pair() -> ArrayDriver:
    """An array of two members, attached to their coordinator."""
    return ArrayDriver()
