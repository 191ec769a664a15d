# SPDX-License-Identifier: GPL-2.0-only
"""Policies in Python decide as their twins in C, are woken in time, and fail with a sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import policy_driver
import pytest
from finished import finished
from policy_driver import Driver, Step, play
from said import ran
from test_golden import GOLDEN, Run, first_difference

import streamsched
from streamsched.base.errors import UsageError
from streamsched.sim import policies, pythonpolicy
from streamsched.sim.array import parse_array
from streamsched.sim.diskfile import load_disk
from streamsched.sim.pythonpolicy import PolicyError, Request
from streamsched.sim.simulate import Run as Result
from streamsched.sim.simulate import Setup
from streamsched.work.jobfile import load_jobs

EXAMPLES = Path(__file__).parents[2] / "examples"
TWINS = {name: f"{EXAMPLES}/classics.py:{name.title()}" for name in ("noop", "deadline", "cscan")}
MS = 1_000_000


# ---- the same decisions as in C ----


class GoldenRun(Run):
    """The golden workload under the twin in Python."""

    def __init__(self, name: str, depth: int) -> None:
        super().__init__(name, depth)
        self.policy = pythonpolicy.begin(TWINS[name])
        self.lib.sim_foreign_begin(self.d.sched, self.policy.foreign, self.ffi.NULL)


def without_expired(log: str) -> str:
    """Which of its decisions were for age a policy in Python does not say."""
    return re.sub(r"^expired \d+$", "", log, flags=re.MULTILINE)


@pytest.mark.golden
@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("name", TWINS)
def test_twins_decide_as_the_golden_logs(name: str, depth: int) -> None:
    run = GoldenRun(name, depth)
    log = without_expired(run.play())
    assert run.policy.error is None
    golden = without_expired((GOLDEN / f"{name}-depth{depth}.log").read_text())
    if log != golden:
        pytest.fail(first_difference(golden, log), pytrace=False)


class EitherDriver(Driver):
    """Of "python:noop" the twin in Python."""

    def __init__(self, spec: str) -> None:
        super().__init__(spec.removeprefix("python:"))
        if spec.startswith("python:"):
            self.policy = pythonpolicy.begin(TWINS[spec.removeprefix("python:")])
            self.lib.sim_foreign_begin(self.sched, self.policy.foreign, self.ffi.NULL)


def random_steps(seed: int) -> list[Step]:
    """So close together that requests merge, and merged ones join."""
    r = random.Random(seed)
    return [
        Step(
            after_us=r.choice([0, 0, 100, 1000, 30_000]),
            action=r.choices(["send", "merge", "remove"], [5, 5, 1])[0],
            owner=r.randint(1, 3),
            sector=r.randint(0, 40) * 8,
            sectors=8,
            write=r.random() < 0.4,
            sync=False,
            meta=False,
        )
        for _ in range(400)
    ]


@pytest.mark.property
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("name", TWINS)
def test_twins_decide_alike(name: str, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_driver, "Driver", EitherDriver)
    for seed in range(15):
        steps = random_steps(seed)
        order, counters = play(name, steps, depth, 40_000)
        ours, our_counters = play(f"python:{name}", steps, depth, 40_000)
        assert ours == order, seed
        counters[4] = 0  # expired
        assert our_counters == counters, seed


def random_job(seed: int) -> str:
    """Readers and writers, direct and buffered, close enough together for merging and joins."""
    r = random.Random(seed)
    lines = ["[global]", f"size={r.choice(['64m', '16g'])}", f"randseed={seed}"]
    for number in range(r.randint(2, 6)):
        lines += [
            f"[job{number}]",
            f"rw={r.choice(['read', 'write', 'randread', 'randwrite', 'randrw'])}",
            f"bs={r.choice(['512', '4k', '64k'])}",
            f"io_size={r.choice(['1m', '2m'])}",
            f"offset={r.randint(0, 400) * 8}m",
            f"thinktime={r.choice([0, 0, 500, 20000])}",
        ]
        if r.random() < 0.6:
            lines += ["direct=1", "ioengine=libaio", f"iodepth={r.choice([1, 4, 32])}"]
        elif r.random() < 0.5:
            lines.append("fsync=8")
    return "\n".join(lines) + "\n"


def simulate(job: str, setup: Setup, tmp_path: Path) -> tuple[Result, bytes]:
    """What came of it, and the disks' requests in their order."""
    path = tmp_path / "job.fio"
    path.write_text(job)
    processes = load_jobs(path, capacity_bytes=setup.capacity_bytes)
    with finished(setup, processes, log=0) as simulation:
        return simulation.result(processes), simulation.take_log()


