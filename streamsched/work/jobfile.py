# SPDX-License-Identifier: GPL-2.0-only
"""fio job files as workloads: text in, one Process per clone out, computed as fio computes it.

How lines are read is in fio_lines.py, what each option means in fio_options.py, how values are
read in fio_values.py, what a job's options mean together in fio_job.py, and where its clones work
in fio_region.py. Here are the processes of the whole file. docs/sim/JOBS.md describes all of it.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamsched.base.errors import UsageError
from streamsched.work import fio_lines
from streamsched.work.fio_files import File, Files, Placed
from streamsched.work.fio_job import Blocks, FioJob
from streamsched.work.fio_lines import Setting, read_sections, read_text
from streamsched.work.fio_options import IGNORED, MAX_JOBS, NOTED, options_markdown
from streamsched.work.fio_places import NORMAL, TABLE, UNIFORM, Places
from streamsched.work.fio_values import (
    READ,
    SERVICES,
    WRITE,
    Amount,
    Values,
    defaults,
)
from streamsched.work.process import RW_READ, RW_WRITE, Process

__all__ = [
    "JobFile",
    "Section",
    "load_job_file",
    "load_jobs",
    "options_markdown",
    "parse_job_file",
    "parse_jobs",
]

# A run with a seed starts each process within so long.
START_SPREAD_NS = 20_000_000
U64_MASK = 2**64 - 1
# enum sim_exits
EXITS = {"group": 1, "stonewall": 2, "all": 3}


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """One section, as fio_write.py writes it for a real fio."""

    name: str
    values: Values
    blocks: tuple[Blocks, Blocks]
    iodepth: int  # what is really kept in flight
    only_here: str = ""  # why no real fio can do it


@dataclasses.dataclass(frozen=True, slots=True)
class JobFile:
    """A job file that was read once, for all that is done with it."""

    name: str
    processes: tuple[Process, ...]
    sections: tuple[Section, ...]
    exits: bool = False  # the end of one job is that of others
    ignored: tuple[str, ...] = ()  # accepted keys without effect, which no fio is given
    sha256: str = ""  # of the text


def _opens(job: FioJob) -> str:
    directory = job.directories[0]
    return ":".join(f"{directory}/{name}" if directory else name for name in job.names)


def _placed(job: FioJob, units: int) -> Places | None:
    """The distribution, if all of it is within @units."""
    if job.places and job.places.name == "zoned_abs":
        for direction in (READ, WRITE):
            *_, (_, end) = job.places.ends(direction)
            if end > units * job.align:
                raise job.fail(
                    "random_distribution",
                    f"its zones end at byte {end} of a region of {units * job.align}; make "
                    "them smaller or size larger",
                )
    if job.places and job.places.zoned:
        for direction in (READ, WRITE):
            ends = job.places.table(direction, units, job.align)
            assert ends
            if any(a >= b for a, b in itertools.pairwise((0, *ends[0]))):
                raise job.fail(
                    "random_distribution",
                    f"a zone holds no block of {job.align} bytes; make it larger",
                )
    return job.places


@dataclasses.dataclass(frozen=True, slots=True)
class _Read:
    """One section that was read."""

    job: FioJob
    as_written: Values
    group: int
    stage: int
    exit_group: int


def _processes(
    read: _Read, section: int, exits: bool, clones: Sequence[Placed]
) -> Iterator[Process]:
    """All clones, in ascending order of position; @exits: the end of one is that of others."""
    job = read.job
    number = job.number
    writes = bool(job.bits & RW_WRITE)
    direct = bool(number("direct"))
    offload = job.values.words["io_submit_mode"] == "offload"
    deep = direct and (offload or job.is_async)
    percentages = job.pair("percentage_random")
    places = job.places
    rate = job.rate()
    mixed = bool(job.bits & RW_READ) and writes
    reads, written = job.blocks
    for place in clones:
        region = place.region
        units = region.size // job.align
        yield Process(
            name=job.name,
            section=section,
            group=read.group,
            rw=job.bits,
            read_pct=number("rwmixread") if mixed else (0 if writes else 100),
            offset=region.offset,
            size=region.size,
            io_bytes=region.io_bytes,
            nr_splits=(len(reads.sizes), len(written.sizes)),
            split_bytes=(reads.sizes, written.sizes),
            split_pct=(reads.weights, written.weights),
            range_min=(reads.low, written.low),
            range_max=(reads.high, written.high),
            align_bytes=job.align,
            seq_skip=job.skip,
            direct=direct,
            norandommap=job.norandommap,
            iodepth=number("iodepth") if deep else 1,
            thinktime_ns=number("thinktime"),
            thinktime_blocks=number("thinktime_blocks"),
            startdelay_ns=number("startdelay"),
            runtime_ns=number("runtime"),
            time_based=bool(number("time_based")),
            fsync_blocks=(number("fsync") or number("fdatasync")) if writes else 0,
            end_fsync=writes and bool(number("end_fsync") or number("fsync_on_close")),
            seed=job.values.numbers.get("randseed", 0),
            stage=read.stage,
            zone_size=number("zonesize") if job.strided else 0,
            zone_range=(number("zonerange") or number("zonesize")) if job.strided else 0,
            zone_skip=number("zoneskip") if job.strided else 0,
            in_order_pct=(100 - percentages[READ], 100 - percentages[WRITE]),
            random_every=job.values.rw_every,
            stays=job.values.words["rw_sequencer"] == "identical",
            sizes_by_order=job.by_order,
            places=UNIFORM if not places else NORMAL if places.name == "normal" else TABLE,
            scattered=places is not None and not places.zoned,
            scattered_alike=places is not None
            and (places.name == "normal" or places.center is not None),
            places_shift=places.shift(units) if places else 0,
            normal_spread=places.spread(units) if places else 0,
            rate=rate,
            rate_unit=(reads.smallest, written.smallest) if any(rate) else (0, 0),
            rate_poisson=any(rate) and job.values.words["rate_process"] == "poisson",
            rate_forgives=any(rate) and bool(number("rate_ignore_thinktime")),
            offload=offload,
            drops_pages=bool(number("invalidate")),
            ramp_ns=number("ramp_time"),
            wait_for=job.values.words.get("wait_for", ""),
            nr_files=job.files,
            file_stride=region.file_stride,
            file_size=region.file_size,
            open_files=min(number("openfiles") or job.files, job.files),
            file_service=SERVICES.index(job.values.service[0]),
            file_service_blocks=job.values.service[1],
            exits=EXITS[job.values.words["exit_what"]] if exits else 0,
            exit_group=read.exit_group,
            distribution=_placed(job, units),
            weight=job.values.numbers.get("owner_weight"),
            opens=_opens(job),
        )


def _mix(seed: int, number: int) -> int:
    """A seed of its own for each process (the finalizer of splitmix64)."""
    z = (seed + (number + 1) * 0x9E3779B97F4A7C15) & U64_MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & U64_MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & U64_MASK
    return z ^ (z >> 31)


def parse_job_file(
    text: str,
    source: str = "job file",
    *,
    capacity_bytes: int | None = None,
    environ: Mapping[str, str] | None = None,
    seed: int = 0,
    beside: Path | None = None,
    notes: list[str] | None = None,
) -> JobFile:
    """A job file's text, read.

    @source is what errors call the file, @capacity_bytes the disk's size (None: unknown, then
    percentages are errors), @environ what ${NAME} is sought in, @seed the run's seed, which a
    randseed goes before, and @beside the directory of the file, for its includes. What a user of
    fio would not expect, though it is no error, is added to @notes.
    """
    environ = os.environ if environ is None else environ
    sections = read_sections(text, source, beside)
    exits = _exits(sections)
    reads = list(_read(sections, environ, exits))
    if not reads:
        raise UsageError(f"{source}: has no job; write a section [NAME] with rw= and size=")
    keys = dict.fromkeys(one.key for section in sections for one in section.settings)
    if notes is not None:
        if noted := [key for key in keys if key in NOTED]:
            notes.append(f"{source}: of no effect on what is simulated: {', '.join(noted)}")
        notes.extend(f"{source}: {note}, as in fio" for read in reads for note in read.job.notes())
        notes.extend(
            f"{source}: sync={job.values.words['sync']} of {job.name} is simulated as fsync=1"
            for job in (read.job for read in reads)
            if job.synced
        )
    written: list[Section] = []
    processes: list[Process] = []
    files: list[tuple[File, Process]] = []
    all_places = Files([read.job for read in reads], capacity_bytes, environ).places()
    for section, (read, places) in enumerate(zip(reads, all_places, strict=True)):
        values = read.job.values
        _check_waited_for(read.job, processes)
        base = values.numbers.get("randseed", seed)
        of_job = list(_processes(read, section, exits, places))
        for process, place in zip(of_job, places, strict=True):
            number = len(processes)
            process = dataclasses.replace(process, seed=_mix(base, number))
            # So that each seed makes another run, also of work in which nothing is random.
            if seed and "startdelay" not in values.lines:
                late_ns = _mix(seed, MAX_JOBS + number) % START_SPREAD_NS
                process = dataclasses.replace(process, startdelay_ns=late_ns)
            processes.append(process)
            files.append((place.file, process))
        written.append(_section(read, of_job, places))
    if notes is not None:
        notes.extend(_shared_places(source, files))
    ignored = tuple(key for key in keys if key in IGNORED or key in NOTED)
    digest = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    name = Path(source).name
    return JobFile(name, tuple(processes), tuple(written), exits, ignored, digest)


def _read(
    sections: Sequence[fio_lines.Section], environ: Mapping[str, str], exits: bool
) -> Iterator[_Read]:
    """All that are jobs; @exits: exitall stands somewhere."""
    common = defaults()
    groups: dict[tuple[str, str | int], int] = {}
    weights: dict[int, int | None] = {}  # by group
    stage = jobs = exit_group = clones = 0
    for section in sections:
        if section.is_global:
            common.apply_all(section.settings, environ)
            continue
        values = common.copy()
        values.apply_all(section.settings, environ)
        as_written = values.copy()
        job = FioJob(section, values)
        stage += bool(jobs and values.numbers["stonewall"])
        exit_group += bool(jobs and (values.numbers["stonewall"] or values.numbers["new_group"]))
        if "exit_what" in values.lines and not exits:
            raise job.fail("exit_what", "needs exitall; write that too")
        cgroup = values.words.get("cgroup")
        owner = ("cgroup", cgroup) if cgroup else ("section", jobs)
        group = groups.setdefault(owner, len(groups))
        weight = values.numbers.get("owner_weight")
        if weights.setdefault(group, weight) != weight:
            raise job.fail(
                "owner_weight",
                f"{weight or 'none'}: another section of cgroup {cgroup} has "
                f"{weights[group] or 'none'}; write the same in both",
            )
        clones += values.numbers["numjobs"]
        if clones > MAX_JOBS:
            raise section.error(f"makes it more than {MAX_JOBS} processes; write a smaller numjobs")
        yield _Read(job, as_written, group, stage, exit_group)
        jobs += 1


def _section(read: _Read, processes: Sequence[Process], places: Sequence[Placed]) -> Section:
    """What is written for a real fio: where the files lie on the disk that it will be given."""
    values, steps = read.as_written, {0}
    if any(place.moved for place in places):
        values = copy.deepcopy(read.job.values)
        offsets = [process.offset for process in processes]
        steps = {after - before for before, after in itertools.pairwise(offsets)} or {0}
        for key, value in (
            ("offset", offsets[0]),
            ("offset_increment", min(steps)),
            ("size", places[0].region.length),
        ):
            values.amounts[key] = Amount(value)
            values.lines[key] = Setting(read.job.section.source, 0, key, str(value))
        if "io_size" in values.amounts:
            values.lines.setdefault("io_size", values.lines["size"])
        for key in ("filesize", "offset_align"):
            values.lines.pop(key, None)
    job = read.job
    why = ""
    if len(steps) > 1 or min(steps) < 0:
        why = "its files are not equally far apart on the disk"
    elif values is not read.as_written and job.strided:
        why = "its zones would go on to the end of the disk, not of its file"
    return Section(job.name, values, job.blocks, processes[-1].iodepth, why)


def parse_jobs(text: str, source: str = "job file", **options: Any) -> list[Process]:
    """The processes of a job file's text; see parse_job_file()."""
    return list(parse_job_file(text, source, **options).processes)


