# SPDX-License-Identifier: GPL-2.0-only
"""Attributes in configfs, and why the kernel refused what was written to one."""

from __future__ import annotations

import os
from pathlib import Path

from streamsched.base.errors import StreamschedError, UsageError


def write(attribute: Path, value: str, module: str) -> None:
    """Write one attribute of kernel module @module, in one piece as the kernel wants it."""
    if not attribute.exists():
        raise UsageError(f"{attribute}: there is no such attribute")
    try:
        file = os.open(attribute, os.O_WRONLY)
        try:
            os.write(file, value.encode() + b"\n")
        finally:
            os.close(file)
    except OSError as error:
        raise refused(attribute, error, module) from None


def refused(path: Path, error: OSError, module: str) -> StreamschedError:
    """The error with the reason that @module gave in the kernel's log."""
    why = reason(path, module) or f"{error.strerror} (the kernel's log may say why)"
    return StreamschedError(f"{path}: {why}")


def reason(path: Path, module: str) -> str:
    """What the kernel's log said last about an attribute; empty when it cannot be read."""
    marks = (f"{module}: {path.parent.name}/{path.name}: ", f"{module}: {path.name}: ")
    said = ""
    try:
        log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        while True:
            try:
                line = os.read(log, 8192).decode(errors="replace").splitlines()[0]
            except BrokenPipeError:  # overwritten while it was read
                continue
            message = line.partition(";")[2]
            for mark in marks:
                if message.startswith(mark):
                    said = message.removeprefix(mark)
    except OSError:  # at its end
        return said
    finally:
        os.close(log)
