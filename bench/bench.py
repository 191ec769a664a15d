# SPDX-License-Identifier: GPL-2.0-only
"""Measure the simulator and the core against their targets: make bench.

    python bench/bench.py                 everything, about two minutes
    python bench/bench.py --quick         the same on a tenth of the requests
    python bench/bench.py --only core     one part: replay, python, core, disk or memory

bench/README.md says what is measured, and how.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Setup, measured_curve, run_trace
from streamsched.work import tracefile

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "build" / "bench"
MAKE_TRACE = ROOT / "bench" / "make_trace.py"
CORE_SOURCE = ROOT / "bench" / "bench_core.c"
DISK_SOURCE = ROOT / "bench" / "bench_disk.c"
BIG_DISK, EXTENTS = "exos-x24", (100, 1_000, 10_000, 30_000)
CHOICE_EXTENTS, CHOICE_TARGET_NS = 10_000, 1_000
CORE_FLAGS = "-O2 -std=gnu11 -Wall -Wextra -fno-strict-aliasing"

DISK = "wd5000aaks"
FORMAT = "blktrace"
# The mean time between requests. By time stamps the disk must keep up; in a
# closed replay four readers are left 4 ms each to think, which waiting is for.
GAP_US = {"open": 12_000, "closed": 1000}
PARTS = ("replay", "python", "core", "disk", "memory")
REPLAYED = ("noop", "deadline", "stream:deadline")
BASE, STREAM = "deadline", "stream:deadline"
IN_CORE = (
    "loop",
    "noop",
    "deadline",
    "cscan",
    "sptf",
    "linus",
    "stride",
    "wfq",
    "anticipatory",
    "cooperative",
    "cfq",
    "nwcs:sptf",
    "nwcs:wfq",
    "stream:noop",
    "stream:deadline",
    "stream:sptf",
)
PENDING = (1, 32, 128, 1024)

# Policies in Python, each after its twin in C; "open": few requests are pending.
TWINS = {
    name: f"{ROOT}/examples/classics.py:{name.title()}" for name in ("noop", "deadline", "cscan")
}
PYTHON_TARGET = 20_000
REPLAY_TARGETS = {BASE: 2_000_000, STREAM: 1_500_000}
COST_TARGET = 1.5
MEMORY_TARGET_MB = 200

# A processor shared with others: more wall time than this per processor time.
BUSY = 1.1
CHUNK_BYTES = 1 << 20
MB = 1e6


@dataclass
class Score:
    """Which of the targets this run met."""

    met: int = 0
    missed: int = 0

    def verdict(self, good: bool, target: str) -> str:
        """How a line says it."""
        if good:
            self.met += 1
        else:
            self.missed += 1
        return f"   target {target}: {'met' if good else 'MISSED'}"


@dataclass(frozen=True)
class Sample:
    """What one replay took."""

    wall_s: float
    cpu_s: float


def progress(text: str) -> None:
    """What is being done, on a line that the next one replaces; on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def say(text: str = "") -> None:
    """A line of the result."""
    progress("")
    print(text, flush=True)


def processor() -> str:
    """The machine's processor, as the kernel names it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


# Replaying.


def trace_options(requests: int, gap_us: int) -> list[str]:
    """The command that makes a trace."""
    command = [sys.executable, str(MAKE_TRACE)]
    return [*command, f"--requests={requests}", f"--gap-us={gap_us}"]


def make_trace(requests: int, gap_us: int) -> Path:
    """A trace of so many requests; made once."""
    path = OUTPUT / f"{requests}-{gap_us}.blktrace"
    if path.exists() and path.stat().st_mtime > MAKE_TRACE.stat().st_mtime:
        return path
    say(f"making {path.relative_to(ROOT)} ({requests * 48 / MB:.0f} MB)")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    subprocess.run([*trace_options(requests, gap_us), f"--output={part}"], check=True)
    part.replace(path)
    return path


def setup_of(policy: str, mode: str) -> Setup:
    """The simulation that is measured."""
    return Setup(disk=load_disk(DISK), policy=policy, closed=mode == "closed")


def replay(path: Path, setup: Setup) -> Sample:
    """Replay a trace from the file to the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    opened = tracefile.open_trace(path, FORMAT)
    run_trace(setup, opened.format, opened.chunks())
    return Sample(time.perf_counter() - wall, time.process_time() - cpu)


def replays(
    path: Path, mode: str, policies: Sequence[str], repetitions: int
) -> dict[str, list[Sample]]:
    """All policies in turns, so that what else the machine does meets all of them."""
    setups = {policy: setup_of(policy, mode) for policy in policies}
    samples: dict[str, list[Sample]] = {policy: [] for policy in policies}
    for policy in policies:  # the file and the code into memory
        replay(path, setups[policy])
    for number in range(repetitions):
        for policy in policies:
            progress(f"{mode}, {policy}, {number + 1} of {repetitions}")
            samples[policy].append(replay(path, setups[policy]))
    return samples


