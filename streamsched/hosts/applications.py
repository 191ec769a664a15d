# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/results/applications.md: real programs under each scheduler of the kernel.

`make results WHAT=applications` measures all programs. `python -m streamsched.hosts.applications`
measures those that are named:
two greps, four ProFTPD clients, four PostMarks, three PostgreSQL servers with
TPC-H's query 19; in the rig, on ext4 on an emulated disk, straight (each scheduler sees who
sends a request) and through a loop device (nobody does). Each table is written when it is done.

The programs and the sizes of their data follow Xu and Jiang (FAST 2011, sections 3.3 and 3.4);
docs/APPLICATIONS.md says where they differ.
"""

from __future__ import annotations

import dataclasses
import gzip
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from streamsched.base.errors import StreamschedError, exit_code_of, unknown
from streamsched.base.files import Target, write_whole
from streamsched.base.progress import counted
from streamsched.hosts import rig
from streamsched.hosts.kernelhost import KernelPolicy, parse_policies
from streamsched.hosts.kerneltable import (
    DISK,
    END_TIMED,
    TIMED,
    Cell,
    Program,
    marks,
    program_cell,
    source_tree,
    with_rows,
)
from streamsched.sim.diskfile import load_disk

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
# From the beginning of a data set to that of the next: 50 GB; in whole MiB.
GAP_SECTORS = 50_000_000_000 // (1 << 20) * 2048
VOLUME_SECTORS = 40_000_000_000 // (1 << 20) * 2048
DEBIAN_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


@dataclasses.dataclass(frozen=True)
class Need:
    """A program of this machine, which the rig runs."""

    program: str
    package: str  # Debian's
    # Arguments that make it tell its version; None: it does not matter for what is measured.
    version: tuple[str, ...] | None

    def path(self) -> Path:
        """Where it is; an error that names the package when it is missing."""
        search = ":".join([*(str(path.parent) for path in _postgres_programs()), *DEBIAN_SBIN])
        found = shutil.which(self.program) or shutil.which(self.program, path=search)
        if not found:
            raise StreamschedError(
                f"{self.program} is missing: install the Debian package {self.package}"
            )
        return Path(found)

    def tells(self) -> str:
        """Its name and version, in its own words."""
        done = subprocess.run(
            [self.path(), *(self.version or ())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        said = (done.stdout + done.stderr).strip()
        told = re.match(r".*?\d+\.[\d.]*\d", said)
        return told[0] if told else self.program


def _postgres_programs() -> list[Path]:
    """Debian keeps each version's programs in a folder of its own; the newest first."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    return sorted(found, key=lambda path: float(path.parts[-3]), reverse=True)


GREP = Need("grep", "grep", ("--version",))
CURL = Need("curl", "curl", ("--version",))
PROFTPD = Need("proftpd", "proftpd-core", ("--version",))
POSTMARK = Need("postmark", "postmark", ())
POSTGRES = Need("postgres", "postgresql", ("--version",))
PSQL = Need("psql", "postgresql-client", ("--version",))
DMSETUP = Need("dmsetup", "dmsetup", None)
SETPRIV = Need("setpriv", "util-linux", None)


@dataclasses.dataclass(frozen=True)
class Application:
    """Real programs, what they need of this machine, and how they are run."""

    program: Program
    needs: tuple[Need, ...]
    # Shell variables for the preparation, and folders that the rig must show for it.
    set_up: Callable[[], tuple[dict[str, str], list[Path]]] = lambda: ({}, [])
    conditions: tuple[tuple[int, str], ...] = CONDITIONS

    def check(self) -> None:
        """Refuse when a program is missing."""
        for need in self.needs:
            need.path()


# Data sets lie 50 GB apart, as the paper's do. In one file system they would not: ext4 puts large
# files, and small ones that are written at about the same time, next to each other wherever their
# directories are (fs/ext4/mballoc.c). So each is in a volume of its own, as LVM makes them, which
# leaves requests with whoever sent them.
_VOLUMES = f"""
mount_volumes() {{
	local volume

	for volume in /dev/mapper/data*; do
		mount -o noinit_itable "$volume" "/run/fs/${{volume#*data}}" || exit 1
	done
}}
make_volumes() {{ # NUMBER; APART times as far from each other as said above
	local i

	for i in $(seq "$1"); do
		echo "0 {VOLUME_SECTORS} linear $DEV $(((i - 1) * {GAP_SECTORS} * ${{APART:-1}}))" |
			dmsetup create --noudevsync "data$i" && dmsetup mknodes &&
			mkfs.ext4 -q -E nodiscard -J size=64 "/dev/mapper/data$i" &&
			mkdir -p "/run/fs/$i" || exit 1
	done
	mount_volumes
}}
# Nothing of what is read may be in the page cache.
forget() {{
	umount /run/fs/* && mount_volumes
	forget_pages
}}
forget_pages() {{
	sync
	echo 3 >/proc/sys/vm/drop_caches
}}
"""


