# SPDX-License-Identifier: GPL-2.0-only
"""streamsched calibrate: the disk's settings are put aside and back."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest
from model_disk import INFO, MS, quick

from streamsched._core import ffi, lib
from streamsched.base.errors import Interrupted, StreamschedError
from streamsched.calibrate import device as devices
from streamsched.calibrate import file as files
from streamsched.calibrate import settings

SETTINGS = {
    "scheduler": "none [bfq] mq-deadline",
    "read_ahead_kb": "128",
    "nr_requests": "77",
    "iosched/low_latency": "0",
}


@pytest.fixture
def fake(tmp_path: Path) -> devices.DeviceInfo:
    """A disk whose settings are plain files."""
    queue = tmp_path / "sdx" / "queue"
    (queue / "iosched").mkdir(parents=True)
    for name, value in SETTINGS.items():
        (queue / name).write_text(value + "\n")
    (queue / "rotational").write_text("1\n")
    (queue / "rotational").chmod(0o444)
    return dataclasses.replace(INFO, folder=tmp_path / "sdx")


def settings_of(info: devices.DeviceInfo) -> dict[str, str]:
    return {name: (info.queue / name).read_text().strip() for name in SETTINGS}


def put(info: devices.DeviceInfo, name: str, value: str) -> None:
    (info.queue / name).write_text(value)


def test_settings_are_put_aside_and_back(fake: devices.DeviceInfo) -> None:
    with settings.quiet(fake):
        now = settings_of(fake)
        assert (now["scheduler"][:4], now["read_ahead_kb"][:1]) == ("none", "0")
        # Another scheduler brings other settings.
        put(fake, "nr_requests", "256")
        put(fake, "iosched/low_latency", "1")
    after = settings_of(fake)
    assert after["scheduler"].startswith("bfq") and after["nr_requests"].startswith("77")
    assert after["read_ahead_kb"].startswith("128")
    assert after["iosched/low_latency"].startswith("0")


@pytest.mark.parametrize("number", settings.STOPPING)
@pytest.mark.parametrize("times", [1, 3])
def test_signals_end_it_and_settings_come_back(
    fake: devices.DeviceInfo, number: signal.Signals, times: int
) -> None:
    handlers = [signal.getsignal(one) for one in settings.STOPPING]
    went_on = False
    with (
        pytest.raises(Interrupted, match="settings of sdx are as they were") as caught,
        settings.quiet(fake),
    ):
        try:
            os.kill(os.getpid(), number)
            went_on = True
        finally:
            for _ in range(times - 1):
                os.kill(os.getpid(), number)
    assert not went_on
    assert caught.value.exit_code == 128 + number
    assert settings_of(fake)["scheduler"].startswith("bfq")
    assert settings_of(fake)["read_ahead_kb"].startswith("128")
    assert [signal.getsignal(one) for one in settings.STOPPING] == handlers


def test_a_signal_while_settings_are_put_back_waits(
    fake: devices.DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = settings.Quiet._write

    def interrupted(self: settings.Quiet, name: str, value: str) -> None:
        if value == "bfq":
            os.kill(os.getpid(), signal.SIGTERM)
        write(self, name, value)

    monkeypatch.setattr(settings.Quiet, "_write", interrupted)
    with pytest.raises(Interrupted), settings.quiet(fake):
        pass
    assert settings_of(fake)["scheduler"].startswith("bfq")
    assert settings_of(fake)["read_ahead_kb"].startswith("128")


def test_what_nohup_ignores_stays_ignored(fake: devices.DeviceInfo) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with settings.quiet(fake):
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_error_puts_settings_back_and_is_told(fake: devices.DeviceInfo) -> None:
    with pytest.raises(StreamschedError, match="unreadable"), settings.quiet(fake):
        raise StreamschedError("unreadable")
    assert settings_of(fake)["scheduler"].startswith("bfq")


def test_what_cannot_be_put_back_is_named(fake: devices.DeviceInfo) -> None:
    with (
        pytest.raises(StreamschedError, match=r"nr_requests \(it was '77'\)"),
        settings.quiet(fake),
    ):
        (fake.queue / "nr_requests").unlink()
        (fake.queue / "nr_requests").mkdir()
    assert settings_of_some(fake, "scheduler").startswith("bfq")
    assert settings_of_some(fake, "read_ahead_kb").startswith("128")


def test_the_scheduler_is_put_back_before_what_it_brings_along(
    fake: devices.DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = settings.Quiet._write, []

    def noted(self: settings.Quiet, name: str, value: str) -> None:
        written.append(name)
        write(self, name, value)

    with settings.quiet(fake):
        put(fake, "nr_requests", "256")
        put(fake, "iosched/low_latency", "1")
        monkeypatch.setattr(settings.Quiet, "_write", noted)
    assert written == ["scheduler", "nr_requests", "read_ahead_kb", "iosched/low_latency"]


def settings_of_some(info: devices.DeviceInfo, name: str) -> str:
    return (info.queue / name).read_text()


def test_learned_curves_are_told_from_written_ones() -> None:
    curve = ffi.new("struct ss_curve *")

    def shown() -> str:
        points = [curve.point[i] for i in range(curve.nr_points)]
        return " ".join(f"{point.distance_sectors}:{point.time_ns}" for point in points)

    lib.ss_curve_init_generic(curve, INFO.capacity_sectors)
    assert settings.is_learned(shown())
    for i in range(100):
        lib.ss_curve_learn(curve, 1000 * i, 8, 5 * MS)
    assert settings.is_learned(shown())
    line = files.curve_line(quick("wd5000aaks").service_curve())
    assert not settings.is_learned(line) and not settings.is_learned("0:0")
