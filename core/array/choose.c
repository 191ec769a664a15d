// SPDX-License-Identifier: GPL-2.0-only
/*
 * The coordinator of an array: what a member does next, where that is not for
 * its own policy to say.
 */
#include "internal.h"

#include <linux/kernel.h>

/* A turn is prolonged by this part of a slice at most. */
#define REMNANT_SHARE 4

/* The turn's stream has nothing for this member, others have. */
static bool choose_hold(const struct ss_array_member *member, u64 now_ns,
			struct ss_decision *decision)
{
	const struct ss_policy *inner = inner_of(member);
	u64 until_ns = ss_array_hold_until_ns(member, now_ns),
	    expiry_ns = SS_FOREVER;

	if (now_ns >= until_ns) {
		*decision = inner->ops->choose(inner, now_ns, NULL);
		return decision->verdict == SS_DISPATCH;
	}
	until_ns = min_t(u64, until_ns, ss_array_slice_end_ns(member));
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
	    now_ns >= end_ns + ss_array_slice_ns(member) / REMNANT_SHARE)
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
	struct ss_request *oldest = ss_array_oldest_of_others(member);
	struct ss_decision choice;
	struct ss_request *late;

	late = policy->ops->expired(policy, now_ns);
	if (late || !oldest || oldest->arrival_ns <= member->array->owed_ns)
		return late ? late : oldest;
	choice = inner->ops->choose(inner, now_ns, NULL);
	if (choice.verdict != SS_DISPATCH || ss_array_has_turns(choice.rq))
		return oldest;
	return choice.rq;
}

/*
 * It is their turn as it is a stream's: the member orders theirs by itself, and
 * sends none of those that take turns. Its head stays where it is while another
 * one works for them.
 */
static struct ss_decision share(const struct ss_array_member *member,
				u64 now_ns)
{
	const struct ss_policy *policy = &member->sched->policy[0];
	struct ss_decision choice;
	struct ss_request *rq;

	rq = policy->ops->expired(policy, now_ns);
	if (rq && !ss_array_has_turns(rq))
		return ss_dispatch(rq);
	choice = policy->ops->choose(policy, now_ns, NULL);
	if (choice.verdict == SS_DISPATCH && !ss_array_has_turns(choice.rq))
		return choice;
	list_for_each_entry(rq, &member->age, array_age_node)
		if (!ss_array_has_turns(rq) && ss_request_is_awaited(rq))
			return ss_dispatch(rq);
	rq = ss_array_oldest_of_others(member);
	if (rq && rq->arrival_ns <= member->array->owed_ns &&
	    (member->array->owed & (1U << member->index)))
		return ss_dispatch(rq);
	return ss_wait(ss_array_share_until_ns(member, now_ns));
}

bool ss_array_choose(const struct ss_array_member *member, u64 now_ns,
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
	if (array->sharing && ss_array_is_others_turn(member, now_ns)) {
		*decision = share(member, now_ns);
		return true;
	}
	if (ss_array_is_others_turn(member, now_ns)) {
		rq = next_of_others(member, now_ns);
		if (rq)
			*decision = ss_dispatch(rq);
		return rq;
	}
	if (member->passed && (!s || s == member->passed) &&
	    nr_others(member, member->passed)) {
		*decision = ss_dispatch(
			ss_array_next_other(member, member->passed, now_ns));
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
	if (!rq && nr_others(member, s) &&
	    now_ns >= ss_array_slice_end_ns(member)) {
		rq = remnant(member, s, ss_array_slice_end_ns(member), now_ns);
		if (!rq)
			rq = ss_array_next_other(member, s, now_ns);
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

void ss_array_note_holding(struct ss_array_member *member, u64 now_ns)
{
	const struct ss_array_stream *s = member->array->turn;
	struct ss_decision decision;
	bool holding;

	holding = s && !member->sched->nr_in_flight && member->nr_pending &&
		  !s->physical[member->index].nr_pending &&
		  ss_array_choose(member, now_ns, &decision) &&
		  decision.verdict == SS_WAIT;
	if (holding && !member->holding)
		member->sched->counters.waits++;
	member->holding = holding;
}
