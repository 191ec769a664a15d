# SPDX-License-Identifier: GPL-2.0-only
"""One simulation: a disk or an array, a policy, processes or a trace, run by the C simulator."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from streamsched._core import ffi, lib
from streamsched.base.errors import StreamschedError, UsageError
from streamsched.sim import pythonpolicy
from streamsched.sim.array import Array
from streamsched.sim.chooser import Choice, Chooser, Selection
from streamsched.sim.diskfile import Disk
from streamsched.sim.requestlog import REASONS
from streamsched.work.looks import SAMPLE_S, Observation
from streamsched.work.process import Process

OWNERS = ("process", "group", "none")

# What Linux 2.6.31 has: block/blk-settings.c, mm/readahead.c, mm/page-writeback.c.
NR_REQUESTS = 128
MAX_REQUEST_SECTORS = 1024
READAHEAD_PAGES = 32
DIRTY_PCT = 20
# The paper's machine has 2 GB of memory. Processor times are estimates for it
# (Core 2 Duo): copying a page out of the page cache; waking up after I/O.
CACHE_BYTES = 2 << 30
PAGE_COPY_NS = 1500
WAKE_NS = 10_000

EVENTS_PER_CALL = 200_000
# What a scheduler begins with that a policy in Python is then given to.
PLACE_HOLDER = "noop"
NS = 1_000_000_000

Progress = Callable[[float], None]
Requests = Callable[[bytes], object]  # rows of struct sim_log_row


@dataclasses.dataclass(frozen=True)
class Setup:
    """What a simulation needs beside its work."""

    disk: Disk
    policy: str
    owners: str = "process"
    queue_depth: int = 1
    tunables: tuple[tuple[str, int], ...] = ()
    weights: tuple[tuple[int, int], ...] = ()  # owner, weight
    curve: str = "measured"
    array: Array | None = None
    disks: tuple[Disk, ...] = ()  # the array's members, if they are not all alike
    cache_bytes: int = CACHE_BYTES
    dirty_pct: int = DIRTY_PCT
    readahead_pages: int | None = None  # None: as Linux has it for this disk or array
    nr_requests: int = NR_REQUESTS
    max_request_sectors: int = MAX_REQUEST_SECTORS
    wrap: bool = False
    closed: bool = False
    one_owner: int | None = None  # replay this owner's requests only
    stop_ns: int = 0  # end then at the latest; 0: no limit
    path: str | None = None  # on the real kernel: the layers above the disk
    selection: Selection | None = None  # with the policy auto: how it is chosen
    label: str = ""  # the policy with settings of its own, if it has any

    @property
    def shown(self) -> str:
        """What it is called in results."""
        return self.label or self.policy

    @property
    def members(self) -> tuple[Disk, ...]:
        """Every disk there is."""
        if self.array is None:
            return (self.disk,)
        return self.disks or (self.disk,) * self.array.members

    @property
    def capacity_bytes(self) -> int:
        """Of the disk, or of the array."""
        if self.array is None:
            return self.disk.capacity_sectors * 512
        return self.array.capacity_sectors([d.capacity_sectors for d in self.members]) * 512


@dataclasses.dataclass(frozen=True)
class Times:
    """A distribution, in milliseconds."""

    mean: float
    p50: float
    p99: float
    p999: float
    max: float


# A histogram: (the greatest time of a bucket in ns, how many), those that are not empty.
Buckets = tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True)
class JobRun:
    """What one process did."""

    name: str
    bytes_read: int
    bytes_written: int
    blocks: tuple[int, int]
    duration_ns: int
    latency: tuple[dict[str, int], dict[str, int]]  # sim_times of reads, of writes
    longest_wait_ns: int
    response: Times  # as the process sees it, reads and writes together
    histogram: Buckets = ()  # of the same
    stage: int = 0  # those of one stage run together
    section: int = 0  # clones of one job are alike

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def rate(self) -> float:
        """Bytes a second, while it ran."""
        return self.bytes / (self.duration_ns / NS) if self.duration_ns else 0.0


@dataclasses.dataclass(frozen=True)
class Run:
    """What came of a simulation; times in ns unless a name says otherwise."""

    setup: Setup
    duration_ns: int
    bytes_read: int
    bytes_written: int
    disk_requests: int
    wait: Times
    service: Times
    response: Times
    switches: int
    switch_ns: int
    position_ns: int
    busy_ns: int
    counters: dict[str, int]
    jobs: tuple[JobRun, ...]
    skipped: int = 0
    array_counters: dict[str, int] = dataclasses.field(default_factory=dict)
    observed: tuple[Observation, Observation] | None = None  # after the last ramp, at the end
    choices: tuple[Choice, ...] = ()  # with the policy auto: the first one is the beginning
    histograms: dict[str, Buckets] = dataclasses.field(default_factory=dict)  # HISTOGRAMS
    reasons: dict[str, int] = dataclasses.field(default_factory=dict)  # dispatches, by enum ss_why
    reason_waits: dict[str, int] = dataclasses.field(default_factory=dict)  # of those, sum

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def seconds(self) -> float:
        return self.duration_ns / NS

    @property
    def mb_s(self) -> float:
        """Throughput in 10^6 bytes a second."""
        return self.bytes / 1e6 / self.seconds if self.duration_ns else 0.0

    @property
    def seeks_s(self) -> float:
        return self.counters["seeks"] / self.seconds if self.duration_ns else 0.0

    @property
    def switch_ms(self) -> float:
        """Mean positioning of a request after another process's."""
        return self.switch_ns / self.switches / 1e6 if self.switches else 0.0

    @property
    def idle_share(self) -> float:
        """The part of the time in which a disk idled with requests pending, on the average."""
        disks = len(self.setup.members)
        return self.counters["idle_ns"] / self.duration_ns / disks if self.duration_ns else 0.0


