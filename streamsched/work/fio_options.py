# SPDX-License-Identifier: GPL-2.0-only
"""fio's options as streamsched takes them: one row each, for the parser and for docs/sim/JOBS.md.

`OPTIONS` mean something to the simulator. `IGNORED` are accepted and change nothing about what the
disk is asked; so are `NOTED`, of which run says so. `UNSUPPORTED` are fio's too, but change the
workload in a way that the simulator cannot do: each says what to write instead.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from enum import Enum

from streamsched.base.units import FIO_MAX


class Kind(Enum):
    """How a value is written; the value is the documentation's word for it."""

    AMOUNT = "bytes or %"
    BYTES = "bytes"
    SECONDS = "time, bare: s"
    MICROSECONDS = "time, bare: us"
    COUNT = "number"
    FLAG = "flag"  # no value, or 0 or 1
    BOOL = "0 or 1"
    CHOICE = "word"
    TEXT = "text"
    RW = "pattern"
    SIZES = "bytes[,bytes]"
    RANGE = "min-max[,min-max]"
    SPLIT = "bytes/%:...[,...]"
    RATES = "bytes/s[,bytes/s]"
    COUNTS = "number[,number]"
    PLACES = "name[:number]"
    SERVICE = "name[:blocks]"


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """One row: a key of a job file."""

    key: str
    kind: Kind
    default: str  # as it would be written; "" for unset
    help: str  # one sentence
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int | None = None


RW_WORDS = ("read", "write", "randread", "randwrite", "rw", "readwrite", "randrw")
TRIM_WORDS = ("trim", "randtrim", "trimwrite", "randtrimwrite")

# These do one request at a time, whatever iodepth says.
SYNC_ENGINES = ("sync", "psync", "vsync", "pvsync", "pvsync2")
ASYNC_ENGINES = ("libaio", "io_uring", "posixaio")
# Other words for them: of fio, and of Windows and Solaris for what is libaio on Linux.
OTHER_WORDS = dict.fromkeys(("linuxaio", "aio", "windowsaio", "solarisaio"), "libaio")

MAX_JOBS = 4096  # fio's own bound
MAX_DEPTH = 4096
MAX_FILES = 4096
MAX_WEIGHT = 1000  # SS_MAX_WEIGHT of core/sched.h
U32_MAX = 2**32 - 1

