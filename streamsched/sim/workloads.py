# SPDX-License-Identifier: GPL-2.0-only
"""Workloads that a fio job file cannot say: barriers, ever new processes, pools of threads.

Each is a fio job text for what fio can say, and changes to its sections for the rest. What is
from a paper and what is estimated is told with each; docs/sim/WORKLOADS.md has the table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from streamsched.base.shipped import shipped
from streamsched.sim.array import parse_array
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import (
    CACHE_BYTES,
    DIRTY_PCT,
    MAX_REQUEST_SECTORS,
    READAHEAD_PAGES,
    Setup,
)
from streamsched.work.jobfile import parse_jobs
from streamsched.work.process import Process

KIB, MIB = 1 << 10, 1 << 20

Changes = Mapping[str, object]

# A kernel source tree: sizes in blocks of the file system, the estimate of jobs/two-greps.fio.
TREE = {4: 44, 8: 18, 12: 10, 16: 7, 24: 8, 32: 5, 48: 4, 64: 2, 128: 2}
# Between two files: an inode, a directory, the end of the last block.
TREE_SKIP = 4 * KIB
# Linux 2.6.9 has about 16,000 files.
TREE_FILES = 16_000
# ... in about 1,000 directories. A file system puts directories into different block groups, and
# into each the directory's files: estimated as 1 MiB for one, anywhere in its part of the disk.
TREE_DIRECTORY_FILES = 16
TREE_DIRECTORY = 1 * MIB
# fork, exec and exit of cat: what Seelam's Table 3 leaves of 1 ms for a file (one tree, 14.5 MB/s).
SPAWN_NS = 200_000
# Disks as the papers' were.
SEELAM_DISK, IYER_DISK = "ide-20g", "deskstar-34gxp"
# Linux 2.6.9 takes the first read of a file for a whole-file read: half of the largest window
# at once (mm/readahead.c, page_cache_readahead()).
OLD_READER: Changes = {"first_window_pages": READAHEAD_PAGES // 2}
# Largest request to an IDE disk: Linux, drivers/ide/ide-probe.c, ide_init_queue().
IDE_REQUEST_SECTORS = 256
# Seelam's machine has 1 GB of memory; Linux 2.6.9 lets 40 % of it be dirty (mm/page-writeback.c).
SEELAM_MEMORY_MIB, OLD_DIRTY_PCT = 1024, 40
# Files of FFSB's profiles: 4 to 64 KB alike (sixteen sizes; weights must sum to 100).
FFSB = {4 * (i + 1): 7 if i < 4 else 6 for i in range(16)}
FFSB_FILES = 100_000
FFSB_SLOT = 64 * KIB
# ... in 100 directories, as in the example of FFSB's README. ext3 spreads directories of the top
# level over the disk's block groups, and puts files into the group of their directory (Linux
# 2.6.9, fs/ext3/ialloc.c: find_group_orlov(), find_group_other()).
FFSB_DIRECTORIES = 100
FFSB_OPERATIONS = 20_000  # of each of four threads
FFSB_GROUP = 190 * MIB  # so that they fill the disk
# FFSB counts operations up to version 4.0 only, and that has no writes but appends (README,
# "Differences from version 4.0 and older"); of 4 KiB, as in that example.
FFSB_APPEND = 4 * KIB


def _sizes(kib: Mapping[int, int]) -> dict[str, object]:
    return {
        "nr_file_splits": len(kib),
        "file_bytes": tuple(size * KIB for size in kib),
        "file_pct": tuple(kib.values()),
    }


def _mean(kib: Mapping[int, int]) -> int:
    return sum(size * KIB * weight for size, weight in kib.items()) // 100


def _tree(**more: object) -> Changes:
    """Every file of a source tree, each read by a cat of its own."""
    return {
        **_sizes(TREE),
        **OLD_READER,
        "seq_skip": TREE_SKIP,
        "directory_files": TREE_DIRECTORY_FILES,
        "align_bytes": TREE_DIRECTORY,
        "io_bytes": TREE_FILES * _mean(TREE) // (4 * KIB) * (4 * KIB),
        "new_process": True,
        "spawn_ns": SPAWN_NS,
        **more,
    }


def _ffsb(operations: int, reads: int, creates: int, appends: int) -> Changes:
    """Whole files at random, in @operations of a thread, of which so many in 100."""
    pages = 4 * KIB
    # An append reads the last page, writes it, and writes what is new.
    appended = 2 * pages + FFSB_APPEND
    of_100 = (reads + creates) * _mean(FFSB) + appends * appended
    return {
        **_sizes(FFSB),
        **OLD_READER,
        "align_bytes": FFSB_SLOT,
        "norandommap": True,
        "io_bytes": operations * of_100 // (reads + creates + appends) // pages * pages,
        "group_bytes": FFSB_GROUP,
        "group_files_bytes": FFSB_FILES // FFSB_DIRECTORIES * FFSB_SLOT,
        "append_pct": 100 * appends // (creates + appends) if creates + appends else 0,
        "append_bytes": FFSB_APPEND,
        # FFSB calls sync() at the end, and the time counts (README, "Running the benchmark").
        "end_sync": True,
    }


@dataclasses.dataclass(frozen=True)
class Workload:
    """A workload by name."""

    name: str
    source: str  # whose it is
    help: str  # one sentence
    text: Callable[[int], str]  # the fio job text, for a disk of this many bytes
    changes: Mapping[str, Changes] = dataclasses.field(default_factory=dict)  # by section
    numbered: Callable[[int, int], Changes] | None = None  # by process number, on top; of how many
    owners: str = "process"  # what the paper lets schedulers see
    array: str | None = None
    disk: str = "wd5000aaks"  # the paper's
    cache_mib: int | None = None  # memory for pages, where the paper's machine has other

    def fit(self, setup: Setup) -> Setup:
        """@setup with the machine around the disk as the paper's."""
        ide = setup.disk.name in (SEELAM_DISK, IYER_DISK)
        return dataclasses.replace(
            setup,
            cache_bytes=self.cache_mib * MIB if self.cache_mib else CACHE_BYTES,
            dirty_pct=OLD_DIRTY_PCT if setup.disk.name == SEELAM_DISK else DIRTY_PCT,
            max_request_sectors=IDE_REQUEST_SECTORS if ide else MAX_REQUEST_SECTORS,
        )

    def setup(self, policy: str) -> Setup:
        """What it is run on, if nobody says otherwise."""
        array = parse_array(self.array) if self.array else None
        return self.fit(Setup(load_disk(self.disk), policy, owners=self.owners, array=array))

    def processes(self, capacity_bytes: int, seed: int = 0) -> list[Process]:
        """Its processes, on a disk of this size."""
        parsed = parse_jobs(
            self.text(capacity_bytes),
            self.name,
            capacity_bytes=capacity_bytes,
            environ={},
            seed=seed,
        )
        result = []
        for number, process in enumerate(parsed):
            changes = dict(self.changes.get(process.name, {}))
            if self.numbered:
                changes.update(self.numbered(number, len(parsed)))
            result.append(dataclasses.replace(process, **changes))  # type: ignore[arg-type]
        return result


