# SPDX-License-Identifier: GPL-2.0-only
#
# What the scripts of this folder share: where stock kernels are kept, and how
# a mistake is told. Sourced, not run.
# shellcheck shell=bash

stock=${XDG_CACHE_HOME:-${HOME-}/.cache}/streamsched/stock

say() {
	printf '==> %s\n' "$*" >&2
}

fail() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# need COMMAND PACKAGE
need() {
	command -v "$1" >/dev/null ||
		fail "$1 is missing: install the Debian package $2"
}

need_root() {
	[ "$(id -u)" = 0 ] ||
		fail "must run as root: it mounts and changes root directories"
}

[ -n "${XDG_CACHE_HOME:-${HOME-}}" ] ||
	fail "there is no home directory to keep stock kernels in: name a folder" \
		"with XDG_CACHE_HOME"

# The folder of the kernel $1, a release or a Debian suite.
find_tree() {
	local tree=$stock/$1

	[ -d "$tree/root" ] ||
		fail "there is no kernel $1 in $stock: get it with" \
			"kernel/qemu/fetch.sh SUITE (bookworm, trixie, sid)"
	realpath "$tree"
}
