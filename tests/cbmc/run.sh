#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Prove with CBMC what tests/cbmc/due.c says of the order of who is due: once
# for each party whose turn it may be, and for no turn. Two minutes in all.
#
# It needs Debian's package cbmc, which Debian 13 has and Debian 12 has not.
# BUILD=DIR says where its files go, and TURNS which turns: "none 0 1 2 3".
set -eu
cd "$(dirname "$0")/../.."

build=${BUILD:-build/cbmc}
mkdir -p "$build"
failed=
for turn in ${TURNS:-none 0 1 2 3}; do
	case=(-DNO_TURN)
	if [ "$turn" != none ]; then
		case=("-DTURN=$turn")
	fi
	goto-cc "${case[@]}" -I tests/cbmc -I compat -o "$build/all.gb" \
		tests/cbmc/due.c
	# When a turn is over may be anything, too.
	goto-instrument --remove-function-body ss_turn_is_over \
		"$build/all.gb" "$build/cut.gb" >"$build/instrument.log"
	goto-instrument --generate-function-body ss_turn_is_over \
		--generate-function-body-options nondet-return \
		"$build/cut.gb" "$build/due.gb" >>"$build/instrument.log"
	if cbmc --unwind 9 --unwinding-assertions --no-standard-checks \
		--max-field-sensitivity-array-size 8 --slice-formula \
		"$build/due.gb" >"$build/turn-$turn.log" 2>&1; then
		echo "turn $turn: proved"
		continue
	fi
	echo "turn $turn: not so, see $build/turn-$turn.log:"
	grep FAILURE "$build/turn-$turn.log" || tail -n 3 "$build/turn-$turn.log"
	failed=1
done
[ -z "$failed" ]
