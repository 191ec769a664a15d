// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: whose turn is it, for how long, and what goes meanwhile?
 *
 * The slice (paper 3.2 and rule 5 of this project's architecture document),
 * what must go because of its age (rule 4), what goes in a turn, and writes
 * that nobody waits for, a few at a time beside readers.
 */
#include "stream.h"

#include <linux/kernel.h>
#include <linux/math64.h>

/* A round of turns leaves this part of a switch as slack. */
#define SWITCH_SHARE 4
/*
 * A turn beside nothing else lasts for so many slices: Linux 2.6's
 * anticipatory scheduler read for 500 ms and wrote for 125 ms by turns.
 */
#define ASYNC_SLICES 4
/*
 * What nobody waits for goes after so long at the end of a turn, where the
 * inner policy has no word for that: as deadline's write_expire.
 */
#define ASYNC_EXPIRY (5 * SS_SEC)

/* Of so many, the oldest ones, the nearest is looked for. */
#define NEAR_OF 256
/* A device that had more than these at a turn's beginning orders by itself. */
#define FULL 2

static struct ss_request *oldest_other(const struct stream_state_all *all,
				       const struct stream *s)
{
	struct ss_request *rq;

	list_for_each_entry(rq, &all->age, age_node)
		if (rq->stream != s)
			return rq;
	return NULL;
}

/*
 * As oldest_other(), of those that somebody waits for: wait_target is theirs.
 * Write-back piles up until nobody can wait for it, and then all of it is old;
 * what may become of it is the inner policy's to say, when a turn has ended.
 */
static struct ss_request *oldest_awaited(const struct stream_state_all *all,
					 const struct stream *s)
{
	struct ss_request *rq;

	list_for_each_entry(rq, &all->age, age_node)
		if (rq->stream != s && ss_request_is_awaited(rq))
			return rq;
	return NULL;
}

/*
 * How many take turns with @s: established streams with pending requests,
 * and all other pending requests together as one more.
 */
static u32 nr_in_turn(const struct ss_policy *policy, const struct stream *held)
{
	const struct stream_state_all *all = policy->state;
	const struct stream *s;
	u32 nr = 0, members = 0;

	list_for_each_entry(s, &all->waiting, node)
		if (s != held && s->nr_pending && is_established(all, s)) {
			nr++;
			members += s->nr_pending;
		}
	return nr + (nr_others(policy, held) > members);
}

/* Pending reads that are not @s's own, each as the host sent it. */
static u32 nr_other_reads(const struct ss_policy *policy,
			  const struct stream *s)
{
	u32 nr = policy->sched->nr_pending_dir[SS_READ];

	return nr - min_t(u32, nr, s->nr_pending);
}

/*
 * A turn ends with the request that is under way at its end. So that these do
 * not add up over a round, part of a switch is left over.
 */
u64 ss_stream_target_ns(const struct ss_policy *policy)
{
	const struct stream_state_all *all = policy->state;
	u64 target = policy->value[STREAM_WAIT_TARGET];

	return target - min_t(u64, target / 2, all->switch_ns / SWITCH_SHARE);
}

static u64 slice_ns(const struct ss_policy *policy, const struct stream *s)
{
	const struct stream_state_all *all = policy->state;
	u64 slice = policy->value[STREAM_TIME_SLICE];
	u32 nr;

	if (slice != SLICE_AUTO)
		return slice;
	nr = nr_in_turn(policy, s);
	/*
	 * When answers have just made a stream of this one, the others may be
	 * some too; together as one all would have waited too long at its end.
	 */
	if (all->new_turn)
		nr = max_t(u32, nr, nr_other_reads(policy, s));
	return div_u64(ss_stream_target_ns(policy), max_t(u32, nr, 1));
}

/* What a switch costs, without what a full device has to do before it. */
static u64 way_ns(const struct ss_policy *policy)
{
	const struct stream_state_all *all = policy->state;

	return all->way_ns ? all->way_ns : policy->sched->curve.mean_random_ns;
}

/* Has the next request of @s waited for the target? */
static bool own_is_late(const struct ss_policy *policy, const struct stream *s,
			u64 now_ns)
{
	const struct ss_request *own;

	if (!s->nr_pending)
		return false;
	own = list_first_entry(&s->members, struct ss_request, member_node);
	return ss_request_is_awaited(own) &&
	       now_ns >= own->arrival_ns + policy->value[STREAM_WAIT_TARGET];
}

/*
 * With a target, and more work than can be done within it, all are late. If
 * each that is late ended the turn, every request would cost a switch, and so
 * they would stay late. So where the turn's first request was late already, or
 * @s's own next one is, the turn is worth its way: it has its slice, is not
 * over before the head is there, and then not before as much time went into it
 * as into a switch. So many readers keep half of the disk's rate, whatever the
 * target. A full device finds short ways between many requests of each by
 * itself: there @s's own next one is no reason.
 */
static u64 late_end_ns(const struct ss_policy *policy, const struct stream *s,
		       u64 now_ns)
{
	const struct stream_state_all *all = policy->state;

	if (!(all->turn_late && s == all->held) &&
	    (all->turn_full || !own_is_late(policy, s, now_ns)))
		return 0;
	if (all->first_of_turn)
		return SS_FOREVER;
	return all->slice_start_ns +
	       max_t(u64, slice_ns(policy, s), LATE_SWITCHES * way_ns(policy));
}

/*
 * When the held stream must let others go on; they are pending. Beside what
 * nobody waits for, a turn lasts for ASYNC_SLICES of the paper's slices, and
 * does not pay for the drive's work on writes.
 */
static u64 slice_end_ns(const struct ss_policy *policy, const struct stream *s,
			u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	u64 slice = slice_ns(policy, s), end = all->slice_start_ns + slice;
	const struct ss_request *oldest = oldest_awaited(all, s);
	bool target = policy->value[STREAM_TIME_SLICE] == SLICE_AUTO;

	if (!oldest) {
		if (!target)
			end += (ASYNC_SLICES - 1) * slice;
		return end + min_t(u64, all->turn_behind_ns, slice);
	}
	if (!target)
		return end;
	end = min_t(u64, end,
		    oldest->arrival_ns + policy->value[STREAM_WAIT_TARGET]);
	return max_t(u64, end, late_end_ns(policy, s, now_ns));
}

/*
 * Must others wait until @s has had its turn? Its end is not before that of a
 * fixed slice, so mostly nobody else's age needs to be looked at.
 */
static inline bool turn_goes_on(const struct ss_policy *policy,
				const struct stream *s, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;

	return now_ns <
		       all->slice_start_ns + policy->value[STREAM_TIME_SLICE] ||
	       !nr_others(policy, s) ||
	       now_ns < slice_end_ns(policy, s, now_ns);
}

bool ss_stream_turn_is_over(const struct ss_policy *policy, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;

	return all->held && !turn_goes_on(policy, all->held, now_ns);
}

/*
 * Does @rq read on right behind the turn's first request, which is in the
 * device? Of what takes one seek a drive that orders its commands may begin
 * with the middle, and seek again; so the rest goes when the head is there.
 */
static bool is_behind_first(const struct ss_policy *policy,
			    const struct ss_request *rq)
{
	const struct stream_state_all *all = policy->state;

	return all->first_of_turn && rq->direction == SS_READ &&
	       rq->sector == policy->sched->head_sector;
}

/*
 * With a target for waits, what is read ahead waits for so long while others
 * are waited for. Not for ever: somebody may come for it meanwhile.
 */
static u64 ahead_ns(const struct ss_policy *policy)
{
	return 2 * policy->value[STREAM_WAIT_TARGET];
}

struct ss_request *ss_stream_if_late(const struct ss_policy *policy,
				     struct ss_request *rq, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	u64 late_ns = 0;

	/*
	 * Write-back comes faster than any disk writes, and then all of it is
	 * late. As in Linux, where a batch is not ended for it, no turn is. Nor
	 * for what is read ahead; but without a target the inner policy's word
	 * counts: behind that one a read may be late that somebody waits for.
	 */
	if (!ss_request_is_awaited(rq) && all->held && !is_alone(all) &&
	    (rq->direction == SS_WRITE ||
	     policy->value[STREAM_TIME_SLICE] == SLICE_AUTO) &&
	    now_ns < slice_end_ns(policy, all->held, now_ns))
		return NULL;
	/* It is next, and sent now it would be served no sooner. */
	if (all->held && rq->stream == all->held && !is_alone(all) &&
	    is_behind_first(policy, rq))
		return NULL;
	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO)
		return rq;
	/* With a target of its own, the framework knows better what is late. */
	if (rq->flags & SS_AHEAD)
		late_ns = ahead_ns(policy);
	else if (ss_request_is_awaited(rq))
		late_ns = policy->value[STREAM_WAIT_TARGET];
	if (now_ns < rq->arrival_ns + late_ns)
		return NULL;
	/* It is, but so is what goes on at the head. */
	if (ss_request_is_awaited(rq) && all->held && rq->stream != all->held &&
	    !all->away && now_ns < late_end_ns(policy, all->held, now_ns))
		return NULL;
	return rq;
}

