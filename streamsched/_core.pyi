# SPDX-License-Identifier: GPL-2.0-only
"""The compiled simulator and core; what it offers is in the C headers."""

from typing import Any

ffi: Any
lib: Any
