# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched measure`: its statistics, and its blocks on a made-up disk whose time is virtual."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import shutil
import signal

import pytest
from made_kernel import MadeKernel, after
from watch_data import MadeDisk, made

from streamsched.base.errors import Interrupted, StreamschedError, UsageError
from streamsched.hosts.device import device_of
from streamsched.watch import measure
from streamsched.watch.measure_state import OF_QUEUE, State, specs_of
from streamsched.watch.measure_stats import LEAST_PAIRS, compare
from streamsched.work.blocktrace import Arrivals

__all__ = ["made"]


# ---- statistics ----


def test_a_difference_and_its_interval() -> None:
    """Of six pairs the second least and the second largest mean of the 63 subsets are left out."""
    ratios = [1.10, 1.12, 1.08, 1.11, 1.09, 1.13]
    found = compare([(50, 50 * ratio) for ratio in ratios])
    assert found and found.found
    assert found.change == pytest.approx(math.prod(ratios) ** (1 / 6) - 1)
    assert found.low == pytest.approx(0.08) and found.high == pytest.approx(0.13)
    assert found.first == 50 and found.second == pytest.approx(55.25)


def test_too_few_pairs_say_nothing() -> None:
    assert compare([(1, 2)] * (LEAST_PAIRS - 1)) is None
    assert compare([(1, 2)] * (LEAST_PAIRS - 1) + [(1, None)]) is None


@pytest.mark.parametrize(("pairs", "times"), [(6, 2000), (9, 1000), (20, 100)])
def test_one_in_twenty_intervals_misses_the_truth(pairs: int, times: int) -> None:
    """Whatever the noise is like: here with outliers, and four times as strong in half of them."""
    drawn = random.Random(pairs)
    missed = 0
    for _ in range(times):
        noise = [drawn.choice((0.01, 0.04)) * drawn.gauss(0, 1) for _ in range(pairs)]
        found = compare([(10, 11 * math.exp(one)) for one in noise])
        assert found
        missed += not found.low <= 0.1 <= found.high
    assert 0.02 <= missed / times <= 0.08, missed


# ---- the plan ----


def test_blocks_of_random_length_and_order() -> None:
    planned = measure.plan(20, seed=1)
    assert len(planned) == 15 and sum(2 * seconds for seconds, _ in planned) == pytest.approx(1200)
    assert min(planned)[0] >= 20 and max(planned)[0] < 65
    assert len({turned for _, turned in planned}) == 2
    assert planned == measure.plan(20, seed=1) != measure.plan(20, seed=2)
    assert [seconds for seconds, _ in measure.plan(4, 1)] == [pytest.approx(20)] * 6
    for endless in (float("inf"), float("nan")):
        with pytest.raises(UsageError, match=r"^--minutes (inf|nan): must be at most 10080"):
            measure.plan(endless, 1)
    with pytest.raises(UsageError, match=r"^--minutes 3\.9: is too short; 6 pairs of blocks of 20"):
        measure.plan(3.9, 1)


# ---- the kernel that is made up: what is written happens ----


class Kernel(MadeKernel):
    def measure(self, between: str = "mq-deadline,stream", minutes: float = 4) -> measure.Result:
        return measure.measure("sda", between, minutes, 3, sys_=self.made.root)


