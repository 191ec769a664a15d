#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Write private.h: what a scheduler module needs of the kernel's own block/
# folder, which no header package has. Layouts and prototypes are those of one
# kernel, read from the type information (BTF) inside that kernel, so they
# always match it. Module versioning does not look at such structures.
#
#   private-headers.sh [--headers DIR] [--vmlinux FILE] [RELEASE] OUTPUT
#
# RELEASE   the kernel to build for; with --headers it need not be said
# --headers where modules are built (default: /lib/modules/RELEASE/build)
# --vmlinux the kernel with its type information: an ELF file with BTF or
#           DWARF, or a vmlinuz (default: the running kernel if it is this
#           RELEASE, vmlinux among the headers, debugging symbols,
#           /boot/vmlinuz-RELEASE)
#
# Beside types and prototypes there are macros, so that code need not know in
# which version something came or went:
#
#   HAVE_ELEVATOR_TYPE_ELEVATOR_FEATURES  struct elevator_type has this member
#   HAVE_ELEVATOR_ALLOC                   modules may call this function
set -eu -o pipefail
export LC_ALL=C

# In the order in which they need each other; a ? marks what is not in every
# kernel or not in every configuration.
TYPES="elv_merge blk_insert_t? elv_fs_entry blk_mq_debugfs_attr?
	elevator_mq_ops elevator_type elevator_tags? elevator_resources?
	elevator_queue blk_mq_alloc_data"

# Those of them that the kernel exports are declared.
FUNCTIONS="elv_register elv_unregister elevator_alloc elv_bio_merge_ok
	elv_rb_add elv_rb_del elv_rb_find elv_rb_former_request
	elv_rb_latter_request elv_rqhash_add elv_rqhash_del
	blk_mq_sched_try_merge blk_mq_sched_try_insert_merge
	blk_mq_sched_mark_restart_hctx __blk_mq_debugfs_rq_show
	blk_stat_enable_accounting blk_stat_disable_accounting
	ioc_find_get_icq wbt_enable_default wbt_disable_default"

fail() {
	printf 'private-headers: %s\n' "$*" >&2
	exit 1
}

usage() {
	fail "usage: private-headers.sh [--headers DIR] [--vmlinux FILE]" \
		"[RELEASE] OUTPUT"
}

# The little-endian number of $3 bytes at offset $2 of the file $1.
number_at() {
	od -An --endian=little -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' '
}

# The first six bytes of the file $1 as hexadecimal digits.
magic() {
	od -An -t x1 -N 6 "$1" | tr -d ' \n'
}

# decompress PACKAGE COMMAND...: unpack $work/packed into $work/vmlinux.
decompress() {
	local package=$1

	shift
	command -v "$1" >/dev/null ||
		fail "$1 is missing, with which $image is compressed:" \
			"install the Debian package $package"
	# Only gzip's data ends by itself; it warns of what follows.
	"$@" <"$work/packed" >"$work/vmlinux" 2>"$work/messages" ||
		fail "$1 cannot unpack the kernel in $image:" \
			"$(head -n 1 "$work/messages")"
}

# Unpack the kernel that the boot image $1 carries, to $work/vmlinux. The
# header of the x86 boot protocol (2.08 and later) says where it is. Behind
# it, within the size, stand four bytes with the unpacked size; gzip has none.
unpack_image() {
	local image=$1 start size

	[ "$(od -An -t x1 -j 514 -N 4 "$image" | tr -d ' ')" = 48647253 ] ||
		fail "$image is no x86 boot image, and no other is understood here:" \
			"install debugging symbols ($(symbols_package))" \
			"or build on a machine that runs this kernel"
	start=$((($(number_at "$image" 497 1) + 1) * 512 +
		$(number_at "$image" 584 4)))
	size=$(number_at "$image" 588 4)
	dd if="$image" of="$work/packed" bs=64K iflag=skip_bytes,count_bytes \
		skip="$start" count="$((size - 4))" status=none
	case $(magic "$work/packed") in
	1f8b*)
		dd if="$image" of="$work/packed" bs=64K \
			iflag=skip_bytes,count_bytes skip="$start" \
			count="$size" status=none
		decompress gzip gzip -dc
		;;
	fd377a585a00) decompress xz-utils xz -dc ;;
	28b52ffd*) decompress zstd zstd -dc ;;
	02214c18*) decompress lz4 lz4 -dc ;;
	5d0000*) decompress xz-utils xz --format=lzma -dc ;;
	425a68*) decompress bzip2 bzip2 -dc ;;
	894c5a4f*) decompress lzop lzop -dc ;;
	*) fail "$image is compressed in a way that is not known here" \
		"(it begins with $(magic "$work/packed"))" ;;
	esac
}

