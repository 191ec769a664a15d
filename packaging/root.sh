#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Bare roots of Debian's and Ubuntu's suites, in which it is tried that what the
# project promises holds on a fresh machine (tools/fresh.sh, tests/house/test_packages.py).
# Needed: root, mmdebstrap and a mirror; the mirror and pip's index are those
# that this machine uses.
#
#   packaging/root.sh make SUITE ROOT [PACKAGE...]
#       a root with nothing in it but these packages, and the user newcomer
#   packaging/root.sh keep SUITE build|install
#       the same with what packages are built with there, or what it takes to try
#       them; kept in ~/.cache/streamsched/roots for a month: prints its path
#   packaging/root.sh run [OPTION]... ROOT USER COMMAND
#       a shell's command there; what it starts ends with it, and so do mounts
#
#   --bind DIR:AT   show a folder of this machine at another place
#   --sys           show this machine's /sys
#   --throw-away    what changes in the root is gone afterwards
#
#   UBUNTU_MIRROR=URL   where Ubuntu's suites come from
set -eu -o pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/apt_sources.sh
. "$here/../tools/apt_sources.sh"
# shellcheck source=tools/progress.sh
. "$here/../tools/progress.sh"

user=newcomer

fail() {
	printf 'root.sh: %s\n' "$*" >&2
	exit 1
}

usage() {
	fail "usage: root.sh make SUITE ROOT [PACKAGE...]," \
		"root.sh keep SUITE build|install," \
		"or root.sh run [--bind DIR:AT]... [--sys] [--throw-away] ROOT USER COMMAND"
}

# ---- make ----

sources() {
	local main

	case $1 in
	jammy | noble | resolute)
		main=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
		[ -f /usr/share/keyrings/ubuntu-archive-keyring.gpg ] ||
			fail "Ubuntu's keys are missing: copy the file" \
				"/usr/share/keyrings/ubuntu-archive-keyring.gpg from an Ubuntu"
		printf "deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] $main %s main universe\n" \
			"$1" "$1-updates"
		return
		;;
	esac
	debian_sources "$1"
}

make_root() {
	local suite=$1 root=$2 include=()

	shift 2
	[ $# = 0 ] || include=(--include="$*")
	[ "$(id -u)" = 0 ] || fail "must run as root: it makes root directories"
	command -v mmdebstrap >/dev/null ||
		fail "mmdebstrap is missing: install the Debian package mmdebstrap"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	# How apt fetches, by this machine's own rules.
	apt-config dump |
		grep -E -i '^Acquire::(Check-|https?::|Retries|Force)' >"$work/options" || true
	sources "$suite" >"$work/sources.list"
	rm -rf --one-file-system "$root"
	mkdir -p "$root"
	watched "$work/log" mmdebstrap --mode=root --variant=minbase "${include[@]}" \
		--skip=cleanup/apt/lists --aptopt="$work/options" \
		--aptopt='Apt::Install-Recommends "false"' \
		--dpkgopt=force-unsafe-io \
		"$suite" "$root" "$work/sources.list" || {
		rm -rf --one-file-system "$root"
		fail "$suite: mmdebstrap failed: $(tail -n 3 "$work/log" | paste -s -d ' ')"
	}
	configure "$root"
}

configure() {
	local root=$1 file

	# A person's apt does install what is recommended.
	sed -i '/Install-Recommends/d' "$root"/etc/apt/apt.conf.d/99mmdebstrap
	for file in /etc/resolv.conf /etc/hosts; do
		cp --dereference "$file" "$root$file"
	done
	for file in /etc/pip.conf "${HOME-}/.config/pip/pip.conf"; do
		if [ -f "$file" ]; then
			mkdir -p "$root/etc/xdg/pip"
			cat "$file" >>"$root/etc/xdg/pip/pip.conf"
		fi
	done
	if [ -f /etc/ssl/certs/ca-certificates.crt ]; then
		mkdir -p "$root/etc/ssl"
		cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/fresh.crt"
	fi
	chroot "$root" useradd --create-home --shell /bin/bash "$user"
}

# ---- keep ----

kept_packages() {
	case $1-$2 in
	*-build)
		"$here/deb.sh" --needs
		echo apt-utils lintian make
		;;
	# DKMS builds for the kernel.
	jammy-install | noble-install | resolute-install)
		echo linux-headers-generic linux-image-generic
		;;
	*) echo linux-headers-amd64 linux-image-amd64 ;;
	esac
	[ "$2" = build ] || echo bash-completion fish man-db zsh
}

