# SPDX-License-Identifier: GPL-2.0-only
"""The programs that write tables of docs/results/ on real kernels; bench/table.py calls them."""
