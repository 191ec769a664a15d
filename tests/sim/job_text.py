# SPDX-License-Identifier: GPL-2.0-only
"""Job files in few lines."""

from __future__ import annotations


def job_text(sections: str) -> str:
    """A job file of which each section is written in a line: [a] rw=read bs=4k."""
    return sections.replace(" ", "\n")
