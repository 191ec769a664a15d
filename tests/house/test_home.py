# SPDX-License-Identifier: GPL-2.0-only
"""Whatever the home directory is: missing, somebody else's, read-only, not named at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from said import ran

from streamsched.base.errors import UsageError
from streamsched.hosts import rig

PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
NOBODY = 65534


@pytest.fixture
def place(root: Path) -> Iterator[Path]:
    """A folder with a copy of tools/cache.sh that every user can read, whoever runs the tests."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "tools").mkdir(mode=0o755)
        shutil.copy(root / "tools/cache.sh", folder / "tools")
        yield folder


def made(folder: Path, mode: int, owner: int | None) -> Path:
    folder.mkdir()
    if os.geteuid() == 0 and owner is not None:
        os.chown(folder, owner, owner)
    folder.chmod(mode)
    return folder


@pytest.mark.parametrize(
    ("home", "cache", "ours"),
    [
        ((0o700, NOBODY), None, True),
        ((0o700, NOBODY), (0o700, NOBODY), True),
        ((0o555, NOBODY), (0o700, NOBODY), True),  # as an administrator may arrange it
        ((0o555, NOBODY), None, False),
        ((0o700, 0), None, False),  # as sudo leaves it
        ((0o700, NOBODY), (0o755, 0), False),  # sudo pip
        ((0o700, NOBODY), (0o555, NOBODY), False),
        (None, None, False),
    ],
)
def test_what_cannot_be_written_is_not_used(
    place: Path, home: tuple[int, int] | None, cache: tuple[int, int] | None, ours: bool
) -> None:
    """An ordinary user's: root may write everywhere."""
    if os.geteuid() != 0 and 0 in ((home or (0, 1))[1], (cache or (0, 1))[1]):
        pytest.skip("only root can make a folder of somebody else")
    folder = place / "home"
    if home:
        made(folder, 0o700, home[1])
        if cache:
            made(folder / ".cache", *cache)
        folder.chmod(home[0])
    env, user = {"PATH": PATH, "HOME": str(folder)}, NOBODY if os.geteuid() == 0 else None
    done = ran("tools/cache.sh", cwd=place, env=env, check=True, user=user)
    said = f"==> {folder} cannot be written: what is kept between runs goes to build/cache\n"
    where = folder / ".cache" if ours else place / "build/cache"
    assert (done.stdout, done.stderr) == (f"{where}\n", "" if ours else said)
    if home:
        folder.chmod(0o700)  # so that it can be removed


@pytest.mark.parametrize("home", [None, "", "/nonexistent"])
def test_make_gives_it_to_all_that_it_runs(root: Path, tmp_path: Path, home: str | None) -> None:
    show = "show:;@echo $$XDG_CACHE_HOME $$MPLCONFIGDIR"
    environment = {"PATH": PATH} | ({} if home is None else {"HOME": home})

    def printed(**more: str) -> str:
        words = ["make", "--no-print-directory", "--eval", show, "show"]
        return ran(*words, cwd=root, env=environment | more, check=True).stdout

    assert printed() == f"{root}/build/cache {root}/build/cache/matplotlib\n"
    assert printed(XDG_CACHE_HOME=str(tmp_path)) == f"{tmp_path}\n"


@pytest.mark.usefixtures("no_home")
def test_without_make_one_sentence_says_it(root: Path) -> None:
    for script in ("kernel/rig/build.sh", "kernel/qemu/fetch.sh"):
        done = ran(root / script, "--where", env={"PATH": PATH})
        assert (done.returncode, done.stdout) == (1, "")
        assert "there is no home directory to keep" in done.stderr
        assert done.stderr.endswith("name a folder with XDG_CACHE_HOME\n")
        assert done.stderr.count("\n") == 1
    with pytest.raises(UsageError, match="no home directory to keep the rig's kernel in"):
        rig.cache()


def test_a_cache_that_cannot_be_made_is_said(root: Path) -> None:
    environment = {"PATH": PATH, "XDG_CACHE_HOME": "/proc/none"}
    fetch = [root / "kernel/qemu/fetch.sh", "checkpatch"]
    done = ran(*fetch, env=environment)
    if "apt-get is missing" in done.stderr:
        pytest.skip("there is no apt-get")
    said = "/proc/none/streamsched/stock cannot be written: name another folder than /proc/none"
    assert done.stderr == f"fetch.sh: {said} with XDG_CACHE_HOME\n"
