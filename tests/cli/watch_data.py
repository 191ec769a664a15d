# SPDX-License-Identifier: GPL-2.0-only
"""A made-up disk under stream: its files in sysfs and debugfs, and its trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamsched.watch import observe

SECTORS = 976_773_168  # 500 GB
COUNTERS = (
    *("pending", "in_flight", "arrivals", "dispatches", "completions", "merges", "removals"),
    *("seeks", "waits", "hits", "timeouts", "second_chances", "slices_ended", "expired", "idle_ns"),
)
REASONS = ("order", "own", "answer", "oldest", "light", "back", "inner", "pause", "drain", "array")


@dataclasses.dataclass
class MadeParty:
    number: int
    end: int
    sent: int = 100
    sectors: int = 12_800
    head_us: int = 100_000
    kind: str = "stream"
    name: str = "be"
    pending: int = 1
    turn: bool = False

    @property
    def line(self) -> str:
        return (
            f"{self.name}: party {self.number} kind {self.kind} end {self.end} members 200 "
            f"pending {self.pending} paused_us 0 limit_us 250 sent {self.sent} "
            f"sectors {self.sectors} head_us {self.head_us} turn {int(self.turn)}\n"
        )


class MadeDisk:
    """A disk of /sys below @root, as the module of this version shows it."""

    def __init__(self, root: Path, name: str = "sda", number: str = "8:0") -> None:
        self.root, self.name = root, name
        self.folder = root / "block" / name
        self.sched = root / "kernel" / "debug" / "block" / name / "sched"
        self.parties = [
            MadeParty(0, 200_000_000, turn=True),
            MadeParty(7, 600_000_000),
            MadeParty(96, 0, kind="rest", sent=10, sectors=80),
        ]
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.reasons = dict.fromkeys(REASONS, 0)
        self.waits = [[0] * 18, [0] * 18]
        self.sum_us = [0, 0]
        self.stat = [0] * 17
        self.scheduler = "none mq-deadline [stream]"
        self.write("size", SECTORS)
        self.write("dev", number)
        self.write("inflight", "       3        1")
        self.write("queue/iosched/inner", "noop [deadline] cscan sptf linus")
        self.write("queue/nr_requests", 64)
        self.flush()

    def write(self, name: str, text: object) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def flush(self) -> None:
        """Write what has changed."""
        self.write("queue/scheduler", self.scheduler)
        self.write("stat", " ".join(map(str, self.stat)))
        self.sched.mkdir(parents=True, exist_ok=True)

        def sums(numbers: dict[str, int]) -> str:
            return " ".join(f"{name} {number}" for name, number in numbers.items())

        none = dict.fromkeys(COUNTERS, 0)
        (self.sched / "counters").write_text(
            f"rt: {sums(none)}\nbe: {sums(self.counters)}\nidle: {sums(none)}\n"
            "aged 0 returned 0 waiting 0 plain 0 write_depth 48 async_depth 40 learning 1\n"
        )
        (self.sched / "reasons").write_text(f"be: {sums(self.reasons)}\n")
        (self.sched / "streams").write_text("".join(party.line for party in self.parties))
        (self.sched / "parents").write_text(MadeParty(3, 1).line)
        lines = ["wait_below_us reads writes"]
        for i, (reads, writes) in enumerate(zip(*self.waits, strict=True)):
            below = "more" if i == 17 else str((1 << (16 + i)) // 1000)
            lines.append(f"{below} {reads} {writes}")
        lines.append(f"sum_us {self.sum_us[0]} {self.sum_us[1]}")
        (self.sched / "waits").write_text("\n".join(lines) + "\n")

    def works(self, requests: int = 100, sectors: int = 12_800) -> None:
        """Each party sends so many requests; half of the waits pay."""
        n = len(self.parties)
        for party in self.parties:
            party.sent += requests
            party.sectors += sectors
            party.head_us += 100_000
        self.stat[0] += n * requests
        self.stat[2] += n * sectors
        self.stat[3] += 5 * n * requests
        self.counters["dispatches"] += n * requests
        self.counters["waits"] += 20
        self.counters["hits"] += 10
        self.counters["timeouts"] += 10
        self.counters["in_flight"] = 2
        self.reasons["own"] += 9 * requests
        self.reasons["oldest"] += requests
        self.waits[0][5] += n * requests
        self.sum_us[0] += 1500 * n * requests
        self.flush()


class MadeTrace:
    """In place of the trace instance: what is put in is what comes."""

    put: list[str]
    closed: int

    def __init__(self, *_: Any, **__: Any) -> None:
        self.close = lambda: None

    def lines(self) -> Iterator[str]:
        lines, MadeTrace.put = MadeTrace.put, []
        yield from lines

    @staticmethod
    def chosen(when: float, sector: int, party: int, waited_us: int = 900, why: str = "own") -> str:
        return (
            f"    fio-71  [000] d..1. {when:.6f}: stream_choose: 8,0 sector={sector} sectors=128 "
            f"waited_us={waited_us} why={why} class=be party={party}"
        )


@pytest.fixture
def made(tmp_path: Path) -> MadeDisk:
    return MadeDisk(tmp_path)


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> type[MadeTrace]:
    MadeTrace.put = []
    monkeypatch.setattr(observe, "Instance", MadeTrace)
    return MadeTrace
