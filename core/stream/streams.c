// SPDX-License-Identifier: GPL-2.0-only
/* Which requests go on from each other. See streams.h. */
#include "streams.h"
#include "../sched.h"

#include <linux/kernel.h>

/*
 * The part of a random request's positioning that a child may cost at most.
 * At all of it every second random request is near enough to some other, and
 * random readers become streams; at a fourth few files of one directory do.
 */
#define NEAR_PART 2

void ss_streams_init(struct ss_streams *streams)
{
	u32 i;

	INIT_LIST_HEAD(&streams->free);
	INIT_LIST_HEAD(&streams->candidates);
	INIT_LIST_HEAD(&streams->known);
	ss_places_init(&streams->places);
	for (i = 0; i < NR_STREAMS; i++)
		list_add_tail(&streams->stream[i].node, &streams->free);
}

/* The longest unused of @list that has nothing open, or NULL. */
static struct ss_stream *streams_closed(const struct list_head *list)
{
	struct ss_stream *s;

	list_for_each_entry(s, list, node)
		if (!s->nr_open)
			return s;
	return NULL;
}

struct ss_stream *ss_streams_begin(struct ss_streams *streams,
				   struct ss_request *rq)
{
	struct ss_stream *s = streams_closed(&streams->free)		   ?:
				      streams_closed(&streams->candidates) ?:
				      streams_closed(&streams->known);

	if (!s || s->kept)
		return NULL;
	list_del(&s->node);
	*s = (struct ss_stream){
		.reader.owner = (u32)rq->owner,
		.size = 1,
		.nr_open = 1,
		.with = ss_streams_index(streams, s),
		.is_new = true,
	};
	ss_streams_ends_at(streams, s, ss_request_end(rq));
	list_add_tail(&s->node, &streams->candidates);
	rq->stream = s;
	return s;
}

/* How long the reader of @s has sent nothing, in whichever stream. */
static u64 streams_idle_ns(const struct ss_streams *streams,
			   const struct ss_stream *s, u64 now_ns)
{
	if (s->nr_open || streams->stream[s->with].nr_open)
		return 0;
	return now_ns - s->reader.idle_since_ns;
}

/* Of the streams that end at @sector one that takes turns, if any does. */
static struct ss_stream *streams_at(struct ss_streams *streams, u64 sector)
{
	struct ss_stream *best = NULL;
	u16 i = SS_NO_PLACE;

	while ((i = ss_places_at(&streams->places, sector, i)) != SS_NO_PLACE)
		if (!best || streams->stream[i].established)
			best = &streams->stream[i];
	return best;
}

/* Farther from a stream's end no request goes on from it. */
static u64 streams_reach(const struct ss_curve *curve)
{
	u64 reach = ss_curve_reach_sectors(
		curve, curve->mean_random_ns / NEAR_PART + 1);

	return min_t(u64, reach, SS_NOWHERE / 2);
}

u64 ss_streams_place_sectors(const struct ss_curve *curve)
{
	if (!curve->transfer_ps)
		return 0;
	/* Two switches, in ps. */
	return div_u64(2 * 1000 * curve->mean_random_ns, curve->transfer_ps);
}

/*
 * The next stream of @walk that may be gone on from: at work, or idle for less
 * than positioning takes. Another is not met again before its end moves.
 */
static struct ss_stream *streams_next(struct ss_streams *streams,
				      const struct ss_curve *curve,
				      struct ss_places_walk *walk, u64 now_ns)
{
	u16 i;

	while ((i = ss_places_next(&streams->places, walk)) != SS_NO_PLACE) {
		struct ss_stream *s = &streams->stream[i];

		if (streams_idle_ns(streams, s, now_ns) < curve->mean_random_ns)
			return s;
		ss_places_hide(&streams->places, i);
	}
	return NULL;
}

/*
 * The first established stream at the place of @sector that is before @s, or
 * @s. If @s is not established and does not @stay, it need not be before it.
 */