/* The oldest that somebody waits for, of those that go @direction. */
static struct ss_request *awaited_of(const struct stream_state_all *all,
				     u8 direction,
				     const struct ss_request *skip)
{
	struct ss_request *rq;

	list_for_each_entry(rq, &all->age, age_node)
		if (rq != skip && rq->direction == direction &&
		    ss_request_is_awaited(rq))
			return rq;
	return NULL;
}

/*
 * What goes before @rq, for which nobody waits, the inner policy's choice: what
 * is read ahead goes when nobody waits for another one, or when it has become
 * old; and write-back keeps no write that somebody waits for, as fsync() does,
 * until all that is older is done. NULL: nothing does.
 */
static noinline struct ss_request *before_unawaited(
	const struct ss_policy *policy, const struct ss_request *rq, u64 now_ns,
	const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	u32 nr = policy->sched->nr_awaited_writes;
	bool gives_way;

	if (rq->direction == SS_READ)
		gives_way = now_ns < rq->arrival_ns + ahead_ns(policy);
	else /* Very many are better off where the inner policy sweeps. */
		gives_way = nr && nr <= FLOOD &&
			    all->nr_passing >= ASYNC_BESIDE;
	return gives_way ? awaited_of(all, rq->direction, skip) : NULL;
}

/*
 * The inner policy takes all reads for awaited, and all writes for alike; with
 * a target for waits they are not.
 */
