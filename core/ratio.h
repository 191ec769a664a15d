/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fractions to multiply by without dividing, as exactly as if divided.
 */
#ifndef SS_RATIO_H
#define SS_RATIO_H

#include <linux/math64.h>
#include <linux/types.h>

struct ss_ratio {
	u64 whole;
	u64 rest; /* times 2^64, rounded up */
};

/*
 * @rise / @run, below 2^32. As the rest is rounded up by less than one 2^-64th,
 * what fewer than 2^64 / @run of them come to is wrong by less than 1 / @run:
 * rounded down it is exact.
 */
static inline struct ss_ratio ss_ratio_of(u64 rise, u64 run)
{
	struct ss_ratio ratio;
	u64 left, high, low;

	ratio.whole = div64_u64_rem(rise, run, &left);
	high = div64_u64_rem(left << 32, run, &left);
	low = div64_u64_rem(left << 32, run, &left);
	ratio.rest = (high << 32 | low) + (left != 0);
	return ratio;
}

/* @ratio of @amount, rounded down. */
static inline u64 ss_ratio_times(const struct ss_ratio *ratio, u64 amount)
{
	return ratio->whole * amount + mul_u64_u64_shr(ratio->rest, amount, 64);
}

#endif
