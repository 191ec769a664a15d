# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched auto`: its rule, and its choices on a made-up disk whose time is virtual."""

from __future__ import annotations

import dataclasses
import math
import os
import random
import shlex
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_kernel import MadeKernel
from said import COMMAND, ran
from test_e2e_cli import why_refused
from watch_data import MadeDisk

from streamsched.auto import service
from streamsched.auto.better import FIGURES, GAIN, LONG_MS, judge
from streamsched.auto.kept import Kept
from streamsched.auto.service import How
from streamsched.base.errors import Interrupted, StreamschedError, UsageError
from streamsched.cli.auto import GONE
from streamsched.hosts.device import Device, device_of
from streamsched.hosts.enable_state import STATE, OneDisk, State
from streamsched.hosts.machine import Machine
from streamsched.watch import measure
from streamsched.watch.measure_state import Spec
from streamsched.watch.measure_stats import Difference, compare

# ---- the rule ----


def by(change: float, off: float = 0.02, first: float = 100.0) -> Difference:
    """A figure that is by so much higher, more or less @off."""
    return Difference(first, first * (1 + change), change, change - off, change + off)


def better(mb_s: Difference | None, p99: Difference | None, goal: str = "throughput") -> bool:
    return judge({"mb_s": mb_s, "p99_ms": p99}, goal).better


def test_more_throughput_is_better() -> None:
    assert better(by(0.3), by(0.0)) and better(by(0.3), None)
    assert not better(by(-0.3), by(0.0)) and not better(by(-0.3), None)


@pytest.mark.parametrize("goal", FIGURES)
def test_a_gain_counts_once_its_whole_interval_is_beyond_the_least(goal: str) -> None:
    for change, is_better in ((GAIN + 0.01, False), (GAIN + 0.021, True)):
        if goal == "throughput":
            assert better(by(change), by(0.5), goal) == is_better
        else:  # as much shorter as that is more
            low, high = (1 / (1 + change + off) - 1 for off in (0.02, -0.02))
            shorter = Difference(100, 100 / (1 + change), 1 / (1 + change) - 1, low, high)
            assert better(by(-0.5), shorter, goal) == is_better


def test_where_throughput_is_the_same_p99_decides() -> None:
    assert better(by(0.0), by(-0.5))
    assert not better(by(0.0), by(0.5)) and not better(by(0.0), by(0.0)) and not better(by(0), None)
    # Not known to be the same: the interval goes on beyond what is little.
    assert not better(by(0.0, off=0.2), by(-0.5)) and not better(by(-0.06), by(-0.5))


def test_where_p99_is_the_goal_throughput_decides_where_that_is_the_same() -> None:
    assert better(by(-0.3), by(-0.5), "p99") and not better(by(0.3), by(0.5), "p99")
    assert better(by(0.3), by(0.0), "p99") and not better(by(0.3), by(0.0, off=0.2), "p99")
    assert not better(by(0.3), None, "p99")


def test_whatever_the_throughput_nobody_waits_too_long() -> None:
    assert better(by(2.0), by(8.0))  # 100 to 900 ms
    assert not better(by(2.0), by(9.5))
    # Nor any longer where it is too long already.
    too_long = 1.2 * LONG_MS
    assert better(by(2.0), by(0.0, first=too_long)) and better(by(2.0), by(-0.1, first=too_long))
    assert not better(by(2.0), by(0.1, first=too_long))


def test_of_two_never_each_is_better() -> None:
    """Whatever was measured: the same figures, seen from the other one, do not bring it back."""
    drawn = random.Random(1)
    chosen = 0
    for _ in range(3000):
        found, back = {}, {}
        for name in ("mb_s", "p99_ms"):
            first = 10 ** drawn.uniform(1, 3.5)
            ratio, noise = math.exp(drawn.gauss(0, 0.3)), drawn.choice((0.002, 0.02, 0.2))
            pairs = [(first, first * ratio * math.exp(drawn.gauss(0, noise))) for _ in range(6)]
            found[name] = compare(pairs)
            back[name] = compare([(b, a) for a, b in pairs])
        for goal in FIGURES:
            there, here = judge(found, goal).better, judge(back, goal).better
            assert not (there and here)
            chosen += there
    assert chosen > 1000