static struct ss_decision inner_choice(const struct ss_policy *policy,
				       u64 now_ns,
				       const struct ss_request *skip)
{
	const struct ss_policy *inner = inner_of(policy);
	struct ss_decision choice = inner->ops->choose(inner, now_ns, skip);
	struct ss_request *rq;

	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO ||
	    choice.verdict != SS_DISPATCH || ss_request_is_awaited(choice.rq) ||
	    is_flat(policy))
		return choice;
	rq = before_unawaited(policy, choice.rq, now_ns, skip);
	return rq ? ss_dispatch(rq) : choice;
}

/*
 * The slice is over: the inner policy's choice among the others, unless the
 * oldest would then wait for longer than its turn may take (rule 5).
 */
static struct ss_request *next_turn(const struct ss_policy *policy,
				    const struct stream *s, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_policy *inner = inner_of(policy);
	bool target = policy->value[STREAM_TIME_SLICE] == SLICE_AUTO;
	struct ss_request *oldest = target ? oldest_awaited(all, s) :
					     oldest_other(all, s);
	struct ss_request *own = NULL, *first;
	struct ss_decision choice;
	u64 patience;

	/* No inner policy that expires nothing shall keep it for ever. */
	first = oldest_other(all, s);
	if (target && !inner->ops->expired &&
	    now_ns > first->arrival_ns + ASYNC_EXPIRY)
		return first;
	/*
	 * With a target, whoever has used up half of it is next: in a steady
	 * rotation that is always the oldest, so the order is the one in which
	 * the inner policy first chose them.
	 */
	if (target)
		patience = policy->value[STREAM_WAIT_TARGET] / 2;
	else
		patience = slice_ns(policy, s) *
			   (max_t(u32, nr_in_turn(policy, s), 1) - 1);
	if (s->nr_pending)
		own = list_first_entry(&s->members, struct ss_request,
				       member_node);
	if (oldest && now_ns > oldest->arrival_ns + patience)
		return oldest;
	choice = inner_choice(policy, now_ns, own);
	if (choice.verdict == SS_DISPATCH && choice.rq->stream != s)
		return choice.rq;
	return oldest ? oldest : oldest_other(all, s);
}

/*
 * With the inner policy alone: the oldest request, if none was the oldest when
 * it was dispatched for the time of a long turn (rule 5), or NULL.
 */
static struct ss_request *starving(const struct ss_policy *policy, u64 now_ns,
				   const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	u64 turn_ns = all->alone_turn_ns;
	struct ss_request *oldest;

	if (now_ns < all->oldest_served_ns + turn_ns)
		return NULL;
	oldest = list_first_entry(&all->age, struct ss_request, age_node);
	if (oldest == skip || now_ns < oldest->arrival_ns + turn_ns)
		return NULL;
	/* What is late goes first; the inner policy knows which (rule 4). */
	return overdue(policy, now_ns) ? NULL : oldest;
}

