/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Coordinated stream scheduling for the members of an array (Xu and Jiang,
 * FAST 2011, section 2.2).
 *
 * Striping shows each member a part of every stream only. The coordinator puts
 * the parts together: from what the members see, and the array's layout, it
 * finds streams in the array's own addresses (virtual streams), and for each
 * of them what comes to each member (physical streams). Where holding all
 * heads for one virtual stream pays, it brings them there together, for one
 * slice, and then to the next.
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
 *	ss_array_turn(),	at any time
 *	ss_array_counters()
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
#include "trial.h"
#include "../coordinator.h"
#include "../sched.h"

/* Virtual streams remembered at once. */
#define SS_ARRAY_STREAMS 64

/* All since ss_array_init(). */
struct ss_array_counters {
	u64 turns; /* all heads brought to a virtual stream */
	u64 slices_ended; /* turns that ended by time */
	u64 established; /* virtual streams with all physical ones */
	u64 unusable; /* ... given up, for waiting did not pay */
};

/* What comes to one member for a virtual stream. */
struct ss_array_physical {
	struct list_head pending; /* requests, oldest first */
	u64 end_sector; /* where the last one ends, on the member */
	u64 arrival_ns; /* when the last one came */
	u64 completed_ns; /* when the last one was done */
	u64 response_ns; /* the virtual stream's sum at that time */
	u64 instead_ns; /* what would be done instead of waiting costs */
	u32 size; /* members so far */
	u32 straight; /* the latest, each where the one before ended */
	u32 nr_pending;
	u32 nr_in_flight;
};

struct ss_array_stream {
	struct list_head node; /* free, or in use: latest last */
	u64 end_sector; /* virtual: where the foremost request ends */
	u64 completed_ns; /* when nothing of it was left */
	u64 since_ns; /* waits: something is pending, no turn since */
	u64 pause_ns; /* how long nothing of it was left, at most */
	u64 response_ns; /* of all its requests that are done, sum */
	u64 instead_ns; /* as the last member to be done had it */
	u64 won_ns; /* by waiting in its turns */
	u64 lost_ns;
	struct ss_array_rate alone; /* estimate: with the array to itself */
	struct ss_array_rate round; /* the same since nothing of it was left */
	u64 round_ns; /* the members' work in it, sum */
	u32 round_members; /* so many worked at once, at most */
	u32 working; /* members that have something of it, as bits */
	u32 round_size;
	u32 spread; /* members that work at once: mean, times a constant */
	u32 size; /* requests so far; 0: the place is free */
	u32 nr_pending;
	u32 nr_in_flight;
	u32 established; /* members whose physical stream is, as bits */
	bool usable; /* all of them are */
	bool given_up; /* it was usable and did not prove so */
	bool contends; /* it took turns when the last one ended */
	bool reads; /* its last request was one */
	struct ss_array_physical physical[SS_ARRAY_MEMBERS];
};

struct ss_array;

struct ss_array_member {
	struct ss_coordinator coordinator; /* what the scheduler knows of it */
	struct ss_array *array;
	struct ss_sched *sched; /* NULL: not attached */
	u32 index;
	u16 epoch; /* of its attachment, by the scheduler's count */
	u64 heard; /* how many requests had come when its last one did */
	u64 heard_asked; /* ... and how many sectors they asked for */
	struct list_head age; /* its pending requests, oldest first */
	u32 nr_pending;
	u32 nr_busy; /* those in flight too */
	u32 nr_awaited; /* ... that somebody waits for */
	/* Its turn ended here with others waiting: they go first, once. */
	struct ss_array_stream *passed;
	u64 way_ns; /* positioning that this turn began with, or U64_MAX */
	u64 turn_sector; /* where the stream had come to when it began */
	u64 place_sector; /* where the next placing read goes, at least */
	u64 place_until; /* ... and where it begins at most */
	bool placing; /* such a read is pending or in flight */
	const struct ss_request *mover; /* in flight: the head moves for it */
	bool holding; /* kept idle for the turn's stream, others wait */
	const u64 *threshold; /* settings of its stream policy */
	const u64 *wait_target_ns;
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
	struct list_head free;
	struct list_head streams;
	struct ss_array_stream *turn; /* whose turn it is; NULL: nobody's */
	struct ss_array_stream *last; /* whose turn it was before, or NULL */
	u64 last_end_ns; /* when that ended */
	struct ss_array_stream *next; /* whose turn is next, or NULL: any */
	u32 owed; /* members where others wait for too long, as bits */
	u64 owed_ns; /* what came until then is sent before the next turn */
	u64 others_least_ns; /* until when all others have a turn, at least */
	u64 others_most_ns; /* ... and at most; 0: they have none */
	bool sharing; /* it is theirs as a stream's is: streams wait for them */
	u64 shared_ns; /* when such a turn ended last */
	u64 others_idle_ns; /* in it: since when nothing of theirs was left */
	u64 slice_start_ns;
	u64 placed_ns; /* when the last head was there; U64_MAX: not yet */
	u32 placed; /* members whose head is there, as bits */
	u32 moved; /* members whose head had to move of late, as bits */
	bool placing; /* the others' are to follow at once */
	u64 ahead_sectors; /* on a member, read ahead before: last turn */
	u32 caution; /* the threshold counts so many times doubled */
	u32 nr_busy; /* requests of all members, pending or in flight */
	u32 nr_awaited; /* ... that somebody waits for */
	u64 arrivals; /* of all members, since the beginning */
	u64 asked; /* sectors, by all of them */
	struct ss_array_trial trial;
	struct ss_array_counters counters;
	struct ss_array_stream stream[SS_ARRAY_STREAMS];
};

/*
 * Begin with an array of this layout, no member attached. The host's part of
 * @array is left alone.
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

/* For looking inside: is it a virtual stream's turn, and since when? */
bool ss_array_turn(struct ss_array *array, u64 *end_sector, u64 *since_ns);
void ss_array_counters(struct ss_array *array,
		       struct ss_array_counters *counters);

#endif
