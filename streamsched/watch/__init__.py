# SPDX-License-Identifier: GPL-2.0-only
"""Look at real disks: advise, measure, top, exporter."""