static struct ss_stream *streams_at_place(struct ss_streams *streams,
					  const struct ss_curve *curve,
					  u64 sector, struct ss_stream *s,
					  bool stays, u64 now_ns)
{
	u64 width = ss_streams_place_sectors(curve);
	struct ss_places_walk walk;
	struct ss_stream *other;

	ss_places_begin(&streams->places, sector, streams_reach(curve), &walk);
	while ((other = streams_next(streams, curve, &walk, now_ns)))
		if ((!s || !(stays || s->established) || other < s) &&
		    other->established &&
		    ss_distance(ss_streams_end(streams, other), sector) <=
			    width)
			s = other;
	return s;
}

struct ss_stream *ss_streams_goes_on(struct ss_streams *streams,
				     const struct ss_curve *curve,
				     struct ss_stream *s, u64 end_sector,
				     bool stays, u64 now_ns)
{
	struct ss_stream *at_place;

	at_place = streams_at_place(streams, curve, end_sector, s, stays,
				    now_ns);
	ss_streams_ends_at(streams, s, end_sector);
	s->with = ss_streams_index(streams, at_place);
	return at_place;
}

/* The stream that a request at @sector goes on from for less than @least_ns. */
static struct ss_stream *streams_nearest(struct ss_streams *streams,
					 const struct ss_curve *curve,
					 u64 sector, u64 least_ns, u64 now_ns)
{
	u64 width = ss_streams_place_sectors(curve);
	u64 reach = streams_reach(curve);
	struct ss_stream *best = NULL, *s;
	struct ss_places_walk walk;

	ss_places_begin(&streams->places, sector, reach, &walk);
	while ((s = streams_next(streams, curve, &walk, now_ns))) {
		u64 end = ss_streams_end(streams, s), child_ns;
		/* While some of it are at work the next is at its place. */
		u64 near = s->nr_open ? width : reach;

		/* In its order: not from what is pending elsewhere. */
		if (s->nr_apart || sector - end + near > 2 * near)
			continue;
		/* What going on from it costs, waiting included. */
		child_ns = ss_curve_between(curve, end, sector);
		if (child_ns > curve->mean_random_ns / NEAR_PART)
			continue;
		child_ns += streams_idle_ns(streams, s, now_ns);
		if (child_ns < least_ns ||
		    (best && child_ns == least_ns && !best->established)) {
			least_ns = child_ns;
			best = s;
		}
	}
	return best;
}

/* A pending request without a stream that @rq continues begins one. */
static struct ss_stream *streams_pending(struct ss_streams *streams,
					 const struct ss_policy *policy,
					 const struct ss_request *rq)
{
	struct ss_request *before;
	struct ss_stream *s;

	before = ss_sched_pending_before(policy->sched, rq->sector);
	if (!before || before->stream || !ss_request_is_awaited(before))
		return NULL;
	s = ss_streams_begin(streams, before);
	if (s)
		s->nr_apart = 1;
	return s;
}

struct ss_stream *ss_streams_find(struct ss_streams *streams,
				  const struct ss_policy *policy,
				  struct ss_request *rq, u64 together_ns,
				  u64 now_ns)
{
	const struct ss_curve *curve = &policy->sched->curve;
	u64 instead_ns = min_t(u64, curve->mean_random_ns,
			       together_ns ?: SS_FOREVER);
	struct ss_stream *s = streams_at(streams, rq->sector);

	if (s)
		return s;
	s = streams_nearest(streams, curve, rq->sector, instead_ns, now_ns);
	s = streams_pending(streams, policy, rq) ?: s;
	if (s ||
	    !streams_at_place(streams, curve, rq->sector, NULL, true, now_ns))
		return s;
	/* It begins behind another that reads there. */
	s = ss_streams_begin(streams, rq);
	if (s)
		s->nr_open = 0;
	return s;
}

void ss_streams_used(struct ss_streams *streams, struct ss_stream *s)
{
	list_move_tail(&s->node,
		       s->established ? &streams->known : &streams->candidates);
}
