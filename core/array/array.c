// SPDX-License-Identifier: GPL-2.0-only
/*
 * The coordinator of an array's members. See array.h; the paper is Xu and
 * Jiang, FAST 2011, section 2.2.
 *
 * A request that a member sees has a virtual address. It continues the
 * virtual stream that ends near there, by the inequality of the paper's
 * section 2.1 with distances in virtual addresses (a member's head moves by
 * the distance divided by the number of data members) and, instead of waiting,
 * what that member would do next. From stream_threshold times the number of
 * members on a virtual stream is established.
 *
 * On each member its requests make a physical stream. Until it is the virtual
 * stream's turn a request is taken to come as early as it possibly could: the
 * time since the one before on that member, less the response times of the
 * virtual stream's requests in between. When the physical streams of all
 * members are established so, the virtual stream is usable.
 *
 * A turn begins with a dispatch of a usable stream while it is nobody's turn,
 * or when the slice is over. In a turn every member sends that stream's
 * requests first, and waits for its next one for as long as what it would do
 * instead costs; once all heads are there, actual times count. If a physical
 * stream breaks now, the virtual one is not usable: it is given up, but still
 * followed, so that it is not tried again.
 *
 * What the paper leaves open is decided as follows:
 *
 * - Until all heads are there nobody gives up, unless the virtual stream has
 *   nothing left to do: the first round includes the others' seeks.
 * - Members whose share of a stream is not established (the other copy in RAID
 *   10) are not held: they schedule by themselves.
 * - Where nothing else is pending, waiting costs nothing and breaks nothing.
 * - When a slice ends, each member that has others' requests sends one of them
 *   before the same stream can have the next turn. A stream that has waited for
 *   too long is next, and so are, together, all requests of no such stream.
 * - These have a turn as long as a stream's.
 * - A reader that asks for one chunk at a time has no next request to each
 *   member that could be sent at once; its heads would move one after the
 *   other. So the host is asked to read something there (ss_array_place()), for
 *   nobody: not before the drives have handed out what they had read ahead.
 */
#include "internal.h"
#include "../policies.h"
#include "../say.h"

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

static struct ss_array_member *member_of(
	const struct ss_coordinator *coordinator)
{
	return container_of(coordinator, struct ss_array_member, coordinator);
}

static bool array_choose(const struct ss_coordinator *coordinator, u64 now_ns,
			 struct ss_decision *decision)
{
	struct ss_array_member *member = member_of(coordinator);
	bool decided;

	lock(member->array);
	decided = ss_array_choose(member,
				  ss_array_now_ns(member->array, now_ns),
				  decision);
	unlock(member->array);
	return decided;
}

static bool array_leads(const struct ss_coordinator *coordinator, u64 now_ns)
{
	struct ss_array_member *member = member_of(coordinator);
	bool leads;

	lock(member->array);
	leads = ss_array_is_together(member,
				     ss_array_now_ns(member->array, now_ns));
	unlock(member->array);
	return leads;
}

static void arrived_locked(struct ss_array_member *member,
			   struct ss_request *rq, u64 now_ns)
{
	struct ss_array *array = member->array;
	struct ss_array_stream *s;
	u64 begin, end;

	rq->array_epoch = member->epoch;
	rq->array_stream = NULL;
	INIT_LIST_HEAD(&rq->array_node);
	list_add_tail(&rq->array_age_node, &member->age);
	member->nr_pending++;
	member->nr_busy++;
	member->heard = ++array->arrivals;
	member->heard_asked = array->asked += rq->nr_sectors;
	array->nr_busy++;
	/* A host may find out later that somebody waits for it after all. */
	rq->array_awaited = ss_request_is_awaited(rq);
	member->nr_awaited += rq->array_awaited;
	array->nr_awaited += rq->array_awaited;
	if (rq->flags & SS_PLACING) {
		member->placing = true;
		if (array->turn && is_part(member, array->turn))
			ss_array_note_pending(member, array->turn, rq);
		return;
	}
	if (member->sched->curve.flat || !ss_request_is_awaited(rq) ||
	    ss_array_virtual_place(member, rq, &begin, &end))
		return;
	ss_array_drop_broken(member, now_ns);
	s = ss_array_find_parent(member, begin, now_ns);
	if (s) {
		u64 row = (u64)array->geometry.chunk_sectors *
			  array->geometry.data_members;

		if (end > s->end_sector ||
		    s->end_sector - end > ROWS_TOGETHER * row)
			s->end_sector = end;
		list_move_tail(&s->node, &array->streams);
		if (member->holding && s == array->turn)
			member->sched->counters.hits++;
	} else {
		s = ss_array_stream_new(array);
		if (!s)
			return;
		s->end_sector = end;
		s->instead_ns = member->sched->curve.mean_random_ns;
	}
	ss_array_extend_physical(member, s, rq, now_ns);
}

