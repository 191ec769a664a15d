#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What boot.sh runs to try a scheduler with the kernel's own test suites: each
# disk that appears rotates and has that scheduler, and the tests run one after
# the other.
#
#   suites.sh SUITE SCHEDULER SECONDS LIMIT [FILES]
#
# SUITE is blktests or xfstests, which tests the file system FILES. /share has
# suite/ (a built checkout), tests (names, a line each), stream-iosched.ko,
# hdd-emu.ko and emu0.sh, which makes the emulated disk emu0. SECONDS is for
# tests that take as long as they may, LIMIT is the longest that any test may
# take: the machine stops there, for nobody knows what such a test has left
# behind.
#
# /share/log has "begin TEST" for each test, and a line for each of its results,
# TEST DEVICE STATUS REASON: separated by tabs, the status pass, fail or skip.
# /share/out/ has what tests that did not pass have printed.
set -u

suite=$1
scheduler=$2
seconds=$3
limit=$4
files=${5-}

# What a sound kernel does not say.
TROUBLE='WARNING:|BUG:|Oops|general protection|blocked for more than|lockup|detected stall|possible circular|possible recursive|suspicious RCU|UBSAN|refcount_t|list_(add|del) corruption'

fail() {
	echo "suites.sh: $*"
	exit 1
}

# await WHAT COMMAND...
await() {
	local try

	for try in {1..600}; do
		"${@:2}" && return
		sleep 0.2
	done
	fail "$1, after $try tries"
}

start_system() {
	mkdir -p /run/udev/rules.d /sys/fs/cgroup /share/out
	mount -t cgroup2 none /sys/fs/cgroup
	busybox ip link set lo up
	modprobe configfs
	mountpoint -q /sys/kernel/config ||
		mount -t configfs configfs /sys/kernel/config
	insmod /share/stream-iosched.ko || fail "stream-iosched.ko does not load"
	insmod /share/hdd-emu.ko || fail "hdd-emu.ko does not load"
	cat >/run/udev/rules.d/99-suites.rules <<-END
		ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", \
		ATTR{queue/rotational}="1", ATTR{queue/scheduler}="$scheduler"
	END
	/lib/systemd/systemd-udevd --daemon
	udevadm trigger --action=add --subsystem-match=pci --subsystem-match=virtio
	udevadm settle --timeout=600
	sh -e /share/emu0.sh
	# The tests' own files: tmpfs lacks what some of them ask of a file.
	modprobe ext4
	await "there is no disk vda" test -b /dev/vda
	mkdir -p /files
	{ mkfs.ext4 -q /dev/vda && mount /dev/vda /files; } ||
		fail "there is no place for the tests' files"
	await "emu0 has not the scheduler $scheduler" \
		grep -qF "[$scheduler]" /sys/block/emu0/queue/scheduler
	cp -r /share/suite /files/suite
}

# Tests that compare times are upset by a machine that is slow now and then: one
# that fails without a word of the kernel is tried this often.
TRIES=3

result() { # TEST DEVICE STATUS REASON
	printf '%s\t%s\t%s\t%s\n' "$@" >>/share/log
}

# Run a command for as long as a test may take; its output goes to $output, its
# exit status to $ended.
bounded() { # TEST COMMAND...
	local end=$((SECONDS + limit + 60)) pid

	timeout -k 20 "$limit" "${@:2}" >"$output" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null && [ "$SECONDS" -lt "$end" ]; do
		sleep 0.2
	done
	if ! kill -0 "$pid" 2>/dev/null; then
		wait "$pid"
		ended=$?
		[ "$ended" = 124 ] || [ "$ended" = 137 ] || return 0
	fi
	result "$1" - fail "not done after $limit s"
	cp "$output" "/share/out/${1//\//-}"
	{ dmesg | tail -n 60 && echo w >/proc/sysrq-trigger && dmesg | tail -n 200; } \
		>>"/share/out/${1//\//-}"
	exit 0
}

# The kernel's complaint since dmesg was cleared, in one line.
complaint() {
	dmesg | grep -m 1 -o -E "($TROUBLE).{0,60}" | tr '\t\n' '  '
}

# ---- blktests ----

start_blktests() {
	# It takes Debian's releases, 6.12.118+deb13-amd64, for numbers up to the dash.
	sed -i 's|sed .s/-\.\*//;|&s/+.*//;|' common/rc
}

# The disk of scsi_debug is looked for in the background.
find_scsi() {
	scsi=$(cd /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*:*/block \
		2>/dev/null && ls)
	[ -b "/dev/${scsi:-none}" ]
}

# Udev may still be looking at a disk.
unloaded() {
	modprobe -q -r "$1" 2>/dev/null
	! [ -e "/sys/module/$1" ]
}

