# SPDX-License-Identifier: GPL-2.0-only
"""Where the files of jobs lie on the disk, who shares a place, and whom a job waits for."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobfile_driver import DISK, FIO, K, M, jobs, needs_fio, places
from said import ran, refusal

from streamsched.base.errors import UsageError

SHARED_PLACES = {
    "[r]\nsize=1m\nnumjobs=4\n": None,
    "[r]\nsize=1m\n[s]\nsize=2m\n": None,
    "[r]\nsize=2m\n[s]\nsize=2m\noffset=1m\n": None,
    "[r]\nsize=2m\noffset=2m\n[s]\nsize=2m\noffset=1m\n": f"s and r both work at byte {2 * M}",
    "[r]\nsize=2m\nfilename=x\n[s]\nsize=1m\nfilename=y\n": None,
    # fio has to be told the file's name: there is one.
    "[r]\nnumjobs=4\n[s]\nsize=2m\n": None,
    "[r]\nsize=1m\nnumjobs=4\nfilename=x\n": None,
    "[r]\nsize=1m\nnumjobs=4\noffset_increment=1m\n": None,
    "[r]\nsize=1m\n[s]\nsize=2m\noffset=1m\n": None,
}


@pytest.mark.parametrize(("text", "both"), SHARED_PLACES.items())
def test_a_note_says_who_shares_a_place(text: str, both: str | None) -> None:
    notes: list[str] = []
    jobs(text, notes=notes)
    assert [note.partition(" of the only disk")[0] for note in notes] == (
        [f"a.fio: {both}"] if both else []
    )


OF_NO_EFFECT = {
    "iodepth=8": "iodepth=8 of a is of no effect with ioengine=psync; libaio keeps so many in",
    "iodepth=8\ndirect=1": "iodepth=8 of a is of no effect with ioengine=psync; libaio",
    "iodepth=8\nioengine=libaio": "iodepth=8 of a is of no effect without direct=1",
    "iodepth=8\nioengine=libaio\ndirect=1": "",
    "iodepth=8\ndirect=1\nio_submit_mode=offload\nrate=1m": "",
    "nrfiles=4\nfilename=x": "nrfiles=4 of a is of no effect beside a filename",
    "time_based": "time_based of a is of no effect without a runtime",
}


@pytest.mark.parametrize(("text", "note"), OF_NO_EFFECT.items())
def test_a_note_says_what_is_of_no_effect(text: str, note: str) -> None:
    notes: list[str] = []
    jobs(f"[a]\nsize=1m\n{text}\n", notes=notes)
    assert len(notes) == bool(note)
    assert all(one.startswith(f"a.fio: {note}") and one.endswith(", as in fio") for one in notes)


@pytest.mark.parametrize(
    "text", ["[a]\nfilename=x\nfilename=y\n", "[global]\nfilename=x\n[a]\nfilename=y\n"]
)
def test_each_filename_names_more_files(text: str) -> None:
    assert jobs(f"{text}size=1m\n") == jobs("[a]\nfilename=x:y\nsize=1m\n")


@pytest.mark.parametrize("word", ["1", "sync", "dsync"])
def test_synchronous_writes_are_synced_each(word: str) -> None:
    notes: list[str] = []
    text = "[a]\nrw=write\nsize=1m\n"
    assert jobs(f"{text}sync={word}\n", notes=notes) == jobs(f"{text}fsync=1\n")
    assert notes == [f"a.fio: sync={word} of a is simulated as fsync=1"]


SIDE_BY_SIDE = [(0, M), (M, M), (2 * M, M), (3 * M, M)]
FILES_LIE = {
    # Each clone has a file of its own, with a directory and without.
    "[r]\nnumjobs=4\nsize=1m\n": SIDE_BY_SIDE,
    "[r]\nnumjobs=4\nsize=1m\ndirectory=/data\n": SIDE_BY_SIDE,
    "[r]\nnumjobs=4\nsize=1m\ndirectory=/data:/more\n": SIDE_BY_SIDE,
    "[r]\nnumjobs=2\nsize=1m\n[s]\nsize=1m\n[t]\nsize=1m\n": SIDE_BY_SIDE,
    "[r]\nnumjobs=2\nsize=1m\n[s]\nsize=1m\nnumjobs=2\ndirectory=d\n": SIDE_BY_SIDE,
    # A name is one file, and so is a disk.
    "[r]\nnumjobs=4\nsize=1m\nfilename=x\n": [(0, M)] * 4,
    "[r]\nnumjobs=4\nsize=1m\nfilename=/dev/sdx\n": [(0, M)] * 4,
    "[/dev/sdx]\nnumjobs=4\nsize=1m\n": [(0, M)] * 4,
    "[/dev/sdx]\nnumjobs=2\noffset=1m\nsize=1m\n": [(M, M)] * 2,
    "[/dev/sdx]\noffset=99m\n[r]\nnumjobs=2\nsize=1m\n": [(99 * M, M), (0, M), (M, M)],
    "[r]\nsize=1m\nfilename=sdx\ndirectory=/dev\n[s]\nfilename=/dev/sdx\n": [(0, M), (0, DISK)],
    "[r]\nsize=1m\nfilename=d/x\n[s]\nsize=1m\nfilename=x\ndirectory=d\n": [(0, M)] * 2,
    # Files end where the last job in them does, and begin with a page.
    "[r]\nsize=5k\nfilename=x\n[s]\nsize=1m\nfilename=y\n[t]\nsize=1m\noffset=1m\nfilename=x\n": [
        (0, 8 * K),
        (2 * M, M),
        (M, M),
    ],
    # A share is that of the file.
    "[r]\nsize=2m\nfilename=x\n[s]\nsize=1m\nfilename=y\n[t]\nsize=50%\noffset=50%\nfilename=x\n": [
        (0, 2 * M),
        (2 * M, M),
        (M, M),
    ],
    # Without a filename, offset says where on the disk the first of them begins.
    "[r]\nnumjobs=2\noffset=1m\nsize=5k\n": [(M, 8 * K), (M + 8 * K, 8 * K)],
    "[r]\nnumjobs=2\noffset_increment=8m\nsize=1m\n": [(0, M), (8 * M, M)],
    # Others lie beside it.
    "[r]\noffset=1m\nsize=1m\n[s]\nsize=1m\n[t]\nsize=2m\n": [(M, M), (0, M), (2 * M, 2 * M)],
    # The names of files may be those of several jobs.
    "[r]\nnumjobs=2\nsize=1m\nfilename_format=x.$filenum\n": [(0, M)] * 2,
    "[r]\nnumjobs=2\nsize=1m\noffset=1m\nfilename_format=x\n": [(M, M)] * 2,
    "[global]\nsize=1m\nnumjobs=2\nfilename_format=x.$jobnum\n[r]\n[s]\n": [(0, M), (M, M)] * 2,
    "[r]\nsize=1m\n[r]\nsize=1m\n[s]\nsize=1m\n": [(0, M), (0, M), (M, M)],
    # Several each.
    "[r]\nnumjobs=2\nnrfiles=2\nsize=2m\n": [(0, 2 * M), (2 * M, 2 * M)],
    "[r]\nfilename=x:y\nsize=2m\n[s]\nfilename=z\nsize=1m\n[t]\nfilename=x:y\nsize=4m\n": [
        (0, 4 * M),
        (4 * M, M),
        (0, 4 * M),
    ],
}


@pytest.mark.parametrize(("text", "found"), FILES_LIE.items())
def test_where_files_lie(text: str, found: list[tuple[int, int]]) -> None:
    notes: list[str] = []
    assert places(text, notes=notes) == found
    assert notes == []


def test_zones_of_a_file_end_with_it() -> None:
    text = "[r]\nnumjobs=2\nsize=1m\nzonemode=strided\nzonesize=64k\nzoneskip=64k\n"
    assert places(text) == SIDE_BY_SIDE[:2]


def test_a_variable_of_the_environment_may_name_the_disk() -> None:
    text = "[r]\nsize=1m\nfilename=${A}\n[s]\nsize=1m\nfilename=${B}\n"
    assert places(text) == [(0, M), (M, M)]
    assert places(text, environ={"A": "/dev/sdx", "B": "/dev/sdx"}) == [(0, M), (0, M)]


IMPOSSIBLE_FILES = {
    "[r]\nfilename=/dev/sdx\n[s]\nfilename=/dev/sdy\n": (
        "line 4: filename=/dev/sdy: another disk than /dev/sdx of job r, and here is one; "
        "leave the jobs of all disks but one out"
    ),
    "[r]\nsize=1m\nfilename=/dev/null\n": (
        "line 3: filename=/dev/null: /dev/null is no disk; name a file or a disk"
    ),
    "[r]\nsize=1m\nfilename=x\n[s]\nfilename=y\n": (
        "line 4: job s: size: how long y is, is not known, and there are other files; write bytes"
    ),
    "[r]\nsize=1m\nfilename=x\n[s]\nfilename=y\nsize=1m\noffset=10%\n": (
        "line 7: offset=10%: how long y is, is not known, and there are other files; write bytes"
    ),
    "[r]\nnumjobs=2\nsize=60m\n": (
        f"line 1: job r: no room for its file of {60 * M} bytes; all files need {120 * M} of "
        f"the disk's {DISK} bytes; make size smaller, or take a larger disk"
    ),
    "[r]\nfilename=/dev/sdx\n[s]\nsize=1m\ndirectory=/data\n": (
        f"line 1: job r: size: without one it uses {DISK} of the disk's {DISK} bytes, so job s "
        f"has no room for its file of {M} bytes; write how many bytes it uses"
    ),
    "[s]\nsize=1m\ndirectory=/data\n[r]\nfilename=/dev/sdx\nsize=100%\n": (
        f"line 6: size=100%: it uses {DISK} of the disk's {DISK} bytes, so job s has no room "
        f"for its file of {M} bytes; write fewer"
    ),
    "[r]\nfilename=/dev/sdx\nsize=1m\nzonemode=strided\nzonesize=1m\nzoneskip=1m\n"
    "[s]\nsize=1m\ndirectory=/data\n": (
        "line 1: job r: its zones go on to the end of the disk, so job s has no room for its "
        f"file of {M} bytes; name a file for it too"
    ),
    "[r]\nfilename=/dev/sdx\nsize=10m\n[s]\nsize=95m\ndirectory=/data\n": (
        f"line 4: job s: no room for its file of {95 * M} bytes beside what other jobs use of "
        f"the disk; all files need {95 * M} of the disk's {DISK} bytes; make size smaller, or "
        "take a larger disk"
    ),
    "[r]\nsize=2m\nfilename=x:y\n[s]\nsize=1m\nfilename=y\n": (
        "line 6: filename=y: job r has y as well, but not the same files; name the same ones "
        "in both"
    ),
    "[r]\nsize=2m\nfilename=x:y\noffset=1m\n[s]\nsize=1m\n": (
        "line 4: offset=1m: fio skips it in each of several files; leave it out"
    ),
}


@pytest.mark.parametrize(("text", "why"), IMPOSSIBLE_FILES.items())
def test_files_that_cannot_be(text: str, why: str) -> None:
    assert refusal(jobs, text) == f"a.fio, {why}"


@needs_fio
def test_fio_has_the_same_files(tmp_path: Path) -> None:
    """Clones and jobs that share one with fio do here, and no others."""
    text = (
        "[global]\nsize=64k\nrw=write\n[a]\nnumjobs=3\n[b]\nnumjobs=2\nfilename=x\n"
        "[c]\nfilename= x\n[d]\nfilename_format=$jobname.$filenum\nnumjobs=2\n[a]\n"
        "[e]\nname=f\ndirectory=one:two\nnumjobs=3\n"
    )
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "a.fio").write_text(text)
    assert FIO
    done = ran(FIO, "a.fio", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    theirs = [path for path in tmp_path.rglob("*") if path.stat().st_size == 64 * K]
    assert len(theirs) == len(set(places(text))) == 8


def test_several_files() -> None:
    (process,) = jobs("[a]\nsize=10m\nnrfiles=3\noffset=1m\nopenfiles=8\n")
    assert (process.nr_files, process.open_files) == (3, 3)
    # Of 10 MB / 3 whole blocks are used; each begins with a page.
    assert (process.file_size, process.file_stride) == (3493888, 3497984)
    assert (process.offset, process.size, process.io_bytes) == (M, 3 * 3497984, 3 * 3493888)
    # The rest of the disk: they are not longer than that.
    (process,) = jobs(f"[a]\nsize={99 * M}\nnrfiles=7\noffset=1m\n")
    assert process.offset + process.size <= DISK
    # Whoever names a file has one, wherever that stands.
    notes: list[str] = []
    found = jobs("[global]\nfilename=x\n[a]\nsize=1m\nnrfiles=4\n", notes=notes)
    assert [p.nr_files for p in found] == [1]
    assert notes == ["a.fio: nrfiles=4 of a is of no effect beside a filename, as in fio"]
    # Without one, a directory for them is as good as none.
    assert jobs("[a]\nsize=1m\nnrfiles=4\ndirectory=/data\n")[0].nr_files == 4


SEVERAL_IMPOSSIBLE_FILES = {
    "": "line 2: nrfiles=4: fio divides size among them; write size= or filesize=",
    "size=8k": "line 2: nrfiles=4: a file of 2048 bytes holds no block of 4096; write fewer",
    "filesize=16k\nsize=1m": (
        "line 3: filesize=16k: 4 files of it are less than size=1048576; write io_size instead"
    ),
    "filesize=90m": (
        f"line 1: job a: the last of its files ends at byte {360 * M}, but the disk has {DISK} "
        "bytes; make offset or size smaller, or take a larger disk"
    ),
    "size=1m\nrw=randread\nrandom_distribution=zipf:1.2": (
        "line 2: nrfiles=4: does not go with random_distribution; leave one of the two out"
    ),
    "size=1m\nzonemode=strided\nzonesize=64k": (
        "line 2: nrfiles=4: does not go with zonemode=strided; write one of the two"
    ),
}


@pytest.mark.parametrize(("more", "why"), SEVERAL_IMPOSSIBLE_FILES.items())
def test_several_files_that_cannot_be(more: str, why: str) -> None:
    assert refusal(jobs, f"[a]\nnrfiles=4\n{more}\n") == f"a.fio, {why}"


def test_whose_end_a_job_is() -> None:
    """Exitall is for all, wherever it stands; exit_what is a job's own."""
    text = (
        "[a]\nsize=1m\n[b]\nsize=1m\nexitall\n[c]\nnew_group\nexit_what=all\nsize=1m\n"
        "[d]\nstonewall\nsize=1m\n"
    )
    assert [(p.exits, p.exit_group) for p in jobs(text)] == [(1, 0), (1, 0), (3, 1), (1, 2)]
    assert {p.exits for p in jobs("[a]\nsize=1m\n[b]\nsize=1m\n")} == {0}
    with pytest.raises(UsageError, match=r"line 2: exitall=0: fio 3.33 takes it for exitall=1"):
        jobs("[a]\nexitall=0\nsize=1m\n")
    with pytest.raises(UsageError, match=r"line 2: exit_what=all: needs exitall; write that too"):
        jobs("[a]\nexit_what=all\nsize=1m\n")


def test_whom_a_job_waits_for_is_clear() -> None:
    waits = "[b]\nsize=1m\nwait_for=a\n"
    assert [p.wait_for for p in jobs("[a]\nsize=1m\nnumjobs=2\n" + waits)] == ["", "", "a"]
    with pytest.raises(UsageError, match=r"line 5: wait_for=x: no job above .*; above are a$"):
        jobs("[a]\nsize=1m\n" + waits.replace("=a", "=x"))
    with pytest.raises(UsageError, match=r"line 7: wait_for=a: several jobs above"):
        jobs("[a]\nsize=1m\n[a]\nsize=1m\n" + waits)
