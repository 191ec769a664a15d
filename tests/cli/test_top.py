# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched top` on a made-up disk and on a made-up file of the network server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import re
import shlex
import shutil
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from said import ran
from typer.testing import CliRunner
from watch_data import MadeDisk, MadeParty, MadeTrace, made, trace

from streamsched.base.errors import StreamschedError, UsageError, install
from streamsched.base.files import MOST_BYTES
from streamsched.cli.main import app
from streamsched.watch import observe, observe_nbd, top
from streamsched.watch import parties as watch
from streamsched.watch.observe import KernelSource, Observation

__all__ = ["made", "trace"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which passes only when a test says so."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def source_of(made: MadeDisk) -> KernelSource:
    (source,) = top.sources_of([made.name], made.root)
    assert isinstance(source, KernelSource)
    return source


def seen_after(source: KernelSource, clock: list[float], seconds: float = 2.0) -> Observation:
    clock[0] += seconds
    seen = source.look()
    assert seen
    return seen


# ---- the figures ----


def test_what_parties_did_between_two_looks(
    made: MadeDisk, trace: type[MadeTrace], clock: list[float]
) -> None:
    source = source_of(made)
    assert source.look() is None
    made.works(requests=100, sectors=12_800)
    made.parties[0].head_us += 300_000
    made.flush()
    trace.put = [trace.chosen(101, 200_000_000, 0, 1000 + i) for i in range(98)]
    trace.put += [trace.chosen(101, 200_000_000, 0, 90_000, "oldest")] * 2
    trace.put += ["CPU:0 [LOST 55 EVENTS]", trace.chosen(101.5, 5, 96, 7000, "order")]
    seen = seen_after(source, clock)
    assert seen.trouble is None and seen.note is None and seen.scheduler == "stream (deadline)"
    assert (seen.seconds, seen.requests_s, seen.in_flight) == (2.0, 150, 2)
    assert seen.mb_s == round(3 * 12_800 * 512 / 2e6, 2)
    assert (seen.waits_s, seen.paid_s, seen.in_vain_s) == (10, 5, 5)
    assert seen.reasons == {"own": 0.9, "oldest": 0.1}
    first, second, rest = seen.rows
    assert (first.place_bytes, first.turn, first.requests_s) == (102_400_000_000, True, 50)
    assert first.mb_s == round(12_800 * 512 / 2e6, 2)
    assert (first.share, second.share, rest.share) == (0.6667, 0.1667, 0.1667)
    assert (first.wait_p99_ms, second.wait_p99_ms, rest.wait_p99_ms) == (90.0, None, 7.0)
    assert first.reasons == {"own": 0.98, "oldest": 0.02} and rest.kind == "rest"
    assert rest.place_bytes is None and seen.path[-1] == (101.5, 5)
    source.close()


def test_a_stream_in_the_place_of_another_begins_anew(
    made: MadeDisk, trace: type[MadeTrace], clock: list[float]
) -> None:
    source = source_of(made)
    source.look()
    trace.put = [trace.chosen(101, 1, 0, 50_000)]
    made.works()
    seen_after(source, clock)
    made.works()
    made.parties[0] = MadeParty(0, 1000, sent=20, sectors=160, head_us=5000)
    made.flush()
    seen = seen_after(source, clock)
    assert (seen.rows[0].requests_s, seen.rows[0].wait_p99_ms) == (10, None)


def test_both_actuators(made: MadeDisk, trace: type[MadeTrace], clock: list[float]) -> None:
    made.parties += [MadeParty(0, 900_000_000, name="be2"), MadeParty(0, 5, name="idle2")]
    source = source_of(made)
    source.look()
    made.works()
    seen = seen_after(source, clock)
    assert [row.kind for row in seen.rows] == [
        *("stream", "stream", "rest", "stream be2", "stream idle2")
    ]


def test_a_trace_of_another_module(
    made: MadeDisk, trace: type[MadeTrace], clock: list[float]
) -> None:
    source = source_of(made)
    source.look()
    made.works()
    for line in (trace.chosen(1, 1, 0).replace("party=", "p="), "9: stream_choose: 8,0 x"):
        trace.put = [line]
        seen = seen_after(source, clock)
        assert seen.trouble == (
            "stream_choose: is not as this version of streamsched has it; install the module of "
            "the same version"
        )
    assert seen_after(source, clock).trouble is None


def test_without_tracefs_it_says_what_is_missing(made: MadeDisk, clock: list[float]) -> None:
    source = source_of(made)
    source.look()
    made.works()
    seen = seen_after(source, clock)
    assert seen.note and seen.note.startswith("no waits and reasons of parties, and no path (")
    assert seen.rows[0].requests_s == 50 and seen.rows[0].wait_p99_ms is None


def test_where_nothing_rotates_it_says_so(made: MadeDisk, clock: list[float]) -> None:
    made.parties = []
    source = source_of(made)
    for _ in range(2):
        made.works()
        file = made.sched / "counters"
        file.write_text(file.read_text().replace("plain 0", "plain 1"))
        clock[0] += 1
        seen = source.look()
    assert seen and seen.note == observe.FLAT and seen.rows == ()


# ---- what may happen meanwhile, and what is wrong from the start ----


def changed(made: MadeDisk) -> None:
    made.scheduler = "none [mq-deadline] stream"
    made.flush()
    shutil.rmtree(made.sched)


def unmounted(made: MadeDisk) -> None:
    shutil.rmtree(made.root / "kernel" / "debug" / "block")


def older(made: MadeDisk) -> None:
    (made.sched / "streams").write_text("be: end 123 members 5 pending 1 paused_us 0 limit_us 0\n")


def without_a_counter(made: MadeDisk) -> None:
    path = made.sched / "counters"
    path.write_text(path.read_text().replace("second_chances", "chances"))


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (lambda made: shutil.rmtree(made.folder), "sda: the disk is gone"),
        (changed, "sda: its scheduler is mq-deadline, not stream"),
        (unmounted, "debug: debugfs is not mounted; `mount -t debugfs debugfs "),
        (without_a_counter, "sched/counters: is not as this version of streamsched has it; insta"),
        (older, "sched/streams: is not as this version of streamsched has it; install the module"),
        (lambda made: made.write("stat", "1 2 3"), "sda/stat: has not the columns of Linux"),
    ],
)
def test_trouble_is_a_sentence_and_may_end(
    happens: Callable[[MadeDisk], None],
    said: str,
    made: MadeDisk,
    trace: type[MadeTrace],
    clock: list[float],
) -> None:
    source = source_of(made)
    source.look()
    happens(made)
    seen = source.look()
    assert seen and seen.trouble and said in seen.trouble and "\n" not in seen.trouble
    assert seen.rows == ()
    back = MadeDisk(made.root)
    assert source.look() is None
    back.works()
    assert seen_after(source, clock).trouble is None


