# SPDX-License-Identifier: GPL-2.0-only
"""The nbdkit plugin when something is wrong: parameters, members, the end; and its statistics."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shlex
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from nbd_server import (
    PATIENCE_S,
    Answers,
    Server,
    connected,
    image,
    mounted,
    nbd,
    needs_plugin,
    refused,
    shim,
    wait_until,
)
from prometheus_client.parser import text_string_to_metric_families
from said import COMMAND, ran

pytestmark = needs_plugin

MIB = 1 << 20
NBD_EIO, NBD_ENOSPC = 5, 28


# ---- bad parameters ----

# Parameters, as in a shell, and what is said.
REFUSED = {
    "{0}x": "{0}x: No such file or directory",
    "{0} {big}": "{0} has 1048576 bytes and {big} has 2097152; truncate=yes",
    "{0} {0}": "{0}: given twice",
    "{0} {link}": "holds bytes of {0}, which would be written over",
    "{folder}": "neither a regular file nor a block device",
    "{pipe}": "neither a regular file nor a block device",
    "{pipe} readonly=yes": "neither a regular file nor a block device",
    "/" + "x" * 300: "File name too long",
    "file=": "file=: a file's name is missing",
    "/dev/null": "neither a regular file nor a block device",
    "{odd}": "1000 bytes are not a multiple of 512; truncate=yes",
    "": "no file is given",
    "{0} {1} chunk=65k": "chunk=65k: must be a power of two from 4k to 1G",
    "{0} chunk=64k": "chunk: only with several files",
    "{0} policy=steam:deadline": 'no "steam"; did you mean "stream"?',
    "{0} policy=stream:dedline": 'did you mean "deadline"?',
    "{0} policy=:": 'there is no ""; nbdkit streamsched --dump-plugin',
    "{0} policy=fairness": "--dump-plugin lists the policies",
    "{0} policy=" + "stream:" * 40 + "deadline": (
        "...: must be names of policies with colons between, at most 64 characters"
    ),
    "{0} policy=noop policy=cfq": "policy=cfq: policy= is given twice; give it once",
    "{0} stats=- stats={folder}/new": "stats={folder}/new: stats= is given twice; give it once",
    "{0} wait_target=100ms wait_target=100ms": (
        "wait_target=100ms: wait_target= is given twice; give it once"
    ),
    "{0} metrics-interval=5": "metrics-interval=5: only with metrics=FILE",
    "{0} policy=stream": "name the inner policy after a colon",
    "{0} stream_treshold=4": 'did you mean "stream_threshold"?',
    "{0} queue_depth=4": 'did you mean "queue-depth"?',
    "{0} stream_threshold=0": "stream_threshold=0: must be within 1 to 1000",
    "{0} wait_target=500": "wait_target=500: has no unit; write a time such as 500ms",
    "{0} stream_time_slice=100ms": (
        "stream_time_slice is gone: slices follow from wait_target, which is to be set instead"
    ),
    "{0} answer_time=auto": "answer_time is gone: how long the head waits is learned",
    "{0} tolerance_factor=50": "tolerance_factor=50: has no unit; write a percentage such as 50%",
    "{0} policy=cfq back_seek_max=16384": (
        "back_seek_max=16384: has no unit; write a length such as 16384sectors"
    ),
    "{0} quantum=4": "a tunable of cfq, which policy=stream:deadline",
    "emulate=ssd size=5X": "size=5X: must be a size in bytes",
    "{0} size=1M": "size: only with emulate=",
    "emulate=ssd size=0": "size=0: a disk of no bytes cannot be served",
    "emulate=wd5000aaks size=900T": (
        "size=900T: is 989560464998400 bytes, but wd5000aaks has 500107862016; leave out size="
    ),
    "emulate=wd5000aaks size=500G": (
        "size=500G: is 536870912000 bytes (powers of 1024), but wd5000aaks has 500107862016;"
        " write size=500GB (powers of 1000), or leave out size= to have all of it"
    ),
    "{0} emulate=ssd direct=yes": "direct=yes: not with emulate=",
    "emulate=ssd size=1M io=uring": (
        "io=uring: not with emulate=, where each request's own thread copies its bytes"
    ),
    "{0} curve=0:1000000 rotational=no": (
        "curve: the disk has no head to move; leave out curve=, or give rotational=yes"
    ),
    "emulate={pipe}": "emulate={pipe}: is no regular file",
    "emulate={folder}": "emulate={folder}: is no regular file",
    "emulate=sdd": "emulate=sdd: no such disk; there are",
    "{0} queue-depth=0": "must be a whole number from 1 to 256",
    "emulate=wd5000aaks queue-depth=33": "takes 32 commands at once",
    "{0} max-request=100k": "must be a power of two from 64k to 4M",
    "{0} direct=auto": "direct=auto: write direct=detect; auto chooses policies",
    "{0} io=auto": "io=auto: write io=detect; auto chooses policies",
    "{0} direct=maybe": "direct=maybe: must be no, yes or detect",
    "{0} curve=1,2": "DISTANCE_SECTORS:TIME_NS",
    "{0} curve=0:-1": "DISTANCE_SECTORS:TIME_NS",
    "{0} curve=0:18446744073709551616": "DISTANCE_SECTORS:TIME_NS",
    "{0} 'curve=0:5 8:3'": "times must never fall",
    "{0} 'curve=0:5 -8:6'": "DISTANCE_SECTORS:TIME_NS",
    "{0} 'curve=0:5 18446744073709551616:6'": "DISTANCE_SECTORS:TIME_NS",
    "{0} 'curve=0:0 9:18446744073709551615'": (
        "point 2: 18446744073709551615 ns is not within 0 to 1000000000 (1 s)"
    ),
    "{0} fault=0:eat:EIO": "fault=0:eat:EIO: must be MEMBER:",
    "{0} fault=1:read:EIO": "there is no such member",
    "{0} fault=4294967296:read:EIO": "must be MEMBER:",
    "{0} fault=0:read:4294967296ms": "with N from 0 to 3600000",
    "{0} fault=0:read:3600001ms": "with N from 0 to 3600000",
    "{0} fault=0:read:-1ms": "with N from 0 to 3600000",
    "{0} fault=0:read:ms": "with N from 0 to 3600000",
    "{0} fault=0:read:EIO:5-5": "BEGIN below END",
    "{0} fault=0:read:EIO:0-18446744073709551616": "BEGIN below END",
    "{0} io=aio": "io=aio: must be threads, uring or detect",
}


@pytest.mark.parametrize(("parameters", "message"), REFUSED.items())
def test_bad_parameters_are_refused_with_one_sentence(
    tmp_path: Path, parameters: str, message: str
) -> None:
    names = {
        "big": image(tmp_path / "big", 2 * MIB),
        "odd": image(tmp_path / "odd", 1000),
        "folder": tmp_path,
        "pipe": tmp_path / "pipe",
        "link": tmp_path / "link",
    }
    disks = [image(tmp_path / f"disk{i}", MIB) for i in range(2)]
    names["link"].symlink_to(disks[0])
    os.mkfifo(names["pipe"])
    files = [text.format(*disks, **names) for text in shlex.split(parameters)]
    said = refused(*(f"file={text}" if text.startswith("/") else text for text in files))
    assert message.format(*disks, **names) in said


def test_what_is_too_much_can_be_left_out(tmp_path: Path) -> None:
    files = [image(tmp_path / f"disk{i}", MIB + i * 1000) for i in range(3)]
    server = Server(tmp_path, *(f"file={file}" for file in files), "truncate=yes")
    with server.serving() as (_, handle):
        assert handle.get_size() == 3 * MIB


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """As with nbdkit's own file plugin clients can then read; but who runs it is told."""
    disks = [image(tmp_path / f"disk{i}", MIB, b"data") for i in range(2)]
    files = [f"file={disk}" for disk in disks]
    with mounted("--bind", "-o", "ro", disks[1], disks[1]):
        for options in ((), ("-r",)):
            with Server(tmp_path, *files, options=options).serving() as (server, handle):
                assert handle.is_read_only()
                assert handle.pread(512, MIB)[:4] == b"data"
                said = f"{disks[1]}: cannot be written (Read-only file system), so clients can only"
                assert server.text().count(said) == 1
        said = refused(*files, "readonly=no")
    assert "cannot be written (Read-only file system)" in said and "readonly=yes" in said


