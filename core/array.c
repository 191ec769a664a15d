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
 * - A reader that asks for one chunk at a time has no next request to each
 *   member that could be sent at once; its heads would move one after the
 *   other. So the host is asked to read something there (ss_array_place()), for
 *   nobody: not before the drives have handed out what they had read ahead.
 */
#include "array.h"
#include "policies.h"
#include "say.h"

#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>

/* Members run ahead of each other by so many rows; that is no way back. */
#define ROWS_TOGETHER 4
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
/* A request that took less than this part of positioning came from a cache. */
#define CACHED_SHARE 4
/* How many members work at once for a stream: a mean of so many rounds. */
#define SPREAD_MEMORY 8
/* In the time that it would wait at most a held member looks so often. */
#define LOOKS 4
/* Streams that end in their turns make the threshold grow: so often doubled. */
#define CAUTION_MOST 3
/* What comes to one member within so short a time is asked for at once. */
#define TOGETHER_NS (50 * SS_USEC)
/* A round of requests is this long at most, if the stream never pauses. */
#define ROUND_MOST 64
#define ALONE_MEMORY_NS (200 * SS_MSEC)
/* Between two turns of one stream others have this part of a slice. */
#define PAUSE_SHARE 4
/*
 * Whoever has waited for so many slices for each that takes turns is next;
 * a turn with the way to it is about as long as that.
 */
#define PATIENCE_SLICES 2
/* The turn of those that have none is this part of a slice at least. */
#define OTHERS_SHARE 4
/* A turn is prolonged by this part of a slice at most. */
#define REMNANT_SHARE 4
/* A member that nothing came for while this many times as many did is out. */
#define SILENT_ARRIVALS 64
/* A placing read, and how many a turn may have on each member. */
#define PLACE_SECTORS 128
#define PLACE_MOST 4
/* Heads are placed so many reads before the drive runs out of what it has. */
#define PLACE_EARLY 1
/*
 * A row of chunks is short if a stream passes it in so many times positioning.
 * Where it is not, a stream that works on fewer members at once than this part
 * of them leaves the others to themselves.
 */
#define ROW_WAYS 2
#define WIDE 2
/* Before anything is known: so many times positioning are taken as won. */
#define SCORE_START 4

static struct ss_array_member *member_of(
	const struct ss_coordinator *coordinator)
{
	return container_of(coordinator, struct ss_array_member, coordinator);
}

static void lock(struct ss_array *array)
{
	if (array->lock)
		array->lock(array);
}

static void unlock(struct ss_array *array)
{
	if (array->unlock)
		array->unlock(array);
}

static u32 nr_bits(u32 bits)
{
	u32 nr = 0;

	for (; bits; bits &= bits - 1)
		nr++;
	return nr;
}

static struct ss_policy *inner_of(const struct ss_array_member *member)
{
	return member->sched->policy[0].inner;
}

/* @rq came since the member was attached. */
static bool knows(const struct ss_array_member *member,
		  const struct ss_request *rq)
{
	return rq->array_epoch && rq->array_epoch == member->epoch;
}

/* Pending requests of the member that are not @s's own. */
static u32 nr_others(const struct ss_array_member *member,
		     const struct ss_array_stream *s)
{
	return member->nr_pending - s->physical[member->index].nr_pending;
}

static bool is_idle(const struct ss_array_stream *s)
{
	return !s->nr_pending && !s->nr_in_flight;
}

static u64 with_tolerance(const struct ss_array_member *member, u64 ns,
			  u64 size, u64 threshold)
{
	u64 pct = 100 + *member->tolerance_pct;

	/* As for one disk: those that much longer may take that much longer. */
	if (size * 100 < threshold * pct)
		return ns;
	return div_u64(ns * pct, 100);
}

static u64 stream_threshold(const struct ss_array_member *member)
{
	return *member->threshold * member->array->geometry.nr_members;
}

/* How long after its completion the virtual stream may go on. */
static u64 patience_ns(const struct ss_array_member *member,
		       const struct ss_array_stream *s)
{
	return with_tolerance(member, s->instead_ns, s->size,
			      stream_threshold(member));
}

static u64 physical_patience_ns(const struct ss_array_member *member,
				const struct ss_array_physical *p)
{
	return with_tolerance(member, p->instead_ns, p->size,
			      *member->threshold);
}

/* ---- the slice ---- */

/* Usable streams with something to do, and all others as one more. */
static u32 nr_in_turn(const struct ss_array *array)
{
	const struct ss_array_stream *s;
	u32 nr = 1;

	list_for_each_entry(s, &array->streams, node)
		nr += s->usable && s != array->turn && s->nr_pending;
	return nr;
}

