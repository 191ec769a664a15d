// SPDX-License-Identifier: GPL-2.0-only
/* See histogram.h. */
#include "histogram.h"

#include <string.h>

/* The middle of a bucket. */
static u64 bucket_ns(u32 bucket)
{
	u32 shift;
	u64 low;

	if (bucket < (1 << HISTOGRAM_BITS))
		return bucket;
	shift = (bucket >> HISTOGRAM_BITS) - 1;
	low = ((u64)(1 << HISTOGRAM_BITS) +
	       (bucket & ((1 << HISTOGRAM_BITS) - 1)))
	      << shift;
	return low + ((1ULL << shift) >> 1);
}

/* The least value that at least @permille of all are not above. */
static u64 quantile(const struct histogram *h, u32 permille)
{
	u64 rank = (h->count * permille + 999) / 1000, seen = 0, ns;
	u32 bucket;

	for (bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
		seen += h->bucket[bucket];
		if (seen >= rank)
			break;
	}
	ns = bucket_ns(bucket);
	if (ns > h->max_ns)
		return h->max_ns;
	return ns < h->min_ns ? h->min_ns : ns;
}

static u64 square_root(unsigned __int128 square)
{
	u64 root = 0;
	int bit;

	for (bit = 63; bit >= 0; bit--) {
		u64 more = root | 1ULL << bit;

		if ((unsigned __int128)more * more <= square)
			root = more;
	}
	return root;
}

/* Of a sample, as fio reckons it. Exact: the mean is q + r / count. */
static u64 deviation(const struct histogram *h)
{
	u64 q = h->sum_ns / h->count, r = h->sum_ns % h->count;

	if (h->count < 2)
		return 0;
	return square_root((h->squares_ns2 - (unsigned __int128)q * h->sum_ns -
			    (unsigned __int128)q * r) /
			   (h->count - 1));
}

void histogram_times(const struct histogram *h, struct sim_times *times)
{
	memset(times, 0, sizeof(*times));
	if (!h->count)
		return;
	times->count = h->count;
	times->mean_ns = h->sum_ns / h->count;
	times->stddev_ns = deviation(h);
	times->p50_ns = quantile(h, 500);
	times->p99_ns = quantile(h, 990);
	times->p999_ns = quantile(h, 999);
	times->min_ns = h->min_ns;
	times->max_ns = h->max_ns;
}
