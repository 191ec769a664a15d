#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Inside the rig: real programs. bench/tables/ says which function prepares
# the disk $DEV, and which one, in another shell, then does the work and leaves its
# beginning and its end in $OUT/times.
#
#   TREE   the source tree that is copied
#   APART  so many times as far are data sets from each other (default: 1)
#
# and what stands at each program.

now() {
	cut -d' ' -f1 /proc/uptime
}

begin() {
	began=$(now)
}

end() {
	echo "$began $(now)" >"$OUT/times"
}

# Nothing of what is read may be in the page cache.
forget_pages() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

# ---- one file system ----

# A journal of the usual size, 1 GB, would be kept in memory as soon as it is
# encrypted. Inode tables must not be written while others measure.
make_one() {
	mkfs.ext4 -q -E nodiscard -J size=64 "$DEV" && mkdir -p /run/fs &&
		mount -o noinit_itable "$DEV" /run/fs &&
		mkdir /run/fs/a /run/fs/b /run/fs/c || exit 1
}

forget_one() {
	umount /run/fs && mount -o noinit_itable "$DEV" /run/fs || exit 1
	echo 3 >/proc/sys/vm/drop_caches
}

# ---- volumes ----

# Data sets of up to 40 GB lie 50 GB apart, as the paper's do. In one file system
# they would not: ext4 puts large files, and small ones that are written at about
# the same time, next to each other wherever their directories are
# (fs/ext4/mballoc.c). So each is in a volume of its own, as LVM makes them, which
# leaves requests with whoever sent them.
GAP_SECTORS=$((47683 * 2048))
VOLUME_SECTORS=$((38146 * 2048))

mount_volumes() {
	local volume

	for volume in /dev/mapper/data*; do
		mount -o noinit_itable "$volume" "/run/fs/${volume#*data}" || exit 1
	done
}

make_volumes() { # NUMBER
	local i

	for i in $(seq "$1"); do
		echo "0 $VOLUME_SECTORS linear $DEV" \
			"$(((i - 1) * GAP_SECTORS * ${APART:-1}))" |
			dmsetup create --noudevsync "data$i" && dmsetup mknodes &&
			mkfs.ext4 -q -E nodiscard -J size=64 "/dev/mapper/data$i" &&
			mkdir -p "/run/fs/$i" || exit 1
	done
	mount_volumes
}

