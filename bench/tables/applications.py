# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/results/applications.md: real programs under each scheduler of the kernel.

Two greps, four ProFTPD clients, four PostMarks, three PostgreSQL servers with TPC-H's query 19; in
the rig, on ext4 on an emulated disk, straight (each scheduler sees who sends a request) and through
a loop device (nobody does).

The programs and the sizes of their data follow Xu and Jiang (FAST 2011, sections 3.3 and 3.4);
docs/research/APPLICATIONS.md says where they differ.
"""

from __future__ import annotations

import gzip
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from streamsched.base.errors import StreamschedError
from streamsched.hosts import rig
from streamsched.hosts.kernelhost import KernelPolicy, parse_policies
from tables.common import Rigs, Row, Table, asked, document, lines_in, write_into
from tables.machine import command
from tables.programs import Cell, Inside, Need, Program, program_cell, shell

# Commands in the disk at once, and the path: all that the disk can; and one, so that only the
# scheduler has a choice, with owners hidden, as in the paper's Figure 3.
CONDITIONS = ((32, "direct"), (32, "loop"), (1, "loop"))
POLICIES = "none,mq-deadline,bfq,anticipatory,cfq,stream"
OWNERS = {"direct": "visible", "loop": "hidden"}
# Megabytes of each of the four files that clients fetch.
FTP_MB = 100
# Of each PostMark.
POSTMARK_FILES = 10_000
POSTMARK_TRANSACTIONS = 1000
# TPC-H's scale factor: 1 is 1 GB of text.
TPCH_SCALE = 0.25
# Of the block trace.
TRACE_KIB = 40_000

GREP = Need("grep", "grep")
CURL = Need("curl", "curl")
PROFTPD = Need("proftpd", "proftpd-core")
POSTMARK = Need("postmark", "postmark", ())
POSTGRES = Need("postgres", "postgresql")
PSQL = Need("psql", "postgresql-client")
DMSETUP = Need("dmsetup", "dmsetup", None)
SETPRIV = Need("setpriv", "util-linux", None)


def greps() -> Program:
    """Two greps for words that are nowhere, each through its own copy of a source tree."""
    return Program(
        "Two greps over a source tree",
        "both",
        "prepare_greps",
        "grep_both /run/fs/1/tree /run/fs/2/tree",
        needs=(GREP, DMSETUP),
    )


def ftp(file_mb: int = FTP_MB) -> Program:
    """Four clients, each of which fetches a file of @file_mb from one ProFTPD."""
    return Program(
        "ProFTPD, four clients",
        "all four files",
        "prepare_ftp",
        "work_ftp",
        needs=(PROFTPD, CURL, DMSETUP),
        inside=lambda: ({"FTP_MB": str(file_mb)}, ()),
        least_read=4 * file_mb * 1_000_000,
        memory_mb=8 * file_mb + 300,
        disk_mb=4 * file_mb + 50,
        trace_kib=TRACE_KIB,
    )


def postmark(files: int = POSTMARK_FILES, transactions: int = POSTMARK_TRANSACTIONS) -> Program:
    """Four PostMarks, each with @files of 500 bytes to 10 KB in a directory of its own."""

    def inside() -> Inside:
        pause = rig.compiled("postmark-pause.c", "-shared", "-fPIC")
        return {"PAUSE": str(pause), "FILES": str(files), "TRANSACTIONS": str(transactions)}, ()

    # A file has 7 KB on average, for its blocks are of 4 KiB; what was deleted stays on the disk.
    data_mb = 4 * (files + transactions) * 12 // 1000
    return Program(
        "PostMark, four at once",
        "all four",
        "prepare_postmark",
        "work_postmark",
        needs=(POSTMARK, DMSETUP),
        inside=inside,
        # A transaction in two reads a file, one appends to it.
        least_read=4 * transactions * 4096,
        memory_mb=data_mb + 150,
        disk_mb=data_mb,
        trace_kib=TRACE_KIB,
    )


def _tpchgen() -> Path:
    beside = Path(sys.executable).parent / "tpchgen-cli"
    found = beside if beside.exists() else shutil.which("tpchgen-cli")
    if not found:
        raise StreamschedError(
            "tpchgen-cli, which makes TPC-H's data, is missing: `pip install tpchgen-cli` "
            "(Debian has no package of it)"
        )
    return Path(found)


def tpch_data(scale: float = TPCH_SCALE) -> Path:
    """A folder with data.tar.gz, a cluster of PostgreSQL with the tables of query 19, and revenue.

    Made in the rig, where time and random numbers are always the same, and kept.
    """
    generator = _tpchgen()
    folder = POSTGRES.path().parent
    versions = (POSTGRES.tells(), Need(str(generator), "").tells())
    wanted = rig.content_hash(shell({}, "tpc-h.sh"), str(scale), *versions)
    target = rig.cache().parent / "applications" / f"tpch-{wanted}"
    if target.is_dir():
        return target
    with rig.made_whole(target) as new:
        text = new / "text"
        options = (f"--scale-factor={scale}", "--tables=lineitem,part", "-o", text)
        command(generator, "csv", *options, what="tpchgen-cli")
        result = rig.run_in_rig(
            shell({}, "tpc-h.sh", call="load_tpc_h"),
            environment={"BIN": str(folder), "TEXT": str(text)},
            show=[text, folder],
            modules=False,
            memory_mb=600 + int(2000 * scale),
            timeout_s=900,
        )
        revenue = result.files.get("revenue", b"").decode().strip()
        if result.status != 0 or not re.fullmatch(r"\d+\.\d+", revenue):
            last = " | ".join((result.stdout + result.stderr).strip().splitlines()[-5:])
            raise StreamschedError(f"PostgreSQL could not load TPC-H's tables in the rig: {last}")
        shutil.rmtree(text)
        (new / "revenue").write_text(revenue + "\n")
        with gzip.open(new / "data.tar.gz", "wb", compresslevel=1) as packed:
            packed.write(result.files["data.tar"])
    return target


def tpch(scale: float = TPCH_SCALE) -> Program:
    """Three servers with a database each, and query 19 in each, by one process."""

    def inside() -> Inside:
        data, binaries = tpch_data(scale), POSTGRES.path().parent
        variables = {
            "DATA": str(data / "data.tar.gz"),
            "REVENUE": (data / "revenue").read_text().strip(),
            "BIN": str(binaries),
        }
        return variables, (data, binaries)

    data_mb = 100 + int(1000 * scale)  # of a cluster
    return Program(
        "PostgreSQL, three servers, TPC-H query 19",
        "all three",
        "prepare_tpc_h",
        "work_tpc_h",
        needs=(POSTGRES, PSQL, SETPRIV, DMSETUP),
        inside=inside,
        least_read=int(3 * 0.8e9 * scale),
        memory_mb=4 * data_mb + 500,
        disk_mb=3 * data_mb + 50,
        trace_kib=TRACE_KIB,
    )


PROGRAMS = {"greps": greps(), "ftp": ftp(), "postmark": postmark(), "tpc-h": tpch()}


def cells_of(
    name: str,
    program: Program,
    rigs: Rigs,
    policies: str = POLICIES,
    conditions: Sequence[tuple[int, str]] = CONDITIONS,
) -> list[Cell]:
    """One program with each queue depth and path, under each scheduler."""
    inside = program.inside()

    def one(wanted: tuple[int, str, KernelPolicy]) -> Cell:
        depth, path, policy = wanted
        cell = program_cell(name, program, path, policy, inside, depth)
        rigs.progress.console.print(
            f"{name}, {depth} commands, owners {OWNERS[path]}, {cell.policy}: {cell.seconds:.2f} s"
        )
        return cell

    each = [(*where, policy) for where in conditions for policy in parse_policies(policies)]
    return list(rigs.each(one, each))


def table_of(name: str) -> Table:
    """One program's table, with what it is measured with."""
    program = PROGRAMS[name]
    told = [need.tells() for need in program.needs if need.version is not None]
    return Table(
        name,
        ("commands", "owners", "scheduler"),
        (f"{program.foreground}, s", "times as fast as none", "disk MB/s", "p99 ms", "longest ms"),
        [(str(d), OWNERS[path], one) for d, path in CONDITIONS for one in POLICIES.split(",")],
        (f"Measured with {', '.join(told)}.", ""),
    )


