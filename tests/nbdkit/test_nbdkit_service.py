# SPDX-License-Identifier: GPL-2.0-only
"""The nbdkit plugin serves: commands of the protocol, stripes, and real clients."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nbd_server import Server, image, loop_device, nbd, needs_plugin
from said import ran

from streamsched.hosts.nbdhost import find_plugin

pytestmark = needs_plugin

KIB = 1024
MIB = 1 << 20
SETS = {
    "one": (1, ()),
    "one, small requests": (1, ("max-request=64k",)),
    "one, depth 1": (1, ("queue-depth=1", "policy=stream:sptf")),
    "four": (4, ("chunk=4k",)),
    "three, large chunks": (3, ("chunk=256k", "max-request=64k")),
    "four, threads": (4, ("chunk=4k", "io=threads", "queue-depth=3")),
    "two, buffered": (2, ("direct=no", "policy=cfq")),
    "emulated": (1, ("emulate=ssd",)),
    "two, emulated": (2, ("emulate=ssd", "chunk=16k")),
}


def members(folder: Path, nr: int, size: int) -> list[Path]:
    return [image(folder / f"member{i}", size) for i in range(nr)]


def run(command: str, **variables: str) -> str:
    # nbdsh takes the python3 of the path.
    path = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    done = ran("bash", "-euc", command, env={**os.environ, **path, **variables})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SETS)
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    """Random commands on several connections against a model in memory."""
    nr, parameters = SETS[name]
    files = [f"file={path}" for path in members(tmp_path, nr, 4 * MIB)]
    rnd = random.Random(name)
    with Server(tmp_path, *files, *parameters).serving(2) as (_, *handles):
        size = handles[0].get_size()
        assert size == nr * 4 * MIB
        block = handles[0].get_block_size(nbd.SIZE_MINIMUM)
        model = bytearray(size)
        for step in range(120):
            handle = rnd.choice(handles)
            length = rnd.choice((block, 4 * KIB, 64 * KIB, 300 * KIB, 3 * MIB))
            length = min(length, size) // block * block
            offset = rnd.randrange(0, size - length + 1) // block * block
            match rnd.choice(("read", "read", "write", "write", "zero", "trim", "flush")):
                case "read":
                    found = handle.pread(length, offset)
                    assert found == model[offset : offset + length], f"step {step}"
                case "write":
                    data = rnd.randbytes(length)
                    handle.pwrite(data, offset, rnd.choice((0, nbd.CMD_FLAG_FUA)))
                    model[offset : offset + length] = data
                case "zero":
                    handle.zero(length, offset, rnd.choice((0, nbd.CMD_FLAG_NO_HOLE)))
                    model[offset : offset + length] = bytes(length)
                case "trim":
                    handle.trim(length, offset)
                    found = handle.pread(length, offset)
                    kept = model[offset : offset + length]
                    assert all(a == b or a == 0 for a, b in zip(found, kept, strict=True))
                    model[offset : offset + length] = found
                case "flush":
                    handle.flush()
        assert handles[0].pread(size, 0) == model


def test_chunks_lie_as_in_a_raid_0(tmp_path: Path) -> None:
    files = members(tmp_path, 3, MIB)
    server = Server(tmp_path, *(f"file={path}" for path in files), "chunk=64k")
    with server.serving() as (_, handle):
        for chunk in range(48):
            handle.pwrite(bytes([chunk + 1]) * 64 * KIB, chunk * 64 * KIB)
        handle.flush()
    for member, path in enumerate(files):
        found = path.read_bytes()
        for place in range(16):
            part = found[place * 64 * KIB : (place + 1) * 64 * KIB]
            assert part == bytes([place * 3 + member + 1]) * 64 * KIB


def test_the_export_says_what_it_can(tmp_path: Path) -> None:
    disk = image(tmp_path / "disk", MIB)
    with Server(tmp_path, str(disk), "rotational=yes") as server:
        (export,) = json.loads(run("nbdinfo --json $URI", URI=server.uri))["exports"]
        assert export["export-size"] == MIB
        for name in ("flush", "fua", "trim", "zero", "fast_zero", "multi_conn"):
            assert export[f"can_{name}"] is True, name
        assert export["is_rotational"] is True
        assert export["is_read_only"] is False
        assert export["block_size_minimum"] in (512, 4096)
    with Server(tmp_path, str(disk), "readonly=yes", "rotational=no", "direct=no") as server:
        (export,) = json.loads(run("nbdinfo --json $URI", URI=server.uri))["exports"]
        assert export["is_read_only"] is True
        assert export["is_rotational"] is False
        assert export["can_cache"] is True


def test_a_read_only_server_does_not_need_a_writable_file(tmp_path: Path) -> None:
    disk = image(tmp_path / "disk", MIB, b"abc")
    disk.chmod(0o444)
    with Server(tmp_path, str(disk), "readonly=yes").serving() as (_, handle):
        assert handle.pread(512, 0)[:3] == b"abc"
        handle.set_strict_mode(0)
        with pytest.raises(nbd.Error) as refusal:
            handle.pwrite(bytes(512), 0)
        assert refusal.value.errnum == 1  # EPERM


def test_requests_out_of_blocks_are_refused(tmp_path: Path) -> None:
    disk = image(tmp_path / "disk", MIB)
    with Server(tmp_path, str(disk)).serving() as (server, handle):
        handle.set_strict_mode(0)
        for length, offset in ((100, 0), (512, 100)):
            with pytest.raises(nbd.Error) as refusal:
                handle.pread(length, offset)
            assert refusal.value.errnum == 22  # EINVAL
    assert "not in blocks of" in server.text()
    with Server(tmp_path, str(disk), options=("--filter=blocksize",)).serving() as (server, handle):
        handle.pwrite(b"across", 510)
        assert handle.pread(6, 510) == b"across"


def extents(handle: Any, size: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []

    def note(context: str, offset: int, entries: list[int], error: Any) -> int:
        found.extend(zip(entries[::2], entries[1::2], strict=True))
        return 0

    at = 0
    while at < size:
        before = len(found)
        handle.block_status(size - at, at, note)
        at += sum(length for length, _ in found[before:])
    merged: list[tuple[int, int]] = []
    for length, flags in found:
        if merged and merged[-1][1] == flags:
            merged[-1] = (merged[-1][0] + length, flags)
        else:
            merged.append((length, flags))
    return merged


def test_holes_are_told(tmp_path: Path) -> None:
    files = members(tmp_path, 2, MIB)
    with Server(tmp_path, *(f"file={path}" for path in files), "chunk=64k") as server:
        handle = nbd.NBD()
        handle.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
        handle.connect_uri(server.uri)
        assert extents(handle, 2 * MIB) == [(2 * MIB, 3)]
        handle.pwrite(b"x" * 128 * KIB, 256 * KIB)
        assert extents(handle, 2 * MIB) == [
            (256 * KIB, 3),
            (128 * KIB, 0),
            (2 * MIB - 384 * KIB, 3),
        ]
        handle.zero(64 * KIB, 320 * KIB)
        assert extents(handle, 2 * MIB)[1] == (64 * KIB, 0)
        handle.shutdown()


def test_fast_zero_is_quick_or_refused(tmp_path: Path) -> None:
    disk = image(tmp_path / "disk", 8 * MIB, b"x")
    fast = nbd.CMD_FLAG_FAST_ZERO
    with Server(tmp_path, str(disk)).serving() as (_, handle):
        handle.zero(MIB, 0, fast)
        assert handle.pread(MIB, 0) == bytes(MIB)
    with Server(tmp_path, str(disk), "emulate=ssd").serving() as (_, handle):
        handle.zero(MIB, 2 * MIB, fast)
        with pytest.raises(nbd.Error) as refusal:
            handle.zero(MIB, 4 * MIB, fast | nbd.CMD_FLAG_NO_HOLE)
        assert refusal.value.errnum == 95  # ENOTSUP
        handle.zero(MIB, 4 * MIB, nbd.CMD_FLAG_NO_HOLE)
        assert handle.pread(MIB, 4 * MIB) == bytes(MIB)


def test_zeroing_leaves_no_hole_where_it_may_not(tmp_path: Path) -> None:
    """A client that keeps its space must not get ENOSPC later."""
    disk = image(tmp_path / "disk", 2 * MIB, b"x")
    subprocess.run(["sync", disk], check=True)
    before = disk.stat().st_blocks
    with Server(tmp_path, str(disk)).serving() as (_, handle):
        handle.zero(MIB, 0, nbd.CMD_FLAG_NO_HOLE)
        handle.flush()
        assert handle.pread(MIB, 0) == bytes(MIB)
        assert disk.stat().st_blocks >= before
        handle.zero(MIB, MIB)
        assert handle.pread(MIB, MIB) == bytes(MIB)
    assert disk.stat().st_blocks < before


def test_a_block_device(tmp_path: Path) -> None:
    disk = image(tmp_path / "disk", 16 * MIB)
    with loop_device(disk, "--direct-io=on") as device:
        with Server(tmp_path, device).serving() as (_, handle):
            handle.pwrite(b"on the device" + bytes(499), MIB, nbd.CMD_FLAG_FUA)
            assert handle.pread(512, MIB)[:13] == b"on the device"
            handle.zero(4096, MIB)
            assert handle.pread(512, MIB) == bytes(512)
            handle.trim(MIB, 2 * MIB)
            handle.pwrite(b"y" * 4096, 3 * MIB)
            handle.flush()
        assert disk.read_bytes()[3 * MIB : 3 * MIB + 4096] == b"y" * 4096


# ---- clients ----


def test_qemu_img_and_nbdcopy_both_ways(tmp_path: Path) -> None:
    files = members(tmp_path, 2, 32 * MIB)
    source = tmp_path / "source"
    source.write_bytes(random.Random(1).randbytes(20 * MIB) + bytes(44 * MIB))
    with Server(tmp_path, *(f"file={path}" for path in files)) as server:
        run(
            """
            qemu-img convert -n -f raw -O raw "$SOURCE" "$URI"
            qemu-img compare -f raw -F raw "$SOURCE" "$URI"
            qemu-img convert -f raw -O qcow2 "$URI" "$SOURCE.qcow2"
            qemu-img compare -f raw -F qcow2 "$SOURCE" "$SOURCE.qcow2"
            nbdcopy --destination-is-zero "$SOURCE" "$URI"
            nbdcopy "$URI" "$SOURCE.back"
            cmp "$SOURCE" "$SOURCE.back"
            """,
            URI=server.uri,
            SOURCE=str(source),
        )


def test_nbdsh_and_fio_with_verify(tmp_path: Path) -> None:
    disk = image(tmp_path / "disk", 64 * MIB)
    with Server(tmp_path, str(disk)) as server:
        said = run(
            "nbdsh --uri \"$URI\" -c 'h.pwrite(b\"z\" * 512, 0)' -c 'print(h.pread(512, 0)[:3])'",
            URI=server.uri,
        )
        assert said == "bytearray(b'zzz')\n"
        run(
            'fio --name=verify --ioengine=nbd --uri="$URI" --rw=randrw --bsrange=4k-256k'
            " --size=64m --iodepth=16 --verify=crc32c --verify_fatal=1"
            " --verify_state_save=0 --verify_backlog=64"
            " --output-format=json",
            URI=server.uri,
        )


def test_help_and_dump_plugin_are_complete() -> None:
    help_ = run('nbdkit "$PLUGIN" --help', PLUGIN=find_plugin())
    manual = (Path(__file__).parents[2] / "nbdkit/nbdkit-streamsched-plugin.pod").read_text()
    config = (Path(__file__).parents[2] / "nbdkit/config.c").read_text()
    table = config.partition("} parameters[] = {")[2].partition("};")[0]
    names = [line.split('"')[1] for line in table.splitlines() if '"' in line]
    assert len(names) > 15
    for name in names:
        assert f"{name}=" in help_ or f"[{name}=]" in help_, name
        assert f"B<{name}=" in manual, name
    dump = run('nbdkit "$PLUGIN" --dump-plugin', PLUGIN=find_plugin())
    assert "thread_model=parallel" in dump
    assert "streamsched_default_policy=stream:deadline" in dump
    assert "streamsched_tunable_stream_wait_target=500ms (10ms to 60s)" in dump
    assert "streamsched_tunable_stream_wait_target=500ms (10ms to 60s)" in dump
    assert "wd5000aaks" in dump