/* Wait, but not beyond the time when a request must go because of its age. */
static struct ss_decision wait_until(const struct ss_policy *policy,
				     u64 until_ns, u64 now_ns)
{
	const struct ss_policy *inner = inner_of(policy);
	u64 expiry_ns = SS_FOREVER;

	if (inner->ops->next_expiry)
		expiry_ns = inner->ops->next_expiry(inner);
	/* One that has passed and was not obeyed: overdue says why. */
	if (expiry_ns > now_ns)
		until_ns = min_t(u64, until_ns, expiry_ns);
	return ss_wait(until_ns);
}

/*
 * May whoever is near go on in this turn? Others have a turn, too, at the end
 * of its slice. Where the device had several commands it orders by itself.
 */
static bool near_may_go_on(const struct ss_policy *policy, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	const struct stream *s = all->held;

	return policy->value[STREAM_TIME_SLICE] == SLICE_AUTO && s &&
	       !s->nr_pending && !all->away && !all->share.open &&
	       !all->turn_full && !policy->sched->coordinator &&
	       !is_flat(policy) && !is_alone(all) &&
	       now_ns < slice_end_ns(policy, s, now_ns);
}

/*
 * Is it worth looking for what @s has in its place? Where its steps cost half
 * of a random request, or more, its place is no place.
 */
static inline bool has_place(const struct ss_policy *policy,
			     const struct stream *s)
{
	return s->state == STREAM_COMPLETED && s->step_ns &&
	       s->step_ns <= policy->sched->curve.mean_random_ns / 2;
}

struct ss_request *ss_stream_in_place(const struct ss_policy *policy,
				      u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	const struct stream *s = all->held;
	struct ss_request *rq, *nearest = NULL;
	u64 cost_ns, least_ns;
	u32 nr = 0;

	if (!s || !has_place(policy, s) || !near_may_go_on(policy, now_ns))
		return NULL;
	least_ns = min_t(u64, s->service_ns, s->step_ns);
	list_for_each_entry(rq, &all->age, age_node) {
		if (++nr > NEAR_OF)
			break;
		if (rq->stream || !ss_request_is_awaited(rq) ||
		    !is_in_place(s, rq->sector))
			continue;
		cost_ns = ss_curve_service_ns(&policy->sched->curve,
					      s->end_sector, rq->sector);
		if (cost_ns > least_ns)
			continue;
		least_ns = cost_ns;
		nearest = rq;
	}
	return nearest;
}

struct ss_decision ss_stream_held_choose(const struct ss_policy *policy,
					 const struct stream *s, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	struct ss_request *late, *near, *own = NULL;
	u64 until_ns = SS_FOREVER, hold_end_ns;

	if (!ss_stream_waiting_pays(policy, s, now_ns))
		return ss_nothing();
	if (s->nr_pending)
		own = list_first_entry(&s->members, struct ss_request,
				       member_node);
	late = overdue(policy, now_ns);
	if (late)
		return ss_dispatch(late);
	if (!turn_goes_on(policy, s, now_ns))
		return ss_dispatch(next_turn(policy, s, now_ns));
	if (own && !is_behind_first(policy, own))
		return ss_dispatch(own);
	if (nr_others(policy, s))
		until_ns = slice_end_ns(policy, s, now_ns);
	if (own)
		return ss_wait(until_ns);
	if (!policy->sched->nr_in_flight && nr_others(policy, s)) {
		near = ss_stream_in_place(policy, now_ns);
		if (near)
			return ss_dispatch(near);
	}
	/* Without a child by then, the turn is over. */
	if (all->away)
		return policy->sched->nr_in_flight ? ss_wait(until_ns) :
						     ss_nothing();
	if (s->state == STREAM_IN_FLIGHT)
		return ss_wait(until_ns);
	hold_end_ns = ss_stream_hold_end_ns(policy, s);
	if (now_ns >= hold_end_ns)
		return ss_nothing();
	return ss_wait(min_t(u64, until_ns, hold_end_ns));
}

/*
 * The next read of somebody who reads on, if write-back would keep it waiting
 * again: with a batch of that before each of its first requests, a reader takes
 * seconds to become a stream. With a target for waits only.
 */
