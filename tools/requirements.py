# SPDX-License-Identifier: GPL-2.0-only
"""Print requirements that pyproject.toml states, one per line, for pip -r.

Arguments: "build" (the build system's), "run" (the package's own), or the name
of one of its extras, which may name others as streamsched[OTHER,...].
pyproject.toml thus stays the only place with versions.
"""

from __future__ import annotations

import re
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
        found = []
        for requirement in project["project"]["optional-dependencies"][kind]:
            others = re.fullmatch(r"streamsched\[([\w,]+)\]", requirement)
            named = others[1].split(",") if others else []
            found += [one for name in named for one in requirements(name)] or [requirement]
    return found


if __name__ == "__main__":
    found = [one for argument in sys.argv[1:] for one in requirements(argument)]
    print(*dict.fromkeys(found), sep="\n")
