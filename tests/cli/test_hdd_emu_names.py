# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched hdd-emu` touches nothing but the folder of its disk in configfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamsched.base.errors import UsageError
from streamsched.hosts import hddemu
from streamsched.sim.diskfile import load_disk


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "{there}"])
def test_a_name_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    there, configfs = tmp_path / "other", tmp_path / "hdd-emu"
    there.mkdir()
    configfs.mkdir()
    (there / "power").write_text("somebody's")
    name = name.format(there=there)
    with pytest.raises(UsageError, match="is no name of a disk"):
        hddemu.remove(name, configfs)
    with pytest.raises(UsageError, match="is no name of a disk"):
        hddemu.create(name, load_disk("ssd"), configfs=configfs)
    with pytest.raises(UsageError, match="is no name of a disk"):
        hddemu.script(name, load_disk("ssd"))
    assert (there / "power").read_text() == "somebody's"
    assert list(configfs.iterdir()) == []
