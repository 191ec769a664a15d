# SPDX-License-Identifier: GPL-2.0-only
"""What pip users get: the source archive, the wheel made of it, and its metadata.

The archive has what git has committed: a change is tested here once it is in a commit. Nothing is
fetched: the build tools and what streamsched needs are this environment's.
"""

from __future__ import annotations

import email
import email.message
import os
import re
import shutil
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from said import BIN, ran

pytestmark = pytest.mark.packages
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--isolated", "-q")
MAKE = "import mesonpy, sys; print(mesonpy.build_sdist(sys.argv[1]))"


def run(*words: str | Path, cwd: Path, path: Path = BIN) -> str:
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    done = ran(*words, cwd=cwd, env=environment)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def sdist(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (root / ".git").exists() or not shutil.which("git"):
        pytest.skip("a source archive is made by git, of a clone")
    folder = tmp_path_factory.mktemp("sdist")
    name = run(sys.executable, "-c", MAKE, folder, cwd=root).splitlines()[-1]
    return folder / name


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "--no-build-isolation", "--no-deps", "--no-index", sdist, cwd=folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with streamsched in it."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=venv.parent)
    python = venv / "bin/python"
    run(*PIP, "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=venv.parent)
    # What streamsched needs is found behind what is installed here.
    there = next(venv.glob("lib/python3*/site-packages"))
    (there / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return venv / "bin"


def test_the_archive_has_all_that_is_needed(sdist: Path, root: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = run("git", "ls-files", cwd=root).splitlines()
    committed = set(run("git", "ls-tree", "-r", "--name-only", "HEAD", cwd=root).splitlines())
    assert committed & set(tracked) <= names
    for name in ("LICENSE", "jobs/par-read.fio", "disks/exos-x18.toml", "docs/INSTALL.md"):
        assert name in names
    assert "traces/pg-scan.blktrace.zst" in names


def metadata(wheel: Path) -> tuple[email.message.Message, list[str]]:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name)), names


def test_the_metadata_is_complete(wheel: Path, root: Path) -> None:
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    found, names = metadata(wheel)
    assert found["License-Expression"] == "GPL-2.0-only"
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    assert found["Requires-Python"] == ">=3.11"
    assert found["Keywords"] == ",".join(project["keywords"])
    classifiers = found.get_all("Classifier", [])
    for minor in range(11, 15):
        assert f"Programming Language :: Python :: 3.{minor}" in classifiers
    assert not [one for one in classifiers if one.startswith("License ::")]  # the expression's
    assert found["Description-Content-Type"] == "text/markdown"
    assert str(found.get_payload()).startswith("<!-- SPDX")
    assert re.fullmatch(r"streamsched-[\d.]+-cp311-abi3-linux_\w+\.whl", wheel.name)


def test_it_runs_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    where = "import streamsched; print(streamsched.__file__)"
    python = installed / "python"
    assert run(python, "-c", where, cwd=tmp_path).startswith(str(installed.parent))
    assert run(installed / "streamsched", "--version", cwd=tmp_path).startswith("streamsched 0.")
    printed = run(python, "-m", "streamsched", "run", "par-read", cwd=tmp_path)
    assert printed.startswith("par-read.fio: 4 processes on exos-x18")
    assert re.search(r"^ stream:deadline +[\d.]+ +\d", printed, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []


def test_the_page_about_policies_works_without_the_source_tree(
    installed: Path, tmp_path: Path, root: Path
) -> None:
    """Its commands one after the other, in an empty folder; the first one copies the examples."""
    text = (root / "docs/sim/POLICY-IN-PYTHON.md").read_text()
    (copy,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    commands = re.findall(r"^\$ (.*)$", text, re.MULTILINE)
    assert len(commands) >= 4
    run("bash", "-ec", "\n".join([copy, *commands]), cwd=tmp_path, path=installed)
    assert (tmp_path / "examples/figures.ipynb").is_file()