static u64 slice_ns(const struct ss_array_member *member)
{
	if (*member->slice_ns)
		return *member->slice_ns;
	return div_u64(*member->wait_target_ns, nr_in_turn(member->array));
}

/*
 * The slice counts from when all heads are there: a reader that asks for one
 * piece at a time moves them one after the other. That takes a slice more at
 * the most.
 */
static u64 slice_end_ns(const struct ss_array_member *member)
{
	const struct ss_array *array = member->array;
	u64 slice = slice_ns(member);

	return min_t(u64, array->placed_ns, array->slice_start_ns + slice) +
	       slice;
}

static struct ss_request *oldest_other(const struct ss_array_member *member,
				       const struct ss_array_stream *s)
{
	struct ss_request *rq;

	list_for_each_entry(rq, &member->age, array_age_node)
		if (rq->array_stream != s)
			return rq;
	return NULL;
}

/*
 * The member sends none of @s: the inner policy's choice among the others, or
 * the oldest when it has waited for as long as all others' turns may take.
 */
static struct ss_request *next_other(const struct ss_array_member *member,
				     const struct ss_array_stream *s,
				     u64 now_ns)
{
	const struct ss_array_physical *p = &s->physical[member->index];
	const struct ss_policy *inner = inner_of(member);
	struct ss_request *oldest = oldest_other(member, s), *own = NULL;
	u64 patience = slice_ns(member) * nr_in_turn(member->array);
	struct ss_decision choice;

	if (now_ns > oldest->arrival_ns + patience)
		return oldest;
	if (p->nr_pending)
		own = list_first_entry(&p->pending, struct ss_request,
				       array_node);
	choice = inner->ops->choose(inner, now_ns, own);
	if (choice.verdict != SS_DISPATCH || choice.rq->array_stream == s)
		return oldest;
	return choice.rq;
}

/* ---- the table of streams ---- */

static void stream_free(struct ss_array *array, struct ss_array_stream *s)
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

/* A new virtual stream; NULL when all places are taken by better ones. */
static struct ss_array_stream *stream_new(struct ss_array *array)
{
	struct ss_array_stream *s;
	u32 i;

	if (list_empty(&array->free)) {
		list_for_each_entry(s, &array->streams, node)
			if (is_idle(s) && !s->usable && !s->given_up)
				break;
		if (&s->node == &array->streams)
			return NULL;
		stream_free(array, s);
	}
	s = list_first_entry(&array->free, struct ss_array_stream, node);
	list_move_tail(&s->node, &array->streams);
	s->completed_ns = 0;
	s->response_ns = 0;
	s->instead_ns = 0;
	s->alone = (struct ss_array_rate){ 0 };
	s->round = (struct ss_array_rate){ 0 };
	s->round_ns = 0;
	s->round_members = 0;
	s->round_size = 0;
	s->spread = 0;
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

/* Forget those that nothing has come for in time. */
static void drop_broken(struct ss_array_member *member, u64 now_ns)
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
			stream_free(array, s);
	}
}

/* ---- turns ---- */

static void kick_others(struct ss_array *array, u32 member)
{
	u32 i;

	for (i = 0; array->kick && i < array->geometry.nr_members; i++)
		if (i != member && (array->attached & (1U << i)))
			array->kick(array, i);
}

/* What @s would do with the array to itself; the round under way counts. */
static struct ss_array_rate alone(const struct ss_array_stream *s)
{
	return (struct ss_array_rate){
		.sectors = s->alone.sectors + s->round.sectors,
		.ns = s->alone.ns + s->round.ns,
	};
}

/* Does @s, by itself, come to all members while a head is on its way? */
static bool passes_rows(const struct ss_array_member *member,
			const struct ss_array_stream *s)
{
	const struct ss_array_geometry *geometry = &member->array->geometry;
	u64 row = (u64)geometry->chunk_sectors * geometry->data_members;
	u64 way_ns = ROW_WAYS * member->sched->curve.mean_random_ns;
	struct ss_array_rate rate = alone(s);

	return row * rate.ns <= rate.sectors * way_ns;
}

/*
 * Are heads placed for @s? Not with chunks so large that it is long on each: it
 * may end before.
 */
static bool places_pay(const struct ss_array_member *member,
		       const struct ss_array_stream *s)
{
	return member->array->places && s->reads && passes_rows(member, s);
}

/*
 * What bringing all heads to @s takes: those that work for it at once move at
 * once, the others after them, but where the host places them meanwhile.
 */