# ---- grep ----


def greps() -> Application:
    """Two greps for words that are nowhere, each through its own copy of a source tree."""
    prepare = """
make_volumes 2
cp -r "$TREE" /run/fs/1/tree && cp -r "$TREE" /run/fs/2/tree || exit 1
forget
"""
    work = (
        TIMED
        + """
grep -r "no such words" /run/fs/1/tree &
first=$!
grep -r "no such words" /run/fs/2/tree &
second=$!
wait $first; first=$?
wait $second; second=$?
"""
        + END_TIMED
        + """
# 1: nothing was found; 2: something could not be read.
[ $first = 1 ] && [ $second = 1 ]
"""
    )
    return Application(
        Program("Two greps over a source tree", _VOLUMES + prepare, work, "both"),
        (GREP, DMSETUP),
        lambda: ({"TREE": str(source_tree())}, []),
    )


# ---- ProFTPD ----

PROFTPD_CONF = """\
ServerName rig
ServerType standalone
DefaultServer on
DefaultAddress 127.0.0.1
Port 2121
UseIPv6 off
UseReverseDNS off
UseFtpUsers off
User nobody
Group nogroup
PidFile /run/proftpd/pid
ScoreboardFile /run/proftpd/scoreboard
SystemLog /run/proftpd/log
DelayTable none
WtmpLog off
TransferLog none
<Anonymous /run/fs>
User nobody
Group nogroup
UserAlias anonymous nobody
RequireValidShell off
</Anonymous>
"""


def ftp(file_mb: int = FTP_MB) -> Application:
    """Four clients, each of which fetches a file of @file_mb from one ProFTPD."""
    prepare = f"""
make_volumes 4
head -c {file_mb}M /dev/zero | tr '\\0' x >/run/fs/1/file || exit 1
for i in 2 3 4; do
	cp /run/fs/1/file "/run/fs/$i/file" || exit 1
done
forget
mkdir -m 755 /run/proftpd && cat >/run/proftpd/conf <<'EOF' || exit 1
{PROFTPD_CONF}EOF
proftpd -c /run/proftpd/conf || exit 1
curl -sS -l --retry 5 --retry-connrefused -o /run/proftpd/list ftp://127.0.0.1:2121/ &&
	grep -qx 4 /run/proftpd/list || exit 1
forget_pages
"""
    work = (
        TIMED
        + """
for i in 1 2 3 4; do
	curl -sS -o /dev/null -w '%{size_download}\\n' "ftp://127.0.0.1:2121/$i/file" \\
		>"/run/proftpd/got$i" &
done
wait
"""
        + END_TIMED
        + f"""
for i in 1 2 3 4; do
	[ "$(cat "/run/proftpd/got$i")" = {file_mb << 20} ] || {{
		echo "client $i did not get all of its file" >&2
		exit 1
	}}
done
"""
    )
    return Application(
        Program(
            "ProFTPD, four clients",
            _VOLUMES + prepare,
            work,
            "all four files",
            least_read=4 * file_mb * 1_000_000,
            memory_mb=8 * file_mb + 300,
            disk_mb=4 * file_mb + 50,
            trace_kib=40_000,
        ),
        (PROFTPD, CURL, DMSETUP),
    )


# ---- PostMark ----