def test_a_member_in_use_is_refused(tmp_path: Path) -> None:
    disk = image(tmp_path / "disk", MIB)
    with Server(tmp_path / "a", str(disk)):
        assert "in use by another server" in refused(str(disk))
        assert "in use by another server" in refused(str(disk), "readonly=yes")
        # qemu's locks are of the same kind.
        done = ran("qemu-io", "-f", "raw", "-c", "quit", disk)
        assert done.returncode == 1 and "lock" in done.stderr
    with (
        Server(tmp_path / "a", str(disk), "readonly=yes"),
        Server(tmp_path / "b", str(disk), "readonly=yes"),
    ):
        pass


# ---- members that fail ----


def error_of(call: Any, *arguments: Any) -> int:
    with pytest.raises(nbd.Error) as failure:
        call(*arguments)
    return int(failure.value.errnum)


def fault_server(folder: Path, *faults: str, nr: int = 2, metrics: Path | None = None) -> Server:
    own = [f"file={image(folder / f'disk{i}', 4 * MIB, b'data')}" for i in range(nr)]
    own += [f"fault={fault}" for fault in faults]
    own += [f"metrics={metrics}"] if metrics else []
    return Server(folder, *own)


@pytest.mark.parametrize(
    ("fault", "expected"),
    # ENXIO, a disk that is gone, has no number in the protocol.
    [("EIO", NBD_EIO), ("ENOSPC", NBD_ENOSPC), ("ENXIO", NBD_EIO), ("short", NBD_EIO)],
)
@pytest.mark.parametrize("op", ["read", "write"])
def test_an_error_reaches_only_what_it_hits(
    tmp_path: Path, op: str, fault: str, expected: int
) -> None:
    # Bytes 64k to 128k of member 1 are bytes 192k to 256k of the export.
    with fault_server(tmp_path, f"1:{op}:{fault}:65536-131072").serving(2) as (server, one, other):
        data = bytes(65536)
        hit, near = 192 << 10, 128 << 10

        def call(handle: Any, offset: int) -> None:
            if op == "read":
                assert handle.pread(len(data), offset)[:4] in (b"data", bytes(4))
            else:
                handle.pwrite(data, offset, nbd.CMD_FLAG_FUA)

        assert error_of(call, one, hit) == expected
        call(one, near)
        call(other, near)
        assert error_of(call, other, hit) == expected
        other.flush()
    assert f"disk1: {op} of 65536 bytes at 65536" in server.text()