# The disks that the device tests of $1 get, in $devices. Those of zbd make one.
make_devices() {
	local scsi=

	devices=
	await "scsi_debug stays loaded" unloaded scsi_debug
	await "null_blk stays loaded" unloaded null_blk
	grep -q '^test_device()' "tests/$1" && [[ $1 != zbd/* ]] || return
	modprobe scsi_debug dev_size_mb=128 max_queue=32 delay=1 lbpu=1
	modprobe null_blk nr_devices=1 gb=1 memory_backed=1 irqmode=2 \
		completion_nsec=100000
	await "scsi_debug has no disk" find_scsi
	udevadm settle --timeout=120
	devices="/dev/emu0 /dev/$scsi /dev/nullb0"
}

failed_quietly() {
	[ -z "$said" ] && grep -q '^status	fail' "$results"/*/"$1" 2>/dev/null
}

blktest() { # TEST
	local try results=/files/results file device status reason said

	for ((try = 1; try <= TRIES; try++)); do
		rm -rf "$results"
		make_devices "$1"
		cat >config <<-END
			TIMEOUT=$seconds
			TEST_DEVS=($devices)
		END
		dmesg -C
		bounded "$1" ./check -o "$results" "$1"
		said=$(complaint)
		failed_quietly "$1" || break
	done
	reason=$(sed -n 's/^    \([^\t]*\)$/\1/p' "$output" | sort -u | paste -s -d ';' | sed 's/;/; /g')
	for file in "$results"/*/"$1"; do
		if [ ! -f "$file" ]; then
			if [ "$ended" = 0 ]; then
				result "$1" - skip "${reason:-no device for it}"
			else
				result "$1" - fail "$(tail -n 1 "$output" | tr '\t' ' ')"
			fi
			return
		fi
		device=$(basename "${file%/"$1"}")
		case $device in
		sd*) device=scsi_debug ;;
		nullb0) device=null_blk ;;
		emu0) device=hdd-emu ;;
		nodev) device=- ;;
		esac
		status=$(sed -n 's/^status\t//p' "$file")
		[ "$status" != pass ] || [ -z "$said" ] || status=fail
		case $status in
		pass) result "$1" "$device" pass "$([ "$try" = 1 ] || echo "try $try")" ;;
		fail)
			result "$1" "$device" fail \
				"${said:-$(sed -n 's/^reason\t//p' "$file")}"
			cp "$output" "/share/out/${1//\//-}"
			cat "$file".* >>"/share/out/${1//\//-}" 2>/dev/null
			;;
		*) result "$1" "$device" skip "$reason" ;;
		esac
	done
}

# ---- xfstests ----

# More emulated disks: emu0 keeps its file system, emu1's is made anew, and emu2
# takes down the writes that dm-log-writes replays.
start_xfstests() {
	local user disk

	for user in fsgqa fsgqa2 123456-fsgqa; do
		getent passwd "$user" >/dev/null ||
			useradd --badname -m -U -s /bin/bash "$user" 2>/dev/null
	done
	for disk in emu1 emu2; do
		sed "s/emu0/$disk/g" /share/emu0.sh >"/tmp/$disk.sh"
		sh -e "/tmp/$disk.sh"
		await "$disk has not the scheduler $scheduler" \
			grep -qF "[$scheduler]" "/sys/block/$disk/queue/scheduler"
	done
	mkdir -p /mnt/test /mnt/scratch
	modprobe "$files" 2>/dev/null
	mkfs -t "$files" /dev/emu0 >/tmp/mkfs 2>&1 </dev/null ||
		fail "there is no file system: $(tail -n 1 /tmp/mkfs)"
	cat >local.config <<-END
		FSTYP=$files
		TEST_DEV=/dev/emu0
		TEST_DIR=/mnt/test
		SCRATCH_DEV=/dev/emu1
		SCRATCH_MNT=/mnt/scratch
		LOGWRITES_DEV=/dev/emu2
	END
}

xfstest() { # TEST
	local said reason

	dmesg -C
	bounded "$1" ./check "$1"
	said=$(complaint)
	reason=$(cat "results/$1.notrun" 2>/dev/null | paste -s -d ' ' | tr '\t' ' ')
	if [ -n "$reason" ]; then
		result "$1" "$files" skip "$reason"
	elif [ -n "$said" ]; then
		result "$1" "$files" fail "$said"
	elif grep -q '^Passed all' "$output"; then
		result "$1" "$files" pass ""
		return
	else
		result "$1" "$files" fail "$(sed -n 's/^.*\(\[failed.*\]\|- output mismatch\).*/\1/p' \
			"$output" | head -n 1)"
	fi
	cat "$output" "results/$1".* >"/share/out/${1//\//-}" 2>/dev/null
}

output=/tmp/output
start_system
cd /files/suite || fail "there is no suite"
"start_$suite"
while IFS= read -r name; do
	echo "begin $name" >>/share/log
	"${suite%s}" "$name"
done </share/tests
echo "end" >>/share/log