def bench_replay(score: Score, requests: int, repetitions: int) -> None:
    """Requests per second through the whole simulator."""
    measured_curve(load_disk(DISK))
    for mode, gap_us in GAP_US.items():
        path = make_trace(requests, gap_us)
        samples = replays(path, mode, REPLAYED, repetitions)
        say(f"\nReplay of {requests:,} requests, --mode {mode}, on {DISK}, one core")
        say("  policy              best      median   requests/s   per CPU second   cost")
        base_s = min(sample.cpu_s for sample in samples[BASE])
        busy = 0.0
        for policy, taken in samples.items():
            best = min(sample.wall_s for sample in taken)
            median = statistics.median(sample.wall_s for sample in taken)
            cpu = min(sample.cpu_s for sample in taken)
            busy = max(busy, best / cpu)
            line = f"  {policy:<16}{best:7.3f} s   {median:7.3f} s {requests / best:12,.0f}"
            line += f" {requests / cpu:16,.0f} {cpu / base_s:6.2f}"
            if target := REPLAY_TARGETS.get(policy):
                line += score.verdict(requests / best >= target, f"{target:,}/s")
            say(line)
        ratio = min(sample.cpu_s for sample in samples[STREAM]) / base_s
        line = f"  {STREAM} / {BASE}: {ratio:.2f}"
        say(line + score.verdict(ratio <= COST_TARGET, f"{COST_TARGET}"))
        if busy > BUSY:
            say(f"  (the machine was busy: up to {busy:.1f} s on the clock per CPU second)")


def bench_python(score: Score, requests: int, repetitions: int) -> None:
    """Requests per second under policies in Python, beside their twins in C."""
    measured_curve(load_disk(DISK))
    for mode, gap_us in GAP_US.items():
        path = make_trace(requests, gap_us)
        names = [name for twins in TWINS.items() for name in twins]
        samples = replays(path, mode, names, repetitions)
        say(f"\nPolicies in Python: {requests:,} requests, --mode {mode}, on {DISK}, one core")
        say("  policy        C, requests/s   Python, requests/s   Python's time / C's")
        for in_c, in_python in TWINS.items():
            ours, theirs = (min(s.wall_s for s in samples[one]) for one in (in_python, in_c))
            line = f"  {in_c:<12}{requests / theirs:15,.0f} {requests / ours:20,.0f}"
            line += f" {ours / theirs:21.1f}"
            say(line + score.verdict(requests / ours >= PYTHON_TARGET, f"{PYTHON_TARGET:,}/s"))


# The core alone.


def build_core() -> Path:
    """Compile bench_core.c with the core."""
    program = OUTPUT / "bench_core"
    OUTPUT.mkdir(parents=True, exist_ok=True)
    sources = [*sorted((ROOT / "core").rglob("*.c")), ROOT / "compat" / "rbtree.c", CORE_SOURCE]
    command = [*shlex.split(os.environ.get("CC", "cc")), *CORE_FLAGS.split()]
    subprocess.run(
        [*command, f"-I{ROOT / 'compat'}", *map(str, sources), "-o", str(program)], check=True
    )
    return program


