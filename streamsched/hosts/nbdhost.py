# SPDX-License-Identifier: GPL-2.0-only
"""Job files over NBD, in real time: the host behind run --on nbd.

Each policy gets an nbdkit with the plugin streamsched (docs/guide/NBDKIT.md) that serves an
emulated disk made from the same disk file as the simulator's. fio itself runs the job file,
written anew (fio_write.py), with its nbd engine, one connection for each of its processes. NBD
has no page cache: what the job file reads buffered is read directly. What the disk's requests
went through is read from the plugin's log.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.base.progress import counted
from streamsched.hosts.fiorun import fio_jobs, fio_run, ramp_of_all
from streamsched.sim.compare import ALONE_POLICY, Comparison, stand_ins
from streamsched.sim.policies import check_spec
from streamsched.sim.simulate import COUNTERS, Run, Setup
from streamsched.work.blocktrace import BlockTrace, parse
from streamsched.work.fio_write import Place, alone_text, job_text
from streamsched.work.jobfile import JobFile

DEFAULT_POLICIES = "noop,deadline,stream:deadline"
PLUGIN = "nbdkit-streamsched-plugin.so"
# Where else the plugin is, before all other places.
PLUGIN_VARIABLE = "STREAMSCHED_NBDKIT_PLUGIN"
# Long enough for an alone rate, in real time.
ALONE_BYTES = 256 << 20
ALONE_S = 5
START_S = 20.0
STOP_S = 60.0
_LOG = re.compile(
    r"\s*0,(\d+)\s+\d+\s+\d+\s+(\d+)\.(\d{9})\s+\d+\s+([QDC])\s+(\S+) (\d+) \+ (\d+) "
)
_EVENTS = {"Q": "block_bio_queue", "D": "block_rq_issue", "C": "block_rq_complete"}
_COUNTER = re.compile(r'streamsched_(\w+?)_total\{member="\d+"\} (\d+)')


def find_plugin() -> str:
    """What to call the plugin on nbdkit's command line."""
    given = os.environ.get(PLUGIN_VARIABLE)
    if given:
        if not Path(given).is_file():
            raise UsageError(f"{PLUGIN_VARIABLE}={given}: there is no such file")
        return given
    if not shutil.which("nbdkit"):
        raise StreamschedError("nbdkit is missing: install the Debian package nbdkit")
    own = Path(sys.prefix) / "lib" / "nbdkit" / "plugins" / PLUGIN
    if own.is_file():
        return str(own)
    found = subprocess.run(
        ["nbdkit", "streamsched", "--dump-plugin"], capture_output=True, check=False
    )
    if found.returncode:
        raise StreamschedError(
            "nbdkit has no plugin streamsched: build and install it, as docs/guide/NBDKIT.md says"
        )
    return "streamsched"


