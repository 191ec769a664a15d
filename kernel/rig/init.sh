#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The rig's first process. The root file system is the host's, read-only. The
# kernel was started, as a process of the host, in the rig's folder, which holds
#
#   files/    what the script may read ($IN)
#   out/      what it leaves ($OUT)
#   programs/ what comes first in PATH
#   modules/  modules; those that the file load names are loaded, in order
#   show      folders of the host to be seen though a tmpfs hides them
#   env       variables, as shell assignments, and mode, run's argument
#   run       kernel/rig/run.c, compiled
#   script    what to run
#
# run tells the host through the same folder how it went.
set -u
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

# Whoever ends here without having run the script shows why on the console;
# the kernel panics when its first process ends.
die() {
	echo "rig: $*" >/dev/kmsg
	exit 1
}

mount -t proc proc /proc || die "cannot mount /proc"
mount -t sysfs sysfs /sys || die "cannot mount /sys"
[ -c /dev/null ] || mount -t devtmpfs dev /dev || die "cannot mount /dev"
mkdir -p /dev/shm /dev/pts
mount -t devpts devpts /dev/pts 2>/dev/null || :
mount -t debugfs debugfs /sys/kernel/debug || die "cannot mount debugfs"
mount -t tracefs tracefs /sys/kernel/tracing || die "cannot mount tracefs"
mount -t configfs configfs /sys/kernel/config || die "cannot mount configfs"

# To the host this is the kernel's own working directory.
mount -t tmpfs run /run || die "cannot mount a tmpfs"
mkdir /run/rig /run/home /run/lock
# By the old system call: the new one takes no path without a name (Debian 13).
LIBMOUNT_FORCE_MOUNT2=always mount -t hostfs -o /proc/self/cwd rig /run/rig ||
	die "cannot mount its folder"
cd /run/rig || die "cannot enter /run/rig"
for folder in /tmp /var/tmp /mnt /dev/shm; do
	[ ! -d $folder ] || mount -t tmpfs -o mode=1777 tmp $folder ||
		die "cannot mount a tmpfs on $folder"
done
export HOME=/run/home TMPDIR=/tmp LANG=C.UTF-8 IN=/run/rig/files \
	OUT=/run/rig/out MODULES=/run/rig/modules
# There is no udev; device-mapper's programs would wait for it.
export DM_DISABLE_UDEV=1
# What the kernel did not know of its command line is in the environment.
unset mem uml_dir umid

# Folders of the host that a tmpfs hides now, such as the caller's own.
while read -r folder; do
	mkdir -p "$folder"
	LIBMOUNT_FORCE_MOUNT2=always mount -t hostfs -o "ro,$folder" host "$folder" ||
		die "cannot mount $folder"
done <show

while read -r module; do
	insmod "modules/$module" ||
		die "the module $module does not load (the reason is above)"
done <load

# shellcheck source=/dev/null
. ./env
PATH=/run/rig/programs:$PATH
# shellcheck disable=SC2154 # env sets mode
exec ./run "$mode"
