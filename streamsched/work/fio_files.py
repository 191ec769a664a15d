# SPDX-License-Identifier: GPL-2.0-only
"""Which file each clone of a job opens, named as fio names it, and where on the disk that lies.

A device is the disk. So is the file of a job file that has only one. Otherwise files lie side by
side, each at a whole page, in the order in which they first stand there.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from streamsched.base.errors import UsageError
from streamsched.work.fio_job import FioJob
from streamsched.work.fio_lines import VARIABLE
from streamsched.work.fio_region import FILE_ALIGN, CloneRegion, Regions

# How a job file names the disk in each host.
DISK_UNDER_TEST = "${STREAMSCHED_DISK}"
DEVICES = ("/dev/", "\\\\.\\")  # of Linux, and of Windows
NO_DEVICES = "/dev/shm/"
NO_DISKS = ("/dev/zero", "/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
# Without filename_format.
FORMAT = "$jobname.$jobnum.$filenum"

File = tuple[str, ...]  # the names of one or several
DISK: File = ("",)


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """Where one clone works, and in what: clones of the same file have the same."""

    region: CloneRegion
    file: File
    moved: bool = False  # not at the byte of the disk that offset says


def _is_device(name: str) -> bool:
    return name == DISK_UNDER_TEST or (name.startswith(DEVICES) and not name.startswith(NO_DEVICES))


def _join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


class Files:
    """The files of all jobs. What cannot be is a UsageError that names the line."""

    def __init__(
        self, jobs: Sequence[FioJob], capacity: int | None, environ: Mapping[str, str]
    ) -> None:
        self.jobs = jobs
        self.capacity = capacity
        self.environ = environ
        # A size that is none, or a share, is that of a file that is there: fio is told its name.
        self.told = any(not _own(job) and not _named(job) and not _sized(job) for job in jobs)
        self.disk: tuple[str, FioJob] | None = None

    def places(self) -> list[list[Placed]]:
        """Of each job those of its clones."""
        files = [
            [self._file(job, clone) for clone in range(job.number("numjobs"))] for job in self.jobs
        ]
        found = {file for of_job in files for file in of_job}
        if len(found) == 1 and not _is_disk(*found):
            files = [[DISK for _ in of_job] for of_job in files]
        self._check_apart(files)
        on_disk = [
            [
                self._on_disk(job, clone, file) if _is_disk(file) else None
                for clone, file in enumerate(own)
            ]
            for job, own in zip(self.jobs, files, strict=True)
        ]
        taken = [
            (place.region, job)
            for job, own in zip(self.jobs, on_disk, strict=True)
            for place in own
            if place
        ]
        lengths = self._lengths(files)
        begins = self._side_by_side(files, taken, lengths)
        return [
            [
                place or self._in_file(job, clone, file, begins[file], lengths[file])
                for clone, (file, place) in enumerate(zip(own, placed, strict=True))
            ]
            for job, own, placed in zip(self.jobs, files, on_disk, strict=True)
        ]

    # ---- names ----

    def _file(self, job: FioJob, clone: int) -> File:
        words = job.values.words
        directories = job.directories
        if _named(job):
            names = [self._expanded(_join(directories[0], name)) for name in job.names]
            names = names or [job.section.name]
            if any(map(_is_device, names)):
                self._check_disk(job, names)
                return DISK
            return tuple(names)
        if not _own(job) and self.told:
            return DISK
        if not _own(job) and _says_where(job):
            return (*DISK, str(job.section.line), str(clone))
        name = words.get("filename_format") or FORMAT
        for word, value in (("$jobname", job.section.name), ("$jobnum", str(clone))):
            name = re.sub(re.escape(word), value.replace("\\", r"\\"), name, flags=re.I)
        name = _join(directories[clone % len(directories)], self._expanded(name))
        # Sets of files of other lengths are others.
        if job.files == 1:
            return (name,)
        return (name, str(job.files), "" if job.shares else str(Regions(job).of(0).size))

    def _expanded(self, name: str) -> str:
        """Variables that the environment has; the others stand for themselves."""
        if name == DISK_UNDER_TEST:
            return name
        return VARIABLE.sub(lambda match: self.environ.get(match[1]) or match[0], name)

    def _check_disk(self, job: FioJob, names: Sequence[str]) -> None:
        """There is one."""
        for name in names:
            if name in NO_DISKS:
                raise job.fail("filename", f"{name} is no disk; name a file or a disk")
        if len(names) > 1:
            raise job.fail("filename", "names several disks, and here is one; name one of them")
        if self.disk is None:
            self.disk = names[0], job
        elif self.disk[0] != names[0]:
            raise job.fail(
                "filename",
                f"another disk than {self.disk[0]} of job {self.disk[1].name}, and here is one; "
                "leave the jobs of all disks but one out",
            )

    def _check_apart(self, files: Sequence[Sequence[File]]) -> None:
        """Of several files a job has all or none."""
        found: dict[str, tuple[File, FioJob]] = {}
        for job, own in zip(self.jobs, files, strict=True):
            for file in dict.fromkeys(own) if job.names else ():
                for name in file:
                    other, owner = found.setdefault(name, (file, job))
                    if other != file:
                        raise job.fail(
                            "filename",
                            f"job {owner.name} has {name} as well, but not the same files; name "
                            "the same ones in both",
                        )

    # ---- places ----

    def _on_disk(self, job: FioJob, clone: int, file: File) -> Placed:
        regions = Regions(job, self.capacity)
        beyond = 0
        # The file begins where offset says, and the next one behind it.
        if file != DISK and not job.values.amounts["offset_increment"].value:
            beyond = clone * _up(regions.of(0).size)
        return Placed(regions.of(clone, beyond), file, moved=beyond > 0)

    def _lengths(self, files: Sequence[Sequence[File]]) -> dict[File, int]:
        """How long each file is: it ends where the last job in it does."""
        lengths: dict[File, int] = {}
        unknown: dict[File, FioJob] = {}
        for job, own in zip(self.jobs, files, strict=True):
            for clone, file in enumerate(own):
                if _is_disk(file):
                    continue
                self._check_fits_a_file(job)
                if job.shares:
                    unknown.setdefault(file, job)
                    continue
                region = _region(job, clone)
                lengths[file] = max(lengths.get(file, 0), region.offset + region.size)
        for file, job in unknown.items():
            if file not in lengths:
                key = "size" if not _sized(job) else "offset"
                raise job.fail(
                    key,
                    f"how long {file[0]} is, is not known, and there are other files; write bytes",
                )
        return {file: _up(length) for file, length in lengths.items()}

    def _check_fits_a_file(self, job: FioJob) -> None:
        if job.files > 1 and job.values.amounts["offset"].value:
            raise job.fail("offset", "fio skips it in each of several files; leave it out")

    def _side_by_side(
        self,
        files: Sequence[Sequence[File]],
        taken: Sequence[tuple[CloneRegion, FioJob]],
        lengths: Mapping[File, int],
    ) -> dict[File, int]:
        """Where each file begins: behind the one before, but beside what is @taken."""
        begins: dict[File, int] = {}
        at, ahead = 0, sorted((one.offset, one.offset + one.size) for one, _ in taken)
        for job, own in zip(self.jobs, files, strict=True):
            for file in own:
                if _is_disk(file) or file in begins:
                    continue
                while ahead and at + lengths[file] > ahead[0][0]:
                    at = max(at, _up(ahead.pop(0)[1]))
                begins[file] = at
                at += lengths[file]
                if self.capacity is not None and at > self.capacity:
                    raise self._no_room(job, lengths[file], sum(lengths.values()), taken)
        return begins

    def _no_room(
        self, job: FioJob, length: int, need: int, taken: Sequence[tuple[CloneRegion, FioJob]]
    ) -> UsageError:
        """The error of @job's file; of the job that uses most of the disk, if that is to blame."""
        used, most = max(
            ((one.size, user) for one, user in taken), key=lambda pair: pair[0], default=(0, job)
        )
        if used > need:
            # A larger disk, or a smaller file, would have no more room.
            so = f"job {job.section.name} has no room for its file of {length} bytes"
            if most.strided:
                return most.section.error(
                    f"its zones go on to the end of the disk, so {so}; name a file for it too"
                )
            without = "size" not in most.values.lines
            return most.fail(
                "size",
                f"{'without one ' if without else ''}it uses {used} of the disk's {self.capacity} "
                f"bytes, so {so}; write {'how many bytes it uses' if without else 'fewer'}",
            )
        what = " beside what other jobs use of the disk" if taken else ""
        return job.section.error(
            f"no room for its file of {length} bytes{what}; all files need {need} of the "
            f"disk's {self.capacity} bytes; make size smaller, or take a larger disk"
        )

    def _in_file(self, job: FioJob, clone: int, file: File, begin: int, length: int) -> Placed:
        region = Regions(job, length).of(clone) if job.shares else _region(job, clone)
        if job.files > 1:
            stride = length // job.files
            region = dataclasses.replace(region, size=length, file_stride=stride)
        return Placed(dataclasses.replace(region, offset=begin + region.offset), file, moved=True)


def _is_disk(file: File) -> bool:
    """Whether it is the disk, or lies on it where offset says."""
    return file[0] == ""


def _named(job: FioJob) -> bool:
    """Whether a name is given; a device's may be that of the section, as in fio."""
    return bool(job.names) or (job.files == 1 and _is_device(job.section.name))


def _own(job: FioJob) -> bool:
    """Whether fio makes files for it wherever that is said."""
    return "directory" in job.values.words or "filename_format" in job.values.words


def _sized(job: FioJob) -> bool:
    size = job.values.amounts.get("size")
    return bool(size and size.value and not size.percent)


def _says_where(job: FioJob) -> bool:
    amounts = job.values.amounts
    return bool(amounts["offset"].value or amounts["offset_increment"].value)


def _region(job: FioJob, clone: int) -> CloneRegion:
    """In a file of which it needs no share."""
    regions = Regions(job)
    # Zones go on to the end of what there is.
    return Regions(job, regions.end(clone)).of(clone) if job.strided else regions.of(clone)


def _up(length: int) -> int:
    """To where the next file may begin."""
    return -(-length // FILE_ALIGN) * FILE_ALIGN
