#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Which of pyproject.toml's dependencies this Debian suite has in a version that will do.

Prints a line for debian/substvars with the packages that the suite has; for the rest, writes
the pinned packages of vendored.txt into the folder that is named:

    depends.py FOLDER
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Debian's names where they are not python3-NAME: of cffi only the part that runs is needed.
DEBIAN = {"cffi": "python3-cffi-backend"}
VENDORED = HERE / "vendored.txt"


def candidate(package: str) -> str:
    """The upstream version that apt would install; "" where there is none."""
    said = subprocess.run(
        ["apt-cache", "policy", package], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"^  Candidate: (?:\d+:)?(\d\S*?)(?:-[^-\n]*)?$", said, re.MULTILINE)
    return found[1] if found else ""


def will_do(version: str, bounds: str) -> bool:
    """Whether it is within bounds as in ">=0.12,<1"."""
    words = {">=": "ge", "<": "lt"}
    for bound in bounds.split(","):
        found = re.fullmatch(r"(>=|<)([\d.]+)", bound)
        if not found:
            sys.exit(f"depends.py: pyproject.toml: the bound {bound!r} is neither >= nor <")
        if subprocess.call(["dpkg", "--compare-versions", version, words[found[1]], found[2]]):
            return False
    return True


def vendor(names: list[str], folder: str) -> None:
    """Install what is pinned, if it has all that is asked for."""
    pinned = re.findall(r"^([\w-]+)==", VENDORED.read_text(), re.MULTILINE)
    for name in names:
        if name not in pinned:
            sys.exit(f"depends.py: this suite's package of {name} is too old or missing")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps"]
    command += ["--require-hashes", "--only-binary=:all:", "--disable-pip-version-check"]
    command += ["--root-user-action=ignore", f"--target={folder}", f"--requirement={VENDORED}"]
    if subprocess.call(command, stdout=sys.stderr):
        sys.exit(
            "depends.py: pip could not install packaging/vendored.txt, which this suite needs for "
            f"{' and '.join(names)}: install the Debian package python3-pip, and look at "
            "the network or the package index"
        )


def main() -> None:
    """Print the line; fill the folder."""
    if len(sys.argv) != 2:
        sys.exit("usage: depends.py FOLDER")
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    depends, missing = [], []
    for requirement in project["dependencies"]:
        name = re.split(r"[<>=]", requirement)[0]
        bounds = requirement.removeprefix(name)
        package = DEBIAN.get(name, f"python3-{name}")
        version = candidate(package)
        if version and will_do(version, bounds):
            least = re.search(r">=([\d.]+)", bounds)
            depends.append(f"{package} (>= {least[1]})" if least else package)
        else:
            missing.append(name)
    if missing:
        vendor(missing, sys.argv[1])
    print(f"streamsched:Depends={', '.join(depends)}")


if __name__ == "__main__":
    main()