def core_costs(program: Path, pending: int, rounds: int, operations: int) -> dict[str, float]:
    """Nanoseconds per request of each policy: the best round."""
    best: dict[str, float] = {}
    command = [str(program), str(rounds), str(operations), str(pending), *IN_CORE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout
        for number, line in enumerate(child.stdout):
            policy, ns = line.split()
            best[policy] = min(float(ns), best.get(policy, float("inf")))
            progress(f"core, {pending} pending, {number + 1} of {rounds * len(IN_CORE)}")
    if child.returncode:
        raise SystemExit(f"bench_core failed ({child.returncode})")
    return best


def bench_core(score: Score, rounds: int, operations: int) -> None:
    """Cost of a request in the core, by policy and number pending."""
    program = build_core()
    costs = {pending: core_costs(program, pending, rounds, operations) for pending in PENDING}
    say("\nThe core alone: ns of CPU per request (arrived, choose, dispatched, completed)")
    say("  policy          " + "".join(f"{f'{pending} pending':>19}" for pending in PENDING))
    for policy in IN_CORE:
        line = f"  {policy:<16}"
        for pending in PENDING:
            ns = costs[pending][policy]
            line += f"{ns:11.0f} ({ns / costs[pending][BASE]:4.2f}x)"
        say(line + ("   the measuring itself" if policy == "loop" else ""))
    for pending in PENDING:
        ratio = costs[pending][STREAM] / costs[pending][BASE]
        line = f"  {STREAM} / {BASE} at {pending} pending: {ratio:.2f}"
        say(line + score.verdict(ratio <= COST_TARGET, f"{COST_TARGET}"))


# The disk's choices.


def bench_disk(score: Score, choices: int) -> None:
    """Cost of choosing what the write cache writes out next, by position."""
    program = OUTPUT / "bench_disk"
    OUTPUT.mkdir(parents=True, exist_ok=True)
    fields = [
        f".{name} = {{ {', '.join(map(str, value))} }}"
        if isinstance(value, list)
        else f".{name} = {value}ULL"
        for name, value in load_disk(BIG_DISK).params().items()
    ]
    command = [*shlex.split(os.environ.get("CC", "cc")), *CORE_FLAGS.split()]
    sources = [*sorted((ROOT / "disk").glob("*.c")), ROOT / "compat" / "rbtree.c", DISK_SOURCE]
    subprocess.run(
        [
            *[*command, f"-DPARAMS={', '.join(fields)}", f"-I{ROOT / 'compat'}"],
            *[*map(str, sources), "-o", str(program)],
        ],
        check=True,
    )
    say(f"\nThe write cache of {BIG_DISK}: ns of CPU per write-out")
    say("  extents    by position      upwards   the choice")
    for extents in EXTENTS:
        done = subprocess.run(
            [str(program), str(extents), str(choices)], check=True, capture_output=True, text=True
        )
        by_position, upwards = map(float, done.stdout.split())
        # Upwards the next one is looked up, as in both, and no more.
        choice = by_position - upwards
        line = f"  {extents:7} {by_position:14.0f} {upwards:12.0f} {choice:12.0f}"
        if extents == CHOICE_EXTENTS:
            line += score.verdict(choice < CHOICE_TARGET_NS, f"{CHOICE_TARGET_NS} ns")
        say(line)


# Memory.


def peak_mb() -> float:
    """The largest resident set of this process, since it was executed."""
    # Not getrusage: that counts what the process was before exec, too.
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / MB
    raise SystemExit("the kernel does not tell this process's memory")


def replay_input(policy: str, mode: str) -> None:
    """The child: replay standard input, print the peak."""
    opened = tracefile.open_trace(tracefile.STDIN, FORMAT)
    run = run_trace(setup_of(policy, mode), opened.format, opened.chunks())
    print(peak_mb(), run.counters["dispatches"] + run.counters["merges"])


def pieces(source: IO[bytes], what: str, total: int) -> Iterator[bytes]:
    """All there is to read, with progress."""
    done = 0
    while piece := source.read(CHUNK_BYTES):
        yield piece
        done += len(piece)
        progress(f"{what}: {done / total:.0%}")


def bench_memory(score: Score, requests: int) -> None:
    """Peak memory of a long replay; the trace goes through pipes."""
    cases = [(policy, mode) for mode in GAP_US for policy in (BASE, STREAM)]
    say(f"\nPeak memory of replaying {requests:,} requests ({requests * 48 / MB:.0f} MB of trace)")
    for mode, gap_us in GAP_US.items():
        here = [case for case in cases if case[1] == mode]
        children = [
            subprocess.Popen(
                [sys.executable, str(Path(__file__)), "--child", *case],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for case in here
        ]
        with subprocess.Popen(trace_options(requests, gap_us), stdout=subprocess.PIPE) as maker:
            assert maker.stdout
            for piece in pieces(maker.stdout, f"replaying, {mode}", requests * 48):
                for child in children:
                    assert child.stdin
                    child.stdin.write(piece)
        for (policy, _), child in zip(here, children, strict=True):
            answer, _ = child.communicate()
            if child.returncode or maker.returncode:
                raise SystemExit(f"the replay under {policy} failed")
            megabytes, served = answer.split()
            if int(served) != requests:
                raise SystemExit(f"{policy}: {int(served)} of {requests} requests were served")
            line = f"  {policy:<16} {mode:<7} {float(megabytes):6.1f} MB"
            good = float(megabytes) < MEMORY_TARGET_MB
            say(line + score.verdict(good, f"{MEMORY_TARGET_MB} MB"))


def main() -> None:
    """Measure, and say how many targets were met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the requests")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--repetitions", type=int, default=7, help="of each replay (7)")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        replay_input(*options.child)
        return
    share = 10 if options.quick else 1
    score = Score()
    say(f"{processor()}, {os.cpu_count()} processors; load {os.getloadavg()[0]:.1f}")
    if options.only in (None, "replay"):
        bench_replay(score, 1_000_000 // share, options.repetitions)
    if options.only in (None, "python"):
        bench_python(score, 100_000 // share, options.repetitions)
    if options.only in (None, "core"):
        bench_core(score, 11, 100_000 // share)
    if options.only in (None, "disk"):
        bench_disk(score, 1_000_000 // share)
    if options.only in (None, "memory"):
        bench_memory(score, 10_000_000 // share)
    say(f"\n{score.met} of {score.met + score.missed} targets met")


if __name__ == "__main__":
    main()