def _plain(text: str) -> Callable[[int], str]:
    return lambda _: text


BACKGROUND: Changes = {"background": True, "time_based": True}

# ---- Love; Seelam, Romero and Teller ----

WRITES_AND_READ = """\
[writer]
rw=write
bs=1m
size=8g
offset=20%

[reader]
rw=read
bs=4k
size=200m
offset=60%
startdelay=20
"""

STREAM_AND_TREE = """\
[stream]
rw=read
bs=4k
size=4g
offset=20%

[tree]
rw=read
bs=4k
size=2g
offset=60%
startdelay=5
"""

TREES = """\
[tree]
rw=read
bs=4k
size=2g
offset=20%
offset_increment=40%
numjobs={count}
"""

FFSB_TEXT = """\
[ffsb]
filename=${{STREAMSCHED_DISK}}
rw={rw}
bs=4k
size={size}m
offset=2%
numjobs=4
"""
FFSB_MIXED = """\
rwmixread={reads}
"""


def _seelam(
    name: str, tells: str, text: str, changes: Mapping[str, Changes], source: str = "Seelam"
) -> Workload:
    """One of Seelam's, on a disk and with the memory of that time."""
    memory = SEELAM_MEMORY_MIB
    made = _plain(text)
    return Workload(name, source, tells, made, changes, disk=SEELAM_DISK, cache_mib=memory)


