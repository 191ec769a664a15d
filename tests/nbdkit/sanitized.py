# SPDX-License-Identifier: GPL-2.0-only
"""The plugin with a sanitizer compiled in, and how nbdkit is started with it."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from pathlib import Path

import pytest
from said import ran

# The library, what meson calls it, and its settings.
SANITIZERS = {
    "address": (
        "libasan.so",
        "address,undefined",
        # What is freed is kept for a while, by each of the many threads; small, so that it is
        # full long before memory is looked at.
        "ASAN_OPTIONS=abort_on_error=0:exitcode=99:detect_leaks=1:quarantine_size_mb=16"
        ":thread_local_quarantine_size_kb=16",
    ),
    "thread": ("libtsan.so", "thread", "TSAN_OPTIONS=exitcode=99:history_size=4"),
}
# A preloaded sanitizer starts with the first malloc(). Here that is newlocale()'s, in the
# constructor of gnutls' libp11-kit, under the lock of the locales. The sanitizer's start asks for
# an error text, which takes the same lock and releases it, so the lock is released twice. After
# the next strerror() exit() waits for it for ever. So malloc() is called before all constructors.
EARLY = """
#include <stdlib.h>

static void __attribute__((constructor)) start_the_sanitizer(void)
{
	free(malloc(1));
}
"""
# What a sanitizer writes when it has found something; the second is the one for undefined
# behaviour.
FOUND = ("Sanitizer", "runtime error:")
STATUS = 99  # of what ends with something found
_LEAKS = re.compile(r"^==\d+==ERROR: LeakSanitizer.*?^SUMMARY: .*?$", re.MULTILINE | re.DOTALL)
_LEAK = re.compile(r"^(?:Direct|Indirect) leak .*?(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
_ALLOCATED_BY = re.compile(r"^ *#1 .*", re.MULTILINE)


def found(said: str) -> bool:
    """Did a sanitizer find something in the plugin?

    What nbdkit itself has allocated does not count. It frees a connection in the last moments of
    its thread, and does not wait for that at the end.
    """

    def of_nbdkit(report: re.Match[str]) -> str:
        callers = [
            caller
            for leak in _LEAK.findall(report[0])
            for caller in _ALLOCATED_BY.findall(leak) or ["unknown"]
        ]
        is_ours = not callers or any("/nbdkit+0x" not in caller for caller in callers)
        return report[0] if is_ours else ""

    left = _LEAKS.sub(of_nbdkit, said)
    return any(word in left for word in FOUND)


def _call(root: Path, *command: str | Path, stdin: str | None = None) -> None:
    env = {**os.environ, "PATH": f"{root / '.venv/bin'}:{os.environ['PATH']}"}
    done = ran(*command, cwd=root, env=env, input=stdin)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def sanitized_plugin(root: Path, sanitizer: str) -> str:
    """The plugin with a sanitizer in it, built once and again when sources change."""
    kinds = SANITIZERS[sanitizer][1]
    folder = root / "build" / f"nbdkit-{kinds.replace(',', '-')}"
    folder.parent.mkdir(exist_ok=True)
    plugin = "nbdkit/nbdkit-streamsched-plugin.so"
    # Tests run side by side; one builds.
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "build.ninja").exists():
            options = [f"-Db_sanitize={kinds}", "-Db_lundef=false", "-Doptimization=1"]
            _call(root, "meson", "setup", folder, "-Dnbdkit=enabled", *options)
        _call(root, "ninja", "-C", folder, plugin)
    return str(folder / plugin)


def wrapper_of(root: Path, sanitizer: str) -> tuple[str, ...]:
    """What the command that starts nbdkit begins with."""
    library, _, setting = SANITIZERS[sanitizer]
    found = ran("cc", f"-print-file-name={library}", check=True).stdout.strip()
    if not Path(found).is_absolute() or not shutil.which("setarch"):
        pytest.skip(f"{library} is not there")
    early = root / "build" / "start-the-sanitizer.so"
    early.parent.mkdir(exist_ok=True)
    with early.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        flags = ("-shared", "-fPIC", "-fno-builtin", "-Wl,-z,initfirst")
        _call(root, "cc", *flags, "-o", early, "-x", "c", "-", stdin=EARLY)
    # The sanitizers want their memory where they expect it (-R).
    return ("setarch", "-R", "env", f"LD_PRELOAD={found}:{early}", setting)
