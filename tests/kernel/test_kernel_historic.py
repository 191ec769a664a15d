# SPDX-License-Identifier: GPL-2.0-only
"""Linux's schedulers of the past in the rig's real kernel: the module historic-iosched.

What runs there as Python is in historic_guest.py, on the kernel that RIG_VARIANT names.
"""

from __future__ import annotations

from pathlib import Path

import historic_guest
import pytest
from rig_driver import VARIANT, in_rig, need_rig

from streamsched.hosts.kernelhost import HISTORIC, compare_on_kernel, parse_policies
from streamsched.sim.compare import Comparison
from streamsched.sim.diskfile import load_disk
from streamsched.work.jobfile import load_job_file

pytestmark = pytest.mark.e2e

JOBS = Path(__file__).resolve().parents[2] / "jobs" / "kernel"


def test_all_are_offered() -> None:
    assert set(HISTORIC) <= set(in_rig(historic_guest.schedulers))


def test_each_keeps_data() -> None:
    """Verified writes of many kinds; no request is lost."""
    arrivals = in_rig(historic_guest.each_keeps_data, HISTORIC)
    assert min(arrivals.values()) > 500, arrivals


def test_switched_under_load_and_unloaded() -> None:
    assert in_rig(historic_guest.switched_under_load, HISTORIC, timeout_s=300) >= 3 * len(HISTORIC)


def on_kernel(path: str) -> Comparison:
    need_rig()
    disk = load_disk("wd5000aaks")
    file = JOBS / "direct-readers.fio"
    return compare_on_kernel(
        load_job_file(file, capacity_bytes=disk.capacity_sectors * 512),
        disk,
        parse_policies("noop,deadline-2.6,linus,anticipatory,cfq,cooperative,stream"),
        path=path,
        variant=VARIANT,
    )


def test_they_wait_for_readers_whom_they_see() -> None:
    """Four direct readers (Xu and Jiang, sections 1 and 3.3): those that wait gain a multiple."""
    rate = {run.setup.policy: run.mb_s for run in on_kernel("direct").runs}
    best = max(rate["noop"], rate["deadline-2.6"], rate["linus"])
    for name in ("anticipatory", "cfq", "cooperative", "stream"):
        assert rate[name] > 10 * best, rate


def test_they_do_not_wait_for_readers_who_are_hidden() -> None:
    """The same behind a loop device: they gain nothing, stream does."""
    rate = {run.setup.policy: run.mb_s for run in on_kernel("loop").runs}
    for name in ("deadline-2.6", "linus", "anticipatory", "cfq", "cooperative"):
        assert rate[name] == pytest.approx(rate["noop"], rel=0.05), rate
    assert rate["stream"] > 10 * rate["noop"], rate


def test_who_is_gone_is_not_waited_for() -> None:
    """The kernel tells when an io_context ends: three of four readers end before the last.

    Otherwise cfq's disk idles each time for slice_idle (8 ms). The anticipatory scheduler only
    looks at it when a request comes, as in Linux 2.6.31 (as_can_break_anticipation()).
    """
    gone = in_rig(historic_guest.waits, "cfq", 4, "exit")
    stays = in_rig(historic_guest.waits, "cfq", 4, "stay")
    assert gone["waits"] > 100, gone
    assert stays["idle_ns"] - gone["idle_ns"] > 3 * 5e6, (gone, stays)