OPTIONS: tuple[Option, ...] = (
    # What is asked for.
    Option(
        "rw",
        Kind.RW,
        "read",
        "Reads, writes or both, in order or at random: read, write, randread, randwrite, rw, "
        "randrw. `read:12k` skips 12k after each block, `read:-8k` with bs=4k goes backwards. "
        "`randread:8` goes to a random position only every 8 blocks.",
        aliases=("readwrite",),
    ),
    Option(
        "rwmixread",
        Kind.COUNT,
        "50",
        "Reads of a mixed job, in percent.",
        maximum=100,
    ),
    Option(
        "rwmixwrite",
        Kind.COUNT,
        "",
        "Writes of a mixed job, in percent: the same setting seen from the other side, and the "
        "last of the two counts.",
        maximum=100,
    ),
    Option(
        "bs",
        Kind.SIZES,
        "4k",
        "Block size; after a comma that of writes.",
        aliases=("blocksize",),
    ),
    Option(
        "bsrange",
        Kind.RANGE,
        "",
        "Block sizes drawn from a range, multiples of its lower end; goes before bs.",
        aliases=("blocksize_range",),
    ),
    Option(
        "bssplit",
        Kind.SPLIT,
        "",
        "Block sizes drawn by weight, at most 16, each rounded down to a multiple of the smallest "
        "one; goes before bs.",
    ),
    Option(
        "ba",
        Kind.SIZES,
        "",
        "Alignment of random positions; unset: the smallest block size. Another one implies "
        "norandommap.",
        aliases=("blockalign",),
    ),
    Option(
        "bs_is_seq_rand",
        Kind.BOOL,
        "0",
        "The sizes of reads are those of blocks in order, the sizes of writes those of blocks at "
        "random positions.",
    ),
    # Where.
    Option(
        "filename",
        Kind.TEXT,
        "",
        "The disk under test, or a file on it; several, with a colon in between, are like "
        "nrfiles. `${VARIABLE}` need not be set.",
    ),
    Option("directory", Kind.TEXT, "", "Where the files are; clones take turns among several."),
    Option(
        "filename_format",
        Kind.TEXT,
        "",
        "Names of files without filename; unset: `$jobname.$jobnum.$filenum`.",
    ),
    Option(
        "offset",
        Kind.AMOUNT,
        "0",
        "First byte of the job's region; a percentage is of the disk, rounded up to a whole block.",
        aliases=("fileoffset",),
    ),
    Option(
        "offset_increment",
        Kind.AMOUNT,
        "0",
        "The second clone starts this much later, the third twice as much, and so on.",
    ),
    Option(
        "offset_align",
        Kind.BYTES,
        "0",
        "What a percentage in offset is rounded up to instead of the block size.",
        minimum=0,
    ),
    Option(
        "size",
        Kind.AMOUNT,
        "",
        "Length of the region, and how much is transferred; unset: to the end of the disk.",
    ),
    Option(
        "filesize",
        Kind.BYTES,
        "0",
        "Length of the region, or of each of nrfiles; size is then only how much is transferred.",
    ),
    Option(
        "nrfiles",
        Kind.COUNT,
        "1",
        "So many files, among which size is divided, one behind the other from offset on; without "
        "a filename only, as in fio.",
        aliases=("nr_files",),
        minimum=1,
        maximum=MAX_FILES,
    ),
    Option(
        "file_service_type",
        Kind.SERVICE,
        "roundrobin",
        "Which of several files the next block is in: roundrobin, random, or sequential, each to "
        "its end; `roundrobin:8`: another one only every 8 blocks.",
    ),
    Option(
        "openfiles",
        Kind.COUNT,
        "0",
        "So many files are open at once, and the others have no turn before one of these is done; "
        "0: all.",
        maximum=U32_MAX,
    ),
    Option(
        "io_size",
        Kind.AMOUNT,
        "",
        "Transfer this much instead, within the same region and beginning again as often as "
        "needed; a percentage is of size.",
        aliases=("io_limit",),
    ),
    Option(
        "number_ios",
        Kind.COUNT,
        "0",
        "Stop after this many blocks, if size did not stop it before; for jobs with one block "
        "size.",
    ),
    Option("loops", Kind.COUNT, "1", "Do the whole of it this many times.", minimum=1),
    Option(
        "zonemode",
        Kind.CHOICE,
        "none",
        "strided: move on by zonerange + zoneskip after every zonesize bytes, and begin again at "
        "the end of the disk.",
        choices=("none", "strided"),
    ),
    Option("zonesize", Kind.BYTES, "0", "Bytes transferred in each zone."),
    Option("zonerange", Kind.BYTES, "0", "Length of each zone; unset: zonesize."),
    Option("zoneskip", Kind.BYTES, "0", "Gap between zones."),
    Option(
        "norandommap",
        Kind.FLAG,
        "0",
        "Random positions may come twice; without it, all are visited once before any again.",
    ),
    Option(
        "random_distribution",
        Kind.PLACES,
        "random",
        "random (uniform), zipf:THETA, pareto:H, normal:DEVIATION, zoned:%/%:..., "
        "zoned_abs:%/bytes:...; all but the first imply norandommap.",
    ),
    Option(
        "percentage_random",
        Kind.COUNTS,
        "100",
        "So many blocks of a random job go to a random position, the others on behind the last "
        "one; after a comma that of writes.",
        maximum=100,
    ),
    Option(
        "rw_sequencer",
        Kind.CHOICE,
        "sequential",
        "What `randread:8` does in between: go on, or the same block again.",
        choices=("sequential", "identical"),
    ),
    Option(
        "randrepeat",
        Kind.BOOL,
        "1",
        "Accepted: every run repeats, `--seed` makes another one.",
        aliases=("allrandrepeat",),
    ),
    Option(
        "randseed",
        Kind.COUNT,
        "",
        "Seed of the random numbers; unset: the run's `--seed`.",
        maximum=FIO_MAX,
    ),
    # How.
    Option(
        "direct",
        Kind.BOOL,
        "0",
        "1: past the page cache; 0: through it, with readahead and write-back.",
    ),
    Option(
        "invalidate",
        Kind.BOOL,
        "1",
        "1: what the page cache has of a region, but for what is yet to be written, goes before "
        "each pass over it.",
    ),
    Option(
        "buffered",
        Kind.BOOL,
        "1",
        "The opposite of direct; the last of the two counts.",
    ),
    Option(
        "ioengine",
        Kind.CHOICE,
        "psync",
        "How requests are sent. Only libaio, io_uring and posixaio keep several in flight; the "
        "others have depth 1. linuxaio, aio, windowsaio and solarisaio are libaio.",
        choices=(*SYNC_ENGINES, *ASYNC_ENGINES),
    ),
    Option(
        "iodepth",
        Kind.COUNT,
        "1",
        "Requests kept in flight with direct=1; a buffered job always has depth 1, as on Linux "
        "with libaio.",
        minimum=1,
        maximum=MAX_DEPTH,
    ),
    Option(
        "fsync",
        Kind.COUNT,
        "0",
        "Flush after this many writes; 0: never.",
        maximum=U32_MAX,
    ),
    Option(
        "fdatasync",
        Kind.COUNT,
        "0",
        "The same as fsync: a disk without files has no metadata to leave out.",
        maximum=U32_MAX,
    ),
    Option("end_fsync", Kind.BOOL, "0", "Flush when a writing job ends."),
    Option(
        "fsync_on_close", Kind.BOOL, "0", "The same as end_fsync: the disk is closed at the end."
    ),
    # When.
    Option("numjobs", Kind.COUNT, "1", "Clones of this job.", minimum=1, maximum=MAX_JOBS),
    Option("thinktime", Kind.MICROSECONDS, "0", "Pause after a block completed."),
    Option(
        "thinktime_blocks",
        Kind.COUNT,
        "1",
        "Pause only after this many blocks.",
        minimum=1,
        maximum=U32_MAX,
    ),
    Option(
        "rate",
        Kind.RATES,
        "",
        "At most so many bytes a second, on the average since the start; after a comma that of "
        "writes. `rate=1m,` and `rate=,1m` limit only one of the two.",
    ),
    Option(
        "rate_iops",
        Kind.COUNTS,
        "",
        "The same in blocks of the smallest size.",
        maximum=U32_MAX,
    ),
    Option(
        "rate_process",
        Kind.CHOICE,
        "linear",
        "Blocks at a rate are evenly spaced, or come by chance.",
        choices=("linear", "poisson"),
    ),
    Option(
        "rate_ignore_thinktime",
        Kind.BOOL,
        "0",
        "What is missed while thinking is not made up for.",
    ),
    Option(
        "startdelay",
        Kind.SECONDS,
        "0",
        "Start so late after the run has begun, or later; unset, `--seed` chooses 0 to 20 ms.",
    ),
    Option(
        "runtime",
        Kind.SECONDS,
        "0",
        "Stop then at the latest, counted from the end of ramp_time; 0: no limit.",
        aliases=("timeout",),
    ),
    Option(
        "time_based", Kind.FLAG, "0", "Begin again until runtime is over; of no effect without one."
    ),
    Option(
        "ramp_time",
        Kind.SECONDS,
        "0",
        "Run this long before anything counts: statistics, runtime, size and rates begin then.",
    ),
    Option(
        "stonewall",
        Kind.FLAG,
        "0",
        "Start when all jobs above are done.",
        aliases=("wait_for_previous",),
    ),
    Option(
        "wait_for",
        Kind.TEXT,
        "",
        "Start when all clones of the job of this name, which stands above, are done.",
    ),
    Option(
        "exitall",
        Kind.FLAG,
        "0",
        "When a job ends, others do: those that exit_what of that one says. Wherever it stands it "
        "is for all jobs.",
    ),
    Option(
        "exit_what",
        Kind.CHOICE,
        "group",
        "group: all since the last new_group or stonewall, up to the next. stonewall: all that "
        "run, and what stands behind the next stonewall begins. all: all.",
        choices=("group", "stonewall", "all"),
    ),
    Option("new_group", Kind.FLAG, "0", "For exitall: another group of jobs begins here."),
    # Who.
    Option("name", Kind.TEXT, "", "Name of the job instead of its section's, at most 63 bytes."),
    Option(
        "cgroup",
        Kind.TEXT,
        "",
        "Jobs with the same cgroup are one owner with `--owners group` (a VM, say); unset: every "
        "section is one.",
    ),
    Option(
        "owner_weight",
        Kind.COUNT,
        "",
        "Not fio's: the share of its processes (or of its group) under stream, stride and wfq, as "
        "of so many others; only in the simulator.",
        minimum=1,
        maximum=MAX_WEIGHT,
    ),
    # How numbers are read.
    Option(
        "kb_base",
        Kind.CHOICE,
        "1024",
        "What k counts; kib is then the other of 1024 and 1000.",
        choices=("1024", "1000"),
    ),
    # One value only: the one that changes nothing.
    Option(
        "fadvise_hint",
        Kind.CHOICE,
        "1",
        "The simulator does Linux' usual readahead, which is 0. At 1, a real fio asks for twice "
        "the window in order, and for none at random.",
        choices=("0", "1"),
    ),
    Option(
        "sync",
        Kind.CHOICE,
        "none",
        "Each write is safe before the next: simulated as fsync=1.",
        choices=("none", "0", "1", "sync", "dsync"),
    ),
    Option(
        "bs_unaligned",
        Kind.CHOICE,
        "0",
        "Blocks are whole sectors.",
        aliases=("blocksize_unaligned",),
        choices=("0",),
    ),
    Option(
        "thinktime_blocks_type",
        Kind.CHOICE,
        "complete",
        "Thinking begins when blocks are complete.",
        choices=("complete",),
    ),
    Option("pre_read", Kind.CHOICE, "0", "The page cache is empty at first.", choices=("0",)),
    Option(
        "verify",
        Kind.CHOICE,
        "0",
        "The simulated disk has no contents; leave it out.",
        choices=("0", "null"),
    ),
    Option("file_append", Kind.CHOICE, "0", "A disk has no end to append to.", choices=("0",)),
    Option(
        "io_submit_mode",
        Kind.CHOICE,
        "inline",
        "offload: with direct=1, requests are sent when their rate says so, whatever is under "
        "way, up to iodepth. inline: a process that waits for its rate first waits for its "
        "requests.",
        choices=("inline", "offload"),
    ),
)