symbols_package() {
	echo "the Debian package linux-image-$release-dbg"
}

# Where the type information of this kernel is: sets $types.
find_types() {
	local candidate

	if [ "$release" = "$(uname -r)" ] && [ -r /sys/kernel/btf/vmlinux ]; then
		types=/sys/kernel/btf/vmlinux
		return
	fi
	for candidate in "$headers/vmlinux" \
		"/usr/lib/debug/boot/vmlinux-$release" \
		"/usr/lib/debug/lib/modules/$release/vmlinux" \
		"/boot/vmlinuz-$release" "/lib/modules/$release/vmlinuz"; do
		if [ -r "$candidate" ]; then
			types=$candidate
			return
		fi
	done
	fail "there is no type information of kernel $release on this machine:" \
		"install the Debian package linux-image-$release"
}

# Make $types a file with BTF: unpack a boot image, and turn DWARF into BTF.
prepare_types() {
	case $(magic "$types") in
	4d5a*)
		unpack_image "$types"
		types=$work/vmlinux
		;;
	esac
	[ -z "$(show_type elevator_type)" ] || return 0
	# Encodes what DWARF there is; with none the result is of no use, and
	# the question below is answered by no.
	pahole -J --btf_encode_detached="$work/btf" "$types" \
		>"$work/messages" 2>&1 || true
	[ ! -s "$work/btf" ] || types=$work/btf
	[ -n "$(show_type elevator_type)" ] ||
		fail "$(pahole --version) finds no type information of kernel" \
			"$release in $source_name: the kernel has to be built" \
			"with CONFIG_DEBUG_INFO_BTF=y, or pahole is too old for it"
}

# pahole and pfunct complain on stderr about kinds of information that are
# newer than they are but not needed here; whether there is an answer counts.
show_type() {
	pahole -F btf -C "$1" "$types" 2>/dev/null || true
}

show_function() {
	pfunct -F btf -f "$1" "$types" 2>/dev/null || true
}

# The definition of type $1, then its macros and checks. The sizes are checked
# when the module is built: types inside it are those of the public headers,
# and these must be of the same configuration as the kernel.
print_type() {
	show_type "$1" | awk -v name="$1" '
		function member(text,   parts) {
			if (match(text, /\(\*[a-z0-9_]+\)/))
				return substr(text, RSTART + 2, RLENGTH - 3)
			sub(/;.*/, "", text)
			sub(/[[].*/, "", text)
			sub(/:.*/, "", text)
			sub(/ +$/, "", text)
			sub(/^.*[ *\t]/, "", text)
			return text
		}
		$0 ~ "^(struct|enum) " name " [{]" { inside = 1; kind = $1 }
		$0 ~ "^typedef .* " name ";" { print; found = 1; next }
		!inside { next }
		/^}/ { printf "};\n"; inside = 0; found = 1; next }
		/\/\* size: / {
			size = $0
			sub(/.*\/\* size: /, "", size)
			sub(/,.*/, "", size)
		}
		/^[ \t]*\/\*.*\*\/[ \t]*$/ || /^[ \t]*$/ { next }
		{
			line = $0
			sub(/[ \t]*\/\*.*/, "", line)
			print line
			if (kind == "struct" && line ~ /^\t[^\t}]/ && line ~ /;$/) {
				members[++count] = member(line)
				if ($0 ~ /\/\* +[0-9]+ +[0-9]+ \*\//) {
					offset = $0
					sub(/.*\/\* +/, "", offset)
					offsets[count] = offset + 0
				}
			}
		}
		END {
			for (i = 1; i <= count; i++)
				printf "#define HAVE_%s_%s 1\n", toupper(name),
					toupper(members[i])
			if (kind == "struct")
				printf "static_assert(sizeof(struct %s) == %d);\n",
					name, size
			for (i = 1; i <= count; i++)
				if (i in offsets)
					printf "static_assert(offsetof(struct %s, %s) == %d);\n",
						name, members[i], offsets[i]
			exit !found
		}'
}

