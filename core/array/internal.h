/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of an array's coordinator (this folder) share; nobody else
 * includes this. But for lock() all is to be called with the array's lock held.
 */
#ifndef SS_ARRAY_INTERNAL_H
#define SS_ARRAY_INTERNAL_H

#include "array.h"

#include <linux/kernel.h>
#include <linux/math64.h>

/* Members run ahead of each other by so many rows; that is no way back. */
#define ROWS_TOGETHER 4
/* How many members work at once for a stream: a mean of so many rounds. */
#define SPREAD_MEMORY 8
/* A second chance: half as long again (the paper's tolerance factor, 2.1). */
#define TOLERANCE_PERCENT 150
/*
 * A row of chunks is short if a stream passes it in so many times positioning.
 * Where it is not, a stream that works on fewer members at once than this part
 * of them leaves the others to themselves.
 */
#define ROW_WAYS 2
#define WIDE 2

/* ---- virtual.c ---- */

/* @s is no more; its pending requests are nobody's. */
void ss_array_stream_free(struct ss_array *array, struct ss_array_stream *s);

/* A new virtual stream; NULL when all places are taken by better ones. */
struct ss_array_stream *ss_array_stream_new(struct ss_array *array);

/* Forget those that nothing has come for in time. */
void ss_array_drop_broken(struct ss_array_member *member, u64 now_ns);

/* Whose child a request at the virtual @sector is, or NULL. */
struct ss_array_stream *ss_array_find_parent(
	const struct ss_array_member *member, u64 sector, u64 now_ns);

/* Nothing of @s is left: what does that say of what it would do alone? */
void ss_array_round_ends(struct ss_array_stream *s);

/* @rq waits on its member as one of @s. */
void ss_array_note_pending(struct ss_array_member *member,
			   struct ss_array_stream *s, struct ss_request *rq);

/* @rq is the next of @s on this member. */
void ss_array_extend_physical(struct ss_array_member *member,
			      struct ss_array_stream *s, struct ss_request *rq,
			      u64 now_ns);

/* Where @rq ends in virtual addresses; -EINVAL if it is none of the array's. */
int ss_array_virtual_place(const struct ss_array_member *member,
			   const struct ss_request *rq, u64 *begin, u64 *end);

/* @rq is not pending any more. */
void ss_array_leaves_pending(struct ss_array_member *member,
			     struct ss_request *rq);

/* What the member would do now instead of waiting for @s costs. */
u64 ss_array_instead_ns(const struct ss_array_member *member,
			const struct ss_array_stream *s, u64 now_ns);

/* ---- turn.c ---- */

/* How long a turn lasts. */
u64 ss_array_slice_ns(const struct ss_array_member *member);

/*
 * The slice counts from when all heads are there: a reader that asks for one
 * piece at a time moves them one after the other. That takes a slice more at
 * the most.
 */
u64 ss_array_slice_end_ns(const struct ss_array_member *member);

/*
 * The member sends none of @s: the inner policy's choice among the others, or
 * the oldest when it has waited for as long as all others' turns may take.
 */
struct ss_request *ss_array_next_other(const struct ss_array_member *member,
				       const struct ss_array_stream *s,
				       u64 now_ns);

/*
 * Are heads placed for @s? Not with chunks so large that it is long on each: it
 * may end before.
 */
bool ss_array_places_pay(const struct ss_array_member *member,
			 const struct ss_array_stream *s);

/*
 * All others, who have no turns of their own, have one together: each member
 * sends theirs first, and else schedules by itself. Until what made it due has
 * been sent, for a part of a slice at least and a slice at most.
 */
bool ss_array_is_others_turn(const struct ss_array_member *member, u64 now_ns);

/* Until when, at least, streams have to wait while it is the others' turn. */
u64 ss_array_share_until_ns(const struct ss_array_member *member, u64 now_ns);

/* @s, which has just become usable, may be one of the others in their turn. */
void ss_array_share_has(struct ss_array_member *member,
			const struct ss_array_stream *s, u64 now_ns);

/* A request is no more: was it the last one of the others, in their turn? */
void ss_array_share_idles(struct ss_array *array, u64 now_ns);

/* Is @rq of a stream that takes turns? */
bool ss_array_has_turns(const struct ss_request *rq);

/* The oldest request of the member whose sender has no turns of its own. */
struct ss_request *ss_array_oldest_of_others(
	const struct ss_array_member *member);

/* Do requests wait here that go before the next turn? */
bool ss_array_owes(const struct ss_array_member *member);

/* The turn is over; who has waited for too long is next. */
void ss_array_end_turn(struct ss_array_member *member, u64 now_ns);

/* It is the turn of @s, from @now_ns on. */
void ss_array_begin_turn(struct ss_array_member *member,
			 struct ss_array_stream *s, u64 now_ns);

/*
 * Could @s have a turn now? Having had the last one, it leaves others a part
 * of a slice in which they can become usable.
 */
bool ss_array_may_begin(const struct ss_array_member *member,
			const struct ss_array_stream *s, u64 now_ns);