# Accepted with any value: none of these changes what the disk is asked, or when.
IGNORED: tuple[str, ...] = (
    *("description", "comm", "group_reporting", "unified_rw_reporting", "stats", "disk_util"),
    *("unit_base", "thread", "threads", "thinktime_spin", "random_generator"),
    *("log_avg_msec", "log_hist_msec", "log_hist_coarseness", "log_max_value", "log_max"),
    *("log_offset", "log_prio", "log_compression", "log_compression_cpus", "log_store_compressed"),
    *("log_unix_epoch", "log_alternate_epoch", "log_alternate_epoch_clock_id", "log_entries"),
    *("log_window_value", "log_issue_time", "job_start_clock_id"),
    *("per_job_logs", "bwavgtime", "iopsavgtime", "clat_percentiles", "lat_percentiles"),
    *("slat_percentiles", "percentile_list", "significant_figures", "block_error_percentiles"),
    *("clocksource", "gtod_reduce", "gtod_cpu", "disable_lat", "disable_clat", "disable_slat"),
    *("disable_bw_measurement", "disable_bw", "exec_prerun", "exec_postrun", "ioscheduler"),
    *("continue_on_error", "ignore_error", "error_dump", "exitall_on_error"),
    *("zero_buffers", "refill_buffers", "scramble_buffers", "buffer_pattern"),
    *("buffer_compress_percentage", "buffer_compress_chunk", "dedupe_percentage", "dedupe_mode"),
    *("dedupe_working_set_percentage", "dedupe_global", "mem", "iomem", "iomem_align"),
    *("mem_align", "hugepage-size", "lockmem", "cpumask", "cpus_allowed", "cpus_allowed_policy"),
    *("numa_cpu_nodes", "numa_mem_policy", "uid", "gid", "cgroup_nodelete"),
    *("create_serialize", "create_fsync", "create_on_open", "allow_file_create"),
    *("allow_mounted_write", "overwrite", "unlink", "unlink_each_loop", "fallocate"),
    *("fill_device", "fill_fs", "lockfile", "unique_filename", "softrandommap", "rwmixcycle"),
    *("userspace_reap", "hipri", "hipri_percentage", "fixedbufs", "registerfiles", "nonvectored"),
    *("libaio_vectored", "sqthread_poll", "sqthread_poll_cpu", "force_async"),
    *("no_completion_thread", "atomic", "write_hint"),
)

