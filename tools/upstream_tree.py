# SPDX-License-Identifier: GPL-2.0-only
"""A kernel source of our own to make patches against, in the cache, as a small git repository.

It is the source package that the rig's newest kernel is built from, but unchanged, or a copy of
the tree that LINUX=DIR names, which itself is only read. Only what the series touches is in git:
adding the whole of a kernel would take minutes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
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
# Of a make around us.
MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "KBUILD_OUTPUT", "O", "M", "ARCH", "LINUX")


@dataclass(frozen=True)
class Tree:
    """A pristine kernel source with a git repository in it; builds are beside it."""

    version: str
    folder: Path

    @property
    def source(self) -> Path:
        """The source itself."""
        return self.folder / "source"


def clean_environment() -> dict[str, str]:
    """Without what a make around us, or the settings of a person's git, would change."""
    kept = {k: v for k, v in os.environ.items() if k not in MAKE and not k.startswith("GIT_")}
    nothing = dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull)
    return kept | nothing | {"LC_ALL": "C"}


def said(command: Sequence[str | Path], folder: Path, **extra: str) -> tuple[int, str]:
    """Its exit code and all that it prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean_environment() | extra,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def call(command: Sequence[str | Path], folder: Path, **extra: str) -> str:
    """What it prints; an error with its last line if it fails."""
    code, text = said(command, folder, **extra)
    if code:
        words = " ".join(str(word) for word in command[:3])
        last = (text.strip().splitlines() or ["nothing"])[-1]
        raise StreamschedError(f"{words} failed with {code}: {last}")
    return text


def version_of(source: Path) -> str:
    """As in its Makefile."""
    row = r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) = *(\S*)$"
    parts = dict(re.findall(row, (source / "Makefile").read_text(), re.MULTILINE))
    return "{VERSION}.{PATCHLEVEL}.{SUBLEVEL}{EXTRAVERSION}".format_map(parts)


def _given_name(source: Path) -> str:
    """Of a copy of it, by its files' names, sizes and times, as the rig tells a given source."""
    if not (source / "block" / "elevator.h").is_file() or not (source / "Makefile").is_file():
        raise UsageError(
            f"LINUX={source} is no kernel source: there is no block/elevator.h in it; "
            "name the folder of one, or leave LINUX out"
        )
    version = version_of(source)
    for name, text in NEEDED:
        if not (source / name).is_file() or text not in (source / name).read_text():
            raise UsageError(
                f"LINUX={source} is Linux {version}, whose {name} has no {text!r}: "
                "the series needs a newer one"
            )
    listing: list[str | Path] = [
        "find",
        source,
        "-name",
        ".git",
        "-prune",
        "-o",
        "-printf",
        "%p %s %T@\\n",
    ]
    rows = "\n".join(sorted(call(listing, source).splitlines()))
    return f"{version}-given-{hashlib.sha256(rows.encode()).hexdigest()[:12]}"


def _package(fetch: bool) -> Path | None:
    """The newest kernel source that the rig has fetched; with @fetch it fetches one."""
    if not fetch and not list((rig.cache() / "source" / "newest").glob("linux-source-*.deb")):
        return None
    command = [str(ROOT / "kernel" / "rig" / "build.sh"), "--package", "newest"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise StreamschedError(
            "there is no kernel source (the reason is above); name one with LINUX=DIR"
        )
    return Path(done.stdout.strip())


def _prepare(origin: Path, new: Path) -> None:
    """A git repository of the source at @origin, a package or a tree."""
    shutil.rmtree(new, ignore_errors=True)
    if origin.is_dir():
        shutil.copytree(origin, new, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        call(["make", "-s", "mrproper"], new)
    else:
        new.mkdir(parents=True)
        script = (
            'set -eu -o pipefail; dpkg-deb --fsys-tarfile "$0" | '
            "tar -xO --wildcards './usr/src/linux-source-*.tar.xz' | tar -xJ --strip-components=1"
        )
        call(["bash", "-c", script, origin], new)
    person = ["-c", "user.name=base", "-c", "user.email=base@localhost"]
    call(["git", "init", "-q", "-b", "base"], new)
    call(["git", "add", "-f", "--", *TRACKED], new)
    call(["git", *person, "commit", "-q", "-m", "base"], new)


def find(given: str, fetch: bool = True) -> Tree | None:
    """The tree, made if it is not there; without @fetch None if it is not there."""
    origin = Path(given).resolve() if given else _package(fetch)
    if not origin:
        return None
    folder = rig.cache().parent / "upstream"
    folder /= _given_name(origin) if given else origin.name.split("_")[1]
    source, new = folder / "source", folder / "source.new"
    if not source.is_dir():
        if not fetch:
            return None
        print(f"==> preparing a kernel source in {folder} (2 GB)", flush=True)
        _prepare(origin, new)
        new.rename(source)
    return Tree(version_of(source), folder)
