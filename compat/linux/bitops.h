/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for <linux/bitops.h>. */
#ifndef COMPAT_LINUX_BITOPS_H
#define COMPAT_LINUX_BITOPS_H

#include <linux/types.h>

/* The highest bit that is set, counted from 1; 0 when none is. */
static inline int fls(unsigned int word)
{
	return word ? 32 - __builtin_clz(word) : 0;
}

static inline int fls64(u64 word)
{
	return word ? (__builtin_clzll(word) ^ 63) + 1 : 0;
}

/* The number of bits set in @w. */
static inline unsigned int hweight32(u32 w)
{
	return (unsigned int)__builtin_popcount(w);
}

#endif
