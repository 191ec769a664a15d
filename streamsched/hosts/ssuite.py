# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/results/s-suite.md: S, the benchmark suite of bfq's makers, in the rig.

`make results WHAT=s-suite` measures all; `python -m streamsched.hosts.ssuite` measures what is
named. tools/setup.sh s-suite fetches the suite, none of which is in this tree. Its own scripts
run on ext4 on an emulated disk, straight or behind a loop device, and each line is a rig of its
own. docs/S-SUITE.md says what is run, and what cannot be.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from streamsched.base.cache import kept_in
from streamsched.base.errors import StreamschedError, UsageError, exit_code_of, named
from streamsched.base.files import Target, write_whole
from streamsched.base.progress import counted
from streamsched.base.units import whole_number
from streamsched.hosts import rig
from streamsched.hosts.kernelhost import DEFAULT_POLICIES, KernelPolicy, boot, parse_policies
from streamsched.hosts.kerneltable import with_rows
from streamsched.sim.diskfile import load_disk

# tools/setup.sh reads these two lines.
WHERE = "https://github.com/Algodev-github/S"
COMMIT = "27fa2b229ec60a323716327ecf423990a775b3dc"
DISK = "exos-x18"
QUEUE_DEPTH = 32
PATHS = ("direct", "loop")
# Nobody reads the block trace of these runs. Writers fill the page cache and the disk.
TRACE_KIB = 1000
MEMORY_MB = 6000
MOST_RIGS = 64
# Virtual seconds that a script may take.
LIMIT_S = 900
# sysstat and fio count in these, the suite says MB/s of both.
IOSTAT_MB = (1 << 20) / 1e6
FIO_MB = 1024 / 1000
# Readers, writers, and what they do, as the suite's run_main_benchmarks.sh has them.
STARTUP = {
    "gnometerm": ("0 0 seq", "10 0 seq", "5 5 seq"),
    "xterm": ("0 0 seq", "10 0 seq"),
    "lowriter": ("0 0 seq", "10 0 seq"),
}
THROUGHPUT = ("10 0 seq", "10 0 rand", "5 5 seq")
INTERFERED = (("randread", "read"), ("read", "randread"))

Figures = tuple[str, ...]
Statistics = dict[str, tuple[float, float, float]]  # smallest, greatest, mean


def statistics(text: str) -> Statistics:
    """What a file of results of the suite says, by its headings."""
    number = r"\s+([\d.e+-]+)"
    found = re.findall(rf"^(.+):\s*\n\s*min .*\n{number}{number}{number}", text, re.MULTILINE)
    return {name: (float(low), float(high), float(mean)) for name, low, high, mean in found}


def _mb_s(of: Statistics, what: str) -> str:
    return f"{of[f'{what} throughput'][2] * IOSTAT_MB:.1f}"


def startup_figures(text: str) -> Figures:
    """Of comm_startup_lat.sh: the start-up times, and what the disk did meanwhile."""
    found = statistics(text)
    _, longest, mean = found["Latency statistics"]
    return f"{mean:.2f}", f"{longest:.2f}", _mb_s(found, "Aggregated")


def throughput_figures(text: str) -> Figures:
    """Of throughput-sync.sh."""
    found = statistics(text)
    return tuple(_mb_s(found, what) for what in ("Aggregated", "Read", "Write"))


def interfered_figures(text: str) -> Figures:
    """Of bandwidth-latency.sh: what the one has, how long it waits, and what the disk does."""
    found = statistics(text)
    rate = found["Interfered total throughput"][2] * FIO_MB
    _, longest, mean = found["Interfered per-request total latency"]
    return f"{rate:.2f}", f"{mean:.1f}", f"{longest:.0f}", _mb_s(found, "Aggregated")


