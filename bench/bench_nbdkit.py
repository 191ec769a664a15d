# SPDX-License-Identifier: GPL-2.0-only
"""What the nbdkit plugin costs: against nbdkit's own file plugin, on a file in memory.

Both serve the same file on a Unix socket to the same fio, by turns, so that other work on the
machine hits both; the medians are compared. A second figure is the servers' own processor
time for each request, which such work changes less. Exit status 1 when a ratio is below --least.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from streamsched.hosts.nbdhost import find_plugin

MEMORY = Path("/dev/shm")
FILE_BYTES = 512 << 20
WORK = {"4 KiB random reads": ("randread", "4k"), "1 MiB sequential reads": ("read", "1m")}
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(plugin: list[str], file: Path, rw: str, bs: str, seconds: float) -> tuple[float, float]:
    """(requests per second, processor microseconds of the server for each)."""
    with tempfile.TemporaryDirectory() as name:
        socket, ready = Path(name) / "socket", Path(name) / "ready"
        server = subprocess.Popen(
            [
                *("nbdkit", "-f", "--exit-with-parent", "-P", ready, "-U", socket, "-t", "32"),
                *plugin,
                f"file={file}",
            ],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not ready.exists():
                if server.poll() is not None:
                    sys.exit(f"bench_nbdkit: nbdkit {plugin[0]} did not start")
                time.sleep(0.01)
            before = cpu_s(server.pid)
            uri = f"nbd+unix:///?socket={socket}"
            done = subprocess.run(
                [
                    *("fio", "--name=x", "--ioengine=nbd", f"--uri={uri}", f"--rw={rw}"),
                    *(f"--bs={bs}", "--iodepth=32", f"--size={FILE_BYTES}", "--time_based"),
                    *(f"--runtime={int(seconds * 1000)}ms", "--output-format=json"),
                ],
                capture_output=True,
                text=True,
                check=True,
            )
            used = cpu_s(server.pid) - before
        finally:
            server.terminate()
            server.wait()
    read = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]
    return read["iops"], used * 1e6 / read["total_ios"]


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--least", type=float, default=0.0, help="the least ratio of the medians")
    parser.add_argument("parameters", nargs="*", help="of the plugin, as policy=noop")
    options = parser.parse_args()
    plugins = {"file": ["file"], "streamsched": [find_plugin(), *options.parameters]}
    with tempfile.NamedTemporaryFile(dir=MEMORY, prefix="bench-nbdkit-") as file:
        for _ in range(FILE_BYTES >> 20):
            file.write(bytes(1 << 20))
        file.flush()
        worst = float("inf")
        for work, (rw, bs) in WORK.items():
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in plugins}
            for turn in range(options.rounds):
                # Each is first as often as the other.
                for name, plugin in list(plugins.items())[:: -1 if turn % 2 else 1]:
                    found[name].append(measure(plugin, Path(file.name), rw, bs, options.seconds))
            rate = {n: statistics.median(r for r, _ in rows) for n, rows in found.items()}
            cost = {n: statistics.median(c for _, c in rows) for n, rows in found.items()}
            ratio = rate["streamsched"] / rate["file"]
            worst = min(worst, ratio)
            print(
                f"{work}, depth 32: file {rate['file']:,.0f}/s, streamsched "
                f"{rate['streamsched']:,.0f}/s, ratio {ratio:.3f}; processor time of the server "
                f"{cost['file']:.1f} and {cost['streamsched']:.1f} us a request"
            )
    return 1 if worst < options.least else 0


if __name__ == "__main__":
    sys.exit(main())
