# SPDX-License-Identifier: GPL-2.0-only
"""Inside the rig, who keeps mail: small files, each of them safe before the next is begun.

    small-files.py FOLDER COUNT

Each file is written, synced, and then gets its name. At the end all are removed, and the folder is
synced. Prints when it began, how long each file took until it was synced, and when all was done:
nanoseconds, a line each.
"""

import os
import sys
import time

folder, count = sys.argv[1] + "/small", int(sys.argv[2])
os.mkdir(folder)  # noqa: PTH102  starts sooner
print(time.monotonic_ns())
for i in range(count):
    began = time.monotonic_ns()
    fd = os.open(f"{folder}/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    # From 1 to 16 KiB, one size after the other.
    os.write(fd, b"m" * (1024 * (1 + i % 16)))
    os.fsync(fd)
    os.close(fd)
    print(time.monotonic_ns() - began)
    os.rename(f"{folder}/new", f"{folder}/{i}")  # noqa: PTH104
for i in range(count):
    os.remove(f"{folder}/{i}")  # noqa: PTH107
fd = os.open(folder, os.O_RDONLY)
os.fsync(fd)
os.close(fd)
print(time.monotonic_ns())
