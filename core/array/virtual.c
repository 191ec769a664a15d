// SPDX-License-Identifier: GPL-2.0-only
/*
 * The coordinator of an array: virtual and physical streams.
 *
 * The table of them, whose child a request is, what waiting for a stream has
 * won or lost, and what a stream would do with the array to itself.
 */
#include "internal.h"

#include <linux/errno.h>
#include <linux/bug.h>
#include <linux/kernel.h>
#include <linux/math64.h>

/*
 * A child is no farther away than costs this part of what would be done
 * instead. The paper asks for less than all of it; but where streams lie
 * closer together than the mean, that takes one for another's child.
 */
#define WAY_SHARE 2
/* The score forgets by 1/SCORE_MEMORY at each outcome. */
#define SCORE_MEMORY 64
/* Of the time spent waiting for one that came, this part counts as lost. */
#define SCORE_IDLE 6
/* What comes to one member within so short a time is asked for at once. */
#define TOGETHER_NS (50 * SS_USEC)
/* A round of requests is this long at most, if the stream never pauses. */
#define ROUND_MOST 64
#define ALONE_MEMORY_NS (200 * SS_MSEC)
/*
 * A member that nothing came for while so many requests for each, and so many
 * rows of chunks, were asked for is out: small requests stay on one for long.
 */
#define SILENT_ARRIVALS 64
#define SILENT_ROWS 8
/* Before anything is known: so many times positioning are taken as won. */
#define SCORE_START 4

void ss_array_stream_free(struct ss_array *array, struct ss_array_stream *s)
{
	u32 i;

	WARN_ON_ONCE(!is_idle(s));
	if (array->turn == s)
		array->turn = NULL;
	if (array->last == s)
		array->last = NULL;
	if (array->next == s)
		array->next = NULL;
	for (i = 0; i < array->geometry.nr_members; i++)
		if (array->member[i].passed == s)
			array->member[i].passed = NULL;
	s->size = 0;
	list_move_tail(&s->node, &array->free);
}

struct ss_array_stream *ss_array_stream_new(struct ss_array *array)
{
	struct ss_array_stream *s;
	u32 i;

	if (list_empty(&array->free)) {
		list_for_each_entry(s, &array->streams, node)
			if (is_idle(s) && !s->usable && !s->given_up)
				break;
		if (&s->node == &array->streams)
			return NULL;
		ss_array_stream_free(array, s);
	}
	s = list_first_entry(&array->free, struct ss_array_stream, node);
	list_move_tail(&s->node, &array->streams);
	s->completed_ns = 0;
	s->pause_ns = 0;
	s->response_ns = 0;
	s->instead_ns = 0;
	s->alone = (struct ss_array_rate){ 0 };
	s->round = (struct ss_array_rate){ 0 };
	s->round_ns = 0;
	s->round_members = 0;
	s->round_size = 0;
	s->spread = 0;
	s->working = 0;
	s->nr_pending = 0;
	s->nr_in_flight = 0;
	s->established = 0;
	s->usable = false;
	s->given_up = false;
	s->contends = false;
	s->reads = false;
	for (i = 0; i < array->geometry.nr_members; i++) {
		s->physical[i].size = 0;
		s->physical[i].straight = 0;
		s->physical[i].end_sector = 0;
		s->physical[i].nr_pending = 0;
		s->physical[i].nr_in_flight = 0;
		INIT_LIST_HEAD(&s->physical[i].pending);
	}
	return s;
}

void ss_array_drop_broken(struct ss_array_member *member, u64 now_ns)
{
	struct ss_array *array = member->array;
	struct list_head *at = array->streams.next, *next;

	for (; at != &array->streams; at = next) {
		struct ss_array_stream *s = list_entry(at,
						       struct ss_array_stream,
						       node);

		next = at->next;
		if (is_idle(s) && s != array->turn &&
		    now_ns >= s->completed_ns + patience_ns(member, s))
			ss_array_stream_free(array, s);
	}
}

/* What it costs the member to go on from the stream's end to @sector. */
static u64 virtual_cost_ns(const struct ss_array_member *member,
			   const struct ss_array_stream *s, u64 sector)
{
	const struct ss_array_geometry *geometry = &member->array->geometry;
	u64 row = (u64)geometry->chunk_sectors * geometry->data_members;
	u64 end = s->end_sector;

	if (sector < end && end - sector <= ROWS_TOGETHER * row)
		return 0;
	return ss_curve_service_ns(&member->sched->curve,
				   div_u64(end, geometry->data_members),
				   div_u64(sector, geometry->data_members));
}