static u64 placing_ns(const struct ss_array_member *member,
		      const struct ss_array_stream *s)
{
	u64 all = (u64)nr_bits(s->established) * SPREAD_MEMORY;

	if (places_pay(member, s))
		return member->sched->curve.mean_random_ns;
	return member->sched->curve.mean_random_ns *
	       div_u64(all + s->spread, max_t(u32, s->spread, 1));
}

/* Is @s one of those that take turns? */
static bool may_contend(const struct ss_array_member *member,
			const struct ss_array_stream *s)
{
	const struct ss_array *array = member->array;
	struct ss_array_rate rate = alone(s);

	if (!s->usable ||
	    (!passes_rows(member, s) &&
	     s->spread * WIDE < nr_bits(s->established) * SPREAD_MEMORY) ||
	    s->size < stream_threshold(member) << array->caution)
		return false;
	return ss_array_trial_promises(&array->trial, &rate, slice_ns(member),
				       placing_ns(member, s));
}

/*
 * All others, who have no turns of their own, have one together: each member
 * sends theirs first, and else schedules by itself. Until what made it due has
 * been sent, for a part of a slice at least and a slice at most.
 */
static bool is_others_turn(const struct ss_array_member *member, u64 now_ns)
{
	const struct ss_array *array = member->array;

	if (array->turn || now_ns >= array->others_most_ns)
		return false;
	return array->owed || now_ns < array->others_least_ns;
}

static bool has_turns(const struct ss_request *rq)
{
	const struct ss_array_stream *s = rq->array_stream;

	return s && s->contends;
}

/* The oldest request of the member whose sender has no turns of its own. */
static struct ss_request *oldest_of_others(const struct ss_array_member *member)
{
	struct ss_request *rq;

	list_for_each_entry(rq, &member->age, array_age_node)
		if (!has_turns(rq))
			return rq;
	return NULL;
}

static bool owes(const struct ss_array_member *member)
{
	const struct ss_request *rq = oldest_of_others(member);

	return rq && rq->arrival_ns <= member->array->owed_ns;
}

/*
 * A turn has ended. The next one is of whom a member sends a request next, and
 * the member that is asked first may never have one of those that wait at the
 * others. So who has waited for too long is next.
 */
static void who_is_next(struct ss_array_member *member, u64 now_ns)
{
	struct ss_array *array = member->array;
	u64 patience = PATIENCE_SLICES * slice_ns(member) * nr_in_turn(array);
	struct ss_array_stream *s;
	u32 i;

	array->next = NULL;
	array->owed = 0;
	array->owed_ns = now_ns - min_t(u64, now_ns, patience);
	list_for_each_entry(s, &array->streams, node) {
		s->contends = may_contend(member, s);
		if (s->contends && s->nr_pending &&
		    s->since_ns <= array->owed_ns &&
		    (!array->next || s->since_ns < array->next->since_ns))
			array->next = s;
	}
	for (i = 0; i < array->geometry.nr_members; i++)
		if ((array->attached & (1U << i)) && owes(&array->member[i]))
			array->owed |= 1U << i;
	/* What is owed then is all that has come by now. */
	array->owed_ns = now_ns;
	array->others_least_ns = 0;
	array->others_most_ns = 0;
	if (!array->owed)
		return;
	array->others_least_ns = now_ns + slice_ns(member) / OTHERS_SHARE;
	array->others_most_ns = now_ns + slice_ns(member);
}

static void end_turn(struct ss_array_member *member, u64 now_ns)
{
	struct ss_array *array = member->array;
	struct ss_array_stream *s = array->turn;
	u32 i;

	for (i = 0; i < array->geometry.nr_members; i++) {
		struct ss_array_member *other = &array->member[i];

		if (!(array->attached & (1U << i)))
			continue;
		other->holding = false;
		other->passed = nr_others(other, s) ? s : NULL;
	}
	s->since_ns = now_ns;
	array->turn = NULL;
	array->last = s;
	array->last_end_ns = now_ns;
	who_is_next(member, now_ns);
	kick_others(array, member->index);
}

static void begin_turn(struct ss_array_member *member,
		       struct ss_array_stream *s, u64 now_ns)
{
	struct ss_array *array = member->array;
	u32 i;

	array->turn = s;
	array->next = NULL;
	array->slice_start_ns = now_ns;
	array->placed = 0;
	array->placed_ns = U64_MAX;
	array->moved = 0;
	array->placing = false;
	for (i = 0; i < array->geometry.nr_members; i++) {
		array->member[i].way_ns = U64_MAX;
		array->member[i].turn_sector = s->physical[i].end_sector;
		array->member[i].place_sector = 0;
		array->member[i].places = 0;
	}
	array->counters.turns++;
	kick_others(array, member->index);
}