static void array_arrived(struct ss_coordinator *coordinator,
			  struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = member_of(coordinator);

	lock(member->array);
	now_ns = ss_array_time_passes(member, now_ns);
	arrived_locked(member, rq, now_ns);
	ss_array_note_holding(member, now_ns);
	unlock(member->array);
}

static void dispatched_locked(struct ss_array_member *member,
			      struct ss_request *rq, u64 now_ns)
{
	struct ss_array *array = member->array;
	struct ss_array_stream *s = rq->array_stream;

	if (array->turn && s != array->turn)
		ss_array_other_goes(member, rq, now_ns);
	if (member->passed &&
	    (s != member->passed || !nr_others(member, member->passed)))
		member->passed = NULL;
	if (s && ss_array_may_begin(member, s, now_ns))
		ss_array_begin_turn(member, s, now_ns);
	if (s && s == array->next)
		array->next = NULL;
	/*
	 * It goes on where its stream was, and may come from the drive's cache.
	 * The scheduler has forgotten that place when other streams had turns,
	 * or lost it to a placing read that went on there.
	 */
	if (s && s->physical[member->index].straight >=
			 s->physical[member->index].nr_pending)
		member->sched->alone_continues = true;
	ss_array_leaves_pending(member, rq);
	member->holding = false;
	if (!s)
		return;
	if (!s->physical[member->index].nr_in_flight)
		member->mover = rq;
	s->physical[member->index].nr_in_flight++;
	s->nr_in_flight++;
	s->physical[member->index].instead_ns =
		member->sched->curve.mean_random_ns;
}

static void array_dispatched(struct ss_coordinator *coordinator,
			     struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = member_of(coordinator);

	lock(member->array);
	now_ns = ss_array_time_passes(member, now_ns);
	if (knows(member, rq))
		dispatched_locked(member, rq, now_ns);
	unlock(member->array);
}

static void completed_locked(struct ss_array_member *member,
			     struct ss_request *rq, u64 now_ns)
{
	struct ss_array *array = member->array;
	struct ss_array_stream *s = rq->array_stream;
	struct ss_array_physical *p;
	bool moved = member->mover == rq;

	if (moved)
		member->mover = NULL;
	if (rq->flags & SS_PLACING)
		member->placing = false;
	member->nr_busy--;
	array->nr_busy--;
	member->nr_awaited -= rq->array_awaited;
	array->nr_awaited -= rq->array_awaited;
	if (!(rq->flags & SS_PLACING))
		ss_array_trial_moved(&array->trial, rq->nr_sectors,
				     ss_array_is_together(member, now_ns));
	if (!s)
		return;
	p = &s->physical[member->index];
	p->nr_in_flight--;
	s->nr_in_flight--;
	if (!(rq->flags & SS_PLACING))
		s->response_ns += now_ns - rq->arrival_ns;
	if (!p->nr_pending && !p->nr_in_flight) {
		s->working &= ~(1U << member->index);
		p->completed_ns = now_ns;
		p->response_ns = s->response_ns;
		p->instead_ns = ss_array_instead_ns(member, s, now_ns);
		s->instead_ns = p->instead_ns;
	}
	if (is_idle(s)) {
		s->completed_ns = now_ns;
		ss_array_round_ends(s);
	}
	if (s != array->turn)
		return;
	ss_array_note_placed(member, s, rq, now_ns);
	if (moved)
		ss_array_note_moved(member, rq, now_ns);
	ss_array_kick_to_place(array);
}

