#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Boot a stock kernel (fetch.sh) under qemu's software emulation with two
# processors, run a script in its system as root, and end with the script's
# exit status. What the script changes is gone afterwards.
#
#   boot.sh [--with DIR] [--share DIR] [--memory MB] [--timeout S]
#           [--start S] [--console FILE] [--counted] [--alone MODULES]
#           KERNEL SCRIPT [QEMU ARGUMENT...]
#
# --with    with what a call of inside.sh left in this folder (its --layer);
#           several are laid above each other, the last one uppermost
# --share   a folder that is at /share there, and can be written
# --timeout for all of it (default 300)
# --start   how long until the script starts (default 240): a machine in which
#           it has not is stopped and booted again, three times at most. Under
#           software emulation a stock kernel was seen to hang in its own boot,
#           before anything of ours is there.
# --console the kernel's messages go there (default: stderr, when it fails)
# --counted one processor, and its clock counts instructions, one a nanosecond:
#           what is measured by it does not depend on what else this machine does
# --alone   with these modules (NAME:PARAMETER=VALUE...) and busybox only: the machine can
#           be suspended, which 9p does not survive. The script, which is
#           busybox's sh, is there at /script, and nothing of the system.
#
# The exit status is also 125 when the kernel warned of something, whatever
# the script said, and 124 when the time was over or the machine stopped.
set -eu -o pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=/dev/null
. "$here/common.sh"

# What a sound kernel does not say.
TROUBLE='WARNING:|BUG:|Oops|general protection|Call Trace|blocked for more than|lockup|detected stall|self-detected|UBSAN|refcount_t|list_(add|del) corruption|Kernel panic'

# How often a machine is booted whose script does not start.
TRIES=3

# The kernel's own watchdogs measure time; where other programs have the
# processors it passes without anything being wrong.
# But a kernel that has gone wrong stops at once.
# Nor is the timer broken when it does not tick in time (no_timer_check).
CHECKS="no_timer_check rcupdate.rcu_cpu_stall_timeout=300 sysctl.kernel.watchdog_thresh=60
	sysctl.kernel.hung_task_timeout_secs=600 oops=panic"

usage() {
	fail "usage: boot.sh [--with DIR] [--share DIR] [--memory MB]" \
		"[--timeout S] [--start S] [--console FILE] [--counted]" \
		"[--alone MODULES] KERNEL SCRIPT [QEMU ARGUMENT...]"
}

# A ram disk with what it takes to reach the system's files, which stay on
# this machine: modules, and a busybox to load them.
make_initramfs() {
	local module name load=$work/initramfs/load

	mkdir -p "$work/initramfs"/{bin,modules,dev,proc,lower,rw,new}
	cp "$root/bin/busybox" "$work/initramfs/bin/"
	modprobe -d "$root" -S "$release" --show-depends -a \
		virtio_pci 9pnet_virtio 9p overlay |
		awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/modules"
	while IFS= read -r module; do
		name=$(basename "$module")
		case $name in
		*.xz) xz -dc "$module" ;;
		*.zst) zstd -dcq "$module" ;;
		*) cat "$module" ;;
		esac >"$work/initramfs/modules/${name%.ko*}.ko"
		echo "insmod /modules/${name%.ko*}.ko"
	done <"$work/modules" >"$load"
	cat - "$load" >"$work/initramfs/init" <<-'END'
		#!/bin/busybox sh
		set -e
		/bin/busybox --install -s /bin
		mount -t devtmpfs devtmpfs /dev
		mount -t proc proc /proc
	END
	cat >>"$work/initramfs/init" <<-'END'
		options=trans=virtio,version=9p2000.L,msize=262144
		mount -t 9p -o $options,ro,cache=loose system /lower
		mount -t tmpfs -o size=80% tmpfs /rw
		mkdir /rw/upper /rw/work
		mount -t overlay -o lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work overlay /new
		mkdir -p /new/control /new/share
		mount -t 9p -o $options control /new/control
		mount -t 9p -o $options share /new/share
		umount /proc
		mount --move /dev /new/dev
		exec switch_root /new /bin/sh /control/start
	END
	chmod +x "$work/initramfs/init"
	(cd "$work/initramfs" && find . | cpio -o -H newc --quiet -R 0:0) \
		>"$work/initramfs.cpio"
}