def test_the_reason_is_in_the_sentence() -> None:
    throughput, p99 = by(0.3), by(-0.5, first=80)
    assert judge({"mb_s": throughput, "p99_ms": p99}, "throughput").why == (
        "has 30.0 % more throughput (+28.0 to +32.0)"
    )
    assert judge({"mb_s": by(0.0), "p99_ms": p99}, "throughput").why == (
        "has 0.0 % less throughput (-2.0 to +2.0) and a p99 of 40 ms instead of 80 ms "
        "(-52.0 to -48.0)"
    )
    assert judge({"mb_s": by(0.01), "p99_ms": by(0.01)}, "throughput").why == (
        "does about the same: 1.0 % more throughput (-1.0 to +3.0) and a p99 of 101 ms instead of "
        "100 ms (-1.0 to +3.0)"
    )
    assert judge({"mb_s": throughput, "p99_ms": by(19)}, "throughput").why == (
        "has a p99 of 2000 ms instead of 100 ms (+1898.0 to +1902.0), which is too long"
    )
    assert judge({"mb_s": None, "p99_ms": None}, "p99").why == "has done too little to be compared"


# ---- a disk and its kernel, made up ----


class Kernel(MadeKernel):
    """Four schedulers; the command as root on this machine."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = MadeDisk(root / "sys")
        super().__init__(made, monkeypatch)
        # Fewer looks at the files, for the tests' own time is real.
        monkeypatch.setattr(measure, "STEP_S", 5.0)
        monkeypatch.setattr(service, "STEP_S", 60.0)
        self.names = ["none", "mq-deadline", "bfq", "stream"]
        self.begin("mq-deadline")
        for name, text in (
            *(("queue/rotational", 1), ("queue/zoned", "none"), ("removable", 0)),
            *(("diskseq", 9), ("queue/iosched/read_expire", 250), ("queue/nr_requests", 48)),
        ):
            made.write(name, text)
        of_class = root / "sys" / "class" / "block"
        of_class.mkdir(parents=True)
        (of_class / "sda").symlink_to(made.folder)
        self.root, self.machine = root, Machine(root, lambda _: None)
        self.said: list[str] = []
        self.noted: list[str] = []
        self._at: list[tuple[float, Callable[[], None]]] = []
        self.each = self._happens

    @property
    def device(self) -> Device:
        return device_of("sda", self.made.root)

    @property
    def file(self) -> Path:
        return self.root / "run" / "streamsched" / "auto-sda.json"

    def put(self, name: str, text: str) -> None:
        path = self.root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def choose(self, **how: object) -> None:
        made = dataclasses.replace(How(minutes=4, hours=1), **how)  # type: ignore[arg-type]
        service.choose(self.machine, "sda", made, self.said.append, self.noted.append)

    def at(self, seconds: float, what: Callable[[], None]) -> None:
        """Let something happen in so many seconds."""
        self._at.append((self.now + seconds, what))

    def _happens(self) -> None:
        due = [what for when, what in self._at if when <= self.now]
        self._at = [one for one in self._at if one[0] > self.now]
        for what in due:
            what()

    def serves(self, seconds: float, **how: object) -> None:
        """Until it is stopped."""
        self.at(seconds, lambda: os.kill(os.getpid(), signal.SIGTERM))
        self.choose(**how)

    def undo(self) -> None:
        service.undo(self.machine, "sda", self.said.append, self.noted.append)

    @property
    def settings(self) -> tuple[str, ...]:
        """Those that were changed by hand before it all."""
        queue = self.made.folder / "queue"
        files = ("scheduler", "iosched/read_expire", "nr_requests", "wbt_lat_usec")
        return tuple((queue / name).read_text().strip() for name in files)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


BEFORE = ("none [mq-deadline] bfq stream", "250", "48", "75000")

# ---- what it chooses ----


def test_it_chooses_the_best_and_says_why(kernel: Kernel) -> None:
    kernel.rates = {"stream": 80.0, "bfq": 100.0, "none": 50.0}
    during: set[str] = set()
    kernel.at(3000, lambda: during.add(kernel.scheduler))
    kernel.serves(3500)
    assert during == {"bfq"}
    begun, none, bfq, stream, ended = kernel.said
    assert begun == "sda: mq-deadline is compared with none, bfq, stream, 4 minutes each"
    assert none.startswith("sda: mq-deadline stays: none has 16.7 % less throughput (")
    assert bfq.startswith("sda: bfq instead of mq-deadline: bfq has 66.7 % more throughput (")
    # With what is in use by then.
    assert stream.startswith("sda: bfq stays: stream has 20.0 % less throughput (")
    assert ended == "sda: mq-deadline again, as before"
    assert kernel.settings == BEFORE and not kernel.file.exists()


def test_what_is_as_good_as_the_best_is_not_left(kernel: Kernel) -> None:
    """Four hundredths are too little, whichever of them is in use."""
    for first, other in (("mq-deadline", "stream"), ("stream", "mq-deadline")):
        kernel.begin(first)
        kernel.rates, kernel.said = {other: 1.04 * kernel.usual}, []
        kernel.serves(3 * 3600, among="mq-deadline,stream")
        assert len(kernel.said) == 4 and all(f"{first} stays: " in one for one in kernel.said[1:])
        assert kernel.scheduler == first


def test_noise_changes_nothing(kernel: Kernel) -> None:
    """Nor does it go to and fro."""
    kernel.wobbles(40, 80)
    for _ in range(20):
        kernel.choose(once=True, among="mq-deadline,stream")
    assert kernel.scheduler == "mq-deadline"
    stays = [line for line in kernel.said if "mq-deadline stays: stream" in line]
    assert len(stays) == 20


def test_it_looks_again_and_follows_the_work(kernel: Kernel) -> None:
    kernel.at(2000, lambda: setattr(kernel, "rates", {"none": 90.0}))
    kernel.serves(7000, among="none,mq-deadline,stream")
    assert [line.partition(": ")[2].partition(":")[0] for line in kernel.said[1:-1]] == [
        *("mq-deadline stays", "stream instead of mq-deadline"),
        *("none instead of stream", "none stays", "none stays"),
    ]
    assert kernel.settings == BEFORE


def test_p99_by_the_trace(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    class Responses:
        def __init__(self, *_: object) -> None:
            self.close = self.begin = self.read = lambda: None

        def p99_ms(self) -> float:
            return {"stream": 40.0, "none": 5000.0}.get(kernel.scheduler, 100.0)

    monkeypatch.setattr(measure, "Responses", Responses)
    monkeypatch.setattr(service, "Responses", Responses)
    kernel.rates = {"stream": 50.0, "none": 90.0}
    kernel.choose(once=True)
    assert kernel.scheduler == "mq-deadline"
    assert "none has a p99 of 5000 ms instead of 100 ms" in kernel.said[1]
    kernel.choose(once=True, goal="p99")
    assert kernel.scheduler == "stream"
    assert "stream has a p99 of 40 ms instead of 100 ms" in kernel.said[-2]


def test_without_the_trace_there_is_no_p99(kernel: Kernel) -> None:
    with pytest.raises(UsageError, match=r"^--goal p99: p99 is not known \(.*No such file"):
        kernel.choose(goal="p99")
    kernel.serves(1.5 * 3600)
    (note,) = kernel.noted  # of six comparisons
    assert note.startswith("note: sda: p99 is not known (")


def test_stream_has_requests_enough(kernel: Kernel) -> None:
    """As `streamsched enable` gives it; a disk of one command has two."""
    begin = kernel.begin

    def few(scheduler: str) -> None:
        begin(scheduler)
        kernel.made.write("queue/nr_requests", 2)

    kernel.begin = few  # type: ignore[method-assign]
    seen = set()
    requests = kernel.made.folder / "queue" / "nr_requests"
    kernel.each = lambda: seen.add((kernel.scheduler, requests.read_text().strip()))
    kernel.choose(once=True, among="none,stream")
    assert kernel.scheduler == "stream"
    assert {one for one in seen if one[0] != "mq-deadline"} == {("none", "2"), ("stream", "64")}
    kernel.undo()
    assert kernel.settings == BEFORE


# ---- and puts back ----


def test_once_leaves_it_and_undo_puts_it_back(kernel: Kernel) -> None:
    kernel.choose(once=True)
    assert kernel.scheduler == "stream" and kernel.file.exists()
    assert kernel.said[-1] == (
        "sda: stream stays until the next boot; `streamsched auto --undo sda` puts mq-deadline back"
    )
    assert not (kernel.root / "run/streamsched/keep-sda").exists()
    kernel.choose(once=True)  # what was before is what was before the first one
    kernel.undo()
    assert kernel.settings == BEFORE and not kernel.file.exists()
    assert kernel.said[-1] == "sda: mq-deadline again, as before"
    with pytest.raises(UsageError, match=r"^sda: has no choice of auto; there is nothing to undo$"):
        kernel.undo()


def test_once_that_changes_nothing_leaves_nothing(kernel: Kernel) -> None:
    kernel.rates = {}
    kernel.choose(once=True)
    assert kernel.settings == BEFORE and not kernel.file.exists()
    assert all(" is compared " in line or " stays: " in line for line in kernel.said)


def test_once_that_is_stopped_puts_all_back(kernel: Kernel) -> None:
    """Also what it has chosen by then."""
    kernel.rates = {"none": 80.0}
    kernel.at(400, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Interrupted, match=r"^sda: stopped"):
        kernel.choose(once=True)
    assert "none instead of mq-deadline" in kernel.said[1]
    assert kernel.settings == BEFORE and not kernel.file.exists()


def killed(kernel: Kernel) -> None:
    """As kill -9 leaves it: stream is chosen, and bfq was being measured."""
    kept = Kept(kernel.device, kernel.made.root)
    kept.choose(Spec("stream", None))
    kept.use(Spec("bfq", None))


def test_after_kill_it_knows_what_was_before(kernel: Kernel) -> None:
    killed(kernel)
    kernel.log.clear()
    kernel.serves(1)
    assert kernel.log[0] == "scheduler=stream"
    assert kernel.said[0].startswith("sda: stream is compared with none, mq-deadline, bfq, ")
    assert kernel.settings == BEFORE and not kernel.file.exists()


@pytest.mark.parametrize("on_the_way", [False, True])
def test_after_kill_undo_puts_it_back(kernel: Kernel, on_the_way: bool) -> None:
    killed(kernel)
    if on_the_way:
        kernel.begin("none")
    kernel.undo()
    assert kernel.settings == BEFORE and not kernel.file.exists()
    assert kernel.said == ["sda: mq-deadline again, as before"]


def test_after_kill_what_is_refused_puts_it_back_too(kernel: Kernel) -> None:
    killed(kernel)
    with pytest.raises(UsageError, match="there is nothing else to choose"):
        kernel.choose(among="stream")
    assert kernel.settings == BEFORE and not kernel.file.exists()


def test_what_is_not_loaded_any_more_gives_place_to_what_was(kernel: Kernel) -> None:
    killed(kernel)
    kernel.names.remove("stream")
    kernel.begin("bfq")
    kernel.rates = {}
    kernel.serves(1500)
    assert kernel.said[0] == "sda: mq-deadline again, for stream is not loaded any more"
    assert kernel.scheduler == "mq-deadline" and not kernel.file.exists()


def test_what_cannot_be_put_back_is_kept_and_an_error(kernel: Kernel) -> None:
    killed(kernel)

    def denied(*_: object) -> None:
        raise StreamschedError("queue/scheduler: Device or resource busy")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Device, "write", denied)
        with pytest.raises(StreamschedError, match=r"^sda: is not as it was; try it again$"):
            kernel.undo()
    assert kernel.file.exists()


def test_a_second_once_leaves_what_the_first_has_chosen(kernel: Kernel) -> None:
    kernel.choose(once=True)
    kernel.usual, kernel.rates = 0.0, {}
    with pytest.raises(UsageError, match="is idle"):
        kernel.choose(once=True)
    assert kernel.scheduler == "stream" and kernel.file.exists()
    kernel.undo()
    assert kernel.settings == BEFORE


def test_another_disk_of_that_name_has_no_past(kernel: Kernel) -> None:
    killed(kernel)
    kernel.made.write("diskseq", 10)
    with pytest.raises(UsageError, match="there is nothing to undo"):
        kernel.undo()
    kernel.rates = {}
    kernel.serves(1)
    assert kernel.scheduler == "bfq"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "diskseq": "9", "queue": 3}']
)
def test_a_file_that_is_not_its_own(kernel: Kernel, text: str) -> None:
    kernel.put("/run/streamsched/auto-sda.json", text)
    for does in (kernel.choose, kernel.undo):
        with pytest.raises(
            StreamschedError, match=r"auto-sda.json: is not as `streamsched auto` w"
        ):
            does()
    assert kernel.settings == BEFORE and kernel.log == []


def test_what_is_chosen_by_hand_stays(kernel: Kernel) -> None:
    """Between two looks: then it is compared with others, and is what there was."""
    kernel.at(1200, lambda: kernel.begin("none"))
    kernel.serves(5500)
    assert "sda: none was chosen by hand" in kernel.said
    assert kernel.scheduler == "none" and kernel.said[-1] == "sda: none again, as before"


def test_what_is_chosen_by_hand_during_a_comparison_stays(kernel: Kernel) -> None:
    kernel.at(70, lambda: kernel.begin("bfq"))
    kernel.serves(1000, among="mq-deadline,stream")
    assert any("somebody else changed the scheduler to bfq" in line for line in kernel.noted)
    assert "sda: bfq was chosen by hand" in kernel.said
    assert kernel.said[-1] == "sda: bfq again, as before"


def test_what_is_chosen_by_hand_after_once_is_not_taken_back(kernel: Kernel) -> None:
    kernel.choose(once=True)
    kernel.begin("bfq")
    kernel.said.clear()
    kernel.serves(1)
    assert kernel.said[0] == "sda: bfq was chosen by hand" and kernel.scheduler == "bfq"


def test_a_look_that_fails_goes_on_with_the_next(kernel: Kernel) -> None:
    """A disk that pauses now and then: the last one is compared, too."""
    kernel.at(200, lambda: setattr(kernel, "usual", 0.0))
    kernel.at(400, lambda: setattr(kernel, "usual", 60.0))
    kernel.serves(1500, among="none,mq-deadline,stream")
    assert any("became idle" in line for line in kernel.noted)
    assert "stream instead of mq-deadline" in kernel.said[1]


def test_what_is_chosen_by_hand_after_the_last_look_stays(kernel: Kernel) -> None:
    kernel.choose(once=True)
    kernel.begin("bfq")
    kernel.undo()
    assert kernel.said[-1] == "sda: bfq stays, chosen by hand"
    assert kernel.scheduler == "bfq" and not kernel.file.exists()


def test_udev_takes_nothing_back_meanwhile(kernel: Kernel) -> None:
    keep, seen = kernel.root / "run/streamsched/keep-sda", set()

    for seconds in (1, 400, 2000):
        kernel.at(seconds, lambda: seen.add(keep.exists()))
    kernel.serves(3000)
    assert seen == {True} and not keep.exists()


def test_an_idle_disk_is_waited_for(kernel: Kernel) -> None:
    kernel.usual, kernel.rates = 0.0, {}

    def begins() -> None:
        kernel.usual, kernel.rates = 60.0, {"stream": 80.0}

    kernel.at(1000, begins)
    kernel.serves(2300, among="mq-deadline,stream")
    assert [line for line in kernel.noted if line.startswith("sda: ")] == [
        "sda: is idle, 0 requests in 5 s; measure while the work is there that is to be compared"
    ]
    assert "stream instead of mq-deadline" in kernel.said[1]


def test_an_idle_disk_is_refused_once(kernel: Kernel) -> None:
    kernel.usual, kernel.rates = 0.0, {}
    with pytest.raises(UsageError, match=r"^sda: is idle, 0 requests in 5 s"):
        kernel.choose(once=True)
    assert kernel.settings == BEFORE and not kernel.file.exists()


def test_a_disk_that_goes_ends_it(kernel: Kernel) -> None:
    kernel.at(70, lambda: shutil.rmtree(kernel.made.folder))
    with pytest.raises(StreamschedError, match=r"^sda: the disk is gone$"):
        kernel.choose()
    assert not kernel.file.exists()


# ---- what is refused ----


def refused(kernel: Kernel, **how: object) -> str:
    with pytest.raises(UsageError) as error:
        kernel.choose(**how)
    assert kernel.log == [] and not kernel.file.exists() and kernel.said == []
    return str(error.value)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("queue/rotational", "0", "sda: is a solid-state disk; "),
        ("queue/zoned", "host-managed", "sda: is a zoned disk (host-managed), "),
        ("removable", "1", "sda: has removable media, "),
        ("queue/scheduler", "[none]", "sda: has none, and there is nothing else to choose; "),
    ],
)
def test_disks_that_it_is_not_for(kernel: Kernel, file: str, text: str, said: str) -> None:
    kernel.made.write(file, text)
    assert refused(kernel).startswith(said)


def test_a_member_of_an_attached_array_is_refused(kernel: Kernel) -> None:
    kernel.put("/sys/kernel/config/stream-array/md0/attached", "0\n")
    kernel.put("/sys/block/md0/slaves/sda", "")
    service.disk_of(kernel.machine, "sda")
    kernel.put("/sys/kernel/config/stream-array/md0/attached", "1\n")
    assert refused(kernel) == (
        "sda: is a member of md0, which is attached; `streamsched array detach /dev/md0` first"
    )


def test_a_member_by_its_partition_is_refused(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the array is attached only later."""
    array = SimpleNamespace(name="md0", members=("sda",))
    monkeypatch.setattr(service, "arrays_of", lambda _: [array])
    kernel.put("/sys/kernel/config/stream-array/md0/attached", "1\n")
    kernel.put("/sys/block/md0/slaves/sda1", "")
    assert refused(kernel).startswith("sda: is a member of md0, which is attached; ")
    kernel.put("/sys/kernel/config/stream-array/md0/attached", "0\n")
    attach = "/sys/kernel/config/stream-array/md0/attached"
    kernel.at(1, lambda: kernel.put(attach, "1\n"))
    kernel.serves(2 * 3600)
    assert [line for line in kernel.noted if "is a member of md0" in line]


