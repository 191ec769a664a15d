#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Prove with CBMC what tests/cbmc/due.c says of the order of who is due: once
# for each party whose turn it may be, and for no turn; and what it says of the
# choice. Two minutes in all.
#
# It needs Debian's package cbmc, which Debian 13 has and Debian 12 has not:
# there it is that of Debian 13 which tests/cbmc/fetch.sh keeps.
# BUILD=DIR says where its files go, CASES which: "none 0 1 2 3 choice", and
# TREE=DIR names another tree with core/, compat/ and tests/cbmc/. run.sh --check
# only says whether CBMC is there.
set -eu
cd "$(dirname "$0")/../.."

found() {
	command -v cbmc && command -v goto-cc && command -v goto-instrument
} >/dev/null

found || PATH="$(tests/cbmc/fetch.sh --where 2>/dev/null || true):$PATH"
found || {
	echo "CBMC is missing: install the Debian package cbmc (from Debian 13" \
		"on), or run tests/cbmc/fetch.sh" >&2
	exit 1
}
[ "${1-}" != --check ] || exit 0

cd "${TREE:-.}"
build=${BUILD:-build/cbmc}
mkdir -p "$build"
failed=
for name in ${CASES:-none 0 1 2 3 choice}; do
	case $name in
	none) case=(-DNO_TURN) ;;
	choice) case=(-DCHOICE) ;;
	[0-3]) case=("-DTURN=$name") ;;
	*)
		echo "run.sh: CASES: no case $name; none, 0 to 3 and choice are" >&2
		exit 2
		;;
	esac
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
		"$build/due.gb" >"$build/$name.log" 2>&1; then
		echo "$name: proved"
		continue
	fi
	echo "$name: not so, see $build/$name.log:"
	grep FAILURE "$build/$name.log" || tail -n 3 "$build/$name.log"
	failed=1
done
[ -z "$failed" ]
