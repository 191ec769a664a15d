#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Prints the folder for what is kept between runs: kernels of the tests,
# downloads of pip, fonts of matplotlib. It is ~/.cache, or build/cache if
# that cannot be written: no home directory, somebody else's, read-only.
set -eu
cd "$(dirname "$0")/.."

for place in .cache/streamsched .cache .; do
	[ -n "${HOME-}" ] && [ -d "$HOME/$place" ] || continue
	[ ! -w "$HOME/$place" ] || usable=yes
	break
done
if [ -n "${usable-}" ]; then
	echo "$HOME/.cache"
else
	echo "==> ${HOME:-the home directory, which HOME does not name,} cannot be" \
		"written: what is kept between runs goes to build/cache" >&2
	echo "$PWD/build/cache"
fi