/* Waiting in its turns has not paid: not to be tried again. */
void ss_array_give_up(struct ss_array_member *member, struct ss_array_stream *s,
		      u64 now_ns);

/*
 * Until when is the member held for the turn's stream, which has nothing for
 * it? While something of it is under way elsewhere its next request here may
 * follow from that; but to look again now and then is cheaper than to tell all
 * members whenever nothing is.
 */
u64 ss_array_hold_until_ns(const struct ss_array_member *member, u64 now_ns);

/* Are heads brought together these days? Between two turns they still are. */
bool ss_array_is_together(const struct ss_array_member *member, u64 now_ns);

/*
 * What time it is for the array. Members may come here in another order than
 * they read the clock, and what they share must not go back in time.
 */
u64 ss_array_now_ns(const struct ss_array *array, u64 now_ns);

/* Every event begins here: the time for it. */
u64 ss_array_time_passes(struct ss_array_member *member, u64 now_ns);

/* @rq is not of the stream whose turn it is. Why does it go, then? */
void ss_array_other_goes(struct ss_array_member *member, struct ss_request *rq,
			 u64 now_ns);

/* ---- choose.c ---- */

/* What the member does next; false: what its own policy says. */
bool ss_array_choose(const struct ss_array_member *member, u64 now_ns,
		     struct ss_decision *decision);

/* After every event: has the disk begun to idle for the turn's stream? */
void ss_array_note_holding(struct ss_array_member *member, u64 now_ns);

/* ---- place.c ---- */

/* Has the members' hosts ask whether to read for nobody, where that is due. */
void ss_array_kick_to_place(struct ss_array *array);

/*
 * The head had to move for @rq: soon the others will have to. If this one had
 * to before, in this turn, then all have to once more.
 */
void ss_array_note_moved(struct ss_array_member *member,
			 const struct ss_request *rq, u64 now_ns);

/*
 * Is the head there? A first request that took far less than positioning came
 * from the drive's cache, and a later one will pay for it.
 */
void ss_array_note_placed(struct ss_array_member *member,
			  const struct ss_array_stream *s,
			  const struct ss_request *rq, u64 now_ns);

/* ---- small questions ---- */

static inline void lock(struct ss_array *array)
{
	if (array->lock)
		array->lock(array);
}

static inline void unlock(struct ss_array *array)
{
	if (array->unlock)
		array->unlock(array);
}

static inline u32 nr_bits(u32 bits)
{
	u32 nr = 0;

	for (; bits; bits &= bits - 1)
		nr++;
	return nr;
}

static inline struct ss_policy *inner_of(const struct ss_array_member *member)
{
	return member->sched->policy[0].inner;
}

/* @rq came since the member was attached. */
static inline bool knows(const struct ss_array_member *member,
			 const struct ss_request *rq)
{
	return rq->array_epoch && rq->array_epoch == member->epoch;
}

/* Pending requests of the member that are not @s's own. */
static inline u32 nr_others(const struct ss_array_member *member,
			    const struct ss_array_stream *s)
{
	return member->nr_pending - s->physical[member->index].nr_pending;
}

static inline bool is_idle(const struct ss_array_stream *s)
{
	return !s->nr_pending && !s->nr_in_flight;
}

static inline u64 with_tolerance(u64 ns, u64 size, u64 threshold)
{
	/* As for one disk: those that much longer may take that much longer. */
	if (size * 100 < threshold * TOLERANCE_PERCENT)
		return ns;
	return div_u64(ns * TOLERANCE_PERCENT, 100);
}

static inline u64 stream_threshold(const struct ss_array_member *member)
{
	return *member->threshold * member->array->geometry.nr_members;
}

/* How long after its completion the virtual stream may go on. */
static inline u64 patience_ns(const struct ss_array_member *member,
			      const struct ss_array_stream *s)
{
	return with_tolerance(s->instead_ns, s->size, stream_threshold(member));
}

static inline u64 physical_patience_ns(const struct ss_array_member *member,
				       const struct ss_array_physical *p)
{
	return with_tolerance(p->instead_ns, p->size, *member->threshold);
}

/* What @s would do with the array to itself; the round under way counts. */
static inline struct ss_array_rate alone(const struct ss_array_stream *s)
{
	return (struct ss_array_rate){
		.sectors = s->alone.sectors + s->round.sectors,
		.ns = s->alone.ns + s->round.ns,
	};
}

/* Does @s, by itself, come to all members while a head is on its way? */
static inline bool passes_rows(const struct ss_array_member *member,
			       const struct ss_array_stream *s)
{
	const struct ss_array_geometry *geometry = &member->array->geometry;
	u64 row = (u64)geometry->chunk_sectors * geometry->data_members;
	u64 way_ns = ROW_WAYS * member->sched->curve.mean_random_ns;
	struct ss_array_rate rate = alone(s);

	return row * rate.ns <= rate.sectors * way_ns;
}

static inline bool is_part(const struct ss_array_member *member,
			   const struct ss_array_stream *s)
{
	return s->established & (1U << member->index);
}

#endif