COUNTERS = (
    "dispatches",
    "merges",
    "seeks",
    "waits",
    "hits",
    "timeouts",
    "second_chances",
    "slices_ended",
    "expired",
    "idle_ns",
)
# Distributions of the disks' requests: enum sim_histogram, in its order.
HISTOGRAMS = ("wait", "service", "response")
# Of a coordinated array: core/array/array.h.
ARRAY_COUNTERS = ("turns", "slices_ended", "established")


def check_depth(depth: int, disks: Iterable[Disk], name: str = "queue depth") -> None:
    """Refuse a @depth, given as @name, that one of @disks has no queue for.

    The disk model keeps its own depth then, so that nobody would notice.
    """
    for disk in disks:
        if not 1 <= depth <= disk.queue_depth:
            takes = f"1 to {disk.queue_depth} commands" if disk.queue_depth > 1 else "1 command"
            raise UsageError(f"{name} {depth}: {disk.name} takes {takes} at once")


def disk_params(disk: Disk) -> Any:
    """The C simulator's parameters (struct hdd_params) of @disk."""
    params = ffi.new("struct hdd_params *")
    known = {name for name, _ in ffi.typeof(params[0]).fields}
    for field in dataclasses.fields(disk):
        if field.name not in known:
            continue
        value = getattr(disk, field.name)
        if isinstance(value, tuple):
            for i, entry in enumerate(value):
                getattr(params, field.name)[i] = entry
        else:
            setattr(params, field.name, value)
    return params


def _said(why: Any) -> str:
    """A sentence of the core's; a name in it may have been no UTF-8, or cut within a character."""
    return str(ffi.string(why).decode(errors="backslashreplace"))


def drive_memory(params: Any) -> Any:
    """A struct hdd_drive for hdd_drive_init(), with all the memory that @params need."""
    memory = ffi.new("char[]", lib.hdd_drive_bytes(params))
    # What is cast does not keep its memory: the destructor does.
    return ffi.gc(ffi.cast("struct hdd_drive *", memory), lambda _, kept=memory: None)


