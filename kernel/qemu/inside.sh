#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Run a command inside the system of a stock kernel (fetch.sh), on this
# machine's own kernel. What the command changes there is gone afterwards,
# unless a layer is named that keeps it.
#
#   inside.sh [--tools] [--with DIR]... [--layer DIR] [--bind DIR:AT]...
#             [--outside] KERNEL COMMAND...
#
# KERNEL    a release that was fetched, or the name of its suite
# --tools   with what builds modules
# --with    with what another call left in this folder, which is not changed
# --layer   keep what changes in this folder; it is there again next time, and
#           may be used by one call at a time
# --bind    show a folder of this machine at another place
# --outside run the command on this machine; $STOCK_ROOT is the system's root
set -eu -o pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=/dev/null
. "$here/common.sh"
: "${stock:?}"

usage() {
	fail "usage: inside.sh [--tools] [--with DIR]... [--layer DIR]" \
		"[--bind DIR:AT]... [--outside] KERNEL COMMAND..."
}

tools=no
layer=
outside=no
binds=()
below= # other layers than the system's own, the upper first
parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--tools) tools=yes ;;
		--outside) outside=yes ;;
		--with | --layer | --bind)
			[ $# -ge 2 ] || usage
			case $1 in
			--with) below=$(realpath "$2"):$below ;;
			--layer) layer=$2 ;;
			--bind) binds+=("$2") ;;
			esac
			shift
			;;
		-*) usage ;;
		*) break ;;
		esac
		shift
	done
	[ $# -ge 2 ] || usage
	tree=$(find_tree "$1")
	shift
	command=("$@")
}

# In a mount namespace of its own: nobody else sees these mounts, and they go
# when the command has ended.
run_inside() {
	local lower=$tree/root root=$work/root bind

	if [ "$tools" = yes ]; then
		[ -d "$tree/tools" ] ||
			fail "what builds modules is not there: get it with" \
				"kernel/qemu/fetch.sh --tools SUITE"
		lower=$tree/tools:$lower
	fi
	lower=$below$lower
	mount -t overlay overlay -o \
		"lowerdir=$lower,upperdir=${layer:-$work/layer},workdir=$work_dir" \
		"$root" 2>/dev/null ||
		fail "no overlay file system can be mounted in $stock"
	for bind in "${binds[@]}"; do
		mkdir -p "$root/${bind#*:}"
		mount --bind "${bind%%:*}" "$root/${bind#*:}"
	done
	if [ "$outside" = yes ]; then
		STOCK_ROOT=$root exec "${command[@]}"
	fi
	mount -t proc proc "$root/proc"
	mount -t tmpfs tmpfs "$root/tmp"
	exec env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive INITRD=No \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		chroot "$root" "${command[@]}"
}

parse "$@"
if [ -n "${STOCK_WORK-}" ]; then
	work=$STOCK_WORK
	work_dir=$STOCK_WORK_DIR
	unset STOCK_WORK STOCK_WORK_DIR
	run_inside
fi
need_root
need unshare util-linux
work=$(mktemp -d "$stock/mount.XXXXXX")
mkdir "$work/root" "$work/layer" "$work/work"
# An overlay's work folder has to be on the file system of its upper layer.
work_dir=$work/work
if [ -n "$layer" ]; then
	mkdir -p "$layer"
	work_dir=$(mktemp -d "$(realpath "$layer").work.XXXXXX")
fi
trap 'rm -rf "$work" "$work_dir"' EXIT
STOCK_WORK=$work STOCK_WORK_DIR=$work_dir \
	unshare --mount --propagation private "$0" "$@"
