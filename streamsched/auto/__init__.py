# SPDX-License-Identifier: GPL-2.0-only
"""The scheduler of a real disk, chosen by what `measure` finds."""