forget_volumes() {
	umount /run/fs/* && mount_volumes
	forget_pages
}

# ---- grep ----

# For words that are nowhere, in two trees at once.
grep_both() { # TREE TREE
	local first second

	begin
	grep -r "no such words" "$1" &
	first=$!
	grep -r "no such words" "$2" &
	second=$!
	wait $first
	first=$?
	wait $second
	second=$?
	end
	# 1: nothing was found; 2: something could not be read.
	[ $first = 1 ] && [ $second = 1 ]
}

# In directories that ext4 puts apart.
prepare_two_greps() {
	make_one
	cp -r "$TREE" /run/fs/a/tree && cp -r "$TREE" /run/fs/b/tree || exit 1
	forget_one
}

prepare_greps() {
	make_volumes 2
	cp -r "$TREE" /run/fs/1/tree && cp -r "$TREE" /run/fs/2/tree || exit 1
	forget_volumes
}

# ---- Love, "Interactive kernel performance", tests 1 and 2 ----

prepare_love() {
	make_one
	cp -r "$TREE" /run/fs/a/tree || exit 1
	head -c 200M /dev/zero | tr '\0' x >/run/fs/b/file200 || exit 1
	head -c 256M /dev/zero | tr '\0' y >/run/fs/c/big || exit 1
	forget_one
}

# Timed, while somebody streams for two seconds already. What is written may be in
# the page cache for a second or so, not for the whole of the work.
beside() { # read|write COMMAND...
	local streamer

	echo 32000000 >/proc/sys/vm/dirty_background_bytes
	echo 64000000 >/proc/sys/vm/dirty_bytes
	RW=$1 python3 -I "$IN/streamer.py" &
	streamer=$!
	shift
	sleep 2
	kill -USR1 $streamer
	begin
	"$@" >/dev/null
	end
	kill $streamer
	wait $streamer
}

# ---- ProFTPD: four clients, each of which fetches a file of FTP_MB ----

proftpd_conf() {
	cat <<-EOF
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
	EOF
}

prepare_ftp() {
	local i

	make_volumes 4
	head -c "${FTP_MB}M" /dev/zero | tr '\0' x >/run/fs/1/file || exit 1
	for i in 2 3 4; do
		cp /run/fs/1/file "/run/fs/$i/file" || exit 1
	done
	forget_volumes
	mkdir -m 755 /run/proftpd && proftpd_conf >/run/proftpd/conf || exit 1
	proftpd -c /run/proftpd/conf || exit 1
	curl -sS -l --retry 5 --retry-connrefused -o /run/proftpd/list \
		ftp://127.0.0.1:2121/ && grep -qx 4 /run/proftpd/list || exit 1
	forget_pages
}

work_ftp() {
	local i

	begin
	for i in 1 2 3 4; do
		curl -sS -o /dev/null -w '%{size_download}\n' \
			"ftp://127.0.0.1:2121/$i/file" >"/run/proftpd/got$i" &
	done
	wait
	end
	for i in 1 2 3 4; do
		[ "$(cat "/run/proftpd/got$i")" = $((FTP_MB << 20)) ] || {
			echo "client $i did not get all of its file" >&2
			exit 1
		}
	done
}

# ---- PostMark: four, each with FILES of 500 bytes to 10 KB ----

# Computing takes no time in the rig, and nobody is interrupted: whoever need not
# wait for the disk would have done all of its work before the next one begins. So
# they must wait when 8 MB are not yet written.
prepare_postmark() {
	local i

	cp "$PAUSE" /run/postmark-pause.so || exit 1
	echo 4000000 >/proc/sys/vm/dirty_background_bytes
	echo 8000000 >/proc/sys/vm/dirty_bytes
	make_volumes 4
	for i in 1 2 3 4; do
		mkdir "/run/fs/$i/mail" || exit 1
		printf '%s\n' "set location /run/fs/$i/mail" "set number $FILES" \
			'set size 500 10000' "set transactions $TRANSACTIONS" \
			"set seed $i" run quit >"/run/mail$i"
	done
	forget_volumes
}

# The rig has less memory for the page cache than the files need, and which of them
# stay there would be chance. So all wait until everybody's files are there, and
# then none is in it.
work_postmark() {
	local i

	begin
	mkfifo /run/created /run/go && exec 3<>/run/created 4<>/run/go || exit 1
	for i in 1 2 3 4; do
		LD_PRELOAD=/run/postmark-pause.so postmark "/run/mail$i" \
			>"/run/said$i" 2>&1 &
	done
	for i in 1 2 3 4; do
		read -r <&3
	done
	forget_pages
	printf '\n\n\n\n' >&4
	wait
	end
	for i in 1 2 3 4; do
		! grep -m 1 Error "/run/said$i" >&2 || exit 1
		grep -q 'megabytes written' "/run/said$i" || exit 1
	done
}

# ---- clients of servers ----

# Each looks through the whole of its own source tree.
walk_trees() {
	local i

	begin
	for i in 0 1 2 3; do
		{
			# 1: nothing was found; 2: something could not be read.
			grep -r "no such words" "$TREES/$i"
			[ $? != 1 ] || now >"/run/end$i"
		} &
	done
	wait
	echo "$began" "$(sort -n /run/end?)" >"$OUT/trees"
	forget_pages
}

# Each makes COUNT small files beside its own source tree, and removes them.
make_files() { # COUNT
	local i

	for i in 0 1 2 3; do
		python3 -I "$IN/small-files.py" "$TREES/$i" "$1" >"$OUT/files$i" &
	done
	wait
	forget_pages
}

run_job() { # NAME
	fio --clocksource=clock_gettime --output-format=json+ \
		--output="$OUT/$1.json" "$IN/$1.fio" || exit 1
	forget_pages
}
