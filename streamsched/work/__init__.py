# SPDX-License-Identifier: GPL-2.0-only
"""What is asked of a disk: job files of fio, traces, what a workload looks like."""
