/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Coordinated stream scheduling for the members of an array (Xu and Jiang,
 * FAST 2011, section 2.2).
 *
 * Striping shows each member a part of every stream only. The coordinator puts
 * the parts together: from what the members see, and the array's layout, it
 * schedules the array as one disk, and the members send what has its turn
 * there. So all heads are at one stream at a time.
 *
 * It builds no array and sees no request whole, so it can serve an array that
 * somebody else drives. It reads no clock, allocates nothing and sleeps never.
 *
 * Who calls what, and under which lock. Each member is a scheduler of its own,
 * with a lock of its own, in whatever context it runs.
 *
 *	ss_array_init()		before anything else, alone
 *	ss_array_attach(),	with the member's lock held, as ss_sched_*() of
 *	ss_array_detach()	that member are called
 *	ss_array_counters()	at any time
 *
 * The ss_sched_*() calls of an attached member enter the coordinator by
 * themselves. What members share is behind one more lock, the host's:
 * lock() and unlock() below. It is taken with the member's lock held, never
 * the other way round, for a short and bounded time; nothing of the host but
 * kick() is called under it. kick() says that a member should be asked again
 * (ss_sched_choose()); it must only make a note of that, for it comes with the
 * locks of another member and of the array held. Nobody calls into a member
 * but its own host. A host with one thread for all needs no locks.
 */
#ifndef SS_ARRAY_H
#define SS_ARRAY_H

#include "geometry.h"
#include "../coordinator.h"
#include "../places.h"
#include "../sched.h"

/* Requests of all members together that have a place in the turns. */
#define SS_ARRAY_REQUESTS 1024

/* All since ss_array_init(). */
struct ss_array_counters {
	u64 turns; /* all heads brought to a stream */
	u64 slices_ended; /* turns that ended by time */
	u64 established; /* streams of the array that were found */
	u64 trials; /* turns compared with members left apart, */
	u64 trials_lost; /* and how often apart won */
};

/*
 * A member's request as one of the array. The array's scheduler has it
 * dispatched when it may go to the member's disk: it is released.
 */
struct ss_array_request {
	struct ss_request rq; /* in the array's sectors */
	struct ss_request *real; /* the one of: */
	struct ss_array_member *member;
	struct ss_parts *parts; /* its stream's, or NULL */
	u32 nr_noted; /* sectors of it that are counted there */
	struct list_head node; /* free, or of a member: oldest first */
	bool released;
	bool sent; /* it is in the member's disk */
};

struct ss_array;

struct ss_array_member {
	struct ss_coordinator coordinator; /* what the scheduler knows of it */
	struct ss_array *array;
	struct ss_sched *sched; /* NULL: not attached */
	u32 index;
	struct list_head requests; /* of the array, that it has */
	struct list_head plain; /* pending, and in no turn */
	u32 nr_plain;
	u32 nr_held; /* pending and not released */
	u32 nr_released; /* pending and released */
	u32 nr_sent; /* in the disk */
	u32 nr_flushes; /* of its cache, under way */
	u64 place_sector; /* where the next placing read begins, */
	u64 place_until; /* if before this */
	bool placing; /* one is pending or in flight */
};

/* What of a stream came to which members. */
struct ss_parts {
	u64 begin_sector; /* of the first of these, and where the last ends */
	u64 end_sector;
	u64 step; /* to the first of these, where it left rows out */
	u32 used; /* members that it has used, as bits */
	u32 moved; /* sectors, by all of them */
	u32 heard; /* how many requests were done when the last one came */
	u16 nr_requests; /* pieces of one request count once */
	bool wide; /* it kept all members busy last time */
};

struct ss_array {
	/* The host's; each may be NULL. */
	void (*lock)(struct ss_array *array);
	void (*unlock)(struct ss_array *array);
	void (*kick)(struct ss_array *array, u32 member);
	bool places; /* it asks ss_array_place() */
	void *host;

	/* The coordinator's own. */
	struct ss_array_geometry geometry;
	struct ss_array_member member[SS_ARRAY_MEMBERS];
	u32 attached; /* members, as bits */
	struct ss_sched sched; /* of the array as one disk: stream */
	struct ss_parts parts[SS_PLACES]; /* by the number of its stream */
	u64 mean_random_ns; /* of the member's curve that it was given */
	struct ss_curve_point point[SS_CURVE_POINTS]; /* ... and in between */
	u64 now_ns; /* of the last event */
	u64 until_ns; /* nothing is released before */
	void *turn; /* the stream whose turn it is, or NULL */
	bool had_turn; /* there was one when the members were told last */
	u64 turn_since_ns;
	u64 turn_begin; /* its first sector, and where it has come to: */
	u64 turn_sector;
	u64 ahead_sectors; /* as far the drives had read ahead, last turn */
	bool placed; /* heads are placed in this turn, to begin with */
	bool ran_out; /* a head has had to move in this turn */
	u32 moved; /* members whose head has had to move of late, as bits */
	struct ss_array_counters counters;
	struct list_head free;
	struct ss_array_request request[SS_ARRAY_REQUESTS];
};

/*
 * Begin with an array of this layout, no member attached. @array is all zero,
 * but for the host's part.
 */
void ss_array_init(struct ss_array *array,
		   const struct ss_array_geometry *geometry);

/*
 * @sched, which serves member @member's disk, takes part from now on; requests
 * that it has already do not count. -EINVAL with one sentence in @why (at
 * least 160 bytes) when its policy is not stream over another; -EBUSY when it,
 * or another for this member, is attached already: then nothing is changed.
 */
int ss_array_attach(struct ss_array *array, u32 member, struct ss_sched *sched,
		    char *why, size_t why_bytes);

/* No longer; also when the member has failed. The others go on. */
void ss_array_detach(struct ss_array *array, u32 member, u64 now_ns);

/*
 * Shall the host read @nr_sectors from @sector of the member's disk on, for
 * nobody, so that the head is there before the stream asks for it? The request
 * has the flag SS_PLACING. To be asked after kick(); with the member's lock
 * held. True is an answer for one such read, and a host may leave it at that.
 */
bool ss_array_place(struct ss_array *array, u32 member, u64 *sector,
		    u32 *nr_sectors);

/* For looking inside. */
void ss_array_counters(struct ss_array *array,
		       struct ss_array_counters *counters);

#endif
