# SPDX-License-Identifier: GPL-2.0-only
"""What tests of reports share: a job, the command, the figures that a page holds."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path
from typing import Any

from said import COMMAND, ROOT, ran

from streamsched.sim.resultfile import load_results

TRACE = ROOT / "traces" / "grep-twice.blktrace.zst"
POLICIES = "noop,deadline,stream:deadline"
# A name that is HTML, and one that would end a script.
JOB = """\
[<b>a</b> & </script>]
rw=read
bs=64k
size=8m
offset_increment=100g
numjobs=2
filename=disk
[r]
rw=randwrite
direct=1
bs=4k
size=512k
filename=disk
"""
SECONDS = 120
# One command in the disk, senders seen: what is served in which order follows from the dispatches.
PAPERS = ("--disk", "wd5000aaks", "--owners", "process", "--queue-depth", "1")


def streamsched(*words: object, fails: bool = False) -> str:
    done = ran(COMMAND, *words, timeout=SECONDS)
    assert (done.returncode != 0) == fails, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if fails else done.stdout


def document(made: Path) -> dict[str, Any]:
    return load_results(made / "plus.json")[0]


def rows(made: Path) -> dict[str, list[dict[str, str]]]:
    """The rows that --requests wrote, by policy."""
    found: dict[str, list[dict[str, str]]] = {}
    with (made / "rows.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["policy"], []).append(row)
    return found


def drawn(page: Path) -> dict[str, list[Any]]:
    """The figures that a page holds, by panel, as the library is given them."""
    text = page.read_text()
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text)
    assert found
    figures = json.loads(found[1])
    by: dict[str, list[Any]] = {}
    for title, body in re.findall(r"<h3>(.*?)</h3>(.*?)</section>", text, re.DOTALL):
        for number in re.findall(r'id="figure-(\d+)"', body):
            by.setdefault(html.unescape(title), []).append(figures[int(number)])
    return by
