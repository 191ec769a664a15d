// SPDX-License-Identifier: GPL-2.0-only
/* See histogram.h. */
#include "histogram.h"

#include <linux/kernel.h>

#include <string.h>

/* The least time of a bucket; *@width: how many times it counts. */
static u64 bucket_low(u32 bucket, u64 *width)
{
	u32 shift;

	*width = 1;
	if (bucket < (1 << HISTOGRAM_BITS))
		return bucket;
	shift = (bucket >> HISTOGRAM_BITS) - 1;
	*width = 1ULL << shift;
	return ((u64)(1 << HISTOGRAM_BITS) +
		(bucket & ((1 << HISTOGRAM_BITS) - 1)))
	       << shift;
}

/* The middle of a bucket. */
static u64 bucket_ns(u32 bucket)
{
	u64 width, low = bucket_low(bucket, &width);

	return low + width / 2;
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

void histogram_join(struct histogram *to, const struct histogram *from)
{
	u32 bucket;

	if (!from->count)
		return;
	if (!to->count || from->min_ns < to->min_ns)
		to->min_ns = from->min_ns;
	to->max_ns = max_t(u64, to->max_ns, from->max_ns);
	to->count += from->count;
	to->sum_ns += from->sum_ns;
	to->squares_ns2 += from->squares_ns2;
	for (bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++)
		to->bucket[bucket] += from->bucket[bucket];
}

u32 histogram_buckets(const struct histogram *h, struct sim_bucket *buckets)
{
	u32 bucket, nr = 0;
	u64 width;

	for (bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
		if (!h->bucket[bucket])
			continue;
		buckets[nr].ns = bucket_low(bucket, &width) + width - 1;
		buckets[nr++].count = h->bucket[bucket];
	}
	return nr;
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
