#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What boot.sh runs to wear out the modules: data is written and verified on
# several disks for SECONDS while schedulers, numbers of requests and tunables
# change at random, commands fail, a disk is torn out, and the modules are unloaded
# and loaded. With `array` an md array, RAID 5, is attached and detached, a
# member of it fails and returns, it grows, is reshaped, stopped and assembled:
# that takes minutes.
#
#   stress.sh SECONDS SEED [array]
#
# /share has stream-iosched.ko, hdd-emu.ko unless they are installed, and
# emu0.sh, emu1.sh, emu2.sh, which make the emulated disks emu0 to emu2, and
# member0.sh to member3.sh, which make the array's. The
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
arrays=''
members=''
rarer='' # what may not have come to its turn
if [ "${3-}" = array ]; then
	arrays=md0
	members="member0 member1 member2 member3"
	things="$things attached detached failed added stopped"
	rarer="updated left grown reshaped"
elif [ -n "${3-}" ]; then
	echo "stress.sh: $3: must be array, or nothing" >&2
	exit 2
fi
member_paths=(/dev/member{0..3})

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

# set_lines FILE LINE...: all of them in one write, which echo and printf do not.
set_lines() {
	local file=$1

	shift
	printf '%s\n' "$@" >"/tmp/lines.$BASHPID"
	{ cat "/tmp/lines.$BASHPID" >"$file"; } 2>/dev/null
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
	for disk in emu0 emu1 $members; do
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
	[ -z "$arrays" ] || make_array
}

# ---- the array ----

array=/sys/block/md0/md
config=/sys/kernel/config/stream-array/md0
little=16384 # KiB that each member gives it at first, and when it has grown
much=24576

# Its last 2 MiB as long as it is small: written anew each time it is stopped.
kept=$((3 * little / 1024 - 2))

make_array() {
	local member

	for member in $members; do
		echo stream >"/sys/block/$member/queue/scheduler"
	done
	modprobe raid456
	mdadm --quiet --create /dev/md0 --run --metadata=1.2 --level=5 \
		--chunk=64 --assume-clean --bitmap=none --size=$little \
		--raid-devices=4 "${member_paths[@]}" ||
		{ fail "there is no array"; exit 1; }
	dd if=/dev/urandom of=/tmp/kept bs=1M count=2 status=none
	write_kept
}

write_kept() {
	dd if=/tmp/kept of=/dev/md0 bs=1M seek=$kept oflag=direct status=none \
		conv=nocreat
}

check_kept() {
	dd if=/dev/md0 bs=1M skip=$kept count=2 iflag=direct status=none |
		cmp - /tmp/kept || fail "md0: wrong data, $1"
}

# Not while it is stopped: alone COMMAND.
alone() {
	exec 8>/tmp/array.lock
	flock 8
	"$@" 8>&-
	exec 8>&-
}

# Which layout is md's number $1.
layout_name() {
	local names=(left-asymmetric right-asymmetric left-symmetric
		right-symmetric)

	echo "${names[$1]}"
}

is_reshaped() {
	[ "$(<$array/reshape_position)" != none ] ||
		[ "$(<$array/sync_action)" = reshape ]
}

# As `streamsched array attach --update` does.
attach() {
	local one slot line sectors lines=(missing missing missing missing)

	is_reshaped && return
	[ -e $hold ] && return
	mkdir -p $config 2>/dev/null || return
	sectors=$((2 * $(<$array/component_size)))
	for one in "$array"/dev-*; do
		slot=$(<"$one/slot")
		[ "$slot" != none ] || continue
		grep -q faulty "$one/state" && continue
		set_file "/sys/block/${one##*/dev-}/queue/scheduler" stream
		line="$(<"$one/block/dev") $(<"$one/offset") $sectors"
		lines[slot]=$line
	done
	if [ "$(<$config/attached)" = 1 ] && grep -q " $sectors\$" $config/members &&
		[ "$(<$config/layout)" = "$(layout_name "$(<$array/layout)")" ]; then
		set_lines $config/members "${lines[@]}" && note md0 updated
		return
	fi
	set_file $config/attached 0
	set_file $config/level raid5
	set_file $config/layout "$(layout_name "$(<$array/layout)")"
	set_file $config/chunk_sectors 128
	set_lines $config/members "${lines[@]}"
	set_file $config/attached 1 && note md0 attached
}

detach() {
	rmdir $config 2>/dev/null && note md0 detached
}

# A member's scheduler goes, and returns when it is attached again.
leave() {
	local member

	# The words are disks.
	# shellcheck disable=SC2086
	pick $members
	member=$REPLY
	pick none mq-deadline bfq
	set_file "/sys/block/$member/queue/scheduler" "$REPLY" && note "$member" left
}

is_idle() {
	[ "$(<$array/degraded)" = 0 ] && [ "$(<$array/sync_action)" = idle ]
}