static void array_completed(struct ss_coordinator *coordinator,
			    struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = member_of(coordinator);

	lock(member->array);
	now_ns = ss_array_time_passes(member, now_ns);
	if (knows(member, rq))
		completed_locked(member, rq, now_ns);
	ss_array_share_idles(member->array, now_ns);
	ss_array_note_holding(member, now_ns);
	unlock(member->array);
}

static void array_merged(struct ss_coordinator *coordinator,
			 struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = member_of(coordinator);
	struct ss_array_stream *s;
	u64 begin, end;

	(void)now_ns;
	lock(member->array);
	s = knows(member, rq) ? rq->array_stream : NULL;
	/* Where it has taken in a pending one it may have become older. */
	if (knows(member, rq))
		ss_older(&member->age, rq, array_age_node);
	if (s)
		ss_older(&s->physical[member->index].pending, rq, array_node);
	if (s && !ss_array_virtual_place(member, rq, &begin, &end)) {
		s->end_sector = max_t(u64, s->end_sector, end);
		s->physical[member->index].end_sector = ss_request_end(rq);
	}
	unlock(member->array);
}

static void removed_locked(struct ss_array_member *member,
			   struct ss_request *rq, u64 now_ns)
{
	struct ss_array_stream *s = rq->array_stream;
	struct ss_array_physical *p;

	ss_array_leaves_pending(member, rq);
	if (rq->flags & SS_PLACING)
		member->placing = false;
	member->nr_busy--;
	member->array->nr_busy--;
	member->nr_awaited -= rq->array_awaited;
	member->array->nr_awaited -= rq->array_awaited;
	if (!s)
		return;
	p = &s->physical[member->index];
	if (!p->nr_pending && !p->nr_in_flight) {
		s->working &= ~(1U << member->index);
		p->completed_ns = now_ns;
		p->response_ns = s->response_ns;
	}
	if (is_idle(s))
		s->completed_ns = now_ns;
}

static void array_removed(struct ss_coordinator *coordinator,
			  struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = member_of(coordinator);

	lock(member->array);
	now_ns = ss_array_time_passes(member, now_ns);
	if (knows(member, rq))
		removed_locked(member, rq, now_ns);
	ss_array_note_holding(member, now_ns);
	unlock(member->array);
}

static const struct ss_coordinator_ops array_ops = {
	.arrived = array_arrived,
	.dispatched = array_dispatched,
	.completed = array_completed,
	.merged = array_merged,
	.removed = array_removed,
	.choose = array_choose,
	.leads = array_leads,
};

void ss_array_init(struct ss_array *array,
		   const struct ss_array_geometry *geometry)
{
	u32 i;

	array->geometry = *geometry;
	array->attached = 0;
	array->turn = NULL;
	array->last = NULL;
	array->next = NULL;
	array->owed = 0;
	array->owed_ns = 0;
	array->others_least_ns = 0;
	array->others_most_ns = 0;
	array->sharing = false;
	array->others_idle_ns = 0;
	array->shared_ns = 0;
	array->placed = 0;
	array->placed_ns = U64_MAX;
	array->ahead_sectors = U64_MAX;
	array->nr_busy = 0;
	array->nr_awaited = 0;
	array->arrivals = 0;
	array->asked = 0;
	array->caution = 0;
	ss_array_trial_init(&array->trial);
	memset(&array->counters, 0, sizeof(array->counters));
	memset(array->member, 0, sizeof(array->member));
	for (i = 0; i < SS_ARRAY_MEMBERS; i++) {
		struct ss_array_member *member = &array->member[i];

		member->coordinator.ops = &array_ops;
		member->array = array;
		member->index = i;
		INIT_LIST_HEAD(&member->age);
	}
	memset(array->stream, 0, sizeof(array->stream));
	INIT_LIST_HEAD(&array->free);
	INIT_LIST_HEAD(&array->streams);
	for (i = 0; i < SS_ARRAY_STREAMS; i++)
		list_add_tail(&array->stream[i].node, &array->free);
}