@functools.lru_cache(maxsize=16)
def measured_curve(disk: Disk) -> tuple[tuple[int, int], ...]:
    """The service-time curve of @disk, measured on the model as the paper measures a disk."""
    params = disk_params(disk)
    distance, time = ffi.new("uint64_t[40]"), ffi.new("uint64_t[40]")
    why = ffi.new("char **")
    nr = lib.hdd_measure_curve(drive_memory(params), params, 40, distance, time, why)
    if nr < 0:
        raise UsageError(f"{disk.name}: {ffi.string(why[0]).decode()}")
    return tuple((distance[i], time[i]) for i in range(nr))


def _config(setup: Setup, policy: str) -> Any:
    config = ffi.new("struct sim_config *")
    config.policy = policy.encode()
    config.owners = OWNERS.index(setup.owners)
    config.queue_depth = setup.queue_depth
    config.nr_requests = setup.nr_requests
    config.max_request_sectors = setup.max_request_sectors
    config.cache_bytes = setup.cache_bytes
    config.dirty_pct = setup.dirty_pct
    config.readahead_pages = READAHEAD_PAGES
    if setup.readahead_pages is not None:
        config.readahead_pages = setup.readahead_pages
    elif setup.array is not None:
        config.readahead_pages = max(READAHEAD_PAGES, setup.array.readahead_pages)
    config.page_copy_ns = PAGE_COPY_NS
    config.wake_ns = WAKE_NS
    config.wrap = setup.wrap
    config.closed = setup.closed
    config.stop_ns = setup.stop_ns
    if setup.one_owner is not None:
        config.one_owner = True
        config.the_owner = setup.one_owner
    return config


@dataclasses.dataclass(frozen=True)
class Source:
    """A trace to replay, given as pieces of its bytes with the part of the file read so far."""

    name: str  # in messages
    format: str
    chunks: Iterator[tuple[bytes, float]]
    device: str | None = None
    skip_bad: bool = False
    first_sector: int = 0  # where its disk begins on the simulated one


