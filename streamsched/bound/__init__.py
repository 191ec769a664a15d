# SPDX-License-Identifier: GPL-2.0-only
"""What no scheduler can beat on a disk, whatever it knows beforehand (docs/research/BOUNDS.md)."""