def rows_of(cells: Sequence[Cell]) -> list[Row]:
    """Of one program's table."""
    base = {(c.queue_depth, c.path): c.seconds for c in cells if c.policy == "none"}
    return [
        (
            str(cell.queue_depth),
            OWNERS[cell.path],
            cell.policy,
            f"{cell.seconds:.2f}",
            f"{base[cell.queue_depth, cell.path] / cell.seconds:.2f}",
            *(f"{figure:.1f}" for figure in (cell.mb_s, cell.p99_ms, cell.longest_ms)),
        )
        for cell in cells
    ]


def cells_in(text: str) -> list[Cell]:
    """What the document with this @text has measured."""
    paths = {owners: path for path, owners in OWNERS.items()}
    found = []
    for name in PROGRAMS:
        for line in lines_in(text, name):
            row = re.fullmatch(r"\| (\d+) \| (\w+) \| (\S+) \|((?: [\d.]+ \|){5})", line)
            if row:
                seconds, _, mb_s, p99, longest = map(float, row[4].replace("|", "").split())
                path, depth = paths[row[2]], int(row[1])
                found.append(
                    Cell(name, path, row[3], mb_s, None, seconds, p99, longest, None, depth)
                )
    return found


def measure(words: Sequence[str]) -> None:
    """The programs that are named (nothing: all); each table when it is done."""
    (names,), at_once = asked("applications", words, ("program", PROGRAMS))
    for name in names:
        PROGRAMS[name].check()
    runs = len(names) * len(CONDITIONS) * len(POLICIES.split(","))
    rigs = Rigs(at_once, "applications", runs)
    with rigs.progress:
        for name in names:
            rows = rows_of(cells_of(name, PROGRAMS[name], rigs))
            write_into(document("applications"), table_of(name), rows)
