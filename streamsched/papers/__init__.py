# SPDX-License-Identifier: GPL-2.0-only
"""What papers and others reported, measured again."""
