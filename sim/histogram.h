/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A distribution of times in constant memory: exact count, sum, sum of squares,
 * least and greatest; other quantiles within 1/64 of their value (log-linear
 * buckets, 64 to each power of two, the layout that fio and HdrHistogram also
 * use).
 */
#ifndef SIM_HISTOGRAM_H
#define SIM_HISTOGRAM_H

#include "result.h"

#define HISTOGRAM_BITS 6
#define HISTOGRAM_BUCKETS SIM_MAX_BUCKETS /* 64 << HISTOGRAM_BITS */

struct histogram {
	u64 count;
	u64 sum_ns;
	unsigned __int128 squares_ns2; /* of 2^32 times of a day they fit */
	u64 min_ns;
	u64 max_ns;
	u32 bucket[HISTOGRAM_BUCKETS];
};

static inline u32 histogram_bucket(u64 ns)
{
	u32 shift;

	if (ns < (1 << HISTOGRAM_BITS))
		return (u32)ns;
	shift = 63 - HISTOGRAM_BITS - (u32)__builtin_clzll(ns);
	return ((shift + 1) << HISTOGRAM_BITS) +
	       (u32)((ns >> shift) & ((1 << HISTOGRAM_BITS) - 1));
}

static inline void histogram_add(struct histogram *h, u64 ns)
{
	if (!h->count || ns < h->min_ns)
		h->min_ns = ns;
	if (ns > h->max_ns)
		h->max_ns = ns;
	h->count++;
	h->sum_ns += ns;
	h->squares_ns2 += (unsigned __int128)ns * ns;
	h->bucket[histogram_bucket(ns)]++;
}

/* Add all of @from to @to. */
void histogram_join(struct histogram *to, const struct histogram *from);

/* Those that are not empty, by increasing time: how many there are. */
u32 histogram_buckets(const struct histogram *h, struct sim_bucket *buckets);

/* Mean, deviation, quantiles and ends; all zero when nothing was added. */
void histogram_times(const struct histogram *h, struct sim_times *times);

#endif