keep_root() {
	local suite=$1 packages roots root

	packages=$(kept_packages "$@" | paste -s -d ' ')
	roots=${XDG_CACHE_HOME:-$("$here/../tools/cache.sh")}/streamsched/roots
	root=$roots/$suite-$2-$(echo "$packages" | sha256sum | cut -c 1-8)
	mkdir -p "$roots"
	exec 9>"$root.lock"
	flock 9
	# Debian mends its packages meanwhile, and removes the old ones.
	if [ -z "$(find "$root" -maxdepth 0 -mtime -30 2>/dev/null)" ]; then
		echo "==> $suite: fetching a root to $2 packages in (some 300 MB, once a month)" >&2
		# Those of other packages go, too, when they are as old.
		find "$roots" -mindepth 1 -maxdepth 1 -type d -name "$suite-$2-*" -mtime +30 \
			-exec rm -rf --one-file-system {} +
		rm -rf --one-file-system "$root"
		# The words are packages. Nothing that it starts is to hold the lock.
		# shellcheck disable=SC2086
		INITRD=No "$0" make "$suite" "$root.new" $packages 9>&-
		touch "$root.new"
		mv "$root.new" "$root"
	fi
	echo "$root"
}

# ---- run: again in namespaces of its own, below the root directory ----

# What this machine needs to reach its package indexes.
index_variables() {
	env | grep -E -i '^(pip_(index_url|extra_index_url|trusted_host|default_timeout)|(https?|all|no)_proxy)=' ||
		true
	if [ -f "$1/etc/ssl/fresh.crt" ]; then
		printf '%s=/etc/ssl/fresh.crt\n' PIP_CERT SSL_CERT_FILE CURL_CA_BUNDLE
	fi
}

binds=()
sys=no
throw_away=no
child=
parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--bind)
			[ $# -ge 2 ] || usage
			binds+=("$2")
			shift
			;;
		--sys) sys=yes ;;
		--throw-away) throw_away=yes ;;
		-*) usage ;;
		*) break ;;
		esac
		shift
	done
	[ $# = 3 ] || usage
	root=$1 name=$2 command=$3
	[ -d "$root/proc" ] || fail "$root is no root directory: root.sh make makes one"
}

run_inside() {
	local bind home variables

	if [ "$throw_away" = yes ]; then
		mkdir "$ROOT_WORK/root" "$ROOT_WORK/upper" "$ROOT_WORK/work"
		mount -t overlay overlay -o \
			"lowerdir=$root,upperdir=$ROOT_WORK/upper,workdir=$ROOT_WORK/work" \
			"$ROOT_WORK/root" ||
			fail "no overlay file system can be mounted in $ROOT_WORK"
		root=$ROOT_WORK/root
	else
		# What runs there may look for the mount point that / is.
		mount --bind "$root" "$root"
	fi
	mount --bind /dev "$root/dev"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
	mount --bind "$root/dev/pts/ptmx" "$root/dev/ptmx"
	mount -t tmpfs tmpfs "$root/dev/shm"
	mount -t proc proc "$root/proc"
	[ "$sys" = no ] || mount --rbind /sys "$root/sys"
	for bind in "${binds[@]}"; do
		mkdir -p "$root/${bind#*:}"
		mount --bind "${bind%%:*}" "$root/${bind#*:}"
	done
	mapfile -t variables < <(index_variables "$root")
	home=$(awk -F : -v name="$name" '$1 == name { print $6 }' "$root/etc/passwd")
	[ -n "$home" ] || fail "$root has no user $name"
	exec env -i HOME="$home" USER="$name" LOGNAME="$name" TERM=dumb \
		LANG=C.UTF-8 "${variables[@]}" \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		chroot "$root" /usr/sbin/runuser -u "$name" -- \
		bash -c "cd && $command"
}

run() {
	local status=0

	parse "$@"
	[ -z "${ROOT_WORK-}" ] || run_inside
	[ "$(id -u)" = 0 ] || fail "must run as root: it enters root directories"
	# An overlay's folders have to be on one file system that can be one's upper.
	ROOT_WORK=$(mktemp -d "$(realpath "$root").XXXXXX")
	export ROOT_WORK
	# All that runs there ends with unshare.
	trap '[ -z "$child" ] || { kill -KILL "$child"; wait "$child"; } 2>/dev/null || true
		rm -rf --one-file-system "$ROOT_WORK"' EXIT
	# A second signal must not break off what the first one began.
	trap 'trap "" INT TERM; exit 130' INT TERM
	unshare --mount --propagation private --pid --fork --kill-child \
		"$0" run "$@" &
	child=$!
	wait "$child" || status=$?
	child=
	exit "$status"
}

case ${1-} in
make)
	[ $# -ge 3 ] || usage
	make_root "${@:2}"
	;;
keep)
	[ $# = 3 ] || usage
	case $3 in
	build | install) keep_root "$2" "$3" ;;
	*) usage ;;
	esac
	;;
run) run "${@:2}" ;;
*) usage ;;
esac