@pytest.mark.property
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", TWINS)
def test_twins_serve_random_work_alike(name: str, seed: int, tmp_path: Path) -> None:
    depth = (1, 2, 8)[seed % 3]
    array = parse_array("raid5:3:64k") if seed % 4 == 3 else None
    disk = load_disk("st2000dm006")
    setup = Setup(disk, name, queue_depth=depth, array=array, cache_bytes=8 << 20)
    ours = dataclasses.replace(setup, policy=TWINS[name])
    job = random_job(seed)
    (in_c, log), (in_python, own) = (simulate(job, one, tmp_path) for one in (setup, ours))
    assert own == log
    assert in_python.counters | {"expired": 0} == in_c.counters | {"expired": 0}


def test_random_work_merges_and_expires(tmp_path: Path) -> None:
    """Else it would compare little."""
    setup = Setup(load_disk("st2000dm006"), "deadline", cache_bytes=8 << 20)
    runs = [simulate(random_job(seed), setup, tmp_path)[0] for seed in range(12)]
    for counter in ("merges", "expired"):
        assert sum(run.counters[counter] for run in runs), counter


# ---- what it is told ----

JOB = "[a]\ndirect=1\nrw=randread\nbs=4k\nsize=1g\nio_size=256k\nrandseed=1\n"
SETUP = Setup(load_disk("wd5000aaks"), "?")


class Fifo:
    """What the policies below change."""

    def __init__(self) -> None:
        self.pending: list[Request] = []

    def arrived(self, request: Request, now_ns: int) -> None:
        self.pending.append(request)

    def choose(self, now_ns: int, head_sector: int) -> Any:
        return self.pending[0]

    def dispatched(self, request: Request, now_ns: int) -> None:
        self.pending.remove(request)

    removed = dispatched


def run_class(policy: type, tmp_path: Path, job: str = JOB, **changes: Any) -> Result:
    name = f"of-this-test-{policy.__name__}"
    streamsched.register_policy(name, policy)
    try:
        setup = dataclasses.replace(SETUP, policy=name, **changes)
        return simulate(job, setup, tmp_path)[0]
    finally:
        del pythonpolicy.registered[name]


def test_a_waiting_policy_is_woken_at_its_time(tmp_path: Path) -> None:
    sent: list[tuple[int, int]] = []

    class Late(Fifo):
        """Nothing before 5 ms of age."""

        def choose(self, now_ns: int, head_sector: int) -> Any:
            due_ns = self.pending[0].arrival_ns + 5 * MS
            return self.pending[0] if now_ns >= due_ns else due_ns

        def dispatched(self, request: Request, now_ns: int) -> None:
            sent.append((request.arrival_ns, now_ns))
            super().dispatched(request, now_ns)

    run = run_class(Late, tmp_path)
    assert len(sent) == 64
    assert all(now_ns == arrival_ns + 5 * MS for arrival_ns, now_ns in sent)
    assert run.counters["waits"] == run.counters["timeouts"] == 64
    assert run.counters["hits"] == 0
    assert run.counters["idle_ns"] == 64 * 5 * MS


def test_a_wait_ends_with_an_arrival(tmp_path: Path) -> None:
    """Pairs go together: the first waits, with no time, for the second."""

    class Pairs(Fifo):
        def choose(self, now_ns: int, head_sector: int) -> Any:
            return self.pending[-1] if len(self.pending) > 1 or self.odd else None

        odd = False

        def dispatched(self, request: Request, now_ns: int) -> None:
            self.odd = not self.odd
            super().dispatched(request, now_ns)

    two = JOB + "[b]\ndirect=1\nrw=randread\nbs=4k\nsize=1g\nio_size=256k\nstartdelay=1\n"
    run = run_class(Pairs, tmp_path, two)
    assert run.counters["hits"] and not run.counters["timeouts"]