struct ss_array_stream *ss_array_find_parent(
	const struct ss_array_member *member, u64 sector, u64 now_ns)
{
	struct ss_array_stream *s, *best = NULL;
	u64 best_ns = U64_MAX;

	list_for_each_entry(s, &member->array->streams, node) {
		u64 cost = virtual_cost_ns(member, s, sector);

		if (cost > s->instead_ns / WAY_SHARE)
			continue;
		if (is_idle(s))
			cost += now_ns - s->completed_ns;
		if (cost < patience_ns(member, s) && cost < best_ns) {
			best_ns = cost;
			best = s;
		}
	}
	return best;
}

/* As early as it could have come: does @rq continue the member's share? */
static bool extends_physical(const struct ss_array_member *member,
			     const struct ss_array_stream *s,
			     const struct ss_request *rq, u64 now_ns)
{
	const struct ss_array_physical *p = &s->physical[member->index];
	u64 wait_ns = 0;

	if (!p->nr_pending && !p->nr_in_flight) {
		wait_ns = now_ns - p->completed_ns;
		wait_ns -= min_t(u64, wait_ns, s->response_ns - p->response_ns);
	}
	return wait_ns + ss_curve_service_ns(&member->sched->curve,
					     p->end_sector, rq->sector) <
	       physical_patience_ns(member, p);
}

/* What waiting has won and lost in this stream's turns; old ones fade. */
static void score_add(struct ss_array_stream *s, u64 won_ns, u64 lost_ns)
{
	s->won_ns += won_ns - s->won_ns / SCORE_MEMORY;
	s->lost_ns += lost_ns - s->lost_ns / SCORE_MEMORY;
}

/*
 * It is the stream's turn and @rq has come, at its actual time: was waiting
 * for it worth while? False: waiting for this stream is not, by and large.
 */
static bool pays(const struct ss_array_member *member,
		 struct ss_array_stream *s, const struct ss_request *rq,
		 u64 now_ns)
{
	const struct ss_array *array = member->array;
	const struct ss_array_physical *p = &s->physical[member->index];
	u64 cost_ns, wait_ns;

	/* Where nothing else is pending waiting is free. */
	if (p->nr_pending || p->nr_in_flight || !nr_others(member, s) ||
	    array->placed_ns == U64_MAX)
		return true;
	wait_ns = now_ns - max_t(u64, p->completed_ns, array->placed_ns);
	cost_ns = wait_ns + ss_curve_service_ns(&member->sched->curve,
						p->end_sector, rq->sector);
	if (cost_ns < p->instead_ns)
		score_add(s, p->instead_ns - cost_ns,
			  div_u64(wait_ns, SCORE_IDLE));
	else
		score_add(s, 0, cost_ns - p->instead_ns);
	return s->won_ns >= s->lost_ns;
}

/*
 * Members that are asked for something. Whoever drives the array no longer
 * uses a failed one, and need not have said so here.
 */
static u32 members_in_use(const struct ss_array *array)
{
	const struct ss_array_geometry *geometry = &array->geometry;
	u64 silence = (u64)SILENT_ARRIVALS * geometry->nr_members;
	u64 row = (u64)geometry->chunk_sectors * geometry->data_members;
	u32 used = 0, i;

	for (i = 0; i < geometry->nr_members; i++) {
		const struct ss_array_member *member = &array->member[i];

		if (array->arrivals - member->heard <= silence ||
		    array->asked - member->heard_asked <= SILENT_ROWS * row)
			used |= 1U << i;
	}
	return used & array->attached;
}

/* Has every member its share? With copies, every member of a whole copy. */
static bool has_all(const struct ss_array *array,
		    const struct ss_array_stream *s)
{
	u32 nr = nr_bits(s->established & array->attached);

	/* Where each member has all, nothing has to be brought together. */
	if (array->geometry.copies == array->geometry.nr_members)
		return false;
	if (array->geometry.level == SS_ARRAY_RAID10)
		return nr >= array->geometry.data_members;
	return nr > 1 && !(members_in_use(array) & ~s->established);
}

void ss_array_round_ends(struct ss_array_stream *s)
{
	if (!s->round_members)
		return;
	s->alone = alone(s);
	s->spread += s->round_members - s->spread / SPREAD_MEMORY;
	s->round = (struct ss_array_rate){ 0 };
	s->round_ns = 0;
	s->round_members = 0;
	s->round_size = 0;
	if (s->alone.ns > ALONE_MEMORY_NS) {
		s->alone.ns /= 2;
		s->alone.sectors /= 2;
	}
}

/*
 * @rq is one more of @s, before it is noted there. With the array to itself
 * the stream would take the time in which it asks for nothing, and what its
 * members do at once: as many as have something of it at a time. All that it
 * comes to in a round may have had their work one after the other.
 */
