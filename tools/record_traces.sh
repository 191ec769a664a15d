#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Record the traces of traces/ anew: tools/record_traces.sh [OPTIONS] [NAME...]
#
#	-o DIR    where to write NAME.blktrace.zst (default: traces/)
#	-t TREE   the source tree for grep-twice (default: that of Go)
#	-w DIR    where the disk's sparse file goes (default: /var/tmp); its
#	          file system must know direct I/O
#	NAME      grep-twice, pg-scan, postmark (default: all three)
#
# Needs root, a kernel with the blk tracer (CONFIG_BLK_DEV_IO_TRACE), 4 GB of
# space, and blktrace, fdisk, e2fsprogs, python3, zstd, postgresql, postmark.
# All that is set up is taken down again, also after a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly REGIONS_GIB=(4 30 56 82) # where each file system begins
readonly REGION_SECTORS=4194304 # its size, 2 GiB
readonly DISK_GIB=120
readonly WORD=zq9xwhichdoesnotoccur

out=traces
tree=
parent=/var/tmp
work= # the temporary directory
disk= # the loop device, such as loop3
tracefs=
tracefs_is_ours=
tracer_is_ours=
server= # the directory of the running PostgreSQL
jobs_left=() # background processes to end

die() {
	printf 'record_traces.sh: %s\n' "$1" >&2
	exit 2
}

# Undo

stop_server() {
	[ -n "$server" ] || return 0
	as_postgres pg_ctl -D "$server" -m fast -w stop >/dev/null
	server=
}

release_tracer() {
	[ -n "$tracer_is_ours" ] || return 0
	tracer_is_ours=
	echo 0 >"/sys/block/$disk/trace/enable"
	echo nop >"$tracefs/current_tracer"
	echo 0 >"$tracefs/options/bin"
	echo 1 >"$tracefs/options/context-info"
	echo local >"$tracefs/trace_clock"
	echo "$buffer_kb" >"$tracefs/buffer_size_kb"
}

unmount_regions() {
	local i

	for i in "${!REGIONS_GIB[@]}"; do
		if mountpoint -q "$work/r$i"; then
			umount "$work/r$i"
		fi
	done
}

clean_up() {
	local status=$? pid i

	trap '' INT TERM
	set +e
	for pid in "${jobs_left[@]}"; do
		kill "$pid" 2>/dev/null
		kill -CONT "$pid" 2>/dev/null
	done
	wait
	stop_server
	release_tracer
	[ -z "$work" ] || unmount_regions
	if [ -n "$disk" ]; then
		for i in "${!REGIONS_GIB[@]}"; do
			delpart "/dev/$disk" $((i + 1)) 2>/dev/null
		done
		losetup -d "/dev/$disk"
	fi
	[ -z "$tracefs_is_ours" ] || umount "$tracefs"
	[ -z "$work" ] || rm -rf --one-file-system "$work"
	exit "$status"
}

# The disk: one loop device, with a file system in each of four regions

