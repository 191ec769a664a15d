#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the rig's kernel: User Mode Linux with virtual time, once for each
# version and configuration. What is there already is not built again. The
# last line of the standard output is the folder of the build, in which
# modules are built with `make -C FOLDER M=... modules`.
#
#   kernel/rig/build.sh [--where | --update | --package] [VARIANT]
#
# VARIANT   base (Linux 6.12), kasan (the same with the kernel's own checks),
#           servers (the same with NFS, SMB, FUSE and SCSI targets) or newest
#           (the newest source package of Debian sid, as base)
# --where   build nothing; exit code 3 when it is not built
# --update  look for a newer version of the source, even if there is one
# --package build nothing; the last line is the source package, which is
#           downloaded when there is none
#
# RIG_SOURCE=DIR names an unpacked kernel source, 6.1 or later, to build in
# place of Debian's. Nothing of it or of the system is changed: everything
# goes to ${XDG_CACHE_HOME:-~/.cache}/streamsched/rig/.
set -eu -o pipefail
export LC_ALL=C

# Raised when the steps below change what comes out.
FORMAT=1
# What a build needs while it runs, source included; what stays of the first.
NEEDED_MB=4000
KEPT_GB=2
# What compiling takes of one processor, and about how many lines make prints.
CPU_MINUTES=15
STEPS=1450
# How often a log that is no terminal hears that it goes on.
EVERY_S=60

here=$(dirname "$(realpath "$0")")
cache=${XDG_CACHE_HOME:-${HOME-}/.cache}/streamsched/rig

fail() {
	finish_line
	printf 'streamsched: %s\n' "$*" >&2
	exit 1
}

# ---- progress: one line that changes on a terminal, else a line per step ----

line_open=

progress() {
	if [ -t 2 ]; then
		printf '\r\033[K==> %s' "$*" >&2
		line_open=1
	else
		printf '==> %s\n' "$*" >&2
	fi
}

finish_line() {
	[ -z "$line_open" ] || printf '\n' >&2
	line_open=
}

# watch_make TITLE LOG PID: until the process ends.
watch_make() {
	local start=$SECONDS passed said=0

	progress "$1"
	while kill -0 "$3" 2>/dev/null; do
		sleep 1
		passed=$((SECONDS - start))
		[ -t 2 ] || [ $((passed - said)) -ge $EVERY_S ] || continue
		said=$passed
		progress "$1: $(grep -c '^  ' "$2" || :) of about $STEPS steps," \
			"$((passed / 60)) min $((passed % 60)) s"
	done
}

# Before anything is begun that takes long, and that nobody may have asked for.
announce() {
	local what='compiled, once' linux="Linux ${version-$series}"
	local processors minutes on

	[ -n "${package-}${RIG_SOURCE-}" ] ||
		what="downloaded (150 MB) and $what"
	[ "$variant" != newest ] || linux='the newest Linux of Debian sid'
	processors=$(nproc)
	minutes=$(((CPU_MINUTES + processors - 1) / processors))
	on="$processors processors"
	[ "$processors" != 1 ] || on='one processor'
	progress "the rig's kernel ($variant) is not built yet: $linux is $what," \
		"in about $minutes minutes on $on, to $cache ($KEPT_GB GB);" \
		"interrupted, it goes on from there the next time"
	finish_line
}

# ---- what has to be there ----

has_header() {
	printf '#include <%s>\n' "$1" | "${CC:-gcc}" -E -x c - >/dev/null 2>&1
}

