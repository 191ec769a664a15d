# SPDX-License-Identifier: GPL-2.0-only
"""run --on nbd: a job file can make the real fio do nothing but work on the server's disk."""

from __future__ import annotations

import json
from pathlib import Path

from nbd_server import needs_plugin
from said import COMMAND, ran

pytestmark = needs_plugin


def test_a_job_file_cannot_reach_what_is_not_the_disk(tmp_path: Path) -> None:
    """Neither by an include nor by a command, a log or a name."""
    victim, owned = tmp_path / "victim", tmp_path / "owned"
    victim.write_bytes(b"precious" * 65536)
    (tmp_path / "more").write_text(
        f"ioengine=sync\nfilename={victim}\nexec_postrun=touch {owned}\n"
    )
    job = tmp_path / "a.fio"
    job.write_text(
        f"[a b] [c%]\nrw=write\ndirect=1\nbs=64k\nsize=256k\nexec_prerun=touch {owned}\n"
        f"filename_format={owned}\nname=x; exec_prerun=touch {owned}\n"
        "group_reporting\ninclude more\n[second]\nwait_for=x\nrw=read\nsize=64k\n"
    )
    done = ran(
        *(COMMAND, "run", job, "--on", "nbd"),
        *("--policy", "noop", "--output", "json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert [one["name"] for one in run["jobs"]] == ["x", "second"]
    assert [one["bytes_written"] for one in run["jobs"]] == [256 << 10, 0]
    assert victim.read_bytes() == b"precious" * 65536
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.fio", "more", "victim"]
    assert "note: " + str(job) + ": fio is not given exec_prerun, group_reporting" in done.stderr
