# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched exporter`: this machine's disks for Prometheus.

The metrics have the names of the network server's (docs/guide/NBDKIT.md) where they mean the same,
with the label `disk` in the place of `member`. Each scrape reads sysfs and debugfs anew. A disk
that cannot be read has `streamsched_disk_up` 0 and nothing else.
"""

from __future__ import annotations

import contextlib
import io
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.base.signals import until_stopped
from streamsched.hosts.device import STREAM, SYS, device_of
from streamsched.watch.parties import (
    DIRECTIONS,
    Inside,
    KernelDisk,
    Stat,
    UnreadableError,
    disk_names,
)

LISTEN = "127.0.0.1:9842"
STEP_S = 0.5  # how soon a signal ends it
# Of connections: each has a thread, from when it comes until its answer was read.
MOST = 16
LONGEST_S = 10.0
PREFIX = "streamsched_"
# The network server's (nbdkit/stats.c), with its words.
COUNTERS = {
    "dispatches": "Requests sent to the disk.",
    "merges": "Requests joined with a pending one.",
    "seeks": "Requests not where the head was.",
    "waits": "Times the head was held for a stream.",
    "hits": "Waits that ended with the request waited for.",
    "timeouts": "Waits that ended by time.",
    "second_chances": "Waits prolonged for a long stream.",
    "slices_ended": "Turns of streams that ended.",
    "expired": "Requests sent because of their age.",
}


class _Families:
    """All metrics of a scrape, before the disks are put in."""

    def __init__(self) -> None:
        disk = ["disk"]
        both = ["disk", "direction"]

        def counter(name: str, tells: str, labels: list[str]) -> CounterMetricFamily:
            return CounterMetricFamily(PREFIX + name, tells, labels=labels)

        def gauge(name: str, tells: str, labels: list[str]) -> GaugeMetricFamily:
            return GaugeMetricFamily(PREFIX + name, tells, labels=labels)

        self.up = gauge("disk_up", "Whether the disk's figures can be read.", disk)
        self.scheduler = gauge(
            "scheduler_info", "1 for the scheduler in use.", [*disk, "scheduler", "inner"]
        )
        self.requests = counter("requests", "Requests done.", both)
        self.bytes = counter("bytes", "Bytes read or written.", both)
        self.response = counter(
            "response_seconds", "From arrival to completion, the sum over requests.", both
        )
        self.flushes = counter("flushes", "Flushes.", disk)
        self.in_flight = gauge("in_flight", "Requests that are not done.", disk)
        self.pending = gauge("pending", "Of those, requests that the scheduler has.", disk)
        self.streams = gauge("streams", "Streams that take turns.", disk)
        self.reasons = counter("reasons", "Requests sent, by the reason.", [*disk, "reason"])
        self.idle = counter(
            "idle_seconds", "Time that the head was held with requests pending.", disk
        )
        self.wait = HistogramMetricFamily(
            PREFIX + "wait_seconds", "From arrival to dispatch.", labels=disk
        )
        self.counters = {name: counter(name, tells, disk) for name, tells in COUNTERS.items()}

    def __iter__(self) -> Iterator[Metric]:
        for family in vars(self).values():
            yield from family.values() if isinstance(family, dict) else (family,)

    def add_stat(self, name: str, stat: Stat) -> None:
        """What every disk has."""
        for direction, done in zip(DIRECTIONS, stat.done, strict=True):
            self.requests.add_metric([name, direction], done.requests)
            self.bytes.add_metric([name, direction], done.bytes)
            self.response.add_metric([name, direction], done.response_s)
        if stat.flushes is not None:
            self.flushes.add_metric([name], stat.flushes)
        self.in_flight.add_metric([name], stat.in_flight)

    def add_inside(self, name: str, inside: Inside) -> None:
        """What `stream` tells besides."""
        counters = inside.counters
        for counter, family in self.counters.items():
            family.add_metric([name], counters[counter])
        self.pending.add_metric([name], counters["pending"])
        self.idle.add_metric([name], counters["idle_ns"] / 1e9)
        streams = [party for party in inside.parties if party.kind == "stream"]
        self.streams.add_metric([name], len(streams))
        for reason, number in inside.reasons.items():
            self.reasons.add_metric([name, reason], number)
        seen, buckets = 0, list[tuple[str, float]]()
        for below_s, *both in zip(inside.waits.below_s, *inside.waits.number, strict=True):
            seen += sum(both)
            buckets.append(("+Inf" if below_s == float("inf") else f"{below_s:.6f}", seen))
        self.wait.add_metric([name], buckets, sum(inside.waits.sum_s))


class Disks(Collector):
    """All disks of the machine, as they are when somebody asks."""

    def __init__(self, sys_: Path = SYS) -> None:
        self._sys = sys_

    def collect(self) -> Iterator[Metric]:
        """One scrape."""
        families = _Families()
        for name in disk_names(self._sys):
            try:
                disk = KernelDisk(device_of(name, self._sys), self._sys)
                stat = disk.stat()
                scheduler = disk.device.in_use
                inside = disk.inside() if scheduler == STREAM else None
            except StreamschedError:
                # It went meanwhile, or its scheduler did, or the module is another version's.
                families.up.add_metric([name], 0)
                continue
            families.up.add_metric([name], 1)
            families.scheduler.add_metric([name, scheduler, inside.inner if inside else ""], 1)
            families.add_stat(name, stat)
            if inside:
                families.add_inside(name, inside)
        yield from families


class _Handler(WSGIRequestHandler):
    """Does not log each request."""

    def log_message(self, *_: Any) -> None:
        """Nor what is wrong with one."""

    def get_stderr(self) -> io.StringIO:
        """Nor a traceback, with which any client could fill the log."""
        return io.StringIO()


def _told(app: Callable[..., Any]) -> Callable[..., Any]:
    """@app, which tells who asked what went wrong: headers it cannot read, too few files."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        try:
            return app(environ, start_response)
        except Exception as error:
            kind = [("Content-Type", "text/plain; charset=utf-8")]
            start_response("500 Internal Server Error", kind)
            return [f"{type(error).__name__}: {error}\n".encode(errors="backslashreplace")]

    return answer