static struct ss_request *reading_on(const struct ss_policy *policy)
{
	const struct stream_state_all *all = policy->state;
	struct ss_request *first, *rq = NULL;
	const struct stream *s;

	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO || is_flat(policy) ||
	    !policy->sched->nr_pending_dir[SS_READ])
		return NULL;
	list_for_each_entry(s, &all->waiting, node) {
		if (!s->nr_pending || s->size < 2)
			continue;
		first = list_first_entry(&s->members, struct ss_request,
					 member_node);
		if (first->direction == SS_READ &&
		    (!rq || first->arrival_ns < rq->arrival_ns))
			rq = first;
	}
	return rq;
}

struct ss_decision ss_stream_inner_choice(const struct ss_policy *policy,
					  u64 now_ns,
					  const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	struct ss_request *rq;

	if (all->nr_async >= ASYNC_BESIDE && !overdue(policy, now_ns)) {
		rq = reading_on(policy);
		if (rq && rq != skip)
			return ss_dispatch(rq);
	}
	return inner_choice(policy, now_ns, skip);
}

struct ss_request *ss_stream_near(const struct ss_policy *policy, u64 now_ns,
				  const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_policy *inner = inner_of(policy);
	const struct stream *s = all->held;
	struct ss_request *rq, *nearest = NULL;
	struct ss_decision choice;
	u64 cost_ns, least_ns;
	u32 nr = 0;

	if (!near_may_go_on(policy, now_ns))
		return NULL;
	choice = inner->ops->choose(inner, now_ns, skip);
	if (choice.verdict != SS_DISPATCH)
		return NULL;
	least_ns = ss_curve_service_ns(&policy->sched->curve, s->end_sector,
				       choice.rq->sector);
	list_for_each_entry(rq, &all->age, age_node) {
		if (++nr > NEAR_OF)
			break;
		if (rq == skip || !ss_request_is_awaited(rq))
			continue;
		cost_ns = ss_curve_service_ns(&policy->sched->curve,
					      s->end_sector, rq->sector);
		if (cost_ns >= least_ns)
			continue;
		least_ns = cost_ns;
		nearest = rq;
	}
	return nearest;
}

struct ss_decision ss_stream_turn_choice(const struct ss_policy *policy,
					 u64 now_ns,
					 const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	struct ss_decision decision;
	struct ss_request *late, *near;

	if (all->held && !is_flat(policy) && !is_alone(all)) {
		decision = ss_stream_held_choose(policy, all->held, now_ns);
		if (decision.verdict == SS_DISPATCH)
			return decision;
		if (decision.verdict == SS_WAIT)
			return wait_until(policy, decision.until_ns, now_ns);
	} else if (is_alone(all) && !is_flat(policy)) {
		late = starving(policy, now_ns, skip);
		if (late)
			return ss_dispatch(late);
	}
	if (overdue(policy, now_ns))
		return inner_choice(policy, now_ns, skip);
	if (all->share.open)
		decision = ss_stream_share_choose(policy, now_ns, skip);
	else
		decision = ss_stream_answer_choose(policy, now_ns, skip);
	if (decision.verdict == SS_DISPATCH)
		return decision;
	if (decision.verdict == SS_WAIT)
		return wait_until(policy, decision.until_ns, now_ns);
	if (!policy->sched->nr_in_flight) {
		near = ss_stream_near(policy, now_ns, skip);
		if (near)
			return ss_dispatch(near);
	}
	return ss_stream_inner_choice(policy, now_ns, skip);
}

struct ss_decision ss_stream_choose_apart(const struct ss_policy *policy,
					  u64 now_ns,
					  const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	struct ss_decision choice = ss_stream_turn_choice(policy, now_ns, skip);

	if (choice.verdict == SS_DISPATCH &&
	    !ss_request_is_awaited(choice.rq) && now_ns < all->apart_until_ns &&
	    !is_alone(all) && !overdue(policy, now_ns))
		return ss_wait(SS_FOREVER);
	return choice;
}

void ss_stream_note_idle(const struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct stream *s = all->held;
	bool holding;

	/*
	 * Would ss_stream_held_choose() wait? Until when is not asked. A
	 * coordinator of several disks counts by itself what it holds.
	 */
	holding = !policy->sched->coordinator && !is_flat(policy) &&
		  !is_alone(all) && !all->away &&
		  now_ns < ss_stream_hold_end_ns(policy, s) &&
		  ss_stream_waiting_pays(policy, s, now_ns) &&
		  !overdue(policy, now_ns) && turn_goes_on(policy, s, now_ns) &&
		  !ss_stream_in_place(policy, now_ns);
	if (holding && !all->holding) {
		policy->sched->counters.waits++;
		ss_sched_tell(policy->sched, SS_EVENT_HELD, s->end_sector,
			      s->size);
	}
	all->holding = holding;
}

