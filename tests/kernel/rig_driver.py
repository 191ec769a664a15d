# SPDX-License-Identifier: GPL-2.0-only
"""Functions that run inside the rig, called by tests outside.

RIG_VARIANT=kasan (or newest) in the environment has the kernel tests run on that kernel.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from said import ROOT

from streamsched.base.errors import StreamschedError
from streamsched.hosts import rig

VARIANT = os.environ.get("RIG_VARIANT", "base")


# What tests run in the rig, and its Debian packages; tools/setup.sh rig installs them.
PROGRAMS = {"fio": "fio", "mkfs.ext4": "e2fsprogs", "dmsetup": "dmsetup", "mdadm": "mdadm"}


def need_rig(variant: str = VARIANT) -> Path:
    """Skip this test where the variant's kernel is not built, or a program is missing."""
    for program, package in PROGRAMS.items():
        if not shutil.which(program, path=rig.roots_path()):
            pytest.skip(f"{program} is missing: install the Debian package {package}")
    try:
        return rig.kernel_folder(variant)
    except StreamschedError as error:
        pytest.skip(str(error))


def in_rig(
    function: Callable[..., Any],
    *arguments: Any,
    variant: str = VARIANT,
    timeout_s: int = 600,
    modules: dict[str, bytes] | None = None,
) -> Any:
    """Run a function of a guest module in the rig; what it returned, or this test fails.

    @modules: other ones instead of the project's, by name, loaded in this order.
    """
    need_rig(variant)
    call = json.dumps([function.__name__, *arguments])
    command = [sys.executable, "-B", function.__code__.co_filename, call]
    load = "".join(f"insmod $IN/{name} || exit 9\n" for name in modules or {})
    result = rig.run_in_rig(
        f"{load}exec {shlex.join(command)}\n",
        variant=variant,
        files=modules or {},
        modules=not modules,
        timeout_s=timeout_s,
        show=[ROOT, Path(sys.prefix)],
    )
    said = f"{result.stdout}\n{result.stderr}\n{result.console[-3000:]}"
    found = re.search(r"^RESULT (.*)$", result.stdout, re.MULTILINE)
    assert result.status == 0 and found, said
    if complaints := result.complaints():
        at = result.console.index(complaints[0])
        raise AssertionError(result.console[at : at + 4000])
    return json.loads(found[1])
