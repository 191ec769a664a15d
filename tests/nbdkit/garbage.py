# SPDX-License-Identifier: GPL-2.0-only
"""Hostile parameters and hostile clients, each drawn from a random number generator."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import threading
from pathlib import Path

from nbd_server import image

KIB = 1 << 10
MIB = 1 << 20
PATIENCE_S = 2.0  # a server that waits for what its client does not read takes nothing more

# ---- parameters ----

POLICIES = (
    *("noop", "deadline", "cscan", "sptf", "linus", "stride", "wfq", "anticipatory"),
    *("cooperative", "cfq", "nwcs:deadline", "ss:noop", "stream:deadline", "stream:noop"),
    *("stream:sptf", "stream:cscan", "stream", "stream:stream:deadline", "nwcs:", ":", "deadlin"),
)
USUAL = {
    "policy": POLICIES,
    "chunk": ("4k", "64k", "128k"),
    "queue-depth": ("1", "2", "32", "256"),
    "max-request": ("64k", "1M", "4M"),
    "direct": ("yes", "no", "detect"),
    "io": ("uring", "threads", "detect"),
    "readonly": ("yes", "no", "detect"),
    "truncate": ("yes", "no"),
    "rotational": ("yes", "no", "detect"),
    "coordinate": ("yes", "no", "detect"),
    "curve": ("learn", "0:0", "0:1000000 8:2000000 1000:9000000"),
    "writes": ("sync", "async"),
    "wait_target": ("10ms", "500ms", "60s"),
    "stream_threshold": ("2", "4", "1000"),
    "backward_cost": ("100%", "1000%"),
    "fifo_batch": ("1", "1000000"),
    "read_expire": ("1ms", "60s"),
    "fault": (
        *("0:read:EIO:65536-131072", "0:write:ENOSPC:0-4096", "1:any:short", "0:any:3ms"),
        *("0:flush:EIO:3-4", "1:read:ENXIO", "0:any:ESHUTDOWN:500000-500001"),
    ),
    "stats": ("-",),
}
NUMBERS = (
    *("", "0", "-0", "-1", "1", "nan", "NaN", "inf", "1e3", "0x10", " 5", "5 ", "+5", "5,0"),
    *("4294967295", "4294967296", "9223372036854775807", "9223372036854775808"),
    *("18446744073709551615", "18446744073709551616", "8E", "16383P", "99999999999999P"),
    *("1kkB", "1k1", "\u0665", "%s%n%n", "\x01", "5\n", "yes", "detect", "auto"),
)
EFFECTS = ("EIO", "short", "5ms", "-5ms", "1e9ms", "4294967296ms", "3600001ms", "EFOO", "")


def hostile_value(rnd: random.Random, key: str, names: list[str]) -> str:
    if key == "fault":
        parts = [rnd.choice(NUMBERS), rnd.choice(("read", "any", "flush", "eat", ""))]
        parts += [rnd.choice(EFFECTS), f"{rnd.choice(NUMBERS)}-{rnd.choice(NUMBERS)}", ""]
        return ":".join(parts[: rnd.randint(1, 5)])
    if key == "curve":
        points = [f"{rnd.choice(NUMBERS)}:{rnd.choice(NUMBERS)}" for _ in range(rnd.randint(1, 40))]
        return " ".join(points)
    kind = rnd.random()
    if kind < 0.5:
        return rnd.choice(NUMBERS)
    if kind < 0.8:
        return rnd.choice(names)
    if kind < 0.9:
        return rnd.choice("x:-%/. ") * rnd.choice((1, 63, 64, 65, 300, 5000))
    return "".join(chr(rnd.randint(1, 255)) for _ in range(rnd.randint(1, 90))).replace("/", "_")


OUTPUTS = ("log", "stats", "metrics")


class Folder:
    """Files to serve, and others that no server may change."""

    def __init__(self, path: Path, rnd: random.Random) -> None:
        self.path = path
        path.mkdir()
        size = rnd.choice((64 * KIB, MIB, MIB, MIB, 3 * MIB))
        self.disks = [self._disk(rnd, i, size) for i in range(4)]
        (path / "folder").mkdir()
        (path / "text").write_text("precious\n")
        (path / "empty").touch()
        (path / "soft").symlink_to(self.disks[0])
        (path / "dangling").symlink_to(path / "nowhere")
        (path / "hard").hardlink_to(self.disks[1])
        os.mkfifo(path / "pipe")
        self.before = {
            name: name.read_bytes() for name in (*self.disks, path / "text", path / "empty")
        }
        others = ("folder", "folder/", "text", "empty", "soft", "dangling", "hard", "pipe", ".")
        self.names = [str(disk) for disk in self.disks]
        self.names += [f"{path}/{name}" for name in others]
        self.names += ["/dev/full", "/dev/null", "/dev/stdin", "/proc/self/mem", "/"]

    def _disk(self, rnd: random.Random, number: int, size: int) -> Path:
        size += rnd.choice((0, 0, 0, 0, 0, 0, 512, 1000, 4096))
        disk = image(self.path / f"disk{number}", size)
        disk.write_bytes(rnd.randbytes(size))
        return disk

    def parameters(self, rnd: random.Random) -> list[str]:
        files = rnd.sample(self.disks, rnd.choice((0, 1, 1, 1, 2, 3, 4)))
        given = [f"file={file}" for file in files]
        if not files or rnd.random() < 0.2:
            given.append(f"emulate={rnd.choice(('ssd', 'ssd', 'exos-x18', 'wd5000aaks'))}")
            given += [f"size={rnd.choice(('64k', '1M', '7M'))}"] if not files else []
        for key in rnd.sample(list(USUAL), rnd.randint(0, 4)):
            given.append(f"{key}={rnd.choice(USUAL[key])}")
        for key in rnd.sample(OUTPUTS, rnd.choice((0, 1, 2, 3))):
            given.append(f"{key}={self.path}/{key}-{rnd.choice('ab')}")
            given += [f"metrics-interval={rnd.choice((1, 1, 1, 9))}"] if key == "metrics" else []
        if rnd.random() < 0.4:
            keys = [
                *USUAL,
                *OUTPUTS,
                "metrics-interval",
                "file",
                "emulate",
                "size",
                "nonsense",
                "quantum",
            ]
            for key in rnd.choices(keys, k=rnd.randint(1, 3)):
                given.append(f"{key}={hostile_value(rnd, key, self.names)}")
        rnd.shuffle(given)
        return given

    def changed(self, served: bool) -> list[str]:
        """Which files are not as they were; of those that were @served only the length counts."""
        return [
            name.name
            for name, before in self.before.items()
            if (now := name.read_bytes()) != before
            and not (served and name in self.disks and len(now) == len(before))
        ]


# ---- clients ----

FLAGS = b"\0\0\0\3"  # fixed newstyle, no zeroes
GREETING_BYTES = 18
OPTION = b"IHAVEOPT"
EXPORT_NAME, ABORT, LIST, STARTTLS, INFO, GO, STRUCTURED, LIST_META, SET_META = (
    *(1, 2, 3, 5, 6, 7, 8),
    *(9, 10),
)
REPLY = struct.Struct(">QIII")
REPLY_ACK, REPLY_INFO, INFO_EXPORT = 1, 3, 0
REQUEST = struct.Struct(">IHHQQI")
MAGIC = 0x25609513
READ, WRITE, DISCONNECT, FLUSH, TRIM, CACHE, ZEROES, STATUS = range(8)
CHANGES = (WRITE, TRIM, ZEROES)
MOST_CHANGED = 256 * KIB  # in memory a range that is zeroed is allocated
LENGTHS = (0, 1, 511, 512, 4095, 4096, 65536, 1 << 25, 1 << 26, (1 << 26) + 1)
HUGE = (1 << 31, (1 << 32) - 512, (1 << 32) - 1)


def second_half(size: int) -> int:
    """Where garbage may change an export of that @size."""
    return min((size // 2 + 4095) & ~4095, size)


class Garbage(threading.Thread):
    """One client that means no good, or does not know better.

    It changes nothing of the first half of the export.
    """

    def __init__(self, path: Path, rnd: random.Random) -> None:
        super().__init__()
        self.path = str(path)
        self.rnd = rnd

    def run(self) -> None:
        with contextlib.suppress(OSError, EOFError), socket.socket(socket.AF_UNIX) as server:
            server.settimeout(PATIENCE_S)
            server.connect(self.path)
            self.rnd.choice((self.noise, self.haggle, self.ask, self.ask))(server)

    def some(self, data: bytes) -> bytes:
        """Cut off somewhere, or with a few bytes that are different."""
        rnd = self.rnd
        if rnd.random() < 0.5:
            return data[: rnd.randint(0, len(data))]
        changed = bytearray(data)
        for _ in range(rnd.randint(1, 4)):
            changed[rnd.randrange(len(data))] = rnd.randrange(256)
        return bytes(changed)

    def drain(self, server: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while server.recv(MIB, socket.MSG_DONTWAIT):
                pass

    def noise(self, server: socket.socket) -> None:
        rnd = self.rnd
        if rnd.random() < 0.7:
            server.recv(GREETING_BYTES)
        if rnd.random() < 0.5:
            server.sendall(FLAGS)
        for _ in range(rnd.randint(0, 5)):
            server.sendall(rnd.randbytes(rnd.choice((1, 3, 4, 16, 28, 5000))))

    # ---- the handshake ----

    def option(self) -> bytes:
        rnd = self.rnd
        option = rnd.choice((*range(13), rnd.randrange(1 << 32)))
        name = rnd.choice((b"", b"x", b"\0", b"\xff" * 300, b"n" * 4096, b"n" * 4097))
        name_length = rnd.choice((len(name), len(name), 0, 4097, 1 << 31, (1 << 32) - 1))
        nr = rnd.choice((0, 1, 3, 65535))
        data = rnd.choice(
            (
                *(b"", name, rnd.randbytes(rnd.randint(0, 200))),
                struct.pack(">I", name_length) + name + struct.pack(">H", nr) + bytes(2 * nr),
                struct.pack(">I", name_length)
                + name
                + struct.pack(">II", nr, 15)
                + b"base:allocation"
                + rnd.randbytes(rnd.randint(0, 9)),
            )
        )
        length = rnd.choice((len(data),) * 8 + (0, 65536, 1 << 24, (1 << 32) - 1))
        return OPTION + struct.pack(">II", option, length) + data

    def haggle(self, server: socket.socket) -> None:
        rnd = self.rnd
        server.recv(GREETING_BYTES)
        server.sendall(FLAGS if rnd.random() < 0.8 else rnd.randbytes(4))
        for _ in range(rnd.randint(1, 40)):
            option = self.option()
            server.sendall(option if rnd.random() < 0.9 else self.some(option))
            if rnd.random() < 0.7:
                self.drain(server)

    def go(self, server: socket.socket) -> int:
        """To the transmission; the export's size."""
        with server.makefile("rb") as replies:
            replies.read(GREETING_BYTES)
            server.sendall(FLAGS)
            if self.rnd.random() < 0.5:
                server.sendall(OPTION + struct.pack(">II", STRUCTURED, 0))
                replies.read(REPLY.size)
            server.sendall(OPTION + struct.pack(">IIIH", GO, 6, 0, 0))
            size = 0
            while True:
                head = replies.read(REPLY.size)
                if len(head) < REPLY.size:
                    raise EOFError
                _, _, kind, length = REPLY.unpack(head)
                data = replies.read(length)
                if kind == REPLY_INFO and data[:2] == struct.pack(">H", INFO_EXPORT):
                    (size,) = struct.unpack(">Q", data[2:10])
                if kind == REPLY_ACK:
                    return int(size)
                if kind & 1 << 31:
                    raise EOFError

    # ---- requests ----

    def place(self, kind: int, size: int) -> tuple[int, int]:
        """Offset and length; what would change data is in the second half, or past the end."""
        rnd = self.rnd
        half = second_half(size)
        length = rnd.choice(LENGTHS)
        if rnd.random() < 0.6:
            length = min(length, MOST_CHANGED)
            return rnd.choice((half, rnd.randrange(half, size + 1))), length
        offset = rnd.choice((0, half, size - 1, size, (1 << 63) - 1, 1 << 63, (1 << 64) - 512))
        length = rnd.choice((length, *HUGE))
        if kind in CHANGES and offset + length <= size:
            return size, length
        if kind not in CHANGES and length > 4 * MIB:
            return size, length
        return offset, length

    def request(self, size: int) -> bytes:
        rnd = self.rnd
        kind = rnd.choice((*range(8), READ, WRITE, rnd.randrange(65536)))
        if kind == DISCONNECT and rnd.random() < 0.9:
            kind = READ
        flags = rnd.choice((0, 0, 0, 1, 2, 3, 4, 8, 16, 31, rnd.randrange(65536)))
        if rnd.random() < 0.6:
            offset, length = self.place(kind, size)
        else:  # as a good client would
            half = second_half(size)
            flags, length = 0, 4096 * rnd.randint(1, 16)
            last = max(0, (size - half - length) // 4096)
            offset = half + 4096 * rnd.choice((0, rnd.randint(0, last)))
            kind = kind % 8
            if offset + length > size:
                kind = READ
        head = REQUEST.pack(MAGIC, flags, kind, rnd.randrange(1 << 64), offset, length)
        if kind == WRITE and length <= 1 << 25:
            head += rnd.randbytes(min(length, KIB)).ljust(length, b"g")
        return head

    def ask(self, server: socket.socket) -> None:
        rnd = self.rnd
        size = self.go(server)
        listens = rnd.random() < 0.7
        for _ in range(rnd.randint(1, 60)):
            server.sendall(self.request(size))
            if listens:
                self.drain(server)
        end = rnd.random()
        if end < 0.3:
            # Half of one; with other bytes in it, it might be for the first half of the export.
            server.sendall(self.request(size)[: rnd.randrange(REQUEST.size)])
        elif end < 0.5:
            server.sendall(rnd.randbytes(rnd.randint(1, 100)))
        elif end < 0.7:
            server.sendall(REQUEST.pack(MAGIC, 0, DISCONNECT, 0, 0, 0))
        elif end < 0.9:
            server.shutdown(socket.SHUT_WR)
        if listens and rnd.random() < 0.7:
            with contextlib.suppress(TimeoutError):
                server.settimeout(0.5)
                while server.recv(MIB):
                    pass