# The prototype of function $1, if modules may call it.
print_function() {
	local prototype

	awk -v name="$1" '$2 == name && $3 == "vmlinux" { found = 1 }
		END { exit !found }' "$headers/Module.symvers" || return 0
	prototype=$(show_function "$1" | grep "$1(") ||
		fail "the type information of kernel $release in $source_name" \
			"lacks the function $1, which the kernel exports:" \
			"$(pahole --version) may be too old for it"
	printf '#define HAVE_%s 1\n%s\n' "${1^^}" "$prototype"
}

print_header() {
	local type name

	cat <<END
/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Private types and functions of the block layer of kernel
 * $release
 * and of no other, made by private-headers.sh from its type information.
 */
#ifndef STREAMSCHED_PRIVATE_H
#define STREAMSCHED_PRIVATE_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/build_bug.h>
#include <linux/iocontext.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/stddef.h>
#include <linux/types.h>

struct blk_mq_alloc_data;
struct blk_mq_ctx;
struct elevator_queue;
struct elevator_type;
struct rq_list;
struct seq_file;
struct seq_operations;
END
	for type in $TYPES; do
		name=${type%\?}
		if print_type "$name" >"$work/one"; then
			echo
			cat "$work/one"
		elif [ "$name" = "$type" ]; then
			fail "the type information of kernel $release in" \
				"$source_name lacks $name: $(pahole --version)" \
				"may be too old for it, or it is no kernel"
		fi
	done | sed 's/^typedef unsigned int blk_insert_t;/typedef unsigned int __bitwise blk_insert_t;\n#define HAVE_BLK_INSERT_T 1/'
	echo
	for name in $FUNCTIONS; do
		print_function "$name"
	done
	printf '\n#endif\n'
}

headers=
vmlinux=
while [ $# -gt 0 ]; do
	case $1 in
	--headers | --vmlinux)
		[ $# -ge 2 ] || usage
		declare "${1#--}=$2"
		shift 2
		;;
	-*) usage ;;
	*) break ;;
	esac
done
case $# in
1) [ -n "$headers" ] || usage ;;
2) ;;
*) usage ;;
esac
output=${*: -1}
release=
[ $# = 1 ] || release=$1
headers=${headers:-/lib/modules/$release/build}
kind=${release:-in $headers}
[ -f "$headers/include/generated/utsrelease.h" ] ||
	fail "the headers of kernel $kind are missing" \
		"(there is no $headers/include/generated/utsrelease.h): install" \
		"the Debian package linux-headers-${release:-\$(uname -r)}"
[ -f "$headers/Module.symvers" ] ||
	fail "$headers has no Module.symvers: no module can be built for this" \
		"kernel before it is built itself (make, then make modules)"
found=$(sed -n 's/^#define UTS_RELEASE "\(.*\)"$/\1/p' \
	"$headers/include/generated/utsrelease.h")
[ "${release:=$found}" = "$found" ] ||
	fail "$headers belongs to kernel $found, not to $release:" \
		"install the Debian package linux-headers-$release"
code=$(sed -n 's/^#define LINUX_VERSION_CODE //p' \
	"$headers/include/generated/uapi/linux/version.h")
[ "$code" -ge $((6 << 16 | 1 << 8)) ] ||
	fail "kernel $release is too old: the modules need 6.1 or later"
for tool in pahole pfunct; do
	command -v "$tool" >/dev/null ||
		fail "$tool is missing: install the Debian package pahole"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
types=$vmlinux
[ -n "$types" ] || find_types
[ -r "$types" ] || fail "$types cannot be read: --vmlinux needs a file"
source_name=$types
prepare_types
print_header >"$work/private.h"
mv "$work/private.h" "$output"