static void estimate_alone(const struct ss_array_member *member,
			   struct ss_array_stream *s,
			   const struct ss_request *rq, u64 now_ns)
{
	const struct ss_curve *curve = &member->sched->curve;
	const struct ss_array_physical *p = &s->physical[member->index];

	if (is_idle(s) && s->size) {
		u64 pause_ns = now_ns - s->completed_ns;

		s->alone.ns += pause_ns;
		s->pause_ns = max_t(u64, s->pause_ns, pause_ns);
	}
	s->round_ns += div_u64(curve->transfer_ps * rq->nr_sectors, 1000);
	if (p->size)
		s->round_ns += ss_curve_service_ns(curve, p->end_sector,
						   rq->sector);
	s->working |= 1U << member->index;
	s->round_members = max_t(u32, s->round_members, nr_bits(s->working));
	s->round.ns = div_u64(s->round_ns, s->round_members);
	s->round.sectors += rq->nr_sectors;
	if (++s->round_size >= ROUND_MOST)
		ss_array_round_ends(s);
}

void ss_array_note_pending(struct ss_array_member *member,
			   struct ss_array_stream *s, struct ss_request *rq)
{
	struct ss_array_physical *p = &s->physical[member->index];

	list_add_tail(&rq->array_node, &p->pending);
	p->nr_pending++;
	if (!s->nr_pending++)
		s->since_ns = rq->arrival_ns;
	rq->array_stream = s;
}

void ss_array_extend_physical(struct ss_array_member *member,
			      struct ss_array_stream *s, struct ss_request *rq,
			      u64 now_ns)
{
	struct ss_array *array = member->array;
	struct ss_array_physical *p = &s->physical[member->index];

	estimate_alone(member, s, rq, now_ns);
	if (array->turn == s && is_part(member, s)) {
		if (!pays(member, s, rq, now_ns))
			ss_array_give_up(member, s, now_ns);
	} else if (!p->size || !extends_physical(member, s, rq, now_ns)) {
		p->size = 0;
		s->established &= ~(1U << member->index);
	}
	/* Pieces of one request count once on each member. */
	if (!p->size || now_ns - p->arrival_ns > TOGETHER_NS) {
		p->size = min_t(u32, p->size + 1, U32_MAX / 4);
		s->size = min_t(u32, s->size + 1, U32_MAX / 4);
	}
	p->arrival_ns = now_ns;
	if (p->size >= *member->threshold)
		s->established |= 1U << member->index;
	if (rq->sector - p->end_sector > array->geometry.chunk_sectors)
		p->straight = 0;
	else if (p->straight < U32_MAX)
		p->straight++;
	p->end_sector = ss_request_end(rq);
	s->reads = rq->direction == SS_READ;
	ss_array_note_pending(member, s, rq);
	if (s->usable || s->given_up || s->size < stream_threshold(member) ||
	    !has_all(array, s))
		return;
	s->usable = true;
	s->won_ns = SCORE_START * member->sched->curve.mean_random_ns;
	s->lost_ns = 0;
	array->counters.established++;
	ss_array_share_has(member, s, now_ns);
	if (ss_array_may_begin(member, s, now_ns))
		ss_array_begin_turn(member, s, now_ns);
}

int ss_array_virtual_place(const struct ss_array_member *member,
			   const struct ss_request *rq, u64 *begin, u64 *end)
{
	const struct ss_array_geometry *geometry = &member->array->geometry;
	u64 run;

	if (ss_array_unmap(geometry, member->index, rq->sector, begin, &run) ==
		    SS_ARRAY_OUTSIDE ||
	    ss_array_unmap(geometry, member->index, ss_request_end(rq) - 1, end,
			   &run) == SS_ARRAY_OUTSIDE)
		return -EINVAL;
	*end += 1;
	return 0;
}

void ss_array_leaves_pending(struct ss_array_member *member,
			     struct ss_request *rq)
{
	struct ss_array_stream *s = rq->array_stream;

	list_del_init(&rq->array_age_node);
	member->nr_pending--;
	if ((member->array->owed & (1U << member->index)) &&
	    !ss_array_owes(member))
		member->array->owed &= ~(1U << member->index);
	if (!s)
		return;
	list_del_init(&rq->array_node);
	s->physical[member->index].nr_pending--;
	s->nr_pending--;
}

u64 ss_array_instead_ns(const struct ss_array_member *member,
			const struct ss_array_stream *s, u64 now_ns)
{
	const struct ss_policy *inner = inner_of(member);
	const struct ss_sched *sched = member->sched;
	struct ss_decision choice = ss_nothing();

	if (nr_others(member, s))
		choice = inner->ops->choose(inner, now_ns, NULL);
	if (choice.verdict != SS_DISPATCH || choice.rq->array_stream == s)
		return sched->curve.mean_random_ns;
	return ss_curve_service_ns(&sched->curve,
				   s->physical[member->index].end_sector,
				   choice.rq->sector);
}
