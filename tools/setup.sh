#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What make needs before it can run anything: one step per call, each a line
# on the terminal. What a step did is not done again while its inputs stay.
#
#   tools/setup.sh tools    a virtual environment with the build's tools in it
#   tools/setup.sh package  streamsched itself, compiled, in that environment
#   tools/setup.sh unit     what the tests of core/ need in it
#   tools/setup.sh dev      test and lint tools in it, and all of streamsched's extras
#   tools/setup.sh plots    matplotlib in it
#   tools/setup.sh site     mkdocs-material in it
#   tools/setup.sh chromium the browser that tests of reports open pages in
#   tools/setup.sh fuzz     a clang that can build fuzz targets
#   tools/setup.sh lint     the kernel's checkers: sparse and checkpatch
#   tools/setup.sh proof    the model checker CBMC
#   tools/setup.sh upstream what compiles and checks a part of a kernel
#   tools/setup.sh nbdkit   the nbdkit plugin, and what its tests run
#   tools/setup.sh applications  real programs that are measured (docs/research/APPLICATIONS.md)
#   tools/setup.sh servers  servers that are measured (docs/research/SERVERS.md)
#   tools/setup.sh s-suite  the benchmark suite S (docs/research/S-SUITE.md)
#   tools/setup.sh packages  what builds and checks packages (packaging/)
#   tools/setup.sh stock    Debian 12's kernel, and what boots it (kernel/qemu)
#   tools/setup.sh stock-all  those of Debian 13 and sid too, and what checks modules
#   tools/setup.sh rig [VARIANT...]  the kernels that tests boot (docs/internals/RIG.md)
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/progress.sh
. tools/progress.sh

python=${PYTHON:-python3}
venv=${VENV:-.venv}

say() {
	printf '==> %s\n' "$*" | fold -s -w 80
}

fail() {
	printf 'streamsched: %s\n' "$*" >&2
	exit 1
}

# Install Debian packages where we may. Only for the test layers: make run
# never changes the machine.
apt_install() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
	say "installing the Debian packages $*"
	export DEBIAN_FRONTEND=noninteractive
	# Another installation may be at work: wait for it.
	watched build/apt.log apt-get install -qq -y -o DPkg::Lock::Timeout=600 "$@" || {
		watched build/apt.log apt-get update -qq &&
			watched build/apt.log apt-get install -qq -y \
				-o DPkg::Lock::Timeout=600 "$@"
	}
}

# The requirements of these kinds, once for each text they have had.
install_requirements() {
	local stamp="$venv/requirements-$1.txt" new="$venv/requirements-$1.new"

	"$venv/bin/python" tools/requirements.py "$@" >"$new"
	if cmp -s "$new" "$stamp"; then
		rm "$new"
		return
	fi
	say "installing $(sed 's/[<>=].*//' "$new" | sort -u | paste -s -d ' ')"
	# Python compiles a module when it is first used; all of them would
	# take as long again as the rest.
	if ! watched build/pip.log "$venv/bin/python" -m pip install --quiet \
		--no-compile --retries 2 --disable-pip-version-check -r "$new"; then
		grep -v 'Retrying' build/pip.log | tail -n 3 >&2
		fail "pip could not install these (its last words are above);" \
			"it needs the network, or a configured package index"
	fi
	mv "$new" "$stamp"
}

make_venv() {
	"$venv/bin/python" -c 'import pip' 2>/dev/null && return
	command -v "$python" >/dev/null ||
		fail "$python is missing: install the Debian package python3"
	"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
		fail "$("$python" --version) is too old, Python 3.11 or later is" \
			"needed: install the Debian package python3 (Debian 12)" \
			"or name another with PYTHON=..."
	"$python" -c 'import ensurepip, venv' 2>/dev/null ||
		fail "$python cannot make virtual environments:" \
			"install the Debian package python3-venv"
	say "making the virtual environment $venv"
	rm -rf "$venv"
	"$python" -m venv "$venv" || fail "$python -m venv failed (see above)"
}

