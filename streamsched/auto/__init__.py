# SPDX-License-Identifier: GPL-2.0-only
"""Choose a policy by what a workload looks like."""
