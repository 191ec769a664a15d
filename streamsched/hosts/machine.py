# SPDX-License-Identifier: GPL-2.0-only
"""A machine: its files and its programs.

Every file is read below one root and every program is started by one function, so that tests can
put a made-up machine in their place. Reading never fails: what cannot be read is empty.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from streamsched.base.units import whole_number

MOST_BYTES = 1 << 20
SECONDS = 20
# A user's PATH may lack the folders of dkms, modinfo and dmsetup.
PROGRAMS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclasses.dataclass(frozen=True)
class Read:
    """A file: what it has, or that only root may read it."""

    data: bytes = b""
    there: bool = False
    denied: bool = False

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace").strip()


@dataclasses.dataclass(frozen=True)
class Done:
    """A program that has ended."""

    code: int
    out: str
    err: str = ""

    @property
    def complaint(self) -> str:
        """The first line of what it says is wrong."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[0] if lines else f"exit status {self.code}"


Run = Callable[[Sequence[str]], Done | None]


def run_program(command: Sequence[str]) -> Done | None:
    """Run @command; None if there is no such program."""
    path = ":".join([os.environ.get("PATH", ""), *PROGRAMS]).lstrip(":")
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, "LC_ALL": "C", "PATH": path},
            timeout=SECONDS,
            check=False,
        )
    except (OSError, ValueError):
        return None
    except subprocess.TimeoutExpired:
        return Done(-1, "", f"no answer in {SECONDS} s")
    out, err = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return Done(done.returncode, out, err)


class Machine:
    """The files below @root, and the programs that @run starts."""

    planned = ""  # a folder that stands in for /etc/udev/rules.d when udev is asked

    def __init__(self, root: Path = Path("/"), run: Run = run_program) -> None:
        self.root = root
        self._run = run
        self._said: dict[tuple[str, ...], Done | None] = {}
        own = os.environ.get("PATH", "").split(":") if root == Path("/") else []
        self._folders = [*(folder for folder in own if folder.startswith("/")), *PROGRAMS]

    def path(self, name: str) -> Path:
        """Where the file is that has the absolute @name on the machine."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> Read:
        """The beginning of a file; a pipe or a device is not waited for."""
        try:
            file = os.open(self.path(name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except PermissionError:
            return Read(there=True, denied=True)
        except (OSError, ValueError):
            return Read()
        data = b""
        try:
            while len(data) < MOST_BYTES and (more := os.read(file, MOST_BYTES - len(data))):
                data += more
        except PermissionError:
            return Read(there=True, denied=True)
        except OSError:
            return Read(there=True)
        finally:
            os.close(file)
        return Read(data, there=True)

    def text(self, name: str) -> str:
        """What a file says; empty if it cannot be read."""
        return self.read(name).text

    def lines(self, name: str) -> list[str]:
        """The lines of a file, from the first one on."""
        return self.read(name).data.decode(errors="replace").split("\n")

    def number(self, name: str) -> int | None:
        """The number that a file has."""
        return whole_number(self.text(name))

    def exists(self, name: str) -> bool:
        return os.path.exists(self.path(name))  # noqa: PTH110 - Path.exists() may raise

    def leads_nowhere(self, name: str) -> bool:
        """Is it a link to what does not exist?"""
        return os.path.islink(self.path(name)) and not self.exists(name)  # noqa: PTH114

    def names(self, folder: str) -> list[str]:
        """What is in a folder, in order."""
        try:
            return sorted(os.listdir(self.path(folder)))  # noqa: PTH208 - names, not paths
        except (OSError, ValueError):
            return []

    def files_below(self, folder: str) -> Iterator[str]:
        """All files below a folder, links to other folders not followed."""
        top = self.path(folder)
        for at, folders, files in os.walk(top):
            folders.sort()
            for file in sorted(files):
                yield f"{folder}/{os.path.relpath(os.path.join(at, file), top)}"  # noqa: PTH118

    def ask(self, command: Sequence[str]) -> Done | None:
        """What a program says; it is started once."""
        key = tuple(command)
        if key not in self._said:
            self._said[key] = self._run(command)
        return self._said[key]

    def do(self, command: Sequence[str]) -> Done | None:
        """Start a program that may change something; None if there is no such program."""
        return self._run(command)

    def properties(self, name: str) -> dict[str, str]:
        """What udev knows of a block device; empty without udev."""
        device = f"/dev/{name.replace('!', '/')}"
        done = self.ask(["udevadm", "info", "--query=property", f"--name={device}"])
        lines = done.out.splitlines() if done and not done.code else []
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def has_program(self, name: str) -> bool:
        return any(self.exists(f"{folder}/{name}") for folder in self._folders)

    @property
    def release(self) -> str:
        """The running kernel's."""
        return self.text("/proc/sys/kernel/osrelease")

    def install(self, package: str, what: str) -> dict[str, str]:
        """How to get @what, which Debian has in @package: `command` or `advice` of a finding."""
        if self.has_program("apt-get"):
            return {"command": f"apt-get install -y {package}"}
        return {"advice": f"Install {what} (on Debian the package {package})."}
