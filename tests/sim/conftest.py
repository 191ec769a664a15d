# SPDX-License-Identifier: GPL-2.0-only
"""What tests of the simulator share."""

from __future__ import annotations

import pytest
from disk_driver import SMALL, Drive


@pytest.fixture
def drive() -> Drive:
    """A small disk at rest."""
    return Drive(SMALL)
