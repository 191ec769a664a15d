#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Fetch a Debian suite's stock kernel with a small system around it, from the
# mirror that this machine uses, and print the kernel's release. Nothing on
# this machine changes but the cache,
# ${XDG_CACHE_HOME:-$HOME/.cache}/streamsched/stock/RELEASE/:
#
#   root/      a fresh system of that suite with its kernel image, and fio
#   packages/  the packages that docs/INSTALL.md installs, so that it can be
#              tried without a network
#   tools/     with --tools: what is added to it to build modules with sparse
#              (an overlay's upper layer)
#   suites/    with --suites: what is added to both to build and run the
#              kernel's own test suites (another layer)
#   zfs/       with --zfs: OpenZFS of Debian's contrib, its module built, and
#              dmsetup (a layer above tools/)
#   md/        with --md: mdadm (a layer)
#   contents, tools.contents, suites.contents, zfs.contents, md.contents
#              the names of all that
#
#   fetch.sh [--update] [--tools | --suites | --zfs | --md] SUITE
#                                SUITE: bookworm, trixie or sid
#   fetch.sh checkpatch          the kernel's checkpatch.pl, of Debian 12's
#                                source: prints its path
#
# What is there is used as it is; --update gets the newest kernel instead.
set -eu -o pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=/dev/null
. "$here/common.sh"
# shellcheck source=tools/apt_sources.sh
. "$here/../../tools/apt_sources.sh"

# kmod and udev load modules and apply rules as on any system; fio is what
# tests load disks with.
SYSTEM="linux-image-amd64 linux-base initramfs-tools kmod udev procps
	util-linux fio busybox-static"
# gcc comes with the headers.
TOOLS="linux-headers-amd64 make pahole sparse xz-utils"
SUITES="acl attr autoconf automake bc blktrace btrfs-progs cryptsetup-bin dmsetup
	dosfstools e2fsprogs f2fs-tools file g++ gawk gettext libacl1-dev
	libaio-dev libattr1-dev libcap-dev libgdbm-dev libnl-utils libtool
	libtool-bin liburing-dev mdadm nbd-client nbd-server nvme-cli parted
	pciutils perl pkg-config sg3-utils uuid-dev uuid-runtime xfslibs-dev
	xfsprogs"
# Its module is built as it is installed.
ZFS="zfs-dkms zfsutils-linux dmsetup"
MD="mdadm"
INSTALLED="linux-headers-amd64 dkms pahole xz-utils zstd make dpkg-dev
	debhelper dh-dkms"

# Run a long command, its output kept for when it fails.
logged() {
	"$@" >"$work/log" 2>&1 </dev/null ||
		fail "$1 failed: $(tail -n 4 "$work/log" | paste -s -d ' ')"
}