# The same with all in it that the script may use; what it prints comes by the
# second serial line, its exit status as that line's last one.
make_initramfs_alone() {
	local word parameters module options name load=$work/initramfs/load

	mkdir -p "$work/initramfs"/{bin,modules,dev,proc,sys,tmp}
	cp "$root/bin/busybox" "$work/initramfs/bin/"
	cp "$script" "$work/initramfs/script"
	# The words are modules.
	# shellcheck disable=SC2086
	for word in $alone; do
		modprobe -d "$root" -S "$release" --show-depends "${word%%:*}" |
			awk '$1 == "insmod" { print $2 }' >>"$work/modules"
		parameters=${word#"${word%%:*}"}
		sed -i "\$ s/\$/${parameters//:/ }/" "$work/modules"
	done
	while read -r module options; do
		name=$(basename "$module")
		name=${name%.ko*}
		case $module in
		*.xz) xz -dc "$module" ;;
		*.zst) zstd -dcq "$module" ;;
		*) cat "$module" ;;
		esac >"$work/initramfs/modules/$name.ko"
		echo "insmod /modules/$name.ko $options"
	done < <(awk '!seen[$1]++' "$work/modules") >"$load"
	{
		cat <<-'END'
			#!/bin/busybox sh
			/bin/busybox --install -s /bin
			mount -t devtmpfs devtmpfs /dev
			mount -t proc proc /proc
			mount -t sysfs sysfs /sys
		END
		cat "$load"
		cat <<-'END'
			stty -F /dev/ttyS1 raw
			{
				echo started
				sh /script 2>&1
				echo "status $?"
			} >/dev/ttyS1 </dev/null
			sync
			poweroff -f
		END
	} >"$work/initramfs/init"
	chmod +x "$work/initramfs/init"
	(cd "$work/initramfs" && find . | cpio -o -H newc --quiet -R 0:0) \
		>"$work/initramfs.cpio"
}

# From the serial line, what other boots leave in the folder control.
split_line() {
	local line=$work/line

	[ -f "$line" ] || return 0
	sed '1d; $ { /^status [0-9]*$/d }' "$line" >"$work/control/output"
	sed -n '$ s/^status \([0-9]*\)$/\1/p' "$line" >"$work/control/status"
	[ -s "$work/control/status" ] || rm "$work/control/status"
}

has_started() {
	[ -f "$work/control/started" ] || [ -s "$work/line" ]
}

# What the guest's process 1 does.
make_control() {
	mkdir -p "$work/control"
	cp "$script" "$work/control/script"
	chmod +x "$work/control/script"
	cat >"$work/control/start" <<-'END'
		export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
		export HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive INITRD=No
		mount -t proc proc /proc
		mount -t sysfs sysfs /sys
		mount -t debugfs debugfs /sys/kernel/debug
		mount -t tmpfs tmpfs /tmp
		mount -t tmpfs tmpfs /run
		ln -s /proc/self/fd /dev/fd
		mkdir -p /dev/pts /dev/shm
		mount -t devpts devpts /dev/pts
		mount -t tmpfs tmpfs /dev/shm
		: >/control/started
		# A session of its own, or no shell in it may have job control.
		setsid /control/script >/control/output 2>&1 </dev/null
		echo $? >/control/status
		sync
		dmesg >/control/dmesg
		echo o >/proc/sysrq-trigger
		# No program can be started any more.
		while :; do :; done
	END
}

