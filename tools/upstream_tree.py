# SPDX-License-Identifier: GPL-2.0-only
"""A kernel source of our own to make patches against, in the cache, as a small git repository.

It is the source package that the rig's newest kernel is built from, but unchanged, or a copy of
the tree that LINUX=DIR names, which itself is only read. Only what the series touches is in git:
adding the whole of a kernel would take minutes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.hosts import rig

ROOT = Path(__file__).resolve().parents[1]
TRACKED = ("block", "Documentation/block", "MAINTAINERS")
# What the series needs and older kernels do not have.
NEEDED = (
    ("block/elevator.h", "void (*depth_updated)(struct request_queue *)"),
    ("block/blk-mq-sched.h", "blk_mq_set_min_shallow_depth(struct request_queue *"),
    ("include/linux/slab.h", "#define kvmalloc_obj("),
)


@dataclass(frozen=True)
class Tree:
    """A pristine kernel source with a git repository in it; builds are beside it."""

    version: str
    folder: Path

    @property
    def source(self) -> Path:
        """The source itself."""
        return self.folder / "source"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Others that want to build in it wait."""
        with (self.folder / "lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def clean_environment() -> dict[str, str]:
    """Without what a make around us, or the settings of a person's git, would change."""
    ours = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "KBUILD_OUTPUT", "O", "M", "ARCH", "LINUX")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ours and not name.startswith("GIT_")
    }
    nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return kept | nothing | {"LC_ALL": "C"}


def call(
    command: Sequence[str | Path], folder: Path, extra: Mapping[str, str] | None = None
) -> str:
    """Its standard output; an error with its last line if it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean_environment() | dict(extra or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        words = " ".join(str(word) for word in command[:3])
        raise StreamschedError(f"{words} failed with {done.returncode}: {said[-1]}")
    return done.stdout


def version_of(source: Path) -> str:
    """As in its Makefile."""
    text = (source / "Makefile").read_text()
    parts = {
        name: match[1] if (match := re.search(rf"^{name} = *(\S*)$", text, re.MULTILINE)) else ""
        for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL", "EXTRAVERSION")
    }
    return "{VERSION}.{PATCHLEVEL}.{SUBLEVEL}{EXTRAVERSION}".format_map(parts)


def _check_given(source: Path) -> None:
    if not (source / "block" / "elevator.h").is_file() or not (source / "Makefile").is_file():
        raise UsageError(
            f"LINUX={source} is no kernel source: there is no block/elevator.h in it; "
            "name the folder of one, or leave LINUX out"
        )
    for name, text in NEEDED:
        file = source / name
        if not file.is_file() or text not in file.read_text():
            raise UsageError(
                f"LINUX={source} is Linux {version_of(source)}, whose {name} has no {text!r}: "
                "the series needs a newer one"
            )


def _given_key(source: Path) -> str:
    """By name, size and time, as the rig tells whether a given source has changed."""
    rows = []
    for path, folders, names in os.walk(source):
        folders[:] = sorted(set(folders) - {".git"})
        for name in sorted(names):
            status = os.lstat(Path(path, name))
            rows.append(f"{path}/{name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]


def _begin_git(source: Path) -> None:
    person = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (
            ("NAME", "base"),
            ("EMAIL", "base@localhost"),
            ("DATE", "2020-01-01T00:00:00Z"),
        )
    }
    call(["git", "init", "-q", "-b", "base"], source)
    call(["git", "add", "-f", "--", *TRACKED], source)
    call(["git", "commit", "-q", "-m", "base"], source, person)


def _unpack(package: Path, source: Path) -> None:
    script = (
        'set -eu -o pipefail; dpkg-deb --fsys-tarfile "$0" | '
        "tar -xO --wildcards './usr/src/linux-source-*.tar.xz' | "
        'tar -xJ --strip-components=1 -C "$1"'
    )
    call(["bash", "-c", script, package, source], ROOT)


def _cache() -> Path:
    return rig.cache().parent / "upstream"


def _package(fetch: bool) -> Path | None:
    """The newest kernel source that the rig has fetched; with @fetch it fetches one."""
    found = sorted((rig.cache() / "source" / "newest").glob("linux-source-*.deb"))
    if not found and not fetch:
        return None
    command = [str(ROOT / "kernel" / "rig" / "build.sh"), "--package", "newest"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise StreamschedError(
            "there is no kernel source (the reason is above); name one with LINUX=DIR"
        )
    return Path(done.stdout.strip())


def find(given: str, fetch: bool = True) -> Tree | None:
    """The tree, made if it is not there; without @fetch None if it is not there."""
    if given:
        _check_given(Path(given))
        name = f"{version_of(Path(given))}-given-{_given_key(Path(given))}"
    else:
        package = _package(fetch)
        if not package:
            return None
        name = package.name.split("_")[1]
    folder = _cache() / name
    source, new = folder / "source", folder / "source.new"
    if not source.is_dir():
        if not fetch:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(new, ignore_errors=True)
        print(f"==> preparing a kernel source in {folder} (2 GB)", flush=True)
        if given:
            shutil.copytree(given, new, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            call(["make", "-s", "mrproper"], new)
        else:
            assert package
            new.mkdir()
            _unpack(package, new)
        _begin_git(new)
        new.rename(source)
    return Tree(version_of(source), folder)