setup_tools() {
	"${CC:-cc}" -E -x c /dev/null >/dev/null 2>&1 ||
		fail "there is no C compiler: install the Debian package gcc"
	printf '#include <stdio.h>\n#include <linux/types.h>\n' |
		"${CC:-cc}" -E -x c - >/dev/null 2>&1 ||
		fail "the C library's headers are missing:" \
			"install the Debian package libc6-dev"
	make_venv
	[ -f "$("$venv/bin/python" -c 'import sysconfig as s
print(s.get_path("include"))')/Python.h" ] ||
		fail "Python's headers are missing:" \
			"install the Debian package python3-dev"
	install_requirements build run
}

setup_package() {
	# meson refuses options that came after it was first set up here.
	grep -qs '"checks"' build/python/meson-info/intro-buildoptions.json ||
		rm -rf build/python
	say "compiling and installing streamsched (10 s to 1 min, later less)"
	# pip shows what ninja prints only with --verbose.
	PATH="$(realpath "$venv")/bin:$PATH" watched build/package.log \
		"$venv/bin/python" -m pip install --verbose \
		--disable-pip-version-check --no-build-isolation --no-deps \
		--force-reinstall --config-settings=build-dir=build/python \
		--config-settings=setup-args=-Dwerror=true \
		--config-settings=setup-args=-Dchecks="${CHECKS:-false}" . || {
		sed -n '/FAILED: \|ERROR: \|error: /,$p' build/package.log | head -n 40 >&2
		fail "the package could not be built (the first messages are above," \
			"all are in build/package.log)"
	}
	(cd "$venv" && bin/python -c 'import streamsched._core') ||
		fail "the extension module does not load (Python's message is above)"
}

# Some 360 MB: make test alone does not install it.
setup_chromium() {
	command -v chromium >/dev/null || apt_install chromium ||
		say "without the Debian package chromium, tests of reports in a" \
			"browser are skipped"
}

# Where there is none, the fuzz layer is skipped and says so.
setup_fuzz() {
	tests/fuzz/run.sh --check && return
	apt_install clang libclang-rt-dev || true
	tests/fuzz/run.sh --check ||
		say "without a clang that has libFuzzer, the fuzz targets are skipped;" \
			"install the Debian packages clang and libclang-rt-dev"
}

# Where they cannot be had, their lines of make lint are skipped and say so.
setup_lint() {
	command -v sparse >/dev/null || apt_install sparse || true
	"$venv/bin/python" tools/check_kernel.py --find >/dev/null ||
		kernel/qemu/fetch.sh checkpatch >/dev/null ||
		say "without checkpatch, its line of make lint is skipped"
}

# Debian 12 has no such package: there it is Debian 13's, outside the tree.
setup_proof() {
	tests/cbmc/run.sh --check 2>/dev/null && return
	apt_install cbmc || true
	tests/cbmc/run.sh --check 2>/dev/null || tests/cbmc/fetch.sh >/dev/null ||
		say "without the Debian package cbmc, the proof of the order of who is" \
			"due is skipped"
}

# What cannot be had is said by the check that needs it.
setup_upstream() {
	local program missing=

	for program in flex bison bc perl xz sparse sphinx-build; do
		command -v "$program" >/dev/null || missing+=" $program"
	done
	[ -z "$missing" ] || apt_install flex bison bc perl xz-utils libelf-dev \
		sparse python3-sphinx ||
		say "make upstream checks less without these programs:$missing"
}

# The plugin goes into the virtual environment, where streamsched finds it.
setup_nbdkit() {
	local missing='' program packages="nbdkit nbdkit-plugin-dev libnbd-bin
		python3-libnbd qemu-utils qemu-system-x86 liburing-dev fio
		gnutls-bin nbd-client pkg-config perl"

	for program in nbdkit nbdinfo nbdcopy qemu-img fio psktool certtool nbd-client; do
		command -v "$program" >/dev/null || missing+=" $program"
	done
	pkg-config --exists nbdkit liburing 2>/dev/null || missing+=" headers"
	/usr/bin/python3 -c 'import nbd' 2>/dev/null || missing+=" libnbd"
	if [ -n "$missing" ]; then
		# The words are packages.
		# shellcheck disable=SC2086
		apt_install $packages || {
			say "without the nbdkit plugin, its tests are skipped:" \
				"missing are$missing; install the Debian packages" \
				$packages
			return
		}
	fi
	if ! command -v fusermount3 >/dev/null ||
		! pkg-config --exists fuse3; then
		apt_install fuse3 libfuse3-dev ||
			say "without fuse3 and libfuse3-dev, the tests that" \
				"cut the power are skipped"
	fi
	if [ ! -x /usr/bin/meson ] || [ ! -x /usr/bin/ninja ]; then
		apt_install meson ninja-build ||
			say "without Debian's meson and ninja-build, the test of" \
				"the installation for the whole system is skipped"
	fi
	say "compiling and installing the nbdkit plugin"
	watched build/nbdkit.log build_nbdkit ||
		fail "the nbdkit plugin could not be built; build/nbdkit.log says why"
}

# Joined by &&: where a function's failure is asked for, set -e does not count.
build_nbdkit() {
	local bin

	bin=$(realpath "$venv")/bin
	{ [ -f build/nbdkit/build.ninja ] ||
		PATH="$bin:$PATH" meson setup build/nbdkit -Dnbdkit=enabled -Dwerror=true \
			-Dnbdkit_plugindir="${bin%/bin}/lib/nbdkit/plugins" \
			-Dnbdkit_mandir="${bin%/bin}/share/man/man1"; } &&
		PATH="$bin:$PATH" ninja -C build/nbdkit \
			nbdkit/nbdkit-streamsched-plugin.so \
			nbdkit/nbdkit-streamsched-plugin.1 &&
		PATH="$bin:$PATH" meson install -C build/nbdkit --no-rebuild --tags nbdkit
}

# Debian starts servers when it installs them; these are only started in the rig.
apt_install_unstarted() {
	local policy=/usr/sbin/policy-rc.d

	if [ "$(id -u)" = 0 ] && [ ! -e "$policy" ]; then
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
	fi
	apt_install "$@"
}

# Which program's package is missing says who is to run it.
setup_applications() {
	local program missing=

	for program in postmark proftpd curl psql dmsetup; do
		PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null ||
			missing+=" $program"
	done
	compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=" postgres"
	[ -z "$missing" ] || apt_install_unstarted postgresql postgresql-client \
		proftpd-core postmark curl dmsetup ||
		say "these programs could not be installed:$missing"
	install_requirements applications
}

setup_servers() {
	local program missing=

	for program in rpc.nfsd mount.nfs rpcbind smbd mount.cifs iscsistart \
		qemu-storage-daemon qemu-img nbd-server nbd-client nbdkit \
		glusterfsd glusterfs dmsetup; do
		PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null ||
			missing+=" $program"
	done
	[ -z "$missing" ] || apt_install_unstarted nfs-kernel-server nfs-common \
		rpcbind samba cifs-utils open-iscsi qemu-system-common \
		qemu-utils nbd-server nbd-client nbdkit glusterfs-server \
		glusterfs-client dmsetup ||
		say "these programs could not be installed:$missing"
}

# Outside the tree, once for each commit. The suite is not ours: nothing of it is kept here.
# Without its film, which is larger than all else.
setup_s_suite() {
	local program missing='' url commit folder new

	for program in fio iostat bc killall time col g++ git awk; do
		command -v "$program" >/dev/null || missing+=" $program"
	done
	[ -f /usr/include/libaio.h ] || missing+=" libaio.h"
	[ -z "$missing" ] || apt_install fio sysstat bc psmisc time bsdextrautils g++ \
		libaio-dev git gawk ||
		say "these programs could not be installed:$missing"
	url=$(sed -n 's/^WHERE = "\(.*\)"$/\1/p' bench/tables/s_suite.py)
	commit=$(sed -n 's/^COMMIT = "\(.*\)"$/\1/p' bench/tables/s_suite.py)
	folder=${XDG_CACHE_HOME:-$HOME/.cache}/streamsched/s-suite/${commit:0:12}
	[ ! -d "$folder" ] || return 0
	say "fetching the suite S, commit ${commit:0:12}, to $folder"
	new=$folder.new
	rm -rf "$new"
	mkdir -p "$new"
	watched build/s-suite.log fetch_s_suite "$new" "$url" "$commit" ||
		fail "the suite S is not here, and could not be fetched from $url" \
			"or not be compiled; build/s-suite.log says why"
	mv "$new" "$folder"
}

fetch_s_suite() { # FOLDER URL COMMIT
	git -C "$1" init -q &&
		git -C "$1" remote add origin "$2" &&
		git -C "$1" fetch -q --depth 1 --filter=blob:none origin "$3" &&
		git -C "$1" checkout -q "$3" -- . ':!video_playing_vs_commands' &&
		g++ -std=c++11 -pthread -Wall "$1/comm_startup_lat/replay-startup-io.cc" \
			-o "$1/comm_startup_lat/replay-startup-io" -laio &&
		rm -rf "$1/.git"
}

# Tests of packages are skipped where their program is missing.
setup_packages() {
	local program suite missing=

	packaging/deb.sh --check 2>/dev/null || missing+=" packages to build with"
	for program in lintian apt-ftparchive rpmbuild rpmlint makepkg bsdtar mmdebstrap; do
		command -v "$program" >/dev/null || missing+=" $program"
	done
	# The words are packages.
	# shellcheck disable=SC2046
	[ -z "$missing" ] || apt_install $(packaging/deb.sh --needs) lintian apt-utils \
		gnupg rpm rpmlint makepkg libarchive-tools mmdebstrap ||
		say "some tests of packages are skipped: missing are$missing"
	[ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null || return 0
	for suite in bookworm trixie; do
		{ packaging/root.sh keep "$suite" build &&
			packaging/root.sh keep "$suite" install; } >/dev/null ||
			say "the test of packages in $suite is skipped"
	done
}

# Outside the tree, once. Its tests are skipped where this cannot be had.
setup_stock() {
	local program missing=

	for program in mmdebstrap qemu-system-x86_64 cpio modprobe unshare pahole; do
		command -v "$program" >/dev/null || missing+=" $program"
	done
	if [ -n "$missing" ]; then
		apt_install mmdebstrap qemu-system-x86 cpio kmod util-linux pahole || {
			say "without stock kernels, their tests are skipped:" \
				"missing are$missing; make test as root installs them"
			return
		}
	fi
	fetch_stock bookworm
}

fetch_stock() {
	kernel/qemu/fetch.sh "$@" >/dev/null ||
		say "the tests that need ${*: -1} are skipped"
}

setup_stock_all() {
	local suite

	setup_stock
	for suite in bookworm trixie sid; do
		fetch_stock --tools "$suite"
		fetch_stock --md "$suite"
	done
	fetch_stock checkpatch
}

# Outside the tree, once for each configuration: base, and the variants named.
# Their tests are skipped where they cannot be built, and say so.
setup_rig() {
	local variant program missing=

	kernel/rig/build.sh --where base >/dev/null 2>&1 ||
		apt_install flex bison bc pahole perl xz-utils kmod libelf-dev \
			zlib1g-dev || true
	# What its tests run; the kernel may be there without them.
	for program in fio mkfs.ext4 dmsetup mdadm; do
		PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null ||
			missing+=" $program"
	done
	[ -z "$missing" ] || apt_install fio e2fsprogs dmsetup mdadm ||
		say "without these programs, the tests that use the rig are" \
			"skipped:$missing"
	for variant in base "$@"; do
		kernel/rig/build.sh "$variant" >/dev/null ||
			say "without the rig's $variant kernel: its tests are skipped"
	done
}

mkdir -p build
# Two calls of make at once take turns.
if command -v flock >/dev/null; then
	exec 9>build/setup.lock
	flock 9
fi
case ${1-} in
tools) setup_tools ;;
package) setup_package ;;
unit | dev | plots | site) install_requirements "$1" ;;
chromium) setup_chromium ;;
fuzz) setup_fuzz ;;
lint) setup_lint ;;
proof) setup_proof ;;
nbdkit) setup_nbdkit ;;
upstream) setup_upstream ;;
rig) setup_rig "${@:2}" ;;
applications) setup_applications ;;
servers) setup_servers ;;
s-suite) setup_s_suite ;;
packages) setup_packages ;;
stock) setup_stock ;;
stock-all) setup_stock_all ;;
*) fail "usage: tools/setup.sh tools|package|unit|dev|plots|site|chromium|fuzz|lint|proof|upstream|nbdkit|rig|applications|servers|s-suite|packages|stock|stock-all" ;;
esac
