# SPDX-License-Identifier: GPL-2.0-only
#
# make run, make test, make lint, make bench; make help says what each does.

PYTHON ?= python3
VENV := .venv
export PYTHON VENV

# Where kernels, downloads and fonts are kept. Of matplotlib's folders the first
# is only for its settings, but if it cannot be made nothing is kept.
ifndef XDG_CACHE_HOME
XDG_CACHE_HOME := $(shell tools/cache.sh)
MPLCONFIGDIR ?= $(XDG_CACHE_HOME)/matplotlib
export XDG_CACHE_HOME MPLCONFIGDIR
endif

BIN := $(VENV)/bin
STAMP := $(VENV)/stamp

# What the installed package is made from.
SOURCES := meson.build pyproject.toml LICENSE $(wildcard README.md) \
	$(shell find compat core disk sim streamsched disks jobs man traces examples \
		-type f -not -path '*/__pycache__/*' 2>/dev/null)

.PHONY: help run test unit test-setup test-all fresh mutants lint format bench site deb deb-dkms repo upstream results blktests xfstests install regenerate clean
.DEFAULT_GOAL := help

help:
	@echo "make run        set up, the main comparison, the paper's Figure 3, a real trace"
	@echo "                (the first time 1 min, 3 if machine or net are slow; then 10 s)"
	@echo "make unit       the tests of the scheduling core alone, for who changes core/"
	@echo "                (4 min with its set-up; TESTS=FILE: only those of a file)"
	@echo "make test       all checks but the longest: lint, unit, property, golden, e2e,"
	@echo "                network server, stock kernel, packages, fuzz (an hour; the first"
	@echo "                time it also builds a kernel and fetches Debian roots)"
	@echo "make test-all   the same, longer; what is measured in real time; a kernel with"
	@echo "                checks; three stock kernels (3 h)"
	@echo "make fresh      make run and make test in bare Debian 12 and 13 roots, as root"
	@echo "                and as a user (long; tools/fresh.sh)"
	@echo "make regenerate what tests compare exactly, anew, after a change of a policy or"
	@echo "                a constant (3 min)"
	@echo "make mutants    put bugs in, one at a time, and see that tests notice (1 h)"
	@echo "make lint       formatting, types, our own rules, sparse, checkpatch (1 min)"
	@echo "make format     let clang-format and ruff rewrite the sources"
	@echo "make bench      speed of the simulator and of each policy"
	@echo "make site       the documents as web pages, in build/site/, with search and"
	@echo "                without the network (10 s)"
	@echo "make results    lists the measured tables of docs/: their commands, which are"
	@echo "                stale; WHAT=\"NAME ...\" measures"
	@echo "make blktests   BLKTESTS=DIR: the kernel's block layer tests under mq-deadline"
	@echo "                and stream, on a stock kernel (hours)"
	@echo "make xfstests   XFSTESTS=DIR: its file system tests, on emulated disks (hours)"
	@echo "make deb        the Debian packages, for this machine's suite, in build/ (1 min)"
	@echo "make deb-dkms   only streamsched-dkms, which needs no compiler"
	@echo "make repo       an apt repository of them, in build/repo/; REPO_KEY=KEY signs it"
	@echo "make upstream   a patch series for mainline Linux, in build/upstream/, and its"
	@echo "                checks (10 min; LINUX=DIR: against that source)"
	@echo "make install    set up $(VENV) with streamsched in it, nothing else"
	@echo "make clean      remove what make made"

# Prints a command of ours, and what that prints.
show = echo; echo '$$ streamsched $(1)'; $(BIN)/streamsched $(1)

run: $(STAMP)-package
	@$(call show,run direct-readers)
	@# Its exit status 1 says that a row differs from the paper's: a result.
	@$(call show,reproduce fig3) || [ $$? = 1 ]
	@$(call show,replay traces/pg-scan.blktrace.zst)

test: test-setup
	@tools/run_tests.sh

test-setup: $(STAMP)-dev
	@tools/setup.sh rig
	@tools/setup.sh nbdkit
	@tools/setup.sh lint
	@tools/setup.sh packages
	@tools/setup.sh stock
	@tools/setup.sh proof

# What depends on core/ alone, and needs no kernel, server or network.
unit: $(STAMP)-unit
	@for file in $(TESTS); do [ -e "$${file%%::*}" ] || \
		{ echo "make unit: TESTS=$$file: there is no such file" >&2; exit 2; }; done
	@$(BIN)/pytest --quiet --numprocesses auto --dist worksteal $(or $(TESTS),tests/core)

test-all: $(STAMP)-dev
	@tools/setup.sh rig kasan newest
	@tools/setup.sh lint
	@tools/setup.sh nbdkit
	@tools/setup.sh packages
	@tools/setup.sh stock-all
	@tools/setup.sh proof
	@tools/setup.sh chromium
	@STREAMSCHED_TESTS=all tools/run_tests.sh

regenerate: $(STAMP)-dev
	@UPDATE_GOLDEN=1 $(BIN)/pytest --quiet -n auto tests/core/test_golden.py tests/sim/test_golden_auto.py
	@UPDATE_DOCS=1 $(BIN)/pytest --quiet -n auto tests/house/test_docs.py tests/sim/test_calibrate.py
	@$(BIN)/python tools/results.py comparison reproduction validation yardsticks frontier
	@[ ! -d .git ] || git status --short tests/golden docs README.md

mutants: $(STAMP)-dev
	@$(BIN)/python tools/mutants.py

fresh:
	@nice -n 15 tools/fresh.sh

lint: $(STAMP)-dev
	@tools/setup.sh lint
	@tools/lint.sh

format: $(STAMP)-dev
	@tools/lint.sh --fix

bench: $(STAMP)-package
	@$(BIN)/python bench/bench.py

site: $(STAMP)-tools
	@tools/setup.sh site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html"

results: $(STAMP)-dev
	@$(BIN)/python tools/results.py $(WHAT)

blktests xfstests: $(STAMP)-package
	@tools/setup.sh stock
	@$(BIN)/python bench/table.py $@ --to docs/results/$@.md --force

deb:
	@packaging/deb.sh

deb-dkms:
	@packaging/deb.sh --dkms

repo:
	@packaging/repo.sh --check
	@packaging/deb.sh
	@packaging/repo.sh

upstream: $(STAMP)-dev
	@tools/setup.sh upstream
	@$(BIN)/python tools/upstream.py

install: $(STAMP)-package

# Each stamp says that a step was done, and depends on what it was done with.
$(STAMP)-tools: pyproject.toml tools/setup.sh tools/requirements.py
	@tools/setup.sh tools
	@touch $@

$(STAMP)-package: $(STAMP)-tools $(SOURCES)
	@tools/setup.sh package
	@touch $@

$(STAMP)-unit: $(STAMP)-package
	@tools/setup.sh unit
	@touch $@

$(STAMP)-dev: $(STAMP)-package
	@tools/setup.sh dev
	@tools/setup.sh fuzz
	@touch $@

clean:
	rm -rf build $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