def fairness_figures(text: str) -> Figures:
    """Of fairness.sh, whose own sums of dd's lines are wrong since coreutils 8.24."""
    found = re.findall(r"^(\d+) bytes .* copied, ([\d.]+) s, ", text, re.MULTILINE)
    rates = [int(size) / float(seconds) / 1e6 for size, seconds in found]
    total = sum(int(size) for size, _ in found) / 1e6
    # Both begin at once in each iteration; the later one ends it.
    pairs = [float(seconds) for _, seconds in found]
    spent = sum(max(pairs[at : at + 2]) for at in range(0, len(pairs), 2))
    return f"{total / spent:.1f}", f"{min(rates):.1f}", f"{max(rates):.1f}"


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A table: the columns of its figures, and what is run for each line."""

    head: tuple[str, ...]
    figures: Callable[[str], Figures]
    commands: Mapping[str, str]  # by line: the script and its arguments; $RES for its results
    # bfq's low_latency is switched off by the script, so that one line is enough.
    switches_off: bool = False


def _infix(workload: str) -> str:
    """As the suite has it in names: 10r0w-seq."""
    return re.sub(r"(\d+) (\d+) (\w+)", r"\1r\2w-\3", workload)


BENCHMARKS = {
    "startup": Benchmark(
        ("mean s", "longest s", "disk MB/s"),
        startup_figures,
        {
            f"{program}-{_infix(one)}": "comm_startup_lat/comm_startup_lat.sh "
            f'cur-sched {one} 2 "replay-startup-io {program}" $RES'
            for program, workloads in STARTUP.items()
            for one in workloads
        },
    ),
    "throughput": Benchmark(
        ("MB/s", "read", "written"),
        throughput_figures,
        {
            _infix(one): f"throughput-sync/throughput-sync.sh cur-sched {one} $RES"
            for one in THROUGHPUT
        },
    ),
    "fairness": Benchmark(
        ("MB/s", "least reader", "most"),
        fairness_figures,
        {
            "100-100": "fairness/fairness.sh cur-sched 2 3 200 seq 100 100\n"
            "cat results-*/iter-*/singles/reader-* >$RES/dd"
        },
        switches_off=True,
    ),
    "interfered": Benchmark(
        ("its MB/s", "mean ms", "longest ms", "disk MB/s"),
        interfered_figures,
        {
            f"{one}-beside-{others}": "bandwidth-latency/bandwidth-latency.sh -s cur-sched "
            f"-b none -t {one} -T {others} -n 7 -w default -W default -o $RES"
            for one, others in INTERFERED
        },
        switches_off=True,
    ),
}
EVERY = {policy.label: policy for policy in parse_policies(DEFAULT_POLICIES)}

# The files that the suite would write first, 500 MB each, but of holes that the disk need not
# keep: allocated, and read from the disk as others are.
PREPARE = """\
cat >/run/mke2fs.conf <<'END'
[defaults]
blocksize = 4096
inode_size = 256
inode_ratio = 1048576
[fs_types]
ext4 = {
features = has_journal,extent,huge_file,flex_bg,64bit,filetype,sparse_super,large_file,dir_index
}
s = {
make_hugefiles = true
hugefiles_dir = /files
hugefiles_name = largefile
hugefiles_digits = 1
hugefiles_size = 500M
num_hugefiles = 10
zero_hugefiles = false
}
END
MKE2FS_CONFIG=/run/mke2fs.conf mkfs.ext4 -q -T s -E nodiscard -J size=64 "$DEV" 20G &&
	mkdir -p /run/fs && mount -o noinit_itable "$DEV" /run/fs &&
	ln /run/fs/files/largefile9 /run/fs/files/largefile_interfered0 || exit 1
