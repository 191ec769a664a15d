/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for <linux/math64.h>. The kernel's versions exist
 * because a 32-bit machine has no 64-bit division; here `/` is enough.
 * Divisors must not be zero.
 */
#ifndef COMPAT_LINUX_MATH64_H
#define COMPAT_LINUX_MATH64_H

#include <linux/types.h>

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline s64 div_s64(s64 dividend, s32 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline s64 div64_s64(s64 dividend, s64 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64_rem(u64 dividend, u64 divisor, u64 *remainder)
{
	*remainder = dividend % divisor;
	return dividend / divisor;
}

/* a * b >> shift where a * b may pass 64 bits; the result must fit. */
static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (u64)(((unsigned __int128)a * b) >> shift);
}

/*
 * a * b / c where a * b may pass 64 bits; the quotient must fit. The kernel
 * stops at one that does not, so here it does, too.
 */
static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	unsigned __int128 quotient = (unsigned __int128)a * b / c;

	if (quotient > ~(u64)0)
		__builtin_trap();
	return (u64)quotient;
}

#endif