def postmark(files: int = POSTMARK_FILES, transactions: int = POSTMARK_TRANSACTIONS) -> Application:
    """Four PostMarks, each with @files of 500 bytes to 10 KB in a directory of its own.

    Computing takes no time in the rig, and nobody is interrupted: whoever need not wait for the
    disk would have done all of its work before the next one begins. So they must wait when 8 MB
    are not yet written.

    The rig has less memory for the page cache than the files need, and which of them stay there
    would be chance. So all wait until everybody's files are there, and then none is in it.
    """
    prepare = f"""
cp "$PAUSE" /run/postmark-pause.so || exit 1
echo 4000000 >/proc/sys/vm/dirty_background_bytes
echo 8000000 >/proc/sys/vm/dirty_bytes
make_volumes 4
for i in 1 2 3 4; do
	mkdir "/run/fs/$i/mail" || exit 1
	printf '%s\\n' "set location /run/fs/$i/mail" 'set number {files}' 'set size 500 10000' \\
		'set transactions {transactions}' "set seed $i" run quit >"/run/mail$i"
done
forget
"""
    work = (
        TIMED
        + """
mkfifo /run/created /run/go && exec 3<>/run/created 4<>/run/go || exit 1
for i in 1 2 3 4; do
	LD_PRELOAD=/run/postmark-pause.so postmark "/run/mail$i" >"/run/said$i" 2>&1 &
done
for i in 1 2 3 4; do
	read -r <&3
done
sync
echo 3 >/proc/sys/vm/drop_caches
printf '\\n\\n\\n\\n' >&4
wait
"""
        + END_TIMED
        + """
for i in 1 2 3 4; do
	! grep -m 1 Error "/run/said$i" >&2 || exit 1
	grep -q 'megabytes written' "/run/said$i" || exit 1
done
"""
    )
    # A file has 7 KB on average, for its blocks are of 4 KiB; what was deleted stays on the disk.
    data_mb = 4 * (files + transactions) * 12 // 1000
    return Application(
        Program(
            "PostMark, four at once",
            _VOLUMES + prepare,
            work,
            "all four",
            # A transaction in two reads a file, one appends to it.
            least_read=4 * transactions * 4096,
            memory_mb=data_mb + 150,
            disk_mb=data_mb,
            trace_kib=40_000,
        ),
        (POSTMARK, DMSETUP),
        lambda: ({"PAUSE": str(rig.compiled("postmark-pause.c", "-shared", "-fPIC"))}, []),
    )


# ---- PostgreSQL ----

TPCH_TABLES = """\
BEGIN;
CREATE TABLE part (
	p_partkey integer NOT NULL, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL,
	p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size integer NOT NULL,
	p_container char(10) NOT NULL, p_retailprice numeric(15, 2) NOT NULL,
	p_comment varchar(23) NOT NULL);
CREATE TABLE lineitem (
	l_orderkey bigint NOT NULL, l_partkey integer NOT NULL, l_suppkey integer NOT NULL,
	l_linenumber integer NOT NULL, l_quantity numeric(15, 2) NOT NULL,
	l_extendedprice numeric(15, 2) NOT NULL, l_discount numeric(15, 2) NOT NULL,
	l_tax numeric(15, 2) NOT NULL, l_returnflag char(1) NOT NULL,
	l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL,
	l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL,
	l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL);
\\copy part FROM 'part.csv' (FORMAT csv, HEADER, FREEZE)
\\copy lineitem FROM 'lineitem.csv' (FORMAT csv, HEADER, FREEZE)
COMMIT;
ALTER TABLE part ADD PRIMARY KEY (p_partkey);
VACUUM (FREEZE, ANALYZE);
CHECKPOINT;
"""


def _branch(brand: str, size: str, containers: str, quantity: int, largest: int) -> str:
    names = ", ".join(f"'{size} {container}'" for container in containers.split())
    return (
        f"p_partkey = l_partkey AND p_brand = '{brand}' AND p_container IN ({names}) "
        f"AND l_quantity BETWEEN {quantity} AND {quantity + 10} "
        f"AND p_size BETWEEN 1 AND {largest} AND l_shipmode IN ('AIR', 'AIR REG') "
        "AND l_shipinstruct = 'DELIVER IN PERSON'"
    )


# TPC-H's "discounted revenue query", with the values of its specification's example (2.4.19).
QUERY_19 = (
    "SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part WHERE "
    + " OR ".join(
        f"({branch})"
        for branch in (
            _branch("Brand#12", "SM", "CASE BOX PACK PKG", 1, 5),
            _branch("Brand#23", "MED", "BAG BOX PKG PACK", 10, 10),
            _branch("Brand#34", "LG", "CASE BOX PACK PKG", 20, 15),
        )
    )
    + ";"
)