def _exits(sections: Sequence[fio_lines.Section]) -> bool:
    """Whether exitall stands anywhere: to fio it is not a job's own."""
    found = [one for section in sections for one in section.settings if one.key == "exitall"]
    for setting in found:
        if setting.value == "0":
            raise setting.error("fio 3.33 takes it for exitall=1; leave it out")
    return bool(found)


def _check_waited_for(job: FioJob, above: Sequence[Process]) -> None:
    """fio: a job waits for one that stands above, and that name must be clear."""
    name = job.values.words.get("wait_for")
    if not name:
        return
    names = dict.fromkeys(process.name for process in above)
    if name not in names:
        known = f"; above are {', '.join(names)}" if names else ""
        raise job.fail("wait_for", f"no job above has this name{known}")
    if len({process.section for process in above if process.name == name}) > 1:
        raise job.fail("wait_for", "several jobs above have this name; give them different ones")


def _shared_places(source: str, files: Sequence[tuple[object, Process]]) -> Iterator[str]:
    """The first two processes that work in the same place, though fio has a file for each."""
    last: tuple[object, Process] | None = None
    for file, process in sorted(files, key=lambda pair: pair[1].offset):
        if last and last[0] != file and process.offset < last[1].offset + last[1].size:
            other = last[1]
            both = (
                f"clones of {process.name} all"
                if process.section == other.section
                else f"{other.name} and {process.name} both"
            )
            yield (
                f"{source}: {both} work at byte {process.offset} of the only disk, and fio would "
                "have a file for each; write offset= or offset_increment=, or one filename= for "
                "all if they shall share it"
            )
            return
        if not last or process.offset + process.size > last[1].offset + last[1].size:
            last = file, process


def load_job_file(path: str | os.PathLike[str], **options: Any) -> JobFile:
    """The job file @path; see parse_job_file()."""
    text = read_text(Path(path), str(path))
    return parse_job_file(text, str(path), beside=Path(path).parent, **options)


def load_jobs(path: str | os.PathLike[str], **options: Any) -> list[Process]:
    """The processes of the job file @path; see parse_job_file()."""
    return list(load_job_file(path, **options).processes)


if __name__ == "__main__":
    sys.stdout.write(options_markdown())
