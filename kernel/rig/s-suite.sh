#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Inside the rig: a script of the suite S (docs/research/S-SUITE.md) on ext4.
# bench/tables/s_suite.py calls prepare, and in another shell work, with
#
#   SUITE    the suite's folder
#   FOLDER   that of the script in it; $IN/command.sh has the command
#   LIMIT_S  virtual seconds that it may take

# The files that the suite would write first, 500 MB each, but of holes that the
# disk need not keep: allocated, and read from the disk as others are.
prepare() {
	cat >/run/mke2fs.conf <<-'END'
		[defaults]
		blocksize = 4096
		inode_size = 256
		inode_ratio = 1048576
		[fs_types]
		ext4 = {
		features = has_journal,extent,huge_file,flex_bg,64bit,filetype,sparse_super,large_file,dir_index
		}
		s = {
		make_hugefiles = true
		hugefiles_dir = /files
		hugefiles_name = largefile
		hugefiles_digits = 1
		hugefiles_size = 500M
		num_hugefiles = 10
		zero_hugefiles = false
		}
	END
	MKE2FS_CONFIG=/run/mke2fs.conf mkfs.ext4 -q -T s -E nodiscard \
		-J size=64 "$DEV" 20G && mkdir -p /run/fs &&
		mount -o noinit_itable "$DEV" /run/fs &&
		ln /run/fs/files/largefile9 /run/fs/files/largefile_interfered0 ||
		exit 1
	echo 3 >/proc/sys/vm/drop_caches
}

# The suite knows a disk by its transport, which an emulated one has not. And fio
# has real time unless it is told otherwise. That is wrong where fio waits or
# measures; elsewhere it does not matter, and to read the clock takes most of the
# rig's own time.
make_programs() { # FOLDER
	cat >"$1/lsblk" <<-'END'
		#!/bin/sh
		case "$*" in *TRAN*) echo sata ;; *) exec /usr/bin/lsblk "$@" ;; esac
	END
	cat >"$1/fio" <<-'END'
		#!/bin/sh
		case "$*" in *-) cat >/tmp/job.$$ && exec </tmp/job.$$ ;; esac
		clock=
		! grep -Eqs "^ *(ramp_time|rate)=" /tmp/job.$$ || clock=--clocksource=clock_gettime
		case "$clock $*" in --*loops=*) clock="$clock --gtod_reduce=1" ;; esac
		PATH=${PATH#/tmp/bin:}
		exec fio $clock "$@"
	END
	chmod 755 "$1"/*
}

# By the suite's own configuration, but for its files and its disk. It makes
# /cgroup, but the rig's root is read-only.
work() {
	cp -a "$SUITE" /tmp/S && mkdir /tmp/bin /tmp/res || exit 1
	make_programs /tmp/bin
	export PATH=/tmp/bin:$PATH GROUP=blkio RES=/tmp/res
	{
		cat /tmp/S/def_config.sh
		echo "BASE_DIR=/run/fs/files DEVS=hdd0 HIGH_LEV_DEV=${DEV#/dev/}"
	} >"$HOME/.S-config.sh"
	sed -i 's|/cgroup|/run/cgroup|g' /tmp/S/fairness/*.sh \
		/tmp/S/bandwidth-latency/*.sh
	cd "/tmp/S/$FOLDER" &&
		timeout "$LIMIT_S" bash "$IN/command.sh" >"$OUT/log" 2>&1
	cat /tmp/res/* >"$OUT/results" 2>/dev/null
	exit 0
}