/*
 * Could @s have a turn now? Having had the last one, it leaves others a part
 * of a slice in which they can become usable.
 */
static bool may_begin(const struct ss_array_member *member,
		      const struct ss_array_stream *s, u64 now_ns)
{
	const struct ss_array *array = member->array;
	const struct ss_array_stream *other;

	if (array->turn || member->passed || !may_contend(member, s) ||
	    is_others_turn(member, now_ns) ||
	    (array->next && array->next != s && array->next->nr_pending))
		return false;
	if (s != array->last ||
	    now_ns >= array->last_end_ns + slice_ns(member) / PAUSE_SHARE)
		return true;
	list_for_each_entry(other, &array->streams, node)
		if (other->nr_pending && !other->usable && !other->given_up &&
		    other->size >= *member->threshold)
			return false;
	return true;
}

/* Waiting in its turns has not paid: not to be tried again. */
static void give_up(struct ss_array_member *member, struct ss_array_stream *s,
		    u64 now_ns)
{
	s->usable = false;
	s->contends = false;
	s->given_up = true;
	if (member->array->next == s)
		member->array->next = NULL;
	member->array->counters.unusable++;
	if (member->array->turn == s)
		end_turn(member, now_ns);
}

/*
 * Until when is the member held for the turn's stream, which has nothing for
 * it? While something of it is under way elsewhere its next request here may
 * follow from that; but to look again now and then is cheaper than to tell all
 * members whenever nothing is.
 */
static u64 hold_until_ns(const struct ss_array_member *member, u64 now_ns)
{
	const struct ss_array_stream *s = member->array->turn;
	const struct ss_array_physical *p = &s->physical[member->index];
	u64 patience_ns = physical_patience_ns(member, p);

	if (!is_idle(s))
		return now_ns + max_t(u64, patience_ns / LOOKS, SS_MSEC);
	return s->completed_ns + patience_ns;
}

static bool is_part(const struct ss_array_member *member,
		    const struct ss_array_stream *s)
{
	return s->established & (1U << member->index);
}

/* Are heads brought together these days? Between two turns they still are. */
static bool is_together(const struct ss_array_member *member, u64 now_ns)
{
	const struct ss_array *array = member->array;

	return array->turn || (array->last && array->trial.allowed &&
			       now_ns < array->last_end_ns + slice_ns(member));
}

/*
 * What time it is for the array. Members may come here in another order than
 * they read the clock, and what they share must not go back in time.
 */
static u64 array_now_ns(const struct ss_array *array, u64 now_ns)
{
	return max_t(u64, now_ns, array->trial.last_ns);
}

/* Every event begins here: the time for it. */
static u64 time_passes(struct ss_array_member *member, u64 now_ns)
{
	struct ss_array *array = member->array;
	struct ss_array_trial *trial = &array->trial;
	bool was_allowed = trial->allowed;

	now_ns = array_now_ns(array, now_ns);
	ss_array_trial_event(trial, now_ns, array->nr_busy,
			     is_together(member, now_ns));
	if (was_allowed && !trial->allowed && array->turn)
		end_turn(member, now_ns);
	return now_ns;
}

/* ---- placing heads ---- */

/*
 * Has the turn's stream come to where the drive must move its head? Before
 * that is what it read ahead in an earlier turn, and reading beyond that would
 * drive it out of the cache. When one head has moved it is time for all.
 */
static bool place_is_due(const struct ss_array_member *member,
			 const struct ss_array_physical *p)
{
	u64 come = p->end_sector - member->turn_sector;

	return member->array->placing || come + PLACE_EARLY * PLACE_SECTORS >=
						 member->array->ahead_sectors;
}

/*
 * A reader that asks for one chunk at a time would move one head after the
 * other, and wait for each. The others can be on their way meanwhile.
 */
static bool may_place(const struct ss_array_member *member)
{
	const struct ss_array *array = member->array;
	const struct ss_array_stream *s = array->turn;
	const struct ss_array_physical *p;

	if (!s || (array->moved & (1U << member->index)) ||
	    member->places >= PLACE_MOST || !is_part(member, s) ||
	    !places_pay(member, s))
		return false;
	p = &s->physical[member->index];
	return p->straight >= *member->threshold && !p->nr_pending &&
	       !p->nr_in_flight && place_is_due(member, p);
}

