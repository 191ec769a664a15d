# SPDX-License-Identifier: GPL-2.0-only
"""Start a program of root's where it can change nothing. A script, started by its own path.

    python3 -I confined.py RULES PROGRAM ARGUMENT...

`udevadm test` writes what rules say to sysfs, /dev and /run before systemd 256, and starts the
programs that rules name. Here all mounts are read-only, no program of the machine can be reached by
a socket, and of root's powers two are left, which asking a disk for its serial number takes: to
read any file or disk, and to send commands to a disk that is open. RULES is a folder that stands
in for /etc/udev/rules.d, or empty.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWNET = 0x20000, 0x8000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
PR_SET_KEEPCAPS, PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 8, 23, 24, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAPABILITY_VERSION_3 = 47, 2, 0x20080522
KEPT = (2, 17)  # CAP_DAC_READ_SEARCH, CAP_SYS_RAWIO
NOBODY = 65534
LOG = {"SYSTEMD_LOG_LEVEL": "debug", "SYSTEMD_LOG_TARGET": "console", "SYSTEMD_COLORS": "0"}
libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """A call of the C library. If it fails this ends, so that nothing runs unconfined."""
    # A number fills its register.
    wide = (ctypes.c_long(one) if isinstance(one, int) else one for one in arguments)
    if getattr(libc, name)(*wide):
        why = os.strerror(ctypes.get_errno())
        sys.exit(f"udev cannot be asked where it changes nothing: {name}: {why}")


def shut_mounts(rules: str) -> None:
    """Mounts of our own, all of them read-only."""
    call("unshare", CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET)
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    if rules:
        call("mount", rules.encode(), b"/etc/udev/rules.d", None, MS_BIND, None)
    # Its sockets could be connected to on a read-only mount, too. What udev knows stays.
    data = os.open("/run/udev", os.O_PATH) if Path("/run/udev").is_dir() else None
    call("mount", b"tmpfs", b"/run", b"tmpfs", 0, None)
    if data is not None:
        Path("/run/udev").mkdir()
        call("mount", f"/proc/self/fd/{data}".encode(), b"/run/udev", None, MS_BIND, None)
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY)
    size = ctypes.sizeof(attributes)
    call("syscall", SYS_MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, attributes, size)


def drop_powers() -> None:
    """Nobody, with KEPT. A disk can then be read, and not be opened to write."""
    capability = 0
    while libc.prctl(PR_CAPBSET_READ, capability) >= 0:
        if capability not in KEPT:
            call("prctl", PR_CAPBSET_DROP, capability)
        capability += 1
    call("prctl", PR_SET_KEEPCAPS, 1)
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    kept = sum(1 << one for one in KEPT)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3)
    call("capset", header, (ctypes.c_uint32 * 6)(kept, kept, kept))
    for one in KEPT:
        call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, one, 0, 0)


if __name__ == "__main__":
    if os.geteuid():
        sys.exit("only root can ask udev")
    shut_mounts(sys.argv[1])
    drop_powers()
    try:
        os.execvpe(sys.argv[2], sys.argv[2:], os.environ | LOG)
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error.strerror}")
