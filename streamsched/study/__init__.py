# SPDX-License-Identifier: GPL-2.0-only
"""Studies: many simulations on many processors or machines, resumable, with error bars."""
