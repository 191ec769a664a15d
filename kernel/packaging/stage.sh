#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Lay out a source tree in DEST from which the modules can be built anywhere:
# what the DKMS package installs, and what the rig builds from.
#
#   kernel/packaging/stage.sh DEST
set -eu

[ $# = 1 ] || {
	echo "usage: kernel/packaging/stage.sh DEST" >&2
	exit 2
}
dest=$1
root=$(dirname "$(realpath "$0")")/../..

mkdir -p "$dest/core/array" "$dest/core/policy" "$dest/core/stream" "$dest/disk" \
	"$dest/kernel/iosched" "$dest/kernel/hdd-emu"
cp -p "$root/kernel/Kbuild" "$dest/Kbuild"
cp -p "$root"/core/*.[ch] "$dest/core/"
cp -p "$root"/core/array/*.[ch] "$dest/core/array/"
cp -p "$root"/core/policy/*.[ch] "$dest/core/policy/"
cp -p "$root"/core/stream/*.[ch] "$dest/core/stream/"
cp -p "$root"/disk/*.[ch] "$dest/disk/"
cp -p "$root"/kernel/*.[ch] "$dest/kernel/"
cp -p "$root"/kernel/iosched/*.[ch] "$dest/kernel/iosched/"
cp -p "$root"/kernel/hdd-emu/*.[ch] "$dest/kernel/hdd-emu/"
