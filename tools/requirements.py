# SPDX-License-Identifier: GPL-2.0-only
"""Print requirements that pyproject.toml states, one per line, for pip -r.

Arguments: "build" (the build system's), "run" (the package's own), or the name
of one of its extras. pyproject.toml thus stays the only place with versions.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def requirements(kind: str) -> list[str]:
    """The requirements of one kind, as pyproject.toml spells them."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    if kind == "build":
        found: list[str] = project["build-system"]["requires"]
    elif kind == "run":
        found = project["project"]["dependencies"]
    else:
        found = project["project"]["optional-dependencies"][kind]
    return found


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(*requirements(argument), sep="\n")