def test_once_is_not_for_what_udev_takes_back(kernel: Kernel) -> None:
    one = OneDisk("sda", "", "sda", "mq-deadline", 64, "")
    for state, undo in ((State(disks=(one,)), "sda"), (State(all=True), "--all")):
        kernel.put(STATE, state.text())
        assert refused(kernel, once=True) == (
            "sda: is enabled, and a rule of udev would give it stream again; "
            f"`streamsched disable {undo}` first"
        )
    kernel.serves(1)  # the rule leaves it alone meanwhile


def test_two_at_once_are_refused(kernel: Kernel) -> None:
    kernel.put("/run/streamsched/keep-sda", f"{os.getpid()}\n")
    kernel.put(f"/proc/{os.getpid()}/cmdline", "python3 streamsched measure sda")
    said = rf"^sda: process {os.getpid()} changes its scheduler; end that first$"
    for does in (kernel.choose, kernel.undo):
        with pytest.raises(UsageError, match=said):
            does()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"among": "cfq,none"}, "--among cfq,none: cfq cannot be chosen; there are: none, mq-dead"),
        ({"among": "none,"}, "--among none,: an empty name cannot be chosen; there are: "),
        ({"among": "mq-deadline"}, "sda: has mq-deadline, and there is nothing else to choose; "),
        ({"minutes": 3}, "--minutes 3: is too short; 6 pairs of blocks of 20 s take 4"),
        ({"hours": 0}, "--every 0: must be more than 0 and at most 8760"),
        ({"hours": float("nan")}, "--every nan: must be more than 0 and at most 8760"),
    ],
)
def test_values_that_cannot_be(kernel: Kernel, how: dict[str, object], said: str) -> None:
    assert refused(kernel, **how).startswith(said)