def test_without_permission_it_says_so(made: MadeDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(made)
    stat = Path.stat

    def denied(path: Path, **options: bool) -> os.stat_result:
        if path.name == "block" and path.parent.name == "debug":
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", denied)
    seen = source.look()
    assert seen and seen.trouble
    assert seen.trouble.endswith("kernel/debug: no permission to read it; run this as root")


def test_which_disks(made: MadeDisk) -> None:
    other = MadeDisk(made.root, "sdb", "8:16")
    assert [one.name for one in top.sources_of([], made.root)] == ["sda", "sdb"]
    other.scheduler = "[none] stream"
    other.flush()
    assert [one.name for one in top.sources_of([], made.root)] == ["sda"]
    assert [one.name for one in top.sources_of(["/dev/sdb", "sdb"], made.root)] == ["sdb"]
    with pytest.raises(UsageError, match=r"^sdx: there is no such block device.*: sda, sdb$"):
        top.sources_of(["sdx"], made.root)
    changed(made)
    with pytest.raises(UsageError, match=r"^no disk of this machine is scheduled by stream; name"):
        top.sources_of([], made.root)


# ---- once ----


def test_once(
    made: MadeDisk, trace: type[MadeTrace], clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def passes(seconds: float) -> None:
        clock[0] += seconds
        made.works()

    monkeypatch.setattr(time, "sleep", passes)
    seen = top.once(top.sources_of([], made.root))
    data = json.loads(observe.as_json(seen))
    assert data["version"] == 1 and len(data["disks"]) == 1
    assert data["disks"][0]["seconds"] == 1.0 and len(data["disks"][0]["rows"]) == 3
    text = top.as_table(seen).splitlines()
    assert max(map(len, text)) <= 80
    assert text[0] == "sda  stream (deadline)  19.7 MB/s  300 requests/s  queue 2  pending 0"
    assert text[3].rstrip() == top.HEADING
    assert text[4] == ">  102.4 GB  stream          6.5       100.0    33%       -"


def test_once_without_anything_to_see(made: MadeDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    sources = top.sources_of(["sda"], made.root)
    changed(made)
    with pytest.raises(StreamschedError, match=r"^sda: its scheduler is mq-deadline, not stream$"):
        top.once(sources)


def test_what_does_not_go_together() -> None:
    done = CliRunner().invoke(app, ["top", "--output", "json"])
    assert str(done.exception) == "--output json: goes with --once"
    for interval in ("0", "nan", "inf"):
        done = CliRunner().invoke(app, ["top", "--once", "--interval", interval])
        assert f"--interval {interval}: is not within 0.1 to 3600" in str(done.exception)


def test_without_textual_it_says_so(made: MadeDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(top, "sources_of", lambda _names: [])
    monkeypatch.delitem(sys.modules, "streamsched.watch.top_screen", raising=False)
    monkeypatch.delattr("streamsched.watch.top_screen", raising=False)
    monkeypatch.setitem(sys.modules, "textual.app", None)
    says = f"top's screen needs Textual: {install('top')}; --once does without it"
    with pytest.raises(UsageError, match=f"^{re.escape(says)}$"):
        app(["top"], standalone_mode=False)


def test_what_is_missing_is_installed_into_this_python() -> None:
    """`pip` alone may belong to another Python, which would miss it still."""
    pip, *rest = shlex.split(install("top"))
    assert rest == ["install", "streamsched[top]"]
    if "/" in pip:
        assert Path(pip).parent == Path(sys.executable).parent
    else:
        assert sys.prefix == sys.base_prefix


def test_a_distributions_package_sends_nobody_to_its_pip(root: Path) -> None:
    """pip adds nothing to what /usr/bin/streamsched runs, and finds no streamsched to extend."""
    script = "from streamsched.base.errors import install; print(install('top'))"
    done = ran(sys.executable, "-I", "-c", script, check=True)
    said = "in the source tree, make install && .venv/bin/pip install 'streamsched[top]'\n"
    assert done.stdout == said
    assert (root / "packaging/streamsched.in").read_text().startswith("#!/usr/bin/python3 -I\n")


# ---- the network server ----


def metrics(requests: int, of_connection: int, waits: int = 0) -> str:
    """As nbdkit/stats.c writes them, in short."""
    lines = ["# HELP streamsched_requests_total Requests done."]
    for member in "01":
        lines += [
            f'streamsched_requests_total{{member="{member}",direction="read"}} {requests}',
            f'streamsched_bytes_total{{member="{member}",direction="read"}} {requests * 65536}',
            f'streamsched_waits_total{{member="{member}"}} {waits}',
            f'streamsched_idle_seconds_total{{member="{member}"}} 0.5',
        ]
    for name, number in (("0", 50), ("7", of_connection)):
        lines += [
            f'streamsched_connection_requests_total{{connection="{name}",direction="read"}} '
            f"{number}",
            f'streamsched_connection_bytes_total{{connection="{name}",direction="read"}} '
            f"{number * 65536}",
            *(
                f'streamsched_connection_wait_seconds_bucket{{connection="{name}",le="{le}"}} {n}'
                for le, n in (("0.001024", number // 2), ("0.002048", number), ("+Inf", number))
            ),
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[float, str], Path]]:
    path = tmp_path / "nbd.prom"

    def write(when: float, text: str) -> Path:
        path.write_text(text)
        os.utime(path, (when, when))
        return path

    yield write


def passing(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Both clocks, which only sleep() moves."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: 1000 + now[0])
    monkeypatch.setattr(time, "sleep", lambda s: now.__setitem__(0, now[0] + s))
    return now


def test_a_network_server(
    served: Callable[[float, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = passing(monkeypatch)
    path = served(1000, metrics(1000, 1000))
    sources = observe_nbd.sources_of(path)
    assert [one.name for one in sources] == ["nbd.prom 0", "nbd.prom 1"]
    assert [one.look() for one in sources] == [None, None]
    now[0] = 10
    served(1010, metrics(2000, 3000, waits=50))
    for source in sources:
        seen = source.look()
        assert seen and (seen.requests_s, seen.mb_s, seen.waits_s) == (100, 6.55, 5)
        (row,) = seen.rows
        assert (row.kind, row.requests_s, row.share) == ("conn 7", 200, 1)
        assert row.wait_p99_ms == 2.048
        assert source.look() is None
    path.unlink()
    gone = sources[0].look()
    assert gone and gone.trouble == f"{path}: cannot read it: No such file or directory"


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(StreamschedError, match=r"/a: cannot read it: No such file"):
        observe_nbd.sources_of(path)
    path.write_text("node_load1 0.5\n")
    with pytest.raises(UsageError, match=r"/a: is no file of the network server's metrics=; name"):
        observe_nbd.sources_of(path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('x_total{member="0"} abc', "x_total 'abc' is no number"),
        ('x_total{member="0"} nan', "x_total nan is no count"),
        ('x_total{member="0"} -1', "x_total -1 is no count"),
        ('x_total{member="0"} 1e400', "x_total 1e400 is no count"),
        ('x_total{member="0"}', "is not a metric with its number"),
        ('x_total{member="0"', "is not a metric with its number"),
        ('x_total{member="\x1b[2J"} 1', "member '\\x1b[2J' is no number"),
        ('x_total{connection="x"} 1', "connection 'x' is no number"),
        ('x_bucket{connection="7"} 1', "le '' is no number"),
        ('x_bucket{connection="7",le="more"} 1', "le 'more' is no number"),
    ],
)
def test_a_line_that_the_server_cannot_have_written(
    line: str, says: str, served: Callable[[float, str], Path]
) -> None:
    bad = metrics(1, 1) + f"streamsched_{line}\n"
    number = bad.count("\n")
    path = served(1000, bad)
    with pytest.raises(UsageError) as refused:
        observe_nbd.sources_of(path)
    assert str(refused.value) == (
        f"{path}: line {number}: {says}; the network server writes no such line"
    )
    # When it comes later it is said, and it may end.
    (source, _) = observe_nbd.sources_of(served(1000, metrics(1, 1)))
    served(1001, bad)
    seen = source.look()
    assert seen and seen.trouble == str(refused.value)
    served(1002, metrics(101, 1))
    seen = source.look()
    assert seen and seen.requests_s == 50


def test_what_is_no_file_of_a_server(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "bytes").write_bytes(b"streamsched_\xff 1\n")
    for path in (tmp_path, tmp_path / "fifo", tmp_path / "bytes", Path("/dev/zero")):
        with pytest.raises(UsageError, match=f"^{path}: is no file of the network server's metr"):
            observe_nbd.sources_of(path)


def test_a_file_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.touch()
    os.truncate(path, MOST_BYTES + 1)
    with pytest.raises(UsageError, match=f"^{path}: cannot read it: it has more than"):
        observe_nbd.sources_of(path)


def test_which_names_are_files(
    made: MadeDisk, served: Callable[[float, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/guide/NBDKIT.md writes it, without a folder."""
    path = served(1000, metrics(1, 1))
    monkeypatch.chdir(path.parent)
    for name in ("nbd.prom", "./nbd.prom", str(path)):
        assert [one.name for one in top.sources_of([name], made.root)] == [
            "nbd.prom 0",
            "nbd.prom 1",
        ]
    path.rename("metrics")
    assert len(top.sources_of(["metrics"], made.root)) == 2
    Path("metrics").rename("sda")  # the disk is meant
    assert [one.name for one in top.sources_of(["sda"], made.root)] == ["sda"]
    with pytest.raises(StreamschedError, match=r"^nbd\.prom: cannot read it: No such file"):
        top.sources_of(["nbd.prom"], made.root)


def test_a_server_that_writes_nothing(
    served: Callable[[float, str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = passing(monkeypatch)
    path = served(1000, metrics(1, 1))
    says = rf"^{path}: was last written \d+ s ago; is the server running, with metrics-int"
    with pytest.raises(StreamschedError, match=says.replace(r"\d+", "16")):
        top.once(top.sources_of([str(path)]))
    assert now[0] == 16
    note = "streamsched: note: nbd.prom 0: nothing new yet; waiting for it\n"
    assert capsys.readouterr().err == note
    # One that ended before is not waited for.
    with pytest.raises(StreamschedError, match=says):
        top.once(top.sources_of([str(path)]))
    assert now[0] == 17 and not capsys.readouterr().err


def test_a_server_that_ends_and_begins_anew(
    served: Callable[[float, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = passing(monkeypatch)
    (source, _) = observe_nbd.sources_of(served(1000, metrics(1, 1)))
    for step in range(1, 4):  # one that writes once in a minute is not late after 100 s
        now[0] = 60.0 * step
        served(1000 + now[0], metrics(1 + 600 * step, 1))
        seen = source.look()
        assert seen and not seen.trouble and seen.requests_s == 10
        now[0] += 45
        assert source.look() is None
    now[0] = 400.0
    seen = source.look()
    assert seen and seen.trouble and "was last written 220 s ago; is the server" in seen.trouble
    served(1400, metrics(5, 5))  # its counters begin at 0
    assert source.look() is None
    served(1410, metrics(105, 5))
    seen = source.look()
    assert seen and seen.requests_s == 10


def test_a_file_that_is_older_than_the_last_is_a_first_look(
    served: Callable[[float, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    passing(monkeypatch)
    (source, _) = observe_nbd.sources_of(served(1000, metrics(1, 1)))
    served(995, metrics(101, 1))
    assert source.look() is None
    served(1000, metrics(151, 1))
    seen = source.look()
    assert seen and (seen.seconds, seen.requests_s) == (5, 10)


def test_files_of_one_name_in_two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = passing(monkeypatch)
    paths = [tmp_path / folder / "nbd.prom" for folder in "ab"]

    def write(seconds: float) -> None:
        now[0] += seconds
        for number, path in enumerate(paths, 1):
            path.parent.mkdir(exist_ok=True)
            path.write_text(metrics(1 + int(100 * number * now[0]), 1))
            os.utime(path, (1000 + now[0], 1000 + now[0]))

    write(0)
    sources = top.sources_of([str(path) for path in paths])
    monkeypatch.setattr(time, "sleep", write)
    assert [seen.requests_s for seen in top.once(sources)] == [100, 100, 200, 200]


# ---- the strip ----


def test_the_heads_path() -> None:
    gb = 10**9 // 512
    path = tuple((float(t), (t % 2) * 499 * gb) for t in range(100))
    seen = Observation("sda", "stream", None, size_bytes=500 * 10**9, path=path)
    lines = top.strip(seen, 80)
    assert len(lines) == top.STRIP_HEIGHT and {len(line) for line in lines} == {80}
    assert lines[0].startswith(" 500.0 GB ") and lines[-1].startswith("        0 ")
    assert [sum(c > "\u2800" for c in line) for line in lines] == [8, 0, 0, 7]
    assert top.strip(Observation("sda", "stream", None), 80)[0][10:] == "\u2800" * 70


# ---- the screen ----


def need_textual() -> None:
    pytest.importorskip("textual", reason="Textual is missing: pip install 'streamsched[top]'")


def on_screen(app_: object) -> list[str]:
    """The text on it, line by line."""
    from textual.app import App

    assert isinstance(app_, App)
    return [strip.text.rstrip() for strip in app_.screen._compositor.render_strips()]


async def until(pilot: Any, holds: Callable[[], bool]) -> None:
    """Until it is so, however busy the machine is."""
    for _ in range(200):
        if holds():
            return
        await pilot.pause(0.05)
    assert holds()


def test_the_screen(made: MadeDisk, trace: type[MadeTrace]) -> None:
    need_textual()
    from streamsched.watch.top_screen import TopApp

    made.parties = [MadeParty(n, 10_000_000 * (n + 1), sent=100 + n) for n in range(64)]
    made.flush()
    other = MadeDisk(made.root, "sdb", "8:16")
    screen = TopApp(top.sources_of([], made.root), interval_s=1000)

    async def play() -> None:
        async with screen.run_test(size=(80, 24)) as pilot:
            assert "sda: looking ..." in on_screen(screen)[0]
            time.sleep(0.01)
            made.works()
            made.parties[5].sent += 1000
            made.flush()
            trace.put = [trace.chosen(5 + n / 10, 9_000_000 * n, 0) for n in range(100)]
            screen.look()
            words = ("quit", "sort", "reverse", "pause", "disk")
            # On a busy machine the last line is drawn some moments later.
            await until(pilot, lambda: all(word in on_screen(screen)[23] for word in words))
            lines = on_screen(screen)
            assert len(lines) == 24 and max(map(len, lines)) <= 80
            assert lines[0].startswith("sda  stream (deadline)  ") and "by place [1/2]" in lines[2]
            assert lines[7].split()[:3] == ["place", "kind", "MB/s"]
            assert lines[8].lstrip().startswith("5.1 GB  stream") and "own 100%" in lines[8]
            await pilot.press("end")
            await pilot.pause(0.5)
            assert any(line.lstrip().startswith("327.7 GB") for line in on_screen(screen)[8:23])
            await pilot.press("home", "s", "s")
            await pilot.pause(0.5)
            lines = on_screen(screen)
            assert "by requests/s" in lines[2] and lines[8].lstrip().startswith("30.7 GB")
            await pilot.press("r")
            await pilot.pause()
            assert not on_screen(screen)[8].lstrip().startswith("30.7 GB")
            await pilot.press("space")
            before = on_screen(screen)
            assert "PAUSED" in before[2]
            made.works()
            screen.look()
            await pilot.press("r", "r")
            await pilot.pause()
            assert on_screen(screen)[:20] == before[:20]
            await pilot.press("p", "d")
            await pilot.pause()
            assert on_screen(screen)[0].startswith("sdb") and "[2/2]" in on_screen(screen)[2]
            shutil.rmtree(other.folder)
            screen.look()
            await pilot.pause()
            assert on_screen(screen)[0] == "sdb: the disk is gone"
            await pilot.press("q")
        assert not screen.is_running

    asyncio.run(play())


def test_a_narrow_screen_is_no_crash(made: MadeDisk, trace: type[MadeTrace]) -> None:
    need_textual()
    from streamsched.watch.top_screen import TopApp

    screen = TopApp(top.sources_of([], made.root), interval_s=1000)

    async def play() -> None:
        async with screen.run_test(size=(9, 6)) as pilot:
            time.sleep(0.01)
            made.works()
            trace.put = [trace.chosen(5, 9_000_000, 0)]
            screen.look()
            await pilot.resize_terminal(200, 60)
            await pilot.pause()
            assert len(on_screen(screen)) == 60

    asyncio.run(play())


def test_a_signal_leaves_the_terminal_as_it_was(
    made: MadeDisk, trace: type[MadeTrace], tmp_path: Path
) -> None:
    """On a terminal of its own, with the signals handled as the command does."""
    need_textual()
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from pathlib import Path\n"
        "from streamsched.cli import main as cli\nfrom streamsched.watch import observe, top\n"
        "import watch_data\n"
        "watch_data.MadeTrace.put = []\n"
        "observe.Instance = watch_data.MadeTrace\n"
        "real = top.sources_of\n"
        f"top.sources_of = lambda names: real(names, Path({str(made.root)!r}))\n"
        "sys.argv = ['streamsched', 'top']\n"
        "cli.main()\n"
    )
    pid, terminal = pty.fork()
    if not pid:
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, "-P", "-c", code])
    before, shown = termios.tcgetattr(terminal), b""
    with contextlib.suppress(OSError):  # its end is an error here
        while data := os.read(terminal, 1 << 16):
            if b"looking" in data and b"looking" not in shown:
                os.kill(pid, signal.SIGTERM)
            shown += data
            after = termios.tcgetattr(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 143, shown[-3000:]
    assert after == before, "modes of the terminal"
    assert shown.rindex(b"\x1b[?1049l") > shown.rindex(b"\x1b[?1049h"), "the screen before"
    assert b"Traceback" not in shown
    os.close(terminal)


def test_names_of_disks(made: MadeDisk) -> None:
    for name in ("loop0", "dm-0", "md0"):
        MadeDisk(made.root, name)
    assert watch.disk_names(made.root) == ["sda"]


def test_waits_that_paid_and_waits_in_vain(
    made: MadeDisk, trace: type[MadeTrace], clock: list[float]
) -> None:
    source = source_of(made)
    source.look()
    for name, number in (("waits", 20), ("hits", 14), ("timeouts", 4)):
        made.counters[name] += number
    made.flush()
    seen = seen_after(source, clock)
    assert (seen.waits_s, seen.paid_s, seen.in_vain_s) == (10, 7, 2)
