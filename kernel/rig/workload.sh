#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Inside the rig: an emulated disk, what is stacked on it, a scheduler, the
# block trace, and the work. streamsched/hosts/kernelhost.py prepares
#
#   $IN/disk.sh      makes the disk /dev/hdd0, for an array /dev/hdd1 ... too
#   $IN/prepare.sh   optional: what must be on the disk before the work; $DEV
#   $IN/work.sh      the work, on $DEV; its exit status is ours
#   STACK            direct, loop, crypt, md0 or nbd; raid0 or raid5: an md
#                    array of all disks
#   CHUNK_KIB        of such an array
#   COORDINATOR      streamsched, which is to coordinate its members' schedulers; or
#                    empty
#   CRYPT_OPTIONS    optional parameters of dm-crypt, "COUNT OPTION ..."; or empty
#   READAHEAD_KIB    for the stack's queue/read_ahead_kb; or empty: the kernel's
#   SCHEDULER        of the emulated disks
#   WITH_MODULE      that has it, if it is not there; or empty
#   SETTINGS         lines "FILE VALUE" for its iosched/
#   NR_REQUESTS      for queue/nr_requests
#   TRACE_KIB        how large the trace's buffer is
#
# and takes from $OUT: failed (one sentence), trace, dev (a line for each disk),
# counters, and what the work leaves.
set -u

fail() {
	echo "$*" >"$OUT/failed"
	exit 1
}

# What was asked for is wrong.
refuse() {
	echo "$*" >"$OUT/refused"
	exit 1
}

need() {
	command -v "$1" >/dev/null ||
		fail "$1 is missing: install the Debian package $2"
}

stack() { # DISK...
	case $STACK in
	direct) DEV=$DISK ;;
	loop) DEV=$(losetup --find --show --direct-io=on "$DISK") ;;
	crypt)
		need dmsetup dmsetup
		echo "0 $(blockdev --getsz "$DISK") crypt aes-xts-plain64" \
			"$(printf '%0128d' 1) 0 $DISK 0 $CRYPT_OPTIONS" |
			dmsetup create --noudevsync crypt0
		dmsetup mknodes crypt0
		DEV=/dev/mapper/crypt0
		;;
	md0)
		need mdadm mdadm
		# RAID 0 of this disk alone: what md does to requests, without
		# a second disk's speed.
		mdadm --build /dev/md0 --level=0 --raid-devices=1 --force \
			--chunk=64 "$DISK" >/dev/null
		DEV=/dev/md0
		;;
	raid0 | raid5)
		need mdadm mdadm
		mdadm --create /dev/md0 --run --metadata=1.2 --level="$STACK" \
			--raid-devices=$# --chunk="$CHUNK_KIB" --assume-clean \
			"${@/#//dev/}" >/dev/null 2>&1
		DEV=/dev/md0
		;;
	nbd)
		need qemu-nbd qemu-utils
		need nbd-client nbd-client
		qemu-nbd --fork --persistent --shared=0 --format=raw \
			--cache=none --aio=threads --bind=127.0.0.1 \
			--port=10809 "$DISK" || fail "qemu-nbd does not start"
		nbd-client -block-size 512 127.0.0.1 10809 /dev/nbd0 >/dev/null
		DEV=/dev/nbd0
		;;
	*) fail "there is no path $STACK" ;;
	esac
	[ -b "$DEV" ] || fail "the path $STACK could not be set up"
	[ -z "$READAHEAD_KIB" ] ||
		blockdev --setra $((2 * READAHEAD_KIB)) "$DEV" ||
		fail "the path $STACK cannot read $READAHEAD_KIB KiB ahead"
}

schedule() { # DISK
	local file value QUEUE=/sys/block/$1/queue

	echo "$SCHEDULER" >"$QUEUE/scheduler" ||
		fail "the kernel has no scheduler $SCHEDULER"
	# Without a scheduler the number is that of the disk's commands.
	[ "$SCHEDULER" = none ] || echo "$NR_REQUESTS" >"$QUEUE/nr_requests" ||
		fail "the scheduler $SCHEDULER refuses $NR_REQUESTS requests"
	while read -r file value; do
		[ -n "$file" ] || continue
		[ -e "$QUEUE/iosched/$file" ] ||
			refuse "the scheduler $SCHEDULER has no setting $file"
		echo "$value" >"$QUEUE/iosched/$file" ||
			refuse "the scheduler $SCHEDULER refuses $file=$value"
	done <<<"$SETTINGS"
}

trace() {
	local event

	echo 0 >"$TRACING/tracing_on"
	echo mono >"$TRACING/trace_clock"
	echo "$TRACE_KIB" >"$TRACING/buffer_size_kb"
	for event in $TRACE_EVENTS; do
		echo 1 >"$TRACING/events/block/$event/enable" ||
			fail "the kernel has no trace event $event"
	done
	echo 1 >"$TRACING/tracing_on"
}

TRACING=/sys/kernel/tracing
DISK=/dev/hdd0

# shellcheck source=/dev/null
. "$IN/disk.sh" || fail "the emulated disk could not be made"
cd /sys/block && DISKS=(hdd*) || exit 1
stack "${DISKS[@]}"
export DEV STREAMSCHED_DISK="$DEV"
cd /tmp || exit 1
if [ -e "$IN/prepare.sh" ]; then
	bash "$IN/prepare.sh" 2>/tmp/said ||
		fail "the disk could not be prepared: $(tail -n 1 /tmp/said)"
	# What was written late is not a program's error.
	! dmesg | grep -m 1 "hdd_emu: .* failed: " >"$OUT/failed" || exit 1
	rm "$OUT/failed"
fi
[ -z "$WITH_MODULE" ] || insmod "$MODULES/$WITH_MODULE.ko" ||
	fail "the module $WITH_MODULE cannot be loaded"
for disk in "${DISKS[@]}"; do
	schedule "$disk"
done
[ -z "$COORDINATOR" ] || "$COORDINATOR" array attach "$DEV" >/dev/null ||
	fail "the members of $DEV could not be coordinated"
# fio measures once, when it starts, how long the shortest sleep takes, and
# spins through the rest of a think time. A kernel that has just booted wakes
# nobody before its first tick, 10 ms after that, and has fine timers then. If
# sleeping took no time at all, fio would begin again until it does.
echo 2000 >/proc/$$/timerslack_ns
sleep 0.05
trace
bash "$IN/work.sh"
status=$?
sync
echo 0 >"$TRACING/tracing_on"
cat "$TRACING/trace" >"$OUT/trace"
cat /sys/block/hdd*/dev >"$OUT/dev"
cat /sys/kernel/debug/block/hdd*/sched/counters >"$OUT/counters" 2>/dev/null
exit $status