# One boot, to the end of the machine; it fails when the script did not start
# in time and the machine had to be stopped.
run_qemu() {
	local begun=$SECONDS left=$((limit > SECONDS ? limit - SECONDS : 1))
	local processors=(-accel "tcg,thread=multi" -smp 2) folders=()

	[ -z "$counted" ] ||
		processors=(-accel "tcg,thread=single" -icount "shift=0,sleep=off")
	[ -n "$alone" ] || folders=(
		-virtfs "local,path=$root,mount_tag=system,security_model=none,readonly=on,multidevs=remap"
		-virtfs "local,path=$work/control,mount_tag=control,security_model=none"
		-virtfs "local,path=$share,mount_tag=share,security_model=none"
		-device virtio-rng-pci)
	timeout --foreground "$left" qemu-system-x86_64 "${processors[@]}" \
		-cpu Nehalem -m "$memory" -nodefaults -no-user-config \
		-display none -no-reboot -serial "file:$work/console" \
		${alone:+-serial "file:$work/line"} \
		-kernel "$image" -initrd "$work/initramfs.cpio" \
		-append "console=ttyS0 panic=-1 printk.time=1 mitigations=off ${CHECKS//[[:space:]]/ }" \
		"${folders[@]}" "$@" >"$work/qemu" 2>&1 </dev/null &
	qemu=$!
	trap 'kill "$qemu" 2>/dev/null || true' EXIT
	ended=0
	while ! has_started && kill -0 "$qemu" 2>/dev/null; do
		if [ $((SECONDS - begun)) -ge "$start" ]; then
			kill "$qemu"
			wait "$qemu" || true
			return 1
		fi
		sleep 0.2
	done
	wait "$qemu" || ended=$?
}

run_qemu_until_started() {
	local try

	for ((try = 1; try <= TRIES; try++)); do
		! run_qemu "$@" || return 0
		tail -n 5 "$work/console" >&2 || true
		say "kernel $release did not come to the script within $start s" \
			"(boot $try of $TRIES, its last words are above)"
	done
	stopped "kernel $release did not come to the script in any of $TRIES boots"
}

# The machine did not come to the end of the script.
stopped() {
	echo "boot.sh: $*" >&2
	exit 124
}

# What the kernel complained of; not 0 when it did not.
trouble() {
	grep -q -E "$TROUBLE" "$work/console" || return
	grep -E -A 30 "$TROUBLE" "$work/console" | head -n 120 >&2 || true
}

# In the mount namespace of inside.sh, which gives $STOCK_ROOT.
boot() {
	root=${STOCK_ROOT:?}
	image=$root/boot/vmlinuz-$release
	[ -f "$image" ] || image=$root/lib/modules/$release/vmlinuz
	[ -f "$image" ] || fail "there is no vmlinuz of $release in $root"
	if [ -n "$alone" ]; then
		mkdir -p "$work/control"
		make_initramfs_alone
	else
		make_initramfs
		make_control
	fi
	run_qemu_until_started "$@"
	[ -z "$alone" ] || split_line
	[ ! -f "$work/control/output" ] || cat "$work/control/output"
	[ -z "$console" ] || cp "$work/console" "$console"
	if [ ! -f "$work/control/status" ]; then
		trouble || tail -n 40 "$work/console" >&2
		cat "$work/qemu" >&2
		[ "$ended" != 124 ] ||
			stopped "kernel $release was not done after $limit s (its words are above)"
		stopped "kernel $release stopped before the script ended (its words are above)"
	fi
	if trouble; then
		echo "boot.sh: kernel $release warned (its words are above)" >&2
		exit 125
	fi
	exit "$(cat "$work/control/status")"
}

if [ -n "${STOCK_BOOT-}" ]; then
	eval "$STOCK_BOOT"
	unset STOCK_BOOT
	boot "$@"
fi

layers=()
share=
memory=1024
limit=300
start=240
console=
counted=
alone=
while [ $# -gt 0 ]; do
	case $1 in
	--with | --share | --memory | --timeout | --start | --console | --alone)
		[ $# -ge 2 ] || usage
		case $1 in
		--with) layers+=(--with "$2") ;;
		--share) share=$2 ;;
		--memory) memory=$2 ;;
		--timeout) limit=$2 ;;
		--start) start=$2 ;;
		--console) console=$2 ;;
		--alone) alone=$2 ;;
		esac
		shift
		;;
	--counted) counted=yes ;;
	-*) usage ;;
	*) break ;;
	esac
	shift
done
[ $# -ge 2 ] || usage
need qemu-system-x86_64 qemu-system-x86
need cpio cpio
need modprobe kmod
release=$(basename "$(find_tree "$1")")
script=$(realpath "$2")
shift 2
[ -f "$script" ] || fail "$script is no file: a script to run is needed"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
share=${share:-$work/share}
mkdir -p "$share"
share=$(realpath "$share")
STOCK_BOOT=$(declare -p work release script share memory limit start console counted alone) \
	"$here/inside.sh" "${layers[@]}" --outside "$release" \
	"$(realpath "$0")" "$@"