/*
 * Does @rq, with which a turn begins, say that the target cannot be kept? It
 * waited for longer, by a fourth; or in a full device, where its reader has at
 * most one other outstanding; or by more than the request before it takes, and
 * with as many streams as there are the target would leave less than a third of
 * the time for what is no switch.
 */
static bool is_behind(const struct ss_policy *policy,
		      const struct ss_request *rq, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	u64 target = policy->value[STREAM_WAIT_TARGET];
	u64 late_ns;

	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO ||
	    !ss_request_is_awaited(rq) || now_ns < rq->arrival_ns + target)
		return false;
	late_ns = now_ns - rq->arrival_ns - target;
	if (late_ns > target / 4)
		return true;
	if (all->turn_full)
		return all->held->nr_pending <= 1;
	return late_ns > all->switch_ns &&
	       2 * slice_ns(policy, all->held) < 3 * all->switch_ns;
}

/*
 * A stream that has just begun goes on in the place of the one whose turn it
 * is, and is that from now on.
 */
static void succeed(struct stream_state_all *all, struct stream *s)
{
	struct stream *held = all->held;

	s->size = held->size + (held->size < U32_MAX / 4);
	s->rank = held->rank + (s->size >= all->next_rank_size[held->rank]);
	s->step_ns = held->step_ns;
	s->widest_ns = held->widest_ns;
	s->slowest_ns = held->slowest_ns;
	s->kept_ns = held->kept_ns;
	s->low_sector = min_t(u64, s->low_sector, held->low_sector);
	s->high_sector = max_t(u64, s->high_sector, held->high_sector);
	stream_free(all, held);
}

void ss_stream_pass_turn(const struct ss_policy *policy, struct stream *s,
			 const struct ss_request *rq, struct stream_leave how,
			 u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct stream *held = all->held;
	struct ss_counters *counters = &policy->sched->counters;
	bool to_others = ss_request_is_awaited(rq) &&
			 !(s && is_established(all, s));
	bool target = policy->value[STREAM_TIME_SLICE] == SLICE_AUTO;
	bool timeout = false;

	if (held) {
		if (all->holding &&
		    now_ns >= ss_stream_hold_end_ns(policy, held)) {
			timeout = true;
			held->vain = true;
			counters->timeouts++;
			ss_sched_tell(policy->sched, SS_EVENT_TIMEOUT,
				      held->end_sector, held->size);
			if (has_second_chance(all, held))
				counters->second_chances++;
		} else if (now_ns >=
			   all->slice_start_ns + slice_ns(policy, held)) {
			counters->slices_ended++;
			ss_sched_tell(policy->sched, SS_EVENT_SLICE_ENDED,
				      held->end_sector, held->size);
		}
	}
	if (how.near && s) {
		/* It is the same turn, and answers in it are of it, too. */
		if (how.in_place)
			succeed(all, s);
		all->held = s;
		all->run_ns = all->slice_start_ns;
		return;
	}
	/*
	 * A lone request that was late interrupts; a stream takes its turn.
	 * Where more are late the disk is overloaded, and the inner policy
	 * gets it to itself until a stream's member is its own choice.
	 */
	if (how.late && held && !(s && is_established(all, s)) &&
	    !(target && to_others) && !overdue(policy, now_ns)) {
		all->away = true;
		return;
	}
	if (held && to_others && !timeout &&
	    now_ns >= min_t(u64, all->slice_start_ns + slice_ns(policy, held),
			    rq->arrival_ns + policy->value[STREAM_WAIT_TARGET]))
		ss_stream_share_begin(policy, now_ns);
	all->away = false;
	ss_stream_turn_ends(policy);
	all->held = s && is_established(all, s) && !is_alone(all) ? s : NULL;
	/* The answers that made a stream of it are of its turn. */
	all->slice_start_ns = all->went_first == rq ? all->run_ns : now_ns;
	all->new_turn = all->went_first == rq;
	all->turn_behind_ns = 0;
	all->turn_full = policy->sched->nr_in_flight > FULL;
	all->first_of_turn = all->held ? rq : NULL;
	all->turn_late = all->held && is_behind(policy, rq, now_ns);
}