# One fails; then it is removed, then added, and this once more when it is whole.
fail_member() {
	local member

	if is_idle; then
		# The words are disks.
		# shellcheck disable=SC2086
		pick $members
		mdadm --quiet /dev/md0 --fail "/dev/$REPLY" && note "$REPLY" failed
		return
	fi
	for member in $members; do
		if [ ! -d "$array/dev-$member" ]; then
			mdadm --quiet /dev/md0 --add "/dev/$member" &&
				note "$member" added
		elif grep -q faulty "$array/dev-$member/state"; then
			mdadm --quiet /dev/md0 --remove "/dev/$member" 2>/dev/null
		fi
	done
}

grow() {
	is_idle || return
	pick $little $much
	[ "$(<$array/component_size)" != "$REPLY" ] || return
	mdadm --quiet --grow /dev/md0 "--size=$REPLY" && note md0 grown
}

reshape() {
	is_idle || return
	pick la ra ls rs
	mdadm --quiet --grow /dev/md0 "--layout=$REPLY" \
		--backup-file=/tmp/backup 2>/dev/null && is_reshaped &&
		note md0 reshaped
}

change_array() {
	while going; do
		pick attach attach attach detach leave fail_member fail_member \
			fail_member grow reshape
		alone "$REPLY"
		pause 0
	done
}

array_jobs() {
	local verify="verify=crc32c verify_fatal=1 loops=1000000"

	cat <<-END
		[global]
		direct=1
		thread=1
		runtime=$1
		randseed=$seed
		ioengine=libaio
	END
	# The words are options.
	# shellcheck disable=SC2086
	job verify-md0 md0 0 4 $verify rw=randwrite iodepth=8 \
		bsrange=4k-64k verify_backlog=16
	# shellcheck disable=SC2086
	job verify-order-md0 md0 4 8 $verify rw=write iodepth=4 \
		bsrange=64k-1m verify_backlog=8 end_fsync=1
	job read-1-md0 md0 12 12 rw=read bs=64k iodepth=1 time_based=1
	job read-2-md0 md0 24 12 rw=read bs=64k iodepth=1 time_based=1
}

# Stopped as it is, attached or not, and assembled again of those that are no
# older than the rest.
restart() {
	# mdadm 4.2 of Debian 12 was seen to crash when it had to restore what a
	# reshape had under way; the rig stops arrays in the middle of one.
	is_reshaped && return
	check_kept "before it was stopped"
	mdadm --quiet --stop /dev/md0 || { fail "md0 does not stop"; return; }
	note md0 stopped
	mdadm --quiet --assemble --run --backup-file=/tmp/backup /dev/md0 \
		"${member_paths[@]}" 2>/tmp/assemble ||
		{ fail "md0 is not assembled: $(</tmp/assemble)"; return; }
	check_kept "assembled again"
	dd if=/dev/urandom of=/tmp/kept bs=1M count=2 status=none
	write_kept
}

# To be stopped it must not be open.
load_array() {
	local left

	while going; do
		left=$((end - SECONDS))
		array_jobs $((left < 20 ? left : 20)) >/tmp/array.fio
		nice fio --output-format=terse --output=/tmp/array.terse \
			/tmp/array.fio >/tmp/array.out 2>&1 ||
			fail "fio: $(head -n 8 /tmp/array.{out,terse} | cut -c 1-300)"
		cat /tmp/array.terse >>/tmp/all.terse
		alone restart
	done
}

# ---- disks ----

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
		# A read that times out would end fio, which goes on after EIO only.
		set_lines $emu/bad_ranges '40960 64 both EIO' \
			'49152 1024 write EIO' && note emu errors
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
		alone detach
		for disk in $disks $members emu2; do
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
	for disk in $disks $arrays; do
		[ "$(read_kib verify "$disk")" -gt 0 ] || return
	done
}

# What changes whenever a command ends.
progress() {
	local disk

	for disk in $disks $members; do
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
	# md rebuilds on: what it has under way is no loss.
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
	if [ -n "$arrays" ]; then
		begin load_array
		begin change_array
	fi
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

for disk in $disks $arrays; do
	verified=$(read_kib verify "$disk")
	echo "$disk: $verified KiB verified, $(read_kib read "$disk") KiB read"
	[ "$verified" -gt 0 ] || fail "$disk: nothing was verified"
done
for what in $things; do
	times=$(count "$what")
	echo "$what: $times times"
	[ "$times" -gt 0 ] || fail "nothing was $what"
done
for what in $rarer; do
	echo "$what: $(count "$what") times"
done
[ ! -d $config ] || rmdir $config
[ -z "$arrays" ] || mdadm --quiet --stop /dev/md0 ||
	fail "md0 does not stop at the end"
for disk in $disks $members; do
	echo none >"/sys/block/$disk/queue/scheduler"
	read -r reads writes <"/sys/block/$disk/inflight"
	[ "$reads" = 0 ] && [ "$writes" = 0 ] ||
		fail "$disk has lost commands: $reads read, $writes write"
done
rmmod stream-iosched || fail "stream-iosched is in use though no disk has it"
echo "failures: $(count failures)"
[ "$(count failures)" -eq 0 ]
