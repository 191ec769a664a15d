#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the rig changes in an unpacked kernel source of its own. Both changes
# are in User Mode Linux' side towards the host; the kernel proper stays as it
# was released.
#
#   kernel/rig/patch.sh SOURCE
set -eu

cd "$1"

fail() {
	printf 'streamsched: %s\n' "$*" >&2
	exit 1
}

# Until 6.15 UML copies the CPU's XSAVE area by way of an array of fixed size.
# With AMX that area has 11008 bytes, and init dies in put_fp_registers().
# Newer kernels ask the host for the size and have no such line.
offsets=arch/x86/um/user-offsets.c
sed -i 's/DEFINE_LONGS(HOST_FP_SIZE, 2696);/DEFINE_LONGS(HOST_FP_SIZE, 12288);/' \
	"$offsets"
if grep 'HOST_FP_SIZE, [0-9]' "$offsets" | grep -qv 12288; then
	fail "$1/$offsets: HOST_FP_SIZE is not the 2696 that is known" \
		"from Linux 6.1 to 6.12; change kernel/rig/patch.sh"
fi

# UML's random numbers are the host's: addresses, hash seeds and UUIDs would
# differ in every run, and with them, in the end, the order of requests.
random=arch/um/os-Linux/util.c
grep -q '^	return getrandom(buf, len, flags);$' "$random" ||
	fail "$1/$random: os_getrandom() is not the one that is known" \
		"from Linux 6.1 to 7.2; change kernel/rig/patch.sh"
sed -i '/^	return getrandom(buf, len, flags);$/c\
	/* The rig: the same numbers in every run (a multiplicative generator). */\
	static unsigned long long state;\
	unsigned char *bytes = buf;\
	size_t i;\
\
	(void)flags;\
	for (i = 0; i < len; i++) {\
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;\
		bytes[i] = state >> 56;\
	}\
	return len;' "$random"