/* Where the next placing read is; false beyond the array's end. */
static bool place_at(const struct ss_array_member *member, u64 *sector,
		     u32 *nr_sectors)
{
	const struct ss_array *array = member->array;
	const struct ss_array_geometry *geometry = &array->geometry;
	u64 virtual_sector, run;

	*sector = max_t(u64, member->place_sector,
			array->turn->physical[member->index].end_sector);
	*nr_sectors = min_t(u32, geometry->chunk_sectors, PLACE_SECTORS);
	return ss_array_unmap(geometry, member->index,
			      *sector + *nr_sectors - 1, &virtual_sector,
			      &run) != SS_ARRAY_OUTSIDE;
}

static void kick_to_place(struct ss_array *array)
{
	u32 i;

	for (i = 0; array->kick && i < array->geometry.nr_members; i++)
		if ((array->attached & (1U << i)) &&
		    may_place(&array->member[i]))
			array->kick(array, i);
}

bool ss_array_place(struct ss_array *array, u32 index, u64 *sector,
		    u32 *nr_sectors)
{
	struct ss_array_member *member = &array->member[index];
	bool place;

	lock(array);
	place = member->sched && may_place(member) &&
		place_at(member, sector, nr_sectors);
	if (place) {
		member->places++;
		member->place_sector = *sector + *nr_sectors;
		if (!array->placing) {
			array->placing = true;
			kick_to_place(array);
		}
	}
	unlock(array);
	return place;
}

/* ---- the question ---- */

/* The turn's stream has nothing for this member, others have. */
static bool choose_hold(const struct ss_array_member *member, u64 now_ns,
			struct ss_decision *decision)
{
	const struct ss_policy *inner = inner_of(member);
	u64 until_ns = hold_until_ns(member, now_ns), expiry_ns = SS_FOREVER;

	if (now_ns >= until_ns) {
		*decision = inner->ops->choose(inner, now_ns, NULL);
		return decision->verdict == SS_DISPATCH;
	}
	until_ns = min_t(u64, until_ns, slice_end_ns(member));
	if (inner->ops->next_expiry)
		expiry_ns = inner->ops->next_expiry(inner);
	if (expiry_ns > now_ns)
		until_ns = min_t(u64, until_ns, expiry_ns);
	*decision = ss_wait(until_ns);
	return true;
}

/*
 * A request of @s, whose slice ended at @end_ns, that had come by then: what
 * the array was asked for in one piece is not torn between two turns, where
 * each part would cost a seek. For a part of a slice at most.
 */
static struct ss_request *remnant(const struct ss_array_member *member,
				  const struct ss_array_stream *s, u64 end_ns,
				  u64 now_ns)
{
	const struct ss_array_physical *p = &s->physical[member->index];
	struct ss_request *rq;

	if (!p->nr_pending ||
	    now_ns >= end_ns + slice_ns(member) / REMNANT_SHARE)
		return NULL;
	rq = list_first_entry(&p->pending, struct ss_request, array_node);
	return rq->arrival_ns < end_ns ? rq : NULL;
}

/* It is the turn of those that have none of their own. */
static struct ss_request *next_of_others(const struct ss_array_member *member,
					 u64 now_ns)
{
	const struct ss_policy *policy = &member->sched->policy[0];
	const struct ss_policy *inner = inner_of(member);
	struct ss_request *oldest = oldest_of_others(member);
	struct ss_decision choice;
	struct ss_request *late;

	late = policy->ops->expired(policy, now_ns);
	if (late || !oldest || oldest->arrival_ns <= member->array->owed_ns)
		return late ? late : oldest;
	choice = inner->ops->choose(inner, now_ns, NULL);
	if (choice.verdict != SS_DISPATCH || has_turns(choice.rq))
		return oldest;
	return choice.rq;
}

static bool choose_locked(const struct ss_array_member *member, u64 now_ns,
			  struct ss_decision *decision)
{
	const struct ss_policy *policy = &member->sched->policy[0];
	const struct ss_array *array = member->array;
	const struct ss_array_stream *s = array->turn;
	const struct ss_array_physical *p;
	struct ss_request *rq = NULL;

