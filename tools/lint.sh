#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Every check that needs no test to run, each with one line of result. With
# --fix: let the formatters rewrite the sources instead.
#
# With LINT_TOTALS=FILE the line "lint PASSED FAILED SKIPPED" is added there.
set -eu
cd "$(dirname "$0")/.."

bin=${VENV:-.venv}/bin

# Files that are, or could be, committed and match the patterns.
listed() {
	if [ -e .git ] && command -v git >/dev/null; then
		git ls-files --cached --others --exclude-standard -- "$@" |
			while IFS= read -r file; do
				[ -f "$file" ] && printf '%s\n' "$file"
			done | sort -u
	else
		local pattern

		for pattern; do
			find . -path ./build -prune -o -path ./.venv -prune -o \
				-path "*${pattern#\*}" -type f -print
		done | sort -u
	fi
}

mapfile -t c_files < <(listed '*.c' '*.h')
mapfile -t shell_files < <(
	listed '*.sh' .ci/run '*.bash' 'packaging/aur/*'
	grep -rlIE '^#!.*\b(ba)?sh\b' --exclude='*.sh' tests tools nbdkit \
		kernel packaging 2>/dev/null || true
)

if [ "${1-}" = --fix ]; then
	"$bin/clang-format" -i "${c_files[@]}"
	"$bin/ruff" check --fix .
	"$bin/ruff" format .
	exit
fi

passed=0
failed=0
skipped=0
# A check whose tool is missing ends with 77 and says what to install.
check() {
	local name=$1 output status=0

	shift
	output=$("$@" 2>&1) || status=$?
	case $status in
	0)
		printf 'ok      %s\n' "$name"
		passed=$((passed + 1))
		;;
	77)
		printf 'skipped %s: %s\n' "$name" "$output"
		skipped=$((skipped + 1))
		;;
	*)
		printf 'FAILED  %s\n%s\n' "$name" "$output"
		failed=$((failed + 1))
		;;
	esac
}

kernel_check() {
	check "$1" "$bin/python" tools/check_kernel.py "$2"
}

# Which files are not formatted; where and how is what make format shows.
formatted() {
	local file bad=

	for file; do
		"$bin/clang-format" --dry-run -Werror "$file" 2>/dev/null ||
			bad+="$file: not formatted; make format does it"$'\n'
	done
	printf '%s' "$bad"
	[ -z "$bad" ]
}

check "ruff check" "$bin/ruff" check --quiet .
check "ruff format" "$bin/ruff" format --quiet --check --diff .
check "mypy --strict" "$bin/mypy" --strict --no-error-summary streamsched tools packaging \
	bench/table.py bench/tables
check "clang-format" formatted "${c_files[@]}"
check "C rules, licence lines, includes" "$bin/python" tools/check_style.py
check "commit subjects" "$bin/python" tools/check_commits.py
check "shellcheck" "$bin/shellcheck" "${shell_files[@]}"
kernel_check "sparse, core/ and disk/" sparse-shared
kernel_check "sparse, the kernel modules" sparse-modules
kernel_check "checkpatch, core/, disk/ and kernel/" checkpatch

if [ -n "${LINT_TOTALS-}" ]; then
	echo "lint $passed $failed $skipped" >>"$LINT_TOTALS"
fi
[ "$failed" = 0 ]