def _ffsb_workload(name: str, what: str, reads: int, creates: int, appends: int) -> Workload:
    """FFSB's profile @name: of 100 operations so many; the rest are deletions."""
    size = FFSB_DIRECTORIES * FFSB_GROUP // MIB
    text = FFSB_TEXT.format(rw="randrw" if creates + appends else "randread", size=size)
    if creates + appends:
        text += FFSB_MIXED.format(reads=100 * reads // (reads + creates + appends))
    operations = FFSB_OPERATIONS * (reads + creates + appends) // 100
    return _seelam(
        f"ffsb-{name}",
        f"FFSB's {name} profile: four threads, {what}, on 100,000 files of 4 to 64 KB.",
        text,
        {"ffsb": _ffsb(operations, reads, creates, appends)},
    )


SEELAM = (
    _seelam(
        "writes-and-read",
        "A stream of writes, and beside it a read of 200 MB.",
        WRITES_AND_READ,
        {"writer": BACKGROUND, "reader": OLD_READER},
        "Love; Seelam",
    ),
    _seelam(
        "stream-and-tree",
        "A stream of reads, and beside it a source tree, each file read by a new process.",
        STREAM_AND_TREE,
        {"stream": {**BACKGROUND, **OLD_READER}, "tree": _tree()},
        "Love; Seelam",
    ),
    _seelam(
        "one-tree",
        "A source tree, each file read by a new process.",
        TREES.format(count=1),
        {"tree": _tree()},
    ),
    _seelam(
        "two-trees",
        "Two source trees, each file of each read by a new process.",
        TREES.format(count=2),
        {"tree": _tree()},
    ),
    _ffsb_workload("web", "reads", 100, 0, 0),
    _ffsb_workload("mail", "as many reads as new files", 40, 40, 0),
    _ffsb_workload("file", "four reads to an append", 80, 0, 20),
    _ffsb_workload("meta", "as many new files as appends", 0, 40, 40),
)

# ---- Iyer and Druschel ----

IYER_TEXT = """\
[reader]
rw={rw}
bs=4k
size=1g
io_size={amount}
offset=20%
offset_increment=40%
numjobs=2
"""

THINKERS = """\
[global]
rw=read
bs=64k
direct=1
size=4g
runtime=20
time_based

[one]
offset=20%

[two]
offset=60%
"""


ADVERSARY: Changes = {"stall_blocks": 8, "thinktime_ns": 1_000_000_000}


def _iyer(pattern: str, rw: str, amount: str, way: str, window: int) -> Workload:
    return Workload(
        f"{pattern}-{way}",
        "Iyer",
        f"Two processes, each {pattern} through its own file with {way}"
        + (", that is, without readahead." if not window else "."),
        _plain(IYER_TEXT.format(rw=rw, amount=amount)),
        {"reader": {"readahead_pages": window}},
        disk=IYER_DISK,
    )


IYER = (
    *(
        _iyer(pattern, rw, amount, way, window)
        for pattern, rw, amount in (
            ("sequential", "read", "256m"),
            ("alternate", "read:4k", "128m"),
            ("random", "randread", "16m"),
        )
        # FreeBSD 4.0 reads clusters of 64 KiB ahead.
        for way, window in (("read", 16), ("mmap", 0))
    ),
    Workload(
        "thinkers",
        "Iyer",
        "Two sequential readers of 64 KiB past the page cache, for sweeps of think times.",
        _plain(THINKERS),
        disk=IYER_DISK,
    ),
    Workload(
        "one-reader",
        "Iyer",
        "One of these readers alone.",
        _plain(THINKERS[: THINKERS.index("[two]")]),
        disk=IYER_DISK,
    ),
    Workload(
        "adversary",
        "Iyer",
        "Two sequential readers; one stops at every eighth block, just when it is waited for.",
        _plain(THINKERS),
        {"two": ADVERSARY},
        disk=IYER_DISK,
    ),
    Workload(
        "random-adversary",
        "Iyer",
        "Two random readers; one stops at every eighth block, just when it is waited for.",
        _plain(THINKERS.replace("rw=read\nbs=64k", "rw=randread\nnorandommap\nbs=4k")),
        {"two": ADVERSARY},
        disk=IYER_DISK,
    ),
)

# ---- Xu and Jiang, Figure 5 ----

# Two files of 40 MB of a process, 100 MB between them, 50 GB to the next process's: so 140 MB
# and 50 GB + 180 MB from start to start.
THREADS = """\
[global]
rw=read:12k
bs=4k
direct=1
size=40m
numjobs=4
offset_increment=51380m

[first]
offset={first}m

[second]
offset={second}m
"""
THREADS_PROCESSES = 4


def _threads_text(capacity: int) -> str:
    first = capacity // 2 // MIB
    return THREADS.format(first=first, second=first + 140)


def _threads_numbered(number: int, _: int) -> Changes:
    return {
        "group": number % THREADS_PROCESSES,
        "barrier": number % THREADS_PROCESSES + 1,
        "barrier_blocks": 5,
    }


SERVERS = 8
PROGRAMS = 4
POOL_THREADS = 16
# A file of 1 GB is 128 MB on each server, and 10 GB between files are 1.25 GB.
PVFS_FILE_MIB, PVFS_GAP_MIB = 128, 1280
# 64 KiB over gigabit Ethernet.
PVFS_NETWORK_US = 600
PVFS = """\
[program-{program}]
rw=read
bs=64k
size={size}m
thinktime={think}us
offset={offset}m
offset_increment={step}m
numjobs={servers}

"""


def _pvfs_text(capacity: int) -> str:
    # The servers' disks one behind the other; a process's blocks all lie on one server.
    step = capacity // SERVERS // MIB
    return "".join(
        PVFS.format(
            program=program + 1,
            size=PVFS_FILE_MIB,
            think=PVFS_NETWORK_US,
            offset=step // 2 + program * (PVFS_FILE_MIB + PVFS_GAP_MIB),
            step=step,
            servers=SERVERS,
        )
        for program in range(PROGRAMS)
    )


def _pvfs_numbered(number: int, _: int) -> Changes:
    return {
        "barrier": number // SERVERS + 1,
        "barrier_blocks": 1,  # mpi-io-test.c has MPI_Barrier() before each read
        "pool": number % SERVERS + 1,
        "pool_threads": POOL_THREADS,
        "readahead_pages": READAHEAD_PAGES,  # each server's own kernel reads ahead
    }


# Both benchmarks run in the same guests, so a guest's disk has room for three scans' data sets.
SCANS_STEP_MIB = 51 * 1024
VM_MIB = 3 * SCANS_STEP_MIB


def _vms(section: str, vms: int, start: str, files: int, step_mib: int) -> Callable[[int], str]:
    """A process for each file of each VM; the second one's disk lies behind the first one's.

    Processes start in the order in which they are named. VMs run side by side, so it is a first
    one of each, then a second one of each: noop keeps the order in which requests first came.
    """

    def text(capacity: int) -> str:
        first = capacity * int(start.rstrip("%")) // 100 // MIB
        return "".join(
            section.format(vm=vm + 1, nr=nr + 1, offset=f"{first + vm * VM_MIB + nr * step_mib}m")
            for nr in range(files)
            for vm in range(vms)
        )

    return text


# The first file lies where it does in all jobs, at 50 % of the disk; the scans of two VMs need
# more room and begin at 35 %.
# 300 MB files, 20 GB between them; 64 KiB at a time, and what sending them costs: an estimate.
FTP = """\
[ftp-vm{vm}-{nr}]
rw=read
bs=64k
size=300m
thinktime=100us
offset={offset}
cgroup=vm{vm}

"""
# As jobs/tpc-h.fio, three instances in a VM.
SCANS = """\
[query-19-vm{vm}-{nr}]
rw=read
bs=8k
size=912m
thinktime=50us
offset={offset}
cgroup=vm{vm}

"""


def _guest_file(*_: int) -> Changes:
    """A long file in a guest's file system, which is taken to be ext3, as Linux of then had it."""
    return {"maps": True}


XU = (
    Workload(
        "multi-threads",
        "Xu",
        "Four processes of two threads, each reading in strides, that meet every five requests.",
        _threads_text,
        numbered=_threads_numbered,
    ),
    Workload(
        "pvfs",
        "Xu",
        "Four programs whose eight processes meet at each block, on eight servers with pools.",
        _pvfs_text,
        numbered=_pvfs_numbered,
        array=f"linear:{SERVERS}:uncoordinated",
    ),
    *(
        Workload(
            f"{name}-{vms}vm",
            "Xu",
            f"{what} in {'one VM' if vms == 1 else 'each of two VMs'}; a VM is an owner.",
            _vms(section, vms, start, files, step),
            numbered=_guest_file,
            owners="group",
        )
        for name, what, section, start, files, step in (
            ("ftp", "An FTP server with four clients", FTP, "50%", 4, 20780),
            ("scans", "Three table scans", SCANS, "35%", 3, SCANS_STEP_MIB),
        )
        for vms in (1, 2)
    ),
)

WORKLOADS = {workload.name: workload for workload in (*XU, *SEELAM, *IYER)}


def job_path(name: str) -> Path:
    """A shipped job file."""
    return shipped("jobs") / name


def shipped_jobs() -> list[str]:
    """The names of the shipped job files for the simulator, without .fio."""
    return sorted(path.stem for path in shipped("jobs").glob("*.fio"))