@pytest.fixture
def kernel(made: MadeDisk, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(made, monkeypatch)


def test_it_finds_what_there_is(kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    result = kernel.measure()
    assert not result.stopped and len(result.pairs) == 6
    data = json.loads(measure.as_json(result))
    assert data["between"] == ["mq-deadline", "stream"] and len(data["blocks"]) == 12
    assert data["figures"]["requests_s"]["change"] == pytest.approx(1 / 3, abs=0.01)
    assert data["figures"]["mb_s"]["found"] and not data["figures"]["mean_ms"]["found"]
    assert data["figures"]["p99_ms"] is None
    text = measure.as_text(result).splitlines()
    assert max(map(len, text)) <= 80
    assert text[-1] == "throughput: stream has 33.3 % more than mq-deadline (+33.3 to +33.3)"
    err = capsys.readouterr().err.splitlines()
    assert err[1] == "streamsched: sda: mq-deadline is in use, and will be again at the end"
    assert err[0].startswith("streamsched: note: sda: p99 is not known (") and len(err) == 14
    assert kernel.scheduler == "mq-deadline"


def test_udev_takes_nothing_back_meanwhile(kernel: Kernel, made: MadeDisk) -> None:
    """The rule of `streamsched enable` leaves the disk alone, also when it is stopped."""
    keep = made.root.parent / "run" / "streamsched" / "keep-sda"
    seen = set()
    kernel.each = lambda: seen.add(keep.exists())
    kernel.measure()
    assert seen == {True} and not keep.exists()

    def stops() -> None:
        if kernel.now > 200:
            os.kill(os.getpid(), signal.SIGTERM)

    kernel.each = stops
    with pytest.raises(Interrupted):
        kernel.measure()
    assert not keep.exists()


def test_where_there_is_no_difference_it_finds_none(kernel: Kernel) -> None:
    kernel.wobbles(50, 70)
    result = kernel.measure()
    found = measure.differences(result.pairs)["mb_s"]
    assert found and not found.found and found.low < 0 < found.high
    assert "throughput: no difference was found (" in measure.as_text(result)


def test_each_block_begins_anew(kernel: Kernel) -> None:
    kernel.measure("stream:sptf,stream")
    begun = [line for line in kernel.log if line == "scheduler=stream"]
    assert len(begun) == 12 and kernel.log.count("inner=sptf") == 6
    assert kernel.scheduler == "mq-deadline"


def test_settings_are_those_that_were(kernel: Kernel, made: MadeDisk) -> None:
    """In its own blocks, too; a curve that was learned is learned again."""
    kernel.begin("stream")
    made.write("queue/nr_requests", 256)
    made.write("queue/async_depth", 192)
    made.write("queue/wbt_lat_usec", 0)
    made.write("queue/iosched/wait_target", "150ms")
    made.write("queue/iosched/inner", "noop deadline [cscan] sptf linus")
    made.write("queue/iosched/cgroup_weights", "/a 50\n/b 200")
    kernel.rates = {}
    seen = []
    kernel.each = lambda: seen.append((kernel.scheduler, settings()))

    def settings() -> dict[str, str]:
        device = device_of("sda", made.root)
        files = ("wait_target", "inner", "cgroup_weights")
        return {
            name: (device.queue / "iosched" / name).read_text().strip()
            for name in files
            if device.in_use == "stream"
        } | {"nr_requests": (device.queue / "nr_requests").read_text().strip()}

    wanted = settings()
    kernel.measure()
    assert all(found == wanted for scheduler, found in seen if scheduler == "stream")
    assert ("mq-deadline", {"nr_requests": "64"}) in seen
    assert settings() == wanted and kernel.scheduler == "stream"
    assert not any(line.startswith("service_curve") for line in kernel.log)
    queue = made.folder / "queue"
    assert [(queue / name).read_text() for name in OF_QUEUE] == ["256\n", "192\n", "0\n"]


def test_a_curve_that_was_written_is_written_again(kernel: Kernel, made: MadeDisk) -> None:
    kernel.begin("stream")
    made.write("queue/iosched/service_curve", "0:0 1:7")
    file = made.sched / "counters"
    file.write_text(file.read_text().replace("learning 1", "learning 0"))
    state = State(device_of("sda", made.root), made.root)
    kernel.begin("stream")
    state.restore(pytest.fail)
    assert kernel.log == ["service_curve=0:0 1:7"]


# ---- how it may end ----


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it(number: signal.Signals, kernel: Kernel, made: MadeDisk) -> None:
    made.write("queue/iosched/read_expire", "250")
    after(kernel, 70, lambda: os.kill(os.getpid(), number))
    with pytest.raises(Interrupted, match=r"^sda: stopped, too early to say anything$"):
        kernel.measure()
    assert kernel.scheduler == "mq-deadline" and kernel.now < 300
    assert (made.folder / "queue" / "iosched" / "read_expire").read_text() == "250\n"


def test_stopped_late_it_says_what_it_has(kernel: Kernel) -> None:
    after(kernel, 8 * 60, lambda: os.kill(os.getpid(), signal.SIGINT))
    result = kernel.measure(minutes=10)
    assert result.stopped and LEAST_PAIRS <= len(result.pairs) < 8
    assert kernel.scheduler == "mq-deadline"


def test_a_disk_that_goes(
    kernel: Kernel, made: MadeDisk, capsys: pytest.CaptureFixture[str]
) -> None:
    after(kernel, 70, lambda: shutil.rmtree(made.folder))
    with pytest.raises(StreamschedError, match=r"^sda: the disk is gone$"):
        kernel.measure()
    assert capsys.readouterr().err.splitlines()[-1] == "streamsched: sda: the disk is gone"


def test_somebody_else_who_changes_it(kernel: Kernel) -> None:
    after(kernel, 70, lambda: kernel.begin("none"))
    with pytest.raises(
        StreamschedError,
        match=r"^sda: somebody else changed the scheduler to none in block \d of 12",
    ):
        kernel.measure()
    assert kernel.scheduler == "mq-deadline"


def test_work_that_ends(kernel: Kernel) -> None:
    def ends() -> None:
        kernel.rates, kernel.usual = {}, 0.0

    after(kernel, 70, ends)
    with pytest.raises(StreamschedError, match=r"^sda: became idle in block [45] of 12; the work"):
        kernel.measure()
    assert kernel.scheduler == "mq-deadline"


def test_an_idle_disk_is_refused(kernel: Kernel) -> None:
    kernel.usual = 0.6
    with pytest.raises(
        UsageError, match=r"^sda: is idle, \d requests in 5 s; measure while the wor"
    ):
        kernel.measure()
    assert kernel.log == []


@pytest.mark.parametrize(
    ("between", "said"),
    [
        ("stream", "name two schedulers with a comma, as mq-deadline,stream"),
        ("stream,", "name two schedulers"),
        (
            "bfq,stream",
            r"sda has no scheduler bfq; it offers none, mq-deadline, stream \(`modprobe",
        ),
        ("stream:cfq,none", "what stands behind a colon is what stream wraps: stream:noop, "),
        ("none:noop,stream", "what stands behind a colon"),
        ("mq-deadline,mq-deadline", "mq-deadline stands there twice; name another one"),
    ],
)
def test_schedulers_that_are_none(between: str, said: str, kernel: Kernel, made: MadeDisk) -> None:
    with pytest.raises(UsageError, match=rf"^--between {between}: {said}"):
        specs_of(between, device_of("sda", made.root))


def test_without_permission_it_says_so(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(
        UsageError, match=r"^no permission to change .*/scheduler; run this as root"
    ):
        kernel.measure()


# ---- response times ----


def test_responses_from_the_trace() -> None:
    """Two bios that were merged are one request; what came before is not counted."""
    responses = measure.Responses.__new__(measure.Responses)
    lines = [
        "  fio-71 [000] .....  4.900000: block_rq_complete: 8,0 R () 900 + 8 [0]",
        "  fio-71 [000] .....  5.000000: block_bio_queue: 8,0 R 1000 + 128 [fio]",
        "  fio-71 [000] .....  5.004000: block_bio_queue: 8,0 R 1128 + 128 [fio]",
        "  fio-71 [000] .....  5.010000: block_bio_queue: 8,0 FF 0 + 0 [fio]",
        "  fio-71 [000] .....  5.020000: block_rq_complete: 8,0 R () 1000 + 256 [0]",
    ]

    @dataclasses.dataclass
    class Trace:
        put: list[str]

        def lines(self) -> list[str]:
            put, self.put = self.put, []
            return put

    trace = Trace(lines)
    responses._trace = trace  # type: ignore[assignment]
    responses._arrivals = Arrivals()
    responses._took_ns, responses._lost = [], False
    assert responses.p99_ms() == 20.0
    trace.put = ["CPU:0 [LOST 55 EVENTS]"]
    assert responses.p99_ms() is None
    responses.begin()
    assert responses.p99_ms() is None and not responses._lost