# PostgreSQL refuses to run as root; in the rig everybody is.
_POSTGRES = """
as_postgres() {
	setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
}
start() { # FOLDER PORT SETTING...
	local folder=$1 port=$2 setting words="-k /run/postgres -h ''"

	shift 2
	for setting in "port=$port" autovacuum=off jit=off "$@"; do
		words+=" -c $setting"
	done
	as_postgres "$BIN/pg_ctl" -D "$folder" -l "/run/postgres/log$port" -o "$words" -w start \\
		>/dev/null || {
		cat "/run/postgres/log$port" >&2
		exit 1
	}
}
install -d -o postgres -m 700 /run/postgres && cd /run/postgres || exit 1
"""
LOAD_TPCH = (
    _POSTGRES
    + """
install -d -o postgres -m 700 /tmp/data || exit 1
as_postgres "$BIN/initdb" -D /tmp/data -A trust -U postgres --locale=C -E UTF8 --no-sync \\
	>/dev/null || exit 1
start /tmp/data 5431 fsync=off wal_level=minimal max_wal_senders=0 max_wal_size=4GB
cd "$TEXT" || exit 1
psql -X -q -h /run/postgres -p 5431 -U postgres -v ON_ERROR_STOP=1 -f "$IN/tables.sql" || exit 1
psql -X -At -h /run/postgres -p 5431 -U postgres -f "$IN/query.sql" >"$OUT/revenue" || exit 1
as_postgres "$BIN/pg_ctl" -D /tmp/data -w -m fast stop >/dev/null || exit 1
tar -C /tmp/data -cf "$OUT/data.tar" .
"""
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
    wanted = rig.content_hash(
        TPCH_TABLES,
        QUERY_19,
        LOAD_TPCH,
        str(scale),
        POSTGRES.tells(),
        Need(str(generator), "", ("--version",)).tells(),
    )
    target = rig.cache().parent / "applications" / f"tpch-{wanted}"
    if target.is_dir():
        return target
    with rig.made_whole(target) as new:
        text = new / "text"
        made = subprocess.run(
            [generator, "csv", f"--scale-factor={scale}", "--tables=lineitem,part", "-o", text],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            raise StreamschedError(f"tpchgen-cli failed: {made.stderr.strip()[-300:]}")
        result = rig.run_in_rig(
            LOAD_TPCH,
            files={"tables.sql": TPCH_TABLES, "query.sql": QUERY_19},
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


def tpch(scale: float = TPCH_SCALE) -> Application:
    """Three servers with a database each, and query 19 in each, by one process."""
    prepare = f"""
make_volumes 3
install -d -o postgres -m 700 /run/fs/1/db && tar -C /run/fs/1/db -xzf "$DATA" || exit 1
chown -R postgres: /run/fs/1/db
for i in 2 3; do
	cp -a /run/fs/1/db "/run/fs/$i/" || exit 1
done
forget
{_POSTGRES}
for i in 1 2 3; do
	start "/run/fs/$i/db" "543$i" shared_buffers=32MB max_parallel_workers_per_gather=0
done
echo "$REVENUE" >/run/postgres/revenue
cat >/run/postgres/query.sql <<'EOF'
{QUERY_19}
EOF
forget_pages
"""
    work = (
        TIMED
        + """
for i in 1 2 3; do
	psql -X -At -h /run/postgres -p "543$i" -U postgres -f /run/postgres/query.sql \\
		>"/run/postgres/revenue$i" &
done
wait
"""
        + END_TIMED
        + """
for i in 1 2 3; do
	cmp "/run/postgres/revenue$i" /run/postgres/revenue >&2 || exit 1
done
"""
    )

    def set_up() -> tuple[dict[str, str], list[Path]]:
        data = tpch_data(scale)
        binaries = POSTGRES.path().parent
        variables = {
            "DATA": str(data / "data.tar.gz"),
            "REVENUE": (data / "revenue").read_text().strip(),
            "BIN": str(binaries),
        }
        return variables, [data, binaries]

    data_mb = 100 + int(1000 * scale)  # of a cluster
    return Application(
        Program(
            "PostgreSQL, three servers, TPC-H query 19",
            _VOLUMES + prepare,
            work,
            "all three",
            least_read=int(3 * 0.8e9 * scale),
            memory_mb=4 * data_mb + 500,
            disk_mb=3 * data_mb + 50,
            trace_kib=40_000,
        ),
        (POSTGRES, PSQL, SETPRIV, DMSETUP),
        set_up,
    )


# ---- all of them ----


APPLICATIONS = {
    "greps": greps(),
    "ftp": ftp(),
    "postmark": postmark(),
    "tpc-h": tpch(),
}


def measure(
    name: str,
    application: Application,
    policies: str = POLICIES,
    *,
    jobs: int = 1,
    done: Callable[[Cell], None] = lambda cell: None,
) -> list[Cell]:
    """One application with each queue depth and path, under each scheduler.

    @jobs rigs run at once; @done is told of each cell.
    """
    application.check()
    disk = load_disk(DISK)
    rig.build()
    rig.build_modules()
    variables, show = application.set_up()
    head = "".join(f"{key}={shlex.quote(value)}\n" for key, value in variables.items())

    def one(depth: int, path: str, policy: KernelPolicy) -> Cell:
        cell = program_cell(name, application.program, path, disk, policy, head, show, depth)
        done(cell)
        return cell

    wanted = [
        (depth, path, policy)
        for depth, path in application.conditions
        for policy in parse_policies(policies)
    ]
    with rig.pool(jobs) as pool:
        return list(pool.map(lambda which: one(*which), wanted))


def table_lines(application: Application, cells: Sequence[Cell]) -> list[str]:
    """One application's table."""
    head = [
        f"| commands | owners | scheduler | {application.program.foreground}, s | times as fast "
        "as none | disk MB/s | p99 ms | longest ms |",
        "|---:|---|---|---:|---:|---:|---:|---:|",
    ]
    base = {(c.queue_depth, c.path): c.seconds for c in cells if c.policy == "none"}
    rows = [
        f"| {cell.queue_depth} | {OWNERS[cell.path]} | {cell.policy} | {cell.seconds:.2f} "
        f"| {base[cell.queue_depth, cell.path] / cell.seconds:.2f} | {cell.mb_s:.1f} "
        f"| {cell.p99_ms:.1f} | {cell.longest_ms:.1f} |"
        for cell in cells
    ]
    return head + rows


def markdown(application: Application, cells: Sequence[Cell]) -> str:
    """What it was measured with, and the table."""
    told = [need.tells() for need in application.needs if need.version is not None]
    return "\n".join([f"Measured with {', '.join(told)}.", "", *table_lines(application, cells)])


def cells_in(text: str) -> list[Cell]:
    """What the document with this @text has measured."""
    paths = {owners: path for path, owners in OWNERS.items()}
    found = []
    for name in APPLICATIONS:
        begin, end = marks(name)
        for line in text.split(begin, 1)[1].split(end, 1)[0].splitlines():
            row = re.fullmatch(r"\| (\d+) \| (\w+) \| (\S+) \|((?: [\d.]+ \|){5})", line)
            if row:
                seconds, _, mb_s, p99, longest = map(float, row[4].replace("|", "").split())
                path, depth = paths[row[2]], int(row[1])
                found.append(
                    Cell(name, path, row[3], mb_s, None, seconds, p99, longest, None, depth)
                )
    return found


def write_into(document: Path, name: str, table: str) -> None:
    """Put @table where @document has the marks of @name."""
    text = with_rows(document.read_text(), name, table.splitlines(), ())
    write_whole(Target(document, replace=True), text)


app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    help="Measure real programs under the kernel's schedulers; write docs/results/applications.md."
)
def table(
    programs: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROGRAM", help=f"Of {', '.join(APPLICATIONS)}; none: all."),
    ] = None,
    parallel: Annotated[
        int, typer.Option("--parallel", min=1, max=64, help="How many rigs at once.")
    ] = 2,
) -> None:
    """Measure what is named, and write each table when it is done."""
    names = programs or list(APPLICATIONS)
    for name in names:
        if name not in APPLICATIONS:
            raise unknown("program", name, APPLICATIONS)
        APPLICATIONS[name].check()
    document = rig.source_root() / "docs" / "results" / "applications.md"
    progress = counted()
    conditions = sum(len(APPLICATIONS[name].conditions) for name in names)
    with progress:
        task = progress.add_task("applications", total=conditions * len(POLICIES.split(",")))

        def tell(cell: Cell) -> None:
            progress.console.print(
                f"{cell.workload}, {cell.queue_depth} commands, owners {OWNERS[cell.path]}, "
                f"{cell.policy}: {cell.seconds:.2f} s"
            )
            progress.advance(task)

        for name in names:
            progress.update(task, description=name)
            cells = measure(name, APPLICATIONS[name], jobs=parallel, done=tell)
            write_into(document, name, markdown(APPLICATIONS[name], cells))


def main() -> int:
    """What `python -m streamsched.hosts.applications` does."""
    return exit_code_of("applications", app)


if __name__ == "__main__":
    sys.exit(main())