fetch_root() {
	local release valid started=$SECONDS

	# The mirror is this machine's own, and so is the rule how old its lists
	# may be.
	eval "$(apt-config shell valid Acquire::Check-Valid-Until)"
	say "fetching Debian's $suite with its kernel (some 300 MB, minutes)"
	debian_sources "$suite" >"$work/sources.list"
	# INITRD: no initial ram disk is made; boot.sh has its own.
	INITRD=No logged mmdebstrap --mode=root --variant=minbase \
		--skip=cleanup/apt/lists --include="${SYSTEM//[[:space:]]/ }" \
		--aptopt='Apt::Install-Recommends "false"' \
		--aptopt="Acquire::Check-Valid-Until \"${valid:-true}\"" \
		--dpkgopt=force-unsafe-io \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		"$suite" "$work/root" "$work/sources.list"
	release=$(basename "$work"/root/lib/modules/*)
	[ -d "$work/root/lib/modules/$release" ] ||
		fail "$suite has no kernel, or more than one: $release"
	mkdir -p "$work/packages/partial"
	rm -rf "${stock:?}/$release"
	mkdir "$work/done"
	mv "$work/root" "$work/packages" "$work/done"
	mv "$work/done" "$stock/$release"
	ln -sfn "$release" "$stock/$suite.new"
	say "fetching the packages that its instructions install (some 100 MB)"
	# The words are packages.
	# shellcheck disable=SC2086
	logged "$here/inside.sh" \
		--bind "$stock/$suite.new/packages:/var/cache/apt/archives" \
		"$suite.new" apt-get install -q -y --download-only $INSTALLED
	echo "$1" >"$stock/$release/contents"
	mv -T "$stock/$suite.new" "$stock/$suite"
	say "kernel $release is there after $((SECONDS - started)) s"
}

# The packages $3 as the layer $1 of the suite, above those layers that $4 names;
# they are so large: $5.
fetch_layer() {
	local tree

	tree=$(realpath "$stock/$suite")
	say "fetching what $2 (${5-some 200 MB})"
	rm -rf "${tree:?}/$1"
	# The words are options, and packages. No server is to be started.
	# shellcheck disable=SC2016,SC2086
	logged "$here/inside.sh" --layer "$work/$1" ${4-} "$suite" sh -ec '
		echo "exit 101" >/usr/sbin/policy-rc.d
		chmod +x /usr/sbin/policy-rc.d
		apt-get install -q -y --no-install-recommends "$@"' sh $3
	mv "$work/$1" "$tree/"
	echo "$3" >"$tree/$1.contents"
}

# OpenZFS, which Debian has as source only.
fetch_zfs() {
	local tree

	tree=$(realpath "$stock/$suite")
	say "fetching OpenZFS and building its module (10 minutes of a processor)"
	rm -rf "${tree:?}/zfs"
	# The words are packages. No service is to be started.
	# shellcheck disable=SC2016,SC2086
	logged "$here/inside.sh" --layer "$work/zfs" --tools "$suite" sh -ec '
		echo "exit 101" >/usr/sbin/policy-rc.d
		chmod +x /usr/sbin/policy-rc.d
		sed -i "s/ main$/ main contrib/" /etc/apt/sources.list.d/*.list
		apt-get update -q
		apt-get install -q -y --no-install-recommends "$@"
		for module in /lib/modules/*/updates/dkms/zfs.ko*; do
			[ -e "$module" ] || {
				echo "zfs-dkms built no module for this kernel"
				exit 1
			}
		done' sh $1
	mv "$work/zfs" "$tree/"
	echo "$1" >"$tree/zfs.contents"
}

# Whether the file $1 of the suite's folder says $2.
holds() {
	[ "$2" = "$(cat "$stock/$suite/$1" 2>/dev/null)" ]
}

fetch_suite() {
	local contents tools_wanted suites_wanted zfs_wanted

	[ "$(uname -m)" = x86_64 ] ||
		fail "this machine is $(uname -m): only x86_64 kernels are tried"
	contents=$(echo "$SYSTEM; $INSTALLED" | tr -s '[:space:]' ' ')
	tools_wanted=$(echo "$TOOLS" | tr -s '[:space:]' ' ')
	suites_wanted=$(echo "$SUITES" | tr -s '[:space:]' ' ')
	zfs_wanted=$(echo "$ZFS" | tr -s '[:space:]' ' ')
	if [ "$update" = yes ] || ! holds contents "$contents"; then
		need mmdebstrap mmdebstrap
		fetch_root "$contents"
	fi
	if [ "$tools" = yes ] && ! holds tools.contents "$tools_wanted"; then
		fetch_layer tools "builds modules for $suite with sparse" "$tools_wanted"
		rm -f "$stock/$suite"/{suites,zfs}.contents
	fi
	if [ "$suites" = yes ] && ! holds suites.contents "$suites_wanted"; then
		fetch_layer suites "the kernel's test suites need on $suite" \
			"$suites_wanted" --tools
	fi
	if [ "$zfs" = yes ] && ! holds zfs.contents "$zfs_wanted"; then
		fetch_zfs "$zfs_wanted"
	fi
	if [ "$md" = yes ] && ! holds md.contents "$MD"; then
		fetch_layer md "drives arrays on $suite" "$MD" "" "1 MB"
	fi
	basename "$(realpath "$stock/$suite")"
}

fetch_checkpatch() {
	if [ -f "$stock/checkpatch/checkpatch.pl" ]; then
		echo "$stock/checkpatch/checkpatch.pl"
		return
	fi
	need xz xz-utils
	say "fetching the kernel's checkpatch.pl (out of 140 MB of source)"
	debian_download bookworm linux-source-6.1
	dpkg-deb --fsys-tarfile "$work"/linux-source-6.1_*.deb |
		tar -x -O ./usr/src/linux-source-6.1.tar.xz |
		tar -x -J -C "$work" --strip-components=2 \
			linux-source-6.1/scripts/checkpatch.pl \
			linux-source-6.1/scripts/spelling.txt \
			linux-source-6.1/scripts/const_structs.checkpatch
	mkdir -p "$stock/checkpatch"
	mv "$work"/spelling.txt "$work"/const_structs.checkpatch \
		"$work"/checkpatch.pl "$stock/checkpatch/"
	echo "$stock/checkpatch/checkpatch.pl"
}

update=no
tools=no
suites=no
zfs=no
md=no
while :; do
	case ${1-} in
	--update) update=yes ;;
	--tools) tools=yes ;;
	--suites) tools=yes suites=yes ;;
	--zfs) tools=yes zfs=yes ;;
	--md) md=yes ;;
	*) break ;;
	esac
	shift
done
suite=${1-}
need apt-get apt
mkdir -p "$stock" 2>/dev/null ||
	fail "$stock cannot be written: name another folder than" \
		"${XDG_CACHE_HOME:-${HOME:-/}/.cache} with XDG_CACHE_HOME"
# Two at once take turns.
exec 9>"$stock/lock"
flock 9
work=$(mktemp -d "$stock/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
case $suite in
bookworm | trixie | sid)
	need_root
	fetch_suite
	;;
checkpatch) fetch_checkpatch ;;
*) fail "usage: fetch.sh [--update] [--tools | --suites | --zfs | --md] bookworm|trixie|sid, or fetch.sh checkpatch" ;;
esac