class Simulation:
    """A struct sim; use it in a with statement."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.readers: list[Any] = []
        self._why = ffi.new("char[512]")
        self.chooser: Chooser | None = None
        self.choices: list[Choice] = []
        policy = setup.policy
        if setup.selection is not None:
            self.chooser = setup.selection.begin()
            policy = self.chooser.current
            self.choices.append(self.chooser.first)
        members = setup.members
        python = pythonpolicy.is_python(policy)
        # Each disk has a policy of its own.
        self.python = [pythonpolicy.begin(policy) for _ in members] if python else []
        check_depth(setup.queue_depth, members)
        params = {disk: disk_params(disk) for disk in dict.fromkeys(members)}
        self.sim = lib.sim_new(
            _config(setup, PLACE_HOLDER if python else policy),
            ffi.new("struct hdd_params *[]", [params[disk] for disk in members]),
            len(members),
            setup.array.params() if setup.array else ffi.NULL,
            self._why,
            512,
        )
        if not self.sim:
            raise UsageError(_said(self._why))
        for index, one in enumerate(self.python):
            lib.sim_set_foreign(self.sim, index, one.foreign)
        if setup.curve == "measured":
            for index, disk in enumerate(members):
                self._set_curve(index, measured_curve(disk))
        self._began, self._ramped_ns = self.observe(), 0
        if self.chooser:
            # Settings are for the other policies of a comparison.
            lib.sim_pause_at(self.sim, int(SAMPLE_S * NS))
            return
        self._tune(setup.tunables)
        for owner, weight in setup.weights:
            # As above; all else was checked when the weights were parsed.
            status = lib.sim_weigh(self.sim, owner, weight)
            if status and status != -2:
                self.close()
                raise UsageError("too many owners have a weight; 128 can have one")

    def _tune(self, tunables: tuple[tuple[str, int], ...]) -> None:
        for name, value in tunables:
            # A tunable of another policy of the same comparison is not ours.
            status = lib.sim_tune(self.sim, name.encode(), value, self._why, 512)
            if status and status != -2:
                self.close()
                raise UsageError(_said(self._why))

    def _set_curve(self, disk: int, points: tuple[tuple[int, int], ...]) -> None:
        distances = [distance for distance, _ in points]
        times = [time for _, time in points]
        if lib.sim_set_curve(self.sim, disk, distances, times, len(points), self._why, 512):
            self.close()
            raise UsageError(_said(self._why))

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free what C holds."""
        lib.sim_free(self.sim)
        self.sim = ffi.NULL
        for reader in self.readers:
            lib.trace_close(reader)
        self.readers = []

    def add(self, process: Process) -> None:
        """One more process."""
        if lib.sim_add_job(self.sim, ffi.new("struct sim_job *", process.params())):
            raise StreamschedError(f"{process.name}: its pool of threads is out of range")
        if process.ramp_ns and not self.chooser:
            self._ramped_ns = max(self._ramped_ns, process.startdelay_ns + process.ramp_ns)
            lib.sim_pause_at(self.sim, self._ramped_ns)
        if not process.distribution:
            return
        for direction in (0, 1):
            table = process.distribution.table(direction, process.units, process.align_bytes)
            if table and lib.sim_set_places(self.sim, direction, *table, len(table[0])):
                raise StreamschedError(f"{process.name}: its zones are not in order")

    def add_trace(self, source: Source) -> None:
        """One more trace, which feed() then gives bytes."""
        reader = lib.trace_open(source.format.encode(), source.skip_bad)
        if not reader:
            raise StreamschedError("out of memory")
        self.readers.append(reader)
        if source.device is not None:
            lib.trace_select_device(reader, os.fsencode(source.device))
        if lib.sim_add_trace(self.sim, reader, source.first_sector):
            raise UsageError(f"at most {lib.SIM_MAX_TRACES} traces can be replayed together")

    def log(self, rows: int) -> None:
        """Keep a row for each of the first @rows requests; 0: of all."""
        lib.sim_log(self.sim, rows)

    def take_log(self) -> bytes:
        """The rows kept since the last call, as they lie in memory (struct sim_log_row)."""
        rows = ffi.new("struct sim_log_row **")
        nr = lib.sim_log_rows(self.sim, rows)
        taken = bytes(ffi.buffer(rows[0], nr * ffi.sizeof("struct sim_log_row"))) if nr else b""
        lib.sim_log_clear(self.sim)
        return taken

    def log_column(self, field: str) -> list[int]:
        """One field of struct sim_log_row, of each request kept."""
        rows = ffi.new("struct sim_log_row **")
        nr = lib.sim_log_rows(self.sim, rows)
        return [getattr(rows[0][i], field) for i in range(nr)]

    def log_rows(self) -> list[tuple[int, int, int, int, int, int]]:
        """(arrival, dispatch, completion in ns, sector, sectors, job) of each request kept."""
        rows = ffi.new("struct sim_log_row **")
        nr = lib.sim_log_rows(self.sim, rows)
        fields = ("arrival_ns", "dispatch_ns", "complete_ns", "sector", "nr_sectors", "job")
        return [tuple(getattr(rows[0][i], f) for f in fields) for i in range(nr)]

    def steps(self, feed: Callable[[], bool] | None = None) -> Iterator[float]:
        """Run to the end; gives the part done after each lump of events."""
        watched = pythonpolicy.watched if self.python else contextlib.nullcontext
        while True:
            with watched():
                state = lib.sim_run(self.sim, EVENTS_PER_CALL)
            if state == lib.SIM_DONE:
                return
            if state == lib.SIM_FAILED:
                why = _said(lib.sim_why(self.sim))
                for one in self.python:
                    one.raise_error(why)
                raise UsageError(why)
            if state == lib.SIM_PAUSED:
                if self.chooser:
                    self._choose()
                else:
                    self._began = self.observe()  # a ramp is over
                continue
            if state == lib.SIM_INPUT:
                if feed is None:
                    raise StreamschedError("the simulator asks for a trace and has none")
                feed()
                continue
            yield lib.sim_progress_ppm(self.sim) / 1e6

    def observe(self) -> Observation:
        """What can be seen of the workload from outside, until now."""
        raw = ffi.new("struct sim_observation *")
        lib.sim_observe(self.sim, raw)
        return Observation(
            now_s=raw.now_ns / NS,
            requests=raw.arrived.requests,
            sent_bytes=raw.arrived.sectors * 512,
            reads=raw.arrived.reads,
            sync=raw.arrived.sync,
            continuing=raw.arrived.continuing,
            near=raw.arrived.near,
            completed=raw.completed,
            response_s=raw.response_ns / NS,
            done_bytes=raw.bytes[0] + raw.bytes[1],
        )

    def _choose(self) -> None:
        """Ask the chooser, and have the scheduler changed if it says so."""
        assert self.chooser
        now = lib.sim_now_ns(self.sim)
        choice = self.chooser.observe(self.observe())
        if choice:
            self.choices.append(choice)
            self.switch(choice.policy)
        lib.sim_pause_at(self.sim, now + int(SAMPLE_S * NS))

    def switch(self, policy: str) -> None:
        """Another scheduler, as soon as all that has begun is done."""
        if lib.sim_switch(self.sim, policy.encode(), self._why, 512):
            raise UsageError(_said(self._why))

    def _buckets(self, function: Any, which: int) -> Buckets:
        buckets = ffi.new("struct sim_bucket[]", lib.SIM_MAX_BUCKETS)
        nr = function(self.sim, which, buckets)
        return tuple((buckets[i].ns, buckets[i].count) for i in range(nr))

    def result(self, processes: Sequence[Process]) -> Run:
        """What has come of it so far."""
        raw = ffi.new("struct sim_result *")
        lib.sim_result(self.sim, raw)
        job = ffi.new("struct sim_job_result *")
        jobs = []
        for index, process in enumerate(processes):
            lib.sim_job_result(self.sim, index, job)
            jobs.append(
                JobRun(
                    process.name,
                    job.bytes[0],
                    job.bytes[1],
                    (job.blocks[0], job.blocks[1]),
                    job.end_ns - job.start_ns,
                    (_raw_times(job.latency[0]), _raw_times(job.latency[1])),
                    job.wait.max_ns,
                    _times(job.response),
                    self._buckets(lib.sim_job_histogram, index),
                    process.stage,
                    process.section,
                )
            )
        return Run(
            setup=self.setup,
            duration_ns=raw.duration_ns,
            bytes_read=raw.process_bytes[0],
            bytes_written=raw.process_bytes[1],
            disk_requests=raw.disk_requests,
            wait=_times(raw.wait),
            service=_times(raw.service),
            response=_times(raw.response),
            switches=raw.switches,
            switch_ns=raw.switch_ns,
            position_ns=raw.position_ns,
            busy_ns=raw.busy_ns,
            counters={name: getattr(raw, name) for name in COUNTERS},
            jobs=tuple(jobs),
            observed=(self._began, self.observe()),
            choices=tuple(self.choices),
            histograms={
                name: self._buckets(lib.sim_histogram, which)
                for which, name in enumerate(HISTOGRAMS)
            },
            array_counters={name: getattr(raw, f"array_{name}") for name in ARRAY_COUNTERS}
            if self.setup.array
            else {},
            reasons=_by_reason(raw.dispatched_by),
            reason_waits=_by_reason(raw.waited_ns_by),
            skipped=sum(map(lib.trace_skipped, self.readers)),
        )


