#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian 12 has no package of CBMC. Fetch Debian 13's, with the libraries that
# it needs, from the mirror that this machine uses, and print the folder of its
# programs. Nothing on this machine changes but the cache,
# ${XDG_CACHE_HOME:-$HOME/.cache}/streamsched/cbmc/ (100 MB).
#
#   fetch.sh          fetches it if it is not there yet
#   fetch.sh --where  fails if it is not there
set -eu -o pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/apt_sources.sh
. "$here/../../tools/apt_sources.sh"

kept=${XDG_CACHE_HOME:-$("$here/../../tools/cache.sh" 2>/dev/null)}/streamsched/cbmc
# Libraries of Debian 12 are too old for it.
PACKAGES="cbmc minisat libc6 libgcc-s1 libstdc++6"

fail() {
	printf 'fetch.sh: %s\n' "$*" >&2
	exit 1
}

# Runs a command; what it says is kept for when it fails.
logged() {
	"$@" >"$work/log" 2>&1 </dev/null ||
		fail "$1 failed: $(tail -n 4 "$work/log" | paste -s -d ' ')"
}

# A program as one of this machine, with its own libraries. What it starts, as
# goto-cc does the compiler, has those of this machine.
wrapper() { # PROGRAM
	cat <<-END
		#!/bin/sh
		root=\$(dirname "\$(realpath "\$0")")/../root
		for loader in "\$root"/usr/lib*/ld-linux*.so.*; do
			exec "\$loader" --library-path \\
				"\$(echo "\$root"/usr/lib/*-linux-gnu):\$root/usr/lib" \\
				"\$root/usr/bin/$1" "\$@"
		done
	END
}

fetch() {
	local package program

	echo "==> fetching Debian 13's CBMC (30 MB)" >&2
	# The words are packages.
	# shellcheck disable=SC2086
	debian_download trixie $PACKAGES
	mkdir -p "$work/new/root" "$work/new/bin"
	for package in "$work"/*.deb; do
		logged dpkg-deb -x "$package" "$work/new/root"
	done
	for program in cbmc goto-cc goto-instrument; do
		wrapper "$program" >"$work/new/bin/$program"
		chmod 755 "$work/new/bin/$program"
		logged "$work/new/bin/$program" --version
	done
	rm -rf "$kept"
	mv "$work/new" "$kept"
}

if [ "${1-}" = --where ]; then
	[ -x "$kept/bin/cbmc" ] || fail "CBMC is not in $kept"
elif [ $# != 0 ]; then
	fail "usage: fetch.sh [--where]"
elif [ ! -x "$kept/bin/cbmc" ]; then
	command -v apt-get >/dev/null ||
		fail "apt-get is missing: this machine has no packages of Debian"
	mkdir -p "$(dirname "$kept")"
	work=$(mktemp -d "$kept.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	fetch
fi
echo "$kept/bin"