# Accepted as well, but run says so: somebody may expect more of them.
_LOGS = "no log is written at a job file's word; `--requests FILE.csv` has each request"
_VERIFIES = "nothing is verified: the simulated disk has no contents"
_BATCHES = "iodepth requests are kept in flight one by one, whatever batch they came in"
_STOPS = "a job goes on to its size or runtime, however fast or steady it is"

NOTED: dict[str, str] = {
    **dict.fromkeys(
        ("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "write_iolog"), _LOGS
    ),
    **dict.fromkeys(
        (
            *("do_verify", "verify_only", "verify_interval", "verify_offset", "verify_pattern"),
            *("verify_fatal", "verify_dump", "verify_async", "verify_async_cpus"),
            *("verify_backlog", "verify_backlog_batch", "experimental_verify"),
            *("verify_state_load", "verify_state_save", "verify_header_seed"),
            *("verify_pattern_interval", "verify_policy", "verify_write_sequence"),
            *("verifysort", "verifysort_nr"),
        ),
        _VERIFIES,
    ),
    **dict.fromkeys(
        (
            *("iodepth_batch", "iodepth_batch_submit", "iodepth_batch_complete"),
            *("iodepth_batch_complete_min", "iodepth_batch_complete_max", "iodepth_low"),
            "serialize_overlap",
        ),
        _BATCHES,
    ),
    **dict.fromkeys(
        (
            *("steadystate", "ss", "steadystate_duration", "ss_dur", "steadystate_ramp_time"),
            *("ss_ramp", "steadystate_check_interval", "ss_interval", "max_latency"),
            *("rate_min", "ratemin", "rate_iops_min", "rate_cycle", "ratecycle"),
        ),
        _STOPS,
    ),
}

_NO_FLOW = "give the process a thinktime or a rate instead"
_NO_PRIORITY = "all processes have the same priority; leave it out"
_NO_TRIM = "the simulated disk has no trim; read or write"
_NO_REPLAY = "traces are replayed by `streamsched replay`"
_NO_SEARCH = "no depth is sought for a latency; write iodepth="
_NO_ZBD = "the disk is not a zoned block device; use zonemode=strided"
_NO_FLASH = "it is for flash, and a rotating disk has no such thing; leave it out"
_NO_ENGINE = "it belongs to an engine that is not simulated; write ioengine=libaio and filename="

UNSUPPORTED: dict[str, str] = {
    **dict.fromkeys(
        ("flow", "flow_id", "flow_sleep", "flow_watermark", "thinktime_iotime", "thinkcycles"),
        _NO_FLOW,
    ),
    **dict.fromkeys(
        (
            *("prio", "prioclass", "priohint", "nice", "cgroup_weight", "cmdprio"),
            *("cmdprio_class", "cmdprio_hint", "cmdprio_percentage", "cmdprio_bssplit"),
        ),
        _NO_PRIORITY,
    ),
    **dict.fromkeys(
        (
            *("trim_percentage", "trim_verify_zero", "trim_backlog", "trim_backlog_batch"),
            "num_range",
        ),
        _NO_TRIM,
    ),
    "opendir": "which files a directory has is not known; write nrfiles= and filesize=",
    "filetype": "it is for engines that work on names; leave it out",
    **dict.fromkeys(
        (
            *("read_iolog", "read_iolog_chunked", "replay_no_stall", "replay_redirect"),
            *("replay_scale", "replay_align", "replay_time_scale", "replay_skip"),
            *("merge_blktrace_file", "merge_blktrace_scalars", "merge_blktrace_iters"),
        ),
        _NO_REPLAY,
    ),
    **dict.fromkeys(
        ("latency_target", "latency_window", "latency_percentile", "latency_run"), _NO_SEARCH
    ),
    **dict.fromkeys(("create_only", "profile"), "give the job a size or a runtime"),
    "ramp_size": "use ramp_time",
    "percentage_sequential": "use percentage_random",
    "random_sequence_stride": "use random_distribution",
    **dict.fromkeys(
        (
            *("zonecapacity", "read_beyond_wp", "max_open_zones", "job_max_open_zones"),
            *("ignore_zone_limits", "zone_reset_threshold", "zone_reset_frequency"),
            *("recover_zbd_write_error", "write_zone_remainder"),
        ),
        _NO_ZBD,
    ),
    **dict.fromkeys(
        (
            *("sprandom", "spr_op", "spr_cs", "spr_num_regions", "fdp", "fdp_pli"),
            *("fdp_pli_select", "dataplacement", "data_placement", "plids", "plid_select"),
            "dp_scheme",
        ),
        _NO_FLASH,
    ),
    **dict.fromkeys(("sync_file_range", "write_barrier"), "use fsync"),
    "end_syncfs": "use end_fsync",
    "nowait": "no request is given back because it would have to wait; leave it out",
    "uncached": "what was read stays in the page cache; use direct=1",
    **dict.fromkeys(
        (
            *("hostname", "port", "protocol", "proto", "nodelay", "listen", "pingpong"),
            *("interface", "ttl", "window_size", "mss", "bindname", "verb", "uri", "nfs_url"),
            *("pool", "cont", "chunk_size", "chunck_size", "object_class", "svcl"),
            *("clustername", "rbdname", "clientname", "conf", "busy_poll", "touch_objects"),
            *("rbd_encryption_format", "rbd_encryption_passphrase", "volume", "brick"),
            *("single-instance", "single_instance", "namenode", "hdfsdirectory"),
            *("hdfs_use_direct", "https", "http_host", "http_user", "http_pass"),
            *("http_s3_key", "http_s3_keyid", "http_s3_security_token", "http_s3_region"),
            *("http_s3_sse_customer_key", "http_s3_sse_customer_algorithm"),
            *("http_s3_storage_class", "http_swift_auth_token", "http_mode", "http_verbose"),
            *("http_object_mode", "initiator", "cpuload", "cpumode", "cpuchunks"),
            *("exit_on_io_done", "exit_io_done", "donorname", "inplace", "program", "arguments"),
            *("grace_time", "std_redirect", "stat_type", "skip_bad", "thp", "gpu_dev_id"),
            *("gpu_dev_ids", "cuda_io", "rocm_io", "cmd_type", "cdb_len", "readfua"),
            *("writefua", "write_mode", "verify_mode", "read_mode", "verify_bytchk"),
            *("sg_write_mode", "stream_id", "md_per_io_size", "pi_act", "pi_chk", "apptag"),
            *("apptag_mask", "deac", "xnvme_be", "xnvme_mem", "xnvme_async", "xnvme_sync"),
            *("xnvme_admin", "xnvme_dev_nsid", "xnvme_dev_subnqn", "xnvme_iovec"),
            *("libblkio_driver", "libblkio_path", "libblkio_pre_connect_props"),
            *("libblkio_num_entries", "libblkio_queue_size", "libblkio_pre_start_props"),
            *("libblkio_vectored", "libblkio_write_zeroes_on_trim", "libblkio_wait_mode"),
            "libblkio_force_enable_completion_eventfd",
        ),
        _NO_ENGINE,
    ),
}

# fio's other engines, and why they are refused.
_NO_IO = "reads and writes nothing"
_NO_DISK = "works on memory or flash, not on a disk"
_NETWORK = "works over a network, not on a disk"
_PAST = "sends commands past the block layer, where no I/O scheduler sees them"
_NAMES = "works on names and sizes of files, not on what is in them"
_MAPPED = "reads and writes by other system calls than are simulated"

ENGINES: dict[str, str] = {
    **dict.fromkeys(("null", "cpp_null", "cpuio", "exec", "page_fault"), _NO_IO),
    **dict.fromkeys(
        (
            *("net", "netsplice", "rdma", "rados", "rbd", "http", "gfapi", "gfapi_async"),
            *("libhdfs", "libiscsi", "nbd", "nfs", "dfs", "ime_psync", "ime_psyncv", "ime_aio"),
            *("librpma_apm_client", "librpma_apm_server", "librpma_gpspm_client"),
            *("librpma_gpspm_server", "sheepdog"),
        ),
        _NETWORK,
    ),
    **dict.fromkeys(("sg", "io_uring_cmd", "xnvme", "libzbc", "libblkio", "bsg"), _PAST),
    **dict.fromkeys(
        (*("libpmem", "pmemblk", "dev-dax", "mtd", "fusion-aw-sync"),),
        _NO_DISK,
    ),
    **dict.fromkeys(
        (
            *("filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete"),
            *("filexattr", "falloc", "ftruncate", "e4defrag"),
        ),
        _NAMES,
    ),
    **dict.fromkeys(("mmap", "splice", "libcufile", "libhipfile"), _MAPPED),
}

BY_KEY: dict[str, Option] = {
    name: option for option in OPTIONS for name in (option.key, *option.aliases)
}


def nearest_key(key: str) -> str:
    """The supported or accepted key that looks most like @key."""
    known = sorted({*BY_KEY, *IGNORED, *NOTED})
    return difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.0)[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def options_markdown() -> str:
    """The tables of docs/sim/JOBS.md."""
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for option in OPTIONS:
        keys = ", ".join(f"`{key}`" for key in (option.key, *option.aliases))
        kind = option.kind.value
        if option.kind is Kind.CHOICE:
            kind = ", ".join(f"`{choice}`" for choice in option.choices)
        default = f"`{option.default}`" if option.default else ""
        lines.append(f"| {keys} | {_cell(kind)} | {default} | {_cell(option.help)} |")
    lines += ["", "Accepted, and without effect on what the disk is asked:", ""]
    lines.append(", ".join(f"`{key}`" for key in sorted(IGNORED)) + ".")
    lines += ["", "Accepted and without effect as well, with a note:", "", "| keys | why |"]
    lines += ["|---|---|", *_by_reason(NOTED)]
    refused = {key: why for key, why in UNSUPPORTED.items() if why != _NO_ENGINE}
    lines += ["", "fio's, and refused here, as are the options of the engines below:", ""]
    lines += ["| keys | instead |", "|---|---|", *_by_reason(refused)]
    lines += ["", "Engines that are refused:", "", "| ioengine | it |", "|---|---|"]
    lines += _by_reason(ENGINES)
    return "\n".join(lines) + "\n"


def _by_reason(keys: Mapping[str, str]) -> Iterator[str]:
    """A row for each reason."""
    for reason in dict.fromkeys(keys.values()):
        names = ", ".join(f"`{key}`" for key, why in keys.items() if why == reason)
        yield f"| {names} | {_cell(reason)} |"