class Server(ThreadingWSGIServer):
    """At most MOST connections, none for longer than LONGEST_S.

    Somebody who asks is answered at once: where there is no room, the oldest must go.
    """

    request_queue_size = 8 * MOST  # that wait to be taken; a full queue costs a client seconds

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self._began: dict[socket.socket, float] = {}  # the oldest first
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """One connection, in a thread."""
        with self._lock:
            self._began[request] = time.monotonic()
            self._cut(len(self._began) - MOST)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Now and then, between connections."""
        until = time.monotonic() - LONGEST_S
        with self._lock:
            self._cut(sum(began < until for began in self._began.values()))

    def _cut(self, nr: int) -> None:
        """The @nr oldest: their threads see the end of what is read or written, and end."""
        for request in list(self._began)[: max(nr, 0)]:
            del self._began[request]
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """At the connection's end."""
        with self._lock:
            self._began.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, _request: Any, _client_address: Any) -> None:
        """Of a client that went, or sent nonsense: nothing to print a traceback for."""


def address_of(listen: str) -> tuple[str, int]:
    """HOST and PORT; or UsageError."""
    found = re.fullmatch(r"(?:\[([^\[\]\s]+)\]|([^\[\]\s]*)):([0-9]{1,5})", listen)
    if not found or not 0 < int(found[3]) < 65536:
        raise UsageError(f"--listen {listen}: must be HOST:PORT, as {LISTEN}, or :PORT for all")
    host, port = found[1] or found[2], int(found[3])
    if host == "*":  # which resolves, to one address
        raise UsageError(
            f"--listen {listen}: * is no host; for all addresses write :{port}, or 0.0.0.0:{port} "
            f"or [::]:{port}"
        )
    return host, port


def check_readable(sys_: Path = SYS) -> None:
    """Refuse to run where no disk under stream could ever be read."""
    troubles = []
    for name in disk_names(sys_):
        disk = KernelDisk(device_of(name, sys_), sys_)
        if disk.device.in_use != STREAM:
            continue
        try:
            disk.inside()
            return
        except UnreadableError as error:
            troubles.append(str(error))
    if troubles:
        raise StreamschedError(troubles[0])


def server_at(host: str, port: int, registry: CollectorRegistry) -> Server:
    """One that answers when serve_forever() runs; @host may be empty: every address."""
    every = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
    address = str(socket.getaddrinfo(host or every, port, type=socket.SOCK_STREAM)[0][4][0])
    return make_server(
        address, port, _told(make_wsgi_app(registry)), Server, handler_class=_Handler
    )


def serve(listen: str, sys_: Path = SYS) -> None:
    """Until SIGINT, SIGTERM or SIGHUP."""
    host, port = address_of(listen)
    check_readable(sys_)
    registry = CollectorRegistry()
    registry.register(Disks(sys_))
    try:
        server = server_at(host, port, registry)
    except (UnicodeError, socket.gaierror):
        raise UsageError(f"--listen {listen}: {host} is the name of no host") from None
    except OSError as error:
        raise StreamschedError(f"--listen {listen}: {error.strerror or error}") from None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with until_stopped() as running:
            print(f"http://{listen}/metrics", flush=True)
            while running():
                time.sleep(STEP_S)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