make_disk() {
	local i

	truncate -s "${DISK_GIB}G" "$work/disk"
	# Direct, so that the file's own page cache answers nothing.
	disk=$(losetup --find --show --direct-io=on "$work/disk")
	disk=${disk#/dev/}
	echo 128 >"/sys/block/$disk/queue/read_ahead_kb"
	for i in "${!REGIONS_GIB[@]}"; do
		addpart "/dev/$disk" $((i + 1)) \
			$((REGIONS_GIB[i] * 2097152)) "$REGION_SECTORS"
		mkdir -m 755 "$work/r$i"
	done
	udevadm settle 2>/dev/null || true
}

format_regions() {
	local i

	unmount_regions
	for i in "${!REGIONS_GIB[@]}"; do
		mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 \
			"/dev/${disk}p$((i + 1))"
	done
	mount_regions
}

mount_regions() {
	local i

	for i in "${!REGIONS_GIB[@]}"; do
		mount "/dev/${disk}p$((i + 1))" "$work/r$i"
	done
}

# Forget all that is cached of them, and nothing else on this machine.
cool_down() {
	unmount_regions
	mount_regions
}

# Tracing: the kernel's blk tracer writes the records that blktrace reads, and
# a kernel that is locked down, where blktrace cannot read them, allows it.

find_tracefs() {
	for tracefs in /sys/kernel/tracing /sys/kernel/debug/tracing; do
		[ ! -e "$tracefs/current_tracer" ] || return 0
	done
	tracefs=$work/tracefs
	mkdir "$tracefs"
	mount -t tracefs none "$tracefs" || die "the kernel has no tracefs"
	tracefs_is_ours=1
}

take_tracer() {
	local current

	grep -qw blk "$tracefs/available_tracers" ||
		die "the kernel has no blk tracer"
	current=$(cat "$tracefs/current_tracer")
	[ "$current" = nop ] || die "the tracer $current is in use"
	# "7 (expanded: 1408)" before anyone has traced, else one number.
	buffer_kb=$(grep -o '[0-9]*' "$tracefs/buffer_size_kb" | tail -n 1)
	tracer_is_ours=1
	echo 16384 >"$tracefs/buffer_size_kb"
	echo mono >"$tracefs/trace_clock"
	echo queue,complete >"/sys/block/$disk/trace/act_mask"
	echo blk >"$tracefs/current_tracer"
	echo 1 >"$tracefs/options/bin"
	echo 0 >"$tracefs/options/context-info"
}

wait_until_quiet() {
	local size=-1 now=0

	while [ "$size" != "$now" ]; do
		size=$now
		sleep 1
		now=$(stat -c %s "$1")
	done
}

# traced NAME COMMAND...: what COMMAND does becomes the trace NAME.
traced() {
	local name=$1 reader

	shift
	take_tracer
	cat "$tracefs/trace_pipe" >"$work/raw" &
	reader=$!
	jobs_left+=("$reader")
	echo 1 >"/sys/block/$disk/trace/enable"
	"$@"
	echo 0 >"/sys/block/$disk/trace/enable"
	wait_until_quiet "$work/raw"
	cp "$tracefs/saved_cmdlines" "$work/names"
	cat "$tracefs"/per_cpu/cpu*/stats >"$work/stats"
	kill "$reader"
	wait "$reader" || true
	release_tracer
	if grep -q '^overrun: [1-9]' "$work/stats"; then
		die "$name: events were lost"
	fi
	keep_requests "$work/raw" "$work/names" "$work/kept" \
		"$(cat "/sys/block/$disk/dev")"
	zstd -q -19 --ultra -f "$work/kept" -o "$out/$name.blktrace.zst"
	summarize "$name"
}

# Of this disk, Q and C alone; time from 1 s, as blkparse takes 0 for no time;
# the name of each process that sent requests. (That of a completion is
# whichever the interrupt found running.)
keep_requests() {
	python3 - "$@" <<'PYTHON'
import struct
import sys
from collections import Counter

RECORD = struct.Struct("=IIQQIIIIIHH")
MAGIC = 0x65617407
QUEUE, COMPLETE, NOTIFY = 1, 8, 1 << 26
BEGIN_NS = 1_000_000_000

raw_path, names_path, kept_path, device = sys.argv[1:]
major, minor = map(int, device.split(":"))
with open(raw_path, "rb") as file:
    raw = file.read()
with open(names_path, encoding="ascii", errors="replace") as file:
    names = dict(line.rstrip("\n").split(" ", 1) for line in file)

kept = []
at = 0
while at < len(raw):
    fields = list(RECORD.unpack_from(raw, at))
    if fields[0] != MAGIC:
        sys.exit(f"no record at byte {at}")
    at += RECORD.size + fields[10]
    of_disk = fields[7] == major << 20 | minor
    if of_disk and not fields[5] & NOTIFY and fields[5] & 0xFFFF in (QUEUE, COMPLETE):
        fields[10] = 0
        kept.append(fields)
if not kept:
    sys.exit("nothing was recorded")
kept.sort(key=lambda fields: fields[2])

shift = BEGIN_NS - kept[0][2]
last = Counter()
with open(kept_path, "wb") as file:
    def write(fields, extra=b""):
        last[fields[8]] += 1
        fields[1] = last[fields[8]]
        file.write(RECORD.pack(*fields) + extra)

    senders = {fields[6] for fields in kept if fields[5] & 0xFFFF == QUEUE}
    for pid in sorted(senders):
        name = names.get(str(pid), "swapper" if pid == 0 else "")
        note = [MAGIC, 0, BEGIN_NS, 0, 0, NOTIFY, pid, kept[0][7], kept[0][8], 0, 16]
        if name:
            write(note, name.encode()[:15].ljust(16, b"\0"))
    for fields in kept:
        fields[2] += shift
        write(fields)
PYTHON
}

summarize() {
	printf '%s: %s bytes\n' "$1" "$(stat -c %s "$out/$1.blktrace.zst")"
	blkparse -q -a queue -i - -f '%a %d %p %C\n' <"$work/kept" | sort |
		uniq -c | sort -rn
	blkparse -q -a complete -i - -f '%a %d\n' <"$work/kept" | sort | uniq -c
}

# grep-twice: two greps at once, each in its own copy of a source tree

record_grep_twice() {
	[ -d "$tree" ] || die "$tree is no source tree; name one with -t"
	format_regions
	cp -r --preserve=timestamps "$tree" "$work/r0/tree"
	cp -r --preserve=timestamps "$tree" "$work/r2/tree"
	printf 'grep-twice: %s files, %s in each copy\n' \
		"$(find "$work/r0/tree" -type f | wc -l)" \
		"$(du -sh "$work/r0/tree" | cut -f 1)"
	cool_down
	traced grep-twice grep_twice
}

grep_twice() {
	local first second

	grep -r "$WORD" "$work/r0/tree" &
	first=$!
	grep -r "$WORD" "$work/r2/tree" &
	second=$!
	jobs_left+=("$first" "$second")
	wait "$first" || true
	wait "$second" || true
}

# pg-scan: three tables, each in its own region, read from end to end at once

as_postgres() {
	(
		cd "$work"
		exec runuser -u postgres -- env "PATH=$PATH" "$@"
	)
}

sql() {
	as_postgres psql -q -X -h "$work/socket" -v ON_ERROR_STOP=1 \
		-d postgres -c "$1"
}

start_server() {
	server=$work/r3/data
	as_postgres pg_ctl -D "$server" -w -l "$work/socket/log" start >/dev/null
}

record_pg_scan() {
	local i programs

	for programs in /usr/lib/postgresql/*/bin; do
		PATH=$PATH:$programs
	done
	format_regions
	install -d -o postgres -m 700 "$work/socket" "$work"/r{0,1,2}/space \
		"$work/r3/data"
	as_postgres initdb -D "$work/r3/data" -A trust >/dev/null
	cat >>"$work/r3/data/postgresql.conf" <<-END
		listen_addresses = ''
		unix_socket_directories = '$work/socket'
		max_parallel_workers_per_gather = 0
		autovacuum = off
		max_wal_size = 256MB
		wal_level = minimal
		max_wal_senders = 0
	END
	start_server
	for i in 0 1 2; do
		sql "create tablespace s$i location '$work/r$i/space'"
		sql "create table t$i tablespace s$i as
			select g as id, repeat(md5(g::text), 24) as pad
			from generate_series(1, 300000) as g"
		sql "vacuum (freeze, analyze) t$i"
		sql "select pg_size_pretty(pg_table_size('t$i'))" |
			sed -n "3s/^/pg-scan: table $i: /p"
	done
	stop_server
	cool_down
	start_server
	traced pg-scan pg_scan
	stop_server
}

pg_scan() {
	local i scans=()

	for i in 0 1 2; do
		sql "select max(length(pad)) from t$i" >/dev/null &
		scans+=($!)
	done
	jobs_left+=("${scans[@]}")
	wait "${scans[@]}"
}

# postmark: four at once, each in its own region. The files that they make fit
# into memory, so that nothing would be read: each is stopped once it has made
# them, they are written out and forgotten, and the trace is what comes then.

record_postmark() {
	local i

	format_regions
	postmarks=()
	for i in "${!REGIONS_GIB[@]}"; do
		mkdir "$work/r$i/mail"
		start_postmark "$i"
	done
	sync -f "$work/r0" "$work/r1" "$work/r2" "$work/r3"
	forget_files "$work/r0" "$work/r1" "$work/r2" "$work/r3"
	traced postmark go_on
	grep -H 'seconds of transactions\|read ' "$work"/postmark.* |
		sed "s|^$work/||"
}

start_postmark() {
	postmark >"$work/postmark.$1" <<-END &
		set location $work/r$1/mail
		set number 3000
		set transactions 5000
		set subdirectories 10
		set size 500 10000
		set seed $(($1 + 1))
		set buffering false
		run
		quit
	END
	postmarks+=($!)
	jobs_left+=($!)
	until grep -qs 'Performing transactions' "$work/postmark.$1"; do
		kill -0 $! || die "postmark ended early"
		sleep 0.01
	done
	kill -STOP $!
}

forget_files() {
	python3 - "$@" <<'PYTHON'
import os
import sys

for root in sys.argv[1:]:
    for folder, _, files in os.walk(root):
        for name in files:
            file = os.open(os.path.join(folder, name), os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)
PYTHON
}

# While they work, what they change is written every tenth of a second.
go_on() {
	local flusher

	while sleep 0.1; do
		sync -f "$work/r0" "$work/r1" "$work/r2" "$work/r3"
	done &
	flusher=$!
	jobs_left+=("$flusher")
	kill -CONT "${postmarks[@]}"
	wait "${postmarks[@]}"
	kill "$flusher"
	wait "$flusher" || true
	sync -f "$work/r0" "$work/r1" "$work/r2" "$work/r3"
}

while getopts o:t:w: option; do
	case $option in
	o) out=$OPTARG ;;
	t) tree=$OPTARG ;;
	w) parent=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- grep-twice pg-scan postmark
for name; do
	case $name in
	grep-twice | pg-scan | postmark) ;;
	*) die "there is no trace $name: grep-twice, pg-scan or postmark" ;;
	esac
done
[ "$(id -u)" = 0 ] || die "only root can make a disk and trace it"
[ -n "$tree" ] || tree=$(go env GOROOT 2>/dev/null || echo /usr/local/go)/src
[ -d "$out" ] || die "$out is no directory"

PATH=$PATH:/usr/sbin:/sbin
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
work=$(mktemp -d "$parent/record-traces.XXXXXX")
chmod 711 "$work" # PostgreSQL, which is not root, passes through
find_tracefs
make_disk
for name; do
	"record_${name//-/_}"
done