echo 3 >/proc/sys/vm/drop_caches
"""

# The suite's own configuration, but for its files and its disk. It knows a disk by its transport,
# which an emulated one has not. It makes /cgroup, but the rig's root is read-only. And fio has real
# time unless it is told otherwise. That is wrong where fio waits or measures; elsewhere it does
# not matter, and to read the clock takes most of the rig's own time.
WORK = """\
cp -a "$SUITE" /tmp/S && mkdir /tmp/bin /tmp/res || exit 1
cat >/tmp/bin/lsblk <<'END'
#!/bin/sh
case "$*" in *TRAN*) echo sata ;; *) exec /usr/bin/lsblk "$@" ;; esac
END
cat >/tmp/bin/fio <<'END'
#!/bin/sh
case "$*" in *-) cat >/tmp/job.$$ && exec </tmp/job.$$ ;; esac
clock=
! grep -Eqs "^ *(ramp_time|rate)=" /tmp/job.$$ || clock=--clocksource=clock_gettime
case "$clock $*" in --*loops=*) clock="$clock --gtod_reduce=1" ;; esac
LD_PRELOAD=$IN/fio-start.so exec /usr/bin/fio $clock "$@"
END
chmod 755 /tmp/bin/*
export PATH=/tmp/bin:$PATH GROUP=blkio RES=/tmp/res
{
	cat /tmp/S/def_config.sh
	echo "BASE_DIR=/run/fs/files DEVS=hdd0 HIGH_LEV_DEV=${DEV#/dev/}"
} >"$HOME/.S-config.sh"
sed -i 's|/cgroup|/run/cgroup|g' /tmp/S/fairness/*.sh /tmp/S/bandwidth-latency/*.sh
cd "/tmp/S/$FOLDER" && timeout "$LIMIT_S" bash "$IN/command.sh" >"$OUT/log" 2>&1
cat /tmp/res/* >"$OUT/results" 2>/dev/null
exit 0
"""


@dataclasses.dataclass(frozen=True)
class Cell:
    """What one line's script said under one scheduler."""

    benchmark: str
    line: str
    path: str
    policy: str
    figures: Figures  # as the table has them; empty: it failed

    def row(self) -> str:
        """A line of the table."""
        columns = len(BENCHMARKS[self.benchmark].head)
        figures = self.figures or ("failed", *["-"] * (columns - 1))
        return f"| {self.line} | {self.path} | {self.policy} | {' | '.join(figures)} |"


def suite() -> Path:
    """The folder that tools/setup.sh has filled."""
    folder = kept_in("s-suite", "the suite S") / COMMIT[:12]
    if not (folder / "comm_startup_lat" / "replay-startup-io").is_file():
        raise StreamschedError(
            f"the suite S is missing (commit {COMMIT[:12]} of {WHERE}): tools/setup.sh s-suite "
            "fetches it"
        )
    return folder


def measure_cell(benchmark: str, line: str, path: str, policy: KernelPolicy) -> Cell:
    """Run a line's script in a rig of its own."""
    about = BENCHMARKS[benchmark]
    script, _, arguments = about.commands[line].partition(" ")
    folder, name = script.split("/")
    cell = Cell(benchmark, line, path, policy.label, ())
    values = {"SUITE": str(suite()), "FOLDER": folder, "LIMIT_S": str(LIMIT_S)}
    try:
        result = boot(
            load_disk(DISK),
            policy,
            "".join(f"{key}={shlex.quote(value)}\n" for key, value in values.items()) + WORK,
            path=path,
            queue_depth=QUEUE_DEPTH,
            prepare=PREPARE,
            files={"command.sh": f"bash ./{name} {arguments}\n"},
            memory_mb=MEMORY_MB,
            trace_kib=TRACE_KIB,
            show=[suite()],
        )
    except rig.RigError as error:
        _complain(cell, str(error))
        return cell
    try:
        figures = about.figures(result.files.get("results", b"").decode())
    except (KeyError, ValueError, ZeroDivisionError):
        said = result.files["log"].decode(errors="replace").replace("\r", "\n").split("\n")
        _complain(cell, " | ".join([one.strip() for one in said if one.strip()][-3:]))
        return cell
    for complaint in result.complaints()[:1]:
        raise StreamschedError(f"{cell.row()}: the kernel complained: {complaint.strip()}")
    return dataclasses.replace(cell, figures=figures)


def _complain(cell: Cell, why: str) -> None:
    print(f"{cell.line} {cell.path} {cell.policy} failed: {why}", file=sys.stderr)


def write_into(document: Path, cells: Sequence[Cell]) -> None:
    """Put the rows that were measured where they belong, and leave the others as they are."""
    text = document.read_text()
    for name in dict.fromkeys(cell.benchmark for cell in cells):
        about = BENCHMARKS[name]
        rows = [
            f"| {line} | {path} | {policy} |"
            for line in about.commands
            for path in PATHS
            for policy in EVERY
        ]
        table = [
            f"| what | path | scheduler | {' | '.join(about.head)} |",
            "|---|---|---|" + "---:|" * len(about.head),
            *(cell.row() for cell in cells if cell.benchmark == name),
        ]
        text = with_rows(text, name, table, rows)
    write_whole(Target(document, replace=True), text)


def _at_once() -> int:
    """How many rigs run at a time: RIGS, 2 if it is not set."""
    text = os.environ.get("RIGS", "2")
    number = whole_number(text)
    if not number or number > MOST_RIGS:
        raise UsageError(f"RIGS={text}: not a number of rigs at a time; write 1 to {MOST_RIGS}")
    return number


def table(arguments: Sequence[str]) -> None:
    """Measure what is named (benchmarks, lines, paths, schedulers; nothing: all)."""
    lines = {line: name for name, about in BENCHMARKS.items() for line in about.commands}
    benchmarks, chosen, paths, schedulers = named(
        arguments,
        ("benchmark", list(BENCHMARKS)),
        ("line", list(lines)),
        ("path", PATHS),
        ("scheduler", list(EVERY)),
    )
    suite()
    at_once = _at_once()
    runs = [
        (lines[line], line, path, EVERY[label])
        for line in chosen
        for path in paths
        for label in schedulers
        if lines[line] in benchmarks
        and not (label == "bfq" and BENCHMARKS[lines[line]].switches_off)
    ]
    rig.build()
    rig.build_modules()
    document = rig.source_root() / "docs" / "results" / "s-suite.md"
    with counted() as progress, rig.pool(at_once) as pool:
        task = progress.add_task("the suite S", total=len(runs))
        for cell in pool.map(lambda run: measure_cell(*run), runs):
            progress.advance(task)
            write_into(document, [cell])


def main(arguments: Sequence[str]) -> int:
    """What `python -m streamsched.hosts.ssuite` does."""
    return exit_code_of("s-suite", lambda: table(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
