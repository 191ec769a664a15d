// SPDX-License-Identifier: GPL-2.0-only
/*
 * The coordinator of an array: whose turn is it, and for how long?
 *
 * The array's slice, who takes turns and who is next, the part of those that
 * have none, and when a turn may begin, ends or is given up.
 */
#include "internal.h"

#include <linux/kernel.h>
#include <linux/math64.h>

/* In the time that it would wait at most a held member looks so often. */
#define LOOKS 4
/* Streams that end in their turns make the threshold grow: so often doubled. */
#define CAUTION_MOST 3
/* Between two turns of one stream others have this part of a slice. */
#define PAUSE_SHARE 4
/*
 * Whoever has waited for so many slices for each that takes turns is next;
 * a turn with the way to it is about as long as that.
 */
#define PATIENCE_SLICES 2
/*
 * A stream is waited for in its turn for so many times as long as it has paused
 * at most, and this long at least.
 */
#define PAUSES 8
#define PAUSE_LEAST_NS (2 * SS_MSEC)
/* The turn of those that have none is this part of a slice at least. */
#define OTHERS_SHARE 4
/* They may have one as long as a stream's by this part of a slice too early. */
#define SHARE_SLACK 2

/* Usable streams with something to do, and all others as one more. */
static u32 nr_in_turn(const struct ss_array *array)
{
	const struct ss_array_stream *s;
	u32 nr = 1;

	list_for_each_entry(s, &array->streams, node)
		nr += s->usable && s != array->turn && s->nr_pending;
	return nr;
}

u64 ss_array_slice_ns(const struct ss_array_member *member)
{
	return div_u64(*member->wait_target_ns, nr_in_turn(member->array));
}

