# SPDX-License-Identifier: GPL-2.0-only
"""streamsched run --on nbd: job files against the nbdkit plugin."""

from __future__ import annotations

import json
from pathlib import Path

from nbd_server import needs_plugin
from said import COMMAND, ran

pytestmark = needs_plugin


def test_run_on_nbd_prints_the_common_table(tmp_path: Path) -> None:
    job = tmp_path / "readers.fio"
    job.write_text(
        "[global]\nfilename=${STREAMSCHED_DISK}\nioengine=psync\ndirect=1\n"
        "[reader]\nrw=read\nbs=64k\nsize=12m\nnumjobs=4\noffset_increment=100g\n"
    )
    done = ran(
        *(COMMAND, "run", job, "--on", "nbd"),
        *("--policy", "deadline,stream:deadline", "--set", "wait_target=100ms"),
        *("--output", "json"),
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [run["policy"] for run in document["runs"]] == ["deadline", "stream:deadline"]
    for run in document["runs"]:
        assert run["bytes_read"] == 4 * 12 << 20
        assert run["disk_requests"] == 4 * 12 * 16
        assert run["counters"]["dispatches"] == 4 * 12 * 16
        assert run["efficiency"] > 0
    assert document["runs"][1]["tunables"]["wait_target"] == 100_000_000
    assert document["runs"][1]["hits"] > 0


def test_a_tunable_of_former_versions_is_refused_here_too(tmp_path: Path) -> None:
    job = tmp_path / "readers.fio"
    job.write_text("[reader]\nrw=read\nbs=64k\nsize=1m\nnumjobs=2\noffset_increment=100g\n")
    command = [COMMAND, "run", job]
    command += ["--policy", "stream:deadline", "--set", "stream_time_slice=9ms"]
    for host in ([], ["--on", "nbd"]):
        done = ran(*command, *host)
        assert done.returncode == 2
        assert done.stderr == (
            "streamsched: --set stream_time_slice: it is gone: "
            "slices follow from wait_target, which is to be set instead\n"
        )


def test_run_on_nbd_refuses_what_it_cannot(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[a]\nfilename=x\nrw=read\nsize=1m\n")
    for options, message in (
        (["--output", "fio-json"], "not with --on nbd"),
        (["--path", "loop"], "only with --on kernel"),
        (["--policy", "stream:nop"], "did you mean 'noop'?"),
    ):
        done = ran(COMMAND, "run", job, "--on", "nbd", *options)
        assert done.returncode == 2
        assert message in done.stderr
