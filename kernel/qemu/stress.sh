#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What boot.sh runs to wear out the modules: data is written and verified on
# several disks for SECONDS while schedulers, numbers of requests and tunables
# change at random, commands fail, a disk is torn out, and the modules are unloaded
# and loaded.
#
#   stress.sh SECONDS SEED
#
# /share has stream-iosched.ko, hdd-emu.ko unless they are installed, and
# emu0.sh, emu1.sh, emu2.sh, which make the emulated disks emu0 to emu2. The
# last lines tell how often each thing was done; the exit status is not 0 when
# data was wrong, a command was lost, or one of the things did not happen at all.
set -u

seconds=$1
seed=$2
end=0 # of this round
notes=/tmp/notes
mkdir -p $notes
hold=/tmp/hold # while it is there nobody chooses stream

disks="emu0 emu1 nullb0 nullb1"
things="switched resized inner discarded errors unplugged unloaded"

# However slow the machine is: rounds of 30 s follow until each thing has
# happened, but no more than so many.
more_rounds=20
# Everything is stuck when no command ended for so many seconds.
patience=300

note() {
	echo "$1" >>"$notes/$2"
}

fail() {
	echo "stress: $*"
	note "$*" failures
}

going() {
	[ $SECONDS -lt $end ]
}

# A number from $1 to $2, or one of the arguments, in $REPLY: RANDOM in a
# subshell would be another sequence.
random() {
	REPLY=$(($1 + RANDOM % ($2 - $1 + 1)))
}

