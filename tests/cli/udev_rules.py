# SPDX-License-Identifier: GPL-2.0-only
"""Rules of udev of the shapes that distributions have, and what udevadm says with all of them."""

from __future__ import annotations

from pathlib import Path

SUSE = """\
SUBSYSTEM!="block", GOTO="end"
ACTION!="add|change", GOTO="end"
TEST!="%S%p/queue/scheduler", GOTO="end"
ENV{MULTIPATH}=="1", ATTR{queue/scheduler}="none", GOTO="end"
ATTR{queue/rotational}!="0", TEST!="%S%p/mq/1", ATTR{queue/scheduler}="bfq", GOTO="end"
ATTR{queue/scheduler}="none"
LABEL="end"
"""
CACHYOS = """\
# HDD
ACTION=="add|change", KERNEL=="sd[a-z]*", ATTR{queue/rotational}=="1", \\
    ATTR{queue/scheduler}="bfq"

# SSD
ACTION=="add|change", KERNEL=="sd[a-z]*|mmcblk[0-9]*", ATTR{queue/rotational}=="0", \\
    ATTR{queue/scheduler}="mq-deadline"

# NVMe SSD
ACTION=="add|change", KERNEL=="nvme[0-9]*", ATTR{queue/rotational}=="0", \\
    ATTR{queue/scheduler}="none"
"""
ARCH = (
    'ACTION=="add|change", KERNEL=="sd[a-z]*", ATTR{queue/rotational}=="1", '
    'ATTR{queue/scheduler}="bfq"\n'
)
FEDORA = (
    '\nACTION=="add", SUBSYSTEM=="block", KERNEL=="mmcblk*[0-9]|msblk*[0-9]|mspblk*[0-9]|'
    'sd*[!0-9]|sr*", ATTR{queue/scheduler}="bfq"\n'
)
RUN = """\
RUN+="/bin/sh -c 'echo bfq > /sys/block/%k/queue/scheduler'"
ACTION=="change", RUN="/bin/sh -c 'echo kyber > /sys/block/%k/queue/scheduler'"
"""
PROGRAM = 'PROGRAM=="/bin/true", ATTR{queue/scheduler}="kyber"\n'
OF_PACKAGES, OF_ADMIN = "/usr/lib/udev/rules.d", "/etc/udev/rules.d"
EVERY = {
    f"{OF_PACKAGES}/60-io-scheduler.rules": SUSE,
    f"{OF_PACKAGES}/60-ioschedulers.rules": CACHYOS,
    f"{OF_PACKAGES}/60-block-scheduler.rules": FEDORA,
    f"{OF_ADMIN}/59-ioschedulers.rules": ARCH,
    f"{OF_ADMIN}/98-run.rules": RUN,
    f"{OF_ADMIN}/99-program.rules": PROGRAM,
}


def recorded(version: int, action: str) -> str:
    """What udevadm of systemd @version said of sda with EVERY and our rule, without other lines."""
    return (Path(__file__).parent / "udevadm" / f"{version}-{action}.txt").read_text()


def alone(action: str) -> str:
    """The same for a machine that has our rule alone."""
    lines = recorded(252, action).splitlines()
    others = ("run:", *(name.rpartition("/")[2] for name in EVERY))
    return "\n".join(line for line in lines if not any(one in line for one in others))