def _by_reason(values: Any) -> dict[str, int]:
    """Those of enum ss_why for which requests are dispatched, not those that only wait."""
    waits = (lib.SS_WHY_PAUSE, lib.SS_WHY_DRAIN)
    return {name: values[why] for why, name in enumerate(REASONS) if why not in waits}


def _raw_times(times: Any) -> dict[str, int]:
    return {name: getattr(times, name) for name, _ in ffi.typeof(times).fields}


def _times(times: Any) -> Times:
    ms = 1e6
    return Times(
        times.mean_ns / ms,
        times.p50_ns / ms,
        times.p99_ns / ms,
        times.p999_ns / ms,
        times.max_ns / ms,
    )


def run_jobs(
    setup: Setup,
    processes: list[Process],
    progress: Progress | None = None,
    requests: Requests | None = None,
) -> Run:
    """Simulate @processes to their end; @requests is given each request's row."""
    with Simulation(setup) as simulation:
        for process in processes:
            simulation.add(process)
        if requests:
            simulation.log(0)
        for part in simulation.steps():
            if progress:
                progress(part)
            if requests:
                requests(simulation.take_log())
        if requests:
            requests(simulation.take_log())
        return simulation.result(processes)


def trace_requests(
    format_name: str,
    chunks: Iterable[tuple[bytes, float]],
    *,
    device: str | None = None,
    skip_bad: bool = False,
) -> Iterator[Any]:
    """Each struct trace_request of a trace, which is the next one when that is asked for.

    UsageError says what is wrong with the trace.
    """
    reader = lib.trace_open(format_name.encode(), skip_bad)
    request = ffi.new("struct trace_request *")
    try:
        if device is not None:
            lib.trace_select_device(reader, os.fsencode(device))
        for chunk, _ in itertools.chain(chunks, [(b"", 1.0)]):
            lib.trace_feed(reader, chunk, len(chunk), not chunk)
            while (got := lib.trace_next(reader, request)) > 0:
                yield request
            if got < 0:
                raise UsageError(_said(lib.trace_why(reader)))
    finally:
        lib.trace_close(reader)