pick() {
	shift $((RANDOM % $#))
	REPLY=$1
}

# A random time of up to $1 seconds and a bit; to start sleep takes longer.
mkfifo /tmp/never
exec 9<>/tmp/never
pause() {
	random 0 "$1"
	read -r -t "$REPLY.$((RANDOM % 400 + 100))" -u 9 || :
}

# set FILE VALUE: quietly, for file and scheduler may be gone just then.
set_file() {
	{ echo "$2" >"$1"; } 2>/dev/null
}

load() {
	modprobe "$1" 2>/dev/null || insmod "/share/$1.ko"
}

# The disk that scsi_debug makes, once it is there.
find_scsi() {
	local try found

	for try in {1..100}; do
		for found in /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*:*/block/*; do
			if [ -b "/dev/$(basename "$found")" ]; then
				basename "$found"
				return
			fi
		done
		sleep 0.1
	done
	echo "no-scsi-disk-after-$try-tries"
}

make_disks() {
	local disk scsi

	load stream-iosched
	modprobe configfs
	mountpoint -q /sys/kernel/config ||
		mount -t configfs configfs /sys/kernel/config
	load hdd-emu
	for disk in emu0 emu1; do
		sh -e "/share/$disk.sh"
	done
	# Two disks that share their tags, two hardware queues each.
	modprobe null_blk nr_devices=2 gb=1 queue_mode=2 irqmode=2 \
		completion_nsec=4000000 submit_queues=2 memory_backed=1 \
		shared_tags=1 hw_queue_depth=8
	modprobe sd_mod
	modprobe scsi_debug dev_size_mb=64 delay=2 max_queue=16 lbpu=1 statistics=1
	scsi=$(find_scsi)
	disks="$disks $scsi"
	for disk in $disks; do
		[ -b "/dev/$disk" ] || { fail "there is no disk $disk"; exit 1; }
		# Waiting is only for disks that rotate.
		set_file "/sys/block/$disk/queue/rotational" 1
	done
	echo 2 >"/sys/block/$scsi/device/timeout"
	echo 1000 >/sys/block/emu0/queue/io_timeout
}

# A job for fio: NAME DISK OFFSET SIZE, in MiB, and more options.
job() {
	local option

	printf '[%s]\nfilename=/dev/%s\noffset=%dm\nsize=%dm\n' \
		"$1" "$2" "$3" "$4"
	shift 4
	for option; do
		echo "$option"
	done
}

# The first half of a disk's first 32 MiB holds data that must be right, all
# the time: commands there are late or have to be sent again, but do not fail.
# The second half is read in order, and commands there do fail. All is one
# call of fio, for to start it takes emulated processors seconds.
make_jobs() {
	local disk verify="verify=crc32c verify_fatal=1 loops=1000000"

	cat <<-END
		[global]
		direct=1
		thread=1
		runtime=$((end - SECONDS))
		randseed=$seed
		ioengine=libaio
	END
	for disk in $disks; do
		# The words are options.
		# shellcheck disable=SC2086
		job "verify-$disk" "$disk" 0 4 $verify rw=randwrite iodepth=8 \
			bsrange=4k-64k verify_backlog=16
		# shellcheck disable=SC2086
		job "verify-small-$disk" "$disk" 4 1 $verify rw=randwrite \
			iodepth=16 bsrange=512-8k verify_backlog=256
		# shellcheck disable=SC2086
		job "verify-order-$disk" "$disk" 8 8 $verify rw=write iodepth=4 \
			bsrange=64k-1m verify_backlog=8 end_fsync=1
		job "read-1-$disk" "$disk" 16 4 rw=read bs=64k iodepth=1 \
			time_based=1 continue_on_error=all
		job "read-2-$disk" "$disk" 20 4 rw=read bs=64k iodepth=1 \
			time_based=1 continue_on_error=all thinktime=500
		job "read-3-$disk" "$disk" 24 4 rw=rw bs=16k iodepth=2 \
			time_based=1 continue_on_error=all
	done
}

load_disks() {
	make_jobs >/tmp/jobs.fio
	# Whoever changes things gets the processors first.
	nice fio --output-format=terse --output=/tmp/fio.terse /tmp/jobs.fio \
		>/tmp/fio.out 2>&1 ||
		fail "fio: $(head -n 8 /tmp/fio.out /tmp/fio.terse | cut -c 1-300)"
	cat /tmp/fio.terse >>/tmp/all.terse
}

switch() {
	while going; do
		pick stream stream stream none mq-deadline kyber bfq
		[ "$REPLY" = stream ] && [ -e $hold ] && continue
		set_file "/sys/block/$1/queue/scheduler" "$REPLY" &&
			note "$REPLY" switched
		pause 1
	done
}

tune() {
	local file value queue=/sys/block/$1/queue

	while going; do
		random 4 200
		set_file "$queue/nr_requests" "$REPLY" && note "$1" resized
		for file in "$queue"/iosched/*; do
			[ "${file##*/}" != inner ] || continue
			{ value=$(<"$file"); } 2>/dev/null || continue
			set_file "$file" "$value"
		done
		pick deadline noop cscan sptf linus
		set_file "$queue/iosched/inner" "$REPLY" && note "$1" inner
		# Only ours: in Linux 7.2 mq-deadline's are read when it is gone.
		for file in /sys/kernel/debug/block/"$1"/{sched/{counters,streams,parents,waits},hctx*/sched_tags}; do
			{ value=$(<"$file"); } 2>/dev/null
		done
		random 1 8
		if [ "$REPLY" = 1 ]; then
			blkdiscard --offset $((40 << 20)) --length $((1 << 20)) \
				"/dev/$1" 2>/dev/null && note "$1" discarded
		fi
		pause 0
	done
}

inject() {
	local driver=/sys/bus/pseudo/drivers/scsi_debug
	local emu=/sys/kernel/config/hdd-emu/emu0

	while going; do
		printf '%s\n' '40960 64 both EIO' '45056 16 read timeout' \
			'49152 1024 write EIO' >$emu/bad_ranges && note emu errors
		random 0 20000
		set_file $emu/delays "$REPLY 512 both 300000000"
		# 4: no answer, 16: to be sent again
		pick 16 16 4
		set_file $driver/opts "$REPLY"
		random 50 500
		set_file $driver/every_nth "$REPLY" && note scsi errors
		pause 3
		echo >$emu/bad_ranges
		echo >$emu/delays
		set_file $driver/every_nth 0
		set_file $driver/opts 0
		pause 2
	done
}

reload() {
	local disk

	while going; do
		pause 5
		touch $hold
		for disk in $disks emu2; do
			pick none mq-deadline
			set_file "/sys/block/$disk/queue/scheduler" "$REPLY"
		done
		if rmmod stream-iosched 2>/dev/null; then
			note ok unloaded
			load stream-iosched || fail "stream-iosched did not load again"
		fi
		rm -f $hold
	done
}

# begin JOB DISK: in the background, with a sequence of its own.
jobs_begun=0
begin() {
	jobs_begun=$((jobs_begun + 1))
	{
		RANDOM=$((seed * 1000 + jobs_begun))
		"$@"
	} &
}

# A disk that is torn out while it is read and written.
unplug() {
	while going; do
		sh -e /share/emu2.sh || { fail "emu2 cannot be made"; return; }
		[ -e $hold ] || set_file /sys/block/emu2/queue/scheduler stream
		dd if=/dev/emu2 of=/dev/null bs=64k iflag=direct 2>/dev/null &
		dd if=/dev/emu2 of=/dev/null bs=16k skip=2048 2>/dev/null &
		# A late one would leave a file where the disk was.
		dd if=/dev/zero of=/dev/emu2 bs=256k oflag=direct \
			conv=nocreat 2>/dev/null &
		pause 1
		rmdir /sys/kernel/config/hdd-emu/emu2 && note emu2 unplugged
		wait
	done
}

count() {
	[ -f "$notes/$1" ] || { echo 0; return; }
	wc -l <"$notes/$1"
}

# How many KiB the jobs whose names begin with $1 read of $2.
read_kib() {
	awk -F ';' -v name="^$1.*-$2$" '$3 ~ name { sum += $6 } END { print sum + 0 }' \
		/tmp/all.terse
}

# Whether each thing has happened and data was verified on each disk.
enough() {
	local what disk

	for what in $things; do
		[ "$(count "$what")" -gt 0 ] || return
	done
	for disk in $disks; do
		[ "$(read_kib verify "$disk")" -gt 0 ] || return
	done
}

# What changes whenever a command ends.
progress() {
	local disk

	for disk in $disks; do
		cat "/sys/block/$disk/stat"
	done
}

# After a round all commands come back, and so all that was begun ends.
finish() {
	local disk reads writes now before='' since=$SECONDS

	while [ -n "$(jobs -pr)" ]; do
		now=$(progress)
		[ "$now" = "$before" ] || since=$SECONDS
		before=$now
		if [ $((SECONDS - since)) -gt $patience ]; then
			fail "nothing has ended for $patience s"
			echo w >/proc/sysrq-trigger
			break
		fi
		sleep 1
	done
	for disk in $disks; do
		read -r reads writes <"/sys/block/$disk/inflight"
		[ "$reads" = 0 ] && [ "$writes" = 0 ] ||
			fail "$disk has lost commands: $reads read, $writes write"
	done
	[ -z "$(jobs -pr)" ] || exit 1
}

one_round() {
	local disk

	end=$((SECONDS + $1))
	begin load_disks
	for disk in $disks; do
		begin switch "$disk"
		begin tune "$disk"
	done
	# Two at once on the same disk.
	begin switch emu0
	begin inject
	begin unplug
	begin reload
	while going; do
		sleep 1
	done
	finish
}

make_disks
one_round "$seconds"
for ((i = 0; i < more_rounds; i++)); do
	enough && break
	echo "stress: not everything has happened yet: 30 s more"
	one_round 30
done

for disk in $disks; do
	verified=$(read_kib verify "$disk")
	echo "$disk: $verified KiB verified, $(read_kib read "$disk") KiB read"
	[ "$verified" -gt 0 ] || fail "$disk: nothing was verified"
done
for what in $things; do
	times=$(count "$what")
	echo "$what: $times times"
	[ "$times" -gt 0 ] || fail "nothing was $what"
done
for disk in $disks; do
	echo none >"/sys/block/$disk/queue/scheduler"
done
rmmod stream-iosched || fail "stream-iosched is in use though no disk has it"
echo "failures: $(count failures)"
[ "$(count failures)" -eq 0 ]