check_tools() {
	local missing=() packages=() pair

	[ "$(uname -m)" = x86_64 ] ||
		fail "the rig runs on x86_64 only, this machine is $(uname -m)"
	for pair in gcc:gcc ld:binutils make:make flex:flex bison:bison bc:bc \
		pahole:pahole perl:perl xz:xz-utils insmod:kmod; do
		PATH=$PATH:/usr/sbin:/sbin command -v "${pair%:*}" >/dev/null ||
			{ missing+=("${pair%:*}") && packages+=("${pair#*:}"); }
	done
	for pair in stdio.h:libc6-dev gelf.h:libelf-dev zlib.h:zlib1g-dev; do
		has_header "${pair%:*}" ||
			{ missing+=("${pair%:*}") && packages+=("${pair#*:}"); }
	done
	[ ${#missing[@]} = 0 ] ||
		fail "the rig's kernel cannot be built without ${missing[*]}:" \
			"install the Debian packages ${packages[*]}"
}

# The nearest folder that exists of a path.
existing() {
	local path=$1

	while [ ! -d "$path" ]; do
		path=$(dirname "$path")
	done
	printf '%s\n' "$path"
}

check_space() {
	local free

	free=$(df -Pm "$(existing "$cache")" | awk 'END { print $4 }')
	[ "$free" -ge $NEEDED_MB ] ||
		fail "$cache: $free MB are free, building the rig's kernel takes" \
			"$NEEDED_MB MB"
}

# ---- the source ----

hash_of() {
	sha256sum | cut -c 1-12
}

# apt-get or apt-cache with lists of its own, of one suite.
private() {
	local command=$1

	shift
	"$command" -o Dir::Etc::sourcelist="$apt/sources.list" \
		-o Dir::Etc::sourceparts=- -o Dir::State::lists="$apt/lists" \
		-o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache" \
		-o APT::Sandbox::User=root "$@"
}

# The package's name for the series, of what the private lists have.
package_in_lists() {
	private apt-cache search --names-only "^linux-source-$1\$" |
		cut -d ' ' -f 1 | sort -V | tail -n 1
}

# download SERIES SUITE...: the first suite that has it. The mirror is the
# machine's own.
download() {
	local series=$1 mirror suite package='' options='target=Packages'
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg

	shift
	command -v apt-get >/dev/null ||
		fail "there is no apt-get here to get the kernel's source with;" \
			"unpack one and name it with RIG_SOURCE=DIR"
	mirror=$(apt-get indextargets --format "\$(REPO_URI)" \
		'Created-By: Packages' 'Origin: Debian' 'Label: Debian' |
		head -n 1)
	[ -n "$mirror" ] ||
		fail "apt knows no Debian mirror on this machine (has apt-get" \
			"update been run?); or unpack a kernel source and name" \
			"it with RIG_SOURCE=DIR"
	[ ! -f $keys ] || options+=" signed-by=$keys"
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	for suite; do
		progress "looking for linux-source-$series in Debian $suite"
		echo "deb [$options] $mirror $suite main" >"$apt/sources.list"
		private apt-get update -qq >"$apt/log" 2>&1 || continue
		package=$(package_in_lists "$series")
		[ -z "$package" ] || break
	done
	[ -n "$package" ] ||
		fail "no linux-source-$series in Debian $* (apt's last word:" \
			"$(tail -n 1 "$apt/log"))"
	progress "downloading $package (about 150 MB)"
	(cd "$apt" && private apt-get download -qq "$package") \
		>"$apt/log" 2>&1 ||
		fail "$package could not be downloaded:" \
			"$(tail -n 1 "$apt/log")"
	mkdir -p "$pool"
	mv "$apt"/linux-source-*.deb "$pool/"
}

# The newest package file that is there already.
newest_package() {
	[ ! -d "$pool" ] || find "$pool/" -name 'linux-source-*.deb' | sort -V |
		tail -n 1
}

# Which source: sets $package (empty for RIG_SOURCE), $version, $source.
find_source() {
	local name patch

	patch=$(hash_of <"$here/patch.sh")
	if [ -n "${RIG_SOURCE-}" ]; then
		[ -f "$RIG_SOURCE/arch/um/Makefile" ] ||
			fail "RIG_SOURCE=$RIG_SOURCE is no kernel source: there" \
				"is no arch/um/Makefile in it"
		package=
		version=$(given_version)
		source=$cache/source/$version-given-$(given_hash)-$patch
		return
	fi
	package=$(newest_package)
	[ -n "$package" ] || return 1
	name=$(basename "$package" _all.deb)
	version=$(tr '~+' __ <<<"${name#*_}")
	source=$cache/source/$version-$patch
	version=${version%%-*}
}

given_version() {
	awk '$2 == "=" && $1 ~ /^(VERSION|PATCHLEVEL|SUBLEVEL)$/ { v[$1] = $3 }
		END { print v["VERSION"] "." v["PATCHLEVEL"] "." v["SUBLEVEL"] }' \
		"$RIG_SOURCE/Makefile"
}

# By name, size and time: enough to notice a change, and fast.
given_hash() {
	(cd "$RIG_SOURCE" && find . -path ./.git -prune -o -type f \
		-printf '%P %s %T@\n' | sort | hash_of)
}

unpack() {
	local new=$source.new

	[ ! -f "$source/Makefile" ] || return 0
	rm -rf "$new"
	mkdir -p "$new"
	progress "unpacking the source of Linux $version"
	if [ -z "$package" ]; then
		cp -a "$RIG_SOURCE/." "$new/"
		rm -rf "$new/.git"
		make -s -C "$new" ARCH=um mrproper >"$new.log" 2>&1 ||
			fail "$RIG_SOURCE: make mrproper failed in a copy of it:" \
				"see $new.log"
	else
		dpkg-deb --fsys-tarfile "$package" |
			tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
			tar -xJ --strip-components=1 -C "$new" ||
			fail "$package cannot be unpacked"
	fi
	"$here/patch.sh" "$new"
	mv "$new" "$source"
}

# ---- configuration and build ----

configs() {
	printf '%s\n' "$here/base.config"
	[ "$variant" = base ] || printf '%s\n' "$here/$variant.config"
}

# The configuration's lines, of which a later one for an option replaces an
# earlier one.
wanted() {
	configs | xargs cat | sed -n '/^CONFIG_/p; /^# CONFIG_.* is not set$/p' |
		awk '{ name = $0; sub(/^# /, "", name); sub(/[= ].*/, "", name) }
			!(name in at) { at[name] = ++count }
			{ line[at[name]] = $0 }
			END { for (i = 1; i <= count; i++) print line[i] }'
}

# Whether this source knows the option of a line CONFIG_NAME=...
is_known() {
	local name=${1%%=*}

	grep -rqE "^[[:space:]]*(menu)?config ${name#CONFIG_}\$" \
		--include='Kconfig*' "$source"
}

# An option that Kconfig drops drops silently; virtual time would be real.
# Kernels other than Debian's 6.12 may not have heard of some.
check_config() {
	local line name lost=() unknown=()

	while read -r line; do
		if [[ $line == \#* ]]; then
			name=${line#\# }
			name=${name%% *}
			! grep -q "^$name=" "$build/.config" || lost+=("$name=n")
		elif ! grep -qxF -- "$line" "$build/.config"; then
			if [[ $version == 6.12.* || $line == *_TIME_TRAVEL_* ]] ||
				is_known "$line"; then
				lost+=("$line")
			else
				unknown+=("${line%%=*}")
			fi
		fi
	done < <(wanted)
	[ ${#unknown[@]} = 0 ] ||
		progress "Linux $version has no ${unknown[*]}: goes without"
	[ ${#lost[@]} = 0 ] ||
		fail "Linux $version does not take these options of" \
			"kernel/rig/*.config: ${lost[*]}"
}

# Sets $make. A jobserver of a make around us, or settings of another kernel's
# build, are not for this one.
set_make() {
	make=(env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u KBUILD_OUTPUT -u O -u M
		-u CROSS_COMPILE -u KCFLAGS
		KBUILD_BUILD_USER=streamsched KBUILD_BUILD_HOST=rig
		KBUILD_BUILD_TIMESTAMP='2020-01-01 00:00:00 UTC'
		KBUILD_BUILD_VERSION=1
		nice make -C "$source" O="$build" ARCH=um CC="${CC:-gcc}")
}

build_kernel() {
	local title="compiling Linux $version ($variant)"
	local log=$build/build.log job make

	set_make
	mkdir -p "$build"
	{
		cat "$source/kernel/configs/tiny-base.config"
		wanted
	} >"$build/wanted.config"
	progress "configuring Linux $version ($variant)"
	KCONFIG_ALLCONFIG=$build/wanted.config "${make[@]}" -s allnoconfig \
		>"$log" 2>&1 || fail "the kernel's configuration failed: see $log"
	check_config
	"${make[@]}" -j"$(nproc)" linux modules >>"$log" 2>&1 &
	job=$!
	# Interrupted: what is compiled stays and is not compiled again.
	# shellcheck disable=SC2064 # this job
	trap "kill $job 2>/dev/null; finish_line" EXIT
	watch_make "$title" "$log" "$job"
	wait "$job" || fail "the kernel does not compile: see $log;" \
		"its last error: $(grep -iE 'error|\*\*\*' "$log" | head -n 1)"
	trap finish_line EXIT
	# Modules need headers, scripts and the type information only.
	find "$build" \( -path "$build/scripts" -o -path "$build/tools" \) -prune \
		-o \( -name '*.o' -o -name '*.a' \) -type f -exec rm -f {} +
	mkdir -p "$build/rig-modules"
	find "$build" -path "$build/rig-modules" -prune -o -name '*.ko' \
		-exec cp {} "$build/rig-modules/" \;
	# So that nobody forgets ARCH=um.
	printf '%s\n' 'export ARCH := um' 'include Makefile' >"$build/GNUmakefile"
	touch "$build/complete"
}

# Wait for others that do the same.
lock() {
	exec 8>"$cache/$1.lock"
	flock -n 8 || {
		progress "waiting for another build of the same"
		flock 8
	}
}

# Download the source's package, unless it is there or given, and find_source.
get_package() {
	mkdir -p "$cache/source" 2>/dev/null ||
		fail "$cache cannot be written: name another folder than" \
			"${XDG_CACHE_HOME:-${HOME:-/}/.cache} with XDG_CACHE_HOME"
	lock source
	if [ -z "${RIG_SOURCE-}" ] && { [ -n "$update" ] || ! find_source; }; then
		check_space
		apt=$(mktemp -d "$cache/apt.XXXXXX")
		trap 'rm -rf "$apt"; finish_line' EXIT
		download "$series" "${suites[@]}"
		rm -rf "$apt"
		trap finish_line EXIT
	fi
	find_source
}

build_id() {
	{
		echo "$FORMAT $(basename "$source") $variant"
		"${CC:-gcc}" --version 2>/dev/null || echo no compiler
		pahole --version 2>/dev/null || echo no pahole
		wanted
	} | hash_of
}

[ -n "${XDG_CACHE_HOME:-${HOME-}}" ] ||
	fail "there is no home directory to keep the rig's kernel in:" \
		"name a folder with XDG_CACHE_HOME"
where=
update=
only_package=
variant=
for argument; do
	case $argument in
	--where) where=1 ;;
	--update) update=1 ;;
	--package) only_package=1 ;;
	base | kasan | servers | newest) variant=$argument ;;
	*) fail "unknown argument '$argument'; usage: kernel/rig/build.sh" \
		"[--where | --update | --package] [base | kasan | servers | newest]" ;;
	esac
done
variant=${variant:-base}
# What to look for, where, and where packages are kept.
series=6.12
suites=(trixie bookworm-backports)
pool=$cache/source/6.12
if [ "$variant" = newest ]; then
	series='[0-9]*.[0-9]*'
	suites=(sid)
	pool=$cache/source/newest
fi

if [ -n "$only_package" ]; then
	unset RIG_SOURCE
	find_source || get_package
	finish_line
	printf '%s\n' "$package"
	exit 0
fi

# What is there needs no tools, no network and no turn.
if [ -z "$update" ] && find_source; then
	build=$cache/$version-$variant-$(build_id)
	if [ -f "$build/complete" ]; then
		printf '%s\n' "$build"
		exit 0
	fi
	[ -z "$where" ] || printf '%s\n' "$build"
fi
[ -z "$where" ] || exit 3

check_tools
[ -n "$update" ] || announce
get_package
build=$cache/$version-$variant-$(build_id)
if [ ! -f "$build/complete" ]; then
	[ -d "$source" ] && [ -d "$build" ] || check_space
	unpack
	lock "$(basename "$build")"
	[ -f "$build/complete" ] || build_kernel
fi
finish_line
printf '%s\n' "$build"