def trace_end(
    format_name: str,
    chunks: Iterable[tuple[bytes, float]],
    *,
    device: str | None = None,
    skip_bad: bool = False,
) -> int:
    """The sector behind the last one that a trace goes to; UsageError if it is bad."""
    requests = trace_requests(format_name, chunks, device=device, skip_bad=skip_bad)
    return max(int(request.sector) + int(request.nr_sectors) for request in requests)


def trace_owner(number: int, owner: int) -> int:
    """What an owner in trace @number is, of several that are replayed together."""
    bits = int(lib.SIM_OWNER_BITS)
    return number << bits | owner & ((1 << bits) - 1)


def trace_owners(
    format_name: str,
    chunks: Iterable[tuple[bytes, float]],
    limit: int,
    *,
    device: str | None = None,
    skip_bad: bool = False,
) -> list[int]:
    """The owners in a trace, in order of appearance; at most one more than @limit.

    What is wrong with the trace is left to the replay to say.
    """
    owners: dict[int, None] = {}
    with contextlib.suppress(UsageError):
        for request in trace_requests(format_name, chunks, device=device, skip_bad=skip_bad):
            owners[request.owner] = None
            if len(owners) > limit:
                break
    return list(owners)


def run_trace(
    setup: Setup,
    format_name: str,
    chunks: Iterator[tuple[bytes, float]],
    *,
    progress: Progress | None = None,
    requests: Requests | None = None,
) -> Run:
    """Replay one trace, given as Source.chunks."""
    return run_traces(setup, [Source("", format_name, chunks)], progress, requests)


def run_traces(
    setup: Setup,
    sources: Sequence[Source],
    progress: Progress | None = None,
    requests: Requests | None = None,
) -> Run:
    """Replay traces together, each from time 0."""
    parts = [0.0] * len(sources)
    with Simulation(setup) as simulation:
        for source in sources:
            simulation.add_trace(source)
        if requests:
            simulation.log(0)

        def feed() -> bool:
            if requests:
                requests(simulation.take_log())
            at = lib.sim_trace_at(simulation.sim)
            chunk, parts[at] = next(sources[at].chunks, (b"", 1.0))
            lib.trace_feed(simulation.readers[at], chunk, len(chunk), not chunk)
            if progress:
                progress(sum(parts) / len(parts))
            return bool(chunk)

        try:
            for _ in simulation.steps(feed):
                if requests:
                    requests(simulation.take_log())
        except pythonpolicy.PolicyError:  # is not a trace's
            raise
        except UsageError as error:
            name = sources[lib.sim_trace_at(simulation.sim)].name
            if not name or str(error).startswith(f"{name}: "):
                raise
            raise UsageError(f"{name}: {error}") from None
        if requests:
            requests(simulation.take_log())
        return simulation.result([])