def test_what_is_not_loaded_is_left_out_or_refused(kernel: Kernel) -> None:
    kernel.names.remove("bfq")
    kernel.begin("mq-deadline")
    assert service.others_of(kernel.device, None) == ("none", "mq-deadline", "stream")
    assert refused(kernel, among="bfq,none") == (
        "--among bfq,none: sda has no scheduler bfq; it offers none, mq-deadline, stream "
        "(`modprobe` loads others)"
    )


def test_without_permission_it_says_so(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert refused(kernel).endswith("queue/scheduler; run this as root")


def test_no_permission_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MadeDisk(tmp_path)

    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("streamsched.hosts.device.os.open", denied)
    with pytest.raises(UsageError, match=r"^no permission to change .*; run this as root$"):
        device_of("sda", tmp_path).set_scheduler("none", None)


# ---- which device ----


def test_names_of_devices(tmp_path: Path) -> None:
    MadeDisk(tmp_path)
    assert device_of("sda", tmp_path) == device_of("/dev/sda", tmp_path)
    assert device_of("sda", tmp_path).in_use == "stream"
    for name in ("sdb", "/dev/sdb", "", "..", "sda/queue"):
        with pytest.raises(UsageError, match=r"no such block device.*; there are: sda$"):
            device_of(name, tmp_path)


def test_a_device_without_a_scheduler(tmp_path: Path) -> None:
    (tmp_path / "block" / "dm-0" / "queue").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"^dm-0: has no scheduler; name the disk beneath it$"):
        device_of("dm-0", tmp_path)


