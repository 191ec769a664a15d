# SPDX-License-Identifier: GPL-2.0-only
"""Inside the rig, who streams: writes or reads the whole of a file again and again.

SIGUSR1: count from now on; SIGTERM: tell how many bytes it were.
"""

import os
import signal

block, done, before = b"z" * (1 << 20), 0, 0


def count(*_: object) -> None:
    """Bytes before this do not count."""
    global before
    before = done


def tell(*_: object) -> None:
    """And end."""
    with open(os.environ["OUT"] + "/streamed", "w") as file:  # noqa: PTH123  starts sooner
        file.write(str(done - before))
    os._exit(0)


signal.signal(signal.SIGUSR1, count)
signal.signal(signal.SIGTERM, tell)
while True:
    fd = os.open("/run/fs/c/big", os.O_RDWR)
    while os.lseek(fd, 0, os.SEEK_CUR) < 256 << 20:
        done += os.write(fd, block) if os.environ["RW"] == "write" else len(os.read(fd, 1 << 20))
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
