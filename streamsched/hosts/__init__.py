# SPDX-License-Identifier: GPL-2.0-only
"""The hosts that are no simulator: the kernel, in a rig or here, and the network server."""
