# SPDX-License-Identifier: GPL-2.0-only
"""Refuse commit subjects of more than 72 characters.

Only commits that were made upon the one that added this file count. Exit code 77 where
there is no history to look at.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 72


def git(*words: str) -> str:
    """What git prints; empty when it fails."""
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def main() -> int:
    """Look at all subjects since this check is there."""
    if not shutil.which("git"):
        print("git is missing: install the Debian package git")
        return 77
    here = Path(__file__).relative_to(ROOT)
    added = git("log", "--diff-filter=A", "--format=%H", "--", str(here)).split()
    # A shallow clone calls its oldest commit the one that added every file.
    if not added or git("rev-parse", "--is-shallow-repository").strip() != "false":
        print("there is no git history")
        return 77
    upon = ("--no-merges", "--ancestry-path", f"{added[-1]}..HEAD")
    log = git("log", "--format=%h %s", *upon)
    long = [line for line in log.splitlines() if len(line.split(" ", 1)[1]) > COLUMNS]
    for line in long:
        commit, subject = line.split(" ", 1)
        print(f"{commit}: {subject}: {len(subject)} characters; {COLUMNS} at most")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