# ---- the command line ----


@pytest.mark.parametrize("option", GONE)
def test_options_that_are_gone_say_what_there_is(option: str) -> None:
    words = [option] if option == "--dry-run" else [option, "x"]
    assert why_refused("auto", "sda", *words) == f"{option}: {GONE[option]}"


def test_only_auto_had_them() -> None:
    assert "no such option: --rule" in why_refused("doctor", "--rule", "size")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--undo", "--once"], "--once: not with --undo, which only puts back what there was"),
        (["--undo", "--goal", "p99"], "--goal: not with --undo, which only puts"),
        (["--once", "--every", "2"], "--every: not with --once"),
        (["--minutes", "2"], "--minutes 2: is too short"),
        (["--minutes", "nan"], "--minutes nan: must be at most 10080, a week"),
        (["--minutes", "-1"], "--minutes -1: is too short"),
        ([], "no-such-disk: there is no such disk"),
        (["--undo"], "no-such-disk: there is no such disk"),
    ],
)
def test_options_that_make_no_sense(options: list[str], said: str) -> None:
    assert why_refused("auto", "no-such-disk", *options).startswith(said)


# ---- the unit ----

PACKAGING = Path(__file__).resolve().parents[2] / "kernel" / "packaging"
UNIT = PACKAGING / "systemd" / "streamsched-auto@.service"


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is missing: install the Debian package systemd")
    unit = tmp_path / "streamsched-auto@sda.service"
    unit.write_text(UNIT.read_text().replace("ExecStart=streamsched", f"ExecStart={COMMAND}"))
    done = ran("systemd-analyze", "verify", "--man=no", unit)
    assert done.returncode == 0, done.stderr
    # Of other units on this machine it complains, too.
    assert "streamsched" not in done.stderr, done.stderr