	if (member->sched->curve.flat || !member->nr_pending)
		return false;
	if (array->last && array->last != s)
		rq = remnant(member, array->last, array->last_end_ns, now_ns);
	if (rq) {
		*decision = ss_dispatch(rq);
		return true;
	}
	if (is_others_turn(member, now_ns)) {
		rq = next_of_others(member, now_ns);
		if (rq)
			*decision = ss_dispatch(rq);
		return rq;
	}
	if (member->passed && (!s || s == member->passed) &&
	    nr_others(member, member->passed)) {
		*decision = ss_dispatch(next_other(member, member->passed,
						   now_ns));
		return true;
	}
	if (!s && array->next && is_part(member, array->next)) {
		p = &array->next->physical[member->index];
		if (p->nr_pending) {
			*decision = ss_dispatch(list_first_entry(
				&p->pending, struct ss_request, array_node));
			return true;
		}
	}
	if (!s || !is_part(member, s))
		return false;
	p = &s->physical[member->index];
	rq = policy->ops->expired(policy, now_ns);
	if (!rq && nr_others(member, s) && now_ns >= slice_end_ns(member)) {
		rq = remnant(member, s, slice_end_ns(member), now_ns);
		if (!rq)
			rq = next_other(member, s, now_ns);
	}
	if (rq) {
		*decision = ss_dispatch(rq);
		return true;
	}
	if (p->nr_pending) {
		*decision = ss_dispatch(list_first_entry(
			&p->pending, struct ss_request, array_node));
		return true;
	}
	return choose_hold(member, now_ns, decision);
}

static bool array_choose(const struct ss_coordinator *coordinator, u64 now_ns,
			 struct ss_decision *decision)
{
	struct ss_array_member *member = member_of(coordinator);
	bool decided;

	lock(member->array);
	decided = choose_locked(member, array_now_ns(member->array, now_ns),
				decision);
	unlock(member->array);
	return decided;
}

static bool array_leads(const struct ss_coordinator *coordinator, u64 now_ns)
{
	struct ss_array_member *member = member_of(coordinator);
	bool leads;

	lock(member->array);
	leads = is_together(member, array_now_ns(member->array, now_ns));
	unlock(member->array);
	return leads;
}

/* After every event: has the disk begun to idle for the turn's stream? */
static void note_holding(struct ss_array_member *member, u64 now_ns)
{
	const struct ss_array_stream *s = member->array->turn;
	struct ss_decision decision;
	bool holding;

	holding = s && !member->sched->nr_in_flight && member->nr_pending &&
		  !s->physical[member->index].nr_pending &&
		  choose_locked(member, now_ns, &decision) &&
		  decision.verdict == SS_WAIT;
	if (holding && !member->holding)
		member->sched->counters.waits++;
	member->holding = holding;
}

/* ---- arrival: whose is it? ---- */

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

static struct ss_array_stream *find_parent(const struct ss_array_member *member,
					   u64 sector, u64 now_ns)
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
		score_add(s, p->instead_ns - cost_ns, wait_ns / SCORE_IDLE);
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
	u64 silence = (u64)SILENT_ARRIVALS * array->geometry.nr_members;
	u32 used = 0, i;

	for (i = 0; i < array->geometry.nr_members; i++)
		if (array->arrivals - array->member[i].heard <= silence)
			used |= 1U << i;
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

