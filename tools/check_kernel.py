# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own checkers, over what is, or may be, compiled inside the kernel.

  check_kernel.py sparse-shared   sparse over core/ and disk/, as user space compiles them
  check_kernel.py sparse-modules  the modules' build for the rig's kernel, with sparse and W=1
  check_kernel.py checkpatch      the kernel's checkpatch.pl over core/, disk/ and kernel/
  check_kernel.py --find          print where checkpatch.pl is

Exit code 1 when there are findings, 77 when a tool is missing; what to install is said.
checkpatch.pl is the one of the rig's kernel, or what `kernel/qemu/fetch.sh checkpatch` has
fetched, or CHECKPATCH=FILE.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from streamsched.base.errors import StreamschedError
from streamsched.hosts import rig

ROOT = Path(__file__).resolve().parents[1]
# As in other build systems, 77 is a check that could not be made.
FINDINGS, MISSING = 1, 77
Command = Sequence[str | Path]
Variables = Mapping[str, str] | None
# Of a make around us.
MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "KBUILD_OUTPUT", "O", "M", "ARCH", "LINUX")

# What checkpatch says that does not count: its type, of which files, and why.
NOT_COUNTED = (
    ("LINUX_VERSION_CODE", "kernel/compat.h", "is there to ask for versions"),
    ("CONSTANT_COMPARISON", "kernel/*", "takes KERNEL_VERSION() and ARRAY_SIZE() for variables"),
    ("NEW_TYPEDEFS", "kernel/compat.h", "newer kernels' names on older ones"),
    ("MACRO_WITH_FLOW_CONTROL", "kernel/compat.h", "makes whole functions"),
    ("MACRO_ARG_UNUSED", "kernel/compat.h", "not needed on every kernel"),
    ("SPACING", "kernel/compat.h", "does not know _Generic"),
    ("COMPLEX_MACRO", "kernel/*", "tables of rows, which are no expressions"),
    ("TRAILING_SEMICOLON", "kernel/*", "the same"),
)


class MissingError(Exception):
    """A tool is not there; the message says what to install."""


def sources(*folders: str) -> list[Path]:
    """All C in these folders, relative to the source tree."""
    return [
        path.relative_to(ROOT) for name in folders for path in sorted((ROOT / name).glob("*.[ch]"))
    ]


def need(tool: str, package: str) -> str:
    """Where it is."""
    path = shutil.which(tool)
    if not path:
        raise MissingError(f"{tool} is missing: install the Debian package {package}")
    return path


def run(
    command: Command, folder: Path = ROOT, extra: Variables = None
) -> subprocess.CompletedProcess[str]:
    """Its standard output and error are one; no make around us is its own, nor settings of git."""
    kept = {k: v for k, v in os.environ.items() if k not in MAKE and not k.startswith("GIT_")}
    kept |= dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull)
    return subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=kept | {"LC_ALL": "C"} | dict(extra or {}),
    )


def sparse_shared() -> list[str]:
    """core/ and disk/ against compat/'s headers, which is all they include outside the kernel."""
    files = [path for path in sources("core", "disk") if path.suffix == ".c"]
    done = run(
        [
            need("sparse", "sparse"),
            "-std=gnu11",
            "-Wsparse-error",
            "-Icompat",
            "-Icore",
            "-Idisk",
            *files,
        ]
    )
    return done.stdout.splitlines() or ([f"exit code {done.returncode}"] if done.returncode else [])


def sparse_modules() -> list[str]:
    """Warnings of the compiler and of sparse about our files; all of them must be looked at."""
    need("sparse", "sparse")
    with tempfile.TemporaryDirectory(prefix="streamsched-sparse-") as name:
        try:
            kernel = rig.stage_modules("base", Path(name))
        except rig.NotBuiltError as error:
            raise MissingError(str(error)) from None
        jobs = f"-j{os.cpu_count() or 1}"
        made = ["C=2", "W=1", rig.EVERY_MODULE, jobs, "modules"]
        done = run(["make", "-C", kernel, f"M={name}", *made])
        said = done.stdout.replace(f"{name}/", "")
    if done.returncode:
        return said.splitlines()[-20:]
    lines = said.splitlines()
    checked = {line.split()[1] for line in lines if line.startswith("  CHECK ")}
    built = {line.split()[2] for line in lines if line.startswith("  CC [M] ")}
    ours = {re.sub(r"\.o$", ".c", path) for path in built if re.match(r"(core|disk|kernel)/", path)}
    return [
        *(f"{path}: sparse was not run" for path in sorted(ours - checked)),
        *([] if ours else ["make compiled none of our files"]),
        *(line for line in lines if re.search(r"\b(warning|error):", line)),
    ]


def find_checkpatch() -> Path:
    """The first that there is, of the places that the module's docstring names."""
    named = os.environ.get("CHECKPATCH")
    if named and not Path(named).is_file():
        raise MissingError(f"CHECKPATCH={named}: there is no such file")
    places = [Path(named)] if named else []
    with contextlib.suppress(rig.NotBuiltError):
        places.append(rig.kernel_folder("base") / "source" / "scripts" / "checkpatch.pl")
    places.append(rig.cache().parent / "stock" / "checkpatch" / "checkpatch.pl")
    for place in places:
        if os.path.isfile(place):  # noqa: PTH113 - false where nobody may look, no error
            return place
    raise MissingError(
        "checkpatch.pl is missing: it is in the Debian package linux-source-6.1, out of which "
        "kernel/qemu/fetch.sh checkpatch gets it; or name one with CHECKPATCH=FILE"
    )


def counts(kind: str, path: str) -> bool:
    """Whether a finding of this type in this file is one."""
    return not any(
        kind == ignored and fnmatch.fnmatch(path, pattern) for ignored, pattern, _ in NOT_COUNTED
    )


def checkpatch() -> list[str]:
    """Its findings that count; several processes, for it takes its time."""
    options = ["--no-tree", "--file", "--terse", "--show-types", "--no-summary"]
    script, files = find_checkpatch(), sources("core", "disk", "kernel")
    jobs = os.cpu_count() or 1
    with ThreadPoolExecutor(jobs) as pool:
        parts = [files[i::jobs] for i in range(jobs)]
        said = list(pool.map(lambda part: run(["perl", script, *options, *part]).stdout, parts))
    findings = []
    for line in sorted("".join(said).splitlines()):
        found = re.match(r"(\S+?):\d+: (?:WARNING|ERROR|CHECK):(\w+): ", line)
        # Whatever else it says is about itself, and counts.
        if not found or counts(found[2], found[1]):
            findings.append(line)
    return findings


CHECKS = {
    "sparse-shared": sparse_shared,
    "sparse-modules": sparse_modules,
    "checkpatch": checkpatch,
}


def main(arguments: list[str]) -> int:
    """What the module's docstring says."""
    try:
        if arguments == ["--find"]:
            print(find_checkpatch())
            return 0
        if len(arguments) != 1 or arguments[0] not in CHECKS:
            print(f"usage: check_kernel.py --find|{'|'.join(CHECKS)}", file=sys.stderr)
            return FINDINGS
        findings = CHECKS[arguments[0]]()
    except MissingError as error:
        print(error)
        return MISSING
    except StreamschedError as error:
        print(error)
        return FINDINGS
    for finding in findings:
        print(finding)
    return FINDINGS if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
