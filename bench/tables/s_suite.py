# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/results/s-suite.md: S, the benchmark suite of bfq's makers, in the rig.

tools/setup.sh s-suite fetches the suite, none of which is in this tree. Its own scripts run on ext4
on an emulated disk, straight or behind a loop device, and each line is a rig of its own.
docs/research/S-SUITE.md says what is run, and what cannot be.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamsched.base.cache import kept_in
from streamsched.base.errors import StreamschedError
from streamsched.hosts import rig
from streamsched.hosts.kernelhost import KernelPolicy, boot
from streamsched.sim.diskfile import load_disk
from tables.common import EVERY, Rigs, Row, Table, asked, document, line_of, write_into
from tables.programs import shell

# tools/setup.sh reads these two lines.
WHERE = "https://github.com/Algodev-github/S"
COMMIT = "27fa2b229ec60a323716327ecf423990a775b3dc"
DISK = "exos-x18"
QUEUE_DEPTH = 32
PATHS = ("direct", "loop")
# Nobody reads the block trace of these runs. Writers fill the page cache and the disk.
TRACE_KIB = 1000
MEMORY_MB = 6000
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

Statistics = dict[str, tuple[float, float, float]]  # smallest, greatest, mean


def statistics(text: str) -> Statistics:
    """What a file of results of the suite says, by its headings."""
    number = r"\s+([\d.e+-]+)"
    found = re.findall(rf"^(.+):\s*\n\s*min .*\n{number}{number}{number}", text, re.MULTILINE)
    return {name: (float(low), float(high), float(mean)) for name, low, high, mean in found}


def _mb_s(of: Statistics, what: str) -> str:
    return f"{of[f'{what} throughput'][2] * IOSTAT_MB:.1f}"


def startup_figures(text: str) -> Row:
    """Of comm_startup_lat.sh: the start-up times, and what the disk did meanwhile."""
    found = statistics(text)
    _, longest, mean = found["Latency statistics"]
    return f"{mean:.2f}", f"{longest:.2f}", _mb_s(found, "Aggregated")


def throughput_figures(text: str) -> Row:
    """Of throughput-sync.sh."""
    found = statistics(text)
    return tuple(_mb_s(found, what) for what in ("Aggregated", "Read", "Write"))


def interfered_figures(text: str) -> Row:
    """Of bandwidth-latency.sh: what the one has, how long it waits, and what the disk does."""
    found = statistics(text)
    rate = found["Interfered total throughput"][2] * FIO_MB
    _, longest, mean = found["Interfered per-request total latency"]
    return f"{rate:.2f}", f"{mean:.1f}", f"{longest:.0f}", _mb_s(found, "Aggregated")


def fairness_figures(text: str) -> Row:
    """Of fairness.sh, whose own sums of dd's lines are wrong since coreutils 8.24."""
    found = re.findall(r"^(\d+) bytes .* copied, ([\d.]+) s, ", text, re.MULTILINE)
    rates = [int(size) / float(seconds) / 1e6 for size, seconds in found]
    total = sum(int(size) for size, _ in found) / 1e6
    # Both begin at once in each iteration; the later one ends it.
    pairs = [float(seconds) for _, seconds in found]
    spent = sum(max(pairs[at : at + 2]) for at in range(0, len(pairs), 2))
    return f"{total / spent:.1f}", f"{min(rates):.1f}", f"{max(rates):.1f}"


@dataclass(frozen=True)
class Benchmark:
    """A table: the columns of its figures, and what is run for each line."""

    head: tuple[str, ...]
    figures: Callable[[str], Row]
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


def suite() -> Path:
    """The folder that tools/setup.sh has filled."""
    folder = kept_in("s-suite", "the suite S") / COMMIT[:12]
    if not (folder / "comm_startup_lat" / "replay-startup-io").is_file():
        raise StreamschedError(
            f"the suite S is missing (commit {COMMIT[:12]} of {WHERE}): tools/setup.sh s-suite "
            "fetches it"
        )
    return folder


def row_of(benchmark: str, line: str, path: str, policy: str, figures: Row) -> Row:
    """A row of the table; without @figures it failed."""
    columns = len(BENCHMARKS[benchmark].head)
    return (line, path, policy, *(figures or ("failed", *["-"] * (columns - 1))))


def measure_row(benchmark: str, line: str, path: str, policy: KernelPolicy) -> Row | None:
    """Run a line's script in a rig of its own; None, and a reason, if the rig does not end well.

    It may have been stopped because this machine is busy, and tells nothing about the script.
    """
    about = BENCHMARKS[benchmark]
    script, _, arguments = about.commands[line].partition(" ")
    folder, name = script.split("/")
    values = {"SUITE": str(suite()), "FOLDER": folder, "LIMIT_S": str(LIMIT_S)}
    try:
        result = boot(
            load_disk(DISK),
            policy,
            shell(values, "s-suite.sh", call="work"),
            path=path,
            queue_depth=QUEUE_DEPTH,
            prepare=shell({}, "s-suite.sh", call="prepare"),
            files={"command.sh": f"bash ./{name} {arguments}\n"},
            memory_mb=MEMORY_MB,
            trace_kib=TRACE_KIB,
            show=[suite()],
        )
        figures = about.figures(result.files.get("results", b"").decode())
    except rig.RigError as error:
        print(f"{line} {path} {policy.label} was not measured: {error}", file=sys.stderr)
        return None
    except (KeyError, ValueError, ZeroDivisionError):
        said = result.files["log"].decode(errors="replace").replace("\r", "\n").split("\n")
        why = " | ".join([one.strip() for one in said if one.strip()][-3:])
    else:
        row = row_of(benchmark, line, path, policy.label, figures)
        for complaint in result.complaints()[:1]:
            raise StreamschedError(f"{line_of(row)}: the kernel complained: {complaint.strip()}")
        return row
    print(f"{line} {path} {policy.label} failed: {why}", file=sys.stderr)
    return row_of(benchmark, line, path, policy.label, ())


def table_of(benchmark: str) -> Table:
    """Its rows, line by line."""
    about = BENCHMARKS[benchmark]
    order = [(line, path, policy) for line in about.commands for path in PATHS for policy in EVERY]
    return Table(benchmark, ("what", "path", "scheduler"), about.head, order)


def measure(words: Sequence[str]) -> None:
    """What is named (benchmarks, lines, paths, schedulers; nothing: all), row by row."""
    lines = {line: name for name, about in BENCHMARKS.items() for line in about.commands}
    (benchmarks, chosen, paths, schedulers), at_once = asked(
        "s-suite",
        words,
        ("benchmark", BENCHMARKS),
        ("line", lines),
        ("path", PATHS),
        ("scheduler", EVERY),
    )
    suite()
    runs = [
        (lines[line], line, path, EVERY[label])
        for line in chosen
        for path in paths
        for label in schedulers
        if lines[line] in benchmarks
        and not (label == "bfq" and BENCHMARKS[lines[line]].switches_off)
    ]
    rigs, missing = Rigs(at_once, "the suite S", len(runs)), 0
    with rigs.progress:
        for run, row in zip(runs, rigs.each(lambda run: measure_row(*run), runs), strict=True):
            if row:
                write_into(document("s-suite"), table_of(run[0]), [row])
            else:
                missing += 1
    if missing:
        raise StreamschedError(f"{missing} of {len(runs)} lines were not measured; see above")
