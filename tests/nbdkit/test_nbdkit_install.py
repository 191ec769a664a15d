# SPDX-License-Identifier: GPL-2.0-only
"""docs/guide/NBDKIT.md's commands for the whole system, with Debian's own meson.

tools/setup.sh uses a newer one, of the virtual environment.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from nbd_server import needs_plugin
from said import ran

MESON = Path("/usr/bin/meson")


def documented(root: Path) -> list[str]:
    """The commands behind "For the whole system"."""
    text = (root / "docs" / "guide" / "NBDKIT.md").read_text()
    block = text.split("For the whole system")[1].split("```\n")[1]
    return block.splitlines()


@needs_plugin
@pytest.mark.skipif(
    not MESON.exists() or not Path("/usr/bin/ninja").exists(),
    reason="Debian's own meson is missing: install the Debian packages meson and ninja-build",
)
def test_it_is_installed_for_the_whole_system(root: Path, tmp_path: Path) -> None:
    *build, ask = documented(root)
    assert len(build) == 3 and ask == "nbdkit streamsched --dump-plugin"
    to = tmp_path / "root"
    variables = {"PATH": "/usr/bin:/bin", "DESTDIR": str(to), "HOME": os.environ.get("HOME", "/")}
    for command in build:
        assert command.count("build/nbdkit-system") == 1
        elsewhere = command.replace("build/nbdkit-system", str(tmp_path / "build"))
        done = subprocess.run(
            elsewhere, shell=True, cwd=root, env=variables, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "WARNING" not in done.stdout + done.stderr
    (plugin,) = to.glob("usr/lib/**/nbdkit/plugins/nbdkit-streamsched-plugin.so")
    assert (to / "usr/share/man/man1/nbdkit-streamsched-plugin.1").is_file()
    told = ran("nbdkit", plugin, "--dump-plugin")
    assert told.returncode == 0
    assert re.search(r"^name=streamsched$", told.stdout, re.MULTILINE)
