# SPDX-License-Identifier: GPL-2.0-only
"""The simulator, disks and policies by name, and results."""
