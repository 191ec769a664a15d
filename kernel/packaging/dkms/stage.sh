#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Lay out in DEST what the package installs as /usr/src/streamsched-VERSION:
# the modules' sources with all that DKMS, or make by hand, needs to build
# them. dkms.conf is not among it: it gets the version (see packaging/debian).
#
#   kernel/packaging/dkms/stage.sh DEST
set -eu

[ $# = 1 ] || {
	echo "usage: kernel/packaging/dkms/stage.sh DEST" >&2
	exit 2
}
here=$(dirname "$(realpath "$0")")

"$here/../stage.sh" "$1"
cp -p "$here/Makefile" "$here/../btf/private-headers.sh" "$1/"
