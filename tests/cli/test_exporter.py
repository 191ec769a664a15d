# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched exporter`, its dashboard and its alerts, on a made-up /sys."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from said import ROOT, ran
from watch_data import MadeDisk, made

from streamsched.base.errors import StreamschedError, UsageError, install
from streamsched.cli.main import app
from streamsched.watch import exporter

__all__ = ["made"]


def scrape(root: Path) -> str:
    registry = CollectorRegistry()
    registry.register(exporter.Disks(root))
    return generate_latest(registry).decode()


def samples(text: str) -> dict[tuple[str, ...], float]:
    """By name and labels, the disk's first."""
    return {
        (
            one.name,
            one.labels["disk"],
            *(v for k, v in one.labels.items() if k != "disk"),
        ): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def test_the_figures_are_the_kernels(made: MadeDisk) -> None:
    made.works()
    made.stat[4:7] = 5, 1, 80
    made.stat[15] = 2
    made.flush()
    found = samples(scrape(made.root))
    assert found["streamsched_disk_up", "sda"] == 1
    assert found["streamsched_scheduler_info", "sda", "deadline", "stream"] == 1
    assert found["streamsched_requests_total", "sda", "read"] == 300
    assert found["streamsched_requests_total", "sda", "write"] == 6
    assert found["streamsched_bytes_total", "sda", "read"] == 3 * 12_800 * 512
    assert found["streamsched_response_seconds_total", "sda", "read"] == 1.5
    assert found["streamsched_flushes_total", "sda"] == 2
    assert found["streamsched_in_flight", "sda"] == 4
    assert found["streamsched_streams", "sda"] == 2
    assert found["streamsched_hits_total", "sda"] == 10
    assert found["streamsched_reasons_total", "sda", "own"] == 900
    assert found["streamsched_wait_seconds_count", "sda"] == 300
    assert found["streamsched_wait_seconds_sum", "sda"] == pytest.approx(0.45)
    assert found["streamsched_wait_seconds_bucket", "sda", "0.001048"] == 0
    assert found["streamsched_wait_seconds_bucket", "sda", "0.002097"] == 300
    assert found["streamsched_wait_seconds_bucket", "sda", "+Inf"] == 300


def test_other_schedulers_and_disks_that_cannot_be_read(made: MadeDisk) -> None:
    other = MadeDisk(made.root, "sdb", "8:16")
    other.scheduler = "none [mq-deadline] stream"
    other.flush()
    broken = MadeDisk(made.root, "sdc", "8:32")
    (broken.sched / "waits").write_text("wait_below_us reads writes\nmore 0 0\n")  # an older module
    found = samples(scrape(made.root))
    up = {key[1]: value for key, value in found.items() if key[0] == "streamsched_disk_up"}
    assert up == {"sda": 1, "sdb": 1, "sdc": 0}
    of_other = {key[0] for key in found if key[1] == "sdb"}
    assert "streamsched_bytes_total" in of_other and "streamsched_waits_total" not in of_other


def test_the_names_are_the_network_servers() -> None:
    """Those that both have, as nbdkit/stats.c writes them."""
    there = (ROOT / "nbdkit" / "stats.c").read_text()
    for name, tells in exporter.COUNTERS.items():
        assert f'"{name}_total", "{tells}"' in there
    for name in ("bytes_total", "flushes_total", "idle_seconds_total", "wait_seconds"):
        assert f'"{name}"' in there


@pytest.fixture
def metric_names(made: MadeDisk) -> set[str]:
    """All that the exporter has, with the suffixes of counters and histograms."""
    made.stat[15] = 1
    made.flush()
    names = {key[0] for key in samples(scrape(made.root))}
    return names - {name for name in names if name.endswith("_created")}


def named_in(text: str) -> set[str]:
    return set(re.findall(r"\bstreamsched_\w+", text))


def test_the_dashboard_asks_for_what_there_is(metric_names: set[str]) -> None:
    dashboard = json.loads((ROOT / "monitoring" / "grafana.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [one["query"]["query"] for one in dashboard["templating"]["list"][1:]]
    assert len(queries) > 10
    for query in queries:
        assert named_in(query) <= metric_names and named_in(query), query
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24 and panel["title"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_the_alerts_are_about_what_there_is(metric_names: set[str]) -> None:
    text = (ROOT / "monitoring" / "alerts.yml").read_text()
    assert named_in(text) and named_in(text) <= metric_names


def promtool() -> str:
    found = shutil.which("promtool")
    if not found:
        pytest.skip("promtool is missing: install the Debian package prometheus")
    return found


def test_promtool_takes_the_metrics(made: MadeDisk) -> None:
    made.works()
    done = ran(promtool(), "check", "metrics", input=scrape(made.root))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_promtool_takes_the_rules() -> None:
    rules = ROOT / "monitoring" / "alerts.yml"
    done = ran(promtool(), "check", "rules", rules)
    assert done.returncode == 0 and "4 rules found" in done.stdout, done.stdout + done.stderr


# ---- the command ----


@pytest.mark.parametrize(
    "listen", ["9842", "host:", "host:x", "host:70000", ":0", "a:٣", "[::1:80", "::1]:80", "\n:80"]
)
def test_addresses_that_are_none(listen: str) -> None:
    with pytest.raises(
        UsageError, match=r"(?s)^--listen .*: must be HOST:PORT, as 127\.0\.0\.1:9842"
    ):
        exporter.address_of(listen)


def test_a_star_is_no_host() -> None:
    for listen in ("*:80", "[*]:80"):
        with pytest.raises(UsageError, match=r"\* is no host; for all addresses write :80, or 0\."):
            exporter.address_of(listen)


def test_addresses() -> None:
    assert exporter.address_of("127.0.0.1:9842") == ("127.0.0.1", 9842)
    assert exporter.address_of("[::1]:80") == ("::1", 80)
    assert exporter.address_of(":80") == ("", 80)


def test_what_nobody_may_read_is_said_at_the_start(made: MadeDisk) -> None:
    shutil.rmtree(made.root / "kernel")
    with pytest.raises(StreamschedError, match=r"^\S+/debug: debugfs is not mounted; `mount -t "):
        exporter.check_readable(made.root)
    made.scheduler = "[none] stream"
    made.write("queue/scheduler", made.scheduler)
    exporter.check_readable(made.root)


@pytest.mark.parametrize("host", ["a..b", "a" * 70, "x.invalid"])
def test_names_that_no_host_has(host: str, made: MadeDisk) -> None:
    with pytest.raises(StreamschedError, match=rf"^--listen {host}:9842: "):
        exporter.serve(f"{host}:9842", made.root)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        yield one.getsockname()[1]


def test_it_serves_until_it_is_stopped(
    made: MadeDisk, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    listen = f"127.0.0.1:{port}"
    with pytest.raises(StreamschedError, match=rf"^--listen {listen}: Address already in use$"):
        exporter.serve(listen, made.root)
    got: list[str] = []

    def ask() -> None:
        for _ in range(50):
            try:
                with urllib.request.urlopen(f"http://{listen}/metrics", timeout=60) as answer:
                    got.append(answer.read().decode())
                break
            except OSError:
                time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)

    socket.socket().close()
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{one.getsockname()[1]}"
    asker = threading.Thread(target=ask)
    asker.start()
    exporter.serve(listen, made.root)
    asker.join()
    assert capsys.readouterr().out == f"http://{listen}/metrics\n"
    assert samples(got[0])["streamsched_disk_up", "sda"] == 1


@pytest.fixture
def served(made: MadeDisk) -> Iterator[tuple[str, int]]:
    """The address of a server in a thread; signals are the main thread's."""
    registry = CollectorRegistry()
    registry.register(exporter.Disks(made.root))
    with exporter.server_at("127.0.0.1", 0, registry) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield "127.0.0.1", server.server_port
        server.shutdown()
        thread.join()


def half_sent(served: tuple[str, int]) -> socket.socket:
    one = socket.create_connection(served, timeout=60)
    one.sendall(b"GET /metrics HTT")
    return one


def scraped(served: tuple[str, int]) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{served[1]}/metrics", timeout=60) as answer:
        return bytes(answer.read())


def test_who_sends_half_a_request_costs_little(served: tuple[str, int]) -> None:
    """The oldest connections go; who asks is answered meanwhile."""
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(half_sent(served)) for _ in range(5 * exporter.MOST)]
        assert b"streamsched_disk_up" in scraped(served)
        until = time.monotonic() + 60
        while threading.active_count() > before + exporter.MOST and time.monotonic() < until:
            time.sleep(0.01)
        assert threading.active_count() <= before + exporter.MOST
        assert clients[0].recv(1) == b""
        clients[-1].sendall(b"P/1.0\r\n\r\n")
        assert clients[-1].recv(15) == b"HTTP/1.0 200 OK"


def test_no_connection_lasts_for_long(
    served: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a byte comes now and then."""
    monkeypatch.setattr(exporter, "LONGEST_S", 0.2)
    before = threading.active_count()
    with half_sent(served) as client:
        until = time.monotonic() + 60
        with pytest.raises(OSError):
            while time.monotonic() < until:
                client.sendall(b"x")
                time.sleep(0.05)
        while threading.active_count() > before and time.monotonic() < until:
            time.sleep(0.01)
    assert threading.active_count() <= before


@pytest.mark.parametrize(
    "sent", [b"\0" * 999, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"x" * 70_000, b"\r\n" * 99]
)
def test_nonsense_leaves_no_traceback(
    sent: bytes, served: tuple[str, int], capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(served, timeout=60) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.sendall(sent)
    assert b"streamsched_disk_up" in scraped(served)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("why", ["header", "files"])
def test_what_fails_is_told_to_who_asked(
    why: str,
    served: tuple[str, int],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = b"GET / HTTP/1.0\r\n"
    if why == "header":
        asked += b"Accept: application/openmetrics-text;version=abc\r\n"

    def too_few(_: object) -> list[str]:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        if why == "files":
            patched.setattr(exporter, "disk_names", too_few)
        with socket.create_connection(served, timeout=60) as one:
            one.sendall(asked + b"\r\n")
            got = b"".join(iter(lambda: one.recv(4096), b""))
    assert got.startswith(b"HTTP/1.0 ")  # with such a header it depends on the library
    if why == "files":
        assert got.startswith(b"HTTP/1.0 500 ") and got.endswith(b"Too many open files\n")
    assert b"streamsched_disk_up" in scraped(served)
    assert capfd.readouterr() == ("", "")


def test_without_prometheus_client_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "streamsched.watch.exporter")
    monkeypatch.delattr("streamsched.watch.exporter")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    says = f"the exporter needs prometheus_client: {install('exporter')}"
    with pytest.raises(UsageError, match=f"^{re.escape(says)}$"):
        app(["exporter"], standalone_mode=False)


def test_idle_time_is_in_seconds(made: MadeDisk) -> None:
    """The kernel counts nanoseconds."""
    made.counters["idle_ns"] = 2_500_000_000
    made.flush()
    assert samples(scrape(made.root))["streamsched_idle_seconds_total", "sda"] == 2.5