u64 ss_array_slice_end_ns(const struct ss_array_member *member)
{
	const struct ss_array *array = member->array;
	u64 slice = ss_array_slice_ns(member);

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

struct ss_request *ss_array_next_other(const struct ss_array_member *member,
				       const struct ss_array_stream *s,
				       u64 now_ns)
{
	const struct ss_array_physical *p = &s->physical[member->index];
	const struct ss_policy *inner = inner_of(member);
	struct ss_request *oldest = oldest_other(member, s), *own = NULL;
	u64 patience = ss_array_slice_ns(member) * nr_in_turn(member->array);
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

static void kick_others(struct ss_array *array, u32 member)
{
	u32 i;

	for (i = 0; array->kick && i < array->geometry.nr_members; i++)
		if (i != member && (array->attached & (1U << i)))
			array->kick(array, i);
}

bool ss_array_places_pay(const struct ss_array_member *member,
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

	if (ss_array_places_pay(member, s))
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
	return ss_array_trial_promises(&array->trial, &rate,
				       ss_array_slice_ns(member),
				       placing_ns(member, s));
}

/* Is something of those that have no turns pending or in flight? */
static bool others_are_busy(const struct ss_array *array)
{
	const struct ss_array_stream *s;
	u32 nr = 0;

	list_for_each_entry(s, &array->streams, node)
		if (s->contends)
			nr += s->nr_pending + s->nr_in_flight;
	return array->nr_awaited > nr;
}

/*
 * For so long the next one of theirs is awaited in their turn. If none comes it
 * is over, so that this is lost once in a turn at most.
 */
static u64 others_patience_ns(const struct ss_array_member *member)
{
	return max_t(u64, member->sched->curve.mean_random_ns, SS_MSEC);
}

bool ss_array_is_others_turn(const struct ss_array_member *member, u64 now_ns)
{
	const struct ss_array *array = member->array;

	if (array->turn || now_ns >= array->others_most_ns)
		return false;
	if (array->sharing)
		return array->trial.allowed &&
		       (others_are_busy(array) ||
			now_ns < array->others_idle_ns +
					 others_patience_ns(member));
	return array->owed || now_ns < array->others_least_ns;
}

u64 ss_array_share_until_ns(const struct ss_array_member *member, u64 now_ns)
{
	const struct ss_array *array = member->array;
	u64 since_ns = array->others_idle_ns;

	if (others_are_busy(array))
		since_ns = now_ns;
	return min_t(u64, array->others_most_ns,
		     since_ns + others_patience_ns(member));
}

void ss_array_share_idles(struct ss_array *array, u64 now_ns)
{
	if (array->sharing && !others_are_busy(array))
		array->others_idle_ns = now_ns;
}

bool ss_array_has_turns(const struct ss_request *rq)
{
	const struct ss_array_stream *s = rq->array_stream;

	return s && s->contends;
}

struct ss_request *ss_array_oldest_of_others(
	const struct ss_array_member *member)
{
	struct ss_request *rq;

	list_for_each_entry(rq, &member->age, array_age_node)
		if (!ss_array_has_turns(rq))
			return rq;
	return NULL;
}

bool ss_array_owes(const struct ss_array_member *member)
{
	const struct ss_request *rq = ss_array_oldest_of_others(member);

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
	u64 patience = PATIENCE_SLICES * ss_array_slice_ns(member) *
		       nr_in_turn(array);
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
		if ((array->attached & (1U << i)) &&
		    ss_array_owes(&array->member[i]))
			array->owed |= 1U << i;
	/* What is owed then is all that has come by now. */
	array->owed_ns = now_ns;
	array->others_least_ns = 0;
	array->others_most_ns = 0;
	array->sharing = false;
	if (!array->owed)
		return;
	array->others_least_ns = now_ns +
				 ss_array_slice_ns(member) / OTHERS_SHARE;
	array->others_most_ns = now_ns + ss_array_slice_ns(member);
}

/*
 * All others are one party beside the streams, and have a turn as long as one
 * of these has. One of their requests takes
 * milliseconds, on one member; if the streams went on where there is none, or
 * before the next one comes, they would have one for each slice of a stream.
 *
 * Between two such turns each stream has one: that is wait_target in all, give
 * or take half a slice.
 */
static bool may_share(const struct ss_array_member *member, u64 now_ns)
{
	u64 slack = ss_array_slice_ns(member) / SHARE_SLACK;

	return now_ns + slack >=
	       member->array->shared_ns + *member->wait_target_ns;
}

/* Their turn, for a slice. Who has waited for longest is next. */
static void begin_share(struct ss_array *array, u64 slice, u64 now_ns)
{
	struct ss_array_stream *s;

	array->sharing = true;
	array->others_idle_ns = now_ns;
	array->others_least_ns = 0;
	array->others_most_ns = now_ns + slice;
	list_for_each_entry(s, &array->streams, node)
		if (s->contends && s->nr_pending &&
		    (!array->next || s->since_ns < array->next->since_ns))
			array->next = s;
}

static void end_share(struct ss_array *array, u64 now_ns)
{
	array->shared_ns = min_t(u64, now_ns, array->others_most_ns);
	array->others_most_ns = 0;
	array->sharing = false;
}

/* It takes turns from now on: among the others it comes in everybody's way. */
void ss_array_share_has(struct ss_array_member *member,
			const struct ss_array_stream *s, u64 now_ns)
{
	if (member->array->sharing && may_contend(member, s))
		end_share(member->array, now_ns);
}

void ss_array_end_turn(struct ss_array_member *member, u64 now_ns)
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

void ss_array_begin_turn(struct ss_array_member *member,
			 struct ss_array_stream *s, u64 now_ns)
{
	struct ss_array *array = member->array;
	u32 i;

	array->turn = s;
	array->next = NULL;
	if (array->sharing)
		end_share(array, now_ns);
	array->slice_start_ns = now_ns;
	array->placed = 0;
	array->placed_ns = U64_MAX;
	array->moved = 0;
	array->placing = false;
	for (i = 0; i < array->geometry.nr_members; i++) {
		array->member[i].way_ns = U64_MAX;
		array->member[i].turn_sector = s->physical[i].end_sector;
		array->member[i].place_sector = 0;
		array->member[i].place_until = 0;
	}
	array->counters.turns++;
	kick_others(array, member->index);
}

bool ss_array_may_begin(const struct ss_array_member *member,
			const struct ss_array_stream *s, u64 now_ns)
{
	const struct ss_array *array = member->array;
	const struct ss_array_stream *other;

	if (array->turn || member->passed || !may_contend(member, s) ||
	    ss_array_is_others_turn(member, now_ns) ||
	    (array->next && array->next != s && array->next->nr_pending))
		return false;
	if (s != array->last ||
	    now_ns >= array->last_end_ns +
			      ss_array_slice_ns(member) / PAUSE_SHARE)
		return true;
	list_for_each_entry(other, &array->streams, node)
		if (other->nr_pending && !other->usable && !other->given_up &&
		    other->size >= *member->threshold)
			return false;
	return true;
}

void ss_array_give_up(struct ss_array_member *member, struct ss_array_stream *s,
		      u64 now_ns)
{
	s->usable = false;
	s->contends = false;
	s->given_up = true;
	if (member->array->next == s)
		member->array->next = NULL;
	member->array->counters.unusable++;
	if (member->array->turn == s)
		ss_array_end_turn(member, now_ns);
}

u64 ss_array_hold_until_ns(const struct ss_array_member *member, u64 now_ns)
{
	const struct ss_array_stream *s = member->array->turn;
	const struct ss_array_physical *p = &s->physical[member->index];
	u64 patience_ns = physical_patience_ns(member, p), pause_ns;

	if (!is_idle(s))
		return now_ns + max_t(u64, patience_ns / LOOKS, SS_MSEC);
	pause_ns = max_t(u64, PAUSES * s->pause_ns, PAUSE_LEAST_NS);
	return s->completed_ns + min_t(u64, patience_ns, pause_ns);
}

bool ss_array_is_together(const struct ss_array_member *member, u64 now_ns)
{
	const struct ss_array *array = member->array;

	if (array->sharing && array->trial.allowed &&
	    now_ns < array->others_most_ns)
		return true;
	return array->turn ||
	       (array->last && array->trial.allowed &&
		now_ns < array->last_end_ns + ss_array_slice_ns(member));
}

u64 ss_array_now_ns(const struct ss_array *array, u64 now_ns)
{
	return max_t(u64, now_ns, array->trial.last_ns);
}

u64 ss_array_time_passes(struct ss_array_member *member, u64 now_ns)
{
	struct ss_array *array = member->array;
	struct ss_array_trial *trial = &array->trial;
	bool was_allowed = trial->allowed;

	now_ns = ss_array_now_ns(array, now_ns);
	ss_array_trial_event(trial, now_ns, array->nr_busy,
			     ss_array_is_together(member, now_ns));
	if (was_allowed && !trial->allowed && array->turn)
		ss_array_end_turn(member, now_ns);
	return now_ns;
}

void ss_array_other_goes(struct ss_array_member *member, struct ss_request *rq,
			 u64 now_ns)
{
	struct ss_array *array = member->array;
	struct ss_array_stream *s = array->turn;
	const struct ss_policy *policy = &member->sched->policy[0];

	const struct ss_array_stream *its = rq->array_stream;
	u64 slice = ss_array_slice_ns(member);
	bool late, shares;

	if (!is_part(member, s))
		return;
	/*
	 * A lone request that was late interrupts, where it does not begin a
	 * turn of all of them; a stream takes its turn.
	 */
	late = policy->ops->expired(policy, now_ns) == rq;
	shares = may_share(member, now_ns) && ss_request_is_awaited(rq);
	if (late && !(its && its->usable) && !shares)
		return;
	if (late || now_ns >= ss_array_slice_end_ns(member)) {
		member->sched->counters.slices_ended++;
		array->counters.slices_ended++;
		array->caution -= min_t(u32, array->caution, 1);
		ss_array_end_turn(member, now_ns);
		if (shares && !ss_array_has_turns(rq))
			begin_share(array, slice, now_ns);
		return;
	}
	if (s->physical[member->index].nr_pending ||
	    now_ns < ss_array_hold_until_ns(member, now_ns) ||
	    (array->last && rq->array_stream == array->last))
		return;
	/* It was waited for in vain: it has ended, or thinks for too long. */
	if (member->holding)
		member->sched->counters.timeouts++;
	if (now_ns < array->slice_start_ns + ss_array_slice_ns(member))
		array->caution = min_t(u32, array->caution + 1, CAUTION_MOST);
	ss_array_end_turn(member, now_ns);
	/* What was not waited for may still come. */
	if (now_ns >= s->completed_ns + patience_ns(member, s))
		ss_array_stream_free(array, s);
}