@contextlib.contextmanager
def serving(parameters: Sequence[str], socket: Path, log: Path) -> Iterator[str]:
    """An nbdkit with the plugin and these parameters, on @socket; gives its URI."""
    ready = socket.with_suffix(".pid")  # written when clients are let in
    command = ["nbdkit", "--foreground", "--exit-with-parent", f"--pidfile={ready}"]
    with log.open("wb") as errors:
        server = subprocess.Popen(
            [*command, f"--unix={socket}", find_plugin(), *parameters],
            stdin=subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        until = time.monotonic() + START_S
        while not ready.exists():
            if server.poll() is not None or time.monotonic() > until:
                said = log.read_text(errors="replace").splitlines() or ["it said nothing"]
                errors_said = [line for line in said if line.startswith("nbdkit: error:")]
                raise StreamschedError(f"nbdkit did not start: {(errors_said or said)[0]}")
            time.sleep(0.01)
        yield f"nbd+unix:///?socket={socket}"
    finally:
        server.terminate()
        try:
            server.wait(STOP_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def log_lines(lines: Iterable[str]) -> Iterator[str]:
    """The plugin's log as the kernel's block trace would have it."""
    for line in lines:
        found = _LOG.match(line)
        if found:
            member, s, ns, event, rwbs, sector, sectors = found.groups()
            yield (
                f" {s}.{ns[:6]}: {_EVENTS[event]}: 0,{member} {rwbs} () {sector} + {sectors} [nbd]"
            )


def _counters(metrics: str, trace: BlockTrace) -> dict[str, int]:
    counters = dict.fromkeys(COUNTERS, 0)
    for name, value in _COUNTER.findall(metrics):
        if name in counters:
            counters[name] += int(value)
    counters["idle_ns"] = trace.idle_ns
    return counters


@dataclasses.dataclass(frozen=True)
class _Result:
    fio: str
    trace: BlockTrace
    metrics: str


# As fio finds it, which runs beside the socket: a path might have what ends a value in a job file.
URI = "nbd+unix:///?socket=socket"


def _serve_fio(parameters: Sequence[str], job: str, what: str, skip_ns: int = 0) -> _Result:
    """Run fio with @job, which opens URI, against a server of its own.

    The first @skip_ns are not in the trace.
    """
    if not shutil.which("fio"):
        raise StreamschedError("fio is missing: install the Debian package fio")
    with tempfile.TemporaryDirectory(prefix="streamsched-nbd-") as name:
        folder = Path(name)
        own = [f"log={folder / 'log'}", f"metrics={folder / 'metrics'}"]
        own.append(f"stats={folder / 'stats'}")
        with serving([*parameters, *own], folder / "socket", folder / "errors"):
            (folder / "job.fio").write_text(job)
            done = subprocess.run(
                ["fio", "--output-format=json+", "--output=fio.json", "job.fio"],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode:
            said = (done.stdout + done.stderr).strip().splitlines() or ["it said nothing"]
            raise StreamschedError(f"{what}: fio failed over NBD: {said[-1]}")
        with (folder / "log").open() as log:
            trace = parse(log_lines(log), skip_ns=skip_ns)
        return _Result((folder / "fio.json").read_text(), trace, (folder / "metrics").read_text())


def _parameters(setup: Setup, description: Path) -> list[str]:
    rows = {row.name: row for one in check_spec(setup.policy) for row in one.tunables}
    return [
        f"emulate={description}",
        f"queue-depth={setup.queue_depth}",
        f"policy={setup.policy}",
        *(f"{name}={rows[name].show(value)}" for name, value in setup.tunables if name in rows),
    ]


def compare_on_nbd(
    file: JobFile,
    setups: Sequence[Setup],
    *,
    console: Console | None = None,
) -> Comparison:
    """Run @file under each setup over NBD, and each process alone; one after the other."""
    console = console or Console(stderr=True)
    processes = file.processes
    numbers = sorted(set(stand_ins([process.section for process in processes])))
    each = [(processes[n], min(processes[n].io_bytes, ALONE_BYTES)) for n in numbers]
    place = Place(URI)
    lonely = dataclasses.replace(setups[0], policy=ALONE_POLICY, tunables=())
    rates: dict[int, float] = {}
    runs: list[Run] = []
    progress = counted(console)
    task = progress.add_task(f"{file.name} in real time", total=len(setups) + 1)
    with progress, tempfile.TemporaryDirectory(prefix="streamsched-nbd-") as name:
        description = Path(name) / "disk"
        description.write_text(setups[0].disk.description_text())
        try:
            alone = _serve_fio(
                _parameters(lonely, description), alone_text(each, place, ALONE_S), file.name
            )
            rates = {
                number: (job.read + job.written) / (job.ns / 1e9)
                for number, job in zip(numbers, fio_jobs(alone.fio), strict=True)
                if job.ns
            }
            mean_rate = sum(rates.values()) / len(rates) if rates else 0.0
            progress.advance(task)
            for setup in setups:
                result = _serve_fio(
                    _parameters(setup, description),
                    job_text(file, place),
                    file.name,
                    ramp_of_all(processes),
                )
                counters = _counters(result.metrics, result.trace)
                jobs = fio_jobs(result.fio)
                runs.append(fio_run(jobs, result.trace, setup, processes, mean_rate, counters))
                progress.advance(task)
        except KeyboardInterrupt:
            return Comparison(tuple(runs), rates, interrupted=True)
    return Comparison(tuple(runs), rates)


__all__ = ["DEFAULT_POLICIES", "compare_on_nbd", "find_plugin", "serving"]
