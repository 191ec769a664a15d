# SPDX-License-Identifier: GPL-2.0-only
"""The workloads that a job file cannot say: each can be laid out, and is what it says."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import READAHEAD_PAGES, Setup
from streamsched.sim.workloads import FFSB, POOL_THREADS, TREE, WORKLOADS
from streamsched.work.process import Process

MIB, GIB = 1 << 20, 1 << 30


def processes(name: str) -> list[Process]:
    workload = WORKLOADS[name]
    return workload.processes(workload.setup("noop").capacity_bytes)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_fits_its_disk(name: str) -> None:
    workload = WORKLOADS[name]
    capacity = workload.setup("noop").capacity_bytes
    for process in processes(name):
        assert process.offset + process.size <= capacity
        assert process.io_bytes and process.size
        assert sum(process.file_pct) == (100 if process.nr_file_splits else 0)
    assert any(not process.background for process in processes(name))
    assert workload.help.endswith(".") and workload.name == name


@pytest.mark.parametrize("sizes", [TREE, FFSB])
def test_weights_of_file_sizes_are_percentages(sizes: dict[int, int]) -> None:
    assert sum(sizes.values()) == 100 and len(sizes) <= 16


def test_two_threads_of_a_process_meet() -> None:
    """40 MB files, 100 MB between the two of a process; one distance of 50 GB to the next's."""
    threads = processes("multi-threads")
    assert [p.barrier for p in threads] == [1, 2, 3, 4] * 2
    assert {p.barrier_blocks for p in threads} == {5}
    assert {p.io_bytes for p in threads} == {10 * MIB}  # 4 KiB of every 16
    first, second = threads[0], threads[4]
    assert second.offset - (first.offset + 40 * MIB) == 100 * MIB
    assert threads[1].offset - (second.offset + 40 * MIB) == 50 * GIB


def test_a_server_has_one_process_of_each_program() -> None:
    setup = WORKLOADS["pvfs"].setup("noop")
    disk = load_disk("wd5000aaks").capacity_sectors * 512
    assert setup.capacity_bytes // disk == 8
    servers = [p.offset // disk for p in processes("pvfs")]
    assert servers == list(range(8)) * 4
    assert [p.pool - 1 for p in processes("pvfs")] == servers
    assert [p.barrier for p in processes("pvfs")] == [
        program + 1 for program in range(4) for _ in range(8)
    ]
    assert {(p.turns, p.pool_threads) for p in processes("pvfs")} == {(False, POOL_THREADS)}
    assert sum(p.io_bytes for p in processes("pvfs")) == 4 * GIB


@pytest.mark.parametrize(("name", "files", "gap"), [("ftp", 4, 20780), ("scans", 3, 51 * 1024)])
def test_a_vm_is_an_owner(name: str, files: int, gap: int) -> None:
    """VMs start side by side; the second one's disk lies behind room for three scans' data."""
    both = processes(f"{name}-2vm")
    assert [p.group for p in both] == [0, 1] * files
    assert WORKLOADS[f"{name}-2vm"].owners == "group"
    first, second = (sorted(p.offset for p in both if p.group == vm) for vm in (0, 1))
    assert {b - a for a, b in itertools.pairwise(first)} == {gap * MIB}
    assert [at + 153 * GIB for at in first] == second
    assert [p.offset for p in processes(f"{name}-1vm")] == first
    assert all(p.maps for p in both)


def test_a_machine_of_its_time() -> None:
    """Memory and requests of the paper's machine; on another disk, requests as that disk has."""
    workload = WORKLOADS["ffsb-web"]
    setup = workload.setup("noop")
    assert (setup.cache_bytes, setup.max_request_sectors, setup.dirty_pct) == (GIB, 256, 40)
    assert processes("ffsb-web")[0].first_window_pages == READAHEAD_PAGES // 2
    other = workload.fit(dataclasses.replace(setup, disk=load_disk("wd5000aaks")))
    plain = Setup(other.disk, "noop")
    assert (other.max_request_sectors, other.dirty_pct) == (
        plain.max_request_sectors,
        plain.dirty_pct,
    )


@pytest.mark.parametrize(
    ("name", "reads", "creates", "appends"),
    [("web", 100, 0, 0), ("mail", 40, 40, 0), ("file", 80, 0, 20), ("meta", 0, 40, 40)],
)
def test_ffsb_s_mixes(name: str, reads: int, creates: int, appends: int) -> None:
    """As on Seelam's slides; what is missing are deletions. 20,000 operations for each thread."""
    work = processes(f"ffsb-{name}")
    assert len(work) == 4
    file, append = 33.04 * 1024, 12 * 1024
    for process in work:
        writes = 100 if not process.rw & 1 else 100 - process.read_pct if process.rw & 2 else 0
        assert writes == round(100 * (creates + appends) / (reads + creates + appends))
        if writes:
            assert process.append_pct == 100 * appends / (creates + appends)
        moved = 200 * ((reads + creates) * file + appends * append)
        assert process.io_bytes == pytest.approx(moved, rel=0.01)
        assert process.end_sync