static int refuse(int error, char *why, size_t why_bytes, u32 member,
		  const char *reason)
{
	why[0] = 0;
	ss_say(why, why_bytes, "member ");
	ss_say_number(why, why_bytes, member);
	ss_say(why, why_bytes, reason);
	return error;
}

int ss_array_attach(struct ss_array *array, u32 index, struct ss_sched *sched,
		    char *why, size_t why_bytes)
{
	struct ss_array_member *member;

	if (index >= array->geometry.nr_members)
		return refuse(-EINVAL, why, why_bytes, index,
			      ": the array has fewer members");
	if (sched->policy[0].ops != &ss_stream_ops)
		return refuse(
			-EINVAL, why, why_bytes, index,
			" is not scheduled by stream, as in stream:deadline");
	member = &array->member[index];
	if (member->sched || sched->coordinator)
		return refuse(-EBUSY, why, why_bytes, index,
			      " is attached already");
	lock(array);
	member->sched = sched;
	member->threshold = ss_sched_tunable(sched, "stream_threshold");
	member->wait_target_ns = ss_sched_tunable(sched, "wait_target");
	/* The scheduler's count: it may have been another array's member. */
	sched->array_epoch = sched->array_epoch == U16_MAX ?
				     1 :
				     sched->array_epoch + 1;
	member->epoch = sched->array_epoch;
	member->heard = array->arrivals;
	member->heard_asked = array->asked;
	member->nr_pending = 0;
	member->nr_busy = 0;
	member->nr_awaited = 0;
	member->passed = NULL;
	member->mover = NULL;
	member->placing = false;
	member->holding = false;
	array->attached |= 1U << index;
	unlock(array);
	sched->coordinator = &member->coordinator;
	return 0;
}

/* What is in flight on the member is no longer waited for. */
static void forget_share(struct ss_array_member *member,
			 struct ss_array_stream *s, u64 now_ns)
{
	struct ss_array_physical *p = &s->physical[member->index];

	s->nr_in_flight -= p->nr_in_flight;
	p->nr_in_flight = 0;
	s->working &= ~(1U << member->index);
	p->size = 0;
	s->established &= ~(1U << member->index);
	if (is_idle(s))
		s->completed_ns = now_ns;
}

void ss_array_detach(struct ss_array *array, u32 index, u64 now_ns)
{
	struct ss_array_member *member = &array->member[index];
	struct ss_array_stream *s;

	if (!member->sched)
		return;
	lock(array);
	now_ns = ss_array_time_passes(member, now_ns);
	if (array->turn)
		ss_array_end_turn(member, now_ns);
	array->last = NULL;
	array->next = NULL;
	array->owed &= ~(1U << index);
	while (!list_empty(&member->age)) {
		struct ss_request *rq = list_first_entry(&member->age,
							 struct ss_request,
							 array_age_node);

		ss_array_leaves_pending(member, rq);
		rq->array_epoch = 0;
		rq->array_stream = NULL;
	}
	list_for_each_entry(s, &array->streams, node)
		forget_share(member, s, now_ns);
	array->nr_busy -= member->nr_busy;
	array->nr_awaited -= member->nr_awaited;
	array->attached &= ~(1U << index);
	member->sched->coordinator = NULL;
	member->sched = NULL;
	unlock(array);
}

bool ss_array_turn(struct ss_array *array, u64 *end_sector, u64 *since_ns)
{
	bool turn;

	lock(array);
	turn = array->turn;
	if (turn) {
		*end_sector = array->turn->end_sector;
		*since_ns = array->slice_start_ns;
	}
	unlock(array);
	return turn;
}

void ss_array_counters(struct ss_array *array,
		       struct ss_array_counters *counters)
{
	lock(array);
	*counters = array->counters;
	unlock(array);
}
