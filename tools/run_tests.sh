#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What make test does once everything is set up: every layer, each to its end
# even when another has failed, then the totals. Each layer adds lines "LAYER
# PASSED FAILED SKIPPED" to one file; the last line printed is their sum.
set -eu
cd "$(dirname "$0")/.."

bin=${VENV:-.venv}/bin
totals=build/test-totals.txt
mkdir -p build
: >"$totals"

failed=
echo "==> lint: formatting, types, the project's own rules, sparse, checkpatch (about 40 s)"
LINT_TOTALS=$totals tools/lint.sh || failed=1

echo "==> pytest: unit, property, golden, end-to-end and network server tests"
CI=1 PYTEST_TOTALS=$totals "$bin/pytest" --numprocesses auto --dist worksteal \
	--quiet || failed=1

# The kernel's tests once more, on the kernel with checks and on the newest.
if [ "${STREAMSCHED_TESTS-}" = all ]; then
	for variant in kasan newest; do
		echo "==> pytest: the kernel tests on the rig's $variant kernel"
		CI=1 RIG_VARIANT=$variant PYTEST_TOTALS=$totals "$bin/pytest" \
			--numprocesses auto --dist worksteal --quiet tests/kernel/test_kernel_stream.py \
			tests/kernel/test_kernel_hdd_emu.py || failed=1
	done
fi

FUZZ_TOTALS=$totals tests/fuzz/run.sh || failed=1

echo
"$bin/python" tools/print_totals.py "$totals" || failed=1
[ -z "$failed" ]
