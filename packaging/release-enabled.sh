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
link=/etc/udev/rules.d/61-stream-array.rules

# Files of these names that somebody else has written are not ours.
is_ours() { # FILE
	[ ! -L "$1" ] && [ -f "$1" ] &&
		grep -qs -e '# Written by .streamsched enable.' \
			-e '"format": "streamsched-enabled"' "$1"
}

is_ours "$rule" || is_ours "$state" || exit 0
# In a chroot, the disks are another system's.
if [ -d /sys/module ] && ! ischroot 2>/dev/null; then
	if ! { command -v streamsched >/dev/null &&
		said=$(streamsched disable --all 2>&1); }; then
		# The command may be gone, or a process changes a scheduler.
		! grep -qs '"weights": true' "$state" ||
			systemctl disable --now streamsched-weights.service || true
		! grep -qs '"link": true' "$state" || rm -f "$link"
	fi
	[ -z "${said-}" ] || printf '%s\n' "$said" | sed "s/^/$package: /"
fi
for file in "$rule" "$state"; do
	is_ours "$file" || continue
	rm -f "$file"
	echo "$package: $file: removed"
done
rmdir "${state%/*}" /run/streamsched 2>/dev/null || true
udevadm control --reload 2>/dev/null || true