static void round_ends(struct ss_array_stream *s)
{
	if (!s->round_members)
		return;
	s->alone = alone(s);
	s->spread += nr_bits(s->round_members) - s->spread / SPREAD_MEMORY;
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
 * members do at once.
 */
static void estimate_alone(const struct ss_array_member *member,
			   struct ss_array_stream *s,
			   const struct ss_request *rq, u64 now_ns)
{
	const struct ss_curve *curve = &member->sched->curve;
	const struct ss_array_physical *p = &s->physical[member->index];

	if (is_idle(s) && s->size)
		s->alone.ns += now_ns - s->completed_ns;
	s->round_ns += div_u64(curve->transfer_ps * rq->nr_sectors, 1000);
	if (p->size)
		s->round_ns += ss_curve_service_ns(curve, p->end_sector,
						   rq->sector);
	s->round_members |= 1U << member->index;
	s->round.ns = div_u64(s->round_ns, nr_bits(s->round_members));
	s->round.sectors += rq->nr_sectors;
	if (++s->round_size >= ROUND_MOST)
		round_ends(s);
}

/* @rq waits on its member as one of @s. */
static void note_pending(struct ss_array_member *member,
			 struct ss_array_stream *s, struct ss_request *rq)
{
	struct ss_array_physical *p = &s->physical[member->index];

	list_add_tail(&rq->array_node, &p->pending);
	p->nr_pending++;
	if (!s->nr_pending++)
		s->since_ns = rq->arrival_ns;
	rq->array_stream = s;
}

static void extend_physical(struct ss_array_member *member,
			    struct ss_array_stream *s, struct ss_request *rq,
			    u64 now_ns)
{
	struct ss_array *array = member->array;
	struct ss_array_physical *p = &s->physical[member->index];

	estimate_alone(member, s, rq, now_ns);
	if (array->turn == s && is_part(member, s)) {
		if (!pays(member, s, rq, now_ns))
			give_up(member, s, now_ns);
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
	note_pending(member, s, rq);
	if (s->usable || s->given_up || s->size < stream_threshold(member) ||
	    !has_all(array, s))
		return;
	s->usable = true;
	s->won_ns = SCORE_START * member->sched->curve.mean_random_ns;
	s->lost_ns = 0;
	array->counters.established++;
	if (may_begin(member, s, now_ns))
		begin_turn(member, s, now_ns);
}

/* Where @rq ends in virtual addresses; -EINVAL if it is none of the array's. */
static int virtual_place(const struct ss_array_member *member,
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
	array->nr_busy++;
	if (rq->flags & SS_PLACING) {
		if (array->turn && is_part(member, array->turn))
			note_pending(member, array->turn, rq);
		return;
	}
	if (member->sched->curve.flat || !ss_request_is_sync(rq) ||
	    virtual_place(member, rq, &begin, &end))
		return;
	drop_broken(member, now_ns);
	s = find_parent(member, begin, now_ns);
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
		s = stream_new(array);
		if (!s)
			return;
		s->end_sector = end;
		s->instead_ns = member->sched->curve.mean_random_ns;
	}
	extend_physical(member, s, rq, now_ns);
}

static void array_arrived(struct ss_coordinator *coordinator,
			  struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = member_of(coordinator);

	lock(member->array);
	now_ns = time_passes(member, now_ns);
	arrived_locked(member, rq, now_ns);
	note_holding(member, now_ns);
	unlock(member->array);
}

/* ---- dispatch ---- */

/* @rq is not of the stream whose turn it is. Why does it go, then? */
static void other_goes(struct ss_array_member *member, struct ss_request *rq,
		       u64 now_ns)
{
	struct ss_array *array = member->array;
	struct ss_array_stream *s = array->turn;
	const struct ss_policy *policy = &member->sched->policy[0];

	const struct ss_array_stream *its = rq->array_stream;
	bool late;

	if (!is_part(member, s))
		return;
	/* A lone request that was late interrupts; a stream takes its turn. */
	late = policy->ops->expired(policy, now_ns) == rq;
	if (late && !(its && its->usable))
		return;
	if (late || now_ns >= slice_end_ns(member)) {
		member->sched->counters.slices_ended++;
		array->counters.slices_ended++;
		array->caution -= min_t(u32, array->caution, 1);
		end_turn(member, now_ns);
		return;
	}
	if (s->physical[member->index].nr_pending ||
	    now_ns < hold_until_ns(member, now_ns) ||
	    (array->last && rq->array_stream == array->last))
		return;
	/* It was waited for in vain: it has ended, or thinks for too long. */
	if (member->holding)
		member->sched->counters.timeouts++;
	if (now_ns < array->slice_start_ns + slice_ns(member))
		array->caution = min_t(u32, array->caution + 1, CAUTION_MOST);
	end_turn(member, now_ns);
	stream_free(array, s);
}

static void leaves_pending(struct ss_array_member *member,
			   struct ss_request *rq)
{
	struct ss_array_stream *s = rq->array_stream;

	list_del_init(&rq->array_age_node);
	member->nr_pending--;
	if ((member->array->owed & (1U << member->index)) && !owes(member))
		member->array->owed &= ~(1U << member->index);
	if (!s)
		return;
	list_del_init(&rq->array_node);
	s->physical[member->index].nr_pending--;
	s->nr_pending--;
}

static void dispatched_locked(struct ss_array_member *member,
			      struct ss_request *rq, u64 now_ns)
{
	struct ss_array *array = member->array;
	struct ss_array_stream *s = rq->array_stream;

	if (array->turn && s != array->turn)
		other_goes(member, rq, now_ns);
	if (member->passed &&
	    (s != member->passed || !nr_others(member, member->passed)))
		member->passed = NULL;
	if (s && may_begin(member, s, now_ns))
		begin_turn(member, s, now_ns);
	if (s && s == array->next)
		array->next = NULL;
	leaves_pending(member, rq);
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
	now_ns = time_passes(member, now_ns);
	if (knows(member, rq))
		dispatched_locked(member, rq, now_ns);
	unlock(member->array);
}

/* ---- completion ---- */

/* What the member would do now instead of waiting for @s costs. */
static u64 instead_ns(const struct ss_array_member *member,
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

/*
 * The head had to move for @rq: soon the others will have to. If this one had
 * to before, in this turn, then all have to once more.
 */
static void note_moved(struct ss_array_member *member,
		       const struct ss_request *rq, u64 now_ns)
{
	struct ss_array *array = member->array;
	u32 bit = 1U << member->index, i;

	if (now_ns - rq->dispatch_ns <
	    member->sched->curve.mean_random_ns / CACHED_SHARE)
		return;
	if (!array->moved)
		array->ahead_sectors = rq->sector - member->turn_sector;
	if (!array->moved || (array->moved & bit)) {
		array->moved = 0;
		for (i = 0; i < array->geometry.nr_members; i++)
			array->member[i].places = 0;
	}
	array->moved |= bit;
	array->placing = true;
}

/*
 * Is the head there? A first request that took far less than positioning came
 * from the drive's cache, and a later one will pay for it.
 */
static void note_placed(struct ss_array_member *member,
			const struct ss_array_stream *s,
			const struct ss_request *rq, u64 now_ns)
{
	struct ss_array *array = member->array;

	if (array->placed_ns != U64_MAX)
		return;
	if (member->way_ns == U64_MAX)
		member->way_ns = rq->expected_ns;
	if (now_ns - rq->dispatch_ns >= member->way_ns / CACHED_SHARE)
		array->placed |= 1U << member->index;
	if ((array->placed & s->established) == s->established)
		array->placed_ns = now_ns;
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
	member->nr_busy--;
	array->nr_busy--;
	if (!(rq->flags & SS_PLACING))
		ss_array_trial_moved(&array->trial, rq->nr_sectors,
				     is_together(member, now_ns));
	if (!s)
		return;
	p = &s->physical[member->index];
	p->nr_in_flight--;
	s->nr_in_flight--;
	if (!(rq->flags & SS_PLACING))
		s->response_ns += now_ns - rq->arrival_ns;
	if (!p->nr_pending && !p->nr_in_flight) {
		p->completed_ns = now_ns;
		p->response_ns = s->response_ns;
		p->instead_ns = instead_ns(member, s, now_ns);
		s->instead_ns = p->instead_ns;
	}
	if (is_idle(s)) {
		s->completed_ns = now_ns;
		round_ends(s);
	}
	if (s != array->turn)
		return;
	note_placed(member, s, rq, now_ns);
	if (moved)
		note_moved(member, rq, now_ns);
	if (!p->nr_pending && !p->nr_in_flight)
		kick_to_place(array);
}

static void array_completed(struct ss_coordinator *coordinator,
			    struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = member_of(coordinator);

	lock(member->array);
	now_ns = time_passes(member, now_ns);
	if (knows(member, rq))
		completed_locked(member, rq, now_ns);
	note_holding(member, now_ns);
	unlock(member->array);
}

/* ---- merging, taking back ---- */

static void array_merged(struct ss_coordinator *coordinator,
			 struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = member_of(coordinator);
	struct ss_array_stream *s;
	u64 begin, end;

	(void)now_ns;
	lock(member->array);
	s = knows(member, rq) ? rq->array_stream : NULL;
	if (s && !virtual_place(member, rq, &begin, &end)) {
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

	leaves_pending(member, rq);
	member->nr_busy--;
	member->array->nr_busy--;
	if (!s)
		return;
	p = &s->physical[member->index];
	if (!p->nr_pending && !p->nr_in_flight) {
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
	now_ns = time_passes(member, now_ns);
	if (knows(member, rq))
		removed_locked(member, rq, now_ns);
	note_holding(member, now_ns);
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

/* ---- members ---- */

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
	array->placed = 0;
	array->placed_ns = U64_MAX;
	array->ahead_sectors = U64_MAX;
	array->nr_busy = 0;
	array->arrivals = 0;
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
	member->slice_ns = ss_sched_tunable(sched, "stream_time_slice");
	member->wait_target_ns = ss_sched_tunable(sched, "wait_target");
	member->tolerance_pct = ss_sched_tunable(sched, "tolerance_factor");
	/* The scheduler's count: it may have been another array's member. */
	sched->array_epoch = sched->array_epoch == U16_MAX ?
				     1 :
				     sched->array_epoch + 1;
	member->epoch = sched->array_epoch;
	member->heard = array->arrivals;
	member->nr_pending = 0;
	member->nr_busy = 0;
	member->passed = NULL;
	member->mover = NULL;
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
	now_ns = time_passes(member, now_ns);
	if (array->turn)
		end_turn(member, now_ns);
	array->last = NULL;
	array->next = NULL;
	array->owed &= ~(1U << index);
	while (!list_empty(&member->age)) {
		struct ss_request *rq = list_first_entry(&member->age,
							 struct ss_request,
							 array_age_node);

		leaves_pending(member, rq);
		rq->array_epoch = 0;
		rq->array_stream = NULL;
	}
	list_for_each_entry(s, &array->streams, node)
		forget_share(member, s, now_ns);
	array->nr_busy -= member->nr_busy;
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
