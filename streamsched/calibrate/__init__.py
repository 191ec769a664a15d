# SPDX-License-Identifier: GPL-2.0-only
"""Describe a real disk, and see how good a description is."""
