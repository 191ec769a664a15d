# SPDX-License-Identifier: GPL-2.0-only
"""What every room uses: errors, files, units, progress."""
