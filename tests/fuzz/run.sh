#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the fuzz targets with libFuzzer, ASan and UBSan and let them look for
# inputs that break an invariant. The inputs found to reach new code are kept
# in build/fuzz/ and begin the next run; tests/fuzz/corpus/ holds the first.
#
#   FUZZ_SECONDS=60 tests/fuzz/run.sh [core] [array] [trace] [wait]
#
# With FUZZ_TOTALS=FILE the line "fuzz PASSED FAILED SKIPPED" is added there.
# Without a clang that builds such targets all are skipped, and the line says
# which package is missing; run.sh --check only says whether there is one.
set -eu
cd "$(dirname "$0")/../.."

clang=${CLANG:-clang}
seconds=${FUZZ_SECONDS:-60}
out=build/fuzz
flags=(-g -O2 -std=gnu11 -Icompat -DSS_CHECKS -fno-strict-aliasing
	"-fsanitize=fuzzer,address,undefined" -fno-sanitize-recover=all)

sources() {
	case $1 in
	core) printf '%s\n' tests/fuzz/fuzz_core.c core/*.c core/*/*.c compat/*.c ;;
	array) printf '%s\n' tests/fuzz/fuzz_array.c core/*.c core/*/*.c compat/*.c ;;
	wait) printf '%s\n' tests/fuzz/fuzz_wait.c core/*.c core/*/*.c disk/*.c compat/*.c ;;
	trace) printf '%s\n' tests/fuzz/fuzz_trace.c sim/trace*.c ;;
	esac
}

can_build() {
	command -v "$clang" >/dev/null &&
		echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n)
			{ return 0 && d[n]; }' |
		"$clang" -fsanitize=fuzzer,address,undefined \
			-x c -o "$out/clang-check" - 2>/dev/null
}

build() {
	local files extra=()

	mapfile -t files < <(sources "$1")
	# Bytes choose events by their value, so comparisons tell libFuzzer
	# nothing about the core, and following them costs half the speed.
	if [ "$1" != trace ]; then
		extra=(-fno-sanitize-coverage=trace-cmp)
	fi
	"$clang" "${flags[@]}" "${extra[@]}" -o "$out/fuzz_$1" "${files[@]}"
}

# Its seconds: the core gets all, the others a quarter of them.
seconds_of() {
	case $1 in
	core) echo "$seconds" ;;
	*) echo $(((seconds + 3) / 4)) ;;
	esac
}

run() {
	mkdir -p "$out/corpus-$1"
	ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 \
		"$out/fuzz_$1" -max_total_time="$(seconds_of "$1")" \
		-max_len=2048 -timeout=10 -rss_limit_mb=1024 \
		-print_final_stats=1 -artifact_prefix="$out/$1-" \
		"$out/corpus-$1" "tests/fuzz/corpus/$1" >"$out/$1.log" 2>&1
}

number() {
	sed -n "s/^stat::$2: *//p" "$out/$1.log" | tail -n 1
}

report() {
	local edges

	edges=$(grep -o ' cov: [0-9]*' "$out/$1.log" | tail -n 1 | tr -dc 0-9)
	printf 'fuzz %-5s %9s runs, %6s/s, %5s edges covered' "$1" \
		"$(number "$1" number_of_executed_units)" \
		"$(number "$1" average_exec_per_sec)" "$edges"
}

failure() {
	local input

	input=$(sed -n 's/.*Test unit written to //p' "$out/$1.log" | tail -n 1)
	printf 'fuzz %-5s FAILED: ' "$1"
	grep -m 1 -E 'not so: |bug: |ERROR: |runtime error: ' "$out/$1.log" ||
		tail -n 3 "$out/$1.log"
	[ -n "$input" ] &&
		printf '  see it: FUZZ_VERBOSE=1 %s %s\n' "$out/fuzz_$1" "$input"
	printf '  the whole report: %s\n' "$out/$1.log"
}

mkdir -p "$out"
if [ "${1-}" = --check ]; then
	can_build
	exit
fi
if [ $# = 0 ]; then
	set -- core array trace wait
fi
if ! can_build; then
	echo "fuzz $* skipped: $clang with libFuzzer is missing; install the" \
		"Debian packages clang and libclang-rt-dev"
	[ -z "${FUZZ_TOTALS-}" ] || echo "fuzz 0 0 $#" >>"$FUZZ_TOTALS"
	exit 0
fi
passed=0
failed=0
for target; do
	build "$target"
done
declare -A job
for target; do
	echo "==> fuzzing $target for $(seconds_of "$target") s"
	run "$target" &
	job[$target]=$!
done
for target; do
	if wait "${job[$target]}"; then
		report "$target"
		echo ": nothing found"
		passed=$((passed + 1))
	else
		failure "$target"
		failed=$((failed + 1))
	fi
done
if [ -n "${FUZZ_TOTALS-}" ]; then
	echo "fuzz $passed $failed 0" >>"$FUZZ_TOTALS"
fi
[ "$failed" = 0 ]
