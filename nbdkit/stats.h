/* SPDX-License-Identifier: GPL-2.0-only */
/* What is counted, per member and per connection. */
#ifndef NBDKIT_STATS_H
#define NBDKIT_STATS_H

#include <linux/types.h>
#include <pthread.h>

/* Times by powers of two of a microsecond: the last bucket has no limit. */
#define STATS_BUCKETS 28

struct stats_times {
	u64 count;
	u64 sum_ns;
	u64 max_ns;
	u64 bucket[STATS_BUCKETS];
};

struct stats_flow {
	u64 requests;
	u64 bytes;
	u64 errors;
};

/* Under the member's lock. */
struct stats_member {
	struct stats_flow flow[2]; /* by SS_READ and SS_WRITE */
	u64 flushes;
	u64 flush_errors;
	struct stats_times wait; /* from arrival to dispatch */
	struct stats_times service; /* from dispatch to completion */
};

struct stats_connection {
	pthread_mutex_t lock;
	struct stats_flow flow[2];
	struct stats_times wait;
	struct stats_times service;
};

static inline void stats_time(struct stats_times *times, u64 ns)
{
	u64 us = ns / 1000;
	u32 bucket = us ? 64 - (u32)__builtin_clzll(us) : 0;

	if (bucket > STATS_BUCKETS - 1)
		bucket = STATS_BUCKETS - 1;
	times->count++;
	times->sum_ns += ns;
	if (ns > times->max_ns)
		times->max_ns = ns;
	times->bucket[bucket]++;
}

static inline void stats_flow(struct stats_flow *flow, u64 bytes, bool error)
{
	flow->requests++;
	flow->bytes += error ? 0 : bytes;
	flow->errors += error;
}

/* Add @from to @to, whose lock is not looked at. */
void stats_add_connection(struct stats_connection *to,
			  const struct stats_connection *from);

#endif