def test_a_policy_sees_the_request_and_the_head(tmp_path: Path) -> None:
    seen: list[Request] = []
    heads: list[int] = []
    done: list[Request] = []

    class Watch(Fifo):
        def arrived(self, request: Request, now_ns: int) -> None:
            assert request.arrival_ns == now_ns
            seen.append(request)
            super().arrived(request, now_ns)

        def choose(self, now_ns: int, head_sector: int) -> Any:
            assert head_sector == (heads[-1] if heads else 0)
            heads.append(self.pending[0].end)
            return self.pending[0]

        def completed(self, request: Request, now_ns: int) -> None:
            done.append(request)

    job = JOB + "[w]\nrw=write\nbs=64k\nsize=1m\noffset=8g\n[s]\nrw=write\nfsync=1\nsize=64k\n"
    run = run_class(Watch, tmp_path, job, cache_bytes=1 << 20)
    assert run.disk_requests == len(done) > 64
    assert {id(one) for one in done} <= {id(one) for one in seen}  # the same objects
    assert {(one.write, one.sync) for one in seen} == {(False, True), (True, True), (True, False)}
    assert {one.owner for one in seen if not one.write} == {1}
    assert all(one.sectors == 8 and one.start < 2**21 for one in seen if not one.write)


def test_each_member_of_an_array_has_its_own(tmp_path: Path) -> None:
    made: list[Fifo] = []

    class Member(Fifo):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    run_class(Member, tmp_path, array=parse_array("raid0:3:64k"))
    assert len(made) == 4  # one to look at when it was registered


# ---- bad policies ----


class RaisesLate(Fifo):
    left = 3

    def choose(self, now_ns: int, head_sector: int) -> Any:
        self.left -= 1
        return self.pending[0 if self.left else 7]


class Twice(Fifo):
    def choose(self, now_ns: int, head_sector: int) -> Any:
        self.first = getattr(self, "first", self.pending[0])
        return self.first


class TwiceInTheDisk(Fifo):
    def choose(self, now_ns: int, head_sector: int) -> Any:
        self.first = getattr(self, "first", self.pending[0])
        return self.first

    def completed(self, request: Request, now_ns: int) -> None:
        pass


class Invented(Fifo):
    def choose(self, now_ns: int, head_sector: int) -> Any:
        one = self.pending[0]
        return Request(one._number, one.start, one.sectors, False, True, 0, 0)


class Past(Fifo):
    def choose(self, now_ns: int, head_sector: int) -> Any:
        return now_ns


class TooLate(Fifo):
    def choose(self, now_ns: int, head_sector: int) -> Any:
        return 2**64


class Text(Fifo):
    def choose(self, now_ns: int, head_sector: int) -> Any:
        return "the first"


class Never(Fifo):
    def choose(self, now_ns: int, head_sector: int) -> Any:
        return None


class Exits(Fifo):
    def dispatched(self, request: Request, now_ns: int) -> None:
        sys.exit(3)


class RaisesAtCompletion(Fifo):
    def completed(self, request: Request, now_ns: int) -> None:
        raise RuntimeError


BAD = [
    (RaisesLate, r"RaisesLate.choose\(\) raised IndexError: list index out of range; mend that"),
    (Twice, r"Twice.choose\(\) returned a request that is not pending, <read of 8 sectors at "),
    (TwiceInTheDisk, r"returned a request that is in the disk already, <read of 8 sectors at "),
    (Invented, r"Invented.choose\(\) returned a request that is not pending, <read of 8 sec"),
    (Past, r"Past.choose\(\) returned the time \d+, which is not later than now_ns, \d+; return"),
    (TooLate, r"returned the time 18446744073709551616, which is too late; return a pending"),
    (Text, r"Text.choose\(\) returned 'the first', which is of type str; return a pending req"),
    (Never, r"Never.choose\(\) returns no request, and nothing left to happen at 0 ns, with 4 "),
    (Exits, r"Exits.dispatched\(\) raised SystemExit: 3; mend that line"),
    (RaisesAtCompletion, r"RaisesAtCompletion.completed\(\) raised RuntimeError; mend that line"),
]


