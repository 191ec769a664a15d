#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# What the packages streamsched-dkms of all distributions run before they go:
#
#   release-disks remove    what `streamsched enable` did is undone (release-enabled);
#                           disks that use the scheduler get another one, and
#                           the modules are unloaded: else the disks would stay
#                           on a module that no package has, until the next boot
#   release-disks upgrade   the loaded modules are left alone
set -e

say() {
	echo "streamsched-dkms: $*"
}

# In a chroot, the running kernel and the disks are another system's.
is_own_kernel() {
	[ -d /sys/module ] && ! ischroot
}

# An attached array keeps the module loaded.
detach_arrays() {
	for array in /sys/kernel/config/stream-array/*; do
		[ -d "$array" ] || continue
		echo 0 2>/dev/null >"$array/attached" || true
		if rmdir "$array" 2>/dev/null; then
			say "array ${array##*/}: its disks are no longer coordinated"
		fi
	done
}

# Write to sysfs without a message of the shell's own; false: it is refused.
choose() { # SCHEDULER FILE
	{ echo "$1" >"$2"; } 2>/dev/null && grep -qsF "[$1]" "$2"
}

switch_disks() {
	for file in /sys/block/*/queue/scheduler; do
		grep -qsF '[stream]' "$file" || continue
		disk=${file#/sys/block/}
		disk=${disk%%/*}
		if choose mq-deadline "$file" || choose bfq "$file" ||
			choose none "$file"; then
			say "$disk: its scheduler is now $(sed 's/.*\[\(.*\)\].*/\1/' "$file")" \
				"instead of stream"
		else
			say "$disk: its scheduler stays stream until the next boot:" \
				"no other one could be chosen"
		fi
	done
}

unload() { # MODULE WHO
	[ -d "/sys/module/$(echo "$1" | tr - _)" ] || return 0
	if rmmod "$1" 2>/dev/null; then
		say "module $1: unloaded"
	else
		say "module $1: stays loaded until the next boot: $2 in use"
	fi
}

case $1 in
remove)
	# First, for its rule would give disks back to the scheduler.
	"$(dirname "$0")/release-enabled" streamsched-dkms
	if is_own_kernel; then
		detach_arrays
		switch_disks
		unload stream-iosched "it is"
		unload hdd-emu "an emulated disk is"
	fi
	;;
upgrade | deconfigure)
	if is_own_kernel && [ -d /sys/module/stream_iosched ]; then
		say "disks keep the module that is loaded;" \
			"another one is used from the next boot on"
	fi
	;;
esac
