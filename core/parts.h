/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For a disk of several parts that work at the same time, as an array's members
 * do (core/array/). Streams that keep all parts busy take turns; all others are
 * the rest, write-back too, and nobody waits for the reader just served: in the
 * rest's turn each part has its own order.
 */
#ifndef SS_PARTS_H
#define SS_PARTS_H

#include "policy.h"

/* What of a stream came to which parts; from 0 on the host's of the disk. */
struct ss_parts {
	u64 begin_sector; /* of the first of these, and where the last ends */
	u64 end_sector;
	u32 used; /* parts that it has used, as bits */
	u32 moved; /* sectors, by all of them */
	u32 heard; /* how many requests were done when the last one came */
	u16 nr_requests; /* pieces of one request count once */
	bool wide; /* it kept all parts busy last time */
};

/*
 * @policy, which is stream, schedules a disk of parts. @takes_turns: does a
 * stream whose latest request is @rq, and that pauses for @pause_ns between
 * two, keep them all busy?
 */
void ss_stream_has_parts(struct ss_policy *policy,
			 bool (*takes_turns)(const struct ss_sched *sched,
					     const struct ss_request *rq,
					     u64 pause_ns,
					     struct ss_parts *parts));

/* From now on the inner policy has everything, or no longer. */
void ss_stream_set_apart(struct ss_policy *policy, bool apart, u64 now_ns);

#endif