@pytest.mark.parametrize(("policy", "what"), BAD, ids=[policy.__name__ for policy, _ in BAD])
def test_a_bad_policy_ends_with_a_sentence(policy: type, what: str, tmp_path: Path) -> None:
    job = JOB.replace("direct=1", "direct=1\nioengine=libaio\niodepth=4")
    depth = 2 if policy is TwiceInTheDisk else 1
    disk = load_disk("st2000dm006") if depth > 1 else SETUP.disk
    with pytest.raises(PolicyError, match=what) as error:
        run_class(policy, tmp_path, job, queue_depth=depth, disk=disk)
    where = re.match(rf"{re.escape(__file__)}: line (\d+): ", str(error.value))
    assert where, error.value
    # The line of the raise, or that of the method whose answer is wrong.
    lines = Path(__file__).read_text().splitlines()
    begin = lines.index(next(one for one in lines if one.startswith(f"class {policy.__name__}(")))
    assert begin < int(where[1]) <= begin + 7


def test_a_call_that_loops_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Loops(Fifo):
        def arrived(self, request: Request, now_ns: int) -> None:
            while True:
                with contextlib.suppress(Exception):
                    time.sleep(0.01)

    monkeypatch.setattr(pythonpolicy, "LIMIT_S", 2)
    began = time.monotonic()
    with pytest.raises(PolicyError, match=r"Loops.arrived\(\) was not done after 2 s; a call must"):
        run_class(Loops, tmp_path)
    assert 1.9 < time.monotonic() - began < 60


def test_an_interrupt_in_a_call_is_one(tmp_path: Path) -> None:
    class Interrupts(Fifo):
        def choose(self, now_ns: int, head_sector: int) -> Any:
            signal.raise_signal(signal.SIGINT)
            return self.pending[0]

    with pytest.raises(KeyboardInterrupt):
        run_class(Interrupts, tmp_path)


def test_many_short_calls_are_no_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Fifo):
        def choose(self, now_ns: int, head_sector: int) -> Any:
            time.sleep(0.05)
            return self.pending[0]

    monkeypatch.setattr(pythonpolicy, "LIMIT_S", 1)
    assert run_class(Slow, tmp_path).disk_requests == 64  # 3.2 s in all


def test_in_another_thread_it_runs_without_a_limit(tmp_path: Path) -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(run_class(Fifo, tmp_path).disk_requests))
    thread.start()
    thread.join()
    assert found == [64]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("noop", "is there already"),
        ("bfq", "is there already"),
        ("auto", "is there already"),
        ("a:b", "a name has letters"),
        ("", "a name has letters"),
    ],
)
def test_names_that_are_taken_or_no_names_are_refused(name: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        streamsched.register_policy(name, Fifo)


def test_a_refused_class_leaves_the_one_before(tmp_path: Path) -> None:
    class Lacks:
        def arrived(self, request: Request, now_ns: int) -> None:
            pass

    streamsched.register_policy("mine", Fifo)
    try:
        with pytest.raises(PolicyError, match=r"Lacks has no method choose\(now_ns, head_sector\)"):
            streamsched.register_policy("mine", Lacks)  # type: ignore[arg-type]
        assert pythonpolicy.registered["mine"] is Fifo
        with pytest.raises(UsageError, match="leave stream: out"):
            policies.check_spec("stream:mine")
    finally:
        del pythonpolicy.registered["mine"]


# ---- spawned workers ----

SCRIPT = """
import multiprocessing
import streamsched
from streamsched.sim.compare import compare
from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Setup
from streamsched.work.jobfile import load_jobs
from lifo import Lifo

streamsched.register_policy("lifo", Lifo)

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    disk = load_disk("wd5000aaks")
    jobs = load_jobs("job.fio", capacity_bytes=disk.capacity_sectors * 512)
    setups = [Setup(disk, "lifo"), Setup(disk, "FILE:Lifo"), Setup(disk, "noop")]
    print([run.disk_requests for run in compare(setups, jobs, jobs=2).runs])
"""


def test_workers_may_be_spawned(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(JOB)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("FILE", str(EXAMPLES / "lifo.py")))
    done = ran(
        sys.executable,
        script.name,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (done.returncode, done.stdout) == (0, "[64, 64, 64]\n"), done.stderr
