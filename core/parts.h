/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For a disk of several parts that work at the same time, as an array's members
 * do (core/array/). Streams that keep all parts busy take turns; all others are
 * the rest, write-back too, and nobody waits for the reader just served: in the
 * rest's turn each part has its own order, into which whatever reaches it has
 * been put already.
 *
 * n senders at p parts are served as fast as (n + p - 1) / p at one (a balanced
 * closed network: Lazowska et al., Quantitative System Performance, 1984,
 * chapter 5).
 */
#ifndef SS_PARTS_H
#define SS_PARTS_H

#include "policy.h"

/*
 * Does a stream whose latest request is @rq, and that thinks for @think_ns
 * between two, keep all parts busy? @stream is its number, below SS_PLACES,
 * which another one has after it. @roams: it has gone on elsewhere before, so
 * it is the same stream however far @rq is from what it read last.
 */
typedef bool (*ss_takes_turns_fn)(const struct ss_sched *sched,
				  struct ss_request *rq, u64 think_ns,
				  u32 stream, bool roams);

/* @policy, which is stream, schedules a disk of @nr_parts parts, at least 1. */
void ss_stream_has_parts(struct ss_policy *policy,
			 ss_takes_turns_fn takes_turns, u32 nr_parts);

#endif
