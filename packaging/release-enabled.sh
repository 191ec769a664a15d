#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# What the packages of all distributions run before they go: nothing stays
# enabled that `streamsched enable` has enabled, and no file of it is left.
#
#   release-enabled PACKAGE
set -e

package=$1
rule=/etc/udev/rules.d/99-streamsched.rules
state=/var/lib/streamsched/enabled.json

[ -e "$rule" ] || [ -e "$state" ] || exit 0
# In a chroot, the disks are another system's.
if [ -d /sys/module ] && ! ischroot 2>/dev/null; then
	if command -v streamsched >/dev/null; then
		streamsched disable --all 2>&1 | sed "s/^/$package: /" || true
	elif grep -qs '"weights": true' "$state"; then
		systemctl disable --now streamsched-weights.service || true
	fi
fi
# The command may be gone, or have failed.
for file in "$rule" "$state"; do
	[ -e "$file" ] || continue
	rm -f "$file"
	echo "$package: $file: removed"
done
rmdir "${state%/*}" /run/streamsched 2>/dev/null || true
udevadm control --reload 2>/dev/null || true
