#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the modules for a stock kernel (fetch.sh), with its own headers and its
# own distribution's compiler, as DKMS would: into the folder DEST, where the
# modules are afterwards. Prints what make prints.
#
#   build.sh KERNEL DEST [MAKE ARGUMENT...]     for example W=1, or C=2
set -eu -o pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=/dev/null
. "$here/common.sh"

[ $# -ge 2 ] || fail "usage: build.sh KERNEL DEST [MAKE ARGUMENT...]"
release=$(basename "$(find_tree "$1")")
dest=$2
shift 2
"$here/../packaging/stage.sh" "$dest"
cp "$here/../packaging/btf/private-headers.sh" "$dest/"
dest=$(realpath "$dest")
at=/usr/src/streamsched
"$here/inside.sh" --tools --bind "$dest:$at" "$release" \
	"$at/private-headers.sh" "$release" "$at/kernel/private.h"
# The headers of Debian's 7.2 lack a script that the Makefile asks whether
# sparse works, and then sparse is not run: it does work.
# shellcheck disable=SC2016 # for the shell inside
exec "$here/inside.sh" --tools --bind "$dest:$at" "$release" sh -c '
	check=$(realpath "/lib/modules/$0/source/scripts")/checker-valid.sh
	if [ ! -e "$check" ]; then
		printf "#!/bin/sh\necho 1\n" >"$check"
		chmod +x "$check"
	fi
	exec make -C "/lib/modules/$0/build" "$@" modules' \
	"$release" "M=$at" "$@"