def test_without_the_command_the_unit_is_skipped(tmp_path: Path) -> None:
    """With one sentence, as the package of the modules does not have the command."""
    (line,) = [line for line in UNIT.read_text().splitlines() if line.startswith("ExecCondition=")]
    words = shlex.split(line.removeprefix("ExecCondition=").replace("%I", "sda"))

    def tried() -> tuple[int, str]:
        done = ran(*words, env={"PATH": str(tmp_path)})
        return done.returncode, done.stdout + done.stderr

    said = "the scheduler of sda is not chosen: systemd finds no command streamsched\n"
    assert tried() == (1, said)
    (tmp_path / "streamsched").touch(0o755)
    assert tried() == (0, "")


def test_the_units_command_has_these_options() -> None:
    """With another disk's name it gets as far as saying that this is not there."""
    (line,) = [line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart=")]
    command, *words = line.removeprefix("ExecStart=").replace("%I", "no-such-disk").split()
    assert command == "streamsched"
    done = ran(Path(sys.executable).parent / command, *words)
    # Ended so it is not begun again: RestartPreventExitStatus.
    assert done.returncode == 2 and "RestartPreventExitStatus=2\n" in UNIT.read_text()
    assert done.stderr.startswith("streamsched: no-such-disk: there is no such disk")