# The kernel may move less than it was asked to, of anything but a disk's blocks.
SHORT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST 4096

ssize_t pread64(int fd, void *memory, size_t bytes, off_t at)
{
	ssize_t (*real)(int, void *, size_t, off_t) =
		(ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread64");

	return real(fd, memory, bytes < MOST ? bytes : MOST, at);
}

ssize_t pwritev64v2(int fd, const struct iovec *iov, int nr, off_t at, int flags)
{
	ssize_t (*real)(int, const struct iovec *, int, off_t, int) =
		(ssize_t (*)(int, const struct iovec *, int, off_t, int))dlsym(
			RTLD_NEXT, "pwritev64v2");
	struct iovec first = *iov;

	(void)nr;
	if (first.iov_len > MOST)
		first.iov_len = MOST;
	return real(fd, &first, 1, at, flags);
}
"""


@pytest.mark.parametrize("direct", ["yes", "no"])
def test_what_is_moved_in_parts_is_moved_whole(tmp_path: Path, direct: str) -> None:
    disk = image(tmp_path / "disk", 1 << 20)
    data = random.Random(1).randbytes(64 << 10)
    wrapper = ("env", shim(tmp_path, SHORT))
    server = Server(tmp_path, str(disk), f"direct={direct}", "io=threads", wrapper=wrapper)
    with server.serving() as (_, handle):
        handle.pwrite(data, 128 << 10)
        handle.flush()
        assert handle.pread(len(data), 128 << 10) == data
    assert disk.read_bytes() == bytes(128 << 10) + data + bytes((1 << 20) - (192 << 10))


def test_an_error_of_one_does_not_reach_those_joined_with_it(tmp_path: Path) -> None:
    """Many requests side by side, joined while the disk is busy; one sector is bad."""
    bad = 40 * 4096
    # The first read takes its time, so that the others gather behind it.
    faults = (f"fault=0:read:EIO:{bad}-{bad + 512}", f"fault=0:read:1500ms:{2 * MIB}-{3 * MIB}")
    own = ("queue-depth=1", *faults, f"metrics={tmp_path / 'metrics'}", "stats=-")
    disk = image(tmp_path / "disk", 4 * MIB, b"data")
    with Server(tmp_path, str(disk), *own, options=("--threads=128",)).serving() as (
        server,
        handle,
    ):
        results, buffers = Answers(), {}
        slow = nbd.Buffer(4096)
        handle.aio_pread(slow, 2 * MIB, results.of(2 * MIB))
        wait_until(lambda: server.dispatched(tmp_path / "metrics"), "the disk is busy")
        for i in range(100):
            buffers[i] = nbd.Buffer(4096)
            handle.aio_pread(buffers[i], i * 4096, results.of(i * 4096))
        results.wait(handle, 101)
        assert {offset for offset, error in results.items() if error} == {bad}
        assert results[bad] == errno.EIO
    merges = re.findall(r"merges (\d+)", server.text())
    assert int(merges[-1]) > 20  # at the end; those before are what was asked for meanwhile


def test_a_slow_member_delays_no_other(tmp_path: Path) -> None:
    """Requests to a place that takes 5 s; others go on, and all are answered."""
    with fault_server(tmp_path, "0:read:5000ms:0-65536").serving(2) as (_, slow, quick):
        order: list[str] = []

        def wait() -> None:
            assert slow.pread(4096, 0)[:4] == b"data"
            order.append("slow")

        # A machine that stands still for 5 s lets the slow one be first.
        for _ in range(3):
            waiting = threading.Thread(target=wait)
            waiting.start()
            for _ in range(20):
                quick.pread(4096, MIB)
                quick.pread(4096, 64 << 10)
                order.append("quick")
            waiting.join()
            assert len(order) == 21
            if order[-1] == "slow":
                return
            order.clear()
    raise AssertionError(f"the slow member's request was never the last: {order}")


def test_a_member_that_disappears_fails_its_requests_only(tmp_path: Path) -> None:
    files = [image(tmp_path / f"disk{i}", 4 * MIB, b"data") for i in range(2)]
    with Server(tmp_path, *(f"file={file}" for file in files)).serving() as (server, handle):
        os.truncate(files[1], 0)
        assert handle.pread(65536, 0)[:4] == b"data"
        assert error_of(handle.pread, 65536, 65536) == NBD_EIO
        assert error_of(handle.pread, 131072, 0) == NBD_EIO
        assert handle.pread(65536, 131072)[:4] == b"data"
        with connected(server) as (another,):
            assert another.pread(65536, 0)[:4] == b"data"


@pytest.mark.parametrize(("io", "direct"), [("uring", "detect"), ("threads", "no")])
def test_a_member_that_was_cut_off_stays_so(tmp_path: Path, io: str, direct: str) -> None:
    """What it lost is an error for all commands alike; a write does not make it longer again."""
    disk = image(tmp_path / "disk", 4 * MIB, b"data")
    with Server(tmp_path, str(disk), f"io={io}", f"direct={direct}", "queue-depth=1") as server:
        handle = nbd.NBD()
        handle.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
        handle.connect_uri(server.uri)
        told: list[int] = []

        def status(length: int, offset: int) -> None:
            told.clear()
            handle.block_status(length, offset, lambda _1, _2, entries, _3: told.extend(entries))

        os.truncate(disk, MIB)
        for offset in (MIB, 2 * MIB, 4 * MIB - 4096):
            assert error_of(handle.pread, 4096, offset) == NBD_EIO
            assert error_of(handle.pwrite, b"x" * 4096, offset) == NBD_EIO
            assert error_of(handle.trim, 4096, offset) == NBD_EIO
            assert error_of(handle.zero, 4096, offset) == NBD_EIO
            assert error_of(status, 4096, offset) == NBD_EIO
            if handle.can_cache():
                assert error_of(handle.cache, 4096, offset) == NBD_EIO
        # Partly there.
        assert error_of(handle.pread, 8192, MIB - 4096) == NBD_EIO
        assert error_of(handle.pwrite, b"x" * 8192, MIB - 4096) == NBD_EIO
        status(8192, MIB - 4096)
        assert told == [4096, 0]
        # Many at once, so that the disk thread sends some.
        answers = Answers()
        buffer = nbd.Buffer.from_bytearray(bytearray(b"y" * 4096))
        for place in range(8):
            handle.aio_pwrite(buffer, 2 * MIB + place * MIB // 8, answers.of(place))
        answers.wait(handle, 8)
        assert answers == dict.fromkeys(range(8), NBD_EIO)
        assert disk.stat().st_size == MIB
        assert handle.pread(4096, 0)[:4] == b"data"
        handle.pwrite(b"z" * 4096, 0)
        handle.shutdown()
    assert "(the file has become shorter)" in server.text()


def test_a_full_file_system_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    with mounted("-t", "tmpfs", "-o", "size=2m", "none", folder):
        disk = image(folder / "disk", 8 * MIB)
        with Server(tmp_path, str(disk)).serving() as (_, handle):
            handle.pwrite(b"x" * MIB, 0)
            assert error_of(handle.pwrite, b"x" * 2 * MIB, 4 * MIB) == NBD_ENOSPC
            assert handle.pread(MIB, 0) == b"x" * MIB


def test_a_flush_that_failed_once_fails_for_all(tmp_path: Path) -> None:
    """The kernel tells of lost data once; every later flush must know of it, too."""
    with fault_server(tmp_path, "1:flush:EIO:1-2").serving(2) as (_, *handles):
        handles[0].flush()
        for handle in handles:
            handle.pwrite(b"x" * 512, 0)
            assert error_of(handle.flush) == NBD_EIO


# ---- without io_uring ----

# What containers do: io_uring_setup is not permitted. A filter of seccomp's, number by number
# (linux/filter.h): load the system call's number, compare, answer EPERM or allow.
FORBID = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = b"".join(struct.pack("<HBBI", *one) for one in (
    (0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)))
memory = ctypes.create_string_buffer(code)
program = struct.pack("<HxxxxxxQ", 4, ctypes.addressof(memory))
NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2
if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(SECCOMP, FILTER, program):
    sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
"""
WITHOUT_URING = ("/usr/bin/python3", "-c", FORBID)


def test_without_io_uring_threads_do_it(tmp_path: Path) -> None:
    files = [f"file={image(tmp_path / f'disk{i}', 4 * MIB)}" for i in range(3)]
    server = Server(tmp_path, *files, "queue-depth=2", wrapper=WITHOUT_URING)
    with server.serving(2) as (_, *handles):
        said = "io_uring cannot be used here (Operation not permitted), so threads move the bytes"
        assert server.text().count(said) == 1
        data = os.urandom(3 * MIB)
        for handle in handles:
            handle.pwrite(data, 4096, nbd.CMD_FLAG_FUA)
            assert handle.pread(len(data), 4096) == data
            handle.flush()
    said = refused(*files, "io=uring", wrapper=WITHOUT_URING)
    assert said.startswith("io=uring: Operation not permitted; allow it (sysctl")


# ---- the end ----


def test_shutdown_answers_what_has_begun(tmp_path: Path) -> None:
    late = fault_server(tmp_path, "0:any:2000ms", nr=1, metrics=tmp_path / "metrics")
    with late.serving() as (server, handle):
        results = Answers()
        buffer = nbd.Buffer.from_bytearray(bytearray(b"late" * 128))
        for place in range(8):
            handle.aio_pwrite(buffer, place * 4096, results.of(place))

        def taken() -> bool:
            handle.poll(0)  # what was not sent yet goes
            return server.dispatched(tmp_path / "metrics") == 8

        wait_until(taken, "all are sent, and taken")
        os.kill(server.pid, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_S
        while len(results) < 8 and time.monotonic() < deadline:
            handle.poll(1000)
        # nbdkit ends when its clients have gone.
        handle.shutdown()
        assert server.process
        assert server.process.wait(PATIENCE_S) == 0
    assert results == dict.fromkeys(range(8), 0)
    written = (tmp_path / "disk0").read_bytes()
    assert all(written[place * 4096 :][:4] == b"late" for place in range(8))


def test_statistics(tmp_path: Path) -> None:
    metrics, stats = tmp_path / "metrics.prom", tmp_path / "stats"
    disks = [f"file={image(tmp_path / f'disk{i}', 4 * MIB)}" for i in range(2)]
    own = (f"metrics={metrics}", f"stats={stats}", "metrics-interval=1")
    with Server(tmp_path, *disks, *own) as server:
        with connected(server) as (handle,):
            handle.pwrite(b"x" * 4096, 0)
            for _ in range(3):
                handle.pread(131072, 0)
            os.kill(server.pid, signal.SIGUSR1)
            wait_until(stats.exists, "statistics")
            assert "connection 1:\n  read: 3 requests, 393216 bytes, 0 errors" in stats.read_text()
        # Only when it is closed does it count among those that are gone.
        gone = 'connection="0",direction="read"} 3'
        wait_until(lambda: gone in metrics.read_text(), gone)
    text = metrics.read_text()
    for member in range(2):
        assert f'streamsched_requests_total{{member="{member}",direction="read"}} 3' in text
        assert f'streamsched_wait_seconds_count{{member="{member}"}}' in text
    assert 'streamsched_bytes_total{member="0",direction="write"} 4096' in text
    assert 'streamsched_connection_requests_total{connection="0",direction="read"} 3' in text
    assert {path.name for path in tmp_path.glob("*metrics*")} == {"metrics.prom"}
    assert not list(tmp_path.glob(".*"))
    assert max(map(len, stats.read_text().replace(str(tmp_path), "").splitlines())) <= 80
    buckets = [
        int(n) for n in re.findall(r'service_seconds_bucket\{member="0",le="[^"]+"\} (\d+)', text)
    ]
    assert buckets == sorted(buckets) and buckets[-1] == 4
    check_metrics(text)


def check_metrics(text: str) -> dict[str, str]:
    """Names and types of all metrics, as Prometheus itself reads them."""
    types = {}
    series = set()
    for family in text_string_to_metric_families(text):
        assert family.type in ("counter", "histogram"), family.name
        assert family.documentation.endswith(".") and family.samples
        assert family.name not in types, f"{family.name} is there twice"
        types[family.name] = family.type
        infinite = {}
        for sample in family.samples:
            labels = dict(sample.labels)
            key = (sample.name, *sorted(labels.items()))
            assert key not in series, f"{key} is there twice"
            series.add(key)
            of_the_set = family.name.startswith("streamsched_array_")
            assert bool(labels.keys() & {"member", "connection"}) != of_the_set
            assert sample.value >= 0
            if labels.get("le") == "+Inf":
                infinite[labels.get("member") or labels["connection"]] = sample.value
            if sample.name.endswith("_count"):
                assert sample.value == infinite[labels.get("member") or labels["connection"]]
    assert text.endswith("\n")
    return types


def test_metrics_are_replaced_as_a_whole(tmp_path: Path) -> None:
    """Whoever reads them at any time reads all of one version."""
    metrics = tmp_path / "metrics.prom"
    disk = image(tmp_path / "disk", MIB)
    with Server(
        tmp_path, str(disk), f"metrics={metrics}", f"stats={tmp_path / 'stats'}"
    ).serving() as (server, handle):
        all_types = check_metrics(metrics.read_text())
        assert {"streamsched_flushes", "streamsched_wait_seconds"} <= all_types.keys()
        versions: set[int] = set()
        until = time.monotonic() + PATIENCE_S
        turn = 0
        while turn < 60 or (len(versions) == 1 and time.monotonic() < until):
            turn += 1
            handle.pread(4096, 0)
            os.kill(server.pid, signal.SIGUSR1)
            for _ in range(1 + turn % 5):
                with metrics.open() as file:
                    text = file.read()
                    versions.add(os.fstat(file.fileno()).st_ino)
                assert check_metrics(text) == all_types
        assert len(versions) > 1


def test_the_log_replays(tmp_path: Path) -> None:
    from streamsched.work import tracefile

    log = tmp_path / "log"
    disk = image(tmp_path / "disk", 4 * MIB)
    with Server(tmp_path, str(disk), f"log={log}").serving() as (_, handle):
        handle.pread(8192, 4096)
        handle.pwrite(b"x" * 512, 0, nbd.CMD_FLAG_FUA)
    header, *lines = log.read_text().splitlines()
    assert header.endswith(" m   N streamsched log")
    assert [re.sub(r"\d+\.\d+", "T", line).split() for line in lines] == [
        ["0,0", "0", str(n + 1), "T", "1", event, rwbs, sector, "+", length, "[nbd]"]
        for n, (event, rwbs, sector, length) in enumerate(
            [(event, "R", "8", "16") for event in "QDC"]
            + [(event, "WFS", "0", "1") for event in "QDC"]
        )
    ]
    assert tracefile.open_trace(str(log), None).format == "blkparse"
    done = ran(COMMAND, "replay", log, "--output", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["disk_requests"] == 2


def test_each_flush_that_fails_is_counted_once(tmp_path: Path) -> None:
    """Those, too, that hear of what was lost before."""
    metrics = tmp_path / "metrics.prom"
    with fault_server(tmp_path, "1:flush:EIO:1-2", metrics=metrics).serving() as (_, handle):
        handle.flush()
        for _ in range(3):
            handle.pwrite(b"x" * 512, 0)
            assert error_of(handle.flush) == NBD_EIO
    text = metrics.read_text()
    for member, failed in ((0, 0), (1, 3)):
        assert f'streamsched_flush_errors_total{{member="{member}"}} {failed}\n' in text


def test_the_log_s_times_begin_with_the_server(tmp_path: Path) -> None:
    """Not with the machine, as the clock that they are read from."""
    log = tmp_path / "log"
    disk = image(tmp_path / "disk", 4 * MIB)
    began = time.monotonic()
    with Server(tmp_path, str(disk), f"log={log}").serving() as (_, handle):
        handle.pread(4096, 0)
    lived = time.monotonic() - began
    _, *lines = log.read_text().splitlines()
    times = [float(line.split()[3]) for line in lines]
    assert len(times) == 3 and times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= lived
