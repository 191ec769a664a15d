# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For scripts whose commands take long: run one with its output in a file, and
# show meanwhile, on standard error, how long it has run and how many of ninja's
# steps are done. On a terminal that is one line, which then goes; elsewhere it
# is a line now and then. To be sourced.

# How often it is shown where there is no terminal.
EVERY_S=${EVERY_S:-10}

watched() { # LOG COMMAND...
	local log=$1 status=0 ticker

	shift
	# What outlives a kill for a moment must hold neither a lock nor a pipe.
	tick "$log" 9>&- &
	ticker=$!
	"$@" </dev/null >"$log" 2>&1 || status=$?
	kill "$ticker" 2>/dev/null || true
	wait "$ticker" 2>/dev/null || true
	[ ! -t 2 ] || printf '\r\033[K' >&2
	return "$status"
}

tick() {
	local log=$1 started=$SECONDS each=$EVERY_S before='    ' after='\n' steps

	if [ -t 2 ]; then
		each=1 before='\r    ' after='\033[K'
	fi
	while sleep "$each" >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
		steps=$(tail -n 20 "$log" 2>/dev/null | tr '\r' '\n' |
			sed -n 's/^ *\[\([0-9]*\)\/\([0-9]*\)\] .*/, step \1 of \2/p' | tail -n 1)
		# shellcheck disable=SC2059 # how it begins and ends is a format
		printf "$before%d s%s$after" $((SECONDS - started)) "$steps" >&2
	done
}
